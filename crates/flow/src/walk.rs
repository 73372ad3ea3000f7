//! The walk: moves through the program from decision to decision, using only
//! what the trace reports.
//!
//! N-Trace counts and E-Trace addresses use the same walk with different goals:
//! a number of halfwords ([`Walk::advance`]) or an address
//! ([`Walk::advance_to`]). Both stop where [`Evidence`] is needed, and the
//! decoder answers with [`Walk::branch`], [`Walk::target`] or a restart.
//!
//! The walk is always *before* an instruction: its output so far is exactly the
//! instructions before it.

mod chains;
mod part;
mod shortcuts;
mod versions;
mod watch;

use self::part::{locate, trim};
pub use self::shortcuts::{Milestone, Report, Shortcut};
pub(crate) use self::versions::Doubts;
use self::watch::Watch;
use crate::blocks::{Block, BlockId, Kind, NOWHERE};
use crate::stretch::{ANY, Name};
use crate::{
    Blocks, Consumer, Context, Evidence, Exit, Fetched, HartId, Kept, ReturnStack, Run, SpaceId,
    Spot, Totals,
};

/// Why a walk stopped, always before an instruction it has not emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The count is used up, the address reached, the evidence used up:
    /// whatever was asked for.
    Arrived,
    /// At a branch, without evidence: go on with [`Walk::branch`].
    Branch,
    /// At a jump whose target the code does not determine: continue with
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
    /// Without evidence the walk would go round for ever, or nearly.
    Endless,
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
    /// Arrive only with this many calls on the return stack (E-Trace
    /// `irdepth`).
    pub depth: Option<usize>,
}

impl Goal {
    /// The next time the walk comes by this address, or now if it is there.
    #[must_use]
    pub const fn new(address: u64) -> Goal {
        Goal {
            address,
            leave_first: false,
            own_outcome: false,
            depth: None,
        }
    }
}

/// A position in the program and the way onwards.
#[derive(Clone, Debug)]
pub struct Walk {
    hart: HartId,
    /// Where the code of its context is; the space it is in now, which may be a
    /// version of code that changes; and the space that the consumer assumes.
    home: SpaceId,
    space: SpaceId,
    told: SpaceId,
    block: BlockId,
    /// Halfwords of the block already given out.
    done: u32,
    /// The current instruction, if the block does not determine it.
    pc: u64,
    stack: Option<ReturnStack>,
    /// Instructions given out since the walk was made, and their halfwords.
    insns: u64,
    halfwords: u64,
    /// The last synchronisation message, and the halfwords given out before it; the last
    /// time; the context. They determine the version of code.
    sync: Option<(u64, u64)>,
    time: Option<u64>,
    context: Option<Context>,
    /// How often it came to an address that its space has no code for.
    landed: u64,
    /// What was walked with code that may have been another one, and whether there is
    /// anything of it to report after the message.
    doubts: Doubts,
    alert: bool,
    /// An instruction given out, and how many there were with it: the last one
    /// while that is still `insns`.
    last: (u64, u64),
    /// The consumer asked for a pause.
    pause: bool,
    /// All versions of code that it came to since the last [`Walk::mark`] stay in place until
    /// after a synchronisation message that ends at this offset; 0 if that is not known, or it
    /// did not walk all the way.
    stays: u64,
    /// Other harts and contexts may come to others.
    own: bool,
}

/// The count of a walk that is not limited by one: so large that no walk uses
/// up half of it.
pub const UNCOUNTED: u64 = u64::MAX;

