//! The whole comparison: everything that changed on either side, with what is
//! excused because no model could know it.

use core::ops::ControlFlow;

use hartrace_flow::{Access, AccessKind, Effects, Few, Mode, Model, Place, Step};
use hartrace_isa::{Isa, Op, Xlen, decode};

use super::report::{Difference, Field, Mismatch, Past, Reporter};
use super::{Core, PAST};
use crate::config::StoreData;
use crate::elements::Registers;
use crate::group::{Data, NewPc};
use crate::register::Register;
use crate::shadow::Shadow;

/// What differs in a group.
pub(super) type Found = Few<Difference, 24>;

/// Writes without a change that were told before one that is not told counts
/// as missing.
pub(super) const SURE: u32 = 8;

/// What is known of a group and the step that answers it.
struct Case {
    /// What the model's instruction does.
    op: Op,
    /// The instruction, 0 where there is none.
    bits: u32,
    /// A trap was taken, on either side.
    trap: bool,
    /// rs2 before the step, for a store-conditional.
    operand: u64,
    /// What was known before the group.
    known: Registers,
}

/// What the model is asked to do for a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// Attempt an instruction.
    Step,
    /// Take the interrupt with this code.
    Interrupt(u32),
}

impl Core {
    /// Compares what the model did, with its effects at hand, to the group at
    /// hand.
    pub(super) fn judge<M: Model>(
        &mut self,
        model: &mut M,
        ask: Ask,
        step: Step,
        reporter: &mut impl Reporter,
    ) -> ControlFlow<()> {
        match (ask, step) {
            (Ask::Interrupt(code), _) => {
                self.counters.interrupts += 1;
                self.last_interrupt = Some(code);
            }
            (_, Step::Insn(_)) => self.counters.retired += 1,
            _ => self.counters.exceptions += 1,
        }
        let carry = matches!(step, Step::Trap(_)) && self.must_carry();
        let undo = self.save();
        let found = self.examine(model, ask, &step);
        let agreed = found.is_empty();
        let (step, found) = match agreed || self.is_final(&step) {
            true if agreed && carry => {
                self.undo(model, &undo);
                self.carry(model, ask)
            }
            true => (step, found),
            false => {
                self.undo(model, &undo);
                if self.is_blind(&step) {
                    self.counters.unchecked += 1;
                    self.take_over(model);
                    return ControlFlow::Continue(());
                }
                self.reconsider(model, ask)
            }
        };
        self.overwrite();
        let (pc, bits) = self.whereabouts(&step);
        let flow = match found.is_empty() {
            true => ControlFlow::Continue(()),
            false => self.conclude(model, (pc, bits), found, reporter),
        };
        let group = self.reader.group();
        let past = Past {
            group: group.number,
            at: group.at,
            pc,
            bits: bits.unwrap_or(0),
        };
        self.remember(past);
        flow
    }

    /// Whether there is no other way to look at a group that differs: it has
    /// the model's store-conditional, which cannot be done again because its
    /// reservation is gone, and nothing is in dispute.
    fn is_final(&self, step: &Step) -> bool {
        let (_, Some(bits)) = self.whereabouts(step) else {
            return false;
        };
        let told = self.reader.group().insn.map(|insn| insn.bits);
        let conditional = bits & 0x7f == 0x2f && bits >> 27 == 3;
        conditional && told == Some(bits) && self.disputes.is_empty()
    }

    /// Whether an instruction works on registers that are not known, because
    /// something is missing in front of it: then nothing can be said about what
    /// it did. Whether a field is an integer or a floating-point register
    /// matters little here; too many are better than too few.
    fn is_blind(&self, step: &Step) -> bool {
        let known = self.shadow.known();
        let Step::Insn(insn) = step else {
            return false;
        };
        let inst = decode(insn.bits, isa(self.config.xlen));
        let float = inst.op.name().starts_with('f') && inst.op != Op::Fence;
        let mut blind = [inst.rs1, inst.rs2]
            .iter()
            .any(|reg| !known.contains(Register::x(reg.number())));
        if float {
            blind |= [inst.rs1, inst.rs2, inst.rs3()]
                .iter()
                .any(|reg| !known.contains(Register::f(reg.number())));
        }
        blind
    }

