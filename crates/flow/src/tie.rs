//! Assigns data accesses to instructions.
//!
//! A trace reports accesses when they are made, and instructions later, many at
//! once. A decoder of such a trace gives both in the order of the trace: accesses
//! without an instruction, and a [`Mark::Sync`] at each synchronisation, where all
//! accesses before it belong to instructions before it. [`Tied`] assigns each
//! access to the next instruction that makes one of its kind and size, and gives it
//! after the run of that instruction.
//!
//! If an access does not fit, or one is missing, the rest up to the next
//! synchronisation is given without an instruction, after a [`DataGap`]. Where the
//! decoder has given one already, there is no second.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::ControlFlow;

use crate::{
    AccessKind, Consumer, DataAccess, DataGap, Event, HartId, Image, Mark, Part, PerHart, Reason,
    Reported, Run, SpaceId, Touch,
};

/// Runs and other events that wait for accesses, at most; then accesses are missing.
const MOST_HELD: usize = 1 << 16;

/// Accesses that wait for instructions, at most.
const MOST_WAITING: usize = 1 << 20;

/// Accesses that have left, at which the others are moved to the front.
const COMPACT: usize = 1 << 12;

/// The accesses and instructions of all harts that have not been brought together.
#[derive(Clone, Debug)]
pub struct Tie<'a> {
    image: &'a Image,
    reported: Reported,
    /// What is reported where accesses and instructions do not fit.
    mismatch: Reason,
    plans: Plans,
    harts: PerHart<Hart>,
    /// Where in the trace the events are, roughly.
    at: u64,
    /// Accesses of the run that is given next.
    ready: usize,
}

/// What is known of one hart.
#[derive(Clone, Debug, Default, PartialEq)]
struct Hart {
    space: SpaceId,
    /// Accesses that no instruction has taken, from `head` on.
    waiting: Vec<DataAccess>,
    head: usize,
    /// Accesses that have left.
    taken: u64,
    /// Synchronisations: how many accesses came before each.
    syncs: VecDeque<u64>,
    /// Events that come after a run whose accesses are not there yet, that run first.
    held: VecDeque<Event>,
    /// Accesses are given without an instruction until the next synchronisation.
    loose: bool,
    /// A gap was given since the last synchronisation.
    gap: bool,
}

/// Whether a run can be given.
enum Fit {
    Yes,
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
            plans: Plans::default(),
            harts: PerHart::default(),
            at: 0,
            ready: 0,
        }
    }

    /// Another for the same trace, before its first event.
    #[must_use]
    pub fn another(&self) -> Tie<'a> {
        Tie::new(self.image, self.reported, self.mismatch)
    }

    /// What the trace reports, which a support packet may change.
    pub fn set_reported(&mut self, reported: Reported) {
        if reported != self.reported {
            self.reported = reported;
            self.plans = Plans::default();
        }
    }

    /// The events that follow come from bytes of the trace after this offset.
    pub fn set_position(&mut self, at: u64) {
        self.at = at;
    }

    /// Whether a run waits for its accesses.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.harts.iter().any(|(_, hart)| !hart.held.is_empty())
    }

    /// A consumer of the events of the decoder that gives them to `out` with accesses
    /// assigned.
    pub fn to<C: Consumer>(&mut self, out: C) -> Tied<'_, 'a, C> {
        Tied { tie: self, out }
    }
}

/// The consumer of a [`Tie`].
#[derive(Debug)]
pub struct Tied<'t, 'a, C> {
    tie: &'t mut Tie<'a>,
    out: C,
}

impl<C: Consumer> Tied<'_, '_, C> {
    /// Nothing follows: what still waits is given as it is.
    pub fn finish(&mut self) {
        let harts: Vec<HartId> = self.tie.harts.iter().map(|(id, _)| id).collect();
        for id in harts {
            let hart = self.tie.harts.of(id);
            hart.sync();
            hart.held.push_back(Event::Mark(Mark::Sync(0)));
            self.give_up(id);
            // Nothing follows that a pause could come before.
            let _ = self.settle(id);
        }
    }

