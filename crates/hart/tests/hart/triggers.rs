//! Triggers (Debug Specification 1.0, chapter 5 "Sdtrig"): registers, breakpoints and
//! trace actions.

use hartrace_flow::{Cause, Effects, Mode, Model, Signal, Step};
use hartrace_hart::{ConfigError, Machine, Platform};
use hartrace_isa::Xlen;

use crate::asm::*;
use crate::bench::{
    BASE, Bench, CLINT, DATA, HANDLER, Recorder, S_HANDLER, WIDTHS, csr, small, status, virt,
};

const TSELECT: u16 = 0x7a0;
const TDATA1: u16 = 0x7a1;
const TDATA2: u16 = 0x7a2;
const TDATA3: u16 = 0x7a3;
const TINFO: u16 = 0x7a4;
const TCONTROL: u16 = 0x7a5;
const SCONTEXT: u16 = 0x5a8;
const MCONTEXT: u16 = 0x7a8;

/// Fields of mcontrol6.
const LOAD: u64 = 1;
const STORE: u64 = 2;
const EXECUTE: u64 = 4;
const U: u64 = 1 << 3;
const S: u64 = 1 << 4;
const M: u64 = 1 << 6;
const CHAIN: u64 = 1 << 11;
const DATA_SELECT: u64 = 1 << 21;
const HIT0: u64 = 1 << 22;
const HIT1: u64 = 1 << 25;

/// Actions in their places.
const ON: u64 = 2 << 12;
const OFF: u64 = 3 << 12;
const NOTIFY: u64 = 4 << 12;

fn size(code: u64) -> u64 {
    code << 16
}

fn matching(code: u64) -> u64 {
    code << 7
}

fn typed(xlen: Xlen, kind: u64, fields: u64) -> u64 {
    kind << (xlen.bits() - 4) | fields
}

/// Sets a trigger.
fn set(b: &mut Bench, number: u64, tdata1: u64, tdata2: u64) {
    b.set_csr(TSELECT, number);
    b.set_csr(TDATA1, 0);
    b.set_csr(TDATA2, tdata2);
    b.set_csr(TDATA1, tdata1);
}

fn tdata1(b: &mut Bench, number: u64) -> u64 {
    b.set_csr(TSELECT, number);
    b.csr(TDATA1)
}

/// A hart in machine mode in which breakpoints can be taken.
fn ready(xlen: Xlen) -> Bench {
    let mut b = Bench::of(xlen);
    b.status(status::MIE);
    b
}

/// What steps are: addresses, breakpoints with epc and trap value, signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Insn(u64),
    Break(u64, u64),
    Trap(Cause),
    Signal(Signal),
}

fn seen(steps: &[(Step, Effects)]) -> Vec<Seen> {
    let of = |step: &Step| match step {
        Step::Insn(insn) => Seen::Insn(insn.pc),
        Step::Trap(trap) if trap.trap.cause == Cause::Exception(Some(3)) => {
            Seen::Break(trap.trap.epc.unwrap(), trap.trap.tval.unwrap())
        }
        Step::Trap(trap) => Seen::Trap(trap.trap.cause),
        Step::Signal(signal) => Seen::Signal(*signal),
    };
    steps.iter().map(|(step, _)| of(step)).collect()
}

/// The first breakpoint when code at the start is run: epc and trap value.
fn hit(b: &mut Bench, code: &[u32]) -> Option<(u64, u64)> {
    let steps = b.exec(code);
    seen(&steps).into_iter().find_map(|step| match step {
        Seen::Break(epc, tval) => Some((epc, tval)),
        _ => None,
    })
}

