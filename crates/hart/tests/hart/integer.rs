//! RV32I, RV64I and M (unprivileged manual, chapters 2, 4 and 13). Expected
//! values are computed in 128-bit arithmetic from the words of the manual.

use hartrace_isa::Xlen;

use crate::asm::*;
use crate::bench::{BASE, Bench, WIDTHS};

/// Operands at which something changes, as 64-bit patterns; RV32 uses their
/// low halves.
pub(crate) const CORNERS: [u64; 17] = [
    0,
    1,
    2,
    5,
    31,
    32,
    63,
    64,
    0x7f80,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x0123_4567_89ab_cdef,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0xffff_ffff_ffff_ffff,
];

/// The low bits as an unsigned number.
pub(crate) fn u(value: u64, bits: u32) -> i128 {
    i128::from(value) & ((1 << bits) - 1)
}

/// The low bits as a two's complement number.
pub(crate) fn s(value: u64, bits: u32) -> i128 {
    let unsigned = u(value, bits);
    if unsigned >> (bits - 1) == 0 {
        unsigned
    } else {
        unsigned - (1 << bits)
    }
}

/// A number as a register of this many bits holds it.
pub(crate) fn register(value: i128, bits: u32) -> u64 {
    (value & ((1i128 << bits) - 1)) as u64
}

/// A 32-bit result as a 64-bit register holds it (chapter 4.2: the W forms
/// sign-extend).
pub(crate) fn word(value: i128) -> i128 {
    s(register(value, 32), 32)
}

/// Compares an instruction, `rd` a0, `rs1` a1 and `rs2` a2, on all pairs of
/// corners with a formula of the width in bits and the operands. The first
/// operands are in x13 to x29, and `rs1` names each of them in turn.
pub(crate) fn check(widths: &[Xlen], insn: u32, formula: impl Fn(u32, u64, u64) -> i128) {
    assert_eq!(insn >> 15 & 31, A1, "{insn:08x}");
    for &xlen in widths {
        let bits = xlen.bits();
        let mut bench = Bench::of(xlen);
        let firsts = (13u32..).zip(CORNERS.map(|a| xlen.wrap(a)));
        firsts.clone().for_each(|(x, a)| bench.set_x(x, a));
        let code: Vec<u32> = firsts
            .clone()
            .map(|(x, _)| insn & !(31 << 15) | x << 15)
            .collect();
        bench.code(BASE, &code);
        for b in CORNERS.map(|b| xlen.wrap(b)) {
            bench.set_x(A2, b);
            bench.set_pc(BASE);
            let steps = bench.steps(code.len() as u64);
            assert_eq!(steps.len(), CORNERS.len(), "RV{bits} {insn:08x} traps");
            for ((_, a), (_, effects)) in firsts.clone().zip(steps) {
                let expected = register(formula(bits, a, b), bits);
                let got = effects.regs[0].value;
                assert_eq!(got, expected, "RV{bits} {insn:08x} of {a:#x}, {b:#x}");
            }
        }
    }
}

const RV64: [Xlen; 1] = [Xlen::Rv64];

#[test]
fn arithmetic_wraps_and_ignores_overflow() {
    // 2.4.2: "Overflows are ignored and the low XLEN bits of results are
    // written".
    check(&WIDTHS, add(A0, A1, A2), |w, a, b| u(a, w) + u(b, w));
    check(&WIDTHS, sub(A0, A1, A2), |w, a, b| u(a, w) - u(b, w));
    check(&WIDTHS, addi(A0, A1, -2048), |w, a, _| u(a, w) - 2048);
    check(&WIDTHS, addi(A0, A1, 2047), |w, a, _| u(a, w) + 2047);
}

#[test]
fn comparisons_are_signed_or_unsigned_and_give_one_or_zero() {
    // 2.4.1, 2.4.2; the immediate of sltiu is sign-extended, then unsigned.
    check(&WIDTHS, slt(A0, A1, A2), |w, a, b| {
        (s(a, w) < s(b, w)).into()
    });
    check(&WIDTHS, sltu(A0, A1, A2), |w, a, b| {
        (u(a, w) < u(b, w)).into()
    });
    check(&WIDTHS, slti(A0, A1, -1), |w, a, _| (s(a, w) < -1).into());
    check(&WIDTHS, sltiu(A0, A1, -1), |w, a, _| {
        (u(a, w) < (1i128 << w) - 1).into()
    });
    check(&WIDTHS, sltiu(A0, A1, 1), |w, a, _| (u(a, w) == 0).into());
}

