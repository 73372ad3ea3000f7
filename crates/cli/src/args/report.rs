//! The arguments of `report`, `view` and `timeline`.

use super::views::{Sources, Traced};
use super::{Output, Part};
use clap::{Args as ClapArgs, ValueEnum};
use hartrace_analyze::Timescale;
use hartrace_capture::quantity::{parse_count, parse_size};
use std::path::PathBuf;

// Paragraphs have no line ends of their own: they are wrapped for the terminal.
pub(super) const EXAMPLES: &str = "\
The page has a timeline of calls, traps and interrupts, a flame graph, tables of functions, \
branches and interrupts, source text and code with counts, the last instructions, and statistics \
of the trace. It is one file that needs no network. Long traces are summarised, and the page says \
what was left out. With two traces it compares the second with the first. See docs/views.md.

Examples:
  hartrace report run.ntrace -e prog.elf -o run.html
  hartrace report old.ntrace new.ntrace -o change.html
  hartrace report run.etrace --from main --until trap#3 -o part.html
  hartrace report run.ntrace --source-dir src -o run.html";

pub(super) const VIEW_EXAMPLES: &str = "\
The page is that of `hartrace report`, but shows every detail: what is looked at is decoded when \
it is asked for. The first time a trace is opened, all of it is decoded once, and an index is kept \
in the cache directory ($XDG_CACHE_HOME or ~/.cache) for the next time. The server can be reached \
from this machine only, and only with the address that is printed, which has a secret in it. It \
ends with Ctrl-C. See docs/views.md.

Examples:
  hartrace view run.ntrace -e prog.elf
  hartrace view run.ntrace --open
  hartrace view run.ntrace --port 8080 --index run.index";

pub(super) const TIMELINE_EXAMPLES: &str = "\
A file for ui.perfetto.dev, or for other viewers with -f chrome. Each thread of each hart has a \
track with its calls and traps. -f fst writes waveforms for GTKWave and Surfer, with the pc, the \
function, the trap and other signals of each hart; -f ctf a directory for Trace Compass and \
babeltrace2. Positions are times where the trace has timestamps, and otherwise numbers of \
instructions; without --timescale, the viewer shows each unit as a nanosecond, or with -f chrome \
as a microsecond. Of a long trace, short slices are left out, so that a viewer can open the file. \
See docs/views.md.

Examples:
  hartrace timeline run.ntrace -e prog.elf -o run.pftrace
  hartrace timeline run.ntrace --from main --until trap#3 -o part.pftrace
  hartrace timeline run.etrace --min-duration 1000 --max-depth 20 -o run.pftrace
  hartrace timeline run.ntrace --split 500M -o run.pftrace
  hartrace timeline run.ntrace -f chrome -o run.json
  hartrace timeline run.ntrace -f fst --timescale 100MHz -o run.fst
  hartrace timeline run.ntrace -f ctf -o run.ctf";

/// A part of a trace, from one point to another.
#[derive(Debug, ClapArgs)]
pub(crate) struct Between {
    /// Start at this point of the trace
    #[arg(long, value_name = "POINT")]
    pub(crate) from: Option<String>,
    /// Stop before this point, the first one after the start; the rest is not decoded
    #[arg(long, value_name = "POINT")]
    pub(crate) until: Option<String>,
}

impl Between {
    /// The same as `decode` has it.
    pub(crate) fn part(&self) -> Part {
        Part {
            from: self.from.clone(),
            until: self.until.clone(),
            ..Part::default()
        }
    }

    /// Whether anything is left out.
    pub(crate) const fn is_part(&self) -> bool {
        self.from.is_some() || self.until.is_some()
    }
}

