//! Counters of events, their overflow and their filters (privileged manual,
//! "Sscofpmf"; 3.1.9 to 3.1.12, 10.1.3).

use hartrace_flow::{Cause, Effects, Mode, Model, Place, Step};
use hartrace_hart::{Config, Costs, Platform, Stop};
use hartrace_isa::Xlen;

use crate::asm::*;
use crate::bench::{
    BASE, Bench, HANDLER, MTIMECMP, S_HANDLER, WIDTHS, csr, csr_writes, insns, small, status,
    traps, virt,
};

const MHPMEVENT3: u16 = 0x323;
const MHPMEVENT3H: u16 = 0x723;
const MHPMCOUNTER3: u16 = 0xb03;
const MHPMCOUNTER3H: u16 = 0xb83;
const HPMCOUNTER3: u16 = 0xc03;
const HPMCOUNTER3H: u16 = 0xc83;
const SCOUNTOVF: u16 = 0xda0;

const OF: u64 = 1 << 63;
const MINH: u64 = 1 << 62;
const SINH: u64 = 1 << 61;
const UINH: u64 = 1 << 60;
const CYCLES: u64 = 1;
const INSTRUCTIONS: u64 = 2;

const LCOFI: u64 = 1 << 13;
const STI: u64 = 1 << 5;

fn config(platform: Platform, xlen: Xlen) -> hartrace_hart::Config {
    let mut config = small(platform, xlen);
    config.isa = format!("rv{}imac_zicntr_zihpm_sscofpmf", xlen.bits());
    config
}

fn bench(xlen: Xlen) -> Bench {
    Bench::new(config(Platform::Virt, xlen))
}

/// Sets mhpmeventN, by halves where there are such.
fn set_event(b: &mut Bench, xlen: Xlen, number: u16, value: u64) {
    b.set_csr(MHPMEVENT3 + number - 3, value);
    if xlen == Xlen::Rv32 {
        b.set_csr(MHPMEVENT3H + number - 3, value >> 32);
    }
}

fn event(b: &Bench, xlen: Xlen, number: u16) -> u64 {
    let low = b.csr(MHPMEVENT3 + number - 3);
    match xlen {
        Xlen::Rv32 => low | b.csr(MHPMEVENT3H + number - 3) << 32,
        Xlen::Rv64 => low,
    }
}

fn set_counter(b: &mut Bench, xlen: Xlen, number: u16, value: u64) {
    b.set_csr(MHPMCOUNTER3 + number - 3, value);
    if xlen == Xlen::Rv32 {
        b.set_csr(MHPMCOUNTER3H + number - 3, value >> 32);
    }
}

fn counter(b: &Bench, xlen: Xlen, number: u16) -> u64 {
    let low = b.csr(MHPMCOUNTER3 + number - 3);
    match xlen {
        Xlen::Rv32 => low | b.csr(MHPMCOUNTER3H + number - 3) << 32,
        Xlen::Rv64 => low,
    }
}

/// Writes a value with csrrw; what is read then.
fn written(b: &mut Bench, number: u16, value: u64) -> u64 {
    b.set_x(A1, value);
    b.exec(&[csrw(number, A1), csrr(A0, number)]);
    b.x(A0)
}

/// The first trap among steps, and how many instructions came before it.
fn first_trap(steps: &[(Step, Effects)]) -> Option<(usize, hartrace_flow::Trap)> {
    let at = steps
        .iter()
        .position(|(step, _)| matches!(step, Step::Trap(_)))?;
    Some((at, traps(&steps[at..])[0]))
}

