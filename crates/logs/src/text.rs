//! Numbers in text, eight digits at a time.

/// Every byte of a word.
const fn each(byte: u8) -> u64 {
    byte as u64 * 0x0101_0101_0101_0101
}

/// The number that eight hexadecimal digits spell, `None` for anything else.
#[inline]
pub(super) fn hex8(digits: [u8; 8]) -> Option<u32> {
    let text = u64::from_be_bytes(digits);
    // Letters have bit 6 set; their low nibble counts from 1.
    let letters = text >> 6 & each(1);
    let values = (text & each(0x0f)) + letters * 9;
    // Spell the values again: only real digits give what was there. A value
    // above 15 (g to o) shows in bit 4.
    let above_nine = (values + each(0x76)) >> 7 & each(1);
    let spelled = values + each(b'0') + above_nine * u64::from(b'a' - b'0' - 10);
    if spelled != text | letters << 5 || values & each(0xf0) != 0 {
        return None;
    }
    let pairs = (values | values >> 4) & 0x00ff_00ff_00ff_00ff;
    let quads = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
    Some((quads | quads >> 16) as u32)
}

/// The number that sixteen hexadecimal digits spell.
#[inline]
pub(super) fn hex16(digits: &[u8; 16]) -> Option<u64> {
    let (high, low) = digits.split_first_chunk::<8>()?;
    let (high, low) = (hex8(*high)?, hex8(*low.first_chunk()?)?);
    Some(u64::from(high) << 32 | u64::from(low))
}

/// The upper half of the last number of sixteen digits: in most lists it is the
/// same from line to line.
#[derive(Clone, Copy, Debug)]
pub(super) struct HighHalf {
    digits: [u8; 8],
    value: u32,
}

impl Default for HighHalf {
    fn default() -> Self {
        HighHalf {
            digits: [b'0'; 8],
            value: 0,
        }
    }
}

impl HighHalf {
    /// As [`hex16`].
    #[inline]
    pub(super) fn hex16(&mut self, digits: &[u8; 16]) -> Option<u64> {
        let (high, low) = digits.split_first_chunk::<8>()?;
        if *high != self.digits {
            (self.value, self.digits) = (hex8(*high)?, *high);
        }
        let low = hex8(*low.first_chunk()?)?;
        Some(u64::from(self.value) << 32 | u64::from(low))
    }
}

/// The number that 1 to 16 hexadecimal digits spell.
#[inline]
pub(super) fn hex(digits: &[u8]) -> Option<u64> {
    if let Ok(all) = digits.try_into() {
        return hex16(all);
    }
    if let Ok(half) = digits.try_into() {
        return hex8(half).map(u64::from);
    }
    let mut padded = [b'0'; 16];
    let from = 16usize.checked_sub(digits.len()).filter(|&n| n < 16)?;
    padded.get_mut(from..)?.copy_from_slice(digits);
    hex16(&padded)
}

/// The number after a `0x` that may be there.
#[inline]
pub(super) fn prefixed_hex(text: &[u8]) -> Option<u64> {
    match text {
        [b'0', b'x' | b'X', digits @ ..] => hex(digits),
        _ => hex(text),
    }
}

/// The number that 1 to 20 decimal digits spell, if it fits.
#[inline]
pub(super) fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    let mut value = 0u64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// The sixteen hexadecimal digits of a number.
#[inline]
pub(super) fn spell16(value: u64) -> [u8; 16] {
    let mut out = [0; 16];
    let (high, low) = out.split_at_mut(8);
    high.copy_from_slice(&spell8((value >> 32) as u32));
    low.copy_from_slice(&spell8(value as u32));
    out
}

/// The eight hexadecimal digits of a number.
#[inline]
pub(super) fn spell8(value: u32) -> [u8; 8] {
    let quads = (u64::from(value) | u64::from(value) << 16) & 0x0000_ffff_0000_ffff;
    let pairs = (quads | quads << 8) & 0x00ff_00ff_00ff_00ff;
    let values = (pairs | pairs << 4) & each(0x0f);
    let above_nine = (values + each(0x76)) >> 7 & each(1);
    (values + each(b'0') + above_nine * u64::from(b'a' - b'0' - 10)).to_be_bytes()
}

/// The two hexadecimal digits of each byte.
pub(super) const PAIRS: [[u8; 2]; 256] = {
    let digits = *b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    // Masked to the sizes of the arrays.
    #[allow(clippy::indexing_slicing)]
    while byte < 256 {
        pairs[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    pairs
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_in_every_place_is_judged_as_the_standard_library_does() {
        for place in 0..8 {
            for byte in 0..=255u8 {
                let mut digits = *b"01a9bcF7";
                digits[place] = byte;
                let want = core::str::from_utf8(&digits)
                    .ok()
                    .filter(|s| !s.starts_with('+'))
                    .and_then(|s| u32::from_str_radix(s, 16).ok());
                assert_eq!(hex8(digits), want, "{digits:?}");
            }
        }
    }

    #[test]
    fn all_lengths() {
        assert_eq!(hex(b""), None);
        assert_eq!(hex(b"0"), Some(0));
        assert_eq!(hex(b"aBc"), Some(0xabc));
        assert_eq!(hex(b"123456789"), Some(0x1_2345_6789));
        assert_eq!(hex(b"fedcba9876543210"), Some(0xfedc_ba98_7654_3210));
        assert_eq!(hex(b"00000000000000001"), None);
        assert_eq!(prefixed_hex(b"0x1f"), Some(0x1f));
        assert_eq!(prefixed_hex(b"0x"), None);
        assert_eq!(decimal(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(decimal(b"18446744073709551616"), None);
        assert_eq!(decimal(b""), None);
    }

    #[test]
    fn spelled_numbers_read_back() {
        for value in [
            0,
            1,
            0xf,
            0x10,
            0x8000_0000,
            0x0123_4567_89ab_cdef,
            u64::MAX,
        ] {
            assert_eq!(hex16(&spell16(value)), Some(value));
            let text = alloc::format!("{value:016x}");
            assert_eq!(spell16(value), text.as_bytes());
        }
    }
}
