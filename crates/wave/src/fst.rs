//! The FST format of GTKWave: signals over time, compressed.
//!
//! A file is a list of blocks: a header, the lengths of signals (geometry), their names
//! (hierarchy) and sections of changes. A section has the values of all signals where it
//! begins (the frame), a chain of changes for each signal and the times at which there are
//! changes. All numbers are big-endian or have a variable length; a change is at the index
//! of its time. Most writers put geometry and hierarchy at the end of the file: [`Front`]
//! gives a file with both of them first.

mod front;
mod section;
mod unpack;
mod write;

pub use front::Front;
pub(crate) use section::Section;
pub use write::{Kind, Scope, Sections, Start, Written, write_start};

use crate::bytes::Bytes;
use crate::header::{Body, Scopes, split_range};
use crate::watch::{Take, Watch};
use crate::{Header, Var, WaveError};
use std::sync::Arc;

/// Types of blocks.
const HEADER: u8 = 0;
const CHANGES: u8 = 1;
const GEOMETRY: u8 = 3;
const HIERARCHY: u8 = 4;
const CHANGES_ALIAS: u8 = 5;
const HIERARCHY_LZ4: u8 = 6;
const HIERARCHY_LZ4_TWICE: u8 = 7;
const CHANGES_ALIAS_2: u8 = 8;
const PACKED_FILE: u8 = 254;

/// Length of the header, which is that of every file.
const HEADER_LENGTH: u64 = 329;

/// Where the unit of time stands in the header, after its length.
const EXPONENT: usize = 64;

/// Codes in the hierarchy.
const SCOPE: u8 = 254;
const END_OF_SCOPE: u8 = 255;
const ATTRIBUTE: u8 = 252;
const END_OF_ATTRIBUTE: u8 = 253;
const MODULE: u8 = 0;
const WIRE: u8 = 16;
/// A net with its driver and strength, whose characters are counted in threes.
const PORT: u8 = 18;
const STRING: u8 = 21;
/// The highest code of a variable.
const LAST_VARIABLE: u8 = 29;

/// The length of a real number, which is no number of bits.
pub(crate) const REAL: u32 = u32::MAX;

/// Sections are held in memory as a whole, and names while they are unpacked. Writers flush
/// at 128 MiB of changes, which take a tenth of that in a file.
const MAX_BLOCK: u64 = 1 << 30;

/// Whether a file that starts with `head` is of this format.
pub(crate) fn is_fst(head: &[u8]) -> bool {
    let mut bytes = Bytes::new(head);
    match bytes.byte() {
        Some(HEADER) => bytes.number() == Some(HEADER_LENGTH),
        // The same, packed with gzip as a whole.
        Some(PACKED_FILE) => head.get(17..19) == Some(b"\x1f\x8b"),
        _ => false,
    }
}

/// The type of a block and what follows its length; `None` if that has not come. The length
/// counts itself.
fn block<'a>(bytes: &mut Bytes<'a>) -> Option<(u8, &'a [u8])> {
    let kind = bytes.byte()?;
    let length = bytes.count()?.checked_sub(8)?;
    Some((kind, bytes.take(length)?))
}