#[test]
fn logic_is_bitwise_with_sign_extended_immediates() {
    // 2.4.1, 2.4.2.
    check(&WIDTHS, and(A0, A1, A2), |w, a, b| u(a, w) & u(b, w));
    check(&WIDTHS, or(A0, A1, A2), |w, a, b| u(a, w) | u(b, w));
    check(&WIDTHS, xor(A0, A1, A2), |w, a, b| u(a, w) ^ u(b, w));
    check(&WIDTHS, andi(A0, A1, -16), |w, a, _| s(a, w) & -16);
    check(&WIDTHS, ori(A0, A1, -16), |w, a, _| s(a, w) | -16);
    check(&WIDTHS, xori(A0, A1, -1), |w, a, _| -1 - s(a, w));
}

#[test]
fn shift_amounts_are_masked_to_the_width() {
    // 2.4.2 and 4.2.2: the low 5 bits (RV32) or 6 bits (RV64) of rs2.
    let power = |w: u32, b: u64| 1i128 << (b % u64::from(w));
    check(&WIDTHS, sll(A0, A1, A2), |w, a, b| u(a, w) * power(w, b));
    check(&WIDTHS, srl(A0, A1, A2), |w, a, b| u(a, w) / power(w, b));
    check(&WIDTHS, sra(A0, A1, A2), |w, a, b| {
        s(a, w).div_euclid(power(w, b))
    });
    check(&WIDTHS, slli(A0, A1, 31), |w, a, _| u(a, w) << 31);
    check(&WIDTHS, srli(A0, A1, 31), |w, a, _| u(a, w) >> 31);
    check(&WIDTHS, srai(A0, A1, 31), |w, a, _| {
        s(a, w).div_euclid(1 << 31)
    });
    check(&RV64, slli(A0, A1, 63), |_, a, _| u(a, 64) << 63);
    check(&RV64, srli(A0, A1, 63), |_, a, _| u(a, 64) >> 63);
}

#[test]
fn shifts_by_32_or_more_do_not_exist_on_rv32() {
    // 2.4.1: imm[5] != 0 is reserved on RV32I; 4.2.1: for the W forms.
    let mut rv32 = Bench::rv32();
    assert!(rv32.is_illegal(slli(A0, A1, 32)));
    assert!(rv32.is_illegal(srai(A0, A1, 32)));
    let mut rv64 = Bench::rv64();
    assert!(rv64.is_illegal(slliw(A0, A1, 32)));
    assert!(!rv64.is_illegal(slli(A0, A1, 32)));
}

#[test]
fn w_forms_use_the_low_words_and_sign_extend() {
    // 4.2: "ignore the upper 32 bits of their inputs and always produce 32-bit
    // signed values".
    check(&RV64, addw(A0, A1, A2), |_, a, b| word(s(a, 32) + s(b, 32)));
    check(&RV64, subw(A0, A1, A2), |_, a, b| word(s(a, 32) - s(b, 32)));
    check(&RV64, addiw(A0, A1, -1), |_, a, _| word(s(a, 32) - 1));
    check(&RV64, addiw(A0, A1, 0), |_, a, _| s(a, 32));
    let power = |b: u64| 1i128 << (b % 32);
    check(&RV64, sllw(A0, A1, A2), |_, a, b| word(u(a, 32) * power(b)));
    check(&RV64, srlw(A0, A1, A2), |_, a, b| word(u(a, 32) / power(b)));
    check(&RV64, sraw(A0, A1, A2), |_, a, b| {
        s(a, 32).div_euclid(power(b))
    });
    check(&RV64, slliw(A0, A1, 31), |_, a, _| word(u(a, 32) << 31));
    check(&RV64, srliw(A0, A1, 0), |_, a, _| s(a, 32));
    check(&RV64, srliw(A0, A1, 1), |_, a, _| u(a, 32) >> 1);
    check(
        &RV64,
        sraiw(A0, A1, 31),
        |_, a, _| if s(a, 32) < 0 { -1 } else { 0 },
    );
}

#[test]
fn w_forms_do_not_exist_on_rv32() {
    // Chapter 4: they are RV64I's.
    let mut rv32 = Bench::rv32();
    for word in [
        addw(A0, A1, A2),
        addiw(A0, A1, 0),
        mulw(A0, A1, A2),
        ld(A0, 0, A1),
    ] {
        assert!(rv32.is_illegal(word), "{word:08x}");
    }
}

#[test]
fn upper_immediates_sign_extend_and_auipc_adds_the_pc() {
    // 2.4.1, 4.2.1.
    for xlen in WIDTHS {
        let mut bench = Bench::of(xlen);
        bench.one(lui(A0, 0x80000));
        assert_eq!(bench.x(A0), xlen.wrap(0xffff_ffff_8000_0000));
        bench.one(auipc(A0, 0x80000));
        assert_eq!(
            bench.x(A0),
            xlen.wrap(BASE.wrapping_add(0xffff_ffff_8000_0000))
        );
        bench.one(auipc(A0, 1));
        assert_eq!(bench.x(A0), BASE + 0x1000);
    }
}

