//! Svnapot, Svpbmt and Svinval (privileged manual, chapters 11 to 13 of 20240411), and
//! page tables made to hurt.

use hartrace_flow::Mode;
use hartrace_isa::Xlen;

use crate::asm::*;
use crate::bench::{BASE, Bench, DATA, SIZE, csr, status, virt};
use crate::paging::{A, ALL, D, Paged, R, TABLES, U, V, VA, W, X};

const N: u64 = 1 << 63;
const PBMT: u32 = 61;
const PBMTE: u64 = 1 << 62;
const SINVAL_VMA: u32 = 0x1600_0073;
const SFENCE_W_INVAL: u32 = 0x1800_0073;
const SFENCE_INVAL_IR: u32 = 0x1810_0073;

/// 64 KiB of memory, aligned.
const BIG: u64 = BASE + 0x8_0000;

#[test]
fn a_napot_entry_maps_64_kib() {
    // Svnapot: ppn[3:0] is 1000, and those bits come from the address.
    let mut p = Paged::sv39();
    let va = 0x1234_0000;
    for page in 0..16 {
        let at = va + page * 0x1000;
        p.set_entry(at, 0, N | (BIG >> 12 | 8) << 10 | ALL);
        p.b.set_mem(BIG + page * 0x1000 + 8, 4, 100 + page);
        assert_eq!(p.load(at + 8), None);
        assert_eq!(p.b.x(A0), 100 + page);
    }
    p.b.set_mem(BIG + 0x3000, 4, NOP.into());
    assert_eq!(p.fetch(va + 0x3000), None);
}

#[test]
fn other_napot_entries_are_reserved() {
    for low in (0..16).filter(|&low| low != 8) {
        let mut p = Paged::sv39();
        p.set_entry(VA, 0, N | (BIG >> 12 | low) << 10 | ALL);
        assert_eq!(p.load(VA), Some((13, VA)), "{low}");
    }
    // Not in superpages and not in pointers.
    let mut p = Paged::sv39();
    p.set_entry(VA & !0x1f_ffff, 1, N | (BASE >> 12 | 8) << 10 | ALL);
    assert_eq!(p.load(VA), Some((13, VA)));
    let mut p = Paged::sv39();
    p.set_entry(VA, 0, N | (BIG >> 12 | 8) << 10 | ALL);
    let at = p.entry(VA, 1);
    let pointer = p.b.mem(at, 8);
    p.b.set_mem(at, 8, pointer | N);
    assert_eq!(p.load(VA), Some((13, VA)));
    // Without Svnapot, N is reserved.
    let mut config = virt(Xlen::Rv64);
    config.isa = "rv64gc".to_owned();
    let mut p = Paged::new(config, 3);
    p.set_entry(VA, 0, N | (BIG >> 12 | 8) << 10 | ALL);
    assert_eq!(p.load(VA), Some((13, VA)));
}

#[test]
fn a_fence_of_one_address_is_for_all_64_kib() {
    let mut p = Paged::sv39();
    let va = 0x1234_0000;
    for page in 0..16 {
        p.set_entry(va + page * 0x1000, 0, N | (BIG >> 12 | 8) << 10 | ALL);
    }
    p.b.set_mem(BIG + 0x5000, 4, 1);
    p.b.set_mem(DATA + 0x5000, 4, 2);
    p.b.set_x(A1, va + 0x5000);
    p.b.set_x(A2, va);
    // The entry is rewritten by the program itself, and another page of it is fenced.
    let entry = p.entry(va + 0x5000, 0);
    p.map(TABLES & !0x1f_ffff, TABLES & !0x1f_ffff, ALL, 1);
    p.b.set_x(A3, entry);
    p.b.set_x(A4, (DATA + 0x5000) >> 12 << 10 | ALL);
    p.b.exec(&[
        lw(A0, 0, A1),
        sd(A4, 0, A3),
        sfence(A2, ZERO),
        lw(A5, 0, A1),
    ]);
    assert_eq!((p.b.x(A0), p.b.x(A5)), (1, 2));
}

#[test]
fn memory_types_are_reserved_until_pbmte_is_set() {
    for (kind, on, legal) in [
        (0, false, true),
        (1, false, false),
        (2, false, false),
        (1, true, true),
        (2, true, true),
        (3, true, false),
    ] {
        let mut p = Paged::sv39();
        p.b.set_csr(csr::MENVCFG, if on { PBMTE } else { 0 });
        p.map(VA, DATA, ALL | kind << PBMT, 0);
        let expected = (!legal).then_some((13, VA));
        assert_eq!(p.load(VA), expected, "{kind} {on}");
    }
    // In pointers they are always reserved.
    let mut p = Paged::sv39();
    p.b.set_csr(csr::MENVCFG, PBMTE);
    p.map(VA, DATA, ALL, 0);
    let at = p.entry(VA, 1);
    let pointer = p.b.mem(at, 8);
    p.b.set_mem(at, 8, pointer | 1 << PBMT);
    assert_eq!(p.load(VA), Some((13, VA)));
}

