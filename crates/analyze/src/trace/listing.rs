//! One instruction per line, with its text and its name.

use super::{Render, RunText, Spaces};
use crate::cause::exception_name;
use crate::names::Names;
use hartrace_flow::{
    Cause, Consumer, DataAccess, Event, Fetched, Gap, HartId, Image, Mark, Ownership, Run, Trap,
};
use hartrace_isa::{Isa, Resolve, Style, Xlen, decode};
use std::fmt;
use std::io::Write as _;
use std::ops::ControlFlow;

/// Bytes gathered before they are handed on.
const BUFFER: usize = 1 << 17;

/// Lists what was executed, as text: one instruction per line, and lines that
/// begin with `--` for everything else. `sink` takes the bytes, many lines at
/// a time; call [`TraceListing::finish`] at the end.
pub struct TraceListing<'a, F> {
    image: &'a Image,
    lines: RunText<'a, Lines<'a>>,
    spaces: Spaces,
    /// Whose lines these are.
    hart: HartId,
    buffer: Vec<u8>,
    sink: F,
}

impl<'a, F: FnMut(&[u8])> TraceListing<'a, F> {
    /// A listing of all harts, as they come; it begins with hart 0.
    pub fn new(image: &'a Image, isa: Isa, names: &'a Names, sink: F) -> TraceListing<'a, F> {
        let style = Style::new(isa);
        TraceListing {
            image,
            lines: RunText::new(image, Lines { style, names }),
            spaces: Spaces::default(),
            hart: HartId(0),
            buffer: Vec::with_capacity(2 * BUFFER),
            sink,
        }
    }

    /// Hands on what is left.
    pub fn finish(&mut self) {
        (self.sink)(&self.buffer);
        self.buffer.clear();
    }

    fn of_hart(&mut self, hart: HartId) {
        if hart != self.hart {
            self.hart = hart;
            self.say(format_args!("hart {}", hart.0));
        }
    }

    fn run(&mut self, hart: HartId, run: &Run) {
        self.of_hart(hart);
        self.lines
            .append(self.spaces.of(hart), run, &mut self.buffer);
        if self.buffer.len() >= BUFFER {
            self.finish();
        }
    }

    fn say(&mut self, what: impl fmt::Display) {
        // Writing to memory does not fail.
        let _ = writeln!(self.buffer, "-- {what}");
    }

    fn place(&self, address: u64) -> String {
        let label = self.lines.render.names.label(address).to_string();
        match label.as_str() {
            "" => format!("{address:#x}"),
            name => format!("{address:#x} <{name}>"),
        }
    }

    fn trap(&mut self, trap: &Trap) {
        let mut text = cause(trap.cause);
        text += &format!(" at {}", self.place(trap.epc));
        if let Some(tval) = trap.tval {
            text += &format!(", value {tval:#x}");
        }
        if let Some(handler) = trap.handler {
            text += &format!(", handler {}", self.place(handler));
        }
        self.say(text);
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

fn access(data: &DataAccess) -> String {
    format!("{:?} of {:#x}", data.access.kind, data.access.addr)
}

impl<F: FnMut(&[u8])> Consumer for TraceListing<'_, F> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        if let Event::Run(run) = event {
            self.run(hart, run);
            return ControlFlow::Continue(());
        }
        self.of_hart(hart);
        match event {
            Event::Run(_) => {}
            Event::Trap(event) => self.trap(event),
            Event::Context(event) => {
                self.spaces.enter(hart, event, self.image);
                self.say(owner(event));
            }
            Event::Time(time) => self.say(format_args!("time {time}")),
            Event::Access(event) => self.say(access(event)),
            Event::Mark(event) => self.say(mark(*event)),
            Event::Gap(event) => self.say(gap(event)),
        }
        ControlFlow::Continue(())
    }
}

struct Lines<'a> {
    style: Style,
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

impl Render for Lines<'_> {
    fn line(&mut self, pc: u64, insn: &Fetched, out: &mut Vec<u8>) {
        let digits = match insn.isa.xlen() {
            Xlen::Rv32 => 8,
            Xlen::Rv64 => 16,
        };
        let style = Style {
            isa: insn.isa,
            ..self.style
        };
        let inst = decode(insn.bits, insn.isa);
        let text = inst.text(pc, &style).resolve(self.names).to_string();
        let (mnemonic, operands) = text.split_once('\t').unwrap_or((&text, ""));
        let text = match operands {
            "" => mnemonic.to_owned(),
            operands => format!("{mnemonic:<8}{operands}"),
        };
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
