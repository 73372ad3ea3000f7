//! Traces for display: every item with its offset, and its fields by name.

mod words;

pub use words::Value;

use alloc::vec::Vec;
use core::fmt;

use hartrace_flow::Mode;

use crate::config::{Config, Nibbles};
use crate::group::GroupKind;
use crate::item::{Item, Operation, Request};
use crate::read::{Next, Problem, Reader};
use crate::register::Register;

/// A part of a trace, in the order of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// An item: its offset and length.
    Item(Item, u64, usize),
    /// The group whose items came before is whole: its kind, number, offset
    /// and length.
    Group(GroupKind, u64, u64, u64),
    /// Something is wrong with what came before or comes next.
    Problem(Problem),
    /// Bytes that are no items: their offset and how many.
    Bad(u64, u64),
}

/// Divides a whole trace. Every byte is in one item, or bad.
///
/// ```
/// use hartrace_tandem::{Config, Item, Piece, Pieces, explain};
///
/// let config = Config::default();
/// let trace = [1, 3, 16, 1, 0, 2];
/// let items: Vec<_> = Pieces::new(&trace, &config)
///     .filter_map(|piece| match piece {
///         Piece::Item(item, at, _) => Some((at, item.name())),
///         _ => None,
///     })
///     .collect();
/// let names = ["begin group", "increment pc", "instruction, 16 bits", "end group"];
/// assert_eq!(items, [0, 1, 2, 5].into_iter().zip(names).collect::<Vec<_>>());
/// ```
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    config: Config,
    reader: Reader,
    /// What the reader has not read yet.
    rest: &'a [u8],
    /// What no piece has been made of yet, and its offset.
    left: &'a [u8],
    at: u64,
    /// Up to here the reader has said what it is.
    until: u64,
    /// What it has said.
    next: Option<Next>,
    request: Option<Request>,
    /// The trace has ended.
    ended: bool,
}

impl<'a> Pieces<'a> {
    /// From the first byte on.
    #[must_use]
    pub fn new(bytes: &'a [u8], config: &Config) -> Pieces<'a> {
        Pieces {
            config: config.clone(),
            reader: Reader::new(config.clone()),
            rest: bytes,
            left: bytes,
            at: 0,
            until: 0,
            next: None,
            request: None,
            ended: false,
        }
    }

    /// An item before what the reader has reported.
    fn item(&mut self) -> Piece {
        let len = (self.until - self.at) as usize;
        let bytes = self.left.get(..len).unwrap_or(self.left);
        match Item::read(bytes, &self.config, self.request.as_ref()) {
            Ok(Some((item, len))) => {
                self.request = match item {
                    Item::Request(request) => Some(request),
                    _ => None,
                };
                let at = self.pass(len);
                Piece::Item(item, at, len)
            }
            // The end of a trace that was cut.
            _ => self.bad(len),
        }
    }

    fn bad(&mut self, len: usize) -> Piece {
        self.request = None;
        let at = self.pass(len);
        Piece::Bad(at, len as u64)
    }

    fn pass(&mut self, len: usize) -> u64 {
        let at = self.at;
        self.left = self.left.get(len..).unwrap_or_default();
        self.at += len as u64;
        at
    }
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        loop {
            if self.at < self.until {
                return Some(match self.next {
                    // Where groups continue after the searched bytes.
                    Some(Next::Resumed(_)) => self.bad((self.until - self.at) as usize),
                    _ => self.item(),
                });
            }
            match self.next.take() {
                Some(Next::Group) => {
                    let group = self.reader.group();
                    let kind = group.kind(self.config.xlen);
                    let len = self.at - group.at;
                    return Some(Piece::Group(kind, group.number, group.at, len));
                }
                Some(Next::Problem(problem)) => return Some(Piece::Problem(problem)),
                Some(Next::Resumed(_) | Next::More) => {}
                None if self.ended && self.left.is_empty() => return None,
                None if self.ended => return Some(self.bad(self.left.len())),
                None => {
                    let mut next = match self.rest.is_empty() {
                        false => self.reader.next(&mut self.rest),
                        true => Next::More,
                    };
                    if next == Next::More {
                        next = self.reader.finish();
                        self.ended = next == Next::More;
                    }
                    // What a search has passed in vain is bad in the end.
                    if !self.ended {
                        self.until = self.reader.offset();
                    }
                    self.next = Some(next);
                }
            }
        }
    }
}

