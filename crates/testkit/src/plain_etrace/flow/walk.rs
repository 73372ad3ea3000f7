//! From instruction to instruction.

use super::super::insn::{Insn, Kind, Role};
use super::goal::{Goal, Meaning, Outcomes};
use super::{Decoder, Mode};

/// More instructions than this without a branch outcome are an endless loop.
const LONGEST_PATH: usize = 1 << 20;

/// How an instruction is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// The code, an outcome or the return stack says where to.
    To(u64),
    /// The packet says where to.
    Jumped(u64),
    /// A jump to an address that no packet has.
    Unknown,
    /// `ecall` or `ebreak`: a trap has to follow.
    Stays,
}

impl Decoder<'_> {
    /// A copy without what was decoded so far.
    pub(super) fn trial(&mut self) -> Self {
        let items = std::mem::take(&mut self.items);
        let trial = self.clone();
        self.items = items;
        trial
    }

    /// Retires instructions up to the goal. Gives whether a jump led there.
    pub(super) fn follow(&mut self, goal: &Goal) -> Result<bool, String> {
        let mut longest = LONGEST_PATH;
        loop {
            let before = self.pc;
            let left = self.outcomes.left();
            let jumped = match self.leave(Some(goal))? {
                Left::To(pc) => {
                    self.retire(pc);
                    false
                }
                Left::Jumped(pc) => {
                    self.retire(pc);
                    true
                }
                Left::Stays | Left::Unknown => {
                    return Err(format!("nothing says what follows {before:#x}"));
                }
            };
            self.last_pc = Some(before);
            match goal.meaning {
                Meaning::Path if jumped => {
                    return Err("the target of a jump is reported as if it was not one".to_owned());
                }
                Meaning::Sync { privilege } if jumped && !self.may_change_to(privilege)? => {
                    return Err("a jump leads to another privilege".to_owned());
                }
                _ => {}
            }
            if jumped || self.is_place(goal)? {
                self.arrive()?;
                return Ok(jumped);
            }
            longest = match self.outcomes.left() == left {
                true => longest - 1,
                false => LONGEST_PATH,
            };
            if longest == 0 {
                return Err(format!("the path does not reach {:#x}", goal.address));
            }
        }
    }

    /// Whether the instruction just retired is the one that a packet means, if
    /// that does not follow from a jump.
    fn is_place(&self, goal: &Goal) -> Result<bool, String> {
        let branch = self.insn(self.pc)?.is_branch();
        let all_used = self.outcomes.left() == u64::from(branch);
        let here = self.pc == goal.address && all_used;
        Ok(match goal.meaning {
            Meaning::LastBranch => branch && all_used,
            Meaning::Target => false,
            Meaning::Path | Meaning::Either => here && self.returns_match(goal, branch),
            Meaning::Sync { privilege } => here && self.may_change_to(privilege)?,
        })
    }

    /// Whether the hart may have this privilege now: only a return from a trap changes
    /// it on the way.
    fn may_change_to(&self, privilege: u64) -> Result<bool, String> {
        let last = self.last_pc.map(|pc| self.insn(pc)).transpose()?;
        let returned = last.is_some_and(|last| last.kind == Kind::TrapReturn);
        Ok(privilege == self.privilege || returned)
    }

    /// Whether an instruction on the path comes after as many returns as its
    /// packet says. "There has been at least one unreported branch since the last
    /// return" if it is a branch itself: then there is no depth (6.6.3).
    fn returns_match(&self, goal: &Goal, branch: bool) -> bool {
        let Some(reported) = goal.returns else {
            return self.implicit_returns == 0 || branch && !self.counts_returns();
        };
        match self.counts_returns() {
            true => self.implicit_returns == reported,
            false => self.implicit_returns > 0 && self.stack.depth() == reported,
        }
    }

    fn counts_returns(&self) -> bool {
        self.options.iret_ext
    }

    /// The end of a packet: at most the outcome of this branch is left.
    fn arrive(&mut self) -> Result<(), String> {
        let branch = self.insn(self.pc)?.is_branch();
        if self.outcomes.left() != u64::from(branch) {
            return Err(format!("{} outcomes are left", self.outcomes.left()));
        }
        let next = self.outcomes.next(self.pc, &self.predictor);
        self.outcomes = Outcomes::default();
        self.outcomes.known.extend(next.filter(|_| branch));
        Ok(())
    }

    /// What follows the current instruction, with the effect that it has on
    /// predictor, return stack and cache. Without a goal a trap follows.
    pub(super) fn leave(&mut self, goal: Option<&Goal>) -> Result<Left, String> {
        let pc = self.pc;
        let insn = self.insn(pc)?;
        let next = self.wrap(pc.wrapping_add(insn.len));
        let left = match insn.kind {
            Kind::Plain | Kind::Constant { .. } => Left::To(next),
            Kind::Trap => Left::Stays,
            Kind::Branch { to } => {
                let outcome = self.outcomes.next(pc, &self.predictor);
                let taken = outcome.ok_or_else(|| format!("no outcome for {pc:#x}"))?;
                self.outcomes.drop_next();
                if self.on(Mode::BranchPrediction) {
                    self.predictor.update(pc, taken);
                }
                self.implicit_returns = 0;
                Left::To(if taken { self.wrap(to) } else { next })
            }
            Kind::Direct { to, .. } => Left::To(self.wrap(to)),
            Kind::TrapReturn => self.jump(insn, goal)?,
            Kind::Indirect { rs1, offset, role } => match self.constant(rs1, role)? {
                Some(base) => Left::To(self.wrap(base.wrapping_add(offset) & !1)),
                None => self.jump(insn, goal)?,
            },
        };
        if self.on(Mode::ImplicitReturn) {
            match insn.kind {
                Kind::Direct { role, .. } | Kind::Indirect { role, .. } => match role {
                    Role::Call => self.stack.push(next),
                    Role::Return => self.stack.pop(),
                    Role::Neither => {}
                },
                _ => {}
            }
        }
        Ok(left)
    }

    /// 3.2.4: the register of a jump, if the instruction before put a constant
    /// in it.
    fn constant(&self, rs1: u32, role: Role) -> Result<Option<u64>, String> {
        let counts = rs1 != 0 && (role != Role::Return || self.settings.sijump_returns);
        let Some(last_pc) = self
            .last_pc
            .filter(|_| counts && self.on(Mode::SequentialJump))
        else {
            return Ok(None);
        };
        Ok(match self.insn(last_pc)?.kind {
            Kind::Constant { rd, value } if rd == rs1 => Some(value),
            _ => None,
        })
    }

    /// An uninferable discontinuity, or a return that the stack makes
    /// inferable.
    fn jump(&mut self, insn: Insn, goal: Option<&Goal>) -> Result<Left, String> {
        let Some(goal) = goal else {
            return Ok(Left::Unknown);
        };
        let implicit = insn.is_return() && self.on(Mode::ImplicitReturn);
        let entry = self.stack.top().filter(|_| implicit);
        if let Some(entry) = entry {
            if !self.is_reported_return(goal)? {
                self.implicit_returns += 1;
                return Ok(Left::To(entry));
            }
        } else if goal.returns.is_some() && implicit {
            // Nothing is on the stack: a count is given all the same.
            if self.counts_returns() && !self.is_reported_return(goal)? {
                return Err("a return with an empty stack, and another count".to_owned());
            }
        }
        if goal.meaning == Meaning::LastBranch {
            return Err(format!(
                "an uninferable jump at {:#x} before the last branch",
                self.pc
            ));
        }
        // 3.2.7: the target of a return that was predicted is not stored.
        if self.on(Mode::JumpTargetCache) && entry != Some(goal.address) {
            self.cache.store(goal.address);
        }
        Ok(Left::Jumped(goal.address))
    }

    /// Whether a packet means the target of this return: it comes after all
    /// branches but perhaps one at the target.
    fn is_reported_return(&self, goal: &Goal) -> Result<bool, String> {
        let target = matches!(goal.meaning, Meaning::Target | Meaning::Either);
        let Some(reported) = goal.returns.filter(|_| target) else {
            return Ok(false);
        };
        let branch = self.insn(goal.address)?.is_branch();
        let in_tail = self.outcomes.left() == u64::from(branch);
        let count = match self.counts_returns() {
            true => self.implicit_returns,
            false => self.stack.depth(),
        };
        Ok(in_tail && count == reported)
    }
}
