//! `[filter]`: which instructions an encoder traces.

pub(super) mod data;

use self::data::DataFilter;

use super::read::{Reader, Value, integer};
use super::value::{Named, name_of};
use super::write::{address, list, quote};
use crate::program::parse_address;
use hartrace_flow::Mode;
use hartrace_flow::filter::{FilterConfig, FilterFull, Impdef, Match, TrapKind, mode_bits};
use hartrace_isa::Xlen;
use std::fmt;
use std::ops::RangeInclusive;
use toml::de::{DeTable, DeValue};

section! {
    /// `[filter]`. What is `None` is not said. With `address`, `modes` and
    /// `context` an instruction must fit each that is said, and in it one of the
    /// values; an instruction that fits one of `any` is traced, too. Where nothing
    /// is said everything is traced.
    Filter = "[filter]" {
        /// Addresses, and functions by their names.
        address: Vec<Code> = (codes);
        /// Privilege modes.
        modes: Vec<Mode> = (modes);
        /// Software contexts.
        context: Vec<Span> = (spans);
        /// `[[filter.any]]`: filters one by one.
        any: Vec<Match> = (any);
    }
    sections {
        /// `[filter.data]`: data accesses.
        data: DataFilter;
    }
}

/// Values from one to another, both included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span(pub RangeInclusive<u64>);

/// Code that is traced: addresses, or the names of functions in a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Code {
    /// These addresses.
    Span(Span),
    /// `NAME`, a function from its first to its last address; `A..B`, from the
    /// start of one symbol up to the start of another; `A..=B`, up to the end of
    /// it; `A..+SIZE`.
    Named(String),
}

impl Code {
    /// As [`Span::parse`], with names in place of addresses.
    #[must_use]
    pub fn parse(text: &str) -> Option<Code> {
        if let Some(span) = Span::parse(text) {
            return Some(Code::Span(span));
        }
        let (start, end) = text.split_once("..").unwrap_or((text, text));
        let end = end.trim();
        let end = end.strip_prefix('=').unwrap_or(end);
        let size = end.strip_prefix('+');
        let is_name = |text: &str| {
            let text = text.trim();
            let odd = |c: char| c.is_whitespace() || c == '=' || c == '+';
            !text.is_empty() && !text.contains(odd) && !text.contains("..")
        };
        let ends = match size {
            Some(size) => parse_address(size.trim()).is_some_and(|size| size > 0),
            None => is_name(end),
        };
        // Two numbers are a span that cannot be.
        let numbers = parse_address(start.trim()).is_some() && parse_address(end).is_some();
        (is_name(start) && ends && !numbers).then(|| Code::Named(text.trim().to_owned()))
    }

    /// The addresses; `find` gives those of a symbol.
    ///
    /// # Errors
    ///
    /// A name that is unknown, and a range that ends before it starts.
    fn resolve(&self, find: &FindSymbol<'_>) -> Result<RangeInclusive<u64>, FilterError> {
        let text = match self {
            Code::Span(span) => return Ok(span.0.clone()),
            Code::Named(text) => text,
        };
        let of = |name: &str| {
            let name = name.trim();
            let number = parse_address(name).map(|only| only..=only);
            let range = number.or_else(|| find(name));
            range.ok_or_else(|| FilterError::Unknown(name.to_owned()))
        };
        let Some((start, end)) = text.split_once("..") else {
            return of(text);
        };
        let (start, end) = (*of(start)?.start(), end.trim());
        let last = if let Some(last) = end.strip_prefix('=') {
            Some(*of(last)?.end())
        } else if let Some(size) = end.strip_prefix('+') {
            let size = parse_address(size.trim());
            size.and_then(|size| start.checked_add(size.checked_sub(1)?))
        } else {
            of(end)?.start().checked_sub(1)
        };
        let last = last.filter(|last| start <= *last);
        last.map(|last| start..=last)
            .ok_or_else(|| FilterError::Backwards(text.clone()))
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Code::Span(span) => span.fmt(f),
            Code::Named(text) => f.write_str(text),
        }
    }
}

