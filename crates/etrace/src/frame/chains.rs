//! Finds packet boundaries in bytes from the middle of a stream.

use crate::Encapsulation;

/// How many headers a chain that is left alone must meet before damaged bytes
/// are trusted again. In the form of the reference models, a byte of no meaning
/// looks like a header in 62 cases of 256, so a wrong chain gets this far in less
/// than 1 of 250.
const CONFIRM: u8 = 4;

/// All that may be packets: each byte of a window may be the first header, and
/// says where the next one is. A chain of packets that comes to a byte that is
/// no header is none; chains that come to the same byte are one. Only the
/// places where a header is expected need to be known, and those lie within the
/// length of a packet. Of so many bytes in a row at least one is a header or padding.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Chains {
    /// Bit n: a chain expects a header n bytes after the next one.
    expected: u64,
    /// Bytes to come that may start a chain.
    window: u8,
    /// Bytes of the longest packet.
    longest: u8,
    /// Headers met since there is one chain.
    alone: u8,
    /// Null bytes in a row. As many as a synchronisation sequence has cannot all be
    /// in one packet.
    nulls: u8,
    /// Of so many the last must be a null packet.
    run: u8,
}

impl Chains {
    pub(super) const fn new(form: &Encapsulation) -> Chains {
        let longest = form.longest() as u8;
        Chains {
            expected: 0,
            window: longest,
            longest,
            alone: 0,
            nulls: 0,
            run: form.sync_run() as u8,
        }
    }

    /// The next byte.
    #[inline]
    pub(super) fn byte(&mut self, byte: u8, form: &Encapsulation) {
        let is_null = form.is_null(byte);
        if self.window > 0 {
            self.window -= 1;
            self.expected |= 1;
        } else if self.expected != 1 {
            // Several chains, or one that is inside a packet.
            self.alone *= u8::from(self.expected.is_power_of_two());
        } else if !is_null {
            self.alone = self.alone.saturating_add(1);
        }
        let is_expected = self.expected & 1 != 0;
        self.expected >>= 1;
        if let (true, Some(len)) = (is_expected, form.length(byte)) {
            self.expected |= 1 << (len - 1);
        }
        self.nulls = match is_null {
            true => self.nulls.saturating_add(1),
            false => 0,
        };
        if self.expected == 0 && self.window == 0 {
            self.window = self.longest;
            self.alone = 0;
        }
    }

    /// Whether the next byte is the only one that can be a header: if nothing
    /// is damaged, it is one.
    #[inline]
    pub(super) const fn is_sole(&self) -> bool {
        self.nulls >= self.run || (self.window == 0 && self.expected == 1)
    }

    /// Whether the next byte is a header for all that can be known of bytes
    /// some of which were damaged.
    #[inline]
    pub(super) const fn is_sure(&self) -> bool {
        self.nulls >= self.run || (self.is_sole() && self.alone >= CONFIRM)
    }
}
