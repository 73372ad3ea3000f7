//! Loads ELF files into an [`Image`].

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use hartrace_isa::{Ext, Isa, Xlen};

use super::{Image, Segment, SpaceId};
use crate::elf::{self, Elf, ElfError, SectionKind};

/// Why a file is no image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageError {
    /// It does not start like an ELF file.
    NotElf,
    /// An ELF file of another machine (`e_machine`).
    Machine(u16),
    /// A big-endian ELF file; RISC-V code is little-endian.
    BigEndian,
    /// The file ends before what its headers announce, or they contradict
    /// each other.
    Damaged(&'static str),
    /// Nothing in it is loaded: a relocatable file, or one with debug
    /// information only.
    NoCode,
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImageError::NotElf => f.write_str("not an ELF file"),
            ImageError::Machine(machine) => {
                write!(f, "an ELF file for machine {machine}, not RISC-V (243)")
            }
            ImageError::BigEndian => f.write_str("a big-endian ELF file; RISC-V is little-endian"),
            ImageError::Damaged(what) => write!(f, "damaged or truncated ELF file: {what}"),
            ImageError::NoCode => {
                f.write_str("an ELF file without loadable segments; link it first")
            }
        }
    }
}

impl core::error::Error for ImageError {}

impl From<ElfError> for ImageError {
    fn from(error: ElfError) -> ImageError {
        match error {
            ElfError::NotElf => ImageError::NotElf,
            ElfError::Machine(machine) => ImageError::Machine(machine),
            ElfError::BigEndian => ImageError::BigEndian,
            ElfError::Class(_) => ImageError::Damaged("identification"),
            ElfError::Truncated | ElfError::Damaged { .. } => ImageError::Damaged("file header"),
        }
    }
}

impl Image {
    /// An image of one ELF file at the addresses it was linked for.
    ///
    /// # Errors
    ///
    /// See [`ImageError`].
    pub fn from_elf(file: &[u8]) -> Result<Image, ImageError> {
        let mut image = Image::new();
        image.add_elf(SpaceId::FIRST, file, None, None)?;
        Ok(image)
    }

    /// Adds the loadable segments of an ELF file. With `base` the lowest of
    /// them goes there and the others keep their distance to it. The
    /// instruction set is `isa`, or else the one in the file's attributes, or
    /// else what the file's flags say.
    ///
    /// # Errors
    ///
    /// See [`ImageError`]; the image is unchanged then.
    pub fn add_elf(
        &mut self,
        space: SpaceId,
        file: &[u8],
        base: Option<u64>,
        isa: Option<Isa>,
    ) -> Result<(), ImageError> {
        let elf = Elf::parse(file)?;
        let isa = match isa {
            Some(isa) => isa,
            None => isa_of(&elf)?,
        };
        let loads = loads(&elf)?;
        let bias = base.map_or(0, |b| b.wrapping_sub(lowest(&loads)));
        // All of them are looked at before any is added. They share one copy
        // of their part of the file: any number may claim the same bytes.
        let mut window = file.len()..0;
        for load in &loads {
            let range = part(load).ok_or(ImageError::Damaged(PAST_THE_END))?;
            window = window.start.min(range.start)..window.end.max(range.end);
        }
        let data: Arc<[u8]> = Arc::from(file.get(window.clone()).unwrap_or_default());
        if let Some(space) = self.spaces.get_mut(space.index()) {
            space.segments.insert(loads.iter().filter_map(|load| {
                let range = part(load)?;
                let range = range.start - window.start..range.end - window.start;
                Segment::new(load.address.wrapping_add(bias), &data, range, isa)
            }));
        }
        if isa.has(Ext::Zcmt) {
            // The name the GNU linker gives the table's start.
            let symbols = elf.symbols(false);
            if let Some(jvt) = symbols.iter().find(|s| s.name.is(b"__jvt_base$")) {
                self.set_jvt(space, isa.xlen().wrap(jvt.value.wrapping_add(bias)));
            }
        }
        Ok(())
    }
}

const PAST_THE_END: &str = "a segment reaches past the end of the file";

/// Where in the file a segment is; `None` if it is not all there.
fn part(load: &elf::Segment<'_>) -> Option<Range<usize>> {
    let from = usize::try_from(load.offset).ok()?;
    Some(from..from.checked_add(load.data?.len())?)
}

/// What [`Image::add_elf`] adds to the addresses of an ELF file to load it at
/// `base`.
///
/// # Errors
///
/// See [`ImageError`].
pub fn elf_bias(file: &[u8], base: u64) -> Result<u64, ImageError> {
    let loads = loads(&Elf::parse(file)?)?;
    Ok(base.wrapping_sub(lowest(&loads)))
}

/// The segments that are loaded from the file, one at least.
fn loads<'a>(elf: &Elf<'a>) -> Result<Vec<elf::Segment<'a>>, ImageError> {
    let loads = elf.loads();
    let loads = loads.map_err(|_| ImageError::Damaged("program headers"))?;
    match loads.is_empty() {
        true => Err(ImageError::NoCode),
        false => Ok(loads),
    }
}

/// Their first address.
fn lowest(loads: &[elf::Segment<'_>]) -> u64 {
    loads.iter().map(|load| load.address).min().unwrap_or(0)
}

/// The instruction set a file was built for: its attributes, or else its
/// class and flags.
fn isa_of(elf: &Elf<'_>) -> Result<Isa, ImageError> {
    let compressed = elf.abi.compressed();
    let sections = elf.sections();
    for section in sections.map_err(|_| ImageError::Damaged("section headers"))? {
        if section.kind == SectionKind::Attributes {
            let bytes = section.data;
            let bytes = bytes.ok_or(ImageError::Damaged("attributes section"))?;
            let arch = hartrace_isa::attributes::arch(bytes);
            if let Some(isa) = arch.and_then(|a| Isa::parse_lenient(a).ok()) {
                // Code assembled under `.option rvc` is in the flags only.
                return Ok(if compressed { isa.with(Ext::Zca) } else { isa });
            }
        }
    }
    let text = match (elf.xlen(), compressed) {
        (Xlen::Rv64, true) => "rv64gc",
        (Xlen::Rv64, false) => "rv64g",
        (Xlen::Rv32, true) => "rv32gc",
        (Xlen::Rv32, false) => "rv32g",
    };
    Ok(Isa::parse_lenient(text).unwrap_or(Isa::RV64GC))
}
