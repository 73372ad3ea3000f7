//! The fast path for short messages: all bits in one register.
//!
//! Nearly all messages of a trace have one of four types and at most eight
//! bytes. One word of the stream then holds the whole message, and a few
//! operations extract its data bits and field boundaries. Everything else takes
//! the general path.

use alloc::boxed::Box;

use super::{Body, ICNT_BITS, Layout, Message, addr_bits};
use hartrace_isa::Xlen;

use crate::{Btype, Tcode};

/// Bytes in a word.
pub(crate) const WORD: usize = 8;

/// The lowest bit of each byte.
const LOW: u64 = 0x0101_0101_0101_0101;

/// IndirectBranchHist, or IndirectBranch if it is to be without `HIST`, as one word of the
/// stream, and its length: one without `SRC` and `TSTAMP` in 64-bit code whose addresses
/// are sent as they are. `None` if it has more than eight bytes.
///
/// Which of the two it is depends on the program, and processors predict it badly: there
/// is no branch for it.
#[inline(always)]
pub(crate) fn jump(
    btype: Btype,
    icnt: u64,
    uaddr: u64,
    (hist, without): (u64, bool),
) -> Option<(u64, usize)> {
    // All bits, or none without it.
    let with = u64::from(without).wrapping_sub(1);
    let (short, long) = (Tcode::INDIRECT_BRANCH.0, Tcode::INDIRECT_BRANCH_HIST.0);
    let tcode = u64::from(short) ^ u64::from(short ^ long) & with;
    let field = hist & with;
    // Bytes up to and including each field; `TCODE` and `B-TYPE` are before the first.
    let first = bytes_of(icnt, 8);
    let second = first + bytes_of(uaddr, 0);
    let len = second + (bytes_of(field, 0) & with as u32);
    if len > WORD as u32 {
        return None;
    }
    let head = tcode | u64::from(btype.bits()) << 6 | icnt << 8;
    let data = head | uaddr << ((6 * first) & 63) | field << ((6 * second) & 63);
    let end = |bytes: u32| 1u64 << ((bytes.wrapping_sub(1) * 8) & 63);
    // MSEO = 01 at the end of each field, and 11 at that of the last one.
    let ends = end(first) | end(second) | (3 * end(len));
    Some((spread(data) | ends, len as usize))
}

/// How many messages [`Jumps`] keeps; a power of two.
const JUMPS: usize = 128;

/// Indirect jumps that were written lately: programs repeat few of them most of the time, and
/// to put a message together takes longer than to find it.
#[derive(Clone, Debug)]
pub(crate) struct Jumps(Box<[Known; JUMPS]>);

/// A message and what it was made of.
#[derive(Clone, Copy, Debug)]
struct Known {
    icnt: u64,
    uaddr: u64,
    hist: u32,
    /// 0 where there is none.
    len: u8,
    word: u64,
}

impl Jumps {
    pub(crate) fn new() -> Jumps {
        let none = Known {
            icnt: 0,
            uaddr: 0,
            // No message has such a history.
            hist: 0,
            len: 0,
            word: 0,
        };
        Jumps(Box::new([none; JUMPS]))
    }

    /// As [`jump`] for [`Btype::Indirect`], without the history if it `is_short`: always the
    /// same question, so that the answer is known with the message.
    #[inline(always)]
    pub(crate) fn write(
        &mut self,
        (icnt, uaddr, hist): (u64, u64, u64),
        is_short: impl Fn(u64) -> bool,
    ) -> Option<(u64, usize)> {
        // A few bits that are another number for most jumps.
        let sum = uaddr.wrapping_add(icnt << 40 ^ hist.rotate_left(24));
        let hash = sum.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - JUMPS.ilog2());
        // Masked to the size of the array.
        #[allow(clippy::indexing_slicing)]
        let known = &mut self.0[hash as usize % JUMPS];
        if known.uaddr == uaddr && known.icnt == icnt && u64::from(known.hist) == hist {
            return Some((known.word, known.len.into()));
        }
        let (word, len) = jump(Btype::Indirect, icnt, uaddr, (hist, is_short(hist)))?;
        if let Ok(hist @ 1..) = u32::try_from(hist) {
            *known = Known {
                icnt,
                uaddr,
                hist,
                len: len as u8,
                word,
            };
        }
        Some((word, len))
    }
}

/// ResourceFull for a history of 32 bits or fewer, as [`jump`] writes messages.
#[inline(always)]
pub(crate) fn hist_full(hist: u64) -> (u64, usize) {
    let data = u64::from(Tcode::RESOURCE_FULL.0) | 1 << 6 | (hist & 0xffff_ffff) << 10;
    let len = bytes_of(data, 0);
    // MSEO = 11 at the end.
    (spread(data) | 3 << (8 * len - 8), len as usize)
}

