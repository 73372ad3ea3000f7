//! Zicbom, Zicboz and Zicbop (unprivileged manual, "Base Cache Management Operation").

use hartrace_flow::{Access, AccessKind, Mode};
use hartrace_hart::host::Host;
use hartrace_hart::{ConfigError, Machine};
use hartrace_isa::Xlen;

use crate::asm::*;
use crate::bench::{BASE, Bench, DATA, WIDTHS, csr, virt};
use crate::paging::{A, D, Paged, R, V, VA, W};

const SENVCFG: u16 = 0x10a;

const fn cbo(what: u32, rs1: u32) -> u32 {
    i_type(0x0f, 2, 0, rs1, what as i32)
}

const INVAL: u32 = cbo(0, A1);
const CLEAN: u32 = cbo(1, A1);
const FLUSH: u32 = cbo(2, A1);
const CBO_ZERO: u32 = cbo(4, A1);

/// A bench that runs in a lower mode, with all memory open to it.
fn below(mode: Mode, menvcfg: u64, senvcfg: u64) -> Bench {
    let mut b = Bench::rv64();
    b.set_csr(csr::PMPADDR0, u64::MAX);
    b.set_csr(csr::PMPCFG0, 0x1f);
    b.set_csr(csr::MENVCFG, menvcfg);
    b.set_csr(SENVCFG, senvcfg);
    b.set_x(A1, DATA);
    b.set_mode(mode);
    b
}

#[test]
fn cbo_zero_fills_the_block_of_an_address_with_zeros() {
    for xlen in WIDTHS {
        let mut b = Bench::of(xlen);
        for at in (0..256).step_by(8) {
            b.set_mem(DATA + at, 8, u64::MAX);
        }
        b.set_x(A1, DATA + 64 + 13);
        let effects = b.one(CBO_ZERO);
        for at in (0..256).step_by(8) {
            let zero = (64..128).contains(&at);
            assert_eq!(b.mem(DATA + at, 8), if zero { 0 } else { u64::MAX });
        }
        let store = |at| Access {
            kind: AccessKind::Store,
            size: 3,
            addr: DATA + 64 + at,
            paddr: Some(DATA + 64 + at),
            data: Some(0),
            operand: None,
        };
        let stores: Vec<Access> = (0..64).step_by(8).map(store).collect();
        assert_eq!(&*effects.accesses, stores);
    }
}

#[test]
fn the_size_of_a_block_is_a_setting() {
    for size in [16, 32, 128] {
        let mut config = virt(Xlen::Rv64);
        config.cache_block = size;
        let mut b = Bench::new(config);
        for at in (0..256).step_by(8) {
            b.set_mem(DATA + at, 8, u64::MAX);
        }
        b.set_x(A1, DATA + 128);
        let effects = b.one(CBO_ZERO);
        let zeros = (0..256).step_by(8).filter(|at| b.mem(DATA + at, 8) == 0);
        assert_eq!(zeros.count() as u64 * 8, size);
        assert_eq!(effects.accesses.len() as u64 * 8, size);
        assert!(!effects.incomplete);
    }
    for size in [0, 8, 48, 256] {
        let mut config = virt(Xlen::Rv64);
        config.cache_block = size;
        let refused = Machine::new(config, Host::silent()).err();
        assert_eq!(refused, Some(ConfigError::CacheBlock), "{size}");
    }
}

#[test]
fn code_that_cbo_zero_overwrites_is_gone() {
    let mut b = Bench::rv64();
    b.code(DATA, &[addi(A0, A0, 1), jalr(ZERO, RA, 0)]);
    b.set_x(A1, DATA);
    let steps = b.exec(&[jalr(RA, A1, 0), CBO_ZERO, jalr(RA, A1, 0), NOP]);
    assert_eq!(steps.len(), 4);
    b.run(2);
    assert_eq!(b.x(A0), 1);
    assert_eq!(b.csr(csr::MEPC), DATA, "zeros are illegal");
}

