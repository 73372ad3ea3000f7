//! Sstc: the timer of the supervisor.

use hartrace_flow::Mode;
use hartrace_hart::Stop;
use hartrace_isa::Xlen;

use crate::asm::*;
use crate::bench::{BASE, Bench, DATA, MTIMECMP, S_HANDLER, WIDTHS, csr, status, traps, virt};

const STIMECMP: u16 = 0x14d;
const STIMECMPH: u16 = 0x15d;
const STI: u64 = 1 << 5;
const TM: u64 = 2;

/// Turns the timer on.
fn enable(b: &mut Bench, xlen: Xlen) {
    match xlen {
        Xlen::Rv32 => b.set_csr(csr::MENVCFGH, 1 << 31),
        Xlen::Rv64 => b.set_csr(csr::MENVCFG, 1 << 63),
    }
}

/// Sets the time at which it is due.
fn set(b: &mut Bench, xlen: Xlen, tick: u64) {
    b.set_csr(STIMECMP, xlen.wrap(tick));
    if xlen == Xlen::Rv32 {
        b.set_csr(STIMECMPH, tick >> 32);
    }
}

#[test]
fn stip_is_pending_while_time_is_not_before_stimecmp() {
    for xlen in WIDTHS {
        let mut config = virt(xlen);
        config.cycles_per_tick = 1;
        let mut b = Bench::new(config);
        assert_eq!(b.csr(csr::MIP) & STI, 0, "not before it is enabled");
        enable(&mut b, xlen);
        assert_eq!(b.csr(csr::MIP) & STI, STI, "stimecmp is 0");
        set(&mut b, xlen, 1 << 40);
        assert_eq!(b.csr(csr::MIP) & STI, 0);
        set(&mut b, xlen, 100);
        b.run(50);
        assert_eq!(b.csr(csr::MIP) & STI, 0);
        b.run(60);
        assert_eq!(b.csr(csr::MIP) & STI, STI);
        // Programs see the same, and cannot change it.
        b.exec(&[csrw(csr::MIP, ZERO), csrr(A0, csr::MIP)]);
        assert_eq!(b.x(A0) & STI, STI);
        set(&mut b, xlen, u64::MAX);
        b.set_x(A1, STI);
        b.exec(&[csrrs(ZERO, csr::MIP, A1), csrr(A0, csr::MIP)]);
        assert_eq!(b.x(A0) & STI, 0, "nor set it");
    }
}

#[test]
fn without_stce_stip_is_written_as_ever() {
    let mut b = Bench::rv64();
    b.set_x(A1, STI);
    b.exec(&[
        csrw(STIMECMP, ZERO),
        csrrs(ZERO, csr::MIP, A1),
        csrr(A0, csr::MIP),
    ]);
    assert_eq!(b.x(A0) & STI, STI);
    b.exec(&[csrrc(ZERO, csr::MIP, A1), csrr(A0, csr::MIP)]);
    assert_eq!(b.x(A0) & STI, 0);
}

#[test]
fn the_supervisor_needs_stce_and_tm() {
    for xlen in WIDTHS {
        for (stce, tm, legal) in [
            (true, true, true),
            (true, false, false),
            (false, true, false),
        ] {
            for mode in [Mode::M, Mode::S, Mode::U] {
                let mut b = Bench::of(xlen);
                b.set_csr(csr::PMPADDR0, u64::MAX);
                b.set_csr(csr::PMPCFG0, 0x1f);
                if stce {
                    enable(&mut b, xlen);
                }
                b.set_csr(csr::MCOUNTEREN, if tm { TM } else { 0 });
                b.set_mode(mode);
                let legal = match mode {
                    Mode::M => true,
                    Mode::S => legal,
                    _ => false,
                };
                assert_eq!(!b.is_illegal(csrr(A0, STIMECMP)), legal, "{mode:?}");
                b.set_mode(mode);
                let high = !b.is_illegal(csrr(A0, STIMECMPH));
                assert_eq!(high, legal && xlen == Xlen::Rv32);
            }
        }
    }
    let mut b = Bench::isa("rv64imac_zicsr");
    assert!(b.is_illegal(csrr(A0, STIMECMP)), "no Sstc");
}

/// A supervisor with its timer in a hundred cycles, delegated.
fn supervisor(xlen: Xlen) -> Bench {
    let mut config = virt(xlen);
    config.cycles_per_tick = 10;
    let mut b = Bench::new(config);
    b.set_csr(csr::PMPADDR0, u64::MAX);
    b.set_csr(csr::PMPCFG0, 0x1f);
    enable(&mut b, xlen);
    b.set_csr(csr::MCOUNTEREN, TM);
    b.set_csr(csr::MIDELEG, STI);
    b.set_csr(csr::MIE, STI);
    set(&mut b, xlen, 100);
    b.status(status::SIE);
    b.set_mode(Mode::S);
    b
}

#[test]
fn the_interrupt_comes_on_the_first_instruction_after_it_is_due() {
    for xlen in WIDTHS {
        let mut b = supervisor(xlen);
        let steps = b.steps(1100);
        let first = &traps(&steps)[0];
        assert_eq!(first.handler, Some(S_HANDLER));
        assert_eq!(b.csr(csr::SCAUSE), 1 << (xlen.bits() - 1) | 5);
        // The thousandth nop takes the time to 100 ticks.
        assert_eq!(first.epc, Some(BASE + 4 * 1000));
    }
}

#[test]
fn wfi_waits_for_it() {
    let mut b = supervisor(Xlen::Rv64);
    b.code(BASE, &[0x1050_0073]);
    assert_eq!(b.run(2), Stop::Limit);
    assert_eq!(b.csr(csr::SEPC), BASE + 4);
    assert_eq!(b.m.cycles() / 10, 100);
    // One that will not come: nothing wakes the hart.
    let mut b = supervisor(Xlen::Rv64);
    b.set_csr(STIMECMP, u64::MAX);
    b.code(BASE, &[0x1050_0073]);
    assert_eq!(b.run(5), Stop::Asleep { pc: BASE + 4 });
}

#[test]
fn writing_stimecmp_takes_the_interrupt_back() {
    let mut b = supervisor(Xlen::Rv64);
    b.set_csr(STIMECMP, 0);
    b.set_mode(Mode::M);
    b.set_x(A1, u64::MAX);
    b.set_x(A2, DATA);
    b.exec(&[csrr(A3, csr::MIP), csrw(STIMECMP, A1), csrr(A4, csr::MIP)]);
    assert_eq!((b.x(A3) & STI, b.x(A4) & STI), (STI, 0));
    // The machine's timer is another one.
    b.set_mem(DATA, 8, 0);
    assert_eq!(MTIMECMP & 7, 0);
    assert_eq!(b.x(A4) >> 7 & 1, 1);
}
