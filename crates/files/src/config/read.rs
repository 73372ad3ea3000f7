//! Values read from a TOML document, with the position of every error.

use super::value::{Named, Origin, Setting};
use crate::program::{beside, parse_address};
use crate::quantity::parse_count;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The names of all sections.
pub(super) const SECTIONS: &[&str] = &[
    "program",
    "ingress",
    "hart",
    "filter",
    "ntrace",
    "etrace",
    "tandem",
    "ctr",
    "transport",
    "contexts",
    "log",
    "verify",
    "wave",
    "trace",
];
/// What is wrong with a configuration, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// What is wrong.
    pub problem: Problem,
    /// Which bytes of the text.
    pub span: Range<usize>,
}

/// What can be wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Not UTF-8.
    NotText,
    /// Not TOML; holds what the parser says.
    Syntax(String),
    /// An unknown section.
    UnknownSection {
        /// As written.
        name: String,
        /// What was probably meant.
        nearest: Option<&'static str>,
    },
    /// A key its section does not have.
    UnknownKey {
        /// As written.
        name: String,
        /// Where it stands, such as `[ingress]`.
        section: &'static str,
        /// What was probably meant.
        nearest: Option<&'static str>,
    },
    /// A key outside any section, or a section that is not a table.
    NotASection(String),
    /// A key that must be there is missing.
    Missing {
        /// The key.
        name: &'static str,
        /// Where it should stand.
        section: &'static str,
    },
    /// A value that its key does not take; holds the key and what it takes.
    Value {
        /// The key.
        name: &'static str,
        /// What it takes.
        expected: String,
    },
    /// Values that contradict each other or mean nothing; holds what and why.
    Invalid(String),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nearest = match &self.problem {
            Problem::NotText => {
                f.write_str("not UTF-8 text")?;
                None
            }
            Problem::Syntax(message) => {
                f.write_str(message)?;
                None
            }
            Problem::UnknownSection { name, nearest } => {
                write!(f, "unknown section [{name}]")?;
                *nearest
            }
            Problem::UnknownKey {
                name,
                section,
                nearest,
            } => {
                write!(f, "unknown key `{name}` in {section}")?;
                *nearest
            }
            Problem::NotASection(name) => {
                if SECTIONS.contains(&name.as_str()) {
                    write!(f, "`{name}` is a section: write [{name}]")?;
                } else {
                    write!(f, "`{name}` is outside any section")?;
                }
                None
            }
            Problem::Missing { name, section } => {
                write!(f, "{section} needs `{name}`")?;
                None
            }
            Problem::Value { name, expected } => {
                write!(f, "`{name}` takes {expected}")?;
                None
            }
            Problem::Invalid(message) => {
                f.write_str(message)?;
                None
            }
        };
        nearest.map_or(Ok(()), |n| write!(f, "; did you mean `{n}`?"))
    }
}

impl std::error::Error for ConfigError {}

pub(super) type Value<'a> = Spanned<DeValue<'a>>;

/// Walks the document and collects every mistake.
pub(super) struct Reader {
    /// Where the lines end, in order.
    ends: Vec<usize>,
    path: Arc<Path>,
    errors: Vec<ConfigError>,
}

impl Reader {
    /// Of a text, which is that of the file `path`.
    pub(super) fn new(text: &str, path: &Path) -> Reader {
        Reader {
            ends: text.match_indices('\n').map(|(at, _)| at).collect(),
            path: Arc::from(path),
            errors: Vec::new(),
        }
    }

    /// The first mistake in the text, if there is one.
    pub(super) fn mistake(self) -> Option<ConfigError> {
        self.errors.into_iter().min_by_key(|e| e.span.start)
    }

    /// A file that is named relative to the folder of this one.
    pub(super) fn beside(&self, file: &Path) -> PathBuf {
        beside(&self.path, file)
    }

