//! The transition from one unit to the next: figure 8.1.

use hartrace_flow::{Ctype, Mode};
use hartrace_isa::Itype;

use super::Sink;
use super::hart::{Before, Due, FULL, Hart, Open};
use super::unit::Unit;
use crate::{Config, ResyncRule, UpdisconRule, Version};

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
        if self.running {
            self.conclude(config, &next, sink);
        } else {
            self.running = true;
            self.forget();
            self.before = Before::Nothing;
        }
        self.cur = next;
        self.begin(config, sink);
    }

    /// Forgets what has not been reported.
    fn forget(&mut self) {
        self.map = Default::default();
        self.due = None;
        self.open = Open::No;
        self.sync_next = false;
        self.owes_context = false;
    }

    /// Looks at the current unit with what was before it.
    fn begin(&mut self, config: &Config, sink: &mut impl Sink) {
        self.told = false;
        self.due = None;
        self.jumps = false;
        self.owes_context |= self.cur.change == Ctype::Imprecise;
        if self.cur.itype.is_trap() {
            return self.begin_trap(config, sink);
        }
        self.push(self.cur.itype);
        if self.before == Before::Trap && !self.trap_told {
            self.handler(config, sink);
        } else if self.sync_next || matches!(self.before, Before::Nothing | Before::Trap) {
            self.start(config, sink);
        } else if matches!(self.before, Before::Jump | Before::TrapReturn) {
            self.due = Some(Due::Target);
        } else if self.cur.notify {
            self.due = Some(Due::Notify);
        } else if self.resync.rule == ResyncRule::Exceeded
            && self.map.count > 0
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

    /// The same for a trap. It is reported with its handler's first instruction,
    /// unless its EPC could not be reported then, or another trap comes before.
    fn begin_trap(&mut self, config: &Config, sink: &mut impl Sink) {
        let before = self.trap;
        let before_told = core::mem::replace(&mut self.trap_told, false);
        self.trap = self.cur;
        if config.version == Version::V1_1_1 {
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
        let follows = self.follows(config, next);
        if self.due == Some(Due::Flush) && follows == Follows::Nothing {
            // The synchronisation has to wait, and so have the branches.
            self.due = None;
        }
        self.sync_next = !matches!(follows, Follows::Nothing | Follows::Trap);
        if let Some(due) = self.due {
            let closed = follows != Follows::Nothing;
            let updiscon = due == Due::Target && self.reports_updiscon(config, next, closed);
            self.report(config, due == Due::Notify, updiscon, sink);
            self.open = match self.before {
                _ if due != Due::Target || closed => Open::No,
                Before::TrapReturn => Open::TrapReturn,
                _ => Open::Jump,
            };
        } else if !self.told && self.must_tell(follows) {
            self.report(config, false, false, sink);
            self.open = Open::No;
        } else if self.map.count >= FULL {
            self.branches(sink);
            self.open = Open::No;
        }
        if self.owes_context {
            self.context(sink);
        }
        self.before = match self.cur.itype {
            _ if !self.jumps => Before::Plain,
            Itype::TrapReturn => Before::TrapReturn,
            _ => Before::Jump,
        };
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
        if next.sijump {
            return false;
        }
        match self.resync.rule {
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

    /// Whether a decoder would lose track at a synchronisation packet after
    /// the current instruction: outcomes are missing, or it would take an
    /// address for one on the way.
    fn is_unsettled(&self) -> bool {
        self.map.count > 0 || self.jumps || self.open != Open::No
    }

    /// Whether the current instruction must be reported because of the next unit.
    fn must_tell(&self, follows: Follows) -> bool {
        match follows {
            Follows::Nothing => false,
            Follows::Trap | Follows::Discontinuity => true,
            // The way there ends with a return from a trap. If one led to the
            // target that was reported last, it may be the same one again.
            Follows::Mode => self.map.count > 0 || self.open == Open::TrapReturn,
            Follows::Context | Follows::Resync => self.is_unsettled(),
        }
    }
}
