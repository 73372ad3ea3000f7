//! One stack of calls: that of a thread, with the traps that interrupted it.

use super::tree::{Cost, NodeId};
use crate::functions::FunctionId;
use hartrace_flow::{Cause, Context, Exit, Run};

/// How the next run is reached, where its function is not the expected one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Arrival {
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

/// A call or a trap that has not returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenCall {
    /// A call of this function.
    Call(FunctionId),
    /// A trap at this address, if it is known.
    Trap(Cause, Option<u64>),
}

/// A call that has not returned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) function: FunctionId,
    /// What its runs are looked up as: the function, or code without a symbol.
    pub(super) code: u32,
    pub(super) node: NodeId,
    /// Where it returns to; `None` if its call was not seen.
    pub(super) ret: Option<u64>,
    /// The instruction that called it; 0 if the call was not seen.
    pub(super) site: u64,
    /// What its part of the thread had cost when it was entered.
    pub(super) entered: Cost,
    /// Its call was seen, and everything since, but for gaps.
    pub(super) whole: bool,
    /// Gaps of the hart before it was entered.
    pub(super) gaps: u32,
    /// The function was on the stack already.
    pub(super) nested: bool,
}

/// The frames from one trap to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    /// Index of its first frame.
    pub(super) first: usize,
    /// The trap that started it; the first segment of a thread has none.
    pub(super) trap: Option<Trapped>,
    /// The node that its outermost frame is below.
    pub(super) base: NodeId,
    /// Callers that were found below the outermost frame.
    pub(super) found: u32,
    /// What it cost so far, without the segments above it.
    pub(super) cost: Cost,
    /// A call or return that a trap interrupted before its first instruction.
    pub(super) pending: Option<Arrival>,
    /// A jump that a trap interrupted, and whose target is where the trap returns to.
    pub(super) open: Option<Run>,
}

/// Where a trap interrupted a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trapped {
    pub(super) cause: Cause,
    pub(super) epc: Option<u64>,
}

impl Trapped {
    /// Whether a return to an address is one from this trap: to the instruction
    /// that trapped, or to the one after it.
    pub(super) fn resumes_at(self, next: u64) -> bool {
        self.epc
            .is_none_or(|epc| matches!(next.wrapping_sub(epc), 0 | 2 | 4))
    }
}

/// Calls that have not returned, outermost first.
#[derive(Clone, Debug, Default)]
pub(super) struct Thread {
    pub(super) frames: Vec<Frame>,
    pub(super) segments: Vec<Segment>,
    /// The context it runs in, if contexts are reported.
    pub(super) context: Option<Context>,
    /// Its number among those of the hart.
    pub(super) number: u32,
}

impl Thread {
    /// Calls and traps that have not returned, outermost first.
    pub(super) fn open(&self) -> impl Iterator<Item = OpenCall> {
        let ends = self.segments.iter().skip(1).map(|next| next.first);
        let ends = ends.chain([self.frames.len()]);
        self.segments.iter().zip(ends).flat_map(|(segment, end)| {
            let frames = self.frames.get(segment.first..end).unwrap_or_default();
            let trap = segment
                .trap
                .map(|trap| OpenCall::Trap(trap.cause, trap.epc));
            let calls = frames.iter().map(|frame| OpenCall::Call(frame.function));
            trap.into_iter().chain(calls)
        })
    }

    /// What the segment of a frame has cost, if a trap has interrupted it.
    pub(super) fn parked_at(&self, frame: usize) -> Option<Cost> {
        let (_, interrupted) = self.segments.split_last()?;
        let last = self.segments.last()?;
        let own = interrupted.iter().rfind(|s| s.first <= frame);
        own.filter(|_| frame < last.first).map(|own| own.cost)
    }

    /// The frames of the last segment.
    #[inline]
    pub(super) fn current(&self) -> &[Frame] {
        let first = self.segments.last().map_or(0, |s| s.first);
        self.frames.get(first..).unwrap_or_default()
    }

    pub(super) fn current_mut(&mut self) -> &mut [Frame] {
        let first = self.segments.last().map_or(0, |s| s.first);
        self.frames.get_mut(first..).unwrap_or_default()
    }

    /// The node that the outermost frame of the last segment is below.
    pub(super) fn base(&self) -> NodeId {
        self.segments.last().map_or(NodeId::ROOT, |s| s.base)
    }

    /// Leaves the innermost frame, if it returns to an address.
    #[inline]
    pub(super) fn pop_returning_to(&mut self, next: u64) -> Option<Frame> {
        let returns = self.top()?.ret == Some(next);
        if returns { self.frames.pop() } else { None }
    }

    /// The innermost frame, unless a trap has just interrupted it.
    #[inline]
    pub(super) fn top(&self) -> Option<&Frame> {
        self.current().last()
    }

    /// The innermost frame of the current segment that returns to an address: its
    /// index.
    pub(super) fn returning_to(&self, next: u64) -> Option<usize> {
        let at = self.current().iter().rposition(|f| f.ret == Some(next))?;
        Some(at + self.segments.last()?.first)
    }

    /// The same of any function of the current segment.
    pub(super) fn running(&self, function: FunctionId) -> Option<usize> {
        let at = self
            .current()
            .iter()
            .rposition(|f| f.function == function)?;
        Some(at + self.segments.last()?.first)
    }

    /// The innermost frame may as well be an outer call of its function: from the first
    /// of these on, nothing is certain.
    pub(super) fn doubt_recursion(&mut self) {
        let frames = self.current_mut();
        let function = frames.last().map(|top| top.function);
        let first = frames.iter().position(|f| Some(f.function) == function);
        let Some(first) = first.filter(|first| first + 1 < frames.len()) else {
            return;
        };
        for frame in frames.iter_mut().skip(first) {
            frame.whole = false;
        }
    }

    /// None of its frames is certain.
    pub(super) fn doubt_all(&mut self) {
        self.frames.iter_mut().for_each(|frame| frame.whole = false);
    }

    /// Whether its last segment is a trap that returns to an address.
    pub(super) fn resumes_at(&self, next: u64) -> bool {
        let trap = self.segments.last().and_then(|s| s.trap);
        trap.is_some_and(|trap| trap.epc.is_some() && trap.resumes_at(next))
    }

    /// Whether a trap is the one that its last segment is of, and nothing was called
    /// since: the handler traps again and again.
    pub(super) fn is_again(&self, cause: Cause, epc: Option<u64>) -> bool {
        let last = self.segments.last().and_then(|s| s.trap);
        let same = last.is_some_and(|trap| trap.cause == cause && trap.epc == epc);
        same && epc.is_some() && self.current().len() <= 1
    }

    /// Whether its last segment is a trap that interrupted a return to an address.
    pub(super) fn returns_to(&self, next: u64) -> bool {
        let below = self.segments.len().checked_sub(2);
        let below = below.and_then(|at| self.segments.get(at));
        let open = below.and_then(|segment| segment.open);
        let is_return = open.is_some_and(|run| run.exit == Exit::Return);
        is_return && self.interrupted().is_some_and(|f| f.ret == Some(next))
    }

    /// What was interrupted by the last trap: its innermost frame.
    pub(super) fn interrupted(&self) -> Option<&Frame> {
        let first = self.segments.last()?.first;
        self.frames.get(first.checked_sub(1)?)
    }
}
