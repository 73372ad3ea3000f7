//! The arguments of `hartrace state`.

use super::{Mark, Output, Program, Transport};
use clap::{Args as ClapArgs, ValueEnum};
use std::path::PathBuf;

// Paragraphs have no line ends of their own: they are wrapped for the terminal.
pub(super) const EXAMPLES: &str = "\
Instructions are numbered from 0, including those that trap, as in `hartrace verify`. The state at \
N is the state before instruction N; if the trace has N instructions, it is the state at the end. \
Memory is known from stores and memory requests. With the program, other bytes come from the \
program and are marked. PLACE is an address or a symbol of the program, optionally with +OFFSET. \
--index writes TRACE.index once; later queries use it and are fast. An E-Trace with data trace \
answers --mem and --last-write for memory; its instructions that trap are not counted.

Examples:
  hartrace state run.tandem --at 5000
  hartrace state run.tandem --at 5000 --reg a0 --reg mstatus --mem 0x80001000:64
  hartrace state run.tandem -e prog.elf --mem table+0x10:32
  hartrace state run.tandem -e prog.elf --last-write table --before 5000
  hartrace state run.tandem -e prog.elf --at main
  hartrace state run.tandem --last-write a0 --before 1M --index
  hartrace state run.etrace -e prog.elf --last-write table:8 --before 5000";

/// `hartrace state`.
#[derive(Debug, ClapArgs)]
pub(crate) struct State {
    /// The tandem trace, or E-Trace with data trace; `-` is stdin
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// Show the state before instruction N, or the first one at a symbol [default: at the end]
    #[arg(long, value_name = "N|SYMBOL", value_parser = Mark::parse)]
    #[arg(conflicts_with = "last_write")]
    pub(crate) at: Option<Mark>,
    /// Only this register, or pc, priv or mtime; repeatable
    #[arg(long, value_name = "NAME", conflicts_with_all = ["last_write", "all"])]
    pub(crate) reg: Vec<String>,
    /// Show memory, 16 bytes unless a length is given; repeatable
    #[arg(long, value_name = "PLACE[:LENGTH]", conflicts_with = "last_write")]
    pub(crate) mem: Vec<String>,
    /// Show every register whose value is known
    #[arg(long, conflicts_with = "last_write")]
    pub(crate) all: bool,
    /// Find the last write to a register, to pc or priv, or to memory; repeatable
    #[arg(long, value_name = "NAME|PLACE[:LENGTH]")]
    pub(crate) last_write: Vec<String>,
    /// With --last-write: only writes before instruction N, or the first one at a symbol
    /// [default: the end]
    #[arg(long, value_name = "N|SYMBOL", value_parser = Mark::parse, requires = "last_write")]
    pub(crate) before: Option<Mark>,
    /// Write TRACE.index, which later queries use automatically
    #[arg(long)]
    pub(crate) index: bool,
    /// Data packets of an E-Trace that are in a file of their own
    #[arg(long, value_name = "FILE")]
    pub(crate) data: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: StateFormat,
    /// The hart, if the trace is a container with several
    #[arg(long, value_name = "N")]
    pub(crate) hart: Option<u32>,
    #[command(flatten)]
    pub(crate) transport: Transport,
    #[command(flatten)]
    pub(crate) program: Program,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// The output formats of `state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StateFormat {
    /// Human-readable text
    Text,
    /// One JSON object
    Json,
}
