//! Makes the rows of several tables in one pass over the events of a trace.

use crate::calls::CallSink;
use crate::flow::{Flow, FlowTables};
use crate::index::{Stop, Stretch};
use crate::names::FunctionNames;
use crate::table::{Projection, Table};
use arrow_array::{RecordBatch, StringArray};
use hartrace_analyze::{Functions, Grouping, Moment, Profile, Profiler};
use hartrace_flow::{
    Checkpoint, Consumer, DataAccess, Event, HartId, Image, Interpolate, Kept, Marked, Packer, Run,
    TiedRuns, Unpacker,
};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Takes batches of rows.
pub trait Take {
    /// Rows of a table, of one hart; a break ends the reading. Columns are those that were
    /// wanted, without `trace` and `hart`.
    fn batch(&mut self, table: Table, hart: u32, batch: RecordBatch) -> ControlFlow<()>;

    /// The reader has come to a synchronisation point. Whether the rows before it are wanted
    /// at once, though they do not fill a batch; [`Take::cut`] follows them.
    fn sync(&mut self) -> ControlFlow<(), bool> {
        ControlFlow::Continue(false)
    }

    /// The next rows begin after a synchronisation point.
    fn cut(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Which tables are wanted, and which columns of them.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    tables: Vec<(Table, Projection)>,
    /// No index is wanted.
    unindexed: bool,
}

impl Wanted {
    /// Some columns of one table.
    #[must_use]
    pub fn only(table: Table, projection: Projection) -> Wanted {
        Wanted {
            tables: vec![(table, projection)],
            unindexed: false,
        }
    }

    /// All columns of some tables.
    #[must_use]
    pub fn all(tables: impl IntoIterator<Item = Table>) -> Wanted {
        let tables = tables.into_iter();
        Wanted {
            tables: tables.map(|table| (table, Projection::ALL)).collect(),
            unindexed: false,
        }
    }

    /// The same without an index of the trace, which takes longer to make.
    #[must_use]
    pub fn without_index(self) -> Wanted {
        Wanted {
            unindexed: true,
            ..self
        }
    }

    pub(crate) const fn has_index(&self) -> bool {
        !self.unindexed
    }

    pub(crate) fn of(&self, table: Table) -> Option<Projection> {
        let mut tables = self.tables.iter();
        tables
            .find(|(known, _)| *known == table)
            .map(|found| found.1)
    }

    /// The same without a table.
    pub(crate) fn without(&self, table: Table) -> Wanted {
        let others = self.tables.iter().filter(|(known, _)| *known != table);
        Wanted {
            tables: others.copied().collect(),
            ..*self
        }
    }

    /// Whether a time is wanted.
    #[must_use]
    pub fn has_time(&self) -> bool {
        let mut tables = self.tables.iter();
        tables.any(|(table, projection)| table.has_time(*projection))
    }
}

/// How rows are made.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Purpose {
    /// Every run gets a time.
    pub(crate) timed: bool,
    /// Stretches are noted for an index.
    pub(crate) indexed: bool,
    /// Runs are counted, for branches.
    pub(crate) counted: bool,
}

/// Gives events to a [`Collector`], with times for all runs if they are wanted.
pub(crate) struct Feed<'a, 't> {
    collector: Timed<'a, 't>,
    stretches: Vec<Stretch>,
    stop: Option<Stop>,
    indexed: bool,
}

