//! The encoder: turns the steps of a hart into groups.
//!
//! There is one encoder per hart. Each step becomes one group, with its items
//! in the order of Appendix C: pc, instruction, registers, CSRs, addresses and
//! data, memory transactions, privilege mode. Registers and CSRs come in the
//! order of the step's effects; a register written twice appears with its last
//! value.
//!
//! Choices the text leaves open:
//!
//! * Groups report the new pc, so a reader knows the address of an instruction
//!   only from the previous group. If that group does not lead to the next
//!   instruction (at the start, after a reset, a loss or a debugger), a state
//!   initialisation with pc and privilege mode precedes it.
//! * Instructions longer than 32 bits have no opcode: their first 32 bits are
//!   recorded, always with the full pc.
//! * Modes have two bits: VS is recorded as S, VU as U and debug mode as M.
//! * A trap always records the mode it leads to, as in tables C.7 and C.8.
//! * A source may not know what a trap writes (Spike logs). Then `xepc`,
//!   `xcause` and `xtval` are derived from the trap, and the status register is
//!   omitted ([`Encoder::unreported`]). If only the next step shows the mode that a
//!   trap or a return led to, the group waits for that step.
//! * minstret is incremented by every instruction that retires, unless
//!   mcountinhibit (as the instruction leaves it) stops it or the instruction
//!   writes it. The carry into minstreth is not recorded. Exceptions retire
//!   nothing, though Appendix D counts them.
//! * For an atomic operation whose operand is unknown, the load and the store
//!   are recorded as transactions; chapter 3 allows both.

use alloc::vec::Vec;

use hartrace_flow::{Effects, Insn, Mode, RegWrite, Signal, Step};
use hartrace_isa::csr::{MCOUNTINHIBIT, MINSTRET, MINSTRETH};
use hartrace_isa::{MRET, SRET};

use crate::config::{Config, ConfigError, PcForm, PcStyle};
use crate::elements::Elements;
use crate::item::{Item, Operation, Request};
use crate::register::Register;

mod access;
mod out;
mod outside;
pub(crate) mod plain;
mod recorded;
mod straight;
mod trap;

#[cfg(test)]
mod tests;

use access::Operands;
use out::Out;
use plain::Plain;
use recorded::Recorded;

/// Takes the groups of an encoder, in order.
pub trait Sink {
    /// The bytes of one group, or of the end of the last.
    fn group(&mut self, bytes: &[u8]);

    /// The bytes of so many groups.
    #[inline]
    fn groups(&mut self, bytes: &[u8], count: u64) {
        let _ = count;
        self.group(bytes);
    }

    /// As [`group`](Sink::group) for the first bytes of an array. Its size is known when this is
    /// compiled: a sink that copies the whole array does so without a loop.
    #[inline]
    fn short_group<const ROOM: usize>(&mut self, bytes: &[u8; ROOM], len: usize) {
        self.group(bytes.get(..len).unwrap_or_default());
    }
}

impl Sink for Vec<u8> {
    #[inline]
    fn group(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    #[inline]
    fn short_group<const ROOM: usize>(&mut self, bytes: &[u8; ROOM], len: usize) {
        let end = self.len() + len.min(ROOM);
        self.extend_from_slice(bytes);
        self.truncate(end);
    }
}

impl<S: Sink> Sink for &mut S {
    #[inline]
    fn group(&mut self, bytes: &[u8]) {
        (**self).group(bytes);
    }

    #[inline]
    fn groups(&mut self, bytes: &[u8], count: u64) {
        (**self).groups(bytes, count);
    }

    #[inline]
    fn short_group<const ROOM: usize>(&mut self, bytes: &[u8; ROOM], len: usize) {
        (**self).short_group(bytes, len);
    }
}

/// What an encoder has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Groups written.
    pub groups: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Groups of instructions that retired.
    pub instructions: u64,
    /// Groups of traps.
    pub traps: u64,
    /// Instructions whose source did not report everything.
    pub incomplete: u64,
}

