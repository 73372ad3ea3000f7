//! The memory that was written, as ranges of doublewords.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::follow::Touch;

/// First and last double word, by their address without its three lowest bits.
pub(super) type Range = (u64, u64);

/// Ranges that an interval keeps. Where there are more, those close to each
/// other become one, with what is between them.
const MOST: usize = 512;

/// Ranges that are gathered before they are put in order.
const GATHERED: usize = 1 << 15;

/// Double words touched lately.
const LATELY: usize = 1024;

/// Gathers what is touched.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    ranges: Vec<Range>,
    lately: Box<[u64; LATELY]>,
}

impl Lines {
    pub(super) fn new() -> Lines {
        Lines {
            ranges: Vec::new(),
            // No double word has this number.
            lately: Box::new([u64::MAX; LATELY]),
        }
    }

    #[inline]
    pub(super) fn add(&mut self, touch: &Touch) {
        for (first, last) in spans(touch.addr, touch.len) {
            self.add_one(first);
            if last != first {
                self.add_one(last);
            }
        }
    }

    #[inline]
    fn add_one(&mut self, number: u64) {
        if let Some(slot) = self.lately.get_mut(number as usize % LATELY) {
            if *slot == number {
                return;
            }
            *slot = number;
        }
        match self.ranges.last_mut() {
            Some((_, last)) if last.wrapping_add(1) == number => *last = number,
            _ => self.push(number),
        }
    }

    #[cold]
    fn push(&mut self, number: u64) {
        if self.ranges.len() == GATHERED {
            merge(&mut self.ranges, GATHERED / 2);
        }
        self.ranges.push((number, number));
    }

    /// The ranges so far, in order; then there are none.
    pub(super) fn take(&mut self) -> Box<[Range]> {
        let mut ranges = core::mem::take(&mut self.ranges);
        if !ranges.is_empty() {
            self.lately.fill(u64::MAX);
            merge(&mut ranges, MOST);
        }
        ranges.into_boxed_slice()
    }
}

/// The union of two lists.
pub(super) fn union(one: &[Range], other: &[Range]) -> Box<[Range]> {
    let mut ranges = [one, other].concat();
    merge(&mut ranges, MOST);
    ranges.into_boxed_slice()
}

/// Whether some of these bytes are in a list.
pub(super) fn touches(ranges: &[Range], addr: u64, len: u64) -> bool {
    spans(addr, len).any(|(first, last)| {
        let at = ranges.partition_point(|range| range.1 < first);
        ranges.get(at).is_some_and(|range| range.0 <= last)
    })
}

/// The doublewords of some bytes. After the last address comes the first.
fn spans(addr: u64, len: u64) -> impl Iterator<Item = Range> {
    let first = addr >> 3;
    let last = addr.wrapping_add(len.max(1) - 1) >> 3;
    let (one, other) = match first <= last {
        true => ((first, last), None),
        false => ((first, u64::MAX >> 3), Some((0, last))),
    };
    core::iter::once(one).chain(other)
}

/// Puts ranges in order and joins what is not apart, further apart where there
/// are more than `most`.
fn merge(ranges: &mut Vec<Range>, most: usize) {
    ranges.sort_unstable();
    let mut gap = 1;
    loop {
        ranges.dedup_by(|next, last| {
            let close = next.0 <= last.1.saturating_add(gap);
            if close {
                last.1 = last.1.max(next.1);
            }
            close
        });
        if ranges.len() <= most {
            return;
        }
        gap = gap.saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    use super::super::follow::Value;
    use super::*;
    use hartrace_testkit::Random;

    fn touch(addr: u64, len: u64) -> Touch {
        let value = Value::Lost;
        Touch { addr, len, value }
    }

    #[test]
    fn what_was_touched_is_found() {
        let mut lines = Lines::new();
        for addr in [0x1000, 0x1008, 0x2006, u64::MAX] {
            lines.add(&touch(addr, 4));
        }
        let ranges = lines.take();
        assert_eq!(
            *ranges,
            [
                (0, 0),
                (0x200, 0x201),
                (0x400, 0x401),
                (u64::MAX >> 3, u64::MAX >> 3)
            ]
        );
        assert!(touches(&ranges, 0xff9, 8));
        assert!(!touches(&ranges, 0xff8, 8));
        assert!(touches(&ranges, 0x1fff, 2));
        assert!(touches(&ranges, u64::MAX - 1, 1));
        assert!(!touches(&ranges, 8, 0xff8));
        assert!(touches(&ranges, 0x10, u64::MAX));
        assert!(lines.take().is_empty());
        // Forgotten with the ranges.
        lines.add(&touch(0x1000, 1));
        assert_eq!(lines.take().len(), 1);
    }

    /// However much there is, a list is bounded and has everything.
    #[test]
    fn lists_are_bounded() {
        let mut random = Random::new(7);
        let mut lines = Lines::new();
        let all: Vec<u64> = (0..100_000).map(|_| random.draw()).collect();
        for &addr in &all {
            lines.add(&touch(addr, 8));
        }
        let one = lines.take();
        lines.add(&touch(5, 1));
        let both = union(&one, &lines.take());
        assert!(both.len() <= MOST && !both.is_empty());
        assert!(both.windows(2).all(|w| w[0].1 < w[1].0));
        for &addr in &all {
            assert!(touches(&one, addr, 1) && touches(&both, addr.wrapping_add(7), 1));
        }
        assert!(touches(&both, 0, 8));
    }
}
