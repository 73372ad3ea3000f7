//! Pins of a port.

use super::Order;

/// Data pins of a parallel port (trPibMode 8 to 12).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PibWidth {
    /// One pin.
    One,
    /// Two.
    Two,
    /// Four.
    Four,
    /// Eight: each sample is a byte.
    Eight,
    /// Sixteen: each sample is two bytes, the low half first.
    Sixteen,
}

impl PibWidth {
    /// Of a port with so many data pins.
    #[must_use]
    pub const fn from_pins(pins: u32) -> Option<PibWidth> {
        Some(match pins {
            1 => PibWidth::One,
            2 => PibWidth::Two,
            4 => PibWidth::Four,
            8 => PibWidth::Eight,
            16 => PibWidth::Sixteen,
            _ => return None,
        })
    }

    /// Bits of a sample.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            PibWidth::One => 1,
            PibWidth::Two => 2,
            PibWidth::Four => 4,
            PibWidth::Eight => 8,
            PibWidth::Sixteen => 16,
        }
    }
}

/// How the samples of a port lie in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pib {
    /// Data pins.
    pub width: PibWidth,
    /// Of samples of less than a byte the first is in the high bits; otherwise
    /// in the low ones. Inside a sample pin 0 is always the lowest bit.
    pub high_first: bool,
    /// Order of the bytes.
    pub order: Order,
}

impl Pib {
    /// The first sample in the low bits, the first byte first.
    #[must_use]
    pub const fn new(width: PibWidth) -> Pib {
        Pib {
            width,
            high_first: false,
            order: Order::Plain,
        }
    }

    /// A byte of samples of less than a byte with the first sample in the low bits, and
    /// back again.
    #[inline]
    #[must_use]
    pub const fn turn(self, byte: u8) -> u8 {
        match self.width {
            _ if !self.high_first => byte,
            PibWidth::One => byte.reverse_bits(),
            PibWidth::Two => byte >> 6 | byte >> 2 & 0xc | (byte & 0xc) << 2 | byte << 6,
            PibWidth::Four => byte.rotate_left(4),
            PibWidth::Eight | PibWidth::Sixteen => byte,
        }
    }
}
