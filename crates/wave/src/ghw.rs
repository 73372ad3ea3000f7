//! The GHW format of GHDL: VHDL signals with their types.
//!
//! A file has a header (texts, types, the hierarchy), a snapshot of all signals and cycles
//! of changes. A signal of the file is a scalar: a vector is a list of them, from its left
//! bit on. Times are femtoseconds.

mod types;

use self::types::Types;
use crate::bytes::Bytes;
use crate::header::{Body, Leaf, Scopes};
use crate::watch::{Board, Part, Take, Watch};
use crate::{Header, Var, WaveError};
use std::sync::Arc;

/// The start of every file.
pub(crate) const MAGIC: &[u8] = b"GHDLwave\n";

/// Bytes of the first header, magic included.
const HEADER: usize = 16;

/// Codes in the hierarchy.
const END: u8 = 0;
const DESIGN: u8 = 1;
const BLOCK: u8 = 3;
const GENERATE_IF: u8 = 4;
const GENERATE_FOR: u8 = 5;
const INSTANCE: u8 = 6;
const PACKAGE: u8 = 7;
const PROCESS: u8 = 13;
const GENERIC: u8 = 14;
const END_OF_SCOPE: u8 = 15;
const SIGNAL: u8 = 16;
const LINKAGE: u8 = 21;

/// Most bits of a variable.
const MAX_WIDTH: u64 = 1 << 20;

/// The nine levels of `std_ulogic` in their order.
const LEVELS: &[u8; 9] = b"ux01zwlh-";

/// Reads a section's start: its name and four zero bytes.
fn section<'a>(bytes: &mut Bytes<'a>) -> Option<&'a [u8]> {
    bytes.take(4)
}

/// A number of four bytes.
fn word(bytes: &mut Bytes<'_>, big_endian: bool) -> Option<u32> {
    let word = bytes.take(4)?.try_into().ok()?;
    Some(match big_endian {
        true => u32::from_be_bytes(word),
        false => u32::from_le_bytes(word),
    })
}

pub(crate) fn read_header(
    head: &[u8],
    see: &mut dyn FnMut(&Var<'_>),
) -> Result<Option<Header>, WaveError> {
    let mut bytes = Bytes::new(head);
    let Some(start) = bytes.take(HEADER) else {
        return Ok(None);
    };
    let (version, big_endian) = match start.get(MAGIC.len()..) {
        Some([16, 0, version @ 0..=1, order @ 1..=2, ..]) => (*version, *order == 2),
        _ => return Err(WaveError::Unsupported("a version of GHW that is not known")),
    };
    // The end of the header is looked for first: a header is read again with more bytes.
    let (mut texts, mut types) = (Vec::new(), Types::default());
    let mut kinds = Vec::new();
    let mut seen = Vec::new();
    loop {
        let at = bytes.position();
        let damaged = |what| WaveError::Damaged {
            what,
            offset: at as u64,
        };
        let Some(name) = section(&mut bytes) else {
            return Ok(None);
        };
        let read = match name {
            b"STR\0" => texts_of(&mut bytes, big_endian).map(|read| texts = read),
            b"TYP\0" => {
                bytes.take(4);
                let read = word(&mut bytes, big_endian)
                    .and_then(|count| Types::read(&mut bytes, count as usize, version, &texts));
                read.map(|read| types = read)
            }
            b"WKT\0" => well_known(&mut bytes),
            b"HIE\0" => {
                let mut hierarchy = Hierarchy {
                    texts: &texts,
                    types: &types,
                    scopes: Scopes::default(),
                    kinds: Vec::new(),
                    seen: &mut seen,
                };
                let read = hierarchy.read(&mut bytes, big_endian);
                read.map(|()| kinds = hierarchy.kinds)
            }
            b"EOH\0" => break,
            _ => return Err(damaged("an unknown section of the header")),
        };
        if read.is_none() {
            // A header that is not whole may as well be damaged; the end shows which.
            return match head.windows(4).any(|window| window == b"EOH\0") {
                true => Err(damaged("a section of the header")),
                false => Ok(None),
            };
        }
    }
    for var in &seen {
        see(&Var {
            scope: &var.scope,
            name: &var.name,
            range: var.range,
            width: var.width,
            signals: &var.signals,
        });
    }
    let start = bytes.position() as u64;
    let body = Body::Ghw {
        start,
        kinds,
        big_endian,
    };
    Ok(Some(Header::new(-15, body)))
}

/// The texts, each of which starts with so many characters of the one before.
fn texts_of(bytes: &mut Bytes<'_>, big_endian: bool) -> Option<Vec<String>> {
    bytes.take(4)?;
    let count = word(bytes, big_endian)? as usize;
    bytes.take(4)?;
    let mut texts = vec![String::new()];
    let mut text = Vec::new();
    // The table has one more than it says.
    for _ in 0..=count {
        let mut end = loop {
            match bytes.byte()? {
                byte @ (0..=31 | 128..=159) => break byte,
                byte => text.push(byte),
            }
        };
        texts.push(String::from_utf8_lossy(&text).into_owned());
        let (mut same, mut shift) = (usize::from(end & 31), 5u32);
        while end >= 128 {
            end = bytes.byte()?;
            same |= usize::from(end & 31).checked_shl(shift)?;
            shift += 5;
        }
        text.truncate(same);
    }
    Some(texts)
}

/// Types that have a meaning; it follows from their values as well.
fn well_known(bytes: &mut Bytes<'_>) -> Option<()> {
    bytes.take(4)?;
    while bytes.byte()? != 0 {
        bytes.varint()?;
    }
    Some(())
}

/// A variable of the hierarchy.
struct Seen {
    scope: String,
    name: String,
    range: Option<(i64, i64)>,
    width: u32,
    signals: Vec<u64>,
}

struct Hierarchy<'h> {
    texts: &'h [String],
    types: &'h Types,
    scopes: Scopes,
    kinds: Vec<Leaf>,
    seen: &'h mut Vec<Seen>,
}

