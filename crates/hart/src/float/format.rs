//! The formats: the positions of sign, exponent and fraction, and the special
//! values.

use super::host::Host;

/// An IEEE 754 binary interchange format of up to 64 bits.
///
/// Sealed: [`F16`], [`F32`] and [`F64`] are all there are.
#[allow(private_bounds, reason = "this is what seals it")]
pub trait Format: Host {
    /// Bits of the exponent field.
    const EXPONENT: u32;
    /// Bits of the fraction field, one less than the precision.
    const FRACTION: u32;

    /// Bits of the whole format.
    const WIDTH: u32 = 1 + Self::EXPONENT + Self::FRACTION;
    /// Every bit of the format.
    const MASK: u64 = u64::MAX >> (64 - Self::WIDTH);
    /// The sign bit.
    const SIGN: u64 = 1 << (Self::WIDTH - 1);
    /// The exponent field all ones: that of infinities and NaNs.
    const TOP: i32 = (1 << Self::EXPONENT) - 1;
    /// What the exponent field is too large by.
    const BIAS: i32 = Self::TOP >> 1;
    /// The fraction field.
    const FRACTION_MASK: u64 = (1 << Self::FRACTION) - 1;
    /// Positive infinity.
    const INFINITY: u64 = (Self::TOP as u64) << Self::FRACTION;
    /// The first bit of the fraction: set in a quiet NaN, clear in a
    /// signalling one.
    const QUIET: u64 = 1 << (Self::FRACTION - 1);
    /// The canonical NaN: positive, quiet, and no payload.
    const NAN: u64 = Self::INFINITY | Self::QUIET;
}

/// Half precision, binary16: Zfh.
#[derive(Clone, Copy, Debug)]
pub struct F16;

/// Single precision, binary32: F.
#[derive(Clone, Copy, Debug)]
pub struct F32;

/// Double precision, binary64: D.
#[derive(Clone, Copy, Debug)]
pub struct F64;

impl Format for F16 {
    const EXPONENT: u32 = 5;
    const FRACTION: u32 = 10;
}

impl Format for F32 {
    const EXPONENT: u32 = 8;
    const FRACTION: u32 = 23;
}

impl Format for F64 {
    const EXPONENT: u32 = 11;
    const FRACTION: u32 = 52;
}

/// A number as a 64-bit register holds it: the bits above a narrower format
/// are ones (chapter D, "NaN Boxing of Narrower Values").
///
/// ```
/// use hartrace_hart::float::{F16, boxed};
///
/// assert_eq!(boxed::<F16>(0x3c00), 0xffff_ffff_ffff_3c00);
/// ```
#[must_use]
#[inline]
pub const fn boxed<F: Format>(bits: u64) -> u64 {
    bits | !F::MASK
}

/// The number in a 64-bit register; the canonical NaN when the register holds
/// one of a wider format.
///
/// ```
/// use hartrace_hart::float::{F32, unboxed};
///
/// assert_eq!(unboxed::<F32>(0xffff_ffff_3f80_0000), 0x3f80_0000);
/// assert_eq!(unboxed::<F32>(0x3ff0_0000_0000_0000), 0x7fc0_0000);
/// ```
#[must_use]
#[inline]
pub const fn unboxed<F: Format>(register: u64) -> u64 {
    if register | F::MASK == u64::MAX {
        register & F::MASK
    } else {
        F::NAN
    }
}

#[inline]
pub(super) const fn is_negative<F: Format>(bits: u64) -> bool {
    bits & F::SIGN != 0
}

/// The bits without the sign.
#[inline]
pub(super) const fn magnitude<F: Format>(bits: u64) -> u64 {
    bits & (F::SIGN - 1)
}

#[inline]
pub(super) const fn is_finite<F: Format>(bits: u64) -> bool {
    magnitude::<F>(bits) < F::INFINITY
}

#[inline]
pub(super) const fn is_infinite<F: Format>(bits: u64) -> bool {
    magnitude::<F>(bits) == F::INFINITY
}

#[inline]
pub(super) const fn is_nan<F: Format>(bits: u64) -> bool {
    magnitude::<F>(bits) > F::INFINITY
}

#[inline]
pub(super) const fn is_signalling<F: Format>(bits: u64) -> bool {
    is_nan::<F>(bits) && bits & F::QUIET == 0
}

#[inline]
pub(super) const fn is_zero<F: Format>(bits: u64) -> bool {
    magnitude::<F>(bits) == 0
}

/// The sign bit where the format has it.
#[inline]
pub(super) const fn sign<F: Format>(negative: bool) -> u64 {
    (negative as u64) << (F::WIDTH - 1)
}
