//! Writes steps as Spike logs them.

use alloc::boxed::Box;
use alloc::vec::Vec;

use hartrace_isa::{Ext, Isa, MRET, Xlen, csr};

use super::line::{DEBUGGER_HALTED, DEBUGGER_RESUMED, DEBUGGER_WROTE, TRAPS};
use crate::Put;
use crate::text::{spell8, spell16};
use hartrace_flow::{
    Access, AccessKind, Cause, CsrWrite, Effects, Few, HartId, Insn, Mode, Observer, RegId,
    RegWrite, Signal, Step, TrapStep, Wants,
};
use hartrace_isa::csr::{
    HCONTEXT, MCONTEXT, MENVCFG, MENVCFGH, MIDELEG, MIE, MIP, MISA, MSTATUSH, MVIP, SIE, SIP,
    STIMECMP, STIMECMPH,
};

/// Bytes gathered before they are handed on.
const BUFFER: usize = 32 * 1024;

/// `cbo.zero`, whatever its register.
const CBO_MASK: u32 = 0xfff0_7fff;
const CBO_ZERO: u32 = 0x0040_200f;

/// `amocas.q`, whatever its registers.
const AMO_MASK: u32 = 0xf800_707f;
const AMOCAS_Q: u32 = 0x2800_402f;

/// Interrupts of the supervisor in `mip`: software and timer, external.
const SSI: u64 = 1 << 1;
const STI: u64 = 1 << 5;
const SSI_STI: u64 = SSI | STI;
const SEI: u64 = 1 << 9;

/// Writes the log of Spike's `--log-commits`, byte for byte: one line for each
/// retired instruction with the registers it wrote, the addresses it loaded
/// from and what it stored. `sink` takes the bytes, many lines at a time.
///
/// Traps are not in that log; [`SpikeWriter::with_traps`] adds the lines that
/// Spike's `-l` has for them, and lines of our own for what a debugger does, which
/// Spike does not log.
pub struct SpikeWriter<'a> {
    sink: Put<'a>,
    buffer: Vec<u8>,
    xlen: Xlen,
    /// Floating-point registers are 64 bits wide: D is there.
    double: bool,
    traps: bool,
    /// Lines for what was written from outside, until the hart halts or goes on.
    outside: Vec<u8>,
    /// Delegated interrupts, as far as known from the steps.
    mideleg: u64,
    /// Supervisor interrupts pending before the instruction.
    pending: u64,
    /// The supervisor has a timer of its own: `menvcfg.STCE`.
    timer: bool,
    /// The low half of `stimecmp` on RV32.
    stimecmp: u64,
}

/// A register and its value, in the order Spike prints them.
#[derive(Clone, Copy, Debug, Default)]
struct Shown {
    /// Spike's key: the number in the upper bits, the kind in the lower four.
    key: u32,
    value: u64,
}

const INTEGER: u32 = 0;
const FLOAT: u32 = 1;
const CONTROL: u32 = 4;

/// The registers an instruction wrote, sorted by Spike's keys.
#[derive(Clone, Copy, Debug, Default)]
struct Table {
    items: Few<Shown, 32>,
}

impl Table {
    fn put(&mut self, key: u32, value: u64) {
        let mut after = Few::<Shown, 32>::new();
        let mut item = Some(Shown { key, value });
        for old in self.items.iter() {
            if let Some(new) = item.take_if(|new| new.key < old.key) {
                let _ = after.push(new);
            }
            let same = item.take_if(|new| new.key == old.key);
            let _ = after.push(same.unwrap_or(*old));
        }
        if let Some(new) = item {
            let _ = after.push(new);
        }
        self.items = after;
    }
}

impl<'a> SpikeWriter<'a> {
    /// A writer for harts with this instruction set.
    #[must_use]
    pub fn new(isa: Isa, sink: impl FnMut(&[u8]) + 'a) -> SpikeWriter<'a> {
        SpikeWriter {
            sink: Box::new(sink),
            buffer: Vec::with_capacity(BUFFER + 1024),
            xlen: isa.xlen(),
            double: isa.has(Ext::D),
            traps: false,
            outside: Vec::new(),
            mideleg: 0,
            pending: 0,
            timer: false,
            stimecmp: 0,
        }
    }

    /// Writes traps too.
    #[must_use]
    pub fn with_traps(mut self) -> SpikeWriter<'a> {
        self.traps = true;
        self
    }

    fn text(&mut self, text: &[u8]) {
        self.buffer.extend_from_slice(text);
    }

