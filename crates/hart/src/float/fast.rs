//! The host's floating point, used where it provably gives the same result and
//! the same exceptions.
//!
//! The host rounds to nearest, ties to even, and reports no exceptions. Each
//! function here computes the result and then, with an operation that is itself
//! exact, whether the result is exact. Anything that could raise another flag,
//! or involves a NaN or an infinity, is left to the other modules: `None`.
//!
//! Nothing here relies on the order of evaluation by chance: Rust neither
//! reorders nor contracts floating-point operations.

use super::format::{F16, F32, F64, Format};
use super::host::{Exact, Host};

/// The x87 unit of old computers keeps more bits than it should.
const IEEE_HOST: bool = cfg!(not(all(target_arch = "x86", not(target_feature = "sse2"))));

impl Host for F16 {}

impl Host for F32 {
    /// A sum is exact if and only if each operand is what is left when the
    /// other is taken away: the difference with the larger operand is always
    /// exact (Dekker 1971). It cannot underflow, for every sum below the
    /// normal numbers is exact.
    #[inline]
    fn host_add(a: u64, b: u64) -> Option<Exact> {
        let (x, y) = (single(a), single(b));
        let sum = x + y;
        let inexact = (sum - x != y) | (sum - y != x);
        (IEEE_HOST && sum.is_finite()).then(|| Exact::single(sum, inexact))
    }

    /// A product of two singles is exact as a double.
    #[inline]
    fn host_mul(a: u64, b: u64) -> Option<Exact> {
        let product = f64::from(single(a)) * f64::from(single(b));
        Exact::rounded(product, false)
    }

    #[inline]
    fn host_div(a: u64, b: u64) -> Option<Exact> {
        let (x, y) = (single(a), single(b));
        let quotient = x / y;
        // Which leaves out zeros and infinities as operands, too.
        let safe = quotient.is_finite() && quotient.abs() > f32::MIN_POSITIVE;
        let inexact = f64::from(quotient) * f64::from(y) != f64::from(x);
        (IEEE_HOST && safe).then(|| Exact::single(quotient, inexact))
    }

    #[inline]
    fn host_sqrt(a: u64) -> Option<Exact> {
        let x = single(a);
        let root = x.sqrt();
        let inexact = f64::from(root) * f64::from(root) != f64::from(x);
        (IEEE_HOST && x > 0.0 && x.is_finite()).then(|| Exact::single(root, inexact))
    }

    /// The sum, a double, is rounded a second time to a single. That goes
    /// wrong only where the first rounding ends halfway between two singles.
    #[inline]
    fn host_mul_add(a: u64, b: u64, c: u64) -> Option<Exact> {
        const BELOW: u64 = (1 << 29) - 1;
        const HALFWAY: u64 = 1 << 28;
        let z = f64::from(single(c));
        let product = f64::from(single(a)) * f64::from(single(b));
        let sum = product + z;
        let inexact = (sum - product != z) | (sum - z != product);
        if inexact && sum.to_bits() & BELOW == HALFWAY {
            return None;
        }
        Exact::rounded(sum, inexact)
    }

    #[inline]
    fn host_from(value: f64) -> Option<Exact> {
        Exact::rounded(value, false)
    }

    #[inline]
    fn host_value(a: u64) -> Option<f64> {
        Some(f64::from(single(a)))
    }
}

impl Host for F64 {
    /// As for singles.
    #[inline]
    fn host_add(a: u64, b: u64) -> Option<Exact> {
        let (x, y) = (f64::from_bits(a), f64::from_bits(b));
        let sum = x + y;
        let inexact = (sum - x != y) | (sum - y != x);
        (IEEE_HOST && sum.is_finite()).then(|| Exact::double(sum, inexact))
    }

    #[inline]
    fn host_mul(a: u64, b: u64) -> Option<Exact> {
        let product = f64::from_bits(a) * f64::from_bits(b);
        if !safe(product) || !normal(a) || !normal(b) {
            return None;
        }
        let inexact = !is_product(product.to_bits(), a, b);
        IEEE_HOST.then(|| Exact::double(product, inexact))
    }

    #[inline]
    fn host_div(a: u64, b: u64) -> Option<Exact> {
        let quotient = f64::from_bits(a) / f64::from_bits(b);
        if !safe(quotient) || !normal(a) || !normal(b) {
            return None;
        }
        let inexact = !is_product(a, quotient.to_bits(), b);
        IEEE_HOST.then(|| Exact::double(quotient, inexact))
    }

