//! Programs that are none, or not ours.

use crate::{Folder, RV32, RV64, fails, run, succeeds, text};
use std::fs;

fn rv64() -> Vec<u8> {
    fs::read(RV64).unwrap()
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

fn u64_at(bytes: &[u8], at: usize) -> usize {
    usize::try_from(u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())).unwrap()
}

/// `disasm` with this file and an output file: told, and nothing is written.
#[track_caller]
fn refused(bytes: &[u8], code: &str) -> String {
    let folder = Folder::new();
    let file = folder.file("in.elf", bytes);
    let out = folder.name("out.txt");
    // Damage is one thing, another kind of file another.
    let exit = if code == "HT0104" { 1 } else { 5 };
    let message = fails(&["disasm", &file, "-o", &out], exit, code);
    assert_eq!(folder.entries(), ["in.elf"]);
    assert_eq!(message, fails(&["disasm", &file], exit, code));
    message
}

#[test]
fn not_an_elf_file() {
    assert!(refused(b"hello", "HT0101").contains("is not an ELF file"));
    assert!(refused(&[0; 100_000], "HT0101").contains("--raw"));
    assert!(refused(b"\x7fELV", "HT0101").contains("is not an ELF file"));
    let log = b"core   0: 0x0000000000001000 (0x00000297) auipc   t0, 0x0\n";
    assert!(refused(log, "HT0101").contains("Spike log"));
}

#[test]
fn an_empty_file() {
    assert!(refused(b"", "HT0101").contains("is empty"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_without_end() {
    fails(&["disasm", "/dev/zero"], 5, "HT0101");
    fails(&["info", "/dev/zero"], 5, "HT0105");
}

#[test]
fn another_machine() {
    let mut bytes = rv64();
    put(&mut bytes, 18, &62u16.to_le_bytes());
    assert!(refused(&bytes, "HT0102").contains("x86-64"));
}

#[test]
fn big_endian() {
    let mut bytes = rv64();
    bytes[5] = 2;
    refused(&bytes, "HT0103");
}

#[test]
fn neither_32_nor_64_bits() {
    let mut bytes = rv64();
    bytes[4] = 3;
    refused(&bytes, "HT0104");
}

#[test]
fn truncated_at_many_lengths() {
    for file in [RV64, RV32] {
        let whole = fs::read(file).unwrap();
        for length in [
            4,
            5,
            6,
            16,
            51,
            52,
            63,
            64,
            100,
            1000,
            5000,
            whole.len() - 1,
        ] {
            refused(&whole[..length], "HT0104");
        }
        for length in 1..4 {
            refused(&whole[..length], "HT0101");
        }
    }
}

#[test]
fn tables_outside_the_file() {
    // e_phoff, e_shoff.
    for at in [32, 40] {
        for value in [u64::MAX, u64::MAX - 63, 1 << 40, 13_560] {
            let mut bytes = rv64();
            put(&mut bytes, at, &value.to_le_bytes());
            refused(&bytes, "HT0104");
        }
    }
    // e_phentsize, e_phnum, e_shentsize, e_shnum, e_shstrndx.
    for at in [54, 56, 58, 60, 62] {
        let mut bytes = rv64();
        put(&mut bytes, at, &0xfff0u16.to_le_bytes());
        refused(&bytes, "HT0104");
    }
}

#[test]
fn sections_with_huge_offsets_and_sizes() {
    let whole = rv64();
    let table = u64_at(&whole, 40);
    // sh_offset and sh_size of .text, the first section after the empty one.
    for at in [24, 32] {
        for value in [u64::MAX, 1 << 63, 1 << 32, 1 << 20] {
            let mut bytes = whole.clone();
            put(&mut bytes, table + 64 + at, &value.to_le_bytes());
            assert!(refused(&bytes, "HT0104").contains("`.text`"));
        }
    }
    // sh_name.
    let mut bytes = whole.clone();
    put(&mut bytes, table + 64, &u32::MAX.to_le_bytes());
    refused(&bytes, "HT0104");
}

#[test]
fn segments_with_huge_offsets_and_sizes() {
    let whole = rv64();
    let table = u64_at(&whole, 32);
    let load = (0..)
        .map(|i| table + 56 * i)
        .find(|at| whole[*at] == 1)
        .unwrap();
    // p_offset, p_filesz.
    for at in [8, 32] {
        let mut bytes = whole.clone();
        put(&mut bytes, load + at, &u64::MAX.to_le_bytes());
        refused(&bytes, "HT0104");
    }
    // p_memsz: beyond the address space, and smaller than in the file.
    for value in [u64::MAX, 0] {
        let mut bytes = whole.clone();
        put(&mut bytes, load + 40, &value.to_le_bytes());
        refused(&bytes, "HT0104");
    }
}

#[test]
fn the_sound_ones_are_taken() {
    let folder = Folder::new();
    for file in [RV64, RV32] {
        let listing = succeeds(&["disasm", file]);
        assert!(!listing.is_empty());
        let out = folder.name("out.txt");
        assert_eq!(succeeds(&["disasm", "-e", file, "-o", &out]), "");
        assert_eq!(fs::read_to_string(&out).unwrap(), listing);
    }
    assert_eq!(folder.entries(), ["out.txt"]);
}

#[test]
fn two_widths_at_once() {
    let message = fails(&["disasm", RV64, RV32], 2, "HT0303");
    assert!(message.contains("32-bit"), "{message}");
    fails(&["disasm", RV64, "--isa", "rv32gc"], 2, "HT0303");
}

#[test]
fn a_guess_is_told_unless_quiet() {
    let folder = Folder::new();
    let raw = folder.file("code.bin", [0x13, 0, 0, 0]) + "@0x1000";
    let output = run(&["disasm", "--raw", &raw]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stderr).starts_with("warning[HT0401]: "));
    succeeds(&["disasm", "--raw", &raw, "-q"]);
    succeeds(&["disasm", "--raw", &raw, "--isa", "rv32i"]);
}
