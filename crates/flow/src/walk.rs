//! The walk: from decision to decision through the program, on what the trace
//! tells and nothing else.
//!
//! N-Trace counts and E-Trace addresses ask the same walk different questions:
//! "so many halfwords from here" ([`Walk::advance`]) and "to this address"
//! ([`Walk::advance_to`]). Both stop where [`Evidence`] is wanted, and the
//! decoder answers with [`Walk::branch`], [`Walk::target`] or a restart.
//!
//! The walk stands *in front of* an instruction: what it has given out are
//! exactly the instructions before it.

use core::ops::ControlFlow;

use crate::blocks::{Block, BlockId, Kind, NOWHERE};
use crate::chain::Lookup;
use crate::{Blocks, Consumer, Evidence, Exit, HartId, ReturnStack, Run, SpaceId};

/// Why a walk stopped, always in front of an instruction it has not given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The count is used up, or the address is reached.
    Arrived,
    /// At a branch, without evidence: go on with [`Walk::branch`].
    Branch,
    /// At a jump whose target the code does not tell: go on with
    /// [`Walk::target`]. The exit is the jump's class.
    Target(Exit),
    /// At ecall or ebreak, which do not retire. [`Walk::retire`] passes it.
    Trap,
    /// There is no code here.
    Missing,
    /// The count ends inside the instruction the walk stands before.
    HalfInstruction,
    /// The evidence says a direct jump was not taken.
    Contradiction,
    /// Without evidence the walk would go round for ever.
    Endless,
    /// The consumer asked for a pause; calling again goes on.
    Paused,
}

/// Where [`Walk::advance_to`] goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Goal {
    /// The instruction to stop before.
    pub address: u64,
    /// Do not count the instruction the walk stands before: the trace has
    /// named it already.
    pub leave_first: bool,
    /// If the goal is a branch, its own outcome is the last of the evidence
    /// (E-Trace: the address is that of a retired instruction). It is left
    /// there.
    pub own_outcome: bool,
}

/// A position in the program and the way onwards.
#[derive(Clone, Debug)]
pub struct Walk {
    hart: HartId,
    space: SpaceId,
    block: BlockId,
    /// Halfwords of the block already given out.
    done: u32,
    /// The current instruction, where the block does not tell.
    pc: u64,
    stack: Option<ReturnStack>,
    watch: Watch,
}

/// Notices that the walk goes round without evidence: a state is kept and
/// compared with the ones that follow; the kept one is replaced at every power
/// of two, so a circle of any length is found.
///
/// From equal states a walk goes on equally only where it does not reach into
/// what lies on the stack below the top: a function called twice is no circle.
/// Where a return does reach there, the state behind it is kept instead, so
/// that at last one is kept that the circle never returns from.
#[derive(Clone, Copy, Debug, Default)]
struct Watch {
    kept: Option<State>,
    steps: u64,
    /// The walk was only paused: a call that goes on brings no new evidence.
    paused: bool,
}

/// Where a walk is, as far as its way onwards depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    block: BlockId,
    depth: usize,
    top: Option<u64>,
}

/// Blocks that a walk goes through without evidence at most. Thirty functions
/// that each call the next one twice are a program of some hundred bytes and a
/// walk of a billion calls.
const MAX_BLIND: u64 = 1 << 20;

impl Watch {
    /// A new call: a new count or address is evidence, going on after a pause
    /// is not.
    fn begin(&mut self) {
        if !core::mem::take(&mut self.paused) {
            *self = Watch::default();
        }
    }

    /// There was evidence.
    #[inline]
    fn reset(&mut self) {
        if self.steps != 0 {
            *self = Watch::default();
        }
    }

    fn pause(&mut self) -> Stop {
        self.paused = true;
        Stop::Paused
    }

    /// Whether this state was seen since the last evidence, or enough has
    /// been. On the way to it the stack had `low` entries at least.
    fn repeats(&mut self, state: State, low: usize) -> bool {
        if self.kept.is_some_and(|kept| low + 1 < kept.depth) {
            self.kept = Some(state);
        } else if self.kept == Some(state) {
            return true;
        }
        self.steps += 1;
        if self.steps.is_power_of_two() {
            self.kept = Some(state);
        }
        self.steps >= MAX_BLIND
    }
}

