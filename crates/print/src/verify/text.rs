//! A report as text.

use super::place::{Places, register};
use super::{Facts, Outcome};
use crate::words::{count, encoding, interrupt};
use hartrace_capture::verify::End;
use hartrace_flow::Mode;
use hartrace_isa::csr;
use hartrace_logs::Moment;
use hartrace_tandem::verify::{Difference, Field, Kind, Mismatch, Past};
use hartrace_tandem::{Config, Group, How, Problem, Register};
use std::fmt::Write as _;

/// Groups before a mismatch that are shown.
const SHOWN: usize = 8;

/// Trace and model differ.
pub(super) fn mismatch(
    facts: &Facts<'_>,
    number: u64,
    moment: Option<Moment>,
    mismatch: &Mismatch<'_>,
) -> String {
    let Facts { places, config, .. } = facts;
    let Mismatch {
        group, insn, pc, ..
    } = mismatch;
    let mut out = format!(
        "mismatch {number}: instruction {insn}, group {}, byte {:#x}",
        group.number, group.at
    );
    if let Some(moment) = moment {
        let _ = write!(out, ", time {moment}");
    }
    out.push('\n');
    let _ = write!(out, "  at {}", places.address(*pc));
    if let Some((file, line)) = places.line(*pc) {
        let _ = write!(out, ", {file}:{line}");
    }
    out.push('\n');
    if let Some(bits) = mismatch.bits {
        let _ = writeln!(
            out,
            "     {:<8}  {}",
            encoding(bits),
            places.text(*pc, bits)
        );
    }
    if let Some(cause) = reported_cause(group) {
        let _ = writeln!(out, "     the trace takes a trap: {}", places.cause(cause));
    }
    let mut rows =
        vec![["field", "expected (model)", "trace", "differing bits"].map(str::to_owned)];
    rows.extend(mismatch.differences.iter().map(|d| row(facts, *pc, d)));
    table(&rows, &mut out);
    let past = mismatch.past;
    let past = past.get(past.len().saturating_sub(SHOWN)..).unwrap_or(past);
    if !past.is_empty() {
        out += "  before it\n";
        before(places, config, past, &mut out);
    }
    out.push('\n');
    out
}

/// The cause of the trap that a group reports.
pub(super) fn reported_cause(group: &Group) -> Option<u64> {
    let causes = [csr::MCAUSE, csr::SCAUSE].map(Register::csr);
    let found = group
        .changes
        .iter()
        .find(|c| causes.contains(&c.register))?;
    let trap = group.changes.iter().any(|c| {
        let epcs = [csr::MEPC, csr::SEPC].map(Register::csr);
        epcs.contains(&c.register)
    });
    match found.how {
        How::Full(cause) if trap => Some(cause),
        _ => None,
    }
}

fn before(places: &Places<'_>, config: &Config, past: &[Past], out: &mut String) {
    let digits = config.xlen.bits() as usize / 4;
    let width = past.last().map_or(1, |p| p.insn.to_string().len());
    for Past { insn, pc, bits, .. } in past {
        let (bits, text) = match bits {
            0 => (String::new(), "(no instruction)".to_owned()),
            _ => (encoding(*bits), places.text(*pc, *bits)),
        };
        let symbol = places.symbol(*pc).unwrap_or_default();
        let line = format!("    {insn:>width$}  {pc:0digits$x}  {bits:<8}  {text:<32}  {symbol}");
        *out += line.trim_end();
        out.push('\n');
    }
}

/// What differs, in words.
fn row(facts: &Facts<'_>, pc: u64, difference: &Difference) -> [String; 4] {
    let Difference {
        field,
        expected,
        actual,
    } = *difference;
    let name = match field {
        Field::Register(r) => register(r),
        other => other.to_string(),
    };
    let (none, unreported) = match (field, expected, actual) {
        // One that the trace shows only by its handler.
        (Field::Interrupt, None, None) => ("taken, cause unknown", "not reported"),
        _ => nothing(field),
    };
    let shown = |value: Option<u64>, none: &str| match value {
        Some(value) => value_text(facts, pc, field, value),
        None => none.to_owned(),
    };
    let plain = matches!(
        field,
        Field::Pc | Field::Mode | Field::Interrupt | Field::Handler | Field::StoreSize
    );
    let bits = match (expected, actual) {
        (Some(a), Some(b)) if !plain => format!("{:#x}", a ^ b),
        _ => String::new(),
    };
    [name, shown(expected, none), shown(actual, unreported), bits]
}

/// What it means that the model or the trace has nothing.
const fn nothing(field: Field) -> (&'static str, &'static str) {
    match field {
        Field::Register(_) => ("not written", "not reported"),
        Field::LoadAddress => ("no access", "no access"),
        Field::StoreAddress | Field::StoreSize | Field::StoreData => ("no store", "no store"),
        Field::Interrupt => ("disabled", "not reported"),
        Field::Handler => ("no enabled interrupt", "not reported"),
        Field::Insn | Field::Pc | Field::Mode => ("nothing", "not reported"),
    }
}

