//! The last jumps of a program before its end.

use super::kind_name;
use crate::places::Places;
use hartrace_flow::{HartId, Transfer, TransferSink};
use hartrace_isa::Itype;
use std::collections::VecDeque;
use std::fmt::Write as _;

/// Jumps that are kept.
const JUMPS: usize = 8;

/// The last jumps of a hart. While an exception has not returned, they are those up to
/// the exception.
#[derive(Clone, Debug, Default)]
pub struct LastJumps {
    jumps: VecDeque<Transfer>,
    /// Traps that have not returned.
    traps: u64,
    /// The outermost exception that has not returned: the traps around it, and the jumps
    /// up to it.
    exception: Option<(u64, VecDeque<Transfer>)>,
}

impl LastJumps {
    /// Follows one transfer.
    pub fn add(&mut self, transfer: &Transfer) {
        if transfer.kind == Itype::NotTaken {
            return;
        }
        if self.jumps.len() == JUMPS {
            self.jumps.pop_front();
        }
        self.jumps.push_back(*transfer);
        if transfer.kind == Itype::Exception && self.exception.is_none() {
            self.exception = Some((self.traps, self.jumps.clone()));
        }
        if transfer.kind.is_trap() {
            self.traps += 1;
        }
        if transfer.kind == Itype::TrapReturn {
            self.traps = self.traps.saturating_sub(1);
            self.exception.take_if(|(around, _)| *around >= self.traps);
        }
    }

    /// The jumps as text, the newest last, and what they lead to; `None` if there
    /// are none.
    #[must_use]
    pub fn text(&self, places: &Places<'_>) -> Option<String> {
        let (title, jumps) = match &self.exception {
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
}

impl TransferSink for LastJumps {
    fn transfer(&mut self, _: HartId, transfer: &Transfer) {
        self.add(transfer);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;

    fn following(transfers: &[Transfer]) -> LastJumps {
        let mut all = LastJumps::default();
        transfers.iter().for_each(|transfer| all.add(transfer));
        all
    }

    #[test]
    fn an_exception_keeps_the_jumps_before_it() {
        let all = following(&[
            testing(0x100, 0x200, Itype::DirectCall),
            testing(0x210, 0x0, Itype::IndirectCall),
            testing(0x0, 0x400, Itype::Exception),
            testing(0x404, 0x500, Itype::DirectCall),
            testing(0x500, 0x600, Itype::Interrupt),
            testing(0x600, 0x500, Itype::TrapReturn),
        ]);
        let jumps = all.text(&Places::new()).unwrap();
        let lines: Vec<&str> = jumps.lines().collect();
        assert_eq!(lines[0], "the last jumps before the exception:");
        assert_eq!(lines[2], "  indirect call  0x210 -> 0x0");
        assert_eq!(lines[3..], ["  exception      0x0 -> 0x400"]);
    }

    #[test]
    fn an_exception_that_returned_is_a_jump_like_others() {
        let all = following(&[
            testing(0x204, 0x400, Itype::Exception),
            testing(0x408, 0x600, Itype::DirectCall),
            testing(0x410, 0x208, Itype::TrapReturn),
        ]);
        let text = all.text(&Places::new()).unwrap();
        assert!(text.starts_with("the last jumps:\n"), "{text}");
        assert_eq!(LastJumps::default().text(&Places::new()), None);
        let many: Vec<Transfer> = (0..20)
            .map(|n| testing(n, n + 1, Itype::DirectCall))
            .collect();
        let text = following(&many).text(&Places::new()).unwrap();
        assert_eq!(text.lines().count(), JUMPS + 1);
    }
}