#[test]
fn sinval_vma_is_a_fence_between_two_others() {
    let mut p = Paged::sv39();
    p.map(VA, DATA, ALL, 0);
    p.b.set_mem(DATA, 4, 1);
    p.b.set_mem(DATA + 0x1000, 4, 2);
    let entry = p.entry(VA, 0);
    p.map(TABLES & !0x1f_ffff, TABLES & !0x1f_ffff, ALL, 1);
    p.b.set_x(A1, VA);
    p.b.set_x(A3, entry);
    p.b.set_x(A4, (DATA + 0x1000) >> 12 << 10 | ALL);
    p.b.exec(&[
        lw(A0, 0, A1),
        sd(A4, 0, A3),
        SFENCE_W_INVAL,
        SINVAL_VMA | A1 << 15,
        SFENCE_INVAL_IR,
        lw(A5, 0, A1),
    ]);
    assert_eq!((p.b.x(A0), p.b.x(A5)), (1, 2));
}

#[test]
fn svinval_needs_rights() {
    // sinval.vma as sfence.vma does; the other two only not in user mode. Those of the
    // hypervisor are illegal without one.
    for (mode, tvm, sinval, fences) in [
        (Mode::M, true, true, true),
        (Mode::S, false, true, true),
        (Mode::S, true, false, true),
        (Mode::U, false, false, false),
    ] {
        let mut b = Bench::rv64();
        b.set_csr(csr::PMPADDR0, u64::MAX);
        b.set_csr(csr::PMPCFG0, 0x1f);
        b.status(if tvm { status::TVM } else { 0 });
        for (insn, legal) in [
            (SINVAL_VMA, sinval),
            (SFENCE_W_INVAL, fences),
            (SFENCE_INVAL_IR, fences),
            (0x2600_0073, false),
            (0x6600_0073, false),
        ] {
            b.set_mode(mode);
            assert_eq!(b.is_illegal(insn), !legal, "{insn:#x} {mode:?}");
        }
    }
    let mut b = Bench::isa("rv64gc");
    assert!(b.is_illegal(SINVAL_VMA));
}

/// Every access through every table ends: with a value or with a trap.
#[test]
fn tables_that_loop_or_lie_end_in_faults() {
    let clint = 0x0200_0000u64;
    for levels in [3, 4, 5] {
        for value in [
            // The root is its own next table, at all levels.
            TABLES >> 12 << 10 | V,
            // Tables in a device, outside memory, and at the last page of memory.
            clint >> 12 << 10 | V,
            0x1_0000 << 10 | V,
            (BASE + SIZE - 0x1000) >> 12 << 10 | V,
            (BASE + SIZE) >> 12 << 10 | V,
            0x0fff_ffff_ffff << 10 | V,
            // Leaves that are not aligned, or whose page ends past all addresses.
            1 << 10 | ALL,
            0x0fff_ffff_ffff << 10 | ALL,
            u64::MAX >> 10,
            u64::MAX,
            W | V,
            X | W | V | A | D,
            V | R | U | A,
        ] {
            let mut p = Paged::new(virt(Xlen::Rv64), levels);
            let root = |va: u64| va >> (12 + 9 * (levels - 1)) & 511;
            let far = [0, VA, 0x40_0000_0000, 1 << 38, 1 << 55, 1 << 56, 1 << 63];
            let top = [u64::MAX - 7, u64::MAX << 38, u64::MAX << 47, u64::MAX << 56];
            // The program itself stays mapped.
            let places = far.into_iter().chain(top);
            for va in places.filter(|&va| root(va) != root(BASE)) {
                let at = TABLES + root(va) * 8;
                p.b.set_mem(at, 8, value);
                let loaded = p.load(va);
                assert!(loaded.is_none_or(|(code, _)| matches!(code, 5 | 13)));
                let stored = p.store(va);
                assert!(stored.is_none_or(|(code, _)| matches!(code, 7 | 15)));
                // What was stored may have been a table.
                p.b.set_mem(at, 8, value);
                p.fetch_anywhere(va);
            }
        }
    }
}

#[test]
fn the_last_entry_of_memory_can_be_a_leaf() {
    let last = BASE + SIZE - 0x1000;
    let mut p = Paged::sv39();
    // The last entry of a table in the last page maps the last page of its gigabyte.
    let root = VA >> 30 & 511;
    p.b.set_mem(TABLES + root * 8, 8, last >> 12 << 10 | V);
    p.b.set_mem(last + 511 * 8, 8, (last & !0x1f_ffff) >> 12 << 10 | ALL);
    let va = (VA & !0x3fff_ffff) + 511 * 0x20_0000;
    assert_eq!(p.load(va + (last & 0x1f_ffff)), None);
    assert_eq!(p.b.x(A0), p.b.mem(last, 4));
    assert_eq!(
        p.load(va + 0x1f_fffc),
        Some((5, va + 0x1f_fffc)),
        "no memory there"
    );
}
