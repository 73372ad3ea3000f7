//! Systems: firmware, a kernel, an initial file system and a device tree, put into
//! memory where QEMU's `virt` machine has them.
//!
//! * The firmware starts where RAM does, or where it was linked for.
//! * The kernel is at the next multiple of 2 MiB (4 MiB on RV32), unless it is an ELF
//!   file linked for an address in RAM.
//! * The initial file system is 128 MiB after the kernel, or half the size of RAM if
//!   that is less, and not before the kernel's end.
//! * The device tree is at the last multiple of 2 MiB in RAM, and below 3 GiB.
//!
//! The hart starts with its number in `a0`, the address of the tree in `a1`, and in
//! `a2` that of the words with which OpenSBI's `fw_dynamic` is told of the kernel.
//! Without firmware it starts in the kernel, in machine mode, as with QEMU's
//! `-bios none`.

use core::fmt;

use hartrace_flow::elf::{Elf, ElfError, ElfKind, SegmentKind};
use hartrace_isa::{Isa, Xlen};

use crate::config::{Config, ConfigError};
use crate::devices::Entropy;
use crate::fdt::{Chosen, TreeError, tree, with_chosen};
use crate::memory::Region;
use crate::program::{Program, Segment};

/// What the `rng-seed` of a device tree follows from.
const SEED: u64 = 0x6861_7274_7261_6365;

const MIB: u64 = 1 << 20;

/// The words for `fw_dynamic`: "OSBI", and the version.
const DYNAMIC_MAGIC: u64 = 0x4942_534f;
const DYNAMIC_VERSION: u64 = 2;
/// The mode in which a kernel starts.
const SUPERVISOR: u64 = 1;

/// The files of a system.
#[derive(Clone, Copy, Debug, Default)]
pub struct BootFiles<'a> {
    /// Firmware, an ELF file or a raw binary.
    pub bios: Option<&'a [u8]>,
    /// A kernel, an ELF file or a raw binary such as Linux's `Image`.
    pub kernel: Option<&'a [u8]>,
    /// An initial file system.
    pub initrd: Option<&'a [u8]>,
    /// The command line of the kernel.
    pub append: Option<&'a str>,
    /// A device tree instead of that of the machine.
    pub dtb: Option<&'a [u8]>,
}

/// One of these files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootPart {
    /// The firmware.
    Bios,
    /// The kernel.
    Kernel,
    /// The initial file system.
    Initrd,
    /// The device tree.
    Tree,
}

impl BootPart {
    /// What it is, in a sentence.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            BootPart::Bios => "the firmware",
            BootPart::Kernel => "the kernel",
            BootPart::Initrd => "the initial file system",
            BootPart::Tree => "the device tree",
        }
    }
}

/// Why files cannot be made a system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BootError {
    /// Neither firmware nor a kernel.
    Nothing,
    /// A file without content.
    Empty(BootPart),
    /// An ELF file that cannot be read.
    Elf(BootPart, ElfError),
    /// An ELF file that is not linked, or without anything to load.
    NotLinked(BootPart),
    /// A file for a hart of the other width.
    Width(BootPart, Xlen),
    /// A compressed file; how it is compressed.
    Compressed(BootPart, &'static str),
    /// A part that is not in RAM.
    Outside(BootPart, Region),
    /// Two parts that want the same memory.
    Overlap(BootPart, Region, BootPart, Region),
    /// There is no room for a part in RAM; its size.
    NoRoom(BootPart, u64),
    /// Bytes that are not a device tree.
    Tree(TreeError),
    /// A command line with a NUL.
    CommandLine,
    /// A machine that cannot be built.
    Config(ConfigError),
}

impl fmt::Display for BootError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = |r: &Region| format!("{:#x}-{:#x}", r.base, r.end().wrapping_sub(1));
        match self {
            BootError::Nothing => f.write_str("there is neither firmware nor a kernel to start"),
            BootError::Empty(part) => write!(f, "{} is an empty file", part.name()),
            BootError::Elf(part, why) => write!(f, "{}: {why}", part.name()),
            BootError::NotLinked(part) => {
                write!(f, "{} is an ELF file that is not linked", part.name())
            }
            BootError::Width(part, xlen) => {
                write!(f, "{} is for RV{}", part.name(), xlen.bits())
            }
            BootError::Compressed(part, how) => {
                write!(f, "{} is compressed with {how}", part.name())
            }
            BootError::Outside(part, at) => {
                write!(
                    f,
                    "{} wants {}, which is not in memory",
                    part.name(),
                    range(at)
                )
            }
            BootError::Overlap(one, at, other, there) => write!(
                f,
                "{} ({}) and {} ({}) overlap",
                one.name(),
                range(at),
                other.name(),
                range(there)
            ),
            BootError::NoRoom(part, size) => {
                write!(f, "memory has no room for {} ({size} bytes)", part.name())
            }
            BootError::Tree(why) => write!(f, "the device tree is {why}"),
            BootError::CommandLine => f.write_str("the command line has a NUL character"),
            BootError::Config(why) => why.fmt(f),
        }
    }
}

impl core::error::Error for BootError {}

