//! Halves through doubles, rounded once by a function that looks for the
//! result among all halves.
//!
//! A double has more than twice the bits of a half and two more, so that
//! rounding to double first changes nothing in sums, products, quotients and
//! roots to nearest; the product and sum of three halves is exact but for
//! addends far below a half's last place.

use super::super::*;
use hartrace_testkit::Random;

use super::{for_operands, times};

/// The value of a half, from the definition.
fn value(bits: u64) -> f64 {
    let fraction = (bits & 0x3ff) as f64 / 1024.0;
    let magnitude = match bits >> 10 & 0x1f {
        0 => fraction * 2f64.powi(-14),
        31 if bits & 0x3ff == 0 => f64::INFINITY,
        31 => f64::NAN,
        field => (1.0 + fraction) * 2f64.powi(field as i32 - 15),
    };
    if bits & 0x8000 != 0 {
        -magnitude
    } else {
        magnitude
    }
}

/// The half nearest to a double, and whether it is another number.
fn nearest(value_wanted: f64, positive: &[f64]) -> (u64, bool) {
    if value_wanted.is_nan() {
        return (F16::NAN, false);
    }
    let sign = u64::from(value_wanted.is_sign_negative()) << 15;
    let wanted = value_wanted.abs();
    // The first half that is not below; infinity stands where the next number
    // would be.
    let above = positive.partition_point(|&half| half < wanted);
    let at = |index: usize| match index {
        0x7c00.. => 65536.0,
        _ => positive[index],
    };
    if wanted.is_infinite() || at(above) == wanted && above < 0x7c00 {
        return (sign | above.min(0x7c00) as u64, false);
    }
    let (low, high) = (wanted - at(above - 1), at(above) - wanted);
    let up = high < low || high == low && above % 2 == 0;
    (sign | (above as u64 - u64::from(!up)), true)
}

#[test]
fn halves() {
    let positive: Vec<f64> = (0..0x7c00).map(value).collect();
    for_operands::<F16>(10, 2_000_000, |[a, b, c]| {
        let [x, y, z] = [a, b, c].map(value);
        let check = |name: &str, wanted: f64, operation: &dyn Fn(&mut Flags) -> u64| {
            let mut flags = Flags::default();
            let ours = operation(&mut flags);
            let (expected, inexact) = nearest(wanted, &positive);
            assert_eq!(ours, expected, "{name} {a:x} {b:x} {c:x}");
            assert_eq!(
                flags.0 & Flags::NX.0 != 0,
                inexact,
                "{name} {a:x} {b:x} {c:x}"
            );
        };
        let r = Round::Rne;
        check("add", x + y, &|f| add::<F16>(a, b, r, f));
        check("sub", x - y, &|f| sub::<F16>(a, b, r, f));
        check("mul", x * y, &|f| mul::<F16>(a, b, r, f));
        check("div", x / y, &|f| div::<F16>(a, b, r, f));
        check("sqrt", x.sqrt(), &|f| sqrt::<F16>(a, r, f));
        let (product, sum) = (x * y, x * y + z);
        if sum - product == z && sum - z == product || !sum.is_finite() {
            check("mul_add", sum, &|f| mul_add::<F16>(a, b, c, r, f));
        }
    });
}

#[test]
fn conversions_of_all_halves() {
    let positive: Vec<f64> = (0..0x7c00).map(value).collect();
    let mut flags = Flags::default();
    for bits in 0..0x1_0000 {
        let x = value(bits);
        let wide = convert::<F16, F64>(bits, Round::Rup, &mut flags);
        let single = convert::<F16, F32>(bits, Round::Rdn, &mut flags);
        if x.is_nan() {
            assert_eq!((wide, single), (F64::NAN, F32::NAN));
            continue;
        }
        assert_eq!(wide, x.to_bits());
        assert_eq!(single, u64::from((x as f32).to_bits()));
        assert_eq!(convert::<F64, F16>(wide, Round::Rtz, &mut flags), bits);
        assert_eq!(convert::<F32, F16>(single, Round::Rmm, &mut flags), bits);
        assert_eq!(
            to_i32::<F16>(bits, Round::Rdn, &mut flags),
            x.floor() as i32
        );
    }
    let mut random = Random::new(11);
    for _ in 0..times(1_000_000) {
        // Around the halves: exponents from 2^-27 to 2^17.
        let field = 1023 - 27 + random.below(45);
        let bits = random.draw() & !F64::INFINITY | field << 52;
        let keep = u64::MAX << random.below(53);
        let (bits, mut flags) = (bits & keep, Flags::default());
        let ours = convert::<F64, F16>(bits, Round::Rne, &mut flags);
        let (expected, inexact) = nearest(f64::from_bits(bits), &positive);
        assert_eq!((ours, flags.0 & 1 != 0), (expected, inexact), "{bits:x}");
    }
}
