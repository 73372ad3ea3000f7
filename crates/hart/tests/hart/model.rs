//! The machine as a model (tandem trace protocol, Appendix A; the contract of
//! `hartrace_flow::Model`).

use core::ops::ControlFlow;

use hartrace_flow::{Absent, Cause, Effects, HartId, Mode, Model, Place, RegId, Step, steps_of};
use hartrace_hart::host::Host;
use hartrace_hart::{Machine, Region};
use hartrace_isa::Xlen;
use hartrace_testkit::Random;

use crate::asm::*;
use crate::bench::{
    BASE, Bench, CLINT, DATA, HANDLER, MTIME, MTIMECMP, Recorder, S_HANDLER, SIZE, WIDTHS, csr,
    status, virt,
};

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

/// All memory that is not zero.
fn memory(m: &Machine) -> Vec<(u64, Vec<u8>)> {
    let mut all = Vec::new();
    m.memory(&mut |addr, bytes| all.push((addr, bytes.to_vec())));
    all
}

/// All registers and CSRs.
fn state(m: &Machine) -> Vec<(Place, u64)> {
    let registers = (0..32).flat_map(|n| [RegId::X(n), RegId::F(n)]);
    let places = registers.map(Place::Reg).chain([Place::Pc, Place::Mode]);
    let mut all: Vec<_> = places
        .map(|place| (place, m.read(place).unwrap()))
        .collect();
    m.csrs(&mut |csr, value| all.push((Place::Csr(csr), value)));
    all
}

/// Code with everything that is not straight: two lengths, an instruction in
/// two pages, code that is changed under way, a device, traps, a wait, a
/// fence.
fn crooked(b: &mut Bench) {
    let split = addi(A1, A1, 7);
    b.code(BASE + 0xff0, &[sw(A3, 4, A2), addi(A0, A0, 1), FENCE_I]);
    b.halfwords(BASE + 0xffc, &[C_NOP]);
    b.halfwords(BASE + 0xffe, &[split, split >> 16, C_NOP]);
    // Every other time round the second instruction of the loop is another.
    b.code(
        BASE + 0x1004,
        &[
            xor(A3, A3, A4),
            lw(T1, 0, 8),
            sw(A0, 0, 9),
            WFI,
            ECALL,
            0xffff_ffff,
            jal(
                ZERO,
                BASE.wrapping_add(0xff0).wrapping_sub(BASE + 0x101c) as i64,
            ),
        ],
    );
    b.code(
        S_HANDLER,
        &[
            csrr(T0, csr::MEPC),
            addi(T0, T0, 4),
            csrw(csr::MEPC, T0),
            MRET,
        ],
    );
    b.set_csr(csr::MTVEC, S_HANDLER);
    b.set_pc(BASE + 0xff0);
    b.set_x(A2, BASE + 0xff0);
    b.set_x(A3, addi(A0, A0, 16).into());
    b.set_x(A4, (addi(A0, A0, 16) ^ addi(A0, A0, 256)).into());
    b.set_x(8, MTIME);
    b.set_x(9, MTIMECMP);
}

#[test]
fn steps_in_a_row_end_where_they_are_told_to() {
    for xlen in WIDTHS {
        for count in 1..45 {
            let (mut row, mut single, mut limit) =
                (Bench::of(xlen), Bench::of(xlen), Bench::of(xlen));
            for b in [&mut row, &mut single, &mut limit] {
                crooked(b);
            }
            // Twice, so that the second row goes over decoded code.
            for _ in 0..2 {
                let mut seen = Vec::new();
                let end = row.m.steps(u64::MAX, &mut |step, effects| {
                    seen.push((*step, *effects));
                    match seen.len() == count {
                        true => ControlFlow::Break(()),
                        false => ControlFlow::Continue(()),
                    }
                });
                assert_eq!((end, seen.len()), (ControlFlow::Break(()), count));
                let mut again = Vec::new();
                let end = limit.m.steps(count as u64, &mut |step, effects| {
                    again.push((*step, *effects));
                    ControlFlow::Continue(())
                });
                assert_eq!(end, ControlFlow::Continue(()));
                assert_eq!(again, seen);
                for told in seen {
                    let mut effects = Effects::default();
                    assert_eq!((single.m.step(&mut effects), effects), told);
                }
                assert_eq!(state(&row.m), state(&single.m), "{count} steps");
                assert_eq!(state(&limit.m), state(&single.m), "{count} steps");
            }
            assert_eq!(memory(&row.m), memory(&single.m), "{count} steps");
            // What else there is shows in how it goes on.
            assert_eq!(row.steps(50), single.steps(50), "behind {count} steps");
        }
    }
}

