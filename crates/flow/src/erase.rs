//! Type-erased observers: a source is compiled once per set of
//! [`Wants`], not once per observer.

use core::marker::PhantomData;

use hartrace_isa::{Flow, Isa};

use crate::{AnyObserver, Effects, HartId, Observer, Step, Straights, Wants, steps_of};

/// An observer that a source knows nothing more about.
pub type Dyn<'o> = dyn AnyObserver + 'o;

/// A set of wants that sources are compiled for.
pub trait Kind {
    /// The set.
    const WANTS: Wants;
}

/// Traps and signals only.
#[derive(Debug)]
pub enum Events {}

/// Every step, no effects.
#[derive(Debug)]
pub enum Steps {}

/// Every step with its data accesses.
#[derive(Debug)]
pub enum Data {}

/// Every step with all its effects, perhaps many at once.
#[derive(Debug)]
pub enum Everything {}

impl Kind for Events {
    const WANTS: Wants = Wants::EVENTS;
}

impl Kind for Steps {
    const WANTS: Wants = Wants::STEPS;
}

impl Kind for Data {
    const WANTS: Wants = Wants::STEPS.with(Wants::DATA);
}

impl Kind for Everything {
    const WANTS: Wants = Wants::ALL.with(Wants::CHANGES);
}

/// An observer of a [`Kind`] whose own type is not known.
pub struct Erased<'s, 'o, K> {
    observer: &'s mut Dyn<'o>,
    kind: PhantomData<K>,
}

impl<'s, 'o, K: Kind> Erased<'s, 'o, K> {
    /// An observer that passes its steps on.
    pub fn new(observer: &'s mut Dyn<'o>) -> Erased<'s, 'o, K> {
        let kind = PhantomData;
        Erased { observer, kind }
    }
}

impl<K: Kind> Observer for Erased<'_, '_, K> {
    const WANTS: Wants = K::WANTS;

    #[inline]
    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        self.observer.step(hart, step, effects);
    }

    #[inline]
    fn straights(&mut self, hart: HartId, code: &Straights<'_>) {
        self.observer.straights(hart, code);
    }

    fn finish(&mut self) {
        self.observer.finish();
    }
}

/// Where a source sends steps that an observer of type `O` wants, by the kind
/// it has to run as. A source has one function for each kind.
pub trait Source {
    /// What running gives.
    type Output;

    /// Runs for an observer of [`Events`].
    fn events(self, observer: &mut Dyn<'_>) -> Self::Output;
    /// Runs for an observer of [`Steps`].
    fn steps(self, observer: &mut Dyn<'_>) -> Self::Output;
    /// Runs for an observer of [`Data`].
    fn data(self, observer: &mut Dyn<'_>) -> Self::Output;
    /// Runs for an observer of [`Everything`].
    fn everything(self, observer: &mut Dyn<'_>) -> Self::Output;
}

/// Runs a source as the smallest kind that gives the observer all it wants, and
/// passes on no more than that.
pub fn run<O: Observer, S: Source>(source: S, observer: &mut O) -> S::Output {
    let wants = O::WANTS;
    if wants.overlaps(Wants::EFFECTS) {
        return match wants == Wants::ALL {
            true => source.everything(observer),
            false => source.everything(&mut Wanted(observer)),
        };
    }
    if wants.contains(Wants::DATA) {
        return match wants.contains(Wants::STEPS) {
            true => source.data(observer),
            false => source.data(&mut Wanted(observer)),
        };
    }
    if wants.contains(Wants::INSNS) {
        return match wants.contains(Wants::EVENTS) {
            true => source.steps(observer),
            false => source.steps(&mut Wanted(observer)),
        };
    }
    if wants.contains(Wants::TRANSFERS) {
        return source.steps(&mut Wanted(observer));
    }
    match wants.contains(Wants::EVENTS) {
        true => source.events(observer),
        false => source.events(&mut Nothing),
    }
}

/// Runs a source as the smallest kind that gives the observer all of `wants`, and
/// perhaps more.
pub fn run_any<S: Source>(source: S, wants: Wants, observer: &mut Dyn<'_>) -> S::Output {
    if wants.overlaps(Wants::EFFECTS) {
        source.everything(observer)
    } else if wants.contains(Wants::DATA) {
        source.data(observer)
    } else if wants.contains(Wants::TRANSFERS) {
        source.steps(observer)
    } else {
        source.events(observer)
    }
}

/// Drops everything.
struct Nothing;

impl Observer for Nothing {
    const WANTS: Wants = Wants::NOTHING;

    fn step(&mut self, _: HartId, _: &Step, _: &Effects) {}
}

/// Passes on the part of each step that an observer of an unusual set wants.
struct Wanted<'o, O>(&'o mut O);

impl<O: Observer> Observer for Wanted<'_, O> {
    const WANTS: Wants = Wants::ALL;

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
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
        if !O::WANTS.overlaps(Wants::EFFECTS) {
            self.0.step(hart, step, effects);
            return;
        }
        let mut part = *effects;
        if !O::WANTS.contains(Wants::REGS) {
            part.regs.clear();
        }
        if !O::WANTS.contains(Wants::CSRS) {
            part.csrs.clear();
            part.csr_access = None;
        }
        if !O::WANTS.contains(Wants::ACCESSES) {
            part.accesses.clear();
        }
        self.0.step(hart, step, &part);
    }

    fn straights(&mut self, hart: HartId, code: &Straights<'_>) {
        if code.has_changes() {
            return steps_of(self, hart, code);
        }
        if O::WANTS.contains(Wants::INSNS) {
            return self.0.straights(hart, code);
        }
        for insn in code.iter() {
            Observer::step(self, hart, &Step::Insn(insn), &Effects::NONE);
        }
    }

    fn finish(&mut self) {
        self.0.finish();
    }
}