#[test]
fn triggers_can_be_enumerated() {
    // 5.1: four of them, each of five types, version 1.0.
    for xlen in WIDTHS {
        let mut b = ready(xlen);
        for number in 0..4 {
            b.set_csr(TSELECT, number);
            assert_eq!(b.csr(TSELECT), number);
            assert_eq!(b.csr(TINFO), 0x0100_807c);
            assert_eq!(b.csr(TDATA1), typed(xlen, 15, 0));
        }
        b.set_csr(TSELECT, 4);
        assert_eq!(b.csr(TSELECT), 3);
        assert!(b.is_illegal(csrr(A0, TCONTROL)));
        let mut none = virt(xlen);
        none.triggers = 0;
        let mut b = Bench::new(none);
        b.one(csrrwi(A0, TDATA1, 31));
        assert_eq!((b.csr(TSELECT), b.csr(TDATA1), b.csr(TINFO)), (0, 0, 0));
        let mut many = virt(xlen);
        many.triggers = 32;
        let mut b = Bench::new(many.clone());
        b.set_csr(TSELECT, 31);
        assert_eq!(b.csr(TSELECT), 31);
        many.triggers = 33;
        let host = hartrace_hart::host::Host::silent();
        let refused = Machine::new(many, host).err();
        assert_eq!(refused, Some(ConfigError::Triggers));
    }
}

#[test]
fn only_machine_mode_has_the_registers() {
    let mut b = ready(Xlen::Rv64);
    b.set_mode(Mode::S);
    for number in [TSELECT, TDATA1, TDATA2, TDATA3, TINFO, MCONTEXT] {
        assert!(b.is_illegal(csrr(A0, number)), "{number:#x}");
    }
    b.one(csrr(A0, SCONTEXT));
}

#[test]
fn unsupported_values_read_back_as_supported_ones() {
    // 5.7: all registers are WARL.
    for xlen in WIDTHS {
        let mut b = ready(xlen);
        let mut legal = |kind, written, read| {
            b.set_csr(TDATA1, typed(xlen, kind, written));
            assert_eq!(
                b.csr(TDATA1),
                typed(xlen, kind, read),
                "{kind} {written:#x}"
            );
        };
        let all = M | S | U | LOAD | STORE | EXECUTE | CHAIN | HIT0 | HIT1 | size(5);
        legal(6, all, all);
        // vs, vu, uncertain, uncertainen.
        legal(6, 1 << 24 | 1 << 23 | 1 << 26 | 1 << 5, 0);
        for action in 0..16 {
            let read = if matches!(action, 0 | 2..=4) {
                action
            } else {
                0
            };
            legal(6, action << 12, read << 12);
            legal(3, action, read);
            legal(4, action, read);
            legal(5, action, read);
        }
        for code in 0..16 {
            let known = matches!(code, 0..=5 | 8 | 9 | 12 | 13);
            legal(6, matching(code), if known { matching(code) } else { 0 });
        }
        legal(6, size(6), 0);
        legal(
            3,
            0x3fff << 10 | 1 << 8 | 1 << 9,
            0x3fff << 10 | 1 << 8 | 1 << 9,
        );
        legal(5, 1 << 10, 0);
        // A legacy trigger has no ranges by masks, and loads are compared late.
        legal(2, matching(1), 0);
        legal(2, 1 << 19 | LOAD, 1 << 19 | 1 << 18 | LOAD);
        legal(2, 1 << 18 | EXECUTE, EXECUTE);
        for kind in [0, 1, 7, 8, 12, 15] {
            b.set_csr(TDATA1, typed(xlen, kind, u64::MAX >> 40));
            assert_eq!(b.csr(TDATA1), typed(xlen, 15, 0));
        }
        b.set_csr(TDATA3, u64::MAX);
        let (textra, other) = match xlen {
            Xlen::Rv32 => (0xfe0f_fffc, 4 << 23 | 1),
            Xlen::Rv64 => (0xfffc_00f3_ffff_fffc, 4 << 48 | 1),
        };
        assert_eq!(b.csr(TDATA3), textra);
        b.set_csr(TDATA3, other);
        assert_eq!(b.csr(TDATA3), other);
        // The largest range is half of the address space.
        b.set_csr(TDATA1, typed(xlen, 6, matching(1)));
        b.set_csr(TDATA2, u64::MAX);
        assert_eq!(
            b.csr(TDATA2),
            xlen.wrap(u64::MAX) & !(1 << (xlen.bits() - 2))
        );
    }
}

