//! The arguments of the commands that write and read traces.

use super::views::{Sources, Traced};
use super::{ModeName, Output, Program};
use clap::{Args as ClapArgs, ValueEnum};
use hartrace_capture::config::EtraceEncapsulation;
use hartrace_capture::trace::{CoreSight, Format, Order, Pib, PibWidth, RamError, RamSink};
use std::path::PathBuf;

// Paragraphs have no line ends of their own: they are wrapped for the terminal.
pub(super) const ENCODE_EXAMPLES: &str = "\
The encoder is configured in section [ntrace], [etrace] or [tandem] of a configuration file; \
configs/ has examples. The settings and the program are recorded in a sidecar, FILE.toml, which \
the other commands read. A tandem trace needs the register and memory writes of each instruction: \
a log of `spike -l --log-commits`.

Examples:
  hartrace encode run.pc -e prog.elf --to ntrace -o run.ntrace
  hartrace encode spike.log -e prog.elf --to ntrace -c btm.toml -o run.ntrace --check
  hartrace encode rows.csv -e prog.elf --to etrace -o run.etrace
  hartrace encode spike.log -e prog.elf --to tandem --load -o run.tandem";

pub(super) const DUMP_EXAMPLES: &str = "\
Each line shows one message or packet: its offset, name and fields and, after an arrow, the full \
address. With --bytes, each line shows one byte and the fields that end in it. For a tandem trace, \
each line shows one group: its offset, number, the address of the instruction and its items; with \
--bytes, one field.

Examples:
  hartrace dump run.ntrace
  hartrace dump run.ntrace --bytes | head
  hartrace dump run.ntrace -f json | jq .name
  hartrace dump run.te_inst_raw -f csv -o run.te_inst
  hartrace dump run.tandem | grep mcause=";

pub(super) const DECODE_EXAMPLES: &str = "\
Settings come from the sidecar of the trace or from section [ntrace], [etrace] or [tandem] of a \
configuration file. A tandem trace contains the instructions and needs no program. Parts that \
cannot be decoded are reported as gaps, with a code that `hartrace explain` describes. Logs of \
simulators and cores are listed in the same way.

POINT is the number of an instruction (from 0), time=N, an address (0x80000010), a symbol \
(main, main+0x10), or trap, exception[=CODE], interrupt[=CODE], gap or doubt. #N after it means \
the N-th time. Text is indented by calls, has colours on a terminal, and is shown by $PAGER or \
less. See docs/views.md.

Examples:
  hartrace decode run.ntrace -e prog.elf
  hartrace decode run.ntrace -e prog.elf -f source --source-dir src
  hartrace decode run.ntrace -e prog.elf --from main --until exit
  hartrace decode run.ntrace -e prog.elf --around trap#2 --context 30
  hartrace decode run.ntrace -e prog.elf --find malloc --context 1
  hartrace decode run.ntrace -e prog.elf -f pc | cmp - run.pc
  hartrace decode part.ntrace -e prog.elf -c htm.toml -f json | jq .type
  hartrace decode spike.log -e prog.elf --around trap";

pub(super) const STATS_EXAMPLES: &str = "\
If the program is known, from -e or the sidecar, the trace is also decoded, to count instructions \
and gaps.

Examples:
  hartrace stats run.ntrace
  hartrace stats run.ntrace -e prog.elf -f json";

pub(super) const CONVERT_EXAMPLES: &str = "\
The trace is decoded and encoded again. The sidecar of the input says how to read it; the \
configuration says how to write the output and, without a sidecar, how to read the input. A gap \
becomes a loss in the new trace. A tandem trace converted from another format is partial. \
Converting a tandem trace to tandem keeps its groups and moves them into or out of a container; \
out of a container with several harts, each hart gets a file: FILE.0 and so on. With \
--encapsulation, the packets of an E-Trace are kept: only what is around them changes.

Examples:
  hartrace convert run.ntrace --to etrace -o run.etrace --check
  hartrace convert run.te_inst_raw -e prog.elf -c itype3-basic.toml --to ntrace -o run.ntrace
  hartrace convert run.etrace --to etrace --encapsulation smi -o run.smi
  hartrace convert run.tandem --to tandem --container --compress -o run.tpc";

