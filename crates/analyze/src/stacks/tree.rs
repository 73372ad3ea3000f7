//! The tree of calls: every call path that was taken, with what it cost.

use crate::functions::FunctionId;
use hartrace_flow::{Cause, Context, HartId, Mode};
use rustc_hash::FxHashMap;

/// A node of a [`CallTree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// The node above all others.
    pub const ROOT: NodeId = NodeId(0);

    /// Its index in the tree.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// Everything.
    Root,
    /// What a hart did, where harts are told apart.
    Hart(HartId),
    /// What ran in a context, where contexts are told apart; `None` before the
    /// first that was reported.
    Context(Option<Context>),
    /// What ran in a mode, where modes are told apart; `None` before the first
    /// that was reported.
    Mode(Option<Mode>),
    /// What a trap started: a track of its own, so that a function does not get
    /// what an interrupt costs.
    Trap(Cause),
    /// A function, called by the node above it.
    Function(FunctionId),
    /// A caller that has not been seen: the trace started inside its callee.
    Unknown,
}

/// What something cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Retired instructions.
    pub insns: u64,
    /// Time in the unit of the trace; only instructions between two timestamps
    /// have one.
    pub time: u64,
}

/// What costs are compared and shown by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// Retired instructions.
    #[default]
    Instructions,
    /// Time.
    Time,
}

impl Cost {
    /// The cost in this measure.
    #[must_use]
    pub const fn of(self, measure: Measure) -> u64 {
        match measure {
            Measure::Instructions => self.insns,
            Measure::Time => self.time,
        }
    }

    /// Adds another cost.
    pub fn add(&mut self, other: Cost) {
        self.insns += other.insns;
        self.time += other.time;
    }

    /// What came since an earlier sum.
    #[must_use]
    pub const fn since(self, earlier: Cost) -> Cost {
        Cost {
            insns: self.insns.wrapping_sub(earlier.insns),
            time: self.time.wrapping_sub(earlier.time),
        }
    }
}

/// A call path: a function and the path it was called on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The node above.
    pub parent: NodeId,
    /// What it stands for.
    pub what: What,
    /// The instruction of the function above that called it, where calls from different
    /// places are [told apart](super::Grouping::sites); 0 if it is not known.
    pub site: u64,
    /// What it cost itself, without the nodes below.
    pub own: Cost,
    /// How often it was called or entered.
    pub calls: u64,
    /// No call was seen: the trace started inside this function, or it was found
    /// by a return to it.
    pub inferred: bool,
}

/// A function as a node calls it: what the next such call needs to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Callee {
    /// Its first instruction.
    pub(crate) entry: u64,
    /// The instruction that calls it, as in its node.
    pub(crate) site: u64,
    pub(crate) function: FunctionId,
    /// What its runs are looked up as: the function, or code without a symbol.
    pub(crate) code: u32,
    /// Its node.
    pub(crate) node: NodeId,
}

impl Callee {
    /// Nothing was called yet: no instruction has an odd address.
    const NONE: Callee = Callee {
        entry: u64::MAX,
        site: 0,
        function: FunctionId(0),
        code: 0,
        node: NodeId::ROOT,
    };
}

/// Call paths with costs. Memory is O(call paths).
#[derive(Clone, Debug)]
pub struct CallTree {
    nodes: Vec<Node>,
    /// What each node called last, by the index of the node.
    callees: Vec<Callee>,
    children: FxHashMap<(NodeId, What, u64), NodeId>,
    /// Nodes after the last merge.
    merged: usize,
}

/// Functions on a path at most. Deeper calls become children of the last of them,
/// so a recursion of any depth takes no more memory than this.
pub(crate) const MAX_DEPTH: usize = 512;

/// Nodes from which on equal paths are merged, and again at each doubling.
const MANY: usize = 1 << 18;

impl Default for CallTree {
    fn default() -> CallTree {
        CallTree::new()
    }
}

impl CallTree {
    /// Nothing but the root.
    #[must_use]
    pub fn new() -> CallTree {
        CallTree {
            nodes: vec![Node {
                parent: NodeId::ROOT,
                what: What::Root,
                site: 0,
                own: Cost::default(),
                calls: 0,
                inferred: false,
            }],
            callees: vec![Callee::NONE],
            children: FxHashMap::default(),
            merged: 0,
        }
    }

    /// Every node, each after the node above it unless nodes were named later.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The id of the node at an index of [`CallTree::nodes`].
    #[must_use]
    pub fn id(&self, index: usize) -> NodeId {
        NodeId(index.min(self.nodes.len() - 1) as u32)
    }