#[test]
fn menvcfg_and_senvcfg_enable_them_below_machine_mode() {
    // Each by its field; a user needs both.
    for (insn, field) in [
        (INVAL, 0x10),
        (INVAL, 0x30),
        (CLEAN, 0x40),
        (FLUSH, 0x40),
        (CBO_ZERO, 0x80),
    ] {
        let others = 0xf0 & !field & !if insn == INVAL { 0x30 } else { 0 };
        for (mode, menvcfg, senvcfg, legal) in [
            (Mode::M, 0, 0, true),
            (Mode::S, field, 0, true),
            (Mode::S, others, 0xf0, false),
            (Mode::U, field, field, true),
            (Mode::U, field, others, false),
            (Mode::U, others, field, false),
        ] {
            let mut b = below(mode, menvcfg, senvcfg);
            assert_eq!(
                b.is_illegal(insn),
                !legal,
                "{insn:#x} {mode:?} {menvcfg:#x}"
            );
        }
    }
}

#[test]
fn the_reserved_value_of_cbie_is_not_kept() {
    let mut b = Bench::rv64();
    for csr in [csr::MENVCFG, SENVCFG] {
        b.set_csr(csr, 0xe0);
        assert_eq!(b.csr(csr), 0xc0);
    }
}

#[test]
fn faults_are_those_of_stores_and_have_the_address_in_the_register() {
    let mut b = Bench::rv64();
    // Nothing is there; the last block of all is among them.
    for addr in [0x1_0007, u64::MAX, u64::MAX - 63, 0] {
        b.set_x(A1, addr);
        for insn in [INVAL, CLEAN, FLUSH, CBO_ZERO] {
            assert_eq!(b.fault(&[insn]), (7, BASE, addr));
        }
    }
}

#[test]
fn pages_must_permit_loads_for_management_and_stores_for_zeros() {
    let mut p = Paged::sv39();
    p.b.set_mode(Mode::M);
    p.b.set_csr(csr::MENVCFG, 0xf0);
    p.b.set_mode(Mode::S);
    let at = VA + 7;
    for insn in [INVAL, CLEAN, FLUSH, CBO_ZERO] {
        assert_eq!(p.access(at, insn), Some((15, at)));
    }
    // Readable, accessed, not dirty.
    p.map(VA, DATA, V | R | A, 0);
    for insn in [INVAL, CLEAN, FLUSH] {
        assert_eq!(p.access(at, insn), None);
    }
    assert_eq!(p.access(at, CBO_ZERO), Some((15, at)));
    p.map(VA, DATA, V | R | W | A, 0);
    assert_eq!(p.access(at, CBO_ZERO), Some((15, at)), "not dirty");
    p.map(VA, DATA, V | R | W | A | D, 0);
    assert_eq!(p.access(at, CBO_ZERO), None);
}

#[test]
fn a_block_that_may_be_stored_to_in_part_is_left_alone() {
    // A PMP entry that takes away the right to the last word of a block.
    let mut b = Bench::rv64();
    b.set_mem(DATA, 8, u64::MAX);
    b.set_csr(csr::PMPADDR0, (DATA + 60) >> 2);
    b.set_csr(csr::PMPADDR0 + 1, u64::MAX);
    b.set_csr(csr::PMPCFG0, 0x1f << 8 | 0x11);
    b.set_csr(csr::MENVCFG, 0xf0);
    b.set_x(A1, DATA);
    b.set_mode(Mode::S);
    assert_eq!(b.fault(&[CBO_ZERO]), (7, BASE, DATA));
    assert_eq!(b.mem(DATA, 8), u64::MAX);
}

#[test]
fn prefetches_do_nothing() {
    // Even where nothing is: they are hints.
    let mut b = Bench::rv64();
    b.set_x(A1, 0x10);
    for what in [0, 1, 3] {
        let effects = b.one(i_type(0x13, 6, 0, A1, what));
        assert!(effects.regs.is_empty() && effects.accesses.is_empty());
    }
}
