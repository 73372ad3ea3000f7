//! Follows packets along paths through the code.

use hartrace_flow::decode::Nothing;
use hartrace_flow::{Blocks, Consumer, Evidence, Exit, Goal, History, Stop, UNCOUNTED};

use super::pending::{Next, Outcomes, Pending, Trouble};
use super::source::Source;
use super::trail::{As, BeforeTrap, Lead, More, Returns, Trail};
use super::{Ctx, Settings};
use crate::{BranchMap, Fault, ReturnRule};

impl Source {
    /// Walks to where the waiting packet says, if there is one.
    #[inline(always)]
    pub(super) fn resolve<C: Consumer>(
        &mut self,
        next: Next,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        let Some(pending) = self.pending else {
            return Ok(());
        };
        if next == Next::Flow
            && !(cx.modal && pending.modal)
            && self.repeat_pending(&pending, cx.blocks, cx.out)
        {
            self.pending = None;
            if cx.modal {
                self.aids.landed(pending.address);
            }
            return Ok(());
        }
        self.resolve_anew(pending, next, cx)
    }

    /// Walks to where the waiting packet says, a jump, if it led there before. It is no longer
    /// to wait then.
    #[inline(always)]
    pub(super) fn repeat_pending<C: Consumer>(
        &mut self,
        pending: &Pending,
        blocks: &mut Blocks<'_>,
        out: &mut C,
    ) -> bool {
        if pending.arrived {
            return false;
        }
        let (word, to) = (pending.outcomes.word(), pending.address);
        let Some(own) = self.track.walk.repeat_to_jump(blocks, word, to, out) else {
            return false;
        };
        self.carry = match own {
            true => pending.outcomes.last(),
            false => Outcomes::default(),
        };
        (self.named, self.closed) = (true, false);
        self.track.confirm();
        true
    }

    /// The same for a way that is not remembered.
    #[inline(never)]
    fn resolve_anew<C: Consumer>(
        &mut self,
        mut pending: Pending,
        next: Next,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        let mut more = self.more_of(&pending);
        if next == Next::Unknown && matches!(more.returns, Returns::Depth(_)) {
            // Which return it means depends on what follows.
            return Ok(());
        }
        if next != Next::Unknown && self.is_irdepth(cx.settings) {
            if self.is_ambiguous((&pending, more), next, cx.blocks, cx.table) {
                return Err((Fault::AmbiguousReturn, pending.address));
            }
            // How the address was reached is not known, but there is no other.
            if next == Next::Sync
                && let Returns::Depth(_) = more.returns
            {
                more.returns = Returns::Any;
            }
        }
        self.pending = None;
        self.carry = pending.outcomes;
        let to = pending.address;
        self.closed = false;
        match next {
            Next::Flow => {
                // The outcome of a branch has been reported where the walk arrived:
                // there is none left for another time.
                if !(pending.arrived && self.track.walk.at_branch(cx.blocks)) {
                    let plain = !pending.arrived && more.is_nothing();
                    let keeps = plain && cx.out.only_counts();
                    let mark = keeps.then(|| self.track.walk.mark());
                    self.jump(to, more, cx)?;
                    if let Some(mark) = mark {
                        let (word, own) = (pending.outcomes.word(), self.carry.len > 0);
                        let walk = &self.track.walk;
                        walk.keep_way_to_jump(cx.blocks, word, (to, own), mark);
                    }
                }
            }
            Next::Sync if pending.arrived => self.closed = true,
            Next::Unknown if pending.arrived => self.pending = Some(pending),
            Next::Sync | Next::Unknown => {
                let jumped = self.approach_any(to, more, cx)?;
                self.closed = next == Next::Sync && !jumped;
                if next == Next::Unknown && !jumped {
                    pending.arrived = true;
                    pending.outcomes = self.carry;
                    // What is left is on the way to the next jump.
                    self.more = More {
                        returns: match more.returns {
                            Returns::Count(_) => Returns::Count(0),
                            returns => returns,
                        },
                        ..More::default()
                    };
                    pending.modal = !self.more.is_nothing();
                    self.pending = Some(pending);
                }
            }
        }
        self.named = true;
        if self.pending.is_none() {
            self.track.confirm();
        }
        Ok(())
    }

    /// What the packet that waits says besides.
    fn more_of(&self, pending: &Pending) -> More {
        match pending.modal {
            true => self.more,
            false => More::default(),
        }
    }

