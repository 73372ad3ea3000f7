//! Interrupts (privileged manual, 3.1.6.1, 3.1.7, 3.1.9, 3.2.1, 3.3.3 and
//! 10.1.3) and the CLINT.

use hartrace_flow::{Cause, Mode, Step};
use hartrace_hart::{Costs, Platform, Stop};
use hartrace_isa::Xlen;

use crate::asm::*;
use crate::bench::{
    BASE, Bench, CLINT, HANDLER, MTIME, MTIMECMP, Recorder, S_HANDLER, WIDTHS, csr, insns, small,
    status, traps, virt,
};

const MTI: u64 = 1 << 7;
const MSI: u64 = 1 << 3;

/// The code of the interrupt taken within `limit` instructions.
fn interrupted(b: &mut Bench, limit: u64) -> Option<u32> {
    traps(&b.steps(limit)).first().map(|trap| match trap.cause {
        Cause::Interrupt(code) => code.unwrap(),
        other => panic!("{other:?}"),
    })
}

/// Writes a device register by a store of the program.
fn poke(b: &mut Bench, addr: u64, value: u64) {
    b.set_x(30, addr);
    b.set_x(31, value);
    b.exec(&[sw(31, 0, 30)]);
}

#[test]
fn the_software_interrupt_follows_msip() {
    // 3.1.9 and the ACLINT's MSWI: one bit per hart.
    for platform in Platform::ALL {
        for xlen in WIDTHS {
            let mut b = Bench::new(small(platform, xlen));
            b.set_csr(csr::MIE, MSI);
            b.status(status::MIE);
            assert_eq!(interrupted(&mut b, 5), None);
            poke(&mut b, CLINT, 1);
            b.exec(&[lw(A0, 0, 30)]);
            assert_eq!(b.csr(csr::MCAUSE), 1 << (xlen.bits() - 1) | 3);
            assert_eq!(b.csr(csr::MTVAL), 0);
            poke(&mut b, CLINT, 0);
            assert_eq!(b.csr(csr::MIP) & MSI, 0);
        }
    }
}

#[test]
fn msip_has_one_bit() {
    // ACLINT: the upper bits are zero; other harts' registers read zero.
    let mut b = Bench::rv64();
    poke(&mut b, CLINT, 0xffff_fffe);
    assert_eq!(b.csr(csr::MIP) & MSI, 0);
    poke(&mut b, CLINT, 0xffff_ffff);
    poke(&mut b, CLINT + 4, 1);
    b.one(ld(A0, 0, 30).wrapping_sub(4 << 20));
    assert_eq!((b.x(A0), b.csr(csr::MIP) & MSI), (1, MSI));
}

#[test]
fn the_timer_interrupt_is_pending_while_time_has_come() {
    // 3.2.1: mtime >= mtimecmp; writing mtimecmp takes it back.
    for xlen in WIDTHS {
        let mut b = Bench::of(xlen);
        b.run(1);
        assert_ne!(b.csr(csr::MIP) & MTI, 0, "mtimecmp is 0");
        poke(&mut b, MTIMECMP + 4, 1);
        assert_eq!(b.csr(csr::MIP) & MTI, 0);
        poke(&mut b, MTIMECMP, 500);
        poke(&mut b, MTIMECMP + 4, 0);
        poke(&mut b, MTIME, 499);
        assert_eq!(b.csr(csr::MIP) & MTI, 0);
        poke(&mut b, MTIME, 500);
        assert_ne!(b.csr(csr::MIP) & MTI, 0);
        poke(&mut b, MTIME, 10);
        assert_eq!(b.csr(csr::MIP) & MTI, 0);
        poke(&mut b, MTIMECMP, 10);
        assert_ne!(b.csr(csr::MIP) & MTI, 0, "unsigned, not strict");
    }
}

#[test]
fn mtip_is_read_only_in_mip() {
    // 3.1.9: MTIP, MSIP and MEIP are read-only.
    let mut b = Bench::rv64();
    b.exec(&[csrw(csr::MIP, ZERO), csrr(A0, csr::MIP)]);
    assert_eq!(b.x(A0), MTI);
}

/// All six interrupts pending and enabled one by one.
fn everything_pending(b: &mut Bench) {
    poke(b, CLINT, 1);
    b.set_csr(csr::MIP, 0xaaa);
    b.set_csr(csr::MIE, 0xaaa);
    b.set_pc(BASE);
}

