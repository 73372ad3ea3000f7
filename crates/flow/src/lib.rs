//! The vocabulary of RISC-V trace.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod event;
mod few;
mod image;
mod ingress;
pub mod log;
mod mode;
mod stack;
mod step;

pub use event::{Consumer, DataAccess, Event, Exit, Fork, Gap, Mark, Ownership, Reason, Run};
pub use few::Few;
pub use image::{Fetched, Image, ImageError, Insns, SpaceId};
pub use ingress::{Ctype, DataIngress, Ingress, Trigger};
pub use mode::{Context, HartId, Mode};
pub use stack::{Remember, ReturnStack};
pub use step::{
    Access, AccessKind, Cause, CsrWrite, Effects, Insn, Many, Observer, RegId, RegWrite, Signal,
    Step, Trap, TrapStep, Wants,
};
