//! `hartrace run`, as it is typed.

use super::Container;
use clap::{Args as ClapArgs, ValueEnum};
use hartrace_capture::memory::MemoryRange;
use hartrace_capture::quantity::parse_count;
use hartrace_capture::records::Every;
use hartrace_capture::records::FORMAT;
use hartrace_capture::trace::Format;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

// Paragraphs have no line ends of their own: they are wrapped for the terminal.
pub(super) const EXAMPLES: &str = "\
The program's own output goes to stdout, or to stderr if a log goes to stdout; a summary goes to \
stderr. It ends by writing to `tohost` or by semihosting; a hart that jumps to itself and nothing \
can wake has ended too.

Logs:
  pc=FILE           one pc per retired instruction, 16 digits or 8 on RV32
  spike=FILE        as `spike --log-commits` writes it
  spike-traps=FILE  the same with the exceptions that `spike -l` tells
  ingress=FILE      rows of the trace ingress port as CSV, by [ingress]
  json=FILE         JSON lines: a header, then one object per step

Traces:
  ntrace=FILE       N-Trace, by [ntrace], with a sidecar FILE.toml
  etrace=FILE       E-Trace, by [etrace], with a sidecar FILE.toml
  tandem=FILE       tandem trace, by [tandem], with a sidecar FILE.toml
  ctr=FILE          snapshots of control transfer records, with a sidecar
                    FILE.toml: the hart's own if its instruction set has them
                    (--isa ..._smctr_ssctr), and otherwise by [ctr]

Examples:
  hartrace run prog.elf
  hartrace run prog.elf --max-insns 10M --log pc=run.pc --log spike=run.log
  hartrace run prog.elf --log json=- | jq .pc
  hartrace run prog.elf --trace ntrace=run.ntrace --check
  hartrace run prog.elf --trace ctr=run.ctr --ctr-every 10000
  hartrace run prog.elf --files ro:data -- --fast input.txt
  hartrace run prog.elf --memory 0x20000000:1M --memory 0x80000000:16M";

/// `hartrace run`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Run {
    /// The program, a bare-metal ELF file; `-` is stdin [default: that of the configuration]
    #[arg(value_name = "PROG")]
    pub(crate) program: Option<PathBuf>,
    /// Arguments for the program; after `--` if one begins with a dash
    #[arg(value_name = "ARGS")]
    pub(crate) args: Vec<OsString>,
    /// Also write a log; repeatable, `-` is stdout
    #[arg(long, value_name = "KIND=FILE", value_parser = LogSpec::parse)]
    pub(crate) log: Vec<LogSpec>,
    /// Also write a trace; repeatable, `-` is stdout
    #[arg(long, value_name = "KIND=FILE", value_parser = TraceSpec::parse)]
    pub(crate) trace: Vec<TraceSpec>,
    /// Take a snapshot for --trace ctr=FILE after so many instructions, or cycles: 10000,
    /// 1Mcycles [default: one at the end]
    #[arg(long, value_name = "N[cycles]", value_parser = every)]
    pub(crate) ctr_every: Option<Every>,
    /// Decode the traces at once, and compare
    #[arg(long)]
    pub(crate) check: bool,
    /// Tandem traces begin with the program as it is loaded into memory
    #[arg(long)]
    pub(crate) load: bool,
    #[command(flatten)]
    pub(crate) container: Container,
    /// With --log pc: also list ecall and ebreak, which do not retire
    #[arg(long)]
    pub(crate) with_trapped: bool,
    /// End after so many instructions: 1000000, 10M, 1G
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) max_insns: Option<u64>,
    /// Which files the program may use, named relative to DIR
    #[arg(long, value_name = "none|ro:DIR|rw:DIR", value_parser = FilesSpec::parse)]
    #[arg(default_value = "none")]
    pub(crate) files: FilesSpec,
    #[command(flatten)]
    pub(crate) machine: Machine,
}

