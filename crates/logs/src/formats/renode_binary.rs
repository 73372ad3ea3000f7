//! Renode's execution tracer, binary.
//!
//! | bytes | |
//! |---|---|
//! | 7 | `ReTrace` |
//! | 1 | version |
//! | 1 | bytes of a pc, 0 if there are none |
//! | 1 | 1 if there are instructions |
//! | 1 | with instructions: the number of instruction sets, and for each |
//! | 1 + n | its name: length and text |
//!
//! Then a record for each instruction: the pc, little-endian; the length of the
//! instruction and its bytes; items of a type and its data, up to type 0. With several
//! instruction sets, each block starts with the number of its set and the count of its
//! instructions.

use alloc::vec::Vec;

use super::Entries;
use super::renode::give;
use crate::entry::EntryAccess;
use crate::{LineError, LineErrorKind as Kind};

pub(super) const MAGIC: &[u8] = b"ReTrace";

/// A record is never longer: the pc, an instruction, and items of which the longest has
/// a count of registers in one byte.
const LONGEST: usize = 1 << 20;

const TOO_LONG: Kind = Kind::Expected("a record of at most 1 MiB");

#[derive(Default)]
pub(super) struct Reader {
    /// What is not read yet.
    rest: Vec<u8>,
    header: Option<Header>,
    /// Instructions left in the block, with several instruction sets.
    left: u64,
    /// Records so far; they stand for lines.
    records: u64,
    /// Nothing more can be read.
    refused: bool,
}

#[derive(Clone, Copy)]
struct Header {
    pc: usize,
    code: bool,
    sets: bool,
    /// Items follow instructions from version 2 on.
    items: bool,
}

/// What the bytes so far are.
enum Next<T> {
    Read(T),
    /// More bytes are needed.
    More,
    Bad(Kind),
}

/// Takes bytes from the front.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(head)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn number(&mut self, len: usize) -> Option<u64> {
        let bytes = self.take(len)?.iter().rev();
        Some(bytes.fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }
}

impl Reader {
    pub(super) fn feed(
        &mut self,
        chunk: &[u8],
        to: &mut Entries<'_, '_, '_, '_>,
        damaged: &mut dyn FnMut(LineError),
    ) {
        if self.refused {
            return;
        }
        let mut rest = core::mem::take(&mut self.rest);
        rest.extend_from_slice(chunk);
        let mut bytes = Bytes(&rest);
        loop {
            let before = bytes.0;
            match self.next(&mut bytes, to) {
                Next::Read(()) => {}
                Next::More if before.len() > LONGEST => {
                    self.refuse(TOO_LONG, to, damaged);
                    return;
                }
                Next::More => {
                    self.rest = before.to_vec();
                    return;
                }
                Next::Bad(kind) => {
                    let fatal = !matches!(kind, Kind::CodeDiffers(_));
                    if fatal {
                        self.refuse(kind, to, damaged);
                        return;
                    }
                    damaged(LineError::whole(self.records, &[], kind));
                }
            }
        }
    }

    pub(super) fn finish(
        &mut self,
        to: &mut Entries<'_, '_, '_, '_>,
        damaged: &mut dyn FnMut(LineError),
    ) {
        let rest = core::mem::take(&mut self.rest);
        if !rest.is_empty() && !self.refused {
            self.refuse(Kind::Expected("the rest of a record"), to, damaged);
        }
        *self = Reader::default();
    }

    /// Where a record starts is not known any more.
    #[cold]
    fn refuse(
        &mut self,
        kind: Kind,
        to: &mut Entries<'_, '_, '_, '_>,
        damaged: &mut dyn FnMut(LineError),
    ) {
        self.refused = true;
        damaged(LineError::whole(self.records + 1, &[], kind));
        to.steps.lose(None, to.out);
    }

    fn next(&mut self, bytes: &mut Bytes<'_>, to: &mut Entries<'_, '_, '_, '_>) -> Next<()> {
        if bytes.0.is_empty() {
            return Next::More;
        }
        let Some(header) = self.header else {
            return match header(bytes) {
                Next::Read(header) => {
                    self.header = Some(header);
                    Next::Read(())
                }
                Next::More => Next::More,
                Next::Bad(kind) => Next::Bad(kind),
            };
        };
        let mut ahead = Bytes(bytes.0);
        let mut left = self.left;
        if header.sets && left == 0 {
            let block = ahead.byte().and_then(|_| ahead.number(8));
            match block {
                Some(count) => left = count,
                None => return Next::More,
            }
            if left == 0 {
                *bytes = ahead;
                return Next::Read(());
            }
        }
        match record(&mut ahead, header, to) {
            Next::Read(()) if bytes.0.len() - ahead.0.len() > LONGEST => Next::Bad(TOO_LONG),
            Next::Read(()) => {
                *bytes = ahead;
                self.left = left.saturating_sub(1);
                self.records += 1;
                match give(to) {
                    Ok(()) => Next::Read(()),
                    Err((kind, _)) => Next::Bad(kind),
                }
            }
            other => other,
        }
    }
}

