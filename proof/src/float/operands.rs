//! Operands for corner cases: random bits alone hardly ever cancel, tie, or end
//! near the smallest and the largest numbers.

use hartrace_hart::float::{self, Flags, Format, Round};

use super::{Kind, Operands};
use crate::generate::Random;

/// Operands for an operation; those it does not use are 0.
pub(super) fn draw<F: Format>(kind: Kind, name: &str, random: &mut Random) -> Operands {
    let a = one::<F>(random);
    let (b, c) = (one::<F>(random), one::<F>(random));
    let only = |a| Operands { a, b: 0, c: 0 };
    match kind {
        Kind::One => only(a),
        Kind::Integer => only(integer(random, name)),
        Kind::ToInteger => only(near_integer::<F>(a, random)),
        Kind::Root => only(near_square::<F>(a, random)),
        Kind::Sum => Operands {
            a,
            b: related::<F>(a, b, random),
            c: 0,
        },
        Kind::Product => Operands {
            a,
            b: edge::<F>(a, b, true, random),
            c: 0,
        },
        Kind::Quotient => quotient::<F>(a, b, random),
        Kind::Fused => fused::<F>(a, b, c, random),
    }
}

/// A bit pattern of the format: anything, a corner, or a pattern of few
/// changes under any exponent.
fn one<F: Format>(random: &mut Random) -> u64 {
    let sign = random.draw() & F::SIGN;
    match random.below(8) {
        0 => random.draw() & F::MASK,
        1 | 2 => sign | corner::<F>(random),
        3 | 4 => sign | exponent::<F>(random) << F::FRACTION | sparse::<F>(random),
        _ => sign | exponent::<F>(random) << F::FRACTION | random.draw() & F::FRACTION_MASK,
    }
}

/// An exponent field: any, in the middle, or at either end.
fn exponent<F: Format>(random: &mut Random) -> u64 {
    let top = F::TOP as u64;
    match random.below(8) {
        0 => random.below(4),
        1 => top - random.below(4),
        2 | 3 => random.below(top + 1),
        _ => (top / 2 + random.below(70)).saturating_sub(35).min(top),
    }
}

/// A fraction of long runs of equal bits.
fn sparse<F: Format>(random: &mut Random) -> u64 {
    let bit = |random: &mut Random| 1u64 << random.below(u64::from(F::FRACTION));
    let pattern = match random.below(4) {
        0 => bit(random),
        1 => bit(random) | bit(random),
        2 => bit(random).wrapping_sub(1),
        _ => bit(random).wrapping_sub(bit(random)),
    };
    pattern & F::FRACTION_MASK
}

/// Zero, the ends of the subnormal and the normal numbers, one and its
/// neighbours, infinity and NaNs, all of them positive.
fn corner<F: Format>(random: &mut Random) -> u64 {
    let one = (F::BIAS as u64) << F::FRACTION;
    let least = 1 << F::FRACTION;
    random.pick(&[
        0,
        0,
        1,
        2,
        3,
        F::QUIET,
        least - 1,
        least,
        least + 1,
        2 * least,
        one - 1,
        one,
        one + 1,
        one + least,
        one - least,
        one | F::QUIET,
        F::INFINITY - 1,
        F::INFINITY - 2,
        F::INFINITY - least,
        F::INFINITY,
        F::INFINITY,
        F::INFINITY | 1,
        F::NAN - 1,
        F::NAN,
        F::NAN | 1,
        F::INFINITY | F::FRACTION_MASK,
    ])
}

/// Moves a number by a few units.
fn nudged<F: Format>(bits: u64, random: &mut Random) -> u64 {
    bits.wrapping_add(random.below(7)).wrapping_sub(3) & F::MASK
}

/// An operand of a sum: independent of the other, near it, or with an
/// exponent that makes the two overlap.
fn related<F: Format>(a: u64, b: u64, random: &mut Random) -> u64 {
    let sign = random.draw() & F::SIGN;
    match random.below(4) {
        0 => b,
        1 => nudged::<F>(a, random) ^ sign,
        _ => {
            let reach = u64::from(F::FRACTION) + 3;
            let field = (a & F::INFINITY) >> F::FRACTION;
            let field = (field + random.below(2 * reach)).saturating_sub(reach);
            let field = field.min(F::TOP as u64 - 1);
            sign | field << F::FRACTION | b & F::FRACTION_MASK
        }
    }
}

