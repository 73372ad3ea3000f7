//! The start, the trap handlers and the end of every program.
//!
//! A handler stores the cause of the trap, so that a difference shows at once,
//! and continues after the instruction; after a failed fetch it continues at
//! ra, where the jump came from. The number of traps is bounded, so that a
//! program terminates even if it runs astray.

use super::code::{Code, GP, Hole, SP};
use super::layout::{CODE, CONTEXT, DATA_MIDDLE, MSIP, MTIMECMP, POOL_SIZE, TOHOST};
use crate::generate::asm::{self, ECALL, MRET, SRET};

/// The vectors: a jump per cause, which is also where traps go that are not
/// vectored.
pub(super) const M_VECTORS: u64 = CODE + 0x100;
/// Those of the supervisor.
pub(super) const S_VECTORS: u64 = CODE + 0x200;

/// After an `ecall` this says: go on in machine mode. It is a hint, `lui x0`,
/// that is written nowhere else.
pub(super) const MARKER: u32 = 0x0bad_5037;

/// The exit code of a program that trapped too often, as `tohost` wants it.
const EXHAUSTED: u64 = 2 << 1 | 1;

/// CSR numbers, as far as handlers and sections name them.
pub(super) mod csr {
    #![allow(missing_docs)] // the manual's names
    pub(in super::super) const SSTATUS: u32 = 0x100;
    pub(in super::super) const SIE: u32 = 0x104;
    pub(in super::super) const STVEC: u32 = 0x105;
    pub(in super::super) const SEPC: u32 = 0x141;
    pub(in super::super) const SCAUSE: u32 = 0x142;
    pub(in super::super) const STVAL: u32 = 0x143;
    pub(in super::super) const SIP: u32 = 0x144;
    pub(in super::super) const SATP: u32 = 0x180;
    pub(in super::super) const MSTATUS: u32 = 0x300;
    pub(in super::super) const MISA: u32 = 0x301;
    pub(in super::super) const MEDELEG: u32 = 0x302;
    pub(in super::super) const MIDELEG: u32 = 0x303;
    pub(in super::super) const MIE: u32 = 0x304;
    pub(in super::super) const MTVEC: u32 = 0x305;
    pub(in super::super) const MEPC: u32 = 0x341;
    pub(in super::super) const MCAUSE: u32 = 0x342;
    pub(in super::super) const MTVAL: u32 = 0x343;
    pub(in super::super) const MIP: u32 = 0x344;
    pub(in super::super) const PMPCFG0: u32 = 0x3a0;
    pub(in super::super) const PMPADDR0: u32 = 0x3b0;
}

/// The registers of one level's handler.
struct Level {
    vectors: u64,
    /// Where its part of the context starts.
    at: i32,
    status: u32,
    cause: u32,
    epc: u32,
    tval: u32,
    enable: u32,
    pending: u32,
}

const MACHINE: Level = Level {
    vectors: M_VECTORS,
    at: 0,
    status: csr::MSTATUS,
    cause: csr::MCAUSE,
    epc: csr::MEPC,
    tval: csr::MTVAL,
    enable: csr::MIE,
    pending: csr::MIP,
};

const SUPERVISOR: Level = Level {
    vectors: S_VECTORS,
    at: 64,
    status: csr::SSTATUS,
    cause: csr::SCAUSE,
    epc: csr::SEPC,
    tval: csr::STVAL,
    enable: csr::SIE,
    pending: csr::SIP,
};

/// Traps left, in the context.
const LEFT: i32 = 128;

const BEQ: u32 = 0;
const BNE: u32 = 1;
const BLT: u32 = 4;
const BGE: u32 = 5;

/// Everything from the first instruction to the body.
pub(super) fn write(code: &mut Code, traps: u64, has_float: bool, body: u64) {
    let start = code.jal_ahead(0);
    // The vectors are filled in last, when the handlers have addresses.
    let mut handlers = [(MACHINE.vectors, 0), (SUPERVISOR.vectors, 0)];
    let vectors: Vec<_> = handlers
        .iter()
        .map(|(at, _)| {
            code.align(0x100);
            debug_assert_eq!(*at, code.pc());
            (0..64).map(|_| code.jal_ahead(0)).collect::<Vec<_>>()
        })
        .collect();
    let mut vectors = vectors.into_iter();
    let finish = code.pc();
    write_finish(code);
    for (level, handler) in [&MACHINE, &SUPERVISOR].into_iter().zip(&mut handlers) {
        handler.1 = code.pc();
        for hole in vectors.next().unwrap_or_default() {
            code.land(hole);
        }
        write_handler(code, level, finish);
    }
    code.land(start);
    write_start(code, traps, has_float);
    let offset = body.wrapping_sub(code.pc()) as i64;
    code.put(asm::jal(0, offset));
}

/// Stores x5 to `tohost` and waits for the end.
fn write_finish(code: &mut Code) {
    code.la(6, TOHOST);
    code.store(5, 6, 0);
    code.put(asm::jal(0, 0));
}

/// Says that all went well.
pub(super) fn write_success(code: &mut Code) {
    code.li(5, 1);
    write_finish(code);
}

