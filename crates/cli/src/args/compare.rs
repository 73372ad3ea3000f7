//! The arguments of `hartrace compare`.

use super::{Machine, ModeName, Output, run};
use clap::{Args as ClapArgs, ValueEnum};
use hartrace_capture::compare::{Bandwidth, OutputModel};
use hartrace_capture::quantity::parse_size;
use std::ffi::OsString;
use std::path::PathBuf;

// Paragraphs have no line ends of their own: they are wrapped for the terminal.
pub(super) const EXAMPLES: &str = "\
The program runs once, or the log is read once. Every encoder encodes it with each set of useful \
options; each trace is decoded again and compared with the run. All other settings are those of \
the configuration. The output of the program is not shown. Bandwidths are in bytes per 1000 \
cycles: the mean of the whole run, and the most in any 1000 consecutive cycles.

Which trace fits the output of a chip?
  --target-bandwidth BW  How deep must the buffer before this output be?
                         Shows the load of the output, and the depth with
                         which the buffer never overflows.
  --buffer BYTES         How fast must the output of this buffer be? Shows
                         the bits per cycle, and the pins (1, 2, 4, 8 or 16),
                         with which the buffer never overflows.
  both                   Also shows how often that buffer overflows.

Bandwidths:
  0.5bits                half a bit per cycle of the hart
  0.25bytes              a quarter of a byte per cycle
  4pins                  four pins, one bit per cycle each
  4pins@0.2              four pins at a fifth of the hart's clock

Examples:
  hartrace compare prog.elf
  hartrace compare spike.log -e prog.elf
  hartrace compare prog.elf --max-insns 10M -f md -o table.md
  hartrace compare prog.elf --target-bandwidth 4pins@0.1
  hartrace compare prog.elf --buffer 512,4K
  hartrace compare prog.elf -f json | jq -r .settings";

/// `hartrace compare`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Compare {
    /// Bare-metal ELF file to run, or a log of a run; `-` is stdin: with -e a log
    #[arg(value_name = "PROG|LOG")]
    pub(crate) input: PathBuf,
    /// Arguments for the program; put `--` before them if one starts with a dash
    #[arg(value_name = "ARGS")]
    pub(crate) args: Vec<OsString>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: CompareFormat,
    /// Bandwidth of the chip's trace output, such as 0.5bits, 0.25bytes, 4pins or 4pins@0.2: show
    /// how deep its buffer must be
    #[arg(long, value_name = "BW")]
    pub(crate) target_bandwidth: Option<Bandwidth>,
    /// Depth of the buffer before the trace output, such as 512 or 4K; several with commas: show
    /// how fast the output must be [default with --target-bandwidth: 1024]
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = depth)]
    pub(crate) buffer: Vec<u32>,
    /// Stop after N instructions: 1000000, 10M, 1G
    #[arg(long, value_name = "N", value_parser = run::count)]
    pub(crate) max_insns: Option<u64>,
    /// Privilege mode for logs that do not record it, such as pc lists [default: m]
    #[arg(long, value_name = "u|s|m", hide_possible_values = true)]
    pub(crate) mode: Option<ModeName>,
    /// The hart to compare, if the log has several
    #[arg(long, value_name = "N")]
    pub(crate) hart: Option<u32>,
    /// Fail if the log has unreadable lines or does not match the program
    #[arg(long)]
    pub(crate) strict: bool,
    /// Number of encoding threads [default: the number of cores]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Program of the log as an ELF file, with a load base if position-independent; repeatable
    #[arg(short, long, value_name = "FILE[@BASE]", help_heading = "Program")]
    pub(crate) elf: Vec<OsString>,
    /// Program of the log as a raw binary, loaded at address BASE; repeatable
    #[arg(long, value_name = "FILE@BASE", help_heading = "Program")]
    pub(crate) raw: Vec<OsString>,
    #[command(flatten)]
    pub(crate) machine: Machine,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// The output formats of `compare`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompareFormat {
    /// Tables; on a terminal with bars
    Text,
    /// JSON lines: a header, then one object per trace
    Json,
    /// One line per trace
    Csv,
    /// Tables in Markdown
    Md,
}

impl Compare {
    /// The output that the traces are to fit.
    pub(crate) fn output_model(&self) -> OutputModel {
        let usual: &[u32] = match self.target_bandwidth {
            Some(_) if self.buffer.is_empty() => &[1024],
            _ => &self.buffer,
        };
        OutputModel {
            bandwidth: self.target_bandwidth,
            depths: usual.to_vec(),
        }
    }
}

/// `512`, `4K`: in units of 1024.
fn depth(text: &str) -> Result<u32, String> {
    let least = OutputModel::LEAST;
    let bytes = parse_size(text).and_then(|bytes| u32::try_from(bytes).ok());
    match bytes {
        None => Err("write a number of bytes such as 512 or 4K".to_owned()),
        Some(bytes) if bytes < least => Err(format!(
            "an encoder needs room for two of its longest messages: {least} bytes"
        )),
        Some(bytes) => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::depth;

    #[test]
    fn depths_are_in_units_of_1024() {
        for (text, bytes) in [("512", 512), ("1K", 1024), ("4KiB", 4096), ("1M", 1 << 20)] {
            assert_eq!(depth(text), Ok(bytes), "{text}");
        }
        for text in ["", "2KK", "16", "4G"] {
            assert!(depth(text).is_err(), "{text}");
        }
    }
}
