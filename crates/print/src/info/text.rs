//! File facts as text.

use super::{
    CodeHistory, Content, Elf, File, Log, Records, Segment, Settings, Sidecar, Trace, Trap,
};
use crate::words::{clean, count};
use hartrace_capture::detect::Kind;
use hartrace_capture::input::is_stdin;
use hartrace_capture::trace;
use hartrace_logs::LineError;
use std::fmt::Display;
use std::io::{self, Write};

pub(super) fn write(file: &File, out: &mut impl Write) -> io::Result<()> {
    let name = if is_stdin(&file.path) {
        "standard input".to_owned()
    } else {
        clean(&file.path.display().to_string())
    };
    writeln!(out, "{name}: {}", file.kind)?;
    row(out, "size", count(file.bytes, "byte"))?;
    match &file.content {
        Content::Elf(elf) => write_elf(elf, out)?,
        Content::Log(log) => write_log(file.kind, log, out)?,
        Content::Config(config) => write_config(config, out)?,
        Content::Trace(trace) => write_trace(trace, out)?,
        Content::Records(records) => write_records(records, out)?,
        Content::Code(code) => write_code(code, out)?,
    }
    if let Some(sidecar) = &file.sidecar {
        write_sidecar(sidecar, out)?;
    }
    row(out, "sha256", file.sha256)
}

fn row(out: &mut impl Write, name: &str, value: impl Display) -> io::Result<()> {
    writeln!(out, "  {name:<11} {value}")
}

fn list<T: Display>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(T::to_string).collect();
    items.join(" ")
}

fn write_elf(elf: &Elf, out: &mut impl Write) -> io::Result<()> {
    row(
        out,
        "class",
        format_args!("{}-bit RISC-V, little-endian", elf.bits),
    )?;
    row(out, "type", &elf.kind)?;
    row(out, "entry", elf.entry)?;
    match &elf.isa {
        None => row(out, "isa", "not given")?,
        Some(text) => row(out, "isa", clean(text))?,
    }
    if !elf.extensions.is_empty() {
        row(out, "extensions", elf.extensions.join(" "))?;
    }
    let compressed = if elf.compressed { ", compressed" } else { "" };
    let tso = if elf.total_store_order {
        ", total store order"
    } else {
        ""
    };
    row(out, "abi", format_args!("{}{compressed}{tso}", elf.abi))?;
    let mut title = "segments";
    for segment in &elf.segments {
        row(out, title, segment_text(segment))?;
        title = "";
    }
    let mut title = "code";
    for section in &elf.code {
        let (start, name) = (section.address.0, clean(&section.name));
        let end = start.saturating_add(section.size);
        row(out, title, format_args!("{start:#x}..{end:#x} {name}"))?;
        title = "";
    }
    row(out, "symbols", elf.symbols)?;
    row(out, "line info", if elf.line_info { "yes" } else { "no" })?;
    match &elf.build_id {
        Some(id) => row(out, "build id", id),
        None => Ok(()),
    }
}

fn segment_text(segment: &Segment) -> String {
    let (start, size) = (segment.address.0, segment.memory_size);
    let end = start.saturating_add(size);
    let from = if segment.file_size == size {
        String::new()
    } else {
        format!(", {} of them in the file", segment.file_size)
    };
    let (access, size) = (&segment.access, count(size, "byte"));
    format!("{start:#x}..{end:#x} {access} {size}{from}")
}

fn write_log(kind: Kind, log: &Log, out: &mut impl Write) -> io::Result<()> {
    let is_wave = matches!(kind, Kind::Wave(_));
    let title = if is_wave { "clock edges" } else { "lines" };
    row(out, title, log.lines)?;
    if let Some(instructions) = log.instructions {
        row(out, "hart ids", list(&log.harts))?;
        row(out, "retired", count(instructions, "instruction"))?;
    }
    if let Some(rows) = log.rows {
        let title = match kind {
            Kind::IngressCsv | Kind::Wave(_) => "blocks",
            _ => "pcs",
        };
        row(out, title, rows)?;
    }
    if log.instructions.is_some() || kind == Kind::IngressCsv || is_wave {
        write_traps(log, out)?;
    }
    if let (Some(first), Some(last)) = (log.first_pc, log.last_pc) {
        row(out, "first pc", first)?;
        row(out, "last pc", last)?;
    }
    if log.damaged == 0 {
        return Ok(());
    }
    let noun = if is_wave { "fault" } else { "line" };
    row(out, "damaged", count(log.damaged, noun))?;
    for error in &log.first_damaged {
        row(out, "", &error.note)?;
    }
    more(log.damaged, log.first_damaged.len(), out)
}

/// How many are not listed.
fn more(all: u64, listed: usize, out: &mut impl Write) -> io::Result<()> {
    match all.saturating_sub(listed as u64) {
        0 => Ok(()),
        more => row(out, "", format_args!("and {more} more")),
    }
}

