//! All sections: read from TOML, merged, written back.

use super::contexts::Contexts;
use super::ctr::Records;
use super::discovery::Form;
use super::etrace::Etrace;
use super::filter::Filter;
use super::hart::{ContextSource, Hart};
use super::ingress::Ingress;
use super::log::Log;
use super::ntrace::Ntrace;
use super::program::{Program, Trace};
use super::read::{ConfigError, Problem, Reader, SECTIONS, nearest};
use super::section::Section as _;
use super::tandem::Tandem;
use super::transport::TransportSection;
use super::value::Setting;
use super::verify::Verify;
use super::wave::Wave;
use super::write::Writer;
use crate::input::{Input, InputError};
use hartrace_isa::Xlen;
use std::fmt;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// Configuration is written by people; anything longer is another file given
/// by mistake.
const MAX_SIZE: u64 = 4 << 20;

/// One layer of settings, or all layers merged. What is `None` is not said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// `[program]`.
    pub program: Program,
    /// `[ingress]`.
    pub ingress: Ingress,
    /// `[hart]`.
    pub hart: Hart,
    /// `[ntrace]`.
    pub ntrace: Ntrace,
    /// `[etrace]`.
    pub etrace: Etrace,
    /// `[tandem]`.
    pub tandem: Tandem,
    /// `[ctr]`.
    pub ctr: Records,
    /// `[filter]`.
    pub filter: Filter,
    /// `[transport]`.
    pub transport: TransportSection,
    /// `[contexts]`.
    pub contexts: Contexts,
    /// `[log]`.
    pub log: Log,
    /// `[verify]`.
    pub verify: Verify,
    /// `[wave]`.
    pub wave: Wave,
    /// `[trace]`: only sidecars have it.
    pub trace: Option<Trace>,
}

impl Config {
    /// The defaults: a single-retirement port of the
    /// ratified E-Trace text with four-bit `itype` and every optional signal.
    #[must_use]
    pub fn defaults() -> Config {
        Config {
            ingress: Ingress::defaults(),
            ..Config::default()
        }
    }

    /// This layer on top of `below`: what it does not say comes from there.
    #[must_use]
    pub fn over(self, below: Config) -> Config {
        Config {
            program: self.program.over(below.program),
            ingress: self.ingress.over(below.ingress),
            hart: self.hart.over(below.hart),
            ntrace: self.ntrace.over(below.ntrace),
            etrace: self.etrace.over(below.etrace),
            tandem: self.tandem.over(below.tandem),
            ctr: self.ctr.over(below.ctr),
            filter: self.filter.over(below.filter),
            transport: self.transport.over(below.transport),
            contexts: self.contexts.over(below.contexts),
            log: self.log.over(below.log),
            verify: self.verify.over(below.verify),
            wave: self.wave.over(below.wave),
            trace: self.trace.or(below.trace),
        }
    }

    /// Chooses settings of trace formats that have room for all harts of `[hart]`,
    /// where nothing else is said.
    pub fn make_room_for_harts(&mut self) {
        let harts = self.hart.harts.as_ref().map_or(1, |harts| harts.value);
        if harts < 2 {
            return;
        }
        let bits = (32 - (harts - 1).leading_zeros()) as u8;
        self.ntrace.src_bits.get_or_insert(Setting::default(bits));
        let etrace = &mut self.etrace.encapsulation;
        if etrace.form.is_none() && self.transport.coresight.is_none() {
            etrace.form = Some(Setting::default(hartrace_etrace::Form::Riscv));
            etrace.src_bits.get_or_insert(Setting::default(8));
        }
    }

    /// Traces report the contexts of a hart whose context is an address space, unless the
    /// settings of their format say something else.
    pub fn report_contexts(&mut self, xlen: Xlen) {
        let source = self.hart.context.as_ref().map(|source| source.value);
        let width = match (source, xlen) {
            (None | Some(ContextSource::Scontext), _) => return,
            (Some(ContextSource::Asid), Xlen::Rv32) => 9,
            (Some(ContextSource::Asid), Xlen::Rv64) => 16,
            (Some(ContextSource::Root), Xlen::Rv32) => 22,
            (Some(ContextSource::Root), Xlen::Rv64) => 44,
        };
        self.ntrace.context.get_or_insert(Setting::default(true));
        let etrace = &mut self.etrace;
        if etrace.profile.is_none() {
            etrace.context_width.get_or_insert(Setting::default(width));
        }
    }

