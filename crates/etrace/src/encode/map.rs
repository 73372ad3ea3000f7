//! The branch map that is being filled.

use crate::packet::BranchMap;

/// Most branches of a map.
pub(super) const FULL: u8 = 31;

/// So many branches of which only the last may be taken; they fit.
#[inline(always)]
pub(super) fn push_branches(map: &mut BranchMap, count: u8, last_taken: bool) {
    // A set bit is a branch that was not taken.
    let outcomes = (1u64 << (count & 63)) - 1;
    let outcomes = outcomes >> u32::from(last_taken);
    map.bits |= (outcomes as u32) << (map.count & 31);
    map.count += count;
}
