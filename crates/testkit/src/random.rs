//! Pseudorandom numbers that are the same on every machine.

/// A small generator (splitmix64): one seed, one sequence, integers only, so
/// that a case found on one machine can be made again on any other. Every seed
/// is good, 0 and neighbours included.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next 64 bits.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A sequence of its own for one part of the work, so that a change in
    /// one part leaves the others as they were.
    #[must_use]
    pub fn fork(&mut self, part: u64) -> Random {
        Random(self.draw() ^ part.wrapping_mul(0xd6e8_feb8_6659_fd93))
    }

    /// A number below `bound`; 0 for a bound of 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(bound)) >> 64) as u64
    }

    /// As [`Random::below`], 32 bits wide.
    #[inline]
    pub fn below32(&mut self, bound: u32) -> u32 {
        self.below(u64::from(bound)) as u32
    }

    /// As [`Random::below`], for lengths and indexes.
    #[inline]
    pub fn index(&mut self, bound: usize) -> usize {
        self.below(bound as u64) as usize
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(u64::from(high.saturating_sub(low)) + 1) as u32
    }

    /// A number of any width up to this many bits, each width as often.
    pub fn bits(&mut self, most: u32) -> u64 {
        let width = self.below(u64::from(most) + 1) as u32;
        self.draw().checked_shr(64 - width).unwrap_or(0)
    }

    /// True this many times in a thousand.
    #[inline]
    pub fn chance(&mut self, permille: u32) -> bool {
        self.below(1000) < u64::from(permille)
    }

    /// True once in so many times.
    #[inline]
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// True half of the time.
    #[inline]
    pub fn flip(&mut self) -> bool {
        self.one_in(2)
    }

    /// One of the items; the default when there are none.
    #[inline]
    pub fn pick<T: Copy + Default>(&mut self, items: &[T]) -> T {
        let at = self.index(items.len());
        items.get(at).copied().unwrap_or_default()
    }

    /// One of the items, of which there is at least one.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn one_of<T: Copy>(&mut self, items: impl AsRef<[T]>) -> T {
        let items = items.as_ref();
        items[self.index(items.len())]
    }

    /// An item, each as often as its weight says; the default when all
    /// weights are 0.
    pub fn weighted<T: Copy + Default>(&mut self, items: &[(u32, T)]) -> T {
        let total = items.iter().map(|i| u64::from(i.0)).sum();
        let mut left = self.below(total);
        for &(weight, item) in items {
            match left.checked_sub(u64::from(weight)) {
                None => return item,
                Some(rest) => left = rest,
            }
        }
        T::default()
    }

    /// So many bytes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.draw() as u8).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_fixed() {
        // Reference values of splitmix64 for seed 0.
        let mut random = Random::new(0);
        assert_eq!(random.draw(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(random.draw(), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn bounds_hold() {
        let mut random = Random::new(1);
        for _ in 0..1000 {
            assert!(random.below(7) < 7);
            assert!(random.index(3) < 3);
            assert!((3..=5).contains(&random.between(3, 5)));
            assert!(random.bits(9) < 512);
        }
        assert_eq!(random.below(0), 0);
        assert_eq!(random.bits(0), 0);
        assert_eq!(random.pick::<u8>(&[]), 0);
        assert_eq!(random.weighted(&[(0, 1), (5, 2), (0, 3)]), 2);
        assert!(!random.chance(0) && random.chance(1000));
        assert!(random.one_in(1));
        assert_eq!(random.bytes(5).len(), 5);
    }
}
