//! Values that are likely to expose a bug.

use super::layout::POOL_SIZE;
use crate::generate::Random;

/// An integer: the ends of the ranges, powers of two and their neighbours, or
/// anything.
pub(super) fn integer(random: &mut Random) -> u64 {
    let power = 1u64 << random.below(64);
    match random.below(12) {
        0 => 0,
        1 => 1,
        2 => u64::MAX,
        3 => random.pick(&[
            i64::MIN as u64,
            i64::MAX as u64,
            i32::MIN as u64,
            i32::MAX as u64,
            u64::from(u32::MAX),
            1 << 31,
            1 << 32,
            0xffff,
            0x8000,
            0x7fff,
            0x80,
            0xff,
        ]),
        4 => power,
        5 => power.wrapping_sub(1),
        6 => power.wrapping_neg(),
        7 => !power,
        8 => random.pick(&[0x5555_5555_5555_5555, 0xaaaa_aaaa_aaaa_aaaa]),
        9 => random.below(64),
        10 => (random.draw() as i64 >> random.below(64)) as u64,
        _ => random.draw(),
    }
}

/// A floating-point number with this many bits of exponent and fraction.
fn number(random: &mut Random, exponent: u32, fraction: u32) -> u64 {
    let top = (1u64 << exponent) - 1;
    let bias = top >> 1;
    let full = (1u64 << fraction) - 1;
    let quiet = 1u64 << (fraction - 1);
    let some = random.draw() & full;
    // Few bits set at the end or at the front, where roundings are decided.
    let sparse = random.pick(&[0, 1, 2, 3, quiet, quiet | 1, full, full - 1, some]);
    let near = random.below(u64::from(fraction) * 2 + 8);
    let (e, f) = match random.below(22) {
        0 => (0, 0),
        1 => (0, sparse),
        2 => (0, some),
        3 => (1, sparse),
        4 => (top, 0),
        5 => (top, quiet | some),
        6 => (top, random.pick(&[1, quiet - 1, (some & (quiet - 1)) | 1])),
        7 => (top - 1, sparse),
        8 => (bias, sparse),
        // Between a half and numbers too large for a fraction, or an integer.
        9 | 10 => ((bias + near).saturating_sub(3).min(top - 1), sparse),
        11 => {
            let at = random.pick(&[15, 16, 30, 31, 32, 62, 63, 64]);
            ((bias + at).min(top - 1), sparse)
        }
        // Products and quotients of these are at the ends of the range.
        12 => (bias / 2 + random.below(4), some),
        13 => (bias + bias / 2 + random.below(4), some),
        14..17 => (bias - 4 + random.below(8), some),
        17..20 => (bias - 4 + random.below(8), sparse),
        _ => (random.below(top), some),
    };
    let sign = random.below(2);
    sign << (exponent + fraction) | e << fraction | f
}

/// A floating-point format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Format {
    #[default]
    Double,
    Single,
    Half,
}

impl Format {
    /// What an instruction of the floating-point opcodes reads.
    pub(super) fn of(bits: u32) -> Format {
        // Between formats the source is where rs2 otherwise is.
        let between = bits & 0x7f == 0x53 && bits >> 27 == 8;
        match if between { bits >> 20 } else { bits >> 25 } & 3 {
            0 => Format::Single,
            1 => Format::Double,
            _ => Format::Half,
        }
    }

    /// Where in the pool, in bytes, a number of the format is: a quarter of
    /// the pool is integers, then come the formats.
    pub(super) fn place(self, random: &mut Random) -> u64 {
        let quarter = POOL_SIZE / 4;
        let from = match self {
            Format::Double => quarter,
            Format::Single => 2 * quarter,
            Format::Half => 3 * quarter,
        };
        8 * (from + random.below(quarter))
    }
}

/// What a 64-bit floating-point register may hold: a double, a boxed single or
/// half, or one whose box is broken.
fn float(random: &mut Random, format: Format) -> u64 {
    let broken = random.chance(200);
    match format {
        Format::Double => number(random, 11, 52),
        Format::Single if broken => {
            number(random, 8, 23) | random.pick(&[0, 0xffff_fffe, 0x7fff_ffff]) << 32
        }
        Format::Single => number(random, 8, 23) | 0xffff_ffff << 32,
        Format::Half if broken => {
            number(random, 5, 10) | random.pick(&[0, 0xfffe, 0x7fff]) << 16 | 0xffff_ffff << 32
        }
        Format::Half => number(random, 5, 10) | 0xffff_ffff_ffff << 16,
    }
}

/// The constant at a place in the pool.
pub(super) fn constant(random: &mut Random, at: u64) -> u64 {
    match at * 4 / POOL_SIZE {
        0 => integer(random),
        1 => float(random, Format::Double),
        2 => float(random, Format::Single),
        _ => float(random, Format::Half),
    }
}
