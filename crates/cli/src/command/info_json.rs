//! Facts for other programs: JSON lines, a header first. Addresses are
//! hexadecimal strings, since JSON numbers are exact up to 2^53 only.

use super::info::{Content, Facts, Sidecar};
use super::info_text::{access, hex};
use hartrace_capture::config::Config;
use hartrace_capture::elf_info::ElfInfo;
use hartrace_capture::log_info::LogInfo;
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
    log: Option<Log<'a>>,
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
struct Log<'a> {
    lines: u64,
    pcs: u64,
    commits: u64,
    traps: u64,
    unread: u64,
    first_unread: Option<u64>,
    first_pc: Option<String>,
    last_pc: Option<String>,
    harts: &'a [u32],
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
        config: None,
        sidecar: facts.sidecar.as_ref().map(beside),
    };
    match &facts.content {
        Content::Elf(info) => file.elf = Some(elf(info)),
        Content::Log(info) => file.log = Some(log(info)),
        Content::Config(config) => file.config = Some(settings(config)),
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

fn log(info: &LogInfo) -> Log<'_> {
    Log {
        lines: info.lines,
        pcs: info.pcs,
        commits: info.commits,
        traps: info.traps,
        unread: info.unread,
        first_unread: info.first_unread,
        first_pc: info.first_pc.map(address),
        last_pc: info.last_pc.map(address),
        harts: &info.harts,
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
