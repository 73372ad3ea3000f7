//! Source lines for addresses, from DWARF.

use crate::demangle::demangle;
use addr2line::Context;
use addr2line::gimli::{Dwarf, EndianSlice, LittleEndian, Section as _, SectionId};
use hartrace_flow::elf::{Elf, section_by_name};
use std::fmt;

/// The line table of an ELF file. A unit is read when an address in it is
/// asked for, and once only.
pub struct Lines<'a> {
    context: Context<EndianSlice<'a, LittleEndian>>,
}

/// A line of source text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The file name, as given to the compiler.
    pub file: &'a str,
    /// Counted from 1.
    pub line: u32,
}

/// A function that an instruction belongs to: the one whose code it is, or one that
/// was inlined there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFrame {
    /// Its name, demangled.
    pub function: String,
    /// Where it was inlined: file and line of the call.
    pub call: Option<(String, u32)>,
}

/// `sort.c:31`.
impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl<'a> Lines<'a> {
    /// The lines of an ELF file; `None` if it has none that can be read, or
    /// only compressed ones.
    #[must_use]
    pub fn from_elf(file: &'a [u8]) -> Option<Lines<'a>> {
        let dwarf = dwarf(file)?;
        let context = Context::from_dwarf(dwarf).ok()?;
        Some(Lines { context })
    }

    /// The lines of all code from one address to another: each range of addresses
    /// that comes from one line, in no particular order.
    pub fn ranges(&self, low: u64, high: u64) -> impl Iterator<Item = (u64, u64, Line<'_>)> {
        let found = self.context.find_location_range(low, high).ok();
        found.into_iter().flatten().filter_map(|(start, size, at)| {
            let line = Line {
                file: plain(at.file?),
                line: at.line.filter(|line| *line > 0)?,
            };
            Some((start, start.saturating_add(size), line))
        })
    }

    /// The functions that the instruction at an address belongs to, the innermost
    /// inlined one first.
    #[must_use]
    pub fn frames(&self, address: u64) -> Vec<SourceFrame> {
        let mut all: Vec<SourceFrame> = Vec::new();
        if is_last(address) {
            return all;
        }
        let Ok(mut frames) = self.context.find_frames(address).skip_all_loads() else {
            return all;
        };
        while let Ok(Some(frame)) = frames.next() {
            let at = frame.location.as_ref().and_then(|at| {
                let line = at.line.filter(|line| *line > 0)?;
                Some((plain(at.file?).to_owned(), line))
            });
            // The place in an outer function is that of the call.
            if let Some(inner) = all.last_mut() {
                inner.call = at;
            }
            let name = frame.function.as_ref().and_then(|f| f.raw_name().ok());
            let Some(name) = name else { break };
            all.push(SourceFrame {
                function: demangle(&name),
                call: None,
            });
        }
        all
    }

    /// The line that the instruction at an address comes from.
    #[must_use]
    pub fn lookup(&self, address: u64) -> Option<Line<'_>> {
        if is_last(address) {
            return None;
        }
        let location = self.context.find_location(address).ok()??;
        let file = location.file?;
        Some(Line {
            file: plain(file),
            line: location.line.filter(|line| *line > 0)?,
        })
    }
}

/// The last address of all: no instruction fits there, and the end of a range that starts
/// there is no address.
const fn is_last(address: u64) -> bool {
    address == u64::MAX
}

/// The debugging information of an ELF file, unless it is compressed.
pub(crate) fn dwarf(file: &[u8]) -> Option<Dwarf<EndianSlice<'_, LittleEndian>>> {
    let sections = Elf::parse(file).ok()?.sections().ok()?;
    let load = |id: SectionId| {
        let found = section_by_name(&sections, id.name().as_bytes());
        let plain = found.filter(|(_, section)| !section.compressed);
        let data = plain.and_then(|(_, section)| section.data);
        Ok::<_, ()>(EndianSlice::new(data.unwrap_or_default(), LittleEndian))
    };
    let dwarf = Dwarf::load(load).ok()?;
    (!dwarf.debug_info.reader().is_empty()).then_some(dwarf)
}

/// A file name without what says nothing.
fn plain(file: &str) -> &str {
    file.strip_prefix("./").unwrap_or(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_program() {
        for name in ["sieve-rv64gc.elf", "sieve-rv32imac.elf"] {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs/sieve/");
            let file = std::fs::read([folder, name].concat()).unwrap();
            let lines = Lines::from_elf(&file).unwrap();
            let first = lines.lookup(0x8000_0000).unwrap();
            assert!(first.file.ends_with("start.S"), "{first}");
            assert!(first.line > 1);
            assert_eq!(lines.lookup(0x1000), None);
        }
    }

    #[test]
    fn the_last_address_has_no_line() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs/sieve/");
        let file = std::fs::read([folder, "sieve-rv64gc.elf"].concat()).unwrap();
        let lines = Lines::from_elf(&file).unwrap();
        for address in [u64::MAX - 1, u64::MAX] {
            assert_eq!(lines.lookup(address), None);
            assert!(lines.frames(address).is_empty());
        }
    }

    #[test]
    fn nothing_to_read() {
        assert!(Lines::from_elf(b"").is_none());
        assert!(Lines::from_elf(b"\x7fELF").is_none());
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs/sieve/");
        let file = std::fs::read([folder, "sieve-rv64gc.elf"].concat()).unwrap();
        // Cut anywhere, it is read or refused, and asked in vain.
        for size in (0..file.len()).step_by(97) {
            if let Some(lines) = Lines::from_elf(&file[..size]) {
                let _ = lines.lookup(0x8000_0000);
            }
        }
    }
}
