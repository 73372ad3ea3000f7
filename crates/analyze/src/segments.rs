//! The file offsets of a program's code.

use crate::elf::ElfError;
use hartrace_flow::elf::{Elf, SegmentKind, section_by_name};
use hartrace_flow::elf_bias;

/// Pages as `mmap` has them.
const PAGE: u64 = 0x1000;

/// The executable segments of an ELF file. Profilers name code by its place in
/// the file, not in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segments(Vec<Segment>);

/// A segment in memory and in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its first address in memory.
    pub address: u64,
    /// Its place in the file.
    pub offset: u64,
    /// Its bytes in memory.
    pub size: u64,
}

/// A file of a program, as profiles name it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// The name of the file.
    pub name: String,
    /// Where its code is.
    pub segments: Segments,
    /// Its GNU build id; empty if it has none.
    pub build_id: Vec<u8>,
    /// Whether it has source lines.
    pub has_lines: bool,
}

impl Module {
    /// An ELF file; its lowest loaded address goes to `base`, or stays where the file
    /// says.
    ///
    /// # Errors
    ///
    /// What is no ELF file for RISC-V.
    pub fn from_elf(name: String, file: &[u8], base: Option<u64>) -> Result<Module, ElfError> {
        let segments = Segments::from_elf(file, base)?;
        let elf = Elf::parse(file)?;
        let sections = elf.sections().unwrap_or_default();
        Ok(Module {
            name,
            segments,
            build_id: elf.build_id().unwrap_or_default().to_vec(),
            has_lines: section_by_name(&sections, b".debug_line").is_some(),
        })
    }
}

impl Segment {
    /// As `mmap` maps it: whole pages, their address, size and offset.
    pub(crate) fn pages(&self) -> (u64, u64, u64) {
        let inside = self.address % PAGE;
        let size = inside.saturating_add(self.size).div_ceil(PAGE);
        let size = size.saturating_mul(PAGE);
        (self.address - inside, size, self.offset & !(PAGE - 1))
    }
}

impl Segments {
    /// Those of an ELF file; its lowest loaded address goes to `base`, or stays
    /// where the file says.
    ///
    /// # Errors
    ///
    /// What is no ELF file for RISC-V. One without executable segments has none.
    pub fn from_elf(file: &[u8], base: Option<u64>) -> Result<Segments, ElfError> {
        let bias = base.map_or(0, |base| elf_bias(file, base).unwrap_or(base));
        let mut segments = Elf::parse(file)?.segments().unwrap_or_default();
        segments.retain(|s| s.kind == SegmentKind::Load && s.access[2]);
        let code = segments.iter().map(|s| Segment {
            address: s.address.wrapping_add(bias),
            offset: s.offset,
            size: s.memory_size,
        });
        Ok(Segments(code.collect()))
    }

    /// The place in the file of an address in memory.
    #[must_use]
    pub fn offset(&self, address: u64) -> Option<u64> {
        let found = self
            .0
            .iter()
            .find(|s| address.wrapping_sub(s.address) < s.size)?;
        found.offset.checked_add(address - found.address)
    }

    /// Each segment.
    pub fn iter(&self) -> impl Iterator<Item = &Segment> {
        self.0.iter()
    }
}

#[cfg(test)]
pub(crate) fn testing(segments: &[(u64, u64, u64)]) -> Segments {
    let one = |&(address, offset, size)| Segment {
        address,
        offset,
        size,
    };
    Segments(segments.iter().map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_one_segment() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs/");
        let read = |name| std::fs::read([folder, name].concat()).unwrap();
        for name in [
            "recursion/recursion-rv64gc.elf",
            "recursion/recursion-rv32gc.elf",
        ] {
            let file = read(name);
            let segments = Segments::from_elf(&file, None).unwrap();
            let first = segments.iter().next().unwrap();
            assert_eq!(first.address, 0x8000_0000);
            assert_eq!(segments.offset(0x8000_0000), Some(first.offset));
            assert_eq!(segments.offset(0x8000_0004), Some(first.offset + 4));
            assert_eq!(segments.offset(0x7fff_fffe), None);
            assert_eq!(segments.offset(0), None);
            let moved = Segments::from_elf(&file, Some(0x1_0000)).unwrap();
            assert_eq!(moved.offset(0x1_0004), Some(first.offset + 4));
        }
        assert_eq!(Segments::from_elf(b"no ELF", None), Err(ElfError::NotElf));
    }

    #[test]
    fn whole_pages() {
        let segment = Segment {
            address: 0x8000_0ff0,
            offset: 0x1ff0,
            size: 0x20,
        };
        assert_eq!(segment.pages(), (0x8000_0000, 0x2000, 0x1000));
        let last = Segment {
            address: u64::MAX,
            offset: 0,
            size: u64::MAX,
        };
        assert_eq!(last.pages().0, u64::MAX - 0xfff);
    }
}
