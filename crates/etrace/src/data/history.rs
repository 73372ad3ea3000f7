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
    addresses: [Option<u64>; 4],
    data: [Option<u64>; 4],
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
const fn extend(value: u64, width: u8) -> i64 {
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

    /// An address in full.
    #[inline]
    pub(super) fn full(addr: u64, size: u8, config: &DataConfig) -> Place {
        Place::new(addr, size, config)
    }

    /// The same as a difference from the last of this size, if there is one.
    #[inline]
    pub(super) fn difference(&self, addr: u64, size: u8, config: &DataConfig) -> Option<Place> {
        let before = (*self.addresses.get(usize::from(size))?)?;
        let value = match config.xor_addresses {
            true => addr ^ before,
            false => addr.wrapping_sub(before),
        };
        Some(Place::new(value, size, config))
    }

    /// The address of the next access of this size.
    #[inline]
    pub(super) fn set_address(&mut self, addr: u64, size: u8) {
        if let Some(last) = self.addresses.get_mut(usize::from(size)) {
            *last = Some(addr);
        }
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
        let value = match full {
            true => field,
            false => {
                let before = (*self.addresses.get(usize::from(size))?)?;
                match config.xor_addresses {
                    true => before ^ field,
                    false => before.wrapping_add(field),
                }
            }
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
        let before = (*self.data.get(usize::from(size))?)?;
        let field = match sent {
            Sent::Difference => data.wrapping_sub(before),
            Sent::Xor | Sent::Full => data ^ before,
        };
        Some(field & value_mask(size))
    }

    /// The data of the next access of this size.
    #[inline]
    pub(super) fn set_data(&mut self, data: u64, size: u8) {
        if let Some(last) = self.data.get_mut(usize::from(size)) {
            *last = Some(data);
        }
    }

    /// The data that a field means; `None` without a base.
    #[inline]
    pub(super) fn data(&mut self, field: u64, size: u8, sent: Sent) -> Option<u64> {
        let last = self.data.get_mut(usize::from(size))?;
        let data = match sent {
            Sent::Full => field,
            Sent::Xor => (*last)? ^ field,
            Sent::Difference => (*last)?.wrapping_add(field),
        };
        let data = data & value_mask(size);
        *last = Some(data);
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
