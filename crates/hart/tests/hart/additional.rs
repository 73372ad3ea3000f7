//! Zfa and Zimop, Zcmop (unprivileged manual).

use hartrace_isa::Xlen;

use crate::asm::*;
use crate::bench::{Bench, WIDTHS, csr, status};

fn bench(xlen: Xlen) -> Bench {
    let mut b = Bench::of(xlen);
    b.status(status::FS_INITIAL);
    b
}

/// Single, double and half precision: the field `fmt`, and how a number of it is boxed.
const FORMATS: [(u32, u64); 3] = [
    (0, 0xffff_ffff_0000_0000),
    (1, 0),
    (2, 0xffff_ffff_ffff_0000),
];

const NX: u64 = 1;
const NV: u64 = 16;

/// An R-type instruction of OP-FP.
fn fp(funct5: u32, fmt: u32, rs2: u32, rs1: u32, funct3: u32, rd: u32) -> u32 {
    r_type(0x53, funct3, funct5 << 2 | fmt, rd, rs1, rs2)
}

#[test]
fn fli_loads_constants() {
    // -1, the smallest normal number, 2^-16 ... and infinity and NaN at the end.
    let expected = [
        [0xbf80_0000, 0xbff0_0000_0000_0000, 0xbc00],
        [0x0080_0000, 0x0010_0000_0000_0000, 0x0400],
        [0x3780_0000, 0x3ef0_0000_0000_0000, 0x0100],
        [0x3eb0_0000 - 0x10_0000, 0x3fd4_0000_0000_0000, 0x3500],
        [0x3f80_0000, 0x3ff0_0000_0000_0000, 0x3c00],
        [0x4780_0000, 0x40f0_0000_0000_0000, 0x7c00],
        [0x7f80_0000, 0x7ff0_0000_0000_0000, 0x7c00],
        [0x7fc0_0000, 0x7ff8_0000_0000_0000, 0x7e00],
    ];
    let numbers = [0, 1, 2, 9, 16, 29, 30, 31];
    let mut b = bench(Xlen::Rv64);
    for (number, row) in numbers.into_iter().zip(expected) {
        for ((fmt, boxed), bits) in FORMATS.into_iter().zip(row) {
            b.one(fp(0x1e, fmt, 1, number, 0, 3));
            assert_eq!(b.f(3), boxed | bits, "{number} {fmt}");
        }
    }
    assert_eq!(b.csr(csr::FFLAGS), 0);
}

#[test]
fn fround_rounds_to_an_integer_of_the_same_format() {
    let of = f64::to_bits;
    let mut b = bench(Xlen::Rv64);
    for (value, rm, rounded, inexact) in [
        (2.5, 0, 2.0, true),
        (2.5, 1, 2.0, true),
        (2.5, 2, 2.0, true),
        (2.5, 3, 3.0, true),
        (2.5, 4, 3.0, true),
        (-0.3, 0, -0.0, true),
        (-0.3, 2, -1.0, true),
        (0.7, 0, 1.0, true),
        (1e300, 0, 1e300, false),
        (-7.0, 3, -7.0, false),
        (0.0, 3, 0.0, false),
        (f64::INFINITY, 3, f64::INFINITY, false),
        (4_503_599_627_370_495.5, 0, 4_503_599_627_370_496.0, true),
        (5e-324, 3, 1.0, true),
    ] {
        for (rs2, flags) in [(4, 0), (5, if inexact { NX } else { 0 })] {
            b.set_csr(csr::FFLAGS, 0);
            b.set_f(1, of(value));
            b.one(fp(0x08, 1, rs2, 1, rm, 2));
            assert_eq!(b.f(2), of(rounded), "{value} {rm}");
            assert_eq!(b.csr(csr::FFLAGS), flags, "{value} {rm}");
        }
    }
    // A signalling NaN is invalid, and the result the canonical NaN.
    b.set_f(1, 0x7ff0_0000_0000_0001);
    b.one(fp(0x08, 1, 4, 1, 0, 2));
    assert_eq!(
        (b.f(2), b.csr(csr::FFLAGS) & NV),
        (0x7ff8_0000_0000_0000, NV)
    );
    // Single and half precision.
    b.set_f(1, 0xffff_ffff_0000_0000 | u64::from(1.5f32.to_bits()));
    b.one(fp(0x08, 0, 4, 1, 0, 2));
    assert_eq!(b.f(2), 0xffff_ffff_0000_0000 | u64::from(2f32.to_bits()));
    b.set_f(1, 0xffff_ffff_ffff_3e00);
    b.one(fp(0x08, 2, 4, 1, 1, 2));
    assert_eq!(b.f(2), 0xffff_ffff_ffff_3c00, "1.5 in half precision");
    assert!(
        b.is_illegal(fp(0x08, 1, 4, 1, 5, 2)),
        "a reserved rounding mode"
    );
}

