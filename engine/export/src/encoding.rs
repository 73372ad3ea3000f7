//! How Parquet writes numbers: as differences, and as runs and packed bits.

/// Values of a block of differences, which share the least one, and of its parts, which share a
/// width. The format asks for multiples of 128 and of 32.
const BLOCK: usize = 128;
const PART: usize = 32;

/// So many equal values are a run.
const RUN: usize = 16;

/// A number, seven bits in a byte (ULEB128).
fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A signed number as one without a sign, small if it is near 0.
const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Values of `width` bits, the lowest bits first.
fn pack(out: &mut Vec<u8>, width: u32, values: impl Iterator<Item = u64>) {
    if width == 0 {
        return;
    }
    let (mut word, mut filled) = (0u64, 0);
    for value in values {
        word |= value << filled;
        filled += width;
        if filled >= u64::BITS {
            out.extend_from_slice(&word.to_le_bytes());
            filled -= u64::BITS;
            // The bits that had no room. There are none if the value ended the word.
            word = value.checked_shr(width - filled).unwrap_or(0);
        }
    }
    let bytes = word.to_le_bytes().into_iter();
    out.extend(bytes.take(filled.div_ceil(8) as usize));
}

/// A difference as a number with a sign: of 32 bits if `NARROW`.
#[inline]
const fn signed<const NARROW: bool>(value: u64) -> i64 {
    match NARROW {
        true => value as u32 as i32 as i64,
        false => value as i64,
    }
}

/// DELTA_BINARY_PACKED: the first value, and blocks of differences. `NARROW` values have 32 bits.
pub(crate) fn delta<const NARROW: bool>(out: &mut Vec<u8>, values: &[u64]) {
    varint(out, BLOCK as u64);
    varint(out, (BLOCK / PART) as u64);
    varint(out, values.len() as u64);
    let first = values.first().copied().unwrap_or(0);
    varint(out, zigzag(signed::<NARROW>(first)));
    let after = values.get(1..).unwrap_or_default();
    let mut deltas = [0i64; BLOCK];
    for (after, before) in after.chunks(BLOCK).zip(values.chunks(BLOCK)) {
        let mut least = i64::MAX;
        for (delta, (after, before)) in deltas.iter_mut().zip(after.iter().zip(before)) {
            *delta = signed::<NARROW>(after.wrapping_sub(*before));
            least = least.min(*delta);
        }
        varint(out, zigzag(least));
        // What the last block does not have is written as zeros.
        if let Some(rest) = deltas.get_mut(after.len()..) {
            rest.fill(least);
        }
        let mut widths = [0; BLOCK / PART];
        for (width, part) in widths.iter_mut().zip(deltas.chunks_exact_mut(PART)) {
            let mut bits = 0;
            for delta in part {
                *delta = delta.wrapping_sub(least);
                bits |= *delta;
            }
            *width = u64::BITS - bits.leading_zeros();
        }
        out.extend(widths.map(|width| width as u8));
        for (width, part) in widths.into_iter().zip(deltas.chunks_exact(PART)) {
            pack(out, width, part.iter().map(|delta| *delta as u64));
        }
    }
}

/// How many bits the numbers below a count need.
pub(crate) const fn width(count: usize) -> u32 {
    usize::BITS - count.saturating_sub(1).leading_zeros()
}

/// The hybrid of Parquet (RLE): runs of equal values, and eight or more values as packed bits.
pub(crate) fn hybrid(out: &mut Vec<u8>, width: u32, values: &[u32]) {
    let (mut rest, mut literals) = (values, values);
    while let Some(first) = rest.first() {
        let run = rest.iter().take_while(|value| *value == first).count();
        if run >= RUN || run == values.len() {
            let before = literals.len() - rest.len();
            literal(out, width, literals.get(..before).unwrap_or_default());
            varint(out, (run as u64) << 1);
            let bytes = first.to_le_bytes().into_iter();
            out.extend(bytes.take(width.div_ceil(8) as usize));
            rest = rest.get(run..).unwrap_or_default();
            literals = rest;
        } else {
            rest = rest.get(8..).unwrap_or_default();
        }
    }
    literal(out, width, literals);
}

/// Packed bits, in groups of eight values; zeros fill the last one.
fn literal(out: &mut Vec<u8>, width: u32, values: &[u32]) {
    if values.is_empty() {
        return;
    }
    let groups = values.len().div_ceil(8);
    varint(out, (groups as u64) << 1 | 1);
    let end = out.len() + groups * width as usize;
    pack(out, width, values.iter().map(|value| u64::from(*value)));
    out.resize(end, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_those_of_the_specification() {
        let mut out = Vec::new();
        delta::<false>(&mut out, &[7, 5, 3, 1, 2, 3, 4, 5]);
        // "Encodings", example 2: the differences are -2, -2, -2, 1, 1, 1, 1; the least is -2.
        let mut expected = vec![0x80, 1, 4, 8, 14, 3, 2, 0, 0, 0, 0b1100_0000, 0b0011_1111];
        expected.resize(10 + 8, 0);
        assert_eq!(out, expected);
    }

    #[test]
    fn narrow_differences_have_32_bits() {
        let mut out = Vec::new();
        delta::<true>(&mut out, &[0, 0xffff_ffff, 0x7fff_ffff, 0]);
        // -1, -2^31, -2^31 + 1: from the least, 31 bits.
        let widths = out.get(10..14).unwrap_or_default();
        assert_eq!(widths, [31, 0, 0, 0], "{out:?}");
    }

    #[test]
    fn runs_and_packed_bits() {
        let mut out = Vec::new();
        hybrid(&mut out, 1, &[1; 20]);
        assert_eq!(out, [40, 1]);
        out.clear();
        // "Encodings", RLE: 0 to 7 with three bits.
        hybrid(&mut out, 3, &[0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(out, [3, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
        out.clear();
        let mixed: Vec<u32> = [1, 0].into_iter().chain([1; 30]).chain([0]).collect();
        hybrid(&mut out, 1, &mixed);
        assert_eq!(out, [3, 0b1111_1101, 48, 1, 3, 0]);
    }
}
