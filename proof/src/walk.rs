//! How fast the walk alone goes: a recorded outcome list over a big program,
//! replayed to a consumer that counts.

use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::Instant;

use hartrace_flow::{
    Blocks, Consumer, Event, HartId, History, Image, Rules, Run, SpaceId, Stop, UNCOUNTED, Walk,
};

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

/// What a walk was told: branch outcomes in words of 64, jump targets apart.
#[derive(Default)]
struct Recording {
    outcomes: Vec<u64>,
    targets: Vec<u64>,
    start: u64,
}

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let [elf, pcs] = args else {
        return Err("usage: walk ELF PCLIST".into());
    };
    let file = std::fs::read(elf).map_err(|e| format!("{elf}: {e}"))?;
    let image = Image::from_elf(&file).map_err(|e| format!("{elf}: {e}"))?;
    let text = std::fs::read_to_string(pcs).map_err(|e| format!("{pcs}: {e}"))?;
    let pcs: Vec<u64> = text
        .lines()
        .filter_map(|l| u64::from_str_radix(l.trim_start_matches("0x"), 16).ok())
        .skip_while(|&pc| image.fetch(SpaceId::FIRST, pc).is_none())
        .collect();
    let recording = record(&image, &pcs)?;
    let rounds = 1_000_000_000 / pcs.len() + 1;
    for _ in 0..5 {
        let start = Instant::now();
        let mut count = Count::default();
        replay(&image, &recording, rounds, &mut count);
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{} instructions in {} runs, {seconds:.3} s, {:.0} M instructions/s, {:.1} ns/run",
            black_box(count.insns),
            count.runs,
            count.insns as f64 / seconds / 1e6,
            seconds / count.runs as f64 * 1e9
        );
    }
    Ok(())
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
            Stop::Branch => drop(walk.branch(&mut blocks, false, &mut count)),
            Stop::Target(_) => drop(walk.target(&mut blocks, 0, &mut count)),
            _ => {}
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
                        let _ = walk.target(&mut blocks, to, out);
                    }
                    _ => {
                        let Some(&to) = targets.next() else { return };
                        walk.restart(&mut blocks, to);
                    }
                }
            }
        }
    }
}
