//! The cost of damage to a trace: bits flipped, bytes dropped, inserted and
//! zeroed. Only the neighbourhood of the damage is read again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use hartrace_tandem::{Config, Group, Next, Problem, Reader, Style};

use super::{Subject, number};
use crate::generate::Random;

/// Instructions traced.
const INSNS: u64 = 100_000;
/// Groups before the damage that are read, and after it.
const BEFORE: usize = 20;
const BEHIND: usize = 400;
/// Groups that may be lost to one fault beyond those it hits; a search looks
/// at so many before it trusts what it finds.
const MOST: usize = 100;

/// A kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    Flip,
    Zero(usize),
    Drop(usize),
    Insert(usize),
}

impl Damage {
    const ALL: [Damage; 8] = [
        Damage::Flip,
        Damage::Zero(1),
        Damage::Zero(64),
        Damage::Drop(1),
        Damage::Drop(64),
        Damage::Insert(1),
        Damage::Insert(64),
        Damage::Drop(1000),
    ];

    fn name(self) -> String {
        match self {
            Damage::Flip => "one bit flipped".into(),
            Damage::Zero(n) => format!("{n} bytes zeroed"),
            Damage::Drop(n) => format!("{n} bytes dropped"),
            Damage::Insert(n) => format!("{n} bytes inserted"),
        }
    }

    /// Damages bytes at a place; gives how many of the old ones are hit.
    fn apply(self, bytes: &mut Vec<u8>, at: usize, random: &mut Random) -> usize {
        match self {
            Damage::Flip => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
                1
            }
            Damage::Zero(n) => {
                let end = (at + n).min(bytes.len());
                bytes.get_mut(at..end).unwrap_or_default().fill(0);
                n
            }
            Damage::Drop(n) => {
                let end = (at + n).min(bytes.len());
                bytes.drain(at..end);
                n
            }
            Damage::Insert(n) => {
                let new: Vec<u8> = (0..n).map(|_| random.draw() as u8).collect();
                bytes.splice(at..at, new);
                0
            }
        }
    }
}

/// What a reader gave.
#[derive(Debug, Default)]
struct Given {
    groups: Vec<Group>,
    problems: Vec<Problem>,
    resumed: usize,
}

fn read(config: &Config, bytes: &[u8]) -> Result<Given, String> {
    let mut reader = Reader::new(config.clone());
    let mut rest = bytes;
    let mut given = Given::default();
    loop {
        let next = match rest.is_empty() {
            true => reader.finish(),
            false => reader.next(&mut rest),
        };
        match next {
            Next::More if rest.is_empty() && reader.offset() == bytes.len() as u64 => break,
            Next::More => {}
            Next::Group => {
                let mut group = reader.group().clone();
                // Where it is may well have changed.
                (group.at, group.number) = (0, 0);
                given.groups.push(group);
            }
            Next::Problem(problem) => given.problems.push(problem),
            Next::Resumed(_) => given.resumed += 1,
        }
    }
    let bad = |p: &&Problem| p.at > bytes.len() as u64;
    match given.problems.iter().find(bad) {
        Some(problem) => Err(format!("{problem:?} in {} bytes", bytes.len())),
        None => Ok(given),
    }
}

/// What one fault cost, in groups.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    lost: usize,
    wrong: usize,
    told: bool,
    recovered: bool,
}

/// A trace and where its groups start.
struct Trace {
    name: &'static str,
    config: Config,
    bytes: Vec<u8>,
    starts: Vec<usize>,
}

impl Trace {
    fn all(subject: &Subject) -> Result<Vec<Trace>, String> {
        let styles = [
            ("full", Style::default()),
            ("compact", Style::compact()),
            ("bluespec", Style::bluespec()),
        ];
        let make = |(name, style)| {
            let mut config = Config::new(subject.isa()?, true);
            config.style = style;
            let bytes = subject.trace(&config, INSNS)?;
            let mut reader = Reader::new(config.clone());
            let (mut rest, mut starts) = (&bytes[..], Vec::new());
            while reader.next(&mut rest) == Next::Group {
                starts.push(reader.group().at as usize);
            }
            Ok(Trace {
                name,
                config,
                bytes,
                starts,
            })
        };
        styles.into_iter().map(make).collect()
    }

    /// One fault somewhere.
    fn fault(&self, damage: Damage, random: &mut Random) -> Result<Cost, String> {
        let groups = self.starts.len() - BEFORE - BEHIND - 1;
        let first = random.below(groups as u64) as usize;
        let place = |n: usize| self.starts.get(n).copied().unwrap_or(self.bytes.len());
        let (from, to) = (place(first), place(first + BEFORE + BEHIND));
        let window = self.bytes.get(from..to).unwrap_or_default();
        let truth = read(&self.config, window)?.groups;
        let group = first + BEFORE;
        let at = place(group) + random.below((place(group + 1) - place(group)) as u64) as usize;
        let mut bytes = window.to_vec();
        let len = damage.apply(&mut bytes, at - from, random);
        let behind = self.starts.partition_point(|&s| s < at + len);
        let given = read(&self.config, &bytes)?;
        let same = |(a, b): &(&Group, &Group)| a == b;
        let back = truth.iter().rev().zip(given.groups.iter().rev());
        let back = back.take_while(same).count();
        let most = truth.len().min(given.groups.len()) - back;
        let front = truth.iter().zip(&given.groups).take(most);
        let front = front.take_while(same).count();
        let hit = behind.saturating_sub(group);
        let lost = truth.len() - front - back;
        Ok(Cost {
            lost,
            wrong: given.groups.len() - front - back,
            told: !given.problems.is_empty(),
            recovered: lost <= hit + MOST,
        })
    }
}

