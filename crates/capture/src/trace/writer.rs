//! Steps to a trace of any format.

use super::checker::Checker;
use super::harts::Harts;
use super::write::{DATA, EtraceWriter, NtraceWriter};
use super::{ContainerWriter, Meter, Settings, SettingsError, Written};
use hartrace_flow::erase::Dyn;
use hartrace_flow::filter::FilterConfig;
use hartrace_flow::{
    Effects, HartId, Image, Observer, PortConfig, Step, Straights, Wants, steps_of,
};
use hartrace_isa::Isa;
use hartrace_logs::IngressCycle;
use hartrace_tandem as tandem;
use hartrace_tandem::container::{ParameterError, Parameters};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// What takes the bytes of a trace.
pub type Put<'a> = Box<dyn FnMut(&[u8]) + 'a>;

/// What a trace has besides its settings. All but `check`, `beside` and `code` concerns
/// tandem traces only.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions<'a> {
    /// The program, if the trace is to be decoded at once and compared with the
    /// steps.
    pub check: Option<&'a Image>,
    /// Whether another thread decodes and compares it.
    pub beside: bool,
    /// Whether the code that is executed is recorded; a tandem trace has it anyway.
    pub code: bool,
    /// What is in memory before the first step.
    pub load: Vec<(u64, Vec<u8>)>,
    /// A container, and whether it is compressed.
    pub container: Option<bool>,
    /// Names of the state that the steps will not report: a container says so
    /// at its start.
    pub absent: &'static [&'static str],
}

/// Why a trace cannot be written.
#[derive(Debug)]
pub enum WriteError {
    /// Settings that contradict each other.
    Settings(SettingsError),
    /// Settings that are too long for a container.
    Parameters(ParameterError),
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::Settings(error) => error.fmt(f),
            WriteError::Parameters(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for WriteError {}

impl<E: Into<SettingsError>> From<E> for WriteError {
    fn from(error: E) -> WriteError {
        WriteError::Settings(error.into())
    }
}

/// Encodes steps as a trace.
///
/// It wants everything a hart can report, since it may be of a format that does.
/// [`TraceWriter::observer`] is one that wants no more than its format
/// ([`TraceWriter::wants`]).
pub struct TraceWriter<'a> {
    writer: Writer<'a>,
    /// There is data trace.
    data: bool,
}

enum Writer<'a> {
    Ntrace(NtraceWriter<'a, Put<'a>>),
    Etrace(EtraceWriter<'a, Put<'a>>),
    Tandem(Box<Harts<'a>>),
}

impl<'a> TraceWriter<'a> {
    /// An encoder at the port of a hart, which traces what the filters let
    /// through; a tandem trace has neither. `put` takes the bytes.
    ///
    /// # Errors
    ///
    /// Settings that contradict each other.
    pub fn new(
        settings: &Settings,
        port: PortConfig,
        filter: &FilterConfig,
        options: WriteOptions<'a>,
        put: Put<'a>,
    ) -> Result<TraceWriter<'a>, WriteError> {
        let check = |image| {
            let unreported = settings.unreported(&port);
            // They have a decoder for all harts.
            Checker::new((settings, HartId(0)), unreported, image, options.beside)
        };
        let passing = (filter, settings.switches());
        let writer = match settings {
            Settings::Ntrace(config) => {
                let writer = NtraceWriter::new(config.clone(), port, filter, put)?;
                let writer = writer.filtered(&port, passing, &settings.unreported(&port));
                let writer = match options.code {
                    true => writer.recording_code(),
                    false => writer,
                };
                Writer::Ntrace(match options.check {
                    Some(image) => writer.checking(check(image)?),
                    None => writer,
                })
            }
            Settings::Etrace(config) => {
                let writer = EtraceWriter::new(config.clone(), port, filter, put)?;
                let writer = writer.filtered(&port, passing, &settings.unreported(&port));
                let writer = match options.code {
                    true => writer.recording_code(),
                    false => writer,
                };
                Writer::Etrace(match options.check {
                    Some(image) => writer.checking(check(image)?),
                    None => writer,
                })
            }
            // It has a decoder for each hart.
            Settings::Tandem(config) => {
                Writer::Tandem(Box::new(harts(config, port.isa, options, put)?))
            }
        };
        Ok(TraceWriter {
            writer,
            data: settings.has_data(),
        })
    }

