//! Conversions of floating-point numbers (unprivileged manual, 21.7, 22.5 and
//! chapter 24).

use hartrace_isa::Xlen;

use crate::asm::*;
use crate::bench::{Bench, WIDTHS, csr};
use crate::float::{BOX_H, NV, NX, OF, QNAN_S, SNAN_D, on, op, s, to_int};

#[test]
fn conversions_to_integers_saturate() {
    // 21.7, table 21.4: out of range and NaN give the nearest or the largest
    // value, and invalid; W forms sign-extend, the unsigned one as well.
    for xlen in WIDTHS {
        let mut b = on(xlen);
        let nan = f64::NAN;
        for (value, w, wu, flags_w, flags_wu) in [
            (nan, 0x7fff_ffff, u64::MAX, NV, NV),
            (f64::INFINITY, 0x7fff_ffff, u64::MAX, NV, NV),
            (f64::NEG_INFINITY, 0xffff_ffff_8000_0000, 0, NV, NV),
            (3e9, 0x7fff_ffff, 0xffff_ffff_b2d0_5e00, NV, 0),
            (-1.0, u64::MAX, 0, 0, NV),
            (-0.5, 0, 0, NX, NX),
            (2.5, 2, 2, NX, NX),
            (4294967295.5, 0x7fff_ffff, u64::MAX, NV, NX),
        ] {
            let bits = value.to_bits();
            assert_eq!(
                to_int(&mut b, fcvt_w_d(RTZ, A0, 1), bits),
                (xlen.wrap(w), flags_w)
            );
            let unsigned = to_int(&mut b, fcvt_wu_d(RTZ, A0, 1), bits);
            assert_eq!(unsigned, (xlen.wrap(wu), flags_wu), "{value}");
        }
    }
    let mut b = on(Xlen::Rv64);
    for (value, l, lu, flags_l, flags_lu) in [
        (f64::NAN, i64::MAX as u64, u64::MAX, NV, NV),
        (-1e300, i64::MIN as u64, 0, NV, NV),
        (1e19, i64::MAX as u64, 10_000_000_000_000_000_000, NV, 0),
        (-1.0, u64::MAX, 0, 0, NV),
        (1e300, i64::MAX as u64, u64::MAX, NV, NV),
    ] {
        assert_eq!(
            to_int(&mut b, fcvt_l_d(RNE, A0, 1), value.to_bits()),
            (l, flags_l)
        );
        assert_eq!(
            to_int(&mut b, fcvt_lu_d(RNE, A0, 1), value.to_bits()),
            (lu, flags_lu)
        );
    }
    assert!(on(Xlen::Rv32).is_illegal(fcvt_l_d(RNE, A0, 1)));
}

#[test]
fn conversions_from_integers_round() {
    // 21.7; the W forms read the low half.
    let mut b = on(Xlen::Rv64);
    b.set_x(A1, 0xffff_ffff_8000_0001);
    let int = |b: &mut Bench, word: u32| {
        b.set_csr(csr::FFLAGS, 0);
        b.one(word);
        (b.f(3), b.csr(csr::FFLAGS))
    };
    assert_eq!(
        int(&mut b, fcvt_d_w(RNE, 3, A1)),
        ((-2_147_483_647f64).to_bits(), 0)
    );
    assert_eq!(
        int(&mut b, fcvt_d_wu(RNE, 3, A1)),
        (2_147_483_649f64.to_bits(), 0)
    );
    assert_eq!(int(&mut b, fcvt_s_w(RNE, 3, A1)), (s(-2_147_483_648.0), NX));
    assert_eq!(int(&mut b, fcvt_s_w(RUP, 3, A1)), (s(-2_147_483_520.0), NX));
    b.set_x(A1, u64::MAX);
    assert_eq!(
        int(&mut b, fcvt_d_lu(RNE, 3, A1)),
        (18446744073709551616f64.to_bits(), NX)
    );
    assert_eq!(
        int(&mut b, fcvt_d_lu(RTZ, 3, A1)),
        (0x43ef_ffff_ffff_ffff, NX)
    );
    assert_eq!(int(&mut b, fcvt_s_l(RNE, 3, A1)), (s(-1.0), 0));
}

#[test]
fn conversions_between_formats_box_and_round() {
    // 22.5, 24.
    let mut b = on(Xlen::Rv64);
    let third = 1f64 / 3.0;
    assert_eq!(
        op(&mut b, fcvt_s_d(RNE, 3, 1), third.to_bits(), 0),
        (s(third as f32), NX)
    );
    let widened = f64::from(third as f32).to_bits();
    assert_eq!(
        op(&mut b, fcvt_d_s(RNE, 3, 1), s(third as f32), 0),
        (widened, 0)
    );
    assert_eq!(op(&mut b, fcvt_s_d(RNE, 3, 1), SNAN_D, 0), (QNAN_S, NV));
    assert_eq!(
        op(&mut b, fcvt_s_d(RNE, 3, 1), 1e300f64.to_bits(), 0),
        (s(f32::INFINITY), OF | NX)
    );
    assert_eq!(
        op(&mut b, fcvt_h_s(RNE, 3, 1), s(65504.0), 0),
        (BOX_H | 0x7bff, 0)
    );
    assert_eq!(
        op(&mut b, fcvt_h_s(RNE, 3, 1), s(65536.0), 0),
        (BOX_H | 0x7c00, OF | NX)
    );
    assert_eq!(
        op(&mut b, fcvt_s_h(RNE, 3, 1), BOX_H | 0x0001, 0),
        (s(1.0 / 16_777_216.0), 0)
    );
}
