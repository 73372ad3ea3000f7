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

/// Packets of loads and stores that have no more than two words, each as short as it can be
/// ([`Compression::Dynamic`]). Most have no more than one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words {
    /// By log2 of the size, of loads first and then of stores.
    heads: [Head; 8],
    /// The first bits of `diff` and `data_len`.
    diff_at: u8,
    length_at: u8,
    address_width: u8,
}

/// What packets of accesses of one kind and size have in common.
#[derive(Clone, Copy, Debug)]
struct Head {
    /// `format` and `size`.
    bits: u8,
    /// Bits of a doubleword that a value does not have.
    unused: u8,
    /// The first bit of the data.
    start: u8,
    /// What they refer to; [`History::NEVER`] if such accesses are not traced.
    needs: u16,
}

impl Words {
    /// `None` in settings with other packets.
    pub(super) fn new(version: Version, data: &DataConfig, layout: &DataLayout) -> Option<Words> {
        let others = layout.split || layout.no_address || layout.no_data || layout.mmacas;
        let whole = data.full_address || data.full_data || data.xor_addresses;
        if others || whole || data.compression != Compression::Dynamic {
            return None;
        }
        let diff_at = layout.format_width + layout.size_width;
        let length_at = diff_at + 2;
        let heads = [0, 1, 2, 3, 4, 5, 6, 7].map(|code: u8| {
            let (format, size) = (code >> 2 << 1, code & 3);
            let kind = match format {
                0 => AccessKind::Load,
                _ => AccessKind::Store,
            };
            Head {
                bits: format | size << layout.format_width,
                unused: 64 - (8 << size),
                start: length_at + size,
                needs: match data.traces(kind, size, version) {
                    true => History::bases(size, true, true),
                    false => History::NEVER,
                },
            }
        });
        Some(Words {
            heads,
            diff_at,
            length_at,
            address_width: layout.daddress_width,
        })
    }

    /// The payload of the packet for an access, and its length in bytes: what follows in it
    /// means nothing. `None` for other accesses, and for those that refer to none before, or
    /// are too long.
    #[inline(always)]
    pub(super) fn write(&self, access: &Access, history: &mut History) -> Option<(u128, u32)> {
        let (kind, size) = (access.kind as u8, access.size);
        if kind > AccessKind::Store as u8 || size > 3 {
            return None;
        }
        let head = self.heads.get(usize::from(kind << 2 | size))?;
        if !history.has(head.needs) {
            return None;
        }
        // The data: the shortest of the three. Lengths are in bits here.
        let unused = u32::from(head.unused & 63);
        let signed = |value: u64| (value << unused) as i64 >> unused;
        let data = signed(access.data.unwrap_or(0));
        let before = history.last_data(size);
        let plain = bits(data);
        let (mut diff, mut field, mut length) = (2, data, plain);
        if plain > 8 {
            let xor = signed(data as u64 ^ before);
            let difference = signed((data as u64).wrapping_sub(before));
            let (xor_length, difference_length) = (bits(xor), bits(difference));
            if xor_length < length {
                (diff, field, length) = (1, xor, xor_length);
            }
            if difference_length < length {
                (diff, field, length) = (3, difference, difference_length);
            }
        }
        // The address: a difference, unless in full it is shorter with the data in full.
        let moved = access.addr.wrapping_sub(history.last_address(size));
        let mut place = self.place(moved, size);
        if flipped(self.extended(access.addr)) >> size < flipped(place.field as i64) {
            let full = self.place(access.addr, size);
            if plain + full.bits < length + place.bits {
                (diff, field, length, place) = (0, data, plain, full);
            }
        }
        let start = u32::from(head.start & 15);
        let end = start + length;
        let head = u64::from(head.bits | u8::from(!place.aligned))
            | diff << self.diff_at
            | u64::from(length / 8 - 1) << self.length_at;
        let packet = if end + place.bits <= 64 {
            // Only the bits that are sent.
            let field = (field as u64) << (64 - length) >> (64 - end);
            let word = head | field | place.field << (end & 63);
            (u128::from(word), bits(word as i64) / 8)
        } else if end + place.bits <= MOST {
            let field = (field as u64) << (64 - length) >> (64 - length);
            let address = i128::from(place.field as i64) << end;
            let all = i128::from(head) | i128::from(field) << start | address;
            (all as u128, wide_bits(all) / 8)
        } else {
            return None;
        };
        history.put_address(access.addr, size);
        history.put_data((data as u64) << unused >> unused, size);
        Some(packet)
    }

    /// An address with its sign.
    #[inline(always)]
    fn extended(&self, addr: u64) -> i64 {
        match self.address_width {
            64 => addr as i64,
            width => extend(addr, width),
        }
    }

    /// An address, or a difference of addresses, as a field with its sign.
    #[inline(always)]
    fn place(&self, value: u64, size: u8) -> Place {
        let value = self.extended(value);
        let aligned = value as u64 & ((1 << size) - 1) == 0;
        let value = value >> if aligned { size } else { 0 };
        Place {
            aligned,
            field: value as u64,
            bits: 64 - (flipped(value) << 1 | 1).leading_zeros(),
        }
    }
}

/// The larger a number, the larger this is, whatever its sign.
#[inline(always)]
const fn flipped(value: i64) -> u64 {
    (value ^ value >> 63) as u64
}

/// Bits of a payload, so that there is room for a header beside it.
const MOST: u32 = 120;

/// The same as [`bits`] for two words.
#[inline(always)]
const fn wide_bits(value: i128) -> u32 {
    (136 - ((value ^ value >> 127) as u128 | 1).leading_zeros()) & !7
}

/// Bits of the bytes of a number that do not repeat its sign. One bit of those that are
/// all the same must stay.
#[inline(always)]
const fn bits(value: i64) -> u32 {
    (72 - (flipped(value) | 1).leading_zeros()) & !7
}
