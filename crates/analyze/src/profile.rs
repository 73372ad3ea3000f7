//! Exact profiles: how often every instruction was executed, on which call path,
//! and in how much time.

mod difference;
mod functions;
mod lines;
mod loops;
mod paths;
mod recording;
mod sequence;

pub use difference::FunctionChange;
pub(crate) use functions::trap_order;
pub use functions::{CallEdge, FunctionCost};
pub use lines::LineCost;
pub use loops::HotLoop;
pub use paths::{PathCosts, PathRuns};
pub use recording::Recording;
pub use sequence::{GapMark, PathSequence, PathThread, TrapMark, Visit};

use crate::calls::{CallSites, Latencies};
use crate::doubt::Doubts;
use crate::follow::Follower;
use crate::functions::{Function, FunctionId, Functions};
use crate::runs::{RunCount, add_counts};
use crate::slices::Slices;
use crate::stacks::{
    Backtrace, CallTree, Cost, Grouping, Moment, NodeId, Passed, SavedSink, StackSink,
};
use hartrace_flow::{Consumer, Event, HartId, Image, Kept, PerHart, Run, SpaceId, TiedRuns};
use hartrace_flow::{Packer, Unpacker};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Makes a [`Profile`] of the events of a trace.
///
/// Times come from [`Event::Time`] before and after each run, so a trace with
/// timestamps now and then is passed through
/// [`Interpolate`](hartrace_flow::Interpolate) first.
#[derive(Debug)]
pub struct Profiler<'a, S = ()> {
    follower: Follower<'a, S>,
    slices: Slices,
    clocks: PerHart<Clock>,
    timed: bool,
}

/// The time of a hart, and the run that waits for the next.
#[derive(Debug, Default)]
struct Clock {
    since: Option<u64>,
    held: Option<Run>,
}

impl<'a, S: StackSink> Profiler<'a, S> {
    /// A profiler for code of `image` with these functions. `sink` gets every call.
    pub fn new(image: &'a Image, functions: Functions, grouping: Grouping, sink: S) -> Self {
        Profiler {
            follower: Follower::new(image, functions, grouping, sink),
            slices: Slices::default(),
            clocks: PerHart::default(),
            timed: false,
        }
    }

    /// What a hart has called and what has interrupted it, and has not returned: the
    /// innermost `limit` of that, and perhaps some more.
    pub fn backtrace(&mut self, id: HartId, limit: usize) -> Backtrace {
        let clock = self.clocks.of(id);
        if clock.held.is_some() {
            let since = clock.since;
            self.flush(id, since);
        }
        self.follower.stacks.innermost(id, limit)
    }

    /// What takes calls.
    pub fn sink(&mut self) -> &mut S {
        self.follower.sink()
    }

    /// The harts that have executed something.
    pub fn harts(&self) -> Vec<HartId> {
        self.follower.stacks.ids()
    }

    /// Where a hart is in what it executed.
    pub fn moment(&mut self, id: HartId) -> Moment {
        self.follower.stacks.moment(id)
    }

    /// Instructions of a hart so far, with those of a run that waits for its time.
    pub fn executed(&mut self, id: HartId) -> u64 {
        let held = self.clocks.of(id).held.map_or(0, |run| run.insns);
        self.moment(id).insn + u64::from(held)
    }

    /// No more events.
    pub fn finish(mut self) -> (Profile, S) {
        let held: Vec<(HartId, Run)> = self
            .clocks
            .iter_mut()
            .filter_map(|(id, clock)| Some((id, clock.held.take()?)))
            .collect();
        for (id, run) in held {
            self.follower.run(id, &run, 0);
        }
        let mut followed = self.follower.finish();
        self.slices.settle(&mut followed.runs);
        let profile = Profile {
            functions: followed.functions,
            tree: followed.tree,
            runs: followed.runs.into_counts(),
            timed: self.timed,
            doubts: followed.doubts,
        };
        (profile, followed.sink)
    }

    #[inline(never)]
    fn flush(&mut self, id: HartId, until: Option<u64>) {
        let clock = self.clocks.of(id);
        let since = std::mem::replace(&mut clock.since, until);
        if let Some(run) = clock.held.take() {
            let time = since
                .zip(until)
                .map(|(since, until)| until.saturating_sub(since));
            self.follower.run(id, &run, time.unwrap_or(0));
        }
        self.follower.stacks.clock(id, until);
    }

