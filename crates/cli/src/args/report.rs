//! The arguments of `report`.

use super::views::{Sources, Traced};
use super::{Output, Part};
use clap::Args as ClapArgs;
use hartrace_capture::quantity::parse_count;
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

/// `hartrace report`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Report {
    /// The trace or log; `-` is stdin
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// Another one, which is compared with the first
    #[arg(value_name = "TRACE2")]
    pub(crate) other: Option<PathBuf>,
    /// Start at this point of the trace
    #[arg(long, value_name = "POINT")]
    pub(crate) from: Option<String>,
    /// Stop before this point, the first one after the start; the rest is not decoded
    #[arg(long, value_name = "POINT")]
    pub(crate) until: Option<String>,
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

impl Report {
    /// The part of the trace, as `decode` has it.
    pub(crate) fn part(&self) -> Part {
        Part {
            from: self.from.clone(),
            until: self.until.clone(),
            ..Part::default()
        }
    }
}

/// A number of bytes: a page has a few hundred thousand by itself.
fn size(text: &str) -> Result<u64, String> {
    match parse_count(text) {
        Some(bytes) if bytes >= 1_000_000 => Ok(bytes),
        Some(_) => Err("a page has at least 1M bytes".to_owned()),
        None => Err("write a number such as 20000000 or 20M".to_owned()),
    }
}