/// An operand that takes a product (or a quotient) to the lower or the upper
/// end of the format, about half of the time.
fn edge<F: Format>(a: u64, b: u64, product: bool, random: &mut Random) -> u64 {
    if random.chance(500) {
        return b;
    }
    let reach = i64::from(F::FRACTION) + 4;
    let (bias, top) = (i64::from(F::BIAS), i64::from(F::TOP));
    let target = match random.below(3) {
        0 => top - random.below(4) as i64,
        1 => random.below(4) as i64 - 1,
        _ => 3 - random.below(reach as u64) as i64,
    };
    let own = ((a & F::INFINITY) >> F::FRACTION) as i64;
    let field = if product {
        target - own + bias
    } else {
        own - target + bias
    };
    let field = field.clamp(0, top - 1) as u64;
    b & !F::INFINITY | field << F::FRACTION
}

/// Independent operands, ones that end near the ends of the format, or ones
/// whose quotient is exact or nearly so.
fn quotient<F: Format>(a: u64, b: u64, random: &mut Random) -> Operands {
    if random.chance(700) {
        let b = edge::<F>(a, b, false, random);
        return Operands { a, b, c: 0 };
    }
    let product = float::mul::<F>(a, b, Round::Rne, &mut Flags::default());
    let a = if random.chance(500) {
        product
    } else {
        nudged::<F>(product, random)
    };
    Operands { a, b, c: 0 }
}

/// A number near the product of the other two, so that they cancel; near the
/// ends of the format as well.
fn fused<F: Format>(a: u64, b: u64, c: u64, random: &mut Random) -> Operands {
    let b = edge::<F>(a, b, true, random);
    let product = float::mul::<F>(a, b, Round::Rtz, &mut Flags::default());
    let c = match random.below(4) {
        0 => c,
        1 => nudged::<F>(product, random) ^ F::SIGN,
        _ => related::<F>(product, c, random),
    };
    Operands { a, b, c }
}

fn near_square<F: Format>(a: u64, random: &mut Random) -> u64 {
    // One negative operand in eight is enough.
    let a = if random.chance(875) { a & !F::SIGN } else { a };
    if random.chance(600) {
        return a;
    }
    // Half of the precision, so that the square is exact.
    let short = a >> (F::FRACTION / 2 + 1) << (F::FRACTION / 2 + 1);
    let square = float::mul::<F>(short, short, Round::Rne, &mut Flags::default());
    if random.chance(500) {
        square
    } else {
        nudged::<F>(square, random)
    }
}

/// An integer of any length, or with long runs of equal bits.
fn integer(random: &mut Random, name: &str) -> u64 {
    let value = match random.below(4) {
        0 => random.draw(),
        1 => (1u64 << random.below(64)).wrapping_sub(1 << random.below(64)),
        2 => (1u64 << random.below(64))
            .wrapping_add(random.below(5))
            .wrapping_sub(2),
        _ => random.draw() >> random.below(64),
    };
    let value = if random.chance(300) {
        value.wrapping_neg()
    } else {
        value
    };
    if name.ends_with("32") {
        value & 0xffff_ffff
    } else {
        value
    }
}

/// A number with the integers of 32 or 64 bits within reach, or halfway
/// between two of them.
fn near_integer<F: Format>(a: u64, random: &mut Random) -> u64 {
    if random.chance(400) {
        return a;
    }
    if random.chance(300) {
        let value = integer(random, "");
        let whole = float::from_i64::<F>(value as i64, Round::Rne, &mut Flags::default());
        return nudged::<F>(whole, random);
    }
    let field = F::BIAS as u64 - 3 + random.below(69);
    let field = field.min(F::TOP as u64 - 1);
    let fraction = if random.chance(500) {
        sparse::<F>(random)
    } else {
        a & F::FRACTION_MASK
    };
    a & F::SIGN | field << F::FRACTION | fraction
}
