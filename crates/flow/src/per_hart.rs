//! State for each hart of a stream.

use alloc::vec::Vec;

use crate::HartId;

/// One `T` per hart, made when the hart first appears. Harts are few and the
/// same one mostly comes again.
#[derive(Clone, Debug)]
pub struct PerHart<T> {
    entries: Vec<(HartId, T)>,
    recent: usize,
}

impl<T> Default for PerHart<T> {
    fn default() -> Self {
        PerHart {
            entries: Vec::new(),
            recent: 0,
        }
    }
}

impl<T: Default> PerHart<T> {
    /// The state of this hart.
    #[inline]
    pub fn of(&mut self, hart: HartId) -> &mut T {
        let recent = self.entries.get(self.recent).map(|e| e.0);
        if recent != Some(hart) {
            return self.find(hart);
        }
        #[allow(clippy::indexing_slicing)] // looked at just now
        &mut self.entries[self.recent].1
    }

    /// Makes another hart the recent one.
    #[cold]
    #[inline(never)]
    fn find(&mut self, hart: HartId) -> &mut T {
        let known = self.entries.iter().position(|e| e.0 == hart);
        self.recent = known.unwrap_or_else(|| {
            self.entries.push((hart, T::default()));
            self.entries.len() - 1
        });
        #[allow(clippy::indexing_slicing)] // found or pushed just now
        &mut self.entries[self.recent].1
    }

    /// Every hart there was, in the order of appearance.
    pub fn iter(&self) -> impl Iterator<Item = (HartId, &T)> {
        self.entries.iter().map(|(hart, state)| (*hart, state))
    }

    /// As [`PerHart::iter`], to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (HartId, &mut T)> {
        self.entries.iter_mut().map(|(hart, state)| (*hart, state))
    }
}
