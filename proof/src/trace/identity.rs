//! Identity: the decoded trace equals the run.

use std::ops::ControlFlow;
use std::time::Instant;

use hartrace_flow::{Consumer, Decode, Effects, Event, HartId, Observer, Retirement, Step, Wants};
use hartrace_isa::{Flow, Isa, Itype, ItypeTable};

use super::pipe::{Break, feed};
use super::{Counters, Format, Pipe, Recorded, Setting, Told, programs, splits};
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
        self.counters = self.counters.plus(counters);
    }
}

/// A case out of a number: the shape of a program, a setting, a walk.
#[derive(Debug)]
pub struct Case<F: Format> {
    /// The number.
    pub seed: u64,
    /// The program.
    pub program: Program,
    /// How it is traced.
    pub setting: Setting<F>,
}

impl<F: Format> Case<F> {
    /// The case with this number.
    #[must_use]
    pub fn new(seed: u64) -> Case<F> {
        let mut spec = Spec::arbitrary(seed);
        let mut setting = F::setting(seed, spec.isa());
        tame(&mut setting, &mut spec);
        Case {
            seed,
            program: Program::new(&spec, seed),
            setting,
        }
    }

    /// Takes the setting with another number, if the program is fit for it.
    pub fn try_setting(&mut self, number: u64) {
        let mut setting = F::setting(number, self.program.isa());
        let mut spec = *self.program.spec();
        tame(&mut setting, &mut spec);
        if spec == *self.program.spec() {
            self.setting = setting;
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
    fn trust(&self, steps: u64) -> Setting<F> {
        let mut setting = self.setting.clone();
        if F::trusts(&setting.config) {
            let mut calls = Calls::new(self.program.isa());
            self.drive(steps, &mut calls, |c| c.stray);
            if calls.stray {
                F::distrust(&mut setting.config);
            }
        }
        setting
    }

    /// What is wrong with the case, and how to see it again.
    pub(super) fn blame(&self, what: &str, steps: u64) -> String {
        format!(
            "{what}\n  case {}: {:?}\n  again: hartrace-proof {}-identity --case {} {steps}",
            self.seed,
            self.setting,
            F::NAME,
            self.seed
        )
    }

    /// So many steps there and back again.
    ///
    /// # Errors
    ///
    /// The first difference, and the setting.
    pub fn identity(&self, steps: u64) -> Result<(Told, Counters), String> {
        let blame = |what: String| self.blame(&what, steps);
        let setting = self.trust(steps);
        let mut pipe = Pipe::new(&setting, self.program.image()).map_err(blame)?;
        self.drive(steps, &mut pipe, Pipe::has_failed);
        pipe.finish().map_err(blame)
    }

    /// The trace of so many steps.
    pub(crate) fn trace(&self, steps: u64) -> Result<Vec<u8>, String> {
        let mut pipe = Pipe::new(&self.setting, self.program.image())?.keeping();
        self.drive(steps, &mut pipe, |_| false);
        Ok(pipe.into_bytes())
    }

    /// Prints the steps, and the messages with the events they make.
    ///
    /// # Errors
    ///
    /// Settings that do not make sense.
    fn list(&self, steps: u64) -> Result<(), String> {
        println!("{:?}", self.setting);
        self.drive(steps, &mut Printed, |_| false);
        let bytes = self.trace(steps)?;
        let mut decoder = F::decoder(&self.setting.config, self.program.image())?;
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let len = F::first_len(&self.setting.config, rest).max(1);
            let (message, behind) = rest.split_at(len.min(rest.len()));
            let at = bytes.len() - rest.len();
            println!("{at:#06x} {}", F::describe(&self.setting.config, message));
            feed(&mut decoder, message, &mut Printed);
            rest = behind;
        }
        decoder.finish(&mut Printed);
        Ok(())
    }

    /// The same trace however many instructions a block has, where the format
    /// promises that. Gives the number of bytes compared.
    ///
    /// # Errors
    ///
    /// The first difference.
    pub fn blocks(&self, steps: u64) -> Result<u64, String> {
        if !F::is_block_blind(&self.setting) {
            return Ok(0);
        }
        let mut traces = Vec::new();
        let blocks = [2, 3, 5, 9, 64, 1000].map(Retirement::Block);
        for retirement in [Retirement::Single].into_iter().chain(blocks) {
            let mut setting = self.setting.clone();
            setting.port.retirement = retirement;
            let case = Case {
                seed: self.seed,
                program: self.program.clone(),
                setting,
            };
            traces.push((retirement, case.trace(steps)?));
        }
        let mut bytes = 0;
        for (retirement, trace) in &traces {
            let first = traces.first().map_or(&[][..], |t| &t.1);
            if trace != first {
                let at = trace.iter().zip(first).take_while(|(a, b)| a == b).count();
                let what = format!("{retirement:?} differs from byte {at:#x} on");
                return Err(self.blame(&what, steps));
            }
            bytes += trace.len() as u64;
        }
        Ok(bytes)
    }
}

/// Makes setting and program fit for each other.
fn tame<F: Format>(setting: &mut Setting<F>, spec: &mut Spec) {
    if !setting.signals {
        spec.surprises.signal = 0;
    } else if spec.surprises.every > 0 {
        spec.surprises.signal = spec.surprises.signal.max(10);
    }
    F::tame(setting, spec);
}

/// Prints steps and events.
struct Printed;

impl Observer for Printed {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, hart: HartId, step: &Step, _: &Effects) {
        println!("{} {step:x?}", hart.0);
    }
}

