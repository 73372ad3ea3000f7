//! Branches, indirect jumps and loops: which way they went, and how often.

use crate::coverage::{BranchCount, count_branch};
use crate::functions::Functions;
use crate::runs::Runs;
use crate::spaces::Spaces;
use crate::stacks::{Grouping, Passed, Stacks, UNNAMED};
use hartrace_flow::order;
use hartrace_flow::{Consumer, Event, Exit, HartId, Image, PerHart, Run};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Follows every jump of a trace, in order.
#[derive(Debug)]
pub struct JumpCounter<'a> {
    image: &'a Image,
    functions: Functions,
    /// No functions: runs are counted whole.
    whole: Functions,
    runs: Runs,
    stacks: Stacks<()>,
    spaces: Spaces,
    targets: FxHashMap<(u64, u64), (Exit, u64)>,
    loops: Loops,
    /// How the last run of each hart ended, and those that traps interrupted.
    last: PerHart<Last>,
}

#[derive(Debug, Default)]
struct Last {
    run: Option<Run>,
    interrupted: Vec<Option<Run>>,
}

/// Traps inside traps that are kept apart.
const MAX_TRAPS: usize = 1 << 10;

/// Rounds of loops. A loop is known by its first instruction.
#[derive(Debug, Default)]
struct Loops {
    /// First instructions of loops, and the last jump back to them.
    heads: BTreeMap<u64, u64>,
    /// Rounds so far, by loop and depth of the call it is in: a loop may call itself.
    current: FxHashMap<(u64, usize), u64>,
    trips: BTreeMap<u64, Trips>,
}

/// How many rounds a loop had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trips {
    /// How often it was entered.
    pub entries: u64,
    /// Rounds of all entries.
    pub rounds: u64,
    /// The fewest rounds of one entry.
    pub min: u64,
    /// The most.
    pub max: u64,
}

impl Trips {
    const NONE: Trips = Trips {
        entries: 0,
        rounds: 0,
        min: u64::MAX,
        max: 0,
    };

    fn add(&mut self, rounds: u64) {
        self.entries += 1;
        self.rounds += rounds;
        self.min = self.min.min(rounds);
        self.max = self.max.max(rounds);
    }
}

impl Loops {
    /// A run at this depth; `before` is the one before it.
    fn run(&mut self, run: &Run, before: Option<&Run>, depth: usize) {
        for (&head, _) in self.heads.range(run.start..=run.source()) {
            let jumped = |last: &&Run| {
                let direct = matches!(last.exit, Exit::Taken | Exit::DirectJump);
                direct && last.next == head && last.source() >= head
            };
            let again = head == run.start && before.filter(jumped).is_some();
            let rounds = self.current.entry((head, depth)).or_insert(0);
            if again {
                *rounds += 1;
                continue;
            }
            let done = std::mem::replace(rounds, 1);
            if done > 0 {
                self.trips.entry(head).or_insert(Trips::NONE).add(done);
            }
        }
    }

    /// A jump back in a function.
    fn jump(&mut self, run: &Run, depth: usize) {
        let back = self.heads.entry(run.next).or_insert_with(|| {
            // It was entered once, before it was known to be a loop.
            self.current.insert((run.next, depth), 1);
            run.source()
        });
        *back = run.source().max(*back);
    }

    fn finish(&mut self) {
        let mut left: Vec<_> = self.current.drain().collect();
        order::sort_by_key(&mut left, |trips| *trips);
        for ((head, _), rounds) in left {
            self.trips.entry(head).or_insert(Trips::NONE).add(rounds);
        }
    }
}