#[test]
fn nothing_of_it_is_there_without_the_extension() {
    for platform in Platform::ALL {
        for xlen in WIDTHS {
            let mut b = Bench::new(small(platform, xlen));
            assert!(b.is_illegal(csrr(A0, SCOUNTOVF)));
            assert!(b.is_illegal(csrr(A0, MHPMEVENT3H)));
            for number in [csr::MIE, csr::MIDELEG, csr::MIP] {
                assert_eq!(written(&mut b, number, LCOFI) & LCOFI, 0);
            }
            for number in [MHPMEVENT3, MHPMCOUNTER3] {
                assert_eq!(written(&mut b, number, INSTRUCTIONS), 0, "{number:#x}");
            }
            b.exec(&[NOP; 5]);
            assert_eq!(b.csr(MHPMCOUNTER3), 0);
        }
    }
}

#[test]
fn an_event_register_has_filters_and_two_events() {
    // "OF MINH SINH UINH VSINH VUINH"; "if the associated privilege mode is
    // not implemented, the bit is read-only zero". 3.1.10: events are WARL.
    let mut b = bench(Xlen::Rv64);
    let filters = OF | MINH | SINH | UINH;
    for number in [MHPMEVENT3, MHPMEVENT3 + 28] {
        assert_eq!(written(&mut b, number, u64::MAX), filters);
        for selector in 0..8u64 {
            let legal = if selector == 1 || selector == 2 {
                selector
            } else {
                0
            };
            assert_eq!(
                written(&mut b, number, SINH | selector),
                SINH | legal,
                "event {selector}"
            );
        }
        assert_eq!(written(&mut b, number, 1 << 40 | 1), 0, "no such event");
        assert_eq!(written(&mut b, number, 3 << 56 | 2), 2, "reserved bits");
        assert_eq!(written(&mut b, number, 0), 0);
    }
    assert!(b.is_illegal(csrr(A0, MHPMEVENT3H)), "for RV32");
    let mut b = bench(Xlen::Rv32);
    for number in [0, 28] {
        assert_eq!(written(&mut b, MHPMEVENT3H + number, u64::MAX), 0xf << 28);
        assert_eq!(written(&mut b, MHPMEVENT3 + number, u64::MAX), 0);
        assert_eq!(written(&mut b, MHPMEVENT3 + number, 2), 2);
        assert_eq!(b.csr(MHPMEVENT3H + number), 0xf << 28, "by halves");
        assert_eq!(written(&mut b, MHPMEVENT3H + number, 0), 0);
        assert_eq!(b.csr(MHPMEVENT3 + number), 2, "by halves");
    }
    for number in [MHPMEVENT3H - 1, MHPMEVENT3H + 29] {
        assert!(b.is_illegal(csrr(A0, number)), "{number:#x}");
    }
}

#[test]
fn counters_count_cycles_and_instructions() {
    for xlen in WIDTHS {
        let mut b = bench(xlen);
        for number in 3..32 {
            set_event(&mut b, xlen, number, u64::from(number % 3));
            set_counter(&mut b, xlen, number, 1000);
        }
        let (instructions, cycles) = (b.m.instructions(), b.m.cycles());
        b.exec(&[NOP, mul(A0, A0, A0), jal(ZERO, 4), csrr(A0, csr::MCYCLE)]);
        let instructions = b.m.instructions() - instructions;
        let cycles = b.m.cycles() - cycles;
        assert_eq!(instructions, 4);
        assert!(cycles > 4);
        for number in 3..32 {
            let more = [0, cycles, instructions][usize::from(number % 3)];
            assert_eq!(counter(&b, xlen, number), 1000 + more, "{number}");
        }
    }
}

#[test]
fn traps_do_not_retire_but_take_time() {
    let mut b = bench(Xlen::Rv64);
    b.set_csr(MHPMEVENT3, INSTRUCTIONS);
    b.set_csr(MHPMEVENT3 + 1, CYCLES);
    let cycles = b.m.cycles();
    b.trap_step(&[NOP, ECALL]);
    // The nop before it and the one in the handler.
    assert_eq!(b.csr(MHPMCOUNTER3), 2);
    assert_eq!(b.csr(MHPMCOUNTER3 + 1), b.m.cycles() - cycles);
}

