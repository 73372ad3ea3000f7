//! What of one hart waits: accesses for instructions, runs for accesses.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::plans::{Held, SlicePlan, SlicePlans};
use crate::{
    AccessKind, DataAccess, Event, Image, Mark, Ownership, Part, PlainAccesses, PlainForm,
    PlainValues, Run, SpaceId, Totals,
};

/// What is known of one hart.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Hart {
    pub(super) space: SpaceId,
    /// Accesses that no instruction has taken, if not all of them are plain.
    pub(super) waiting: Row<DataAccess>,
    /// The same if they are. One of the two is empty.
    pub(super) plain: PlainRow,
    /// Accesses that have left.
    taken: u64,
    /// Synchronisations: how many accesses came before each.
    pub(super) syncs: VecDeque<u64>,
    /// What comes after a run whose accesses are not there yet, that run first.
    pub(super) held: Row<Held>,
    /// The runs among it that have no plan.
    pub(super) runs: Row<Run>,
    /// The events among it.
    pub(super) events: VecDeque<Event>,
    /// Accesses are given without an instruction until the next synchronisation.
    pub(super) loose: bool,
    /// A gap was given since the last synchronisation.
    pub(super) gap: bool,
}

/// A queue whose items lie next to each other.
#[derive(Clone, Debug)]
pub(super) struct Row<T> {
    items: Vec<T>,
    /// Items that have left.
    head: usize,
}

/// Items that have left, at which the others are moved to the front.
const COMPACT: usize = 1 << 12;

impl<T> Default for Row<T> {
    fn default() -> Row<T> {
        Row {
            items: Vec::new(),
            head: 0,
        }
    }
}

impl<T: Copy + PartialEq> PartialEq for Row<T> {
    fn eq(&self, other: &Row<T>) -> bool {
        self.all() == other.all()
    }
}

impl<T: Copy> Row<T> {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.items.len() - self.head
    }

    #[inline]
    pub(super) fn push(&mut self, item: T) {
        self.items.push(item);
    }

    #[inline]
    pub(super) fn extend(&mut self, items: &[T]) {
        self.items.extend_from_slice(items);
    }

    /// Adds default values until there are so many.
    #[inline]
    fn fill_up(&mut self, len: usize)
    where
        T: Default,
    {
        let missing = len.saturating_sub(self.len());
        self.items
            .extend(core::iter::repeat_n(T::default(), missing));
    }

    /// Puts items before all others.
    pub(super) fn push_front(&mut self, items: &[T]) {
        let at = self.head;
        self.items.splice(at..at, items.iter().copied());
    }

    /// The first one.
    #[inline]
    pub(super) fn front(&self) -> Option<&T> {
        self.items.get(self.head)
    }

    /// The same, to be changed.
    pub(super) fn front_mut(&mut self) -> Option<&mut T> {
        self.items.get_mut(self.head)
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The first so many; none if there are fewer.
    #[inline]
    pub(super) fn first(&self, count: usize) -> &[T] {
        let first = self.items.get(self.head..self.head + count);
        first.unwrap_or_default()
    }

    /// The same, to be changed.
    #[inline]
    pub(super) fn first_mut(&mut self, count: usize) -> &mut [T] {
        let first = self.items.get_mut(self.head..self.head + count);
        first.unwrap_or_default()
    }

    /// So many after the first `from`, to be changed; none if there are fewer.
    #[inline]
    pub(super) fn part_mut(&mut self, from: usize, count: usize) -> &mut [T] {
        let from = self.head + from;
        self.items.get_mut(from..from + count).unwrap_or_default()
    }

    /// All of them.
    #[inline]
    pub(super) fn all(&self) -> &[T] {
        self.items.get(self.head..).unwrap_or_default()
    }

    /// All of them, to be changed.
    pub(super) fn all_mut(&mut self) -> &mut [T] {
        self.items.get_mut(self.head..).unwrap_or_default()
    }

    /// Takes all out.
    pub(super) fn clear(&mut self) {
        self.items.clear();
        self.head = 0;
    }

    /// Takes the first so many out.
    #[inline]
    pub(super) fn drop(&mut self, count: usize) {
        self.head = (self.head + count).min(self.items.len());
        if self.head == self.items.len() {
            self.items.clear();
            self.head = 0;
        } else if self.head >= COMPACT {
            self.items.drain(..self.head);
            self.head = 0;
        }
    }
}

