//! The formats of traces, and the settings of each.

use super::{Streams, TraceError, given_isa};
use crate::config::{Config, DataFilter, EtraceData, Ingress};
use crate::detect::{HEAD, Kind, detect};
use crate::input::Input;
use hartrace_etrace as etrace;
use hartrace_flow::queue::Queue;
use hartrace_flow::{Inference, ItypeWidth, PortConfig, Reported, Unreported};
use hartrace_isa::{Isa, Xlen};
use hartrace_ntrace as ntrace;
use hartrace_tandem as tandem;
use hartrace_tandem::container::Parameters;
use std::fmt;
use std::path::Path;

/// A format of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// N-Trace.
    Ntrace,
    /// E-Trace.
    Etrace,
    /// The tandem-verification trace.
    Tandem,
}

impl Format {
    /// All of them.
    pub const ALL: &'static [Format] = &[Format::Ntrace, Format::Etrace, Format::Tandem];

    /// Its name in `[trace]`, on the command line, and of its section.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Format::Ntrace => "ntrace",
            Format::Etrace => "etrace",
            Format::Tandem => "tandem",
        }
    }

    /// The format of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Format> {
        Format::ALL.iter().copied().find(|f| f.name() == name)
    }

    /// What a file's name says about it.
    #[must_use]
    pub fn from_extension(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()? {
            "ntrace" | "nexus" => Some(Format::Ntrace),
            "etrace" | "et" | "te_inst_raw" | "te_inst" => Some(Format::Etrace),
            "tandem" => Some(Format::Tandem),
            _ => None,
        }
    }

    /// What a configuration says about it: the section that is there, if there
    /// is only one.
    #[must_use]
    pub fn from_sections(config: &Config) -> Option<Format> {
        let mut there = Format::ALL.iter().copied().filter(|f| f.is_said(config));
        there.next().filter(|_| there.next().is_none())
    }

    /// Whether a configuration has settings of this format.
    #[must_use]
    pub(crate) fn is_said(self, config: &Config) -> bool {
        match self {
            Format::Ntrace => config.ntrace.is_said(),
            Format::Etrace => config.etrace.is_said(),
            Format::Tandem => config.tandem.is_said(),
        }
    }

    /// The format that a configuration gives, by its name or by the section
    /// that is there.
    #[must_use]
    pub fn said(config: &Config) -> Option<Format> {
        let trace = config.trace.as_ref();
        let named = trace.and_then(|trace| Format::from_name(&trace.format.value));
        named.or_else(|| Format::from_sections(config))
    }

    /// The kind of a file with nothing but a stream of this format.
    #[must_use]
    pub const fn kind(self) -> Kind {
        match self {
            Format::Ntrace => Kind::Ntrace,
            Format::Etrace => Kind::Etrace,
            Format::Tandem => Kind::Tandem,
        }
    }

    /// What a kind of file says about it.
    #[must_use]
    pub(crate) const fn from_kind(kind: Kind) -> Option<Format> {
        match kind {
            Kind::Ntrace => Some(Format::Ntrace),
            Kind::Etrace | Kind::EtraceCsv => Some(Format::Etrace),
            Kind::Tandem | Kind::TandemContainer => Some(Format::Tandem),
            _ => None,
        }
    }

    /// The format of a trace: a container gives it, then the configuration, then
    /// the bytes, then the name of the file.
    ///
    /// # Errors
    ///
    /// A failing read, and what no format is known of.
    pub fn of(input: &mut Input, config: &Config) -> Result<Format, TraceError> {
        let path = input.path().to_path_buf();
        let head = input.peek(HEAD)?;
        if Streams::parameters(head).is_some() {
            return Ok(Format::Tandem);
        }
        if let Some(said) = Format::said(config) {
            return Ok(said);
        }
        if input.is_merged() {
            return Ok(Format::Etrace);
        }
        let head = input.peek(HEAD)?;
        let kind = detect(head);
        let found = Format::from_kind(kind).or_else(|| Format::from_extension(&path));
        found.ok_or(TraceError::NotRecognised("a trace"))
    }

    /// What a stream of this format is made of.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Format::Ntrace => "message",
            Format::Etrace => "packet",
            Format::Tandem => "group",
        }
    }

    /// Whether messages can name the hart they are of.
    #[must_use]
    pub const fn numbers_sources(self) -> bool {
        matches!(self, Format::Ntrace)
    }

    /// Whether such traces may be in a container.
    #[must_use]
    pub const fn has_containers(self) -> bool {
        matches!(self, Format::Tandem)
    }

    /// Whether such a trace holds the instructions themselves, so that it can be
    /// read without the program.
    #[must_use]
    pub const fn has_code(self) -> bool {
        matches!(self, Format::Tandem)
    }

    /// Its settings for a hart of this width.
    ///
    /// # Errors
    ///
    /// Settings that do not make sense together.
    pub fn settings(self, config: &Config, xlen: Xlen) -> Result<Settings, SettingsError> {
        Ok(match self {
            Format::Ntrace => Settings::Ntrace(config.ntrace.settings(xlen)?),
            Format::Etrace => {
                let mut settings = config.etrace.settings(xlen)?;
                let width = config.ingress.itype_width.as_ref();
                let three = width.is_some_and(|w| w.value == ItypeWidth::Three);
                if config.etrace.sijump_returns.is_none() {
                    settings.sijump_returns = three;
                }
                if let Some(data) = &mut settings.data {
                    filter_data(data, &config.filter.data, &config.etrace.data);
                }
                if settings.implicit_return && three {
                    return Err(etrace::ConfigError::ItypeWidth.into());
                }
                Settings::Etrace(settings)
            }
            Format::Tandem => {
                let settings = config.tandem.settings(isa(config, xlen))?;
                Settings::Tandem(Box::new(settings))
            }
        })
    }
}

