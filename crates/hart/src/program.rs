//! Programs: what to put into memory and where to start.

use core::fmt;

use hartrace_isa::Xlen;
use object::elf;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};
use object::{Endianness, ReadRef};

/// Bytes to be put into memory, and zeros behind them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Physical address.
    pub addr: u64,
    /// Size in memory; behind the data it is zero.
    pub size: u64,
    /// What is there at the start.
    pub data: Vec<u8>,
}

/// A bare-metal program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// RV32 or RV64.
    pub xlen: Xlen,
    /// Where it starts.
    pub entry: u64,
    /// What it consists of.
    pub segments: Vec<Segment>,
    /// The word it talks to the host through, and the one it is answered in.
    pub tohost: Option<u64>,
    /// See `tohost`.
    pub fromhost: Option<u64>,
}

/// How often a byte of a file may be in a segment, on the average.
const SHARED: usize = 4;

/// Why a file is not a program the hart can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramError {
    /// Not an ELF file, or a damaged one.
    NotElf,
    /// For another machine; holds the code of the ELF header.
    Machine(u16),
    /// Big-endian.
    BigEndian,
    /// An object file, a shared library or a core dump.
    NotExecutable,
    /// Needs an operating system: it names a program interpreter.
    Dynamic,
    /// Nothing to load.
    Empty,
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProgramError::NotElf => f.write_str("not an ELF file, or a damaged one"),
            ProgramError::Machine(code) => {
                write!(f, "not a RISC-V program (ELF machine {code})")
            }
            ProgramError::BigEndian => f.write_str("a big-endian program"),
            ProgramError::NotExecutable => {
                f.write_str("not an executable: link it for bare metal first")
            }
            ProgramError::Dynamic => f.write_str(
                "a dynamically linked program, which needs an operating system; \
                 the hart runs bare-metal programs",
            ),
            ProgramError::Empty => f.write_str("nothing in it is to be loaded"),
        }
    }
}

impl core::error::Error for ProgramError {}

impl Program {
    /// Reads an ELF file.
    ///
    /// # Errors
    ///
    /// What is not an executable bare-metal RISC-V program.
    pub fn from_elf(bytes: &[u8]) -> Result<Program, ProgramError> {
        match object::FileKind::parse(bytes) {
            Ok(object::FileKind::Elf32) => read::<elf::FileHeader32<Endianness>>(bytes, Xlen::Rv32),
            Ok(object::FileKind::Elf64) => read::<elf::FileHeader64<Endianness>>(bytes, Xlen::Rv64),
            _ => Err(ProgramError::NotElf),
        }
    }
}

fn read<H: FileHeader<Endian = Endianness>>(
    bytes: &[u8],
    xlen: Xlen,
) -> Result<Program, ProgramError> {
    let bad = ProgramError::NotElf;
    let header = H::parse(bytes).map_err(|_| bad)?;
    let endian = header.endian().map_err(|_| bad)?;
    if endian == Endianness::Big {
        return Err(ProgramError::BigEndian);
    }
    let machine = header.e_machine(endian);
    if machine != elf::EM_RISCV {
        return Err(ProgramError::Machine(machine.0));
    }
    if !matches!(header.e_type(endian), elf::ET_EXEC | elf::ET_DYN) {
        return Err(ProgramError::NotExecutable);
    }
    let mut segments = Vec::new();
    let mut total = 0;
    for segment in header.program_headers(endian, bytes).map_err(|_| bad)? {
        match segment.p_type(endian) {
            elf::PT_INTERP => return Err(ProgramError::Dynamic),
            elf::PT_LOAD => {}
            _ => continue,
        }
        let size: u64 = segment.p_memsz(endian).into();
        let file_size: u64 = segment.p_filesz(endian).into();
        if size == 0 {
            continue;
        }
        let data = bytes
            .read_bytes_at(segment.p_offset(endian).into(), file_size)
            .map_err(|()| bad)?;
        // Segments may share bytes of the file, but not without end.
        total += data.len();
        if file_size > size || total > SHARED * bytes.len() {
            return Err(bad);
        }
        segments.push(Segment {
            addr: segment.p_paddr(endian).into(),
            size,
            data: data.to_vec(),
        });
    }
    if segments.is_empty() {
        return Err(ProgramError::Empty);
    }
    Ok(Program {
        xlen,
        entry: header.e_entry(endian).into(),
        segments,
        tohost: symbol(header, endian, bytes, b"tohost\0"),
        fromhost: symbol(header, endian, bytes, b"fromhost\0"),
    })
}

/// The value of a defined symbol, whose name is given with its end. Names are
/// compared where they are: looking for the end of each first could take a
/// scan of all of them.
fn symbol<H: FileHeader<Endian = Endianness>>(
    header: &H,
    endian: Endianness,
    bytes: &[u8],
    name: &[u8],
) -> Option<u64> {
    let sections = header.sections(endian, bytes).ok()?;
    let symbols = sections.symbols(endian, bytes, elf::SHT_SYMTAB).ok()?;
    let strings = sections.section(symbols.string_section()).ok()?;
    let strings = strings.data(endian, bytes).ok()?;
    let found = symbols.iter().find(|symbol| {
        let text = strings.get(symbol.st_name(endian) as usize..);
        symbol.st_shndx(endian) != elf::SHN_UNDEF && text.is_some_and(|t| t.starts_with(name))
    })?;
    Some(found.st_value(endian).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of 64 KiB with so many segments of its first bytes.
    fn file(segments: u16, file_size: u64, size: u64) -> Vec<u8> {
        let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\xf3\0\x01\0\0\0".to_vec();
        for field in [0x8000_0000u64, 64, 0] {
            file.extend(field.to_le_bytes());
        }
        file.extend([1, 0, 0, 0, 64, 0, 56, 0]);
        file.extend(segments.to_le_bytes());
        file.extend([64, 0, 0, 0, 0, 0]);
        for _ in 0..segments {
            file.extend([1, 0, 0, 0, 5, 0, 0, 0]);
            for field in [0, 0x8000_0000, 0x8000_0000, file_size, size, 1] {
                file.extend(field.to_le_bytes());
            }
        }
        file.resize(0x1_0000, 0);
        file
    }

    #[test]
    fn segments_may_share_bytes_but_not_without_end() {
        let whole = 0x1_0000;
        let two = Program::from_elf(&file(2, whole, whole)).unwrap();
        assert_eq!(two.segments.len(), 2);
        let many = Program::from_elf(&file(1000, whole, whole));
        assert_eq!(many, Err(ProgramError::NotElf));
    }

    #[test]
    fn a_segment_is_not_larger_in_the_file_than_in_memory() {
        let bad = Program::from_elf(&file(1, 16, 8));
        assert_eq!(bad, Err(ProgramError::NotElf));
    }
}
