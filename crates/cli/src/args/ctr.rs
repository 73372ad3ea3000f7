//! The arguments of `hartrace ctr`.

use super::run::{count, every};
use super::{Output, Program, Transport};
use clap::{Args as ClapArgs, ValueEnum};
use hartrace_capture::records::Every;
use std::path::PathBuf;

// Paragraphs have no line ends of their own: they are wrapped for the terminal.
pub(super) const EXAMPLES: &str = "\
FILE is a dump (written by `hartrace run --trace ctr=FILE` or another program), the JSON of a \
dump, or any trace or log. From a trace or log, the records are those a hart with the settings in \
[ctr] would hold. profgen, autofdo, llvm and blocks need a record of every taken transfer; folded needs \
records of RAS emulation. See docs/ctr.md.

Examples:
  hartrace run prog.elf --trace ctr=run.ctr --every 10000
  hartrace ctr run.ctr --sample 3                  one snapshot
  hartrace ctr run.ctr -f blocks --top 20          the blocks with most cycles
  hartrace ctr run.ctr -f branches                 taken, mispredicted, targets
  hartrace ctr run.ctr -f profgen -o run.script    for llvm-profgen --perfscript
  hartrace ctr run.ctr -f autofdo -o run.txt       for AutoFDO
  hartrace ctr t.etrace -e prog.elf -c call-stacks.toml --every 1000 -f folded
  hartrace ctr run.ctr -f json | jq 'select(.type == \"snapshot\").entries[0]'";

/// `hartrace ctr`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Ctr {
    /// Dumps, traces or logs; `-` is stdin
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) format: CtrFormat,
    /// Only snapshot K, counted from 0
    #[arg(long, value_name = "K", value_parser = count)]
    pub(crate) sample: Option<u64>,
    /// For traces and logs: take a snapshot every N instructions or cycles, such as 10000 or
    /// 1Mcycles [default: one at the end]
    #[arg(long, value_name = "N[cycles]", value_parser = every)]
    pub(crate) every: Option<Every>,
    /// Only the N most frequent blocks, sources, edges, and targets of a source
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
    /// Only this hart
    #[arg(long, value_name = "N")]
    pub(crate) hart: Option<u32>,
    /// Fail if a file has unreadable parts
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) transport: Transport,
    #[command(flatten)]
    pub(crate) program: Program,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// The output formats of `ctr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CtrFormat {
    /// One table per snapshot, with symbols and source lines
    Table,
    /// As printed by `perf script -F ip,brstack`, six fields per entry
    Brstack,
    /// The same with eight fields per entry, as in newer versions of perf
    Brstack8,
    /// The same with symbols instead of addresses
    Brstacksym,
    /// Input for llvm-profgen --perfscript
    Profgen,
    /// Input for AutoFDO with --profiler=text
    Autofdo,
    /// An LLVM sample profile, for clang -fprofile-sample-use
    Llvm,
    /// Call stacks from RAS emulation, folded for flame graphs
    Folded,
    /// Cycles of each block of code between two transfers
    Blocks,
    /// Counts of transfers by type, source and target
    Branches,
    /// JSON lines: a header, then one object per snapshot
    Json,
    /// The binary form of a dump
    Dump,
}
