//! The call stack of a hart as it is, for a program that has died.

use super::hart::{Hart, UNSETTLED};
use super::thread::Arrival;
use crate::causes::cause_name;
use crate::places::Places;
use hartrace_flow::Cause;
use std::fmt::Write as _;

/// Calls that are written at each end of a long stack.
const SHOWN: usize = 8;

/// A call or a trap that has not returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outer {
    /// A call by this instruction.
    Call(u64),
    /// A trap at this address, if it is known.
    Trap(Cause, Option<u64>),
}

/// Calls and traps that have not returned, the innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backtrace(pub Vec<Outer>);

impl Backtrace {
    /// The innermost `limit` of them, and perhaps some more.
    pub(super) fn of(hart: &Hart, limit: usize) -> Backtrace {
        let called = |arrival: Option<Arrival>| match arrival {
            Some(Arrival::Call { site, .. }) => Some(Outer::Call(site)),
            _ => None,
        };
        let now = (hart.expected == UNSETTLED).then_some(hart.arrival);
        let mut all: Vec<Outer> = called(now).into_iter().collect();
        let mut end = hart.thread.frames.len();
        for (n, segment) in hart.thread.segments.iter().enumerate().rev() {
            let frames = hart.thread.frames.get(segment.first..end);
            let frames = frames.unwrap_or_default().iter().rev().take(limit);
            all.extend(frames.filter(|f| f.site != 0).map(|f| Outer::Call(f.site)));
            end = segment.first;
            if let Some(trap) = segment.trap {
                all.push(Outer::Trap(trap.cause, trap.epc));
            }
            // A call that the trap interrupted before its first instruction.
            let below = n.checked_sub(1).and_then(|n| hart.thread.segments.get(n));
            all.extend(called(below.and_then(|segment| segment.pending)));
            if all.len() >= limit {
                break;
            }
        }
        Backtrace(all)
    }

    /// As text, for a hart that is at `pc`.
    #[must_use]
    pub fn text(&self, pc: u64, places: &Places<'_>) -> String {
        let mut text = "the call stack, innermost first:".to_owned();
        let all = self.0.len();
        // Writing to memory does not fail.
        let _ = write!(text, "\n  at {}", places.at(pc));
        for (n, outer) in self.0.iter().enumerate() {
            if n >= SHOWN && n + SHOWN < all {
                if n == SHOWN {
                    let _ = write!(text, "\n  ({} more)", all - 2 * SHOWN);
                }
                continue;
            }
            let _ = match outer {
                Outer::Call(site) => write!(text, "\n  called at {}", places.at(*site)),
                Outer::Trap(cause, Some(epc)) => {
                    write!(text, "\n  {} at {}", cause_name(*cause), places.at(*epc))
                }
                Outer::Trap(cause, None) => write!(text, "\n  {}", cause_name(*cause)),
            };
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deep_recursion_is_shortened() {
        let calls = (0..1000).map(|n| Outer::Call(0x1000 + 4 * n));
        let text = Backtrace(calls.collect()).text(0x1000, &Places::new());
        assert_eq!(text.lines().count(), 2 + 2 * SHOWN + 1);
        assert!(text.contains("\n  (984 more)\n"), "{text}");
        assert!(text.ends_with("called at 0x1f9c"), "{text}");
    }
}
