//! `[filter]` of a TOML document.

use super::Filter;
use super::filter::{MODES, Span, TRAPS};
use super::read::{Reader, Value, integer};
use hartrace_flow::Mode;
use hartrace_flow::filter::{Impdef, Match, mode_bits};
use toml::de::{DeTable, DeValue};

const FILTER: &[&str] = &["address", "modes", "context", "any"];
const ANY: &[&str] = &[
    "address",
    "from",
    "until",
    "modes",
    "context",
    "tval",
    "causes",
    "trap",
    "impdef",
    "impdef_mask",
];

impl Reader {
    pub(super) fn filter(&mut self, table: &DeTable<'_>) -> Filter {
        self.known(table, FILTER, "[filter]");
        Filter {
            address: self.get(table, "address", Reader::spans),
            modes: self.get(table, "modes", Reader::modes),
            context: self.get(table, "context", Reader::spans),
            any: self.get(table, "any", |reader, name, value| {
                let what = "sections: write [[filter.any]]";
                reader.list(name, value, what, Reader::one_filter)
            }),
        }
    }

    fn spans(&mut self, name: &'static str, value: &Value<'_>) -> Option<Vec<Span>> {
        self.some(name, value)?;
        self.list(name, value, "values", Reader::span)
    }

    fn modes(&mut self, name: &'static str, value: &Value<'_>) -> Option<Vec<Mode>> {
        self.some(name, value)?;
        self.list(name, value, "modes", Reader::mode)
    }

    /// Of either case, as on the command line.
    fn mode(&mut self, name: &'static str, value: &Value<'_>) -> Option<Mode> {
        let text = value.get_ref().as_str().unwrap_or_default();
        let named = MODES.iter().find(|m| m.0.eq_ignore_ascii_case(text));
        named.map(|m| m.1).or_else(|| {
            let names: Vec<&str> = MODES.iter().map(|m| m.0).collect();
            let expected = format!("one of \"{}\"", names.join("\", \""));
            self.refuse(name, value, &expected)
        })
    }

    /// Refuses an empty list: it would match nothing.
    fn some(&mut self, name: &'static str, value: &Value<'_>) -> Option<()> {
        match value.get_ref() {
            DeValue::Array(items) if items.is_empty() => {
                self.refuse(name, value, "at least one value")
            }
            _ => Some(()),
        }
    }

    fn span(&mut self, name: &'static str, value: &Value<'_>) -> Option<Span> {
        let span = match value.get_ref() {
            DeValue::String(text) => Span::parse(text),
            _ => integer(value).map(|only| Span(only..=only)),
        };
        let expected = "\"START..END\" such as \"0x80000000..0x80001000\", or a number";
        span.or_else(|| self.refuse(name, value, expected))
    }

    fn one_filter(&mut self, name: &'static str, value: &Value<'_>) -> Option<Match> {
        let DeValue::Table(table) = value.get_ref() else {
            return self.refuse(name, value, "sections: write [[filter.any]]");
        };
        self.known(table, ANY, "[[filter.any]]");
        let both = |a: &str, b: &str| table.contains_key(a) == table.contains_key(b);
        if !both("from", "until") {
            return self.refuse(name, value, "`from` and `until` together");
        }
        if table.contains_key("impdef_mask") && !table.contains_key("impdef") {
            return self.refuse(name, value, "`impdef_mask` together with `impdef`");
        }
        let word = |r: &mut Reader, n, v: &Value<'_>| r.number(n, v, 0..=u64::from(u32::MAX));
        let from = self.plain(table, "from", Reader::address);
        let until = self.plain(table, "until", Reader::address);
        let mask = self.plain(table, "impdef_mask", word);
        Some(Match {
            modes: (self.plain(table, "modes", Reader::modes)).map(|modes| mode_bits(&modes)),
            address: self.plain(table, "address", Reader::span).map(|s| s.0),
            between: from.zip(until),
            context: self.plain(table, "context", Reader::span).map(|s| s.0),
            tval: self.plain(table, "tval", Reader::span).map(|s| s.0),
            causes: self.plain(table, "causes", Reader::causes),
            trap: self.plain(table, "trap", |r, n, v| r.one_of(n, v, TRAPS)),
            impdef: self.plain(table, "impdef", word).map(|value| Impdef {
                value,
                mask: mask.unwrap_or(u32::MAX),
            }),
        })
    }

    fn causes(&mut self, name: &'static str, value: &Value<'_>) -> Option<u64> {
        self.some(name, value)?;
        let causes: Vec<u32> =
            self.list(name, value, "causes", |r, n, v| r.number(n, v, 0..=63))?;
        Some(causes.iter().fold(0, |all, cause| all | 1 << cause))
    }

    fn plain<T>(
        &mut self,
        table: &DeTable<'_>,
        name: &'static str,
        read: impl Fn(&mut Self, &'static str, &Value<'_>) -> Option<T>,
    ) -> Option<T> {
        self.get(table, name, read).map(|setting| setting.value)
    }
}
