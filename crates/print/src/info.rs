//! Facts about files: text, and JSON lines of the schema `hartrace-info`.
//!
//! A [`File`] is a plain value made from the findings of `hartrace-capture`;
//! both forms are written from it.
//!
//! ```
//! use hartrace_capture::detect::Kind;
//! use hartrace_capture::digest::Digest;
//! use hartrace_capture::log::{LogOptions, LogScan};
//! use hartrace_print::info::{self, Content, File};
//!
//! let text = b"core   0: 3 0x80000000 (0x00010117) x2  0x80010000\n";
//! let mut scan = LogScan::new(Kind::SpikeLog, &LogOptions::default()).unwrap();
//! scan.feed(text);
//! let file = File {
//!     path: "run.log".into(),
//!     kind: Kind::SpikeLog,
//!     bytes: text.len() as u64,
//!     sha256: Digest::of(text),
//!     content: Content::Log((&scan.finish()).into()),
//!     sidecar: None,
//! };
//! let mut out = Vec::new();
//! file.write_text(&mut out)?;
//! assert!(String::from_utf8_lossy(&out).contains("  retired     1 instruction\n"));
//! info::write_header(&mut out)?;
//! file.write_json(&mut out)?;
//! # Ok::<(), std::io::Error>(())
//! ```

mod text;

use crate::json::{self, Hex};
use crate::stats::Warning;
use crate::words::{self, count};
use hartrace_capture::code_history::CodeFile;
use hartrace_capture::config::Config;
use hartrace_capture::detect::Kind;
use hartrace_capture::digest::Digest;
use hartrace_capture::elf_info::ElfInfo;
use hartrace_capture::log::LogFacts;
use hartrace_capture::records::RecordSummary;
use hartrace_capture::sidecar::Beside;
use hartrace_capture::survey::{self, Survey};
use hartrace_capture::trace;
use hartrace_isa::Isa;
use serde::{Serialize, Serializer};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub(crate) use text::line_note;

/// A file.
#[derive(Serialize)]
pub struct File {
    /// What it is.
    #[serde(rename = "type", serialize_with = "kind")]
    pub kind: Kind,
    /// Its name.
    #[serde(rename = "file", serialize_with = "name")]
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Its hash.
    #[serde(serialize_with = "digest")]
    pub sha256: Digest,
    /// What is in it.
    #[serde(flatten)]
    pub content: Content,
    /// Its sidecar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sidecar: Option<Sidecar>,
}

fn name<S: Serializer>(path: &Path, out: S) -> Result<S::Ok, S::Error> {
    out.collect_str(&path.display())
}

fn kind<S: Serializer>(kind: &Kind, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(kind.word())
}

fn digest<S: Serializer>(digest: &Digest, out: S) -> Result<S::Ok, S::Error> {
    out.collect_str(digest)
}

impl From<&Survey> for File {
    fn from(survey: &Survey) -> File {
        File {
            path: survey.path.clone(),
            kind: survey.kind,
            bytes: survey.bytes,
            sha256: survey.sha256,
            content: match &survey.content {
                survey::Content::Elf(info) => Content::Elf(info.into()),
                survey::Content::Config(config) => Content::Config((&**config).into()),
                survey::Content::Log(facts) => Content::Log((&**facts).into()),
                survey::Content::Trace(census, settings) => {
                    Content::Trace(Trace::new(census, settings.clone()))
                }
                survey::Content::Records(summary) => Content::Records((&**summary).into()),
                survey::Content::Code(code) => Content::Code((&**code).into()),
            },
            sidecar: survey.sidecar.as_ref().map(Sidecar::from),
        }
    }
}

impl File {
    /// Writes one line of JSON.
    ///
    /// # Errors
    ///
    /// A failing write.
    pub fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        json::line(self, out)
    }

    /// Writes some lines of text.
    ///
    /// # Errors
    ///
    /// A failing write.
    pub fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        text::write(self, out)
    }
}

/// Writes the first line of JSON.
///
/// # Errors
///
/// A failing write.
pub fn write_header(out: &mut impl Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct Header {
        r#type: &'static str,
        schema: &'static str,
        version: u32,
    }
    let header = Header {
        r#type: "header",
        schema: "hartrace-info",
        version: 1,
    };
    json::line(&header, out)
}

/// What is in a file, by kind.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    /// A program.
    Elf(Elf),
    /// A log.
    Log(Log),
    /// A trace.
    Trace(Trace),
    /// Control transfer records.
    Records(Records),
    /// A code history.
    Code(CodeHistory),
    /// A configuration, or a sidecar.
    Config(Settings),
}

