//! Lines of each format, and what they mean.

use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};

use crate::tests::{Keep, Read, Told, assert_any_cut, whole};
use crate::{
    Column, Columns, ColumnsError, EntryOptions, FormatReader, LineError, LineErrorKind, LogFormat,
};
use hartrace_flow::{
    Access, AccessKind, Cause, CsrWrite, Effects, HartId, Image, Mode, RegId, RegWrite, Signal,
    SpaceId, Step,
};
use hartrace_isa::{Isa, Xlen};
use hartrace_testkit::{Random, flip_bits};

impl Read for FormatReader<'_> {
    fn feed(&mut self, chunk: &[u8], out: &mut Keep, bad: &mut Vec<LineError>) {
        FormatReader::feed(self, chunk, out, &mut |e| bad.push(e));
    }

    fn finish(&mut self, out: &mut Keep, bad: &mut Vec<LineError>) {
        FormatReader::finish(self, out, &mut |e| bad.push(e));
    }
}

/// At 0x1000: `c.li a0,1`, `sw a0,0(a1)`, `ecall`, `j .`; at 0x2000: `c.nop`, `mret`.
fn image() -> Image {
    let mut image = Image::new();
    let code = [
        0x05, 0x45, 0x23, 0xa0, 0xa5, 0x00, 0x73, 0, 0, 0, 0x01, 0xa0,
    ];
    image.add_raw(SpaceId::FIRST, 0x1000, &code, Isa::RV64GC);
    let handler = [0x01, 0x00, 0x73, 0x00, 0x20, 0x30];
    image.add_raw(SpaceId::FIRST, 0x2000, &handler, Isa::RV64GC);
    image
}

/// Reads a log, wherever it is cut.
fn read(format: LogFormat, text: &[u8]) -> Told {
    let image = image();
    let with = Some(&image).filter(|_| !format.carries().code);
    let options = EntryOptions::default();
    assert_any_cut(|| FormatReader::new(format, options, with), text)
}

/// Reads a log without a fault.
fn good(format: LogFormat, text: &str) -> Keep {
    assert_eq!(LogFormat::detect(text.as_bytes()), Some(format), "{text}");
    let (keep, bad) = read(format, text.as_bytes());
    assert_eq!(bad, vec![], "{text}");
    keep
}

/// The fault of the only bad line: its number, its column and what it says.
fn bad(format: LogFormat, text: &str) -> (u64, u32, String) {
    let (_, bad) = read(format, text.as_bytes());
    assert_eq!(bad.len(), 1, "{text}: {bad:?}");
    (bad[0].line, bad[0].column, format!("{}", bad[0].kind))
}

fn x(number: u8, value: u64) -> RegWrite {
    let reg = RegId::X(number);
    RegWrite { reg, value }
}

fn pcs(keep: &Keep) -> Vec<u64> {
    keep.insns().iter().map(|insn| insn.pc).collect()
}

fn effects(keep: &Keep, pc: u64) -> Effects {
    let found = keep.steps.iter().find(|step| match step.1 {
        Step::Insn(insn) => insn.pc == pc,
        _ => false,
    });
    found.unwrap().2
}

fn access(kind: AccessKind, size: u8, addr: u64, data: Option<u64>) -> Access {
    Access {
        kind,
        size,
        addr,
        data,
        ..Access::default()
    }
}

#[test]
fn ibex() {
    let keep = good(
        LogFormat::Ibex,
        "           Time\tCycle\tPC\tInsn\tDecoded instruction\tRegister and memory contents\n\
         \x20  10\t 5\t00001000\t    4505\tc.li\tx10,1\t x10=0x00000001\n\
         \x20  12\t 6\t00001002\t00a58023\tsb\tx10,0(x11)\t x11:0x00003000 x10:0x00000001 PA:0x00003000 store:0x??????01 load:0xffffffff\n\
         \x20  14\t 7\t00001006\t0005a503\tlw\tx10,0(x11)\t x11:0x00003000 x10=0x00000001 PA:0x00003000 load:0x00000001\n\
         \x20  16\t 8\t0000100a\t00000073\t-->ecall\t\n\
         \x20  18\t 9\t00002000\t    0001\t==>c.nop\t\n\
         \x20  20\t10\t00002100\t    0001\t==>c.nop\t\n",
    );
    assert_eq!(pcs(&keep), [0x1000, 0x1002, 0x1006, 0x2000, 0x2100]);
    assert_eq!(keep.insns()[1].time, 6);
    assert_eq!(&*effects(&keep, 0x1000).regs, [x(10, 1)]);
    let store = access(AccessKind::Store, 0, 0x3000, Some(1));
    assert_eq!(&*effects(&keep, 0x1002).accesses, [store]);
    let load = access(AccessKind::Load, 2, 0x3000, Some(1));
    assert_eq!(&*effects(&keep, 0x1006).accesses, [load]);
    let traps = keep.traps();
    // An ecall of machine mode, which is the mode at the start; then an interrupt.
    assert_eq!(traps[0].trap.cause, Cause::Exception(Some(11)));
    assert_eq!(traps[0].trap.handler, Some(0x2000));
    assert_eq!(traps[1].trap.cause, Cause::Interrupt(None));
    assert_eq!(traps[1].trap.epc, Some(0x2002));
    let (line, column, what) = bad(LogFormat::Ibex, "10 5 00001000 zz c.li x10,1\n");
    assert_eq!((line, column), (1, 15));
    assert_eq!(what, "expected an instruction in hexadecimal");
}

