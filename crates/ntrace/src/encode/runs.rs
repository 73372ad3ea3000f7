//! The encoder of one hart: blocks put together.

use hartrace_flow::{IngressRun, IngressRuns};

use super::Sink;
use super::action::Action;
use super::hart::{End, Hart, Readiness, period};
use crate::{Config, SyncUnit};

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
        while let Some(run) = self.count_runs(&mut runs, &mut taken) {
            if !self.take_run(config, run, sink) {
                break;
            }
            taken += 1;
        }
        taken
    }

    /// Counts runs and puts their branches into the history, up to one that asks for
    /// more, which is returned. Nothing is called from its loop, so that all of its
    /// state stays in registers.
    #[inline(always)]
    fn count_runs<'r>(
        &mut self,
        runs: &mut IngressRuns<'r>,
        taken: &mut usize,
    ) -> Option<IngressRun<'r>> {
        let idle = self.readiness == Readiness::Idle && self.sync_at == u64::MAX;
        if !(idle && self.history) {
            return runs.next();
        }
        let Some(mut window) = self.hist.window() else {
            return runs.next();
        };
        let (mut icnt, limit) = (self.icnt, self.limit);
        let (mut count, mut last) = (0, None);
        let odd = loop {
            let Some(run) = runs.next() else { break None };
            let next = icnt + run.halfwords();
            let counted = self.actions.counts(run.itype());
            if !(counted && next < limit && window.push(run.branches(), run.is_taken())) {
                break Some(run);
            }
            icnt = next;
            count += 1;
            last = Some(run);
        };
        self.hist.set_window(window);
        self.icnt = icnt;
        *taken += count;
        if let Some(run) = last {
            self.time = run.time();
        }
        odd
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
        let far = match config.periodic.unit {
            SyncUnit::Messages => self.out.since_sync + FEW < period(config),
            _ => true,
        };
        far && config.timestamps.is_none() && config.queue.is_none()
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
