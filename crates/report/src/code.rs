//! Code and source text with counts, and executed instructions one by one.

use crate::about::About;
use crate::columns::{Branches, Callers, Code, CodeRows, Rows, Source};
use crate::functions::Numbered;
use crate::recent::{Last, Snapshot};
use crate::strings::Strings;
use crate::tracks::Scale;
use hartrace_analyze::{
    Coverage, FunctionId, Functions, LineRanges, Measure, NamesIn, Outer, Places, cause_name,
    instruction_text,
};
use hartrace_flow::order;
use hartrace_flow::{Exit, Fetched, Image, Mark, Run, SpaceId, Trap};
use hartrace_isa::Flow;
use std::collections::HashMap;

/// Instructions that are listed one by one at most.
pub(crate) const ROWS: u64 = 200;

/// What became of an instruction, as the page knows it.
const EXECUTED: u8 = 0;
const TRAPPED: u8 = 1;
const NOT_RETIRED: u8 = 2;

/// The source lines of all code that a report shows.
pub(crate) fn lines<'a>(about: &About<'a>, coverage: &Coverage) -> LineRanges<'a> {
    let first = coverage.insns.first_key_value().map(|(pc, _)| *pc);
    let last = coverage.insns.last_key_value().map(|(pc, _)| *pc);
    match first.zip(last) {
        Some((low, high)) => about.places.line_ranges(low, high.saturating_add(1)),
        None => LineRanges::default(),
    }
}

/// File and line of an address.
fn place(ranges: &LineRanges<'_>, pc: u64, strings: &mut Strings) -> (i64, u32) {
    match ranges.at(pc) {
        Some(line) => (strings.of(line.file), line.line),
        None => (-1, 0),
    }
}

fn hex(address: u64) -> String {
    format!("{address:#x}")
}

/// Where an instruction leads, if it says so.
fn target(pc: u64, insn: &Fetched) -> Option<String> {
    let offset = match Flow::of(insn.bits, insn.isa) {
        Flow::Branch { offset } | Flow::Jump { offset, .. } => offset,
        _ => return None,
    };
    Some(hex(pc.wrapping_add_signed(offset.into())))
}

