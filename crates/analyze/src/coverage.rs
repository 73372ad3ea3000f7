//! Coverage: which code ran, which branches went both ways, and what never ran.

use crate::functions::{FunctionId, Functions};
use crate::places::Places;
use crate::runs::{RunCount, Runs, add_counts};
use crate::slices::Slices;
use crate::spaces::Spaces;
use hartrace_flow::{
    Consumer, Context, Event, Exit, Gather, HartId, Image, Kept, Ownership, PerHart, Run, SpaceId,
    TiedRuns,
};
use hartrace_isa::Flow;
use std::collections::BTreeMap;
use std::ops::{AddAssign, ControlFlow};
use std::sync::{Mutex, PoisonError};

/// Counts the runs of a trace: a [`Consumer`] that needs no order, so parts of a
/// trace can be counted apart and added.
#[derive(Clone, Debug)]
pub struct RunCounter<'a> {
    image: &'a Image,
    runs: Runs,
    slices: Slices,
    spaces: Spaces,
    /// No functions: runs are not divided.
    functions: Functions,
}

impl<'a> RunCounter<'a> {
    /// Nothing counted yet.
    #[must_use]
    pub fn new(image: &'a Image) -> RunCounter<'a> {
        RunCounter {
            image,
            runs: Runs::default(),
            slices: Slices::default(),
            spaces: Spaces::default(),
            functions: Functions::new(),
        }
    }

    #[inline]
    fn run(&mut self, hart: HartId, run: &Run) {
        let space = self.spaces.of(hart);
        self.runs.count(space, run, 0, &self.functions);
    }

    /// Gives what was counted so far, and starts again.
    pub fn take(&mut self) -> Vec<RunCount> {
        self.slices.settle(&mut self.runs);
        std::mem::take(&mut self.runs).into_counts()
    }
}

impl Consumer for RunCounter<'_> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        match event {
            Event::Run(run) => self.run(hart, run),
            Event::Context(owner) => self.spaces.enter(hart, owner, self.image),
            Event::Code(space) => self.spaces.set(hart, *space),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    #[inline]
    fn runs(&mut self, hart: HartId, runs: &[Run]) -> ControlFlow<()> {
        for run in runs {
            self.run(hart, run);
        }
        ControlFlow::Continue(())
    }

    #[inline]
    fn kept_runs(&mut self, hart: HartId, kept: Kept, runs: &[Run]) -> ControlFlow<()> {
        let at = match self.slices.find(kept) {
            Some(at) => at,
            None => {
                let table = (self.spaces.of(hart), &mut self.runs, &self.functions);
                self.slices.examine(kept, runs, table)
            }
        };
        if let Some((slice, _)) = self.slices.get_mut(at) {
            slice.count += 1;
        }
        ControlFlow::Continue(())
    }

    /// Accesses do not matter.
    fn tied_runs(&mut self, hart: HartId, tied: &TiedRuns<'_>) -> ControlFlow<()> {
        self.kept_runs(hart, tied.kept(), tied.runs())
    }

    fn looks_at_values(&self) -> bool {
        false
    }

    fn keeps(&self) -> bool {
        true
    }
}

/// Counts the runs of each context apart. It takes the events of a trace in order.
#[derive(Debug)]
pub struct ContextRuns<'a> {
    image: &'a Image,
    current: PerHart<Option<Context>>,
    counters: BTreeMap<Option<Context>, RunCounter<'a>>,
}

impl<'a> ContextRuns<'a> {
    /// Nothing counted yet.
    #[must_use]
    pub fn new(image: &'a Image) -> ContextRuns<'a> {
        ContextRuns {
            image,
            current: PerHart::default(),
            counters: BTreeMap::new(),
        }
    }

    /// The counter of the context that a hart is in.
    fn counter(&mut self, hart: HartId) -> &mut RunCounter<'a> {
        let context = *self.current.of(hart);
        let counter = self.counters.entry(context);
        counter.or_insert_with(|| RunCounter::new(self.image))
    }

    /// What was counted, by context; `None` is what ran before one was reported.
    pub fn take(self) -> impl Iterator<Item = (Option<Context>, Vec<RunCount>)> + use<'a> {
        let counted = self.counters.into_iter();
        let counted = counted.map(|(context, mut counter)| (context, counter.take()));
        counted.filter(|(_, counts)| !counts.is_empty())
    }
}

