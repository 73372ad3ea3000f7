//! The registers of 9.2 as IP-XACT (IEEE 1685-2014). The example in the text has the
//! places of the fields only; their values are the reset values of the fields, or of
//! the registers.

use super::super::read::{ConfigError, Problem, nearest};
use super::{Config, Given, Source, fail, refused};
use hartrace_etrace::{Parameter, RegisterField, Registers};
use quick_xml::Reader;
use quick_xml::events::Event;
use std::fmt::Write as _;
use std::ops::Range;

/// The registers that a description has, with the values it gives.
#[derive(Default)]
pub(super) struct Description {
    fields: Vec<(RegisterField, Option<u64>, usize)>,
    /// Reset values of whole registers.
    words: [Option<u64>; 2],
}

/// A field or register while it is read.
#[derive(Default)]
struct Item {
    start: usize,
    name: String,
    offset: Option<u64>,
    width: Option<u64>,
    value: Option<u64>,
}

/// Where the reader is: the open elements, and what was read of them.
#[derive(Default)]
struct Walk {
    open: Vec<String>,
    text: String,
    register: Item,
    field: Item,
    /// The fields of the register so far; which it is may stand after them.
    pending: Vec<Item>,
    found: Description,
    seen: bool,
}

impl Description {
    /// Reads a description; only the registers of 9.2 are looked at.
    pub(super) fn read(text: &str) -> Result<Description, ConfigError> {
        let mut reader = Reader::from_str(text);
        let mut walk = Walk::default();
        loop {
            let start = position(&reader);
            let event = match reader.read_event() {
                Ok(event) => event,
                Err(error) => {
                    let at = usize::try_from(reader.error_position()).unwrap_or(0);
                    return fail(Problem::Syntax(error.to_string()), at..at);
                }
            };
            match event {
                Event::Start(tag) => walk.open(tag.local_name().as_ref(), start),
                Event::End(_) => walk.close(start)?,
                Event::Text(piece) => walk.text += &String::from_utf8_lossy(&piece),
                Event::CData(piece) => walk.text += &String::from_utf8_lossy(&piece),
                Event::Eof => break,
                _ => {}
            }
        }
        if let Some(name) = walk.open.last() {
            let problem = Problem::Syntax(format!("the element <{name}> is not closed"));
            return fail(problem, text.len()..text.len());
        }
        if !walk.seen {
            let message = "there is no register discovery_info_0 or discovery_info_1";
            return fail(Problem::Invalid(message.to_owned()), 0..0);
        }
        Ok(walk.found)
    }

    /// The places of the fields.
    pub(super) fn fields(&self) -> Vec<RegisterField> {
        self.fields.iter().map(|(field, ..)| *field).collect()
    }

    /// The settings that the values are.
    pub(super) fn values(self, source: &Source<'_>) -> Result<Config, ConfigError> {
        let mut given = Given::default();
        for (field, value, start) in &self.fields {
            let span = *start..*start;
            let word = self
                .words
                .get(usize::from(field.register))
                .copied()
                .flatten();
            let read = match (value, word) {
                (Some(attribute), _) => field.parameter.from_attribute(*attribute),
                (None, Some(word)) => field.read(Registers([word, word])),
                (None, None) => continue,
            };
            let added = read
                .map_err(refused)
                .and_then(|value| given.add(field.parameter, value, source.origin(*start)));
            added.or_else(|problem| fail(problem, span))?;
        }
        if given.0.is_empty() {
            let message = "the fields have no values: give those of the registers with \
                 --registers to `hartrace config convert`";
            return fail(Problem::Invalid(message.to_owned()), 0..0);
        }
        let mut config = Config::default();
        match given.apply(&mut config) {
            Ok(()) => Ok(config),
            Err(problem) => fail(problem, 0..0),
        }
    }
}

fn position(reader: &Reader<&[u8]>) -> usize {
    usize::try_from(reader.buffer_position()).unwrap_or(0)
}

