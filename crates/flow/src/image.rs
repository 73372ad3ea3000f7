//! The program's code: which instruction is at an address, in which address
//! space and epoch.
//!
//! An image is a set of spaces. A space is one view of code memory: a process,
//! an overlay, or one epoch of code that changes while it runs. New code makes
//! a new space on top of an old one ([`Image::patch`]); unchanged bytes are
//! shared.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use hartrace_isa::{Isa, Op, decode, length};

use crate::{Context, NamedSync};

mod elf;
mod segments;
mod versions;

use segments::{Segment, Segments};

use versions::Holes;

pub use elf::{ImageError, elf_bias};
pub use versions::{Sighting, Since, Spot, Version};

/// One view of code memory in an [`Image`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpaceId(u32);

impl SpaceId {
    pub(crate) const fn of(number: u32) -> SpaceId {
        SpaceId(number)
    }

    pub(crate) const fn number(self) -> u32 {
        self.0
    }

    /// The space an image starts with.
    pub const FIRST: SpaceId = SpaceId(0);

    /// No space.
    pub(crate) const NONE: SpaceId = SpaceId(u32::MAX);

    /// Position in the order of creation.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Code for the walk, from any number of ELFs and raw binaries.
///
/// ```
/// use hartrace_flow::{Image, SpaceId};
/// use hartrace_isa::Isa;
///
/// let mut image = Image::new();
/// image.add_raw(SpaceId::FIRST, 0x8000_0000, &[0x13, 0, 0, 0, 0x82, 0x80], Isa::RV64GC);
/// let ret = image.fetch(SpaceId::FIRST, 0x8000_0004).unwrap();
/// assert_eq!((ret.bits, ret.len), (0x8082, 2));
/// ```
#[derive(Clone, Debug)]
pub struct Image {
    spaces: Vec<Space>,
    contexts: BTreeMap<Context, SpaceId>,
    holes: Holes,
    /// Synchronisation messages that a trace must have, in order.
    syncs: Vec<NamedSync>,
}

/// One view of code memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Space {
    segments: Segments,
    jvt: Option<u64>,
    /// Only instructions that start between these are part of it; what follows is the
    /// rest of the last one.
    starts: Option<(u64, u64)>,
    /// No instruction that starts between these is part of it, in order.
    barred: Vec<(u64, u64)>,
}

impl Space {
    /// Whether there is anything at the address.
    pub(crate) fn holds(&self, addr: u64) -> bool {
        self.is_start(addr) && self.segments.find(addr).is_some()
    }

    /// Whether an instruction at the address may be part of it.
    #[inline]
    pub(crate) fn is_start(&self, addr: u64) -> bool {
        if let Some((from, to)) = self.starts {
            return (from..to).contains(&addr);
        }
        let behind = match self.barred.is_empty() {
            true => return true,
            false => self.barred.partition_point(|(from, _)| *from <= addr),
        };
        let before = behind.checked_sub(1).and_then(|i| self.barred.get(i));
        before.is_none_or(|(_, to)| addr >= *to)
    }

    /// Whether it is a version of a few addresses of another space.
    pub(crate) fn is_version(&self) -> bool {
        self.starts.is_some()
    }

    /// Reads into `out` from one segment or several that touch; gives the
    /// number of bytes there were.
    fn read(&self, addr: u64, out: &mut [u8]) -> usize {
        let mut done = 0;
        while done < out.len() {
            let Some(at) = addr.checked_add(done as u64) else {
                break;
            };
            let Some(segment) = self.segments.find(at) else {
                break;
            };
            let from = (at - segment.base) as usize;
            let source = segment.bytes().get(from..).unwrap_or_default();
            let n = source.len().min(out.len() - done);
            let (Some(to), Some(from)) = (out.get_mut(done..done + n), source.get(..n)) else {
                break;
            };
            to.copy_from_slice(from);
            done += n;
        }
        done
    }

    pub(crate) fn fetch(&self, pc: u64) -> Option<Fetched> {
        self.fetch_from(self.segments.find(pc)?, pc)
    }

