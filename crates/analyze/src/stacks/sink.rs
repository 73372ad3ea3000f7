//! What happens to stacks, and what takes it.

use super::tree::{Cost, NodeId};
use crate::functions::FunctionId;
use hartrace_flow::HartId;

/// Tells apart what [`Stacks`](crate::Stacks) would otherwise add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grouping {
    /// By hart.
    pub harts: bool,
    /// By context.
    pub contexts: bool,
    /// By privilege mode.
    pub modes: bool,
}

/// A function that was entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entered {
    /// The function.
    pub function: FunctionId,
    /// Its node.
    pub node: NodeId,
    /// The instruction that called it, or the function in whose place it is; 0 if
    /// the call was not seen.
    pub site: u64,
    /// How.
    pub by: Entry,
}

/// How a function was entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// By a call.
    Call,
    /// By a jump out of another function, in whose place it is.
    TailCall,
    /// At the start of a trace, a thread or a trap, or after a gap.
    Start,
    /// By a return to it: the trace started inside a function that it had called.
    Return,
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
    /// It was called while another call of the function had not returned. Only for
    /// a sink that [asks for it](StackSink::NESTING).
    pub nested: bool,
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

/// What a jump that contradicts the stack was taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Odd {
    /// Frames were left for one further out.
    Unwound,
    /// Another thread continued.
    Switched,
    /// A new thread started.
    Started,
    /// An indirect jump or call into the middle of a function that is not running.
    Inside,
    /// An indirect jump inside its function, to none of the cases of its `switch`.
    NoCase,
    /// A return out of the outermost known frame. It shows the caller, unless nothing
    /// was called there.
    Found,
}

/// A jump that contradicts the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OddJump {
    /// What it was taken for.
    pub odd: Odd,
    /// The instruction that jumped; 0 for a return from a trap.
    pub from: u64,
    /// Where it went.
    pub to: u64,
    /// Instructions of the hart up to the jump.
    pub at: u64,
    /// Instructions of the hart up to the last return that agreed with the stack.
    pub since: u64,
    /// Nothing explains it: the trace, or its decoding, may be wrong since then.
    pub doubtful: bool,
}

/// Takes what happens to stacks.
pub trait StackSink {
    /// Whether [`Left::nested`] is wanted, which takes a look at the whole stack
    /// with each call.
    const NESTING: bool = false;

    /// A function was entered.
    fn entered(&mut self, hart: HartId, call: &Entered) {
        let _ = (hart, call);
    }

    /// A call has ended.
    fn left(&mut self, hart: HartId, call: &Left) {
        let _ = (hart, call);
    }

    /// A return or a jump did not go where the stack expected it to.
    fn odd(&mut self, hart: HartId, jump: &OddJump) {
        let _ = (hart, jump);
    }
}

/// Nothing is wanted.
impl StackSink for () {}
