//! Identity: what is decoded from what was encoded is what was done.

use std::path::{Path, PathBuf};
use std::time::Instant;

use hartrace_flow::{Effects, HartId, Image, Insn, Observer, SpaceId, Step, Wants};
use hartrace_hart::host::Host;
use hartrace_hart::{Config as Board, Machine, Platform, Program as Loaded, Stop};
use hartrace_isa::{Flow, Isa, Itype, ItypeTable, Xlen};
use hartrace_ntrace::{Counters, ImplicitReturn};

use super::pipe::Break;
use super::{Pipe, Setting, Told, splits};
use crate::generate::{Driver, Program, Random, Spec};

/// What a number of cases came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    /// Cases: a program and a setting each.
    pub cases: u64,
    /// What was compared.
    pub told: Told,
    /// What encoders did.
    pub counters: Counters,
}

impl Sum {
    fn add(&mut self, (told, counters): (Told, Counters)) {
        self.cases += 1;
        self.told.add(told);
        self.counters.messages += counters.messages;
        self.counters.bytes += counters.bytes;
        self.counters.lost += counters.lost;
        self.counters.overflows += counters.overflows;
        self.counters.stalled += counters.stalled;
    }
}

/// A case out of a number: the shape of a program, a setting, a walk.
#[derive(Debug)]
pub struct Case {
    /// The number.
    pub seed: u64,
    /// The program.
    pub program: Program,
    /// How it is traced.
    pub setting: Setting,
}

impl Case {
    /// The case with this number.
    #[must_use]
    pub fn new(seed: u64) -> Case {
        let mut spec = Spec::arbitrary(seed);
        let setting = Setting::numbered(seed, spec.isa());
        setting.tame(&mut spec);
        Case {
            seed,
            program: Program::new(&spec, seed),
            setting,
        }
    }

    /// Lets the harts take so many steps together, in turns.
    pub fn drive<O: Observer>(&self, steps: u64, out: &mut O, failed: impl Fn(&O) -> bool) {
        let mut drivers: Vec<Driver<'_>> = (0..self.setting.harts)
            .map(|n| {
                let seed = self.seed.wrapping_add(u64::from(n) << 32);
                Driver::new(&self.program, seed).with_hart(HartId(n))
            })
            .collect();
        let mut turns = Random::new(self.seed ^ 0x7042);
        let mut left = steps;
        while left > 0 {
            let turn = if drivers.len() == 1 {
                1000
            } else {
                1 + turns.below(300)
            }
            .min(left);
            let who = turns.below(drivers.len() as u64) as usize;
            if let Some(driver) = drivers.get_mut(who) {
                let seed = turns.draw();
                driver.run(turn, &mut Break::new(&self.setting, seed, out));
            }
            left -= turn;
            if failed(out) {
                return;
            }
        }
    }

    /// Whether encoders that only count calls can be used: every return goes
    /// back to its call. Where they cannot, they are made to compare.
    fn trust(&self, steps: u64) -> Setting {
        let mut setting = self.setting.clone();
        if setting.config.implicit_return == ImplicitReturn::Count {
            let mut calls = Calls::new(self.program.isa());
            self.drive(steps, &mut calls, |c| c.stray);
            if calls.stray {
                setting.config.implicit_return = ImplicitReturn::Full;
            }
        }
        setting
    }

    /// So many steps there and back again.
    ///
    /// # Errors
    ///
    /// The first difference, and the setting.
    pub fn identity(&self, steps: u64) -> Result<(Told, Counters), String> {
        let blame = |what: String| {
            format!(
                "{what}\n  case {}: {:?}\n  again: hartrace-proof ntrace-identity --case {} {steps}",
                self.seed, self.setting, self.seed
            )
        };
        let setting = self.trust(steps);
        let mut pipe = Pipe::new(&setting, self.program.image()).map_err(blame)?;
        self.drive(steps, &mut pipe, Pipe::has_failed);
        pipe.finish().map_err(blame)
    }
}

/// Looks for returns that do not go back to their call.
struct Calls {
    isa: Isa,
    harts: Vec<Vec<u64>>,
    stray: bool,
}

impl Calls {
    const fn new(isa: Isa) -> Calls {
        Calls {
            isa,
            harts: Vec::new(),
            stray: false,
        }
    }
}