#[test]
fn user_level_views_show_the_counters() {
    // Unprivileged 8.2.
    for xlen in WIDTHS {
        let mut b = bench(xlen);
        for number in [3, 17, 31] {
            let value = 0x1_2345_6789 + u64::from(number);
            set_counter(&mut b, xlen, number, value);
            b.one(csrr(A0, HPMCOUNTER3 + number - 3));
            assert_eq!(b.x(A0), xlen.wrap(value));
            if xlen == Xlen::Rv32 {
                b.one(csrr(A0, HPMCOUNTER3H + number - 3));
                assert_eq!(b.x(A0), 1);
            }
        }
    }
}

#[test]
fn a_write_wins_over_the_increment() {
    // Unprivileged 7.1.
    for xlen in WIDTHS {
        let mut b = bench(xlen);
        b.set_csr(MHPMEVENT3, INSTRUCTIONS);
        b.set_x(A1, 500);
        let effects = b.exec(&[
            csrw(MHPMCOUNTER3, A1),
            csrr(A0, MHPMCOUNTER3),
            csrr(A2, MHPMCOUNTER3),
        ]);
        assert_eq!((b.x(A0), b.x(A2)), (500, 501));
        assert_eq!(csr_writes(&effects[0].1), [(MHPMCOUNTER3, 500)]);
        // The others have counted it.
        b.set_csr(MHPMEVENT3 + 1, INSTRUCTIONS);
        let before = b.csr(MHPMCOUNTER3 + 1);
        b.one(csrw(MHPMCOUNTER3, A1));
        assert_eq!(b.csr(MHPMCOUNTER3 + 1), before + 1);
        // A write to a counter at rest does not cost it an increment later.
        b.set_csr(MHPMEVENT3, 0);
        b.exec(&[
            csrw(MHPMCOUNTER3, A1),
            csrrwi(ZERO, MHPMEVENT3, 2),
            NOP,
            csrr(A0, MHPMCOUNTER3),
        ]);
        assert_eq!(b.x(A0), 502);
    }
}

#[test]
fn the_halves_of_rv32_counters_carry() {
    let mut b = bench(Xlen::Rv32);
    b.set_csr(MHPMEVENT3, INSTRUCTIONS);
    b.set_x(A1, 0xffff_ffff);
    b.set_x(A2, 7);
    b.exec(&[
        csrw(MHPMCOUNTER3H, A2),
        csrw(MHPMCOUNTER3, A1),
        NOP,
        csrr(A0, MHPMCOUNTER3),
        csrr(A3, MHPMCOUNTER3H),
        csrr(A4, HPMCOUNTER3H),
    ]);
    assert_eq!((b.x(A0), b.x(A3), b.x(A4)), (0, 8, 8));
    assert_eq!(b.csr(MHPMEVENT3H), 0, "32 bits are no overflow");
}

#[test]
fn counters_can_be_stopped() {
    // 3.1.12.
    let mut b = bench(Xlen::Rv64);
    for number in 0..29 {
        b.set_csr(MHPMEVENT3 + number, INSTRUCTIONS);
    }
    b.set_csr(csr::MCOUNTINHIBIT, 1 << 3 | 1 << 31);
    b.exec(&[NOP; 7]);
    for number in 0..29 {
        let stopped = number == 0 || number == 28;
        let count = if stopped { 0 } else { 7 };
        assert_eq!(b.csr(MHPMCOUNTER3 + number), count);
    }
}

