//! Queries about the state in a tandem trace: registers and memory at an
//! instruction, and which group wrote them last.
//!
//! [`hartrace_tandem::history`] answers from the trace alone. Here, memory that
//! the trace has not reported comes from the program, and registers and
//! addresses can be given by name.

pub use hartrace_tandem::{Config, History};

use crate::input::{Input, InputError};
use crate::program::parse_address;
use crate::quantity::parse_size;
use crate::trace::{StreamPiece, Streams};
use hartrace_tandem::history::{Byte, IndexError, Origin, Recorder, State, Target, Write};
use hartrace_tandem::{GroupKind, Register};
use std::fmt;
use std::path::Path;

/// The most memory that is shown at once.
const MOST: u64 = 1 << 20;

/// Bytes that are read at a time.
const CHUNK: usize = 1 << 20;

/// The stream of one hart in a container: of the one that is wanted, or of the
/// only one.
///
/// # Errors
///
/// The harts there are, if it is none of them or there are several.
pub fn unpack(contents: &[u8], wanted: Option<u32>) -> Result<Vec<u8>, Vec<u32>> {
    let mut streams = Streams::default();
    let mut harts = Vec::new();
    let mut bytes = Vec::new();
    let mut take = |piece: StreamPiece<'_>| -> Result<(), Vec<u32>> {
        match piece {
            StreamPiece::Bytes(hart, piece) => {
                if !harts.contains(&hart.0) {
                    harts.push(hart.0);
                }
                if wanted.is_none_or(|wanted| wanted == hart.0) {
                    bytes.extend_from_slice(piece);
                }
            }
            // No opcode, so that the reader sees that something is missing.
            StreamPiece::Lost(_) => bytes.push(0xff),
        }
        Ok(())
    };
    for chunk in contents.chunks(CHUNK) {
        streams.feed(chunk, &mut take)?;
    }
    streams.finish(&mut take)?;
    let several = harts.len() > 1 && wanted.is_none();
    if several || wanted.is_some_and(|hart| !harts.contains(&hart)) {
        harts.sort_unstable();
        return Err(harts);
    }
    Ok(bytes)
}

/// The history of a stream; `after` gets the number of bytes of each piece
/// that was read.
pub fn record(stream: &[u8], config: Config, mut after: impl FnMut(usize)) -> History {
    let mut recorder = Recorder::new(config);
    for chunk in stream.chunks(CHUNK) {
        recorder.feed(chunk);
        after(chunk.len());
    }
    recorder.finish()
}

/// The history of a stream from its index, a file of up to `most` bytes.
///
/// # Errors
///
/// An index that cannot be read, or that is not of this stream.
pub fn read_index(
    path: &Path,
    most: u64,
    config: Config,
    stream: &[u8],
) -> Result<History, BadIndex> {
    let bytes = Input::open(path).and_then(|input| input.contents(most));
    let bytes = bytes.map_err(BadIndex::Input)?;
    History::from_bytes(&bytes, config, stream).map_err(BadIndex::Index)
}

/// Why an index is not used.
#[derive(Debug)]
pub enum BadIndex {
    /// It cannot be read.
    Input(InputError),
    /// It is none, or of another trace.
    Index(IndexError),
}

impl fmt::Display for BadIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadIndex::Input(error) => error.fmt(f),
            BadIndex::Index(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BadIndex {}

/// A register, or one of the values kept beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A register.
    Register(Register),
    /// The program counter.
    Pc,
    /// The privilege mode.
    Mode,
    /// The time.
    Mtime,
}

impl Place {
    /// `a0`, `x10`, `mstatus`, `pc`, `priv`, `mtime`; no numbers, which look
    /// like addresses.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Place> {
        Some(match name {
            "pc" => Place::Pc,
            "priv" | "mode" => Place::Mode,
            "mtime" => Place::Mtime,
            _ if name.starts_with("0x") => return None,
            _ => Place::Register(Register::from_name(name)?),
        })
    }
}

