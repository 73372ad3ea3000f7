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

mod thread;
mod tree;

pub use tree::{CallTree, Cost, Node, NodeId, What};

use crate::functions::{FunctionId, Functions};
use hartrace_flow::{Context, Event, Exit, HartId, Mark, Mode, Ownership, PerHart, Run, Trap};
use thread::{Frame, Segment, Thread, Trapped};
use tree::MAX_DEPTH;

/// Code that belongs to no function with a symbol, in place of a function.
pub(crate) const UNNAMED: u32 = u32::MAX;

/// What no run has: the next one is looked at in any case.
const UNSETTLED: u32 = u32::MAX - 1;

/// Frames in one thread at most.
const MAX_FRAMES: usize = 1 << 20;

/// Traps inside traps at most.
const MAX_SEGMENTS: usize = 1 << 10;

/// Threads that are kept per hart; the one that did not run for longest goes.
const MAX_THREADS: usize = 256;

/// Callers that may be found below the start of a trace.
const MAX_FOUND: u32 = 1 << 10;

/// Tells apart what [`Stacks`] would otherwise add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grouping {
    /// By hart.
    pub harts: bool,
    /// By context.
    pub contexts: bool,
    /// By privilege mode.
    pub modes: bool,
}

/// A call that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// The function that was called.
    pub function: FunctionId,
    /// Its node.
    pub node: NodeId,
    /// The instruction that called it; 0 if the call was not seen.
    pub site: u64,
    /// What it cost from the call to the return, with everything it called and
    /// without traps and other threads.
    pub cost: Cost,
    /// How it ended.
    pub how: How,
    /// The trace has all of it: its call was seen and nothing since is missing.
    pub whole: bool,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// It returned.
    Returned,
    /// It called another function in its place.
    TailCall,
    /// It was left for a function further out.
    Unwound,
    /// Where it ended is not known: the trace has a gap, or ends.
    Lost,
}

/// A jump that contradicts the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Odd {
    /// Frames were left for one further out.
    Unwound,
    /// Another thread continued.
    Switched,
    /// A new thread started.
    Started,
}

/// Takes what happens to stacks.
pub trait StackSink {
    /// A call has ended.
    fn left(&mut self, hart: HartId, call: &Left) {
        let _ = (hart, call);
    }

    /// A return or a jump did not go where the stack expected it to.
    fn odd(&mut self, hart: HartId, odd: Odd, to: u64) {
        let _ = (hart, odd, to);
    }
}

/// Nothing is wanted.
impl StackSink for () {}

/// How the next run is reached, where its function is not the expected one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Arrival {
    /// Nothing is known of what came before.
    #[default]
    Start,
    /// By a jump, a branch, or from the instruction before it.
    Jump,
    /// By a call.
    Call { ret: u64, site: u64 },
    /// By a return out of the outermost frame.
    Caller,
    /// By a return that fits no frame.
    Contradiction,
    /// By a return from a trap to another place than the trap's.
    Resumed,
    /// After a gap.
    Gap,
}

#[derive(Debug)]
struct Hart {
    thread: Thread,
    /// Threads that do not run, the one that ran last at the end.
    suspended: Vec<Thread>,
    arrival: Arrival,
    /// The function of the innermost frame, [`UNNAMED`] or [`UNSETTLED`].
    expected: u32,
    /// How the run before ended.
    last: Exit,
    /// The node that costs are added to, and those that it has not got yet.
    node: NodeId,
    cost: Cost,
    settled: Cost,
    mode: Option<Mode>,
    context: Option<Context>,
}

impl Default for Hart {
    fn default() -> Hart {
        Hart {
            thread: Thread::default(),
            suspended: Vec::new(),
            arrival: Arrival::Start,
            expected: UNSETTLED,
            last: Exit::Stop,
            node: NodeId::ROOT,
            cost: Cost::default(),
            settled: Cost::default(),
            mode: None,
            context: None,
        }
    }
}

