//! Symbols and source lines of several programs, looked up by address.

use crate::elf::ElfError;
use crate::lines::{Line, Lines, SourceFrame};
use crate::names::{Label, Names};
use hartrace_flow::elf_bias;
use std::fmt;

/// The distance after a symbol up to which it names an address, in bytes.
const FAR: u64 = 16 << 20;

/// Names and lines of source text of any number of ELF files, each where it is
/// loaded.
#[derive(Default)]
pub struct Places<'a> {
    names: Names,
    /// Line tables, and what is added to their addresses.
    lines: Vec<(Lines<'a>, u64)>,
}

impl<'a> Places<'a> {
    /// Nothing is known.
    #[must_use]
    pub fn new() -> Places<'a> {
        Places::default()
    }

    /// Adds the symbols and lines of an ELF file; its lowest loaded address goes to `base`,
    /// or stays where the file says.
    ///
    /// # Errors
    ///
    /// What is no ELF file for RISC-V.
    pub fn add_elf(&mut self, file: &'a [u8], base: Option<u64>) -> Result<(), ElfError> {
        let bias = base.map_or(0, |base| elf_bias(file, base).unwrap_or(base));
        self.add_parts(file, file, bias)
    }

    /// Adds the symbols of one file and the lines of another: a program and the file that has
    /// what was taken away from it. `bias` is added to all addresses.
    ///
    /// # Errors
    ///
    /// What is no ELF file for RISC-V.
    pub fn add_parts(
        &mut self,
        symbols: &[u8],
        lines: &'a [u8],
        bias: u64,
    ) -> Result<(), ElfError> {
        self.names.add_symbols(symbols, bias)?;
        let lines = Lines::from_elf(lines);
        self.lines.extend(lines.map(|lines| (lines, bias)));
        Ok(())
    }

    /// The names alone.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The line that the instruction at an address comes from.
    #[must_use]
    pub fn line(&self, address: u64) -> Option<Line<'_>> {
        let mut lines = self.lines.iter();
        lines.find_map(|(lines, bias)| lines.lookup(address.wrapping_sub(*bias)))
    }

    /// The lines of all code from one address to another, by address: each range of
    /// addresses that comes from one line.
    #[must_use]
    pub fn line_ranges(&self, low: u64, high: u64) -> LineRanges<'_> {
        let mut all: Vec<_> = self
            .lines
            .iter()
            .flat_map(|(lines, bias)| {
                let (low, high) = match (low.wrapping_sub(*bias), high.wrapping_sub(*bias)) {
                    (low, high) if low <= high => (low, high),
                    // They begin below the program: all of its lines.
                    _ => (0, u64::MAX),
                };
                let found = lines.ranges(low, high);
                found.map(|(start, end, line)| {
                    (start.wrapping_add(*bias), end.wrapping_add(*bias), line)
                })
            })
            .collect();
        all.sort_by_key(|(start, ..)| *start);
        LineRanges(all)
    }

    /// The functions that the instruction at an address belongs to, the innermost
    /// inlined one first.
    #[must_use]
    pub fn frames(&self, address: u64) -> Vec<SourceFrame> {
        let mut lines = self.lines.iter();
        let found = lines.find_map(|(lines, bias)| {
            let frames = lines.frames(address.wrapping_sub(*bias));
            (!frames.is_empty()).then_some(frames)
        });
        found.unwrap_or_default()
    }

    /// The function an address is in; where none is, the nearest name before
    /// it.
    #[must_use]
    pub fn function(&self, address: u64) -> Option<&str> {
        let near = || self.names.lookup(address).filter(|near| near.1 < FAR);
        Some(self.names.function(address).or_else(near)?.0)
    }

    /// `0x80000010 main+0x10 main.c:7`, as far as it is known.
    #[must_use]
    pub fn at(&self, address: u64) -> Place<'_> {
        let label = self.names.lookup(address).filter(|near| near.1 < FAR);
        Place {
            address,
            label: label.map(|_| self.names.label(address)),
            line: self.line(address),
        }
    }
}

/// Lines by ranges of addresses: start, end and line, by start.
#[derive(Clone, Debug, Default)]
pub struct LineRanges<'a>(Vec<(u64, u64, Line<'a>)>);

impl<'a> LineRanges<'a> {
    /// The line of an address.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<Line<'a>> {
        let (_, end, line) = self.before(address)?;
        (address < *end).then_some(*line)
    }

    /// Where the range that an address is in starts.
    #[must_use]
    pub fn start_of(&self, address: u64) -> Option<u64> {
        let range = self.before(address).filter(|(_, end, _)| address < *end);
        range.map(|(start, ..)| *start)
    }

    /// Where the range that an address is in ends; the next address if it is in none.
    pub(crate) fn end_of(&self, address: u64) -> u64 {
        let range = self.before(address).filter(|(_, end, _)| address < *end);
        range.map_or(address.saturating_add(1), |(_, end, _)| *end)
    }

    fn before(&self, address: u64) -> Option<&(u64, u64, Line<'a>)> {
        let after = self.0.partition_point(|(start, ..)| *start <= address);
        self.0.get(after.checked_sub(1)?)
    }

    /// Every range.
    pub fn iter(&self) -> impl Iterator<Item = &(u64, u64, Line<'a>)> {
        self.0.iter()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// An address and what is known of it, ready to be written.
pub struct Place<'a> {
    address: u64,
    label: Option<Label<'a>>,
    line: Option<Line<'a>>,
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.address)?;
        if let Some(label) = &self.label {
            write!(f, " {label}")?;
        }
        if let Some(Line { file, line }) = self.line {
            let file = file.rsplit('/').next().unwrap_or(file);
            write!(f, " {file}:{line}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sieve() -> Vec<u8> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs/sieve/");
        std::fs::read([folder, "sieve-rv64gc.elf"].concat()).unwrap()
    }

    #[test]
    fn a_moved_program_has_its_names_and_lines() {
        let file = sieve();
        let mut here = Places::new();
        here.add_elf(&file, None).unwrap();
        let mut moved = Places::new();
        moved.add_elf(&file, Some(0x4000_0000)).unwrap();
        let text = here.at(0x8000_0004).to_string();
        assert!(text.starts_with("0x80000004 _start+0x4 start.S:"), "{text}");
        let expected = text.replace("0x8", "0x4");
        assert_eq!(moved.at(0x4000_0004).to_string(), expected);
        assert_eq!(here.function(0x8000_0004), Some("_start"));
        assert_eq!(here.at(0x1000).to_string(), "0x1000");
        // Too far after any symbol.
        assert_eq!(here.at(0x9000_0000).to_string(), "0x90000000");
        assert_eq!(here.function(0x9000_0000), None);
        // Below a program that was moved up there is nothing of it.
        let mut up = Places::new();
        up.add_elf(&file, Some(0x9000_0000)).unwrap();
        assert_eq!(up.at(0x1000).to_string(), "0x1000");
        // From below the program to far above it.
        assert!(!up.line_ranges(0x1000, u64::MAX).is_empty());
    }

    #[test]
    fn without_programs_an_address_is_a_number() {
        assert_eq!(Places::new().at(0x1234).to_string(), "0x1234");
        assert!(Places::new().add_elf(b"no ELF", None).is_err());
    }
}
