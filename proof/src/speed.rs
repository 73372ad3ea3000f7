//! The speed of the hart: alone, with an observer of taken branches, with an
//! observer of everything, as a model that can be stopped after every step, and
//! compared with another simulator.
//!
//! The contenders take turns, and the best time of each counts: on a shared
//! machine that is the least disturbed one.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use hartrace_flow::{Effects, HartId, Model, Observer, Step, Wants};
use hartrace_hart::host::Host;
use hartrace_hart::{Config, Machine, Platform, Program, Stop};

/// Rounds by default.
const ROUNDS: u32 = 5;

/// The programs of the table, below `programs/`.
pub(crate) const PROGRAMS: [&str; 4] = [
    "bench/bench-crc-rv64gc.elf",
    "bench/bench-sort-rv64gc.elf",
    "bench/bench-interp-rv64gc.elf",
    "bench/bench-float-rv64gc.elf",
];

/// Wants nothing.
struct NoObserver;

impl Observer for NoObserver {
    const WANTS: Wants = Wants::NOTHING;

    fn step(&mut self, _: HartId, _: &Step, _: &Effects) {}
}

/// Adds up what it is shown, so that showing it cannot be left out: the
/// targets of taken branches and jumps.
struct Taken(u64);

impl Observer for Taken {
    const WANTS: Wants = Wants::TRANSFERS;

    #[inline]
    fn step(&mut self, _: HartId, step: &Step, _: &Effects) {
        if let Step::Insn(insn) = step {
            self.0 = self.0.wrapping_add(insn.next ^ insn.pc);
        }
    }
}

/// Every instruction and all it changes.
struct Everything(u64);

impl Observer for Everything {
    const WANTS: Wants = Wants::ALL;

    #[inline]
    fn step(&mut self, _: HartId, step: &Step, effects: &Effects) {
        if let Step::Insn(insn) = step {
            self.0 = self.0.wrapping_add(insn.pc);
        }
        let regs = effects.regs.iter().map(|r| r.value);
        let accesses = effects.accesses.iter().map(|a| a.addr);
        self.0 = regs.chain(accesses).fold(self.0, u64::wrapping_add);
    }
}

/// Seconds of as many steps of the machine as a model, each shown with its
/// effects.
fn time_model(elf: &[u8], steps: u64, kept: &mut u64) -> Result<f64, String> {
    let mut machine = load(elf)?;
    let mut everything = Everything(0);
    let start = Instant::now();
    let end = machine.steps(steps, &mut |step, effects| {
        everything.step(HartId(0), step, effects);
        // The end of the row is the observer's decision, as a verifier's is.
        match everything.0 {
            u64::MAX => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    });
    let seconds = start.elapsed().as_secs_f64();
    *kept ^= everything.0 ^ u64::from(end.is_break());
    Ok(seconds)
}

/// A machine with a program in it.
fn load(elf: &[u8]) -> Result<Machine, String> {
    let program = Program::from_elf(elf).map_err(|e| e.to_string())?;
    let config = Config::new(Platform::Virt, program.xlen);
    let mut machine = Machine::new(config, Host::silent()).map_err(|e| e.to_string())?;
    machine.load(program, None).map_err(|e| e.to_string())?;
    Ok(machine)
}

/// Seconds and instructions of one run.
fn time<O: Observer>(elf: &[u8], observer: &mut O) -> Result<(f64, u64), String> {
    let mut machine = load(elf)?;
    let start = Instant::now();
    let stop = machine.run(u64::MAX, observer);
    let seconds = start.elapsed().as_secs_f64();
    match stop {
        Stop::Exit(0) => Ok((seconds, machine.instructions())),
        other => Err(format!("the program did not end well: {other:?}")),
    }
}

/// Seconds of one run of another simulator, starting and ending included.
fn time_spike(spike: &Path, elf: &Path) -> Result<f64, String> {
    let start = Instant::now();
    let status = Command::new(spike)
        .arg("--isa=rv64gc")
        .arg(elf)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|e| format!("{}: {e}", spike.display()))?;
    let seconds = start.elapsed().as_secs_f64();
    if status.success() {
        Ok(seconds)
    } else {
        Err(format!("{} failed on {}", spike.display(), elf.display()))
    }
}

/// The best times of one program.
#[derive(Clone, Copy, Debug)]
struct Best {
    instructions: u64,
    alone: f64,
    taken: f64,
    everything: f64,
    model: f64,
    spike: f64,
}

fn measure(elf: &Path, spike: Option<&Path>, rounds: u32) -> Result<Best, String> {
    let bytes = std::fs::read(elf).map_err(|e| format!("{}: {e}", elf.display()))?;
    let mut best = Best {
        instructions: 0,
        alone: f64::INFINITY,
        taken: f64::INFINITY,
        everything: f64::INFINITY,
        model: f64::INFINITY,
        spike: f64::INFINITY,
    };
    let mut kept = 0;
    for _ in 0..rounds.max(1) {
        let (seconds, instructions) = time(&bytes, &mut NoObserver)?;
        best.instructions = instructions;
        best.alone = best.alone.min(seconds);
        let mut taken = Taken(0);
        best.taken = best.taken.min(time(&bytes, &mut taken)?.0);
        let mut everything = Everything(0);
        best.everything = best.everything.min(time(&bytes, &mut everything)?.0);
        let model = time_model(&bytes, instructions, &mut kept)?;
        best.model = best.model.min(model);
        kept ^= taken.0 ^ everything.0;
        if let Some(spike) = spike {
            best.spike = best.spike.min(time_spike(spike, elf)?);
        }
    }
    std::hint::black_box(kept);
    Ok(best)
}

fn show(name: &str, best: &Best) {
    let rate = |seconds: f64| best.instructions as f64 / seconds / 1e6;
    let loss = |seconds: f64| (1.0 - best.alone / seconds) * 100.0;
    print!(
        "{name:<16} {:>11} {:>6.0} {:>6.0} {:>4.0} % {:>6.0} {:>4.0} % {:>6.0}",
        best.instructions,
        rate(best.alone),
        rate(best.taken),
        loss(best.taken),
        rate(best.everything),
        loss(best.everything),
        rate(best.model),
    );
    if best.spike.is_finite() {
        let ratio = best.spike / best.alone;
        print!(" {:>6.0} {ratio:>5.2}", rate(best.spike));
    }
    println!();
}

/// `speed [--spike PATH] [--rounds N] [ELF...]`.
///
/// # Errors
///
/// Arguments that make no sense, programs that do not end well.
pub fn command(args: &[String]) -> Result<(), String> {
    let mut spike = None;
    let mut rounds = ROUNDS;
    let mut elves = Vec::new();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "--spike" => spike = Some(PathBuf::from(rest.next().ok_or("--spike PATH")?)),
            "--rounds" => {
                let number = rest.next().and_then(|n| n.parse().ok());
                rounds = number.ok_or("--rounds NUMBER")?;
            }
            _ => elves.push(PathBuf::from(arg)),
        }
    }
    if elves.is_empty() {
        let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs");
        elves.extend(PROGRAMS.iter().map(|name| programs.join(name)));
    }
    println!("million instructions a second, best of {rounds}; loss against no observer");
    let other = if spike.is_some() { "  Spike ratio" } else { "" };
    println!("program          instructions alone  taken loss     all   loss  model {other}");
    for elf in &elves {
        let best = measure(elf, spike.as_deref(), rounds)?;
        let name = elf.file_stem().map(|s| s.to_string_lossy().into_owned());
        show(&name.unwrap_or_default(), &best);
    }
    Ok(())
}
