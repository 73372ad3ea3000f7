//! Zacas, Zabha and Zawrs (unprivileged manual, chapters 14 and 15 of 20250508).

use hartrace_flow::{Access, AccessKind, Mode, RegId};
use hartrace_isa::Xlen;

use crate::asm::*;
use crate::bench::{BASE, Bench, DATA, WIDTHS, status};

/// `amocas`, by log2 of its size.
pub(crate) fn amocas(size: u32, rd: u32, rs2: u32, rs1: u32) -> u32 {
    r_type(0x2f, size, 0x05 << 2, rd, rs1, rs2)
}

const WRS_NTO: u32 = 0x00d0_0073;
const WRS_STO: u32 = 0x01d0_0073;
const A6: u32 = 16;

#[test]
fn amocas_stores_if_the_values_are_equal() {
    // Zacas: rd is compared with memory, and gets what was there, sign-extended.
    for xlen in WIDTHS {
        let mut b = Bench::of(xlen);
        b.set_mem(DATA, 4, 0x8000_0001);
        b.set_x(A1, DATA);
        b.set_x(A0, 0x8000_0001);
        b.set_x(A2, 7);
        let effects = b.one(amocas(2, A0, A2, A1));
        assert_eq!(b.x(A0), xlen.wrap(0xffff_ffff_8000_0001));
        assert_eq!(b.mem(DATA, 4), 7);
        let swap = Access {
            kind: AccessKind::AtomicSwap,
            size: 2,
            addr: DATA,
            paddr: Some(DATA),
            data: Some(7),
            operand: Some(0x8000_0001),
        };
        assert_eq!(&*effects.accesses, [swap]);
        // The upper half of a register is not compared.
        if xlen == Xlen::Rv64 {
            b.set_x(A0, 0x1234_5678_0000_0007);
            b.one(amocas(2, A0, A1, A1));
            assert_eq!(b.mem(DATA, 4), DATA);
        }
    }
}

#[test]
fn amocas_that_fails_only_loads() {
    for xlen in WIDTHS {
        let mut b = Bench::of(xlen);
        b.set_mem(DATA, 4, 5);
        b.set_x(A1, DATA);
        b.set_x(A0, 6);
        b.set_x(A2, 7);
        let effects = b.one(amocas(2, A0, A2, A1));
        assert_eq!((b.x(A0), b.mem(DATA, 4)), (5, 5));
        let load = Access {
            kind: AccessKind::Load,
            size: 2,
            addr: DATA,
            paddr: Some(DATA),
            data: Some(5),
            operand: Some(7),
        };
        assert_eq!(&*effects.accesses, [load]);
    }
}

#[test]
fn amocas_d_of_rv32_takes_pairs_of_registers() {
    // The first register has the low half.
    let mut b = Bench::rv32();
    b.set_mem(DATA, 8, 0x1111_2222_8333_4444);
    b.set_x(A1, DATA);
    for (register, value) in [(A2, 0x8333_4444), (A3, 0x1111_2222), (A4, 5), (A5, 6)] {
        b.set_x(register, value);
    }
    let effects = b.one(amocas(3, A2, A4, A1));
    assert_eq!(b.mem(DATA, 8), 6 << 32 | 5);
    assert_eq!((b.x(A2), b.x(A3)), (0x8333_4444, 0x1111_2222));
    let written: Vec<RegId> = effects.regs.iter().map(|w| w.reg).collect();
    assert_eq!(written, [RegId::X(12), RegId::X(13)]);
    assert_eq!(effects.accesses.len(), 1);
    assert_eq!(effects.accesses[0].data, Some(6 << 32 | 5));
    // Half of it is not enough.
    b.set_x(A2, 5);
    b.set_x(A3, 7);
    b.one(amocas(3, A2, A4, A1));
    assert_eq!((b.x(A2), b.x(A3)), (5, 6));
    // Odd registers are reserved.
    assert!(b.is_illegal(amocas(3, A1, A4, A1)));
    assert!(b.is_illegal(amocas(3, A2, A5, A1)));
    assert!(b.is_illegal(amocas(4, A2, A4, A1)), "amocas.q is for RV64");
}

#[test]
fn the_pair_of_x0_is_zero_and_is_not_written() {
    // Zacas: "if the first register of a pair is x0, then both halves read as zero", and
    // "the entire register result is discarded".
    for (mut b, size) in [(Bench::rv32(), 3), (Bench::rv64(), 4)] {
        let half = 1u64 << (size - 1);
        b.set_x(RA, 99);
        b.set_x(A1, DATA);
        b.set_x(A2, 1);
        b.set_x(A3, 2);
        let effects = b.one(amocas(size, ZERO, A2, A1));
        assert_eq!((b.mem(DATA, 4), b.mem(DATA + half, 4)), (1, 2));
        assert_eq!((b.x(RA), effects.regs.len()), (99, 0));
        // The other way round: what is there, against zeros to be stored.
        b.one(amocas(size, A2, ZERO, A1));
        assert_eq!((b.mem(DATA, 4), b.mem(DATA + half, 4)), (0, 0));
        assert_eq!((b.x(A2), b.x(A3)), (1, 2));
    }
}

