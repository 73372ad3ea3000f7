//! 3.2: elements that are absent are neither compared nor copied.

use super::*;

/// "State changes supplied by the trace decoder would not include elements
/// that are absent."
#[test]
fn absent_registers_follow_the_model() {
    let program = [addi(5, 0, 7), addi(6, 5, 1), addi(5, 0, 9)];
    let mut bench = Bench::absent("t0", &program);
    bench.insn(program[0], &[]);
    bench.insn(program[1], &[x(6, 8)]);
    bench.insn(program[2], &[]);
    bench.agrees();
    let mut bench = Bench::absent("gpr", &program);
    program.iter().for_each(|bits| {
        bench.insn(*bits, &[]);
    });
    bench.agrees();
}

/// "In the event of mismatch, copying state ... would exclude elements that
/// are absent."
#[test]
fn absent_registers_are_not_copied() {
    let program = [addi(5, 0, 7), addi(6, 0, 1), addi(7, 5, 0)];
    let mut bench = Bench::absent("t0", &program);
    bench.insn(program[0], &[]);
    bench.insn(program[1], &[x(6, 2)]);
    bench.insn(program[2], &[x(7, 7)]);
    let outcome = bench.run();
    assert_eq!(outcome.heard.mismatches, ["1: t1 1/2"]);
    assert_eq!(outcome.verifier.model.x[5], 7);
}

#[test]
fn absent_floats_and_csrs() {
    let program = [fmv_w_x(1, 0), csrrw(0, 0x340, 10), csrr(5, 0x340)];
    let mut bench = Bench::absent("fpr,csr", &program);
    bench.toy.x[10] = 9;
    bench.insn(program[0], &[]);
    bench.insn(program[1], &[]);
    bench.insn(program[2], &[x(5, 9)]);
    bench.agrees();
}

#[test]
fn an_absent_pc() {
    let program = [beq(0, 0, 8), NOP, addi(5, 0, 1)];
    let mut bench = Bench::absent("pc", &program);
    bench.group(&[Item::Insn32(program[0])]);
    bench.group(&[Item::Insn32(program[2]), x(5, 1)]);
    bench.agrees();
}

#[test]
fn an_absent_privilege_mode() {
    let mut bench = Bench::absent("priv", &[MRET]);
    bench.toy.csrs.insert(0x341, BASE + 0x40);
    bench.jump(MRET, BASE + 0x40, &[csr("mstatus", 0xa_0000_0080)]);
    let outcome = bench.agrees();
    assert_eq!(outcome.verifier.model.mode, 0);
}

/// Groups without an instruction are instructions then.
#[test]
fn absent_instructions() {
    let program = [addi(5, 0, 1), NOP, csrr(6, 0x344), addi(7, 0, 1)];
    let mut bench = Bench::absent("insn", &program);
    bench.group(&[Item::Pc(BASE + 4), x(5, 1)]);
    bench.group(&[csr("mip", 0x80)]);
    bench.group(&[Item::Mtime(7)]);
    bench.group(&[Item::Pc(BASE + 8)]);
    bench.group(&[Item::Pc(BASE + 12), x(6, 0x80)]);
    bench.group(&[Item::Pc(BASE + 16), x(7, 2)]);
    let outcome = bench.run();
    assert_eq!(outcome.heard.mismatches, ["5: t2 1/2"]);
    assert_eq!(outcome.counters.retired, 4);
    assert_eq!(outcome.counters.updates, 2);
}

/// One that writes a cause is no interrupt.
#[test]
fn absent_instructions_that_write_a_cause() {
    let mut bench = Bench::absent("insn", &[csrrw(0, 0x342, 5), NOP]);
    bench.toy.x[5] = 1 << 63 | 7;
    bench.toy.csrs.insert(0x300, 8);
    bench.toy.csrs.insert(0x304, 0x80);
    bench.group(&[Item::Pc(BASE + 4), csr("mcause", 1 << 63 | 7)]);
    bench.group(&[
        Item::Pc(HANDLER),
        csr("mepc", BASE + 4),
        csr("mcause", 1 << 63 | 7),
        csr("mstatus", 0x1880),
        csr("mtval", 0),
    ]);
    let counters = bench.agrees().counters;
    assert_eq!((counters.retired, counters.interrupts), (1, 1));
}