/// Gives the addresses of a symbol of the program.
pub type FindSymbol<'a> = dyn Fn(&str) -> Option<RangeInclusive<u64>> + 'a;

/// Why an encoder cannot have filters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterError {
    /// An encoder has not as many.
    Full(FilterFull),
    /// A name that the program does not have.
    Unknown(String),
    /// A range that ends before it starts.
    Backwards(String),
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilterError::Full(error) => error.fmt(f),
            FilterError::Unknown(name) => {
                write!(f, "the program has no symbol `{name}`")
            }
            FilterError::Backwards(text) => {
                write!(f, "`{text}` ends before it starts")
            }
        }
    }
}

impl std::error::Error for FilterError {}

impl From<FilterFull> for FilterError {
    fn from(error: FilterFull) -> FilterError {
        FilterError::Full(error)
    }
}

const MODES: Named<Mode> = &[
    ("U", Mode::U),
    ("S", Mode::S),
    ("M", Mode::M),
    ("VU", Mode::VU),
    ("VS", Mode::VS),
    ("D", Mode::D),
];

const TRAPS: Named<TrapKind> = &[
    ("exception", TrapKind::Exception),
    ("interrupt", TrapKind::Interrupt),
];

impl Span {
    /// `A..B` without B, `A..=B`, `A..+SIZE`, or `A` alone.
    #[must_use]
    pub fn parse(text: &str) -> Option<Span> {
        let Some((start, end)) = text.split_once("..") else {
            let only = parse_address(text.trim())?;
            return Some(Span(only..=only));
        };
        let start = parse_address(start.trim())?;
        let end = end.trim();
        let last = if let Some(last) = end.strip_prefix('=') {
            parse_address(last.trim())?
        } else if let Some(size) = end.strip_prefix('+') {
            start.checked_add(parse_address(size.trim())?.checked_sub(1)?)?
        } else {
            parse_address(end)?.checked_sub(1)?
        };
        (start <= last).then_some(Span(start..=last))
    }
}

/// As [`Span::parse`] reads it.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (start, last) = (self.0.start(), self.0.end());
        match last.checked_add(1) {
            _ if start == last => write!(f, "{start:#x}"),
            Some(end) => write!(f, "{start:#x}..{end:#x}"),
            None => write!(f, "{start:#x}..={last:#x}"),
        }
    }
}

impl Filter {
    /// The filters of an encoder; `find` gives the addresses of a symbol.
    ///
    /// # Errors
    ///
    /// When an encoder has not as many filters or comparators, and for names that
    /// are not known.
    pub fn config(&self, xlen: Xlen, find: &FindSymbol<'_>) -> Result<FilterConfig, FilterError> {
        let mut config = FilterConfig {
            xlen,
            ..FilterConfig::default()
        };
        let any = self.any.iter().flat_map(|setting| &setting.value);
        for one in self.pairs(find)?.iter().chain(any) {
            config.add(one)?;
        }
        self.data.add_to(&mut config, find)?;
        Ok(config)
    }

