//! Packets with `irdepth` of an encoder that goes by the texts alone
//! ([`ReturnRule::Specification`](crate::ReturnRule)): whether they can mean
//! one place only.
//!
//! After the last branch all returns that the stack knows are implied, so there
//! is one path, up to the next jump or branch. A packet is ambiguous if this
//! path passes the address more than once, or has more than one return with as
//! many entries on the stack as `irdepth` says.

use hartrace_flow::decode::Nothing;
use hartrace_flow::{Blocks, Evidence, Goal, Stop};

use super::aids::Tap;
use super::pending::{Next, Pending};
use super::source::Source;
use super::trail::{As, More, Returns, Trail};
use crate::modes::{Predictor, Shared};

/// Evidence that implies every return, and counts those at a depth.
struct Probe<'t> {
    trail: Trail<'t>,
    depth: Option<usize>,
    matches: u32,
}

impl Evidence for Probe<'_> {
    fn branch(&mut self, at: u64, last: bool) -> Option<bool> {
        self.matches = 0;
        self.trail.branch(at, last)
    }

    fn left(&self) -> u64 {
        self.trail.left()
    }

    fn implied_return(&mut self, _: u64, depth: usize, _: bool) -> bool {
        self.matches += u32::from(self.depth == Some(depth));
        true
    }
}

impl Source {
    /// Whether a packet that waits can mean more than one place.
    pub(super) fn is_ambiguous(
        &self,
        (pending, more): (&Pending, More),
        next: Next,
        blocks: &mut Blocks<'_>,
        table: Option<Shared<'_>>,
    ) -> bool {
        let depth = match more.returns {
            Returns::Depth(depth) => Some(usize::from(depth)),
            _ => None,
        };
        if pending.arrived || (next == Next::Flow && depth.is_none()) {
            // The next jump that is no return, or has nothing on the stack.
            return false;
        }
        let mut walk = self.track.walk.clone();
        let own = walk.is_branch(blocks, pending.address);
        let more = More {
            returns: Returns::Any,
            ..more
        };
        let mut scratch = table.map_or_else(|| Predictor::new(1, 1), |table| table.copy());
        let table = scratch.shared();
        let trail = Trail::new(pending.outcomes, more, Some(table), (own, As::Passed));
        let mut probe = Probe {
            trail,
            depth,
            matches: 0,
        };
        let mut out = Tap {
            out: &mut Nothing,
            table,
        };
        let mut goal = Goal {
            leave_first: self.named,
            own_outcome: true,
            depth,
            ..Goal::new(pending.address)
        };
        let mut passes = 0;
        while passes < 2 && walk.advance_to(blocks, &mut probe, goal, &mut out) == Stop::Arrived {
            passes += 1;
            goal.leave_first = true;
        }
        match next {
            Next::Flow => probe.matches > 1,
            Next::Sync | Next::Unknown => passes > 1,
        }
    }
}
