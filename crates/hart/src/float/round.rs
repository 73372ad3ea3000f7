//! Packs and unpacks numbers; rounding happens when packing.

use core::ops::{BitOr, BitOrAssign};

use super::format::{Format, is_negative, is_signalling, magnitude, sign};

/// A rounding mode, numbered as `frm` numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Round {
    /// To nearest, ties to even.
    Rne = 0,
    /// Towards zero.
    Rtz = 1,
    /// Down, towards negative infinity.
    Rdn = 2,
    /// Up, towards positive infinity.
    Rup = 3,
    /// To nearest, ties to the larger magnitude.
    Rmm = 4,
}

impl Round {
    /// The mode of an `rm` or `frm` field; `None` for 5 and 6, which are
    /// reserved, and for 7, which says to look into `frm`.
    #[must_use]
    #[inline]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Round::Rne),
            1 => Some(Round::Rtz),
            2 => Some(Round::Rdn),
            3 => Some(Round::Rup),
            4 => Some(Round::Rmm),
            _ => None,
        }
    }

    /// What to add to a significand so that dropping its lowest `dropped`
    /// bits (at least one) rounds it.
    #[inline]
    const fn increment(self, negative: bool, significand: u64, dropped: u32) -> u64 {
        let half = 1 << (dropped - 1);
        match self {
            Round::Rne => half - 1 + (significand >> dropped & 1),
            Round::Rmm => half,
            _ if self.away(negative) => half * 2 - 1,
            _ => 0,
        }
    }

    /// Whether a directed mode goes away from zero.
    #[inline]
    const fn away(self, negative: bool) -> bool {
        matches!((self, negative), (Round::Rdn, true) | (Round::Rup, false))
    }

    /// Rounds an integer followed by 64 bits of fraction.
    #[inline]
    pub(super) const fn integer(self, negative: bool, integer: u64, fraction: u64) -> u64 {
        const HALF: u64 = 1 << 63;
        let up = match self {
            Round::Rne => (fraction > HALF) | (fraction == HALF) & (integer & 1 != 0),
            Round::Rmm => fraction >= HALF,
            _ => fraction != 0 && self.away(negative),
        };
        integer + up as u64
    }
}

/// Accrued exceptions, as `fflags` has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// Inexact.
    pub const NX: Flags = Flags(1);
    /// Underflow.
    pub const UF: Flags = Flags(2);
    /// Overflow.
    pub const OF: Flags = Flags(4);
    /// Divide by zero.
    pub const DZ: Flags = Flags(8);
    /// Invalid operation.
    pub const NV: Flags = Flags(16);
}

impl BitOr for Flags {
    type Output = Flags;

    #[inline]
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    #[inline]
    fn bitor_assign(&mut self, other: Flags) {
        self.0 |= other.0;
    }
}

/// A finite number other than zero: `significand * 2^(exponent - 63)`, where
/// bit 63 of the significand is set.
///
/// In a number that is yet to be rounded bit 0 is sticky: it stands for
/// anything there is below bit 1. The widest format rounds at bit 11, far
/// above.
#[derive(Clone, Copy)]
pub(super) struct Unpacked {
    pub(super) negative: bool,
    pub(super) exponent: i32,
    pub(super) significand: u64,
}

impl Unpacked {
    /// Takes a number apart that is finite and not zero.
    #[inline]
    pub(super) const fn new<F: Format>(bits: u64) -> Self {
        let negative = is_negative::<F>(bits);
        let field = (magnitude::<F>(bits) >> F::FRACTION) as i32;
        let fraction = bits & F::FRACTION_MASK;
        if field != 0 {
            return Unpacked {
                negative,
                exponent: field - F::BIAS,
                significand: 1 << 63 | fraction << (63 - F::FRACTION),
            };
        }
        // A subnormal: the exponent is that of field 1, and the leading bit
        // is somewhere in the fraction.
        let aligned = fraction << (63 - F::FRACTION);
        let shift = aligned.leading_zeros();
        Unpacked {
            negative,
            exponent: 1 - F::BIAS - shift as i32,
            significand: aligned.wrapping_shl(shift),
        }
    }

