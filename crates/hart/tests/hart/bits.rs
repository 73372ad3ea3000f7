//! Bit manipulation, conditional zero and Zcb (unprivileged manual, chapters
//! "B", "Zicond" and "Zc*"). Formulas work bit by bit.

use hartrace_isa::Xlen;

use crate::asm::*;
use crate::bench::{BASE, Bench, DATA, WIDTHS};
use crate::integer::{check, s, u, word};

const RV64: [Xlen; 1] = [Xlen::Rv64];
const RV32: [Xlen; 1] = [Xlen::Rv32];

/// Bit `n` of a value.
fn bit(value: u64, n: u32) -> i128 {
    i128::from(value >> n & 1)
}

/// The bits of a function of a bit number.
fn bits_of(width: u32, value: impl Fn(u32) -> i128) -> i128 {
    (0..width).fold(0, |sum, n| sum | value(n) << n)
}

#[test]
fn zba_adds_shifted_operands() {
    check(&WIDTHS, sh1add(A0, A1, A2), |w, a, b| u(a, w) * 2 + u(b, w));
    check(&WIDTHS, sh2add(A0, A1, A2), |w, a, b| u(a, w) * 4 + u(b, w));
    check(&WIDTHS, sh3add(A0, A1, A2), |w, a, b| u(a, w) * 8 + u(b, w));
    check(&RV64, add_uw(A0, A1, A2), |w, a, b| u(a, 32) + u(b, w));
    check(&RV64, sh1add_uw(A0, A1, A2), |w, a, b| {
        u(a, 32) * 2 + u(b, w)
    });
    check(&RV64, sh2add_uw(A0, A1, A2), |w, a, b| {
        u(a, 32) * 4 + u(b, w)
    });
    check(&RV64, sh3add_uw(A0, A1, A2), |w, a, b| {
        u(a, 32) * 8 + u(b, w)
    });
    check(&RV64, slli_uw(A0, A1, 0), |_, a, _| u(a, 32));
    check(&RV64, slli_uw(A0, A1, 63), |_, a, _| u(a, 32) << 63);
}

#[test]
fn zbb_logic_negates_the_second_operand() {
    check(&WIDTHS, andn(A0, A1, A2), |w, a, b| {
        s(a, w) & (-1 - s(b, w))
    });
    check(&WIDTHS, orn(A0, A1, A2), |w, a, b| s(a, w) | (-1 - s(b, w)));
    check(&WIDTHS, xnor(A0, A1, A2), |w, a, b| {
        -1 - (s(a, w) ^ s(b, w))
    });
}

fn leading(value: u64, width: u32) -> i128 {
    let zeros = (0..width).rev().take_while(|&n| bit(value, n) == 0);
    zeros.count() as i128
}

fn trailing(value: u64, width: u32) -> i128 {
    (0..width).take_while(|&n| bit(value, n) == 0).count() as i128
}

fn ones(value: u64, width: u32) -> i128 {
    (0..width).map(|n| bit(value, n)).sum()
}

#[test]
fn zbb_counts_zero_gives_the_width() {
    check(&WIDTHS, clz(A0, A1), |w, a, _| leading(a, w));
    check(&WIDTHS, ctz(A0, A1), |w, a, _| trailing(a, w));
    check(&WIDTHS, cpop(A0, A1), |w, a, _| ones(a, w));
    check(&RV64, clzw(A0, A1), |_, a, _| leading(a, 32));
    check(&RV64, ctzw(A0, A1), |_, a, _| trailing(a, 32));
    check(&RV64, cpopw(A0, A1), |_, a, _| ones(a, 32));
}

#[test]
fn zbb_minimum_and_maximum() {
    check(&WIDTHS, min(A0, A1, A2), |w, a, b| s(a, w).min(s(b, w)));
    check(&WIDTHS, max(A0, A1, A2), |w, a, b| s(a, w).max(s(b, w)));
    check(&WIDTHS, minu(A0, A1, A2), |w, a, b| u(a, w).min(u(b, w)));
    check(&WIDTHS, maxu(A0, A1, A2), |w, a, b| u(a, w).max(u(b, w)));
}

#[test]
fn zbb_extends_bytes_and_halfwords() {
    check(&WIDTHS, sext_b(A0, A1), |_, a, _| s(a, 8));
    check(&WIDTHS, sext_h(A0, A1), |_, a, _| s(a, 16));
    check(&RV32, zext_h_32(A0, A1), |_, a, _| u(a, 16));
    check(&RV64, zext_h_64(A0, A1), |_, a, _| u(a, 16));
}

