//! The fast path for short messages: all bits in one register.
//!
//! Nearly all messages of a trace have one of four types and at most eight
//! bytes. One word of the stream then holds the whole message, and a few
//! operations extract its data bits and field boundaries. Everything else takes
//! the general path.

use alloc::boxed::Box;

use super::{Body, Layout, Message, addr_bits};
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
#[derive(Clone, Copy)]
struct Bits {
    /// Six for each byte; those after the message belong to the next one.
    data: u64,
    /// The lowest bit of each byte that ends a field.
    ends: u64,
    /// Bytes.
    len: u32,
}

impl Bits {
    /// The message at the front of a word, if it ends there.
    #[inline]
    const fn new(word: u64) -> Option<Bits> {
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
        let data = word >> 2 & 0x3f3f_3f3f_3f3f_3f3f;
        // Closes the gaps between neighbours: of 6, of 12, of 24 bits.
        let data = data & 0x003f_003f_003f_003f | data >> 2 & 0x0fc0_0fc0_0fc0_0fc0;
        let data = data & 0x0000_0fff_0000_0fff | data >> 4 & 0x00ff_f000_00ff_f000;
        let data = data & 0x0000_0000_00ff_ffff | data >> 8 & 0x0000_ffff_ff00_0000;
        Some(Bits {
            data,
            ends: (one | two) & mask,
            len,
        })
    }

    /// The variable-length field from this bit of this byte on, and the byte
    /// after it; `None` past the end.
    #[inline]
    const fn field(self, byte: u32, from: u32) -> Option<(u64, u32)> {
        if byte >= self.len {
            return None;
        }
        let next = byte + (self.ends >> (byte * 8)).trailing_zeros() / 8 + 1;
        let value = self.data >> from & (u64::MAX >> (64 - (next * 6 - from)));
        Some((value, next))
    }
}

/// The message at the front of a word of the stream, and its length: one
/// without a timestamp whose fields are all as they should be. `None` for any
/// other. Always part of the caller, so that the message need not be put
/// together only to be taken apart.
#[inline(always)]
pub(crate) fn read(word: u64, layout: &Layout) -> Option<(Message<'static>, usize)> {
    let bits = Bits::new(word)?;
    let tcode = Tcode(bits.data as u8 & 0x3f);
    let fixed = match tcode {
        Tcode::DIRECT_BRANCH => 0,
        Tcode::INDIRECT_BRANCH | Tcode::INDIRECT_BRANCH_HIST => 2,
        Tcode::RESOURCE_FULL => 4,
        _ => return None,
    };
    let code = 6 + layout.src_width();
    let src = bits.data >> 6 & ((1 << (code - 6)) - 1);
    let from = code + fixed;
    let byte = from / 6;
    // A field of fixed length that is cut, or ends with its byte.
    if bits.ends & ((1 << (byte * 8)) - 1) != 0 {
        return None;
    }
    let (first, next) = bits.field(byte, from)?;
    let (body, end) = match tcode {
        Tcode::DIRECT_BRANCH => (Body::DirectBranch { icnt: first }, next),
        Tcode::RESOURCE_FULL => {
            if bits.data >> code & 0xf != 1 || first == 0 {
                return None;
            }
            (Body::HistFull { hist: first }, next)
        }
        _ => indirect(bits, (tcode, code), (first, next), layout)?,
    };
    let message = Message::new(src as u16, body);
    (end == bits.len).then_some((message, bits.len as usize))
}

/// Whether messages have no `SRC`, and addresses are those of 64-bit code as they are.
#[inline(always)]
pub(crate) fn is_plain(layout: &Layout) -> bool {
    layout.xlen == Xlen::Rv64 && !layout.extend_addr_msb && layout.src_width() == 0
}

/// The type and the length of the message that [`read`] would find in a word, for those
/// who want no more. `None` does not mean that it would find none.
#[inline(always)]
pub(crate) fn kind(word: u64, layout: &Layout) -> Option<(Tcode, usize)> {
    // Here an address that fits into a word is never too long.
    let plain = is_plain(layout);
    let (one, two) = (word & LOW, word >> 1 & LOW);
    let last = one & two;
    if !plain || last == 0 || word & 3 != 0 {
        return None;
    }
    let len = last.trailing_zeros() / 8 + 1;
    let mask = u64::MAX >> (64 - len * 8);
    let ends = (one | two) & mask;
    let data = word & mask & !(LOW * 3);
    let tcode = Tcode((word >> 2) as u8 & 0x3f);
    let (fields, good) = match tcode {
        Tcode::DIRECT_BRANCH => (1, true),
        Tcode::INDIRECT_BRANCH => (2, true),
        // Its code, 1, is in the next four bits of data; then something that is not 0.
        Tcode::RESOURCE_FULL => (1, data >> 10 & 0xf == 1 && data >> 14 != 0),
        // Its last field, after the end before the last, is not 0.
        Tcode::INDIRECT_BRANCH_HIST => {
            let before = ends & mask >> 8;
            (3, data >> (63 - before.leading_zeros() % 64) > 0xff)
        }
        _ => return None,
    };
    let whole = two & !one & mask == 0 && ends.count_ones() == fields;
    (whole && good).then_some((tcode, len as usize))
}

/// IndirectBranch and IndirectBranchHist, from `U-ADDR` on.
#[inline(always)]
fn indirect(
    bits: Bits,
    (tcode, code): (Tcode, u32),
    (icnt, next): (u64, u32),
    layout: &Layout,
) -> Option<(Body<'static>, u32)> {
    let btype = Btype::from_bits((bits.data >> code) as u8);
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