impl Walk {
    /// A walk that stands nowhere until [`Walk::restart`].
    #[must_use]
    pub fn new(hart: HartId) -> Walk {
        Walk {
            hart,
            space: SpaceId::FIRST,
            block: NOWHERE,
            done: 0,
            pc: 0,
            stack: None,
            watch: Watch::default(),
        }
    }

    /// Lets the walk follow returns through this stack.
    pub fn set_stack(&mut self, stack: Option<ReturnStack>) {
        self.stack = stack;
    }

    /// The return stack, if there is one.
    pub fn stack(&mut self) -> Option<&mut ReturnStack> {
        self.stack.as_mut()
    }

    /// The space the walk reads code from.
    #[must_use]
    pub const fn space(&self) -> SpaceId {
        self.space
    }

    /// Goes on in another space or epoch at the same address.
    pub fn enter(&mut self, blocks: &mut Blocks<'_>, space: SpaceId) {
        let pc = self.pc(blocks);
        self.space = space;
        self.restart(blocks, pc);
    }

    /// Stands before the instruction at `pc`, wherever the walk was. Nothing
    /// is given out and the return stack stays.
    pub fn restart(&mut self, blocks: &mut Blocks<'_>, pc: u64) {
        self.block = blocks.find(self.space, pc);
        self.done = 0;
        self.pc = pc;
        self.watch = Watch::default();
    }

    /// The instruction the walk stands before.
    #[must_use]
    pub fn pc(&self, blocks: &Blocks<'_>) -> u64 {
        if self.done > 0 || self.block == NOWHERE {
            return self.pc;
        }
        let block = blocks.block(self.block);
        blocks
            .runs(&block, false)
            .first()
            .map_or(block.at, |r| r.start)
    }

    /// Halfwords from here to the next decision, the deciding instruction
    /// included.
    #[must_use]
    pub fn to_decision(&self, blocks: &Blocks<'_>) -> u32 {
        blocks.block(self.block).halfwords - self.done
    }

