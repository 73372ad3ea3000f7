//! Facts for other programs: JSON lines, a header first. Addresses are
//! hexadecimal strings, since JSON numbers are exact up to 2^53 only.

use super::info::{Content, Facts, LogFacts, Sidecar, TraceFacts};
use super::info_text::{access, hex};
use super::log_json::{cause, signal_word};
use hartrace_capture::config::Config;
use hartrace_capture::elf_info::ElfInfo;
use hartrace_capture::records::RecordSummary;
use hartrace_isa::Isa;
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;

#[derive(Serialize)]
struct Header {
    r#type: &'static str,
    schema: &'static str,
    version: u32,
}

#[derive(Serialize)]
struct File<'a> {
    r#type: &'static str,
    file: String,
    bytes: u64,
    sha256: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    elf: Option<Elf<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log: Option<Log>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<Trace>,
    #[serde(skip_serializing_if = "Option::is_none")]
    records: Option<Records>,
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<Settings>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sidecar: Option<Beside>,
}

#[derive(Serialize)]
struct Elf<'a> {
    bits: u32,
    kind: String,
    entry: String,
    isa: Option<&'a str>,
    extensions: Vec<&'static str>,
    abi: String,
    compressed: bool,
    total_store_order: bool,
    segments: Vec<Segment>,
    code: Vec<Section<'a>>,
    symbols: u64,
    line_info: bool,
    build_id: Option<String>,
}

#[derive(Serialize)]
struct Segment {
    address: String,
    file_size: u64,
    memory_size: u64,
    access: String,
}

#[derive(Serialize)]
struct Section<'a> {
    name: &'a str,
    address: String,
    size: u64,
}

#[derive(Serialize)]
struct Log {
    lines: u64,
    /// Without the program a list of pcs has no instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<u64>,
    /// Pcs or blocks, then.
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<u64>,
    traps: u64,
    causes: Vec<Trap>,
    signals: Vec<Signals>,
    harts: Vec<u32>,
    modes: Vec<&'static str>,
    first_pc: Option<String>,
    last_pc: Option<String>,
    damaged: u64,
    first_damaged: Vec<Damaged>,
}

#[derive(Serialize)]
struct Trace {
    messages: u64,
    sources: Vec<u32>,
    full_addresses: u64,
    timestamps: u64,
    idle: u64,
    bad: u64,
}

#[derive(Serialize)]
struct Records {
    specification: Option<&'static str>,
    fields: Vec<&'static str>,
    depths: Vec<u16>,
    harts: Vec<u32>,
    snapshots: u64,
    records: u64,
    damaged: u64,
}

#[derive(Serialize)]
struct Trap {
    cause: &'static str,
    code: Option<u32>,
    count: u64,
}

#[derive(Serialize)]
struct Signals {
    signal: &'static str,
    count: u64,
}

#[derive(Serialize)]
struct Damaged {
    line: u64,
    column: u32,
    message: String,
}

#[derive(Serialize)]
struct Settings {
    format: Option<String>,
    version: Option<String>,
    isa: Option<String>,
    elf: Vec<String>,
    raw: Vec<String>,
}

#[derive(Serialize)]
struct Beside {
    file: String,
    #[serde(flatten)]
    settings: Settings,
    programs: Vec<Program>,
}

#[derive(Serialize)]
struct Program {
    file: String,
    state: &'static str,
}

/// Writes the first line.
pub(super) fn header(out: &mut impl Write) -> io::Result<()> {
    let header = Header {
        r#type: "header",
        schema: "hartrace-info",
        version: 1,
    };
    line(&header, out)
}

/// Writes the line of one file.
pub(super) fn write(facts: &Facts, out: &mut impl Write) -> io::Result<()> {
    let mut file = File {
        r#type: facts.kind.word(),
        file: text(&facts.path),
        bytes: facts.bytes,
        sha256: facts.sha256.to_string(),
        elf: None,
        log: None,
        trace: None,
        records: None,
        config: None,
        sidecar: facts.sidecar.as_ref().map(beside),
    };
    match &facts.content {
        Content::Elf(info) => file.elf = Some(elf(info)),
        Content::Log(info) => file.log = Some(log(info)),
        Content::Config(config) => file.config = Some(settings(config)),
        Content::Trace(facts) => file.trace = Some(trace(facts)),
        Content::Records(summary) => file.records = Some(records(summary)),
    }
    line(&file, out)
}

