//! N-Trace, the RISC-V trace format made of Nexus messages: messages, an
//! encoder model and a decoder.
//!
//! Implements the RISC-V N-Trace specification 1.0.0-rc7 (2023) and 1.0
//! (2024), by name: [`Version`]. The crate is `no_std` with `alloc`; it opens
//! no files and prints nothing.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod code;
mod config;
mod control;
mod decode;
mod detect;
mod encode;
mod explain;
mod fault;
mod fields;
mod frame;
mod hist;
mod message;
mod process;
mod tally;
#[cfg(test)]
mod testing;
mod transport;

pub use code::{Btype, Evcode, Sync, Tcode};
pub use config::{
    Config, ConfigError, Ending, IcntFull, ImplicitReturn, MAX_HIST_BITS, MAX_ICNT_BITS,
    MAX_REPEAT_BITS, MAX_SRC_BITS, MAX_STACK, MIN_QUEUE, Periodic, Queue, RepeatedHistory,
    StackKind, SyncUnit, Timestamps, TraceMode, TrapTypes, TriggerAction, Version,
};
pub use control::{
    Capabilities, RegisterError, RegisterField, Registers, TeControl, TeImpl, TeInstFeatures,
    TsCapabilities, TsControl,
};
pub use decode::{Decoder, NTrace, Seam};
pub use detect::{Guess, guess};
pub use encode::{Counters, Encoder, Hart as HartEncoder, Sink};
pub use explain::{Field, Follower, explain};
pub use fault::Fault;
pub use frame::{Framer, IDLE, MAX_MESSAGE, Piece};
pub use message::{Body, Layout, Message};
pub use process::{Owner, Process};
pub use tally::{Extras, Tally};
pub use transport::{
    Order, Pib, PibReader, PibWidth, PibWriter, RamBuffer, RamError, RamSink, Unwrapped,
};