    /// Walks `left` halfwords, or as far as the evidence goes; what was walked
    /// is taken off `left`. Starting from [`UNCOUNTED`] there is no count: then
    /// a walk that goes round without evidence stops as [`Stop::Endless`].
    #[inline]
    pub fn advance<E: Evidence, C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        evidence: &mut E,
        left: &mut u64,
        out: &mut C,
    ) -> Stop {
        self.watch.begin();
        loop {
            let block = blocks.block(self.block);
            if let Some(flow) = self.chain(blocks, &block, evidence, left, out) {
                if flow.is_break() {
                    return self.watch.pause();
                }
                continue;
            }
            let way = u64::from(block.halfwords - self.done);
            if way > *left {
                return self.cut(blocks, &block, left, out);
            }
            if block.kind == Kind::Branch && self.done == 0 {
                let Some(taken) = evidence.branch(block.at, way == *left) else {
                    return Stop::Branch;
                };
                *left -= way;
                if self.follow(blocks, &block, taken, out).is_break() {
                    return self.watch.pause();
                }
                continue;
            }
            let decision = self.decide(blocks, &block, evidence, way == *left);
            if let Decision::Ask(stop) = decision {
                return stop;
            }
            *left -= way;
            let flow = self.perform(blocks, &block, decision, out);
            if let Decision::End(stop) = decision {
                return if *left == 0 { Stop::Arrived } else { stop };
            }
            if *left > UNCOUNTED / 2 && self.goes_round(blocks, &block, decision) {
                return Stop::Endless;
            }
            if flow.is_break() {
                return self.watch.pause();
            }
        }
    }

    /// Walks to an address, through all the outcomes of the evidence but, where
    /// [`Goal::own_outcome`] says so, the goal's own.
    pub fn advance_to<E: Evidence, C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        evidence: &mut E,
        goal: Goal,
        out: &mut C,
    ) -> Stop {
        self.watch.begin();
        let mut from = self.done + u32::from(goal.leave_first);
        loop {
            let block = blocks.block(self.block);
            let decides = block.kind == Kind::Branch && goal.address == block.at;
            let own = u64::from(goal.own_outcome && decides);
            if evidence.left() == own
                && let Some(at) = locate(blocks, &block, self.space, goal.address, from)
            {
                let mut left = u64::from(at - self.done);
                return self.cut(blocks, &block, &mut left, out);
            }
            from = 0;
            let decision = self.decide(blocks, &block, evidence, false);
            if let Decision::Ask(stop) = decision {
                return stop;
            }
            let flow = self.perform(blocks, &block, decision, out);
            if let Decision::End(stop) = decision {
                return stop;
            }
            if self.goes_round(blocks, &block, decision) {
                return Stop::Endless;
            }
            if flow.is_break() {
                return self.watch.pause();
            }
        }
    }

    /// Answers [`Stop::Branch`]: gives out everything up to and including the
    /// branch, [`Walk::to_decision`] halfwords.
    pub fn branch<C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        taken: bool,
        out: &mut C,
    ) -> ControlFlow<()> {
        let block = blocks.block(self.block);
        self.watch = Watch::default();
        // Only a branch has two sides; a jump that uses up evidence has one.
        let taken = taken && block.kind == Kind::Branch;
        self.perform(blocks, &block, Decision::Side(taken), out)
    }

    /// Answers [`Stop::Target`]: gives out everything up to and including the
    /// jump, and stands at `to`. A return uses up the top of the stack whether
    /// it agrees or not.
    pub fn target<C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        to: u64,
        out: &mut C,
    ) -> ControlFlow<()> {
        let block = blocks.block(self.block);
        self.watch = Watch::default();
        self.perform(blocks, &block, Decision::To(to), out)
    }

    /// Gives out the one instruction the walk stands before, as far as it can
    /// be told without evidence: its run ends in [`Exit::Stop`]. Passes ecall
    /// where a trace counts it as retired, and the last instruction before a
    /// trap. The walk then stands behind it. `false` without code.
    pub fn retire<C: Consumer>(&mut self, blocks: &mut Blocks<'_>, out: &mut C) -> bool {
        let pc = self.pc(blocks);
        let Some(f) = blocks.image().fetch(self.space, pc) else {
            return false;
        };
        let end = pc.wrapping_add(u64::from(f.len));
        let next = f.isa.xlen().wrap(end);
        let run = Run {
            start: pc,
            end,
            next,
            insns: 1,
            exit: Exit::Stop,
            last: f.len,
        };
        // The caller asked for one instruction; there is nothing to pause.
        let _ = out.runs(self.hart, &[run]);
        self.restart(blocks, next);
        true
    }

    /// The fast path: as many as eight outcomes in one slice of runs. `None`
    /// if this place has none; then nothing has happened.
    #[inline]
    fn chain<E: Evidence, C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        block: &Block,
        evidence: &mut E,
        left: &mut u64,
        out: &mut C,
    ) -> Option<ControlFlow<()>> {
        if self.done != 0 || block.reach == 0 {
            return None;
        }
        let outcomes = evidence.peek(block.reach)?;
        let chain = match blocks.chain(self.block, outcomes) {
            Lookup::Known(chain) => chain,
            Lookup::Unknown => return None,
            Lookup::Wanted => {
                // Built for the next time; eight outcomes tell how far it goes.
                if let Some(outcomes) = evidence.peek(8) {
                    blocks.build_chain(self.space, self.block, outcomes);
                }
                return None;
            }
        };
        *left = left.checked_sub(u64::from(chain.halfwords))?;
        evidence.drop(chain.used);
        self.watch.reset();
        self.block = chain.end;
        let runs = blocks.chain_runs(&chain);
        if let Some(stack) = &mut self.stack {
            stack.follow(runs);
        }
        Some(out.runs(self.hart, runs))
    }

    /// The usual case: a whole block that ends in a branch. Calls end blocks of
    /// their own, so there is nothing to stack.
    #[inline]
    fn follow<C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        block: &Block,
        taken: bool,
        out: &mut C,
    ) -> ControlFlow<()> {
        let next = blocks.follow(self.space, self.block, taken);
        let runs = blocks.runs(block, taken);
        self.block = next;
        self.watch.reset();
        if next == NOWHERE {
            self.pc = runs.last().map_or(block.at, |r| r.next);
        }
        out.runs(self.hart, runs)
    }

    /// What happens at the end of the block, without doing it.
    #[inline]
    fn decide<E: Evidence>(
        &self,
        blocks: &Blocks<'_>,
        block: &Block,
        evidence: &mut E,
        last: bool,
    ) -> Decision {
        match block.kind {
            Kind::Branch => match evidence.branch(block.at, last) {
                Some(taken) => Decision::Side(taken),
                None => Decision::Ask(Stop::Branch),
            },
            Kind::Continue => Decision::Straight,
            Kind::Jump => match evidence.branch(block.at, last) {
                Some(true) => Decision::Side(false),
                Some(false) => Decision::Ask(Stop::Contradiction),
                None => Decision::Ask(Stop::Branch),
            },
            Kind::Target => {
                let run = blocks.runs(block, false).last();
                let exit = run.map_or(Exit::Stop, |r| r.exit);
                let stack = self.stack.as_ref().filter(|s| s.answers(exit));
                match stack.and_then(ReturnStack::top) {
                    Some(to) if evidence.implied_return(block.at, last) => Decision::To(to),
                    _ => Decision::Ask(Stop::Target(exit)),
                }
            }
            Kind::Trap => Decision::End(Stop::Trap),
            Kind::Missing => Decision::End(Stop::Missing),
        }
    }

    /// Gives out the rest of the block and goes where the decision says.
    #[inline]
    fn perform<C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        block: &Block,
        decision: Decision,
        out: &mut C,
    ) -> ControlFlow<()> {
        let taken = matches!(decision, Decision::Side(true));
        let next = match decision {
            Decision::To(to) => Some(blocks.aim(self.space, self.block, to)),
            Decision::End(_) => None,
            _ => Some(blocks.follow(self.space, self.block, taken)),
        };
        let runs = blocks.runs(block, taken);
        let flow = if self.done == 0 {
            if let Some(stack) = &mut self.stack {
                stack.follow(runs);
            }
            out.runs(self.hart, runs)
        } else {
            let span = Span {
                from: self.done,
                to: block.halfwords,
                taken,
            };
            self.give(blocks, block, span, out).0
        };
        match next {
            Some(next) => {
                self.block = next;
                self.done = 0;
                if next == NOWHERE {
                    let last = blocks.runs(block, taken).last();
                    self.pc = last.map_or(block.at, |r| r.next);
                }
            }
            None => {
                self.done = block.halfwords;
                if self.block != NOWHERE {
                    self.pc = block.at;
                }
            }
        }
        flow
    }

    /// Gives out the next `left` halfwords, which end inside the block.
    #[cold]
    fn cut<C: Consumer>(
        &mut self,
        blocks: &Blocks<'_>,
        block: &Block,
        left: &mut u64,
        out: &mut C,
    ) -> Stop {
        if *left == 0 {
            return Stop::Arrived;
        }
        let span = Span {
            from: self.done,
            to: self.done + *left as u32,
            taken: false,
        };
        // A pause is the same as having arrived: the count ends here.
        let (_, done, pc) = self.give(blocks, block, span, out);
        *left -= u64::from(done - self.done);
        self.done = done;
        self.pc = pc;
        if *left == 0 {
            Stop::Arrived
        } else {
            Stop::HalfInstruction
        }
    }

    /// Gives out a part of a block; tells how many of its halfwords are done
    /// then and which instruction is next.
    fn give<C: Consumer>(
        &mut self,
        blocks: &Blocks<'_>,
        block: &Block,
        span: Span,
        out: &mut C,
    ) -> (ControlFlow<()>, u32, u64) {
        let runs = blocks.runs(block, span.taken);
        let mut flow = ControlFlow::Continue(());
        let (mut done, mut pc) = (span.from, self.pc);
        let mut offset = 0;
        for run in runs {
            let start = offset;
            offset += (run.end.wrapping_sub(run.start) / 2) as u32;
            if offset <= span.from || start >= span.to {
                continue;
            }
            let part = if start >= span.from && offset <= span.to {
                Some(*run)
            } else {
                trim(
                    blocks,
                    self.space,
                    run,
                    span.from.saturating_sub(start),
                    span.to - start,
                )
            };
            let Some(part) = part else {
                break;
            };
            if let Some(stack) = &mut self.stack {
                stack.follow(&[part]);
            }
            if out.runs(self.hart, &[part]).is_break() {
                flow = ControlFlow::Break(());
            }
            done = start + (part.end.wrapping_sub(run.start) / 2) as u32;
            pc = part.next;
        }
        (flow, done, pc)
    }

    /// Whether the walk, behind this block now, has been here before without
    /// evidence in between.
    #[inline]
    fn goes_round(&mut self, blocks: &Blocks<'_>, block: &Block, decision: Decision) -> bool {
        if matches!(decision, Decision::Side(_)) {
            self.watch = Watch::default();
            return false;
        }
        let (depth, top) = match &self.stack {
            Some(stack) => (stack.len(), stack.top()),
            None => (0, None),
        };
        // A block has at most one entry for the stack, at its end; a swap
        // takes one and puts one.
        let exit = blocks.runs(block, false).last().map(|r| r.exit);
        let low = depth.saturating_sub(usize::from(exit == Some(Exit::Swap)));
        let state = State {
            block: self.block,
            depth,
            top,
        };
        self.watch.repeats(state, low)
    }
}