    /// Also measures the bandwidth of the stream; not of a tandem trace, which no
    /// hardware queue carries.
    #[must_use]
    pub fn metered(self, meter: Meter) -> TraceWriter<'a> {
        let writer = match self.writer {
            Writer::Ntrace(writer) => Writer::Ntrace(writer.metered(meter)),
            Writer::Etrace(writer) => Writer::Etrace(writer.metered(meter)),
            Writer::Tandem(writer) => Writer::Tandem(writer),
        };
        TraceWriter { writer, ..self }
    }

    /// The observer of its format. It is compiled here, whoever uses it.
    #[inline(never)]
    pub fn observer(&mut self) -> &mut Dyn<'_> {
        match &mut self.writer {
            Writer::Ntrace(writer) => writer,
            Writer::Etrace(writer) => writer,
            Writer::Tandem(writer) => writer.as_mut(),
        }
    }

    /// Gives a cycle of an ingress port to the encoder as it is; not to that of a tandem
    /// trace, which has no port.
    pub fn cycle(&mut self, cycle: &IngressCycle<'_>) {
        match &mut self.writer {
            Writer::Ntrace(writer) => writer.cycle(cycle),
            Writer::Etrace(writer) => writer.cycle(cycle),
            Writer::Tandem(_) => {}
        }
    }

    /// What its format needs to know of steps.
    #[must_use]
    pub fn wants(&self) -> Wants {
        match &self.writer {
            Writer::Etrace(_) if self.data => DATA,
            Writer::Ntrace(_) | Writer::Etrace(_) => Wants::STEPS,
            Writer::Tandem(_) => Wants::ALL,
        }
    }

    /// What was written; after [`Observer::finish`].
    #[must_use]
    pub fn done(self) -> Written {
        match self.writer {
            Writer::Ntrace(writer) => writer.written(),
            Writer::Etrace(writer) => writer.written(),
            Writer::Tandem(writer) => writer.written(),
        }
    }
}

impl Observer for TraceWriter<'_> {
    const WANTS: Wants = Wants::ALL;

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        match &mut self.writer {
            Writer::Ntrace(writer) => writer.step(hart, step, effects),
            Writer::Etrace(writer) => writer.step(hart, step, effects),
            Writer::Tandem(writer) => writer.step(hart, step, effects),
        }
    }

    fn straights(&mut self, hart: HartId, code: &Straights<'_>) {
        if code.has_changes() && !matches!(self.writer, Writer::Tandem(_)) {
            // The others take no more than accesses.
            return steps_of(self, hart, code);
        }
        match &mut self.writer {
            Writer::Ntrace(writer) => writer.straights(hart, code),
            Writer::Etrace(writer) => writer.straights(hart, code),
            Writer::Tandem(writer) => writer.straights(hart, code),
        }
    }

    fn finish(&mut self) {
        match &mut self.writer {
            Writer::Ntrace(writer) => writer.finish(),
            Writer::Etrace(writer) => writer.finish(),
            Writer::Tandem(writer) => writer.finish(),
        }
    }
}

/// The writer of tandem traces: all harts to `put`, or to a container.
fn harts<'a>(
    config: &tandem::Config,
    isa: Isa,
    options: WriteOptions<'a>,
    put: Put<'a>,
) -> Result<Harts<'a>, WriteError> {
    let WriteOptions {
        check,
        beside,
        load,
        container,
        absent,
        code: _,
    } = options;
    let Some(compress) = container else {
        let put = Rc::new(RefCell::new(put));
        let open = move |_| -> Put<'a> {
            let put = Rc::clone(&put);
            Box::new(move |bytes| (put.borrow_mut())(bytes))
        };
        return Ok(Harts::new(config, (check, beside), load, open)?);
    };
    let mut parameters = Parameters {
        config: config.clone(),
        isa: Some(isa.to_string()),
    };
    for name in absent {
        // They are names of elements.
        let _ = parameters.config.absent.add(name);
    }
    let container = ContainerWriter::new(&parameters, compress, put);
    let container = container.map_err(WriteError::Parameters)?;
    let container = Rc::new(RefCell::new(container));
    let one = Rc::clone(&container);
    let open = move |hart| -> Put<'a> {
        let one = Rc::clone(&one);
        Box::new(move |bytes| one.borrow_mut().put(hart, bytes))
    };
    let harts = Harts::new(config, (check, beside), load, open)?;
    Ok(harts.inside(move || container.borrow_mut().finish()))
}
