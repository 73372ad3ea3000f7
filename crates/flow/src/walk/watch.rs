//! Detects a walk that loops without evidence.

use crate::blocks::BlockId;

/// Blocks that a walk goes through without evidence at most. Thirty functions
/// that each call the next one twice are a program of some hundred bytes and a
/// walk of a billion calls.
const MAX_BLIND: u64 = 1 << 20;

/// Keeps a state and compares it with the ones that follow; the kept one is
/// replaced at every power of two, so a circle of any length is found. A state
/// is a block and everything on the return stack: from equal states a walk
/// without evidence goes on equally.
pub(super) struct Watch {
    /// Of no meaning until a block was passed blind.
    kept: Option<(BlockId, u64)>,
    /// Blocks passed since.
    blind: u64,
    /// What was left of the evidence when the walk last used some.
    left: u64,
}

impl Watch {
    pub(super) fn new(left: u64) -> Watch {
        Watch {
            kept: None,
            blind: 0,
            left,
        }
    }

    /// Whether the walk has used no evidence since this was last asked, and
    /// so has passed a block without any.
    #[inline]
    pub(super) fn is_blind(&mut self, left: u64) -> bool {
        let used = left != self.left;
        if used {
            self.left = left;
            self.blind = 0;
        }
        !used
    }

    /// Whether this state was met before without evidence in between, or
    /// enough of them were.
    pub(super) fn repeats(&mut self, state: (BlockId, u64)) -> bool {
        if self.blind > 0 && self.kept == Some(state) {
            return true;
        }
        self.blind += 1;
        if self.blind.is_power_of_two() {
            self.kept = Some(state);
        }
        self.blind >= MAX_BLIND
    }
}
