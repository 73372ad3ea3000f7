//! What all JSON output shares: one object per line, numbers that keep all
//! their bits.

use hartrace_analyze::Spans;
use serde::{Serialize, Serializer};
use std::fmt;
use std::io::{self, Write};

/// A value of up to 64 bits, as a hexadecimal string: JSON numbers are exact
/// only up to 2^53.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hex(pub u64);

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:#x}", self.0))
    }
}

impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// How durations are spread.
#[derive(Serialize)]
pub struct Span {
    min: u64,
    p50: u64,
    p90: u64,
    p99: u64,
    max: u64,
    mean: f64,
}

impl From<Spans> for Span {
    fn from(spans: Spans) -> Span {
        Span {
            min: spans.min,
            p50: spans.p50,
            p90: spans.p90,
            p99: spans.p99,
            max: spans.max,
            mean: spans.mean,
        }
    }
}

/// Writes one object and ends its line.
///
/// # Errors
///
/// A failing write.
pub fn line(object: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, object)?;
    out.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_all_their_bits() {
        let mut out = Vec::new();
        line(&Hex(u64::MAX), &mut out).unwrap();
        assert_eq!(out, b"\"0xffffffffffffffff\"\n");
    }
}
