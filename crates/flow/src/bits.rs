//! Bit fields in byte streams, least significant bit first, as all the trace
//! formats have them.

use alloc::vec::Vec;

/// Reads fields from a slice.
///
/// ```
/// use hartrace_flow::BitReader;
///
/// let mut bits = BitReader::new(&[0b1010_0101, 0xff]);
/// assert_eq!(bits.read(4), Some(0b0101));
/// assert_eq!(bits.read(8), Some(0b1111_1010));
/// assert_eq!(bits.read(5), None, "only four are left");
/// ```
#[derive(Clone, Debug)]
pub struct BitReader<'a> {
    bytes: &'a [u8],
    /// Next bit, from the start of `bytes`.
    at: usize,
}

impl<'a> BitReader<'a> {
    /// Starts at bit 0 of the first byte.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        BitReader { bytes, at: 0 }
    }

    /// Bits not read yet.
    #[must_use]
    #[inline]
    pub const fn left(&self) -> usize {
        self.bytes.len() * 8 - self.at
    }

    /// Bits read so far.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.at
    }

    /// The next field of up to 64 bits; `None`, and nothing read, when there
    /// are not that many.
    #[inline]
    pub fn read(&mut self, width: u32) -> Option<u64> {
        if width > 64 || width as usize > self.left() {
            return None;
        }
        let value = self.peek(width);
        self.at += width as usize;
        Some(value)
    }

    /// One bit as a flag.
    #[inline]
    pub fn flag(&mut self) -> Option<bool> {
        self.read(1).map(|b| b != 0)
    }

    /// The next field of a sign-compressed packet (E-Trace chapter 6): bits
    /// past the end repeat the last one there is. An empty slice reads as
    /// zeros.
    #[inline]
    pub fn read_extended(&mut self, width: u32) -> u64 {
        let width = width.min(64);
        let have = self.left().min(width as usize) as u32;
        let value = self.peek(have);
        self.at += have as usize;
        let negative = self.bytes.last().is_some_and(|b| b & 0x80 != 0);
        if negative && have < width {
            value | mask(width) & !mask(have)
        } else {
            value
        }
    }

    /// At most 64 bits, as many as are there.
    #[inline]
    fn peek(&self, width: u32) -> u64 {
        let from = self.at / 8;
        let shift = (self.at % 8) as u32;
        let rest = self.bytes.get(from..).unwrap_or_default();
        let low = match rest.first_chunk::<8>() {
            Some(&eight) => u64::from_le_bytes(eight),
            None => rest
                .iter()
                .rev()
                .fold(0, |value, &b| value << 8 | u64::from(b)),
        };
        let mut value = low >> shift;
        if shift > 0
            && let Some(&ninth) = rest.get(8)
        {
            value |= u64::from(ninth) << (64 - shift);
        }
        value & mask(width)
    }
}

/// Writes fields into bytes of its own, which are kept from packet to packet.
#[derive(Clone, Debug, Default)]
pub struct BitWriter {
    bytes: Vec<u8>,
    /// Bits in the last byte that are in use, 0 when it is full.
    used: u32,
}

impl BitWriter {
    /// Nothing written yet.
    #[must_use]
    pub const fn new() -> Self {
        BitWriter {
            bytes: Vec::new(),
            used: 0,
        }
    }

