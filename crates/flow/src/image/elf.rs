//! ELF files into an [`Image`].

use alloc::sync::Arc;
use core::fmt;
use core::ops::Range;

use hartrace_isa::{Ext, Isa};
use object::LittleEndian;
use object::elf;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};

use super::{Image, Segment, SpaceId};

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
                f.write_str("an ELF file without loadable segments (is it linked?)")
            }
        }
    }
}

impl core::error::Error for ImageError {}

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
        match elf_class(file)? {
            elf::ELFCLASS32 => self.load::<elf::FileHeader32<LittleEndian>>(space, file, base, isa),
            _ => self.load::<elf::FileHeader64<LittleEndian>>(space, file, base, isa),
        }
    }

    fn load<H: FileHeader<Endian = LittleEndian>>(
        &mut self,
        space: SpaceId,
        file: &[u8],
        base: Option<u64>,
        isa: Option<Isa>,
    ) -> Result<(), ImageError> {
        let e = LittleEndian;
        let header = H::parse(file).map_err(|_| ImageError::Damaged("file header"))?;
        let isa = match isa {
            Some(isa) => isa,
            None => isa_of::<H>(header, file)?,
        };
        let loads = loads(header, file)?;
        let lowest = lowest::<H>(loads.clone())?;
        let bias = base.map_or(0, |b| b.wrapping_sub(lowest));
        // All of them are looked at before any is added. They share one copy
        // of their part of the file: any number may claim the same bytes.
        let mut window = file.len()..0;
        for p in loads.clone() {
            let range = part(p, file).ok_or(ImageError::Damaged(PAST_THE_END))?;
            window = window.start.min(range.start)..window.end.max(range.end);
        }
        let data: Arc<[u8]> = Arc::from(file.get(window.clone()).unwrap_or_default());
        if let Some(space) = self.spaces.get_mut(space.index()) {
            space.segments.insert(loads.filter_map(|p| {
                let range = part(p, file)?;
                let range = range.start - window.start..range.end - window.start;
                let vaddr: u64 = p.p_vaddr(e).into();
                Segment::new(vaddr.wrapping_add(bias), &data, range, isa)
            }));
        }
        if isa.has(Ext::Zcmt) {
            // The name the GNU linker gives the table's start.
            if let Some(jvt) = symbol::<H>(header, file, b"__jvt_base$") {
                self.set_jvt(space, isa.xlen().wrap(jvt.wrapping_add(bias)));
            }
        }
        Ok(())
    }
}

const PAST_THE_END: &str = "a segment passes the end of the file";

/// Where in the file a segment is; `None` if it is not all there.
fn part<P: ProgramHeader<Endian = LittleEndian>>(header: &P, file: &[u8]) -> Option<Range<usize>> {
    let e = LittleEndian;
    let from = usize::try_from(header.p_offset(e).into()).ok()?;
    let to = from.checked_add(usize::try_from(header.p_filesz(e).into()).ok()?)?;
    (to <= file.len()).then_some(from..to)
}

/// What [`Image::add_elf`] adds to the addresses of an ELF file to load it at
/// `base`.
///
/// # Errors
///
/// See [`ImageError`].
pub fn elf_bias(file: &[u8], base: u64) -> Result<u64, ImageError> {
    fn of<H: FileHeader<Endian = LittleEndian>>(file: &[u8]) -> Result<u64, ImageError> {
        let header = H::parse(file).map_err(|_| ImageError::Damaged("file header"))?;
        lowest::<H>(loads(header, file)?)
    }
    let lowest = match elf_class(file)? {
        elf::ELFCLASS32 => of::<elf::FileHeader32<LittleEndian>>(file),
        _ => of::<elf::FileHeader64<LittleEndian>>(file),
    };
    lowest.map(|lowest| base.wrapping_sub(lowest))
}

/// The segments that are loaded from the file.
fn loads<'a, H: FileHeader<Endian = LittleEndian>>(
    header: &'a H,
    file: &'a [u8],
) -> Result<impl Iterator<Item = &'a H::ProgramHeader> + Clone, ImageError> {
    let e = LittleEndian;
    let headers = header.program_headers(e, file);
    let headers = headers.map_err(|_| ImageError::Damaged("program headers"))?;
    let loaded =
        move |p: &&H::ProgramHeader| p.p_type(e) == elf::PT_LOAD && p.p_filesz(e).into() != 0;
    Ok(headers.iter().filter(loaded))
}

/// Their first address.
fn lowest<'a, H: FileHeader<Endian = LittleEndian>>(
    loads: impl Iterator<Item = &'a H::ProgramHeader>,
) -> Result<u64, ImageError>
where
    H::ProgramHeader: 'a,
{
    let addresses = loads.map(|p| p.p_vaddr(LittleEndian).into());
    addresses.min().ok_or(ImageError::NoCode)
}

/// Checks the identification and the machine; gives the class.
fn elf_class(file: &[u8]) -> Result<elf::FileClass, ImageError> {
    let Some(&[0x7f, b'E', b'L', b'F', class, data, ..]) = file.get(..16) else {
        return Err(if file.starts_with(&elf::ELFMAG) {
            ImageError::Damaged("file header")
        } else {
            ImageError::NotElf
        });
    };
    let (class, data) = (elf::FileClass(class), elf::DataEncoding(data));
    if data == elf::ELFDATA2MSB {
        return Err(ImageError::BigEndian);
    }
    if data != elf::ELFDATA2LSB || !matches!(class, elf::ELFCLASS32 | elf::ELFCLASS64) {
        return Err(ImageError::Damaged("identification"));
    }
    match file.get(18..20) {
        Some(&[a, b]) => match u16::from_le_bytes([a, b]) {
            machine if elf::Machine(machine) == elf::EM_RISCV => Ok(class),
            machine => Err(ImageError::Machine(machine)),
        },
        _ => Err(ImageError::Damaged("file header")),
    }
}

/// The instruction set a file was built for: its attributes, or else its
/// class and flags.
fn isa_of<H: FileHeader<Endian = LittleEndian>>(
    header: &H,
    file: &[u8],
) -> Result<Isa, ImageError> {
    let e = LittleEndian;
    let compressed = (header.e_flags(e) & elf::EF_RISCV_RVC).0 != 0;
    let sections = header
        .sections(e, file)
        .map_err(|_| ImageError::Damaged("section headers"))?;
    for section in sections.iter() {
        if section.sh_type(e) == elf::SHT_RISCV_ATTRIBUTES {
            let bytes = section
                .data(e, file)
                .map_err(|_| ImageError::Damaged("attributes section"))?;
            let arch = hartrace_isa::attributes::arch(bytes);
            if let Some(isa) = arch.and_then(|a| Isa::parse_lenient(a).ok()) {
                // Code assembled under `.option rvc` is in the flags only.
                return Ok(if compressed { isa.with(Ext::Zca) } else { isa });
            }
        }
    }
    let text = match (header.is_type_64(), compressed) {
        (true, true) => "rv64gc",
        (true, false) => "rv64g",
        (false, true) => "rv32gc",
        (false, false) => "rv32g",
    };
    Ok(Isa::parse_lenient(text).unwrap_or(Isa::RV64GC))
}

fn symbol<H: FileHeader<Endian = LittleEndian>>(
    header: &H,
    file: &[u8],
    name: &[u8],
) -> Option<u64> {
    let e = LittleEndian;
    let sections = header.sections(e, file).ok()?;
    let table = sections.symbols(e, file, elf::SHT_SYMTAB).ok()?;
    let found = table
        .iter()
        .find(|s| s.name(e, table.strings()) == Ok(name))?;
    Some(found.st_value(e).into())
}
