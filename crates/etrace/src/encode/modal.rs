//! The fast path while optional modes are on: blocks that no packet is due for,
//! but that the predictor or the return stack takes notice of.

use hartrace_flow::{Ingress, IngressRun};
use hartrace_isa::Itype;

use super::hart::{FULL, Hart, Readiness, Returning};
use super::unit::{Unit, is_sijump};
use crate::Config;

/// Whether such an instruction puts an address on the return stack.
pub(super) const fn is_call(itype: Itype) -> bool {
    matches!(itype, Itype::DirectCall | Itype::IndirectCall)
}

impl Hart {
    /// A block without any signals; `false`, and nothing happens, if it needs more
    /// care than that.
    #[inline]
    pub(super) fn modal_block(&mut self, config: &Config, b: &Ingress) -> bool {
        let same = (b.mode == self.cur.mode) & (b.context == self.cur.context);
        let halfwords = self.halfwords + u64::from(b.iretire);
        let early = (b.time < self.resync.time_limit) & (halfwords < self.resync.halfword_limit);
        if !(same & early) || b.itype.is_trap() || !self.modal_leave(config) {
            return false;
        }
        self.pass(b, halfwords);
        if b.itype.is_uninferable() {
            self.jumps = !is_sijump(config, b);
            self.settle();
        } else if b.itype.is_branch() {
            self.note_branch();
        }
        true
    }

    /// Leaves the current instruction, which is no jump; `false` if a packet must
    /// come first.
    #[inline]
    fn modal_leave(&mut self, config: &Config) -> bool {
        if let Some(returns) = &mut self.returns {
            if self.cur.itype.is_branch() {
                returns.settle();
            } else if is_call(self.cur.itype) {
                if returns.before_call().is_some() {
                    return false;
                }
                returns.call(config.xlen.wrap(self.cur.end));
            }
            (self.implied, self.landing) = (false, None);
            self.returning = Returning::No;
        }
        true
    }

    /// Several blocks, as [`Hart::take_run`] has them.
    #[inline(never)]
    pub(super) fn modal_run(&mut self, config: &Config, run: &IngressRun<'_>) -> bool {
        let same = (run.mode == self.cur.mode) & (run.context == self.cur.context);
        let halfwords = self.halfwords + u64::from(run.halfwords);
        let early = (run.time < self.resync.time_limit) & (halfwords < self.resync.halfword_limit);
        if !(same & early) || !self.has_room(run) || !self.modal_leave(config) {
            return false;
        }
        let own = run.itype.is_branch();
        if let Some(returns) = &mut self.returns
            && run.branches > u8::from(own)
        {
            returns.settle();
        }
        match &mut self.prediction {
            None => {
                let outcomes = (1u32 << (run.branches & 31)) - 1;
                let outcomes = outcomes >> u32::from(run.is_taken());
                self.map.bits |= outcomes << (self.map.count & 31);
                self.map.count += run.branches;
            }
            Some(prediction) => {
                let map = &mut self.map;
                run.branches_are(|address, taken| {
                    if prediction.branch(address, taken) {
                        map.bits |= u32::from(!taken) << (map.count & 31);
                        map.count += 1;
                    }
                    true
                });
            }
        }
        self.pass_run(run, halfwords);
        true
    }

    /// Whether no branch of a run makes a packet due.
    #[inline]
    fn has_room(&self, run: &IngressRun<'_>) -> bool {
        if self.map.count + run.branches < FULL {
            return true;
        }
        match &self.prediction {
            Some(prediction) => {
                prediction.separates(u64::from(run.halfwords) * 2) && prediction.counts(run)
            }
            None => false,
        }
    }

    /// The current instruction is a branch: takes its outcome into the map, or
    /// counts it.
    #[inline]
    pub(super) fn note_branch(&mut self) {
        let Unit { itype, addr, .. } = self.cur;
        let mapped = match &mut self.prediction {
            Some(prediction) => prediction.branch(addr, itype == Itype::Taken),
            None => true,
        };
        if mapped {
            self.push(itype);
        }
        if self.readiness == Readiness::Modal && self.is_full() {
            self.readiness = Readiness::Pending;
        }
    }
}
