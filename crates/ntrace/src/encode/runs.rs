//! The encoder of one hart: blocks put together.

use hartrace_flow::{IngressRun, IngressRuns};

use super::Sink;
use super::action::Action;
use super::hart::{End, Hart, Readiness};
use crate::{Btype, Config};

/// More messages than a run can fill: it has at most 255 branches.
const FEW: u64 = 256;

impl Hart {
    /// Runs, as long as each can be taken as a whole.
    #[inline(always)]
    pub(super) fn take_runs(
        &mut self,
        config: &Config,
        mut runs: IngressRuns<'_>,
        sink: &mut impl Sink,
    ) -> usize {
        if runs.mode != self.mode || runs.context != self.context {
            return 0;
        }
        let mut taken = 0;
        loop {
            if self.readiness == Readiness::Pending {
                // A message waits for the address of the next run.
                let addr = runs.next_addr();
                if !addr.is_some_and(|addr| self.resolve_early(config, addr, sink)) {
                    break;
                }
            }
            taken += self.count_runs(&mut runs);
            let Some(run) = runs.next() else { break };
            let took = match runs.next_addr() {
                Some(target) if self.actions.of(run.itype()) == Action::Jump => {
                    self.jump(config, run, target, sink)
                }
                _ => self.take_run(config, run, sink),
            };
            if !took {
                break;
            }
            taken += 1;
        }
        taken
    }

    /// Counts runs and puts their branches into the history, up to one that asks for
    /// more. Returns how many there were.
    #[inline(always)]
    fn count_runs(&mut self, runs: &mut IngressRuns<'_>) -> usize {
        let idle = self.readiness == Readiness::Idle && self.sync_at == u64::MAX;
        let Some(mut window) = self.hist.window().filter(|_| idle && self.history) else {
            return 0;
        };
        let (mut icnt, limit) = (self.icnt, self.limit);
        let passed =
            runs.pass_counted(self.actions.most_counted(), |halfwords, branches, taken| {
                let next = icnt + halfwords;
                let fits = next < limit && window.push(branches, taken);
                if fits {
                    icnt = next;
                }
                fits
            });
        self.hist.set_window(window);
        self.icnt = icnt;
        let Some((count, last)) = passed else {
            return 0;
        };
        self.time = last.time();
        count
    }

    /// Several blocks of which each would be counted and its branch put into the
    /// history. The first one may find a message that waits for its address, and
    /// the last one may be a jump or fill the history.
    #[inline(never)]
    fn take_run(&mut self, config: &Config, run: IngressRun<'_>, sink: &mut impl Sink) -> bool {
        if self.readiness != Readiness::Idle && !self.resolve_early(config, run.addr(), sink) {
            return false;
        }
        let icnt = self.icnt + run.halfwords();
        let timed = self.sync_at != u64::MAX;
        if icnt >= self.limit || timed && run.time() >= self.sync_at {
            return false;
        }
        if run.jumps() && self.actions.of(run.itype()).is_branch() {
            // The run does not count it.
            return false;
        }
        self.time = run.time();
        if self.history && run.branches() > 0 && !self.hist.push_run(run.branches(), run.is_taken())
        {
            return self.take_full(config, run, sink);
        }
        self.icnt = icnt;
        if run.jumps() || !self.history && run.is_taken() {
            self.end_run(config, run, sink);
        }
        true
    }

    /// A run that ends with a jump to an address that is known already: the message
    /// need not wait for it.
    #[inline(never)]
    fn jump(
        &mut self,
        config: &Config,
        run: IngressRun<'_>,
        target: u64,
        sink: &mut impl Sink,
    ) -> bool {
        let icnt = self.icnt + run.halfwords();
        // The message makes nothing due before the next instruction has been counted.
        let calm = self.readiness == Readiness::Idle && self.due.is_none() && self.is_far(config);
        let early = icnt < self.limit && self.sync_at == u64::MAX;
        if !(calm && early) || self.history && !self.hist.push_run(run.branches(), false) {
            return self.take_run(config, run, sink);
        }
        self.icnt = icnt;
        self.time = run.time();
        (self.pending_time, self.pending_addr) = (run.time(), run.last_addr());
        self.branch(config, Some(Btype::Indirect), target, None, sink);
        true
    }

    /// Reports the jump or branch before an instruction at this address, if that
    /// is all there is to do: whether the instruction may be just counted then.
    #[inline(never)]
    fn resolve_early(&mut self, config: &Config, addr: u64, sink: &mut impl Sink) -> bool {
        if self.readiness == Readiness::Busy {
            return false;
        }
        self.resolve(config, addr, None, sink);
        self.settle(config);
        if self.readiness == Readiness::Idle {
            return true;
        }
        // A message made something due, but not before this instruction.
        self.readiness = Readiness::Pending;
        false
    }

    /// A run with a branch that fills the history, or ends a repetition in it. It
    /// is taken if that is the last instruction, or if it does not matter when the
    /// message is sent.
    fn take_full(&mut self, config: &Config, run: IngressRun<'_>, sink: &mut impl Sink) -> bool {
        let last = run.itype().is_branch() && self.hist.push_run(run.branches() - 1, false);
        let before = match last {
            true => 0,
            false if self.is_timeless(config) => run.branches() - 1,
            false => return false,
        };
        let start = self.icnt;
        for _ in 0..before {
            self.push(config, false, run.time(), sink);
        }
        self.icnt = start + run.branch_halfwords();
        self.push(config, run.is_taken(), run.time(), sink);
        self.icnt = start + run.halfwords();
        self.end_run(config, run, sink);
        true
    }

    /// Whether the next messages are the same a few instructions later, and so is
    /// what they make due.
    fn is_timeless(&self, config: &Config) -> bool {
        self.is_far(config) && config.timestamps.is_none()
    }

    /// Whether the next messages make nothing due.
    fn is_far(&self, config: &Config) -> bool {
        self.out.since_sync + FEW < self.periods.messages && config.queue.is_none()
    }

    /// The last instruction of a run, which is counted.
    fn end_run(&mut self, config: &Config, run: IngressRun<'_>, sink: &mut impl Sink) {
        let action = self.actions.of(run.itype());
        if !matches!(action, Action::Count | Action::NotTaken | Action::Taken) {
            let end = End {
                addr: run.last_addr(),
                next: run.end(),
                time: run.time(),
                inferable: false,
            };
            self.transfer(config, action, end, sink);
        }
    }
}