enum Timed<'a, 't> {
    Plain(Box<Collector<'a, 't>>),
    Stamped(Box<Interpolate<'a, Collector<'a, 't>>>),
}

impl<'a, 't> Feed<'a, 't> {
    pub(crate) fn new(
        (image, functions): (&'a Image, &Functions),
        wanted: &Wanted,
        purpose: Purpose,
        out: &'t mut dyn Take,
    ) -> Feed<'a, 't> {
        let collector = Collector::new((image, functions), wanted, purpose, out);
        Feed {
            collector: match purpose.timed {
                true => Timed::Stamped(Box::new(Interpolate::new(image, collector))),
                false => Timed::Plain(Box::new(collector)),
            },
            stretches: Vec::new(),
            stop: None,
            indexed: purpose.indexed,
        }
    }

    fn inner(&mut self) -> &mut Collector<'a, 't> {
        match &mut self.collector {
            Timed::Plain(collector) => collector,
            Timed::Stamped(timed) => timed.inner(),
        }
    }

    /// The state between two events; `None` where it cannot be saved.
    fn save(&mut self) -> Option<Vec<u8>> {
        let mut times = Packer::new();
        if let Timed::Stamped(timed) = &self.collector {
            timed.save(&mut times)?;
        }
        let mut out = Packer::new();
        out.bytes(&times.finish());
        let collector = self.inner();
        out.bytes(&collector.profiler.as_mut()?.save()?);
        collector.flow.as_ref()?.save(&mut out);
        Some(out.finish())
    }

    /// Goes on from a stop; `None` if its state cannot be read.
    pub(crate) fn restore(&mut self, stop: &Stop) -> Option<()> {
        let mut saved = Unpacker::new(&stop.state);
        // A reader that wants no times has no use for these.
        let mut times = Unpacker::new(saved.bytes()?);
        if let Timed::Stamped(timed) = &mut self.collector {
            timed.restore(&mut times)?;
        }
        let collector = self.inner();
        let stacks = saved.bytes()?;
        if let Some(profiler) = &mut collector.profiler {
            profiler.restore(stacks)?;
        }
        if let Some(flow) = &mut collector.flow {
            flow.restore(&mut saved)?;
            flow.position = stop.checkpoint.position;
        }
        Some(())
    }

    /// The part ends, but not the trace.
    pub(crate) fn leave(mut self) {
        self.inner().give_rest();
    }

    /// The trace ends: what was counted, and the stretches, up to its size, with all names.
    pub(crate) fn finish(mut self, size: u64) -> Finished {
        let collector = match self.collector {
            Timed::Plain(collector) => *collector,
            Timed::Stamped(timed) => timed.finish().0,
        };
        let ended = collector.ended;
        let (profile, zones, names) = collector.finish();
        if self.indexed {
            self.stretches.push(Stretch {
                stop: self.stop,
                end: size,
                zones,
            });
        }
        Finished {
            profile,
            stretches: self.stretches,
            names,
            ended,
        }
    }
}

/// What is known after a whole trace.
pub(crate) struct Finished {
    pub(crate) profile: Option<Profile>,
    pub(crate) stretches: Vec<Stretch>,
    pub(crate) names: Vec<String>,
    /// The rows were not wanted to the end.
    pub(crate) ended: bool,
}

impl Consumer for Feed<'_, '_> {
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

    fn accesses(&mut self, hart: HartId, accesses: &[DataAccess]) -> ControlFlow<()> {
        match &mut self.collector {
            Timed::Plain(collector) => collector.accesses(hart, accesses),
            Timed::Stamped(timed) => timed.accesses(hart, accesses),
        }
    }

    fn tied_runs(&mut self, hart: HartId, tied: &TiedRuns<'_>) -> ControlFlow<()> {
        if self.inner().wants_accesses() {
            return tied.give_to(hart, self);
        }
        self.kept_runs(hart, tied.kept(), tied.runs())
    }

    fn keeps(&self) -> bool {
        matches!(self.collector, Timed::Plain(_))
    }
}

impl Marked for Feed<'_, '_> {
    fn is_ready(&self) -> bool {
        match &self.collector {
            Timed::Plain(_) => true,
            Timed::Stamped(timed) => !timed.is_waiting(),
        }
    }