/// Follows the call stacks of all harts, and adds up what call paths cost.
///
/// Feed it every event of a trace with [`Stacks::event`], and every run with
/// [`Stacks::run`] and the function it is in.
#[derive(Debug, Default)]
pub struct Stacks<S> {
    tree: CallTree,
    harts: PerHart<Hart>,
    grouping: Grouping,
    sink: S,
}

impl<S: StackSink> Stacks<S> {
    /// No stacks yet.
    pub fn new(grouping: Grouping, sink: S) -> Stacks<S> {
        Stacks {
            tree: CallTree::new(),
            harts: PerHart::default(),
            grouping,
            sink,
        }
    }

    /// What takes what happens.
    pub fn sink(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Calls of a hart that have not returned, those on other tracks included.
    pub fn depth(&mut self, hart: HartId) -> usize {
        let hart = self.harts.of(hart);
        // A call whose first run is still to come.
        let pending = matches!(hart.arrival, Arrival::Call { .. }) && hart.expected == UNSETTLED;
        hart.thread.frames.len() + usize::from(pending)
    }

    /// No more events: the tree of all call paths, and the sink.
    pub fn finish(mut self) -> (CallTree, S) {
        for (id, hart) in self.harts.iter_mut() {
            hart.settle(&mut self.tree);
            hart.leave_to(0, How::Lost, id, &mut self.sink);
        }
        self.tree.merge(&[]);
        (self.tree, self.sink)
    }

    /// One run of a hart, in a function of `functions` or [`UNNAMED`]; it took
    /// `time`.
    #[inline]
    pub(crate) fn run(
        &mut self,
        id: HartId,
        run: &Run,
        (function, time): (u32, u64),
        functions: &mut Functions,
    ) {
        let hart = self.harts.of(id);
        if function != hart.expected {
            self.arrive(id, run.start, function, functions);
        }
        let hart = self.harts.of(id);
        hart.cost.insns += u64::from(run.insns);
        hart.cost.time += time;
        hart.last = run.exit;
        match run.exit {
            Exit::DirectCall | Exit::IndirectCall => hart.call(run),
            Exit::Return => self.returned(id, run.next),
            Exit::Swap => self.swap(id, run),
            Exit::TrapReturn => self.resume(id, run.next),
            _ => {}
        }
    }

    /// One event of a hart other than a run.
    pub fn event(&mut self, id: HartId, event: &Event) {
        match event {
            Event::Trap(trap) => self.trap(id, trap),
            Event::Context(owner) => self.own(id, owner),
            Event::Mark(Mark::Reset) => {
                let hart = self.harts.of(id);
                hart.settle(&mut self.tree);
                hart.leave_to(0, How::Lost, id, &mut self.sink);
                let (mode, context) = (hart.mode, hart.context);
                *hart = Hart {
                    mode,
                    context,
                    ..Hart::default()
                };
            }
            Event::Gap(_) | Event::Mark(Mark::On | Mark::Off) => {
                let hart = self.harts.of(id);
                if !matches!(hart.arrival, Arrival::Start) || hart.expected != UNSETTLED {
                    hart.await_run(Arrival::Gap);
                }
            }
            _ => {}
        }
    }

    fn trap(&mut self, id: HartId, trap: &Trap) {
        let hart = self.harts.of(id);
        hart.settle(&mut self.tree);
        if hart.thread.segments.len() >= MAX_SEGMENTS {
            hart.leave_to(0, How::Lost, id, &mut self.sink);
            hart.thread = Thread {
                context: hart.thread.context,
                ..Thread::default()
            };
        }
        if hart.thread.segments.is_empty() {
            // Interrupted before anything ran: there is something to return to.
            hart.begin(&mut self.tree, NodeId::ROOT);
        }
        hart.park();
        let pending = (hart.expected == UNSETTLED).then_some(hart.arrival);
        if let Some(segment) = hart.thread.segments.last_mut() {
            segment.pending = pending;
        }
        let track = What::Trap(trap.cause);
        let first = hart.thread.frames.len();
        hart.thread.segments.push(Segment {
            first,
            trap: Some(Trapped { epc: trap.epc }),
            base: self.tree.child(NodeId::ROOT, track),
            found: 0,
            cost: Cost::default(),
            pending: None,
        });
        hart.unpark();
        hart.await_run(Arrival::Start);
    }

    /// The mode and context from here on. Another context has a stack of its own; a
    /// new one starts with the stack of the last.
    fn own(&mut self, id: HartId, owner: &Ownership) {
        let hart = self.harts.of(id);
        hart.mode = owner.mode.or(hart.mode);
        let Some(context) = owner.context else {
            return;
        };
        let before = hart.context.replace(context);
        if before.is_none() {
            hart.thread.context = Some(context);
        }
        if before.is_none() || before == Some(context) {
            return;
        }
        hart.settle(&mut self.tree);
        let known = hart
            .suspended
            .iter()
            .rposition(|t| t.context == Some(context));
        let mut next = match known {
            Some(at) => hart.suspended.remove(at),
            None => hart.thread.clone(),
        };
        if known.is_none() {
            next.frames.iter_mut().for_each(|frame| frame.whole = false);
        }
        next.context = Some(context);
        hart.park();
        hart.suspend(id, &mut self.sink);
        hart.thread = next;
        hart.unpark();
        if hart.expected != UNSETTLED {
            hart.expect();
        }
    }

    /// The run that follows is not in the expected function, or there is none.
    #[cold]
    #[inline(never)]
    fn arrive(&mut self, id: HartId, pc: u64, code: u32, functions: &mut Functions) {
        if self.tree.is_large() {
            self.merge();
        }
        let hart = self.harts.of(id);
        let is_new = hart.thread.segments.is_empty();
        let function = match code {
            UNNAMED => functions.unnamed(pc),
            id => FunctionId(id),
        };
        let arrival = std::mem::replace(&mut hart.arrival, Arrival::Jump);
        let is_entry = functions.is_entry(pc);
        let at = Arrived {
            function,
            pc,
            code,
            is_entry,
        };
        match arrival {
            Arrival::Start if is_new => self.start(id, at),
            Arrival::Start => self.enter_track(id, at),
            Arrival::Call { ret, site } => self.enter(id, at, Some((ret, site))),
            Arrival::Jump => self.jumped(id, at),
            Arrival::Caller => self.found_caller(id, at),
            Arrival::Contradiction => self.contradicted(id, at),
            Arrival::Resumed => self.resumed_elsewhere(id, at),
            Arrival::Gap => self.after_gap(id, at),
        }
        let hart = self.harts.of(id);
        hart.expected = code;
    }

    /// A thread begins here.
    fn start(&mut self, id: HartId, at: Arrived) {
        let track = self.track(id, NodeId::ROOT);
        let hart = self.harts.of(id);
        hart.begin(&mut self.tree, track);
        hart.push(at, None, &mut self.tree, at.is_entry);
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
        hart.push(at, None, &mut self.tree, at.is_entry || is_trap);
    }

    /// A call.
    fn enter(&mut self, id: HartId, at: Arrived, call: Option<(u64, u64)>) {
        let hart = self.harts.of(id);
        if hart.thread.frames.len() >= MAX_FRAMES {
            hart.leave_to(0, How::Lost, id, &mut self.sink);
            hart.thread.segments.clear();
            return self.start(id, at);
        }
        if hart.thread.segments.is_empty() {
            return self.start(id, at);
        }
        hart.push(at, call, &mut self.tree, true);
    }

    /// Code of another function without a call.
    fn jumped(&mut self, id: HartId, at: Arrived) {
        let hart = self.harts.of(id);
        let indirect = matches!(hart.last, Exit::IndirectJump | Exit::OtherIndirect);
        if indirect
            && !at.is_entry
            && let Some(outer) = hart.thread.running(at.function)
        {
            self.unwind(id, outer, at.pc);
            return;
        }
        let Some(top) = hart.thread.top().copied() else {
            return self.enter_track(id, at);
        };
        let call = top.ret.map(|ret| (ret, top.site));
        let last = hart.thread.frames.len() - 1;
        hart.leave_to(last, How::TailCall, id, &mut self.sink);
        hart.push(at, call, &mut self.tree, at.is_entry);
    }

    /// Leaves everything inside a frame.
    fn unwind(&mut self, id: HartId, outer: usize, to: u64) {
        let hart = self.harts.of(id);
        hart.leave_to(outer + 1, How::Unwound, id, &mut self.sink);
        hart.expect();
        hart.turn(&mut self.tree);
        self.sink.odd(id, Odd::Unwound, to);
    }

    /// The outermost frame has returned here.
    fn found_caller(&mut self, id: HartId, at: Arrived) {
        let hart = self.harts.of(id);
        let Some(segment) = hart.thread.segments.last_mut() else {
            return self.start(id, at);
        };
        let unknown = self.tree.node(segment.base).map(|node| node.what);
        if unknown != Some(What::Unknown) {
            // A handler that was entered by a trap: what follows is part of it.
            hart.push(at, None, &mut self.tree, false);
            return;
        }
        segment.found += 1;
        if segment.found > MAX_FOUND {
            let hart = self.harts.of(id);
            hart.thread.segments.clear();
            hart.thread.frames.clear();
            return self.start(id, at);
        }
        let node = segment.base;
        segment.base = self.tree.reveal(node, at.function);
        let entered = hart.cost;
        hart.thread.frames.push(Frame {
            function: at.function,
            code: at.code,
            node,
            ret: None,
            site: 0,
            entered,
            whole: false,
        });
        hart.turn(&mut self.tree);
    }

    /// A return went where no frame returns to.
    fn contradicted(&mut self, id: HartId, at: Arrived) {
        let hart = self.harts.of(id);
        match hart.thread.running(at.function) {
            Some(outer) => self.unwind(id, outer, at.pc),
            None => self.new_thread(id, at),
        }
    }

    /// A trap returned to another place than it was taken from.
    fn resumed_elsewhere(&mut self, id: HartId, at: Arrived) {
        let hart = self.harts.of(id);
        let is_trap = hart
            .thread
            .segments
            .last()
            .is_some_and(|s| s.trap.is_some());
        let function = hart.thread.interrupted().map(|frame| frame.function);
        if is_trap && function == Some(at.function) {
            hart.end_track(id, &mut self.tree, &mut self.sink);
            return;
        }
        self.new_thread(id, at);
    }

    fn new_thread(&mut self, id: HartId, at: Arrived) {
        let hart = self.harts.of(id);
        hart.settle(&mut self.tree);
        hart.park();
        hart.suspend(id, &mut self.sink);
        self.start(id, at);
        self.sink.odd(id, Odd::Started, at.pc);
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
            return self.start(id, at);
        };
        let keep = hart.thread.frames.len() - back;
        while hart.thread.segments.last().is_some_and(|s| s.first >= keep) {
            hart.leave_to(
                hart.thread.segments.last().map_or(0, |s| s.first),
                How::Lost,
                id,
                &mut self.sink,
            );
            hart.thread.segments.pop();
            hart.unpark();
        }
        hart.leave_to(keep, How::Lost, id, &mut self.sink);
        for frame in &mut hart.thread.frames {
            frame.whole = false;
        }
        hart.turn(&mut self.tree);
        if let Some(node) = self.tree.node_mut(hart.node) {
            node.inferred = true;
        }
    }

