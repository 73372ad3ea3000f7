//! Control and status registers (privileged manual, chapters 2 and 3.1, 10.1;
//! unprivileged manual, chapter 7).

use hartrace_flow::Mode;
use hartrace_isa::Xlen;

use crate::asm::*;
use crate::bench::{BASE, Bench, HANDLER, WIDTHS, csr, status};

/// Writes a value with csrrw; what is read then.
fn written(b: &mut Bench, number: u16, value: u64) -> u64 {
    b.set_x(A1, value);
    b.exec(&[csrw(number, A1), csrr(A0, number)]);
    b.x(A0)
}

const COUNTERS: u64 = 0xffff_ffff;

#[test]
fn registers_hold_what_their_masks_let_through() {
    // 2.3: WARL fields read a legal value whatever is written. For each
    // register: what is left of all ones on RV32 and on RV64.
    let all = u64::MAX;
    let low = 0xffff_ffff;
    let status = status::SIE
        | status::MIE
        | status::SPIE
        | status::MPIE
        | status::SPP
        | status::MPP
        | status::FS
        | status::MPRV
        | status::SUM
        | status::MXR
        | status::TVM
        | status::TW
        | status::TSR;
    let sstatus = status::SIE | status::SPIE | status::SPP | status::FS | status::SUM | status::MXR;
    let table = [
        // SD is the top bit; UXL and SXL say 64.
        (
            csr::MSTATUS,
            status | 1 << 31,
            status | 1 << 63 | 0xa_0000_0000,
        ),
        (
            csr::SSTATUS,
            sstatus | 1 << 31,
            sstatus | 1 << 63 | 0x2_0000_0000,
        ),
        (csr::MEDELEG, 0x8_b3fe, 0x8_b3fe),
        (csr::MIDELEG, 0x222, 0x222),
        (csr::MIE, 0xaaa, 0xaaa),
        (csr::SIE, 0, 0),
        (csr::MTVEC, low - 2, all - 2),
        (csr::STVEC, low - 2, all - 2),
        (csr::MCOUNTEREN, COUNTERS, COUNTERS),
        (csr::SCOUNTEREN, COUNTERS, COUNTERS),
        (csr::MCOUNTINHIBIT, COUNTERS - 2, COUNTERS - 2),
        (csr::MSCRATCH, low, all),
        (csr::SSCRATCH, low, all),
        (csr::MEPC, low - 1, all - 1),
        (csr::SEPC, low - 1, all - 1),
        (csr::MCAUSE, low, all),
        (csr::SCAUSE, low, all),
        (csr::MTVAL, low, all),
        (csr::STVAL, low, all),
        // Cache blocks, and on RV64 in one register with them PBMTE and STCE.
        (csr::MENVCFG, 0xf0, 0xc000_0000_0000_00f0),
        (0x10a, 0xf0, 0xf0),
        // The writable bits of mip, and the timer.
        (csr::MIP, 0x2a2, 0x2a2),
        (csr::PMPADDR0, low, (1 << 54) - 1),
        (csr::PMPADDR0 + 15, low, (1 << 54) - 1),
        (csr::PMPADDR0 + 16, 0, 0),
        (csr::PMPADDR0 + 63, 0, 0),
        (0x323, 0, 0),
        (0x33f, 0, 0),
        (0xb03, 0, 0),
        (0xb1f, 0, 0),
        (0x7a0, 0, 0),
        (0x5a8, 0xffff, 0xffff_ffff),
        (0x7a8, 0x3f, 0x1fff),
    ];
    for xlen in WIDTHS {
        for (number, narrow, wide) in table {
            let mut b = Bench::of(xlen);
            let expected = if xlen == Xlen::Rv32 { narrow } else { wide };
            let got = written(&mut b, number, u64::MAX);
            assert_eq!(got, expected, "RV{} {number:#x}", xlen.bits());
            assert_eq!(b.csr(number), expected);
            let zero = match number {
                csr::MIP => 0x80,
                csr::MSTATUS if xlen == Xlen::Rv64 => 0xa_0000_0000,
                csr::SSTATUS if xlen == Xlen::Rv64 => 0x2_0000_0000,
                _ => 0,
            };
            assert_eq!(written(&mut b, number, 0), zero, "{number:#x}");
        }
    }
}

#[test]
fn medeleg_has_misaligned_fetches_only_where_there_are_any() {
    // 3.1.8: "medeleg[0] ... read-only zero if IALIGN=16".
    let mut b = Bench::isa("rv64i");
    assert_eq!(written(&mut b, csr::MEDELEG, u64::MAX) & 0xffff, 0xb3ff);
}

