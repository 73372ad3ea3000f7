//! Traps of a timeline, one by one and by their causes.

use super::{TimelineSink, TrapSpan};
use crate::calls::{Spans, record, spans};
use crate::profile::trap_order;
use crate::stacks::Measure;
use hartrace_flow::Cause;
use hartrace_flow::order;
use hdrhistogram::Histogram;
use std::cmp::Reverse;

/// Traps that are kept of each cause because they took longest.
pub(super) const WORST: usize = 8;

/// Causes that are told apart; all others count as unknown.
const CAUSES: usize = 256;

/// Bars of a histogram at most.
const BARS: u64 = 24;

/// From this ratio of the longest to the shortest on, bars grow by a factor.
const WIDE: u64 = 32;

/// The traps of one cause.
#[derive(Clone, Debug)]
pub struct CauseSpans {
    /// The cause.
    pub cause: Cause,
    /// How many there are.
    pub count: u64,
    /// Those that never returned.
    pub unfinished: u64,
    /// The most traps that one of them interrupted.
    pub nesting: u32,
    /// Those that took longest, the longest first.
    pub worst: Vec<TrapSpan>,
    /// Those with the longest latencies, the longest first.
    pub delayed: Vec<TrapSpan>,
    insns: Option<Histogram<u64>>,
    time: Option<Histogram<u64>>,
    latencies: Option<Histogram<u64>>,
}

/// The places that a trap got among those of its cause that are kept.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ranks {
    /// Among the worst.
    pub(super) worst: Option<usize>,
    /// Among those with the longest latencies.
    pub(super) delayed: Option<usize>,
}

impl CauseSpans {
    fn new(cause: Cause) -> CauseSpans {
        CauseSpans {
            cause,
            count: 0,
            unfinished: 0,
            nesting: 0,
            worst: Vec::new(),
            delayed: Vec::new(),
            insns: None,
            time: None,
            latencies: None,
        }
    }

    fn add(&mut self, trap: &TrapSpan, axis: Measure) -> Ranks {
        self.count += 1;
        self.nesting = self.nesting.max(trap.nesting);
        let delayed = trap.latency().and_then(|latency| {
            record(&mut self.latencies, latency);
            rank(&mut self.delayed, trap, |trap| Reverse(trap.latency()))
        });
        Ranks {
            worst: self.add_duration(trap, axis),
            delayed,
        }
    }

    /// Gives the place among the worst that it got.
    fn add_duration(&mut self, trap: &TrapSpan, axis: Measure) -> Option<usize> {
        if trap.end.is_none() {
            self.unfinished += 1;
            return None;
        }
        for (axis, spans) in [
            (Measure::Instructions, &mut self.insns),
            (Measure::Time, &mut self.time),
        ] {
            if let Some(length) = trap.duration(axis) {
                record(spans, length);
            }
        }
        // Without times, all are as long on that axis.
        rank(&mut self.worst, trap, |trap| {
            Reverse((length(trap, axis), length(trap, Measure::Instructions)))
        })
    }

    const fn all(&self, axis: Measure) -> Option<&Histogram<u64>> {
        match axis {
            Measure::Instructions => self.insns.as_ref(),
            Measure::Time => self.time.as_ref(),
        }
    }

    /// How long they took, from the trap to the return from it, with the traps that
    /// interrupted them and with other threads that ran meanwhile. Values over 1000 are exact to three digits.
    #[must_use]
    pub fn duration(&self, axis: Measure) -> Spans {
        spans(self.all(axis))
    }

    /// How long they were pending before the first instruction of their handler, in time,
    /// and of how many of them that is known; `None` if of none. As precise as durations.
    #[must_use]
    pub fn latency(&self) -> Option<(u64, Spans)> {
        let all = self.latencies.as_ref().filter(|all| !all.is_empty())?;
        Some((all.len(), spans(Some(all))))
    }

    /// How many took how long: the longest duration and the number of each bar. Bars
    /// without any are left out.
    #[must_use]
    pub fn histogram(&self, axis: Measure) -> Vec<(u64, u64)> {
        let mut bars: Vec<(u64, u64)> = Vec::new();
        let Some(all) = self.all(axis).filter(|all| !all.is_empty()) else {
            return bars;
        };
        let (min, max) = (all.min(), all.max());
        let upper = |value: u64| match max / min.max(1) < WIDE {
            true => {
                let step = ((max - min) / BARS).max(1);
                min + (value - min) / step * step + step - 1
            }
            // The next power of two, less one.
            false => u64::MAX >> value.max(1).leading_zeros(),
        };
        for value in all.iter_recorded() {
            let upper = upper(value.value_iterated_to().clamp(min, max)).min(max);
            let count = value.count_since_last_iteration();
            match bars.last_mut().filter(|bar| bar.0 == upper) {
                Some(bar) => bar.1 += count,
                None => bars.push((upper, count)),
            }
        }
        bars
    }
}