/// The cousin has units, a context, and no `0x`. It lists reads after writes.
#[test]
fn cv32e40p() {
    let keep = good(
        LogFormat::Ibex,
        "  Time  Cycle PC  Instr  Ctx Decoded instruction\n\
         130.000 ns   61 00001000 4505         c.li    x10,1        x10=00000001\n\
         132.000 ns   62 00001002 00a5a023     sw      x10,0(x11)    x11:00003000 x10:00000001  PA:00003000\n\
         134.000 ns   63 00001006 00000000 (C) illegal\n\
         136.000 ns   64 00002000 18e50353     fdiv.s  f6, f10, f14  f6=59463c68 f10:990dcef4      67  142.000 ns\n",
    );
    let store = access(AccessKind::Store, 2, 0x3000, Some(1));
    assert_eq!(&*effects(&keep, 0x1002).accesses, [store]);
    assert_eq!(keep.traps()[0].trap.cause, Cause::Exception(None));
    let boxed = RegWrite {
        reg: RegId::F(6),
        value: 0xffff_ffff_5946_3c68,
    };
    assert_eq!(&*effects(&keep, 0x2000).regs, [boxed]);
}

/// Without modes in the log, those of `mret` come from `mstatus` and from traps.
#[test]
fn modes_are_followed() {
    let keep = good(
        LogFormat::Ibex,
        "1\t1\t00001000\t30001073\tcsrrw\tx0,mstatus,x0\n\
         2\t2\t00001004\t30200073\tmret\n\
         3\t3\t00003000\t    0001\tc.nop\n\
         4\t4\t00003002\t00000073\t-->ecall\n\
         5\t5\t00002000\t    0001\tc.nop\n\
         6\t6\t00002002\t30200073\tmret\n\
         7\t7\t00003006\t    0001\tc.nop\n",
    );
    let modes: Vec<Mode> = keep.insns().iter().map(|insn| insn.mode).collect();
    assert_eq!(
        modes,
        [Mode::M, Mode::M, Mode::U, Mode::M, Mode::M, Mode::U]
    );
    assert_eq!(keep.traps()[0].trap.cause, Cause::Exception(Some(8)));
}

#[test]
fn rvvi() {
    let keep = good(
        LogFormat::Rvvi,
        "VERSION 0 1\nVENDOR Us 0 1\nPARAMS 2 ILEN 32 XLEN 32\n\
         RET  1000 '_start+0'  4505 'li a0,1' X 10 'a0' 00000001\n\
         RET  1002 30529073 C 305 'mtvec' 00002000 \\\n MODE 3\n\
         HART 1 RET 1000 4505 X 10 1 META 2 VMEM 1 HART 0 TRAP 1006 0012a303 C 342 'mcause' 4 C 343 1081\n\
         RET 2000 0001 ISSUE 1 ORDER 9\n\
         RET 2100 0001 C 342 80000007 NET MTimer 1\n",
    );
    let harts: Vec<u32> = keep.steps.iter().map(|s| s.0.0).collect();
    assert_eq!(harts.iter().filter(|h| **h == 1).count(), 1);
    let traps = keep.traps();
    assert_eq!(traps[0].trap.cause, Cause::Exception(Some(4)));
    assert_eq!(traps[0].trap.tval, Some(0x1081));
    assert_eq!(traps[0].bits, Some(0x0012_a303));
    assert_eq!(traps[1].trap.cause, Cause::Interrupt(Some(7)));
    assert_eq!(traps[1].trap.epc, Some(0x2002));
    let mtvec = CsrWrite {
        csr: 0x305,
        value: 0x2000,
    };
    assert_eq!(&*effects(&keep, 0x1002).csrs, [mtvec]);
    let (line, column, _) = bad(LogFormat::Rvvi, "RET 1000 4505\nRET 1002 4505 Y 1\n");
    assert_eq!((line, column), (2, 15));
}

