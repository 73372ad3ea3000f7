//! Which accesses the instructions of runs make, each run looked at once.

use alloc::vec::Vec;

use super::runs::{Accesses, TiedRuns};
use crate::{
    AccessKind, DataAccess, Image, Kept, Part, PlainAccess, PlainForm, Reported, Run, SpaceId,
    Touch,
};

/// An access that an instruction of a run makes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    /// Index of the instruction in its run.
    pub(super) insn: u32,
    kind: AccessKind,
    /// The same with the size, of one load or store.
    form: PlainForm,
    /// What it is instead if a store-conditional or a compare-and-swap fails.
    failed: Option<AccessKind>,
    size: u8,
    /// It may be missing: only one of the two kinds is reported.
    pub(super) optional: bool,
    /// A vector load or store: any number of accesses of any size.
    pub(super) vector: bool,
}

impl Expected {
    /// Whether there must be one access for it.
    pub(super) const fn is_due(&self) -> bool {
        !self.optional && !self.vector
    }

    #[inline]
    pub(super) fn fits(&self, data: &DataAccess) -> bool {
        let access = &data.access;
        // A compare-and-swap that failed is a load, unless the trace has a kind for it.
        let failed = match access.kind {
            AccessKind::CompareSwapFailure => AccessKind::Load,
            kind => kind,
        };
        access.size == self.size && (access.kind == self.kind || self.failed == Some(failed))
    }
}

/// Where the code is, and which of its accesses a trace reports.
#[derive(Clone, Copy, Debug)]
pub(super) struct Code<'a> {
    pub(super) image: &'a Image,
    pub(super) space: SpaceId,
    pub(super) reported: &'a Reported,
}

impl Code<'_> {
    /// Adds the accesses of a run.
    fn expect(&self, run: &Run, to: &mut Vec<Expected>) {
        let reported = self.reported;
        let insns = self.image.insns(self.space, run.start, run.insns.into());
        for ((_, fetched), insn) in insns.zip(0..) {
            let touch = Touch::of(fetched.bits, fetched.isa);
            let vector = matches!(touch, Touch::Vector { .. });
            let (kind, failed, size) = match touch {
                Touch::Nothing => continue,
                Touch::Accesses { kind, size, .. } => (kind, None, size),
                Touch::Conditional { size } => (
                    AccessKind::Store,
                    Some(AccessKind::ConditionalStoreFailure),
                    size,
                ),
                Touch::Swap { size, .. } => (AccessKind::AtomicSwap, Some(AccessKind::Load), size),
                Touch::Vector { kind } => (kind, None, 0),
            };
            let sizes = if vector { 0..8 } else { size..size + 1 };
            let done = sizes.into_iter().any(|size| reported.has(kind, size));
            let mut not_done = failed.is_some_and(|kind| reported.has(kind, size));
            let possible = done || not_done;
            if let Touch::Swap { .. } = touch
                && reported.failed_swaps
            {
                not_done = reported.has(AccessKind::CompareSwapFailure, size);
            }
            if !possible && !not_done {
                continue;
            }
            let expected = Expected {
                insn,
                kind,
                form: match vector {
                    true => PlainForm::ABSENT,
                    false => PlainForm::of(kind, size),
                },
                failed,
                size,
                optional: failed.is_some() && !(done && not_done),
                vector,
            };
            let count = touch.count();
            to.extend(core::iter::repeat_n(expected, count.into()));
        }
    }
}

/// Accesses, or runs, that are kept at most; then a cache starts afresh.
const MOST_KEPT: usize = 1 << 18;

/// The accesses of single runs: a cache of fixed size.
#[derive(Clone, Debug, Default)]
pub(super) struct RunPlans {
    slots: Vec<Slot>,
    expected: Vec<Expected>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    start: u64,
    insns: u32,
    space: SpaceId,
    from: u32,
    len: u32,
}

/// Slots, a power of two.
const SLOTS: usize = 1 << 13;