impl Consumer for ContextRuns<'_> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        // A counter that gets this event knows where the code of what follows is.
        if let Event::Context(Ownership {
            context: Some(context),
            ..
        }) = event
        {
            *self.current.of(hart) = Some(*context);
        }
        self.counter(hart).event(hart, event)
    }

    fn runs(&mut self, hart: HartId, runs: &[Run]) -> ControlFlow<()> {
        self.counter(hart).runs(hart, runs)
    }

    fn kept_runs(&mut self, hart: HartId, kept: Kept, runs: &[Run]) -> ControlFlow<()> {
        self.counter(hart).kept_runs(hart, kept, runs)
    }

    fn tied_runs(&mut self, hart: HartId, tied: &TiedRuns<'_>) -> ControlFlow<()> {
        self.counter(hart).tied_runs(hart, tied)
    }

    fn looks_at_values(&self) -> bool {
        false
    }

    fn keeps(&self) -> bool {
        true
    }
}

/// Counts the runs of a piece of a trace, and adds them to those of the other pieces.
#[derive(Debug)]
pub struct PartCounter<'a> {
    counter: RunCounter<'a>,
    all: &'a Mutex<Vec<RunCount>>,
}

impl<'a> PartCounter<'a> {
    /// Nothing counted yet. `all` is the sum of all pieces.
    #[must_use]
    pub fn new(image: &'a Image, all: &'a Mutex<Vec<RunCount>>) -> PartCounter<'a> {
        let counter = RunCounter::new(image);
        PartCounter { counter, all }
    }
}

impl Consumer for PartCounter<'_> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        self.counter.event(hart, event)
    }

    fn runs(&mut self, hart: HartId, runs: &[Run]) -> ControlFlow<()> {
        self.counter.runs(hart, runs)
    }

    fn kept_runs(&mut self, hart: HartId, kept: Kept, runs: &[Run]) -> ControlFlow<()> {
        self.counter.kept_runs(hart, kept, runs)
    }

    /// Accesses do not matter.
    fn tied_runs(&mut self, hart: HartId, tied: &TiedRuns<'_>) -> ControlFlow<()> {
        self.kept_runs(hart, tied.kept(), tied.runs())
    }

    fn looks_at_values(&self) -> bool {
        false
    }

    fn keeps(&self) -> bool {
        true
    }
}

impl Gather for PartCounter<'_> {
    fn give(&mut self) -> ControlFlow<()> {
        // Sums do not depend on how the trace is divided.
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        add_runs(&mut all, &self.counter.take());
        ControlFlow::Continue(())
    }
}

/// How much of something there is, and how much of it ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// What ran.
    pub hit: u64,
    /// What there is.
    pub all: u64,
}

impl Share {
    /// In percent; 100 of nothing.
    #[must_use]
    pub fn percent(self) -> f64 {
        match self.all {
            0 => 100.0,
            all => self.hit as f64 * 100.0 / all as f64,
        }
    }

    fn count(&mut self, hit: bool) {
        self.all += 1;
        self.hit += u64::from(hit);
    }
}

impl AddAssign for Share {
    fn add_assign(&mut self, other: Share) {
        self.hit += other.hit;
        self.all += other.all;
    }
}

/// How much of a part of the program ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// Instructions.
    pub insns: Share,
    /// Outcomes of conditional branches: two each.
    pub branches: Share,
    /// Source lines.
    pub lines: Share,
    /// Functions.
    pub functions: Share,
}

/// How often a conditional branch went each way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BranchCount {
    /// It went on.
    pub not_taken: u64,
    /// It jumped.
    pub taken: u64,
}

impl BranchCount {
    /// How often it was executed.
    #[must_use]
    pub const fn all(self) -> u64 {
        self.not_taken + self.taken
    }

    /// Its outcomes that happened.
    #[must_use]
    pub const fn share(self) -> Share {
        Share {
            hit: (self.not_taken > 0) as u64 + (self.taken > 0) as u64,
            all: 2,
        }
    }
}

