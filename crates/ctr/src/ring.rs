//! The circular array of entries.

use alloc::boxed::Box;

use crate::record::{Record, VALID};

/// Entries that exist, whatever depth is chosen.
const ENTRIES: usize = 256;

/// The array, WRPTR and WRAP.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    entries: Box<[Record; ENTRIES]>,
    /// The chosen depth, a power of two, minus 1.
    mask: u8,
    /// WRPTR: the physical entry to be written next, below the depth.
    pub(crate) next: u8,
    /// WRAP (0.1.4).
    pub(crate) wrapped: bool,
}

impl Ring {
    pub(crate) fn new(depth: u16) -> Ring {
        Ring {
            entries: Box::new([Record::default(); ENTRIES]),
            mask: (depth - 1) as u8,
            next: 0,
            wrapped: false,
        }
    }

    pub(crate) const fn depth(&self) -> u16 {
        self.mask as u16 + 1
    }

    /// Chooses another depth. The texts leave open what entries and WRPTR hold
    /// then; here the array stays as it is and WRPTR loses its upper bits.
    pub(crate) const fn set_depth(&mut self, depth: u16) {
        self.mask = (depth - 1) as u8;
        self.set_next(self.next);
    }

    /// Sets WRPTR; bits above the depth do not exist.
    pub(crate) const fn set_next(&mut self, next: u8) {
        self.next = next & self.mask;
    }

    /// Zeroes every entry, at any depth.
    pub(crate) fn clear(&mut self) {
        self.entries.fill(Record::default());
    }

    /// The physical place of a logical entry (2.4).
    const fn place(&self, entry: u8) -> u8 {
        self.next.wrapping_sub(entry).wrapping_sub(1) & self.mask
    }

    /// A byte finds an entry always.
    #[allow(clippy::indexing_slicing)]
    #[inline]
    fn at(&mut self, place: u8) -> &mut Record {
        &mut self.entries[usize::from(place)]
    }

    /// A logical entry; those beyond the depth read as zero.
    pub(crate) fn get(&self, entry: u8) -> Record {
        if entry > self.mask {
            return Record::default();
        }
        let place = usize::from(self.place(entry));
        self.entries.get(place).copied().unwrap_or_default()
    }

    /// A logical entry to be written, unless it is beyond the depth.
    pub(crate) fn get_mut(&mut self, entry: u8) -> Option<&mut Record> {
        let place = self.place(entry);
        (entry <= self.mask).then(|| self.at(place))
    }

    /// A new entry 0.
    #[inline]
    pub(crate) fn push(&mut self, record: Record) {
        let next = self.next;
        *self.at(next) = record;
        self.wrapped |= next == self.mask;
        self.next = next.wrapping_add(1) & self.mask;
    }

    /// Lets some entries go by unseen: as many pushes, whatever they held.
    pub(crate) fn skip(&mut self, pushes: u64) {
        let end = u64::from(self.next) + pushes;
        self.wrapped |= end > u64::from(self.mask);
        self.next = end as u8 & self.mask;
    }

    /// Takes entry 0 away and gives what it held; it is entry depth - 1 now,
    /// and invalid.
    #[inline]
    pub(crate) fn pop(&mut self) -> Record {
        self.wrapped &= self.next != 0;
        self.next = self.next.wrapping_sub(1) & self.mask;
        let next = self.next;
        let entry = self.at(next);
        let held = *entry;
        entry.ctrsource &= !VALID;
        held
    }
}