    /// As [`Space::fetch`], from the segment that holds the address.
    #[inline]
    fn fetch_from(&self, segment: &Segment, pc: u64) -> Option<Fetched> {
        if !self.is_start(pc) {
            return None;
        }
        let at = pc.wrapping_sub(segment.base) as usize;
        let bytes = segment.bytes();
        // The usual case: four bytes in one segment.
        let word = match bytes.get(at..).and_then(|b| b.first_chunk::<4>()) {
            Some(&word) => u32::from_le_bytes(word),
            None => {
                let mut word = [0; 4];
                let n = self.read(pc, &mut word);
                if n < 2 || (n < 4 && word.first().is_some_and(|b| b & 3 == 3)) {
                    return None;
                }
                u32::from_le_bytes(word)
            }
        };
        let len = length(word as u16);
        if len > 4 && !self.has(pc, usize::from(len)) {
            return None;
        }
        Some(Fetched {
            bits: if len == 2 { word & 0xffff } else { word },
            len,
            isa: segment.isa,
        })
    }

    /// Whether there are so many bytes; an instruction has at most 22.
    #[cold]
    fn has(&self, pc: u64, len: usize) -> bool {
        let mut bytes = [0; 22];
        bytes
            .get_mut(..len)
            .is_some_and(|bytes| self.read(pc, bytes) == len)
    }

    /// Entry of the Zcmt jump table (`cm.jt`, `cm.jalt`).
    pub(crate) fn table_entry(&self, index: u8, isa: Isa) -> Option<u64> {
        let width = isa.xlen().bits() / 8;
        let at = self.jvt?.checked_add(u64::from(index) * u64::from(width))?;
        let mut entry = [0; 8];
        let entry_bytes = entry.get_mut(..width as usize)?;
        (self.read(at, entry_bytes) == width as usize).then(|| u64::from_le_bytes(entry) & !1)
    }
}

/// An instruction as it stands in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The instruction; of one longer than 32 bits the first 32.
    pub bits: u32,
    /// Its length in bytes.
    pub len: u8,
    /// The instruction set it belongs to.
    pub isa: Isa,
}

impl Fetched {
    /// Whether it is an unknown instruction, such as a custom one.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        decode(self.bits, self.isa).op == Op::Unknown
    }
}

impl Default for Image {
    fn default() -> Self {
        Image::new()
    }
}

impl Image {
    /// An image with one space and no code.
    #[must_use]
    pub fn new() -> Image {
        Image {
            spaces: vec![Space::default()],
            contexts: BTreeMap::new(),
            holes: Holes::default(),
            syncs: Vec::new(),
        }
    }

    /// Another space without code.
    pub fn add_space(&mut self) -> SpaceId {
        self.push(Space::default())
    }

    fn push(&mut self, space: Space) -> SpaceId {
        self.spaces.push(space);
        SpaceId((self.spaces.len() - 1) as u32)
    }

    /// Adds bytes at an address, over whatever stood there. Nothing happens
    /// for no bytes, or for a space of another image; what would pass the end
    /// of the address space is left out. Addresses of RV32 code are 32 bits
    /// wide.
    pub fn add_raw(&mut self, space: SpaceId, base: u64, bytes: &[u8], isa: Isa) {
        let data: Arc<[u8]> = Arc::from(bytes);
        let range = 0..data.len();
        let segment = Segment::new(base, &data, range, isa);
        if let Some(space) = self.spaces.get_mut(space.index()) {
            space.segments.insert(segment);
        }
    }

    /// The same for many, in any order.
    pub fn add_all<'b>(
        &mut self,
        space: SpaceId,
        pieces: impl Iterator<Item = (u64, &'b [u8])>,
        isa: Isa,
    ) {
        let (mut data, mut parts): (Vec<u8>, Vec<(u64, core::ops::Range<usize>)>) =
            Default::default();
        for (base, bytes) in pieces {
            parts.push((base, data.len()..data.len() + bytes.len()));
            data.extend_from_slice(bytes);
        }
        let data: Arc<[u8]> = Arc::from(data);
        let segments = parts.into_iter();
        let segments = segments.filter_map(|(base, part)| Segment::new(base, &data, part, isa));
        if let Some(space) = self.spaces.get_mut(space.index()) {
            space.segments.insert(segments);
        }
    }

    /// A new epoch: the space as it was, with these bytes changed. The new
    /// bytes belong to the instruction set of the code they replace.
    #[must_use]
    pub fn patch(&mut self, space: SpaceId, addr: u64, bytes: &[u8]) -> SpaceId {
        let base = self.spaces.get(space.index()).cloned().unwrap_or_default();
        let here = base.segments.find(addr).or(base.segments.iter().next());
        let isa = here.map_or(Isa::RV64GC, |s| s.isa);
        let new = self.push(base);
        self.add_raw(new, addr, bytes, isa);
        new
    }