/// A count from which on [`Walk::advance`] is not limited by it.
pub const UNCOUNTED: u64 = u64::MAX;

/// What a walk does at the end of a block.
#[derive(Clone, Copy)]
enum Decision {
    /// Follows a branch.
    Side(bool),
    /// Goes on without evidence.
    Straight,
    /// Jumps to an address that the block does not tell.
    To(u64),
    /// Gives out the block and stops behind it.
    End(Stop),
    /// Stops where it is.
    Ask(Stop),
}

/// A part of a block, in halfwords from its start.
struct Span {
    from: u32,
    to: u32,
    taken: bool,
}

/// The instructions of a run that lie wholly between two offsets, in
/// halfwords; `None` if there are none. `from` is where an instruction starts.
fn trim(blocks: &Blocks<'_>, space: SpaceId, run: &Run, from: u32, to: u32) -> Option<Run> {
    let mut part: Option<Run> = None;
    let mut offset = 0;
    for (pc, f) in blocks.image().insns(space, run.start, u64::from(run.insns)) {
        let start = offset;
        offset += u32::from(f.len) / 2;
        if offset > to {
            break;
        }
        if start < from {
            continue;
        }
        let part = part.get_or_insert(Run {
            start: pc,
            insns: 0,
            ..*run
        });
        part.insns += 1;
        part.last = f.len;
        part.end = pc.wrapping_add(u64::from(f.len));
    }
    part.map(|part| match part.end == run.end {
        true => part,
        false => Run {
            exit: Exit::Stop,
            next: part.end,
            ..part
        },
    })
}

/// Where in a block an instruction starts, in halfwords, not before `from`.
fn locate(
    blocks: &Blocks<'_>,
    block: &Block,
    space: SpaceId,
    address: u64,
    from: u32,
) -> Option<u32> {
    let mut offset = 0;
    for run in blocks.runs(block, false) {
        let halfwords = (run.end.wrapping_sub(run.start) / 2) as u32;
        if address.wrapping_sub(run.start) < run.end.wrapping_sub(run.start) {
            let mut at = offset;
            for (pc, f) in blocks.image().insns(space, run.start, u64::from(run.insns)) {
                if pc == address && at >= from {
                    return Some(at);
                }
                at += u32::from(f.len) / 2;
            }
        }
        offset += halfwords;
    }
    // The walk ends right behind the block: at ecall, or where code ends.
    let ends_here = matches!(block.kind, Kind::Trap) && block.at == address && offset >= from;
    ends_here.then_some(offset)
}

#[cfg(test)]
mod tests;