#[test]
fn read_only_registers_say_who_this_is() {
    // 3.1.2 to 3.1.5: zero is "not implemented" for vendor and implementation;
    // the architecture identifier is one registered for simulators.
    for xlen in WIDTHS {
        let mut b = Bench::of(xlen);
        for (number, value) in [(0xf11, 0), (0xf12, 5), (0xf13, 0), (0xf14, 0), (0xf15, 0)] {
            b.one(csrr(A0, number));
            assert_eq!(b.x(A0), value, "{number:#x}");
        }
    }
}

#[test]
fn writes_to_read_only_registers_are_illegal() {
    // 2.1: bits 11:10 = 3. csrrs and csrrc with x0 or 0 do not write
    // (unprivileged 7.1).
    let mut b = Bench::rv64();
    for number in [0xf11, 0xf14, csr::CYCLE, csr::TIME, csr::INSTRET, 0xc03] {
        for word in [
            csrrw(A0, number, A1),
            csrrw(A0, number, ZERO),
            csrrwi(A0, number, 0),
            csrrs(A0, number, A1),
            csrrc(A0, number, A1),
            csrrsi(A0, number, 1),
            csrrci(A0, number, 1),
        ] {
            assert!(b.is_illegal(word), "{word:08x}");
        }
        for word in [
            csrrs(A0, number, ZERO),
            csrrc(A0, number, ZERO),
            csrrsi(A0, number, 0),
            csrrci(A0, number, 0),
        ] {
            assert!(!b.is_illegal(word), "{word:08x}");
        }
    }
}

#[test]
fn a_register_of_zero_still_writes() {
    // Unprivileged 7.1: csrrs with rs1 != x0 writes although the register
    // holds zero.
    let mut b = Bench::rv64();
    b.set_x(A1, 0);
    assert!(b.is_illegal(csrrs(A0, csr::CYCLE, A1)));
}

#[test]
fn six_instructions_write_set_and_clear() {
    // Unprivileged 7.1; immediates are zero-extended.
    for xlen in WIDTHS {
        let start = xlen.wrap(0xffff_0000_f0f0_5555);
        for (word, now) in [
            (csrrw(A0, csr::MSCRATCH, A1), 0xf),
            (csrrs(A0, csr::MSCRATCH, A1), start | 0xf),
            (csrrc(A0, csr::MSCRATCH, A1), start & !0xf),
            (csrrwi(A0, csr::MSCRATCH, 31), 31),
            (csrrsi(A0, csr::MSCRATCH, 31), start | 31),
            (csrrci(A0, csr::MSCRATCH, 31), start & !31),
        ] {
            let mut b = Bench::of(xlen);
            b.set_csr(csr::MSCRATCH, start);
            b.set_x(A1, 0xf);
            b.one(word);
            assert_eq!((b.x(A0), b.csr(csr::MSCRATCH)), (start, now), "{word:08x}");
        }
        // Source and destination may be the same.
        let mut b = Bench::of(xlen);
        b.set_csr(csr::MSCRATCH, 1);
        b.set_x(A0, 2);
        b.one(csrrw(A0, csr::MSCRATCH, A0));
        assert_eq!((b.x(A0), b.csr(csr::MSCRATCH)), (1, 2));
    }
}

#[test]
fn registers_belong_to_a_mode_and_the_ones_above() {
    // 2.1: bits 9:8 are the lowest mode with access.
    let machine = [
        0x300, 0x301, 0x304, 0x305, 0x340, 0x344, 0x3a0, 0xb00, 0xf14, 0x7a0,
    ];
    let supervisor = [
        0x100, 0x104, 0x105, 0x106, 0x140, 0x141, 0x142, 0x143, 0x144, 0x180,
    ];
    let mut b = Bench::rv64();
    for (number, least) in machine
        .map(|number| (number, 3))
        .into_iter()
        .chain(supervisor.map(|number| (number, 1)))
    {
        for mode in [Mode::U, Mode::S, Mode::M] {
            b.set_mode(mode);
            let illegal = b.is_illegal(csrr(A0, number));
            assert_eq!(illegal, mode.code() < least, "{number:#x} in {mode:?}");
        }
    }
}

#[test]
fn registers_that_do_not_exist_are_illegal() {
    // 2.1: "Attempts to access a non-existent CSR raise an illegal-instruction
    // exception."
    for xlen in WIDTHS {
        let mut b = Bench::of(xlen);
        let rv64 = xlen == Xlen::Rv64;
        for number in [
            0x000, 0x004, 0x008, 0x200, 0x600, 0x800, 0xbff, 0xfff, 0x34a, 0xb01,
        ] {
            assert!(b.is_illegal(csrr(A0, number)), "{number:#x}");
        }
        // High halves and odd pmpcfg are RV32's.
        for number in [
            0x310, 0x31a, 0x3a1, 0x3af, 0xb80, 0xb82, 0xc80, 0xc81, 0xc82, 0xc83,
        ] {
            assert_eq!(b.is_illegal(csrr(A0, number)), rv64, "{number:#x}");
        }
    }
}

