//! Writes a trace and its sidecar to files.

use crate::args::is_stdout;
use crate::failure::Failure;
use crate::files::create;
use crate::settings::{Elf, Raw};
use crate::sink::Sink;
use crate::talk::Talk;
use hartrace_capture::code_history::{self, CodeFile};
use hartrace_capture::config::{Config, FilterError, Machine, Setting, TransportSection};
use hartrace_capture::output::Output;
use hartrace_capture::program::{code_parts, find_symbol, similar_symbols};
use hartrace_capture::sidecar::path_for;
use hartrace_capture::trace::transport;
use hartrace_capture::trace::{
    self, Format, Put, Settings, TraceWriter, Transport, WriteOptions, Written,
};
use hartrace_flow::filter::FilterConfig;
use hartrace_isa::Isa;
use hartrace_print::diagnostic::Code;
use hartrace_print::diagnostic::trace::{bad_filter, bad_transport, difference, misfit};
use hartrace_print::summary::trace_written;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

/// A trace that is to be written.
pub(crate) struct TraceFile {
    path: PathBuf,
    pub(crate) sink: Sink,
    sidecar: Option<Output>,
    /// The name of its code history, if that was written.
    code: Option<PathBuf>,
    /// What the stream is put into.
    transport: Transport,
}

impl TraceFile {
    /// Opens the trace and its sidecar; a stream or a device has none. If
    /// `judged`, the reader of a stream may go before the end.
    pub(crate) fn create<'a>(
        path: &Path,
        inputs: impl IntoIterator<Item = &'a Path> + Clone,
        judged: bool,
    ) -> Result<TraceFile, Failure> {
        if is_stdout(path) && std::io::stdout().is_terminal() {
            return Err(Failure::Usage(
                "a trace is binary and is not written to a terminal: give a file name, or use a \
                 pipe",
            ));
        }
        let output = create(path, inputs.clone())?.outlive_reader(judged);
        let sidecar = match output.is_file() {
            true => Some(create(&path_for(path), inputs)?),
            false => None,
        };
        Ok(TraceFile {
            path: path.to_path_buf(),
            sink: Sink::new(output),
            sidecar,
            code: None,
            transport: Transport::default(),
        })
    }

    /// The same in the transport of a configuration, for a trace with these settings.
    pub(crate) fn carried(
        mut self,
        config: &Config,
        settings: &Settings,
    ) -> Result<TraceFile, Failure> {
        self.transport = config.transport.transport();
        let check = transport::check(&self.transport, settings);
        check.map_err(|error| bad_transport(&error))?;
        if self.is_carried() {
            self.sink.gather();
        }
        Ok(self)
    }

    fn is_carried(&self) -> bool {
        self.transport != Transport::default()
    }

    /// The settings of the encoder for a trace with these.
    pub(crate) fn encoder(&self, settings: &Settings) -> Settings {
        transport::encoder(&self.transport, settings)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it can have a code history beside it: in a transport, or in a stream, the
    /// offsets of messages are not those that the encoder knows.
    pub(crate) fn takes_code(&self) -> bool {
        self.sidecar.is_some() && !self.is_carried()
    }

    /// Writes the code history of the trace beside it; gives its size.
    pub(crate) fn write_code(&mut self, code: &CodeFile) -> Result<u64, Failure> {
        let path = code_history::path_for(&self.path);
        let bytes = code.to_bytes();
        let output = create(&path, [])?;
        output.write_with(|out| out.write_all(&bytes))?;
        self.code = path.file_name().map(PathBuf::from);
        Ok(bytes.len() as u64)
    }

    /// Gives trace and sidecar their names.
    pub(crate) fn finish(
        self,
        config: &Config,
        settings: &Settings,
        elf: &[Elf],
    ) -> Result<(), Failure> {
        let files = elf.iter().map(|elf| (&elf.file, &*elf.bytes));
        let mut sidecar = trace::sidecar(&self.path, settings, &config.program, files);
        if settings.format() == Format::Tandem {
            sidecar.hart = config.hart.for_replay();
        }
        let code = self.code.clone().into_iter().collect::<Vec<_>>();
        sidecar.contexts = config.contexts.clone();
        sidecar.program.code = (!code.is_empty()).then(|| Setting::default(code));
        if self.is_carried() {
            let wrapped = transport::wrap(&self.transport, self.sink.gathered(), settings);
            let (bytes, transport) = wrapped.map_err(|error| bad_transport(&error))?;
            self.sink.put(&bytes);
            sidecar.transport = TransportSection::of(&transport);
        }
        self.close(config, sidecar)
    }

    /// The same with this sidecar.
    pub(crate) fn close(self, config: &Config, mut sidecar: Config) -> Result<(), Failure> {
        self.sink.check()?;
        if let Some(output) = self.sidecar {
            // Its boot code is needed to read the trace.
            let machine = config.hart.machine.clone();
            sidecar.hart.machine = machine.filter(|m| m.value == Machine::Spike);
            let text = sidecar.to_toml(false);
            output.write_with(|out| out.write_all(text.as_bytes()))?;
        }
        self.sink.finish()
    }
}

