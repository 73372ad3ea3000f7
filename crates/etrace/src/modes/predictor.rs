//! The branch predictor (3.2.6): a table of two-bit states, indexed by address.

use alloc::boxed::Box;
use alloc::vec;
use core::cell::Cell;

use hartrace_flow::{Exit, Kept, Run};

use super::effects::{Effects, Known};
use super::first_bit;
use super::state::{INITIAL, MISS, NEXT, after};

/// A predictor. The upper bit of a state is the prediction, the lower one the
/// last outcome; a prediction changes when it has failed twice, or once right
/// after a synchronisation.
///
/// This is the memory of it; [`Shared`] is for using it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Predictor {
    /// A power of two of them.
    states: Box<[u8]>,
    first_bit: u32,
    effects: Effects,
}

/// Fewer runs than these are looked at one by one: most of them have one branch.
const FEW_RUNS: usize = 4;

impl Predictor {
    /// A table with 2^`bpred_size` entries.
    pub(crate) fn new(bpred_size: u8, iaddress_lsb: u8) -> Predictor {
        let entries = 1usize << (bpred_size & 15);
        Predictor {
            states: vec![INITIAL; entries].into_boxed_slice(),
            first_bit: first_bit(iaddress_lsb),
            effects: Effects::default(),
        }
    }

    /// The predictor, for any number of users at once.
    #[inline(always)]
    pub(crate) fn shared(&mut self) -> Shared<'_> {
        Shared {
            states: Cell::from_mut(&mut *self.states).as_slice_of_cells(),
            first_bit: self.first_bit,
            known: self.effects.known(),
        }
    }

    /// The same for users that see the same runs again and again.
    #[inline]
    pub(crate) fn shared_for_runs(&mut self) -> Shared<'_> {
        self.effects.prepare();
        self.shared()
    }
}

/// A predictor in use. A decoder asks for predictions while it gives out the
/// branches that change them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shared<'t> {
    states: &'t [Cell<u8>],
    first_bit: u32,
    known: Known<'t>,
}

impl Shared<'_> {
    #[inline(always)]
    fn index(&self, address: u64) -> usize {
        let mask = self.states.len().wrapping_sub(1);
        (address >> self.first_bit) as usize & mask
    }

    #[inline(always)]
    fn entry(&self, address: u64) -> Option<&Cell<u8>> {
        self.states.get(self.index(address))
    }

    /// All branches of these runs had the outcomes they have there.
    #[inline]
    pub(crate) fn update_all(&self, kept: Kept, runs: &[Run]) {
        let entry = |address| self.index(address) as u16;
        if runs.len() < FEW_RUNS || !self.known.update((kept, runs), self.states, entry) {
            for run in runs {
                self.note(run);
            }
        }
    }

    /// The run may end with a branch, which had this outcome.
    #[inline]
    pub(crate) fn note(&self, run: &Run) {
        if matches!(run.exit, Exit::Taken | Exit::NotTaken)
            && let Some(entry) = self.entry(run.source())
        {
            let state = entry.get();
            let next = after(state, run.exit == Exit::Taken);
            if next != state {
                entry.set(next);
                self.known.change();
            }
        }
    }

    /// Whether all branches of these runs are expected to have the outcomes they have
    /// there. Perhaps `false` although they are.
    #[inline]
    pub(crate) fn expects_all(&self, kept: Kept, runs: &[Run]) -> bool {
        let entry = |address| self.index(address) as u16;
        self.known.expects((kept, runs), self.states, entry)
    }

    /// Whether the branch at this address is expected to be taken.
    #[inline]
    pub(crate) fn predict(&self, address: u64) -> bool {
        self.entry(address)
            .is_some_and(|state| state.get() > INITIAL)
    }

    /// The branch had this outcome; returns whether that was not expected.
    #[inline(always)]
    pub(crate) fn update(&self, address: u64, taken: bool) -> bool {
        let Some(entry) = self.entry(address) else {
            return true;
        };
        let row = usize::from(entry.get() << 1 | u8::from(taken));
        #[allow(clippy::indexing_slicing, reason = "there are 8 rows")]
        let next = NEXT[row & 7];
        entry.set(next & !MISS);
        next & MISS != 0
    }

    /// A synchronisation packet was sent.
    pub(crate) fn reset(&self) {
        for state in self.states {
            state.set(INITIAL);
        }
        self.known.change();
    }

    /// A copy of the table as it is.
    pub(crate) fn copy(&self) -> Predictor {
        Predictor {
            states: self.states.iter().map(Cell::get).collect(),
            first_bit: self.first_bit,
            effects: Effects::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of 3.2.6: state, outcome, prediction, next state.
    #[test]
    fn every_transition_of_the_table() {
        let rows = [
            (0b00, false, false, 0b00),
            (0b00, true, false, 0b01),
            (0b01, false, false, 0b00),
            (0b01, true, false, 0b11),
            (0b11, true, true, 0b11),
            (0b11, false, true, 0b10),
            (0b10, true, true, 0b11),
            (0b10, false, true, 0b00),
        ];
        for (state, taken, predicted, next) in rows {
            let mut predictor = Predictor::new(1, 1);
            predictor.states[0] = state;
            let table = predictor.shared();
            assert_eq!(table.predict(0x100), predicted, "{state:02b}");
            assert_eq!(table.update(0x100, taken), predicted != taken);
            assert_eq!(predictor.states[0], next, "{state:02b} {taken}");
        }
    }

    #[test]
    fn the_initial_state_is_01() {
        let mut predictor = Predictor::new(4, 1);
        assert!(predictor.states.iter().all(|&state| state == 0b01));
        let table = predictor.shared();
        table.update(6, true);
        assert!(table.predict(6));
        assert!(table.copy().shared().predict(6));
        table.reset();
        assert_eq!(predictor, Predictor::new(4, 1));
    }

    /// Bits size:1 with compressed instructions, size+1:2 without.
    #[test]
    fn entries_are_indexed_by_low_address_bits() {
        for (lsb, shift) in [(0, 1), (1, 1), (2, 2)] {
            let mut predictor = Predictor::new(3, lsb);
            let table = predictor.shared();
            table.update(5 << shift, true);
            for slot in 0..16u64 {
                let same = slot % 8 == 5;
                assert_eq!(table.predict(slot << shift), same, "lsb {lsb} slot {slot}");
            }
        }
    }

    #[test]
    fn sizes_have_a_power_of_two_entries() {
        for size in 1..16 {
            assert_eq!(Predictor::new(size, 1).states.len(), 1 << size);
        }
    }
}
