//! Time for logs that have none.

use hartrace_flow::{Effects, HartId, Observer, Step, Wants};

/// Passes on steps as if each instruction had taken one cycle.
#[derive(Clone, Debug)]
pub struct Clocked<O> {
    inner: O,
    time: u64,
}

impl<O> Clocked<O> {
    /// Steps for `inner`, from time 0 on.
    pub fn new(inner: O) -> Clocked<O> {
        Clocked { inner, time: 0 }
    }
}

impl<O: Observer> Observer for Clocked<O> {
    const WANTS: Wants = O::WANTS;

    #[inline]
    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        let mut step = *step;
        match &mut step {
            Step::Insn(insn) => {
                self.time += 1;
                insn.time = self.time;
            }
            Step::Trap(trap) => trap.time = self.time,
            Step::Signal(_) => {}
        }
        self.inner.step(hart, &step, effects);
    }

    fn finish(&mut self) {
        self.inner.finish();
    }
}
