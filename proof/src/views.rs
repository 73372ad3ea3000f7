//! Views against the hart: what is made of a decoded trace equals what is counted
//! directly from steps, for every program and every format.

mod recordings;
pub mod speed;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use hartrace_analyze::{
    Entered, Entry, Functions, Grouping, NodeId, Profile, Profiler, StackSink, What,
};
use hartrace_capture::config::Config;
use hartrace_capture::trace::{Decoder, Format, Settings, TraceWriter, WriteOptions};
use hartrace_flow::filter::FilterConfig;
use hartrace_flow::{
    Consumer, Decode as _, Effects, Event, Exit, HartId, Kept, Observer, Run, SpaceId, Step,
    StepEvents, Wants,
};
use hartrace_isa::{Flow, Isa, Link};

use crate::trace::{Recorded, programs};

/// Counts made step by step, without runs, stacks or caches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Naive {
    isa: Isa,
    /// How often each instruction was executed.
    pub insns: BTreeMap<u64, u64>,
    /// How often each branch was not taken, and taken.
    pub branches: BTreeMap<u64, (u64, u64)>,
    /// Instructions that swap co-routines.
    pub swaps: BTreeSet<u64>,
    /// Calls, by the instruction and its target.
    pub calls: BTreeMap<(u64, u64), u64>,
}

impl Naive {
    /// Nothing counted yet.
    #[must_use]
    pub fn new(isa: Isa) -> Naive {
        Naive {
            isa,
            insns: BTreeMap::new(),
            branches: BTreeMap::new(),
            swaps: BTreeSet::new(),
            calls: BTreeMap::new(),
        }
    }
}

impl Observer for Naive {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, _: HartId, step: &Step, _: &Effects) {
        let Step::Insn(insn) = step else { return };
        *self.insns.entry(insn.pc).or_default() += 1;
        let flow = Flow::of_retired(insn.bits, self.isa);
        let elsewhere = insn.next != self.isa.xlen().wrap(insn.end());
        if let Flow::Branch { .. } = flow {
            let (not, taken) = self.branches.entry(insn.pc).or_default();
            *(if elsewhere { taken } else { not }) += 1;
        }
        // A swap of co-routines may be a call or not.
        if flow.link() == Some(Link::Swap) {
            self.swaps.insert(insn.pc);
        }
        if flow.link() == Some(Link::Call) && elsewhere {
            *self.calls.entry((insn.pc, insn.next)).or_default() += 1;
        }
    }
}

/// Calls that a stack followed, by the instruction and the start of the function.
#[derive(Clone, Debug, Default)]
pub struct Calls(BTreeMap<(u64, NodeFunction), u64>);

type NodeFunction = hartrace_analyze::FunctionId;

impl StackSink for Calls {
    fn entered(&mut self, _: HartId, call: &Entered) {
        if call.by == Entry::Call {
            *self.0.entry((call.site, call.function)).or_default() += 1;
        }
    }
}

/// Passes events on, and keeps what was missing.
struct Whole<C> {
    inner: C,
    gaps: u64,
}

impl<C: Consumer> Consumer for Whole<C> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        self.gaps += u64::from(matches!(event, Event::Gap(_)));
        self.inner.event(hart, event)
    }

    fn runs(&mut self, hart: HartId, runs: &[Run]) -> ControlFlow<()> {
        self.inner.runs(hart, runs)
    }

    fn kept_runs(&mut self, hart: HartId, kept: Kept, runs: &[Run]) -> ControlFlow<()> {
        self.inner.kept_runs(hart, kept, runs)
    }

    fn keeps(&self) -> bool {
        self.inner.keeps()
    }
}

/// The profile of a program from its steps, and that of each format; all compared.
#[derive(Debug)]
pub struct Compared {
    /// Instructions in all of them.
    pub insns: u64,
    /// Call paths.
    pub paths: usize,
    /// Formats.
    pub formats: usize,
}