/// `hartrace timeline`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Timeline {
    /// The trace or log; `-` is stdin
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "perfetto")]
    pub(crate) format: TimelineFormat,
    #[command(flatten)]
    pub(crate) between: Between,
    /// Leave out calls and traps that are shorter: units of time if the trace has timestamps,
    /// instructions otherwise [default: 0, more for a long trace]
    #[arg(long, value_name = "N", value_parser = duration)]
    pub(crate) min_duration: Option<u64>,
    /// Leave out calls and traps inside so many others
    #[arg(long, value_name = "N")]
    pub(crate) max_depth: Option<usize>,
    /// Write several files of about this size, run-001.pftrace and so on, one after the other in
    /// time; nothing is left out then unless --min-duration is given
    #[arg(long, value_name = "BYTES", value_parser = part_size)]
    pub(crate) split: Option<u64>,
    /// The length of a unit of time of the trace, such as 10ns, or the frequency of its clock,
    /// such as 100MHz
    #[arg(long, value_name = "UNIT", value_parser = timescale)]
    pub(crate) timescale: Option<Timescale>,
    /// Warn before a file with more bytes is written [default: 2G, with -f chrome 512M: what
    /// viewers open]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) warn_above: Option<u64>,
    #[command(flatten)]
    pub(crate) traced: Traced,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// A number of units or instructions.
fn duration(text: &str) -> Result<u64, String> {
    parse_count(text).ok_or_else(|| "write a number such as 500 or 10k".to_owned())
}

/// The length of a unit.
fn timescale(text: &str) -> Result<Timescale, String> {
    Timescale::parse(text).ok_or_else(|| "write a length or a frequency: 10ns, 100MHz".to_owned())
}

/// A number of bytes.
fn bytes(text: &str) -> Result<u64, String> {
    parse_size(text).ok_or_else(|| "write a number such as 500000 or 500M".to_owned())
}

/// The size of one of several files.
fn part_size(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        size if size < 4096 => Err("a file has at least 4K bytes".to_owned()),
        size => Ok(size),
    }
}

/// The output formats of `timeline`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimelineFormat {
    /// Perfetto's own: track events
    Perfetto,
    /// Chrome's trace event format, JSON
    Chrome,
    /// Waveforms for GTKWave and Surfer
    Fst,
    /// CTF 2 for Trace Compass and babeltrace2: a directory
    Ctf,
}

/// `hartrace view`.
#[derive(Debug, ClapArgs)]
pub(crate) struct View {
    /// The trace or log; `-` is stdin
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// Port of the loopback address to listen on; 0: any free one
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) port: u16,
    /// Open the page in the browser of the desktop
    #[arg(long)]
    pub(crate) open: bool,
    /// Keep the index in this file [default: one in the cache directory]
    #[arg(long, value_name = "FILE")]
    pub(crate) index: Option<PathBuf>,
    /// Calls and traps in the index at most; the rest is decoded when it is looked at
    #[arg(long, value_name = "N", default_value = "1M", value_parser = slices)]
    pub(crate) slices: usize,
    #[command(flatten)]
    pub(crate) sources: Sources,
    #[command(flatten)]
    pub(crate) traced: Traced,
}

/// A number of slices.
fn slices(text: &str) -> Result<usize, String> {
    let count = parse_count(text).and_then(|count| usize::try_from(count).ok());
    match count.filter(|count| (100..=16_000_000).contains(count)) {
        Some(count) => Ok(count),
        None => Err("write a number from 100 to 16M".to_owned()),
    }
}

/// `hartrace report`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Report {
    /// The trace or log; `-` is stdin
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// Another one, which is compared with the first
    #[arg(value_name = "TRACE2")]
    pub(crate) other: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) between: Between,
    /// The page has at most so many bytes; more is left out then
    #[arg(long, value_name = "BYTES", default_value = "20M", value_parser = size)]
    pub(crate) max_size: u64,
    #[command(flatten)]
    pub(crate) sources: Sources,
    #[command(flatten)]
    pub(crate) traced: Traced,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// A number of bytes: a page has a few hundred thousand by itself.
fn size(text: &str) -> Result<u64, String> {
    match parse_count(text) {
        Some(bytes) if bytes >= 1_000_000 => Ok(bytes),
        Some(_) => Err("a page has at least 1M bytes".to_owned()),
        None => Err("write a number such as 20000000 or 20M".to_owned()),
    }
}
