//! The command line as typed: commands, flags and their help.

mod code;
mod compare;
mod ctr;
mod report;
mod run;
mod state;
mod system;
mod trace;
mod verify;
mod views;

pub(crate) use code::Code;
pub(crate) use compare::{Compare, CompareFormat};
pub(crate) use ctr::{Ctr, CtrFormat};
pub(crate) use report::{Report, Timeline, TimelineFormat, View};
pub(crate) use run::{FilesSpec, LogSpec, Machine, MachineName, Run, RunLog, YesNo, is_stdout};
pub(crate) use state::{State, StateFormat};
pub(crate) use system::{Console, DiskWrites, System};
pub(crate) use trace::{
    Container, Convert, Decode, DecodeFormat, Dump, DumpFormat, Encode, Part, Stats, StatsFormat,
    Transport,
};
pub(crate) use verify::{Mark, Verify, VerifyFormat};
pub(crate) use views::{
    Branches, BranchesFormat, Calls, CallsFormat, CostName, Coverage, CoverageBy, CoverageFormat,
    CoverageKind, Diff, DiffFormat, Flamegraph, GroupBy, Interrupts, InterruptsFormat, Profile,
    ProfileFormat, ProfileOf, Sources, Traced,
};

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use hartrace_capture::config::Form;
use hartrace_capture::detect::Kind;
use hartrace_capture::program::parse_address;
use hartrace_isa::Dialect;
use hartrace_print::manual::{self, Section};
use std::ffi::OsString;
use std::path::PathBuf;

const ABOUT: &str = "The RISC-V trace toolkit";

const EXAMPLES: &str = "\
Examples:
  hartrace compare prog.elf              compare all trace formats and options
  hartrace run prog.elf                  run a program on the built-in hart
  hartrace run prog.elf --log pc=run.pc  run it and log every pc
  hartrace disasm prog.elf               disassemble a program
  hartrace info prog.elf run.log         identify files
  hartrace info run.pc -e prog.elf       summarise a run
  hartrace log spike.log --to pc         convert a log
  hartrace run prog.elf --trace ntrace=t run a program and trace it
  hartrace decode t -e prog.elf          list the instructions of a trace
  hartrace code -e v --patches p -o c    describe code that changed
  hartrace dump t                        list the messages of a trace
  hartrace convert t --to etrace -o u    convert a trace to another format
  hartrace profile t -e prog.elf         see where the time went
  hartrace calls t -e prog.elf           see who calls what
  hartrace coverage t -e prog.elf        see which code ran
  hartrace interrupts t -e prog.elf      see how long interrupts took
  hartrace timeline t -o t.pftrace       see what happened when, in Perfetto
  hartrace report t -o t.html            look at all of it in a browser
  hartrace view t -e prog.elf            the same for a trace of any size
  hartrace diff t u -e prog.elf          see where two runs differ
  hartrace verify t -e prog.elf          check a tandem trace
  hartrace state t --at 5000             show the registers at an instruction
  hartrace run prog.elf --trace ctr=r    record the last jumps, as hardware does
  hartrace ctr r                         show control transfer records
  hartrace export t -o tables            write Parquet tables, for other tools
  hartrace sql \"SELECT ...\" t            query a trace
  hartrace config show -e prog.elf       show the settings in effect

Exit codes:
  0  success, also when the reader of stdout closes the pipe
  1  the tool failed, an I/O error occurred, or the command was interrupted
  2  wrong usage
  3  the input has errors or gaps (with --strict); verify: a damaged trace
  4  a difference was found (--check, compare, diff, verify), or coverage is low
  5  unknown format, or no synchronisation point found
 10  the simulated program reported failure

Errors, warnings and gaps have codes such as HT0001 or NT0101;
`hartrace explain CODE` gives the cause and what to do.";

// Paragraphs have no line ends of their own: they are wrapped for the terminal.
const DISASM_EXAMPLES: &str = "\
The output matches GNU objdump: `objdump -d` for ELF files, with `-M no-aliases` or `-M numeric` \
on request, and `objdump -D -b binary -m riscv:rv32` (or rv64) for raw binaries. Version 2.45 \
differs in a few names, such as `addi` for `add` with a number, and in unknown instructions, which \
are `.insn` rather than `.4byte`. Instructions of vendors and reserved encodings are printed as \
numbers where objdump may print a name. @BASE moves the lowest loaded address, and the symbols \
with it, to BASE.

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
Pc lists and ingress rows contain no instructions, so the program is needed to read them. Ingress \
rows have five columns more than those of the reference flow: trigger, halted, reset, external and \
lost. Lost steps are marked in the last one.