    /// A number in decimal, padded on the left to a width.
    fn decimal(&mut self, value: u32, width: usize) {
        let mut digits = [b' '; 10];
        let (mut rest, mut first) = (value, digits.len());
        for (i, digit) in digits.iter_mut().enumerate().rev() {
            *digit = b'0' + (rest % 10) as u8;
            (rest, first) = (rest / 10, i);
            if rest == 0 {
                break;
            }
        }
        let from = first.min(digits.len() - width.min(digits.len()));
        self.buffer
            .extend_from_slice(digits.get(from..).unwrap_or_default());
    }

    /// A number in hexadecimal, of so many bytes.
    fn hex(&mut self, value: u64, bytes: usize) {
        let digits = spell16(value);
        self.text(b"0x");
        self.text(digits.get(16 - 2 * bytes.min(8)..).unwrap_or_default());
    }

    fn word(&mut self, value: u64) {
        match self.xlen {
            Xlen::Rv64 => {
                self.text(b"0x");
                self.text(&spell16(value));
            }
            Xlen::Rv32 => {
                self.text(b"0x");
                self.text(&spell8(value as u32));
            }
        }
    }

    fn core(&mut self, hart: HartId) {
        self.text(b"core");
        self.decimal(hart.0, 4);
        self.text(b": ");
    }

    fn instruction(&mut self, hart: HartId, insn: &Insn, effects: &Effects) {
        self.core(hart);
        // Virtual modes have the number of the mode they stand for.
        self.text(match insn.mode {
            Mode::U | Mode::VU => b"0 ",
            Mode::S | Mode::VS => b"1 ",
            Mode::M | Mode::D => b"3 ",
        });
        self.word(insn.pc);
        self.text(b" (");
        self.hex(insn.bits.into(), insn.len().min(4).into());
        self.text(b")");
        if let ([write], []) = (&*effects.regs, &*effects.csrs) {
            self.register(shown(write));
        } else if !effects.regs.is_empty() || !effects.csrs.is_empty() {
            let table = self.table(insn, effects);
            for item in table.items.iter() {
                self.register(*item);
            }
        }
        match &*effects.accesses {
            stores if insn.bits & CBO_MASK == CBO_ZERO => self.bytes(stores),
            // Its load is one of 16 bytes.
            both if insn.bits & AMO_MASK == AMOCAS_Q => self.loads_and_stores(both, 1),
            all => self.loads_and_stores(all, all.len()),
        }
        self.text(b"\n");
    }

    fn table(&mut self, insn: &Insn, effects: &Effects) -> Table {
        let mut table = Table::default();
        for write in effects.regs.iter() {
            let item = shown(write);
            table.put(item.key, item.value);
        }
        if let Some(read) = effects.csr_access.and_then(|access| access.operand) {
            self.read(insn, read);
        }
        for write in effects.csrs.iter() {
            self.csr(&mut table, insn, *write);
        }
        if is_mret(insn.bits) && self.xlen == Xlen::Rv32 {
            table.put(u32::from(MSTATUSH) << 4 | CONTROL, 0);
        }
        table
    }

    /// What an instruction has read shows which interrupts were pending.
    fn read(&mut self, insn: &Insn, value: u64) {
        let seen = match (insn.bits >> 20) as u16 {
            MIP => SSI_STI,
            SIP => SSI & self.mideleg,
            _ => return,
        };
        self.pending = self.pending & !seen | value & seen;
    }

    /// A CSR and what Spike says of its aliases.
    fn csr(&mut self, table: &mut Table, insn: &Insn, write: CsrWrite) {
        let named = (insn.bits >> 20) as u16;
        let CsrWrite { csr, value } = write;
        let mut put = |csr: u16, value: u64| table.put(u32::from(csr) << 4 | CONTROL, value);
        match csr {
            // Seen before the bits that share their place with mip change.
            MIP => {
                // A write to sip leaves STI as it was.
                if named == SIP {
                    self.pending = self.pending & !STI | value & STI;
                }
                let timer = if self.timer { STI } else { 0 };
                put(MVIP, value & SEI | self.pending & !timer);
                self.pending = value & SSI_STI;
                put(csr, value);
            }
            MCONTEXT => put(HCONTEXT, value),
            // Of a write to the upper half it shows the lower one.
            STIMECMPH => put(STIMECMP, self.stimecmp),
            MIE if named == SIE => {
                put(csr, value);
                put(SIE, value & self.mideleg);
            }
            _ => put(csr, value),
        }
        match csr {
            MIDELEG => self.mideleg = value,
            MENVCFG if self.xlen == Xlen::Rv64 => self.timer = value >> 63 != 0,
            MENVCFGH => self.timer = value >> 31 != 0,
            STIMECMP => self.stimecmp = value,
            MISA => self.double = value >> 3 & 1 != 0,
            _ => {}
        }
        debug_assert!(csr != SIP, "writes go to mip");
    }