/// A field of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// What it is.
    pub name: &'static str,
    /// Its value as sent; of a signed field, extended.
    pub value: u64,
    /// Its width.
    pub bits: u32,
    /// Its first bit, counted from the start of the item; the lowest bit of a
    /// byte is its first.
    pub first_bit: u32,
    meaning: Meaning,
}

/// How a value is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Number,
    Signed,
    Register,
    Mode,
    Size,
    Operation,
    Result,
}

/// The value as people write it: `a0`, `M`, `amo add`, `-8`, `0x1234`.
impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value;
        match self.meaning {
            Meaning::Number => write!(f, "{value:#x}"),
            Meaning::Signed => write!(f, "{:+}", value.cast_signed()),
            Meaning::Register => match Register::new(value as u16) {
                Some(register) => register.fmt(f),
                None => write!(f, "{value:#x}"),
            },
            Meaning::Mode => match Mode::from_code(value as u8) {
                Some(mode) => f.write_str(mode.name()),
                None => write!(f, "{value}"),
            },
            Meaning::Size => write!(f, "{} bits", 8u64 << value.min(3)),
            Meaning::Operation => match Operation::from_code(value as u8) {
                Some(op) => f.write_str(op.name()),
                None => write!(f, "{value}"),
            },
            Meaning::Result => f.write_str(if value == 0 { "success" } else { "failure" }),
        }
    }
}

/// The fields of an item, in the order of its bytes, opcode and identifier
/// first.
///
/// ```
/// use hartrace_tandem::{Config, Item, Register, explain};
///
/// let item = Item::Offset(Register::x(10), -8);
/// let fields = explain(&item, &Config::default());
/// let told: Vec<_> = fields.iter().map(|f| format!("{} {f}", f.name)).collect();
/// assert_eq!(told, ["opcode 0x5", "register a0", "offset -8"]);
/// ```
#[must_use]
pub fn explain(item: &Item, config: &Config) -> Vec<Field> {
    let mut fields = Fields::default();
    fields.add("opcode", item.opcode().into(), 8);
    if let Some(identifier) = item.identifier() {
        fields.add("identifier", identifier.into(), 8);
    }
    let xlen = config.xlen.bits();
    let mlen = config.mlen.bytes() as u32 * 8;
    match *item {
        Item::BeginGroup | Item::EndGroup | Item::IncrementPc | Item::Reset | Item::StateInit => {}
        Item::Full(register, value) => {
            fields.register(register);
            let bits = match register.is_float() {
                true => config.flen.bits(),
                false => xlen,
            };
            fields.add("value", value, bits);
        }
        Item::Offset(register, offset) => {
            fields.register(register);
            fields.put("offset", offset as u64, 8, Meaning::Signed);
        }
        Item::Mask(register, mask) => {
            fields.register(register);
            fields.add("mask", mask.into(), 8);
        }
        Item::Mode(mode) => fields.put("mode", mode.into(), 8, Meaning::Mode),
        Item::PhysicalAddress(addr) | Item::PcPhysical(addr) => fields.add("address", addr, mlen),
        Item::EffectiveAddress(addr) => {
            fields.add("address", addr, config.eaddr_bytes() as u32 * 8);
        }
        Item::StoreData(size, data) => fields.add("data", data, 8 << size.min(3)),
        Item::Mtime(time) => fields.add("time", time, 64),
        Item::Pc(pc) => fields.add("pc", pc, xlen),
        Item::TwoPcs(old, new) => {
            fields.add("old pc", old, xlen);
            fields.add("pc", new, xlen);
        }
        Item::Request(request) => {
            fields.add("address", request.addr, mlen);
            let op = ("operation", request.op.code(), Meaning::Operation);
            fields.nibbles(config, op, ("size", request.size, Meaning::Size));
            if !request.op.only_reads() {
                fields.add("data", request.data, 8 << request.size.min(3));
            }
        }
        Item::Response(response) => {
            let result = ("result", response.failure.into(), Meaning::Result);
            fields.nibbles(config, ("size", response.size, Meaning::Size), result);
            if !response.op.only_writes() {
                fields.add("data", response.data, 8 << response.size.min(3));
            }
        }
        Item::Insn16(bits) => fields.add("instruction", bits.into(), 16),
        Item::Insn32(bits) => fields.add("instruction", bits.into(), 32),
    }
    fields.all
}

