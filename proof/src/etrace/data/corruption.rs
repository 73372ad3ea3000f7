//! What damage to a trace with data packets costs, in accesses.

use std::collections::HashMap;
use std::ops::ControlFlow;

use hartrace_etrace::{Config, DataConfig, Encoder, Resync, ResyncUnit, Version};
use hartrace_flow::{
    Access, Consumer, DataAccess, Effects, Event, HartId, Observer, Port, Run, Step, Wants,
};

use super::decode;
use crate::generate::Random;
use crate::trace::Recorded;

/// Instructions of the program that is damaged.
const INSNS: u64 = 200_000;

/// Trials without an argument.
const TRIALS: u64 = 2_000;

/// Accesses with the number of their instruction.
#[derive(Default)]
struct Tied {
    before: u64,
    done: u64,
    /// By number of the instruction; `None` without one.
    all: Vec<(Option<u64>, Access)>,
    reports: u64,
}

impl Consumer for Tied {
    fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
        match event {
            Event::Run(Run { insns, .. }) => {
                self.before = self.done;
                self.done += u64::from(*insns);
            }
            Event::Access(DataAccess { insn, access, .. }) => {
                let number = insn.map(|insn| self.before + u64::from(insn));
                self.all.push((number, *access));
            }
            Event::Gap(_) | Event::DataGap(_) | Event::Warning(_) => self.reports += 1,
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Encodes a run.
struct Encoding(Port<Encoder<Vec<u8>>>);

impl Observer for Encoding {
    const WANTS: Wants = Wants::STEPS.with(Wants::ACCESSES).with(Wants::CSRS);

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        self.0.step(hart, step, effects);
    }
}

/// A trace of a program with a synchronisation every so often.
///
/// # Errors
///
/// A program that cannot be run.
pub(super) fn trace(program: &Recorded, config: &Config, insns: u64) -> Result<Vec<u8>, String> {
    let encoder = Encoder::new(config.clone(), Vec::new()).map_err(|e| e.to_string())?;
    let mut out = Encoding(Port::new(config.port(program.isa), encoder));
    program.run(insns, &mut out, |_| false)?;
    out.0.finish();
    Ok(out.0.into_sink().into_sink())
}

fn config(program: &Recorded) -> Config {
    let xlen = program.isa.xlen();
    Config {
        data: Some(DataConfig::new(Version::V2_0, xlen)),
        resync: Resync {
            unit: ResyncUnit::Halfwords,
            max: 8,
            ..Resync::default()
        },
        ..Config::new(Version::V2_0, xlen)
    }
}

/// What one trial cost.
struct Cost {
    /// Accesses that are missing, or without their instruction.
    lost: u64,
    /// Accesses that were not made, or by another instruction.
    wrong: u64,
    /// Nothing reported it.
    silent: bool,
}

/// Compares with the truth, access by access of each address and value.
fn cost(truth: &[(Option<u64>, Access)], found: &Tied) -> Cost {
    let mut left: HashMap<(u64, u64, u64), i64> = HashMap::new();
    let key = |(number, access): &(Option<u64>, Access)| {
        (number.unwrap_or(0), access.addr, access.data.unwrap_or(0))
    };
    for one in truth {
        *left.entry(key(one)).or_default() += 1;
    }
    let mut wrong = 0;
    for one in found.all.iter().filter(|one| one.0.is_some()) {
        match left.get_mut(&key(one)) {
            Some(count) if *count > 0 => *count -= 1,
            _ => wrong += 1,
        }
    }
    let lost: i64 = left.values().sum();
    Cost {
        lost: lost as u64,
        wrong,
        silent: found.reports == 0,
    }
}

/// `etrace-data-corruption [TRIALS] [PROGRAM]`: flips one bit of a trace, decodes it,
/// and compares the accesses.
///
/// # Errors
///
/// A trace that does not recover.
pub fn command(args: &[String]) -> Result<(), String> {
    let trials = match args.first() {
        None => TRIALS,
        Some(text) => text.parse().map_err(|_| format!("`{text}` is no number"))?,
    };
    let name = args.get(1).map_or("sort-rv64gc", String::as_str);
    let program = Recorded::named(name)?;
    print!("{}", bench(&program, INSNS, trials)?);
    Ok(())
}

/// The result of so many flips.
fn bench(program: &Recorded, insns: u64, trials: u64) -> Result<String, String> {
    let config = config(program);
    let bytes = trace(program, &config, insns)?;
    let mut truth = Tied::default();
    decode(&config, program, &bytes, &mut truth)?;
    let (all, total) = (truth.all.len(), truth.done);
    let mut random = Random::new(7);
    let (mut lost, mut wrong) = (Vec::new(), Vec::new());
    let (mut silent, mut silent_wrong) = (0, 0);
    for _ in 0..trials {
        let mut damaged = bytes.clone();
        let at = random.below(damaged.len() as u64) as usize;
        if let Some(byte) = damaged.get_mut(at) {
            *byte ^= 1 << random.below(8);
        }
        let mut found = Tied::default();
        decode(&config, program, &damaged, &mut found)?;
        // Instructions that are lost shift the numbers of those after them.
        let shift = total.abs_diff(found.done);
        let cost = match shift {
            0 => cost(&truth.all, &found),
            _ => Cost {
                lost: (all as u64).saturating_sub(found.all.len() as u64),
                wrong: 0,
                silent: found.reports == 0,
            },
        };
        silent += u64::from(cost.silent);
        silent_wrong += u64::from(cost.silent && cost.wrong + cost.lost > 0);
        lost.push(cost.lost);
        wrong.push(cost.wrong);
        let last = found.all.last().map(|one| one.1);
        if at < bytes.len() / 2 && last != truth.all.last().map(|one| one.1) {
            return Err(format!("byte {at}: the end was not reached"));
        }
    }
    lost.sort_unstable();
    wrong.sort_unstable();
    let of = |list: &[u64], percent: usize| {
        let at = list.len().saturating_sub(1) * percent / 100;
        list.get(at).copied().unwrap_or(0)
    };
    let mut text = format!(
        "{}: {all} accesses of {total} instructions in {} bytes, {trials} flips\n",
        program.name,
        bytes.len()
    );
    for (name, list) in [("lost", &lost), ("wrong", &wrong)] {
        text += &format!(
            "accesses {name:<5} p50 {} p90 {} p99 {} max {}\n",
            of(list, 50),
            of(list, 90),
            of(list, 99),
            of(list, 100)
        );
    }
    text += &format!("without a report: {silent}, of which with wrong accesses: {silent_wrong}\n");
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_does_not_spread() {
        let program = Recorded::named("sort-rv64gc").unwrap();
        let text = bench(&program, 6000, 40).unwrap();
        assert!(text.contains("40 flips"), "{text}");
    }
}
