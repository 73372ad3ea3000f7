//! Branches that are not reported yet, as the predictor sees them (3.2.6, 8.1).

use hartrace_flow::{IngressRun, IngressRuns};

use super::hart::FULL;
use crate::Config;
use crate::modes::Predictor;

/// Counts branches as long as all of them are predicted.
#[derive(Clone, Debug)]
pub(super) struct Prediction {
    table: Predictor,
    /// Branches since the last report that were predicted, one after the other.
    right: u64,
    /// One of the first 31 was not: they are reported by a map.
    wrong: bool,
    /// One after the first 31 was not: the count must be reported.
    failed: bool,
}

/// The count at which it is reported in any case (6.8).
const MOST: u64 = u32::MAX as u64 + FULL as u64;

impl Prediction {
    pub(super) fn new(config: &Config) -> Prediction {
        Prediction {
            table: Predictor::new(config.bpred_size, config.iaddress_lsb),
            right: 0,
            wrong: false,
            failed: false,
        }
    }

    /// A branch; returns whether its outcome belongs into the map.
    #[inline]
    pub(super) fn branch(&mut self, address: u64, taken: bool) -> bool {
        let predicted = self.table.update(address, taken);
        let counting = self.right >= u64::from(FULL);
        if counting {
            self.failed |= !predicted;
        } else {
            self.wrong |= !predicted;
        }
        self.right += u64::from(predicted && !self.wrong);
        !counting
    }

    /// Whether the branches of a run would all be predicted and counted.
    pub(super) fn counts(&self, runs: &IngressRuns<'_>, run: &IngressRun<'_>) -> bool {
        let room = self.right + u64::from(run.branches()) < MOST;
        let predicted = |address, taken| self.table.predict(address) == taken;
        room && !self.wrong && runs.branches_are(run, predicted)
    }

    /// Whether two branches this far apart, in bytes, have different entries.
    pub(super) fn separates(&self, bytes: u64) -> bool {
        self.table.separates(bytes)
    }

    /// Whether branches must be reported, with so many in the map.
    #[inline]
    pub(super) fn is_due(&self, mapped: u8) -> bool {
        self.failed | (self.right >= MOST) | (self.wrong & (mapped >= FULL))
    }

    /// `branch_count`, and whether the last branch failed, if there are enough of
    /// them to count.
    pub(super) fn count(&self) -> Option<(u32, bool)> {
        let count = self.right.checked_sub(u64::from(FULL))?;
        Some((count.min(u32::MAX.into()) as u32, self.failed))
    }

    /// They were reported.
    pub(super) fn clear(&mut self) {
        (self.right, self.wrong, self.failed) = (0, false, false);
    }

    /// Nothing is known about any branch.
    pub(super) fn reset(&mut self) {
        self.table.reset();
    }

    /// The packet that reported everything before also reported this branch.
    pub(super) fn resume(&mut self, address: u64, taken: bool) {
        self.table.update(address, taken);
    }

    /// As if so many branches had been predicted.
    #[cfg(test)]
    pub(super) fn pretend(&mut self, right: u64) {
        self.right = right;
    }
}
