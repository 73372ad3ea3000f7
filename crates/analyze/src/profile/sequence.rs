//! Call paths in the order in which they were executed.

use crate::stacks::{Cost, How, Moment, NodeId, Ran, StackSink, Switched};
use crate::timeline::Position;
use hartrace_flow::{Cause, Context, Gap, HartId, PerHart, Trap};
use rustc_hash::FxHashMap;

/// Visits that are kept.
const MOST_VISITS: usize = 500_000;

/// Threads of a hart that are told apart.
const MOST_THREADS: u32 = 64;

/// Traps and gaps that are kept.
const MOST_MARKS: usize = 100_000;

/// A number that no thread has: all for which there is no list.
const REST: u32 = u32::MAX;

/// A hart is on a call path for a while: it executes a function, up to its next call, its
/// return or a trap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The call path.
    pub node: NodeId,
    /// Where it begins, in what the hart executed.
    pub begin: Position,
    /// What it cost.
    pub cost: Cost,
}

/// A trap in a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrapMark {
    /// Its cause.
    pub cause: Cause,
    /// The instruction that trapped, or before which an interrupt was taken.
    pub epc: Option<u64>,
    /// Where it was taken.
    pub begin: Position,
    /// Where it returned; `None` if that is not in the trace.
    pub end: Option<Position>,
}

/// Something that is missing in a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GapMark {
    /// Where.
    pub at: Position,
    /// Why; empty if the trace does not say that.
    pub reason: &'static str,
}

/// What a thread of a hart executed.
#[derive(Clone, Debug)]
pub struct PathThread {
    /// The trace, of several that were added up.
    pub trace: usize,
    /// The hart.
    pub hart: HartId,
    /// Its number among those of the hart; `None` for all threads without a list.
    pub number: Option<u32>,
    /// The context it runs in, if contexts are reported.
    pub context: Option<Context>,
    /// Its visits, in order.
    pub visits: Vec<Visit>,
    /// Gaps in it.
    pub gaps: Vec<GapMark>,
    /// Traps that have returned, and traps that have not.
    traps: Vec<TrapMark>,
    open: Vec<TrapMark>,
}

/// Which call paths each thread was on, one after the other: a [`StackSink`].
///
/// Memory does not depend on the length of the trace. When there are too many visits,
/// those of a path in one interval of instructions become one; the interval is doubled
/// until there are few enough. So costs are exact at any length, and the order of visits
/// is that of the trace down to [`PathSequence::interval`].
#[derive(Clone, Debug)]
pub struct PathSequence {
    threads: Vec<PathThread>,
    known: FxHashMap<(HartId, u32), usize>,
    harts: PerHart<Line>,
    /// Visits of all threads, and how many may be.
    visits: usize,
    limit: usize,
    interval: u64,
    marks: usize,
    left_out: u64,
    traces: usize,
}

/// What is known of a hart.
#[derive(Clone, Debug, Default)]
struct Line {
    threads: u32,
    /// The thread that runs: its number, and its place in the list.
    current: Option<(u32, usize)>,
    now: Position,
    /// Where tracing was turned off; a gap if the hart runs again.
    off: Option<Position>,
}

impl Default for PathSequence {
    fn default() -> PathSequence {
        PathSequence::new(MOST_VISITS)
    }
}

impl PathSequence {
    /// Keeps `limit` visits.
    #[must_use]
    pub fn new(limit: usize) -> PathSequence {
        PathSequence {
            threads: Vec::new(),
            known: FxHashMap::default(),
            harts: PerHart::default(),
            visits: 0,
            limit,
            interval: 1,
            marks: 0,
            left_out: 0,
            traces: 1,
        }
    }

    /// Every thread that executed something, in the order of appearance.
    pub fn threads(&self) -> impl Iterator<Item = &PathThread> {
        self.threads.iter().filter(|t| !t.visits.is_empty())
    }

    /// In how many instructions the visits of a path are one; 1 if all are there.
    #[must_use]
    pub const fn interval(&self) -> u64 {
        self.interval
    }

