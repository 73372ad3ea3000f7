//! Tables in text: the CSV files of the E-Trace reference flow. A header names
//! the columns, in any order and either case; fields hold numbers only and are
//! never quoted.

use super::text::{decimal, prefixed_hex};
use super::{LineErrorKind, LineErrorKind as Kind};

pub(super) mod ingress;
pub(super) mod pc_trace;
#[cfg(test)]
mod tests;
pub(super) mod write;

/// A fault in a line: its kind and the byte.
type Fault = (LineErrorKind, usize);

/// The fields of a line, trimmed, each with the place where it starts.
fn fields(line: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    line.split(|&b| b == b',').map(move |field| {
        let start = at + field.len() - field.trim_ascii_start().len();
        at += field.len() + 1;
        (start, field.trim_ascii())
    })
}

/// A number that a column may hold.
fn number<T: TryFrom<u64>>(text: &[u8], hex: bool) -> Result<T, LineErrorKind> {
    let (value, kind) = if hex {
        (prefixed_hex(text), Kind::Hex)
    } else {
        (decimal(text), Kind::Decimal)
    };
    value.and_then(|v| T::try_from(v).ok()).ok_or(kind)
}

/// A signal of one bit.
fn flag(text: &[u8]) -> Result<bool, LineErrorKind> {
    match text {
        b"0" => Ok(false),
        b"1" => Ok(true),
        _ => Err(Kind::Decimal),
    }
}

/// Whether a table has given its header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// The next line that is not blank is the header.
    #[default]
    Header,
    Rows,
    /// The header was refused, and with it every row.
    Refused,
}
