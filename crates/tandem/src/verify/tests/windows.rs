//! From where to where, and when to stop.

use super::*;

fn faulty() -> Bench {
    let mut bench = Bench::new(&[NOP; 20]);
    for i in 0..10 {
        let items: &[Item] = if i % 2 == 0 { &[x(5, i + 1)] } else { &[] };
        bench.insn(NOP, items);
    }
    bench
}

#[test]
fn from_an_instruction_on() {
    let mut bench = faulty();
    bench.options.from = 5;
    let outcome = bench.run();
    assert_eq!(outcome.heard.mismatches, ["6: t0 -/7", "8: t0 -/9"]);
    assert_eq!(outcome.counters.mismatches, 2);
    assert_eq!(outcome.counters.retired, 10);
}

#[test]
fn until_an_instruction() {
    let mut bench = faulty();
    bench.options.until = Some(4);
    let outcome = bench.run();
    assert_eq!(outcome.heard.mismatches, ["0: t0 -/1", "2: t0 -/3"]);
    assert_eq!(outcome.counters.retired, 4);
    assert_eq!(outcome.verifier.model.pc, BASE + 16);
}

/// What is fed behind the end is not looked at, and breaks again.
#[test]
fn behind_the_end() {
    let mut bench = Bench::new(&[NOP; 4]);
    bench.insn(NOP, &[]).insn(NOP, &[]);
    let options = Options {
        until: Some(1),
        ..Options::default()
    };
    let mut verifier = Verifier::new(bench.config.clone(), options, bench.toy.clone());
    let mut heard = Heard::default();
    assert!(verifier.feed(&bench.trace, &mut heard).is_break());
    assert!(verifier.feed(&bench.trace, &mut heard).is_break());
    assert!(verifier.finish(&mut heard).is_break());
    assert_eq!(verifier.counters().retired, 1);
}

#[test]
fn a_reporter_stops_the_verifier() {
    let outcome = faulty().run_in(usize::MAX, 2);
    assert_eq!(outcome.heard.mismatches.len(), 2);
    assert_eq!(outcome.counters.retired, 3);
}

#[test]
fn nothing_at_all() {
    let bench = Bench::new(&[NOP]);
    assert_eq!(bench.agrees().counters, Counters::default());
}