impl Slot {
    /// No run has no instructions.
    const VACANT: Slot = Slot {
        start: 0,
        insns: 0,
        space: SpaceId::FIRST,
        from: 0,
        len: 0,
    };

    const fn index(run: &Run) -> usize {
        let key = run.start ^ (run.insns as u64) << 20;
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize & (SLOTS - 1)
    }
}

impl RunPlans {
    /// The accesses that the instructions of a run make, in order.
    pub(super) fn of(&mut self, code: Code<'_>, run: &Run) -> &[Expected] {
        let found = self.slots.get(Slot::index(run)).copied();
        let same = |slot: &Slot| {
            slot.start == run.start && slot.insns == run.insns && slot.space == code.space
        };
        let slot = match found.filter(same) {
            Some(slot) => slot,
            None => self.examine(code, run),
        };
        let from = slot.from as usize;
        let expected = self.expected.get(from..from + slot.len as usize);
        expected.unwrap_or_default()
    }

    #[cold]
    fn examine(&mut self, code: Code<'_>, run: &Run) -> Slot {
        if self.slots.is_empty() || self.expected.len() > MOST_KEPT {
            self.slots.clear();
            self.slots.resize(SLOTS, Slot::VACANT);
            self.expected.clear();
        }
        let from = self.expected.len() as u32;
        code.expect(run, &mut self.expected);
        let slot = Slot {
            start: run.start,
            insns: run.insns,
            space: code.space,
            from,
            len: self.expected.len() as u32 - from,
        };
        if let Some(place) = self.slots.get_mut(Slot::index(run)) {
            *place = slot;
        }
        slot
    }
}

/// The accesses of slices of runs, by the names of the slices.
#[derive(Clone, Debug, Default)]
pub(super) struct SlicePlans {
    stores: Vec<Store>,
    plans: Vec<SlicePlan>,
    /// The runs of all slices, and how many accesses of its slice there are up to the end
    /// of each.
    runs: Vec<Run>,
    ends: Vec<u32>,
    expected: Vec<Expected>,
}

/// The slices of one store of a decoder's tables.
#[derive(Clone, Debug)]
struct Store {
    number: u32,
    /// By place: the plan, counted from 1; 0 for a slice that has not come yet.
    known: Vec<u32>,
}

/// The accesses of all runs of a slice.
#[derive(Clone, Copy, Debug)]
struct SlicePlan {
    kept: Kept,
    /// In the list of all accesses.
    from: u32,
    count: u32,
    /// In the list of all runs.
    first: u32,
    len: u32,
    /// Each access is made, and of the kind that is expected.
    is_exact: bool,
}

/// Stores that are known. A decoder has three.
const MOST_STORES: usize = 16;

impl SlicePlans {
    /// The number of the plan for the slice with this name, if it has come before.
    #[inline]
    pub(super) fn find(&self, kept: Kept) -> Option<u32> {
        let store = self.stores.iter().find(|s| s.number == kept.store())?;
        store.known.get(kept.index() as usize)?.checked_sub(1)
    }

