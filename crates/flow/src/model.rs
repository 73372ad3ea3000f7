//! A model of a hart whose state can be read, set, stepped and reset: the
//! reference that the tandem verifier checks a trace against (tandem trace
//! protocol, Appendix A).

use core::ops::ControlFlow;

use crate::{Cause, Effects, RegId, Step, Straights};

/// CSRs there can be.
const CSRS: u16 = 4096;

/// A piece of architectural state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// The program counter.
    Pc,
    /// The privilege mode, with the codes of [`Mode`](crate::Mode).
    Mode,
    /// An integer or floating-point register.
    Reg(RegId),
    /// A CSR, by number.
    Csr(u16),
    /// Memory at a physical address: 1, 2, 4 or 8 bytes.
    Memory {
        /// Physical address.
        addr: u64,
        /// Size in bytes.
        size: u8,
    },
}

/// The model has no such state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absent(pub Place);

impl core::fmt::Display for Absent {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "the model has no {:?}", self.0)
    }
}

impl core::error::Error for Absent {}

/// What looks at the steps of a model. When it breaks, the model does no more.
pub type Look<'a> = dyn FnMut(&Step, &Effects) -> ControlFlow<()> + 'a;

/// What says how many instructions, from the first on, were right.
pub type Confirm<'a> = dyn FnMut(&Straights<'_>) -> u64 + 'a;

/// A hart that can be checked against, one instruction at a time.
pub trait Model {
    /// Reads state without side effects.
    ///
    /// # Errors
    ///
    /// State the model does not have.
    fn read(&self, place: Place) -> Result<u64, Absent>;

    /// Sets state as if from outside, without the side effects an instruction
    /// would have.
    ///
    /// # Errors
    ///
    /// State the model does not have.
    fn write(&mut self, place: Place, value: u64) -> Result<(), Absent>;

    /// Gives every CSR the model has, in ascending order, as [`Model::read`]
    /// would.
    fn csrs(&self, visit: &mut dyn FnMut(u16, u64)) {
        for csr in 0..CSRS {
            if let Ok(value) = self.read(Place::Csr(csr)) {
                visit(csr, value);
            }
        }
    }

    /// Gives all memory that is not zero, in pieces of any size in the order
    /// of their physical addresses: what is not given reads as zero or does
    /// not exist. A model that does not know returns nothing.
    fn memory(&self, visit: &mut dyn FnMut(u64, &[u8])) {
        _ = visit;
    }

    /// Attempts one instruction: it retires or traps. Interrupts are not taken
    /// by themselves, waiting for one is done at once, and no host is called.
    /// Everything that changed is put in `effects`.
    fn step(&mut self, effects: &mut Effects) -> Step;

    /// Attempts up to `limit` instructions as [`Model::step`] would one by
    /// one, and shows each step to `watch` right after it, with its effects.
    /// When `watch` breaks, nothing more is done: the model is where the step
    /// left it. Breaks if `watch` did.
    fn steps(&mut self, limit: u64, watch: &mut Look<'_>) -> ControlFlow<()> {
        let mut effects = Effects::default();
        for _ in 0..limit {
            let step = self.step(&mut effects);
            watch(&step, &effects)?;
        }
        ControlFlow::Continue(())
    }

    /// Attempts up to `limit` instructions of straight-line code that change nothing but
    /// registers and memory, and shows them all at once, with everything that they changed
    /// ([`Straights::changes`]). As many of them stay as `confirm` says; the others are taken
    /// back, so that the model is where [`Model::steps`] would have left it.
    ///
    /// Gives how many there were before some were taken back: 0 where `confirm` was not asked,
    /// since the next instruction is none of these, or the model cannot do this at all.
    fn advance(&mut self, limit: u64, confirm: &mut Confirm<'_>) -> u64 {
        let _ = (limit, confirm);
        0
    }

    /// Takes this interrupt now, whether it is pending and enabled or not.
    fn interrupt(&mut self, cause: Cause, effects: &mut Effects) -> Step;

    /// Back to the state after power-on.
    fn reset(&mut self);
}