impl<'a> JumpCounter<'a> {
    /// A counter for code of `image` with these functions.
    #[must_use]
    pub fn new(image: &'a Image, functions: Functions) -> JumpCounter<'a> {
        JumpCounter {
            image,
            functions,
            whole: Functions::new(),
            runs: Runs::default(),
            stacks: Stacks::new(Grouping::default(), ()),
            spaces: Spaces::default(),
            targets: FxHashMap::default(),
            loops: Loops::default(),
            last: PerHart::default(),
        }
    }

    fn run(&mut self, id: HartId, run: &Run) {
        let function = self.functions.of(run.start);
        let code = function.map_or(UNNAMED, |id| id.0);
        let space = self.spaces.of(id);
        self.runs.count(space, run, 0, &self.whole);
        let depth = self.stacks.depth(id);
        let last = self.last.of(id);
        self.loops.run(run, last.run.as_ref(), depth);
        if run.exit.is_indirect() {
            let known = self.targets.entry((run.source(), run.next));
            known.or_insert((run.exit, 0)).1 += 1;
        }
        last.run = match run.exit {
            Exit::TrapReturn => last.interrupted.pop().flatten(),
            _ => Some(*run),
        };
        self.stacks
            .run(id, &Passed::of(run, space, code, 0), &mut self.functions);
        let jumps = matches!(run.exit, Exit::Taken | Exit::DirectJump);
        if jumps && run.next <= run.source() && self.functions.of(run.next) == function {
            self.loops.jump(run, depth);
        }
    }

    /// No more events.
    #[must_use]
    pub fn finish(mut self) -> Jumps {
        self.loops.finish();
        let mut branches: BTreeMap<u64, BranchCount> = BTreeMap::new();
        for counted in self.runs.into_counts() {
            count_branch(&mut branches, &counted);
        }
        let mut indirect: BTreeMap<u64, IndirectJump> = BTreeMap::new();
        for ((source, target), (exit, count)) in self.targets {
            let exit = exit as u8;
            let jump = indirect.entry(source).or_insert(IndirectJump {
                exit,
                targets: Vec::new(),
            });
            jump.targets.push((target, count));
        }
        for jump in indirect.values_mut() {
            order::sort_by_key(&mut jump.targets, |(target, count)| {
                (std::cmp::Reverse(*count), *target)
            });
        }
        let loops = self.loops.heads.iter();
        let loops = loops.filter_map(|(head, back)| {
            let trips = *self.loops.trips.get(head)?;
            Some((*head, LoopTrips { back: *back, trips }))
        });
        Jumps {
            branches,
            indirect,
            loops: loops.collect(),
        }
    }
}

impl Consumer for JumpCounter<'_> {
    fn event(&mut self, id: HartId, event: &Event) -> ControlFlow<()> {
        match event {
            Event::Run(run) => {
                self.run(id, run);
                return ControlFlow::Continue(());
            }
            Event::Context(owner) => self.spaces.enter(id, owner, self.image),
            Event::Code(space) => self.spaces.set(id, *space),
            Event::Trap(_) => {
                let last = self.last.of(id);
                let run = last.run.take();
                if last.interrupted.len() < MAX_TRAPS {
                    last.interrupted.push(run);
                }
            }
            Event::Gap(_) => self.last.of(id).run = None,
            _ => {}
        }
        self.stacks.event(id, event);
        ControlFlow::Continue(())
    }

    fn runs(&mut self, id: HartId, runs: &[Run]) -> ControlFlow<()> {
        for run in runs {
            self.run(id, run);
        }
        ControlFlow::Continue(())
    }
}

/// An instruction that jumps to where a register says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndirectJump {
    exit: u8,
    /// Where it went, and how often; the most frequent first.
    pub targets: Vec<(u64, u64)>,
}

impl IndirectJump {
    /// How often it was executed.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.targets.iter().map(|(_, count)| count).sum()
    }

    /// What it is called.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        const CALL: u8 = Exit::IndirectCall as u8;
        const RETURN: u8 = Exit::Return as u8;
        const SWAP: u8 = Exit::Swap as u8;
        const TRAP: u8 = Exit::TrapReturn as u8;
        match self.exit {
            CALL => "call",
            RETURN => "return",
            SWAP => "swap",
            TRAP => "trap return",
            _ => "jump",
        }
    }
}

/// A loop, and how many rounds it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopTrips {
    /// The last instruction that jumps back.
    pub back: u64,
    /// Its rounds.
    pub trips: Trips,
}

