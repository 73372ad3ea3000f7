//! N-Trace, the Nexus-based trace format of RISC-V: messages, an encoder model
//! and a decoder.
//!
//! Implements versions 1.0.0-rc7 (2023) and 1.0 (2024) of the RISC-V N-Trace
//! specification, selected by [`Version`]. The crate is `no_std` with `alloc`; it
//! opens no files and prints nothing.
//!
//! Blocks of the ingress port become messages, and messages become events again:
//!
//! ```
//! use hartrace_ntrace::{Config, Decoder, Encoder, Version};
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
//! let config = Config::new(Version::V1_0, Xlen::Rv64);
//! let mut encoder = Encoder::new(config.clone(), Vec::new())?;
//! encoder.ingress(HartId(0), &block);
//! encoder.finish();
//!
//! let mut count = Count(0);
//! let mut decoder = Decoder::new(config, &image)?;
//! decoder.feed(&encoder.into_sink(), &mut count);
//! decoder.finish(&mut count);
//! assert_eq!(count.0, 4);
//! # Ok::<(), hartrace_ntrace::ConfigError>(())
//! ```

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

pub use code::{Btype, Evcode, Sync, Tcode, Tcodes};
pub use config::{
    Config, ConfigError, Ending, IcntFull, ImplicitReturn, MAX_HIST_BITS, MAX_ICNT_BITS,
    MAX_REPEAT_BITS, MAX_SRC_BITS, MAX_STACK, MIN_QUEUE, OtherTcodes, Periodic, Queue,
    RepeatedHistory, StackKind, SyncUnit, Timestamps, TraceMode, TrapTypes, TriggerAction, Version,
};
pub use control::{
    Capabilities, RegisterError, RegisterField, Registers, TeControl, TeImpl, TeInstFeatures,
    TsCapabilities, TsControl,
};
pub use decode::{Decoder, NTrace, Seam};
pub use detect::{Guess, guess};
pub use encode::{Counters, Encoder, Hart as HartEncoder, Sink};
pub use explain::{FIELD_NAMES, Field, Follower, explain};
pub use fault::Fault;
pub use frame::{Framer, IDLE, MAX_MESSAGE, Piece};
pub use hartrace_flow::decode::Framing;
pub use message::{Body, Layout, Message};
pub use process::{Owner, Process};
pub use tally::{Counter, Extras, Tally};