#[test]
fn sail() {
    let keep = good(
        LogFormat::Sail,
        "some text of the program\n\
         [0] [M]: 0x0000000000001000 (0x4505) c.li a0, 0x1\n\
         x10 <- 0x0000000000000001\n\
         [1] [M]: 0x0000000000001002 (0x00A5A023) sw a0, 0(a1)\n\
         mem[X,0x0000000000001002] -> 0x00A5A023\n\
         mem[W,0x0000000000003000] <- 0x00000001\n\
         [2] [U]: 0x0000000000001006 (0x00000073) ecall\n\
         trapping from U to M to handle u-call\n\
         handling exc#u-call at priv M with tval 0x0000000000000000\n\
         [3] [M]: 0x0000000000002000 (0x30029073) csrrw zero, mstatus, t0\n\
         CSR mstatus (0x300) <- 0x0000000000001800\n\
         CSR mcause (0x342) <- 0x8000000000000007\n\
         CSR mepc (0x341) <- 0x0000000000002004\n\
         [4] [M]: 0x0000000000002100 (0x0001) c.nop\n",
    );
    assert_eq!(pcs(&keep), [0x1000, 0x1002, 0x2000, 0x2100]);
    let mut store = access(AccessKind::Store, 2, 0x3000, Some(1));
    store.paddr = Some(0x3000);
    assert_eq!(&*effects(&keep, 0x1002).accesses, [store]);
    let traps = keep.traps();
    assert_eq!(traps[0].trap.cause, Cause::Exception(Some(8)));
    assert_eq!((traps[0].mode, traps[0].trap.tval), (Mode::U, Some(0)));
    assert_eq!(traps[1].trap.cause, Cause::Interrupt(Some(7)));
    assert_eq!(traps[1].trap.epc, Some(0x2004));
    // Only what the instruction wrote is its effect.
    assert_eq!(effects(&keep, 0x2000).csrs.len(), 1);
    let text = "[0] [M]: 0x1000 (0x4505) c.li\nx10 <- 0xzz\n";
    assert_eq!(bad(LogFormat::Sail, text).0, 2);
}

#[test]
fn rocket() {
    let keep = good(
        LogFormat::Rocket,
        "C0:        100 [1] pc=[0000000000001000] W[r10=0000000000000001][1] R[r 0=0000000000000000] R[r 0=0000000000000000] inst=[00004505] DASM(00004505)\n\
         C1:        100 [1] pc=[0000000000001000] W[r 0=0000000000000000][0] R[r 0=0000000000000000] R[r 0=0000000000000000] inst=[00000001] DASM(00000001)\n\
         C0:        102 [0] pc=[0000000000001002] W[r 0=0000000000000000][0] R[r 0=0000000000000000] R[r 0=0000000000000000] inst=[00000073] DASM(00000073)\n\
         C0:        110 [1] pc=[0000000000002000] W[r 0=0000000000000000][0] R[r 0=0000000000000000] R[r 0=0000000000000000] inst=[00000001] DASM(00000001)\n",
    );
    assert_eq!(&*effects(&keep, 0x1000).regs, [x(10, 1)]);
    assert_eq!(keep.traps()[0].trap.cause, Cause::Exception(Some(11)));
    assert_eq!(keep.steps.iter().filter(|s| s.0 == HartId(1)).count(), 1);
    assert_eq!(bad(LogFormat::Rocket, "C0: 1 [1] pc=[zz]\n").1, 15);
}

#[test]
fn qemu_plugin() {
    let keep = good(
        LogFormat::QemuPlugin,
        "0, 0x1000, 0x4505, \"li a0,1\", a0 -> 0x0000000000000001\n\
         0, 0x1002, 0xa5a023, \"sw a0,0(a1)\", store, 0x80003000, RAM\n\
         0, 0x1006, 0x5a503, \"lw a0,0(a1)\"\n\
         0, 0x2000, 0x1, \"nop\"\n\
         0, 0x2002, 0x34202573, \"csrr a0,mcause\", a0 -> 0x0000000000000005, mstatus -> 0x0\n",
    );
    assert_eq!(pcs(&keep), [0x1000, 0x1002, 0x2000, 0x2002]);
    assert_eq!(&*effects(&keep, 0x1000).regs, [x(10, 1)]);
    let mut store = access(AccessKind::Store, 2, 0x8000_3000, None);
    store.paddr = Some(0x8000_3000);
    assert_eq!(&*effects(&keep, 0x1002).accesses, [store]);
    // A load that has not loaded has trapped.
    let trap = keep.traps()[0];
    assert_eq!(
        (trap.trap.epc, trap.bits),
        (Some(0x1006), Some(0x0005_a503))
    );
    assert_eq!(trap.trap.cause, Cause::Exception(None));
    let (_, column, _) = bad(LogFormat::QemuPlugin, "0, 0x1000, 0x1, \"nop\", load, x\n");
    assert_eq!(column, 30);
}

