//! Symbols of programs by their names.

use super::Elf;
use hartrace_flow::elf::{self, SECTION_SYMBOL, Symbol};
use hartrace_flow::elf_bias;
use std::ops::RangeInclusive;

/// The addresses of a symbol, the last one included: the first of that name. One
/// without a size ends before the next symbol.
#[must_use]
pub fn find_symbol(programs: &[Elf], name: &str) -> Option<RangeInclusive<u64>> {
    programs.iter().find_map(|program| {
        let bias = |base| elf_bias(&program.bytes, base).unwrap_or(base);
        let bias = program.file.base.map_or(0, bias);
        let file = elf::Elf::parse(&program.bytes).ok()?;
        let symbols = named(&file);
        let (_, symbol) = symbols.iter().find(|(n, _)| n == name)?;
        let start = symbol.value;
        let size = match symbol.size {
            0 => {
                let values = symbols.iter().map(|(_, s)| s.value);
                values.filter(|v| *v > start).min()? - start
            }
            size => size,
        };
        let last = start.checked_add(size - 1)?;
        Some(start.wrapping_add(bias)..=last.wrapping_add(bias))
    })
}

/// The names most like one that is not there, at most three of them.
#[must_use]
pub fn similar_symbols(programs: &[Elf], name: &str) -> Vec<String> {
    let wanted = name.to_lowercase();
    let far = name.len().div_ceil(3);
    let files = programs
        .iter()
        .filter_map(|p| elf::Elf::parse(&p.bytes).ok());
    let mut found: Vec<(usize, String)> = files
        .flat_map(|file| named(&file).into_iter().map(|(n, _)| n).collect::<Vec<_>>())
        .map(|n| (strsim::osa_distance(&wanted, &n.to_lowercase()), n))
        .filter(|(distance, n)| *distance <= far || n.to_lowercase().contains(&wanted))
        .collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().take(3).map(|(_, n)| n).collect()
}

/// The symbols with names of their own, those of the linker's table first.
fn named<'a>(file: &elf::Elf<'a>) -> Vec<(String, Symbol<'a>)> {
    let linked = file.symbols(false).into_iter();
    let all = linked.chain(file.symbols(true));
    let all = all.filter(|s| s.kind != SECTION_SYMBOL && s.place != elf::Place::Undefined);
    let all = all.map(|s| (String::from_utf8_lossy(s.name.bytes()).into_owned(), s));
    // Mapping symbols mark code and data.
    all.filter(|(name, _)| !name.is_empty() && !name.starts_with('$'))
        .collect()
}

/// The symbol at or before an address of a file, `main+0x10`.
#[must_use]
pub(crate) fn symbol_at(file: &[u8], address: u64) -> Option<String> {
    let file = elf::Elf::parse(file).ok()?;
    let symbols = named(&file).into_iter();
    let before = symbols.filter(|(_, s)| s.value <= address && s.place != elf::Place::Absolute);
    let (name, symbol) = before.max_by_key(|(_, s)| (s.value, s.size))?;
    Some(match address - symbol.value {
        0 => name,
        offset => format!("{name}+{offset:#x}"),
    })
}
