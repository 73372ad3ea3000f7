//! `hartrace verify`, as it is typed.

use super::run::Machine;
use super::{Output, run};
use clap::{Args as ClapArgs, ValueEnum};
use hartrace_capture::quantity::parse_count;
use std::path::PathBuf;

// Paragraphs have no line ends of their own: they are wrapped for the terminal.
pub(super) const EXAMPLES: &str = "\
Every group of a tandem trace makes the built-in hart attempt one instruction; then everything \
that changed on either side is compared. After a mismatch the hart follows the trace. The settings \
come from the sidecar of the trace or from section [tandem] of a configuration, and so does what \
the trace does not tell. Instructions are counted from 0.

A simulation can be watched while it runs: it connects, or is connected to, and each mismatch is \
told at once.

Sources:
  FILE                     a trace in a file
  -                        standard input
  tcp:HOST:PORT            connect to a simulation
  tcp-listen:[HOST:]PORT   wait for a simulation that connects
  unix:PATH                the same with Unix sockets
  unix-listen:PATH

Exit codes:
  0  trace and hart agree
  3  the trace is damaged
  4  they differ
  5  not a tandem trace

Examples:
  hartrace run prog.elf --trace tandem=t && hartrace verify t
  hartrace encode spike.log -e prog.elf --to tandem -o t && hartrace verify t
  hartrace verify core.tandem -e prog.elf --isa rv64gc --from 1M --max-mismatches 1
  hartrace verify core.tandem -e prog.elf --isa rv32imac --volatile 0x10000000:0x1000 --absent mip
  hartrace verify tcp-listen:4000 -e prog.elf --isa rv64gc -f json | jq .insn";

/// `hartrace verify`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Verify {
    /// The tandem trace: a file, `-` for stdin, or a socket
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// How to write the report
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: VerifyFormat,
    /// Tell differences from this instruction on, or from the first time at a symbol
    #[arg(long, value_name = "N|SYMBOL", value_parser = Mark::parse)]
    pub(crate) from: Option<Mark>,
    /// End in front of this instruction, or the first time at a symbol
    #[arg(long, value_name = "N|SYMBOL", value_parser = Mark::parse)]
    pub(crate) until: Option<Mark>,
    /// End after so many mismatches; 0 for none too many
    #[arg(long, value_name = "N", value_parser = run::count, default_value = "20")]
    pub(crate) max_mismatches: u64,
    /// State that comes from the trace: a register, bits of one (mstatus:0x6000), or memory
    /// (0x10000000:0x1000); repeatable
    #[arg(long, value_name = "WHAT")]
    pub(crate) volatile: Vec<String>,
    /// Only what --volatile says is volatile: not mip, time, counters and the CLINT
    #[arg(long)]
    pub(crate) no_default_volatile: bool,
    /// What the trace does not tell, such as mstatus, trap.mtval, fpr, store
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) absent: Vec<String>,
    /// The hart of a trace of several
    #[arg(long, value_name = "N")]
    pub(crate) hart: Option<u32>,
    /// Go on behind damage
    #[arg(long)]
    pub(crate) resync: bool,
    /// The program, an ELF file; repeatable, the first one starts [default: that of the sidecar]
    #[arg(short, long, value_name = "FILE", help_heading = "Program")]
    pub(crate) elf: Vec<String>,
    #[command(flatten)]
    pub(crate) machine: Machine,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// How `verify` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum VerifyFormat {
    /// For people
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
    fn parse(text: &str) -> Result<Mark, String> {
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            let number = parse_count(text).map(Mark::Number);
            return number.ok_or_else(|| "write a number such as 1000000 or 10M".to_owned());
        }
        match text.is_empty() {
            true => Err("write a number, or the name of a function".to_owned()),
            false => Ok(Mark::Symbol(text.to_owned())),
        }
    }
}
