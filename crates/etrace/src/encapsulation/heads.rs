//! What comes before the payload of nearly all packets of one source, worked out once: with
//! it a packet is opened by two comparisons, whatever its encapsulation.

use super::{Encapsulation, Form};
use crate::Kind;
use crate::packet::bits::{extended, mask};

/// Bytes that are looked at from the start of a packet: no packet has more.
pub(crate) const WINDOW: usize = 48;

const _: () = assert!(super::LONGEST <= WINDOW, "any packet fits");

/// Packets of one source and kind that all have a timestamp, or all have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The bits of the first bytes that are the same in all of them, and what they are.
    first: Same,
    /// The same of `type`, from the byte on in which it starts.
    kind: Same,
    kind_at: u8,
    /// The first bit of the payload after the start of that byte, less than 16.
    shift: u8,
    /// Bytes that the length of a packet does not count.
    more: u8,
    /// The least length of a packet that has a payload.
    least: u8,
    /// The first bit of the timestamp, and its bits if there is one.
    time: (u8, u8),
}

/// Bits of a word that always are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Same {
    mask: u32,
    bits: u32,
}

/// A [`Head`] that leaves 16 bits of the payload, or more, in the first word of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lead {
    /// The bits of that word that are the same in all packets, and what they are.
    mask: u64,
    bits: u64,
    /// The first bit of the payload, and the first byte as [`Headed`] has it.
    skip: u32,
    pub(crate) at: usize,
    /// Bytes that the length of a packet does not count.
    more: usize,
    /// The least length of a packet that has a payload.
    least: u8,
}

/// A packet that a [`Head`] fits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headed<'a> {
    /// Bytes of the packet.
    pub(crate) len: usize,
    /// Where the payload is, in so many bytes: what comes after them does not matter, but
    /// is there.
    pub(crate) payload: &'a [u8],
    pub(crate) bytes: usize,
    /// The first bits of them that are no payload, less than 16.
    pub(crate) shift: u32,
}

impl Same {
    /// Adds a field of so many bits that has this value.
    fn with(mut self, at: usize, width: usize, value: u64) -> Same {
        let field = mask(width as u32) as u32;
        self.mask |= field << at;
        self.bits |= (value as u32 & field) << at;
        self
    }

    #[inline(always)]
    const fn is_in(self, word: u64) -> bool {
        (word as u32 ^ self.bits) & self.mask == 0
    }
}

impl Head {
    /// The packet at the front, if it is one of these and has a payload.
    #[inline(always)]
    pub(crate) fn open<'a>(&self, window: &'a [u8; WINDOW]) -> Option<Headed<'a>> {
        let first = word(window, 0)?;
        let at = usize::from(self.kind_at & 15);
        let payload = window.get(at..)?;
        let length = first as u8 & 31;
        if !self.first.is_in(first) || !self.kind.is_in(word(payload, 0)?) || length < self.least {
            return None;
        }
        let len = usize::from(length) + usize::from(self.more);
        Some(Headed {
            len,
            payload,
            bytes: len.wrapping_sub(at),
            shift: self.shift.into(),
        })
    }

    /// The same packets by one word each; `None` if what comes before the payload is too long.
    #[inline]
    pub(crate) fn lead(&self) -> Option<Lead> {
        let at = 8 * u32::from(self.kind_at);
        (at <= 32).then(|| Lead {
            mask: u64::from(self.first.mask) | u64::from(self.kind.mask) << at,
            bits: u64::from(self.first.bits) | u64::from(self.kind.bits) << at,
            skip: at + u32::from(self.shift),
            at: self.kind_at.into(),
            more: self.more.into(),
            least: self.least,
        })
    }

    /// Whether such packets have a timestamp.
    #[inline]
    pub(crate) const fn is_timed(&self) -> bool {
        self.time.1 > 0
    }

    /// The timestamp of such a packet.
    #[inline]
    pub(crate) fn time(&self, window: &[u8; WINDOW]) -> Option<u64> {
        let (at, width) = self.time;
        let (head, _) = window.split_first_chunk::<16>()?;
        (width > 0).then(|| (u128::from_le_bytes(*head) >> at) as u64 & mask(width.into()))
    }
}

impl Lead {
    /// The first word of a packet, and its length.
    #[inline(always)]
    pub(crate) fn open(&self, window: &[u8; WINDOW]) -> Option<(u64, usize)> {
        let word = word(window, 0)?;
        match (word ^ self.bits) & self.mask {
            0 => Some((word, (word & 31) as usize + self.more)),
            _ => None,
        }
    }

    /// The least length of a packet that has so many bits of payload.
    #[inline]
    pub(crate) const fn with_payload(&self, bits: u32) -> usize {
        (self.skip + bits).div_ceil(8) as usize
    }

    /// The first bits of the payload of a packet that has as many.
    #[inline(always)]
    pub(crate) const fn first_bits(&self, word: u64) -> u64 {
        word >> (self.skip & 63)
    }

    /// The same of any packet: the last bit of it is repeated. `None` if it has no payload.
    #[inline]
    pub(crate) fn extended(&self, word: u64, len: usize) -> Option<u64> {
        let bytes = len.min(size_of::<u64>());
        ((word & 31) as u8 >= self.least).then(|| extended(word, bytes, self.skip) as u64)
    }
}

#[cfg(test)]
impl Head {
    /// Makes bytes start with such a packet whose length field is this; its bytes.
    pub(crate) fn start_packet(&self, len: u8, bytes: &mut [u8]) -> usize {
        let same = Same {
            mask: 31,
            bits: len.into(),
        };
        for (same, at) in [(same, 0), (self.first, 0), (self.kind, self.kind_at)] {
            let (mask, bits) = (same.mask.to_le_bytes(), same.bits.to_le_bytes());
            let to = bytes.iter_mut().skip(at.into());
            for ((to, mask), bits) in to.zip(mask).zip(bits) {
                *to = *to & !mask | bits;
            }
        }
        usize::from(len) + usize::from(self.more)
    }
}

