//! The costs of source lines.

use super::{InsnCosts, Profile};
use crate::places::Places;
use crate::stacks::{Cost, Measure};
use hartrace_flow::order;
use std::collections::BTreeMap;

/// What the instructions of a source line cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineCost {
    /// The file, as the compiler was told.
    pub file: String,
    /// Counted from 1.
    pub line: u32,
    /// How often the instruction of it that ran most often did.
    pub count: u64,
    /// What all its instructions cost.
    pub own: Cost,
}

impl Profile {
    /// The cost of each line that ran, the most expensive first; `insns` are the
    /// costs of all instructions. Code without a line is left out.
    #[must_use]
    pub fn by_line(&self, insns: &InsnCosts, places: &Places<'_>, by: Measure) -> Vec<LineCost> {
        let mut lines: BTreeMap<(&str, u32), (u64, Cost)> = BTreeMap::new();
        let (Some(low), Some(high)) = (
            insns.keys().map(|key| key.1).min(),
            insns.keys().map(|key| key.1).max(),
        ) else {
            return Vec::new();
        };
        let ranges = places.line_ranges(low, high.saturating_add(1));
        for (&(_, pc), cost) in insns {
            if let Some(line) = ranges.at(pc) {
                let (count, own) = lines.entry((line.file, line.line)).or_default();
                *count = cost.insns.max(*count);
                own.add(*cost);
            }
        }
        let mut list: Vec<LineCost> = lines
            .into_iter()
            .map(|((file, line), (count, own))| LineCost {
                file: file.to_owned(),
                line,
                count,
                own,
            })
            .collect();
        order::sort_by_key(&mut list, |l| std::cmp::Reverse(l.own.of(by)));
        list
    }
}
