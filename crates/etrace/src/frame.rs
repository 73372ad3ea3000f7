//! Packets in a stream of bytes: the file form of the reference models.
//!
//! Each packet has a header byte: its length in bits 0 to 4, its kind in bits 5
//! and 6 (2 for instruction trace, 3 for data trace), bit 7 clear. Zero bytes
//! between packets are padding.

use crate::{Fault, MAX_PAYLOAD};

/// What kind of trace a packet belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Instruction trace.
    Instruction,
    /// Data trace.
    Data,
}

/// A piece of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A packet: whose it is, of which kind, its payload.
    Packet(u16, Kind, &'a [u8]),
    /// So many bytes of padding.
    Idle(u64),
    /// So many bytes that belong to no packet.
    Bad(Fault, u64),
}

/// Finds packets. The bytes may come in pieces of any size.
#[derive(Clone, Debug)]
pub struct Framer {
    at: u64,
    kept: [u8; MAX_PAYLOAD + 1],
}

impl Framer {
    /// At the start of a stream.
    #[must_use]
    pub fn new() -> Framer {
        Framer {
            at: 0,
            kept: [0; MAX_PAYLOAD + 1],
        }
    }
}

impl Default for Framer {
    fn default() -> Framer {
        Framer::new()
    }
}
