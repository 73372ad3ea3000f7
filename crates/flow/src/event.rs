//! Events: what a trace reports that a hart did, the output of every decoder.
//!
//! Decoding is total: any bytes become events, and loss is an event too. The
//! unit is the [`Run`], a range of instructions contiguous in memory. A
//! consumer that needs single instructions iterates over a run with the
//! program's [`Image`](crate::Image).

use alloc::boxed::Box;
use core::fmt;
use core::ops::{AddAssign, ControlFlow};

use hartrace_isa::Link;

use crate::plain_access::in_slices;
use crate::{Access, Context, HartId, Kept, Mode, PlainAccesses, SpaceId, TiedRuns, Trap};

/// One thing a trace reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Instructions retired.
    Run(Run),
    /// A trap was taken, after the run before it.
    Trap(Trap),
    /// From here on the hart runs in this mode and context.
    Context(Ownership),
    /// The code of the runs that follow is in this space of the image, until the next of
    /// these, or until the context changes: then it is in the space of the context.
    Code(SpaceId),
    /// The run that follows starts at this time, in the trace's unit. Between
    /// two of these, time is unknown.
    Time(u64),
    /// A data access by an instruction of the run before it, if that is known.
    Access(DataAccess),
    /// Something the trace reports beside the flow.
    Mark(Mark),
    /// Something is missing here.
    Gap(Gap),
    /// Data accesses are missing here, or it is not known which instructions made
    /// them. The flow of control has no gap.
    DataGap(DataGap),
    /// Something may be missing here; decoding goes on.
    Warning(Warning),
    /// Instructions given last may have been others.
    Unconfirmed(Unconfirmed),
}

/// Retired instructions that are contiguous in memory, up to and
/// including one that ends the stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// Address of the first instruction.
    pub start: u64,
    /// Address after the last instruction.
    pub end: u64,
    /// Where the hart went from there.
    pub next: u64,
    /// Number of instructions, at least one.
    pub insns: u32,
    /// How the last instruction sent the hart to `next`.
    pub exit: Exit,
    /// Length of the last instruction in bytes.
    pub last: u8,
}

impl Run {
    /// Address of the last instruction, the source of the transfer to `next`.
    #[must_use]
    #[inline]
    pub const fn source(&self) -> u64 {
        self.end.wrapping_sub(self.last as u64)
    }

    /// Its length in halfwords.
    #[must_use]
    #[inline]
    pub const fn halfwords(&self) -> u32 {
        (self.end.wrapping_sub(self.start) / 2) as u32
    }
}

/// How a run ended: the class of its last instruction and, for a branch, its
/// outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Exit {
    /// No transfer: the trace has more to say between this instruction and
    /// the next (a trap, a sync point, the end). `next` equals `end`.
    Stop,
    /// A branch that was not taken; `next` equals `end`.
    NotTaken,
    /// A taken branch.
    Taken,
    /// A direct jump without linkage.
    DirectJump,
    /// A direct call.
    DirectCall,
    /// A direct jump that links another register.
    OtherDirect,
    /// An indirect jump without linkage.
    IndirectJump,
    /// An indirect call.
    IndirectCall,
    /// An indirect jump that links another register.
    OtherIndirect,
    /// A function return.
    Return,
    /// A co-routine swap.
    Swap,
    /// A return from a trap.
    TrapReturn,
}

impl Exit {
    /// All of them, each at the place of its number.
    pub const ALL: [Exit; 12] = [
        Exit::Stop,
        Exit::NotTaken,
        Exit::Taken,
        Exit::DirectJump,
        Exit::DirectCall,
        Exit::OtherDirect,
        Exit::IndirectJump,
        Exit::IndirectCall,
        Exit::OtherIndirect,
        Exit::Return,
        Exit::Swap,
        Exit::TrapReturn,
    ];

    /// Of a jump whose target the code determines.
    #[must_use]
    pub const fn direct(link: Link) -> Exit {
        match link {
            Link::Call => Exit::DirectCall,
            Link::None => Exit::DirectJump,
            Link::Return | Link::Swap | Link::Other => Exit::OtherDirect,
        }
    }

