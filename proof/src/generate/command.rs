//! `hartrace-proof generate`: a program, its statistics, its file.

use std::time::Instant;

use hartrace_flow::{Effects, HartId, Observer, Step, Wants};

use super::{Driver, Program, Replay, Spec, Stats};
use crate::bench::{Bench, Report};

/// How to call it.
const USAGE: &str = "generate [--seed N] [--steps N] [--shape NAME | --any] [--elf FILE]
    [--check] [--print] [--speed] [--sweep N] [--bench]
  --seed N      which program and which walk (0)
  --steps N     length of the walk (100000)
  --shape NAME  plain, tiny, full, rv32, word, code-size, hyper or flat-out (full)
  --any         the shape that belongs to the seed, as property tests use it
  --functions N, --blocks N, --stretch N, --every N
                overrule the shape's size and the steps between surprises, to
                shrink a program by hand
  --elf FILE    writes the program as an ELF file
  --check       replays the walk against the image
  --print       prints every step
  --speed       only measures steps per second
  --sweep N     checks N seeds from the first on, each with its own shape, and
                adds up what they contain
  --bench       measures all shapes against each other";

#[derive(Debug)]
struct Options {
    seed: u64,
    steps: u64,
    shape: Option<Spec>,
    elf: Option<String>,
    check: bool,
    print: bool,
    speed: bool,
    sweep: Option<u64>,
    bench: bool,
    overrule: Vec<(Field, u32)>,
}

impl Options {
    fn spec(&self) -> Spec {
        let mut spec = self.shape.unwrap_or(Spec::arbitrary(self.seed));
        for &(field, value) in &self.overrule {
            match field {
                Field::Functions => spec.functions = value,
                Field::Blocks => spec.blocks = value,
                Field::Stretch => spec.stretch = value,
                Field::Every => spec.surprises.every = value,
            }
        }
        spec
    }
}

/// What the command line overrules in a shape.
#[derive(Clone, Copy, Debug)]
enum Field {
    Functions,
    Blocks,
    Stretch,
    Every,
}

fn parse(args: &[String]) -> Result<Options, String> {
    let mut options = Options {
        seed: 0,
        steps: 100_000,
        shape: Some(Spec::full()),
        elf: None,
        check: false,
        print: false,
        speed: false,
        sweep: None,
        bench: false,
        overrule: Vec::new(),
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let field = match arg.as_str() {
            "--functions" => Some(Field::Functions),
            "--blocks" => Some(Field::Blocks),
            "--stretch" => Some(Field::Stretch),
            "--every" => Some(Field::Every),
            _ => None,
        };
        let mut value = || args.next().ok_or(format!("{arg} needs a value\n{USAGE}"));
        if let Some(field) = field {
            let value = number(value()?)?;
            let value = u32::try_from(value).map_err(|_| format!("{arg}: {value} is too large"))?;
            options.overrule.push((field, value));
            continue;
        }
        match arg.as_str() {
            "--seed" => options.seed = number(value()?)?,
            "--steps" => options.steps = number(value()?)?,
            "--shape" => {
                let name = value()?;
                let shape = Spec::named(name);
                let shape = shape.ok_or(format!("no shape `{name}`; {:?}", Spec::NAMES))?;
                options.shape = Some(shape);
            }
            "--any" => options.shape = None,
            "--elf" => options.elf = Some(value()?.clone()),
            "--check" => options.check = true,
            "--print" => options.print = true,
            "--speed" => options.speed = true,
            "--sweep" => options.sweep = Some(number(value()?)?),
            "--bench" => options.bench = true,
            _ => return Err(format!("what is `{arg}`?\n{USAGE}")),
        }
    }
    Ok(options)
}

fn number(text: &str) -> Result<u64, String> {
    text.replace('_', "")
        .parse()
        .map_err(|e| format!("`{text}`: {e}"))
}

