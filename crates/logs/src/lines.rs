//! Splits chunks into lines.

use alloc::vec::Vec;

use memchr::memchr;

use super::{LineError, LineErrorKind};

/// Length of the longest line that is read, in bytes; a longer one is one
/// damaged line, whatever it holds.
pub const MAX_LINE: usize = 64 * 1024;

/// What is left of a line when a chunk ends, and where in the text we are.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines {
    carry: Vec<u8>,
    /// Inside a line that is too long, and already reported.
    skipping: bool,
    /// Lines given so far.
    done: u64,
}

/// A line without its end, or why it is none.
pub(super) type Line<'a> = Result<&'a [u8], LineError>;

impl Lines {
    /// Gives every line of the text so far that has an end, with its number.
    #[inline]
    pub(super) fn feed(&mut self, chunk: &[u8], mut line: impl FnMut(u64, Line<'_>)) {
        let mut rest = self.begin(chunk, &mut line);
        while let Some((raw, behind)) = split(rest) {
            rest = behind;
            self.one(raw, &mut line);
        }
        self.keep(rest, line);
    }

    /// Ends the line that the chunk before left open. Gives the rest of the
    /// chunk, which starts with a line, or nothing when the line goes on.
    pub(super) fn begin<'c>(
        &mut self,
        chunk: &'c [u8],
        mut line: impl FnMut(u64, Line<'_>),
    ) -> &'c [u8] {
        if self.carry.is_empty() && !self.skipping {
            return chunk;
        }
        let Some((head, rest)) = split(chunk) else {
            self.keep(chunk, line);
            return &[];
        };
        self.keep(head, &mut line);
        if self.skipping {
            self.skipping = false;
        } else {
            self.done += 1;
            line(self.done, Ok(trim(&self.carry)));
        }
        self.carry.clear();
        rest
    }

    /// Counts and gives one whole line.
    #[inline]
    pub(super) fn one(&mut self, raw: &[u8], mut line: impl FnMut(u64, Line<'_>)) {
        self.done += 1;
        if raw.len() > MAX_LINE {
            line(self.done, Err(too_long(self.done, raw)));
        } else {
            line(self.done, Ok(trim(raw)));
        }
    }

    /// Counts a line that its reader found by itself.
    #[inline]
    pub(super) fn count(&mut self) -> u64 {
        self.done += 1;
        self.done
    }

    /// Counts lines that their reader found by itself.
    #[inline]
    pub(super) fn pass(&mut self, lines: usize) {
        self.done += lines as u64;
    }

    /// The text has ended: a last line may lack its newline. The next text
    /// starts with line 1.
    pub(super) fn finish(&mut self, mut line: impl FnMut(u64, Line<'_>)) {
        if !self.carry.is_empty() {
            self.done += 1;
            line(self.done, Ok(trim(&self.carry)));
        }
        *self = Lines::default();
    }

    /// Keeps the start of a line for the next chunk.
    pub(super) fn keep(&mut self, part: &[u8], mut line: impl FnMut(u64, Line<'_>)) {
        if self.skipping {
            return;
        }
        let room = MAX_LINE - self.carry.len();
        self.carry
            .extend_from_slice(part.get(..room).unwrap_or(part));
        if part.len() > room {
            self.done += 1;
            line(self.done, Err(too_long(self.done, &self.carry)));
            self.carry.clear();
            self.skipping = true;
        }
    }
}

#[cold]
fn too_long(number: u64, line: &[u8]) -> LineError {
    LineError::whole(number, line, LineErrorKind::TooLong)
}

/// The next whole line of a chunk and what follows its newline.
#[inline]
pub(super) fn split(chunk: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr(b'\n', chunk)?;
    Some((chunk.get(..at)?, chunk.get(at + 1..)?))
}

#[inline]
fn trim(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}