#[derive(Default)]
struct Fields {
    all: Vec<Field>,
    bit: u32,
}

impl Fields {
    fn put(&mut self, name: &'static str, value: u64, bits: u32, meaning: Meaning) {
        self.all.push(Field {
            name,
            value,
            bits,
            first_bit: self.bit,
            meaning,
        });
        self.bit += bits;
    }

    fn add(&mut self, name: &'static str, value: u64, bits: u32) {
        self.put(name, value, bits, Meaning::Number);
    }

    fn register(&mut self, register: Register) {
        let number = register.number().into();
        self.put("register", number, 16, Meaning::Register);
    }

    /// Two fields in a byte, in the order of their bits.
    fn nibbles(
        &mut self,
        config: &Config,
        first: (&'static str, u8, Meaning),
        second: (&'static str, u8, Meaning),
    ) {
        let order = match config.nibbles {
            Nibbles::Low => [first, second],
            Nibbles::High => [second, first],
        };
        for (name, value, meaning) in order {
            self.put(name, value.into(), 4, meaning);
        }
    }
}

impl Operation {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Load => "load",
            Operation::Store => "store",
            Operation::LoadReserved => "load reserved",
            Operation::StoreConditional => "store conditional",
            Operation::AmoSwap => "amo swap",
            Operation::AmoAdd => "amo add",
            Operation::AmoXor => "amo xor",
            Operation::AmoAnd => "amo and",
            Operation::AmoOr => "amo or",
            Operation::AmoMin => "amo min",
            Operation::AmoMax => "amo max",
            Operation::AmoMinu => "amo minu",
            Operation::AmoMaxu => "amo maxu",
            Operation::InstructionFetch => "instruction fetch",
        }
    }
}

impl Item {
    /// Its opcode.
    #[must_use]
    pub const fn opcode(&self) -> u8 {
        match self {
            Item::BeginGroup => 1,
            Item::EndGroup => 2,
            Item::IncrementPc => 3,
            Item::Full(..) => 4,
            Item::Offset(..) => 5,
            Item::Mask(..) => 6,
            Item::Request(_) => 8,
            Item::Response(_) => 9,
            Item::Reset => 10,
            Item::StateInit => 11,
            Item::Insn16(_) => 16,
            Item::Insn32(_) => 17,
            _ => 7,
        }
    }

    /// The identifier of additional state.
    #[must_use]
    pub const fn identifier(&self) -> Option<u8> {
        Some(match self {
            Item::Mode(_) => 1,
            Item::PhysicalAddress(_) => 2,
            Item::EffectiveAddress(_) => 3,
            Item::StoreData(size, _) => 4 + if *size > 3 { 3 } else { *size },
            Item::Mtime(_) => 8,
            Item::PcPhysical(_) => 9,
            Item::Pc(_) | Item::TwoPcs(..) => 10,
            _ => return None,
        })
    }

