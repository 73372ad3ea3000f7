//! What the filters of a query say about the rows that it wants.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{Between, InList};
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, Operator, TryCast};
use hartrace_tables::{Index, Table, Zone};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Limits of columns. Rows outside of them are not wanted; those within may be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The least and the greatest value of a column.
    numbers: BTreeMap<String, (u64, u64)>,
    /// The texts that a column may have.
    texts: BTreeMap<String, Vec<String>>,
}

/// Columns by which stretches are left out.
const NUMBERS: [&str; 7] = [
    "hart",
    "context",
    "begin",
    "end",
    "time",
    "begin_time",
    "end_time",
];
const TEXTS: [&str; 2] = ["trace", "function"];

impl Limits {
    /// The limits of filters that all have to be true.
    #[must_use]
    pub fn new<'e>(filters: impl IntoIterator<Item = &'e Expr>) -> Limits {
        let mut limits = Limits::default();
        filters.into_iter().for_each(|filter| limits.add(filter));
        limits
    }

    /// Whether a filter has limits.
    #[must_use]
    pub fn has(filter: &Expr) -> bool {
        Limits::new([filter]) != Limits::default()
    }

    fn add(&mut self, filter: &Expr) {
        match filter {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
                Operator::And => {
                    self.add(left);
                    self.add(right);
                }
                op => {
                    if let (Some(name), Some(value)) = (column(left), literal(right)) {
                        self.compare(name, *op, value);
                    } else if let (Some(value), Some(name), Some(op)) =
                        (literal(left), column(right), op.swap())
                    {
                        self.compare(name, op, value);
                    }
                }
            },
            Expr::Between(Between {
                expr,
                negated: false,
                low,
                high,
            }) => {
                if let (Some(name), Some(low), Some(high)) =
                    (column(expr), literal(low), literal(high))
                {
                    self.compare(name, Operator::GtEq, low);
                    self.compare(name, Operator::LtEq, high);
                }
            }
            Expr::InList(InList {
                expr,
                list,
                negated: false,
            }) => self.among(expr, list),
            _ => {}
        }
    }

    fn compare(&mut self, name: &str, op: Operator, value: &ScalarValue) {
        if let Some(text) = text(value) {
            if op == Operator::Eq {
                self.texts_of(name, vec![text]);
            }
            return;
        }
        let Some(number) = number(value) else { return };
        let (low, high) = match op {
            Operator::Eq => (number, number),
            Operator::Gt => (number.saturating_add(1), u64::MAX),
            Operator::GtEq => (number, u64::MAX),
            Operator::Lt => match number.checked_sub(1) {
                Some(below) => (0, below),
                None => (1, 0), // nothing is less than 0
            },
            Operator::LtEq => (0, number),
            _ => return,
        };
        self.numbers_of(name, low, high);
    }

    fn among(&mut self, expr: &Expr, list: &[Expr]) {
        let Some(name) = column(expr) else { return };
        let values: Option<Vec<&ScalarValue>> = list.iter().map(literal).collect();
        let Some(values) = values else { return };
        let texts: Option<Vec<String>> = values.iter().map(|value| text(value)).collect();
        if let Some(texts) = texts {
            return self.texts_of(name, texts);
        }
        let numbers: Option<Vec<u64>> = values.iter().map(|value| number(value)).collect();
        if let Some(numbers) = numbers {
            let (low, high) = (numbers.iter().min(), numbers.iter().max());
            if let (Some(low), Some(high)) = (low, high) {
                self.numbers_of(name, *low, *high);
            }
        }
    }

    fn numbers_of(&mut self, name: &str, low: u64, high: u64) {
        if NUMBERS.contains(&name) {
            let known = self.numbers.entry(name.to_owned()).or_insert((0, u64::MAX));
            *known = (known.0.max(low), known.1.min(high));
        }
    }

    fn texts_of(&mut self, name: &str, texts: Vec<String>) {
        if TEXTS.contains(&name) {
            let known = self.texts.entry(name.to_owned());
            known
                .and_modify(|known| known.retain(|text| texts.contains(text)))
                .or_insert(texts);
        }
    }

    /// Whether a column may have a wanted value, if `meet` says whether it has one from one
    /// number to another.
    fn allows(&self, name: &str, meet: impl FnOnce(u64, u64) -> bool) -> bool {
        let limits = self.numbers.get(name);
        limits.is_none_or(|(low, high)| meet(*low, *high))
    }

    /// Whether rows of a trace may be wanted.
    #[must_use]
    pub fn allows_trace(&self, name: &str) -> bool {
        let texts = self.texts.get("trace");
        texts.is_none_or(|texts| texts.iter().any(|text| text == name))
    }

    /// Whether rows of a hart may be wanted.
    #[must_use]
    pub fn allows_hart(&self, hart: u32) -> bool {
        let hart = u64::from(hart);
        self.allows("hart", |low, high| (low..=high).contains(&hart))
    }

    /// Whether rows of a table in a stretch may be wanted, which has these zones.
    #[must_use]
    pub fn allow(&self, table: Table, zones: &[Zone], index: &Index) -> bool {
        let of = match table {
            Table::Calls | Table::Traps => table,
            _ => Table::Runs,
        };
        let mut zones = zones.iter().filter(|zone| zone.table == of);
        zones.any(|zone| self.allow_zone(table, zone, index))
    }

    fn allow_zone(&self, table: Table, zone: &Zone, index: &Index) -> bool {
        let has = |name: &str| table.column(name).is_some();
        let is_function = |texts: &Vec<String>| {
            let mut keys = texts.iter().filter_map(|text| index.function(text));
            keys.any(|key| zone.functions.binary_search(&key).is_ok())
        };
        let contexts = match self.numbers.get("context").filter(|_| has("context")) {
            None => true,
            Some((low, high)) => {
                let mut known = zone.contexts.iter().flatten();
                known.any(|context| (low..=high).contains(&context))
            }
        };
        let functions = match self.texts.get("function") {
            Some(texts) if of_calls(table) => is_function(texts),
            _ => true,
        };
        contexts
            && functions
            && self.allows_hart(zone.hart)
            && self.allows("begin", |low, high| zone.begin.meet(low, high))
            && (!has("end_time") || self.allows("end", |low, high| zone.end.meet(low, high)))
            && self.allows("begin_time", |low, high| zone.begin_time.meet(low, high))
            && self.allows("end_time", |low, high| zone.end_time.meet(low, high))
            && (!has("time") || self.allows("time", |low, high| zone.begin_time.meet(low, high)))
    }
}

/// Whether the column `function` is that of a zone.
const fn of_calls(table: Table) -> bool {
    matches!(table, Table::Calls | Table::Traps)
}

/// The column that an expression is, if need be in another type.
fn column(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Column(column) => Some(&column.name),
        Expr::Cast(Cast { expr, .. }) | Expr::TryCast(TryCast { expr, .. }) => column(expr),
        _ => None,
    }
}

fn literal(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value),
        _ => None,
    }
}

fn text(value: &ScalarValue) -> Option<String> {
    match value {
        ScalarValue::Utf8(Some(text))
        | ScalarValue::LargeUtf8(Some(text))
        | ScalarValue::Utf8View(Some(text)) => Some(text.clone()),
        ScalarValue::Dictionary(_, value) => text(value),
        _ => None,
    }
}

fn number(value: &ScalarValue) -> Option<u64> {
    match value {
        ScalarValue::UInt64(value) => *value,
        ScalarValue::UInt32(value) => value.map(u64::from),
        ScalarValue::Int64(value) => value.and_then(|value| u64::try_from(value).ok()),
        ScalarValue::Int32(value) => value.and_then(|value| u64::try_from(value).ok()),
        _ => None,
    }
}
