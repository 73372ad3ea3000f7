//! Snapshots in a file.
//!
//! A dump has [`MAGIC`], its version (1) in two bytes and two bytes of zero, then
//! one snapshot after the other. Numbers are little-endian.
//!
//! | offset | bytes | |
//! |---:|---:|---|
//! | 0 | 2 | size of the snapshot in bytes, these two included |
//! | 2 | 1 | what is known: pc 1, mode 2, instructions 4, cycles 8 |
//! | 3 | 1 | the mode, by the codes of the ingress port, or 0 |
//! | 4 | 1 | version: 0 for 0.1.4, 1 for 1.0 |
//! | 5 | 1 | MXLEN: 32 or 64 |
//! | 6 | 2 | depth in entries |
//! | 8 | 4 | hart |
//! | 12 | 4 | `sctrstatus`, or `mctrstatus` |
//! | 16 | 8 | `mctrctl`, or `mctrcontrol` |
//! | 24 | 8 | `vsctrctl`, or `vsctrcontrol`; 0 without a hypervisor |
//! | 32 | 8 | pc |
//! | 40 | 8 | instructions retired |
//! | 48 | 8 | cycles |
//! | 56 | 24 each | entries, the newest first: `ctrsource`, `ctrtarget`, `ctrdata` |
//!
//! Trailing entries that are all zeros are left out. Another dump may start
//! wherever a snapshot could: no snapshot is as large as the first two bytes of
//! [`MAGIC`] would mean.

use alloc::vec::Vec;

use hartrace_flow::{HartId, Mode};
use hartrace_isa::Xlen;

use crate::config::Depths;
use crate::fault::Fault;
use crate::record::Record;
use crate::snapshot::Snapshot;
use crate::version::Version;

/// The first bytes of a dump.
pub const MAGIC: [u8; 8] = *b"\x89CTR\r\n\x1a\n";

/// The form that is written.
const FORM: u16 = 1;

/// Bytes before the first snapshot.
const START: usize = 12;

/// Bytes of a snapshot before its entries.
const HEADER: usize = 56;

/// Bytes of an entry.
const ENTRY: usize = 24;

/// Bytes of the largest snapshot.
const MOST: usize = HEADER + 256 * ENTRY;

/// Bits of what is known.
const PC: u8 = 1;
const MODE: u8 = 2;
const INSTRUCTIONS: u8 = 4;
const CYCLES: u8 = 8;

/// Appends what stands before the first snapshot.
pub fn write_start(out: &mut Vec<u8>) {
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&FORM.to_le_bytes());
    out.extend_from_slice(&[0; 2]);
}

/// Appends a snapshot. Of more than 256 entries the first 256 are written.
pub fn write_snapshot(snapshot: &Snapshot, out: &mut Vec<u8>) {
    let s = snapshot;
    let used = s.entries.iter().rposition(|e| *e != Record::default());
    // Entries beyond the depth cannot be read.
    let entries = used.map_or(0, |last| last + 1).min(s.depth.into());
    let size = (HEADER + entries * ENTRY) as u16;
    let bit = |known: bool, bit: u8| if known { bit } else { 0 };
    let known = bit(s.pc.is_some(), PC)
        | bit(s.mode.is_some(), MODE)
        | bit(s.instructions.is_some(), INSTRUCTIONS)
        | bit(s.cycles.is_some(), CYCLES);
    out.extend_from_slice(&size.to_le_bytes());
    out.extend_from_slice(&[
        known,
        s.mode.map_or(0, Mode::code),
        match s.version {
            Version::V0_1_4 => 0,
            Version::V1_0 => 1,
        },
        s.xlen.bits() as u8,
    ]);
    out.extend_from_slice(&s.depth.to_le_bytes());
    out.extend_from_slice(&s.hart.0.to_le_bytes());
    out.extend_from_slice(&s.status.to_le_bytes());
    for word in [
        s.control,
        s.guest_control,
        s.pc.unwrap_or(0),
        s.instructions.unwrap_or(0),
        s.cycles.unwrap_or(0),
    ] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    for entry in s.entries.iter().take(entries) {
        for word in [entry.ctrsource, entry.ctrtarget, entry.ctrdata] {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }
}

/// Something is wrong with a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where: the byte, or in JSON the line from 1.
    pub at: u64,
    /// What.
    pub fault: Fault,
    /// The value that is wrong.
    pub value: u64,
}