#[test]
fn x0_is_zero_whatever_is_written() {
    // 2.1: "Register x0 is hardwired with all bits equal to 0."
    let mut bench = Bench::rv64();
    bench.set_x(A1, 7);
    bench.set_mem(crate::bench::DATA, 8, 9);
    bench.set_x(A2, crate::bench::DATA);
    for word in [
        addi(0, A1, 1),
        lui(0, 5),
        mul(0, A1, A1),
        ld(0, 0, A2),
        orc_b(0, A1),
    ] {
        let effects = bench.one(word);
        assert_eq!(bench.x(0), 0);
        assert!(effects.regs.is_empty(), "x0 is never reported");
        bench.one(add(A0, 0, 0));
        assert_eq!(bench.x(A0), 0);
    }
}

#[test]
fn products_have_a_low_and_a_high_half() {
    // 13.1.
    check(&WIDTHS, mul(A0, A1, A2), |w, a, b| {
        s(a, w).wrapping_mul(s(b, w))
    });
    check(&WIDTHS, mulh(A0, A1, A2), |w, a, b| {
        (s(a, w) * s(b, w)) >> w
    });
    check(&WIDTHS, mulhsu(A0, A1, A2), |w, a, b| {
        (s(a, w) * u(b, w)) >> w
    });
    check(&WIDTHS, mulhu(A0, A1, A2), |w, a, b| {
        ((u(a, w) as u128 * u(b, w) as u128) >> w) as i128
    });
    check(&RV64, mulw(A0, A1, A2), |_, a, b| word(s(a, 32) * s(b, 32)));
}

/// Table 13.1: division by zero and overflow.
fn quotient(a: i128, b: i128, least: i128) -> i128 {
    match b {
        0 => -1,
        -1 if a == least => least,
        _ => a / b,
    }
}

fn remainder(a: i128, b: i128, least: i128) -> i128 {
    match b {
        0 => a,
        -1 if a == least => 0,
        _ => a - (a / b) * b,
    }
}

#[test]
fn division_by_zero_and_overflow_give_values_and_no_trap() {
    // 13.2, table 13.1.
    let least = |w: u32| -(1i128 << (w - 1));
    check(&WIDTHS, div(A0, A1, A2), |w, a, b| {
        quotient(s(a, w), s(b, w), least(w))
    });
    check(&WIDTHS, rem(A0, A1, A2), |w, a, b| {
        remainder(s(a, w), s(b, w), least(w))
    });
    check(&WIDTHS, divu(A0, A1, A2), |w, a, b| {
        quotient(u(a, w), u(b, w), 1)
    });
    check(&WIDTHS, remu(A0, A1, A2), |w, a, b| {
        remainder(u(a, w), u(b, w), 1)
    });
    let (s32, u32) = (|v| s(v, 32), |v| u(v, 32));
    check(&RV64, divw(A0, A1, A2), |_, a, b| {
        word(quotient(s32(a), s32(b), least(32)))
    });
    check(&RV64, remw(A0, A1, A2), |_, a, b| {
        word(remainder(s32(a), s32(b), least(32)))
    });
    check(&RV64, divuw(A0, A1, A2), |_, a, b| {
        word(quotient(u32(a), u32(b), 1))
    });
    check(&RV64, remuw(A0, A1, A2), |_, a, b| {
        word(remainder(u32(a), u32(b), 1))
    });
}

#[test]
fn what_the_instruction_set_lacks_is_illegal() {
    // Priv. 3.1.15 and chapter 13: no M, no mul; Zmmul alone has no div.
    let mut none = Bench::isa("rv64i");
    assert!(none.is_illegal(mul(A0, A1, A2)));
    let mut half = Bench::isa("rv64i_zmmul");
    assert!(!half.is_illegal(mul(A0, A1, A2)));
    assert!(half.is_illegal(div(A0, A1, A2)));
}

#[test]
fn fences_and_hints_change_nothing() {
    // 2.7, 2.9: hints and fences on one hart are nops; unknown fence fields
    // are treated as a plain fence.
    let mut bench = Bench::isa("rv64i_zihintpause");
    for word in [
        FENCE,
        0x8330_000f,
        0x0100_000f,
        0xfff0_000f,
        addi(0, 5, 1),
        lui(0, 1),
    ] {
        let effects = bench.one(word);
        assert!(
            effects.regs.is_empty() && effects.csrs.is_empty(),
            "{word:08x}"
        );
        assert_eq!(bench.m.pc(), BASE + 4);
    }
}