#[test]
fn qemu_blocks() {
    let block = |pc: u64| format!("Trace 0: 0x7f00 [00000000/{pc:016x}/00209003/ff000200] main\n");
    let int = "riscv_cpu_do_interrupt: hart:0, async:0, cause:000000000000000b, epc:0x0000000000001006, tval:0x0000000000000000, desc=machine_ecall\n";
    let text = block(0x1000) + int + &block(0x2000) + &block(0x100a) + &block(0x100a);
    let keep = good(LogFormat::QemuBlocks, &text);
    // The last block is left out: it may not have been executed to its end.
    assert_eq!(pcs(&keep), [0x1000, 0x1002, 0x2000, 0x2002, 0x100a]);
    assert_eq!(keep.insns()[0].mode, Mode::M);
    let trap = keep.traps()[0].trap;
    assert_eq!(trap.cause, Cause::Exception(Some(11)));
    assert_eq!((trap.epc, trap.handler), (Some(0x1006), Some(0x2000)));
    // A block that was not executed after all.
    let stopped = "Stopped execution of TB chain before 0x7f00 [0000000000002000] main\n";
    let text = block(0x2000) + stopped + &block(0x100a) + &block(0x100a);
    assert_eq!(pcs(&good(LogFormat::QemuBlocks, &text)), [0x100a]);
}

/// A block may contain the start of the next one: a loop that is entered before its
/// start. With a number of instructions, it has no more.
#[test]
fn blocks_that_overlap() {
    let mut image = Image::new();
    // 1000 c.nop; 1002 c.nop; 1004 j 1002; 1006 c.nop
    let code = [1, 0, 1, 0, 0xfd, 0xbf, 1, 0];
    image.add_raw(SpaceId::FIRST, 0x1000, &code, Isa::RV64GC);
    let reader = || FormatReader::new(LogFormat::QemuBlocks, EntryOptions::default(), Some(&image));
    let block = |pc: u64, flags: u32| format!("Trace 0: 0x1 [0/{pc:x}/3/{flags:08x}]\n");
    let pcs = |text: String| {
        let (keep, bad) = assert_any_cut(reader, text.as_bytes());
        assert_eq!(bad, vec![]);
        pcs(&keep)
    };
    let whole = block(0x1000, 0) + &block(0x1002, 0) + &block(0x1002, 0);
    assert_eq!(pcs(whole), [0x1000, 0x1002, 0x1004, 0x1002, 0x1004]);
    let single = block(0x1000, 1) + &block(0x1002, 1) + &block(0x1004, 1) + &block(0x1002, 1);
    assert_eq!(pcs(single), [0x1000, 0x1002, 0x1004]);
}

/// Without `int`, a trap in the middle of a block cannot be placed.
#[test]
fn a_limit_of_blocks() {
    let mut image = Image::new();
    // sw a0,0(a1); j .
    let code = [0x23, 0xa0, 0xa5, 0x00, 0x01, 0xa0];
    image.add_raw(SpaceId::FIRST, 0x1000, &code, Isa::RV64GC);
    image.add_raw(SpaceId::FIRST, 0x2000, &[1, 0xa0], Isa::RV64GC);
    let block = |pc: u64| format!("Trace 0: 0x7f00 [0/{pc:016x}/00209003/ff000200]\n");
    let text = block(0x1000) + &block(0x2000) + &block(0x2000);
    let reader = || FormatReader::new(LogFormat::QemuBlocks, EntryOptions::default(), Some(&image));
    let (keep, bad) = assert_any_cut(reader, text.as_bytes());
    assert_eq!(bad.len(), 1);
    assert_eq!(bad[0].line, 2);
    assert!(matches!(bad[0].kind, LineErrorKind::Limit(_)));
    assert_eq!(keep.lost(), 1);
}

