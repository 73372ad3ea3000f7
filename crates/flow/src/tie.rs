//! Assigns data accesses to instructions.
//!
//! A trace reports accesses when they are made, and instructions later, many at
//! once. A decoder of such a trace gives both in the order of the trace: accesses
//! without an instruction, and a [`Mark::Sync`] at each synchronisation, where all
//! accesses before it belong to instructions before it. [`Tied`] assigns each
//! access to the next instruction that makes one of its kind and size, and gives it
//! after the run of that instruction.
//!
//! Runs that come again under the same name ([`Kept`]) are looked at once; from then
//! on the accesses of all of them are compared and given in one go. Only where they do
//! not fit is it done run by run, to find the place.
//!
//! How many accesses a vector load or store makes is not known: after one, accesses up to
//! the next synchronisation are given without an instruction.
//!
//! If an access does not fit, or one is missing, the rest up to the next
//! synchronisation is given without an instruction, after a [`DataGap`]. Where the
//! decoder has given one already, there is no second.

mod plans;
mod runs;
mod waiting;

use alloc::vec::Vec;
use core::ops::ControlFlow;

use self::plans::{Code, Held, RunPlans, SlicePlans, are_expected, assign};
pub use self::runs::TiedRuns;
use self::runs::{Accesses, with_insns};
use self::waiting::{Hart, is_sync, space_of};
use crate::order;
use crate::plain_access::in_slices;
use crate::{
    Consumer, DataAccess, DataGap, Event, HartId, Image, Kept, Mark, Part, PerHart, PlainAccesses,
    Reason, Reported, Run, Totals,
};

/// Runs and other events that wait for accesses, at most; then accesses are missing.
const MOST_HELD: usize = 1 << 16;

/// Accesses that wait for instructions, at most.
const MOST_WAITING: usize = 1 << 20;

/// The accesses and instructions of all harts that have not been brought together.
#[derive(Clone, Debug)]
pub struct Tie<'a> {
    image: &'a Image,
    reported: Reported,
    /// What is reported where accesses and instructions do not fit.
    mismatch: Reason,
    plans: RunPlans,
    slices: SlicePlans,
    harts: PerHart<Hart>,
    /// Where in the trace the events are, roughly.
    at: u64,
}

/// The state of a [`Tie`] between two messages, to be compared and to go on from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TieState {
    /// Those of which anything is known, the lowest number first.
    harts: Vec<(HartId, Hart)>,
}

/// Whether a run can be given.
enum Fit {
    /// With so many accesses, the first of those that wait.
    Yes(usize),
    /// The same, and they are plain.
    Plain,
    /// As `Yes`, up to a vector load or store.
    Vector(usize),
    /// Accesses are missing that may come.
    Later,
    No,
}

impl<'a> Tie<'a> {
    /// For a trace of the code in an image that reports such accesses; `mismatch` is
    /// the reason of the gap where they do not fit the instructions.
    #[must_use]
    pub fn new(image: &'a Image, reported: Reported, mismatch: Reason) -> Tie<'a> {
        Tie {
            image,
            reported,
            mismatch,
            plans: RunPlans::default(),
            slices: SlicePlans::default(),
            harts: PerHart::default(),
            at: 0,
        }
    }

    /// Another for the same trace, before its first event.
    #[must_use]
    pub fn another(&self) -> Tie<'a> {
        Tie::new(self.image, self.reported, self.mismatch)
    }

    /// The events that follow come from bytes of the trace after this offset.
    pub fn set_position(&mut self, at: u64) {
        self.at = at;
    }

    /// The state.
    #[must_use]
    pub fn state(&self) -> TieState {
        let mut harts = Vec::new();
        for (id, hart) in self.harts.iter() {
            let mut hart = hart.detached(&self.slices);
            hart.unpack();
            if hart != Hart::default() {
                harts.push((id, hart));
            }
        }
        order::sort_by_key(&mut harts, |(id, _)| *id);
        TieState { harts }
    }

