//! What Zfa adds besides comparisons: constants, rounding to an integer in the same
//! format, and a conversion to an integer modulo 2^32.

use super::convert::{convert, parts};
use super::format::{F64, Format, is_finite, is_nan, is_negative, is_zero, sign};
use super::round::{Flags, Round, Unpacked, nan};

/// The constants of fli that are the same number in all formats. The others are in
/// [`constant`].
const CONSTANTS: [f64; 30] = [
    -1.0,
    0.0, // the smallest normal number
    1.0 / 65536.0,
    1.0 / 32768.0,
    1.0 / 256.0,
    1.0 / 128.0,
    0.0625,
    0.125,
    0.25,
    0.3125,
    0.375,
    0.4375,
    0.5,
    0.625,
    0.75,
    0.875,
    1.0,
    1.25,
    1.5,
    1.75,
    2.0,
    2.5,
    3.0,
    4.0,
    8.0,
    16.0,
    128.0,
    256.0,
    32768.0,
    65536.0, // an infinity in half precision
];

/// The constant with this number, 0 to 31: fli.
#[must_use]
pub fn constant<F: Format>(number: u8) -> u64 {
    match (number, CONSTANTS.get(usize::from(number))) {
        (1, _) => 1 << F::FRACTION,
        (_, Some(value)) => convert::<F64, F>(value.to_bits(), Round::Rne, &mut Flags::default()),
        (30, None) => F::INFINITY,
        (_, None) => F::NAN,
    }
}

/// Rounds to an integer, in the same format: froundnx. For fround, which is never
/// inexact, the caller drops that flag.
#[must_use]
pub fn round_to_integer<F: Format>(bits: u64, round: Round, flags: &mut Flags) -> u64 {
    if is_nan::<F>(bits) {
        return nan::<F>(&[bits], flags);
    }
    if is_zero::<F>(bits) || !is_finite::<F>(bits) {
        return bits;
    }
    let x = Unpacked::new::<F>(bits);
    if x.exponent >= F::FRACTION as i32 {
        return bits;
    }
    let (integer, fraction) = parts(&x);
    let rounded = round.integer(x.negative, integer, fraction);
    *flags |= Flags(u8::from(fraction != 0) * Flags::NX.0);
    match rounded {
        0 => sign::<F>(x.negative),
        // It has no more bits than the format.
        _ => Unpacked::normalised(x.negative, 63, rounded).pack::<F>(round, flags),
    }
}

/// To a signed 32-bit integer, modulo 2^32, the fraction cut off: fcvtmod.w.d. A number
/// out of range is invalid, as for fcvt.w.d.
#[must_use]
pub fn to_i32_modular<F: Format>(bits: u64, flags: &mut Flags) -> i32 {
    if is_zero::<F>(bits) {
        return 0;
    }
    if !is_finite::<F>(bits) {
        *flags |= Flags::NV;
        return 0;
    }
    let x = Unpacked::new::<F>(bits);
    let negative = is_negative::<F>(bits);
    let signed = |magnitude: u64| match negative {
        true => magnitude.wrapping_neg() as i32,
        false => magnitude as i32,
    };
    if x.exponent > 63 {
        *flags |= Flags::NV;
        let up = x.exponent.abs_diff(63);
        return signed(x.significand.checked_shl(up).unwrap_or(0));
    }
    let (integer, fraction) = parts(&x);
    *flags |= match integer > i32::MAX as u64 + u64::from(negative) {
        true => Flags::NV,
        false => Flags(u8::from(fraction != 0) * Flags::NX.0),
    };
    signed(integer)
}
