//! Page tables in memory (privileged manual, 3.1.18, 10.2.1, 10.3.1, 10.3.2):
//! marks, fences, tables and pages in odd places.

use hartrace_flow::Mode;
use hartrace_isa::Xlen;

use crate::asm::*;
use crate::bench::{BASE, DATA, HANDLER, SIZE, csr, insns, virt};
use crate::paging::{A, ALL, D, Paged, TABLES, V, VA, W};

#[test]
fn unused_pages_fault_unless_the_walker_marks_them() {
    // 10.3.1: Svade by default.
    for mut p in Paged::both() {
        p.map(VA, DATA, ALL & !(A | D), 0);
        assert_eq!(p.load(VA), Some((13, VA)));
        assert_eq!(p.fetch(VA), Some((12, VA)));
        p.map(VA, DATA, ALL & !D, 0);
        assert_eq!(p.load(VA), None);
        assert_eq!(p.store(VA), Some((15, VA)));
        p.map(VA, DATA, ALL & !A, 0);
        assert_eq!(p.store(VA), Some((15, VA)), "D without A");
        let (at, size) = (p.entry(VA, 0), p.size);
        assert_eq!(p.b.mem(at, size) & (A | D), D, "nothing is written");
    }
}

/// A walker that marks: loads set A, stores A and D.
fn marks(p: &mut Paged) {
    let (at, size) = (p.entry(VA, 0), p.size);
    p.map(VA, DATA, ALL & !(A | D), 0);
    assert_eq!(p.load(VA), None);
    assert_eq!(p.b.mem(at, size) & (A | D), A);
    assert_eq!(p.store(VA), None);
    assert_eq!(p.b.mem(at, size) & (A | D), A | D);
    p.map(VA, DATA, ALL & !(A | D), 0);
    p.b.set_mem(DATA, 4, NOP.into());
    assert_eq!(p.fetch(VA), None);
    assert_eq!(p.b.mem(at, size) & (A | D), A);
    // An access that is not allowed marks nothing.
    p.map(VA, DATA, ALL & !(A | D | W), 0);
    assert_eq!(p.store(VA), Some((15, VA)));
    assert_eq!(p.b.mem(at, size) & (A | D), 0);
}

#[test]
fn the_walker_marks_pages_where_the_machine_says_so() {
    // 10.3.1: hardware updating, Config::update_ad.
    for (xlen, levels) in [(Xlen::Rv32, 2), (Xlen::Rv64, 3)] {
        let mut config = virt(xlen);
        config.update_ad = true;
        marks(&mut Paged::new(config, levels));
    }
}

#[test]
fn the_walker_marks_pages_when_adue_is_set() {
    // 3.1.18, Svadu: menvcfg.ADUE; without it, Svade.
    for (isa, levels) in [("rv32imafdc_svadu", 2), ("rv64imafdc_svadu", 3)] {
        let mut config = virt(if levels == 2 { Xlen::Rv32 } else { Xlen::Rv64 });
        config.isa = isa.to_owned();
        let mut p = Paged::new(config, levels);
        p.map(VA, DATA, ALL & !(A | D), 0);
        assert_eq!(p.load(VA), Some((13, VA)));
        match levels {
            2 => p.b.set_csr(csr::MENVCFGH, 1 << 29),
            _ => p.b.set_csr(csr::MENVCFG, 1 << 61),
        }
        marks(&mut p);
    }
}

#[test]
fn sfence_vma_makes_changes_of_tables_seen() {
    // 10.2.1. The program changes the entry itself.
    for mut p in Paged::both() {
        p.map(VA, DATA, ALL, 0);
        p.b.set_mem(DATA, 4, 1);
        p.b.set_mem(DATA + 0x1000, 4, 2);
        let (at, store) = (p.entry(VA, 0), if p.size == 4 { sw } else { sd });
        p.b.set_x(A1, VA);
        p.b.set_x(A2, at);
        p.b.set_x(A3, (DATA + 0x1000) >> 12 << 10 | ALL);
        let code = [lw(A0, 0, A1), store(A3, 0, A2), sfence_vma(), lw(A4, 0, A1)];
        p.b.exec(&code);
        assert_eq!((p.b.x(A0), p.b.x(A4)), (1, 2));
        // For one address, and for all but global ones.
        p.b.set_x(A3, DATA >> 12 << 10 | ALL);
        p.b.exec(&[store(A3, 0, A2), sfence(A1, ZERO), lw(A4, 0, A1)]);
        assert_eq!(p.b.x(A4), 1);
    }
}