    /// Of a jump to an address in a register.
    #[must_use]
    pub const fn indirect(link: Link) -> Exit {
        match link {
            Link::Call => Exit::IndirectCall,
            Link::None => Exit::IndirectJump,
            Link::Other => Exit::OtherIndirect,
            Link::Return => Exit::Return,
            Link::Swap => Exit::Swap,
        }
    }

    /// Whether the code does not determine where it leads.
    #[must_use]
    #[inline]
    pub const fn is_indirect(self) -> bool {
        matches!(
            self,
            Exit::IndirectJump
                | Exit::IndirectCall
                | Exit::OtherIndirect
                | Exit::Return
                | Exit::Swap
                | Exit::TrapReturn
        )
    }

    /// Whether a return stack may change with it: calls, returns and swaps.
    #[must_use]
    #[inline]
    pub const fn stacks(self) -> bool {
        matches!(
            self,
            Exit::DirectCall | Exit::IndirectCall | Exit::Return | Exit::Swap
        )
    }
}

/// The mode and context a hart runs in, as far as the trace reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ownership {
    /// Privilege mode, if reported.
    pub mode: Option<Mode>,
    /// Software context, if reported.
    pub context: Option<Context>,
}

/// A data access and the instruction it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataAccess {
    /// Index of the instruction in the run before this event; `None` if it is not
    /// known which instruction made the access.
    pub insn: Option<u32>,
    /// The access.
    pub access: Access,
    /// Whether the trace reports the address; without it `access.addr` is 0.
    pub has_address: bool,
    /// Which part of it this is.
    pub part: Part,
}

impl DataAccess {
    /// All of an access of the instruction with this index.
    #[must_use]
    pub const fn of(insn: u32, access: Access) -> DataAccess {
        DataAccess {
            insn: Some(insn),
            access,
            has_address: true,
            part: Part::Whole,
        }
    }
}

/// The parts of an access that a trace reports one after the other. Only a decoder
/// whose output is not [tied](crate::Tie) gives parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// All of it.
    Whole,
    /// The request: what was read comes with the response of the same number.
    Request(u16),
    /// The response: what was read; `None` if the access failed.
    Response(u16),
}

/// A report beside the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mark {
    /// Tracing starts here.
    On,
    /// Tracing ends here; what follows is another stretch of execution.
    Off,
    /// A trigger or watchpoint named the instruction that follows.
    Notify,
    /// An external trigger.
    External(u8),
    /// The hart halted for a debugger.
    Halted,
    /// The hart left debug mode.
    Resumed,
    /// The hart was reset.
    Reset,
    /// The hart entered a low-power state.
    PowerDown,
    /// The hart left the low-power state.
    PowerUp,
    /// The trace synchronised for another reason, by the protocol's code.
    Sync(u8),
    /// A vendor's own message, by its type code.
    Vendor(u16),
}

/// Something the trace does not report, or reports wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Byte offset in the trace where it was noticed.
    pub at: u64,
    /// What happened.
    pub reason: Reason,
    /// Bytes of trace that could not be used.
    pub bytes: u64,
    /// How many of the instructions given last nothing in the trace confirmed.
    pub unconfirmed: u64,
}

/// Data accesses that a trace does not report, up to its next synchronisation, or that
/// cannot be assigned to instructions.
///
/// A consumer of control flow need not take notice of it. The accesses given before it are
/// right; those after it, up to the next synchronisation, have no instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataGap {
    /// Byte offset in the trace where it was noticed.
    pub at: u64,
    /// What happened.
    pub reason: Reason,
}

/// Something that a reader of the trace should know of, at which decoding goes
/// on: a message that may be a damaged one, a trace that ends without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Byte offset in the trace.
    pub at: u64,
    /// What it is.
    pub reason: Reason,
    /// Instructions may be missing. Otherwise only what is not part of the flow
    /// of control is left out.
    pub is_loss: bool,
}

