//! The frames of a flame graph, and where they are.

use crate::profile::folded::marked_name;
use hartrace_analyze::{Measure, Profile};
use hartrace_flow::order;
use std::collections::BTreeMap;

/// A cost in the earlier profile, if there is one, and in this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Costs {
    pub(super) before: u64,
    pub(super) now: u64,
}

impl Costs {
    fn add(&mut self, other: Costs) {
        self.before = self.before.saturating_add(other.before);
        self.now = self.now.saturating_add(other.now);
    }
}

/// A call path. Paths with the same names are one frame.
struct Frame {
    parent: usize,
    /// An index of [`Frames::names`].
    name: usize,
    own: Costs,
}

/// All call paths, each after the path it was called on.
pub(super) struct Frames {
    frames: Vec<Frame>,
    names: Vec<String>,
    name_numbers: BTreeMap<String, usize>,
    /// By parent and name.
    children: BTreeMap<(usize, usize), usize>,
}

/// A frame of the picture.
#[derive(Debug)]
pub(super) struct Placed<'a> {
    pub(super) name: &'a str,
    /// Frames below it in the picture.
    pub(super) depth: usize,
    /// The cost of everything to its left.
    pub(super) start: u64,
    pub(super) own: Costs,
    /// With what it called.
    pub(super) total: Costs,
}

/// The frame of everything.
pub(super) const ROOT: usize = 0;

/// A frame is drawn if it costs one of so many parts of everything, or more.
pub(super) const PARTS: u128 = 10_000;

impl Frames {
    pub(super) fn new() -> Frames {
        let all = "all".to_owned();
        Frames {
            frames: vec![Frame {
                parent: ROOT,
                name: 0,
                own: Costs::default(),
            }],
            names: vec![all.clone()],
            name_numbers: BTreeMap::from([(all, 0)]),
            children: BTreeMap::new(),
        }
    }

    /// Adds the paths of a profile to one of the costs.
    pub(super) fn add(
        &mut self,
        profile: &Profile,
        by: Measure,
        which: fn(&mut Costs) -> &mut u64,
    ) {
        // The frame of each node. In a finished profile, the node above comes first.
        let mut frames = vec![ROOT];
        for node in profile.tree.nodes().iter().skip(1) {
            let parent = frames.get(node.parent.index()).copied();
            let name = marked_name(node, &profile.functions);
            let frame = self.child(parent.unwrap_or(ROOT), name);
            frames.push(frame);
            let mut own = Costs::default();
            *which(&mut own) = node.own.of(by);
            self.cost(frame, own);
        }
    }

    /// The frame above `parent` with this name.
    pub(super) fn child(&mut self, parent: usize, name: String) -> usize {
        let name = match self.name_numbers.get(&name) {
            Some(&number) => number,
            None => {
                let number = self.names.len();
                self.names.push(name.clone());
                self.name_numbers.insert(name, number);
                number
            }
        };
        *self.children.entry((parent, name)).or_insert_with(|| {
            let own = Costs::default();
            self.frames.push(Frame { parent, name, own });
            self.frames.len() - 1
        })
    }

    /// Adds to the own cost of a frame.
    pub(super) fn cost(&mut self, frame: usize, own: Costs) {
        if let Some(frame) = self.frames.get_mut(frame) {
            frame.own.add(own);
        }
    }

    /// The frames that are wide enough to be drawn, each after its caller, callees of
    /// one frame in the order of their names. They start where their caller starts;
    /// the caller's own cost is to their right.
    pub(super) fn place(&self) -> Vec<Placed<'_>> {
        let totals = self.totals();
        let total = |id: usize| totals.get(id).copied().unwrap_or_default();
        let callees = self.callees();
        let whole = u128::from(total(ROOT).now);
        let mut placed = Vec::new();
        let mut open = vec![(ROOT, 0, 0_u64)];
        while let Some((id, depth, start)) = open.pop() {
            let (Some(frame), now) = (self.frames.get(id), total(id).now) else {
                continue;
            };
            if now == 0 || u128::from(now) * PARTS < whole {
                continue;
            }
            placed.push(Placed {
                name: self.name(id),
                depth,
                start,
                own: frame.own,
                total: total(id),
            });
            let mut end = start;
            let first = open.len();
            for &callee in callees.get(id).into_iter().flatten() {
                open.push((callee, depth + 1, end));
                end = end.saturating_add(total(callee).now);
            }
            // The leftmost is next.
            open.get_mut(first..).unwrap_or_default().reverse();
        }
        placed
    }

    fn name(&self, id: usize) -> &str {
        let name = self.frames.get(id).and_then(|f| self.names.get(f.name));
        name.map_or("", String::as_str)
    }

    /// The cost of each frame with what it called.
    fn totals(&self) -> Vec<Costs> {
        let mut totals: Vec<Costs> = self.frames.iter().map(|frame| frame.own).collect();
        for (id, frame) in self.frames.iter().enumerate().skip(1).rev() {
            let total = totals.get(id).copied().unwrap_or_default();
            if let Some(above) = totals.get_mut(frame.parent) {
                above.add(total);
            }
        }
        totals
    }

    /// What each frame called, by name.
    fn callees(&self) -> Vec<Vec<usize>> {
        let mut ids: Vec<usize> = (1..self.frames.len()).collect();
        order::sort_by_key(&mut ids, |&id| self.name(id));
        let mut callees = vec![Vec::new(); self.frames.len()];
        for id in ids {
            let parent = self.frames.get(id).map_or(ROOT, |frame| frame.parent);
            if let Some(list) = callees.get_mut(parent) {
                list.push(id);
            }
        }
        callees
    }
}
