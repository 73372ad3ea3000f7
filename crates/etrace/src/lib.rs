//! E-Trace, the RISC-V trace format of efficient branch trace packets: packets,
//! an encoder model and a decoder of the instruction trace.
//!
//! Implements the 1.1.1-draft (2020) and 2.0 (ratified 2022) of the
//! specification, by name: [`Version`]. The crate is `no_std` with `alloc`; it
//! opens no files and prints nothing.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod config;
pub mod csv;
mod decode;
mod detect;
mod encode;
mod explain;
mod fault;
mod frame;
mod packet;
mod tally;
#[cfg(test)]
mod testing;

pub use config::{
    Config, ConfigError, Ending, IdleIrdepth, Ioption, Ioptions, MAX_PAYLOAD, MIN_QUEUE, Queue,
    Resync, ResyncRule, ResyncUnit, UpdisconRule, Version,
};
pub use decode::{Decoder, ETrace, Seam};
pub use detect::{Guess, guess, guess_table, is_framed};
pub use encode::{Counters, Encoder, Hart as HartEncoder, Sink};
pub use explain::{Field, Follower, explain};
pub use fault::Fault;
pub use frame::{Framer, Kind, Piece, boundary};
pub use packet::{
    BranchMap, Context, DataSupport, Layout, Packet, Payload, QualStatus, Report, Start, Support,
    Trap,
};
pub use tally::{Branches, Extras, Reasons, Tally};