    fn mark(&mut self, checkpoint: Checkpoint) {
        if !self.indexed {
            self.inner().sync(checkpoint.position);
            return;
        }
        let Some(state) = self.save() else {
            return;
        };
        let zones = self.inner().sync(checkpoint.position);
        let stop = self.stop.replace(Stop { checkpoint, state });
        self.stretches.push(Stretch {
            stop,
            end: checkpoint.position,
            zones,
        });
    }
}

/// Makes rows of events.
struct Collector<'a, 't> {
    /// Follows the stacks.
    profiler: Option<Profiler<'a, CallSink>>,
    flow: Option<Flow<'a>>,
    /// All that `flow` wants to know of runs, how many instructions they have, `profiler` counts.
    counts: bool,
    out: &'t mut dyn Take,
    /// No more rows are wanted.
    ended: bool,
}

impl<'a, 't> Collector<'a, 't> {
    fn new(
        (image, functions): (&'a Image, &Functions),
        wanted: &Wanted,
        purpose: Purpose,
        out: &'t mut dyn Take,
    ) -> Collector<'a, 't> {
        let (calls, traps) = (wanted.of(Table::Calls), wanted.of(Table::Traps));
        let tables = FlowTables {
            runs: wanted.of(Table::Runs),
            accesses: wanted.of(Table::Accesses),
            gaps: wanted.of(Table::Gaps),
        };
        let stacks = calls.is_some() || traps.is_some() || purpose.indexed || purpose.counted;
        let flow = tables.is_detailed() || tables.gaps.is_some() || purpose.indexed;
        let profiler = stacks.then(|| {
            let names = FunctionNames::new(functions);
            let sink = CallSink::new(names, calls, traps, purpose.indexed);
            Profiler::new(image, functions.clone(), Grouping::default(), sink)
        });
        let flow = flow.then(|| Flow::new(image, tables, purpose.indexed));
        Collector {
            counts: stacks && flow.as_ref().is_some_and(Flow::only_counts),
            profiler,
            flow,
            out,
            ended: false,
        }
    }

    fn wants_accesses(&mut self) -> bool {
        let flow = self.flow.as_mut();
        flow.is_some_and(|flow| flow.wants_accesses())
    }

    /// Gives batches that are full, or all rows.
    #[cold]
    #[inline(never)]
    fn give(&mut self) -> ControlFlow<()> {
        if self.ended {
            return ControlFlow::Break(());
        }
        let given = self.give_all();
        self.ended |= given.is_break();
        given
    }

    fn give_all(&mut self) -> ControlFlow<()> {
        let none = Arc::new(StringArray::from(Vec::<&str>::new()));
        if let Some(profiler) = &mut self.profiler {
            let sink = profiler.sink();
            sink.is_full = false;
            let (harts, functions) = sink.harts();
            let names = Arc::clone(functions.array());
            for (HartId(id), hart) in harts {
                for (table, batch) in [
                    (
                        Table::Calls,
                        hart.calls.as_mut().and_then(|r| r.take(functions, &names)),
                    ),
                    (
                        Table::Traps,
                        hart.traps.as_mut().and_then(|r| r.take(&names)),
                    ),
                ] {
                    if let Some(batch) = batch {
                        self.out.batch(table, id, batch)?;
                    }
                }
            }
        }
        let Some(flow) = &mut self.flow else {
            return ControlFlow::Continue(());
        };
        flow.is_full = false;
        for (HartId(id), hart) in flow.harts() {
            for (table, batch) in [
                (Table::Runs, hart.runs.as_mut().and_then(|r| r.take(&none))),
                (
                    Table::Accesses,
                    hart.accesses.as_mut().and_then(|r| r.take(&none)),
                ),
                (Table::Gaps, hart.gaps.as_mut().and_then(|r| r.take(&none))),
            ] {
                if let Some(batch) = batch {
                    self.out.batch(table, id, batch)?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn give_rest(&mut self) {
        // There is nothing more to break off.
        let _ = self.give();
    }

    /// Whether to go on, after rows were made.
    #[inline]
    fn flow(&mut self) -> ControlFlow<()> {
        let full = self.flow.as_ref().is_some_and(|flow| flow.is_full);
        let full = full
            || match &mut self.profiler {
                Some(profiler) => profiler.sink().is_full,
                None => false,
            };
        match full || self.ended {
            true => self.give(),
            false => ControlFlow::Continue(()),
        }
    }

    /// A stretch ends at a position: what its rows have in common.
    fn sync(&mut self, position: u64) -> Vec<crate::zone::Zone> {
        if !self.ended {
            self.ended = match self.out.sync() {
                ControlFlow::Break(()) => true,
                ControlFlow::Continue(false) => false,
                ControlFlow::Continue(true) => self.give().is_break() || self.out.cut().is_break(),
            };
        }
        let zones = self.take_zones();
        if let Some(flow) = &mut self.flow {
            flow.position = position;
        }
        zones
    }

    fn take_zones(&mut self) -> Vec<crate::zone::Zone> {
        let mut zones = Vec::new();
        if let Some(profiler) = &mut self.profiler {
            zones.extend(profiler.sink().take_zones());
        }
        if let Some(flow) = &mut self.flow {
            zones.extend(flow.take_zones());
        }
        zones
    }

    /// The trace ends.
    fn finish(mut self) -> (Option<Profile>, Vec<crate::zone::Zone>, Vec<String>) {
        if let Some(flow) = &mut self.flow {
            flow.finish();
        }
        let Some(mut profiler) = self.profiler.take() else {
            self.give_rest();
            let zones = self.take_zones();
            return (None, zones, Vec::new());
        };
        let ids: Vec<HartId> = profiler.harts();
        let ends: Vec<(HartId, Moment)> = ids
            .into_iter()
            .map(|id| (id, profiler.moment(id)))
            .collect();
        let (profile, mut sink) = profiler.finish();
        sink.finish(&ends);
        let names = Arc::clone(sink.names.array());
        let (harts, functions) = sink.harts();
        for (HartId(id), hart) in harts {
            for (table, batch) in [
                (
                    Table::Calls,
                    hart.calls.as_mut().and_then(|r| r.take(functions, &names)),
                ),
                (
                    Table::Traps,
                    hart.traps.as_mut().and_then(|r| r.take(&names)),
                ),
            ] {
                if let Some(batch) = batch.filter(|_| !self.ended) {
                    self.ended |= self.out.batch(table, id, batch).is_break();
                }
            }
        }
        self.give_rest();
        let mut zones = sink.take_zones();
        zones.extend(self.take_zones());
        (Some(profile), zones, sink.names.all().to_vec())
    }
}

impl Consumer for Collector<'_, '_> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        if let Some(flow) = &mut self.flow {
            match (&mut self.profiler, event) {
                (Some(_), Event::Run(_)) if self.counts => {}
                (Some(profiler), event) if self.counts => {
                    if !matches!(event, Event::Time(_)) {
                        flow.set_executed(hart, profiler.executed(hart));
                    }
                    flow.event(hart, event);
                }
                _ => flow.event(hart, event),
            }
        }
        if let Some(profiler) = &mut self.profiler {
            let _ = profiler.event(hart, event);
        }
        self.flow()
    }

    fn runs(&mut self, hart: HartId, runs: &[Run]) -> ControlFlow<()> {
        if let Some(flow) = self.flow.as_mut().filter(|_| !self.counts) {
            flow.runs(hart, runs);
        }
        if let Some(profiler) = &mut self.profiler {
            let _ = profiler.runs(hart, runs);
        }
        self.flow()
    }

    fn timed_runs(&mut self, hart: HartId, runs: &[(u64, Run)]) -> ControlFlow<()> {
        if let Some(flow) = &mut self.flow {
            match self.counts {
                true => flow.pass_times(hart, runs),
                false => flow.timed_runs(hart, runs),
            }
        }
        if let Some(profiler) = &mut self.profiler {
            let _ = profiler.timed_runs(hart, runs);
        }
        self.flow()
    }

    fn kept_runs(&mut self, hart: HartId, kept: Kept, runs: &[Run]) -> ControlFlow<()> {
        if let Some(flow) = self.flow.as_mut().filter(|_| !self.counts) {
            flow.runs(hart, runs);
        }
        if let Some(profiler) = &mut self.profiler {
            let _ = profiler.kept_runs(hart, kept, runs);
        }
        self.flow()
    }

    fn accesses(&mut self, hart: HartId, accesses: &[DataAccess]) -> ControlFlow<()> {
        if self.wants_accesses() {
            for access in accesses {
                self.event(hart, &Event::Access(*access))?;
            }
        }
        ControlFlow::Continue(())
    }
}