#[test]
fn a_new_root_is_seen_at_once() {
    // 10.1.11: a change of satp needs a fence only for entries that were
    // cached; this hart keeps none over it.
    for mut p in Paged::both() {
        p.map(VA, DATA, ALL, 0);
        p.b.set_mem(DATA, 4, 7);
        p.b.set_x(A1, VA);
        p.b.one(lw(A0, 0, A1));
        let satp = p.b.csr(csr::SATP);
        p.b.set_x(A2, satp ^ (TABLES ^ p.free) >> 12);
        // The new root maps the program and nothing else.
        let (large, old) = (if p.size == 4 { 1 } else { 2 }, p.size);
        let at = p.entry(BASE, large);
        let value = p.b.mem(at, old);
        p.b.set_mem(p.free + (at - TABLES), old, value);
        assert_eq!(
            p.b.fault(&[csrw(csr::SATP, A2), lw(A0, 0, A1)]),
            (13, BASE + 4, VA)
        );
    }
}

#[test]
fn tables_outside_memory_are_access_faults() {
    // 10.3.2 step 2: "an access-fault exception corresponding to the original
    // access type".
    for mut p in Paged::both() {
        p.set_entry(VA, 1, (BASE + SIZE) >> 12 << 10 | V);
        assert_eq!(p.load(VA), Some((5, VA)));
        assert_eq!(p.store(VA), Some((7, VA)));
        assert_eq!(p.fetch(VA), Some((1, VA)));
        assert_eq!(p.access(VA, amoadd_w(A0, A0, A1)), Some((7, VA)));
        assert_eq!(p.access(VA, lr_w(A0, A1)), Some((5, VA)));
    }
}

#[test]
fn pages_outside_memory_are_access_faults() {
    // 10.3.2; the trap value is the virtual address (3.1.16).
    for mut p in Paged::both() {
        p.map(VA, BASE + SIZE, ALL, 0);
        assert_eq!(p.load(VA + 4), Some((5, VA + 4)));
        assert_eq!(p.store(VA + 4), Some((7, VA + 4)));
        assert_eq!(p.fetch(VA + 4), Some((1, VA + 4)));
    }
}

#[test]
fn atomics_need_the_rights_of_stores() {
    // 10.3.2 and unprivileged 14: AMO and SC raise store page faults, LR load
    // page faults.
    for mut p in Paged::both() {
        p.map(VA, DATA, ALL & !W, 0);
        assert_eq!(p.access(VA, amoadd_w(A0, A0, A1)), Some((15, VA)));
        assert_eq!(p.access(VA, sc_w(A0, A0, A1)), Some((15, VA)));
        assert_eq!(p.access(VA, lr_w(A0, A1)), None);
        p.map(VA, DATA, 0, 0);
        assert_eq!(p.access(VA, lr_w(A0, A1)), Some((13, VA)));
    }
}

#[test]
fn an_access_across_pages_needs_both() {
    // 3.1.16: the trap value is in the page that is missing.
    for mut p in Paged::both() {
        p.map(VA, DATA, ALL, 0);
        let (at, next) = (VA + 0xffe, VA + 0x1000);
        assert_eq!(p.load(at), Some((13, next)));
        p.b.set_x(A0, u64::MAX);
        assert_eq!(p.store(at), Some((15, next)));
        assert_eq!(p.b.mem(DATA + 0xffe, 2), 0, "not even the first half");
        // The pages need not be neighbours in memory.
        p.map(next, DATA + 0x5000, ALL, 0);
        p.b.set_x(A0, 0x4433_2211);
        assert_eq!(p.store(at), None);
        assert_eq!(
            (p.b.mem(DATA + 0xffe, 2), p.b.mem(DATA + 0x5000, 2)),
            (0x2211, 0x4433)
        );
        assert_eq!(p.load(at), None);
        assert_eq!(p.b.x(A0), 0x4433_2211);
    }
}

