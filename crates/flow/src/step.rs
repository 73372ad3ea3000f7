//! Steps: what a hart did, the input of every encoder, verifier and recorder.
//!
//! Steps come from the built-in hart, from another simulator's log or from a
//! list of pcs, in program order. A receiver of steps is an [`Observer`]; it
//! declares at compile time what it [wants](Wants), so that the source computes
//! nothing that is not used.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::{BitOr, BitOrAssign};

use hartrace_isa::length;

use crate::{Context, Few, HartId, Mode, Straights};

/// One thing a hart did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// An instruction retired.
    Insn(Insn),
    /// A trap was taken. An instruction that traps does not retire: it appears
    /// here and in no [`Step::Insn`].
    Trap(TrapStep),
    /// Something happened beside the instruction stream.
    Signal(Signal),
}

/// A retired instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Insn {
    /// Its address.
    pub pc: u64,
    /// Where the hart goes next; when a trap follows, the trap's `epc`.
    pub next: u64,
    /// Time of retirement in the source's own unit, 0 where there is none.
    pub time: u64,
    /// Software context it ran in.
    pub context: Context,
    /// The instruction; 16-bit ones in the low half, of longer ones the first
    /// 32 bits.
    pub bits: u32,
    /// Privilege mode it ran in.
    pub mode: Mode,
}

#[allow(clippy::len_without_is_empty)] // an instruction is never empty
impl Insn {
    /// Length in bytes.
    #[must_use]
    #[inline]
    pub const fn len(&self) -> u8 {
        length(self.bits as u16)
    }

    /// The address after it, where execution continues unless it jumps. Not
    /// wrapped: after the last instruction of RV32's address space this is
    /// 2^32 and `next` is 0.
    #[must_use]
    #[inline]
    pub const fn end(&self) -> u64 {
        self.pc.wrapping_add(self.len() as u64)
    }
}

/// A trap as a step: the trap and the circumstances the hart knew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrapStep {
    /// The trap.
    pub trap: Trap,
    /// The instruction that trapped; `None` for interrupts, for fetch faults
    /// and where the source does not say.
    pub bits: Option<u32>,
    /// Privilege mode before the trap.
    pub mode: Mode,
    /// Software context before the trap.
    pub context: Context,
    /// Time of the trap in the source's own unit.
    pub time: u64,
}

/// A trap, as reported by steps and events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trap {
    /// The instruction that trapped, or before which an interrupt was taken;
    /// `None` if the trace does not report it. Steps of a hart or a log have it.
    pub epc: Option<u64>,
    /// First address of the handler; `None` where the source or the trace ends
    /// before it.
    pub handler: Option<u64>,
    /// Why.
    pub cause: Cause,
    /// The trap value, where it is known.
    pub tval: Option<u64>,
    /// When an interrupt became pending, in the unit of the source's time: when its bit in
    /// `mip` was set. `None` for exceptions, and where the source does not report it.
    pub pending: Option<u64>,
}

/// Why a trap was taken, as far as the source knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// An exception, with its code in xcause if known.
    Exception(Option<u32>),
    /// An interrupt, with its code in xcause (top bit left out) if known.
    Interrupt(Option<u32>),
    /// The source shows only that control went elsewhere.
    Unknown,
}

impl Cause {
    /// The cause of an instruction that always traps: `ecall`, whose code
    /// depends on the mode it ran in, or `ebreak`.
    #[must_use]
    pub const fn of_instruction(bits: u32, mode: Option<Mode>) -> Cause {
        Cause::Exception(match (bits, mode) {
            (0x73, Some(Mode::U | Mode::VU)) => Some(8),
            (0x73, Some(Mode::S)) => Some(9),
            (0x73, Some(Mode::VS)) => Some(10),
            (0x73, Some(Mode::M)) => Some(11),
            (0x73, _) => None,
            _ => Some(3),
        })
    }
}

/// What happens beside the instruction stream. A signal stands before the
/// instruction it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// The hart halted, usually for a debugger.
    Halted,
    /// The hart runs again.
    Resumed,
    /// The hart was reset.
    Reset,
    /// The hart entered a low-power state, in which nothing retires.
    PowerDown,
    /// The hart left the low-power state.
    PowerUp,
    /// Debug trigger with action trace-on, at the instruction that follows.
    TraceOn,
    /// Debug trigger with action trace-off, at the instruction that follows.
    TraceOff,
    /// Debug trigger with action trace-notify, at the instruction that follows.
    Notify,
    /// An external trigger input, by number.
    External(u8),
    /// State changed without an instruction: a pending interrupt, a timer, a
    /// debugger's write. The step's [`Effects`] say what.
    Update,
    /// Steps are missing here: the source was damaged or dropped something.
    Lost,
    /// Steps are left out here: the trace they come from was switched off.
    Untraced,
}