    /// A return to an address.
    #[inline]
    fn returned(&mut self, id: HartId, next: u64) {
        let hart = self.harts.of(id);
        if hart.thread.top().is_some_and(|top| top.ret == Some(next)) {
            let last = hart.thread.frames.len() - 1;
            hart.leave_to(last, How::Returned, id, &mut self.sink);
            hart.expect();
            hart.turn(&mut self.tree);
        } else {
            self.returned_elsewhere(id, next);
        }
    }

    #[cold]
    fn returned_elsewhere(&mut self, id: HartId, next: u64) {
        let hart = self.harts.of(id);
        if let Some(at) = hart.thread.returning_to(next) {
            hart.leave_to(at + 1, How::Unwound, id, &mut self.sink);
            hart.leave_to(at, How::Returned, id, &mut self.sink);
            hart.expect();
            hart.turn(&mut self.tree);
            self.sink.odd(id, Odd::Unwound, next);
            return;
        }
        let frames = hart.thread.current();
        let outermost = frames.len() <= 1 && frames.last().is_none_or(|f| f.ret.is_none());
        if outermost {
            let first = hart.thread.segments.last().map_or(0, |s| s.first);
            hart.settle(&mut self.tree);
            hart.leave_to(first, How::Returned, id, &mut self.sink);
        }
        let threads = hart
            .suspended
            .iter()
            .rposition(|t| t.returning_to(next).is_some());
        if let Some(other) = threads {
            self.switch(id, other);
            let hart = self.harts.of(id);
            if let Some(at) = hart.thread.returning_to(next) {
                hart.leave_to(at + 1, How::Lost, id, &mut self.sink);
                hart.leave_to(at, How::Returned, id, &mut self.sink);
            }
            hart.expect();
            hart.turn(&mut self.tree);
            self.sink.odd(id, Odd::Switched, next);
            return;
        }
        hart.await_run(match outermost {
            true => Arrival::Caller,
            false => Arrival::Contradiction,
        });
    }

