//! The commands that make and read traces, as they are typed.

use super::{ModeName, Output, Program};
use clap::{Args as ClapArgs, ValueEnum};
use hartrace_capture::program::parse_address;
use hartrace_capture::trace::{Format, Order, Pib, PibWidth, RamSink};
use std::path::PathBuf;

// Paragraphs have no line ends of their own: they are wrapped for the terminal.
pub(super) const ENCODE_EXAMPLES: &str = "\
The settings of the encoder are in section [ntrace], [etrace] or [tandem] of a configuration; \
configs/ has some ready made. A sidecar, FILE.toml beside the trace, tells them and the program to \
those who read it. A tandem trace needs what instructions changed: a log of `spike -l --log-commits`.

Examples:
  hartrace encode run.pc -e prog.elf --to ntrace -o run.ntrace
  hartrace encode spike.log -e prog.elf --to ntrace -c btm.toml -o run.ntrace --check
  hartrace encode rows.csv -e prog.elf --to etrace -o run.etrace
  hartrace encode spike.log -e prog.elf --to tandem --load -o run.tandem";

pub(super) const DUMP_EXAMPLES: &str = "\
Without --bytes there is one line per message or packet: its offset, its name, its fields and, \
behind an arrow, the full address. With --bytes there is one per byte, with the fields that end in \
it. Of a tandem trace there is one line per group: its offset, its number, where the instruction is, \
and its items; with --bytes one per field.

Examples:
  hartrace dump run.ntrace
  hartrace dump run.ntrace --bytes | head
  hartrace dump run.ntrace -f json | jq .name
  hartrace dump run.te_inst_raw -f csv -o run.te_inst
  hartrace dump run.tandem | grep mcause=";

pub(super) const DECODE_EXAMPLES: &str = "\
The settings come from the sidecar of the trace or from section [ntrace], [etrace] or [tandem] of \
a configuration. A tandem trace needs no program: it has the instructions. The trace need not be whole: what cannot be decoded is told as a gap, with a code \
that docs/diagnostics.md explains.

Examples:
  hartrace decode run.ntrace -e prog.elf | less
  hartrace decode run.ntrace -e prog.elf -f pc | cmp - run.pc
  hartrace decode part.ntrace -e prog.elf -c htm.toml -f json | jq .type";

pub(super) const STATS_EXAMPLES: &str = "\
With the program, from -e or the sidecar, the trace is decoded too, for instructions and gaps.

Examples:
  hartrace stats run.ntrace
  hartrace stats run.ntrace -e prog.elf -f json";

pub(super) const CONVERT_EXAMPLES: &str = "\
The trace is decoded, and what it tells is encoded again. Its sidecar says how it is read; the \
configuration says how the new one is written, and if there is no sidecar how the old one is read \
as well. A gap is a loss in the new trace, too. A tandem trace made of another is partial; of a \
tandem trace the groups are kept, and go into a container or out of it: one file for each hart, \
FILE.0 and so on if there are several.

Examples:
  hartrace convert run.ntrace --to etrace -o run.etrace --check
  hartrace convert run.te_inst_raw -e prog.elf -c itype3-basic.toml --to ntrace -o run.ntrace
  hartrace convert run.tandem --to tandem --container --compress -o run.tpc";