#[test]
fn an_instruction_is_not_executed() {
    for xlen in WIDTHS {
        let mut b = ready(xlen);
        set(&mut b, 1, typed(xlen, 6, M | EXECUTE), BASE + 4);
        let code = [addi(A0, ZERO, 1), addi(A0, ZERO, 2), NOP];
        assert_eq!(hit(&mut b, &code), Some((BASE + 4, BASE + 4)));
        assert_eq!(b.x(A0), 1);
        assert_eq!(b.csr(csr::MCAUSE), 3);
        assert_eq!(tdata1(&mut b, 1) & (HIT0 | HIT1), HIT0, "before");
        // A disabled one does nothing.
        b.status(status::MIE);
        set(&mut b, 1, 0, 0);
        assert_eq!(hit(&mut b, &code), None);
        // In the middle of an instruction.
        set(&mut b, 1, typed(xlen, 6, M | EXECUTE), BASE + 6);
        assert_eq!(hit(&mut b, &code), Some((BASE + 4, BASE + 6)));
    }
}

#[test]
fn loads_and_stores_are_not_done() {
    for xlen in WIDTHS {
        let width = u64::from(xlen.bits()) / 8;
        let access = [
            (lw(A0, 4, 30), LOAD, 4),
            (lbu(A0, 4, 30), LOAD, 1),
            (sw(A1, 4, 30), STORE, 4),
            (sb(A1, 4, 30), STORE, 1),
            (flw(A0, 4, 30), LOAD, 4),
            (fsd(A1, 8, 30), STORE, 8),
        ];
        for (insn, kind, bytes) in access {
            let at = DATA + if bytes == 8 { 8 } else { 4 };
            for addr in at - 2..at + bytes + 2 {
                for wanted in [LOAD, STORE] {
                    let mut b = ready(xlen);
                    b.status(status::FS);
                    b.set_x(30, DATA);
                    b.set_x(A1, 0x77);
                    set(&mut b, 0, typed(xlen, 6, M | wanted), addr);
                    let inside = (at..at + bytes).contains(&addr) && wanted == kind;
                    let expected = inside.then_some((BASE, at));
                    assert_eq!(hit(&mut b, &[insn]), expected, "{insn:#x} {addr:#x}");
                    let stored = kind == STORE && bytes < 8 && !inside;
                    assert_eq!(b.mem(at, 1) == 0x77, stored, "{insn:#x} {addr:#x}");
                }
            }
        }
        // Atomics are both.
        for kind in [LOAD, STORE] {
            let mut b = ready(xlen);
            b.set_x(30, DATA);
            set(&mut b, 0, typed(xlen, 6, M | kind), DATA);
            assert!(hit(&mut b, &[amoadd_w(A0, A1, 30)]).is_some());
        }
        // Sizes.
        for code in 0..6 {
            let mut b = ready(xlen);
            b.set_x(30, DATA);
            set(&mut b, 0, typed(xlen, 6, M | LOAD | size(code)), DATA);
            let fits = matches!(code, 0 | 3);
            assert_eq!(hit(&mut b, &[lw(A0, 0, 30)]).is_some(), fits, "{code}");
        }
        assert!(width >= 4);
    }
}

#[test]
fn a_breakpoint_comes_before_faults() {
    // 5.3: addresses are compared before they are translated or checked.
    let mut b = ready(Xlen::Rv64);
    b.set_x(30, 0x4000);
    set(&mut b, 0, typed(Xlen::Rv64, 6, M | LOAD), 0x4000);
    assert_eq!(hit(&mut b, &[ld(A0, 0, 30)]), Some((BASE, 0x4000)));
    let mut b = ready(Xlen::Rv64);
    set(&mut b, 0, typed(Xlen::Rv64, 6, M | EXECUTE), 0x4000);
    b.set_x(30, 0x4000);
    b.code(BASE, &[jalr(ZERO, 30, 0)]);
    b.set_pc(BASE);
    let steps = b.steps(2);
    assert_eq!(seen(&steps)[1], Seen::Break(0x4000, 0x4000));
    // What is not executed accesses nothing.
    let mut b = ready(Xlen::Rv64);
    b.set_x(30, DATA);
    set(&mut b, 0, typed(Xlen::Rv64, 6, M | EXECUTE), BASE);
    set(&mut b, 1, typed(Xlen::Rv64, 6, M | LOAD), DATA);
    assert_eq!(hit(&mut b, &[ld(A0, 0, 30)]), Some((BASE, BASE)));
    assert_eq!(tdata1(&mut b, 1) & HIT0, 0);
}