/// An integer or floating-point register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RegId {
    /// x0 to x31.
    X(u8),
    /// f0 to f31.
    F(u8),
}

impl Default for RegId {
    fn default() -> Self {
        RegId::X(0)
    }
}

/// A register that was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegWrite {
    /// Which.
    pub reg: RegId,
    /// The new value, zero-extended.
    pub value: u64,
}

/// A CSR that was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CsrWrite {
    /// Its number, 0 to 0xfff.
    pub csr: u16,
    /// The new value, zero-extended.
    pub value: u64,
}

/// What an access does, with the codes of the data ingress signal `dtype`
/// (E-Trace table 4.9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)] // the names are the specification's
pub enum AccessKind {
    #[default]
    Load = 0,
    Store = 1,
    CsrReadWrite = 4,
    CsrReadSet = 5,
    CsrReadClear = 6,
    /// A compare-and-swap that failed (E-Trace 2.05; reserved before).
    CompareSwapFailure = 7,
    AtomicSwap = 8,
    AtomicAdd = 9,
    AtomicAnd = 10,
    AtomicOr = 11,
    AtomicXor = 12,
    AtomicMax = 13,
    AtomicMin = 14,
    /// A store-conditional that failed (E-Trace 2.0; reserved in the draft).
    ConditionalStoreFailure = 15,
}

impl AccessKind {
    /// The kind with this `dtype` code.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<AccessKind> {
        Some(match code {
            0 => AccessKind::Load,
            1 => AccessKind::Store,
            4 => AccessKind::CsrReadWrite,
            5 => AccessKind::CsrReadSet,
            6 => AccessKind::CsrReadClear,
            7 => AccessKind::CompareSwapFailure,
            8 => AccessKind::AtomicSwap,
            9 => AccessKind::AtomicAdd,
            10 => AccessKind::AtomicAnd,
            11 => AccessKind::AtomicOr,
            12 => AccessKind::AtomicXor,
            13 => AccessKind::AtomicMax,
            14 => AccessKind::AtomicMin,
            15 => AccessKind::ConditionalStoreFailure,
            _ => return None,
        })
    }

    /// The `dtype` code.
    #[must_use]
    #[inline]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Whether it is an access that failed: it has what it would have stored, and reads
    /// nothing.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        matches!(
            self,
            AccessKind::ConditionalStoreFailure | AccessKind::CompareSwapFailure
        )
    }

    /// Whether it is an access to a CSR.
    #[must_use]
    pub const fn is_csr(self) -> bool {
        matches!(
            self,
            AccessKind::CsrReadWrite | AccessKind::CsrReadSet | AccessKind::CsrReadClear
        )
    }
}

/// One access to memory or, in data trace, to a CSR.
///
/// | instruction | `kind` | `data` | `operand` |
/// |---|---|---|---|
/// | load, `lr`, floating-point load | `Load` | loaded | |
/// | store, floating-point store | `Store` | stored | |
/// | `sc` that succeeds | `Store` | stored | |
/// | `sc` that fails | `ConditionalStoreFailure` | what it would have stored, or `None` | |
/// | compare-and-swap that fails | `Load` | loaded | what it would have stored, if that is known |
/// | the same in traces that have it | `CompareSwapFailure` | what it would have stored, or `None` | |
/// | atomic memory operation | `Atomic…` | stored, which is the result | read from memory |
/// | CSR instruction | `Csr…` | written, or read if nothing is written | read; nothing for a read-only CSR |
///
/// Values are the bytes in memory as a number, zero-extended: neither
/// sign-extended nor boxed. A misaligned access is one access of its full
/// size, even across two pages: `paddr` is then where its first byte is, and
/// the other page may be anywhere. Signed and unsigned minima have the same
/// kind, and so have maxima.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// What it does.
    pub kind: AccessKind,
    /// log2 of its size in bytes.
    pub size: u8,
    /// Effective (virtual) address, or CSR number.
    pub addr: u64,
    /// Physical address, if the source reports it.
    pub paddr: Option<u64>,
    /// The value stored, or loaded; zero-extended. `None` where the source
    /// does not report it.
    pub data: Option<u64>,
    /// Atomics: the value read. CSRs: the value read, or the operand, as the
    /// source has it. Loads of a compare-and-swap that failed: what it would have stored.
    pub operand: Option<u64>,
}

impl Access {
    /// A load of a compare-and-swap that failed as an access of its own kind, which ports
    /// and traces of E-Trace 2.05 have. `None` for any other access.
    #[must_use]
    pub const fn failed_swap(&self) -> Option<Access> {
        match (self.kind, self.operand) {
            (AccessKind::Load, Some(_)) => Some(Access {
                kind: AccessKind::CompareSwapFailure,
                data: self.operand,
                operand: None,
                ..*self
            }),
            _ => None,
        }
    }
}

