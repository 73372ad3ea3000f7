//! How a program came to its end: the last jumps and the calls that have not
//! returned.

use super::kind_name;
use crate::causes::cause_name;
use crate::places::Places;
use hartrace_flow::{HartId, Transfer, TransferSink};
use hartrace_isa::Itype;
use std::collections::VecDeque;
use std::fmt::Write as _;

/// Jumps that are kept.
const JUMPS: usize = 8;

/// Calls that are kept: more than a stack has room for.
const MOST_CALLS: usize = 1 << 20;

/// Calls that are written at each end of a long stack.
const SHOWN: usize = 8;

/// Follows the transfers of a hart. Calls and traps that have not returned are
/// inferred: a return ends the call that it goes back to and those inside it.
#[derive(Clone, Debug, Default)]
pub struct Backtrace {
    jumps: VecDeque<Transfer>,
    /// Calls and traps, the innermost last.
    calls: Vec<Transfer>,
    /// The outermost exception that has not returned: its place in `calls`, and
    /// the jumps up to it.
    trap: Option<(usize, VecDeque<Transfer>)>,
}

impl Backtrace {
    /// Follows one transfer.
    pub fn add(&mut self, transfer: &Transfer) {
        if transfer.kind == Itype::NotTaken {
            return;
        }
        if self.jumps.len() == JUMPS {
            self.jumps.pop_front();
        }
        self.jumps.push_back(*transfer);
        match transfer.kind {
            Itype::IndirectCall | Itype::DirectCall => self.enter(transfer),
            Itype::Exception | Itype::Interrupt => {
                if transfer.kind == Itype::Exception && self.trap.is_none() {
                    self.trap = Some((self.calls.len(), self.jumps.clone()));
                }
                self.enter(transfer);
            }
            Itype::Swap => {
                self.leave(transfer.target);
                self.enter(transfer);
            }
            Itype::Return => self.leave(transfer.target),
            Itype::TrapReturn => {
                let trap = |call: &Transfer| call.kind.is_trap();
                if let Some(at) = self.calls.iter().rposition(trap) {
                    self.end(at);
                }
            }
            _ => {}
        }
    }

    fn enter(&mut self, transfer: &Transfer) {
        let places = |t: &Transfer| (t.source, t.target, t.cause);
        let again =
            transfer.kind.is_trap() && self.calls.last().map(places) == Some(places(transfer));
        if self.calls.len() < MOST_CALLS && !again {
            self.calls.push(*transfer);
        }
    }

    /// Ends the call that returns to an address, and those inside it; none if it
    /// goes elsewhere.
    fn leave(&mut self, target: u64) {
        let returns = |call: &Transfer| {
            let length = target.wrapping_sub(call.source);
            !call.kind.is_trap() && matches!(length, 2 | 4)
        };
        if let Some(at) = self.calls.iter().rposition(returns) {
            self.end(at);
        }
    }

    fn end(&mut self, at: usize) {
        self.calls.truncate(at);
        if self.trap.as_ref().is_some_and(|(place, _)| *place >= at) {
            self.trap = None;
        }
    }

    /// The jumps as text, the newest last, and what they lead to; `None` if there
    /// are none.
    #[must_use]
    pub fn jumps(&self, places: &Places<'_>) -> Option<String> {
        let (title, jumps) = match &self.trap {
            Some((_, jumps)) => ("the last jumps before the exception:", jumps),
            None => ("the last jumps:", &self.jumps),
        };
        if jumps.is_empty() {
            return None;
        }
        let mut text = title.to_owned();
        for jump in jumps {
            let (from, to) = (places.at(jump.source), places.at(jump.target));
            // Writing to memory does not fail.
            let _ = write!(text, "\n  {:<14} {from} -> {to}", kind_name(jump.kind));
        }
        Some(text)
    }

    /// The calls as text, the innermost first, for a hart that is at `pc`.
    #[must_use]
    pub fn calls(&self, pc: u64, places: &Places<'_>) -> String {
        let mut text = "the call stack, innermost first:".to_owned();
        let all = self.calls.len();
        // Writing to memory does not fail.
        let _ = write!(text, "\n  at {}", places.at(pc));
        for (n, call) in self.calls.iter().rev().enumerate() {
            if n >= SHOWN && n + SHOWN < all {
                if n == SHOWN {
                    let _ = write!(text, "\n  ({} more)", all - 2 * SHOWN);
                }
                continue;
            }
            let _ = match call.cause {
                Some(cause) => {
                    let cause = cause_name(cause);
                    write!(text, "\n  {cause} at {}", places.at(call.source))
                }
                None => write!(text, "\n  called at {}", places.at(call.source)),
            };
        }
        text
    }
}

impl TransferSink for Backtrace {
    fn transfer(&mut self, _: HartId, transfer: &Transfer) {
        self.add(transfer);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;
    use hartrace_flow::Cause;

    fn following(transfers: &[Transfer]) -> Backtrace {
        let mut all = Backtrace::default();
        transfers.iter().for_each(|transfer| all.add(transfer));
        all
    }

    fn trap(source: u64, target: u64) -> Transfer {
        Transfer {
            cause: Some(Cause::Exception(Some(1))),
            ..testing(source, target, Itype::Exception)
        }
    }

    #[test]
    fn a_call_to_nowhere() {
        let all = following(&[
            testing(0x100, 0x200, Itype::DirectCall),
            testing(0x204, 0x300, Itype::DirectCall),
            testing(0x310, 0x208, Itype::Return),
            testing(0x210, 0, Itype::IndirectCall),
            trap(0, 0x400),
            // The same again is one of a row.
            trap(0, 0x400),
            testing(0x404, 0x500, Itype::DirectCall),
        ]);
        let places = Places::new();
        let calls = "the call stack, innermost first:\n  at 0x500\n  called at 0x404\n  \
                     instruction access fault at 0x0\n  called at 0x210\n  called at 0x100";
        assert_eq!(all.calls(0x500, &places), calls);
        let jumps = all.jumps(&places).unwrap();
        let lines: Vec<&str> = jumps.lines().collect();
        assert_eq!(lines[0], "the last jumps before the exception:");
        assert_eq!(lines[4], "  indirect call  0x210 -> 0x0");
        assert_eq!(lines[5..], ["  exception      0x0 -> 0x400"]);
    }

    #[test]
    fn what_has_returned_is_not_there() {
        let all = following(&[
            testing(0x100, 0x200, Itype::DirectCall),
            trap(0x204, 0x400),
            testing(0x408, 0x600, Itype::DirectCall),
            testing(0x410, 0x208, Itype::TrapReturn),
            testing(0x208, 0x300, Itype::DirectCall),
            // longjmp: over one call.
            testing(0x304, 0x102, Itype::Return),
        ]);
        let places = Places::new();
        assert_eq!(
            all.calls(0x102, &places),
            "the call stack, innermost first:\n  at 0x102"
        );
        assert!(all.jumps(&places).unwrap().starts_with("the last jumps:\n"));
        assert_eq!(Backtrace::default().jumps(&places), None);
    }

    #[test]
    fn a_deep_recursion_is_shortened() {
        let calls: Vec<Transfer> = (0..1000)
            .map(|n| testing(0x1000 + 4 * n, 0x1000, Itype::DirectCall))
            .collect();
        let text = following(&calls).calls(0x1000, &Places::new());
        assert_eq!(text.lines().count(), 2 + 2 * SHOWN + 1);
        assert!(text.contains("\n  (984 more)\n"), "{text}");
        assert!(text.ends_with("called at 0x1000"), "{text}");
    }
}