/// Plain accesses that wait.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PlainRow {
    forms: Row<PlainForm>,
    /// None if none of the accesses came with values.
    values: Row<PlainValues>,
}

impl PlainRow {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.forms.len()
    }

    #[inline]
    pub(super) fn extend(&mut self, accesses: PlainAccesses<'_>) {
        let (before, values) = (self.forms.len(), accesses.values());
        self.forms.extend(accesses.forms());
        if !values.is_empty() || !self.values.is_empty() {
            self.values.fill_up(before);
            self.values.extend(values);
            self.values.fill_up(self.forms.len());
        }
    }

    /// All of them.
    #[inline]
    pub(super) fn all(&self) -> PlainAccesses<'_> {
        PlainAccesses::new(self.forms.all(), self.values.all())
    }

    /// The first so many; none if there are fewer.
    #[inline]
    pub(super) fn first(&self, count: usize) -> PlainAccesses<'_> {
        PlainAccesses::new(self.forms.first(count), self.values.first(count))
    }

    /// Takes the first so many out.
    #[inline]
    pub(super) fn drop(&mut self, count: usize) {
        self.forms.drop(count);
        self.values.drop(count);
    }

    fn clear(&mut self) {
        self.forms.clear();
        self.values.clear();
    }
}

impl Hart {
    /// A synchronisation: accesses that come belong to instructions after it.
    pub(super) fn sync(&mut self) {
        self.syncs.push_back(self.taken + self.all() as u64);
    }

    /// Whether a gap was given since the last synchronisation, or waits before the next.
    pub(super) fn has_gap(&self) -> bool {
        let mut held = self.events.iter().take_while(|event| !is_sync(event));
        self.gap || held.any(|event| matches!(event, Event::DataGap(_)))
    }

    /// Accesses that wait.
    #[inline]
    pub(super) fn all(&self) -> usize {
        self.waiting.len() + self.plain.len()
    }

    /// Those before the next synchronisation.
    #[inline]
    pub(super) fn available(&self) -> usize {
        match self.syncs.front() {
            None => self.all(),
            Some(sync) => (sync - self.taken) as usize,
        }
    }

    /// Adds accesses to those that wait.
    #[inline]
    pub(super) fn add(&mut self, accesses: &[DataAccess]) {
        self.unpack();
        self.waiting.extend(accesses);
    }

    /// The same for plain ones.
    #[inline]
    pub(super) fn add_plain(&mut self, accesses: PlainAccesses<'_>) {
        self.plain.extend(accesses);
        if !self.waiting.is_empty() {
            self.unpack();
        }
    }

    /// From now on accesses that wait are in `waiting`, until there are none.
    pub(super) fn unpack(&mut self) {
        if self.plain.len() > 0 {
            self.waiting.items.extend(self.plain.all().iter());
            self.plain.clear();
        }
    }

    /// Forgets plain accesses that have been given.
    #[inline]
    pub(super) fn take_plain(&mut self, count: usize) {
        self.plain.drop(count);
        self.taken += count as u64;
    }

    /// Forgets accesses that have been given.
    #[inline]
    pub(super) fn take(&mut self, count: usize) {
        self.waiting.drop(count);
        self.taken += count as u64;
    }

    /// Gives slices that are held back first with their accesses, as far as these are there
    /// and plain. Whether the next must be looked at run by run.
    #[inline(always)]
    pub(super) fn give_fitting(
        &mut self,
        slices: &mut SlicePlans,
        mut give: impl FnMut(&SlicePlan, PlainAccesses<'_>),
    ) -> bool {
        let waiting = self.plain.first(self.available());
        let (mut given, mut rest) = (0, waiting);
        let is_each = 'slices: {
            for held in self.held.all() {
                let Some(plan) = slices.of(*held) else {
                    break;
                };
                let Some((own, others)) = rest.split(plan.expected.len()) else {
                    break 'slices !plan.is_exact || !self.syncs.is_empty();
                };
                if !plan.is_exact || !plan.fits(rest.forms()) {
                    break 'slices true;
                }
                give(plan, own);
                rest = others;
                given += 1;
            }
            false
        };
        let used = waiting.len() - rest.len();
        self.held.drop(given);
        self.take_plain(used);
        is_each
    }

