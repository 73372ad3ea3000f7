//! How the trace of a hart ended, in words.

use crate::code::after;
use crate::recent::{Last, Snapshot};
use hartrace_analyze::{Functions, Outer, Places, cause_name};
use hartrace_flow::Cause;

/// The innermost exception that has not returned, and its address.
pub(crate) fn open_exception(end: &Snapshot) -> Option<(Cause, Option<u64>)> {
    end.outer.iter().find_map(|outer| match *outer {
        Outer::Trap(cause @ Cause::Exception(_), epc) => Some((cause, epc)),
        _ => None,
    })
}

/// What is known of the end of a hart's trace.
pub(crate) fn how(end: &Snapshot, functions: &Functions, places: &Places<'_>) -> String {
    let Some(passed) = end.runs.last() else {
        return "nothing was executed".to_owned();
    };
    let run = &passed.run;
    let last = end.last.filter(|last| !matches!(last, Last::Trap(_)));
    let last = last.and_then(after);
    if let Some((cause, epc)) = open_exception(end) {
        let place = epc.map_or(String::new(), |epc| place(epc, functions, places));
        let place = place + &caller(end, epc, functions, places);
        let last = last.map_or(String::new(), |last| format!("; then {last}"));
        let cause = match cause {
            Cause::Exception(None) => String::new(),
            cause => format!(" ({})", cause_name(cause)),
        };
        return format!(
            "inside the handler of an exception{cause}{place}, that did not return{last}"
        );
    }
    if let Some(last) = end.last.and_then(after) {
        return format!("after the last instruction: {last}");
    }
    match run.next == run.start && run.insns <= 2 {
        true => "the trace ends in a loop that does nothing".to_owned(),
        false => "the trace ends here".to_owned(),
    }
}

/// ` (called at 0x80000626 in main, crash.c:27)`, where the exception is in no function: a
/// call led there.
fn caller(end: &Snapshot, epc: Option<u64>, functions: &Functions, places: &Places<'_>) -> String {
    let is_function = |epc| functions.of(epc).is_some();
    let mut outer = end.outer.iter();
    let exception = |outer: &&Outer| matches!(outer, Outer::Trap(Cause::Exception(_), _));
    let _ = outer.find(exception);
    match outer.next() {
        Some(Outer::Call(site)) if epc.is_some_and(|epc| !is_function(epc)) => {
            format!(" (called{})", place(*site, functions, places))
        }
        _ => String::new(),
    }
}

/// ` at 0x800006de in poke, crash.c:6`, as far as it is known.
fn place(pc: u64, functions: &Functions, places: &Places<'_>) -> String {
    let mut text = format!(" at {pc:#x}");
    if let Some(function) = functions.of(pc) {
        text += &format!(" in {}", functions.get(function).name);
    }
    if let Some(line) = places.line(pc) {
        let file = line.file.rsplit('/').next().unwrap_or(line.file);
        text += &format!(", {file}:{}", line.line);
    }
    text
}
