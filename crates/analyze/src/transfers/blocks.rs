//! Cycles of the code between two transfers.

use super::ways::{Stretch, Way, way};
use super::{Sample, percent};
use crate::places::Places;
use hartrace_flow::Image;
use hartrace_flow::order;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, Write};

/// How often each stretch between two transfers was run through, and how many
/// cycles that took.
///
/// The cycles of a transfer are those since the one before: they belong to the
/// stretch from the target of that one to the source of this one. So the
/// samples must hold everything that was taken; a stretch that no code can go
/// through is refused by [`Blocks::rows`].
#[derive(Debug, Default)]
pub struct Blocks {
    blocks: HashMap<Stretch, Tally>,
    bogus: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    runs: u64,
    counted: u64,
    cycles: u64,
    least: u64,
    most: u64,
}

/// A stretch of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its first instruction.
    pub start: u64,
    /// Its last instruction, or the one that trapped.
    pub end: u64,
    /// A trap ended it, so that the instruction at `end` is not part of it.
    pub trap: bool,
    /// How often it was run through.
    pub runs: u64,
    /// How often of these the cycles are known.
    pub counted: u64,
    /// All its cycles.
    pub cycles: u64,
    /// The fewest and the most cycles of one time.
    pub range: (u64, u64),
    /// Instructions in it, where the code is known.
    pub insns: Option<u64>,
}

impl Block {
    /// Instructions per cycle.
    #[must_use]
    pub(crate) fn ipc(&self) -> Option<f64> {
        let insns = self.insns?.checked_mul(self.counted)?;
        (self.cycles > 0).then(|| insns as f64 / self.cycles as f64)
    }
}

impl Blocks {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Blocks {
        Blocks::default()
    }

    /// Counts the stretches of a sample.
    pub fn add(&mut self, sample: &Sample<'_>) {
        for (later, earlier) in sample.pairs() {
            // Halves of records have no other end.
            let Some(key) = Stretch::between(earlier, later) else {
                continue;
            };
            if key.is_odd() {
                self.bogus += 1;
                continue;
            }
            let tally = self.blocks.entry(key).or_default();
            tally.runs += 1;
            if let Some(cycles) = later.cycles {
                tally.least = match tally.counted {
                    0 => cycles,
                    _ => tally.least.min(cycles),
                };
                tally.most = tally.most.max(cycles);
                tally.counted += 1;
                tally.cycles = tally.cycles.saturating_add(cycles);
            }
        }
    }

    /// The blocks, those with most cycles first, and how many stretches cannot
    /// be: backwards, too long, or through a jump. With the code the
    /// instructions are counted.
    #[must_use]
    pub fn rows(&self, image: Option<&Image>) -> (Vec<Block>, u64) {
        let mut bogus = self.bogus;
        let mut rows = Vec::with_capacity(self.blocks.len());
        for (key, tally) in &self.blocks {
            let insns = match way(image, key) {
                Way::Impossible => {
                    bogus += tally.runs;
                    continue;
                }
                Way::Straight { insns, .. } => Some(insns),
                Way::Unknown => None,
            };
            rows.push(Block {
                start: key.start,
                end: key.end,
                trap: key.trap,
                runs: tally.runs,
                counted: tally.counted,
                cycles: tally.cycles,
                range: (tally.least, tally.most),
                insns,
            });
        }
        order::sort_by_key(&mut rows, |b| {
            (Reverse((b.cycles, b.runs)), b.start, b.end, b.trap)
        });
        (rows, bogus)
    }

    /// Writes a table of blocks, those with most cycles first.
    ///
    /// # Errors
    ///
    /// Failures of `out`.
    pub fn write(
        rows: &[Block],
        top: Option<usize>,
        places: &Places<'_>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let all = rows
            .iter()
            .fold(0u64, |sum, b| sum.saturating_add(b.cycles));
        let runs: u64 = rows.iter().map(|b| b.runs).sum();
        let counted = rows.iter().any(|b| b.counted > 0);
        let cycles = match counted || rows.is_empty() {
            true => format!("{all} cycles"),
            false => "no cycles were counted".to_owned(),
        };
        let blocks = if rows.len() == 1 { "block" } else { "blocks" };
        let times = if runs == 1 { "time" } else { "times" };
        let (n, runs) = (rows.len(), runs.to_string());
        writeln!(out, "{n} {blocks}, run through {runs} {times}, {cycles}\n")?;
        writeln!(
            out,
            "{:>14} {:>7} {:>12} {:>10} {:>8} {:>8} {:>6} {:>6}  block",
            "cycles", "share", "runs", "per run", "least", "most", "insns", "ipc"
        )?;
        for block in rows.iter().take(top.unwrap_or(usize::MAX)) {
            write_row(block, all, places, out)?;
        }
        Ok(())
    }
}

fn write_row(b: &Block, all: u64, places: &Places<'_>, out: &mut impl Write) -> io::Result<()> {
    let known = |text: String| match b.counted {
        0 => "-".to_owned(),
        _ => text,
    };
    let per_run = known(format!("{:.1}", b.cycles as f64 / b.counted.max(1) as f64));
    let insns = b.insns.map_or("-".to_owned(), |n| n.to_string());
    let ipc = b.ipc().map_or("-".to_owned(), |ipc| format!("{ipc:.2}"));
    write!(
        out,
        "{:>14} {:>7} {:>12} {per_run:>10} {:>8} {:>8} {insns:>6} {ipc:>6}  {}",
        known(b.cycles.to_string()),
        percent(b.cycles, all),
        b.runs,
        known(b.range.0.to_string()),
        known(b.range.1.to_string()),
        places.at(b.start),
    )?;
    let to = if b.trap { "up to the trap at" } else { "up to" };
    writeln!(out, " {to} {:#x}", b.end)
}