#[test]
fn modes_can_be_left_out() {
    // "Each of the five xINH bits, when set, inhibit counting of events while
    // in privilege mode x." An instruction that leaves a mode is of that mode.
    for xlen in WIDTHS {
        for filter in 0..8u64 {
            let mut b = bench(xlen);
            for (number, what) in [(3, INSTRUCTIONS), (4, CYCLES)] {
                set_event(&mut b, xlen, number, filter << 60 | what);
            }
            let mut expected = (0, 0);
            // Three instructions in M, of which one goes to S; four there; five
            // in U; a trap to M, which is time of U; two instructions of the
            // handler.
            let (s, u) = (BASE + 0x100, BASE + 0x200);
            b.code(BASE, &[NOP, NOP, MRET]);
            b.code(s, &[NOP, NOP, NOP, SRET]);
            b.code(u, &[NOP, NOP, NOP, NOP, NOP, ECALL]);
            b.set_pc(BASE);
            b.set_csr(csr::MEPC, s);
            b.set_csr(csr::SEPC, u);
            b.status(status::MPP_S);
            for (mode, limit) in [
                (Mode::M, 3),
                (Mode::S, 4),
                (Mode::U, 5),
                // The trap, and what comes behind it.
                (Mode::U, 0),
                (Mode::M, 2),
            ] {
                let cycles = b.m.cycles();
                let (instructions, cycles) = if limit == 0 {
                    // ecall is the next; it does not retire.
                    (0, u64::from(Costs::default().trap))
                } else {
                    b.run(limit);
                    (limit, b.m.cycles() - cycles)
                };
                let bit = [0, 1, 3].iter().position(|code| *code == mode.code());
                if filter >> bit.unwrap() & 1 == 0 {
                    expected.0 += instructions;
                    expected.1 += cycles;
                }
                // With the trap counted for U, M has less than passed.
                if limit == 2 && filter >> 2 & 1 == 0 {
                    expected.1 -= u64::from(Costs::default().trap);
                }
            }
            assert_eq!(b.mode(), Mode::M);
            let counted = (counter(&b, xlen, 3), counter(&b, xlen, 4));
            assert_eq!(counted, expected, "filter {filter:03b}");
        }
    }
}

#[test]
fn an_overflow_sets_its_bit_and_asks_once() {
    // "If an hpmcounter overflows while the associated OF bit is zero, then a
    // count overflow interrupt request is generated. If the OF bit is one, then
    // no interrupt request is generated."
    for xlen in WIDTHS {
        let mut b = bench(xlen);
        set_event(&mut b, xlen, 5, INSTRUCTIONS);
        set_counter(&mut b, xlen, 5, u64::MAX - 2);
        b.exec(&[NOP, NOP]);
        assert_eq!(event(&b, xlen, 5), INSTRUCTIONS);
        assert_eq!(b.csr(csr::MIP) & LCOFI, 0);
        b.exec(&[NOP]);
        assert_eq!(event(&b, xlen, 5), OF | INSTRUCTIONS);
        assert_eq!(counter(&b, xlen, 5), 0);
        assert_eq!(b.csr(csr::MIP) & LCOFI, LCOFI);
        assert_eq!(b.csr(SCOUNTOVF), 1 << 5);
        // The counter goes on.
        b.exec(&[NOP, NOP]);
        assert_eq!(counter(&b, xlen, 5), 2);
        // Quiet until software clears the bit.
        b.set_csr(csr::MIP, 0);
        set_counter(&mut b, xlen, 5, u64::MAX);
        b.exec(&[NOP]);
        assert_eq!(counter(&b, xlen, 5), 0);
        assert_eq!(b.csr(csr::MIP) & LCOFI, 0);
        set_event(&mut b, xlen, 5, INSTRUCTIONS);
        set_counter(&mut b, xlen, 5, u64::MAX);
        b.exec(&[NOP]);
        assert_eq!(b.csr(csr::MIP) & LCOFI, LCOFI);
    }
}

#[test]
fn writes_do_not_overflow() {
    // "Count overflow never results from writes to the mhpmcountern or
    // mhpmeventn registers".
    let mut b = bench(Xlen::Rv64);
    b.set_csr(MHPMEVENT3, INSTRUCTIONS);
    b.set_csr(MHPMCOUNTER3, u64::MAX - 10);
    b.set_x(A1, OF);
    b.exec(&[csrw(MHPMCOUNTER3, ZERO), csrrs(ZERO, MHPMEVENT3 + 1, A1)]);
    assert_eq!(b.csr(csr::MIP) & LCOFI, 0);
    assert_eq!(b.csr(SCOUNTOVF), 1 << 4);
}

