//! The transition from one unit to the next: figure 8.1.

use hartrace_flow::{Ctype, Mode};
use hartrace_isa::Itype;

use super::Sink;
use super::hart::{Before, Due, Hart, Open, Returning};
use super::modal::is_call;
use super::unit::Unit;
use crate::modes::returns::{Landing, Returns};
use crate::packet::bits::mask;
use crate::{Config, ResyncRule, UpdisconRule};

/// What the unit after the current one requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Follows {
    /// Nothing.
    Nothing,
    /// It is a trap.
    Trap,
    /// Another mode: only a return from a trap leads there.
    Mode,
    /// Another context, to be reported precisely.
    Context,
    /// Another context, and who knows what between.
    Discontinuity,
    /// It is time for a synchronisation.
    Resync,
}

impl Hart {
    /// The next unit.
    pub(super) fn step(&mut self, config: &Config, next: Unit, sink: &mut impl Sink) {
        if self.running && (self.breaks_off(&next) || self.is_hidden(config, &next)) {
            self.stop(config, sink);
        }
        let within = self.running && self.cur.inside;
        if self.running {
            self.conclude(config, &next, sink);
        } else {
            self.running = true;
            self.forget();
            self.before = Before::Nothing;
        }
        self.cur = next;
        self.begin(config, within, sink);
    }

    /// Forgets what has not been reported, and what a decoder may not know.
    fn forget(&mut self) {
        self.clear_branches();
        self.due = None;
        self.open = Open::No;
        self.sync_next = false;
        self.owes_context = false;
        (self.implied, self.landing) = (false, None);
        self.reset_modes();
        if let Some(vectors) = &mut self.vectors {
            vectors.forget();
        }
    }

    /// Whether the current instruction is a return which does not go where the
    /// stack says, and its target gets a synchronisation packet: a decoder would
    /// take the return for implied.
    fn breaks_off(&self, next: &Unit) -> bool {
        let Some(returns) = &self.returns else {
            return false;
        };
        let sync = next.mode != self.cur.mode
            || matches!(next.change, Ctype::Precise | Ctype::Discontinuity);
        self.cur.itype == Itype::Return
            && !next.itype.is_trap()
            && sync
            && returns.expected().is_some_and(|top| top != next.addr)
    }

    /// Whether a decoder would not notice that the next unit does not follow the current
    /// one (ctype 3): the context looks the same to it, or the packet that reports the
    /// current instruction does not say that one of format 3 is next.
    fn is_hidden(&self, config: &Config, next: &Unit) -> bool {
        let context = |unit: &Unit| unit.context.0 & mask(config.context_width.into());
        let unmarked = self.told || self.due == Some(Due::Notify);
        next.change == Ctype::Discontinuity
            && (unmarked || context(&self.cur) == context(next))
            && !next.itype.is_trap()
            && !self.cur.itype.is_trap()
            && !self.jumps
            && !self.may_lead_to(config, next.addr)
    }

    /// Whether the current instruction may lead to this address: the next one, or as
    /// far away as branches reach. Jumps may lead anywhere.
    fn may_lead_to(&self, config: &Config, address: u64) -> bool {
        let reach = match self.cur.itype {
            Itype::None | Itype::NotTaken => 0,
            Itype::Taken => 1 << 12,
            _ => return true,
        };
        let distance = config.xlen.wrap(address.wrapping_sub(self.cur.addr));
        let back = config.xlen.wrap(self.cur.addr.wrapping_sub(address));
        address == config.xlen.wrap(self.cur.end) || reach > 0 && distance.min(back) <= reach
    }

    /// Looks at the current unit with what was before it, which was `within` the same
    /// block or not.
    fn begin(&mut self, config: &Config, within: bool, sink: &mut impl Sink) {
        self.told = false;
        self.due = None;
        self.jumps = false;
        self.hit = false;
        self.owes_context |= self.cur.change == Ctype::Imprecise;
        if self.cur.itype.is_trap() {
            return self.begin_trap(config, sink);
        }
        if self.cur.itype.is_branch() {
            self.note_branch();
        }
        self.cache_target();
        if self.before == Before::Trap && !self.trap_told {
            self.handler(config, sink);
        } else if self.sync_next || matches!(self.before, Before::Nothing | Before::Trap) {
            self.start(config, sink);
        } else if matches!(self.before, Before::Jump | Before::TrapReturn) {
            self.due = Some(Due::Target);
        } else if self.cur.notify {
            self.due = Some(self.due_for_notify());
        } else if self.resync.rule == ResyncRule::Exceeded
            // No synchronisation came after a target that was within a block.
            && (self.map.count > 0 || self.is_open() || within && self.open != Open::No)
            // The synchronisation comes at the very next instruction.
            && !self.cur.inside
            && self.resync.is_full(self.cur.time, self.cur.halfwords)
        {
            self.due = Some(Due::Flush);
        }
        // The texts name 8, 10, 12 and 14. 6 stands for them where itype has
        // three bits, 13 is one while returns are not implied, and where 3 leads
        // no code determines either. A decoder may start at a synchronisation: it
        // cannot infer from what came before.
        let inferred = self.cur.sijump && self.before == Before::Plain && !self.told;
        self.jumps = self.cur.itype.is_uninferable() && !inferred;
    }

