//! The shadow state (3.1): everything the trace has reported so far.

use alloc::boxed::Box;
use alloc::vec::Vec;

use hartrace_flow::{Effects, Mode};
use hartrace_isa::Xlen;
use hartrace_isa::csr::{self, FCSR, FFLAGS, FRM, MIDELEG, MIE, MIP, MSTATUS, SIE, SIP, SSTATUS};

use crate::config::Config;
use crate::elements::{Elements, Registers};
use crate::fault::Fault;
use crate::follow::Follower;
use crate::group::{Change, Group, How, NewPc, TrapCsr};
use crate::memory::Memory;
use crate::register::{REGISTERS, Register};

/// The fields of mstatus that sstatus shows: SIE, SPIE, UBE, SPP, VS, FS, XS,
/// SUM, MXR, SPELP, and on RV64 UXL.
const SSTATUS_FIELDS: u64 = 0x3_008d_e762;

/// The interrupts of a supervisor, where delegation is not known.
const SUPERVISOR_INTERRUPTS: u64 = 0x222;

/// Everything a trace has reported so far: registers, memory, pc and privilege
/// mode, each known or not.
#[derive(Clone, Debug)]
pub struct Shadow {
    /// The program counter.
    pub pc: Option<u64>,
    /// The privilege mode.
    pub mode: Option<Mode>,
    /// mtime.
    pub mtime: Option<u64>,
    /// Memory by physical address.
    pub memory: Memory,
    values: Box<[u64; REGISTERS]>,
    known: Registers,
    xlen: Xlen,
    /// The bits of a floating-point register.
    float: u64,
}

impl Shadow {
    /// Nothing is known but x0.
    #[must_use]
    pub fn new(config: &Config) -> Shadow {
        let mut known = Registers::NONE;
        known.insert(Register::x(0));
        Shadow {
            pc: None,
            mode: None,
            mtime: None,
            memory: Memory::new(),
            values: Box::new([0; REGISTERS]),
            known,
            xlen: config.xlen,
            float: match config.flen.bits() {
                32 => 0xffff_ffff,
                _ => u64::MAX,
            },
        }
    }

    /// A register's value, if it is known. Views such as `sstatus` and `fcsr`
    /// are put together from what they show.
    #[must_use]
    #[inline]
    pub fn get(&self, register: Register) -> Option<u64> {
        let number = register.number();
        if is_view(number) {
            return self.view(number);
        }
        let value = self.values.get(usize::from(number)).copied();
        value.filter(|_| self.known.contains(register))
    }

    /// Sets a register; of a view, what it shows. Gives the registers that
    /// hold it to `touched`.
    #[inline]
    pub fn set(&mut self, register: Register, value: u64, touched: &mut impl FnMut(Register)) {
        let number = register.number();
        if register.is_zero() {
            return;
        }
        if is_view(number) {
            return self.set_view(number, value, touched);
        }
        let value = match register.is_float() {
            true => value & self.float,
            false => self.xlen.wrap(value),
        };
        self.put(register, value);
        touched(register);
    }

    /// What a change makes of a register, if that can be known.
    #[must_use]
    #[inline]
    pub fn after(&self, change: &Change) -> Option<u64> {
        match change.how {
            How::Full(value) => Some(value),
            How::Offset(offset) => {
                let old = self.get(change.register)?;
                Some(self.xlen.wrap(old.wrapping_add_signed(offset.into())))
            }
            How::Mask(mask) => Some(self.get(change.register)? | u64::from(mask)),
        }
    }

    /// Whether the hart attempts an instruction in a group that comes next:
    /// one that retires, or one that traps. Instructions have numbers by this,
    /// for the verifier and for the history. If instructions are not recorded,
    /// every new pc without a cause counts, and one with a cause alone, which
    /// an instruction has written.
    #[must_use]
    #[inline]
    pub fn attempts(&self, group: &Group, absent: &Elements) -> bool {
        let counts = !(group.outside || group.reset || group.init);
        counts && (group.insn.is_some() || self.attempts_untold(group, absent))
    }

