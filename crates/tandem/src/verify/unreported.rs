//! Traps that the trace does not report: the next group is already in the
//! handler. The model follows, so that one lost group is one mismatch.

use core::ops::ControlFlow;

use hartrace_flow::{Model, Place, Step};

use super::Core;
use super::judge::{Ask, Found, differ};
use super::report::Field;
use crate::follow::Follower;
use crate::group::{NewPc, TrapCsr};
use crate::register::Register;

impl Core {
    /// Whether the group agrees if the model's instruction traps first: `Some`
    /// is that trap, and what it wrote. Otherwise both sides are as before.
    pub(super) fn unreported_exception(&mut self, model: &mut dyn Model) -> Option<(Step, Found)> {
        let trap = self.ask(model, Ask::Step);
        let before = self.save();
        let mut found = Found::new();
        if matches!(trap, Step::Trap(_)) {
            for write in self.effects.csrs.iter() {
                let register = Register::csr(write.csr);
                differ(
                    &mut found,
                    Field::Register(register),
                    Some(write.value),
                    None,
                );
                self.shadow.put(register, write.value);
            }
            self.shadow.mode = self.effects.mode.or(self.shadow.mode);
            self.shadow.pc = model.read(Place::Pc).ok();
            let step = self.ask(model, Ask::Step);
            let undo = self.save();
            if self.examine(model, Ask::Step, &step).is_empty() {
                return Some((trap, found));
            }
            self.undo(model, &undo);
        }
        self.undo(model, &before);
        None
    }

    /// Whether the group agrees if the model takes an interrupt first: `Some`
    /// is the interrupt, and its code if there is only one that it can be.
    /// Otherwise both sides are as before.
    pub(super) fn unreported_interrupt(
        &mut self,
        model: &mut dyn Model,
    ) -> Option<(Step, Option<u32>)> {
        let only = self.candidates(model).count() == 1;
        for code in self.candidates(model) {
            let taken = self.ask(model, Ask::Interrupt(code));
            let before = self.save();
            self.follow(model);
            let step = self.ask(model, Ask::Step);
            let undo = self.save();
            if self.examine(model, Ask::Step, &step).is_empty() {
                return Some((taken, Some(code).filter(|_| only)));
            }
            self.undo(model, &undo);
            self.undo(model, &before);
        }
        None
    }

    /// The trace went where the model did not. If that is the handler of an
    /// interrupt, the model takes it after the instruction; `own` is where the
    /// model went.
    pub(super) fn enter_untold(&mut self, model: &mut dyn Model, own: u64) {
        let told = self.shadow.pc;
        for code in self.candidates(model) {
            // The model has a pc, and its interrupts go somewhere.
            let _ = model.write(Place::Pc, own);
            let effects = self.effects;
            self.ask(model, Ask::Interrupt(code));
            let before = self.save();
            if model.read(Place::Pc).ok() == told {
                self.follow(model);
                self.effects = effects;
                return;
            }
            self.undo(model, &before);
            self.effects = effects;
        }
    }

    /// A group with an instruction that trapped, which the model would retire: some cores
    /// show an interrupt as a trap of the instruction before which it is taken.
    pub(super) fn interrupt_instead(&mut self, model: &mut dyn Model) -> Option<(Step, Found)> {
        let group = self.reader.group();
        let jumps = matches!(group.pc, Some(NewPc::To(_) | NewPc::FromTo(..)));
        if !self.options.own_csrs || !jumps || group.told(TrapCsr::Epc).is_none() {
            return None;
        }
        let (ask, step) = self.guess(model)?;
        let undo = self.save();
        let found = self.examine(model, ask, &step);
        if !found.is_empty() {
            self.undo(model, &undo);
            return None;
        }
        if let Ask::Interrupt(code) = ask {
            self.last_interrupt = Some(code);
            self.counters.interrupts += 1;
            self.counters.retired = self.counters.retired.saturating_sub(1);
        }
        Some((step, found))
    }

    /// An interrupt without a cause: the model takes the likeliest that leads
    /// where the trace goes. `None` if there is none such.
    pub(super) fn guess(&mut self, model: &mut dyn Model) -> Option<(Ask, Step)> {
        let group = self.reader.group();
        let here = Follower::at(self.config.xlen, self.shadow.pc);
        let told = group.pc.and(here.moves(group).to)?;
        for code in self.candidates(model) {
            let ask = Ask::Interrupt(code);
            let step = self.ask(model, ask);
            if model.read(Place::Pc) == Ok(told) {
                return Some((ask, step));
            }
            let undo = self.save();
            self.undo(model, &undo);
        }
        None
    }

    /// Takes over a group that cannot be checked. Its instruction has a number
    /// all the same: how a trace is numbered does not depend on what is known.
    pub(super) fn adopt(&mut self, model: &mut dyn Model) -> ControlFlow<()> {
        self.counters.unchecked += 1;
        let group = self.reader.group();
        if self.shadow.attempts(group, &self.config.absent) {
            match group.insn.is_none() || group.traps() {
                true => self.counters.exceptions += 1,
                false => self.counters.retired += 1,
            }
        }
        self.take_over(model);
        ControlFlow::Continue(())
    }

    /// The interrupts that the model would take, the likeliest first.
    fn candidates(&self, model: &dyn Model) -> impl Iterator<Item = u32> + use<> {
        let usual = [7, 3, 11, 5, 1, 9];
        let last = self.last_interrupt;
        let rest = usual.map(|code| Some(code).filter(|code| Some(*code) != last));
        let [a, b, c, d, e, f] = rest;
        let all = [last, a, b, c, d, e, f];
        let enabled = all.map(|code| code.filter(|code| self.is_enabled(model, *code)));
        enabled.into_iter().flatten()
    }

    /// The shadow follows an interrupt of the model. The trace has not reported what it
    /// wrote: the CSRs are unknown until it does.
    fn follow(&mut self, model: &dyn Model) {
        for write in self.effects.csrs.iter() {
            let register = Register::csr(write.csr);
            self.shadow.put(register, write.value);
            self.shadow.doubt(register);
        }
        if let Some(mode) = self.effects.mode {
            self.shadow.mode = Some(mode);
        }
        self.shadow.pc = model.read(Place::Pc).ok();
    }
}
