//! What queue a stream of messages needs to lose nothing.

use alloc::vec::Vec;

use super::PARTS;

/// How full a queue without a limit gets at a drain: the depth at which nothing is
/// lost.
///
/// ```
/// use hartrace_flow::queue::Fill;
///
/// // Half a byte leaves in each cycle.
/// let mut fill = Fill::new(512);
/// for time in [0, 4, 8, 100] {
///     fill.message(10, time);
/// }
/// assert_eq!(fill.deepest(), 26);
/// ```
#[derive(Clone, Debug)]
pub struct Fill {
    drain: u64,
    /// In parts of a byte, as [`Level`](super::Level) counts.
    level: u64,
    deepest: u64,
    time: u64,
}

impl Fill {
    /// An empty queue that so many bytes leave in 1024 cycles.
    #[must_use]
    pub fn new(drain: u32) -> Fill {
        Fill {
            drain: drain.into(),
            level: 0,
            deepest: 0,
            time: 0,
        }
    }

    /// A message of so many bytes at this time.
    pub fn message(&mut self, bytes: usize, time: u64) {
        let cycles = time.saturating_sub(self.time);
        self.time = self.time.max(time);
        let gone = cycles.saturating_mul(self.drain);
        let more = (bytes as u64).saturating_mul(PARTS);
        self.level = self.level.saturating_sub(gone).saturating_add(more);
        self.deepest = self.deepest.max(self.level);
    }

    /// The most bytes that were in the queue, rounded up.
    #[must_use]
    pub fn deepest(&self) -> u64 {
        self.deepest.div_ceil(PARTS)
    }
}

/// The slowest drain at which a queue of a given depth loses nothing.
///
/// A queue overflows at a message if, from some message before it on, more bytes came
/// than the queue holds and than left it in between. So the drain must be at least
/// (bytes from i to j - depth) / (time from i to j) for all messages i before j. Only
/// few i can give the greatest quotient: those since the queue was last empty at the
/// drain found so far, and of them the corners of the lower convex hull of bytes over
/// time. The others are dropped, which keeps the list short.
///
/// ```
/// use hartrace_flow::queue::SmallestDrain;
///
/// let mut drain = SmallestDrain::new(20);
/// for time in [0, 4, 8, 100] {
///     drain.message(10, time);
/// }
/// // 30 bytes in 8 cycles: 10 of them must have left.
/// assert_eq!(drain.get(), Some(1280));
/// ```
#[derive(Clone, Debug)]
pub struct SmallestDrain {
    /// Bytes that the queue holds.
    depth: u64,
    /// Bytes that leave in 1024 cycles; `None` if no drain is enough.
    drain: Option<u64>,
    /// Corners since the queue was last empty: time, and bytes before.
    starts: Vec<(u64, u64)>,
    /// Bytes so far.
    bytes: u64,
    /// What is in the queue at `drain`, in parts of a byte.
    level: u64,
    time: u64,
}

impl SmallestDrain {
    /// Nothing has come yet.
    #[must_use]
    pub fn new(depth: u32) -> SmallestDrain {
        SmallestDrain {
            depth: depth.into(),
            drain: Some(1),
            starts: Vec::new(),
            bytes: 0,
            level: 0,
            time: 0,
        }
    }

    /// Bytes that must leave in 1024 cycles, at least 1; `None` if a burst at one
    /// moment is larger than the queue.
    #[must_use]
    pub fn get(&self) -> Option<u64> {
        self.drain
    }

    /// A message of so many bytes at this time.
    pub fn message(&mut self, bytes: usize, time: u64) {
        let Some(drain) = self.drain else { return };
        let cycles = time.saturating_sub(self.time);
        self.time = self.time.max(time);
        let gone = cycles.saturating_mul(drain);
        self.level = self.level.saturating_sub(gone);
        if self.level == 0 {
            self.starts.clear();
        }
        self.start(self.time, self.bytes);
        self.bytes += bytes as u64;
        self.level += bytes as u64 * PARTS;
        if self.level > self.depth * PARTS {
            self.raise();
        }
    }