/// Byte `n` of a value.
fn byte(value: u64, n: u32) -> i128 {
    i128::from(value >> (8 * n) & 0xff)
}

#[test]
fn zbb_orc_b_and_rev8_work_on_bytes() {
    check(&WIDTHS, orc_b(A0, A1), |w, a, _| {
        let full = |n| if byte(a, n) == 0 { 0 } else { 0xff };
        (0..w / 8).map(|n| full(n) << (8 * n)).sum()
    });
    let reversed = |w: u32, a: u64| (0..w / 8).map(|n| byte(a, n) << (w - 8 - 8 * n)).sum();
    check(&RV32, rev8_32(A0, A1), |w, a, _| reversed(w, a));
    check(&RV64, rev8_64(A0, A1), |w, a, _| reversed(w, a));
}

#[test]
fn zbb_rotates_by_the_amount_modulo_the_width() {
    let left = |w: u32, a: u64, by: u64| {
        let by = (by % u64::from(w)) as u32;
        bits_of(w, |n| bit(a, (n + w - by) % w))
    };
    let right = move |w: u32, a: u64, by: u64| left(w, a, u64::from(w) - by % u64::from(w));
    check(&WIDTHS, rol(A0, A1, A2), left);
    check(&WIDTHS, ror(A0, A1, A2), right);
    check(&WIDTHS, rori(A0, A1, 31), |w, a, _| right(w, a, 31));
    check(&RV64, rori(A0, A1, 63), |w, a, _| right(w, a, 63));
    check(&RV64, rolw(A0, A1, A2), |_, a, b| word(left(32, a, b)));
    check(&RV64, rorw(A0, A1, A2), |_, a, b| word(right(32, a, b)));
    check(&RV64, roriw(A0, A1, 1), |_, a, _| word(right(32, a, 1)));
    assert!(
        Bench::rv32().is_illegal(rori(A0, A1, 32)),
        "reserved on RV32"
    );
}

#[test]
fn zbs_addresses_single_bits_modulo_the_width() {
    let at = |w: u32, b: u64| (b % u64::from(w)) as u32;
    let set = |w: u32, a: u64, k: u32| bits_of(w, |n| if n == k { 1 } else { bit(a, n) });
    let clear = |w: u32, a: u64, k: u32| bits_of(w, |n| if n == k { 0 } else { bit(a, n) });
    let flip = |w: u32, a: u64, k: u32| bits_of(w, |n| bit(a, n) ^ i128::from(n == k));
    check(&WIDTHS, bset(A0, A1, A2), |w, a, b| set(w, a, at(w, b)));
    check(&WIDTHS, bclr(A0, A1, A2), |w, a, b| clear(w, a, at(w, b)));
    check(&WIDTHS, binv(A0, A1, A2), |w, a, b| flip(w, a, at(w, b)));
    check(&WIDTHS, bext(A0, A1, A2), |w, a, b| bit(a, at(w, b)));
    check(&WIDTHS, bseti(A0, A1, 31), |w, a, _| set(w, a, 31));
    check(&WIDTHS, bclri(A0, A1, 31), |w, a, _| clear(w, a, 31));
    check(&WIDTHS, binvi(A0, A1, 31), |w, a, _| flip(w, a, 31));
    check(&WIDTHS, bexti(A0, A1, 31), |_, a, _| bit(a, 31));
    check(&RV64, bexti(A0, A1, 63), |_, a, _| bit(a, 63));
}

/// The product of polynomials over GF(2), coefficient by coefficient.
fn polynomial(w: u32, a: u64, b: u64) -> Vec<bool> {
    let mut product = vec![false; 2 * w as usize];
    for i in 0..w {
        for j in 0..w {
            product[(i + j) as usize] ^= bit(a, i) & bit(b, j) != 0;
        }
    }
    product
}

#[test]
fn zbc_multiplies_without_carries() {
    let from = |w: u32, a: u64, b: u64, first: u32| {
        let product = polynomial(w, a, b);
        bits_of(w, |n| product[(n + first) as usize].into())
    };
    check(&WIDTHS, clmul(A0, A1, A2), |w, a, b| from(w, a, b, 0));
    check(&WIDTHS, clmulh(A0, A1, A2), |w, a, b| from(w, a, b, w));
    check(&WIDTHS, clmulr(A0, A1, A2), |w, a, b| from(w, a, b, w - 1));
}

