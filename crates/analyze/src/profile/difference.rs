//! A profile beside an earlier one.

use super::Profile;
use crate::stacks::Measure;
use hartrace_flow::order;
use std::collections::BTreeMap;

/// A function in two profiles, by its name: before and now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionChange {
    /// Its name.
    pub name: String,
    /// Its own cost.
    pub own: (u64, u64),
    /// How often it was called.
    pub calls: (u64, u64),
}

impl FunctionChange {
    /// How much more it costs now.
    #[must_use]
    pub fn change(&self) -> i128 {
        i128::from(self.own.1) - i128::from(self.own.0)
    }
}

impl Profile {
    /// What changed since an earlier profile, perhaps of another program: functions by
    /// name, the biggest change first.
    #[must_use]
    pub fn changes_since(&self, before: &Profile, by: Measure) -> Vec<FunctionChange> {
        let mut all: BTreeMap<String, FunctionChange> = BTreeMap::new();
        let mut add = |profile: &Profile, is_now: bool| {
            for cost in profile.by_function(by) {
                let name = &profile.functions.get(cost.function).name;
                let change = all.entry(name.clone()).or_insert_with(|| FunctionChange {
                    name: name.clone(),
                    own: (0, 0),
                    calls: (0, 0),
                });
                let (own, calls) = match is_now {
                    true => (&mut change.own.1, &mut change.calls.1),
                    false => (&mut change.own.0, &mut change.calls.0),
                };
                *own += cost.own.of(by);
                *calls += cost.calls;
            }
        };
        add(before, false);
        add(self, true);
        let mut list: Vec<FunctionChange> = all.into_values().collect();
        order::sort_by_key(&mut list, |change| {
            std::cmp::Reverse(change.change().unsigned_abs())
        });
        list
    }
}