    /// One run: gives it with its accesses, or keeps it until they are there.
    fn run(&mut self, id: HartId, run: &Run) -> ControlFlow<()> {
        let hart = self.tie.harts.of(id);
        if !hart.held.is_empty() {
            return self.hold(id, Event::Run(*run));
        }
        match self.tie.fit(id, run) {
            Fit::Yes => self.give(id, run),
            Fit::Later => self.hold(id, Event::Run(*run)),
            Fit::No => {
                let flow = self.mismatch(id, run);
                self.loosen(id);
                flow
            }
        }
    }

    /// A run and its accesses, which [`Tie::fit`] has taken out.
    #[inline]
    fn give(&mut self, id: HartId, run: &Run) -> ControlFlow<()> {
        let mut flow = self.out.runs(id, core::slice::from_ref(run));
        let count = core::mem::take(&mut self.tie.ready);
        if count > 0 {
            let hart = self.tie.harts.of(id);
            if self.out.accesses(id, hart.first(count)).is_break() {
                flow = ControlFlow::Break(());
            }
            hart.drop(count);
        }
        flow
    }

    #[cold]
    fn mismatch(&mut self, id: HartId, run: &Run) -> ControlFlow<()> {
        let flow = self.out.event(id, &Event::Run(*run));
        match self.gap(id, run.start) {
            ControlFlow::Break(()) => ControlFlow::Break(()),
            ControlFlow::Continue(()) => flow,
        }
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
        let all = hart.available();
        let waiting = hart.waiting.get_mut(hart.head..hart.head + all);
        let mut count = 0;
        for access in waiting.unwrap_or_default() {
            if matches!(access.part, Part::Request(_)) {
                break;
            }
            access.insn = None;
            count += 1;
        }
        if count > 0 {
            // A pause can wait for the next event.
            let _ = self.out.accesses(id, hart.first(count));
            hart.drop(count);
        }
    }

    #[cold]
    fn hold(&mut self, id: HartId, event: Event) -> ControlFlow<()> {
        let hart = self.tie.harts.of(id);
        hart.held.push_back(event);
        if hart.held.len() > MOST_HELD {
            self.give_up(id);
        }
        self.settle(id)
    }

    /// The responses that are missing will not come, nor will the accesses of the
    /// run that waits.
    #[cold]
    fn give_up(&mut self, id: HartId) {
        let hart = self.tie.harts.of(id);
        for access in &mut hart.waiting {
            access.part = Part::Whole;
        }
        let _ = self.settle(id);
        if let Some(&Event::Run(run)) = self.tie.harts.of(id).held.front() {
            let _ = self.mismatch(id, &run);
            self.loosen(id);
            self.tie.harts.of(id).held.pop_front();
        }
    }

    /// Gives what was held back, as far as accesses are there.
    fn settle(&mut self, id: HartId) -> ControlFlow<()> {
        let mut flow = ControlFlow::Continue(());
        while let Some(&event) = self.tie.harts.of(id).held.front() {
            let given = match event {
                Event::Run(run) => match self.tie.fit(id, &run) {
                    Fit::Yes => self.give(id, &run),
                    Fit::Later => break,
                    Fit::No => {
                        let flow = self.mismatch(id, &run);
                        self.loosen(id);
                        flow
                    }
                },
                event => self.pass(id, &event),
            };
            if given.is_break() {
                flow = ControlFlow::Break(());
            }
            self.tie.harts.of(id).held.pop_front();
        }
        flow
    }

