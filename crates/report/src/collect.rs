//! Collects what a report needs, in one pass over the events of a trace.

use crate::about::Budget;
use crate::recent::{Recent, Snapshot};
use hartrace_analyze::{
    Backtrace, Functions, GapSpan, GapTable, Grouping, Measure, Position, Profile, Profiler, Slice,
    SliceSummary, Timeline, TimelineSink, Track, TrackId, TrapSpan, TrapTable,
};
use hartrace_flow::{
    Cause, Consumer, DataAccess, DataGap, Event, HartId, Image, Kept as KeptRuns, Run, TiedRuns,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// The parts of a timeline that are kept: as much as a budget allows.
#[derive(Clone, Debug)]
pub struct Kept {
    pub(crate) axis: Measure,
    pub(crate) slices: SliceSummary,
    pub(crate) traps: TrapTable,
    pub(crate) gaps: GapTable,
    /// The tracks of threads.
    pub(crate) threads: Vec<(HartId, u32, TrackId)>,
}

/// Callers of an instruction that caused an exception.
const CALLERS: usize = 64;

/// Gaps of data trace that are listed.
const DATA_GAPS: usize = 1000;

/// Threads whose tracks are remembered.
const THREADS: usize = 1 << 16;

impl Kept {
    /// Nothing yet. Lengths are judged by time if the trace has timestamps.
    #[must_use]
    pub fn new(has_time: bool, budget: &Budget) -> Kept {
        let axis = match has_time {
            true => Measure::Time,
            false => Measure::Instructions,
        };
        Kept {
            axis,
            slices: SliceSummary::new(axis, budget.slices),
            traps: TrapTable::new(axis, budget.traps),
            gaps: GapTable::new(budget.gaps),
            threads: Vec::new(),
        }
    }
}

impl TimelineSink for Kept {
    fn track(&mut self, id: TrackId, track: &Track) {
        self.slices.track(id, track);
    }

    fn thread(&mut self, track: TrackId, hart: HartId, thread: u32) {
        if self.threads.len() < THREADS {
            self.threads.push((hart, thread, track));
        }
    }

    fn end(&mut self, track: TrackId, slice: &Slice) {
        self.slices.end(track, slice);
    }

    fn trap(&mut self, trap: &TrapSpan) {
        self.traps.trap(trap);
    }

    fn gap(&mut self, gap: &GapSpan) {
        self.gaps.gap(gap);
    }
}

/// A place in a trace from which a part of the timeline can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The harts, with their instructions so far and their times.
    pub(crate) harts: Vec<(HartId, u64, Option<u64>)>,
    pub(crate) state: Vec<u8>,
}

/// Takes the events of a trace. Those of a trace with timestamps come through
/// [`Interpolate`](hartrace_flow::Interpolate).
pub struct Collector<'a, 's> {
    profiler: Profiler<'a, Timeline<'s>>,
    recent: Recent<'a>,
    data_gaps: DataGaps,
}

/// What was collected, beside the timeline.
pub struct Collected {
    /// Functions, call paths and counts.
    pub profile: Profile,
    /// The last instructions of each hart.
    pub(crate) endings: Vec<Snapshot>,
    /// Instructions before exceptions.
    pub(crate) before_traps: Vec<Snapshot>,
    pub(crate) data_gaps: DataGaps,
}

/// Data trace that is missing, while the instructions are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct DataGaps {
    /// The first of them, with where their harts were.
    pub(crate) first: Vec<(HartId, Position, DataGap)>,
    pub(crate) count: u64,
}

impl<'a, 's> Collector<'a, 's> {
    /// For code of `image` with these functions; the timeline goes to `timeline`.
    pub fn new(
        image: &'a Image,
        functions: Functions,
        timeline: &'s mut dyn TimelineSink,
    ) -> Collector<'a, 's> {
        let grouping = Grouping {
            harts: true,
            ..Grouping::default()
        };
        let timeline = Timeline::new(timeline);
        Collector {
            profiler: Profiler::new(image, functions, grouping, timeline),
            recent: Recent::new(image),
            data_gaps: DataGaps::default(),
        }
    }

    /// Where each hart is, and the state of the stacks, from which a part of the timeline
    /// can be made; `None` if that is too much.
    pub fn stop(&mut self) -> Option<Stop> {
        Some(Stop {
            harts: self.recent.positions(),
            state: self.profiler.save()?,
        })
    }

    /// No more events.
    #[must_use]
    pub fn finish(mut self) -> Collected {
        let harts = self.recent.positions().into_iter();
        let outer = harts.map(|(id, ..)| (id, self.profiler.backtrace(id, usize::MAX)));
        let outer: BTreeMap<HartId, Backtrace> = outer.collect();
        let (profile, timeline) = self.profiler.finish();
        timeline.finish();
        let (mut endings, before_traps) = self.recent.finish();
        for end in &mut endings {
            let found = outer.get(&end.hart);
            end.outer = found.map(|all| all.0.clone()).unwrap_or_default();
        }
        Collected {
            profile,
            endings,
            before_traps,
            data_gaps: self.data_gaps,
        }
    }

    #[cold]
    fn data_gap(&mut self, hart: HartId, gap: DataGap) {
        self.data_gaps.count += 1;
        if self.data_gaps.first.len() < DATA_GAPS {
            let (insn, time) = self.recent.position(hart);
            let at = Position {
                insn,
                time: time.unwrap_or(0),
            };
            self.data_gaps.first.push((hart, at, gap));
        }
    }
}

fn is_exception(cause: Cause) -> bool {
    matches!(cause, Cause::Exception(_))
}

impl Consumer for Collector<'_, '_> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        let flow = self.profiler.event(hart, event);
        let is_exception = matches!(event, Event::Trap(trap) if is_exception(trap.cause));
        let outer = is_exception.then(|| self.profiler.backtrace(hart, CALLERS));
        self.recent.event(hart, event, outer);
        if let Event::DataGap(gap) = event {
            self.data_gap(hart, *gap);
        }
        flow
    }

    fn runs(&mut self, hart: HartId, runs: &[Run]) -> ControlFlow<()> {
        self.recent.runs(hart, runs);
        self.profiler.runs(hart, runs)
    }

    fn kept_runs(&mut self, hart: HartId, kept: KeptRuns, runs: &[Run]) -> ControlFlow<()> {
        self.recent.runs(hart, runs);
        self.profiler.kept_runs(hart, kept, runs)
    }

    fn accesses(&mut self, _: HartId, _: &[DataAccess]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Accesses do not matter.
    fn tied_runs(&mut self, hart: HartId, tied: &TiedRuns<'_>) -> ControlFlow<()> {
        self.kept_runs(hart, tied.kept(), tied.runs())
    }

    fn looks_at_values(&self) -> bool {
        false
    }

    fn keeps(&self) -> bool {
        self.profiler.keeps()
    }
}
