//! Programs: the memory contents and the entry point.

use core::fmt;

use hartrace_flow::elf::{Elf, ElfError, Place, SegmentKind};
use hartrace_isa::Xlen;

/// Bytes to be loaded into memory, followed by zeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Physical address.
    pub addr: u64,
    /// Size in memory; after the data it is zero.
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
            ProgramError::Empty => f.write_str("it has no loadable segments"),
        }
    }
}

impl core::error::Error for ProgramError {}

impl From<ElfError> for ProgramError {
    fn from(error: ElfError) -> ProgramError {
        match error {
            ElfError::Machine(machine) => ProgramError::Machine(machine),
            ElfError::BigEndian => ProgramError::BigEndian,
            _ => ProgramError::NotElf,
        }
    }
}

impl Program {
    /// Whether the three instructions of a semihosting call are somewhere in it.
    #[must_use]
    pub fn calls_host(&self) -> bool {
        const CALL: [u8; 12] = [
            0x13, 0x10, 0xf0, 0x01, 0x73, 0, 0x10, 0, 0x13, 0x50, 0x70, 0x40,
        ];
        let mut segments = self.segments.iter();
        segments.any(|segment| segment.data.windows(12).any(|bytes| bytes == CALL))
    }

    /// Reads an ELF file.
    ///
    /// # Errors
    ///
    /// What is not an executable bare-metal RISC-V program.
    pub fn from_elf(bytes: &[u8]) -> Result<Program, ProgramError> {
        let elf = Elf::parse(bytes)?;
        if !elf.kind.is_linked() {
            return Err(ProgramError::NotExecutable);
        }
        let mut segments = Vec::new();
        let mut total = 0;
        for segment in elf.segments()? {
            match segment.kind {
                SegmentKind::Interpreter => return Err(ProgramError::Dynamic),
                SegmentKind::Load if segment.memory_size > 0 => {}
                SegmentKind::Load | SegmentKind::Other => continue,
            }
            let data = segment.data.ok_or(ProgramError::NotElf)?;
            // Segments may share bytes of the file, but not without end.
            total += data.len();
            if segment.file_size > segment.memory_size || total > SHARED * bytes.len() {
                return Err(ProgramError::NotElf);
            }
            segments.push(Segment {
                addr: segment.physical,
                size: segment.memory_size,
                data: data.to_vec(),
            });
        }
        if segments.is_empty() {
            return Err(ProgramError::Empty);
        }
        let symbols = elf.symbols(false);
        let value = |name: &[u8]| {
            let mut defined = symbols.iter().filter(|s| s.place != Place::Undefined);
            defined.find(|s| s.name.is(name)).map(|s| s.value)
        };
        Ok(Program {
            xlen: elf.xlen(),
            entry: elf.entry,
            segments,
            tohost: value(b"tohost"),
            fromhost: value(b"fromhost"),
        })
    }
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
