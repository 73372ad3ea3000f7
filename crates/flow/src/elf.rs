//! ELF files for RISC-V, as plain values over the bytes of the file.
//!
//! [`Elf::parse`] checks the header and nothing else. Each table is read on
//! demand, and a table outside the file is an error of that table alone. A file
//! may claim anything: nothing here takes more time or memory than a few times
//! the size of the file, except names, which may overlap (see [`Name`]).

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use hartrace_isa::Xlen;
use object::read::elf::{
    FileHeader, NoteIterator, ProgramHeader, Rela, SectionHeader, SectionTable, Sym, SymbolTable,
    VersionTable,
};
use object::{LittleEndian as Le, ReadRef as _, SectionIndex, SymbolIndex, elf};

/// Why a file is not one we can use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElfError {
    /// It does not start as ELF files do.
    NotElf,
    /// It ends within the file header.
    Truncated,
    /// A class that is neither 32 nor 64 bits.
    Class(u8),
    /// Big-endian, which no RISC-V program for these tools is.
    BigEndian,
    /// For another machine; its ELF number.
    Machine(u16),
    /// A table or a part of the program does not lie within the file.
    Damaged {
        /// Which part.
        part: String,
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl ElfError {
    /// A part that is wrong for this reason.
    pub fn damaged(part: impl Into<String>, reason: &'static str) -> ElfError {
        let part = part.into();
        ElfError::Damaged { part, reason }
    }

    /// A part that does not lie within the file.
    pub fn outside(part: impl Into<String>) -> ElfError {
        ElfError::damaged(part, "is not inside the file")
    }
}

impl fmt::Display for ElfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElfError::NotElf => f.write_str("not an ELF file"),
            ElfError::Truncated => f.write_str("the file ends inside the ELF header"),
            ElfError::Class(class) => write!(f, "ELF class {class} is neither 32 nor 64 bits"),
            ElfError::BigEndian => f.write_str("a big-endian ELF file"),
            ElfError::Machine(machine) => {
                f.write_str("an ELF file for ")?;
                match machine_name(*machine) {
                    Some(name) => f.write_str(name)?,
                    None => write!(f, "machine {machine}")?,
                }
                f.write_str(", not RISC-V")
            }
            ElfError::Damaged { part, reason } => write!(f, "{part}: {reason}"),
        }
    }
}

impl core::error::Error for ElfError {}

/// The machines people mix up with ours.
fn machine_name(machine: u16) -> Option<&'static str> {
    Some(match elf::Machine(machine) {
        elf::EM_X86_64 => "x86-64",
        elf::EM_386 => "x86",
        elf::EM_AARCH64 => "AArch64",
        elf::EM_ARM => "Arm",
        elf::EM_MIPS => "MIPS",
        elf::EM_PPC64 => "PowerPC",
        elf::EM_LOONGARCH => "LoongArch",
        _ => return None,
    })
}

/// What an ELF file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElfKind {
    /// Not linked yet.
    Relocatable,
    /// Linked to fixed addresses.
    Executable,
    /// A library or a position-independent executable.
    Shared,
    /// The memory of a process.
    Core,
    /// None of these.
    Other(u16),
}

impl ElfKind {
    /// An executable or a shared object.
    #[must_use]
    pub const fn is_linked(self) -> bool {
        matches!(self, ElfKind::Executable | ElfKind::Shared)
    }
}

impl fmt::Display for ElfKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElfKind::Relocatable => f.write_str("relocatable"),
            ElfKind::Executable => f.write_str("executable"),
            ElfKind::Shared => f.write_str("shared or position-independent"),
            ElfKind::Core => f.write_str("core"),
            ElfKind::Other(code) => write!(f, "type {code:#x}"),
        }
    }
}

/// The header's flags (RISC-V ELF psABI, "File Header").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abi {
    xlen: Xlen,
    flags: u32,
}

impl Abi {
    /// Whether the code may have compressed instructions.
    #[must_use]
    pub fn compressed(self) -> bool {
        self.has(elf::EF_RISCV_RVC)
    }

    /// Whether the code relies on total store ordering.
    #[must_use]
    pub fn total_store_order(self) -> bool {
        self.has(elf::EF_RISCV_TSO)
    }

    fn has(self, flag: elf::FileFlags) -> bool {
        self.flags & flag.0 != 0
    }
}

