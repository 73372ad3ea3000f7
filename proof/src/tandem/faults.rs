//! Fault injection: each fault must be found in its own group, and nothing may
//! be reported after it.
//!
//! A fault of the *trace* is one wrong group of a correct core: later groups
//! have the right values. A fault of the *core* is permanent: the trace records
//! what the core did, and everything continues from there.

mod core;
mod trace;

use std::collections::BTreeMap;
use std::time::Instant;

use hartrace_tandem::verify::Field;
use hartrace_tandem::{Addresses, Config, Style};

use self::trace::Tape;
use super::subject::LENGTH;
use super::{Heard, Subject, number};
use crate::generate::Random;

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A bit of an integer register.
    Integer,
    /// A bit of a floating-point register.
    Float,
    /// A register that changed and is not reported.
    LostWrite,
    /// A register that is reported and did not change.
    ExtraWrite,
    /// A value in another register than its own.
    OtherRegister,
    /// The next instruction's address.
    Pc,
    /// A bit of what is stored.
    StoreData,
    /// Where it is stored.
    StoreAddress,
    /// How many bytes are stored.
    StoreSize,
    /// A store that is not reported.
    LostStore,
    /// A store that did not happen.
    ExtraStore,
    /// Where a load was.
    LoadAddress,
    /// A bit of a CSR that an instruction writes.
    Csr,
    /// A CSR that changed and is not reported.
    LostCsr,
    /// A CSR that is reported and did not change.
    ExtraCsr,
    /// A bit of a CSR that a trap writes.
    TrapCsr,
    /// The privilege mode.
    Mode,
    /// A bit of the instruction.
    Insn,
    /// An interrupt that is not reported.
    LostInterrupt,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 19] = [
        Kind::Integer,
        Kind::Float,
        Kind::LostWrite,
        Kind::ExtraWrite,
        Kind::OtherRegister,
        Kind::Pc,
        Kind::StoreData,
        Kind::StoreAddress,
        Kind::StoreSize,
        Kind::LostStore,
        Kind::ExtraStore,
        Kind::LoadAddress,
        Kind::Csr,
        Kind::LostCsr,
        Kind::ExtraCsr,
        Kind::TrapCsr,
        Kind::Mode,
        Kind::Insn,
        Kind::LostInterrupt,
    ];
}

/// What became of the trials of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Score {
    /// Programs without a place for such a fault.
    nowhere: u64,
    trials: u64,
    taken_back: u64,
}

/// A fault in its group.
#[derive(Debug)]
struct Fault {
    kind: Kind,
    /// The group that must be reported.
    group: u64,
    /// What was done, for people.
    what: String,
    bytes: Vec<u8>,
}

/// Whether a fault was found where it is, and nothing else.
fn check(fault: &Fault, heard: &Heard) -> Result<(), String> {
    let first = match (&heard.mismatches[..], &heard.problems[..]) {
        ([first], []) => first,
        ([], []) => return Err(format!("{fault} is not found")),
        _ => return Err(format!("{fault} is not alone: {heard:x?}")),
    };
    let interrupt = |d: &hartrace_tandem::verify::Difference| d.field == Field::Interrupt;
    let right = match fault.kind {
        Kind::LostInterrupt => first.differences.iter().any(interrupt),
        _ => true,
    };
    match first.group == fault.group && right {
        true => Ok(()),
        false => Err(format!("{fault} is found elsewhere: {first:x?}")),
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} in group {}: {}", self.kind, self.group, self.what)
    }
}

/// Ways to write the traces in which faults are put. Differences to a wrong
/// value are wrong, too: all values are reported in full.
fn configs(subject: &Subject) -> Result<Vec<Config>, String> {
    let plain = Config::new(subject.isa()?, true);
    let with = |addresses| {
        let mut config = plain.clone();
        config.style.addresses = addresses;
        config
    };
    let mut bluespec = plain.clone();
    bluespec.style = Style::bluespec();
    let mut partial = plain.clone();
    let added = partial.absent.add("trap.mstatus");
    added.map_err(|e| e.to_string())?;
    Ok(vec![
        plain.clone(),
        bluespec,
        with(Addresses::Both),
        with(Addresses::Physical),
        partial,
    ])
}

/// Which side is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Trace,
    Core,
}

/// One program with one fault of each kind for each way to write a trace.
struct Trial<'a> {
    subject: &'a Subject,
    config: &'a Config,
    limit: u64,
    seed: u64,
}

