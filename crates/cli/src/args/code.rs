//! The arguments of `code`.

use super::Program;
use clap::Args as ClapArgs;
use hartrace_capture::code_history::ContextOf;
use hartrace_capture::program::parse_address;
use hartrace_flow::Context;
use std::path::PathBuf;

// Paragraphs have no line ends of their own: they are wrapped for the terminal.
pub(super) const EXAMPLES: &str = "\
A code history tells a decoder which code was where, and when it changed; `run` writes one by \
itself. This command makes one of what other tools know: programs and raw memory (-e, --raw), core \
files, the side-band of Linux perf, and lists of patches, one in each line: an address, the new \
bytes, and from when on. All of them can be combined. Give the history to the other commands with \
--code. docs/code-history.md describes all of it.

Examples:
  hartrace code -e vmlinux --patches boot.patches -o boot.code
  hartrace code --raw memory.bin@0x80000000 -o memory.code
  hartrace code --perf perf.data --vmlinux vmlinux --sysroot /srv/root -o system.code
  hartrace code --perf perf.data --core kcore --context 312=5 --context 313=6 -o two.code
  hartrace decode trace.ntrace --code boot.code";

/// `hartrace code`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Code {
    /// List of patches: lines such as `0x80000034 6f008000 was 13000000 time 5120`; repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) patches: Vec<PathBuf>,
    /// Linux perf data: mappings, and what the kernel patched; repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) perf: Vec<PathBuf>,
    /// Memory dump: an ELF core file such as a copy of /proc/kcore, of a context or of all;
    /// repeatable
    #[arg(long, value_name = "FILE[=CONTEXT]", value_parser = core)]
    pub(crate) core: Vec<(PathBuf, Option<Context>)>,
    /// With --perf: the kernel's ELF file
    #[arg(long, value_name = "FILE", requires = "perf")]
    pub(crate) vmlinux: Option<PathBuf>,
    /// With --perf: folder with the files of the target; repeatable [default: /]
    #[arg(long, value_name = "DIR", requires = "perf")]
    pub(crate) sysroot: Vec<PathBuf>,
    /// With --perf: the context of a process; PID alone: this process only, in any context;
    /// `pid`: contexts are the numbers of processes; repeatable
    #[arg(long, value_name = "PID[=CONTEXT]", requires = "perf", value_parser = context)]
    pub(crate) context: Vec<ContextOf>,
    /// With --perf: ticks of the trace's timestamps in a second [default: as perf.data says, or
    /// 1000000000]
    #[arg(long, value_name = "HZ", requires = "perf")]
    pub(crate) time_frequency: Option<u64>,
    /// With --perf: time of perf at which the trace's timestamps are 0, in nanoseconds
    #[arg(long, value_name = "NS", requires = "perf", default_value = "0")]
    pub(crate) time_zero: u64,
    /// Times of changes are known within so many units of the trace's timestamps: in between,
    /// the code is in doubt
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) time_slack: u64,
    /// Write the code history to this file, which appears when complete
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) program: Program,
}

fn core(text: &str) -> Result<(PathBuf, Option<Context>), String> {
    let split = text.rsplit_once('=');
    let with = split.and_then(|(file, context)| Some((file, parse_address(context)?)));
    match with {
        Some((file, context)) if !file.is_empty() => Ok((file.into(), Some(Context(context)))),
        _ if text.is_empty() => Err("the file name is missing".to_owned()),
        _ => Ok((text.into(), None)),
    }
}

fn context(text: &str) -> Result<ContextOf, String> {
    let number = |text: &str| {
        let number = parse_address(text).ok_or_else(|| format!("`{text}` is no number"));
        number.map(Context)
    };
    let process = |text: &str| {
        let bad = |_| format!("`{text}` is no process");
        number(text).and_then(|pid| u32::try_from(pid.0).map_err(bad))
    };
    match text.split_once('=') {
        None if text == "pid" => Ok(ContextOf::Pid),
        None => Ok(ContextOf::Only(process(text)?)),
        Some((pid, context)) => Ok(ContextOf::Process(process(pid)?, number(context)?)),
    }
}
