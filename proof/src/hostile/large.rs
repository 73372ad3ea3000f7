//! Large cases that mutation does not find: files that claim much with few
//! bytes, and long repetitions.

use std::io;

use hartrace_analyze::{Listing, Symbols, listing};
use hartrace_flow::{Effects, HartId, Image, Observer, SpaceId, Step, Wants};
use hartrace_hart::Program;
use hartrace_logs::{IngressReader, Iretire, SpikeOptions, SpikeReader};

use super::ensure;

/// A case: its name and what it does.
pub(super) type Case = (&'static str, fn() -> Result<(), String>);

pub(super) const CASES: &[Case] = &[
    ("segments that all claim the whole file", many_segments),
    ("segments from the top down", descending_segments),
    ("a million symbols at one address", many_symbols),
    ("names without an end", endless_names),
    ("sections that all claim the same relocations", relocations),
    ("a log of a thousand harts and bad lines", many_harts),
    ("a table of thousands of columns", many_columns),
];

/// A 64-bit file of program headers, section headers and bytes after them.
/// Offsets in the headers count from the start of the bytes.
fn elf(segments: &[[u64; 3]], sections: &[[u64; 6]], bytes: &[u8]) -> Vec<u8> {
    let behind = 64 + 56 * segments.len() as u64 + 64 * sections.len() as u64;
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\xf3\0\x01\0\0\0".to_vec();
    let mut put = |bytes: &[u8]| file.extend_from_slice(bytes);
    put(&0u64.to_le_bytes());
    put(&64u64.to_le_bytes());
    let table = 64 + 56 * segments.len() as u64;
    put(&(table * u64::from(!sections.is_empty())).to_le_bytes());
    put(&[1, 0, 0, 0, 64, 0, 56, 0]);
    put(&(segments.len() as u16).to_le_bytes());
    put(&[64, 0]);
    put(&(sections.len() as u16).to_le_bytes());
    let names = sections.iter().position(|s| s.first() == Some(&3));
    put(&(names.unwrap_or_default() as u16).to_le_bytes());
    for &[offset, address, size] in segments {
        put(&[1, 0, 0, 0, 5, 0, 0, 0]);
        for field in [behind + offset, address, address, size, size, 1] {
            put(&field.to_le_bytes());
        }
    }
    // Type and flags, address, offset, size, link, entry size.
    for &[kind, address, offset, size, link, entry] in sections {
        put(&0u32.to_le_bytes());
        put(&(kind as u32).to_le_bytes());
        for field in [kind >> 32, address, behind + offset, size, link, 1, entry] {
            put(&field.to_le_bytes());
        }
    }
    put(bytes);
    file
}

const COUNT: u64 = 0xfff0;

fn many_segments() -> Result<(), String> {
    let bytes = vec![1u8; 1 << 20];
    let segment = |i: u64| [0, i << 21, bytes.len() as u64];
    let segments: Vec<_> = (0..COUNT).map(segment).collect();
    let image = Image::from_elf(&elf(&segments, &[], &bytes)).map_err(|e| e.to_string())?;
    let found = image.segments(SpaceId::FIRST).count() as u64;
    ensure(found == COUNT, || format!("{found} segments"))
}

/// Each covers the first half of the one before.
fn descending_segments() -> Result<(), String> {
    let segment = |i: u64| [0, (COUNT - i) * 8, 16];
    let segments: Vec<_> = (0..COUNT).map(segment).collect();
    let image = Image::from_elf(&elf(&segments, &[], &[1; 16])).map_err(|e| e.to_string())?;
    let found = image.segments(SpaceId::FIRST).count() as u64;
    ensure(found == COUNT, || format!("{found} segments"))
}

fn many_symbols() -> Result<(), String> {
    const SYMBOLS: usize = if cfg!(debug_assertions) {
        50_000
    } else {
        1_000_000
    };
    let mut bytes = vec![1u8; 64];
    let mut names = vec![0u8];
    let mut table = vec![0u8; 24];
    for i in 0..SYMBOLS {
        table.extend_from_slice(&(names.len() as u32).to_le_bytes());
        table.extend_from_slice(&[0x12, 0, 1, 0]);
        table.extend_from_slice(&[0; 16]);
        names.extend_from_slice(format!("a_name_as_long_as_names_are_{i}\0").as_bytes());
    }
    let (code, at_table, at_names) = (64, 64, 64 + table.len() as u64);
    bytes.extend_from_slice(&table);
    bytes.extend_from_slice(&names);
    let sections = [
        [0; 6],
        [6 << 32 | 1, 0, 0, code, 0, 0],
        [2, 0, at_table, table.len() as u64, 3, 24],
        [3, 0, at_names, names.len() as u64, 0, 0],
    ];
    let file = elf(&[], &sections, &bytes);
    let symbols = Symbols::from_elf(&file).map_err(|e| e.to_string())?;
    ensure(symbols.iter().count() == SYMBOLS, || "symbols".into())?;
    listing(&file, "a.out", &Listing::default(), &mut io::sink()).map_err(|e| e.to_string())
}

/// Every symbol has the rest of a string table that never ends for a name.
fn endless_names() -> Result<(), String> {
    let (count, strings) = (100_000u64, 4 << 20);
    let mut bytes: Vec<u8> = Vec::new();
    for i in 0..count {
        // Name, no type, a section, an address.
        bytes.extend_from_slice(&(i as u32).to_le_bytes());
        bytes.extend_from_slice(&[0, 0, 1, 0]);
        bytes.extend_from_slice(&[0; 16]);
    }
    let start = bytes.len() as u64;
    bytes.resize(bytes.len() + strings, b'x');
    let sections = [
        [0; 6],
        [2, 0, 0, start, 2, 24],
        [3, 0, start, strings as u64, 0, 0],
    ];
    let file = elf(&[[0, 0x8000_0000, 64]], &sections, &bytes);
    let program = Program::from_elf(&file).map_err(|e| e.to_string())?;
    ensure(program.tohost.is_none(), || "a name out of nowhere".into())
}

fn relocations() -> Result<(), String> {
    let size = 24 << 15;
    let bytes = vec![0u8; size as usize];
    let mut sections = vec![[0; 6], [11, 0, 0, 24, 2, 24], [3, 0, 0, 8, 0, 0]];
    sections.resize(COUNT as usize, [4, 0, 0, size, 1, 24]);
    let file = elf(&[], &sections, &bytes);
    Symbols::from_elf(&file)
        .map(drop)
        .map_err(|e| e.to_string())
}

/// Counts steps.
struct Count(u64);

impl Observer for Count {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, _: HartId, _: &Step, _: &Effects) {
        self.0 += 1;
    }
}