impl Observer for Calls {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, hart: HartId, step: &Step, _: &Effects) {
        let Step::Insn(insn) = step else {
            return;
        };
        let hart = hart.0 as usize;
        if self.harts.len() <= hart {
            self.harts.resize_with(hart + 1, Vec::new);
        }
        let Some(stack) = self.harts.get_mut(hart) else {
            return;
        };
        let flow = Flow::of_retired(insn.bits, self.isa);
        match flow.itype4(insn.bits, true, ItypeTable::NTrace10) {
            Itype::DirectCall | Itype::IndirectCall => stack.push(insn.end()),
            // A swap leaves a call behind that need not end.
            Itype::Swap => self.stray = true,
            Itype::Return => {
                let back = stack.pop();
                self.stray |= back.is_some_and(|back| self.isa.xlen().wrap(back) != insn.next);
            }
            _ => {}
        }
    }
}

/// A program of `programs/` and its code.
#[derive(Debug)]
pub struct Recorded {
    /// Its file's name.
    pub name: String,
    elf: Vec<u8>,
    xlen: Xlen,
    /// Its code, all that was ever executed included.
    pub image: Image,
}

/// Instructions that no image has.
struct Unknown<'a> {
    image: &'a Image,
    found: Vec<(u64, u32)>,
}

impl Observer for Unknown<'_> {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, _: HartId, step: &Step, _: &Effects) {
        let Step::Insn(Insn { pc, bits, .. }) = *step else {
            return;
        };
        if self.image.fetch(SpaceId::FIRST, pc).is_none() && !self.found.contains(&(pc, bits)) {
            self.found.push((pc, bits));
        }
    }
}

impl Recorded {
    /// Reads a program. What it runs at addresses that are in no file (pages
    /// that it maps elsewhere) is found by running it.
    ///
    /// # Errors
    ///
    /// A file that is no program, or one that does not end well.
    pub fn read(path: &Path) -> Result<Recorded, String> {
        let blame = |what: String| format!("{}: {what}", path.display());
        let elf = std::fs::read(path).map_err(|e| blame(e.to_string()))?;
        let image = Image::from_elf(&elf).map_err(|e| blame(e.to_string()))?;
        let isa = image.isa().ok_or_else(|| blame("no code".into()))?;
        let name = path.file_stem().map(|s| s.to_string_lossy().into_owned());
        let mut program = Recorded {
            name: name.unwrap_or_default(),
            elf,
            xlen: isa.xlen(),
            image,
        };
        if program.name.starts_with("modes") {
            let mut unknown = Unknown {
                image: &program.image,
                found: Vec::new(),
            };
            program
                .run(u64::MAX, &mut unknown, |_| false)
                .map_err(blame)?;
            for (pc, bits) in unknown.found {
                let bytes = bits.to_le_bytes();
                let len = usize::from(hartrace_isa::length(bits as u16).min(4));
                let bytes = bytes.get(..len).unwrap_or(&bytes);
                program.image.add_raw(SpaceId::FIRST, pc, bytes, isa);
            }
        }
        Ok(program)
    }

    /// Runs up to so many instructions. Gives the number run.
    ///
    /// # Errors
    ///
    /// A program that does not end well.
    pub fn run<O: Observer>(
        &self,
        limit: u64,
        out: &mut O,
        failed: impl Fn(&O) -> bool,
    ) -> Result<u64, String> {
        let program = Loaded::from_elf(&self.elf).map_err(|e| e.to_string())?;
        let board = Board::new(Platform::Virt, program.xlen);
        let mut machine = Machine::new(board, Host::silent()).map_err(|e| e.to_string())?;
        machine.load(program, None).map_err(|e| e.to_string())?;
        while machine.instructions() < limit && !failed(out) {
            let slice = (limit - machine.instructions()).min(100_000);
            match machine.run(slice, out) {
                Stop::Exit(_) => break,
                Stop::Limit => {}
                other => return Err(format!("{}: {other:?}", self.name)),
            }
        }
        Ok(machine.instructions())
    }

    /// There and back again with a setting.
    fn identity(&self, number: u64, limit: u64) -> Result<(Told, Counters), String> {
        let isa = self.image.isa().ok_or("no code")?;
        let mut setting = Setting::numbered(number, isa);
        if setting.config.implicit_return == ImplicitReturn::Count {
            let mut calls = Calls::new(isa);
            self.run(limit, &mut calls, |c| c.stray)?;
            if calls.stray {
                setting.config.implicit_return = ImplicitReturn::Full;
            }
        }
        debug_assert_eq!(setting.config.xlen, self.xlen);
        let blame = |what: String| {
            format!(
                "{what}\n  {} with {setting:?}\n  again: hartrace-proof ntrace-identity --program {} {number} {limit}",
                self.name, self.name
            )
        };
        let mut pipe = Pipe::new(&setting, &self.image).map_err(blame)?;
        let mut out = Break::new(&setting, number, &mut pipe);
        self.run(limit, &mut out, |o| o.has_failed())
            .map_err(blame)?;
        pipe.finish().map_err(blame)
    }
}