fn line(value: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    writeln!(out)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn address(value: u64) -> String {
    format!("{value:#x}")
}

fn elf(info: &ElfInfo) -> Elf<'_> {
    let isa = info.isa.as_deref();
    let known = isa.and_then(|text| Isa::parse_lenient(text).ok());
    let extensions = known.map(|isa| isa.extensions().map(|e| e.name()).collect());
    let segments = info.segments.iter().map(|segment| Segment {
        address: address(segment.address),
        file_size: segment.file_size,
        memory_size: segment.memory_size,
        access: access(segment),
    });
    let code = info.code.iter().map(|section| Section {
        name: &section.name,
        address: address(section.address),
        size: section.size,
    });
    Elf {
        bits: info.bits,
        kind: info.kind.to_string(),
        entry: address(info.entry),
        isa,
        extensions: extensions.unwrap_or_default(),
        abi: info.abi.to_string(),
        compressed: info.abi.compressed(),
        total_store_order: info.abi.total_store_order(),
        segments: segments.collect(),
        code: code.collect(),
        symbols: info.symbols,
        line_info: info.line_info,
        build_id: info.build_id.as_deref().map(hex),
    }
}

fn log(facts: &LogFacts) -> Log {
    let summary = &facts.summary;
    let causes = summary.traps.iter().map(|&(why, count)| {
        let (cause, code) = cause(why);
        Trap { cause, code, count }
    });
    let signals = summary.signals.iter().map(|&(signal, count)| Signals {
        signal: signal_word(signal),
        count,
    });
    let damaged = facts.damage.first.iter().map(|error| Damaged {
        line: error.line,
        column: error.column,
        message: error.kind.to_string(),
    });
    let modes = summary.modes().filter(|_| facts.modes);
    Log {
        lines: facts.lines,
        instructions: facts.steps.then_some(summary.instructions),
        rows: (!facts.steps).then_some(summary.rows),
        traps: summary.all_traps(),
        causes: causes.collect(),
        signals: signals.collect(),
        harts: summary.harts.iter().map(|h| h.0).collect(),
        modes: modes.map(|m| m.name()).collect(),
        first_pc: summary.first_pc.map(address),
        last_pc: summary.last_pc.map(address),
        damaged: facts.damage.lines,
        first_damaged: damaged.collect(),
    }
}

fn trace(facts: &TraceFacts) -> Trace {
    let census = &facts.census;
    Trace {
        messages: census.all.messages,
        sources: census.sources.iter().map(|s| s.number).collect(),
        full_addresses: census.sources.iter().map(|s| s.syncs).sum(),
        timestamps: census.stamped,
        idle: census.idle,
        bad: census.faults.iter().map(|f| f.2.bytes).sum(),
    }
}

fn records(summary: &RecordSummary) -> Records {
    let fields = summary.first.map(|(version, fields)| fields.names(version));
    Records {
        specification: summary.first.map(|(version, _)| version.name()),
        fields: fields.into_iter().flatten().collect(),
        depths: summary.depths.iter().copied().collect(),
        harts: summary.harts.iter().map(|hart| hart.0).collect(),
        snapshots: summary.snapshots,
        records: summary.records,
        damaged: summary.errors,
    }
}

fn settings(config: &Config) -> Settings {
    let program = &config.program;
    let elf = program.elf.iter().flat_map(|s| &s.value);
    let raw = program.raw.iter().flat_map(|s| &s.value);
    let trace = config.trace.as_ref();
    Settings {
        format: trace.map(|t| t.format.value.clone()),
        version: trace
            .and_then(|t| t.version.as_ref())
            .map(|v| v.value.clone()),
        isa: program.isa.as_ref().map(|s| s.value.clone()),
        elf: elf.map(|f| text(&f.file)).collect(),
        raw: raw.map(|f| text(&f.file)).collect(),
    }
}

fn beside(sidecar: &Sidecar) -> Beside {
    let programs = sidecar.programs.iter().map(|(elf, state)| Program {
        file: text(&elf.file),
        state: state.word(),
    });
    Beside {
        file: text(&sidecar.path),
        settings: settings(&sidecar.config),
        programs: programs.collect(),
    }
}