#[test]
fn scountovf_shows_a_supervisor_what_is_open() {
    // "In M-mode, scountovf bit X is always readable. In S/HS-mode, scountovf
    // bit X is readable when mcounteren bit X is set, and otherwise reads as
    // zero."
    for xlen in WIDTHS {
        let mut b = bench(xlen);
        for number in [3, 4, 30, 31] {
            set_event(&mut b, xlen, number, OF);
        }
        let all = 0xc000_0018;
        b.set_csr(csr::MCOUNTEREN, 0x8000_0007 | 1 << 4);
        b.one(csrr(A0, SCOUNTOVF));
        assert_eq!(b.x(A0), all);
        b.set_mode(Mode::S);
        b.one(csrr(A0, SCOUNTOVF));
        assert_eq!(b.x(A0), 0x8000_0010);
        assert!(b.is_illegal(csrw(SCOUNTOVF, ZERO)), "read-only");
        b.set_mode(Mode::U);
        assert!(b.is_illegal(csrr(A0, SCOUNTOVF)));
        let place = Place::Csr(SCOUNTOVF);
        assert!(b.m.write(place, 0).is_err());
    }
}

#[test]
fn bit_13_is_in_all_registers_of_interrupts() {
    // "bit 13 in the mip/mie/sip/sie registers"; "mideleg controls the
    // delegation of this interrupt to S-mode".
    for xlen in WIDTHS {
        let mut b = bench(xlen);
        assert_eq!(written(&mut b, csr::MIDELEG, u64::MAX), LCOFI | 0x222);
        assert_eq!(written(&mut b, csr::MIE, u64::MAX), LCOFI | 0xaaa);
        assert_eq!(written(&mut b, csr::MIP, LCOFI) & LCOFI, LCOFI);
        b.set_csr(csr::MIE, 0);
        b.set_mode(Mode::S);
        assert_eq!(written(&mut b, csr::SIE, u64::MAX), LCOFI | 0x222);
        assert_eq!(written(&mut b, csr::SIE, 0), 0);
        assert_eq!(written(&mut b, csr::SIP, 0), 0, "cleared by software");
        assert_eq!(b.csr(csr::MIP) & LCOFI, 0);
        assert_eq!(written(&mut b, csr::SIP, LCOFI), LCOFI);
        assert_eq!(written(&mut b, csr::SIP, 0), 0);
        // It is the machine's own when it is not delegated.
        b.set_mode(Mode::M);
        b.set_csr(csr::MIDELEG, 0x222);
        b.set_csr(csr::MIP, LCOFI);
        b.set_mode(Mode::S);
        assert_eq!(written(&mut b, csr::SIE, u64::MAX), 0x222);
        assert_eq!(written(&mut b, csr::SIP, 0), 0);
        assert_eq!(b.csr(csr::MIP) & LCOFI, LCOFI);
    }
}

#[test]
fn the_interrupt_is_taken_behind_the_very_instruction() {
    for xlen in WIDTHS {
        for distance in 1..40 {
            let mut b = bench(xlen);
            set_event(&mut b, xlen, 3, INSTRUCTIONS);
            set_counter(&mut b, xlen, 3, 0u64.wrapping_sub(distance));
            b.set_csr(csr::MIE, LCOFI);
            b.status(status::MIE);
            let steps = b.steps(distance + 2);
            let (at, trap) = first_trap(&steps).unwrap();
            assert_eq!(at as u64, distance);
            assert_eq!(trap.cause, Cause::Interrupt(Some(13)));
            assert_eq!(trap.epc, Some(BASE + 4 * distance));
            assert_eq!(trap.handler, Some(HANDLER));
            assert_eq!(trap.tval, Some(0));
            assert_eq!(b.csr(csr::MCAUSE), 1 << (xlen.bits() - 1) | 13);
            assert_eq!(counter(&b, xlen, 3), 2, "the handler is counted");
        }
    }
}

