//! The flame graph: call paths with their costs.

use crate::columns::Flame;
use crate::functions::Numbered;
use crate::strings::Strings;
use hartrace_analyze::{Cost, Node, Profile, What, cause_name};
use hartrace_flow::order;

/// The paths of a profile, the most expensive if there are too many; and how many are
/// left out.
pub(crate) fn flame(
    profile: &Profile,
    numbered: &Numbered,
    limit: usize,
    strings: &mut Strings,
) -> (Flame, usize) {
    let nodes = profile.tree.nodes();
    let totals = profile.tree.totals();
    let total = |at: usize| totals.get(at).copied().unwrap_or_default();
    let least = least(&totals, limit);
    let harts = nodes
        .iter()
        .filter(|node| matches!(node.what, What::Hart(_)));
    let one_hart = harts.count() < 2;
    let mut flame = Flame::default();
    let mut times: (Vec<u64>, Vec<u64>) = Default::default();
    // Where each node is in the table; the nodes above come first.
    let mut places: Vec<Option<i64>> = Vec::with_capacity(nodes.len());
    let mut left_out = 0;
    for (at, node) in nodes.iter().enumerate() {
        let above = places.get(node.parent.index()).copied().flatten();
        let skipped =
            matches!(node.what, What::Root) || one_hart && matches!(node.what, What::Hart(_));
        if skipped {
            places.push(Some(above.unwrap_or(-1)));
            continue;
        }
        let Cost { insns, time } = total(at);
        let Some(above) = above.filter(|_| insns >= least && insns + node.calls > 0) else {
            left_out += usize::from(insns + node.calls > 0);
            places.push(None);
            continue;
        };
        places.push(Some(flame.parent.len() as i64));
        flame.parent.push(above);
        flame.function.push(match label(node) {
            Some(label) => strings.label(&label),
            None => match node.what {
                What::Function(id) => match numbered.number(Some(id)) {
                    -1 => strings.label(&profile.functions.get(id).name),
                    number => number,
                },
                _ => strings.label("unknown"),
            },
        });
        flame.own.push(node.own.insns);
        flame.total.push(insns);
        flame.calls.push(node.calls);
        times.0.push(node.own.time);
        times.1.push(time);
    }
    if profile.timed {
        flame.self_time = Some(times.0);
        flame.total_time = Some(times.1);
    }
    (flame, left_out)
}

/// The total from which on a path is among the `limit` most expensive. A path is never
/// more expensive than the one above it.
fn least(totals: &[Cost], limit: usize) -> u64 {
    if totals.len() <= limit {
        return 0;
    }
    let mut sorted: Vec<u64> = totals.iter().map(|cost| cost.insns).collect();
    order::sort_by_key(&mut sorted, |insns| std::cmp::Reverse(*insns));
    sorted.get(limit).map_or(0, |insns| insns + 1)
}

/// What a node that is no function is called.
fn label(node: &Node) -> Option<String> {
    Some(match node.what {
        What::Hart(hart) => format!("hart {}", hart.0),
        What::Context(Some(context)) => format!("context {:#x}", context.0),
        What::Context(None) => "no context".to_owned(),
        What::Mode(Some(mode)) => format!("{mode:?} mode"),
        What::Mode(None) => "unknown mode".to_owned(),
        What::Trap(cause) => cause_name(cause),
        What::Root | What::Function(_) | What::Unknown => return None,
    })
}