/// What filters leave out of data trace: a decoder has to know.
fn filter_data(data: &mut etrace::DataConfig, filter: &DataFilter, said: &EtraceData) {
    data.kinds &= filter.kind_bits().unwrap_or(u16::MAX);
    data.sizes &= filter.size_bits().unwrap_or(u8::MAX);
    if said.filtered.is_none() {
        data.filtered = filter.is_dynamic();
    }
}

/// What people call it.
impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Ntrace => "N-Trace",
            Format::Etrace => "E-Trace",
            Format::Tandem => "tandem trace",
        })
    }
}

/// The instruction set of a hart of this width.
fn isa(config: &Config, xlen: Xlen) -> Isa {
    let said = given_isa(config);
    said.filter(|isa| isa.xlen() == xlen)
        .unwrap_or(Isa::general(xlen))
}

/// Stands for any: what an encoder needs of a port is the same for all.
const ISA: Isa = Isa::RV64GC;

/// The settings of a trace of one format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settings {
    /// Of N-Trace.
    Ntrace(ntrace::Config),
    /// Of E-Trace.
    Etrace(etrace::Config),
    /// Of a tandem trace.
    Tandem(Box<tandem::Config>),
}

impl Settings {
    /// The format.
    #[must_use]
    pub const fn format(&self) -> Format {
        match self {
            Settings::Ntrace(_) => Format::Ntrace,
            Settings::Etrace(_) => Format::Etrace,
            Settings::Tandem(_) => Format::Tandem,
        }
    }

