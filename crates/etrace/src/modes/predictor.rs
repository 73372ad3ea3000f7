//! The branch predictor (3.2.6): a table of two-bit states, indexed by address.

use alloc::boxed::Box;
use alloc::vec;
use core::cell::Cell;

use super::first_bit;

/// The state of every entry after a synchronisation: not taken, but ready to
/// change its mind.
const INITIAL: u8 = 0b01;

/// A predictor. The upper bit of a state is the prediction, the lower one the
/// last outcome; a prediction changes when it has failed twice, or once right
/// after a synchronisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Predictor {
    /// A power of two of them.
    states: Box<[u8]>,
    first_bit: u32,
}

/// The state after an outcome, and whether that was expected.
#[inline]
const fn next(state: u8, taken: bool) -> (u8, bool) {
    let (predicted, last) = (state >> 1, state & 1);
    let taken = taken as u8;
    // The prediction follows the outcome unless the last one confirmed it.
    let prediction = if predicted == last { predicted } else { taken };
    (prediction << 1 | taken, predicted == taken)
}

impl Predictor {
    /// A table with 2^`bpred_size` entries.
    pub(crate) fn new(bpred_size: u8, iaddress_lsb: u8) -> Predictor {
        let entries = 1usize << (bpred_size & 15);
        Predictor {
            states: vec![INITIAL; entries].into_boxed_slice(),
            first_bit: first_bit(iaddress_lsb),
        }
    }

    #[inline]
    fn index(&self, address: u64) -> usize {
        (address >> self.first_bit) as usize & (self.states.len() - 1)
    }

    /// Whether the branch at this address is expected to be taken.
    #[inline]
    pub(crate) fn predict(&self, address: u64) -> bool {
        let state = self.states.get(self.index(address));
        state.is_some_and(|&state| state > INITIAL)
    }

    /// The branch had this outcome; returns whether that was expected.
    #[inline]
    pub(crate) fn update(&mut self, address: u64, taken: bool) -> bool {
        let index = self.index(address);
        let Some(state) = self.states.get_mut(index) else {
            return false;
        };
        let expected;
        (*state, expected) = next(*state, taken);
        expected
    }

    /// Whether branches less than so many bytes apart have different entries.
    #[inline]
    pub(crate) fn separates(&self, bytes: u64) -> bool {
        bytes >> self.first_bit <= self.states.len() as u64
    }

    /// A synchronisation packet was sent.
    pub(crate) fn reset(&mut self) {
        self.states.fill(INITIAL);
    }

    /// The table for several users at once.
    pub(crate) fn shared(&mut self) -> Shared<'_> {
        Shared {
            states: Cell::from_mut(&mut *self.states).as_slice_of_cells(),
            first_bit: self.first_bit,
        }
    }
}

/// A predictor as a decoder uses it: it asks for predictions while it gives out
/// the branches that change them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shared<'t> {
    states: &'t [Cell<u8>],
    first_bit: u32,
}

impl Shared<'_> {
    #[inline]
    fn entry(&self, address: u64) -> Option<&Cell<u8>> {
        let mask = self.states.len().wrapping_sub(1);
        self.states.get((address >> self.first_bit) as usize & mask)
    }

    /// As [`Predictor::predict`].
    #[inline]
    pub(crate) fn predict(&self, address: u64) -> bool {
        self.entry(address)
            .is_some_and(|state| state.get() > INITIAL)
    }

    /// As [`Predictor::update`].
    #[inline]
    pub(crate) fn update(&self, address: u64, taken: bool) {
        if let Some(entry) = self.entry(address) {
            entry.set(next(entry.get(), taken).0);
        }
    }

    /// As [`Predictor::reset`].
    pub(crate) fn reset(&self) {
        for state in self.states {
            state.set(INITIAL);
        }
    }

    /// A copy of the table as it is.
    pub(crate) fn copy(&self) -> Predictor {
        Predictor {
            states: self.states.iter().map(Cell::get).collect(),
            first_bit: self.first_bit,
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
            let mut table = Predictor::new(1, 1);
            table.states[0] = state;
            assert_eq!(table.predict(0x100), predicted, "{state:02b}");
            let mut other = table.clone();
            other.shared().update(0x100, taken);
            assert_eq!(table.update(0x100, taken), predicted == taken);
            assert_eq!(table.states[0], next, "{state:02b} {taken}");
            assert_eq!(other.shared().copy(), table);
            assert_eq!(other.shared().predict(0x100), table.predict(0x100));
        }
    }

    #[test]
    fn the_initial_state_is_01() {
        let mut table = Predictor::new(4, 1);
        assert!(table.states.iter().all(|&state| state == 0b01));
        table.update(6, true);
        assert!(table.predict(6));
        table.clone().shared().reset();
        table.reset();
        assert_eq!(table, Predictor::new(4, 1));
    }

    /// Bits size:1 with compressed instructions, size+1:2 without.
    #[test]
    fn entries_are_indexed_by_low_address_bits() {
        for (lsb, shift) in [(0, 1), (1, 1), (2, 2)] {
            let mut table = Predictor::new(3, lsb);
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
