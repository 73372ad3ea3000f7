//! Loops: jumps back in a function, and what lies between.

use super::{InsnCost, Profile};
use crate::functions::FunctionId;
use crate::stacks::Cost;
use hartrace_flow::{Exit, Image, SpaceId};
use std::collections::BTreeMap;

/// A loop: the code from the target of a jump back to the jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotLoop {
    /// The code it is of.
    pub space: SpaceId,
    /// Its function.
    pub function: Option<FunctionId>,
    /// Its first instruction.
    pub head: u64,
    /// The last instruction that jumps back.
    pub back: u64,
    /// How often it was entered from outside.
    pub entries: u64,
    /// How often its first instruction was executed.
    pub iterations: u64,
    /// What the instructions from the first to the last cost, without calls. Loops
    /// inside it are part of it.
    pub own: Cost,
}

impl Profile {
    /// The loops of the program that ran, the most expensive first.
    #[must_use]
    pub fn loops(&self, image: &Image) -> Vec<HotLoop> {
        self.loops_of(&self.instructions(image))
    }

    /// The same from the costs of all instructions.
    #[must_use]
    pub fn loops_of(&self, insns: &BTreeMap<(SpaceId, u64), InsnCost>) -> Vec<HotLoop> {
        // By the first instruction: the last one, and jumps back.
        let mut found: BTreeMap<(SpaceId, u64), (u64, u64, Option<FunctionId>)> = BTreeMap::new();
        for counted in &self.runs {
            let run = &counted.run;
            let jumps = matches!(run.exit, Exit::Taken | Exit::DirectJump);
            let function = counted.function();
            let inside = self.functions.of(run.next) == function;
            if jumps && run.next <= run.source() && inside {
                let known = found.entry((counted.space, run.next));
                let (back, count, _) = known.or_insert((run.source(), 0, function));
                *back = run.source().max(*back);
                *count += counted.count;
            }
        }
        let mut loops: Vec<HotLoop> = found
            .into_iter()
            .map(|((space, head), (back, jumps, function))| {
                let mut own = Cost::default();
                for (_, cost) in insns.range((space, head)..=(space, back)) {
                    own.add(Cost {
                        insns: cost.count,
                        time: cost.time,
                    });
                }
                let iterations = insns.get(&(space, head)).map_or(0, |cost| cost.count);
                HotLoop {
                    space,
                    function,
                    head,
                    back,
                    entries: iterations.saturating_sub(jumps),
                    iterations,
                    own,
                }
            })
            .collect();
        let key = |l: &HotLoop| match self.timed {
            true => l.own.time,
            false => l.own.insns,
        };
        loops.sort_by_key(|l| (std::cmp::Reverse(key(l)), l.space, l.head));
        loops
    }
}
