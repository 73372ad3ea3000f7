//! Lines `key = value`: the `.scf` and `.ucf` files of the reference flow, and the
//! values of the discovery registers.
//!
//! `#` and `;` start comments. Headings in brackets have no meaning, as in the
//! reference flow.

use super::super::read::{ConfigError, Problem, nearest};
use super::super::section::some;
use super::super::value::{Named, Origin, Setting};
use super::{Config, Form, Given, Source, fail, refused};
use hartrace_etrace::{
    self as etrace, Compression, Parameter, ParameterTable, Parameters, RegisterField, Registers,
    ResyncUnit, Version,
};
use std::fmt::Write as _;
use std::ops::Range;

const REGISTERS: [&str; 2] = ["discovery_info_0", "discovery_info_1"];

/// Keys of `.ucf` files that are settings.
const MODES: &[&str] = &[
    "cycle-accurate",
    "resync-max",
    "full-address",
    "implicit-except",
    "si-jump",
    "implicit-return",
    "branch-prediction",
    "jump-target-cache",
    "full-daddress",
    "full-data",
    "no-address",
    "no-data",
    "data-compress",
];

/// Keys of `.ucf` files that are about the programs of the reference flow only.
const TOOLS: &[&str] = &[
    "file-stem",
    "debug-flags",
    "ip-version",
    "object-files",
    "print-set-pc",
    "use-rv32-isa",
];

/// The form of a text with this key; `None` for a key that none of them has.
pub(super) fn form_of_key(key: &str) -> Option<Form> {
    if REGISTERS.contains(&key) {
        Some(Form::Registers)
    } else if MODES.contains(&key) || TOOLS.contains(&key) {
        Some(Form::Ucf)
    } else {
        key.ends_with("_p").then_some(Form::Scf)
    }
}

/// A line: the key and the value, and where they are.
struct Pair<'a> {
    key: &'a str,
    value: &'a str,
    key_span: Range<usize>,
    value_span: Range<usize>,
}

impl<'a> Pair<'a> {
    /// The line that starts at this byte of a text; `None` if it has no key.
    fn read(line: &'a str, start: usize) -> Result<Option<Pair<'a>>, ConfigError> {
        let text = line.split(['#', ';']).next().unwrap_or(line);
        let trimmed = text.trim();
        let heading = trimmed.starts_with('[') && trimmed.ends_with(']');
        if trimmed.is_empty() || heading {
            return Ok(None);
        }
        let span = |part: &str, at: usize| {
            let from = start + at + part.len() - part.trim_start().len();
            from..from + part.trim().len()
        };
        let Some((key, value)) = text.split_once('=') else {
            let problem = Problem::Syntax("expected `key = value`".to_owned());
            return fail(problem, span(text, 0));
        };
        Ok(Some(Pair {
            key: key.trim(),
            value: value.trim(),
            key_span: span(key, 0),
            value_span: span(value, key.len() + 1),
        }))
    }

    fn refuse<T>(&self, name: &'static str, expected: &str) -> Result<T, ConfigError> {
        let expected = expected.to_owned();
        fail(Problem::Value { name, expected }, self.value_span.clone())
    }

    /// Decimal, or hexadecimal with `0x`.
    fn number(&self) -> Option<u64> {
        number(self.value)
    }

    fn flag(&self, name: &'static str) -> Result<bool, ConfigError> {
        match self.value {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => self.refuse(name, "true or false"),
        }
    }
}

/// A number as people write it.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if digits.starts_with('+') => None,
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None if text.starts_with('+') => None,
        None => text.parse().ok(),
    }
}

