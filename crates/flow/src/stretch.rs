//! Stretches: a cache of whole paths from one address to a jump.
//!
//! A trace of calls reports the same short paths again and again: a number of
//! halfwords, a few outcomes, and then a jump whose target it reports. A
//! stretch caches the runs of such a path, so that the walk needs one lookup
//! for it.
//!
//! A *shortcut* goes one step further: it is found by the bytes of the message, which then
//! need not be read. For those who only count, it may also lead where no stretch does, through
//! code that had several versions, once these do not change any more.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use hartrace_isa::Xlen;

use crate::blocks::id::{BlockId, NOWHERE};
use crate::kept::new_store;
use crate::{Exit, Kept, ReturnStack, Run, SpaceId};

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

/// What decides where a message leads, besides the place: its bytes, which hold everything
/// that it says, what its address is relative to, and how many halfwords of its count were
/// walked before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) bytes: [u64; 2],
    pub(crate) base: u64,
    pub(crate) ahead: u32,
}

/// A way from a block to a jump.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) start: BlockId,
    /// The block that the jump goes to.
    pub(crate) next: BlockId,
    /// The address of the jump, and where it goes.
    pub(crate) source: u64,
    pub(crate) to: u64,
    pub(crate) insns: u32,
    pub(crate) halfwords: u32,
}

/// A message that was decoded before, and the way that it led: the same message at the same
/// place leads there again, and need not even be read. One cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Shortcut {
    /// The first bytes of the message, all of most; inverted if it has only been met.
    bytes: u64,
    base: u64,
    /// Where the last run goes.
    pub(crate) to: u64,
    /// The outcomes that it reports; 0 if it has no such field.
    pub(crate) outcomes: u64,
    start: BlockId,
    pub(crate) next: BlockId,
    pub(crate) insns: u32,
    pub(crate) halfwords: u32,
    /// Where its runs are; without runs, the number of the space that it leads to.
    from: u32,
    ahead: u32,
    /// The last instruction, relative to `base`.
    source: i32,
    /// Number of runs; 0 if they are not kept, for those who only count.
    len: u16,
    /// There are calls or returns among them.
    pub(crate) stacks: bool,
    /// It ends with a jump.
    pub(crate) jump: bool,
}

impl Shortcut {
    const VACANT: Shortcut = Shortcut {
        bytes: 0,
        base: 0,
        to: 0,
        outcomes: 0,
        start: NOWHERE,
        next: NOWHERE,
        insns: 0,
        halfwords: 0,
        from: 0,
        ahead: 0,
        source: 0,
        len: 0,
        stacks: false,
        jump: false,
    };

    /// Without runs.
    fn new(key: Key, outcomes: u64, way: &Way) -> Option<Shortcut> {
        let distance = way.source.wrapping_sub(key.base).cast_signed();
        Some(Shortcut {
            bytes: key.bytes[0],
            base: key.base,
            to: way.to,
            outcomes,
            start: way.start,
            next: way.next,
            insns: way.insns,
            halfwords: way.halfwords,
            ahead: key.ahead,
            source: distance.try_into().ok()?,
            jump: true,
            ..Shortcut::VACANT
        })
    }

    /// The space that it leads to, if its runs are not kept.
    pub(crate) const fn space(&self) -> Option<SpaceId> {
        match self.len {
            0 => Some(SpaceId::of(self.from)),
            _ => None,
        }
    }

    /// The last instruction.
    pub(crate) const fn source(&self) -> u64 {
        self.base.wrapping_add_signed(self.source as i64)
    }
}

/// The `base` of a message that was met, but cannot be a shortcut.
const TRIED: u64 = u64::MAX;

/// Slots for shortcuts, a power of two.
const SHORTCUTS: usize = 1 << 13;

/// A message that reports outcomes only earns a credit if it repeats, and costs some if not;
/// without credit none is looked at for a while, since the outcomes of some programs never
/// repeat.
const MAX_CREDIT: u32 = 1 << 10;
const MISS: u32 = 4;
const PAUSE: u32 = 1 << 13;

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
    /// None until the first is kept: not all traces have them.
    shortcuts: Vec<Shortcut>,
    /// The rest of their messages, where they have more than eight bytes; otherwise 0.
    rests: Vec<u64>,
    /// Of messages that report outcomes only: how much is left to spend on those that do not
    /// repeat, and how many are not looked at after it is spent.
    credit: u32,
    pause: u32,
}

impl Stretches {
    pub(crate) fn new() -> Stretches {
        Stretches {
            slots: vec![Stretch::VACANT; SLOTS].into_boxed_slice(),
            store: Vec::new(),
            number: new_store(),
            returns: Vec::new(),
            shortcuts: Vec::new(),
            rests: Vec::new(),
            credit: MAX_CREDIT,
            pause: 0,
        }
    }

    /// Whether messages that report outcomes only repeat.
    #[inline]
    pub(crate) const fn outcomes_repeat(&self) -> bool {
        self.pause == 0
    }

    /// A message that reports outcomes only has been repeated.
    #[inline]
    pub(crate) fn earn(&mut self) {
        self.credit = (self.credit + 1).min(MAX_CREDIT);
    }

