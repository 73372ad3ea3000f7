//! The arguments of commands that show what a program did: `profile`, `calls`,
//! `flamegraph`, `coverage`, `branches`, `interrupts`, `diff`.

use super::{Output, Program, Transport};
use clap::{Args as ClapArgs, ValueEnum};
use hartrace_capture::source_text::SourceDir;
use std::path::PathBuf;

// Paragraphs have no line ends of their own: they are wrapped for the terminal.
pub(super) const PROFILE_EXAMPLES: &str = "\
Counts are exact: every executed instruction is counted, nothing is sampled. Where the trace has \
timestamps there is time too: the interval between two timestamps is shared out equally among the \
instructions in it, and a wfi gets what is left when the others take as long as elsewhere in the \
trace. Traces and logs of any format can be given; those of several files are added up. See \
docs/views.md.

Examples:
  hartrace profile run.ntrace -e prog.elf
  hartrace profile run.ntrace --of lines --source-dir src --top 20
  hartrace profile run.ntrace --of instructions --function main
  hartrace profile run.ntrace -f callgrind -o callgrind.out.run
  hartrace profile run.ntrace -f pprof -o run.pb.gz
  hartrace profile run.ntrace -f llvm -o run.prof
  hartrace profile new.ntrace --baseline old.ntrace
  hartrace profile smp.ntrace --by hart,mode";

pub(super) const CALLS_EXAMPLES: &str = "\
A function marked with ? was found by its instructions or by a return to it; its call is not in \
the trace. Interrupts and exceptions are trees of their own, so that a function does not get what \
an interrupt costs. The latency of a call does not include them either.

Examples:
  hartrace calls run.ntrace -e prog.elf
  hartrace calls run.ntrace --depth 4 --least 1
  hartrace calls run.ntrace -f json | jq 'select(.type == \"latency\")'";

pub(super) const FLAMEGRAPH_EXAMPLES: &str = "\
The width of a function is the number of instructions executed in it and in what it called, or \
with --cost time the time. With --baseline, colours show what became more (red) and less (blue).

Examples:
  hartrace flamegraph run.ntrace -e prog.elf -o run.svg
  hartrace flamegraph new.ntrace --baseline old.ntrace -o difference.svg";

pub(super) const COVERAGE_EXAMPLES: &str = "\
Code that never ran is part of the report: all functions with symbols, and all lines in the line \
tables. A branch has two outcomes. Counts of several traces of the same program are added up; the \
formats may differ.

