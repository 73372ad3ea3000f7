//! The encoder of one hart: blocks put together.

use hartrace_flow::{CountRuns, IngressRun, IngressRuns, PassRuns, Passing, Placed, Role};
use hartrace_isa::Itype;

use super::Sink;
use super::hart::{Before, Due, FULL, Hart, Open, Readiness};
use super::out::Out;
use super::send::plain_report;
use crate::packet::write::{short_map, short_report};
use crate::{BranchMap, Config, IdleIrdepth};

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
            taken += self.pass_runs(config, &mut runs, sink);
            let Some(run) = runs.next() else { break };
            if !self.take_run(config, run, runs.first(&run), sink) {
                break;
            }
            taken += 1;
        }
        taken
    }

    /// Passes runs of which each block would only be remembered, its branch put into
    /// the map, and the target of its jump reported, up to one that asks for more.
    /// Returns how many there were.
    #[inline(always)]
    fn pass_runs(
        &mut self,
        config: &Config,
        runs: &mut IngressRuns<'_>,
        sink: &mut impl Sink,
    ) -> usize {
        let lands = match self.readiness {
            Readiness::Idle => false,
            Readiness::Landing => true,
            _ => return 0,
        };
        if self.resync.time_limit != u64::MAX {
            return 0;
        }
        let room = self.room_for_packets(config);
        let most = match room {
            0 => Role::Direct,
            _ => Role::Indirect,
        };
        let counts = Counts {
            map: self.map,
            halfwords: self.halfwords,
            limit: self.resync.halfword_limit,
        };
        let mut pass = Pass {
            counts,
            jumped: lands.then_some(self.cur.time),
            open: self.open,
            room,
            base: self.base,
            config,
            out: &mut self.out,
            sink,
        };
        let passed = runs.pass(most, &mut pass);
        let (lands, left, open) = (pass.jumped.is_some(), pass.room, pass.open);
        (self.map, self.halfwords) = (pass.counts.map, pass.counts.halfwords);
        self.base = pass.base;
        let Some((count, last)) = passed else {
            return 0;
        };
        self.resync.count(room - left);
        self.open = open;
        self.jumps = lands;
        self.readiness = match lands {
            true => Readiness::Landing,
            // It is sent with the next instruction.
            false if self.map.count >= FULL => Readiness::Pending,
            false => Readiness::Idle,
        };
        self.told = false;
        self.before = Before::Plain;
        self.pass_run(last);
        count
    }

    /// How many packets may be sent before anything becomes due: none if the queue could
    /// be full, or they are not of the usual form.
    #[inline]
    fn room_for_packets(&self, config: &Config) -> u64 {
        let usual = config.idle_irdepth == IdleIrdepth::Repeated && config.queue.is_none();
        match usual {
            true => self.resync.packets_left().saturating_sub(FEW),
            false => 0,
        }
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
        self.due = Some(Due::Target);
        self.report(config, false, false, None, sink);
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

/// What changes with each run.
#[derive(Clone, Copy)]
struct Counts {
    map: BranchMap,
    halfwords: u64,
    limit: u64,
}

impl CountRuns for Counts {
    #[inline(always)]
    fn add(&mut self, last: &Placed, taken: bool) -> bool {
        let halfwords = self.halfwords + last.halfwords();
        let branches = u32::from(self.map.count) + u32::from(last.branches);
        let fits = halfwords < self.limit && branches < FULL.into();
        if fits {
            push_branches(&mut self.map, last.branches, taken);
            self.halfwords = halfwords;
        }
        fits
    }
}

/// Runs that are remembered and targets that are reported one after the other: what of
/// the hart they change.
struct Pass<'h, S> {
    counts: Counts,
    /// The last instruction was a jump, and when that was.
    jumped: Option<u64>,
    /// Whether the last packet reported a jump's target.
    open: Open,
    /// So many packets may be sent.
    room: u64,
    base: u64,
    config: &'h Config,
    out: &'h mut Out,
    sink: &'h mut S,
}

impl<S: Sink> Pass<'_, S> {
    /// Reports the target of a jump: the first of some instructions. What is reported
    /// depends on the next one, so there must be one. Returns the branches that are
    /// left to report, or `None`, and nothing happens.
    #[inline(always)]
    fn land(&mut self, run: Passing<'_>, time: u64) -> Option<u8> {
        if self.room == 0 || run.is_single() || run.branches() >= FULL {
            return None;
        }
        let first = u8::from(run.begins_with_branch());
        let mut map = self.counts.map;
        push_branches(&mut map, first, false);
        let layout = &self.out.layout;
        let from = if self.config.full_address {
            0
        } else {
            self.base
        };
        let report = plain_report(self.config, layout, run.addr().wrapping_sub(from));
        let short = short_report(map, &report, layout)?;
        self.out.send_short(short, time, self.sink);
        self.room -= 1;
        self.counts.map = BranchMap::default();
        self.base = run.addr();
        self.jumped = None;
        self.open = Open::Jump;
        Some(run.branches() - first)
    }

    /// The branches of a run fill the map, or it is full already. It is sent with the
    /// instruction after the branch that filled it, or a little later.
    #[inline(never)]
    fn overflow(&mut self, run: Passing<'_>, taken: bool) -> bool {
        let mut branches = run.branches();
        if self.room < 2 || branches >= FULL {
            return false;
        }
        if self.counts.map.count + branches > FULL {
            let filling = FULL - self.counts.map.count;
            push_branches(&mut self.counts.map, filling, false);
            branches -= filling;
            self.send_map(run.time());
        }
        push_branches(&mut self.counts.map, branches, taken);
        if self.counts.map.count == FULL && !run.ends_with_branch() {
            self.send_map(run.time());
        }
        true
    }

    #[inline(always)]
    fn send_map(&mut self, time: u64) {
        self.out
            .send_short(short_map(self.counts.map), time, self.sink);
        self.room -= 1;
        self.counts.map = BranchMap::default();
        self.open = Open::No;
    }
}

impl<S: Sink> PassRuns for Pass<'_, S> {
    type Counts = Counts;

    #[inline(always)]
    fn counts(&self) -> Option<Counts> {
        self.jumped.is_none().then_some(self.counts)
    }

    #[inline(always)]
    fn set_counts(&mut self, counts: Counts) {
        self.counts = counts;
    }

    #[inline(always)]
    fn count(&mut self, run: Passing<'_>, taken: bool) -> bool {
        let halfwords = self.counts.halfwords + run.halfwords();
        if halfwords >= self.counts.limit {
            return false;
        }
        if let Some(time) = self.jumped {
            let Some(branches) = self.land(run, time) else {
                return false;
            };
            push_branches(&mut self.counts.map, branches, taken);
        } else if !self.overflow(run, taken) {
            return false;
        }
        self.counts.halfwords = halfwords;
        true
    }

    #[inline(always)]
    fn jump(&mut self, run: Passing<'_>, itype: Itype, _: u64) -> bool {
        // One that changes the mode has rules of its own.
        if itype == Itype::TrapReturn || !itype.is_uninferable() {
            return false;
        }
        let counted = self.jumped.is_none() && self.counts.add(run.last(), false);
        if !counted && !self.count(run, false) {
            return false;
        }
        self.jumped = Some(run.time());
        true
    }
}
