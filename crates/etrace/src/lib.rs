//! E-Trace, the Efficient Trace for RISC-V: packets, an encoder model and a
//! decoder of instruction trace and data trace.
//!
//! Implements versions 1.1.1-draft (2020), 2.0 (ratified 2022) and 2.05 (in
//! public review 2026) of the specification with all their optional modes, selected
//! by [`Version`] and [`Config`]. The crate is `no_std` with `alloc`; it
//! opens no files and prints nothing.
//!
//! Blocks of the ingress port become packets, and packets become events again:
//!
//! ```
//! use hartrace_etrace::{Config, Decoder, Encoder, Version};
//! use hartrace_flow::{Consumer, Event, HartId, Image, Ingress, IngressSink as _, SpaceId};
//! use hartrace_isa::{Isa, Xlen};
//! use std::ops::ControlFlow;
//!
//! struct Count(u32);
//! impl Consumer for Count {
//!     fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
//!         if let Event::Run(run) = event {
//!             self.0 += run.insns;
//!         }
//!         ControlFlow::Continue(())
//!     }
//! }
//!
//! // Four c.nop at 0x1000, retired as one block of four halfwords.
//! let mut image = Image::new();
//! image.add_raw(SpaceId::FIRST, 0x1000, &[1, 0, 1, 0, 1, 0, 1, 0], Isa::RV64GC);
//! let block = Ingress { iaddr: 0x1000, iretire: 4, ilastsize: 0, ..Ingress::default() };
//!
//! let config = Config::new(Version::V2_0, Xlen::Rv64);
//! let mut encoder = Encoder::new(config.clone(), Vec::new())?;
//! encoder.ingress(HartId(0), &block);
//! encoder.finish();
//!
//! let mut count = Count(0);
//! let mut decoder = Decoder::new(config, &image)?;
//! decoder.feed(&encoder.into_sink(), &mut count);
//! decoder.finish(&mut count);
//! assert_eq!(count.0, 4);
//! # Ok::<(), hartrace_etrace::ConfigError>(())
//! ```

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod config;
pub mod csv;
mod data;
mod decode;
mod detect;
mod encapsulation;
mod encode;
mod explain;
mod fault;
mod frame;
mod modes;
mod packet;
mod parameters;
mod tally;
#[cfg(test)]
mod testing;

pub use config::{
    Config, ConfigError, Ending, IdleIrdepth, Ioption, Ioptions, MAX_PAYLOAD, MIN_QUEUE, NotifyBit,
    Padding, Queue, Resync, ResyncRule, ResyncUnit, ReturnRule, Shortening, TrapVectors,
    UpdisconRule, Version,
};
pub use data::{
    Compression, DataConfig, DataFollower, DataLayout, DataPacket, Outstanding, explain_data,
};
pub use decode::{Decoder, ETrace, Seam};
pub use detect::{Guess, guess, guess_in, guess_table, is_framed};
pub use encapsulation::{Encapsulation, Form, Packed, Packer};
pub use encode::{Counters, Encoder, Hart as HartEncoder, Sink};
pub use explain::{Field, Follower, explain, field_names};
pub use fault::Fault;
pub use frame::{Encapsulated, Framer, Kind, Piece, boundary};
pub use hartrace_flow::decode::Framing;
pub use packet::{
    BranchMap, Context, DataSupport, Layout, Packet, PacketName, Payload, QualStatus, Report,
    Start, Support, Trap,
};
pub use parameters::{
    Parameter, ParameterError, ParameterTable, Parameters, RegisterField, Registers,
};
pub use tally::{Branches, Counter, Extras, Reasons, Tally};
