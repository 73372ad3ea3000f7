//! Words whose bytes were turned round.

/// Order of the bytes in a dump. A stream has its first byte first; tools that
/// print or store words may have turned them round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// First byte first: on a 16-bit port that of the low half (3.3).
    #[default]
    Plain,
    /// 16-bit words, each with its bytes swapped.
    Swapped16,
    /// 32-bit words, each with its bytes reversed.
    Swapped32,
}

impl Order {
    /// Bytes of a word.
    #[must_use]
    pub const fn word(self) -> usize {
        match self {
            Order::Plain => 1,
            Order::Swapped16 => 2,
            Order::Swapped32 => 4,
        }
    }

    /// Puts the bytes of a dump in order, or back; they start at a word. A word
    /// that is cut at the end stays as it is.
    ///
    /// ```
    /// use hartrace_files::transport::Order;
    ///
    /// let mut dump = [0x1d, 0xd0, 0x70, 0xff, 0xff];
    /// Order::Swapped32.turn(&mut dump);
    /// assert_eq!(dump, [0xff, 0x70, 0xd0, 0x1d, 0xff]);
    /// ```
    #[inline]
    pub fn turn(self, bytes: &mut [u8]) {
        for word in bytes.chunks_exact_mut(self.word()) {
            word.reverse();
        }
    }
}