    /// The same where slices are only counted.
    pub(super) fn count_fitting(&mut self, slices: &SlicePlans) -> (Totals, bool) {
        let forms = self.plain.first(self.available()).forms();
        let (mut all, mut rest, mut given) = (Totals::default(), forms, 0);
        let mut is_each = false;
        for held in self.held.all() {
            let Held::Slice { plan, .. } = *held else {
                break;
            };
            let Some(plan) = slices.get(plan) else {
                break;
            };
            let own = plan.counted();
            let Some(others) = rest.get(own.accesses as usize..) else {
                is_each = !plan.is_exact || !self.syncs.is_empty();
                break;
            };
            if !plan.is_exact || !plan.fits(rest) {
                is_each = true;
                break;
            }
            all += own;
            rest = others;
            given += 1;
        }
        self.held.drop(given);
        self.take_plain(all.accesses as usize);
        (all, is_each)
    }

    /// Holds runs back.
    pub(super) fn hold_runs(&mut self, runs: &[Run]) {
        self.runs.extend(runs);
        match self.held.all_mut().last_mut() {
            Some(Held::Runs(len)) => *len += runs.len(),
            _ => self.held.push(Held::Runs(runs.len())),
        }
    }

    /// Holds an event back.
    pub(super) fn hold_event(&mut self, event: Event) {
        self.held.push(Held::Event);
        self.events.push_back(event);
    }

    /// So many runs are left of those that are held back first.
    pub(super) fn leave_runs(&mut self, len: usize) {
        match self.held.front_mut() {
            Some(Held::Runs(left)) if len > 0 => *left = len,
            _ => self.held.drop(1),
        }
    }

    /// The space of runs that come now: that of the last change that is held back.
    pub(super) fn space_after(&self, image: &Image) -> SpaceId {
        let mut events = self.events.iter().rev();
        let changed = events.find_map(|event| space_of(image, event));
        changed.unwrap_or(self.space)
    }

    /// How much is held back.
    #[inline]
    pub(super) fn held_len(&self) -> usize {
        self.held.len() + self.runs.len()
    }

    /// Holds the runs of the first slice back as they are, without a plan.
    #[cold]
    pub(super) fn detach_first(&mut self, plans: &mut SlicePlans) {
        if let Some(plan) = self.held.front().and_then(|held| plans.of(*held)) {
            self.runs.push_front(&plan.runs);
            if let Some(first) = self.held.front_mut() {
                *first = Held::Runs(plan.runs.len());
            }
        }
    }

    /// The same with the runs of all slices held back in this way, and nothing that has
    /// left.
    pub(super) fn detached(&self, plans: &SlicePlans) -> Hart {
        let mut hart = Hart {
            space: self.space,
            waiting: self.waiting.clone(),
            plain: self.plain.clone(),
            syncs: self.syncs.iter().map(|sync| sync - self.taken).collect(),
            events: self.events.clone(),
            loose: self.loose,
            gap: self.gap,
            ..Hart::default()
        };
        let mut runs = self.runs.all();
        for &held in self.held.all() {
            match held {
                Held::Slice { .. } => hart.hold_runs(&plans.runs_of(held)),
                Held::Runs(len) => {
                    let (own, others) = runs.split_at(len.min(runs.len()));
                    hart.hold_runs(own);
                    runs = others;
                }
                Held::Event => hart.held.push(held),
            }
        }
        hart
    }

    /// The response to the oldest request with its id.
    pub(super) fn answer(&mut self, data: &DataAccess) {
        let Part::Response(id) = data.part else {
            return;
        };
        let asked = Part::Request(id);
        let mut waiting = self.waiting.all_mut().iter_mut();
        if let Some(request) = waiting.find(|access| access.part == asked) {
            request.part = Part::Whole;
            match request.access.kind {
                AccessKind::Load => request.access.data = data.access.data,
                // Of an atomic the value read.
                _ => request.access.operand = data.access.operand,
            }
        }
    }
}

/// The space of the code after an event that changes it.
pub(super) fn space_of(image: &Image, event: &Event) -> Option<SpaceId> {
    match event {
        Event::Code(space) => Some(*space),
        Event::Context(Ownership { context, .. }) => {
            Some(context.map_or(SpaceId::FIRST, |context| image.space_of(context)))
        }
        _ => None,
    }
}

/// Whether all accesses before an event belong to instructions before it.
pub(super) const fn is_sync(event: &Event) -> bool {
    matches!(
        event,
        Event::Mark(Mark::Sync(_) | Mark::Off) | Event::Gap(_)
    )
}