#[test]
fn addresses_match_in_many_ways() {
    for xlen in WIDTHS {
        let half = xlen.bits() / 2;
        let ones = (1u64 << half) - 1;
        // The mask is the upper half of tdata2, the value the lower one.
        let low = xlen.wrap(0xff0 << half | DATA & 0xff0);
        let high = match xlen {
            Xlen::Rv32 => 0xffff << 16 | DATA >> 16,
            Xlen::Rv64 => ones << half,
        };
        let cases = [
            (0, DATA, true),
            (0, DATA + 4, false),
            (1, DATA | 7, true),
            (1, (DATA + 16) | 7, false),
            (1, DATA | 0x1ff, true),
            (2, DATA + 3, true),
            (2, DATA + 4, false),
            (3, DATA + 1, true),
            (3, DATA, false),
            (4, low, true),
            (4, low ^ 0x10, false),
            (5, high, true),
            (5, high ^ 1, false),
            (8, DATA + 4, true),
            (8, DATA, false),
            (9, DATA | 7, false),
            (9, (DATA + 16) | 7, true),
            (12, low, false),
            (12, low ^ 0x10, true),
            (13, high, false),
            (13, high ^ 1, true),
        ];
        for (code, tdata2, matches) in cases {
            let mut b = ready(xlen);
            b.set_x(30, DATA);
            set(&mut b, 0, typed(xlen, 6, M | LOAD | matching(code)), tdata2);
            let found = hit(&mut b, &[lw(A0, 0, 30)]).is_some();
            assert_eq!(found, matches, "{code} {tdata2:#x}");
        }
    }
}

#[test]
fn data_is_compared_in_its_size() {
    let xlen = Xlen::Rv64;
    // Stores before, loads after: the load has retired then.
    let mut b = ready(xlen);
    b.set_x(30, DATA);
    b.set_x(A1, 0x1_2345);
    let stores = M | STORE | DATA_SELECT;
    set(&mut b, 0, typed(xlen, 6, stores), 0x2345);
    assert_eq!(hit(&mut b, &[sw(A1, 0, 30)]), None);
    assert_eq!(hit(&mut b, &[sh(A1, 8, 30)]), Some((BASE, DATA + 8)));
    assert_eq!(b.mem(DATA + 8, 2), 0);
    b.status(status::MIE);
    set(&mut b, 0, typed(xlen, 6, M | LOAD | DATA_SELECT), 0x1_2345);
    let code = [lw(A0, 0, 30), NOP, NOP];
    assert_eq!(hit(&mut b, &code), Some((BASE + 4, DATA)));
    assert_eq!(b.x(A0), 0x1_2345);
    assert_eq!(
        tdata1(&mut b, 0) & (HIT0 | HIT1),
        HIT0 | HIT1,
        "immediately after"
    );
    // Negative values have only the bits of the access.
    b.status(status::MIE);
    b.set_mem(DATA, 4, 0xffff_fff0);
    set(
        &mut b,
        0,
        typed(xlen, 6, M | LOAD | DATA_SELECT),
        0xffff_fff0,
    );
    assert_eq!(hit(&mut b, &[lw(A0, 0, 30), NOP]), Some((BASE + 4, DATA)));
    // Instructions, too.
    b.status(status::MIE);
    let wanted = addi(A2, A2, 5);
    set(
        &mut b,
        0,
        typed(xlen, 6, M | EXECUTE | DATA_SELECT),
        wanted.into(),
    );
    assert_eq!(hit(&mut b, &[NOP, wanted, NOP]), Some((BASE + 4, BASE + 4)));
    b.status(status::MIE);
    set(&mut b, 0, typed(xlen, 6, M | EXECUTE | size(2)), BASE);
    assert_eq!(hit(&mut b, &[NOP]), None, "not a short one");
}

