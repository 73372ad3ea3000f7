//! Packets in a stream of bytes: the file form of the reference models.
//!
//! Each packet has a header byte: its length in bits 0 to 4, its kind in bits 5
//! and 6 (2 for instruction trace, 3 for data trace), bit 7 clear. Zero bytes
//! between packets are padding.

mod chains;

use crate::{Fault, MAX_PAYLOAD};
use chains::Chains;
use hartrace_flow::decode::Framing;

/// What kind of trace a packet belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Instruction trace.
    Instruction,
    /// Data trace.
    Data,
}

impl Kind {
    /// The header byte of a packet whose payload has so many bytes.
    #[inline]
    pub(crate) const fn header(self, len: u8) -> u8 {
        let kind = match self {
            Kind::Instruction => 2,
            Kind::Data => 3,
        };
        kind << 5 | len & 31
    }
}

/// What a header byte says: the kind and the length of the payload; `None` for
/// a byte that is none.
#[inline]
const fn header(byte: u8) -> Option<(Kind, usize)> {
    let len = (byte & 31) as usize;
    match byte >> 5 {
        2 if len > 0 => Some((Kind::Instruction, len)),
        3 if len > 0 => Some((Kind::Data, len)),
        _ => None,
    }
}

/// The length of the payload if the byte is the header of a packet of
/// instruction trace.
#[inline(always)]
pub(crate) const fn instruction(byte: u8) -> Option<usize> {
    let len = byte.wrapping_sub(2 << 5);
    if len > 0 && len <= MAX_PAYLOAD as u8 {
        Some(len as usize)
    } else {
        None
    }
}

/// The same of a packet of data trace.
#[inline(always)]
pub(crate) const fn data(byte: u8) -> Option<usize> {
    let len = byte.wrapping_sub(3 << 5);
    if len > 0 && len <= MAX_PAYLOAD as u8 {
        Some(len as usize)
    } else {
        None
    }
}

/// A piece of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A packet: whose it is, of which kind, its payload.
    Packet(u16, Kind, &'a [u8]),
    /// So many bytes of padding.
    Idle(u64),
    /// So many bytes that belong to no packet.
    Bad(Fault, u64),
}

/// Finds packets. The bytes may come in pieces of any size; what is found does
/// not depend on them, but for padding, which is given as it comes.
///
/// A byte that is no header means that something before it was damaged, if
/// only its length. The stream goes on where all but one of the ways to cut it
/// into packets have led to another such byte.
///
/// ```
/// use hartrace_etrace::{Framer, Framing, Kind, Piece};
///
/// let mut framer = Framer::new();
/// let mut bytes: &[u8] = &[0x00, 0x42, 0x0d, 0x0f, 0x41];
/// assert_eq!(framer.next_piece(&mut bytes), Some((0, Piece::Idle(1))));
/// let packet = Piece::Packet(0, Kind::Instruction, &[0x0d, 0x0f]);
/// assert_eq!(framer.next_piece(&mut bytes), Some((1, packet)));
/// assert_eq!(framer.next_piece(&mut bytes), None);
/// assert!(framer.is_inside());
/// ```
#[derive(Clone, Debug)]
pub struct Framer {
    /// Offset of the next byte.
    at: u64,
    state: State,
    /// The first bytes of a packet whose end has not come, its header first.
    kept: [u8; MAX_PAYLOAD + 1],
}

#[derive(Clone, Debug, PartialEq)]
enum State {
    /// A header is next, or padding.
    Between,
    /// So many bytes of a packet are kept.
    Inside(usize),
    /// So many bytes are no good.
    Lost(u64, Chains),
}

impl Framer {
    /// At the start of a stream, or between two packets of it.
    #[must_use]
    pub fn new() -> Framer {
        Framer {
            at: 0,
            state: State::Between,
            kept: [0; MAX_PAYLOAD + 1],
        }
    }