/// Instructions that were decoded with code that may have been another one at the time: it
/// changed between the two times that the trace reports, or the code history is not certain
/// of it. Nothing in the trace contradicts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unconfirmed {
    /// How many of the instructions given last, at least one.
    pub insns: u64,
    /// Address of the first instruction that is in doubt.
    pub address: u64,
}

/// Why there is a gap: a stable code such as `NT0203` and the value that
/// goes with it. Each protocol documents its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reason {
    /// Stable across versions: two letters for the protocol, four digits.
    pub code: &'static str,
    /// What the code means, in a few words.
    pub text: &'static str,
    /// The offending value: an address, a field, a count.
    pub value: u64,
}

impl Reason {
    /// The value, if there is one. Only where a trace contradicts the code, which are the
    /// codes from 301 on, the value is an address, and 0 is one too.
    #[must_use]
    pub fn shown_value(&self) -> Option<u64> {
        let is_address = self.code.get(2..4) == Some("03");
        (is_address || self.value != 0).then_some(self.value)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.text)?;
        match self.shown_value() {
            Some(value) => write!(f, " ({value:#x})"),
            None => Ok(()),
        }
    }
}

/// Takes events. [`ControlFlow::Break`] asks the decoder for a pause: it stops
/// after the message it is at, and feeding continues from there.
pub trait Consumer {
    /// One event of one hart, in the order of the stream.
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()>;

    /// Several runs at once, the fast path of every decoder.
    fn runs(&mut self, hart: HartId, runs: &[Run]) -> ControlFlow<()> {
        let mut flow = ControlFlow::Continue(());
        for &run in runs {
            // A pause comes after the slice, never inside it.
            if self.event(hart, &Event::Run(run)).is_break() {
                flow = ControlFlow::Break(());
            }
        }
        flow
    }

    /// Runs with the times of their starts: a time and a run for each.
    fn timed_runs(&mut self, hart: HartId, runs: &[(u64, Run)]) -> ControlFlow<()> {
        let mut flow = ControlFlow::Continue(());
        for &(time, run) in runs {
            for event in [Event::Time(time), Event::Run(run)] {
                if self.event(hart, &event).is_break() {
                    flow = ControlFlow::Break(());
                }
            }
        }
        flow
    }

    /// Several accesses of the run before them.
    fn accesses(&mut self, hart: HartId, accesses: &[DataAccess]) -> ControlFlow<()> {
        let mut flow = ControlFlow::Continue(());
        for &access in accesses {
            if self.event(hart, &Event::Access(access)).is_break() {
                flow = ControlFlow::Break(());
            }
        }
        flow
    }

    /// As [`Consumer::accesses`], of whole loads and stores that are not assigned to
    /// instructions: the fast path of decoders of data trace.
    fn plain_accesses(&mut self, hart: HartId, accesses: PlainAccesses<'_>) -> ControlFlow<()> {
        let mut flow = ControlFlow::Continue(());
        in_slices(accesses.iter(), |slice| {
            if self.accesses(hart, slice).is_break() {
                flow = ControlFlow::Break(());
            }
        });
        flow
    }

    /// As [`Consumer::runs`], of runs that come again under the same name: what a
    /// consumer finds out about them it can keep.
    #[inline]
    fn kept_runs(&mut self, hart: HartId, kept: Kept, runs: &[Run]) -> ControlFlow<()> {
        let _ = kept;
        self.runs(hart, runs)
    }

    /// As [`Consumer::kept_runs`], each run followed by the accesses of its instructions.
    fn tied_runs(&mut self, hart: HartId, tied: &TiedRuns<'_>) -> ControlFlow<()> {
        tied.give_to(hart, self)
    }

    /// Whether [`Consumer::kept_runs`] costs it less than [`Consumer::runs`]. A source
    /// may gather the runs of others and give many at once.
    fn keeps(&self) -> bool {
        false
    }

