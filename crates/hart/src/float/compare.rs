//! Comparison, minimum and maximum, and the class of a number.

use super::format::{Format, is_infinite, is_nan, is_negative, is_signalling, is_zero, magnitude};
use super::round::Flags;

/// An integer in the order of the numbers, `-0` just before `+0`.
#[inline]
const fn key<F: Format>(bits: u64) -> i64 {
    let magnitude = magnitude::<F>(bits) as i64;
    if is_negative::<F>(bits) {
        !magnitude
    } else {
        magnitude
    }
}

#[inline]
const fn unordered<F: Format>(a: u64, b: u64) -> bool {
    is_nan::<F>(a) || is_nan::<F>(b)
}

#[inline]
fn note_signalling<F: Format>(a: u64, b: u64, flags: &mut Flags) {
    if is_signalling::<F>(a) || is_signalling::<F>(b) {
        *flags |= Flags::NV;
    }
}

/// `a == b`, quietly: only a signalling NaN is invalid. feq.
#[must_use]
#[inline]
pub fn eq<F: Format>(a: u64, b: u64, flags: &mut Flags) -> bool {
    if unordered::<F>(a, b) {
        note_signalling::<F>(a, b, flags);
        return false;
    }
    a == b || is_zero::<F>(a | b)
}

/// `a < b`; any NaN is invalid. flt.
#[must_use]
#[inline]
pub fn lt<F: Format>(a: u64, b: u64, flags: &mut Flags) -> bool {
    if unordered::<F>(a, b) {
        *flags |= Flags::NV;
        return false;
    }
    key::<F>(a) < key::<F>(b) && !is_zero::<F>(a | b)
}

/// `a <= b`; any NaN is invalid. fle.
#[must_use]
#[inline]
pub fn le<F: Format>(a: u64, b: u64, flags: &mut Flags) -> bool {
    if unordered::<F>(a, b) {
        *flags |= Flags::NV;
        return false;
    }
    key::<F>(a) <= key::<F>(b) || is_zero::<F>(a | b)
}

/// `a < b`, quietly: only a signalling NaN is invalid. fltq.
#[must_use]
pub fn lt_quiet<F: Format>(a: u64, b: u64, flags: &mut Flags) -> bool {
    if unordered::<F>(a, b) {
        note_signalling::<F>(a, b, flags);
        return false;
    }
    lt::<F>(a, b, flags)
}

/// `a <= b`, quietly. fleq.
#[must_use]
pub fn le_quiet<F: Format>(a: u64, b: u64, flags: &mut Flags) -> bool {
    if unordered::<F>(a, b) {
        note_signalling::<F>(a, b, flags);
        return false;
    }
    le::<F>(a, b, flags)
}

/// The smaller one, minimum of IEEE 754-2019: `-0` is below `+0`, and with a NaN the
/// result is one. fminm.
#[must_use]
pub fn minimum<F: Format>(a: u64, b: u64, flags: &mut Flags) -> u64 {
    if unordered::<F>(a, b) {
        note_signalling::<F>(a, b, flags);
        return F::NAN;
    }
    min::<F>(a, b, flags)
}

/// The larger one, maximum of IEEE 754-2019. fmaxm.
#[must_use]
pub fn maximum<F: Format>(a: u64, b: u64, flags: &mut Flags) -> u64 {
    if unordered::<F>(a, b) {
        note_signalling::<F>(a, b, flags);
        return F::NAN;
    }
    max::<F>(a, b, flags)
}

/// The smaller one, minimumNumber of IEEE 754-2019: `-0` is below `+0`, and a
/// NaN gives way to a number. fmin.
#[must_use]
#[inline]
pub fn min<F: Format>(a: u64, b: u64, flags: &mut Flags) -> u64 {
    if unordered::<F>(a, b) {
        return the_number::<F>(a, b, flags);
    }
    if key::<F>(a) <= key::<F>(b) { a } else { b }
}

/// The larger one, maximumNumber of IEEE 754-2019. fmax.
#[must_use]
#[inline]
pub fn max<F: Format>(a: u64, b: u64, flags: &mut Flags) -> u64 {
    if unordered::<F>(a, b) {
        return the_number::<F>(a, b, flags);
    }
    if key::<F>(a) >= key::<F>(b) { a } else { b }
}

/// Minimum and maximum alike when there is a NaN.
#[cold]
fn the_number<F: Format>(a: u64, b: u64, flags: &mut Flags) -> u64 {
    note_signalling::<F>(a, b, flags);
    match (is_nan::<F>(a), is_nan::<F>(b)) {
        (false, _) => a,
        (_, false) => b,
        _ => F::NAN,
    }
}

/// The mask of fclass, in which one of ten bits is set.
///
/// From bit 0 on: negative infinity, normal, subnormal and zero; positive
/// zero, subnormal, normal and infinity; signalling NaN, quiet NaN.
#[must_use]
#[inline]
pub const fn classify<F: Format>(bits: u64) -> u16 {
    if is_nan::<F>(bits) {
        return if is_signalling::<F>(bits) {
            1 << 8
        } else {
            1 << 9
        };
    }
    let from_zero = if is_zero::<F>(bits) {
        0
    } else if magnitude::<F>(bits) <= F::FRACTION_MASK {
        1
    } else if is_infinite::<F>(bits) {
        3
    } else {
        2
    };
    if is_negative::<F>(bits) {
        1 << (3 - from_zero)
    } else {
        1 << (4 + from_zero)
    }
}
