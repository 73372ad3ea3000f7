//! Traps and returns (privileged manual, 3.1.6 to 3.1.8, 3.1.14 to 3.1.16,
//! 3.3 and 10.1).

use hartrace_flow::Mode;

use crate::asm::*;
use crate::bench::{BASE, Bench, DATA, HANDLER, S_HANDLER, WIDTHS, csr, insns, status, traps};

const MODES: [Mode; 3] = [Mode::U, Mode::S, Mode::M];

#[test]
fn ecall_tells_the_mode_it_came_from() {
    // 3.3.1, codes 8, 9 and 11; epc is the ecall itself; xtval is 0.
    for xlen in WIDTHS {
        for (mode, code) in MODES.into_iter().zip([8, 9, 11]) {
            let mut b = Bench::of(xlen);
            b.set_mode(mode);
            assert_eq!(b.fault(&[NOP, ECALL]), (code, BASE + 4, 0));
            assert_eq!(b.csr(csr::MCAUSE), code.into());
            assert_eq!(b.csr(csr::MEPC), BASE + 4);
            assert_eq!(b.csr(csr::MTVAL), 0);
            assert_eq!(b.mode(), Mode::M);
        }
    }
}

#[test]
fn ebreak_traps_with_its_address() {
    // 3.3.1, code 3; 3.1.16 allows the address as trap value.
    for xlen in WIDTHS {
        let mut b = Bench::of(xlen);
        assert_eq!(b.fault(&[NOP, EBREAK]), (3, BASE + 4, BASE + 4));
        assert_eq!(b.fault(&[C_EBREAK]), (3, BASE, BASE));
    }
}

#[test]
fn entry_saves_mode_and_enable_and_masks() {
    // 3.1.6.1: xPIE takes xIE, xIE is cleared, xPP takes the mode.
    for mode in MODES {
        for enabled in [false, true] {
            let mut b = Bench::rv64();
            b.set_mode(mode);
            b.status(status::SIE | status::SPIE | status::SPP | status::MPRV);
            b.status(if enabled { status::MIE } else { status::MPIE });
            b.fault(&[ECALL]);
            let now = b.csr(csr::MSTATUS);
            assert_eq!(now & status::MIE, 0);
            assert_eq!(now & status::MPIE != 0, enabled);
            assert_eq!((now & status::MPP) >> 11, mode.code().into());
            let others = status::SIE | status::SPIE | status::SPP | status::MPRV;
            assert_eq!(now & others, others, "nothing else changes");
        }
    }
}

#[test]
fn mret_restores_mode_and_enable() {
    // 3.1.6.1: xIE takes xPIE, xPIE is set, xPP becomes the least mode, MPRV
    // is cleared unless the return is to M.
    for mode in MODES {
        for enabled in [false, true] {
            let mut b = Bench::rv64();
            b.set_csr(csr::MEPC, DATA);
            b.status(status::MPRV | u64::from(mode.code()) << 11);
            b.status(if enabled { status::MPIE } else { status::MIE });
            b.one(MRET);
            let now = b.csr(csr::MSTATUS);
            assert_eq!((b.m.pc(), b.mode()), (DATA, mode));
            assert_eq!(now & status::MIE != 0, enabled);
            assert_ne!(now & status::MPIE, 0);
            assert_eq!(now & status::MPP, 0);
            assert_eq!(now & status::MPRV != 0, mode == Mode::M);
        }
    }
}

#[test]
fn sret_restores_mode_and_enable() {
    // 3.1.6.1, 10.1.1.
    for from in [Mode::S, Mode::M] {
        for to in [Mode::U, Mode::S] {
            for enabled in [false, true] {
                let mut b = Bench::rv64();
                b.set_mode(from);
                b.set_csr(csr::SEPC, DATA);
                b.status(status::MPRV | if to == Mode::S { status::SPP } else { 0 });
                b.status(if enabled { status::SPIE } else { status::SIE });
                b.one(SRET);
                let now = b.csr(csr::MSTATUS);
                assert_eq!((b.m.pc(), b.mode()), (DATA, to));
                assert_eq!(now & status::SIE != 0, enabled);
                assert_ne!(now & status::SPIE, 0);
                assert_eq!(now & (status::SPP | status::MPRV), 0);
            }
        }
    }
}

