//! One hart: the thread that runs, those that wait, and what is expected next.

use super::thread::{Arrival, Frame, Segment, Thread};
use super::tree::{CallTree, Callee, Cost, MAX_DEPTH, NodeId, What};
use super::{How, Left, Moment, StackSink, Switched};
use crate::functions::FunctionId;
use hartrace_flow::{Context, Exit, HartId, Mode, Run};

/// What no run has: the next one is looked at in any case.
pub(super) const UNSETTLED: u32 = u32::MAX - 1;

/// Threads that are kept per hart; the one that did not run for longest goes.
const MAX_THREADS: usize = 256;

#[derive(Clone, Debug)]
pub(super) struct Hart {
    pub(super) thread: Thread,
    /// Threads that do not run, the one that ran last at the end.
    pub(super) suspended: Vec<Thread>,
    pub(super) arrival: Arrival,
    /// The function of the innermost frame, [`UNNAMED`] or [`UNSETTLED`].
    pub(super) expected: u32,
    /// How the run before ended.
    pub(super) last: Exit,
    /// The node that costs are added to, and those that it has not got yet.
    pub(super) node: NodeId,
    pub(super) cost: Cost,
    pub(super) settled: Cost,
    /// Instructions so far, and those up to the last return that agreed with the
    /// stack.
    pub(super) done: u64,
    pub(super) agreed: u64,
    /// The time after these, where it is known and a sink wants it.
    pub(super) now: Option<u64>,
    /// Threads that were started.
    pub(super) started: u32,
    /// Gaps so far. What any thread did meanwhile is not known.
    pub(super) gaps: u32,
    /// The last indirect jump, or return that fitted no frame.
    pub(super) site: u64,
    /// That return contradicts frames whose calls were seen.
    pub(super) certain: bool,
    /// The last run that ended without a transfer.
    pub(super) stopped: Option<Run>,
    /// A jump whose target the trace has not reported when a trap was taken.
    pub(super) open: Option<Run>,
    /// Where the next trap is taken, if the trace does not report that.
    pub(super) epc: Option<u64>,
    pub(super) mode: Option<Mode>,
    pub(super) context: Option<Context>,
    /// When the context changed last, the innermost frames of the thread that was left.
    pub(super) inner: Option<(u64, Vec<Frame>)>,
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
            done: 0,
            agreed: 0,
            now: None,
            started: 0,
            gaps: 0,
            site: 0,
            certain: false,
            stopped: None,
            open: None,
            epc: None,
            mode: None,
            context: None,
            inner: None,
        }
    }
}

/// Where a run is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    pub(super) function: FunctionId,
    pub(super) pc: u64,
    /// As [`Stacks::run`] gets it.
    pub(super) code: u32,
    /// It starts with the function.
    pub(super) is_entry: bool,
}

impl Hart {
    pub(super) fn threads(&self) -> impl Iterator<Item = &Thread> {
        self.suspended.iter().chain([&self.thread])
    }

    pub(super) fn threads_mut(&mut self) -> impl Iterator<Item = &mut Thread> {
        self.suspended.iter_mut().chain([&mut self.thread])
    }

    /// Where it is in what it executed.
    #[inline]
    pub(super) const fn moment(&self) -> Moment {
        Moment {
            insn: self.done,
            time: self.now,
        }
    }

    /// Tells the sink which thread runs.
    pub(super) fn announce<S: StackSink>(&self, unsure: bool, id: HartId, sink: &mut S) {
        let switched = Switched {
            number: self.thread.number,
            context: self.thread.context,
            unsure,
            by_trap_return: self.last == Exit::TrapReturn && !unsure,
            at: self.moment(),
            thread: &self.thread,
        };
        sink.switched(id, &switched);
    }

    /// The thread that runs gets a number.
    pub(super) fn number_thread(&mut self) {
        self.thread.number = self.started;
        self.started = self.started.wrapping_add(1);
    }

    /// The next run decides, whatever function it is in.
    pub(super) fn await_run(&mut self, arrival: Arrival) {
        self.arrival = arrival;
        self.expected = UNSETTLED;
    }

    #[inline]
    pub(super) fn call(&mut self, run: &Run) {
        // `jal ra, .+4` only reads the pc.
        if run.next != run.end {
            self.await_run(Arrival::Call {
                ret: run.end,
                site: run.source(),
            });
        }
    }

