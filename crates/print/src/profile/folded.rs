//! Folded stacks: one call path per line, for flame graphs.

use super::Shown;
use hartrace_analyze::{CallTree, Functions, Measure, Node, NodeId, What, cause_name};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// What a node of the tree of calls is called.
pub(super) fn what_name(what: What, functions: &Functions) -> String {
    match what {
        What::Root | What::Unknown => "[unknown]".to_owned(),
        What::Hart(hart) => format!("[hart {}]", hart.0),
        What::Context(Some(context)) => format!("[{}]", functions.contexts().label(context)),
        What::Context(None) => "[unknown context]".to_owned(),
        What::Mode(Some(mode)) => format!("[{}-mode]", mode.name()),
        What::Mode(None) => "[unknown mode]".to_owned(),
        What::Trap(cause) => format!("[{}]", cause_name(cause)),
        What::Function(id) => functions.get(id).name.clone(),
    }
}

/// The name of a node in a stack of others: `;` separates them, and `?` marks a
/// function whose call was not seen.
#[must_use]
pub fn frame_name(tree: &CallTree, id: NodeId, functions: &Functions) -> String {
    let Some(node) = tree.node(id) else {
        return String::new();
    };
    let name = marked_name(node, functions);
    name.replace(';', ":").replace('\n', " ")
}

/// The name of a node, with `?` after a function whose call was not seen.
pub(super) fn marked_name(node: &Node, functions: &Functions) -> String {
    let mark = if node.inferred { "?" } else { "" };
    what_name(node.what, functions) + mark
}

/// Every call path with its own cost.
pub(super) fn paths(tree: &CallTree, functions: &Functions, by: Measure) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for (at, node) in tree.nodes().iter().enumerate().skip(1) {
        let own = node.own.of(by);
        if own == 0 {
            continue;
        }
        let mut names = Vec::new();
        let mut id = tree.id(at);
        while id != NodeId::ROOT {
            names.push(frame_name(tree, id, functions));
            id = tree.node(id).map_or(NodeId::ROOT, |node| node.parent);
        }
        names.reverse();
        *all.entry(names.join(";")).or_default() += own;
    }
    all
}

/// One call path per line: functions from the outermost to the innermost, `;`
/// between them, then a space and what the path cost without further calls.
///
/// # Errors
///
/// A failing write.
pub fn folded(shown: &Shown<'_>, out: &mut impl Write) -> io::Result<()> {
    let profile = shown.profile;
    for (path, own) in paths(&profile.tree, &profile.functions, shown.by) {
        writeln!(out, "{path} {own}")?;
    }
    Ok(())
}