#[test]
fn machine_interrupts_have_an_order() {
    // 3.1.9: MEI, MSI, MTI, SEI, SSI, STI.
    for platform in Platform::ALL {
        let mut b = Bench::new(small(platform, Xlen::Rv64));
        everything_pending(&mut b);
        for code in [11, 3, 7, 9, 1, 5] {
            b.status(status::MIE);
            assert_eq!(interrupted(&mut b, 1), Some(code));
            assert_eq!(b.csr(csr::MCAUSE), 1 << 63 | u64::from(code));
            b.set_csr(csr::MIE, b.csr(csr::MIE) & !(1 << code));
        }
        b.status(status::MIE);
        assert_eq!(interrupted(&mut b, 1), None);
    }
}

#[test]
fn supervisor_interrupts_have_an_order_behind_the_machines() {
    // 3.1.9: "Interrupts destined for M-mode are higher"; 10.1.3: SEI, SSI,
    // STI.
    let mut b = Bench::rv64();
    everything_pending(&mut b);
    b.set_csr(csr::MIDELEG, 0x222);
    for code in [11, 3, 7] {
        b.set_mode(Mode::U);
        assert_eq!(interrupted(&mut b, 1), Some(code));
        assert_eq!(b.mode(), Mode::M);
        b.set_csr(csr::MIE, b.csr(csr::MIE) & !(1 << code));
    }
    for code in [9, 1, 5] {
        b.set_mode(Mode::U);
        assert_eq!(interrupted(&mut b, 1), Some(code));
        assert_eq!((b.mode(), b.m.pc()), (Mode::S, S_HANDLER + 4));
        assert_eq!(b.csr(csr::SCAUSE), 1 << 63 | u64::from(code));
        b.set_csr(csr::MIE, b.csr(csr::MIE) & !(1 << code));
    }
}

#[test]
fn global_enables_count_in_their_own_mode() {
    // 3.1.6.1: lesser modes' interrupts are off, greater modes' always on.
    let taken = |mode: Mode, bits: u64, delegated: bool| {
        let mut b = Bench::rv64();
        b.set_csr(csr::MIDELEG, if delegated { 0x222 } else { 0 });
        b.set_csr(csr::MIE, 2);
        b.set_csr(csr::MIP, 2);
        b.status(bits);
        b.set_mode(mode);
        interrupted(&mut b, 1).is_some()
    };
    for (mode, bits, delegated, expected) in [
        (Mode::M, 0, false, false),
        (Mode::M, status::SIE, false, false),
        (Mode::M, status::MIE, false, true),
        (Mode::S, 0, false, true),
        (Mode::U, 0, false, true),
        (Mode::M, status::MIE | status::SIE, true, false),
        (Mode::S, status::MIE, true, false),
        (Mode::S, status::SIE, true, true),
        (Mode::U, 0, true, true),
    ] {
        let got = taken(mode, bits, delegated);
        assert_eq!(got, expected, "{mode:?} {bits:x} {delegated}");
    }
}

#[test]
fn interrupts_are_vectored() {
    // 3.1.7, 10.1.2: BASE + 4 * cause.
    let mut b = Bench::rv64();
    everything_pending(&mut b);
    b.set_csr(csr::MTVEC, HANDLER | 1);
    b.set_csr(csr::STVEC, S_HANDLER | 1);
    b.status(status::MIE);
    let steps = b.steps(1);
    assert_eq!(traps(&steps)[0].handler, Some(HANDLER + 44));
    b.set_csr(csr::MIDELEG, 0x222);
    b.set_csr(csr::MIE, 0x222);
    b.set_mode(Mode::U);
    let steps = b.steps(1);
    assert_eq!(traps(&steps)[0].handler, Some(S_HANDLER + 36));
}

#[test]
fn sie_and_sip_show_what_is_delegated() {
    // 10.1.3: bits not delegated read as zero; SSIP alone can be written.
    let mut b = Bench::rv64();
    everything_pending(&mut b);
    b.exec(&[csrr(A0, csr::SIE), csrr(A1, csr::SIP)]);
    assert_eq!((b.x(A0), b.x(A1)), (0, 0));
    b.set_csr(csr::MIDELEG, 0x22);
    b.exec(&[
        csrr(A0, csr::SIE),
        csrr(A1, csr::SIP),
        csrw(csr::SIP, ZERO),
        csrw(csr::SIE, ZERO),
    ]);
    assert_eq!((b.x(A0), b.x(A1)), (0x22, 0x22));
    assert_eq!(b.csr(csr::MIP) & 0x222, 0x220, "SSIP is gone");
    assert_eq!(b.csr(csr::MIE), 0xa88, "two enables are gone");
}