    /// Takes the settings of trace formats from another.
    pub fn replace_formats(&mut self, other: &Config) {
        self.ntrace = other.ntrace.clone();
        self.etrace = other.etrace.clone();
        self.tandem = other.tandem.clone();
    }

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
        let text = Config::text(bytes, path)?;
        Config::parse(&text, path).map_err(|error| LoadError::Config {
            path: path.to_path_buf(),
            text,
            error,
        })
    }

    /// The text of a configuration file.
    pub(super) fn read_text(path: &Path) -> Result<String, LoadError> {
        Config::text(Input::open(path)?.read_all(MAX_SIZE)?, path)
    }

    fn text(bytes: Vec<u8>, path: &Path) -> Result<String, LoadError> {
        String::from_utf8(bytes).map_err(|e| {
            let at = e.utf8_error().valid_up_to();
            LoadError::Config {
                path: path.to_path_buf(),
                text: String::from_utf8_lossy(e.as_bytes()).into_owned(),
                error: ConfigError {
                    problem: Problem::NotText,
                    span: at..at,
                },
            }
        })
    }

    /// Reads the text of the file `path`, which is only named, not opened: TOML or
    /// another [`Form`].
    ///
    /// # Errors
    ///
    /// The first mistake in the text.
    pub fn parse(text: &str, path: &Path) -> Result<Config, ConfigError> {
        match Form::detect(text) {
            Form::Toml => {}
            form => return Config::parse_form(text, path, form),
        }
        let document = DeTable::parse(text).map_err(|e| ConfigError {
            problem: Problem::Syntax(e.message().replace('\n', ", ")),
            span: e.span().unwrap_or(0..0),
        })?;
        let mut reader = Reader::new(text, path);
        let config = Config::document(&mut reader, document.get_ref());
        reader.mistake().map_or(Ok(config), Err)
    }

    fn document(reader: &mut Reader, document: &DeTable<'_>) -> Config {
        let mut config = Config::default();
        for (key, value) in document {
            let name = key.get_ref().as_ref();
            let DeValue::Table(table) = value.get_ref() else {
                reader.fail(Problem::NotASection(name.to_owned()), key.span());
                continue;
            };
            match name {
                "program" => config.program = Program::read(reader, table),
                "ingress" => config.ingress = Ingress::read(reader, table),
                "hart" => config.hart = Hart::read(reader, table),
                "ntrace" => config.ntrace = Ntrace::read(reader, table),
                "etrace" => config.etrace = Etrace::read(reader, table),
                "tandem" => config.tandem = Tandem::read(reader, table),
                "ctr" => config.ctr = Records::read(reader, table),
                "filter" => config.filter = Filter::read(reader, table),
                "log" => config.log = Log::read(reader, table),
                "verify" => config.verify = Verify::read(reader, table),
                "wave" => config.wave = Wave::read(reader, table),
                "transport" => config.transport = TransportSection::read(reader, table),
                "contexts" => config.contexts = Contexts::read(reader, table),
                "trace" => config.trace = Trace::read(reader, table, key.span()),
                _ => {
                    let problem = Problem::UnknownSection {
                        nearest: nearest(name, SECTIONS),
                        name: name.to_owned(),
                    };
                    reader.fail(problem, key.span());
                }
            }
        }
        config
    }

    /// The settings as a configuration file that [`Config::parse`] reads back.
    /// With `origins`, each value is followed by a comment that says where it
    /// came from.
    #[must_use]
    pub fn to_toml(&self, origins: bool) -> String {
        let mut out = Writer::new(origins);
        // Writing to a String does not fail.
        let _ = self.write(&mut out);
        out.into_text()
    }

    fn write(&self, out: &mut Writer) -> fmt::Result {
        if let Some(trace) = &self.trace {
            trace.write(out)?;
        }
        self.program.write(out)?;
        self.ingress.write(out)?;
        self.filter.write(out)?;
        self.hart.write(out)?;
        self.ntrace.write(out)?;
        self.etrace.write(out)?;
        self.tandem.write(out)?;
        self.transport.write(out)?;
        self.log.write(out)?;
        self.verify.write(out)?;
        self.wave.write(out)?;
        self.ctr.write(out)?;
        self.contexts.write(out)
    }
}

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
