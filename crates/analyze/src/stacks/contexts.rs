//! Contexts: each has stacks of its own, and costs belong to the context that runs.
//!
//! A kernel changes the address space in the middle of a call, before it changes stacks,
//! and its own threads run in whatever address space is there. So a stack may go on in
//! another context than it began in, and what is called where the context changes belongs
//! to the stack that continues.

use super::hart::{Hart, UNSETTLED};
use super::sink::{Entered, Entry, How, StackSink};
use super::thread::{Frame, Thread};
use super::tree::{MAX_DEPTH, NodeId, What};
use super::{Grouping, MAX_FRAMES, Stacks};
use crate::functions::FunctionId;
use hartrace_flow::{Context, HartId, Mode, Ownership};

impl<S: StackSink> Stacks<S> {
    /// The mode and context from here on. Another context has a stack of its own; a
    /// new one starts with the stack of the last.
    pub(super) fn own(&mut self, id: HartId, owner: &Ownership) {
        let hart = self.harts.of(id);
        hart.mode = owner.mode.or(hart.mode);
        let before = hart.context;
        hart.context = owner.context.or(before);
        match (before, hart.context) {
            (None, context) => hart.thread.context = context,
            (Some(before), Some(context)) if before != context => self.change(id, context),
            _ => {}
        }
        // What a call or a return leads to may be elsewhere.
        let hart = self.harts.of(id);
        let mode = hart.mode.filter(|_| hart.expected != UNSETTLED);
        self.retrack(id, mode);
    }

    /// Another context.
    fn change(&mut self, id: HartId, context: Context) {
        let hart = self.harts.of(id);
        hart.settle(&mut self.tree);
        let Some(known) = hart.last_of(context) else {
            let mut next = hart.thread.clone();
            next.frames.iter_mut().for_each(|frame| frame.whole = false);
            return self.enter_context(id, context, next, true);
        };
        let next = hart.suspended.remove(known);
        // The hart may still be where the thread that is left was.
        let inner = inner_frames(&hart.thread, &next);
        self.enter_context(id, context, next, false);
        let hart = self.harts.of(id);
        hart.inner = Some((hart.done, inner)).filter(|(_, inner)| !inner.is_empty());
    }

    fn enter_context(&mut self, id: HartId, context: Context, next: Thread, is_new: bool) {
        let hart = self.harts.of(id);
        hart.park();
        hart.suspend(id, &mut self.sink);
        hart.thread = next;
        hart.thread.context = Some(context);
        if is_new {
            hart.number_thread();
        }
        hart.announce(false, id, &mut self.sink);
        hart.unpark();
        if hart.expected != UNSETTLED {
            hart.expect();
        }
    }

    /// The first run after a change of the context is not where its stack is. If it is
    /// where the thread is that was left, the innermost calls of that one go on in this one,
    /// from the innermost function on that both are in: the kernel has changed address
    /// spaces, and will change stacks. Whether that is so.
    pub(super) fn graft(&mut self, id: HartId, function: FunctionId) -> bool {
        let hart = self.harts.of(id);
        let Some((when, inner)) = hart.inner.take() else {
            return false;
        };
        let is_there = inner.last().is_some_and(|f| f.function == function);
        let Some((common, calls)) = inner.split_first().filter(|_| is_there) else {
            return false;
        };
        let at = hart.thread.running(common.function);
        let Some(at) = at.filter(|_| when == hart.done) else {
            return false;
        };
        hart.leave_to(at + 1, How::Lost, id, &mut self.sink);
        for call in calls {
            let hart = self.harts.of(id);
            let what = What::Function(call.function);
            let node = self
                .tree
                .child_at(hart.caller(), what, self.site(call.node));
            let hart = self.harts.of(id);
            hart.thread.frames.push(Frame {
                node,
                entered: hart.cost,
                whole: false,
                gaps: hart.gaps,
                ..*call
            });
            let entered = Entered {
                function: call.function,
                node,
                site: call.site,
                by: Entry::Start,
                whole: false,
                at: hart.moment(),
            };
            self.sink.entered(id, &entered);
        }
        self.harts.of(id).go_on(&mut self.tree);
        true
    }

    fn site(&self, node: NodeId) -> u64 {
        self.tree.node(node).map_or(0, |node| node.site)
    }

