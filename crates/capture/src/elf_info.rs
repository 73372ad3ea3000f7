//! What an ELF file says about itself.

use hartrace_isa::attributes;
use object::elf;
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader, SectionHeader, SectionTable};
use object::{LittleEndian as Le, ReadRef as _, SectionIndex};
use std::fmt;

/// What an ELF file says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElfInfo {
    /// 32 or 64.
    pub bits: u32,
    /// What the file is for.
    pub kind: ElfKind,
    /// Where execution starts; 0 in objects and most libraries.
    pub entry: u64,
    /// Calling convention and the like, as the header's flags give them.
    pub abi: Abi,
    /// The instruction set from the attributes section, as the tool chain
    /// wrote it.
    pub isa: Option<String>,
    /// What is loaded into memory.
    pub segments: Vec<Segment>,
    /// The sections with code.
    pub code: Vec<Section>,
    /// Symbols, static and dynamic.
    pub symbols: u64,
    /// Whether there are DWARF line tables.
    pub line_info: bool,
    /// The GNU build id.
    pub build_id: Option<Vec<u8>>,
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
    bits: u32,
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
        f.write_str(if self.bits == 64 { "lp64" } else { "ilp32" })?;
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

/// A part of the file that is loaded into memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its first address.
    pub address: u64,
    /// Bytes in the file.
    pub file_size: u64,
    /// Bytes in memory; those the file lacks are zero.
    pub memory_size: u64,
    /// Readable, writable, executable.
    pub access: [bool; 3],
}

/// A section with code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its name; what is not UTF-8 is replaced. Empty where the names of a
    /// file add up to many times its size.
    pub name: String,
    /// Its first address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
}

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

impl fmt::Display for ElfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElfError::NotElf => f.write_str("not an ELF file"),
            ElfError::Truncated => f.write_str("the file ends within the ELF header"),
            ElfError::Class(class) => write!(f, "ELF class {class} is neither 32 nor 64 bits"),
            ElfError::BigEndian => f.write_str("a big-endian ELF file"),
            ElfError::Machine(machine) => {
                write!(f, "an ELF file for {}, not RISC-V", machine_name(*machine))
            }
            ElfError::Damaged { part, reason } => write!(f, "{part}: {reason}"),
        }
    }
}

impl std::error::Error for ElfError {}

/// The machines people mix up with ours.
fn machine_name(machine: u16) -> String {
    let name = match elf::Machine(machine) {
        elf::EM_X86_64 => "x86-64",
        elf::EM_386 => "x86",
        elf::EM_AARCH64 => "AArch64",
        elf::EM_ARM => "Arm",
        elf::EM_MIPS => "MIPS",
        elf::EM_PPC64 => "PowerPC",
        elf::EM_LOONGARCH => "LoongArch",
        _ => return format!("machine {machine}"),
    };
    name.to_owned()
}

impl ElfInfo {
    /// Reads the headers of a whole file.
    ///
    /// # Errors
    ///
    /// What is not a RISC-V ELF file, and headers that point outside of it.
    pub fn read(bytes: &[u8]) -> Result<ElfInfo, ElfError> {
        if !bytes.starts_with(&elf::ELFMAG) {
            return Err(ElfError::NotElf);
        }
        let [class, data] = bytes
            .get(4..6)
            .and_then(|b| b.try_into().ok())
            .ok_or(ElfError::Truncated)?;
        if data == elf::ELFDATA2MSB.0 {
            return Err(ElfError::BigEndian);
        }
        if class == elf::ELFCLASS64.0 {
            Reader::<elf::FileHeader64<Le>>::open(bytes)?.info()
        } else if class == elf::ELFCLASS32.0 {
            Reader::<elf::FileHeader32<Le>>::open(bytes)?.info()
        } else {
            Err(ElfError::Class(class))
        }
    }
}

struct Reader<'a, E: FileHeader<Endian = Le>> {
    bytes: &'a [u8],
    header: &'a E,
    sections: SectionTable<'a, E>,
    /// The section names, up to the last one that ends.
    names: &'a [u8],
}

/// Sections may share bytes, so a small file can claim endless names. Beyond
/// this many times the size of the file they are empty.
const NAMES_PER_FILE: usize = 16;

/// Bytes that may still be read of what sections share.
struct Room {
    names: usize,
    /// Of notes and attributes: as many as the file has.
    scans: usize,
}

impl Room {
    /// The name that starts here, as long as there is room for it.
    fn name(&mut self, tail: &[u8]) -> String {
        let within = tail.get(..self.names).unwrap_or(tail);
        let Some(end) = within.iter().position(|&b| b == 0) else {
            self.names = 0;
            return String::new();
        };
        self.names -= end;
        text(tail)
    }

