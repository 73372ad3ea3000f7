//! Chains: the runs of several branch outcomes in one slice.
//!
//! A loop produces the same outcomes at the same place again and again. For a
//! block and its next outcomes, up to eight, a chain caches the runs they lead
//! through and the block after them, so that the walk's inner loop takes one
//! lookup and one slice for all of them.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use crate::blocks::id::{BlockId, NOWHERE};
use crate::kept::new_store;
use crate::{Kept, Outcomes, Run};

/// What a block and its next outcomes lead to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    /// Block and outcomes; [`Chain::VACANT`] for a slot not in use.
    key: u64,
    /// Where the chain ends, never [`NOWHERE`].
    pub(crate) end: BlockId,
    /// Length in halfwords.
    pub(crate) halfwords: u32,
    /// The same in instructions.
    pub(crate) insns: u32,
    /// Its runs in the table's store.
    from: u32,
    len: u16,
    /// Outcomes it uses up, 1 to 8, or 30; 0 while it has only been asked for once.
    pub(crate) used: u8,
    /// There are calls among its runs.
    pub(crate) calls: bool,
    /// The [hash](Chains::hash) of where it ends.
    hash: u32,
}

impl Chain {
    pub(crate) const VACANT: Chain = Chain {
        key: u64::MAX,
        end: NOWHERE,
        halfwords: 0,
        insns: 0,
        from: 0,
        len: 0,
        used: 0,
        calls: false,
        hash: 0,
    };

    /// Where it ends.
    #[inline(always)]
    pub(crate) const fn place(&self) -> Place {
        Place {
            block: self.end,
            hash: self.hash,
        }
    }
}

/// A block from which chains are looked up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) block: BlockId,
    hash: u32,
}

impl Place {
    pub(crate) const fn new(block: BlockId) -> Place {
        Place {
            block,
            hash: Chains::hash(block),
        }
    }
}

/// A chain whose runs are in the store, before it has a name.
pub(crate) struct Gathered {
    /// Where its runs start in the store.
    pub(crate) from: usize,
    pub(crate) used: u8,
    pub(crate) halfwords: u32,
    pub(crate) insns: u32,
    pub(crate) end: BlockId,
}

/// Slots, a power of two: 256 KiB, to stay in a core's own cache.
const SLOTS: usize = 1 << 13;

/// Runs kept at most (16 MiB); then the table starts afresh.
const STORE: usize = 1 << 19;

/// The chains of a [`Blocks`](crate::Blocks) table: a cache of fixed size.
#[derive(Debug)]
pub(crate) struct Chains {
    slots: Box<[Chain]>,
    store: Vec<Run>,
    /// The number of the store.
    number: u32,
    credit: u64,
    rest: u32,
}

/// Each hit earns a credit, each miss costs some; without credit the table is
/// left alone for a while. Code whose branches do not repeat themselves goes
/// faster without it.
const MAX_CREDIT: u64 = 1 << 10;
const MISS: u64 = 4;
const REST: u32 = 1 << 14;

impl Chains {
    pub(crate) fn new() -> Chains {
        Chains {
            slots: vec![Chain::VACANT; SLOTS].into_boxed_slice(),
            store: Vec::new(),
            number: new_store(),
            credit: MAX_CREDIT,
            rest: 0,
        }
    }

    const fn key(block: BlockId, outcomes: Outcomes) -> u64 {
        (block as u64) << 16 | (outcomes.count as u64) << 8 | outcomes.bits as u64
    }

    const fn hash(block: BlockId) -> u32 {
        block.wrapping_mul(0x9e37_79b9)
    }

    /// The slot of the outcomes after a place: the sum of two hashes, so that the one of
    /// the outcomes need not wait until the place is known.
    #[inline(always)]
    const fn slot(place: Place, outcomes: Outcomes) -> usize {
        let outcomes = (outcomes.count as u32) << 8 | outcomes.bits as u32;
        let sum = place.hash.wrapping_add(outcomes.wrapping_mul(0x85eb_ca6b));
        (sum >> (u32::BITS - SLOTS.trailing_zeros())) as usize
    }

