//! Conversions, between formats and with integers.

use super::format::{Format, is_finite, is_infinite, is_nan, is_negative, is_zero, sign};
use super::round::{Flags, Round, Unpacked, nan, shift_sticky};

/// From one format to another: fcvt.s.d and the like.
#[must_use]
#[inline]
pub fn convert<From: Format, To: Format>(bits: u64, round: Round, flags: &mut Flags) -> u64 {
    if !is_finite::<From>(bits) {
        if is_nan::<From>(bits) {
            nan::<From>(&[bits], flags);
            return To::NAN;
        }
        return sign::<To>(is_negative::<From>(bits)) | To::INFINITY;
    }
    if is_zero::<From>(bits) {
        return sign::<To>(is_negative::<From>(bits));
    }
    Unpacked::new::<From>(bits).pack::<To>(round, flags)
}

/// Rounds to an integer from `-below` to `above`, and gives it modulo 2^64.
///
/// What is out of range gives the limit on its side, a NaN the upper one, and
/// is invalid but not inexact (chapter F, "Single-Precision Floating-Point
/// Conversion and Move Instructions").
#[inline]
fn to_integer<F: Format>(
    bits: u64,
    below: u64,
    above: u64,
    round: Round,
    flags: &mut Flags,
) -> u64 {
    if is_zero::<F>(bits) {
        return 0;
    }
    let negative = is_negative::<F>(bits) && !is_nan::<F>(bits);
    let limit = if negative { below } else { above };
    let signed = |magnitude: u64| {
        if negative {
            magnitude.wrapping_neg()
        } else {
            magnitude
        }
    };
    let x = Unpacked::new::<F>(bits);
    if is_nan::<F>(bits) || is_infinite::<F>(bits) || x.exponent > 63 {
        *flags |= Flags::NV;
        return signed(limit);
    }
    let (integer, fraction) = if x.exponent < 0 {
        (0, shift_sticky(x.significand, x.exponent.abs_diff(-1)))
    } else {
        let whole = x.significand >> (63 - x.exponent);
        let by = x.exponent as u32 + 1;
        (whole, x.significand.checked_shl(by).unwrap_or(0))
    };
    let rounded = round.integer(negative, integer, fraction);
    if rounded > limit {
        *flags |= Flags::NV;
        return signed(limit);
    }
    *flags |= Flags(u8::from(fraction != 0) * Flags::NX.0);
    signed(rounded)
}

/// To a signed 32-bit integer: fcvt.w.
#[must_use]
#[inline]
pub fn to_i32<F: Format>(bits: u64, round: Round, flags: &mut Flags) -> i32 {
    to_integer::<F>(bits, 1 << 31, i32::MAX as u64, round, flags) as i32
}

/// To an unsigned 32-bit integer: fcvt.wu.
#[must_use]
#[inline]
pub fn to_u32<F: Format>(bits: u64, round: Round, flags: &mut Flags) -> u32 {
    to_integer::<F>(bits, 0, u64::from(u32::MAX), round, flags) as u32
}

/// To a signed 64-bit integer: fcvt.l.
#[must_use]
#[inline]
pub fn to_i64<F: Format>(bits: u64, round: Round, flags: &mut Flags) -> i64 {
    to_integer::<F>(bits, 1 << 63, i64::MAX as u64, round, flags) as i64
}

/// To an unsigned 64-bit integer: fcvt.lu.
#[must_use]
#[inline]
pub fn to_u64<F: Format>(bits: u64, round: Round, flags: &mut Flags) -> u64 {
    to_integer::<F>(bits, 0, u64::MAX, round, flags)
}

/// Rounds an integer given by sign and magnitude; zero is positive.
#[inline]
fn from_integer<F: Format>(negative: bool, magnitude: u64, round: Round, flags: &mut Flags) -> u64 {
    if magnitude == 0 {
        return 0;
    }
    Unpacked::normalised(negative, 63, magnitude).pack::<F>(round, flags)
}

/// From a signed 32-bit integer: fcvt.s.w and the like.
#[must_use]
#[inline]
pub fn from_i32<F: Format>(value: i32, round: Round, flags: &mut Flags) -> u64 {
    from_i64::<F>(i64::from(value), round, flags)
}

/// From an unsigned 32-bit integer: fcvt.s.wu and the like.
#[must_use]
#[inline]
pub fn from_u32<F: Format>(value: u32, round: Round, flags: &mut Flags) -> u64 {
    from_u64::<F>(u64::from(value), round, flags)
}

/// From a signed 64-bit integer: fcvt.s.l and the like.
#[must_use]
#[inline]
pub fn from_i64<F: Format>(value: i64, round: Round, flags: &mut Flags) -> u64 {
    from_integer::<F>(value < 0, value.unsigned_abs(), round, flags)
}

/// From an unsigned 64-bit integer: fcvt.s.lu and the like.
#[must_use]
#[inline]
pub fn from_u64<F: Format>(value: u64, round: Round, flags: &mut Flags) -> u64 {
    from_integer::<F>(false, value, round, flags)
}
