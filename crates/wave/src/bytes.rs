//! Numbers and texts of binary formats.

/// Bytes that are read from their start. Every method gives `None` where too few are left,
/// or a number does not fit; then nothing can be said about where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'a> {
    rest: &'a [u8],
    length: usize,
}

impl<'a> Bytes<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Bytes<'a> {
        Bytes {
            rest: bytes,
            length: bytes.len(),
        }
    }

    /// Bytes read so far.
    pub(crate) fn position(&self) -> usize {
        self.length - self.rest.len()
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    /// A big-endian number.
    pub(crate) fn number(&mut self) -> Option<u64> {
        let bytes = self.take(8)?.try_into().ok()?;
        Some(u64::from_be_bytes(bytes))
    }

    /// A big-endian length or count.
    pub(crate) fn count(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    /// An unsigned number, seven bits in a byte, the lowest first.
    #[inline]
    pub(crate) fn varint(&mut self) -> Option<u64> {
        let first = self.byte()?;
        if first < 0x80 {
            return Some(first.into());
        }
        let mut number = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// The same as a length or count.
    pub(crate) fn small(&mut self) -> Option<usize> {
        usize::try_from(self.varint()?).ok()
    }

    /// A signed number, seven bits in a byte, the lowest first.
    pub(crate) fn signed(&mut self) -> Option<i64> {
        let mut number = 0i64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= i64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                let used = shift + 7;
                let extended = byte & 0x40 != 0 && used < 64;
                return Some(if extended {
                    number | -1 << used
                } else {
                    number
                });
            }
        }
        None
    }

    /// A text that ends with a zero.
    pub(crate) fn text(&mut self) -> Option<&'a [u8]> {
        let end = self.rest.iter().position(|byte| *byte == 0)?;
        let text = self.take(end)?;
        self.byte()?;
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leb128;

    #[test]
    fn numbers_of_any_length_are_read_as_written() {
        for value in [0, 1, 127, 128, 300, 1 << 32, u64::MAX] {
            let mut bytes = Vec::new();
            leb128::unsigned(&mut bytes, value);
            let mut read = Bytes::new(&bytes);
            assert_eq!(read.varint(), Some(value));
            assert!(read.is_empty());
            assert_eq!(Bytes::new(&bytes[..bytes.len() - 1]).varint(), None);
        }
        for value in [0, 63, 64, -64, -65, 1 << 40, i64::MIN, i64::MAX] {
            let mut bytes = Vec::new();
            leb128::signed(&mut bytes, value);
            assert_eq!(Bytes::new(&bytes).signed(), Some(value), "{value}");
        }
    }

    #[test]
    fn a_number_without_an_end_is_none() {
        assert_eq!(Bytes::new(&[0x80; 20]).varint(), None);
        assert_eq!(Bytes::new(&[0x80; 20]).signed(), None);
    }
}
