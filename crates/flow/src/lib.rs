//! The vocabulary of RISC-V trace.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bits;
mod blocks;
mod chain;
mod check;
mod event;
mod few;
mod image;
mod ingress;
mod mode;
mod model;
mod stack;
mod step;
mod transfer;
mod walk;

pub use bits::{BitReader, BitWriter};
pub use blocks::{Blocks, Rules};
pub use check::{Check, Checked, Difference, What};
pub use event::{Consumer, DataAccess, Event, Exit, Fork, Gap, Mark, Ownership, Reason, Run};
pub use few::Few;
pub use image::{Fetched, Image, ImageError, Insns, SpaceId};
pub use ingress::{
    Ctype, DataIngress, Ingress, IngressSink, ItypeWidth, Port, PortConfig, Retirement, Trigger,
};
pub use mode::{Context, HartId, Mode};
pub use model::{Absent, Model, Place};
pub use stack::{Remember, ReturnStack};
pub use step::{
    Access, AccessKind, Cause, CsrWrite, Effects, Insn, Many, Observer, RegId, RegWrite, Signal,
    Step, Trap, TrapStep, Wants,
};
pub use transfer::{EventTransfers, StepTransfers, Transfer, TransferSink};
pub use walk::{Evidence, Goal, History, NotTaken, Stop, UNCOUNTED, Walk};
