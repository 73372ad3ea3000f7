//! Compares registers and the pc, with allowances for what no model could know.

use hartrace_flow::{Access, AccessKind, Effects, Mode, Model, Place, RegWrite};
use hartrace_isa::{Op, Xlen};

use super::Core;
use super::judge::{Case, Found, SURE, differ, place};
use super::report::{Field, Kind};
use crate::config::StoreData;
use crate::register::Register;
use crate::shadow::Shadow;

impl Core {
    pub(super) fn compare_insn(&mut self, bits: Option<u32>, trap: bool, found: &mut Found) {
        let (Some(told), Some(bits)) = (self.reader.group().insn, bits) else {
            return;
        };
        if self.config.absent.insn {
            return;
        }
        self.counters.compare(Kind::Insn, 1);
        // An illegal instruction may be recorded with either length (notes 5).
        let mask = match trap && (told.len == 2 || bits & 3 != 3) {
            true => 0xffff,
            false => u32::MAX,
        };
        if (told.bits ^ bits) & mask != 0 {
            differ(
                found,
                Field::Insn,
                Some(bits.into()),
                Some(told.bits.into()),
            );
        }
    }

    /// pc and privilege mode.
    pub(super) fn compare_place(&mut self, model: &dyn Model, found: &mut Found) {
        let group = self.reader.group();
        let pc = model.read(Place::Pc).ok();
        match self.shadow.pc {
            // Not reported: the model's value is taken.
            None => self.shadow.pc = pc,
            _ if self.config.absent.pc => self.shadow.pc = pc,
            told => {
                self.counters.compare(Kind::Pc, 1);
                if told != pc {
                    let told = told.filter(|_| group.pc.is_some());
                    differ(found, Field::Pc, pc, told);
                }
            }
        }
        let mode = model.read(Place::Mode).ok();
        let own = mode.and_then(|code| Mode::from_code(code as u8));
        match self.shadow.mode {
            None => self.shadow.mode = own,
            _ if self.config.absent.mode => self.shadow.mode = own,
            told => {
                self.counters.compare(Kind::Mode, 1);
                if told != own {
                    let told = told.filter(|_| group.mode.is_some());
                    let told = told.map(|mode| mode.code().into());
                    differ(found, Field::Mode, mode, told);
                }
            }
        }
    }

    pub(super) fn compare_registers(
        &mut self,
        model: &mut dyn Model,
        case: &Case,
        effects: &Effects,
        found: &mut Found,
    ) {
        let touched = core::mem::take(&mut self.touched);
        for register in touched.iter() {
            self.compare_register(model, register, case, effects, found);
        }
        self.touched = touched;
    }

    pub(super) fn compare_register(
        &mut self,
        model: &mut dyn Model,
        register: Register,
        case: &Case,
        effects: &Effects,
        found: &mut Found,
    ) {
        let Ok(own) = model.read(place(register)) else {
            self.counters.unmodelled += 1;
            return;
        };
        let own = self.shadow.fits(register, own);
        let absent = &self.config.absent;
        let left_out = case.trap
            && absent.in_traps.contains(register)
            && !self.tells(register)
            && self.may_have_trapped(model);
        let unreported =
            absent.registers.contains(register) && !(self.options.own_csrs && self.tells(register));
        if unreported || left_out {
            self.shadow.put(register, own);
            return;
        }
        let Some(told) = self.shadow.get(register) else {
            return;
        };
        self.counters.compare(Field::Register(register).kind(), 1);
        let written = effects
            .regs
            .iter()
            .any(|w| Register::from(w.reg) == register)
            || effects
                .csrs
                .iter()
                .any(|w| Register::csr(w.csr) == register);
        let tells = self.tells(register);
        if told == own {
            // Writes that change nothing may or may not be reported.
            let strict = self.unchanged >= SURE && register.as_reg().is_some() && !case.trap;
            if strict && tells != written {
                let expected = Some(own).filter(|_| written);
                let actual = Some(told).filter(|_| tells);
                differ(found, Field::Register(register), expected, actual);
            }
            return;
        }
        let volatile = self.options.volatile.bits(register);
        // An unreported value has not changed, unless this trace leaves
        // out writes that change nothing.
        let can_be = tells || self.unchanged < SURE;
        let excused = (told ^ own) & !volatile == 0
            || !case.known.contains(register)
            || can_be && self.excuse(model, register, told, own, case, effects);
        if excused {
            self.set_register(model, register, told);
            return;
        }
        let expected = Some(own).filter(|_| written);
        let actual = Some(told).filter(|_| tells);
        differ(found, Field::Register(register), expected, actual);
    }

