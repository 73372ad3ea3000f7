//! Facts for people.

use super::info::{Content, Facts, LogFacts, Sidecar, TraceFacts};
use super::log_json::{cause, signal_word};
use crate::diagnostic::count;
use crate::logs::line_note;
use hartrace_capture::config::Config;
use hartrace_capture::detect::Kind;
use hartrace_capture::elf_info::{ElfInfo, Segment};
use hartrace_capture::input::is_stdin;
use hartrace_capture::records::RecordSummary;
use hartrace_capture::trace::Settings;
use hartrace_flow::Cause;
use hartrace_isa::Isa;
use hartrace_ntrace::TraceMode;
use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

/// Writes the facts of one file.
pub(super) fn write(facts: &Facts, out: &mut impl Write) -> io::Result<()> {
    let name = if is_stdin(&facts.path) {
        "standard input".to_owned()
    } else {
        shown(&facts.path)
    };
    writeln!(out, "{name}: {}", facts.kind)?;
    row(out, "size", count(facts.bytes, "byte"))?;
    match &facts.content {
        Content::Elf(elf) => write_elf(elf, out)?,
        Content::Log(log) => write_log(facts.kind, log, out)?,
        Content::Config(config) => write_config(config, out)?,
        Content::Trace(trace) => write_trace(trace, out)?,
        Content::Records(records) => write_records(records, out)?,
    }
    if let Some(sidecar) = &facts.sidecar {
        write_sidecar(sidecar, out)?;
    }
    row(out, "sha256", facts.sha256)
}

fn row(out: &mut impl Write, name: &str, value: impl Display) -> io::Result<()> {
    writeln!(out, "  {name:<11} {value}")
}

/// A name from outside may hold anything.
fn shown(path: &Path) -> String {
    clean(&path.display().to_string())
}

fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

