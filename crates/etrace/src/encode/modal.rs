//! The fast paths while optional modes are on: blocks that no packet is due for,
//! but that the predictor or the return stack takes notice of, and several blocks
//! put together.

use hartrace_flow::{Ingress, IngressRun, IngressRuns};
use hartrace_isa::Itype;

use super::Sink;
use super::hart::{Before, Due, Hart, Open, Readiness, Returning};
use super::map::push_branches;
use super::prediction::{Passed, Passing};
use super::unit::{Unit, is_sijump};
use crate::Config;
use crate::modes::returns::Returns;

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
        if !(same & early) || b.itype.is_trap() {
            return false;
        }
        if let Some(returns) = &mut self.returns {
            if self.cur.itype.is_branch() {
                returns.settle();
            } else if is_call(self.cur.itype) {
                returns.call(config.xlen.wrap(self.cur.end));
            }
        }
        (self.implied, self.landing) = (false, None);
        self.pass(b, halfwords);
        if b.itype.is_uninferable() {
            self.jumps = !is_sijump(config, b);
            self.settle();
        } else if b.itype.is_branch() {
            self.note_branch();
        }
        true
    }

    /// As [`Hart::take_runs`] where optional modes take notice of the runs.
    #[inline(never)]
    pub(super) fn take_modal_runs(
        &mut self,
        config: &Config,
        mut runs: IngressRuns<'_>,
        sink: &mut impl Sink,
    ) -> usize {
        let mut taken = 0;
        loop {
            let mut odd = None;
            if matches!(self.readiness, Readiness::Modal | Readiness::Idle)
                && self.resync.time_limit == u64::MAX
            {
                odd = self.pass_modal(config, &mut runs, &mut taken);
            }
            if odd.is_none() {
                if runs.is_empty() {
                    return taken;
                }
                if self.is_full() && self.due.is_none() && self.is_calm(config, 0) {
                    // What comes next cannot be anything but the next instruction.
                    self.full_map(config, sink);
                    self.settle();
                    continue;
                }
                odd = runs.next();
            }
            match odd {
                Some(run) if self.modal_run(config, &runs, run, sink) => taken += 1,
                _ => return taken,
            }
        }
    }

    /// As [`Hart::pass_runs`], while the predictor and the return stack take notice
    /// of what is passed. Ends early where branches must be reported, and after a
    /// run that ends with a jump.
    #[inline(always)]
    fn pass_modal<'r>(
        &mut self,
        config: &Config,
        runs: &mut IngressRuns<'r>,
        taken: &mut usize,
    ) -> Option<IngressRun<'r>> {
        let limit = self.resync.halfword_limit;
        let mut halfwords = self.halfwords;
        let mut branches = Passing::new(self.map, self.prediction.as_mut());
        let start = branches.passed.count;
        let after_branch = self.cur.itype.is_branch();
        let (mut itype, mut last) = (self.cur.itype, None::<IngressRun<'_>>);
        let odd = loop {
            // What most runs are, in a loop from which nothing is called.
            if let Some(table) = branches.table
                && !is_call(itype)
            {
                let passed = runs.pass_branches(|run, other| {
                    let next = halfwords + run.halfwords();
                    let takes = next < limit && branches.take_last(table, other, &run);
                    if takes {
                        halfwords = next;
                    }
                    takes
                });
                if let Some((passed, run)) = passed {
                    *taken += passed;
                    (itype, last) = (run.itype(), Some(run));
                }
            }
            if branches.is_full() {
                break None;
            }
            let Some(run) = runs.next() else { break None };
            let next = halfwords + run.halfwords();
            if next >= limit || !branches.take(runs, &run) {
                break Some(run);
            }
            if is_call(itype)
                && let Some(returns) = &mut self.returns
            {
                let end = last.map_or(self.cur.end, |last| last.end());
                returns.call(config.xlen.wrap(end));
            }
            halfwords = next;
            *taken += 1;
            (itype, last) = (run.itype(), Some(run));
            if itype.is_uninferable() {
                break None;
            }
        };
        if let Some(run) = last {
            let passed = branches.passed;
            let settled = passed.count > start + u64::from(itype.is_branch());
            if let Some(returns) = &mut self.returns
                && (settled || after_branch)
            {
                returns.settle();
            }
            self.note_passed(passed);
            self.halfwords = halfwords;
            (self.implied, self.landing) = (false, None);
            self.told = false;
            self.jumps = itype.is_uninferable();
            self.pass_run(run);
            if self.jumps || self.is_full() {
                self.readiness = Readiness::Pending;
            }
        }
        odd
    }

    /// Branches were passed.
    #[inline(always)]
    fn note_passed(&mut self, passed: Passed) {
        self.map = passed.map();
        if let Some(prediction) = &mut self.prediction {
            prediction.pass(passed);
        }
    }

    /// As [`Hart::take_run`] where optional modes take notice of the run.
    #[inline(never)]
    fn modal_run(
        &mut self,
        config: &Config,
        runs: &IngressRuns<'_>,
        run: IngressRun<'_>,
        sink: &mut impl Sink,
    ) -> bool {
        let counts = self.prediction.as_ref();
        if !self.is_calm(config, run.halfwords())
            || counts.is_some_and(|counts| !counts.has_room(run.branches()))
        {
            return false;
        }
        self.conclude_quietly(config, run.addr(), sink);
        // The first instruction of the run.
        let first = runs.first(&run).is_branch();
        let single = run.is_single();
        let target = matches!(self.before, Before::Jump | Before::TrapReturn);
        self.cur.addr = run.addr();
        self.hit = false;
        self.cache_target();
        if target && !single {
            if first {
                self.note_outcome(run.addr(), false);
            }
            self.cur.time = runs.first_time(&run);
            self.report_target(config, sink);
        }
        // The branches, but not one that was reported with the target.
        let own = run.itype().is_branch();
        let inner = run.branches() - u8::from(own);
        let skip = target && !single && first;
        let mut branches = Passing::new(self.map, self.prediction.as_mut());
        if !skip && branches.take(runs, &run) {
            let passed = branches.passed;
            self.note_passed(passed);
        } else {
            self.each_branch(config, (runs, run), skip, sink);
        }
        if !single {
            (self.before, self.hit) = (Before::Plain, false);
            (self.implied, self.landing) = (false, None);
            if let Some(returns) = &mut self.returns
                && inner > 0
            {
                returns.settle();
            }
        } else if target {
            self.due = Some(Due::Target);
        }
        self.told = false;
        self.jumps = run.itype().is_uninferable();
        self.halfwords += run.halfwords();
        self.pass_run(run);
        self.settle();
        true
    }

    /// The branches of a run one by one, without the first one if that has been
    /// reported.
    #[cold]
    fn each_branch(
        &mut self,
        config: &Config,
        (runs, run): (&IngressRuns<'_>, IngressRun<'_>),
        mut skip: bool,
        sink: &mut impl Sink,
    ) {
        let mut number = 0;
        runs.inner_branches_in_order(&run, |address| {
            number += 1;
            if !core::mem::take(&mut skip) {
                self.note_outcome(address, false);
                if self.is_full() {
                    self.cur.time = runs.branch_time(&run, number);
                    self.full_map(config, sink);
                }
            }
        });
        if run.itype().is_branch() {
            self.note_outcome(run.last_addr(), run.is_taken());
        }
    }

    /// What [`step`](Hart::step) does about the current instruction if the one at
    /// this address follows and gets no synchronisation packet.
    fn conclude_quietly(&mut self, config: &Config, next: u64, sink: &mut impl Sink) {
        self.judge_return(Some(next));
        if self.due.is_some() {
            self.report_target(config, sink);
        } else if self.is_full() {
            self.full_map(config, sink);
        } else {
            self.settle_return(config, sink);
        }
        self.leave(config, next);
        self.set_before();
    }

    /// If the current instruction is a return that a decoder would take for an
    /// earlier one, reports the last one before it.
    pub(super) fn settle_return(&mut self, config: &Config, sink: &mut impl Sink) {
        if self.returning != Returning::No
            && let Some(last) = self.returns.as_ref().and_then(Returns::repeated)
        {
            self.report_return(config, last, sink);
            self.open = Open::TrapReturn;
        }
    }

    /// The current instruction is a branch: takes its outcome into the map, or
    /// counts it.
    #[inline]
    pub(super) fn note_branch(&mut self) {
        let Unit { itype, addr, .. } = self.cur;
        self.note_outcome(addr, itype == Itype::Taken);
        if self.readiness == Readiness::Modal && self.is_full() {
            self.readiness = Readiness::Pending;
        }
    }

    /// The outcome of the branch at this address.
    #[inline]
    fn note_outcome(&mut self, address: u64, taken: bool) {
        let mapped = match &mut self.prediction {
            Some(prediction) => prediction.branch(address, taken),
            None => true,
        };
        if mapped {
            push_branches(&mut self.map, 1, taken);
        }
    }
}
