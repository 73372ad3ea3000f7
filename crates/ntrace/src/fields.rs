//! Fields in MDO bits: six to a byte above the two MSEO bits, least
//! significant first (3.1, 3.3).

use crate::Fault;
use crate::message::quick::spread;

/// A variable-length field as it was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Var {
    /// The value; bits above 64 are dropped.
    pub(crate) value: u64,
    /// Bits sent, padding included.
    pub(crate) bits: u32,
    /// A bit above 64 was set.
    pub(crate) over: bool,
}

impl Var {
    /// The value, where it must fit into this many bits.
    pub(crate) const fn within(self, bits: u32) -> Result<u64, Fault> {
        if self.over || (bits < 64 && self.value >> bits != 0) {
            return Err(Fault::FieldTooWide);
        }
        Ok(self.value)
    }
}

/// Reads the fields of one message.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
    /// MDO bits of the current byte that no field has taken.
    left: u64,
    have: u32,
    /// MSEO of the current byte; 00 again once it has ended a field.
    mseo: u8,
}

/// MSEO of the last byte of a message.
pub(crate) const END: u8 = 3;
/// MSEO of the last byte of a variable-length field.
const FIELD: u64 = 1;

impl<'a> Fields<'a> {
    /// A whole message, from its first byte to the one with MSEO = 11.
    #[inline]
    pub(crate) const fn new(message: &'a [u8]) -> Fields<'a> {
        Fields {
            rest: message,
            left: 0,
            have: 0,
            mseo: 0,
        }
    }

    /// The first byte, which is `TCODE` and nothing else, and the fields
    /// after it.
    #[inline]
    pub(crate) const fn behind_tcode(message: &'a [u8]) -> Result<(u8, Fields<'a>), Fault> {
        let Some((&first, rest)) = message.split_first() else {
            return Err(Fault::MissingField);
        };
        let mut fields = Fields::new(rest);
        fields.mseo = first & 3;
        Ok((first >> 2, fields))
    }

    /// A fixed-length field of at most 16 bits.
    #[inline]
    pub(crate) fn fixed(&mut self, width: u32) -> Result<u16, Fault> {
        while self.have < width {
            self.goes_on()?;
            let Some((&byte, rest)) = self.rest.split_first() else {
                return Err(Fault::MissingField);
            };
            self.rest = rest;
            self.left |= u64::from(byte >> 2) << self.have;
            self.have += 6;
            self.mseo = byte & 3;
        }
        let value = self.left & ((1 << width) - 1);
        self.left >>= width;
        self.have -= width;
        Ok(value as u16)
    }

    /// Whether another byte may follow inside a field.
    #[inline]
    const fn goes_on(&self) -> Result<(), Fault> {
        match self.mseo {
            0 => Ok(()),
            1 => Err(Fault::CutField),
            END => Err(Fault::MissingField),
            _ => Err(Fault::ReservedMseo),
        }
    }

    /// A variable-length field: what is left of the current byte and on to the
    /// next MSEO that is not 00.
    #[inline]
    pub(crate) fn var(&mut self) -> Result<Var, Fault> {
        let mut value = self.left;
        let mut bits = self.have;
        let mut over = false;
        if bits == 0 {
            // It has at least one bit: a fixed-length field before it may not
            // end with MSEO = 01.
            self.goes_on()?;
        }
        while self.mseo == 0 {
            let Some((&byte, rest)) = self.rest.split_first() else {
                return Err(Fault::MissingField);
            };
            self.rest = rest;
            self.mseo = byte & 3;
            let mdo = u64::from(byte >> 2);
            if bits < 58 {
                value |= mdo << bits;
            } else {
                let fits = mdo.checked_shl(bits).unwrap_or(0);
                over |= fits.checked_shr(bits).unwrap_or(0) != mdo;
                value |= fits;
            }
            bits += 6;
        }
        self.left = 0;
        self.have = 0;
        match self.mseo {
            END => {}
            2 => return Err(Fault::ReservedMseo),
            // The next field starts with the next byte.
            _ => self.mseo = 0,
        }
        Ok(Var { value, bits, over })
    }

    /// MDO bits of a message of so many bytes that fields have taken.
    pub(crate) fn taken(&self, len: usize) -> u32 {
        (len - self.rest.len()) as u32 * 6 - self.have
    }

    /// Whether the message ends here.
    #[inline]
    pub(crate) const fn is_end(&self) -> bool {
        self.mseo == END
    }
}

/// Longest message of the specification: 38 bytes by its own count, and some
/// more for counters without limit.
const ROOM: usize = 64;

/// MDO bits of eight bytes.
const WORD: u32 = 48;

/// Where a message is packed. Eight bytes are written at once, however many of them
/// count.
pub(crate) type Room = [u8; ROOM + 8];

/// Room for a message.
pub(crate) const EMPTY: Room = [0; ROOM + 8];

/// Writes the fields of one message.
#[derive(Debug)]
pub(crate) struct Packer<'r> {
    bytes: &'r mut Room,
    held: Held,
}

/// The fields that are not in the bytes yet. They get there eight bytes at a time:
/// most messages have no more.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    /// Bytes before them.
    len: usize,
    /// Their MDO bits, and how many: at most [`WORD`].
    mdo: u64,
    bits: u32,
    /// MSEO of their bytes, each where it belongs.
    mseo: u64,
}

