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
///
/// Its entries are cells: the decoder asks for predictions while it gives out
/// the branches that change them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Predictor {
    states: Box<[Cell<u8>]>,
    first_bit: u32,
}

impl Predictor {
    /// A table with 2^`bpred_size` entries.
    pub(crate) fn new(bpred_size: u8, iaddress_lsb: u8) -> Predictor {
        let entries = 1usize << (bpred_size & 15);
        Predictor {
            states: vec![Cell::new(INITIAL); entries].into_boxed_slice(),
            first_bit: first_bit(iaddress_lsb),
        }
    }

    /// A table with these states, a power of two of them.
    pub(crate) fn of(states: &[u8], iaddress_lsb: u8) -> Predictor {
        Predictor {
            states: states.iter().copied().map(Cell::new).collect(),
            first_bit: first_bit(iaddress_lsb),
        }
    }

    /// The states of all entries.
    pub(crate) fn states(&self) -> Box<[u8]> {
        self.states.iter().map(Cell::get).collect()
    }

    #[inline]
    fn entry(&self, address: u64) -> Option<&Cell<u8>> {
        // The length is a power of two.
        let mask = self.states.len().wrapping_sub(1);
        self.states.get((address >> self.first_bit) as usize & mask)
    }

    /// Whether the branch at this address is expected to be taken.
    #[inline]
    pub(crate) fn predict(&self, address: u64) -> bool {
        self.entry(address).is_some_and(|state| state.get() > 0b01)
    }

    /// The branch had this outcome; returns whether that was expected.
    #[inline]
    pub(crate) fn update(&self, address: u64, taken: bool) -> bool {
        let Some(entry) = self.entry(address) else {
            return false;
        };
        let state = entry.get();
        let (predicted, last) = (state >> 1, state & 1);
        let taken = u8::from(taken);
        // The prediction follows the outcome unless the last one confirmed it.
        let prediction = if predicted == last { predicted } else { taken };
        entry.set(prediction << 1 | taken);
        predicted == taken
    }

    /// Whether branches less than so many bytes apart have different entries.
    #[inline]
    pub(crate) fn separates(&self, bytes: u64) -> bool {
        bytes >> self.first_bit <= self.states.len() as u64
    }

    /// A synchronisation packet was sent.
    pub(crate) fn reset(&self) {
        for state in &self.states {
            state.set(INITIAL);
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
            let table = Predictor::new(1, 1);
            table.states[0].set(state);
            assert_eq!(table.predict(0x100), predicted, "{state:02b}");
            assert_eq!(table.update(0x100, taken), predicted == taken);
            assert_eq!(table.states[0].get(), next, "{state:02b} {taken}");
        }
    }

    #[test]
    fn the_initial_state_is_01() {
        let table = Predictor::new(4, 1);
        assert!(table.states.iter().all(|state| state.get() == 0b01));
        table.update(6, true);
        assert!(table.predict(6));
        table.reset();
        assert_eq!(table, Predictor::new(4, 1));
    }

    /// Bits size:1 with compressed instructions, size+1:2 without.
    #[test]
    fn entries_are_indexed_by_low_address_bits() {
        for (lsb, shift) in [(0, 1), (1, 1), (2, 2)] {
            let table = Predictor::new(3, lsb);
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