    #[inline]
    const fn shortcut_slot(bytes: u64, start: BlockId) -> usize {
        let key = bytes ^ (start as u64) << 40;
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 51) as usize & (SHORTCUTS - 1)
    }

    /// The shortcut of a message at a block, if it is known there.
    #[inline(always)]
    pub(crate) fn shortcut(&self, key: Key, start: BlockId) -> Option<&Shortcut> {
        let [bytes, rest] = key.bytes;
        let slot = Stretches::shortcut_slot(bytes, start);
        let known = self.shortcuts.get(slot)?;
        let same = known.bytes == bytes && known.base == key.base && known.ahead == key.ahead;
        // A message that ends within the first eight bytes has no rest.
        let whole = rest == 0 || self.rests.get(slot) == Some(&rest);
        (same && known.start == start && whole).then_some(known)
    }

    /// The place of a shortcut.
    fn shortcut_mut(&mut self, [bytes, rest]: [u64; 2], start: BlockId) -> Option<&mut Shortcut> {
        if self.shortcuts.is_empty() {
            self.shortcuts.resize(SHORTCUTS, Shortcut::VACANT);
            self.rests.resize(SHORTCUTS, 0);
        }
        let slot = Stretches::shortcut_slot(bytes, start);
        if let Some(place) = self.rests.get_mut(slot) {
            *place = rest;
        }
        self.shortcuts.get_mut(slot)
    }

    /// Forgets all shortcuts.
    pub(crate) fn forget_shortcuts(&mut self) {
        self.shortcuts.clear();
        self.rests.clear();
    }

    /// Keeps a message whose stretch is known: it led to `to`, and the block there is
    /// `next`.
    pub(crate) fn keep_shortcut(
        &mut self,
        (key, outcomes): (Key, u64),
        stretch: &Stretch,
        (to, next): (u64, BlockId),
    ) {
        let end = stretch.from as usize + usize::from(stretch.len);
        let Some(last) = end.checked_sub(1).and_then(|last| self.store.get(last)) else {
            return;
        };
        let way = Way {
            start: stretch.name.start,
            next,
            source: last.source(),
            to,
            insns: stretch.insns,
            halfwords: stretch.halfwords,
        };
        if let Some(shortcut) = Shortcut::new(key, outcomes, &way) {
            self.put(
                key,
                Shortcut {
                    from: stretch.from,
                    len: stretch.len,
                    stacks: stretch.stacks,
                    ..shortcut
                },
            );
        }
    }

    /// Keeps where a message led for those who only count, in a space.
    pub(crate) fn keep_way(&mut self, (key, outcomes): (Key, u64), way: &Way, space: SpaceId) {
        if let Some(shortcut) = Shortcut::new(key, outcomes, way) {
            let from = space.number();
            self.put(key, Shortcut { from, ..shortcut });
        }
    }

    fn put(&mut self, key: Key, shortcut: Shortcut) {
        if let Some(slot) = self.shortcut_mut(key.bytes, shortcut.start) {
            *slot = shortcut;
        }
    }

    /// Whether a message that reports nothing but outcomes was met at this block before, so
    /// that it is worth keeping. It is not worth trying twice.
    pub(crate) fn wants_shortcut(&mut self, bytes: u64, start: BlockId) -> bool {
        if self.pause > 0 {
            self.pause -= 1;
            return false;
        }
        match self.credit.checked_sub(MISS) {
            Some(rest) => self.credit = rest,
            None => (self.credit, self.pause) = (MAX_CREDIT, PAUSE),
        }
        let Some(slot) = self.shortcut_mut([bytes, 0], start) else {
            return false;
        };
        if slot.bytes != !bytes || slot.start != start {
            *slot = Shortcut {
                bytes: !bytes,
                start,
                ..Shortcut::VACANT
            };
            return false;
        }
        core::mem::replace(&mut slot.base, TRIED) != TRIED
    }

    /// Keeps such a message: its outcomes lead through these runs to the block `next`.
    pub(crate) fn keep_outcomes(
        &mut self,
        (bytes, start): (u64, BlockId),
        runs: &[Run],
        next: BlockId,
    ) {
        self.make_room(runs.len());
        let from = self.store.len() as u32;
        self.store.extend_from_slice(runs);
        if let Some(slot) = self.shortcut_mut([bytes, 0], start) {
            *slot = Shortcut {
                bytes,
                to: runs.last().map_or(0, |run| run.next),
                start,
                next,
                insns: runs.iter().map(|r| r.insns).sum(),
                halfwords: runs.iter().map(Run::halfwords).sum(),
                from,
                len: runs.len() as u16,
                stacks: runs.iter().any(|r| r.exit.stacks()),
                ..Shortcut::VACANT
            };
        }
    }

    /// Starts afresh if the store has no room for so many runs.
    fn make_room(&mut self, runs: usize) {
        if self.store.len() + runs > STORE {
            self.store.clear();
            self.number = new_store();
            self.returns.clear();
            self.slots.fill(Stretch::VACANT);
            self.shortcuts.fill(Shortcut::VACANT);
        }
    }

    /// The runs of a shortcut.
    #[inline]
    pub(crate) fn shortcut_runs(&mut self, shortcut: &Shortcut) -> (Kept, &[Run]) {
        let kept = Kept::new(self.number, shortcut.from);
        let (from, len) = (shortcut.from, shortcut.len);
        (kept, self.runs_of(from, len, shortcut.to))
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
