//! The cost of damage to a trace: bits flipped, ranges zeroed, dropped,
//! doubled.
//!
//! Only the neighbourhood of the damage is decoded again, from the sync message
//! before it to some sync message after it; the rest must be unchanged.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use hartrace_analyze::{Follower, Grouping};
use hartrace_flow::{Consumer, Decode, Event, HartId, Image, Observer, Port, PortConfig};

use super::pipe::feed;
use super::{Format, Recorded, Subjects};
use crate::generate::Random;

/// Instructions traced.
const INSNS: u64 = 3_000_000;

/// The instructions of a trace between two of its bytes.
#[derive(Debug, Default)]
struct Pcs {
    pcs: Vec<u64>,
    /// Gaps: how many instructions were given before, and how many of those
    /// nothing confirmed; and why.
    gaps: Vec<(usize, u64, &'static str)>,
    /// Something was reported that may be a loss.
    warned: bool,
    /// Instructions of harts that do not exist, and whether they have gaps: the source
    /// of a packet was damaged.
    stray: u64,
    stray_gap: bool,
}

struct Expand<'a> {
    image: &'a Image,
    out: Pcs,
    /// More than this is a runaway.
    most: usize,
}

impl Consumer for Expand<'_> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        match event {
            Event::Run(run) if hart != HartId(0) => self.out.stray += u64::from(run.insns),
            Event::Gap(_) if hart != HartId(0) => self.out.stray_gap = true,
            Event::Run(run) if self.out.pcs.len() < self.most => {
                let mut pc = run.start;
                for _ in 0..run.insns {
                    self.out.pcs.push(pc);
                    let code = self.image.fetch(hartrace_flow::SpaceId::FIRST, pc);
                    pc = pc.wrapping_add(code.map_or(2, |f| u64::from(f.len)));
                }
            }
            Event::Gap(gap) => {
                let at = self.out.pcs.len();
                self.out.gaps.push((at, gap.unconfirmed, gap.reason.code));
            }
            Event::Warning(warning) => self.out.warned |= warning.is_loss,
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// A trace and all that is known of it.
struct Trace<'p, F: Format> {
    name: &'static str,
    config: F::Config,
    bytes: Vec<u8>,
    /// Where sync messages are.
    syncs: Vec<Range<usize>>,
    /// Instructions before each of them.
    before: Vec<usize>,
    pcs: Vec<u64>,
    /// The call stacks at every [`KEPT`]th of them.
    stacks: Vec<Follower<'p>>,
}

/// Sync messages from one kept stack to the next.
const KEPT: usize = 8;

impl<'p, F: Subjects> Trace<'p, F> {
    fn new(
        name: &'static str,
        config: F::Config,
        program: &'p Recorded,
    ) -> Result<Trace<'p, F>, String> {
        let port = PortConfig {
            table: F::TABLE,
            ..PortConfig::new(program.isa)
        };
        let mut port = Port::new(port, F::encoder(&config, Vec::new())?);
        program.run(INSNS, &mut port, |_| false)?;
        port.finish();
        let bytes = F::into_out(port.into_sink());
        let points = F::sync_points(&config, &bytes);
        let mut syncs: Vec<_> = points.iter().map(|p| p.at..p.at).collect();
        let mut decoder = F::decoder(&config, &program.image)?;
        let mut out = Expand {
            image: &program.image,
            out: Pcs::default(),
            most: usize::MAX,
        };
        let grouping = Grouping::default();
        let stacks = Follower::new(&program.image, program.functions(), grouping, ());
        let (mut follow, mut stacks) = (stacks, Vec::new());
        let mut before = Vec::new();
        let mut at = 0;
        for (n, sync) in syncs.iter_mut().enumerate() {
            // The message itself tells the rest of the way to it.
            let len = F::first_len(&config, bytes.get(sync.start..).unwrap_or_default());
            sync.end = sync.start + len;
            let part = bytes.get(at..sync.end).unwrap_or_default();
            feed(&mut decoder, part, &mut Both(&mut out, &mut follow));
            at = sync.end;
            before.push(out.out.pcs.len());
            if n % KEPT == 0 {
                stacks.push(follow.clone());
            }
        }
        let rest = bytes.get(at..).unwrap_or_default();
        feed(&mut decoder, rest, &mut Both(&mut out, &mut follow));
        if follow.doubts().count > 0 {
            return Err(format!("{name}: doubts about a sound trace"));
        }
        Ok(Trace {
            name,
            config,
            bytes,
            syncs,
            before,
            pcs: out.out.pcs,
            stacks,
        })
    }

    /// Mean number of instructions between two syncs.
    fn interval(&self) -> f64 {
        self.pcs.len() as f64 / self.syncs.len().max(1) as f64
    }
}

