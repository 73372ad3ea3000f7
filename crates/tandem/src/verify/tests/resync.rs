//! 3.1, step 5: after a difference the model has what the trace says; unless
//! the trace goes on with what the model had.

use super::*;

/// One fault that stays is one mismatch.
#[test]
fn the_model_follows_the_trace() {
    let program = [addi(5, 0, 7), addi(6, 5, 1), addi(7, 6, 1)];
    let mut bench = Bench::new(&program);
    bench.insn(program[0], &[x(5, 17)]);
    bench.insn(program[1], &[x(6, 18)]);
    bench.insn(program[2], &[x(7, 19)]);
    assert_eq!(bench.mismatches(), ["0: t0 7/11"]);
    assert_eq!(bench.run().verifier.model.x[5], 17);
    assert_eq!(bench.run().counters.taken_back, 0);
}

/// One wrong word is one mismatch, too: the core did not go on with it.
#[test]
fn a_value_is_taken_back() {
    let program = [addi(5, 0, 7), NOP, addi(6, 5, 1), addi(7, 5, 1)];
    let mut bench = Bench::new(&program);
    bench.insn(program[0], &[x(5, 17)]);
    bench.insn(program[1], &[]);
    bench.insn(program[2], &[x(6, 8)]);
    bench.insn(program[3], &[x(7, 8)]);
    let outcome = bench.run();
    assert_eq!(outcome.heard.mismatches, ["0: t0 7/11"]);
    assert_eq!(outcome.counters.taken_back, 1);
    assert_eq!(outcome.verifier.model.x[5], 7);
    assert_eq!(outcome.verifier.shadow().get(Register::x(5)), Some(7));
}

/// What agrees with neither is a mismatch of its own.
#[test]
fn nothing_is_taken_back_for_another_fault() {
    let program = [addi(5, 0, 7), addi(6, 5, 1)];
    let mut bench = Bench::new(&program);
    bench.insn(program[0], &[x(5, 17)]);
    bench.insn(program[1], &[x(6, 9)]);
    assert_eq!(bench.mismatches(), ["0: t0 7/11", "1: t1 12/9"]);
}

#[test]
fn lost_and_spurious_writes_both_ways() {
    for (told, then) in [(None, 0), (None, 7), (Some(9), 9), (Some(9), 0)] {
        // The first is lost, or one that did not happen is told.
        let program = [
            addi(if told.is_none() { 5 } else { 0 }, 0, 7),
            addi(6, 5, 1),
        ];
        let mut bench = Bench::new(&program);
        let items: Vec<Item> = told.into_iter().map(|value| x(5, value)).collect();
        bench.insn(program[0], &items);
        bench.insn(program[1], &[x(6, then + 1)]);
        assert_eq!(bench.mismatches().len(), 1, "{told:?} {then}");
    }
}

#[test]
fn a_pc_both_ways() {
    let program = [beq(0, 5, 8), addi(6, 0, 1), addi(7, 0, 2), addi(8, 0, 3)];
    let bench = || {
        let mut bench = Bench::new(&program);
        bench.toy.x[5] = 1;
        bench.jump(program[0], BASE + 8, &[]);
        bench
    };
    let mut stays = bench();
    stays.insn(program[2], &[x(7, 2)]);
    stays.insn(program[3], &[x(8, 3)]);
    assert_eq!(stays.mismatches(), ["0: pc 80000004/80000008"]);
    let mut goes = bench();
    goes.insn(program[1], &[x(6, 1)]);
    goes.insn(program[2], &[x(7, 2)]);
    assert_eq!(goes.mismatches(), ["0: pc 80000004/80000008"]);
    assert_eq!(goes.run().counters.taken_back, 1);
}

#[test]
fn memory_both_ways() {
    let program = [sw(5, 0, 10), lw(6, 0, 10), lw(7, 0, 10)];
    for (told, then) in [(Some(4), 4), (Some(4), 3), (None, 0), (None, 3)] {
        let mut bench = Bench::new(&program);
        pointers(&mut bench);
        bench.toy.x[5] = 3;
        let addr = Item::EffectiveAddress(BASE + 0x800);
        let items: Vec<Item> = told
            .into_iter()
            .flat_map(|value| [addr, Item::StoreData(2, value)])
            .collect();
        bench.insn(program[0], &items);
        bench.insn(program[1], &[x(6, then)]);
        bench.insn(program[2], &[x(7, then)]);
        assert_eq!(bench.mismatches().len(), 1, "{told:?} {then}");
        let model = bench.run().verifier.model;
        assert_eq!(model.load(BASE + 0x800, 4), Some(then));
    }
}

#[test]
fn a_store_elsewhere_both_ways() {
    let program = [sw(5, 0, 10), lw(6, 0, 10), lw(7, 0x100, 10)];
    for (here, there) in [(0, 3), (3, 0)] {
        let mut bench = Bench::new(&program);
        pointers(&mut bench);
        bench.toy.x[5] = 3;
        let addr = Item::EffectiveAddress(BASE + 0x900);
        bench.insn(program[0], &[addr, Item::StoreData(2, 3)]);
        bench.insn(program[1], &[x(6, here)]);
        bench.insn(program[2], &[x(7, there)]);
        assert_eq!(
            bench.mismatches(),
            ["0: store address 80000800/80000900"],
            "{here} {there}"
        );
    }
}

