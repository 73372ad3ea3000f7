//! TOML to [`Config`], with the place of every mistake.

use super::ingress::{Named, RETIREMENTS, RETIRES, TABLES};
use super::{Config, Ingress, Origin, Program, Setting, Trace};
use crate::digest::Digest;
use crate::input::{Input, InputError};
use crate::isa_hint;
use crate::program::{ElfFile, RawFile, beside, parse_address};
use hartrace_flow::{Ctype, ItypeWidth};
use hartrace_isa::Isa;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Configuration is written by people; anything longer is another file given
/// by mistake.
const MAX_SIZE: u64 = 4 << 20;

const SECTIONS: &[&str] = &[
    "program", "ingress", "hart", "filter", "ntrace", "etrace", "tandem", "ctr", "trace",
];
const PROGRAM: &[&str] = &["isa", "elf", "raw"];
const INGRESS: &[&str] = &[
    "itype_width",
    "table",
    "retirement",
    "max_halfwords",
    "sijump",
    "all_jumps",
    "retires",
    "ctype",
    "tval_bits",
];
const TRACE: &[&str] = &["format", "version"];
const ELF: &[&str] = &["file", "base", "sha256"];
const RAW: &[&str] = &["file", "base"];

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
    /// A section nobody knows.
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
                    write!(f, "`{name}` stands outside any section")?;
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
        };
        nearest.map_or(Ok(()), |n| write!(f, "; did you mean `{n}`?"))
    }
}

impl std::error::Error for ConfigError {}

