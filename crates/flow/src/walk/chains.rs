//! The fast path of a walk: several outcomes at once.

use super::Walk;
use crate::blocks::habits::LONG;
use crate::chain::Chain;
use crate::{Blocks, Consumer, Evidence};

impl Walk {
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
