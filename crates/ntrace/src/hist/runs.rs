//! Finds parts of a window of branches that repeat with some period, and
//! compares their cost in bytes with sending the branches as they are.

use super::low;

/// Part of a window in which each branch is the same as the one a period
/// before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// Branches before it.
    pub(super) start: u32,
    /// Branches in it.
    pub(super) len: u32,
    pub(super) period: u32,
}

/// How a run is cut into messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Split {
    /// Its first branches that go along with those before it.
    pub(super) skip: u32,
    /// Branches of the repeated field: a multiple of the run's period.
    pub(super) period: u32,
    pub(super) count: u64,
    /// Branches that are still held then, including those after the run.
    pub(super) rest: u32,
    cost: u64,
}

/// What the branches after a run will be sent in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// There will be more of them: their share of full fields.
    More,
    /// The `HIST` field of a message that is sent anyway.
    Field,
}

/// Counts bytes, in units of 1/`room`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub(super) room: u32,
    pub(super) max: u64,
    /// Bytes that each message has besides.
    pub(super) beside: u32,
    pub(super) tail: Tail,
}

/// MDO bits of `TCODE` and `RCODE`.
const HEAD: u32 = 10;

impl Cost {
    /// Bytes of a ResourceFull message with this many branches.
    const fn full_bytes(self, branches: u32) -> u32 {
        (HEAD + branches + 1).div_ceil(6) + self.beside
    }

    /// Branches sent as they are, in messages of their own.
    fn plain(self, branches: u32) -> u64 {
        let whole = branches / self.room * self.full_bytes(self.room);
        let part = match branches % self.room {
            0 => 0,
            n => self.full_bytes(n),
        };
        u64::from((whole + part) * self.room)
    }

    fn repeated(self, period: u32, count: u64) -> u64 {
        let count_bytes = (64 - count.leading_zeros()).div_ceil(6);
        u64::from((self.full_bytes(period) + count_bytes) * self.room)
    }

    fn tail(self, branches: u32) -> u64 {
        match self.tail {
            Tail::More => u64::from(branches * self.full_bytes(self.room)),
            // Without branches the message is a shorter one.
            Tail::Field if branches == 0 => 0,
            Tail::Field => {
                let before = (branches - 1) / self.room * self.room;
                let field = (branches - before + 1).div_ceil(6);
                self.plain(before) + u64::from(field * self.room)
            }
        }
    }

    /// Fewest branches that must be left out for a run to pay.
    const fn least(self) -> u32 {
        let alone = self.full_bytes(self.room) - self.beside;
        let least = 4 * self.room / alone;
        if least == 0 { 1 } else { least }
    }

    /// No way to send the run costs less.
    fn at_least(self, run: Run, after: u32) -> u64 {
        self.plain(run.start) + self.repeated(run.period, 2) + self.tail(after)
    }

    /// The cheapest way to send a run of `length` branches, `after` of them
    /// after it; its own `len` does not count.
    pub(super) fn split(self, run: Run, length: u64, after: u32) -> Option<Split> {
        let mut best: Option<Split> = None;
        let mut period = run.period;
        while period <= self.room {
            // To begin later may give a field that is just full, or a smaller
            // rest.
            for skip in 0..run.period {
                let Some(have) = length.checked_sub(u64::from(skip)) else {
                    break;
                };
                let count = (have / u64::from(period)).min(self.max);
                let left = have - count * u64::from(period);
                // The pattern and what follows are in the register.
                if count < 2 || left + u64::from(period) > super::WINDOW {
                    continue;
                }
                let rest = left as u32 + after;
                let cost =
                    self.plain(run.start + skip) + self.repeated(period, count) + self.tail(rest);
                if best.is_none_or(|b| cost < b.cost) {
                    best = Some(Split {
                        skip,
                        period,
                        count,
                        rest,
                        cost,
                    });
                }
            }
            period += run.period;
        }
        best
    }
}

/// The run among the newest `len` branches that saves most, if any does.
pub(super) fn best(bits: u64, len: u32, cost: Cost) -> Option<(Run, Split)> {
    let least = cost.least();
    let mut best: Option<(Run, Split)> = None;
    let mut lowest = cost.tail(len);
    for period in 1..=cost.room {
        let Some(pairs) = len.checked_sub(period).filter(|&n| n >= least) else {
            break;
        };
        // Bit i: branch i is the same as the one a period before.
        let same = low(!(bits ^ bits >> period), pairs);
        // Most windows end here: 15 ones and more fill a whole byte.
        if least >= 15 && !has_full_byte(same) {
            continue;
        }
        let mut starts = long_ones(same, least);
        while starts != 0 {
            let after = starts.trailing_zeros();
            let ones = (same >> after).trailing_ones();
            starts &= u64::MAX << after << ones;
            let run = Run {
                start: pairs - after - ones,
                len: ones + period,
                period,
            };
            // Multiples of a period that is known come to nothing.
            if cost.at_least(run, after) >= lowest {
                continue;
            }
            if let Some(split) = cost.split(run, u64::from(run.len), after)
                && split.cost < lowest
            {
                lowest = split.cost;
                best = Some((run, split));
            }
        }
    }
    best
}

/// Bits that begin, upwards, at least `least` ones.
fn long_ones(mut bits: u64, least: u32) -> u64 {
    let mut have = 1;
    while have < least && bits != 0 {
        let step = have.min(least - have);
        bits &= bits >> step;
        have += step;
    }
    bits
}

/// Whether one of the eight bytes is all ones.
const fn has_full_byte(bits: u64) -> bool {
    const LOWEST: u64 = u64::MAX / 0xff;
    // As one looks for a byte of zeros, in the complement.
    (!bits).wrapping_sub(LOWEST) & bits & LOWEST << 7 != 0
}
