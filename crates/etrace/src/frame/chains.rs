//! Finds packet boundaries in bytes from the middle of a stream.

use super::header;
use crate::MAX_PAYLOAD;

/// Bytes of the longest packet, header included. Of so many bytes in a row at
/// least one is a header or padding.
const LONGEST: u8 = MAX_PAYLOAD as u8 + 1;

/// How many headers a chain that is left alone must meet before damaged bytes
/// are trusted again. A byte of no meaning looks like a header in 62 cases of
/// 256, so a wrong chain gets this far in less than 1 of 250.
const CONFIRM: u8 = 4;

/// All that may be packets: each byte of a window may be the first header, and
/// says where the next one is. A chain of packets that comes to a byte that is
/// no header is none; chains that come to the same byte are one. Only the
/// places where a header is expected need to be known, and those lie within the
/// length of a packet.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Chains {
    /// Bit n: a chain expects a header n bytes after the next one.
    expected: u32,
    /// Bytes to come that may start a chain.
    window: u8,
    /// Headers met since there is one chain.
    alone: u8,
    /// Zero bytes in a row. As many as a packet is long cannot all be in one
    /// (chapter 6).
    zeros: u8,
}

impl Chains {
    pub(super) const fn new() -> Chains {
        Chains {
            expected: 0,
            window: LONGEST,
            alone: 0,
            zeros: 0,
        }
    }

    /// The next byte.
    #[inline]
    pub(super) fn byte(&mut self, byte: u8) {
        if self.window > 0 {
            self.window -= 1;
            self.expected |= 1;
        } else if self.expected != 1 {
            // Several chains, or one that is inside a packet.
            self.alone *= u8::from(self.expected.is_power_of_two());
        } else if byte != 0 {
            self.alone = self.alone.saturating_add(1);
        }
        let is_expected = self.expected & 1 != 0;
        self.expected >>= 1;
        if is_expected && byte == 0 {
            self.expected |= 1;
        } else if let (true, Some((_, len))) = (is_expected, header(byte)) {
            self.expected |= 1 << len;
        }
        self.zeros = match byte {
            0 => self.zeros.saturating_add(1),
            _ => 0,
        };
        if self.expected == 0 && self.window == 0 {
            self.window = LONGEST;
            self.alone = 0;
        }
    }

    /// Whether the next byte is the only one that can be a header: if nothing
    /// is damaged, it is one.
    #[inline]
    pub(super) const fn is_sole(&self) -> bool {
        self.zeros >= LONGEST || (self.window == 0 && self.expected == 1)
    }

    /// Whether the next byte is a header for all that can be known of bytes
    /// some of which were damaged.
    #[inline]
    pub(super) const fn is_sure(&self) -> bool {
        self.zeros >= LONGEST || (self.is_sole() && self.alone >= CONFIRM)
    }
}
