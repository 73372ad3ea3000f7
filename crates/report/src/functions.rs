//! The table of functions.

use crate::about::About;
use crate::columns::Functions;
use crate::strings::Strings;
use hartrace_analyze::{Cost, Coverage, FunctionId, Measure, Profile};
use std::collections::HashMap;

/// The functions of a report, and their numbers in it.
pub(crate) struct Numbered {
    pub(crate) columns: Functions,
    /// Those in the table, in its order.
    pub(crate) ids: Vec<FunctionId>,
    numbers: HashMap<FunctionId, i64>,
    /// Functions that did not fit, and those of them that ran.
    pub(crate) left_out: (usize, usize),
}

impl Numbered {
    /// The numbers of functions in a document that is written already.
    pub(crate) fn known(ids: Vec<FunctionId>) -> Numbered {
        Numbered {
            columns: Functions::default(),
            numbers: ids.iter().copied().zip(0i64..).collect(),
            ids,
            left_out: (0, 0),
        }
    }

    /// The number of a function; -1 if it is not in the table.
    pub(crate) fn number(&self, function: Option<FunctionId>) -> i64 {
        function
            .and_then(|id| self.numbers.get(&id).copied())
            .unwrap_or(-1)
    }
}

/// Functions that ran, the most expensive first, and then the others.
pub(crate) fn functions(
    profile: &Profile,
    coverage: &Coverage,
    about: &About<'_>,
    limit: usize,
    strings: &mut Strings,
) -> Numbered {
    let by = Measure::Instructions;
    let ran = profile.by_function(by);
    let covered: HashMap<FunctionId, (u64, u64)> = coverage
        .functions
        .iter()
        .map(|found| (found.function, (found.insns.hit, found.insns.all)))
        .collect();
    let mut list: Vec<(FunctionId, Cost, Cost, u64)> = ran
        .iter()
        .map(|cost| (cost.function, cost.own, cost.total, cost.calls))
        .collect();
    let known: std::collections::HashSet<FunctionId> = list.iter().map(|row| row.0).collect();
    let never = profile.functions.iter().map(|(id, _)| id);
    let never = never.filter(|id| !known.contains(id) && covered.contains_key(id));
    list.extend(never.map(|id| (id, Cost::default(), Cost::default(), 0)));
    let left_out = list.len().saturating_sub(limit);
    let left_out = (left_out, ran.len().saturating_sub(limit));
    list.truncate(limit);
    let mut columns = Functions::default();
    let mut times: (Vec<u64>, Vec<u64>) = Default::default();
    let mut numbers = HashMap::new();
    for (number, (id, own, total, calls)) in (0i64..).zip(&list) {
        numbers.insert(*id, number);
        let function = profile.functions.get(*id);
        let line = about.places.line(function.start);
        columns.name.push(strings.of(&function.name));
        columns
            .file
            .push(line.map_or(-1, |line| strings.of(line.file)));
        columns.line.push(line.map_or(0, |line| line.line));
        columns.address.push(format!("{:#x}", function.start));
        columns
            .size
            .push(function.end.saturating_sub(function.start));
        columns.own.push(own.insns);
        columns.total.push(total.insns);
        columns.calls.push(*calls);
        times.0.push(own.time);
        times.1.push(total.time);
        let (hit, all) = covered.get(id).copied().unwrap_or_default();
        columns.covered.push(hit);
        columns.insns.push(all);
    }
    if profile.timed {
        columns.self_time = Some(times.0);
        columns.total_time = Some(times.1);
    }
    Numbered {
        columns,
        ids: list.into_iter().map(|row| row.0).collect(),
        numbers,
        left_out,
    }
}