/// Everything an instruction changed. Sized for `cm.push` and `cm.popret`:
/// thirteen registers, the stack pointer and as many accesses.
///
/// The built-in hart reports every register, every CSR and every byte of memory that
/// changes, with these exceptions: counters, time, pending interrupts, and the counts and
/// hits of debug triggers run by themselves, so that only writes of programs to them are
/// reported; the A and
/// D bits that a page-table walker sets; bit 1 of `mepc` and `sepc`, which is
/// hidden while `misa` has no C. What an instruction that traps has read, or
/// a misaligned store of it has left in the first of two pages, is not reported
/// either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Registers written, x0 never among them.
    pub regs: Few<RegWrite, 16>,
    /// CSRs written, by the instruction or by the trap, with what they then
    /// hold, changed or not. A write through a view is reported for the register
    /// that has the bits: of `mstatus` for `sstatus`, of `mie` for `sie`, of
    /// `mip` for `sip`, of `fflags` and `frm` for `fcsr`.
    pub csrs: Few<CsrWrite, 12>,
    /// Memory accesses in program order.
    pub accesses: Few<Access, 16>,
    /// The access of a CSR instruction, which also reads; `csrs` has what it wrote.
    pub csr_access: Option<Access>,
    /// The privilege mode after the step, where it changed and the source
    /// reports it; the next step has it in any case.
    pub mode: Option<Mode>,
    /// More happened than there is room for, or than can be reported here (vector
    /// registers).
    pub incomplete: bool,
}

impl Effects {
    /// No effects.
    pub const NONE: Effects = Effects {
        regs: Few::vacant(RegWrite {
            reg: RegId::X(0),
            value: 0,
        }),
        csrs: Few::vacant(CsrWrite { csr: 0, value: 0 }),
        accesses: Few::vacant(Access {
            kind: AccessKind::Load,
            size: 0,
            addr: 0,
            paddr: None,
            data: None,
            operand: None,
        }),
        csr_access: None,
        mode: None,
        incomplete: false,
    };

    /// Forgets everything.
    #[inline]
    pub fn clear(&mut self) {
        self.regs.clear();
        self.csrs.clear();
        self.accesses.clear();
        self.csr_access = None;
        self.mode = None;
        self.incomplete = false;
    }

    /// Becomes a copy of `other`. There is room for far more than an
    /// instruction does: only what is there is copied.
    #[inline]
    pub fn copy_from(&mut self, other: &Effects) {
        self.regs.copy_from(&other.regs);
        self.csrs.copy_from(&other.csrs);
        self.accesses.copy_from(&other.accesses);
        self.csr_access = other.csr_access;
        self.mode = other.mode;
        self.incomplete = other.incomplete;
    }
}

/// What an observer wants to receive: a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants(u8);

impl Wants {
    /// Nothing at all.
    pub const NOTHING: Wants = Wants(0);
    /// Instructions that did not go on to the next one in memory.
    pub const TRANSFERS: Wants = Wants(1);
    /// Every instruction.
    pub const INSNS: Wants = Wants(1 | 2);
    /// Traps and signals.
    pub const EVENTS: Wants = Wants(4);
    /// Register writes in [`Effects`].
    pub const REGS: Wants = Wants(8);
    /// CSR writes in [`Effects`].
    pub const CSRS: Wants = Wants(16);
    /// Accesses in [`Effects`].
    pub const ACCESSES: Wants = Wants(32);
    /// Any part of [`Effects`].
    pub const EFFECTS: Wants = Wants(8 | 16 | 32);
    /// Every step, no effects.
    pub const STEPS: Wants = Wants(1 | 2 | 4);
    /// Every step with all its effects.
    pub const ALL: Wants = Wants(63);
    /// Data accesses, which may also come with many instructions at once
    /// ([`Straights::accesses`]). To be used instead of [`Wants::ACCESSES`].
    pub const DATA: Wants = Wants(64);
    /// Effects may also come with many instructions at once ([`Straights::changes`]). A
    /// source that is compiled for one observer reports single steps without this.
    pub const CHANGES: Wants = Wants(128);

    /// Whether all of `other` is wanted.
    #[must_use]
    pub const fn contains(self, other: Wants) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any of `other` is wanted.
    #[must_use]
    pub const fn overlaps(self, other: Wants) -> bool {
        self.0 & other.0 != 0
    }

    /// Both sets together; [`BitOr`] for constants.
    #[must_use]
    pub const fn with(self, other: Wants) -> Wants {
        Wants(self.0 | other.0)
    }
}