fn many_harts() -> Result<(), String> {
    const LINES: usize = if cfg!(debug_assertions) {
        5_000
    } else {
        1_000_000
    };
    let mut text = String::new();
    for hart in 0..1024 {
        text += &format!("core {hart}: 3 0x0000000080000000 (0x0001)\n");
    }
    text += &"x\n".repeat(LINES);
    let lines = text.lines().count() as u64;
    let (mut count, mut bad) = (Count(0), 0u64);
    let mut reader = SpikeReader::new(SpikeOptions::default(), None);
    reader.feed(text.as_bytes(), &mut count, &mut |_| bad += 1);
    reader.finish(&mut count, &mut |_| bad += 1);
    ensure(count.0 <= 2 * lines && bad == LINES as u64, || {
        format!("{} steps of {lines} lines", count.0)
    })
}

fn many_columns() -> Result<(), String> {
    let mut text = "itype_0,".repeat(8000) + "\n";
    text += &("0,".repeat(8000) + "\n").repeat(50);
    let (mut rows, mut bad) = (0, 0);
    let mut reader = IngressReader::new(Iretire::Halfwords);
    reader.feed(text.as_bytes(), &mut |_, _| rows += 1, &mut |_| bad += 1);
    reader.finish(&mut |_, _| rows += 1, &mut |_| bad += 1);
    ensure(rows + bad <= 60, || format!("{rows} rows, {bad} errors"))
}