fn write_traps(log: &Log, out: &mut impl Write) -> io::Result<()> {
    row(out, "traps", log.traps)?;
    for trap in &log.causes {
        row(out, "", format_args!("{} {}", trap_text(trap), trap.count))?;
    }
    if log.more_traps > 0 {
        row(out, "", format_args!("other causes: {}", log.more_traps))?;
    }
    let mut title = "signals";
    for signals in &log.signals {
        let (signal, count) = (signals.signal, signals.count);
        row(out, title, format_args!("{signal}: {count}"))?;
        title = "";
    }
    match log.has_modes {
        true => row(out, "modes", log.modes.join(" ")),
        false => Ok(()),
    }
}

fn trap_text(trap: &Trap) -> String {
    match (trap.cause, trap.code) {
        (word, Some(code)) => format!("{word} {code}:"),
        ("unknown", _) => "of unknown cause:".to_owned(),
        (word, None) => format!("{word}:"),
    }
}

/// An unreadable line of a log: its position, what was expected and what was
/// found.
#[must_use]
pub(crate) fn line_note(error: &LineError) -> String {
    error.to_string()
}

fn write_trace(trace: &Trace, out: &mut impl Write) -> io::Result<()> {
    row(out, "version", trace.settings.version())?;
    let units = format!("{}s", trace.settings.format().unit());
    match &trace.settings {
        trace::Settings::Ntrace(config) => {
            row(out, "mode", config.mode.name())?;
            row(out, &units, trace.messages)?;
            row(out, "sources", list(&trace.sources))?;
        }
        trace::Settings::Tandem(config) => {
            let (xlen, flen, mlen) = (config.xlen.bits(), config.flen.bits(), config.mlen.bits());
            let widths = format_args!("XLEN {xlen}, FLEN {flen}, MLEN {mlen}");
            row(out, "widths", widths)?;
            row(out, &units, trace.messages)?;
            if !config.absent.is_empty() {
                row(out, "absent", &config.absent)?;
            }
        }
        _ => row(out, &units, trace.messages)?,
    }
    let full = format_args!("{} full ones", trace.full_addresses);
    row(out, "addresses", full)?;
    if trace.timestamps > 0 {
        row(out, "timestamps", trace.timestamps)?;
    }
    if trace.idle > 0 {
        row(out, "idle", count(trace.idle, "byte"))?;
    }
    let mut title = "damaged";
    for fault in &trace.faults {
        let (size, code, text) = (count(fault.bytes, "byte"), fault.code, fault.text);
        row(out, title, format_args!("{size}: {code}: {text}"))?;
        title = "";
    }
    let mut title = "warnings";
    for warned in &trace.warnings {
        let (count, at, reason) = (warned.count, warned.first.at, warned.first.reason);
        let (code, text) = (reason.code, reason.text);
        let line = format_args!("{count}: {code}: {text}, first at byte {at:#x}");
        row(out, title, line)?;
        title = "";
    }
    Ok(())
}

fn write_records(records: &Records, out: &mut impl Write) -> io::Result<()> {
    if let Some((version, fields)) = &records.control {
        row(out, "version", version)?;
        let others = if records.mixed { ", and others" } else { "" };
        row(out, "control", format_args!("{fields}{others}"))?;
        row(out, "depth", list(&records.depths))?;
        row(out, "hart ids", list(&records.harts))?;
    }
    row(out, "snapshots", records.snapshots)?;
    row(out, "records", records.records)?;
    if records.damaged == 0 {
        return Ok(());
    }
    row(out, "damaged", count(records.damaged, "place"))?;
    for (code, text) in &records.first_damaged {
        row(out, "", format_args!("{code}: {}", clean(text)))?;
    }
    more(records.damaged, records.first_damaged.len(), out)
}

fn write_code(code: &CodeHistory, out: &mut impl Write) -> io::Result<()> {
    row(out, "isa", clean(&code.isa))?;
    let pieces = count(code.pieces, "piece");
    let bytes = count(code.constant_bytes, "byte");
    row(out, "constant", format_args!("{bytes} in {pieces}"))?;
    let versions = count(code.versions, "version");
    let places = count(code.varying, "place");
    row(out, "varying", format_args!("{versions} at {places}"))?;
    if code.contexts > 0 {
        row(out, "contexts", code.contexts)?;
    }
    if code.doubtful > 0 {
        row(out, "in doubt", count(code.doubtful, "version"))?;
    }
    Ok(())
}

fn write_config(config: &Settings, out: &mut impl Write) -> io::Result<()> {
    for line in config.toml.lines() {
        let gap = if line.is_empty() { "" } else { "  " };
        writeln!(out, "{gap}{line}")?;
    }
    writeln!(out)
}

fn write_sidecar(sidecar: &Sidecar, out: &mut impl Write) -> io::Result<()> {
    row(out, "sidecar", clean(&sidecar.file))?;
    if let Some(format) = &sidecar.settings.format {
        row(out, "format", clean(format))?;
    }
    for program in &sidecar.programs {
        let name = clean(&program.file);
        row(out, "program", format_args!("{name}: {}", program.state))?;
    }
    Ok(())
}
