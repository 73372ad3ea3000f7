//! What a packet gives a walk besides outcomes: branches that were predicted,
//! and returns that were left out.

use hartrace_flow::{Evidence, History, Kept, Outcomes as Next, Run};

use super::pending::Outcomes;
use crate::modes::Shared;

/// What a packet says about returns that were left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Returns {
    /// Nothing: those the return stack knows.
    #[default]
    Any,
    /// `irets`: so many since the last branch or packet.
    Count(u16),
    /// `irdepth`: entries on the stack.
    Depth(u16),
}

/// What a packet says besides its address and outcomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct More {
    /// Branches after the outcomes that were predicted.
    pub(super) predicted: u64,
    /// And one more that was not.
    pub(super) fails: bool,
    pub(super) returns: Returns,
}

impl More {
    /// Whether it says nothing.
    #[inline]
    pub(super) fn is_nothing(&self) -> bool {
        *self == More::default()
    }
}

/// What leads a walk to a reported address.
pub(super) trait Lead: Evidence {
    /// The outcome that is left for the branch at an address, where the walk has
    /// arrived. `all` were the outcomes to begin with.
    fn own(&self, all: Outcomes, at: u64) -> Outcomes;
}

impl Lead for History {
    #[inline]
    fn own(&self, all: Outcomes, _: u64) -> Outcomes {
        all.last()
    }
}

/// Whether a report is the target of a jump, or an instruction on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum As {
    Target,
    Passed,
}

/// Evidence with everything that packets can say.
pub(super) struct Trail<'t> {
    outcomes: History,
    more: More,
    table: Option<Shared<'t>>,
    /// The last outcome is that of the reported address.
    own: u64,
    report: As,
    /// A return was left out after the last branch.
    returned: bool,
}

impl<'t> Trail<'t> {
    pub(super) fn new(
        outcomes: Outcomes,
        more: More,
        table: Option<Shared<'t>>,
        (own, report): (bool, As),
    ) -> Trail<'t> {
        Trail {
            outcomes: outcomes.evidence(),
            more,
            table,
            own: u64::from(own),
            report,
            returned: false,
        }
    }

    /// Branches that are left.
    #[inline]
    fn branches(&self) -> u64 {
        self.outcomes.left() + self.more.predicted + u64::from(self.more.fails)
    }

    #[inline]
    fn predict(&self, at: u64) -> bool {
        self.table.is_some_and(|table| table.predict(at))
    }
}

impl Evidence for Trail<'_> {
    #[inline]
    fn branch(&mut self, at: u64, last: bool) -> Option<bool> {
        self.returned = false;
        if let Some(taken) = self.outcomes.branch(at, last) {
            return Some(taken);
        }
        if let Some(rest) = self.more.predicted.checked_sub(1) {
            self.more.predicted = rest;
            return Some(self.predict(at));
        }
        let fails = core::mem::take(&mut self.more.fails);
        fails.then(|| !self.predict(at))
    }

    #[inline]
    fn left(&self) -> u64 {
        let returns = match self.more.returns {
            Returns::Any => 0,
            Returns::Count(count) => u64::from(count),
            // There was one at least.
            Returns::Depth(_) => u64::from(self.report == As::Passed && !self.returned),
        };
        self.branches() + returns
    }

    #[inline]
    fn peek(&self, most: u8) -> Next {
        self.outcomes.peek(most)
    }

    #[inline]
    fn skip(&mut self, outcomes: u8) {
        if !self.outcomes.is_empty() {
            self.outcomes.skip(outcomes);
        } else if let Some(rest) = self.more.predicted.checked_sub(outcomes.into()) {
            self.more.predicted = rest;
        } else {
            (self.more.predicted, self.more.fails) = (0, false);
        }
    }

    #[inline]
    fn foreseen(&self) -> (u64, bool) {
        match self.outcomes.is_empty() {
            true => (self.more.predicted, self.more.fails),
            false => (0, false),
        }
    }

    #[inline]
    fn foresee(&self, at: u64) -> bool {
        self.predict(at)
    }

    #[inline]
    fn foresees(&self, kept: Kept, runs: &[Run]) -> bool {
        let table = self.table;
        table.is_some_and(|table| table.expects_all(kept, runs))
    }

    #[inline]
    fn implied_return(&mut self, _: u64, depth: usize, _: bool) -> bool {
        if self.branches() > self.own {
            return true;
        }
        let implied = match &mut self.more.returns {
            Returns::Any => true,
            Returns::Count(count) => match count.checked_sub(1) {
                Some(rest) => {
                    *count = rest;
                    true
                }
                None => false,
            },
            Returns::Depth(reported) => {
                self.report == As::Passed || depth != usize::from(*reported)
            }
        };
        self.returned |= implied;
        implied
    }
}

impl Lead for Trail<'_> {
    fn own(&self, all: Outcomes, at: u64) -> Outcomes {
        match (self.outcomes.left(), self.more.predicted) {
            (0, 0) => Outcomes::own(true, !self.predict(at)),
            (0, _) => Outcomes::own(true, self.predict(at)),
            _ => all.last(),
        }
    }
}

/// Evidence for the instruction before a trap: a return is not implied there.
pub(super) struct BeforeTrap(pub(super) History);

impl Evidence for BeforeTrap {
    fn branch(&mut self, at: u64, last: bool) -> Option<bool> {
        self.0.branch(at, last)
    }

    fn left(&self) -> u64 {
        self.0.left()
    }

    fn implied_return(&mut self, _: u64, _: usize, _: bool) -> bool {
        false
    }
}