Examples:
  hartrace coverage run.ntrace -e prog.elf
  hartrace coverage tests/*.etrace -f lcov -o prog.info && genhtml prog.info -o html
  hartrace coverage run.ntrace -f cobertura -o coverage.xml
  hartrace coverage run.ntrace --fail-under 80 --fail-under branches=60";

pub(super) const BRANCHES_EXAMPLES: &str = "\
Counts are exact. A loop is the code from the target of a jump back in a function; its rounds are \
counted for each time it was entered. See docs/views.md.

Examples:
  hartrace branches run.ntrace -e prog.elf --top 10
  hartrace branches run.ntrace -f json | jq 'select(.type == \"indirect\")'";

pub(super) const INTERRUPTS_EXAMPLES: &str = "\
The duration of an interrupt is everything from the trap to the return from it, with the traps \
that interrupted it and without other threads. For the longest ones, the table has the number of \
the instruction before which they were taken, as `decode --around` takes it, and the call path \
that was interrupted. The latency is the time from when an interrupt became pending to its \
handler. Traces do not report it; ingress rows of the run do. See docs/views.md.

Examples:
  hartrace interrupts run.ntrace -e prog.elf
  hartrace run prog.elf --log ingress=run.csv && hartrace interrupts run.csv -e prog.elf
  hartrace interrupts run.etrace --exceptions --top 8
  hartrace interrupts run.ntrace -f json | jq 'select(.type == \"longest\")'";

pub(super) const DIFF_EXAMPLES: &str = "\
The executed instructions are compared, address by address. The formats may differ, and either may \
be a log: a trace can be compared with the log of a simulator. After a difference the runs are \
aligned where they meet again. Exit code 4 if anything differs.

Examples:
  hartrace diff good.ntrace bad.ntrace -e prog.elf
  hartrace diff run.etrace spike.log -e prog.elf
  hartrace diff a.ntrace b.ntrace --max 1 --context 20 --source-dir src";

/// The input of a command that shows what a program did.
#[derive(Debug, ClapArgs)]
pub(crate) struct Traced {
    /// Only this hart
    #[arg(long, value_name = "N")]
    pub(crate) hart: Option<u32>,
    /// Fail if the trace has gaps, or the log has unreadable lines
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) transport: Transport,
    #[command(flatten)]
    pub(crate) program: Program,
}

/// `hartrace profile`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Profile {
    /// Traces or logs, which are added up; `-` is stdin
    #[arg(value_name = "TRACE", required = true)]
    pub(crate) traces: Vec<PathBuf>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: ProfileFormat,
    /// With -f text: what is listed
    #[arg(long, value_name = "WHAT", default_value = "functions")]
    pub(crate) of: ProfileOf,
    #[command(flatten)]
    pub(crate) measured: Measured,
    /// With --of instructions: only this function
    #[arg(long, value_name = "NAME")]
    pub(crate) function: Option<String>,
    /// Only the first N rows
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
    /// Compare with this trace, function by function
    #[arg(long, value_name = "TRACE")]
    pub(crate) baseline: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sources: Sources,
    #[command(flatten)]
    pub(crate) traced: Traced,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// What is measured, and what is told apart.
#[derive(Debug, ClapArgs)]
pub(crate) struct Measured {
    /// What costs are: they give the order, percentages, latencies and widths
    #[arg(long, value_name = "COST", default_value = "instructions")]
    pub(crate) cost: CostName,
    /// Tell harts, contexts or privilege modes apart; comma-separated
    #[arg(
        long,
        value_name = "hart|context|mode",
        value_delimiter = ',',
        hide_possible_values = true
    )]
    pub(crate) by: Vec<GroupBy>,
}

/// Where source text is.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct Sources {
    /// Where source files are: a folder to search, or OLD=NEW to replace the start of the paths
    /// in the ELF file; repeatable
    #[arg(long, value_name = "[OLD=]DIR", value_parser = |text: &str| Ok::<_, String>(SourceDir::parse(text)))]
    pub(crate) source_dir: Vec<SourceDir>,
}

/// `hartrace calls`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Calls {
    /// The trace or log; `-` is stdin
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: CallsFormat,
    #[command(flatten)]
    pub(crate) measured: Measured,
    /// Only so many levels of the tree
    #[arg(long, value_name = "N")]
    pub(crate) depth: Option<usize>,
    /// Only paths with at least so many percent of the total
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    pub(crate) least: f64,
    /// Only the first N functions in the table of latencies
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
    #[command(flatten)]
    pub(crate) traced: Traced,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `hartrace flamegraph`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Flamegraph {
    /// Traces or logs, which are added up; `-` is stdin
    #[arg(value_name = "TRACE", required = true)]
    pub(crate) traces: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) measured: Measured,
    /// Title of the picture [default: the names of the traces]
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// Colour by the difference from this trace
    #[arg(long, value_name = "TRACE")]
    pub(crate) baseline: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) traced: Traced,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `hartrace branches`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Branches {
    /// The trace or log; `-` is stdin
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: BranchesFormat,
    /// Only the N most frequent branches, indirect jumps and loops
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
    #[command(flatten)]
    pub(crate) traced: Traced,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// The output formats of `branches`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BranchesFormat {
    /// Tables of branches, indirect jumps and loops
    Text,
    /// JSON lines: a header, then branches, indirect jumps and loops
    Json,
}

/// `hartrace interrupts`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Interrupts {
    /// The trace or log; `-` is stdin
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: InterruptsFormat,
    /// Exceptions too: ecall, page faults and so on
    #[arg(long)]
    pub(crate) exceptions: bool,
    /// Only N interrupted functions and the N longest interrupts of each cause, at most 8
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) top: usize,
    #[command(flatten)]
    pub(crate) traced: Traced,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// The output formats of `interrupts`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InterruptsFormat {
    /// A table of causes, then the longest interrupts of each
    Text,
    /// JSON lines: a header, then causes, each followed by its longest interrupts
    Json,
}

/// `hartrace diff`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Diff {
    /// A trace or log
    #[arg(value_name = "A")]
    pub(crate) a: PathBuf,
    /// Another trace or log
    #[arg(value_name = "B")]
    pub(crate) b: PathBuf,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: DiffFormat,
    /// Compare the messages or packets of two traces, not what they decode to; no program is
    /// needed
    #[arg(long)]
    pub(crate) messages: bool,
    /// With --messages: leave out fields of this name, such as TSTAMP; repeatable
    #[arg(long, value_name = "FIELD", requires = "messages")]
    pub(crate) ignore: Vec<String>,
    /// Instructions or messages shown before a difference and on each side of it
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) context: usize,
    /// Stop after so many differences
    #[arg(long, value_name = "N")]
    pub(crate) max: Option<u64>,
    /// Instructions or messages after a difference in which the two must meet again
    #[arg(long, value_name = "N", default_value_t = 1 << 17)]
    pub(crate) window: usize,
    #[command(flatten)]
    pub(crate) sources: Sources,
    #[command(flatten)]
    pub(crate) traced: Traced,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// The output formats of `diff`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffFormat {
    /// Instructions with symbols and source
    Text,
    /// JSON lines: a header, then one object per difference, and a summary
    Json,
}

/// `hartrace coverage`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Coverage {
    /// Traces or logs, which are added up; `-` is stdin
    #[arg(value_name = "TRACE", required = true)]
    pub(crate) traces: Vec<PathBuf>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: CoverageFormat,
    /// Exit with 4 if less than so many percent ran of the lines, or of instructions, branches or
    /// functions; repeatable
    #[arg(long, value_name = "[KIND=]PERCENT", value_parser = fail_under)]
    pub(crate) fail_under: Vec<(CoverageKind, f64)>,
    /// Tell contexts apart, such as processes: one report for each
    #[arg(long, value_name = "context", hide_possible_values = true)]
    pub(crate) by: Option<CoverageBy>,
    /// Number of decoding threads [default: the number of cores]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    #[command(flatten)]
    pub(crate) traced: Traced,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// What coverage tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CoverageBy {
    Context,
}

/// The output formats of `coverage`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CoverageFormat {
    /// A summary, then files, functions, and branches that went only one way
    Text,
    /// JSON lines: a header, then functions, lines and branches
    Json,
    /// A tracefile for lcov and genhtml
    Lcov,
    /// XML for build servers
    Cobertura,
}

/// What coverage is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CoverageKind {
    Instructions,
    Branches,
    Lines,
    Functions,
}

fn fail_under(text: &str) -> Result<(CoverageKind, f64), String> {
    let (kind, percent) = text.split_once('=').unwrap_or(("lines", text));
    let kind = match kind {
        "instructions" => CoverageKind::Instructions,
        "branches" => CoverageKind::Branches,
        "lines" => CoverageKind::Lines,
        "functions" => CoverageKind::Functions,
        _ => return Err("KIND is instructions, branches, lines or functions".to_owned()),
    };
    let percent = percent.trim_end_matches('%').trim().parse::<f64>().ok();
    match percent.filter(|percent| (0.0..=100.0).contains(percent)) {
        Some(percent) => Ok((kind, percent)),
        None => Err("PERCENT is a number from 0 to 100".to_owned()),
    }
}

/// The output formats of `profile`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProfileFormat {
    /// Tables
    Text,
    /// JSON lines: a header, then functions, calls, lines, loops and instructions
    Json,
    /// For callgrind_annotate and KCachegrind
    Callgrind,
    /// One call path per line, for flame graphs
    Folded,
    /// For pprof: a protobuf message, compressed
    Pprof,
    /// For speedscope: calls in order, thread by thread
    Speedscope,
    /// For the Firefox Profiler: call paths, traps and gaps over time
    Firefox,
    /// For clang -fprofile-sample-use: an LLVM sample profile
    Llvm,
    /// For llvm-profgen --perfscript: branch stacks with counts
    Profgen,
    /// For AutoFDO with --profiler=text
    Autofdo,
}

/// What the text of a profile lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProfileOf {
    /// Functions: own cost, total cost, calls
    Functions,
    /// Which function called which
    Calls,
    /// Source lines
    Lines,
    /// Loops: entries and iterations
    Loops,
    /// The disassembly of functions with counts
    Instructions,
    /// Source files with counts
    Source,
}

/// The output formats of `calls`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CallsFormat {
    /// The tree, then a table of latencies
    Text,
    /// JSON lines: a header, then call paths and latencies
    Json,
}

/// What is told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GroupBy {
    Hart,
    Context,
    Mode,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CostName {
    /// Executed instructions
    Instructions,
    /// Time, in the unit of the trace
    Time,
}
