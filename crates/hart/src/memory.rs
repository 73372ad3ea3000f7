//! Physical memory: RAM and ROM, in pages.
//!
//! All regions lie side by side in one allocation and are addressed by frame,
//! the number of a page in it. The allocation is zeroed by the system page by
//! page, so a large memory costs what the program touches.

/// Bytes in a page.
pub(crate) const PAGE: u64 = 4096;

/// One page.
pub(crate) type Page = [u8; PAGE as usize];

/// Bytes in a line, the unit in which decoded code is remembered: a page has
/// as many lines as a word has bits.
const LINE: u64 = 64;

/// A stretch of memory. Base and size are multiples of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First physical address.
    pub base: u64,
    /// Bytes.
    pub size: u64,
}

impl Region {
    /// The address behind the region; 0 when it reaches the end of the
    /// address space.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.base.wrapping_add(self.size)
    }

    /// Whether the region holds all of `len` bytes at `addr`.
    #[must_use]
    pub const fn contains(&self, addr: u64, len: u64) -> bool {
        let offset = addr.wrapping_sub(self.base);
        offset < self.size && len <= self.size - offset
    }

    /// Whether the two share a byte.
    #[must_use]
    pub const fn overlaps(&self, other: &Region) -> bool {
        self.contains(other.base, 1) || other.contains(self.base, 1)
    }
}

/// Why memory cannot be laid out as asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryError {
    /// Base or size is not a multiple of 4096, or the size is 0.
    Granularity(Region),
    /// The region runs over the end of the address space.
    Wraps(Region),
    /// Two regions share addresses, or a region hides a device.
    Overlap(Region, Region),
    /// The host does not give this much memory, in bytes.
    TooLarge(u64),
}

impl core::fmt::Display for MemoryError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let show = |r: &Region| format!("{:#x}:{:#x}", r.base, r.size);
        match self {
            MemoryError::Granularity(r) => {
                write!(
                    f,
                    "memory {}: base and size must be multiples of 4096",
                    show(r)
                )
            }
            MemoryError::Wraps(r) => {
                write!(
                    f,
                    "memory {} runs over the end of the address space",
                    show(r)
                )
            }
            MemoryError::Overlap(a, b) => {
                write!(f, "memory {} overlaps {}", show(a), show(b))
            }
            MemoryError::TooLarge(bytes) => {
                write!(f, "the host has no room for {} MiB of memory", bytes >> 20)
            }
        }
    }
}

impl core::error::Error for MemoryError {}

#[derive(Clone, Copy, Debug)]
struct Mapped {
    region: Region,
    frame: u32,
    writable: bool,
}

/// Where a physical address lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    /// Page number in the allocation.
    pub(crate) frame: u32,
    /// RAM, not ROM.
    pub(crate) writable: bool,
}

/// RAM and ROM.
pub struct Memory {
    /// RAM; its frames come first.
    ram: Vec<u8>,
    rom: Vec<u8>,
    regions: Vec<Mapped>,
    /// Per frame, the lines that hold code a hart has decoded.
    code: Vec<u64>,
    /// Per frame, whether stores to it must be noted: it has decoded code, or
    /// the host watches it.
    watched: Vec<bool>,
    /// Frames written since they were decoded; the harts forget their code.
    stale: Vec<u32>,
}

/// The regions, not what they hold.
impl core::fmt::Debug for Memory {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(&self.regions).finish()
    }
}

impl Memory {
    /// RAM at `ram`, all zero, and a read-only copy of `rom` at `rom_base`.
    ///
    /// # Errors
    ///
    /// Regions that are not made of whole pages, overlap or are too large.
    pub fn new(ram: &[Region], rom_base: u64, rom: &[u8]) -> Result<Memory, MemoryError> {
        let rom_region = Region {
            base: rom_base,
            size: (rom.len() as u64).next_multiple_of(PAGE),
        };
        let mut regions: Vec<Mapped> = Vec::new();
        let mut frame = 0u64;
        let wanted = ram.iter().map(|&r| (r, true));
        let fixed = (!rom.is_empty()).then_some((rom_region, false));
        for (region, writable) in wanted.chain(fixed) {
            check(&region, regions.iter().map(|m| &m.region))?;
            let first = u32::try_from(frame).map_err(|_| MemoryError::TooLarge(region.size))?;
            regions.push(Mapped {
                region,
                frame: first,
                writable,
            });
            frame += region.size / PAGE;
        }
        if frame > u64::from(u32::MAX) {
            return Err(MemoryError::TooLarge(frame.saturating_mul(PAGE)));
        }
        let total = ram.iter().fold(0, |sum: u64, r| sum.saturating_add(r.size));
        let bytes = zeroed(total).ok_or(MemoryError::TooLarge(total))?;
        let mut memory = Memory {
            ram: bytes,
            rom: vec![0; rom_region.size as usize],
            regions,
            code: vec![0; frame as usize],
            watched: vec![false; frame as usize],
            stale: Vec::new(),
        };
        if let Some(bytes) = memory.rom.get_mut(..rom.len()) {
            bytes.copy_from_slice(rom);
        }
        Ok(memory)
    }