#[test]
fn delegated_exceptions_go_to_supervisor_mode() {
    // 3.1.8, 10.1: scause, sepc, stval, SPP, SPIE, SIE; the machine's
    // registers stay as they are.
    for mode in [Mode::U, Mode::S] {
        let mut b = Bench::rv64();
        b.set_mode(mode);
        b.set_csr(csr::MEDELEG, 1 << 2);
        b.status(status::SIE | status::MIE);
        b.set_csr(csr::MCAUSE, 99);
        assert_eq!(b.fault(&[0xffff_ffff]), (2, BASE, 0xffff_ffff));
        assert_eq!((b.mode(), b.m.pc()), (Mode::S, S_HANDLER + 4));
        assert_eq!(b.csr(csr::SCAUSE), 2);
        assert_eq!(b.csr(csr::SEPC), BASE);
        assert_eq!(b.csr(csr::STVAL), 0xffff_ffff);
        assert_eq!(b.csr(csr::MCAUSE), 99);
        let now = b.csr(csr::MSTATUS);
        assert_eq!(now & (status::SIE | status::SPIE), status::SPIE);
        assert_eq!(now & status::SPP != 0, mode == Mode::S);
        assert_eq!(now & (status::MIE | status::MPP), status::MIE);
    }
}

#[test]
fn traps_never_go_to_a_lesser_mode() {
    // 3.1.8: "Traps never transition from a more-privileged mode to a
    // less-privileged mode."
    let mut b = Bench::rv64();
    b.set_csr(csr::MEDELEG, u64::MAX);
    b.fault(&[0]);
    assert_eq!((b.mode(), b.csr(csr::MCAUSE)), (Mode::M, 2));
    b.set_mode(Mode::S);
    b.fault(&[0]);
    assert_eq!((b.mode(), b.csr(csr::SCAUSE)), (Mode::S, 2));
    // Not delegated: from S to M.
    b.set_csr(csr::MEDELEG, 0);
    b.fault(&[0]);
    assert_eq!(b.mode(), Mode::M);
}

#[test]
fn every_exception_that_can_be_delegated_is() {
    // 3.1.8, codes of 3.1.15. Without C, to have misaligned targets; with
    // traps on misaligned accesses.
    let mut config = crate::bench::virt(hartrace_isa::Xlen::Rv64);
    config.isa = "rv64ia".to_owned();
    config.misaligned = false;
    for delegated in [false, true] {
        let mut b = Bench::new(config.clone());
        if delegated {
            b.set_csr(csr::MEDELEG, u64::MAX);
        }
        b.set_x(A1, DATA + 1);
        b.set_x(A2, 0x100);
        let cases = [
            (0, Mode::S, jal(ZERO, 6)),
            (1, Mode::S, jalr(ZERO, A2, 0)),
            (2, Mode::U, 0),
            (3, Mode::U, EBREAK),
            (4, Mode::S, lw(A0, 0, A1)),
            (5, Mode::U, lw(A0, 0, A2)),
            (6, Mode::U, sw(A0, 0, A1)),
            (7, Mode::S, sw(A0, 0, A2)),
            (8, Mode::U, ECALL),
            (9, Mode::S, ECALL),
        ];
        for (code, mode, word) in cases {
            b.set_mode(mode);
            assert_eq!(b.fault(&[word]).0, code);
            let (to, cause) = if delegated {
                (Mode::S, csr::SCAUSE)
            } else {
                (Mode::M, csr::MCAUSE)
            };
            assert_eq!((b.mode(), b.csr(cause)), (to, code.into()));
        }
        // Calls from machine mode cannot be delegated; the page faults are in
        // the tests of paging.
        b.set_mode(Mode::M);
        assert_eq!(b.fault(&[ECALL]).0, 11);
        assert_eq!(b.mode(), Mode::M);
    }
}

#[test]
fn exceptions_go_to_the_base_of_a_vector_table() {
    // 3.1.7, 10.1.2: only interrupts are vectored.
    let mut b = Bench::rv64();
    b.set_csr(csr::MTVEC, HANDLER | 1);
    b.set_csr(csr::STVEC, S_HANDLER | 1);
    assert_eq!(b.trap_step(&[ECALL]).trap.handler, Some(HANDLER));
    b.set_csr(csr::MEDELEG, 1 << 8);
    b.set_mode(Mode::U);
    assert_eq!(b.trap_step(&[ECALL]).trap.handler, Some(S_HANDLER));
}

