//! Loops: jumps back in a function, and what lies between.

use super::{InsnCosts, Profile};
use crate::functions::FunctionId;
use crate::runs::RunCount;
use crate::stacks::{Cost, Measure};
use hartrace_flow::order;
use hartrace_flow::{Exit, SpaceId};
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
    /// How often it was entered from outside; returns from calls and traps do not
    /// count.
    pub entries: u64,
    /// How often its first instruction was executed.
    pub iterations: u64,
    /// What the instructions from the first to the last cost, without calls. Loops
    /// inside it are part of it.
    pub own: Cost,
}

impl Profile {
    /// The loops of the program that ran, the most expensive first; `insns` are the
    /// costs of all instructions.
    #[must_use]
    pub fn loops(&self, insns: &InsnCosts, by: Measure) -> Vec<HotLoop> {
        let entries = Entries::new(&self.runs);
        // By the first instruction: the last one.
        let mut found: BTreeMap<(SpaceId, u64), (u64, Option<FunctionId>)> = BTreeMap::new();
        for counted in &self.runs {
            let run = &counted.run;
            let jumps = matches!(run.exit, Exit::Taken | Exit::DirectJump);
            let function = counted.function();
            let inside = self.functions.of(run.next) == function;
            if jumps && run.next <= run.source() && inside {
                let known = found.entry((counted.space, run.next));
                let (back, _) = known.or_insert((run.source(), function));
                *back = run.source().max(*back);
            }
        }
        let mut loops: Vec<HotLoop> = found
            .into_iter()
            .map(|((space, head), (back, function))| {
                let mut own = Cost::default();
                for (_, cost) in insns.range((space, head)..=(space, back)) {
                    own.add(*cost);
                }
                let iterations = insns.get(&(space, head)).map_or(0, |cost| cost.insns);
                HotLoop {
                    space,
                    function,
                    head,
                    back,
                    entries: entries.count_into((space, head), back),
                    iterations,
                    own,
                }
            })
            .collect();
        order::sort_by_key(&mut loops, |l| {
            (std::cmp::Reverse(l.own.of(by)), l.space, l.head)
        });
        loops
    }
}

/// Runs by where they start and where they lead to.
struct Entries<'a> {
    /// In the order of the code.
    runs: &'a [RunCount],
    by_next: Vec<&'a RunCount>,
    /// The longest run, in bytes.
    longest: u64,
}

impl<'a> Entries<'a> {
    fn new(runs: &'a [RunCount]) -> Entries<'a> {
        let jumps =
            |r: &&RunCount| !matches!(r.run.exit, Exit::Return | Exit::TrapReturn | Exit::Swap);
        let mut by_next: Vec<&RunCount> = runs.iter().filter(jumps).collect();
        order::sort_by_key(&mut by_next, |r| (r.space, r.run.next));
        let lengths = runs.iter().map(|r| r.run.end.wrapping_sub(r.run.start));
        Entries {
            runs,
            by_next,
            longest: lengths.max().unwrap_or(0),
        }
    }

    /// How often code from one instruction to another was entered.
    fn count_into(&self, (space, head): (SpaceId, u64), back: u64) -> u64 {
        let first = self
            .by_next
            .partition_point(|r| (r.space, r.run.next) < (space, head));
        let leading = self.by_next.iter().skip(first);
        let leading = leading.take_while(|r| r.space == space && r.run.next <= back);
        let outside = leading.filter(|r| !(head..=back).contains(&r.run.source()));
        let jumped: u64 = outside.map(|r| r.count).sum();
        // Runs that start before it and go on into it.
        let low = (space, head.saturating_sub(self.longest));
        let first = self.runs.partition_point(|r| (r.space, r.run.start) < low);
        let before = self.runs.iter().skip(first);
        let before = before.take_while(|r| r.space == space && r.run.start < head);
        let through: u64 = before
            .filter(|r| r.run.source() >= head)
            .map(|r| r.count)
            .sum();
        jumped + through
    }
}
