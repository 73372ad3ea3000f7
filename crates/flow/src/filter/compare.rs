//! Comparison of ranges of values.

use super::Function;

/// The values from `low` to `high`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) low: u64,
    pub(super) high: u64,
}

impl Function {
    /// Whether any value of the span compares so; both sides masked.
    #[inline]
    pub(super) fn any(self, span: Span, value: u64, mask: u64) -> bool {
        let value = value & mask;
        let (least, most) = span.masked(mask);
        match self {
            Function::Equal => span.has(value, mask),
            Function::NotEqual => least != value || most != value,
            Function::Less => least < value,
            Function::LessOrEqual => least <= value,
            Function::Greater => most > value,
            Function::GreaterOrEqual => most >= value,
            Function::Special => false,
            Function::Always => true,
        }
    }

    /// The values of the span that compare so, in one piece or two: the lower
    /// one first.
    pub(super) fn pieces(self, span: Span, value: u64) -> [Option<Span>; 2] {
        let piece = |low: Option<u64>, high: Option<u64>| {
            let (low, high) = (low?.max(span.low), high?.min(span.high));
            (low <= high).then_some(Span { low, high })
        };
        let all = (Some(0), Some(u64::MAX));
        let (below, above) = (value.checked_sub(1), value.checked_add(1));
        let (at, none) = (Some(value), (None, None));
        let [lower, upper] = match self {
            Function::Equal => [(at, at), none],
            Function::NotEqual => [(all.0, below), (above, all.1)],
            Function::Less => [(all.0, below), none],
            Function::LessOrEqual => [(all.0, at), none],
            Function::Greater => [(above, all.1), none],
            Function::GreaterOrEqual => [(at, all.1), none],
            Function::Special => [none, none],
            Function::Always => [all, none],
        };
        [piece(lower.0, lower.1), piece(upper.0, upper.1)]
    }

    /// Whether all values of the span compare so.
    #[inline]
    pub(super) fn all(self, span: Span, value: u64, mask: u64) -> bool {
        let opposite = match self {
            Function::Equal => Function::NotEqual,
            Function::NotEqual => Function::Equal,
            Function::Less => Function::GreaterOrEqual,
            Function::LessOrEqual => Function::Greater,
            Function::Greater => Function::LessOrEqual,
            Function::GreaterOrEqual => Function::Less,
            Function::Special | Function::Always => return self == Function::Always,
        };
        !opposite.any(span, value, mask)
    }
}

/// Whether two sets of pieces have a value in common.
pub(super) fn meet(a: [Option<Span>; 2], b: [Option<Span>; 2]) -> bool {
    let both = |a: Span, b: Span| a.low <= b.high && b.low <= a.high;
    let mut all = a.into_iter().flatten();
    all.any(|a| b.into_iter().flatten().any(|b| both(a, b)))
}

/// The greatest value of a set of pieces.
pub(super) fn last(pieces: [Option<Span>; 2]) -> Option<u64> {
    pieces.into_iter().flatten().map(|piece| piece.high).max()
}

impl Span {
    pub(super) const fn one(value: u64) -> Span {
        Span {
            low: value,
            high: value,
        }
    }

    /// The least and the greatest value under the mask.
    #[inline]
    fn masked(self, mask: u64) -> (u64, u64) {
        if mask == u64::MAX || self.low == self.high {
            return (self.low & mask, self.high & mask);
        }
        // What is greatest is least among the complements.
        let mirrored = Span {
            low: !self.high,
            high: !self.low,
        };
        (self.least(mask), mask ^ mirrored.least(mask))
    }

    fn least(self, mask: u64) -> u64 {
        let parts = self.low ^ self.high;
        if parts == 0 {
            return self.low & mask;
        }
        // The highest bit in which the ends differ: `high` has it.
        let top = 1u64 << (63 - parts.leading_zeros());
        let common = self.low & !(top | (top - 1)) & mask;
        if mask & top == 0 {
            // From `top` on with zeros after it.
            return common;
        }
        // After the common part: `low` itself, or what exceeds it in a bit
        // below the top.
        let (low, mask) = (self.low & (top - 1), mask & (top - 1));
        let mut least = low & mask;
        let mut bit = top >> 1;
        while bit != 0 {
            if low & bit == 0 {
                let above = low & !(bit | (bit - 1));
                least = least.min((above | bit) & mask);
            }
            bit >>= 1;
        }
        common | least
    }

    /// Whether a value of the span is `value` under the mask.
    #[inline]
    fn has(self, value: u64, mask: u64) -> bool {
        if mask == u64::MAX {
            return self.low <= value && value <= self.high;
        }
        let differs = (self.low ^ value) & mask;
        if differs == 0 {
            return true;
        }
        // The next such value after `low`: it exceeds it in one bit, is the
        // same above and least below.
        (0..64)
            .map(|n| 1u64 << n)
            .find(|bit| {
                let above = !(bit | (bit - 1));
                self.low & bit == 0 && differs & above == 0 && (mask & bit == 0 || value & bit != 0)
            })
            .is_some_and(|bit| {
                let above = self.low & !(bit | (bit - 1));
                (above | bit | (value & (bit - 1))) <= self.high
            })
    }
}
