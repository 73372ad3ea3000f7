//! Exceptions and interrupts.

use super::*;

const STATUS: u64 = 0xa_0000_0000;

/// The CSRs of a trap from machine mode.
fn trapped(epc: u64, cause: u64, tval: u64, status: u64) -> [Item; 5] {
    [
        csr("mepc", epc),
        csr("mcause", cause),
        csr("mstatus", status),
        csr("mtval", tval),
        Item::Mode(3),
    ]
}

const TIMER: u64 = 1 << 63 | 7;

#[test]
fn an_exception() {
    let mut bench = Bench::new(&[ECALL]);
    bench.jump(ECALL, HANDLER, &trapped(BASE, 11, 0, STATUS | 0x1800));
    let outcome = bench.agrees();
    let counters = outcome.counters;
    assert_eq!((counters.retired, counters.exceptions), (0, 1));
    // Notes 37: nothing retires.
    assert_eq!(outcome.verifier.model.csr(0xb02), 0);
}

#[test]
fn a_trap_with_one_thing_wrong_each() {
    let told = |at: usize, item: Item| {
        let mut bench = Bench::new(&[ECALL]);
        let mut items = trapped(BASE, 11, 0, STATUS | 0x1800);
        items[at] = item;
        bench.jump(ECALL, HANDLER, &items);
        bench.mismatches()
    };
    assert_eq!(
        told(0, csr("mepc", BASE + 4)),
        ["0: mepc 80000000/80000004"]
    );
    assert_eq!(told(1, csr("mcause", 8)), ["0: mcause b/8"]);
    assert_eq!(
        told(2, csr("mstatus", STATUS)),
        ["0: mstatus a00001800/a00000000"]
    );
    assert_eq!(told(3, csr("mtval", 1)), ["0: mtval 0/1"]);
    assert_eq!(told(4, Item::Mode(1)), ["0: privilege mode 3/1"]);
}

#[test]
fn a_trap_that_the_model_does_not_take() {
    let mut bench = Bench::new(&[NOP]);
    bench.jump(NOP, HANDLER, &trapped(BASE, 2, 0, STATUS | 0x1800));
    let told = bench.mismatches();
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("mcause -/2") && told[0].contains("pc 80000004/80000100"));
}

#[test]
fn a_trap_that_the_trace_does_not_tell() {
    let mut bench = Bench::new(&[ECALL, NOP]);
    bench.insn(ECALL, &[]);
    let told = bench.mismatches();
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("mcause b/-") && told[0].contains("pc 80000100/80000004"));
}

/// Notes 5: the all-zero parcel has two bytes or four.
#[test]
fn an_illegal_instruction_of_either_length() {
    for item in [Item::Insn16(0), Item::Insn32(0), Item::Insn32(0xffff_0000)] {
        let mut bench = Bench::new(&[0]);
        let items = trapped(BASE, 2, 0, STATUS | 0x1800);
        bench.group(&[&[Item::Pc(HANDLER), item][..], &items].concat());
        bench.agrees();
    }
    let mut bench = Bench::new(&[0]);
    let items = trapped(BASE, 2, 0, STATUS | 0x1800);
    bench.group(&[&[Item::Pc(HANDLER), Item::Insn32(4)][..], &items].concat());
    assert_eq!(bench.mismatches(), ["0: instruction 0/4"]);
}

/// Notes 36: what could not be fetched is not told, or anything is.
#[test]
fn a_fetch_fault_without_an_instruction() {
    for fetched in [None, Some(Item::Insn32(0x1234_5673))] {
        let mut bench = Bench::new(&[]);
        bench.toy.pc = 0x1000;
        let items = trapped(0x1000, 1, 0x1000, STATUS | 0x1800);
        let head: Vec<Item> = [Item::Pc(HANDLER)].into_iter().chain(fetched).collect();
        bench.group(&[&head[..], &items].concat());
        assert_eq!(bench.agrees().counters.exceptions, 1);
    }
}

fn timer(status: u64, mie: u64) -> Bench {
    let mut bench = Bench::new(&[NOP, NOP, NOP]);
    bench.toy.csrs.insert(0x300, STATUS | status);
    bench.toy.csrs.insert(0x304, mie);
    bench.insn(NOP, &[]);
    bench
}

/// Interrupts are taken when the trace takes them.
#[test]
fn an_interrupt() {
    let mut bench = timer(8, 0x80);
    let items = trapped(BASE + 4, TIMER, 0, STATUS | 0x1880);
    bench.group(&[&[Item::Pc(HANDLER)][..], &items].concat());
    let outcome = bench.agrees();
    assert_eq!(outcome.counters.interrupts, 1);
    assert_eq!(outcome.counters.instructions(), 1);
    assert_eq!(outcome.verifier.model.pc, HANDLER);
}

#[test]
fn an_interrupt_with_a_wrong_csr() {
    let mut bench = timer(8, 0x80);
    let items = trapped(BASE, TIMER, 0, STATUS | 0x1880);
    bench.group(&[&[Item::Pc(HANDLER)][..], &items].concat());
    assert_eq!(bench.mismatches(), ["1: mepc 80000004/80000000"]);
}

