//! A program on the built-in hart, with a trace of what it does.

use crate::error::{raised, warn};
use hartrace_analyze::Symbols;
use hartrace_capture::Recorder;
use hartrace_capture::config::{Config, Hart, Program as ProgramConfig, Setting};
use hartrace_capture::program::{Elf, ElfFile};
use hartrace_capture::trace::Format;
use hartrace_cosim::machine;
use hartrace_flow::erase::Dyn;
use hartrace_flow::{Effects, HartId, Observer, Step, Wants};
use hartrace_hart::host::{Files, Host};
use hartrace_hart::{Machine, Stop};
use hartrace_print::diagnostic::hart::missing_extensions;
use hartrace_print::diagnostic::program::bad_isa;
use hartrace_print::diagnostic::{Code, Diagnostic, trace};
use hartrace_print::run::Ended;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What a slice of a run should take: after it, Ctrl-C is looked for.
const SLICE: Duration = Duration::from_millis(100);

/// The least and the most instructions in a slice.
const SLICES: (u64, u64) = (10_000, 50_000_000);

/// What runs, and how, as Python passes it on.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Request {
    program: PathBuf,
    arguments: Vec<String>,
    stdin: Vec<u8>,
    trace: Option<String>,
    output: Option<PathBuf>,
    config: Vec<PathBuf>,
    isa: Option<String>,
    harts: Option<u32>,
    max_instructions: Option<u64>,
    files: Option<PathBuf>,
    writable: bool,
    max_output: usize,
}

/// How a run ended.
#[pyclass(module = "hartrace._hartrace", frozen, get_all)]
pub(crate) struct Outcome {
    stop: &'static str,
    exit_code: Option<i64>,
    summary: String,
    instructions: u64,
    cycles: u64,
    trace_bytes: Option<u64>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    is_cut: bool,
    /// Why the run is a failure, if it is one.
    failure: Option<Py<PyAny>>,
}

/// What is known after a run, before it is an object of Python.
struct Done {
    stop: Stop,
    summary: String,
    instructions: u64,
    cycles: u64,
    trace_bytes: Option<u64>,
    failure: Option<Diagnostic>,
    warnings: Vec<Diagnostic>,
}

/// Why a run did not come to an end.
enum Broken {
    Diagnostic(Box<Diagnostic>),
    /// An exception, such as KeyboardInterrupt.
    Python(PyErr),
}

impl From<Diagnostic> for Broken {
    fn from(diagnostic: Diagnostic) -> Broken {
        Broken::Diagnostic(Box::new(diagnostic))
    }
}

impl From<hartrace_cosim::Error> for Broken {
    fn from(error: hartrace_cosim::Error) -> Broken {
        Broken::Diagnostic(error.0)
    }
}

/// Runs a program.
#[pyfunction]
pub(crate) fn run_program(py: Python<'_>, request: Request) -> PyResult<Outcome> {
    let format = match &request.trace {
        None => None,
        Some(name) => Some(Format::from_name(name).ok_or_else(|| no_format(name))?),
    };
    let (stdout, stderr) = (
        Captured::new(request.max_output),
        Captured::new(request.max_output),
    );
    let streams = (stdout.clone(), stderr.clone());
    let done = py.detach(|| run(&request, format, streams));
    let done = done.map_err(|broken| match broken {
        Broken::Diagnostic(diagnostic) => raised(py, &diagnostic),
        Broken::Python(error) => error,
    })?;
    for warning in &done.warnings {
        warn(py, warning)?;
    }
    let failure = done.failure.map(|failure| raised(py, &failure));
    let (stdout, is_cut) = stdout.take();
    let (stderr, is_also_cut) = stderr.take();
    Ok(Outcome {
        stop: word(done.stop),
        exit_code: match done.stop {
            Stop::Exit(code) => Some(code.cast_signed()),
            _ => None,
        },
        summary: done.summary,
        instructions: done.instructions,
        cycles: done.cycles,
        trace_bytes: done.trace_bytes,
        stdout,
        stderr,
        is_cut: is_cut || is_also_cut,
        failure: failure.map(|error| error.into_value(py).into_any()),
    })
}