/// The name compilers use: `lp64d`, `ilp32e`.
impl fmt::Display for Abi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.xlen {
            Xlen::Rv64 => "lp64",
            Xlen::Rv32 => "ilp32",
        })?;
        let float = elf::FileFlags(self.flags & elf::EF_RISCV_FLOAT_ABI);
        f.write_str(match float {
            elf::EF_RISCV_FLOAT_ABI_SINGLE => "f",
            elf::EF_RISCV_FLOAT_ABI_DOUBLE => "d",
            elf::EF_RISCV_FLOAT_ABI_QUAD => "q",
            _ => "",
        })?;
        f.write_str(if self.has(elf::EF_RISCV_RVE) { "e" } else { "" })
    }
}

/// A name in a table of names. Names may overlap, so a small file can have
/// many long ones: where a name ends is looked for only when it is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Name<'a>(Option<&'a [u8]>);

impl<'a> Name<'a> {
    /// The name that starts here in a table that ends with a zero.
    fn new(table: &'a [u8], at: u32) -> Name<'a> {
        Name(table.get(at as usize..).filter(|tail| !tail.is_empty()))
    }

    /// From its first byte on, including what follows its end; `None` if it
    /// does not lie within its table.
    #[must_use]
    pub const fn tail(self) -> Option<&'a [u8]> {
        self.0
    }

    /// The name; nothing if it does not lie within its table.
    #[must_use]
    pub fn bytes(self) -> &'a [u8] {
        let tail = self.0.unwrap_or_default();
        tail.split(|&byte| byte == 0).next().unwrap_or_default()
    }

    /// Whether it is this one.
    #[must_use]
    pub fn is(self, name: &[u8]) -> bool {
        let rest = self.0.and_then(|tail| tail.strip_prefix(name));
        rest.is_some_and(|rest| rest.first() == Some(&0))
    }
}

/// A table of names up to the end of the last one.
fn names(table: &[u8]) -> &[u8] {
    let end = table.iter().rposition(|&byte| byte == 0);
    table.get(..end.map_or(0, |at| at + 1)).unwrap_or_default()
}

/// What a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// A part of the program.
    Load,
    /// The name of a program that loads this one.
    Interpreter,
    /// Anything else.
    Other,
}

/// A part of the file for loaders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// What it is.
    pub kind: SegmentKind,
    /// Its first address.
    pub address: u64,
    /// Its first physical address.
    pub physical: u64,
    /// Where it is in the file.
    pub offset: u64,
    /// Bytes in the file.
    pub file_size: u64,
    /// Bytes in memory.
    pub memory_size: u64,
    /// Readable, writable, executable.
    pub access: [bool; 3],
    /// Its bytes; `None` if they do not lie within the file.
    pub data: Option<&'a [u8]>,
}

/// What a section holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionKind {
    /// It is no section.
    Null,
    /// The symbols of a link.
    Symbols,
    /// The symbols of a dynamic link.
    DynamicSymbols,
    /// Notes.
    Notes,
    /// The attributes of RISC-V.
    Attributes,
    /// Zeros that are not in the file.
    Zeros,
    /// Anything else.
    Other,
}

/// A part of the file for linkers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section<'a> {
    /// Its name.
    pub name: Name<'a>,
    /// What it holds.
    pub kind: SectionKind,
    /// Its first address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// It is in memory when the program runs.
    pub loaded: bool,
    /// It has code.
    pub executable: bool,
    /// Its bytes are compressed.
    pub compressed: bool,
    /// Another section that belongs to it.
    pub link: usize,
    /// Its bytes; `None` if they do not lie within the file.
    pub data: Option<&'a [u8]>,
}

/// Where a symbol lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In another file.
    Undefined,
    /// Where the linker puts it.
    Common,
    /// At a value that is no address in a section.
    Absolute,
    /// In this section.
    Section(usize),
}

/// One symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// Its name.
    pub name: Name<'a>,
    /// Its value, most often an address.
    pub value: u64,
    /// Bytes of what it names.
    pub size: u64,
    /// Where it lives.
    pub place: Place,
    /// What it names, as its `STT_` code.
    pub kind: u8,
    /// Who sees it, as its `STB_` code.
    pub bind: u8,
    /// Its version, where it has one.
    pub version: Option<Version<'a>>,
}

/// The `STT_` code of symbols that stand for a section.
pub const SECTION_SYMBOL: u8 = elf::STT_SECTION.0;

/// The version of a dynamic symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version<'a> {
    /// Which.
    pub name: VersionName<'a>,
    /// Not the default one.
    pub hidden: bool,
}