/// `hartrace encode`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Encode {
    /// Log of a simulator or core, pc list or ingress CSV; `-` is stdin
    #[arg(value_name = "INPUT")]
    pub(crate) input: PathBuf,
    /// Trace format
    #[arg(long, value_name = "KIND")]
    pub(crate) to: TraceKind,
    /// Decode the trace while it is written and compare it with the log
    #[arg(long)]
    pub(crate) check: bool,
    /// Start a tandem trace with the program image as memory writes
    #[arg(long)]
    pub(crate) load: bool,
    /// Privilege mode for logs that do not record it, such as pc lists [default: m]
    #[arg(long, value_name = "u|s|m", hide_possible_values = true)]
    pub(crate) mode: Option<ModeName>,
    /// Only this hart; several harts need src_bits in `[ntrace]`, or a container
    #[arg(long, value_name = "N")]
    pub(crate) hart: Option<u32>,
    /// Fail if the log has unreadable lines or does not match the program
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) container: Container,
    #[command(flatten)]
    pub(crate) program: Program,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `hartrace dump`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Dump {
    /// The trace; `-` is stdin
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: DumpFormat,
    /// Print one line per byte (tandem traces: per field) instead of one per message
    #[arg(long)]
    pub(crate) bytes: bool,
    #[command(flatten)]
    pub(crate) transport: Transport,
    #[command(flatten)]
    pub(crate) program: Program,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `hartrace decode`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Decode {
    /// The trace or log; `-` is stdin
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: DecodeFormat,
    /// With -f pc: also list ecall and ebreak, which trap and do not retire
    #[arg(long)]
    pub(crate) with_trapped: bool,
    /// On a terminal, print the text without a pager
    #[arg(long)]
    pub(crate) no_pager: bool,
    #[command(flatten)]
    pub(crate) sources: Sources,
    /// Data packets of an E-Trace that are in a file of their own (run --trace etrace-data=FILE)
    #[arg(long, value_name = "FILE")]
    pub(crate) data: Option<PathBuf>,
    /// With -f pc or json: number of decoding threads [default: the number of cores]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    #[command(flatten)]
    pub(crate) traced: Traced,
    #[command(flatten)]
    pub(crate) part: Part,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Which part of a trace is listed.
#[derive(Debug, Default, ClapArgs)]
#[command(next_help_heading = "Part of the trace")]
pub(crate) struct Part {
    /// Start at this point
    #[arg(long, value_name = "POINT")]
    pub(crate) from: Option<String>,
    /// Stop before this point, the first one after the start; the rest is not decoded
    #[arg(long, value_name = "POINT")]
    pub(crate) until: Option<String>,
    /// List only this point and --context instructions before and after it
    #[arg(long, value_name = "POINT", conflicts_with = "find")]
    pub(crate) around: Option<String>,
    /// The same for every point of this kind
    #[arg(long, value_name = "POINT")]
    pub(crate) find: Option<String>,
    /// Instructions before and after a point [default: 10 with --around, 0 with --find]
    #[arg(long, value_name = "N", value_parser = super::run::count)]
    pub(crate) context: Option<u64>,
}

/// `hartrace stats`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Stats {
    /// The trace; `-` is stdin
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: StatsFormat,
    /// Also count the jumps that contradict the call stack, which decodes on one thread
    #[arg(long)]
    pub(crate) doubt: bool,
    /// Fail if the trace has gaps
    #[arg(long)]
    pub(crate) strict: bool,
    /// Number of decoding threads [default: the number of cores]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    #[command(flatten)]
    pub(crate) transport: Transport,
    #[command(flatten)]
    pub(crate) program: Program,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `hartrace convert`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Convert {
    /// The trace; `-` is stdin
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// Format of the new trace
    #[arg(long, value_name = "KIND")]
    pub(crate) to: TraceKind,
    /// E-Trace to E-Trace: keep the packets and write them in this encapsulation, with the other
    /// settings of `[etrace.encapsulation]` and `[transport]`; no program is needed
    #[arg(long, value_name = "FORM", value_parser = form, conflicts_with = "check")]
    pub(crate) encapsulation: Option<String>,
    /// Decode the new trace while it is written and compare it with the input
    #[arg(long)]
    pub(crate) check: bool,
    /// Only this hart; several harts need src_bits in `[ntrace]`, or a container
    #[arg(long, value_name = "N")]
    pub(crate) hart: Option<u32>,
    /// Fail if the trace has gaps
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) container: Container,
    #[command(flatten)]
    pub(crate) transport: Transport,
    #[command(flatten)]
    pub(crate) program: Program,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// The container for tandem traces.
#[derive(Debug, Default, ClapArgs)]
#[command(next_help_heading = "Container")]
pub(crate) struct Container {
    /// Write the tandem trace into a container with its settings, hart ids and checksums
    #[arg(long)]
    pub(crate) container: bool,
    /// Compress the contents of the container
    #[arg(long, requires = "container")]
    pub(crate) compress: bool,
}

impl Container {
    /// Whether a container is written and, if so, whether it is compressed.
    pub(crate) fn get(&self) -> Option<bool> {
        self.container.then_some(self.compress)
    }
}

/// A trace format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceKind {
    /// N-Trace, as set in `[ntrace]`
    Ntrace,
    /// E-Trace, as set in `[etrace]`
    Etrace,
    /// Tandem trace, as set in `[tandem]`; a log must have register and memory writes
    Tandem,
}

impl TraceKind {
    pub(crate) const fn format(self) -> Format {
        match self {
            TraceKind::Ntrace => Format::Ntrace,
            TraceKind::Etrace => Format::Etrace,
            TraceKind::Tandem => Format::Tandem,
        }
    }
}

/// The output formats of `dump`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DumpFormat {
    /// Human-readable text
    Text,
    /// JSON lines: a header, then one object per message, packet or group
    Json,
    /// E-Trace only: the te_inst table of the reference models
    Csv,
}

