//! Sections, keys and values as TOML text.

use super::value::{Origin, Setting};
use std::fmt::{self, Display, Write as _};

pub(super) struct Writer {
    text: String,
    origins: bool,
}

impl Writer {
    /// With comments that say where each value came from, or without.
    pub(super) const fn new(origins: bool) -> Writer {
        let text = String::new();
        Writer { text, origins }
    }

    /// What was written.
    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Begins a section; its title has its brackets.
    pub(super) fn section(&mut self, title: &str) -> fmt::Result {
        let gap = if self.text.is_empty() { "" } else { "\n" };
        writeln!(self.text, "{gap}{title}")
    }

    pub(super) fn key<T>(
        &mut self,
        name: &str,
        setting: Option<&Setting<T>>,
        show: impl Fn(&T) -> String,
    ) -> fmt::Result {
        match setting {
            Some(Setting { value, origin }) => self.line(name, &show(value), origin),
            None => Ok(()),
        }
    }

    /// The line of a key; without type parameters, so that it is compiled once.
    fn line(&mut self, name: &str, value: &str, origin: &Origin) -> fmt::Result {
        let line = format!("{name} = {value}");
        if self.origins {
            let origin = comment(origin);
            writeln!(self.text, "{line:<32} # {origin}")
        } else {
            writeln!(self.text, "{line}")
        }
    }
}

/// A comment ends with its line and may hold no control characters.
fn comment(origin: &Origin) -> String {
    let text = origin.to_string();
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

pub(super) fn list<T>(items: &[T], show: impl Fn(&T) -> String) -> String {
    let items: Vec<String> = items.iter().map(show).collect();
    match items.as_slice() {
        [] => "[]".to_owned(),
        [one] => format!("[{one}]"),
        many => format!("[\n    {},\n]", many.join(",\n    ")),
    }
}

/// As [`address`], decimal.
pub(super) fn count(value: u64) -> String {
    if i64::try_from(value).is_ok() {
        value.to_string()
    } else {
        quote(value)
    }
}

/// TOML promises integers up to 2^63 - 1 only.
pub(super) fn address(value: u64) -> String {
    if i64::try_from(value).is_ok() {
        format!("{value:#x}")
    } else {
        format!("\"{value:#x}\"")
    }
}

pub(super) fn quote(text: impl Display) -> String {
    let mut quoted = String::from("\"");
    for c in text.to_string().chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
