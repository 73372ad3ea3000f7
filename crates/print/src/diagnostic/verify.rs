//! Diagnostics about the verification of tandem traces.

use super::{Code, Diagnostic, Findings};
use crate::verify::Report;
use crate::words::count;
use hartrace_capture::input::{self, InputError};
use hartrace_capture::verify::{Counters, End, WrongHart};
use std::path::Path;

/// A container in which the hart to verify is not clear.
#[must_use]
pub fn wrong_hart(path: &Path, WrongHart { wanted, seen }: &WrongHart) -> Diagnostic {
    let seen: Vec<String> = seen.iter().map(u32::to_string).collect();
    let name = input::name(path);
    let message = match wanted {
        Some(hart) => format!("{name} has no hart {hart}"),
        None => format!("{name} has several harts, but only one can be verified"),
    };
    Diagnostic::new(Code::WhichHart, message)
        .note(format!("harts in the trace: {}", seen.join(", ")))
        .help("choose one with --hart N")
}

/// A trace that is not a tandem trace, with what it is instead.
#[must_use]
pub fn not_tandem(path: &Path, note: &str) -> Diagnostic {
    let message = format!("{} is not a tandem trace", input::name(path));
    Diagnostic::new(Code::NotTandem, message)
        .note(note)
        .help("make one with `hartrace run --trace tandem=FILE` or `hartrace encode --to tandem`")
}

/// What the end of a verification means; `lost` is why a trace that was on its
/// way did not come to its end.
#[must_use]
pub fn judge(
    report: &Report<'_>,
    counters: &Counters,
    end: End,
    lost: Option<InputError>,
) -> Findings {
    let name = input::name(report.facts().trace);
    let mut findings = Findings {
        warnings: unchecked(report, counters, end).into_iter().collect(),
        error: None,
    };
    let damage = damage(report, counters, end);
    let mut troubles = lost.map(Diagnostic::from).into_iter().chain(damage);
    if counters.mismatches == 0 {
        findings.error = troubles.next_back();
        findings.warnings.extend(troubles);
        return findings;
    }
    findings.warnings.extend(troubles);
    let first = report.first().unwrap_or(0);
    let groups = count(counters.mismatches, "group");
    let message = format!("{name} differs from the hart in {groups}");
    let mismatch = Diagnostic::new(Code::Mismatch, message).note(match report.first_moment() {
        Some(moment) => format!("the first is at instruction {first}, time {moment}"),
        None => format!("the first is at instruction {first}"),
    });
    findings.error = Some(match report.is_foreign() {
        true => mismatch.note("the instructions differ: check that this is the traced program"),
        false => mismatch,
    });
    findings
}

/// The first damage of a trace.
fn damage(report: &Report<'_>, counters: &Counters, end: End) -> Option<Diagnostic> {
    let name = input::name(report.facts().trace);
    let problem = report.problem()?;
    let message = format!(
        "{name} is damaged: {} ({:#x}) at byte {:#x}, in group {}",
        problem.fault.text(),
        problem.value,
        problem.at,
        problem.group
    );
    // The bytes of a container that can be read are those of a trace.
    let unread = counters.groups == 0 && !problem.fault.code().starts_with("TP04");
    let code = match unread {
        true => Code::NotSynchronised,
        false => Code::DamagedTrace,
    };
    let diagnostic = Diagnostic::new(code, message).named(problem.fault.code());
    let diagnostic = match report.problems() - 1 {
        0 => diagnostic,
        more => diagnostic.note(format!("and at {} more", count(more, "place"))),
    };
    Some(match end {
        End::Stuck if unread => {
            diagnostic.help("check that section [tandem] and --isa match the trace")
        }
        End::Stuck => diagnostic.help("use --resync to continue after the damage"),
        _ => diagnostic,
    })
}

/// Groups that could not be checked, if nothing else is wrong.
fn unchecked(report: &Report<'_>, counters: &Counters, end: End) -> Option<Diagnostic> {
    let clean = counters.mismatches == 0 && report.problems() == 0 && end != End::Lost;
    if counters.unchecked == 0 || !clean {
        return None;
    }
    let name = input::name(report.facts().trace);
    let groups = count(counters.unchecked, "group");
    let message = format!("{groups} of {name} could not be checked");
    Some(Diagnostic::new(Code::Unchecked, message).note(
        "their pc is unknown, or they report a trap without its cause while the registers that \
        enable interrupts are unknown or volatile; the hart took their state from the trace",
    ))
}
