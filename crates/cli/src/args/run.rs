//! The arguments of `hartrace run`.

use super::{Container, System};
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args as ClapArgs, ValueEnum};
use hartrace_capture::memory::MemoryRange;
use hartrace_capture::quantity::parse_count;
use hartrace_capture::records::Every;
use hartrace_capture::records::FORMAT;
use hartrace_capture::trace::Format;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

// Paragraphs have no line ends of their own: they are wrapped for the terminal.
pub(super) const EXAMPLES: &str = "\
The program's output goes to stdout, or to stderr if a log or trace goes to stdout. A summary goes \
to stderr. The run ends when the program writes to `tohost`, exits by semihosting, or jumps to \
itself with no interrupt that could wake it.

Logs:
  pc=FILE           one pc per retired instruction, 16 digits or 8 on RV32
  spike=FILE        as written by `spike --log-commits`
  spike-traps=FILE  the same, with exceptions as reported by `spike -l`
  ingress=FILE      rows of the trace ingress port as CSV, as set in [ingress]
  json=FILE         JSON lines: a header, then one object per step

Traces:
  ntrace=FILE       N-Trace, as set in [ntrace]
  etrace=FILE       E-Trace, as set in [etrace]; data trace with [etrace.data]
  etrace-data=FILE  with etrace=FILE: the data packets in a file of their own
  tandem=FILE       tandem trace, as set in [tandem]
  ctr=FILE          snapshots of control transfer records: the hart's own if its
                    instruction set has them (--isa ..._smctr_ssctr), otherwise
                    those of a recorder set in [ctr]
Each trace has a sidecar FILE.toml with its settings and program.

Examples:
  hartrace run prog.elf
  hartrace run prog.elf --max-insns 10M --log pc=run.pc --log spike=run.log
  hartrace run prog.elf --log json=- | jq .pc
  hartrace run prog.elf --trace ntrace=run.ntrace --check
  hartrace run prog.elf --trace ctr=run.ctr --every 10000
  hartrace run prog.elf --files ro:data -- --fast input.txt
  hartrace run prog.elf --memory 0x20000000:1M --memory 0x80000000:16M
  hartrace run --bios fw_jump.elf --kernel Image --initrd root.cpio --disk d.img

A system reads stdin through its console. If that is a terminal, Ctrl-A X ends the run and \
Ctrl-A Ctrl-A sends Ctrl-A; Ctrl-C goes to the guest.";

/// `hartrace run`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Run {
    /// Bare-metal ELF file to run; `-` is stdin [default: the program of the configuration]
    #[arg(value_name = "PROG")]
    pub(crate) program: Option<PathBuf>,
    /// Arguments for the program; put `--` before them if one starts with a dash
    #[arg(value_name = "ARGS")]
    pub(crate) args: Vec<OsString>,
    /// Write a log; repeatable, `-` is stdout
    #[arg(long, value_name = "KIND=FILE", value_parser = named(LogSpec::parse))]
    pub(crate) log: Vec<LogSpec>,
    /// Write a trace; repeatable, `-` is stdout
    #[arg(long, value_name = "KIND=FILE", value_parser = named(TraceSpec::parse))]
    pub(crate) trace: Vec<TraceSpec>,
    /// With --trace ctr=FILE: take a snapshot every N instructions or cycles, such as 10000 or
    /// 1Mcycles [default: one at the end]
    #[arg(long, alias = "ctr-every", value_name = "N[cycles]", value_parser = every)]
    pub(crate) every: Option<Every>,
    /// Decode each trace while it is written and compare it with the run
    #[arg(long)]
    pub(crate) check: bool,
    /// Start tandem traces with the program image as memory writes
    #[arg(long)]
    pub(crate) load: bool,
    /// With --log pc: also list ecall and ebreak, which trap and do not retire
    #[arg(long)]
    pub(crate) with_trapped: bool,
    /// Stop after N instructions: 1000000, 10M, 1G
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) max_insns: Option<u64>,
    /// Host files the program may open, relative to DIR: none, read-only or read-write
    #[arg(long, value_name = "none|ro:DIR|rw:DIR", value_parser = named(FilesSpec::parse))]
    #[arg(default_value = "none")]
    pub(crate) files: FilesSpec,
    #[command(flatten)]
    pub(crate) container: Container,
    #[command(flatten)]
    pub(crate) system: System,
    #[command(flatten)]
    pub(crate) machine: Machine,
    #[command(flatten)]
    pub(crate) harts: Harts,
}

