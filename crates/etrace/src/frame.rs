//! Packets in a stream of bytes.
//!
//! The [`Encapsulation`] says what comes before a payload. Its first byte gives the
//! length of a packet, but for the slots of the PULP tracer, which all have the same
//! length.

mod chains;
mod slots;

use crate::encapsulation::{LONGEST, MAX_SLOT, Opened};
use crate::{Encapsulation, Fault, Form};
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
    /// The header byte of a packet whose payload has so many bytes, in the file form
    /// of the reference models.
    #[inline]
    pub(crate) const fn header(self, len: u8) -> u8 {
        let kind = match self {
            Kind::Instruction => 2,
            Kind::Data => 3,
        };
        kind << 5 | len & 31
    }

    /// Data trace where the bit is set.
    #[inline]
    pub(crate) const fn of_bit(data: bool) -> Kind {
        match data {
            true => Kind::Data,
            false => Kind::Instruction,
        }
    }
}

/// What a header byte of the reference models says: the kind and the length of the
/// payload; `None` for a byte that is none.
#[inline]
const fn header(byte: u8) -> Option<(Kind, usize)> {
    let len = (byte & 31) as usize;
    match byte >> 5 {
        2 if len > 0 => Some((Kind::Instruction, len)),
        3 if len > 0 => Some((Kind::Data, len)),
        _ => None,
    }
}

/// A packet in its encapsulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encapsulated<'a> {
    /// Number of its source, counted from that of hart 0; 0 where packets have none.
    pub src: u16,
    /// Of which trace it is.
    pub kind: Kind,
    /// The timestamp, in as many bits as it has.
    pub time: Option<u64>,
    /// The payload.
    pub payload: &'a [u8],
    /// Bytes of the packet in the stream.
    pub len: usize,
}

/// A piece of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A packet.
    Packet(Encapsulated<'a>),
    /// So many bytes of padding, null packets, and packets that are no trace.
    Idle(u64),
    /// So many bytes that belong to no packet.
    Bad(Fault, u64),
    /// Something of one source is missing or damaged: its number, the fault and its
    /// value, bytes in the stream.
    Lost(u16, Fault, u64, u64),
}

/// Finds packets. The bytes may come in pieces of any size; what is found does
/// not depend on them, but for padding, which is given as it comes.
///
/// A byte that is no header means that something before it was damaged, if
/// only its length. The stream goes on where all but one of the ways to cut it
/// into packets have led to another such byte, or after a synchronisation sequence.
///
/// ```
/// use hartrace_etrace::{Encapsulated, Framer, Framing, Kind, Piece};
///
/// let mut framer = Framer::new();
/// let mut bytes: &[u8] = &[0x00, 0x42, 0x0d, 0x0f, 0x41];
/// assert_eq!(framer.next_piece(&mut bytes), Some((0, Piece::Idle(1))));
/// let packet = Encapsulated {
///     src: 0,
///     kind: Kind::Instruction,
///     time: None,
///     payload: &[0x0d, 0x0f],
///     len: 3,
/// };
/// assert_eq!(framer.next_piece(&mut bytes), Some((1, Piece::Packet(packet))));
/// assert_eq!(framer.next_piece(&mut bytes), None);
/// assert!(framer.is_inside());
/// ```
#[derive(Clone, Debug)]
pub struct Framer {
    /// Offset of the next byte.
    at: u64,
    form: Encapsulation,
    state: State,
    /// The number that the next packet must have, where packets have one.
    index: Option<u16>,
    /// The first bytes of a packet whose end has not come, its header first; or of two
    /// slots.
    kept: [u8; 2 * MAX_SLOT],
    /// A payload that does not start with a byte, or was turned round.
    moved: [u8; MAX_SLOT],
}

const _: () = assert!(LONGEST <= MAX_SLOT, "any packet fits");

#[derive(Clone, Debug, PartialEq)]
enum State {
    /// A header is next, or padding.
    Between,
    /// So many bytes of a packet are kept.
    Inside(usize),
    /// So many bytes are no good.
    Lost(u64, Chains),
    /// Looking for a slot: so many bytes are no good, so many more are kept.
    Hunting(u64, usize),
}

impl Framer {
    /// At the start of a stream in the form of the reference models, or between two
    /// packets of it.
    #[must_use]
    pub fn new() -> Framer {
        Framer::of(Encapsulation::default())
    }