#[test]
fn an_illegal_access_changes_nothing() {
    // 2.1 and priv. 3.3: the instruction does not execute.
    let mut b = Bench::rv64();
    b.set_x(A0, 77);
    b.set_mode(Mode::U);
    assert!(b.is_illegal(csrrwi(A0, csr::SSCRATCH, 5)));
    assert_eq!((b.x(A0), b.csr(csr::SSCRATCH)), (77, 0));
}

#[test]
fn fcsr_is_frm_and_fflags() {
    // Unprivileged 21.2.
    let mut b = Bench::rv64();
    b.status(status::FS);
    assert_eq!(written(&mut b, csr::FCSR, u64::MAX), 0xff);
    assert_eq!((b.csr(csr::FRM), b.csr(csr::FFLAGS)), (7, 31));
    assert_eq!(written(&mut b, csr::FRM, 0xfa), 2);
    assert_eq!(b.csr(csr::FCSR), 0x5f);
    assert_eq!(written(&mut b, csr::FFLAGS, 0xe4), 4);
    assert_eq!(b.csr(csr::FCSR), 0x44);
}

#[test]
fn writing_a_float_register_makes_the_state_dirty() {
    // 3.1.6.7: FS and SD.
    for xlen in WIDTHS {
        let sd = 1u64 << (xlen.bits() - 1);
        for number in [csr::FCSR, csr::FRM, csr::FFLAGS] {
            let mut b = Bench::of(xlen);
            b.status(status::FS_INITIAL);
            b.one(csrr(A0, number));
            assert_eq!(b.csr(csr::MSTATUS) & (status::FS | sd), status::FS_INITIAL);
            b.one(csrw(number, ZERO));
            assert_eq!(b.csr(csr::MSTATUS) & (status::FS | sd), status::FS | sd);
        }
    }
}

#[test]
fn misa_names_the_extensions() {
    // 3.1.1: A B C D F I M S U.
    let letters = |names: &str| names.bytes().map(|c| 1u64 << (c - b'A')).sum::<u64>();
    let b = Bench::rv64();
    assert_eq!(b.csr(csr::MISA), 2 << 62 | letters("ABCDFIMSU"));
    let b = Bench::rv32();
    assert_eq!(b.csr(csr::MISA), 1 << 30 | letters("ABCDFIMSU"));
    let b = Bench::isa("rv32i_zmmul_zaamo");
    assert_eq!(b.csr(csr::MISA), 1 << 30 | letters("ISU"));
}

#[test]
fn misa_switches_extensions_off_and_on() {
    // 3.1.1: a cleared letter makes its instructions illegal.
    let letter = |c: u8| 1u64 << (c - b'A');
    let mut b = Bench::rv64();
    b.status(status::FS);
    let whole = b.csr(csr::MISA);
    for (name, word) in [
        (b'M', mul(A0, A1, A1)),
        (b'A', amoadd_w(A0, ZERO, A2)),
        (b'B', clz(A0, A1)),
        (b'F', fadd_s(RNE, 1, 2, 3)),
        (b'D', fadd_d(RNE, 1, 2, 3)),
        (b'C', C_NOP),
    ] {
        b.set_x(A2, crate::bench::DATA);
        assert!(!b.is_illegal(word));
        let now = written(&mut b, csr::MISA, whole & !letter(name));
        let gone = letter(name) | if name == b'F' { letter(b'D') } else { 0 };
        assert_eq!(now, whole & !gone, "{}", char::from(name));
        assert!(b.is_illegal(word), "{}", char::from(name));
        assert_eq!(written(&mut b, csr::MISA, whole), whole);
        b.set_x(A2, crate::bench::DATA);
        assert!(!b.is_illegal(word));
    }
    // What is not there cannot be switched on, the base not off.
    assert_eq!(written(&mut b, csr::MISA, u64::MAX), whole);
    let base = letter(b'I') | letter(b'S') | letter(b'U') | 2 << 62;
    assert_eq!(written(&mut b, csr::MISA, 0), base);
}

#[test]
fn c_stays_where_its_loss_would_misalign_the_next_instruction() {
    // 3.1.1: the write is suppressed then.
    let mut b = Bench::rv64();
    let whole = b.csr(csr::MISA);
    b.set_x(A1, whole & !4);
    b.halfwords(BASE, &[C_NOP]);
    b.code(BASE + 2, &[csrw(csr::MISA, A1)]);
    b.set_pc(BASE);
    b.run(2);
    assert_eq!(b.csr(csr::MISA), whole);
}

