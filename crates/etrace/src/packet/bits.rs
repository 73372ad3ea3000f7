//! The bits of a packet, first field lowest, in two 128-bit halves: no payload
//! has more than 256 bits.

use super::{Layout, Payload};
use crate::{MAX_PAYLOAD, Padding, Shortening};

/// So many ones; 64 at most.
#[inline]
pub(crate) const fn mask(width: u32) -> u64 {
    if width >= 64 {
        u64::MAX
    } else {
        (1 << width) - 1
    }
}

/// The first bytes of a word, at most 8 and at least 1, without the first bits; the last bit
/// of them is repeated.
#[inline(always)]
pub(crate) const fn extended(word: u64, bytes: usize, shift: u32) -> i64 {
    let unused = 64 - 8 * bytes as u32;
    (word << (unused & 63)) as i64 >> (unused.wrapping_add(shift) & 63)
}

/// Whether a bit of a value is 1; those above bit 63 are not.
#[inline]
pub(crate) const fn bit(value: u64, index: u32) -> bool {
    index < 64 && value >> index & 1 != 0
}

/// What gives the fields of a packet one after the other. The name is for
/// those who want to show them.
pub(crate) trait Source {
    /// The next field; of more than 64 bits the lowest.
    fn field(&mut self, name: &'static str, width: u32) -> u64;

    /// Bits of the payload that are not read yet.
    fn left(&self) -> u32;
}

/// Reads fields. After the payload its last bit is repeated forever.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    low: u128,
    high: u128,
    /// The last bit, over and over.
    sign: u128,
    /// The first bit that is not read yet.
    at: u32,
    /// Bits of the payload.
    len: u32,
    /// What is after the 256 bits.
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// `None` without a byte.
    pub(crate) fn new(payload: &'a [u8]) -> Option<Reader<'a>> {
        let negative = payload.last()? & 0x80 != 0;
        let fill = if negative { 0xff } else { 0 };
        let (mut low, mut high) = ([fill; 16], [fill; 16]);
        for (to, from) in low.iter_mut().chain(&mut high).zip(payload) {
            *to = *from;
        }
        Some(Reader {
            low: u128::from_le_bytes(low),
            high: u128::from_le_bytes(high),
            sign: if negative { u128::MAX } else { 0 },
            at: 0,
            len: 8 * payload.len() as u32,
            rest: payload.get(32..).unwrap_or_default(),
        })
    }

    /// The first bit that is not read yet.
    pub(crate) fn at(&self) -> u32 {
        self.at
    }

    /// Whether all bits after the last field repeat its last bit.
    pub(crate) fn is_end(&self) -> bool {
        let last = self.at.saturating_sub(1);
        let same = match last {
            0..128 => (self.low ^ self.sign) >> last == 0 && self.high == self.sign,
            128..256 => (self.high ^ self.sign) >> (last - 128) == 0,
            _ => true,
        };
        same && self.rest.iter().all(|&byte| byte == self.sign as u8)
    }
}

impl Source for Reader<'_> {
    #[inline]
    fn field(&mut self, _name: &'static str, width: u32) -> u64 {
        let from = match self.at {
            0 => self.low,
            at @ 1..128 => self.low >> at | self.high << (128 - at),
            128 => self.high,
            at @ 129..256 => self.high >> (at - 128) | self.sign << (256 - at),
            _ => self.sign,
        };
        self.at += width;
        from as u64 & mask(width)
    }

    #[inline]
    fn left(&self) -> u32 {
        self.len.saturating_sub(self.at)
    }
}

/// Writes fields one after the other.
#[derive(Clone, Copy, Default)]
pub(crate) struct Writer {
    low: u128,
    high: u128,
    len: u32,
}

impl Writer {
    /// A field of at most 64 bits; those of the value above are left out.
    #[inline]
    pub(crate) fn put(&mut self, value: u64, width: u32) {
        self.wide(u128::from(value & mask(width)), width);
    }

    /// Several fields at once, the bits above them clear.
    #[inline]
    pub(crate) fn wide(&mut self, value: u128, width: u32) {
        match self.len {
            0 => self.low |= value,
            at @ 1..128 => {
                self.low |= value << at;
                self.high |= value >> (128 - at);
            }
            at @ 128..256 => self.high |= value << (at - 128),
            _ => {}
        }
        self.len += width;
    }

    /// How many bits there are.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// The payload without the upper bits that its last one makes up for.
    #[inline]
    pub(crate) fn compressed(mut self) -> Payload {
        let sign = self.extend();
        let bytes = self.needed(sign);
        self.cut(bytes)
    }

    /// The payload where packets are not as chapter 6 has them.
    #[cold]
    pub(crate) fn shortened(mut self, layout: &Layout) -> Payload {
        if layout.shortening == Shortening::Packet {
            return self.compressed();
        }
        if layout.padding == Padding::Sign {
            self.extend();
        }
        self.cut(self.len.div_ceil(8))
    }

    /// Bytes of that payload.
    #[inline]
    pub(crate) fn compressed_len(mut self) -> u32 {
        let sign = self.extend();
        self.needed(sign)
    }

    /// Bytes up to the first of the bits that only repeat the last one.
    #[inline]
    fn needed(&self, sign: u128) -> u32 {
        let (low, high) = (self.low ^ sign, self.high ^ sign);
        let above = match high {
            0 => low.leading_zeros() + 128,
            _ => high.leading_zeros(),
        };
        // One bit of those that are all the same must stay.
        (257 - above).div_ceil(8)
    }

    /// The payload in full.
    #[cfg(test)]
    pub(crate) fn whole(mut self) -> Payload {
        self.extend();
        self.cut(self.len.div_ceil(8))
    }

    /// Repeats the last bit up to the end, and gives it, over and over.
    #[inline]
    fn extend(&mut self) -> u128 {
        let last = match self.len {
            0 => 0,
            1..=128 => self.low >> (self.len - 1) & 1,
            129..=256 => self.high >> (self.len - 129) & 1,
            _ => self.high >> 127,
        };
        let sign = last.wrapping_neg();
        match self.len {
            0..128 => {
                self.low |= sign << self.len;
                self.high = sign;
            }
            128..256 => self.high |= sign << (self.len - 128),
            _ => {}
        }
        sign
    }

    #[inline]
    fn cut(&self, len: u32) -> Payload {
        let mut bytes = [0; MAX_PAYLOAD + 1];
        let (low, high) = bytes.split_at_mut(16);
        low.copy_from_slice(&self.low.to_le_bytes());
        high.copy_from_slice(&self.high.to_le_bytes());
        let len = len.min(MAX_PAYLOAD as u32) as u8;
        Payload { bytes, len }
    }
}
