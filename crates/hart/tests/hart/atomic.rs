//! The A extension (unprivileged manual, chapter 14; priv. 3.6.3, 3.6.4).

use hartrace_hart::Platform;
use hartrace_isa::Xlen;

use crate::asm::*;
use crate::bench::{BASE, Bench, CLINT, DATA, MTIMECMP, WIDTHS, small};
use crate::integer::{CORNERS, register, s, u};

#[test]
fn sc_succeeds_after_lr_and_writes_zero_to_rd() {
    // 14.2.
    for xlen in WIDTHS {
        let mut b = Bench::of(xlen);
        b.set_mem(DATA, 4, 0xffff_fff0);
        b.set_x(A1, DATA);
        b.set_x(A2, 5);
        b.exec(&[lr_w(A0, A1), sc_w(A3, A2, A1)]);
        assert_eq!(b.x(A0), xlen.wrap(0xffff_ffff_ffff_fff0), "sign-extended");
        assert_eq!((b.x(A3), b.mem(DATA, 4)), (0, 5));
    }
    let mut b = Bench::rv64();
    b.set_mem(DATA, 8, 0x8877_6655_4433_2211);
    b.set_x(A1, DATA);
    b.set_x(A2, u64::MAX);
    b.exec(&[lr_d(A0, A1), sc_d(A3, A2, A1)]);
    assert_eq!((b.x(A0), b.x(A3)), (0x8877_6655_4433_2211, 0));
    assert_eq!(b.mem(DATA, 8), u64::MAX);
}

#[test]
fn sc_fails_without_a_reservation_and_stores_nothing() {
    // 14.2: "If the SC.W fails, the instruction does not write to memory, and
    // it writes a nonzero value to rd"; 14.3: the code is 1.
    let mut b = Bench::rv64();
    b.set_x(A1, DATA);
    b.set_x(A2, 5);
    b.one(sc_w(A3, A2, A1));
    assert_eq!((b.x(A3), b.mem(DATA, 4)), (1, 0));
}

#[test]
fn sc_uses_up_the_reservation_whether_it_succeeds_or_fails() {
    // 14.2: "Regardless of success or failure, executing an SC.W instruction
    // invalidates any reservation held by this hart."
    let mut b = Bench::rv64();
    b.set_x(A1, DATA);
    b.set_x(A2, 5);
    b.set_x(A4, DATA + 64);
    b.exec(&[lr_w(A0, A1), sc_w(A3, A2, A1), sc_w(A5, A1, A1)]);
    assert_eq!((b.x(A3), b.x(A5), b.mem(DATA, 4)), (0, 1, 5));
    // An SC elsewhere fails and takes the reservation with it.
    b.exec(&[lr_w(A0, A1), sc_w(A3, A2, A4), sc_w(A5, A1, A1)]);
    assert_eq!((b.x(A3), b.x(A5)), (1, 1));
    assert_eq!((b.mem(DATA, 4), b.mem(DATA + 64, 4)), (5, 0));
    // A second LR moves the reservation.
    b.exec(&[lr_w(A0, A1), lr_w(A0, A4), sc_w(A3, A2, A1)]);
    assert_eq!(b.x(A3), 1);
}

#[test]
fn constrained_loops_make_progress() {
    // 14.3: an LR/SC loop of at most 16 simple instructions succeeds, here
    // also over the quantum in which Spike drops reservations.
    for platform in Platform::ALL {
        let mut b = Bench::new(small(platform, Xlen::Rv64));
        b.set_x(A1, DATA);
        let code = [
            lr_w(A0, A1),
            addi(A0, A0, 1),
            sc_w(A3, A0, A1),
            bne(A3, ZERO, -12),
            jal(ZERO, -16),
        ];
        b.code(BASE, &code);
        b.run(15_000);
        let count = b.mem(DATA, 4);
        assert!((2990..=3000).contains(&count), "{count}");
    }
}

/// What an AMO stores, from the memory operand and rs2.
type Formula = fn(i128, i128, i128, i128) -> i128;

/// Every AMO: both forms and a formula of both operands, signed and unsigned.
fn amos() -> [(u32, u32, Formula); 9] {
    [
        (amoswap_w(A0, A2, A1), amoswap_d(A0, A2, A1), |_, y, _, _| y),
        (amoadd_w(A0, A2, A1), amoadd_d(A0, A2, A1), |x, y, _, _| {
            x + y
        }),
        (amoxor_w(A0, A2, A1), amoxor_d(A0, A2, A1), |x, y, _, _| {
            x ^ y
        }),
        (amoand_w(A0, A2, A1), amoand_d(A0, A2, A1), |x, y, _, _| {
            x & y
        }),
        (amoor_w(A0, A2, A1), amoor_d(A0, A2, A1), |x, y, _, _| x | y),
        (amomin_w(A0, A2, A1), amomin_d(A0, A2, A1), |x, y, _, _| {
            x.min(y)
        }),
        (amomax_w(A0, A2, A1), amomax_d(A0, A2, A1), |x, y, _, _| {
            x.max(y)
        }),
        (
            amominu_w(A0, A2, A1),
            amominu_d(A0, A2, A1),
            |_, _, x, y| x.min(y),
        ),
        (
            amomaxu_w(A0, A2, A1),
            amomaxu_d(A0, A2, A1),
            |_, _, x, y| x.max(y),
        ),
    ]
}

