//! The values that every form shows.

use super::Report;
use hartrace_capture::compare::{Buffer, Row};
use hartrace_capture::trace::WINDOW;
use serde::Serialize;

/// The first line of JSON.
#[derive(Serialize)]
pub(super) struct Header<'a> {
    r#type: &'static str,
    schema: &'static str,
    version: u32,
    file: &'a str,
    instructions: u64,
    traced: u64,
    cycles: u64,
    /// Whether cycles are those of the source, not counted instructions.
    timed: bool,
    /// Bits per cycle.
    #[serde(skip_serializing_if = "Option::is_none")]
    target_bandwidth: Option<f64>,
}

impl<'a> Header<'a> {
    pub(super) fn new(report: &'a Report<'_>) -> Header<'a> {
        Header {
            r#type: "header",
            schema: "hartrace-compare",
            version: 1,
            file: &report.file,
            instructions: report.compared.instructions,
            traced: report.compared.traced,
            cycles: report.compared.cycles,
            timed: report.timed,
            target_bandwidth: report.output.bandwidth.map(|b| b.bits()),
        }
    }
}

/// An option set.
#[derive(Serialize)]
pub(super) struct Line<'a> {
    r#type: &'static str,
    pub(super) format: &'static str,
    pub(super) options: &'a str,
    /// A configuration file.
    settings: String,
    pub(super) messages: u64,
    pub(super) bytes: u64,
    pub(super) bits_per_instruction: f64,
    /// Bytes per [`WINDOW`] cycles.
    pub(super) mean: f64,
    pub(super) peak: u64,
    pub(super) verified: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<String>,
    /// The part of the output that the mean takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) load: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lossless_buffer: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) buffers: Vec<BufferLine>,
}

/// A buffer of a given depth.
#[derive(Serialize)]
pub(super) struct BufferLine {
    bytes: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) overflows: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<u64>,
    /// Bits per cycle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lossless_bandwidth: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pins: Option<u64>,
}

impl Report<'_> {
    pub(super) fn line<'r>(&self, row: &'r Row) -> Line<'r> {
        let cycles = self.compared.cycles.max(1) as f64;
        let bits = row.bytes as f64 * 8.0;
        Line {
            r#type: "trace",
            format: row.set.format.name(),
            options: row.set.name,
            settings: row.set.toml(),
            messages: row.messages,
            bytes: row.bytes,
            bits_per_instruction: rounded(bits / self.compared.traced.max(1) as f64),
            mean: rounded(row.bytes as f64 * WINDOW as f64 / cycles),
            peak: row.peak,
            verified: row.check.is_ok(),
            difference: row.check.as_ref().err().map(ToString::to_string),
            load: self
                .output
                .bandwidth
                .map(|b| rounded(bits / cycles / b.bits())),
            lossless_buffer: row.lossless_depth,
            buffers: row.buffers.iter().map(|b| self.buffer(b)).collect(),
        }
    }

    fn buffer(&self, buffer: &Buffer) -> BufferLine {
        BufferLine {
            bytes: buffer.depth,
            overflows: buffer.loss.map(|loss| loss.overflows),
            lost: buffer.loss.map(|loss| loss.messages),
            lossless_bandwidth: buffer.lossless_drain.map(bits),
            pins: buffer.lossless_drain.and_then(|d| self.pin().pins_for(d)),
        }
    }
}

/// Bytes per 1024 cycles as bits per cycle.
pub(super) fn bits(drain: u64) -> f64 {
    drain as f64 / 128.0
}

/// To six decimals: the rest is noise.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}
