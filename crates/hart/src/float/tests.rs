//! Against the host, against slow arithmetic of another kind, and against
//! results that were verified by hand.

mod half;
mod host;
mod paths;
mod vectors;

use hartrace_testkit::Random;

use super::{F16, F32, F64, Flags, Format, Round};

const ROUNDS: [Round; 5] = [Round::Rne, Round::Rtz, Round::Rdn, Round::Rup, Round::Rmm];

/// As many repetitions as a build without optimisation has time for.
const fn times(optimised: u32) -> u32 {
    if cfg!(debug_assertions) {
        optimised / 20
    } else {
        optimised
    }
}

/// Operands of a format.
trait RandomOperands {
    /// Any bits, a corner, or any fraction under an exponent near the middle.
    fn operand<F: Format>(&mut self) -> u64;
    fn exponent<F: Format>(&mut self) -> u64;
    /// Operands of which the second and third are often related to the rest,
    /// so that sums cancel and products end near the ends of the format.
    fn operands<F: Format>(&mut self) -> [u64; 3];
}

impl RandomOperands for Random {
    fn operand<F: Format>(&mut self) -> u64 {
        let sign = self.draw() & F::SIGN;
        let fraction = self.draw() & F::FRACTION_MASK;
        match self.below(8) {
            0 | 1 => self.draw() & F::MASK,
            2 => {
                let corners = corners::<F>();
                corners[self.below(corners.len() as u64) as usize]
            }
            3 => {
                // A few bits, so that results are exact or halfway.
                let kept = self.below(u64::from(F::FRACTION) + 1) as u32;
                let low = F::FRACTION_MASK >> kept;
                sign | self.exponent::<F>() << F::FRACTION | fraction & !low
            }
            _ => sign | self.exponent::<F>() << F::FRACTION | fraction,
        }
    }

    fn exponent<F: Format>(&mut self) -> u64 {
        let top = F::TOP as u64;
        match self.below(4) {
            0 => self.below(top + 1),
            1 => self.below(u64::from(F::FRACTION).min(top)),
            _ => F::BIAS as u64 - 12 + self.below(25),
        }
    }

    fn operands<F: Format>(&mut self) -> [u64; 3] {
        let a = self.operand::<F>();
        let mut b = self.operand::<F>();
        let mut c = self.operand::<F>();
        match self.below(4) {
            0 => b = (a.wrapping_add(self.below(5)).wrapping_sub(2) & F::MASK) ^ F::SIGN,
            1 => {
                let field = (a & F::INFINITY) >> F::FRACTION;
                let end = self.below(8) + F::TOP as u64 * self.below(2);
                let field = (end + F::BIAS as u64).saturating_sub(field);
                b = b & !F::INFINITY | field.min(F::TOP as u64 - 1) << F::FRACTION;
            }
            _ => {}
        }
        if self.below(2) == 0 {
            let product = super::mul::<F>(a, b, Round::Rtz, &mut Flags::default());
            let off = 1 << self.below(u64::from(F::FRACTION));
            c = product.wrapping_sub(self.below(off)) & F::MASK ^ F::SIGN;
        }
        [a, b, c]
    }
}

/// Zeros, the ends of the subnormal and the normal numbers, one and its
/// neighbours, halfway cases, powers of two, infinities and NaNs.
fn corners<F: Format>() -> Vec<u64> {
    let one = (F::BIAS as u64) << F::FRACTION;
    let least = 1 << F::FRACTION;
    let positive = [
        0,
        1,
        2,
        F::QUIET,
        least - 1,
        least,
        least + 1,
        2 * least,
        one - least,
        one - 1,
        one,
        one + 1,
        one | F::QUIET,
        one + least,
        one + least * u64::from(F::FRACTION),
        one + least * u64::from(F::FRACTION + 1),
        F::INFINITY - least,
        F::INFINITY - 1,
        F::INFINITY,
        F::INFINITY | 1,
        F::NAN,
        F::NAN | 1,
    ];
    let both = positive.map(|bits| [bits, bits | F::SIGN]);
    both.into_iter().flatten().collect()
}

/// Random operands and every combination of corners.
fn for_operands<F: Format>(seed: u64, count: u32, mut check: impl FnMut([u64; 3])) {
    let corners = corners::<F>();
    for &a in &corners {
        for &b in &corners {
            for &c in corners
                .iter()
                .step_by(if cfg!(debug_assertions) { 5 } else { 1 })
            {
                check([a, b, c]);
            }
        }
    }
    let mut random = Random::new(seed);
    for _ in 0..times(count) {
        check(random.operands::<F>());
    }
}

#[test]
fn boxes() {
    use super::{boxed, unboxed};
    assert_eq!(boxed::<F64>(5), 5);
    assert_eq!(unboxed::<F64>(5), 5);
    assert_eq!(boxed::<F32>(0x3f80_0000), 0xffff_ffff_3f80_0000);
    assert_eq!(unboxed::<F32>(0xffff_fffe_3f80_0000), F32::NAN);
    assert_eq!(unboxed::<F16>(0xffff_ffff_ffff_fc00), 0xfc00);
    assert_eq!(unboxed::<F16>(0xffff_ffff_fffe_fc00), 0x7e00);
}

#[test]
fn modes_by_number() {
    for (code, round) in ROUNDS.into_iter().enumerate() {
        assert_eq!(Round::from_code(code as u8), Some(round));
        assert_eq!(round as usize, code);
    }
    assert!((5..=255).all(|code| Round::from_code(code).is_none()));
}

#[test]
fn canonical_nans() {
    assert_eq!(F16::NAN, 0x7e00);
    assert_eq!(F32::NAN, 0x7fc0_0000);
    assert_eq!(F64::NAN, 0x7ff8_0000_0000_0000);
}
