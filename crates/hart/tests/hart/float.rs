//! Floating point in the hart (unprivileged manual, chapters 21, 22 and 24).
//! Arithmetic itself is compared with the host's; what the manual settles is
//! written out.

use hartrace_isa::Xlen;

use crate::asm::*;
use crate::bench::{Bench, DATA, WIDTHS, csr, csr_writes, status};

pub(crate) const NX: u64 = 1;
const UF: u64 = 2;
pub(crate) const OF: u64 = 4;
const DZ: u64 = 8;
pub(crate) const NV: u64 = 16;
pub(crate) const BOX: u64 = 0xffff_ffff_0000_0000;
pub(crate) const BOX_H: u64 = 0xffff_ffff_ffff_0000;
pub(crate) const QNAN_S: u64 = BOX | 0x7fc0_0000;
const QNAN_D: u64 = 0x7ff8_0000_0000_0000;
pub(crate) const SNAN_D: u64 = 0x7ff0_0000_0000_0001;

pub(crate) fn on(xlen: Xlen) -> Bench {
    let mut b = Bench::of(xlen);
    b.status(status::FS);
    b
}

pub(crate) fn s(value: f32) -> u64 {
    BOX | u64::from(value.to_bits())
}

/// f3 of an instruction on f1 and f2, and the flags it raises.
pub(crate) fn op(b: &mut Bench, word: u32, f1: u64, f2: u64) -> (u64, u64) {
    b.set_f(1, f1);
    b.set_f(2, f2);
    b.set_csr(csr::FFLAGS, 0);
    b.one(word);
    (b.f(3), b.csr(csr::FFLAGS))
}

/// The same for an instruction that writes a0.
pub(crate) fn to_int(b: &mut Bench, word: u32, f1: u64) -> (u64, u64) {
    op(b, word, f1, 0);
    (b.x(A0), b.csr(csr::FFLAGS))
}

#[test]
fn narrow_values_are_boxed() {
    // 22.2, 24: the bits above are ones after every narrow result.
    for xlen in WIDTHS {
        let mut b = on(xlen);
        b.set_x(A1, DATA);
        b.set_mem(DATA, 8, 0x1122_3344_4048_0000);
        b.one(flw(3, 0, A1));
        assert_eq!(b.f(3), BOX | 0x4048_0000);
        b.one(flh(3, 2, A1));
        assert_eq!(b.f(3), BOX_H | 0x4048);
        b.one(fld(3, 0, A1));
        assert_eq!(b.f(3), 0x1122_3344_4048_0000);
        b.set_x(A2, 0x3f80_0000);
        b.one(fmv_w_x(3, A2));
        assert_eq!(b.f(3), s(1.0));
        b.one(fmv_h_x(3, A2));
        assert_eq!(b.f(3), BOX_H);
        assert_eq!(op(&mut b, fadd_s(RNE, 3, 1, 2), s(1.0), s(2.0)).0, s(3.0));
    }
}

#[test]
fn what_is_not_boxed_is_a_nan() {
    // 22.2: "the input is treated as a canonical NaN".
    let mut b = on(Xlen::Rv64);
    let loose = 0xffff_fffe_3f80_0000;
    assert_eq!(op(&mut b, fadd_s(RNE, 3, 1, 2), loose, s(1.0)), (QNAN_S, 0));
    assert_eq!(op(&mut b, fsgnj_s(3, 1, 1), loose, 0).0, QNAN_S);
    assert_eq!(to_int(&mut b, fclass_s(A0, 1), loose).0, 1 << 9);
    assert_eq!(to_int(&mut b, fclass_h(A0, 1), BOX | 0x3c00).0, 1 << 9);
    assert_eq!(op(&mut b, fmin_s(3, 1, 2), loose, s(1.0)), (s(1.0), 0));
    // Moves and stores take the bits as they are.
    assert_eq!(to_int(&mut b, fmv_x_w(A0, 1), loose).0, 0x3f80_0000);
    b.set_x(A1, DATA);
    b.set_f(1, loose);
    b.one(fsw(1, 0, A1));
    assert_eq!(b.mem(DATA, 4), 0x3f80_0000);
}

