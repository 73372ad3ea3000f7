//! The parts of an ELF file that symbols and listings need, read once into
//! plain values. Tables that do not parse are empty; a file is refused only if
//! it is not an ELF file for RISC-V.

use hartrace_flow::elf::{self, Relocation, SectionKind, VersionName};
use hartrace_flow::order;
use hartrace_isa::attributes::Attributes;
use hartrace_isa::{Isa, Xlen};
use std::cell::Cell;
use std::fmt;

pub(crate) use hartrace_flow::elf::Place;

/// Why a file was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElfError {
    /// Not an ELF file, or one whose header does not hold together.
    NotElf,
    /// An ELF file for another machine; its `e_machine`.
    Machine(u16),
    /// A big-endian file; RISC-V code is little-endian.
    BigEndian,
}

impl fmt::Display for ElfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElfError::NotElf => f.write_str("not an ELF file"),
            ElfError::Machine(m) => write!(f, "an ELF file for machine {m}, not for RISC-V"),
            ElfError::BigEndian => f.write_str("a big-endian ELF file"),
        }
    }
}

impl std::error::Error for ElfError {}

impl From<elf::ElfError> for ElfError {
    fn from(error: elf::ElfError) -> ElfError {
        match error {
            elf::ElfError::Machine(machine) => ElfError::Machine(machine),
            elf::ElfError::BigEndian => ElfError::BigEndian,
            _ => ElfError::NotElf,
        }
    }
}

/// One section.
pub(crate) struct Section<'a> {
    pub(crate) name: String,
    pub(crate) address: u64,
    /// Code with contents: what a listing shows.
    pub(crate) code: bool,
    /// Code, though its contents may be in another file: this one has only the names.
    pub(crate) executable: bool,
    /// Bytes in memory.
    pub(crate) size: u64,
    pub(crate) data: &'a [u8],
}

/// One symbol, with the properties that order symbols of one address.
#[derive(Clone, Debug)]
pub(crate) struct Symbol {
    pub(crate) value: u64,
    pub(crate) size: u64,
    pub(crate) place: Place,
    /// Fit to be shown: control characters are spelled out.
    pub(crate) name: String,
    /// The name in the file, where it is not the same.
    pub(crate) raw: Option<Vec<u8>>,
    /// `@@VERSION` or `@VERSION`, for symbols of the dynamic table.
    pub(crate) version: String,
    pub(crate) kind: u8,
    pub(crate) bind: u8,
    /// Made up for an entry of the procedure linkage table.
    pub(crate) synthetic: bool,
}

/// A dynamic relocation with a symbol.
#[derive(Clone, Debug)]
pub(crate) struct Dynamic {
    pub(crate) address: u64,
    /// Index into [`Elf::dynamic`]; `None` for relocations without symbol.
    pub(crate) symbol: Option<usize>,
}

/// A parsed file.
pub(crate) struct Elf<'a> {
    pub(crate) wide: bool,
    /// An executable or a shared object.
    pub(crate) linked: bool,
    /// A relocatable file with relocations.
    pub(crate) relocations: bool,
    pub(crate) sections: Vec<Section<'a>>,
    /// The symbol table, or where there is none the dynamic one; then the
    /// made-up symbols of the procedure linkage table.
    pub(crate) symbols: Vec<Symbol>,
    pub(crate) dynamic: Vec<Symbol>,
    /// In the order of the addresses.
    pub(crate) relocs: Vec<Dynamic>,
    pub(crate) attributes: Option<&'a [u8]>,
}

/// The symbol that code addresses data by, relative to `gp`.
pub(crate) const GLOBAL_POINTER: &str = "__global_pointer$";

/// Names may overlap in the string table, so a small file can claim endless
/// ones. Beyond this many times the size of the file they are empty.
const NAMES_PER_FILE: usize = 16;