Examples:
  hartrace log spike.log --to pc -o run.pc
  hartrace log run.pc -e prog.elf --to ingress -o run.csv
  hartrace log spike.log -e prog.elf --to json --hart 1 | jq .pc";

const SHOW_EXAMPLES: &str = "\
Examples:
  hartrace config show                            the defaults
  hartrace config show -c run.toml -e prog.elf    a file combined with flags
  hartrace config show --isa rv64gc > run.toml    a file to start from
  hartrace config show run prog.elf               the settings of a run";

const CONVERT_EXAMPLES: &str = "\
The form of a file is detected by its content. TOML holds all settings; scf and registers hold \
the parameters of an encoder, ucf its modes. Commands with -c read files of every form.

Examples:
  hartrace config convert hw.scf e.ucf --to toml -o chip.toml
  hartrace config convert chip.toml --to ipxact -o chip.xml
  hartrace config convert --registers 0x3181d000000000,0x3020c01f --to scf
  hartrace config convert layout.xml --registers 0x13,0x70 --to toml";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  hartrace explain                  list all codes and their titles
  hartrace explain HT0101           explain one code
  hartrace explain | grep -i time   find a code by keyword";

const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\nreads:   ELF (RV32, RV64), N-Trace (1.0, 1.0.0-rc7), E-Trace (2.0, 1.1.1-draft), tandem traces (2018-11-20), control transfer records (1.0, 0.1.4), Spike logs and CSV, pc lists, ingress CSV",
    "\nwrites:  N-Trace, E-Trace, tandem traces and control transfer records of these versions, perf brstack, llvm-profgen and AutoFDO text, timelines (Perfetto, Chrome, FST, CTF 2), disassembly, logs (pc list, Spike log, ingress CSV, JSON), file facts (text, JSON)",
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

/// Flags for messages, the same for every command.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Messages")]
pub(crate) struct TalkArgs {
    /// Use colours in messages and listings
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: When,
    /// Print only errors on stderr
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Print more details on stderr
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Show a progress bar on stderr for work longer than a second
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) progress: When,
}

/// When to use a feature of terminals; `auto`: when stderr is a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    Auto,
    Always,
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compare the sizes and bandwidths of all trace formats and options
    #[command(after_help = compare::EXAMPLES)]
    Compare(Compare),
    /// Run a program on the built-in hart
    #[command(after_help = run::EXAMPLES)]
    Run(Run),
    /// Disassemble a program
    #[command(after_help = DISASM_EXAMPLES)]
    Disasm(Disasm),
    /// Identify files and summarise their contents
    #[command(after_help = INFO_EXAMPLES)]
    Info(Info),
    /// Convert a log to another kind of log
    #[command(after_help = LOG_EXAMPLES)]
    Log(Log),
    /// Encode a log as a trace
    #[command(after_help = trace::ENCODE_EXAMPLES)]
    Encode(Encode),
    /// Make a code history: which code was where, and when it changed
    #[command(after_help = code::EXAMPLES)]
    Code(Code),
    /// Show the messages, packets or groups of a trace
    #[command(after_help = trace::DUMP_EXAMPLES)]
    Dump(Dump),
    /// List the executed instructions of a trace or log
    #[command(after_help = trace::DECODE_EXAMPLES)]
    Decode(Decode),
    /// Print statistics of a trace
    #[command(after_help = trace::STATS_EXAMPLES)]
    Stats(Stats),
    /// Convert a trace to another format
    #[command(after_help = trace::CONVERT_EXAMPLES)]
    Convert(Convert),
    /// Count what every function, line and instruction cost, exactly
    #[command(after_help = views::PROFILE_EXAMPLES)]
    Profile(Profile),
    /// Show the tree of calls, and how long calls took
    #[command(after_help = views::CALLS_EXAMPLES)]
    Calls(Calls),
    /// Show which code ran: instructions, branches, lines and functions
    #[command(after_help = views::COVERAGE_EXAMPLES)]
    Coverage(Coverage),
    /// Show which way branches went, targets of indirect jumps, and rounds of loops
    #[command(after_help = views::BRANCHES_EXAMPLES)]
    Branches(Branches),
    /// Show how long interrupts took, and what they interrupted
    #[command(after_help = views::INTERRUPTS_EXAMPLES)]
    Interrupts(Interrupts),
    /// Show where two runs differ
    #[command(after_help = views::DIFF_EXAMPLES)]
    Diff(Diff),
    /// Draw call paths as a flame graph (SVG)
    #[command(after_help = views::FLAMEGRAPH_EXAMPLES)]
    Flamegraph(Flamegraph),
    /// Write all views of a trace as one HTML page
    #[command(after_help = report::EXAMPLES)]
    Report(Report),
    /// Look at a trace of any size in a browser
    #[command(after_help = report::VIEW_EXAMPLES)]
    View(View),
    /// Write calls, traps and threads over time for Perfetto and other viewers
    #[command(after_help = report::TIMELINE_EXAMPLES)]
    Timeline(Timeline),
    /// Check a tandem trace against the built-in hart
    #[command(after_help = verify::EXAMPLES)]
    Verify(Verify),
    /// Show registers and memory at any instruction of a tandem trace
    #[command(after_help = state::EXAMPLES)]
    State(State),
    /// Report on control transfer records: jumps, call stacks, profiles
    #[command(after_help = ctr::EXAMPLES)]
    Ctr(Ctr),
    /// Write traces as Parquet tables (program hartrace-export)
    #[command(disable_help_flag = true)]
    Export(Installed),
    /// Query traces with SQL (program hartrace-sql)
    #[command(disable_help_flag = true)]
    Sql(Installed),
    /// Divide SQL queries among executors (program hartrace-cluster)
    #[command(disable_help_flag = true)]
    Scheduler(Installed),
    /// Run parts of SQL queries for a scheduler (program hartrace-cluster)
    #[command(disable_help_flag = true)]
    Executor(Installed),
    /// Show the settings, and convert them
    #[command(subcommand)]
    Config(Config),
    /// Explain a diagnostic code
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(Explain),
    /// Write shell completions
    Completions(Completions),
    /// Write manual pages, one per command
    Man(Man),
}