/// Why a configuration file could not be used.
#[derive(Debug)]
pub enum LoadError {
    /// It could not be read.
    Input(InputError),
    /// It was read, but not understood.
    Config {
        /// The file.
        path: PathBuf,
        /// Its text; the spans of `error` count in it.
        text: String,
        /// What and where.
        error: ConfigError,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Input(error) => error.fmt(f),
            LoadError::Config { path, text, error } => {
                let (line, column) = line_column(text, error.span.start);
                write!(f, "{}:{line}:{column}: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for LoadError {}

impl From<InputError> for LoadError {
    fn from(error: InputError) -> LoadError {
        LoadError::Input(error)
    }
}

/// Line and column, both from 1, of a byte of the text.
#[must_use]
fn line_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |i| i + 1);
    let column = before.get(start..).map_or(0, |s| s.chars().count()) + 1;
    (line, column)
}

impl Config {
    /// Reads a configuration file or sidecar. File names in it become relative
    /// to its folder.
    ///
    /// # Errors
    ///
    /// A file that cannot be read or is not a configuration.
    pub fn load(path: &Path) -> Result<Config, LoadError> {
        let bytes = Input::open(path)?.read_all(MAX_SIZE)?;
        Config::from_bytes(bytes, path)
    }

    /// As [`Config::load`], of bytes that are already there.
    ///
    /// # Errors
    ///
    /// Bytes that are not a configuration.
    pub fn from_bytes(bytes: Vec<u8>, path: &Path) -> Result<Config, LoadError> {
        let fail = |text: String, error| LoadError::Config {
            path: path.to_path_buf(),
            text,
            error,
        };
        let text = String::from_utf8(bytes).map_err(|e| {
            let at = e.utf8_error().valid_up_to();
            let error = ConfigError {
                problem: Problem::NotText,
                span: at..at,
            };
            fail(String::from_utf8_lossy(e.as_bytes()).into_owned(), error)
        })?;
        Config::parse(&text, path).map_err(|error| fail(text, error))
    }

    /// Reads the text of the file `path`, which is only named, not opened.
    ///
    /// # Errors
    ///
    /// The first mistake in the text.
    pub fn parse(text: &str, path: &Path) -> Result<Config, ConfigError> {
        let document = DeTable::parse(text).map_err(|e| ConfigError {
            problem: Problem::Syntax(e.message().replace('\n', ", ")),
            span: e.span().unwrap_or(0..0),
        })?;
        let mut reader = Reader {
            ends: text.match_indices('\n').map(|(at, _)| at).collect(),
            path: Arc::from(path),
            errors: Vec::new(),
        };
        let config = reader.document(document.get_ref());
        match reader.errors.into_iter().min_by_key(|e| e.span.start) {
            None => Ok(config),
            Some(first) => Err(first),
        }
    }
}

pub(super) type Value<'a> = Spanned<DeValue<'a>>;

/// Walks the document and collects every mistake.
pub(super) struct Reader {
    /// Where the lines end, in order.
    ends: Vec<usize>,
    path: Arc<Path>,
    errors: Vec<ConfigError>,
}

impl Reader {
    fn document(&mut self, document: &DeTable<'_>) -> Config {
        let mut config = Config::default();
        for (key, value) in document {
            let name = key.get_ref().as_ref();
            let DeValue::Table(table) = value.get_ref() else {
                self.fail(Problem::NotASection(name.to_owned()), key.span());
                continue;
            };
            match name {
                "program" => config.program = self.program(table),
                "ingress" => config.ingress = self.ingress(table),
                "hart" => config.hart = self.hart(table),
                "ntrace" => config.ntrace = self.ntrace(table),
                "etrace" => config.etrace = self.etrace(table),
                "tandem" => config.tandem = self.tandem(table),
                "ctr" => config.ctr = self.ctr(table),
                "filter" => config.filter = self.filter(table),
                "trace" => config.trace = self.trace(table, key.span()),
                _ => {
                    let problem = Problem::UnknownSection {
                        nearest: nearest(name, SECTIONS),
                        name: name.to_owned(),
                    };
                    self.fail(problem, key.span());
                }
            }
        }
        config
    }

    fn program(&mut self, table: &DeTable<'_>) -> Program {
        self.known(table, PROGRAM, "[program]");
        Program {
            isa: self.get(table, "isa", Reader::isa),
            elf: self.get(table, "elf", |r, n, v| r.list(n, v, "files", Reader::elf)),
            raw: self.get(table, "raw", |r, n, v| r.list(n, v, "files", Reader::raw)),
        }
    }

    fn ingress(&mut self, table: &DeTable<'_>) -> Ingress {
        self.known(table, INGRESS, "[ingress]");
        Ingress {
            itype_width: self.get(table, "itype_width", |r, n, v| {
                Some(match r.number(n, v, 3..=4)? {
                    3u8 => ItypeWidth::Three,
                    _ => ItypeWidth::Four,
                })
            }),
            table: self.get(table, "table", |r, n, v| r.one_of(n, v, TABLES)),
            retirement: self.get(table, "retirement", |r, n, v| r.one_of(n, v, RETIREMENTS)),
            max_halfwords: self.get(table, "max_halfwords", |r, n, v| r.number(n, v, 2..=65535)),
            sijump: self.get(table, "sijump", Reader::boolean),
            all_jumps: self.get(table, "all_jumps", Reader::boolean),
            retires: self.get(table, "retires", |r, n, v| r.one_of(n, v, RETIRES)),
            ctype: self.get(table, "ctype", |r, n, v| {
                Ctype::from_code(r.number(n, v, 0..=3)?)
            }),
            tval_bits: self.get(table, "tval_bits", |r, n, v| r.number(n, v, 0..=64)),
        }
    }

    fn trace(&mut self, table: &DeTable<'_>, span: Range<usize>) -> Option<Trace> {
        self.known(table, TRACE, "[trace]");
        let format = self.get(table, "format", Reader::string);
        let version = self.get(table, "version", Reader::string);
        if !table.contains_key("format") {
            let (name, section) = ("format", "[trace]");
            self.fail(Problem::Missing { name, section }, span);
        }
        format.map(|format| Trace { format, version })
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
        let value = table.get(name)?;
        let at = value.span().start;
        let line = self.ends.partition_point(|&end| end < at) + 1;
        let path = Arc::clone(&self.path);
        let value = read(self, name, value)?;
        let origin = Origin::File { path, line };
        Some(Setting { value, origin })
    }

    fn fail(&mut self, problem: Problem, span: Range<usize>) {
        self.errors.push(ConfigError { problem, span });
    }

    pub(super) fn refuse<T>(
        &mut self,
        name: &'static str,
        value: &Value<'_>,
        expected: &str,
    ) -> Option<T> {
        let expected = expected.to_owned();
        self.fail(Problem::Value { name, expected }, value.span());
        None
    }

    fn string(&mut self, name: &'static str, value: &Value<'_>) -> Option<String> {
        match value.get_ref() {
            DeValue::String(text) if !text.is_empty() => Some(text.to_string()),
            _ => self.refuse(name, value, "a string that is not empty"),
        }
    }

    fn isa(&mut self, name: &'static str, value: &Value<'_>) -> Option<String> {
        let text = self.string(name, value)?;
        match Isa::parse(&text) {
            Ok(_) => Some(text),
            Err(error) => {
                let mut expected = format!("an ISA string such as \"rv64gc\": {error}");
                if let Some(nearest) = isa_hint::nearest(&text) {
                    expected += &format!("; did you mean \"{nearest}\"?");
                }
                self.refuse(name, value, &expected)
            }
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
        chosen.map(|c| c.1).or_else(|| {
            let names: Vec<&'static str> = choices.iter().map(|c| c.0).collect();
            let mut expected = format!("one of \"{}\"", names.join("\", \""));
            if let Some(nearest) = nearest(text, &names) {
                expected += &format!("; did you mean \"{nearest}\"?");
            }
            self.refuse(name, value, &expected)
        })
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

    fn elf(&mut self, name: &'static str, value: &Value<'_>) -> Option<ElfFile> {
        let mut elf = match value.get_ref() {
            DeValue::String(text) => match ElfFile::parse(text) {
                Ok(elf) => elf,
                Err(error) => return self.refuse(name, value, &format!("FILE[@BASE]: {error}")),
            },
            DeValue::Table(table) => {
                self.known(table, ELF, "an entry of `elf`");
                ElfFile {
                    file: self.file(table, "an entry of `elf`", value)?,
                    base: self.get(table, "base", Reader::address).map(|s| s.value),
                    sha256: self.get(table, "sha256", Reader::digest).map(|s| s.value),
                }
            }
            _ => return self.refuse(name, value, "\"FILE[@BASE]\" or { file, base, sha256 }"),
        };
        elf.file = beside(&self.path, &elf.file);
        Some(elf)
    }

    fn raw(&mut self, name: &'static str, value: &Value<'_>) -> Option<RawFile> {
        let mut raw = match value.get_ref() {
            DeValue::String(text) => match RawFile::parse(text) {
                Ok(raw) => raw,
                Err(error) => return self.refuse(name, value, &format!("FILE@BASE: {error}")),
            },
            DeValue::Table(table) => {
                let section = "an entry of `raw`";
                self.known(table, RAW, section);
                let file = self.file(table, section, value)?;
                let Some(base) = self.get(table, "base", Reader::address) else {
                    if !table.contains_key("base") {
                        let name = "base";
                        self.fail(Problem::Missing { name, section }, value.span());
                    }
                    return None;
                };
                let base = base.value;
                RawFile { file, base }
            }
            _ => return self.refuse(name, value, "\"FILE@BASE\" or { file, base }"),
        };
        raw.file = beside(&self.path, &raw.file);
        Some(raw)
    }

    fn file(
        &mut self,
        table: &DeTable<'_>,
        section: &'static str,
        whole: &Value<'_>,
    ) -> Option<PathBuf> {
        if !table.contains_key("file") {
            let name = "file";
            self.fail(Problem::Missing { name, section }, whole.span());
        }
        let file = self.get(table, "file", Reader::string)?;
        Some(PathBuf::from(file.value))
    }

    /// An integer, or a string for readers of TOML that stop at 2^63.
    pub(super) fn address(&mut self, name: &'static str, value: &Value<'_>) -> Option<u64> {
        let address = match value.get_ref() {
            DeValue::String(text) => parse_address(text),
            _ => integer(value),
        };
        address.or_else(|| self.refuse(name, value, "an address such as 0x80000000"))
    }

    fn digest(&mut self, name: &'static str, value: &Value<'_>) -> Option<Digest> {
        let text = value.get_ref().as_str().unwrap_or_default();
        match text.parse() {
            Ok(digest) => Some(digest),
            Err(_) => self.refuse(name, value, "64 hexadecimal digits in quotes"),
        }
    }
}

pub(super) fn integer(value: &Value<'_>) -> Option<u64> {
    match value.get_ref() {
        DeValue::Integer(n) => u64::from_str_radix(n.as_str(), n.radix()).ok(),
        _ => None,
    }
}

/// The candidate that is a typing mistake away, if there is one.
fn nearest(name: &str, candidates: &[&'static str]) -> Option<&'static str> {
    candidates
        .iter()
        .map(|c| (strsim::osa_distance(&name.to_lowercase(), c), *c))
        .filter(|(distance, c)| *distance <= c.len().div_ceil(3))
        .min()
        .map(|(_, c)| c)
}