impl<'a> Elf<'a> {
    pub(crate) fn parse(data: &'a [u8]) -> Result<Elf<'a>, ElfError> {
        let elf = elf::Elf::parse(data)?;
        let table = elf.sections().unwrap_or_default();
        let names = Names(Cell::new(data.len().saturating_mul(NAMES_PER_FILE)));
        let section = |section: &elf::Section<'a>| Section {
            name: names.copy(section.name.bytes()),
            address: section.address,
            code: section.executable && section.kind != SectionKind::Zeros,
            executable: section.executable,
            size: section.size,
            data: section.data.unwrap_or_default(),
        };
        let sections: Vec<Section<'a>> = table.iter().map(section).collect();
        let mut attributes = table.iter().rev();
        let attributes = attributes.find(|s| s.kind == SectionKind::Attributes);
        let file = File {
            names,
            elf,
            table: &table,
        };
        let own = file.symbols(false, &sections);
        let dynamic = file.symbols(true, &sections);
        let mut symbols = if own.is_empty() { dynamic.clone() } else { own };
        symbols.extend(file.linkage(&sections, &dynamic));
        let linked = elf.kind.is_linked();
        Ok(Elf {
            wide: elf.xlen() == Xlen::Rv64,
            linked,
            relocations: !linked && file.has_relocations(),
            relocs: file.dynamic_relocs(),
            sections,
            symbols,
            dynamic,
            attributes: attributes.map(|s| s.data.unwrap_or_default()),
        })
    }

    /// A file that is code and nothing else, as objdump sees one: a single
    /// section that is called `.data`.
    pub(crate) fn raw(code: &'a [u8], address: u64, wide: bool) -> Elf<'a> {
        Elf {
            wide,
            linked: false,
            relocations: false,
            sections: vec![Section {
                name: ".data".to_owned(),
                address,
                code: true,
                executable: true,
                size: code.len() as u64,
                data: code,
            }],
            symbols: Vec::new(),
            dynamic: Vec::new(),
            relocs: Vec::new(),
            attributes: None,
        }
    }

    /// Moves sections, and the symbols and relocations in them; what is
    /// absolute stays, but for the global pointer.
    pub(crate) fn move_by(&mut self, bias: u64) {
        let xlen = if self.wide { Xlen::Rv64 } else { Xlen::Rv32 };
        let moved = |address: &mut u64| *address = xlen.wrap(address.wrapping_add(bias));
        self.sections.iter_mut().for_each(|s| moved(&mut s.address));
        self.relocs.iter_mut().for_each(|r| moved(&mut r.address));
        for symbol in self.symbols.iter_mut().chain(&mut self.dynamic) {
            let inside = matches!(symbol.place, Place::Section(_));
            if inside || symbol.name == GLOBAL_POINTER {
                moved(&mut symbol.value);
            }
        }
    }

    /// What the attributes say, if there are any.
    pub(crate) fn attributes(&self) -> Attributes<'a> {
        self.attributes.map(Attributes::read).unwrap_or_default()
    }

    /// The instruction set of the attributes; without them the general one.
    pub(crate) fn isa(&self) -> Isa {
        let general = if self.wide { Isa::RV64GC } else { Isa::RV32GC };
        let named = self.attributes().arch.map(Isa::parse_lenient);
        named.and_then(Result::ok).unwrap_or(general)
    }
}

/// The instruction set an ELF file was made for: that of its attributes, and
/// without them `rv32gc` or `rv64gc`.
///
/// # Errors
///
/// What is no ELF file for RISC-V.
pub fn isa_of(file: &[u8]) -> Result<Isa, ElfError> {
    Ok(Elf::parse(file)?.isa())
}

struct File<'a, 't> {
    elf: elf::Elf<'a>,
    table: &'t [elf::Section<'a>],
    names: Names,
}

/// Bytes of names that may still be copied.
struct Names(Cell<usize>);

impl Names {
    /// A name, as long as there is room for it.
    fn copy(&self, name: &[u8]) -> String {
        match self.0.get().checked_sub(name.len()) {
            Some(rest) => {
                self.0.set(rest);
                printable(name)
            }
            None => String::new(),
        }
    }
}