/// Several harts.
#[derive(Debug, Default, ClapArgs)]
#[command(next_help_heading = "Harts")]
pub(crate) struct Harts {
    /// Number of harts, which take turns [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) harts: Option<u32>,
    /// Cycles in a turn of one of several harts [default: 5000]
    #[arg(long, value_name = "CYCLES", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) quantum: Option<u64>,
    /// Vary the turns of several harts; the same seed gives the same run [default: 0, none vary]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

/// The machine the program runs on.
#[derive(Debug, Default, ClapArgs)]
#[command(next_help_heading = "Machine")]
pub(crate) struct Machine {
    /// Instruction set of the hart, such as rv64gc_zba [default: everything the machine has]
    #[arg(long, value_name = "ISA")]
    pub(crate) isa: Option<String>,
    /// Machine to simulate: virt, or spike for runs that log as Spike does [default: virt]
    #[arg(long, value_name = "virt|spike", hide_possible_values = true)]
    pub(crate) machine: Option<MachineName>,
    /// RAM, such as 0x80000000:256M, instead of the machine's default; repeatable
    #[arg(long, value_name = "BASE:SIZE", value_parser = memory)]
    pub(crate) memory: Vec<MemoryRange>,
    /// Whether misaligned loads and stores work (yes) or trap (no) [default: yes; spike: no]
    #[arg(long, value_name = "yes|no", hide_possible_values = true)]
    pub(crate) misaligned: Option<YesNo>,
    /// Start address or symbol [default: the entry point of the ELF file]
    #[arg(long, value_name = "ADDR|SYMBOL")]
    pub(crate) entry: Option<String>,
    /// Configuration file; repeatable, later files override earlier ones
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,
}

/// Which machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MachineName {
    Virt,
    Spike,
}

/// Yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum YesNo {
    Yes,
    No,
}

/// The logs a run can write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunLog {
    Pc,
    Spike,
    SpikeTraps,
    Ingress,
    Json,
}

const KINDS: &[(&str, RunLog)] = &[
    ("pc", RunLog::Pc),
    ("spike", RunLog::Spike),
    ("spike-traps", RunLog::SpikeTraps),
    ("ingress", RunLog::Ingress),
    ("json", RunLog::Json),
];

/// `KIND=FILE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogSpec {
    pub(crate) kind: RunLog,
    pub(crate) file: PathBuf,
}

impl LogSpec {
    fn parse(text: &OsStr) -> Result<LogSpec, String> {
        let (name, file) = split_name(text, '=');
        let Some((name, kind)) = KINDS.iter().find(|kind| kind.0 == name) else {
            let names: Vec<&str> = KINDS.iter().map(|kind| kind.0).collect();
            let names = names.join(", ");
            return Err(format!(
                "`{name}` is not a kind of log; the kinds are {names}"
            ));
        };
        if file.is_empty() {
            return Err(format!("no file is given: write --log {name}=FILE"));
        }
        Ok(LogSpec {
            kind: *kind,
            file: file.into(),
        })
    }
}

/// `KIND=FILE` of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TraceSpec {
    pub(crate) kind: TraceKind,
    pub(crate) file: PathBuf,
}

/// What a trace file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TraceKind {
    /// A trace of the whole run.
    Stream(Format),
    /// Snapshots of control transfer records.
    Records,
    /// The data packets of an E-Trace.
    Data,
}

/// The kind of a file with the data packets of an E-Trace.
const DATA: &str = "etrace-data";

impl TraceSpec {
    fn parse(text: &OsStr) -> Result<TraceSpec, String> {
        let (name, file) = split_name(text, '=');
        let name = name.as_str();
        let kind = match Format::from_name(name) {
            Some(format) => TraceKind::Stream(format),
            None if name == FORMAT => TraceKind::Records,
            None if name == DATA => TraceKind::Data,
            None => {
                let mut names: Vec<&str> = Format::ALL.iter().map(|f| f.name()).collect();
                names.extend([FORMAT, DATA]);
                let names = names.join(", ");
                return Err(format!(
                    "`{name}` is not a kind of trace; the kinds are {names}"
                ));
            }
        };
        if file.is_empty() {
            return Err(format!("no file is given: write --trace {name}=FILE"));
        }
        let file = PathBuf::from(file);
        Ok(TraceSpec { kind, file })
    }
}

