//! What loads and stores are by their first bits, for those that count them.

use alloc::boxed::Box;
use alloc::vec;

use super::DataLayout;
use crate::encapsulation::Headed;
use crate::packet::bits::mask;

/// Formats of loads and stores.
pub(crate) const FORMATS: usize = 4;

/// Loads and stores with address and data by their first bits: `format`, `size`, `diff` and
/// as many of what follows as `data_len` may have.
#[derive(Clone, Debug)]
pub(crate) struct Formats {
    known: Box<[Known]>,
    first: u64,
}

/// What the first bits say.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    format: u8,
    /// Bytes that the payload may have; 0 for what is no load or store, or may be wrong.
    longest: u8,
}

impl Formats {
    pub(crate) fn new(layout: &DataLayout) -> Formats {
        let width = u32::from(layout.format_width + layout.size_width) + 2 + 3;
        let mut known = vec![Known::default(); 1 << width].into_boxed_slice();
        for (place, bits) in known.iter_mut().zip(0..) {
            *place = Known::of(bits, layout).unwrap_or_default();
        }
        Formats {
            known,
            first: mask(width),
        }
    }

    /// The format of a packet, if it is a load or store that has nothing wrong.
    #[inline(always)]
    pub(crate) fn of(&self, packet: &Headed<'_>) -> Option<u8> {
        let known = self
            .known
            .get((packet.first_bits() & self.first) as usize)?;
        (packet.bytes <= known.longest.into()).then_some(known.format)
    }
}

impl Known {
    fn of(bits: u64, layout: &DataLayout) -> Option<Known> {
        if layout.mmacas || layout.split || layout.no_address || layout.no_data {
            return None;
        }
        let format = bits & mask(layout.format_width.into());
        let mut at = u32::from(layout.format_width);
        let size = (bits >> at & mask(layout.size_width.into())) as u32;
        if format > 3 || size > 3 || 8 << size > layout.data_width {
            return None;
        }
        // After `size` and `diff`: the length of the data, the data, the address.
        at += u32::from(layout.size_width) + 2;
        let length = (bits >> at & mask(size)) as u32 + 1;
        let end = at + size + 8 * length + u32::from(layout.daddress_width);
        Some(Known {
            format: format as u8,
            longest: (end / 8) as u8,
        })
    }
}
