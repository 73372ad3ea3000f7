//! Habits: the outcomes that evidence foresaw from a block on the last time.
//!
//! A predictor foresees the same outcomes at the same place until it changes its
//! mind. So they are found out once, and only checked after that.

use super::{BlockId, Blocks, Kind, MAX_CHAIN, MAX_REACH};
use crate::chain::Chain;
use crate::{Outcomes, SpaceId};

/// Outcomes in a long habit: most predicted stretches of E-Trace have one or two of
/// them.
pub(crate) const LONG: u8 = 30;

/// How often a long habit may be missing before it is formed again.
const PATIENCE: u8 = 16;

/// What was foreseen from a block on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habit {
    near: Outcomes,
    /// Misses until `long` is formed anew.
    patience: u8,
    /// The store that `long` is in; none has this number otherwise.
    store: u32,
    long: Chain,
}

impl Habit {
    /// Nothing was.
    const NONE: Habit = Habit {
        near: Outcomes { bits: 0, count: 0 },
        patience: 2,
        store: u32::MAX,
        long: Chain::VACANT,
    };
}

impl Blocks<'_> {
    /// The outcomes that were foreseen from this block on when that was last found
    /// out; none if it never was.
    #[inline]
    pub(crate) fn habit(&self, id: BlockId) -> Outcomes {
        let habit = self.habits.get(id as usize);
        habit.map_or(Outcomes::default(), |habit| habit.near)
    }

    /// A chain through [`LONG`] outcomes that were foreseen from this block on.
    #[inline]
    pub(crate) fn long_habit(&self, id: BlockId) -> Option<Chain> {
        let habit = self.habits.get(id as usize)?;
        (habit.store == self.chains.number()).then_some(habit.long)
    }

    fn habit_mut(&mut self, id: BlockId) -> Option<&mut Habit> {
        if self.habits.len() <= id as usize {
            self.habits.resize(self.blocks.len(), Habit::NONE);
        }
        self.habits.get_mut(id as usize)
    }

    /// Finds out which outcomes are foreseen from this block on, up to the next jump
    /// through a register.
    #[cold]
    pub(crate) fn form_habit(
        &mut self,
        space: SpaceId,
        start: BlockId,
        foresee: &dyn Fn(u64) -> bool,
    ) {
        let mut near = Outcomes::default();
        let mut id = start;
        for _ in 0..MAX_CHAIN {
            let block = self.block(id);
            let taken = match block.kind {
                Kind::Branch if near.count < MAX_REACH => foresee(block.at),
                Kind::Continue => false,
                _ => break,
            };
            if block.kind == Kind::Branch {
                near.bits |= u8::from(taken) << near.count;
                near.count += 1;
            }
            id = self.follow(space, id, taken);
        }
        if let Some(habit) = self.habit_mut(start) {
            habit.near = near;
        }
    }

    /// There was no long habit that fits: forms it, unless that was tried not long ago.
    #[inline(never)]
    pub(crate) fn no_long_habit(
        &mut self,
        space: SpaceId,
        start: BlockId,
        foresee: &dyn Fn(u64) -> bool,
    ) {
        let Some(habit) = self.habit_mut(start) else {
            return;
        };
        habit.patience = habit.patience.wrapping_sub(1);
        if habit.patience > 0 {
            return;
        }
        habit.patience = PATIENCE;
        let chain = self.gather(space, start, LONG, &mut |_, at| foresee(at));
        if chain.used < LONG {
            return self.chains.truncate(chain.from);
        }
        let (long, store) = (self.chains.name(u64::MAX, chain), self.chains.number());
        if let Some(habit) = self.habit_mut(start) {
            (habit.long, habit.store) = (long, store);
        }
    }
}
