//! Symbols and source lines of several programs, looked up by address.

use crate::elf::ElfError;
use crate::lines::{Line, Lines, SourceFrame};
use crate::names::{Label, Names, NamesIn};
use hartrace_flow::order;
use hartrace_flow::{Image, SpaceId, elf_bias};
use std::fmt;

/// The distance after a symbol up to which it names an address, in bytes.
const FAR: u64 = 16 << 20;

/// Names and lines of source text of any number of ELF files, each where it is
/// loaded.
#[derive(Default)]
pub struct Places<'a> {
    names: Names,
    lines: Vec<LineTable<'a>>,
}

/// The lines of a file.
struct LineTable<'a> {
    lines: Lines<'a>,
    /// What is added to their addresses.
    bias: u64,
    /// The number of the file among those of the names.
    file: usize,
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
        self.add_program((file, file), file, bias)
    }

    /// Adds a program: its symbols and its code, which may be in two files, and the lines of
    /// another. `bias` is added to all addresses.
    ///
    /// # Errors
    ///
    /// What is no ELF file for RISC-V.
    pub fn add_program(
        &mut self,
        (symbols, code): (&[u8], &[u8]),
        lines: &'a [u8],
        bias: u64,
    ) -> Result<(), ElfError> {
        let file = self.names.files();
        self.names.add_program(symbols, code, bias)?;
        let lines = Lines::from_elf(lines);
        self.lines
            .extend(lines.map(|lines| LineTable { lines, bias, file }));
        Ok(())
    }

    /// The names alone.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// What is known of the code in a space of an image: where several programs have an
    /// address, of the one that has the code that is there.
    #[must_use]
    pub fn within<'p>(&'p self, image: &'p Image, space: SpaceId) -> PlacesIn<'p, 'a> {
        PlacesIn {
            places: self,
            names: self.names.within(image, space),
        }
    }

    /// The functions that the instruction at an address belongs to, the innermost
    /// inlined one first.
    #[must_use]
    pub fn frames(&self, address: u64) -> Vec<SourceFrame> {
        self.anywhere().frames(address)
    }

    /// The lines of all code from one address to another, by address: each range of
    /// addresses that comes from one line.
    #[must_use]
    pub fn line_ranges(&self, low: u64, high: u64) -> LineRanges<'_> {
        self.anywhere().line_ranges(low, high)
    }

    /// What is known whatever code there is.
    fn anywhere(&self) -> PlacesIn<'_, 'a> {
        PlacesIn {
            places: self,
            names: self.names.anywhere(),
        }
    }

    /// The line that the instruction at an address comes from.
    #[must_use]
    pub fn line(&self, address: u64) -> Option<Line<'_>> {
        let mut lines = self.lines.iter();
        lines.find_map(|table| table.lines.lookup(address.wrapping_sub(table.bias)))
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

/// What is known of the code in a space of an image ([`Places::within`]).
pub struct PlacesIn<'p, 'a> {
    places: &'p Places<'a>,
    names: NamesIn<'p>,
}

impl<'p> PlacesIn<'p, '_> {
    /// The names alone.
    #[must_use]
    pub fn names(&self) -> NamesIn<'p> {
        self.names
    }

    /// The lines of all code of the program at `low` up to `high`, by address.
    #[must_use]
    pub fn line_ranges(&self, low: u64, high: u64) -> LineRanges<'p> {
        let is_possible = self.names.possible(low);
        let tables = self.places.lines.iter();
        let mut all: Vec<_> = tables
            .filter(|table| is_possible(table.file))
            .flat_map(|LineTable { lines, bias, .. }| {
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
        order::sort_by_key(&mut all, |(start, ..)| *start);
        LineRanges(all)
    }

    /// The functions that the instruction at an address belongs to, the innermost
    /// inlined one first.
    #[must_use]
    pub fn frames(&self, address: u64) -> Vec<SourceFrame> {
        let is_possible = self.names.possible(address);
        let tables = self.places.lines.iter();
        let mut tables = tables.filter(|table| is_possible(table.file));
        let found = tables.find_map(|table| {
            let frames = table.lines.frames(address.wrapping_sub(table.bias));
            (!frames.is_empty()).then_some(frames)
        });
        found.unwrap_or_default()
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