/// Bytes for a field of variable length, six bits in each, after so many bits in the same
/// byte.
#[inline(always)]
const fn bytes_of(value: u64, bits_before: u32) -> u32 {
    let last_bit = bits_before + (value | 1).ilog2();
    // Divided by 6, which is exact below 131.
    ((last_bit * 43) >> 8) + 1
}

/// 48 bits of data as the MDO bits of eight bytes.
#[inline(always)]
pub(crate) const fn spread(data: u64) -> u64 {
    let data = data & 0xff_ffff | (data & 0xffff_ff00_0000) << 8;
    let data = data & 0x0000_0fff_0000_0fff | (data & 0x00ff_f000_00ff_f000) << 4;
    let data = data & 0x003f_003f_003f_003f | (data & 0x0fc0_0fc0_0fc0_0fc0) << 2;
    data << 2
}

/// The data bits of a message, and where its fields end.
trait Bits: Copy {
    /// A count may be too large.
    const LARGE: bool;

    /// Bytes.
    fn len(self) -> u32;

    /// The first bits of the data: six for each byte; those after the message belong to the
    /// next one.
    fn low(self) -> u64;

    /// Whether a field ends in one of so many first bytes.
    fn ends_within(self, bytes: u32) -> bool;

    /// The variable-length field from this bit of this byte on, and the byte
    /// after it; `None` past the end, and for more than 64 bits.
    fn field(self, byte: u32, from: u32) -> Option<(u64, u32)>;
}

/// Those of a message in one word.
#[derive(Clone, Copy)]
struct Short {
    data: u64,
    /// The lowest bit of each byte that ends a field.
    ends: u64,
    len: u32,
}

impl Short {
    /// The message at the front of a word, if it ends there.
    #[inline]
    const fn new(word: u64) -> Option<Short> {
        let (one, two) = (word & LOW, word >> 1 & LOW);
        let last = one & two;
        if last == 0 {
            return None;
        }
        let len = last.trailing_zeros() / 8 + 1;
        let mask = u64::MAX >> (64 - len * 8);
        // MSEO = 10, and a message that starts with anything but 00.
        if two & !one & mask != 0 || (one | two) & 1 != 0 {
            return None;
        }
        Some(Short {
            data: gather(word),
            ends: (one | two) & mask,
            len,
        })
    }
}

impl Bits for Short {
    const LARGE: bool = false;

    #[inline(always)]
    fn len(self) -> u32 {
        self.len
    }

    #[inline(always)]
    fn low(self) -> u64 {
        self.data
    }

    #[inline(always)]
    fn ends_within(self, bytes: u32) -> bool {
        self.ends & ((1 << (bytes * 8)) - 1) != 0
    }

    #[inline(always)]
    fn field(self, byte: u32, from: u32) -> Option<(u64, u32)> {
        if byte >= self.len {
            return None;
        }
        let next = byte + (self.ends >> (byte * 8)).trailing_zeros() / 8 + 1;
        let value = self.data >> from & (u64::MAX >> (64 - (next * 6 - from)));
        Some((value, next))
    }
}

/// Those of a message in two words, which ends in the second.
#[derive(Clone, Copy)]
struct Long {
    data: u128,
    /// A bit for each byte that ends a field.
    ends: u32,
    len: u32,
}

impl Long {
    #[inline]
    const fn new([first, second]: [u64; 2]) -> Option<Long> {
        let one = bits_of(first) | bits_of(second) << 8;
        let two = bits_of(first >> 1) | bits_of(second >> 1) << 8;
        let last = one & two;
        if last == 0 {
            return None;
        }
        let len = last.trailing_zeros() + 1;
        let mask = u32::MAX >> (32 - len);
        if two & !one & mask != 0 || (one | two) & 1 != 0 {
            return None;
        }
        Some(Long {
            data: gather(first) as u128 | (gather(second) as u128) << 48,
            ends: (one | two) & mask,
            len,
        })
    }
}

impl Bits for Long {
    const LARGE: bool = true;

    #[inline(always)]
    fn len(self) -> u32 {
        self.len
    }

    #[inline(always)]
    fn low(self) -> u64 {
        self.data as u64
    }

    #[inline(always)]
    fn ends_within(self, bytes: u32) -> bool {
        self.ends & ((1 << bytes) - 1) != 0
    }