/// What a hart did, step by step, to groups. It wants to receive everything
/// ([`Wants::ALL`](hartrace_flow::Wants::ALL)).
///
/// ```
/// use hartrace_flow::{Effects, Insn, Step};
/// use hartrace_tandem::{Config, Encoder};
///
/// let mut encoder = Encoder::new(Config::default()).unwrap();
/// let mut bytes = Vec::new();
/// // c.nop
/// let insn = Insn { pc: 0x100, next: 0x102, bits: 1, ..Insn::default() };
/// encoder.step(&Step::Insn(insn), &Effects::default(), &mut bytes);
/// encoder.finish(&mut bytes);
/// // Where the trace starts, and the instruction.
/// let start = [1, 11, 7, 10, 0, 1, 0, 0, 0, 0, 0, 0, 7, 1, 3, 2];
/// assert_eq!(bytes, [&start[..], &[1, 3, 16, 1, 0, 2]].concat());
/// ```
#[derive(Clone, Debug)]
pub struct Encoder {
    config: Config,
    /// If the usual groups can be written at once.
    plain: Option<Plain>,
    out: Out,
    /// The recorded register values; only if differences are written.
    told: Option<Recorded>,
    operands: Operands,
    /// The pc as the trace has recorded it.
    pc: Option<u64>,
    /// The privilege mode as the trace has recorded it, by its code.
    mode: Option<u8>,
    /// An unknown pc must be recorded before the next step.
    place_due: bool,
    /// A step that waits for the next one, with its effects.
    waiting: Option<Step>,
    waiting_effects: Effects,
    /// What a debugger did, which waits for the place the hart goes on at.
    outside: Option<Effects>,
    /// mcountinhibit stops minstret.
    inhibited: bool,
    /// The last group has no end yet.
    open: bool,
    unreported: Elements,
    counters: Counters,
}

impl Encoder {
    /// An encoder at the start of a trace.
    ///
    /// # Errors
    ///
    /// A configuration that makes no sense.
    pub fn new(config: Config) -> Result<Encoder, ConfigError> {
        config.validate()?;
        Ok(Encoder {
            plain: Plain::new(&config),
            out: Out::new(),
            told: config.style.incremental.then(|| Recorded::new(config.xlen)),
            operands: Operands::new(&config),
            pc: None,
            mode: None,
            place_due: config.style.start,
            waiting: None,
            waiting_effects: Effects::default(),
            outside: None,
            inhibited: false,
            open: false,
            unreported: Elements::default(),
            counters: Counters::default(),
            config,
        })
    }

    /// What the trace is written by.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What has been written so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// What the trace does not record because the source does not, for a caller that
    /// reads it to know ([`Config::absent`]): CSRs that traps write.
    #[must_use]
    pub fn unreported(&self) -> &Elements {
        &self.unreported
    }

    /// A step of the hart and what it changed.
    #[inline]
    pub fn step<S: Sink>(&mut self, step: &Step, effects: &Effects, sink: &mut S) {
        if self.waiting.is_some() {
            self.release(step, sink);
        }
        match step {
            Step::Insn(insn) if effects.mode.is_none() && is_trap_return(insn.bits) => {
                self.wait(step, effects);
            }
            Step::Insn(insn) => {
                let plain = self.plain;
                if !plain.is_some_and(|plain| self.plain_insn(plain, insn, effects, sink)) {
                    self.insn(insn, effects, effects.mode, sink);
                }
            }
            Step::Trap(trap) => match trap::is_told(trap, effects) {
                true => self.trap(trap, effects, effects.mode.unwrap_or(trap.mode), sink),
                false => self.wait(step, effects),
            },
            Step::Signal(signal) => self.signal(*signal, effects, sink),
        }
    }

    /// Whether the trace is at this address in this mode, so that nothing has to be
    /// recorded before an instruction there, and it needs nothing of the next step.
    #[must_use]
    #[inline]
    pub fn is_at(&self, pc: u64, mode: Mode) -> bool {
        self.waiting.is_none()
            && self.outside.is_none()
            && self.pc == Some(pc)
            && self.mode == Some(mode_code(mode))
    }

