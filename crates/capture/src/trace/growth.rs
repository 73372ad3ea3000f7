//! How a trace grows with the instructions it reports.

/// Points that are kept; when there are more, every other one is dropped.
const POINTS: usize = 2048;

/// Bytes of a trace by the instructions that they report.
///
/// ```
/// use hartrace_capture::trace::Growth;
///
/// let mut growth = Growth::default();
/// growth.add(1000, 10);
/// growth.add(2000, 30);
/// assert_eq!(growth.intervals(4), (500, vec![5, 5, 10, 10]));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Growth {
    /// Instructions and bytes so far.
    points: Vec<(u64, u64)>,
    /// Points that are left out for each that is kept.
    skip: u32,
    skipped: u32,
    last: (u64, u64),
}

impl Growth {
    /// So many instructions and bytes until now.
    pub fn add(&mut self, insns: u64, bytes: u64) {
        self.last = (insns, bytes);
        if self.skipped < self.skip {
            self.skipped += 1;
            return;
        }
        self.skipped = 0;
        self.points.push(self.last);
        if self.points.len() >= POINTS {
            let mut odd = false;
            self.points.retain(|_| {
                odd = !odd;
                !odd
            });
            self.skip = self.skip * 2 + 1;
        }
    }

    /// The bytes in so many intervals of equal length, and that length in instructions.
    /// Between two points they grow evenly.
    #[must_use]
    pub fn intervals(&self, count: u64) -> (u64, Vec<u64>) {
        let (insns, _) = self.last;
        if insns == 0 || count == 0 {
            return (0, Vec::new());
        }
        let length = insns.div_ceil(count);
        let edges = (1..=insns.div_ceil(length)).map(|n| self.at((n * length).min(insns)));
        let mut before = 0;
        let bytes = edges.map(|bytes| bytes - std::mem::replace(&mut before, bytes));
        (length, bytes.collect())
    }

    /// The bytes after so many instructions.
    fn at(&self, insns: u64) -> u64 {
        let after = self.points.partition_point(|point| point.0 < insns);
        let next = self.points.get(after).copied().unwrap_or(self.last);
        let before = after.checked_sub(1).and_then(|at| self.points.get(at));
        let (from, bytes) = before.copied().unwrap_or_default();
        let share = u128::from(next.1 - bytes) * u128::from(insns - from);
        let share = share / u128::from((next.0 - from).max(1));
        bytes + u64::try_from(share).unwrap_or(0).min(next.1 - bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_are_in_some_interval() {
        let mut growth = Growth::default();
        for n in 0..100_000u64 {
            growth.add(n * 7, n * 3);
            if n.is_power_of_two() {
                let (length, bytes) = growth.intervals(200);
                assert_eq!(bytes.iter().sum::<u64>(), n * 3);
                assert!(bytes.len() as u64 * length >= n * 7);
            }
        }
        assert!(growth.points.len() < POINTS);
    }

    #[test]
    fn nothing_grows() {
        let mut growth = Growth::default();
        assert_eq!(growth.intervals(10), (0, Vec::new()));
        // Messages before the first instruction.
        growth.add(0, 100);
        assert_eq!(growth.intervals(10), (0, Vec::new()));
        growth.add(1, 101);
        assert_eq!(growth.intervals(10), (1, vec![101]));
    }
}