    /// Puts the thread that runs on the track of the context that the hart is in, and its
    /// innermost frames on that of a mode, if they are told apart.
    pub(super) fn retrack(&mut self, id: HartId, mode: Option<Mode>) {
        let Grouping {
            contexts, modes, ..
        } = self.grouping;
        if !contexts && !modes {
            return;
        }
        let hart = self.harts.of(id);
        let (context, segments) = (hart.context, hart.thread.segments.len());
        let mut moved = false;
        for number in 0..segments {
            let mode = mode.filter(|_| number + 1 == segments);
            moved |= self.move_segment(id, number, context, mode);
        }
        if moved {
            let hart = self.harts.of(id);
            hart.turn(&mut self.tree);
        }
    }

    /// Gives the frames of a segment nodes on another track. Whether they are others.
    fn move_segment(
        &mut self,
        id: HartId,
        number: usize,
        context: Option<Context>,
        mode: Option<Mode>,
    ) -> bool {
        let thread = &self.harts.of(id).thread;
        let Some(segment) = thread.segments.get(number).copied() else {
            return false;
        };
        let mut track = Vec::new();
        let mut at = segment.base;
        while at != NodeId::ROOT
            && let Some(node) = self.tree.node(at)
        {
            track.push(node.what);
            at = node.parent;
        }
        let mut other = false;
        for what in &mut track {
            let new = match what {
                What::Context(_) => What::Context(context),
                What::Mode(old) => What::Mode(mode.or(*old)),
                ref what => **what,
            };
            other |= std::mem::replace(what, new) != new;
        }
        if !other {
            return false;
        }
        self.harts.of(id).settle(&mut self.tree);
        let mut base = NodeId::ROOT;
        for what in track.into_iter().rev() {
            base = match what {
                What::Unknown => self.tree.unknown(base),
                what => self.tree.child(base, what),
            };
        }
        let thread = &self.harts.of(id).thread;
        let end = thread.segments.get(number + 1).map(|next| next.first);
        let end = end.unwrap_or(thread.frames.len());
        let mut above = base;
        for place in segment.first..end {
            let Some(frame) = self.harts.of(id).thread.frames.get(place).copied() else {
                break;
            };
            let site = self.site(frame.node);
            let inferred = self.tree.node(frame.node).is_some_and(|n| n.inferred);
            let node = self
                .tree
                .child_at(above, What::Function(frame.function), site);
            if let Some(node) = self.tree.node_mut(node) {
                node.inferred |= inferred;
            }
            if place - segment.first < MAX_DEPTH {
                above = node;
            }
            if let Some(frame) = self.harts.of(id).thread.frames.get_mut(place) {
                frame.node = node;
            }
        }
        if let Some(segment) = self.harts.of(id).thread.segments.get_mut(number) {
            segment.base = base;
        }
        true
    }
}

impl Hart {
    /// The thread that ran last of those that fit, one of the current context before others.
    pub(super) fn suspended_that(&self, fits: impl Fn(&Thread) -> bool) -> Option<usize> {
        let own = |t: &Thread| t.context == self.context && fits(t);
        let threads = || self.suspended.iter();
        let found = threads().rposition(own);
        found.or_else(|| threads().rposition(fits))
    }

    /// The thread of a context that ran last. One that a trap interrupted is a process;
    /// others are threads of the kernel, which ran in its address space.
    fn last_of(&self, context: Context) -> Option<usize> {
        let is_own = |t: &Thread| t.context == Some(context);
        let threads = || self.suspended.iter();
        let process = threads().rposition(|t| is_own(t) && t.segments.len() > 1);
        process.or_else(|| threads().rposition(is_own))
    }
}

/// The innermost frames of a thread from the innermost function on that another thread is
/// in, too; none if that is the innermost of both, or there is no such function.
fn inner_frames(left: &Thread, next: &Thread) -> Vec<Frame> {
    let frames = left.current();
    let common = frames
        .iter()
        .rposition(|frame| next.running(frame.function).is_some());
    let Some(common) = common else {
        return Vec::new();
    };
    let inner = frames.get(common..).unwrap_or_default();
    let is_innermost = inner.len() == 1
        && next
            .top()
            .is_some_and(|top| Some(top.function) == inner.first().map(|f| f.function));
    match is_innermost || inner.len() > MAX_FRAMES / 2 {
        true => Vec::new(),
        false => inner.to_vec(),
    }
}