    /// Another thread of the hart continues.
    fn switch(&mut self, id: HartId, other: usize) {
        let hart = self.harts.of(id);
        hart.settle(&mut self.tree);
        let next = hart.suspended.remove(other);
        hart.park();
        hart.suspend(id, &mut self.sink);
        hart.thread = next;
        hart.unpark();
    }

    /// A co-routine swap: a return, if a frame returns there, and a call.
    fn swap(&mut self, id: HartId, run: &Run) {
        let hart = self.harts.of(id);
        if hart
            .thread
            .top()
            .is_some_and(|top| top.ret == Some(run.next))
        {
            self.returned(id, run.next);
        }
        self.harts.of(id).call(run);
    }

    /// A return from a trap.
    fn resume(&mut self, id: HartId, next: u64) {
        let hart = self.harts.of(id);
        let trap = hart.thread.segments.last().and_then(|s| s.trap);
        if trap.is_some_and(|trap| trap.resumes_at(next)) {
            hart.end_track(id, &mut self.tree, &mut self.sink);
            return;
        }
        if let Some(other) = hart.suspended.iter().rposition(|t| t.resumes_at(next)) {
            self.switch(id, other);
            let hart = self.harts.of(id);
            hart.end_track(id, &mut self.tree, &mut self.sink);
            self.sink.odd(id, Odd::Switched, next);
            return;
        }
        hart.await_run(Arrival::Resumed);
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
        let renew = |id: &mut NodeId| *id = new.get(id.index()).copied().unwrap_or(NodeId::ROOT);
        for (_, hart) in self.harts.iter_mut() {
            renew(&mut hart.node);
            for thread in hart.threads_mut() {
                thread.segments.iter_mut().for_each(|s| renew(&mut s.base));
                thread.frames.iter_mut().for_each(|f| renew(&mut f.node));
            }
        }
    }
}

