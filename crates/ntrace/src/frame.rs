//! Messages in a stream of bytes (3.1): where they start and end, and the bytes
//! between them.

use alloc::vec::Vec;

use crate::Fault;
use hartrace_flow::decode::Framing;

/// Longest message that is looked at. Standard ones have at most 38 bytes; a
/// vendor's may have any number.
pub const MAX_MESSAGE: usize = 4096;

/// The idle byte.
pub const IDLE: u8 = 0xff;

/// A stretch of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A whole message, from its first byte to the one with MSEO = 11.
    Message(&'a [u8]),
    /// Idle bytes.
    Idle(u64),
    /// Bytes that are no message.
    Bad(Fault, u64),
}

/// Divides a stream that arrives in chunks. The pieces do not depend on the
/// chunks, but for idle bytes, which are given as they come.
///
/// ```
/// use hartrace_ntrace::{Framer, Framing, Piece};
///
/// let mut framer = Framer::new();
/// let mut bytes: &[u8] = &[0xff, 0x0c, 0x0f, 0xff];
/// assert_eq!(framer.next_piece(&mut bytes), Some((0, Piece::Idle(1))));
/// assert_eq!(framer.next_piece(&mut bytes), Some((1, Piece::Message(&[0x0c, 0x0f]))));
/// assert_eq!(framer.next_piece(&mut bytes), Some((3, Piece::Idle(1))));
/// assert_eq!(framer.next_piece(&mut bytes), None);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Framer {
    /// Offset of the next byte.
    at: u64,
    /// Bytes of a message whose end has not come, or the first of them.
    held: Vec<u8>,
    /// All its bytes so far, and what is wrong with it.
    len: u64,
    bad: Option<Fault>,
    /// `held` has been given out.
    given: bool,
}

impl Framer {
    /// At the start of a stream, or right after a byte with MSEO = 11.
    #[must_use]
    pub fn new() -> Framer {
        Framer::default()
    }

    #[cold]
    fn slowly<'s, 'b: 's>(&'s mut self, bytes: &mut &'b [u8]) -> Option<(u64, Piece<'s>)> {
        if self.len == 0 {
            let &first = bytes.first()?;
            let idle = bytes.iter().take_while(|&&b| b == IDLE).count();
            if idle > 0 {
                return Some(self.idle(idle, bytes));
            }
            match first & 3 {
                3 => {
                    *bytes = bytes.get(1..).unwrap_or_default();
                    self.at += 1;
                    return Some((self.at - 1, Piece::Bad(Fault::StrayEnd, 1)));
                }
                1 => self.bad = Some(Fault::StrayField),
                _ => {}
            }
        }
        while let Some((&byte, rest)) = bytes.split_first() {
            *bytes = rest;
            self.at += 1;
            self.len += 1;
            if byte & 3 == 2 && self.bad.is_none() {
                self.bad = Some(Fault::ReservedMseo);
            }
            if self.held.len() < MAX_MESSAGE {
                self.held.push(byte);
            } else if self.bad.is_none() {
                self.bad = Some(Fault::Oversize);
            }
            if byte & 3 == 3 {
                return Some(self.end());
            }
        }
        None
    }

    fn idle(&mut self, count: usize, bytes: &mut &[u8]) -> (u64, Piece<'static>) {
        *bytes = bytes.get(count..).unwrap_or_default();
        let at = self.at;
        self.at += count as u64;
        (at, Piece::Idle(count as u64))
    }

    /// The end of what was held.
    fn end(&mut self) -> (u64, Piece<'_>) {
        let len = core::mem::take(&mut self.len);
        self.given = true;
        let piece = match self.bad.take() {
            Some(fault) => Piece::Bad(fault, len),
            None => Piece::Message(&self.held),
        };
        (self.at - len, piece)
    }
}

impl Framing for Framer {
    type Piece<'p> = Piece<'p>;

    #[inline]
    fn position(&self) -> u64 {
        self.at
    }

    fn at(mut self, offset: u64) -> Framer {
        self.at = offset;
        self
    }

    #[inline]
    fn is_inside(&self) -> bool {
        self.len > 0
    }

    #[inline]
    fn pass(&mut self, len: usize) {
        self.at += len as u64;
    }

    #[inline]
    fn next_piece<'s, 'b: 's>(&'s mut self, bytes: &mut &'b [u8]) -> Option<(u64, Piece<'s>)> {
        if self.given {
            self.held.clear();
            self.given = false;
        }
        if self.len == 0 {
            // The usual case: a whole message in this chunk.
            if let Some((message, rest)) = whole(bytes) {
                *bytes = rest;
                let at = self.at;
                self.at += message.len() as u64;
                return Some((at, Piece::Message(message)));
            }
        }
        self.slowly(bytes)
    }

    fn finish(&mut self) -> Option<(u64, Piece<'static>)> {
        if self.given {
            self.held.clear();
            self.given = false;
        }
        let len = core::mem::take(&mut self.len);
        self.held.clear();
        let fault = self.bad.take().unwrap_or(Fault::Truncated);
        (len > 0).then(|| (self.at - len, Piece::Bad(fault, len)))
    }

    #[inline]
    fn length(piece: &Piece<'_>) -> usize {
        match *piece {
            Piece::Message(bytes) => bytes.len(),
            Piece::Idle(bytes) | Piece::Bad(_, bytes) => bytes as usize,
        }
    }
}

/// At the same place, with the same bytes held.
impl PartialEq for Framer {
    fn eq(&self, other: &Framer) -> bool {
        let same = (self.at, self.len, self.bad) == (other.at, other.len, other.bad);
        // Between messages, what is held has been given out.
        same && (self.len == 0 || self.held == other.held)
    }
}

/// A whole message at the front of the bytes, and the rest.
#[inline]
fn whole(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    if bytes.first()? & 3 != 0 {
        return None;
    }
    for (i, &byte) in bytes.iter().enumerate().take(MAX_MESSAGE) {
        match byte & 3 {
            3 => return bytes.split_at_checked(i + 1),
            2 => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests;
