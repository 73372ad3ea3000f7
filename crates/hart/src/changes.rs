//! What the instructions of [`Pieces`](crate::pieces::Pieces) changed.

use hartrace_flow::{Access, Change, Changes, Effects, RegWrite};

use crate::code::LONGEST;

/// Instructions whose changes are kept: few enough to stay in the cache.
const MOST: usize = 256;

/// Instructions that changed much, and are kept before a block begins.
const MOST_OTHERS: usize = 16;

/// Changes that the observer has not seen yet, and those of the current instruction.
#[derive(Debug)]
pub(crate) struct Collected {
    list: Box<[Change; MOST]>,
    /// Those of instructions that retired.
    len: usize,
    /// Effects of instructions that changed much; more than there are, to be used again.
    others: Vec<Effects>,
    others_len: usize,
    /// What memory held before each store of a run that may be taken back.
    pub(crate) old: Vec<Old>,
}

/// What a place in memory held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Old {
    pub(crate) frame: u32,
    /// An address in the page.
    pub(crate) addr: u64,
    /// In bytes.
    pub(crate) size: u8,
    pub(crate) value: u64,
}

impl Collected {
    pub(crate) fn new() -> Collected {
        Collected {
            list: Box::new([Change::NONE; MOST]),
            len: 0,
            others: Vec::new(),
            others_len: 0,
            old: Vec::new(),
        }
    }

    /// What the current instruction has changed so far.
    #[inline(always)]
    pub(crate) fn current(&mut self) -> &mut Change {
        // Masked to the size of the array.
        #[allow(clippy::indexing_slicing)]
        &mut self.list[self.len % MOST]
    }

    /// The current instruction changes more than a [`Change`] has room for: from now on it
    /// is in `effects`.
    #[cold]
    #[inline(never)]
    pub(crate) fn widen(&mut self, effects: &mut Effects) {
        let change = self.current();
        if !change.more {
            change.add_to(effects);
        }
        // No room is left.
        *change = Change {
            reg: Some(RegWrite::default()),
            access: Some(Access::default()),
            fflags: Some(0),
            more: true,
        };
    }

    /// The current instruction has retired.
    #[inline(always)]
    pub(crate) fn keep(&mut self, effects: &mut Effects) {
        if self.current().more {
            self.keep_wide(effects);
        }
        self.len += 1;
        self.begin();
    }

    #[cold]
    #[inline(never)]
    fn keep_wide(&mut self, effects: &mut Effects) {
        match self.others.get_mut(self.others_len) {
            Some(other) => other.copy_from(effects),
            None => self.others.push(*effects),
        }
        self.others_len += 1;
        effects.clear();
    }

    /// An instruction begins. What the one before has left there is not copied over.
    #[inline(always)]
    fn begin(&mut self) {
        let change = self.current();
        change.reg = None;
        change.access = None;
        change.fflags = None;
        change.more = false;
    }

    /// Whether there may be too little room for the changes of another block.
    #[inline(always)]
    pub(crate) fn is_full(&self) -> bool {
        self.len >= MOST - LONGEST || self.others_len >= MOST_OTHERS
    }

    /// Those of instructions that retired.
    pub(crate) fn all(&self) -> Changes<'_> {
        Changes {
            list: self.list.get(..self.len).unwrap_or_default(),
            others: self.others.get(..self.others_len).unwrap_or_default(),
        }
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.others_len = 0;
        self.begin();
    }
}
