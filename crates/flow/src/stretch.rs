//! Stretches: a cache of whole paths from one address to a jump.
//!
//! A trace of calls reports the same short paths again and again: a number of
//! halfwords, a few outcomes, and then a jump whose target it reports. A
//! stretch caches the runs of such a path, so that the walk needs one lookup
//! for it.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use crate::blocks::{BlockId, NOWHERE};
use crate::kept::new_store;
use crate::{Exit, Kept, Run};

/// The halfwords of a stretch that goes to the next jump, however far it is.
pub(crate) const ANY: u32 = 0;

/// What names a stretch: where it starts, its outcomes with a stop bit above
/// them (0 for none taken, however many), its halfwords or [`ANY`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) start: BlockId,
    pub(crate) halfwords: u32,
    pub(crate) outcomes: u64,
}

/// A stretch that was met before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    name: Name,
    /// The block of the jump; [`NOWHERE`] while it has only been asked for.
    pub(crate) jump: BlockId,
    pub(crate) insns: u32,
    from: u32,
    len: u16,
    /// There are calls or returns among its runs.
    pub(crate) stacks: bool,
    /// The class of the jump.
    pub(crate) exit: Exit,
    /// One outcome is left over, which must be that of the jump's target.
    pub(crate) own: bool,
}

impl Stretch {
    const VACANT: Stretch = Stretch {
        name: Name {
            start: NOWHERE,
            halfwords: 0,
            outcomes: 0,
        },
        jump: NOWHERE,
        insns: 0,
        from: 0,
        len: 0,
        stacks: false,
        exit: Exit::Stop,
        own: false,
    };
}

/// Slots, a power of two.
const SLOTS: usize = 1 << 12;

/// Runs kept at most (4 MiB); then the table starts afresh.
const STORE: usize = 1 << 17;

/// Runs in one stretch at most.
pub(crate) const MAX_RUNS: usize = 64;

/// What a look-up found.
pub(crate) enum Found {
    /// The stretch.
    Known(Stretch),
    /// It was asked for before and is worth building.
    Wanted,
    /// Nothing.
    New,
}

/// The stretches of a [`Blocks`](crate::Blocks) table: a cache of fixed size.
#[derive(Debug)]
pub(crate) struct Stretches {
    slots: Box<[Stretch]>,
    store: Vec<Run>,
    /// The number of the store.
    number: u32,
}

impl Stretches {
    pub(crate) fn new() -> Stretches {
        Stretches {
            slots: vec![Stretch::VACANT; SLOTS].into_boxed_slice(),
            store: Vec::new(),
            number: new_store(),
        }
    }

    #[inline]
    const fn slot(name: Name) -> usize {
        let key = name.outcomes ^ (name.start as u64) << 40 ^ (name.halfwords as u64) << 20;
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize & (SLOTS - 1)
    }

    /// Looks a stretch up; one that is new announces itself.
    #[inline(always)]
    pub(crate) fn find(&mut self, name: Name) -> Found {
        let Some(slot) = self.slots.get_mut(Stretches::slot(name)) else {
            return Found::New;
        };
        if slot.name != name {
            *slot = Stretch {
                name,
                ..Stretch::VACANT
            };
            return Found::New;
        }
        if slot.jump == NOWHERE {
            return Found::Wanted;
        }
        Found::Known(*slot)
    }

    /// The runs of a stretch, the last of them going to this address.
    #[inline]
    pub(crate) fn runs(&mut self, stretch: &Stretch, to: u64) -> &[Run] {
        let from = stretch.from as usize;
        let runs = self.store.get_mut(from..from + usize::from(stretch.len));
        let runs = runs.unwrap_or_default();
        if let Some(last) = runs.last_mut() {
            last.next = to;
        }
        runs
    }

    /// The name of a stretch's runs.
    #[inline]
    pub(crate) fn kept(&self, stretch: &Stretch) -> Kept {
        Kept::new(self.number, stretch.from)
    }

    /// Enters a stretch; `own` if it leaves one outcome over.
    pub(crate) fn enter(&mut self, name: Name, jump: BlockId, runs: &[Run], own: bool) {
        if self.store.len() + runs.len() > STORE {
            self.store.clear();
            self.number = new_store();
            self.slots.fill(Stretch::VACANT);
        }
        let from = self.store.len() as u32;
        self.store.extend_from_slice(runs);
        if let Some(slot) = self.slots.get_mut(Stretches::slot(name)) {
            *slot = Stretch {
                name,
                jump,
                insns: runs.iter().map(|r| r.insns).sum(),
                from,
                len: runs.len() as u16,
                stacks: runs.iter().any(|r| r.exit.stacks()),
                exit: runs.last().map_or(Exit::Stop, |r| r.exit),
                own,
            };
        }
    }
}