/// What [`DumpReader::next`] comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextSnapshot {
    /// One is whole: [`DumpReader::snapshot`].
    Snapshot,
    /// Something is wrong. A snapshot that makes no sense is passed over; where
    /// the file makes none nothing more is read.
    Problem(Problem),
    /// The bytes are used up.
    More,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    Snapshots,
    Refused,
}

/// Bytes to snapshots, in chunks of any size. It keeps at most one snapshot.
///
/// ```
/// use hartrace_ctr::{Config, Ctr, dump};
/// use hartrace_ctr::dump::{DumpReader, NextSnapshot};
/// use hartrace_flow::HartId;
///
/// let snapshot = Ctr::new(Config::default())?.snapshot(HartId(2));
/// let mut file = Vec::new();
/// dump::write_start(&mut file);
/// dump::write_snapshot(&snapshot, &mut file);
///
/// let mut reader = DumpReader::new();
/// let mut rest = &file[..];
/// assert_eq!(reader.next(&mut rest), NextSnapshot::Snapshot);
/// assert_eq!(reader.snapshot(), &snapshot);
/// assert_eq!(reader.next(&mut rest), NextSnapshot::More);
/// assert_eq!(reader.finish(), None);
/// # Ok::<(), hartrace_ctr::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct DumpReader {
    state: State,
    /// The bytes at hand, from the start of what is being read.
    kept: Vec<u8>,
    /// Offset of the first of them.
    at: u64,
    snapshot: Snapshot,
}

impl Default for DumpReader {
    fn default() -> DumpReader {
        DumpReader::new()
    }
}

impl DumpReader {
    /// A reader at the start of a dump.
    #[must_use]
    pub fn new() -> DumpReader {
        DumpReader {
            state: State::Start,
            kept: Vec::new(),
            at: 0,
            snapshot: Snapshot::default(),
        }
    }

    /// Whether a file starts like a dump.
    #[must_use]
    pub fn is_dump(start: &[u8]) -> bool {
        start.starts_with(&MAGIC)
    }

    /// The snapshot announced by [`NextSnapshot::Snapshot`].
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Takes bytes from the front of `rest` up to the next snapshot or problem.
    pub fn next(&mut self, rest: &mut &[u8]) -> NextSnapshot {
        loop {
            let next = match self.state {
                State::Refused => {
                    *rest = &[];
                    return NextSnapshot::More;
                }
                State::Start => self.start(rest),
                State::Snapshots => self.one(rest),
            };
            match next {
                None => return NextSnapshot::More,
                Some(Ok(true)) => return NextSnapshot::Snapshot,
                Some(Ok(false)) => {}
                Some(Err(problem)) => {
                    if problem.fault.ends_the_dump() {
                        self.state = State::Refused;
                    }
                    return NextSnapshot::Problem(problem);
                }
            }
        }
    }

    /// Nothing follows: what is wrong with the end.
    #[must_use]
    pub fn finish(&self) -> Option<Problem> {
        let fault = match self.state {
            State::Refused => return None,
            State::Snapshots if self.kept.is_empty() => return None,
            State::Snapshots => Fault::Truncated,
            State::Start if MAGIC.starts_with(&self.kept) || DumpReader::is_dump(&self.kept) => {
                Fault::Truncated
            }
            State::Start => Fault::NotADump,
        };
        let at = self.at;
        let value = self.kept.len() as u64;
        Some(Problem { at, fault, value })
    }

    /// Takes bytes until there are so many; `None` when they do not suffice.
    fn fill(&mut self, rest: &mut &[u8], size: usize) -> Option<()> {
        let missing = size.saturating_sub(self.kept.len());
        let (taken, left) = rest.split_at(missing.min(rest.len()));
        self.kept.extend_from_slice(taken);
        *rest = left;
        (self.kept.len() >= size).then_some(())
    }

    /// What was kept has been used.
    fn pass(&mut self) {
        self.at += self.kept.len() as u64;
        self.kept.clear();
    }

