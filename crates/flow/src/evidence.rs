//! Evidence: what a trace reports to a walk about branches.

use crate::{Kept, Run};

/// Answers the questions a walk can answer by itself.
pub trait Evidence {
    /// The outcome of the branch at `at`; `None` when there is no evidence
    /// left. `last`: the walk's count ends with this branch.
    fn branch(&mut self, at: u64, last: bool) -> Option<bool>;

    /// Evidence left: outcomes, and whatever else is used up by answering. It
    /// goes down with every answer that is not free; a walk that goes round
    /// while it stays the same is stopped, and
    /// [`Walk::advance_to`](crate::Walk::advance_to) arrives only when it is
    /// used up.
    fn left(&self) -> u64;

    /// The next outcomes at once, at most `most` and at most eight, where they
    /// do not depend on the branch: the walk's fast path.
    #[inline]
    fn peek(&self, most: u8) -> Outcomes {
        let _ = most;
        Outcomes::default()
    }

    /// How many of the next outcomes are foreseen: they depend on nothing but their
    /// branches and what was given out before, while [`Evidence::peek`] gives none. And
    /// whether the one after them has the other outcome. The walk's fast path for
    /// predicted branches.
    #[inline]
    fn foreseen(&self) -> (u64, bool) {
        (0, false)
    }

    /// The outcome that is foreseen for the branch at `at`. It does not change while
    /// outcomes are as foreseen.
    #[inline]
    fn foresee(&self, at: u64) -> bool {
        let _ = at;
        false
    }

    /// Whether all branches of these runs have the outcomes that are foreseen for
    /// them. Runs of the same name are the same.
    #[inline]
    fn foresees(&self, kept: Kept, runs: &[Run]) -> bool {
        let _ = (kept, runs);
        false
    }

    /// Skips outcomes that [`Evidence::peek`] gave or that are foreseen, with the one
    /// after them, at most that many.
    #[inline]
    fn skip(&mut self, outcomes: u8) {
        let _ = outcomes;
    }

    /// Whether the return at `at` may be taken from the return stack, where
    /// the walk has one with `depth` calls on it. The default leaves the return
    /// that ends a count to the decoder.
    fn implied_return(&mut self, at: u64, depth: usize, last: bool) -> bool {
        let _ = (at, depth);
        !last
    }
}

/// Up to eight branch outcomes, the oldest in bit 0, 1 for taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcomes {
    /// The outcomes; bits above `count` are 0.
    pub bits: u8,
    /// How many, 0 to 8.
    pub count: u8,
}

impl Outcomes {
    /// Whether this one, counted from 0, is "taken".
    pub(crate) const fn is_taken(self, nth: u8) -> bool {
        self.bits as u32 >> nth & 1 != 0
    }

    /// The oldest of them.
    pub(crate) const fn first(self, most: u8) -> Outcomes {
        let count = if self.count < most { self.count } else { most };
        Outcomes {
            bits: self.bits & !(u32::MAX << count) as u8,
            count,
        }
    }
}

/// Up to 64 branch outcomes, the oldest in bit 0, 1 for taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct History {
    bits: u64,
    len: u8,
}

impl History {
    /// The `len` low bits of `bits`, at most 64.
    #[must_use]
    pub const fn new(bits: u64, len: u8) -> History {
        History {
            bits,
            len: if len > 64 { 64 } else { len },
        }
    }

    /// Whether all outcomes are used up.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Evidence for History {
    #[inline]
    fn branch(&mut self, _at: u64, _last: bool) -> Option<bool> {
        self.len = self.len.checked_sub(1)?;
        let taken = self.bits & 1 != 0;
        self.bits >>= 1;
        Some(taken)
    }

    #[inline]
    fn left(&self) -> u64 {
        u64::from(self.len)
    }

    #[inline]
    fn peek(&self, most: u8) -> Outcomes {
        let count = self.len.min(most).min(8);
        Outcomes {
            bits: self.bits as u8 & !(u32::MAX << count) as u8,
            count,
        }
    }

    #[inline]
    fn skip(&mut self, outcomes: u8) {
        self.len = self.len.saturating_sub(outcomes);
        self.bits = self.bits.checked_shr(u32::from(outcomes)).unwrap_or(0);
    }
}

/// No branch on the way was taken, and the one that ends the count is the
/// decoder's to judge (N-Trace BTM).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotTaken;

impl Evidence for NotTaken {
    #[inline]
    fn branch(&mut self, _at: u64, last: bool) -> Option<bool> {
        (!last).then_some(false)
    }

    fn left(&self) -> u64 {
        0
    }
}
