//! Groups that are compared without becoming groups: what is found is the same.

use super::*;
use crate::Encoder;
use hartrace_testkit::Random;

/// Single bytes never show a whole group at once, so that nothing is compared briefly, and
/// nothing with a model that runs ahead.
#[test]
fn findings_are_the_same_however_groups_are_compared() {
    let (store, flags) = (s_type(0x23, 3, 10, 5, 8), csrrw(0, 0x001, 5));
    let part = [
        addi(5, 5, 7),
        store,
        load(3, 6, 10, 8),
        fmv_w_x(1, 5),
        flags,
        beq(5, 6, 8),
        NOP,
        addi(5, 5, 1),
    ];
    let mut bench = Bench::new(&part.repeat(40));
    pointers(&mut bench);
    let (mut toy, mut effects) = (bench.toy.clone(), Effects::default());
    let mut encoder = Encoder::new(bench.config.clone()).unwrap();
    for _ in 0..280 {
        let step = toy.step(&mut effects);
        encoder.step(&step, &effects, &mut bench.trace);
    }
    encoder.finish(&mut bench.trace);
    bench.agrees();

    let whole = bench.trace.clone();
    let mut random = Random::new(1);
    let (mut ahead, mut back) = (0, 0);
    for round in 0..200 {
        bench.trace.clone_from(&whole);
        for _ in 0..=random.below(3) {
            let at = random.index(bench.trace.len());
            match random.below(4) {
                0 => bench.trace[at] = random.below(20) as u8,
                1 => drop(bench.trace.remove(at)),
                _ => bench.trace[at] ^= 1 << random.below(8),
            }
        }
        let most = random.index(3);
        let (once, single) = (bench.run_in(usize::MAX, most), bench.run_in(1, most));
        assert_eq!(once.heard, single.heard, "{round}");
        assert_eq!(once.counters, single.counters, "{round}");
        let registers = |outcome: &Outcome| -> Vec<_> {
            let shadow = outcome.verifier.shadow();
            shadow.registers().collect()
        };
        assert_eq!(registers(&once), registers(&single), "{round}");
        assert_eq!(once.verifier.shadow().pc, single.verifier.shadow().pc);
        let runs = (once.verifier.model.ahead, single.verifier.model.ahead);
        assert_eq!(runs.1, (0, 0));
        ahead += runs.0.0;
        back += runs.0.1;
    }
    assert!(ahead > 10_000 && back > 1_000, "{ahead} {back}");
}