    /// The RAM regions.
    pub fn ram(&self) -> impl Iterator<Item = Region> + '_ {
        self.regions.iter().filter(|m| m.writable).map(|m| m.region)
    }

    /// Gives the pages that are not zero, by physical address; those side by
    /// side in one piece.
    pub(crate) fn visit(&self, visit: &mut dyn FnMut(u64, &[u8])) {
        let mut regions: Vec<&Mapped> = self.regions.iter().collect();
        regions.sort_by_key(|mapped| mapped.region.base);
        for mapped in regions {
            let Region { base, size } = mapped.region;
            let Some(bytes) = self
                .range(base, size as usize)
                .and_then(|(mapped, range)| self.bytes(mapped).get(range))
            else {
                continue;
            };
            let (mut at, mut rest) = (base, bytes.as_chunks().0);
            while !rest.is_empty() {
                let (empty, more) = split_while(rest, is_zero);
                let (piece, more) = split_while(more, |page| !is_zero(page));
                if !piece.is_empty() {
                    visit(at + empty.len() as u64 * PAGE, piece.as_flattened());
                }
                // The last region may end with the address space.
                at = at.wrapping_add((empty.len() + piece.len()) as u64 * PAGE);
                rest = more;
            }
        }
    }

    /// A page, by frame.
    pub(crate) fn page(&self, frame: u32) -> Option<&Page> {
        let (ram, rom) = (self.ram.as_chunks().0, self.rom.as_chunks().0);
        let frame = frame as usize;
        ram.get(frame)
            .or_else(|| rom.get(frame.checked_sub(ram.len())?))
    }

    /// The page of a physical address.
    pub(crate) fn spot(&self, paddr: u64) -> Option<Spot> {
        let mapped = self.regions.iter().find(|m| m.region.contains(paddr, 1))?;
        let page = (paddr - mapped.region.base) / PAGE;
        Some(Spot {
            frame: mapped.frame + page as u32,
            writable: mapped.writable,
        })
    }

    /// The region that holds `len` bytes at a physical address, and where in
    /// the RAM or the ROM they are.
    fn range(&self, paddr: u64, len: usize) -> Option<(&Mapped, core::ops::Range<usize>)> {
        let mapped = self
            .regions
            .iter()
            .find(|m| m.region.contains(paddr, len as u64))?;
        let first = if mapped.writable {
            u64::from(mapped.frame) * PAGE
        } else {
            0
        };
        let start = (first + (paddr - mapped.region.base)) as usize;
        Some((mapped, start..start + len))
    }

    /// Where the bytes of a region are.
    fn bytes(&self, mapped: &Mapped) -> &[u8] {
        if mapped.writable {
            &self.ram
        } else {
            &self.rom
        }
    }

    /// Reads bytes; false when some of them are not in one region.
    pub fn read(&self, paddr: u64, into: &mut [u8]) -> bool {
        let Some((mapped, range)) = self.range(paddr, into.len()) else {
            return false;
        };
        match self.bytes(mapped).get(range) {
            Some(bytes) => {
                into.copy_from_slice(bytes);
                true
            }
            None => false,
        }
    }

    /// Writes bytes to RAM; false when some of them are not in one region, or
    /// in ROM.
    pub fn write(&mut self, paddr: u64, data: &[u8]) -> bool {
        let Some((_, range)) = self.range(paddr, data.len()).filter(|(m, _)| m.writable) else {
            return false;
        };
        let (first, end) = (range.start as u64 / PAGE, (range.end as u64).div_ceil(PAGE));
        for frame in first..end {
            self.note(frame as u32, u64::MAX);
        }
        self.put(range, data)
    }

    /// Writes bytes to RAM like [`Memory::write`], for a caller that says
    /// itself what was written with [`Memory::note_store`].
    pub(crate) fn write_quietly(&mut self, paddr: u64, data: &[u8]) -> bool {
        match self.range(paddr, data.len()) {
            Some((mapped, range)) if mapped.writable => self.put(range, data),
            _ => false,
        }
    }

    fn put(&mut self, range: core::ops::Range<usize>, data: &[u8]) -> bool {
        match self.ram.get_mut(range) {
            Some(bytes) => {
                bytes.copy_from_slice(data);
                true
            }
            None => false,
        }
    }

    /// Marks bytes of a page as decoded. True when stores to the page went
    /// unwatched before.
    pub(crate) fn mark_code(&mut self, frame: u32, from: u64, len: u64) -> bool {
        if let Some(marks) = self.code.get_mut(frame as usize) {
            *marks |= lines(from, len);
        }
        self.watch(frame)
    }

    /// Watches stores to a page from now on. True when it was not watched.
    pub(crate) fn watch(&mut self, frame: u32) -> bool {
        match self.watched.get_mut(frame as usize) {
            Some(watched) => !core::mem::replace(watched, true),
            None => false,
        }
    }

    /// Whether stores to the page must be noted.
    #[inline(always)]
    pub(crate) fn is_watched(&self, frame: u32) -> bool {
        self.watched.get(frame as usize).copied().unwrap_or(true)
    }

    /// Exchanges the bytes of RAM with `other`: the interpreter borrows them
    /// while it runs, so that it finds them without going through here.
    #[inline]
    pub(crate) fn swap_ram(&mut self, other: &mut Vec<u8>) {
        core::mem::swap(&mut self.ram, other);
    }

    /// `N` bytes of a page of RAM.
    #[inline(always)]
    pub(crate) fn at(&self, frame: u32, addr: u64, len: usize) -> Option<&[u8]> {
        let start = (u64::from(frame) * PAGE + addr % PAGE) as usize;
        self.ram.get(start..start + len)
    }

    /// `N` bytes of a page of RAM.
    #[inline(always)]
    pub(crate) fn at_mut(&mut self, frame: u32, addr: u64, len: usize) -> Option<&mut [u8]> {
        let start = (u64::from(frame) * PAGE + addr % PAGE) as usize;
        self.ram.get_mut(start..start + len)
    }

    /// All of RAM, if it is one region.
    pub(crate) fn only_ram(&self) -> Option<Region> {
        let mut ram = self.ram();
        ram.next().filter(|_| ram.next().is_none())
    }

    /// Says that bytes of a page were written. True when code was among them.
    pub(crate) fn note_store(&mut self, frame: u32, from: u64, len: u64) -> bool {
        self.note(frame, lines(from, len))
    }

    fn note(&mut self, frame: u32, lines: u64) -> bool {
        match self.code.get(frame as usize) {
            Some(marks) if *marks & lines != 0 => {
                self.stale.push(frame);
                true
            }
            _ => false,
        }
    }

    /// The frames whose code has changed since the last call; it is to be
    /// forgotten now. Until then stores to it are noted, however many.
    pub(crate) fn take_stale(&mut self) -> Vec<u32> {
        let stale = core::mem::take(&mut self.stale);
        for &frame in &stale {
            if let Some(marks) = self.code.get_mut(frame as usize) {
                *marks = 0;
            }
        }
        stale
    }

    /// Whether code has changed.
    pub(crate) fn is_stale(&self) -> bool {
        !self.stale.is_empty()
    }
}