#[test]
fn whisper() {
    let keep = good(
        LogFormat::Whisper,
        "#1 0  M 0000000000001000     4505 r 000000000000000a 0000000000000001 c.li x10, 0x1\n\
         #2 0  M 0000000000001002 00a5a023 m 0000000000003000 0000000000000001 sw x10, 0x0(x11) [0x3000]\n\
         #3 0  U 0000000000001006 0005a503 r 000000000000000a 0000000000000007 lw x10, 0x0(x11) [0x4000:0x80004000]\n\
         #4 0  U 000000000000100a 00000073 c 0000000000000342 0000000000000008 ecall (exception)  +\n\
         #4 0  U 000000000000100a 00000073 c 0000000000000343 0000000000000000 ecall (exception)\n\
         #5 0  M 0000000000002000     0001 r 0000000000000000 0000000000000000 c.nop\n",
    );
    assert_eq!(pcs(&keep), [0x1000, 0x1002, 0x1006, 0x2000]);
    let store = access(AccessKind::Store, 2, 0x3000, Some(1));
    assert_eq!(&*effects(&keep, 0x1002).accesses, [store]);
    let mut load = access(AccessKind::Load, 2, 0x4000, Some(7));
    load.paddr = Some(0x8000_4000);
    assert_eq!(&*effects(&keep, 0x1006).accesses, [load]);
    assert!(!effects(&keep, 0x1006).incomplete);
    let trap = keep.traps()[0];
    assert_eq!(trap.trap.cause, Cause::Exception(Some(8)));
    assert_eq!((trap.mode, trap.trap.tval), (Mode::U, Some(0)));
    assert_eq!(bad(LogFormat::Whisper, "#1 0 Q 1000 4505 r 0 0 x\n").0, 1);
}

#[test]
fn whisper_csv() {
    let keep = good(
        LogFormat::WhisperCsv,
        "pc, inst, modified regs, source operands, memory, inst info, privilege, trap, disassembly, hartid\n\
         1000,4505,x10=1,i1,,,m,,c.li x10; 0x1,0\n\
         1002:80001002,a5a023,,x10;x11;i0,3000:80003000=1,s,m,,sw x10; 0(x11),0\n\
         1006,30529073,c773=2000;v1=00ff,x5,,,m,,csrrw x0; mtvec; x5,0\n\
         100a,73,,,,,u,8,ecall,0\n\
         2000,1,,,,,m,,c.nop,1\n\
         2000,1,,,,,m,,c.nop,0\n",
    );
    let mut store = access(AccessKind::Store, 2, 0x3000, Some(1));
    store.paddr = Some(0x8000_3000);
    assert_eq!(&*effects(&keep, 0x1002).accesses, [store]);
    let csrs = effects(&keep, 0x1006);
    assert_eq!(csrs.csrs[0].csr, 773);
    assert!(csrs.incomplete);
    assert_eq!(keep.traps()[0].trap.cause, Cause::Exception(Some(8)));
    let text = "1000,4505,x10:1,,,,m,,,0\n";
    assert_eq!(bad(LogFormat::WhisperCsv, text).1, 11);
}

#[test]
fn gem5() {
    let keep = good(
        LogFormat::Gem5,
        "gem5 Simulator System.\n\
         \x20  1000: system.cpu1: T0 : 0x1000 @_start    : c_li a0, 1                : IntAlu :  D=0x0000000000000001  flags=(IsInteger)\n\
         \x20  1500: system.cpu1: A0 T0 : 0x1002 @_start+2    : sw a0, 0(a1)               : MemWrite :  D=0x0000000000000001 A=0x3000\n\
         \x20  2000: system.cpu1: T0 : 0x1006 @_start+6    : ecall                      : IntAlu :\n\
         \x20  2500: system.cpu1: T0 : 0x2000 @f    : macro\n\
         \x20  2500: system.cpu1: T0 : 0x2000 @f. 0 : c_nop                      : IntAlu :\n\
         \x20  2600: system.cpu1: T0 : 0x2000 @f. 1 : c_nop                      : IntAlu :\n\
         \x20  3000: system.cpu1: T0 : 0x2002 @f+2    : mret                       : IntAlu :\n",
    );
    assert_eq!(pcs(&keep), [0x1000, 0x1002, 0x2000, 0x2002]);
    assert!(keep.steps.iter().all(|s| s.0 == HartId(1)));
    assert_eq!(keep.insns()[1].time, 1500);
    let store = access(AccessKind::Store, 2, 0x3000, Some(1));
    assert_eq!(&*effects(&keep, 0x1002).accesses, [store]);
    assert_eq!(keep.traps()[0].trap.epc, Some(0x1006));
    let text = "10: system.cpu: T0 : 0x9000 : nop : IntAlu :\n";
    assert_eq!(
        bad(LogFormat::Gem5, text).2,
        "no code at 0x9000 in the program (is an ELF file missing?)"
    );
}

