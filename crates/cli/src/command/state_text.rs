//! States and writes for people.

use super::state::{Asked, Block, Place, Shown, Source, Written};
use hartrace_flow::Mode;
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

pub(super) fn state(
    asked: &Asked<'_>,
    shown: &Shown<'_>,
    all: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let listed = !shown.registers.is_empty() || !shown.memory.is_empty();
    if !listed || all {
        heading(asked, shown, out)?;
        let mut unknown = false;
        table(asked, &shown.state.shadow, all, &mut unknown, out)?;
        if unknown {
            writeln!(
                out,
                "- is not known: the trace has not told it, or not since a problem"
            )?;
        }
    }
    let width = shown.registers.iter().map(|r| r.0.len()).max().unwrap_or(0);
    for &(name, place) in &shown.registers {
        let value = value(asked, &shown.state.shadow, place);
        let value = value.unwrap_or_else(|| "not known".to_owned());
        writeln!(out, "{name:width$}  {value}")?;
    }
    let bytes = || shown.memory.iter().flat_map(|block| &block.bytes);
    for block in &shown.memory {
        dump(asked, block, out)?;
    }
    if bytes().any(|byte| matches!(byte, Source::Program(_))) {
        writeln!(out, "* is from the program: the trace has not told it")?;
    }
    if bytes().any(|byte| *byte == Source::Unknown) {
        writeln!(out, "?? is not known")?;
    }
    Ok(())
}

/// Which instruction it is, where it is, and how the hart is.
fn heading(asked: &Asked<'_>, shown: &Shown<'_>, out: &mut impl Write) -> io::Result<()> {
    let (insns, shadow) = (asked.history.instructions(), &shown.state.shadow);
    match &shown.state.next {
        Some(group) => writeln!(
            out,
            "in front of instruction {} of {insns}, group {} at byte {:#x}",
            shown.insn, group.number, group.at
        )?,
        None => writeln!(out, "at the end, behind {insns} instructions")?,
    }
    let pc = match shadow.pc {
        Some(pc) => format!("{pc:0width$x}{}", name(asked, pc), width = asked.digits()),
        None => "-".to_owned(),
    };
    write!(out, "pc       {pc}")?;
    if let Some(insn) = shown.state.next.as_ref().and_then(|group| group.insn) {
        let digits = 2 * usize::from(insn.len);
        let text = asked.text(insn.bits, shadow.pc);
        write!(out, "  {:0digits$x}  {text}", insn.bits)?;
    }
    writeln!(out)?;
    let mode = shadow.mode.map_or("-", mode);
    write!(out, "mode     {mode}")?;
    if let Some(time) = shadow.mtime {
        write!(out, "  mtime {time}")?;
    }
    writeln!(out)
}

fn table(
    asked: &Asked<'_>,
    shadow: &Shadow,
    all: bool,
    unknown: &mut bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let integer: Vec<Register> = (0..32).map(Register::x).collect();
    let csrs = USUAL.iter().filter_map(|name| Register::from_name(name));
    let mut rest: Vec<Register> = match all {
        true => shadow.registers().map(|r| r.0).collect(),
        false => csrs.filter(|&csr| shadow.get(csr).is_some()).collect(),
    };
    rest.retain(|register| !integer.contains(register));
    for (list, width) in [(&integer, 8), (&rest, 14)] {
        let columns = if width == 8 { COLUMNS } else { COLUMNS / 2 };
        for line in list.chunks(columns) {
            let mut text = String::new();
            for &register in line {
                let name = register.to_string();
                let digits = match register.is_float() {
                    true => asked.history.config().flen.bits() as usize / 4,
                    false => asked.digits(),
                };
                let _ = match shadow.get(register) {
                    Some(value) => write!(text, "{name:width$} {value:0digits$x}  "),
                    None => write!(text, "{name:width$} {:>digits$}  ", "-"),
                };
                *unknown |= shadow.get(register).is_none();
            }
            writeln!(out, "{}", text.trim_end())?;
        }
    }
    Ok(())
}

