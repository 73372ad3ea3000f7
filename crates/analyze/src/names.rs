//! Symbols of several programs, looked up by address.
//!
//! Programs can have the same addresses, as those of different processes do. Then names are
//! those of the program whose code ran there ([`Names::within`]).

use crate::demangle::demangle;
use crate::elf::ElfError;
use crate::program_code::{COMPARED, ProgramCode};
use crate::symbols::Symbols;
use hartrace_flow::elf::{Elf, SegmentKind};
use hartrace_flow::{Image, SpaceId, elf_bias};
use std::fmt;

/// The symbols of any number of ELF files, each where it is loaded.
#[derive(Default)]
pub struct Names {
    files: Vec<File>,
    /// Several files have code at the same addresses.
    shared: bool,
}

/// The symbols of a file.
struct File {
    symbols: Symbols,
    /// What is added to their addresses.
    bias: u64,
    /// Where its memory ends: nothing after it has a name.
    end: u64,
    /// Its code; nothing if only its symbols are known.
    code: ProgramCode,
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
        self.add(file, ProgramCode::default(), bias)
    }

    /// Adds those of a program: of a file with its symbols and of one with its code, which may
    /// be the same. `bias` is added to all addresses. Several programs can have the same
    /// addresses ([`Names::within`]).
    ///
    /// # Errors
    ///
    /// What is no ELF file for RISC-V.
    pub fn add_program(&mut self, symbols: &[u8], code: &[u8], bias: u64) -> Result<(), ElfError> {
        self.add(symbols, ProgramCode::of(code, bias), bias)
    }

    fn add(&mut self, symbols: &[u8], code: ProgramCode, bias: u64) -> Result<(), ElfError> {
        let end = end_of(symbols).unwrap_or(u64::MAX);
        let symbols = Symbols::from_elf(symbols)?;
        self.shared |= self.files.iter().any(|file| file.code.overlaps(&code));
        self.files.push(File {
            symbols,
            bias,
            end,
            code,
        });
        Ok(())
    }

    /// How many files there are.
    pub(crate) fn files(&self) -> usize {
        self.files.len()
    }

    /// Names of the code in a space of an image.
    #[must_use]
    pub fn within<'a>(&'a self, image: &'a Image, space: SpaceId) -> NamesIn<'a> {
        NamesIn {
            names: self,
            code: self.shared.then_some((image, space)),
        }
    }

    /// Names whatever code there is.
    pub(crate) fn anywhere(&self) -> NamesIn<'_> {
        NamesIn {
            names: self,
            code: None,
        }
    }

    /// The nearest symbol at or before an address, and the distance from it.
    #[must_use]
    pub fn lookup(&self, address: u64) -> Option<(&str, u64)> {
        self.anywhere().lookup(address)
    }

    /// The function an address is in and the distance from its start.
    #[must_use]
    pub fn function(&self, address: u64) -> Option<(&str, u64)> {
        self.anywhere().nearest(address, Symbols::function)
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
        self.anywhere().label(address)
    }
}

/// The names of the code in a space of an image: where several programs have an address, those
/// of the one that has the code that is there.
#[derive(Clone, Copy)]
pub struct NamesIn<'a> {
    names: &'a Names,
    /// The code, if it matters.
    code: Option<(&'a Image, SpaceId)>,
}

impl<'a> NamesIn<'a> {
    /// The nearest symbol at or before an address, and the distance from it.
    #[must_use]
    pub fn lookup(&self, address: u64) -> Option<(&'a str, u64)> {
        self.nearest(address, Symbols::lookup)
    }

    /// `main+0x10`, demangled, or nothing.
    #[must_use]
    pub fn label(&self, address: u64) -> Label<'a> {
        Label(self.lookup(address))
    }

    fn nearest(
        &self,
        address: u64,
        find: impl Fn(&'a Symbols, u64) -> Option<(&'a str, u64)>,
    ) -> Option<(&'a str, u64)> {
        let files = self.names.files.iter().enumerate();
        let is_possible = self.possible(address);
        // A program may have been moved down; a symbol above the address is
        // not before it, though.
        let found = files.filter_map(|(at, file)| {
            let own = address.wrapping_sub(file.bias);
            find(&file.symbols, own).filter(|_| own <= file.end && is_possible(at))
        });
        found
            .filter(|(_, offset)| *offset <= address)
            .min_by_key(|&(_, offset)| offset)
    }

    /// Which files an address can be of, by number: if some have the code that is there, not
    /// those that have other code there.
    pub(crate) fn possible(&self, address: u64) -> impl Fn(usize) -> bool + use<'a> {
        let files = &self.names.files;
        let mut bytes = [0; COMPARED];
        let length = self
            .code
            .map_or(0, |(image, space)| image.read(space, address, &mut bytes));
        let is = move |file: &File| file.code.is(address, bytes.get(..length).unwrap_or(&bytes));
        let known = length > 0 && files.iter().any(is);
        move |at| {
            let file = files.get(at).filter(|file| file.code.has(address));
            !known || file.is_none_or(is)
        }
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