fn value_text(facts: &Facts<'_>, pc: u64, field: Field, value: u64) -> String {
    let Facts { places, config, .. } = facts;
    let hex = |bits: u32| format!("{value:#0width$x}", width = 2 + bits as usize / 4);
    match field {
        Field::Insn => {
            let bits = value as u32;
            format!("{} {}", encoding(bits), places.text(pc, bits))
        }
        Field::Pc | Field::Handler => places.address(value),
        Field::Mode => match Mode::from_code(value as u8) {
            Some(mode) => mode.name().to_owned(),
            None => value.to_string(),
        },
        Field::Register(r) if r.is_float() => hex(config.flen.bits()),
        Field::Register(r) if matches!(r.as_csr(), Some(csr::MCAUSE | csr::SCAUSE)) => {
            format!("{} {}", hex(config.xlen.bits()), places.cause(value))
        }
        Field::Register(_) | Field::LoadAddress | Field::StoreAddress | Field::StoreData => {
            hex(config.xlen.bits())
        }
        Field::StoreSize => count(value, "byte"),
        Field::Interrupt => interrupt(value as u32),
    }
}

/// Rows with columns of one width each.
fn table(rows: &[[String; 4]], out: &mut String) {
    let mut widths = [0; 4];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    for row in rows {
        let mut line = String::from("  ");
        for (cell, width) in row.iter().zip(widths) {
            let _ = write!(line, "  {cell:<width$}");
        }
        *out += line.trim_end();
        out.push('\n');
    }
}

/// Something is wrong with the trace.
pub(super) fn problem(problem: &Problem) -> String {
    let Problem {
        at,
        group,
        fault,
        value,
    } = problem;
    format!(
        "damage: group {group}, byte {at:#x}: {}: {} ({value:#x})\n",
        fault.code(),
        fault.text()
    )
}

/// The trace can be read again.
pub(super) fn resumed(skipped: u64) -> String {
    format!("  resynchronised {} later\n\n", count(skipped, "byte"))
}

/// How it all went.
pub(super) fn summary(outcome: &Outcome<'_>) -> String {
    let Outcome { counters, end, .. } = outcome;
    let mut out = String::new();
    let mut line = |name: &str, text: &str| {
        let _ = writeln!(out, "{name:<13} {text}");
    };
    match end {
        End::Whole => {}
        End::Until => line("ended", "before the instruction given with --until"),
        End::Full => line("ended", "after --max-mismatches mismatches"),
        End::Stuck => line(
            "ended",
            "at damaged bytes; use --resync to continue after them",
        ),
        End::Interrupted => line("ended", "interrupted by a signal"),
        End::Lost => line("ended", "the trace could not be read any further"),
    }
    let mut groups = vec![
        count(counters.retired, "instruction"),
        count(counters.exceptions, "exception"),
        count(counters.interrupts, "interrupt"),
    ];
    for (number, what) in [
        (counters.inits, "of initial state"),
        (counters.resets, "of resets"),
        (counters.updates, "of state alone"),
        (counters.unchecked, "that could not be checked"),
    ] {
        if number > 0 {
            groups.push(format!("{number} {what}"));
        }
    }
    line(
        "groups",
        &format!("{}: {}", counters.groups, groups.join(", ")),
    );
    line("compared", &by_kind(&counters.compared));
    let taken: Vec<String> = [
        (counters.loads_taken, "load"),
        (counters.csrs_taken, "CSR"),
        (counters.conditionals_taken, "store-conditional"),
    ]
    .into_iter()
    .filter(|(number, _)| *number > 0)
    .map(|(number, what)| count(number, what))
    .collect();
    if !taken.is_empty() {
        line("from trace", &taken.join(", "));
    }
    if counters.unmodelled > 0 {
        let text = count(counters.unmodelled, "change");
        line(
            "not modelled",
            &format!("{text} to CSRs that the hart does not have"),
        );
    }
    if outcome.problems > 0 {
        let text = count(outcome.problems, "place");
        let skipped = count(outcome.skipped, "byte");
        line("damage", &format!("{text}, {skipped} skipped"));
    }
    if counters.mismatches > 0 {
        line("differences", &by_kind(&counters.differences));
    }
    if counters.taken_back > 0 {
        let text = match counters.taken_back {
            1 => "the trace later corrected 1 difference: the wrong value was in the trace, not \
                in the core"
                .to_owned(),
            n => format!(
                "the trace later corrected {n} differences: the wrong values were in \
                the trace, not in the core"
            ),
        };
        line("corrected", &text);
    }
    let verdict = match outcome.verdict() {
        "mismatch" if counters.mismatches == 1 => "1 mismatch".to_owned(),
        "mismatch" => format!("{} mismatches", counters.mismatches),
        "interrupted" => "clean so far".to_owned(),
        "clean" if counters.unchecked > 0 => {
            let groups = count(counters.unchecked, "group");
            format!(
                "clean, but {groups} could not be checked (unknown pc, or a trap without its \
                 cause)"
            )
        }
        other => other.to_owned(),
    };
    line("verdict", &verdict);
    out
}

/// `pc 10, integer register 7`.
fn by_kind(numbers: &[u64; Kind::ALL.len()]) -> String {
    let kinds = Kind::ALL.iter().zip(numbers).filter(|(_, n)| **n > 0);
    let kinds: Vec<String> = kinds.map(|(k, n)| format!("{} {n}", k.name())).collect();
    match kinds.is_empty() {
        true => "nothing".to_owned(),
        false => kinds.join(", "),
    }
}
