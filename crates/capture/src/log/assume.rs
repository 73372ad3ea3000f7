//! Privilege modes for logs that do not record them.

use hartrace_flow::{Cause, Effects, HartId, Mode, Observer, Step, Straights, Wants};

/// The encoding of ecall.
const ECALL: u32 = 0x73;

/// Passes on steps as if all of them had run in one mode. The cause of an
/// ecall follows from it.
#[derive(Clone, Debug)]
pub struct Assume<O> {
    inner: O,
    mode: Mode,
}

impl<O> Assume<O> {
    /// Steps for `inner`, in this mode.
    pub fn new(inner: O, mode: Mode) -> Assume<O> {
        Assume { inner, mode }
    }

    /// What takes the steps.
    pub fn inner(&self) -> &O {
        &self.inner
    }

    /// What took the steps.
    pub fn into_inner(self) -> O {
        self.inner
    }
}

impl<O: Observer> Observer for Assume<O> {
    const WANTS: Wants = O::WANTS;

    #[inline]
    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        let mut step = *step;
        match &mut step {
            Step::Insn(insn) => insn.mode = self.mode,
            Step::Trap(trap) => {
                // The cause of an ecall gives its mode.
                if !matches!(trap.trap.cause, Cause::Exception(Some(8..=11))) {
                    trap.mode = self.mode;
                }
                if trap.bits == Some(ECALL) && trap.trap.cause == Cause::Exception(None) {
                    trap.trap.cause = Cause::Exception(ecall(self.mode));
                }
            }
            Step::Signal(_) => {}
        }
        self.inner.step(hart, &step, effects);
    }

    fn straights(&mut self, hart: HartId, code: &Straights<'_>) {
        let mode = self.mode;
        self.inner.straights(hart, &Straights { mode, ..*code });
    }

    fn finish(&mut self) {
        self.inner.finish();
    }
}

/// The cause of an ecall in this mode.
fn ecall(mode: Mode) -> Option<u32> {
    match mode {
        Mode::U | Mode::VU => Some(8),
        Mode::S => Some(9),
        Mode::VS => Some(10),
        Mode::M => Some(11),
        Mode::D => None,
    }
}