    /// The next run is expected in the innermost frame.
    pub(super) fn expect(&mut self) {
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
    pub(super) fn settle(&mut self, tree: &mut CallTree) {
        let since = self.cost.since(self.settled);
        if let Some(node) = tree.node_mut(self.node) {
            node.own.add(since);
        }
        self.settled = self.cost;
    }

    /// From here on costs go to the innermost frame.
    pub(super) fn turn(&mut self, tree: &mut CallTree) {
        self.settle(tree);
        if let Some(top) = self.thread.top() {
            self.node = top.node;
        }
    }

    /// The innermost frame continues: the next run is expected in it, and costs go
    /// to it.
    #[inline]
    pub(super) fn go_on(&mut self, tree: &mut CallTree) {
        self.settle(tree);
        match self.thread.top() {
            Some(top) => {
                self.arrival = Arrival::Jump;
                self.expected = top.code;
                self.node = top.node;
            }
            None => self.await_run(Arrival::Start),
        }
    }

    /// A segment is left for another one; its costs are settled.
    pub(super) fn park(&mut self) {
        if let Some(segment) = self.thread.segments.last_mut() {
            segment.cost = self.cost;
        }
    }

    /// A segment continues.
    pub(super) fn unpark(&mut self) {
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
    pub(super) fn begin(&mut self, tree: &mut CallTree, track: NodeId) {
        self.settle(tree);
        self.number_thread();
        self.thread.segments.push(Segment {
            first: self.thread.frames.len(),
            trap: None,
            base: tree.unknown(track),
            found: 0,
            cost: Cost::default(),
            pending: None,
            open: None,
        });
        (self.cost, self.settled) = (Cost::default(), Cost::default());
    }

    /// The node below which calls of the innermost frame are.
    #[inline]
    pub(super) fn caller(&self) -> NodeId {
        let frames = self.thread.current();
        let depth = frames.len().min(MAX_DEPTH);
        match frames.get(..depth).and_then(<[_]>::last) {
            Some(frame) => frame.node,
            None => self.thread.base(),
        }
    }

    /// Enters a function; its node is looked up.
    pub(super) fn push(
        &mut self,
        at: Arrived,
        call: Option<(u64, u64)>,
        (tree, sites): (&mut CallTree, bool),
        (counts, nesting): (bool, bool),
    ) -> NodeId {
        let caller = self.caller();
        // In recursion sites are not told apart: there may be a path for every call.
        let told = |_: &(u64, u64)| sites && self.thread.running(at.function).is_none();
        let site = call.filter(told).map_or(0, |(_, site)| site);
        let callee = Callee {
            entry: at.pc,
            site,
            function: at.function,
            code: at.code,
            node: tree.child_at(caller, What::Function(at.function), site),
        };
        if call.is_some() && at.is_entry {
            tree.set_callee(caller, callee);
        }
        if let Some(node) = tree.node_mut(callee.node) {
            node.inferred |= !counts && call.is_none();
        }
        self.enter(&callee, call, tree, (counts, nesting));
        callee.node
    }

    /// Enters a function whose node is known.
    #[inline]
    pub(super) fn enter(
        &mut self,
        callee: &Callee,
        call: Option<(u64, u64)>,
        tree: &mut CallTree,
        (counts, nesting): (bool, bool),
    ) {
        self.settle(tree);
        if let Some(node) = tree.node_mut(callee.node) {
            node.calls += u64::from(counts);
        }
        let nested = nesting && self.thread.running(callee.function).is_some();
        let (ret, site) = call.unzip();
        self.thread.frames.push(Frame {
            function: callee.function,
            code: callee.code,
            node: callee.node,
            ret,
            site: site.unwrap_or(0),
            entered: self.cost,
            whole: counts,
            gaps: self.gaps,
            nested,
        });
        self.node = callee.node;
        self.expected = callee.code;
    }

    /// Leaves all frames from an index on.
    pub(super) fn leave_to<S: StackSink>(
        &mut self,
        keep: usize,
        how: How,
        id: HartId,
        sink: &mut S,
    ) {
        while self.thread.frames.len() > keep {
            let Some(frame) = self.thread.frames.pop() else {
                return;
            };
            let left = self.left(&frame, how);
            let cost = self.thread.parked_at(self.thread.frames.len());
            let cost = cost.map_or(left.cost, |cost| cost.since(frame.entered));
            sink.left(id, &Left { cost, ..left });
        }
    }

    /// Whether everything since a call was seen.
    #[inline]
    pub(super) fn has_whole(&self, frame: &Frame) -> bool {
        frame.whole && frame.gaps == self.gaps
    }

    /// A call that has ended now.
    #[inline]
    pub(super) fn left(&self, frame: &Frame, how: How) -> Left {
        Left {
            function: frame.function,
            node: frame.node,
            site: frame.site,
            cost: self.cost.since(frame.entered),
            how,
            whole: self.has_whole(frame) && how != How::Lost,
            nested: frame.nested,
            at: self.moment(),
        }
    }

    /// The last trap has returned.
    pub(super) fn end_track<S: StackSink>(
        &mut self,
        id: HartId,
        tree: &mut CallTree,
        sink: &mut S,
    ) {
        self.settle(tree);
        let first = self.thread.segments.last().map_or(0, |s| s.first);
        self.leave_to(first, How::Returned, id, sink);
        sink.resumed(id, How::Returned, self.moment());
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
    pub(super) fn suspend<S: StackSink>(&mut self, id: HartId, sink: &mut S) {
        if self.suspended.len() >= MAX_THREADS {
            let oldest = self.suspended.remove(0);
            let current = std::mem::replace(&mut self.thread, oldest);
            let cost = (self.cost, self.settled, self.node);
            self.unpark();
            self.announce(false, id, sink);
            self.leave_to(0, How::Lost, id, sink);
            self.end_thread(id, sink);
            self.thread = current;
            (self.cost, self.settled, self.node) = cost;
        }
        let context = self.thread.context;
        if self.thread.frames.is_empty() {
            self.end_thread(id, sink);
        }
        let thread = std::mem::take(&mut self.thread);
        self.thread.context = context;
        if !thread.frames.is_empty() {
            self.suspended.push(thread);
        }
    }

    /// The thread that runs will not continue.
    fn end_thread<S: StackSink>(&self, id: HartId, sink: &mut S) {
        // Without segments it has not started, and has no number.
        if !self.thread.segments.is_empty() {
            sink.ended(id, self.thread.number, self.moment());
        }
    }

    /// Forgets the thread: what follows has nothing to do with it.
    pub(super) fn abandon<S: StackSink>(&mut self, id: HartId, sink: &mut S) {
        self.leave_to(0, How::Lost, id, sink);
        self.end_thread(id, sink);
        self.thread = Thread {
            context: self.thread.context,
            ..Thread::default()
        };
    }
}
