//! Multiplication and fused multiply-add, in any rounding mode.

use super::arith::cancelled;
use super::format::{Format, is_finite, is_infinite, is_nan, is_zero};
use super::round::{Flags, Round, Unpacked, invalid, nan, shift_sticky_wide};

/// The exact product of two significands, bit 127 set, and the exponent that
/// goes with it.
#[inline]
const fn product(x: Unpacked, y: Unpacked) -> (i32, u128) {
    let wide = x.significand as u128 * y.significand as u128;
    let carry = (wide >> 127) as i32;
    (x.exponent + y.exponent + carry, wide << (1 - carry))
}

/// Keeps the upper half, and whether there is anything in the lower.
#[inline]
const fn narrowed(wide: u128) -> u64 {
    (wide >> 64) as u64 | (wide as u64 != 0) as u64
}

/// `a * b`.
pub(super) fn mul<F: Format>(a: u64, b: u64, round: Round, flags: &mut Flags) -> u64 {
    if !is_finite::<F>(a) || !is_finite::<F>(b) {
        return mul_special::<F>(a, b, flags);
    }
    if is_zero::<F>(a) || is_zero::<F>(b) {
        return (a ^ b) & F::SIGN;
    }
    let (x, y) = (Unpacked::new::<F>(a), Unpacked::new::<F>(b));
    let (exponent, wide) = product(x, y);
    Unpacked {
        negative: x.negative != y.negative,
        exponent,
        significand: narrowed(wide),
    }
    .pack::<F>(round, flags)
}

/// A product with an infinity or a NaN.
#[cold]
fn mul_special<F: Format>(a: u64, b: u64, flags: &mut Flags) -> u64 {
    if is_nan::<F>(a) || is_nan::<F>(b) {
        return nan::<F>(&[a, b], flags);
    }
    if is_zero::<F>(a) || is_zero::<F>(b) {
        return invalid::<F>(flags);
    }
    (a ^ b) & F::SIGN | F::INFINITY
}

/// `a * b + c`, rounded once.
pub(super) fn mul_add<F: Format>(a: u64, b: u64, c: u64, round: Round, flags: &mut Flags) -> u64 {
    if !is_finite::<F>(a) || !is_finite::<F>(b) || !is_finite::<F>(c) {
        return mul_add_special::<F>(a, b, c, flags);
    }
    if is_zero::<F>(a) || is_zero::<F>(b) {
        let zero = (a ^ b) & F::SIGN;
        return if is_zero::<F>(c) && c != zero {
            cancelled::<F>(round)
        } else {
            c
        };
    }
    let (x, y) = (Unpacked::new::<F>(a), Unpacked::new::<F>(b));
    let (exponent, wide) = product(x, y);
    let negative = x.negative != y.negative;
    if is_zero::<F>(c) {
        return Unpacked {
            negative,
            exponent,
            significand: narrowed(wide),
        }
        .pack::<F>(round, flags);
    }
    let z = Unpacked::new::<F>(c);
    let addend = u128::from(z.significand) << 64;
    // As in a sum, in double width: a product has 106 bits at most, so that
    // the place given up for the carry is empty.
    let swap = (exponent, wide) < (z.exponent, addend);
    let (large, small) = if swap { (addend, wide) } else { (wide, addend) };
    let top = exponent.max(z.exponent);
    let right = shift_sticky_wide(small >> 1, exponent.abs_diff(z.exponent));
    let sum = if negative == z.negative {
        (large >> 1) + right
    } else {
        (large >> 1) - right
    };
    if sum == 0 {
        return cancelled::<F>(round);
    }
    let shift = sum.leading_zeros();
    Unpacked {
        negative: if swap { z.negative } else { negative },
        exponent: top + 1 - shift as i32,
        significand: narrowed(sum.wrapping_shl(shift)),
    }
    .pack::<F>(round, flags)
}

/// A product and sum with an infinity or a NaN.
#[cold]
fn mul_add_special<F: Format>(a: u64, b: u64, c: u64, flags: &mut Flags) -> u64 {
    let infinite = is_infinite::<F>(a) || is_infinite::<F>(b);
    // Checked first: invalid whatever is added (chapter F, "Single-Precision
    // Floating-Point Computational Instructions").
    if is_infinite::<F>(a) && is_zero::<F>(b) || is_zero::<F>(a) && is_infinite::<F>(b) {
        return invalid::<F>(flags);
    }
    if is_nan::<F>(a) || is_nan::<F>(b) || is_nan::<F>(c) {
        return nan::<F>(&[a, b, c], flags);
    }
    let product = (a ^ b) & F::SIGN | F::INFINITY;
    if !infinite {
        return c;
    }
    if is_infinite::<F>(c) && c != product {
        return invalid::<F>(flags);
    }
    product
}
