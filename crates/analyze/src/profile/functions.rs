//! The costs of functions and calls, from the tree of call paths.

use super::Profile;
use crate::functions::FunctionId;
use crate::stacks::{CallTree, Cost, Measure, NodeId, What};
use hartrace_flow::order;
use std::collections::HashMap;

/// What a function cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionCost {
    /// The function.
    pub function: FunctionId,
    /// What its own instructions cost.
    pub own: Cost,
    /// The same with everything it called. A function that calls itself, even by
    /// way of others, is counted once.
    pub total: Cost,
    /// How often it was called.
    pub calls: u64,
}

/// The calls from one function to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallEdge {
    /// What called; [`What::Trap`] for a handler, [`What::Root`] where the caller is
    /// not known.
    pub caller: What,
    /// The function that was called.
    pub callee: FunctionId,
    /// How often.
    pub calls: u64,
    /// What the calls cost, with everything inside them. Calls inside the same call
    /// are counted once.
    pub total: Cost,
}

impl Profile {
    /// The cost of each function that ran; the most expensive first, by its own
    /// cost.
    #[must_use]
    pub fn by_function(&self, by: Measure) -> Vec<FunctionCost> {
        by_function(&self.tree, NodeId::ROOT, by)
    }

    /// The same of the paths below a node.
    #[must_use]
    pub fn by_function_below(&self, node: NodeId, by: Measure) -> Vec<FunctionCost> {
        by_function(&self.tree, node, by)
    }

    /// All calls, by caller and callee; the most expensive first.
    #[must_use]
    pub fn call_edges(&self, by: Measure) -> Vec<CallEdge> {
        let mut edges: HashMap<(What, FunctionId), CallEdge> = HashMap::new();
        let totals = self.tree.totals();
        let mut on_path: HashMap<(What, FunctionId), u32> = HashMap::new();
        walk(&self.tree, NodeId::ROOT, |id, is_entry| {
            let Some((node, above)) = self
                .tree
                .node(id)
                .and_then(|node| Some((node, self.tree.node(node.parent)?)))
            else {
                return;
            };
            let What::Function(callee) = node.what else {
                return;
            };
            let caller = match above.what {
                what @ (What::Function(_) | What::Trap(_)) => what,
                _ => What::Root,
            };
            let depth = on_path.entry((caller, callee)).or_default();
            if !is_entry {
                *depth -= 1;
                return;
            }
            *depth += 1;
            let edge = edges.entry((caller, callee)).or_insert(CallEdge {
                caller,
                callee,
                calls: 0,
                total: Cost::default(),
            });
            edge.calls += node.calls;
            if *depth == 1 {
                edge.total
                    .add(totals.get(id.index()).copied().unwrap_or_default());
            }
        });
        let mut edges: Vec<CallEdge> = edges.into_values().collect();
        let place = |what: What| match what {
            What::Function(id) => (0, u64::from(id.0)),
            What::Trap(cause) => (1, trap_order(cause)),
            _ => (2, 0),
        };
        order::sort_by_key(&mut edges, |e| {
            let cost = e.total.of(by);
            (std::cmp::Reverse(cost), e.callee, place(e.caller))
        });
        edges
    }
}

/// A fixed order of causes.
pub(crate) fn trap_order(cause: hartrace_flow::Cause) -> u64 {
    use hartrace_flow::Cause::{Exception, Interrupt, Unknown};
    let code = |code: Option<u32>| code.map_or(0, |code| u64::from(code) + 1);
    match cause {
        Exception(c) => code(c),
        Interrupt(c) => 1 << 40 | code(c),
        Unknown => 1 << 41,
    }
}

fn by_function(tree: &CallTree, root: NodeId, by: Measure) -> Vec<FunctionCost> {
    let totals = tree.totals();
    let mut all: HashMap<FunctionId, (FunctionCost, u32)> = HashMap::new();
    walk(tree, root, |id, is_entry| {
        let Some(node) = tree.node(id) else { return };
        let What::Function(function) = node.what else {
            return;
        };
        let (cost, on_path) = all.entry(function).or_insert_with(|| {
            let none = FunctionCost {
                function,
                own: Cost::default(),
                total: Cost::default(),
                calls: 0,
            };
            (none, 0)
        });
        if !is_entry {
            *on_path -= 1;
            return;
        }
        *on_path += 1;
        cost.own.add(node.own);
        cost.calls += node.calls;
        if *on_path == 1 {
            cost.total
                .add(totals.get(id.index()).copied().unwrap_or_default());
        }
    });
    let ran = all.into_values().map(|(cost, _)| cost);
    let mut list: Vec<FunctionCost> = ran.filter(|c| c.total.insns > 0 || c.calls > 0).collect();
    order::sort_by_key(&mut list, |c| (std::cmp::Reverse(c.own.of(by)), c.function));
    list
}

/// Calls `visit` for every node below `root` and for `root`: before the nodes below
/// it with true, after them with false.
pub(crate) fn walk(tree: &CallTree, root: NodeId, mut visit: impl FnMut(NodeId, bool)) {
    let children = tree.children();
    let mut open = vec![(root, true)];
    while let Some((id, is_entry)) = open.pop() {
        visit(id, is_entry);
        if is_entry {
            open.push((id, false));
            let below = children.get(id.index()).into_iter().flatten();
            open.extend(below.rev().map(|&child| (child, true)));
        }
    }
}
