//! States and writes as text.

use super::{One, State, Terms, Value, Where, Writes};
use crate::words;
use hartrace_capture::history::{Block, Place, Source};
use hartrace_tandem::history::{Origin, Target, Write as Wrote};
use hartrace_tandem::{GroupKind, Register, Shadow};
use std::fmt::Write as _;
use std::io::{self, Write};

/// CSRs that are shown without being asked for, where they are known.
const USUAL: [&str; 14] = [
    "mstatus", "mie", "mip", "mtvec", "mscratch", "mepc", "mcause", "mtval", "stvec", "sepc",
    "scause", "stval", "satp", "fcsr",
];

/// Registers in a line.
const COLUMNS: usize = 4;

pub(super) fn state(value: &State<'_>, out: &mut impl Write) -> io::Result<()> {
    let (shown, terms) = (value.shown, &value.terms);
    let listed = !shown.registers.is_empty() || !shown.memory.is_empty();
    if !listed || value.all {
        heading(value, out)?;
        if table(value, out)? {
            writeln!(
                out,
                "-: unknown; the trace has not reported it, or not since a problem"
            )?;
        }
    }
    let width = shown.registers.iter().map(|r| r.0.len()).max().unwrap_or(0);
    for &(name, place) in &shown.registers {
        let value = named(value, place);
        let value = value.unwrap_or_else(|| "unknown".to_owned());
        writeln!(out, "{name:width$}  {value}")?;
    }
    for (block, memory) in shown.memory.iter().zip(&value.memory) {
        dump(terms, block, &memory.symbol, out)?;
    }
    let bytes = || shown.memory.iter().flat_map(|block| &block.bytes);
    if bytes().any(|byte| matches!(byte, Source::Program(_))) {
        writeln!(out, "*: from the program; the trace has not reported it")?;
    }
    if bytes().any(|byte| *byte == Source::Unknown) {
        writeln!(out, "??: unknown")?;
    }
    Ok(())
}

/// Which instruction it is, where it is, and how the hart is.
fn heading(value: &State<'_>, out: &mut impl Write) -> io::Result<()> {
    let (insns, at) = (value.instructions, &value.at);
    match (value.group, value.offset) {
        (Some(group), Some(offset)) => writeln!(
            out,
            "before instruction {} of {insns}, group {group} at byte {offset:#x}",
            value.instruction
        )?,
        _ => writeln!(out, "at the end, after {insns} instructions")?,
    }
    match at.pc {
        Some(pc) => {
            let width = value.terms.digits();
            write!(out, "pc       {:0width$x}{}", pc.0, bracketed(&at.symbol))?;
        }
        None => write!(out, "pc       -")?,
    }
    let insn = value.shown.state.next.as_ref().and_then(|group| group.insn);
    if let (Some(insn), Some(text)) = (insn, &at.text) {
        let digits = 2 * usize::from(insn.len);
        write!(out, "  {:0digits$x}  {text}", insn.bits)?;
    }
    writeln!(out)?;
    write!(out, "mode     {}", value.mode.unwrap_or("-"))?;
    if let Some(time) = value.mtime {
        write!(out, "  mtime {}", time.0)?;
    }
    writeln!(out)
}

/// The registers; whether some of them are not known.
fn table(value: &State<'_>, out: &mut impl Write) -> io::Result<bool> {
    let shadow = &value.shown.state.shadow;
    let integer: Vec<Register> = (0..32).map(Register::x).collect();
    let csrs = USUAL.iter().filter_map(|name| Register::from_name(name));
    let mut rest: Vec<Register> = match value.all {
        true => shadow.registers().map(|r| r.0).collect(),
        false => csrs.filter(|&csr| shadow.get(csr).is_some()).collect(),
    };
    rest.retain(|register| !integer.contains(register));
    for (list, width) in [(&integer, 8), (&rest, 14)] {
        let columns = if width == 8 { COLUMNS } else { COLUMNS / 2 };
        for registers in list.chunks(columns) {
            let line = line(&value.terms, shadow, registers, width);
            writeln!(out, "{}", line.trim_end())?;
        }
    }
    let mut all = integer.iter().chain(&rest);
    Ok(all.any(|&register| shadow.get(register).is_none()))
}

/// Some registers, with names of this width.
fn line(terms: &Terms<'_>, shadow: &Shadow, registers: &[Register], width: usize) -> String {
    let mut text = String::new();
    for &register in registers {
        let name = register.to_string();
        let digits = match register.is_float() {
            true => terms.config.flen.bits() as usize / 4,
            false => terms.digits(),
        };
        let _ = match shadow.get(register) {
            Some(value) => write!(text, "{name:width$} {value:0digits$x}  "),
            None => write!(text, "{name:width$} {:>digits$}  ", "-"),
        };
    }
    text
}