impl Break<'_, Pipe<'_>> {
    fn has_failed(&self) -> bool {
        self.inner().has_failed()
    }
}

/// The programs of the repository.
///
/// # Errors
///
/// A folder that cannot be read.
pub fn programs() -> Result<Vec<PathBuf>, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs");
    let list = |path: &Path| -> Result<Vec<PathBuf>, String> {
        let entries = std::fs::read_dir(path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(entries.flatten().map(|e| e.path()).collect())
    };
    let mut files = Vec::new();
    for folder in list(&root)?.iter().filter(|p| p.is_dir()) {
        let elf = |p: &PathBuf| p.extension().is_some_and(|e| e == "elf");
        files.extend(list(folder)?.into_iter().filter(elf));
    }
    files.sort();
    Ok(files)
}

/// Steps of a random program in one case.
const STEPS: u64 = 40_000;

/// `ntrace-identity [INSNS] [SEED]`: random programs and those of the
/// repository, over the option matrix; half of the instructions each.
/// `ntrace-identity --case SEED [STEPS]` and `--program NAME NUMBER [INSNS]` do
/// one thing again.
///
/// # Errors
///
/// The first difference.
pub fn command(args: &[String]) -> Result<(), String> {
    let number = |i: usize, default: u64| -> Result<u64, String> {
        args.get(i).map_or(Ok(default), |a| {
            a.parse().map_err(|_| format!("not a number: {a}"))
        })
    };
    match args.first().map(String::as_str) {
        Some("--case") => {
            let case = Case::new(number(1, 0)?);
            let outcome = case.identity(number(2, STEPS)?)?;
            splits::all(&case, number(2, STEPS)?.min(20_000))?;
            println!("{:?}\n{outcome:?}", case.setting);
            return Ok(());
        }
        Some("--program") => {
            let name = args.get(1).ok_or("--program NAME NUMBER")?;
            let fits = |p: &&PathBuf| p.file_stem().is_some_and(|s| s == name.as_str());
            let all = programs()?;
            let path = all.iter().find(fits).ok_or("no such program")?;
            let outcome = Recorded::read(path)?.identity(number(2, 0)?, number(3, u64::MAX)?)?;
            println!("{outcome:?}");
            return Ok(());
        }
        _ => {}
    }
    let (insns, seed) = (number(0, 100_000_000)?, number(1, 1)?);
    let start = Instant::now();
    let mut sum = Sum::default();
    let mut settings = seed.wrapping_mul(1_000_000);
    let (mut split, mut compared) = (0u64, 0u64);
    while sum.told.insns < insns / 2 {
        let case = Case::new(settings);
        sum.add(case.identity(STEPS)?);
        if settings % 8 == 0 {
            compared += splits::all(&case, 5_000)?;
            split += 1;
        }
        settings += 1;
    }
    show("random programs", &sum, start);
    println!(
        "{split} of them cut into chunks, begun at every sync point, and decoded on 2, 3 and 8 threads, whole and damaged: {compared} events"
    );
    let mut all = Sum::default();
    let files = programs()?;
    let programs: Vec<Recorded> = files
        .iter()
        .map(|p| Recorded::read(p))
        .collect::<Result<_, _>>()?;
    while all.told.insns < insns / 2 {
        for program in &programs {
            // The long ones would take it all.
            all.add(program.identity(settings, 2_500_000)?);
            settings += 1;
        }
    }
    show(&format!("{} programs", programs.len()), &all, start);
    Ok(())
}

fn show(what: &str, sum: &Sum, start: Instant) {
    let Told {
        insns,
        traps,
        contexts,
        times,
        marks,
        gaps,
        lost,
    } = sum.told;
    println!(
        "{what}: {} settings, {insns} instructions and {traps} traps equal; {contexts} contexts, {times} times, {marks} marks; {gaps} gaps for {lost} lost steps",
        sum.cases
    );
    println!(
        "  {} messages, {} bytes, {} overflows, {} messages lost, {} cycles waited; {:.1} s",
        sum.counters.messages,
        sum.counters.bytes,
        sum.counters.overflows,
        sum.counters.lost,
        sum.counters.stalled,
        start.elapsed().as_secs_f64()
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_programs_come_back() {
        for seed in 0..300 {
            Case::new(seed).identity(1500).unwrap();
        }
    }

    #[test]
    fn programs_come_back() {
        let files = programs().unwrap();
        assert!(files.len() > 20);
        for (number, path) in (0..).zip(&files) {
            let program = Recorded::read(path).unwrap();
            program.identity(number, 10_000).unwrap();
        }
    }
}
