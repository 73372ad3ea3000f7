//! Counters and time (unprivileged manual, chapter 8; privileged manual,
//! 3.1.10 to 3.1.12 and 10.1.5).

use hartrace_flow::Mode;
use hartrace_isa::Xlen;

use crate::asm::*;
use crate::bench::{BASE, Bench, MTIME, MTIMECMP, WIDTHS, csr};

#[test]
fn a_write_wins_over_the_increment() {
    // Unprivileged 7.1: "the value written ... is the value read by the
    // following instruction".
    for xlen in WIDTHS {
        for number in [csr::MCYCLE, csr::MINSTRET] {
            let mut b = Bench::of(xlen);
            b.set_x(A1, 1000);
            let code = [csrw(number, A1), csrr(A0, number), csrr(A2, number)];
            b.exec(&code);
            let step = if number == csr::MCYCLE { 4 } else { 1 };
            assert_eq!((b.x(A0), b.x(A2)), (1000, 1000 + step));
        }
    }
}

#[test]
fn a_read_sees_the_instructions_before_it() {
    // 3.1.10.
    let mut b = Bench::rv64();
    let first = b.m.instructions();
    b.exec(&[
        NOP,
        NOP,
        csrr(A0, csr::MINSTRET),
        NOP,
        csrr(A1, csr::INSTRET),
    ]);
    assert_eq!((b.x(A0), b.x(A1)), (first + 2, first + 4));
    let cycles = b.m.cycles();
    b.exec(&[
        NOP,
        mul(A2, A2, A2),
        csrr(A0, csr::MCYCLE),
        csrr(A1, csr::CYCLE),
    ]);
    assert_eq!((b.x(A0), b.x(A1)), (cycles + 4, cycles + 8));
}

#[test]
fn counters_can_be_stopped() {
    // 3.1.12: mcountinhibit; time goes on.
    let mut b = Bench::rv64();
    b.set_csr(csr::MCYCLE, 10);
    b.set_csr(csr::MINSTRET, 20);
    b.set_csr(csr::MCOUNTINHIBIT, 1);
    b.exec(&[NOP, NOP, NOP]);
    assert_eq!((b.csr(csr::MCYCLE), b.csr(csr::MINSTRET)), (10, 23));
    b.set_csr(csr::MCOUNTINHIBIT, 4);
    b.exec(&[NOP, NOP, NOP]);
    assert_eq!((b.csr(csr::MCYCLE), b.csr(csr::MINSTRET)), (13, 23));
    // Set by a program: what stops, stops with the instruction that says so.
    b.exec(&[
        csrrwi(ZERO, csr::MCOUNTINHIBIT, 5),
        NOP,
        NOP,
        csrr(A0, csr::MCYCLE),
    ]);
    assert_eq!((b.x(A0), b.csr(csr::MINSTRET)), (13, 23));
    assert_eq!(b.m.instructions(), 10, "what the machine counts goes on");
}

#[test]
fn rv32_counters_have_high_halves() {
    // 3.1.10: mcycleh and minstreth; a carry goes over.
    let mut b = Bench::rv32();
    for (low, high) in [(csr::MCYCLE, 0xb80), (csr::MINSTRET, 0xb82)] {
        b.set_x(A1, 0xffff_ffff);
        b.set_x(A2, 7);
        b.exec(&[
            csrw(high, A2),
            csrw(low, A1),
            csrr(A0, low),
            csrr(A3, low),
            csrr(A4, high),
        ]);
        assert_eq!((b.x(A0), b.x(A4)), (0xffff_ffff, 8));
        assert!(b.x(A3) < 8, "wrapped");
        // The halves are written one by one.
        b.exec(&[csrw(low, ZERO), csrw(high, A2), csrr(A4, high)]);
        assert_eq!(b.x(A4), 7);
        b.exec(&[csrr(A4, low + 0x180), csrr(A5, high)]);
        assert_eq!(b.x(A5), 7);
    }
    // The user's views.
    b.set_csr(0xb80, 5);
    b.one(csrr(A0, 0xc80));
    assert_eq!(b.x(A0), 5);
}

