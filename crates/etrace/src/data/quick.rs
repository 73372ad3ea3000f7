//! The fast path for loads and stores with address and data: all bits in one
//! register pair.

use super::{DataLayout, DataPacket};
use crate::packet::bits::mask;

/// Bytes that are looked at.
pub(crate) const WORD: usize = 16;

/// A unified load or a store with address and data whose payload is the first
/// `len` bytes of a word of the stream, the first byte lowest. `None` for any
/// other, and for one that has something wrong.
#[inline(always)]
pub(crate) fn transfer(word: u128, len: usize, layout: &DataLayout) -> Option<DataPacket> {
    if len == 0 || len > WORD || layout.no_data || layout.no_address || layout.split {
        return None;
    }
    let unused = 128 - 8 * len as u32;
    let bits = (word << unused) as i128 >> unused;
    let head = bits as u32;
    let format = head & mask(layout.format_width.into()) as u32;
    if format > 3 {
        return None;
    }
    let head = head >> layout.format_width;
    let size = head & mask(layout.size_width.into()) as u32;
    if 8u32 << (size & 7) > layout.data_width.into() {
        return None;
    }
    let head = head >> layout.size_width;
    let diff = (head & 3) as u8;
    let bytes = (head >> 2 & ((1 << size) - 1)) + 1;
    let at = u32::from(layout.format_width) + u32::from(layout.size_width) + 2 + size;
    let rest = bits >> at;
    let cut = 64 - 8 * bytes;
    let data = ((rest as u64) << cut) as i64 >> cut;
    let field = rest >> (8 * bytes);
    let width = u32::from(layout.daddress_width);
    // From the last bit of the address on all bits must be the same.
    let sign = field >> (width - 1).min(127);
    if sign != 0 && sign != -1 {
        return None;
    }
    Some(DataPacket::Transfer {
        store: format & 2 != 0,
        aligned: format & 1 == 0,
        size: size as u8,
        diff,
        data: Some(data as u64 & mask(8 << size)),
        address: Some(field as u64 & mask(width)),
    })
}