    /// These runs, which have this name, with the first of these accesses, and how many they
    /// are. `None` if the runs have not come before, or have others.
    #[inline(always)]
    pub(super) fn exact<'a>(
        &'a self,
        kept: Kept,
        runs: &'a [Run],
        plain: &'a [PlainAccess],
    ) -> Option<(TiedRuns<'a>, usize)> {
        let plan = self.plans.get(self.find(kept)? as usize)?;
        let (from, count) = (plan.from as usize, plan.count as usize);
        let expected = self.expected.get(from..from + count)?;
        let own = plain.get(..count)?;
        if !plan.is_exact || !are_expected(own, expected) {
            return None;
        }
        let first = plan.first as usize;
        let tied = TiedRuns {
            kept,
            runs,
            ends: self.ends.get(first..first + plan.len as usize)?,
            accesses: Accesses::Plain(own, expected),
        };
        Some((tied, count))
    }

    /// Whether there are so many that they should be forgotten.
    pub(super) fn is_full(&self) -> bool {
        self.expected.len().max(self.runs.len()) > MOST_KEPT
    }

    /// Makes a plan of those of the runs: its number.
    #[cold]
    pub(super) fn examine(
        &mut self,
        code: Code<'_>,
        kept: Kept,
        runs: &[Run],
        plans: &mut RunPlans,
    ) -> u32 {
        let (from, first) = (self.expected.len(), self.runs.len());
        for run in runs {
            self.expected.extend_from_slice(plans.of(code, run));
            self.ends.push((self.expected.len() - from) as u32);
        }
        self.runs.extend_from_slice(runs);
        let expected = self.expected.get(from..).unwrap_or_default();
        let number = self.plans.len() as u32;
        self.plans.push(SlicePlan {
            kept,
            from: from as u32,
            count: expected.len() as u32,
            first: first as u32,
            len: runs.len() as u32,
            is_exact: !expected.iter().any(|e| e.failed.is_some() || e.vector),
        });
        let (known, index) = (self.known(kept.store()), kept.index() as usize);
        if known.len() <= index {
            known.resize(index + 1, 0);
        }
        if let Some(place) = known.get_mut(index) {
            *place = number + 1;
        }
        number
    }

    /// The slices of a store by place.
    fn known(&mut self, number: u32) -> &mut Vec<u32> {
        let at = match self.stores.iter().position(|s| s.number == number) {
            Some(at) => at,
            None => {
                if self.stores.len() == MOST_STORES {
                    self.stores.remove(0);
                }
                let known = Vec::new();
                self.stores.push(Store { number, known });
                self.stores.len() - 1
            }
        };
        #[allow(clippy::indexing_slicing)] // found, or just added
        &mut self.stores[at].known
    }

    /// The runs of a plan, of which the last went to `next`, and their accesses.
    #[inline(always)]
    pub(super) fn slice(&mut self, plan: u32, next: u64) -> Option<Slice<'_>> {
        let plan = self.plans.get(plan as usize)?;
        let first = plan.first as usize;
        let all = first..first + plan.len as usize;
        let runs = self.runs.get_mut(all.clone())?;
        if let Some(last) = runs.last_mut() {
            last.next = next;
        }
        let from = plan.from as usize;
        Some(Slice {
            kept: plan.kept,
            runs,
            ends: self.ends.get(all)?,
            expected: self.expected.get(from..from + plan.count as usize)?,
            is_exact: plan.is_exact,
        })
    }
}

/// Runs with the accesses that their instructions make.
pub(super) struct Slice<'a> {
    pub(super) kept: Kept,
    pub(super) runs: &'a [Run],
    /// How many accesses there are up to the end of each run.
    ends: &'a [u32],
    pub(super) expected: &'a [Expected],
    /// Each access is made, and of the kind that is expected.
    pub(super) is_exact: bool,
}

impl<'a> Slice<'a> {
    /// The runs with these accesses.
    #[inline(always)]
    pub(super) const fn with(&self, accesses: Accesses<'a>) -> TiedRuns<'a> {
        TiedRuns {
            kept: self.kept,
            runs: self.runs,
            ends: self.ends,
            accesses,
        }
    }
}

/// Gives accesses, as many as are expected, their instructions, if all of them are the
/// expected ones and complete.
pub(super) fn assign(expected: &[Expected], accesses: &mut [DataAccess]) -> bool {
    for (expected, data) in expected.iter().zip(accesses) {
        let access = &data.access;
        let same = access.kind == expected.kind && access.size == expected.size;
        if !same || data.part != Part::Whole {
            return false;
        }
        data.insn = Some(expected.insn);
    }
    true
}

/// Whether accesses are the expected ones, as far as there are as many.
#[inline(always)]
pub(super) fn are_expected(accesses: &[PlainAccess], expected: &[Expected]) -> bool {
    let mut both = accesses.iter().zip(expected);
    both.all(|(access, expected)| access.form.difference(expected.form) == 0)
}