#[cfg(test)]
mod tests {
    use super::super::{testing, testing_image};
    use super::*;
    use hartrace_flow::Transfer;
    use hartrace_isa::Itype;

    fn after(cycles: u64, source: u64, target: u64, kind: Itype) -> Transfer {
        Transfer {
            cycles: Some(cycles),
            ..testing(source, target, kind)
        }
    }

    fn rows(transfers: &[Transfer], image: Option<&Image>) -> (Vec<Block>, u64) {
        let mut blocks = Blocks::new();
        blocks.add(&Sample {
            transfers,
            ..Sample::default()
        });
        blocks.rows(image)
    }

    #[test]
    fn cycles_belong_to_the_stretch_before_the_transfer() {
        let transfers = [
            after(5, 0x1004, 0x100c, Itype::Taken),
            after(9, 0x100c, 0x1000, Itype::DirectJump),
            after(7, 0x100c, 0x1000, Itype::DirectJump),
            testing(0x2000, 0x1000, Itype::DirectCall),
        ];
        let (found, bogus) = rows(&transfers, Some(&testing_image()));
        assert_eq!(bogus, 0);
        let block = |end, runs, cycles, range, insns| Block {
            start: 0x1000,
            end,
            trap: false,
            runs,
            counted: runs,
            cycles,
            range,
            insns: Some(insns),
        };
        assert_eq!(
            found,
            [
                block(0x100c, 2, 16, (7, 9), 5),
                block(0x1004, 1, 5, (5, 5), 3)
            ]
        );
        assert_eq!(found[0].ipc(), Some(10.0 / 16.0));
    }

    #[test]
    fn an_instruction_that_traps_is_not_counted() {
        let transfers = [
            after(3, 0x1004, 0x2000, Itype::Interrupt),
            after(1, 0x1004, 0x1000, Itype::Taken),
            after(1, 0x1000, 0x1004, Itype::Interrupt),
            testing(0x2000, 0x1000, Itype::TrapReturn),
        ];
        let (found, _) = rows(&transfers, Some(&testing_image()));
        let insns: Vec<_> = found
            .iter()
            .map(|b| (b.start, b.end, b.trap, b.insns))
            .collect();
        assert_eq!(
            insns,
            [
                (0x1000, 0x1004, true, Some(2)),
                (0x1000, 0x1000, true, Some(0)),
                (0x1004, 0x1004, false, Some(1)),
            ]
        );
    }

    #[test]
    fn stretches_that_cannot_be() {
        let transfers = [
            after(1, 0x100e, 0x9000, Itype::Taken),      // through the c.j
            after(1, 0x0800, 0x1000, Itype::Taken),      // backwards
            after(1, 0x9000_0000, 0x1000, Itype::Taken), // far
            testing(0x1000, 0x1000, Itype::Taken),
        ];
        assert_eq!(rows(&transfers, Some(&testing_image())), (Vec::new(), 3));
        // Without the code, only addresses can be compared.
        let (found, bogus) = rows(&transfers, None);
        assert_eq!((found.len(), found[0].insns, bogus), (1, None, 2));
        // Not between two instructions, or outside of the code.
        let transfers = [
            after(1, 0x1006, 0x5000, Itype::Taken),
            after(1, 0x1000, 0x1000, Itype::Taken),
        ];
        assert_eq!(rows(&transfers, Some(&testing_image())).0[0].insns, None);
        let transfers = [
            after(1, 0x5004, 0x1000, Itype::Taken),
            after(1, 0x1000, 0x5000, Itype::Taken),
        ];
        assert_eq!(rows(&transfers, Some(&testing_image())).0[0].insns, None);
    }

    #[test]
    fn halves_of_records_and_missing_counts() {
        let transfers = [
            after(8, 0, 0x1000, Itype::Exception),
            testing(0x1004, 0, Itype::TrapReturn),
            testing(0x1004, 0x1000, Itype::Taken),
            testing(0x1004, 0x1000, Itype::Taken),
        ];
        let (found, bogus) = rows(&transfers, None);
        assert_eq!((found.len(), bogus), (1, 0));
        let one = found[0];
        assert_eq!((one.runs, one.counted, one.ipc()), (2, 0, None));
        let mut out = Vec::new();
        Blocks::write(&found, None, &Places::new(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let expected = "\
1 block, run through 2 times, no cycles were counted

        cycles   share         runs    per run    least     most  insns    ipc  block
             -       -            2          -        -        -      -      -  0x1000 up to 0x1004
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_table() {
        let transfers = [
            after(5, 0x1004, 0x100c, Itype::Taken),
            after(9, 0x100c, 0x1000, Itype::Exception),
            testing(0x2000, 0x1000, Itype::DirectCall),
        ];
        let (found, _) = rows(&transfers, Some(&testing_image()));
        let mut out = Vec::new();
        Blocks::write(&found, Some(1), &Places::new(), &mut out).unwrap();
        let expected = "\
2 blocks, run through 2 times, 14 cycles

        cycles   share         runs    per run    least     most  insns    ipc  block
             9  64.3 %            1        9.0        9        9      4   0.44  0x1000 up to the trap at 0x100c
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
