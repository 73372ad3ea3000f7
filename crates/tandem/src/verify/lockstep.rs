//! Instructions of a core that runs beside the model: compared as they are, without being
//! groups first, as long as they agree in the simplest way.

use core::ops::ControlFlow;

use hartrace_flow::{Access, AccessKind, CsrWrite, Effects, Insn, Model, RegWrite, Step};

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

/// An instruction that a core has just retired, with all that it reports of it. It has
/// changed no CSR, and stayed in its mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retired {
    /// Its address.
    pub pc: u64,
    /// Where it went.
    pub next: u64,
    /// The instruction, a compressed one in the low half.
    pub bits: u32,
    /// The register that it wrote.
    pub reg: Option<RegWrite>,
    /// Its load or store.
    pub access: Option<Access>,
}

impl Retired {
    /// An instruction with these effects, if they are no more than one register and one
    /// access.
    #[inline]
    #[must_use]
    pub fn new(insn: &Insn, effects: &Effects) -> Option<Retired> {
        let plain = effects.csrs.is_empty() && effects.mode.is_none() && !effects.incomplete;
        let reg = match &effects.regs[..] {
            [] => None,
            [write] => Some(*write),
            _ => return None,
        };
        let access = match &effects.accesses[..] {
            [] => None,
            [access] => Some(*access),
            _ => return None,
        };
        plain.then_some(Retired {
            pc: insn.pc,
            next: insn.next,
            bits: insn.bits,
            reg,
            access,
        })
    }
}

impl<M: Model> Verifier<M> {
    /// Lets the model execute an instruction that the core has retired, and compares. All
    /// groups before it have been fed.
    #[inline]
    pub fn lockstep(&mut self, retired: &Retired) -> Lockstep {
        self.lockstep_row(*retired, 1, |_| None)
    }

    /// The same for an instruction and at most so many in all, while the model runs on:
    /// `next` is given each one that agrees, and gives the one after it. What became of the
    /// last one that was given.
    #[inline]
    pub fn lockstep_row(
        &mut self,
        first: Retired,
        most: u64,
        mut next: impl FnMut(&Retired) -> Option<Retired>,
    ) -> Lockstep {
        let core = &mut self.core;
        if !core.takes(&first) {
            return Lockstep::Unseen;
        }
        let mut retired = first;
        let mut outcome = Lockstep::Agrees;
        let _ = self.model.steps(most, &mut |step, own| {
            if !core.is_same(step, own, &retired) {
                core.step = Some(*step);
                core.effects.clone_from(own);
                outcome = Lockstep::Odd;
                return ControlFlow::Break(());
            }
            core.accept_lockstep(&retired, own);
            let Some(after) = next(&retired) else {
                return ControlFlow::Break(());
            };
            if !core.takes(&after) {
                outcome = Lockstep::Unseen;
                return ControlFlow::Break(());
            }
            retired = after;
            ControlFlow::Continue(())
        });
        outcome
    }
}

impl Core {
    /// Whether an instruction can be compared as it is.
    #[inline]
    fn takes(&self, retired: &Retired) -> bool {
        let ready = !self.ready && self.next.is_none() && self.step.is_none();
        ready
            && retired.bits & 0x7f != 0x73
            && self.shadow.pc == Some(retired.pc)
            && !self.disputes.open
            && !self.is_over()
    }

    /// Whether the model has done what the core reports. It may say no where the full
    /// comparison finds no difference.
    #[inline]
    fn is_same(&self, step: &Step, own: &Effects, retired: &Retired) -> bool {
        let Step::Insn(step) = step else {
            return false;
        };
        let place = step.pc == retired.pc && step.bits == retired.bits && step.next == retired.next;
        if !place || own.mode.is_some() || own.incomplete {
            return false;
        }
        let registers = match (&own.regs[..], &retired.reg) {
            ([], None) => true,
            ([ours], Some(theirs)) => {
                let value = self.shadow.fits(ours.reg.into(), ours.value);
                ours.reg == theirs.reg && value == theirs.value
            }
            ([ours], None) => self.config.absent.registers.contains(ours.reg.into()),
            _ => false,
        };
        let absent = |write: &CsrWrite| {
            let register = Register::csr(write.csr);
            self.config.absent.registers.contains(register)
        };
        registers && own.csrs.iter().all(absent) && self.is_same_access(own, retired)
    }

    #[inline]
    fn is_same_access(&self, own: &Effects, retired: &Retired) -> bool {
        let [ours] = &own.accesses[..] else {
            return own.accesses.is_empty() && retired.access.is_none();
        };
        let harmless = match ours.kind {
            AccessKind::Load => true,
            AccessKind::Store => !self.mailbox.minds(ours.paddr.unwrap_or(ours.addr)),
            _ => false,
        };
        let load = ours.kind == AccessKind::Load;
        let same = match &retired.access {
            None => load || self.config.absent.stores,
            Some(theirs) => {
                let same = ours.kind == theirs.kind && ours.addr == theirs.addr;
                same && ours.size == theirs.size && (load || ours.data == theirs.data)
            }
        };
        harmless && same
    }

    /// Puts what both agree on into the shadow.
    #[inline]
    fn accept_lockstep(&mut self, retired: &Retired, own: &Effects) {
        if let Some(write) = &retired.reg {
            let (register, value) = (Register::from(write.reg), write.value);
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
        // What the core has reported is there already.
        if self.has_absent && (retired.reg.is_none() || !own.csrs.is_empty()) {
            self.shadow.follow_absent(&self.config.absent, own);
        }
        self.shadow.pc = Some(retired.next);
        self.counters.compare(Kind::Insn, 1);
        self.counters.compare(Kind::Pc, 1);
        self.counters.retired += 1;
        let past = Past {
            insn: self.counters.instructions() - 1,
            group: self.counters.groups,
            at: 0,
            pc: retired.pc,
            bits: retired.bits,
        };
        self.remember(past);
    }
}
