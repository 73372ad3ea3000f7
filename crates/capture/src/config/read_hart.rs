//! `[hart]` of a TOML document.

use super::hart::MACHINES;
use super::read::{Reader, Value, integer};
use super::{COSTS, Hart, Setting};
use crate::memory::MemoryRange;
use crate::quantity::parse_count;
use std::collections::BTreeMap;
use toml::de::{DeTable, DeValue};

const HART: &[&str] = &[
    "machine",
    "memory",
    "misaligned",
    "update_ad",
    "semihosting",
    "cycles_per_tick",
    "max_insns",
    "cost",
];

impl Reader {
    pub(super) fn hart(&mut self, table: &DeTable<'_>) -> Hart {
        self.known(table, HART, "[hart]");
        Hart {
            machine: self.get(table, "machine", |r, n, v| r.one_of(n, v, MACHINES)),
            memory: self.get(table, "memory", Reader::memory),
            misaligned: self.get(table, "misaligned", Reader::boolean),
            update_ad: self.get(table, "update_ad", Reader::boolean),
            semihosting: self.get(table, "semihosting", Reader::boolean),
            cycles_per_tick: self.get(table, "cycles_per_tick", |r, n, v| {
                r.number(n, v, 1..=1_000_000_000)
            }),
            max_insns: self.get(table, "max_insns", Reader::count),
            cost: self.costs(table),
        }
    }

    fn costs(&mut self, hart: &DeTable<'_>) -> BTreeMap<&'static str, Setting<u8>> {
        let table = match hart.get("cost").map(|value| (value, value.get_ref())) {
            None => return BTreeMap::new(),
            Some((_, DeValue::Table(table))) => table,
            Some((value, _)) => {
                self.refuse::<()>("cost", value, "a section: write [hart.cost]");
                return BTreeMap::new();
            }
        };
        let names: Vec<&'static str> = COSTS.iter().map(|cost| cost.0).collect();
        self.known(table, &names, "[hart.cost]");
        let costs = COSTS.iter().filter_map(|&(name, least)| {
            let least = u64::from(least);
            let cost = self.get(table, name, |r, n, v| r.number(n, v, least..=255))?;
            Some((name, cost))
        });
        costs.collect()
    }

    fn memory(&mut self, name: &'static str, value: &Value<'_>) -> Option<Vec<MemoryRange>> {
        let expected = "\"BASE:SIZE\" such as \"0x80000000:256M\"";
        if value
            .get_ref()
            .as_array()
            .is_some_and(|list| list.is_empty())
        {
            return self.refuse(name, value, &format!("at least one {expected}"));
        }
        self.list(name, value, expected, |reader, name, item| {
            let text = item.get_ref().as_str();
            let range = text.and_then(MemoryRange::parse);
            range.or_else(|| reader.refuse(name, item, expected))
        })
    }

    /// A number, or a string with a unit.
    pub(super) fn count(&mut self, name: &'static str, value: &Value<'_>) -> Option<u64> {
        let count = match value.get_ref() {
            DeValue::String(text) => parse_count(text),
            _ => integer(value),
        };
        count.or_else(|| self.refuse(name, value, "a number such as 1000000 or \"10M\""))
    }
}