    /// Code that runs in this context is found in that space.
    pub fn assign(&mut self, context: Context, space: SpaceId) {
        self.contexts.insert(context, space);
    }

    /// The space of a context; the first one unless assigned otherwise.
    #[must_use]
    pub fn space_of(&self, context: Context) -> SpaceId {
        self.contexts.get(&context).copied().unwrap_or_default()
    }

    /// Where the Zcmt jump table stands: the base field of `jvt`.
    pub fn set_jvt(&mut self, space: SpaceId, base: u64) {
        if let Some(space) = self.spaces.get_mut(space.index()) {
            space.jvt = Some(base);
        }
    }

    /// The instruction at an address.
    #[must_use]
    #[inline]
    pub fn fetch(&self, space: SpaceId, pc: u64) -> Option<Fetched> {
        self.space(space)?.fetch(pc)
    }

    /// Bytes from an address on, as many as there are; gives their number.
    pub fn read(&self, space: SpaceId, addr: u64, out: &mut [u8]) -> usize {
        self.space(space).map_or(0, |s| s.read(addr, out))
    }

    /// The stretches of memory that hold code or constants: first address and
    /// bytes, in address order.
    pub fn segments(&self, space: SpaceId) -> impl Iterator<Item = (u64, &[u8])> {
        self.space(space)
            .into_iter()
            .flat_map(|s| s.segments.iter().map(|s| (s.base, s.bytes())))
    }

    /// The instruction set of the image's first code.
    #[must_use]
    pub fn isa(&self) -> Option<Isa> {
        self.spaces
            .iter()
            .flat_map(|s| s.segments.iter())
            .next()
            .map(|s| s.isa)
    }

    /// The next `count` instructions from `pc` on; fewer where the code ends.
    pub fn insns(&self, space: SpaceId, pc: u64, count: u64) -> Insns<'_> {
        let space = self.space(space);
        Insns {
            space,
            segment: space.and_then(|s| s.segments.find(pc)),
            pc,
            left: count,
        }
    }

    /// Target of entry `index` of a space's Zcmt jump table (`cm.jt`,
    /// `cm.jalt`); `None` where the image has no table or not that entry.
    #[must_use]
    pub fn table_entry(&self, space: SpaceId, index: u8, isa: Isa) -> Option<u64> {
        self.space(space)?.table_entry(index, isa)
    }

    pub(crate) fn space(&self, space: SpaceId) -> Option<&Space> {
        self.spaces.get(space.index())
    }
}

/// Instructions of a stretch of code: [`Image::insns`].
#[derive(Clone, Debug)]
pub struct Insns<'a> {
    space: Option<&'a Space>,
    /// The one the last instruction was in.
    segment: Option<&'a Segment>,
    pc: u64,
    left: u64,
}

