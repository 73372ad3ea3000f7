//! Jumps that contradict the call stack.

use super::{Code, Diagnostic, Findings};
use crate::words::count;
use hartrace_analyze::{Doubts, Places};
use hartrace_capture::input;
use std::path::Path;

/// Jumps that are named.
const SHOWN: usize = 3;

/// Jumps of a trace that contradict the call stack for no known reason; an error with
/// `--strict`.
#[must_use]
pub fn judge_doubts(doubts: &Doubts, places: &Places<'_>, path: &Path, strict: bool) -> Findings {
    let mut findings = Findings::default();
    if doubts.count == 0 {
        return findings;
    }
    let message = format!(
        "{} has {} the call stack contradicts",
        input::name(path),
        match doubts.count {
            1 => "1 jump that".to_owned(),
            n => format!("{n} jumps that"),
        }
    );
    let wrong = count(doubts.instructions, "instruction");
    let mut diagnostic = Diagnostic::new(Code::DoubtfulJumps, message)
        .note(format!("{wrong} before them may be wrong"));
    for (hart, jump) in doubts.first.iter().take(SHOWN) {
        let from = places.at(jump.from);
        let to = places.at(jump.to);
        diagnostic = diagnostic.note(format!(
            "hart {}, instruction {}: from {from} to {to}",
            hart.0,
            jump.at.saturating_sub(1)
        ));
    }
    let help = "`hartrace decode TRACE --find doubt --context 20` lists the instructions there";
    findings.add(diagnostic.help(help), strict);
    findings
}
