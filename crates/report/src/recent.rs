//! The last instructions of each hart, at the end and before exceptions.

use hartrace_analyze::{Backtrace, Outer};
use hartrace_flow::order;
use hartrace_flow::{
    Cause, Event, Exit, HartId, Image, Mark, Ownership, PerHart, Run, SpaceId, Trap,
};
use std::collections::BTreeMap;

/// Runs that are remembered, a power of two: as many instructions at least.
const RUNS: usize = 64;

/// Exceptions whose instructions are kept, for each cause: the first and the last.
const CAUSES: usize = 32;

/// Where a hart was at some moment, and how it got there.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) hart: HartId,
    /// Instructions of the hart so far.
    pub(crate) insn: u64,
    /// The last runs, the oldest first, each with its time.
    pub(crate) runs: Vec<Passed>,
    /// What came after the last run, if anything.
    pub(crate) last: Option<Last>,
    /// What has not returned, the innermost first; of an exception, without it.
    pub(crate) outer: Vec<Outer>,
    /// It is the last exception of its cause, and not the first.
    pub(crate) is_last: bool,
}

impl Snapshot {
    /// The trap after the last run, if it is an exception, and the instruction that caused
    /// it, if that is not the last one of the run: some instructions, such as `ecall`,
    /// may count as executed.
    pub(crate) fn not_retired(&self) -> Option<(Trap, u64)> {
        let Some(Last::Trap(trap)) = self.last else {
            return None;
        };
        let epc = trap.epc?;
        let last = self.runs.last().map(|passed| &passed.run);
        let is_last = last.is_some_and(|run| run.exit == Exit::Stop && run.source() == epc);
        let is_exception = matches!(trap.cause, Cause::Exception(_));
        (is_exception && !is_last).then_some((trap, epc))
    }
}

/// A run that was executed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passed {
    pub(crate) run: Run,
    pub(crate) space: SpaceId,
    pub(crate) time: Option<u64>,
}

/// What came after the last run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Last {
    Trap(Trap),
    Gap(&'static str),
    Mark(Mark),
}

#[derive(Debug)]
struct Ring {
    runs: [Option<Passed>; RUNS],
    next: usize,
    insn: u64,
    space: SpaceId,
    time: Option<u64>,
    last: Option<Last>,
}

impl Default for Ring {
    fn default() -> Ring {
        Ring {
            runs: [None; RUNS],
            next: 0,
            insn: 0,
            space: SpaceId::FIRST,
            time: None,
            last: None,
        }
    }
}

impl Ring {
    #[inline]
    fn push(&mut self, run: &Run) {
        if let Some(slot) = self.runs.get_mut(self.next % RUNS) {
            *slot = Some(Passed {
                run: *run,
                space: self.space,
                time: self.time,
            });
        }
        self.next = self.next.wrapping_add(1);
    }

    fn snapshot(&self, hart: HartId) -> Snapshot {
        let (newer, older) = self.runs.split_at(self.next % RUNS);
        Snapshot {
            hart,
            insn: self.insn,
            runs: older.iter().chain(newer).flatten().copied().collect(),
            last: self.last,
            outer: Vec::new(),
            is_last: false,
        }
    }
}

/// Remembers the last runs of each hart.
#[derive(Debug)]
pub(crate) struct Recent<'a> {
    image: &'a Image,
    harts: PerHart<Ring>,
    /// The first and the last exception of each cause.
    exceptions: BTreeMap<(HartId, Option<u32>), (Snapshot, Option<Snapshot>)>,
}

impl<'a> Recent<'a> {
    pub(crate) fn new(image: &'a Image) -> Recent<'a> {
        Recent {
            image,
            harts: PerHart::default(),
            exceptions: BTreeMap::new(),
        }
    }

    /// Instructions and time of each hart.
    pub(crate) fn positions(&self) -> Vec<(HartId, u64, Option<u64>)> {
        let harts = self.harts.iter();
        harts.map(|(id, ring)| (id, ring.insn, ring.time)).collect()
    }

    /// Instructions and time of a hart.
    pub(crate) fn position(&mut self, hart: HartId) -> (u64, Option<u64>) {
        let ring = self.harts.of(hart);
        (ring.insn, ring.time)
    }

    #[inline]
    pub(crate) fn runs(&mut self, hart: HartId, runs: &[Run]) {
        let ring = self.harts.of(hart);
        for run in runs {
            ring.insn += u64::from(run.insns);
        }
        let first = runs.len().saturating_sub(RUNS);
        for run in runs.get(first..).unwrap_or_default() {
            ring.push(run);
        }
        ring.last = None;
    }

    /// An event; of an exception also what has not returned, with the exception itself.
    pub(crate) fn event(&mut self, hart: HartId, event: &Event, outer: Option<Backtrace>) {
        let ring = self.harts.of(hart);
        match event {
            Event::Run(run) => self.runs(hart, std::slice::from_ref(run)),
            Event::Time(time) => ring.time = Some(*time),
            Event::Context(Ownership {
                context: Some(context),
                ..
            }) => ring.space = self.image.space_of(*context),
            Event::Code(space) => ring.space = *space,
            Event::Trap(trap) => {
                ring.last = Some(Last::Trap(*trap));
                if let Cause::Exception(code) = trap.cause {
                    let outer = outer.map(|all| all.0.into_iter().skip(1).collect());
                    self.exception(hart, code, outer.unwrap_or_default());
                }
            }
            Event::Gap(gap) => {
                ring.last = Some(Last::Gap(gap.reason.text));
                ring.time = None;
            }
            Event::Mark(mark) => ring.last = Some(Last::Mark(*mark)),
            _ => {}
        }
    }

    #[cold]
    fn exception(&mut self, hart: HartId, code: Option<u32>, outer: Vec<Outer>) {
        let taken = Snapshot {
            outer,
            ..self.harts.of(hart).snapshot(hart)
        };
        let room = self.exceptions.len() < CAUSES;
        match self.exceptions.get_mut(&(hart, code)) {
            Some((_, last)) => {
                *last = Some(Snapshot {
                    is_last: true,
                    ..taken
                });
            }
            None if room => {
                self.exceptions.insert((hart, code), (taken, None));
            }
            None => {}
        }
    }

    /// The ends of all harts, and what came before exceptions.
    pub(crate) fn finish(self) -> (Vec<Snapshot>, Vec<Snapshot>) {
        let ends = self.harts.iter();
        let mut ends: Vec<Snapshot> = ends.map(|(hart, ring)| ring.snapshot(hart)).collect();
        order::sort_by_key(&mut ends, |end| end.hart);
        let pairs = self.exceptions.into_values();
        let mut before: Vec<Snapshot> = pairs
            .flat_map(|(first, last)| [Some(first), last])
            .flatten()
            .collect();
        order::sort_by_key(&mut before, |snapshot| (snapshot.hart, snapshot.insn));
        (ends, before)
    }
}