/// Keeps a trap if it is one of the first by a key: the place it gets.
fn rank<K: Ord>(
    kept: &mut Vec<TrapSpan>,
    trap: &TrapSpan,
    key: impl Fn(&TrapSpan) -> K,
) -> Option<usize> {
    let at = kept.partition_point(|other| key(other) <= key(trap));
    if at >= WORST {
        return None;
    }
    kept.insert(at, *trap);
    kept.truncate(WORST);
    Some(at)
}

/// How long a trap took; 0 if that is not known.
fn length(trap: &TrapSpan, axis: Measure) -> u64 {
    trap.duration(axis).unwrap_or(0)
}

/// Traps by cause, in the order in which causes appear.
#[derive(Clone, Debug, Default)]
pub(super) struct ByCause {
    pub(super) causes: Vec<CauseSpans>,
}

impl ByCause {
    /// Adds a trap: the index of its cause, and its places among those of it. One whose
    /// start was not seen belongs to another trap, which counts.
    pub(super) fn add(&mut self, trap: &TrapSpan, axis: Measure) -> Option<(usize, Ranks)> {
        if !trap.start_seen {
            return None;
        }
        let position = |cause| self.causes.iter().position(|c| c.cause == cause);
        let is_full = self.causes.len() >= CAUSES;
        let rest = || position(Cause::Unknown).filter(|_| is_full);
        let known = position(trap.cause).or_else(rest);
        let at = known.unwrap_or_else(|| {
            let cause = if is_full { Cause::Unknown } else { trap.cause };
            self.causes.push(CauseSpans::new(cause));
            self.causes.len() - 1
        });
        let ranks = self.causes.get_mut(at)?.add(trap, axis);
        Some((at, ranks))
    }
}

/// The traps of a timeline: all of them by cause, and as many one by one as there is
/// room for.
#[derive(Clone, Debug)]
pub struct TrapTable {
    axis: Measure,
    limit: usize,
    traps: Vec<TrapSpan>,
    causes: ByCause,
    /// Shorter ones are not kept.
    least: u64,
    dropped: u64,
}

impl TrapTable {
    /// Keeps at most `limit` traps one by one, the longest on an axis.
    #[must_use]
    pub fn new(axis: Measure, limit: usize) -> TrapTable {
        TrapTable {
            axis,
            limit: limit.max(16),
            traps: Vec::new(),
            causes: ByCause::default(),
            least: 0,
            dropped: 0,
        }
    }

    /// The traps that are kept, by where they begin; and how many are not.
    #[must_use]
    pub fn traps(&self) -> (Vec<TrapSpan>, u64) {
        let mut traps = self.traps.clone();
        order::sort_by_key(&mut traps, |trap| (trap.track, trap.begin, trap.nesting));
        (traps, self.dropped)
    }

    /// All traps by cause, exceptions first.
    #[must_use]
    pub fn causes(&self) -> Vec<&CauseSpans> {
        let mut causes: Vec<&CauseSpans> = self.causes.causes.iter().collect();
        order::sort_by_key(&mut causes, |spans| trap_order(spans.cause));
        causes
    }

    /// Keeps the longer half.
    fn thin(&mut self) {
        // A format may have times, and a trace of it none.
        if self.traps.iter().all(|trap| trap.begin.time == 0) {
            self.axis = Measure::Instructions;
        }
        let axis = self.axis;
        let mut lengths: Vec<u64> = self.traps.iter().map(|t| length(t, axis)).collect();
        lengths.sort_unstable();
        let middle = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
        self.least = middle.saturating_add(1).max(self.least.saturating_add(1));
        let (least, before) = (self.least, self.traps.len());
        self.traps
            .retain(|trap| trap.end.is_none() || length(trap, axis) >= least);
        // Those that never return are no reason to grow without end.
        self.traps.truncate(self.limit);
        self.dropped += (before - self.traps.len()) as u64;
    }
}

impl TimelineSink for TrapTable {
    fn trap(&mut self, trap: &TrapSpan) {
        self.causes.add(trap, self.axis);
        if trap.end.is_some() && length(trap, self.axis) < self.least {
            self.dropped += 1;
            return;
        }
        self.traps.push(*trap);
        if self.traps.len() > 2 * self.limit {
            self.thin();
        }
    }
}
