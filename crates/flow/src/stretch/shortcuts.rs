//! Shortcuts: where messages led, found by their bytes.

use alloc::vec::Vec;

use super::{Stretch, Stretches};
use crate::blocks::id::{BlockId, NOWHERE};
use crate::{Context, HartId, Kept, Run, SpaceId};

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
    /// `None` if it comes through no versions of code.
    pub(crate) bounds: Option<Bounds>,
}

/// For whom, and until when, a way through versions of code is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// For this hart: another one may not be as far.
    pub(crate) hart: HartId,
    /// In this context, unless it is the same in all.
    pub(crate) context: Option<Option<Context>>,
    /// It is known how far it is since a synchronisation message.
    pub(crate) synchronised: bool,
    /// Until after such a message that ends at this offset.
    pub(crate) until: u64,
}

impl Bounds {
    /// No hart ever.
    const NONE: Bounds = Bounds {
        hart: HartId(0),
        context: None,
        synchronised: false,
        until: 0,
    };

    /// Whether they include this hart in a context, after a synchronisation message that ends
    /// at this offset, if there was one.
    #[inline]
    pub(crate) fn hold(
        self,
        hart: HartId,
        context: Option<Context>,
        sync: Option<(u64, u64)>,
    ) -> bool {
        self.hart == hart
            && self.context.is_none_or(|own| own == context)
            && self.synchronised == sync.is_some()
            && sync.map_or(0, |(offset, _)| offset) < self.until
    }
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
    /// There are calls or returns among them; without runs, it has bounds.
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

    /// Whether one whose runs are not kept has bounds.
    pub(crate) const fn is_bounded(&self) -> bool {
        self.stacks
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

/// The shortcuts of a table of stretches: a cache of fixed size.
#[derive(Debug)]
pub(super) struct Shortcuts {
    /// None until the first is kept: not all traces have them.
    slots: Vec<Shortcut>,
    /// The rest of their messages, where they have more than eight bytes; otherwise 0.
    rests: Vec<u64>,
    /// Of those that have any; for the others it means nothing. None until the first.
    bounds: Vec<Bounds>,
    /// Of messages that report outcomes only: how much is left to spend on those that do not
    /// repeat, and how many are not looked at after it is spent.
    credit: u32,
    pause: u32,
    /// There are new ones that only lead the same way from now on.
    ways: bool,
}

impl Default for Shortcuts {
    fn default() -> Shortcuts {
        Shortcuts {
            slots: Vec::new(),
            rests: Vec::new(),
            bounds: Vec::new(),
            credit: MAX_CREDIT,
            pause: 0,
            ways: false,
        }
    }
}

impl Shortcuts {
    pub(super) fn forget(&mut self) {
        self.slots.clear();
        self.rests.clear();
        self.bounds.clear();
    }

    #[inline]
    const fn slot(bytes: u64, start: BlockId) -> usize {
        let key = bytes ^ (start as u64) << 40;
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 51) as usize & (SHORTCUTS - 1)
    }

    /// The place of a shortcut.
    fn slot_mut(&mut self, [bytes, rest]: [u64; 2], start: BlockId) -> Option<&mut Shortcut> {
        if self.slots.is_empty() {
            self.slots.resize(SHORTCUTS, Shortcut::VACANT);
            self.rests.resize(SHORTCUTS, 0);
        }
        let slot = Shortcuts::slot(bytes, start);
        if let Some(place) = self.rests.get_mut(slot) {
            *place = rest;
        }
        self.slots.get_mut(slot)
    }
}

impl Stretches {
    /// Whether messages that report outcomes only repeat.
    #[inline]
    pub(crate) const fn outcomes_repeat(&self) -> bool {
        self.shortcuts.pause == 0
    }

    /// A message that reports outcomes only has been repeated.
    #[inline]
    pub(crate) fn earn(&mut self) {
        self.shortcuts.credit = (self.shortcuts.credit + 1).min(MAX_CREDIT);
    }

    /// The shortcut of a message at a block, if it is known there.
    #[inline(always)]
    pub(crate) fn shortcut(&self, key: Key, start: BlockId) -> Option<&Shortcut> {
        let [bytes, rest] = key.bytes;
        let slot = Shortcuts::slot(bytes, start);
        let known = self.shortcuts.slots.get(slot)?;
        let same = known.bytes == bytes && known.base == key.base && known.ahead == key.ahead;
        // A message that ends within the first eight bytes has no rest.
        let whole = rest == 0 || self.shortcuts.rests.get(slot) == Some(&rest);
        (same && known.start == start && whole).then_some(known)
    }

    /// The bounds of a shortcut that has any.
    #[inline]
    pub(crate) fn bounds(&self, key: Key, start: BlockId) -> Bounds {
        let slot = Shortcuts::slot(key.bytes[0], start);
        let bounds = self.shortcuts.bounds.get(slot).copied();
        bounds.unwrap_or(Bounds::NONE)
    }

    /// Whether [`Stretches::keep_way`] was called since this was last asked.
    pub(crate) const fn has_kept_ways(&mut self) -> bool {
        core::mem::replace(&mut self.shortcuts.ways, false)
    }

    /// Forgets all shortcuts.
    pub(crate) fn forget_shortcuts(&mut self) {
        self.shortcuts.forget();
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
            bounds: None,
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
            self.shortcuts.ways = true;
            self.put(
                key,
                Shortcut {
                    from,
                    stacks: way.bounds.is_some(),
                    ..shortcut
                },
            );
            if let Some(own) = way.bounds {
                let bounds = &mut self.shortcuts.bounds;
                bounds.resize(SHORTCUTS, Bounds::NONE);
                if let Some(slot) = bounds.get_mut(Shortcuts::slot(key.bytes[0], way.start)) {
                    *slot = own;
                }
            }
        }
    }

    fn put(&mut self, key: Key, shortcut: Shortcut) {
        if let Some(slot) = self.shortcuts.slot_mut(key.bytes, shortcut.start) {
            *slot = shortcut;
        }
    }

    /// Whether a message that reports nothing but outcomes was met at this block before, so
    /// that it is worth keeping. It is not worth trying twice.
    pub(crate) fn wants_shortcut(&mut self, bytes: u64, start: BlockId) -> bool {
        if self.shortcuts.pause > 0 {
            self.shortcuts.pause -= 1;
            return false;
        }
        match self.shortcuts.credit.checked_sub(MISS) {
            Some(rest) => self.shortcuts.credit = rest,
            None => (self.shortcuts.credit, self.shortcuts.pause) = (MAX_CREDIT, PAUSE),
        }
        let Some(slot) = self.shortcuts.slot_mut([bytes, 0], start) else {
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
        if let Some(slot) = self.shortcuts.slot_mut([bytes, 0], start) {
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

    /// The runs of a shortcut.
    #[inline]
    pub(crate) fn shortcut_runs(&mut self, shortcut: &Shortcut) -> (Kept, &[Run]) {
        let kept = Kept::new(self.number, shortcut.from);
        let (from, len) = (shortcut.from, shortcut.len);
        (kept, self.runs_of(from, len, shortcut.to))
    }
}