#[test]
fn moves_to_integers_extend_the_sign() {
    // 21.7, 22.6, 24: the upper bits are copies of the sign.
    for xlen in WIDTHS {
        let mut b = on(xlen);
        let w = to_int(&mut b, fmv_x_w(A0, 1), s(-0.0)).0;
        assert_eq!(w, xlen.wrap(0xffff_ffff_8000_0000));
        let h = to_int(&mut b, fmv_x_h(A0, 1), BOX_H | 0x8001).0;
        assert_eq!(h, xlen.wrap(0xffff_ffff_ffff_8001));
    }
    assert!(
        on(Xlen::Rv32).is_illegal(fmv_x_d(A0, 1)),
        "no fmv.x.d on RV32"
    );
}

#[test]
fn the_rounding_mode_is_the_instructions_or_frm() {
    // 21.2, table 21.1: one and a half ulp and its negative, five ways.
    let mut b = on(Xlen::Rv64);
    let (one, half_ulp) = (1.0f32, f32::EPSILON / 2.0);
    let up = one + f32::EPSILON;
    for (rm, plus, minus) in [
        (RNE, one, -one),
        (RTZ, one, -one),
        (RDN, one, -up),
        (RUP, up, -one),
        (RMM, up, -up),
    ] {
        let word = fadd_s(rm, 3, 1, 2);
        assert_eq!(op(&mut b, word, s(one), s(half_ulp)), (s(plus), NX), "{rm}");
        assert_eq!(
            op(&mut b, word, s(-one), s(-half_ulp)),
            (s(minus), NX),
            "{rm}"
        );
        b.set_csr(csr::FRM, rm.into());
        let word = fadd_s(DYN, 3, 1, 2);
        assert_eq!(
            op(&mut b, word, s(one), s(half_ulp)),
            (s(plus), NX),
            "dyn {rm}"
        );
        let ignored = fadd_s(RUP, 3, 1, 2);
        assert_eq!(op(&mut b, ignored, s(one), s(half_ulp)), (s(up), NX));
    }
}

#[test]
fn invalid_rounding_modes_are_illegal() {
    // 21.2: 5 and 6 in the instruction, 5 to 7 in frm when it is used.
    for xlen in WIDTHS {
        let mut b = on(xlen);
        for rm in [5, 6] {
            assert!(b.is_illegal(fadd_s(rm, 3, 1, 2)));
            assert!(b.is_illegal(fsqrt_d(rm, 3, 1)));
            assert!(b.is_illegal(fcvt_w_s(rm, A0, 1)));
        }
        for frm in [5, 6, 7] {
            b.set_csr(csr::FRM, frm);
            assert!(b.is_illegal(fadd_d(DYN, 3, 1, 2)));
            assert!(b.is_illegal(fmadd_d(3, 1, 2, 4)));
            assert!(!b.is_illegal(fadd_d(RNE, 3, 1, 2)), "static");
            assert!(!b.is_illegal(fmin_s(3, 1, 2)), "rounds nothing");
            assert!(!b.is_illegal(fsgnj_d(3, 1, 2)));
        }
    }
}

#[test]
fn flags_accumulate_until_they_are_cleared() {
    // 21.2.
    let mut b = on(Xlen::Rv64);
    let numbers = [
        (1, 1.0f64),
        (2, 0.0),
        (4, 3.0),
        (5, f64::MAX),
        (6, f64::MIN_POSITIVE),
    ];
    for (f, value) in numbers {
        b.set_f(f, value.to_bits());
    }
    for (word, flags) in [
        (fdiv_d(RNE, 3, 1, 4), NX),
        (fdiv_d(RNE, 3, 1, 2), NX | DZ),
        (fdiv_d(RNE, 3, 2, 2), NX | DZ | NV),
        (fadd_d(RNE, 3, 5, 5), NX | DZ | NV | OF),
        (fdiv_d(RNE, 3, 6, 4), NX | DZ | NV | OF | UF),
        (fadd_d(RNE, 3, 1, 1), 31),
    ] {
        b.one(word);
        assert_eq!(b.csr(csr::FFLAGS), flags);
    }
    b.one(csrw(csr::FFLAGS, ZERO));
    assert_eq!(b.csr(csr::FFLAGS), 0);
}

