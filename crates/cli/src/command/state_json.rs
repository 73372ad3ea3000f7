//! States and writes for other programs.

use super::log_json::Hex;
use super::state::{Asked, Block, Place, Shown, Source, Written};
use super::state_text::mode;
use hartrace_flow::Mode;
use hartrace_tandem::history::{Origin, Target};
use hartrace_tandem::{Register, Shadow};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

#[derive(Serialize)]
struct StateObject {
    schema: &'static str,
    version: u32,
    instruction: u64,
    instructions: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    #[serde(flatten)]
    at: Where,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mtime: Option<Hex>,
    registers: BTreeMap<String, Option<Hex>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    memory: Vec<Memory>,
}

/// A place in the program and its instruction.
#[derive(Serialize)]
struct Where {
    #[serde(skip_serializing_if = "Option::is_none")]
    pc: Option<Hex>,
    #[serde(skip_serializing_if = "String::is_empty")]
    symbol: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    bits: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl Where {
    fn new(asked: &Asked<'_>, pc: Option<u64>, bits: Option<u32>) -> Where {
        Where {
            pc: pc.map(Hex),
            symbol: pc.map(|pc| asked.label(pc)).unwrap_or_default(),
            bits: bits.map(|bits| Hex(bits.into())),
            text: bits.map(|bits| asked.text(bits, pc)),
        }
    }
}

#[derive(Serialize)]
struct Memory {
    address: Hex,
    #[serde(skip_serializing_if = "String::is_empty")]
    symbol: String,
    bytes: String,
    source: String,
}

impl Memory {
    fn new(asked: &Asked<'_>, block: &Block) -> Memory {
        let (mut bytes, mut source) = (String::new(), String::new());
        for byte in &block.bytes {
            let (value, from) = match byte {
                Source::Trace(byte) => (Some(byte), 't'),
                Source::Program(byte) => (Some(byte), 'p'),
                Source::Unknown => (None, '?'),
            };
            let _ = match value {
                Some(value) => write!(bytes, "{value:02x}"),
                None => write!(bytes, "??"),
            };
            source.push(from);
        }
        Memory {
            address: Hex(block.addr),
            symbol: asked.label(block.addr),
            bytes,
            source,
        }
    }
}

pub(super) fn state(
    asked: &Asked<'_>,
    shown: &Shown<'_>,
    all: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let shadow = &shown.state.shadow;
    let next = shown.state.next.as_ref();
    let bits = next.and_then(|group| group.insn).map(|insn| insn.bits);
    let object = StateObject {
        schema: "hartrace-state",
        version: 1,
        instruction: shown.insn,
        instructions: asked.history.instructions(),
        group: next.map(|group| group.number),
        offset: next.map(|group| group.at),
        at: Where::new(asked, shadow.pc, bits),
        mode: shadow.mode.map(mode),
        mtime: shadow.mtime.map(Hex),
        registers: registers(shown, shadow, all),
        memory: shown.memory.iter().map(|b| Memory::new(asked, b)).collect(),
    };
    line(&object, out)
}

/// Those that were asked for, or all that are known.
fn registers(shown: &Shown<'_>, shadow: &Shadow, all: bool) -> BTreeMap<String, Option<Hex>> {
    if all || shown.registers.is_empty() && shown.memory.is_empty() {
        let known = shadow.registers();
        return known
            .map(|(register, value)| (name(register), Some(Hex(value))))
            .collect();
    }
    let named = shown.registers.iter();
    let named = named.filter_map(|&(called, place)| match place {
        Place::Register(register) => Some((called.to_owned(), shadow.get(register).map(Hex))),
        Place::Pc | Place::Mode | Place::Mtime => None,
    });
    named.collect()
}

/// A CSR without a name by its number.
fn name(register: Register) -> String {
    let name = register.to_string();
    name.strip_prefix("csr ").unwrap_or(&name).to_owned()
}

#[derive(Serialize)]
struct Writes<'a> {
    schema: &'static str,
    version: u32,
    instructions: u64,
    writes: Vec<One<'a>>,
}

#[derive(Serialize)]
struct One<'a> {
    target: &'a str,
    before: u64,
    found: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instruction: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(flatten)]
    at: Where,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<Value>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Value {
    Number(Hex),
    Mode(&'static str),
}

impl Value {
    fn new(value: u64, target: Target) -> Value {
        let code = Mode::from_code(value as u8);
        match (target, code) {
            (Target::Mode, Some(code)) => Value::Mode(mode(code)),
            _ => Value::Number(Hex(value)),
        }
    }
}

pub(super) fn writes(
    asked: &Asked<'_>,
    all: &[Written<'_>],
    out: &mut impl Write,
) -> io::Result<()> {
    let object = Writes {
        schema: "hartrace-writes",
        version: 1,
        instructions: asked.history.instructions(),
        writes: all.iter().map(|written| one(asked, written)).collect(),
    };
    line(&object, out)
}

fn one<'a>(asked: &Asked<'_>, written: &Written<'a>) -> One<'a> {
    let mut one = One {
        target: written.name,
        before: written.before,
        found: "never",
        instruction: None,
        group: None,
        offset: None,
        kind: None,
        at: Where::new(asked, None, None),
        address: None,
        size: None,
        old: None,
        new: None,
    };
    if let Target::Memory { addr, len } = written.target {
        (one.address, one.size) = (Some(Hex(addr)), Some(len));
    }
    match written.origin {
        Origin::Never => {}
        Origin::Lost {
            insn,
            group,
            offset,
        } => {
            one.found = "lost";
            (one.instruction, one.group, one.offset) = (Some(insn), Some(group), Some(offset));
        }
        Origin::Write(write) => {
            one.found = "write";
            one.instruction = Some(write.insn);
            (one.group, one.offset) = (Some(write.group), Some(write.offset));
            one.kind = Some(write.kind.name());
            one.at = Where::new(asked, write.pc, write.bits);
            if let Target::Memory { addr, len } = write.target {
                (one.address, one.size) = (Some(Hex(addr)), Some(len));
            }
            one.old = write.old.map(|value| Value::new(value, write.target));
            one.new = write.new.map(|value| Value::new(value, write.target));
        }
    }
    one
}

fn line(object: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, object)?;
    writeln!(out)
}
