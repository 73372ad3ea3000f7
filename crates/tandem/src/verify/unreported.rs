//! Traps that the trace does not report: the next group is already in the
//! handler. The model follows, so that one lost group is one mismatch.

use core::ops::ControlFlow;

use hartrace_flow::{Mode, Model, Place, Step};
use hartrace_isa::{MRET, SRET, csr};

use super::Core;
use super::judge::{Ask, Found, differ};
use super::report::{Field, Reporter};
use crate::follow::Follower;
use crate::group::{NewPc, TrapCsr};
use crate::register::Register;

/// The interrupts that the architecture defines for every hart, the likeliest first.
const USUAL: [u32; 6] = [7, 3, 11, 5, 1, 9];

/// The mode that the model is in.
fn mode_of(model: &dyn Model) -> Option<Mode> {
    let code = model.read(Place::Mode).ok()?;
    Mode::from_code(u8::try_from(code).ok()?)
}

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

    /// Whether the group is a return from a trap, and agrees if the model takes a trap right
    /// after it, of which the source shows nothing ([`Options::silent_traps`]): `Some` is the
    /// return. Otherwise both sides are as before.
    ///
    /// [`Options::silent_traps`]: super::Options::silent_traps
    pub(super) fn trap_after_return(&mut self, model: &mut dyn Model) -> Option<Step> {
        let bits = self.reader.group().insn?.bits;
        if !self.options.silent_traps || !matches!(bits, MRET | SRET) {
            return None;
        }
        let told = self.told_handler()?;
        let step = self.ask(model, Ask::Step);
        let undo = self.save();
        let found = self.examine(model, Ask::Step, &step);
        let place = |field| matches!(field, Field::Pc | Field::Mode);
        let elsewhere = found.iter().all(|difference| place(difference.field));
        let effects = self.effects;
        if matches!(step, Step::Insn(_)) && elsewhere && self.enter_handler(model, told) {
            self.effects = effects;
            self.doubt_cause();
            return Some(step);
        }
        self.effects = effects;
        self.undo(model, &undo);
        None
    }

    /// The model takes a trap where it is, if one leads to `handler`: that of its next
    /// instruction, or an interrupt. It is not counted: instructions have the numbers that
    /// they have in the source.
    fn enter_handler(&mut self, model: &mut dyn Model, handler: u64) -> bool {
        let own = model.read(Place::Pc).ok();
        (self.shadow.pc, self.shadow.mode) = (own, mode_of(model));
        let trap = self.ask(model, Ask::Step);
        if matches!(trap, Step::Trap(_)) && model.read(Place::Pc) == Ok(handler) {
            self.follow(model);
            return true;
        }
        let undo = self.save();
        self.undo(model, &undo);
        for code in self.candidates(model) {
            self.ask(model, Ask::Interrupt(code));
            if model.read(Place::Pc) == Ok(handler) {
                self.last_interrupt = Some(code);
                self.follow(model);
                return true;
            }
            let undo = self.save();
            self.undo(model, &undo);
        }
        false
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
        let (ask, step, _) = self.guess(model)?;
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

    /// An interrupt without a cause: the model takes the likeliest that leads where the
    /// trace goes. `None` if there is none such. With it, whether it may be another trap.
    pub(super) fn guess(&mut self, model: &mut dyn Model) -> Option<(Ask, Step, bool)> {
        let told = self.told_handler()?;
        let (mut likeliest, mut several) = (None, false);
        for code in self.candidates(model) {
            self.ask(model, Ask::Interrupt(code));
            if model.read(Place::Pc) == Ok(told) {
                several |= likeliest.is_some();
                likeliest = likeliest.or(Some(code));
            }
            let undo = self.save();
            self.undo(model, &undo);
        }
        // A port without CSRs marks interrupts. A trace that has them otherwise may leave
        // out those of an exception.
        let mcause = Register::csr(csr::MCAUSE);
        let exception = !self.config.absent.registers.contains(mcause);
        let ask = Ask::Interrupt(likeliest?);
        Some((ask, self.ask(model, ask), several || exception))
    }

    /// The trap that was taken may have been another: what it was is known when the trace
    /// shows it.
    pub(super) fn doubt_cause(&mut self) {
        for csr in [csr::MCAUSE, csr::MTVAL, csr::SCAUSE, csr::STVAL] {
            let register = Register::csr(csr);
            if !self.tells(register) {
                self.shadow.doubt(register);
            }
        }
    }

    /// A trap without a cause, where no interrupt leads that the model has enabled. It may be
    /// an exception; otherwise the core has taken an interrupt that it must not take.
    pub(super) fn unexplained(
        &mut self,
        model: &mut dyn Model,
        reporter: &mut dyn Reporter,
    ) -> ControlFlow<()> {
        let Some(told) = self.told_handler().filter(|_| self.knows_enabled(model)) else {
            return self.adopt(model);
        };
        let step = self.ask(model, Ask::Step);
        if matches!(step, Step::Trap(_)) && model.read(Place::Pc) == Ok(told) {
            return self.judge(model, Ask::Step, step, reporter);
        }
        let undo = self.save();
        self.undo(model, &undo);
        let pc = self.shadow.pc.unwrap_or(0);
        self.counters.interrupts += 1;
        self.force_interrupt(model, told);
        self.take_over(model);
        let mut found = Found::new();
        differ(&mut found, Field::Handler, None, Some(told));
        self.report((pc, None), found, reporter)
    }

    /// The model takes an interrupt that leads to a handler, enabled or not, so that the
    /// return from it leads back.
    fn force_interrupt(&mut self, model: &mut dyn Model, handler: u64) {
        for code in USUAL {
            self.ask(model, Ask::Interrupt(code));
            if model.read(Place::Pc) == Ok(handler) {
                self.follow(model);
                return;
            }
            let undo = self.save();
            self.undo(model, &undo);
        }
    }

    /// Whether the registers that enable interrupts and send them to their handlers are the
    /// model's to know: none was lost, and none is volatile.
    fn knows_enabled(&self, model: &dyn Model) -> bool {
        let registers = [csr::MSTATUS, csr::MIE, csr::MIDELEG, csr::MTVEC, csr::STVEC];
        registers.into_iter().all(|csr| {
            let register = Register::csr(csr);
            let known = self.shadow.known().contains(register);
            model.read(Place::Csr(csr)).is_err()
                || known && self.options.volatile.bits(register) == 0
        })
    }

    /// Where the trap of the group leads, if it says so.
    fn told_handler(&self) -> Option<u64> {
        let group = self.reader.group();
        let here = Follower::at(self.config.xlen, self.shadow.pc);
        group.pc.and(here.moves(group).to)
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

    /// The interrupts that the model would take if they were pending, the likeliest first.
    fn candidates(&self, model: &dyn Model) -> impl Iterator<Item = u32> + use<> {
        let mie = model.read(Place::Csr(csr::MIE)).unwrap_or(0);
        let last = self.last_interrupt.filter(|code| *code < 64);
        let known =
            |code: &u32| mie >> code & 1 != 0 || USUAL.contains(code) || last == Some(*code);
        let enabled = (0..64)
            .filter(known)
            .filter(|code| self.is_enabled(model, *code));
        let mut left = enabled.fold(0u64, |codes, code| codes | 1 << code);
        last.into_iter()
            .chain(USUAL)
            .chain(0..64)
            .filter(move |code| {
                let found = left >> code & 1 != 0;
                left &= !(1 << code);
                found
            })
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
