//! The cost table, as its documentation has it.

use hartrace_hart::{Costs, Platform};
use hartrace_isa::Xlen;

use crate::asm::*;
use crate::bench::{BASE, Bench, DATA, csr, small, status, virt};

/// Every class with instructions of it.
fn classes() -> Vec<(&'static str, Vec<u32>)> {
    vec![
        (
            "integer",
            vec![
                NOP,
                add(A0, A1, A2),
                lui(A0, 1),
                clz(A0, A1),
                FENCE,
                addw(A0, A1, A2),
            ],
        ),
        (
            "multiply",
            vec![
                mul(A0, A1, A2),
                mulhu(A0, A1, A2),
                mulw(A0, A1, A2),
                clmul(A0, A1, A2),
            ],
        ),
        (
            "divide",
            vec![div(A0, A1, A2), remu(A0, A1, A2), divw(A0, A1, A2)],
        ),
        (
            "load",
            vec![
                lb(A0, 0, A1),
                ld(A0, 0, A1),
                flw(1, 0, A1),
                fld(1, 0, A1),
                flh(1, 0, A1),
            ],
        ),
        (
            "store",
            vec![sb(A0, 8, A1), sd(A0, 8, A1), fsd(1, 8, A1), fsh(1, 8, A1)],
        ),
        ("branch", vec![beq(A1, ZERO, 8), blt(A1, A1, 8)]),
        (
            "atomic",
            vec![lr_w(A0, A1), sc_d(A0, A2, A1), amoadd_w(A0, A2, A1)],
        ),
        (
            "float",
            vec![
                fadd_s(RNE, 1, 2, 3),
                fsub_d(RNE, 1, 2, 3),
                feq_d(A0, 1, 2),
                fcvt_w_s(RNE, A0, 1),
                fmv_x_d(A0, 1),
                fclass_s(A0, 1),
                fsgnj_s(1, 2, 3),
                fmin_d(1, 2, 3),
                fadd_h(RNE, 1, 2, 3),
            ],
        ),
        (
            "float_multiply",
            vec![
                fmul_s(RNE, 1, 2, 3),
                fmul_d(RNE, 1, 2, 3),
                fmadd_d(1, 2, 3, 4),
            ],
        ),
        (
            "float_divide",
            vec![fdiv_s(RNE, 1, 2, 3), fdiv_d(RNE, 1, 2, 3)],
        ),
        ("float_sqrt", vec![fsqrt_s(RNE, 1, 2), fsqrt_d(RNE, 1, 2)]),
        (
            "system",
            vec![
                csrr(A0, csr::MSCRATCH),
                FENCE_I,
                sfence_vma(),
                csrw(csr::MSCRATCH, A0),
            ],
        ),
    ]
}

fn cycles(b: &mut Bench, word: u32) -> u64 {
    b.set_x(A1, DATA);
    let (before, mcycle) = (b.m.cycles(), b.csr(csr::MCYCLE));
    b.one(word);
    let taken = b.m.cycles() - before;
    assert_eq!(b.csr(csr::MCYCLE) - mcycle, taken, "mcycle counts the same");
    taken
}

fn bench(costs: Costs) -> Bench {
    let mut config = virt(Xlen::Rv64);
    config.costs = costs;
    let mut b = Bench::new(config);
    b.status(status::FS);
    b
}

#[test]
fn classes_cost_what_the_table_says() {
    let expected = [1, 3, 20, 2, 1, 1, 6, 4, 5, 20, 25, 4];
    let mut b = bench(Costs::default());
    for ((name, words), cost) in classes().into_iter().zip(expected) {
        for word in words {
            assert_eq!(cycles(&mut b, word), cost, "{name} {word:08x}");
        }
    }
}

#[test]
fn jumps_and_taken_branches_cost_two_more() {
    let mut b = bench(Costs::default());
    assert_eq!(cycles(&mut b, beq(A1, A1, 8)), 3);
    assert_eq!(cycles(&mut b, jal(ZERO, 8)), 3);
    assert_eq!(cycles(&mut b, jalr(RA, A1, 0)), 3);
    assert_eq!(cycles(&mut b, jal(ZERO, 4)), 3, "wherever it goes");
}

#[test]
fn traps_cost_eight() {
    let mut b = bench(Costs::default());
    for word in [ECALL, EBREAK, 0] {
        let before = b.m.cycles();
        b.fault(&[word]);
        assert_eq!(
            b.m.cycles() - before,
            8 + 1,
            "and the first nop of the handler"
        );
    }
}

#[test]
fn each_entry_can_be_overridden_alone() {
    for (name, words) in classes() {
        let mut costs = Costs::default();
        *costs.entry_mut(name).unwrap() = 77;
        let mut b = bench(costs);
        for (other, others) in classes() {
            let word = others[0];
            let is_it = other == name;
            assert_eq!(cycles(&mut b, word) == 77, is_it, "{name} {other}");
        }
        assert_eq!(cycles(&mut b, words[words.len() - 1]), 77);
    }
    let mut costs = Costs::default();
    (costs.jump, costs.taken, costs.trap) = (10, 100, 50);
    let mut b = bench(costs);
    assert_eq!(cycles(&mut b, jal(ZERO, 8)), 110);
    assert_eq!(cycles(&mut b, beq(ZERO, ZERO, 8)), 101);
    let before = b.m.cycles();
    b.fault(&[ECALL]);
    assert_eq!(b.m.cycles() - before, 51);
}

#[test]
fn entries_have_names() {
    let mut costs = Costs::default();
    for (i, (name, value)) in costs.entries().into_iter().enumerate() {
        assert_eq!(*costs.entry_mut(name).unwrap(), value);
        *costs.entry_mut(name).unwrap() = 100 + i as u8;
    }
    let values: Vec<u8> = costs.entries().iter().map(|e| e.1).collect();
    assert_eq!(values, (100..115).collect::<Vec<u8>>());
    assert_eq!(costs.entry_mut("nothing"), None);
}

#[test]
fn spike_counts_one_for_everything() {
    let mut b = Bench::new(small(Platform::Spike, Xlen::Rv64));
    b.status(status::FS);
    assert_eq!(b.m.config().costs, Costs::UNIT);
    for word in [
        NOP,
        mul(A0, A1, A2),
        div(A0, A1, A2),
        ld(A0, 0, A1),
        jal(ZERO, 8),
    ] {
        assert_eq!(cycles(&mut b, word), 1, "{word:08x}");
    }
    let (before, insns) = (b.m.cycles(), b.m.instructions());
    b.fault(&[NOP, ECALL]);
    assert_eq!(b.m.cycles() - before, 2, "a trap takes no time");
    assert_eq!(b.m.instructions() - insns, 2);
}

#[test]
fn costs_add_up_over_blocks() {
    // Straight code, loops and all: the sum of the parts.
    let mut b = bench(Costs::default());
    b.set_x(A0, 100);
    let code = [mul(A1, A0, A0), addi(A0, A0, -1), bne(A0, ZERO, -8), SPIN];
    b.code(BASE, &code);
    b.set_pc(BASE);
    b.run(300);
    assert_eq!(b.m.cycles(), 100 * (3 + 1 + 1) + 99 * 2);
}
