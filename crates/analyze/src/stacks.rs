//! Call stacks: which function called which, followed from run to run.
//!
//! A trace reports jumps, not stacks, and real programs do more than call and
//! return. [`Stacks`] follows them by these rules:
//!
//! * A call pushes a frame, a return pops the one that returns to its target. If
//!   that is not the innermost one, those inside it are left too.
//! * Code of another function without a call is a tail call: the function takes the
//!   place of the innermost one.
//! * A return or an indirect jump into a function further out, to a place where no
//!   call returns to, leaves everything inside it: `longjmp`, an exception.
//! * A trap starts a track of its own, which ends with the return from the trap.
//!   What was interrupted does not get its cost.
//! * A return, or a return from a trap, that contradicts the stack is compared with
//!   the stacks that were suspended earlier: a scheduler has switched threads. If
//!   none fits, a new thread starts. Where the trace reports contexts, each has a
//!   stack.
//! * A return out of the outermost frame shows its caller, which is then *inferred*:
//!   the trace started inside a call. After a gap the stack is kept down to the
//!   function in which the trace continues.

mod backtrace;
mod contexts;
mod hart;
mod returns;
mod saved;
mod sink;
mod thread;
mod traps;
mod tree;

pub use backtrace::{Backtrace, Outer};
pub use sink::{
    Entered, Entry, Grouping, How, Left, Moment, Odd, OddJump, Ran, SavedSink, StackSink, Switched,
};
pub use thread::OpenCall;
pub use tree::{CallTree, Cost, Measure, Node, NodeId, What};

use crate::functions::{FunctionId, Functions};
use hart::{Arrived, Hart, UNSETTLED};
use hartrace_flow::{Event, Exit, HartId, Mark, PerHart, Run, SpaceId};
use thread::Arrival;

/// Code that belongs to no function with a symbol, in place of a function.
pub(crate) const UNNAMED: u32 = u32::MAX;

/// Frames in one thread at most.
const MAX_FRAMES: usize = 1 << 20;

/// Traps inside traps at most.
const MAX_SEGMENTS: usize = 1 << 10;

/// Odd jumps that wait to be taken.
const MAX_ODD: usize = 64;

/// Callers that may be found below the start of a trace.
const MAX_FOUND: u32 = 1 << 10;

/// Runs one after the other in one function, of which only the last may call or
/// return.
pub(crate) struct Passed<'a> {
    /// Where they start.
    pub(crate) start: u64,
    /// Instructions in all of them.
    pub(crate) insns: u32,
    /// The function they are in, or [`UNNAMED`].
    pub(crate) function: u32,
    /// The time they took.
    pub(crate) time: u64,
    /// The last of them.
    pub(crate) last: &'a Run,
    /// The code they are of.
    pub(crate) space: SpaceId,
}

impl<'a> Passed<'a> {
    /// A single run.
    #[inline]
    pub(crate) const fn of(run: &'a Run, space: SpaceId, function: u32, time: u64) -> Passed<'a> {
        Passed {
            start: run.start,
            insns: run.insns,
            function,
            time,
            last: run,
            space,
        }
    }
}

/// Follows the call stacks of all harts, and adds up what call paths cost. A
/// [`Profiler`](crate::Profiler) feeds it the events of a trace.
#[derive(Clone, Debug, Default)]
pub struct Stacks<S> {
    tree: CallTree,
    harts: PerHart<Hart>,
    grouping: Grouping,
    /// Odd jumps that were not taken yet.
    odd: Vec<(HartId, OddJump)>,
    sink: S,
}

impl<S: StackSink> Stacks<S> {
    /// No stacks yet.
    pub fn new(grouping: Grouping, sink: S) -> Stacks<S> {
        Stacks {
            tree: CallTree::new(),
            harts: PerHart::default(),
            grouping,
            odd: Vec::new(),
            sink,
        }
    }

    /// Whether there are odd jumps to be taken.
    #[inline]
    pub(crate) fn is_odd(&self) -> bool {
        !self.odd.is_empty()
    }

    /// The odd jumps since the last time. Those marked doubtful contradict a stack
    /// that is known for certain; the code is not considered.
    pub(crate) fn take_odd(&mut self) -> Vec<(HartId, OddJump)> {
        std::mem::take(&mut self.odd)
    }

    /// The indirect jump that a hart has just made, if it was one.
    pub(crate) fn jumped_from(&mut self, id: HartId) -> Option<u64> {
        let hart = self.harts.of(id);
        (hart.last == Exit::IndirectJump).then_some(hart.site)
    }

