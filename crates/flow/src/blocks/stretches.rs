//! Stretches of the tables: found, and built where they are asked for again.

use alloc::vec::Vec;

use super::{BlockId, Blocks, Kind};
use crate::stretch::{self, Bounds, Found, Key, Name, Returns, Shortcut, Stretch, Way};
use crate::{Kept, ReturnStack, Run, SpaceId};

impl Blocks<'_> {
    /// The stretch of this name, if it has been built; if it was only asked for
    /// it is built for the next time.
    #[inline]
    pub(crate) fn stretch(
        &mut self,
        space: SpaceId,
        name: Name,
        stack: Option<&ReturnStack>,
    ) -> Option<Stretch> {
        match self.stretches.find(name) {
            Found::Known(stretch) => Some(stretch),
            Found::Wanted => {
                self.build_stretch(space, name, stack);
                None
            }
            Found::New => None,
        }
    }

    /// Whether the way of a stretch through these returns is the same with this return
    /// stack.
    #[inline(never)]
    pub(crate) fn leads(&self, returns: u32, stack: &ReturnStack) -> bool {
        self.stretches.leads(returns, stack)
    }

    /// The runs of a stretch that goes to this address.
    #[inline]
    pub(crate) fn stretch_runs(&mut self, stretch: &Stretch, to: u64) -> &[Run] {
        self.stretches.runs(stretch, to)
    }

    /// Follows the outcomes of a stretch to the jump that ends it, through returns for
    /// which there is an address on the stack. Nothing is built where the way is another
    /// one: a jump in between, outcomes left over or missing, another length.
    #[cold]
    #[inline(never)]
    fn build_stretch(&mut self, space: SpaceId, name: Name, stack: Option<&ReturnStack>) {
        let stack = stack.filter(|_| name.halfwords == stretch::ANY);
        let mut returns = stack.cloned().map(Returns::new);
        let mut runs: Vec<Run> = Vec::new();
        let mut id = name.start;
        // Outcomes left, the oldest next to the stop bit, or lowest where the
        // length is open; none taken without a stop bit.
        let mut left = match name.outcomes {
            0 => None,
            field => Some(63 - field.leading_zeros()),
        };
        let count = left.unwrap_or(0);
        let mut halfwords = 0u32;
        let any = name.halfwords == stretch::ANY;
        while runs.len() <= stretch::MAX_RUNS && (any || halfwords < name.halfwords) {
            let block = self.block(id);
            halfwords = halfwords.saturating_add(block.halfwords);
            let taken = match (block.kind, &mut left) {
                (Kind::Branch, Some(0)) => return,
                (Kind::Branch, Some(left)) => {
                    *left -= 1;
                    let bit = if any { count - 1 - *left } else { *left };
                    name.outcomes >> bit & 1 != 0
                }
                (Kind::Branch, None) | (Kind::Continue, _) => false,
                (Kind::Target, _) => {
                    runs.extend_from_slice(self.runs(&block, false));
                    let Some(last) = runs.last_mut() else { return };
                    let known = returns.as_mut().map(|r| r.follow_return(last.exit));
                    if let Some(Some(to)) = known {
                        last.next = to;
                        id = self.find(space, to);
                        continue;
                    }
                    let over = left.unwrap_or(0);
                    if halfwords == name.halfwords && over == 0 || any && over <= 1 {
                        let returns = returns.as_ref();
                        self.stretches.enter((name, id), &runs, returns, over == 1);
                    }
                    return;
                }
                _ => return,
            };
            let new = self.runs(&block, taken);
            runs.extend_from_slice(new);
            if let Some(returns) = &mut returns {
                returns.follow(new, self.xlen);
            }
            id = self.follow(space, id, taken);
        }
    }

    /// The shortcut of a message at a block, if it is known there.
    #[inline(always)]
    pub(crate) fn shortcut(&self, key: Key, start: BlockId) -> Option<&Shortcut> {
        self.stretches.shortcut(key, start)
    }

    /// For whom, and until when, the way of this shortcut is the same.
    pub(crate) fn bounds(&self, key: Key, start: BlockId) -> Bounds {
        self.stretches.bounds(key, start)
    }

    /// A message that reports outcomes only has been repeated.
    #[inline]
    pub(crate) fn earn(&mut self) {
        self.stretches.earn();
    }

    /// Whether it pays to look for shortcuts of messages that report outcomes only.
    #[must_use]
    #[inline]
    pub const fn outcomes_repeat(&self) -> bool {
        self.stretches.outcomes_repeat()
    }

    /// As [`Stretches::keep_way`](crate::stretch::Stretches::keep_way).
    #[inline(never)]
    pub(crate) fn keep_way(&mut self, message: (Key, u64), way: &Way, space: SpaceId) {
        self.stretches.keep_way(message, way, space);
    }

    /// Whether ways were kept since this was last asked, which may lead elsewhere at an earlier
    /// moment.
    pub(crate) fn has_kept_ways(&mut self) -> bool {
        self.stretches.has_kept_ways()
    }

    /// Forgets where messages led: decoding goes on at an earlier moment, when code may have
    /// been another one.
    pub(crate) fn forget_shortcuts(&mut self) {
        self.stretches.forget_shortcuts();
    }

    /// As [`Stretches::keep_shortcut`](crate::stretch::Stretches::keep_shortcut).
    #[inline(never)]
    pub(crate) fn keep_shortcut(
        &mut self,
        message: (Key, u64),
        stretch: &Stretch,
        end: (u64, BlockId),
    ) {
        self.stretches.keep_shortcut(message, stretch, end);
    }

    /// A message reports so many outcomes from a block on, the oldest lowest: where it comes
    /// again, it is kept.
    #[inline(never)]
    pub(crate) fn meet_outcomes(
        &mut self,
        space: SpaceId,
        (bytes, start): (u64, BlockId),
        (outcomes, count): (u64, u8),
    ) {
        if count >= 64 || !self.stretches.wants_shortcut(bytes, start) {
            return;
        }
        let way = self.gather(space, start, count, &mut |at, _| outcomes >> at & 1 != 0);
        if way.used == count && count > 0 {
            let runs = self.chains.since(way.from);
            self.stretches.keep_outcomes((bytes, start), runs, way.end);
        }
        self.chains.truncate(way.from);
    }

    /// The runs of a shortcut.
    #[inline]
    pub(crate) fn shortcut_runs(&mut self, shortcut: &Shortcut) -> (Kept, &[Run]) {
        self.stretches.shortcut_runs(shortcut)
    }

    /// The name of the runs of a stretch.
    #[inline]
    pub(crate) fn stretch_kept(&self, stretch: &Stretch) -> Kept {
        self.stretches.kept(stretch)
    }
}