    fn start(&mut self, rest: &mut &[u8]) -> Option<Result<bool, Problem>> {
        self.fill(rest, START)?;
        let form = u16_at(&self.kept, 8);
        let (fault, at, value) = if !DumpReader::is_dump(&self.kept) {
            (Fault::NotADump, self.at, 0)
        } else if form != FORM {
            (Fault::Form, self.at + 8, u64::from(form))
        } else {
            let reserved = u16_at(&self.kept, 10);
            self.state = State::Snapshots;
            let at = self.at + 10;
            self.pass();
            return Some(match reserved {
                0 => Ok(false),
                _ => Err(Problem {
                    at,
                    fault: Fault::Reserved,
                    value: reserved.into(),
                }),
            });
        };
        Some(Err(Problem { at, fault, value }))
    }

    fn one(&mut self, rest: &mut &[u8]) -> Option<Result<bool, Problem>> {
        self.fill(rest, 2)?;
        if MAGIC.starts_with(&self.kept) {
            self.state = State::Start;
            return Some(Ok(false));
        }
        let size = usize::from(u16_at(&self.kept, 0));
        if !(HEADER..=MOST).contains(&size) || !(size - HEADER).is_multiple_of(ENTRY) {
            return Some(Err(Problem {
                at: self.at,
                fault: Fault::Size,
                value: size as u64,
            }));
        }
        self.fill(rest, size)?;
        let read = read(&self.kept, &mut self.snapshot);
        let problem = |(offset, fault, value)| Problem {
            at: self.at + offset,
            fault,
            value,
        };
        let result = read.map(|()| true).map_err(problem);
        self.pass();
        Some(result)
    }
}

/// Reads a snapshot; or what is wrong at which of its bytes.
fn read(bytes: &[u8], s: &mut Snapshot) -> Result<(), (u64, Fault, u64)> {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let wrong = |at: usize, fault| Err((at as u64, fault, u64::from(byte(at))));
    let known = byte(2);
    if known & !(PC | MODE | INSTRUCTIONS | CYCLES) != 0 {
        return wrong(2, Fault::Reserved);
    }
    let mode = match (known & MODE != 0, Mode::from_code(byte(3))) {
        (false, _) if byte(3) != 0 => return wrong(3, Fault::Reserved),
        (false, _) => None,
        (true, Some(mode)) => Some(mode),
        (true, None) => return wrong(3, Fault::Mode),
    };
    let version = match byte(4) {
        0 => Version::V0_1_4,
        1 => Version::V1_0,
        _ => return wrong(4, Fault::Version),
    };
    let xlen = match byte(5) {
        32 => Xlen::Rv32,
        64 => Xlen::Rv64,
        _ => return wrong(5, Fault::Width),
    };
    let depth = u16_at(bytes, 6);
    if !Depths::ALL.contains(depth) {
        return Err((6, Fault::Depth, u64::from(depth)));
    }
    let entries = bytes.get(HEADER..).unwrap_or_default().chunks_exact(ENTRY);
    if entries.len() > usize::from(depth) {
        return Err((0, Fault::Entries, entries.len() as u64));
    }
    let word = |at: usize| u64_at(bytes, at);
    let known_word = |bit: u8, at: usize| (known & bit != 0).then(|| word(at));
    s.hart = HartId(word(8) as u32);
    s.status = (word(8) >> 32) as u32;
    s.version = version;
    s.xlen = xlen;
    s.depth = depth;
    s.mode = mode;
    s.control = word(16);
    s.guest_control = word(24);
    s.pc = known_word(PC, 32);
    s.instructions = known_word(INSTRUCTIONS, 40);
    s.cycles = known_word(CYCLES, 48);
    s.entries.clear();
    s.entries.extend(entries.map(|entry| Record {
        ctrsource: u64_at(entry, 0),
        ctrtarget: u64_at(entry, 8),
        ctrdata: u64_at(entry, 16),
    }));
    s.entries.resize(usize::from(depth), Record::default());
    Ok(())
}

/// A number in bytes that are there.
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk);
    bytes.map_or(0, |bytes| u16::from_le_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk);
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests;
