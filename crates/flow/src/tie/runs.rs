//! Runs with the accesses of their instructions.

use core::ops::ControlFlow;

use super::plans::{Expected, SlicePlan};
use crate::plain_access::in_slices;
use crate::{Consumer, DataAccess, HartId, Kept, PlainAccesses, Run};

/// Runs that come again under the same name, with the data accesses of their
/// instructions.
#[derive(Clone, Copy, Debug)]
pub struct TiedRuns<'a> {
    pub(super) plan: &'a SlicePlan,
    pub(super) accesses: Accesses<'a>,
}

/// The accesses of runs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Accesses<'a> {
    /// Each with its instruction.
    Any(&'a [DataAccess]),
    /// Those of the plan.
    Plain(PlainAccesses<'a>),
}

/// Plain accesses with the instructions that were expected to make them.
pub(super) fn with_insns(
    accesses: PlainAccesses<'_>,
    expected: &[Expected],
) -> impl Iterator<Item = DataAccess> {
    let both = accesses.iter().zip(expected);
    both.map(|(access, expected)| DataAccess {
        insn: Some(expected.insn),
        ..access
    })
}

impl<'a> TiedRuns<'a> {
    /// The name of the runs.
    #[must_use]
    #[inline]
    pub const fn kept(&self) -> Kept {
        self.plan.kept
    }

    /// The runs.
    #[must_use]
    #[inline]
    pub const fn runs(&self) -> &'a [Run] {
        &self.plan.runs
    }

    /// How many instructions all of them have.
    #[must_use]
    #[inline]
    pub const fn insns(&self) -> u64 {
        self.plan.insns
    }

    /// How many accesses all of them have.
    #[must_use]
    #[inline]
    pub const fn accesses(&self) -> usize {
        match self.accesses {
            Accesses::Any(accesses) => accesses.len(),
            Accesses::Plain(accesses) => accesses.len(),
        }
    }

    /// Gives each run to [`Consumer::runs`], and then its accesses to
    /// [`Consumer::accesses`], perhaps in several slices.
    pub fn give_to<C: Consumer + ?Sized>(&self, hart: HartId, out: &mut C) -> ControlFlow<()> {
        if self.accesses() == 0 {
            return out.kept_runs(hart, self.kept(), self.runs());
        }
        let (mut pause, mut from) = (false, 0);
        let mut plain = match self.accesses {
            Accesses::Any(_) => PlainAccesses::default(),
            Accesses::Plain(accesses) => accesses,
        };
        for (run, &end) in self.plan.runs.iter().zip(&self.plan.ends) {
            pause |= out.runs(hart, core::slice::from_ref(run)).is_break();
            let own = from..end as usize;
            from = end as usize;
            if own.is_empty() {
                continue;
            }
            match self.accesses {
                Accesses::Any(accesses) => {
                    let own = accesses.get(own).unwrap_or_default();
                    pause |= out.accesses(hart, own).is_break();
                }
                Accesses::Plain(_) => {
                    let (first, rest) = plain.split(own.len()).unwrap_or_default();
                    plain = rest;
                    let expected = self.plan.expected.get(own).unwrap_or_default();
                    in_slices(with_insns(first, expected), |own| {
                        pause |= out.accesses(hart, own).is_break();
                    });
                }
            }
        }
        match pause {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}