/// Lets the machine run ahead and confirms fewer instructions than there are, again and again:
/// it must be where single steps lead. Gives how many there were, and how many of them were
/// taken back.
fn go_ahead(ahead: &mut Bench, single: &mut Bench, random: &mut Random) -> (u64, u64) {
    let (mut all, mut back) = (0, 0);
    for round in 0..200 {
        let limit = 1 + random.below(40);
        let mut seen = Recorder::default();
        let mut right = 0;
        let count = ahead.m.advance(limit, &mut |code| {
            steps_of(&mut seen, HartId(0), code);
            let count = code.count;
            assert_eq!(seen.0.len() as u64, count);
            right = match random.below(3) {
                0 => count,
                _ => random.below(count + 1),
            };
            right
        });
        assert_eq!(count, seen.0.len() as u64);
        assert!(count <= limit);
        (all, back) = (all + count, back + count - right);
        for told in seen.0.iter().take(right as usize) {
            let mut effects = Effects::default();
            assert_eq!((single.m.step(&mut effects), effects), *told, "{round}");
        }
        assert_eq!(
            state(&ahead.m),
            state(&single.m),
            "{round}: {right} of {count}"
        );
        assert_eq!(memory(&ahead.m), memory(&single.m), "{round}");
        if count == 0 {
            let (mut own, mut told) = (Effects::default(), Effects::default());
            let step = ahead.m.step(&mut own);
            assert_eq!(step, single.m.step(&mut told), "{round}");
            assert_eq!(own, told, "{round}");
        }
    }
    // What else there is shows in how it goes on.
    assert_eq!(ahead.steps(50), single.steps(50));
    (all, back)
}

#[test]
fn instructions_that_are_not_confirmed_are_taken_back() {
    // Floating-point registers and flags, stores of all sizes, misaligned accesses, a device.
    let straight = |b: &mut Bench| {
        let code = [
            addi(A0, A0, 3),
            sd(A0, 0, A5),
            sw(A0, 4, A5),
            sb(A0, 3, A5),
            sh(A0, 10, A5),
            fld(1, 0, A5),
            fdiv_d(RNE, 2, 1, 3),
            fsd(2, 16, A5),
            fsw(2, 24, A5),
            flw(4, 24, A5),
            ld(A1, 1, A5),
            sd(A1, 33, A5),
            lw(T1, 0, 8),
            beq(A0, ZERO, 8),
            jal(RA, -56),
        ];
        b.code(BASE, &code);
        b.set_x(A5, DATA);
        b.set_x(8, MTIME);
        b.set_f(3, 3f64.to_bits());
        b.status(status::FS);
    };
    let mut random = Random::new(1);
    for begin in [program as fn(&mut Bench), crooked, straight] {
        for _ in 0..20 {
            let (mut ahead, mut single) = (Bench::rv64(), Bench::rv64());
            begin(&mut ahead);
            begin(&mut single);
            let (all, back) = go_ahead(&mut ahead, &mut single, &mut random);
            assert!(all > 50 && back > 10, "{all} {back}");
        }
    }
    let (mut ahead, mut single) = (Bench::rv32(), Bench::rv32());
    crooked(&mut ahead);
    crooked(&mut single);
    go_ahead(&mut ahead, &mut single, &mut random);
}