/// The code as a loader puts it into memory.
pub(crate) fn loaded(elf: &[Elf], raw: &[Raw]) -> Result<Vec<(u64, Vec<u8>)>, Failure> {
    let mut parts = Vec::new();
    for elf in elf {
        let program = crate::machine::program(elf)?;
        let segments = program.segments.into_iter();
        parts.extend(segments.map(|segment| (segment.addr, segment.data)));
    }
    parts.extend(raw.iter().map(|raw| (raw.file.base, raw.bytes.clone())));
    Ok(parts)
}

/// Refuses settings by which no decoder could follow the program.
pub(crate) fn fit(
    settings: &Settings,
    config: &Config,
    isa: Isa,
    (elf, raw): (&[Elf], &[Raw]),
    talk: &Talk,
) -> Result<(), Failure> {
    let doubt = settings.fit(config, isa, code_parts(elf, raw));
    let doubt = doubt.map_err(|error| misfit(Code::Contradiction, error))?;
    if let Some(doubt) = doubt {
        talk.warning(&misfit(Code::CutShort, doubt));
    }
    Ok(())
}

/// The filters of an encoder, for these programs.
pub(crate) fn filter(config: &Config, isa: Isa, elf: &[Elf]) -> Result<FilterConfig, Failure> {
    let find = |name: &str| find_symbol(elf, name);
    let filter = config.filter.config(isa.xlen(), &find);
    filter.map_err(|error| {
        let near = match &error {
            FilterError::Unknown(name) => similar_symbols(elf, name),
            _ => Vec::new(),
        };
        bad_filter(&error, &near).into()
    })
}

/// An encoder that writes to a sink, for these programs; its data packets to another,
/// if there is one.
pub(crate) fn writer<'a>(
    config: &Config,
    settings: &Settings,
    (isa, elf): (Isa, &[Elf]),
    (sink, data): (&'a Sink, Option<&'a Sink>),
    options: WriteOptions<'a>,
) -> Result<TraceWriter<'a>, Failure> {
    let port = settings.port(config.ingress.clone()).port(isa);
    let filter = filter(config, isa, elf)?;
    let fit = settings.fit_filter(config, &filter);
    fit.map_err(|error| misfit(Code::Contradiction, error))?;
    let split = settings.clone();
    let put: Put<'a> = match data {
        None => Box::new(|bytes: &[u8]| sink.put(bytes)),
        Some(data) => Box::new(move |bytes: &[u8]| {
            let (mut instructions, mut accesses) = (Vec::new(), Vec::new());
            trace::split(&split, bytes, &mut instructions, &mut accesses);
            sink.put(&instructions);
            data.put(&accesses);
        }),
    };
    Ok(TraceWriter::new(settings, port, &filter, options, put)?)
}

/// How large the trace became, and whether it says what was done; `causeless`
/// traps have no known cause.
pub(crate) fn report(
    path: &Path,
    format: Format,
    (written, causeless): (&Written, u64),
    leaves_out: Option<&'static str>,
    talk: &Talk,
) -> Result<(), Failure> {
    talk.summary(&trace_written(path, format, written, causeless));
    difference(written, leaves_out).map_or(Ok(()), |found| Err(found.into()))
}