/// What the program runs on.
#[derive(Debug, Default, ClapArgs)]
#[command(next_help_heading = "Machine")]
pub(crate) struct Machine {
    /// Instruction set of the hart, such as rv64gc_zba [default: all that the machine has]
    #[arg(long, value_name = "ISA")]
    pub(crate) isa: Option<String>,
    /// The machine: our own, or Spike's as far as its log can tell [default: virt]
    #[arg(long, value_name = "virt|spike", hide_possible_values = true)]
    pub(crate) machine: Option<MachineName>,
    /// RAM, such as 0x80000000:256M; repeatable, in place of the machine's own
    #[arg(long, value_name = "BASE:SIZE", value_parser = memory)]
    pub(crate) memory: Vec<MemoryRange>,
    /// Whether misaligned loads and stores are done or trap [default: yes; Spike's traps]
    #[arg(long, value_name = "yes|no", hide_possible_values = true)]
    pub(crate) misaligned: Option<YesNo>,
    /// Where to start: an address or a symbol [default: what the ELF file says]
    #[arg(long, value_name = "ADDR|SYMBOL")]
    pub(crate) entry: Option<String>,
    /// Configuration file; repeatable, later ones win
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

/// What a run can write down.
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
    fn parse(text: &str) -> Result<LogSpec, String> {
        let (name, file) = text.split_once('=').unwrap_or((text, ""));
        let Some((name, kind)) = KINDS.iter().find(|kind| kind.0 == name) else {
            let names: Vec<&str> = KINDS.iter().map(|kind| kind.0).collect();
            let names = names.join(", ");
            return Err(format!(
                "no kind of log is called `{name}`; there are {names}"
            ));
        };
        if file.is_empty() {
            return Err(format!("the file is missing: write --log {name}=FILE"));
        }
        Ok(LogSpec {
            kind: *kind,
            file: PathBuf::from(file),
        })
    }
}

/// `KIND=FILE` of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TraceSpec {
    pub(crate) kind: TraceKind,
    pub(crate) file: PathBuf,
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TraceKind {
    /// A trace of everything that is done.
    Stream(Format),
    /// Snapshots of control transfer records.
    Records,
}

impl TraceSpec {
    fn parse(text: &str) -> Result<TraceSpec, String> {
        let (name, file) = text.split_once('=').unwrap_or((text, ""));
        let kind = match Format::from_name(name) {
            Some(format) => TraceKind::Stream(format),
            None if name == FORMAT => TraceKind::Records,
            None => {
                let mut names: Vec<&str> = Format::ALL.iter().map(|f| f.name()).collect();
                names.push(FORMAT);
                let names = names.join(", ");
                return Err(format!(
                    "no kind of trace is called `{name}`; there are {names}"
                ));
            }
        };
        if file.is_empty() {
            return Err(format!("the file is missing: write --trace {name}=FILE"));
        }
        let file = PathBuf::from(file);
        Ok(TraceSpec { kind, file })
    }
}

impl Run {
    /// The traces of everything that is done.
    pub(crate) fn streams(&self) -> impl Iterator<Item = (Format, &Path)> {
        self.trace.iter().filter_map(|spec| match spec.kind {
            TraceKind::Stream(format) => Some((format, spec.file.as_path())),
            TraceKind::Records => None,
        })
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

/// Whether a file goes where the program's output would go.
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
    fn parse(text: &str) -> Result<FilesSpec, String> {
        match text.split_once(':') {
            None if text == "none" => Ok(FilesSpec::None),
            Some(("ro", folder)) if !folder.is_empty() => Ok(FilesSpec::ReadOnly(folder.into())),
            Some(("rw", folder)) if !folder.is_empty() => Ok(FilesSpec::ReadWrite(folder.into())),
            _ => Err("write none, ro:DIR or rw:DIR".to_owned()),
        }
    }
}

pub(super) fn count(text: &str) -> Result<u64, String> {
    parse_count(text).ok_or_else(|| "write a number such as 1000000, 10M or 0x1000".to_owned())
}

/// `10000`, `10M`, `10000cycles`.
pub(crate) fn every(text: &str) -> Result<Every, String> {
    let problem = || "write a number from 1 on, such as 10000, 1M or 10000cycles".to_owned();
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