/// Runs a program for so many instructions and compares everything, with what is kept for
/// the profiles of other tools if that is wanted, too.
///
/// # Errors
///
/// What differs.
pub fn compare(program: &Recorded, limit: u64, recordings: bool) -> Result<Compared, String> {
    let functions = program.functions();
    let isa = program.isa;
    let config = Config::defaults();
    let mut naive = Naive::new(isa);
    let profiler = || {
        let calls = Calls::default();
        Profiler::new(
            &program.image,
            functions.clone(),
            Grouping::default(),
            calls,
        )
    };
    let mut direct = StepEvents::new(isa, profiler());
    let mut traces: Vec<(Settings, Vec<u8>)> = Vec::new();
    for format in Format::ALL {
        let settings = format
            .settings(&config, isa.xlen())
            .map_err(|e| e.to_string())?;
        traces.push((settings, Vec::new()));
    }
    {
        let mut writers = Vec::new();
        for (settings, bytes) in &mut traces {
            let port = settings.port(config.ingress.clone()).port(isa);
            let put = Box::new(|chunk: &[u8]| bytes.extend_from_slice(chunk));
            let options = WriteOptions::default();
            let filter = FilterConfig::default();
            let writer = TraceWriter::new(settings, port, &filter, options, put);
            writers.push(writer.map_err(|e| e.to_string())?);
        }
        let mut all = UntilIdle {
            program,
            inner: ((&mut naive, &mut direct), Several(writers)),
            idle: false,
        };
        program.run(limit, &mut all, |all| all.idle)?;
        all.inner.finish();
    }
    let (truth, calls) = direct.into_inner().finish();
    let insns = counts(&truth, program);
    differ("steps", &naive.insns, &insns)?;
    differ("steps", &naive.branches, &branches(&truth))?;
    check_calls(&naive, &calls, &functions, &truth)?;
    let paths = paths(&truth);
    for (settings, bytes) in &traces {
        let name = settings.format().name();
        let mut decoder = Decoder::new(settings, &program.image).map_err(|e| e.to_string())?;
        let mut whole = Whole {
            inner: profiler(),
            gaps: 0,
        };
        decoder.feed(bytes, &mut whole);
        decoder.finish(&mut whole);
        if whole.gaps > 0 {
            return Err(format!("{name}: {} gaps", whole.gaps));
        }
        let (profile, _) = whole.inner.finish();
        if let Some((_, jump)) = profile.doubts.first.first() {
            let count = profile.doubts.count;
            return Err(format!(
                "{name}: {count} doubtful jumps, the first is {jump:x?}"
            ));
        }
        differ(name, &insns, &counts(&profile, program))?;
        differ(name, &naive.branches, &branches(&profile))?;
        differ(name, &paths, &self::paths(&profile))?;
        if recordings {
            recordings::check((program, settings, bytes), &naive, &paths)?;
        }
    }
    Ok(Compared {
        insns: truth.total().insns,
        paths: paths.len(),
        formats: traces.len(),
    })
}

/// Passes steps on until the program does nothing any more: a loop without a branch,
/// of which E-Trace does not report the number of iterations.
struct UntilIdle<'a, O> {
    program: &'a Recorded,
    inner: O,
    idle: bool,
}

impl<O: Observer> Observer for UntilIdle<'_, O> {
    const WANTS: Wants = O::WANTS;

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        if self.idle {
            return;
        }
        self.inner.step(hart, step, effects);
        if let Step::Insn(insn) = step
            && insn.next <= insn.pc
        {
            let image = &self.program.image;
            let body = image.insns(SpaceId::FIRST, insn.next, 16);
            let mut body = body.take_while(|(pc, _)| *pc < insn.pc);
            let plain = |bits: u32| Flow::of_retired(bits, self.program.isa).is_sequential();
            let is_jump = matches!(
                Flow::of_retired(insn.bits, self.program.isa),
                Flow::Jump { .. }
            );
            self.idle = is_jump && insn.pc - insn.next <= 64 && body.all(|(_, f)| plain(f.bits));
        }
    }
}

/// Steps to several writers at once.
struct Several<'a>(Vec<TraceWriter<'a>>);

impl Observer for Several<'_> {
    const WANTS: Wants = Wants::ALL;

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        for writer in &mut self.0 {
            writer.step(hart, step, effects);
        }
    }

    fn finish(&mut self) {
        self.0.iter_mut().for_each(Observer::finish);
    }
}

/// Executions of each instruction.
fn counts(profile: &Profile, program: &Recorded) -> BTreeMap<u64, u64> {
    let all = profile.instructions(&program.image);
    all.into_iter()
        .filter(|((space, _), _)| *space == SpaceId::FIRST)
        .map(|((_, pc), cost)| (pc, cost.insns))
        .collect()
}

/// How often each branch was not taken, and taken.
fn branches(profile: &Profile) -> BTreeMap<u64, (u64, u64)> {
    let mut all: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for counted in &profile.runs {
        match counted.run.exit {
            Exit::NotTaken => all.entry(counted.run.source()).or_default().0 += counted.count,
            Exit::Taken => all.entry(counted.run.source()).or_default().1 += counted.count,
            _ => {}
        }
    }
    all
}

