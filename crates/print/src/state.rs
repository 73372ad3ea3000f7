//! The state at an instruction of a tandem trace, and which groups wrote it:
//! text, and JSON of the schemas `hartrace-state` and `hartrace-writes`.

mod text;

use crate::insn::insn_text;
use crate::json::{self, Hex};
use crate::words;
use hartrace_analyze::Names;
use hartrace_capture::history::{Block, LastWrite, Place, Shown, Source};
use hartrace_flow::Mode;
use hartrace_isa::Style;
use hartrace_tandem::history::{Origin, Target};
use hartrace_tandem::{Config, Register};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

/// What values are printed with: the settings of the trace, names of addresses,
/// and how instructions are written.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    /// The settings of the trace.
    pub config: &'a Config,
    /// Names of addresses.
    pub names: &'a Names,
    /// How instructions are written.
    pub style: &'a Style,
}

impl Terms<'_> {
    fn label(&self, addr: u64) -> String {
        self.names.label(addr).to_string()
    }

    /// Digits of a register.
    fn digits(&self) -> usize {
        self.config.xlen.bits() as usize / 4
    }
}

/// The state before an instruction.
#[derive(Serialize)]
pub struct State<'a> {
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
    /// Where text gets the order and the width of registers from.
    #[serde(skip)]
    shown: &'a Shown<'a>,
    #[serde(skip)]
    terms: Terms<'a>,
    /// All registers are listed.
    #[serde(skip)]
    all: bool,
}

impl<'a> State<'a> {
    /// The state with the registers and the memory that were asked for; with
    /// `all`, or if nothing was asked for, with all registers that are known.
    #[must_use]
    pub fn new(shown: &'a Shown<'a>, all: bool, terms: Terms<'a>) -> State<'a> {
        let shadow = &shown.state.shadow;
        let next = shown.state.next.as_ref();
        let bits = next.and_then(|group| group.insn).map(|insn| insn.bits);
        let memory = shown.memory.iter().map(|b| Memory::new(b, &terms));
        State {
            schema: "hartrace-state",
            version: 1,
            instruction: shown.insn,
            instructions: shown.instructions,
            group: next.map(|group| group.number),
            offset: next.map(|group| group.at),
            at: Where::new(shadow.pc, bits, &terms),
            mode: shadow.mode.map(words::privilege),
            mtime: shadow.mtime.map(Hex),
            registers: registers(shown, all),
            memory: memory.collect(),
            shown,
            terms,
            all,
        }
    }

    /// Writes one line of JSON.
    ///
    /// # Errors
    ///
    /// A failing write.
    pub fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        json::line(self, out)
    }

    /// Writes some lines of text.
    ///
    /// # Errors
    ///
    /// A failing write.
    pub fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        text::state(self, out)
    }
}

/// A place in the program and its instruction.
#[derive(Default, Serialize)]
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
    fn new(pc: Option<u64>, bits: Option<u32>, terms: &Terms<'_>) -> Where {
        Where {
            pc: pc.map(Hex),
            symbol: pc.map(|pc| terms.label(pc)).unwrap_or_default(),
            bits: bits.map(|bits| Hex(bits.into())),
            text: bits.map(|bits| insn_text(bits, pc, terms.style)),
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
    fn new(block: &Block, terms: &Terms<'_>) -> Memory {
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
            symbol: terms.label(block.addr),
            bytes,
            source,
        }
    }
}

/// Those that were asked for, or all that are known.
fn registers(shown: &Shown<'_>, all: bool) -> BTreeMap<String, Option<Hex>> {
    let shadow = &shown.state.shadow;
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

/// The last writes to registers and memory.
#[derive(Serialize)]
pub struct Writes<'a> {
    schema: &'static str,
    version: u32,
    instructions: u64,
    writes: Vec<One<'a>>,
    #[serde(skip)]
    terms: Terms<'a>,
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
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    old_from_program: bool,
    #[serde(skip)]
    origin: Origin,
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
            (Target::Mode, Some(code)) => Value::Mode(words::privilege(code)),
            _ => Value::Number(Hex(value)),
        }
    }
}

impl<'a> Writes<'a> {
    /// These writes, in a trace of so many instructions.
    #[must_use]
    pub fn new(instructions: u64, all: &[LastWrite<'a>], terms: Terms<'a>) -> Writes<'a> {
        Writes {
            schema: "hartrace-writes",
            version: 1,
            instructions,
            writes: all.iter().map(|written| one(written, &terms)).collect(),
            terms,
        }
    }

    /// Writes one line of JSON.
    ///
    /// # Errors
    ///
    /// A failing write.
    pub fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        json::line(self, out)
    }

    /// Writes some lines of text.
    ///
    /// # Errors
    ///
    /// A failing write.
    pub fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        text::writes(self, out)
    }
}

fn one<'a>(written: &LastWrite<'a>, terms: &Terms<'_>) -> One<'a> {
    let mut one = One {
        target: written.name,
        before: written.before,
        found: "never",
        instruction: None,
        group: None,
        offset: None,
        kind: None,
        at: Where::default(),
        address: None,
        size: None,
        old: None,
        new: None,
        old_from_program: written.old_from_program,
        origin: written.origin,
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
            one.at = Where::new(write.pc, write.bits, terms);
            if let Target::Memory { addr, len } = write.target {
                (one.address, one.size) = (Some(Hex(addr)), Some(len));
            }
            one.old = write.old.map(|value| Value::new(value, write.target));
            one.new = write.new.map(|value| Value::new(value, write.target));
        }
    }
    one
}
