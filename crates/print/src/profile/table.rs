//! Tables of functions, lines, loops and calls.

use super::folded::what_name;
use super::{Shown, SourceLine, other_unit, percent, short, unit};
use crate::words::{count, counted};
use hartrace_analyze::{Cost, FunctionCost, NodeId, What};
use hartrace_flow::order;
use std::io::{self, Write};

/// What everything cost, on one line.
fn summary(shown: &Shown<'_>, out: &mut impl Write) -> io::Result<()> {
    let Cost { insns, time } = shown.profile.total();
    write!(out, "{}", counted(insns, "instruction"))?;
    match shown.profile.timed {
        true => writeln!(out, ", {} of time", counted(time, "unit"))?,
        false => writeln!(out)?,
    }
    writeln!(out)
}

/// The cost of each function: a table, or one for each hart, context and mode if
/// they are told apart.
///
/// # Errors
///
/// A failing write.
pub fn functions(shown: &Shown<'_>, out: &mut impl Write) -> io::Result<()> {
    summary(shown, out)?;
    let groups = groups(shown);
    if groups.is_empty() {
        return function_table(shown, &shown.profile.by_function(shown.by), out);
    }
    group_table(shown, &groups, out)?;
    for (node, name) in &groups {
        writeln!(out, "\n{name}")?;
        let list = shown.profile.by_function_below(*node, shown.by);
        function_table(shown, &list, out)?;
    }
    Ok(())
}

/// What each hart, context and mode cost; the most expensive first.
fn group_table(
    shown: &Shown<'_>,
    groups: &[(NodeId, String)],
    out: &mut impl Write,
) -> io::Result<()> {
    let totals = shown.profile.tree.totals();
    let cost = |id: NodeId| totals.get(id.index()).copied().unwrap_or_default();
    let mut costs: Vec<(Cost, &str)> = groups
        .iter()
        .map(|(id, name)| (cost(*id), name.as_str()))
        .collect();
    order::sort_by_key(&mut costs, |(cost, _)| std::cmp::Reverse(cost.of(shown.by)));
    write!(out, "{:>7} {:>14}", "%", unit(shown.by))?;
    if shown.profile.timed {
        write!(out, " {:>14}", other_unit(shown.by))?;
    }
    writeln!(out)?;
    let whole = shown.whole();
    for (cost, name) in costs {
        let own = cost.of(shown.by);
        write!(out, "{:>7.2} {own:>14}", percent(own, whole))?;
        if let Some(other) = shown.other(cost) {
            write!(out, " {other:>14}")?;
        }
        writeln!(out, "  {name}")?;
    }
    Ok(())
}

/// Harts, contexts and modes that are told apart, with their names.
pub(super) fn groups(shown: &Shown<'_>) -> Vec<(NodeId, String)> {
    let tree = &shown.profile.tree;
    // What comes before what, if it is something that is told apart.
    let order = |what| match what {
        What::Hart(hart) => Some(u64::from(hart.0)),
        What::Context(context) => Some(context.map_or(0, |c| c.0.saturating_add(1))),
        // The most privileged first.
        What::Mode(mode) => Some(mode.map_or(0, |mode| 0x100 - u64::from(mode.code()))),
        _ => None,
    };
    let children = tree.children();
    let mut open = vec![(NodeId::ROOT, String::new(), Vec::new())];
    let mut groups = Vec::new();
    while let Some((id, name, place)) = open.pop() {
        let below = children.get(id.index()).into_iter().flatten();
        let below: Vec<_> = below
            .filter_map(|&child| Some((child, tree.node(child)?.what)))
            .filter_map(|(child, what)| Some((child, what, order(what)?)))
            .collect();
        for (child, what, order) in &below {
            let gap = if name.is_empty() { "" } else { ", " };
            let own = what_name(*what, &shown.profile.functions);
            let place = [place.as_slice(), &[*order]].concat();
            open.push((*child, format!("{name}{gap}{own}"), place));
        }
        if below.is_empty() && !name.is_empty() {
            groups.push((place, id, name));
        }
    }
    // A context that nothing ran in, such as one that a kernel only tried, says nothing.
    let totals = tree.totals();
    groups.retain(|(_, id, _)| {
        totals
            .get(id.index())
            .is_some_and(|t| *t != Cost::default())
    });
    groups.sort();
    groups.into_iter().map(|(_, id, name)| (id, name)).collect()
}

