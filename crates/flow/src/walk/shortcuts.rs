//! Messages that come again at the same place: they lead the same way, and need not be read.

use super::Walk;
use crate::blocks::{BlockId, NOWHERE};
use crate::stretch::{Bounds, Key, Way};
use crate::{Blocks, Consumer, SpaceId, Totals};

/// A message, as far as it decides where the walk goes from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Its bytes, the first one lowest, which hold all that it says; the second word is 0 if
    /// it ends in the first.
    pub bytes: [u64; 2],
    /// What its address is relative to; 0 if it has none.
    pub base: u64,
    /// Halfwords of its count that were walked before it came; 0 if it has none.
    pub ahead: u32,
}

/// Where a message led that was known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortcut {
    /// Halfwords walked.
    pub halfwords: u32,
    /// The outcomes as the message has them; 0 if it has none.
    pub outcomes: u64,
    /// Where its jump went.
    pub jump: Option<u64>,
}

/// Where a walk was before a message.
#[derive(Clone, Copy, Debug)]
pub struct Milestone {
    block: BlockId,
    insns: u64,
    halfwords: u64,
    /// As in [`Walk`].
    landed: u64,
}

/// Marks outcomes after which no jump is reported: none but a jump to a small address has a
/// `base` of 0, and its outcomes leave this bit alone.
const NO_JUMP: u64 = 1 << 63;

impl Report {
    /// Of a jump to an address after these outcomes, however far it is.
    #[inline]
    pub(super) const fn of_jump(outcomes: u64, to: u64) -> Report {
        Report {
            bytes: [outcomes ^ to.rotate_left(32), 0],
            base: to,
            ahead: 0,
        }
    }
}

impl From<Report> for Key {
    #[inline]
    fn from(report: Report) -> Key {
        Key {
            bytes: report.bytes,
            base: report.base,
            ahead: report.ahead,
        }
    }
}

impl Walk {
    /// After a walk that [`Walk::repeat_to_jump`] did not know and that led to `to` all the
    /// same, since `mark`; `own` if the last outcome is left over. The next time it is known.
    #[inline]
    pub fn keep_way_to_jump(
        &self,
        blocks: &mut Blocks<'_>,
        outcomes: u64,
        (to, own): (u64, bool),
        mark: Milestone,
    ) {
        let message = (Report::of_jump(outcomes, to), u64::from(own));
        self.keep_way(blocks, message, mark, to);
    }

