//! 1.1 and 3.1: state that no model can know comes from the trace.

use super::*;

fn mcycle(items: &[Item]) -> Bench {
    let mut bench = Bench::new(&[csrr(5, 0xb00), addi(6, 5, 1)]);
    bench.insn(csrr(5, 0xb00), items);
    bench
}

/// "Immediately prior to attempting to execute an instruction ... the
/// non-deterministic state should be copied."
#[test]
fn a_counter_that_is_read_comes_from_the_trace() {
    let mut bench = mcycle(&[x(5, 1000)]);
    bench.insn(addi(6, 5, 1), &[x(6, 1001)]);
    assert_eq!(bench.agrees().counters.csrs_taken, 1);
    // Told before it is read.
    let mut bench = Bench::new(&[csrr(5, 0xb00), addi(6, 5, 1)]);
    bench.group(&[csr("mcycle", 1000)]);
    bench.insn(csrr(5, 0xb00), &[x(5, 1000)]);
    bench.insn(addi(6, 5, 1), &[x(6, 1001)]);
    assert_eq!(bench.agrees().counters.csrs_taken, 0);
}

/// The user's view of a counter is as volatile.
#[test]
fn counters_by_another_name() {
    let mut bench = Bench::new(&[csrr(5, 0xc00), csrr(6, 0xc01)]);
    bench.insn(csrr(5, 0xc00), &[x(5, 77)]);
    bench.insn(csrr(6, 0xc01), &[x(6, 78)]);
    assert_eq!(bench.agrees().counters.csrs_taken, 2);
}

#[test]
fn a_csr_that_is_not_volatile_is_compared() {
    let mut bench = Bench::new(&[csrr(5, 0x340)]);
    bench.insn(csrr(5, 0x340), &[x(5, 1)]);
    assert_eq!(bench.mismatches(), ["0: t0 0/1"]);
    bench.options.volatile.add("mscratch").unwrap();
    bench.agrees();
}

/// "State classified as non-deterministic should be the minimum necessary ...
/// such as single registers or individual bits within registers."
#[test]
fn single_bits_are_volatile() {
    let read = |value| {
        let mut bench = Bench::new(&[csrr(5, 0x340)]);
        bench.options.volatile.add("mscratch:0xf0").unwrap();
        bench.insn(csrr(5, 0x340), &[x(5, value)]);
        bench.mismatches()
    };
    assert_eq!(read(0x50), [""; 0]);
    assert_eq!(read(0x51), ["0: t0 0/51"]);
    let write = |value| {
        let mut bench = Bench::new(&[csrrw(0, 0x340, 5)]);
        bench.options.volatile.add("mscratch:0xf0").unwrap();
        bench.toy.x[5] = 0xf;
        bench.insn(csrrw(0, 0x340, 5), &[csr("mscratch", value)]);
        bench.mismatches()
    };
    assert_eq!(write(0xaf), [""; 0]);
    assert_eq!(write(0xae), ["0: mscratch f/ae"]);
}

/// A register that changes by itself and is not told: nobody has seen it (1.1).
#[test]
fn unobserved_state_is_not_missed() {
    let mut bench = Bench::new(&[NOP, NOP]);
    bench.insn(NOP, &[csr("mip", 0x80), csr("mcycle", 5)]);
    bench.insn(NOP, &[csr("mip", 0), Item::Offset(Register::csr(0xb00), 1)]);
    bench.agrees();
}

fn device(range: &str, bits: u32, value: u64) -> Outcome {
    let mut bench = Bench::new(&[bits, addi(6, 5, 1)]);
    pointers(&mut bench);
    if !range.is_empty() {
        bench.options.volatile.add(range).unwrap();
    }
    bench.insn(bits, &[x(5, value), Item::EffectiveAddress(DEVICE)]);
    bench.insn(addi(6, 5, 1), &[x(6, value.wrapping_add(1))]);
    bench.run()
}

#[test]
fn loads_from_devices_come_from_the_trace() {
    let taken = |outcome: Outcome| (outcome.heard.mismatches, outcome.counters.loads_taken);
    let range = "0x10000000:0x100";
    assert_eq!(taken(device(range, lw(5, 0, 12), 0x1234)), (vec![], 1));
    assert_eq!(taken(device(range, lbu(5, 0, 12), 0xff)), (vec![], 1));
    let wrong = vec!["0: t0 0/1234".to_string()];
    assert_eq!(taken(device("", lw(5, 0, 12), 0x1234)), (wrong.clone(), 0));
    let elsewhere = "0x10000004:0x100";
    assert_eq!(taken(device(elsewhere, lw(5, 0, 12), 0x1234)), (wrong, 0));
}