#[test]
fn results_that_are_not_numbers_are_canonical() {
    // 21.3.
    let mut b = on(Xlen::Rv64);
    let payload = 0xfff8_0000_dead_beef;
    let one = 1f64.to_bits();
    assert_eq!(op(&mut b, fadd_d(RNE, 3, 1, 2), payload, one), (QNAN_D, 0));
    assert_eq!(op(&mut b, fmul_d(RNE, 3, 1, 2), SNAN_D, one), (QNAN_D, NV));
    let inf = f64::INFINITY.to_bits();
    assert_eq!(op(&mut b, fsub_d(RNE, 3, 1, 2), inf, inf), (QNAN_D, NV));
    assert_eq!(
        op(&mut b, fsqrt_d(RNE, 3, 1), (-1f64).to_bits(), 0),
        (QNAN_D, NV)
    );
    let minus_zero = (-0f64).to_bits();
    assert_eq!(
        op(&mut b, fsqrt_d(RNE, 3, 1), minus_zero, 0),
        (minus_zero, 0)
    );
    // 21.6: inf * 0 + qNaN is invalid.
    b.set_f(4, QNAN_D);
    assert_eq!(op(&mut b, fmadd_d(3, 1, 2, 4), inf, 0), (QNAN_D, NV));
}

#[test]
fn minimum_and_maximum_prefer_numbers_and_know_the_sign_of_zero() {
    // 21.6: minimumNumber and maximumNumber of IEEE 754-2019.
    let mut b = on(Xlen::Rv64);
    let (zero, minus, one) = (0f64.to_bits(), (-0f64).to_bits(), 1f64.to_bits());
    for (x, y) in [(zero, minus), (minus, zero)] {
        assert_eq!(op(&mut b, fmin_d(3, 1, 2), x, y), (minus, 0));
        assert_eq!(op(&mut b, fmax_d(3, 1, 2), x, y), (zero, 0));
    }
    for word in [fmin_d(3, 1, 2), fmax_d(3, 1, 2)] {
        assert_eq!(op(&mut b, word, QNAN_D, one), (one, 0));
        assert_eq!(op(&mut b, word, one, SNAN_D), (one, NV));
        assert_eq!(op(&mut b, word, QNAN_D, QNAN_D | 1), (QNAN_D, 0));
    }
}

#[test]
fn comparisons_differ_in_what_is_invalid() {
    // 21.8: feq is quiet, flt and fle signal on any NaN.
    let mut b = on(Xlen::Rv64);
    let one = 1f64.to_bits();
    for (word, x, y, result, flags) in [
        (feq_d(A0, 1, 2), one, one, 1, 0),
        (feq_d(A0, 1, 2), QNAN_D, QNAN_D, 0, 0),
        (feq_d(A0, 1, 2), SNAN_D, one, 0, NV),
        (flt_d(A0, 1, 2), QNAN_D, one, 0, NV),
        (flt_d(A0, 1, 2), 0, one, 1, 0),
        (feq_d(A0, 1, 2), 0, 1 << 63, 1, 0),
        (flt_d(A0, 1, 2), 1 << 63, 0, 0, 0),
    ] {
        op(&mut b, word, x, y);
        assert_eq!(
            (b.x(A0), b.csr(csr::FFLAGS)),
            (result, flags),
            "{x:#x} {y:#x}"
        );
    }
    op(&mut b, fle_s(A0, 1, 2), s(f32::NAN), s(1.0));
    assert_eq!((b.x(A0), b.csr(csr::FFLAGS)), (0, NV));
}

#[test]
fn classes_are_one_bit_each() {
    // 21.9, table 21.5.
    let mut b = on(Xlen::Rv64);
    let values = [
        f64::NEG_INFINITY.to_bits(),
        (-1f64).to_bits(),
        1 << 63 | 1,
        1 << 63,
        0,
        1,
        1f64.to_bits(),
        f64::INFINITY.to_bits(),
        SNAN_D,
        QNAN_D,
    ];
    for (bit, value) in values.into_iter().enumerate() {
        assert_eq!(to_int(&mut b, fclass_d(A0, 1), value), (1 << bit, 0));
    }
    assert_eq!(to_int(&mut b, fclass_s(A0, 1), BOX | 0x8000_0001).0, 1 << 2);
    assert_eq!(to_int(&mut b, fclass_h(A0, 1), BOX_H | 0x7c00).0, 1 << 7);
}