impl BitOr for Wants {
    type Output = Wants;
    fn bitor(self, other: Wants) -> Wants {
        self.with(other)
    }
}

impl BitOrAssign for Wants {
    fn bitor_assign(&mut self, other: Wants) {
        *self = self.with(other);
    }
}

/// Watches steps. A source is generic over its observer and compiled together
/// with it: what [`Observer::WANTS`] leaves out costs nothing.
pub trait Observer {
    /// What this observer receives; a source may report more.
    const WANTS: Wants;

    /// A step of a hart and what it changed. Of `effects` only the parts in
    /// [`Observer::WANTS`] are filled in.
    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects);

    /// Instructions of a hart, many at once, with their effects if the observer wants any.
    /// A source may call this instead of [`Observer::step`]. By default each instruction
    /// becomes a step.
    fn straights(&mut self, hart: HartId, code: &Straights<'_>) {
        steps_of(self, hart, code);
    }

    /// The source has ended.
    fn finish(&mut self) {}
}

/// The instructions as steps, as far as the observer wants them.
#[inline]
pub fn steps_of<O: Observer + ?Sized>(observer: &mut O, hart: HartId, code: &Straights<'_>) {
    static NONE: Effects = Effects::NONE;
    if !O::WANTS.contains(Wants::INSNS) {
        return;
    }
    if code.has_changes() || !code.accesses.is_empty() {
        code.each(|insn, effects| observer.step(hart, &Step::Insn(*insn), effects));
        return;
    }
    for insn in code.iter() {
        observer.step(hart, &Step::Insn(insn), &NONE);
    }
}

impl<O: Observer + ?Sized> Observer for &mut O {
    const WANTS: Wants = O::WANTS;

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        (**self).step(hart, step, effects);
    }

    fn straights(&mut self, hart: HartId, code: &Straights<'_>) {
        (**self).straights(hart, code);
    }

    fn finish(&mut self) {
        (**self).finish();
    }
}

/// Two observers are one.
impl<A: Observer, B: Observer> Observer for (A, B) {
    const WANTS: Wants = A::WANTS.with(B::WANTS);

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        self.0.step(hart, step, effects);
        self.1.step(hart, step, effects);
    }

    #[inline]
    fn straights(&mut self, hart: HartId, code: &Straights<'_>) {
        if code.has_changes() {
            // One of them may want less than the other.
            return steps_of(self, hart, code);
        }
        self.0.straights(hart, code);
        self.1.straights(hart, code);
    }

    fn finish(&mut self) {
        self.0.finish();
        self.1.finish();
    }
}

/// Any number of observers chosen at run time, for the command line. As a type it wants
/// everything; [`Many::wants`] says what its members want.
#[derive(Default)]
pub struct Many<'a> {
    members: Vec<Box<dyn AnyObserver + 'a>>,
    wants: Wants,
}

impl<'a> Many<'a> {
    /// No observers yet.
    #[must_use]
    pub fn new() -> Self {
        Many::default()
    }

    /// Adds one.
    pub fn push<O: Observer + 'a>(&mut self, observer: O) {
        self.push_wanting(O::WANTS, observer);
    }

    /// Adds one that wants less than its type says.
    pub fn push_wanting<O: Observer + 'a>(&mut self, wants: Wants, observer: O) {
        self.wants |= wants;
        self.members.push(Box::new(observer));
    }

    /// What they want.
    #[must_use]
    pub fn wants(&self) -> Wants {
        self.wants
    }
}

impl Observer for Many<'_> {
    const WANTS: Wants = Wants::ALL;

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        for member in &mut self.members {
            member.step(hart, step, effects);
        }
    }

    fn straights(&mut self, hart: HartId, code: &Straights<'_>) {
        if code.has_changes() {
            // Not all of them want all of it.
            return steps_of(self, hart, code);
        }
        for member in &mut self.members {
            member.straights(hart, code);
        }
    }

    fn finish(&mut self) {
        for member in &mut self.members {
            member.finish();
        }
    }
}

/// [`Observer`] without its constant, so that it can be boxed.
pub trait AnyObserver {
    /// As [`Observer::step`].
    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects);
    /// As [`Observer::straights`].
    fn straights(&mut self, hart: HartId, code: &Straights<'_>);
    /// As [`Observer::finish`].
    fn finish(&mut self);
}

impl<O: Observer> AnyObserver for O {
    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        Observer::step(self, hart, step, effects);
    }

    fn straights(&mut self, hart: HartId, code: &Straights<'_>) {
        Observer::straights(self, hart, code);
    }

    fn finish(&mut self) {
        Observer::finish(self);
    }
}
