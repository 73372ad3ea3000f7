//! What the host computes against the same in integers, flags included; and
//! rules that tie the rounding modes to each other.

use super::super::*;
use super::{ROUNDS, for_operands};

macro_rules! paths {
    ($public:path, $soft:path, $($operand:expr),+) => {
        let (mut fast, mut slow) = (Flags::default(), Flags::default());
        let left = $public($($operand,)+ Round::Rne, &mut fast);
        let right = $soft($($operand,)+ Round::Rne, &mut slow);
        assert_eq!((left, fast), (right, slow), "{} {:x?}", stringify!($public), [$($operand),+]);
    };
}

fn both_paths<F: Format>(seed: u64) {
    for_operands::<F>(seed, 5_000_000, |[a, b, c]| {
        paths!(add::<F>, arith::add::<F>, a, b);
        paths!(mul::<F>, multiply::mul::<F>, a, b);
        paths!(div::<F>, arith::div::<F>, a, b);
        paths!(sqrt::<F>, arith::sqrt::<F>, a);
        paths!(mul_add::<F>, multiply::mul_add::<F>, a, b, c);
        paths!(mul_add::<F>, multiply::mul_add::<F>, a, b, c ^ F::SIGN);
        paths!(convert::<F, F32>, convert::convert_any::<F, F32>, a);
        paths!(convert::<F, F64>, convert::convert_any::<F, F64>, a);
    });
}

#[test]
fn singles_either_way() {
    both_paths::<F32>(5);
}

#[test]
fn doubles_either_way() {
    both_paths::<F64>(6);
}

/// Down and up enclose the result and are neighbours, or all five agree;
/// every mode tells the same of exactness.
fn modes<F: Format>(seed: u64) {
    let check = |operation: &dyn Fn(Round, &mut Flags) -> u64| {
        let outcome = ROUNDS.map(|round| {
            let mut flags = Flags::default();
            (operation(round, &mut flags), flags)
        });
        let [nearest, zero, down, up, away] = outcome;
        let inexact = nearest.1.0 & Flags::NX.0;
        assert!(outcome.iter().all(|o| o.1.0 & Flags::NX.0 == inexact));
        if inexact == 0 {
            // The sign of a zero that is a difference depends on the mode.
            assert!(
                outcome
                    .iter()
                    .all(|o| (o.0 | nearest.0) & (F::SIGN - 1) == nearest.0 & (F::SIGN - 1))
            );
            return;
        }
        assert!(lt::<F>(down.0, up.0, &mut Flags::default()) || down.0 & up.0 & F::SIGN == 0);
        assert!([down.0, up.0].contains(&nearest.0) && [down.0, up.0].contains(&away.0));
        let negative = up.0 & F::SIGN != 0;
        assert_eq!(zero.0, if negative { up.0 } else { down.0 });
        assert_eq!((down.0 & !F::SIGN).abs_diff(up.0 & !F::SIGN), 1);
    };
    for_operands::<F>(seed, 400_000, |[a, b, c]| {
        check(&|r, f| add::<F>(a, b, r, f));
        check(&|r, f| mul::<F>(a, b, r, f));
        check(&|r, f| div::<F>(a, b, r, f));
        check(&|r, f| sqrt::<F>(a, r, f));
        check(&|r, f| mul_add::<F>(a, b, c, r, f));
    });
}

#[test]
fn modes_agree() {
    modes::<F16>(7);
    modes::<F32>(8);
    modes::<F64>(9);
}
