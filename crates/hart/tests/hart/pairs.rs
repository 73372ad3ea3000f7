//! Instructions in a row do what they do one by one (unprivileged manual, 1.2:
//! a hart appears to execute in program order). The other tests look at single
//! instructions; these put every two behind each other.

use hartrace_isa::Xlen;

use crate::asm::*;
use crate::bench::{BASE, Bench, DATA, NoObserver, Recorder, WIDTHS, csr, insns};

/// Where the code is.
const CODE: u64 = BASE + 0x1_0000;

/// Instructions that programs are made of. A5 points at memory, A4 nowhere.
fn common(xlen: Xlen) -> Vec<u32> {
    let mut all = vec![
        addi(A0, A1, 5),
        addi(A1, A0, -3),
        addi(A2, A0, 0),
        addi(A0, A2, 0),
        addi(A0, ZERO, 77),
        addi(ZERO, A0, 1),
        lui(A1, 0x80001),
        auipc(A1, 1),
        add(A0, A0, A1),
        add(A1, A0, A2),
        sub(A2, A0, A1),
        xor(A0, A1, A0),
        andi(A0, A0, 0xf),
        slli(A0, A0, 3),
        slli(A1, A0, 20),
        srli(A0, A0, 20),
        mul(A1, A0, A0),
        sltu(A0, A1, A2),
        lw(A0, 0, A5),
        lw(A1, 4, A5),
        lbu(A0, 1, A5),
        lbu(A2, 2, A5),
        sw(A0, 0, A5),
        sw(A1, 4, A5),
        sb(A0, 1, A5),
        lw(A0, 0, A4),
        sb(A0, 0, A4),
        bne(A0, A1, 8),
        beq(A0, A1, 8),
        blt(A1, A0, 8),
        bltu(A0, A2, 8),
        jal(RA, 8),
        jalr(A1, A3, 0),
        clz(A0, A0),
        0,
    ];
    if xlen == Xlen::Rv64 {
        all.extend([
            addiw(A0, A0, -1),
            addiw(A1, A0, 1),
            srliw(A0, A0, 4),
            ld(A0, 0, A5),
            ld(A1, 8, A5),
            sd(A0, 0, A5),
            sd(A1, 8, A5),
            ld(A0, 3, A5),
            ld(A0, 0, A4),
            sd(A0, 0, A4),
        ]);
    }
    all
}

/// The state programs can see.
type State = (Vec<u64>, u64, u64, u64, [u64; 4]);

fn state(b: &Bench) -> State {
    let registers = (0..32).map(|n| b.x(n)).collect();
    let csrs = [csr::MEPC, csr::MCAUSE, csr::MTVAL, csr::MINSTRET].map(|n| b.csr(n));
    (
        registers,
        b.mem(DATA, 8),
        b.mem(DATA + 8, 8),
        b.m.cycles(),
        csrs,
    )
}

fn prepare(b: &mut Bench, pc: u64) {
    for (register, value) in [(A0, 7), (A1, 0x1234_5678_9abc_def0), (A2, 7), (A4, 16)] {
        b.set_x(register, value);
    }
    b.set_x(A3, CODE);
    b.set_x(A5, DATA);
    b.set_mem(DATA, 8, 0x8899_aabb_ccdd_eeff);
    b.set_pc(pc);
}

/// Runs two instructions: at once, at once and watched, and one by one. The
/// three machines have the same past.
fn compare(benches: &mut [Bench; 3], pair: [u32; 2]) {
    for b in &mut *benches {
        prepare(b, CODE);
        b.code(CODE, &pair);
    }
    let [unseen, watched, single] = benches;
    unseen.m.run(2, &mut NoObserver);
    let (mut at_once, mut one_by_one) = (Recorder::default(), Recorder::default());
    watched.m.run(2, &mut at_once);
    single.m.run(1, &mut one_by_one);
    single.m.run(1, &mut one_by_one);
    let shown = format!("{:08x} {:08x}", pair[0], pair[1]);
    for b in [unseen, watched] {
        assert_eq!(state(b), state(single), "{shown}");
        assert_eq!(b.m.pc(), single.m.pc(), "{shown}");
    }
    assert!(at_once.0 == one_by_one.0, "{shown}");
}