    /// Goes on from a state of another for the same trace.
    pub fn set_state(&mut self, state: &TieState) {
        self.harts = PerHart::default();
        for (id, hart) in &state.harts {
            *self.harts.of(*id) = hart.clone();
        }
    }

    /// Whether a run waits for its accesses.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.harts.iter().any(|(_, hart)| !hart.held.is_empty())
    }

    /// A consumer of the events of the decoder that gives them to `out` with accesses
    /// assigned.
    pub fn to<C: Consumer>(&mut self, out: C) -> Tied<'_, 'a, C> {
        let counts = out.only_counts();
        Tied {
            tie: self,
            out,
            counts,
        }
    }
}

/// The consumer of a [`Tie`].
#[derive(Debug)]
pub struct Tied<'t, 'a, C> {
    tie: &'t mut Tie<'a>,
    out: C,
    /// The other consumer only counts.
    counts: bool,
}

impl<C: Consumer> Tied<'_, '_, C> {
    /// Nothing follows: what still waits is given as it is.
    pub fn finish(&mut self) {
        let harts: Vec<HartId> = self.tie.harts.iter().map(|(id, _)| id).collect();
        for id in harts {
            let hart = self.tie.harts.of(id);
            hart.sync();
            hart.hold_event(Event::Mark(Mark::Sync(0)));
            self.give_up(id);
            // Nothing follows that a pause could come before.
            let _ = self.settle(id);
        }
    }

    /// Runs with a plan.
    #[inline(never)]
    fn slice(&mut self, id: HartId, plan: u32, runs: &[Run]) -> ControlFlow<()> {
        let next = runs.last().map_or(0, |last| last.next);
        if let Some(flow) = self.give_at_once(id, plan, next) {
            return flow;
        }
        let hart = self.tie.harts.of(id);
        hart.held.push(Held::Slice { plan, next });
        if hart.held_len() > MOST_HELD {
            self.give_up(id);
        }
        self.settle(id)
    }

    /// Gives a slice whose accesses are all there and plain, as those of most are, without
    /// holding it back. `None` for others, and while something is held back.
    #[inline(always)]
    fn give_at_once(&mut self, id: HartId, number: u32, next: u64) -> Option<ControlFlow<()>> {
        let Tie {
            harts,
            slices,
            reported,
            ..
        } = &mut *self.tie;
        let hart = harts.of(id);
        // Each synchronisation is held back with its event: none is before an access.
        if !hart.held.is_empty() || hart.loose || !hart.waiting.is_empty() || !reported.each {
            return None;
        }
        let plan = slices.plan(number, next).filter(|plan| plan.is_exact)?;
        let waiting = hart.plain.all();
        let (own, _) = waiting.split(plan.expected.len())?;
        if !plan.fits(waiting.forms()) {
            return None;
        }
        let count = own.len();
        let flow = match self.counts {
            true => self.out.counted(id, plan.counted()),
            false => {
                let accesses = Accesses::Plain(own);
                self.out.tied_runs(id, &TiedRuns { plan, accesses })
            }
        };
        hart.take_plain(count);
        Some(flow)
    }

    /// Gives a run with its accesses, the first of those that wait.
    #[inline]
    fn give(&mut self, id: HartId, run: &Run, count: usize) -> ControlFlow<()> {
        let mut flow = self.out.runs(id, core::slice::from_ref(run));
        if count > 0 {
            let hart = self.tie.harts.of(id);
            let accesses = hart.waiting.first(count);
            flow = both(flow, self.out.accesses(id, accesses));
            hart.take(count);
        }
        flow
    }