    /// An indirect jump that fits no case.
    pub(crate) fn no_case(&mut self, id: HartId, (from, to): (u64, u64)) -> OddJump {
        let hart = self.harts.of(id);
        OddJump {
            odd: Odd::NoCase,
            from,
            to,
            at: hart.done,
            since: std::mem::replace(&mut hart.agreed, hart.done),
            doubtful: true,
        }
    }

    fn odd(&mut self, id: HartId, odd: Odd, (from, to): (u64, u64), doubtful: bool) {
        let hart = self.harts.of(id);
        let jump = OddJump {
            odd,
            from,
            to,
            at: hart.done,
            since: std::mem::replace(&mut hart.agreed, hart.done),
            doubtful,
        };
        // A caller that takes none has no use for them.
        if self.odd.len() < MAX_ODD {
            self.odd.push((id, jump));
        }
    }

    /// The time of a hart, or that it is not known.
    #[inline]
    pub(crate) fn clock(&mut self, id: HartId, now: Option<u64>) {
        if S::TIMES {
            let hart = self.harts.of(id);
            let before = hart.moment();
            hart.now = now;
            match (before.time, now) {
                (None, Some(_)) => self.sink.timed(id, hart.moment()),
                (Some(_), None) => self.sink.timed(id, before),
                _ => {}
            }
        }
    }

    /// All harts.
    pub(crate) fn ids(&self) -> Vec<HartId> {
        self.harts.iter().map(|(id, _)| id).collect()
    }

    /// Where a hart is in what it executed.
    pub(crate) fn moment(&mut self, id: HartId) -> Moment {
        self.harts.of(id).moment()
    }

