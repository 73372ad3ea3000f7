//! Observers that want everything, nothing, or something in between.

use hartrace_flow::{Effects, HartId, Observer, Step, Wants};

/// Keeps everything.
#[derive(Default)]
pub(super) struct Recorder {
    pub(super) steps: Vec<(Step, Effects)>,
}

impl Observer for Recorder {
    const WANTS: Wants = Wants::ALL;

    fn step(&mut self, _: HartId, step: &Step, effects: &Effects) {
        self.steps.push((*step, *effects));
    }
}

pub(super) struct Nothing;

impl Observer for Nothing {
    const WANTS: Wants = Wants::NOTHING;

    fn step(&mut self, _: HartId, _: &Step, _: &Effects) {}
}

/// Keeps what it is reported, and wants one of two sets: each is another
/// interpreter to be compiled.
#[derive(Default)]
pub(super) struct Partial<const N: u8> {
    pub(super) steps: Vec<(Step, Effects)>,
}

impl<const N: u8> Partial<N> {
    /// Whether a step is wanted.
    pub(super) fn must_see(step: &Step) -> bool {
        let wanted = match step {
            Step::Insn(insn) if insn.next == insn.end() => Wants::INSNS,
            // After the end of RV32's address space.
            Step::Insn(insn) if insn.next == insn.end().wrapping_sub(1 << 32) => Wants::INSNS,
            Step::Insn(_) => Wants::TRANSFERS,
            Step::Trap(_) | Step::Signal(_) => Wants::EVENTS,
        };
        Self::WANTS.contains(wanted)
    }

    /// The wanted part of effects.
    pub(super) fn part(effects: &Effects) -> Effects {
        let mut part = *effects;
        if !Self::WANTS.contains(Wants::REGS) {
            part.regs.clear();
        }
        if !Self::WANTS.contains(Wants::CSRS) {
            part.csrs.clear();
        }
        if !Self::WANTS.contains(Wants::ACCESSES) {
            part.accesses.clear();
        }
        part
    }
}

impl<const N: u8> Observer for Partial<N> {
    const WANTS: Wants = match N {
        0 => Wants::TRANSFERS.with(Wants::REGS).with(Wants::ACCESSES),
        _ => Wants::EVENTS.with(Wants::CSRS).with(Wants::REGS),
    };

    fn step(&mut self, _: HartId, step: &Step, effects: &Effects) {
        self.steps.push((*step, *effects));
    }
}