impl Hierarchy<'_> {
    fn read(&mut self, bytes: &mut Bytes<'_>, big_endian: bool) -> Option<()> {
        bytes.take(4 + 8)?;
        let signals = word(bytes, big_endian)? as usize;
        loop {
            match bytes.byte()? {
                END => break,
                END_OF_SCOPE => self.scopes.leave(),
                DESIGN => {}
                // A process has no signals of its own, and no end.
                PROCESS => {
                    bytes.varint()?;
                }
                code @ (BLOCK | GENERATE_IF | GENERATE_FOR | INSTANCE | PACKAGE | GENERIC) => {
                    let mut name = self.texts.get(bytes.small()?)?.clone();
                    if code == GENERATE_FOR {
                        let value = match self.types.leaf(bytes.small()?)? {
                            Leaf::Logic | Leaf::Enum(_) => bytes.byte()?.into(),
                            Leaf::Integer(_) => bytes.signed()?,
                            Leaf::Real | Leaf::None => return None,
                        };
                        name = format!("{name}({value})");
                    }
                    self.scopes.enter(&name).then_some(())?;
                }
                SIGNAL..=LINKAGE => {
                    let name = self.texts.get(bytes.small()?)?;
                    let kind = bytes.small()?;
                    self.var(bytes, signals, name, kind, 0)?;
                }
                _ => return None,
            }
        }
        // Values of others could not be read.
        (self.kinds.len() == signals).then_some(())
    }

    /// A variable, or the parts of one.
    fn var(
        &mut self,
        bytes: &mut Bytes<'_>,
        signals: usize,
        name: &str,
        kind: usize,
        depth: usize,
    ) -> Option<()> {
        if depth > types::MAX_DEPTH {
            return None;
        }
        if self.types.is_empty(kind) {
            return Some(());
        }
        match self.types.get(kind)? {
            types::Type::Leaf(leaf) => {
                let signal = self.signal(bytes, signals, *leaf)?;
                self.show(name, None, leaf.width(), vec![signal]);
            }
            types::Type::Array { element, range } => {
                let (left, right) = (*range)?;
                let count = i64::abs_diff(left, right).checked_add(1)?;
                let leaf = self.types.leaf(*element);
                if let Some(leaf @ (Leaf::Logic | Leaf::Enum(1))) = leaf {
                    let count = Some(count).filter(|count| *count <= MAX_WIDTH)?;
                    let bits: Option<Vec<u64>> = (0..count)
                        .map(|_| self.signal(bytes, signals, leaf))
                        .collect();
                    self.show(name, *range, count as u32, bits?);
                    return Some(());
                }
                self.scopes.enter(name).then_some(())?;
                let step = if left <= right { 1 } else { -1 };
                for at in 0..count {
                    let index = left + step * at as i64;
                    self.var(bytes, signals, &format!("[{index}]"), *element, depth + 1)?;
                }
                self.scopes.leave();
            }
            types::Type::Record(fields) => {
                self.scopes.enter(name).then_some(())?;
                for (field, kind) in fields {
                    let name = self.texts.get(*field)?;
                    self.var(bytes, signals, name, *kind, depth + 1)?;
                }
                self.scopes.leave();
            }
        }
        Some(())
    }

    /// The number of a scalar, which is of this kind from now on.
    fn signal(&mut self, bytes: &mut Bytes<'_>, signals: usize, leaf: Leaf) -> Option<u64> {
        let number = bytes.small()?;
        let at = number.checked_sub(1).filter(|at| *at < signals)?;
        // They are numbered in the order in which they come first.
        if at == self.kinds.len() {
            self.kinds.push(leaf);
        }
        *self.kinds.get_mut(at)? = leaf;
        Some(at as u64)
    }

    fn show(&mut self, name: &str, range: Option<(i64, i64)>, width: u32, signals: Vec<u64>) {
        if width > 0 && !signals.is_empty() {
            self.seen.push(Seen {
                scope: self.scopes.path().to_owned(),
                name: name.to_owned(),
                range,
                width,
                signals,
            });
        }
    }
}