impl Trial<'_> {
    /// Whether a verifier can be expected to go on after a fault. What a
    /// trap makes of a wrong status or mode is not reported in a partial trace
    /// (3.2: "it may not be possible to recover").
    fn is_fair(&self, kind: Kind) -> bool {
        let status = matches!(kind, Kind::Csr | Kind::LostCsr | Kind::Mode);
        self.config.absent.is_empty() || !status
    }

    /// A fault of each kind, tried `rounds` times.
    fn run(&self, rounds: u64, scores: &mut Scores) -> Result<(), String> {
        let tape = Tape::new(self.subject, self.config, self.limit)?;
        let mut random = Random::new(self.seed);
        for kind in Kind::ALL.into_iter().filter(|k| self.is_fair(*k)) {
            for _ in 0..rounds {
                let seed = random.draw();
                for side in [Side::Trace, Side::Core] {
                    let fault = match side {
                        Side::Trace => tape.fault(kind, &mut Random::new(seed)),
                        Side::Core => core::fault(self, kind, &mut Random::new(seed))?,
                    };
                    let score = scores.entry((side as u8, kind)).or_default();
                    let Some(fault) = fault else {
                        score.nowhere += 1;
                        continue;
                    };
                    score.trials += 1;
                    let heard = self.subject.verify(self.config, &fault.bytes, 4)?;
                    score.taken_back += heard.taken_back;
                    check(&fault, &heard).map_err(|what| self.blame(&what, side))?;
                }
            }
        }
        Ok(())
    }

    fn blame(&self, what: &str, side: Side) -> String {
        let name = &self.subject.name;
        format!(
            "the {side:?} is at fault: {what}\n  {name}, {:?}, absent: {}\n  again: hartrace-proof tandem-faults --program {name} {:#x}",
            self.config.style, self.config.absent, self.seed
        )
    }
}

type Scores = BTreeMap<(u8, Kind), Score>;

/// Groups of a trace in which a fault is put.
const LIMIT: u64 = 20_000;

/// `tandem-faults [TRIALS] [SEED]`: about so many faults, in the programs of
/// the repository and as many random ones. `--program NAME SEED` does one
/// program again.
///
/// # Errors
///
/// The first fault that is not found, or not alone.
pub fn command(args: &[String]) -> Result<(), String> {
    let mut scores = Scores::new();
    if args.first().is_some_and(|a| a == "--program") {
        let subject = Subject::named(args.get(1).ok_or("--program NAME SEED")?)?;
        all(&subject, number(args, 2, 1)?, 1, &mut scores)?;
        show(&scores);
        return Ok(());
    }
    let (trials, seed) = (number(args, 0, 20_000)?, number(args, 1, 1)?);
    let start = Instant::now();
    let programs = Subject::programs()?;
    let mut seeds = Random::new(seed);
    let mut failed = 0;
    let done = |scores: &Scores| scores.values().map(|s| s.trials).sum::<u64>();
    while done(&scores) < trials {
        for program in &programs {
            let torture = Subject::torture(seeds.draw() % 1_000_000, LENGTH)?;
            for subject in [program, &torture] {
                if let Err(what) = all(subject, seeds.draw(), 1, &mut scores) {
                    println!("{what}");
                    failed += 1;
                }
            }
            if done(&scores) >= trials {
                break;
            }
        }
    }
    show(&scores);
    println!("{:.1} s", start.elapsed().as_secs_f64());
    match failed {
        0 => Ok(()),
        _ => Err(format!("{failed} programs with faults that went wrong")),
    }
}

/// Every way to write the trace of one program.
fn all(subject: &Subject, seed: u64, rounds: u64, scores: &mut Scores) -> Result<(), String> {
    for config in &configs(subject)? {
        let trial = Trial {
            subject,
            config,
            limit: LIMIT,
            seed,
        };
        trial.run(rounds, scores)?;
    }
    Ok(())
}

fn show(scores: &Scores) {
    println!("fault of  kind              trials  taken back  no place");
    for ((side, kind), score) in scores {
        let side = if *side == 0 { "trace" } else { "core" };
        println!(
            "{side:<9} {:<16} {:>7} {:>11} {:>9}",
            format!("{kind:?}"),
            score.trials,
            score.taken_back,
            score.nowhere
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(subject: &Subject, config: usize, seed: u64, scores: &mut Scores) {
        let configs = configs(subject).unwrap();
        let config = &configs[config % configs.len()];
        let trial = Trial {
            subject,
            config,
            limit: 800,
            seed,
        };
        trial.run(1, scores).unwrap();
    }

    #[test]
    fn faults_in_programs() {
        let mut scores = Scores::new();
        let programs = Subject::programs().unwrap();
        for (i, program) in programs.iter().enumerate().step_by(7) {
            some(program, i, 7 * i as u64, &mut scores);
        }
        assert!(scores.values().map(|s| s.trials).sum::<u64>() > 80);
    }

    #[test]
    fn faults_in_random_programs() {
        let mut scores = Scores::new();
        for seed in 0..5 {
            let subject = Subject::torture(seed, 60).unwrap();
            some(&subject, seed as usize, seed, &mut scores);
        }
        assert!(scores.values().map(|s| s.trials).sum::<u64>() > 80);
    }
}
