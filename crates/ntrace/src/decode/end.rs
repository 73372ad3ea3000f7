//! How a stretch of execution ended, and what of it does not fit.

use hartrace_flow::{Cause, Reason};

use crate::Fault;

/// How a stretch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// With a taken branch, or a direct jump that counts as one.
    Branch,
    /// With a jump to this address.
    Jump(u64),
    /// With a trap to this address, after the last instruction.
    Trap(Cause, u64),
    /// Anyhow, at this address: a sync message may come anywhere. A branch at
    /// the very end was taken if the message is one of taken branches; else the
    /// address shows.
    Here { to: u64, taken: bool },
    /// In any way; where the hart went is unknown.
    Open,
}

/// What does not fit, and the value that goes with it.
pub(super) type Trouble = (Fault, u64);

/// The same as the reason of a gap.
#[cold]
pub(super) fn reason((fault, value): Trouble) -> Reason {
    fault.reason(value)
}

/// What the outcomes of `HIST` are, oldest first.
#[inline]
pub(super) fn outcomes(hist: u64) -> (u64, u8) {
    let count = 63 - (hist | 1).leading_zeros();
    if count == 0 {
        return (0, 0);
    }
    ((hist << (64 - count)).reverse_bits(), count as u8)
}