#[test]
fn a_trap_in_a_handler_forgets_the_first() {
    // 3.1.6.1: one level of stack; software saves more.
    let mut b = Bench::rv64();
    b.set_mode(Mode::U);
    b.status(status::MIE);
    b.code(HANDLER, &[ECALL]);
    b.code(BASE, &[ECALL]);
    b.set_csr(csr::MTVEC, HANDLER);
    b.set_pc(BASE);
    let mut recorded = Vec::new();
    // The handler traps into itself for ever: look at the first three.
    while recorded.len() < 3 {
        let mut effects = hartrace_flow::Effects::default();
        recorded.push((hartrace_flow::Model::step(&mut b.m, &mut effects), effects));
    }
    let epcs: Vec<u64> = traps(&recorded).iter().filter_map(|t| t.epc).collect();
    assert_eq!(epcs, [BASE, HANDLER, HANDLER]);
    assert_eq!(b.csr(csr::MCAUSE), 11);
    let now = b.csr(csr::MSTATUS);
    assert_eq!(
        now & (status::MPP | status::MPIE | status::MIE),
        status::MPP
    );
}

#[test]
fn what_traps_does_not_retire() {
    // 3.1.10, 3.3.1: ecall and ebreak do not count in minstret.
    let mut b = Bench::rv64();
    for word in [ECALL, EBREAK, 0] {
        b.set_csr(csr::MINSTRET, 100);
        b.fault(&[NOP, word]);
        assert_eq!(b.csr(csr::MINSTRET), 102, "two nops");
    }
}

#[test]
fn returns_need_their_mode() {
    // 3.3.2: xRET in a lesser mode is illegal; 3.1.6.6: TSR.
    let mut b = Bench::rv64();
    b.set_mode(Mode::S);
    assert!(b.is_illegal(MRET));
    b.set_mode(Mode::U);
    assert!(b.is_illegal(MRET) && b.is_illegal(SRET));
    b.status(status::TSR);
    b.set_mode(Mode::S);
    assert!(b.is_illegal(SRET));
    b.set_csr(csr::SEPC, BASE);
    b.set_mode(Mode::M);
    assert!(!b.is_illegal(SRET), "machine mode may");
}

#[test]
fn tvm_keeps_the_supervisor_from_virtual_memory() {
    // 3.1.6.6: satp and sfence.vma trap in S; U never may.
    let mut b = Bench::rv64();
    b.set_mode(Mode::S);
    assert!(!b.is_illegal(sfence_vma()));
    assert!(!b.is_illegal(csrr(A0, csr::SATP)));
    b.status(status::TVM);
    assert!(b.is_illegal(sfence_vma()));
    assert!(b.is_illegal(csrr(A0, csr::SATP)));
    assert!(b.is_illegal(csrw(csr::SATP, ZERO)));
    b.set_mode(Mode::M);
    assert!(!b.is_illegal(sfence_vma()) && !b.is_illegal(csrr(A0, csr::SATP)));
    b.set_mode(Mode::U);
    assert!(b.is_illegal(sfence_vma()));
}

#[test]
fn tw_makes_waiting_illegal_below_machine_mode() {
    // 3.1.6.6, 3.3.3: in U it always is, as there is an S.
    let mut b = Bench::rv64();
    b.set_mode(Mode::U);
    assert!(b.is_illegal(WFI));
    b.set_mode(Mode::S);
    b.status(status::TW);
    assert!(b.is_illegal(WFI));
    b.set_mode(Mode::M);
    assert!(!b.is_illegal(WFI));
}

