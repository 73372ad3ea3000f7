//! Checks the hart as a reference model ([`Model`]).
//!
//! The steps and the state after each step must not depend on how the steps are
//! requested ([`rows`]); and a step must change exactly what its effects report
//! ([`told`]).

mod shadow;
#[cfg(test)]
mod tests;

use core::ops::ControlFlow;

use hartrace_flow::{Cause, Effects, Model, Place, RegId, Step};
use hartrace_hart::host::Host;
use hartrace_hart::{Config, Machine, Platform, Program, Region};

use crate::generate::Random;
use crate::torture::{self, FULL_ISA, SMALL_ISA};
use shadow::Shadow;

/// RAM: enough for the programs, little enough to be compared.
const RAM: Region = Region {
    base: 0x8000_0000,
    size: 8 << 20,
};

/// A machine that runs a program without a host: calls are answered by us.
struct Guest {
    machine: Machine,
    tohost: Option<u64>,
    fromhost: Option<u64>,
}

impl Guest {
    /// A machine with everything, or with this instruction set.
    fn new(elf: &[u8], isa: Option<&str>) -> Result<Guest, String> {
        let program = Program::from_elf(elf).map_err(|e| e.to_string())?;
        let mut config = Config::new(Platform::Virt, program.xlen);
        config.memory = vec![RAM];
        if let Some(isa) = isa {
            isa.clone_into(&mut config.isa);
        }
        let mut machine = Machine::new(config, Host::silent()).map_err(|e| e.to_string())?;
        let (tohost, fromhost) = (program.tohost, program.fromhost);
        machine.load(program, None).map_err(|e| e.to_string())?;
        Ok(Guest {
            machine,
            tohost,
            fromhost,
        })
    }

    /// Answers a call to the host without doing anything: the words written.
    /// `None` when the program has ended.
    fn answer(&mut self) -> Option<Vec<(u64, u64)>> {
        let Some(tohost) = self.tohost else {
            return Some(Vec::new());
        };
        let word = |addr| Place::Memory { addr, size: 8 };
        match self.machine.read(word(tohost)) {
            Ok(0) | Err(_) => return Some(Vec::new()),
            Ok(call) if call & 1 != 0 => return None,
            Ok(_) => {}
        }
        let mut wrote = vec![(tohost, 0)];
        wrote.extend(self.fromhost.map(|addr| (addr, 1)));
        wrote.retain(|&(addr, value)| self.machine.write(word(addr), value).is_ok());
        Some(wrote)
    }
}

/// All registers and CSRs.
fn state(machine: &Machine) -> Vec<(Place, u64)> {
    let registers = (0..32).flat_map(|n| [RegId::X(n), RegId::F(n)]);
    let places = registers.map(Place::Reg).chain([Place::Pc, Place::Mode]);
    let value = |place| Some((place, machine.read(place).ok()?));
    let mut all: Vec<_> = places.filter_map(value).collect();
    machine.csrs(&mut |csr, value| all.push((Place::Csr(csr), value)));
    all
}

/// All memory that is not zero.
fn memory(machine: &Machine) -> Vec<(u64, Vec<u8>)> {
    let mut all = Vec::new();
    machine.memory(&mut |addr, bytes| all.push((addr, bytes.to_vec())));
    all
}

/// The first thing in which two machines differ.
fn difference(a: &Machine, b: &Machine) -> Option<String> {
    let (left, right) = (state(a), state(b));
    let differs = left.iter().zip(&right).find(|(left, right)| left != right);
    if let Some((left, right)) = differs {
        return Some(format!("{left:x?} in a row, {right:x?} one by one"));
    }
    let counts = |m: &Machine| (m.instructions(), m.cycles());
    (counts(a) != counts(b)).then(|| "the counts of instructions or cycles".to_owned())
}

/// How many steps in a row: often a few, sometimes many.
fn length(random: &mut Random) -> u64 {
    let most = random.pick(&[1, 3, 30, 300, 3000]);
    1 + random.below(most)
}