    /// The chain of a block and its next outcomes, if it was built: it [earns](Chains::earn).
    #[inline(always)]
    pub(crate) fn find(&self, place: Place, outcomes: Outcomes) -> Option<&Chain> {
        let chain = self.slots.get(Chains::slot(place, outcomes))?;
        let key = Chains::key(place.block, outcomes);
        (chain.key == key && chain.used != 0).then_some(chain)
    }

    /// So many chains were found.
    #[inline]
    pub(crate) fn earn(&mut self, count: u64) {
        self.credit += count;
    }

    /// After [`Chains::find`] found nothing: whether the chain was asked for
    /// before and is worth building.
    pub(crate) fn is_wanted(&mut self, block: BlockId, outcomes: Outcomes) -> bool {
        if self.rest > 0 {
            self.rest -= 1;
            return false;
        }
        match self.credit.min(MAX_CREDIT).checked_sub(MISS) {
            Some(less) => self.credit = less,
            None => {
                self.credit = MAX_CREDIT;
                self.rest = REST;
            }
        }
        let key = Chains::key(block, outcomes);
        let slot = Chains::slot(Place::new(block), outcomes);
        let Some(slot) = self.slots.get_mut(slot) else {
            return false;
        };
        if slot.key == key {
            return true;
        }
        // Two that share a slot must not rebuild each other's chain every
        // time: the newcomer only announces itself.
        *slot = Chain {
            key,
            ..Chain::VACANT
        };
        false
    }

    #[inline]
    pub(crate) fn runs(&self, chain: &Chain) -> &[Run] {
        let from = chain.from as usize;
        self.store
            .get(from..from + usize::from(chain.len))
            .unwrap_or_default()
    }

    /// The name of a chain's runs.
    #[inline]
    pub(crate) fn kept(&self, chain: &Chain) -> Kept {
        Kept::new(self.number, chain.from)
    }

    /// Makes room for a new chain; gives the place where its runs will start.
    pub(crate) fn begin(&mut self) -> usize {
        if self.store.len() > STORE {
            self.store.clear();
            self.number = new_store();
            self.slots.fill(Chain::VACANT);
        }
        self.store.len()
    }

    /// Appends runs to the chain begun last; returns the position after them.
    pub(crate) fn push(&mut self, runs: &[Run]) -> usize {
        self.store.extend_from_slice(runs);
        self.store.len()
    }

    /// The runs appended from a position on.
    pub(crate) fn since(&self, from: usize) -> &[Run] {
        self.store.get(from..).unwrap_or_default()
    }

    /// Takes back runs appended too many.
    pub(crate) fn truncate(&mut self, to: usize) {
        self.store.truncate(to);
    }

    /// The number of the store.
    #[inline]
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// A chain whose runs were appended last.
    pub(crate) fn name(&self, key: u64, chain: Gathered) -> Chain {
        let runs = self.store.get(chain.from..).unwrap_or_default();
        Chain {
            key,
            end: chain.end,
            halfwords: chain.halfwords,
            insns: chain.insns,
            from: chain.from as u32,
            // At most a few more than 64.
            len: runs.len() as u16,
            used: chain.used,
            calls: runs.iter().any(|r| r.exit.stacks()),
            hash: Chains::hash(chain.end),
        }
    }

    /// Enters a chain whose runs were appended last; one that uses no outcome
    /// is none.
    pub(crate) fn enter(&mut self, (block, outcomes): (BlockId, Outcomes), chain: Gathered) {
        if chain.used > 0 {
            let key = Chains::key(block, outcomes);
            let chain = self.name(key, chain);
            let slot = Chains::slot(Place::new(block), outcomes);
            if let Some(slot) = self.slots.get_mut(slot) {
                *slot = chain;
            }
        }
    }
}