    /// Each address with each context, in the modes; nothing where none of
    /// them is said.
    fn pairs(&self, find: &FindSymbol<'_>) -> Result<Vec<Match>, FilterError> {
        if self.address.is_none() && self.modes.is_none() && self.context.is_none() {
            return Ok(Vec::new());
        }
        let modes = self.modes.as_ref().map(|s| mode_bits(&s.value));
        let contexts: Vec<_> = match &self.context {
            None => vec![None],
            Some(spans) => spans.value.iter().map(|s| Some(s.0.clone())).collect(),
        };
        let addresses: Vec<_> = match &self.address {
            None => vec![None],
            Some(codes) => {
                let codes = codes.value.iter().map(|code| code.resolve(find).map(Some));
                codes.collect::<Result<_, _>>()?
            }
        };
        let mut pairs = Vec::new();
        for address in addresses {
            pairs.extend(contexts.iter().map(|context| Match {
                modes,
                address: address.clone(),
                context: context.clone(),
                ..Match::default()
            }));
        }
        Ok(pairs)
    }
}

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
    fn spans(&mut self, name: &'static str, value: &Value<'_>) -> Option<Vec<Span>> {
        self.some(name, value)?;
        self.list(name, value, "values", Reader::span)
    }

    fn codes(&mut self, name: &'static str, value: &Value<'_>) -> Option<Vec<Code>> {
        self.some(name, value)?;
        self.list(name, value, "values", Reader::code)
    }

    fn code(&mut self, name: &'static str, value: &Value<'_>) -> Option<Code> {
        let code = match value.get_ref() {
            DeValue::String(text) => Code::parse(text),
            _ => integer(value).map(|only| Code::Span(Span(only..=only))),
        };
        let expected = "\"START..END\" such as \"0x80000000..0x80001000\", the name of a \
                        function, or a number";
        code.or_else(|| self.refuse(name, value, expected))
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

    fn any(&mut self, name: &'static str, value: &Value<'_>) -> Option<Vec<Match>> {
        let what = "sections: write [[filter.any]]";
        self.list(name, value, what, Reader::one_filter)
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

fn spans(spans: &[Span]) -> String {
    list(spans, |span| quote(span))
}

fn codes(codes: &[Code]) -> String {
    list(codes, |code| quote(code))
}

fn modes(modes: &[Mode]) -> String {
    let modes: Vec<String> = modes
        .iter()
        .map(|mode| quote(name_of(MODES, mode)))
        .collect();
    format!("[{}]", modes.join(", "))
}

fn any(filters: &[Match]) -> String {
    list(filters, one_filter)
}

fn one_filter(filter: &Match) -> String {
    let mut keys = Vec::new();
    let mut key = |name: &str, value: Option<String>| {
        keys.extend(value.map(|value| format!("{name} = {value}")));
    };
    let span = |range: &Option<RangeInclusive<u64>>| {
        let span = range.as_ref().map(|range| Span(range.clone()));
        span.map(quote)
    };
    let bits = |set: u64| (0..64).filter(move |n| set >> n & 1 != 0);
    key("address", span(&filter.address));
    key("from", filter.between.map(|(from, _)| address(from)));
    key("until", filter.between.map(|(_, until)| address(until)));
    key(
        "modes",
        filter.modes.map(|set| {
            let modes = bits(set.into()).filter_map(Mode::from_code);
            let modes: Vec<String> = modes.map(|mode| quote(mode.name())).collect();
            format!("[{}]", modes.join(", "))
        }),
    );
    key("context", span(&filter.context));
    key("tval", span(&filter.tval));
    key(
        "causes",
        filter.causes.map(|set| {
            let causes: Vec<String> = bits(set).map(|n| n.to_string()).collect();
            format!("[{}]", causes.join(", "))
        }),
    );
    let trap = filter.trap.as_ref();
    key("trap", trap.map(|kind| quote(name_of(TRAPS, kind))));
    key("impdef", filter.impdef.map(|i| address(i.value.into())));
    key("impdef_mask", filter.impdef.map(|i| address(i.mask.into())));
    match keys.as_slice() {
        [] => "{}".to_owned(),
        keys => format!("{{ {} }}", keys.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use hartrace_flow::filter::{Comparator, Impdef, Input};
    use std::path::Path;

    const FULL: &str = r#"
[filter]
address = ["0x80000000..0x80001000", "0x2000..+0x40"]
modes = ["M", "VS"]
context = [5, "7..=9"]

[[filter.any]]
from = 0x100
until = "0xffffffffffffff00"
modes = ["U"]

[[filter.any]]
address = "0x100..=0x1ff"
context = 3
tval = "0..0x10"
causes = [2, 63]
trap = "exception"
impdef = 0x10
impdef_mask = 0xf0
"#;

    fn parse(text: &str) -> Config {
        Config::parse(text, Path::new("a.toml")).unwrap()
    }

    fn refused(text: &str) -> (String, String) {
        let error = Config::parse(text, Path::new("a.toml")).unwrap_err();
        let place = text.get(error.span.clone()).unwrap().to_owned();
        (error.to_string(), place)
    }

    #[test]
    fn everything_is_read_and_written() {
        let config = parse(FULL);
        let filter = &config.filter;
        assert_eq!(filter.modes.as_ref().unwrap().value, [Mode::M, Mode::VS]);
        let address = &filter.address.as_ref().unwrap().value;
        assert_eq!(address[0], Code::Span(Span(0x8000_0000..=0x8000_0fff)));
        assert_eq!(address[1], Code::Span(Span(0x2000..=0x203f)));
        let context = &filter.context.as_ref().unwrap().value;
        assert_eq!(context[..], [Span(5..=5), Span(7..=9)]);
        let any = &filter.any.as_ref().unwrap().value;
        assert_eq!(
            any[0],
            Match {
                between: Some((0x100, 0xffff_ffff_ffff_ff00)),
                modes: Some(1),
                ..Match::default()
            }
        );
        assert_eq!(
            any[1],
            Match {
                address: Some(0x100..=0x1ff),
                context: Some(3..=3),
                tval: Some(0..=15),
                causes: Some(1 << 2 | 1 << 63),
                trap: Some(TrapKind::Exception),
                impdef: Some(Impdef {
                    value: 0x10,
                    mask: 0xf0
                }),
                ..Match::default()
            }
        );
        for origins in [false, true] {
            let written = config.to_toml(origins);
            let again = parse(&written);
            assert_eq!(again.to_toml(false), config.to_toml(false), "{written}");
        }
    }

    fn nowhere(_: &str) -> Option<RangeInclusive<u64>> {
        None
    }

    #[test]
    fn names_become_addresses() {
        let find = |name: &str| match name {
            "main" => Some(0x100..=0x13f),
            "exit" => Some(0x180..=0x18f),
            _ => None,
        };
        let of = |text: &str| Code::parse(text).unwrap().resolve(&find);
        for (text, range) in [
            ("main", 0x100..=0x13f),
            ("main..exit", 0x100..=0x17f),
            ("main ..= exit", 0x100..=0x18f),
            ("main..+8", 0x100..=0x107),
            ("0x110..exit", 0x110..=0x17f),
            ("main..0x120", 0x100..=0x11f),
        ] {
            assert_eq!(of(text), Ok(range), "{text}");
            assert_eq!(Code::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(of("exot"), Err(FilterError::Unknown("exot".to_owned())));
        let backwards = FilterError::Backwards("exit..main".to_owned());
        assert_eq!(of("exit..main"), Err(backwards));
        for text in [
            "",
            "..",
            "main..",
            "..main",
            "a b",
            "main..+0",
            "0x20..0x10",
        ] {
            assert_eq!(Code::parse(text), None, "{text}");
        }
        let config = parse("[filter]\naddress = [\"main\"]");
        let filters = config.filter.config(Xlen::Rv64, &find).unwrap();
        assert_eq!(filters, FilterConfig::address(0x100..=0x13f));
        assert!(config.to_toml(false).contains("address = [\"main\"]"));
    }

    #[test]
    fn lists_become_filters() {
        let config = parse(FULL).filter.config(Xlen::Rv32, &nowhere).unwrap();
        // Two addresses with two contexts, and two more.
        assert_eq!((config.selected, config.xlen), (0x3f, Xlen::Rv32));
        let of = |filter: usize, n: usize| {
            let number = config.filters[filter].comparators[n].unwrap();
            config.comparators[usize::from(number)]
        };
        assert_eq!(
            of(1, 0),
            Comparator::within(Input::Iaddr, &(0x8000_0000..=0x8000_0fff))
        );
        assert_eq!(of(1, 1), Comparator::within(Input::Context, &(7..=9)));
        assert_eq!(of(4, 0), Comparator::between(0x100, 0xffff_ffff_ffff_ff00));
        assert_eq!(config.filters[2].modes, Some(1 << 3 | 1 << 6));
        let only = parse("[filter]\nmodes = [\"U\"]").filter;
        let expected = FilterConfig::modes(&[Mode::U]);
        assert_eq!(only.config(Xlen::Rv64, &nowhere).unwrap(), expected);
        let nothing = parse("[filter]").filter;
        assert_eq!(
            nothing.config(Xlen::Rv64, &nowhere).unwrap(),
            FilterConfig::default()
        );
        assert_eq!(parse("[filter]").to_toml(true), "");
        let many: Vec<String> = (0..9).map(|n| format!("\"{n}\"")).collect();
        let many = parse(&format!("[filter]\naddress = [{}]", many.join(",")));
        assert_eq!(
            many.filter.config(Xlen::Rv64, &nowhere),
            Err(FilterFull::Comparators.into())
        );
    }

    #[test]
    fn layers_cover_each_other_key_by_key() {
        let above = parse("[filter]\naddress = [\"0..4\"]");
        let all = above.over(parse(FULL)).filter;
        assert_eq!(all.address.unwrap().value, [Code::Span(Span(0..=3))]);
        assert_eq!(all.modes.unwrap().value.len(), 2);
        assert_eq!(all.any.unwrap().value.len(), 2);
    }

    #[test]
    fn spans() {
        for (text, span) in [
            ("0x10", Some(0x10..=0x10)),
            ("16..=16", Some(16..=16)),
            ("0x10 .. 0x20", Some(0x10..=0x1f)),
            ("0x10..+1", Some(0x10..=0x10)),
            ("0..=0xffffffffffffffff", Some(0..=u64::MAX)),
            ("0x10..0x10", None),
            ("0..0", None),
            ("0x10..+0", None),
            ("0xffffffffffffffff..+2", None),
            ("0x20..=0x10", None),
            ("main..+4", None),
            ("", None),
            ("..", None),
            ("1..", None),
            ("1..2..3", None),
        ] {
            let span = span.map(Span);
            assert_eq!(Span::parse(text), span, "{text}");
            if let Some(span) = span {
                assert_eq!(Span::parse(&span.to_string()), Some(span));
            }
        }
    }

    #[test]
    fn mistakes() {
        for (text, message, place) in [
            (
                "[filter]\naddress = [\"a..b..c\"]",
                "`address` takes \"START..END\" such as \"0x80000000..0x80001000\", the name of a \
                 function, or a number",
                "\"a..b..c\"",
            ),
            (
                "[filter]\ncontext = []",
                "`context` takes at least one value",
                "[]",
            ),
            (
                "[filter]\nmodes = [\"m\", \"x\"]",
                "`modes` takes one of \"U\", \"S\", \"M\", \"VU\", \"VS\", \"D\"",
                "\"x\"",
            ),
            (
                "[filter]\nadress = 3",
                "unknown key `adress` in [filter]; did you mean `address`?",
                "adress",
            ),
            (
                "[[filter.any]]\nform = 3",
                "unknown key `form` in [[filter.any]]; did you mean `from`?",
                "form",
            ),
            (
                "[filter]\nany = [{ from = 3 }]",
                "`any` takes `from` and `until` together",
                "{ from = 3 }",
            ),
            (
                "[filter]\nany = [{ impdef_mask = 3 }]",
                "`any` takes `impdef_mask` together with `impdef`",
                "{ impdef_mask = 3 }",
            ),
            (
                "[filter]\nany = [{ causes = [64] }]",
                "`causes` takes a number from 0 to 63",
                "64",
            ),
            (
                "[filter]\nany = 3",
                "`any` takes a list of sections: write [[filter.any]]",
                "3",
            ),
            (
                "[filter]\nany = [3]",
                "`any` takes sections: write [[filter.any]]",
                "3",
            ),
        ] {
            assert_eq!(
                refused(text),
                (message.to_owned(), place.to_owned()),
                "{text}"
            );
        }
    }
}
