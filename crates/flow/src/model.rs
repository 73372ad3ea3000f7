//! A model of a hart that can be asked, told, stepped and reset: what the
//! tandem verifier checks a trace against (tandem trace protocol, Appendix A).

use crate::{Cause, Effects, RegId, Step};

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

    /// Attempts one instruction: it retires or traps. Interrupts are not taken
    /// by themselves. Everything that changed is put in `effects`.
    fn step(&mut self, effects: &mut Effects) -> Step;

    /// Takes this interrupt now, whether it is pending and enabled or not.
    fn interrupt(&mut self, cause: Cause, effects: &mut Effects) -> Step;

    /// Back to the state after power-on.
    fn reset(&mut self);
}
