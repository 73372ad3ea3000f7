//! Zcmp and Zcmt (unprivileged manual, "Zc").

use hartrace_flow::{AccessKind, Cause, Mode, Step};
use hartrace_isa::Xlen;

use crate::asm::*;
use crate::bench::{BASE, Bench, DATA, WIDTHS, csr, insns, virt};
use crate::paging::{ALL, Paged, VA};

const JVT: u16 = 0x017;
const SAVED: [u32; 13] = [1, 8, 9, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27];

fn bench(xlen: Xlen) -> Bench {
    Bench::isa(&format!("rv{}imac_zicsr_zcmp_zcmt_smstateen", xlen.bits()))
}

fn count(list: u32) -> usize {
    if list == 15 { 13 } else { list as usize - 3 }
}

/// Bytes by which sp moves.
fn adjustment(xlen: Xlen, list: u32, more: u32) -> u64 {
    let bytes = count(list) as u64 * u64::from(xlen.bits() / 8);
    bytes.next_multiple_of(16) + 16 * u64::from(more)
}

/// Executes one compressed instruction that must retire.
fn one(b: &mut Bench, bits: u32) -> (hartrace_flow::Insn, hartrace_flow::Effects) {
    b.halfwords(BASE, &[bits]);
    b.set_pc(BASE);
    let steps = b.steps(1);
    assert_eq!(steps.len(), 1, "{steps:?}");
    (insns(&steps)[0], steps[0].1)
}

#[test]
fn push_stores_the_list_below_sp_and_pop_brings_it_back() {
    for xlen in WIDTHS {
        let bytes = u64::from(xlen.bits() / 8);
        for list in 4..=15 {
            for more in 0..4 {
                let mut b = bench(xlen);
                let top = DATA + 0x400;
                b.set_x(SP, top);
                for (i, &register) in SAVED.iter().enumerate() {
                    b.set_x(register, 100 + i as u64);
                }
                let (_, effects) = one(&mut b, cm_stack(Stack::Push, list, more));
                assert_eq!(b.x(SP), top - adjustment(xlen, list, more));
                // From the highest register at the highest address on.
                let registers = &SAVED[..count(list)];
                for (i, &register) in registers.iter().rev().enumerate() {
                    let at = top - bytes * (i as u64 + 1);
                    let value = b.x(register);
                    assert_eq!(b.mem(at, bytes as u8), value);
                    let access = effects.accesses[i];
                    assert_eq!((access.kind, access.addr), (AccessKind::Store, at));
                    assert_eq!(access.data, Some(value));
                }
                assert_eq!(effects.accesses.len(), registers.len());
                assert_eq!(effects.regs.len(), 1);
                for register in SAVED {
                    b.set_x(register, 0);
                }
                let (_, effects) = one(&mut b, cm_stack(Stack::Pop, list, more));
                assert_eq!(b.x(SP), top);
                for (i, &register) in SAVED.iter().enumerate() {
                    let expected = if i < count(list) { 100 + i as u64 } else { 0 };
                    assert_eq!(b.x(register), expected);
                }
                assert_eq!(effects.accesses.len(), registers.len());
                assert_eq!(effects.regs.len(), registers.len() + 1);
            }
        }
        let mut b = bench(xlen);
        for what in [Stack::Push, Stack::Pop, Stack::PopRet, Stack::PopRetZ] {
            assert!(b.is_illegal(cm_stack(what, 3, 0)), "a reserved list");
        }
    }
}

#[test]
fn popret_returns_and_popretz_returns_zero() {
    for xlen in WIDTHS {
        let bytes = (xlen.bits() / 8) as u8;
        for what in [Stack::PopRet, Stack::PopRetZ] {
            let mut b = bench(xlen);
            b.set_x(SP, DATA);
            b.set_x(A0, 7);
            let adjust = adjustment(xlen, 5, 1);
            b.set_mem(DATA + adjust - u64::from(bytes), bytes, 5);
            // Bit 0 of the address is dropped.
            b.set_mem(DATA + adjust - 2 * u64::from(bytes), bytes, BASE + 0x101);
            let (insn, _) = one(&mut b, cm_stack(what, 5, 1));
            assert_eq!((insn.next, b.x(8)), (BASE + 0x100, 5));
            assert_eq!(b.x(SP), DATA + adjust);
            assert_eq!(b.x(A0), if what == Stack::PopRet { 7 } else { 0 });
        }
    }
}

#[test]
fn pairs_move_between_saved_registers_and_arguments() {
    for xlen in WIDTHS {
        let mut b = bench(xlen);
        b.set_x(A0, 1);
        b.set_x(A1, 2);
        // cm.mvsa01 s7, s0: fields 7 and 0.
        one(&mut b, 0xac22 | 7 << 7);
        assert_eq!((b.x(23), b.x(8)), (1, 2));
        b.set_x(23, 3);
        // cm.mva01s s7, s7.
        one(&mut b, 0xac62 | 7 << 7 | 7 << 2);
        assert_eq!((b.x(A0), b.x(A1)), (3, 3));
        assert!(
            b.is_illegal(0xac22 | 2 << 7 | 2 << 2),
            "both to one register"
        );
    }
}

/// A bench in supervisor mode whose stack crosses into a page that is not there.
fn at_the_edge(isa: &str) -> Paged {
    let mut config = virt(Xlen::Rv64);
    config.isa = isa.to_owned();
    let mut p = Paged::new(config, 3);
    p.map(VA, DATA, ALL, 0);
    p
}

