//! Collects what an index needs, with stops.

use crate::collect::{Collector, Stop};
use hartrace_flow::{
    Checkpoint, Consumer, DataAccess, Event, HartId, Image, Interpolate, Kept, Marked, Run,
};
use std::cell::RefCell;
use std::ops::ControlFlow;

/// Gives events to a [`Collector`], with times for all runs where there are timestamps, and
/// saves its state at checkpoints.
pub struct Indexer<'r, 'a, 's> {
    collector: &'r RefCell<Collector<'a, 's>>,
    timed: Option<Interpolate<'r>>,
    stops: Vec<(Checkpoint, Stop)>,
}

/// A collector that something else uses too.
pub struct Shared<'r, 'a, 's>(pub &'r RefCell<Collector<'a, 's>>);

impl Consumer for Shared<'_, '_, '_> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        self.0.borrow_mut().event(hart, event)
    }
}

impl<'r, 'a, 's> Indexer<'r, 'a, 's> {
    /// For a collector; `shared` is the same one if there are timestamps.
    pub fn new(
        collector: &'r RefCell<Collector<'a, 's>>,
        image: &'r Image,
        shared: Option<&'r mut Shared<'r, 'a, 's>>,
    ) -> Indexer<'r, 'a, 's> {
        Indexer {
            collector,
            timed: shared.map(|shared| Interpolate::new(image, shared)),
            stops: Vec::new(),
        }
    }

    /// No more events: the stops.
    #[must_use]
    pub fn finish(self) -> Vec<(Checkpoint, Stop)> {
        if let Some(timed) = self.timed {
            timed.finish();
        }
        self.stops
    }
}

impl Consumer for Indexer<'_, '_, '_> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        match &mut self.timed {
            Some(timed) => timed.event(hart, event),
            None => self.collector.borrow_mut().event(hart, event),
        }
    }

    fn runs(&mut self, hart: HartId, runs: &[Run]) -> ControlFlow<()> {
        match &mut self.timed {
            Some(timed) => timed.runs(hart, runs),
            None => self.collector.borrow_mut().runs(hart, runs),
        }
    }

    fn kept_runs(&mut self, hart: HartId, kept: Kept, runs: &[Run]) -> ControlFlow<()> {
        match &mut self.timed {
            Some(timed) => timed.runs(hart, runs),
            None => self.collector.borrow_mut().kept_runs(hart, kept, runs),
        }
    }

    fn accesses(&mut self, _: HartId, _: &[DataAccess]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn keeps(&self) -> bool {
        self.timed.is_none()
    }
}

impl Marked for Indexer<'_, '_, '_> {
    fn is_ready(&self) -> bool {
        self.timed.as_ref().is_none_or(|timed| !timed.is_waiting())
    }

    fn mark(&mut self, checkpoint: Checkpoint) {
        if let Some(stop) = self.collector.borrow_mut().stop() {
            self.stops.push((checkpoint, stop));
        }
    }
}
