//! Sets the model to the state of the trace, and reports what differed.

use core::ops::ControlFlow;

use hartrace_flow::{AccessKind, Effects, Model, Place};

use super::judge::{Found, differ, place};
use super::report::{Field, Mismatch, Past, Reporter};
use super::{Core, PAST};
use crate::register::Register;

impl Core {
    /// Sets the model to what the trace says (3.1, step 5).
    pub(super) fn repair(&mut self, model: &mut dyn Model, effects: &Effects) {
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
    pub(super) fn set_register(&self, model: &mut dyn Model, register: Register, value: u64) {
        // What the model does not have cannot be set.
        let _ = model.write(place(register), self.shadow.boxed(register, value));
    }

    /// pc and mode from the shadow.
    pub(super) fn place_model(&self, model: &mut dyn Model) {
        if let Some(pc) = self.shadow.pc {
            let _ = model.write(Place::Pc, pc);
        }
        if let Some(mode) = self.shadow.mode {
            let _ = model.write(Place::Mode, mode.code().into());
        }
    }

    /// Memory from the shadow, as far as it is known there.
    pub(super) fn copy_memory(&self, model: &mut dyn Model, addr: u64, len: u64) {
        for addr in (0..len).map(|i| addr.wrapping_add(i)) {
            let value = self.shadow.memory.byte(addr).unwrap_or(0);
            let _ = model.write(Place::Memory { addr, size: 1 }, value.into());
        }
    }

    pub(super) fn report(
        &mut self,
        (pc, bits): (u64, Option<u32>),
        differences: Found,
        reporter: &mut dyn Reporter,
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
    pub(super) fn take_over(&mut self, model: &mut dyn Model) {
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
    pub(super) fn update(
        &mut self,
        model: &mut dyn Model,
        reporter: &mut dyn Reporter,
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

    pub(super) fn note(&mut self) {
        let group = self.reader.group();
        let past = Past {
            insn: self.counters.instructions(),
            group: group.number,
            at: group.at,
            pc: self.shadow.pc.unwrap_or(0),
            bits: group.insn.map_or(0, |insn| insn.bits),
        };
        self.remember(past);
    }
}
