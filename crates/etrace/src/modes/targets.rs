//! The jump target cache (3.2.7): direct-mapped, indexed by target address.

use alloc::boxed::Box;
use alloc::vec;

use super::first_bit;

/// The targets of the last uninferable jumps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Targets {
    /// `None` for an entry that is invalid.
    entries: Box<[Option<u64>]>,
    first_bit: u32,
}

impl Targets {
    /// A cache with 2^`cache_size` entries, all invalid.
    pub(crate) fn new(cache_size: u8, iaddress_lsb: u8) -> Targets {
        let entries = 1usize << (cache_size & 15);
        Targets {
            entries: vec![None; entries].into_boxed_slice(),
            first_bit: first_bit(iaddress_lsb),
        }
    }

    /// Whether it has 2^`cache_size` entries.
    pub(crate) fn has_size(&self, cache_size: u8) -> bool {
        self.entries.len() == 1 << (cache_size & 15)
    }

    /// Where this target goes in the cache.
    #[inline]
    pub(crate) fn index(&self, target: u64) -> u16 {
        let mask = self.entries.len() - 1;
        ((target >> self.first_bit) as usize & mask) as u16
    }

    /// The target of an uninferable jump; returns whether it was there.
    #[inline]
    pub(crate) fn update(&mut self, target: u64) -> bool {
        let index = usize::from(self.index(target));
        let Some(entry) = self.entries.get_mut(index) else {
            return false;
        };
        entry.replace(target) == Some(target)
    }

    /// The target with this index, if the entry is valid.
    #[inline]
    pub(crate) fn get(&self, index: u16) -> Option<u64> {
        *self.entries.get(usize::from(index))?
    }

    /// The entry of this address cannot be used, unless it holds just that.
    ///
    /// An encoder does this for a return that it leaves out. Its target must not
    /// be stored (3.2.7), but the decoder of chapter 11 in 2.05 stores it; an
    /// entry that is not used reads the same for both.
    #[inline]
    pub(crate) fn disuse(&mut self, target: u64) {
        let index = usize::from(self.index(target));
        if let Some(entry) = self.entries.get_mut(index)
            && *entry != Some(target)
        {
            *entry = None;
        }
    }

    /// A synchronisation packet was sent.
    pub(crate) fn reset(&mut self) {
        self.entries.fill(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_found_once_it_was_there() {
        let mut cache = Targets::new(3, 1);
        assert!(!cache.update(0x1006));
        assert_eq!(cache.get(3), Some(0x1006));
        assert!(cache.update(0x1006));
        // Another target with the same index replaces it.
        assert!(!cache.update(0x2006));
        assert!(!cache.update(0x1006));
        // And one with another index does not.
        assert!(!cache.update(0x1008));
        assert!(cache.update(0x1006));
    }

    /// Bits size:1 with compressed instructions, size+1:2 without.
    #[test]
    fn entries_are_indexed_by_low_address_bits() {
        for (lsb, shift) in [(0, 1), (1, 1), (2, 2)] {
            let cache = Targets::new(5, lsb);
            for slot in 0..64u64 {
                assert_eq!(u64::from(cache.index(slot << shift)), slot % 32);
            }
        }
    }

    #[test]
    fn a_synchronisation_invalidates_all() {
        let mut cache = Targets::new(2, 1);
        for target in [0, 2, 4, 6] {
            cache.update(target);
        }
        assert_eq!(cache.get(0), Some(0));
        cache.reset();
        assert!((0..4).all(|index| cache.get(index).is_none()));
        assert_eq!(cache.get(4), None);
    }

    #[test]
    fn an_entry_in_dispute_is_not_used() {
        let mut cache = Targets::new(2, 1);
        cache.update(0x10);
        cache.disuse(0x10);
        assert!(cache.update(0x10));
        cache.disuse(0x20);
        assert!(!cache.update(0x10));
    }
}
