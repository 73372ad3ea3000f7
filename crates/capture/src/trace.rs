//! Traces of every format: written from steps by a [`TraceWriter`], decoded
//! into events by [`Trace::decode`]. [`Format`] and [`Settings`] select the
//! format and its parameters.

mod blocks;
mod cause;
mod census;
mod checker;
mod code;
mod decoder;
mod drive;
mod explain;
mod fit;
mod format;
mod groups;
mod growth;
mod guess;
mod harts;
mod join;
mod meter;
mod open;
mod passed;
mod pieces;
mod reencapsulate;
mod repack;
mod replay;
mod streams;
mod table;
pub mod transport;
mod write;
mod writer;

pub use blocks::BlockEncoder;
pub use cause::likely_cause;
pub use census::{
    Bandwidth, Branches, Census, Count, Counting, KindCount, PacketCount, Reasons, SourceCount,
};
use code::Code;
pub use decoder::{Decoder, Seam};
pub(crate) use drive::Watch;
pub use drive::{DataGaps, DecodeError, Decoded, Tallied, Warned};
pub use explain::{
    Columns, Explained, Explainer, Field, Item, PieceFault, PieceKind, UnknownField, Value, View,
};
pub use fit::Misfit;
pub use format::{Format, Settings, SettingsError, adopt};
pub(crate) use groups::{GroupPiece, Groups, items};
pub use growth::Growth;
pub use guess::{Guess, Hint, Known};
pub use join::split;
pub use meter::{Meter, WINDOW};
pub use open::{ContainerFault, MAX_WHOLE, Refusal, Trace, TraceError};
use pieces::{Pieces, pieces};
pub use reencapsulate::{ReencapsulateError, Reencapsulated, reencapsulate, reencapsulated};
pub use repack::{Copied, Repack, harts_in};
pub use replay::Replay;
use streams::ContainerWriter;
pub(crate) use streams::StreamPiece;
pub use streams::{Streams, TandemDecoder};
pub(crate) use table::from_table;
pub use table::{BadRow, TableDamage};
pub use transport::{
    CoreSight, Deformatter, Formatter, Order, Pib, PibReader, PibWidth, PibWriter, RamBuffer,
    RamError, RamSink, Transport, TransportError, Unwrapped, read_pins, write_pins,
};
pub use write::Written;
pub use writer::{Put, TraceWriter, WriteError, WriteOptions};

use crate::config::{Config, Program};
use crate::program::ElfFile;
use crate::sidecar::sidecar_of;
use open::given_isa;
use std::path::Path;

/// The sidecar of a trace: its settings, and the programs with their
/// content.
#[must_use]
pub fn sidecar<'a>(
    trace: &Path,
    settings: &Settings,
    program: &Program,
    elf: impl IntoIterator<Item = (&'a ElfFile, &'a [u8])>,
) -> Config {
    let format = (settings.format().name(), settings.version());
    let mut sidecar = sidecar_of(trace, format, program, elf);
    settings.clone().of_own_encoder().complete(&mut sidecar);
    sidecar
}

#[cfg(test)]
mod tests;