/// Reads the changes.
pub(crate) struct Reader {
    body: Arc<Body>,
    /// Bytes of the header that have not passed.
    skip: u64,
    /// Bytes read so far.
    offset: u64,
    rest: Vec<u8>,
    /// The parts of watched signals, sorted by signal.
    parts: Vec<(u64, usize, Part)>,
    /// By signal: where its parts are among these, or those of the next one that is watched.
    first: Vec<u32>,
    board: Board,
    time: u64,
    state: State,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Section,
    /// The value of this signal in a snapshot.
    Snapshot(u64),
    /// The distance to the next signal that changes in a cycle.
    Cycle(u64),
    /// The value of this signal in a cycle.
    Change(u64),
    /// The time of the next cycle.
    NextCycle,
    /// The file has ended.
    End,
}

/// What was read: `None` if more bytes are needed.
type Read<T> = Result<Option<T>, &'static str>;

impl Reader {
    pub(crate) fn new(body: &Arc<Body>, start: u64, watch: Watch) -> Reader {
        let watched = watch.watched.iter().enumerate();
        let parts = watched.flat_map(|(at, watched)| {
            let parts = watched.parts.iter();
            parts.map(move |part| (part.signal, at, *part))
        });
        let signals = match &**body {
            Body::Ghw { kinds, .. } => kinds.len() as u64,
            _ => 0,
        };
        let parts = parts.filter(|part| part.0 < signals);
        let mut parts: Vec<(u64, usize, Part)> = parts.collect();
        parts.sort_by_key(|part| part.0);
        let mut first = Vec::new();
        for (at, part) in (0u32..).zip(&parts) {
            while first.len() as u64 <= part.0 {
                first.push(at);
            }
        }
        Reader {
            first,
            body: Arc::clone(body),
            skip: start,
            offset: 0,
            rest: Vec::new(),
            parts,
            board: Board::new(&watch),
            time: 0,
            state: State::Section,
        }
    }

    pub(crate) fn feed(&mut self, chunk: &[u8], take: &mut Take<'_>) -> Result<(), WaveError> {
        let skipped = self.skip.min(chunk.len() as u64);
        self.skip -= skipped;
        self.offset += skipped;
        let chunk = chunk.get(skipped as usize..).unwrap_or_default();
        let mut held = std::mem::take(&mut self.rest);
        held.extend_from_slice(chunk);
        let mut bytes = Bytes::new(&held);
        let mut done = 0;
        let result = loop {
            match self.next(&mut bytes, take) {
                Ok(Ok(Some(()))) => done = bytes.position(),
                Ok(Ok(None)) => break Ok(()),
                Ok(Err(what)) => {
                    let offset = self.offset + done as u64;
                    break Err(WaveError::Damaged { what, offset });
                }
                Err(error) => break Err(error),
            }
        };
        self.offset += done as u64;
        held.drain(..done);
        self.rest = held;
        result
    }

    pub(crate) fn finish(&mut self) -> Result<(), WaveError> {
        match self.state == State::End {
            true => Ok(()),
            false => Err(WaveError::Truncated),
        }
    }

    /// Reads the next thing.
    fn next(&mut self, bytes: &mut Bytes<'_>, take: &mut Take<'_>) -> Result<Read<()>, WaveError> {
        let read = match self.state {
            State::Section => self.section(bytes),
            State::Snapshot(signal) if signal >= self.signals() => {
                let end = bytes.take(4);
                if end.is_some() {
                    self.board.step(self.time, take)?;
                    self.state = State::Section;
                }
                ending(end, b"ESN\0")
            }
            State::Snapshot(signal) => {
                let next = State::Snapshot(signal + 1);
                self.value(bytes, signal, next)
            }
            State::Cycle(signal) => match bytes.varint() {
                None => Ok(None),
                Some(0) => {
                    self.board.step(self.time, take)?;
                    self.state = State::NextCycle;
                    Ok(Some(()))
                }
                Some(distance) => {
                    let signal = signal.saturating_add(distance);
                    self.state = State::Change(signal);
                    match signal <= self.signals() {
                        true => Ok(Some(())),
                        false => Err("a signal that the file has not"),
                    }
                }
            },
            State::Change(signal) => self.value(bytes, signal - 1, State::Cycle(signal)),
            State::NextCycle => self.next_cycle(bytes),
            State::End => Ok(None),
        };
        Ok(read)
    }