/// The name of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionName<'a> {
    /// That of the file itself.
    Base,
    /// This one, of this file.
    Own(&'a [u8]),
    /// This one, of another file.
    Needed(&'a [u8]),
    /// There is no such version.
    Unknown,
}

/// A relocation with an addend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Where.
    pub address: u64,
    /// The number of its symbol, counted from 1; `None` if it has none.
    pub symbol: Option<usize>,
    /// What is added to the symbol.
    pub addend: i64,
}

/// An ELF file for RISC-V.
#[derive(Clone, Copy, Debug)]
pub struct Elf<'a> {
    file: &'a [u8],
    header: Header<'a>,
    /// What it is for.
    pub kind: ElfKind,
    /// Where execution starts; 0 in objects and most libraries.
    pub entry: u64,
    /// Calling convention and the like.
    pub abi: Abi,
}

#[derive(Clone, Copy, Debug)]
enum Header<'a> {
    Narrow(&'a elf::FileHeader32<Le>),
    Wide(&'a elf::FileHeader64<Le>),
}

/// The same for both classes.
macro_rules! either {
    ($elf:expr, $header:ident => $what:expr) => {
        match $elf.header {
            Header::Narrow($header) => $what,
            Header::Wide($header) => $what,
        }
    };
}

impl<'a> Elf<'a> {
    /// Reads the header of a file.
    ///
    /// # Errors
    ///
    /// What is not an ELF file for RISC-V.
    pub fn parse(file: &'a [u8]) -> Result<Elf<'a>, ElfError> {
        if !file.starts_with(&elf::ELFMAG) {
            return Err(ElfError::NotElf);
        }
        let Some(&[class, data]) = file.get(4..6) else {
            return Err(ElfError::Truncated);
        };
        if elf::DataEncoding(data) == elf::ELFDATA2MSB {
            return Err(ElfError::BigEndian);
        }
        match elf::FileClass(class) {
            elf::ELFCLASS32 => Elf::open(file, Header::Narrow, Xlen::Rv32),
            elf::ELFCLASS64 => Elf::open(file, Header::Wide, Xlen::Rv64),
            _ => Err(ElfError::Class(class)),
        }
    }

    fn open<H: FileHeader<Endian = Le>>(
        file: &'a [u8],
        of: fn(&'a H) -> Header<'a>,
        xlen: Xlen,
    ) -> Result<Elf<'a>, ElfError> {
        let header: &H = file.read_at(0).map_err(|()| ElfError::Truncated)?;
        let machine = header.e_machine(Le);
        if machine != elf::EM_RISCV {
            return Err(ElfError::Machine(machine.0));
        }
        if !header.is_supported() {
            let reason = "has an unknown version or byte order";
            return Err(ElfError::damaged("the ELF header", reason));
        }
        Ok(Elf {
            file,
            header: of(header),
            kind: match header.e_type(Le) {
                elf::ET_REL => ElfKind::Relocatable,
                elf::ET_EXEC => ElfKind::Executable,
                elf::ET_DYN => ElfKind::Shared,
                elf::ET_CORE => ElfKind::Core,
                other => ElfKind::Other(other.0),
            },
            entry: header.e_entry(Le).into(),
            abi: Abi {
                xlen,
                flags: header.e_flags(Le).0,
            },
        })
    }

    /// 32 or 64 bits.
    #[must_use]
    pub const fn xlen(&self) -> Xlen {
        self.abi.xlen
    }

    /// The whole file.
    #[must_use]
    pub const fn file(&self) -> &'a [u8] {
        self.file
    }

    /// The segments, in the order of the file.
    ///
    /// # Errors
    ///
    /// A table that cannot be read.
    pub fn segments(&self) -> Result<Vec<Segment<'a>>, ElfError> {
        either!(self, header => segments(header, self.file))
            .ok_or_else(|| ElfError::outside("the program header table"))
    }

    /// The segments that are loaded from the file: those with bytes in it.
    ///
    /// # Errors
    ///
    /// A table that cannot be read.
    pub fn loads(&self) -> Result<Vec<Segment<'a>>, ElfError> {
        let mut segments = self.segments()?;
        segments.retain(|s| s.kind == SegmentKind::Load && s.file_size != 0);
        Ok(segments)
    }

    /// The sections, in the order of the file.
    ///
    /// # Errors
    ///
    /// A table that cannot be read.
    pub fn sections(&self) -> Result<Vec<Section<'a>>, ElfError> {
        either!(self, header => sections(header, self.file))
            .ok_or_else(|| ElfError::outside("the section header table"))
    }

    /// The symbols of a link, or of a dynamic link with their versions, but
    /// for the first, which is none. A table that cannot be read has none.
    #[must_use]
    pub fn symbols(&self, dynamic: bool) -> Vec<Symbol<'a>> {
        either!(self, header => symbols(header, self.file, dynamic)).unwrap_or_default()
    }

    /// How many entries a table of symbols of so many bytes has.
    #[must_use]
    pub const fn symbols_in(&self, bytes: u64) -> u64 {
        let entry = match self.header {
            Header::Narrow(_) => size_of::<elf::Sym32<Le>>(),
            Header::Wide(_) => size_of::<elf::Sym64<Le>>(),
        };
        bytes / entry as u64
    }

    /// The relocations in a section; none if it holds something else.
    pub fn relocations(&self, section: usize) -> impl Iterator<Item = Relocation> + use<'a> {
        let (narrow, wide) = match self.header {
            Header::Narrow(header) => (relocations(header, self.file, section), &[][..]),
            Header::Wide(header) => (&[][..], relocations(header, self.file, section)),
        };
        narrow
            .iter()
            .map(relocation)
            .chain(wide.iter().map(relocation))
    }

    /// The most relocations there can be in the file, sections that share
    /// bytes aside.
    #[must_use]
    pub const fn most_relocations(&self) -> usize {
        let entry = match self.header {
            Header::Narrow(_) => size_of::<elf::Rela32<Le>>(),
            Header::Wide(_) => size_of::<elf::Rela64<Le>>(),
        };
        self.file.len() / entry
    }

    /// The GNU build id, if a section of notes has it.
    #[must_use]
    pub fn build_id(&self) -> Option<&'a [u8]> {
        either!(self, header => build_id(header, self.file))
    }
}

