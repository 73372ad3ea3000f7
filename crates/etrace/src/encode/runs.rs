//! The encoder of one hart: blocks put together.

use hartrace_flow::encode::Gathered;
use hartrace_flow::{IngressRun, IngressRuns, PassRuns, Passing, PushOutcomes, Role, Tally};
use hartrace_isa::Itype;

use super::Sink;
use super::hart::{Before, Due, Hart, Open, Readiness};
use super::map::{FULL, push_branches};
use super::out::Out;
use crate::{BranchMap, Config, IdleIrdepth};

/// More halfwords than an instruction has.
const LONGEST: u64 = 16;

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
            return match self.stamped {
                true => 0,
                false => self.take_modal_runs(config, runs, sink),
            };
        }
        // What is gathered does not look at the time of each packet.
        let timed = self.stamped || sink.wants_each();
        let mut taken = 0;
        loop {
            if !timed {
                taken += self.pass_runs(config, &mut runs, sink);
            }
            let Some(run) = runs.next() else { break };
            if !self.take_run(config, run, &runs, sink) {
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
        self.gathered.clear();
        let passed = self.gather_runs(config, runs, lands);
        self.out.send_gathered(&mut self.gathered, sink);
        passed
    }

    /// The same up to the sink: its packets are gathered.
    #[inline(never)]
    fn gather_runs(&mut self, config: &Config, runs: &mut IngressRuns<'_>, lands: bool) -> usize {
        let room = self.room_for_packets(config);
        let most = match room {
            0 => Role::Direct,
            _ => Role::Indirect,
        };
        let mut pass = Pass {
            counts: Counts {
                outcomes: Oldest::of(self.map),
                branches: self.map.count,
                halfwords: self.halfwords,
                limit: self.resync.halfword_limit,
                jumped: lands.then_some(self.cur.time),
                open: self.open,
                room,
                base: self.base,
            },
            relative: if config.full_address { 0 } else { u64::MAX },
            lands_alone: self.data.is_none(),
            out: &mut self.out,
            gathered: &mut self.gathered,
        };
        let passed = runs.pass(most, &mut pass);
        let counts = pass.counts;
        let (lands, left, open) = (counts.jumped.is_some(), counts.room, counts.open);
        self.map = counts.map();
        (self.halfwords, self.base) = (counts.halfwords, counts.base);
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
        let usual = config.idle_irdepth == IdleIrdepth::Repeated
            && config.queue.is_none()
            && self.out.layout.is_plain();
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
        runs: &IngressRuns<'_>,
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
                if runs.first(&run).is_branch() {
                    branches -= 1;
                    push_branches(&mut self.map, 1, false);
                }
                self.cur.addr = run.addr();
                self.cur.time = runs.first_time(&run);
                self.report_target(config, sink);
                self.before = Before::Plain;
            }
        } else {
            self.before = Before::Plain;
        }
        self.push_all(config, branches, (run, runs), sink);
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
        (run, runs): (IngressRun<'_>, &IngressRuns<'_>),
        sink: &mut impl Sink,
    ) {
        while self.map.count + branches > FULL {
            let room = FULL - self.map.count;
            push_branches(&mut self.map, room, false);
            branches -= room;
            self.cur.time = runs.branch_time(&run, run.branches() - branches);
            self.full_map(config, sink);
        }
        push_branches(&mut self.map, branches, run.is_taken());
        if self.map.count >= FULL && !run.itype().is_branch() {
            // There is an instruction after the branch that filled it.
            self.cur.time = runs.branch_time(&run, run.branches());
            self.full_map(config, sink);
        }
    }
}

/// Outcomes of branches, the newest in bit 63, the one before it in bit 62: 1 if it was
/// taken.
#[derive(Clone, Copy)]
struct Oldest(u64);

impl Oldest {
    fn of(map: BranchMap) -> Oldest {
        // A set bit of a map is a branch that was not taken.
        let above = (u64::BITS - u32::from(map.count)) & 63;
        Oldest(!u64::from(map.bits) << above)
    }
}

impl PushOutcomes for Oldest {
    #[inline(always)]
    fn push(&mut self, branches: u8, taken: u8) {
        self.0 = self.0 >> (branches & 63) | u64::from(taken) << 63;
    }
}

/// What of the hart runs change.
#[derive(Clone, Copy)]
struct Counts {
    /// The branches that were not reported yet, fewer than 32: their outcomes, and how many
    /// there are.
    outcomes: Oldest,
    branches: u8,
    halfwords: u64,
    /// Halfwords at which there is something to do.
    limit: u64,
    /// The last instruction was a jump, and when that was.
    jumped: Option<u64>,
    /// Whether the last packet reported a jump's target.
    open: Open,
    /// So many packets may be sent.
    room: u64,
    base: u64,
}

impl Counts {
    #[inline(always)]
    fn push(&mut self, branches: u8, taken: u8) {
        self.outcomes.push(branches, taken);
        self.branches += branches;
    }

    #[inline(always)]
    fn map(&self) -> BranchMap {
        let count = self.branches & 31;
        let bits = (!self.outcomes.0).unbounded_shr(u64::BITS - u32::from(count));
        BranchMap {
            bits: bits as u32,
            count,
        }
    }

