//! Ranges of code memory in address order, shared between the epochs of an
//! image.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use hartrace_isa::Isa;

/// A stretch of code memory. Cheap to clone and to cut.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(super) base: u64,
    data: Arc<[u8]>,
    from: usize,
    to: usize,
    pub(super) isa: Isa,
}

impl Segment {
    /// A part of the data at an address, as far as there are addresses; `None`
    /// if nothing is left.
    pub(super) fn new(
        base: u64,
        data: &Arc<[u8]>,
        part: Range<usize>,
        isa: Isa,
    ) -> Option<Segment> {
        let base = isa.xlen().wrap(base);
        let last = (isa.xlen().wrap(u64::MAX) - base).min(part.len().checked_sub(1)? as u64);
        Some(Segment {
            base,
            data: Arc::clone(data),
            from: part.start,
            to: part.start + last as usize + 1,
            isa,
        })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.data.get(self.from..self.to).unwrap_or_default()
    }

    fn len(&self) -> u64 {
        (self.to - self.from) as u64
    }

    /// Whether the address is in it.
    #[inline]
    pub(super) fn holds(&self, addr: u64) -> bool {
        addr.wrapping_sub(self.base) < self.len()
    }

    /// The last address; segments are never empty.
    fn last(&self) -> u64 {
        self.base + (self.len() - 1)
    }

    /// The part in `from..=to`, both addresses of this segment.
    fn cut(&self, from: u64, to: u64) -> Segment {
        let mut part = self.clone();
        part.base = from;
        part.from = self.from + (from - self.base) as usize;
        part.to = self.from + (to - self.base) as usize + 1;
        part
    }
}

/// Segments in address order, none overlapping, in chunks that copies share: a
/// patch on top of thousands of others copies one chunk and the list of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Segments {
    /// None of them empty.
    chunks: Vec<Arc<[Segment]>>,
}

/// Segments in a chunk at most.
const CHUNK: usize = 32;

impl Segments {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Segment> {
        self.chunks.iter().flat_map(|c| c.iter())
    }

    /// The segment that holds the address.
    pub(super) fn find(&self, addr: u64) -> Option<&Segment> {
        let chunk = self.chunks.get(self.chunk_of(addr)?)?;
        let at = chunk.partition_point(|s| s.base <= addr).checked_sub(1)?;
        chunk.get(at).filter(|s| s.holds(addr))
    }

    /// The last chunk that starts at or below the address.
    fn chunk_of(&self, addr: u64) -> Option<usize> {
        let starts = |c: &Arc<[Segment]>| c.first().is_some_and(|s| s.base <= addr);
        self.chunks.partition_point(starts).checked_sub(1)
    }

    /// Puts segments in place one after the other; what each covers of older
    /// ones is gone. A file may have any number of them in any order, so only
    /// the chunks they fall in are made again, once.
    pub(super) fn insert(&mut self, new: impl IntoIterator<Item = Segment>) {
        let new: Vec<Segment> = new.into_iter().collect();
        let (Some(low), Some(high)) = (
            new.iter().map(|s| s.base).min(),
            new.iter().map(Segment::last).max(),
        ) else {
            return;
        };
        let from = self.chunk_of(low).unwrap_or(0);
        let to = self.chunk_of(high).map_or(0, |c| c + 1).max(from);
        let old = self.chunks.get(from..to).unwrap_or_default();
        let old = old.iter().flat_map(|c| c.iter().cloned());
        let mut placed = BTreeMap::new();
        placed.extend(old.map(|s: Segment| (s.base, s)));
        for segment in new {
            place(&mut placed, segment);
        }
        let all: Vec<Segment> = placed.into_values().collect();
        // Chunks of equal size, so that none is left with a segment or two.
        let size = all.len().div_ceil(all.len().div_ceil(CHUNK).max(1)).max(1);
        self.chunks
            .splice(from..to, all.chunks(size).map(Arc::from));
    }
}

/// Puts one segment among others; what it covers of them is gone.
fn place(placed: &mut BTreeMap<u64, Segment>, new: Segment) {
    let (from, to) = (new.base, new.last());
    let before = placed.range_mut(..from).next_back();
    let before = before.filter(|(_, old)| old.last() >= from);
    let mut behind = None;
    if let Some((_, old)) = before {
        behind = (old.last() > to).then(|| old.cut(to + 1, old.last()));
        *old = old.cut(old.base, from - 1);
    }
    while let Some((&base, _)) = placed.range(from..=to).next() {
        let old = placed.remove(&base).filter(|old| old.last() > to);
        behind = behind.or(old.map(|old| old.cut(to + 1, old.last())));
    }
    placed.extend(behind.map(|part| (part.base, part)));
    placed.insert(from, new);
}
