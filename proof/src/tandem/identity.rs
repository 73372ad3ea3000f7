//! Identity: the decoded trace equals the run, and a verifier finds no
//! difference.

use std::time::Instant;

use hartrace_flow::{Cause, Check, Effects, HartId, Model, Observer, Place, Step};
use hartrace_hart::Machine;
use hartrace_tandem::{Config, Decoder, Elements, Encoder, Item, PcForm, Register, Verifier};

use super::subject::LENGTH;
use super::{Heard, Setting, Subject, number};
use crate::generate::Random;

const HART: HartId = HartId(0);

/// Bytes on their way before they are read, at most.
const CHUNK: u64 = 4096;

/// What was compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    /// Programs with a setting each.
    pub cases: u64,
    /// Instructions.
    pub insns: u64,
    /// Exceptions and interrupts.
    pub traps: u64,
    /// Of those that were decoded, too.
    pub decoded: u64,
    /// Groups.
    pub groups: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Steps through the encoder, and at once into a decoder and a verifier.
struct Pipe {
    encoder: Encoder,
    bytes: Vec<u8>,
    check: Option<(Decoder, Check)>,
    verifier: Verifier<Machine>,
    heard: Heard,
    random: Random,
    /// Bytes that are given away together; 1 is each by itself.
    chunk: u64,
    most: u64,
    stopped: bool,
    insns: u64,
    traps: u64,
}

/// Whether decoded events tell everything there is of instructions and traps.
fn is_decodable(config: &Config) -> bool {
    let absent = &config.absent;
    let trap = [0x141, 0x142, 0x143, 0x341, 0x342, 0x343].map(Register::csr);
    let left_out = |r: &Register| absent.registers.contains(*r) || absent.in_traps.contains(*r);
    !absent.pc && !absent.insn && !trap.iter().any(left_out)
}

impl Pipe {
    fn new(subject: &Subject, setting: &Setting) -> Result<Pipe, String> {
        let config = &setting.config;
        let machine = subject.machine()?;
        let check = match is_decodable(config) {
            true => Some((decoder(subject, config, &machine)?, Check::new())),
            false => None,
        };
        let mut random = Random::new(setting.number ^ 0x7a3d);
        let most = random.one_of([1, 64, CHUNK, CHUNK]);
        Ok(Pipe {
            encoder: Encoder::new(config.clone()).map_err(|e| e.to_string())?,
            bytes: Vec::new(),
            check,
            verifier: Verifier::new(config.clone(), subject.options()?, machine),
            heard: Heard::new(1),
            random,
            chunk: 1,
            most,
            stopped: false,
            insns: 0,
            traps: 0,
        })
    }

    fn pump(&mut self) {
        for chunk in self.bytes.chunks(self.chunk as usize) {
            if let Some((decoder, check)) = &mut self.check {
                let mut rest = chunk;
                while !rest.is_empty() {
                    let used = decoder.feed(rest, check);
                    rest = rest.get(used..).unwrap_or_default();
                }
            }
            self.stopped |= self.verifier.feed(chunk, &mut self.heard).is_break();
            if self.stopped {
                break;
            }
        }
        self.bytes.clear();
        self.chunk = 1 + self.random.below(self.most);
    }

    fn result(mut self) -> Result<Sum, String> {
        self.encoder.finish(&mut self.bytes);
        self.pump();
        if !self.stopped {
            let _ = self.verifier.finish(&mut self.heard);
        }
        if let Some(problem) = self.heard.problems.first() {
            return Err(format!("{problem:x?}"));
        }
        if let Some(mismatch) = self.heard.mismatches.first() {
            return Err(format!("{mismatch:x?}"));
        }
        let mut sum = Sum {
            cases: 1,
            insns: self.insns,
            traps: self.traps,
            groups: self.encoder.counters().groups,
            bytes: self.encoder.counters().bytes,
            decoded: 0,
        };
        if let Some((mut decoder, mut check)) = self.check {
            decoder.finish(&mut check);
            let checked = check.result().map_err(|d| d.to_string())?;
            if (checked.insns, checked.traps) != (self.insns, self.traps) {
                return Err(format!("{checked:?} of {} and {}", self.insns, self.traps));
            }
            sum.decoded = checked.insns;
        }
        let counters = self.verifier.counters();
        let seen = counters.retired + counters.exceptions + counters.interrupts;
        if seen + counters.unchecked != self.insns + self.traps || counters.taken_back != 0 {
            return Err(format!("{counters:?} of {} and {}", self.insns, self.traps));
        }
        Ok(sum)
    }
}