/// What an ELF file says about itself.
#[derive(Serialize)]
pub struct Elf {
    bits: u32,
    kind: String,
    entry: Hex,
    isa: Option<String>,
    extensions: Vec<&'static str>,
    abi: String,
    compressed: bool,
    total_store_order: bool,
    segments: Vec<Segment>,
    code: Vec<Section>,
    symbols: u64,
    line_info: bool,
    build_id: Option<String>,
}

#[derive(Serialize)]
struct Segment {
    address: Hex,
    file_size: u64,
    memory_size: u64,
    access: String,
}

#[derive(Serialize)]
struct Section {
    name: String,
    address: Hex,
    size: u64,
}

impl From<&ElfInfo> for Elf {
    fn from(info: &ElfInfo) -> Elf {
        let isa = info.isa.as_deref();
        let known = isa.and_then(|text| Isa::parse_lenient(text).ok());
        let extensions = known.map(|isa| isa.extensions().map(|e| e.name()).collect());
        let access = |rights: [bool; 3]| {
            let letters = ['r', 'w', 'x'].into_iter().zip(rights);
            letters.map(|(c, yes)| if yes { c } else { '-' }).collect()
        };
        let segments = info.segments.iter().map(|segment| Segment {
            address: Hex(segment.address),
            file_size: segment.file_size,
            memory_size: segment.memory_size,
            access: access(segment.access),
        });
        let code = info.code.iter().map(|section| Section {
            name: section.name.clone(),
            address: Hex(section.address),
            size: section.size,
        });
        Elf {
            bits: info.bits,
            kind: info.kind.to_string(),
            entry: Hex(info.entry),
            isa: info.isa.clone(),
            extensions: extensions.unwrap_or_default(),
            abi: info.abi.to_string(),
            compressed: info.abi.compressed(),
            total_store_order: info.abi.total_store_order(),
            segments: segments.collect(),
            code: code.collect(),
            symbols: info.symbols,
            line_info: info.line_info,
            build_id: info.build_id.as_deref().map(words::hex),
        }
    }
}

/// What is in a log.
#[derive(Serialize)]
pub struct Log {
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
    first_pc: Option<Hex>,
    last_pc: Option<Hex>,
    damaged: u64,
    first_damaged: Vec<Damaged>,
    /// Traps of causes that are not among `causes`.
    #[serde(skip)]
    more_traps: u64,
    /// The modes are from the log.
    #[serde(skip)]
    has_modes: bool,
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
    /// All of it, for text.
    #[serde(skip)]
    note: String,
}