    /// Traps and gaps for which there was no room.
    #[must_use]
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// How many traces were added up.
    #[must_use]
    pub const fn traces(&self) -> usize {
        self.traces
    }

    /// Adds the threads of another trace of the same program; `nodes` are the call paths
    /// here by those there.
    pub(crate) fn add(&mut self, mut other: PathSequence, nodes: &[NodeId]) {
        other.merged(nodes);
        for mut thread in other.threads {
            thread.trace += self.traces;
            self.threads.push(thread);
        }
        self.known.clear();
        self.visits += other.visits;
        self.interval = self.interval.max(other.interval);
        self.left_out += other.left_out;
        self.traces += other.traces;
        if self.visits > self.limit {
            self.coarsen();
        }
    }

    /// The list of a thread of a hart.
    fn list(&mut self, hart: HartId, (number, context): (u32, Option<Context>)) -> usize {
        let line = self.harts.of(hart);
        let is_rest = line.threads + 1 >= MOST_THREADS;
        let known = self.known.get(&(hart, number));
        let rest = || self.known.get(&(hart, REST)).filter(|_| is_rest);
        if let Some(&at) = known.or_else(rest) {
            return at;
        }
        self.threads.push(PathThread {
            trace: 0,
            hart,
            number: (!is_rest).then_some(number),
            context: context.filter(|_| !is_rest),
            visits: Vec::new(),
            gaps: Vec::new(),
            traps: Vec::new(),
            open: Vec::new(),
        });
        let at = self.threads.len() - 1;
        line.threads += u32::from(!is_rest);
        let name = if is_rest { REST } else { number };
        self.known.insert((hart, name), at);
        at
    }

    /// A thread of a hart runs.
    #[inline]
    fn turn_to(&mut self, hart: HartId, thread: (u32, Option<Context>)) {
        let line = self.harts.of(hart);
        if line.current.is_none_or(|(number, _)| number != thread.0) {
            let at = self.list(hart, thread);
            self.harts.of(hart).current = Some((thread.0, at));
        }
    }

    /// A moment of a hart as a position, and the thread that runs.
    fn place(&mut self, hart: HartId, at: Moment) -> (Position, Option<&mut PathThread>) {
        let line = self.harts.of(hart);
        line.now.insn = at.insn;
        line.now.time = at.time.unwrap_or(line.now.time).max(line.now.time);
        let thread = line.current.and_then(|(_, at)| self.threads.get_mut(at));
        (line.now, thread)
    }

    /// Something is missing in the thread that runs.
    #[cold]
    fn mark_gap(&mut self, hart: HartId, at: Position, reason: &'static str) {
        let current = self.harts.of(hart).current;
        if current.is_some() && self.has_room() {
            let thread = current.and_then(|(_, at)| self.threads.get_mut(at));
            let gaps = thread.map(|thread| &mut thread.gaps);
            gaps.into_iter()
                .for_each(|gaps| gaps.push(GapMark { at, reason }));
        }
    }

    /// Makes room for a mark.
    fn has_room(&mut self) -> bool {
        let room = self.marks < MOST_MARKS;
        match room {
            true => self.marks += 1,
            false => self.left_out += 1,
        }
        room
    }

    /// Doubles the interval until there are few enough visits.
    #[cold]
    fn coarsen(&mut self) {
        let last = |thread: &PathThread| thread.visits.last().map_or(0, |v| v.begin.insn);
        let end = self.threads.iter().map(last).max().unwrap_or(0);
        loop {
            let interval = self.interval;
            self.threads.iter_mut().for_each(|t| t.coarsen(interval));
            self.visits = self.threads.iter().map(|t| t.visits.len()).sum();
            if self.visits <= self.limit / 2 || interval > end {
                break;
            }
            self.interval *= 2;
        }
        // There may be more call paths than that: then there is nothing left to merge.
        self.limit = self.limit.max(self.visits * 2);
    }
}

impl PathThread {
    /// The traps that it took: those that have returned in the order of their ends, then
    /// those that have not.
    pub fn traps(&self) -> impl Iterator<Item = &TrapMark> {
        self.traps.iter().chain(&self.open)
    }

