//! Jumps and branches (unprivileged manual, 2.5), instruction fetch (1.5, 27)
//! and code that changes (chapter 6, Zifencei).

use hartrace_flow::{Model, Place};

use crate::asm::*;
use crate::bench::{BASE, Bench, DATA, HANDLER, SIZE, WIDTHS, insns};

#[test]
fn jumps_link_to_the_instruction_behind() {
    // 2.5.1; 27.4 for the 16-bit forms.
    for xlen in WIDTHS {
        let mut b = Bench::of(xlen);
        b.one(jal(RA, 0x100));
        assert_eq!((b.x(RA), b.m.pc()), (BASE + 4, BASE + 0x100));
        b.one(jal(A0, -0x1000));
        assert_eq!((b.x(A0), b.m.pc()), (BASE + 4, BASE - 0x1000));
        b.set_x(A1, BASE + 0x200);
        b.one(jalr(RA, A1, -4));
        assert_eq!((b.x(RA), b.m.pc()), (BASE + 4, BASE + 0x1fc));
        b.one(jal(ZERO, 8));
        assert_eq!(b.x(0), 0);
        // c.jalr a1
        b.halfwords(BASE, &[0x9002 | 11 << 7]);
        b.set_pc(BASE);
        b.run(1);
        assert_eq!((b.x(RA), b.m.pc()), (BASE + 2, BASE + 0x200));
    }
}

#[test]
fn jalr_clears_the_lowest_bit_and_reads_before_it_writes() {
    // 2.5.1: "setting the least-significant bit of the result to zero".
    let mut b = Bench::rv64();
    b.set_x(A1, BASE + 0x100);
    b.one(jalr(A0, A1, 1));
    assert_eq!(b.m.pc(), BASE + 0x100);
    b.one(jalr(A1, A1, 2));
    assert_eq!((b.m.pc(), b.x(A1)), (BASE + 0x102, BASE + 4));
}

#[test]
fn branches_compare_all_of_both_registers() {
    // 2.5.2.
    let numbers = [0i64, 1, -1, 5, i64::from(i32::MIN), i64::from(i32::MAX)];
    for xlen in WIDTHS {
        let mut b = Bench::of(xlen);
        for x in numbers {
            for y in numbers {
                b.set_x(A1, x as u64);
                b.set_x(A2, y as u64);
                let (ux, uy) = (xlen.wrap(x as u64), xlen.wrap(y as u64));
                let all = [
                    (beq(A1, A2, 16), x == y),
                    (bne(A1, A2, 16), x != y),
                    (blt(A1, A2, 16), x < y),
                    (bge(A1, A2, 16), x >= y),
                    (bltu(A1, A2, 16), ux < uy),
                    (bgeu(A1, A2, 16), ux >= uy),
                ];
                for (word, taken) in all {
                    b.one(word);
                    let to = if taken { BASE + 16 } else { BASE + 4 };
                    assert_eq!(b.m.pc(), to, "{word:08x} {x} {y}");
                }
            }
        }
    }
}

#[test]
fn misaligned_targets_trap_on_the_jump_and_link_nothing() {
    // 2.5: "an instruction-address-misaligned exception is generated on a
    // taken branch or unconditional jump"; epc is the jump (priv. 3.1.14), the
    // trap value the target (3.1.16).
    for isa in ["rv32i", "rv64i"] {
        let mut b = Bench::isa(isa);
        b.set_x(A1, BASE + 0x102);
        b.set_x(RA, 77);
        assert_eq!(b.fault(&[jal(RA, 6)]), (0, BASE, BASE + 6));
        assert_eq!(b.x(RA), 77);
        assert_eq!(b.fault(&[jalr(RA, A1, 0)]), (0, BASE, BASE + 0x102));
        assert_eq!(b.x(RA), 77);
        assert_eq!(
            b.fault(&[NOP, beq(ZERO, ZERO, -2)]),
            (0, BASE + 4, BASE + 2)
        );
        // Not taken, it is nobody's business.
        b.one(bne(ZERO, ZERO, 6));
        assert_eq!(b.m.pc(), BASE + 4);
        // Bit 0 is cleared before anyone looks.
        b.one(jalr(RA, A1, 3));
        assert_eq!(b.m.pc(), BASE + 0x104);
    }
}