    /// The same where all of its accesses are plain.
    fn give_plain(&mut self, id: HartId, run: &Run) -> ControlFlow<()> {
        let Tie {
            harts,
            plans,
            image,
            reported,
            ..
        } = &mut *self.tie;
        let (hart, out) = (harts.of(id), &mut self.out);
        let code = Code {
            image,
            space: hart.space,
            reported,
        };
        let expected = plans.of(code, run);
        let plain = hart.plain.first(expected.len());
        let mut flow = out.runs(id, core::slice::from_ref(run));
        in_slices(with_insns(plain, expected), |own| {
            flow = both(flow, out.accesses(id, own));
        });
        hart.take_plain(expected.len());
        flow
    }

    #[cold]
    fn mismatch(&mut self, id: HartId, run: &Run) -> ControlFlow<()> {
        let flow = self.out.event(id, &Event::Run(*run));
        let flow = both(flow, self.gap(id, run.start));
        self.loosen(id);
        flow
    }

    /// Accesses are missing or do not fit, unless that is known already.
    fn gap(&mut self, id: HartId, value: u64) -> ControlFlow<()> {
        if self.tie.harts.of(id).has_gap() {
            return ControlFlow::Continue(());
        }
        let gap = DataGap {
            at: self.tie.at,
            reason: Reason {
                value,
                ..self.tie.mismatch
            },
        };
        self.out.event(id, &Event::DataGap(gap))
    }

    /// Accesses up to the next synchronisation have no instruction.
    fn loosen(&mut self, id: HartId) {
        self.tie.harts.of(id).loose = true;
        self.give_loose(id);
    }

    /// Gives the accesses that wait, up to a synchronisation, without an
    /// instruction.
    fn give_loose(&mut self, id: HartId) {
        let hart = self.tie.harts.of(id);
        let available = hart.available();
        hart.unpack();
        let mut count = 0;
        for access in hart.waiting.first_mut(available) {
            if matches!(access.part, Part::Request(_)) {
                break;
            }
            access.insn = None;
            count += 1;
        }
        if count > 0 {
            // A pause can wait for the next event.
            let _ = self.out.accesses(id, hart.waiting.first(count));
            hart.take(count);
        }
    }

    /// The responses that are missing will not come, nor will the accesses of the
    /// run that waits.
    #[cold]
    fn give_up(&mut self, id: HartId) {
        self.give_up_requests(id, usize::MAX);
        let _ = self.settle(id);
        let Tie { harts, slices, .. } = &mut *self.tie;
        let hart = harts.of(id);
        hart.detach_first(slices);
        if let Some(&Held::Runs(len)) = hart.held.front()
            && let Some(&run) = hart.runs.first(1).first()
        {
            hart.runs.drop(1);
            let _ = self.mismatch(id, &run);
            self.tie.harts.of(id).leave_runs(len - 1);
        }
    }

    /// Gives what was held back, as far as accesses are there.
    fn settle(&mut self, id: HartId) -> ControlFlow<()> {
        let mut flow = ControlFlow::Continue(());
        loop {
            flow = both(flow, self.settle_slices(id));
            let hart = self.tie.harts.of(id);
            match hart.held.front().copied() {
                // It waits.
                None | Some(Held::Slice { .. }) => return flow,
                Some(Held::Runs(len)) => {
                    let (given, more) = self.settle_runs(id, len);
                    flow = both(flow, more);
                    self.tie.harts.of(id).leave_runs(len - given);
                    if given < len {
                        return flow;
                    }
                }
                Some(Held::Event) => {
                    if let Some(&event) = hart.events.front() {
                        flow = both(flow, self.pass(id, &event));
                    }
                    let hart = self.tie.harts.of(id);
                    hart.events.pop_front();
                    hart.held.drop(1);
                }
            }
        }
    }

    /// Gives slices that are held back first, as far as their accesses are there. One
    /// that must be looked at run by run has no plan afterwards.
    fn settle_slices(&mut self, id: HartId) -> ControlFlow<()> {
        let hart = self.tie.harts.of(id);
        if hart.loose || !self.tie.reported.each {
            return self.give_slices(id);
        }
        match hart.waiting.is_empty() {
            true => self.settle_plain(id),
            false => self.settle_any(id),
        }
    }