#[test]
fn a_chain_needs_all_of_its_triggers() {
    // 5.7.11: on the same instruction.
    let xlen = Xlen::Rv64;
    let code = [lw(A0, 0, 30), lw(A0, 8, 30), NOP, NOP];
    let chained = |b: &mut Bench, first: u64, addr: u64| {
        b.set_x(30, DATA);
        b.set_mem(DATA, 4, 5);
        b.set_mem(DATA + 8, 4, 5);
        set(b, 0, typed(xlen, 6, M | first | CHAIN), addr);
        set(b, 1, typed(xlen, 6, M | LOAD), DATA + 8);
    };
    let mut b = ready(xlen);
    chained(&mut b, EXECUTE, BASE + 4);
    assert_eq!(hit(&mut b, &code), Some((BASE + 4, BASE + 4)));
    assert_eq!(tdata1(&mut b, 0) & HIT0, HIT0);
    assert_eq!(tdata1(&mut b, 1) & HIT0, HIT0);
    let mut b = ready(xlen);
    chained(&mut b, EXECUTE, BASE);
    assert_eq!(hit(&mut b, &code), None);
    assert_eq!(tdata1(&mut b, 1) & HIT0, 0);
    // A range, and a value at an address.
    let mut b = ready(xlen);
    chained(&mut b, LOAD | DATA_SELECT, 5);
    assert_eq!(hit(&mut b, &code), Some((BASE + 8, DATA + 8)));
    let mut b = ready(xlen);
    set(
        &mut b,
        0,
        typed(xlen, 6, M | EXECUTE | CHAIN | matching(2)),
        BASE + 4,
    );
    set(
        &mut b,
        1,
        typed(xlen, 6, M | EXECUTE | matching(3)),
        BASE + 12,
    );
    assert_eq!(hit(&mut b, &[NOP; 4]), Some((BASE + 4, BASE + 4)));
    // A chain without an end never fires.
    let mut b = ready(xlen);
    set(&mut b, 3, typed(xlen, 6, M | EXECUTE | CHAIN), BASE + 4);
    assert_eq!(hit(&mut b, &[NOP; 4]), None);
}

#[test]
fn modes_and_interrupt_enables() {
    // 5.4: no breakpoints in handlers, which have interrupts off.
    let xlen = Xlen::Rv64;
    for (mode, bit) in [(Mode::U, U), (Mode::S, S), (Mode::M, M)] {
        for wanted in [U, S, M] {
            for enabled in [false, true] {
                for delegated in [false, true] {
                    let mut b = Bench::of(xlen);
                    b.set_csr(csr::MEDELEG, if delegated { 8 } else { 0 });
                    if enabled {
                        b.status(status::MIE | status::SIE);
                    }
                    b.set_mode(mode);
                    set(&mut b, 0, typed(xlen, 6, EXECUTE | wanted), BASE + 4);
                    let allowed = match mode {
                        Mode::M => enabled,
                        Mode::S => enabled || !delegated,
                        _ => true,
                    };
                    let found = hit(&mut b, &[NOP, NOP]).is_some();
                    assert_eq!(found, wanted == bit && allowed, "{mode:?} {wanted:#x}");
                    if found && delegated && mode != Mode::M {
                        assert_eq!(b.csr(csr::SCAUSE), 3);
                    }
                }
            }
        }
    }
    // A trace does not mind.
    let mut b = Bench::of(xlen);
    set(&mut b, 0, typed(xlen, 6, EXECUTE | M | NOTIFY), BASE + 4);
    let steps = b.exec(&[NOP, NOP]);
    assert!(seen(&steps).contains(&Seen::Signal(Signal::Notify)));
}

