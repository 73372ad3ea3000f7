//! ELF files, made on the spot.

/// An ELF file for RV64 with this content at `base`, where it starts.
#[must_use]
pub fn elf_at(base: u64, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    // Type executable, machine RISC-V, version.
    bytes.extend([2, 0, 243, 0, 1, 0, 0, 0]);
    // Entry, program headers, no sections.
    for word in [base, 64, 0] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend([0; 4]);
    for half in [64u16, 56, 1, 64, 0, 0] {
        bytes.extend(half.to_le_bytes());
    }
    // Load, all rights.
    bytes.extend([1, 0, 0, 0, 7, 0, 0, 0]);
    let size = content.len() as u64;
    for word in [120, base, base, size, size, 4096] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(content);
    bytes
}

/// The same for RV32.
#[must_use]
pub fn elf32_at(base: u32, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0");
    bytes.extend([2, 0, 243, 0, 1, 0, 0, 0]);
    for word in [base, 52, 0, 0] {
        bytes.extend(word.to_le_bytes());
    }
    for half in [52u16, 32, 1, 40, 0, 0] {
        bytes.extend(half.to_le_bytes());
    }
    // Load, all rights.
    let size = content.len() as u32;
    for word in [1, 84, base, base, size, size, 7, 4] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(content);
    bytes
}