    /// Passes over an instruction that goes to `next` and writes `reg`: the trace goes on
    /// after it, without a group for it. It must be one that changes no CSR and stays in
    /// its mode.
    #[inline]
    pub fn pass(&mut self, next: u64, reg: Option<&RegWrite>) {
        self.operands.follow(reg);
        self.pc = Some(next);
    }

    /// Memory as a loader fills it: state initialisations with one store each,
    /// of the largest size that is aligned.
    pub fn load<S: Sink>(&mut self, addr: u64, bytes: &[u8], sink: &mut S) {
        let (mut addr, mut rest) = (addr, bytes);
        while !rest.is_empty() {
            let aligned = addr.trailing_zeros().min(3);
            let size = aligned.min(rest.len().ilog2());
            let Some((now, behind)) = rest.split_at_checked(1 << size) else {
                return;
            };
            let mut data = [0; 8];
            data.iter_mut().zip(now).for_each(|(to, from)| *to = *from);
            self.begin();
            self.item(Item::StateInit);
            self.item(Item::Request(Request {
                addr,
                op: Operation::Store,
                size: size as u8,
                data: u64::from_le_bytes(data),
            }));
            self.end(sink);
            addr = addr.wrapping_add(1 << size);
            rest = behind;
        }
    }

    /// The trace ends: writes what still waits.
    pub fn finish<S: Sink>(&mut self, sink: &mut S) {
        self.release_unseen(sink);
        self.tell_outside(sink);
        if core::mem::take(&mut self.open) {
            self.counters.bytes += 1;
            sink.group(&[2]);
        }
    }

    /// Keeps a step until the next one shows what it lacks.
    fn wait(&mut self, step: &Step, effects: &Effects) {
        self.waiting = Some(*step);
        self.waiting_effects = *effects;
    }

    /// The next step has come: what waits can be written.
    #[cold]
    fn release<S: Sink>(&mut self, next: &Step, sink: &mut S) {
        let (pc, mode) = match next {
            Step::Insn(insn) => (Some(insn.pc), Some(insn.mode)),
            Step::Trap(trap) => (trap.trap.epc, Some(trap.mode)),
            Step::Signal(signal) if is_silent(*signal) => return,
            Step::Signal(_) => (None, None),
        };
        let effects = self.waiting_effects;
        match self.waiting.take() {
            Some(Step::Insn(insn)) => {
                let mode = mode.filter(|&mode| mode != insn.mode);
                self.insn(&insn, &effects, mode, sink);
            }
            Some(Step::Trap(mut trap)) => {
                trap.trap.handler = trap.trap.handler.or(pc);
                let mode = effects.mode.or(mode).unwrap_or(Mode::M);
                self.trap(&trap, &effects, mode, sink);
            }
            _ => {}
        }
    }

    /// No next step will come that shows anything.
    fn release_unseen<S: Sink>(&mut self, sink: &mut S) {
        if self.waiting.is_some() {
            self.release(&Step::Signal(Signal::Lost), sink);
        }
    }

    /// An instruction that retired, and the mode it has led to if that is new.
    #[inline(never)]
    fn insn<S: Sink>(&mut self, insn: &Insn, effects: &Effects, mode: Option<Mode>, sink: &mut S) {
        self.arrive(Some(insn.pc), insn.mode, sink);
        self.begin();
        let end = self.config.xlen.wrap(insn.end());
        self.pc_of_insn(insn, insn.next == end && insn.len() <= 4);
        if !self.config.absent.insn {
            self.bits(insn.bits);
        }
        self.changes(effects, false);
        if self.config.style.minstret {
            self.count(effects);
        }
        self.accesses(insn.bits, effects);
        if let Some(mode) = mode {
            self.new_mode(mode);
        }
        self.end(sink);
        self.operands.follow(&effects.regs[..]);
        self.pc = Some(insn.next);
        self.counters.instructions += 1;
        self.counters.incomplete += u64::from(effects.incomplete);
    }

    #[inline]
    fn pc_of_insn(&mut self, insn: &Insn, sequential: bool) {
        // An increment needs the instruction in its group (chapter 3).
        let increment = self.config.style.pc == PcStyle::Increment && !self.config.absent.insn;
        if !(sequential && increment) {
            self.new_pc(Some(insn.pc), insn.next);
        } else if !self.config.absent.pc {
            self.item(Item::IncrementPc);
        }
    }

