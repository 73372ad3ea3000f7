//! Runs, each looked up once and counted from then on.

use crate::functions::{FunctionId, Functions};
use crate::stacks::{Cost, UNNAMED};
use hartrace_flow::{Run, SpaceId};
use rustc_hash::FxHashMap;

/// How often a run was executed, and what it cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunCount {
    /// The run. Of one that ends in an indirect jump, `next` is where it went the
    /// first time.
    pub run: Run,
    /// The code it is of.
    pub space: SpaceId,
    /// How often.
    pub count: u64,
    /// The time that all of these took.
    pub time: u64,
    function: u32,
}

impl RunCount {
    /// The function that its first instruction is in.
    #[must_use]
    pub fn function(&self) -> Option<FunctionId> {
        (self.function != UNNAMED).then_some(FunctionId(self.function))
    }

    /// What all executions cost.
    #[must_use]
    pub fn cost(&self) -> Cost {
        Cost {
            insns: self.count * u64::from(self.run.insns),
            time: self.time,
        }
    }
}

/// Slots for runs, a power of two: what is looked up again and again stays in a
/// core's own cache.
const SLOTS: usize = 1 << 12;

/// Runs by where they start, how long they are and how they end. A loop costs one
/// look-up in a small table for each run.
#[derive(Clone, Debug)]
pub(crate) struct Runs {
    slots: Box<[Slot]>,
    known: FxHashMap<Key, u32>,
    list: Vec<RunCount>,
    /// The last run came for the first time.
    fresh: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    start: u64,
    /// Space, program, exit and length.
    rest: u64,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    key: Key,
    index: u32,
}

impl Default for Runs {
    fn default() -> Runs {
        // No run has 0 instructions.
        let vacant = Slot {
            key: Key { start: 0, rest: 0 },
            index: 0,
        };
        Runs {
            slots: vec![vacant; SLOTS].into_boxed_slice(),
            known: FxHashMap::default(),
            list: Vec::new(),
            fresh: false,
        }
    }
}

impl Runs {
    /// The function of a run that is in several: it was not counted.
    pub(crate) const DIVIDE: u32 = u32::MAX - 2;

    /// Whether a run has come for the first time since the last call.
    #[inline]
    pub(crate) fn take_fresh(&mut self) -> bool {
        std::mem::take(&mut self.fresh)
    }

    /// Counts a run in one function, and gives that function as
    /// [`Stacks::run`](crate::Stacks) wants it.
    #[inline]
    pub(crate) fn count(
        &mut self,
        space: SpaceId,
        run: &Run,
        time: u64,
        functions: &Functions,
    ) -> u32 {
        let index = self.place(space, run, functions);
        match self.list.get_mut(index as usize) {
            Some(entry) => {
                if entry.function == Runs::DIVIDE {
                    return Runs::DIVIDE;
                }
                entry.count += 1;
                entry.time += time;
                entry.function
            }
            None => UNNAMED,
        }
    }

    /// The place of a run and its function, without counting it.
    pub(crate) fn index(&mut self, space: SpaceId, run: &Run, functions: &Functions) -> (u32, u32) {
        let index = self.place(space, run, functions);
        let entry = self.list.get(index as usize);
        (index, entry.map_or(UNNAMED, |entry| entry.function))
    }

    /// Counts the run at a place so many times.
    pub(crate) fn add(&mut self, index: u32, count: u64) {
        if let Some(entry) = self.list.get_mut(index as usize) {
            entry.count += count;
        }
    }

    #[inline]
    fn place(&mut self, space: SpaceId, run: &Run, functions: &Functions) -> u32 {
        let program = u64::from(functions.program());
        let rest = u64::from(run.insns) | (run.exit as u64) << 32 | program << 36;
        let key = Key {
            start: run.start,
            rest: rest | (space.index() as u64) << 40,
        };
        // The golden ratio spreads what is near.
        let hash =
            (key.start >> 1 ^ key.rest.wrapping_mul(0x51)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let at = (hash >> 52) as usize & (SLOTS - 1);
        match self.slots.get(at) {
            Some(slot) if slot.key == key => slot.index,
            _ => self.find(key, at, space, run, functions),
        }
    }

    #[cold]
    #[inline(never)]
    fn find(
        &mut self,
        key: Key,
        at: usize,
        space: SpaceId,
        run: &Run,
        functions: &Functions,
    ) -> u32 {
        let (list, fresh) = (&mut self.list, &mut self.fresh);
        let index = *self.known.entry(key).or_insert_with(|| {
            *fresh = true;
            list.push(RunCount {
                run: *run,
                space,
                count: 0,
                time: 0,
                function: function_of(run, functions),
            });
            (list.len() - 1) as u32
        });
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = Slot { key, index };
        }
        index
    }

    /// Every run, in the order of the code.
    pub(crate) fn into_counts(self) -> Vec<RunCount> {
        let mut list = self.list;
        list.retain(|r| r.count > 0);
        list.sort_by_key(|r| (r.space, r.run.start, r.run.insns, r.run.exit as u8));
        list
    }
}

/// The function of a run, [`UNNAMED`] or [`Runs::DIVIDE`].
fn function_of(run: &Run, functions: &Functions) -> u32 {
    let first = functions.of(run.start);
    match functions.is_one_function(run.start, run.source()) {
        true => first.map_or(UNNAMED, |id| id.0),
        false => Runs::DIVIDE,
    }
}

/// Adds counts of the same code to those of `all`; both are in order.
pub(crate) fn add_counts(all: &mut Vec<RunCount>, more: &[RunCount]) {
    let key = |r: &RunCount| (r.space, r.run.start, r.run.insns, r.run.exit as u8);
    all.extend_from_slice(more);
    all.sort_by_key(key);
    all.dedup_by(|next, first| {
        let same = key(next) == key(first);
        if same {
            first.count += next.count;
            first.time += next.time;
        }
        same
    });
}
