//! What is known before the hart's way is: a packet that waits, the outcomes of branches
//! up to its address, and what follows it.

use hartrace_flow::{History, Reason};

use crate::{BranchMap, Fault};

/// What does not fit, and the value that goes with it.
pub(super) type Trouble = (Fault, u64);

/// The same as the reason of a gap.
#[cold]
pub(super) fn reason((fault, value): Trouble) -> Reason {
    fault.reason(value)
}

/// Outcomes of branches, the oldest in bit 0, 1 for taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcomes {
    pub(super) bits: u64,
    pub(super) len: u8,
}

impl Outcomes {
    /// Those of a packet, where 0 is for taken.
    #[inline]
    pub(super) const fn of(map: BranchMap) -> Outcomes {
        let len = if map.count > 31 { 31 } else { map.count };
        Outcomes {
            bits: !map.bits as u64 & ((1 << len) - 1),
            len,
        }
    }

    /// That of an instruction, should it be a branch.
    pub(super) const fn own(branch: bool, taken: bool) -> Outcomes {
        Outcomes {
            bits: (branch && taken) as u64,
            len: branch as u8,
        }
    }

    /// These and then others. There is one at most before a packet's own.
    #[inline]
    pub(super) const fn and(self, later: Outcomes) -> Outcomes {
        Outcomes {
            bits: self.bits | later.bits << self.len,
            len: self.len + later.len,
        }
    }

    #[inline]
    pub(super) const fn evidence(self) -> History {
        History::new(self.bits, self.len)
    }

    /// The last of them, which is left over.
    #[inline]
    pub(super) const fn last(self) -> Outcomes {
        Outcomes {
            bits: self.bits >> (self.len.saturating_sub(1)) & 1,
            len: 1,
        }
    }

    /// Whether the oldest one, if there is any, is a taken branch.
    pub(super) const fn is_taken(self) -> bool {
        self.bits & 1 != 0
    }

    /// All but the oldest ones.
    pub(super) const fn without(self, oldest: u8) -> Outcomes {
        Outcomes {
            bits: self.bits >> oldest,
            len: self.len.saturating_sub(oldest),
        }
    }

    /// As a word with a stop bit above the newest.
    #[inline]
    pub(super) const fn word(self) -> u64 {
        self.bits | 1 << self.len
    }
}

/// A packet with an address that waits for the one after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pending {
    pub(super) address: u64,
    /// All outcomes up to there, with the one of the address if it is a branch.
    pub(super) outcomes: Outcomes,
    /// It says more, see [`Source`].
    pub(super) modal: bool,
    /// The walk is at the address for the first time; it is not yet known whether
    /// that is the time the packet meant.
    pub(super) arrived: bool,
}

/// What follows a packet that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A format 0, 1 or 2, or `ended_ntr`: the address is where an indirect
    /// jump went.
    Flow,
    /// A synchronisation or trap, or `ended_rep`: the next time the hart comes
    /// by the address.
    Sync,
    /// Nothing decisive: as far as both agree.
    Unknown,
}