#[test]
fn amocas_q_is_two_accesses_of_one_kind() {
    let mut b = Bench::rv64();
    b.set_mem(DATA, 8, 1);
    b.set_mem(DATA + 8, 8, 2);
    b.set_x(A1, DATA);
    for (register, value) in [(A2, 1), (A3, 2), (A4, 3), (A5, 4)] {
        b.set_x(register, value);
    }
    let kinds = |b: &mut Bench| {
        let effects = b.one(amocas(4, A2, A4, A1));
        let each = effects.accesses.iter();
        each.map(|a| (a.kind, a.addr, a.data, a.operand))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        kinds(&mut b),
        [
            (AccessKind::AtomicSwap, DATA, Some(3), Some(1)),
            (AccessKind::AtomicSwap, DATA + 8, Some(4), Some(2))
        ]
    );
    // Only one half is equal.
    b.set_x(A2, 3);
    b.set_x(A3, 5);
    assert_eq!(
        kinds(&mut b),
        [
            (AccessKind::Load, DATA, Some(3), Some(3)),
            (AccessKind::Load, DATA + 8, Some(4), Some(4))
        ]
    );
    assert_eq!((b.x(A2), b.x(A3)), (3, 4));
    // 16 bytes are aligned to 16 bytes.
    b.set_x(A1, DATA + 8);
    assert_eq!(b.fault(&[amocas(4, A2, A4, A1)]).0, 7);
}

#[test]
fn amocas_needs_the_rights_of_stores_even_if_it_fails() {
    // Zacas: "always requires write permissions".
    let mut b = Bench::rv64();
    b.set_x(A0, 1);
    b.set_x(A1, 0x1000);
    assert_eq!(b.fault(&[amocas(2, A0, A2, A1)]), (7, BASE, 0x1000));
}

#[test]
fn bytes_and_halfwords_are_operated_on_as_they_are() {
    // Zabha: results are sign-extended, and the rest of the register does not count.
    for xlen in WIDTHS {
        for (size, bits, old, operand) in [(0, 8, 0x80u64, 0x17fu64), (1, 16, 0x8000, 0x1_7fff)] {
            let mask = (1u64 << bits) - 1;
            let extended = xlen.wrap(((old << (64 - bits)) as i64 >> (64 - bits)) as u64);
            let low = operand & mask;
            // By funct5: what is stored.
            let table = [
                (0x00, (old + low) & mask),
                (0x01, low),
                (0x04, old ^ low),
                (0x08, old | low),
                (0x0c, old & low),
                (0x10, old),
                (0x14, low),
                (0x18, low),
                (0x1c, old),
            ];
            for (funct5, stored) in table {
                let mut b = Bench::of(xlen);
                b.set_mem(DATA, 4, 0x5a5a_5a5a & !mask | old);
                b.set_x(A1, DATA);
                b.set_x(A2, operand);
                let effects = b.one(r_type(0x2f, size, funct5 << 2, A0, A1, A2));
                assert_eq!(b.x(A0), extended, "{funct5:#x}");
                assert_eq!(b.mem(DATA, 4), 0x5a5a_5a5a & !mask | stored, "{funct5:#x}");
                let access = effects.accesses[0];
                assert_eq!((access.size, access.data), (size as u8, Some(stored)));
                assert_eq!(access.operand, Some(old));
            }
            // amocas.b and amocas.h.
            let mut b = Bench::of(xlen);
            b.set_mem(DATA, 4, 0x5a5a_5a5a & !mask | old);
            b.set_x(A1, DATA);
            b.set_x(A0, !mask | old);
            b.set_x(A2, operand);
            b.one(amocas(size, A0, A2, A1));
            assert_eq!((b.x(A0), b.mem(DATA, 4) & mask), (extended, low));
        }
        let mut b = Bench::of(xlen);
        b.set_x(A1, DATA + 1);
        assert_eq!(
            b.fault(&[r_type(0x2f, 1, 0, A0, A1, A2)]).0,
            7,
            "misaligned"
        );
    }
}

#[test]
fn without_the_extensions_they_are_illegal() {
    let mut b = Bench::isa("rv64ia");
    assert!(b.is_illegal(amocas(2, A0, A2, A1)));
    assert!(b.is_illegal(r_type(0x2f, 0, 0, A0, A1, A2)));
    assert!(b.is_illegal(WRS_NTO));
    let mut b = Bench::isa("rv64ia_zabha");
    assert!(
        b.is_illegal(amocas(0, A0, A2, A1)),
        "amocas.b needs Zacas too"
    );
}

#[test]
fn wrs_goes_on_at_once_where_no_other_hart_stores() {
    // Zawrs: a hart may resume for any reason.
    for wait in [WRS_NTO, WRS_STO] {
        let mut b = Bench::rv64();
        b.set_x(A1, DATA);
        let steps = b.exec(&[lr_w(A0, A1), wait, addi(A6, ZERO, 1)]);
        assert_eq!((steps.len(), b.x(A6)), (3, 1));
    }
}

#[test]
fn wrs_nto_obeys_tw() {
    // Zawrs: with TW, wrs.nto below machine mode may be illegal; wrs.sto never is.
    for (mode, tw, illegal) in [
        (Mode::M, true, false),
        (Mode::S, true, true),
        (Mode::U, true, true),
        (Mode::S, false, false),
        (Mode::U, false, false),
    ] {
        let mut b = Bench::rv64();
        b.set_csr(crate::bench::csr::PMPADDR0, u64::MAX);
        b.set_csr(crate::bench::csr::PMPCFG0, 0x1f);
        b.status(if tw { status::TW } else { 0 });
        b.set_mode(mode);
        assert_eq!(b.is_illegal(WRS_NTO), illegal, "{mode:?} {tw}");
        b.set_mode(mode);
        assert!(!b.is_illegal(WRS_STO));
    }
}
