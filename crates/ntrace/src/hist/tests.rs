use super::*;
use crate::{Layout, Message};
use alloc::vec::Vec;
use hartrace_testkit::Random;
extern crate std;
use std::println;

const KINDS: [RepeatedHistory; 3] = [
    RepeatedHistory::Off,
    RepeatedHistory::Reference,
    RepeatedHistory::On,
];

/// A history and all that came out of it.
struct Bench {
    hist: Hist,
    bodies: Vec<Body<'static>>,
    expanded: Vec<bool>,
    pushed: Vec<bool>,
    /// Bytes of messages and fields.
    bytes: usize,
}

impl Bench {
    fn new(hist_bits: u8, kind: RepeatedHistory, hrepeat_bits: u8) -> Bench {
        Bench {
            hist: Hist::new(hist_bits, kind, hrepeat_bits),
            bodies: Vec::new(),
            expanded: Vec::new(),
            pushed: Vec::new(),
            bytes: 0,
        }
    }

    fn drain(&mut self, from: usize) {
        for body in &self.bodies[from..] {
            let message = Message::new(0, *body);
            let mut bytes = Vec::new();
            message.write(&Layout::default(), &mut bytes);
            self.bytes += bytes.len();
            self.bytes += self.hist.beside as usize;
            let (hist, count) = match *body {
                Body::HistFull { hist } => (hist, 1),
                Body::HistRepeat { hist, count } => (hist, count),
                other => panic!("{other:?}"),
            };
            assert!(hist > 1, "an empty field");
            assert!(hist < 1 << (self.hist.room + 1), "a field too long");
            assert!(count >= 1 && count <= self.hist.max);
            for _ in 0..count {
                expand(hist, &mut self.expanded);
            }
        }
    }

    fn push(&mut self, taken: bool) {
        self.pushed.push(taken);
        let from = self.bodies.len();
        let bodies = &mut self.bodies;
        self.hist.push(taken, &mut |body| bodies.push(body));
        if self.bodies.len() > from {
            self.drain(from);
        }
    }

    fn take(&mut self) -> u64 {
        let from = self.bodies.len();
        let bodies = &mut self.bodies;
        let field = self.hist.take(&mut |body| bodies.push(body));
        self.drain(from);
        assert!(field < 1 << (self.hist.room + 1), "a field too long");
        expand(field, &mut self.expanded);
        // A message without branches has no such field.
        if field > 1 {
            self.bytes += (64 - field.leading_zeros()).div_ceil(6) as usize;
        }
        assert!(self.hist.is_empty());
        assert!(!self.hist.just_filled());
        assert_eq!(self.expanded, self.pushed);
        self.expanded.clear();
        self.pushed.clear();
        field
    }

    fn all(&mut self, branches: &str) {
        for c in branches.chars() {
            self.push(c == '1');
        }
    }
}

fn expand(hist: u64, out: &mut Vec<bool>) {
    let len = 63 - hist.leading_zeros();
    out.extend((0..len).rev().map(|i| hist >> i & 1 != 0));
}

fn field(branches: &str) -> u64 {
    u64::from_str_radix(branches, 2).unwrap() | 1 << branches.len()
}

#[test]
fn a_full_register_is_sent_at_once() {
    let mut bench = Bench::new(32, RepeatedHistory::Off, 0);
    bench.all(&"01".repeat(15));
    assert!(bench.bodies.is_empty() && !bench.hist.just_filled());
    bench.push(true);
    assert!(bench.hist.just_filled() && bench.hist.is_empty());
    assert_eq!(bench.bodies, [full(0xaaaa_aaab)]);
    bench.push(false);
    assert!(!bench.hist.just_filled() && !bench.hist.is_empty());
    assert_eq!(bench.take(), 0b10);
    assert_eq!(bench.take(), 1);
}

#[test]
fn reference_counts_equal_registers() {
    let word = "1101000110100110101110010110101";
    let other = "0101000110100110101110010110100";
    assert_eq!(word.len(), 31);
    let mut bench = Bench::new(32, RepeatedHistory::Reference, 0);
    for _ in 0..3 {
        bench.all(word);
        assert!(bench.hist.just_filled() && bench.bodies.is_empty());
    }
    bench.all(other);
    let repeat = Body::HistRepeat {
        hist: field(word),
        count: 3,
    };
    assert_eq!(bench.bodies, [repeat]);
    bench.all("110");
    assert!(!bench.hist.just_filled());
    assert_eq!(bench.take(), 0b1110);
    assert_eq!(bench.bodies, [repeat, full(field(other))]);
}