    /// An event other than a run or an access, in its place.
    fn pass(&mut self, id: HartId, event: &Event) -> ControlFlow<()> {
        if !is_sync(event) {
            if let Event::Context(owner) = event {
                let context = owner.context;
                let space = context.map_or(SpaceId::FIRST, |c| self.tie.image.space_of(c));
                self.tie.harts.of(id).space = space;
            }
            if let Event::DataGap(_) = event {
                self.tie.harts.of(id).gap = true;
            }
            return self.out.event(id, event);
        }
        self.give_up_requests(id);
        let hart = self.tie.harts.of(id);
        let left = hart.available() > 0;
        let was_loose = hart.loose || !self.tie.reported.each;
        self.give_loose(id);
        let mut flow = ControlFlow::Continue(());
        if left && !was_loose && !matches!(event, Event::Gap(_)) {
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

    /// Requests before a synchronisation that is reached are not answered.
    fn give_up_requests(&mut self, id: HartId) {
        let hart = self.tie.harts.of(id);
        let all = hart.available();
        let waiting = hart.waiting.get_mut(hart.head..hart.head + all);
        for access in waiting.unwrap_or_default() {
            access.part = Part::Whole;
        }
    }

    fn access(&mut self, id: HartId, data: &DataAccess) -> ControlFlow<()> {
        let hart = self.tie.harts.of(id);
        match data.part {
            Part::Response(_) => hart.answer(data),
            Part::Whole | Part::Request(_) => {
                hart.waiting.push(*data);
                if hart.waiting.len() > MOST_WAITING {
                    // No instructions for them: they cannot be kept for ever.
                    self.give_up_requests(id);
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

impl Hart {
    /// A synchronisation: accesses that come belong to instructions after it.
    fn sync(&mut self) {
        let all = self.waiting.len() - self.head;
        self.syncs.push_back(self.taken + all as u64);
    }

    /// Whether a gap was given since the last synchronisation, or waits before the next.
    fn has_gap(&self) -> bool {
        let mut held = self.held.iter().take_while(|event| !is_sync(event));
        self.gap || held.any(|event| matches!(event, Event::DataGap(_)))
    }

    /// Accesses before the next synchronisation.
    #[inline]
    fn available(&self) -> usize {
        let all = self.waiting.len() - self.head;
        match self.syncs.front() {
            None => all,
            Some(sync) => (sync - self.taken) as usize,
        }
    }

    /// The first so many of them.
    #[inline]
    fn first(&self, count: usize) -> &[DataAccess] {
        let first = self.waiting.get(self.head..self.head + count);
        first.unwrap_or_default()
    }

    /// Forgets them.
    #[inline]
    fn drop(&mut self, count: usize) {
        self.head += count;
        self.taken += count as u64;
        if self.head == self.waiting.len() {
            self.waiting.clear();
            self.head = 0;
        } else if self.head >= COMPACT {
            self.waiting.drain(..self.head);
            self.head = 0;
        }
    }

    /// The response to the oldest request with its id.
    fn answer(&mut self, data: &DataAccess) {
        let Part::Response(id) = data.part else {
            return;
        };
        let asked = Part::Request(id);
        let waiting = self.waiting.get_mut(self.head..).unwrap_or_default();
        let request = waiting.iter_mut().find(|access| access.part == asked);
        if let Some(request) = request {
            request.part = Part::Whole;
            match request.access.kind {
                AccessKind::Load => request.access.data = data.access.data,
                // Of an atomic the value read.
                _ => request.access.operand = data.access.operand,
            }
        }
    }
}

/// Whether all accesses before an event belong to instructions before it.
const fn is_sync(event: &Event) -> bool {
    matches!(
        event,
        Event::Mark(Mark::Sync(_) | Mark::Off) | Event::Gap(_)
    )
}

impl Tie<'_> {
    /// Finds the accesses of a run among those that wait, if they are all there.
    #[inline]
    fn fit(&mut self, id: HartId, run: &Run) -> Fit {
        self.ready = 0;
        let hart = self.harts.of(id);
        if hart.loose || !self.reported.each {
            return Fit::Yes;
        }
        let plan = self.plans.of(self.image, hart.space, run, &self.reported);
        let available = hart.available();
        let waiting = hart.waiting.get_mut(hart.head..hart.head + available);
        let mut waiting = waiting.unwrap_or_default().iter_mut();
        let mut next = waiting.next();
        let mut used = 0;
        for expected in plan {
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
        self.ready = used;
        Fit::Yes
    }
}

impl<C: Consumer> Consumer for Tied<'_, '_, C> {
    #[inline]
    fn accesses(&mut self, id: HartId, accesses: &[DataAccess]) -> ControlFlow<()> {
        let hart = self.tie.harts.of(id);
        // The usual case: they wait for their instructions.
        let whole = |access: &DataAccess| access.part == Part::Whole;
        if hart.held.is_empty()
            && !hart.loose
            && self.tie.reported.each
            && hart.waiting.len() + accesses.len() <= MOST_WAITING
            && accesses.iter().all(whole)
        {
            hart.waiting.extend_from_slice(accesses);
            return ControlFlow::Continue(());
        }
        let mut flow = ControlFlow::Continue(());
        for access in accesses {
            if self.access(id, access).is_break() {
                flow = ControlFlow::Break(());
            }
        }
        flow
    }

    fn event(&mut self, id: HartId, event: &Event) -> ControlFlow<()> {
        match event {
            Event::Run(run) => self.run(id, run),
            Event::Access(data) => self.access(id, data),
            event => {
                let hart = self.tie.harts.of(id);
                if is_sync(event) {
                    hart.sync();
                }
                match hart.held.is_empty() {
                    true => self.pass(id, event),
                    false => self.hold(id, *event),
                }
            }
        }
    }

    fn runs(&mut self, id: HartId, runs: &[Run]) -> ControlFlow<()> {
        let mut flow = ControlFlow::Continue(());
        for run in runs {
            if self.run(id, run).is_break() {
                flow = ControlFlow::Break(());
            }
        }
        flow
    }
}

/// An access that an instruction of a run makes.
#[derive(Clone, Copy, Debug)]
struct Expected {
    insn: u32,
    kind: AccessKind,
    size: u8,
    /// A store-conditional, which may also fail.
    conditional: bool,
    /// It may be missing: a store-conditional that failed is not reported.
    optional: bool,
}

impl Expected {
    #[inline]
    fn fits(&self, data: &DataAccess) -> bool {
        let access = &data.access;
        access.size == self.size
            && (access.kind == self.kind
                || self.conditional && access.kind == AccessKind::ConditionalStoreFailure)
    }
}

/// The accesses of runs, each looked up once. A cache of fixed size.
#[derive(Clone, Debug, Default)]
struct Plans {
    slots: Vec<Slot>,
    store: Vec<Expected>,
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

/// Accesses kept at most; then the cache starts afresh.
const STORE: usize = 1 << 18;

impl Slot {
    /// No run has no instructions.
    const VACANT: Slot = Slot {
        start: 0,
        insns: 0,
        space: SpaceId::FIRST,
        from: 0,
        len: 0,
    };

    #[inline]
    const fn index(run: &Run) -> usize {
        let key = run.start ^ (run.insns as u64) << 20;
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize & (SLOTS - 1)
    }
}

impl Plans {
    /// The accesses that the instructions of a run make, in order.
    #[inline]
    fn of(&mut self, image: &Image, space: SpaceId, run: &Run, reported: &Reported) -> &[Expected] {
        let found = self.slots.get(Slot::index(run)).copied();
        let slot = match found {
            Some(slot)
                if slot.start == run.start && slot.insns == run.insns && slot.space == space =>
            {
                slot
            }
            _ => self.make(image, space, run, reported),
        };
        let from = slot.from as usize;
        let plan = self.store.get(from..from + slot.len as usize);
        plan.unwrap_or_default()
    }

    #[cold]
    fn make(&mut self, image: &Image, space: SpaceId, run: &Run, reported: &Reported) -> Slot {
        if self.slots.is_empty() || self.store.len() > STORE {
            self.slots.clear();
            self.slots.resize(SLOTS, Slot::VACANT);
            self.store.clear();
        }
        let from = self.store.len() as u32;
        let insns = image.insns(space, run.start, run.insns.into());
        for ((_, fetched), insn) in insns.zip(0..) {
            let (kind, size, count, conditional) = match Touch::of(fetched.bits, fetched.isa) {
                Touch::Nothing => continue,
                Touch::Accesses { kind, size, count } => (kind, size, count, false),
                Touch::Conditional { size } => (AccessKind::Store, size, 1, true),
            };
            if !reported.has(kind, size) {
                continue;
            }
            let failures = reported.has(AccessKind::ConditionalStoreFailure, size);
            let expected = Expected {
                insn,
                kind,
                size,
                conditional,
                optional: conditional && !failures,
            };
            self.store
                .extend(core::iter::repeat_n(expected, count.into()));
        }
        let slot = Slot {
            start: run.start,
            insns: run.insns,
            space,
            from,
            len: self.store.len() as u32 - from,
        };
        if let Some(place) = self.slots.get_mut(Slot::index(run)) {
            *place = slot;
        }
        slot
    }
}

#[cfg(test)]
mod tests;
