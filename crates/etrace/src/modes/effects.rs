//! What runs that come again do to a predictor, worked out once.
//!
//! A walk gives out the same slices of runs again and again, each under a name
//! ([`Kept`]). Several of their branches may share an entry of the predictor: one
//! look at the entry is enough for all of them. And as long as the predictor does not
//! change, no look is needed: a loop that goes round and round changes nothing.

use alloc::boxed::Box;
use alloc::vec;
use core::cell::Cell;

use hartrace_flow::{Exit, Kept, Run};

use super::state::after;

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
    /// The version of the predictor that predicts all their branches, and that they leave
    /// as it is; 0 if that is not known of any.
    steady: u32,
    from: u16,
    len: u16,
}

const VACANT: Slot = Slot {
    name: u64::MAX,
    steady: 0,
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
    version: u32,
}

/// The cache in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'t> {
    slots: &'t [Cell<Slot>],
    effects: &'t [Cell<Effect>],
    used: &'t Cell<usize>,
    /// Changes with the predictor.
    version: &'t Cell<u32>,
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
    #[inline]
    pub(super) fn prepare(&mut self) {
        if self.slots.is_empty() {
            self.make_room();
        }
    }

    #[cold]
    fn make_room(&mut self) {
        self.slots = vec![VACANT; SLOTS].into();
        self.effects = vec![Effect::default(); ROOM].into();
        self.version = 1;
    }

    #[inline(always)]
    pub(super) fn known(&mut self) -> Known<'_> {
        Known {
            slots: Cell::from_mut(&mut *self.slots).as_slice_of_cells(),
            effects: Cell::from_mut(&mut *self.effects).as_slice_of_cells(),
            used: Cell::from_mut(&mut self.used),
            version: Cell::from_mut(&mut self.version),
        }
    }
}

impl<'t> Known<'t> {
    /// The predictor has changed.
    #[inline(always)]
    pub(super) fn change(&self) {
        let version = self.version.get().wrapping_add(1);
        self.version.set(version);
        if version == 0 {
            self.clear();
        }
    }

    #[cold]
    fn clear(&self) {
        self.slots.iter().for_each(|slot| slot.set(VACANT));
        self.used.set(0);
        self.version.set(1);
    }

    /// Whether all branches of these runs are predicted by these states. Perhaps `false`
    /// although they are. `entry` is that of an address.
    #[inline]
    pub(super) fn expects(
        &self,
        (kept, runs): (Kept, &[Run]),
        states: &[Cell<u8>],
        entry: impl Fn(u64) -> u16,
    ) -> bool {
        let Some((slot, effects)) = self.find(kept, runs, entry) else {
            return false;
        };
        if slot.get().steady == self.version.get() {
            return true;
        }
        let mut steady = true;
        for effect in effects {
            let effect = effect.get();
            let state = states.get(usize::from(effect.entry)).map_or(0, Cell::get);
            if !effect.is_right(state) {
                return false;
            }
            steady &= effect.state(state) == state;
        }
        if steady {
            self.settle(slot);
        }
        true
    }

    /// Updates the states with all branches of these runs; `false` if they do not fit.
    #[inline]
    pub(super) fn update(
        &self,
        (kept, runs): (Kept, &[Run]),
        states: &[Cell<u8>],
        entry: impl Fn(u64) -> u16,
    ) -> bool {
        let Some((slot, effects)) = self.find(kept, runs, entry) else {
            return false;
        };
        if slot.get().steady == self.version.get() {
            return true;
        }
        let mut changed = 0;
        for effect in effects {
            let effect = effect.get();
            if let Some(cell) = states.get(usize::from(effect.entry)) {
                let state = cell.get();
                let next = effect.state(state);
                cell.set(next);
                changed |= next ^ state;
            }
        }
        if changed != 0 {
            self.change();
        }
        true
    }

    /// As long as the predictor stays as it is, so does this.
    fn settle(&self, slot: &Cell<Slot>) {
        slot.set(Slot {
            steady: self.version.get(),
            ..slot.get()
        });
    }

    /// The slot and the effects of these runs.
    #[inline(always)]
    fn find(
        &self,
        kept: Kept,
        runs: &[Run],
        entry: impl Fn(u64) -> u16,
    ) -> Option<(&'t Cell<Slot>, &'t [Cell<Effect>])> {
        let name = u64::from(kept.store()) << 32 | u64::from(kept.index());
        let at = name.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
        let cell = self.slots.get(at as usize & (SLOTS - 1))?;
        if cell.get().name != name {
            cell.set(self.gather(name, runs, &entry)?);
        }
        let slot = cell.get();
        let from = usize::from(slot.from);
        let effects = self.effects.get(from..from + usize::from(slot.len))?;
        Some((cell, effects))
    }

    #[cold]
    fn gather(&self, name: u64, runs: &[Run], entry: &dyn Fn(u64) -> u16) -> Option<Slot> {
        if self.used.get() + runs.len() > ROOM {
            self.clear();
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
            steady: 0,
            from: from as u16,
            len: len as u16,
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