#[test]
fn reference_tries_28_before_30() {
    for (period, expect) in [(1, 31), (2, 28), (7, 28), (14, 28), (3, 30), (15, 30)] {
        let all = |len: u32| (0..len).map(|i| i % period == period - 1);
        let mut bench = Bench::new(32, RepeatedHistory::Reference, 0);
        all(310).for_each(|bit| bench.push(bit));
        assert!(bench.bodies.is_empty());
        bench.take();
        // The register is full after 31, 62, and each time by what is missing.
        let hist = all(expect).fold(1, |hist, bit| hist << 1 | u64::from(bit));
        let repeat = Body::HistRepeat { hist, count: 10 };
        assert_eq!(bench.bodies, [repeat], "{period}");
    }
    // Neither.
    let mut bench = Bench::new(32, RepeatedHistory::Reference, 0);
    bench.all(&"00000000001".repeat(31));
    bench.take();
    assert_eq!(bench.bodies.len(), 11);
}

#[test]
fn reference_stops_at_the_largest_count() {
    let mut bench = Bench::new(32, RepeatedHistory::Reference, 2);
    bench.all(&"1".repeat(31 * 7));
    assert_eq!(bench.take(), 1);
    let ones = 0xffff_ffff;
    let three = Body::HistRepeat {
        hist: ones,
        count: 3,
    };
    assert_eq!(bench.bodies, [three, three, full(ones)]);
}

#[test]
fn every_period_is_found() {
    let mut random = Random::new(5);
    for period in 1..=31u32 {
        let pattern = random.draw() & ((1 << period) - 1);
        let bit = |i: u32| pattern >> (i % period) & 1 != 0;
        let mut bench = Bench::new(32, RepeatedHistory::On, 0);
        (0..31 * 1000).for_each(|i| bench.push(bit(i)));
        bench.take();
        assert_eq!(bench.bodies.len(), 1, "{period}: {:?}", bench.bodies);
        // And where it begins late.
        (0..17).for_each(|i| bench.push(i % 3 == 0));
        (0..31 * 1000).for_each(|i| bench.push(bit(i)));
        bench.take();
        assert!(bench.bodies.len() <= 4, "{period}: {:?}", bench.bodies);
    }
}

#[test]
fn an_inner_loop_of_any_length_takes_two_messages() {
    for inner in [20, 31, 32, 45, 62, 63, 99, 5000] {
        let mut bench = Bench::new(32, RepeatedHistory::On, 18);
        for _ in 0..100 {
            (0..inner).for_each(|_| bench.push(true));
            bench.push(false);
        }
        bench.take();
        let most = if inner <= 30 { 2 } else { 200 };
        assert!(bench.bodies.len() <= most, "{inner}: {:?}", bench.bodies);
    }
}

#[test]
fn a_run_ends_with_its_last_branch() {
    let mut bench = Bench::new(32, RepeatedHistory::On, 0);
    bench.all(&"1".repeat(1000));
    assert!(bench.bodies.is_empty() && !bench.hist.is_empty());
    bench.push(false);
    let ones = |count| Body::HistRepeat { hist: 3, count };
    assert_eq!(bench.bodies, [ones(1000)]);
    assert_eq!(bench.take(), 0b10);
    bench.all(&"1".repeat(100));
    assert_eq!(bench.take(), 1);
    assert_eq!(bench.bodies.len(), 2);
    bench.all(&"1".repeat(100));
    bench.hist.clear();
    assert!(bench.hist.is_empty());
}

#[test]
fn short_histories_stay_in_the_field() {
    let mut bench = Bench::new(32, RepeatedHistory::On, 0);
    bench.all("0111111111111");
    assert_eq!(bench.take(), 0b10_1111_1111_1111);
    bench.all("0110100010110111001010101100101");
    assert_eq!(bench.take(), field("0110100010110111001010101100101"));
    assert!(bench.bodies.is_empty());
}

/// Branches as programs make them.
fn structured(random: &mut Random, len: usize) -> Vec<bool> {
    let mut out = Vec::new();
    while out.len() < len {
        match random.below(6) {
            0 => (0..random.below(90)).for_each(|_| out.push(random.below(2) != 0)),
            1 => {
                let bit = random.below(2) != 0;
                (0..random.below(200)).for_each(|_| out.push(bit));
            }
            2 => {
                let (inner, outer) = (random.below(70), random.below(12));
                let period = inner + 1;
                out.extend((0..outer * period).map(|i| i % period != inner));
            }
            3 => {
                let (a, b) = (random.below(20), random.below(20));
                for i in 0..random.below(20) {
                    let inner = if i % 2 == 0 { a } else { b };
                    (0..inner).for_each(|_| out.push(true));
                    out.push(false);
                }
            }
            _ => {
                let period = 1 + random.below(34);
                let pattern = random.draw();
                for i in 0..random.below(300) {
                    let glitch = random.below(150) == 0;
                    out.push((pattern >> (i % period) & 1 != 0) != glitch);
                }
            }
        }
    }
    out.truncate(len);
    out
}

