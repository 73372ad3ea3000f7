//! The fast path of a walk: several outcomes at once.

use super::Walk;
use crate::blocks::MAX_REACH;
use crate::blocks::habits::LONG;
use crate::blocks::id::BlockId;
use crate::chain::{Chain, Place};
use crate::{Blocks, Consumer, Evidence, History, Totals};

impl Walk {
    /// [`Walk::meet_outcomes`] and [`Walk::use_up`] at once, for a consumer that only counts:
    /// the halfwords walked. `None`, and nothing happens, if not all outcomes were met here
    /// before, in whatever messages.
    #[inline]
    pub fn count_outcomes<C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        bytes: u64,
        (bits, count): (u64, u8),
        out: &mut C,
    ) -> Option<u64> {
        if self.done != 0 || count == 0 || !out.only_counts() {
            return None;
        }
        let (from, stacked) = (Place::new(self.block), self.stack.is_some());
        let way = through_chains(blocks, from, History::new(bits, count), stacked)?;
        self.meet_outcomes(blocks, bytes, (bits, count));
        blocks.earn_chains(way.chains);
        self.block = way.end;
        self.insns += way.insns;
        self.halfwords += way.halfwords;
        if self.told != self.space {
            self.tell(out);
        }
        let insns = Totals::insns(way.insns);
        self.pause |= out.counted(self.hart, insns).is_break();
        Some(way.halfwords)
    }

    /// The fast path: as many as eight outcomes in one slice of runs. `false`
    /// if this place has none; then nothing has happened.
    #[inline(always)]
    pub(super) fn chain<E: Evidence, C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        evidence: &mut E,
        left: &mut u64,
        out: &mut C,
    ) -> bool {
        let reach = blocks.reach(self.block);
        if self.done != 0 || reach == 0 {
            return false;
        }
        let outcomes = evidence.peek(reach);
        if outcomes.count == 0 {
            return evidence.foreseen().0 > 0 && self.habit(blocks, evidence, left, out);
        }
        let Some(chain) = blocks.chain(self.block, outcomes) else {
            blocks.no_chain(self.space, self.block, outcomes, evidence.peek(8));
            return false;
        };
        self.take_chain(blocks, chain, evidence, left, out)
    }

    /// The same for outcomes that are foreseen: if they are those of the last time.
    #[inline]
    fn habit<E: Evidence, C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        evidence: &mut E,
        left: &mut u64,
        out: &mut C,
    ) -> bool {
        let id = self.block;
        let (foreseen, fails) = evidence.foreseen();
        // One must be left: that of a goal, or one with the other outcome.
        if foreseen > LONG.into() {
            if let Some(chain) = blocks.long_habit(id)
                && evidence.foresees(blocks.chain_kept(&chain), blocks.chain_runs(&chain))
            {
                return self.take_chain(blocks, chain, evidence, left, out);
            }
            blocks.no_long_habit(self.space, id, &|at| evidence.foresee(at));
        }
        let habit = blocks.habit(id).first(blocks.reach(id));
        if habit.count == 0 {
            blocks.form_habit(self.space, id, &|at| evidence.foresee(at));
            return false;
        }
        let Some(chain) = blocks.chain(id, habit) else {
            blocks.no_chain(self.space, id, habit, blocks.habit(id));
            return false;
        };
        if !evidence.foresees(blocks.chain_kept(&chain), blocks.chain_runs(&chain)) {
            blocks.form_habit(self.space, id, &|at| evidence.foresee(at));
            return false;
        }
        if foreseen >= u64::from(chain.used) {
            return self.take_chain(blocks, chain, evidence, left, out);
        }
        // The last of them, and perhaps one with the other outcome.
        let mut outcomes = habit.first(foreseen as u8 + u8::from(fails));
        outcomes.bits ^= u8::from(fails) << foreseen;
        let Some(chain) = blocks.chain(id, outcomes) else {
            blocks.no_chain(self.space, id, outcomes, outcomes);
            return false;
        };
        self.take_chain(blocks, chain, evidence, left, out)
    }

    /// Goes to the end of a chain; `false` if that is too far.
    #[inline(always)]
    fn take_chain<E: Evidence, C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        chain: Chain,
        evidence: &mut E,
        left: &mut u64,
        out: &mut C,
    ) -> bool {
        let Some(rest) = left.checked_sub(u64::from(chain.halfwords)) else {
            return false;
        };
        *left = rest;
        evidence.skip(chain.used);
        self.insns += u64::from(chain.insns);
        self.halfwords += u64::from(chain.halfwords);
        self.block = chain.end;
        let runs = blocks.chain_runs(&chain);
        if let Some(stack) = self.stack.as_mut().filter(|_| chain.calls) {
            stack.follow(runs, blocks.xlen());
        }
        self.give_kept(blocks.chain_kept(&chain), (runs, chain.insns), out);
        true
    }
}

/// Where several chains lead.
#[derive(Clone, Copy, Debug)]
struct Through {
    end: BlockId,
    chains: u64,
    insns: u64,
    halfwords: u64,
}

/// From a place through all outcomes, if there are chains for them; where calls are `stacked`,
/// chains without calls.
#[inline(never)]
fn through_chains(
    blocks: &Blocks<'_>,
    from: Place,
    outcomes: History,
    stacked: bool,
) -> Option<Through> {
    let (mut place, mut left) = (from, outcomes);
    let (mut chains, mut insns, mut halfwords) = (0, 0, 0);
    while !left.is_empty() {
        // The usual case: a chain uses all outcomes there are, or eight. Then the next outcomes
        // are known before the chain is, and the processor does not wait for it.
        let outcomes = left.peek(MAX_REACH);
        let all = blocks.known_chain(place, outcomes);
        let chain = match all.filter(|chain| chain.used == outcomes.count) {
            Some(chain) => {
                left.skip(outcomes.count);
                chain
            }
            None => {
                let chain = blocks.known_chain(place, outcomes.first(blocks.reach(place.block)))?;
                left.skip(chain.used);
                chain
            }
        };
        if stacked && chain.calls {
            return None;
        }
        place = chain.place();
        chains += 1;
        insns += u64::from(chain.insns);
        halfwords += u64::from(chain.halfwords);
    }
    Some(Through {
        end: place.block,
        chains,
        insns,
        halfwords,
    })
}