/// The first pages that are alike, and the rest.
fn split_while(pages: &[Page], alike: impl Fn(&Page) -> bool) -> (&[Page], &[Page]) {
    let count = pages.iter().take_while(|page| alike(page)).count();
    pages.split_at(count)
}

/// Whether a page holds nothing.
fn is_zero(page: &Page) -> bool {
    let (words, _) = page.as_chunks::<64>();
    words
        .iter()
        .all(|line| line.iter().fold(0, |all, byte| all | byte) == 0)
}

/// The lines of `len` bytes at offset `from` of a page.
fn lines(from: u64, len: u64) -> u64 {
    let first = (from % PAGE) / LINE;
    let last = ((from % PAGE + len.max(1) - 1) / LINE).min(63);
    (u64::MAX >> (63 - last)) & (u64::MAX << first)
}

fn check<'a>(region: &Region, others: impl Iterator<Item = &'a Region>) -> Result<(), MemoryError> {
    if region.size == 0 || !region.base.is_multiple_of(PAGE) || !region.size.is_multiple_of(PAGE) {
        return Err(MemoryError::Granularity(*region));
    }
    if region.end() != 0 && region.end() < region.base {
        return Err(MemoryError::Wraps(*region));
    }
    for other in others {
        if region.overlaps(other) {
            return Err(MemoryError::Overlap(*region, *other));
        }
    }
    Ok(())
}

/// Zeroed bytes, or nothing when the host has no room: asking first avoids the
/// abort of a failed allocation.
fn zeroed(total: u64) -> Option<Vec<u8>> {
    let len = usize::try_from(total).ok()?;
    let mut probe: Vec<u8> = Vec::new();
    probe.try_reserve_exact(len).ok()?;
    drop(probe);
    Some(vec![0; len])
}