    /// The new pc; `from` is the instruction's own.
    #[inline]
    fn new_pc(&mut self, from: Option<u64>, to: u64) {
        if self.config.absent.pc {
            return;
        }
        match self.config.pc {
            PcForm::New => self.item(Item::Pc(to)),
            PcForm::Both => self.item(Item::TwoPcs(from.unwrap_or(to), to)),
        }
    }

    #[inline]
    fn new_mode(&mut self, mode: Mode) {
        let code = mode_code(mode);
        self.mode = Some(code);
        if !self.config.absent.mode {
            self.item(Item::Mode(code));
        }
    }

    #[inline]
    fn bits(&mut self, bits: u32) {
        match bits & 3 {
            3 => self.item(Item::Insn32(bits)),
            _ => self.item(Item::Insn16(bits as u16)),
        }
    }

    /// Registers and CSRs.
    #[inline]
    fn changes(&mut self, effects: &Effects, in_trap: bool) {
        if let Some(told) = &mut self.told {
            told.begin();
        }
        let mut regs = &*effects.regs;
        while let [write, behind @ ..] = regs {
            regs = behind;
            if !behind.iter().any(|other| other.reg == write.reg) {
                self.change(write.reg.into(), write.value, in_trap);
            }
        }
        let mut csrs = &*effects.csrs;
        while let [write, behind @ ..] = csrs {
            csrs = behind;
            if !behind.iter().any(|other| other.csr == write.csr) {
                self.change(Register::csr(write.csr), write.value, in_trap);
            }
        }
    }

    #[inline]
    fn change(&mut self, register: Register, value: u64, in_trap: bool) {
        let absent = &self.config.absent;
        if absent.registers.contains(register) || in_trap && absent.in_traps.contains(register) {
            // It is no longer what was recorded.
            if let Some(told) = &mut self.told {
                told.lose(register);
            }
            return;
        }
        if register.is_zero() || register.is_float() && self.config.flen.bits() == 0 {
            return;
        }
        let item = match &mut self.told {
            None => Item::Full(register, value),
            Some(told) => told.tell(register, value),
        };
        self.item(item);
    }

    /// One more instruction has retired.
    fn count(&mut self, effects: &Effects) {
        let mut written = false;
        for write in &*effects.csrs {
            match write.csr {
                MCOUNTINHIBIT => self.inhibited = write.value & 4 != 0,
                MINSTRET | MINSTRETH => written = true,
                _ => {}
            }
        }
        let register = Register::csr(MINSTRET);
        if !self.inhibited && !written && !self.config.absent.registers.contains(register) {
            self.item(Item::Offset(register, 1));
        }
    }

    #[inline]
    fn begin(&mut self) {
        self.out.clear();
        self.item(Item::BeginGroup);
    }

    #[inline(always)]
    fn item(&mut self, item: Item) {
        item.put(&self.config, &mut self.out);
    }

    #[inline]
    fn end<S: Sink>(&mut self, sink: &mut S) {
        match self.config.style.end_group {
            true => self.item(Item::EndGroup),
            false => self.open = true,
        }
        let bytes = self.out.bytes();
        self.counters.groups += 1;
        self.counters.bytes += bytes.len() as u64;
        sink.group(bytes);
    }
}

/// mret and sret.
const fn is_trap_return(bits: u32) -> bool {
    matches!(bits, MRET | SRET)
}

/// Signals a trace says nothing about.
const fn is_silent(signal: Signal) -> bool {
    matches!(
        signal,
        Signal::PowerDown
            | Signal::PowerUp
            | Signal::TraceOn
            | Signal::TraceOff
            | Signal::Notify
            | Signal::External(_)
    )
}

/// The two bits of a mode.
const fn mode_code(mode: Mode) -> u8 {
    match mode {
        Mode::U | Mode::VU => 0,
        Mode::S | Mode::VS => 1,
        Mode::M | Mode::D => 3,
    }
}
