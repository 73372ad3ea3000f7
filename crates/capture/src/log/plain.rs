//! Steps without their effects.

use hartrace_flow::{Effects, HartId, Observer, Step, Straights, Wants};

/// Passes steps on without their effects, which then need not be made.
#[derive(Clone, Debug)]
pub struct Plain<O>(pub O);

impl<O: Observer> Observer for Plain<O> {
    const WANTS: Wants = Wants::STEPS;

    #[inline]
    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        self.0.step(hart, step, effects);
    }

    fn straights(&mut self, hart: HartId, code: &Straights<'_>) {
        self.0.straights(hart, code);
    }

    fn finish(&mut self) {
        self.0.finish();
    }
}