    /// The same for any encapsulation.
    #[must_use]
    pub fn of(form: Encapsulation) -> Framer {
        Framer {
            at: 0,
            form,
            state: State::Between,
            index: None,
            kept: [0; 2 * MAX_SLOT],
            moved: [0; MAX_SLOT],
        }
    }

    /// The encapsulation.
    #[must_use]
    pub const fn encapsulation(&self) -> &Encapsulation {
        &self.form
    }

    /// The same for a stream that may begin inside a packet: nothing is believed
    /// before a place where a packet must start.
    #[must_use]
    pub fn in_the_middle(mut self) -> Framer {
        self.state = match self.form.form {
            Form::Slots => State::Hunting(0, 0),
            _ => State::Lost(0, Chains::new(&self.form)),
        };
        self
    }

    #[cold]
    fn slowly<'s, 'b: 's>(&'s mut self, bytes: &mut &'b [u8]) -> Option<(u64, Piece<'s>)> {
        if self.form.form == Form::Slots {
            return self.slot(bytes);
        }
        if let State::Between = self.state {
            let &first = bytes.first()?;
            self.state = match self.form.length(first) {
                Some(1) => return Some(self.idle(bytes)),
                Some(_) => State::Inside(0),
                None => {
                    self.take(1, bytes);
                    State::Lost(1, Chains::new(&self.form))
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
        let mask = self.form.null_mask();
        let count = bytes.iter().take_while(|&byte| byte & mask == 0).count();
        self.take(count, bytes);
        (at, Piece::Idle(count as u64))
    }

    /// Keeps more bytes; how many there are.
    fn keep(&mut self, have: usize, want: usize, bytes: &mut &[u8]) -> usize {
        let more = self.take(want.saturating_sub(have), bytes);
        for (to, from) in self.kept.iter_mut().skip(have).zip(more) {
            *to = *from;
        }
        have + more.len()
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
        let len = self.form.length(first)?;
        let have = self.keep(have, len, bytes);
        if have < len {
            self.state = State::Inside(have);
            return None;
        }
        let opened = self.form.open(self.kept.get(..len)?);
        let at = self.at - len as u64;
        if let Some(missing) = self.missing(&opened) {
            self.state = State::Inside(have);
            return Some((at, missing));
        }
        self.state = State::Between;
        let (moved, packet) = (&mut self.moved, self.kept.get(..len)?);
        Some((at, piece(packet, &opened, moved)))
    }

    /// What is missing before a packet with a number. It is reported once.
    fn missing(&mut self, opened: &Opened) -> Option<Piece<'static>> {
        let index = opened.index?;
        let count = index.wrapping_sub(self.index.unwrap_or(index));
        if count > 0 {
            self.index = Some(index);
            return Some(Piece::Lost(
                opened.src,
                Fault::MissingPackets,
                count.into(),
                0,
            ));
        }
        self.index = Some(index.wrapping_add(1));
        None
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
            chains.byte(byte, &self.form);
            if chains.is_sure() {
                return self.finish_with(Fault::BadHeader);
            }
        }
        None
    }

    fn finish_with(&mut self, fault: Fault) -> Option<(u64, Piece<'static>)> {
        let count = match self.state {
            State::Between => 0,
            State::Inside(have) => have as u64,
            State::Lost(count, _) => count,
            State::Hunting(count, have) => count + have as u64,
        };
        self.state = State::Between;
        self.index = None;
        (count > 0).then(|| (self.at - count, Piece::Bad(fault, count)))
    }

    /// Another encapsulation than that of the reference models: the packet at the front, if
    /// all of it is there.
    #[inline]
    fn whole<'b>(&self, bytes: &'b [u8]) -> Option<(&'b [u8], &'b [u8])> {
        if self.state != State::Between || self.form.form == Form::Slots {
            return None;
        }
        let len = self.form.length(*bytes.first()?)?;
        bytes.split_at_checked(len).filter(|_| len > 1)
    }

    /// Such a packet, before the rest of the bytes.
    #[inline]
    fn open<'s, 'b: 's>(
        &'s mut self,
        (packet, rest): (&'b [u8], &'b [u8]),
        bytes: &mut &'b [u8],
    ) -> (u64, Piece<'s>) {
        let opened = self.form.open(packet);
        let at = self.at;
        if let Some(missing) = self.missing(&opened) {
            return (at, missing);
        }
        *bytes = rest;
        self.at += packet.len() as u64;
        (at, piece(packet, &opened, &mut self.moved))
    }
}