/// What one fault cost.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    recovered: bool,
    lost: u64,
    /// Wrong and not counted as unconfirmed.
    wrong: u64,
    /// Something is wrong or missing, and no gap at all.
    silent: bool,
    /// Something is wrong, and no gap at all.
    invented: bool,
    /// The call stack contradicts it.
    doubted: bool,
}

/// A kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    Flip,
    Zero(usize),
    Drop(usize),
    Double(usize),
}

impl Damage {
    fn name(self) -> String {
        match self {
            Damage::Flip => "one bit flipped".into(),
            Damage::Zero(n) => format!("{n} bytes zeroed"),
            Damage::Drop(n) => format!("{n} bytes dropped"),
            Damage::Double(n) => format!("{n} bytes doubled"),
        }
    }

    const fn len(self) -> usize {
        match self {
            Damage::Flip => 1,
            Damage::Zero(n) | Damage::Drop(n) | Damage::Double(n) => n,
        }
    }
}

/// Sync messages after the damage that are decoded.
const BEHIND: usize = 4;

/// One fault at this byte. Gives what it cost and, for the table of causes, the
/// field that was hit.
fn fault<F: Format>(
    trace: &Trace<'_, F>,
    image: &Image,
    damage: Damage,
    at: usize,
    bit: u32,
) -> Option<Cost> {
    // One more, should the sync message itself be hit.
    let start = trace.syncs.partition_point(|s| s.start <= at);
    let start = start.checked_sub(2)?;
    let after = at + damage.len();
    let behind = trace.syncs.partition_point(|s| s.start < after);
    let end = trace.syncs.get(behind + BEHIND)?.end;
    let from = trace.syncs.get(start)?.start;
    let mut bytes = trace.bytes.get(from..end)?.to_vec();
    let at = at - from;
    let range = at..at + damage.len();
    match damage {
        Damage::Flip => *bytes.get_mut(at)? ^= 1 << bit,
        Damage::Zero(_) => bytes.get_mut(range)?.fill(0),
        Damage::Drop(_) => drop(bytes.drain(range)),
        Damage::Double(_) => {
            let twice = bytes.get(range.clone())?.to_vec();
            bytes.splice(range.end..range.end, twice);
        }
    }
    let truth = trace
        .pcs
        .get(*trace.before.get(start)?..*trace.before.get(behind + BEHIND)?)?;
    let mut out = Expand {
        image,
        out: Pcs::default(),
        most: truth.len() * 4 + 100_000,
    };
    let mut decoder = F::decoder(&trace.config, image).ok()?;
    feed(&mut decoder, &bytes, &mut out);
    // Only what is missing: after the last sync nothing is compared, and a stream that
    // is cut off here warns of its end.
    let warned = out.out.warned;
    out.most = 0;
    decoder.finish(&mut out);
    out.out.warned = warned;
    // After the second sync everything must be as it was, or a later one.
    let anchor = |n: usize| Some(*trace.before.get(n)? - *trace.before.get(start)?);
    let recovered = anchor(behind + 1 + F::late(&trace.config))?;
    Some(cost(truth, &out.out, recovered))
}

/// Compares what was given with what was done: equal in front, then anything,
/// then equal to the end. `recovered` is where the sync after the damage stands from
/// which on everything must be right.
fn cost(truth: &[u64], given: &Pcs, recovered: usize) -> Cost {
    let equal = |(a, b): &(&u64, &u64)| a == b;
    // The end first: in a loop both ways of counting fit, and the damage is
    // where it was noticed at the latest.
    let last = given.gaps.last().map_or(0, |g| g.0);
    let ends = truth.iter().rev().zip(given.pcs.iter().rev());
    let ends = ends.take(given.pcs.len() - last);
    let back = ends.take_while(equal).count();
    let starts = truth.iter().zip(&given.pcs);
    let most = truth.len().min(given.pcs.len()) - back;
    let front = starts.take(most).take_while(equal).count();
    let unconfirmed: u64 = given.gaps.iter().map(|g| g.1).sum();
    let wrong = (given.pcs.len() - front - back) as u64 + given.stray;
    let lost = (truth.len() - front - back) as u64;
    let noticed = !given.gaps.is_empty() || given.warned || given.stray_gap;
    Cost {
        recovered: truth.len() - back <= recovered,
        lost,
        wrong: wrong.saturating_sub(unconfirmed),
        silent: !noticed && wrong + lost > 0,
        invented: !noticed && wrong > 0,
        doubted: false,
    }
}