pub(crate) fn read_header(
    head: &[u8],
    see: &mut dyn FnMut(&Var<'_>),
) -> Result<Option<Header>, WaveError> {
    if head.first() == Some(&PACKED_FILE) {
        return Err(WaveError::Unsupported(
            "an FST file packed as a whole; unpack it with `fst2vcd`",
        ));
    }
    let mut bytes = Bytes::new(head);
    let (mut exponent, mut lengths, mut names) = (None, None, None);
    while exponent.is_none() || lengths.is_none() || names.is_none() {
        let offset = bytes.position() as u64;
        let damaged = |what| WaveError::Damaged { what, offset };
        let kind = bytes.rest().first().copied();
        let changes = matches!(kind, Some(CHANGES | CHANGES_ALIAS | CHANGES_ALIAS_2));
        if changes {
            // With its names first, a file has them before its changes.
            return Err(WaveError::NoHierarchy);
        }
        let Some((kind, body)) = block(&mut bytes) else {
            return Ok(None);
        };
        match kind {
            HEADER => {
                let unit = body.get(EXPONENT).ok_or(damaged("a short header"))?;
                exponent = Some(i8::from_be_bytes([*unit]));
            }
            GEOMETRY => lengths = Some(geometry(body).ok_or(damaged("lengths of signals"))?),
            HIERARCHY | HIERARCHY_LZ4 | HIERARCHY_LZ4_TWICE => {
                let unpacked = unpack_names(kind, body);
                names = Some(unpacked.ok_or(damaged("names of signals"))?);
            }
            _ => {}
        }
    }
    let (Some(exponent), Some(lengths), Some(names)) = (exponent, lengths, names) else {
        return Ok(None);
    };
    let damaged = WaveError::Damaged {
        what: "names of signals",
        offset: 0,
    };
    hierarchy(&names, &lengths, see).ok_or(damaged)?;
    Ok(Some(Header::new(exponent, Body::Fst { lengths })))
}

/// The lengths of signals in bits.
fn geometry(body: &[u8]) -> Option<Vec<u32>> {
    let mut bytes = Bytes::new(body);
    let (length, count) = (bytes.count()?, bytes.count()?);
    let packed = bytes.rest();
    let unpacked = match packed.len() == length {
        true => packed.to_vec(),
        false => unpack::zlib(packed, length)?,
    };
    // Each takes a byte at least.
    let mut lengths = Vec::with_capacity(count.min(unpacked.len()));
    let mut bytes = Bytes::new(&unpacked);
    for _ in 0..count {
        lengths.push(match u32::try_from(bytes.varint()?).ok()? {
            0 => REAL,
            u32::MAX => 0,
            bits => bits,
        });
    }
    Some(lengths)
}

fn unpack_names(kind: u8, body: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Bytes::new(body);
    let length = bytes.count()?;
    match kind {
        HIERARCHY => unpack::gzip(bytes.rest(), length),
        HIERARCHY_LZ4 => unpack::lz4(bytes.rest(), length),
        _ => {
            let inner = bytes.small()?;
            unpack::lz4(&unpack::lz4(bytes.rest(), inner)?, length)
        }
    }
}

/// Shows the variables; `None` if something is wrong with them.
fn hierarchy(names: &[u8], lengths: &[u32], see: &mut dyn FnMut(&Var<'_>)) -> Option<()> {
    let mut bytes = Bytes::new(names);
    let (mut scopes, mut signals) = (Scopes::default(), 0u64);
    while let Some(code) = bytes.byte() {
        match code {
            SCOPE => {
                bytes.byte()?;
                let name = String::from_utf8_lossy(bytes.text()?);
                bytes.text()?;
                scopes.enter(&name).then_some(())?;
            }
            END_OF_SCOPE => scopes.leave(),
            ATTRIBUTE => {
                bytes.take(2)?;
                bytes.text()?;
                bytes.varint()?;
            }
            END_OF_ATTRIBUTE => {}
            0..=LAST_VARIABLE => {
                bytes.byte()?;
                let name = String::from_utf8_lossy(bytes.text()?);
                bytes.varint()?;
                // 0, or the number of the signal that it is the same as.
                let signal = match bytes.varint()? {
                    0 => {
                        signals += 1;
                        signals
                    }
                    alias => alias,
                } - 1;
                let width = *lengths.get(usize::try_from(signal).ok()?)?;
                if matches!(width, 0 | REAL) || code == PORT {
                    continue;
                }
                let (name, range) = split_range(&name, width);
                see(&Var {
                    scope: scopes.path(),
                    name,
                    range,
                    width,
                    signals: &[signal],
                });
            }
            _ => return None,
        }
    }
    Some(())
}

/// Reads the sections of changes.
pub(crate) struct Reader {
    /// Bytes of the file that have been read.
    offset: u64,
    /// Bytes to pass over.
    skip: u64,
    /// What has come of a block.
    rest: Vec<u8>,
    section: Section,
}

impl Reader {
    pub(crate) fn new(body: &Arc<Body>, watch: Watch) -> Result<Reader, WaveError> {
        Ok(Reader {
            offset: 0,
            skip: 0,
            rest: Vec::new(),
            section: Section::new(body, watch)?,
        })
    }

    pub(crate) fn feed(&mut self, chunk: &[u8], take: &mut Take<'_>) -> Result<(), WaveError> {
        let mut chunk = self.pass(chunk);
        while !chunk.is_empty() {
            let missing = match self.rest.len() {
                got @ 0..9 => 9 - got,
                got => {
                    let length = self
                        .rest
                        .get(1..9)
                        .and_then(|bytes| Bytes::new(bytes).number());
                    let length = length.unwrap_or(0);
                    self.check(length)?;
                    (length as usize + 1).saturating_sub(got)
                }
            };
            let (taken, rest) = chunk.split_at(missing.min(chunk.len()));
            self.rest.extend_from_slice(taken);
            chunk = rest;
            chunk = self.begin(chunk)?;
            if self.is_whole() {
                self.changes(take)?;
            }
        }
        Ok(())
    }

    /// Passes over a block without changes whose length is known.
    fn begin<'c>(&mut self, chunk: &'c [u8]) -> Result<&'c [u8], WaveError> {
        if self.rest.len() != 9 {
            return Ok(chunk);
        }
        let mut bytes = Bytes::new(&self.rest);
        let (kind, length) = (bytes.byte(), bytes.number().unwrap_or(0));
        if matches!(kind, Some(CHANGES | CHANGES_ALIAS | CHANGES_ALIAS_2)) {
            return Ok(chunk);
        }
        let unfinished = length < 8;
        if unfinished {
            let (what, offset) = ("the length of a block", self.offset);
            return Err(WaveError::Damaged { what, offset });
        }
        self.rest.clear();
        self.offset += 9;
        self.skip = length - 8;
        Ok(self.pass(chunk))
    }

    /// What is left of a chunk after what is passed over.
    fn pass<'c>(&mut self, chunk: &'c [u8]) -> &'c [u8] {
        let skipped = self.skip.min(chunk.len() as u64);
        self.skip -= skipped;
        self.offset += skipped;
        chunk.get(skipped as usize..).unwrap_or_default()
    }

    fn check(&self, length: u64) -> Result<(), WaveError> {
        let offset = self.offset;
        match length {
            0..8 => Err(WaveError::Damaged {
                what: "the length of a block",
                offset,
            }),
            MAX_BLOCK.. => Err(WaveError::TooLarge {
                what: "a section of changes",
                offset,
            }),
            _ => Ok(()),
        }
    }

    /// A section of changes is there.
    fn is_whole(&self) -> bool {
        let length = self
            .rest
            .get(1..9)
            .and_then(|bytes| Bytes::new(bytes).number());
        length.is_some_and(|length| self.rest.len() as u64 > length)
    }

    fn changes(&mut self, take: &mut Take<'_>) -> Result<(), WaveError> {
        let alias_2 = self.rest.first() == Some(&CHANGES_ALIAS_2);
        let body = self.rest.get(9..).unwrap_or_default();
        let read = self.section.read(body, alias_2, self.offset, take);
        self.offset += self.rest.len() as u64;
        self.rest.clear();
        read
    }

    pub(crate) fn finish(&mut self) -> Result<(), WaveError> {
        match self.rest.is_empty() && self.skip == 0 {
            true => Ok(()),
            false => Err(WaveError::Truncated),
        }
    }
}
