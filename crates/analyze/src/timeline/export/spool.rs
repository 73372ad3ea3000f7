//! Changes of signals in order of time, put aside until all of them are known.
//!
//! The signals of a hart are found in two places, and harts are not in step. A file that
//! has to be in order of time is therefore written in the end, from one spool for each
//! place. A spool keeps little in memory and the rest in a file.

use hartrace_wave::leb128;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};

/// A file without a name.
pub trait Scratch: Read + Write + Seek {}

impl<F: Read + Write + Seek> Scratch for F {}

/// Makes such files.
pub(super) type NewScratch = Box<dyn FnMut() -> io::Result<Box<dyn Scratch>>>;

/// A signal has another value from here on; `None` if it is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) at: u64,
    pub(super) signal: u32,
    pub(super) value: Option<u64>,
}

/// Bytes of a spool that are kept in memory.
const MEMORY: usize = 1 << 18;

/// Changes in order of time.
#[derive(Default)]
pub(super) struct Spool {
    memory: Vec<u8>,
    file: Option<Box<dyn Scratch>>,
    /// Bytes in the file.
    spilled: u64,
    last: u64,
}

impl Spool {
    /// Adds a change; one that is earlier than the last is made at the same time.
    pub(super) fn push(&mut self, change: Change, scratch: &mut NewScratch) -> io::Result<()> {
        let at = change.at.max(self.last);
        leb128::unsigned(&mut self.memory, at - self.last);
        self.last = at;
        let known = u64::from(change.value.is_some());
        leb128::unsigned(&mut self.memory, u64::from(change.signal) << 1 | known);
        if let Some(value) = change.value {
            leb128::unsigned(&mut self.memory, value);
        }
        if self.memory.len() < MEMORY {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            empty => empty.insert(scratch()?),
        };
        file.write_all(&self.memory)?;
        self.spilled += self.memory.len() as u64;
        self.memory.clear();
        Ok(())
    }

    /// Reads all changes from the first.
    pub(super) fn read(&mut self) -> io::Result<Changes<'_>> {
        let nothing: Box<dyn Read> = Box::new(io::empty());
        let file = match &mut self.file {
            Some(file) => {
                file.seek(SeekFrom::Start(0))?;
                Box::new(file.take(self.spilled))
            }
            None => nothing,
        };
        let bytes = BufReader::with_capacity(1 << 16, file.chain(&*self.memory));
        let mut changes = Changes {
            bytes,
            last: 0,
            next: None,
        };
        changes.advance()?;
        Ok(changes)
    }
}

/// Changes that are read.
pub(super) struct Changes<'a> {
    bytes: BufReader<io::Chain<Box<dyn Read + 'a>, &'a [u8]>>,
    last: u64,
    next: Option<Change>,
}

impl Changes<'_> {
    /// The next one.
    pub(super) fn peek(&self) -> Option<Change> {
        self.next
    }

    /// Goes on to the one after it.
    pub(super) fn advance(&mut self) -> io::Result<()> {
        self.next = None;
        if self.bytes.fill_buf()?.is_empty() {
            return Ok(());
        }
        self.last += self.number()?;
        let signal = self.number()?;
        let value = match signal & 1 {
            1 => Some(self.number()?),
            _ => None,
        };
        self.next = Some(Change {
            at: self.last,
            signal: (signal >> 1) as u32,
            value,
        });
        Ok(())
    }

    fn number(&mut self) -> io::Result<u64> {
        let (mut value, mut shift) = (0u64, 0u32);
        loop {
            let Some(byte) = self.bytes.fill_buf()?.first().copied() else {
                return Err(io::ErrorKind::UnexpectedEof.into());
            };
            self.bytes.consume(1);
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            shift += 7;
            if byte < 0x80 {
                return Ok(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_aside_is_read_in_order() {
        let mut scratch: NewScratch = Box::new(|| Ok(Box::new(io::Cursor::new(Vec::new()))));
        let change = |n: u64| Change {
            at: n * n / 7,
            signal: (n % 9) as u32,
            value: (!n.is_multiple_of(5)).then_some(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        };
        let mut spool = Spool::default();
        assert_eq!(spool.read().unwrap().peek(), None);
        for n in 0..100_000 {
            spool.push(change(n), &mut scratch).unwrap();
        }
        // Twice, and nothing is lost in between.
        for _ in 0..2 {
            let mut changes = spool.read().unwrap();
            for n in 0..100_000 {
                assert_eq!(changes.peek(), Some(change(n)));
                changes.advance().unwrap();
            }
            assert_eq!(changes.peek(), None);
        }
        assert!(spool.spilled > 0 && spool.memory.len() < MEMORY);
    }
}
