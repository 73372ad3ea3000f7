//! The value of a signal.

/// The bits of a signal, each 0, 1 or unknown.
///
/// Weak levels (`l`, `h`) count as 0 and 1; everything else that is neither (`x`, `z`, `u`,
/// `w`, `-`) is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Value {
    width: u32,
    bits: Vec<u64>,
    /// The bits that are unknown; those in `bits` are then 0.
    unknown: Vec<u64>,
    any_unknown: bool,
}

impl Value {
    /// So many bits, of which none is known.
    pub(crate) fn new(width: u32) -> Value {
        let words = width.div_ceil(64) as usize;
        let mut value = Value {
            width,
            bits: vec![0; words],
            unknown: vec![u64::MAX; words],
            any_unknown: width > 0,
        };
        if let Some(last) = value.unknown.last_mut() {
            *last = mask((width - 1) % 64 + 1);
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
        if self.any_unknown && field(&self.unknown, lsb, width) != 0 {
            return None;
        }
        Some(field(&self.bits, lsb, width))
    }

    /// The same as [`Value::get`], where unknown bits count as 0.
    #[must_use]
    pub fn known_bits(&self, lsb: u32, width: u32) -> u64 {
        field(&self.bits, lsb, width)
    }

    /// Sets bits, 64 at most.
    #[inline]
    pub(crate) fn set(&mut self, lsb: u32, width: u32, bits: u64, unknown: u64) {
        put(&mut self.bits, lsb, width, bits & !unknown);
        if self.any_unknown || unknown != 0 {
            self.set_unknown(lsb, width, unknown);
        }
    }

    fn set_unknown(&mut self, lsb: u32, width: u32, unknown: u64) {
        put(&mut self.unknown, lsb, width, unknown);
        self.any_unknown = self.unknown.iter().any(|word| *word != 0);
    }

    /// Sets `width` bits of characters, the highest first. Where there are fewer
    /// characters, the first one extends them: an unknown one as it is, others with 0.
    pub(crate) fn set_characters(&mut self, lsb: u32, width: u32, characters: &[u8]) {
        // Characters before those of the width do not count.
        let surplus = characters.len().saturating_sub(width as usize);
        let characters = characters.get(surplus..).unwrap_or_default();
        let mut done = 0;
        for chunk in characters.rchunks(64) {
            let (mut bits, mut unknown) = (0, 0);
            for character in chunk {
                let (bit, not_known) = bit_of(*character);
                bits = bits << 1 | bit;
                unknown = unknown << 1 | not_known;
            }
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
            let mut number = 0;
            for byte in bytes.iter().take(8) {
                number = number << 8 | u64::from(*byte);
            }
            let surplus = (bytes.len().min(8) as u32 * 8).saturating_sub(width);
            return self.set(lsb, width, number >> surplus, 0);
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
        self.bits.clone_from(&other.bits);
        if self.any_unknown || other.any_unknown {
            self.unknown.clone_from(&other.unknown);
            self.any_unknown = other.any_unknown;
        }
    }
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

#[inline]
fn field(words: &[u64], lsb: u32, width: u32) -> u64 {
    let (at, shift) = ((lsb / 64) as usize, lsb % 64);
    let low = words.get(at).map_or(0, |word| word >> shift);
    let number = match shift + width > 64 {
        true => low | words.get(at + 1).map_or(0, |word| word << (64 - shift)),
        false => low,
    };
    number & mask(width)
}

#[inline]
fn put(words: &mut [u64], lsb: u32, width: u32, bits: u64) {
    let (at, shift) = ((lsb / 64) as usize, lsb % 64);
    let (bits, used) = (bits & mask(width), mask(width));
    if let Some(word) = words.get_mut(at) {
        *word = *word & !(used << shift) | bits << shift;
    }
    if shift + width > 64
        && let Some(word) = words.get_mut(at + 1)
    {
        *word = *word & !(used >> (64 - shift)) | bits >> (64 - shift);
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