#[test]
fn cycles_overflow_on_the_first_instruction_that_reaches_them() {
    let code = [
        NOP,
        mul(A2, A2, A2),
        div(A3, A3, A2),
        csrr(A4, csr::MSCRATCH),
        jal(ZERO, 4),
        NOP,
    ];
    for distance in 1..120 {
        let mut b = bench(Xlen::Rv64);
        b.code(BASE, &[code, code, code, code].concat());
        b.set_csr(MHPMEVENT3, CYCLES);
        b.set_csr(MHPMCOUNTER3, 0u64.wrapping_sub(distance));
        b.set_csr(csr::MIE, LCOFI);
        b.status(status::MIE);
        let steps = b.steps(150);
        let (at, trap) = first_trap(&steps).unwrap();
        assert_eq!(trap.cause, Cause::Interrupt(Some(13)));
        let before = insns(&steps[..at]);
        let first = before.iter().position(|insn| insn.time >= distance);
        assert_eq!(first, Some(at - 1), "{distance} cycles");
    }
}

#[test]
fn it_does_not_matter_how_a_run_is_cut() {
    // Counters of both kinds that overflow again and again, in two modes.
    let handler = [
        NOP,
        csrrc(ZERO, csr::MIP, A2),
        csrrc(ZERO, MHPMEVENT3, A3),
        csrrc(ZERO, MHPMEVENT3 + 1, A3),
        csrw(MHPMCOUNTER3, A4),
        csrw(MHPMCOUNTER3 + 1, A5),
        MRET,
    ];
    let code = [
        addi(A0, A0, 1),
        mul(A1, A0, A0),
        jal(ZERO, 8),
        NOP,
        div(A1, A1, A0),
        jal(ZERO, -20),
    ];
    for (near, far) in [(1, 500), (2, 3), (7, 19), (50, 13), (400, 200)] {
        let run = |slice: u64| {
            let mut b = bench(Xlen::Rv64);
            b.code(BASE, &code);
            b.code(HANDLER, &handler);
            b.set_x(A2, LCOFI);
            b.set_x(A3, OF);
            b.set_x(A4, 0u64.wrapping_sub(near));
            b.set_x(A5, 0u64.wrapping_sub(far));
            b.set_csr(MHPMEVENT3, MINH | INSTRUCTIONS);
            b.set_csr(MHPMEVENT3 + 1, CYCLES);
            b.set_csr(csr::MIE, LCOFI);
            b.set_csr(csr::MIP, LCOFI);
            b.set_mode(Mode::U);
            let mut steps = Vec::new();
            for _ in 0..1200 / slice {
                steps.extend(b.steps(slice));
            }
            assert!(traps(&steps).len() > 1);
            steps
        };
        let whole = run(1200);
        for slice in [1, 3, 8, 100] {
            assert_eq!(run(slice), whole, "{near} {far} by {slice}");
        }
    }
}

#[test]
fn it_comes_last_and_by_its_own_vector() {
    // 3.1.9: MEI, MSI, MTI, SEI, SSI, STI, LCOFI.
    for xlen in WIDTHS {
        let mut b = bench(xlen);
        b.set_csr(csr::MTVEC, HANDLER | 1);
        b.set_csr(csr::STVEC, S_HANDLER | 1);
        b.set_csr(csr::MIE, LCOFI | STI);
        b.set_csr(csr::MIP, LCOFI | STI);
        b.status(status::MIE);
        let steps = b.steps(1);
        assert_eq!(traps(&steps)[0].cause, Cause::Interrupt(Some(5)));
        b.set_csr(csr::MIP, LCOFI);
        b.status(status::MIE);
        let trap = traps(&b.steps(1))[0];
        assert_eq!(trap.cause, Cause::Interrupt(Some(13)));
        assert_eq!(trap.handler, Some(HANDLER + 4 * 13));
        // Delegated, and seen in S only when SIE says so.
        b.set_csr(csr::MIDELEG, LCOFI);
        b.set_mode(Mode::S);
        assert!(traps(&b.steps(3)).is_empty());
        b.status(status::SIE);
        let trap = traps(&b.steps(1))[0];
        assert_eq!(trap.cause, Cause::Interrupt(Some(13)));
        assert_eq!(trap.handler, Some(S_HANDLER + 4 * 13));
        assert_eq!(b.csr(csr::SCAUSE), 1 << (xlen.bits() - 1) | 13);
        assert_eq!(b.mode(), Mode::S);
    }
}