    /// Whether the encoder reports `irdepth`, and goes by the texts alone.
    fn is_irdepth(&self, settings: &Settings) -> bool {
        settings.modes.implicit_return
            && !settings.modes.iret_ext
            && settings.config.return_rule == ReturnRule::Specification
    }

    /// What a synchronisation at this address says about the packet that waits.
    /// If that was sent because of the synchronisation, its instruction comes
    /// right before. Else it was sent for a jump, and the synchronisation came
    /// later without further ado.
    pub(super) fn before(&self, blocks: &mut Blocks<'_>, address: u64) -> Next {
        let Some(pending) = self.pending else {
            return Next::Unknown;
        };
        if pending.modal {
            return Next::Sync;
        }
        let named = self.track.walk.fetch(blocks, pending.address);
        let behind = named.map(|f| pending.address.wrapping_add(f.len.into()));
        if behind == Some(address) {
            return Next::Sync;
        }
        let mut probe = self.track.walk.clone();
        probe.restart(blocks, pending.address);
        let mut own = pending.outcomes.last().evidence();
        let stop = probe.step(blocks, &mut own, &mut Nothing);
        if stop != Stop::Arrived || probe.pc(blocks) == address {
            return Next::Sync;
        }
        // Whoever does not keep to that is given the benefit of the doubt.
        let mut probe = self.track.walk.clone();
        let mut evidence = pending.outcomes.evidence();
        let stop = probe.advance(blocks, &mut evidence, &mut { UNCOUNTED }, &mut Nothing);
        let own = probe.is_branch(blocks, pending.address);
        match stop {
            Stop::Target(_) if evidence.left() == u64::from(own) => Next::Flow,
            _ => Next::Sync,
        }
    }

    /// Whether the code leads from the instruction named last to an address
    /// without a further decision: straight on, or by a jump that this
    /// instruction is; `changed` into another mode, by the next return from a
    /// trap, which is this instruction if a packet of format 3 follows it at once.
    pub(super) fn leads_to(&self, blocks: &mut Blocks<'_>, address: u64, changed: bool) -> bool {
        let mut probe = self.track.walk.clone();
        let mut own = self.carry.evidence();
        if let Some(pending) = self.pending {
            probe.restart(blocks, pending.address);
            own = Outcomes::default().evidence();
            if probe.at_branch(blocks) {
                own = pending.outcomes.last().evidence();
            }
        }
        let from = probe.pc(blocks);
        if changed {
            let stop = probe.advance(blocks, &mut own, &mut { UNCOUNTED }, &mut Nothing);
            let near = !self.closed || probe.decision(blocks) == from;
            return stop == Stop::Target(Exit::TrapReturn) && near;
        }
        let goal = Goal {
            leave_first: self.named || self.pending.is_some(),
            ..Goal::new(address)
        };
        match probe.advance_to(blocks, &mut own, goal, &mut Nothing) {
            Stop::Arrived => true,
            Stop::Target(_) => probe.decision(blocks) == from,
            _ => false,
        }
    }

    /// Whether the code leads back to the instruction named last without a
    /// decision.
    pub(super) fn comes_round(&self, blocks: &mut Blocks<'_>) -> bool {
        let mut probe = self.track.walk.clone();
        let goal = Goal {
            leave_first: true,
            ..Goal::new(probe.pc(blocks))
        };
        let mut none = History::default();
        probe.advance_to(blocks, &mut none, goal, &mut Nothing) == Stop::Arrived
    }

    /// Walks to the next indirect jump, which went to this address.
    fn jump<C: Consumer>(
        &mut self,
        to: u64,
        more: More,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        if more.is_nothing() {
            return self.jump_by(self.carry.evidence(), to, cx);
        }
        let own = self.track.walk.is_branch(cx.blocks, to);
        let trail = Trail::new(self.carry, more, cx.table, (own, As::Target));
        self.jump_by(trail, to, cx)
    }

    fn jump_by<C: Consumer>(
        &mut self,
        mut evidence: impl Lead,
        to: u64,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        let stop = self
            .track
            .walk
            .advance(cx.blocks, &mut evidence, &mut { UNCOUNTED }, cx.out);
        match stop {
            Stop::Target(exit) => self.land((to, exit), &evidence, cx),
            // Round and round, and nowhere a jump.
            Stop::Endless if evidence.left() == 0 => {
                Err((Fault::NotAJump, self.track.walk.pc(cx.blocks)))
            }
            stop => Err(self.trouble(cx.blocks, stop, evidence.left(), Fault::NotAJump)),
        }
    }

