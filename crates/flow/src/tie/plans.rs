//! Which accesses the instructions of runs make, each run looked at once.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::plain_access::{FORMS, FormWord};
use crate::{
    AccessKind, DataAccess, Image, Kept, Part, PlainAccesses, PlainForm, Reported, Run, SpaceId,
    Totals, Touch,
};

/// What is held back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Held {
    /// The runs of a plan, of which the last went to `next`.
    Slice { plan: u32, next: u64 },
    /// So many other runs.
    Runs(usize),
    /// An event.
    Event,
}

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

/// Accesses and runs that are kept at most; then a cache starts afresh.
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
    /// Each at the place that its number leads to.
    stores: [Store; STORES],
    plans: Vec<SlicePlan>,
    /// Runs and accesses of all plans.
    size: usize,
}

/// The slices of one store of a decoder's tables.
#[derive(Clone, Debug, Default)]
struct Store {
    number: u32,
    /// By place: the plan, counted from 1; 0 for a slice that has not come yet.
    known: Vec<u32>,
}

/// Stores that are known, a power of two. A decoder has three, with numbers in a row.
const STORES: usize = 16;

/// The accesses of all runs of a slice.
#[derive(Clone, Debug)]
pub(super) struct SlicePlan {
    pub(super) kept: Kept,
    pub(super) runs: Box<[Run]>,
    /// How many accesses there are up to the end of each run.
    pub(super) ends: Box<[u32]>,
    pub(super) expected: Box<[Expected]>,
    /// The forms of the first accesses, and those of the others.
    first: FormWord,
    others: Box<[FormWord]>,
    /// Instructions of all runs.
    pub(super) insns: u64,
    /// Each access is made, and of the kind that is expected.
    pub(super) is_exact: bool,
}

impl SlicePlan {
    fn new(code: Code<'_>, kept: Kept, runs: &[Run], plans: &mut RunPlans) -> SlicePlan {
        let (mut expected, mut ends) = (Vec::new(), Vec::new());
        for run in runs {
            expected.extend_from_slice(plans.of(code, run));
            ends.push(expected.len() as u32);
        }
        let word = |some: &[Expected]| FormWord::new(some.iter().map(|e| e.form));
        SlicePlan {
            kept,
            runs: Box::from(runs),
            ends: ends.into(),
            first: word(&expected),
            others: expected.chunks(FORMS).skip(1).map(word).collect(),
            insns: runs.iter().map(|run| u64::from(run.insns)).sum(),
            is_exact: !expected.iter().any(|e| e.failed.is_some() || e.vector),
            expected: expected.into(),
        }
    }

    /// What is in it.
    #[inline(always)]
    pub(super) const fn counted(&self) -> Totals {
        Totals {
            insns: self.insns,
            accesses: self.expected.len() as u64,
        }
    }

    /// Whether these accesses, as many as the slice has or more, begin with those of the
    /// slice.
    #[inline(always)]
    pub(super) fn fits(&self, accesses: &[PlainForm]) -> bool {
        self.first.is_alike(accesses) && (self.others.is_empty() || self.others_fit(accesses))
    }

    /// Whether those after the first do.
    #[inline(never)]
    fn others_fit(&self, accesses: &[PlainForm]) -> bool {
        let mut rest = accesses;
        self.others.iter().all(|word| {
            rest = rest.get(FORMS..).unwrap_or_default();
            word.is_alike(rest)
        })
    }
}

impl SlicePlans {
    /// The number of the plan for the slice with this name, if it has come before.
    #[inline]
    pub(super) fn find(&self, kept: Kept) -> Option<u32> {
        let store = self.stores.get(kept.store() as usize % STORES)?;
        if store.number != kept.store() {
            return None;
        }
        store.known.get(kept.index() as usize)?.checked_sub(1)
    }

    /// Whether there are so many that they should be forgotten.
    pub(super) fn is_full(&self) -> bool {
        self.size > MOST_KEPT
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
        let plan = SlicePlan::new(code, kept, runs, plans);
        self.size += plan.runs.len() + plan.expected.len();
        let number = self.plans.len() as u32;
        self.plans.push(plan);
        let index = kept.index() as usize;
        if let Some(store) = self.stores.get_mut(kept.store() as usize % STORES) {
            if store.number != kept.store() {
                store.number = kept.store();
                store.known.clear();
            }
            if store.known.len() <= index {
                store.known.resize(index + 1, 0);
            }
            if let Some(place) = store.known.get_mut(index) {
                *place = number + 1;
            }
        }
        number
    }

    /// The plan with this number.
    #[inline(always)]
    pub(super) fn get(&self, number: u32) -> Option<&SlicePlan> {
        self.plans.get(number as usize)
    }

    /// What is in the slice of the plan with this number, if its instructions make no
    /// accesses.
    #[inline(always)]
    pub(super) fn without_accesses(&self, number: u32) -> Option<Totals> {
        let plan = self.get(number)?;
        plan.expected.is_empty().then(|| plan.counted())
    }

    /// The plan of a slice that is held back; `None` if it is none.
    #[inline(always)]
    pub(super) fn of(&mut self, held: Held) -> Option<&SlicePlan> {
        match held {
            Held::Slice { plan, next } => self.plan(plan, next),
            Held::Runs(_) | Held::Event => None,
        }
    }

    /// The runs of the same.
    pub(super) fn runs_of(&self, held: Held) -> Vec<Run> {
        let Held::Slice { plan, next } = held else {
            return Vec::new();
        };
        let plan = self.plans.get(plan as usize);
        let mut runs = plan.map_or(Vec::new(), |plan| plan.runs.to_vec());
        if let Some(last) = runs.last_mut() {
            last.next = next;
        }
        runs
    }

    /// The plan with this number, of which the last run went to `next`.
    #[inline(always)]
    pub(super) fn plan(&mut self, number: u32, next: u64) -> Option<&SlicePlan> {
        let plan = self.plans.get_mut(number as usize)?;
        if let Some(last) = plan.runs.last_mut() {
            last.next = next;
        }
        Some(plan)
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
pub(super) fn are_expected(accesses: PlainAccesses<'_>, expected: &[Expected]) -> bool {
    let mut both = accesses.forms().iter().zip(expected);
    both.all(|(form, expected)| form.is_alike(expected.form))
}