#[test]
fn sip_does_not_reach_what_is_not_delegated() {
    // 10.1.3.
    let mut b = Bench::rv64();
    b.set_csr(csr::MIP, 0x222);
    b.set_csr(csr::MIDELEG, 0x220);
    b.exec(&[csrw(csr::SIP, ZERO)]);
    assert_eq!(b.csr(csr::MIP) & 0x222, 0x222);
}

#[test]
fn the_timer_is_exact_where_all_instructions_cost_the_same() {
    // 3.2.1, as below: no slack in the table.
    let mut config = virt(Xlen::Rv64);
    (config.cycles_per_tick, config.costs) = (1, Costs::UNIT);
    for due in 0..20 {
        let mut b = Bench::new(config.clone());
        b.set_x(30, MTIMECMP);
        b.set_x(31, 1 + due);
        b.one(sd(31, 0, 30));
        b.set_csr(csr::MIE, MTI);
        b.status(status::MIE);
        let steps = b.steps(30);
        assert_eq!(traps(&steps)[0].epc, Some(BASE + 4 + 4 * due));
    }
}

/// A program of instructions of many costs, and its cost by the table.
fn mixed() -> Vec<(u32, u64)> {
    vec![
        (NOP, 1),
        (mul(A0, A1, A2), 3),
        (div(A0, A1, A2), 20),
        (lw(A0, 0, A5), 2),
        (sw(A0, 0, A5), 1),
        (beq(A5, ZERO, 8), 1),
        (beq(ZERO, ZERO, 4), 3),
        (jal(ZERO, 4), 3),
        (amoadd_w(ZERO, ZERO, A5), 6),
        (csrr(A0, csr::MSCRATCH), 4),
        (FENCE_I, 4),
    ]
}

#[test]
fn the_timer_interrupts_exactly_the_instruction_that_is_due() {
    // 3.2.1 with the cost table: in front of the first instruction that starts
    // at or after mtimecmp.
    let program = mixed();
    let lap: u64 = program.iter().map(|p| p.1).sum::<u64>() + 3;
    let mut config = virt(Xlen::Rv64);
    config.cycles_per_tick = 1;
    for due in (0..2 * lap).step_by(3) {
        let mut b = Bench::new(config.clone());
        let mut code: Vec<u32> = program.iter().map(|p| p.0).collect();
        code.push(jal(ZERO, -4 * code.len() as i64));
        b.code(BASE, &code);
        b.set_x(A5, crate::bench::DATA);
        b.set_csr(csr::MIE, MTI);
        b.status(status::MIE);
        // The store that arms the timer, at cycle 1.
        b.set_x(30, MTIMECMP);
        b.set_x(31, 1 + due);
        b.code(BASE + 0x400, &[sd(31, 0, 30), jal(ZERO, -0x404)]);
        b.status(status::MIE);
        b.set_csr(csr::MIE, 0);
        b.set_pc(BASE + 0x400);
        b.run(1);
        b.set_csr(csr::MIE, MTI);
        b.set_pc(BASE);
        // What the table says.
        let (mut now, mut at) = (1, 0);
        while now < 1 + due {
            let cost = program.get(at).map_or(3, |p| p.1);
            now += cost;
            at = if at == program.len() { 0 } else { at + 1 };
        }
        let steps = b.steps(40);
        let taken = steps.iter().find_map(|(step, _)| match step {
            Step::Trap(trap) => Some((trap.trap.epc?, trap.time)),
            _ => None,
        });
        assert_eq!(taken, Some((BASE + 4 * at as u64, now + 8)), "due {due}");
    }
}

#[test]
fn slices_do_not_move_the_timer() {
    // The same, however the run is cut.
    let run = |slice: u64| {
        let mut b = Bench::rv64();
        b.set_x(30, MTIMECMP);
        b.set_x(31, 7);
        let code = [sd(31, 0, 30), NOP, mul(A0, A0, A0), jal(ZERO, -8)];
        b.code(BASE, &code);
        b.set_csr(csr::MIP, 0);
        b.run(1);
        b.set_csr(csr::MIE, MTI);
        b.status(status::MIE);
        let mut recorder = Recorder::default();
        for _ in 0..600 / slice {
            b.m.run(slice, &mut recorder);
        }
        recorder.0
    };
    let whole = run(600);
    assert_eq!(traps(&whole).len(), 1);
    for slice in [1, 3, 6, 50] {
        assert!(run(slice) == whole, "{slice}");
    }
}