#[test]
fn contexts_restrict_triggers() {
    // 5.7.17, 5.7.18
    for xlen in WIDTHS {
        let (mh, bytes) = match xlen {
            Xlen::Rv32 => (26, 18),
            Xlen::Rv64 => (51, 36),
        };
        let asid = match xlen {
            Xlen::Rv32 => 22,
            Xlen::Rv64 => 44,
        };
        let select = mh - 3;
        let cases = [
            (0, true),
            (0x1234 << 2 | 1, true),
            (0x1235 << 2 | 1, false),
            (0x12ff << 2 | 1 | 1 << bytes, true),
            (0x00ff << 2 | 1 | 1 << bytes, false),
            (0x5 << 2 | 2, true),
            (0x6 << 2 | 2, false),
            (0x21 << mh | 4 << select, true),
            (0x22 << mh | 4 << select, false),
            (0x22 << mh, true),
            (0x21 << mh | 4 << select | 0x1234 << 2 | 1, true),
        ];
        for (tdata3, matches) in cases {
            let mut b = ready(xlen);
            b.set_csr(SCONTEXT, 0x1234);
            b.set_csr(MCONTEXT, 0x21);
            b.set_csr(csr::SATP, 5 << asid);
            set(&mut b, 0, typed(xlen, 6, M | EXECUTE), BASE + 4);
            b.set_csr(TDATA3, tdata3);
            assert_eq!(b.csr(TDATA3), tdata3);
            assert_eq!(hit(&mut b, &[NOP, NOP]).is_some(), matches, "{tdata3:#x}");
        }
    }
}

#[test]
fn instructions_are_counted() {
    // 5.7.13
    for xlen in WIDTHS {
        for count in 1..5u64 {
            let mut b = ready(xlen);
            set(&mut b, 2, typed(xlen, 3, 1 << 9 | count << 10), 0);
            let expected = Some((BASE + 4 * count, 0));
            assert_eq!(hit(&mut b, &[NOP; 6]), expected);
            // Fired: the count is used up, nothing is pending, and it was hit.
            assert_eq!(tdata1(&mut b, 2), typed(xlen, 3, 1 << 9 | 1 << 24));
        }
        // What a program reads is the count before the instruction that reads it.
        let mut b = ready(xlen);
        set(&mut b, 0, typed(xlen, 3, 1 << 9 | 100 << 10), 0);
        b.exec(&[NOP, NOP, csrr(A0, TDATA1), NOP]);
        assert_eq!(b.x(A0) >> 10 & 0x3fff, 98);
        assert_eq!(b.csr(TDATA1) >> 10 & 0x3fff, 96);
        // The instruction that starts it is not counted.
        let mut b = ready(xlen);
        b.set_x(30, typed(xlen, 3, 1 << 9 | 2 << 10));
        let code = [csrrw(ZERO, TDATA1, 30), NOP, NOP, NOP];
        assert_eq!(hit(&mut b, &code), Some((BASE + 12, 0)));
    }
}

/// A step of a user program through a call: the handler is not part of it.
#[test]
fn single_steps_of_a_user_pass_over_handlers() {
    let xlen = Xlen::Rv64;
    let mut b = ready(xlen);
    b.code(BASE, &[NOP, ECALL, NOP, NOP]);
    // To the instruction after the call.
    b.set_x(30, BASE + 8);
    b.code(HANDLER, &[NOP, csrrw(ZERO, csr::MEPC, 30), MRET]);
    b.set_mode(Mode::U);
    b.set_pc(BASE + 4);
    set(&mut b, 0, typed(xlen, 3, 1 << 6 | 1 << 10), 0);
    let steps = seen(&b.steps(5));
    let expected = [
        Seen::Trap(Cause::Exception(Some(8))),
        Seen::Insn(HANDLER),
        Seen::Insn(HANDLER + 4),
        Seen::Insn(HANDLER + 8),
        Seen::Break(BASE + 8, 0),
    ];
    assert_eq!(steps[..5], expected);
}