#[test]
fn renode() {
    let keep = good(
        LogFormat::Renode,
        "0x1000: 0x4505\n\
         0x1002: 0x00A5A023\n\
         MemoryWrite with address 0x3000 => 0x80003000, value 0x1\n\
         0x1006:   00000013       nop                         [main+0x6 (entry)]\n\
         Vector configured to VL: 0x4, VTYPE: 0xD0\n\
         0x100A: 0x0001\n",
    );
    assert_eq!(pcs(&keep), [0x1000, 0x1002, 0x1006, 0x100a]);
    let mut store = access(AccessKind::Store, 2, 0x3000, Some(1));
    store.paddr = Some(0x8000_3000);
    assert_eq!(&*effects(&keep, 0x1002).accesses, [store]);
    let opcodes = bad(LogFormat::Renode, "0x1000: 0x4505\n0x4505\n");
    assert!(opcodes.2.contains("PCAndOpcode"), "{opcodes:?}");
}

#[test]
fn renode_binary() {
    let mut bytes = b"ReTrace\x05\x08\x01\x01\x07riscv64".to_vec();
    let record = |bytes: &mut Vec<u8>, pc: u64, code: &[u8]| {
        bytes.extend(pc.to_le_bytes());
        bytes.push(code.len() as u8);
        bytes.extend(code);
    };
    record(&mut bytes, 0x1000, &[0x05, 0x45]);
    bytes.push(0);
    record(&mut bytes, 0x1002, &[0x23, 0xa0, 0xa5, 0x00]);
    bytes.extend([1, 3]);
    for value in [0x3000u64, 1, 0x8000_3000] {
        bytes.extend(value.to_le_bytes());
    }
    bytes.extend([4, 0, 1, 2, b'A', b'0', 1, 7, 0]);
    record(&mut bytes, 0x1006, &[0x13, 0, 0, 0]);
    bytes.push(0);
    assert_eq!(LogFormat::detect(&bytes), Some(LogFormat::RenodeBinary));
    let (keep, bad) = read(LogFormat::RenodeBinary, &bytes);
    assert_eq!(bad, vec![]);
    assert_eq!(pcs(&keep), [0x1000, 0x1002, 0x1006]);
    let mut store = access(AccessKind::Store, 2, 0x3000, Some(1));
    store.paddr = Some(0x8000_3000);
    assert_eq!(&*effects(&keep, 0x1002).accesses, [store]);
    // Where a record starts after damage is not known: the rest is lost.
    bytes.push(0xff);
    let (keep, bad) = read(LogFormat::RenodeBinary, &bytes);
    assert_eq!((bad.len(), bad[0].line, keep.lost()), (1, 4, 1));
    let (_, bad) = read(LogFormat::RenodeBinary, b"ReTrace\x05\x00\x01\x01\x00");
    assert!(matches!(bad[0].kind, LineErrorKind::Limit(_)));
}

#[test]
fn riscv_dv() {
    let head = "pc,instr,gpr,csr,binary,mode,instr_str,operand,pad\n";
    let text = format!(
        "{head}0000000000001000,c.li,a0:0000000000000001,,4505,3,\"c.li a0, 1\",\"a0,1\",\n\
         0000000000001002,csrrw,t0:1,c773_mtvec:0000000000002000,30529273,3,\"csrrw t0, mtvec, t0\",\"\",\n\
         0000000000001006,nop,,,00000013,,nop,,\n"
    );
    let keep = good(LogFormat::RiscvDv, &text);
    assert_eq!(pcs(&keep), [0x1000, 0x1002, 0x1006]);
    assert_eq!(effects(&keep, 0x1002).csrs[0].csr, 773);
    // Rows that are left out are losses, which are reported once.
    let rows = "1000,,a0:1,,4505,3,,,\n1006,,a0:1,,4505,3,,,\n100c,,a0:1,,4505,3,,,\n";
    let (keep, bad) = read(LogFormat::RiscvDv, format!("{head}{rows}").as_bytes());
    assert_eq!((bad.len(), bad[0].line), (1, 3));
    assert!(matches!(bad[0].kind, LineErrorKind::Limit(_)));
    assert!(keep.traps().is_empty() && keep.lost() >= 2);
}

#[test]
fn tracerv() {
    let keep = good(
        LogFormat::Tracerv,
        "# Clock Domain: baseClock, Relative Frequency: 1/1 of Base Clock\n\
         Cycle: 0000000000000079 I0: 0000000000001000\n\
         Cycle: 0000000000000079 I1: 0000000000001002\n\
         C0: 0000010000002000, cycle: 0000000000000105\n\
         C0: 0000000000000000, cycle: 0000000000000106\n",
    );
    assert_eq!(pcs(&keep), [0x1000, 0x1002, 0x2000]);
    assert_eq!(keep.insns()[2].time, 105);
    // The program has an ecall there.
    assert_eq!(keep.traps()[0].trap.epc, Some(0x1006));
    assert_eq!(bad(LogFormat::Tracerv, "Cycle: x\n").1, 8);
}

