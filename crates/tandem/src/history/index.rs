//! A history as bytes, stored next to its trace.
//!
//! All numbers are little-endian. The fixed part has the magic, the version (4
//! bytes), the length of the trace, a checksum of its settings, a checksum of
//! some of its bytes, and a checksum of the rest (8 bytes each). The rest has
//! counts, then the points; its numbers have seven bits per byte, lowest first,
//! with the top bit set in all bytes but the last.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use hartrace_flow::Mode;

use super::lines::Range;
use super::{History, Interval, Point};
use crate::config::Config;
use crate::elements::Registers;
use crate::register::Register;

const MAGIC: [u8; 8] = *b"\x89HTstate";
const VERSION: u32 = 1;

/// Bytes before the counts.
pub(super) const HEADER: usize = 8 + 4 + 8 * 4;

/// Places of a trace that are looked at, and bytes at each.
const PLACES: u64 = 256;
const PLACE: u64 = 256;

/// Why bytes are not the history of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexError {
    /// They are something else.
    NotAnIndex,
    /// A version that is not known here.
    Version(u32),
    /// The trace has another length.
    Length {
        /// In bytes, when the index was made.
        indexed: u64,
        /// Now.
        now: u64,
    },
    /// The trace has other bytes.
    Contents,
    /// The trace is read with other settings.
    Settings,
    /// The index itself is damaged.
    Damaged,
}

impl fmt::Display for IndexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IndexError::NotAnIndex => f.write_str("it is not an index"),
            IndexError::Version(version) => {
                write!(
                    f,
                    "it has version {version}, but only version {VERSION} is supported"
                )
            }
            IndexError::Length { indexed, now } => write!(
                f,
                "it belongs to a trace of {indexed} bytes, but this one has {now}"
            ),
            IndexError::Contents => f.write_str("it belongs to another trace"),
            IndexError::Settings => f.write_str("it was made with other settings of the trace"),
            IndexError::Damaged => f.write_str("it is damaged"),
        }
    }
}

impl core::error::Error for IndexError {}

impl History {
    /// The history as bytes, with marks of the trace it belongs to.
    #[must_use]
    pub fn to_bytes(&self, trace: &[u8]) -> Vec<u8> {
        let mut body = Vec::new();
        for number in [
            self.instructions,
            self.groups,
            self.problems,
            self.points.len() as u64,
        ] {
            put(&mut body, number);
        }
        for point in &self.points {
            put_point(&mut body, point);
        }
        let mut bytes = Vec::with_capacity(HEADER + body.len());
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        for number in [
            self.len,
            of_config(&self.config),
            of_trace(trace),
            Sum::of(&body),
        ] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.append(&mut body);
        bytes
    }

    /// The history of a trace that is read by `config`, from its bytes.
    ///
    /// # Errors
    ///
    /// Bytes that are no index, are damaged, or belong to another trace or
    /// other settings. Of the trace only some bytes are compared.
    pub fn from_bytes(bytes: &[u8], config: Config, trace: &[u8]) -> Result<History, IndexError> {
        let mut rest = bytes.strip_prefix(&MAGIC).ok_or(IndexError::NotAnIndex)?;
        let (version, behind) = rest.split_first_chunk().ok_or(IndexError::Damaged)?;
        let version = u32::from_le_bytes(*version);
        if version != VERSION {
            return Err(IndexError::Version(version));
        }
        rest = behind;
        let mut fixed = || -> Result<u64, IndexError> {
            let (number, behind) = rest.split_first_chunk().ok_or(IndexError::Damaged)?;
            rest = behind;
            Ok(u64::from_le_bytes(*number))
        };
        let (len, settings, contents, sum) = (fixed()?, fixed()?, fixed()?, fixed()?);
        if Sum::of(rest) != sum {
            return Err(IndexError::Damaged);
        }
        let now = trace.len() as u64;
        if len != now {
            return Err(IndexError::Length { indexed: len, now });
        }
        if settings != of_config(&config) {
            return Err(IndexError::Settings);
        }
        if contents != of_trace(trace) {
            return Err(IndexError::Contents);
        }
        let read = read_body(rest, config, len);
        read.ok_or(IndexError::Damaged)
    }
}

/// Everything after the header; `None` if it is invalid.
fn read_body(bytes: &[u8], config: Config, len: u64) -> Option<History> {
    let mut rest = bytes;
    let (instructions, groups, problems) = (take(&mut rest)?, take(&mut rest)?, take(&mut rest)?);
    let points = list(&mut rest, take_point)?;
    let ordered = points.is_sorted_by(|a, b| a.offset < b.offset && a.insn <= b.insn);
    let (first, last) = (points.first()?, points.last()?);
    let fits = last.offset <= len && last.insn <= instructions && first.insn == 0;
    (ordered && fits && rest.is_empty()).then_some(History {
        config,
        points,
        instructions,
        groups,
        problems,
        len,
    })
}