fn write_elf(elf: &ElfInfo, out: &mut impl Write) -> io::Result<()> {
    row(
        out,
        "class",
        format_args!("{}-bit RISC-V, little-endian", elf.bits),
    )?;
    row(out, "type", elf.kind)?;
    row(out, "entry", format_args!("{:#x}", elf.entry))?;
    match &elf.isa {
        None => row(out, "isa", "not given")?,
        Some(text) => {
            row(out, "isa", clean(text))?;
            if let Ok(isa) = Isa::parse_lenient(text) {
                let names: Vec<&str> = isa.extensions().map(|e| e.name()).collect();
                row(out, "extensions", names.join(" "))?;
            }
        }
    }
    let compressed = if elf.abi.compressed() {
        ", compressed"
    } else {
        ""
    };
    let tso = if elf.abi.total_store_order() {
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
        let (start, name) = (section.address, clean(&section.name));
        let end = start.saturating_add(section.size);
        row(out, title, format_args!("{start:#x}..{end:#x} {name}"))?;
        title = "";
    }
    row(out, "symbols", elf.symbols)?;
    row(out, "line info", if elf.line_info { "yes" } else { "no" })?;
    if let Some(id) = &elf.build_id {
        row(out, "build id", hex(id))?;
    }
    Ok(())
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

pub(super) fn access(segment: &Segment) -> String {
    let letters = ['r', 'w', 'x'].into_iter().zip(segment.access);
    letters.map(|(c, yes)| if yes { c } else { '-' }).collect()
}

fn segment_text(segment: &Segment) -> String {
    let (start, size) = (segment.address, segment.memory_size);
    let end = start.saturating_add(size);
    let access = access(segment);
    let from = if segment.file_size == size {
        String::new()
    } else {
        format!(", {} of them in the file", segment.file_size)
    };
    let size = count(size, "byte");
    format!("{start:#x}..{end:#x} {access} {size}{from}")
}

fn write_log(kind: Kind, log: &LogFacts, out: &mut impl Write) -> io::Result<()> {
    let summary = &log.summary;
    row(out, "lines", log.lines)?;
    if log.steps {
        let harts: Vec<String> = summary.harts.iter().map(|h| h.0.to_string()).collect();
        row(out, "hart ids", harts.join(" "))?;
        row(out, "retired", count(summary.instructions, "instruction"))?;
    } else if kind == Kind::IngressCsv {
        row(out, "blocks", summary.rows)?;
    } else {
        row(out, "pcs", summary.rows)?;
    }
    if log.steps || kind == Kind::IngressCsv {
        write_traps(log, out)?;
    }
    if let (Some(first), Some(last)) = (summary.first_pc, summary.last_pc) {
        row(out, "first pc", format_args!("{first:#x}"))?;
        row(out, "last pc", format_args!("{last:#x}"))?;
    }
    if log.damage.lines == 0 {
        return Ok(());
    }
    row(out, "damaged", count(log.damage.lines, "line"))?;
    for error in &log.damage.first {
        row(out, "", line_note(error))?;
    }
    match log.damage.more() {
        0 => Ok(()),
        more => row(out, "", format_args!("and {more} more")),
    }
}

fn write_traps(log: &LogFacts, out: &mut impl Write) -> io::Result<()> {
    let summary = &log.summary;
    row(out, "traps", summary.all_traps())?;
    for &(why, count) in &summary.traps {
        row(out, "", format_args!("{} {count}", trap_text(why)))?;
    }
    if summary.more_traps > 0 {
        row(
            out,
            "",
            format_args!("other causes: {}", summary.more_traps),
        )?;
    }
    let mut title = "signals";
    for &(signal, count) in &summary.signals {
        row(out, title, format_args!("{}: {count}", signal_word(signal)))?;
        title = "";
    }
    if log.modes {
        let modes: Vec<&str> = summary.modes().map(|m| m.name()).collect();
        row(out, "modes", modes.join(" "))?;
    }
    Ok(())
}

fn trap_text(why: Cause) -> String {
    match cause(why) {
        (word, Some(code)) => format!("{word} {code}:"),
        ("unknown", _) => "of unknown cause:".to_owned(),
        (word, None) => format!("{word}:"),
    }
}

fn write_trace(trace: &TraceFacts, out: &mut impl Write) -> io::Result<()> {
    let (census, settings) = (&trace.census, &trace.settings);
    row(out, "version", settings.version())?;
    match settings {
        Settings::Ntrace(config) => {
            let mode = match config.mode {
                TraceMode::Htm => "branch history",
                TraceMode::Btm => "branch trace",
            };
            row(out, "mode", mode)?;
            row(out, "messages", census.all.messages)?;
            let sources: Vec<String> = census
                .sources
                .iter()
                .map(|s| s.number.to_string())
                .collect();
            row(out, "sources", sources.join(" "))?;
        }
        Settings::Etrace(_) => row(out, "packets", census.all.messages)?,
        Settings::Tandem(config) => {
            let (xlen, flen, mlen) = (config.xlen.bits(), config.flen.bits(), config.mlen.bits());
            let widths = format_args!("XLEN {xlen}, FLEN {flen}, MLEN {mlen}");
            row(out, "widths", widths)?;
            row(out, "groups", census.all.messages)?;
            if !config.absent.is_empty() {
                row(out, "absent", &config.absent)?;
            }
        }
    }
    let syncs: u64 = census.sources.iter().map(|s| s.syncs).sum();
    row(out, "addresses", format_args!("{syncs} full ones"))?;
    if census.stamped > 0 {
        row(out, "timestamps", census.stamped)?;
    }
    if census.idle > 0 {
        row(out, "idle", count(census.idle, "byte"))?;
    }
    let mut title = "damaged";
    for (code, text, bad) in &census.faults {
        let size = count(bad.bytes, "byte");
        row(out, title, format_args!("{size}: {code}: {text}"))?;
        title = "";
    }
    Ok(())
}

fn write_records(records: &RecordSummary, out: &mut impl Write) -> io::Result<()> {
    fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
        let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
        items.join(" ")
    }
    if let Some((version, fields)) = records.first {
        row(out, "version", version)?;
        let others = if records.mixed { ", and others" } else { "" };
        row(out, "control", format_args!("{fields}{others}"))?;
        row(out, "depth", list(&records.depths))?;
        row(out, "hart ids", list(records.harts.iter().map(|h| h.0)))?;
    }
    row(out, "snapshots", records.snapshots)?;
    row(out, "records", records.records)?;
    if records.errors == 0 {
        return Ok(());
    }
    row(out, "damaged", count(records.errors, "place"))?;
    for error in &records.first_errors {
        let code = error.problem.fault.code();
        row(
            out,
            "",
            format_args!("{code}: {}", clean(&error.to_string())),
        )?;
    }
    match records.more_errors() {
        0 => Ok(()),
        more => row(out, "", format_args!("and {more} more")),
    }
}

fn write_config(config: &Config, out: &mut impl Write) -> io::Result<()> {
    for line in config.to_toml(false).lines() {
        let gap = if line.is_empty() { "" } else { "  " };
        writeln!(out, "{gap}{line}")?;
    }
    writeln!(out)
}

fn write_sidecar(sidecar: &Sidecar, out: &mut impl Write) -> io::Result<()> {
    row(out, "sidecar", shown(&sidecar.path))?;
    if let Some(trace) = &sidecar.config.trace {
        row(out, "format", clean(&trace.format.value))?;
    }
    for (elf, state) in &sidecar.programs {
        let name = shown(&elf.file);
        row(out, "program", format_args!("{name}: {}", state.word()))?;
    }
    Ok(())
}
