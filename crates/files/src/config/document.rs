//! All sections: read from TOML, merged, written back.

use super::contexts::Contexts;
use super::ctr::Records;
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
use hartrace_isa::Xlen;
use std::fmt;
use std::path::Path;
use toml::de::{DeTable, DeValue};

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

    /// Reads TOML.
    pub(super) fn parse_toml(text: &str, path: &Path) -> Result<Config, ConfigError> {
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
