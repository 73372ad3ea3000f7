//! Open differences: either the core continued with the value in the trace, or
//! the trace was wrong and the core has the model's value.
//!
//! The model is set to the value of the trace (3.1, step 5). If a later group
//! contradicts that value and agrees with the model's own, the trace has
//! corrected itself: the model's value is restored, and that group is not a
//! second mismatch.

use alloc::vec::Vec;

use hartrace_flow::{AccessKind, Cause, Effects, Mode, Model, Place, Step};

use super::Core;
use super::host::Mailbox;
use super::judge::{Ask, Found, place};
use super::report::Field;
use crate::register::Register;
use crate::shadow::{Saved, Shadow, Touched};

/// More values than this are not kept in mind.
const MOST: usize = 256;

/// A value in dispute: what the trace reported and what the model had.
#[derive(Clone, Copy, Debug)]
struct Dispute<T> {
    what: T,
    told: u64,
    own: u64,
}

/// Values in dispute. They are looked at only when something differs, and
/// count as long as the shadow still has the reported value.
#[derive(Clone, Debug, Default)]
pub(super) struct Disputes {
    registers: Vec<Dispute<Register>>,
    memory: Vec<Dispute<u64>>,
    mode: Option<Dispute<()>>,
    /// Of the last group only.
    pc: Option<Dispute<u64>>,
    /// There may be some: spares all groups of a right trace a look.
    pub(super) open: bool,
}

impl Disputes {
    pub(super) fn is_empty(&self) -> bool {
        self.registers.is_empty()
            && self.memory.is_empty()
            && self.mode.is_none()
            && self.pc.is_none()
    }

    /// A register has a new value that both sides agree on, be it the same.
    pub(super) fn overwrite(&mut self, register: Register) {
        self.registers.retain(|d| d.what != register);
    }

    /// So has memory.
    pub(super) fn overwrite_memory(&mut self, addr: u64, len: u64) {
        self.memory.retain(|d| d.what.wrapping_sub(addr) >= len);
    }
}

/// What a step has done, to be taken back.
pub(super) struct Undo {
    shadow: Saved,
    fresh: Touched,
    mailbox: Mailbox,
    /// Bytes of memory before the step.
    memory: Vec<(u64, u8)>,
}

impl Core {
    /// Drops what the current group has reported again, with the registers that
    /// changed at hand. Where that differs it is in dispute again.
    pub(super) fn overwrite(&mut self) {
        if !self.disputes.open {
            return;
        }
        for register in self.touched.iter() {
            self.disputes.overwrite(register);
        }
        for addr in self.stored(&self.effects) {
            self.disputes.overwrite_memory(addr, 1);
        }
        if self.reader.group().mode.is_some() {
            self.disputes.mode = None;
        }
    }

    /// Remembers what the model has where it differs from the trace, before it
    /// is set to what the trace says.
    pub(super) fn keep_in_mind(&mut self, model: &dyn Model, effects: &Effects, found: &Found) {
        let disputes = &mut self.disputes;
        for difference in found.iter() {
            match difference.field {
                Field::Register(register) => {
                    let Ok(own) = model.read(place(register)) else {
                        continue;
                    };
                    disputes.registers.retain(|d| d.what != register);
                    disputes.registers.push(Dispute {
                        what: register,
                        told: self.shadow.last(register),
                        own: self.shadow.fits(register, own),
                    });
                }
                Field::Pc => {
                    disputes.pc = self.shadow.pc.map(|told| Dispute {
                        what: self.reader.group().number + 1,
                        told,
                        own: model.read(Place::Pc).unwrap_or(told),
                    });
                }
                Field::Mode => {
                    disputes.mode = self.shadow.mode.map(|told| Dispute {
                        what: (),
                        told: told.code().into(),
                        own: model.read(Place::Mode).unwrap_or(3),
                    });
                }
                _ => {}
            }
        }
        let stores = |kind: Field| found.iter().any(|d| d.field == kind);
        if stores(Field::StoreAddress) || stores(Field::StoreData) || stores(Field::StoreSize) {
            for addr in self.stored(effects) {
                let Ok(own) = model.read(Place::Memory { addr, size: 1 }) else {
                    continue;
                };
                let told = self.shadow.memory.byte(addr).unwrap_or(0).into();
                self.disputes.memory.retain(|d| d.what != addr);
                self.disputes.memory.push(Dispute {
                    what: addr,
                    told,
                    own,
                });
            }
        }
        let disputes = &mut self.disputes;
        disputes.open = !disputes.is_empty();
        disputes.registers.truncate(MOST);
        let extra = disputes.memory.len().saturating_sub(MOST);
        disputes.memory.drain(..extra);
    }

    /// Whether the group agrees with what is in dispute the other way: `Some`
    /// is the step that does. Otherwise both sides are as before the step.
    pub(super) fn take_back(&mut self, model: &mut dyn Model, ask: Ask) -> Option<Step> {
        self.settle();
        if self.disputes.is_empty() {
            return None;
        }
        self.swap(model);
        let step = self.ask(model, ask);
        let undo = self.save();
        if self.examine(model, ask, &step).is_empty() {
            self.counters.taken_back += 1;
            self.disputes = Disputes::default();
            return Some(step);
        }
        self.undo(model, &undo);
        self.swap(model);
        None
    }

    /// Whether a register is in dispute that a trap writes without a report.
    pub(super) fn must_carry(&mut self) -> bool {
        if self.disputes.registers.is_empty() {
            return false;
        }
        self.settle();
        let unreported = &self.config.absent.in_traps;
        let mut disputes = self.disputes.registers.iter();
        disputes.any(|d| unreported.contains(d.what))
    }

