//! Every operation to nearest even against the host's own, values only.

use super::super::*;
use hartrace_testkit::Random;

use super::{for_operands, times};

/// NaNs of the host may have any sign and payload. Told by their bits, since
/// LLVM takes one NaN for another: "this NaN if the operand is negative, else
/// its square root" becomes the square root alone.
fn canonical32(value: f32) -> u64 {
    let bits = u64::from(value.to_bits());
    if bits & !F32::SIGN > F32::INFINITY {
        F32::NAN
    } else {
        bits
    }
}

fn canonical64(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits & !F64::SIGN > F64::INFINITY {
        F64::NAN
    } else {
        bits
    }
}

/// Both ways to compute, the host's and that in integers, must agree with
/// what is expected.
macro_rules! same {
    ($expected:expr, $public:path, $soft:path, $($operand:expr),+) => {
        let mut flags = Flags::default();
        let expected = $expected;
        let ours = $public($($operand,)+ Round::Rne, &mut flags);
        assert_eq!(ours, expected, "{} {:x?}", stringify!($public), [$($operand),+]);
        let ours = $soft($($operand,)+ Round::Rne, &mut flags);
        assert_eq!(ours, expected, "{} {:x?}", stringify!($soft), [$($operand),+]);
    };
}

#[test]
fn singles() {
    for_operands::<F32>(1, 2_000_000, |[a, b, c]| {
        let [x, y, z] = [a, b, c].map(|bits| f32::from_bits(bits as u32));
        same!(canonical32(x + y), add::<F32>, arith::add::<F32>, a, b);
        same!(canonical32(x * y), mul::<F32>, multiply::mul::<F32>, a, b);
        same!(canonical32(x / y), div::<F32>, arith::div::<F32>, a, b);
        same!(canonical32(x.sqrt()), sqrt::<F32>, arith::sqrt::<F32>, a);
        let fused = canonical32(x.mul_add(y, z));
        same!(fused, mul_add::<F32>, multiply::mul_add::<F32>, a, b, c);
        let mut flags = Flags::default();
        assert_eq!(sub::<F32>(a, b, Round::Rne, &mut flags), canonical32(x - y));
        assert_eq!(eq::<F32>(a, b, &mut flags), x == y);
        assert_eq!(lt::<F32>(a, b, &mut flags), x < y);
        assert_eq!(le::<F32>(a, b, &mut flags), x <= y);
        let wide = convert::<F32, F64>(a, Round::Rne, &mut flags);
        assert_eq!(wide, canonical64(f64::from(x)));
    });
}

#[test]
fn doubles() {
    for_operands::<F64>(2, 2_000_000, |[a, b, c]| {
        let [x, y, z] = [a, b, c].map(f64::from_bits);
        same!(canonical64(x + y), add::<F64>, arith::add::<F64>, a, b);
        same!(canonical64(x * y), mul::<F64>, multiply::mul::<F64>, a, b);
        same!(canonical64(x / y), div::<F64>, arith::div::<F64>, a, b);
        same!(canonical64(x.sqrt()), sqrt::<F64>, arith::sqrt::<F64>, a);
        let fused = canonical64(x.mul_add(y, z));
        same!(fused, mul_add::<F64>, multiply::mul_add::<F64>, a, b, c);
        let mut flags = Flags::default();
        assert_eq!(sub::<F64>(a, b, Round::Rne, &mut flags), canonical64(x - y));
        assert_eq!(eq::<F64>(a, b, &mut flags), x == y);
        assert_eq!(lt::<F64>(a, b, &mut flags), x < y);
        assert_eq!(le::<F64>(a, b, &mut flags), x <= y);
        let narrow = canonical32(x as f32);
        same!(
            narrow,
            convert::<F64, F32>,
            convert::convert_any::<F64, F32>,
            a
        );
    });
}

/// The host cuts off and saturates as RISC-V does, but for a NaN.
#[test]
fn to_integers() {
    for_operands::<F64>(3, 1_000_000, |[a, b, _]| {
        let mut flags = Flags::default();
        let f = &mut flags;
        let x = f64::from_bits(a);
        if !x.is_nan() {
            assert_eq!(to_i32::<F64>(a, Round::Rtz, f), x as i32, "{x}");
            assert_eq!(to_u32::<F64>(a, Round::Rtz, f), x as u32, "{x}");
            assert_eq!(to_i64::<F64>(a, Round::Rtz, f), x as i64, "{x}");
            assert_eq!(to_u64::<F64>(a, Round::Rtz, f), x as u64, "{x}");
            let even = x.round_ties_even();
            assert_eq!(to_i32::<F64>(a, Round::Rne, f), even as i32, "{x}");
            assert_eq!(to_u64::<F64>(a, Round::Rne, f), even as u64, "{x}");
            assert_eq!(to_i64::<F64>(a, Round::Rdn, f), x.floor() as i64, "{x}");
            assert_eq!(to_u32::<F64>(a, Round::Rup, f), x.ceil() as u32, "{x}");
            assert_eq!(to_i64::<F64>(a, Round::Rmm, f), x.round() as i64, "{x}");
        }
        let y = f32::from_bits(b as u32);
        if !y.is_nan() {
            let b = b & F32::MASK;
            assert_eq!(to_i32::<F32>(b, Round::Rtz, f), y as i32, "{y}");
            assert_eq!(to_u64::<F32>(b, Round::Rtz, f), y as u64, "{y}");
            assert_eq!(to_i64::<F32>(b, Round::Rup, f), y.ceil() as i64, "{y}");
            assert_eq!(to_u32::<F32>(b, Round::Rmm, f), y.round() as u32, "{y}");
        }
    });
}

#[test]
fn from_integers() {
    let mut random = Random::new(4);
    let near = (0..64).flat_map(|n| (-2..=2).map(move |d| (1u64 << n).wrapping_add_signed(d)));
    let drawn = (0..times(1_000_000)).map(|_| random.draw() >> random.below(64));
    for value in near.chain(drawn).flat_map(|v| [v, v.wrapping_neg()]) {
        let mut flags = Flags::default();
        let (f, r) = (&mut flags, Round::Rne);
        let (signed, word, int) = (value as i64, value as u32, value as i32);
        assert_eq!(from_u64::<F64>(value, r, f), (value as f64).to_bits());
        assert_eq!(from_i64::<F64>(signed, r, f), (signed as f64).to_bits());
        assert_eq!(from_u32::<F64>(word, r, f), f64::from(word).to_bits());
        assert_eq!(from_i32::<F64>(int, r, f), f64::from(int).to_bits());
        assert_eq!(from_u64::<F32>(value, r, f), canonical32(value as f32));
        assert_eq!(from_i64::<F32>(signed, r, f), canonical32(signed as f32));
        assert_eq!(from_u32::<F32>(word, r, f), canonical32(word as f32));
        assert_eq!(from_i32::<F32>(int, r, f), canonical32(int as f32));
    }
}