/// The settings in such a text.
pub(super) fn read(source: &Source<'_>) -> Result<Config, ConfigError> {
    let mut config = Config::default();
    let mut given = Given::default();
    let mut words: [Option<(u64, Range<usize>)>; 2] = [None, None];
    let mut modes = Vec::new();
    let mut start = 0;
    for line in source.text.split_inclusive('\n') {
        let pair = Pair::read(line.trim_start_matches('\u{feff}'), start + bom(line));
        start += line.len();
        let Some(pair) = pair? else { continue };
        let origin = source.origin(pair.key_span.start);
        if let Some(&mode) = MODES.iter().find(|mode| **mode == pair.key) {
            if modes.contains(&mode) {
                let problem = Problem::Invalid(format!("`{mode}` is given twice"));
                return fail(problem, pair.key_span);
            }
            modes.push(mode);
            read_mode(mode, &pair, origin, &mut config)?;
        } else if let Some(register) = REGISTERS.iter().position(|name| *name == pair.key) {
            read_register(register, &pair, &mut words)?;
        } else if !TOOLS.contains(&pair.key) {
            read_parameter(&pair, origin, &mut given)?;
        }
    }
    if let [None, None] = words {
        given.complete();
    } else {
        add_registers(source, words, &mut given)?;
    }
    match given.apply(&mut config) {
        Ok(()) => Ok(config),
        Err(problem) => fail(problem, 0..0),
    }
}

/// Bytes of a byte order mark.
fn bom(line: &str) -> usize {
    line.len() - line.trim_start_matches('\u{feff}').len()
}

