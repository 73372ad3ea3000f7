//! Writes loads and stores with address and data, which are most of a trace, without
//! their fields one by one: in the default compression in one word ([`Words`]), else in
//! two halves ([`Framed`]).

use hartrace_flow::{Access, AccessKind};

use super::history::{History, Place, extend};
use super::write::length;
use super::{Compression, DataConfig, DataLayout};
use crate::packet::bits::mask;
use crate::{Kind, Version};

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

/// Packets of loads and stores that have no more than a word, each as short as it can be
/// ([`Compression::Dynamic`]).
#[derive(Clone, Copy, Debug)]
pub(super) struct Words {
    /// Of loads and of stores: bit `n` for those of 2^n bytes that are traced.
    traced: [u8; 2],
    /// The first bits of `size`, `diff` and `data_len`.
    size_at: u8,
    diff_at: u8,
    length_at: u8,
    address_width: u8,
}

impl Words {
    /// `None` in settings with other packets.
    pub(super) fn new(version: Version, data: &DataConfig, layout: &DataLayout) -> Option<Words> {
        let others = layout.split || layout.no_address || layout.no_data;
        let whole = data.full_address || data.full_data || data.xor_addresses;
        if others || whole || data.compression != Compression::Dynamic {
            return None;
        }
        let sizes = |kind| {
            let traced = (0..4u8).filter(|&size| data.traces(kind, size, version));
            traced.fold(0, |all, size| all | 1 << size)
        };
        let diff_at = layout.format_width + layout.size_width;
        Some(Words {
            traced: [sizes(AccessKind::Load), sizes(AccessKind::Store)],
            size_at: layout.format_width,
            diff_at,
            length_at: diff_at + 2,
            address_width: layout.daddress_width,
        })
    }

    /// The payload of the packet for an access, and its length in bytes. `None` for other
    /// accesses, and for those that refer to none before, or are too long.
    #[inline]
    pub(super) fn write(&self, access: &Access, history: &mut History) -> Option<(u64, u32)> {
        let [loads, stores] = self.traced;
        let (store, sizes) = match access.kind {
            AccessKind::Load => (0, loads),
            AccessKind::Store => (1, stores),
            _ => return None,
        };
        let size = access.size & 3;
        let all = History::bases(size, true, true);
        if access.size > 3 || sizes >> size & 1 == 0 || !history.has(all) {
            return None;
        }
        // The data: the shortest of the three.
        let unused = 64 - (8 << size);
        let signed = |value: u64| (value << unused) as i64 >> unused;
        let data = signed(access.data.unwrap_or(0));
        let before = history.last_data(size);
        let xor = signed(data as u64 ^ before);
        let difference = signed((data as u64).wrapping_sub(before));
        let plain = bytes(data);
        let (mut diff, mut field, mut length) = (2, data, plain);
        if bytes(xor) < length {
            (diff, field, length) = (1, xor, bytes(xor));
        }
        if bytes(difference) < length {
            (diff, field, length) = (3, difference, bytes(difference));
        }
        // The address: a difference, unless in full it is shorter with the data in full.
        let moved = access.addr.wrapping_sub(history.last_address(size));
        let mut place = self.place(moved, size);
        let full = self.place(access.addr, size);
        if 8 * plain + full.bits < 8 * length + place.bits {
            (diff, field, length, place) = (0, data, plain, full);
        }
        let start = u32::from(self.length_at + size);
        let end = start + 8 * length;
        if end + place.bits > 64 {
            return None;
        }
        let format = store << 1 | u64::from(!place.aligned);
        let head = format
            | u64::from(size) << self.size_at
            | diff << self.diff_at
            | u64::from(length - 1) << self.length_at;
        let field = field as u64 & ((1 << (8 * length)) - 1);
        let word = head | field << start | place.field << end;
        history.put_address(access.addr, size);
        history.put_data(data as u64 & !0 >> unused, size);
        Some((word, bytes(word as i64)))
    }

    /// An address, or a difference of addresses, as a field with its sign.
    #[inline]
    fn place(&self, value: u64, size: u8) -> Place {
        let value = extend(value, self.address_width);
        let aligned = value as u64 & ((1 << size) - 1) == 0;
        let value = value >> if aligned { size } else { 0 };
        let flipped = (value ^ value >> 63) as u64;
        Place {
            aligned,
            field: value as u64,
            bits: 64 - (flipped << 1 | 1).leading_zeros(),
        }
    }
}

/// Bytes of a number, the others of which repeat its sign.
#[inline]
const fn bytes(value: i64) -> u32 {
    let flipped = (value ^ value >> 63) as u64;
    // One bit of those that are all the same must stay.
    (72 - (flipped | 1).leading_zeros()) / 8
}
