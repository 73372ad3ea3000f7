//! Groups: changes that happen together.

use alloc::vec::Vec;

use hartrace_flow::Mode;
use hartrace_isa::{Xlen, csr};

use crate::fault::Fault;
use crate::item::{Item, Request, Response};
use crate::register::Register;

/// An instruction in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Insn {
    /// The instruction; a 16-bit one in the low half.
    pub bits: u32,
    /// Its length in bytes by its opcode in the trace, 2 or 4.
    pub len: u8,
}

/// What a group says about the program counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewPc {
    /// It grows by the length of the instruction.
    Increment,
    /// It is this now.
    To(u64),
    /// The instruction was at the first; it is the second now.
    FromTo(u64, u64),
}

/// How a register has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The register.
    pub register: Register,
    /// How.
    pub how: How,
}

/// How a value has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// To this.
    Full(u64),
    /// By this much.
    Offset(i8),
    /// These bits were set.
    Mask(u8),
}

/// An access as the instruction sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// Physical address.
    pub paddr: Option<u64>,
    /// Effective address.
    pub eaddr: Option<u64>,
    /// What is stored: log2 of the size in bytes, and the data.
    pub store: Option<(u8, u64)>,
}

/// A memory request and its response, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// The request.
    pub request: Request,
    /// The response.
    pub response: Option<Response>,
}

/// State that changed at once (begin group to end group), or what stands
/// between two groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Byte offset of its first byte.
    pub at: u64,
    /// How many groups were before it, counting only those between begin and
    /// end.
    pub number: u64,
    /// It is outside begin and end: the order of its changes is unknown.
    pub outside: bool,
    /// The hart was reset.
    pub reset: bool,
    /// State was set from outside.
    pub init: bool,
    /// The privilege mode.
    pub mode: Option<Mode>,
    /// The instruction that retired or caused an exception.
    pub insn: Option<Insn>,
    /// The new pc.
    pub pc: Option<NewPc>,
    /// Physical address of the pc.
    pub pc_physical: Option<u64>,
    /// Time.
    pub mtime: Option<u64>,
    /// Registers, in the order of the trace.
    pub changes: Vec<Change>,
    /// Accesses as the instruction sees them, in the order of the trace. An
    /// address or data that its access has already begins the next one.
    pub data: Vec<Data>,
    /// Memory transactions, in the order of the trace.
    pub memory: Vec<Transaction>,
    /// Items, begin and end not counted.
    pub items: u32,
}

/// What a group reports, as far as it shows by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GroupKind {
    /// An instruction that retired.
    Instruction,
    /// An exception. One without a cause looks like an instruction.
    Exception,
    /// An interrupt: a new pc, and neither an instruction nor the cause of an
    /// exception.
    Interrupt,
    /// State that was set from outside.
    Init,
    /// A reset.
    Reset,
    /// State by itself: a time, a pending interrupt.
    State,
    /// What stands outside of begin and end.
    Outside,
}

impl GroupKind {
    /// All of them.
    pub const ALL: [GroupKind; 7] = [
        GroupKind::Instruction,
        GroupKind::Exception,
        GroupKind::Interrupt,
        GroupKind::Init,
        GroupKind::Reset,
        GroupKind::State,
        GroupKind::Outside,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            GroupKind::Instruction => "instruction",
            GroupKind::Exception => "exception",
            GroupKind::Interrupt => "interrupt",
            GroupKind::Init => "initial state",
            GroupKind::Reset => "reset",
            GroupKind::State => "state",
            GroupKind::Outside => "outside",
        }
    }
}

/// What traps write in a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrapCsr {
    Epc,
    Cause,
    Tval,
}

impl TrapCsr {
    /// Which of them a register is, if it is one: those of U, S, VS, M and of
    /// resumable non-maskable interrupts.
    #[inline]
    pub(crate) const fn of(register: Register) -> Option<TrapCsr> {
        match register.number() {
            csr::UEPC | csr::SEPC | csr::VSEPC | csr::MEPC | csr::MNEPC => Some(TrapCsr::Epc),
            csr::UCAUSE | csr::SCAUSE | csr::VSCAUSE | csr::MCAUSE | csr::MNCAUSE => {
                Some(TrapCsr::Cause)
            }
            csr::UTVAL | csr::STVAL | csr::VSTVAL | csr::MTVAL => Some(TrapCsr::Tval),
            _ => None,
        }
    }
}

impl Group {
    /// What it reports.
    #[must_use]
    pub fn kind(&self, xlen: Xlen) -> GroupKind {
        let exception = || match self.told(TrapCsr::Cause)?.how {
            How::Full(cause) => Some(cause >> (xlen.bits() - 1) & 1 == 0),
            How::Offset(_) | How::Mask(_) => None,
        };
        if self.outside {
            GroupKind::Outside
        } else if self.reset {
            GroupKind::Reset
        } else if self.init {
            GroupKind::Init
        } else if self.insn.is_some() {
            match self.traps() {
                true => GroupKind::Exception,
                false => GroupKind::Instruction,
            }
        } else if self.pc.is_none() {
            GroupKind::State
        } else if exception() == Some(true) {
            GroupKind::Exception
        } else {
            GroupKind::Interrupt
        }
    }

    /// The last change of a CSR that traps write, in any mode.
    pub(crate) fn told(&self, csr: TrapCsr) -> Option<&Change> {
        let mut changes = self.changes.iter().rev();
        changes.find(|c| TrapCsr::of(c.register) == Some(csr))
    }