/// Appendix C.5 (notes 4): a load of 32 bits cannot give 0x55aa55aa55aa55aa,
/// wherever it comes from.
#[test]
fn a_load_gives_only_what_it_can() {
    let range = "0x10000000:0x100";
    let told = |bits, value| device(range, bits, value).heard.mismatches;
    assert_eq!(
        told(lw(5, 0, 12), 0x55aa_55aa_55aa_55aa),
        ["0: t0 0/55aa55aa55aa55aa"]
    );
    assert_eq!(told(lw(5, 0, 12), 0x55aa_55aa), [""; 0]);
    assert_eq!(told(lw(5, 0, 12), 0x8000_0000), ["0: t0 0/80000000"]);
    assert_eq!(told(lw(5, 0, 12), 0xffff_ffff_8000_0000), [""; 0]);
    assert_eq!(told(lbu(5, 0, 12), 0x100), ["0: t0 0/100"]);
    assert_eq!(told(load(3, 5, 12, 0), 0x55aa_55aa_55aa_55aa), [""; 0]);
}

/// A load from a device whose result is not told at all is a missing write.
#[test]
fn a_lost_load_from_a_device() {
    let mut bench = Bench::new(&[[addi(7, 0, 0); 8].to_vec(), vec![lw(5, 0, 12)]].concat());
    pointers(&mut bench);
    bench.toy.x[5] = 3;
    bench.options.volatile.add("0x10000000:0x100").unwrap();
    for _ in 0..8 {
        bench.insn(addi(7, 0, 0), &[x(7, 0)]);
    }
    bench.insn(lw(5, 0, 12), &[Item::EffectiveAddress(DEVICE)]);
    assert_eq!(bench.mismatches(), ["8: t0 0/-"]);
}

/// Memory that others write: what a load gives is there from then on.
#[test]
fn shared_memory_keeps_what_was_loaded() {
    let mut bench = Bench::new(&[lw(5, 0, 10), lw(6, 0, 10), lw(7, 0, 10)]);
    pointers(&mut bench);
    bench.options.volatile.add("0x80000800:4").unwrap();
    bench.insn(lw(5, 0, 10), &[x(5, 9)]);
    bench.insn(lw(6, 0, 10), &[x(6, 9)]);
    let outcome = bench.agrees();
    assert_eq!(outcome.counters.loads_taken, 1);
    assert_eq!(outcome.verifier.model.load(BASE + 0x800, 4), Some(9));
    assert_eq!(outcome.verifier.shadow().memory.read(BASE + 0x800, 4), 9);
}

/// HTIF: a host answers behind the trace's back, where it was called from.
#[test]
fn a_host_writes_to_its_mailbox() {
    let program = [sw(5, 0, 11), lw(6, 0, 11), lw(7, 0, 10)];
    let mut bench = Bench::new(&program);
    pointers(&mut bench);
    bench.options.tohost = Some(BASE + 0x900);
    // A call block at a0.
    bench.toy.x[5] = BASE + 0x800;
    let told = Item::StoreData(2, 0x8000_0800);
    bench.insn(program[0], &[Item::EffectiveAddress(BASE + 0x900), told]);
    // The host has taken it, and has answered.
    bench.insn(program[1], &[x(6, 0)]);
    bench.insn(program[2], &[x(7, 42)]);
    assert_eq!(bench.agrees().counters.loads_taken, 2);
    bench.options.tohost = None;
    assert_eq!(bench.mismatches().len(), 2);
}

/// A CSR the model does not have cannot be compared; it is counted.
#[test]
fn unknown_csrs_of_the_model() {
    let mut bench = Bench::new(&[NOP, NOP]);
    bench.insn(NOP, &[csr("0x7c0", 1)]);
    bench.group(&[csr("0x7c1", 1)]);
    bench.insn(NOP, &[]);
    assert_eq!(bench.agrees().counters.unmodelled, 2);
}

/// "Memory trace information may be used to initialize memory in the tandem
/// verifier", and beside an instruction it is not compared: "no assumptions
/// can be made".
#[test]
fn memory_transactions() {
    let mut bench = Bench::new(&[lw(5, 0, 10), NOP]);
    pointers(&mut bench);
    let request = |op, data| {
        Item::Request(Request {
            addr: BASE + 0x800,
            op,
            size: 2,
            data,
        })
    };
    bench.group(&[Item::StateInit, request(Operation::Store, 77)]);
    let response = Item::Response(Response {
        op: Operation::Load,
        size: 2,
        failure: false,
        data: 77,
    });
    bench.insn(
        lw(5, 0, 10),
        &[x(5, 77), request(Operation::Load, 0), response],
    );
    bench.insn(NOP, &[request(Operation::Store, 1)]);
    let outcome = bench.agrees();
    assert_eq!(outcome.verifier.model.load(BASE + 0x800, 4), Some(77));
}