fn by(columns: Columns, text: &str) -> Told {
    let reader = || FormatReader::of_columns(columns.clone(), EntryOptions::default(), None);
    assert_any_cut(reader, text.as_bytes())
}

#[test]
fn columns_of_a_table() {
    let names = [
        (Column::Valid, "rvfi_valid"),
        (Column::Pc, "rvfi_pc_rdata"),
        (Column::Insn, "rvfi_insn"),
        (Column::Next, "rvfi_pc_wdata"),
        (Column::Trap, "rvfi_trap"),
        (Column::Intr, "rvfi_intr"),
        (Column::Mode, "rvfi_mode"),
        (Column::Rd, "rvfi_rd_addr"),
        (Column::RdValue, "rvfi_rd_wdata"),
        (Column::MemAddr, "rvfi_mem_addr"),
        (Column::MemRmask, "rvfi_mem_rmask"),
        (Column::MemWmask, "rvfi_mem_wmask"),
        (Column::MemRdata, "rvfi_mem_rdata"),
        (Column::MemWdata, "rvfi_mem_wdata"),
    ];
    let columns = Columns::csv(b';', &names).unwrap();
    let header: Vec<&str> = names.iter().map(|named| named.1).collect();
    let text = format!(
        "{}\n\
         1;1000;4505;1002;0;0;3;10;1;0;0;0;0;0\n\
         0;;;;;;;;;;;;;\n\
         1;1002;00a58123;1006;0;0;3;0;0;3000;0;4;0;00010000\n\
         1;1006;00000073;2000;1;0;3;0;0;0;0;0;0;0\n\
         1;2000;00008067;5000;0;0;3;0;0;0;0;0;0;0\n\
         1;2100;0001;2102;0;1;3;0;0;0;0;0;0;0\n",
        header.join(";")
    );
    let (keep, bad) = by(columns, &text);
    assert_eq!(bad, vec![]);
    assert_eq!(pcs(&keep), [0x1000, 0x1002, 0x2000, 0x2100]);
    assert_eq!(&*effects(&keep, 0x1000).regs, [x(10, 1)]);
    // The mask says which byte of the word.
    let store = access(AccessKind::Store, 0, 0x3002, Some(1));
    assert_eq!(&*effects(&keep, 0x1002).accesses, [store]);
    let traps = keep.traps();
    assert_eq!(traps[0].trap.cause, Cause::Exception(Some(11)));
    // An interrupt after an indirect jump: where it went is in its row.
    assert_eq!(traps[1].trap.epc, Some(0x5000));
    assert_eq!(keep.insns()[2].next, 0x5000);
}

#[test]
fn columns_of_a_pattern() {
    let columns =
        Columns::pattern("{time}: core {hart} {*} pc={pc} ({insn}) {rd}={rd_value}").unwrap();
    let text =
        "17:  core 0 whatever pc=1000 (4505) a0=1\nnonsense\n18: core 0 x pc=1002 (0001) zero=0\n";
    let (keep, bad) = by(columns.clone(), text);
    assert_eq!(bad.len(), 1);
    assert_eq!((bad[0].line, bad[0].column), (2, 1));
    assert_eq!(pcs(&keep), [0x1000, 0x1002]);
    assert_eq!(keep.insns()[0].time, 17);
    assert_eq!(&*effects(&keep, 0x1000).regs, [x(10, 1)]);
    let (_, bad) = by(columns.ignoring_others(), text);
    assert_eq!(bad, vec![]);
    let columns = Columns::pattern("{pc}").unwrap();
    let (_, bad) = by(columns.with_decimal(Column::Pc, true), "10\nff\n");
    assert_eq!(bad.len(), 2);
}

#[test]
fn columns_that_cannot_be() {
    let twice = [(Column::Pc, "a"), (Column::Pc, "b")];
    assert_eq!(
        Columns::csv(b',', &twice),
        Err(ColumnsError::Twice(Column::Pc))
    );
    assert_eq!(Columns::csv(b',', &[]), Err(ColumnsError::NoPc));
    for (pattern, error) in [
        ("{insn}", ColumnsError::NoPc),
        ("{pc}{insn}", ColumnsError::Adjacent),
        ("{pc", ColumnsError::Brace),
        ("pc}", ColumnsError::Brace),
        ("{pc} {what}", ColumnsError::Unknown("what".into())),
    ] {
        assert_eq!(Columns::pattern(pattern), Err(error), "{pattern}");
    }
    let columns = Columns::csv(b',', &[(Column::Pc, "PC")]).unwrap();
    let (_, bad) = by(columns, "address,code\n1000,1\n");
    assert_eq!(bad[0].kind, LineErrorKind::MissingColumn("pc"));
}