fn function_table(
    shown: &Shown<'_>,
    list: &[FunctionCost],
    out: &mut impl Write,
) -> io::Result<()> {
    let timed = shown.profile.timed;
    write!(
        out,
        "{:>7} {:>14} {:>7} {:>14}",
        "self %", "self", "total %", "total"
    )?;
    if timed {
        write!(out, " {:>14}", format!("self {}", other_unit(shown.by)))?;
    }
    writeln!(out, " {:>10}  function", "calls")?;
    let whole = shown.whole();
    for cost in list.iter().take(shown.rows()) {
        let (own, total) = (cost.own.of(shown.by), cost.total.of(shown.by));
        write!(
            out,
            "{:>7.2} {own:>14} {:>7.2} {total:>14}",
            percent(own, whole),
            percent(total, whole)
        )?;
        if let Some(other) = shown.other(cost.own) {
            write!(out, " {other:>14}")?;
        }
        let function = shown.profile.functions.get(cost.function);
        write!(out, " {:>10}  {}", cost.calls, function.name)?;
        writeln!(out, "{}", source_line(shown, function.start))?;
    }
    rest(list.len(), shown, "function", out)
}

/// The source line of an address, at the end of a row; nothing if it has none.
fn source_line(shown: &Shown<'_>, address: u64) -> String {
    let line = shown.places.line(address);
    line.map_or_else(String::new, |line| {
        format!("  {}:{}", short(line.file), line.line)
    })
}

/// What was left out.
fn rest(all: usize, shown: &Shown<'_>, what: &str, out: &mut impl Write) -> io::Result<()> {
    match all.saturating_sub(shown.rows()) {
        0 => Ok(()),
        more => writeln!(
            out,
            "({more} more {what}{})",
            if more == 1 { "" } else { "s" }
        ),
    }
}

/// The cost of each source line, with its text where it can be read.
///
/// # Errors
///
/// A failing write.
pub fn lines(shown: &Shown<'_>, text: &SourceLine<'_>, out: &mut impl Write) -> io::Result<()> {
    summary(shown, out)?;
    let list = shown.profile.by_line(shown.insns, shown.places, shown.by);
    if list.is_empty() {
        return writeln!(out, "no source lines: the program has no line tables");
    }
    write!(
        out,
        "{:>7} {:>14} {:>14}",
        "%",
        unit(shown.by),
        "executions"
    )?;
    if shown.profile.timed {
        write!(out, " {:>14}", other_unit(shown.by))?;
    }
    writeln!(out, "  line")?;
    let whole = shown.whole();
    for line in list.iter().take(shown.rows()) {
        let own = line.own.of(shown.by);
        write!(
            out,
            "{:>7.2} {own:>14} {:>14}",
            percent(own, whole),
            line.count
        )?;
        if let Some(other) = shown.other(line.own) {
            write!(out, " {other:>14}")?;
        }
        write!(out, "  {}:{}", short(&line.file), line.line)?;
        match text(&line.file, line.line) {
            Some(text) => writeln!(out, "  {}", text.trim())?,
            None => writeln!(out)?,
        }
    }
    rest(list.len(), shown, "line", out)
}

/// The loops that cost most.
///
/// # Errors
///
/// A failing write.
pub fn loops(shown: &Shown<'_>, out: &mut impl Write) -> io::Result<()> {
    summary(shown, out)?;
    let list = shown.profile.loops(shown.insns, shown.by);
    writeln!(
        out,
        "{:>7} {:>14} {:>12} {:>12} {:>10}  loop",
        "%",
        unit(shown.by),
        "entries",
        "iterations",
        "per entry"
    )?;
    let whole = shown.whole();
    for found in list.iter().take(shown.rows()) {
        let own = found.own.of(shown.by);
        let mean = found.iterations as f64 / found.entries.max(1) as f64;
        write!(
            out,
            "{:>7.2} {own:>14} {:>12} {:>12} {mean:>10.1}  {:#x}..{:#x}",
            percent(own, whole),
            found.entries,
            found.iterations,
            found.head,
            found.back
        )?;
        if let Some(function) = found.function {
            write!(out, "  {}", shown.profile.functions.get(function).name)?;
        }
        writeln!(out, "{}", source_line(shown, found.head))?;
    }
    rest(list.len(), shown, "loop", out)
}