    /// Adds a place where a burst may begin.
    fn start(&mut self, time: u64, bytes: u64) {
        if self.starts.last().is_some_and(|last| last.0 == time) {
            return; // the first at a time has all that comes at it
        }
        while let [.., a, b] = self.starts.as_slice() {
            // Between a and the new one, b is on the hull only below their line.
            let to_b = u128::from(b.1 - a.1) * u128::from(time - a.0);
            let to_new = u128::from(bytes - a.1) * u128::from(b.0 - a.0);
            if to_b < to_new {
                break;
            }
            self.starts.pop();
        }
        self.starts.push((time, bytes));
    }

    /// The drain at which the bytes up to now fit, and what the queue then holds.
    fn raise(&mut self) {
        let mut drain = self.drain.unwrap_or(1);
        for &(time, before) in &self.starts {
            let over = (self.bytes - before).saturating_sub(self.depth);
            let parts = over.saturating_mul(PARTS);
            if parts > 0 {
                match self.time - time {
                    0 => {
                        self.drain = None;
                        self.starts = Vec::new();
                        return;
                    }
                    cycles => drain = drain.max(parts.div_ceil(cycles)),
                }
            }
        }
        self.drain = Some(drain);
        let left = |&(time, before): &(u64, u64)| {
            let came = (self.bytes - before).saturating_mul(PARTS);
            came.saturating_sub((self.time - time).saturating_mul(drain))
        };
        self.level = self.starts.iter().map(left).max().unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{Admit, Level, Queue};

    /// A generator of streams: bursts and pauses.
    fn stream(seed: u64, len: usize) -> Vec<(usize, u64)> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut random = move |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let mut time = 0;
        let one = |_| {
            time += match random(8) {
                0 => random(400),
                1 | 2 => 0,
                _ => random(12),
            };
            (1 + random(13) as usize, time)
        };
        (0..len).map(one).collect()
    }

    /// Whether the queue of an encoder loses nothing.
    fn is_lossless(stream: &[(usize, u64)], bytes: u32, drain: u32) -> bool {
        let queue = Queue {
            bytes,
            drain,
            stall: false,
        };
        let mut level = Level::new(queue, 0);
        let mut all = stream.iter();
        all.all(|&(bytes, time)| level.admit(bytes, time) == Admit::Now)
    }

    #[test]
    fn the_deepest_fill_is_the_least_depth_without_loss() {
        for seed in 1..40 {
            let stream = stream(seed, 300);
            for drain in [1, 100, 512, 1000, 2048, 9999] {
                let mut fill = Fill::new(drain);
                stream.iter().for_each(|&(b, t)| fill.message(b, t));
                let depth = fill.deepest() as u32;
                assert!(is_lossless(&stream, depth, drain), "{seed} {drain}");
                assert!(!is_lossless(&stream, depth - 1, drain), "{seed} {drain}");
            }
        }
    }

    #[test]
    fn the_smallest_drain_is_the_least_one_without_loss() {
        for seed in 1..40 {
            let stream = stream(seed, 300);
            for depth in [5, 13, 20, 64, 200, 1000, 4000] {
                let mut drain = SmallestDrain::new(depth);
                stream.iter().for_each(|&(b, t)| drain.message(b, t));
                let Some(drain) = drain.get() else {
                    // No drain is enough.
                    assert!(!is_lossless(&stream, depth, u32::MAX), "{seed} {depth}");
                    continue;
                };
                let drain = u32::try_from(drain).unwrap();
                assert!(is_lossless(&stream, depth, drain), "{seed} {depth}");
                let less = drain > 1 && is_lossless(&stream, depth, drain - 1);
                assert!(!less, "{seed} {depth} {drain}");
            }
        }
    }

    #[test]
    fn only_corners_are_kept() {
        let mut drain = SmallestDrain::new(1_000_000);
        for time in 0..100_000 {
            drain.message(8 + usize::from(time % 7 == 0), time);
        }
        assert!(drain.starts.len() < 100, "{}", drain.starts.len());
    }

    #[test]
    fn time_may_jump_about() {
        let (mut fill, mut drain) = (Fill::new(1024), SmallestDrain::new(10));
        for time in [u64::MAX, 0, 5] {
            fill.message(4, time);
            drain.message(4, time);
        }
        assert_eq!((fill.deepest(), drain.get()), (12, None));
    }
}
