//! What the files of viewers with threads have in common.

use super::Shown;
use hartrace_analyze::{Line, PathSequence, PathThread, What};

/// What a thread is called: its hart if that has no other, and its context.
pub(super) fn thread_name(thread: &PathThread, all: &PathSequence, shown: &Shown<'_>) -> String {
    let same_hart = |other: &&PathThread| (other.trace, other.hart) == (thread.trace, thread.hart);
    let is_alone = all.threads().filter(same_hart).count() == 1;
    let mut name = hart_name(thread, all);
    if let Some(context) = thread.context {
        let contexts = shown.profile.functions.contexts();
        name += &format!(", {}", contexts.label(context));
    }
    match thread.number {
        None => name += ", other threads",
        Some(number) if !is_alone => name += &format!(", thread {number}"),
        Some(_) => {}
    }
    name
}

/// What the hart of a thread is called. Each of several traces has harts of its own.
pub(super) fn hart_name(thread: &PathThread, all: &PathSequence) -> String {
    let hart = thread.hart.0;
    match all.traces() {
        1 => format!("hart {hart}"),
        _ => format!("trace {}, hart {hart}", thread.trace + 1),
    }
}

/// The line in which a function starts.
pub(super) fn frame_line<'a>(what: What, shown: &Shown<'a>) -> Option<Line<'a>> {
    match what {
        What::Function(id) => {
            let places: &'a _ = shown.places;
            places.line(shown.profile.functions.get(id).start)
        }
        _ => None,
    }
}
