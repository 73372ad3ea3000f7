//! Symbols of several programs, looked up by address.

use crate::demangle::demangle;
use crate::elf::ElfError;
use crate::symbols::Symbols;
use hartrace_flow::elf::{Elf, SegmentKind};
use hartrace_flow::elf_bias;
use std::fmt;

/// The symbols of any number of ELF files, each where it is loaded.
#[derive(Default)]
pub struct Names {
    files: Vec<File>,
}

/// The symbols of a file.
struct File {
    symbols: Symbols,
    /// What is added to their addresses.
    bias: u64,
    /// Where its memory ends: nothing after it has a name.
    end: u64,
}

impl Names {
    /// No names.
    #[must_use]
    pub fn new() -> Names {
        Names::default()
    }

    /// Adds those of an ELF file; its lowest loaded address goes to `base`, or
    /// stays where the file says.
    ///
    /// # Errors
    ///
    /// What is no ELF file for RISC-V.
    pub fn add_elf(&mut self, file: &[u8], base: Option<u64>) -> Result<(), ElfError> {
        let bias = base.map_or(0, |base| elf_bias(file, base).unwrap_or(base));
        self.add_symbols(file, bias)
    }

    /// Adds those of an ELF file, or of a file that has only its symbols; `bias` is added to
    /// all addresses.
    ///
    /// # Errors
    ///
    /// What is no ELF file for RISC-V.
    pub fn add_symbols(&mut self, file: &[u8], bias: u64) -> Result<(), ElfError> {
        self.files.push(File {
            symbols: Symbols::from_elf(file)?,
            bias,
            end: end_of(file).unwrap_or(u64::MAX),
        });
        Ok(())
    }

    /// The nearest symbol at or before an address, and the distance from it.
    #[must_use]
    pub fn lookup(&self, address: u64) -> Option<(&str, u64)> {
        self.nearest(address, Symbols::lookup)
    }

    fn nearest<'a>(
        &'a self,
        address: u64,
        find: impl Fn(&'a Symbols, u64) -> Option<(&'a str, u64)>,
    ) -> Option<(&'a str, u64)> {
        let files = self.files.iter();
        // A program may have been moved down; a symbol above the address is
        // not before it, though.
        let found = files.filter_map(|file| {
            let own = address.wrapping_sub(file.bias);
            find(&file.symbols, own).filter(|_| own <= file.end)
        });
        found
            .filter(|(_, offset)| *offset <= address)
            .min_by_key(|&(_, offset)| offset)
    }

    /// The function an address is in and the distance from its start.
    #[must_use]
    pub fn function(&self, address: u64) -> Option<(&str, u64)> {
        self.nearest(address, Symbols::function)
    }

    /// Where a symbol is: the first of that name.
    #[must_use]
    pub fn address(&self, name: &str) -> Option<u64> {
        self.files.iter().find_map(|file| {
            let (address, _) = file.symbols.iter().find(|(_, n)| *n == name)?;
            Some(address.wrapping_add(file.bias))
        })
    }

    /// `main+0x10`, demangled, or nothing.
    #[must_use]
    pub fn label(&self, address: u64) -> Label<'_> {
        Label(self.lookup(address))
    }
}

/// The address after the last that a linked file occupies in memory.
fn end_of(file: &[u8]) -> Option<u64> {
    let segments = Elf::parse(file).ok()?.segments().ok()?;
    let loaded = segments.iter().filter(|s| s.kind == SegmentKind::Load);
    loaded
        .map(|s| s.address.saturating_add(s.memory_size))
        .max()
        .filter(|&end| end > 0)
}

/// A name and the distance from it, ready to be written.
pub struct Label<'a>(Option<(&'a str, u64)>);

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => Ok(()),
            Some((name, 0)) => f.write_str(&demangle(name)),
            Some((name, offset)) => write!(f, "{}+{offset:#x}", demangle(name)),
        }
    }
}
