//! What was typed.

mod ctr;
mod run;
mod state;
mod trace;
mod verify;

pub(crate) use ctr::{Ctr, CtrFormat};
pub(crate) use run::{FilesSpec, LogSpec, Machine, MachineName, Run, RunLog, YesNo, is_stdout};
pub(crate) use state::{State, StateFormat};
pub(crate) use trace::{
    Container, Convert, Decode, DecodeFormat, Dump, DumpFormat, Encode, Stats, StatsFormat,
    Transport,
};
pub(crate) use verify::{Mark, Verify, VerifyFormat};

use crate::manual::{self, Section};
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

const ABOUT: &str = "The RISC-V trace toolkit";

const EXAMPLES: &str = "\
Examples:
  hartrace run prog.elf                  a program on the built-in hart
  hartrace run prog.elf --log pc=run.pc  the same, written down
  hartrace disasm prog.elf               the code of a program
  hartrace info prog.elf run.log         what these files are
  hartrace info run.pc -e prog.elf       what a run did
  hartrace log spike.log --to pc         a log as another kind of log
  hartrace run prog.elf --trace ntrace=t a program, traced
  hartrace decode t -e prog.elf          what a trace says was executed
  hartrace dump t                        the messages of a trace
  hartrace convert t --to etrace -o u    the same trace in another format
  hartrace verify t -e prog.elf          a tandem trace against the built-in hart
  hartrace state t --at 5000             the registers at an instruction
  hartrace run prog.elf --trace ctr=r    the last jumps, recorded as by hardware
  hartrace ctr r                         control transfer records, explained
  hartrace config show -e prog.elf       the settings in force, and why

Exit codes:
  0  clean, also when the reader of stdout went away
  1  tool or I/O failure
  2  wrong usage
  3  errors or gaps in the input, with --strict; a damaged trace, of verify
  4  a difference was found, with --check or by verify
  5  the format is unknown, or nothing could be synchronised
 10  the simulated program reported failure

Errors, warnings and gaps have codes such as HT0001 or NT0101;
`hartrace explain CODE` gives the cause and what to do.";

// Paragraphs have no line ends of their own: they are wrapped for the terminal.
const DISASM_EXAMPLES: &str = "\
The text is that of GNU objdump 2.40: `objdump -d` for ELF files, with `-M no-aliases` or \
`-M numeric` if asked for, and `objdump -D -b binary -m riscv:rv32` (or rv64) for raw ones. \
Vector, vendor and other instructions that are not decoded are the exception: they appear as \
`.4byte` where objdump prints names, and so do encodings that the manuals reserve. With @BASE the \
lowest loaded address goes there, and the symbols with it.

Examples:
  hartrace disasm prog.elf
  hartrace disasm prog.elf lib.so@0x40000000 -o listing.txt
  hartrace disasm --raw boot.bin@0x1000 --isa rv32imac_zicsr_zifencei";

const INFO_EXAMPLES: &str = "\
Examples:
  hartrace info prog.elf
  hartrace info -f json *.elf run.log
  hartrace info run.pc -e prog.elf
  xz -dc run.log.xz | hartrace info -";

const LOG_EXAMPLES: &str = "\
Lists of pcs and ingress rows need the program. So that nothing is lost, ingress rows have the \
columns trigger, halted, reset, external and lost behind those of the reference flow; missing \
steps show in lost.

Examples:
  hartrace log spike.log --to pc -o run.pc
  hartrace log run.pc -e prog.elf --to ingress -o run.csv
  hartrace log spike.log -e prog.elf --to json --hart 1 | jq .pc";

const SHOW_EXAMPLES: &str = "\
Examples:
  hartrace config show                            the defaults
  hartrace config show -c run.toml -e prog.elf    who wins
  hartrace config show --isa rv64gc > run.toml    a file to start from
  hartrace config show run prog.elf               those of a run";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  hartrace explain                  all codes and their titles
  hartrace explain HT0101           one of them
  hartrace explain | grep -i time   codes by keyword";

const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\nreads:   ELF (RV32, RV64), N-Trace (1.0, 1.0.0-rc7), E-Trace (2.0, 1.1.1-draft), tandem traces (2018-11-20), control transfer records (1.0, 0.1.4), Spike logs and CSV, pc lists, ingress CSV",
    "\nwrites:  N-Trace, E-Trace, tandem traces and control transfer records of these versions, perf brstack, llvm-profgen and AutoFDO text, disassembly, logs (pc list, Spike log, ingress CSV, JSON), file facts (text, JSON)",
    "\nruns:    bare-metal programs (RV32, RV64) on the built-in hart",
    "\nlicence: ",
    env!("CARGO_PKG_LICENSE"),
);

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "hartrace", about = ABOUT, version, long_version = LONG_VERSION)]
#[command(after_help = EXAMPLES, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) talk: TalkArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How to talk to the user; the same for every command.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Messages")]
pub(crate) struct TalkArgs {
    /// Colours in messages
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: When,
    /// Only errors on stderr
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Say more on stderr
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// A progress bar on stderr for what takes over a second
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) progress: When,
}

