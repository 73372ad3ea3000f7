//! Where a packet leads to, and the outcomes of the branches on the path.

use std::collections::VecDeque;

use super::super::modes::Predictor;
use super::Packet;

/// `qual_status`
pub(super) const NO_CHANGE: u64 = 0;
const ENDED_REP: u64 = 1;
const ENDED_NTR: u64 = 3;

/// What the address of a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The target of an uninferable discontinuity.
    Target,
    /// An instruction that the program reached otherwise.
    Path,
    /// Either: the first of both on the path.
    Either,
    /// As `Path`, or the target of a discontinuity: a packet of format 3.
    Sync { privilege: u64 },
    /// There is no address: the last branch.
    LastBranch,
}

/// What a packet leads to.
pub(super) struct Goal {
    pub(super) address: u64,
    pub(super) meaning: Meaning,
    /// `irets` or `irdepth`, if `irreport` is set.
    pub(super) returns: Option<u64>,
}

/// Outcomes of branches that were reported and not yet used: those of a branch
/// map, then correct predictions, then perhaps a wrong one.
#[derive(Clone, Default)]
pub(super) struct Outcomes {
    pub(super) known: VecDeque<bool>,
    pub(super) predicted: u64,
    pub(super) mispredicted: bool,
}

impl Outcomes {
    pub(super) fn left(&self) -> u64 {
        self.known.len() as u64 + self.predicted + u64::from(self.mispredicted)
    }

    /// The outcome of the branch at `pc`, which is the next one.
    pub(super) fn next(&self, pc: u64, predictor: &Predictor) -> Option<bool> {
        match (self.known.front(), self.predicted, self.mispredicted) {
            (Some(&taken), ..) => Some(taken),
            (None, 1.., _) => Some(predictor.predict(pc)),
            (None, 0, true) => Some(!predictor.predict(pc)),
            (None, 0, false) => None,
        }
    }

    pub(super) fn drop_next(&mut self) {
        if self.known.pop_front().is_none() {
            match self.predicted {
                0 => self.mispredicted = false,
                _ => self.predicted -= 1,
            }
        }
    }
}

/// Whether the address of a packet is the target of a jump (6.6.2): its own
/// flags say so, or the next packet.
pub(super) fn meaning(packet: &Packet, later: &[Packet]) -> Result<Meaning, String> {
    if packet.notify && packet.updiscon {
        return Err("notify and updiscon are both set".to_owned());
    }
    // The counter was full: "the reported address will always be for a branch".
    if packet.notify || packet.get("branch_count") == 0xffff_ffff {
        return Ok(Meaning::Path);
    }
    let next = later.iter().find(|p| !says_nothing(p));
    let Some(next) = next else {
        let meaning = [Meaning::Either, Meaning::Target];
        return Ok(meaning[usize::from(packet.updiscon)]);
    };
    if packet.updiscon && next.format != 3 {
        return Err("updiscon is set, and no packet of format 3 follows".to_owned());
    }
    if packet.updiscon || next.format != 3 {
        return Ok(Meaning::Target);
    }
    // A trap follows the instruction that was reported last, a synchronization need
    // not. ended_ntr: it would have been sent anyway.
    Ok(match (next.subformat, next.get("qual_status")) {
        (Some(1), _) | (Some(3), ENDED_REP) => Meaning::Path,
        (Some(3), ENDED_NTR) => Meaning::Target,
        _ => Meaning::Either,
    })
}

/// Whether a packet does not tell whether the hart went on.
pub(super) fn says_nothing(packet: &Packet) -> bool {
    packet.is(3, 2) || packet.is(3, 3) && packet.get("qual_status") == NO_CHANGE
}