    /// As [`Walk::repeat`] of what one message says, `told` as it says it: the next time
    /// [`Walk::take_shortcut`] knows it.
    #[inline]
    pub fn repeat_message<C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        (report, told): (Report, u64),
        (outcomes, halfwords): (u64, u32),
        to: u64,
        out: &mut C,
    ) -> bool {
        let (way, message) = ((halfwords, outcomes), Some((report, told)));
        halfwords > 0 && self.retrace(blocks, way, to, message, out).is_some()
    }

    /// Before [`Walk::use_up`] of what one message says, so many outcomes with the oldest
    /// lowest: the next time but one [`Walk::take_shortcut`] knows it.
    pub fn meet_outcomes(&self, blocks: &mut Blocks<'_>, bytes: u64, outcomes: (u64, u8)) {
        if self.done == 0 && self.block != NOWHERE {
            blocks.meet_outcomes(self.space, (bytes, self.block), outcomes);
        }
    }

    /// Walks right after the last of outcomes that led the same way before, given as to
    /// [`Walk::repeat_to_jump`]. `false`, and nothing happens, if it is unknown.
    #[inline]
    pub fn repeat_outcomes<C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        outcomes: u64,
        out: &mut C,
    ) -> bool {
        let report = Report {
            bytes: [outcomes | NO_JUMP, 0],
            base: 0,
            ahead: 0,
        };
        self.take_shortcut(blocks, report, out).is_some()
    }

    /// Before [`Walk::use_up`] of outcomes, also given with the oldest lowest: the next time but
    /// one [`Walk::repeat_outcomes`] knows them.
    pub fn keep_outcomes(&self, blocks: &mut Blocks<'_>, word: u64, outcomes: (u64, u8)) {
        self.meet_outcomes(blocks, word | NO_JUMP, outcomes);
    }

    /// [`Walk::count_outcomes`] of outcomes that are given to [`Walk::repeat_outcomes`], too.
    /// `false`, and nothing happens, if they are not known.
    #[inline]
    pub fn count_word<C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        word: u64,
        outcomes: (u64, u8),
        out: &mut C,
    ) -> bool {
        let walked = self.count_outcomes(blocks, word | NO_JUMP, outcomes, out);
        walked.is_some()
    }

    /// Before a message that may be kept for those who only count ([`Walk::keep_way`],
    /// [`Walk::keep_way_to_jump`]).
    #[inline]
    pub fn mark(&mut self) -> Milestone {
        (self.stays, self.own) = (u64::MAX, false);
        Milestone {
            block: if self.done == 0 { self.block } else { NOWHERE },
            insns: self.insns,
            halfwords: self.halfwords,
            landed: self.landed,
        }
    }

    /// After a message that led to a jump, walked in any way since `mark`, `told` the
    /// outcomes as it says them: the next time [`Walk::take_shortcut`] knows it, as long as all
    /// code on the way stays as it is.
    #[inline]
    pub fn keep_way(
        &self,
        blocks: &mut Blocks<'_>,
        message: (Report, u64),
        mark: Milestone,
        to: u64,
    ) {
        // Elsewhere the same block may lead somewhere else.
        let plain = self.home == SpaceId::FIRST && self.stack.is_none() && !self.alert;
        let stands = self.done == 0 && self.block != NOWHERE && mark.block != NOWHERE;
        let synchronised = self.sync.map_or(0, |(offset, _)| offset);
        if plain && stands && synchronised < self.stays {
            self.put_way(blocks, message, mark, to);
        }
    }

    #[inline(never)]
    fn put_way(
        &self,
        blocks: &mut Blocks<'_>,
        (report, told): (Report, u64),
        mark: Milestone,
        to: u64,
    ) {
        let lengths = (self.insns - mark.insns, self.halfwords - mark.halfwords);
        let (Ok(insns), Ok(halfwords)) = (lengths.0.try_into(), lengths.1.try_into()) else {
            return;
        };
        if let Some(source) = self.last() {
            let bounds = (self.landed != mark.landed).then_some(Bounds {
                hart: self.hart,
                context: self.own.then_some(self.context),
                synchronised: self.sync.is_some(),
                until: self.stays,
            });
            let way = Way {
                bounds,
                start: mark.block,
                next: self.block,
                source,
                to,
                insns,
                halfwords,
            };
            blocks.keep_way((report.into(), told), &way, self.space);
        }
    }

    /// Goes where a message led before that was decoded at this place. `None`, and nothing
    /// happens, if it is unknown.
    #[inline(always)]
    pub fn take_shortcut<C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        report: Report,
        out: &mut C,
    ) -> Option<Shortcut> {
        if self.done != 0 || self.alert {
            return None;
        }
        let known = blocks.shortcut(report.into(), self.block)?;
        let shortcut = Shortcut {
            halfwords: known.halfwords,
            outcomes: known.outcomes,
            jump: known.jump.then_some(known.to),
        };
        let (next, insns) = (known.next, known.insns);
        let last = (known.source(), self.insns + u64::from(insns));
        let stacks = known.stacks && self.stack.is_some();
        if out.only_counts() && !stacks {
            // The runs are somewhere else in memory: they are not looked at.
            if let Some(space) = known.space() {
                let plain = self.home == SpaceId::FIRST && self.stack.is_none();
                let holds = !known.is_bounded() || {
                    let bounds = blocks.bounds(report.into(), self.block);
                    bounds.hold(self.hart, self.context, self.sync)
                };
                if !plain || !holds {
                    return None;
                }
                self.space = space;
            }
            self.pause |= out
                .counted(self.hart, Totals::insns(insns.into()))
                .is_break();
        } else {
            let known = *known;
            if known.space().is_some() {
                return None;
            }
            let xlen = blocks.xlen();
            let (kept, runs) = blocks.shortcut_runs(&known);
            if let Some(stack) = self.stack.as_mut().filter(|_| stacks) {
                stack.follow(runs, xlen);
            }
            self.give_kept(kept, (runs, insns), out);
        }
        self.block = next;
        self.insns += u64::from(insns);
        self.halfwords += u64::from(shortcut.halfwords);
        match shortcut.jump {
            Some(_) => self.last = last,
            None => blocks.earn(),
        }
        Some(shortcut)
    }
}
