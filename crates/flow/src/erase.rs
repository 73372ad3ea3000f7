//! Type-erased observers: a source is compiled once per set of
//! [`Wants`](crate::Wants), not once per observer.

use core::marker::PhantomData;

use hartrace_isa::{Flow, Isa};

use crate::{Effects, HartId, Observer, Step, Wants};

/// Takes steps like [`Observer::step`].
pub type StepFn<'o> = dyn FnMut(HartId, &Step, &Effects) + 'o;

/// A set of wants that sources are compiled for.
pub trait Kind {
    /// The set.
    const WANTS: Wants;
}

/// Traps and signals only.
#[derive(Debug)]
pub enum Events {}

/// Jumps, taken branches, traps and signals.
#[derive(Debug)]
pub enum Transfers {}

/// Every step, no effects.
#[derive(Debug)]
pub enum Steps {}

/// Every step with all its effects.
#[derive(Debug)]
pub enum Everything {}

impl Kind for Events {
    const WANTS: Wants = Wants::EVENTS;
}

impl Kind for Transfers {
    const WANTS: Wants = Wants::TRANSFERS.with(Wants::EVENTS);
}

impl Kind for Steps {
    const WANTS: Wants = Wants::STEPS;
}

impl Kind for Everything {
    const WANTS: Wants = Wants::ALL;
}

/// An observer of a [`Kind`] whose own type is not known.
pub struct Erased<'s, 'o, K> {
    step: &'s mut StepFn<'o>,
    kind: PhantomData<K>,
}

impl<'s, 'o, K: Kind> Erased<'s, 'o, K> {
    /// An observer that passes its steps on.
    pub fn new(step: &'s mut StepFn<'o>) -> Erased<'s, 'o, K> {
        let kind = PhantomData;
        Erased { step, kind }
    }
}

impl<K: Kind> Observer for Erased<'_, '_, K> {
    const WANTS: Wants = K::WANTS;

    #[inline]
    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        (self.step)(hart, step, effects);
    }
}

/// Where a source sends steps that an observer of type `O` wants, by the kind
/// it has to run as. A source has one function for each kind.
pub trait Source {
    /// What running gives.
    type Output;

    /// Runs for an observer of [`Events`].
    fn events(self, step: &mut StepFn<'_>) -> Self::Output;
    /// Runs for an observer of [`Transfers`].
    fn transfers(self, step: &mut StepFn<'_>) -> Self::Output;
    /// Runs for an observer of [`Steps`].
    fn steps(self, step: &mut StepFn<'_>) -> Self::Output;
    /// Runs for an observer of [`Everything`].
    fn everything(self, step: &mut StepFn<'_>) -> Self::Output;
}

/// Runs a source as the smallest kind that gives the observer all it wants, and
/// passes on no more than that.
pub fn run<O: Observer, S: Source>(source: S, observer: &mut O) -> S::Output {
    let effects = Wants::REGS.with(Wants::CSRS).with(Wants::ACCESSES);
    if O::WANTS.overlaps(effects) {
        if O::WANTS == Wants::ALL {
            return source.everything(&mut |h, s, e| observer.step(h, s, e));
        }
        return source.everything(&mut |h, s, e| wanted(h, s, e, observer));
    }
    if O::WANTS.contains(Wants::INSNS) {
        return match O::WANTS.contains(Wants::EVENTS) {
            true => source.steps(&mut |h, s, e| observer.step(h, s, e)),
            false => source.steps(&mut |h, s, e| wanted(h, s, e, observer)),
        };
    }
    if O::WANTS.contains(Wants::TRANSFERS) {
        return match O::WANTS.contains(Wants::EVENTS) {
            true => source.transfers(&mut |h, s, e| observer.step(h, s, e)),
            false => source.transfers(&mut |h, s, e| match s {
                Step::Insn(_) => observer.step(h, s, e),
                Step::Trap(_) | Step::Signal(_) => {}
            }),
        };
    }
    match O::WANTS.contains(Wants::EVENTS) {
        true => source.events(&mut |h, s, e| observer.step(h, s, e)),
        false => source.events(&mut |_, _, _| {}),
    }
}

/// Passes on the part of a step that an observer of an unusual set wants.
fn wanted<O: Observer>(hart: HartId, step: &Step, effects: &Effects, observer: &mut O) {
    let needs = match step {
        // A taken branch to the next instruction is the one transfer that
        // cannot be seen here.
        Step::Insn(insn) => match Flow::of_retired(insn.bits, Isa::RV64GC) {
            _ if insn.next != insn.end() => Wants::TRANSFERS,
            Flow::Seq | Flow::Const { .. } | Flow::Branch { .. } | Flow::Trap => Wants::INSNS,
            _ => Wants::TRANSFERS,
        },
        Step::Trap(_) | Step::Signal(_) => Wants::EVENTS,
    };
    if !O::WANTS.contains(needs) {
        return;
    }
    let mut part = *effects;
    if !O::WANTS.contains(Wants::REGS) {
        part.regs.clear();
    }
    if !O::WANTS.contains(Wants::CSRS) {
        part.csrs.clear();
    }
    if !O::WANTS.contains(Wants::ACCESSES) {
        part.accesses.clear();
    }
    observer.step(hart, step, &part);
}