#[test]
fn targets_outside_memory_trap_at_the_target() {
    // Priv. 3.1.14, 3.1.15 code 1: the fetch faults, the jump has retired.
    let mut b = Bench::rv64();
    b.set_x(A1, BASE + SIZE);
    assert_eq!(b.fault(&[jalr(RA, A1, 0)]), (1, BASE + SIZE, BASE + SIZE));
    assert_eq!(b.x(RA), BASE + 4);
    b.set_x(A1, 0x0200_0000);
    assert_eq!(b.fault(&[jalr(RA, A1, 0)]).0, 1, "devices hold no code");
}

#[test]
fn instructions_may_cross_pages() {
    // 1.5: instructions are aligned to IALIGN and nothing else.
    for xlen in WIDTHS {
        let mut b = Bench::of(xlen);
        let at = DATA + 0xffe;
        let word = addi(A0, A0, 5);
        b.halfwords(at, &[word, word >> 16, C_NOP]);
        b.set_x(A0, 1);
        for _ in 0..2 {
            b.set_pc(at - 2);
            b.halfwords(at - 2, &[C_NOP]);
            let pcs: Vec<u64> = insns(&b.steps(3)).iter().map(|i| i.pc).collect();
            assert_eq!(pcs, [at - 2, at, at + 4]);
        }
        assert_eq!(b.x(A0), 11);
        // The second half changes alone.
        b.set_mem(at + 2, 2, (addi(A0, A0, 7) >> 16).into());
        b.set_pc(at);
        b.run(1);
        assert_eq!(b.x(A0), 18);
    }
}

#[test]
fn stores_to_either_half_of_an_instruction_across_pages_are_seen() {
    // Chapter 6: by the program itself, after the instruction has run.
    let at = DATA + 0xffe;
    let (old, new) = (addi(A0, ZERO, 5), addi(A1, ZERO, 7));
    for (offset, bits) in [(2, new >> 16), (0, new)] {
        let mut b = Bench::rv64();
        b.halfwords(at, &[old, old >> 16]);
        b.code(at + 4, &[jalr(ZERO, RA, 0)]);
        b.set_x(A3, at);
        b.set_x(A4, bits.into());
        let code = [jalr(RA, A3, 0), sh(A4, offset, A3), jalr(RA, A3, 0)];
        b.code(BASE, &code);
        b.set_pc(BASE);
        b.run(7);
        let expected = if offset == 2 { (7, 0x1020) } else { (5, 5) };
        assert_eq!((b.x(A0), b.x(A1)), expected);
    }
}

#[test]
fn an_instruction_half_outside_memory_names_the_missing_half() {
    // Priv. 3.1.16: "the portion of the instruction that caused the fault".
    let mut b = Bench::rv64();
    let at = BASE + SIZE - 2;
    b.halfwords(at, &[NOP]);
    b.set_x(A1, at);
    assert_eq!(b.fault(&[jalr(ZERO, A1, 0)]), (1, at, at + 2));
    b.halfwords(at, &[C_NOP]);
    b.set_pc(at);
    let steps = b.steps(2);
    assert_eq!(insns(&steps)[0].pc, at, "a short one fits");
    assert_eq!(b.csr(0x341), at + 2);
}

#[test]
fn stored_code_is_executed_after_fence_i() {
    // Chapter 6.
    let mut b = Bench::rv64();
    b.set_x(A1, BASE);
    b.set_x(A2, addi(A0, ZERO, 9).into());
    let code = [
        addi(A0, ZERO, 1),
        sw(A2, 16, A1),
        FENCE_I,
        NOP,
        addi(A0, ZERO, 2),
    ];
    b.exec(&code);
    assert_eq!(b.x(A0), 9);
}

#[test]
fn stored_code_is_seen_at_once_even_by_the_running_block() {
    // Chapter 6 leaves it open; this hart never executes stale code.
    for platform in hartrace_hart::Platform::ALL {
        let mut b = Bench::new(crate::bench::small(platform, hartrace_isa::Xlen::Rv64));
        b.set_x(A1, BASE);
        b.set_x(A2, addi(A0, ZERO, 9).into());
        b.exec(&[addi(A0, ZERO, 1), sw(A2, 8, A1), addi(A0, ZERO, 2)]);
        assert_eq!(b.x(A0), 9);
        // One byte of the next instruction: the destination.
        b.set_x(A2, 0x06);
        b.exec(&[NOP, sb(A2, 9, A1), addi(A0, ZERO, 0x500), addi(A0, ZERO, 2)]);
        assert_eq!((b.x(12), b.x(A0)), (0x500, 2), "addi a2");
    }
}

