//! An open trace: its bytes in order and the settings to read them.

use super::transport;
use super::{
    Code, Format, Guess, Known, Settings, SettingsError, Streams, TableDamage, Transport,
    TransportError, from_table,
};
use crate::config::Config;
use crate::detect::{HEAD, Kind, apparent, unpacker};
use crate::input::{Input, InputError};
use hartrace_flow::Image;
use hartrace_isa::{Isa, Xlen};
use std::fmt;

/// What is wrong with a container of tandem traces.
pub use hartrace_tandem::Fault as ContainerFault;

/// A trace up to this size is held in memory as a whole where it cannot be
/// mapped.
pub const MAX_WHOLE: u64 = 4 << 30;

/// A stream of one format, and the settings to read it by.
pub struct Trace {
    /// The settings: those that are given, or else guessed ones.
    pub settings: Settings,
    /// The stream.
    pub input: Input,
    /// What was guessed.
    pub guess: Option<Guess>,
    contained: bool,
}

/// Why a file is not read as a trace.
#[derive(Debug)]
pub enum Refusal {
    /// Samples of pins, which a tandem trace does not have.
    Pins,
    /// Empty, or compressed; with the first bytes.
    Unreadable(Kind, Vec<u8>),
    /// Some other kind of file.
    NotATrace(Kind),
    /// The dump is no stream.
    Transport(TransportError),
}

/// Why a trace cannot be read.
#[derive(Debug)]
pub enum TraceError {
    /// A failing read.
    Input(InputError),
    /// Settings that contradict each other.
    Settings(SettingsError),
    /// Neither settings nor bytes say that it is this.
    NotRecognised(&'static str),
    /// The parameters of a container cannot be read.
    Container(ContainerFault),
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceError::Input(error) => error.fmt(f),
            TraceError::Settings(error) => error.fmt(f),
            TraceError::NotRecognised(what) => write!(f, "does not look like {what}"),
            TraceError::Container(fault) => f.write_str(fault.text()),
        }
    }
}

impl std::error::Error for TraceError {}

impl From<InputError> for TraceError {
    fn from(error: InputError) -> TraceError {
        TraceError::Input(error)
    }
}

impl From<SettingsError> for TraceError {
    fn from(error: SettingsError) -> TraceError {
        TraceError::Settings(error)
    }
}

impl From<InputError> for Refusal {
    fn from(error: InputError) -> Refusal {
        Refusal::Transport(error.into())
    }
}

impl Trace {
    /// The stream in a file that may be a trace, with the settings that a sidecar or a
    /// configuration gives; its transport, too, unless one is given here.
    ///
    /// # Errors
    ///
    /// A failing read, and what is clearly no trace.
    pub fn accept(
        mut input: Input,
        transport: &Transport,
        config: &Config,
    ) -> Result<Input, Refusal> {
        let said = config.transport.transport();
        let transport = match *transport == Transport::default() {
            true => &said,
            false => transport,
        };
        if transport.pib.is_some() && Format::said(config) == Some(Format::Tandem) {
            return Err(Refusal::Pins);
        }
        let head = input.peek(HEAD)?;
        let bare = *transport == Transport::default();
        // Which format a stream has does not matter here, and it may be said.
        match apparent(head).unwrap_or(Kind::Unknown) {
            Kind::Empty => return Err(Refusal::Unreadable(Kind::Empty, head.to_vec())),
            kind @ Kind::Unknown if unpacker(head).is_some() => {
                return Err(Refusal::Unreadable(kind, head.to_vec()));
            }
            kind @ (Kind::Elf | Kind::CodeHistory | Kind::Sidecar | Kind::Config) => {
                return Err(Refusal::NotATrace(kind));
            }
            Kind::Unknown => {}
            kind if Format::from_kind(kind).is_some() => {}
            // Samples of pins may look like anything.
            kind if bare => return Err(Refusal::NotATrace(kind)),
            _ => {}
        }
        transport::unwrap(transport, input, config).map_err(Refusal::Transport)
    }

