//! Code that was run through and jumps that were taken, with counts: what
//! profile-guided optimisation is made of.

use super::profgen;
use crate::segments::Segments;
use crate::stacks::{Ran, StackSink};
use hartrace_flow::order;
use hartrace_flow::{Exit, HartId};
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::io::{self, Write};

/// Ranges of code and jumps, each with the number of times. From a whole trace it is a
/// [`StackSink`] and exact; from samples it is what they cover.
#[derive(Clone, Debug, Default)]
pub struct FlowCounts {
    /// By the first and the last instruction.
    ranges: FxHashMap<(u64, u64), u64>,
    /// By source and target. Traps and returns from them are no jumps.
    branches: FxHashMap<(u64, u64), u64>,
}

impl FlowCounts {
    /// The code from one instruction to another was run through.
    pub(crate) fn range(&mut self, first: u64, last: u64) {
        *self.ranges.entry((first, last)).or_default() += 1;
    }

    /// A jump was taken.
    pub(crate) fn branch(&mut self, source: u64, target: u64) {
        *self.branches.entry((source, target)).or_default() += 1;
    }

    /// Adds other counts of the same program.
    pub fn add(&mut self, other: &FlowCounts) {
        for (range, count) in &other.ranges {
            *self.ranges.entry(*range).or_default() += count;
        }
        for (branch, count) in &other.branches {
            *self.branches.entry(*branch).or_default() += count;
        }
    }

    /// Ranges by address: the first instruction, the last one, and the count.
    #[must_use]
    pub fn ranges(&self) -> Vec<((u64, u64), u64)> {
        sorted(&self.ranges)
    }

    /// Jumps by address: source, target, and the count.
    #[must_use]
    pub fn branches(&self) -> Vec<((u64, u64), u64)> {
        sorted(&self.branches)
    }

    /// Whether nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.branches.is_empty()
    }

    /// Writes ranges, addresses and branches as AutoFDO reads them with
    /// `--profiler=text`: by their place in the file of the program. What is outside of it
    /// is left out.
    ///
    /// # Errors
    ///
    /// Failures of `out`.
    pub fn write_autofdo(
        &self,
        segments: &Segments,
        addresses: &[(u64, u64)],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let both = |list: Vec<((u64, u64), u64)>| {
            let inside = list.into_iter().filter_map(|((one, other), count)| {
                Some(((segments.offset(one)?, segments.offset(other)?), count))
            });
            let mut inside: Vec<_> = inside.collect();
            order::sort_by_key(&mut inside, |edge| *edge);
            inside
        };
        let ranges = both(self.ranges());
        writeln!(out, "{}", ranges.len())?;
        for ((begin, end), count) in ranges {
            writeln!(out, "{begin:x}-{end:x}:{count}")?;
        }
        let addresses = addresses
            .iter()
            .filter_map(|(address, count)| Some((segments.offset(*address)?, *count)));
        let mut addresses: Vec<_> = addresses.collect();
        order::sort_by_key(&mut addresses, |counted| *counted);
        writeln!(out, "{}", addresses.len())?;
        for (address, count) in addresses {
            writeln!(out, "{address:x}:{count}")?;
        }
        let branches = both(self.branches());
        writeln!(out, "{}", branches.len())?;
        for ((from, to), count) in branches {
            writeln!(out, "{from:x}->{to:x}:{count}")?;
        }
        Ok(())
    }

    /// Writes samples as `llvm-profgen --perfscript` reads them, each after the number of
    /// times it counts: a jump and a range that starts at its target. Of several ranges
    /// with one start, the shortest are counted after the jumps with the lowest sources.
    /// Ranges that were reached otherwise, by a trap or from the instruction before, come
    /// from outside of the program.
    ///
    /// # Errors
    ///
    /// Failures of `out`.
    pub fn write_profgen(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut jumps = self.branches();
        order::sort_by_key(&mut jumps, |((source, target), _)| (*target, *source));
        let mut jumps = jumps.into_iter().peekable();
        for ((first, last), mut left) in self.ranges() {
            while let Some(((source, target), count)) = jumps.peek_mut()
                && *target <= first
            {
                let times = match *target == first {
                    true => left.min(*count),
                    false => *count,
                };
                if times == 0 {
                    break;
                }
                let range = (*target == first).then_some(last);
                profgen::counted(Some(*source), *target, range, times, out)?;
                *count -= times;
                if range.is_some() {
                    left -= times;
                }
                if *count == 0 {
                    jumps.next();
                }
            }
            if left > 0 {
                profgen::counted(None, first, Some(last), left, out)?;
            }
        }
        for ((source, target), count) in jumps {
            profgen::counted(Some(source), target, None, count, out)?;
        }
        Ok(())
    }
}

pub(super) fn sorted<K: Copy + Ord + Hash>(counts: &FxHashMap<K, u64>) -> Vec<(K, u64)> {
    let mut list: Vec<(K, u64)> = counts.iter().map(|(key, count)| (*key, *count)).collect();
    order::sort_by_key(&mut list, |counted| *counted);
    list
}

impl StackSink for FlowCounts {
    const RUNS: bool = true;

    fn ran(&mut self, _: HartId, ran: &Ran<'_>) {
        let run = ran.run;
        self.range(run.start, run.source());
        if !matches!(run.exit, Exit::Stop | Exit::NotTaken | Exit::TrapReturn) {
            self.branch(run.source(), run.next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jumps are put together with the ranges that start at their targets.
    #[test]
    fn samples_for_profgen() {
        let mut counts = FlowCounts::default();
        let mut add = |jumps: &[(u64, u64)], ranges: &[(u64, u64)]| {
            jumps
                .iter()
                .for_each(|(from, to)| counts.branch(*from, *to));
            ranges
                .iter()
                .for_each(|(from, to)| counts.range(*from, *to));
        };
        add(&[(0x104, 0x200); 3], &[(0x200, 0x204); 2]);
        add(&[(0x108, 0x200); 2], &[(0x200, 0x208); 4]);
        // Nothing is known of what follows the first, or of what came before the other.
        add(&[(0x104, 0x180)], &[(0x300, 0x304)]);
        let mut out = Vec::new();
        counts.write_profgen(&mut out).unwrap();
        let lines = String::from_utf8(out).unwrap();
        let spaced: Vec<String> = lines
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        let end = "/P/-/-/0";
        let one = |count: u32, ip: &str, entries: &[&str]| {
            let entries = entries.iter().map(|entry| format!(" {entry}{end}"));
            [
                count.to_string(),
                format!("{ip}{}", entries.collect::<String>()),
            ]
        };
        let expected = [
            one(1, "180", &["0x104/0x180"]),
            one(2, "204", &["0x204/0x0", "0x104/0x200"]),
            one(1, "208", &["0x208/0x0", "0x104/0x200"]),
            one(2, "208", &["0x208/0x0", "0x108/0x200"]),
            one(1, "208", &["0x208/0x0", "0x0/0x200"]),
            one(1, "304", &["0x304/0x0", "0x0/0x300"]),
        ];
        assert_eq!(spaced, expected.concat());
        assert!(!counts.is_empty() && FlowCounts::default().is_empty());
    }
}