impl From<&LogFacts> for Log {
    fn from(facts: &LogFacts) -> Log {
        let summary = &facts.summary;
        let causes = summary.traps.iter().map(|&(why, count)| {
            let (cause, code) = words::cause(why);
            Trap { cause, code, count }
        });
        let signals = summary.signals.iter().map(|&(signal, count)| Signals {
            signal: words::signal(signal),
            count,
        });
        let damaged = facts.damage.first.iter().map(|error| Damaged {
            line: error.line,
            column: error.column,
            message: error.kind.to_string(),
            note: line_note(error),
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
            first_pc: summary.first_pc.map(Hex),
            last_pc: summary.last_pc.map(Hex),
            damaged: facts.damage.lines,
            first_damaged: damaged.collect(),
            more_traps: summary.more_traps,
            has_modes: facts.modes,
        }
    }
}

/// What is in a trace.
#[derive(Serialize)]
pub struct Trace {
    /// Messages, packets or groups that could be read.
    pub messages: u64,
    /// The sources of N-Trace messages.
    pub sources: Vec<u32>,
    /// Messages with a full address.
    pub full_addresses: u64,
    /// Messages with a time.
    pub timestamps: u64,
    /// Bytes between messages.
    pub idle: u64,
    /// Bytes that are no message.
    #[serde(rename = "bad", serialize_with = "bad_bytes")]
    pub faults: Vec<TraceFault>,
    /// What a reader should know of.
    #[serde(serialize_with = "warnings")]
    pub warnings: Vec<trace::Warned>,
    /// The settings of its format, for text.
    #[serde(skip)]
    pub settings: trace::Settings,
}

impl Trace {
    /// What was counted of a trace with these settings.
    #[must_use]
    pub fn new(census: &trace::Census, settings: trace::Settings) -> Trace {
        let faults = census.faults.iter();
        Trace {
            messages: census.all.messages,
            sources: census.sources.iter().map(|s| s.number).collect(),
            full_addresses: census.sources.iter().map(|s| s.syncs).sum(),
            timestamps: census.stamped,
            idle: census.idle,
            faults: faults
                .map(|&(code, text, bad)| TraceFault {
                    code,
                    text,
                    bytes: bad.bytes,
                })
                .collect(),
            warnings: census.warnings.clone(),
            settings,
        }
    }
}

/// Bytes of a trace with the same fault.
pub struct TraceFault {
    /// The code of the fault.
    pub code: &'static str,
    /// What is wrong.
    pub text: &'static str,
    /// How many bytes.
    pub bytes: u64,
}

fn warnings<S: Serializer>(warnings: &[trace::Warned], out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(warnings.iter().map(Warning::new))
}

fn bad_bytes<S: Serializer>(faults: &[TraceFault], out: S) -> Result<S::Ok, S::Error> {
    out.serialize_u64(faults.iter().map(|fault| fault.bytes).sum())
}

/// What is in a file of control transfer records.
#[derive(Serialize)]
pub struct Records {
    specification: Option<&'static str>,
    fields: Vec<&'static str>,
    depths: Vec<u16>,
    harts: Vec<u32>,
    snapshots: u64,
    records: u64,
    damaged: u64,
    /// Others have another version or other fields.
    #[serde(skip)]
    mixed: bool,
    /// The version and the fields, for text.
    #[serde(skip)]
    control: Option<(String, String)>,
    /// Codes and descriptions of the first errors.
    #[serde(skip)]
    first_damaged: Vec<(&'static str, String)>,
}

impl From<&RecordSummary> for Records {
    fn from(summary: &RecordSummary) -> Records {
        let first = summary.first;
        let fields = first.map(|(version, fields)| fields.names(version));
        let errors = summary.first_errors.iter();
        Records {
            specification: first.map(|(version, _)| version.name()),
            fields: fields.into_iter().flatten().collect(),
            depths: summary.depths.iter().copied().collect(),
            harts: summary.harts.iter().map(|hart| hart.0).collect(),
            snapshots: summary.snapshots,
            records: summary.records,
            damaged: summary.errors,
            mixed: summary.mixed,
            control: first.map(|(version, fields)| (version.to_string(), fields.to_string())),
            first_damaged: errors
                .map(|e| (e.problem.fault.code(), e.to_string()))
                .collect(),
        }
    }
}

/// What is in a code history.
#[derive(Serialize)]
pub struct CodeHistory {
    isa: String,
    /// Stretches of code that is always the same, and their bytes.
    pieces: u64,
    constant_bytes: u64,
    /// Places where the code changed, and how often.
    varying: u64,
    versions: u64,
    /// Versions that may have been others.
    doubtful: u64,
    /// Contexts with versions of their own.
    contexts: u64,
    /// Synchronisation messages from which versions count.
    messages: u64,
}

impl From<&CodeFile> for CodeHistory {
    fn from(file: &CodeFile) -> CodeHistory {
        let history = &file.history;
        let bytes = history.pieces.iter().map(|piece| piece.bytes.len() as u64);
        let versions = || history.varying.iter().flat_map(|code| &code.versions);
        let contexts: BTreeSet<_> = versions().filter_map(|version| version.context).collect();
        CodeHistory {
            isa: file.isa.to_string(),
            pieces: history.pieces.len() as u64,
            constant_bytes: bytes.sum(),
            varying: history.varying.len() as u64,
            versions: versions().count() as u64,
            doubtful: versions().filter(|version| version.doubtful).count() as u64,
            contexts: contexts.len() as u64,
            messages: history.syncs.len() as u64,
        }
    }
}

/// A code history that was made, in a line, and the bytes of its file.
#[must_use]
pub fn made(file: &CodeFile, bytes: u64) -> String {
    let code = CodeHistory::from(file);
    let constant = count(code.constant_bytes, "byte");
    let mut text = format!("code history: {constant} of constant code");
    if code.varying > 0 {
        let versions = count(code.versions, "version");
        let places = count(code.varying, "place");
        text += &format!(", {versions} at {places}");
    }
    if code.doubtful > 0 {
        text += &format!(", {} of them in doubt", code.doubtful);
    }
    text + &format!("; {}", count(bytes, "byte"))
}

/// The settings in a configuration.
#[derive(Serialize)]
pub struct Settings {
    format: Option<String>,
    version: Option<String>,
    isa: Option<String>,
    elf: Vec<String>,
    raw: Vec<String>,
    /// All of them.
    #[serde(skip)]
    toml: String,
}

impl From<&Config> for Settings {
    fn from(config: &Config) -> Settings {
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
            elf: elf.map(|f| f.file.display().to_string()).collect(),
            raw: raw.map(|f| f.file.display().to_string()).collect(),
            toml: config.to_toml(false),
        }
    }
}

/// The sidecar of a file.
#[derive(Serialize)]
pub struct Sidecar {
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

impl From<&Beside> for Sidecar {
    fn from(beside: &Beside) -> Sidecar {
        let programs = beside.programs.iter().map(|(elf, state)| Program {
            file: elf.file.display().to_string(),
            state: state.name(),
        });
        Sidecar {
            file: beside.path.display().to_string(),
            settings: (&beside.config).into(),
            programs: programs.collect(),
        }
    }
}
