//! Diagnostics about control transfer records.

use super::{Code, Diagnostic, Findings};
use crate::records::{Doubts, ReportError};
use crate::words::count;
use hartrace_capture::input;
use hartrace_capture::records::{Control, RecordSummary};
use hartrace_flow::Spread;
use std::path::Path;

/// Damaged snapshots are an error with `--strict`, or when there is nothing
/// else.
#[must_use]
pub fn judge(path: &Path, summary: &RecordSummary, strict: bool) -> Findings {
    if summary.errors == 0 {
        return Findings::default();
    }
    let diagnostic = damaged(path, summary);
    let nothing = summary.snapshots == 0;
    Findings::new(
        nothing || strict,
        match (nothing, strict) {
            (true, _) => diagnostic.with_code(Code::NothingRead),
            (false, true) => {
                diagnostic.help("copy or record the file again, or leave out --strict")
            }
            (false, false) => diagnostic,
        },
    )
}

/// Snapshots that cannot be read.
fn damaged(path: &Path, summary: &RecordSummary) -> Diagnostic {
    let name = input::name(path);
    let places = count(summary.errors, "place");
    let message = format!("{name} is unreadable at {places}");
    let mut diagnostic = Diagnostic::new(Code::DamagedRecords, message);
    if let Some(first) = summary.first_errors.first() {
        diagnostic = diagnostic.named(first.problem.fault.code());
    }
    for error in &summary.first_errors {
        diagnostic = diagnostic.note(error.to_string());
    }
    match summary.more_errors() {
        0 => diagnostic,
        more => diagnostic.note(format!("and {more} more")),
    }
}

/// Why a report cannot be made.
#[must_use]
pub fn refused(error: &ReportError) -> Diagnostic {
    match error {
        ReportError::LeftOut { number, fields } => {
            let message = format!("snapshot {number} does not hold every taken transfer");
            Diagnostic::new(Code::UnfitRecords, message)
                .note(format!("fields that filter: {}", fields.join(" ")))
                .note("the code between two records may contain unrecorded transfers")
                .help(
                    "record without filters and RAS emulation; -f table, brstack and branches \
                    work with any records",
                )
        }
        ReportError::NoStack { number } => {
            no_stack(&format!("snapshot {number} holds no call stack"))
        }
        ReportError::NoStacks => no_stack("no snapshot holds a call stack"),
        ReportError::NoRecords(snapshots) => no_records(*snapshots),
        ReportError::Write(error) => Diagnostic::new(Code::CannotWrite, error.to_string()),
    }
}

fn no_stack(message: &str) -> Diagnostic {
    Diagnostic::new(Code::UnfitRecords, message)
        .note("call stacks need records of RAS emulation, and RASEMU is not set")
        .help(
            "record with control = [\"M\", \"S\", \"U\", \"RASEMU\"] in section [ctr], as in \
            configs/ctr/call-stacks.toml",
        )
}

/// What is doubtful about a report that was made.
#[must_use]
pub fn doubts(doubts: &Doubts) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    if let Some((repeat, all)) = doubts.overlap {
        found.push(overlapping(repeat, all));
    }
    if doubts.odd > 0 {
        found.push(odd(doubts.odd));
    }
    if doubts.cut > 0 {
        found.push(cut_stacks(doubts.stacks, doubts.cut));
    }
    if doubts.moved > 0 {
        found.push(moved_stacks(doubts.stacks, doubts.moved));
    }
    found
}

fn odd(ways: u64) -> Diagnostic {
    let are = if ways == 1 { "is" } else { "are" };
    let ways = count(ways, "way");
    let message = format!("{ways} between consecutive records {are} impossible and left out");
    Diagnostic::new(Code::OddRecords, message)
        .note("they run backwards, through a jump, or over more than 1 MiB")
        .help(
            "check the program; if only some modes were recorded, transfers in other \
            modes are missing",
        )
}

fn cut_stacks(all: u64, cut: u64) -> Diagnostic {
    let stacks = count(all, "stack");
    let message = format!("{cut} of {stacks} may lack their outermost calls");
    Diagnostic::new(Code::OddRecords, message)
        .note(
            "either there were more calls than entries, or calls from before the recording \
            returned; WRPTR does not show which",
        )
        .note("these stacks start with [cut]")
        .help("increase the depth in section [ctr], or record from the start of the program")
}