#[test]
fn floating_point_is_illegal_when_off() {
    // 3.1.6.7: FS = 0 makes instructions and CSR accesses illegal.
    for xlen in WIDTHS {
        let mut b = Bench::of(xlen);
        b.set_x(A1, DATA);
        let words = [
            fadd_s(RNE, 1, 2, 3),
            fadd_d(RNE, 1, 2, 3),
            fadd_h(RNE, 1, 2, 3),
            flw(1, 0, A1),
            fsd(1, 0, A1),
            fmv_x_w(A0, 1),
            fclass_s(A0, 1),
            fsgnj_d(1, 2, 3),
            csrr(A0, csr::FCSR),
            csrr(A0, csr::FFLAGS),
            csrw(csr::FRM, ZERO),
        ];
        for word in words {
            assert!(b.is_illegal(word), "{word:08x}");
        }
        b.status(status::FS_INITIAL);
        for word in words {
            assert!(!b.is_illegal(word), "{word:08x}");
        }
    }
}

#[test]
fn floating_point_is_illegal_without_f_whatever_fs_says() {
    // 3.1.6.7.
    let mut b = Bench::isa("rv64imac");
    b.status(status::FS);
    assert!(b.is_illegal(fadd_s(RNE, 1, 2, 3)));
    assert!(b.is_illegal(csrr(A0, csr::FCSR)));
    let mut b = Bench::isa("rv64if");
    b.status(status::FS);
    assert!(!b.is_illegal(fadd_s(RNE, 1, 2, 3)));
    assert!(b.is_illegal(fadd_d(RNE, 1, 2, 3)), "no D");
}

#[test]
fn mprv_lends_loads_and_stores_the_previous_mode() {
    // 3.1.6.3: rights as MPP, fetches as before. Protection keeps U out.
    let mut b = Bench::rv64();
    b.set_csr(csr::PMPCFG0, 0);
    b.set_x(A1, DATA);
    b.status(status::MPRV);
    assert_eq!(b.fault(&[lw(A0, 0, A1)]).0, 5, "as U");
    b.set_csr(csr::MSTATUS, status::MPRV | status::MPP_S);
    assert_eq!(b.fault(&[sw(A0, 0, A1)]).0, 7, "as S");
    b.set_csr(csr::MSTATUS, status::MPRV | status::MPP);
    b.one(lw(A0, 0, A1));
    b.set_csr(csr::MSTATUS, status::MPP_S);
    b.one(lw(A0, 0, A1));
}

#[test]
fn mpp_holds_modes_only() {
    // 3.1.6.1: WARL; 2 is no mode.
    let mut b = Bench::rv64();
    for (mpp, expected) in [(0, 0), (1, 1), (3, 3), (2, 0)] {
        b.set_x(A1, mpp << 11);
        b.exec(&[csrw(csr::MSTATUS, A1), csrr(A0, csr::MSTATUS)]);
        assert_eq!(b.x(A0) >> 11 & 3, expected);
    }
}

#[test]
fn exception_pcs_are_as_aligned_as_instructions() {
    // 3.1.14: bit 0 is zero; where IALIGN can be 32, bit 1 reads as zero.
    let mut b = Bench::rv64();
    b.set_x(A1, BASE + 0x103);
    b.exec(&[csrw(csr::MEPC, A1), csrr(A0, csr::MEPC)]);
    assert_eq!(b.x(A0), BASE + 0x102);
    let mut b = Bench::isa("rv64i");
    b.set_x(A1, BASE + 0x103);
    let steps = b.exec(&[csrw(csr::MEPC, A1), csrr(A0, csr::MEPC), MRET]);
    assert_eq!(b.x(A0), BASE + 0x100);
    assert_eq!(insns(&steps)[2].next, BASE + 0x100);
}

#[test]
fn mret_goes_on_where_the_trap_was() {
    // 3.3.2, the usual handler: skip the call and return.
    for xlen in WIDTHS {
        let mut b = Bench::of(xlen);
        b.set_mode(Mode::U);
        let handler = [
            csrr(T0, csr::MEPC),
            addi(T0, T0, 4),
            csrw(csr::MEPC, T0),
            MRET,
        ];
        b.code(HANDLER, &handler);
        b.code(
            BASE,
            &[
                addi(A0, ZERO, 1),
                ECALL,
                addi(A0, A0, 1),
                ECALL,
                addi(A0, A0, 1),
            ],
        );
        b.set_pc(BASE);
        b.run(3 + 2 * 4);
        assert_eq!((b.x(A0), b.mode(), b.m.pc()), (3, Mode::U, BASE + 20));
    }
}