#[test]
fn signs_are_injected_into_nans_too() {
    // 21.7: no flags, no canonicalisation.
    let mut b = on(Xlen::Rv64);
    let (one, minus) = (1f64.to_bits(), (-1f64).to_bits());
    assert_eq!(op(&mut b, fsgnj_d(3, 1, 2), one, minus), (minus, 0));
    assert_eq!(op(&mut b, fsgnjn_d(3, 1, 2), one, minus), (one, 0));
    assert_eq!(op(&mut b, fsgnjx_d(3, 1, 2), minus, minus), (one, 0));
    assert_eq!(
        op(&mut b, fsgnjn_d(3, 1, 1), SNAN_D, 0),
        (SNAN_D | 1 << 63, 0)
    );
    assert_eq!(op(&mut b, fsgnjx_s(3, 1, 2), s(2.0), s(-0.0)), (s(-2.0), 0));
}

#[test]
fn arithmetic_is_that_of_ieee_754() {
    // 21.6, against the host's.
    let mut b = on(Xlen::Rv64);
    let values = [0.1, -2.5, 1e-310, 1e308, 3.0, -0.0, f64::EPSILON];
    for x in values {
        for y in values {
            let (xb, yb) = (x.to_bits(), y.to_bits());
            let nan = |v: f64| if v.is_nan() { QNAN_D } else { v.to_bits() };
            assert_eq!(op(&mut b, fadd_d(RNE, 3, 1, 2), xb, yb).0, nan(x + y));
            assert_eq!(op(&mut b, fsub_d(RNE, 3, 1, 2), xb, yb).0, nan(x - y));
            assert_eq!(op(&mut b, fmul_d(RNE, 3, 1, 2), xb, yb).0, nan(x * y));
            assert_eq!(op(&mut b, fdiv_d(RNE, 3, 1, 2), xb, yb).0, nan(x / y));
            b.set_f(4, yb);
            for (opcode, expected) in [
                (0x43, x.mul_add(y, y)),
                (0x47, x.mul_add(y, -y)),
                (0x4b, (-x).mul_add(y, y)),
                (0x4f, (-x).mul_add(y, -y)),
            ] {
                let word = fused(opcode, true, 3, 1, 2, 4);
                assert_eq!(
                    op(&mut b, word, xb, yb).0,
                    nan(expected),
                    "{opcode:#x} {x} {y}"
                );
            }
        }
        assert_eq!(
            op(&mut b, fsqrt_d(RNE, 3, 1), x.abs().to_bits(), 0).0,
            x.abs().sqrt().to_bits()
        );
    }
}

#[test]
fn state_becomes_dirty_with_registers_and_flags() {
    // Priv. 3.1.6.7.
    for xlen in WIDTHS {
        let sd = 1u64 << (xlen.bits() - 1);
        let dirty = |word: u32| {
            let mut b = Bench::of(xlen);
            b.status(status::FS_INITIAL);
            b.set_x(A1, DATA);
            b.set_f(1, s(1.0));
            b.set_f(2, s(f32::NAN));
            let effects = b.one(word);
            let now = b.csr(csr::MSTATUS);
            let told = csr_writes(&effects).contains(&(csr::MSTATUS, now));
            let is = now & (status::FS | sd) == status::FS | sd;
            assert_eq!(told, is, "{word:08x}");
            is
        };
        for word in [
            fadd_s(RNE, 3, 1, 1),
            flw(3, 0, A1),
            fmv_w_x(3, A1),
            fsgnj_s(3, 1, 1),
        ] {
            assert!(dirty(word), "{word:08x}");
        }
        assert!(dirty(flt_s(A0, 1, 2)), "a flag");
        for word in [
            fsw(1, 0, A1),
            feq_s(A0, 1, 1),
            fmv_x_w(A0, 1),
            fclass_s(A0, 1),
        ] {
            assert!(!dirty(word), "{word:08x}");
        }
    }
}

#[test]
fn f0_is_a_register_like_any_other() {
    // 21.1: unlike x0.
    let mut b = on(Xlen::Rv64);
    b.set_f(1, s(1.0));
    b.one(fadd_s(RNE, 0, 1, 1));
    assert_eq!(b.f(0), s(2.0));
    b.set_x(A1, DATA);
    b.set_mem(DATA, 8, 5);
    b.one(fld(0, 0, A1));
    assert_eq!(b.f(0), 5);
}
