//! Programs: what to put into memory and where to start.

use core::fmt;

use hartrace_isa::Xlen;
use object::elf;
use object::read::elf::{FileHeader, ProgramHeader, Sym};
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
    for segment in header.program_headers(endian, bytes).map_err(|_| bad)? {
        match segment.p_type(endian) {
            elf::PT_INTERP => return Err(ProgramError::Dynamic),
            elf::PT_LOAD => {}
            _ => continue,
        }
        let size: u64 = segment.p_memsz(endian).into();
        let file_size: u64 = segment.p_filesz(endian).into();
        if size == 0 || file_size > size {
            continue;
        }
        let data = bytes
            .read_bytes_at(segment.p_offset(endian).into(), file_size)
            .map_err(|()| bad)?;
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
        tohost: symbol(header, endian, bytes, b"tohost"),
        fromhost: symbol(header, endian, bytes, b"fromhost"),
    })
}

/// The value of a defined symbol.
fn symbol<H: FileHeader<Endian = Endianness>>(
    header: &H,
    endian: Endianness,
    bytes: &[u8],
    name: &[u8],
) -> Option<u64> {
    let sections = header.sections(endian, bytes).ok()?;
    let symbols = sections.symbols(endian, bytes, elf::SHT_SYMTAB).ok()?;
    let found = symbols.iter().find(|symbol| {
        symbol.st_shndx(endian) != elf::SHN_UNDEF
            && symbol
                .name(endian, symbols.strings())
                .is_ok_and(|n| n == name)
    })?;
    Some(found.st_value(endian).into())
}