/// Whether the call stack contradicts what is decoded around a flipped bit.
fn doubted<F: Format>(trace: &Trace<'_, F>, image: &Image, at: usize, bit: u32) -> Option<bool> {
    let behind = trace.syncs.partition_point(|s| s.start <= at);
    let start = behind.checked_sub(2)? / KEPT;
    let from = trace.syncs.get(start * KEPT)?.start;
    let end = trace.syncs.get(behind + BEHIND)?.end;
    let mut bytes = trace.bytes.get(from..end)?.to_vec();
    *bytes.get_mut(at - from)? ^= 1 << bit;
    let mut out = trace.stacks.get(start)?.clone();
    let clean = out.doubts().count;
    let mut decoder = F::decoder(&trace.config, image).ok()?;
    feed(&mut decoder, &bytes, &mut out);
    Some(out.doubts().count > clean)
}

/// Gives events to two consumers.
struct Both<'a, A, B>(&'a mut A, &'a mut B);

impl<A: Consumer, B: Consumer> Consumer for Both<'_, A, B> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        let _ = self.0.event(hart, event);
        self.1.event(hart, event)
    }
}

fn show<F: Subjects>(
    trace: &Trace<'_, F>,
    damage: Damage,
    costs: &mut [Cost],
    panics: u64,
    seconds: f64,
) {
    let r = trace.interval();
    let trials = costs.len().max(1) as f64;
    let of = |costs: &[Cost], part: f64| -> Cost {
        let at = ((costs.len() as f64 * part) as usize).min(costs.len().saturating_sub(1));
        costs.get(at).copied().unwrap_or_default()
    };
    costs.sort_by_key(|c| c.lost);
    let lost = [0.5, 0.99, 1.0].map(|p| of(costs, p).lost as f64 / r);
    costs.sort_by_key(|c| c.wrong);
    let wrong = [0.5, 0.9, 1.0].map(|p| of(costs, p).wrong);
    let recovered = costs.iter().filter(|c| c.recovered).count();
    let silent = costs.iter().filter(|c| c.silent).count() as f64 * 100.0 / trials;
    let invented = costs.iter().filter(|c| c.invented).count() as f64 * 100.0 / trials;
    let marked = costs.iter().filter(|c| c.doubted).count() as f64 * 100.0 / trials;
    println!(
        "{:<9} {:<20} {:>7} {panics:>6} {recovered:>9} {:>6.2} {:>6.2} {:>6.2} {:>6} {:>6} {:>7} {invented:>6.2} % {silent:>6.2} % {marked:>6.2} % {seconds:>6.1}",
        trace.name,
        damage.name(),
        costs.len(),
        lost[0],
        lost[1],
        lost[2],
        wrong[0],
        wrong[1],
        wrong[2]
    );
}

fn traces<F: Subjects>(program: &Recorded) -> Result<Vec<Trace<'_, F>>, String> {
    F::damaged(program.isa)
        .into_iter()
        .map(|(name, config)| Trace::new(name, config, program))
        .collect()
}

/// `…-corruption [TRIALS]`: what faults cost.
///
/// # Errors
///
/// A panic, or a fault that was not recovered from.
pub fn command<F: Subjects>(args: &[String]) -> Result<(), String> {
    let trials: u64 = args.first().map_or(Ok(100_000), |a| {
        a.parse().map_err(|_| format!("not a number: {a}"))
    })?;
    let name = "interpreter-rv64gc";
    let number = |i: usize| args.get(i).and_then(|a| a.parse().ok());
    let one = number(1).zip(number(2));
    let program = Recorded::named(name)?;
    let traces = traces::<F>(&program)?;
    for trace in &traces {
        println!(
            "{}: {} instructions of {name}, {} bytes, {} syncs: R = {:.0} instructions",
            trace.name,
            trace.pcs.len(),
            trace.bytes.len(),
            trace.syncs.len(),
            trace.interval()
        );
    }
    if let Some((at, bit)) = one {
        for trace in &traces {
            let cost = fault(trace, &program.image, Damage::Flip, at, bit as u32);
            let marked = doubted(trace, &program.image, at, bit as u32);
            let field = field(trace, at, bit as u32);
            println!("{} {field} {cost:?} marked: {marked:?}", trace.name);
        }
        return Ok(());
    }
    println!(
        "trace     damage                trials panics recovered lost/R: p50 p99 max  wrong: p50 p90 max  wrong, no gap; or missing; of these marked  seconds"
    );
    let mut bad = 0;
    for damage in [
        Damage::Flip,
        Damage::Zero(64),
        Damage::Zero(4096),
        Damage::Drop(64),
        Damage::Drop(4096),
        Damage::Double(64),
        Damage::Double(4096),
    ] {
        for trace in &traces {
            let trials = match damage {
                Damage::Flip => trials / 3,
                _ => trials / 50,
            };
            let found = bench(trace, &program, damage, trials);
            bad += found.bad;
            // E-Trace has no other means to show a wrong branch.
            if damage == Damage::Flip && F::NAME == "etrace" && found.marked * 2 < found.silent {
                println!("less than half of the silent flips are marked");
                bad += 1;
            }
        }
    }
    match bad {
        0 => Ok(()),
        _ => Err(format!(
            "{bad} faults were not recovered from, or not noticed"
        )),
    }
}

