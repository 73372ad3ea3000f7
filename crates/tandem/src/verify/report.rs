//! The reports of a verifier.

use core::fmt;
use core::ops::ControlFlow;

use hartrace_flow::Few;

use crate::group::Group;
use crate::read::Problem;
use crate::register::Register;

/// What differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// The instruction.
    Insn,
    /// The program counter after it.
    Pc,
    /// The privilege mode after it.
    Mode,
    /// A register.
    Register(Register),
    /// The address of a load.
    LoadAddress,
    /// The address of a store or an atomic operation.
    StoreAddress,
    /// Its size in bytes.
    StoreSize,
    /// What it stores.
    StoreData,
    /// An interrupt, by its code: of the trace alone one that was not enabled;
    /// of the model alone one that the trace does not report, and so where
    /// neither has a code and several could be it.
    Interrupt,
    /// The handler of a trap without a cause, where no trap of the model leads.
    Handler,
}

impl Field {
    /// The kind, for counters.
    #[must_use]
    pub const fn kind(self) -> Kind {
        match self {
            Field::Insn => Kind::Insn,
            Field::Pc => Kind::Pc,
            Field::Mode => Kind::Mode,
            Field::Register(register) => match register.number() {
                0x1020.. => Kind::Float,
                0x1000..=0x101f => Kind::Integer,
                _ => Kind::Csr,
            },
            Field::LoadAddress => Kind::Load,
            Field::StoreAddress | Field::StoreSize | Field::StoreData => Kind::Store,
            Field::Interrupt | Field::Handler => Kind::Interrupt,
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Field::Insn => f.write_str("instruction"),
            Field::Pc => f.write_str("pc"),
            Field::Mode => f.write_str("privilege mode"),
            Field::Register(register) => register.fmt(f),
            Field::LoadAddress => f.write_str("load address"),
            Field::StoreAddress => f.write_str("store address"),
            Field::StoreSize => f.write_str("store size"),
            Field::StoreData => f.write_str("store data"),
            Field::Interrupt => f.write_str("interrupt"),
            Field::Handler => f.write_str("trap handler"),
        }
    }
}

/// Kinds of what is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // they say what they are
pub enum Kind {
    Insn,
    Pc,
    Mode,
    Integer,
    Float,
    Csr,
    Load,
    Store,
    Interrupt,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 9] = [
        Kind::Insn,
        Kind::Pc,
        Kind::Mode,
        Kind::Integer,
        Kind::Float,
        Kind::Csr,
        Kind::Load,
        Kind::Store,
        Kind::Interrupt,
    ];

    /// A name for tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Insn => "instruction",
            Kind::Pc => "pc",
            Kind::Mode => "privilege",
            Kind::Integer => "integer register",
            Kind::Float => "floating-point register",
            Kind::Csr => "csr",
            Kind::Load => "load",
            Kind::Store => "store",
            Kind::Interrupt => "interrupt",
        }
    }
}

/// One value that differs. `None` on a side is a change that side did not
/// make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What.
    pub field: Field,
    /// What the model has.
    pub expected: Option<u64>,
    /// What the trace has.
    pub actual: Option<u64>,
}

impl Default for Difference {
    fn default() -> Self {
        Difference {
            field: Field::Pc,
            expected: None,
            actual: None,
        }
    }
}

/// A group that is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Past {
    /// Instructions before it, as in [`Mismatch::insn`].
    pub insn: u64,
    /// Number of the group.
    pub group: u64,
    /// Its byte offset.
    pub at: u64,
    /// Address of its instruction, or where an interrupt was taken.
    pub pc: u64,
    /// Its instruction; 0 for none.
    pub bits: u32,
}

/// A group in which trace and model differ.
#[derive(Debug)]
pub struct Mismatch<'a> {
    /// The group.
    pub group: &'a Group,
    /// Instructions before this one, those that trapped among them.
    pub insn: u64,
    /// The address of the instruction; before an interrupt, where it was
    /// taken.
    pub pc: u64,
    /// The instruction as the model has it; `None` where it has none.
    pub bits: Option<u32>,
    /// All that differs.
    pub differences: Few<Difference, 24>,
    /// The groups before it, the last one last.
    pub past: &'a [Past],
}

/// Receives the reports of a verifier. Breaking stops the verifier.
pub trait Reporter {
    /// Trace and model differ.
    fn mismatch(&mut self, mismatch: &Mismatch<'_>) -> ControlFlow<()>;

    /// Something is wrong with the trace. Going on means looking for a group
    /// after it.
    fn problem(&mut self, problem: &Problem) -> ControlFlow<()>;

    /// A group was found again, this many bytes after the problem.
    fn resumed(&mut self, skipped: u64) {
        _ = skipped;
    }
}

/// What a verifier has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Groups, with what stands outside of them.
    pub groups: u64,
    /// Instructions that retired.
    pub retired: u64,
    /// Exceptions.
    pub exceptions: u64,
    /// Interrupts.
    pub interrupts: u64,
    /// Groups that set state from outside.
    pub inits: u64,
    /// Resets.
    pub resets: u64,
    /// Groups that only update state, and what stands outside of groups.
    pub updates: u64,
    /// Values compared, by [`Kind`].
    pub compared: [u64; Kind::ALL.len()],
    /// Groups that differ.
    pub mismatches: u64,
    /// Values that differ, by [`Kind`].
    pub differences: [u64; Kind::ALL.len()],
    /// Loads from volatile memory whose value came from the trace.
    pub loads_taken: u64,
    /// Reads of volatile CSRs whose value came from the trace.
    pub csrs_taken: u64,
    /// Results of store-conditionals that came from the trace.
    pub conditionals_taken: u64,
    /// Differences that the trace took back: a later group agrees with what
    /// the model had, not with what the trace had reported.
    pub taken_back: u64,
    /// Changes of CSRs the model does not have.
    pub unmodelled: u64,
    /// Groups that could not be checked: the pc was not known, or an interrupt
    /// had no cause and the registers that enable it were not known either.
    pub unchecked: u64,
}

impl Counters {
    /// Instructions, those that trapped among them.
    #[must_use]
    pub const fn instructions(&self) -> u64 {
        self.retired + self.exceptions
    }

    #[inline(always)]
    pub(super) fn compare(&mut self, kind: Kind, count: u64) {
        if let Some(slot) = self.compared.get_mut(kind as usize) {
            *slot += count;
        }
    }

    pub(super) fn differ(&mut self, kind: Kind) {
        if let Some(slot) = self.differences.get_mut(kind as usize) {
            *slot += 1;
        }
    }
}
