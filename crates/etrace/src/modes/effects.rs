//! What runs that come again do to a predictor, worked out once.
//!
//! A walk gives out the same slices of runs again and again, each under a name
//! ([`Kept`]). Several of their branches may share an entry of the predictor: one
//! look at the entry is enough for all of them.

use alloc::boxed::Box;
use alloc::vec;
use core::cell::Cell;

use hartrace_flow::{Exit, Kept, Run};

use super::predictor::after;

/// The branches of a slice of runs that share an entry of the predictor.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Effect {
    pub(super) entry: u16,
    /// The state after them, two bits for each state before.
    next: u8,
    /// A bit for each state before in which all of them are predicted.
    right: u8,
}

impl Effect {
    /// No branch yet.
    const fn none(entry: u16) -> Effect {
        Effect {
            entry,
            next: 0b11_10_01_00,
            right: 0b1111,
        }
    }

    /// One more branch. An outcome that was predicted leaves the prediction as it is.
    const fn and(self, taken: bool) -> Effect {
        let mut next = 0;
        let mut state = 0;
        while state < 4 {
            next |= after(self.state(state), taken) << (2 * state);
            state += 1;
        }
        let right = if taken { 0b1100 } else { 0b0011 };
        Effect {
            entry: self.entry,
            next,
            right: self.right & right,
        }
    }

    /// The state after them.
    #[inline(always)]
    pub(super) const fn state(self, before: u8) -> u8 {
        self.next >> (2 * (before & 3)) & 3
    }

    /// Whether all of them are predicted in this state.
    #[inline(always)]
    pub(super) const fn is_right(self, before: u8) -> bool {
        self.right >> (before & 3) & 1 != 0
    }
}

/// A named slice of runs, and where its effects are.
#[derive(Clone, Copy, Debug)]
struct Slot {
    name: u64,
    from: u32,
    len: u32,
}

const VACANT: Slot = Slot {
    name: u64::MAX,
    from: 0,
    len: 0,
};

/// Slots, a power of two.
const SLOTS: usize = 1 << 12;

/// Effects at most; then the cache starts afresh.
const ROOM: usize = 1 << 15;

/// A cache of effects for a predictor of one size. It says nothing about the state of
/// the predictor: a copy starts empty, and all are equal.
///
/// This is the memory of it; [`Known`] is for using it.
#[derive(Default)]
pub(super) struct Effects {
    slots: Box<[Slot]>,
    effects: Box<[Effect]>,
    used: usize,
}

/// The cache in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'t> {
    slots: &'t [Cell<Slot>],
    effects: &'t [Cell<Effect>],
    used: &'t Cell<usize>,
}

impl Clone for Effects {
    fn clone(&self) -> Effects {
        Effects::default()
    }
}

impl PartialEq for Effects {
    fn eq(&self, _: &Effects) -> bool {
        true
    }
}

impl Eq for Effects {}

impl core::fmt::Debug for Effects {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Effects").finish_non_exhaustive()
    }
}

impl Effects {
    /// Makes room for it, if there is none yet.
    pub(super) fn prepare(&mut self) {
        if self.slots.is_empty() {
            self.slots = vec![VACANT; SLOTS].into();
            self.effects = vec![Effect::default(); ROOM].into();
        }
    }

    #[inline(always)]
    pub(super) fn known(&mut self) -> Known<'_> {
        Known {
            slots: Cell::from_mut(&mut *self.slots).as_slice_of_cells(),
            effects: Cell::from_mut(&mut *self.effects).as_slice_of_cells(),
            used: Cell::from_mut(&mut self.used),
        }
    }
}

impl<'t> Known<'t> {
    /// The effects of these runs; `None` if they do not fit. `entry` is that of an
    /// address.
    #[inline]
    pub(super) fn of(
        &self,
        kept: Kept,
        runs: &[Run],
        entry: impl Fn(u64) -> u16,
    ) -> Option<&'t [Cell<Effect>]> {
        let name = u64::from(kept.store()) << 32 | u64::from(kept.index());
        let at = name.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
        let cell = self.slots.get(at as usize & (SLOTS - 1))?;
        let mut slot = cell.get();
        if slot.name != name {
            slot = self.gather(name, runs, &entry)?;
            cell.set(slot);
        }
        let from = slot.from as usize;
        self.effects.get(from..from + slot.len as usize)
    }

    #[cold]
    fn gather(&self, name: u64, runs: &[Run], entry: &dyn Fn(u64) -> u16) -> Option<Slot> {
        if self.used.get() + runs.len() > ROOM {
            self.slots.iter().for_each(|slot| slot.set(VACANT));
            self.used.set(0);
        }
        let from = self.used.get();
        let mut len = 0;
        for run in runs {
            let taken = match run.exit {
                Exit::Taken => true,
                Exit::NotTaken => false,
                _ => continue,
            };
            let entry = entry(run.source());
            let known = self.effects.get(from..from + len)?;
            if let Some(same) = known.iter().find(|e| e.get().entry == entry) {
                same.set(same.get().and(taken));
            } else {
                let effect = self.effects.get(from + len)?;
                effect.set(Effect::none(entry).and(taken));
                len += 1;
            }
        }
        self.used.set(from + len);
        Some(Slot {
            name,
            from: from as u32,
            len: len as u32,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against one branch after the other, for all short sequences.
    #[test]
    fn effects_are_those_of_all_branches() {
        for count in 0..7 {
            for outcomes in 0..1u32 << count {
                let taken = |i: u32| outcomes >> i & 1 != 0;
                let effect = (0..count).fold(Effect::none(3), |e, i| e.and(taken(i)));
                for before in 0..4 {
                    let mut state = before;
                    let mut right = true;
                    for i in 0..count {
                        right &= taken(i) == (state >> 1 != 0);
                        state = after(state, taken(i));
                    }
                    assert_eq!(effect.state(before), state);
                    assert_eq!(effect.is_right(before), right);
                }
            }
        }
    }
}