/// A decoder that knows where the program starts, whatever the trace tells.
fn decoder(subject: &Subject, config: &Config, machine: &Machine) -> Result<Decoder, String> {
    let decoder = Decoder::new(config.clone(), HART).map_err(|e| e.to_string())?;
    let mut decoder = decoder.with_isa(subject.isa()?);
    if !config.style.start {
        let pc = machine.read(Place::Pc).map_err(|e| e.to_string())?;
        let place = match config.pc {
            PcForm::New => Item::Pc(pc),
            PcForm::Both => Item::TwoPcs(pc, pc),
        };
        let mut bytes = Vec::new();
        for item in [Item::BeginGroup, Item::StateInit, place, Item::EndGroup] {
            item.write(config, &mut bytes);
        }
        decoder.feed(&bytes, &mut Check::new());
    }
    Ok(decoder)
}

impl Pipe {
    fn step(&mut self, step: &Step, effects: &Effects) {
        if self.stopped {
            return;
        }
        if let Some((_, check)) = &mut self.check {
            check.step(HART, step, effects);
        }
        match step {
            Step::Insn(_) => self.insns += 1,
            Step::Trap(trap) if trap.trap.cause != Cause::Unknown => self.traps += 1,
            _ => {}
        }
        self.encoder.step(step, effects, &mut self.bytes);
        if self.bytes.len() as u64 >= CHUNK {
            self.pump();
        }
    }
}

/// So many instructions there and back again, and verified.
///
/// # Errors
///
/// The first difference, and how to see it again.
pub fn identity(subject: &Subject, number: u64, limit: u64) -> Result<Sum, String> {
    let mut setting = Setting::new(number, subject.isa()?);
    if subject.calls_debugger() {
        setting.config.absent = Elements::default();
    }
    let blame = |what: String| {
        let name = &subject.name;
        format!(
            "{what}\n  {name} with {:?}\n  absent: {}\n  again: hartrace-proof tandem-identity --program {name} {number} {limit}",
            setting.config, setting.config.absent
        )
    };
    let mut pipe = Pipe::new(subject, &setting).map_err(blame)?;
    subject
        .run(limit, &mut |step, effects| pipe.step(step, effects))
        .map_err(blame)?;
    pipe.result().map_err(blame)
}

/// Instructions of one case.
const LIMIT: u64 = 200_000;

/// `tandem-identity [INSNS] [SEED]`: random programs and those of the
/// repository, half of the instructions each, a new setting every time.
/// `--program NAME SETTING [INSNS]` does one thing again.
///
/// # Errors
///
/// The first difference.
pub fn command(args: &[String]) -> Result<(), String> {
    if args.first().is_some_and(|a| a == "--program") {
        let subject = Subject::named(args.get(1).ok_or("--program NAME SETTING")?)?;
        let sum = identity(&subject, number(args, 2, 0)?, number(args, 3, LIMIT)?)?;
        println!("{sum:?}");
        return Ok(());
    }
    let (insns, seed) = (number(args, 0, 100_000_000)?, number(args, 1, 1)?);
    let start = Instant::now();
    let programs = Subject::programs()?;
    let first = seed.wrapping_mul(1_000_000);
    let mut settings = first;
    let (mut random, mut recorded) = (Sum::default(), Sum::default());
    while random.insns < insns / 2 {
        let subject = Subject::torture(settings, LENGTH)?;
        add(&mut random, identity(&subject, settings, LIMIT)?);
        settings += 1;
    }
    show("random programs", &random, start);
    while recorded.insns < insns / 2 {
        for program in &programs {
            add(&mut recorded, identity(program, settings, LIMIT * 4)?);
            settings += 1;
        }
    }
    show("programs", &recorded, start);
    Ok(())
}

fn add(sum: &mut Sum, more: Sum) {
    sum.cases += more.cases;
    sum.insns += more.insns;
    sum.traps += more.traps;
    sum.decoded += more.decoded;
    sum.groups += more.groups;
    sum.bytes += more.bytes;
}

fn show(what: &str, sum: &Sum, start: Instant) {
    println!(
        "{what}: {} settings, {} instructions and {} traps verified, {} instructions decoded as they were; {} groups, {} bytes; {:.1} s",
        sum.cases,
        sum.insns,
        sum.traps,
        sum.decoded,
        sum.groups,
        sum.bytes,
        start.elapsed().as_secs_f64()
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_programs_come_back() {
        for seed in 0..24 {
            let subject = Subject::torture(seed, 60).unwrap();
            identity(&subject, seed, 2_000).unwrap();
        }
    }

    #[test]
    fn programs_come_back() {
        for (setting, program) in (0..).zip(&Subject::programs().unwrap()) {
            identity(program, setting, 2_000).unwrap();
        }
    }
}