    /// The same without an instruction: it could not be fetched, which only
    /// the cause distinguishes from an interrupt (notes 36).
    #[cold]
    fn attempts_untold(&self, group: &Group, absent: &Elements) -> bool {
        let jumps = matches!(group.pc, Some(NewPc::To(_) | NewPc::FromTo(..)));
        if absent.insn && jumps && group.told(TrapCsr::Epc).is_none() && group.mode.is_none() {
            return true;
        }
        let cause = group.told(TrapCsr::Cause).and_then(|c| self.after(c));
        match cause {
            Some(cause) => {
                let interrupt = cause >> (self.xlen.bits() - 1) & 1 != 0;
                (jumps || absent.pc) && !interrupt
            }
            None => absent.insn && jumps,
        }
    }

    /// What a group reports about registers, pc, mode and time; for memory see
    /// [`Shadow::apply_memory`]. Gives the registers that were set to
    /// `touched`.
    ///
    /// # Errors
    ///
    /// What cannot be applied because something before it is not known. The
    /// rest is applied.
    pub fn apply(
        &mut self,
        group: &Group,
        touched: &mut impl FnMut(Register),
    ) -> Result<(), (Fault, u64)> {
        let mut result = Ok(());
        for change in &group.changes {
            match self.after(change) {
                Some(value) => self.set(change.register, value, touched),
                None => {
                    // Of a view, a part may have been known.
                    let known = &mut self.known;
                    Shadow::holders(change.register, &mut |r| known.remove(r));
                    result = Err((Fault::UnknownValue, change.register.number().into()));
                }
            }
        }
        if let Some(mode) = group.mode {
            self.mode = Some(mode);
        }
        if let Some(time) = group.mtime {
            self.mtime = Some(time);
        }
        self.pc = Follower::at(self.xlen, self.pc).moves(group).to;
        if self.pc.is_none() && group.pc.is_some() {
            result = result.and(Err((Fault::UnknownPc, group.number)));
        }
        result
    }

    /// The memory a group reports by physical address: transactions that write,
    /// what transactions have read, and stores of the instruction.
    pub fn apply_memory(&mut self, group: &Group) {
        for transaction in &group.memory {
            let request = &transaction.request;
            let len = 1 << request.size;
            match transaction.response {
                Some(response) if response.failure => {}
                Some(response) if request.op.only_reads() => {
                    self.memory.write(request.addr, len, response.data);
                }
                // The instruction determines the result of an atomic operation.
                _ if request.op.only_writes() => {
                    self.memory.write(request.addr, len, request.data);
                }
                _ => {}
            }
        }
        for data in &group.data {
            if let (Some(addr), Some((size, value))) = (data.paddr, data.store) {
                self.memory.write(addr, 1 << size, value);
            }
        }
    }

