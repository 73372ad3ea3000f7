//! E-Trace as a table of packets (`te_inst` of the reference models).

use crate::input::{Input, InputError};
use hartrace_etrace::csv::{self, CsvError};
use hartrace_etrace::{Kind, Layout};
use std::fmt;

/// A table of more is another file given by mistake.
const MAX_TABLE: u64 = 4 << 30;

/// Why a table is no stream.
#[derive(Debug)]
pub enum TableError {
    /// It could not be read.
    Input(InputError),
    /// A line that is no packet.
    Row {
        /// Its number, from 1.
        line: u64,
        /// What is wrong with it.
        error: CsvError,
    },
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableError::Input(error) => error.fmt(f),
            TableError::Row { line, error } => write!(f, "line {line}, {error}"),
        }
    }
}

impl std::error::Error for TableError {}

impl From<InputError> for TableError {
    fn from(error: InputError) -> TableError {
        TableError::Input(error)
    }
}

/// The stream of packets that a table lists.
///
/// # Errors
///
/// A failing read, and the first row that is no packet.
pub fn from_table(input: Input, layout: &Layout) -> Result<Input, TableError> {
    let path = input.path().to_path_buf();
    let text = input.read_all(MAX_TABLE)?;
    let mut bytes = Vec::new();
    for (line, row) in (1..).zip(text.split(|&byte| byte == b'\n')) {
        let row = String::from_utf8_lossy(row);
        let row = row.trim();
        // The heading, and what may stand behind the last row.
        if line == 1 || row.is_empty() {
            continue;
        }
        let packet = csv::parse_row(row, layout);
        let packet = packet.map_err(|error| TableError::Row { line, error })?;
        let payload = packet.write(layout);
        payload.write_framed(Kind::Instruction, &mut bytes);
    }
    Ok(Input::of(&path, bytes))
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
        let stream = from_table(input(&table), &layout).unwrap();
        assert_eq!(stream.read_all(100).unwrap(), [0x41, 0x1f, 0x41, 0xf2]);
        let error = from_table(input(&table.replace("7fff", "7xff")), &layout).err();
        assert_eq!(
            error.unwrap().to_string(),
            "line 3, column 3 (address): neither a number nor _"
        );
    }
}
