//! The branch history register (8.3).

use crate::{Body, RepeatedHistory};

/// Outcomes of branches that no message has told yet.
#[derive(Clone, Debug)]
pub(crate) struct Hist {
    /// The outcomes below a stop bit, the newest lowest.
    register: u64,
    /// The stop bit of a full register.
    full: u64,
}

impl Hist {
    /// A register of so many bits with its stop bit.
    pub(crate) fn new(hist_bits: u8, _repeat: RepeatedHistory, _hrepeat_bits: u8) -> Hist {
        Hist {
            register: 1,
            full: 1 << (hist_bits - 1),
        }
    }

    /// One more branch; what is full is given out.
    #[inline]
    pub(crate) fn push(&mut self, taken: bool, emit: &mut impl FnMut(Body<'static>)) {
        self.register = self.register << 1 | u64::from(taken);
        if self.register >= self.full {
            emit(Body::HistFull {
                hist: self.register,
            });
            self.register = 1;
        }
    }

    /// Gives the field of a message with `HIST`, 1 when there are no
    /// outcomes, and empties the register.
    pub(crate) fn take(&mut self, _emit: &mut impl FnMut(Body<'static>)) -> u64 {
        core::mem::replace(&mut self.register, 1)
    }

    /// Whether there is nothing to send at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.register == 1
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.register = 1;
    }
}
