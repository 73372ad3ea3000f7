use hartrace_flow::{Effects, HartId, Insn, Mode, Observer, Step, Trap, Wants};
use hartrace_isa::{Flow, Link};

use super::*;

/// The example of the module.
#[test]
fn a_walk_is_one_of_the_program() {
    let program = Program::new(&Spec::full(), 7);
    let mut replay = Replay::new(&program);
    Driver::new(&program, 7).run(1000, &mut replay);
    assert_eq!(replay.result(), Ok(1000));
}

#[test]
fn every_seed_gives_an_execution_that_could_be() {
    for seed in 0..1500 {
        let program = arbitrary(seed);
        let mut replay = Replay::new(&program);
        Driver::new(&program, seed).run(600, &mut replay);
        if let Err(fault) = replay.result() {
            panic!("seed {seed}: {fault}\n{:#?}", program.spec());
        }
    }
}

#[test]
fn every_shape_gives_an_execution_that_could_be() {
    for name in Spec::NAMES {
        let program = Program::new(&Spec::named(name).unwrap(), 1);
        let mut replay = Replay::new(&program);
        Driver::new(&program, 1).run(20_000, &mut replay);
        assert_eq!(replay.result(), Ok(20_000), "{name}");
    }
}

#[test]
fn every_feature_occurs() {
    let mut sum = Stats::default();
    for seed in 0..200 {
        let program = arbitrary(seed);
        let mut stats = Stats::new(&program);
        Driver::new(&program, seed).run(1500, &mut stats);
        sum.add(&stats);
    }
    let missing: Vec<_> = Feature::ALL
        .iter()
        .filter(|&&f| sum.count(f) < 5)
        .map(|f| f.text())
        .collect();
    assert!(missing.is_empty(), "{missing:?}\n{sum}");
}

#[test]
fn the_steps_do_not_depend_on_how_they_are_asked_for() {
    for seed in 0..40 {
        let program = arbitrary(seed);
        let whole = Driver::new(&program, seed).steps(400);
        let mut driver = Driver::new(&program, seed);
        let mut parts = Vec::new();
        let mut random = Random::new(seed);
        while parts.len() < 400 {
            let count = random.below(9).min(400 - parts.len() as u64);
            parts.extend(driver.steps(count));
        }
        assert_eq!(whole, parts, "seed {seed}");
        let again = arbitrary(seed);
        assert_eq!(again.segments(), program.segments());
        assert_eq!(Driver::new(&again, seed).steps(400), whole);
    }
}

/// FNV over everything in the steps and the program.
struct Digest(u64);

impl Digest {
    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

impl Observer for Digest {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, _: HartId, step: &Step, _: &Effects) {
        let numbers = match step {
            Step::Insn(i) => {
                let code = u64::from(i.mode.code());
                [i.pc, i.next, i.time, i.context.0, u64::from(i.bits), code]
            }
            Step::Trap(t) => {
                let bits = u64::from(t.bits.unwrap_or(0));
                let Trap { epc, handler, .. } = t.trap;
                [
                    epc.unwrap_or(0),
                    handler.unwrap_or(0),
                    t.time,
                    t.context.0,
                    bits,
                    t.trap.tval.unwrap_or(0),
                ]
            }
            Step::Signal(_) => [1; 6],
        };
        for number in numbers {
            self.add(&number.to_le_bytes());
        }
    }
}

#[test]
fn tiny_programs_are_tiny() {
    let spec = Spec::named("tiny").unwrap();
    let sizes: Vec<_> = (0..200)
        .map(|seed| Program::new(&spec, seed).instructions().count())
        .collect();
    let small = sizes.iter().filter(|&&s| (3..=20).contains(&s)).count();
    assert!(small > 140, "{small} of 200: {sizes:?}");
}

#[test]
fn code_meets_the_end_of_the_address_space() {
    let mut met = 0;
    for seed in 0..40 {
        for xlen in [hartrace_isa::Xlen::Rv32, hartrace_isa::Xlen::Rv64] {
            let spec = Spec {
                xlen,
                base: Base::Top,
                ..Spec::full()
            };
            let program = Program::new(&spec, seed);
            let top = xlen.wrap(u64::MAX);
            let ends = program
                .segments()
                .iter()
                .any(|s| s.base.wrapping_add(s.bytes.len() as u64 - 1) == top);
            met += u32::from(ends);
        }
    }
    assert_eq!(met, 80);
}

fn insn(pc: u64, bits: u32, next: u64) -> Step {
    Step::Insn(Insn {
        pc,
        bits,
        next,
        mode: Mode::M,
        ..Insn::default()
    })
}

/// A check that accepts everything would be no check.
#[test]
fn the_replay_refuses_what_cannot_be() {
    let program = Program::new(&Spec::full(), 3);
    let steps = Driver::new(&program, 3).steps(3000);
    let replay = |steps: &[Step]| {
        let mut replay = Replay::new(&program);
        for step in steps {
            replay.step(HartId(0), step, &Effects::default());
        }
        replay.result()
    };
    assert!(replay(&steps).is_ok());
    for (at, step) in steps.iter().enumerate().skip(100).step_by(37) {
        let mut broken = steps.clone();
        match (step, &mut broken[at]) {
            (Step::Insn(_), Step::Insn(insn)) => match at % 3 {
                0 => insn.bits ^= 0x1000,
                1 => insn.next += 2,
                _ => insn.pc -= 2,
            },
            (_, Step::Trap(trap)) => trap.trap.handler = trap.trap.handler.map(|h| h + 2),
            _ => continue,
        }
        assert!(replay(&broken).is_err(), "step {at}: {:?}", broken[at]);
    }
    let entry = program.entry();
    assert!(replay(&[insn(entry + 2, 0x13, entry)]).is_err());
}

#[test]
fn returns_usually_match() {
    let spec = Spec::plain();
    let program = Program::new(&spec, 11);
    let mut stats = Stats::new(&program);
    Driver::new(&program, 11).run(100_000, &mut stats);
    let odd = stats.count(Feature::ReturnLongjmp) + stats.count(Feature::ReturnStray);
    let good = stats.count(Feature::Return);
    assert!(good > 1000 && odd < good / 20, "{stats}");
}

#[test]
fn no_link_registers_are_mixed_up() {
    // Swaps come from their construct alone unless odd pairs are asked for.
    let mut spec = Spec::plain();
    spec.weights.swap = 0;
    for seed in 0..30 {
        let program = Program::new(&spec, seed);
        let swaps = program
            .instructions()
            .filter(|&(_, bits)| Flow::of(bits, program.isa()).link() == Some(Link::Swap))
            .count();
        assert_eq!(swaps, 0, "seed {seed}");
    }
}

#[test]
fn programs_and_steps_are_the_same_on_every_machine() {
    let mut digest = Digest(0xcbf2_9ce4_8422_2325);
    for seed in 0..20 {
        let program = arbitrary(seed);
        for segment in program.segments() {
            digest.add(&segment.base.to_le_bytes());
            digest.add(&segment.bytes);
        }
        Driver::new(&program, seed).run(200, &mut digest);
    }
    // Changes with the generator, never with the machine.
    assert_eq!(digest.0, 0x51a1_9e97_800d_2724, "{:#x}", digest.0);
}
