//! The states of an entry of the branch predictor.

/// The state of every entry after a synchronisation: not taken, but ready to
/// change its mind.
pub(super) const INITIAL: u8 = 0b01;

/// Set where an outcome was not expected.
pub(super) const MISS: u8 = 0b100;

/// The state after an outcome, with [`MISS`] or not, by the state before and whether
/// the branch was taken.
pub(super) const NEXT: [u8; 8] = {
    let mut rows = [0; 8];
    let mut row = 0;
    while row < 8 {
        let (predicted, last, taken) = (row >> 2, row >> 1 & 1, row & 1);
        // The prediction follows the outcome unless the last one confirmed it.
        let prediction = if predicted == last { predicted } else { taken };
        let miss = if predicted == taken { 0 } else { MISS };
        #[allow(clippy::indexing_slicing, reason = "the row is below 8")]
        {
            rows[row as usize] = miss | prediction << 1 | taken;
        }
        row += 1;
    }
    rows
};

/// The state after an outcome.
pub(super) const fn after(state: u8, taken: bool) -> u8 {
    let row = (state << 1 | taken as u8) & 7;
    #[allow(clippy::indexing_slicing, reason = "there are 8 rows")]
    let next = NEXT[row as usize];
    next & !MISS
}
