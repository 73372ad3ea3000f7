//! The encoder of one hart: blocks put together.

use hartrace_flow::encode::Gathered;
use hartrace_flow::{IngressRun, IngressRuns, PassRuns, Passing, Role, Tally};
use hartrace_isa::Itype;

use super::Sink;
use super::action::{Action, Actions};
use super::hart::{End, Hart, Periods, Readiness};
use super::out::Out;
use crate::hist::{Newest, Window};
use crate::{Btype, Config, Ending};

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
        // What is gathered does not look at the time of each message.
        let timed = sink.wants_each();
        let mut taken = 0;
        loop {
            if self.readiness == Readiness::Pending {
                // A message waits for the address of the next run.
                let addr = runs.next_addr();
                if !addr.is_some_and(|addr| self.resolve_early(config, addr, sink)) {
                    break;
                }
            }
            if !timed {
                taken += self.pass_runs(config, &mut runs, sink);
            }
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

    /// Counts runs, puts their branches into the history and reports jumps, up to a run
    /// that asks for more. Returns how many there were.
    #[inline(always)]
    fn pass_runs(
        &mut self,
        config: &Config,
        runs: &mut IngressRuns<'_>,
        sink: &mut impl Sink,
    ) -> usize {
        let idle = self.readiness == Readiness::Idle && self.sync_at == u64::MAX;
        let Some(window) = self.hist.window().filter(|_| idle && self.history) else {
            return 0;
        };
        self.gathered.clear();
        let passed = self.gather_runs(config, runs, window);
        self.out.send_gathered(&mut self.gathered, sink);
        passed
    }

    /// The same up to the sink: its messages are gathered.
    #[inline(never)]
    fn gather_runs(
        &mut self,
        config: &Config,
        runs: &mut IngressRuns<'_>,
        window: Window,
    ) -> usize {
        let room = self.room_for_messages(config);
        let most = match self.actions.most_counted() {
            Role::Direct if room > 0 => Role::Indirect,
            counted => counted,
        };
        let mut pass = Pass {
            counts: Counts {
                icnt: self.icnt,
                limit: self.limit,
                window,
                room,
                reference: self.reference,
                halfwords: self.halfwords,
            },
            periods: self.periods,
            actions: &self.actions,
            short_indirect: config.short_indirect,
            timed: config.timestamps.is_some(),
            out: &mut self.out,
            gathered: &mut self.gathered,
        };
        let passed = runs.pass(most, &mut pass);
        let counts = pass.counts;
        (self.icnt, self.limit) = (counts.icnt, counts.limit);
        (self.reference, self.halfwords) = (counts.reference, counts.halfwords);
        self.hist.set_window(counts.window);
        let Some((count, last)) = passed else {
            return 0;
        };
        self.time = last.time();
        count
    }

    /// How many messages may be sent before anything becomes due: none if they could be
    /// repeated, or the queue be full, or if more is remembered of branches than the
    /// register shows.
    #[inline]
    fn room_for_messages(&self, config: &Config) -> u64 {
        let calm = self.due.is_none() && config.queue.is_none();
        let plain = !config.repeat_branch && self.hist.is_plain();
        let left = self.periods.messages.saturating_sub(self.out.since_sync);
        match calm && plain && config.ending != Ending::Reference {
            // After the last of them the next one is not due.
            true => left.saturating_sub(2),
            false => 0,
        }
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
            false if self.is_timeless(config) && !sink.wants_each() => run.branches() - 1,
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

/// What of the hart runs change.
#[derive(Clone, Copy)]
struct Counts {
    icnt: u64,
    limit: u64,
    window: Window,
    /// So many messages may be sent.
    room: u64,
    reference: u64,
    halfwords: u64,
}

/// Runs that are counted and jumps that are reported one after the other.
struct Pass<'h> {
    counts: Counts,
    periods: Periods,
    actions: &'h Actions,
    /// Jumps without branches before them have no `HIST`.
    short_indirect: bool,
    /// Messages have timestamps.
    timed: bool,
    out: &'h mut Out,
    gathered: &'h mut Gathered,
}

impl Pass<'_> {
    /// Counts one run and puts its branches into the history, where they may fill it. It
    /// does not matter which of them did, as long as messages have no time.
    #[inline(always)]
    fn add(&mut self, run: Passing<'_>) -> bool {
        let icnt = self.counts.icnt + run.halfwords();
        if icnt >= self.counts.limit {
            return false;
        }
        let (branches, taken) = (run.branches(), run.taken());
        if !self.counts.window.push(branches, taken) {
            if self.counts.room == 0 || self.timed {
                return false;
            }
            let Some((window, hist)) = self.counts.window.overflow(branches, taken) else {
                return false;
            };
            self.counts.window = window;
            self.counts.room -= 1;
            self.out.gather_hist(hist, run.time(), self.gathered);
        }
        self.counts.icnt = icnt;
        true
    }
}

impl PassRuns for Pass<'_> {
    type Outcomes = Newest;

    #[inline(always)]
    fn tally(&self) -> Tally<Newest> {
        let Counts {
            icnt,
            limit,
            window,
            ..
        } = self.counts;
        Tally::below(limit.saturating_sub(icnt), window.left(), window.bits)
    }

    #[inline(always)]
    fn take(&mut self, tally: Tally<Newest>) {
        let counted = tally.counted();
        self.counts.icnt += counted.halfwords();
        self.counts.window.set(tally.outcomes(), counted.branches());
    }

    #[inline(always)]
    fn count(&mut self, run: Passing<'_>) -> bool {
        self.add(run)
    }

    #[inline(always)]
    fn jump(&mut self, run: Passing<'_>, itype: Itype, target: u64) -> bool {
        let known = self.actions.of(itype) == Action::Jump;
        if self.counts.room < 2 || !known || !self.add(run) {
            return false;
        }
        let counts = &mut self.counts;
        let icnt = core::mem::take(&mut counts.icnt);
        counts.room -= 1;
        counts.halfwords += icnt;
        counts.limit = self.periods.limit(counts.halfwords);
        let uaddr = (counts.reference ^ target) >> 1;
        counts.reference = target;
        let hist = counts.window.take();
        let short_indirect = self.short_indirect;
        let is_short = |hist| (hist == 1) & short_indirect;
        let time = || run.time();
        self.out
            .gather_jump((icnt, uaddr, hist), is_short, time, self.gathered);
        true
    }
}
