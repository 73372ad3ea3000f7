//! Addition, division and square root, in any rounding mode.

use super::format::{
    Format, is_finite, is_infinite, is_nan, is_negative, is_zero, magnitude, sign,
};
use super::round::{Flags, Round, Unpacked, invalid, nan, shift_sticky};

/// The zero that a sum of two opposite numbers is (IEEE 754, 6.3).
#[inline]
pub(super) const fn cancelled<F: Format>(round: Round) -> u64 {
    sign::<F>(matches!(round, Round::Rdn))
}

/// `a + b`.
pub(super) fn add<F: Format>(a: u64, b: u64, round: Round, flags: &mut Flags) -> u64 {
    if !is_finite::<F>(a) || !is_finite::<F>(b) {
        return add_special::<F>(a, b, flags);
    }
    if is_zero::<F>(b) {
        return if is_zero::<F>(a) && a != b {
            cancelled::<F>(round)
        } else {
            a
        };
    }
    if is_zero::<F>(a) {
        return b;
    }
    // In order of magnitude, which is that of the bits.
    let swap = magnitude::<F>(a) < magnitude::<F>(b);
    let large = Unpacked::new::<F>(if swap { b } else { a });
    let small = Unpacked::new::<F>(if swap { a } else { b });
    // One place to the right makes room for a carry; operands end with eleven
    // zeros or more, so that nothing is lost. When a difference then loses
    // more than one leading bit, the exponents were so near each other that
    // nothing got into the sticky bit either.
    let distance = large.exponent.abs_diff(small.exponent);
    let left = large.significand >> 1;
    let right = shift_sticky(small.significand >> 1, distance);
    let sum = if large.negative == small.negative {
        left + right
    } else {
        left - right
    };
    if sum == 0 {
        return cancelled::<F>(round);
    }
    Unpacked::normalised(large.negative, large.exponent + 1, sum).pack::<F>(round, flags)
}

/// A sum with an infinity or a NaN.
#[cold]
fn add_special<F: Format>(a: u64, b: u64, flags: &mut Flags) -> u64 {
    if is_nan::<F>(a) || is_nan::<F>(b) {
        return nan::<F>(&[a, b], flags);
    }
    if is_infinite::<F>(a) && is_infinite::<F>(b) && a != b {
        return invalid::<F>(flags);
    }
    if is_infinite::<F>(a) { a } else { b }
}

/// A significand as a `f64` from 1 up to 2, exactly: none has more than 53
/// bits.
#[inline]
const fn as_double(significand: u64) -> f64 {
    f64::from_bits(0x3ff << 52 | significand << 1 >> 12)
}

/// The first 53 bits of a result, and whether the result itself is above or
/// below them, as a significand that can be rounded.
///
/// `result` is a `f64` from 1 up to 2, at most half a unit away from the
/// true one; `remainder` has the sign of what is missing.
#[inline]
const fn settled(result: f64, remainder: i64) -> u64 {
    let significand = 1 << 63 | result.to_bits() << 11 & !(1 << 63);
    // Below means between this one and the one before, nearer to this one:
    // all ones in what is dropped, the last of them sticky.
    match remainder {
        0 => significand,
        1.. => significand | 1,
        _ => significand - 1,
    }
}

/// `a / b`.
pub(super) fn div<F: Format>(a: u64, b: u64, round: Round, flags: &mut Flags) -> u64 {
    let negative = is_negative::<F>(a ^ b);
    if !is_finite::<F>(a) || !is_finite::<F>(b) || is_zero::<F>(a) || is_zero::<F>(b) {
        return div_special::<F>(a, b, flags);
    }
    let (x, y) = (Unpacked::new::<F>(a), Unpacked::new::<F>(b));
    // A quotient from 1 up to 2 has its leading bit in place.
    let less = x.significand < y.significand;
    let numerator = as_double(x.significand) * if less { 2.0 } else { 1.0 };
    let quotient = numerator / as_double(y.significand);
    // The host rounds to nearest, so that the remainder is at most half of
    // the divisor, which has 53 bits: it is exact modulo 2^64.
    let product =
        (quotient.to_bits() & F64_FRACTION | F64_LEADING).wrapping_mul(y.significand >> 11);
    let dividend = (x.significand >> 11) << (52 + u32::from(less));
    let remainder = dividend.wrapping_sub(product) as i64;
    Unpacked {
        negative,
        exponent: x.exponent - y.exponent - i32::from(less),
        significand: settled(quotient, remainder),
    }
    .pack::<F>(round, flags)
}

/// A quotient with a zero, an infinity or a NaN.
fn div_special<F: Format>(a: u64, b: u64, flags: &mut Flags) -> u64 {
    if is_nan::<F>(a) || is_nan::<F>(b) {
        return nan::<F>(&[a, b], flags);
    }
    let sign = (a ^ b) & F::SIGN;
    let both_infinite = is_infinite::<F>(a) && is_infinite::<F>(b);
    if both_infinite || is_zero::<F>(a) && is_zero::<F>(b) {
        return invalid::<F>(flags);
    }
    if is_zero::<F>(a) || is_infinite::<F>(b) {
        return sign;
    }
    if is_zero::<F>(b) && is_finite::<F>(a) {
        *flags |= Flags::DZ;
    }
    sign | F::INFINITY
}

/// The square root of `a`.
///
/// Kept apart from the host's: where LLVM sees a choice between a NaN and the
/// square root of a negative number it takes the latter, whose sign is wrong.
#[inline(never)]
pub(super) fn sqrt<F: Format>(a: u64, round: Round, flags: &mut Flags) -> u64 {
    if is_nan::<F>(a) {
        return nan::<F>(&[a], flags);
    }
    // The root of -0 is -0 (IEEE 754, 5.4.1).
    if is_zero::<F>(a) {
        return a;
    }
    if is_negative::<F>(a) {
        return invalid::<F>(flags);
    }
    if is_infinite::<F>(a) {
        return a;
    }
    let x = Unpacked::new::<F>(a);
    // The exponent must be even; the root of 1 up to 4 is 1 up to 2.
    let odd = x.exponent & 1;
    let root = (as_double(x.significand) * if odd == 1 { 2.0 } else { 1.0 }).sqrt();
    let integer = root.to_bits() & F64_FRACTION | F64_LEADING;
    // At most half a unit off, hence the remainder is at most the root: it is
    // exact modulo 2^64.
    let square = (x.significand >> 11) << (52 + odd);
    let remainder = square.wrapping_sub(integer.wrapping_mul(integer)) as i64;
    Unpacked {
        negative: false,
        exponent: (x.exponent - odd) >> 1,
        significand: settled(root, remainder),
    }
    .pack::<F>(round, flags)
}

const F64_LEADING: u64 = 1 << 52;
const F64_FRACTION: u64 = F64_LEADING - 1;