impl Walk {
    fn open(&mut self, name: &[u8], start: usize) {
        let name = String::from_utf8_lossy(name).into_owned();
        let item = || Item {
            start,
            ..Item::default()
        };
        match name.as_str() {
            "register" => self.register = item(),
            "field" => self.field = item(),
            _ => {}
        }
        self.open.push(name);
        self.text.clear();
    }

    /// The end of an element; its text has been read.
    fn close(&mut self, at: usize) -> Result<(), ConfigError> {
        let Some(name) = self.open.pop() else {
            return Ok(());
        };
        let text = std::mem::take(&mut self.text);
        let text = text.trim();
        let parent = self.open.last().map_or("", String::as_str);
        let in_field = self.open.iter().any(|open| open == "field");
        let in_register = self.open.iter().any(|open| open == "register");
        let span = at.saturating_sub(text.len())..at;
        let item = if in_field {
            &mut self.field
        } else {
            &mut self.register
        };
        match (name.as_str(), parent) {
            ("name", "field" | "register") => item.name = text.to_owned(),
            ("bitOffset", "field") => item.offset = Some(number("bitOffset", text, span)?),
            ("bitWidth", "field") => item.width = Some(number("bitWidth", text, span)?),
            ("value", "reset") if in_register => item.value = Some(number("value", text, span)?),
            ("field", _) => self.pending.push(std::mem::take(&mut self.field)),
            ("register", _) => self.close_register()?,
            _ => {}
        }
        Ok(())
    }

    /// Takes the fields of a register if it is one of ours.
    fn close_register(&mut self) -> Result<(), ConfigError> {
        let register = std::mem::take(&mut self.register);
        let pending = std::mem::take(&mut self.pending);
        let index = match register.name.as_str() {
            "discovery_info_0" => 0,
            "discovery_info_1" => 1,
            _ => return Ok(()),
        };
        self.seen = true;
        if let Some(word) = self.found.words.get_mut(usize::from(index)) {
            *word = register.value;
        }
        for field in pending {
            if field.name.to_ascii_lowercase().starts_with("reserved") {
                continue;
            }
            let found = self.field(&field, index)?;
            self.found.fields.push((found, field.value, field.start));
        }
        Ok(())
    }

    /// A field of a register.
    fn field(&self, field: &Item, register: u8) -> Result<RegisterField, ConfigError> {
        let span = field.start..field.start;
        let Some(parameter) = Parameter::find(&field.name) else {
            let names: Vec<&'static str> = Parameter::ALL.iter().map(|p| p.name()).collect();
            let problem = Problem::UnknownKey {
                nearest: nearest(&field.name, &names),
                name: field.name.clone(),
                section: "a discovery register",
            };
            return fail(problem, span);
        };
        let name = parameter.name();
        let (Some(offset), Some(width)) = (field.offset, field.width) else {
            let message = format!("field `{name}` needs bitOffset and bitWidth");
            return fail(Problem::Invalid(message), span);
        };
        let inside = width >= 1 && offset.saturating_add(width) <= 64;
        let place = (u8::try_from(offset), u8::try_from(width));
        let ((Ok(offset), Ok(width)), true) = (place, inside) else {
            let message = format!("field `{name}` is not within 64 bits");
            return fail(Problem::Invalid(message), span);
        };
        if self
            .found
            .fields
            .iter()
            .any(|(f, ..)| f.parameter == parameter)
        {
            let message = format!("field `{name}` is described twice");
            return fail(Problem::Invalid(message), span);
        }
        Ok(RegisterField {
            parameter,
            register,
            offset,
            width,
        })
    }
}