#[test]
fn fminm_and_fmaxm_give_nan_if_there_is_one() {
    let mut b = bench(Xlen::Rv64);
    let (nan, signalling) = (0x7ff8_0000_0000_0001, 0x7ff0_0000_0000_0001);
    for (a, c, funct3, result, flags) in [
        (1.0f64.to_bits(), 2.0f64.to_bits(), 2, 1.0f64.to_bits(), 0),
        (1.0f64.to_bits(), 2.0f64.to_bits(), 3, 2.0f64.to_bits(), 0),
        ((-0.0f64).to_bits(), 0, 2, (-0.0f64).to_bits(), 0),
        ((-0.0f64).to_bits(), 0, 3, 0, 0),
        (nan, 0, 2, 0x7ff8_0000_0000_0000, 0),
        (0, signalling, 3, 0x7ff8_0000_0000_0000, NV),
    ] {
        b.set_csr(csr::FFLAGS, 0);
        b.set_f(1, a);
        b.set_f(2, c);
        b.one(fp(0x05, 1, 2, 1, funct3, 3));
        assert_eq!(
            (b.f(3), b.csr(csr::FFLAGS)),
            (result, flags),
            "{a:#x} {c:#x}"
        );
    }
}

#[test]
fn quiet_comparisons_mind_signalling_nans_only() {
    let mut b = bench(Xlen::Rv64);
    let one = 1.0f64.to_bits();
    for (a, c, less, equal, flags) in [
        (one, one, 0, 1, 0),
        (0, one, 1, 1, 0),
        (one, 0x7ff8_0000_0000_0000, 0, 0, 0),
        (one, 0x7ff0_0000_0000_0001, 0, 0, NV),
    ] {
        for (funct3, result) in [(5, less), (4, equal)] {
            b.set_csr(csr::FFLAGS, 0);
            b.set_f(1, a);
            b.set_f(2, c);
            b.one(fp(0x14, 1, 2, 1, funct3, A0));
            assert_eq!((b.x(A0), b.csr(csr::FFLAGS)), (result, flags));
        }
    }
}

#[test]
fn fcvtmod_wraps_where_fcvt_saturates() {
    let mut b = bench(Xlen::Rv64);
    for (value, result, flags) in [
        (1.5, 1, NX),
        (-1.5, -1, NX),
        (4_294_967_301.0, 5, NV),
        (-4_294_967_301.25, -5, NV),
        (2_147_483_648.0, i32::MIN, NV),
        (-2_147_483_648.0, i32::MIN, 0),
        // 2^84 + 2^32: nothing of it is left; 2^63 + 2^32 * 3 + 2048.
        (19_342_813_113_834_066_795_298_816.0, 0, NV),
        (9_223_372_036_854_777_856.0, 2048, NV),
        (f64::INFINITY, 0, NV),
        (f64::NAN, 0, NV),
        (-0.0, 0, 0),
    ] {
        b.set_csr(csr::FFLAGS, 0);
        b.set_f(1, value.to_bits());
        b.one(fp(0x18, 1, 8, 1, 1, A0));
        assert_eq!(b.x(A0), result as i64 as u64, "{value}");
        assert_eq!(b.csr(csr::FFLAGS), flags, "{value}");
    }
    assert!(
        b.is_illegal(fp(0x18, 1, 8, 1, 0, A0)),
        "it always truncates"
    );
}

#[test]
fn doubles_go_in_halves_on_rv32() {
    let mut b = bench(Xlen::Rv32);
    b.set_x(A0, 0x8000_0001);
    b.set_x(A1, 0xc000_0002);
    b.one(fp(0x16, 1, A1, A0, 0, 3));
    assert_eq!(b.f(3), 0xc000_0002_8000_0001);
    b.one(fp(0x1c, 1, 1, 3, 0, A2));
    assert_eq!(b.x(A2), 0xc000_0002);
    let mut b = bench(Xlen::Rv64);
    assert!(b.is_illegal(fp(0x16, 1, A1, A0, 0, 3)));
}

#[test]
fn without_zfa_they_are_illegal() {
    let mut b = Bench::isa("rv64gc_zfh");
    b.status(status::FS_INITIAL);
    for insn in [fp(0x1e, 0, 1, 0, 0, 1), fp(0x05, 1, 2, 1, 2, 3)] {
        assert!(b.is_illegal(insn));
    }
}

#[test]
fn may_be_operations_write_zero() {
    for xlen in WIDTHS {
        let mut b = Bench::of(xlen);
        // mop.r.31 and mop.rr.7: bits 30, 27 and 26, and 21 and 20.
        for insn in [0xcdc0_4073 | 3 << 20, 0xce00_4073u32] {
            b.set_x(A0, 7);
            b.set_x(A1, 8);
            b.one(insn | A0 << 7 | A1 << 15);
            assert_eq!((b.x(A0), b.x(A1)), (0, 8));
        }
        // c.mop.5 writes nothing.
        b.set_x(T0, 9);
        b.halfwords(crate::bench::BASE, &[0x6081 | 5 << 7]);
        b.set_pc(crate::bench::BASE);
        let steps = b.steps(1);
        assert!(steps[0].1.regs.is_empty() && b.x(T0) == 9);
    }
    let mut b = Bench::isa("rv64i");
    assert!(b.is_illegal(0xce00_4073));
}