impl Consumer for Printed {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        println!("       {} {event:x?}", hart.0);
        ControlFlow::Continue(())
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

impl Recorded {
    /// There and back again with the setting of this number.
    ///
    /// # Errors
    ///
    /// The first difference, and the setting.
    pub fn identity<F: Format>(&self, number: u64, limit: u64) -> Result<(Told, Counters), String> {
        let mut setting = F::setting(number, self.isa);
        if F::trusts(&setting.config) {
            let mut calls = Calls::new(self.isa);
            self.run(limit, &mut calls, |c| c.stray)?;
            if calls.stray {
                F::distrust(&mut setting.config);
            }
        }
        let blame = |what: String| {
            format!(
                "{what}\n  {} with {setting:?}\n  again: hartrace-proof {}-identity --program {} {number} {limit}",
                self.name,
                F::NAME,
                self.name
            )
        };
        let mut pipe = Pipe::new(&setting, &self.image).map_err(blame)?;
        let mut out = Break::new(&setting, number, &mut pipe);
        self.run(limit, &mut out, |o| o.inner().has_failed())
            .map_err(blame)?;
        pipe.finish().map_err(blame)
    }
}

impl Recorded {
    /// The trace of a run of so many instructions.
    ///
    /// # Errors
    ///
    /// Settings that do not make sense, or a program that does not end well.
    pub(crate) fn trace<F: Format>(
        &self,
        setting: &Setting<F>,
        seed: u64,
        limit: u64,
    ) -> Result<Vec<u8>, String> {
        let mut pipe = Pipe::new(setting, &self.image)?.keeping();
        self.run(limit, &mut Break::new(setting, seed, &mut pipe), |_| false)?;
        Ok(pipe.into_bytes())
    }
}

/// Steps of a random program in one case.
const STEPS: u64 = 40_000;

/// `…-identity [INSNS] [SEED]`: random programs and those of the repository,
/// over the option matrix; half of the instructions each.
/// `…-identity --case SEED [STEPS]` and `--program NAME NUMBER [INSNS]` do one
/// thing again; `--list SEED [STEPS]` shows a case.
///
/// # Errors
///
/// The first difference.
pub fn command<F: Format>(args: &[String]) -> Result<(), String> {
    let number = |i: usize, default: u64| -> Result<u64, String> {
        args.get(i).map_or(Ok(default), |a| {
            a.parse().map_err(|_| format!("not a number: {a}"))
        })
    };
    match args.first().map(String::as_str) {
        Some("--case") => {
            let case = Case::<F>::new(number(1, 0)?);
            let steps = number(2, STEPS)?;
            let outcome = case.identity(steps)?;
            splits::all(&case, steps.min(20_000))?;
            case.blocks(steps)?;
            println!("{:?}\n{outcome:?}", case.setting);
            return Ok(());
        }
        Some("--list") => return Case::<F>::new(number(1, 0)?).list(number(2, STEPS)?),
        Some("--program") => {
            let program = Recorded::named(args.get(1).ok_or("--program NAME NUMBER")?)?;
            let outcome = program.identity::<F>(number(2, 0)?, number(3, u64::MAX)?)?;
            println!("{outcome:?}");
            return Ok(());
        }
        _ => {}
    }
    let (insns, seed) = (number(0, 100_000_000)?, number(1, 1)?);
    let start = Instant::now();
    let settings = seed.wrapping_mul(1_000_000);
    let settings = random::<F>(insns / 2, settings, start)?;
    recorded::<F>(insns / 2, settings, start)
}

/// Random programs, a setting each. Gives the next setting.
fn random<F: Format>(insns: u64, settings: u64, start: Instant) -> Result<u64, String> {
    let mut sum = Sum::default();
    let mut settings = settings;
    let (mut split, mut compared) = (0u64, 0u64);
    let (mut blind, mut equal) = (0u64, 0u64);
    while sum.told.insns < insns {
        let case = Case::<F>::new(settings);
        sum.add(case.identity(STEPS)?);
        if settings.is_multiple_of(8) {
            compared += splits::all(&case, 5_000)?;
            split += 1;
        }
        let bytes = case.blocks(5_000)?;
        blind += u64::from(bytes > 0);
        equal += bytes;
        settings += 1;
    }
    show("random programs", &sum, start);
    println!(
        "{split} of them cut into chunks, begun at every sync point, and decoded on 2, 3 and 8 threads, whole and damaged: {compared} events"
    );
    if blind > 0 {
        println!("{blind} of them the same with blocks of 7 sizes: {equal} bytes");
    }
    Ok(settings)
}

/// The programs of the repository, each with a new setting every time.
fn recorded<F: Format>(insns: u64, settings: u64, start: Instant) -> Result<(), String> {
    let mut settings = settings;
    let mut all = Sum::default();
    let files = programs()?;
    let programs: Vec<Recorded> = files
        .iter()
        .map(|p| Recorded::read(p))
        .collect::<Result<_, _>>()?;
    while all.told.insns < insns {
        for program in &programs {
            // The long ones would take it all.
            all.add(program.identity::<F>(settings, 2_500_000)?);
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
        unreported,
    } = sum.told;
    println!(
        "{what}: {} settings, {insns} instructions and {traps} traps equal; {contexts} contexts, {times} times, {marks} marks; {gaps} gaps for {lost} lost steps; {unreported} unreported",
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
    use crate::etrace::ETrace;
    use crate::ntrace::NTrace;

    fn random_programs<F: Format>() {
        for seed in 0..300 {
            let case = Case::<F>::new(seed);
            case.identity(1500).unwrap();
            case.blocks(300).unwrap();
        }
    }

    fn repository<F: Format>() {
        let files = programs().unwrap();
        assert!(files.len() > 20);
        for (number, path) in (0..).zip(&files) {
            let program = Recorded::read(path).unwrap();
            program.identity::<F>(number, 10_000).unwrap();
        }
    }

    #[test]
    fn random_programs_come_back_from_ntrace() {
        random_programs::<NTrace>();
    }

    #[test]
    fn random_programs_come_back_from_etrace() {
        random_programs::<ETrace>();
    }

    #[test]
    fn programs_come_back_from_ntrace() {
        repository::<NTrace>();
    }

    #[test]
    fn programs_come_back_from_etrace() {
        repository::<ETrace>();
    }
}