#[test]
fn waiting_skips_to_the_deadline() {
    // 3.3.3: the hart stalls until an interrupt is pending; here time passes
    // without instructions.
    for xlen in WIDTHS {
        let mut b = Bench::of(xlen);
        poke(&mut b, MTIMECMP, 1_000_000);
        b.set_csr(csr::MIE, MTI);
        b.status(status::MIE);
        let steps = b.exec(&[WFI, NOP]);
        assert_eq!(traps(&steps)[0].epc, Some(BASE + 4), "behind the wfi");
        let Step::Trap(trap) = steps[1].0 else {
            panic!("{steps:?}");
        };
        let costs = Costs::default();
        assert_eq!(trap.time, 100 * 1_000_000 + u64::from(costs.trap));
        b.exec(&[csrr(A0, csr::TIME)]);
        assert_eq!(b.x(A0), 1_000_000);
        assert!(b.m.instructions() < 10);
    }
}

#[test]
fn waiting_ends_without_a_trap_where_interrupts_are_off() {
    // 3.3.3: "if interrupts are globally disabled, execution resumes".
    for platform in Platform::ALL {
        let mut b = Bench::new(small(platform, Xlen::Rv64));
        poke(&mut b, MTIMECMP, 3);
        b.set_csr(csr::MIE, MTI);
        b.code(BASE, &[WFI, addi(A0, ZERO, 5), SPIN]);
        b.set_pc(BASE);
        let steps = b.steps(100_000);
        assert!(traps(&steps).is_empty());
        let addresses: Vec<u64> = insns(&steps).iter().take(3).map(|i| i.pc).collect();
        assert_eq!(addresses, [BASE, BASE + 4, BASE + 8]);
        assert_eq!(b.x(A0), 5);
    }
}

#[test]
fn waiting_for_what_is_pending_is_not_waiting() {
    // 3.3.3; delegation and global enables do not matter.
    let mut b = Bench::rv64();
    b.set_csr(csr::MIP, 2);
    b.set_csr(csr::MIE, 2);
    b.set_csr(csr::MIDELEG, 2);
    let before = b.m.cycles();
    b.exec(&[WFI, NOP]);
    assert_eq!(b.m.cycles() - before, 5);
    assert_eq!(b.m.pc(), BASE + 8);
}

#[test]
fn waiting_for_nothing_is_sleep() {
    // No device but the timer can wake the hart.
    for platform in Platform::ALL {
        let mut b = Bench::new(small(platform, Xlen::Rv64));
        b.code(BASE, &[WFI, NOP]);
        b.set_pc(BASE);
        assert_eq!(b.run(100_000), Stop::Asleep { pc: BASE + 4 });
        assert_eq!(b.run(100_000), Stop::Asleep { pc: BASE + 4 }, "still");
        // The timer is set as far away as it goes.
        let mut b = Bench::new(small(platform, Xlen::Rv64));
        b.set_x(30, MTIMECMP);
        b.set_x(31, u64::MAX);
        b.one(sd(31, 0, 30));
        b.set_csr(csr::MIE, MTI);
        b.code(BASE, &[WFI, NOP]);
        b.set_pc(BASE);
        assert_eq!(b.run(100_000), Stop::Asleep { pc: BASE + 4 });
    }
}

#[test]
fn spike_looks_at_time_every_quantum() {
    // Platform::Spike: 50 ticks after 5000 instructions.
    let mut b = Bench::new(small(Platform::Spike, Xlen::Rv64));
    b.code(BASE, &[csrr(A0, csr::TIME), jal(ZERO, -4)]);
    b.set_pc(BASE);
    b.run(4_999);
    assert_eq!(b.x(A0), 0);
    b.run(10);
    assert_eq!(b.x(A0), 50);
    b.run(5_000);
    assert_eq!(b.x(A0), 100);
}

#[test]
fn sstatus_lets_an_interrupt_in_at_once() {
    // 3.1.6.1: it is taken before the next instruction, whoever watches.
    for xlen in WIDTHS {
        for watched in [false, true] {
            let mut b = Bench::of(xlen);
            b.set_csr(csr::MIDELEG, 2);
            b.set_csr(csr::MIE, 2);
            b.set_csr(csr::MIP, 2);
            b.set_x(A1, status::SIE);
            b.code(BASE, &[NOP, csrrs(ZERO, csr::SSTATUS, A1), NOP, NOP]);
            b.set_mode(Mode::S);
            b.set_pc(BASE);
            match watched {
                true => drop(b.steps(3)),
                false => drop(b.run(3)),
            }
            assert_eq!(b.csr(csr::SEPC), BASE + 8);
            assert_eq!(b.csr(csr::SCAUSE), 1 << (xlen.bits() - 1) | 1);
            assert_eq!(b.m.pc(), S_HANDLER + 4);
        }
    }
}
