//! SHA-256, to distinguish builds of a program.

use sha2::{Digest as _, Sha256};
use std::fmt;
use std::str::FromStr;

/// Samples of the bytes of a large file, and the bytes of each.
const SAMPLES: usize = 256;
const SAMPLE: usize = 1 << 12;

/// The SHA-256 of a file's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }

    /// Of their number and of samples of them: enough to notice that a file is another one, and
    /// fast for large files.
    #[must_use]
    pub fn of_samples(bytes: &[u8]) -> Digest {
        let mut hasher = Hasher::new();
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        let every = (bytes.len() / SAMPLES).max(SAMPLE);
        for sample in bytes.chunks(every) {
            hasher.update(sample.get(..SAMPLE).unwrap_or(sample));
        }
        let end = bytes.len().saturating_sub(SAMPLE);
        hasher.update(bytes.get(end..).unwrap_or_default());
        hasher.finish()
    }
}

/// Computes a [`Digest`] piece by piece.
#[derive(Clone, Default)]
pub(crate) struct Hasher(Sha256);

impl Hasher {
    /// Of nothing yet.
    #[must_use]
    pub(crate) fn new() -> Hasher {
        Hasher::default()
    }

    /// Takes the next bytes in.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all bytes taken in.
    #[must_use]
    pub(crate) fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

/// 64 lower-case hexadecimal digits.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text was not 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DigestError;

impl fmt::Display for DigestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a SHA-256 has 64 hexadecimal digits")
    }
}

impl std::error::Error for DigestError {}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Digest, DigestError> {
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        let mut bytes = [0; 32];
        if pairs.len() != bytes.len() || !rest.is_empty() {
            return Err(DigestError);
        }
        for (byte, &[high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = digit(high)? << 4 | digit(low)?;
        }
        Ok(Digest(bytes))
    }
}

fn digit(c: u8) -> Result<u8, DigestError> {
    let value = char::from(c).to_digit(16).ok_or(DigestError)?;
    u8::try_from(value).map_err(|_| DigestError)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answer_and_back() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Digest::of(b"abc").to_string(), abc);
        assert_eq!(abc.parse(), Ok(Digest::of(b"abc")));
        assert_eq!(abc.to_uppercase().parse(), Ok(Digest::of(b"abc")));
        let mut hasher = Hasher::new();
        hasher.update(b"a");
        hasher.update(b"bc");
        assert_eq!(hasher.finish(), Digest::of(b"abc"));
    }

    #[test]
    fn what_is_not_a_digest() {
        for text in [
            "",
            "abc",
            &"0".repeat(63),
            &"0".repeat(65),
            &"g".repeat(64),
            &"é".repeat(32),
        ] {
            assert_eq!(text.parse::<Digest>(), Err(DigestError), "{text}");
        }
    }
}
