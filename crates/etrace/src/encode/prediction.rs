//! Branches that are not reported yet, as the predictor sees them (3.2.6, 8.1).

use hartrace_flow::{IngressRun, IngressRuns};

use super::map::{FULL, push_branches};
use crate::modes::{Predictor, Shared};
use crate::packet::bits::mask;
use crate::{BranchMap, Config};

/// Counts branches as long as all of them are predicted.
#[derive(Clone, Debug)]
pub(super) struct Prediction {
    predictor: Predictor,
    /// Branches since the last report, as long as all of them were predicted.
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
            predictor: Predictor::new(config.bpred_size, config.iaddress_lsb),
            right: 0,
            wrong: false,
            failed: false,
        }
    }

    /// A branch; returns whether its outcome belongs into the map.
    #[inline]
    pub(super) fn branch(&mut self, address: u64, taken: bool) -> bool {
        let miss = self.predictor.shared().update(address, taken);
        let counting = self.is_counting();
        self.failed |= miss & counting;
        self.wrong |= miss & !counting;
        self.right += u64::from(!miss & !self.wrong);
        !counting
    }

    /// Whether branches are counted, and no longer put into the map.
    #[inline]
    const fn is_counting(&self) -> bool {
        self.right >= FULL as u64
    }

    /// Whether so many more branches do not reach the count that is reported in any
    /// case.
    #[inline]
    pub(super) const fn has_room(&self, branches: u8) -> bool {
        self.right + (branches as u64) < MOST
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
        self.predictor.shared().reset();
    }

    /// The packet that reported everything before also reported this branch.
    pub(super) fn resume(&mut self, address: u64, taken: bool) {
        self.predictor.shared().update(address, taken);
    }

    /// Branches were passed.
    #[inline(always)]
    pub(super) fn pass(&mut self, passed: Passed) {
        let counting = self.is_counting();
        self.failed |= passed.miss & counting;
        self.wrong |= passed.miss & !counting;
        if !self.wrong {
            self.right = passed.count - u64::from(self.failed);
        }
    }

    /// As if so many branches had been predicted.
    #[cfg(test)]
    pub(super) fn pretend(&mut self, right: u64) {
        self.right = right;
    }
}

/// The branches of many runs, taken as [`Prediction::branch`] and the map would, up to
/// one that makes a packet due. For speed there is no
/// jump that depends on an outcome: who can say what comes next?
#[derive(Clone, Copy)]
pub(super) struct Passing<'p> {
    pub(super) table: Option<Shared<'p>>,
    /// Branches are counted; otherwise they are put into a map.
    counting: bool,
    /// With more than so many a packet may be due within a run.
    limit: u64,
    pub(super) passed: Passed,
}

/// Branches since the last report.
#[derive(Clone, Copy)]
pub(super) struct Passed {
    /// The map, if they are put into one.
    bits: u32,
    pub(super) count: u64,
    /// One was not predicted.
    miss: bool,
}

impl Passed {
    /// The map with them, up to as many as it holds.
    #[inline(always)]
    pub(super) fn map(self) -> BranchMap {
        BranchMap {
            bits: self.bits & mask(FULL.into()) as u32,
            count: self.count.min(FULL.into()) as u8,
        }
    }

    #[inline(always)]
    fn take(&mut self, table: Shared<'_>, address: u64, taken: bool) {
        self.miss |= table.update(address, taken);
        self.bits |= u32::from(!taken) << (self.count & 31);
        self.count += 1;
    }
}

impl<'p> Passing<'p> {
    #[inline(always)]
    pub(super) fn new(map: BranchMap, prediction: Option<&'p mut Prediction>) -> Passing<'p> {
        let right = prediction.as_ref().map_or(0, |p| p.right);
        let counting = right >= FULL.into();
        Passing {
            table: prediction.map(|p| p.predictor.shared()),
            counting,
            limit: if counting { MOST - 1 } else { FULL.into() },
            passed: Passed {
                bits: map.bits,
                count: if counting { right } else { map.count.into() },
                miss: false,
            },
        }
    }

    /// Takes the last branch of a run and perhaps another one before it, as
    /// [`take`](Passing::take).
    #[inline(always)]
    pub(super) fn take_last(
        &mut self,
        table: Shared<'_>,
        other: Option<u64>,
        run: &IngressRun<'_>,
    ) -> bool {
        let branches = 1 + u64::from(other.is_some());
        if self.passed.count + branches > self.limit || self.has_failed() {
            return false;
        }
        if let Some(other) = other {
            if self.counting && table.predict(other) {
                return false;
            }
            self.passed.take(table, other, false);
        }
        self.passed.take(table, run.last_addr(), run.is_taken());
        true
    }

    /// Takes the branches of a run; `false`, and nothing happens, if a packet is due
    /// before the last of them.
    #[inline(always)]
    pub(super) fn take(&mut self, runs: &IngressRuns<'_>, run: &IngressRun<'_>) -> bool {
        let own = run.itype().is_branch();
        let before_last = run.branches() - u8::from(own);
        if self.passed.count + u64::from(before_last) >= self.limit || self.has_failed() {
            return false;
        }
        let Some(table) = self.table else {
            let mut map = BranchMap {
                bits: self.passed.bits,
                count: self.passed.count as u8,
            };
            push_branches(&mut map, run.branches(), run.is_taken());
            (self.passed.bits, self.passed.count) = (map.bits, map.count.into());
            return true;
        };
        if before_last > 0 {
            match inner(table, self.passed, self.counting, runs, run) {
                Some(passed) => self.passed = passed,
                None => return false,
            }
        }
        if own {
            self.passed.take(table, run.last_addr(), run.is_taken());
        }
        true
    }

    /// Whether no more can be taken.
    #[inline(always)]
    pub(super) fn is_full(&self) -> bool {
        self.has_failed() | (self.passed.count >= self.limit)
    }

    /// Whether a branch that was counted was not predicted: a packet is due with the
    /// next instruction.
    #[inline(always)]
    fn has_failed(&self) -> bool {
        self.counting & self.passed.miss
    }
}

/// The branches of a run that are not at its end.
#[inline(always)]
fn inner(
    table: Shared<'_>,
    mut passed: Passed,
    counting: bool,
    runs: &IngressRuns<'_>,
    run: &IngressRun<'_>,
) -> Option<Passed> {
    if counting {
        // A branch that is not taken makes no other such prediction fail.
        let mut predicted = true;
        runs.inner_branches(run, |address| predicted &= !table.predict(address));
        if !predicted {
            return None;
        }
    }
    // The order does not matter: all outcomes are the same.
    runs.inner_branches(run, |address| passed.take(table, address, false));
    Some(passed)
}
