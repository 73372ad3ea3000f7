//! Notes 31 to 35: which groups make the model attempt something.

use super::*;
use crate::Fault;

/// Attempts of the model.
fn steps(bench: &Bench) -> u64 {
    bench.agrees().verifier.model.steps
}

/// Notes 34: state from outside is taken over, and nothing is attempted.
#[test]
fn initial_state_does_not_step() {
    let mut bench = Bench::new(&[addi(6, 5, 1)]);
    bench.group(&[Item::StateInit, x(5, 41), csr("mscratch", 9), f(2, 3)]);
    bench.group(&[Item::StateInit, Item::Pc(BASE), Item::Mode(3)]);
    bench.insn(addi(6, 5, 1), &[x(6, 42)]);
    assert_eq!(steps(&bench), 1);
    let outcome = bench.run();
    assert_eq!(outcome.counters.inits, 2);
    assert_eq!(outcome.verifier.model.csr(0x340), 9);
    assert_eq!(outcome.verifier.model.f[2], 3);
}

#[test]
fn a_debugger_moves_the_hart() {
    let mut bench = Bench::new(&[NOP, 0, addi(5, 0, 1)]);
    bench.insn(NOP, &[]);
    bench.group(&[Item::StateInit, Item::Pc(BASE + 8), Item::Mode(0)]);
    bench.insn(addi(5, 0, 1), &[x(5, 1)]);
    let outcome = bench.agrees();
    assert_eq!(outcome.verifier.model.mode, 0);
}

/// Notes 34: a pending interrupt, as the Bluespec cores tell it.
#[test]
fn pending_interrupts_as_initial_state() {
    let mut bench = Bench::new(&[NOP, csrr(5, 0x344)]);
    bench.insn(NOP, &[]);
    bench.group(&[Item::StateInit, csr("mip", 0x80)]);
    bench.insn(csrr(5, 0x344), &[x(5, 0x80)]);
    assert_eq!(steps(&bench), 2);
    assert_eq!(bench.run().counters.csrs_taken, 0, "the model was told");
}

/// Notes 35: a group with nothing but time or pending interrupts.
#[test]
fn time_and_pending_interrupts_do_not_step() {
    let mut bench = Bench::new(&[csrr(5, 0x344), csrr(6, 0x344)]);
    bench.group(&[Item::Mtime(1000)]);
    bench.group(&[csr("mip", 0x80)]);
    bench.insn(csrr(5, 0x344), &[x(5, 0x80)]);
    bench.group(&[csr("mip", 0), Item::Mtime(1001)]);
    bench.insn(csrr(6, 0x344), &[x(6, 0)]);
    assert_eq!(steps(&bench), 2);
    let outcome = bench.run();
    assert_eq!(outcome.counters.updates, 3);
    assert_eq!(outcome.verifier.shadow().mtime, Some(1001));
    assert_eq!(outcome.counters.csrs_taken, 0, "the model was told");
}

/// Notes 28: items outside of groups do not step.
#[test]
fn items_outside_of_groups() {
    let mut bench = Bench::new(&[NOP, csrr(5, 0xb00)]);
    bench.insn(NOP, &[]);
    bench.outside(&[Item::Mtime(5), csr("mcycle", 77)]);
    bench.insn(csrr(5, 0xb00), &[x(5, 77)]);
    assert_eq!(steps(&bench), 2);
    assert_eq!(bench.run().counters.updates, 1);
}

/// What is not volatile does not change by itself.
#[test]
fn other_state_outside_of_instructions_is_spurious() {
    let mut bench = Bench::new(&[NOP, NOP]);
    bench.group(&[x(5, 1)]);
    bench.outside(&[csr("mscratch", 2)]);
    bench.insn(NOP, &[]);
    assert_eq!(bench.mismatches(), ["0: t0 -/1", "1: mscratch -/2"]);
    // It is followed all the same (3.1, step 5).
    assert_eq!(bench.run().verifier.model.x[5], 1);
}

#[test]
fn a_pc_or_a_mode_by_itself_is_spurious() {
    let mut bench = Bench::new(&[NOP, NOP, NOP]);
    bench.group(&[Item::Pc(BASE + 4)]);
    bench.insn(NOP, &[]);
    bench.group(&[Item::Mode(0)]);
    bench.insn(NOP, &[]);
    assert_eq!(
        bench.mismatches(),
        ["0: pc 80000000/80000004", "2: privilege mode 3/0"]
    );
}

/// Notes 33: a reset, and where the hart is then.
#[test]
fn a_reset() {
    let mut bench = Bench::new(&[addi(5, 0, 1), addi(5, 5, 1)]);
    bench.insn(addi(5, 0, 1), &[x(5, 1)]);
    bench.insn(addi(5, 5, 1), &[x(5, 2)]);
    bench.group(&[Item::Reset]);
    bench.insn(addi(5, 0, 1), &[x(5, 1)]);
    bench.insn(addi(5, 5, 1), &[x(5, 2)]);
    let outcome = bench.agrees();
    assert_eq!(outcome.counters.resets, 1);
    assert_eq!(outcome.verifier.model.resets, 1);
    assert_eq!(outcome.verifier.model.steps, 4);
}

