//! Physical memory: RAM and ROM, in pages.
//!
//! Pages are addressed by frame: the pages of the largest RAM region, those of
//! the other RAM, those of ROM. The first have an allocation of their own, so
//! that the interpreter can take it away and reach it by address alone. It is
//! zeroed by the system page by page: a large memory costs what the program
//! touches.

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
    /// The address after the region; 0 when it reaches the end of the
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
                    "memory {} reaches past the end of the address space",
                    show(r)
                )
            }
            MemoryError::Overlap(a, b) => {
                write!(f, "memory {} overlaps {}", show(a), show(b))
            }
            MemoryError::TooLarge(bytes) => {
                write!(f, "the host cannot allocate {} MiB of memory", bytes >> 20)
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
    /// Number of the page.
    pub(crate) frame: u32,
    /// RAM, not ROM.
    pub(crate) writable: bool,
}

/// RAM and ROM.
pub struct Memory {
    /// The largest RAM region; its frames come first.
    ram: Vec<u8>,
    /// Its size, while the bytes are lent.
    main: usize,
    /// The length after which all bytes are zero, until a hart has run.
    used: Option<usize>,
    /// The other RAM regions, and ROM.
    rest: Vec<u8>,
    regions: Vec<Mapped>,
    /// Per frame, the lines that hold code a hart has decoded.
    code: Vec<u64>,
    /// Per frame, whether stores to it must be noted: it has decoded code, or
    /// the host watches it.
    watched: Vec<bool>,
    /// Those the host watches.
    pinned: Vec<u32>,
    /// Frames written since they were decoded; the harts forget their code.
    stale: Vec<u32>,
    /// Frames watched since the last look of [`Memory::take_fresh`], if anyone looks.
    fresh: Option<Vec<u32>>,
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
        let wanted = ram.iter().map(|&r| (r, true));
        let fixed = (!rom.is_empty()).then_some((rom_region, false));
        for (region, writable) in wanted.chain(fixed) {
            check(&region, regions.iter().map(|m| &m.region))?;
            regions.push(Mapped {
                region,
                frame: 0,
                writable,
            });
        }
        let (main, total) = number(&mut regions)?;
        let all = u64::from(total) * PAGE;
        let mut memory = Memory {
            ram: zeroed(main).ok_or(MemoryError::TooLarge(all))?,
            main: main as usize,
            used: Some(0),
            rest: zeroed(all - main).ok_or(MemoryError::TooLarge(all))?,
            regions,
            code: vec![0; total as usize],
            watched: vec![false; total as usize],
            pinned: Vec::new(),
            stale: Vec::new(),
            fresh: None,
        };
        let at = memory.rest.len() - rom_region.size as usize;
        if let Some(bytes) = memory.rest.get_mut(at..at + rom.len()) {
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
            // Untouched parts of a large memory are not examined.
            let size = match self.used.filter(|_| mapped.frame == 0) {
                Some(used) => size.min((used as u64).next_multiple_of(PAGE)),
                None => size,
            };
            let bytes = self.at(mapped.frame, 0, size as usize).unwrap_or_default();
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
        self.at(frame, 0, PAGE as usize)?.first_chunk()
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

    /// The region that holds `len` bytes at a physical address, and the frame
    /// they start in.
    fn range(&self, paddr: u64, len: usize) -> Option<(&Mapped, u32)> {
        let mut regions = self.regions.iter();
        let mapped = regions.find(|m| m.region.contains(paddr, len as u64))?;
        let page = (paddr - mapped.region.base) / PAGE;
        Some((mapped, mapped.frame + page as u32))
    }

    /// Reads bytes; false when some of them are not in one region.
    pub fn read(&self, paddr: u64, into: &mut [u8]) -> bool {
        let range = self.range(paddr, into.len());
        match range.and_then(|(_, frame)| self.at(frame, paddr, into.len())) {
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
        let Some((_, first)) = self.range(paddr, data.len()).filter(|(m, _)| m.writable) else {
            return false;
        };
        let mut from = paddr % PAGE;
        let mut left = data.len() as u64;
        for frame in first.. {
            let len = left.min(PAGE - from);
            if len == 0 {
                break;
            }
            self.note(frame, lines(from, len));
            (from, left) = (0, left - len);
        }
        let end = (u64::from(first) * PAGE + paddr % PAGE) as usize + data.len();
        self.used = self.used.map(|used| used.max(end.min(self.main)));
        match self.at_mut(first, paddr, data.len()) {
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

    /// Watches stores to a page for the host, for good.
    pub(crate) fn pin(&mut self, frame: u32) {
        self.watch(frame);
        self.pinned.push(frame);
    }

    /// Watches stores to a page from now on. True when it was not watched.
    fn watch(&mut self, frame: u32) -> bool {
        let first = match self.watched.get_mut(frame as usize) {
            Some(watched) => !core::mem::replace(watched, true),
            None => false,
        };
        if first && let Some(fresh) = &mut self.fresh {
            fresh.push(frame);
        }
        first
    }

    /// From now on several harts use it.
    pub(crate) fn share(&mut self) {
        self.fresh = Some(Vec::new());
    }

    /// The frames watched since the last call: other harts than the one that decodes
    /// their code may think that stores to them need no notice.
    pub(crate) fn take_fresh(&mut self) -> Vec<u32> {
        self.fresh.as_mut().map(core::mem::take).unwrap_or_default()
    }

    /// Whether stores to the page must be noted.
    #[inline(always)]
    pub(crate) fn is_watched(&self, frame: u32) -> bool {
        self.watched.get(frame as usize).copied().unwrap_or(true)
    }

    /// Exchanges the bytes of the largest RAM region with `other`: the
    /// interpreter borrows them while it runs, so that it finds them without
    /// going through here.
    #[inline]
    pub(crate) fn swap_ram(&mut self, other: &mut Vec<u8>) {
        core::mem::swap(&mut self.ram, other);
    }

    /// A hart may store anywhere from now on.
    #[inline]
    pub(crate) fn run(&mut self) {
        self.used = None;
    }

    /// Bytes from an address of a page on; none of what is lent.
    #[inline(always)]
    pub(crate) fn at(&self, frame: u32, addr: u64, len: usize) -> Option<&[u8]> {
        let start = (u64::from(frame) * PAGE + addr % PAGE) as usize;
        match start.checked_sub(self.main) {
            None => self.ram.get(start..start + len),
            Some(start) => self.rest.get(start..start + len),
        }
    }

    /// Bytes from an address of a page on, which the caller knows to be RAM.
    #[inline(always)]
    pub(crate) fn at_mut(&mut self, frame: u32, addr: u64, len: usize) -> Option<&mut [u8]> {
        let start = (u64::from(frame) * PAGE + addr % PAGE) as usize;
        match start.checked_sub(self.main) {
            None => self.ram.get_mut(start..start + len),
            Some(start) => self.rest.get_mut(start..start + len),
        }
    }

    /// The largest RAM region, whose first frame is 0.
    pub(crate) fn main_ram(&self) -> Option<Region> {
        let main = self.regions.iter().find(|m| m.writable && m.frame == 0);
        main.map(|m| m.region)
    }

    /// Says that bytes of a page were written. True when code was among them.
    pub(crate) fn note_store(&mut self, frame: u32, from: u64, len: u64) -> bool {
        self.note(frame, lines(from, len))
    }

    /// Whether there is code among bytes of a page.
    pub(crate) fn holds_code(&self, frame: u32, from: u64, len: u64) -> bool {
        let marks = self.code.get(frame as usize);
        marks.is_some_and(|marks| marks & lines(from, len) != 0)
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
    /// forgotten now. Until then stores to it are noted, however many; from then on
    /// none are, until there is code again.
    pub(crate) fn take_stale(&mut self) -> Vec<u32> {
        let stale = core::mem::take(&mut self.stale);
        for &frame in &stale {
            if let Some(marks) = self.code.get_mut(frame as usize) {
                *marks = 0;
            }
            if let Some(watched) = self.watched.get_mut(frame as usize) {
                *watched = self.pinned.contains(&frame);
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
    // As one comparison of memory, which is fast in every build.
    const NOTHING: Page = [0; PAGE as usize];
    *page == NOTHING
}

/// The lines of `len` bytes at offset `from` of a page.
fn lines(from: u64, len: u64) -> u64 {
    let first = (from % PAGE) / LINE;
    let last = ((from % PAGE + len.max(1) - 1) / LINE).min(63);
    (u64::MAX >> (63 - last)) & (u64::MAX << first)
}

/// Gives the regions their frames. Gives the bytes of the largest RAM region,
/// whose frames come first, and the number of all frames.
fn number(regions: &mut [Mapped]) -> Result<(u64, u32), MemoryError> {
    let ram = regions.iter().filter(|m| m.writable);
    let most = ram.map(|m| m.region.size).max().unwrap_or(0);
    let main = regions
        .iter()
        .position(|m| m.writable && m.region.size == most);
    let mut frames = most / PAGE;
    for (i, mapped) in regions.iter_mut().enumerate() {
        if Some(i) != main {
            mapped.frame = frames as u32;
            frames = frames.saturating_add(mapped.region.size / PAGE);
        }
    }
    match u32::try_from(frames) {
        Ok(total) => Ok((most, total)),
        Err(_) => Err(MemoryError::TooLarge(frames.saturating_mul(PAGE))),
    }
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