/// When to do something that suits terminals; `auto` is only on one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    Auto,
    Always,
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a program on the built-in hart
    #[command(after_help = run::EXAMPLES)]
    Run(Run),
    /// Disassemble a program
    #[command(after_help = DISASM_EXAMPLES)]
    Disasm(Disasm),
    /// Say what files are and what is in them
    #[command(after_help = INFO_EXAMPLES)]
    Info(Info),
    /// Write a log as another kind of log
    #[command(after_help = LOG_EXAMPLES)]
    Log(Log),
    /// Encode a log as a trace
    #[command(after_help = trace::ENCODE_EXAMPLES)]
    Encode(Encode),
    /// Show the messages, packets or groups of a trace
    #[command(after_help = trace::DUMP_EXAMPLES)]
    Dump(Dump),
    /// Reconstruct what was executed from a trace
    #[command(after_help = trace::DECODE_EXAMPLES)]
    Decode(Decode),
    /// Count what a trace is made of
    #[command(after_help = trace::STATS_EXAMPLES)]
    Stats(Stats),
    /// Write a trace as one of another format
    #[command(after_help = trace::CONVERT_EXAMPLES)]
    Convert(Convert),
    /// Check a tandem trace against the built-in hart
    #[command(after_help = verify::EXAMPLES)]
    Verify(Verify),
    /// The state at any instruction of a tandem trace, and who wrote it
    #[command(after_help = state::EXAMPLES)]
    State(State),
    /// Control transfer records: who jumped where, call stacks, profiles
    #[command(after_help = ctr::EXAMPLES)]
    Ctr(Ctr),
    /// Work with settings
    #[command(subcommand)]
    Config(Config),
    /// Explain a diagnostic: its cause and what to do
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(Explain),
    /// Write shell completions
    Completions(Completions),
    /// Write manual pages, one per command
    Man(Man),
}

/// `hartrace disasm`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Disasm {
    /// ELF files to disassemble, with load base if position-independent; `-` is stdin
    #[arg(value_name = "ELF[@BASE]")]
    pub(crate) files: Vec<String>,
    /// Instructions as they are encoded: no `ret`, `li` or `mv`, compressed ones by their own names
    #[arg(long)]
    pub(crate) no_aliases: bool,
    /// Registers by number: x10 instead of a0
    #[arg(long)]
    pub(crate) numeric: bool,
    #[command(flatten)]
    pub(crate) program: Program,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `hartrace info`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Info {
    /// Files to look at; `-` is stdin
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// How to write it
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: InfoFormat,
    /// Fail if a log has lines that cannot be read, or does not follow the program
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) program: Program,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `hartrace log`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Log {
    /// The log: pc list, Spike log or CSV, ingress CSV; `-` is stdin
    #[arg(value_name = "INPUT")]
    pub(crate) input: PathBuf,
    /// What to write
    #[arg(long, value_name = "KIND")]
    pub(crate) to: LogKind,
    /// With --to pc: also list ecall and ebreak, which do not retire
    #[arg(long)]
    pub(crate) with_trapped: bool,
    /// Mode of a log that does not tell it, such as a pc list [default: m]
    #[arg(long, value_name = "u|s|m", hide_possible_values = true)]
    pub(crate) mode: Option<ModeName>,
    /// Only this hart; pc and ingress have room for one
    #[arg(long, value_name = "N")]
    pub(crate) hart: Option<u32>,
    /// Fail if the log has lines that cannot be read, or does not follow the program
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) program: Program,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// What `log` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogKind {
    /// One pc per retired instruction, 16 digits or 8 on RV32
    Pc,
    /// Rows of the trace ingress port as CSV, by the ingress settings
    Ingress,
    /// JSON lines: a header, then one object per step
    Json,
}

/// A privilege mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeName {
    U,
    S,
    M,
}

/// How `info` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InfoFormat {
    /// For people
    Text,
    /// JSON lines: a header, then one object per file
    Json,
}

/// `hartrace config`.
#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Write the settings in force as a configuration file, with their origins
    #[command(after_help = SHOW_EXAMPLES)]
    Show(Show),
}

/// `hartrace config show`.
#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Show {
    #[command(subcommand)]
    pub(crate) of: Option<ShowOf>,
    #[command(flatten)]
    pub(crate) program: Program,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// A command whose settings are shown.
#[derive(Debug, Subcommand)]
pub(crate) enum ShowOf {
    /// The settings of a run, with the same arguments as `hartrace run`
    Run(Run),
}

/// `hartrace explain`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Explain {
    /// The code of an error, a warning or a gap, such as HT0101 or NT0301; without it, all codes
    /// are listed
    #[arg(value_name = "CODE", value_parser = manual::find)]
    pub(crate) code: Option<Section>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `hartrace completions`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `hartrace man`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Man {
    /// The folder to write to; created if it does not exist
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}

/// What the code is; the same for every command that needs a program.
#[derive(Debug, Default, ClapArgs)]
#[command(next_help_heading = "Program")]
pub(crate) struct Program {
    /// ELF file, with load base if position-independent; repeatable
    #[arg(short, long, value_name = "FILE[@BASE]")]
    pub(crate) elf: Vec<String>,
    /// Raw binary and the address of its first byte; repeatable
    #[arg(long, value_name = "FILE@BASE")]
    pub(crate) raw: Vec<String>,
    /// Instruction set, such as rv64gc_zba [default: what the ELF file says]
    #[arg(long, value_name = "ISA")]
    pub(crate) isa: Option<String>,
    /// Configuration file; repeatable, later ones win
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,
}

/// Where the result goes.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Output")]
pub(crate) struct Output {
    /// Write to this file, all at once at the end; `-` is stdout
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
}