/// `hartrace encode`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Encode {
    /// The log: pc list, Spike log or CSV, ingress CSV; `-` is stdin
    #[arg(value_name = "INPUT")]
    pub(crate) input: PathBuf,
    /// The format of the trace
    #[arg(long, value_name = "KIND")]
    pub(crate) to: TraceKind,
    /// Decode the trace at once, and compare
    #[arg(long)]
    pub(crate) check: bool,
    /// A tandem trace begins with the program as it is loaded into memory
    #[arg(long)]
    pub(crate) load: bool,
    /// Mode of a log that does not tell it, such as a pc list [default: m]
    #[arg(long, value_name = "u|s|m", hide_possible_values = true)]
    pub(crate) mode: Option<ModeName>,
    /// Only this hart; several need room for SRC in N-Trace, src_bits in section ntrace, or a container
    #[arg(long, value_name = "N")]
    pub(crate) hart: Option<u32>,
    /// Fail if the log has lines that cannot be read, or does not follow the program
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
    /// How to write it
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: DumpFormat,
    /// One line per byte (of a tandem trace per field) instead of one per message, packet or group
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
    /// The trace; `-` is stdin
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// How to write it
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: DecodeFormat,
    /// With -f pc: also list ecall and ebreak, which do not retire
    #[arg(long)]
    pub(crate) with_trapped: bool,
    /// Only this hart
    #[arg(long, value_name = "N")]
    pub(crate) hart: Option<u32>,
    /// Fail if the trace has gaps
    #[arg(long)]
    pub(crate) strict: bool,
    /// Threads to decode with [default: as many as there are cores]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    #[command(flatten)]
    pub(crate) transport: Transport,
    #[command(flatten)]
    pub(crate) program: Program,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `hartrace stats`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Stats {
    /// The trace; `-` is stdin
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// How to write it
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: StatsFormat,
    /// Fail if the trace has gaps
    #[arg(long)]
    pub(crate) strict: bool,
    /// Threads to decode with [default: as many as there are cores]
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
    /// The format of the new trace
    #[arg(long, value_name = "KIND")]
    pub(crate) to: TraceKind,
    /// Decode the new trace at once, and compare
    #[arg(long)]
    pub(crate) check: bool,
    /// Only this hart; several need room for SRC in N-Trace, src_bits in section ntrace, or a container
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

/// What a tandem trace is put into.
#[derive(Debug, Default, ClapArgs)]
#[command(next_help_heading = "Container")]
pub(crate) struct Container {
    /// Put the tandem trace into a container, with its settings, hart ids and checksums
    #[arg(long)]
    pub(crate) container: bool,
    /// Compress what is in the container
    #[arg(long, requires = "container")]
    pub(crate) compress: bool,
}

impl Container {
    /// Whether there is one, and if so whether it is compressed.
    pub(crate) fn get(&self) -> Option<bool> {
        self.container.then_some(self.compress)
    }
}

/// A trace format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceKind {
    /// N-Trace, by section ntrace of the settings
    Ntrace,
    /// E-Trace, by section etrace of the settings
    Etrace,
    /// Tandem trace, by section tandem of the settings; from a log with effects
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

/// How `dump` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DumpFormat {
    /// For people
    Text,
    /// JSON lines: a header, then one object per message, packet or group
    Json,
    /// Of E-Trace: the table that the reference models call te_inst
    Csv,
}

/// How `decode` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DecodeFormat {
    /// One line per instruction: pc, bits, disassembly, name
    Text,
    /// One pc per retired instruction, 16 digits or 8 on RV32
    Pc,
    /// JSON lines: a header, then one object per event
    Json,
}

/// How `stats` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatsFormat {
    /// For people
    Text,
    /// One JSON object
    Json,
}

/// How the trace came into the file.
#[derive(Debug, Default, ClapArgs)]
#[command(next_help_heading = "Transport")]
pub(crate) struct Transport {
    /// A dump of a circular buffer: trRamStart, trRamLimit and trRamWP; bit 0 of WP, or `:wrap`,
    /// says that it wrapped
    #[arg(long, value_name = "START:LIMIT:WP[:wrap]", value_parser = ram, conflicts_with = "pib")]
    pub(crate) ram: Option<RamSink>,
    /// Samples of so many pins
    #[arg(long, value_name = "1|2|4|8|16", value_parser = pib)]
    pub(crate) pib: Option<PibWidth>,
    /// With --pib: the first sample is in the high bits of a byte
    #[arg(long, requires = "pib")]
    pub(crate) high_first: bool,
    /// Words whose bytes were turned round
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
        }
    }
}

fn ram(text: &str) -> Result<RamSink, String> {
    let problem = || "write START:LIMIT:WP, such as 0x1000:0x1ffc:0x1234, and :wrap".to_owned();
    let mut parts = text.split(':');
    let mut number = || parts.next().and_then(parse_address).ok_or_else(problem);
    let mut ram = RamSink::from_registers(number()?, number()?, number()?);
    match (parts.next(), parts.next()) {
        (None, _) => {}
        (Some("wrap"), None) => ram.wrapped = true,
        _ => return Err(problem()),
    }
    ram.size().map_err(|error| error.to_string())?;
    Ok(ram)
}

fn pib(text: &str) -> Result<PibWidth, String> {
    Ok(match text {
        "1" => PibWidth::One,
        "2" => PibWidth::Two,
        "4" => PibWidth::Four,
        "8" => PibWidth::Eight,
        "16" => PibWidth::Sixteen,
        _ => return Err("write 1, 2, 4, 8 or 16".to_owned()),
    })
}

fn order(text: &str) -> Result<Order, String> {
    Ok(match text {
        "plain" => Order::Plain,
        "swap16" => Order::Swapped16,
        "swap32" => Order::Swapped32,
        _ => return Err("write plain, swap16 or swap32".to_owned()),
    })
}