    /// Whether the group may report a trap that the model has taken: it says
    /// so, has no instruction, or goes to the same handler, as far as that is
    /// known.
    fn may_have_trapped(&self, model: &dyn Model) -> bool {
        let group = self.reader.group();
        let there = || self.shadow.pc == model.read(Place::Pc).ok();
        group.traps() || group.insn.is_none() || self.config.absent.pc || there()
    }

    /// Whether the group has a register, under any of its names.
    pub(super) fn tells(&self, register: Register) -> bool {
        let mut tells = false;
        for change in &self.reader.group().changes {
            Shadow::holders(change.register, &mut |holder| tells |= holder == register);
        }
        tells
    }

    /// Whether a register may have another value than the model's, because it
    /// comes from where no model can look.
    pub(super) fn excuse(
        &mut self,
        model: &mut dyn Model,
        register: Register,
        told: u64,
        own: u64,
        case: &Case,
        effects: &Effects,
    ) -> bool {
        let writes = |w: &RegWrite| Register::from(w.reg) == register;
        if case.trap || !effects.regs.iter().any(writes) {
            return false;
        }
        if case.bits & 0x7f == 0x73 {
            let csr = (case.bits >> 20) as u16;
            let mut bits = 0;
            Shadow::holders(Register::csr(csr), &mut |holder| {
                let absent = self.config.absent.registers.contains(holder);
                let unreported = absent && !self.options.own_csrs || !case.known.contains(holder);
                bits |= match unreported {
                    false => self.options.volatile.bits(holder),
                    true => u64::MAX,
                };
            });
            let excused = (told ^ own) & !bits == 0;
            // An instruction that only reads shows the current value.
            let reads = case.bits >> 13 & 1 != 0 && case.bits >> 15 & 31 == 0;
            if excused && reads {
                let _ = model.write(Place::Csr(csr), told);
            }
            self.counters.csrs_taken += u64::from(excused);
            return excused;
        }
        let Some(access) = effects.accesses.first() else {
            return false;
        };
        if matches!(case.op, Op::ScW | Op::ScD) {
            return self.excuse_conditional(model, access, told, case);
        }
        let (addr, len) = (access.paddr.unwrap_or(access.addr), 1 << access.size);
        if !self.is_outside(addr, len) || !can_be(told, access.size, case.op, self.config.xlen) {
            return false;
        }
        self.counters.loads_taken += 1;
        if access.kind == AccessKind::Load {
            self.set_memory(model, addr, access.size, told);
        }
        true
    }

    /// A store-conditional may fail for reasons of its own, and succeed where
    /// the model lost its reservation.
    pub(super) fn excuse_conditional(
        &mut self,
        model: &mut dyn Model,
        access: &Access,
        told: u64,
        case: &Case,
    ) -> bool {
        let mut stores = self.reader.group().data.iter().filter_map(|d| d.store);
        let store = stores.next();
        let operand = self.config.store_data == StoreData::Operand;
        let addr = access.paddr.unwrap_or(access.addr);
        let mask = u64::MAX >> (64 - (8 << access.size.min(3)));
        // What succeeds stores, and what fails does not.
        let right = match store {
            Some((_, value)) => (value ^ case.operand) & mask == 0,
            None => self.config.absent.stores,
        };
        match told {
            0 if right => self.set_memory(model, addr, access.size, case.operand),
            1 if store.is_none() || operand => {
                if self.config.absent.stores {
                    let old = self.shadow.memory.read(addr, 1 << access.size);
                    self.set_memory(model, addr, access.size, old);
                }
            }
            _ => return false,
        }
        self.counters.conditionals_taken += 1;
        true
    }

    /// Whether memory is written by others than the hart.
    pub(super) fn is_outside(&self, addr: u64, len: u64) -> bool {
        self.options.volatile.touches(addr, len) || self.mailbox.writes(addr, len)
    }

    /// Sets memory on both sides.
    pub(super) fn set_memory(&mut self, model: &mut dyn Model, addr: u64, size: u8, value: u64) {
        let bytes = 1 << size;
        self.shadow.memory.write(addr, bytes, value);
        let size = bytes as u8;
        // A device cannot be set.
        let _ = model.write(Place::Memory { addr, size }, value);
    }
}

/// Whether a load of this size can give a value.
fn can_be(value: u64, size: u8, op: Op, xlen: Xlen) -> bool {
    let bits = 8u32 << size.min(3);
    if bits == 64 || matches!(op, Op::Flw | Op::Flh) {
        return true;
    }
    let unused = 64 - bits;
    let zero = value << unused >> unused;
    let sign = (value << unused).cast_signed() >> unused;
    match op {
        Op::Lbu | Op::Lhu | Op::Lwu => value == zero,
        _ => value == xlen.wrap(sign.cast_unsigned()),
    }
}
