//! Returns: to the caller, to one that was not known, and elsewhere.

use super::hart::Arrived;
use super::sink::{Entered, Entry, How, Odd, StackSink};
use super::thread::Arrival;
use super::thread::{Frame, Thread};
use super::tree::What;
use super::{MAX_FOUND, Stacks};
use hartrace_flow::{HartId, Run};

impl<S: StackSink> Stacks<S> {
    /// Leaves everything inside a frame.
    pub(super) fn unwind(&mut self, id: HartId, outer: usize, jump: (u64, u64), doubtful: bool) {
        let hart = self.harts.of(id);
        hart.leave_to(outer + 1, How::Unwound, id, &mut self.sink);
        hart.thread.doubt_recursion();
        hart.go_on(&mut self.tree);
        self.odd(id, Odd::Unwound, jump, doubtful);
    }

    /// The outermost frame has returned here.
    pub(super) fn found_caller(&mut self, id: HartId, at: Arrived) {
        let from = self.harts.of(id).site;
        self.odd(id, Odd::Found, (from, at.pc), false);
        let hart = self.harts.of(id);
        let Some(segment) = hart.thread.segments.last_mut() else {
            return self.start(id, at, true);
        };
        let unknown = self.tree.node(segment.base).map(|node| node.what);
        if unknown != Some(What::Unknown) {
            // A handler that was entered by a trap: what follows is part of it.
            self.push(id, at, None, Entry::Return, false);
            return;
        }
        segment.found += 1;
        if segment.found > MAX_FOUND {
            hart.abandon(id, &mut self.sink);
            return self.start(id, at, true);
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
            gaps: hart.gaps,
            nested: false,
        });
        hart.turn(&mut self.tree);
        let entered = Entered {
            function: at.function,
            node,
            site: 0,
            by: Entry::Return,
            whole: false,
            at: hart.moment(),
        };
        self.sink.entered(id, &entered);
    }

    /// A return went where no frame returns to.
    pub(super) fn contradicted(&mut self, id: HartId, at: Arrived) {
        let hart = self.harts.of(id);
        let (from, certain) = (hart.site, hart.certain);
        match hart.thread.running(at.function) {
            Some(outer) => self.unwind(id, outer, (from, at.pc), certain),
            None => self.new_thread(id, at, (from, certain)),
        }
    }

    /// A return to an address.
    #[inline]
    pub(super) fn returned(&mut self, id: HartId, run: &Run) {
        let hart = self.harts.of(id);
        let Some(frame) = hart.thread.pop_returning_to(run.next) else {
            return self.returned_elsewhere(id, run);
        };
        hart.agreed = hart.done;
        self.sink.left(id, &hart.left(&frame, How::Returned));
        hart.go_on(&mut self.tree);
    }

    #[cold]
    #[inline(never)]
    fn returned_elsewhere(&mut self, id: HartId, run: &Run) {
        let next = run.next;
        let hart = self.harts.of(id);
        hart.site = run.source();
        let top = hart.thread.top();
        hart.certain = top.is_some_and(|top| hart.has_whole(top) && top.ret.is_some());
        let (jump, certain) = ((hart.site, next), hart.certain);
        if let Some(at) = hart.thread.returning_to(next) {
            hart.leave_to(at + 1, How::Unwound, id, &mut self.sink);
            hart.leave_to(at, How::Returned, id, &mut self.sink);
            hart.go_on(&mut self.tree);
            self.odd(id, Odd::Unwound, jump, certain);
            return;
        }
        let frames = hart.thread.current();
        let outermost = frames.len() <= 1 && frames.last().is_none_or(|f| f.ret.is_none());
        if outermost {
            let first = hart.thread.segments.last().map_or(0, |s| s.first);
            hart.settle(&mut self.tree);
            hart.leave_to(first, How::Returned, id, &mut self.sink);
        }
        let other = hart.suspended_that(|t| t.returning_to(next).is_some());
        if let Some(other) = other {
            let fits = |t: &&Thread| t.returning_to(next).is_some();
            let is_certain = hart.suspended.iter().filter(fits).count() == 1;
            self.switch(id, other);
            let hart = self.harts.of(id);
            if !is_certain {
                // It may be another thread that waits in the same function.
                hart.thread.doubt_all();
            }
            if let Some(at) = hart.thread.returning_to(next) {
                hart.leave_to(at + 1, How::Lost, id, &mut self.sink);
                hart.leave_to(at, How::Returned, id, &mut self.sink);
            }
            hart.go_on(&mut self.tree);
            self.odd(id, Odd::Switched, jump, certain);
            return;
        }
        hart.await_run(match outermost {
            true => Arrival::Caller,
            false => Arrival::Contradiction,
        });
    }

    /// A co-routine swap: a return, if a frame returns there, and a call.
    pub(super) fn swap(&mut self, id: HartId, run: &Run) {
        let hart = self.harts.of(id);
        if hart
            .thread
            .top()
            .is_some_and(|top| top.ret == Some(run.next))
        {
            self.returned(id, run);
        }
        self.harts.of(id).call(run);
    }
}