    /// The version of the format's specification, as written in `[trace]`.
    #[must_use]
    pub const fn version(&self) -> &'static str {
        match self {
            Settings::Ntrace(config) => match config.version {
                ntrace::Version::V1_0 => "1.0",
                ntrace::Version::Rc7 => "1.0.0-rc7",
            },
            Settings::Etrace(config) => match config.version {
                etrace::Version::V2_0 => "2.0",
                etrace::Version::V2_05 => "2.05",
                etrace::Version::V1_1_1 => "1.1.1-draft",
            },
            Settings::Tandem(_) => "2018-11-20",
        }
    }

    /// The general instruction set of harts with these settings.
    #[must_use]
    pub const fn general_isa(&self) -> Isa {
        Isa::general(match self {
            Settings::Ntrace(config) => config.xlen,
            Settings::Etrace(config) => config.xlen,
            Settings::Tandem(config) => config.xlen,
        })
    }

    /// The settings in a container. The others and what else is said to be
    /// absent stay as they are.
    pub fn adopt(&mut self, parameters: Parameters) {
        if let Settings::Tandem(config) = self {
            adopt(config, parameters);
        }
    }

    /// Whether a stream has room for several harts.
    #[must_use]
    pub const fn has_sources(&self) -> bool {
        match self {
            Settings::Ntrace(config) => config.src_bits > 0,
            Settings::Etrace(config) => config.encapsulation.has_sources(),
            Settings::Tandem(_) => false,
        }
    }

    /// Its packets were merged by a transport that kept their sources apart.
    pub(crate) fn merge(&mut self) {
        if let Settings::Etrace(config) = self {
            let src_id = config.encapsulation.src_id;
            config.encapsulation = hartrace_etrace::Encapsulation {
                src_id,
                ..hartrace_etrace::Encapsulation::MERGED
            };
        }
    }

    /// Whether such a trace reports privilege modes.
    #[must_use]
    pub const fn has_modes(&self) -> bool {
        match self {
            Settings::Ntrace(config) => config.context,
            Settings::Etrace(_) => true,
            Settings::Tandem(config) => !config.absent.mode,
        }
    }

    /// What such a trace reports of a trap whose cause is not known, if it has to
    /// report something that may be wrong.
    #[must_use]
    pub fn instead_of_cause(&self) -> Option<&'static str> {
        match self {
            Settings::Ntrace(config) => match config.trap_types {
                ntrace::TrapTypes::Two => Some("an exception (B-TYPE 2)"),
                ntrace::TrapTypes::One | ntrace::TrapTypes::None => None,
            },
            Settings::Etrace(_) => Some("exception 0"),
            Settings::Tandem(_) => Some("cause 0"),
        }
    }

    /// Whether such a trace has data trace.
    #[must_use]
    pub const fn has_data(&self) -> bool {
        match self {
            Settings::Etrace(config) => config.data.is_some(),
            Settings::Ntrace(_) | Settings::Tandem(_) => false,
        }
    }

    /// Whether it has data trace with requests and their responses.
    #[must_use]
    pub fn has_split_data(&self) -> bool {
        match self {
            Settings::Etrace(config) => config.data.is_some_and(|data| data.split),
            Settings::Ntrace(_) | Settings::Tandem(_) => false,
        }
    }

    /// Its data packets are in a file of their own.
    pub fn separate_data(&mut self) {
        if let Settings::Etrace(config) = self
            && let Some(data) = &mut config.data
        {
            data.separate = true;
        }
    }

    /// Whether such a trace may report times.
    #[must_use]
    pub const fn has_time(&self) -> bool {
        match self {
            Settings::Ntrace(config) => config.timestamps.is_some(),
            Settings::Etrace(config) => {
                config.time_width > 0 || config.encapsulation.time_bytes > 0
            }
            Settings::Tandem(_) => true,
        }
    }

    /// The ingress port of such an encoder: what is not set in `[ingress]` is
    /// as the encoder wants it.
    #[must_use]
    pub fn port(&self, ingress: Ingress) -> Ingress {
        match self {
            Settings::Ntrace(config) => ingress.for_encoder(&config.port(ISA)),
            Settings::Etrace(config) => ingress.for_encoder(&config.port(ISA)),
            // It has no port: it gets every step.
            Settings::Tandem(_) => ingress,
        }
    }

    /// What such a trace does not report about the steps of a hart with this port.
    #[must_use]
    pub fn unreported(&self, port: &PortConfig) -> Unreported {
        match self {
            Settings::Tandem(_) => Unreported::default(),
            Settings::Ntrace(_) => Unreported {
                last_traps: true,
                ..Unreported::default()
            },
            Settings::Etrace(config) => Unreported {
                data: config.data.map(|data| {
                    let reported = data.reported(config.version, config.xlen);
                    Reported {
                        failed_swaps: reported.failed_swaps && port.multiple,
                        ..reported
                    }
                }),
                last_traps: false,
                traps: config.version.is_draft(),
                // Values are as wide as addresses in a packet.
                tval: !port.tval_mask() | unsent(config),
                rounds: Some(Inference {
                    isa: port.isa,
                    rules: config.rules(),
                    returns: false,
                }),
            },
        }
    }

    /// The same for a decoder of what our encoder writes: it sends no message
    /// that the specification does not define.
    #[must_use]
    pub(crate) fn of_own_encoder(mut self) -> Settings {
        if let Settings::Ntrace(config) = &mut self {
            config.other_tcodes = ntrace::OtherTcodes::Damage;
        }
        self
    }

    /// The same with this output queue; `None` for one that is never full. A tandem
    /// trace has none.
    #[must_use]
    pub fn with_queue(mut self, queue: Option<Queue>) -> Settings {
        match &mut self {
            Settings::Ntrace(config) => config.queue = queue,
            Settings::Etrace(config) => config.queue = queue,
            Settings::Tandem(_) => {}
        }
        self
    }

    /// Puts every setting into its section, defaults included.
    pub fn complete(&self, config: &mut Config) {
        match self {
            Settings::Ntrace(settings) => {
                config.ntrace = std::mem::take(&mut config.ntrace).completed(settings);
            }
            Settings::Etrace(settings) => {
                config.etrace = std::mem::take(&mut config.etrace).completed(settings);
            }
            Settings::Tandem(settings) => {
                config.tandem = std::mem::take(&mut config.tandem).completed(settings);
            }
        }
    }
}