    #[inline]
    fn host_sqrt(a: u64) -> Option<Exact> {
        if a >> 63 != 0 || !normal(a) {
            return None;
        }
        let root = f64::from_bits(a).sqrt();
        let inexact = !is_product(a, root.to_bits(), root.to_bits());
        IEEE_HOST.then(|| Exact::double(root, inexact))
    }

    /// The product and its error, an exact pair, and the sum of the product
    /// and `c` and its error, another: the result is the sum and both errors,
    /// rounded once.
    ///
    /// Here the errors are added first. Where their sum is exact there is one
    /// rounding. Where it is not, `c` and the product did not cancel, and the
    /// errors are a few units of the sum's last place at most. The points
    /// halfway between two results are then as far from the sum as numbers
    /// with few bits, and rounding does not carry the errors across any of
    /// them: it can only end on one, and that is looked for.
    #[inline]
    fn host_mul_add(a: u64, b: u64, c: u64) -> Option<Exact> {
        // The unit of the product's error. With it in the normal range, and
        // the rest away from the upper end, no step over- or underflows:
        // every value is a multiple of the smallest subnormal.
        let unit = exponent(a) + exponent(b) - 1023 - 104;
        if !(1..=1800).contains(&unit) || exponent(c) > 2000 || !normal(a) || !normal(b) {
            return None;
        }
        let z = f64::from_bits(c);
        let product = f64::from_bits(a) * f64::from_bits(b);
        let unit = f64::from_bits((unit as u64) << 52 | (a ^ b) & F64::SIGN);
        let low = missing(product.to_bits(), a, b) as f64 * unit;
        let sum = product + z;
        let part = sum - product;
        let error = (product - (sum - part)) + (z - part);
        let errors = error + low;
        let lost = (errors - error != low) | (errors - low != error);
        let result = sum + errors;
        let inexact = lost | (result - sum != errors) | (result - errors != sum);
        let rest = errors - (result - sum);
        let halfway = lost && rest.to_bits() << 12 == 0;
        (IEEE_HOST && !halfway && result.is_finite()).then(|| Exact::double(result, inexact))
    }

    #[inline]
    fn host_from(value: f64) -> Option<Exact> {
        value.is_finite().then(|| Exact::double(value, false))
    }

    #[inline]
    fn host_value(a: u64) -> Option<f64> {
        Some(f64::from_bits(a))
    }
}

impl Exact {
    #[inline]
    const fn single(value: f32, inexact: bool) -> Self {
        Exact {
            bits: value.to_bits() as u64,
            inexact,
        }
    }

    #[inline]
    const fn double(value: f64, inexact: bool) -> Self {
        Exact {
            bits: value.to_bits(),
            inexact,
        }
    }

    /// Rounds to single what may already be `inexact`. Where that may
    /// underflow only what is exact passes.
    #[inline]
    fn rounded(value: f64, inexact: bool) -> Option<Self> {
        let result = value as f32;
        let inexact = inexact | (f64::from(result) != value);
        let safe = result.is_finite() && (result.abs() > f32::MIN_POSITIVE || !inexact);
        (IEEE_HOST && safe).then(|| Exact::single(result, inexact))
    }
}

#[inline]
const fn single(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

/// Whether a result lies where it has neither over- nor underflown. The
/// smallest normal number may have been reached from below.
#[inline]
const fn safe(result: f64) -> bool {
    result.is_finite() && result.abs() > f64::MIN_POSITIVE
}

#[inline]
const fn normal(bits: u64) -> bool {
    matches!(exponent(bits), 1..=0x7fe)
}

/// Whether a normal double is the product of two others, when it is known
/// that at most a rounding lies between.
#[inline]
const fn is_product(product: u64, a: u64, b: u64) -> bool {
    missing(product, a, b) == 0
}

/// What a normal double lacks to be the product of two others, when it is
/// known that at most a rounding lies between, signs apart; in units of the
/// product of the last places of the two.
///
/// The significands are integers of 53 bits, and once aligned they differ by
/// less than 2^54: they can be computed modulo 2^64.
#[inline]
const fn missing(product: u64, a: u64, b: u64) -> i64 {
    let shift = exponent(product) - exponent(a) - exponent(b) + 1023 + 52;
    let wide = significand(a).wrapping_mul(significand(b));
    wide.wrapping_sub(significand(product).wrapping_shl(shift as u32)) as i64
}

/// The exponent field.
#[inline]
const fn exponent(bits: u64) -> i32 {
    (bits >> 52 & 0x7ff) as i32
}

/// The significand of a normal double, as an integer.
#[inline]
const fn significand(bits: u64) -> u64 {
    1 << 52 | bits & ((1 << 52) - 1)
}