    /// What it is, in a few words.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Item::BeginGroup => "begin group",
            Item::EndGroup => "end group",
            Item::IncrementPc => "increment pc",
            Item::Full(..) => "register",
            Item::Offset(..) => "register, offset",
            Item::Mask(..) => "register, mask",
            Item::Mode(_) => "privilege mode",
            Item::PhysicalAddress(_) => "physical address",
            Item::EffectiveAddress(_) => "effective address",
            Item::StoreData(..) => "store data",
            Item::Mtime(_) => "mtime",
            Item::PcPhysical(_) => "pc physical address",
            Item::Pc(_) | Item::TwoPcs(..) => "pc",
            Item::Request(_) => "memory request",
            Item::Response(_) => "memory response",
            Item::Reset => "hart reset",
            Item::StateInit => "state initialization",
            Item::Insn16(_) => "instruction, 16 bits",
            Item::Insn32(_) => "instruction, 32 bits",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{any_config, items, mixture};
    use alloc::string::ToString;
    use hartrace_testkit::Random;

    /// The fields cover the item, bit after bit, and their values are its
    /// bytes.
    #[test]
    fn the_fields_are_the_item() {
        for config in crate::testing::configs() {
            for item in items(&config) {
                let fields = explain(&item, &config);
                let mut bytes = Vec::new();
                item.write(&config, &mut bytes);
                let mut bit = 0;
                for field in &fields {
                    assert_eq!(field.first_bit, bit, "{item:?}");
                    bit += field.bits;
                    let sent = (0..field.bits).fold(0u64, |value, i| {
                        let at = field.first_bit + i;
                        let set = bytes[at as usize / 8] >> (at % 8) & 1;
                        value | u64::from(set) << i
                    });
                    let mask = u64::MAX >> (64 - field.bits);
                    assert_eq!(sent, field.value & mask, "{item:?} {}", field.name);
                    assert!(!field.to_string().is_empty());
                }
                assert_eq!(bit as usize, bytes.len() * 8, "{item:?}");
                assert_eq!(bytes[0], item.opcode());
            }
        }
    }

    /// Pieces are the trace: every byte once, groups and problems as the
    /// reader has them.
    #[test]
    fn the_pieces_are_the_trace() {
        let mut random = Random::new(1);
        for round in 0..400 {
            let config = any_config(&mut random);
            let mut bytes = mixture(&config, &mut random);
            for _ in 0..round % 4 {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.draw() as u8;
            }
            bytes.truncate(bytes.len() - random.below(20) as usize);
            let (mut at, mut told) = (0, Vec::new());
            for piece in Pieces::new(&bytes, &config) {
                match piece {
                    Piece::Item(item, offset, len) => {
                        assert_eq!(offset, at);
                        at += len as u64;
                        let mut again = Vec::new();
                        item.write(&config, &mut again);
                        assert_eq!(again.len(), len);
                    }
                    Piece::Bad(offset, len) => {
                        assert_eq!(offset, at);
                        at += len;
                    }
                    Piece::Group(_, number, offset, len) => {
                        assert_eq!(offset + len, at);
                        told.push((number, None));
                    }
                    Piece::Problem(problem) => told.push((problem.at, Some(problem.fault))),
                }
            }
            assert_eq!(at, bytes.len() as u64);
            assert_eq!(told, plain(&bytes, &config));
        }
    }

    fn plain(bytes: &[u8], config: &Config) -> Vec<(u64, Option<crate::Fault>)> {
        let mut reader = Reader::new(config.clone());
        let mut told = Vec::new();
        let mut rest = bytes;
        let mut next = reader.next(&mut rest);
        loop {
            match next {
                Next::Group => told.push((reader.group().number, None)),
                Next::Problem(problem) => told.push((problem.at, Some(problem.fault))),
                Next::Resumed(_) => {}
                Next::More => break,
            }
            next = reader.next(&mut rest);
        }
        loop {
            match reader.finish() {
                Next::Group => told.push((reader.group().number, None)),
                Next::Problem(problem) => told.push((problem.at, Some(problem.fault))),
                Next::Resumed(_) => {}
                Next::More => return told,
            }
        }
    }
}
