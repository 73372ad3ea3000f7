//! A second E-Trace decoder, to compare the first with: plain, slow, and
//! written from the text of the specification alone. It shares no code with
//! any other crate, not even the classification of instructions.
//!
//! It reads a whole stream at once: first all packets ([`packets`]), then the
//! instructions ([`decode`]). With the next packet at hand it needs none of the
//! state that the pseudo code of the specification keeps for an address whose
//! meaning only the next packet settles (`inferred_address`).
//!
//! It is stricter than a decoder for users. Whatever the text excludes is an
//! error: padding that is no sign extension, an `updiscon` without a packet of
//! format 3 after it, a notification for the target of a jump, fields that
//! should repeat the bit before them and do not.
//!
//! Where the text leaves a choice, it follows `docs/etrace-clauses.md` and
//! `docs/etrace-implicit-return.md`: a rule of the encoder is part of the format.
//!
//! Not covered: data trace, streams of several harts, code that depends on the
//! context, `return_rule = "specification"`, `ending = "reference"`, `updiscon =
//! "next-row"`. A loss of packets is a new start.

mod flow;
mod insn;
mod modes;
mod packet;
#[cfg(test)]
mod tests;

pub use flow::decode;
pub use packet::{Packet, packets};

/// The version of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// The draft 1.1.1 of 2020.
    Draft,
    /// 2.0, ratified in 2022, with the clarifications of 2025.
    V2_0,
    /// 2.05, in public review: with the standard support packet.
    V2_05,
}

/// A run-time option, one bit of a support packet each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// 3.2.5
    ImplicitReturn,
    /// 3.2.3
    ImplicitException,
    /// 3.2.2
    FullAddress,
    /// 3.2.7
    JumpTargetCache,
    /// 3.2.6
    BranchPrediction,
    /// 3.2.4
    SequentialJump,
    /// A bit without a meaning.
    Reserved,
}

/// The parameters of the encoder (chapter 9), as widths in bits, and what else
/// a stream does not report.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The version of the specification.
    pub version: Version,
    /// Whether the program is one of RV32.
    pub rv32: bool,
    /// `iaddress_width_p`
    pub iaddress_width: u32,
    /// `iaddress_lsb_p`
    pub iaddress_lsb: u32,
    /// `privilege_width_p`
    pub privilege_width: u32,
    /// `context_width_p`; 0 with `nocontext_p`.
    pub context_width: u32,
    /// `time_width_p`; 0 with `notime_p`.
    pub time_width: u32,
    /// `ecause_width_p`
    pub ecause_width: u32,
    /// `f0s_width_p`
    pub f0s_width: u32,
    /// `bpred_size_p`
    pub bpred_size: u32,
    /// `cache_size_p`
    pub cache_size: u32,
    /// `call_counter_size_p`
    pub call_counter_size: u32,
    /// `return_stack_size_p`
    pub return_stack_size: u32,
    /// Width of `encoder_mode`.
    pub encoder_mode_width: u32,
    /// The bits of `ioptions` (`options` in the draft), lowest first. Those of
    /// 2.05 are fixed.
    pub ioptions: Vec<Mode>,
    /// The modes that are on before the first support packet.
    pub modes: Vec<Mode>,
    /// Width of `doptions`; `None` if a support packet has no fields for data
    /// trace. That of 2.05 is fixed.
    pub doptions_width: Option<u32>,
    /// Whether sequentially inferable returns count as such, which they do on
    /// an ingress port that does not distinguish returns from other jumps.
    pub sijump_returns: bool,
    /// Whether `irdepth` repeats the bit before it where it has nothing to
    /// report, as the text demands.
    pub repeats_irdepth: bool,
    /// The trap vectors that are known, as in `mtvec`, `stvec` and `vstvec`.
    pub vectors: [Option<u64>; 3],
    /// Whether there are `cm.popret` and `cm.popretz`.
    pub zcmp: bool,
    /// The targets of `cm.jt` and `cm.jalt`; none without them.
    pub jump_table: Vec<u64>,
}

/// What a stream reports, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// The trace starts.
    Start,
    /// An instruction at this address retired.
    Insn(u64),
    /// A trap was taken.
    Trap(Trap),
}

/// A trap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trap {
    /// Whether it is an interrupt.
    pub interrupt: bool,
    /// The cause, without the bit for interrupts.
    pub cause: u64,
    /// The trap value, where it is reported.
    pub tval: Option<u64>,
    /// Where the trap was taken, where that is reported or can be inferred.
    pub epc: Option<u64>,
    /// The first instruction of the handler; `None` if it did not retire.
    pub handler: Option<u64>,
}

/// What is wrong with a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainError {
    /// The number of the packet, from 0.
    pub packet: usize,
    /// What is wrong with it.
    pub what: String,
}

impl PlainError {
    fn new(packet: usize, what: impl Into<String>) -> PlainError {
        let what = what.into();
        PlainError { packet, what }
    }
}