#[test]
fn satp_takes_modes_it_knows() {
    // 10.1.11: a write with an unsupported mode has no effect.
    let mut b = Bench::rv64();
    for mode in 0..16u64 {
        b.set_csr(csr::SATP, 0);
        // In machine mode nothing is translated.
        let value = mode << 60 | 0xfff_ffff_ffff_ffff;
        let expected = if matches!(mode, 0 | 8 | 9 | 10) {
            value
        } else {
            0
        };
        assert_eq!(written(&mut b, csr::SATP, value), expected, "mode {mode}");
    }
    let mut b = Bench::rv32();
    assert_eq!(written(&mut b, csr::SATP, 0xffff_ffff), 0xffff_ffff);
    assert_eq!(written(&mut b, csr::SATP, 0x7fff_ffff), 0x7fff_ffff);
}

#[test]
fn sstatus_is_a_part_of_mstatus() {
    // 10.1.1: a view; writes leave the machine's fields alone.
    for xlen in WIDTHS {
        let mut b = Bench::of(xlen);
        let machine = status::MIE | status::MPIE | status::MPP | status::TVM | status::TSR;
        b.status(machine | status::SUM);
        b.set_x(A1, status::SPIE | status::MXR);
        b.exec(&[
            csrr(A0, csr::SSTATUS),
            csrw(csr::SSTATUS, A1),
            csrr(A2, csr::MSTATUS),
        ]);
        assert_eq!(b.x(A0) & 0xffff_ffff, status::SUM);
        assert_eq!(b.x(A2) & 0xffff_ffff, machine | status::SPIE | status::MXR);
    }
}

#[test]
fn rv32_has_the_high_half_of_mstatus() {
    // 3.1.6: mstatush; only endianness is there, and it is fixed to little.
    let mut b = Bench::rv32();
    assert_eq!(written(&mut b, 0x310, u64::MAX), 0);
}

#[test]
fn adue_exists_with_svadu() {
    // 3.1.18: bit 61 of menvcfg, in menvcfgh on RV32.
    let mut b = Bench::isa("rv64imac_svadu");
    assert_eq!(written(&mut b, csr::MENVCFG, u64::MAX), 1 << 61);
    let mut b = Bench::isa("rv32imac_svadu");
    assert_eq!(written(&mut b, csr::MENVCFGH, u64::MAX), 1 << 29);
    assert_eq!(written(&mut b, csr::MENVCFG, u64::MAX), 0);
    assert_eq!(b.csr(csr::MENVCFGH), 1 << 29);
}

#[test]
fn csr_accesses_do_the_same_whoever_watches() {
    // Without an observer of effects the interpreter does the simple ones by itself.
    let numbers = [
        csr::SSCRATCH,
        csr::SEPC,
        csr::SCAUSE,
        csr::STVAL,
        csr::SSTATUS,
        csr::MSCRATCH,
        csr::MEPC,
        csr::MCAUSE,
        csr::MTVAL,
        csr::FFLAGS,
        csr::FRM,
        csr::FCSR,
        csr::TIME,
        csr::SATP,
    ];
    for xlen in WIDTHS {
        for mode in [Mode::M, Mode::S, Mode::U] {
            for float in [0, status::FS] {
                let mut code = Vec::new();
                for number in numbers {
                    code.extend([csrrw(A0, number, A1), csrrs(A2, number, A3)]);
                    code.extend([csrrc(A4, number, A3), csrr(A5, number), addi(A1, A1, 3)]);
                }
                let state = |watched: bool| {
                    let mut b = Bench::of(xlen);
                    b.code(BASE, &code);
                    b.status(float);
                    b.set_csr(csr::MCOUNTEREN, 7);
                    b.set_csr(csr::SCOUNTEREN, 7);
                    // What traps is skipped.
                    let skip = [
                        csrr(30, csr::MEPC),
                        addi(30, 30, 4),
                        csrw(csr::MEPC, 30),
                        MRET,
                    ];
                    b.code(HANDLER, &skip);
                    b.set_x(A1, 0x8000_7ffd_8005_4321);
                    b.set_x(A3, 0x6022);
                    b.set_mode(mode);
                    b.set_pc(BASE);
                    let mut seen = Vec::new();
                    while b.m.pc() != BASE + 4 * code.len() as u64 {
                        match watched {
                            true => drop(b.steps(1)),
                            false => drop(b.run(1)),
                        }
                        seen.push((b.m.pc(), b.m.instructions(), b.m.cycles()));
                        seen.extend((10..16).map(|x| (b.x(x), 0, 0)));
                    }
                    seen.extend(numbers.map(|number| (b.csr(number), 0, 0)));
                    seen
                };
                let (watched, alone) = (state(true), state(false));
                assert!(watched.len() > 7 * code.len());
                assert!(watched == alone, "{xlen:?} {mode:?} {float:#x}");
            }
        }
    }
}