/// The output formats of `decode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DecodeFormat {
    /// One line per instruction: pc, encoding, disassembly, symbol, branches taken or not
    Text,
    /// The same with the source lines
    Source,
    /// One pc per retired instruction, 16 digits or 8 on RV32
    Pc,
    /// JSON lines: a header, then one object per event
    Json,
}

/// The output formats of `stats`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatsFormat {
    /// Human-readable text
    Text,
    /// One JSON object
    Json,
}

/// How the trace was transported before it reached the file.
#[derive(Debug, Default, ClapArgs)]
#[command(next_help_heading = "Transport")]
pub(crate) struct Transport {
    /// The trace is a dump of a circular buffer with these trRamStart, trRamLimit and trRamWP; bit
    /// 0 of WP, or `:wrap`, means that it wrapped
    #[arg(long, value_name = "START:LIMIT:WP[:wrap]", value_parser = ram, conflicts_with = "pib")]
    pub(crate) ram: Option<RamSink>,
    /// The trace is made of samples of a PIB this many pins wide
    #[arg(long, value_name = "1|2|4|8|16", value_parser = pib)]
    pub(crate) pib: Option<PibWidth>,
    /// With --pib: the first sample is in the high bits of a byte
    #[arg(long, requires = "pib")]
    pub(crate) high_first: bool,
    /// The trace is in 16-byte frames of the CoreSight formatter, also within --ram or --pib. Data
    /// packets of E-Trace without a type may have the id of their hart plus OFFSET
    #[arg(long, value_name = "OFFSET", num_args = 0..=1, default_missing_value = "0", value_parser = coresight)]
    pub(crate) coresight: Option<CoreSight>,
    /// Byte order of the dump: as is, or bytes swapped within 16- or 32-bit words
    #[arg(long, value_name = "plain|swap16|swap32", value_parser = order)]
    pub(crate) order: Option<Order>,
}

impl Transport {
    pub(crate) fn get(&self) -> hartrace_capture::trace::Transport {
        hartrace_capture::trace::Transport {
            order: self.order.unwrap_or_default(),
            ram: self.ram,
            pib: self.pib.map(|width| Pib {
                high_first: self.high_first,
                ..Pib::new(width)
            }),
            coresight: self.coresight,
        }
    }
}

fn ram(text: &str) -> Result<RamSink, String> {
    let problem = || "write START:LIMIT:WP[:wrap], such as 0x1000:0x1ffc:0x1234".to_owned();
    if text.split(':').count() < 3 {
        return Err(problem());
    }
    let reason = |error: Option<RamError>| error.map_or_else(problem, |error| error.to_string());
    RamSink::parse(text).map_err(reason)
}

fn form(text: &str) -> Result<String, String> {
    let mut forms = EtraceEncapsulation::forms();
    match forms.any(|form| form == text) {
        true => Ok(text.to_owned()),
        false => {
            let forms: Vec<&str> = EtraceEncapsulation::forms().collect();
            Err(format!("write one of {}", forms.join(", ")))
        }
    }
}

fn coresight(text: &str) -> Result<CoreSight, String> {
    let problem = || "write an offset of ids from 1 to 110".to_owned();
    match text.parse().map_err(|_| problem())? {
        0 => Ok(CoreSight::default()),
        offset @ 1..=110 => Ok(CoreSight {
            data_offset: Some(offset),
        }),
        _ => Err(problem()),
    }
}

fn pib(text: &str) -> Result<PibWidth, String> {
    let width = text.parse().ok().and_then(PibWidth::from_pins);
    width.ok_or_else(|| "write 1, 2, 4, 8 or 16".to_owned())
}

fn order(text: &str) -> Result<Order, String> {
    Ok(match text {
        "plain" => Order::Plain,
        "swap16" => Order::Swapped16,
        "swap32" => Order::Swapped32,
        _ => return Err("write plain, swap16 or swap32".to_owned()),
    })
}
