//! Collects what a report needs, in one pass over the events of a trace.

use crate::about::Budget;
use crate::recent::{Recent, Snapshot};
use hartrace_analyze::{
    Functions, GapSpan, GapTable, Grouping, Measure, Profile, Profiler, Slice, SliceSummary,
    Timeline, TimelineSink, Track, TrackId, TrapSpan, TrapTable,
};
use hartrace_flow::{Consumer, DataAccess, Event, HartId, Image, Kept as KeptRuns, Run};
use std::ops::ControlFlow;

/// The parts of a timeline that are kept: as much as a budget allows.
#[derive(Clone, Debug)]
pub struct Kept {
    pub(crate) axis: Measure,
    pub(crate) slices: SliceSummary,
    pub(crate) traps: TrapTable,
    pub(crate) gaps: GapTable,
}

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
        }
    }
}

impl TimelineSink for Kept {
    fn track(&mut self, id: TrackId, track: &Track) {
        self.slices.track(id, track);
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

/// Takes the events of a trace. Those of a trace with timestamps come through
/// [`Interpolate`](hartrace_flow::Interpolate).
pub struct Collector<'a, 's> {
    profiler: Profiler<'a, Timeline<'s>>,
    recent: Recent<'a>,
}

/// What was collected, beside the timeline.
pub struct Collected {
    /// Functions, call paths and counts.
    pub profile: Profile,
    /// The last instructions of each hart.
    pub(crate) endings: Vec<Snapshot>,
    /// Instructions before exceptions.
    pub(crate) before_traps: Vec<Snapshot>,
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
        }
    }

    /// No more events.
    #[must_use]
    pub fn finish(self) -> Collected {
        let (profile, timeline) = self.profiler.finish();
        timeline.finish();
        let (endings, before_traps) = self.recent.finish();
        Collected {
            profile,
            endings,
            before_traps,
        }
    }
}

impl Consumer for Collector<'_, '_> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        self.recent.event(hart, event);
        self.profiler.event(hart, event)
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

    fn keeps(&self) -> bool {
        self.profiler.keeps()
    }
}
