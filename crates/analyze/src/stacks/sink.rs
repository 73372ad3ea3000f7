//! What happens to stacks, and what takes it.

use super::thread::{OpenCall, Thread};
use super::tree::{Cost, NodeId};
use crate::functions::FunctionId;
use hartrace_flow::{Context, Gap, HartId, Packer, Run, SpaceId, Trap, Unpacker};

/// A position in what a hart executed, between two instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Instructions of the hart before it.
    pub insn: u64,
    /// Its time in the unit of the trace, where it is known. Only for a sink that
    /// [asks for it](StackSink::TIMES).
    pub time: Option<u64>,
}

/// Tells apart what [`Stacks`](crate::Stacks) would otherwise add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grouping {
    /// By hart.
    pub harts: bool,
    /// By context.
    pub contexts: bool,
    /// By privilege mode.
    pub modes: bool,
    /// By the instruction that called, except for calls of functions that have not
    /// returned from an earlier call.
    pub sites: bool,
}

/// A run, and where it was executed.
#[derive(Clone, Copy, Debug)]
pub struct Ran<'a> {
    /// The call path. [`StackSink::merged`] may give it another id later.
    pub node: NodeId,
    /// The thread of the hart, and its context if contexts are reported.
    pub thread: (u32, Option<Context>),
    /// The code it is of.
    pub space: SpaceId,
    /// The run.
    pub run: &'a Run,
    /// The time it took.
    pub time: u64,
    /// When it started.
    pub at: Moment,
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
    /// Its first instruction is the next.
    pub whole: bool,
    /// When.
    pub at: Moment,
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
    /// When it ended.
    pub at: Moment,
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

/// The thread of a hart to which everything that follows belongs.
pub struct Switched<'a> {
    /// Its number, from 0 for each hart. A number is not used again.
    pub number: u32,
    /// The context it runs in, if contexts are reported.
    pub context: Option<Context>,
    /// It may be the thread before it: what the hart did in between is missing.
    pub unsure: bool,
    /// A return from a trap led to it.
    pub by_trap_return: bool,
    /// When the hart switched to it.
    pub at: Moment,
    pub(super) thread: &'a Thread,
}

impl Switched<'_> {
    /// What the thread has called and what has interrupted it, outermost first.
    pub fn open(&self) -> impl Iterator<Item = OpenCall> {
        self.thread.open()
    }
}

/// Takes what happens to stacks.
pub trait StackSink {
    /// Whether [`Left::nested`] is wanted, which takes a look at the whole stack
    /// with each call.
    const NESTING: bool = false;

    /// Whether [`Moment::time`] is wanted.
    const TIMES: bool = false;

    /// Whether [`StackSink::ran`] is wanted, which makes every run take the longer path.
    const RUNS: bool = false;

    /// A run is executed. Only for a sink that [asks for it](StackSink::RUNS).
    fn ran(&mut self, hart: HartId, ran: &Ran<'_>) {
        let _ = (hart, ran);
    }

    /// Equal call paths were merged: the new id of each node, by its index.
    fn merged(&mut self, new: &[NodeId]) {
        let _ = new;
    }

    /// Code at this address that no symbol covers gets an id, if it has none.
    fn unnamed(&mut self, address: u64) {
        let _ = address;
    }

    /// A function was entered.
    fn entered(&mut self, hart: HartId, call: &Entered) {
        let _ = (hart, call);
    }

    /// A call has ended.
    fn left(&mut self, hart: HartId, call: &Left) {
        let _ = (hart, call);
    }

    /// A trap was taken; what follows, up to its end, belongs to it.
    fn trapped(&mut self, hart: HartId, trap: &Trap, at: Moment) {
        let _ = (hart, trap, at);
    }

    /// The last trap has ended; what was entered since has been left.
    fn resumed(&mut self, hart: HartId, how: How, at: Moment) {
        let _ = (hart, how, at);
    }

    /// Another thread of the hart continues, or a new one starts.
    fn switched(&mut self, hart: HartId, to: &Switched<'_>) {
        let _ = (hart, to);
    }

    /// A thread will not continue.
    fn ended(&mut self, hart: HartId, thread: u32, at: Moment) {
        let _ = (hart, thread, at);
    }

    /// Something is missing here, or, without a gap, was not traced.
    fn gap(&mut self, hart: HartId, gap: Option<&Gap>, at: Moment) {
        let _ = (hart, gap, at);
    }

    /// The time is known here, and is not before it or after it. Only for a sink that
    /// [asks for times](StackSink::TIMES).
    fn timed(&mut self, hart: HartId, at: Moment) {
        let _ = (hart, at);
    }

    /// A return or a jump did not go where the stack expected it to.
    fn odd(&mut self, hart: HartId, jump: &OddJump) {
        let _ = (hart, jump);
    }
}

/// A sink whose state can be saved, to go on from there later.
pub trait SavedSink: StackSink {
    /// Writes its state.
    fn save(&self, out: &mut Packer);

    /// Reads it; `None` if it cannot be read. The threads of all harts are given next, by
    /// [`StackSink::switched`].
    fn restore(&mut self, saved: &mut Unpacker<'_>) -> Option<()>;
}

/// Nothing is wanted.
impl StackSink for () {}
