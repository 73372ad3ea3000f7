//! Calls, one by one: how long each function took, and what each place that calls
//! it cost.

use crate::functions::FunctionId;
use crate::stacks::{Cost, How, Left, StackSink};
use hartrace_flow::HartId;
use hartrace_flow::order;
use hdrhistogram::Histogram;
use rustc_hash::FxHashMap;

/// How long the calls of a function took.
#[derive(Clone, Debug, Default)]
pub struct Latency {
    /// Calls that were seen from the call to the return.
    pub calls: u64,
    insns: Option<Histogram<u64>>,
    time: Option<Histogram<u64>>,
}

/// A distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spans {
    /// The shortest.
    pub min: u64,
    /// Half of all are no longer.
    pub p50: u64,
    /// 90 % of all are no longer.
    pub p90: u64,
    /// 99 % of all are no longer.
    pub p99: u64,
    /// The longest.
    pub max: u64,
    /// The sum of all, divided by their number.
    pub mean: f64,
}

/// Longer calls count as this long.
const LONGEST: u64 = 1 << 48;

impl Latency {
    fn add(&mut self, cost: Cost) {
        self.calls += 1;
        record(&mut self.insns, cost.insns);
        if cost.time > 0 || self.time.is_some() {
            record(&mut self.time, cost.time);
        }
    }

    /// Instructions per call. Values over 1000 are exact to three digits.
    #[must_use]
    pub fn insns(&self) -> Spans {
        spans(self.insns.as_ref())
    }

    /// Time per call, to the same precision.
    #[must_use]
    pub fn time(&self) -> Spans {
        spans(self.time.as_ref())
    }
}

/// Adds a value. Three digits are exact: a thousand values for each power of ten.
pub(crate) fn record(spans: &mut Option<Histogram<u64>>, value: u64) {
    if spans.is_none() {
        *spans = Histogram::new(3).ok();
    }
    if let Some(spans) = spans {
        // It grows with what it gets, up to the longest.
        let _ = spans.record(value.min(LONGEST));
    }
}

/// The distribution of values.
pub(crate) fn spans(histogram: Option<&Histogram<u64>>) -> Spans {
    let Some(all) = histogram.filter(|all| !all.is_empty()) else {
        return Spans::default();
    };
    // A quantile is the highest value of its bucket, which may exceed the highest
    // that was recorded.
    let max = all.max();
    let at = |quantile: f64| all.value_at_quantile(quantile).min(max);
    Spans {
        min: all.min(),
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        max,
        mean: all.mean(),
    }
}

/// The [`Latency`] of every function: a [`StackSink`].
///
/// Only calls of which the trace has everything are measured, from the call to the
/// return or to the tail call that ends them. Traps and other threads in between do
/// not count.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    functions: FxHashMap<FunctionId, Latency>,
}

impl Latencies {
    /// The latency of a function; `None` if no whole call of it was seen.
    #[must_use]
    pub fn get(&self, function: FunctionId) -> Option<&Latency> {
        self.functions.get(&function)
    }
}

impl StackSink for Latencies {
    fn left(&mut self, _: HartId, call: &Left) {
        if call.whole && call.how != How::Unwound {
            let latency = self.functions.entry(call.function);
            latency.or_default().add(call.cost);
        }
    }
}

/// What the calls from one place cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteCost {
    /// How often it called.
    pub calls: u64,
    /// What the calls cost, with everything inside them. A call inside another call
    /// of the same function is part of that one.
    pub total: Cost,
}

/// Calls by the instruction that made them and the function that was called: a
/// [`StackSink`].
#[derive(Clone, Debug, Default)]
pub struct CallSites {
    sites: FxHashMap<(u64, FunctionId), SiteCost>,
}

impl CallSites {
    /// The calls, by the instruction that made them.
    #[must_use]
    pub fn sorted(&self) -> Vec<((u64, FunctionId), SiteCost)> {
        let mut all: Vec<_> = self.sites.iter().map(|(key, cost)| (*key, *cost)).collect();
        order::sort_by_key(&mut all, |(key, _)| *key);
        all
    }

    /// Adds those of another trace of the same program; `ids` are the functions here by
    /// those there, as [`Profile::add`](crate::Profile::add) gives them.
    pub fn add(&mut self, other: &CallSites, ids: &[FunctionId]) {
        for ((site, function), cost) in &other.sites {
            let function = ids.get(function.index()).copied().unwrap_or(*function);
            let sum = self.sites.entry((*site, function)).or_default();
            sum.calls += cost.calls;
            sum.total.add(cost.total);
        }
    }
}

impl StackSink for CallSites {
    const NESTING: bool = true;

    fn left(&mut self, _: HartId, call: &Left) {
        if call.site == 0 {
            return;
        }
        let cost = self.sites.entry((call.site, call.function)).or_default();
        cost.calls += 1;
        if !call.nested {
            cost.total.add(call.cost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::{Moment, NodeId};

    fn left(site: u64, insns: u64, whole: bool, nested: bool) -> Left {
        Left {
            function: FunctionId(3),
            node: NodeId::ROOT,
            site,
            cost: Cost { insns, time: 0 },
            how: How::Returned,
            whole,
            nested,
            at: Moment::default(),
        }
    }

    #[test]
    fn quantiles() {
        let mut all = Latencies::default();
        for n in 1..=100 {
            all.left(HartId(0), &left(4, n, true, false));
        }
        all.left(HartId(0), &left(4, 9999, false, false));
        let latency = all.get(FunctionId(3)).unwrap();
        let found = latency.insns();
        assert_eq!(latency.calls, 100);
        assert_eq!((found.min, found.p50, found.p90), (1, 50, 90));
        assert_eq!((found.p99, found.max, found.mean), (99, 100, 50.5));
        assert_eq!(latency.time().max, 0);
        assert!(all.get(FunctionId(4)).is_none());
        // Far beyond what can be counted.
        all.left(HartId(0), &left(4, u64::MAX, true, false));
        assert!(all.get(FunctionId(3)).unwrap().insns().max >= LONGEST);
    }

    #[test]
    fn nested_calls_cost_nothing_more() {
        let mut sites = CallSites::default();
        sites.left(HartId(0), &left(8, 10, true, true));
        sites.left(HartId(0), &left(4, 30, true, false));
        // A call that was not seen.
        sites.left(HartId(0), &left(0, 50, false, false));
        let mut twice = sites.clone();
        let ids: Vec<FunctionId> = (0..4).map(FunctionId).collect();
        twice.add(&sites, &ids);
        let found: Vec<(u64, u64, u64)> = twice
            .sorted()
            .iter()
            .map(|((site, _), cost)| (*site, cost.calls, cost.total.insns))
            .collect();
        assert_eq!(found, [(4, 2, 60), (8, 2, 0)]);
    }

    /// Functions without symbols have other ids in another trace.
    #[test]
    fn functions_are_translated() {
        let mut sites = CallSites::default();
        sites.left(HartId(0), &left(4, 30, true, false));
        let mut all = CallSites::default();
        let ids = [7, 8, 9, 5].map(FunctionId);
        all.add(&sites, &ids);
        let found: Vec<FunctionId> = all.sorted().iter().map(|((_, f), _)| *f).collect();
        assert_eq!(found, [FunctionId(5)]);
    }
}