#[test]
fn a_wait_can_end_by_an_overflow() {
    // 3.3.3: wfi waits for any interrupt that is enabled; cycles pass.
    let mut b = bench(Xlen::Rv64);
    b.set_csr(csr::MIE, LCOFI);
    b.set_csr(MHPMEVENT3, CYCLES);
    b.set_csr(MHPMCOUNTER3, 0u64.wrapping_sub(1_000_000));
    b.code(BASE, &[WFI, csrr(A0, MHPMCOUNTER3)]);
    b.run(2);
    assert_eq!(b.x(A0), 0, "woken at once");
    assert_eq!(b.csr(csr::MIP) & LCOFI, LCOFI);
    // The timer may be first.
    let mut b = bench(Xlen::Rv64);
    b.set_x(A1, MTIMECMP);
    b.set_x(A2, 200);
    b.set_csr(csr::MIE, LCOFI | 1 << 7);
    b.set_csr(MHPMEVENT3, CYCLES);
    b.set_csr(MHPMCOUNTER3, 0u64.wrapping_sub(1_000_000));
    b.exec(&[sd(A2, 0, A1), WFI, NOP]);
    assert_eq!(b.csr(csr::MIP) & (LCOFI | 1 << 7), 1 << 7);
    assert_eq!(b.m.cycles(), 200 * 100 + 1);
    // What cannot overflow, or stands still, wakes nobody.
    for (event, counter, inhibit) in [
        (INSTRUCTIONS, u64::MAX, 0),
        (CYCLES | OF, u64::MAX, 0),
        (CYCLES | MINH, u64::MAX, 0),
        (CYCLES, u64::MAX, 1 << 3),
        (CYCLES, 0, 0),
        (0, u64::MAX, 0),
    ] {
        let mut b = bench(Xlen::Rv64);
        b.set_csr(csr::MIE, LCOFI);
        b.code(BASE, &[WFI, NOP, NOP]);
        b.run(1);
        b.set_csr(csr::MIP, 0);
        b.set_csr(csr::MCOUNTINHIBIT, inhibit);
        b.set_csr(MHPMEVENT3, event);
        b.set_csr(MHPMCOUNTER3, counter);
        let pc = BASE + 4;
        assert_eq!(b.run(1), Stop::Asleep { pc }, "{event:#x}");
    }
}

#[test]
fn a_loop_that_an_overflow_ends_is_no_dead_end() {
    for platform in Platform::ALL {
        for what in [INSTRUCTIONS, CYCLES] {
            let mut b = Bench::new(config(platform, Xlen::Rv64));
            b.code(BASE, &[SPIN]);
            b.set_csr(csr::MIE, LCOFI);
            b.status(status::MIE);
            b.set_csr(MHPMEVENT3, what);
            b.set_csr(MHPMCOUNTER3, 0u64.wrapping_sub(70_000));
            b.code(HANDLER, &[SPIN]);
            assert_eq!(b.run(200_000), Stop::Spins { pc: HANDLER });
            assert_eq!(b.csr(csr::MCAUSE), 1 << 63 | 13);
            // From zero it takes for ever.
            let mut b = Bench::new(config(platform, Xlen::Rv64));
            b.code(BASE, &[SPIN]);
            b.set_csr(csr::MIE, LCOFI);
            b.status(status::MIE);
            b.set_csr(MHPMEVENT3, what);
            assert_eq!(b.run(80_000), Stop::Spins { pc: BASE });
        }
    }
}

