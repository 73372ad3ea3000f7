//! The machine as a model (tandem trace protocol, Appendix A; the contract of
//! `hartrace_flow::Model`).

use hartrace_flow::{Absent, Cause, Effects, Mode, Model, Place, RegId, Step};
use hartrace_isa::Xlen;

use crate::asm::*;
use crate::bench::{BASE, Bench, CLINT, DATA, HANDLER, Recorder, S_HANDLER, WIDTHS, csr, status};

#[test]
fn every_kind_of_place_can_be_read_and_written() {
    for xlen in WIDTHS {
        let mut b = Bench::of(xlen);
        let value = xlen.wrap(0x8877_6655_4433_2210);
        let memory = |size| Place::Memory { addr: DATA, size };
        for (place, written, read) in [
            (Place::Pc, value, value),
            (Place::Mode, 1, 1),
            (Place::Mode, 0, 0),
            (Place::Mode, 3, 3),
            (Place::Reg(RegId::X(31)), value, value),
            (Place::Reg(RegId::X(0)), value, 0),
            (Place::Reg(RegId::F(0)), u64::MAX - 1, u64::MAX - 1),
            (Place::Reg(RegId::F(31)), 7, 7),
            (Place::Csr(csr::MSCRATCH), value, value),
            (Place::Csr(csr::MCYCLE), value, value),
            (Place::Csr(csr::MIDELEG), u64::MAX, 0x222),
            (memory(8), u64::MAX, u64::MAX),
            (memory(4), 0x1122_3344, 0x1122_3344),
            (memory(2), 0xffff_5566, 0x5566),
            (memory(1), 0x1ff, 0xff),
        ] {
            b.m.write(place, written).unwrap();
            assert_eq!(b.m.read(place), Ok(read), "{place:?}");
        }
        assert_eq!(b.mem(DATA, 8), 0xffff_ffff_1122_55ff);
    }
}

#[test]
fn narrow_registers_are_cut_to_their_width() {
    let mut b = Bench::rv32();
    for place in [
        Place::Pc,
        Place::Reg(RegId::X(5)),
        Place::Csr(csr::MSCRATCH),
        Place::Csr(csr::MEPC),
        Place::Csr(csr::MTVEC),
    ] {
        b.m.write(place, 0xffff_ffff_8000_1000).unwrap();
        assert_eq!(b.m.read(place), Ok(0x8000_1000), "{place:?}");
    }
    b.set_pc(BASE);
    b.one(MRET);
    assert_eq!(b.m.pc(), 0x8000_1000);
}

#[test]
fn what_is_not_there_is_absent() {
    let mut b = Bench::rv64();
    for place in [
        Place::Csr(0x999),
        Place::Csr(0xc80),
        Place::Reg(RegId::X(32)),
        Place::Reg(RegId::X(200)),
        Place::Reg(RegId::F(32)),
        Place::Memory { addr: 0, size: 4 },
        Place::Memory {
            addr: BASE - 4,
            size: 8,
        },
        Place::Memory {
            addr: CLINT,
            size: 4,
        },
        Place::Memory {
            addr: BASE,
            size: 9,
        },
    ] {
        assert_eq!(b.m.read(place), Err(Absent(place)), "{place:?}");
        assert_eq!(b.m.write(place, 1), Err(Absent(place)), "{place:?}");
    }
    assert_eq!(b.x(0), 0);
    let rom = Place::Memory {
        addr: 0x1000,
        size: 4,
    };
    assert_eq!(b.m.read(rom), Ok(0x297));
    for place in [rom, Place::Csr(0xf14)] {
        assert_eq!(b.m.write(place, 1), Err(Absent(place)));
    }
    for code in [2, 4, 5, 6, 7] {
        assert!(b.m.write(Place::Mode, code).is_err(), "mode {code}");
    }
    assert_eq!(b.mode(), Mode::M);
}

#[test]
fn no_register_is_changed_by_a_write_to_an_absent_one() {
    let mut b = Bench::rv64();
    b.set_x(1, 7);
    assert!(b.m.write(Place::Reg(RegId::X(33)), 9).is_err());
    assert_eq!(b.x(1), 7);
}

#[test]
fn writes_from_outside_hold_bits_programs_cannot_write() {
    let mut b = Bench::rv64();
    b.m.write(Place::Csr(csr::MIP), 0x800).unwrap();
    assert_eq!(b.csr(csr::MIP) & 0x800, 0x800, "MEIP");
}

/// A program with something of everything.
fn program(b: &mut Bench) {
    let code = [
        addi(A0, A0, 3),
        mul(A1, A0, A0),
        sd(A1, 0, A5),
        csrrs(A2, csr::MSCRATCH, A1),
        ECALL,
        amoadd_d(A3, A0, A5),
        fadd_d(RNE, 1, 2, 3),
        0xffff_ffff,
        beq(A0, ZERO, 8),
        lr_d(A4, A5),
        sc_d(A4, A0, A5),
        FENCE_I,
        csrr(T1, csr::MINSTRET),
        csrr(T2, csr::MCYCLE),
        jal(RA, -56),
    ];
    b.code(BASE, &code);
    b.code(
        HANDLER,
        &[
            csrr(T0, csr::MEPC),
            addi(T0, T0, 4),
            csrw(csr::MEPC, T0),
            MRET,
        ],
    );
    b.set_x(A5, DATA);
    b.set_f(2, 1.5f64.to_bits());
    b.status(status::FS);
}

