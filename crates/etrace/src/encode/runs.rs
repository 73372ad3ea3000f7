//! The encoder of one hart: blocks put together.

use hartrace_flow::{IngressRun, IngressRuns, Placed, Role};
use hartrace_isa::Itype;

use super::Sink;
use super::hart::{Before, Due, FULL, Hart, Open, Readiness};
use crate::{BranchMap, Config};

/// More packets than a run can cause: the target before it, the target at its
/// start, and maps of at most 255 branches.
const FEW: u64 = 16;

impl Hart {
    /// Runs, as long as each can be taken as a whole.
    #[inline(always)]
    pub(super) fn take_runs(
        &mut self,
        config: &Config,
        mut runs: IngressRuns<'_>,
        sink: &mut impl Sink,
    ) -> usize {
        if runs.mode != self.cur.mode || runs.context != self.cur.context || self.timed {
            return 0;
        }
        if self.prediction.is_some() | self.targets.is_some() | self.returns.is_some() {
            return self.take_modal_runs(config, runs, sink);
        }
        let mut taken = 0;
        loop {
            taken += self.pass_runs(&mut runs);
            let Some(run) = runs.next() else { break };
            let first = runs.first(&run);
            if !self.leap(config, run, first, sink) && !self.take_run(config, run, first, sink) {
                break;
            }
            taken += 1;
        }
        taken
    }

    /// Passes runs of which each block would only be remembered, and its branch put
    /// into the map, up to one that asks for more. Returns how many there were.
    #[inline(always)]
    fn pass_runs(&mut self, runs: &mut IngressRuns<'_>) -> usize {
        if self.readiness != Readiness::Idle || self.resync.time_limit != u64::MAX {
            return 0;
        }
        let (mut map, mut halfwords) = (self.map, self.halfwords);
        let limit = self.resync.halfword_limit;
        let passed = runs.pass_counted(Role::Direct, |own, branches, taken| {
            let next = halfwords + own;
            // A map that is full is sent with the next instruction.
            let fits = next < limit && map.count + branches < FULL;
            if fits {
                push_branches(&mut map, branches, taken);
                halfwords = next;
            }
            fits
        });
        let Some((count, last)) = passed else {
            return 0;
        };
        (self.map, self.halfwords) = (map, halfwords);
        self.told = false;
        self.pass_run(last);
        count
    }

    /// A run that ends with a jump, or begins at the target of one, or both, where
    /// there is nothing else to do: what [`take_run`](Hart::take_run) does, or
    /// nothing and `false`.
    #[inline(never)]
    fn leap(
        &mut self,
        config: &Config,
        run: IngressRun<'_>,
        first: Placed,
        sink: &mut impl Sink,
    ) -> bool {
        let lands = match self.readiness {
            Readiness::Idle => false,
            Readiness::Landing => true,
            _ => return false,
        };
        let end = self.halfwords + run.halfwords();
        let room = self.map.count + run.branches() < FULL;
        if !room || !self.resync.is_far(FEW, end) {
            return false;
        }
        if lands {
            // What is reported depends on what follows the target.
            if run.is_single() || first.is_branch() || config.queue.is_some() {
                return false;
            }
            self.before = match self.cur.itype {
                Itype::TrapReturn => Before::TrapReturn,
                _ => Before::Jump,
            };
            self.cur.addr = run.addr();
            self.report_target(config, sink);
        }
        self.before = Before::Plain;
        push_branches(&mut self.map, run.branches(), run.is_taken());
        self.told = false;
        self.jumps = run.itype().is_uninferable();
        self.halfwords = end;
        self.pass_run(run);
        self.readiness = match self.jumps {
            true => Readiness::Landing,
            false => Readiness::Idle,
        };
        true
    }

    /// The last instruction of a run is the current one.
    #[inline(always)]
    pub(super) fn pass_run(&mut self, run: IngressRun<'_>) {
        self.cur.itype = run.itype();
        self.cur.addr = run.last_addr();
        self.cur.end = run.end();
        self.cur.time = run.time();
    }

    /// A run that follows a jump, ends with one or fills the map, while no optional
    /// mode takes notice of it: what [`step`](Hart::step) does for each of its
    /// instructions, where nothing else can become due among them.
    #[inline(never)]
    fn take_run(
        &mut self,
        config: &Config,
        run: IngressRun<'_>,
        first: Placed,
        sink: &mut impl Sink,
    ) -> bool {
        if !self.is_calm(config, run.halfwords()) {
            return false;
        }
        // The current instruction, now that the next one is known.
        if self.due.is_some() {
            self.report_target(config, sink);
        } else if self.map.count >= FULL {
            self.full_map(config, sink);
        }
        let mut branches = run.branches();
        if self.jumps {
            // The first instruction of the run is the target.
            self.before = match self.cur.itype {
                Itype::TrapReturn => Before::TrapReturn,
                _ => Before::Jump,
            };
            if run.is_single() {
                self.due = Some(Due::Target);
            } else {
                if first.is_branch() {
                    branches -= 1;
                    push_branches(&mut self.map, 1, false);
                }
                self.cur.addr = run.addr();
                self.report_target(config, sink);
                self.before = Before::Plain;
            }
        } else {
            self.before = Before::Plain;
        }
        self.push_all(config, branches, run, sink);
        self.told = false;
        self.jumps = run.itype().is_uninferable();
        self.halfwords += run.halfwords();
        self.pass_run(run);
        self.settle();
        true
    }

    /// Whether nothing is due but the target of a jump or a full map, nothing else
    /// becomes due within so many halfwords, and it does not matter when a packet is
    /// sent.
    pub(super) fn is_calm(&self, config: &Config, halfwords: u64) -> bool {
        let targets = matches!(self.due, None | Some(Due::Target));
        let others = self.cur.itype.is_trap() | self.owes_context | self.sync_next;
        let idle = self.readiness != Readiness::Busy && targets && !others;
        let end = self.halfwords + halfwords;
        idle && config.queue.is_none() && self.resync.is_far(FEW, end)
    }

    /// Reports the current instruction as the target of a jump. What follows it is
    /// no packet of format 3.
    pub(super) fn report_target(&mut self, config: &Config, sink: &mut impl Sink) {
        if !self.report_shortly(config, sink) {
            self.due = Some(Due::Target);
            self.report(config, false, false, None, sink);
        }
        self.due = None;
        self.open = match self.before {
            Before::TrapReturn => Open::TrapReturn,
            _ => Open::Jump,
        };
    }

    pub(super) fn full_map(&mut self, config: &Config, sink: &mut impl Sink) {
        self.branches(config, sink);
        self.open = Open::No;
    }

    /// The branches of a run, or the last of them.
    fn push_all(
        &mut self,
        config: &Config,
        mut branches: u8,
        run: IngressRun<'_>,
        sink: &mut impl Sink,
    ) {
        while self.map.count + branches > FULL {
            let room = FULL - self.map.count;
            push_branches(&mut self.map, room, false);
            branches -= room;
            self.full_map(config, sink);
        }
        push_branches(&mut self.map, branches, run.is_taken());
        if self.map.count >= FULL && !run.itype().is_branch() {
            // There is an instruction after the branch that filled it.
            self.full_map(config, sink);
        }
    }
}

/// So many branches of which only the last may be taken; they fit.
#[inline(always)]
pub(super) fn push_branches(map: &mut BranchMap, count: u8, last_taken: bool) {
    // A set bit is a branch that was not taken.
    let outcomes = (1u64 << (count & 63)) - 1;
    let outcomes = outcomes >> u32::from(last_taken);
    map.bits |= (outcomes as u32) << (map.count & 31);
    map.count += count;
}
