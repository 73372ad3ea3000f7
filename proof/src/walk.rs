//! The speed of the walk alone: a recorded list of outcomes over a large
//! program, replayed to a consumer that counts.

use std::ops::ControlFlow;

use hartrace_flow::{
    Blocks, Consumer, Event, HartId, History, Image, Rules, Run, SpaceId, Step, Stop, UNCOUNTED,
    Walk,
};
use hartrace_proof::bench::Bench;
use hartrace_proof::generate::{Driver, Program, Spec};

/// Counts instructions and runs.
#[derive(Default)]
pub(crate) struct Count {
    /// Instructions given out.
    pub(crate) insns: u64,
    /// Runs given out.
    pub(crate) runs: u64,
}

impl Consumer for Count {
    fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
        if let Event::Run(run) = event {
            self.insns += u64::from(run.insns);
        }
        ControlFlow::Continue(())
    }

    #[inline]
    fn runs(&mut self, _: HartId, runs: &[Run]) -> ControlFlow<()> {
        for run in runs {
            self.insns += u64::from(run.insns);
        }
        self.runs += runs.len() as u64;
        ControlFlow::Continue(())
    }
}

/// What a walk was reported: branch outcomes in words of 64, jump targets apart.
#[derive(Default)]
struct Recording {
    outcomes: Vec<u64>,
    targets: Vec<u64>,
    start: u64,
}

/// `walk [--once] [ELF PCLIST]`: a recorded run, or else one of a big generated
/// program. `--once` replays it a single time, to count instructions by.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let (once, args) = match args {
        [flag, rest @ ..] if flag == "--once" => (true, rest),
        _ => (false, args),
    };
    let (image, pcs) = match args {
        [] => generated(),
        [elf, pcs] => read(elf, pcs)?,
        _ => return Err("usage: walk [--once] [ELF PCLIST]".into()),
    };
    let recording = record(&image, &pcs)?;
    if once {
        let mut count = Count::default();
        replay(&image, &recording, 1, &mut count);
        println!("{} instructions in {} runs", count.insns, count.runs);
        return Ok(());
    }
    verify(&image, &recording, &pcs)?;
    let rounds = 200_000_000 / pcs.len() + 1;
    let mut once = Count::default();
    replay(&image, &recording, 1, &mut once);
    println!(
        "{} instructions in {} runs, {} targets, each measurement {rounds} times over",
        once.insns,
        once.runs,
        recording.targets.len()
    );
    let mut bench = Bench::new("instructions");
    bench.measure("walk", once.insns * rounds as u64, || {
        let mut count = Count::default();
        replay(&image, &recording, rounds, &mut count);
        count.insns
    });
    print!("{}", bench.run(9));
    Ok(())
}

fn read(elf: &str, pcs: &str) -> Result<(Image, Vec<u64>), String> {
    let file = std::fs::read(elf).map_err(|e| format!("{elf}: {e}"))?;
    let image = Image::from_elf(&file).map_err(|e| format!("{elf}: {e}"))?;
    let text = std::fs::read_to_string(pcs).map_err(|e| format!("{pcs}: {e}"))?;
    let pcs = text
        .lines()
        .filter_map(|l| u64::from_str_radix(l.trim_start_matches("0x"), 16).ok())
        .skip_while(|&pc| image.fetch(SpaceId::FIRST, pc).is_none())
        .collect();
    Ok((image, pcs))
}

fn generated() -> (Image, Vec<u64>) {
    let spec = Spec {
        functions: 200,
        blocks: 20,
        ..Spec::named("plain").unwrap_or_else(Spec::plain)
    };
    let program = Program::new(&spec, 1);
    let steps = Driver::new(&program, 1).steps(10_000_000);
    let pcs = steps.iter().filter_map(|s| match s {
        Step::Insn(insn) => Some(insn.pc),
        _ => None,
    });
    (program.image().clone(), pcs.collect())
}

/// The replay must give the very pcs it was recorded from.
fn verify(image: &Image, recording: &Recording, pcs: &[u64]) -> Result<(), String> {
    struct Compare<'a> {
        image: &'a Image,
        pcs: std::slice::Iter<'a, u64>,
        equal: bool,
    }
    impl Consumer for Compare<'_> {
        fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
            if let Event::Run(run) = event {
                let insns = self
                    .image
                    .insns(SpaceId::FIRST, run.start, run.insns.into());
                for (pc, _) in insns {
                    self.equal &= self.pcs.next() == Some(&pc);
                }
            }
            ControlFlow::Continue(())
        }
    }
    let mut compare = Compare {
        image,
        pcs: pcs.iter(),
        equal: true,
    };
    replay(image, recording, 1, &mut compare);
    if compare.equal {
        Ok(())
    } else {
        Err("the replay is not the recording: are there traps inside straight code?".into())
    }
}

/// Finds out what a trace would have to tell for these pcs.
fn record(image: &Image, pcs: &[u64]) -> Result<Recording, String> {
    let &start = pcs.first().ok_or("no pcs in the image")?;
    let mut rec = Recording {
        start,
        ..Recording::default()
    };
    let mut blocks = Blocks::new(image, Rules::default());
    let mut walk = Walk::new(HartId(0));
    walk.restart(&mut blocks, start);
    let mut count = Count::default();
    let (mut word, mut len) = (0u64, 0u32);
    loop {
        let mut unlimited = UNCOUNTED;
        let stop = walk.advance(
            &mut blocks,
            &mut History::default(),
            &mut unlimited,
            &mut count,
        );
        let branch = stop == Stop::Branch;
        match stop {
            Stop::Branch => {
                walk.branch(&mut blocks, false, &mut count);
            }
            Stop::Target(_) => {
                walk.target(&mut blocks, 0, &mut count);
            }
            // Lists of user programs have the system calls they made.
            Stop::Trap => {
                walk.retire(&mut blocks, &mut count);
            }
            // The program ends in a loop of its own: so does the recording.
            Stop::Endless => break,
            other => return Err(format!("{other:?} at {:#x}", walk.pc(&blocks))),
        }
        let Some(&next) = pcs.get(count.insns as usize) else {
            break;
        };
        if branch {
            word |= u64::from(next != walk.pc(&blocks)) << len;
            len += 1;
            if len == 64 {
                rec.outcomes.push(word);
                (word, len) = (0, 0);
            }
        } else {
            rec.targets.push(next);
        }
        walk.restart(&mut blocks, next);
    }
    Ok(rec)
}

#[inline(never)]
fn replay(image: &Image, rec: &Recording, rounds: usize, out: &mut impl Consumer) {
    let mut blocks = Blocks::new(image, Rules::default());
    let mut walk = Walk::new(HartId(0));
    for _ in 0..rounds {
        walk.restart(&mut blocks, rec.start);
        let mut targets = rec.targets.iter();
        for &word in &rec.outcomes {
            let mut history = History::new(word, 64);
            loop {
                let mut unlimited = UNCOUNTED;
                match walk.advance(&mut blocks, &mut history, &mut unlimited, out) {
                    Stop::Branch => break,
                    Stop::Target(_) => {
                        let Some(&to) = targets.next() else { return };
                        walk.target(&mut blocks, to, out);
                    }
                    _ => {
                        let Some(&to) = targets.next() else { return };
                        walk.retire(&mut blocks, out);
                        walk.restart(&mut blocks, to);
                    }
                }
            }
        }
    }
}