#[test]
fn spike_takes_it_where_it_looks() {
    let mut code = vec![NOP; 30];
    code.extend([csrr(A0, csr::MSCRATCH), NOP, NOP]);
    let run = |slice| {
        let mut b = Bench::new(config(Platform::Spike, Xlen::Rv64));
        b.code(BASE, &code);
        b.set_csr(csr::MIE, LCOFI);
        b.status(status::MIE);
        b.set_csr(MHPMEVENT3, INSTRUCTIONS);
        b.set_csr(MHPMCOUNTER3, 0u64.wrapping_sub(10));
        let mut steps = Vec::new();
        for _ in 0..40 / slice {
            steps.extend(b.steps(slice));
        }
        steps
    };
    let whole = run(40);
    let (at, trap) = first_trap(&whole).unwrap();
    assert_eq!((at, trap.cause), (30, Cause::Interrupt(Some(13))));
    assert_eq!(run(1), whole);
}

#[test]
fn a_model_counts_but_is_told_when_to_interrupt() {
    for xlen in WIDTHS {
        let mut b = bench(xlen);
        b.set_csr(csr::MIE, LCOFI);
        b.status(status::MIE);
        set_event(&mut b, xlen, 3, INSTRUCTIONS);
        set_counter(&mut b, xlen, 3, u64::MAX);
        let mut effects = Effects::default();
        for _ in 0..3 {
            assert!(matches!(b.m.step(&mut effects), Step::Insn(_)));
        }
        assert_eq!(counter(&b, xlen, 3), 2);
        assert_eq!(b.csr(csr::MIP) & LCOFI, LCOFI);
        let cause = Cause::Interrupt(Some(13));
        let Step::Trap(step) = b.m.interrupt(cause, &mut effects) else {
            panic!("no trap");
        };
        assert_eq!(step.trap.handler, Some(HANDLER));
        // All can be set from outside, the views of users too.
        for number in [3, 31] {
            b.set_csr(HPMCOUNTER3 + number - 3, 77);
            assert_eq!(b.csr(MHPMCOUNTER3 + number - 3), 77);
        }
        if xlen == Xlen::Rv32 {
            b.set_csr(HPMCOUNTER3H, 5);
            assert_eq!(counter(&b, xlen, 3), 5 << 32 | 77);
        } else {
            assert!(b.m.write(Place::Csr(HPMCOUNTER3H), 5).is_err());
        }
    }
    // Without the extension the views stay as they are.
    let mut b = Bench::new(virt(Xlen::Rv64));
    assert!(b.m.write(Place::Csr(HPMCOUNTER3), 5).is_err());
    b.set_csr(MHPMCOUNTER3, 5);
    assert_eq!(b.csr(MHPMCOUNTER3), 0);
}

/// On RV32 the upper half of `mhpmevent` has no part of the event's number:
/// a write to it leaves the event alone.
#[test]
fn the_upper_half_keeps_the_event() {
    let mut config = virt(Xlen::Rv32);
    config.isa = "rv32imac_zicntr_zihpm_sscofpmf".to_owned();
    let mut b = Bench::new(config);
    b.set_csr(0x323, 2);
    b.set_csr(0x723, u64::MAX);
    assert_eq!((b.csr(0x323), b.csr(0x723)), (2, 0xf000_0000));
}

/// Counters that overflow can be stopped and opened, named or not (Zihpm).
#[test]
fn counters_that_overflow_exist() {
    let mut config = Config::new(Platform::Spike, Xlen::Rv64);
    config.isa = "rv64imac_zicntr_sscofpmf".to_owned();
    let mut b = Bench::new(config);
    b.set_csr(0x320, u64::MAX);
    b.set_csr(0x306, u64::MAX);
    assert_eq!((b.csr(0x320), b.csr(0x306)), (0xffff_fffd, 0xffff_ffff));
}