fn write_start(code: &mut Code, traps: u64, has_float: bool) {
    code.la(GP, CONTEXT);
    code.la(SP, DATA_MIDDLE);
    for (csr, at) in [(csr::MTVEC, M_VECTORS), (csr::STVEC, S_VECTORS)] {
        code.la(5, at);
        code.csr(1, 0, csr, 5);
    }
    code.li(5, traps);
    code.store(5, GP, LEFT);
    // No timer interrupt is pending from now on.
    code.li(5, MTIMECMP);
    code.li(6, u64::MAX);
    code.put(asm::s_type(0x23, 2, 5, 6, 4));
    code.put(asm::s_type(0x23, 2, 5, 6, 0));
    for csr in [csr::MEDELEG, csr::MIDELEG, csr::MIE, csr::SATP] {
        code.csr(1, 0, csr, 0);
    }
    // The last PMP entry lets everybody everywhere.
    code.csr(1, 0, csr::PMPADDR0 + 15, 6);
    let (group, shift) = if code.wide() { (2, 56) } else { (3, 24) };
    code.li(5, 0x1f << shift);
    code.csr(1, 0, csr::PMPCFG0 + group, 5);
    code.csr(1, 0, csr::PMPCFG0, 0);
    if has_float {
        code.li(5, 0x6000);
        code.csr(2, 0, csr::MSTATUS, 5);
    }
    for rd in (1..32).filter(|rd| ![SP, GP].contains(rd)) {
        let at = (u64::from(rd) * 7 % POOL_SIZE) as i32;
        code.load(rd, GP, -8 * (at + 1));
        if has_float {
            code.put(asm::i_type(0x07, 2, rd, GP, -8 * (at + 2)));
        }
    }
}

/// Stores x5 to x7, counts down, notes the cause, the place and the value;
/// leaves the cause in x5 and the place in x7.
fn write_entry(code: &mut Code, level: &Level) {
    for (n, reg) in (5..8).enumerate() {
        code.store(reg, GP, level.at + 8 * n as i32);
    }
    for (n, (reg, csr)) in [
        (6, level.tval),
        (6, level.status),
        (5, level.cause),
        (7, level.epc),
    ]
    .into_iter()
    .enumerate()
    {
        code.csr(2, reg, csr, 0);
        code.store(reg, GP, level.at + 24 + 8 * n as i32);
    }
    code.load(6, GP, LEFT);
    code.addi(6, 6, -1);
    code.store(6, GP, LEFT);
}

fn write_exit(code: &mut Code, level: &Level, back: u32) {
    for (n, reg) in (5..8).enumerate() {
        code.load(reg, GP, level.at + 8 * n as i32);
    }
    code.put(back);
}

/// Loads the half at x7 into x5, as the mode that trapped sees it.
fn write_read(code: &mut Code, machine: bool) {
    if machine {
        // MPRV and MXR.
        code.put(asm::lui(6, 0xa0));
        code.csr(2, 6, csr::MSTATUS, 6);
    }
    code.put(asm::i_type(0x03, 5, 5, 7, 0));
    if machine {
        code.csr(1, 0, csr::MSTATUS, 6);
    }
}

fn write_handler(code: &mut Code, level: &Level, finish: u64) {
    let machine = level.at == 0;
    let back = if machine { MRET } else { SRET };
    write_entry(code, level);
    let go_on = code.branch_ahead(BLT, 0, 6);
    if machine {
        code.li(5, EXHAUSTED);
        code.jal_to(0, finish);
    } else {
        // The machine's handler counts as well.
        code.put(ECALL);
    }
    code.land(go_on);
    let exception = code.branch_ahead(BGE, 5, 0);
    write_interrupt(code, level);
    write_exit(code, level, back);
    code.land(exception);
    let fetch = [1, 12].map(|cause| {
        code.addi(6, 0, cause);
        code.branch_ahead(BEQ, 5, 6)
    });
    // The next instruction.
    write_read(code, machine);
    code.put(asm::i_type(0x13, 7, 5, 5, 3));
    code.addi(6, 0, 3);
    code.addi(7, 7, 2);
    let short = code.branch_ahead(BNE, 5, 6);
    code.addi(7, 7, 2);
    code.land(short);
    code.csr(1, 0, level.epc, 7);
    let holes = write_call(code, level);
    for hole in holes {
        code.land(hole);
    }
    write_exit(code, level, back);
    for hole in fetch {
        code.land(hole);
    }
    code.csr(1, 0, level.epc, 1);
    write_exit(code, level, back);
}

/// A call that wants to go on in machine mode does so; for what is none there
/// are jumps to be landed.
fn write_call(code: &mut Code, level: &Level) -> [Hole; 2] {
    let machine = level.at == 0;
    code.csr(2, 5, level.cause, 0);
    code.addi(5, 5, -8);
    code.addi(6, 0, 2);
    let other = code.branch_ahead(7, 5, 6);
    write_read(code, machine);
    code.li(6, u64::from(MARKER & 0xffff));
    let plain = code.branch_ahead(BNE, 5, 6);
    code.addi(7, 7, 4);
    code.csr(1, 0, level.epc, 7);
    if !machine {
        code.put(ECALL);
        code.word(MARKER);
        code.csr(1, 0, csr::MEPC, 7);
    }
    code.li(6, 0x1800);
    code.csr(2, 0, csr::MSTATUS, 6);
    write_exit(code, level, MRET);
    [other, plain]
}

/// Takes away what interrupted, at the source or else by its enable.
fn write_interrupt(code: &mut Code, level: &Level) {
    code.put(asm::i_type(0x13, 7, 6, 5, 63));
    code.addi(5, 0, 1);
    code.put(asm::r_type(0x33, 1, 0, 5, 5, 6));
    code.csr(3, 0, level.enable, 5);
    code.csr(3, 0, level.pending, 5);
    if level.at == 0 {
        code.li(6, MSIP);
        code.put(asm::s_type(0x23, 2, 6, 0, 0));
        code.li(6, MTIMECMP);
        code.addi(5, 0, -1);
        code.put(asm::s_type(0x23, 2, 6, 5, 4));
        code.put(asm::s_type(0x23, 2, 6, 5, 0));
    }
}
