//! A trace on its way into a file, and its sidecar.

use super::create;
use super::log_write::Sink;
use super::trace_harts::Harts;
use crate::args::is_stdout;
use crate::diagnostic::{Code, Diagnostic, Failure, count};
use crate::settings::{Elf, Raw};
use crate::talk::Talk;
use hartrace_capture::config::{Config, Filter, Hart, Machine, Origin, Setting};
use hartrace_capture::output::Output;
use hartrace_capture::sidecar::path_for;
use hartrace_capture::trace::{
    self, ContainerWriter, Decoder, EtraceWriter, Format, NtraceWriter, Settings, SettingsError,
    Written,
};
use hartrace_flow::{Effects, HartId, Image, Observer, Step, Wants};
use hartrace_isa::{Isa, csr};
use hartrace_ntrace as ntrace;
use hartrace_tandem::container::{ParameterError, Parameters};
use hartrace_tandem::{Elements, Register};
use std::cell::RefCell;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// A trace that is to be written.
pub(super) struct TraceFile {
    path: PathBuf,
    pub(super) sink: Sink,
    sidecar: Option<Output>,
}

impl TraceFile {
    /// Opens the trace and its sidecar; a stream or a device has none.
    pub(super) fn create<'a>(
        path: &Path,
        inputs: impl IntoIterator<Item = &'a Path> + Clone,
    ) -> Result<TraceFile, Failure> {
        if is_stdout(path) && std::io::stdout().is_terminal() {
            return Err(Failure::Usage(
                "a trace is binary, which does not go to a terminal: name a file, or use a pipe",
            ));
        }
        let output = create(path, inputs.clone())?;
        let sidecar = match output.is_file() {
            true => Some(create(&path_for(path), inputs)?),
            false => None,
        };
        Ok(TraceFile {
            path: path.to_path_buf(),
            sink: Sink::new(output),
            sidecar,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives trace and sidecar their names.
    pub(super) fn finish(
        self,
        config: &Config,
        settings: &Settings,
        elf: &[Elf],
    ) -> Result<(), Failure> {
        let files = elf.iter().map(|elf| (&elf.file, elf.bytes.as_slice()));
        let mut sidecar = trace::sidecar(&self.path, settings, &config.program, files);
        if settings.format() == Format::Tandem {
            recall(&config.hart, &mut sidecar.hart);
        }
        self.close(config, sidecar)
    }

    /// The same with this sidecar.
    pub(super) fn close(self, config: &Config, mut sidecar: Config) -> Result<(), Failure> {
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

/// Notes what the state of a hart depends on, where it is not as usual: a
/// tandem trace is verified on the same machine.
fn recall(hart: &Hart, to: &mut Hart) {
    fn said<T: Clone>(setting: &Option<Setting<T>>) -> Option<Setting<T>> {
        setting.clone().filter(|s| s.origin != Origin::Default)
    }
    to.memory = said(&hart.memory);
    to.misaligned = said(&hart.misaligned);
    to.update_ad = said(&hart.update_ad);
}

pub(super) type Put<'a> = Box<dyn FnMut(&[u8]) + 'a>;

/// What encodes steps into a sink.
pub(super) enum Writer<'a> {
    Ntrace(NtraceWriter<'a, Put<'a>>),
    Etrace(EtraceWriter<'a, Put<'a>>),
    Tandem(Box<Harts<'a>>),
}

impl Writer<'_> {
    /// What was written; after [`Observer::finish`].
    pub(super) fn done(self) -> Done {
        let (untold, container) = match &self {
            Writer::Tandem(harts) => (harts.untold(), harts.container()),
            _ => (Elements::default(), None),
        };
        let written = match self {
            Writer::Ntrace(writer) => writer.written(),
            Writer::Etrace(writer) => writer.written(),
            Writer::Tandem(writer) => writer.written(),
        };
        Done {
            written,
            untold,
            container,
        }
    }
}

/// What became of a trace.
pub(super) struct Done {
    pub(super) written: Written,
    /// What the source of a tandem trace did not tell.
    pub(super) untold: Elements,
    /// Bytes of the container it is in.
    pub(super) container: Option<u64>,
}

impl Done {
    /// Adds to the settings what the trace turned out not to tell.
    pub(super) fn complete(&self, settings: &mut Settings) {
        if let Settings::Tandem(config) = settings {
            add_all(&mut config.absent, &self.untold.names());
        }
    }
}

/// The code as a loader puts it into memory.
pub(super) fn loaded(elf: &[Elf], raw: &[Raw]) -> Result<Vec<(u64, Vec<u8>)>, Failure> {
    let mut parts = Vec::new();
    for elf in elf {
        let program = super::run::program(elf)?;
        let segments = program.segments.into_iter();
        parts.extend(segments.map(|segment| (segment.addr, segment.data)));
    }
    parts.extend(raw.iter().map(|raw| (raw.file.base, raw.bytes.clone())));
    Ok(parts)
}

impl Observer for Writer<'_> {
    // As much as one of them wants.
    const WANTS: Wants = Wants::ALL;

    #[inline]
    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        match self {
            Writer::Ntrace(writer) => writer.step(hart, step, effects),
            Writer::Etrace(writer) => writer.step(hart, step, effects),
            Writer::Tandem(writer) => writer.step(hart, step, effects),
        }
    }

    fn finish(&mut self) {
        match self {
            Writer::Ntrace(writer) => writer.finish(),
            Writer::Etrace(writer) => writer.finish(),
            Writer::Tandem(writer) => writer.finish(),
        }
    }
}

/// Told nothing of what steps change: whoever does not want it is not kept
/// waiting for it.
pub(super) struct Plain<O>(pub(super) O);

impl<O: Observer> Observer for Plain<O> {
    const WANTS: Wants = Wants::STEPS;

    #[inline]
    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        self.0.step(hart, step, effects);
    }

    fn finish(&mut self) {
        self.0.finish();
    }
}

