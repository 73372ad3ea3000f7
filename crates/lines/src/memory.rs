//! What data trace reports about memory: text, and JSON of the schema
//! `hartrace-memory`.

use crate::json::{self, Hex};
use crate::words;
use hartrace_analyze::Names;
use hartrace_analyze::memory::{Watched, Write};
use serde::Serialize;
use std::io;

/// Places in memory as a data trace reports them.
#[derive(Serialize)]
pub struct Places<'a> {
    schema: &'static str,
    version: u32,
    instructions: u64,
    accesses: u64,
    places: Vec<Place<'a>>,
}

#[derive(Serialize)]
struct Place<'a> {
    /// As it was asked for.
    name: &'a str,
    address: Hex,
    size: usize,
    /// Two digits for each byte, `..` for one that is not known.
    bytes: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_write: Option<LastWrite>,
}

#[derive(Serialize)]
struct LastWrite {
    hart: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    instruction: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pc: Option<Hex>,
    #[serde(skip_serializing_if = "String::is_empty")]
    symbol: String,
    kind: &'static str,
    address: Hex,
    size: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Hex>,
}

impl LastWrite {
    fn new(write: &Write, names: &Names) -> LastWrite {
        let access = &write.access;
        LastWrite {
            hart: write.hart.0,
            instruction: write.insn,
            pc: write.pc.map(Hex),
            symbol: write
                .pc
                .map_or(String::new(), |pc| names.label(pc).to_string()),
            kind: words::access_kind(access.kind),
            address: Hex(access.addr),
            size: 1 << (access.size & 7),
            data: access.data.map(Hex),
        }
    }
}

impl<'a> Places<'a> {
    /// Places with the names they were asked for by, in a trace of so many
    /// instructions and accesses.
    #[must_use]
    pub fn new(
        (instructions, accesses): (u64, u64),
        found: impl Iterator<Item = (&'a str, &'a Watched)>,
        names: &Names,
    ) -> Places<'a> {
        let place = |(name, watched): (&'a str, &Watched)| Place {
            name,
            address: Hex(watched.start),
            size: watched.bytes.len(),
            bytes: bytes(watched),
            last_write: watched
                .last
                .as_ref()
                .map(|write| LastWrite::new(write, names)),
        };
        Places {
            schema: "hartrace-memory",
            version: 1,
            instructions,
            accesses,
            places: found.map(place).collect(),
        }
    }

    /// One JSON object.
    ///
    /// # Errors
    ///
    /// A failing write.
    pub fn write_json(&self, out: &mut impl io::Write) -> io::Result<()> {
        json::line(self, out)
    }

    /// As text.
    ///
    /// # Errors
    ///
    /// A failing write.
    pub fn write_text(&self, out: &mut impl io::Write) -> io::Result<()> {
        for place in &self.places {
            let address = place.address.0;
            writeln!(out, "{}: {address:#x}, {} bytes", place.name, place.size)?;
            writeln!(out, "  bytes       {}", place.bytes)?;
            match &place.last_write {
                None => writeln!(out, "  last write  none in the trace")?,
                Some(write) => {
                    write!(out, "  last write  {} {} ", write.kind, write.size)?;
                    write!(out, "{:#x}", write.address.0)?;
                    if let Some(data) = &write.data {
                        write!(out, " = {:#x}", data.0)?;
                    }
                    match write.instruction {
                        Some(number) => write!(out, " by instruction {number}")?,
                        None => write!(out, " by an unknown instruction")?,
                    }
                    if let Some(pc) = &write.pc {
                        write!(out, " at {:#x}", pc.0)?;
                    }
                    match write.symbol.as_str() {
                        "" => writeln!(out)?,
                        symbol => writeln!(out, " <{symbol}>")?,
                    }
                }
            }
        }
        Ok(())
    }
}

fn bytes(watched: &Watched) -> String {
    let digits = |byte: &Option<u8>| match byte {
        Some(byte) => format!("{byte:02x}"),
        None => "..".to_owned(),
    };
    let all: Vec<String> = watched.bytes.iter().map(digits).collect();
    all.join(" ")
}