/// A whole packet as a piece.
#[inline]
fn piece<'p>(packet: &'p [u8], opened: &Opened, moved: &'p mut [u8; MAX_SLOT]) -> Piece<'p> {
    let len = packet.len();
    let Some(kind) = opened.kind else {
        return Piece::Idle(len as u64);
    };
    let whole = packet.get(opened.payload / 8..).unwrap_or_default();
    let payload = match opened.payload % 8 {
        0 => whole,
        shift => shifted(whole, shift, moved),
    };
    if opened.mark {
        return mark(opened.src, payload, len);
    }
    Piece::Packet(Encapsulated {
        src: opened.src,
        kind,
        time: opened.time,
        payload,
        len,
    })
}

/// A payload that starts inside a byte. Its last bit is repeated.
fn shifted<'m>(bytes: &[u8], shift: usize, to: &'m mut [u8; MAX_SLOT]) -> &'m [u8] {
    let sign = match bytes.last() {
        Some(last) if last & 0x80 != 0 => 0xff,
        _ => 0,
    };
    let mut from = [sign; MAX_SLOT + 8];
    if let Some(from) = from.get_mut(..bytes.len()) {
        from.copy_from_slice(bytes);
    }
    let (mut words, _) = from.as_chunks::<8>();
    for to in to.chunks_exact_mut(8).take(bytes.len().div_ceil(8)) {
        let [low, rest @ ..] = words else { break };
        let high = rest.first().map_or(0, |high| u64::from_le_bytes(*high));
        let word = u64::from_le_bytes(*low) >> shift | high << (64 - shift);
        to.copy_from_slice(&word.to_le_bytes());
        words = rest;
    }
    to.get(..bytes.len()).unwrap_or_default()
}

/// What a mark in a merged stream stands for.
#[cold]
fn mark(src: u16, payload: &[u8], len: usize) -> Piece<'static> {
    let mut code = [0; 2];
    let mut value = [0; 8];
    let bytes = code.iter_mut().chain(value.iter_mut().take(7));
    for (to, from) in bytes.zip(payload) {
        *to = *from;
    }
    let fault = Fault::from_mark(u16::from_le_bytes(code));
    Piece::Lost(src, fault, u64::from_le_bytes(value), len as u64)
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
        if self.form.is_reference() {
            if let (State::Between, Some((&first, rest))) = (&self.state, bytes.split_first())
                && let Some((kind, len)) = header(first)
                && let Some((payload, rest)) = rest.split_at_checked(len)
            {
                *bytes = rest;
                let at = self.at;
                self.at += 1 + len as u64;
                let packet = Encapsulated {
                    src: 0,
                    kind,
                    time: None,
                    payload,
                    len: 1 + len,
                };
                return Some((at, Piece::Packet(packet)));
            }
        } else if let Some(whole) = self.whole(bytes) {
            return Some(self.open(whole, bytes));
        }
        self.slowly(bytes)
    }

    fn finish(&mut self) -> Option<(u64, Piece<'static>)> {
        match self.state {
            State::Lost(..) | State::Hunting(..) => self.finish_with(Fault::BadHeader),
            _ => self.finish_with(Fault::Truncated),
        }
    }

    #[inline]
    fn length(piece: &Piece<'_>) -> usize {
        match *piece {
            Piece::Packet(packet) => packet.len,
            Piece::Idle(bytes) | Piece::Bad(_, bytes) | Piece::Lost(.., bytes) => bytes as usize,
        }
    }
}

/// At the same place, with the same bytes kept.
impl PartialEq for Framer {
    fn eq(&self, other: &Framer) -> bool {
        let kept = match self.state {
            State::Inside(have) | State::Hunting(_, have) => have,
            _ => 0,
        };
        self.at == other.at
            && self.form == other.form
            && self.state == other.state
            && self.index == other.index
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
/// use hartrace_etrace::{Encapsulation, boundary};
///
/// let bytes = [0x42, 0x01, 0x80].repeat(20);
/// let reference = Encapsulation::default();
/// assert_eq!(boundary(&bytes, 1, &reference).map(|at| at % 3), Some(0));
/// ```
#[must_use]
pub fn boundary(bytes: &[u8], from: usize, form: &Encapsulation) -> Option<usize> {
    if form.form == Form::Slots {
        return slots::boundary(bytes, from, form);
    }
    let mut chains = Chains::new(form);
    let rest = bytes.get(from..)?.iter();
    let found = rest.enumerate().find(|&(_, &byte)| {
        chains.byte(byte, form);
        chains.is_sole()
    });
    found.map(|(i, _)| from + i + 1)
}

#[cfg(test)]
mod tests;