    /// A significand whose leading bit may be anywhere; not zero.
    #[inline]
    pub(super) const fn normalised(negative: bool, exponent: i32, significand: u64) -> Self {
        let shift = significand.leading_zeros();
        Unpacked {
            negative,
            exponent: exponent - shift as i32,
            significand: significand.wrapping_shl(shift),
        }
    }

    /// Rounds to the format.
    #[inline]
    pub(super) fn pack<F: Format>(self, round: Round, flags: &mut Flags) -> u64 {
        let dropped = 63 - F::FRACTION;
        let field = self.exponent + F::BIAS;
        if field < 1 {
            return self.pack_subnormal::<F>(round, flags);
        }
        if field >= F::TOP {
            return overflow::<F>(self.negative, round, flags);
        }
        let increment = round.increment(self.negative, self.significand, dropped);
        let (rounded, carry) = self.significand.overflowing_add(increment);
        // The leading bit, not stored, adds the one that is missing here; a
        // carry out of the significand adds one more, and leaves a fraction
        // of zeros.
        let fraction = rounded >> dropped | u64::from(carry) << (64 - dropped);
        let bits = ((field as u64 - 1) << F::FRACTION) + fraction;
        if bits >= F::INFINITY {
            return overflow::<F>(self.negative, round, flags);
        }
        let inexact = self.significand << (64 - dropped) != 0;
        *flags |= Flags(u8::from(inexact) * Flags::NX.0);
        sign::<F>(self.negative) | bits
    }

    /// Rounds what lies below the normal numbers of the format.
    #[cold]
    fn pack_subnormal<F: Format>(self, round: Round, flags: &mut Flags) -> u64 {
        let dropped = 63 - F::FRACTION;
        let field = self.exponent + F::BIAS;
        let shifted = shift_sticky(self.significand, field.abs_diff(1));
        let increment = round.increment(self.negative, shifted, dropped);
        // There is room for the carry. One into the place of the leading bit
        // makes the exponent field 1, as it should.
        let bits = (shifted + increment) >> dropped;
        if shifted << (64 - dropped) != 0 {
            // Tiny after rounding: rounded to full precision, as if exponents
            // had no end, it still lies below the normal numbers.
            let whole = round.increment(self.negative, self.significand, dropped);
            let tiny = field < 0 || self.significand.checked_add(whole).is_some();
            *flags |= Flags::NX;
            *flags |= Flags(u8::from(tiny) * Flags::UF.0);
        }
        sign::<F>(self.negative) | bits
    }
}

/// The result that is too large: infinity, or the largest number when the
/// mode does not go that way.
#[cold]
fn overflow<F: Format>(negative: bool, round: Round, flags: &mut Flags) -> u64 {
    *flags |= Flags::OF | Flags::NX;
    let nearest = matches!(round, Round::Rne | Round::Rmm);
    let bits = if nearest || round.away(negative) {
        F::INFINITY
    } else {
        F::INFINITY - 1
    };
    sign::<F>(negative) | bits
}

/// The NaN that comes of operands one of which is a NaN.
#[cold]
pub(super) fn nan<F: Format>(operands: &[u64], flags: &mut Flags) -> u64 {
    if operands.iter().any(|&bits| is_signalling::<F>(bits)) {
        *flags |= Flags::NV;
    }
    F::NAN
}

/// The NaN of an operation that has no result.
#[cold]
pub(super) fn invalid<F: Format>(flags: &mut Flags) -> u64 {
    *flags |= Flags::NV;
    F::NAN
}

/// Shifts to the right; bit 0 keeps whether anything was lost.
#[inline]
pub(super) const fn shift_sticky(value: u64, by: u32) -> u64 {
    if by > 63 {
        return (value != 0) as u64;
    }
    let shifted = value >> by;
    shifted | (shifted << by != value) as u64
}

/// As [`shift_sticky`], in double width.
#[inline]
pub(super) const fn shift_sticky_wide(value: u128, by: u32) -> u128 {
    if by > 127 {
        return (value != 0) as u128;
    }
    let shifted = value >> by;
    shifted | (shifted << by != value) as u128
}