    /// Finds the format and the settings of a stream. Those that the
    /// configuration does not give are guessed.
    ///
    /// # Errors
    ///
    /// A failing read, settings that contradict each other, and bytes that
    /// look like no format.
    pub fn open(mut input: Input, config: &Config, known: Known<'_>) -> Result<Trace, TraceError> {
        let format = Format::of(&mut input, config)?;
        let known = known.or_given(config);
        let mut trace = Trace::given(input, format, config, known)?;
        if !trace.contained && !format.is_said(config) {
            trace.guess = Some(trace.settings.guess(&mut trace.input, known)?);
        }
        Ok(trace)
    }

    /// The same for a stream of a known format whose messages are only counted.
    /// Counting N-Trace depends on no setting that could be guessed; a stream of
    /// which nothing can be guessed is counted by the defaults.
    pub(crate) fn open_to_count(
        input: Input,
        format: Format,
        config: &Config,
        known: Known<'_>,
    ) -> Result<Trace, TraceError> {
        let known = known.or_given(config);
        let mut trace = Trace::given(input, format, config, known)?;
        if !trace.contained && !format.is_said(config) && format != Format::Ntrace {
            trace.guess = trace.settings.guess(&mut trace.input, known).ok();
        }
        Ok(trace)
    }

    /// A stream with the settings that are given, by the configuration or by a
    /// container.
    pub(super) fn given(
        mut input: Input,
        format: Format,
        config: &Config,
        known: Known<'_>,
    ) -> Result<Trace, TraceError> {
        let mut settings = format.settings(config, known.xlen.unwrap_or(Xlen::Rv64))?;
        if input.is_merged() {
            settings.merge();
        }
        let container = Streams::parameters(input.peek(HEAD)?);
        let contained = container.is_some();
        if let Some(parameters) = container {
            settings.adopt(parameters.map_err(TraceError::Container)?);
        }
        Ok(Trace {
            settings,
            input,
            guess: None,
            contained,
        })
    }

    /// Turns a table of packets into the stream it lists. Gives what is wrong
    /// with its rows.
    ///
    /// # Errors
    ///
    /// A failing read.
    pub fn read_table(mut self) -> Result<(Trace, Option<TableDamage>), InputError> {
        let (input, damage) = from_table(self.input, &self.settings)?;
        self.input = input;
        Ok((self, damage))
    }

    /// The format.
    #[must_use]
    pub fn format(&self) -> Format {
        self.settings.format()
    }

    /// Whether its streams are in a container, with the harts they are of.
    #[must_use]
    pub fn is_contained(&self) -> bool {
        self.contained
    }

    /// Whether it has room for several harts.
    #[must_use]
    pub fn has_sources(&self) -> bool {
        self.contained || self.settings.has_sources()
    }

    /// Whether decoding on so many threads pays. What a group of a tandem trace
    /// means depends on all groups before it, and so does the response to a request.
    #[must_use]
    pub fn is_for_threads(&self, threads: usize) -> bool {
        let in_order = self.settings.has_split_data() || self.format() == Format::Tandem;
        !in_order && self.is_worth(threads)
    }

    /// Whether it can be held as a whole, and is worth so many threads.
    pub(super) fn is_worth(&self, threads: usize) -> bool {
        let size = self.input.size().unwrap_or(0);
        threads > 1 && size >= MIN_WHOLE && (size <= MAX_WHOLE || self.input.is_file())
    }

    /// The program that the trace itself holds, which only a tandem trace does,
    /// and the trace again.
    ///
    /// # Errors
    ///
    /// A failing read.
    pub fn code(mut self, isa: Isa) -> Result<(Image, Trace), InputError> {
        let Settings::Tandem(config) = &self.settings else {
            return Ok((Image::new(), self));
        };
        let path = self.input.path().to_path_buf();
        let mut code = Code::new(config);
        self.input = if self.input.is_file() {
            self.input.chunks(|chunk| {
                code.feed(chunk);
                Ok::<(), InputError>(())
            })?;
            Input::open(&path)?
        } else {
            let bytes = self.input.read_all(MAX_WHOLE)?;
            code.feed(&bytes);
            Input::of(&path, bytes)
        };
        Ok((code.image(isa), self))
    }
}

/// A trace that is smaller is not worth the threads.
const MIN_WHOLE: u64 = 1 << 18;

/// The instruction set that a configuration gives.
pub(super) fn given_isa(config: &Config) -> Option<Isa> {
    let isa = config.program.isa.as_ref()?;
    Isa::parse_lenient(&isa.value).ok()
}