#[test]
fn stepping_is_running_one_by_one() {
    for xlen in [Xlen::Rv64] {
        let (mut running, mut stepping) = (Bench::of(xlen), Bench::of(xlen));
        program(&mut running);
        program(&mut stepping);
        let mut recorder = Recorder::default();
        running.m.run(2000, &mut recorder);
        for (i, (step, effects)) in recorder.0.iter().enumerate() {
            let mut told = Effects::default();
            assert_eq!(stepping.m.step(&mut told), *step, "step {i}");
            assert_eq!(told, *effects, "step {i}");
        }
        assert_eq!(stepping.m.instructions(), running.m.instructions());
        assert_eq!(stepping.m.cycles(), running.m.cycles());
    }
}

#[test]
fn interrupts_come_when_they_are_told_to() {
    // Not by themselves, and masked or not.
    let mut b = Bench::rv64();
    b.set_csr(csr::MIE, u64::MAX);
    b.set_csr(csr::MIP, 0xaaa);
    b.status(status::MIE);
    let mut effects = Effects::default();
    assert!(matches!(b.m.step(&mut effects), Step::Insn(_)));
    b.set_csr(csr::MSTATUS, 0);
    b.set_csr(csr::MIE, 0);
    let step = b.m.interrupt(Cause::Interrupt(Some(7)), &mut effects);
    let Step::Trap(trap) = step else {
        panic!("{step:?}");
    };
    assert_eq!(
        (trap.trap.epc, trap.trap.handler),
        (Some(BASE + 4), Some(HANDLER))
    );
    assert_eq!(trap.bits, None);
    assert_eq!(b.csr(csr::MCAUSE), 1 << 63 | 7);
    assert_eq!((b.m.pc(), b.mode()), (HANDLER, Mode::M));
    assert_eq!(effects.csrs.len(), 4);
}

#[test]
fn interrupts_are_delegated_and_vectored_as_ever() {
    let mut b = Bench::rv64();
    b.set_csr(csr::MIDELEG, 0x222);
    b.set_csr(csr::STVEC, S_HANDLER | 1);
    b.set_mode(Mode::S);
    let mut effects = Effects::default();
    b.m.interrupt(Cause::Interrupt(Some(5)), &mut effects);
    assert_eq!((b.m.pc(), b.mode()), (S_HANDLER + 20, Mode::S));
    assert_eq!(b.csr(csr::SCAUSE), 1 << 63 | 5);
    // A machine's interrupt goes to the machine.
    b.m.interrupt(Cause::Interrupt(Some(11)), &mut effects);
    assert_eq!((b.m.pc(), b.mode()), (HANDLER, Mode::M));
    assert_eq!(effects.mode, Some(Mode::M));
}

#[test]
fn a_step_over_wfi_does_not_wait() {
    let mut b = Bench::rv64();
    b.code(BASE, &[WFI, addi(A0, ZERO, 5)]);
    let mut effects = Effects::default();
    b.m.step(&mut effects);
    b.m.step(&mut effects);
    assert_eq!((b.x(A0), b.m.pc()), (5, BASE + 8));
}

#[test]
fn a_fault_is_a_step() {
    let mut b = Bench::rv64();
    b.set_pc(0);
    let mut effects = Effects::default();
    let Step::Trap(trap) = b.m.step(&mut effects) else {
        panic!("no trap");
    };
    assert_eq!(trap.trap.cause, Cause::Exception(Some(1)));
    assert_eq!((trap.trap.epc, trap.bits), (Some(0), None));
    assert_eq!(b.m.pc(), HANDLER);
}

#[test]
fn reset_is_power_on() {
    let mut b = Bench::rv64();
    program(&mut b);
    b.run(100);
    Model::reset(&mut b.m);
    assert_eq!((b.m.pc(), b.mode(), b.m.instructions()), (BASE, Mode::M, 0));
    assert_eq!((b.csr(csr::MTVEC), b.csr(csr::MEPC), b.x(A0)), (0, 0, 0));
    assert_eq!(b.mem(BASE, 4), NOP.into(), "memory as loaded");
    assert_eq!(b.mem(DATA, 8), 0);
}

#[test]
fn translation_follows_state_set_from_outside() {
    // Mode and satp may change between two steps.
    let mut b = Bench::rv64();
    let root = BASE + 0x4_0000;
    b.set_mem(root + 16, 8, BASE >> 2 | 0xcf);
    b.set_x(A1, DATA);
    b.one(lw(A0, 0, A1));
    b.set_mode(Mode::S);
    b.set_csr(csr::SATP, 8 << 60 | root >> 12);
    b.one(lw(A0, 0, A1));
    b.one(sw(A0, 0, A1));
    b.set_mem(root + 16, 8, BASE >> 2 | 0xcb);
    assert_eq!(b.fault(&[sw(A0, 0, A1)]).0, 15, "seen without a fence");
}
