//! The previous addresses and data of each size, which differences refer to
//! (7.1.3).

use super::read::value_mask;
use super::{Compression, DataConfig};
use crate::packet::bits::mask;

/// How a value is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Full,
    Xor,
    Difference,
}

impl Sent {
    /// What `resp`, and `diff` beside an address, says about data.
    pub(super) const fn from_code(code: u8) -> Sent {
        match code & 3 {
            1 => Sent::Xor,
            3 => Sent::Difference,
            _ => Sent::Full,
        }
    }

    /// What `diff` says in a packet without an address: with one bit, the only
    /// compression there is.
    pub(super) const fn from_diff(diff: u8, config: &DataConfig) -> Sent {
        match (diff, config.diff_width, config.compression) {
            (0, ..) => Sent::Full,
            (1, 1, Compression::Differential) => Sent::Difference,
            (3, ..) => Sent::Difference,
            _ => Sent::Xor,
        }
    }
}

/// Addresses and data of the last accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct History {
    /// By log2 of the size.
    pub(super) addresses: [u64; 4],
    pub(super) data: [u64; 4],
    /// Which of them are known: addresses in the low half, data in the high one.
    pub(super) known: u16,
    csr: Option<u16>,
}

/// An address as a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The field is shifted right by the size.
    pub(super) aligned: bool,
    /// The field.
    pub(super) field: u64,
    /// Bits of it that compression cannot remove.
    pub(super) bits: u32,
}

/// Extends a number of so many bits by its sign.
#[inline]
pub(super) const fn extend(value: u64, width: u8) -> i64 {
    let unused = 64 - if width > 64 { 64 } else { width as u32 };
    (value << unused) as i64 >> unused
}

/// The least bits from which the number can be made again by its sign.
#[inline]
const fn bits(value: i64) -> u32 {
    65 - (value ^ value >> 63).leading_zeros()
}

impl Place {
    /// The field as a number with its sign.
    #[inline]
    pub(super) const fn extended(&self, width: u8) -> i64 {
        extend(self.field, width)
    }

    #[inline]
    fn new(value: u64, size: u8, config: &DataConfig) -> Place {
        let value = extend(value, config.daddress_width);
        let aligned = value as u64 & mask(size.into()) == 0;
        let value = if aligned { value >> size } else { value };
        Place {
            aligned,
            field: value as u64 & mask(config.daddress_width.into()),
            bits: bits(value),
        }
    }
}

impl History {
    /// Forgets everything: a synchronisation packet was sent, or something is
    /// missing.
    #[inline]
    pub(crate) fn clear(&mut self) {
        *self = History::default();
    }

    /// The bases of a difference of addresses, and of data, of this size.
    pub(super) const fn bases(size: u8, address: bool, data: bool) -> u16 {
        (address as u16 | (data as u16) << 4) << (size & 3)
    }

    /// Takes over what is not known from a history before this one.
    pub(super) fn complete(&mut self, before: &History) {
        let missing = before.known & !self.known;
        for size in 0..4 {
            if missing & History::bases(size, true, false) != 0 {
                self.put_address(before.last_address(size), size);
            }
            if missing & History::bases(size, false, true) != 0 {
                self.put_data(before.last_data(size), size);
            }
        }
        self.add(missing);
        self.csr = self.csr.or(before.csr);
    }

    /// What is never known.
    pub(super) const NEVER: u16 = 1 << 8;

    /// These are known now.
    #[inline(always)]
    pub(super) const fn add(&mut self, bases: u16) {
        self.known |= bases;
    }

    /// Whether all of these are known.
    #[inline(always)]
    pub(super) const fn has(&self, bases: u16) -> bool {
        self.known & bases == bases
    }

    /// The last address of this size, if it is known.
    #[inline(always)]
    #[allow(clippy::indexing_slicing)] // two bits
    pub(super) const fn last_address(&self, size: u8) -> u64 {
        self.addresses[(size & 3) as usize]
    }

    /// The same of data.
    #[inline(always)]
    #[allow(clippy::indexing_slicing)] // two bits
    pub(super) const fn last_data(&self, size: u8) -> u64 {
        self.data[(size & 3) as usize]
    }

