//! `hartrace ctr`, as it is typed.

use super::run::{count, every};
use super::{Output, Program, Transport};
use clap::{Args as ClapArgs, ValueEnum};
use hartrace_capture::records::Every;
use std::path::PathBuf;

// Paragraphs have no line ends of their own: they are wrapped for the terminal.
pub(super) const EXAMPLES: &str = "\
Files are dumps (of `hartrace run --trace ctr=FILE`, or of other programs), their JSON, and \
traces and logs of every kind: of these, the records are those that a hart set by [ctr] would have \
had. profgen, autofdo and blocks need records of everything that was taken; folded needs those of \
RAS emulation. docs/ctr.md says more.

Examples:
  hartrace run prog.elf --trace ctr=run.ctr --ctr-every 10000
  hartrace ctr run.ctr --sample 3                  one snapshot, explained
  hartrace ctr run.ctr -f blocks --top 20          where the cycles went
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
    /// How to write it
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) format: CtrFormat,
    /// Only this snapshot, counted from 0
    #[arg(long, value_name = "K", value_parser = count)]
    pub(crate) sample: Option<u64>,
    /// Of traces and logs: a snapshot after so many instructions, or cycles: 10000, 1Mcycles
    /// [default: one at the end]
    #[arg(long, value_name = "N[cycles]", value_parser = every)]
    pub(crate) every: Option<Every>,
    /// Of blocks, sources and edges only the N most frequent
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
    /// Only this hart
    #[arg(long, value_name = "N")]
    pub(crate) hart: Option<u32>,
    /// Fail if a file has parts that cannot be read
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) transport: Transport,
    #[command(flatten)]
    pub(crate) program: Program,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// How `ctr` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CtrFormat {
    /// Each snapshot for people, with names and lines of source text
    Table,
    /// Lines as of `perf script -F ip,brstack`, six fields an entry
    Brstack,
    /// The same with eight fields, as newer versions of perf print them
    Brstack8,
    /// The same with names for addresses
    Brstacksym,
    /// What llvm-profgen reads with --perfscript
    Profgen,
    /// What AutoFDO reads with --profiler=text
    Autofdo,
    /// Call stacks of RAS emulation, folded for flame graphs
    Folded,
    /// Cycles of the code between transfers
    Blocks,
    /// Counts of transfers by type, source and target
    Branches,
    /// JSON lines: a header, then one object per snapshot
    Json,
    /// The binary form of a dump
    Dump,
}
