//! Facts about an ELF file: header, segments, attributes, debug information.

use hartrace_flow::elf::{self, Elf, SectionKind, SegmentKind};
use hartrace_isa::attributes;

pub use hartrace_flow::elf::{Abi, ElfError, ElfKind};

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

/// Where linkers put programs for Linux, and for the proxy kernel `pk`.
const USER_PROGRAMS: std::ops::Range<u64> = 0x1_0000..0x2_0000;

/// What makes an ELF file look like a program for Linux or another system that
/// runs user programs.
#[must_use]
pub fn user_program(file: &[u8]) -> Option<String> {
    const LINUX: u8 = 3;
    let elf = Elf::parse(file).ok()?;
    let segments = elf.segments().ok()?;
    if segments.iter().any(|s| s.kind == SegmentKind::Interpreter) {
        return Some("it names a program interpreter: it is dynamically linked".to_owned());
    }
    if file.get(7) == Some(&LINUX) {
        return Some("its header names the ABI of GNU/Linux".to_owned());
    }
    let sections = elf.sections().unwrap_or_default();
    if sections.iter().any(|s| s.name.is(b".note.ABI-tag")) {
        return Some("it has a note for GNU/Linux, `.note.ABI-tag`".to_owned());
    }
    if (elf.symbols(false).iter()).any(|s| s.name.is(b"__libc_start_main")) {
        return Some("it is linked with the C library of an operating system".to_owned());
    }
    let loaded = segments.iter().filter(|s| s.kind == SegmentKind::Load);
    let first = loaded.map(|s| s.address).min()?;
    USER_PROGRAMS.contains(&first).then(|| {
        format!("it is linked to {first:#x}, as programs for Linux and for the proxy kernel are")
    })
}

impl ElfInfo {
    /// Reads the headers of a whole file.
    ///
    /// # Errors
    ///
    /// What is not a RISC-V ELF file, and headers that point outside of it.
    pub fn read(bytes: &[u8]) -> Result<ElfInfo, ElfError> {
        let elf = Elf::parse(bytes)?;
        let sections = elf.sections()?;
        let mut info = ElfInfo {
            bits: elf.xlen().bits(),
            kind: elf.kind,
            entry: elf.entry,
            abi: elf.abi,
            isa: None,
            segments: segments(&elf)?,
            code: Vec::new(),
            symbols: 0,
            line_info: false,
            build_id: elf.build_id().map(<[u8]>::to_vec),
        };
        let mut room = Room {
            names: bytes.len().saturating_mul(NAMES_PER_FILE),
            scans: bytes.len(),
        };
        for section in &sections {
            info.section(&elf, section, &mut room)?;
        }
        Ok(info)
    }

    fn section(
        &mut self,
        elf: &Elf<'_>,
        section: &elf::Section<'_>,
        room: &mut Room,
    ) -> Result<(), ElfError> {
        let name = section.name.tail();
        let name = name.ok_or_else(|| ElfError::outside("the section name table"))?;
        if section.kind == SectionKind::Null {
            return Ok(());
        }
        let part = || format!("section `{}`", text(section.name.bytes()).escape_debug());
        let data = section.data.ok_or_else(|| ElfError::outside(part()))?;
        match section.kind {
            SectionKind::Symbols | SectionKind::DynamicSymbols => {
                // The first one is always empty.
                self.symbols += elf.symbols_in(section.size).saturating_sub(1);
            }
            SectionKind::Attributes if self.isa.is_none() && room.scan(data) => {
                self.isa = attributes::arch(data).map(str::to_owned);
            }
            _ => {}
        }
        let lines: [&[u8]; 2] = [b".debug_line", b".zdebug_line"];
        self.line_info |= section.size > 0 && lines.iter().any(|lines| section.name.is(lines));
        if section.loaded && section.executable && section.size > 0 {
            self.code.push(Section {
                name: room.name(name),
                address: section.address,
                size: section.size,
            });
        }
        Ok(())
    }
}

/// Sections may share bytes, so a small file can claim endless names. Beyond
/// this many times the size of the file they are empty.
const NAMES_PER_FILE: usize = 16;

/// Bytes that may still be read of what sections share.
struct Room {
    names: usize,
    /// Of attributes: as many as the file has.
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
        text(within.get(..end).unwrap_or_default())
    }

    /// Whether a section may be searched.
    fn scan(&mut self, data: &[u8]) -> bool {
        let rest = self.scans.checked_sub(data.len());
        self.scans = rest.unwrap_or(self.scans);
        rest.is_some()
    }
}

/// What is not UTF-8 is replaced.
fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

fn segments(elf: &Elf<'_>) -> Result<Vec<Segment>, ElfError> {
    let mut segments = elf.segments()?;
    segments.retain(|segment| segment.kind == SegmentKind::Load);
    let segments = segments.iter().map(|segment| {
        let part = || format!("the segment at {:#x}", segment.address);
        if segment.data.is_none() {
            return Err(ElfError::outside(part()));
        }
        if segment.memory_size < segment.file_size {
            let reason = "is larger in the file than in memory";
            return Err(ElfError::damaged(part(), reason));
        }
        let last = segment.memory_size.saturating_sub(1);
        if segment.address.checked_add(last).is_none() {
            let reason = "reaches beyond the address space";
            return Err(ElfError::damaged(part(), reason));
        }
        Ok(Segment {
            address: segment.address,
            file_size: segment.file_size,
            memory_size: segment.memory_size,
            access: segment.access,
        })
    });
    segments.collect()
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

    const SHT_NULL: u32 = 0;
    const SHT_PROGBITS: u32 = 1;
    const SHT_STRTAB: u32 = 3;
    const SHT_NOTE: u32 = 7;
    const SHT_RISCV_ATTRIBUTES: u32 = 0x7000_0003;

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
        // SHF_ALLOC, SHF_EXECINSTR
        let flags = 2 | 4;
        let mut header = |name: usize, kind: u32, bytes: &std::ops::Range<usize>| {
            file.extend((name as u32).to_le_bytes());
            file.extend(kind.to_le_bytes());
            let offset = (HEADER + bytes.start) as u64;
            for word in [flags, 0, offset, bytes.len() as u64, 0, 4, 0] {
                file.extend(word.to_le_bytes());
            }
        };
        header(0, SHT_NULL, &(0..0));
        header(0, SHT_STRTAB, &(0..area.len()));
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
        let file = file(&area, SHT_PROGBITS, &sections);
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
            let file = file(area, SHT_PROGBITS, &[(name, 0..4)]);
            let error = "the section name table: is not inside the file";
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
            let file = file(&area, SHT_NOTE, sections);
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
            let file = file(&area, SHT_RISCV_ATTRIBUTES, sections);
            ElfInfo::read(&file).unwrap().isa
        };
        assert_eq!(
            found(std::slice::from_ref(&whole)).as_deref(),
            Some("rv32i")
        );
        assert_eq!(found(&[without, whole]), None);
    }
}
