//! Instructions over time, in bounded memory.

use crate::timeline::Position;

/// Intervals at most.
const INTERVALS: usize = 4096;

/// Instructions in intervals of equal length, which is doubled when there are too many.
#[derive(Clone, Debug, Default)]
pub(super) struct Rate {
    last: Option<Position>,
    first: u64,
    /// The logarithm of the length of an interval.
    scale: u32,
    insns: Vec<u64>,
}

impl Rate {
    /// The hart is here; positions come in order.
    pub(super) fn add(&mut self, at: Position) {
        if at.time == 0 {
            return;
        }
        let Some(last) = self.last else {
            (self.last, self.first) = (Some(at), at.time);
            return;
        };
        // Slices of a thread that was waiting may have begun earlier.
        if at.insn <= last.insn || at.time < last.time {
            return;
        }
        self.last = Some(at);
        while (at.time - self.first) >> self.scale >= INTERVALS as u64 {
            self.halve();
        }
        let index = ((last.time - self.first) >> self.scale) as usize;
        if index >= self.insns.len() {
            self.insns.resize(index + 1, 0);
        }
        if let Some(count) = self.insns.get_mut(index) {
            *count += at.insn - last.insn;
        }
    }

    /// Makes intervals twice as long.
    fn halve(&mut self) {
        self.scale += 1;
        let halves = self.insns.chunks(2).map(|pair| pair.iter().sum());
        self.insns = halves.collect();
    }

    /// Where each interval begins, no more than `most`, and instructions in `per` units of
    /// time. Counting starts again.
    pub(super) fn take(&mut self, per: f64, most: usize) -> Vec<(u64, f64)> {
        while self.insns.len() > most.max(1) {
            self.halve();
        }
        let length = (1u64 << self.scale) as f64;
        let starts = (0u64..).map(|n| self.first + (n << self.scale));
        let rate = |insns: &u64| *insns as f64 * per / length;
        let values = starts.zip(self.insns.iter().map(rate)).collect();
        self.insns.clear();
        self.scale = 0;
        self.first = self.last.map_or(0, |last| last.time);
        values
    }
}