    /// What takes what happens.
    pub fn sink(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Calls of a hart that will not have returned when its next run starts, those on
    /// other tracks included.
    pub fn depth(&mut self, hart: HartId) -> usize {
        let hart = self.harts.of(hart);
        let enters = matches!(
            hart.arrival,
            Arrival::Start | Arrival::Call { .. } | Arrival::Caller
        );
        hart.thread.frames.len() + usize::from(enters && hart.expected == UNSETTLED)
    }

    /// What a hart has called and what has interrupted it, and has not returned.
    pub fn backtrace(&mut self, hart: HartId) -> Backtrace {
        Backtrace::of(self.harts.of(hart), usize::MAX)
    }

    /// The innermost `limit` of these, and perhaps some more.
    pub(crate) fn innermost(&mut self, hart: HartId, limit: usize) -> Backtrace {
        Backtrace::of(self.harts.of(hart), limit)
    }

    /// No more events: the tree of all call paths, and the sink.
    pub fn finish(mut self) -> (CallTree, S) {
        for (id, hart) in self.harts.iter_mut() {
            hart.settle(&mut self.tree);
            hart.leave_to(0, How::Lost, id, &mut self.sink);
        }
        let new = self.tree.merge(&[]);
        self.sink.merged(&new);
        (self.tree, self.sink)
    }

    /// Runs of a hart in one function.
    #[inline(always)]
    pub(crate) fn run(&mut self, id: HartId, passed: &Passed<'_>, functions: &mut Functions) {
        let mut hart = self.harts.of(id);
        if passed.function != hart.expected {
            if !self.call_again(id, passed.start) {
                self.arrive(id, passed.start, passed.function, functions);
            }
            hart = self.harts.of(id);
        }
        let run = passed.last;
        if S::RUNS {
            let ran = Ran {
                node: hart.node,
                thread: (hart.thread.number, hart.thread.context),
                space: passed.space,
                run,
                time: passed.time,
                at: hart.moment(),
            };
            self.sink.ran(id, &ran);
        }
        hart.cost.insns += u64::from(passed.insns);
        hart.done += u64::from(passed.insns);
        hart.cost.time += passed.time;
        if S::TIMES {
            hart.now = hart.now.map(|now| now + passed.time);
        }
        hart.last = run.exit;
        match run.exit {
            Exit::DirectCall | Exit::IndirectCall => hart.call(run),
            Exit::Return => self.returned(id, run),
            Exit::IndirectJump => hart.site = run.source(),
            Exit::Stop => hart.stopped = Some(*run),
            Exit::Swap => self.swap(id, run),
            Exit::TrapReturn => self.resume(id, run.next),
            _ => {}
        }
    }

    /// The run that follows starts the function that the innermost frame called last
    /// time too: nothing is looked up. `false`, and nothing happens, if it does not.
    #[inline]
    fn call_again(&mut self, id: HartId, pc: u64) -> bool {
        let hart = self.harts.of(id);
        let Arrival::Call { ret, site } = hart.arrival else {
            return false;
        };
        let known = if self.grouping.sites { site } else { 0 };
        let Some(callee) = self.tree.callee(hart.caller(), pc, known) else {
            return false;
        };
        if hart.thread.frames.len() >= MAX_FRAMES {
            return false;
        }
        hart.arrival = Arrival::Jump;
        hart.enter(
            &callee,
            Some((ret, site)),
            &mut self.tree,
            (true, S::NESTING),
        );
        let entered = Entered {
            function: callee.function,
            node: callee.node,
            site,
            by: Entry::Call,
            whole: true,
            at: hart.moment(),
        };
        self.sink.entered(id, &entered);
        true
    }

    /// One event of a hart other than a run.
    pub fn event(&mut self, id: HartId, event: &Event) {
        match event {
            Event::Trap(trap) => self.trap(id, trap),
            Event::Context(owner) => self.own(id, owner),
            Event::Mark(Mark::Reset) => {
                let hart = self.harts.of(id);
                hart.settle(&mut self.tree);
                hart.abandon(id, &mut self.sink);
                for thread in &hart.suspended {
                    self.sink.ended(id, thread.number, hart.moment());
                }
                *hart = Hart {
                    mode: hart.mode,
                    context: hart.context,
                    done: hart.done,
                    agreed: hart.done,
                    now: hart.now,
                    started: hart.started,
                    gaps: hart.gaps,
                    ..Hart::default()
                };
            }
            Event::Gap(_) | Event::Mark(Mark::On | Mark::Off) => {
                let hart = self.harts.of(id);
                let gap = match event {
                    Event::Gap(gap) => Some(gap),
                    _ => None,
                };
                self.sink.gap(id, gap, hart.moment());
                hart.gaps = hart.gaps.wrapping_add(1);
                if !matches!(hart.arrival, Arrival::Start) || hart.expected != UNSETTLED {
                    hart.await_run(Arrival::Gap);
                }
            }
            _ => {}
        }
    }

    /// The run that follows is not in the expected function, or there is none.
    #[inline(never)]
    fn arrive(&mut self, id: HartId, pc: u64, code: u32, functions: &mut Functions) {
        if self.tree.is_large() {
            self.merge();
        }
        let hart = self.harts.of(id);
        let is_new = hart.thread.segments.is_empty();
        let function = match code {
            UNNAMED => {
                self.sink.unnamed(pc);
                functions.unnamed(pc)
            }
            id => FunctionId(id),
        };
        let arrival = std::mem::replace(&mut hart.arrival, Arrival::Jump);
        let is_entry = functions.get(function).start == pc;
        let at = Arrived {
            function,
            pc,
            code,
            is_entry,
        };
        match arrival {
            Arrival::Start if is_new => self.start(id, at, true),
            Arrival::Start => self.enter_track(id, at),
            Arrival::Call { ret, site } => self.enter(id, at, Some((ret, site))),
            Arrival::Jump => self.jumped(id, at),
            Arrival::Caller => self.found_caller(id, at),
            Arrival::Contradiction => self.contradicted(id, at),
            Arrival::Resumed => self.resumed_elsewhere(id, at),
            Arrival::Gap => self.after_gap(id, at),
        }
        self.harts.of(id).expected = code;
    }

    /// A thread begins here; `unsure` if it may be the one before.
    fn start(&mut self, id: HartId, at: Arrived, unsure: bool) {
        let track = self.track(id, NodeId::ROOT);
        let hart = self.harts.of(id);
        hart.begin(&mut self.tree, track);
        hart.announce(unsure, id, &mut self.sink);
        self.push(id, at, None, Entry::Start, at.is_entry);
    }

    /// The first run of a segment.
    fn enter_track(&mut self, id: HartId, at: Arrived) {
        let base = self.harts.of(id).thread.segments.last().map(|s| s.base);
        let track = base.map(|base| self.track(id, base));
        let hart = self.harts.of(id);
        if let (Some(segment), Some(track)) = (hart.thread.segments.last_mut(), track) {
            segment.base = match segment.trap {
                Some(_) => track,
                None => self.tree.unknown(track),
            };
        }
        // A trap is an entry wherever it goes: handlers share tables of jumps.
        let is_trap = hart
            .thread
            .segments
            .last()
            .is_some_and(|s| s.trap.is_some());
        self.push(id, at, None, Entry::Start, at.is_entry || is_trap);
    }

    /// A call.
    fn enter(&mut self, id: HartId, at: Arrived, call: Option<(u64, u64)>) {
        let hart = self.harts.of(id);
        if hart.thread.frames.len() >= MAX_FRAMES {
            hart.abandon(id, &mut self.sink);
        }
        if hart.thread.segments.is_empty() {
            return self.start(id, at, true);
        }
        if hart.last == Exit::IndirectCall && !at.is_entry {
            let site = call.map_or(0, |(_, site)| site);
            self.odd(id, Odd::Inside, (site, at.pc), true);
        }
        self.push(id, at, call, Entry::Call, true);
    }

    /// Enters a function; `counts` if its first instruction is the next.
    fn push(&mut self, id: HartId, at: Arrived, call: Option<(u64, u64)>, by: Entry, counts: bool) {
        let hart = self.harts.of(id);
        let tree = (&mut self.tree, self.grouping.sites);
        let node = hart.push(at, call, tree, (counts, S::NESTING));
        let entered = Entered {
            function: at.function,
            node,
            site: call.map_or(0, |(_, site)| site),
            by,
            whole: counts,
            at: hart.moment(),
        };
        self.sink.entered(id, &entered);
    }

    /// Code of another function without a call.
    fn jumped(&mut self, id: HartId, at: Arrived) {
        if self.graft(id, at.function) {
            return;
        }
        let hart = self.harts.of(id);
        let indirect = matches!(hart.last, Exit::IndirectJump | Exit::OtherIndirect);
        if indirect && !at.is_entry {
            let doubtful = hart.last == Exit::IndirectJump;
            let from = if doubtful { hart.site } else { 0 };
            if let Some(outer) = hart.thread.running(at.function) {
                self.unwind(id, outer, (from, at.pc), doubtful);
                return;
            }
            if doubtful {
                self.odd(id, Odd::Inside, (from, at.pc), true);
            }
        }
        let hart = self.harts.of(id);
        let Some(top) = hart.thread.top().copied() else {
            return self.enter_track(id, at);
        };
        let call = top.ret.map(|ret| (ret, top.site));
        let last = hart.thread.frames.len() - 1;
        hart.leave_to(last, How::TailCall, id, &mut self.sink);
        self.push(id, at, call, Entry::TailCall, at.is_entry);
    }

    fn new_thread(&mut self, id: HartId, at: Arrived, (from, certain): (u64, bool)) {
        let hart = self.harts.of(id);
        hart.settle(&mut self.tree);
        hart.park();
        hart.suspend(id, &mut self.sink);
        self.start(id, at, false);
        self.odd(id, Odd::Started, (from, at.pc), certain);
    }

    /// The trace continues after a gap.
    fn after_gap(&mut self, id: HartId, at: Arrived) {
        let hart = self.harts.of(id);
        hart.settle(&mut self.tree);
        let frames = hart.thread.frames.iter();
        let known = frames.rev().position(|f| f.function == at.function);
        let Some(back) = known else {
            hart.park();
            hart.suspend(id, &mut self.sink);
            return self.start(id, at, true);
        };
        let keep = hart.thread.frames.len() - back;
        while hart.thread.segments.last().is_some_and(|s| s.first >= keep) {
            hart.leave_to(
                hart.thread.segments.last().map_or(0, |s| s.first),
                How::Lost,
                id,
                &mut self.sink,
            );
            if hart.thread.segments.len() > 1 {
                self.sink.resumed(id, How::Lost, hart.moment());
            }
            hart.thread.segments.pop();
            hart.unpark();
        }
        hart.leave_to(keep, How::Lost, id, &mut self.sink);
        hart.turn(&mut self.tree);
        if let Some(node) = self.tree.node_mut(hart.node) {
            node.inferred = true;
        }
    }

    /// The track of a hart, its context and its mode, where they are told apart.
    fn track(&mut self, id: HartId, trap: NodeId) -> NodeId {
        let hart = self.harts.of(id);
        let (mode, context) = (hart.mode, hart.context);
        let mut node = NodeId::ROOT;
        if self.grouping.harts {
            node = self.tree.child(node, What::Hart(id));
        }
        if self.grouping.contexts {
            node = self.tree.child(node, What::Context(context));
        }
        if self.grouping.modes {
            node = self.tree.child(node, What::Mode(mode));
        }
        match self.tree.node(trap).map(|node| node.what) {
            Some(what @ What::Trap(_)) => self.tree.child(node, what),
            _ => node,
        }
    }

    /// Merges equal paths, for which threads get new nodes.
    #[cold]
    fn merge(&mut self) {
        let mut keep = Vec::new();
        for (_, hart) in self.harts.iter_mut() {
            hart.settle(&mut self.tree);
            keep.extend(
                hart.threads()
                    .flat_map(|t| t.segments.iter().map(|s| s.base)),
            );
        }
        let new = self.tree.merge(&keep);
        self.sink.merged(&new);
        let renew = |id: &mut NodeId| *id = new.get(id.index()).copied().unwrap_or(NodeId::ROOT);
        for (_, hart) in self.harts.iter_mut() {
            renew(&mut hart.node);
            for thread in hart.threads_mut() {
                thread.segments.iter_mut().for_each(|s| renew(&mut s.base));
                for frame in &mut thread.frames {
                    renew(&mut frame.node);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