#[test]
fn a_push_that_faults_has_changed_nothing_and_can_be_repeated() {
    let mut p = at_the_edge("rv64imac_zicsr_zcmp");
    p.b.set_x(SP, VA + 24);
    for (i, &register) in SAVED.iter().enumerate() {
        p.b.set_x(register, 50 + i as u64);
    }
    p.b.halfwords(BASE, &[cm_stack(Stack::Push, 15, 0)]);
    p.b.set_pc(BASE);
    let steps = p.b.steps(1);
    let Step::Trap(trap) = steps[0].0 else {
        panic!("{steps:?}");
    };
    assert_eq!(trap.trap.cause, Cause::Exception(Some(15)));
    // The fourth register is the first one in the page before.
    assert_eq!((trap.trap.epc, trap.trap.tval), (Some(BASE), Some(VA - 8)));
    assert_eq!((p.b.x(SP), p.b.mem(DATA, 8)), (VA + 24, 0));
    p.map(VA - 0x1000, DATA + 0x1000, ALL, 0);
    p.b.set_mode(Mode::S);
    p.b.set_pc(BASE);
    p.b.run(1);
    assert_eq!(p.b.x(SP), VA + 24 - 112);
    assert_eq!((p.b.mem(DATA, 8), p.b.mem(DATA + 0x1ff8, 8)), (60, 59));
}

#[test]
fn a_pop_that_faults_has_changed_nothing() {
    let mut p = at_the_edge("rv64imac_zicsr_zcmp");
    // The last registers are in the page before, which is not there.
    p.b.set_x(SP, VA - 64);
    for &register in &SAVED {
        p.b.set_x(register, 5);
    }
    p.b.halfwords(BASE, &[cm_stack(Stack::PopRet, 15, 0)]);
    p.b.set_pc(BASE);
    let steps = p.b.steps(1);
    assert!(matches!(steps[0].0, Step::Trap(_)));
    assert_eq!(p.b.csr(csr::MTVAL), VA - 8);
    assert!(SAVED.iter().all(|&register| p.b.x(register) == 5));
    assert_eq!(p.b.x(SP), VA - 64);
}

#[test]
fn table_jumps_go_where_the_entry_says() {
    for xlen in WIDTHS {
        let bytes = u64::from(xlen.bits() / 8);
        let mut b = bench(xlen);
        b.exec(&[csrrwi(A0, JVT, 31)]);
        assert_eq!(b.csr(JVT), 0, "the mode is always 0");
        b.set_csr(JVT, DATA);
        for (index, links) in [(0, false), (31, false), (32, true), (255, true)] {
            b.set_mem(DATA + index * bytes, bytes as u8, BASE + 0x201);
            b.set_x(RA, 7);
            let (insn, effects) = one(&mut b, cm_table(index as u32));
            assert_eq!(insn.next, BASE + 0x200);
            assert_eq!(b.x(RA), if links { BASE + 2 } else { 7 });
            assert!(effects.accesses.is_empty(), "a fetch, not a load");
        }
    }
}

#[test]
fn the_table_is_fetched_with_the_rights_of_code() {
    // The pc of the trap is that of the jump, the value the address of the entry.
    use crate::paging::{A, D, R, V, W, X};
    let mut p = at_the_edge("rv64imac_zicsr_zcmt");
    p.b.set_csr(JVT, VA);
    p.b.set_mem(DATA + 8, 8, BASE + 0x100);
    let jump = |p: &mut Paged| {
        p.b.halfwords(BASE, &[cm_table(1)]);
        p.b.set_mode(Mode::S);
        p.b.set_pc(BASE);
        p.b.steps(1)[0].0
    };
    p.map(VA, DATA, V | X | A, 0);
    assert!(matches!(jump(&mut p), Step::Insn(insn) if insn.next == BASE + 0x100));
    p.map(VA, DATA, V | R | W | A | D, 0);
    let Step::Trap(step) = jump(&mut p) else {
        panic!("not executable");
    };
    assert_eq!(step.trap.cause, Cause::Exception(Some(12)));
    assert_eq!((step.trap.epc, step.trap.tval), (Some(BASE), Some(VA + 8)));
    let mut b = bench(Xlen::Rv64);
    b.set_csr(JVT, 0x40);
    b.halfwords(BASE, &[cm_table(0)]);
    b.set_pc(BASE);
    b.run(1);
    assert_eq!((b.csr(csr::MCAUSE), b.csr(csr::MTVAL)), (1, 0x40));
}

#[test]
fn state_enables_hide_the_table() {
    // Smstateen: bit 2 of mstateen0 and, for users, of sstateen0.
    const MSTATEEN0: u16 = 0x30c;
    const SSTATEEN0: u16 = 0x10c;
    for (mode, machine, supervisor, legal) in [
        (Mode::M, 0, 0, true),
        (Mode::S, 0, 4, false),
        (Mode::S, 4, 0, true),
        (Mode::U, 4, 0, false),
        (Mode::U, 4, 4, true),
        (Mode::U, 0, 4, false),
    ] {
        let mut b = bench(Xlen::Rv64);
        b.set_csr(csr::PMPADDR0, u64::MAX);
        b.set_csr(csr::PMPCFG0, 0x1f);
        b.set_csr(MSTATEEN0, machine);
        b.set_csr(SSTATEEN0, supervisor);
        b.set_csr(JVT, DATA);
        b.set_mem(DATA, 8, BASE + 0x100);
        b.set_mode(mode);
        assert_eq!(b.is_illegal(csrr(A0, JVT)), !legal, "{mode:?}");
        b.set_mode(mode);
        assert_eq!(b.is_illegal(cm_table(0)), !legal, "{mode:?}");
    }
}