    /// How an instruction that is asked for is reported. The target of a return that was
    /// left out is one of a jump where `irdepth` could also mean an earlier place.
    fn due_for_notify(&mut self) -> Due {
        match &self.returns {
            Some(returns) if self.implied && returns.repeated().is_some() => {
                self.landing = Some(Landing {
                    report: returns.landed(),
                    predicted: true,
                });
                self.implied = false;
                Due::Target
            }
            _ => Due::Notify,
        }
    }

    /// The target of a jump enters the cache, but not where the return stack
    /// knows it.
    pub(super) fn cache_target(&mut self) {
        let Some(targets) = &mut self.targets else {
            return;
        };
        let jumped = matches!(self.before, Before::Jump | Before::TrapReturn);
        let predicted = self.landing.is_some_and(|landing| landing.predicted);
        if jumped && !predicted {
            self.hit = targets.update(self.cur.addr);
        } else if self.implied {
            targets.disuse(self.cur.addr);
        }
    }

    /// The same for a trap. It is reported with its handler's first instruction,
    /// unless its EPC could not be reported then, or another trap comes before.
    fn begin_trap(&mut self, config: &Config, sink: &mut impl Sink) {
        let before = self.trap;
        let before_told = core::mem::replace(&mut self.trap_told, false);
        self.trap = self.cur;
        if config.version.is_draft() {
            return;
        }
        match self.before {
            Before::Plain => {}
            Before::Trap if !before_told => self.trap_only(config, &before, sink),
            Before::Trap | Before::Nothing | Before::Jump | Before::TrapReturn => {
                self.trap_only(config, &self.cur.clone(), sink);
                self.trap_told = true;
            }
        }
    }

    /// Looks at the current unit again, now that the next one is known.
    fn conclude(&mut self, config: &Config, next: &Unit, sink: &mut impl Sink) {
        if self.cur.itype.is_trap() {
            self.before = Before::Trap;
            return;
        }
        let report = self.ir_report();
        self.judge_return((!next.itype.is_trap()).then_some(next.addr));
        let follows = self.follows(config, next);
        if self.due == Some(Due::Flush) && follows == Follows::Nothing {
            // The synchronisation has to wait, and so have the branches.
            self.due = None;
        }
        self.sync_next = !matches!(follows, Follows::Nothing | Follows::Trap);
        if let Some(due) = self.due {
            let closed = follows != Follows::Nothing;
            let updiscon = due == Due::Target && self.reports_updiscon(config, next, closed);
            self.report(config, due == Due::Notify, updiscon, report, sink);
            self.open = match self.before {
                _ if due != Due::Target || closed => Open::No,
                Before::TrapReturn => Open::TrapReturn,
                _ => Open::Jump,
            };
        } else if !self.told && self.must_tell(follows) {
            self.report(config, false, false, report, sink);
            self.open = Open::No;
        } else if self.is_full() {
            self.branches(config, sink);
            self.open = Open::No;
        } else {
            self.settle_return(config, sink);
        }
        // Where packets count returns, one more in between would confuse.
        if self.owes_context && !self.is_open() {
            self.context(sink);
        }
        self.leave(config, next.addr);
        self.set_before();
    }

    /// The current instruction comes before the next one.
    pub(super) fn set_before(&mut self) {
        self.before = match self.cur.itype {
            _ if !self.jumps => Before::Plain,
            Itype::TrapReturn => Before::TrapReturn,
            _ => Before::Jump,
        };
    }