    /// The same where accesses are given without an instruction.
    #[cold]
    fn give_slices(&mut self, id: HartId) -> ControlFlow<()> {
        let Tie { harts, slices, .. } = &mut *self.tie;
        let hart = harts.of(id);
        let (mut flow, mut given) = (ControlFlow::Continue(()), 0);
        for held in hart.held.all() {
            let Some(plan) = slices.of(*held) else {
                break;
            };
            flow = both(flow, self.out.kept_runs(id, plan.kept, &plan.runs));
            given += 1;
        }
        hart.held.drop(given);
        flow
    }

    /// The same where all accesses that wait are plain.
    fn settle_plain(&mut self, id: HartId) -> ControlFlow<()> {
        let Tie { harts, slices, .. } = &mut *self.tie;
        let hart = harts.of(id);
        let mut flow = ControlFlow::Continue(());
        let is_each = if self.counts {
            let (all, is_each) = hart.count_fitting(slices);
            if all != Totals::default() {
                flow = self.out.counted(id, all);
            }
            is_each
        } else {
            hart.give_fitting(slices, |plan, own| {
                let accesses = Accesses::Plain(own);
                flow = both(flow, self.out.tied_runs(id, &TiedRuns { plan, accesses }));
            })
        };
        if is_each {
            hart.detach_first(slices);
        }
        flow
    }

    /// The same where some are not.
    #[cold]
    fn settle_any(&mut self, id: HartId) -> ControlFlow<()> {
        let Tie { harts, slices, .. } = &mut *self.tie;
        let hart = harts.of(id);
        let available = hart.available();
        let (mut flow, mut given, mut used) = (ControlFlow::Continue(()), 0, 0);
        let is_each = 'slices: {
            for held in hart.held.all() {
                let Some(plan) = slices.of(*held) else {
                    break;
                };
                let count = plan.expected.len();
                if !plan.is_exact || available - used < count {
                    break 'slices !plan.is_exact || !hart.syncs.is_empty();
                }
                let own = hart.waiting.part_mut(used, count);
                if !assign(&plan.expected, own) {
                    break 'slices true;
                }
                let accesses = Accesses::Any(own);
                flow = both(flow, self.out.tied_runs(id, &TiedRuns { plan, accesses }));
                used += count;
                given += 1;
            }
            false
        };
        hart.held.drop(given);
        hart.take(used);
        if is_each {
            hart.detach_first(slices);
        }
        flow
    }

    /// Gives so many runs that were held back, as far as their accesses are there: how
    /// many of them.
    fn settle_runs(&mut self, id: HartId, len: usize) -> (usize, ControlFlow<()>) {
        let mut flow = ControlFlow::Continue(());
        for given in 0..len {
            let Some(&run) = self.tie.harts.of(id).runs.first(1).first() else {
                break;
            };
            flow = match self.tie.fit(id, &run) {
                Fit::Yes(count) => both(flow, self.give(id, &run, count)),
                Fit::Plain => both(flow, self.give_plain(id, &run)),
                Fit::Vector(count) => {
                    let flow = both(flow, self.give(id, &run, count));
                    self.loosen(id);
                    flow
                }
                Fit::Later => return (given, flow),
                Fit::No => both(flow, self.mismatch(id, &run)),
            };
            self.tie.harts.of(id).runs.drop(1);
        }
        (len, flow)
    }

    /// An event other than a run or an access, in its place.
    fn pass(&mut self, id: HartId, event: &Event) -> ControlFlow<()> {
        if !is_sync(event) {
            if let Some(space) = space_of(self.tie.image, event) {
                self.tie.harts.of(id).space = space;
            }
            if let Event::DataGap(_) = event {
                self.tie.harts.of(id).gap = true;
            }
            return self.out.event(id, event);
        }
        let hart = self.tie.harts.of(id);
        let available = hart.available();
        self.give_up_requests(id, available);
        let hart = self.tie.harts.of(id);
        let was_loose = hart.loose || !self.tie.reported.each;
        self.give_loose(id);
        let mut flow = ControlFlow::Continue(());
        if available > 0 && !was_loose && !matches!(event, Event::Gap(_)) {
            flow = self.gap(id, 0);
        }
        let hart = self.tie.harts.of(id);
        hart.syncs.pop_front();
        hart.loose = false;
        hart.gap = false;
        match event {
            // It has done its duty.
            Event::Mark(Mark::Sync(_)) => flow,
            event => self.out.event(id, event),
        }
    }

    /// Requests among the first so many accesses are not answered.
    fn give_up_requests(&mut self, id: HartId, count: usize) {
        let hart = self.tie.harts.of(id);
        // Plain ones are no requests.
        for access in hart.waiting.all_mut().iter_mut().take(count) {
            access.part = Part::Whole;
        }
    }

    /// One access or a part of one.
    fn access(&mut self, id: HartId, data: &DataAccess) -> ControlFlow<()> {
        let hart = self.tie.harts.of(id);
        match data.part {
            Part::Response(_) => hart.answer(data),
            Part::Whole | Part::Request(_) => {
                hart.add(core::slice::from_ref(data));
                if hart.all() > MOST_WAITING {
                    // No instructions for them: they cannot be kept for ever.
                    let available = hart.available();
                    self.give_up_requests(id, available);
                    self.loosen(id);
                    return ControlFlow::Continue(());
                }
            }
        }
        if (hart.loose || !self.tie.reported.each) && hart.held.is_empty() {
            self.give_loose(id);
        }
        match self.tie.harts.of(id).held.is_empty() {
            true => ControlFlow::Continue(()),
            false => self.settle(id),
        }
    }
}

