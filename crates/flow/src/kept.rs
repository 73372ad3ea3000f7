//! Names for slices of runs that a decoder hands out again and again.

use core::sync::atomic::{AtomicU32, Ordering};

/// Names a slice of runs that block tables keep: where the same name comes again, the
/// runs are the same, but for the `next` of the last one.
///
/// So a consumer needs to look at the runs of a name only once. Names of different
/// tables differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kept {
    store: u32,
    at: u32,
}

impl Kept {
    pub(crate) const fn new(store: u32, at: u32) -> Kept {
        Kept { store, at }
    }

    /// What the slice is kept in. A store that is emptied gets another number.
    #[must_use]
    #[inline]
    pub const fn store(self) -> u32 {
        self.store
    }

    /// Its place there: less than a million.
    #[must_use]
    #[inline]
    pub const fn index(self) -> u32 {
        self.at
    }
}

/// The number of a new store. One is taken when tables are made or emptied, never
/// while they are used.
pub(crate) fn new_store() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
