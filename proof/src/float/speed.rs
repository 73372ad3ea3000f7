//! Operations per second, those the host may do (to nearest even) and those
//! done in integers (ties to the larger magnitude, which no host has).

use hartrace_hart::float::{F16, F32, F64, Flags, Format, Round};

use super::{Operands, operations};
use crate::bench::{Bench, Report};
use crate::generate::Random;

/// Operands in each repetition; they fit into the first cache.
const SETS: usize = 1 << 10;
/// Times each repetition goes through them.
const TIMES: u64 = 1 << 8;
const UNITS: u64 = SETS as u64 * TIMES;

pub(super) fn report(seed: u64) -> Report {
    let mut bench = Bench::new("ops");
    let mut random = Random::new(seed);
    add::<F16>("f16", &mut bench, &mut random);
    add::<F32>("f32", &mut bench, &mut random);
    add::<F64>("f64", &mut bench, &mut random);
    bench.run(9)
}

fn add<F: Format>(format: &str, bench: &mut Bench<'_>, random: &mut Random) {
    let sets: Vec<Operands> = (0..SETS).map(|_| ordinary::<F>(random)).collect();
    for (name, _, operation) in operations::<F>() {
        for (round, how) in [(Round::Rne, "nearest"), (Round::Rmm, "integer")] {
            let sets = sets.clone();
            bench.measure(&format!("{name} {format} {how}"), UNITS, move || {
                let mut flags = Flags::default();
                let mut sum = 0u64;
                for _ in 0..TIMES {
                    for &set in &sets {
                        sum ^= operation(set, round, &mut flags);
                    }
                }
                (sum, flags)
            });
        }
    }
}

/// Positive numbers of ordinary size, as most programs have them.
fn ordinary<F: Format>(random: &mut Random) -> Operands {
    let mut one = || {
        let field = F::BIAS as u64 - 5 + random.below(10);
        field << F::FRACTION | random.draw() & F::FRACTION_MASK
    };
    Operands {
        a: one(),
        b: one(),
        c: one(),
    }
}