    /// Whether a group with an instruction reports a trap: it wrote where the
    /// trap came from and why, which no instruction does.
    pub(crate) fn traps(&self) -> bool {
        if self.pc == Some(NewPc::Increment) || self.told(TrapCsr::Cause).is_none() {
            return false;
        }
        let bits = self.insn.map_or(0, |insn| insn.bits);
        let writes_csr = bits & 0x7f == 0x73 && bits >> 12 & 3 != 0;
        self.told(TrapCsr::Epc).is_some() || !writes_csr
    }

    /// Empties it.
    #[inline]
    pub(crate) fn clear(&mut self, at: u64, number: u64, outside: bool) {
        self.at = at;
        self.number = number;
        self.outside = outside;
        self.reset = false;
        self.init = false;
        self.mode = None;
        self.insn = None;
        self.pc = None;
        self.pc_physical = None;
        self.mtime = None;
        self.changes.clear();
        self.data.clear();
        self.memory.clear();
        self.items = 0;
    }

    /// Adds an item that is neither begin nor end.
    ///
    /// # Errors
    ///
    /// What makes the group ambiguous, with the offending value. The item is
    /// not in the group then.
    #[inline(always)]
    pub(crate) fn add(&mut self, item: &Item) -> Result<(), (Fault, u64)> {
        self.items += 1;
        match *item {
            Item::BeginGroup | Item::EndGroup => {}
            Item::IncrementPc => self.put_pc(NewPc::Increment, 3)?,
            Item::Pc(pc) => self.put_pc(NewPc::To(pc), pc)?,
            Item::TwoPcs(old, new) => self.put_pc(NewPc::FromTo(old, new), new)?,
            Item::Full(register, value) => self.change(register, How::Full(value))?,
            Item::Offset(register, offset) => self.change(register, How::Offset(offset))?,
            Item::Mask(register, mask) => self.change(register, How::Mask(mask))?,
            Item::Insn16(bits) => self.put_insn(bits.into(), 2)?,
            Item::Insn32(bits) => self.put_insn(bits, 4)?,
            Item::PhysicalAddress(addr) => {
                self.access(|d| d.paddr.is_some()).paddr = Some(addr);
            }
            Item::EffectiveAddress(addr) => {
                self.access(|d| d.eaddr.is_some()).eaddr = Some(addr);
            }
            Item::StoreData(size, data) => {
                self.access(|d| d.store.is_some()).store = Some((size, data));
            }
            Item::Mode(code) => match (Mode::from_code(code), self.mode) {
                (Some(mode @ (Mode::U | Mode::S | Mode::M)), None) => self.mode = Some(mode),
                (Some(Mode::U | Mode::S | Mode::M), Some(_)) => {
                    return Err((Fault::StateTwice, 1));
                }
                _ => return Err((Fault::UnknownMode, code.into())),
            },
            Item::Mtime(time) => once(&mut self.mtime, time, 8)?,
            Item::PcPhysical(addr) => once(&mut self.pc_physical, addr, 9)?,
            Item::Request(request) => self.memory.push(Transaction {
                request,
                response: None,
            }),
            Item::Response(response) => {
                if let Some(last) = self.memory.last_mut() {
                    last.response = Some(response);
                }
            }
            Item::Reset => self.reset = true,
            Item::StateInit => self.init = true,
        }
        Ok(())
    }

    /// What can be said only when the group is whole.
    ///
    /// # Errors
    ///
    /// What makes the group ambiguous, with the offending value.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), (Fault, u64)> {
        if self.insn.is_none() && self.pc == Some(NewPc::Increment) {
            return Err((Fault::IncrementAlone, 3));
        }
        if self.init && (self.insn.is_some() || self.reset) {
            return Err((Fault::InitWithExecution, 11));
        }
        Ok(())
    }

    #[inline]
    fn put_pc(&mut self, pc: NewPc, value: u64) -> Result<(), (Fault, u64)> {
        match self.pc {
            None => {
                self.pc = Some(pc);
                Ok(())
            }
            Some(_) => Err((Fault::TwoPcs, value)),
        }
    }

    #[inline]
    fn put_insn(&mut self, bits: u32, len: u8) -> Result<(), (Fault, u64)> {
        match self.insn {
            None => {
                self.insn = Some(Insn { bits, len });
                Ok(())
            }
            Some(_) => Err((Fault::TwoInsns, bits.into())),
        }
    }

    #[inline]
    fn change(&mut self, register: Register, how: How) -> Result<(), (Fault, u64)> {
        let number = u64::from(register.number());
        // Outside of groups there is no moment to be ambiguous about, and a
        // long group is searched only as far as instructions write.
        let twice = |c: &Change| c.register == register;
        if !self.outside && self.changes.iter().take(64).any(twice) {
            return Err((Fault::RegisterTwice, number));
        }
        if register.is_float() && !matches!(how, How::Full(_)) {
            return Err((Fault::FloatIncrement, number));
        }
        self.changes.push(Change { register, how });
        Ok(())
    }

    /// The access an address or data belongs to: the last, unless it has one.
    #[inline]
    fn access(&mut self, has: impl Fn(&Data) -> bool) -> &mut Data {
        if self.data.last().is_none_or(has) {
            self.data.push(Data::default());
        }
        let last = self.data.len().saturating_sub(1);
        // There is one: it was pushed if there was none.
        #[allow(clippy::indexing_slicing)]
        &mut self.data[last]
    }
}

fn once(slot: &mut Option<u64>, value: u64, identifier: u64) -> Result<(), (Fault, u64)> {
    if slot.is_some() {
        return Err((Fault::StateTwice, identifier));
    }
    *slot = Some(value);
    Ok(())
}