/// A byte of memory and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// From the trace.
    Trace(u8),
    /// From the program: the trace has not reported it.
    Program(u8),
    /// Unknown.
    Unknown,
}

/// Some memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The address of the first byte.
    pub addr: u64,
    /// Its bytes.
    pub bytes: Vec<Source>,
}

/// The state before an instruction.
#[derive(Clone, Debug)]
pub struct Shown<'n> {
    /// The number of the instruction.
    pub insn: u64,
    /// How many there are.
    pub instructions: u64,
    /// The state.
    pub state: State,
    /// Registers that were asked for, with their names.
    pub registers: Vec<(&'n str, Place)>,
    /// Memory that was asked for.
    pub memory: Vec<Block>,
}

/// The last write to a register or to memory.
#[derive(Clone, Copy, Debug)]
pub struct LastWrite<'n> {
    /// The name it was asked for by.
    pub name: &'n str,
    /// Before this instruction.
    pub before: u64,
    /// What that is.
    pub target: Target,
    /// The write.
    pub origin: Origin,
    /// The old value, or a part of it, comes from the program: the trace has not
    /// reported it.
    pub old_from_program: bool,
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskError {
    /// A name that is no register.
    NotARegister(String),
    /// Text that is no place in memory.
    NotAPlace(String),
    /// There is no such instruction.
    Beyond(u64),
}

/// A part of memory as a loader leaves it; bytes past `data` are zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// The address of the first byte.
    pub addr: u64,
    /// Its size in bytes.
    pub size: u64,
    /// The first of them.
    pub data: Vec<u8>,
}

/// A trace that is asked about.
pub struct Asked<'a> {
    /// The history of the stream.
    pub history: &'a History,
    /// The stream.
    pub stream: &'a [u8],
    /// Memory at the start, the last of overlapping parts in force.
    pub loaded: Vec<Loaded>,
}

impl Asked<'_> {
    /// The state before an instruction, with these registers and places in
    /// memory; `symbol` gives the address of a symbol.
    ///
    /// # Errors
    ///
    /// A name that means nothing, or an instruction past the end.
    pub fn show<'n>(
        &self,
        insn: u64,
        registers: &'n [String],
        memory: &[String],
        symbol: &impl Fn(&str) -> Option<u64>,
    ) -> Result<Shown<'n>, AskError> {
        let register = |name: &'n String| {
            let place = Place::from_name(name);
            let place = place.ok_or_else(|| AskError::NotARegister(name.clone()))?;
            Ok((name.as_str(), place))
        };
        let registers = registers.iter().map(register);
        let registers = registers.collect::<Result<Vec<_>, AskError>>()?;
        let places = memory.iter().map(|text| memory_place(text, 16, symbol));
        let places = places.collect::<Result<Vec<_>, AskError>>()?;
        let state = self.history.at(self.stream, insn);
        let state = state.ok_or(AskError::Beyond(insn))?;
        let memory = places
            .iter()
            .map(|&(addr, len)| self.block(insn, addr, len));
        Ok(Shown {
            insn,
            instructions: self.history.instructions(),
            state,
            registers,
            memory: memory.collect(),
        })
    }

    /// The last write to a register or a place in memory before an
    /// instruction.
    ///
    /// # Errors
    ///
    /// A name that means nothing, or an instruction past the end.
    pub fn last_write<'n>(
        &self,
        name: &'n str,
        before: u64,
        symbol: &impl Fn(&str) -> Option<u64>,
    ) -> Result<LastWrite<'n>, AskError> {
        let target = match Place::from_name(name) {
            Some(Place::Register(register)) => Target::Register(register),
            Some(Place::Pc) => Target::Pc,
            Some(Place::Mode) => Target::Mode,
            _ => {
                let (addr, len) = memory_place(name, 1, symbol)?;
                Target::Memory { addr, len }
            }
        };
        let origin = self.history.last_write(self.stream, target, before);
        let mut origin = origin.ok_or(AskError::Beyond(before))?;
        let mut old_from_program = false;
        if let Origin::Write(write) = &mut origin {
            let old = self.old_with_program(write);
            old_from_program = old.is_some();
            write.old = write.old.or(old);
        }
        Ok(LastWrite {
            name,
            before,
            target,
            origin,
            old_from_program,
        })
    }

    /// What a store of an instruction found, if the trace alone does not say and
    /// the program does.
    fn old_with_program(&self, write: &Write) -> Option<u64> {
        let Target::Memory {
            addr,
            len: len @ ..=8,
        } = write.target
        else {
            return None;
        };
        if write.old.is_some() || write.kind != GroupKind::Instruction {
            return None;
        }
        let bytes = self.block(write.insn, addr, len).bytes;
        bytes.iter().rev().try_fold(0, |sum, byte| match byte {
            Source::Trace(byte) | Source::Program(byte) => Some(sum << 8 | u64::from(*byte)),
            Source::Unknown => None,
        })
    }

    fn block(&self, insn: u64, addr: u64, len: u64) -> Block {
        let known = self.history.memory(self.stream, insn, addr, len as usize);
        let source = |(i, byte): (usize, Byte)| match byte {
            Byte::Told(byte) => Source::Trace(byte),
            Byte::Unreported => self
                .in_program(addr.wrapping_add(i as u64))
                .map_or(Source::Unknown, Source::Program),
            Byte::Lost => Source::Unknown,
        };
        let bytes = known.unwrap_or_default().into_iter().enumerate();
        Block {
            addr,
            bytes: bytes.map(source).collect(),
        }
    }

    fn in_program(&self, addr: u64) -> Option<u8> {
        self.loaded.iter().rev().find_map(|part| {
            let at = addr.checked_sub(part.addr)?;
            let byte = usize::try_from(at).ok().and_then(|at| part.data.get(at));
            byte.copied().or((at < part.size).then_some(0))
        })
    }
}