impl Walk {
    /// A walk that stands nowhere until [`Walk::restart`].
    #[must_use]
    pub fn new(hart: HartId) -> Walk {
        Walk {
            hart,
            home: SpaceId::FIRST,
            space: SpaceId::FIRST,
            told: SpaceId::FIRST,
            block: NOWHERE,
            done: 0,
            pc: 0,
            stack: None,
            insns: 0,
            halfwords: 0,
            sync: None,
            time: None,
            context: None,
            landed: 0,
            doubts: Doubts::default(),
            alert: false,
            last: (0, 0),
            pause: false,
            stays: u64::MAX,
            own: false,
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

    /// The space the walk reads code from: that of its context, or a version of code that
    /// changes.
    #[must_use]
    pub const fn space(&self) -> SpaceId {
        self.space
    }

    /// Instructions given out since the walk was made.
    #[must_use]
    #[inline]
    pub const fn instructions(&self) -> u64 {
        self.insns
    }

    /// The last instruction given out; where that is a branch, perhaps `None`.
    #[must_use]
    pub fn last(&self) -> Option<u64> {
        let (at, insns) = self.last;
        (insns == self.insns && insns > 0).then_some(at)
    }

    /// Whether the consumer has asked for a pause since this was last called.
    /// The walk itself goes on to its end: what it gives is bounded by its
    /// count or evidence, and a pause in between would change nothing.
    pub fn take_pause(&mut self) -> bool {
        core::mem::take(&mut self.pause)
    }

    /// Goes on in another space or epoch at the same address.
    pub fn enter(&mut self, blocks: &mut Blocks<'_>, space: SpaceId) {
        let pc = self.pc(blocks);
        self.home = space;
        self.told = space;
        self.restart(blocks, pc);
    }

    /// Stands before the instruction at `pc`, wherever the walk was. Nothing
    /// is given out and the return stack stays.
    ///
    /// Decoders do this at every sync point even when the walk is there
    /// already: then it makes no difference whether decoding began there.
    pub fn restart(&mut self, blocks: &mut Blocks<'_>, pc: u64) {
        self.space = self.home;
        self.block = blocks.find(self.space, pc);
        self.done = 0;
        self.pc = pc;
        // It did not walk here.
        self.stays = 0;
        if self.block == NOWHERE {
            self.land(blocks, pc);
        }
    }

    /// The instruction the walk stands before.
    #[must_use]
    pub fn pc(&self, blocks: &Blocks<'_>) -> u64 {
        if self.done > 0 || self.block == NOWHERE {
            return self.pc;
        }
        let block = blocks.block(self.block);
        let first = blocks.runs(&block, false).first();
        first.map_or(block.at, |r| r.start)
    }

    /// After [`Stop::Branch`] and [`Stop::Target`]: the branch or jump.
    #[must_use]
    pub fn decision(&self, blocks: &Blocks<'_>) -> u64 {
        blocks.block(self.block).at
    }

    /// After [`Stop::Branch`] and [`Stop::Target`]: halfwords from here to
    /// after the branch or jump.
    #[must_use]
    pub fn to_decision(&self, blocks: &Blocks<'_>) -> u32 {
        blocks.block(self.block).halfwords - self.done
    }

    /// Whether the walk stands right before a conditional branch.
    #[must_use]
    pub fn at_branch(&self, blocks: &Blocks<'_>) -> bool {
        let block = blocks.block(self.block);
        block.kind == Kind::Branch && block.at == self.pc(blocks)
    }

    /// Whether there is a conditional branch at an address.
    #[must_use]
    pub fn is_branch(&self, blocks: &mut Blocks<'_>, address: u64) -> bool {
        self.is_branch_then(blocks, address, Walk::spot)
    }

    /// After [`Stop::Target`]: whether there is one where the jump goes.
    #[must_use]
    pub fn is_branch_after_jump(&self, blocks: &mut Blocks<'_>, address: u64) -> bool {
        let rest = self.to_decision(blocks);
        self.is_branch_then(blocks, address, |walk| walk.spot_after(rest.into()))
    }

    /// Whether there is one at the address that a synchronisation message names, which
    /// ends at this offset of the stream.
    #[must_use]
    pub fn is_branch_at_sync(&self, blocks: &mut Blocks<'_>, address: u64, offset: u64) -> bool {
        let sync = Some((offset, 0));
        self.is_branch_then(blocks, address, |walk| Spot {
            sync,
            ..walk.spot()
        })
    }

    /// Whether there is one at a moment, which matters only where code has versions.
    fn is_branch_then(
        &self,
        blocks: &mut Blocks<'_>,
        address: u64,
        moment: impl FnOnce(&Walk) -> Spot,
    ) -> bool {
        let mut id = blocks.find(self.home, address);
        if id == NOWHERE {
            (_, id) = self.look(blocks, address, &moment(self));
        }
        blocks.is_branch(id, address)
    }

    /// The instruction at an address.
    #[must_use]
    pub fn fetch(&self, blocks: &Blocks<'_>, address: u64) -> Option<Fetched> {
        let image = blocks.image();
        let space = image.space_at(self.home, address, &self.spot())?;
        image.fetch(space, address)
    }

    /// Walks `left` halfwords, or as far as the evidence goes; what was walked
    /// is taken off `left`. Starting from [`UNCOUNTED`] there is no count: then
    /// the walk goes on until it needs an answer, and one that goes round
    /// without evidence stops as [`Stop::Endless`].
    #[inline]
    pub fn advance<E: Evidence, C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        evidence: &mut E,
        left: &mut u64,
        out: &mut C,
    ) -> Stop {
        self.walk::<false, E, C>(blocks, evidence, left, out)
    }

    /// Walks a stretch that has been walked before: so many halfwords with these
    /// outcomes (`HIST` of N-Trace, a stop bit above the oldest; 0 for branches
    /// none of which was taken), and a jump to `to` at its very end. `false`, and
    /// nothing happens, if it is unknown; the general path finds out then.
    #[inline]
    pub fn repeat<C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        outcomes: u64,
        halfwords: u64,
        to: u64,
        out: &mut C,
    ) -> bool {
        match u32::try_from(halfwords) {
            Ok(0) | Err(_) => false,
            Ok(halfwords) => self
                .retrace(blocks, (halfwords, outcomes), to, None, out)
                .is_some(),
        }
    }