    /// Looks at a group that differs in other ways: with what is in dispute
    /// the other way, and with an interrupt that nobody told. Both sides are
    /// as before the step.
    fn reconsider<M: Model>(&mut self, model: &mut M, ask: Ask) -> (Step, Found) {
        if let Some(step) = self.take_back(model, ask) {
            return (step, Found::new());
        }
        if ask == Ask::Step
            && let Some((step, code)) = self.untold_interrupt(model)
        {
            let mut found = Found::new();
            differ(&mut found, Field::Interrupt, Some(code.into()), None);
            return (step, found);
        }
        let step = self.ask(model, ask);
        let found = self.examine(model, ask, &step);
        (step, found)
    }

    /// Where a step was, and its instruction.
    pub(super) fn whereabouts(&self, step: &Step) -> (u64, Option<u32>) {
        match step {
            Step::Insn(insn) => (insn.pc, Some(insn.bits)),
            Step::Trap(trap) => (trap.trap.epc.unwrap_or(0), trap.bits),
            Step::Signal(_) => (self.shadow.pc.unwrap_or(0), None),
        }
    }

    /// Brings the shadow up to the group and finds what differs. What is
    /// excused is set in the model.
    pub(super) fn examine<M: Model>(&mut self, model: &mut M, ask: Ask, step: &Step) -> Found {
        let mut found = Found::new();
        if let Ask::Interrupt(code) = ask
            && self.disabled
        {
            differ(&mut found, Field::Interrupt, None, Some(code.into()));
        }
        let (pc, bits) = self.whereabouts(step);
        let case = self.case(step, bits);
        let effects = core::mem::take(&mut self.effects);
        self.apply(&effects);
        self.compare_insn(bits, case.trap, &mut found);
        if let Some(NewPc::FromTo(from, _)) = self.reader.group().pc
            && from != pc
            && !self.config.absent.pc
        {
            differ(&mut found, Field::Pc, Some(pc), Some(from));
        }
        self.compare_accesses(model, &case, &effects, &mut found);
        self.compare_registers(model, &case, &effects, &mut found);
        self.compare_place(model, &mut found);
        self.effects = effects;
        found
    }

    /// There is a difference: it is kept in mind, the model is set to what the
    /// trace says, and it is told.
    fn conclude<M: Model>(
        &mut self,
        model: &mut M,
        place: (u64, Option<u32>),
        found: Found,
        reporter: &mut impl Reporter,
    ) -> ControlFlow<()> {
        let effects = core::mem::take(&mut self.effects);
        self.keep_in_mind(model, &effects, &found);
        let own = model.read(Place::Pc);
        self.repair(model, &effects);
        self.effects = effects;
        let strays = found.iter().any(|d| d.field == Field::Pc);
        if let Ok(own) = own
            && strays
        {
            self.enter_untold(model, own);
        }
        self.report(place, found, reporter)
    }

    fn case(&self, step: &Step, bits: Option<u32>) -> Case {
        let group = self.reader.group();
        let bits = bits.unwrap_or(0);
        let rs2 = Register::x((bits >> 20) as u8);
        Case {
            op: decode(bits, isa(self.config.xlen)).op,
            bits,
            trap: matches!(step, Step::Trap(_)) || group.traps(),
            operand: self.shadow.get(rs2).unwrap_or(0),
            known: *self.shadow.known(),
        }
    }

    /// Brings the shadow up to the group, memory aside, and gathers what
    /// changed on either side.
    fn apply(&mut self, effects: &Effects) {
        let Core {
            reader,
            shadow,
            touched,
            fresh,
            options,
            ..
        } = self;
        touched.clear();
        for write in effects.regs.iter() {
            touched.add(write.reg.into());
        }
        for write in effects.csrs.iter() {
            Shadow::holders(Register::csr(write.csr), &mut |register| {
                touched.add(register);
            });
        }
        // A register that is not known is not compared.
        let _ = shadow.apply(reader.group(), &mut |register| {
            touched.add(register);
            if options.volatile.bits(register) != 0 {
                fresh.add(register);
            }
        });
    }