/// Where a run is.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    function: FunctionId,
    pc: u64,
    /// As [`Stacks::run`] gets it.
    code: u32,
    /// It starts with the function.
    is_entry: bool,
}

impl Hart {
    fn threads(&self) -> impl Iterator<Item = &Thread> {
        self.suspended.iter().chain([&self.thread])
    }

    fn threads_mut(&mut self) -> impl Iterator<Item = &mut Thread> {
        self.suspended.iter_mut().chain([&mut self.thread])
    }

    /// The next run decides, whatever function it is in.
    fn await_run(&mut self, arrival: Arrival) {
        self.arrival = arrival;
        self.expected = UNSETTLED;
    }

    #[inline]
    fn call(&mut self, run: &Run) {
        // `jal ra, .+4` only reads the pc.
        if run.next != run.end {
            self.await_run(Arrival::Call {
                ret: run.end,
                site: run.source(),
            });
        }
    }

    /// The next run is expected in the innermost frame.
    #[inline]
    fn expect(&mut self) {
        match self.thread.top() {
            Some(top) => {
                self.arrival = Arrival::Jump;
                self.expected = top.code;
            }
            None => self.await_run(Arrival::Start),
        }
    }

    /// Gives the node the costs that it has not got yet.
    #[inline]
    fn settle(&mut self, tree: &mut CallTree) {
        let since = self.cost.since(self.settled);
        if let Some(node) = tree.node_mut(self.node) {
            node.own.add(since);
        }
        self.settled = self.cost;
    }