/// A source line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineCoverage {
    /// How often the instruction of it that ran most often did.
    pub count: u64,
    /// Its instructions.
    pub insns: Share,
    /// Its branches, by address.
    pub branches: Vec<(u64, BranchCount)>,
}

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionCoverage {
    /// Which.
    pub function: FunctionId,
    /// How often its first instruction ran.
    pub count: u64,
    /// How much of it ran.
    pub insns: Share,
    /// The outcomes of its branches.
    pub branches: Share,
}

/// The coverage of a program: all its code, executed or not.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    /// Every instruction of a function, and every other that ran: how often.
    pub insns: BTreeMap<u64, u64>,
    /// Every conditional branch among them.
    pub branches: BTreeMap<u64, BranchCount>,
    /// Every function with a symbol.
    pub functions: Vec<FunctionCoverage>,
    /// Every source line with code, by file and number.
    pub files: BTreeMap<String, BTreeMap<u32, LineCoverage>>,
}

/// Counts the branch that a run ends with, if it is one.
pub(crate) fn count_branch(branches: &mut BTreeMap<u64, BranchCount>, counted: &RunCount) {
    let RunCount { run, count, .. } = counted;
    match run.exit {
        Exit::Taken => branches.entry(run.source()).or_default().taken += count,
        Exit::NotTaken => branches.entry(run.source()).or_default().not_taken += count,
        _ => {}
    }
}

impl Coverage {
    /// The coverage of the code in `image` by runs that were counted. Code of all
    /// spaces is added up by address.
    #[must_use]
    pub fn new(
        image: &Image,
        functions: &Functions,
        places: &Places<'_>,
        counts: &[RunCount],
    ) -> Coverage {
        let mut coverage = Coverage::default();
        for (start, end, _) in functions.ranges() {
            let code = image.insns(SpaceId::FIRST, start, end - start);
            for (pc, insn) in code.take_while(|(pc, _)| *pc < end) {
                coverage.insns.insert(pc, 0);
                if let Flow::Branch { .. } = Flow::of(insn.bits, insn.isa) {
                    coverage.branches.insert(pc, BranchCount::default());
                }
            }
        }
        for counted in counts {
            coverage.add(image, counted);
        }
        coverage.find_functions(functions);
        coverage.find_lines(places);
        coverage
    }

    fn add(&mut self, image: &Image, counted: &RunCount) {
        let run = &counted.run;
        let insns = image.insns(counted.space, run.start, run.insns.into());
        for (pc, _) in insns {
            *self.insns.entry(pc).or_default() += counted.count;
        }
        count_branch(&mut self.branches, counted);
    }

    fn find_functions(&mut self, functions: &Functions) {
        let mut found: BTreeMap<FunctionId, FunctionCoverage> = BTreeMap::new();
        for (start, end, function) in functions.ranges() {
            let first = functions.get(function).start;
            let all = found.entry(function).or_insert(FunctionCoverage {
                function,
                count: self.insns.get(&first).copied().unwrap_or(0),
                insns: Share::default(),
                branches: Share::default(),
            });
            for count in self.insns.range(start..end).map(|(_, count)| *count) {
                all.insns.count(count > 0);
            }
            for branch in self.branches.range(start..end).map(|(_, branch)| *branch) {
                all.branches += branch.share();
            }
        }
        self.functions = found.into_values().collect();
    }

    fn find_lines(&mut self, places: &Places<'_>) {
        let (Some(low), Some(high)) = (
            self.insns.first_key_value().map(|(pc, _)| *pc),
            self.insns.last_key_value().map(|(pc, _)| *pc),
        ) else {
            return;
        };
        let ranges = places.line_ranges(low, high.saturating_add(1));
        for &(start, end, line) in ranges.iter() {
            for (&pc, &count) in self.insns.range(start..end) {
                let file = self.files.entry(line.file.to_owned()).or_default();
                let found = file.entry(line.line).or_default();
                found.count = count.max(found.count);
                found.insns.count(count > 0);
                if let Some(branch) = self.branches.get(&pc) {
                    found.branches.push((pc, *branch));
                }
            }
        }
    }