    /// A node.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.index())
    }

    #[inline]
    pub(crate) fn node_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        self.nodes.get_mut(id.index())
    }

    /// The node below `parent` for this.
    #[inline]
    pub(crate) fn child(&mut self, parent: NodeId, what: What) -> NodeId {
        self.child_at(parent, what, 0)
    }

    /// The same for a call by the instruction at `site`, or 0.
    #[inline]
    pub(crate) fn child_at(&mut self, parent: NodeId, what: What, site: u64) -> NodeId {
        if let Some(&id) = self.children.get(&(parent, what, site)) {
            return id;
        }
        let id = self.push(parent, what, site);
        self.children.insert((parent, what, site), id);
        id
    }

    fn push(&mut self, parent: NodeId, what: What, site: u64) -> NodeId {
        self.nodes.push(Node {
            parent,
            what,
            site,
            own: Cost::default(),
            calls: 0,
            inferred: false,
        });
        self.callees.push(Callee::NONE);
        NodeId((self.nodes.len() - 1) as u32)
    }

    /// The function that starts at `entry`, if it is what a node called last, by the
    /// instruction at `site` where that matters.
    #[inline]
    pub(crate) fn callee(&self, caller: NodeId, entry: u64, site: u64) -> Option<Callee> {
        let callee = self.callees.get(caller.index())?;
        (callee.entry == entry && callee.site == site).then_some(*callee)
    }

    /// A node has called a function.
    pub(crate) fn set_callee(&mut self, caller: NodeId, callee: Callee) {
        if let Some(last) = self.callees.get_mut(caller.index()) {
            *last = callee;
        }
    }

    /// A caller that has not been seen, below a track. Nothing else is ever this
    /// node.
    pub(crate) fn unknown(&mut self, track: NodeId) -> NodeId {
        self.push(track, What::Unknown, 0)
    }

    /// The unknown caller is known now; its own caller is not, and gets the node
    /// that is returned.
    pub(crate) fn reveal(&mut self, unknown: NodeId, function: FunctionId) -> NodeId {
        let track = self.node(unknown).map_or(NodeId::ROOT, |node| node.parent);
        let above = self.unknown(track);
        if let Some(node) = self.node_mut(unknown) {
            node.parent = above;
            node.what = What::Function(function);
            node.inferred = true;
        }
        above
    }

    /// The nodes below each node, by the index of the node; in the order in which
    /// they were met.
    #[must_use]
    pub fn children(&self) -> Vec<Vec<NodeId>> {
        let mut children = vec![Vec::new(); self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate().skip(1) {
            if let Some(list) = children.get_mut(node.parent.index()) {
                list.push(NodeId(at as u32));
            }
        }
        children
    }

    /// Whether it is time to merge equal paths.
    pub(crate) fn is_large(&self) -> bool {
        self.nodes.len() >= MANY.max(2 * self.merged)
    }

    /// Merges equal paths; those that start at an unknown caller are equal if the
    /// paths below it are. Nodes in `keep` are callers that may still become known:
    /// they stay alone. Gives the new id of each node.
    pub(crate) fn merge(&mut self, keep: &[NodeId]) -> Vec<NodeId> {
        let old = std::mem::take(self);
        let mut new: Vec<Option<NodeId>> = vec![None; old.nodes.len()];
        let mut path = Vec::new();
        for at in 0..old.nodes.len() {
            // Up to a node that is known in the new tree.
            let mut id = NodeId(at as u32);
            while let Some((slot, node)) = new.get(id.index()).zip(old.node(id))
                && slot.is_none()
                && id != NodeId::ROOT
            {
                path.push(id);
                id = node.parent;
            }
            let mut above = new.get(id.index()).copied().flatten();
            while let Some((id, node)) = path.pop().and_then(|id| Some((id, old.node(id)?))) {
                let parent = above.unwrap_or(NodeId::ROOT);
                let here = match node.what {
                    What::Unknown if keep.contains(&id) => self.unknown(parent),
                    What::Unknown => parent,
                    what => self.child_at(parent, what, node.site),
                };
                above = Some(here);
                if let Some(slot) = new.get_mut(id.index()) {
                    *slot = above;
                }
            }
        }
        for (node, to) in old.nodes.iter().zip(&new) {
            if let Some(into) = self.node_mut(to.unwrap_or(NodeId::ROOT)) {
                into.own.add(node.own);
                into.calls += node.calls;
                into.inferred |= node.inferred;
            }
        }
        self.merged = self.nodes.len();
        new.into_iter()
            .map(|id| id.unwrap_or(NodeId::ROOT))
            .collect()
    }

    /// Gives functions other ids.
    pub(crate) fn rename(&mut self, mut to: impl FnMut(FunctionId) -> FunctionId) {
        self.children.clear();
        self.callees.fill(Callee::NONE);
        for (at, node) in self.nodes.iter_mut().enumerate() {
            if let What::Function(id) = &mut node.what {
                *id = to(*id);
            }
            let id = NodeId(at as u32);
            let key = (node.parent, node.what, node.site);
            self.children.entry(key).or_insert(id);
        }
    }

    /// Adds another tree of the same functions. Gives the node in this tree for each
    /// node of the other.
    pub fn add(&mut self, other: &CallTree) -> Vec<NodeId> {
        let mut other = other.clone();
        let merged = other.merge(&[]);
        let mut to: Vec<NodeId> = Vec::with_capacity(other.nodes.len());
        for node in &other.nodes {
            // After a merge each node comes after the node above it.
            let parent = to.get(node.parent.index()).copied();
            let id = match (node.what, parent) {
                (What::Root, _) | (_, None) => NodeId::ROOT,
                (what, Some(parent)) => self.child_at(parent, what, node.site),
            };
            to.push(id);
            if let Some(into) = self.node_mut(id) {
                into.own.add(node.own);
                into.calls += node.calls;
                into.inferred |= node.inferred;
            }
        }
        let here = |id: NodeId| to.get(id.index()).copied().unwrap_or(NodeId::ROOT);
        merged.into_iter().map(here).collect()
    }

    /// What each node cost with the nodes below it, by the index of the node. For
    /// the tree of a finished [`Stacks`](crate::Stacks).
    #[must_use]
    pub fn totals(&self) -> Vec<Cost> {
        let mut totals: Vec<Cost> = self.nodes.iter().map(|node| node.own).collect();
        for (at, node) in self.nodes.iter().enumerate().skip(1).rev() {
            let cost = totals.get(at).copied().unwrap_or_default();
            if let Some(above) = totals.get_mut(node.parent.index()) {
                above.add(cost);
            }
        }
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const F: What = What::Function(FunctionId(1));
    const G: What = What::Function(FunctionId(2));

    fn cost(insns: u64) -> Cost {
        Cost { insns, time: 0 }
    }

    #[test]
    fn totals_include_what_was_called() {
        let mut tree = CallTree::new();
        let f = tree.child(NodeId::ROOT, F);
        let g = tree.child(f, G);
        assert_eq!(tree.child(f, G), g);
        tree.node_mut(f).unwrap().own = cost(3);
        tree.node_mut(g).unwrap().own = cost(4);
        assert_eq!(tree.totals(), [cost(7), cost(7), cost(4)]);
    }

    /// Two starts in the middle of the same calls are one path in the end.
    #[test]
    fn revealed_callers_are_merged() {
        let mut tree = CallTree::new();
        for _ in 0..2 {
            let unknown = tree.unknown(NodeId::ROOT);
            let g = tree.child(unknown, G);
            tree.node_mut(g).unwrap().own = cost(5);
            let above = tree.reveal(unknown, FunctionId(1));
            assert_eq!(tree.node(unknown).unwrap().parent, above);
        }
        assert_eq!(tree.nodes().len(), 7);
        let new = tree.merge(&[]);
        assert_eq!(tree.nodes().len(), 3);
        let f = tree.child(NodeId::ROOT, F);
        let g = tree.child(f, G);
        assert!(tree.node(f).unwrap().inferred);
        assert_eq!(tree.node(g).unwrap().own, cost(10));
        assert_eq!(new[2], g);
        // Each node comes after the node above it.
        for (at, node) in tree.nodes().iter().enumerate().skip(1) {
            assert!(node.parent.index() < at);
        }
    }

    #[test]
    fn callers_that_may_become_known_stay_alone() {
        let mut tree = CallTree::new();
        let kept = tree.unknown(NodeId::ROOT);
        let g = tree.child(kept, G);
        let other = tree.child(NodeId::ROOT, G);
        let new = tree.merge(&[kept]);
        assert_ne!(new[g.index()], new[other.index()]);
        assert_eq!(tree.node(new[kept.index()]).unwrap().what, What::Unknown);
    }

    #[test]
    fn trees_are_added() {
        let mut one = CallTree::new();
        let f = one.child(NodeId::ROOT, F);
        one.node_mut(f).unwrap().own = cost(1);
        let mut two = CallTree::new();
        let g = two.child(NodeId::ROOT, G);
        let f = two.child(g, F);
        two.node_mut(f).unwrap().own = cost(2);
        two.node_mut(f).unwrap().calls = 9;
        one.add(&two);
        one.add(&two);
        assert_eq!(one.nodes().len(), 4);
        assert_eq!(one.totals()[0], cost(5));
        assert_eq!(one.nodes()[3].calls, 18);
    }
}