    /// Whether a section may be searched.
    fn scan(&mut self, data: &[u8]) -> bool {
        let rest = self.scans.checked_sub(data.len());
        self.scans = rest.unwrap_or(self.scans);
        rest.is_some()
    }
}

/// The text up to the first zero.
fn text(tail: &[u8]) -> String {
    let name = tail.split(|&b| b == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

fn damaged(part: impl Into<String>, reason: &'static str) -> ElfError {
    let part = part.into();
    ElfError::Damaged { part, reason }
}

const OUTSIDE: &str = "does not lie within the file";

impl<'a, E: FileHeader<Endian = Le>> Reader<'a, E> {
    fn open(bytes: &'a [u8]) -> Result<Self, ElfError> {
        let header: &E = bytes.read_at(0).map_err(|()| ElfError::Truncated)?;
        let machine = header.e_machine(Le);
        if machine != elf::EM_RISCV {
            return Err(ElfError::Machine(machine.0));
        }
        if !header.is_supported() {
            return Err(damaged(
                "the ELF header",
                "has an unknown version or byte order",
            ));
        }
        let table = |_| damaged("the section header table", OUTSIDE);
        let sections = header.sections(Le, bytes).map_err(table)?;
        let names = header.shstrndx(Le, bytes).unwrap_or_default();
        let names = sections.section(SectionIndex(names as usize));
        let names = names.and_then(|s| s.data(Le, bytes)).unwrap_or_default();
        let end = names.iter().rposition(|&b| b == 0).map_or(0, |at| at + 1);
        Ok(Reader {
            bytes,
            header,
            sections,
            names: names.get(..end).unwrap_or_default(),
        })
    }

    fn info(&self) -> Result<ElfInfo, ElfError> {
        let header = self.header;
        let bits = if header.is_class_64() { 64 } else { 32 };
        let flags = header.e_flags(Le).0;
        let mut info = ElfInfo {
            bits,
            kind: match header.e_type(Le) {
                elf::ET_REL => ElfKind::Relocatable,
                elf::ET_EXEC => ElfKind::Executable,
                elf::ET_DYN => ElfKind::Shared,
                elf::ET_CORE => ElfKind::Core,
                other => ElfKind::Other(other.0),
            },
            entry: header.e_entry(Le).into(),
            abi: Abi { bits, flags },
            isa: None,
            segments: self.segments()?,
            code: Vec::new(),
            symbols: 0,
            line_info: false,
            build_id: None,
        };
        let mut room = Room {
            names: self.bytes.len().saturating_mul(NAMES_PER_FILE),
            scans: self.bytes.len(),
        };
        for section in self.sections.iter() {
            self.section(section, &mut info, &mut room)?;
        }
        Ok(info)
    }

    fn segments(&self) -> Result<Vec<Segment>, ElfError> {
        let headers = self.header.program_headers(Le, self.bytes);
        let headers = headers.map_err(|_| damaged("the program header table", OUTSIDE))?;
        let loaded = headers.iter().filter(|h| h.p_type(Le) == elf::PT_LOAD);
        let segments = loaded.map(|header| {
            let address: u64 = header.p_vaddr(Le).into();
            let file_size: u64 = header.p_filesz(Le).into();
            let memory_size: u64 = header.p_memsz(Le).into();
            let part = || format!("the segment at {address:#x}");
            header
                .data(Le, self.bytes)
                .map_err(|()| damaged(part(), OUTSIDE))?;
            if memory_size < file_size {
                return Err(damaged(part(), "is larger in the file than in memory"));
            }
            if address.checked_add(memory_size.saturating_sub(1)).is_none() {
                return Err(damaged(part(), "reaches beyond the address space"));
            }
            let flags = header.p_flags(Le).0;
            let access = [elf::PF_R, elf::PF_W, elf::PF_X].map(|flag| flags & flag.0 != 0);
            Ok(Segment {
                address,
                file_size,
                memory_size,
                access,
            })
        });
        segments.collect()
    }

    fn section(
        &self,
        section: &'a E::SectionHeader,
        info: &mut ElfInfo,
        room: &mut Room,
    ) -> Result<(), ElfError> {
        let name = self.names.get(section.sh_name(Le) as usize..);
        let name = name.filter(|tail| !tail.is_empty());
        let name = name.ok_or_else(|| damaged("the section name table", OUTSIDE))?;
        let part = || format!("section `{}`", text(name).escape_debug());
        let kind = section.sh_type(Le);
        if kind == elf::SHT_NULL {
            return Ok(());
        }
        let data = section.data(Le, self.bytes);
        let data = data.map_err(|_| damaged(part(), OUTSIDE))?;
        let size: u64 = section.sh_size(Le).into();
        match kind {
            elf::SHT_SYMTAB | elf::SHT_DYNSYM => {
                let entry = size_of::<E::Sym>() as u64;
                // The first one is always empty.
                info.symbols += (size / entry).saturating_sub(1);
            }
            elf::SHT_NOTE if info.build_id.is_none() && room.scan(data) => {
                info.build_id = build_id::<E>(section.sh_addralign(Le), data);
            }
            elf::SHT_RISCV_ATTRIBUTES if info.isa.is_none() && room.scan(data) => {
                info.isa = attributes::arch(data).map(str::to_owned);
            }
            _ => {}
        }
        let lines: [&[u8]; 2] = [b".debug_line\0", b".zdebug_line\0"];
        info.line_info |= size > 0 && lines.iter().any(|lines| name.starts_with(lines));
        let flags = section.sh_flags(Le).0;
        let wanted = elf::SHF_ALLOC.0 | elf::SHF_EXECINSTR.0;
        if flags & wanted == wanted && size > 0 {
            let address = section.sh_addr(Le).into();
            info.code.push(Section {
                name: room.name(name),
                address,
                size,
            });
        }
        Ok(())
    }
}

fn build_id<E: FileHeader<Endian = Le>>(align: E::Word, data: &[u8]) -> Option<Vec<u8>> {
    let mut notes = NoteIterator::<E>::new(Le, align, data).ok()?;
    while let Some(note) = notes.next().ok()? {
        let is_gnu = note.name() == elf::ELF_NOTE_GNU;
        if is_gnu && note.n_type(Le) == elf::NT_GNU_BUILD_ID {
            return Some(note.desc().to_vec());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const RV64: &[u8] = include_bytes!("../../../programs/sieve/sieve-rv64gc.elf");
    const RV32: &[u8] = include_bytes!("../../../programs/sieve/sieve-rv32imac.elf");

    #[test]
    fn facts_of_the_sieve() {
        let info = ElfInfo::read(RV64).unwrap();
        assert_eq!(
            (info.bits, info.kind, info.entry),
            (64, ElfKind::Executable, 0x8000_0000)
        );
        assert_eq!(info.abi.to_string(), "lp64d");
        assert!(info.abi.compressed() && !info.abi.total_store_order());
        assert!(info.isa.unwrap().starts_with("rv64i2p1_m2p0_a2p1"));
        assert_eq!(info.segments.len(), 2);
        assert_eq!(info.segments[0].access, [true, false, true]);
        assert_eq!(info.code.len(), 1);
        assert_eq!(info.code[0].name, ".text");
        assert!(info.symbols > 10 && info.line_info);
        assert_eq!(info.build_id.unwrap().len(), 20);
        let info = ElfInfo::read(RV32).unwrap();
        assert_eq!((info.bits, info.abi.to_string().as_str()), (32, "ilp32"));
        assert!(info.isa.unwrap().starts_with("rv32i2p1_m2p0_a2p1_c2p0"));
    }

    #[test]
    fn every_truncation_is_refused() {
        for whole in [RV64, RV32] {
            for length in 0..whole.len() {
                let error = ElfInfo::read(&whole[..length]).unwrap_err();
                let expected = match length {
                    0..4 => matches!(error, ElfError::NotElf),
                    4..52 => matches!(error, ElfError::Truncated),
                    _ => matches!(error, ElfError::Truncated | ElfError::Damaged { .. }),
                };
                assert!(expected, "{length}: {error}");
            }
        }
    }

    #[test]
    fn any_byte_may_be_anything() {
        for whole in [RV64, RV32] {
            let mut bytes = whole.to_vec();
            let tables = whole.len() - 64 * 22;
            for at in (0..0x200).chain(tables..whole.len()) {
                for value in [0, 1, 0x7f, 0x80, 0xff] {
                    let old = std::mem::replace(&mut bytes[at], value);
                    let _ = ElfInfo::read(&bytes);
                    bytes[at] = old;
                }
            }
        }
    }

    #[test]
    fn other_machines_are_named() {
        let mut bytes = RV64.to_vec();
        bytes[18] = 62;
        bytes[19] = 0;
        let error = ElfInfo::read(&bytes).unwrap_err();
        assert_eq!(error.to_string(), "an ELF file for x86-64, not RISC-V");
        bytes[5] = 2;
        assert_eq!(ElfInfo::read(&bytes), Err(ElfError::BigEndian));
        bytes[5] = 1;
        bytes[4] = 9;
        assert_eq!(ElfInfo::read(&bytes), Err(ElfError::Class(9)));
    }

    const HEADER: usize = 64;

    /// A file of one area of bytes, which is also the names, and sections of
    /// one kind: where their names start, and which bytes of the area they are.
    fn file(area: &[u8], kind: u32, sections: &[(usize, std::ops::Range<usize>)]) -> Vec<u8> {
        let mut file = RV64[..HEADER].to_vec();
        // No program headers; the area, and then the section headers.
        file[32..40].fill(0);
        file[56..58].fill(0);
        file[40..48].copy_from_slice(&((HEADER + area.len()) as u64).to_le_bytes());
        file[60..62].copy_from_slice(&(sections.len() as u16 + 2).to_le_bytes());
        file[62..64].copy_from_slice(&1u16.to_le_bytes());
        file.extend(area);
        let flags = u64::from(elf::SHF_ALLOC.0 as u32 | elf::SHF_EXECINSTR.0 as u32);
        let mut header = |name: usize, kind: u32, bytes: &std::ops::Range<usize>| {
            file.extend((name as u32).to_le_bytes());
            file.extend(kind.to_le_bytes());
            let offset = (HEADER + bytes.start) as u64;
            for word in [flags, 0, offset, bytes.len() as u64, 0, 4, 0] {
                file.extend(word.to_le_bytes());
            }
        };
        header(0, elf::SHT_NULL.0, &(0..0));
        header(0, elf::SHT_STRTAB.0, &(0..area.len()));
        for (name, bytes) in sections {
            header(*name, kind, bytes);
        }
        file
    }

    #[test]
    fn overlapping_names_are_bounded() {
        let mut area = vec![b'a'; 1 << 16];
        *area.first_mut().unwrap() = 0;
        *area.last_mut().unwrap() = 0;
        let sections: Vec<_> = (1..=1000).map(|at| (at, 0..4)).collect();
        let file = file(&area, elf::SHT_PROGBITS.0, &sections);
        let info = ElfInfo::read(&file).unwrap();
        // The area is among them: it has the same flags.
        assert_eq!(info.code.len(), 1001);
        assert_eq!(info.code[1].name, "a".repeat((1 << 16) - 2));
        assert_eq!(info.code[1000].name, "");
        let total: usize = info.code.iter().map(|s| s.name.len()).sum();
        assert!(total > file.len() && total <= NAMES_PER_FILE * file.len());
    }

    #[test]
    fn names_end_within_their_table() {
        for (area, name, fair) in [
            (b"\0.text\0", 1, true),
            (b"\0.text\0", 7, false),
            (b"\0.textx", 1, false),
            (b"\0.te\0xt", 1, true),
            (b"\0.te\0xt", 5, false),
        ] {
            let file = file(area, elf::SHT_PROGBITS.0, &[(name, 0..4)]);
            let error = "the section name table: does not lie within the file";
            let read = ElfInfo::read(&file).map_err(|e| e.to_string());
            assert_eq!(read.is_ok(), fair, "{area:?} {name}");
            assert!(fair || read == Err(error.to_owned()));
        }
    }

    #[test]
    fn notes_that_share_bytes_are_not_searched_again_and_again() {
        // Empty notes, then one with a build id.
        let mut area = vec![0; 12 << 12];
        let id = area.len();
        area.extend(b"\x04\0\0\0\x02\0\0\0\x03\0\0\0GNU\0id\0\0");
        let [whole, empty, last] = [0..area.len(), 0..id, id..area.len()].map(|r| (0, r));
        let found = |sections: &[_]| {
            let file = file(&area, elf::SHT_NOTE.0, sections);
            ElfInfo::read(&file).unwrap().build_id
        };
        let id = Some(b"id".to_vec());
        assert_eq!(found(std::slice::from_ref(&whole)), id);
        assert_eq!(found(&[empty.clone(), last]), id);
        assert_eq!(found(&[empty, whole]), None);
    }

    #[test]
    fn attributes_that_share_bytes_are_not_searched_again_and_again() {
        let mut area = b"A\x16\0\0\0riscv\0\x01\x0c\0\0\0\x05rv32i\0".to_vec();
        area.resize(4096, 0);
        let (whole, without) = ((0, 0..area.len()), (0, 1..area.len()));
        let found = |sections: &[_]| {
            let file = file(&area, elf::SHT_RISCV_ATTRIBUTES.0, sections);
            ElfInfo::read(&file).unwrap().isa
        };
        assert_eq!(
            found(std::slice::from_ref(&whole)).as_deref(),
            Some("rv32i")
        );
        assert_eq!(found(&[without, whole]), None);
    }
}