#[test]
fn interrupts_count_as_instructions() {
    let xlen = Xlen::Rv64;
    let mut b = ready(xlen);
    b.set_csr(csr::MIE, 8);
    b.set_x(30, CLINT);
    b.set_x(31, 1);
    set(&mut b, 0, typed(xlen, 3, 1 << 9 | 3 << 10 | 4), 0);
    b.code(BASE, &[NOP, sw(31, 0, 30), NOP]);
    b.set_pc(BASE);
    let steps = seen(&b.steps(4));
    let expected = [
        Seen::Insn(BASE),
        Seen::Insn(BASE + 4),
        Seen::Trap(Cause::Interrupt(Some(3))),
        Seen::Signal(Signal::Notify),
        Seen::Insn(HANDLER),
    ];
    assert_eq!(steps[..5], expected);
}

/// The action on an interrupt or an exception comes before its handler.
#[test]
fn traps_fire_before_their_handlers() {
    // 5.7.14, 5.7.15
    let xlen = Xlen::Rv64;
    let hit = 1 << (xlen.bits() - 6);
    for (code, tdata2, fires) in [(ECALL, 1 << 9, true), (ECALL, 1 << 8, false)] {
        let mut b = ready(xlen);
        // To supervisor mode, whence the breakpoint goes to machine mode.
        b.set_csr(csr::MEDELEG, 1 << 9);
        b.set_mode(Mode::S);
        set(&mut b, 0, typed(xlen, 5, 1 << 7), tdata2);
        let steps = seen(&b.exec(&[code, NOP]));
        assert_eq!(steps[0], Seen::Trap(Cause::Exception(Some(9))));
        let expected = match fires {
            true => Seen::Break(S_HANDLER, 0),
            false => Seen::Insn(S_HANDLER),
        };
        assert_eq!(steps[1], expected);
        assert_eq!(tdata1(&mut b, 0) & hit != 0, fires);
    }
    // A handler in machine mode has interrupts off.
    let mut b = ready(xlen);
    b.set_mode(Mode::U);
    set(&mut b, 0, typed(xlen, 5, 1 << 6), 1 << 8);
    assert_eq!(seen(&b.exec(&[ECALL, NOP]))[1], Seen::Insn(HANDLER));
    // Spike judges by the mode that was left.
    let mut b = Bench::new(small(Platform::Spike, xlen));
    b.set_mode(Mode::U);
    set(&mut b, 0, typed(xlen, 5, 1 << 6), 1 << 8);
    assert_eq!(seen(&b.exec(&[ECALL, NOP]))[1], Seen::Break(HANDLER, 0));
    // Interrupts.
    let mut b = ready(xlen);
    b.set_csr(csr::MIE, 8);
    b.set_x(30, CLINT);
    b.set_x(31, 1);
    set(&mut b, 0, typed(xlen, 4, 1 << 9 | 2), 1 << 3);
    let steps = seen(&b.exec(&[sw(31, 0, 30), NOP]));
    let expected = [
        Seen::Insn(BASE),
        Seen::Trap(Cause::Interrupt(Some(3))),
        Seen::Signal(Signal::TraceOn),
        Seen::Insn(HANDLER),
    ];
    assert_eq!(steps[..4], expected);
}

