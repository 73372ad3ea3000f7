//! Random choices taken from bytes.

/// Reads choices from bytes; after the end everything is zero.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    /// From the first byte on.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Input<'a> {
        Input { rest: bytes }
    }

    /// Whether all bytes are used up.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// What is left.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.rest.split_first() else {
            return 0;
        };
        self.rest = rest;
        first
    }

    /// A number of this many bytes, at most eight.
    pub fn number(&mut self, bytes: u32) -> u64 {
        (0..bytes).fold(0, |n, i| n | u64::from(self.byte()) << (8 * i))
    }

    /// A number below `bound`, from one byte.
    pub fn below(&mut self, bound: u8) -> u8 {
        self.byte().checked_rem(bound).unwrap_or(0)
    }

    /// One bit of luck.
    pub fn flag(&mut self) -> bool {
        self.byte() & 1 != 0
    }

    /// At most so many bytes, as many as there are.
    pub fn slice(&mut self, len: usize) -> &'a [u8] {
        let (head, rest) = self.rest.split_at(len.min(self.rest.len()));
        self.rest = rest;
        head
    }

    /// One of the items.
    ///
    /// # Panics
    ///
    /// Never: without items there is `None`.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> Option<T> {
        let at = usize::from(self.byte()).checked_rem(items.len())?;
        items.get(at).copied()
    }
}