    fn compare_insn(&mut self, bits: Option<u32>, trap: bool, found: &mut Found) {
        let (Some(told), Some(bits)) = (self.reader.group().insn, bits) else {
            return;
        };
        if self.config.absent.insn {
            return;
        }
        self.counters.compare(super::Kind::Insn, 1);
        // An illegal instruction may be told with either length (notes 5).
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
    fn compare_place<M: Model>(&mut self, model: &M, found: &mut Found) {
        let group = self.reader.group();
        let pc = model.read(Place::Pc).ok();
        match self.shadow.pc {
            // Nothing tells it: the model's word is taken.
            None => self.shadow.pc = pc,
            _ if self.config.absent.pc => self.shadow.pc = pc,
            told => {
                self.counters.compare(super::Kind::Pc, 1);
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
                self.counters.compare(super::Kind::Mode, 1);
                if told != own {
                    let told = told.filter(|_| group.mode.is_some());
                    let told = told.map(|mode| mode.code().into());
                    differ(found, Field::Mode, mode, told);
                }
            }
        }
    }

    fn compare_registers<M: Model>(
        &mut self,
        model: &mut M,
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

    fn compare_register<M: Model>(
        &mut self,
        model: &mut M,
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
        let left_out = case.trap && absent.in_traps.contains(register) && !self.tells(register);
        if absent.registers.contains(register) || left_out {
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
            // Writes that change nothing are told, too, or they are not.
            let strict = self.unchanged >= SURE && register.as_reg().is_some() && !case.trap;
            if strict && tells != written {
                let expected = Some(own).filter(|_| written);
                let actual = Some(told).filter(|_| tells);
                differ(found, Field::Register(register), expected, actual);
            }
            return;
        }
        let volatile = self.options.volatile.bits(register);
        // What is not told has not come from anywhere, unless this trace leaves
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

    /// Whether the group has a register, under any of its names.
    fn tells(&self, register: Register) -> bool {
        let mut tells = false;
        for change in &self.reader.group().changes {
            Shadow::holders(change.register, &mut |holder| tells |= holder == register);
        }
        tells
    }

    /// Whether a register may have another value than the model's, because it
    /// comes from where no model can look.
    fn excuse<M: Model>(
        &mut self,
        model: &mut M,
        register: Register,
        told: u64,
        own: u64,
        case: &Case,
        effects: &Effects,
    ) -> bool {
        let writes = |w: &hartrace_flow::RegWrite| Register::from(w.reg) == register;
        if case.trap || !effects.regs.iter().any(writes) {
            return false;
        }
        if case.bits & 0x7f == 0x73 {
            let csr = (case.bits >> 20) as u16;
            let mut bits = 0;
            Shadow::holders(Register::csr(csr), &mut |holder| {
                let untold =
                    self.config.absent.registers.contains(holder) || !case.known.contains(holder);
                bits |= match untold {
                    false => self.options.volatile.bits(holder),
                    true => u64::MAX,
                };
            });
            let excused = (told ^ own) & !bits == 0;
            // An instruction that only reads tells what is there.
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
    fn excuse_conditional<M: Model>(
        &mut self,
        model: &mut M,
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
    fn is_outside(&self, addr: u64, len: u64) -> bool {
        self.options.volatile.touches(addr, len) || self.mailbox.writes(addr, len)
    }

    /// Sets memory on both sides.
    fn set_memory<M: Model>(&mut self, model: &mut M, addr: u64, size: u8, value: u64) {
        let bytes = 1 << size;
        self.shadow.memory.write(addr, bytes, value);
        let size = bytes as u8;
        // A device cannot be set.
        let _ = model.write(Place::Memory { addr, size }, value);
    }

    /// Accesses: those that write one by one, then those that read.
    fn compare_accesses<M: Model>(
        &mut self,
        model: &mut M,
        case: &Case,
        effects: &Effects,
        found: &mut Found,
    ) {
        let writes = |access: &&Access| {
            !matches!(access.kind, AccessKind::Load)
                && access.kind != AccessKind::ConditionalStoreFailure
        };
        let group = self.reader.group();
        let told: Few<Data, 16> = gather(group.data.iter().filter(|d| d.store.is_some()));
        let own: Few<Access, 16> = gather(effects.accesses.iter().filter(writes));
        let operand = self.config.store_data == StoreData::Operand;
        let first = effects.accesses.first();
        for i in 0..told.len().max(own.len()) {
            match (case.op, told.get(i), own.get(i)) {
                (Op::ScW | Op::ScD, told, own) => {
                    match (self.is_conditional_made(case, told, own), own.is_some()) {
                        (true, true) => self.compare_store(model, told, own, case, found),
                        // The operand is told all the same (notes 38).
                        (false, false) if operand => {}
                        (false, false) => self.compare_store(model, told, own, case, found),
                        _ => self.store_unsurely(model, told, first, case),
                    }
                }
                (Op::LrW | Op::LrD, Some(_), None) if operand => {}
                (_, told, own) => self.compare_store(model, told, own, case, found),
            }
        }
        self.compare_loads(effects, found);
        for access in own.iter() {
            let addr = access.paddr.unwrap_or(access.addr);
            let read = |addr| model.read(Place::Memory { addr, size: 8 }).ok();
            self.mailbox.stored(addr, 1 << access.size, read);
        }
    }

    /// Whether a store-conditional stores, by the trace. Its result says so; of
    /// one without a result, the store itself, unless operands are told in any
    /// case or stores never.
    fn is_conditional_made(&self, case: &Case, told: Option<&Data>, own: Option<&Access>) -> bool {
        let rd = Register::x((case.bits >> 7) as u8);
        let operand = self.config.store_data == StoreData::Operand;
        match self.shadow.get(rd).filter(|_| !rd.is_zero()) {
            _ if self.config.absent.stores => own.is_some(),
            Some(0) => true,
            Some(1) => false,
            // No result: only the store can be believed.
            Some(_) => told.is_some(),
            None if operand => own.is_some(),
            None => told.is_some(),
        }
    }

    /// Memory after a store-conditional on which the sides do not agree is as
    /// the trace has it.
    fn store_unsurely<M: Model>(
        &mut self,
        model: &mut M,
        told: Option<&Data>,
        access: Option<&Access>,
        case: &Case,
    ) {
        let Some(access) = access else {
            return;
        };
        let addr = access.paddr.unwrap_or(access.addr);
        if access.kind == AccessKind::Store {
            // It failed.
            let old = self.shadow.memory.read(addr, 1 << access.size);
            self.set_memory(model, addr, access.size, old);
        } else if let Some((size, value)) = told.and_then(|data| data.store) {
            self.shadow.memory.write(addr, 1 << size, value);
            if case.bits >> 7 & 31 == 0 {
                // No result will be excused.
                self.set_memory(model, addr, size, value);
            }
        }
    }

    fn compare_store<M: Model>(
        &mut self,
        model: &mut M,
        told: Option<&Data>,
        own: Option<&Access>,
        case: &Case,
        found: &mut Found,
    ) {
        let addr = own.map(|access| access.paddr.unwrap_or(access.addr));
        if self.config.absent.stores {
            if let (Some(addr), Some(access)) = (addr, own) {
                let value = access.data.unwrap_or(0);
                self.shadow.memory.write(addr, 1 << access.size, value);
            }
            return;
        }
        self.counters.compare(super::Kind::Store, 1);
        let data = told.and_then(|data| data.store);
        let (Some(told), Some(access), Some(addr), Some((size, value))) = (told, own, addr, data)
        else {
            // One side stores and the other does not.
            let shown = told.and_then(|data| data.eaddr.or(data.paddr));
            differ(found, Field::StoreAddress, own.map(|a| a.addr), shown);
            if let (Some(data), Some((size, value))) = (told, data)
                && let Some(addr) = data.paddr.or(data.eaddr)
            {
                self.shadow.memory.write(addr, 1 << size, value);
            }
            return;
        };
        if !super::plain::same_address(told, access) {
            let (own, shown) = match told.eaddr {
                Some(eaddr) if eaddr != access.addr => (Some(access.addr), Some(eaddr)),
                _ => (access.paddr, told.paddr),
            };
            differ(found, Field::StoreAddress, own, shown);
        }
        if size != access.size {
            let bytes = |size: u8| Some(1 << size);
            differ(found, Field::StoreSize, bytes(access.size), bytes(size));
        }
        let mask = u64::MAX >> (64 - (8 << size.min(3)));
        let own = access.data.unwrap_or(value) & mask;
        let amo = case.bits & 0x7f == 0x2f && !matches!(case.op, Op::ScW | Op::ScD);
        let operand = amo
            && self.config.store_data == StoreData::Operand
            && case.operand & mask == value & mask;
        let to = self.told_address(told, access);
        if own == value & mask || operand {
            self.shadow.memory.write(to, 1 << size, own);
        } else {
            self.shadow.memory.write(to, 1 << size, value);
            if amo && self.is_outside(addr, 1 << size) {
                self.set_memory(model, addr, size, value);
            } else {
                differ(found, Field::StoreData, Some(own), Some(value));
            }
        }
    }

    /// Where a store of the trace goes, by physical address. An effective
    /// address that is not the model's is taken as it is: there is nobody to
    /// translate it.
    fn told_address(&self, told: &Data, access: &Access) -> u64 {
        match (told.paddr, told.eaddr) {
            (Some(paddr), _) => paddr,
            (None, Some(eaddr)) if eaddr != access.addr => {
                let offset = access
                    .paddr
                    .unwrap_or(access.addr)
                    .wrapping_sub(access.addr);
                eaddr.wrapping_add(offset)
            }
            _ => access.paddr.unwrap_or(access.addr),
        }
    }

    /// Addresses without data, of loads and of stores that were not made.
    fn compare_loads(&mut self, effects: &Effects, found: &mut Found) {
        let group = self.reader.group();
        let reads = |access: &&Access| {
            matches!(
                access.kind,
                AccessKind::Load | AccessKind::ConditionalStoreFailure
            ) || self.config.absent.stores
        };
        let told: Few<Data, 16> = gather(group.data.iter().filter(|d| d.store.is_none()));
        let own: Few<Access, 16> = gather(effects.accesses.iter().filter(reads));
        for (i, data) in told.iter().enumerate() {
            self.counters.compare(super::Kind::Load, 1);
            // A store-conditional that the model has done has an address, too.
            match own.get(i).or(effects.accesses.get(i)) {
                Some(access) if super::plain::same_address(data, access) => {}
                access => {
                    let shown = data.eaddr.or(data.paddr);
                    let own = access.map(|access| access.addr);
                    differ(found, Field::LoadAddress, own, shown);
                }
            }
        }
    }

    /// Sets the model to what the trace says (3.1, step 5).
    fn repair<M: Model>(&mut self, model: &mut M, effects: &Effects) {
        for register in self.touched.iter() {
            if let Some(value) = self.shadow.get(register) {
                self.set_register(model, register, value);
            }
        }
        self.place_model(model);
        for access in effects.accesses.iter() {
            if access.kind != AccessKind::Load {
                let addr = access.paddr.unwrap_or(access.addr);
                self.copy_memory(model, addr, 1 << access.size);
            }
        }
        for data in &self.reader.group().data {
            if let (Some(addr), Some((size, _))) = (data.paddr.or(data.eaddr), data.store) {
                self.copy_memory(model, addr, 1 << size);
            }
        }
    }

    /// Sets a register in the model as the trace has it.
    pub(super) fn set_register<M: Model>(&self, model: &mut M, register: Register, value: u64) {
        // What the model does not have cannot be set.
        let _ = model.write(place(register), self.shadow.boxed(register, value));
    }

    /// pc and mode from the shadow.
    pub(super) fn place_model<M: Model>(&self, model: &mut M) {
        if let Some(pc) = self.shadow.pc {
            let _ = model.write(Place::Pc, pc);
        }
        if let Some(mode) = self.shadow.mode {
            let _ = model.write(Place::Mode, mode.code().into());
        }
    }

    /// Memory from the shadow, as far as it is known there.
    fn copy_memory<M: Model>(&self, model: &mut M, addr: u64, len: u64) {
        for addr in (0..len).map(|i| addr.wrapping_add(i)) {
            let value = self.shadow.memory.byte(addr).unwrap_or(0);
            let _ = model.write(Place::Memory { addr, size: 1 }, value.into());
        }
    }

    fn report(
        &mut self,
        (pc, bits): (u64, Option<u32>),
        differences: Found,
        reporter: &mut impl Reporter,
    ) -> ControlFlow<()> {
        let interrupt = self.reader.group().insn.is_none() && bits.is_none();
        let done = self.counters.instructions();
        let insn = if interrupt {
            done
        } else {
            done.saturating_sub(1)
        };
        if insn < self.options.from {
            return ControlFlow::Continue(());
        }
        self.counters.mismatches += 1;
        for difference in differences.iter() {
            self.counters.differ(difference.field.kind());
        }
        let groups = self.counters.groups as usize;
        let count = groups.min(PAST);
        for (slot, at) in self.ordered.iter_mut().zip(groups - count..groups) {
            *slot = self.past.get(at % PAST).copied().unwrap_or_default();
        }
        reporter.mismatch(&Mismatch {
            group: self.reader.group(),
            insn,
            pc,
            bits,
            differences,
            past: self.ordered.get(..count).unwrap_or_default(),
        })
    }

    /// Takes over what a group says, on both sides.
    pub(super) fn take_over<M: Model>(&mut self, model: &mut M) {
        self.apply(&Effects::default());
        let group = self.reader.group();
        self.shadow.apply_memory(group);
        for register in self.touched.iter() {
            if let Some(value) = self.shadow.get(register) {
                self.set_register(model, register, value);
            }
        }
        self.place_model(model);
        for transaction in &group.memory {
            let request = &transaction.request;
            self.copy_memory(model, request.addr, 1 << request.size);
        }
        for data in &group.data {
            if let (Some(addr), Some((size, _))) = (data.paddr, data.store) {
                self.copy_memory(model, addr, 1 << size);
            }
        }
        self.fresh.clear();
        self.note();
    }

    /// State that changed beside the instructions: volatile state is taken,
    /// anything else is a change the model did not make.
    pub(super) fn update<M: Model>(
        &mut self,
        model: &mut M,
        reporter: &mut impl Reporter,
    ) -> ControlFlow<()> {
        self.counters.updates += 1;
        let known = *self.shadow.known();
        self.apply(&Effects::default());
        let mut found = Found::new();
        for register in self.touched.iter() {
            let (Ok(own), Some(told)) = (model.read(place(register)), self.shadow.get(register))
            else {
                self.counters.unmodelled += 1;
                continue;
            };
            let own = self.shadow.fits(register, own);
            let volatile = self.options.volatile.bits(register);
            if !known.contains(register) {
                self.set_register(model, register, told);
            } else if (told ^ own) & !volatile != 0
                && !self.config.absent.registers.contains(register)
            {
                differ(&mut found, Field::Register(register), None, Some(told));
            }
        }
        let pc = model.read(Place::Pc).unwrap_or(0);
        if self.reader.group().pc.is_some() || self.reader.group().mode.is_some() {
            self.compare_place(model, &mut found);
        }
        let flow = match found.is_empty() {
            true => ControlFlow::Continue(()),
            false => {
                self.repair(model, &Effects::default());
                self.report((pc, None), found, reporter)
            }
        };
        self.note();
        flow
    }

    fn note(&mut self) {
        let group = self.reader.group();
        let past = Past {
            group: group.number,
            at: group.at,
            pc: self.shadow.pc.unwrap_or(0),
            bits: group.insn.map_or(0, |insn| insn.bits),
        };
        self.remember(past);
    }
}

pub(super) fn differ(found: &mut Found, field: Field, expected: Option<u64>, actual: Option<u64>) {
    // What does not fit is one more of many.
    let _ = found.push(Difference {
        field,
        expected,
        actual,
    });
}

/// What instructions are decoded by.
const fn isa(xlen: Xlen) -> Isa {
    match xlen {
        Xlen::Rv32 => Isa::RV32GC,
        Xlen::Rv64 => Isa::RV64GC,
    }
}

/// The first few.
fn gather<'a, T: Copy + Default + 'a, const N: usize>(
    items: impl Iterator<Item = &'a T>,
) -> Few<T, N> {
    let mut few = Few::new();
    for item in items.take(N) {
        let _ = few.push(*item);
    }
    few
}

/// A register in the model.
pub(super) fn place(register: Register) -> Place {
    match register.as_reg() {
        Some(reg) => Place::Reg(reg),
        None => Place::Csr(register.number()),
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