/// Every jump of a run, by address.
#[derive(Clone, Debug, Default)]
pub struct Jumps {
    /// Conditional branches.
    pub branches: BTreeMap<u64, BranchCount>,
    /// Indirect jumps, calls and returns.
    pub indirect: BTreeMap<u64, IndirectJump>,
    /// Loops, by their first instruction.
    pub loops: BTreeMap<u64, LoopTrips>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn functions() -> Functions {
        Functions::testing(&[(0x1000, 0x1100, "f"), (0x1100, 0x1200, "g")])
    }

    fn run(start: u64, insns: u32, exit: Exit, next: u64) -> Run {
        Run {
            start,
            end: start + 4 * u64::from(insns),
            next,
            insns,
            exit,
            last: 4,
        }
    }

    fn jumps(runs: &[Run]) -> Jumps {
        let image = Image::new();
        let mut counter = JumpCounter::new(&image, functions());
        for run in runs {
            let _ = counter.event(HartId(0), &Event::Run(*run));
        }
        counter.finish()
    }

    /// Two entries of three and five rounds, the second left in the middle.
    #[test]
    fn rounds_of_a_loop() {
        let into = run(0x1000, 1, Exit::DirectJump, 0x1010);
        let round = run(0x1010, 2, Exit::Taken, 0x1010);
        let out = run(0x1010, 2, Exit::NotTaken, 0x1018);
        let mut all = vec![into, round, round, out];
        all.push(run(0x1018, 1, Exit::DirectJump, 0x1000));
        all.extend([into, round, round, round, round]);
        all.push(run(0x1010, 1, Exit::IndirectJump, 0x1020));
        let found = jumps(&all);
        let trips = found.loops[&0x1010].trips;
        assert_eq!((trips.entries, trips.rounds), (2, 8));
        assert_eq!((trips.min, trips.max), (3, 5));
        assert_eq!(found.loops[&0x1010].back, 0x1014);
        let branch = found.branches[&0x1014];
        assert_eq!((branch.taken, branch.not_taken), (6, 1));
        assert_eq!(found.indirect[&0x1010].targets, [(0x1020, 1)]);
        // The jump from the end to the start is a loop too.
        assert_eq!(found.loops[&0x1000].trips.rounds, 2);
    }

    /// A function that calls itself out of its loop: each call has its own rounds.
    #[test]
    fn a_loop_that_calls_itself() {
        let call = run(0x1000, 1, Exit::DirectCall, 0x1000);
        let back = run(0x1004, 1, Exit::Taken, 0x1000);
        let ret = run(0x1004, 2, Exit::Return, 0x1004);
        // Outer: a round, then a round with a call of two rounds.
        let skip = run(0x1000, 2, Exit::Taken, 0x1000);
        let found = jumps(&[
            skip,
            call,
            skip,
            run(0x1000, 3, Exit::Return, 0x1004),
            back,
            ret,
        ]);
        let trips = found.loops[&0x1000].trips;
        assert_eq!((trips.entries, trips.rounds, trips.max), (2, 4, 2));
    }

    /// A trap between the jump and the first instruction is no entry.
    #[test]
    fn traps_do_not_enter_loops() {
        let image = Image::new();
        let mut counter = JumpCounter::new(&image, functions());
        let round = Event::Run(run(0x1010, 2, Exit::Taken, 0x1010));
        let trap = Event::Trap(hartrace_flow::Trap {
            epc: Some(0x1010),
            handler: Some(0x1100),
            cause: hartrace_flow::Cause::Unknown,
            tval: None,
            pending: None,
        });
        let back = Event::Run(run(0x1100, 2, Exit::TrapReturn, 0x1010));
        for event in [round, round, trap, back, round, round] {
            let _ = counter.event(HartId(0), &event);
        }
        let found = counter.finish();
        let trips = found.loops[&0x1010].trips;
        assert_eq!((trips.entries, trips.rounds), (1, 4));
        assert_eq!(found.indirect[&0x1104].kind(), "trap return");
    }
}