fn read_parameter(pair: &Pair<'_>, origin: Origin, given: &mut Given) -> Result<(), ConfigError> {
    let suffixed = pair.key.ends_with("_p");
    let Some(parameter) = Parameter::find(pair.key).filter(|_| suffixed) else {
        let names: Vec<&'static str> = Parameter::ALL.iter().map(|p| p.name()).collect();
        let key = pair.key.strip_suffix("_p").unwrap_or(pair.key);
        let candidates: &[&'static str] = if suffixed { &names } else { MODES };
        let problem = Problem::UnknownKey {
            name: pair.key.to_owned(),
            section: "an .scf or .ucf file",
            nearest: nearest(key, candidates),
        };
        return fail(problem, pair.key_span.clone());
    };
    let Some(value) = pair.number() else {
        let range = parameter.range();
        let expected = format!("a number from {} to {}", range.start(), range.end());
        return pair.refuse(parameter.name(), &expected);
    };
    let checked = parameter.checked(value).map_err(refused);
    let added = match checked {
        Ok(value) => given.add(parameter, value, origin),
        Err(problem) => return fail(problem, pair.value_span.clone()),
    };
    added.or_else(|problem| fail(problem, pair.key_span.clone()))
}

fn read_register(
    register: usize,
    pair: &Pair<'_>,
    words: &mut [Option<(u64, Range<usize>)>; 2],
) -> Result<(), ConfigError> {
    let (Some(word), Some(&name)) = (words.get_mut(register), REGISTERS.get(register)) else {
        return Ok(());
    };
    match (pair.number(), &word) {
        (None, _) => pair.refuse(name, "a 64-bit number such as 0x1234"),
        (Some(_), Some(_)) => {
            let problem = Problem::Invalid(format!("`{}` is given twice", pair.key));
            fail(problem, pair.key_span.clone())
        }
        (Some(value), None) => {
            *word = Some((value, pair.value_span.clone()));
            Ok(())
        }
    }
}

fn add_registers(
    source: &Source<'_>,
    words: [Option<(u64, Range<usize>)>; 2],
    given: &mut Given,
) -> Result<(), ConfigError> {
    let [first, second] = REGISTERS;
    let [Some((low, at)), Some((high, next))] = words else {
        let problem = Problem::Invalid(format!("`{first}` and `{second}` are both needed"));
        return fail(problem, 0..0);
    };
    let fields: Vec<RegisterField> = RegisterField::all().collect();
    let origins = [source.origin(at.start), source.origin(next.start)];
    let added = given.add_registers(Registers([low, high]), &fields, origins);
    added.or_else(|problem| fail(problem, at))
}

const COMPRESSIONS: Named<Compression> = &[
    ("1", Compression::Xor),
    ("2", Compression::Differential),
    ("3", Compression::Dynamic),
];

fn read_mode(
    mode: &'static str,
    pair: &Pair<'_>,
    origin: Origin,
    config: &mut Config,
) -> Result<(), ConfigError> {
    let etrace = &mut config.etrace;
    let flag = match mode {
        "full-address" => &mut etrace.full_address,
        "implicit-except" => &mut etrace.implicit_exception,
        "si-jump" => &mut etrace.sijump,
        "implicit-return" => &mut etrace.implicit_return,
        "branch-prediction" => &mut etrace.branch_prediction,
        "jump-target-cache" => &mut etrace.jump_target_cache,
        "full-daddress" => &mut etrace.data.full_address,
        "full-data" => &mut etrace.data.full_data,
        "no-address" => &mut etrace.data.no_address,
        "no-data" => &mut etrace.data.no_data,
        "cycle-accurate" => {
            return match pair.flag(mode)? {
                false => Ok(()),
                true => pair.refuse(mode, "false: there is no cycle-accurate trace"),
            };
        }
        "data-compress" => {
            // The reference encoder does not look at it; 0 is what its template has
            // beside `full-data`, which says the same.
            let named = COMPRESSIONS.iter().find(|(name, _)| *name == pair.value);
            return match named {
                _ if pair.value == "0" => Ok(()),
                Some(&(_, value)) => {
                    etrace.data.compression = Some(Setting { value, origin });
                    Ok(())
                }
                None => pair.refuse(mode, "a number from 0 to 3"),
            };
        }
        _ => {
            let Some(value @ 0..=27) = pair.number() else {
                return pair.refuse(mode, "a number from 0 to 27");
            };
            let value = value as u8;
            etrace.resync = some(ResyncUnit::Packets);
            etrace.resync_max = Some(Setting { value, origin });
            return Ok(());
        }
    };
    let value = pair.flag(mode)?;
    *flag = Some(Setting { value, origin });
    Ok(())
}

/// The headings of the reference flow.
const TABLES: [(ParameterTable, &str); 5] = [
    (ParameterTable::Required, "[Required Attributes]"),
    (ParameterTable::Filtering, "[Optional Filtering Attributes]"),
    (ParameterTable::Other, "[Other Recommended Attributes]"),
    (ParameterTable::Registers, "[Discovery Registers]"),
    (ParameterTable::Data, "[required]"),
];

/// The parameters as an `.scf` file. Those of data trace are for encoders that have it,
/// and those that the reference flow does not know are for values other than the
/// defaults.
pub(super) fn write_scf(parameters: &Parameters, version: Version, data: bool) -> String {
    let mut text = String::new();
    for (table, heading) in TABLES {
        let shown = |p: &&Parameter| match table {
            ParameterTable::Data => data,
            ParameterTable::Registers => parameters.get(**p) != p.default(version),
            _ => true,
        };
        let listed = Parameter::ALL.iter().filter(|p| p.table() == table);
        let mut lines = listed.filter(shown).peekable();
        if lines.peek().is_none() {
            continue;
        }
        let gap = if text.is_empty() { "" } else { "\n" };
        // Writing to a String does not fail.
        let _ = writeln!(text, "{gap}{heading}");
        for parameter in lines {
            let _ = writeln!(text, "{parameter}={}", parameters.get(*parameter));
        }
    }
    text
}

/// The modes as a `.ucf` file, and those it has no key for.
pub(super) fn write_ucf(config: &etrace::Config) -> (String, Vec<String>) {
    let mut text = "[codec]\ncycle-accurate = false\n".to_owned();
    let mut omitted = Vec::new();
    match config.resync.unit {
        ResyncUnit::Packets => {
            let _ = writeln!(text, "resync-max = {}", config.resync.max);
        }
        _ => omitted.push("resync".to_owned()),
    }
    let mut flags = vec![
        ("full-address", config.full_address),
        ("implicit-except", config.implicit_exception),
        ("si-jump", config.sijump),
        ("implicit-return", config.implicit_return),
        ("branch-prediction", config.branch_prediction),
        ("jump-target-cache", config.jump_target_cache),
    ];
    if let Some(data) = &config.data {
        flags.extend([
            ("full-daddress", data.full_address),
            ("full-data", data.full_data),
            ("no-address", data.no_address),
            ("no-data", data.no_data),
        ]);
    }
    for (name, on) in flags {
        let _ = writeln!(text, "{name} = {on}");
    }
    if let Some(data) = &config.data {
        let named = COMPRESSIONS.iter().find(|c| c.1 == data.compression);
        let code = named.map_or("0", |c| c.0);
        let _ = writeln!(text, "data-compress = {code}");
    }
    (text, omitted)
}

/// The values of the registers.
pub(super) fn write_registers(registers: Registers) -> String {
    let [low, high] = registers.0;
    let [first, second] = REGISTERS;
    format!("{first} = {low:#018x}\n{second} = {high:#018x}\n")
}