    /// As [`Walk::repeat`], but to the next jump that the return stack does not know the
    /// target of, however far it is; not where that is a return. The oldest
    /// outcome is in bit 0, the stop bit above the newest. Where `to` is a branch
    /// its own outcome is the last one; it is left over, as the result
    /// says.
    #[inline]
    pub fn repeat_to_jump<C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        outcomes: u64,
        to: u64,
        out: &mut C,
    ) -> Option<bool> {
        if self.alert {
            return None;
        }
        // Where a stack leads depends on what is on it.
        if self.stack.is_some() {
            return self.retrace(blocks, (ANY, outcomes), to, None, out);
        }
        let report = Report::of_jump(outcomes, to);
        if let Some(known) = self.take_shortcut(blocks, report, out) {
            return Some(known.outcomes != 0);
        }
        self.retrace(blocks, (ANY, outcomes), to, Some((report, 0)), out)
    }

    #[inline(always)]
    fn retrace<C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        (halfwords, outcomes): (u32, u64),
        to: u64,
        message: Option<(Report, u64)>,
        out: &mut C,
    ) -> Option<bool> {
        if self.done != 0 || self.block == NOWHERE {
            return None;
        }
        let name = Name {
            start: self.block,
            halfwords,
            outcomes,
        };
        let stretch = blocks.stretch(self.space, name, self.stack.as_ref())?;
        let xlen = blocks.xlen();
        if halfwords == ANY {
            // The stack may have an address for the jump, or get one on the way.
            let same = match &self.stack {
                None => stretch.returns == 0,
                Some(stack) => !stack.answers(stretch.exit) && blocks.leads(stretch.returns, stack),
            };
            if !same {
                return None;
            }
        }
        let next = blocks.aim(self.space, stretch.jump, to);
        if halfwords == ANY && next == NOWHERE {
            // Whether a branch is there depends on when it is reached.
            return None;
        }
        if halfwords == ANY && stretch.own != blocks.is_branch(next, to) {
            return None;
        }
        if let Some((report, told)) = message.filter(|_| next != NOWHERE) {
            let told = match halfwords {
                ANY => u64::from(stretch.own),
                _ => told,
            };
            blocks.keep_shortcut((report.into(), told), &stretch, (to, next));
        }
        self.block = next;
        let kept = blocks.stretch_kept(&stretch);
        let runs = blocks.stretch_runs(&stretch, to);
        if let Some(stack) = self.stack.as_mut().filter(|_| stretch.stacks) {
            stack.follow(runs, xlen);
        }
        self.insns += u64::from(stretch.insns);
        self.halfwords += u64::from(stretch.halfwords);
        if let Some(run) = runs.last() {
            self.last = (run.source(), self.insns);
        }
        self.give_kept(kept, (runs, stretch.insns), out);
        if next == NOWHERE {
            self.land(blocks, to);
        }
        Some(stretch.own)
    }

    /// Walks until the last outcome is used and stops right after that
    /// branch (N-Trace ResourceFull with history). Also returns how many
    /// halfwords that was.
    pub fn use_up<E: Evidence, C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        evidence: &mut E,
        out: &mut C,
    ) -> (Stop, u64) {
        let mut left = UNCOUNTED;
        let stop = self.walk::<true, E, C>(blocks, evidence, &mut left, out);
        (stop, UNCOUNTED - left)
    }

    /// Gives out the one instruction the walk stands before, with the evidence
    /// it needs.
    pub fn step<E: Evidence, C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        evidence: &mut E,
        out: &mut C,
    ) -> Stop {
        let pc = self.pc(blocks);
        let fetched = self.fetch(blocks, pc);
        let mut left = fetched.map_or(1, |f| u64::from(f.len) / 2);
        self.advance(blocks, evidence, &mut left, out)
    }

    #[inline]
    fn walk<const USE_UP: bool, E: Evidence, C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        evidence: &mut E,
        left: &mut u64,
        out: &mut C,
    ) -> Stop {
        let uncounted = *left > UNCOUNTED / 2;
        let mut watch = Watch::new(evidence.left());
        loop {
            let still = if USE_UP { evidence.left() } else { *left };
            if still == 0 {
                return Stop::Arrived;
            }
            if self.chain(blocks, evidence, left, out) {
                if uncounted {
                    watch.is_blind(evidence.left());
                }
                continue;
            }
            let block = blocks.block(self.block);
            let way = u64::from(block.halfwords - self.done);
            if way > *left {
                return self.cut(blocks, &block, left, out);
            }
            if block.kind == Kind::Branch && self.done == 0 {
                let Some(taken) = evidence.branch(block.at, way == *left) else {
                    return Stop::Branch;
                };
                *left -= way;
                self.follow(blocks, &block, taken, out);
            } else {
                let decision = self.decide(blocks, &block, evidence, way == *left);
                if let Decision::Ask(stop) = decision {
                    return stop;
                }
                *left -= way;
                self.perform(blocks, &block, decision, out);
                if let Decision::End(stop) = decision {
                    return if *left == 0 { Stop::Arrived } else { stop };
                }
            }
            if uncounted && watch.is_blind(evidence.left()) && watch.repeats(self.state()) {
                return Stop::Endless;
            }
        }
    }

    /// Walks to an address, through all the outcomes of the evidence but, where
    /// [`Goal::own_outcome`] says so, the goal's own.
    ///
    /// ```
    /// # use hartrace_flow::{Blocks, Check, Goal, HartId, History, Image, Rules, SpaceId, Stop, Walk};
    /// # use hartrace_isa::Isa;
    /// # struct NoObserver;
    /// # impl hartrace_flow::Consumer for NoObserver {
    /// #     fn event(&mut self, _: HartId, _: &hartrace_flow::Event) -> std::ops::ControlFlow<()> {
    /// #         std::ops::ControlFlow::Continue(())
    /// #     }
    /// # }
    /// // loop: c.nop; c.bnez a0, loop; c.nop
    /// let mut image = Image::new();
    /// image.add_raw(SpaceId::FIRST, 0x1000, &[0x01, 0x00, 0x7d, 0xfd, 0x01, 0x00], Isa::RV64GC);
    /// let mut blocks = Blocks::new(&image, Rules::default());
    /// let mut walk = Walk::new(HartId(0));
    /// walk.restart(&mut blocks, 0x1000);
    /// // Twice round, then past the loop: the last outcome is "not taken".
    /// let outcomes = &mut History::new(0b011, 3);
    /// let stop = walk.advance_to(&mut blocks, outcomes, Goal::new(0x1004), &mut NoObserver);
    /// assert_eq!((stop, walk.pc(&blocks)), (Stop::Arrived, 0x1004));
    /// ```
    pub fn advance_to<E: Evidence, C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        evidence: &mut E,
        goal: Goal,
        out: &mut C,
    ) -> Stop {
        let mut watch = Watch::new(evidence.left());
        let mut from = self.done + u32::from(goal.leave_first);
        loop {
            // With more outcomes than a chain uses this is not the end yet.
            if evidence.left() > FAR && self.chain(blocks, evidence, &mut { UNCOUNTED }, out) {
                watch.is_blind(evidence.left());
                from = 0;
                continue;
            }
            let block = blocks.block(self.block);
            if let Some(at) = self.sees(blocks, &block, evidence, goal, from) {
                let mut left = u64::from(at - self.done);
                return self.cut(blocks, &block, &mut left, out);
            }
            from = 0;
            let decision = self.decide(blocks, &block, evidence, false);
            if let Decision::Ask(stop) = decision {
                return stop;
            }
            self.perform(blocks, &block, decision, out);
            if let Decision::End(stop) = decision {
                return stop;
            }
            if watch.is_blind(evidence.left()) && watch.repeats(self.state()) {
                return Stop::Endless;
            }
        }
    }

    /// Where in the block the goal lies, if this is the time to arrive.
    fn sees<E: Evidence>(
        &self,
        blocks: &mut Blocks<'_>,
        block: &Block,
        evidence: &E,
        goal: Goal,
        from: u32,
    ) -> Option<u32> {
        let decides = block.kind == Kind::Branch && goal.address == block.at;
        let depth = self.stack.as_ref().map_or(0, ReturnStack::len);
        let due = evidence.left() == u64::from(goal.own_outcome && decides);
        if !due || goal.depth.is_some_and(|d| d != depth) {
            return None;
        }
        if self.block == NOWHERE {
            return (self.pc == goal.address && from == 0).then_some(0);
        }
        locate(blocks, block, self.space, goal.address, from)
    }

    /// Answers [`Stop::Branch`]: gives out everything up to and including the
    /// branch, [`Walk::to_decision`] halfwords. `false`, and nothing happens,
    /// where the way does not lead to a branch, or to a direct jump that was
    /// taken.
    pub fn branch<C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        taken: bool,
        out: &mut C,
    ) -> bool {
        let block = blocks.block(self.block);
        let side = match block.kind {
            Kind::Branch => taken,
            // A jump has one side only.
            Kind::Jump if taken => false,
            _ => return false,
        };
        self.perform(blocks, &block, Decision::Side(side), out);
        true
    }

    /// Answers [`Stop::Target`]: gives out everything up to and including the
    /// jump, and stands at `to`. A return uses up the top of the stack whether
    /// it agrees or not. `false`, and nothing happens, where the way does not
    /// lead to such a jump.
    pub fn target<C: Consumer>(&mut self, blocks: &mut Blocks<'_>, to: u64, out: &mut C) -> bool {
        let block = blocks.block(self.block);
        if block.kind != Kind::Target {
            return false;
        }
        self.perform(blocks, &block, Decision::To(to), out);
        true
    }

    /// Gives out the instruction the walk stands before although nothing says
    /// where it went: its run ends in [`Exit::Stop`] and the walk is after
    /// it in memory. For an ecall that a trace counts as retired, and for the
    /// last instruction before a gap. `false` without code.
    pub fn retire<C: Consumer>(&mut self, blocks: &mut Blocks<'_>, out: &mut C) -> bool {
        let pc = self.pc(blocks);
        let fetched = self.fetch(blocks, pc);
        let Some(f) = fetched.filter(|_| pc & 1 == 0) else {
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
        self.insns += 1;
        self.halfwords += u64::from(run.halfwords());
        self.last = (pc, self.insns);
        self.give(&[run], out);
        self.restart(blocks, next);
        true
    }

    #[inline]
    fn give<C: Consumer>(&mut self, runs: &[Run], out: &mut C) {
        if self.told != self.space {
            self.tell(out);
        }
        self.pause |= out.runs(self.hart, runs).is_break();
    }

    /// Gives runs that come again, and how many instructions they have.
    #[inline]
    fn give_kept<C: Consumer>(&mut self, kept: Kept, runs: (&[Run], u32), out: &mut C) {
        let (runs, insns) = runs;
        debug_assert_eq!(runs.iter().map(|run| run.insns).sum::<u32>(), insns);
        if !runs.is_empty() {
            if self.told != self.space {
                self.tell(out);
            }
            // Whoever only counts need not look at them.
            let flow = match out.only_counts() {
                true => out.counted(self.hart, Totals::insns(insns.into())),
                false => out.kept_runs(self.hart, kept, runs),
            };
            self.pause |= flow.is_break();
        }
    }

    /// Everything the way onwards depends on, evidence aside.
    fn state(&self) -> (BlockId, u64) {
        let stack = self.stack.as_ref();
        let stack = stack.map_or(0, ReturnStack::fingerprint);
        // Code that has versions may be another one each time.
        (
            self.block,
            stack ^ self.landed.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        )
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
    ) {
        let next = blocks.follow(self.space, self.block, taken);
        let runs = blocks.runs(block, taken);
        self.insns += u64::from(block.insns);
        self.halfwords += u64::from(block.halfwords);
        self.block = next;
        self.give_kept(blocks.kept(block, taken), (runs, block.insns), out);
        if next == NOWHERE {
            let to = blocks.goes_to(block, taken);
            self.land(blocks, to);
        }
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
                let known = stack.and_then(|s| Some((s.top()?, s.len())));
                match known {
                    Some((to, depth)) if evidence.implied_return(block.at, depth, last) => {
                        Decision::To(to)
                    }
                    _ => Decision::Ask(Stop::Target(exit)),
                }
            }
            Kind::Trap => Decision::End(Stop::Trap),
            Kind::Border => Decision::Cross,
            Kind::Missing => Decision::End(Stop::Missing),
        }
    }

    /// Gives out the rest of the block and goes where the decision says.
    fn perform<C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        block: &Block,
        decision: Decision,
        out: &mut C,
    ) {
        let taken = matches!(decision, Decision::Side(true));
        let next = match decision {
            Decision::To(to) => Some(blocks.aim(self.space, self.block, to)),
            Decision::End(_) => None,
            Decision::Cross => Some(NOWHERE),
            _ => Some(blocks.follow(self.space, self.block, taken)),
        };
        let runs = blocks.runs(block, taken);
        if self.done == 0 {
            if let Some(stack) = &mut self.stack {
                stack.follow(runs, blocks.xlen());
            }
            self.insns += u64::from(block.insns);
            self.halfwords += u64::from(block.halfwords);
            if let Some(run) = runs.last() {
                self.last = (run.source(), self.insns);
            }
            self.give_kept(blocks.kept(block, taken), (runs, block.insns), out);
        } else {
            self.give_part(blocks, (block, taken), block.halfwords, out);
        }
        match next {
            Some(next) => {
                self.block = next;
                self.done = 0;
                if next == NOWHERE {
                    let to = match decision {
                        Decision::Cross => block.at,
                        _ => blocks.goes_to(block, taken),
                    };
                    self.land(blocks, to);
                }
            }
            None => {
                self.done = block.halfwords;
                if self.block != NOWHERE {
                    self.pc = block.at;
                }
            }
        }
    }

    /// Gives out the next `left` halfwords, which end inside the block.
    #[cold]
    fn cut<C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        block: &Block,
        left: &mut u64,
        out: &mut C,
    ) -> Stop {
        if *left == 0 {
            return Stop::Arrived;
        }
        let to = self.done + *left as u32;
        let (done, pc) = self.give_part(blocks, (block, false), to, out);
        *left -= u64::from(done - self.done);
        self.done = done;
        self.pc = pc;
        if *left == 0 {
            Stop::Arrived
        } else {
            Stop::HalfInstruction
        }
    }

    /// Gives out a block's runs from where the walk stands up to `to`
    /// halfwords; returns how many of them are done then, and which instruction
    /// is next.
    fn give_part<C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        (block, taken): (&Block, bool),
        to: u32,
        out: &mut C,
    ) -> (u32, u64) {
        let (mut done, mut pc) = (self.done, self.pc);
        let mut offset = 0;
        let mut i = 0;
        while let Some(&run) = blocks.runs(block, taken).get(i) {
            i += 1;
            let start = offset;
            offset += run.halfwords();
            if offset <= self.done || start >= to {
                continue;
            }
            let part = if start >= self.done && offset <= to {
                Some(run)
            } else {
                let from = self.done.saturating_sub(start);
                trim(blocks, self.space, &run, from, to - start)
            };
            let Some(part) = part else {
                break;
            };
            if let Some(stack) = &mut self.stack {
                stack.follow(&[part], blocks.xlen());
            }
            self.insns += u64::from(part.insns);
            self.halfwords += u64::from(part.halfwords());
            self.last = (part.source(), self.insns);
            self.give(&[part], out);
            done = start + (part.end.wrapping_sub(run.start) / 2) as u32;
            pc = part.next;
        }
        (done, pc)
    }
}

/// Outcomes left from which on a chain cannot use up all that an address walk
/// has to look at: the longest chain and the goal's own.
const FAR: u64 = 9;

/// What a walk does at the end of a block.
#[derive(Clone, Copy)]
enum Decision {
    /// Follows a branch.
    Side(bool),
    /// Goes on without evidence.
    Straight,
    /// Goes on without evidence, in code of another space.
    Cross,
    /// Jumps to an address that the block does not determine.
    To(u64),
    /// Emits the block and stops after it.
    End(Stop),
    /// Stops where it is.
    Ask(Stop),
}

#[cfg(test)]
mod tests;
