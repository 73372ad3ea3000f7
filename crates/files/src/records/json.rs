//! Reads and writes snapshots as JSON lines.

use super::{Form, SnapshotError};
use hartrace_ctr::dump::Problem;
use hartrace_ctr::{Control, Depths, Fault, KINDS, Record, Snapshot, Version};
use hartrace_flow::{HartId, Mode, Transfer as Jump};
use hartrace_isa::{Itype, Xlen};
use serde::de::{Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// What the header calls it.
pub(crate) const SCHEMA: &str = "hartrace-ctr";

/// Of the schema.
const VERSION: u64 = 1;

/// The byte order mark that some editors put at the start of a text.
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

/// Bytes of a line that is read: ten times what 256 entries take.
const LONGEST: usize = 1 << 20;

/// A number of up to 64 bits: a hexadecimal string, or a plain number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Number(u64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:#x}", self.0))
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Number, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number such as \"0x80000000\" or 17")
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Number, E> {
                Ok(Number(number))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Number, E> {
                let number = match text.strip_prefix("0x") {
                    Some(digits) => u64::from_str_radix(digits, 16),
                    None => text.parse(),
                };
                let wrong = |_| E::invalid_value(Unexpected::Str(text), &self);
                number.map(Number).map_err(wrong)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[derive(Serialize)]
struct Header {
    r#type: &'static str,
    schema: &'static str,
    version: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    times: Option<&'static str>,
}

/// A snapshot as it is written. What is not known is left out.
#[derive(Serialize)]
struct Written {
    r#type: &'static str,
    hart: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pc: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    symbol: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cycles: Option<Number>,
    specification: &'static str,
    xlen: u32,
    control: Number,
    fields: Vec<&'static str>,
    #[serde(skip_serializing_if = "is_zero")]
    guest_control: Number,
    status: Number,
    depth: u16,
    entries: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    ctrsource: Number,
    ctrtarget: Number,
    ctrdata: Number,
    valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    transfer: Option<Transfer>,
}

/// What the registers of an entry say. An address that was not recorded is left
/// out.
#[derive(Serialize)]
struct Transfer {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_symbol: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_symbol: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cycles: Option<u64>,
    mispredicted: bool,
}

fn is_zero(number: &Number) -> bool {
    number.0 == 0
}

/// Appends the header. It says so if the snapshots that follow were taken at
/// times that are `interpolated`.
pub fn write_json_start(interpolated: bool, out: &mut Vec<u8>) {
    put(
        &Header {
            r#type: "header",
            schema: SCHEMA,
            version: VERSION,
            times: interpolated.then_some("interpolated"),
        },
        out,
    );
}

/// Appends a snapshot; `label` gives names for addresses.
pub fn write_json(snapshot: &Snapshot, label: &dyn Fn(u64) -> Option<String>, out: &mut Vec<u8>) {
    let s = snapshot;
    let used = s.entries.iter().rposition(|e| *e != Record::default());
    let entries = s.entries.iter().take(used.map_or(0, |last| last + 1));
    let written = Written {
        r#type: "snapshot",
        hart: s.hart.0,
        pc: s.pc.map(Number),
        symbol: s.pc.and_then(label),
        mode: s.mode.map(Mode::name),
        instructions: s.instructions.map(Number),
        cycles: s.cycles.map(Number),
        specification: s.version.name(),
        xlen: s.xlen.bits(),
        control: Number(s.control),
        fields: Control::from_bits(s.version, s.control)
            .names(s.version)
            .collect(),
        guest_control: Number(s.guest_control),
        status: Number(s.status.into()),
        depth: s.depth,
        entries: entries
            .map(|record| entry(record, s.fields().has(Control::MODES), label))
            .collect(),
    };
    put(&written, out);
}

fn entry(record: &Record, all_modes: bool, label: &dyn Fn(u64) -> Option<String>) -> Entry {
    let named = |address: u64| (address != 0).then(|| label(address)).flatten();
    let hidden = Jump::hides_address(record.kind().unwrap_or(Itype::None), all_modes);
    let shown = |address: u64| (address != 0 || !hidden).then_some(Number(address));
    let kind = KINDS.iter().find(|(_, kind)| Some(*kind) == record.kind());
    let transfer = record.is_valid().then(|| Transfer {
        kind: kind.map(|(name, _)| *name),
        from: shown(record.source()),
        from_symbol: named(record.source()),
        to: shown(record.target()),
        to_symbol: named(record.target()),
        cycles: record.cycles(),
        mispredicted: record.is_mispredicted(),
    });
    Entry {
        ctrsource: Number(record.ctrsource),
        ctrtarget: Number(record.ctrtarget),
        ctrdata: Number(record.ctrdata),
        valid: record.is_valid(),
        transfer,
    }
}

fn put(value: &impl Serialize, out: &mut Vec<u8>) {
    // Writing to memory does not fail, and neither do these values.
    let _ = serde_json::to_writer(&mut *out, value);
    out.push(b'\n');
}

/// An object as it is read; keys that only explain are passed over.
#[derive(Deserialize)]
struct Object<'a> {
    #[serde(borrow)]
    r#type: std::borrow::Cow<'a, str>,
    schema: Option<String>,
    version: Option<u64>,
    hart: Option<u32>,
    pc: Option<Number>,
    mode: Option<String>,
    instructions: Option<Number>,
    cycles: Option<Number>,
    specification: Option<String>,
    xlen: Option<u32>,
    control: Option<Number>,
    guest_control: Option<Number>,
    status: Option<Number>,
    depth: Option<u16>,
    #[serde(default)]
    entries: Vec<Registers>,
}

#[derive(Deserialize)]
struct Registers {
    ctrsource: Number,
    ctrtarget: Number,
    ctrdata: Number,
}

/// Lines to snapshots.
#[derive(Debug, Default)]
pub(super) struct JsonReader {
    /// A line that is not whole.
    kept: Vec<u8>,
    /// It is too long, and only its end is of interest.
    long: bool,
    /// Lines before it.
    lines: u64,
    state: State,
    snapshot: Snapshot,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Start,
    Snapshots,
    Refused,
}

impl JsonReader {
    pub(super) fn feed(
        &mut self,
        chunk: &[u8],
        sink: &mut impl FnMut(Result<&Snapshot, SnapshotError>),
    ) {
        for part in chunk.split_inclusive(|&byte| byte == b'\n') {
            if self.state == State::Refused {
                return;
            }
            let room = LONGEST.saturating_sub(self.kept.len());
            self.long |= part.len() > room;
            let taken = part.get(..part.len().min(room)).unwrap_or(part);
            self.kept.extend_from_slice(taken);
            if part.ends_with(b"\n") {
                self.line(sink);
            }
        }
    }

    pub(super) fn finish(
        &mut self,
        sink: &mut impl FnMut(Result<&Snapshot, SnapshotError>),
    ) -> Result<(), SnapshotError> {
        if !self.kept.is_empty() && self.state != State::Refused {
            self.line(sink);
        }
        match self.state {
            State::Start => Err(self.error(Fault::NotADump, 0, None)),
            State::Snapshots | State::Refused => Ok(()),
        }
    }

    fn error(&self, fault: Fault, value: u64, detail: Option<String>) -> SnapshotError {
        let at = self.lines.max(1);
        SnapshotError {
            problem: Problem { at, fault, value },
            form: Form::Json,
            detail,
        }
    }

    fn line(&mut self, sink: &mut impl FnMut(Result<&Snapshot, SnapshotError>)) {
        self.lines += 1;
        let kept = std::mem::take(&mut self.kept);
        let long = std::mem::take(&mut self.long);
        let line = match self.lines {
            1 => kept.strip_prefix(BOM).unwrap_or(&kept),
            _ => kept.as_slice(),
        };
        let read = match line.trim_ascii() {
            [] => Ok(false),
            _ if long => Err((Fault::Object, 0, Some("the line is too long".to_owned()))),
            line => self.object(line),
        };
        match read {
            Ok(false) => {}
            Ok(true) => sink(Ok(&self.snapshot)),
            Err((fault, value, detail)) => {
                let fault = match self.state {
                    State::Start if fault == Fault::Object => Fault::NotADump,
                    _ => fault,
                };
                if fault.code() < "CT02" {
                    self.state = State::Refused;
                }
                sink(Err(self.error(fault, value, detail)));
            }
        }
        self.kept = kept;
        self.kept.clear();
    }

    /// Whether it is a snapshot; or what is wrong.
    fn object(&mut self, line: &[u8]) -> Result<bool, Wrong> {
        let object: Object<'_> = serde_json::from_slice(line)
            .map_err(|error| (Fault::Object, 0, Some(error.to_string())))?;
        match (self.state, &*object.r#type) {
            (State::Start, "header") if object.schema.as_deref() == Some(SCHEMA) => {
                match object.version {
                    Some(VERSION) => self.state = State::Snapshots,
                    version => return Err((Fault::Form, version.unwrap_or(0), None)),
                }
                Ok(false)
            }
            (State::Start, _) => Err((Fault::NotADump, 0, None)),
            (_, "snapshot") => {
                object.read_into(&mut self.snapshot)?;
                Ok(true)
            }
            // Another file after this one.
            (_, "header") if object.schema.as_deref() == Some(SCHEMA) => match object.version {
                Some(VERSION) => Ok(false),
                version => Err((Fault::Form, version.unwrap_or(0), None)),
            },
            (_, other) => Err((Fault::Object, 0, Some(format!("its type is `{other}`")))),
        }
    }
}

/// What is wrong: the fault, the value, and more words.
type Wrong = (Fault, u64, Option<String>);

/// Without it the meaning of the registers is unknown.
fn needed<T>(value: Option<T>, key: &str) -> Result<T, Wrong> {
    value.ok_or_else(|| (Fault::Object, 0, Some(format!("`{key}` is missing"))))
}

impl Object<'_> {
    fn read_into(&self, s: &mut Snapshot) -> Result<(), Wrong> {
        let named = |fault, text: &str| (fault, 0, Some(format!("`{text}`")));
        let mode = match self.mode.as_deref() {
            None => None,
            Some(text) => {
                let modes = (0..8).filter_map(Mode::from_code);
                let found = modes.into_iter().find(|mode| mode.name() == text);
                Some(found.ok_or_else(|| named(Fault::Mode, text))?)
            }
        };
        let text = needed(self.specification.as_deref(), "specification")?;
        let version = Version::from_name(text).ok_or_else(|| named(Fault::Version, text))?;
        let xlen = match needed(self.xlen, "xlen")? {
            32 => Xlen::Rv32,
            64 => Xlen::Rv64,
            xlen => return Err((Fault::Width, xlen.into(), Some(xlen.to_string()))),
        };
        let control = needed(self.control, "control")?.0;
        let status = needed(self.status, "status")?.0;
        let used = self.entries.len();
        let depth = needed(self.depth, "depth")?;
        if !Depths::ALL.contains(depth) {
            return Err((Fault::Depth, depth.into(), Some(depth.to_string())));
        }
        if used > usize::from(depth) {
            return Err((Fault::Entries, used as u64, Some(used.to_string())));
        }
        let too_wide = |_| named(Fault::Reserved, &format!("{status:#x}"));
        s.status = u32::try_from(status).map_err(too_wide)?;
        s.hart = HartId(self.hart.unwrap_or(0));
        s.pc = self.pc.map(|n| n.0);
        s.mode = mode;
        s.instructions = self.instructions.map(|n| n.0);
        s.cycles = self.cycles.map(|n| n.0);
        (s.version, s.xlen, s.depth) = (version, xlen, depth);
        s.control = control;
        s.guest_control = self.guest_control.unwrap_or_default().0;
        s.entries.clear();
        s.entries.extend(self.entries.iter().map(|r| Record {
            ctrsource: r.ctrsource.0,
            ctrtarget: r.ctrtarget.0,
            ctrdata: r.ctrdata.0,
        }));
        s.entries.resize(usize::from(depth), Record::default());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
