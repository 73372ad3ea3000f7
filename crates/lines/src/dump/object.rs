//! The pieces of a trace as JSON objects.

use crate::json::Hex;
use crate::words::hex;
use hartrace_capture::trace::{Columns, Explained, Format, Item, PieceKind, Value};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// The first line.
#[derive(Serialize)]
pub(super) struct Header {
    r#type: &'static str,
    schema: String,
    version: u32,
}

impl Header {
    pub(super) fn new(format: Format) -> Header {
        Header {
            r#type: "header",
            schema: format!("hartrace-{}s", format.unit()),
            version: 1,
        }
    }
}

/// A piece with its bytes.
pub(super) struct Object<'a> {
    format: Format,
    piece: &'a Explained,
    bytes: &'a [u8],
}

impl<'a> Object<'a> {
    pub(super) fn new(format: Format, piece: &'a Explained, bytes: &'a [u8]) -> Object<'a> {
        Object {
            format,
            piece,
            bytes,
        }
    }

    const fn word(&self) -> &'static str {
        match self.piece.kind {
            PieceKind::Unit => self.format.unit(),
            PieceKind::Data => "data",
            PieceKind::Idle => "idle",
            PieceKind::Bad | PieceKind::Lost => "bad",
            PieceKind::Stray => "stray",
        }
    }

    fn unit<M: serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let piece = self.piece;
        for (name, code) in &piece.codes {
            map.serialize_entry(name, code)?;
        }
        some(map, "name", piece.name.as_deref())?;
        some(map, "pc", piece.pc.map(Hex))?;
        match self.format.columns() {
            Columns::Fields => {
                let items = piece.items.iter().filter(|item| !item.is_frame);
                map.serialize_entry("items", &items.map(ItemObject).collect::<Vec<_>>())?;
            }
            Columns::Mdo | Columns::Bits => {
                let fields = piece.fields.iter().filter(|field| !field.in_name);
                let fields = fields.map(|field| (field.name, Hex(field.value)));
                map.serialize_entry("fields", &fields.collect::<BTreeMap<_, _>>())?;
            }
        }
        some(map, "address", piece.address.map(Hex))?;
        some(map, "time", piece.time.map(Hex))?;
        some(map, "fault", piece.fault.map(|fault| fault.code))
    }

    fn bad<M: serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let Some(fault) = self.piece.fault else {
            return Ok(());
        };
        if let Some((at, group, _)) = fault.place {
            map.serialize_entry("at", &at)?;
            map.serialize_entry("group", &group)?;
        }
        map.serialize_entry("fault", fault.code)?;
        map.serialize_entry("text", fault.text)?;
        some(map, "value", fault.place.map(|(.., value)| Hex(value)))
    }
}

/// An entry that may be missing.
fn some<M: serde::ser::SerializeMap>(
    map: &mut M,
    name: &str,
    value: Option<impl Serialize>,
) -> Result<(), M::Error> {
    match value {
        Some(value) => map.serialize_entry(name, &value),
        None => Ok(()),
    }
}

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.word())?;
        some(&mut map, "hart", self.piece.hart)?;
        map.serialize_entry("offset", &self.piece.at)?;
        match self.piece.kind {
            PieceKind::Unit => {
                map.serialize_entry("bytes", &hex(self.bytes))?;
                self.unit(&mut map)?;
            }
            PieceKind::Data => map.serialize_entry("bytes", &hex(self.bytes))?,
            PieceKind::Idle | PieceKind::Stray => {
                map.serialize_entry("count", &self.piece.count)?;
            }
            PieceKind::Bad | PieceKind::Lost => {
                map.serialize_entry("count", &self.piece.count)?;
                self.bad(&mut map)?;
            }
        }
        map.end()
    }
}

struct ItemObject<'a>(&'a Item);

impl Serialize for ItemObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("item", self.0.name)?;
        for (name, value) in &self.0.values {
            match value {
                Value::Bits(bits) => map.serialize_entry(name, &Hex(*bits))?,
                Value::Number(number) => map.serialize_entry(name, number)?,
                Value::Word(word) => map.serialize_entry(name, word)?,
                Value::Flag(flag) => map.serialize_entry(name, flag)?,
            }
        }
        map.end()
    }
}