/// What a bench found.
struct Found {
    /// Faults that went wrong.
    bad: u64,
    /// Faults without a gap, and those of them that contradict the call stack.
    silent: usize,
    marked: usize,
}

fn bench<F: Subjects>(
    trace: &Trace<'_, F>,
    program: &Recorded,
    damage: Damage,
    trials: u64,
) -> Found {
    let start = Instant::now();
    let mut r = Random::new(trials ^ damage.len() as u64);
    let mut costs = Vec::new();
    let mut panics = 0;
    let mut fields: BTreeMap<String, (u64, u64, u64, u64)> = BTreeMap::new();
    for _ in 0..trials {
        let at = r.below(trace.bytes.len() as u64) as usize;
        let bit = r.below32(8);
        let run = || fault(trace, &program.image, damage, at, bit);
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Some(mut cost)) => {
                if cost.silent && damage == Damage::Flip {
                    cost.doubted = doubted(trace, &program.image, at, bit).unwrap_or(false);
                }
                if damage == Damage::Flip {
                    let name = field(trace, at, bit);
                    let entry = fields.entry(name).or_default();
                    entry.0 += 1;
                    entry.1 += u64::from(cost.wrong > 32);
                    entry.2 += u64::from(cost.silent);
                    entry.3 += u64::from(cost.doubted);
                }
                if !cost.recovered {
                    println!("not recovered: {damage:?}, byte {at:#x}, bit {bit}");
                }
                costs.push(cost);
            }
            Ok(None) => {} // too close to the end
            Err(_) => panics += 1,
        }
    }
    let lost = costs.iter().filter(|c| !c.recovered).count() as u64;
    show(
        trace,
        damage,
        &mut costs,
        panics,
        start.elapsed().as_secs_f64(),
    );
    let mut fields: Vec<_> = fields.into_iter().filter(|f| f.1.1 + f.1.2 > 0).collect();
    fields.sort_by_key(|f| std::cmp::Reverse(f.1.1 + f.1.2));
    for (field, (hits, wrong, silent, marked)) in fields.iter().take(12) {
        println!(
            "    {field:<44} {hits:>6} hits {wrong:>5} with more than 32 wrong {silent:>5} without a gap {marked:>5} marked"
        );
    }
    let silent = costs.iter().filter(|c| c.silent).count();
    let marked = costs.iter().filter(|c| c.doubted).count();
    Found {
        bad: lost + panics,
        silent,
        marked,
    }
}

/// Which field of which message a bit belongs to.
fn field<F: Format>(trace: &Trace<'_, F>, at: usize, bit: u32) -> String {
    let start = trace.syncs.partition_point(|s| s.start <= at);
    let start = start.saturating_sub(1);
    let from = trace.syncs.get(start).map_or(0, |s| s.start);
    let bytes = trace.bytes.get(from..).unwrap_or_default();
    F::field(&trace.config, bytes, at.wrapping_sub(from), bit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etrace::ETrace;
    use crate::ntrace::NTrace;

    fn every_fault_is_recovered_from<F: Subjects>() {
        let program = Recorded::named("recursion-rv64gc").unwrap();
        for trace in traces::<F>(&program).unwrap() {
            for damage in [
                Damage::Flip,
                Damage::Drop(64),
                Damage::Double(64),
                Damage::Zero(64),
            ] {
                assert_eq!(bench(&trace, &program, damage, 40).bad, 0);
            }
        }
    }

    #[test]
    fn ntrace() {
        every_fault_is_recovered_from::<NTrace>();
    }

    #[test]
    fn etrace() {
        every_fault_is_recovered_from::<ETrace>();
    }
}
