//! IEEE 754 arithmetic as the F, D, Zfh and Zfa extensions have it.
//!
//! Numbers travel as bits in a `u64`, zero-extended, whatever their format;
//! the format is a type parameter. Exceptions are added to a [`Flags`], whose
//! bits are those of `fflags`.
//!
//! What IEEE 754 leaves open is settled as the RISC-V unprivileged manual
//! does, chapter F: every NaN that comes out is the canonical one ("NaN
//! Generation and Propagation"), a result is tiny when it is so *after*
//! rounding ("Subnormal Arithmetic"), and an infinity times a zero is invalid
//! even when a quiet NaN is added to it.
//!
//! ```
//! use hartrace_hart::float::{self, F32, Flags, Round};
//!
//! let mut flags = Flags::default();
//! let third = float::div::<F32>(0x3f80_0000, 0x4040_0000, Round::Rne, &mut flags);
//! assert_eq!(third, 0x3eaa_aaab);
//! assert_eq!(flags, Flags::NX);
//! ```

mod additional;
mod arith;
mod compare;
mod convert;
mod fast;
mod format;
mod host;
mod multiply;
mod round;
#[cfg(test)]
mod tests;

pub use additional::{constant, round_to_integer, to_i32_modular};
pub use compare::{classify, eq, le, le_quiet, lt, lt_quiet, max, maximum, min, minimum};
pub use convert::{
    convert, from_i32, from_i64, from_u32, from_u64, to_i32, to_i64, to_u32, to_u64,
};
pub use format::{F16, F32, F64, Format, boxed, unboxed};
pub use round::{Flags, Round};

use host::Exact;

/// Takes what the host computed, if it could.
///
/// The host only rounds to nearest, ties to even: that is what programs use.
#[inline(always)]
fn host(round: Round, flags: &mut Flags, fast: impl FnOnce() -> Option<Exact>) -> Option<u64> {
    if round != Round::Rne {
        return None;
    }
    let exact = fast()?;
    *flags |= Flags(u8::from(exact.inexact) * Flags::NX.0);
    Some(exact.bits)
}

/// `a + b`: fadd.
#[must_use]
#[inline(always)]
pub fn add<F: Format>(a: u64, b: u64, round: Round, flags: &mut Flags) -> u64 {
    match host(round, flags, || F::host_add(a, b)) {
        Some(bits) => bits,
        None => arith::add::<F>(a, b, round, flags),
    }
}

/// `a - b`: fsub.
#[must_use]
#[inline]
pub fn sub<F: Format>(a: u64, b: u64, round: Round, flags: &mut Flags) -> u64 {
    // A NaN with its sign turned over is still the NaN it was.
    add::<F>(a, b ^ F::SIGN, round, flags)
}

/// `a * b`: fmul.
#[must_use]
#[inline(always)]
pub fn mul<F: Format>(a: u64, b: u64, round: Round, flags: &mut Flags) -> u64 {
    match host(round, flags, || F::host_mul(a, b)) {
        Some(bits) => bits,
        None => multiply::mul::<F>(a, b, round, flags),
    }
}

/// `a / b`: fdiv.
#[must_use]
#[inline]
pub fn div<F: Format>(a: u64, b: u64, round: Round, flags: &mut Flags) -> u64 {
    match host(round, flags, || F::host_div(a, b)) {
        Some(bits) => bits,
        None => arith::div::<F>(a, b, round, flags),
    }
}

/// The square root of `a`: fsqrt.
#[must_use]
#[inline]
pub fn sqrt<F: Format>(a: u64, round: Round, flags: &mut Flags) -> u64 {
    match host(round, flags, || F::host_sqrt(a)) {
        Some(bits) => bits,
        None => arith::sqrt::<F>(a, round, flags),
    }
}

/// `a * b + c`, rounded once: fmadd.
///
/// The other three are this one with signs turned over: fmsub that of `c`,
/// fnmsub that of `a`, fnmadd both.
#[must_use]
#[inline]
pub fn mul_add<F: Format>(a: u64, b: u64, c: u64, round: Round, flags: &mut Flags) -> u64 {
    match host(round, flags, || F::host_mul_add(a, b, c)) {
        Some(bits) => bits,
        None => multiply::mul_add::<F>(a, b, c, round, flags),
    }
}