/// What a tandem trace has around it.
#[derive(Clone, Default)]
pub(super) struct Pack {
    /// What is in memory before the first step.
    pub(super) load: Vec<(u64, Vec<u8>)>,
    /// A container, and whether it is compressed.
    pub(super) container: Option<bool>,
    /// What the source will not tell: a container says so at the start.
    pub(super) untold: Vec<&'static str>,
}

fn add_all<N: AsRef<str>>(absent: &mut Elements, names: &[N]) {
    for name in names {
        // They are names of elements.
        let _ = absent.add(name.as_ref());
    }
}

/// Parameters that do not fit into a container.
pub(super) fn too_long(error: &ParameterError) -> Diagnostic {
    let message = format!("the settings in [tandem] do not fit into a container: {error}");
    Diagnostic::new(Code::Contradiction, message).help("name classes of registers in `absent`")
}

/// An encoder in front of a sink; with a program, its trace is decoded at once.
pub(super) fn writer<'a>(
    config: &Config,
    settings: &Settings,
    isa: Isa,
    check: Option<&'a Image>,
    sink: &'a Sink,
    pack: Pack,
) -> Result<Writer<'a>, Failure> {
    let port = settings.port(config.ingress.clone()).port(isa);
    let filter = config.filter.config(isa.xlen()).map_err(|error| {
        Diagnostic::new(
            Code::Contradiction,
            format!("the settings in [filter] cannot be: {error}"),
        )
        .help("choose fewer or larger ranges")
    })?;
    let put: Put<'a> = Box::new(|bytes| sink.put(bytes));
    let decoder = match check {
        Some(image) => Some((Decoder::new(settings, image)?, settings.untold(&port))),
        None => None,
    };
    Ok(match settings {
        Settings::Ntrace(ntrace) => {
            let writer = NtraceWriter::new(ntrace.clone(), port, &filter, put);
            let writer = writer.map_err(SettingsError::from)?;
            Writer::Ntrace(match decoder {
                Some((decoder, untold)) => writer.checking(decoder, untold),
                None => writer,
            })
        }
        Settings::Etrace(etrace) => {
            let writer = EtraceWriter::new(etrace.clone(), port, &filter, put);
            let writer = writer.map_err(SettingsError::from)?;
            Writer::Etrace(match decoder {
                Some((decoder, untold)) => writer.checking(decoder, untold),
                None => writer,
            })
        }
        // It has no port, and a decoder for each hart.
        Settings::Tandem(tandem) => {
            let Some(compress) = pack.container else {
                let open = |_| -> Put<'a> { Box::new(|bytes| sink.put(bytes)) };
                let harts = Harts::new(tandem, check, pack.load, open)?;
                return Ok(Writer::Tandem(Box::new(harts)));
            };
            let mut parameters = Parameters {
                config: tandem.as_ref().clone(),
                isa: Some(isa.to_string()),
            };
            add_all(&mut parameters.config.absent, &pack.untold);
            let container = ContainerWriter::new(&parameters, compress, put)
                .map_err(|error| too_long(&error))?;
            let container = Rc::new(RefCell::new(container));
            let one = Rc::clone(&container);
            let open = move |hart| -> Put<'a> {
                let one = Rc::clone(&one);
                Box::new(move |bytes| one.borrow_mut().put(hart, bytes))
            };
            let harts = Harts::new(tandem, check, pack.load, open)?;
            Writer::Tandem(Box::new(
                harts.inside(move || container.borrow_mut().finish()),
            ))
        }
    })
}

