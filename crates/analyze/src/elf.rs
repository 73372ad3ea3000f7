//! What symbols and listings need of an ELF file, read once into plain
//! values. Tables that do not parse are empty; only a file that is no ELF
//! file for RISC-V is refused.

use hartrace_isa::attributes::Attributes;
use hartrace_isa::{Isa, Xlen};
use object::elf as e;
use object::read::elf::{
    FileHeader, Rela, SectionHeader, SectionTable, Sym, SymbolTable, VersionTable,
};
use object::{Endianness, SymbolIndex};
use std::cell::Cell;
use std::fmt;

/// Why a file was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElfError {
    /// Not an ELF file, or one whose header does not hold together.
    NotElf,
    /// An ELF file for another machine; its `e_machine`.
    Machine(u16),
    /// A big-endian file; nobody makes those for RISC-V code.
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

/// One section.
pub(crate) struct Section<'a> {
    pub(crate) name: String,
    pub(crate) address: u64,
    /// Code with contents: what a listing shows.
    pub(crate) code: bool,
    pub(crate) data: &'a [u8],
}

/// Where a symbol lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Undefined,
    Common,
    Absolute,
    Section(usize),
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

const ATTRIBUTES: u32 = 0x7000_0003;

/// Names may overlap in the string table, so a small file can claim endless
/// ones. Beyond this many times the size of the file they are empty.
const NAMES_PER_FILE: usize = 16;