#[test]
fn amos_return_the_old_value_and_store_the_result() {
    // 14.4; the W forms sign-extend into rd and ignore the upper half of rs2.
    for xlen in WIDTHS {
        let mut b = Bench::of(xlen);
        b.set_x(A1, DATA);
        for (word, double, formula) in amos() {
            let widths = if xlen == Xlen::Rv64 {
                &[32, 64][..]
            } else {
                &[32]
            };
            for &bits in widths {
                b.code(BASE, &[if bits == 32 { word } else { double }]);
                for x in CORNERS.into_iter().step_by(2) {
                    for y in CORNERS.into_iter().step_by(3).chain([u64::MAX << 31]) {
                        b.set_mem(DATA, 8, x);
                        b.set_x(A2, y);
                        b.set_pc(BASE);
                        b.run(1);
                        let old = register(s(x, bits), xlen.bits());
                        assert_eq!(b.x(A0), old, "{word:08x} {x:#x} {y:#x}");
                        let new = formula(s(x, bits), s(y, bits), u(x, bits), u(y, bits));
                        let size = (bits / 8) as u8;
                        assert_eq!(b.mem(DATA, size), register(new, bits));
                        if bits == 32 {
                            assert_eq!(b.mem(DATA + 4, 4), x >> 32, "the rest stays");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn rd_may_be_an_operand() {
    // 14.4: rs2 and rs1 are read before rd is written.
    let mut b = Bench::rv64();
    b.set_mem(DATA, 8, 7);
    b.set_x(A1, DATA);
    b.one(amoadd_d(A1, A1, A1));
    assert_eq!((b.x(A1), b.mem(DATA, 8)), (7, DATA + 7));
}

#[test]
fn misaligned_atomics_fault() {
    // 14.2, 14.4: address-misaligned or access fault; here the latter where
    // misaligned accesses are done otherwise (a trap handler must not emulate
    // them).
    for misaligned in [true, false] {
        let mut config = small(Platform::Virt, Xlen::Rv64);
        config.misaligned = misaligned;
        let mut b = Bench::new(config);
        b.set_x(A1, DATA + 2);
        let (load, store) = if misaligned { (5, 7) } else { (4, 6) };
        assert_eq!(b.fault(&[lr_w(A0, A1)]), (load, BASE, DATA + 2));
        assert_eq!(b.fault(&[sc_w(A0, A2, A1)]), (store, BASE, DATA + 2));
        for (word, double, _) in amos() {
            assert_eq!(b.fault(&[word]), (store, BASE, DATA + 2));
            assert_eq!(b.fault(&[double]), (store, BASE, DATA + 2));
        }
        b.set_x(A1, DATA + 4);
        assert_eq!(b.fault(&[lr_d(A0, A1)]), (load, BASE, DATA + 4));
    }
}

#[test]
fn atomics_outside_memory_fault_and_amos_are_stores() {
    // 14.4 and priv. 3.1.15: AMOs raise store/AMO access faults, never loads'.
    let mut b = Bench::rv64();
    for at in [0, BASE - 8, hartrace_hart::fdt::BOOT_ROM] {
        b.set_x(A1, at);
        for (word, double, _) in amos() {
            assert_eq!(b.fault(&[word]), (7, BASE, at));
            assert_eq!(b.fault(&[double]), (7, BASE, at));
        }
        assert_eq!(b.fault(&[lr_w(A0, A1)]), (5, BASE, at));
        assert_eq!(b.fault(&[sc_w(A0, A2, A1)]), (7, BASE, at));
    }
}

#[test]
fn devices_have_amos_and_no_reservations() {
    // Priv. 3.6.3, 3.6.4: AMOArithmetic and RsrvNone for the CLINT.
    let mut b = Bench::rv64();
    b.set_x(A1, MTIMECMP);
    b.set_x(A2, 1000);
    b.exec(&[amoadd_d(A0, A2, A1), amoadd_d(A3, A2, A1), ld(A4, 0, A1)]);
    assert_eq!((b.x(A3) - b.x(A0), b.x(A4)), (1000, b.x(A0) + 2000));
    b.set_x(A1, CLINT);
    b.set_x(A2, 1);
    b.exec(&[amoor_w(A0, A2, A1), lw(A3, 0, A1), csrr(A4, 0x344)]);
    assert_eq!(
        (b.x(A0), b.x(A3), b.x(A4) >> 3 & 1),
        (0, 1, 1),
        "MSIP is pending"
    );
    assert_eq!(b.fault(&[lr_w(A0, A1)]), (5, BASE, CLINT));
    assert_eq!(b.fault(&[sc_w(A0, A2, A1)]), (7, BASE, CLINT));
}

#[test]
fn double_forms_do_not_exist_on_rv32_and_nothing_without_a() {
    // 14.2: "LR.D and SC.D ... are only available on RV64".
    let mut b = Bench::rv32();
    assert!(b.is_illegal(lr_d(A0, A1)) && b.is_illegal(sc_d(A0, A2, A1)));
    assert!(amos().iter().all(|amo| b.is_illegal(amo.1)));
    let mut b = Bench::isa("rv64i");
    assert!(b.is_illegal(lr_w(A0, A1)) && b.is_illegal(amoadd_w(A0, A2, A1)));
    // LR with rs2 != 0 is no instruction.
    assert!(Bench::rv64().is_illegal(lr_w(A0, A1) | 1 << 20));
}