#[test]
fn an_instruction_across_pages_needs_both() {
    // 3.1.14, 3.1.16: epc is the instruction, the trap value its second half.
    for mut p in Paged::both() {
        p.map(VA, DATA, ALL, 0);
        let (at, next) = (VA + 0xffe, VA + 0x1000);
        let word = addi(A0, ZERO, 77);
        p.b.halfwords(DATA + 0xffe, &[word]);
        assert_eq!(p.fetch(at), Some((12, next)));
        p.map(next, DATA + 0x5000, ALL, 0);
        p.b.halfwords(DATA + 0x5000, &[word >> 16]);
        assert_eq!(p.fetch(at), None);
        assert_eq!(p.b.x(A0), 77);
    }
}

#[test]
fn an_instruction_across_pages_is_where_its_pages_are() {
    // 10.3: machine mode has run it with its neighbour; elsewhere the second
    // half is in another page, or in none, or may not be executed.
    for mut p in Paged::both() {
        let (at, next) = (VA + 0xffe, VA + 0x1000);
        let (near, far) = (addi(A0, ZERO, 5), addi(A0, ZERO, 77));
        p.b.halfwords(DATA + 0xffe, &[near, near >> 16]);
        p.b.halfwords(DATA + 0x5000, &[far >> 16]);
        let machine = |p: &mut Paged| {
            p.b.set_mode(Mode::M);
            p.b.set_pc(DATA + 0xffe);
            p.b.run(1);
            assert_eq!(p.b.x(A0), 5);
            p.b.set_mode(Mode::S);
        };
        machine(&mut p);
        p.map(VA, DATA, ALL, 0);
        assert_eq!(p.fetch(at), Some((12, next)));
        machine(&mut p);
        p.map(next, DATA + 0x5000, ALL, 0);
        assert_eq!(p.fetch(at), None);
        assert_eq!(p.b.x(A0), 77);
        machine(&mut p);
        // Locked and not executable, for every mode.
        p.b.set_csr(csr::PMPADDR0 + 1, 0xffff_ffff);
        p.b.set_csr(csr::PMPADDR0, (DATA + 0x1000) >> 2 | 0x1ff);
        p.b.set_csr(csr::PMPCFG0, 0x1f00 | 0x99);
        p.b.set_mode(Mode::M);
        p.b.set_x(A1, DATA + 0xffe);
        let fault = (1, DATA + 0xffe, DATA + 0x1000);
        assert_eq!(p.b.fault(&[jalr(ZERO, A1, 0)]), fault);
    }
}

#[test]
fn page_faults_can_be_delegated() {
    // 3.1.8: codes 12, 13 and 15.
    for mut p in Paged::both() {
        // The handler of supervisor mode is in the large page.
        p.b.set_csr(csr::MEDELEG, 0xb000);
        for (code, word) in [
            (13, lw(A0, 0, A1)),
            (15, sw(A0, 0, A1)),
            (12, jalr(0, A1, 0)),
        ] {
            p.b.set_x(A1, VA);
            assert_eq!(p.b.fault(&[word]).0, code);
            assert_eq!((p.b.mode(), p.b.csr(csr::SCAUSE)), (Mode::S, code.into()));
            assert_eq!(p.b.csr(csr::STVAL), VA);
        }
    }
}

#[test]
fn the_same_page_may_have_two_names() {
    // 10.3: aliases; a store through one is a change of code under the other.
    for mut p in Paged::both() {
        p.map(VA, DATA, ALL, 0);
        p.map(VA + 0x1000, DATA, ALL, 0);
        p.b.code(DATA, &[addi(A0, ZERO, 1), jalr(ZERO, RA, 0)]);
        p.b.set_x(A1, VA);
        p.b.set_x(A2, VA + 0x1000);
        p.b.set_x(A3, addi(A0, ZERO, 2).into());
        p.b.code(BASE, &[jalr(RA, A1, 0), sw(A3, 0, A2), jalr(RA, A1, 0)]);
        p.b.set_pc(BASE);
        let steps = p.b.steps(7);
        assert_eq!(insns(&steps).len(), 7);
        assert_eq!(p.b.x(A0), 2);
        assert_ne!(p.b.m.pc(), HANDLER);
    }
}

#[test]
fn code_beside_page_tables_is_never_stale() {
    // A walk that marks an entry changes a page that holds code; a store to
    // that code right behind it is still seen.
    let mut config = virt(Xlen::Rv64);
    config.update_ad = true;
    let mut p = Paged::new(config, 3);
    // The first gigabyte, not yet used; its entry is the first of the root.
    p.map(0, BASE, ALL & !(A | D), 2);
    let at = TABLES + 0x800;
    p.b.set_x(A1, DATA - BASE);
    p.b.set_x(A2, at);
    p.b.set_x(A3, addi(A0, ZERO, 9).into());
    let code = [lw(A4, 0, A1), sw(A3, 8, A2), addi(A0, ZERO, 2)];
    p.b.code(at, &code);
    p.b.set_pc(at);
    let steps = p.b.steps(3);
    assert_eq!(insns(&steps).len(), 3);
    assert_eq!(p.b.mem(TABLES, 8) & A, A);
    assert_eq!(p.b.x(A0), 9);
}

