//! The bandwidth of a stream while it is written.

use hartrace_flow::queue::{Fill, SmallestDrain};
use std::collections::VecDeque;

/// Cycles over which the peak is taken.
pub const WINDOW: u64 = 1000;

/// Measures a stream: its peak bandwidth, and the output that it needs. Its memory is
/// bounded by the messages of [`WINDOW`] cycles.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    /// Messages of the last cycles: time and bytes.
    recent: VecDeque<(u64, u64)>,
    /// Their bytes.
    within: u64,
    peak: u64,
    fill: Option<Fill>,
    drains: Vec<SmallestDrain>,
}

impl Meter {
    /// Measures the peak bandwidth, the fill of a queue that so many bytes leave in
    /// 1024 cycles, and the smallest drains of queues of these depths.
    #[must_use]
    pub fn new(drain: Option<u32>, depths: &[u32]) -> Meter {
        Meter {
            fill: drain.map(Fill::new),
            drains: depths.iter().copied().map(SmallestDrain::new).collect(),
            ..Meter::default()
        }
    }

    /// A message of so many bytes at this time.
    pub(super) fn message(&mut self, bytes: usize, time: u64) {
        // Harts of a log may be a little apart.
        let now = self.recent.back().map_or(time, |last| last.0.max(time));
        self.count(bytes, now);
        if let Some(fill) = &mut self.fill {
            fill.message(bytes, now);
        }
        for drain in &mut self.drains {
            drain.message(bytes, now);
        }
    }

    /// A message after the last step: a queue has all the time it needs.
    pub(super) fn last(&mut self, bytes: usize) {
        let now = self.recent.back().map_or(0, |last| last.0);
        self.count(bytes, now);
    }

    fn count(&mut self, bytes: usize, now: u64) {
        while let Some(&(time, bytes)) = self.recent.front()
            && now - time >= WINDOW
        {
            self.within -= bytes;
            self.recent.pop_front();
        }
        self.within += bytes as u64;
        match self.recent.back_mut() {
            Some(last) if last.0 == now => last.1 += bytes as u64,
            _ => self.recent.push_back((now, bytes as u64)),
        }
        self.peak = self.peak.max(self.within);
    }

    /// The most bytes in [`WINDOW`] consecutive cycles.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.peak
    }

    /// The depth at which the queue loses nothing.
    #[must_use]
    pub fn deepest(&self) -> Option<u64> {
        self.fill.as_ref().map(Fill::deepest)
    }

    /// For each depth, the bytes that must leave in 1024 cycles; `None` where no
    /// drain is enough.
    pub fn smallest_drains(&self) -> impl Iterator<Item = Option<u64>> {
        self.drains.iter().map(SmallestDrain::get)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_that_of_any_window() {
        // By brute force: every window that starts at a message.
        let stream: Vec<(usize, u64)> = (0..2000u64)
            .map(|n| ((n * n % 13) as usize + 1, n * 37 + n * n % 911))
            .collect();
        let mut sorted = stream.clone();
        sorted.iter_mut().fold(0, |last, message| {
            message.1 = message.1.max(last);
            message.1
        });
        let window = |&(_, start): &(usize, u64)| {
            let inside = sorted
                .iter()
                .filter(|m| m.1 >= start && m.1 < start + WINDOW);
            inside.map(|m| m.0 as u64).sum::<u64>()
        };
        let most = sorted.iter().map(window).max().unwrap();
        let mut meter = Meter::new(Some(100), &[20, 500]);
        stream.iter().for_each(|&(b, t)| meter.message(b, t));
        assert_eq!(meter.peak(), most);
        assert!(meter.deepest().unwrap() > 0);
        assert_eq!(meter.smallest_drains().count(), 2);
    }
}