impl<'a> File<'a, '_> {
    /// All symbols of one table but the null one, by index minus one.
    fn symbols(&self, dynamic: bool, sections: &[Section<'a>]) -> Vec<Symbol> {
        let symbols = self.elf.symbols(dynamic);
        symbols
            .iter()
            .map(|symbol| self.symbol(symbol, sections))
            .collect()
    }

    fn symbol(&self, symbol: &elf::Symbol<'a>, sections: &[Section<'a>]) -> Symbol {
        let bytes = symbol.name.bytes();
        let mut name = self.names.copy(bytes);
        let raw = (!name.is_empty() && name.as_bytes() != bytes).then(|| bytes.to_vec());
        // A section symbol is called what its section is.
        if let (Place::Section(at), elf::SECTION_SYMBOL, "") = (symbol.place, symbol.kind, &*name)
            && let Some(section) = sections.get(at)
        {
            name = self.names.copy(section.name.as_bytes());
        }
        Symbol {
            value: symbol.value,
            size: symbol.size,
            place: symbol.place,
            name,
            raw,
            version: symbol
                .version
                .map(|version| self.version(version, symbol.place == Place::Undefined))
                .unwrap_or_default(),
            kind: symbol.kind,
            bind: symbol.bind,
            synthetic: false,
        }
    }

    /// As objdump shows it: `@@` for the default version and `@` for others;
    /// the file's own base version is `Base`.
    fn version(&self, version: elf::Version<'a>, undefined: bool) -> String {
        let (name, needed) = match version.name {
            VersionName::Own(name) => (self.names.copy(name), false),
            VersionName::Needed(name) => (self.names.copy(name), true),
            VersionName::Base => ("Base".to_owned(), false),
            VersionName::Unknown => ("<corrupt>".to_owned(), false),
        };
        let at = if undefined || needed || version.hidden {
            "@"
        } else {
            "@@"
        };
        format!("{at}{name}")
    }

    fn has_relocations(&self) -> bool {
        let mut all = 0..self.table.len();
        all.any(|section| self.elf.relocations(section).next().is_some())
    }

    /// Relocations against the dynamic symbol table.
    fn dynamic_relocs(&self) -> Vec<Dynamic> {
        let dynamic = |section: &elf::Section<'_>| {
            let linked = self.table.get(section.link).filter(|_| section.link != 0);
            linked.is_some_and(|linked| linked.kind == SectionKind::DynamicSymbols)
        };
        let linked = self.elf.kind.is_linked();
        let sections = self.table.iter().enumerate();
        let mut relocs: Vec<Dynamic> = sections
            .filter(|(_, section)| linked && dynamic(section))
            .flat_map(|(section, _)| self.elf.relocations(section))
            // Sections that share bytes could claim endless ones.
            .take(self.elf.most_relocations())
            .map(|reloc| Dynamic {
                address: reloc.address,
                symbol: reloc.symbol.map(|symbol| symbol - 1),
            })
            .collect();
        order::sort_by_key(&mut relocs, |r| r.address);
        relocs
    }

    /// `name@plt` for each entry of `.plt`: 32 bytes of header, then 16 bytes
    /// per relocation of `.rela.plt`.
    fn linkage(&self, sections: &[Section<'a>], dynamic: &[Symbol]) -> Vec<Symbol> {
        let by_name = |name: &[u8]| elf::section_by_name(self.table, name);
        let (Some((relocs, _)), Some((plt, _))) = (by_name(b".rela.plt"), by_name(b".plt")) else {
            return Vec::new();
        };
        let Some(start) = sections.get(plt).map(|s| s.address) else {
            return Vec::new();
        };
        if !self.elf.kind.is_linked() || dynamic.is_empty() {
            return Vec::new();
        }
        let entry = |(i, reloc): (usize, Relocation)| {
            let target = dynamic.get(reloc.symbol?.checked_sub(1)?)?;
            let plus = match reloc.addend {
                0 => String::new(),
                addend => format!("+{:#x}", addend as u64),
            };
            Some(Symbol {
                value: start.wrapping_add(32 + 16 * i as u64),
                place: Place::Section(plt),
                name: format!("{}{plus}@plt", self.names.copy(target.name.as_bytes())),
                raw: None,
                version: String::new(),
                synthetic: true,
                size: target.size,
                kind: target.kind,
                bind: target.bind,
            })
        };
        let relocs = self.elf.relocations(relocs).enumerate();
        relocs.filter_map(entry).collect()
    }
}

/// Names are bytes; control characters are shown as `^X`.
pub(crate) fn printable(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    if !text.bytes().any(|b| b.is_ascii_control()) {
        return text.into_owned();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if c.is_ascii_control() {
            out.push('^');
            out.push(char::from((c as u8).wrapping_add(0x40)));
        } else {
            out.push(c);
        }
    }
    out
}