    /// Registers that are known, in order; views are not among them.
    pub fn registers(&self) -> impl Iterator<Item = (Register, u64)> + '_ {
        let value = |register: Register| self.values.get(usize::from(register.number()));
        self.known
            .iter()
            .filter_map(move |register| Some((register, *value(register)?)))
    }

    /// Forgets everything but x0 and memory: something may have been missed.
    pub fn forget(&mut self) {
        self.known = Registers::NONE;
        self.known.insert(Register::x(0));
        self.pc = None;
        self.mode = None;
    }

    /// The place of execution and some registers, to go back to.
    pub(crate) fn save(&self, registers: impl Iterator<Item = Register>) -> Saved {
        Saved {
            pc: self.pc,
            mode: self.mode,
            mtime: self.mtime,
            registers: registers
                .map(|r| (r, self.last(r), self.known.contains(r)))
                .collect(),
        }
    }

    /// Goes back to what was saved.
    pub(crate) fn restore(&mut self, saved: &Saved) {
        self.pc = saved.pc;
        self.mode = saved.mode;
        self.mtime = saved.mtime;
        for &(register, value, known) in &saved.registers {
            self.put(register, value);
            if !known {
                self.doubt(register);
            }
        }
    }

    /// A register is not known any more.
    pub(crate) fn doubt(&mut self, register: Register) {
        self.known.remove(register);
    }

    /// A register that is no view, known or not.
    pub(crate) fn last(&self, register: Register) -> u64 {
        let value = self.values.get(usize::from(register.number()));
        value.copied().unwrap_or(0)
    }

    /// What is known.
    pub(crate) fn known(&self) -> &Registers {
        &self.known
    }

    /// A register's value as the trace would have it.
    #[inline]
    pub(crate) fn fits(&self, register: Register, value: u64) -> u64 {
        match register.is_float() {
            true => value & self.float,
            false => value,
        }
    }

    /// A register's value as a model has it, whose floating-point registers
    /// may be longer than the trace's: a shorter value is boxed.
    pub(crate) fn boxed(&self, register: Register, value: u64) -> u64 {
        match register.is_float() {
            true => value | !self.float,
            false => value,
        }
    }

    /// Sets a CSR that holds something; views are left alone.
    pub(crate) fn fill_csr(&mut self, csr: u16, value: u64) {
        if !is_view(csr) {
            self.put(Register::csr(csr), value);
        }
    }

    /// The registers that hold what a register shows: itself, but for views.
    pub(crate) fn holders(register: Register, give: &mut impl FnMut(Register)) {
        let number = register.number();
        match number {
            FCSR => {
                give(Register::csr(FRM));
                give(Register::csr(FFLAGS));
            }
            SSTATUS => give(Register::csr(MSTATUS)),
            SIE => give(Register::csr(MIE)),
            SIP => give(Register::csr(MIP)),
            _ if is_view(number) => give(Register::csr(number - csr::CYCLE + csr::MCYCLE)),
            _ if register.is_zero() => {}
            _ => give(register),
        }
    }

    /// What a step did to registers that the trace leaves out.
    pub(crate) fn follow_absent(&mut self, absent: &Elements, effects: &Effects) {
        for write in effects.regs.iter() {
            let register = Register::from(write.reg);
            if absent.registers.contains(register) {
                self.put(register, self.fits(register, write.value));
            }
        }
        for write in effects.csrs.iter() {
            let register = Register::csr(write.csr);
            if absent.registers.contains(register) {
                self.put(register, write.value);
            }
        }
    }

    /// A register that is no view, without a thought about its width.
    #[inline]
    pub(crate) fn put(&mut self, register: Register, value: u64) {
        if let Some(slot) = self.values.get_mut(usize::from(register.number())) {
            *slot = value;
        }
        self.known.insert(register);
    }

    fn csr(&self, number: u16) -> Option<u64> {
        let value = self.values.get(usize::from(number)).copied();
        value.filter(|_| self.known.contains(Register::csr(number)))
    }

    #[cold]
    fn view(&self, number: u16) -> Option<u64> {
        match number {
            FCSR => Some(self.csr(FRM)? << 5 | self.csr(FFLAGS)?),
            SSTATUS => Some(self.csr(MSTATUS)? & self.sstatus_fields()),
            SIE => Some(self.csr(MIE)? & self.delegated()),
            SIP => Some(self.csr(MIP)? & self.delegated()),
            _ => self.csr(number - csr::CYCLE + csr::MCYCLE),
        }
    }

    #[cold]
    fn set_view(&mut self, number: u16, value: u64, touched: &mut impl FnMut(Register)) {
        let (whole, fields) = match number {
            FCSR => {
                for (part, value) in [(FRM, value >> 5 & 7), (FFLAGS, value & 31)] {
                    self.put(Register::csr(part), value);
                    touched(Register::csr(part));
                }
                return;
            }
            SSTATUS => (MSTATUS, self.sstatus_fields()),
            SIE => (MIE, self.delegated()),
            SIP => (MIP, self.delegated()),
            _ => (number - csr::CYCLE + csr::MCYCLE, u64::MAX),
        };
        let register = Register::csr(whole);
        let Some(old) = self.csr(whole).or((fields == u64::MAX).then_some(0)) else {
            // A part of something that is not known.
            return;
        };
        let value = old & !fields | value & fields;
        self.put(register, self.xlen.wrap(value));
        touched(register);
    }

    fn sstatus_fields(&self) -> u64 {
        let top = 1 << (self.xlen.bits() - 1);
        match self.xlen {
            Xlen::Rv32 => SSTATUS_FIELDS & 0xffff_ffff | top,
            Xlen::Rv64 => SSTATUS_FIELDS | top,
        }
    }

    fn delegated(&self) -> u64 {
        self.csr(MIDELEG).unwrap_or(SUPERVISOR_INTERRUPTS)
    }
}