#[test]
fn a_fence_of_one_address_is_for_all_of_its_page() {
    // 10.2.1: a large page is one leaf, whichever of its addresses is named. Its
    // pieces are remembered one by one.
    for mut p in Paged::both() {
        let size = if p.size == 4 { 0x40_0000 } else { 0x20_0000 };
        let large = VA & !(size - 1);
        p.map(large, BASE, ALL, 1);
        let (at, store) = (p.entry(large, 1), if p.size == 4 { sw } else { sd });
        p.b.set_mem(DATA, 4, 7);
        p.b.set_x(A1, large + (DATA - BASE));
        p.b.set_x(A2, at);
        p.b.set_x(A3, 0);
        p.b.set_x(A5, large + size - 8);
        let code = [
            lw(A0, 0, A1),
            store(A3, 0, A2),
            sfence(A5, ZERO),
            lw(A0, 0, A1),
        ];
        let fault = (13, BASE + 12, large + (DATA - BASE));
        assert_eq!(p.b.fault(&code), fault);
        assert_eq!(p.b.x(A0), 7);
    }
}

#[test]
fn a_fence_of_one_address_is_for_code_too() {
    // 10.2.1: the page of a function is exchanged under the program; blocks that it
    // has run are remembered by virtual address.
    for mut p in Paged::both() {
        p.map(VA, DATA, ALL, 0);
        let (at, store) = (p.entry(VA, 0), if p.size == 4 { sw } else { sd });
        for (page, value) in [(DATA, 1), (DATA + 0x1000, 2)] {
            p.b.code(page, &[addi(A0, A0, value), jalr(ZERO, RA, 0)]);
        }
        p.b.set_x(A0, 0);
        p.b.set_x(A1, VA);
        p.b.set_x(A2, at);
        p.b.set_x(A3, (DATA + 0x1000) >> 12 << 10 | ALL);
        let code = [
            jalr(RA, A1, 0),
            jalr(RA, A1, 0),
            store(A3, 0, A2),
            sfence(A1, ZERO),
            jalr(RA, A1, 0),
        ];
        p.b.code(BASE, &code);
        p.b.set_pc(BASE);
        p.b.run(11);
        assert_eq!(p.b.x(A0), 1 + 1 + 2);
    }
}

#[test]
fn an_instruction_across_pages_follows_both() {
    // It is run again and again; then its second half is stored to, and then its
    // second page is exchanged.
    for mut p in Paged::both() {
        let (at, next) = (VA + 0xffe, VA + 0x1000);
        p.map(VA, DATA, ALL, 0);
        p.map(next, DATA + 0x5000, ALL, 0);
        let (entry, store) = (p.entry(next, 0), if p.size == 4 { sw } else { sd });
        let [one, two, four] = [1, 2, 4].map(|value| addi(A0, A0, value));
        let back = jalr(ZERO, RA, 0);
        p.b.halfwords(DATA + 0xffe, &[one]);
        p.b.halfwords(DATA + 0x5000, &[one >> 16, back, back >> 16]);
        p.b.halfwords(DATA + 0x6000, &[four >> 16, back, back >> 16]);
        p.b.set_x(A0, 0);
        p.b.set_x(A1, at);
        p.b.set_x(A2, entry);
        p.b.set_x(A3, (DATA + 0x6000) >> 12 << 10 | ALL);
        p.b.set_x(A4, next);
        p.b.set_x(A5, u64::from(two >> 16));
        let code = [
            jalr(RA, A1, 0),
            jalr(RA, A1, 0),
            sh(A5, 0, A4),
            jalr(RA, A1, 0),
            store(A3, 0, A2),
            sfence(A4, ZERO),
            jalr(RA, A1, 0),
        ];
        p.b.code(BASE, &code);
        p.b.set_pc(BASE);
        p.b.run(15);
        assert_eq!(p.b.x(A0), 1 + 1 + 2 + 4);
    }
}
