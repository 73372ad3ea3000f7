//! Reports on samples of control transfers, as profilers make them.
//!
//! A [`Sample`] is a point in time and the transfers before it, as kept by
//! Control Transfer Records and the branch records of other architectures. Most
//! reports count over many samples; [`Table`] shows a single one.

mod autofdo;
mod blocks;
mod branches;
mod brstack;
mod counts;
mod folded;
mod last_jumps;
mod profgen;
mod sample_profile;
mod table;
mod ways;

pub use autofdo::AutoFdo;
pub use blocks::{Block, Blocks};
pub use branches::{Branches, Edge};
pub use brstack::{BrStack, Fields};
pub use counts::FlowCounts;
pub use folded::Folded;
pub use last_jumps::LastJumps;
pub use profgen::{Profgen, mmap_events};
pub use sample_profile::SampleProfile;
pub use table::Table;

use hartrace_flow::Transfer;
use hartrace_isa::Itype;

/// A moment, and how the hart came there.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample<'a> {
    /// The next instruction, where known.
    pub pc: Option<u64>,
    /// The transfers before it, the newest first.
    pub transfers: &'a [Transfer],
    /// The entry of each transfer, where some hold nothing: between entries
    /// that are not neighbours something is missing. Empty when all of them
    /// are there.
    pub numbers: &'a [u16],
    /// Older ones may have been overwritten. Of calls that have not returned
    /// these are the outermost.
    pub cut: bool,
    /// Branches that are not taken are recorded too.
    pub not_taken: bool,
    /// Every mode is recorded.
    pub all_modes: bool,
}

/// A transfer that went elsewhere.
struct Taken {
    /// With the cycles since the one before that went elsewhere.
    transfer: Transfer,
    /// Nothing is missing between it and the later one.
    joined: bool,
}

impl Sample<'_> {
    /// Where the hart is, or else where it went last.
    fn place(&self) -> Option<u64> {
        let went = || self.transfers.first().map(|t| t.target);
        self.pc.or_else(went).filter(|pc| *pc != 0)
    }

    /// The entry of a transfer.
    fn number(&self, i: usize) -> usize {
        self.numbers.get(i).map_or(i, |n| usize::from(*n))
    }

    /// Whether an address of 0 in this transfer was not recorded.
    const fn hides_address(&self, transfer: &Transfer) -> bool {
        Transfer::hides_address(transfer.kind, self.all_modes)
    }

    /// Whether nothing is missing between a transfer and the one before it.
    fn is_joined(&self, later: usize) -> bool {
        self.number(later) + 1 == self.number(later + 1)
    }

    /// Each transfer and the one before it, if nothing is missing between.
    fn pairs(&self) -> impl Iterator<Item = (&Transfer, &Transfer)> {
        let pairs = self.transfers.windows(2).enumerate();
        pairs.filter_map(|(i, pair)| match pair {
            [later, earlier] if self.is_joined(i) => Some((later, earlier)),
            _ => None,
        })
    }

    /// The transfers that went elsewhere, the newest first. Those between them
    /// that did not give their cycles to the next that did.
    fn taken(&self) -> impl Iterator<Item = Taken> {
        let mut joined = false;
        let all = self.transfers.iter().enumerate();
        all.filter_map(move |(i, t)| {
            joined &= i.checked_sub(1).is_some_and(|i| self.is_joined(i));
            if t.kind == Itype::NotTaken {
                return None;
            }
            let taken = Taken {
                transfer: Transfer {
                    cycles: self.cycles(i),
                    ..*t
                },
                joined,
            };
            joined = true;
            Some(taken)
        })
    }

    /// The cycles of a transfer since the one before that went elsewhere.
    fn cycles(&self, i: usize) -> Option<u64> {
        let mut cycles = self.transfers.get(i)?.cycles?;
        for (j, t) in self.transfers.iter().enumerate().skip(i + 1) {
            if t.kind != Itype::NotTaken || !self.is_joined(j - 1) {
                break;
            }
            cycles = cycles.saturating_add(t.cycles?);
        }
        Some(cycles)
    }
}

/// The type of a transfer in words.
pub(crate) const fn kind_name(kind: Itype) -> &'static str {
    match kind {
        Itype::None | Itype::Reserved => "unknown",
        Itype::Exception => "exception",
        Itype::Interrupt => "interrupt",
        Itype::TrapReturn => "trap return",
        Itype::NotTaken => "not taken",
        Itype::Taken => "taken",
        Itype::Uninferable => "uninferable",
        Itype::IndirectCall => "indirect call",
        Itype::DirectCall => "direct call",
        Itype::IndirectJump => "indirect jump",
        Itype::DirectJump => "direct jump",
        Itype::Swap => "swap",
        Itype::Return => "return",
        Itype::OtherIndirect => "other indirect",
        Itype::OtherDirect => "other direct",
    }
}

/// `12.3 %` of a whole.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    match whole {
        0 => "-".to_owned(),
        _ => format!("{:.1} %", part as f64 * 100.0 / whole as f64),
    }
}

#[cfg(test)]
pub(crate) fn testing(source: u64, target: u64, kind: Itype) -> Transfer {
    Transfer {
        source,
        target,
        kind,
        ..Transfer::default()
    }
}

/// c.nop; c.nop; beqz a0, .+8; nop; c.j .-8 at 0x1000 to 0x100c.
#[cfg(test)]
pub(crate) fn testing_image() -> hartrace_flow::Image {
    let mut image = hartrace_flow::Image::new();
    let code = [
        0x01, 0, 0x01, 0, 0x63, 0x04, 0x05, 0, 0x13, 0, 0, 0, 0xe5, 0xbf, 0x01, 0,
    ];
    let space = hartrace_flow::SpaceId::FIRST;
    image.add_raw(space, 0x1000, &code, hartrace_isa::Isa::RV64GC);
    image
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_of_branches_not_taken_go_to_the_next_that_is() {
        let after = |cycles, kind| Transfer {
            cycles,
            ..testing(4, 8, kind)
        };
        let transfers = [
            after(Some(1), Itype::NotTaken),
            after(Some(2), Itype::Taken),
            after(Some(3), Itype::NotTaken),
            after(Some(4), Itype::NotTaken),
            after(Some(5), Itype::Return),
            after(None, Itype::NotTaken),
            after(Some(6), Itype::Taken),
        ];
        let sample = Sample {
            transfers: &transfers,
            ..Sample::default()
        };
        let found: Vec<_> = sample
            .taken()
            .map(|t| (t.transfer.cycles, t.joined))
            .collect();
        // Where a count is not valid the sum is not either.
        assert_eq!(found, [(Some(9), false), (None, true), (Some(6), true)]);
    }

    #[test]
    fn holes_part_transfers() {
        let transfers = [Itype::Taken, Itype::Taken, Itype::NotTaken, Itype::Taken];
        let transfers = transfers.map(|kind| testing(4, 8, kind));
        let joined = |numbers: &[u16]| -> (Vec<bool>, usize) {
            let sample = Sample {
                transfers: &transfers,
                numbers,
                ..Sample::default()
            };
            let taken = sample.taken().map(|t| t.joined).collect();
            (taken, sample.pairs().count())
        };
        assert_eq!(joined(&[]), (vec![false, true, true], 3));
        assert_eq!(joined(&[1, 2, 3, 4]), (vec![false, true, true], 3));
        assert_eq!(joined(&[0, 2, 3, 4]), (vec![false, false, true], 2));
        assert_eq!(joined(&[0, 1, 3, 4]), (vec![false, true, false], 2));
        assert_eq!(joined(&[0, 1, 2, 9]), (vec![false, true, false], 2));
    }
}