/// Disabled by itself, disabled for the mode.
#[test]
fn an_interrupt_that_is_not_enabled() {
    for (status, mie, after) in [(8, 0x8, 0x1880), (0, 0x80, 0x1800)] {
        let mut bench = timer(status, mie);
        let items = trapped(BASE + 4, TIMER, 0, STATUS | after);
        bench.group(&[&[Item::Pc(HANDLER)][..], &items].concat());
        assert_eq!(bench.mismatches(), ["1: interrupt -/7"]);
    }
    // Below machine mode it is enabled, whatever mstatus says.
    let mut bench = timer(0, 0x80);
    bench.toy.mode = 0;
    let items = trapped(BASE + 4, TIMER, 0, STATUS);
    bench.group(&[&[Item::Pc(HANDLER)][..], &items].concat());
    bench.agrees();
}

/// A lost group is one mismatch: the model goes to the handler, too.
#[test]
fn an_interrupt_that_is_not_told() {
    let mut bench = timer(8, 0x80);
    let code = [csrr(5, 0x342), csrr(6, 0x341)];
    for (addr, bits) in (HANDLER..).step_by(4).zip(code) {
        let place = Place::Memory { addr, size: 4 };
        bench.toy.write(place, bits.into()).unwrap();
    }
    bench.insn(code[0], &[x(5, TIMER)]);
    bench.insn(code[1], &[x(6, BASE + 4)]);
    assert_eq!(bench.mismatches(), ["1: interrupt 7/-"]);
}

/// A lost group of an exception is one mismatch, at the instruction that
/// traps.
#[test]
fn an_exception_that_is_not_told() {
    let mut bench = Bench::new(&[NOP, ECALL]);
    let code = [csrr(5, 0x342), csrr(6, 0x341)];
    for (addr, bits) in (HANDLER..).step_by(4).zip(code) {
        let place = Place::Memory { addr, size: 4 };
        bench.toy.write(place, bits.into()).unwrap();
    }
    bench.insn(NOP, &[]);
    bench.insn(code[0], &[x(5, 11)]);
    bench.insn(code[1], &[x(6, BASE + 4)]);
    let found = bench.mismatches();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("mcause b/-"), "{found:?}");
}

/// As a core tells it that is in the handler all of a sudden: whole pcs.
#[test]
fn an_interrupt_that_is_not_told_with_whole_pcs() {
    let mut bench = timer(8, 0x80);
    let code = [csrr(5, 0x342), csrr(6, 0x341), MRET];
    for (addr, bits) in (HANDLER..).step_by(4).zip(code) {
        let place = Place::Memory { addr, size: 4 };
        bench.toy.write(place, bits.into()).unwrap();
    }
    bench.jump(code[0], HANDLER + 4, &[x(5, TIMER)]);
    bench.jump(code[1], HANDLER + 8, &[x(6, BASE + 4)]);
    bench.jump(MRET, BASE + 4, &[csr("mstatus", STATUS | 0x88)]);
    bench.insn(NOP, &[]);
    assert_eq!(bench.mismatches(), ["1: interrupt 7/-"]);
}

/// The way back, to another mode.
#[test]
fn a_return_changes_the_mode() {
    let told = |items: &[Item]| {
        let mut bench = Bench::new(&[MRET]);
        bench.toy.csrs.insert(0x341, BASE + 0x40);
        bench.jump(MRET, BASE + 0x40, items);
        bench.mismatches()
    };
    let status = csr("mstatus", STATUS | 0x80);
    assert_eq!(told(&[status, Item::Mode(0)]), [""; 0]);
    assert_eq!(told(&[status]), ["0: privilege mode 0/-"]);
    assert_eq!(told(&[Item::Mode(0)]), ["0: mstatus a00000080/-"]);
}

/// A source without traps shows a return, and then the handler of a trap that was taken right
/// after it.
#[test]
fn a_trap_right_after_a_return_is_not_seen() {
    let (mpie, mie) = (0x80, 0x8);
    for (at_return, status, enabled) in [
        // An exception of the first instruction, in user mode and in machine mode.
        (ECALL, 0, 0),
        (ECALL, 0x1800, 0),
        // An interrupt that the return enables.
        (NOP, 0x1800 | mpie, 0x80),
    ] {
        let mut bench = Bench::absent("csr, trap.csr, priv", &[MRET, at_return]);
        bench.toy.csrs.insert(0x341, BASE + 4);
        bench.toy.csrs.insert(0x300, STATUS | status);
        bench.toy.csrs.insert(0x304, enabled);
        bench.toy.store(HANDLER, 4, NOP.into()).unwrap();
        bench.jump(MRET, HANDLER, &[]);
        bench.insn(NOP, &[]);
        assert_eq!(bench.mismatches(), ["0: pc 80000004/80000100"]);
        bench.options.silent_traps = true;
        let outcome = bench.agrees();
        assert_eq!(outcome.verifier.model.mode, 3);
        assert_eq!(outcome.verifier.model.csr(0x341), BASE + 4);
        assert_eq!(outcome.verifier.model.csr(0x300) & mie, 0);
    }
}

/// An interrupt that is not enabled, and another handler, are no such trap.
#[test]
fn a_return_to_somewhere_else_is_found() {
    for (to, enabled) in [(HANDLER, 0), (HANDLER + 4, 0x80)] {
        let mut bench = Bench::absent("csr, trap.csr, priv", &[MRET, NOP]);
        bench.toy.csrs.insert(0x341, BASE + 4);
        bench.toy.csrs.insert(0x300, STATUS | 0x1880);
        bench.toy.csrs.insert(0x304, enabled);
        bench.options.silent_traps = true;
        bench.jump(MRET, to, &[]);
        assert_eq!(bench.mismatches(), [format!("0: pc 80000004/{to:x}")]);
    }
}
