//! Blocks that may be more than instructions: starts and stops, triggers, loss.

use hartrace_flow::{Ctype, Ingress};

use super::Sink;
use super::hart::Hart;
use super::unit::Unit;
use crate::{Config, Ending, QualStatus};

impl Hart {
    /// Any block at all.
    #[inline(never)]
    pub(super) fn any_block(&mut self, config: &Config, b: &Ingress, sink: &mut impl Sink) {
        self.stop_late(config, sink);
        let dropped = self.out.is_dropping() && self.out.recovers(b.time);
        if dropped || (b.lost && self.announced) {
            self.lost = true;
            self.running = false;
        }
        if b.reset || b.untraced {
            self.stop(config, sink);
        }
        self.enabled |= config.triggers && b.trigger.on;
        if self.enabled {
            self.announce(sink);
        }
        // Blocks of a halted hart are the debugger's own.
        let asleep = self.halted && b.halted;
        if !asleep {
            let valid = b.iretire > 0 || b.itype.is_trap();
            let filtered = self.filter.qualifies(b);
            if valid && self.enabled && filtered.traced {
                let notify = filtered.notify || (config.triggers && b.trigger.notify);
                self.units(config, b, notify, sink);
            } else if valid {
                self.stop(config, sink);
            }
            self.halfwords += u64::from(b.iretire);
        }
        // The block itself was the last one traced.
        self.enabled &= !(config.triggers && b.trigger.off);
        if b.halted && !self.halted {
            match self.data.is_some() && b.iretire > 0 {
                // Its accesses come after it.
                true => self.stops = true,
                false => self.stop(config, sink),
            }
        }
        self.halted = b.halted;
        self.settle();
    }

    /// The units of a block that is traced.
    pub(super) fn units(
        &mut self,
        config: &Config,
        b: &Ingress,
        notify: bool,
        sink: &mut impl Sink,
    ) {
        let halfwords = self.halfwords;
        let mut change = self.change(config, b);
        if b.iretire > 0 {
            let mut last = Unit::last(config, b, halfwords);
            if last.addr != b.iaddr {
                let mut first = Unit::first(b, halfwords);
                first.change = core::mem::take(&mut change);
                self.step(config, first, sink);
            }
            last.change = core::mem::take(&mut change);
            last.notify = notify;
            self.step(config, last, sink);
        }
        if b.itype.is_trap() {
            let mut trap = Unit::trap(config, b, halfwords);
            trap.change = change;
            self.step(config, trap, sink);
        }
    }

    /// What is to be done about the context of a block.
    fn change(&self, config: &Config, b: &Ingress) -> Ctype {
        let same = !self.running || b.context == self.cur.context;
        match b.ctype {
            _ if same => Ctype::Unreported,
            Ctype::Discontinuity => Ctype::Discontinuity,
            // There is no field for it.
            _ if config.context_width == 0 => Ctype::Unreported,
            ctype => ctype,
        }
    }

    /// A support packet, where trace was lost or tracing just enabled.
    fn announce(&mut self, sink: &mut impl Sink) {
        if core::mem::take(&mut self.lost) {
            self.support(QualStatus::TraceLost, sink);
        } else if !self.announced {
            self.support(QualStatus::NoChange, sink);
        }
    }

    /// The trace stops before this block, if the block before asked for it.
    fn stop_late(&mut self, config: &Config, sink: &mut impl Sink) {
        if core::mem::take(&mut self.stops) {
            self.stop(config, sink);
        }
    }

    /// The trace stops here, if it has not; this is reported, and whether the
    /// encoder is disabled.
    pub(super) fn stop(&mut self, config: &Config, sink: &mut impl Sink) {
        if core::mem::take(&mut self.running) {
            let status = self.tell_end(config, sink);
            self.support(status, sink);
        } else if (self.announced || self.lost) && !self.enabled {
            let status = match core::mem::take(&mut self.lost) {
                true => QualStatus::TraceLost,
                false => QualStatus::NoChange,
            };
            self.support(status, sink);
        }
    }

    /// Nothing follows.
    pub(super) fn end(&mut self, config: &Config, sink: &mut impl Sink) {
        self.stop_late(config, sink);
        self.out.end();
        if self.out.recovers(self.cur.time) {
            self.lost = true;
            self.running = false;
        }
        let enabled = core::mem::replace(&mut self.enabled, false);
        if self.running && config.ending == Ending::Reference {
            self.running = false;
            let status = self.tell_end_again(config, sink);
            self.support(status, sink);
        } else {
            self.stop(config, sink);
        }
        self.enabled = enabled;
        self.settle();
    }
}