impl Headed<'_> {
    /// Bytes of the payload.
    #[inline]
    pub(crate) const fn payload_bytes(&self) -> usize {
        self.bytes - self.shift as usize / 8
    }

    /// The payload as a number, its last bit repeated; `None` if it is longer than a word.
    #[inline(always)]
    pub(crate) fn word(&self) -> Option<i64> {
        match self.bytes {
            1..=8 => Some(extended(word(self.payload, 0)?, self.bytes, self.shift)),
            _ => None,
        }
    }

    /// The first 16 bits of it, or more; the last one is repeated if there are fewer.
    #[inline(always)]
    pub(crate) fn first_bits(&self) -> u64 {
        let word = word(self.payload, 0).unwrap_or_default();
        match self.bytes {
            0..4 => extended(word, self.bytes, self.shift) as u64,
            _ => word >> (self.shift & 15),
        }
    }
}

/// The bytes from a place on that are looked at.
#[inline(always)]
pub(crate) fn window(bytes: &[u8], at: usize) -> Option<&[u8; WINDOW]> {
    let (window, _) = bytes.get(at..)?.split_first_chunk()?;
    Some(window)
}

/// Eight bytes from a place on.
#[inline(always)]
pub(crate) fn word(bytes: &[u8], from: usize) -> Option<u64> {
    let (word, _) = bytes.get(from..)?.split_first_chunk::<8>()?;
    Some(u64::from_le_bytes(*word))
}

/// The heads of the packets of one source: by kind, without and with a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heads {
    /// The bit of the first byte by which packets with a timestamp are known.
    timed: u8,
    instruction: [Option<Head>; 2],
    data: [Option<Head>; 2],
}

/// Those of source 0 in the form of the reference models.
impl Default for Heads {
    fn default() -> Heads {
        Heads::new(&Encapsulation::default(), 0)
    }
}

impl Heads {
    /// `src` is counted from that of hart 0.
    pub(crate) fn new(form: &Encapsulation, src: u16) -> Heads {
        let both = |kind| [form.head(kind, src, false), form.head(kind, src, true)];
        Heads {
            timed: form.timed_bit(),
            instruction: both(Kind::Instruction),
            data: both(Kind::Data),
        }
    }

    /// None fit.
    pub(crate) const NONE: Heads = Heads {
        timed: 0,
        instruction: [None; 2],
        data: [None; 2],
    };

    /// That of the packets of this kind without a timestamp, if they can be told from others.
    #[inline(always)]
    pub(crate) const fn untimed(&self, kind: Kind) -> Option<Head> {
        match kind {
            Kind::Instruction => self.instruction[0],
            Kind::Data => self.data[0],
        }
    }

    /// That of the packets of this kind of which the first byte may be the first.
    #[inline(always)]
    pub(crate) fn of(&self, kind: Kind, first: u8) -> Option<&Head> {
        let [without, with] = match kind {
            Kind::Instruction => &self.instruction,
            Kind::Data => &self.data,
        };
        match first & self.timed {
            0 => without.as_ref(),
            _ => with.as_ref(),
        }
    }
}

impl Encapsulation {
    /// The bit of the first byte that is set if there is a timestamp.
    const fn timed_bit(&self) -> u8 {
        match self.form {
            Form::Atb => 1 << 5,
            _ => 1 << 7,
        }
    }

    /// `None` if there are no such packets, or each has more that differs.
    fn head(&self, kind: Kind, src: u16, timed: bool) -> Option<Head> {
        let data = u64::from(kind == Kind::Data);
        let time_bits = if timed {
            8 * usize::from(self.time_bytes)
        } else {
            0
        };
        if timed && time_bits == 0 {
            return None;
        }
        let src_bits = usize::from(self.src_bits);
        if u64::from(src) > mask(self.src_bits.into()) {
            return None;
        }
        let src = u64::from(src.wrapping_add(self.src_id));
        let top = Same::default().with(7, 1, timed.into());
        let (first, time_at, kind_bits) = match self.form {
            Form::Reference | Form::Smi => {
                let first = top.with(5, 2, 2 | data).with(8, src_bits, src);
                (first, 8 + 8 * self.src_bytes(), 0)
            }
            Form::Riscv => {
                let first = top.with(8, src_bits, src);
                let first = match self.marks {
                    // No packet but a mark has the other values of `flow`.
                    true => first.with(5, 2, 0),
                    false => first,
                };
                (first, 8 + src_bits, usize::from(self.type_bits))
            }
            Form::Atb => {
                let first = Same::default().with(5, 1, timed.into());
                let first = first.with(6, 1, data).with(7, 1, 0);
                (first, 8, 0)
            }
            Form::Esp32 | Form::Slots => return None,
        };
        if kind == Kind::Data && !self.has_kinds() {
            return None;
        }
        let kind_at = time_at + time_bits;
        let more = 1 + self.src_bytes() + time_bits / 8;
        Some(Head {
            first,
            kind: Same::default().with(kind_at % 8, kind_bits, data),
            kind_at: (kind_at / 8) as u8,
            shift: (kind_at % 8 + kind_bits) as u8,
            more: more as u8,
            least: ((kind_at + kind_bits) / 8 + 1).saturating_sub(more).max(1) as u8,
            time: (time_at as u8, time_bits as u8),
        })
    }
}

#[cfg(test)]
mod tests;