/// Every call was followed, but for one that the run may have ended with.
fn check_calls(
    naive: &Naive,
    calls: &Calls,
    functions: &Functions,
    profile: &Profile,
) -> Result<(), String> {
    let mut expected: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for ((site, target), count) in &naive.calls {
        let function = functions
            .of(*target)
            .map_or(*target, |id| functions.get(id).start);
        *expected.entry((*site, function)).or_default() += count;
    }
    let mut found: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    let plain = calls.0.iter();
    for ((site, function), count) in plain.filter(|((site, _), _)| !naive.swaps.contains(site)) {
        let start = profile.functions.get(*function).start;
        *found.entry((*site, start)).or_default() += count;
    }
    let missing: u64 = expected
        .iter()
        .map(|(key, count)| count.abs_diff(found.get(key).copied().unwrap_or(0)))
        .sum();
    let extra = found
        .keys()
        .filter(|key| !expected.contains_key(key))
        .count();
    match missing <= 1 && extra == 0 {
        true => Ok(()),
        false => {
            let first = found.keys().find(|key| !expected.contains_key(key));
            Err(format!(
                "calls: {missing} counted otherwise, {extra} never made: {first:x?}"
            ))
        }
    }
}

/// Call paths by name with their own instructions and calls. Formats differ in how
/// much of a cause they report.
fn paths(profile: &Profile) -> BTreeMap<String, (u64, u64)> {
    let mut all: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let tree = &profile.tree;
    for (at, node) in tree.nodes().iter().enumerate().skip(1) {
        let mut names = Vec::new();
        let mut id = tree.id(at);
        while let Some(node) = tree.node(id).filter(|_| id != NodeId::ROOT) {
            names.push(match node.what {
                What::Function(id) => profile.functions.get(id).name.as_str(),
                What::Trap(_) => "trap",
                _ => "other",
            });
            id = node.parent;
        }
        names.reverse();
        let sum = all.entry(names.join(";")).or_default();
        sum.0 += node.own.insns;
        sum.1 += node.calls;
    }
    all
}

/// The first difference of two tables.
fn differ<K: Ord + std::fmt::Debug, V: PartialEq + std::fmt::Debug>(
    name: &str,
    expected: &BTreeMap<K, V>,
    found: &BTreeMap<K, V>,
) -> Result<(), String> {
    for (key, value) in expected {
        if found.get(key) != Some(value) {
            return Err(format!(
                "{name}: {key:x?}: {value:?} expected, {:?} found",
                found.get(key)
            ));
        }
    }
    match found.keys().find(|key| !expected.contains_key(key)) {
        Some(key) => Err(format!(
            "{name}: {key:x?} not expected, {:?} found",
            found.get(key)
        )),
        None => Ok(()),
    }
}

/// `views [INSNS [NAME]]`: every program, or those whose names begin so, up to so many
/// instructions of each.
///
/// # Errors
///
/// The first difference.
#[allow(clippy::print_stdout)]
pub fn command(args: &[String]) -> Result<(), String> {
    let limit = match args.first() {
        Some(text) => text.parse().map_err(|_| format!("no number: {text}"))?,
        None => 20_000_000,
    };
    let mut insns = 0;
    let only = args.get(1);
    for path in programs()? {
        let program = Recorded::read(&path)?;
        if only.is_some_and(|only| !program.name.starts_with(only.as_str())) {
            continue;
        }
        let compared =
            compare(&program, limit, true).map_err(|e| format!("{}: {e}", program.name))?;
        println!(
            "{:<22} {:>10} instructions {:>6} call paths, {} formats",
            program.name, compared.insns, compared.paths, compared.formats
        );
        insns += compared.insns;
    }
    println!("equal, and no jump is doubtful: {insns} instructions in each format");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The small programs, each for a while; `hartrace-proof views` takes them all.
    #[test]
    fn views_of_traces_are_those_of_the_run() {
        for name in [
            "recursion-rv64gc",
            "callbacks-rv32gc",
            "longjmp-rv64gc",
            "scheduler-rv32gc",
            "exceptions-rv32gc",
            "timer-rv32gc",
            "modes-rv32gc",
            "sieve-rv32imac",
        ] {
            let program = Recorded::named(name).unwrap();
            let others = matches!(name, "scheduler-rv32gc" | "modes-rv32gc");
            let compared = compare(&program, 60_000, others);
            let compared = compared.unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(compared.insns > 1000 && compared.paths > 5);
        }
    }
}
