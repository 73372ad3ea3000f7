//! The arguments of `hartrace verify`.

use super::run::Machine;
use super::{Output, run};
use clap::{Args as ClapArgs, ValueEnum};
use hartrace_capture::quantity::parse_count;
use std::ffi::OsString;
use std::path::PathBuf;

// Paragraphs have no line ends of their own: they are wrapped for the terminal.
pub(super) const EXAMPLES: &str = "\
For every group of the tandem trace, the built-in hart attempts one instruction; then everything \
that changed on either side is compared. After a mismatch, the hart takes its state from the \
trace. Settings, including which state the trace omits, come from the sidecar of the trace or from \
section [tandem] of a configuration. Instructions are numbered from 0. A log is compared in the \
same way, except for what its format does not record.

A running simulation can be checked over a socket: each mismatch is printed as it is found.

Sources:
  FILE                     a trace in a file
  -                        standard input
  tcp:HOST:PORT            connect to a simulation
  tcp-listen:[HOST:]PORT   wait for a simulation that connects
  unix:PATH                connect to a Unix socket
  unix-listen:PATH         wait on a Unix socket

Exit codes:
  0  trace and hart agree
  3  the trace is damaged
  4  they differ
  5  not a tandem trace

Examples:
  hartrace run prog.elf --trace tandem=t && hartrace verify t
  hartrace encode spike.log -e prog.elf --to tandem -o t && hartrace verify t
  hartrace verify core.log -e prog.elf --isa rv64gc
  hartrace verify core.tandem -e prog.elf --isa rv64gc --max-mismatches 1
  hartrace verify core.tandem -e prog.elf --volatile 0x10000000:0x1000
  hartrace verify tcp-listen:4000 -e prog.elf --isa rv64gc -f json | jq .insn";

/// `hartrace verify`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Verify {
    /// The tandem trace: a file, `-` for stdin, or a socket; or the log of a simulator or core
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// Output format of the report
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: VerifyFormat,
    /// Report differences from instruction N on, or from the first one at SYMBOL
    #[arg(long, value_name = "N|SYMBOL", value_parser = Mark::parse)]
    pub(crate) from: Option<Mark>,
    /// Stop before instruction N, or before the first one at SYMBOL
    #[arg(long, value_name = "N|SYMBOL", value_parser = Mark::parse)]
    pub(crate) until: Option<Mark>,
    /// Stop after N mismatches; 0: no limit
    #[arg(long, value_name = "N", value_parser = run::count, default_value = "20")]
    pub(crate) max_mismatches: u64,
    /// Take this state from the trace instead of comparing it: a register, bits of one
    /// (mstatus:0x6000), or memory (0x10000000:0x1000); repeatable
    #[arg(long, value_name = "WHAT")]
    pub(crate) volatile: Vec<String>,
    /// Compare mip, time, counters and the CLINT too, which are volatile by default
    #[arg(long)]
    pub(crate) no_default_volatile: bool,
    /// State that the trace does not record, such as mstatus, trap.mtval, fpr, store
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) absent: Vec<String>,
    /// The hart to check, if the trace has several
    #[arg(long, value_name = "N")]
    pub(crate) hart: Option<u32>,
    /// Continue after damaged bytes
    #[arg(long)]
    pub(crate) resync: bool,
    /// Program as an ELF file; repeatable, the first one starts [default: from the sidecar]
    #[arg(short, long, value_name = "FILE", help_heading = "Program")]
    pub(crate) elf: Vec<OsString>,
    #[command(flatten)]
    pub(crate) machine: Machine,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// The output formats of `verify`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum VerifyFormat {
    /// Human-readable text
    Text,
    /// JSON lines: a header, one object per mismatch, a summary
    Json,
}

/// An instruction: by its number, or the first one at a symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Number(u64),
    Symbol(String),
}

impl Mark {
    pub(super) fn parse(text: &str) -> Result<Mark, String> {
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            let number = parse_count(text).map(Mark::Number);
            return number.ok_or_else(|| "write a number such as 1000000 or 10M".to_owned());
        }
        match text.is_empty() {
            true => Err("write a number or a symbol".to_owned()),
            false => Ok(Mark::Symbol(text.to_owned())),
        }
    }
}