/// Trace actions stand before the instruction they belong to, and nothing else changes.
#[test]
fn trace_actions_are_signals() {
    for platform in Platform::ALL {
        let code = [
            NOP,
            sw(A1, 0, 30),
            lw(A0, 0, 30),
            addi(A0, A0, 1),
            csrr(A2, csr::MSCRATCH),
            jal(ZERO, 8),
            NOP,
            NOP,
        ];
        let run = |triggers: &[(u64, u64)]| {
            let mut b = Bench::new(small(platform, Xlen::Rv64));
            b.set_x(30, DATA);
            b.code(BASE, &code);
            b.set_pc(BASE);
            for (number, (fields, tdata2)) in triggers.iter().enumerate() {
                set(
                    &mut b,
                    number as u64,
                    typed(Xlen::Rv64, 6, *fields),
                    *tdata2,
                );
            }
            let mut recorder = Recorder::default();
            b.m.run(7, &mut recorder);
            recorder.0
        };
        let plain = run(&[]);
        let watched = run(&[
            (M | STORE | ON, DATA),
            (M | EXECUTE | NOTIFY, BASE + 12),
            (M | EXECUTE | NOTIFY, BASE + 16),
            (M | EXECUTE | OFF, BASE + 20),
        ]);
        let signals = [
            Seen::Signal(Signal::TraceOn),
            Seen::Signal(Signal::Notify),
            Seen::Signal(Signal::Notify),
            Seen::Signal(Signal::TraceOff),
        ];
        let steps = seen(&watched);
        let (found, rest): (Vec<_>, Vec<_>) = watched
            .iter()
            .partition(|(step, _)| matches!(step, Step::Signal(_)));
        assert_eq!(
            seen(&found.into_iter().copied().collect::<Vec<_>>()),
            signals
        );
        assert!(rest.into_iter().eq(&plain));
        for (signal, address) in signals.iter().zip([4, 12, 16, 20]) {
            let pairs = steps.windows(2);
            let mut at = pairs.filter(|pair| pair[0] == *signal);
            assert!(
                at.any(|pair| pair[1] == Seen::Insn(BASE + address)),
                "{steps:?}"
            );
        }
    }
}

/// However a run is sliced, and on both machines.
#[test]
fn slices_do_not_move_breakpoints() {
    for platform in Platform::ALL {
        let run = |slice: u64| {
            let mut b = Bench::new(small(platform, Xlen::Rv64));
            b.status(status::MIE);
            b.set_x(30, DATA);
            // The handler goes on after the instruction.
            let handler = [
                csrr(A4, csr::MEPC),
                addi(A4, A4, 4),
                csrrw(ZERO, csr::MEPC, A4),
                MRET,
            ];
            b.code(HANDLER, &handler);
            b.code(
                BASE,
                &[
                    addi(A0, A0, 1),
                    sw(A0, 0, 30),
                    csrr(A1, TDATA1),
                    jal(ZERO, -12),
                ],
            );
            b.set_pc(BASE);
            set(&mut b, 0, typed(Xlen::Rv64, 6, M | STORE), DATA);
            set(&mut b, 1, typed(Xlen::Rv64, 3, 1 << 9 | 50 << 10), 0);
            set(
                &mut b,
                2,
                typed(Xlen::Rv64, 6, M | EXECUTE | NOTIFY),
                BASE + 8,
            );
            let mut recorder = Recorder::default();
            for _ in 0..300 / slice {
                b.m.run(slice, &mut recorder);
            }
            recorder.0
        };
        let whole = run(300);
        let breaks = seen(&whole);
        let count = |wanted: fn(&Seen) -> bool| breaks.iter().filter(|s| wanted(s)).count();
        assert!(count(|s| matches!(s, Seen::Break(_, _))) > 30);
        assert!(count(|s| matches!(s, Seen::Signal(_))) > 30);
        for slice in [1, 2, 7, 100] {
            let again = run(slice);
            let steps = |of: &[(Step, Effects)]| of.iter().map(|s| s.0).collect::<Vec<_>>();
            let least = again.len().min(whole.len());
            assert_eq!(steps(&again[..least]), steps(&whole[..least]), "{slice}");
        }
    }
}

/// A model takes breakpoints, too; trace actions are none of its steps.
#[test]
fn a_model_has_triggers() {
    let mut b = ready(Xlen::Rv64);
    b.code(BASE, &[NOP, NOP, NOP]);
    set(&mut b, 0, typed(Xlen::Rv64, 6, M | EXECUTE | NOTIFY), BASE);
    set(&mut b, 1, typed(Xlen::Rv64, 6, M | EXECUTE), BASE + 4);
    let mut effects = Effects::default();
    let steps = [b.m.step(&mut effects), b.m.step(&mut effects)];
    let steps = steps.map(|step| (step, Effects::default()));
    assert_eq!(
        seen(&steps),
        [Seen::Insn(BASE), Seen::Break(BASE + 4, BASE + 4)]
    );
}