impl<'r> Packer<'r> {
    #[inline(always)]
    pub(crate) fn new(bytes: &'r mut Room) -> Packer<'r> {
        Packer {
            bytes,
            held: Held::default(),
        }
    }

    /// A fixed-length field of at most 16 bits; those of the value above it are
    /// dropped. Fixed-length fields come first: TCODE, SRC, SYNC and B-TYPE have 24
    /// bits together.
    #[inline(always)]
    pub(crate) fn fixed(&mut self, value: u16, width: u32) {
        let value = u64::from(value) & ((1 << width) - 1);
        self.held.mdo |= value << (self.held.bits & 63);
        self.held.bits += width;
    }

    /// A variable-length field with its upper zeros left out; it has at least one
    /// bit.
    #[inline(always)]
    pub(crate) fn var(&mut self, value: u64) {
        self.field(value, u64::BITS - (value | 1).leading_zeros());
    }

    /// A variable-length field of whole bytes, as many as said but at least one; it
    /// starts at a byte.
    #[inline(always)]
    pub(crate) fn var_bytes(&mut self, value: u64, bytes: u32) {
        let above = u64::BITS.saturating_sub(6 * bytes);
        self.field(value & u64::MAX >> above, 6 * bytes);
    }

    /// A variable-length field of so many bits.
    #[inline(always)]
    fn field(&mut self, value: u64, bits: u32) {
        self.held = match self.held.bits + bits {
            0..=WORD => self.held.with(value, bits),
            _ => long_field(self.bytes, self.held, value, bits),
        };
    }

    /// Ends the message: its length.
    #[inline(always)]
    pub(crate) fn finish(self) -> usize {
        let mut held = self.held;
        held.end(END.into());
        held.put(self.bytes);
        held.len
    }
}

impl Held {
    /// The same with a field for which there is room.
    #[inline(always)]
    fn with(mut self, value: u64, bits: u32) -> Held {
        self.mdo |= value << (self.bits & 63);
        self.bits += bits;
        self.end(FIELD);
        self
    }

    /// Ends the last byte with this MSEO.
    #[inline(always)]
    #[allow(clippy::manual_div_ceil)] // Which takes three times the instructions.
    fn end(&mut self, mseo: u64) {
        let bytes = (self.bits + 5) / 6;
        self.bits = 6 * bytes;
        self.mseo |= mseo << (8u32.wrapping_mul(bytes).wrapping_sub(8) & 63);
    }

    /// Puts whole bytes where they belong.
    #[inline(always)]
    fn put(&mut self, bytes: &mut Room) {
        let count = self.bits / 6;
        // Bytes that do not count are overwritten, or are none of the message.
        if let Some(to) = bytes.get_mut(self.len..self.len + 8) {
            to.copy_from_slice(&(spread(self.mdo) | self.mseo).to_le_bytes());
            self.len += count as usize;
        }
        self.mdo >>= (6 * count) & 63;
        self.bits -= 6 * count;
        self.mseo = 0;
    }
}

/// A field for which there is no room beside those that are held.
#[cold]
#[inline(never)]
fn long_field(bytes: &mut Room, mut held: Held, mut value: u64, mut bits: u32) -> Held {
    held.put(bytes);
    while held.bits + bits > WORD {
        let now = WORD - held.bits;
        let low = value & ((1 << now) - 1);
        held.mdo |= low << held.bits;
        held.bits = WORD;
        held.put(bytes);
        value >>= now;
        bits -= now;
    }
    held.with(value, bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_at_every_alignment() {
        for first in 1..=16u32 {
            for value in [0, 1, 2, 0x3f, 0x40, 0xfff, 1 << 57, 1 << 58, u64::MAX] {
                let mut room = EMPTY;
                let mut packer = Packer::new(&mut room);
                packer.fixed(33, 6);
                packer.fixed((1 << (first - 1)) as u16, first);
                packer.var(value);
                packer.var(value >> 1);
                let len = packer.finish();
                let bytes = room[..len].to_vec();
                let mut fields = Fields::new(&bytes);
                assert_eq!(fields.fixed(6), Ok(33));
                assert_eq!(fields.fixed(first), Ok((1 << (first - 1)) as u16));
                assert_eq!(fields.var().unwrap().within(64), Ok(value));
                assert!(!fields.is_end());
                assert_eq!(fields.var().unwrap().within(64), Ok(value >> 1));
                assert!(fields.is_end());
                assert_eq!(fields.var(), Err(Fault::MissingField));
            }
        }
    }

    #[test]
    fn zero_still_takes_a_bit() {
        let mut room = EMPTY;
        let mut packer = Packer::new(&mut room);
        packer.fixed(3, 6);
        packer.var(0);
        let len = packer.finish();
        assert_eq!(room[..len], [3 << 2, END]);
        let mut room = EMPTY;
        let mut packer = Packer::new(&mut room);
        packer.fixed(4, 6);
        packer.fixed(0, 2);
        packer.var(0);
        packer.var(0);
        let len = packer.finish();
        assert_eq!(room[..len], [4 << 2, 1, END]);
    }

    #[test]
    fn bits_above_64_are_told() {
        let mut all = [0xfc; 11];
        all[10] = 0xff;
        let var = Fields::new(&all).var().unwrap();
        assert_eq!((var.value, var.bits, var.over), (u64::MAX, 66, true));
        all[10] = 0x3f;
        let var = Fields::new(&all).var().unwrap();
        assert_eq!((var.value, var.over), (u64::MAX, false));
        let mut long = [0; 100];
        long[99] = 7;
        let var = Fields::new(&long).var().unwrap();
        assert_eq!((var.value, var.bits, var.over), (0, 600, true));
    }

    #[test]
    fn a_cut_fixed_field_is_told_from_a_short_message() {
        assert_eq!(Fields::new(&[0x01]).fixed(10), Err(Fault::CutField));
        assert_eq!(Fields::new(&[0x03]).fixed(10), Err(Fault::MissingField));
        assert_eq!(Fields::new(&[]).fixed(1), Err(Fault::MissingField));
    }
}