/// A command that is a program of its own: `hartrace export` starts `hartrace-export`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Installed {
    /// Arguments of the program; --help shows them
    #[arg(
        value_name = "ARGS",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub(crate) args: Vec<OsString>,
}

/// `hartrace disasm`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Disasm {
    /// ELF files to disassemble, with a load base if position-independent; `-` is stdin
    #[arg(value_name = "ELF[@BASE]")]
    pub(crate) files: Vec<OsString>,
    /// Print base instructions instead of aliases such as `ret`, `li` and `mv`, and compressed
    /// instructions by their own names
    #[arg(long)]
    pub(crate) no_aliases: bool,
    /// Print registers by number: x10 instead of a0
    #[arg(long)]
    pub(crate) numeric: bool,
    /// Print as this version of GNU objdump does
    #[arg(long, value_name = "VERSION", default_value = "2.40")]
    pub(crate) objdump: Objdump,
    #[command(flatten)]
    pub(crate) program: Program,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// A version of GNU objdump.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Objdump {
    #[value(name = "2.40")]
    V2_40,
    #[value(name = "2.45")]
    V2_45,
}

impl Objdump {
    pub(crate) fn dialect(self) -> Dialect {
        match self {
            Objdump::V2_40 => Dialect::Binutils240,
            Objdump::V2_45 => Dialect::Binutils245,
        }
    }
}

/// `hartrace info`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Info {
    /// Files to identify; `-` is stdin
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: InfoFormat,
    /// Fail if a log has unreadable lines or does not match the program
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
    /// The log of a simulator or core, pc list or ingress CSV; `-` is stdin
    #[arg(value_name = "INPUT")]
    pub(crate) input: PathBuf,
    /// Kind of log to write
    #[arg(long, value_name = "KIND")]
    pub(crate) to: LogKind,
    /// With --to pc: also list ecall and ebreak, which trap and do not retire
    #[arg(long)]
    pub(crate) with_trapped: bool,
    /// Privilege mode for logs that do not record it, such as pc lists [default: m]
    #[arg(long, value_name = "u|s|m", hide_possible_values = true)]
    pub(crate) mode: Option<ModeName>,
    /// Only this hart; required for pc and ingress if the log has several harts
    #[arg(long, value_name = "N")]
    pub(crate) hart: Option<u32>,
    /// Fail if the log has unreadable lines or does not match the program
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) program: Program,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// The kinds of log that `log` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogKind {
    /// One pc per retired instruction, 16 digits or 8 on RV32
    Pc,
    /// Commits as `spike --log-commits` writes them, from a log that has them
    Spike,
    /// Rows of the trace ingress port as CSV, as set in `[ingress]`
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

/// The output formats of `info`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InfoFormat {
    /// Human-readable text
    Text,
    /// JSON lines: a header, then one object per file
    Json,
}

/// `hartrace config`.
#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Write the settings in effect as a configuration file, with the origin of each
    #[command(after_help = SHOW_EXAMPLES)]
    Show(Box<Show>),
    /// Convert the parameters of an E-Trace encoder to another form
    #[command(after_help = CONVERT_EXAMPLES)]
    Convert(ConvertConfig),
}