/// Lines of all formats, damaged: no more errors than lines, and no panic.
#[test]
fn any_bytes_are_read() {
    let seed = b"ReTrace\x05\x08\x01\x01\x00\n[0] [M]: 0x1000 (0x4505) c.li\nx10 <- 0x1\n\
        #1 0 M 1000 4505 r a 1 x +\nRET 1000 4505 X 1 2 \\\n0, 0x1000, 0x1, \"n\", load, 0x1\n\
        Trace 0: 0x1 [0/1000/3/0] x\nTrace 0: 0x1 [0/2000/3/0] x\n1\t1\t00001000\t4505\tli\n\
        C0: 1 [1] pc=[1000] W[r 1=1][1] inst=[4505]\n1: cpu: T0 : 0x1000. 0 : a : b : A=1\n";
    let mut random = Random::new(7);
    let image = image();
    for format in LogFormat::ALL {
        let reader = || FormatReader::new(format, EntryOptions::default(), Some(&image));
        for round in 0..60 {
            let mut text = match round % 4 {
                0 => random.bytes(600),
                _ => seed.to_vec(),
            };
            let flips = random.index(12);
            flip_bits(&mut text, flips, &mut random);
            let lines = text.split(|&b| b == b'\n').count();
            let (keep, bad) = whole(reader(), &text);
            assert!(bad.len() <= lines + 1, "{format:?}: {bad:?}");
            assert!(keep.steps.len() <= 4 * lines + 600, "{format:?}");
        }
    }
}

#[test]
fn widths_that_logs_show() {
    for (format, head, xlen) in [
        (LogFormat::Ibex, &b""[..], Some(Xlen::Rv32)),
        (LogFormat::Rvvi, b"PARAMS 1 XLEN 64\n", Some(Xlen::Rv64)),
        (
            LogFormat::Sail,
            b"[0] [M]: 0x80000000 (0x1) x\n",
            Some(Xlen::Rv32),
        ),
        (
            LogFormat::Whisper,
            b"#1 0 M 80000000 0001 r 0 0 x\n",
            Some(Xlen::Rv32),
        ),
        (
            LogFormat::RenodeBinary,
            b"ReTrace\x05\x04\x01",
            Some(Xlen::Rv32),
        ),
        (LogFormat::Gem5, b"", None),
    ] {
        assert_eq!(format.xlen(head), xlen, "{format:?}");
    }
}

/// A line of one format is not taken for one of another.
#[test]
fn formats_are_told_apart() {
    assert_eq!(LogFormat::detect(b"hello\n80000000\n0x80000000\n"), None);
    assert_eq!(LogFormat::detect(b"key = 1\n[section]\n"), None);
    let lost = Step::Signal(Signal::Lost);
    let (keep, bad) = read(LogFormat::Ibex, b"hello\n");
    assert_eq!((bad.len(), keep.steps[0].1), (1, lost));
}

/// An interrupt that is taken right after `mret`: the return led to `mepc`, which the handler
/// has written, and to the mode of `mstatus`.
#[test]
fn an_interrupt_right_after_mret() {
    let keep = good(
        LogFormat::Ibex,
        "1\t1\t00001000\t300313f3\tcsrrw\tx7,mstatus,x6 x7=0x00001800\n\
         2\t2\t00001004\t30035073\tcsrrwi\tx0,mstatus,6\n\
         3\t3\t00001008\t000032b7\tlui\tx5,0x3 x5=0x00003000\n\
         4\t4\t0000100c\t34129073\tcsrrw\tx0,mepc,x5 x5:0x00003000\n\
         5\t5\t00001010\t30200073\tmret\n\
         9\t9\t0000201c\t0040006f\t==>jal\tx0,00002020\n\
         10\t10\t00002020\t30200073\tmret\n\
         11\t11\t00003000\t    0001\tc.nop\n",
    );
    let path: Vec<(u64, u64)> = keep.insns().iter().map(|i| (i.pc, i.next)).collect();
    assert_eq!(
        path[4..7],
        [(0x1010, 0x3000), (0x201c, 0x2020), (0x2020, 0x3000)]
    );
    let traps = keep.traps();
    let trap = traps[0];
    assert_eq!((traps.len(), trap.mode), (1, Mode::U));
    assert_eq!(trap.trap.epc, Some(0x3000));
    assert_eq!(trap.trap.handler, Some(0x201c));
}
