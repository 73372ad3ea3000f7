//! One instruction per line, with its disassembly and symbol.

use super::{Gathered, Render, RunText, Spaces};
use crate::names::Names;
use hartrace_flow::{
    AccessKind, Cause, Consumer, DataAccess, Event, Fetched, Gap, HartId, Image, Mark, Ownership,
    Run, SpaceId, Trap, Warning, exception_name,
};
use hartrace_isa::{Resolve, Style, Xlen, csr, decode};
use std::fmt;
use std::io::Write as _;
use std::ops::ControlFlow;

/// Lists what was executed, as text: one instruction per line, and lines that
/// begin with `--` for everything else; with several harts, each begins with
/// the number of its hart. Data accesses stand after their instruction.
pub struct TraceListing<'a, F> {
    image: &'a Image,
    lines: RunText<'a, Lines<'a>>,
    spaces: Spaces,
    /// There may be several harts.
    harts: bool,
    /// Where the text of the last run starts, if nothing came after it.
    last: Option<usize>,
    /// The text.
    pub out: Gathered<F>,
}

impl<'a, F: FnMut(&mut Vec<u8>)> TraceListing<'a, F> {
    /// A listing of all harts, as they come; `harts` says that there may be
    /// several.
    pub fn new(image: &'a Image, names: &'a Names, harts: bool, flush: F) -> TraceListing<'a, F> {
        TraceListing {
            image,
            lines: RunText::new(image, Lines { names }),
            spaces: Spaces::default(),
            harts,
            last: None,
            out: Gathered::new(flush),
        }
    }

    fn run(&mut self, hart: HartId, run: &Run) {
        let space = self.spaces.of(hart);
        self.out.added();
        self.last = Some(self.out.text().len());
        if self.harts {
            self.run_of_hart(hart, space, run);
        } else {
            self.lines.append(space, run, self.out.text());
        }
    }

    /// Adds an access to the line of its instruction.
    fn access(&mut self, hart: HartId, data: &DataAccess) {
        let at = (self.last.zip(data.insn)).and_then(|(start, insn)| {
            let lines = self.out.text().get(start..)?;
            let mut ends = lines.iter().enumerate().filter(|(_, b)| **b == b'\n');
            let (end, _) = ends.nth(insn as usize)?;
            Some(start + end)
        });
        match at {
            Some(at) => {
                let text = format!("  ; {}", access(data));
                self.out.text().splice(at..at, text.into_bytes());
            }
            None => self.say(hart, access(data)),
        }
    }

    /// The same text with a number before each line.
    fn run_of_hart(&mut self, hart: HartId, space: SpaceId, run: &Run) {
        let mut lines = Vec::new();
        self.lines.append(space, run, &mut lines);
        for line in lines.split_inclusive(|&b| b == b'\n') {
            let _ = write!(self.out.text(), "{:<3} ", hart.0);
            self.out.text().extend_from_slice(line);
        }
    }

    fn say(&mut self, hart: HartId, what: impl fmt::Display) {
        self.last = None;
        // Writing to memory does not fail.
        let _ = match self.harts {
            true => writeln!(self.out.text(), "{:<3} -- {what}", hart.0),
            false => writeln!(self.out.text(), "-- {what}"),
        };
    }

    fn place(&self, address: u64) -> String {
        let label = self.lines.render.names.label(address).to_string();
        match label.as_str() {
            "" => format!("{address:#x}"),
            name => format!("{address:#x} <{name}>"),
        }
    }

    fn trap(&mut self, hart: HartId, trap: &Trap) {
        let mut text = cause(trap.cause);
        text += &match trap.epc {
            Some(epc) => format!(" at {}", self.place(epc)),
            None => " at an unknown address".to_owned(),
        };
        if let Some(tval) = trap.tval {
            text += &format!(", value {tval:#x}");
        }
        if let Some(handler) = trap.handler {
            text += &format!(", handler {}", self.place(handler));
        }
        self.say(hart, text);
    }
}

fn cause(cause: Cause) -> String {
    match cause {
        Cause::Exception(Some(code)) => match exception_name(code) {
            Some(name) => format!("exception {code}, {name},"),
            None => format!("exception {code}"),
        },
        Cause::Exception(None) => "exception".to_owned(),
        Cause::Interrupt(Some(code)) => format!("interrupt {code}"),
        Cause::Interrupt(None) => "interrupt".to_owned(),
        Cause::Unknown => "trap".to_owned(),
    }
}

fn mark(mark: Mark) -> String {
    match mark {
        Mark::On => "tracing starts".to_owned(),
        Mark::Off => "tracing ends".to_owned(),
        Mark::Notify => "trigger".to_owned(),
        Mark::External(input) => format!("external trigger {input}"),
        Mark::Halted => "halted".to_owned(),
        Mark::Resumed => "resumed".to_owned(),
        Mark::Reset => "reset".to_owned(),
        Mark::PowerDown => "power down".to_owned(),
        Mark::PowerUp => "power up".to_owned(),
        Mark::Sync(code) => format!("synchronised, reason {code}"),
        Mark::Vendor(code) => format!("vendor message {code}"),
    }
}