/// Runs the command.
///
/// # Errors
///
/// Arguments nobody understands, a file that cannot be written, and steps
/// that cannot be.
#[allow(clippy::print_stdout)]
pub fn run(args: &[String]) -> Result<(), String> {
    let options = parse(args)?;
    if let Some(seeds) = options.sweep {
        let stats = sweep(options.seed, seeds, options.steps)?;
        println!("{seeds} seeds\n{stats}");
        return Ok(());
    }
    if options.bench {
        println!("{}", bench(options.seed, options.steps));
        return Ok(());
    }
    let spec = options.spec();
    let program = Program::new(&spec, options.seed);
    let mut driver = Driver::new(&program, options.seed);
    if let Some(file) = &options.elf {
        std::fs::write(file, program.to_elf()).map_err(|e| format!("{file}: {e}"))?;
    }
    if options.speed {
        let start = Instant::now();
        let mut sum = Sum(0);
        driver.run(options.steps, &mut sum);
        let seconds = start.elapsed().as_secs_f64();
        let rate = options.steps as f64 / seconds / 1e6;
        println!("{rate:.1} M steps/s (sum {:x})", sum.0);
        return Ok(());
    }
    if options.print {
        driver.run(options.steps, &mut Print);
        return Ok(());
    }
    let mut stats = Stats::new(&program);
    if options.check {
        let mut replay = Replay::new(&program);
        driver.run(options.steps, &mut (&mut replay, &mut stats));
        replay.result().map_err(|fault| fault.to_string())?;
    } else {
        driver.run(options.steps, &mut stats);
    }
    println!("{spec:#?}\nisa {}\n{stats}", program.isa());
    Ok(())
}

/// Any shape, seed after seed; the sum of what they contain.
fn sweep(first: u64, seeds: u64, steps: u64) -> Result<Stats, String> {
    let mut sum = Stats::default();
    for seed in first..first.saturating_add(seeds) {
        let program = super::arbitrary(seed);
        let mut replay = Replay::new(&program);
        let mut stats = Stats::new(&program);
        Driver::new(&program, seed).run(steps, &mut (&mut replay, &mut stats));
        replay
            .result()
            .map_err(|fault| format!("seed {seed}, {fault}"))?;
        sum.add(&stats);
    }
    Ok(sum)
}

/// How fast each shape makes steps that nobody looks at much.
fn bench(seed: u64, steps: u64) -> Report {
    let programs: Vec<_> = Spec::NAMES
        .iter()
        .filter_map(|&name| Some((name, Program::new(&Spec::named(name)?, seed))))
        .collect();
    let mut bench = Bench::new("steps");
    for (name, program) in &programs {
        bench.measure(name, steps, || {
            let mut sum = Sum(0);
            Driver::new(program, seed).run(steps, &mut sum);
            sum.0
        });
    }
    bench.run(7)
}

/// The least an observer can do with a step and still need it.
struct Sum(u64);

impl Observer for Sum {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, _: HartId, step: &Step, _: &Effects) {
        if let Step::Insn(insn) = step {
            self.0 = self.0.wrapping_add(insn.next ^ insn.time);
        }
    }
}

struct Print;

impl Observer for Print {
    const WANTS: Wants = Wants::STEPS;

    #[allow(clippy::print_stdout)]
    fn step(&mut self, _: HartId, step: &Step, _: &Effects) {
        match step {
            Step::Insn(i) => println!(
                "{:>10} {:2} {:5x} {:16x}: {:8x} -> {:x}",
                i.time,
                i.mode.name(),
                i.context.0,
                i.pc,
                i.bits,
                i.next
            ),
            Step::Trap(t) => println!(
                "{:>10} {:2} {:5x} {:16x}: {:?} -> {:x?}",
                t.time,
                t.mode.name(),
                t.context.0,
                t.trap.epc.unwrap_or(0),
                t.trap.cause,
                t.trap.handler
            ),
            Step::Signal(s) => println!("{:>10} {s:?}", ""),
        }
    }
}