/// The code of functions that ran, the most expensive first, as far as `limit`
/// instructions reach; and how many functions are left out.
pub(crate) fn code(
    about: &About<'_>,
    (functions, numbered): (&Functions, &Numbered),
    (coverage, ranges): (&Coverage, &LineRanges<'_>),
    limit: usize,
    strings: &mut Strings,
) -> (Vec<Code>, usize) {
    let mut parts: HashMap<FunctionId, Vec<(u64, u64)>> = HashMap::new();
    for (start, end, id) in functions.ranges() {
        parts.entry(id).or_default().push((start, end));
    }
    let ran = numbered.columns.total.iter().filter(|t| **t > 0).count();
    let (mut all, mut used, mut left_out) = (Vec::new(), 0, 0);
    for (number, id) in (0i64..).zip(numbered.ids.iter().take(ran)) {
        let Some(parts) = parts.get(id) else {
            continue;
        };
        let count = |&(start, end): &(u64, u64)| coverage.insns.range(start..end).count();
        let size: usize = parts.iter().map(count).sum();
        if size == 0 || used + size > limit {
            left_out += usize::from(size > 0);
            continue;
        }
        used += size;
        let mut rows = CodeRows::default();
        for &(start, end) in parts {
            for (&pc, &count) in coverage.insns.range(start..end) {
                if let Some(insn) = about.image.fetch(SpaceId::FIRST, pc) {
                    let place = place(ranges, pc, strings);
                    code_row(&mut rows, (pc, &insn, count), place, about, coverage);
                }
            }
        }
        let function = number;
        all.push(Code { function, rows });
    }
    (all, left_out)
}

fn code_row(
    rows: &mut CodeRows,
    (pc, insn, count): (u64, &Fetched, u64),
    (file, line): (i64, u32),
    about: &About<'_>,
    coverage: &Coverage,
) {
    let branch = coverage.branches.get(&pc);
    let digits = usize::from(insn.len.min(4)) * 2;
    rows.address.push(hex(pc));
    rows.bytes.push(format!("{:0digits$x}", insn.bits));
    let names = about.places.names().within(about.image, SpaceId::FIRST);
    rows.text.push(instruction_text(pc, insn, names));
    rows.count.push(count);
    rows.file.push(file);
    rows.line.push(line);
    rows.target.push(target(pc, insn));
    rows.taken.push(branch.map_or(-1, |b| b.taken as i64));
    rows.not_taken
        .push(branch.map_or(-1, |b| b.not_taken as i64));
}

/// Branches that were executed, the most frequent if there are too many; and how many are
/// left out.
pub(crate) fn branches(
    (functions, numbered): (&Functions, &Numbered),
    (coverage, ranges): (&Coverage, &LineRanges<'_>),
    limit: usize,
    strings: &mut Strings,
) -> (Branches, usize) {
    let executed = coverage.branches.iter().filter(|(_, b)| b.all() > 0);
    let mut list: Vec<_> = executed.map(|(pc, branch)| (*pc, *branch)).collect();
    order::sort_by_key(&mut list, |(pc, branch)| {
        (std::cmp::Reverse(branch.all()), *pc)
    });
    let left_out = list.len().saturating_sub(limit);
    list.truncate(limit);
    order::sort_by_key(&mut list, |(pc, _)| *pc);
    let mut columns = Branches::default();
    for (pc, branch) in list {
        let (file, line) = place(ranges, pc, strings);
        columns.address.push(hex(pc));
        columns.function.push(numbered.number(functions.of(pc)));
        columns.file.push(file);
        columns.line.push(line);
        columns.taken.push(branch.taken);
        columns.not_taken.push(branch.not_taken);
    }
    (columns, left_out)
}

/// Source files with code that ran, those with the most executions first, as far as
/// `limit` bytes reach; the names of those that are not found, of which only counts are
/// shown; and how many are left out.
pub(crate) fn sources(
    about: &About<'_>,
    coverage: &Coverage,
    limit: usize,
    strings: &mut Strings,
) -> (Vec<Source>, Vec<String>, usize) {
    let weight = |lines: &std::collections::BTreeMap<u32, hartrace_analyze::LineCoverage>| {
        lines.values().map(|line| line.count).sum::<u64>()
    };
    let files = coverage
        .files
        .iter()
        .map(|(file, lines)| (weight(lines), file, lines));
    let mut files: Vec<_> = files.filter(|(weight, ..)| *weight > 0).collect();
    order::sort_by_key(&mut files, |(weight, file, _)| {
        (std::cmp::Reverse(*weight), *file)
    });
    let (mut all, mut missing, mut used, mut left_out) = (Vec::new(), Vec::new(), 0, 0);
    for (_, file, lines) in files {
        let found = (about.source)(file);
        if found.is_none() {
            missing.push(file.clone());
        }
        let numbers: Vec<u32> = match &found {
            Some(_) => Vec::new(),
            None => lines.keys().copied().collect(),
        };
        let text = found.unwrap_or_default();
        let size: usize = text.iter().map(|line| line.len() + 8).sum();
        let size = size + 16 * numbers.len();
        if used + size > limit {
            left_out += 1;
            continue;
        }
        used += size;
        let count = |number: u32| lines.get(&number).map_or(-1, |line| line.count as i64);
        all.push(Source {
            file: strings.of(file),
            first: 1,
            count: match numbers.is_empty() {
                true => (1u32..).zip(&text).map(|(line, _)| count(line)).collect(),
                false => numbers.iter().map(|line| count(*line)).collect(),
            },
            lines: text,
            numbers,
        });
    }
    (all, missing, left_out)
}

/// The last instructions of a snapshot, and what came after them.
pub(crate) fn rows(
    snapshot: &Snapshot,
    (image, places): (&Image, &Places<'_>),
    (functions, numbered): (&Functions, &Numbered),
    (scale, limit): (&Scale, u64),
    strings: &mut Strings,
) -> Rows {
    let mut rows = Rows::default();
    let insns: u64 = snapshot.runs.iter().map(|p| u64::from(p.run.insns)).sum();
    let mut index = snapshot.insn.saturating_sub(insns);
    let first = snapshot.insn.saturating_sub(limit);
    for passed in &snapshot.runs {
        let run = &passed.run;
        let names = places.names().within(image, passed.space);
        let found = image.insns(passed.space, run.start, run.insns.into());
        for (n, (pc, insn)) in (1u32..).zip(found) {
            index += 1;
            if index <= first {
                continue;
            }
            let at = match (scale.measure, passed.time) {
                (Measure::Time, time) => time.unwrap_or(0),
                (Measure::Instructions, _) => index - 1,
            };
            let note = match n == run.insns {
                true => outcome(run, names),
                false => String::new(),
            };
            rows.at.push(scale.point(at));
            rows.text.push(instruction_text(pc, &insn, names));
            rows.note.push(note);
            rows.kind.push(EXECUTED);
            locate(&mut rows, pc, places, (functions, numbered), strings);
        }
    }
    if let Some((trap, epc)) = snapshot.not_retired() {
        not_retired(&mut rows, (trap, epc), snapshot, (image, places), scale);
        locate(&mut rows, epc, places, (functions, numbered), strings);
    } else if let Some(last) = snapshot.last {
        follows(&mut rows, last);
    }
    rows
}

/// Where an instruction is.
fn locate(
    rows: &mut Rows,
    pc: u64,
    places: &Places<'_>,
    (functions, numbered): (&Functions, &Numbered),
    strings: &mut Strings,
) {
    let (file, line) = line_of(places, pc, strings);
    rows.address.push(hex(pc));
    rows.function.push(numbered.number(functions.of(pc)));
    rows.file.push(file);
    rows.line.push(line);
}

/// The instruction that caused the exception after a snapshot.
fn not_retired(
    rows: &mut Rows,
    (trap, epc): (Trap, u64),
    snapshot: &Snapshot,
    (image, places): (&Image, &Places<'_>),
    scale: &Scale,
) {
    let passed = snapshot.runs.last();
    let space = passed.map_or(SpaceId::FIRST, |passed| passed.space);
    let at = match scale.measure {
        Measure::Time => passed.and_then(|passed| passed.time).unwrap_or(0),
        Measure::Instructions => snapshot.insn,
    };
    let insn = image.fetch(space, epc);
    let text = insn.map(|insn| instruction_text(epc, &insn, places.names().within(image, space)));
    let value = trap.tval.map(|value| format!(", value {value:#x}"));
    let (cause, value) = (cause_name(trap.cause), value.unwrap_or_default());
    rows.at.push(scale.point(at));
    rows.text
        .push(text.unwrap_or_else(|| "not in the program".to_owned()));
    rows.note.push(format!("did not retire: {cause}{value}"));
    rows.kind.push(NOT_RETIRED);
}

/// Notes at the last instruction what came after it.
fn follows(rows: &mut Rows, last: Last) {
    let (Some(note), Some(kind)) = (rows.note.last_mut(), rows.kind.last_mut()) else {
        return;
    };
    let Some(text) = after(last) else { return };
    if !note.is_empty() {
        note.push_str(", ");
    }
    note.push_str(&text);
    if matches!(last, Last::Trap(_)) {
        *kind = TRAPPED;
    }
}

/// What has not returned at a snapshot.
pub(crate) fn callers(
    outer: &[Outer],
    places: &Places<'_>,
    (functions, numbered): (&Functions, &Numbered),
    strings: &mut Strings,
) -> Callers {
    let mut all = Callers::default();
    for outer in outer {
        let (pc, trap) = match *outer {
            Outer::Call(site) => (Some(site), String::new()),
            Outer::Trap(cause, epc) => (epc, cause_name(cause)),
        };
        let (file, line) = pc.map_or((-1, 0), |pc| line_of(places, pc, strings));
        let function = pc.and_then(|pc| functions.of(pc));
        all.address.push(pc.map(hex));
        all.function.push(numbered.number(function));
        all.file.push(file);
        all.line.push(line);
        all.trap.push(trap);
    }
    all
}

/// File and line of an address, looked up by itself.
fn line_of(places: &Places<'_>, pc: u64, strings: &mut Strings) -> (i64, u32) {
    match places.line(pc) {
        Some(line) => (strings.of(line.file), line.line),
        None => (-1, 0),
    }
}

/// What the last instruction of a run did.
fn outcome(run: &Run, names: NamesIn<'_>) -> String {
    match run.exit {
        Exit::Taken => "taken".to_owned(),
        Exit::NotTaken => "not taken".to_owned(),
        exit if exit.is_indirect() => {
            let label = names.label(run.next).to_string();
            match label.as_str() {
                "" => format!("to {}", hex(run.next)),
                label => format!("to {label}"),
            }
        }
        _ => String::new(),
    }
}

/// What came after the last instruction.
pub(crate) fn after(last: Last) -> Option<String> {
    Some(match last {
        Last::Trap(trap) => format!("trap: {}", cause_name(trap.cause)),
        Last::Gap(reason) => format!("gap: {reason}"),
        Last::Mark(Mark::Off) => "tracing is turned off".to_owned(),
        Last::Mark(Mark::Halted) => "halted for a debugger".to_owned(),
        Last::Mark(Mark::Reset) => "reset".to_owned(),
        Last::Mark(Mark::PowerDown) => "the hart enters a low-power state".to_owned(),
        Last::Mark(_) => return None,
    })
}
