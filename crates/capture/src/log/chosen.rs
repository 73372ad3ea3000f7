//! Selects one hart of a log.

use super::Fit;
use hartrace_flow::{Effects, HartId, Observer, Signal, Step, Straights, Wants};

/// Passes on the steps of one hart, or of all.
#[derive(Clone, Debug)]
pub struct Chosen<O> {
    inner: O,
    only: Option<HartId>,
    single: bool,
    /// Whose steps are passed on without asking.
    current: Option<HartId>,
    harts: Vec<HartId>,
    clash: bool,
    fit: Fit,
}

impl<O> Chosen<O> {
    /// Steps for `inner`: those of the hart `only`, or of all; `single` outputs
    /// have no room for two harts.
    pub fn new(inner: O, only: Option<HartId>, single: bool) -> Chosen<O> {
        Chosen {
            inner,
            only,
            single,
            current: None,
            harts: Vec::new(),
            clash: false,
            fit: Fit::default(),
        }
    }

    /// Those with instructions or traps.
    #[must_use]
    pub fn harts(&self) -> &[HartId] {
        &self.harts
    }

    /// What takes the steps.
    pub fn inner(&self) -> &O {
        &self.inner
    }

    /// What took the steps.
    pub fn into_inner(self) -> O {
        self.inner
    }

    /// The same harts, seen by `inner`.
    pub(super) fn seen_by<P>(self, inner: P) -> Chosen<P> {
        Chosen {
            inner,
            only: self.only,
            single: self.single,
            current: self.current,
            harts: self.harts,
            clash: self.clash,
            fit: self.fit,
        }
    }

    /// How the steps that were passed on fit the program.
    #[must_use]
    pub fn fit(&self) -> Fit {
        self.fit
    }

    /// Several harts where one was wanted and none chosen.
    #[must_use]
    pub fn clash(&self) -> bool {
        self.clash
    }

    /// The chosen hart did not appear.
    #[must_use]
    pub fn missing(&self) -> bool {
        self.only.is_some_and(|only| !self.harts.contains(&only))
    }

    /// Whether a step of another hart than the current is passed on.
    #[inline(never)]
    fn enter(&mut self, hart: HartId, step: &Step) -> bool {
        if let Step::Signal(signal) = step {
            // Before the first step nothing can be missing.
            let early = self.harts.is_empty() && *signal == Signal::Lost;
            return !early
                && match self.only {
                    Some(only) => hart == only,
                    None => !self.single || self.current.is_none(),
                };
        }
        if let Err(at) = self.harts.binary_search(&hart) {
            self.harts.insert(at, hart);
        }
        let passed = match self.only {
            Some(only) => hart == only,
            None => {
                self.clash |= self.single && self.current.is_some();
                !self.clash
            }
        };
        if passed {
            self.current = Some(hart);
        }
        passed
    }
}

impl<O: Observer> Observer for Chosen<O> {
    const WANTS: Wants = O::WANTS;

    #[inline]
    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        if self.current == Some(hart) || self.enter(hart, step) {
            self.fit.add(step);
            self.inner.step(hart, step, effects);
        }
    }

    fn straights(&mut self, hart: HartId, code: &Straights<'_>) {
        if self.current == Some(hart) {
            self.fit.steps += code.count;
            self.inner.straights(hart, code);
            return;
        }
        for insn in code.iter() {
            self.step(hart, &Step::Insn(insn), &Effects::NONE);
        }
    }

    fn finish(&mut self) {
        self.inner.finish();
    }
}