/// A number: decimal, with `0x`, or as in SystemVerilog (`'h1f`, `64'd31`).
fn number(name: &'static str, text: &str, span: Range<usize>) -> Result<u64, ConfigError> {
    let (radix, digits) = match text.split_once('\'') {
        Some((_, based)) => match based.split_at_checked(1) {
            Some(("h" | "H", digits)) => (16, digits),
            Some(("b" | "B", digits)) => (2, digits),
            Some(("o" | "O", digits)) => (8, digits),
            Some(("d" | "D", digits)) => (10, digits),
            _ => (10, ""),
        },
        None => match text.strip_prefix("0x") {
            Some(digits) => (16, digits),
            None => (10, text),
        },
    };
    let digits = digits.replace('_', "");
    let parsed = u64::from_str_radix(&digits, radix).ok();
    match parsed.filter(|_| !digits.starts_with('+')) {
        Some(value) => Ok(value),
        None => {
            let expected = "a 64-bit number such as 31, 0x1f or 'h1f".to_owned();
            fail(Problem::Value { name, expected }, span)
        }
    }
}

const NAMESPACE: &str = "http://www.accellera.org/XMLSchema/IPXACT/1685-2014";

/// The registers, described with their values.
pub(super) fn write(registers: Registers) -> String {
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <ipxact:component xmlns:ipxact=\"{NAMESPACE}\"\n    \
             xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"\n    \
             xsi:schemaLocation=\"{NAMESPACE} {NAMESPACE}/index.xsd\">\n"
    );
    let mut out = Out {
        text: &mut text,
        depth: 1,
    };
    for (name, value) in [
        ("vendor", "hartrace"),
        ("library", "TraceEncoder"),
        ("name", "TraceEncoder"),
        ("version", "1.0"),
    ] {
        out.leaf(name, value);
    }
    out.inside("memoryMaps", &|out| {
        out.inside("memoryMap", &|out| {
            out.leaf("name", "TraceEncoderRegisterMap");
            out.inside("addressBlock", &|out| {
                out.leaf("name", "TraceEncoderRegisters");
                out.leaf("baseAddress", "0");
                out.leaf("range", "128");
                out.leaf("width", "64");
                for register in [0, 1] {
                    out.inside("register", &|out| write_register(out, register, registers));
                }
            });
            out.leaf("addressUnitBits", "8");
        });
    });
    text += "</ipxact:component>\n";
    text
}

fn write_register(out: &mut Out<'_>, register: u8, registers: Registers) {
    out.leaf("name", &format!("discovery_info_{register}"));
    out.leaf("addressOffset", &format!("'h{:x}", 8 * register));
    out.leaf("size", "64");
    out.leaf("access", "read-only");
    for field in RegisterField::all().filter(|field| field.register == register) {
        // What was packed can be unpacked.
        let value = field.read(registers).unwrap_or_default();
        let attribute = field.parameter.attribute(value).unwrap_or_default();
        let less = match value - attribute {
            0 => "",
            _ => " - 1",
        };
        out.inside("field", &|out| {
            out.leaf("name", field.name());
            out.leaf("description", &format!("{}{less}", field.parameter));
            out.leaf("bitOffset", &field.offset.to_string());
            out.inside("resets", &|out| {
                out.inside("reset", &|out| out.leaf("value", &attribute.to_string()));
            });
            out.leaf("bitWidth", &field.width.to_string());
        });
    }
}

/// Elements, indented.
struct Out<'a> {
    text: &'a mut String,
    depth: usize,
}

impl Out<'_> {
    fn leaf(&mut self, name: &str, value: &str) {
        let indent = 2 * self.depth;
        // Writing to a String does not fail. No value needs escapes.
        let _ = writeln!(
            self.text,
            "{:indent$}<ipxact:{name}>{value}</ipxact:{name}>",
            ""
        );
    }

    fn inside(&mut self, name: &str, write: &dyn Fn(&mut Out<'_>)) {
        let indent = 2 * self.depth;
        let _ = writeln!(self.text, "{:indent$}<ipxact:{name}>", "");
        let mut inner = Out {
            text: &mut *self.text,
            depth: self.depth + 1,
        };
        write(&mut inner);
        let _ = writeln!(self.text, "{:indent$}</ipxact:{name}>", "");
    }
}
