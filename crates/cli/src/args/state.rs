//! `hartrace state`, as it is typed.

use super::{Output, Program, Transport};
use clap::{Args as ClapArgs, ValueEnum};
use hartrace_capture::quantity::parse_count;
use std::path::PathBuf;

// Paragraphs have no line ends of their own: they are wrapped for the terminal.
pub(super) const EXAMPLES: &str = "\
Instructions are counted from 0, those that trap among them, as `hartrace verify` does. The state \
at N is that in front of instruction N, and at the number of instructions that at the end. Memory \
is what stores and memory requests have told; with the program, what nobody has told comes from \
there, and is marked. PLACE is an address or a symbol of the program, with +OFFSET if wanted. With \
--index a file TRACE.index is written once, and from then on answers come at once.

Examples:
  hartrace state run.tandem --at 5000
  hartrace state run.tandem --at 5000 --reg a0 --reg mstatus --mem 0x80001000:64
  hartrace state run.tandem -e prog.elf --mem table+0x10:32
  hartrace state run.tandem -e prog.elf --last-write table --before 5000
  hartrace state run.tandem --last-write a0 --before 1M --index";

/// `hartrace state`.
#[derive(Debug, ClapArgs)]
pub(crate) struct State {
    /// The tandem trace; `-` is stdin
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// In front of which instruction [default: at the end]
    #[arg(long, value_name = "N", value_parser = number, conflicts_with = "last_write")]
    pub(crate) at: Option<u64>,
    /// Only this register; pc, priv and mtime count as some. Again for more
    #[arg(long, value_name = "NAME", conflicts_with_all = ["last_write", "all"])]
    pub(crate) reg: Vec<String>,
    /// Memory, 16 bytes unless a length is given. Again for more
    #[arg(long, value_name = "PLACE[:LENGTH]", conflicts_with = "last_write")]
    pub(crate) mem: Vec<String>,
    /// Every register that is known
    #[arg(long, conflicts_with = "last_write")]
    pub(crate) all: bool,
    /// Who wrote this last: a register, pc, priv, or memory. Again for more
    #[arg(long, value_name = "NAME|PLACE[:LENGTH]")]
    pub(crate) last_write: Vec<String>,
    /// With --last-write: before which instruction [default: the end]
    #[arg(long, value_name = "N", value_parser = number, requires = "last_write")]
    pub(crate) before: Option<u64>,
    /// Write TRACE.index, which later calls use by themselves
    #[arg(long)]
    pub(crate) index: bool,
    /// How to write it
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: StateFormat,
    /// Which hart, if the trace is a container with several
    #[arg(long, value_name = "N")]
    pub(crate) hart: Option<u32>,
    #[command(flatten)]
    pub(crate) transport: Transport,
    #[command(flatten)]
    pub(crate) program: Program,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// How `state` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StateFormat {
    /// For people
    Text,
    /// One JSON object
    Json,
}

fn number(text: &str) -> Result<u64, String> {
    parse_count(text).ok_or_else(|| "write a number, such as 5000 or 10M".to_owned())
}