fn header(bytes: &mut Bytes<'_>) -> Next<Header> {
    let mut ahead = Bytes(bytes.0);
    let read = (|| {
        let magic = ahead.take(MAGIC.len())?;
        let (version, pc, code) = (ahead.byte()?, ahead.byte()?, ahead.byte()?);
        // The earliest version has one instruction set, without a count.
        let sets = match (code, version) {
            (0, _) => 0,
            (_, ..3) => 1,
            _ => ahead.byte()?,
        };
        for _ in 0..sets {
            let len = ahead.byte()?;
            ahead.take(len.into())?;
        }
        Some((magic == MAGIC, version, pc, code, sets))
    })();
    let Some((magic, version, pc, code, sets)) = read else {
        return Next::More;
    };
    if !magic || !(1..=5).contains(&version) {
        return Next::Bad(Kind::Expected("`ReTrace` and a version from 1 to 5"));
    }
    if pc == 0 {
        let what = "addresses (use the format PCAndOpcode)";
        return Next::Bad(Kind::Limit(what));
    }
    if pc > 8 || code > 1 {
        return Next::Bad(Kind::Expected("a pc of at most 8 bytes"));
    }
    *bytes = ahead;
    Next::Read(Header {
        pc: pc.into(),
        code: code == 1,
        sets: sets > 1,
        items: version > 1,
    })
}

fn record(bytes: &mut Bytes<'_>, header: Header, to: &mut Entries<'_, '_, '_, '_>) -> Next<()> {
    let Some(pc) = bytes.number(header.pc) else {
        return Next::More;
    };
    let mut bits = None;
    if header.code {
        let Some(len) = bytes.byte() else {
            return Next::More;
        };
        if len == 0 || len % 2 != 0 || len > 22 {
            return Next::Bad(Kind::Expected("an instruction of 2 or 4 bytes"));
        }
        let Some(code) = bytes.take(len.into()) else {
            return Next::More;
        };
        let first = code.iter().take(4).rev();
        bits = Some(first.fold(0, |value, &byte| value << 8 | u32::from(byte)));
    }
    to.begin(pc, bits).incomplete = true;
    if !header.items {
        return Next::Read(());
    }
    loop {
        match item(bytes, to) {
            Some(Item::Last) => return Next::Read(()),
            Some(Item::One) => {}
            Some(Item::Unknown) => return Next::Bad(Kind::Expected("an item of type 0 to 4")),
            None => return Next::More,
        }
    }
}

enum Item {
    Last,
    One,
    Unknown,
}

/// What follows an instruction; `None` if more bytes are needed.
fn item(bytes: &mut Bytes<'_>, to: &mut Entries<'_, '_, '_, '_>) -> Option<Item> {
    match bytes.byte()? {
        0 => return Some(Item::Last),
        // An access: its kind, the virtual address, the value, the physical address.
        1 => {
            let kind = bytes.byte()?;
            let (addr, data, paddr) = (bytes.number(8)?, bytes.number(8)?, bytes.number(8)?);
            if kind < 4 {
                to.entry.access(EntryAccess {
                    store: kind % 2 != 0,
                    addr,
                    paddr: Some(paddr),
                    size: None,
                    data: Some(data),
                });
            }
        }
        // vl and vtype.
        2 => {
            bytes.take(16)?;
        }
        // An atomic instruction, before or after it: width, operation, four values.
        3 => {
            bytes.byte()?;
            let width = if bytes.byte()? == 2 { 4 } else { 8 };
            bytes.byte()?;
            bytes.take(4 * width)?;
        }
        // Registers by name.
        4 => {
            bytes.byte()?;
            for _ in 0..bytes.byte()? {
                let len = bytes.byte()?;
                bytes.take(len.into())?;
                let len = bytes.byte()?;
                bytes.take(len.into())?;
            }
        }
        _ => return Some(Item::Unknown),
    }
    Some(Item::One)
}