    /// Refuses keys that are not among `keys`.
    pub(super) fn known(
        &mut self,
        table: &DeTable<'_>,
        keys: &[&'static str],
        section: &'static str,
    ) {
        for (key, _) in table {
            let name = key.get_ref().as_ref();
            if !keys.contains(&name) {
                let problem = Problem::UnknownKey {
                    name: name.to_owned(),
                    section,
                    nearest: nearest(name, keys),
                };
                self.fail(problem, key.span());
            }
        }
    }

    pub(super) fn get<T>(
        &mut self,
        table: &DeTable<'_>,
        name: &'static str,
        read: impl Fn(&mut Self, &'static str, &Value<'_>) -> Option<T>,
    ) -> Option<Setting<T>> {
        let (value, origin) = self.find(table, name)?;
        let value = read(self, name, value)?;
        Some(Setting { value, origin })
    }

    /// The value of a key and where it is; without type parameters, so that it is
    /// compiled once.
    fn find<'t, 'd>(&self, table: &'t DeTable<'d>, name: &str) -> Option<(&'t Value<'d>, Origin)> {
        let value = table.get(name)?;
        Some((value, self.origin(value)))
    }

    /// Where a value is.
    pub(super) fn origin(&self, value: &Value<'_>) -> Origin {
        let at = value.span().start;
        let line = self.ends.partition_point(|&end| end < at) + 1;
        let path = Arc::clone(&self.path);
        Origin::File { path, line }
    }

    pub(super) fn fail(&mut self, problem: Problem, span: Range<usize>) {
        self.errors.push(ConfigError { problem, span });
    }

    pub(super) fn refuse<T>(
        &mut self,
        name: &'static str,
        value: &Value<'_>,
        expected: &str,
    ) -> Option<T> {
        self.unexpected(name, value, expected);
        None
    }

    fn unexpected(&mut self, name: &'static str, value: &Value<'_>, expected: &str) {
        let expected = expected.to_owned();
        self.fail(Problem::Value { name, expected }, value.span());
    }

    pub(super) fn string(&mut self, name: &'static str, value: &Value<'_>) -> Option<String> {
        match value.get_ref() {
            DeValue::String(text) if !text.is_empty() => Some(text.to_string()),
            _ => self.refuse(name, value, "a string that is not empty"),
        }
    }

    pub(super) fn boolean(&mut self, name: &'static str, value: &Value<'_>) -> Option<bool> {
        match value.get_ref() {
            DeValue::Boolean(yes) => Some(*yes),
            _ => self.refuse(name, value, "true or false"),
        }
    }

    pub(super) fn number<T: TryFrom<u64>>(
        &mut self,
        name: &'static str,
        value: &Value<'_>,
        range: std::ops::RangeInclusive<u64>,
    ) -> Option<T> {
        let number = integer(value).filter(|n| range.contains(n));
        match number.and_then(|n| T::try_from(n).ok()) {
            Some(number) => Some(number),
            None => {
                let expected = format!("a number from {} to {}", range.start(), range.end());
                self.refuse(name, value, &expected)
            }
        }
    }

    pub(super) fn one_of<T: Copy>(
        &mut self,
        name: &'static str,
        value: &Value<'_>,
        choices: Named<T>,
    ) -> Option<T> {
        let text = value.get_ref().as_str().unwrap_or_default();
        let chosen = choices.iter().find(|c| c.0 == text);
        if chosen.is_none() {
            let names: Vec<&'static str> = choices.iter().map(|c| c.0).collect();
            self.not_among(name, value, text, &names);
        }
        chosen.map(|c| c.1)
    }

    fn not_among(
        &mut self,
        name: &'static str,
        value: &Value<'_>,
        text: &str,
        names: &[&'static str],
    ) {
        let mut expected = format!("one of \"{}\"", names.join("\", \""));
        if let Some(nearest) = nearest(text, names) {
            expected += &format!("; did you mean \"{nearest}\"?");
        }
        self.unexpected(name, value, &expected);
    }

    pub(super) fn list<T>(
        &mut self,
        name: &'static str,
        value: &Value<'_>,
        what: &str,
        read: impl Fn(&mut Self, &'static str, &Value<'_>) -> Option<T>,
    ) -> Option<Vec<T>> {
        match value.get_ref() {
            DeValue::Array(items) => items.iter().map(|item| read(self, name, item)).collect(),
            DeValue::String(_) => read(self, name, value).map(|one| vec![one]),
            _ => self.refuse(name, value, &format!("a list of {what}")),
        }
    }

    /// An integer, or a string for readers of TOML that stop at 2^63.
    pub(super) fn address(&mut self, name: &'static str, value: &Value<'_>) -> Option<u64> {
        let address = match value.get_ref() {
            DeValue::String(text) => parse_address(text),
            _ => integer(value),
        };
        address.or_else(|| self.refuse(name, value, "an address such as 0x80000000"))
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

pub(super) fn integer(value: &Value<'_>) -> Option<u64> {
    match value.get_ref() {
        DeValue::Integer(n) => u64::from_str_radix(n.as_str(), n.radix()).ok(),
        _ => None,
    }
}

/// The candidate that is a typing mistake away, if there is one.
pub fn nearest(name: &str, candidates: &[&'static str]) -> Option<&'static str> {
    let name = name.to_lowercase();
    candidates
        .iter()
        .map(|c| (strsim::osa_distance(&name, &c.to_lowercase()), *c))
        .filter(|(distance, c)| *distance <= c.len().div_ceil(3))
        .min()
        .map(|(_, c)| c)
}