/// Whether a CSR shows parts of others: fcsr, sstatus, sie, sip, and the
/// user's counters but time.
#[inline]
const fn is_view(number: u16) -> bool {
    match number {
        FCSR | SSTATUS | SIE | SIP => true,
        csr::TIME | csr::TIMEH => false,
        _ => number & 0xf60 == csr::CYCLE,
    }
}

/// What a shadow had; of each register its last value and whether it was known.
#[derive(Clone, Debug)]
pub(crate) struct Saved {
    pc: Option<u64>,
    mode: Option<Mode>,
    mtime: Option<u64>,
    pub(crate) registers: Vec<(Register, u64, bool)>,
}

/// Registers touched in a group, each once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Touched(Vec<Register>);

impl Touched {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn add(&mut self, register: Register) {
        if !self.0.contains(&register) {
            self.0.push(register);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Register> + '_ {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csr(name: &str) -> Register {
        Register::from_name(name).unwrap()
    }

    fn set(shadow: &mut Shadow, name: &str, value: u64) -> Vec<Register> {
        let mut touched = Vec::new();
        shadow.set(csr(name), value, &mut |register| touched.push(register));
        touched
    }

    /// Notes 25 and 26: a register has one value, whatever name it goes by.
    #[test]
    fn views_show_what_they_are_part_of() {
        let mut shadow = Shadow::new(&Config::default());
        assert_eq!(shadow.get(csr("fcsr")), None);
        assert_eq!(set(&mut shadow, "fcsr", 0xff), [csr("frm"), csr("fflags")]);
        assert_eq!(shadow.get(csr("fflags")), Some(31));
        set(&mut shadow, "frm", 1);
        assert_eq!(shadow.get(csr("fcsr")), Some(0x3f));

        set(&mut shadow, "mstatus", 0xa_0000_1880);
        // The whole of mstatus under the name of its view.
        assert_eq!(set(&mut shadow, "sstatus", u64::MAX), [csr("mstatus")]);
        assert_eq!(shadow.get(csr("mstatus")), Some(0x8000_000b_008d_ffe2));
        assert_eq!(shadow.get(csr("sstatus")), Some(0x8000_0003_008d_e762));

        set(&mut shadow, "mideleg", 0x222);
        set(&mut shadow, "mie", 0x888);
        set(&mut shadow, "sie", 0xfff);
        assert_eq!(shadow.get(csr("mie")), Some(0xaaa));
        assert_eq!(set(&mut shadow, "cycle", 7), [csr("mcycle")]);
        assert_eq!(shadow.get(csr("cycle")), Some(7));
        assert_eq!(shadow.get(csr("time")), None);
    }

    /// x0 takes nothing (notes 32).
    #[test]
    fn x0_stays() {
        let mut shadow = Shadow::new(&Config::default());
        assert!(set(&mut shadow, "zero", 1).is_empty());
        assert_eq!(shadow.get(Register::x(0)), Some(0));
    }

    /// Notes 23: signed, wrapping at XLEN, and of a value that is known.
    #[test]
    fn increments() {
        let config = Config {
            xlen: Xlen::Rv32,
            ..Config::default()
        };
        let mut shadow = Shadow::new(&config);
        let change = Change {
            register: Register::x(5),
            how: How::Offset(-2),
        };
        assert_eq!(shadow.after(&change), None);
        set(&mut shadow, "x5", 1);
        assert_eq!(shadow.after(&change), Some(0xffff_ffff));
        let change = Change {
            register: Register::x(5),
            how: How::Mask(0x81),
        };
        assert_eq!(shadow.after(&change), Some(0x81));
    }
}