/// Runs a program on two machines: one by one, and in rows that end at random
/// places, by their limit or because whoever watches has seen enough. Gives
/// the number of steps.
///
/// # Errors
///
/// A program that does not load, and the first difference.
pub fn rows(elf: &[u8], isa: Option<&str>, limit: u64, seed: u64) -> Result<u64, String> {
    let (mut row, mut single) = (Guest::new(elf, isa)?, Guest::new(elf, isa)?);
    let mut random = Random::new(seed);
    let mut effects = Effects::default();
    let mut done = 0;
    while done < limit {
        let count = length(&mut random);
        let breaks = random.chance(700);
        let mut seen: Vec<(Step, Effects)> = Vec::new();
        let mut watch = |step: &Step, effects: &Effects| {
            seen.push((*step, *effects));
            if breaks && seen.len() as u64 == count {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        };
        let most = if breaks { u64::MAX } else { count };
        let end = row.machine.steps(most, &mut watch);
        if end.is_break() != breaks || seen.len() as u64 != count {
            return Err(format!("{} steps of {count}, {end:?}", seen.len()));
        }
        for told in seen {
            let step = single.machine.step(&mut effects);
            if told != (step, effects) {
                return Err(format!("step {done}: {told:x?}, {step:x?} {effects:x?}"));
            }
            done += 1;
        }
        if random.chance(20) {
            let cause = Cause::Interrupt(Some(random.pick(&[1, 3, 5, 7, 9, 11])));
            let told = row.machine.interrupt(cause, &mut effects);
            let mut again = Effects::default();
            if single.machine.interrupt(cause, &mut again) != told || again != effects {
                return Err(format!("step {done}: another {told:?}"));
            }
        }
        let answers = (row.answer(), single.answer());
        if let Some(what) = difference(&row.machine, &single.machine) {
            return Err(format!("behind step {done}: {what}"));
        }
        if answers.0 != answers.1 || random.chance(5) || done >= limit {
            let same = memory(&row.machine) == memory(&single.machine);
            same.then_some(()).ok_or(format!("memory at step {done}"))?;
        }
        if answers.0.is_none() {
            break;
        }
    }
    Ok(done)
}

/// Runs a program, keeps state by what its effects say, and compares it with
/// the machine's after every step. Gives the number of steps.
///
/// # Errors
///
/// A program that does not load, and what was not reported.
pub fn told(elf: &[u8], isa: Option<&str>, limit: u64) -> Result<u64, String> {
    let mut guest = Guest::new(elf, isa)?;
    let mut shadow = Shadow::new(&guest.machine, RAM);
    let mut effects = Effects::default();
    for done in 0..limit {
        let step = guest.machine.step(&mut effects);
        let checked = shadow
            .follow(&step, &effects)
            .and_then(|()| shadow.compare(&guest.machine));
        checked.map_err(|what| format!("step {done}, {step:x?}: {what}"))?;
        if done % 256 == 0 {
            match guest.answer() {
                None => return shadow.compare_memory(&guest.machine).map(|()| done),
                Some(wrote) => wrote.iter().for_each(|&(addr, word)| {
                    shadow.store(addr, &word.to_le_bytes());
                }),
            }
        }
    }
    shadow.compare_memory(&guest.machine).map(|()| limit)
}

/// `model [--count N] [--seed N] [--length N]`: random programs of both
/// widths.
///
/// # Errors
///
/// The first program that is not as it should be.
pub fn command(args: &[String]) -> Result<(), String> {
    let (mut count, mut seed, mut length) = (100, 0, 3000);
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let number = rest.next().and_then(|n| n.parse().ok());
        let number: u32 = number.ok_or(format!("{arg} NUMBER"))?;
        match arg.as_str() {
            "--count" => count = number,
            "--seed" => seed = number,
            "--length" => length = number,
            _ => return Err(format!("`{arg}`?")),
        }
    }
    let mut total = 0;
    for seed in seed..seed.saturating_add(count) {
        for isa in instruction_sets() {
            let program = torture_program(seed.into(), &isa, length)?;
            let of = |what: String| format!("seed {seed} of {isa}: {what}");
            let limit = u64::from(length) * 100;
            total += told(&program, Some(&isa), limit).map_err(of)?;
            total += rows(&program, Some(&isa), limit, seed.into()).map_err(of)?;
        }
    }
    println!(
        "{total} steps of {} programs are as they should be",
        4 * count
    );
    Ok(())
}

/// Those that random programs are made for, in both widths.
fn instruction_sets() -> [String; 4] {
    let narrow = |isa: &str| isa.replace("rv64", "rv32");
    [
        FULL_ISA.to_owned(),
        narrow(FULL_ISA),
        SMALL_ISA.to_owned(),
        narrow(SMALL_ISA),
    ]
}

fn torture_program(seed: u64, isa: &str, length: u32) -> Result<Vec<u8>, String> {
    torture::make(&torture::Spec {
        seed,
        isa: isa.to_owned(),
        length,
        topics: 0,
    })
}
