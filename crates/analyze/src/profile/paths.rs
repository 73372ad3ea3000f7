//! What was executed on each call path, run by run.

use crate::stacks::{Cost, NodeId, Ran, StackSink};
use hartrace_flow::{HartId, Image, SpaceId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;

/// A run on a call path: the path, the code, where it starts, and its instructions.
type Key = (NodeId, SpaceId, u64, u32);

/// How often each run was executed on each call path: a [`StackSink`]. Memory is O(call
/// paths and the code on them).
#[derive(Clone, Debug, Default)]
pub struct PathRuns {
    counts: FxHashMap<Key, RunSum>,
}

#[derive(Clone, Copy, Debug, Default)]
struct RunSum {
    count: u64,
    time: u64,
}

/// What instructions cost, by the call path they were executed on and their address.
pub type PathCosts = BTreeMap<(NodeId, u64), Cost>;

impl PathRuns {
    /// Adds those of another trace of the same program; `nodes` are the call paths here by
    /// those there, as [`Profile::add`](crate::Profile::add) gives them.
    pub(crate) fn add(&mut self, other: &PathRuns, nodes: &[NodeId]) {
        for (key, more) in &other.counts {
            let node = nodes.get(key.0.index()).copied().unwrap_or(NodeId::ROOT);
            let sum = self.counts.entry((node, key.1, key.2, key.3));
            sum.or_default().add(more);
        }
    }

    /// Instructions of all runs on all paths: [`PathRuns::costs`] has no more entries.
    #[must_use]
    pub fn most(&self) -> u64 {
        self.counts.keys().map(|key| u64::from(key.3)).sum()
    }

    /// What each instruction cost on each call path. `place` names an instruction by an
    /// address: its own, or one that stands for several.
    #[must_use]
    pub fn costs(&self, image: &Image, place: &dyn Fn(u64) -> u64) -> PathCosts {
        let mut all = PathCosts::new();
        for (&(node, space, start, insns), sum) in &self.counts {
            let share = |done: u64| {
                let part = u128::from(sum.time) * u128::from(done);
                (part / u128::from(insns.max(1))) as u64
            };
            let mut done = 0;
            for (pc, _) in image.insns(space, start, u64::from(insns)) {
                let cost = all.entry((node, place(pc))).or_default();
                cost.insns += sum.count;
                cost.time += share(done + 1) - share(done);
                done += 1;
            }
            // Code that the image does not have.
            let left = u64::from(insns) - done;
            if left > 0 {
                let cost = all.entry((node, place(start))).or_default();
                cost.insns += sum.count * left;
                cost.time += sum.time - share(done);
            }
        }
        all
    }
}

impl RunSum {
    fn add(&mut self, more: &RunSum) {
        self.count += more.count;
        self.time += more.time;
    }
}

impl StackSink for PathRuns {
    const RUNS: bool = true;

    fn ran(&mut self, _: HartId, ran: &Ran<'_>) {
        let key = (ran.node, ran.space, ran.run.start, ran.run.insns);
        let once = RunSum {
            count: 1,
            time: ran.time,
        };
        match self.counts.entry(key) {
            Entry::Occupied(mut sum) => sum.get_mut().add(&once),
            Entry::Vacant(place) => {
                place.insert(once);
            }
        }
    }

    fn merged(&mut self, new: &[NodeId]) {
        let old = std::mem::take(self);
        self.add(&old, new);
    }
}