    /// The indirect jump the walk is at, of this class, went to this address.
    fn land<C: Consumer>(
        &mut self,
        (to, exit): (u64, Exit),
        evidence: &impl Lead,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        let own = self.track.walk.is_branch_after_jump(cx.blocks, to);
        let left = evidence.left();
        if left != u64::from(own) {
            let missing = left == 0;
            return Err(match missing {
                true => (Fault::MissingOutcome, to),
                false => (Fault::LeftoverOutcomes, left),
            });
        }
        let top = self.track.walk.stack().and_then(|stack| stack.top());
        if exit != Exit::Return || top != Some(to) {
            self.aids.landed(to);
        }
        self.track.walk.target(cx.blocks, to, cx.out);
        self.carry = match own {
            true => evidence.own(self.carry, to),
            false => Outcomes::default(),
        };
        Ok(())
    }

    /// Walks to an address that is on the way, or the target of the next
    /// indirect jump; returns whether it was the latter.
    fn approach_any<C: Consumer>(
        &mut self,
        to: u64,
        more: More,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<bool, Trouble> {
        let goal = Goal {
            leave_first: self.named,
            own_outcome: true,
            ..Goal::new(to)
        };
        if more.is_nothing() {
            return self.approach_by(self.carry.evidence(), goal, cx);
        }
        let goal = Goal {
            depth: match more.returns {
                Returns::Depth(depth) => Some(depth.into()),
                _ => None,
            },
            ..goal
        };
        let own = self.track.walk.is_branch(cx.blocks, to);
        let trail = Trail::new(self.carry, more, cx.table, (own, As::Passed));
        self.approach_by(trail, goal, cx)
    }

    fn approach_by<C: Consumer>(
        &mut self,
        mut evidence: impl Lead,
        goal: Goal,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<bool, Trouble> {
        let stop = self
            .track
            .walk
            .advance_to(cx.blocks, &mut evidence, goal, cx.out);
        match stop {
            Stop::Arrived => {
                self.carry = match evidence.left() {
                    0 => Outcomes::default(),
                    _ => evidence.own(self.carry, goal.address),
                };
                Ok(false)
            }
            Stop::Target(exit) => {
                self.land((goal.address, exit), &evidence, cx)?;
                Ok(true)
            }
            stop => Err(self.trouble(cx.blocks, stop, evidence.left(), Fault::NoCode)),
        }
    }

    /// Walks to the address of a synchronisation and that far only; `changed`
    /// if the mode is another one, which takes a return from a trap.
    pub(super) fn approach<C: Consumer>(
        &mut self,
        (to, taken): (u64, bool),
        changed: bool,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        let walk = &self.track.walk;
        let own = walk.is_branch_at_sync(cx.blocks, to, cx.place.end());
        self.carry = self.carry.and(Outcomes::own(own, taken));
        if !changed {
            return self.approach_any(to, More::default(), cx).map(|_| ());
        }
        let mut evidence = self.carry.evidence();
        let stop = self
            .track
            .walk
            .advance(cx.blocks, &mut evidence, &mut { UNCOUNTED }, cx.out);
        match stop {
            Stop::Target(exit @ Exit::TrapReturn) => self.land((to, exit), &evidence, cx),
            Stop::Target(_) => Err((Fault::WrongPrivilege, self.track.walk.decision(cx.blocks))),
            stop => Err(self.trouble(cx.blocks, stop, evidence.left(), Fault::WrongPrivilege)),
        }
    }

    /// Walks through a full map if it led the same way before, with no packet waiting.
    #[inline(always)]
    pub(super) fn repeat_branches<C: Consumer>(
        &mut self,
        map: BranchMap,
        blocks: &mut Blocks<'_>,
        out: &mut C,
    ) -> bool {
        let outcomes = self.carry.and(Outcomes::of(map));
        let (word, walk) = (outcomes.word(), &mut self.track.walk);
        let repeats = match blocks.outcomes_repeat() {
            true => walk.repeat_outcomes(blocks, word, out),
            false => walk.count_word(blocks, word, (outcomes.bits, outcomes.len), out),
        };
        if !repeats {
            return false;
        }
        self.carry = Outcomes::default();
        (self.named, self.closed) = (false, false);
        self.track.confirm();
        true
    }

    /// Walks through a full map and stops right after its last branch.
    #[inline]
    pub(super) fn use_up<C: Consumer>(
        &mut self,
        map: Outcomes,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        self.carry = self.carry.and(map);
        if !cx.modal {
            let (word, all) = (self.carry.word(), (self.carry.bits, self.carry.len));
            self.track.walk.keep_outcomes(cx.blocks, word, all);
        }
        let mut evidence = self.carry.evidence();
        let (stop, _) = self.track.walk.use_up(cx.blocks, &mut evidence, cx.out);
        if stop != Stop::Arrived {
            return Err(self.trouble(cx.blocks, stop, evidence.left(), Fault::UnreportedJump));
        }
        self.carry = Outcomes::default();
        (self.named, self.closed) = (false, false);
        self.track.confirm();
        Ok(())
    }

    /// Walks through branches that were predicted and the one that was not, and
    /// stops right after it. That there were as many branches confirms little.
    pub(super) fn use_up_predicted<C: Consumer>(
        &mut self,
        more: More,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        let mut trail = Trail::new(self.carry, more, cx.table, (false, As::Target));
        let (stop, _) = self.track.walk.use_up(cx.blocks, &mut trail, cx.out);
        if stop != Stop::Arrived {
            return Err(self.trouble(cx.blocks, stop, trail.left(), Fault::UnreportedJump));
        }
        self.carry = Outcomes::default();
        (self.named, self.closed) = (false, false);
        Ok(())
    }

    /// Gives out the instruction that was named last; where the hart went from
    /// there, if the code determines it. An indirect jump stays, and so does an ecall.
    pub(super) fn leave<C: Consumer>(
        &mut self,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<Option<u64>, Trouble> {
        if !self.named {
            return Ok(Some(self.track.walk.pc(cx.blocks)));
        }
        let mut evidence = BeforeTrap(self.carry.evidence());
        match self.track.walk.step(cx.blocks, &mut evidence, cx.out) {
            Stop::Arrived => {
                self.named = false;
                self.carry = self.carry.without(self.carry.len - evidence.left() as u8);
                Ok(Some(self.track.walk.pc(cx.blocks)))
            }
            Stop::Target(_) | Stop::Trap => Ok(None),
            stop => Err(self.trouble(cx.blocks, stop, evidence.left(), Fault::NoCode)),
        }
    }

    /// Gives out the instruction that was named last, a trap follows; where the
    /// trap was taken, if that is known. `told` is what the packet says.
    pub(super) fn trap_from<C: Consumer>(
        &mut self,
        told: Option<u64>,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<Option<u64>, Trouble> {
        if let Some(epc) = self.leave(cx)? {
            return Ok(Some(epc));
        }
        let mut none = BeforeTrap(History::default());
        let stop = self.track.walk.step(cx.blocks, &mut none, cx.out);
        self.named = false;
        match (stop, told) {
            // An ecall counts as retired here, and is where the trap was taken.
            (Stop::Trap, _) => Ok(Some(self.track.walk.pc(cx.blocks))),
            (_, Some(epc)) => {
                self.track.walk.target(cx.blocks, epc, cx.out);
                Ok(told)
            }
            (stop, None) => {
                self.track.walk.retire(cx.blocks, cx.out);
                let link = self.track.walk.pc(cx.blocks);
                if let (Stop::Target(exit), Some(stack)) = (stop, self.track.walk.stack()) {
                    stack.pass(exit, link);
                }
                Ok(None)
            }
        }
    }

    /// Tracing ends with the packet that waits, or with the instruction named
    /// last.
    pub(super) fn end<C: Consumer>(
        &mut self,
        next: Next,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        self.resolve(next, cx)?;
        self.pending = None;
        self.trap_from(None, cx)?;
        self.carry = Outcomes::default();
        Ok(())
    }

    /// Why a walk ended where it should not have. `other` where it arrived at
    /// something the packet does not speak of.
    #[cold]
    fn trouble(&self, blocks: &Blocks<'_>, stop: Stop, left: u64, other: Fault) -> Trouble {
        let pc = self.track.walk.pc(blocks);
        match stop {
            Stop::Branch => (Fault::MissingOutcome, self.track.walk.decision(blocks)),
            Stop::Target(_) => (Fault::UnreportedJump, self.track.walk.decision(blocks)),
            Stop::Trap => (Fault::UnreportedTrap, pc),
            Stop::Missing => (Fault::NoCode, pc),
            Stop::Endless if left > 0 => (Fault::LeftoverOutcomes, left),
            Stop::Endless => (Fault::EndlessLoop, pc),
            Stop::Arrived | Stop::HalfInstruction | Stop::Contradiction => (other, pc),
        }
    }
}