#[test]
fn time_is_mtime() {
    // Unprivileged 8.1, priv. 3.2.1: a hundred cycles make a tick.
    let mut b = Bench::rv64();
    b.code(BASE, &[csrr(A0, csr::TIME), jal(ZERO, -4)]);
    b.set_pc(BASE);
    b.run(1001);
    assert_eq!(b.x(A0), (b.m.cycles() - 4) / 100);
    b.set_x(A1, MTIME);
    b.set_x(A2, 0x1_2345_6789);
    b.exec(&[sd(A2, 0, A1), csrr(A0, csr::TIME), ld(A3, 0, A1)]);
    assert_eq!((b.x(A0), b.x(A3)), (0x1_2345_6789, 0x1_2345_6789));
    let mut b = Bench::rv32();
    b.set_x(A1, MTIME);
    b.set_x(A2, 3);
    b.exec(&[
        sw(A2, 4, A1),
        csrr(A0, 0xc81),
        lw(A3, 4, A1),
        csrr(A4, csr::TIME),
    ]);
    assert_eq!((b.x(A0), b.x(A3), b.x(A4)), (3, 3, 0));
}

#[test]
fn ticks_are_as_long_as_the_machine_says() {
    // Config::cycles_per_tick.
    let mut config = crate::bench::virt(Xlen::Rv64);
    config.cycles_per_tick = 7;
    let mut b = Bench::new(config);
    b.exec(&[NOP; 20]);
    b.one(csrr(A0, csr::TIME));
    assert_eq!(b.x(A0), 20 / 7);
}

#[test]
fn device_registers_can_be_read_in_parts() {
    // ACLINT: mtime and mtimecmp are 64-bit registers, also read by halves.
    let mut b = Bench::rv64();
    b.set_x(A1, MTIMECMP);
    b.set_x(A2, 0x8877_6655_4433_2211);
    b.exec(&[
        sd(A2, 0, A1),
        lwu(A0, 4, A1),
        lhu(A3, 2, A1),
        lbu(A4, 7, A1),
    ]);
    assert_eq!((b.x(A0), b.x(A3), b.x(A4)), (0x8877_6655, 0x4433, 0x88));
    b.exec(&[sw(ZERO, 4, A1), ld(A0, 0, A1)]);
    assert_eq!(b.x(A0), 0x4433_2211);
}

#[test]
fn modes_above_open_the_counters() {
    // 3.1.11, 10.1.5: S needs mcounteren, U both.
    let mut b = Bench::rv64();
    for (bit, number) in [
        (0, csr::CYCLE),
        (1, csr::TIME),
        (2, csr::INSTRET),
        (3, 0xc03),
    ] {
        for machine in [false, true] {
            for supervisor in [false, true] {
                b.set_csr(csr::MCOUNTEREN, u64::from(machine) << bit);
                b.set_csr(csr::SCOUNTEREN, u64::from(supervisor) << bit);
                for (mode, open) in [
                    (Mode::M, true),
                    (Mode::S, machine),
                    (Mode::U, machine && supervisor),
                ] {
                    b.set_mode(mode);
                    assert_eq!(
                        b.is_illegal(csrr(A0, number)),
                        !open,
                        "{mode:?} {number:#x}"
                    );
                }
            }
        }
    }
}

#[test]
fn counters_without_zicntr_are_spikes_business() {
    // Unprivileged 8: they belong to Zicntr and Zihpm; the machine that is our
    // own always has them.
    use crate::bench::small;
    use hartrace_hart::Platform;
    let mut config = small(Platform::Spike, Xlen::Rv64);
    config.isa = "rv64imac".to_owned();
    let mut b = Bench::new(config);
    assert!(b.is_illegal(csrr(A0, csr::CYCLE)));
    assert!(b.is_illegal(csrr(A0, 0xc03)));
    assert!(!b.is_illegal(csrr(A0, csr::MCYCLE)));
    let mut b = Bench::isa("rv64imac");
    assert!(!b.is_illegal(csrr(A0, csr::CYCLE)));
}