#[test]
fn two_in_a_row_are_one_after_the_other() {
    for xlen in WIDTHS {
        let mut benches = [0; 3].map(|_| Bench::of(xlen));
        let all = common(xlen);
        for &first in &all {
            for &second in &all {
                compare(&mut benches, [first, second]);
            }
        }
    }
}

#[test]
fn a_fault_of_the_second_leaves_the_first_done() {
    // Priv. 3.1.14 and 1.6 (precise traps): all before epc, nothing behind.
    for xlen in WIDTHS {
        let mut b = Bench::of(xlen);
        for first in [
            addi(A0, ZERO, 5),
            addi(A0, A0, 5),
            lbu(A0, 0, A5),
            add(A0, A5, ZERO),
        ] {
            for (second, code) in [(lw(A1, 0, A4), 5), (sw(A1, 0, A4), 7), (0, 2), (ECALL, 11)] {
                prepare(&mut b, BASE);
                b.set_x(A0, 1);
                assert_eq!(b.fault(&[first, second, addi(A2, ZERO, 9)]).0, code);
                assert_eq!(b.csr(csr::MEPC), BASE + 4);
                assert_ne!(b.x(A0), 1);
                assert_eq!(b.x(A2), 7);
            }
        }
    }
}

#[test]
fn a_fault_of_the_first_leaves_the_second_undone() {
    // As above.
    let mut b = Bench::rv64();
    for first in [
        lw(A1, 0, A4),
        ld(A1, 0, A4),
        lbu(A1, 0, A4),
        sw(A1, 0, A4),
        sd(A1, 0, A4),
    ] {
        for second in [
            addi(A0, ZERO, 5),
            add(A0, A0, A5),
            lw(A0, 0, A5),
            ld(A0, 8, A5),
        ] {
            prepare(&mut b, BASE);
            b.fault(&[first, second]);
            assert_eq!((b.csr(csr::MEPC), b.x(A0)), (BASE, 7));
        }
    }
}

#[test]
fn the_first_may_be_a_store_to_the_second() {
    // Chapter 6, as in `control`: with every store.
    for (store, value) in [
        (sw(A1, 4, A5), addi(A0, ZERO, 9).into()),
        (sb(A1, 7, A5), 0),
        (
            sd(A1, 4, A5),
            u64::from(NOP) << 32 | u64::from(addi(A0, ZERO, 9)),
        ),
    ] {
        for second in [
            addi(A0, A0, 0x7f0),
            lw(A0, 0, A5),
            bne(A0, A1, 8),
            add(A0, A5, A5),
        ] {
            let mut b = Bench::rv64();
            b.set_x(A5, BASE);
            b.set_x(A1, value);
            b.code(BASE, &[store, second, NOP]);
            b.set_pc(BASE);
            let steps = b.steps(2);
            let memory = b.mem(BASE + 4, 4) as u32;
            assert_eq!(insns(&steps)[1].bits, memory, "{store:08x} {second:08x}");
        }
    }
}

#[test]
fn a_jump_into_the_middle_finds_the_second() {
    // Unprivileged 1.5: any aligned address is a target.
    let mut b = Bench::rv64();
    b.code(
        BASE,
        &[
            addi(A0, A0, 1),
            addi(A0, A0, 10),
            add(A1, A0, A0),
            jal(ZERO, -8),
        ],
    );
    b.set_pc(BASE);
    b.run(4 + 3 * 5);
    assert_eq!(b.x(A0), 1 + 10 * 6);
    assert_eq!(b.x(A1), 2 * b.x(A0));
}