    /// An address in full.
    #[inline]
    pub(super) fn full(addr: u64, size: u8, config: &DataConfig) -> Place {
        Place::new(addr, size, config)
    }

    /// The same as a difference from the last of this size, if there is one.
    #[inline]
    pub(super) fn difference(&self, addr: u64, size: u8, config: &DataConfig) -> Option<Place> {
        if !self.has(History::bases(size, true, false)) {
            return None;
        }
        let before = self.last_address(size);
        let value = match config.xor_addresses {
            true => addr ^ before,
            false => addr.wrapping_sub(before),
        };
        Some(Place::new(value, size, config))
    }

    /// The address of the next access of this size.
    #[inline]
    pub(super) const fn set_address(&mut self, addr: u64, size: u8) {
        self.put_address(addr, size);
        self.add(History::bases(size, true, false));
    }

    /// The same where it is added to what is known later.
    #[inline(always)]
    #[allow(clippy::indexing_slicing)] // two bits
    pub(super) const fn put_address(&mut self, addr: u64, size: u8) {
        self.addresses[(size & 3) as usize] = addr;
    }

    /// The address that a field means; `None` without a base. Sign-extended from
    /// the width of addresses.
    #[inline]
    pub(super) fn address(
        &mut self,
        (field, aligned, full): (u64, bool, bool),
        size: u8,
        config: &DataConfig,
    ) -> Option<u64> {
        let field = if aligned { field << size } else { field };
        if !self.has(History::bases(size, !full, false)) {
            return None;
        }
        let before = if full { 0 } else { self.last_address(size) };
        let value = match config.xor_addresses {
            true => before ^ field,
            false => before.wrapping_add(field),
        };
        let addr = extend(value, config.daddress_width) as u64;
        self.set_address(addr, size);
        Some(addr)
    }

    /// Data as a field; `None` if there is nothing it could refer to.
    #[inline]
    pub(super) fn compress(&self, data: u64, size: u8, sent: Sent) -> Option<u64> {
        if sent == Sent::Full {
            return Some(data);
        }
        if !self.has(History::bases(size, false, true)) {
            return None;
        }
        let before = self.last_data(size);
        let field = match sent {
            Sent::Difference => data.wrapping_sub(before),
            Sent::Xor | Sent::Full => data ^ before,
        };
        Some(field & value_mask(size))
    }

    /// The data of the next access of this size.
    #[inline]
    pub(super) const fn set_data(&mut self, data: u64, size: u8) {
        self.put_data(data, size);
        self.add(History::bases(size, false, true));
    }

    /// The same where it is added to what is known later.
    #[inline(always)]
    #[allow(clippy::indexing_slicing)] // two bits
    pub(super) const fn put_data(&mut self, data: u64, size: u8) {
        self.data[(size & 3) as usize] = data;
    }

    /// The data that a field means; `None` without a base.
    #[inline]
    pub(super) fn data(&mut self, field: u64, size: u8, sent: Sent) -> Option<u64> {
        let refers = sent != Sent::Full;
        if !self.has(History::bases(size, false, refers)) {
            return None;
        }
        let before = if refers { self.last_data(size) } else { 0 };
        let data = match sent {
            Sent::Full | Sent::Xor => before ^ field,
            Sent::Difference => before.wrapping_add(field),
        };
        let data = data & value_mask(size);
        self.set_data(data, size);
        Some(data)
    }

    /// The number of a CSR as a field of a packet without data, and its `diff`.
    pub(super) fn csr_field(&mut self, csr: u16, config: &DataConfig) -> (u16, u8) {
        let before = self.csr.replace(csr);
        match before {
            Some(before) if config.csr_diff_width > 0 && !config.full_address => {
                (csr.wrapping_sub(before) & 0xfff, 1)
            }
            _ => (csr, 0),
        }
    }

    /// The CSR that such a field means.
    pub(super) fn csr(&mut self, field: u16, diff: u8) -> Option<u16> {
        let csr = match diff {
            0 => field,
            _ => self.csr?.wrapping_add(field) & 0xfff,
        };
        self.csr = Some(csr);
        Some(csr)
    }
}