/// The first section of this name, and its number.
#[must_use]
pub fn section_by_name<'s, 'a>(
    sections: &'s [Section<'a>],
    name: &[u8],
) -> Option<(usize, &'s Section<'a>)> {
    sections.iter().enumerate().find(|(_, s)| s.name.is(name))
}

fn segments<'a, H: FileHeader<Endian = Le>>(
    header: &H,
    file: &'a [u8],
) -> Option<Vec<Segment<'a>>> {
    let headers = header.program_headers(Le, file).ok()?;
    let segment = |header: &H::ProgramHeader| {
        let flags = header.p_flags(Le).0;
        Segment {
            kind: match header.p_type(Le) {
                elf::PT_LOAD => SegmentKind::Load,
                elf::PT_INTERP => SegmentKind::Interpreter,
                _ => SegmentKind::Other,
            },
            address: header.p_vaddr(Le).into(),
            physical: header.p_paddr(Le).into(),
            offset: header.p_offset(Le).into(),
            file_size: header.p_filesz(Le).into(),
            memory_size: header.p_memsz(Le).into(),
            access: [elf::PF_R, elf::PF_W, elf::PF_X].map(|flag| flags & flag.0 != 0),
            data: header.data(Le, file).ok(),
        }
    };
    Some(headers.iter().map(segment).collect())
}

fn sections<'a, H: FileHeader<Endian = Le>>(
    header: &H,
    file: &'a [u8],
) -> Option<Vec<Section<'a>>> {
    let table = header.sections(Le, file).ok()?;
    let index = header.shstrndx(Le, file).unwrap_or_default();
    let text = table.section(SectionIndex(index as usize));
    let text = names(text.and_then(|s| s.data(Le, file)).unwrap_or_default());
    let section = |header: &H::SectionHeader| {
        let flags = header.sh_flags(Le);
        Section {
            name: Name::new(text, header.sh_name(Le)),
            kind: match header.sh_type(Le) {
                elf::SHT_NULL => SectionKind::Null,
                elf::SHT_SYMTAB => SectionKind::Symbols,
                elf::SHT_DYNSYM => SectionKind::DynamicSymbols,
                elf::SHT_NOTE => SectionKind::Notes,
                elf::SHT_RISCV_ATTRIBUTES => SectionKind::Attributes,
                elf::SHT_NOBITS => SectionKind::Zeros,
                _ => SectionKind::Other,
            },
            address: header.sh_addr(Le).into(),
            size: header.sh_size(Le).into(),
            loaded: flags.contains(elf::SHF_ALLOC),
            executable: flags.contains(elf::SHF_EXECINSTR),
            compressed: flags.contains(elf::SHF_COMPRESSED),
            link: header.link(Le).0,
            data: header.data(Le, file).ok(),
        }
    };
    Some(table.iter().map(section).collect())
}