impl From<ConfigError> for BootError {
    fn from(why: ConfigError) -> BootError {
        BootError::Config(why)
    }
}

/// What a system finds in `a1` and `a2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handover {
    pub(crate) tree: u64,
    pub(crate) info: u64,
}

/// A system in its places.
#[derive(Clone, Debug)]
pub struct System {
    pub(crate) program: Program,
    pub(crate) handover: Handover,
    places: Vec<(BootPart, u64)>,
}

impl System {
    /// Puts files into the memory of a machine.
    ///
    /// # Errors
    ///
    /// Files that cannot be read, or do not fit.
    pub fn new(config: &Config, files: &BootFiles<'_>) -> Result<System, BootError> {
        let isa = config.validate()?;
        let largest = config.memory.iter().max_by_key(|region| region.size);
        let mut layout = Layout {
            xlen: isa.xlen(),
            ram: *largest.ok_or(BootError::Nothing)?,
            config,
            segments: Vec::new(),
            taken: Vec::new(),
            places: Vec::new(),
        };
        let (mut start, mut next) = (None, layout.ram.base);
        if let Some(bios) = files.bios {
            start = Some(layout.put_code(BootPart::Bios, bios, next)?);
            next = layout.end_of(BootPart::Bios);
        }
        let mut kernel = 0;
        if let Some(image) = files.kernel {
            let unit = match isa.xlen() {
                Xlen::Rv32 => 4 * MIB,
                Xlen::Rv64 => 2 * MIB,
            };
            kernel = layout.put_code(BootPart::Kernel, image, next.next_multiple_of(unit))?;
            next = layout.end_of(BootPart::Kernel);
        }
        let entry = start.or(files.kernel.map(|_| kernel));
        let entry = entry.ok_or(BootError::Nothing)?;
        let mut initrd = None;
        if let Some(bytes) = files.initrd {
            initrd = Some(layout.put_initrd(bytes, kernel.max(layout.ram.base), next)?);
        }
        let handover = layout.put_tree(isa, files, initrd, kernel)?;
        Ok(System {
            program: Program {
                xlen: isa.xlen(),
                entry,
                segments: layout.segments,
                tohost: None,
                fromhost: None,
            },
            handover,
            places: layout.places,
        })
    }

    /// The program in memory, without what is handed over in registers.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Where a part is: its first address.
    #[must_use]
    pub fn place(&self, part: BootPart) -> Option<u64> {
        let mut places = self.places.iter();
        places.find(|place| place.0 == part).map(|place| place.1)
    }
}

/// A system that is being put together.
struct Layout<'a> {
    xlen: Xlen,
    ram: Region,
    config: &'a Config,
    segments: Vec<Segment>,
    /// Memory that is used, and what for.
    taken: Vec<(BootPart, Region)>,
    places: Vec<(BootPart, u64)>,
}

