//! How a trace grows with the instructions it reports.

/// Points that are kept; when there are more, those that are closest together are dropped.
const POINTS: usize = 2048;

/// Steps in which the first half of what was read is decoded: a trace of any size grows in
/// many small steps.
const STEPS: u64 = 4096;

/// Bytes of a trace by the instructions that they report: those of a message are spread
/// over its instructions.
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
    /// Instructions, and the bytes after which they are known.
    points: Vec<(u64, u64)>,
    /// Bytes from one point to the next at least.
    apart: u64,
    last: (u64, u64),
}

impl Growth {
    /// How many bytes to decode next, of no more than `most`, if the growth of a trace is
    /// wanted exactly and so many are done.
    pub(super) fn step(done: u64, most: usize) -> usize {
        let step = usize::try_from(done / STEPS).unwrap_or(most);
        step.clamp(1, most)
    }

    /// So many instructions and bytes until now.
    pub fn add(&mut self, insns: u64, bytes: u64) {
        self.last = (insns, bytes);
        let (before, from) = self.points.last().copied().unwrap_or_default();
        // Bytes that report nothing belong to the instructions after them.
        if insns == before || bytes - from < self.apart {
            return;
        }
        self.points.push(self.last);
        while self.points.len() >= POINTS {
            self.thin();
        }
    }

    /// Doubles the distance of the points.
    fn thin(&mut self) {
        self.apart = (self.apart * 2).max(1);
        let (apart, mut from) = (self.apart, 0);
        self.points.retain(|point| {
            let keeps = point.1 - from >= apart;
            if keeps {
                from = point.1;
            }
            keeps
        });
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
        if insns >= self.last.0 {
            return self.last.1;
        }
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

    /// A message of many instructions between two of few, byte by byte.
    #[test]
    fn bytes_are_spread_over_the_instructions_of_their_message() {
        let mut growth = Growth::default();
        let messages: [(u64, u64); 4] = [(10, 5), (200, 2), (10, 6), (180, 3)];
        let (mut insns, mut bytes) = (0, 0);
        for (reported, length) in messages {
            for _ in 0..length {
                growth.add(insns, bytes);
                bytes += 1;
            }
            insns += reported;
            growth.add(insns, bytes);
        }
        // An end that reports nothing.
        growth.add(400, 20);
        let expected = [5, 0, 0, 0, 0, 1, 0, 0, 0, 0, 7, 0, 0, 1, 0, 0, 1, 0, 0, 5];
        assert_eq!(growth.intervals(20), (20, expected.to_vec()));
    }

    #[test]
    fn steps_grow_with_the_trace() {
        let steps = [0, 4095, 8192, 1 << 30].map(|done| Growth::step(done, 4096));
        assert_eq!(steps, [1, 1, 2, 4096]);
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