/// The settings in a container. The style and what else is said to be absent
/// stay as they are.
pub fn adopt(config: &mut tandem::Config, parameters: Parameters) {
    let absent = config.absent.names();
    *config = tandem::Config {
        style: config.style,
        ..parameters.config
    };
    for name in absent {
        // It comes from such a list.
        let _ = config.absent.add(&name);
    }
}

/// The upper bits of values that packets have no room for.
fn unsent(config: &etrace::Config) -> u64 {
    let width = u32::from(config.iaddress_width);
    u64::MAX.checked_shl(width).unwrap_or(0)
}

/// Settings of a format that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsError {
    /// Of N-Trace.
    Ntrace(ntrace::RegisterError),
    /// Of E-Trace.
    Etrace(etrace::ConfigError),
    /// Of a tandem trace.
    Tandem(tandem::ConfigError),
}

impl SettingsError {
    /// Whose they are.
    #[must_use]
    pub const fn format(&self) -> Format {
        match self {
            SettingsError::Ntrace(_) => Format::Ntrace,
            SettingsError::Etrace(_) => Format::Etrace,
            SettingsError::Tandem(_) => Format::Tandem,
        }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingsError::Ntrace(error) => error.fmt(f),
            SettingsError::Etrace(error) => error.fmt(f),
            SettingsError::Tandem(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SettingsError {}

impl From<ntrace::RegisterError> for SettingsError {
    fn from(error: ntrace::RegisterError) -> SettingsError {
        SettingsError::Ntrace(error)
    }
}

impl From<ntrace::ConfigError> for SettingsError {
    fn from(error: ntrace::ConfigError) -> SettingsError {
        SettingsError::Ntrace(ntrace::RegisterError::Config(error))
    }
}

impl From<etrace::ConfigError> for SettingsError {
    fn from(error: etrace::ConfigError) -> SettingsError {
        SettingsError::Etrace(error)
    }
}

impl From<tandem::ConfigError> for SettingsError {
    fn from(error: tandem::ConfigError) -> SettingsError {
        SettingsError::Tandem(error)
    }
}