/// Memory after a reset is the model's.
#[test]
fn memory_is_as_before_a_reset_was() {
    let program = [sw(10, 0, 10), lw(5, 0, 10)];
    let mut bench = Bench::new(&program);
    pointers(&mut bench);
    let addr = Item::EffectiveAddress(BASE + 0x800);
    bench.insn(program[0], &[addr, Item::StoreData(2, 0x8000_0800)]);
    bench.group(&[Item::Reset, x(10, BASE + 0x800)]);
    bench.insn(program[0], &[addr, Item::StoreData(2, 0x8000_0800)]);
    bench.agrees();
}

/// Notes 32: x0 takes nothing, whatever is told.
#[test]
fn x0_is_ignored() {
    let mut bench = Bench::new(&[addi(0, 0, 5), NOP]);
    bench.insn(addi(0, 0, 5), &[x(0, 5)]);
    bench.insn(NOP, &[x(0, 0)]);
    bench.agrees();
}

/// Notes 31: a register twice is ambiguous. The group is a problem; what
/// follows is adopted until the place is known again.
#[test]
fn a_register_twice() {
    let program = [addi(5, 0, 1), addi(6, 0, 2), addi(7, 0, 3), addi(8, 0, 4)];
    let mut bench = Bench::new(&program);
    bench.insn(program[0], &[x(5, 1), x(5, 2)]);
    bench.insn(program[1], &[x(6, 2)]);
    bench.jump(program[2], BASE + 12, &[x(7, 3)]);
    bench.insn(program[3], &[x(8, 4), x(7, 4)]);
    let outcome = bench.run();
    let faults: Vec<Fault> = outcome.heard.problems.iter().map(|p| p.fault).collect();
    assert_eq!(faults, [Fault::RegisterTwice]);
    assert_eq!(outcome.counters.unchecked, 2);
    assert_eq!(outcome.heard.mismatches, ["3: t2 -/4"]);
}

/// "Increment PC must be contained within a group that also contains an
/// instruction", initial state must not be combined with one.
#[test]
fn groups_that_cannot_be() {
    for (items, fault) in [
        (vec![Item::IncrementPc], Fault::IncrementAlone),
        (
            vec![Item::StateInit, Item::Insn32(NOP)],
            Fault::InitWithExecution,
        ),
        (
            vec![Item::IncrementPc, Item::Pc(BASE), Item::Insn32(NOP)],
            Fault::TwoPcs,
        ),
        (vec![Item::Mode(2), Item::Insn32(NOP)], Fault::UnknownMode),
    ] {
        let mut bench = Bench::new(&[NOP, NOP]);
        bench.group(&items);
        let outcome = bench.run();
        assert_eq!(outcome.heard.problems[0].fault, fault);
        assert_eq!(outcome.heard.problems.len(), 1);
        assert_eq!(outcome.verifier.model.steps, 0);
    }
}

/// The form with two pcs: the first is where the instruction was.
#[test]
fn two_pcs() {
    let told = |from: u64| {
        let config = Config {
            pc: crate::PcForm::Both,
            ..Config::default()
        };
        let mut bench = Bench::with(config, &[NOP, NOP]);
        bench.group(&[Item::TwoPcs(from, BASE + 4), Item::Insn32(NOP)]);
        bench.group(&[Item::TwoPcs(BASE + 4, BASE + 8), Item::Insn32(NOP)]);
        bench.mismatches()
    };
    assert_eq!(told(BASE), [""; 0]);
    assert_eq!(told(BASE + 0x10).len(), 1);
}

/// A program that waits for an interrupt, in a trace without causes.
fn interrupted() -> Bench {
    let config = Config {
        absent: "trap.mcause,trap.mstatus".parse().unwrap(),
        ..Config::default()
    };
    let mut bench = Bench::with(config, &[NOP, NOP]);
    bench.insn(NOP, &[]);
    bench.group(&[Item::Pc(HANDLER), csr("mepc", BASE + 4), Item::Mode(3)]);
    bench
}

/// An interrupt whose cause is not told is one of those that are enabled. If there is none,
/// the core has taken one that it must not take, and the model goes on in the handler.
#[test]
fn an_interrupt_without_a_cause_has_to_be_enabled() {
    let mut bench = interrupted();
    let outcome = bench.run();
    assert_eq!(
        outcome.heard.mismatches,
        [format!("1: trap handler -/{HANDLER:x}")]
    );
    assert_eq!(outcome.counters.unchecked, 0);
    assert_eq!(outcome.verifier.model.pc, HANDLER);
    // mstatus.MIE and mie.MTIE
    bench
        .toy
        .csrs
        .extend([(0x300, 0xa_0000_0008), (0x304, 0x80)]);
    let outcome = bench.run();
    assert_eq!(outcome.heard.mismatches, [""; 0]);
    assert_eq!(outcome.counters.interrupts, 1);
}