#[test]
fn a_loop_sees_what_it_changes_in_itself() {
    // Chapter 6, as above: an immediate grows every time round.
    let mut b = Bench::rv64();
    b.set_x(A1, BASE);
    b.set_x(A3, 10);
    let code = [
        addi(A0, ZERO, 0),
        lw(A2, 0, A1),
        lui(A4, 0x100),
        add(A2, A2, A4),
        sw(A2, 0, A1),
        addi(A3, A3, -1),
        bne(A3, ZERO, -24),
    ];
    b.code(BASE, &code);
    b.run(70);
    assert_eq!(b.x(A0), 9);
    assert_eq!(b.mem(BASE, 4), addi(A0, ZERO, 10).into());
}

#[test]
fn amos_misaligned_and_float_stores_change_code_too() {
    // Chapter 6: any store.
    let mut b = Bench::rv64();
    b.set_x(A1, BASE + 8);
    b.set_x(A2, addi(A0, ZERO, 9).into());
    b.exec(&[NOP, amoswap_w(ZERO, A2, A1), addi(A0, ZERO, 2)]);
    assert_eq!(b.x(A0), 9);
    b.exec(&[lr_w(A3, A1), sc_w(A3, A2, A1), addi(A0, ZERO, 2)]);
    assert_eq!(b.x(A0), 9);
    let word = u64::from(addi(A0, ZERO, 9));
    b.set_x(A2, word >> 8);
    b.exec(&[NOP, sh(A2, 1, A1), addi(ZERO, ZERO, 9)]);
    assert_eq!(b.x(A0), 9, "rd is in the two middle bytes");
    b.status(crate::bench::status::FS);
    b.set_f(1, word);
    b.set_x(A0, 0);
    b.exec(&[NOP, fsw(1, 0, A1), addi(A0, ZERO, 2)]);
    assert_eq!(b.x(A0), 9);
}

#[test]
fn code_changed_from_outside_is_seen() {
    // What a debugger or the host writes.
    let mut b = Bench::rv64();
    b.exec(&[addi(A0, ZERO, 1), addi(A1, ZERO, 1)]);
    let place = Place::Memory {
        addr: BASE + 4,
        size: 4,
    };
    b.m.write(place, addi(A1, ZERO, 5).into()).unwrap();
    b.set_pc(BASE);
    b.run(2);
    assert_eq!((b.x(A0), b.x(A1)), (1, 5));
}

#[test]
fn vector_instructions_are_illegal() {
    // vsetvli a0,a1,e32,m1,ta,ma; vle32.v v8,(a1); vs1r.v v8,(a1); vadd.vv v1,v2,v3;
    // vmv.x.s a0,v2; vfmv.f.s fa0,v2; vaesz.vs v1,v2.
    for word in [
        0x0d05_f557,
        0x0205_e407,
        0x0285_8427,
        0x0221_80d7,
        0x4220_2557,
        0x4220_1557,
        0xa623_a0f7,
    ] {
        assert!(Bench::rv64().is_illegal(word), "{word:08x}");
        assert!(Bench::rv32().is_illegal(word), "{word:08x}");
    }
}

#[test]
fn illegal_instructions_trap_with_their_bits() {
    // 1.5: all zeros and all ones are illegal; priv. 3.1.16: the trap value is
    // the instruction, of 16-bit ones the 16 bits.
    for xlen in WIDTHS {
        let mut b = Bench::of(xlen);
        for (word, tval) in [
            (0u32, 0),
            (0x1357_0000, 0),
            (0xffff_ffff, 0xffff_ffff),
            (0x0000_0077, 0x77),
            (0x0000_8000 | 0x1c00, 0x9c00),
        ] {
            assert_eq!(b.fault(&[word]), (2, BASE, tval), "{word:08x}");
            assert_eq!(b.m.pc(), HANDLER + 4);
        }
    }
}

#[test]
fn sixteen_bit_code_is_illegal_without_c() {
    // Chapter 27; with IALIGN = 32 an instruction that starts with 16-bit
    // encoding does not exist.
    let mut b = Bench::isa("rv64i");
    assert_eq!(b.fault(&[C_NOP]).0, 2);
}