/// `hartrace config convert`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ConvertConfig {
    /// Files in any of the forms; later files override earlier ones; `-` is stdin
    #[arg(value_name = "FILE", required_unless_present = "registers")]
    pub(crate) files: Vec<PathBuf>,
    /// Form to write
    #[arg(long, value_name = "FORM")]
    pub(crate) to: ConfigForm,
    /// Values of discovery_info_0 and discovery_info_1; an IP-XACT file says where their fields
    /// are [default: as in the specification]
    #[arg(long, value_name = "VALUE,VALUE", value_parser = register_values)]
    pub(crate) registers: Option<[u64; 2]>,
    /// Instruction set, for the width of addresses where no file gives it [default: rv64gc]
    #[arg(long, value_name = "ISA")]
    pub(crate) isa: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// The forms of the parameters of an encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConfigForm {
    /// A configuration file of hartrace
    Toml,
    /// Lines `name_p=value`: parameters, as in the reference flow
    Scf,
    /// Lines `name = value`: modes, as in the reference flow
    Ucf,
    /// The discovery registers with their values as IP-XACT
    Ipxact,
    /// The values of the two discovery registers
    Registers,
}

impl ConfigForm {
    /// The form, and what people call it.
    pub(crate) const fn form(self) -> (Form, &'static str) {
        match self {
            ConfigForm::Toml => (Form::Toml, "a configuration"),
            ConfigForm::Scf => (Form::Scf, "an .scf file"),
            ConfigForm::Ucf => (Form::Ucf, "a .ucf file"),
            ConfigForm::Ipxact => (Form::Ipxact, "an IP-XACT description"),
            ConfigForm::Registers => (Form::Registers, "a pair of discovery registers"),
        }
    }
}

/// Two numbers with a comma between them.
fn register_values(text: &str) -> Result<[u64; 2], String> {
    let numbers = text.split(',').map(|n| parse_address(n.trim()));
    let numbers: Option<Vec<u64>> = numbers.collect();
    match numbers.as_deref() {
        Some(&[low, high]) => Ok([low, high]),
        _ => Err("expected two numbers such as 0x3181d000000000,0x3020c01f".to_owned()),
    }
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

/// The command whose settings are shown.
#[derive(Debug, Subcommand)]
pub(crate) enum ShowOf {
    /// Show the settings of a run; takes the arguments of `hartrace run`
    Run(Run),
}

/// `hartrace explain`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Explain {
    /// Code of an error, a warning or a gap, such as HT0101 or NT0301; without it, all codes
    /// are listed
    #[arg(value_name = "CODE", value_parser = manual::find)]
    pub(crate) code: Option<Section>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `hartrace completions`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Completions {
    /// Shell to write completions for
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `hartrace man`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Man {
    /// Directory to write to; created if it does not exist
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}

/// The program; the same for every command that needs one.
#[derive(Debug, Default, ClapArgs)]
#[command(next_help_heading = "Program")]
pub(crate) struct Program {
    /// ELF file, with a load base if position-independent; repeatable
    #[arg(short, long, value_name = "FILE[@BASE]")]
    pub(crate) elf: Vec<OsString>,
    /// Raw binary, loaded at address BASE; repeatable
    #[arg(long, value_name = "FILE@BASE")]
    pub(crate) raw: Vec<OsString>,
    /// Code history: the code that ran, and when it changed; repeatable [default: that
    /// of the trace]
    #[arg(long, value_name = "FILE")]
    pub(crate) code: Vec<PathBuf>,
    /// Folder with debug files, for programs without symbols or lines; repeatable
    #[arg(long, value_name = "DIR")]
    pub(crate) debug_dir: Vec<PathBuf>,
    /// Instruction set, such as rv64gc_zba [default: from the ELF file]
    #[arg(long, value_name = "ISA")]
    pub(crate) isa: Option<String>,
    /// Format of the log, if it is not recognised by itself: spike, sail, ibex or another
    /// of docs/logs.md
    #[arg(long, value_name = "FORMAT", value_parser = log_format)]
    pub(crate) log_format: Option<Kind>,
    /// Configuration file; repeatable, later files override earlier ones
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,
}

/// A format of logs by its word.
fn log_format(word: &str) -> Result<Kind, String> {
    Kind::log_named(word).ok_or_else(|| {
        let words: Vec<_> = Kind::log_words().collect();
        format!("the formats are {}", words.join(", "))
    })
}

/// Where the output goes.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Output")]
pub(crate) struct Output {
    /// Write to this file, which appears when complete; `-` is stdout
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
}