    #[inline(always)]
    fn field(self, byte: u32, from: u32) -> Option<(u64, u32)> {
        if byte >= self.len {
            return None;
        }
        let next = byte + (self.ends >> byte).trailing_zeros() + 1;
        let value = self.data >> from & (u128::MAX >> (128 - (next * 6 - from)));
        Some((u64::try_from(value).ok()?, next))
    }
}

/// The data of eight bytes, 48 bits.
#[inline(always)]
const fn gather(word: u64) -> u64 {
    let data = word >> 2 & 0x3f3f_3f3f_3f3f_3f3f;
    // Closes the gaps between neighbours: of 6, of 12, of 24 bits.
    let data = data & 0x003f_003f_003f_003f | data >> 2 & 0x0fc0_0fc0_0fc0_0fc0;
    let data = data & 0x0000_0fff_0000_0fff | data >> 4 & 0x00ff_f000_00ff_f000;
    data & 0x0000_0000_00ff_ffff | data >> 8 & 0x0000_ffff_ff00_0000
}

/// The lowest bit of each byte, next to each other.
#[inline(always)]
const fn bits_of(word: u64) -> u32 {
    // Each bit is added to the top byte at the place of its own.
    ((word & LOW).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
}

/// The bytes of the message at the front of a stream, in two words, and its length; `None`
/// if it does not end within them.
#[inline(always)]
pub(crate) fn whole(stream: &[u8]) -> Option<([u64; 2], usize)> {
    let (first, rest) = stream.split_first_chunk::<WORD>()?;
    let first = u64::from_le_bytes(*first);
    if let Some((first, len)) = to_end(first) {
        return Some(([first, 0], len));
    }
    let (second, len) = to_end(u64::from_le_bytes(*rest.first_chunk()?))?;
    Some(([first, second], WORD + len))
}

/// The type of such a message.
#[inline(always)]
pub(crate) const fn tcode([first, _]: [u64; 2]) -> Tcode {
    Tcode((first >> 2 & 0x3f) as u8)
}

/// A message of one word that [`whole`] found, of type ResourceFull and without `SRC`: all of
/// it, and its history, if that is all it has.
#[inline(always)]
pub(crate) fn full_history(words: [u64; 2]) -> Option<(u64, u64)> {
    let [word, 0] = words else {
        return None;
    };
    let bits = Short::new(word)?;
    // No field ends before the last, and the code is 1.
    let (code, hist) = (bits.data >> 6 & 0xf, bits.data >> 10);
    (bits.ends & (bits.ends - 1) == 0 && code == 1 && hist != 0).then_some((word, hist))
}

/// A word up to the byte that ends a message, if there is one, and so many bytes.
#[inline(always)]
const fn to_end(word: u64) -> Option<(u64, usize)> {
    let last = word & word >> 1 & LOW;
    if last == 0 {
        return None;
    }
    let bits = last.trailing_zeros() + 8;
    Some((word & u64::MAX >> (64 - bits), bits as usize / 8))
}

/// The message at the front of a word of the stream, and its length: one
/// without a timestamp whose fields are all as they should be. `None` for any
/// other. Always part of the caller, so that the message need not be put
/// together only to be taken apart.
#[inline(always)]
pub(crate) fn read(word: u64, layout: &Layout) -> Option<(Message<'static>, usize)> {
    message(Short::new(word)?, layout)
}

/// As [`read`] for the bytes that [`whole`] has found.
#[inline(always)]
pub(crate) fn read_whole(words: [u64; 2], layout: &Layout) -> Option<(Message<'static>, usize)> {
    match words {
        [word, 0] => read(word, layout),
        _ => read_long(words, layout),
    }
}

#[inline(never)]
fn read_long(words: [u64; 2], layout: &Layout) -> Option<(Message<'static>, usize)> {
    message(Long::new(words)?, layout)
}

#[inline(always)]
fn message<B: Bits>(bits: B, layout: &Layout) -> Option<(Message<'static>, usize)> {
    let tcode = Tcode(bits.low() as u8 & 0x3f);
    let fixed = match tcode {
        Tcode::DIRECT_BRANCH => 0,
        Tcode::INDIRECT_BRANCH | Tcode::INDIRECT_BRANCH_HIST => 2,
        Tcode::RESOURCE_FULL => 4,
        _ => return None,
    };
    let code = 6 + layout.src_width();
    let src = bits.low() >> 6 & ((1 << (code - 6)) - 1);
    let from = code + fixed;
    let byte = from / 6;
    // A field of fixed length that is cut, or ends with its byte.
    if bits.ends_within(byte) {
        return None;
    }
    let (first, next) = bits.field(byte, from)?;
    if B::LARGE && tcode != Tcode::RESOURCE_FULL && first >> ICNT_BITS != 0 {
        return None;
    }
    let (body, end) = match tcode {
        Tcode::DIRECT_BRANCH => (Body::DirectBranch { icnt: first }, next),
        Tcode::RESOURCE_FULL => {
            if bits.low() >> code & 0xf != 1 || first == 0 {
                return None;
            }
            (Body::HistFull { hist: first }, next)
        }
        _ => indirect(bits, (tcode, code), (first, next), layout)?,
    };
    let message = Message::new(src as u16, body);
    (end == bits.len()).then_some((message, bits.len() as usize))
}

/// Whether messages have no `SRC`, and addresses are those of 64-bit code as they are.
#[inline(always)]
pub(crate) fn is_plain(layout: &Layout) -> bool {
    layout.xlen == Xlen::Rv64 && !layout.extend_addr_msb && layout.src_width() == 0
}

/// The types that [`kind`] knows.
pub(crate) const KINDS: [Tcode; 4] = [
    Tcode::DIRECT_BRANCH,
    Tcode::INDIRECT_BRANCH,
    Tcode::RESOURCE_FULL,
    Tcode::INDIRECT_BRANCH_HIST,
];

/// How many of their fields end with a byte.
const FIELDS: [u8; 4] = [1, 2, 1, 3];

/// The place of each type in [`KINDS`].
const PLACES: [u8; 64] = {
    let mut places = [KINDS.len() as u8; 64];
    let mut at = 0;
    // Within both arrays.
    #[allow(clippy::indexing_slicing)]
    while at < KINDS.len() {
        places[KINDS[at].0 as usize] = at as u8;
        at += 1;
    }
    places
};

/// The place of a type in [`KINDS`].
pub(crate) fn place(tcode: Tcode) -> Option<usize> {
    let place = PLACES
        .get(usize::from(tcode.0))
        .map(|&place| usize::from(place));
    place.filter(|&place| place < KINDS.len())
}

/// The type, by its place in [`KINDS`], and the length of the message that [`read`] would
/// find at the front of a stream, for those who want no more. `None` does not mean that it
/// would find none. Only for a layout that [`is_plain`].
///
/// Which type comes next depends on the program, and processors predict it badly: all that
/// is to be asked of any of them is found out.
#[inline(always)]
pub(crate) fn kind(stream: &[u8]) -> Option<(usize, usize)> {
    let word = u64::from_le_bytes(*stream.first_chunk()?);
    let (one, two) = (word & LOW, word >> 1 & LOW);
    let last = one & two;
    if last == 0 {
        return None;
    }
    let bits = last.trailing_zeros() + 8;
    let mask = u64::MAX >> (64 - bits);
    let ends = (one | two) & mask;
    let data = word & mask & !(LOW * 3);
    // Six bits, in an array of 64; and then one of four.
    #[allow(clippy::indexing_slicing)]
    let (place, fields) = {
        let place = PLACES[(word >> 2 & 0x3f) as usize];
        (place, FIELDS[usize::from(place) % FIELDS.len()])
    };
    // Here an address that fits into a word is never too long. ResourceFull: its code, 1, is
    // in the next four bits of data; then something that is not 0.
    let full = data >> 10 & 0xf == 1 && data >> 14 != 0;
    // IndirectBranchHist: its last field, after the end before the last, is not 0.
    let before = ends & mask >> 8;
    let hist = data >> (63 - before.leading_zeros() % 64) > 0xff;
    let good = (full | (place != 2)) & (hist | (place != 3)) & (place < 4);
    // Their number, summed up in the top byte.
    let count = ends.wrapping_mul(LOW) >> 56;
    let whole = (two & !one & mask == 0) & (count == u64::from(fields)) & (word & 3 == 0);
    (whole & good).then_some((place.into(), bits as usize / 8))
}

/// IndirectBranch and IndirectBranchHist, from `U-ADDR` on.
#[inline(always)]
fn indirect<B: Bits>(
    bits: B,
    (tcode, code): (Tcode, u32),
    (icnt, next): (u64, u32),
    layout: &Layout,
) -> Option<(Body<'static>, u32)> {
    let btype = Btype::from_bits((bits.low() >> code) as u8);
    let (uaddr, next) = bits.field(next, next * 6)?;
    if layout.extend_addr_msb || uaddr >> addr_bits(layout.xlen) != 0 {
        return None;
    }
    if tcode == Tcode::INDIRECT_BRANCH {
        return Some((Body::IndirectBranch { btype, icnt, uaddr }, next));
    }
    let (hist, next) = bits.field(next, next * 6)?;
    let body = Body::IndirectBranchHist {
        btype,
        icnt,
        uaddr,
        hist,
    };
    (hist != 0).then_some((body, next))
}
