//! The value of a signal.

/// The bits of a signal, each 0, 1 or unknown.
///
/// Weak levels (`l`, `h`) count as 0 and 1; everything else that is neither (`x`, `z`, `u`,
/// `w`, `-`) is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Value {
    width: u32,
    any_unknown: bool,
    bits: Words,
    /// The bits that are unknown; those in `bits` are then 0.
    unknown: Words,
}

/// Bits in words. Most signals have one, which is kept without a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Words {
    first: u64,
    rest: Vec<u64>,
}

impl Value {
    /// So many bits, of which none is known.
    pub(crate) fn new(width: u32) -> Value {
        let mut value = Value {
            width,
            any_unknown: width > 0,
            bits: Words::new(width),
            unknown: Words::new(width),
        };
        let mut lsb = 0;
        while lsb < width {
            let count = (width - lsb).min(64);
            value.unknown.put(lsb, count, u64::MAX);
            lsb += count;
        }
        value
    }

    /// Its bits.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.width
    }

    /// The `width` bits from `lsb` on, 64 at most; `None` if one of them is unknown. Bits
    /// above the width of the signal are 0.
    #[must_use]
    #[inline]
    pub fn get(&self, lsb: u32, width: u32) -> Option<u64> {
        if self.any_unknown && self.unknown.field(lsb, width) != 0 {
            return None;
        }
        Some(self.bits.field(lsb, width))
    }

    /// The same as [`Value::get`], where unknown bits count as 0.
    #[must_use]
    pub fn known_bits(&self, lsb: u32, width: u32) -> u64 {
        self.bits.field(lsb, width)
    }

    /// Sets bits, 64 at most.
    #[inline]
    pub(crate) fn set(&mut self, lsb: u32, width: u32, bits: u64, unknown: u64) {
        self.bits.put(lsb, width, bits & !unknown);
        if self.any_unknown || unknown != 0 {
            self.set_unknown(lsb, width, unknown);
        }
    }

    #[cold]
    fn set_unknown(&mut self, lsb: u32, width: u32, unknown: u64) {
        self.unknown.put(lsb, width, unknown);
        self.any_unknown = self.unknown.any();
    }

    /// Sets `width` bits of characters, the highest first. Where there are fewer
    /// characters, the first one extends them: an unknown one as it is, others with 0.
    #[inline]
    pub(crate) fn set_characters(&mut self, lsb: u32, width: u32, characters: &[u8]) {
        // Characters before those of the width do not count.
        let surplus = characters.len().saturating_sub(width as usize);
        let characters = characters.get(surplus..).unwrap_or_default();
        let mut done = 0;
        for chunk in characters.rchunks(64) {
            let (bits, unknown) = match digits(chunk) {
                Some(bits) => (bits, 0),
                None => levels(chunk),
            };
            self.set(lsb + done, chunk.len() as u32, bits, unknown);
            done += chunk.len() as u32;
        }
        let filler = match characters.first() {
            Some(first) if bit_of(*first).1 == 0 => 0,
            _ => u64::MAX,
        };
        while done < width {
            let count = (width - done).min(64);
            self.set(lsb + done, count, 0, filler & mask(count));
            done += count;
        }
    }

    /// Sets `width` known bits of bytes: the highest first, and the last byte filled up.
    #[inline]
    pub(crate) fn set_bytes(&mut self, lsb: u32, width: u32, bytes: &[u8]) {
        let mut left = width;
        if width <= 64 {
            return self.set(lsb, width, high_bits(bytes, width), 0);
        }
        for chunk in bytes.chunks(8) {
            let mut number = 0;
            for byte in chunk {
                number = number << 8 | u64::from(*byte);
            }
            let bits = chunk.len() as u32 * 8;
            let count = bits.min(left);
            left -= count;
            self.set(lsb + left, count, number >> (bits - count), 0);
        }
    }

    /// Becomes a copy of a value of the same width.
    #[inline]
    pub(crate) fn copy_from(&mut self, other: &Value) {
        self.bits.copy_from(&other.bits);
        if self.any_unknown || other.any_unknown {
            self.unknown.copy_from(&other.unknown);
            self.any_unknown = other.any_unknown;
        }
    }
}

impl Words {
    fn new(width: u32) -> Words {
        Words {
            first: 0,
            rest: vec![0; (width.div_ceil(64) as usize).saturating_sub(1)],
        }
    }

    fn any(&self) -> bool {
        self.first != 0 || self.rest.iter().any(|word| *word != 0)
    }

    #[inline]
    fn copy_from(&mut self, other: &Words) {
        self.first = other.first;
        if !other.rest.is_empty() {
            self.rest.clone_from(&other.rest);
        }
    }

    #[inline]
    fn get(&self, at: u32) -> u64 {
        match at {
            0 => self.first,
            at => self.rest.get(at as usize - 1).copied().unwrap_or(0),
        }
    }

    #[inline]
    fn get_mut(&mut self, at: u32) -> Option<&mut u64> {
        match at {
            0 => Some(&mut self.first),
            at => self.rest.get_mut(at as usize - 1),
        }
    }

    #[inline]
    fn field(&self, lsb: u32, width: u32) -> u64 {
        let (at, shift) = (lsb / 64, lsb % 64);
        let low = self.get(at) >> shift;
        let number = match shift + width > 64 {
            true => low | self.get(at + 1) << (64 - shift),
            false => low,
        };
        number & mask(width)
    }