#[test]
fn absent_stores() {
    let program = [sw(10, 0, 10), lw(5, 0, 10)];
    for addr in [None, Some(Item::EffectiveAddress(BASE + 0x800))] {
        let mut bench = Bench::absent("store", &program);
        pointers(&mut bench);
        let items: Vec<Item> = addr.into_iter().collect();
        bench.insn(program[0], &items);
        bench.insn(program[1], &[x(5, 0xffff_ffff_8000_0800)]);
        let outcome = bench.agrees();
        let memory = &outcome.verifier.shadow().memory;
        assert_eq!(memory.read(BASE + 0x800, 4), 0x8000_0800);
    }
}

/// An address that is told is compared even so.
#[test]
fn the_address_of_an_absent_store() {
    let mut bench = Bench::absent("store", &[sw(10, 0, 10)]);
    pointers(&mut bench);
    bench.insn(sw(10, 0, 10), &[Item::EffectiveAddress(BASE + 0x804)]);
    assert_eq!(bench.mismatches().len(), 1);
}

/// A CSR instruction that traps, told without where and where to.
#[test]
fn a_trap_without_its_epc_in_a_trace_without_pcs() {
    let bits = csrrw(0, 0x7c0, 5);
    let mut bench = Bench::absent("pc,trap.mepc", &[bits]);
    let items = [
        csr("mcause", 2),
        csr("mstatus", 0xa_0000_1800),
        csr("mtval", bits.into()),
        Item::Mode(3),
        Item::Insn32(bits),
    ];
    bench.group(&items);
    bench.agrees();
}

fn trap(absent: &str) -> Bench {
    let program = [ECALL, csrrw(0, 0x300, 5)];
    let mut bench = Bench::absent(absent, &program);
    bench.toy.csrs.insert(0x305, BASE + 4);
    bench.toy.x[5] = 0x1888;
    bench
}

/// What only traps leave out (notes A4, 3: Spike's log has no mstatus there).
#[test]
fn absent_in_traps() {
    let items = [csr("mepc", BASE), csr("mcause", 11), csr("mtval", 0)];
    let mut bench = trap("trap.mstatus");
    bench.jump(ECALL, BASE + 4, &items);
    bench.agrees();
    assert_eq!(bench.run().verifier.model.csr(0x300), 0xa_0000_1800);
    let mut bench = trap("");
    bench.jump(ECALL, BASE + 4, &items);
    assert_eq!(bench.mismatches(), ["0: mstatus a00001800/-"]);
    let mut bench = trap("trap.csr");
    bench.jump(ECALL, BASE + 4, &[]);
    bench.agrees();
}

/// If a trap tells it after all, it is compared; and so it is outside of
/// traps.
#[test]
fn absent_in_traps_only() {
    let items = [csr("mepc", BASE), csr("mcause", 11), csr("mtval", 0)];
    let mut bench = trap("trap.mstatus");
    bench.jump(
        ECALL,
        BASE + 4,
        &[&items[..], &[csr("mstatus", 0)]].concat(),
    );
    assert_eq!(bench.mismatches(), ["0: mstatus a00001800/0"]);
    let mut bench = trap("trap.mstatus");
    bench.jump(ECALL, BASE + 4, &items);
    bench.insn(csrrw(0, 0x300, 5), &[csr("mstatus", 0x1880)]);
    assert_eq!(bench.mismatches(), ["1: mstatus 1888/1880"]);
}

/// After a mismatch, too, what a trap leaves out stays the model's.
#[test]
fn absent_in_traps_is_not_copied() {
    let mut bench = trap("trap.mstatus");
    let items = [csr("mepc", BASE + 8), csr("mcause", 11), csr("mtval", 0)];
    bench.jump(ECALL, BASE + 4, &items);
    let outcome = bench.run();
    assert_eq!(outcome.heard.mismatches, ["0: mepc 80000000/80000008"]);
    assert_eq!(outcome.verifier.model.csr(0x300), 0xa_0000_1800);
}

/// A trap that the trace does not take leaves nothing behind.
#[test]
fn absent_in_a_trap_that_was_not_taken() {
    let mut bench = trap("trap.mstatus");
    bench.toy.csrs.insert(0x305, HANDLER);
    bench.insn(ECALL, &[]);
    let outcome = bench.run();
    assert_eq!(outcome.heard.mismatches.len(), 1);
    assert_eq!(outcome.verifier.model.csr(0x300), bench.toy.csr(0x300));
    assert_eq!(outcome.verifier.shadow().pc, Some(BASE + 4));
}