    /// Bits written so far.
    #[must_use]
    pub fn len(&self) -> usize {
        let full = self.bytes.len() * 8;
        if self.used == 0 {
            full
        } else {
            full - 8 + self.used as usize
        }
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Appends the low `width` bits of a value, at most 64.
    #[inline]
    pub fn write(&mut self, value: u64, width: u32) {
        let width = width.min(64);
        let mut value = value & mask(width);
        let mut left = width;
        if self.used > 0
            && let Some(last) = self.bytes.last_mut()
        {
            let take = left.min(8 - self.used);
            *last |= (value << self.used) as u8;
            value = value.checked_shr(take).unwrap_or(0);
            left -= take;
            self.used = (self.used + take) % 8;
        }
        while left > 0 {
            self.bytes.push(value as u8);
            value >>= 8;
            let take = left.min(8);
            left -= take;
            self.used = take % 8;
        }
    }

    /// Appends a flag.
    pub fn flag(&mut self, flag: bool) {
        self.write(u64::from(flag), 1);
    }

    /// The bytes, the last one filled up with zeros.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes of a sign-compressed packet (E-Trace chapter 6): filled up
    /// with copies of the last bit, and without bytes at the end that only
    /// repeat it. At least one byte is left.
    pub fn sign_compressed(&mut self) -> &[u8] {
        let Some(last) = self.bytes.last_mut() else {
            return &[];
        };
        let top = if self.used == 0 { 7 } else { self.used - 1 };
        let negative = *last >> top & 1 != 0;
        if negative && self.used > 0 {
            *last |= !(mask(self.used) as u8);
        }
        self.used = 0;
        let fill = if negative { 0xff } else { 0 };
        let sign_at =
            |bytes: &[u8], i: usize| bytes.get(i).is_some_and(|b| (b & 0x80 != 0) == negative);
        let mut len = self.bytes.len();
        while len > 1 && self.bytes.get(len - 1) == Some(&fill) && sign_at(&self.bytes, len - 2) {
            len -= 1;
        }
        self.bytes.truncate(len);
        &self.bytes
    }

    /// Starts afresh and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.used = 0;
    }
}

/// The low `width` bits set.
const fn mask(width: u32) -> u64 {
    if width >= 64 {
        u64::MAX
    } else {
        (1 << width) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields of every width at every offset, against bit-by-bit arithmetic.
    #[test]
    fn what_is_written_is_read() {
        let value = 0xfedc_ba98_7654_3210u64;
        for offset in 0..16 {
            for width in 0..=64 {
                let mut w = BitWriter::new();
                w.write(0x5555, offset);
                w.write(value, width);
                w.write(0b101, 3);
                assert_eq!(w.len(), (offset + width + 3) as usize);
                let bytes = w.bytes().to_vec();
                let bit = |i: u32| u64::from(bytes[(i / 8) as usize] >> (i % 8) & 1);
                for i in 0..width {
                    assert_eq!(bit(offset + i), value >> i & 1, "{offset} {width} {i}");
                }
                let mut r = BitReader::new(&bytes);
                assert_eq!(r.read(offset), Some(0x5555 & mask(offset)));
                assert_eq!(r.read(width), Some(value & mask(width)));
                assert_eq!(r.read(3), Some(0b101));
                assert_eq!(r.position(), w.len());
            }
        }
    }

    #[test]
    fn reading_past_the_end_reads_nothing() {
        let mut r = BitReader::new(&[1, 2]);
        assert_eq!(r.read(17), None);
        assert_eq!(r.read(65), None);
        assert_eq!(r.read(16), Some(0x0201));
        assert_eq!(r.read(1), None);
        assert_eq!(r.read(0), Some(0));
    }

    #[test]
    fn sign_compression_is_undone_by_extended_reads() {
        for value in [
            0u64,
            1,
            0x7f,
            0x80,
            0xff80,
            0x1234_5678,
            u64::MAX,
            u64::MAX - 127,
            1 << 63,
        ] {
            for width in 1..=64 {
                let mut w = BitWriter::new();
                w.write(0b10, 2);
                w.write(value, width);
                let bytes = w.sign_compressed().to_vec();
                let mut r = BitReader::new(&bytes);
                assert_eq!(r.read_extended(2), 0b10);
                assert_eq!(
                    r.read_extended(width),
                    value & mask(width),
                    "{value:#x} {width}"
                );
                let twice = bytes.len() > 1 && {
                    let last = bytes[bytes.len() - 1];
                    let before = bytes[bytes.len() - 2] & 0x80 != 0;
                    last == if before { 0xff } else { 0 }
                };
                assert!(!twice, "a byte too many: {bytes:x?}");
            }
        }
    }

    #[test]
    fn an_empty_packet_reads_as_zeros() {
        assert_eq!(BitReader::new(&[]).read_extended(64), 0);
        assert_eq!(BitWriter::new().sign_compressed(), &[] as &[u8]);
    }
}