/// A break if either is one.
#[inline]
const fn both(one: ControlFlow<()>, other: ControlFlow<()>) -> ControlFlow<()> {
    match one {
        ControlFlow::Break(()) => one,
        ControlFlow::Continue(()) => other,
    }
}

impl Tie<'_> {
    /// Finds the accesses of a run among those that wait, if they are all there.
    fn fit(&mut self, id: HartId, run: &Run) -> Fit {
        let hart = self.harts.of(id);
        if hart.loose || !self.reported.each {
            return Fit::Yes(0);
        }
        let code = Code {
            image: self.image,
            space: hart.space,
            reported: &self.reported,
        };
        let expected = self.plans.of(code, run);
        if expected.is_empty() {
            return Fit::Yes(0);
        }
        let available = hart.available();
        if hart.waiting.is_empty() {
            let count = available.min(expected.len());
            let fits = are_expected(hart.plain.first(count), expected);
            match expected.get(count) {
                None if fits => return Fit::Plain,
                Some(next) if fits && next.is_due() && hart.syncs.is_empty() => return Fit::Later,
                _ => {}
            }
        }
        hart.unpack();
        let mut waiting = hart.waiting.first_mut(available).iter_mut();
        let mut next = waiting.next();
        let mut used = 0;
        for expected in expected {
            if expected.vector {
                return Fit::Vector(used);
            }
            match &mut next {
                Some(data) if expected.fits(data) => {
                    if matches!(data.part, Part::Request(_)) {
                        return Fit::Later;
                    }
                    data.insn = Some(expected.insn);
                    used += 1;
                    next = waiting.next();
                }
                _ if expected.optional => {}
                None if hart.syncs.is_empty() => return Fit::Later,
                _ => return Fit::No,
            }
        }
        Fit::Yes(used)
    }

    /// The plan for a slice that has not come before: its number.
    #[cold]
    fn examine(&mut self, id: HartId, kept: Kept, runs: &[Run]) -> u32 {
        if self.slices.is_full() {
            self.forget_slices();
        }
        let code = Code {
            image: self.image,
            space: self.harts.of(id).space_after(self.image),
            reported: &self.reported,
        };
        self.slices.examine(code, kept, runs, &mut self.plans)
    }

    /// Forgets the plans of slices.
    #[cold]
    fn forget_slices(&mut self) {
        for (_, hart) in self.harts.iter_mut() {
            *hart = hart.detached(&self.slices);
        }
        self.slices = SlicePlans::default();
    }
}