impl Layout<'_> {
    /// Takes memory for a part.
    fn take(&mut self, part: BootPart, addr: u64, size: u64) -> Result<(), BootError> {
        let region = Region { base: addr, size };
        let inside = |ram: &Region| ram.contains(addr, size);
        if !self.config.memory.iter().any(inside) {
            return Err(BootError::Outside(part, region));
        }
        let mut others = self.taken.iter();
        if let Some((other, there)) = others.find(|(_, taken)| taken.overlaps(&region)) {
            return Err(BootError::Overlap(part, region, *other, *there));
        }
        self.taken.push((part, region));
        Ok(())
    }

    fn put(&mut self, part: BootPart, addr: u64, size: u64, data: &[u8]) -> Result<(), BootError> {
        self.take(part, addr, size)?;
        self.segments.push(Segment {
            addr,
            size,
            data: data.to_vec(),
        });
        Ok(())
    }

    /// The first address after a part.
    fn end_of(&self, part: BootPart) -> u64 {
        let regions = self.taken.iter().filter(|taken| taken.0 == part);
        regions.map(|taken| taken.1.end()).max().unwrap_or(0)
    }

    /// Puts an ELF file where it was linked for, or another file at an address. Gives
    /// where it starts.
    fn put_code(&mut self, part: BootPart, bytes: &[u8], at: u64) -> Result<u64, BootError> {
        if bytes.is_empty() {
            return Err(BootError::Empty(part));
        }
        if bytes.starts_with(b"\x7fELF") {
            return self.put_elf(part, bytes, at);
        }
        if let Some(how) = compression(bytes) {
            return Err(BootError::Compressed(part, how));
        }
        let size = memory_size(bytes).max(bytes.len() as u64);
        self.put(part, at, size, bytes)?;
        self.places.push((part, at));
        Ok(at)
    }

    fn put_elf(&mut self, part: BootPart, bytes: &[u8], at: u64) -> Result<u64, BootError> {
        let wrong = |why| BootError::Elf(part, why);
        let elf = Elf::parse(bytes).map_err(wrong)?;
        if elf.xlen() != self.xlen {
            return Err(BootError::Width(part, elf.xlen()));
        }
        let mut loads = elf.segments().map_err(wrong)?;
        loads.retain(|load| load.kind == SegmentKind::Load && load.memory_size > 0);
        let lowest = loads.iter().map(|load| load.physical).min();
        let Some(lowest) = lowest.filter(|_| elf.kind.is_linked()) else {
            return Err(BootError::NotLinked(part));
        };
        // OpenSBI is position-independent, and Linux's `vmlinux` has addresses from 0 on.
        let movable = elf.kind == ElfKind::Shared || lowest == 0;
        let mut ram = self.config.memory.iter();
        let bias = match movable && !ram.any(|region| region.contains(lowest, 1)) {
            true => at.wrapping_sub(lowest),
            false => 0,
        };
        let mut entry = elf.entry;
        let mut total = 0;
        for load in &loads {
            let data = load
                .data
                .filter(|data| data.len() as u64 <= load.memory_size);
            let data = data.ok_or_else(|| wrong(ElfError::outside("a segment")))?;
            // Segments may share bytes of the file, but not without end.
            total += data.len();
            if total > 4 * bytes.len() {
                return Err(wrong(ElfError::outside("a segment")));
            }
            let addr = load.physical.wrapping_add(bias);
            self.put(part, addr, load.memory_size, data)?;
            let offset = elf.entry.wrapping_sub(load.address);
            if offset < load.memory_size {
                entry = addr.wrapping_add(offset);
            }
        }
        self.places.push((part, lowest.wrapping_add(bias)));
        Ok(entry)
    }

    /// Puts an initial file system after the kernel. Gives where it begins and ends.
    fn put_initrd(
        &mut self,
        bytes: &[u8],
        kernel: u64,
        free: u64,
    ) -> Result<(u64, u64), BootError> {
        let part = BootPart::Initrd;
        if bytes.is_empty() {
            return Err(BootError::Empty(part));
        }
        let size = bytes.len() as u64;
        let usual = kernel.saturating_add((self.ram.size / 2).min(128 * MIB));
        let at = usual.max(free.next_multiple_of(2 * MIB));
        if !self.ram.contains(at, size) {
            return Err(BootError::NoRoom(part, size));
        }
        self.put(part, at, size, bytes)?;
        self.places.push((part, at));
        Ok((at, at + size))
    }

    /// Puts the device tree and the words for `fw_dynamic` at the end of memory.
    fn put_tree(
        &mut self,
        isa: Isa,
        files: &BootFiles<'_>,
        initrd: Option<(u64, u64)>,
        kernel: u64,
    ) -> Result<Handover, BootError> {
        let part = BootPart::Tree;
        if files.append.is_some_and(|text| text.contains('\0')) {
            return Err(BootError::CommandLine);
        }
        let mut seed = [0; 32];
        Entropy::new(SEED).fill(&mut seed);
        let chosen = Chosen {
            bootargs: files.append,
            initrd,
            seed: files.dtb.is_none().then_some(seed),
        };
        let mut blob = match files.dtb {
            Some(dtb) => with_chosen(dtb, &chosen).map_err(BootError::Tree)?,
            None => tree(self.config, isa, chosen),
        };
        let info = blob.len().next_multiple_of(8);
        blob.resize(info, 0);
        let words = [DYNAMIC_MAGIC, DYNAMIC_VERSION, kernel, SUPERVISOR, 0, 0];
        for word in words {
            match self.xlen {
                Xlen::Rv32 => blob.extend((word as u32).to_le_bytes()),
                Xlen::Rv64 => blob.extend(word.to_le_bytes()),
            }
        }
        // Firmware makes changes to the tree and may need room for them.
        let size = blob.len() as u64 + 0x1_0000;
        let end = match self.ram.base < 3072 * MIB {
            true => self.ram.base.saturating_add(self.ram.size).min(3072 * MIB),
            false => self.ram.base.saturating_add(self.ram.size),
        };
        let at = end.checked_sub(size).map(|at| at / (2 * MIB) * (2 * MIB));
        let at = at.filter(|at| self.ram.contains(*at, size));
        let at = at.ok_or(BootError::NoRoom(part, size))?;
        self.put(part, at, size, &blob)?;
        self.places.push((part, at));
        Ok(Handover {
            tree: at,
            info: at + info as u64,
        })
    }
}

/// How a file is compressed.
fn compression(bytes: &[u8]) -> Option<&'static str> {
    let kinds: [(&[u8], &str); 6] = [
        (b"\x1f\x8b", "gzip"),
        (b"\xfd7zXZ", "xz"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"BZh", "bzip2"),
        (b"\x04\x22\x4d\x18", "lz4"),
        (b"MZ\0\0zimg", "its own decompressor for UEFI"),
    ];
    let kind = kinds.iter().find(|kind| bytes.starts_with(kind.0));
    kind.map(|kind| kind.1)
}

/// The memory that Linux's `Image` wants, from its header.
fn memory_size(bytes: &[u8]) -> u64 {
    let field = |at: usize| bytes.get(at..at + 8)?.first_chunk().copied();
    let magic = bytes.get(0x38..0x3c) == Some(b"RSC\x05");
    let size = field(0x10).map_or(0, u64::from_le_bytes);
    if magic { size } else { 0 }
}
