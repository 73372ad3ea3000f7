//! Places in a stream where decoding can begin.

use crate::{Framer, Kind, Layout, Packet, Piece};

/// A place in a stream where decoding can begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncPoint {
    /// Offset of the packet's header.
    pub at: u64,
    /// Whose it is.
    pub src: u16,
    /// What it is.
    pub sync: Sync,
}

/// Why a packet has a full address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sync {
    /// Tracing starts, or a synchronisation was due (format 3 subformat 0).
    Start,
    /// A trap whose handler is told (format 3 subformat 1).
    Trap,
}

impl Packet {
    /// Why the packet has the full address of an instruction that retired, if
    /// it has one.
    #[must_use]
    pub const fn sync(&self) -> Option<Sync> {
        match self {
            Packet::Start(_) => Some(Sync::Start),
            Packet::Trap(trap) if trap.thaddr && trap.address.is_some() => Some(Sync::Trap),
            _ => None,
        }
    }
}

/// The packets with a full address in a stream that starts with the header of a
/// packet.
///
/// ```
/// use hartrace_etrace::{Config, Sync, Version, sync_points};
/// use hartrace_isa::Xlen;
///
/// // Support, start at 0x1000, an address.
/// let bytes = [0x41, 0x1f, 0x43, 0x73, 0x00, 0x04, 0x41, 0xf2];
/// let layout = Config::new(Version::V2_0, Xlen::Rv64).layout();
/// let points: Vec<_> = sync_points(&bytes, &layout).collect();
/// assert_eq!((points.len(), points[0].at, points[0].sync), (1, 2, Sync::Start));
/// ```
pub fn sync_points<'b>(bytes: &'b [u8], layout: &Layout) -> impl Iterator<Item = SyncPoint> + 'b {
    let layout = *layout;
    let mut framer = Framer::new();
    let mut rest = bytes;
    core::iter::from_fn(move || {
        loop {
            let (at, piece) = framer.next_piece(&mut rest)?;
            let Piece::Packet(src, Kind::Instruction, payload) = piece else {
                continue;
            };
            // Most packets are none, which the lowest bits tell: format 3,
            // subformat 0 or 1.
            if payload.first().is_none_or(|first| first & 0xb != 3) {
                continue;
            }
            let packet = Packet::read(payload, &layout).ok();
            if let Some(sync) = packet.and_then(|packet| packet.sync()) {
                return Some(SyncPoint { at, src, sync });
            }
        }
    })
}
