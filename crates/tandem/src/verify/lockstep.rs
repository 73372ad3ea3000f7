//! Instructions of a core that runs beside the model: compared as they are, without being
//! groups first, as long as they agree in the simplest way.

use core::ops::ControlFlow;

use hartrace_flow::{AccessKind, Effects, Insn, Model, RegWrite, Step};

use super::report::{Kind, Past};
use super::{Core, Verifier};
use crate::register::Register;

/// What became of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lockstep {
    /// Core and model agree.
    Agrees,
    /// It was not looked at: feed its group.
    Unseen,
    /// The model has executed it, and did something else: feed its group, before
    /// anything else.
    Odd,
}

impl<M: Model> Verifier<M> {
    /// An instruction that a core has just retired, with all that it reports of it. All
    /// groups before it have been fed.
    #[inline]
    pub fn lockstep(&mut self, insn: &Insn, effects: &Effects) -> Lockstep {
        if !self.core.takes(insn, effects) {
            return Lockstep::Unseen;
        }
        let core = &mut self.core;
        let mut agrees = false;
        let _ = self.model.steps(1, &mut |step, own| {
            agrees = core.is_same(step, own, insn, effects);
            match agrees {
                true => core.accept_lockstep(insn, own),
                false => {
                    core.step = Some(*step);
                    core.effects.clone_from(own);
                }
            }
            ControlFlow::Break(())
        });
        match agrees {
            true => Lockstep::Agrees,
            false => Lockstep::Odd,
        }
    }
}

impl Core {
    /// Whether an instruction can be compared as it is.
    #[inline]
    fn takes(&self, insn: &Insn, effects: &Effects) -> bool {
        let few = effects.regs.len() <= 1 && effects.accesses.len() <= 1;
        let plain = effects.csrs.is_empty() && effects.mode.is_none() && !effects.incomplete;
        let ready = !self.ready && self.next.is_none() && self.step.is_none();
        few && plain
            && ready
            && insn.bits & 0x7f != 0x73
            && self.shadow.pc == Some(insn.pc)
            && !self.disputes.open
            && !self.is_over()
    }

    /// Whether the model has done what the core reports. It may say no where the full
    /// comparison finds no difference.
    #[inline]
    fn is_same(&self, step: &Step, own: &Effects, insn: &Insn, effects: &Effects) -> bool {
        let Step::Insn(step) = step else {
            return false;
        };
        let place = step.pc == insn.pc && step.bits == insn.bits && step.next == insn.next;
        if !place || !own.csrs.is_empty() || own.mode.is_some() || own.incomplete {
            return false;
        }
        let same = |ours: &RegWrite, theirs: &RegWrite| {
            let register = Register::from(ours.reg);
            ours.reg == theirs.reg && self.shadow.fits(register, ours.value) == theirs.value
        };
        let registers = match (&own.regs[..], &effects.regs[..]) {
            ([], []) => true,
            ([ours], [theirs]) => same(ours, theirs),
            _ => false,
        };
        registers
            && match (&own.accesses[..], &effects.accesses[..]) {
                ([], []) => true,
                ([ours], []) => ours.kind == AccessKind::Load,
                ([ours], [theirs]) => {
                    let plain = match ours.kind {
                        AccessKind::Load => true,
                        AccessKind::Store => {
                            let addr = ours.paddr.unwrap_or(ours.addr);
                            ours.data == theirs.data && !self.mailbox.minds(addr)
                        }
                        _ => false,
                    };
                    let same = ours.kind == theirs.kind && ours.addr == theirs.addr;
                    plain && same && ours.size == theirs.size
                }
                _ => false,
            }
    }

    /// Puts what both agree on into the shadow.
    #[inline]
    fn accept_lockstep(&mut self, insn: &Insn, own: &Effects) {
        if let [write] = &own.regs[..] {
            let register = Register::from(write.reg);
            let value = self.shadow.fits(register, write.value);
            let same = self.shadow.last(register) == value;
            self.unchanged = self.unchanged.saturating_add(same.into());
            self.shadow.put(register, value);
            let kind = match register.is_float() {
                true => Kind::Float,
                false => Kind::Integer,
            };
            self.counters.compare(kind, 1);
        }
        if let [access] = &own.accesses[..]
            && access.kind == AccessKind::Store
        {
            let addr = access.paddr.unwrap_or(access.addr);
            let value = access.data.unwrap_or(0);
            self.shadow.memory.write(addr, 1 << access.size, value);
            self.counters.compare(Kind::Store, 1);
        }
        if self.has_absent {
            self.shadow.follow_absent(&self.config.absent, own);
        }
        self.shadow.pc = Some(insn.next);
        self.counters.compare(Kind::Insn, 1);
        self.counters.compare(Kind::Pc, 1);
        self.counters.retired += 1;
        let past = Past {
            insn: self.counters.instructions() - 1,
            group: self.counters.groups,
            at: 0,
            pc: insn.pc,
            bits: insn.bits,
        };
        self.remember(past);
    }
}