    /// Merges the visits of a path in one interval.
    fn coarsen(&mut self, interval: u64) {
        let mut merged: Vec<Visit> = Vec::with_capacity(self.visits.len() / 2);
        let mut here: FxHashMap<NodeId, usize> = FxHashMap::default();
        let mut first = 0;
        let mut current = None;
        for visit in &self.visits {
            let number = visit.begin.insn / interval;
            if current != Some(number) {
                place(merged.get_mut(first..).unwrap_or_default());
                (current, first) = (Some(number), merged.len());
                here.clear();
            }
            let at = *here.entry(visit.node).or_insert(merged.len());
            match merged.get_mut(at) {
                Some(known) => known.cost.add(visit.cost),
                None => merged.push(*visit),
            }
        }
        place(merged.get_mut(first..).unwrap_or_default());
        self.visits = merged;
    }
}

/// Puts visits one after the other.
fn place(visits: &mut [Visit]) {
    let mut next: Option<Position> = None;
    for visit in visits {
        if let Some(next) = next {
            visit.begin = next;
        }
        next = Some(Position {
            insn: visit.begin.insn + visit.cost.insns,
            time: visit.begin.time + visit.cost.time,
        });
    }
}

impl StackSink for PathSequence {
    const RUNS: bool = true;
    const TIMES: bool = true;

    fn ran(&mut self, hart: HartId, ran: &Ran<'_>) {
        if let Some(at) = self.harts.of(hart).off.take() {
            self.mark_gap(hart, at, "tracing was off");
        }
        self.turn_to(hart, ran.thread);
        let (begin, thread) = self.place(hart, ran.at);
        let cost = Cost {
            insns: u64::from(ran.run.insns),
            time: ran.time,
        };
        let Some(thread) = thread else { return };
        if thread.number.is_some() {
            thread.context = ran.thread.1.or(thread.context);
        }
        let last = thread.visits.last_mut();
        let goes_on =
            |v: &&mut Visit| v.node == ran.node && v.begin.insn + v.cost.insns == begin.insn;
        if let Some(last) = last.filter(goes_on) {
            last.cost.add(cost);
            return;
        }
        thread.visits.push(Visit {
            node: ran.node,
            begin,
            cost,
        });
        self.visits += 1;
        if self.visits > self.limit {
            self.coarsen();
        }
    }

    fn merged(&mut self, new: &[NodeId]) {
        for visit in self.threads.iter_mut().flat_map(|t| &mut t.visits) {
            let node = new.get(visit.node.index()).copied();
            visit.node = node.unwrap_or(NodeId::ROOT);
        }
    }

    fn trapped(&mut self, hart: HartId, trap: &Trap, at: Moment) {
        let (begin, thread) = self.place(hart, at);
        if let Some(thread) = thread {
            thread.open.push(TrapMark {
                cause: trap.cause,
                epc: trap.epc,
                begin,
                end: None,
            });
        }
    }

    fn resumed(&mut self, hart: HartId, how: How, at: Moment) {
        let (end, thread) = self.place(hart, at);
        let Some(mark) = thread.and_then(|thread| thread.open.pop()) else {
            return;
        };
        if self.has_room()
            && let (_, Some(thread)) = self.place(hart, at)
        {
            thread.traps.push(TrapMark {
                end: (how == How::Returned).then_some(end),
                ..mark
            });
        }
    }

    fn switched(&mut self, hart: HartId, to: &Switched<'_>) {
        self.turn_to(hart, (to.number, to.context));
        self.place(hart, to.at);
    }

    fn gap(&mut self, hart: HartId, gap: Option<&Gap>, at: Moment) {
        let (at, _) = self.place(hart, at);
        match gap {
            Some(gap) => self.mark_gap(hart, at, gap.reason.text),
            // Before the first instruction nothing is missing.
            None => self.harts.of(hart).off = Some(at).filter(|at| at.insn > 0),
        }
    }
}

#[cfg(test)]
mod tests;