fn no_format(name: &str) -> PyErr {
    let names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
    let names = names.join(", ");
    PyValueError::new_err(format!(
        "`{name}` is not a kind of trace; the kinds are {names}"
    ))
}

/// The word for the end of a run.
const fn word(stop: Stop) -> &'static str {
    match stop {
        Stop::Exit(_) => "exit",
        Stop::Limit => "limit",
        Stop::Spins { .. } => "spins",
        Stop::Asleep { .. } => "asleep",
        Stop::TrapLoop { .. } => "trap loop",
    }
}

/// What a program writes, up to a limit.
#[derive(Clone)]
struct Captured {
    /// The bytes, and whether there were more.
    kept: Arc<Mutex<(Vec<u8>, bool)>>,
    limit: usize,
}

impl Captured {
    fn new(limit: usize) -> Captured {
        Captured {
            kept: Arc::default(),
            limit,
        }
    }

    fn take(&self) -> (Vec<u8>, bool) {
        std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let room = self.limit.saturating_sub(kept.0.len());
        kept.1 |= bytes.len() > room;
        kept.0.extend(bytes.iter().take(room));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The settings of a run.
fn settings(request: &Request) -> Result<Config, Broken> {
    let mut config = Config::defaults();
    for path in &request.config {
        let layer = Config::load(path).map_err(Diagnostic::from)?;
        config = layer.over(config);
    }
    if let Some(isa) = &request.isa {
        hartrace_isa::Isa::parse(isa).map_err(|error| bad_isa(isa, &error))?;
    }
    let elf = ElfFile {
        file: request.program.clone(),
        base: None,
        identity: None,
    };
    let flags = Config {
        program: ProgramConfig {
            elf: Some(Setting::flag(vec![elf], "program")),
            isa: request.isa.clone().map(|isa| Setting::flag(isa, "isa")),
            ..ProgramConfig::default()
        },
        hart: Hart {
            harts: request.harts.map(|harts| Setting::flag(harts, "harts")),
            ..Hart::default()
        },
        ..Config::default()
    };
    let mut config = flags.over(config);
    config.make_room_for_harts();
    Ok(config)
}

/// The world outside, as the program sees it.
fn host(request: &Request, (stdout, stderr): (Captured, Captured)) -> Result<Host, Broken> {
    let stdin = Box::new(io::Cursor::new(request.stdin.clone()));
    let host = Host::new(stdin, Box::new(stdout), Box::new(stderr));
    let name = request.program.as_os_str().as_encoded_bytes().to_vec();
    let words = request
        .arguments
        .iter()
        .map(|word| word.as_bytes().to_vec());
    let host = host.with_arguments(std::iter::once(name).chain(words));
    let Some(folder) = &request.files else {
        return Ok(host);
    };
    let files = match request.writable {
        true => Files::ReadWrite(folder.clone()),
        false => Files::ReadOnly(folder.clone()),
    };
    host.with_files(files).map_err(|error| {
        let message = format!("cannot open the directory `{}`: {error}", folder.display());
        Diagnostic::new(Code::CannotOpen, message).into()
    })
}

fn run(
    request: &Request,
    format: Option<Format>,
    streams: (Captured, Captured),
) -> Result<Done, Broken> {
    let mut config = settings(request)?;
    let file = config.program.elf.iter().flat_map(|elf| &elf.value).next();
    let Some(file) = file.cloned() else {
        return Err(trace::no_program().into());
    };
    let elf = Elf::read(&file).map_err(Diagnostic::from)?;
    config.report_contexts(machine::width(&elf));
    let (hart, isa) = machine::configure(&mut config, &elf)?;
    let program = machine::program(&elf)?;
    let symbols = Symbols::from_elf(&elf.bytes).ok();
    let entry = machine::entry(&config.hart, symbols.as_ref())?;
    let mut warnings: Vec<Diagnostic> = missing_extensions(&elf, isa).into_iter().collect();
    let mut machine = machine::build(&hart, host(request, streams)?)?;
    machine::load(&mut machine, &elf, &program, entry)?;
    let limit = (request.max_instructions).or(config.hart.max_insns.as_ref().map(|n| n.value));
    let (stop, trace_bytes) = match format.zip(request.output.as_deref()) {
        None => (
            drive(&mut machine, limit, Wants::NOTHING, &mut NoObserver)?,
            None,
        ),
        Some((format, path)) => {
            let (stop, bytes) = traced(&mut machine, limit, (format, path), (&elf, &config))?;
            (stop, Some(bytes))
        }
    };
    // A limit may end a run that would not have gone on.
    let stop = match (stop, machine.trap_loop()) {
        (Stop::Limit, Some(stop)) => stop,
        _ => stop,
    };
    for note in machine.host().take_notes() {
        warnings.push(Diagnostic::new(Code::Refused, note.to_string()));
    }
    let facts = Ended {
        config: &hart,
        program: &program,
        symbols: symbols.as_ref(),
        first_trap: machine.first_trap(),
        pc: machine.pc(),
        sp: machine.x(2),
    };
    warnings.extend(facts.cannot_end(stop));
    Ok(Done {
        stop,
        summary: facts.words(stop),
        instructions: machine.instructions(),
        cycles: machine.cycles(),
        trace_bytes,
        failure: facts.failure(stop),
        warnings,
    })
}

/// Runs a machine with a trace; gives its size. A run that is broken off leaves no file.
fn traced(
    machine: &mut Machine,
    limit: Option<u64>,
    (format, path): (Format, &Path),
    (elf, config): (&Elf, &Config),
) -> Result<(Stop, u64), Broken> {
    if format == Format::Tandem && machine.config().harts > 1 {
        let message = "a tandem trace of several harts needs a container";
        return Err(Diagnostic::new(Code::Contradiction, message)
            .help("write one with `hartrace run --container`, or use another format")
            .into());
    }
    let failed = |error| trace::recording(error, "run");
    let recorder = Recorder::create_as(path, format, &elf.file.file, config.clone());
    let mut recorder = recorder.map_err(failed)?;
    let wants = recorder.wants();
    let stop = drive(machine, limit, wants, recorder.observer())?;
    let written = recorder.close().map_err(failed)?;
    Ok((stop, written.bytes))
}

/// Nothing is written down.
struct NoObserver;

impl Observer for NoObserver {
    const WANTS: Wants = Wants::NOTHING;

    fn step(&mut self, _: HartId, _: &Step, _: &Effects) {}
}

/// Runs until there is a reason to stop.
fn drive(
    machine: &mut Machine,
    limit: Option<u64>,
    wants: Wants,
    observer: &mut Dyn<'_>,
) -> Result<Stop, Broken> {
    let mut slice = 1_000_000;
    let stop = loop {
        let begin = Instant::now();
        let done = machine.instructions();
        let left = limit.map_or(u64::MAX, |limit| limit.saturating_sub(done));
        if left == 0 {
            break Stop::Limit;
        }
        let stop = machine.run_any(left.min(slice), wants, observer);
        let signals = Python::try_attach(|py| py.check_signals());
        signals.unwrap_or(Ok(())).map_err(Broken::Python)?;
        if stop != Stop::Limit {
            break stop;
        }
        slice = match begin.elapsed() {
            time if time > SLICE * 2 => (slice / 2).max(SLICES.0),
            time if time < SLICE / 2 => (slice * 2).min(SLICES.1),
            _ => slice,
        };
    };
    observer.finish();
    // What is kept cannot fail.
    let _ = machine.host().finish();
    Ok(stop)
}
