//! Slices of runs that a decoder hands out again and again, each examined once.

use crate::functions::Functions;
use crate::runs::Runs;
use hartrace_flow::{Kept, Run, SpaceId};

/// What is known of a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slice {
    /// How often it came since it was examined.
    pub(crate) count: u64,
    /// Its runs, in the list of all.
    first: u32,
    len: u32,
    /// Its parts, in the list of all.
    parts: u32,
    part_count: u32,
    /// Some of its runs are in several functions: it is not counted as a whole.
    pub(crate) divided: bool,
}

/// Runs one after the other in one function, of which only the last may call or
/// return.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlicePart {
    /// The function, as [`Runs`] gives it.
    pub(crate) function: u32,
    /// Instructions.
    pub(crate) insns: u32,
    /// Where it starts.
    pub(crate) start: u64,
    /// Index of its last run in the slice.
    pub(crate) last: u16,
}

/// Slices by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slices {
    stores: Vec<Store>,
    list: Vec<Slice>,
    runs: Vec<u32>,
    parts: Vec<SlicePart>,
}

/// The slices of one store.
#[derive(Clone, Debug)]
struct Store {
    number: u32,
    /// By place: the slice, counted from 1; 0 for one that has not come yet.
    known: Vec<u32>,
}

/// Runs of slices that are kept; then all are forgotten and examined again.
const MANY: usize = 1 << 20;

/// Stores that are known. A decoder has three.
const MAX_STORES: usize = 16;

impl Slices {
    /// The slice of this name: its place in the list. `None` if it has not come yet.
    #[inline]
    pub(crate) fn find(&self, kept: Kept) -> Option<usize> {
        let store = self.stores.iter().find(|s| s.number == kept.store())?;
        let slice = store.known.get(kept.index() as usize)?;
        (*slice as usize).checked_sub(1)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, at: usize) -> Option<(&mut Slice, &[SlicePart])> {
        let slice = self.list.get_mut(at)?;
        let from = slice.parts as usize;
        let parts = self.parts.get(from..from + slice.part_count as usize)?;
        Some((slice, parts))
    }

    /// Examines a slice that has not come yet; gives its place.
    #[cold]
    #[inline(never)]
    pub(crate) fn examine(
        &mut self,
        kept: Kept,
        runs: &[Run],
        (space, table, functions): (SpaceId, &mut Runs, &Functions),
    ) -> usize {
        if self.runs.len() + runs.len() > MANY {
            self.settle(table);
        }
        let slice = Slice {
            count: 0,
            first: self.runs.len() as u32,
            len: runs.len() as u32,
            parts: self.parts.len() as u32,
            part_count: 0,
            divided: false,
        };
        let mut slice = slice;
        let mut part: Option<SlicePart> = None;
        for (at, run) in (0u16..).zip(runs) {
            let (index, function) = table.index(space, run, functions);
            slice.divided |= function == Runs::DIVIDE;
            self.runs.push(index);
            match part.as_mut().filter(|part| part.function == function) {
                Some(part) => {
                    part.insns += run.insns;
                    part.last = at;
                }
                None => {
                    self.parts.extend(part.take());
                    part = Some(SlicePart {
                        function,
                        insns: run.insns,
                        start: run.start,
                        last: at,
                    });
                }
            }
            if run.exit.stacks() || run.exit == hartrace_flow::Exit::TrapReturn {
                self.parts.extend(part.take());
            }
        }
        self.parts.extend(part);
        slice.part_count = self.parts.len() as u32 - slice.parts;
        self.list.push(slice);
        self.remember(kept, self.list.len() as u32);
        self.list.len() - 1
    }

    fn remember(&mut self, kept: Kept, slice: u32) {
        let found = self.stores.iter().position(|s| s.number == kept.store());
        let at = found.unwrap_or_else(|| {
            if self.stores.len() >= MAX_STORES {
                // What it named was counted; the names will not come again.
                self.stores.remove(0);
            }
            self.stores.push(Store {
                number: kept.store(),
                known: Vec::new(),
            });
            self.stores.len() - 1
        });
        let Some(store) = self.stores.get_mut(at) else {
            return;
        };
        let index = kept.index() as usize;
        if store.known.len() <= index {
            store.known.resize(index + 1, 0);
        }
        if let Some(place) = store.known.get_mut(index) {
            *place = slice;
        }
    }

    /// Gives the runs the counts of the slices, and forgets these.
    pub(crate) fn settle(&mut self, table: &mut Runs) {
        for slice in &self.list {
            let from = slice.first as usize;
            let runs = self.runs.get(from..from + slice.len as usize);
            for &run in runs.unwrap_or_default() {
                table.add(run, slice.count);
            }
        }
        self.list.clear();
        self.runs.clear();
        self.parts.clear();
        self.stores.clear();
    }
}
