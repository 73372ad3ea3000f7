//! Messages for other programs: JSON lines, a header first.

use super::dump::{Shown, tcode};
use hartrace_ntrace::{Piece, Tcode, explain};
use hartrace_print::json::Hex;
use hartrace_print::words::hex;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Writes one object per piece.
pub(super) struct JsonPieces;

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line {
    Header {
        schema: &'static str,
        version: u32,
    },
    Message {
        offset: u64,
        bytes: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        src: Option<u64>,
        tcode: u8,
        name: String,
        fields: BTreeMap<&'static str, Hex>,
        #[serde(skip_serializing_if = "Option::is_none")]
        address: Option<Hex>,
        #[serde(skip_serializing_if = "Option::is_none")]
        time: Option<Hex>,
        #[serde(skip_serializing_if = "Option::is_none")]
        fault: Option<&'static str>,
    },
    Idle {
        offset: u64,
        count: u64,
    },
    Bad {
        offset: u64,
        count: u64,
        fault: &'static str,
        text: &'static str,
    },
}

impl JsonPieces {
    pub(super) fn new() -> JsonPieces {
        JsonPieces
    }

    pub(super) fn header(&mut self, out: &mut impl Write) -> io::Result<()> {
        let schema = "hartrace-messages";
        write(&Line::Header { schema, version: 1 }, out)
    }

    pub(super) fn piece(
        &mut self,
        offset: u64,
        bytes: &[u8],
        piece: &Piece<'_>,
        shown: &mut Shown,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let line = match *piece {
            Piece::Idle(count) => Line::Idle { offset, count },
            Piece::Bad(fault, count) => {
                // What comes next is told from scratch.
                let _ = shown.follow(&[]);
                Line::Bad {
                    offset,
                    count,
                    fault: fault.code(),
                    text: fault.text(),
                }
            }
            Piece::Message(_) => {
                let (fields, fault) = explain(bytes, &shown.layout);
                let (address, time) = shown.follow(bytes);
                let code = fields.first().map_or(Tcode(0), tcode);
                let src = fields.iter().find(|f| f.name == "SRC");
                let named = fields.iter();
                let named = named.filter(|f| !matches!(f.name, "TCODE" | "SRC"));
                Line::Message {
                    offset,
                    bytes: hex(bytes),
                    src: src.map(|f| f.value),
                    tcode: code.0,
                    name: code.to_string(),
                    fields: named.map(|f| (f.name, Hex(f.value))).collect(),
                    address: address.map(Hex),
                    time: time.map(Hex),
                    fault: fault.map(|f| f.code()),
                }
            }
        };
        write(&line, out)
    }
}

fn write(line: &Line, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}
