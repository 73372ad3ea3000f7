//! Stretches: a cache of whole paths from one address to a jump.
//!
//! A trace of calls reports the same short paths again and again: a number of
//! halfwords, a few outcomes, and then a jump whose target it reports. A
//! stretch caches the runs of such a path, so that the walk needs one lookup
//! for it.
//!
//! A *shortcut* goes one step further: it is found by the bytes of the message, which then
//! need not be read. For those who only count, it may also lead where no stretch does, through
//! code that has several versions, as long as they stay the same.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use hartrace_isa::Xlen;

use crate::blocks::id::{BlockId, NOWHERE};
use crate::kept::new_store;
use crate::{Exit, Kept, ReturnStack, Run};

mod shortcuts;

use self::shortcuts::Shortcuts;
pub(crate) use self::shortcuts::{Bounds, Key, Shortcut, Way};

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
    pub(crate) halfwords: u32,
    from: u32,
    len: u16,
    /// There are calls or returns among its runs.
    pub(crate) stacks: bool,
    /// Returns on the way went to the address on top of the return stack: which
    /// addresses must have been there before, as a number in the table, from 1.
    pub(crate) returns: u32,
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
        halfwords: 0,
        from: 0,
        len: 0,
        stacks: false,
        returns: 0,
        exit: Exit::Stop,
        own: false,
    };
}

/// Addresses that a stretch takes from the return stack at most.
const MAX_RETURNS: usize = 2;

/// The return stack while a stretch is built.
pub(crate) struct Returns {
    stack: ReturnStack,
    /// Calls that have not returned, and the most of them so far.
    calls: usize,
    most: usize,
    through: bool,
    returns: [u64; MAX_RETURNS],
    count: usize,
}

impl Returns {
    pub(crate) fn new(stack: ReturnStack) -> Returns {
        Returns {
            stack,
            calls: 0,
            most: 0,
            through: false,
            returns: [0; MAX_RETURNS],
            count: 0,
        }
    }

    /// Follows the calls of these runs.
    pub(crate) fn follow(&mut self, runs: &[Run], xlen: Xlen) {
        self.stack.follow(runs, xlen);
        let calls = runs.iter().filter(|run| self.stack.takes(run.exit));
        self.calls += calls.count();
        self.most = self.most.max(self.calls);
    }

    /// Where a jump of this class goes, if it is a return.
    pub(crate) fn follow_return(&mut self, exit: Exit) -> Option<u64> {
        // A swap would call, too.
        if exit != Exit::Return || !self.stack.answers(exit) {
            return None;
        }
        let to = self.stack.pop()?;
        match self.calls.checked_sub(1) {
            Some(rest) => self.calls = rest,
            None => {
                *self.returns.get_mut(self.count)? = to;
                self.count += 1;
            }
        }
        self.through = true;
        // Entries that other stacks might have dropped.
        self.stack.has_room(self.most, self.count).then_some(to)
    }
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
    /// Addresses that stretches took from the return stack, the next one first, and how
    /// many.
    returns: Vec<([u64; MAX_RETURNS], u8)>,
    shortcuts: Shortcuts,
}

impl Stretches {
    pub(crate) fn new() -> Stretches {
        Stretches {
            slots: vec![Stretch::VACANT; SLOTS].into_boxed_slice(),
            store: Vec::new(),
            number: new_store(),
            returns: Vec::new(),
            shortcuts: Shortcuts::default(),
        }
    }

    /// Starts afresh if the store has no room for so many runs.
    fn make_room(&mut self, runs: usize) {
        if self.store.len() + runs > STORE {
            self.store.clear();
            self.number = new_store();
            self.returns.clear();
            self.slots.fill(Stretch::VACANT);
            self.shortcuts.forget();
        }
    }

    /// Whether the way of a stretch through these returns is the same with this return
    /// stack.
    pub(crate) fn leads(&self, returns: u32, stack: &ReturnStack) -> bool {
        let Some(number) = returns.checked_sub(1) else {
            return true;
        };
        let known = self.returns.get(number as usize);
        let to = known.and_then(|(to, count)| to.get(..usize::from(*count)));
        to.is_some_and(|to| stack.leads(to))
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
        self.runs_of(stretch.from, stretch.len, to)
    }

    #[inline]
    fn runs_of(&mut self, from: u32, len: u16, to: u64) -> &[Run] {
        let from = from as usize;
        let runs = self.store.get_mut(from..from + usize::from(len));
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
    pub(crate) fn enter(
        &mut self,
        (name, jump): (Name, BlockId),
        runs: &[Run],
        returns: Option<&Returns>,
        own: bool,
    ) {
        self.make_room(runs.len());
        let returns = match returns.filter(|returns| returns.through) {
            Some(known) => {
                self.returns.push((known.returns, known.count as u8));
                self.returns.len() as u32
            }
            None => 0,
        };
        let from = self.store.len() as u32;
        self.store.extend_from_slice(runs);
        if let Some(slot) = self.slots.get_mut(Stretches::slot(name)) {
            *slot = Stretch {
                name,
                jump,
                insns: runs.iter().map(|r| r.insns).sum(),
                halfwords: runs.iter().map(Run::halfwords).sum(),
                from,
                len: runs.len() as u16,
                stacks: runs.iter().any(|r| r.exit.stacks()),
                returns,
                exit: runs.last().map_or(Exit::Stop, |r| r.exit),
                own,
            };
        }
    }
}
