//! A bench harness for machines that are shared and noisy.
//!
//! Contenders take turns (A B A B ...) so that whatever disturbs the machine
//! disturbs all of them, and every figure comes with its ratio to a baseline
//! measured in the same rounds. Two baselines of our own, one bound by the
//! arithmetic units and one by memory, are measured along with the
//! contenders, so that figures of two machines can be compared.
//!
//! ```
//! use hartrace_proof::bench::Bench;
//!
//! let data = vec![1u8; 1 << 12];
//! let mut bench = Bench::new("bytes");
//! bench.measure("sum", 1 << 12, || data.iter().map(|&b| u64::from(b)).sum::<u64>());
//! bench.measure("max", 1 << 12, || data.iter().max().copied());
//! let report = bench.run(3);
//! assert!(report.ratio("max", "sum").is_some());
//! ```
//!
//! For a figure without any noise, count instructions instead of time:
//!
//! ```text
//! cargo build --release -p hartrace-proof
//! valgrind --tool=callgrind --callgrind-out-file=callgrind.out \
//!     target/release/hartrace-proof generate --speed --steps 1000000
//! callgrind_annotate callgrind.out | head -40
//! ```
//!
//! The run is about fifty times slower; choose the number of steps to match.

use std::fmt;
use std::hint::black_box;
use std::time::Instant;

/// Name of the baseline bound by arithmetic; its unit is one multiplication
/// that waits for the one before.
pub const ALU: &str = "alu baseline";
/// Name of the baseline bound by memory; its unit is one load that waits for
/// the one before, in a table no cache of usual size holds.
pub const MEMORY: &str = "memory baseline";

struct Contender<'a> {
    name: String,
    units: u64,
    work: Box<dyn FnMut() + 'a>,
    seconds: Vec<f64>,
}

/// Contenders that take turns.
pub struct Bench<'a> {
    unit: &'static str,
    contenders: Vec<Contender<'a>>,
}

impl fmt::Debug for Bench<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.contenders.iter().map(|c| &c.name);
        f.debug_list().entries(names).finish()
    }
}

impl<'a> Bench<'a> {
    /// A bench with the two baselines; `unit` names what contenders count.
    #[must_use]
    pub fn new(unit: &'static str) -> Bench<'a> {
        let mut bench = Bench {
            unit,
            contenders: Vec::new(),
        };
        bench.measure(ALU, ALU_UNITS, alu);
        let table = cycle();
        bench.measure(MEMORY, MEMORY_UNITS, move || chase(&table));
        bench
    }

    /// Adds a contender that handles this many units each time it is called.
    /// Its result is kept from being optimised away.
    pub fn measure<T>(&mut self, name: &str, units: u64, mut work: impl FnMut() -> T + 'a) {
        self.contenders.push(Contender {
            name: name.to_owned(),
            units,
            work: Box::new(move || {
                black_box(work());
            }),
            seconds: Vec::new(),
        });
    }

    /// Runs every contender once without counting it, then all of them in
    /// turns. The first contender that was added is the report's baseline.
    #[must_use]
    pub fn run(mut self, repetitions: u32) -> Report {
        for contender in &mut self.contenders {
            (contender.work)();
        }
        for _ in 0..repetitions.max(1) {
            for contender in &mut self.contenders {
                let start = Instant::now();
                (contender.work)();
                contender.seconds.push(start.elapsed().as_secs_f64());
            }
        }
        Report {
            unit: self.unit,
            rows: self
                .contenders
                .into_iter()
                .map(|c| Row {
                    name: c.name,
                    units: c.units,
                    seconds: c.seconds,
                })
                .collect(),
        }
    }
}

/// What one contender did.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Units in each repetition.
    pub units: u64,
    /// Time of each repetition, in order.
    pub seconds: Vec<f64>,
}

impl Row {
    /// Shortest time.
    #[must_use]
    pub fn best(&self) -> f64 {
        self.seconds.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Median time.
    #[must_use]
    pub fn median(&self) -> f64 {
        median(self.seconds.clone())
    }

    /// Units per second at the median.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.units as f64 / self.median().max(f64::MIN_POSITIVE)
    }
}

/// The outcome of [`Bench::run`]; printing it gives a table.
#[derive(Clone, Debug)]
pub struct Report {
    unit: &'static str,
    /// One row for each contender, the two built-in baselines first.
    pub rows: Vec<Row>,
}

