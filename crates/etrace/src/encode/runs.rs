//! The encoder of one hart: blocks put together.

use hartrace_flow::encode::Gathered;
use hartrace_flow::{IngressRun, IngressRuns, PassRuns, Passing, PushOutcomes, Role, Tally};
use hartrace_isa::Itype;

use super::Sink;
use super::hart::{Before, Due, FULL, Hart, Open, Readiness};
use super::out::Out;
use crate::packet::write::short_map;
use crate::{BranchMap, Config, IdleIrdepth};

/// More halfwords than an instruction has.
const SYNC_HALFWORDS: u64 = 16;

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
        let mut taken = 0;
        loop {
            // This does not look at the time of each packet.
            if !self.stamped {
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
        self.gathered.begin(sink);
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
            map: self.map,
            halfwords: self.halfwords,
            limit: self.resync.halfword_limit,
            jumped: lands.then_some(self.cur.time),
            open: self.open,
            room,
            base: self.base,
            full_address: config.full_address,
            lands_alone: self.data.is_none(),
            out: &mut self.out,
            gathered: &mut self.gathered,
        };
        let passed = runs.pass(most, &mut pass);
        let (lands, left, open) = (pass.jumped.is_some(), pass.room, pass.open);
        (self.map, self.halfwords, self.base) = (pass.map, pass.halfwords, pass.base);
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

/// So many branches of which only the last may be taken; they fit.
#[inline(always)]
pub(super) fn push_branches(map: &mut BranchMap, count: u8, last_taken: bool) {
    // A set bit is a branch that was not taken.
    let outcomes = (1u64 << (count & 63)) - 1;
    let outcomes = outcomes >> u32::from(last_taken);
    map.bits |= (outcomes as u32) << (map.count & 31);
    map.count += count;
}

/// Outcomes of branches, the newest in bit 63, the one before it in bit 62: 1 if it was
/// taken.
#[derive(Clone, Copy)]
struct Oldest(u64);

impl PushOutcomes for Oldest {
    #[inline(always)]
    fn push(&mut self, branches: u8, taken: u8) {
        self.0 = self.0 >> (branches & 63) | u64::from(taken) << 63;
    }
}

/// Runs that are remembered and targets that are reported one after the other: what of
/// the hart they change.
struct Pass<'h> {
    map: BranchMap,
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
    /// Addresses are reported as they are.
    full_address: bool,
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
        let halfwords = self.halfwords + run.halfwords();
        if halfwords >= self.limit {
            return false;
        }
        let branches = match self.jumped {
            Some(time) => match self.land_slowly(run, time) {
                Some(left) => left,
                None => return false,
            },
            None => run.branches(),
        };
        let taken = run.taken() != 0;
        if self.map.count + branches < FULL {
            push_branches(&mut self.map, branches, taken);
        } else if !self.overflow((branches, taken), run.ends_with_branch(), run.time()) {
            return false;
        }
        self.halfwords = halfwords;
        true
    }

    /// Reports the target of a jump, the first instruction of a run, with the map.
    #[inline(always)]
    fn report(&mut self, addr: u64, time: u64) {
        let from = if self.full_address { 0 } else { self.base };
        self.out
            .gather_report(self.map, addr.wrapping_sub(from), time, self.gathered);
        self.room -= 1;
        self.map = BranchMap::default();
        self.base = addr;
        self.jumped = None;
        self.open = Open::Jump;
    }

    /// Reports the target of a jump if nothing more can be known of it.
    #[inline(always)]
    fn land(&mut self, run: Passing<'_>, time: u64) {
        let fits = run.branches() < FULL && self.halfwords + run.halfwords() < self.limit;
        // What is reported depends on the second instruction, so there must be one.
        let simple = !run.is_single() && !run.begins_with_branch();
        if fits && simple && run.role() <= Role::Direct && self.room > 0 {
            self.report(run.addr(), time);
        }
    }

    /// Reports the target of a jump. Returns the branches of the run that are left to
    /// report, or `None`, and nothing happens.
    #[inline(never)]
    fn land_slowly(&mut self, run: Passing<'_>, time: u64) -> Option<u8> {
        if self.room == 0 || run.branches() >= FULL {
            return None;
        }
        let first = u8::from(run.begins_with_branch());
        if run.is_single() {
            // The instruction after it is in the next run.
            let far = self.halfwords + run.halfwords() + SYNC_HALFWORDS < self.limit;
            if !(self.lands_alone && far && run.next().is_some()) {
                return None;
            }
            push_branches(&mut self.map, first, run.taken() != 0);
            self.report(run.addr(), run.time());
        } else {
            push_branches(&mut self.map, first, false);
            self.report(run.addr(), time);
        }
        Some(run.branches() - first)
    }

    /// So many branches fill the map, or it is full already. It is sent with the
    /// instruction after the branch that filled it, or a little later: unless the last of
    /// these branches did and is the last instruction.
    #[inline(never)]
    fn overflow(&mut self, (mut branches, taken): (u8, bool), at_end: bool, time: u64) -> bool {
        if self.room < 2 || branches >= FULL {
            return false;
        }
        if self.map.count + branches > FULL {
            let filling = FULL - self.map.count;
            push_branches(&mut self.map, filling, false);
            branches -= filling;
            self.send_map(time);
        }
        push_branches(&mut self.map, branches, taken);
        if self.map.count == FULL && !at_end {
            self.send_map(time);
        }
        true
    }

    fn send_map(&mut self, time: u64) {
        self.out.gather(short_map(self.map), time, self.gathered);
        self.room -= 1;
        self.map = BranchMap::default();
        self.open = Open::No;
    }
}

impl PassRuns for Pass<'_> {
    type Outcomes = Oldest;

    #[inline(always)]
    fn tally(&self) -> Tally<Oldest> {
        let halfwords = match self.jumped {
            Some(_) => 0,
            None => self.limit.saturating_sub(self.halfwords),
        };
        let branches = FULL.saturating_sub(self.map.count);
        Tally::below(halfwords, branches, Oldest(0))
    }

    #[inline(always)]
    fn take(&mut self, tally: Tally<Oldest>) {
        let counted = tally.counted();
        let branches = counted.branches();
        self.halfwords += counted.halfwords();
        if branches > 0 {
            // A set bit is a branch that was not taken.
            let outcomes = !tally.outcomes().0 >> (u64::BITS - u32::from(branches));
            self.map.bits |= (outcomes as u32) << (self.map.count & 31);
            self.map.count += branches;
        }
    }

    #[inline(always)]
    fn count(&mut self, run: Passing<'_>) -> bool {
        self.add(run)
    }

    #[inline(always)]
    fn jump(&mut self, run: Passing<'_>, itype: Itype, next: Passing<'_>) -> bool {
        // One that changes the mode has rules of its own.
        if itype == Itype::TrapReturn || !itype.is_uninferable() || !self.add(run) {
            return false;
        }
        self.jumped = Some(run.time());
        self.land(next, run.time());
        true
    }
}