/// `ADDRESS`, `SYMBOL` or `SYMBOL+OFFSET`, and `:LENGTH`; the address and the
/// length, which is `usual` if none is given.
///
/// # Errors
///
/// Text that is no place in memory.
pub fn memory_place(
    text: &str,
    usual: u64,
    symbol: &impl Fn(&str) -> Option<u64>,
) -> Result<(u64, u64), AskError> {
    let bad = || AskError::NotAPlace(text.to_owned());
    let number = |text: &str| parse_address(text).filter(|_| !text.is_empty());
    let one = |text: &str| number(text).or_else(|| symbol(text));
    let (place, len) = match text.rsplit_once(':') {
        // A symbol may have colons of its own.
        Some((place, len)) if symbol(text).is_none() => (place, parse_size(len).ok_or_else(bad)?),
        _ => (text, usual),
    };
    let addr = one(place).or_else(|| {
        let (base, offset) = place.rsplit_once('+')?;
        Some(one(base)?.wrapping_add(number(offset)?))
    });
    match addr {
        Some(addr) if (1..=MOST).contains(&len) => Ok((addr, len)),
        _ => Err(bad()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_by_name_and_number() {
        let symbol = |name: &str| match name {
            "main" => Some(0x1000),
            "a::b" => Some(0x2000),
            _ => None,
        };
        let place = |text| memory_place(text, 16, &symbol).ok();
        assert_eq!(place("0x80"), Some((0x80, 16)));
        assert_eq!(place("main:4"), Some((0x1000, 4)));
        assert_eq!(place("main+0x10:4"), Some((0x1010, 4)));
        assert_eq!(place("a::b"), Some((0x2000, 16)));
        assert_eq!(place("other"), None);
        assert_eq!(place("main:0"), None);
        assert_eq!(place("main:2M"), None);
        assert_eq!(Place::from_name("0x300"), None);
        assert_eq!(
            Place::from_name("x10"),
            Some(Place::Register(Register::x(10)))
        );
    }
}