impl Run {
    /// The traces of the whole run.
    pub(crate) fn streams(&self) -> impl Iterator<Item = (Format, &Path)> {
        self.trace.iter().filter_map(|spec| match spec.kind {
            TraceKind::Stream(format) => Some((format, spec.file.as_path())),
            TraceKind::Records | TraceKind::Data => None,
        })
    }

    /// The file for data packets, if they get one of their own.
    pub(crate) fn data(&self) -> impl Iterator<Item = &Path> {
        let data = self
            .trace
            .iter()
            .filter(|spec| spec.kind == TraceKind::Data);
        data.map(|spec| spec.file.as_path())
    }

    /// The files for snapshots of control transfer records.
    pub(crate) fn records(&self) -> impl Iterator<Item = &Path> {
        let records = self
            .trace
            .iter()
            .filter(|spec| spec.kind == TraceKind::Records);
        records.map(|spec| spec.file.as_path())
    }

    /// The files that are written, logs first.
    pub(crate) fn written(&self) -> impl Iterator<Item = &Path> {
        let logs = self.log.iter().map(|log| log.file.as_path());
        logs.chain(self.trace.iter().map(|trace| trace.file.as_path()))
    }
}

/// Whether a file is stdout, where the program's output goes.
pub(crate) fn is_stdout(file: &Path) -> bool {
    let names = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
    names.iter().any(|name| file == Path::new(name))
}

/// Which files of the host a program may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FilesSpec {
    None,
    ReadOnly(PathBuf),
    ReadWrite(PathBuf),
}

impl FilesSpec {
    fn parse(text: &OsStr) -> Result<FilesSpec, String> {
        let (access, folder) = split_name(text, ':');
        match access.as_str() {
            "none" if folder.is_empty() => Ok(FilesSpec::None),
            "ro" if !folder.is_empty() => Ok(FilesSpec::ReadOnly(folder.into())),
            "rw" if !folder.is_empty() => Ok(FilesSpec::ReadWrite(folder.into())),
            _ => Err("write none, ro:DIR or rw:DIR".to_owned()),
        }
    }
}

/// A value that ends with the name of a file, which need not be UTF-8.
pub(super) fn named<T: Clone + Send + Sync + 'static>(
    parse: fn(&OsStr) -> Result<T, String>,
) -> impl TypedValueParser<Value = T> {
    OsStringValueParser::new().try_map(move |text| parse(&text))
}

/// The text before the first `at`, and after it.
pub(super) fn split_name(text: &OsStr, at: char) -> (String, OsString) {
    let bytes = text.as_encoded_bytes();
    let found = bytes.iter().position(|byte| char::from(*byte) == at);
    let (before, after) = bytes.split_at(found.unwrap_or(bytes.len()));
    let name = String::from_utf8_lossy(before).into_owned();
    (name, os_string(after.get(1..).unwrap_or_default()))
}

/// A part of an argument.
fn os_string(bytes: &[u8]) -> OsString {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt as _;
        OsStr::from_bytes(bytes).to_owned()
    }
    #[cfg(not(unix))]
    String::from_utf8_lossy(bytes).into_owned().into()
}

pub(super) fn count(text: &str) -> Result<u64, String> {
    parse_count(text).ok_or_else(|| "write a number such as 1000000, 10M or 0x1000".to_owned())
}

/// `10000`, `10M`, `10000cycles`.
pub(crate) fn every(text: &str) -> Result<Every, String> {
    let problem = || "write a number of at least 1, such as 10000, 1M or 10000cycles".to_owned();
    let (number, cycles) = match text.strip_suffix("cycles") {
        Some(number) => (number.trim_end(), true),
        None => (text, false),
    };
    let number = parse_count(number).filter(|n| *n > 0).ok_or_else(problem)?;
    Ok(match cycles {
        true => Every::Cycles(number),
        false => Every::Instructions(number),
    })
}

fn memory(text: &str) -> Result<MemoryRange, String> {
    let problem = || "write BASE:SIZE, such as 0x80000000:256M".to_owned();
    MemoryRange::parse(text).ok_or_else(problem)
}