    /// How much of everything ran.
    #[must_use]
    pub fn shares(&self) -> Shares {
        let mut all = Shares::default();
        self.insns.values().for_each(|&n| all.insns.count(n > 0));
        for branch in self.branches.values() {
            all.branches += branch.share();
        }
        for function in &self.functions {
            all.functions.count(function.insns.hit > 0);
        }
        let lines = self.files.values().flat_map(BTreeMap::values);
        lines.for_each(|line| all.lines.count(line.count > 0));
        all
    }

    /// How much of a file ran; functions are not counted.
    #[must_use]
    pub fn shares_of(lines: &BTreeMap<u32, LineCoverage>) -> Shares {
        let mut all = Shares::default();
        for line in lines.values() {
            all.lines.count(line.count > 0);
            all.insns += line.insns;
            for (_, branch) in &line.branches {
                all.branches += branch.share();
            }
        }
        all
    }
}

/// Adds counts of another trace of the same program.
pub fn add_runs(all: &mut Vec<RunCount>, more: &[RunCount]) {
    add_counts(all, more);
}

#[cfg(test)]
mod tests {
    use super::*;
    use hartrace_isa::Isa;

    /// beq +8; nop; nop; ret, as function `f`; nop; ret as `g`.
    fn program() -> (Image, Functions) {
        let code = [0x0000_0463u32, 0x13, 0x13, 0x0000_8067, 0x13, 0x0000_8067];
        let code: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut image = Image::new();
        image.add_raw(SpaceId::FIRST, 0x1000, &code, Isa::RV64GC);
        let functions = Functions::testing(&[(0x1000, 0x1010, "f"), (0x1010, 0x1018, "g")]);
        (image, functions)
    }

    fn run(start: u64, insns: u32, exit: Exit, next: u64) -> Run {
        Run {
            start,
            end: start + 4 * u64::from(insns),
            next,
            insns,
            exit,
            last: 4,
        }
    }

    fn counted(runs: &[Run]) -> Vec<RunCount> {
        let (image, _) = program();
        let mut counter = RunCounter::new(&image);
        let _ = counter.runs(HartId(0), runs);
        counter.take()
    }

    #[test]
    fn what_never_ran_is_there() {
        let (image, functions) = program();
        let places = Places::new();
        let taken = run(0x1000, 1, Exit::Taken, 0x1008);
        let rest = run(0x1008, 2, Exit::Return, 0x2000);
        let mut counts = counted(&[taken, rest, taken, rest]);
        let coverage = Coverage::new(&image, &functions, &places, &counts);
        let insns: Vec<u64> = coverage.insns.values().copied().collect();
        assert_eq!(insns, [2, 0, 2, 2, 0, 0]);
        let branch = coverage.branches[&0x1000];
        assert_eq!((branch.taken, branch.not_taken), (2, 0));
        let shares = coverage.shares();
        assert_eq!(shares.insns, Share { hit: 3, all: 6 });
        assert_eq!(shares.branches, Share { hit: 1, all: 2 });
        assert_eq!(shares.functions, Share { hit: 1, all: 2 });
        assert_eq!(
            (shares.lines.percent(), shares.insns.percent()),
            (100.0, 50.0)
        );
        // Another trace goes the other way.
        let other = run(0x1000, 1, Exit::NotTaken, 0x1004);
        let on = run(0x1004, 3, Exit::Return, 0x2000);
        add_runs(&mut counts, &counted(&[other, on, other, on, other, on]));
        let coverage = Coverage::new(&image, &functions, &places, &counts);
        let insns: Vec<u64> = coverage.insns.values().copied().collect();
        assert_eq!(insns, [5, 3, 5, 5, 0, 0]);
        assert_eq!(coverage.shares().branches, Share { hit: 2, all: 2 });
        assert_eq!(coverage.functions[0].count, 5);
    }

    /// The order of traces makes no difference.
    #[test]
    fn sums_do_not_depend_on_the_order() {
        let one = counted(&[run(0x1000, 1, Exit::Taken, 0x1008)]);
        let two = counted(&[
            run(0x1008, 2, Exit::Return, 0),
            run(0x1000, 1, Exit::Taken, 0x1008),
        ]);
        let (mut a, mut b) = (one.clone(), two.clone());
        add_runs(&mut a, &two);
        add_runs(&mut b, &one);
        assert_eq!(a, b);
        assert_eq!(a.iter().map(|r| r.count).collect::<Vec<_>>(), [2, 1]);
    }
}
