//! Collects what an index needs, with stops.

use crate::collect::{Collected, Collector, Stop};
use hartrace_flow::{
    Checkpoint, Consumer, DataAccess, Event, HartId, Image, Interpolate, Kept, Marked, Run,
    TiedRuns,
};
use std::ops::ControlFlow;

/// Gives events to a [`Collector`], with times for all runs where there are timestamps, and
/// saves its state at checkpoints.
pub struct Indexer<'a, 's> {
    collector: Timed<'a, 's>,
    stops: Vec<(Checkpoint, Stop)>,
}

enum Timed<'a, 's> {
    Plain(Box<Collector<'a, 's>>),
    Stamped(Box<Interpolate<'a, Collector<'a, 's>>>),
}

impl<'a, 's> Indexer<'a, 's> {
    /// For a collector of events with timestamps, or without.
    #[must_use]
    pub fn new(collector: Collector<'a, 's>, image: &'a Image, has_time: bool) -> Indexer<'a, 's> {
        Indexer {
            collector: match has_time {
                true => Timed::Stamped(Box::new(Interpolate::new(image, collector))),
                false => Timed::Plain(Box::new(collector)),
            },
            stops: Vec::new(),
        }
    }

    /// No more events: what was collected, and the stops.
    #[must_use]
    pub fn finish(self) -> (Collected, Vec<(Checkpoint, Stop)>) {
        let collected = match self.collector {
            Timed::Plain(collector) => collector.finish(),
            Timed::Stamped(timed) => timed.finish().0.finish(),
        };
        (collected, self.stops)
    }
}

impl Consumer for Indexer<'_, '_> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        match &mut self.collector {
            Timed::Plain(collector) => collector.event(hart, event),
            Timed::Stamped(timed) => timed.event(hart, event),
        }
    }

    fn runs(&mut self, hart: HartId, runs: &[Run]) -> ControlFlow<()> {
        match &mut self.collector {
            Timed::Plain(collector) => collector.runs(hart, runs),
            Timed::Stamped(timed) => timed.runs(hart, runs),
        }
    }

    fn kept_runs(&mut self, hart: HartId, kept: Kept, runs: &[Run]) -> ControlFlow<()> {
        match &mut self.collector {
            Timed::Plain(collector) => collector.kept_runs(hart, kept, runs),
            Timed::Stamped(timed) => timed.runs(hart, runs),
        }
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
        matches!(self.collector, Timed::Plain(_))
    }
}

impl Marked for Indexer<'_, '_> {
    fn is_ready(&self) -> bool {
        match &self.collector {
            Timed::Plain(_) => true,
            Timed::Stamped(timed) => !timed.is_waiting(),
        }
    }

    fn mark(&mut self, checkpoint: Checkpoint) {
        let stop = match &mut self.collector {
            Timed::Plain(collector) => collector.stop(),
            Timed::Stamped(timed) => timed.inner().stop(),
        };
        self.stops.extend(stop.map(|stop| (checkpoint, stop)));
    }
}