fn put_point(out: &mut Vec<u8>, point: &Point) {
    for number in [point.insn, point.group, point.offset] {
        put(out, number);
    }
    for number in [point.pc, point.mode.map(|m| m.code().into()), point.mtime] {
        put(out, number.is_some().into());
        put(out, number.unwrap_or(0));
    }
    put(out, point.registers.len() as u64);
    let mut last = 0;
    for &(register, value) in &point.registers {
        put(out, u64::from(register.number()) - last);
        put(out, value);
        last = register.number().into();
    }
    let behind = &point.behind;
    let flags = [behind.lost_registers, behind.lost_memory, behind.mode];
    put(
        out,
        flags
            .iter()
            .fold(0, |sum, &flag| sum << 1 | u64::from(flag)),
    );
    put(out, behind.registers.iter().count() as u64);
    let mut last = 0;
    for register in behind.registers.iter() {
        put(out, u64::from(register.number()) - last);
        last = register.number().into();
    }
    put(out, behind.memory.len() as u64);
    let mut last = 0;
    for &(first, end) in &behind.memory {
        put(out, first - last);
        put(out, end - first);
        last = end;
    }
}

fn take_point(rest: &mut &[u8]) -> Option<Point> {
    let (insn, group, offset) = (take(rest)?, take(rest)?, take(rest)?);
    let mut optional = || match (take(rest)?, take(rest)?) {
        (0, _) => Some(None),
        (1, value) => Some(Some(value)),
        _ => None,
    };
    let (pc, mode, mtime) = (optional()?, optional()?, optional()?);
    let mode = match mode {
        Some(code) => Some(Mode::from_code(u8::try_from(code).ok()?)?),
        None => None,
    };
    let mut last = 0;
    let registers = list(rest, |rest| Some((register(rest, &mut last)?, take(rest)?)))?;
    Some(Point {
        insn,
        group,
        offset,
        pc,
        mode,
        mtime,
        registers: registers.into_boxed_slice(),
        behind: take_interval(rest)?,
    })
}

fn take_interval(rest: &mut &[u8]) -> Option<Interval> {
    let flags = take(rest)?;
    let mut written = Registers::NONE;
    let mut last = 0;
    for register in list(rest, |rest| register(rest, &mut last))? {
        written.insert(register);
    }
    let mut last = 0u64;
    let memory = list(rest, |rest| -> Option<Range> {
        let first = last.checked_add(take(rest)?)?;
        last = first.checked_add(take(rest)?)?;
        Some((first, last))
    })?;
    (flags < 8).then_some(Interval {
        registers: written,
        memory: Box::from(memory),
        lost_registers: flags & 4 != 0,
        lost_memory: flags & 2 != 0,
        mode: flags & 1 != 0,
    })
}

/// A register, as the distance from the previous one.
fn register(rest: &mut &[u8], last: &mut u64) -> Option<Register> {
    *last = last.checked_add(take(rest)?)?;
    Register::new(u16::try_from(*last).ok()?)
}

/// A number of things and the things.
fn list<T>(rest: &mut &[u8], mut one: impl FnMut(&mut &[u8]) -> Option<T>) -> Option<Vec<T>> {
    let count = take(rest)?;
    // Each is a byte at least, so memory is bounded by the file.
    if count > rest.len() as u64 {
        return None;
    }
    (0..count).map(|_| one(rest)).collect()
}

/// Seven bits a byte, the lowest first.
fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, behind) = rest.split_first()?;
        *rest = behind;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return None;
        }
        number |= bits << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// FNV-1a over words of eight bytes, the last one filled up with zeros: it is
/// to notice mistakes, not malice.
pub(super) struct Sum(u64);

impl Sum {
    pub(super) fn of(bytes: &[u8]) -> u64 {
        let mut sum = Sum(0xcbf2_9ce4_8422_2325);
        sum.add(bytes);
        sum.0
    }

    fn add(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|w| self.word(u64::from_le_bytes(*w)));
        let mut last = [0; 8];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        self.word(u64::from_le_bytes(last));
    }

    fn word(&mut self, word: u64) {
        // The turn brings what multiplication moves up down again.
        self.0 = (self.0 ^ word)
            .wrapping_mul(0x0100_0000_01b3)
            .rotate_left(29);
    }
}

/// Everything that decides how bytes are read.
fn of_config(config: &Config) -> u64 {
    let mut sum = Sum(0);
    for word in [
        config.xlen.bits(),
        config.flen.bits(),
        config.mlen.bits(),
        config.eaddr as u32,
        config.nibbles as u32,
        config.pc as u32,
        config.lenient_pc_identifier.into(),
        config.store_data as u32,
        config.max_items,
    ] {
        sum.word(word.into());
    }
    for name in config.absent.names() {
        sum.add(name.as_bytes());
    }
    sum.0
}

/// Bytes at places all over a trace, the first and the last among them.
fn of_trace(trace: &[u8]) -> u64 {
    let mut sum = Sum(0);
    let last = (trace.len() as u64).saturating_sub(PLACE);
    for place in 0..PLACES {
        // In 128 bits so that no trace is too long.
        let at = (u128::from(last) * u128::from(place) / u128::from(PLACES - 1)) as usize;
        let end = at.saturating_add(PLACE as usize).min(trace.len());
        sum.add(trace.get(at..end).unwrap_or_default());
    }
    sum.0
}
