//! Control Transfer Records (Smctr/Ssctr): the circular buffer of recent control
//! transfers that a hart keeps for profilers.
//!
//! One engine, [`Ctr`], with two register maps: the draft 0.1.4 and the
//! ratified 1.0 (with the correction of its cycle count of December 2024). The
//! crate is `no_std` with `alloc`; it opens no files and prints nothing.
//!
//! * [`Config`]: the parameters of an implementation: depths, optional fields,
//!   widths.
//! * [`Control`]: a control register, independent of its map.
//! * [`Record`]: one entry with its three registers.
//! * [`Ctr`]: records [`Transfer`](hartrace_flow::Transfer)s; read and written
//!   by software through CSRs ([`Csr`], [`Caller`]) and through the windows of
//!   Smcsrind and Sscsrind ([`Window`]).
//! * [`Predictor`]: a branch predictor model, which determines mispredictions.
//! * [`Snapshot`]: all state at one point in time; [`dump`]: snapshots in a file;
//!   [`Sampler`]: takes snapshots from steps; [`overlap`]: finds records that are
//!   in two snapshots.
//!
//! ```
//! use hartrace_ctr::{Config, Control, Ctr};
//! use hartrace_flow::{Mode, Transfer};
//! use hartrace_isa::{Itype, Xlen};
//!
//! let mut ctr = Ctr::new(Config::new(Default::default(), Xlen::Rv64))?;
//! ctr.set_control(Control::M.with(Control::U), 0);
//! ctr.record(&Transfer {
//!     source: 0x8000_0010,
//!     target: 0x8000_0100,
//!     kind: Itype::DirectCall,
//!     from: Some(Mode::M),
//!     to: Some(Mode::M),
//!     ..Transfer::default()
//! });
//! let newest = ctr.entry(0);
//! assert!(newest.is_valid());
//! assert_eq!(newest.source(), 0x8000_0010);
//! assert_eq!(newest.kind(), Some(Itype::DirectCall));
//! # Ok::<(), hartrace_ctr::ConfigError>(())
//! ```

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod clock;
mod config;
mod control;
mod csr;
pub mod dump;
mod engine;
mod fault;
pub mod overlap;
mod predict;
mod record;
mod ring;
mod sample;
mod snapshot;
mod version;

pub use config::{Config, ConfigError, Depths, RasCycles};
pub use control::Control;
pub use csr::{Caller, Csr, Denied, Indirect, Window};
pub use engine::{Ctr, Raw};
pub use fault::Fault;
pub use predict::{Bimodal, Gshare, NotTaken, Predictor, PredictorKind};
pub use record::{CycleCount, KINDS, Record};
pub use sample::{Every, Known, Sampler, SnapshotSink};
pub use snapshot::Snapshot;
pub use version::Version;