fn symbols<'a, H: FileHeader<Endian = Le>>(
    header: &H,
    file: &'a [u8],
    dynamic: bool,
) -> Option<Vec<Symbol<'a>>> {
    let sections: SectionTable<'a, H> = header.sections(Le, file).ok()?;
    let kind = if dynamic {
        elf::SHT_DYNSYM
    } else {
        elf::SHT_SYMTAB
    };
    let table = sections.symbols(Le, file, kind).ok()?;
    let text = sections.section(table.string_section());
    let text = names(text.and_then(|s| s.data(Le, file)).unwrap_or_default());
    let versions = sections.versions(Le, file).ok().flatten();
    let versions = versions.filter(|_| dynamic);
    let all = table.enumerate().filter(|(index, _)| index.0 != 0);
    let symbol = |(index, symbol): (SymbolIndex, &H::Sym)| Symbol {
        name: Name::new(text, symbol.st_name(Le)),
        value: symbol.st_value(Le).into(),
        size: symbol.st_size(Le).into(),
        place: place(&table, index, symbol),
        kind: symbol.st_type().0,
        bind: symbol.st_bind().0,
        version: versions.as_ref().and_then(|v| version(v, index)),
    };
    Some(all.map(symbol).collect())
}

fn place<H: FileHeader<Endian = Le>>(
    table: &SymbolTable<'_, H>,
    index: SymbolIndex,
    symbol: &H::Sym,
) -> Place {
    match symbol.st_shndx(Le) {
        elf::SHN_UNDEF => Place::Undefined,
        elf::SHN_COMMON => Place::Common,
        elf::SHN_ABS => Place::Absolute,
        other => match table.symbol_section(Le, symbol, index) {
            Ok(Some(section)) => Place::Section(section.0),
            _ => Place::Section(other.0.into()),
        },
    }
}

fn version<'a, H: FileHeader<Endian = Le>>(
    versions: &VersionTable<'a, H>,
    index: SymbolIndex,
) -> Option<Version<'a>> {
    let number = versions.version_index(Le, index);
    if number.is_local() {
        return None;
    }
    Some(Version {
        name: match versions.version(number.index()) {
            Ok(Some(version)) if version.file().is_some() => VersionName::Needed(version.name()),
            Ok(Some(version)) => VersionName::Own(version.name()),
            Ok(None) => VersionName::Base,
            Err(_) => VersionName::Unknown,
        },
        hidden: number.is_hidden(),
    })
}

fn relocations<'a, H: FileHeader<Endian = Le>>(
    header: &H,
    file: &'a [u8],
    section: usize,
) -> &'a [H::Rela] {
    let headers = header.section_headers(Le, file).unwrap_or_default();
    let found = headers.get(section).and_then(|s| s.rela(Le, file).ok()?);
    found
        .map(|(relocations, _)| relocations)
        .unwrap_or_default()
}

fn relocation<R: Rela<Endian = Le>>(relocation: &R) -> Relocation {
    Relocation {
        address: relocation.r_offset(Le).into(),
        symbol: relocation.symbol(Le, false).map(|symbol| symbol.0),
        addend: relocation.r_addend(Le).into(),
    }
}

fn build_id<'a, H: FileHeader<Endian = Le>>(header: &H, file: &'a [u8]) -> Option<&'a [u8]> {
    // Sections may share bytes: no more of them are read than the file has.
    let mut room = file.len();
    let sections = header.section_headers(Le, file).ok()?;
    for section in sections {
        if section.sh_type(Le) != elf::SHT_NOTE {
            continue;
        }
        let Ok(data) = section.data(Le, file) else {
            continue;
        };
        room = room.checked_sub(data.len())?;
        let id = build_id_of::<H>(section.sh_addralign(Le), data);
        if id.is_some() {
            return id;
        }
    }
    None
}

/// The build id among the notes of a section.
fn build_id_of<H: FileHeader<Endian = Le>>(align: H::Word, data: &[u8]) -> Option<&[u8]> {
    let mut notes = NoteIterator::<H>::new(Le, align, data).ok()?;
    while let Some(note) = notes.next().ok()? {
        let is_gnu = note.name() == elf::ELF_NOTE_GNU;
        if is_gnu && note.n_type(Le) == elf::NT_GNU_BUILD_ID {
            return Some(note.desc());
        }
    }
    None
}

#[cfg(test)]
mod tests;
