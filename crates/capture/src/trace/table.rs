//! E-Trace as a table of packets (`te_inst` of the reference models).

use super::{Format, Settings, Trace, pieces};
use crate::detect::{HEAD, Kind, apparent};
use crate::input::{Input, InputError};
use hartrace_etrace::csv::{self, CsvError};
use hartrace_etrace::{self as etrace, Framer, Layout, Packet, Piece};
use std::fmt;

/// A table of more is another file given by mistake.
const MAX_TABLE: u64 = 4 << 30;

/// Unreadable rows that are reported one by one.
const TOLD: usize = 5;

/// Rows of a table that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDamage {
    /// Lines but for the heading and empty ones.
    pub rows: u64,
    /// Those that are no packet.
    pub bad: u64,
    /// The first of these.
    pub first: Vec<BadRow>,
}

impl TableDamage {
    /// No row can be read.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.bad == self.rows
    }
}

/// The stream of packets that a table lists.
struct Table {
    /// The stream. In place of a row that is none it has a packet that no
    /// decoder can read.
    stream: Input,
    rows: u64,
    bad: u64,
    first: Vec<BadRow>,
}

/// A row that is no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadRow {
    /// Its line, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub error: CsvError,
}

impl fmt::Display for BadRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, {}", self.line, self.error)
    }
}

/// The stream of a trace that may be a table, and what is wrong with its rows.
///
/// # Errors
///
/// A failing read.
pub(crate) fn from_table(
    mut input: Input,
    settings: &Settings,
) -> Result<(Input, Option<TableDamage>), InputError> {
    let Settings::Etrace(config) = settings else {
        return Ok((input, None));
    };
    if apparent(input.peek(HEAD)?) != Some(Kind::EtraceCsv) {
        return Ok((input, None));
    }
    let table = read_table(input, &config.layout())?;
    let damage = (table.bad > 0).then_some(TableDamage {
        rows: table.rows,
        bad: table.bad,
        first: table.first,
    });
    Ok((table.stream, damage))
}

fn read_table(input: Input, layout: &Layout) -> Result<Table, InputError> {
    let layout = &mut { *layout };
    let path = input.path().to_path_buf();
    let text = input.read_all(MAX_TABLE)?;
    let (mut rows, mut bad) = (0, 0);
    let (mut bytes, mut first) = (Vec::new(), Vec::new());
    for (line, row) in (1..).zip(text.split(|&byte| byte == b'\n')) {
        let row = String::from_utf8_lossy(row);
        let row = row.trim();
        // The heading, and what may follow the last row.
        if line == 1 || row.is_empty() {
            continue;
        }
        rows += 1;
        match csv::parse_row(row, layout) {
            Ok(packet) => {
                let payload = packet.write(layout);
                payload.write_framed(etrace::Kind::Instruction, &mut bytes);
                layout.follow(&packet);
            }
            Err(error) => {
                bytes.extend_from_slice(unreadable(layout));
                bad += 1;
                if first.len() < TOLD {
                    first.push(BadRow { line, error });
                }
            }
        }
    }
    Ok(Table {
        stream: Input::of(&path, bytes),
        rows,
        bad,
        first,
    })
}

impl Format {
    /// Whether there are tables of such traces.
    #[must_use]
    pub const fn has_table(self) -> bool {
        matches!(self, Format::Etrace)
    }
}

impl Trace {
    /// Gives the trace as a table to `take`, line by line with their ends; the
    /// heading comes first. Gives how many pieces no row can show.
    ///
    /// # Errors
    ///
    /// A failing read, and whatever `take` returns.
    pub fn rows<E: From<InputError>>(
        self,
        mut take: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<u64, E> {
        let Settings::Etrace(config) = &self.settings else {
            return Ok(0);
        };
        let mut layout = config.layout();
        let framer = Framer::of(config.encapsulation);
        let mut line = [csv::HEADER, csv::LINE_END].concat();
        take(&line)?;
        let mut left_out = 0;
        pieces(self.input, framer, |_, _, piece: &Piece<'_>| {
            let packet = match *piece {
                Piece::Packet(etrace::Encapsulated {
                    kind: etrace::Kind::Instruction,
                    payload,
                    ..
                }) => Packet::read(payload, &layout).ok(),
                Piece::Idle(_) => return Ok(()),
                _ => None,
            };
            let Some(packet) = packet else {
                left_out += 1;
                return Ok(());
            };
            line.clear();
            csv::row(&packet, &layout, &mut line);
            layout.follow(&packet);
            line += csv::LINE_END;
            take(&line)
        })?;
        Ok(left_out)
    }
}

/// What stands for a row that is no packet: one of format 0, which says nothing
/// without predictor and cache; with them, no packet at all.
const fn unreadable(layout: &Layout) -> &'static [u8] {
    match layout.bpred_size | layout.cache_size {
        0 => &[0x41, 0],
        _ => &[0xff],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hartrace_etrace::{Config, Version};
    use hartrace_isa::Xlen;
    use std::path::Path;

    #[test]
    fn rows_are_packets() {
        let layout = Config::new(Version::V2_0, Xlen::Rv32).layout();
        let rows = "3,3,_,_,_,_,_,_,_,_,1,0,_,_,_,_,0,_,0,_,_,_,_,_,_,_\r\n\
                    2,_,7ffffffc,_,_,_,_,_,_,_,_,_,_,1,_,1,_,_,_,_,_,_,1,_,_,_\r\n";
        let table = format!("{}\r\n{rows}", csv::HEADER);
        let input = |text: &str| Input::of(Path::new("t"), text.as_bytes().to_vec());
        let whole = read_table(input(&table), &layout).unwrap();
        assert_eq!((whole.rows, whole.bad), (2, 0));
        let bytes = whole.stream.read_all(100).unwrap();
        assert_eq!(bytes, [0x41, 0x1f, 0x41, 0xf2]);
        let damaged = read_table(input(&table.replace("7fff", "7xff")), &layout).unwrap();
        assert_eq!((damaged.rows, damaged.bad), (2, 1));
        assert_eq!(
            damaged.first[0].to_string(),
            "line 3, column 3 (address): neither a number nor _"
        );
        let bytes = damaged.stream.read_all(100).unwrap();
        assert_eq!(bytes, [0x41, 0x1f, 0x41, 0]);
        assert!(Packet::read(&bytes[3..], &layout).is_err());
    }
}
