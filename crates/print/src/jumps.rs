//! Branches, indirect jumps and loops: which way they went.

use crate::json::{self, Hex};
use hartrace_analyze::{Jumps, Places};
use hartrace_flow::order;
use serde::Serialize;
use std::cmp::Reverse;
use std::io::{self, Write};

/// Targets of an indirect jump that are listed in a table.
const TARGETS: usize = 4;

/// Three tables, the most frequent first: branches, indirect jumps, loops; of each at
/// most `top` rows.
///
/// # Errors
///
/// A failing write.
pub fn text(
    jumps: &Jumps,
    places: &Places<'_>,
    top: Option<usize>,
    out: &mut impl Write,
) -> io::Result<()> {
    let rows = top.unwrap_or(usize::MAX);
    let mut branches: Vec<_> = jumps.branches.iter().collect();
    order::sort_by_key(&mut branches, |(pc, branch)| (Reverse(branch.all()), **pc));
    writeln!(
        out,
        "{:>12} {:>12} {:>8}  branch",
        "executions", "taken", "taken %"
    )?;
    for (pc, branch) in branches.iter().take(rows) {
        let percent = branch.taken as f64 * 100.0 / branch.all().max(1) as f64;
        let (all, taken) = (branch.all(), branch.taken);
        writeln!(
            out,
            "{all:>12} {taken:>12} {percent:>8.2}  {}",
            places.at(**pc)
        )?;
    }
    more(branches.len(), rows, out)?;
    let mut indirect: Vec<_> = jumps.indirect.iter().collect();
    order::sort_by_key(&mut indirect, |(pc, jump)| (Reverse(jump.count()), **pc));
    writeln!(
        out,
        "\n{:>12} {:>8}  {:<11}  indirect jump -> targets",
        "executions", "targets", "kind"
    )?;
    for (pc, jump) in indirect.iter().take(rows) {
        let (all, targets) = (jump.count(), jump.targets.len());
        writeln!(
            out,
            "{all:>12} {targets:>8}  {:<11}  {}",
            jump.kind(),
            places.at(**pc)
        )?;
        for (target, count) in jump.targets.iter().take(TARGETS) {
            writeln!(
                out,
                "{count:>12} {:>8}  {:<11}  -> {}",
                "",
                "",
                places.at(*target)
            )?;
        }
        if targets > TARGETS {
            writeln!(out, "{:>35}  -> {} more", "", targets - TARGETS)?;
        }
    }
    more(indirect.len(), rows, out)?;
    let mut loops: Vec<_> = jumps.loops.iter().collect();
    order::sort_by_key(&mut loops, |(head, found)| {
        (Reverse(found.trips.rounds), **head)
    });
    writeln!(
        out,
        "\n{:>12} {:>12} {:>8} {:>10} {:>12}  loop",
        "entries", "rounds", "min", "mean", "max"
    )?;
    for (head, found) in loops.iter().take(rows) {
        let trips = found.trips;
        let mean = trips.rounds as f64 / trips.entries.max(1) as f64;
        writeln!(
            out,
            "{:>12} {:>12} {:>8} {mean:>10.1} {:>12}  {}",
            trips.entries,
            trips.rounds,
            trips.min,
            trips.max,
            places.at(**head)
        )?;
    }
    more(loops.len(), rows, out)
}

fn more(all: usize, rows: usize, out: &mut impl Write) -> io::Result<()> {
    match all.saturating_sub(rows) {
        0 => Ok(()),
        more => writeln!(out, "({more} more)"),
    }
}

#[derive(Serialize)]
struct Header {
    r#type: &'static str,
    schema: &'static str,
    version: u32,
}

#[derive(Serialize)]
struct Branch {
    r#type: &'static str,
    pc: Hex,
    taken: u64,
    not_taken: u64,
}

#[derive(Serialize)]
struct Indirect {
    r#type: &'static str,
    pc: Hex,
    kind: &'static str,
    count: u64,
    targets: Vec<Target>,
}

#[derive(Serialize)]
struct Target {
    pc: Hex,
    count: u64,
}

#[derive(Serialize)]
struct Loop {
    r#type: &'static str,
    head: Hex,
    back: Hex,
    entries: u64,
    rounds: u64,
    min: u64,
    max: u64,
}

/// Everything as JSON lines, by address.
///
/// # Errors
///
/// A failing write.
pub fn json(jumps: &Jumps, out: &mut impl Write) -> io::Result<()> {
    let header = Header {
        r#type: "header",
        schema: "hartrace-branches",
        version: 1,
    };
    json::line(&header, out)?;
    for (&pc, branch) in &jumps.branches {
        let object = Branch {
            r#type: "branch",
            pc: Hex(pc),
            taken: branch.taken,
            not_taken: branch.not_taken,
        };
        json::line(&object, out)?;
    }
    for (&pc, jump) in &jumps.indirect {
        let targets = jump.targets.iter();
        let object = Indirect {
            r#type: "indirect",
            pc: Hex(pc),
            kind: jump.kind(),
            count: jump.count(),
            targets: targets
                .map(|&(pc, count)| Target { pc: Hex(pc), count })
                .collect(),
        };
        json::line(&object, out)?;
    }
    for (&head, found) in &jumps.loops {
        let object = Loop {
            r#type: "loop",
            head: Hex(head),
            back: Hex(found.back),
            entries: found.trips.entries,
            rounds: found.trips.rounds,
            min: found.trips.min,
            max: found.trips.max,
        };
        json::line(&object, out)?;
    }
    Ok(())
}
