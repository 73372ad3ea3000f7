//! Numbers as bytes, seven bits in each: for files of our own.

use alloc::vec::Vec;

/// Writes numbers.
#[derive(Clone, Debug, Default)]
pub struct Packer(Vec<u8>);

impl Packer {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Packer {
        Packer::default()
    }

    /// A number.
    pub fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// A number that may be negative.
    pub fn signed(&mut self, number: i64) {
        self.number((number << 1 ^ number >> 63) as u64);
    }

    /// A number that may be missing.
    pub fn option(&mut self, number: Option<u64>) {
        self.number(u64::from(number.is_some()));
        if let Some(number) = number {
            self.number(number);
        }
    }

    /// Bytes, with their number.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Everything that was written.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Reads what a [`Packer`] wrote; `None` where there is nothing more, or nonsense.
#[derive(Clone, Copy, Debug)]
pub struct Unpacker<'a>(&'a [u8]);

impl<'a> Unpacker<'a> {
    /// Reads these bytes.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Unpacker<'a> {
        Unpacker(bytes)
    }

    /// A number.
    pub fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// A number that may be negative.
    pub fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// A number that may be missing.
    pub fn option(&mut self) -> Option<Option<u64>> {
        match self.number()? {
            0 => Some(None),
            1 => self.number().map(Some),
            _ => None,
        }
    }

    /// Bytes.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    /// A number of things that follow, each of which has a byte at least.
    pub fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= self.0.len()).then_some(count)
    }

    /// Whether there is nothing more.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut packer = Packer::new();
        let numbers = [0, 1, 127, 128, 300, 1 << 35, u64::MAX];
        numbers.iter().for_each(|n| packer.number(*n));
        let signed = [0, -1, 1, i64::MIN, i64::MAX];
        signed.iter().for_each(|n| packer.signed(*n));
        packer.option(None);
        packer.option(Some(9));
        packer.bytes(b"abc");
        let bytes = packer.finish();
        let mut reader = Unpacker::new(&bytes);
        assert!(numbers.iter().all(|n| reader.number() == Some(*n)));
        assert!(signed.iter().all(|n| reader.signed() == Some(*n)));
        assert_eq!(reader.option(), Some(None));
        assert_eq!(reader.option(), Some(Some(9)));
        assert_eq!(reader.bytes(), Some(&b"abc"[..]));
        assert!(reader.is_empty() && reader.number().is_none());
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(Unpacker::new(&[0xff; 11]).number(), None);
        assert_eq!(Unpacker::new(&[5, 1]).bytes(), None);
        assert_eq!(Unpacker::new(&[5, 1]).count(), None);
        assert_eq!(Unpacker::new(&[2]).option(), None);
    }
}
