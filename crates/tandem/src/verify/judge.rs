//! The full comparison: everything that changed on either side, with allowances
//! for what no model could know.

use core::ops::ControlFlow;

use hartrace_flow::{Effects, Few, Model, Place, Step};
use hartrace_isa::{Isa, Op, Xlen, decode};

use super::Core;
use super::report::{Difference, Field, Past, Reporter};
use crate::elements::Registers;
use crate::group::NewPc;
use crate::register::Register;
use crate::shadow::Shadow;

/// What differs in a group.
pub(super) type Found = Few<Difference, 24>;

/// Writes without a change that were reported before an unreported one counts
/// as missing.
pub(super) const SURE: u32 = 8;

/// What is known of a group and the step that answers it.
pub(super) struct Case {
    /// What the model's instruction does.
    pub(super) op: Op,
    /// The instruction, 0 where there is none.
    pub(super) bits: u32,
    /// A trap was taken, on either side.
    pub(super) trap: bool,
    /// rs2 before the step, for a store-conditional.
    pub(super) operand: u64,
    /// What was known before the group.
    pub(super) known: Registers,
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
    pub(super) fn judge(
        &mut self,
        model: &mut dyn Model,
        ask: Ask,
        step: Step,
        reporter: &mut dyn Reporter,
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
        let done = self.counters.instructions();
        let past = Past {
            insn: done.saturating_sub((ask == Ask::Step).into()),
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
    /// something is missing before it: then nothing can be said about what
    /// it did. Whether a field is an integer or a floating-point register
    /// matters little here; too many are better than too few.
    fn is_blind(&self, step: &Step) -> bool {
        let known = self.shadow.known();
        let Step::Insn(insn) = step else {
            return false;
        };
        let inst = decode(insn.bits, isa(self.config.xlen));
        let mut blind = [inst.rs1, inst.rs2]
            .iter()
            .any(|reg| !known.contains(Register::x(reg.number())));
        if inst.op.is_float() {
            blind |= [inst.rs1, inst.rs2, inst.rs3()]
                .iter()
                .any(|reg| !known.contains(Register::f(reg.number())));
        }
        blind
    }

    /// Looks at a group that differs in other ways: with what is in dispute
    /// the other way, and with an unreported interrupt. Both sides are
    /// as before the step.
    fn reconsider(&mut self, model: &mut dyn Model, ask: Ask) -> (Step, Found) {
        if let Some(step) = self.take_back(model, ask) {
            return (step, Found::new());
        }
        if ask == Ask::Step
            && let Some(step) = self.trap_after_return(model)
        {
            return (step, Found::new());
        }
        if ask == Ask::Step
            && let Some(told) = self.unreported_trap(model)
        {
            return told;
        }
        if ask == Ask::Step
            && let Some(taken) = self.interrupt_instead(model)
        {
            return taken;
        }
        let step = self.ask(model, ask);
        let found = self.examine(model, ask, &step);
        (step, found)
    }

    /// An unreported trap before the group.
    fn unreported_trap(&mut self, model: &mut dyn Model) -> Option<(Step, Found)> {
        if let Some(told) = self.unreported_exception(model) {
            return Some(told);
        }
        let (step, code) = self.unreported_interrupt(model)?;
        let mut found = Found::new();
        differ(&mut found, Field::Interrupt, code.map(u64::from), None);
        Some((step, found))
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
    pub(super) fn examine(&mut self, model: &mut dyn Model, ask: Ask, step: &Step) -> Found {
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
    /// trace says, and it is reported.
    fn conclude(
        &mut self,
        model: &mut dyn Model,
        place: (u64, Option<u32>),
        found: Found,
        reporter: &mut dyn Reporter,
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
    pub(super) fn apply(&mut self, effects: &Effects) {
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

/// A register in the model.
pub(super) fn place(register: Register) -> Place {
    match register.as_reg() {
        Some(reg) => Place::Reg(reg),
        None => Place::Csr(register.number()),
    }
}