impl<C: Consumer> Consumer for Tied<'_, '_, C> {
    fn accesses(&mut self, id: HartId, accesses: &[DataAccess]) -> ControlFlow<()> {
        let hart = self.tie.harts.of(id);
        // The usual case: they wait for their instructions.
        let whole = |access: &DataAccess| access.part == Part::Whole;
        if !hart.loose
            && self.tie.reported.each
            && hart.all() + accesses.len() <= MOST_WAITING
            && accesses.iter().all(whole)
        {
            hart.add(accesses);
            return match hart.held.is_empty() {
                true => ControlFlow::Continue(()),
                false => self.settle(id),
            };
        }
        let mut flow = ControlFlow::Continue(());
        for access in accesses {
            flow = both(flow, self.access(id, access));
        }
        flow
    }

    fn plain_accesses(&mut self, id: HartId, accesses: PlainAccesses<'_>) -> ControlFlow<()> {
        let hart = self.tie.harts.of(id);
        if !hart.loose && self.tie.reported.each && hart.all() + accesses.len() <= MOST_WAITING {
            hart.add_plain(accesses);
            return match hart.held.is_empty() {
                true => ControlFlow::Continue(()),
                false => self.settle(id),
            };
        }
        let mut flow = ControlFlow::Continue(());
        for access in accesses.iter() {
            flow = both(flow, self.access(id, &access));
        }
        flow
    }

    fn event(&mut self, id: HartId, event: &Event) -> ControlFlow<()> {
        match event {
            Event::Run(run) => self.runs(id, core::slice::from_ref(run)),
            Event::Access(data) => self.access(id, data),
            event => {
                let hart = self.tie.harts.of(id);
                if is_sync(event) {
                    hart.sync();
                }
                if hart.held.is_empty() {
                    return self.pass(id, event);
                }
                hart.hold_event(*event);
                if hart.held_len() > MOST_HELD {
                    self.give_up(id);
                }
                self.settle(id)
            }
        }
    }

    fn runs(&mut self, id: HartId, runs: &[Run]) -> ControlFlow<()> {
        let hart = self.tie.harts.of(id);
        hart.hold_runs(runs);
        if hart.held_len() > MOST_HELD {
            self.give_up(id);
        }
        self.settle(id)
    }

    #[inline]
    fn kept_runs(&mut self, id: HartId, kept: Kept, runs: &[Run]) -> ControlFlow<()> {
        let Some(plan) = self.tie.slices.find(kept) else {
            let plan = self.tie.examine(id, kept, runs);
            return self.slice(id, plan, runs);
        };
        if self.counts
            && let Some(counted) = self.tie.slices.without_accesses(plan)
        {
            // Nothing to wait for, and it does not matter when it is counted.
            return self.out.counted(id, counted);
        }
        let hart = self.tie.harts.of(id);
        if hart.held.is_empty() || hart.held_len() >= MOST_HELD {
            return self.slice(id, plan, runs);
        }
        // It waits, as those before it do.
        let next = runs.last().map_or(0, |last| last.next);
        hart.held.push(Held::Slice { plan, next });
        ControlFlow::Continue(())
    }

    fn keeps(&self) -> bool {
        true
    }

    fn looks_at_values(&self) -> bool {
        self.out.looks_at_values()
    }
}

#[cfg(test)]
mod tests;