#[test]
fn a_mode_both_ways() {
    let program = [NOP, csrr(5, 0x340)];
    let mut bench = Bench::new(&program);
    bench.toy.csrs.insert(0x305, BASE + 8);
    bench.insn(NOP, &[Item::Mode(0)]);
    let csrs = |cause, status| {
        [
            csr("mepc", BASE + 8),
            csr("mcause", cause),
            csr("mstatus", status),
            csr("mtval", 0),
            Item::Mode(3),
        ]
    };
    bench
        .toy
        .write(
            Place::Memory {
                addr: BASE + 8,
                size: 4,
            },
            ECALL.into(),
        )
        .unwrap();
    bench.insn(program[1], &[x(5, 0)]);
    let mut stays = Bench {
        toy: bench.toy.clone(),
        config: bench.config.clone(),
        options: bench.options.clone(),
        trace: bench.trace.clone(),
    };
    stays.jump(ECALL, BASE + 8, &csrs(8, 0xa_0000_0000));
    assert_eq!(stays.mismatches(), ["0: privilege mode 3/0"]);
    bench.jump(ECALL, BASE + 8, &csrs(11, 0xa_0000_1800));
    assert_eq!(bench.mismatches(), ["0: privilege mode 3/0"]);
    assert_eq!(bench.run().counters.taken_back, 1);
}

/// A CSR in dispute decides when it is used.
#[test]
fn a_csr_both_ways() {
    let program = [csrrw(0, 0x340, 10), csrr(5, 0x340)];
    for (then, back) in [(5, 0), (9, 1)] {
        let mut bench = Bench::new(&program);
        bench.toy.x[10] = 9;
        bench.insn(program[0], &[csr("mscratch", 5)]);
        bench.insn(program[1], &[x(5, then)]);
        let outcome = bench.run();
        assert_eq!(outcome.heard.mismatches, ["0: mscratch 9/5"]);
        assert_eq!(outcome.counters.taken_back, back);
    }
}

/// A wrong mie is taken back when an interrupt is taken that it would not
/// have let through.
#[test]
fn an_interrupt_takes_a_csr_back() {
    let program = [csrrw(0, 0x304, 10), NOP];
    let mut bench = Bench::new(&program);
    bench.toy.x[10] = 0x80;
    bench.toy.csrs.insert(0x300, 8);
    bench.insn(program[0], &[csr("mie", 0)]);
    bench.group(&[
        Item::Pc(HANDLER),
        csr("mepc", BASE + 4),
        csr("mcause", 1 << 63 | 7),
        csr("mstatus", 0x1880),
        csr("mtval", 0),
    ]);
    let outcome = bench.run();
    assert_eq!(outcome.heard.mismatches, ["0: mie 80/0"]);
    assert_eq!(outcome.counters.taken_back, 1);
    assert_eq!(outcome.verifier.model.csr(0x304), 0x80);
}

/// Many faults, each told once.
#[test]
fn every_fault_is_told() {
    let program: Vec<u32> = (1..20).map(|i| addi(5, 5, i)).collect();
    let mut bench = Bench::new(&program);
    let mut value = 0;
    for (i, bits) in (1u64..).zip(&program) {
        // Every third is off by one, and stays so.
        value += i + u64::from(i % 3 == 0);
        bench.insn(*bits, &[x(5, value)]);
    }
    let groups: Vec<u64> = (0..19).filter(|i| i % 3 == 2).collect();
    let told = bench.mismatches();
    assert_eq!(told.len(), groups.len());
    for (told, group) in told.iter().zip(groups) {
        assert!(told.starts_with(&format!("{group}: t0")), "{told}");
    }
}

/// What both have agreed on since is not taken back, be it the same value.
#[test]
fn a_dispute_ends_when_the_register_is_written() {
    let program = [
        addi(13, 0, 1),
        addi(12, 0, 1),
        addi(5, 13, 1),
        addi(6, 12, 0),
    ];
    let mut bench = Bench::new(&program);
    bench.toy.x[12] = 5;
    // a3 was meant.
    bench.insn(program[0], &[x(12, 1)]);
    bench.insn(program[1], &[x(12, 1)]);
    bench.insn(program[2], &[x(5, 2)]);
    bench.insn(program[3], &[x(6, 1)]);
    assert_eq!(bench.mismatches(), ["0: a3 1/-, a2 -/1"]);
    assert_eq!(bench.run().counters.taken_back, 1);
}

/// Nor is memory that was stored to again.
#[test]
fn a_dispute_ends_when_memory_is_written() {
    let program = [sw(5, 0, 10), sw(6, 4, 10), lw(7, 0, 10), lw(8, 4, 10)];
    let mut bench = Bench::new(&program);
    pointers(&mut bench);
    (bench.toy.x[5], bench.toy.x[6]) = (3, 3);
    // To the next word by mistake, where the same is stored then.
    let next = Item::EffectiveAddress(BASE + 0x804);
    bench.insn(program[0], &[next, Item::StoreData(2, 3)]);
    bench.insn(program[1], &[next, Item::StoreData(2, 3)]);
    bench.insn(program[2], &[x(7, 3)]);
    bench.insn(program[3], &[x(8, 3)]);
    assert_eq!(bench.mismatches(), ["0: store address 80000800/80000804"]);
}
