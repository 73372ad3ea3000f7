//! The `.riscv.attributes` section of an ELF file: which instruction set and
//! which privileged manual the tool chain had in mind.
//!
//! The section is a version byte `A` and vendor subsections; RISC-V uses the
//! vendor `riscv`, and in it the file-wide tag 1. An even tag has a ULEB128
//! value, an odd one a string (RISC-V psABI, "Attributes").

use crate::csr::Priv;

/// What the section says; what it does not say, or says in bytes that make no
/// sense, is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Attributes<'a> {
    /// Tag_RISCV_arch, an ISA string with versions.
    pub arch: Option<&'a str>,
    /// Tag_RISCV_priv_spec and its minor number.
    pub privileged: Option<Priv>,
}

/// The ISA string of the section.
///
/// ```
/// # use hartrace_isa::attributes;
/// let section = b"A\x16\0\0\0riscv\0\x01\x0c\0\0\0\x05rv32i\0";
/// assert_eq!(attributes::arch(section), Some("rv32i"));
/// assert_eq!(attributes::arch(b"A\xff\xff"), None);
/// ```
#[must_use]
pub fn arch(section: &[u8]) -> Option<&str> {
    Attributes::read(section).arch
}

const ARCH: u64 = 5;
const PRIV_MAJOR: u64 = 8;
const PRIV_MINOR: u64 = 10;

impl<'a> Attributes<'a> {
    /// Reads the bytes of the section. Hostile bytes end the reading where
    /// they stop making sense.
    #[must_use]
    pub fn read(section: &'a [u8]) -> Attributes<'a> {
        let mut found = Attributes::default();
        let Some((b'A', mut rest)) = section.split_first() else {
            return found;
        };
        while let Some((vendor, after)) = sized(rest, 0) {
            if let Some(mut body) = vendor.strip_prefix(b"riscv\0") {
                while let Some((&tag, tail)) = body.split_first() {
                    let Some((list, after)) = sized(tail, 1) else {
                        break;
                    };
                    if tag == 1 {
                        found.file(list);
                    }
                    body = after;
                }
            }
            rest = after;
        }
        found
    }

    fn file(&mut self, mut list: &'a [u8]) {
        let (mut major, mut minor) = (0, 0);
        while let Some((tag, rest)) = uleb(list) {
            if tag % 2 == 0 {
                let Some((value, rest)) = uleb(rest) else {
                    break;
                };
                match tag {
                    PRIV_MAJOR => major = value,
                    PRIV_MINOR => minor = value,
                    _ => {}
                }
                list = rest;
            } else {
                let Some(end) = rest.iter().position(|&b| b == 0) else {
                    break;
                };
                let (text, tail) = rest.split_at(end);
                if tag == ARCH {
                    self.arch = core::str::from_utf8(text).ok();
                }
                list = tail.get(1..).unwrap_or_default();
            }
        }
        if let (Ok(major), Ok(minor)) = (u32::try_from(major), u32::try_from(minor)) {
            self.privileged = Priv::from_numbers(major, minor).or(self.privileged);
        }
    }
}

/// A block that starts with its length in four bytes; `before` bytes in front
/// of the length count too. Gives the block's contents and what follows it.
fn sized(bytes: &[u8], before: usize) -> Option<(&[u8], &[u8])> {
    let (size, _) = bytes.split_first_chunk::<4>()?;
    let size = usize::try_from(u32::from_le_bytes(*size)).ok()?;
    let size = size.checked_sub(before)?;
    let (block, after) = bytes.split_at_checked(size)?;
    Some((block.get(4..)?, after))
}

/// One ULEB128 number of at most 64 bits.
fn uleb(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    for (i, &byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f).checked_shl(7 * i as u32)?;
        if byte & 0x80 == 0 {
            return Some((value, bytes.get(i + 1..)?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the assembler writes it: stack alignment, arch, privileged 1.11.
    const SECTION: &[u8] =
        b"A\x1f\0\0\0riscv\0\x01\x15\0\0\0\x04\x10\x05rv64i2p1\0\x08\x01\x0a\x0b";

    #[test]
    fn arch_and_privileged_version() {
        let found = Attributes::read(SECTION);
        assert_eq!(found.arch, Some("rv64i2p1"));
        assert_eq!(found.privileged, Some(Priv::V1_11));
    }

    #[test]
    fn every_truncation_and_every_changed_byte_is_survived() {
        for n in 0..SECTION.len() {
            let _ = Attributes::read(&SECTION[..n]);
            for value in 0..=255 {
                let mut bytes = [0; 64];
                bytes[..SECTION.len()].copy_from_slice(SECTION);
                bytes[n] = value;
                let _ = Attributes::read(&bytes);
                let _ = Attributes::read(&bytes[..SECTION.len()]);
            }
        }
        // A block of length zero must not be read again and again.
        assert_eq!(arch(b"A\0\0\0\0\0\0\0\0"), None);
    }
}
