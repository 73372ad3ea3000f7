//! Programs of a few instructions, made on the spot.

use hartrace_testkit::asm;
pub(crate) use hartrace_testkit::asm::{ECALL, MRET, SPIN, WFI, addi, lui};
pub(crate) use hartrace_testkit::elf_at;

/// Where they are linked to.
pub(crate) const BASE: u64 = 0x8000_0000;

/// An ELF file of instructions.
pub(crate) fn elf(words: &[u32]) -> Vec<u8> {
    elf_at(BASE, &code(words))
}

/// The same with functions: the name of each, and its first instruction.
pub(crate) fn elf_with(words: &[u32], functions: &[(&str, usize)]) -> Vec<u8> {
    let mut bytes = elf(words);
    let (mut names, mut symbols) = (vec![0], vec![0; 24]);
    let ends = functions.iter().skip(1).map(|(_, first)| *first);
    for ((name, first), end) in functions.iter().zip(ends.chain([words.len()])) {
        symbols.extend((names.len() as u32).to_le_bytes());
        // A global function in the first section.
        symbols.extend([0x12, 0, 1, 0]);
        symbols.extend((BASE + 4 * *first as u64).to_le_bytes());
        symbols.extend((4 * (end - first) as u64).to_le_bytes());
        names.extend(name.bytes().chain([0]));
    }
    let text = (120u64, 4 * words.len() as u64);
    let table = (bytes.len() as u64, symbols.len() as u64);
    let strings = (table.0 + table.1, names.len() as u64);
    bytes.extend(symbols);
    bytes.extend(names);
    let headers = bytes.len() as u64;
    // Type, flags, address, place and size, link, info, size of an entry.
    let sections = [
        (0u32, 0u64, 0, (0, 0), 0u32, 0u32, 0u64),
        (1, 6, BASE, text, 0, 0, 0),
        (2, 0, 0, table, 3, 1, 24),
        (3, 0, 0, strings, 0, 0, 0),
    ];
    for (kind, flags, address, (at, size), link, info, entry) in sections {
        bytes.extend([0; 4]);
        bytes.extend(kind.to_le_bytes());
        for word in [flags, address, at, size] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(link.to_le_bytes());
        bytes.extend(info.to_le_bytes());
        bytes.extend(1u64.to_le_bytes());
        bytes.extend(entry.to_le_bytes());
    }
    bytes[40..48].copy_from_slice(&headers.to_le_bytes());
    // Four sections, and where their names are.
    bytes[60..64].copy_from_slice(&[4, 0, 3, 0]);
    bytes
}

pub(crate) fn code(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// `auipc rd, 0`.
pub(crate) fn auipc(rd: u32) -> u32 {
    asm::auipc(rd, 0)
}

/// `sw x0, 0(rs)`.
pub(crate) fn clear(rs: u32) -> u32 {
    asm::sw(0, 0, rs)
}

/// `jalr x0, 0(rs)`.
pub(crate) fn jump(rs: u32) -> u32 {
    asm::jalr(0, rs, 0)
}

/// `csrw mtvec, rs`.
pub(crate) fn set_handler(rs: u32) -> u32 {
    asm::csrw(0x305, rs)
}

/// `j .-4`
pub(crate) const BACK: u32 = asm::jal(0, -4);

/// A semihosting call with the parameter that a1 points to.
pub(crate) fn call(operation: i32) -> [u32; 4] {
    let host = [0x01f0_1013, 0x0010_0073, 0x4070_5013];
    [addi(10, 0, operation), host[0], host[1], host[2]]
}

/// Calls the host with `data` as the parameter, then does `rest`.
pub(crate) fn calling(operation: i32, data: &[u8], rest: &[u32]) -> Vec<u8> {
    let before = 2 + 4 + rest.len();
    let mut words = vec![auipc(11), addi(11, 11, 4 * before as i32)];
    words.extend(call(operation));
    words.extend(rest);
    let mut content = code(&words);
    content.extend(data);
    elf_at(BASE, &content)
}

/// Ends with this code.
pub(crate) fn ending(status: i64) -> Vec<u8> {
    let mut data = 0x20026u64.to_le_bytes().to_vec();
    data.extend(status.to_le_bytes());
    calling(0x18, &data, &[SPIN, SPIN])
}
