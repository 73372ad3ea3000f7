//! Conversions, between formats and with integers.

use super::format::{Format, is_finite, is_infinite, is_nan, is_negative, is_zero, sign};
use super::host;
use super::round::{Flags, Round, Unpacked, nan, shift_sticky};

/// From one format to another: fcvt.s.d and the like.
#[must_use]
#[inline]
pub fn convert<From: Format, To: Format>(bits: u64, round: Round, flags: &mut Flags) -> u64 {
    let fast = || From::host_value(bits).and_then(To::host_from);
    match host(round, flags, fast) {
        Some(bits) => bits,
        None => convert_any::<From, To>(bits, round, flags),
    }
}

/// As [`convert`], in any rounding mode.
pub(super) fn convert_any<From: Format, To: Format>(
    bits: u64,
    round: Round,
    flags: &mut Flags,
) -> u64 {
    if is_nan::<From>(bits) {
        nan::<From>(&[bits], flags);
        return To::NAN;
    }
    let sign = sign::<To>(is_negative::<From>(bits));
    if is_infinite::<From>(bits) {
        return sign | To::INFINITY;
    }
    if is_zero::<From>(bits) {
        return sign;
    }
    Unpacked::new::<From>(bits).pack::<To>(round, flags)
}

/// The integers of a type.
struct Range {
    /// The smallest, without its sign.
    below: u64,
    /// The largest.
    above: u64,
    /// Between these two, both excluded, a number without its fraction is in
    /// range, and in that of `i64`.
    open: (f64, f64),
}

const I32: Range = Range {
    below: 1 << 31,
    above: (1 << 31) - 1,
    open: (-2_147_483_649.0, 2_147_483_648.0),
};
const U32: Range = Range {
    below: 0,
    above: (1 << 32) - 1,
    open: (-1.0, 4_294_967_296.0),
};
const I64: Range = Range {
    below: 1 << 63,
    above: (1 << 63) - 1,
    // The number before -2^63.
    open: (-9_223_372_036_854_777_856.0, 9_223_372_036_854_775_808.0),
};
const U64: Range = Range {
    below: 0,
    above: u64::MAX,
    open: (-1.0, 9_223_372_036_854_775_808.0),
};

/// Rounds to an integer in range, and gives it modulo 2^64.
///
/// The host cuts fractions off, as programs that convert nearly always do.
#[inline]
fn to_integer<F: Format>(bits: u64, range: &Range, round: Round, flags: &mut Flags) -> u64 {
    if round == Round::Rtz
        && let Some(value) = F::host_value(bits)
        && value > range.open.0
        && value < range.open.1
    {
        let integer = value as i64;
        // Of 53 bits at most, and so exact in either direction.
        let inexact = integer as f64 != value;
        *flags |= Flags(u8::from(inexact) * Flags::NX.0);
        return integer as u64;
    }
    to_integer_any::<F>(bits, range, round, flags)
}

/// As [`to_integer`], in any rounding mode.
///
/// What is out of range gives the limit on its side, a NaN the upper one, and
/// is invalid but not inexact (chapter F, "Single-Precision Floating-Point
/// Conversion and Move Instructions").
fn to_integer_any<F: Format>(bits: u64, range: &Range, round: Round, flags: &mut Flags) -> u64 {
    if is_zero::<F>(bits) {
        return 0;
    }
    let negative = is_negative::<F>(bits) && !is_nan::<F>(bits);
    let limit = if negative { range.below } else { range.above };
    let signed = |magnitude: u64| {
        if negative {
            magnitude.wrapping_neg()
        } else {
            magnitude
        }
    };
    let x = Unpacked::new::<F>(bits);
    if !is_finite::<F>(bits) || x.exponent > 63 {
        *flags |= Flags::NV;
        return signed(limit);
    }
    let (integer, fraction) = parts(&x);
    let rounded = round.integer(negative, integer, fraction);
    if rounded > limit {
        *flags |= Flags::NV;
        return signed(limit);
    }
    *flags |= Flags(u8::from(fraction != 0) * Flags::NX.0);
    signed(rounded)
}

/// The integer part of a number whose exponent is at most 63, and 64 bits of fraction
/// of which the last one is sticky.
#[inline]
pub(super) fn parts(x: &Unpacked) -> (u64, u64) {
    if x.exponent < 0 {
        return (0, shift_sticky(x.significand, x.exponent.abs_diff(-1)));
    }
    let whole = x.significand >> (63 - x.exponent);
    let by = x.exponent as u32 + 1;
    (whole, x.significand.checked_shl(by).unwrap_or(0))
}

/// To a signed 32-bit integer: fcvt.w.
#[must_use]
#[inline]
pub fn to_i32<F: Format>(bits: u64, round: Round, flags: &mut Flags) -> i32 {
    to_integer::<F>(bits, &I32, round, flags) as i32
}

/// To an unsigned 32-bit integer: fcvt.wu.
#[must_use]
#[inline]
pub fn to_u32<F: Format>(bits: u64, round: Round, flags: &mut Flags) -> u32 {
    to_integer::<F>(bits, &U32, round, flags) as u32
}

/// To a signed 64-bit integer: fcvt.l.
#[must_use]
#[inline]
pub fn to_i64<F: Format>(bits: u64, round: Round, flags: &mut Flags) -> i64 {
    to_integer::<F>(bits, &I64, round, flags) as i64
}

/// To an unsigned 64-bit integer: fcvt.lu.
#[must_use]
#[inline]
pub fn to_u64<F: Format>(bits: u64, round: Round, flags: &mut Flags) -> u64 {
    to_integer::<F>(bits, &U64, round, flags)
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
    if let Some(bits) = host(round, flags, || F::host_from(f64::from(value))) {
        return bits;
    }
    from_i64::<F>(i64::from(value), round, flags)
}

/// From an unsigned 32-bit integer: fcvt.s.wu and the like.
#[must_use]
#[inline]
pub fn from_u32<F: Format>(value: u32, round: Round, flags: &mut Flags) -> u64 {
    if let Some(bits) = host(round, flags, || F::host_from(f64::from(value))) {
        return bits;
    }
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