impl Report {
    /// The row of a contender.
    #[must_use]
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|r| r.name == name)
    }

    /// How many times as fast, unit for unit, a contender is as another: the
    /// median of the ratios of each round, so that a slow stretch of the
    /// machine, which hits both, cancels out.
    #[must_use]
    pub fn ratio(&self, name: &str, baseline: &str) -> Option<f64> {
        let (row, base) = (self.row(name)?, self.row(baseline)?);
        let rounds = row.seconds.iter().zip(&base.seconds);
        let ratios = rounds.map(|(own, base)| base / own.max(f64::MIN_POSITIVE));
        let per_unit = row.units as f64 / base.units.max(1) as f64;
        Some(median(ratios.collect()) * per_unit)
    }

    /// The first contender that is no built-in baseline.
    fn baseline(&self) -> Option<&str> {
        let own = |r: &&Row| r.name != ALU && r.name != MEMORY;
        self.rows.iter().find(own).map(|r| r.name.as_str())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = format!("{}/s", self.unit);
        writeln!(
            f,
            "{:<24} {:>10} {:>10} {:>14} {:>8} {:>8}",
            "", "best ms", "median ms", rate, "x first", "x alu"
        )?;
        for row in &self.rows {
            let ratio = |to: Option<&str>| to.and_then(|to| self.ratio(&row.name, to));
            writeln!(
                f,
                "{:<24} {:>10.3} {:>10.3} {:>14.0} {:>8.3} {:>8.3}",
                row.name,
                row.best() * 1e3,
                row.median() * 1e3,
                row.rate(),
                ratio(self.baseline()).unwrap_or(f64::NAN),
                ratio(Some(ALU)).unwrap_or(f64::NAN),
            )?;
        }
        Ok(())
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

const ALU_UNITS: u64 = 2_000_000;
const MEMORY_UNITS: u64 = 100_000;
/// Entries of the table the memory baseline walks through: 64 MiB.
const ENTRIES: usize = 1 << 24;

fn alu() -> u64 {
    let mut x = black_box(1u64);
    for i in 0..ALU_UNITS {
        x = x.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ i;
    }
    x
}

/// A table in which each entry names another and all of them form one cycle:
/// a linear congruence of full period, so that no order needs to be drawn.
fn cycle() -> Vec<u32> {
    let next = |i: usize| i.wrapping_mul(0x5851_f42d).wrapping_add(0x2545_f491) % ENTRIES;
    (0..ENTRIES).map(|i| next(i) as u32).collect()
}

fn chase(table: &[u32]) -> u32 {
    let mut at = black_box(0u32);
    for _ in 0..MEMORY_UNITS {
        at = table.get(at as usize).copied().unwrap_or_default();
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, units: u64, seconds: &[f64]) -> Row {
        Row {
            name: name.to_owned(),
            units,
            seconds: seconds.to_vec(),
        }
    }

    /// The example of the module.
    #[test]
    fn contenders_are_compared() {
        let data = vec![1u8; 1 << 12];
        let mut bench = Bench::new("bytes");
        bench.measure("sum", 1 << 12, || {
            data.iter().map(|&b| u64::from(b)).sum::<u64>()
        });
        bench.measure("max", 1 << 12, || data.iter().max().copied());
        let report = bench.run(3);
        assert!(report.ratio("max", "sum").is_some());
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        let report = Report {
            unit: "things",
            rows: vec![
                row("a", 10, &[1.0, 4.0, 1.0]),
                row("b", 20, &[0.5, 2.0, 0.5]),
            ],
        };
        assert_eq!(report.ratio("b", "a"), Some(4.0));
        assert_eq!(report.ratio("a", "a"), Some(1.0));
        assert_eq!(report.ratio("c", "a"), None);
        assert!(report.to_string().contains("things/s"));
    }

    #[test]
    fn the_memory_baseline_visits_every_entry_before_it_repeats() {
        // Full period of a congruence modulo 2^n: odd increment, multiplier
        // one more than a multiple of four.
        assert_eq!(0x5851_f42d % 4, 1);
        assert_eq!(0x2545_f491 % 2, 1);
    }

    #[test]
    fn contenders_take_turns() {
        let order = std::cell::RefCell::new(Vec::new());
        let mut bench = Bench {
            unit: "calls",
            contenders: Vec::new(),
        };
        bench.measure("a", 1, || order.borrow_mut().push('a'));
        bench.measure("b", 1, || order.borrow_mut().push('b'));
        let report = bench.run(2);
        assert_eq!(report.rows.len(), 2);
        drop(report);
        assert_eq!(order.into_inner(), ['a', 'b', 'a', 'b', 'a', 'b']);
    }
}