    /// From here on costs go to the innermost frame.
    #[inline]
    fn turn(&mut self, tree: &mut CallTree) {
        self.settle(tree);
        if let Some(top) = self.thread.top() {
            self.node = top.node;
        }
    }

    /// A segment is left for another one; its costs are settled.
    fn park(&mut self) {
        if let Some(segment) = self.thread.segments.last_mut() {
            segment.cost = self.cost;
        }
    }

    /// A segment continues.
    fn unpark(&mut self) {
        self.cost = self
            .thread
            .segments
            .last()
            .map_or(Cost::default(), |s| s.cost);
        self.settled = self.cost;
        if let Some(top) = self.thread.top() {
            self.node = top.node;
        }
    }

    /// The first segment of a thread that nothing is known of.
    fn begin(&mut self, tree: &mut CallTree, track: NodeId) {
        self.settle(tree);
        self.thread.segments.push(Segment {
            first: self.thread.frames.len(),
            trap: None,
            base: tree.unknown(track),
            found: 0,
            cost: Cost::default(),
            pending: None,
        });
        (self.cost, self.settled) = (Cost::default(), Cost::default());
    }

    /// Enters a function.
    #[inline]
    fn push(&mut self, at: Arrived, call: Option<(u64, u64)>, tree: &mut CallTree, counts: bool) {
        let segment = self.thread.segments.last();
        let base = segment.map_or(NodeId::ROOT, |s| s.base);
        let frames = self.thread.current();
        let above = frames
            .get(..frames.len().min(MAX_DEPTH))
            .and_then(<[_]>::last);
        let parent = above.map_or(base, |frame| frame.node);
        let node = tree.child(parent, What::Function(at.function));
        if let Some(node) = tree.node_mut(node) {
            node.calls += u64::from(counts);
            node.inferred |= !counts && call.is_none();
        }
        self.settle(tree);
        let (ret, site) = call.unzip();
        self.thread.frames.push(Frame {
            function: at.function,
            code: at.code,
            node,
            ret,
            site: site.unwrap_or(0),
            entered: self.cost,
            whole: counts,
        });
        self.node = node;
    }

    /// Leaves all frames from an index on.
    fn leave_to<S: StackSink>(&mut self, keep: usize, how: How, id: HartId, sink: &mut S) {
        while self.thread.frames.len() > keep {
            let Some(frame) = self.thread.frames.pop() else {
                return;
            };
            let call = Left {
                function: frame.function,
                node: frame.node,
                site: frame.site,
                cost: self.cost.since(frame.entered),
                how,
                whole: frame.whole && how != How::Lost,
            };
            sink.left(id, &call);
        }
    }

    /// The last trap has returned.
    fn end_track<S: StackSink>(&mut self, id: HartId, tree: &mut CallTree, sink: &mut S) {
        self.settle(tree);
        let first = self.thread.segments.last().map_or(0, |s| s.first);
        self.leave_to(first, How::Returned, id, sink);
        self.thread.segments.pop();
        self.unpark();
        let pending = self
            .thread
            .segments
            .last_mut()
            .and_then(|s| s.pending.take());
        match pending {
            Some(arrival) => self.await_run(arrival),
            None => self.expect(),
        }
    }

    /// Puts the thread away.
    fn suspend<S: StackSink>(&mut self, id: HartId, sink: &mut S) {
        if self.suspended.len() >= MAX_THREADS {
            let oldest = self.suspended.remove(0);
            let current = std::mem::replace(&mut self.thread, oldest);
            self.leave_to(0, How::Lost, id, sink);
            self.thread = current;
        }
        let context = self.thread.context;
        let thread = std::mem::take(&mut self.thread);
        self.thread.context = context;
        if !thread.frames.is_empty() {
            self.suspended.push(thread);
        }
    }
}

#[cfg(test)]
mod tests;
