//! Gaps of a timeline.

use super::{GapSpan, TimelineSink};

/// The first gaps of a trace, and how many there are.
#[derive(Clone, Debug)]
pub struct GapTable {
    /// Those that are kept, in the order of the trace.
    pub gaps: Vec<GapSpan>,
    /// All of them.
    pub count: u64,
    limit: usize,
}

impl GapTable {
    /// Keeps so many.
    #[must_use]
    pub fn new(limit: usize) -> GapTable {
        GapTable {
            gaps: Vec::new(),
            count: 0,
            limit,
        }
    }
}

impl TimelineSink for GapTable {
    fn gap(&mut self, gap: &GapSpan) {
        self.count += 1;
        if self.gaps.len() < self.limit {
            self.gaps.push(*gap);
        }
    }
}