    #[cold]
    fn slowly<'s, 'b: 's>(&'s mut self, bytes: &mut &'b [u8]) -> Option<(u64, Piece<'s>)> {
        if let State::Between = self.state {
            let &first = bytes.first()?;
            if first == 0 {
                return Some(self.idle(bytes));
            }
            self.state = match header(first) {
                Some(_) => State::Inside(0),
                None => {
                    self.take(1, bytes);
                    State::Lost(1, Chains::new())
                }
            };
        }
        match self.state {
            State::Lost(..) => self.search(bytes),
            _ => self.fill(bytes),
        }
    }

    /// Takes bytes off the front.
    fn take<'b>(&mut self, count: usize, bytes: &mut &'b [u8]) -> &'b [u8] {
        let (taken, rest) = bytes.split_at_checked(count).unwrap_or((bytes, &[]));
        *bytes = rest;
        self.at += taken.len() as u64;
        taken
    }

    fn idle(&mut self, bytes: &mut &[u8]) -> (u64, Piece<'static>) {
        let at = self.at;
        let count = bytes.iter().take_while(|&&byte| byte == 0).count();
        self.take(count, bytes);
        (at, Piece::Idle(count as u64))
    }

    /// Keeps what there is of a packet until it is whole.
    fn fill(&mut self, bytes: &mut &[u8]) -> Option<(u64, Piece<'_>)> {
        let State::Inside(have) = self.state else {
            return None;
        };
        let &first = match have {
            0 => bytes.first()?,
            _ => self.kept.first()?,
        };
        let (kind, len) = header(first)?;
        let more = self.take(1 + len - have, bytes);
        let free = self.kept.get_mut(have..)?;
        for (to, from) in free.iter_mut().zip(more) {
            *to = *from;
        }
        let have = have + more.len();
        if have <= len {
            self.state = State::Inside(have);
            return None;
        }
        self.state = State::Between;
        let payload = self.kept.get(1..have)?;
        let at = self.at - have as u64;
        Some((at, Piece::Packet(0, kind, payload)))
    }

    /// Looks for the next packet.
    fn search(&mut self, bytes: &mut &[u8]) -> Option<(u64, Piece<'static>)> {
        let State::Lost(count, chains) = &mut self.state else {
            return None;
        };
        while let Some((&byte, rest)) = bytes.split_first() {
            *bytes = rest;
            self.at += 1;
            *count += 1;
            chains.byte(byte);
            if chains.is_sure() {
                return self.finish_with(Fault::BadHeader);
            }
        }
        None
    }

    fn finish_with(&mut self, fault: Fault) -> Option<(u64, Piece<'static>)> {
        let count = match self.state {
            State::Between | State::Inside(0) => 0,
            State::Inside(have) => have as u64,
            State::Lost(count, _) => count,
        };
        self.state = State::Between;
        (count > 0).then(|| (self.at - count, Piece::Bad(fault, count)))
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

    /// Also among bytes that belong to no packet.
    #[inline]
    fn is_inside(&self) -> bool {
        !matches!(self.state, State::Between)
    }

    #[inline]
    fn pass(&mut self, len: usize) {
        self.at += len as u64;
    }

    #[inline]
    fn next_piece<'s, 'b: 's>(&'s mut self, bytes: &mut &'b [u8]) -> Option<(u64, Piece<'s>)> {
        // The usual case: a whole packet in this chunk.
        if let (State::Between, Some((&first, rest))) = (&self.state, bytes.split_first())
            && let Some((kind, len)) = header(first)
            && let Some((payload, rest)) = rest.split_at_checked(len)
        {
            *bytes = rest;
            let at = self.at;
            self.at += 1 + len as u64;
            return Some((at, Piece::Packet(0, kind, payload)));
        }
        self.slowly(bytes)
    }

    fn finish(&mut self) -> Option<(u64, Piece<'static>)> {
        match self.state {
            State::Lost(..) => self.finish_with(Fault::BadHeader),
            _ => self.finish_with(Fault::Truncated),
        }
    }

    #[inline]
    fn length(piece: &Piece<'_>) -> usize {
        match *piece {
            Piece::Packet(_, _, payload) => payload.len() + 1,
            Piece::Idle(bytes) | Piece::Bad(_, bytes) => bytes as usize,
        }
    }
}

/// At the same place, with the same bytes kept.
impl PartialEq for Framer {
    fn eq(&self, other: &Framer) -> bool {
        let kept = match self.state {
            State::Inside(have) => have,
            _ => 0,
        };
        self.at == other.at
            && self.state == other.state
            && self.kept.get(..kept) == other.kept.get(..kept)
    }
}

impl Default for Framer {
    fn default() -> Framer {
        Framer::new()
    }
}

/// A place between two packets, at or after an offset: of all ways to cut the
/// bytes from there on into packets, one is left. In a stream without damage
/// that is the right one. `None` if the bytes end before there is only one.
///
/// ```
/// use hartrace_etrace::boundary;
///
/// let bytes = [0x42, 0x01, 0x80].repeat(20);
/// assert_eq!(boundary(&bytes, 1).map(|at| at % 3), Some(0));
/// ```
#[must_use]
pub fn boundary(bytes: &[u8], from: usize) -> Option<usize> {
    let mut chains = Chains::new();
    let rest = bytes.get(from..)?.iter();
    let found = rest.enumerate().find(|&(_, &byte)| {
        chains.byte(byte);
        chains.is_sole()
    });
    found.map(|(i, _)| from + i + 1)
}

#[cfg(test)]
mod tests;