/// A value that was asked for by name.
fn named(value: &State<'_>, place: Place) -> Option<String> {
    let width = value.terms.digits() + 2;
    Some(match place {
        Place::Register(register) => format!("{:#x}", value.shown.state.shadow.get(register)?),
        Place::Pc => format!(
            "{:#0width$x}{}",
            value.at.pc?.0,
            bracketed(&value.at.symbol)
        ),
        Place::Mode => value.mode?.to_owned(),
        Place::Mtime => value.mtime?.0.to_string(),
    })
}

/// ` <main+0x4>`, or nothing.
fn bracketed(label: &str) -> String {
    match label.is_empty() {
        true => String::new(),
        false => format!(" <{label}>"),
    }
}

/// Sixteen bytes a line, at addresses that sixteen divides.
fn dump(terms: &Terms<'_>, block: &Block, symbol: &str, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{:#x}{}:", block.addr, bracketed(symbol))?;
    let (mut addr, mut rest) = (block.addr, &block.bytes[..]);
    while !rest.is_empty() {
        let room = 16 - (addr % 16) as usize;
        let (line, later) = rest.split_at(room.min(rest.len()));
        let mut text = format!("{:0width$x} ", addr, width = terms.digits());
        for byte in line {
            let _ = match byte {
                Source::Trace(byte) => write!(text, " {byte:02x} "),
                Source::Program(byte) => write!(text, " {byte:02x}*"),
                Source::Unknown => write!(text, " ?? "),
            };
        }
        writeln!(out, "{}", text.trim_end())?;
        (addr, rest) = (addr.wrapping_add(line.len() as u64), later);
    }
    Ok(())
}

pub(super) fn writes(value: &Writes<'_>, out: &mut impl Write) -> io::Result<()> {
    for one in &value.writes {
        let name = one.target;
        match &one.origin {
            Origin::Write(write) => wrote(&value.terms, one, write, out)?,
            Origin::Lost {
                insn,
                group,
                offset,
            } => {
                writeln!(out, "{name}: unknown")?;
                writeln!(
                    out,
                    "  since a problem, a reset or a store to an unknown address: group {group} \
                     at byte {offset:#x}, before instruction {insn}"
                )?;
            }
            Origin::Never => {
                writeln!(out, "{name}: not written before instruction {}", one.before)?
            }
        }
    }
    Ok(())
}

fn wrote(terms: &Terms<'_>, one: &One<'_>, write: &Wrote, out: &mut impl Write) -> io::Result<()> {
    let (name, insn) = (one.target, write.insn);
    match write.kind {
        GroupKind::Instruction => writeln!(out, "{name}: written by instruction {insn}")?,
        GroupKind::Exception => {
            writeln!(out, "{name}: written by the trap of instruction {insn}")?;
        }
        kind => {
            let kind = kind.name();
            writeln!(out, "{name}: written before instruction {insn} ({kind})")?;
        }
    }
    let Where {
        pc, symbol, text, ..
    } = &one.at;
    if let Some(pc) = pc {
        let width = terms.digits();
        writeln!(out, "  pc     {:0width$x}{}", pc.0, bracketed(symbol))?;
    }
    if let (Some(bits), Some(text)) = (write.bits, text) {
        writeln!(out, "  insn   {}  {text}", words::encoding(bits))?;
    }
    if let Target::Memory { addr, len } = write.target {
        let (size, place) = (words::count(len, "byte"), bracketed(&terms.label(addr)));
        writeln!(out, "  store  {size} to {addr:#x}{place}")?;
    }
    for (what, value) in [("old", &one.old), ("new", &one.new)] {
        match (value, write.target) {
            (None, _) => writeln!(out, "  {what}    unknown")?,
            (Some(Value::Mode(mode)), _) => writeln!(out, "  {what}    {mode}")?,
            // A code that means no mode.
            (Some(Value::Number(_)), Target::Mode) => writeln!(out, "  {what}    -")?,
            (Some(Value::Number(value)), _) if what == "old" && one.old_from_program => {
                writeln!(out, "  {what}    {value} (from the program)")?;
            }
            (Some(Value::Number(value)), _) => writeln!(out, "  {what}    {value}")?,
        }
    }
    writeln!(out, "  group  {} at byte {:#x}", write.group, write.offset)
}
