//! The fast path for loads and stores with address and data, which are most of a
//! trace. `data` has whole bytes, so `data` and `address` start at the same bit of a
//! byte: each is one unaligned word, shifted.

use super::history::Place;
use super::write::length;
use super::{DataLayout, DataPacket};
use crate::Kind;
use crate::packet::bits::mask;

/// The bytes of a packet with its header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Framed {
    bytes: [u8; 40],
    len: u8,
}

impl Framed {
    /// The header and the payload.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// A load or store with address and data.
    #[inline]
    pub(super) fn transfer(
        layout: &DataLayout,
        (format, diff): (u64, u8),
        size: u8,
        data: u64,
        place: Place,
    ) -> Framed {
        let count = length(data, size);
        let mut at = u32::from(layout.format_width);
        let mut head = format | u64::from(size) << at;
        at += u32::from(layout.size_width);
        head |= u64::from(diff) << at;
        at += 2;
        head |= u64::from(count - 1) << at;
        at += u32::from(size);
        // Less than two bytes of head, then the data from the same bit on.
        let first = u128::from(head) | u128::from(data & mask(8 * count)) << at;
        let mut bytes = [0; 40];
        let place_at = at + 8 * count;
        let address = i128::from(place.extended(layout.daddress_width)) as u128;
        let from = (place_at / 8) as usize;
        // The byte that data and address share.
        let shared = (first >> (8 * from)) & 0xff;
        let second = address << (place_at % 8) | shared;
        if let Some(room) = bytes.get_mut(1..17) {
            room.copy_from_slice(&first.to_le_bytes());
        }
        if let Some(room) = bytes.get_mut(1 + from..17 + from) {
            room.copy_from_slice(&second.to_le_bytes());
        }
        let bits = match place.bits {
            // The address is nothing but its sign, which may go on in the data.
            0 | 1 => {
                let all = (first | address << place_at) as i128;
                129 - (all ^ all >> 127).leading_zeros()
            }
            bits => place_at + bits,
        };
        let len = bits.div_ceil(8).min(31) as u8;
        if let Some(header) = bytes.first_mut() {
            *header = Kind::Data.header(len);
        }
        Framed {
            bytes,
            len: len + 1,
        }
    }
}

/// Bytes that are looked at, the header included.
pub(crate) const WINDOW: usize = 32;

/// Eight bytes from a place in the window.
#[inline(always)]
fn word(window: &[u8; WINDOW], from: usize) -> Option<u64> {
    let (word, _) = window.get(from..)?.split_first_chunk::<8>()?;
    Some(u64::from_le_bytes(*word))
}

/// A unified load or a store with address and data at the front of a window, after
/// its header, with a payload of `len` bytes. `None` for any other, and for one that
/// has something wrong.
#[inline(always)]
pub(crate) fn transfer(
    window: &[u8; WINDOW],
    len: usize,
    layout: &DataLayout,
) -> Option<DataPacket> {
    if layout.no_data || layout.no_address || layout.split {
        return None;
    }
    let first = word(window, 1)?;
    // The bits that were sent, the last of which is repeated, of a payload of one word.
    let unused = 64 - 8 * len.min(8) as u32;
    let all = (first << unused) as i64 >> unused;
    let head = all as u64;
    let format = head & mask(layout.format_width.into());
    let size = (head >> layout.format_width & mask(layout.size_width.into())) as u32;
    if format > 3 || 8u32 << (size & 7) > layout.data_width.into() {
        return None;
    }
    let mut at = u32::from(layout.format_width) + u32::from(layout.size_width);
    let diff = (head >> at & 3) as u8;
    at += 2;
    let count = (head >> at & ((1 << size) - 1)) as u32 + 1;
    at += size;
    let width = u32::from(layout.daddress_width);
    let end = at + 8 * count;
    let (data, address) = match len {
        0..=8 => {
            let address = all >> end.min(63);
            let sign = address >> (width - 1);
            if sign != 0 && sign != -1 {
                return None;
            }
            ((all >> at.min(63)) as u64, address)
        }
        _ => longer(window, (at, count), 8 * len as u32, width)?,
    };
    let cut = 64 - 8 * count;
    let data = (data << cut) as i64 >> cut;
    Some(DataPacket::Transfer {
        store: format & 2 != 0,
        aligned: format & 1 == 0,
        size: size as u8,
        diff,
        data: Some(data as u64 & mask(8 << size)),
        address: Some(address as u64 & mask(width)),
    })
}

/// The data and the address in a payload of so many bits, more than a word: `count`
/// bytes of data from bit `at` on.
#[inline]
fn longer(
    window: &[u8; WINDOW],
    (at, count): (u32, u32),
    bits: u32,
    width: u32,
) -> Option<(u64, i64)> {
    let rest = at % 8;
    let data_from = 1 + (at / 8) as usize;
    let mut data = word(window, data_from)? >> rest;
    if 8 * count + rest > 64 {
        data |= word(window, data_from + 1)? >> rest << 8;
    }
    // Bits of the address that were sent, the last of which is repeated.
    let sent = bits.checked_sub(at + 8 * count)?;
    if sent == 0 || sent + rest > 64 || sent > width {
        return None;
    }
    let address = word(window, data_from + count as usize)? >> rest;
    let unused = 64 - sent;
    Some((data, (address << unused) as i64 >> unused))
}