/// Where the registers that enable interrupts are volatile, it cannot be checked.
#[test]
fn an_interrupt_without_a_cause_is_adopted_where_its_enable_is_volatile() {
    let mut bench = interrupted();
    bench.options.volatile.add("mie").unwrap();
    assert_eq!(bench.run().heard.mismatches, [""; 0]);
    assert_eq!(bench.run().counters.unchecked, 1);
    assert_eq!(bench.run().verifier.model.pc, HANDLER);
}

/// A jump that says where it came from and not why, in a trace that tells
/// causes, is no trap.
#[test]
fn a_jump_without_a_reason_is_a_mismatch() {
    let mut bench = Bench::new(&[NOP, NOP]);
    bench.insn(NOP, &[]);
    bench.group(&[Item::Pc(BASE + 8), csr("mepc", BASE + 4), Item::Mode(3)]);
    assert_eq!(bench.mismatches().len(), 1);
}

/// Bytes that are no trace: a problem with its place, and on behind it.
#[test]
fn bytes_that_are_none() {
    let mut bench = Bench::new(&[NOP; 40]);
    bench.insn(NOP, &[]);
    let at = bench.trace.len() as u64;
    bench.trace.push(0xee);
    for i in 1..30u64 {
        bench.jump(NOP, BASE + 4 * (i + 1), &[]);
    }
    bench.jump(NOP, BASE, &[]);
    let outcome = bench.run();
    let problem = outcome.heard.problems[0];
    assert_eq!((problem.at, problem.fault), (at, Fault::UnknownOpcode));
    assert_eq!(outcome.heard.resumed, [1]);
    assert_eq!(outcome.heard.mismatches, ["30: pc 8000007c/80000000"]);
    assert_eq!(outcome.counters.unchecked, 1);
}

#[test]
fn a_trace_that_ends_in_a_group() {
    let mut bench = Bench::new(&[NOP, NOP]);
    bench.insn(NOP, &[]);
    bench.outside(&[Item::BeginGroup, Item::IncrementPc]);
    let outcome = bench.run();
    assert_eq!(outcome.heard.problems[0].fault, Fault::OpenGroup);
    bench.trace.push(0x11);
    let outcome = bench.run();
    assert_eq!(outcome.heard.problems[0].fault, Fault::Truncated);
    assert_eq!(outcome.counters.retired, 1);
}

/// Behind a problem registers are not known. What an instruction makes of one
/// cannot be judged until it has been told.
#[test]
fn what_is_not_known_is_not_judged() {
    let program = [
        addi(6, 0, 1),
        addi(5, 0, 1),
        addi(5, 6, 1),
        sw(6, 0, 10),
        beq(6, 0, 8),
        NOP,
        addi(6, 0, 2),
        addi(5, 6, 1),
    ];
    let mut bench = Bench::new(&program);
    pointers(&mut bench);
    // t1 was 7 for the core.
    bench.insn(program[0], &[x(6, 7), x(6, 7)]);
    bench.jump(program[1], BASE + 8, &[x(5, 1)]);
    bench.insn(program[2], &[x(5, 8)]);
    let addr = Item::PhysicalAddress(BASE + 0x800);
    bench.insn(program[3], &[addr, Item::StoreData(2, 7)]);
    bench.jump(program[4], BASE + 24, &[]);
    bench.insn(program[6], &[x(6, 2)]);
    bench.insn(program[7], &[x(5, 4)]);
    let outcome = bench.run();
    assert_eq!(outcome.heard.mismatches, ["6: t0 3/4"]);
    assert_eq!(outcome.counters.unchecked, 3);
    assert_eq!(outcome.verifier.model.load(BASE + 0x800, 4), Some(7));
}

/// Fences have no floating-point operands that could be unknown.
#[test]
fn fences_are_judged_where_floating_point_registers_are_unknown() {
    // fence, fence.tso, fence.i
    for fence in [0x0ff0_000f, 0x8330_000f, 0x0000_100f] {
        let mut bench = Bench::new(&[NOP, fence]);
        bench.jump(NOP, BASE + 4, &[x(6, 7), x(6, 7)]);
        bench.group(&[Item::StateInit, Item::Pc(BASE + 4)]);
        bench.jump(fence, BASE + 16, &[]);
        let outcome = bench.run();
        let expected = ["2: pc 80000008/80000010"];
        assert_eq!(outcome.heard.mismatches, expected, "{fence:#x}");
    }
}