    /// What the current instruction is to the return stack, now that it is known
    /// where it led, unless to a trap.
    pub(super) fn judge_return(&mut self, next: Option<u64>) {
        self.returning = Returning::No;
        let Some(returns) = &self.returns else {
            return;
        };
        if self.cur.itype != Itype::Return {
            return;
        }
        if next.is_some_and(|next| returns.implies(next)) {
            self.returning = Returning::Implied;
            self.jumps = false;
        } else {
            let on_stack = returns.expected().is_some();
            self.returning = Returning::Reported(on_stack && next.is_some());
        }
    }

    /// The current instruction has had its effect on the return stack.
    pub(super) fn leave(&mut self, config: &Config, next: u64) {
        let Some(returns) = &mut self.returns else {
            return;
        };
        if self.cur.itype.is_branch() {
            returns.settle();
        } else if is_call(self.cur.itype) {
            returns.call(config.xlen.wrap(self.cur.end));
        }
        self.implied = self.returning == Returning::Implied;
        self.landing = match self.returning {
            Returning::No => None,
            Returning::Implied => {
                returns.leave_out(next);
                None
            }
            Returning::Reported(_) => Some(returns.reported(next)),
        };
    }

    /// Whether returns were left out since the last branch or packet.
    fn is_open(&self) -> bool {
        self.returns.as_ref().is_some_and(Returns::is_open)
    }

    /// Whether a jump's target is reported with `updiscon`; `closed` if a format 3
    /// follows.
    fn reports_updiscon(&self, config: &Config, next: &Unit, closed: bool) -> bool {
        match config.updiscon {
            UpdisconRule::Followed => closed,
            // The row after that of a trap is the handler's, which never runs
            // in U-mode.
            UpdisconRule::NextRow if self.cur.traps => {
                self.cur.mode != Mode::M || self.resync_follows(config, next)
            }
            UpdisconRule::NextRow => closed || next.traps,
        }
    }

    fn follows(&self, config: &Config, next: &Unit) -> Follows {
        if next.itype.is_trap() {
            Follows::Trap
        } else if next.change == Ctype::Discontinuity {
            Follows::Discontinuity
        } else if next.mode != self.cur.mode {
            Follows::Mode
        } else if next.change == Ctype::Precise {
            Follows::Context
        } else if self.resync_follows(config, next) {
            Follows::Resync
        } else {
            Follows::Nothing
        }
    }

    /// Whether the next instruction gets a synchronisation packet because it
    /// is time for one. None comes between a constant and the jump that goes by
    /// it: a decoder that starts there could not infer what others do.
    fn resync_follows(&self, config: &Config, next: &Unit) -> bool {
        // Nor after a return that a decoder could take for another.
        if next.sijump || self.returning == Returning::Reported(true) {
            return false;
        }
        // The accesses on both sides could not be told apart.
        if self.data.is_some() && (self.cur.inside || self.is_repeated(next)) {
            return false;
        }
        match self.resync.rule {
            // The next unit need not be the next instruction.
            ResyncRule::Exceeded if self.cur.inside => false,
            ResyncRule::Settled => {
                // With the halfwords of the current instruction.
                let full = self.resync.is_full(self.cur.time, next.halfwords);
                let elsewhere = || next.addr != config.xlen.wrap(self.cur.end);
                full && (self.cur.itype.is_branch() || self.jumps || elsewhere())
            }
            ResyncRule::Exceeded => match self.due {
                Some(Due::Flush) => true,
                Some(_) => self.resync.is_over_behind(next),
                None => self.resync.is_over(next) && !self.is_unsettled(),
            },
        }
    }

    /// Whether the next unit is the same instruction again: one with several
    /// accesses is shown once for each of them.
    fn is_repeated(&self, next: &Unit) -> bool {
        self.cur.itype == Itype::None && next.addr == self.cur.addr
    }

    /// Whether a decoder would lose track at a synchronisation packet after
    /// the current instruction: outcomes are missing, or it would take an
    /// address for one on the way.
    fn is_unsettled(&self) -> bool {
        self.map.count > 0
            || self.jumps
            || self.open != Open::No
            || self.is_open()
            || self.returning != Returning::No
    }

    /// Whether the current instruction must be reported because of the next unit.
    fn must_tell(&self, follows: Follows) -> bool {
        match follows {
            Follows::Nothing => false,
            Follows::Trap | Follows::Discontinuity => true,
            // The way there ends with a return from a trap. If one led to the
            // target that was reported last, it may be the same one again.
            Follows::Mode => {
                self.map.count > 0
                    || self.open == Open::TrapReturn
                    || self.returns.is_some() && self.is_unsettled()
            }
            Follows::Context | Follows::Resync => self.is_unsettled(),
        }
    }
}