impl Iterator for Insns<'_> {
    type Item = (u64, Fetched);

    fn next(&mut self) -> Option<(u64, Fetched)> {
        self.left = self.left.checked_sub(1)?;
        let pc = self.pc;
        let space = self.space?;
        if !self.segment.is_some_and(|s| s.holds(pc)) {
            self.segment = space.segments.find(pc);
        }
        let fetched = space.fetch_from(self.segment?, pc)?;
        let end = pc.wrapping_add(u64::from(fetched.len));
        self.pc = fetched.isa.xlen().wrap(end);
        Some((pc, fetched))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hartrace_testkit::Random;

    const NOP: [u8; 4] = [0x13, 0, 0, 0];

    #[test]
    fn later_code_covers_earlier_code() {
        let mut image = Image::new();
        let space = SpaceId::FIRST;
        image.add_raw(space, 0x1000, &[1; 16], Isa::RV64GC);
        image.add_raw(space, 0x1004, &[2; 4], Isa::RV64GC);
        let mut out = [0; 16];
        assert_eq!(image.read(space, 0x1000, &mut out), 16);
        assert_eq!(out, [1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1]);
        assert_eq!(image.segments(space).count(), 3);
    }

    #[test]
    fn an_instruction_may_lie_in_two_touching_segments() {
        let mut image = Image::new();
        let space = SpaceId::FIRST;
        image.add_raw(space, 0x1000, &NOP[..2], Isa::RV64GC);
        assert_eq!(image.fetch(space, 0x1000), None);
        image.add_raw(space, 0x1002, &NOP[2..], Isa::RV64GC);
        assert_eq!(image.fetch(space, 0x1000).unwrap().bits, 0x13);
    }

    #[test]
    fn a_long_instruction_that_is_cut_off_is_none() {
        let mut image = Image::new();
        let space = SpaceId::FIRST;
        image.add_raw(space, 0x1000, &[0x1f, 0, 0, 0], Isa::RV64GC);
        assert_eq!(image.fetch(space, 0x1000), None, "six bytes");
        image.add_raw(space, 0x1004, &[0, 0], Isa::RV64GC);
        assert_eq!(image.fetch(space, 0x1000).unwrap().len, 6);
    }

    #[test]
    fn rv32_code_ends_with_its_address_space() {
        let mut image = Image::new();
        let space = SpaceId::FIRST;
        image.add_raw(space, 0xffff_ffff_ffff_fffe, &[1, 0, 1, 0], Isa::RV32GC);
        let all: Vec<_> = image.segments(space).collect();
        assert_eq!(all, [(0xffff_fffe, &[1, 0][..])]);
    }

    /// Every order of covering: from the front, the back, within and all over.
    #[test]
    fn segments_cover_each_other_in_any_order() {
        for seed in 0..500u64 {
            let mut random = Random::new(seed);
            let mut expected = [0u8; 64];
            let mut image = Image::new();
            for value in 1..8 {
                let (from, len) = (random.below(48), 1 + random.below(16));
                let bytes = [value; 16];
                image.add_raw(SpaceId::FIRST, from, &bytes[..len as usize], Isa::RV64GC);
                expected[from as usize..(from + len) as usize].fill(value);
            }
            let mut actual = [0u8; 64];
            let mut end = 0;
            for (base, bytes) in image.segments(SpaceId::FIRST) {
                assert!(base >= end && !bytes.is_empty());
                end = base + bytes.len() as u64;
                actual[base as usize..end as usize].copy_from_slice(bytes);
            }
            assert_eq!(actual, expected, "{seed}");
        }
    }

    #[test]
    fn a_patch_is_a_new_epoch_and_leaves_the_old_one_alone() {
        let mut image = Image::new();
        image.add_raw(SpaceId::FIRST, 0x1000, &NOP, Isa::RV32GC);
        let later = image.patch(SpaceId::FIRST, 0x1000, &[0x82, 0x80]);
        assert_eq!(image.fetch(SpaceId::FIRST, 0x1000).unwrap().bits, 0x13);
        assert_eq!(image.fetch(later, 0x1000).unwrap().bits, 0x8082);
        assert_eq!(image.fetch(later, 0x1000).unwrap().isa, Isa::RV32GC);
    }

    /// Code that changes all the time: each epoch costs what changed.
    #[test]
    fn thousands_of_epochs_share_what_did_not_change() {
        let mut image = Image::new();
        image.add_raw(SpaceId::FIRST, 0, &[0; 0x40000], Isa::RV64GC);
        let mut space = SpaceId::FIRST;
        for i in 0..2000u64 {
            space = image.patch(space, i * 128, &[i as u8; 2]);
        }
        let mut out = [0; 4];
        image.read(space, 77 * 128, &mut out);
        assert_eq!(out, [77, 77, 0, 0]);
        assert_eq!(image.segments(space).count(), 4000);
        assert_eq!(image.segments(SpaceId::FIRST).count(), 1);
    }

    #[test]
    fn contexts_choose_spaces() {
        let mut image = Image::new();
        let other = image.add_space();
        image.assign(Context(7), other);
        assert_eq!(image.space_of(Context(7)), other);
        assert_eq!(image.space_of(Context(8)), SpaceId::FIRST);
    }

    #[test]
    fn code_at_the_top_of_the_address_space() {
        let mut image = Image::new();
        let base = u64::MAX - 3;
        image.add_raw(SpaceId::FIRST, base, &[0x13, 0, 0, 0, 9, 9], Isa::RV64GC);
        assert_eq!(image.fetch(SpaceId::FIRST, base).unwrap().bits, 0x13);
        assert_eq!(image.fetch(SpaceId::FIRST, u64::MAX), None);
        assert_eq!(image.insns(SpaceId::FIRST, base, 9).count(), 1);
    }
}