    fn signals(&self) -> u64 {
        match &*self.body {
            Body::Ghw { kinds, .. } => kinds.len() as u64,
            _ => 0,
        }
    }

    fn section(&mut self, bytes: &mut Bytes<'_>) -> Read<()> {
        let big_endian = matches!(
            &*self.body,
            Body::Ghw {
                big_endian: true,
                ..
            }
        );
        let Some(name) = section(bytes) else {
            return Ok(None);
        };
        // A snapshot has four zero bytes before its time, a cycle has none.
        let time = |bytes: &mut Bytes<'_>, zeros: usize| {
            bytes.take(zeros)?;
            let time = bytes.take(8)?.try_into().ok()?;
            Some(match big_endian {
                true => u64::from_be_bytes(time),
                false => u64::from_le_bytes(time),
            })
        };
        let (time, state) = match name {
            b"SNP\0" => (time(bytes, 4), State::Snapshot(0)),
            b"CYC\0" => (time(bytes, 0), State::Cycle(0)),
            // Then there are only the places of sections.
            b"DIR\0" | b"TAI\0" => (Some(self.time), State::End),
            _ => return Err("an unknown section"),
        };
        let Some(time) = time else {
            return Ok(None);
        };
        if time < self.time || time > i64::MAX as u64 {
            return Err("a time before the last one");
        }
        (self.time, self.state) = (time, state);
        Ok(Some(()))
    }

    fn next_cycle(&mut self, bytes: &mut Bytes<'_>) -> Read<()> {
        let mut ahead = *bytes;
        let Some(distance) = ahead.signed() else {
            return Ok(None);
        };
        if let Ok(distance) = u64::try_from(distance) {
            let time = self.time.checked_add(distance);
            self.time = time.ok_or("a time that is too large")?;
            self.state = State::Cycle(0);
            *bytes = ahead;
            return Ok(Some(()));
        }
        let end = ahead.take(4);
        if end.is_some() {
            *bytes = ahead;
            self.state = State::Section;
        }
        ending(end, b"ECY\0")
    }

    /// Reads the value of a signal.
    fn value(&mut self, bytes: &mut Bytes<'_>, signal: u64, next: State) -> Read<()> {
        let Body::Ghw { kinds, .. } = &*self.body else {
            return Err("a header of another format");
        };
        let at = usize::try_from(signal).ok();
        let leaf = at.and_then(|at| kinds.get(at)).copied().unwrap_or_default();
        let (bits, unknown) = match leaf {
            Leaf::None => return Err("a value of a signal that no variable has"),
            Leaf::Logic => match bytes.byte() {
                None => return Ok(None),
                Some(level) => {
                    let level = LEVELS.get(usize::from(level)).ok_or("a level")?;
                    crate::value::bit_of(*level)
                }
            },
            Leaf::Enum(_) => match bytes.byte() {
                None => return Ok(None),
                Some(value) => (value.into(), 0),
            },
            Leaf::Integer(_) => {
                let whole = bytes.rest().len() >= 10;
                match bytes.signed() {
                    None if whole => return Err("a number that is too long"),
                    None => return Ok(None),
                    Some(value) => (value.cast_unsigned(), 0),
                }
            }
            Leaf::Real => match bytes.take(8) {
                None => return Ok(None),
                Some(_) => (0, 0),
            },
        };
        let first = at.and_then(|at| self.first.get(at)).copied();
        let parts = first.and_then(|first| self.parts.get(first as usize..));
        let parts = parts.unwrap_or_default().iter();
        for (_, watched, part) in parts.take_while(|part| part.0 == signal) {
            self.board.change(*watched, |value| {
                value.set(part.lsb, part.width, bits, unknown);
            });
        }
        self.state = next;
        Ok(Some(()))
    }
}

/// The end of a section.
fn ending(found: Option<&[u8]>, expected: &[u8]) -> Read<()> {
    match found {
        None => Ok(None),
        Some(end) if end == expected => Ok(Some(())),
        Some(_) => Err("a section without an end"),
    }
}