fn owner(owner: &Ownership) -> String {
    let mut text = "now".to_owned();
    if let Some(mode) = owner.mode {
        text += &format!(" mode {}", mode.name());
    }
    if let Some(context) = owner.context {
        text += &format!(" context {:#x}", context.0);
    }
    text
}

fn gap(gap: &Gap) -> String {
    let mut text = format!("gap at byte {:#x}: {}", gap.at, gap.reason);
    if gap.unconfirmed > 0 {
        text += &format!(
            "; the last {} instructions are unconfirmed",
            gap.unconfirmed
        );
    }
    text
}

fn warning(warning: &Warning) -> String {
    format!("warning at byte {:#x}: {}", warning.at, warning.reason)
}

/// `load 4 0x80001000 = 0x2a`, `add 4 0x80001000 = 0x2b, was 0x2a`,
/// `write mstatus = 0x8, was 0x0`.
fn access(data: &DataAccess) -> String {
    let access = &data.access;
    let what = match access.kind {
        AccessKind::Load => "load",
        AccessKind::Store => "store",
        AccessKind::CsrReadWrite => "write",
        AccessKind::CsrReadSet => "set",
        AccessKind::CsrReadClear => "clear",
        AccessKind::AtomicSwap => "swap",
        AccessKind::AtomicAdd => "add",
        AccessKind::AtomicAnd => "and",
        AccessKind::AtomicOr => "or",
        AccessKind::AtomicXor => "xor",
        AccessKind::AtomicMax => "max",
        AccessKind::AtomicMin => "min",
        AccessKind::ConditionalStoreFailure => "failed store",
    };
    let mut text = what.to_owned();
    if access.kind.is_csr() {
        text += &match csr::name(access.addr as u16) {
            Some(name) => format!(" {name}"),
            None => format!(" csr {:#x}", access.addr),
        };
    } else {
        text += &format!(" {}", 1u32.checked_shl(access.size.into()).unwrap_or(0));
        if data.has_address {
            text += &format!(" {:#x}", access.addr);
        }
    }
    if let Some(value) = access.data {
        text += &format!(" = {value:#x}");
    }
    if let Some(value) = access.operand {
        text += &format!(", was {value:#x}");
    }
    text
}

impl<F: FnMut(&mut Vec<u8>)> Consumer for TraceListing<'_, F> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        if let Event::Run(run) = event {
            self.run(hart, run);
            return ControlFlow::Continue(());
        }
        match event {
            Event::Run(_) => {}
            Event::Trap(event) => self.trap(hart, event),
            Event::Context(event) => {
                self.spaces.enter(hart, event, self.image);
                self.say(hart, owner(event));
            }
            Event::Time(time) => self.say(hart, format_args!("time {time}")),
            Event::Access(event) => self.access(hart, event),
            Event::Mark(event) => self.say(hart, mark(*event)),
            Event::Gap(event) => self.say(hart, gap(event)),
            Event::Warning(event) => self.say(hart, warning(event)),
        }
        ControlFlow::Continue(())
    }
}

struct Lines<'a> {
    names: &'a Names,
}

impl Resolve for Names {
    fn address(&self, f: &mut fmt::Formatter<'_>, address: u64) -> fmt::Result {
        write!(f, "{address:x}")?;
        match self.lookup(address) {
            None => Ok(()),
            Some(_) => write!(f, " <{}>", self.label(address)),
        }
    }
}

/// An instruction as listings show it, with the names of the addresses it has.
#[must_use]
pub fn instruction_text(pc: u64, insn: &Fetched, names: &Names) -> String {
    let inst = decode(insn.bits, insn.isa);
    let style = Style::new(insn.isa);
    let text = inst.text(pc, &style).resolve(names).to_string();
    let (mnemonic, operands) = text.split_once('\t').unwrap_or((&text, ""));
    match operands {
        "" => mnemonic.to_owned(),
        operands => format!("{mnemonic:<8}{operands}"),
    }
}

impl Render for Lines<'_> {
    fn line(&mut self, pc: u64, insn: &Fetched, out: &mut Vec<u8>) {
        let digits = match insn.isa.xlen() {
            Xlen::Rv32 => 8,
            Xlen::Rv64 => 16,
        };
        let text = instruction_text(pc, insn, self.names);
        let bits = match insn.len {
            2 => format!("{:04x}", insn.bits),
            _ => format!("{:08x}", insn.bits),
        };
        // Writing to memory does not fail.
        let _ = match self.names.lookup(pc) {
            None => writeln!(out, "{pc:0digits$x}  {bits:<8}  {text}"),
            Some(_) => {
                let label = self.names.label(pc);
                writeln!(out, "{pc:0digits$x}  {bits:<8}  {text:<32}  {label}")
            }
        };
    }
}