    #[inline]
    fn put(&mut self, lsb: u32, width: u32, bits: u64) {
        let (at, shift) = (lsb / 64, lsb % 64);
        let (bits, used) = (bits & mask(width), mask(width));
        if let Some(word) = self.get_mut(at) {
            *word = *word & !(used << shift) | bits << shift;
        }
        if shift + width > 64
            && let Some(word) = self.get_mut(at + 1)
        {
            *word = *word & !(used >> (64 - shift)) | bits >> (64 - shift);
        }
    }
}

/// The bits of up to 64 characters that are all 0 or 1, the highest first.
#[inline]
fn digits(characters: &[u8]) -> Option<u64> {
    let mut bits = 0;
    let (head, chunks) = characters.as_rchunks::<8>();
    for character in head {
        if character & !1 != b'0' {
            return None;
        }
        bits = bits << 1 | u64::from(character & 1);
    }
    for chunk in chunks {
        let word = u64::from_be_bytes(*chunk);
        if word & !ONES != ZEROS {
            return None;
        }
        // Each product of one byte and one bit lands alone: the lowest bits of eight bytes
        // come together in the highest byte.
        bits = bits << 8 | (word & ONES).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    }
    Some(bits)
}

/// 1 in each byte.
const ONES: u64 = 0x0101_0101_0101_0101;

/// The character 0 in each byte.
const ZEROS: u64 = ONES * b'0' as u64;

/// The bits of up to 64 characters of any kind, and which of them are unknown.
#[cold]
fn levels(characters: &[u8]) -> (u64, u64) {
    let (mut bits, mut unknown) = (0, 0);
    for character in characters {
        let (bit, not_known) = bit_of(*character);
        bits = bits << 1 | bit;
        unknown = unknown << 1 | not_known;
    }
    (bits, unknown)
}

/// The number in the first `width` bits of bytes, 64 at most, the highest first.
#[inline]
pub(crate) fn high_bits(bytes: &[u8], width: u32) -> u64 {
    let number = match bytes.first_chunk::<8>() {
        Some(eight) => u64::from_be_bytes(*eight),
        None => {
            let mut eight = [0; 8];
            for (to, from) in eight.iter_mut().zip(bytes) {
                *to = *from;
            }
            u64::from_be_bytes(eight)
        }
    };
    number.checked_shr(64 - width.min(64)).unwrap_or(0)
}

/// A bit, and whether it is unknown.
#[inline]
pub(crate) const fn bit_of(character: u8) -> (u64, u64) {
    match character {
        b'0' | b'l' | b'L' => (0, 0),
        b'1' | b'h' | b'H' => (1, 0),
        _ => (0, 1),
    }
}

/// The lowest `width` bits.
#[inline]
const fn mask(width: u32) -> u64 {
    match width {
        0 => 0,
        1..64 => (1 << width) - 1,
        _ => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_and_bytes_give_the_same_bits() {
        let text = b"1011001110001111000010110011100011110000101100111000111100001011001";
        let width = text.len() as u32;
        let mut by_text = Value::new(width);
        by_text.set_characters(0, width, text);
        let bytes: Vec<u8> = text
            .chunks(8)
            .map(|chunk| {
                let bits = chunk.iter().fold(0, |n, c| n << 1 | (c - b'0'));
                bits << (8 - chunk.len())
            })
            .collect();
        let mut by_bytes = Value::new(width);
        by_bytes.set_bytes(0, width, &bytes);
        assert_eq!(by_text, by_bytes);
        for (at, character) in text.iter().rev().enumerate() {
            assert_eq!(by_text.get(at as u32, 1), Some(u64::from(character - b'0')));
        }
        assert_eq!(by_text.get(0, 5), Some(0b11001));
        assert_eq!(by_text.get(60, 7), Some(0b1011001));
        assert_eq!(by_text.get(60, 20), Some(0b1011001));
    }

    #[test]
    fn short_texts_are_extended_by_what_they_start_with() {
        let mut value = Value::new(70);
        value.set_characters(0, 70, b"1x0");
        assert_eq!(
            (value.get(2, 1), value.get(1, 1), value.get(0, 1)),
            (Some(1), None, Some(0))
        );
        assert_eq!(value.get(3, 64), Some(0));
        value.set_characters(0, 70, b"z01");
        assert_eq!(
            (value.get(0, 2), value.get(69, 1), value.get(2, 1)),
            (Some(1), None, None)
        );
        value.set_characters(0, 70, b"H");
        assert_eq!(value.get(0, 64), Some(1));
    }

    #[test]
    fn a_part_does_not_touch_the_others() {
        let mut value = Value::new(128);
        value.set(0, 64, u64::MAX, 0);
        value.set(64, 64, u64::MAX, 0);
        value.set(60, 8, 0, 0);
        assert_eq!(value.get(60, 8), Some(0));
        assert_eq!(
            (value.get(0, 60), value.get(68, 60)),
            (Some(mask(60)), Some(mask(60)))
        );
        value.set(62, 4, 0, 0b0110);
        assert_eq!(
            (value.get(62, 1), value.get(63, 2), value.get(65, 1)),
            (Some(0), None, Some(0))
        );
    }
}