fn moved_stacks(all: u64, moved: u64) -> Diagnostic {
    let stacks = count(all, "stack");
    let message = format!("in {moved} of {stacks}, a call does not come from the last callee");
    Diagnostic::new(Code::OddRecords, message)
        .note(
            "after a tail call, both functions are in the stack; after longjmp or a stack \
            switch, functions that have already been left remain in it",
        )
        .help("-f table marks these calls")
}

fn no_records(snapshots: u64) -> Diagnostic {
    let message = match snapshots {
        0 => "no records: there are no snapshots".to_owned(),
        1 => "no records: the snapshot is empty".to_owned(),
        n => format!("no records: all {n} snapshots are empty"),
    };
    Diagnostic::new(Code::OddRecords, message)
        .note("nothing was recorded, so there is nothing to report")
        .help(
            "check that recording is enabled for the program's privilege mode, by the program \
            or by control in section [ctr]",
        )
}

fn overlapping(repeat: u64, all: u64) -> Diagnostic {
    let snapshots = count(all, "snapshot");
    let message = format!("{repeat} of {snapshots} repeat records of the previous one");
    Diagnostic::new(Code::OddRecords, message)
        .note("these transfers are counted several times")
        .help(
            "take snapshots less often: raise --every until the buffer fills \
            between two",
        )
}

/// Times of instructions that the trace does not have.
#[must_use]
pub fn interpolated(path: &Path, spread: &Spread) -> Diagnostic {
    let name = input::name(path);
    let stamps = count(spread.stamps, "timestamp");
    let mean = spread.insns / spread.stamps.max(1);
    let message = format!("{name}: times between timestamps are interpolated by instruction");
    let diagnostic = Diagnostic::new(Code::Assumed, message).note(format!(
        "{stamps}, {mean} instructions apart on average, {} at most",
        spread.longest
    ));
    match spread.untimed {
        0 => diagnostic,
        n => {
            let insns = count(n, "instruction");
            diagnostic.note(format!(
                "{insns} before the first timestamp, after the last or at a gap: no snapshots there"
            ))
        }
    }
}

/// A log without traps.
#[must_use]
pub fn guessed_traps(path: &Path) -> Diagnostic {
    let message = format!("{} does not record traps", input::name(path));
    Diagnostic::new(Code::Assumed, message)
        .note(
            "they are inferred from the control flow: some may appear as jumps, and \
            interrupts as exceptions",
        )
        .help("use a trace, or a log that records them, such as from `spike -l --log-commits`")
}

/// A dump without snapshots.
#[must_use]
pub fn no_snapshots(path: &Path) -> Diagnostic {
    let message = format!("{} has no snapshots", input::name(path));
    Diagnostic::new(Code::NoSnapshots, message).note(
        "the dump is complete: recording ended before the \
        first snapshot",
    )
}

/// A source without modes, of which some are enabled.
#[must_use]
pub fn unknown_modes(path: &Path, enabled: Control) -> Diagnostic {
    let name = input::name(path);
    let message = format!(
        "{name} does not record privilege modes, but [ctr] selects \
        some of them"
    );
    Diagnostic::new(Code::Assumed, message).note(format!(
        "enabled modes: {enabled}; transfers in all modes are recorded"
    ))
}

/// A source without times, of which snapshots by time are wanted.
#[must_use]
pub fn no_time(path: &Path) -> Diagnostic {
    let message = format!("{} has no timestamps", input::name(path));
    Diagnostic::new(Code::UnfitRecords, message)
        .help("take snapshots by instruction count: --every N")
}

/// Traps of which a trace does not say whether they are exceptions or
/// interrupts; an error with `--strict`.
#[must_use]
pub fn judge_kinds(path: &Path, kinds: u64, strict: bool) -> Findings {
    if kinds == 0 {
        return Findings::default();
    }
    let name = input::name(path);
    let traps = count(kinds, "trap");
    let message = format!("{name} does not record the cause of {traps}");
    let diagnostic = Diagnostic::new(Code::UnknownCauses, message)
        .note("an exception is recorded for each; it may have been an interrupt");
    Findings::new(strict, diagnostic)
}
