//! Runs with the accesses of their instructions.

use core::ops::ControlFlow;

use super::plans::Expected;
use crate::plain_access::in_slices;
use crate::{Consumer, DataAccess, HartId, Kept, PlainAccess, Run};

/// Runs that come again under the same name, with the data accesses of their
/// instructions.
#[derive(Clone, Copy, Debug)]
pub struct TiedRuns<'a> {
    pub(super) kept: Kept,
    pub(super) runs: &'a [Run],
    /// How many accesses there are up to the end of each run.
    pub(super) ends: &'a [u32],
    pub(super) accesses: Accesses<'a>,
}

/// The accesses of runs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Accesses<'a> {
    /// Each with its instruction.
    Any(&'a [DataAccess]),
    /// Loads and stores, and as many others with their instructions.
    Plain(&'a [PlainAccess], &'a [Expected]),
}

impl<'a> TiedRuns<'a> {
    /// The name of the runs.
    #[must_use]
    #[inline]
    pub const fn kept(&self) -> Kept {
        self.kept
    }

    /// The runs.
    #[must_use]
    #[inline]
    pub const fn runs(&self) -> &'a [Run] {
        self.runs
    }

    /// How many accesses all of them have.
    #[must_use]
    #[inline]
    pub const fn accesses(&self) -> usize {
        match self.accesses {
            Accesses::Any(accesses) => accesses.len(),
            Accesses::Plain(accesses, _) => accesses.len(),
        }
    }

    /// Gives each run to [`Consumer::runs`], and then its accesses to
    /// [`Consumer::accesses`], perhaps in several slices.
    pub fn give_to<C: Consumer + ?Sized>(&self, hart: HartId, out: &mut C) -> ControlFlow<()> {
        let (mut pause, mut from) = (false, 0);
        for (run, &end) in self.runs.iter().zip(self.ends) {
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
                Accesses::Plain(accesses, expected) => {
                    let plain = accesses.get(own.clone()).unwrap_or_default();
                    let expected = expected.get(own).unwrap_or_default();
                    let accesses = plain.iter().zip(expected);
                    in_slices(
                        accesses.map(|(plain, e)| plain.access(Some(e.insn))),
                        |own| {
                            pause |= out.accesses(hart, own).is_break();
                        },
                    );
                }
            }
        }
        match pause {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}