#[test]
fn no_steps_are_no_steps() {
    let mut b = Bench::rv64();
    let before = state(&b.m);
    let end = b.m.steps(0, &mut |_, _| panic!("a step"));
    assert_eq!(end, ControlFlow::Continue(()));
    assert_eq!(state(&b.m), before);
}

#[test]
fn steps_in_a_row_serve_no_host() {
    // The three instructions of a semihosting call: the middle one traps.
    let mut b = Bench::rv64();
    b.code(BASE, &[0x01f0_1013, 0x0010_0073, 0x4070_5013]);
    b.set_x(A0, 0x18);
    let mut causes = Vec::new();
    let end = b.m.steps(3, &mut |step, _| {
        if let Step::Trap(trap) = step {
            causes.push(trap.trap.cause);
        }
        ControlFlow::Continue(())
    });
    assert_eq!(end, ControlFlow::Continue(()));
    assert_eq!(causes, [Cause::Exception(Some(3))]);
    assert_eq!(b.m.pc(), HANDLER + 4);
}

#[test]
fn memory_is_given_in_order_and_without_what_is_zero() {
    let mut config = virt(Xlen::Rv64);
    // Neither in order nor side by side, the largest in the middle.
    config.memory.insert(
        0,
        Region {
            base: BASE + SIZE,
            size: 0x2000,
        },
    );
    config.memory.push(Region {
        base: 0x1000_0000,
        size: 0x1000,
    });
    let mut m = Machine::new(config, Host::silent()).unwrap();
    for addr in [
        BASE,
        BASE + 0x1fff,
        BASE + 0x5008,
        BASE + SIZE + 0xfff,
        0x1000_0800,
    ] {
        m.write(Place::Memory { addr, size: 1 }, 7).unwrap();
    }
    let pieces = memory(&m);
    // First of all the boot ROM.
    assert_eq!(pieces[0].0, 0x1000);
    assert_eq!(&pieces[0].1[..4], [0x97, 2, 0, 0]);
    let page = |places: &[usize], len: usize| {
        let mut bytes = vec![0; len];
        places.iter().for_each(|&at| bytes[at] = 7);
        bytes
    };
    assert_eq!(
        pieces[1..],
        [
            (0x1000_0000, page(&[0x800], 0x1000)),
            (BASE, page(&[0, 0x1fff], 0x2000)),
            (BASE + 0x5000, page(&[8], 0x1000)),
            (BASE + SIZE, page(&[0xfff], 0x1000)),
        ]
    );
}

#[test]
fn csrs_are_given_as_they_are_read() {
    for xlen in WIDTHS {
        let mut b = Bench::of(xlen);
        b.set_csr(csr::MSCRATCH, 77);
        let mut all = Vec::new();
        b.m.csrs(&mut |csr, value| all.push((csr, value)));
        assert!(all.is_sorted_by_key(|&(csr, _)| csr));
        assert!(all.contains(&(csr::MSCRATCH, 77)));
        assert!(all.iter().all(|&(csr, value)| b.csr(csr) == value));
        let high = all.iter().any(|&(csr, _)| csr == 0xb80);
        assert_eq!(high, xlen == Xlen::Rv32);
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

/// State set from outside has no side effects: FS stays as it is.
#[test]
fn float_csrs_set_from_outside_leave_the_status_alone() {
    let mut b = Bench::rv64();
    b.set_csr(csr::MSTATUS, 0x2000);
    for (number, value, fcsr) in [(1, 0xff, 0x1f), (2, 0x1f, 0xff), (3, 0x121, 0x21)] {
        b.m.write(Place::Csr(number), value).unwrap();
        assert_eq!(b.csr(3), fcsr);
        assert_eq!(b.csr(csr::MSTATUS) & 0x6000, 0x2000);
    }
}