/// How large the trace became, and whether it says what was done.
pub(super) fn report(
    path: &Path,
    format: Format,
    Done {
        written, container, ..
    }: &Done,
    leaves_out: Option<&'static str>,
    talk: &Talk,
) -> Result<(), Failure> {
    let bits = written.bytes as f64 * 8.0 / written.instructions.max(1) as f64;
    let mut text = format!(
        "{}: {}, {}, {}, {bits:.3} bits/instruction",
        path.display(),
        count(written.instructions, "instruction"),
        count(written.messages, unit(format)),
        count(written.bytes, "byte"),
    );
    if let Some(container) = container {
        text += &format!(", {} in the container", count(*container, "byte"));
    }
    let Some(check) = &written.check else {
        talk.summary(&text);
        return Ok(());
    };
    match check {
        Ok(checked) => {
            text += &format!(
                "; decoded and equal: {}, {}",
                count(checked.insns, "instruction"),
                count(checked.traps, "trap")
            );
            if checked.lost > 0 {
                let lost = count(checked.lost, "instruction");
                text += &format!(" ({lost} at losses not compared)");
            }
            // E-Trace does not count how often a hart goes round without a
            // branch.
            let compared = checked.insns + checked.lost;
            match written.instructions.saturating_sub(compared) {
                0 => {}
                rounds => text += &format!(" (and {rounds} more in loops without a branch)"),
            }
            talk.summary(&text);
            Ok(())
        }
        Err(difference) => {
            talk.summary(&text);
            let message = format!("what was decoded is not what was done: {difference}");
            let diagnostic = Diagnostic::new(Code::Difference, message);
            Err(match leaves_out {
                Some(what) => diagnostic.note(format!("the settings leave parts out: {what}")),
                None if difference.is_about_a_trap() => diagnostic,
                None => diagnostic
                    .note("code that changes while it runs is not in the program, and differs"),
            }
            .into())
        }
    }
}

/// What a stream of this format is made of.
pub(super) const fn unit(format: Format) -> &'static str {
    match format {
        Format::Ntrace => "message",
        Format::Etrace => "packet",
        Format::Tandem => "group",
    }
}

/// Settings by which not everything is traced.
pub(super) fn leaves_out(config: &Config, settings: &Settings) -> Option<&'static str> {
    use ntrace::TriggerAction::{Off, On};
    let switches = |action| matches!(action, On | Off);
    let (queue, disabled, triggers) = match settings {
        Settings::Ntrace(ntrace) => (
            ntrace.queue.is_some_and(|queue| !queue.stall),
            ntrace.starts_disabled,
            ntrace.triggers || ntrace.external.into_iter().any(switches),
        ),
        Settings::Etrace(etrace) => (
            etrace.queue.is_some_and(|queue| !queue.stall),
            etrace.starts_disabled,
            etrace.triggers,
        ),
        Settings::Tandem(tandem) => {
            let absent = &tandem.absent;
            // By which a trap is known.
            let mut causes = [csr::MCAUSE, csr::SCAUSE].into_iter().map(Register::csr);
            let causes =
                causes.any(|csr| absent.registers.contains(csr) || absent.in_traps.contains(csr));
            let blind = absent.pc || absent.insn || causes;
            return blind.then_some("absent in [tandem]");
        }
    };
    if queue {
        Some("queue_bytes without queue_stall")
    } else if disabled {
        Some("starts_disabled")
    } else if triggers {
        Some("triggers")
    } else if config.filter != Filter::default() {
        Some("[filter]")
    } else {
        None
    }
}