    /// Whether it looks at addresses and data of accesses. A source may leave them 0 for a
    /// consumer that does not.
    fn looks_at_values(&self) -> bool {
        true
    }

    /// Whether all it wants to know of runs is how many instructions they have, and how many
    /// accesses: a source may then call [`Consumer::counted`] instead of giving them.
    fn only_counts(&self) -> bool {
        false
    }

    /// So many instructions and accesses of theirs, instead of their runs.
    fn counted(&mut self, hart: HartId, counted: Totals) -> ControlFlow<()> {
        let _ = (hart, counted);
        ControlFlow::Continue(())
    }
}

/// What is in runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Instructions.
    pub insns: u64,
    /// Data accesses that were assigned to them.
    pub accesses: u64,
}

impl AddAssign for Totals {
    #[inline]
    fn add_assign(&mut self, more: Totals) {
        self.insns += more.insns;
        self.accesses += more.accesses;
    }
}

impl Totals {
    /// So many instructions.
    #[must_use]
    #[inline]
    pub const fn insns(insns: u64) -> Totals {
        Totals { insns, accesses: 0 }
    }
}

/// A place in a trace from which it can be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Offset of the byte with which a decoder starts.
    pub offset: u64,
    /// Offset from which on its state is that of a decoder of the whole trace.
    pub position: u64,
}

/// A consumer that takes note of checkpoints.
pub trait Marked: Consumer {
    /// Whether it has dealt with all events that it got.
    fn is_ready(&self) -> bool;

    /// What comes next is decoded again from this checkpoint.
    fn mark(&mut self, checkpoint: Checkpoint);
}

/// What takes the events of a piece of a trace, while others take those of other
/// pieces.
pub trait Gather: Consumer + Send {
    /// Whether it has gathered so much that it should be given out as soon as
    /// it is its turn.
    fn is_full(&self) -> bool {
        false
    }

    /// Gives out what it has gathered. Parts have their turns in the order of the
    /// trace, one at a time, and each perhaps several. A break ends the decoding.
    /// Nothing is done for a part that its owner empties.
    fn give(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl<G: Gather + ?Sized> Gather for Box<G> {
    fn is_full(&self) -> bool {
        (**self).is_full()
    }

    fn give(&mut self) -> ControlFlow<()> {
        (**self).give()
    }
}

/// What points to a consumer is one.
macro_rules! passed_on {
    ($($pointer:ty),+) => {$(
        impl<C: Consumer + ?Sized> Consumer for $pointer {
            fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
                (**self).event(hart, event)
            }

            fn runs(&mut self, hart: HartId, runs: &[Run]) -> ControlFlow<()> {
                (**self).runs(hart, runs)
            }

            fn timed_runs(&mut self, hart: HartId, runs: &[(u64, Run)]) -> ControlFlow<()> {
                (**self).timed_runs(hart, runs)
            }

            fn accesses(&mut self, hart: HartId, accesses: &[DataAccess]) -> ControlFlow<()> {
                (**self).accesses(hart, accesses)
            }

            fn plain_accesses(
                &mut self,
                hart: HartId,
                accesses: PlainAccesses<'_>,
            ) -> ControlFlow<()> {
                (**self).plain_accesses(hart, accesses)
            }

            fn kept_runs(&mut self, hart: HartId, kept: Kept, runs: &[Run]) -> ControlFlow<()> {
                (**self).kept_runs(hart, kept, runs)
            }

            fn tied_runs(&mut self, hart: HartId, tied: &TiedRuns<'_>) -> ControlFlow<()> {
                (**self).tied_runs(hart, tied)
            }

            fn keeps(&self) -> bool {
                (**self).keeps()
            }

            fn looks_at_values(&self) -> bool {
                (**self).looks_at_values()
            }

            fn only_counts(&self) -> bool {
                (**self).only_counts()
            }

            fn counted(&mut self, hart: HartId, counted: Totals) -> ControlFlow<()> {
                (**self).counted(hart, counted)
            }
        }
    )+};
}

passed_on!(&mut C, Box<C>);
