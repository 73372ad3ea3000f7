//! What a log says about one instruction, whatever its format, and how a sequence of
//! that becomes steps.
//!
//! A reader of a format only fills an [`Entry`] for each line. [`EntrySteps`] does what
//! is the same for all of them: it follows the pc, finds traps that no line records,
//! follows privilege modes that no line has, and completes effects from the
//! instruction.

mod causes;
mod effects;
mod hart;
mod listed;
mod modes;
mod steps;

pub use steps::{EntryOptions, EntrySteps};

pub use effects::access_size;

pub(crate) use effects::{MemoryOp, mask};
pub(crate) use hart::{C_EBREAK, Ground, Hart};
pub(crate) use steps::{Out, parts, short};

use hartrace_flow::{Cause, CsrWrite, Few, HartId, Mode, RegId, RegWrite};
use hartrace_isa::Xlen;

/// One instruction as a log or a port such as RVFI has it: all that is optional is what
/// the source may not record.
///
/// ```
/// use hartrace_flow::{Effects, HartId, Observer, RegId, RegWrite, Step, Wants};
/// use hartrace_logs::{Entry, EntryOptions, EntrySteps};
///
/// struct Print;
/// impl Observer for Print {
///     const WANTS: Wants = Wants::ALL;
///     fn step(&mut self, _: HartId, step: &Step, effects: &Effects) {
///         println!("{step:?} {:?}", effects.regs);
///     }
/// }
///
/// let mut steps = EntrySteps::new(EntryOptions::default(), None);
/// let mut entry = Entry::default();
/// for (pc, bits) in [(0x1000, 0x4501), (0x1002, 0x4505)] {
///     entry.clear();
///     (entry.pc, entry.bits) = (pc, Some(bits));
///     entry.reg(RegId::X(10), pc >> 1 & 1);
///     steps.entry(&entry, &mut Print).unwrap();
/// }
/// steps.flush(&mut Print);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// The hart.
    pub hart: HartId,
    /// Address of the instruction.
    pub pc: u64,
    /// The instruction; `None` where the image has to supply it. Of a compressed one
    /// only the low half counts, of a long one these are its first 32 bits.
    pub bits: Option<u32>,
    /// The mode it ran in; `None` where it has to be followed
    /// ([`EntrySteps`]).
    pub mode: Option<Mode>,
    /// The width of the hart; `None`: that of the instruction set.
    pub xlen: Option<Xlen>,
    /// Where the hart goes if no interrupt is taken; `None` where only the next entry
    /// shows it.
    pub next: Option<u64>,
    /// Time of retirement in the unit of the source, 0 where there is none.
    pub time: u64,
    /// The instruction did not retire, or an interrupt was taken before it.
    pub trap: Option<EntryTrap>,
    /// The source lists it before it executes, and nothing shows that it did: if the hart
    /// goes where it cannot send it, it has trapped.
    pub unconfirmed: bool,
    /// It is the first instruction of a trap handler: a trap with this cause came before
    /// it, unless an entry has recorded that. Without more, an interrupt
    /// (`Cause::Interrupt(None)`).
    pub handler: Option<Cause>,
    /// Registers written. x0 may be among them.
    pub regs: Few<RegWrite, 16>,
    /// CSRs written.
    pub csrs: Few<CsrWrite, 12>,
    /// Memory accesses, in order.
    pub accesses: Few<EntryAccess, 16>,
    /// It has more effects than these.
    pub incomplete: bool,
}

/// A trap instead of a retired instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryTrap {
    /// Why it was taken.
    pub cause: Cause,
    /// The trap value.
    pub tval: Option<u64>,
}

/// A memory access as a source has it. What an atomic operation does is one access or
/// two, a load and a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryAccess {
    /// It stores.
    pub store: bool,
    /// Effective address; where the source has only the physical one, that.
    pub addr: u64,
    /// Physical address.
    pub paddr: Option<u64>,
    /// log2 of its size in bytes; `None`: that of the instruction.
    pub size: Option<u8>,
    /// What was stored, or loaded. A load without it takes it from the register that
    /// the instruction wrote.
    pub data: Option<u64>,
}

impl Entry {
    /// Forgets everything but the hart.
    #[inline]
    pub fn clear(&mut self) {
        self.bits = None;
        self.mode = None;
        self.xlen = None;
        self.next = None;
        self.time = 0;
        self.trap = None;
        self.unconfirmed = false;
        self.handler = None;
        self.regs.clear();
        self.csrs.clear();
        self.accesses.clear();
        self.incomplete = false;
    }

    /// A register was written.
    #[inline]
    pub fn reg(&mut self, reg: RegId, value: u64) {
        self.incomplete |= self.regs.push(RegWrite { reg, value }).is_err();
    }

    /// A CSR was written.
    #[inline]
    pub fn csr(&mut self, csr: u16, value: u64) {
        self.incomplete |= self.csrs.push(CsrWrite { csr, value }).is_err();
    }

    /// Memory was accessed.
    #[inline]
    pub fn access(&mut self, access: EntryAccess) {
        self.incomplete |= self.accesses.push(access).is_err();
    }

    /// It trapped, or an interrupt was taken before it.
    pub fn trapped(&mut self, cause: Cause) {
        self.trap = Some(EntryTrap { cause, tval: None });
    }
}