    /// So many branches fill the map, or it is full already: the map, and what is left of
    /// the branches. It is sent with the instruction after the branch that filled it, or a
    /// little later: not yet if the last of these branches did and is the last
    /// instruction.
    #[inline(always)]
    fn overflow(&mut self, branches: u8, taken: u8, at_end: bool) -> Option<BranchMap> {
        self.push(branches, taken);
        let left = self.branches - FULL;
        if left == 0 && at_end {
            return None;
        }
        let bits = !self.outcomes.0 >> ((u64::BITS - u32::from(self.branches)) & 63);
        self.branches = left;
        self.room -= 1;
        self.open = Open::No;
        Some(BranchMap {
            bits: bits as u32 & u32::MAX >> 1,
            count: FULL,
        })
    }
}

/// Runs that are remembered and targets that are reported one after the other.
struct Pass<'h> {
    counts: Counts,
    /// The bits of the last address that the next one is reported relative to.
    relative: u64,
    /// A target may be reported before what follows it, if that is in another run: data
    /// packets come after those of their run.
    lands_alone: bool,
    out: &'h mut Out,
    gathered: &'h mut Gathered,
}

impl Pass<'_> {
    /// Remembers one run and puts its branches into the map, where they may fill it.
    #[inline(always)]
    fn add(&mut self, run: Passing<'_>) -> bool {
        let halfwords = self.counts.halfwords + run.halfwords();
        if halfwords >= self.counts.limit {
            return false;
        }
        let branches = match self.counts.jumped {
            Some(time) => match self.land_late(run, time) {
                Some(left) => left,
                None => return false,
            },
            None => run.branches(),
        };
        let taken = run.taken();
        if self.counts.branches.saturating_add(branches) < FULL {
            self.counts.push(branches, taken);
        } else {
            if self.counts.room == 0 || branches >= FULL {
                return false;
            }
            let at_end = run.ends_with_branch();
            if let Some(map) = self.counts.overflow(branches, taken, at_end) {
                self.out.gather_map(map, run.time(), self.gathered);
            }
        }
        self.counts.halfwords = halfwords;
        true
    }

    /// Reports the target of a jump, the first instruction of a run, with the map.
    #[inline(always)]
    fn report(&mut self, addr: u64, time: u64) {
        let counts = &mut self.counts;
        let difference = addr.wrapping_sub(counts.base & self.relative);
        let map = counts.map();
        counts.room -= 1;
        counts.branches = 0;
        counts.base = addr;
        counts.jumped = None;
        counts.open = Open::Jump;
        self.out.gather_report(map, difference, time, self.gathered);
    }

    /// Reports the target of a jump at once, where nothing more can be known of it and
    /// this run will be passed.
    #[inline(always)]
    fn land(&mut self, run: Passing<'_>, time: u64) {
        let halfwords = self.counts.halfwords + run.halfwords();
        let fits = (run.branches() < FULL) & (halfwords < self.counts.limit);
        // What is reported depends on the second instruction, so there must be one.
        let simple = !(run.is_single() | run.begins_with_branch());
        if fits & simple & (run.role() <= Role::Direct) & (self.counts.room > 0) {
            self.report(run.addr(), time);
        }
    }

    /// Reports the target of a jump. Returns the branches of the run that are left to
    /// report, or `None`, and nothing happens.
    #[inline(always)]
    fn land_late(&mut self, run: Passing<'_>, time: u64) -> Option<u8> {
        if self.counts.room == 0 || run.branches() >= FULL {
            return None;
        }
        let first = u8::from(run.begins_with_branch());
        let (taken, time) = match run.is_single() {
            true => {
                // The instruction after it is in the next run.
                let halfwords = self.counts.halfwords + run.halfwords() + LONGEST;
                let far = halfwords < self.counts.limit;
                if !(self.lands_alone && far && run.next().is_some()) {
                    return None;
                }
                (run.taken(), run.time())
            }
            false => (0, time),
        };
        self.counts.push(first, taken);
        self.report(run.addr(), time);
        Some(run.branches() - first)
    }
}

impl PassRuns for Pass<'_> {
    type Outcomes = Oldest;

    #[inline(always)]
    fn tally(&self) -> Tally<Oldest> {
        let counts = &self.counts;
        let halfwords = match counts.jumped {
            Some(_) => 0,
            None => counts.limit.saturating_sub(counts.halfwords),
        };
        let branches = FULL.saturating_sub(counts.branches);
        Tally::below(halfwords, branches, counts.outcomes)
    }

    #[inline(always)]
    fn take(&mut self, tally: Tally<Oldest>) {
        let counted = tally.counted();
        self.counts.halfwords += counted.halfwords();
        self.counts.branches += counted.branches();
        self.counts.outcomes = tally.outcomes();
    }

    #[inline(always)]
    fn count(&mut self, run: Passing<'_>) -> bool {
        self.add(run)
    }

    #[inline(always)]
    fn jump(&mut self, run: Passing<'_>, itype: Itype, _: u64) -> bool {
        // One that changes the mode has rules of its own.
        if itype == Itype::TrapReturn || !itype.is_uninferable() || !self.add(run) {
            return false;
        }
        self.counts.jumped = Some(run.time());
        if let Some(next) = run.next() {
            self.land(next, run.time());
        }
        true
    }
}