    /// A run, which waits for its time if the trace has times.
    #[inline]
    fn take(&mut self, id: HartId, run: &Run) {
        if !self.timed {
            return self.follower.run(id, run, 0);
        }
        if self.clocks.of(id).held.is_some() {
            // Without a time between the two, neither has one.
            self.flush(id, None);
        }
        self.clocks.of(id).held = Some(*run);
    }
}

impl<S: StackSink> Consumer for Profiler<'_, S> {
    fn event(&mut self, id: HartId, event: &Event) -> ControlFlow<()> {
        match event {
            Event::Run(run) => self.take(id, run),
            Event::Time(time) => {
                self.timed = true;
                self.flush(id, Some(*time));
            }
            Event::Gap(_) => {
                self.flush(id, None);
                self.follower.event(id, event);
            }
            event => {
                let since = self.clocks.of(id).since;
                if self.clocks.of(id).held.is_some() {
                    self.flush(id, since);
                }
                self.follower.event(id, event);
            }
        }
        ControlFlow::Continue(())
    }

    #[inline]
    fn runs(&mut self, id: HartId, runs: &[Run]) -> ControlFlow<()> {
        for run in runs {
            self.take(id, run);
        }
        ControlFlow::Continue(())
    }

    /// Every run but the last is known to take until the next.
    fn timed_runs(&mut self, id: HartId, runs: &[(u64, Run)]) -> ControlFlow<()> {
        let (Some((first, _)), Some((since, last))) = (runs.first(), runs.last()) else {
            return ControlFlow::Continue(());
        };
        self.timed = true;
        self.flush(id, Some(*first));
        for ((since, run), (until, _)) in runs.iter().zip(runs.iter().skip(1)) {
            self.follower.run(id, run, until.saturating_sub(*since));
            self.follower.stacks.clock(id, Some(*until));
        }
        *self.clocks.of(id) = Clock {
            since: Some(*since),
            held: Some(*last),
        };
        ControlFlow::Continue(())
    }

    #[inline]
    fn kept_runs(&mut self, id: HartId, kept: Kept, runs: &[Run]) -> ControlFlow<()> {
        if self.timed || S::RUNS || self.follower.functions.is_shared() {
            return self.runs(id, runs);
        }
        let at = match self.slices.find(kept) {
            Some(at) => at,
            None => {
                let space = self.follower.space(id);
                let Follower {
                    runs: table,
                    functions,
                    ..
                } = &mut self.follower;
                let at = self.slices.examine(kept, runs, (space, table, functions));
                if let Some(first) = runs.first() {
                    self.follower.check_case(id, first.start);
                }
                at
            }
        };
        let Some((slice, parts)) = self.slices.get_mut(at).filter(|(s, _)| !s.divided) else {
            return self.runs(id, runs);
        };
        slice.count += 1;
        for part in parts {
            let Some(last) = runs.get(usize::from(part.last)) else {
                break;
            };
            let passed = Passed {
                start: part.start,
                insns: part.insns,
                function: part.function,
                time: 0,
                last,
                // Only for sinks of runs, which do not get slices.
                space: SpaceId::FIRST,
            };
            self.follower.pass(id, &passed);
        }
        ControlFlow::Continue(())
    }

    /// Accesses do not matter.
    fn tied_runs(&mut self, id: HartId, tied: &TiedRuns<'_>) -> ControlFlow<()> {
        self.kept_runs(id, tied.kept(), tied.runs())
    }

    fn looks_at_values(&self) -> bool {
        false
    }

    fn keeps(&self) -> bool {
        !S::RUNS && !self.follower.functions.is_shared()
    }
}

/// What takes calls can go on in the middle of a trace, from where the state was saved.
impl<S: SavedSink> Profiler<'_, S> {
    /// The state after all events so far; `None` if stacks are too deep, or a run waits
    /// for its time.
    pub fn save(&mut self) -> Option<Vec<u8>> {
        if self.clocks.iter().any(|(_, clock)| clock.held.is_some()) {
            return None;
        }
        let mut out = Packer::new();
        self.follower.sink().save(&mut out);
        let Follower {
            stacks, functions, ..
        } = &self.follower;
        stacks.save(functions, &mut out)?;
        Some(out.finish())
    }

    /// Goes on from a state; the harts and their times, or `None` if it cannot be read.
    /// What was counted before is not known: what the sink gets is right, the profile is not.
    pub fn restore(&mut self, saved: &[u8]) -> Option<Vec<(HartId, Option<u64>)>> {
        let mut saved = Unpacker::new(saved);
        self.follower.sink().restore(&mut saved)?;
        let restored = self.follower.restore(&mut saved)?;
        for (id, time) in &restored {
            self.timed |= time.is_some();
            self.clocks.of(*id).since = *time;
        }
        Some(restored)
    }
}