/// Which function called which, how often, and what the calls cost.
///
/// # Errors
///
/// A failing write.
pub fn calls(shown: &Shown<'_>, out: &mut impl Write) -> io::Result<()> {
    summary(shown, out)?;
    let list = shown.profile.call_edges(shown.by);
    writeln!(
        out,
        "{:>7} {:>14} {:>12}  caller -> callee",
        "%",
        unit(shown.by),
        "calls"
    )?;
    let whole = shown.whole();
    for edge in list.iter().take(shown.rows()) {
        let total = edge.total.of(shown.by);
        writeln!(
            out,
            "{:>7.2} {total:>14} {:>12}  {} -> {}",
            percent(total, whole),
            edge.calls,
            what_name(edge.caller, &shown.profile.functions),
            shown.profile.functions.get(edge.callee).name
        )?;
    }
    rest(list.len(), shown, "call", out)
}

/// The tree of calls, then how long the calls of each function took. Functions
/// whose call was not seen are marked with `?`. Paths that cost less than `least`
/// percent are left out.
///
/// # Errors
///
/// A failing write.
pub fn tree(
    shown: &Shown<'_>,
    depth: Option<usize>,
    least: f64,
    out: &mut impl Write,
) -> io::Result<()> {
    summary(shown, out)?;
    writeln!(
        out,
        "{:>7} {:>14} {:>14} {:>12}  call path",
        "total %", "total", "self", "calls"
    )?;
    let tree = &shown.profile.tree;
    let (totals, children) = (tree.totals(), tree.children());
    let total = |id: NodeId| totals.get(id.index()).map_or(0, |cost| cost.of(shown.by));
    let below = |id: NodeId| {
        let mut list = children.get(id.index()).cloned().unwrap_or_default();
        order::sort_by_key(&mut list, |&child| std::cmp::Reverse(total(child)));
        list
    };
    let mut open: Vec<(NodeId, usize)> = below(NodeId::ROOT)
        .into_iter()
        .rev()
        .map(|id| (id, 0))
        .collect();
    let mut left_out = 0u64;
    let whole = shown.whole();
    while let Some((id, level)) = open.pop() {
        let Some(node) = tree.node(id) else { continue };
        let share = percent(total(id), whole);
        if total(id) == 0 || share < least || depth.is_some_and(|depth| level >= depth) {
            left_out += u64::from(total(id) > 0);
            continue;
        }
        let name = what_name(node.what, &shown.profile.functions);
        let mark = if node.inferred { "?" } else { "" };
        writeln!(
            out,
            "{share:>7.2} {:>14} {:>14} {:>12}  {:indent$}{name}{mark}",
            total(id),
            node.own.of(shown.by),
            node.calls,
            "",
            indent = 2 * level
        )?;
        open.extend(below(id).into_iter().rev().map(|child| (child, level + 1)));
    }
    if left_out > 0 {
        writeln!(out, "({} left out)", count(left_out, "path"))?;
    }
    latency_table(shown, out)
}

/// How long calls took.
fn latency_table(shown: &Shown<'_>, out: &mut impl Write) -> io::Result<()> {
    let Some(latencies) = shown.latencies else {
        return Ok(());
    };
    writeln!(
        out,
        "\n{:>12} {:>12} {:>12} {:>12} {:>12} {:>14}  {} per call of",
        "whole calls",
        "min",
        "p50",
        "p99",
        "max",
        "mean",
        unit(shown.by)
    )?;
    let mut list = shown.profile.by_function(shown.by);
    order::sort_by_key(&mut list, |cost| {
        (std::cmp::Reverse(cost.total.of(shown.by)), cost.function)
    });
    let measured = list
        .iter()
        .filter_map(|cost| Some((cost, latencies.get(cost.function)?)));
    let measured: Vec<_> = measured.collect();
    for (cost, latency) in measured.iter().take(shown.rows()) {
        let spans = match shown.by {
            hartrace_analyze::Measure::Instructions => latency.insns(),
            hartrace_analyze::Measure::Time => latency.time(),
        };
        writeln!(
            out,
            "{:>12} {:>12} {:>12} {:>12} {:>12} {:>14.1}  {}",
            latency.calls,
            spans.min,
            spans.p50,
            spans.p99,
            spans.max,
            spans.mean,
            shown.profile.functions.get(cost.function).name
        )?;
    }
    rest(measured.len(), shown, "function", out)
}