impl<'a> Elf<'a> {
    pub(crate) fn parse(data: &'a [u8]) -> Result<Elf<'a>, ElfError> {
        match data.get(..5) {
            Some([0x7f, b'E', b'L', b'F', 1]) => read::<e::FileHeader32<Endianness>>(data),
            Some([0x7f, b'E', b'L', b'F', 2]) => read::<e::FileHeader64<Endianness>>(data),
            _ => Err(ElfError::NotElf),
        }
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

fn read<H: FileHeader<Endian = Endianness>>(data: &[u8]) -> Result<Elf<'_>, ElfError> {
    let header = H::parse(data).map_err(|_| ElfError::NotElf)?;
    let endian = header.endian().map_err(|_| ElfError::NotElf)?;
    if endian != Endianness::Little {
        return Err(ElfError::BigEndian);
    }
    let machine = header.e_machine(endian);
    if machine != e::EM_RISCV {
        return Err(ElfError::Machine(machine.0));
    }
    let kind = header.e_type(endian);
    let linked = kind == e::ET_EXEC || kind == e::ET_DYN;
    let table = header.sections(endian, data).unwrap_or_default();
    let names = Names(Cell::new(data.len().saturating_mul(NAMES_PER_FILE)));
    let mut attributes = None;
    let mut sections = Vec::new();
    for section in table.iter() {
        let bytes = section.data(endian, data).unwrap_or_default();
        let name = table.section_name(endian, section).unwrap_or_default();
        if section.sh_type(endian).0 == ATTRIBUTES {
            attributes = Some(bytes);
        }
        let code = section.sh_flags(endian).contains(e::SHF_EXECINSTR);
        sections.push(Section {
            name: names.copy(name),
            address: section.sh_addr(endian).into(),
            code: code && section.sh_type(endian) != e::SHT_NOBITS,
            data: bytes,
        });
    }
    let file = File {
        names,
        endian,
        data,
        table,
        linked,
    };
    let versions = file.table.versions(endian, data).ok().flatten();
    let own = file.symbols(e::SHT_SYMTAB, None, &sections);
    let dynamic = file.symbols(e::SHT_DYNSYM, versions.as_ref(), &sections);
    let mut symbols = if own.is_empty() { dynamic.clone() } else { own };
    symbols.extend(file.linkage(&sections, &dynamic));
    Ok(Elf {
        wide: header.is_class_64(),
        linked,
        relocations: !linked && file.has_relocations(),
        relocs: file.dynamic_relocs(),
        sections,
        symbols,
        dynamic,
        attributes,
    })
}

struct File<'a, H: FileHeader<Endian = Endianness>> {
    endian: Endianness,
    data: &'a [u8],
    table: SectionTable<'a, H>,
    linked: bool,
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

impl<'a, H: FileHeader<Endian = Endianness>> File<'a, H> {
    /// All symbols of one table but the null one, by index minus one.
    fn symbols(
        &self,
        kind: e::SectionType,
        versions: Option<&VersionTable<'a, H>>,
        sections: &[Section<'a>],
    ) -> Vec<Symbol> {
        let endian = self.endian;
        let table: SymbolTable<'a, H> = self
            .table
            .symbols(endian, self.data, kind)
            .unwrap_or_default();
        let symbols = table.enumerate().filter(|(index, _)| index.0 != 0);
        symbols
            .map(|(index, symbol)| {
                let place = match symbol.st_shndx(endian) {
                    e::SHN_UNDEF => Place::Undefined,
                    e::SHN_COMMON => Place::Common,
                    e::SHN_ABS => Place::Absolute,
                    other => match table.symbol_section(endian, symbol, index) {
                        Ok(Some(section)) => Place::Section(section.0),
                        _ => Place::Section(usize::from(other.0)),
                    },
                };
                let name = symbol.name(endian, table.strings()).unwrap_or_default();
                let bytes = name;
                let mut name = self.names.copy(bytes);
                let raw = (!name.is_empty() && name.as_bytes() != bytes).then(|| bytes.to_vec());
                // A section symbol is called what its section is.
                if let (Place::Section(at), e::STT_SECTION, "") = (place, symbol.st_type(), &*name)
                    && let Some(section) = sections.get(at)
                {
                    name = self.names.copy(section.name.as_bytes());
                }
                Symbol {
                    value: symbol.st_value(endian).into(),
                    size: symbol.st_size(endian).into(),
                    place,
                    name,
                    raw,
                    version: versions
                        .map(|v| self.version(v, index, place == Place::Undefined))
                        .unwrap_or_default(),
                    kind: symbol.st_type().0,
                    bind: symbol.st_bind().0,
                    synthetic: false,
                }
            })
            .collect()
    }

    /// As objdump shows it: `@@` for the default version and `@` for others;
    /// the file's own base version is `Base`.
    fn version(
        &self,
        versions: &VersionTable<'a, H>,
        index: SymbolIndex,
        undefined: bool,
    ) -> String {
        let number = versions.version_index(self.endian, index);
        if number.is_local() {
            return String::new();
        }
        let (name, needed) = match versions.version(number.index()) {
            Ok(Some(version)) => (self.names.copy(version.name()), version.file().is_some()),
            Ok(None) => ("Base".to_owned(), false),
            Err(_) => ("<corrupt>".to_owned(), false),
        };
        let at = if undefined || needed || number.is_hidden() {
            "@"
        } else {
            "@@"
        };
        format!("{at}{name}")
    }

    fn rela(&self, section: &H::SectionHeader) -> &'a [H::Rela] {
        let found = section.rela(self.endian, self.data).ok().flatten();
        found.map(|(rela, _)| rela).unwrap_or_default()
    }

    fn has_relocations(&self) -> bool {
        self.table.iter().any(|s| !self.rela(s).is_empty())
    }

    /// Relocations against the dynamic symbol table.
    fn dynamic_relocs(&self) -> Vec<Dynamic> {
        let endian = self.endian;
        let dynsym = |s: &H::SectionHeader| {
            let linked = self.table.section(s.link(endian));
            linked.is_ok_and(|l| l.sh_type(endian) == e::SHT_DYNSYM)
        };
        let mut relocs: Vec<Dynamic> = self
            .table
            .iter()
            .filter(|s| self.linked && dynsym(s))
            .flat_map(|s| self.rela(s))
            // Sections that share bytes could claim endless ones.
            .take(self.data.len() / size_of::<H::Rela>())
            .map(|rela| Dynamic {
                address: rela.r_offset(endian).into(),
                symbol: rela.symbol(endian, false).map(|s| s.0 - 1),
            })
            .collect();
        relocs.sort_by_key(|r| r.address);
        relocs
    }

    /// `name@plt` for each entry of `.plt`: 32 bytes of header, then 16 bytes
    /// per relocation of `.rela.plt`.
    fn linkage(&self, sections: &[Section<'a>], dynamic: &[Symbol]) -> Vec<Symbol> {
        let endian = self.endian;
        let by_name = |name: &[u8]| self.table.section_by_name(endian, name);
        let (Some((_, relocs)), Some((plt, _))) = (by_name(b".rela.plt"), by_name(b".plt")) else {
            return Vec::new();
        };
        let Some(start) = sections.get(plt.0).map(|s| s.address) else {
            return Vec::new();
        };
        if !self.linked || dynamic.is_empty() {
            return Vec::new();
        }
        let entry = |(i, rela): (usize, &H::Rela)| {
            let index = rela.symbol(endian, false)?.0.checked_sub(1)?;
            let target = dynamic.get(index)?;
            let addend: i64 = rela.r_addend(endian).into();
            let plus = match addend {
                0 => String::new(),
                _ => format!("+{:#x}", addend as u64),
            };
            Some(Symbol {
                value: start.wrapping_add(32 + 16 * i as u64),
                place: Place::Section(plt.0),
                name: format!("{}{plus}@plt", self.names.copy(target.name.as_bytes())),
                raw: None,
                version: String::new(),
                synthetic: true,
                size: target.size,
                kind: target.kind,
                bind: target.bind,
            })
        };
        self.rela(relocs)
            .iter()
            .enumerate()
            .filter_map(entry)
            .collect()
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