#[test]
fn no_branch_is_lost_or_made_up() {
    let mut random = Random::new(77);
    for kind in KINDS {
        for hist_bits in 2..=32 {
            for hrepeat_bits in [0, 1, 2, 18] {
                let mut bench = Bench::new(hist_bits, kind, hrepeat_bits);
                for every in [3, 40, 200, 2000] {
                    for bit in structured(&mut random, 2000) {
                        bench.push(bit);
                        if random.below(every) == 0 {
                            bench.take();
                        }
                    }
                    bench.take();
                }
            }
        }
    }
}

#[test]
fn a_run_longer_than_hrepeat_is_split() {
    let mut hist = Hist::new(32, RepeatedHistory::On, 18);
    let mut sent = 0u64;
    let mut emit = |body| match body {
        Body::HistRepeat { hist, count } => {
            assert!(count < 1 << 18);
            sent += u64::from(63 - hist.leading_zeros()) * count;
        }
        other => panic!("{other:?}"),
    };
    for _ in 0..10_000_000 {
        hist.push(true, &mut emit);
    }
    let field = hist.take(&mut emit);
    assert_eq!(sent + u64::from(63 - field.leading_zeros()), 10_000_000);
}

/// Bytes of all three for some branches with `take` every so often.
fn sizes(branches: &[bool], every: usize, beside: u32) -> [usize; 3] {
    KINDS.map(|kind| {
        let mut bench = Bench::new(32, kind, 18);
        bench.hist = bench.hist.with_bytes_beside(beside);
        for part in branches.chunks(every) {
            part.iter().for_each(|&bit| bench.push(bit));
            bench.take();
        }
        bench.bytes
    })
}

fn cases() -> Vec<(alloc::string::String, Vec<bool>)> {
    use alloc::format;
    let mut random = Random::new(99);
    let mut cases = Vec::new();
    let n = 20_000;
    cases.push((
        "random".into(),
        (0..n).map(|_| random.below(2) != 0).collect(),
    ));
    for odds in [3, 10, 30, 100] {
        let list = (0..n).map(|_| random.below(odds) != 0).collect();
        cases.push((format!("taken but 1 in {odds}"), list));
    }
    for inner in [2, 5, 10, 20, 30, 31, 40, 61, 62, 99, 1000] {
        let list = (0..n).map(|i| i % (inner + 1) != inner).collect();
        cases.push((format!("inner loop of {inner}"), list));
    }
    for (a, b) in [(3, 5), (10, 12), (14, 15), (20, 25), (40, 50)] {
        let list = (0..n).map(|i| i % (a + b + 2) != a && i % (a + b + 2) != a + b + 1);
        cases.push((format!("inner loops {a}, {b}"), list.collect()));
    }
    for (low, high) in [(2, 10), (10, 40), (30, 200)] {
        let mut list = Vec::new();
        while list.len() < n {
            let inner = low + random.below(high - low + 1);
            (0..inner).for_each(|_| list.push(true));
            list.push(false);
        }
        cases.push((format!("inner loops {low} to {high}"), list));
    }
    for period in 1..=34u64 {
        let mut list = Vec::new();
        while list.len() < n {
            let (pattern, phase) = (random.draw(), random.below(period));
            for i in 0..random.below(40 * period) {
                list.push(pattern >> ((i + phase) % period) & 1 != 0);
            }
        }
        cases.push((format!("period {period}"), list));
    }
    cases.push(("all sorts".into(), structured(&mut random, n)));
    cases
}

/// The table of sizes. `On` is never much longer than the better of the two
/// others.
#[test]
fn on_is_the_shortest() {
    println!("branches, take every, bytes beside: Off, Reference, On");
    for (name, list) in cases() {
        for (every, beside) in [(23, 0), (50, 0), (200, 0), (20_000, 0), (23, 2), (200, 2)] {
            let [off, reference, on] = sizes(&list, every, beside);
            println!("{name:24} {every:6} {beside} {off:9} {reference:9} {on:9}");
            assert!(on * 100 <= off.min(reference) * 101, "{name}");
        }
    }
}
