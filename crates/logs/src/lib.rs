//! Logs of simulators, read as steps and written from steps.
//!
//! Every reader takes its text in chunks of any size, cut anywhere, and pushes
//! steps into an [`Observer`](hartrace_flow::Observer); the steps do not depend on the
//! chunks. Nothing is allocated per line and memory does not grow with the
//! log.
//!
//! An unreadable line is reported once, as a [`LineError`]; among the steps it is
//! replaced by [`Signal::Lost`](hartrace_flow::Signal::Lost), and reading continues
//! with the next line.
//!
//! ```
//! use hartrace_logs::PcReader;
//! use hartrace_flow::{Effects, HartId, Image, Observer, SpaceId, Step, Wants};
//! use hartrace_isa::Isa;
//!
//! struct Count(u64);
//! impl Observer for Count {
//!     const WANTS: Wants = Wants::STEPS;
//!     fn step(&mut self, _: HartId, _: &Step, _: &Effects) {
//!         self.0 += 1;
//!     }
//! }
//!
//! let mut image = Image::new();
//! image.add_raw(SpaceId::FIRST, 0x1000, &[0x01, 0x00, 0x01, 0x00], Isa::RV64GC);
//! let (mut reader, mut count) = (PcReader::new(&image), Count(0));
//! let mut damaged = |error| panic!("{error}");
//! reader.feed(b"0000000000001000\n00000000", &mut count, &mut damaged);
//! reader.feed(b"00001002\n", &mut count, &mut damaged);
//! reader.finish(&mut count, &mut damaged);
//! assert_eq!(count.0, 2);
//! ```
//!
//! * [`PcReader`], [`PcWriter`]: one pc per line; [`PcLines`] reads them without
//!   the program.
//! * [`SpikeReader`], [`SpikeWriter`]: Spike's `-l` and `--log-commits`, and the logs of
//!   CVA6, Rocket, BOOM and Dromajo.
//! * [`FormatReader`]: the other formats of simulators and cores ([`LogFormat`]), and
//!   lines described by [`Columns`].
//! * [`Entry`], [`EntrySteps`]: what one line says, and what makes steps of it, for
//!   sources of any other form; [`Rvfi`]: the RISC-V Formal Interface as an entry.
//! * [`IngressReader`], [`IngressWriter`]: the ingress port as CSV, to and from
//!   [`Ingress`](hartrace_flow::Ingress) blocks; [`BlockSteps`] turns blocks into steps.
//! * [`SpikeCsvReader`]: the `spike_pc_trace` CSV of the E-Trace reference flow.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod blocks;
mod csv;
mod entry;
mod error;
mod formats;
mod lines;
mod pc;
mod pieces;
mod rvfi;
mod scan;
mod site;
mod spike;
mod text;

#[cfg(test)]
mod tests;

pub use blocks::BlockSteps;
pub use csv::ingress::{IngressColumns, IngressCycle, IngressReader, IngressRow, Iretire};
pub use csv::pc_trace::SpikeCsvReader;
pub use csv::write::{IngressWriter, RowError};
pub use entry::{Entry, EntryAccess, EntryOptions, EntrySteps, EntryTrap, access_size};
pub use error::{Excerpt, LineError, LineErrorKind, Moment};
pub use formats::{Carries, Column, Columns, ColumnsError, FormatReader, LogFormat};
pub use lines::MAX_LINE;
pub use pc::{ListedTraps, PcLines, PcReader, PcWriter};
pub use rvfi::{PlainRvfi, Rvfi, RvfiMemory};
pub use spike::{SpikeOptions, SpikeReader, SpikeWriter};

use alloc::boxed::Box;
use hartrace_flow::Effects;

/// What takes the bytes of a log. Writers are compiled once, whatever it is.
type Put<'a> = Box<dyn FnMut(&[u8]) + 'a>;

/// For steps whose source records no effects, or not all.
fn unreported() -> Effects {
    Effects {
        incomplete: true,
        ..Effects::default()
    }
}
