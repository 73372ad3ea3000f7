//! Files of control transfer records; what `info` and `ctr` share.

use crate::diagnostic::{Code, Diagnostic, count};
use hartrace_capture::input;
use hartrace_capture::records::RecordSummary;
use std::path::Path;

/// Damaged snapshots are an error with `--strict`, or when there is nothing
/// else.
pub(crate) fn judge(path: &Path, summary: &RecordSummary, strict: bool) -> Option<Diagnostic> {
    let nothing = summary.snapshots == 0;
    (summary.errors > 0 && (nothing || strict)).then(|| {
        let diagnostic = damaged(path, summary);
        match nothing {
            true => diagnostic.with_code(Code::NothingRead),
            false => diagnostic.help("copy or record the file again, or leave out --strict"),
        }
    })
}

/// Snapshots that cannot be read, as an error or a warning.
pub(crate) fn damaged(path: &Path, summary: &RecordSummary) -> Diagnostic {
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