fn bench(trace: &Trace, damage: Damage, trials: u64, seed: u64) -> Result<u64, String> {
    let start = Instant::now();
    let mut random = Random::new(seed ^ trials);
    let mut costs = Vec::new();
    for _ in 0..trials {
        let seed = random.draw();
        let run = || trace.fault(damage, &mut Random::new(seed));
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(cost) => {
                let cost = cost.map_err(|e| format!("{damage:?} {seed:#x}: {e}"))?;
                if !cost.recovered {
                    println!(
                        "not recovered: {} {damage:?} {seed:#x} {cost:?}",
                        trace.name
                    );
                }
                costs.push(cost);
            }
            Err(_) => return Err(format!("{damage:?} {seed:#x}: panicked")),
        }
    }
    let failed = costs.iter().filter(|c| !c.recovered).count() as u64;
    let spread = |of: fn(&Cost) -> usize| {
        let mut all: Vec<usize> = costs.iter().map(of).collect();
        all.sort_unstable();
        [0.5, 0.99, 1.0].map(|part| {
            let at = (all.len() as f64 * part) as usize;
            all.get(at.min(all.len().saturating_sub(1)))
                .copied()
                .unwrap_or(0)
        })
    };
    let (lost, wrong) = (spread(|c| c.lost), spread(|c| c.wrong));
    let told = costs.iter().filter(|c| c.told).count() as f64 * 100.0 / trials.max(1) as f64;
    println!(
        "{:<9} {:<20} {trials:>7} {failed:>6} {told:>6.1} % {:>6} {:>5} {:>5} {:>6} {:>5} {:>5} {:>6.1}",
        trace.name,
        damage.name(),
        lost[0],
        lost[1],
        lost[2],
        wrong[0],
        wrong[1],
        wrong[2],
        start.elapsed().as_secs_f64()
    );
    Ok(failed)
}

/// Instructions of a trace that is verified with damage in it.
const VERIFIED: u64 = 20_000;
/// What one of them may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Damaged traces through the verifier: it comes to the end, and says where
/// the damage is.
fn verified(subject: &Subject, trials: u64, seed: u64) -> Result<(), String> {
    let config = Config::new(subject.isa()?, true);
    let whole = subject.trace(&config, VERIFIED)?;
    let mut random = Random::new(seed);
    let (mut told, mut mismatches, mut clean) = (0, 0, 0);
    let start = Instant::now();
    for trial in 0..trials {
        let damage = random.one_of(Damage::ALL);
        let at = random.below(whole.len() as u64) as usize;
        let mut bytes = whole.clone();
        damage.apply(&mut bytes, at, &mut random);
        let before = Instant::now();
        let heard = subject.verify(&config, &bytes, 1000)?;
        let blame = |what: &str| format!("{damage:?} at {at:#x} (trial {trial}): {what}");
        if before.elapsed() > PATIENCE {
            return Err(blame("too slow"));
        }
        told += u64::from(!heard.problems.is_empty());
        mismatches += heard.mismatches.len() as u64;
        clean += u64::from(heard.problems.is_empty() && heard.mismatches.is_empty());
        // What lies before the damage is right.
        let early = |p: &&Problem| p.at + 64 < at as u64;
        if let Some(problem) = heard.problems.iter().find(early) {
            return Err(blame(&format!("{problem:?}")));
        }
    }
    println!(
        "verified with damage: {trials}, {told} with problems, {mismatches} mismatches, {clean} without a word; {:.1} s",
        start.elapsed().as_secs_f64()
    );
    Ok(())
}

/// `tandem-corruption [TRIALS] [SEED]`: what faults cost.
///
/// # Errors
///
/// A panic, a place outside of the trace, a fault that was not recovered from.
pub fn command(args: &[String]) -> Result<(), String> {
    let (trials, seed) = (number(args, 0, 50_000)?, number(args, 1, 1)?);
    let subject = Subject::named("interpreter-rv64gc")?;
    println!("groups lost, and given that were none");
    println!(
        "trace     damage                trials failed     told   lost   p99   max  wrong   p99   max seconds"
    );
    let mut failed = 0;
    let traces = Trace::all(&subject)?;
    for trace in &traces {
        for damage in Damage::ALL {
            failed += bench(trace, damage, trials / 24, seed)?;
        }
    }
    verified(&subject, trials / 100, seed)?;
    match failed {
        0 => Ok(()),
        _ => Err(format!("{failed} faults were not recovered from")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_recovered_from() {
        let subject = Subject::named("recursion-rv32gc").unwrap();
        for trace in Trace::all(&subject).unwrap() {
            for damage in Damage::ALL {
                assert_eq!(bench(&trace, damage, 30, 7).unwrap(), 0);
            }
        }
        verified(&subject, 5, 7).unwrap();
    }
}
