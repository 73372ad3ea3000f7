//! Random programs and random executions of them.
//!
//! A [`Spec`] says what kind of program, a seed says which one: [`Program`]
//! holds real instructions in an image, and a [`Driver`] walks over them and
//! draws every outcome, so that a step costs a few nanoseconds and no
//! simulator is needed. The same spec and seed give the same program and the
//! same steps on every machine.
//!
//! ```
//! use hartrace_proof::generate::{Driver, Program, Replay, Spec};
//!
//! let program = Program::new(&Spec::full(), 7);
//! let mut replay = Replay::new(&program);
//! Driver::new(&program, 7).run(1000, &mut replay);
//! assert_eq!(replay.result(), Ok(1000));
//! ```
//!
//! For property tests a number is enough: [`arbitrary`] makes a shape, a
//! program and the seed of a walk out of it.

pub mod asm;
mod body;
mod build;
mod check;
mod command;
mod elf;
mod filler;
mod layout;
mod program;
mod spec;
mod stats;
mod traps;
mod walk;

pub use crate::elf::Segment;
pub use check::{Fault, Replay};
pub use command::run as command;
pub use program::Program;
pub use spec::{Base, Modes, Spec, Surprises, Weights};
pub use stats::{Feature, Stats};
pub use walk::Driver;

pub use hartrace_testkit::Random;

/// Any program of any shape; walk over it with the same seed.
#[must_use]
pub fn arbitrary(seed: u64) -> Program {
    Program::new(&Spec::arbitrary(seed), seed)
}

#[cfg(test)]
mod tests;
