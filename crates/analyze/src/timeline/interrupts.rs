//! Interrupts by cause: how long they took, what they interrupted, and on which call
//! paths the longest came.

use super::traps::{ByCause, WORST};
use super::{CauseSpans, Slice, SliceKind, TimelineSink, Track, TrackId, TrapSpan};
use crate::functions::FunctionId;
use crate::profile::trap_order;
use crate::stacks::Measure;
use hartrace_flow::Cause;
use hartrace_flow::order;
use rustc_hash::FxHashMap;

/// Calls of a path that are kept: the innermost.
const PATH: usize = 64;

/// Measures interrupts, and other traps on request: a [`TimelineSink`].
#[derive(Clone, Debug)]
pub struct InterruptTable {
    axis: Measure,
    exceptions: bool,
    tracks: Vec<OpenTrack>,
    causes: ByCause,
    /// What else is known of each cause.
    details: Vec<Details>,
}

/// A track, and what has not ended on it, outermost first.
#[derive(Clone, Debug)]
struct OpenTrack {
    track: Track,
    open: Vec<SliceKind>,
}

#[derive(Clone, Debug, Default)]
struct Details {
    preempted: FxHashMap<Option<FunctionId>, u64>,
    nested: u64,
    insns: u64,
    time: u64,
    /// Of the worst, in their order.
    worst: Vec<Path>,
    /// Of those with the longest latencies.
    delayed: Vec<Path>,
}

#[derive(Clone, Debug)]
struct Path {
    track: Track,
    omitted: usize,
    path: Vec<SliceKind>,
}

/// The interrupts of one cause.
#[derive(Clone, Debug)]
pub struct Interrupts<'a> {
    /// How many there are, and how long they took.
    pub spans: &'a CauseSpans,
    /// How many interrupted another trap.
    pub nested: u64,
    /// Instructions in all that returned, those of traps that interrupted them included.
    pub insns: u64,
    /// The same in time.
    pub time: u64,
    /// The functions that were interrupted, most often first.
    pub preempted: Vec<Preempted>,
    /// Those that took longest, the longest first.
    pub worst: Vec<WorstTrap<'a>>,
    /// Those with the longest latencies, the longest first; none if no latency is known.
    pub delayed: Vec<WorstTrap<'a>>,
}

/// A function that was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preempted {
    /// The function; `None` where it is not known.
    pub function: Option<FunctionId>,
    /// How often.
    pub count: u64,
}

/// An interrupt that took long, or that had to wait long.
#[derive(Clone, Copy, Debug)]
pub struct WorstTrap<'a> {
    /// The interrupt.
    pub trap: &'a TrapSpan,
    /// The track it is on.
    pub track: &'a Track,
    /// What was running, outermost first: calls, and traps that it interrupted.
    pub path: &'a [SliceKind],
    /// Calls outside of these that are left out.
    pub omitted: usize,
}

impl InterruptTable {
    /// The worst are those that are longest on an axis. A trap of which only is known that
    /// it is no exception counts as an interrupt.
    #[must_use]
    pub fn new(axis: Measure, exceptions: bool) -> InterruptTable {
        InterruptTable {
            axis,
            exceptions,
            tracks: Vec::new(),
            causes: ByCause::default(),
            details: Vec::new(),
        }
    }

    /// All interrupts by cause, exceptions first.
    #[must_use]
    pub fn causes(&self) -> Vec<Interrupts<'_>> {
        let all = self.causes.causes.iter().zip(&self.details);
        let mut causes: Vec<_> = all.map(|(spans, details)| details.of(spans)).collect();
        order::sort_by_key(&mut causes, |interrupts| trap_order(interrupts.spans.cause));
        causes
    }
}

impl Details {
    fn of<'a>(&'a self, spans: &'a CauseSpans) -> Interrupts<'a> {
        let counts = self.preempted.iter();
        let mut preempted: Vec<_> = counts
            .map(|(&function, &count)| Preempted { function, count })
            .collect();
        order::sort_by_key(&mut preempted, |p| (std::cmp::Reverse(p.count), p.function));
        let with_paths = |traps: &'a [TrapSpan], paths: &'a [Path]| {
            let both = traps.iter().zip(paths);
            let both = both.map(|(trap, path)| WorstTrap {
                trap,
                track: &path.track,
                path: &path.path,
                omitted: path.omitted,
            });
            both.collect()
        };
        Interrupts {
            spans,
            nested: self.nested,
            insns: self.insns,
            time: self.time,
            preempted,
            worst: with_paths(&spans.worst, &self.worst),
            delayed: with_paths(&spans.delayed, &self.delayed),
        }
    }

    fn add(&mut self, trap: &TrapSpan) {
        *self.preempted.entry(trap.interrupted).or_default() += 1;
        self.nested += u64::from(trap.nesting > 0);
        self.insns += trap.duration(Measure::Instructions).unwrap_or(0);
        self.time += trap.duration(Measure::Time).unwrap_or(0);
    }
}

impl OpenTrack {
    /// What the innermost trap interrupted.
    fn path(&self) -> Path {
        let is_trap = |kind: &SliceKind| matches!(kind, SliceKind::Trap(_));
        let trap = self.open.iter().rposition(is_trap).unwrap_or(0);
        let omitted = trap.saturating_sub(PATH);
        let path = self.open.get(omitted..trap).unwrap_or_default();
        Path {
            track: self.track,
            omitted,
            path: path.to_vec(),
        }
    }
}

impl TimelineSink for InterruptTable {
    fn track(&mut self, _: TrackId, track: &Track) {
        self.tracks.push(OpenTrack {
            track: *track,
            open: Vec::new(),
        });
    }

    fn begin(&mut self, track: TrackId, slice: &Slice) {
        if let Some(track) = self.tracks.get_mut(track.index()) {
            track.open.push(slice.kind);
        }
    }

    fn end(&mut self, track: TrackId, _: &Slice) {
        if let Some(track) = self.tracks.get_mut(track.index()) {
            track.open.pop();
        }
    }

    fn trap(&mut self, trap: &TrapSpan) {
        if matches!(trap.cause, Cause::Exception(_)) && !self.exceptions {
            return;
        }
        let Some((cause, ranks)) = self.causes.add(trap, self.axis) else {
            return;
        };
        let count = self.causes.causes.len();
        self.details.resize_with(count, Details::default);
        let (Some(details), Some(track)) = (
            self.details.get_mut(cause),
            self.tracks.get(trap.track.index()),
        ) else {
            return;
        };
        details.add(trap);
        for (paths, rank) in [
            (&mut details.worst, ranks.worst),
            (&mut details.delayed, ranks.delayed),
        ] {
            if let Some(at) = rank.filter(|at| *at <= paths.len()) {
                // The trap is given before its slice ends.
                paths.insert(at, track.path());
                paths.truncate(WORST);
            }
        }
    }
}