    /// A trap that both sides agree on changes what is in dispute: what it
    /// makes of the model's value is in dispute after it. Both sides are as
    /// before the trap.
    pub(super) fn carry(&mut self, model: &mut dyn Model, ask: Ask) -> (Step, Found) {
        self.swap(model);
        self.ask(model, ask);
        let read = |d: &Dispute<Register>| Some((d.what, model.read(place(d.what)).ok()?));
        let after: Vec<_> = self.disputes.registers.iter().filter_map(read).collect();
        let undo = self.save();
        self.undo(model, &undo);
        self.swap(model);
        let step = self.ask(model, ask);
        let found = self.examine(model, ask, &step);
        for dispute in &mut self.disputes.registers {
            if let Some((_, own)) = after.iter().find(|(what, _)| *what == dispute.what) {
                dispute.told = self.shadow.last(dispute.what);
                dispute.own = self.shadow.fits(dispute.what, *own);
            }
        }
        (step, found)
    }

    /// Asks the model, and sees whether it would have taken an interrupt.
    pub(super) fn ask(&mut self, model: &mut dyn Model, ask: Ask) -> Step {
        match ask {
            Ask::Step => model.step(&mut self.effects),
            Ask::Interrupt(code) => {
                self.disabled = !self.is_enabled(model, code);
                model.interrupt(Cause::Interrupt(Some(code)), &mut self.effects)
            }
        }
    }

    /// Drops what has been overwritten since.
    fn settle(&mut self) {
        let shadow = &self.shadow;
        let number = self.reader.group().number;
        let disputes = &mut self.disputes;
        disputes
            .registers
            .retain(|d| shadow.get(d.what) == Some(d.told));
        disputes
            .memory
            .retain(|d| shadow.memory.byte(d.what).unwrap_or(0) == d.told as u8);
        let mode = shadow.mode.map(|mode| u64::from(mode.code()));
        disputes.mode = disputes.mode.filter(|d| mode == Some(d.told));
        disputes.pc = disputes
            .pc
            .filter(|d| shadow.pc == Some(d.told) && d.what == number);
    }

    /// Exchanges the reported value and the model's value, on both sides.
    fn swap(&mut self, model: &mut dyn Model) {
        for dispute in &mut self.disputes.registers {
            core::mem::swap(&mut dispute.told, &mut dispute.own);
            self.shadow.put(dispute.what, dispute.told);
            // The model has it: it was read there.
            let told = self.shadow.boxed(dispute.what, dispute.told);
            let _ = model.write(place(dispute.what), told);
        }
        for dispute in &mut self.disputes.memory {
            core::mem::swap(&mut dispute.told, &mut dispute.own);
            let addr = dispute.what;
            self.shadow.memory.write(addr, 1, dispute.told);
            let _ = model.write(Place::Memory { addr, size: 1 }, dispute.told);
        }
        if let Some(dispute) = &mut self.disputes.mode {
            core::mem::swap(&mut dispute.told, &mut dispute.own);
            self.shadow.mode = Mode::from_code(dispute.told as u8);
        }
        if let Some(dispute) = &mut self.disputes.pc {
            core::mem::swap(&mut dispute.told, &mut dispute.own);
            self.shadow.pc = Some(dispute.told);
        }
        self.place_model(model);
    }

    /// What a look at the step at hand may change.
    pub(super) fn save(&self) -> Undo {
        let mut touched = Touched::default();
        for write in self.effects.regs.iter() {
            touched.add(write.reg.into());
        }
        let csrs = self.effects.csrs.iter().map(|w| Register::csr(w.csr));
        let told = self.reader.group().changes.iter().map(|c| c.register);
        for register in csrs.chain(told) {
            Shadow::holders(register, &mut |holder| touched.add(holder));
        }
        let stored = self.stored(&self.effects);
        Undo {
            shadow: self.shadow.save(touched.iter()),
            fresh: self.fresh.clone(),
            mailbox: self.mailbox.clone(),
            memory: stored
                .map(|addr| (addr, self.shadow.memory.byte(addr).unwrap_or(0)))
                .collect(),
        }
    }

    /// Back to before the step, on both sides.
    pub(super) fn undo(&mut self, model: &mut dyn Model, undo: &Undo) {
        self.shadow.restore(&undo.shadow);
        self.fresh = undo.fresh.clone();
        self.mailbox = undo.mailbox.clone();
        for &(register, value, _) in &undo.shadow.registers {
            self.set_register(model, register, value);
        }
        for &(addr, byte) in &undo.memory {
            self.shadow.memory.write(addr, 1, byte.into());
            let _ = model.write(Place::Memory { addr, size: 1 }, byte.into());
        }
        self.place_model(model);
    }

    /// The bytes of memory that a step or the group at hand writes.
    fn stored(&self, effects: &Effects) -> impl Iterator<Item = u64> + use<> {
        let own = effects.accesses.iter();
        let own = own.filter(|a| a.kind != AccessKind::Load);
        let own = own.map(|a| (a.paddr.unwrap_or(a.addr), 1u64 << a.size.min(3)));
        let told = self.reader.group().data.iter().filter_map(|data| {
            let (size, _) = data.store?;
            Some((data.paddr.or(data.eaddr)?, 1u64 << size))
        });
        let all: Vec<(u64, u64)> = own.chain(told).collect();
        all.into_iter()
            .flat_map(|(addr, len)| (0..len).map(move |i| addr.wrapping_add(i)))
    }
}
