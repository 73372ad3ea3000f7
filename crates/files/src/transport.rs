//! What a file may hold instead of the stream that was sent: the contents of a circular
//! buffer, samples of pins, CoreSight frames.

mod order;
mod pins;
mod ram;

pub use order::Order;
pub use pins::{Pib, PibWidth};
pub use ram::{RamError, RamSink, Unwrapped};

/// How the bytes of a trace came into the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transport {
    /// Order of the bytes.
    pub order: Order,
    /// A circular buffer, from its start to its limit.
    pub ram: Option<RamSink>,
    /// Samples of pins; their order is part of it.
    pub pib: Option<Pib>,
    /// Frames of the CoreSight formatter, in either of these or in a plain file.
    pub coresight: Option<CoreSight>,
}

/// Frames of the CoreSight formatter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreSight {
    /// E-Trace: data packets have the id of their hart's instruction trace and so much
    /// more, and do not say themselves what they are.
    pub data_offset: Option<u8>,
}