    fn register(&mut self, item: Shown) {
        let number = item.key >> 4;
        match item.key & 15 {
            CONTROL => {
                self.text(b" c");
                self.decimal(number, 0);
                self.text(b"_");
                let name = csr::name(number as u16).unwrap_or("unknown-csr");
                self.text(name.as_bytes());
                self.text(b" ");
                self.word(item.value);
            }
            kind => {
                self.text(if kind == FLOAT { b" f" } else { b" x" });
                self.decimal(number, 0);
                self.text(if number < 10 { b"  " } else { b" " });
                match kind == FLOAT {
                    true if self.double => self.hex(item.value, 8),
                    true => self.hex(item.value, 4),
                    false => self.word(item.value),
                }
            }
        }
    }

    /// Loads, as many as are shown, then stores; an atomic is one of each.
    fn loads_and_stores(&mut self, accesses: &[Access], loads: usize) {
        use AccessKind as K;
        for access in accesses.iter().take(loads) {
            if !matches!(access.kind, K::Store | K::ConditionalStoreFailure) {
                self.text(b" mem ");
                self.word(access.addr);
            }
        }
        for access in accesses {
            if access.kind != K::Load && !access.kind.is_failure() {
                self.text(b" mem ");
                self.word(access.addr);
                self.text(b" ");
                self.hex(access.data.unwrap_or(0), 1 << access.size.min(3));
            }
        }
    }

    /// What `cbo.zero` stores, which Spike does byte by byte.
    fn bytes(&mut self, stores: &[Access]) {
        for access in stores {
            for at in 0..1u64 << access.size.min(3) {
                self.text(b" mem ");
                self.word(access.addr.wrapping_add(at));
                self.text(b" 0x00");
            }
        }
    }

    fn trap(&mut self, hart: HartId, step: &TrapStep) {
        self.core(hart);
        self.text(b"exception ");
        let (code, interrupt) = match step.trap.cause {
            Cause::Interrupt(code) => (code.unwrap_or(0), true),
            Cause::Exception(code) => (code.unwrap_or(0), false),
            Cause::Unknown => (0, false),
        };
        let known = TRAPS.iter().find(|(_, c)| *c == code && !interrupt);
        match known {
            Some((name, _)) => {
                self.text(b"trap_");
                self.text(name);
            }
            None => {
                self.text(if interrupt { b"interrupt #" } else { b"trap #" });
                self.decimal(code, 0);
            }
        }
        self.text(b", epc ");
        // The format has no word for "unknown".
        self.word(step.trap.epc.unwrap_or(0));
        self.text(b"\n");
        // Calls and interrupts have none.
        if let Some(tval) = step.trap.tval
            && !interrupt
            && !matches!(code, 8..=11)
        {
            self.core(hart);
            self.text(b"          tval ");
            self.word(tval);
            self.text(b"\n");
        }
    }

    /// What a debugger does. Other writes from outside are not its.
    #[cold]
    fn signal(&mut self, hart: HartId, signal: Signal, effects: &Effects) {
        let word = match signal {
            Signal::Update => DEBUGGER_WROTE,
            Signal::Halted => DEBUGGER_HALTED,
            Signal::Resumed => DEBUGGER_RESUMED,
            _ => return,
        };
        let before = core::mem::take(&mut self.outside);
        let start = self.buffer.len();
        self.text(&before);
        self.core(hart);
        self.text(b"debugger ");
        self.text(word);
        for write in effects.regs.iter() {
            self.register(shown(write));
        }
        for write in effects.csrs.iter() {
            let key = u32::from(write.csr) << 4 | CONTROL;
            let value = write.value;
            self.register(Shown { key, value });
        }
        self.loads_and_stores(&effects.accesses, effects.accesses.len());
        self.text(b"\n");
        if signal == Signal::Update {
            self.outside = self.buffer.split_off(start);
        }
    }

    fn flush(&mut self) {
        if !self.buffer.is_empty() {
            (self.sink)(&self.buffer);
            self.buffer.clear();
        }
    }
}

fn shown(write: &RegWrite) -> Shown {
    let (number, kind) = match write.reg {
        RegId::X(number) => (number, INTEGER),
        RegId::F(number) => (number, FLOAT),
    };
    Shown {
        key: u32::from(number) << 4 | kind,
        value: write.value,
    }
}

fn is_mret(bits: u32) -> bool {
    bits == MRET
}

impl Observer for SpikeWriter<'_> {
    const WANTS: Wants = Wants::ALL;

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        match step {
            Step::Insn(insn) => self.instruction(hart, insn, effects),
            Step::Trap(trap) if self.traps => self.trap(hart, trap),
            Step::Signal(signal) if self.traps => return self.signal(hart, *signal, effects),
            _ => return,
        }
        self.outside.clear();
        if self.buffer.len() >= BUFFER {
            self.flush();
        }
    }

    fn finish(&mut self) {
        self.flush();
    }
}