/// A [`Profiler`] whose type is not known.
pub trait Profiling<S>: Consumer {
    /// No more events.
    fn finish(self: Box<Self>) -> (Profile, S);
}

impl<S: StackSink> Profiling<S> for Profiler<'_, S> {
    fn finish(self: Box<Self>) -> (Profile, S) {
        Profiler::finish(*self)
    }
}

/// What takes calls one by one while a profile is made. The profiler for each is
/// compiled here, whoever uses it.
pub trait CallSink: StackSink + Sized {
    /// A profiler with this sink.
    fn profiler<'a>(
        self,
        image: &'a Image,
        functions: Functions,
        grouping: Grouping,
    ) -> Box<dyn Profiling<Self> + 'a>;
}

macro_rules! call_sinks {
    ($($sink:ty),+) => {$(
        impl CallSink for $sink {
            fn profiler<'a>(
                self,
                image: &'a Image,
                functions: Functions,
                grouping: Grouping,
            ) -> Box<dyn Profiling<$sink> + 'a> {
                Box::new(Profiler::new(image, functions, grouping, self))
            }
        }
    )+};
}

call_sinks!((), CallSites, Latencies, Recording);

/// What was executed, how often, on which call paths, and in how much time.
#[derive(Clone, Debug)]
pub struct Profile {
    /// The functions of the program.
    pub functions: Functions,
    /// Every call path.
    pub tree: CallTree,
    /// Every run, in the order of the code.
    pub runs: Vec<RunCount>,
    /// Whether the trace has times.
    pub timed: bool,
    /// Jumps that contradict the call stack for no known reason.
    pub doubts: Doubts,
}

/// What each instruction cost, by space and address: how often it was executed, and its
/// share of the time.
pub type InsnCosts = BTreeMap<(SpaceId, u64), Cost>;

/// The ids in a profile of what was added to it.
#[derive(Clone, Debug)]
pub struct Added {
    /// For each function of the other profile: those without symbols may have been found
    /// in another order.
    pub functions: Vec<FunctionId>,
    /// For each call path.
    pub nodes: Vec<NodeId>,
}

impl Profile {
    /// Adds a profile of the same programs.
    pub fn add(&mut self, other: &Profile) -> Added {
        add_counts(&mut self.runs, &other.runs);
        let mut here = |(id, function): (FunctionId, &Function)| {
            let same = self.functions.find(id).filter(|known| *known == function);
            match same.map_or_else(|| self.functions.of(function.start), |_| Some(id)) {
                Some(id) => id,
                None => self.functions.unnamed(function.start),
            }
        };
        let ids: Vec<FunctionId> = other.functions.iter().map(&mut here).collect();
        let mut tree = other.tree.clone();
        tree.rename(|id| ids.get(id.index()).copied().unwrap_or(id));
        let nodes = self.tree.add(&tree);
        self.timed |= other.timed;
        self.doubts.append(&other.doubts);
        Added {
            functions: ids,
            nodes,
        }
    }

    /// What everything cost.
    #[must_use]
    pub fn total(&self) -> Cost {
        let mut total = Cost::default();
        self.runs.iter().for_each(|run| total.add(run.cost()));
        total
    }

    /// What each executed instruction cost. The time of a run
    /// is shared out equally among its instructions.
    #[must_use]
    pub fn instructions(&self, image: &Image) -> InsnCosts {
        let mut all = InsnCosts::new();
        for RunCount {
            run,
            space,
            count,
            time,
            ..
        } in &self.runs
        {
            let insns = u64::from(run.insns);
            let share =
                |done: u64| (u128::from(*time) * u128::from(done) / u128::from(insns)) as u64;
            for (done, (pc, _)) in (0u64..).zip(image.insns(*space, run.start, insns)) {
                let cost = all.entry((*space, pc)).or_default();
                cost.insns += count;
                cost.time += share(done + 1) - share(done);
            }
        }
        all
    }
}
