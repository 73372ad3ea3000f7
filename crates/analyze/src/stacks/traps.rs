//! Traps, returns from them, and the threads that they switch.

use super::hart::{Arrived, UNSETTLED};
use super::sink::{How, Odd, StackSink};
use super::thread::Arrival;
use super::thread::{Segment, Trapped};
use super::tree::{Cost, NodeId, What};
use super::{MAX_SEGMENTS, Stacks};
use crate::functions::Functions;
use hartrace_flow::{Exit, HartId, Run, Trap};

impl<S: StackSink> Stacks<S> {
    /// The last instruction of a hart, if the run that ends with it has no transfer.
    pub(crate) fn stopped(&mut self, id: HartId) -> Option<Run> {
        let hart = self.harts.of(id);
        hart.stopped.filter(|_| hart.last == Exit::Stop)
    }

    /// The trap that follows interrupts a jump: it has this exit, and leads to where the
    /// trap returns to. If it is itself a return from a trap, that one has ended.
    pub(crate) fn interrupts(&mut self, id: HartId, jump: Run) {
        let hart = self.harts.of(id);
        if jump.exit != Exit::TrapReturn {
            hart.open = Some(jump);
            return;
        }
        let trap = hart.thread.segments.last().and_then(|s| s.trap);
        if let Some(trap) = trap {
            hart.end_track(id, &mut self.tree, &mut self.sink);
            hart.epc = trap.epc;
            // The jump that the first trap interrupted is still open.
            hart.open = hart.thread.segments.last_mut().and_then(|s| s.open.take());
        }
    }

    /// A trap is about to be taken before the instruction at an address. If a call, or a
    /// jump to the start of another function, led there, that function has been entered,
    /// though nothing of it was executed.
    pub(crate) fn reach(&mut self, id: HartId, pc: u64, functions: &mut Functions) {
        let Some(function) = functions.of(pc) else {
            return;
        };
        let hart = self.harts.of(id);
        let is_settled = hart.expected != UNSETTLED;
        let enters = match hart.arrival {
            Arrival::Call { .. } => !is_settled,
            Arrival::Jump => {
                let is_other = is_settled && hart.expected != function.0;
                is_other && functions.get(function).start == pc
            }
            _ => false,
        };
        if enters {
            self.arrive(id, pc, function.0, functions);
        }
    }

    pub(super) fn trap(&mut self, id: HartId, trap: &Trap) {
        let hart = self.harts.of(id);
        hart.settle(&mut self.tree);
        if hart.thread.is_again(trap.cause, trap.epc) {
            let first = hart.thread.segments.last().map_or(0, |s| s.first);
            hart.leave_to(first, How::Lost, id, &mut self.sink);
            self.sink.resumed(id, How::Lost, hart.moment());
            self.sink.trapped(id, trap, hart.moment());
            hart.await_run(Arrival::Start);
            return;
        }
        if hart.thread.segments.len() >= MAX_SEGMENTS {
            hart.abandon(id, &mut self.sink);
        }
        if hart.thread.segments.is_empty() {
            // Interrupted before anything ran: there is something to return to.
            let unsure = hart.started > 0;
            hart.begin(&mut self.tree, NodeId::ROOT);
            hart.announce(unsure, id, &mut self.sink);
        }
        hart.park();
        let pending = (hart.expected == UNSETTLED).then_some(hart.arrival);
        let open = hart.open.take();
        let epc = trap.epc.or(hart.epc.take());
        if let Some(segment) = hart.thread.segments.last_mut() {
            segment.pending = pending;
            segment.open = open;
        }
        let track = What::Trap(trap.cause);
        let first = hart.thread.frames.len();
        hart.thread.segments.push(Segment {
            first,
            trap: Some(Trapped {
                cause: trap.cause,
                epc,
            }),
            base: self.tree.child(NodeId::ROOT, track),
            found: 0,
            cost: Cost::default(),
            pending: None,
            open: None,
        });
        hart.unpark();
        hart.await_run(Arrival::Start);
        self.sink.trapped(id, &Trap { epc, ..*trap }, hart.moment());
    }

    /// A trap returned to another place than it was taken from.
    pub(super) fn resumed_elsewhere(&mut self, id: HartId, at: Arrived) {
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
        self.new_thread(id, at, (0, false));
    }

    /// A return from a trap.
    pub(super) fn resume(&mut self, id: HartId, next: u64) {
        let hart = self.harts.of(id);
        let trap = hart.thread.segments.last().and_then(|s| s.trap);
        let fits = trap.is_some_and(|trap| trap.resumes_at(next));
        if fits && trap.is_some_and(|trap| trap.epc.is_some()) || hart.thread.returns_to(next) {
            return self.end_trap(id, next);
        }
        let exact = hart.suspended_that(|t| t.resumes_at(next));
        let other = exact.or_else(|| hart.suspended_that(|t| t.returns_to(next)));
        if let Some(other) = other {
            self.switch(id, other);
            self.end_trap(id, next);
            self.odd(id, Odd::Switched, (0, next), false);
            return;
        }
        match fits {
            true => self.end_trap(id, next),
            false => hart.await_run(Arrival::Resumed),
        }
    }

    /// The last trap has returned here: to the target of the jump that it interrupted,
    /// if it did.
    fn end_trap(&mut self, id: HartId, next: u64) {
        let hart = self.harts.of(id);
        hart.end_track(id, &mut self.tree, &mut self.sink);
        let open = hart.thread.segments.last_mut().and_then(|s| s.open.take());
        let Some(open) = open else { return };
        let run = Run { next, ..open };
        hart.last = run.exit;
        match run.exit {
            Exit::IndirectCall => hart.call(&run),
            Exit::Return => self.returned(id, &run),
            Exit::Swap => self.swap(id, &run),
            Exit::IndirectJump => hart.site = run.source(),
            _ => {}
        }
    }

    /// Another thread of the hart continues.
    pub(super) fn switch(&mut self, id: HartId, other: usize) {
        let hart = self.harts.of(id);
        hart.settle(&mut self.tree);
        let next = hart.suspended.remove(other);
        hart.park();
        hart.suspend(id, &mut self.sink);
        hart.thread = next;
        hart.announce(false, id, &mut self.sink);
        hart.unpark();
        self.retrack(id, None);
    }
}