/// A value that was asked for by name.
pub(super) fn value(asked: &Asked<'_>, shadow: &Shadow, place: Place) -> Option<String> {
    let digits = asked.digits();
    Some(match place {
        Place::Register(register) => format!("{:#x}", shadow.get(register)?),
        Place::Pc => {
            let pc = shadow.pc?;
            format!("{pc:#0width$x}{}", name(asked, pc), width = digits + 2)
        }
        Place::Mode => mode(shadow.mode?).to_owned(),
        Place::Mtime => shadow.mtime?.to_string(),
    })
}

pub(super) const fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::U => "U",
        Mode::S => "S",
        _ => "M",
    }
}

/// ` <main+0x4>`, or nothing.
fn name(asked: &Asked<'_>, addr: u64) -> String {
    let label = asked.label(addr);
    match label.is_empty() {
        true => label,
        false => format!(" <{label}>"),
    }
}

/// Sixteen bytes a line, at addresses that sixteen divides.
fn dump(asked: &Asked<'_>, block: &Block, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{:#x}{}:", block.addr, name(asked, block.addr))?;
    let (mut addr, mut rest) = (block.addr, &block.bytes[..]);
    while !rest.is_empty() {
        let room = 16 - (addr % 16) as usize;
        let (line, later) = rest.split_at(room.min(rest.len()));
        let mut text = format!("{:0width$x} ", addr, width = asked.digits());
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

pub(super) fn writes(
    asked: &Asked<'_>,
    all: &[Written<'_>],
    out: &mut impl Write,
) -> io::Result<()> {
    for written in all {
        let name = written.name;
        match written.origin {
            Origin::Write(write) => wrote(asked, name, &write, out)?,
            Origin::Lost {
                insn,
                group,
                offset,
            } => {
                writeln!(out, "{name}: not known")?;
                writeln!(
                    out,
                    "  since a problem, a reset or a store to an unknown place: group {group} at \
                     byte {offset:#x}, in front of instruction {insn}"
                )?;
            }
            Origin::Never => writeln!(
                out,
                "{name}: not written before instruction {}",
                written.before
            )?,
        }
    }
    Ok(())
}

fn wrote(asked: &Asked<'_>, called: &str, write: &Wrote, out: &mut impl Write) -> io::Result<()> {
    match write.kind {
        GroupKind::Instruction => writeln!(out, "{called}: written by instruction {}", write.insn)?,
        GroupKind::Exception => {
            writeln!(
                out,
                "{called}: written by the trap of instruction {}",
                write.insn
            )?;
        }
        kind => writeln!(
            out,
            "{called}: written in front of instruction {} ({})",
            write.insn,
            kind.name()
        )?,
    }
    if let Some(pc) = write.pc {
        let width = asked.digits();
        writeln!(out, "  pc     {pc:0width$x}{}", name(asked, pc))?;
    }
    if let Some(bits) = write.bits {
        let digits = if bits & 3 == 3 { 8 } else { 4 };
        let text = asked.text(bits, write.pc);
        writeln!(out, "  insn   {bits:0digits$x}  {text}")?;
    }
    if let Target::Memory { addr, len } = write.target {
        let plural = if len == 1 { "" } else { "s" };
        writeln!(
            out,
            "  store  {len} byte{plural} to {addr:#x}{}",
            name(asked, addr)
        )?;
    }
    for (what, value) in [("old", write.old), ("new", write.new)] {
        match (value, write.target) {
            (None, _) => writeln!(out, "  {what}    not known")?,
            (Some(code), Target::Mode) => {
                let known = Mode::from_code(code as u8).map_or("-", mode);
                writeln!(out, "  {what}    {known}")?;
            }
            (Some(value), _) => writeln!(out, "  {what}    {value:#x}")?,
        }
    }
    writeln!(out, "  group  {} at byte {:#x}", write.group, write.offset)
}