#[test]
fn zicond_passes_or_zeroes() {
    check(&WIDTHS, czero_eqz(A0, A1, A2), |w, a, b| {
        if b == 0 { 0 } else { u(a, w) }
    });
    check(&WIDTHS, czero_nez(A0, A1, A2), |w, a, b| {
        if b != 0 { 0 } else { u(a, w) }
    });
}

/// Runs one 16-bit instruction with a0 (x10) and a1 (x11) set; a0 after it.
fn short(bench: &mut Bench, half: u32, a0: u64, a1: u64) -> u64 {
    bench.set_x(10, a0);
    bench.set_x(11, a1);
    bench.halfwords(BASE, &[half]);
    bench.set_pc(BASE);
    bench.run(1);
    assert_eq!(bench.m.pc(), BASE + 2, "{half:04x}");
    bench.x(10)
}

#[test]
fn zcb_has_short_forms_of_extensions_not_and_mul() {
    // 27.5 (Zcb): rd' = a0 is field value 2, rs2' = a1 is 3.
    let zcb = |f5: u32| 0x9c01 | 2 << 7 | f5 << 2;
    for xlen in WIDTHS {
        let mut b = Bench::of(xlen);
        let value = xlen.wrap(0x1234_5678_9abc_f5e7);
        assert_eq!(short(&mut b, zcb(0x18), value, 0), 0xe7, "c.zext.b");
        assert_eq!(
            short(&mut b, zcb(0x19), value, 0),
            xlen.wrap(-25i64 as u64),
            "c.sext.b"
        );
        assert_eq!(short(&mut b, zcb(0x1a), value, 0), 0xf5e7, "c.zext.h");
        let halfword = xlen.wrap(0xf5e7u64.wrapping_sub(0x1_0000));
        assert_eq!(short(&mut b, zcb(0x1b), value, 0), halfword, "c.sext.h");
        assert_eq!(
            short(&mut b, zcb(0x1d), value, 0),
            xlen.wrap(!value),
            "c.not"
        );
        let product = xlen.wrap(value.wrapping_mul(1001));
        assert_eq!(
            short(&mut b, 0x9c41 | 2 << 7 | 3 << 2, value, 1001),
            product,
            "c.mul"
        );
        if xlen == Xlen::Rv64 {
            assert_eq!(short(&mut b, zcb(0x1c), value, 0), 0x9abc_f5e7, "c.zext.w");
        }
    }
}

#[test]
fn zcb_loads_and_stores_bytes_and_halfwords() {
    // 27.5: c.lbu, c.lhu, c.lh, c.sb, c.sh with rd' = a0, rs1' = a1.
    let mut b = Bench::rv64();
    b.set_mem(DATA, 8, 0x8899_aabb_ccdd_eeff);
    let registers = 3 << 7 | 2 << 2;
    // uimm[0] is bit 6 and uimm[1] bit 5 of the byte forms.
    assert_eq!(short(&mut b, 0x8000 | registers, 0, DATA), 0xff, "c.lbu 0");
    assert_eq!(
        short(&mut b, 0x8000 | registers | 1 << 6, 0, DATA),
        0xee,
        "c.lbu 1"
    );
    assert_eq!(
        short(&mut b, 0x8000 | registers | 1 << 5, 0, DATA),
        0xdd,
        "c.lbu 2"
    );
    assert_eq!(
        short(&mut b, 0x8400 | registers, 0, DATA),
        0xeeff,
        "c.lhu 0"
    );
    assert_eq!(
        short(&mut b, 0x8400 | registers | 1 << 5, 0, DATA),
        0xccdd,
        "c.lhu 2"
    );
    let signed = 0xffff_ffff_ffff_ccdd;
    assert_eq!(
        short(&mut b, 0x8440 | registers | 1 << 5, 0, DATA),
        signed,
        "c.lh 2"
    );
    short(&mut b, 0x8800 | registers | 1 << 6 | 1 << 5, 0x123, DATA);
    assert_eq!(b.mem(DATA, 4), 0x23dd_eeff, "c.sb 3");
    short(&mut b, 0x8c00 | registers, 0x4567, DATA);
    assert_eq!(b.mem(DATA, 4), 0x23dd_4567, "c.sh 0");
}
