//! Whether two files are the same program.

use crate::digest::{Digest, Hasher};
use hartrace_flow::elf::{self, Segment, SegmentKind};
use std::borrow::Cow;
use std::fmt;

/// What the content of a program must hash to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The file as it is: `sha256`.
    File(Digest),
    /// What is loaded from it: `code_sha256`. Symbols and debug information do
    /// not count.
    Code(Digest),
}

impl Identity {
    /// The identity of the code in an ELF file; of the file if nothing is loaded
    /// from it.
    #[must_use]
    pub fn of_code(file: &[u8]) -> Identity {
        code_digest(file).map_or_else(|| Identity::File(Digest::of(file)), Identity::Code)
    }

    /// The same of another file.
    #[must_use]
    pub fn like(&self, file: &[u8]) -> Identity {
        match self {
            Identity::File(_) => Identity::File(Digest::of(file)),
            Identity::Code(_) => Identity::of_code(file),
        }
    }

    /// Whether a file has it.
    #[must_use]
    pub(crate) fn is_of(&self, file: &[u8]) -> bool {
        self.like(file) == *self
    }

    /// The key in a configuration.
    #[must_use]
    pub const fn key(&self) -> &'static str {
        match self {
            Identity::File(_) => "sha256",
            Identity::Code(_) => "code_sha256",
        }
    }

    /// The hash.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        match self {
            Identity::File(digest) | Identity::Code(digest) => *digest,
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = match self {
            Identity::File(_) => "the file",
            Identity::Code(_) => "the code",
        };
        write!(f, "{} (SHA-256 of {of})", self.digest())
    }
}

/// The SHA-256 of what is loaded: the address, the sizes and the bytes of each
/// segment.
fn code_digest(file: &[u8]) -> Option<Digest> {
    let loaded = loaded(file)?;
    let mut hasher = Hasher::new();
    for (segment, data) in &loaded {
        for number in [segment.address, segment.memory_size, data.len() as u64] {
            hasher.update(&number.to_le_bytes());
        }
        hasher.update(data);
    }
    (!loaded.is_empty()).then(|| hasher.finish())
}

/// The segments that are loaded. Where the header of the file is in one, what it
/// says about sections is left out: it is not part of the program.
fn loaded(file: &[u8]) -> Option<Vec<(Segment<'_>, Cow<'_, [u8]>)>> {
    let segments = elf::Elf::parse(file).ok()?.segments().ok()?;
    let is_64 = file.get(4) == Some(&2);
    // e_shoff, and e_shentsize, e_shnum and e_shstrndx.
    let sections = match is_64 {
        true => [0x28..0x30, 0x3a..0x40],
        false => [0x20..0x24, 0x2e..0x34],
    };
    let all = segments.into_iter().filter(|s| s.kind == SegmentKind::Load);
    let all = all.map(|segment| {
        let mut data = Cow::Borrowed(segment.data.unwrap_or_default());
        if segment.offset == 0 {
            for range in &sections {
                if let Some(bytes) = data.to_mut().get_mut(range.clone()) {
                    bytes.fill(0);
                }
            }
        }
        (segment, data)
    });
    Some(all.collect())
}

/// The first address at which other bytes are loaded from two files, segment by
/// segment.
#[must_use]
pub(crate) fn first_difference(one: &[u8], other: &[u8]) -> Option<u64> {
    let (one, other) = (loaded(one)?, loaded(other)?);
    for ((a, left), (b, right)) in one.iter().zip(&other) {
        if a.address != b.address {
            return Some(a.address.min(b.address));
        }
        let differs = left.iter().zip(right.iter()).position(|(a, b)| a != b);
        let shorter = (left.len() != right.len()).then(|| left.len().min(right.len()));
        if let Some(offset) = differs.or(shorter) {
            return Some(a.address.wrapping_add(offset as u64));
        }
    }
    let common = one.len().min(other.len());
    let rest = one.get(common).or(other.get(common));
    rest.map(|(segment, _)| segment.address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sieve() -> Vec<u8> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs/sieve/");
        std::fs::read([folder, "sieve-rv64gc.elf"].concat()).unwrap()
    }

    /// What strip leaves: no sections.
    fn stripped(file: &[u8]) -> Vec<u8> {
        let segments = elf::Elf::parse(file).unwrap().segments().unwrap();
        let end = segments.iter().map(|s| s.offset + s.file_size).max();
        let mut bytes = file[..end.unwrap() as usize].to_vec();
        bytes[0x28..0x30].fill(0);
        bytes[0x3a..0x40].fill(0);
        bytes
    }

    #[test]
    fn a_stripped_program_is_the_same() {
        let whole = sieve();
        let bare = stripped(&whole);
        assert!(bare.len() < whole.len());
        let code = Identity::of_code(&whole);
        assert!(code.is_of(&bare) && code.key() == "code_sha256");
        let file = Identity::File(Digest::of(&whole));
        assert!(file.is_of(&whole) && !file.is_of(&bare));
        assert_eq!(first_difference(&whole, &bare), None);
    }

    #[test]
    fn other_code_is_another_program() {
        let whole = sieve();
        let segments = elf::Elf::parse(&whole).unwrap().segments().unwrap();
        let mut segments = segments.iter();
        let segment = segments.find(|s| s.kind == SegmentKind::Load).unwrap();
        let mut other = whole.clone();
        other[segment.offset as usize + 0x10] ^= 1;
        assert!(!Identity::of_code(&whole).is_of(&other));
        let at = segment.address + 0x10;
        assert_eq!(first_difference(&whole, &other), Some(at));
        // What is no ELF file has no code.
        assert_eq!(Identity::of_code(b"x"), Identity::File(Digest::of(b"x")));
    }
}
