//! Disassembly and source text with costs.

use super::{Shown, SourceLine, percent, short};
use hartrace_analyze::{FunctionId, LineCost, instruction_text};
use hartrace_flow::SpaceId;
use hartrace_flow::order;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// The disassembly of each function that ran, the most expensive first, or of those
/// with this name; executions, and the time where there is one, before each
/// instruction, and source lines between them.
///
/// # Errors
///
/// A failing write.
pub fn instructions(
    shown: &Shown<'_>,
    only: Option<&str>,
    text: &SourceLine<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    let functions = &shown.profile.functions;
    let wanted = |id: FunctionId| only.is_none_or(|name| functions.get(id).name == name);
    let mut list: Vec<FunctionId> = shown
        .profile
        .by_function(shown.by)
        .iter()
        .map(|c| c.function)
        .collect();
    list.retain(|&id| wanted(id));
    let mut first = true;
    for id in list.into_iter().take(shown.rows()) {
        let ranges: Vec<(u64, u64)> = functions
            .ranges()
            .filter(|range| range.2 == id)
            .map(|range| (range.0, range.1))
            .collect();
        for (start, end) in ranges {
            if !std::mem::take(&mut first) {
                writeln!(out)?;
            }
            writeln!(out, "{}", functions.get(id).name)?;
            range(shown, (start, end), text, out)?;
        }
    }
    Ok(())
}

fn range(
    shown: &Shown<'_>,
    (start, end): (u64, u64),
    text: &SourceLine<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    let lines = shown.places.line_ranges(start, end);
    let whole = shown.whole();
    let mut last = None;
    let code = shown.image.insns(SpaceId::FIRST, start, end - start);
    for (pc, insn) in code.take_while(|(pc, _)| *pc < end) {
        if let Some(line) = lines.at(pc).filter(|line| last != Some(*line)) {
            write!(out, "{:>37}; {}:{}", "", short(line.file), line.line)?;
            match text(line.file, line.line) {
                Some(text) => writeln!(out, "  {}", text.trim_end())?,
                None => writeln!(out)?,
            }
            last = Some(line);
        }
        let cost = shown
            .insns
            .get(&(SpaceId::FIRST, pc))
            .copied()
            .unwrap_or_default();
        match (cost.insns, shown.profile.timed) {
            (0, _) => write!(out, "{:>35}", "-")?,
            (count, true) => write!(
                out,
                "{:>7.2} {count:>13} {:>13}",
                percent(cost.of(shown.by), whole),
                cost.time
            )?,
            (count, false) => write!(
                out,
                "{:>21.2} {count:>13}",
                percent(cost.of(shown.by), whole),
            )?,
        }
        let names = shown.places.names().within(shown.image, SpaceId::FIRST);
        writeln!(out, "  {pc:x}:  {}", instruction_text(pc, &insn, names))?;
    }
    Ok(())
}

/// Each source file of which something ran, with the cost of every line. Files that
/// cannot be read show only the lines that ran.
///
/// # Errors
///
/// A failing write.
pub fn source(shown: &Shown<'_>, text: &SourceLine<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut files: BTreeMap<String, BTreeMap<u32, LineCost>> = BTreeMap::new();
    for line in shown.profile.by_line(shown.insns, shown.places, shown.by) {
        let file = files.entry(line.file.clone()).or_default();
        file.insert(line.line, line);
    }
    let mut order: Vec<(&String, u64)> = files
        .iter()
        .map(|(file, lines)| (file, lines.values().map(|l| l.own.of(shown.by)).sum()))
        .collect();
    order::sort_by_key(&mut order, |(_, cost)| std::cmp::Reverse(*cost));
    let whole = shown.whole();
    for (at, (file, _)) in order.iter().take(shown.rows()).enumerate() {
        let gap = if at == 0 { "" } else { "\n" };
        writeln!(out, "{gap}{file}")?;
        let Some(lines) = files.get(*file) else {
            continue;
        };
        let mut numbers: BTreeSet<u32> = lines.keys().copied().collect();
        numbers.extend((1..).take_while(|n| text(file, *n).is_some()));
        for number in numbers {
            match lines.get(&number) {
                Some(line) => write!(
                    out,
                    "{:>7.2} {:>13} {:>13}",
                    percent(line.own.of(shown.by), whole),
                    line.own.of(shown.by),
                    line.count
                )?,
                None => write!(out, "{:35}", "")?,
            }
            let text = text(file, number).unwrap_or_default();
            writeln!(out, "  {number:>5}  {}", text.trim_end())?;
        }
    }
    Ok(())
}
