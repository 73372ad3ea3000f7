//! Traces and the settings they need; what the commands that read them share.

mod report;

pub(crate) use report::{Nothing, Report, Watch};

use crate::args;
use crate::diagnostic::{Code, Diagnostic, Failure, count, unknown_format};
use crate::settings::{self, Program};
use crate::talk::Talk;
use hartrace_analyze::{PcList, TraceListing};
use hartrace_capture::config::{Config, Origin};
use hartrace_capture::detect::Kind;
use hartrace_capture::input::{self, Input};
use hartrace_capture::trace::{
    self, ContainerFault, Format, Guess, Hint, Known, Refusal, TableDamage, Trace, TraceError,
    TransportError,
};
pub(crate) use hartrace_capture::trace::{MAX_WHOLE, is_for_threads};
use hartrace_flow::{Consumer, Image};
use hartrace_isa::{Isa, Xlen};
use std::path::Path;

/// The settings in force for a trace, from its sidecar, configuration files
/// and flags.
pub(crate) struct Settings {
    pub(crate) config: Config,
    sidecar: Option<Config>,
}

/// A trace and the program it is of.
pub(crate) struct Loaded {
    pub(crate) program: Program,
    pub(crate) isa: Isa,
    pub(crate) image: Image,
    pub(crate) settings: trace::Settings,
    pub(crate) input: Input,
}

impl Settings {
    pub(crate) fn resolve(
        trace: &Path,
        typed: &args::Program,
        talk: &Talk,
    ) -> Result<Settings, Failure> {
        let (config, sidecar) = settings::resolve_beside(trace, typed, talk)?;
        if let Some(format) = config.trace.as_ref().map(|t| &t.format)
            && Format::from_name(&format.value).is_none()
        {
            let name = input::name(trace);
            let message = format!("{name} is not a trace: its format is `{}`", format.value);
            return Err(Diagnostic::new(Code::NotATrace, message)
                .note(format!("the format is told at {}", format.origin))
                .into());
        }
        Ok(Settings { config, sidecar })
    }

    /// Those of a log.
    pub(crate) fn of_log(
        log: &Path,
        typed: &args::Program,
        talk: &Talk,
    ) -> Result<Settings, Failure> {
        let (config, sidecar) = settings::resolve_beside(log, typed, talk)?;
        Ok(Settings { config, sidecar })
    }

    /// The same with what the sidecar says of the format, whatever was typed.
    pub(crate) fn as_recorded(&self) -> Settings {
        let mut config = self.config.clone();
        if let Some(sidecar) = &self.sidecar
            && Format::from_sections(sidecar).is_some()
        {
            config.replace_formats(sidecar);
        }
        Settings {
            config,
            sidecar: self.sidecar.clone(),
        }
    }

    /// Reads the program, which must be the one that was traced.
    pub(crate) fn load(&self, talk: &Talk) -> Result<Program, Failure> {
        let program = settings::load(self.config.clone(), talk)?;
        if let Some(sidecar) = &self.sidecar {
            program.check_against(sidecar)?;
        }
        Ok(program)
    }

    /// The program, its code and the decoder's settings, and the stream it
    /// reads. Without a program the trace itself has to hold the code.
    pub(crate) fn with_program(
        &self,
        mut input: Input,
        strict: bool,
        talk: &Talk,
    ) -> Result<Loaded, Failure> {
        if self.program() == Named::Nowhere {
            if !self.format(&mut input)?.has_code() {
                return Err(no_program());
            }
            let trace = self.trace(input, Known::default(), strict, talk)?;
            let isa = self.isa().unwrap_or(trace.settings.general_isa());
            let (image, trace) = trace.code(isa)?;
            let program = settings::load(self.config.clone(), talk)?;
            return Ok(Loaded {
                program,
                isa,
                image,
                settings: trace.settings,
                input: trace.input,
            });
        }
        let program = self.load(talk)?;
        let isa = program.isa.unwrap_or(Isa::RV64GC);
        let Some(image) = program.image()? else {
            return Err(no_program());
        };
        let known = Known {
            xlen: Some(isa.xlen()),
            image: Some(&image),
        };
        let trace = self.trace(input, known, strict, talk)?;
        Ok(Loaded {
            program,
            isa,
            image,
            settings: trace.settings,
            input: trace.input,
        })
    }

    /// Whether programs are those that were traced.
    pub(crate) fn check(&self, elf: &[settings::Elf]) -> Result<(), Failure> {
        match &self.sidecar {
            Some(sidecar) => Ok(settings::check_against(elf, sidecar)?),
            None => Ok(()),
        }
    }

    /// Whether it is given as of a format.
    pub(crate) fn is_said(&self, format: Format) -> bool {
        Format::said(&self.config) == Some(format)
    }

    /// Whether a program is named, and only by the sidecar.
    pub(crate) fn program(&self) -> Named {
        let program = &self.config.program;
        let elf = program.elf.as_ref().map(|s| &s.origin);
        let raw = program.raw.as_ref().map(|s| &s.origin);
        match elf.or(raw) {
            None => Named::Nowhere,
            Some(Origin::Flag(_)) => Named::ByFlag,
            Some(_) => Named::InFile,
        }
    }

    /// The instruction set without reading the program.
    pub(crate) fn isa(&self) -> Option<Isa> {
        let isa = self.config.program.isa.as_ref()?;
        Isa::parse_lenient(&isa.value).ok()
    }

    /// The format of a trace.
    pub(crate) fn format(&self, input: &mut Input) -> Result<Format, Failure> {
        let found = Format::of(input, &self.config);
        found.map_err(|error| bad_trace(input.path(), error))
    }

    /// Opens a trace. What is clearly something else is refused.
    pub(crate) fn open(
        &self,
        path: &Path,
        transport: &args::Transport,
        command: &str,
    ) -> Result<Input, Failure> {
        self.accept(Input::open(path)?, transport, command)
    }

    /// The same of one that is open.
    pub(crate) fn accept(
        &self,
        input: Input,
        transport: &args::Transport,
        command: &str,
    ) -> Result<Input, Failure> {
        let path = input.path().to_path_buf();
        let said = Format::said(&self.config);
        let accepted = Trace::accept(input, &transport.get(), said);
        accepted.map_err(|refusal| refused(&path, refusal, command))
    }

    /// The settings of the decoder, and the stream it reads.
    pub(crate) fn of_trace(
        &self,
        input: Input,
        xlen: Option<Xlen>,
        image: Option<&Image>,
        strict: bool,
        talk: &Talk,
    ) -> Result<(trace::Settings, Input), Failure> {
        let trace = self.trace(input, Known { xlen, image }, strict, talk)?;
        Ok((trace.settings, trace.input))
    }

    /// The trace, with what was guessed and what is damaged reported.
    pub(crate) fn trace(
        &self,
        input: Input,
        known: Known<'_>,
        strict: bool,
        talk: &Talk,
    ) -> Result<Trace, Failure> {
        let path = input.path().to_path_buf();
        let trace = Trace::open(input, &self.config, known);
        let trace = trace.map_err(|error| bad_trace(&path, error))?;
        if let Some(guess) = &trace.guess {
            talk.warning(&guessed(&path, trace.format(), guess));
        }
        let (trace, damage) = trace.read_table()?;
        match damage.map(|damage| damaged_rows(&path, &damage)) {
            None => Ok(trace),
            Some(damage) if damage.code == Code::NothingRead => Err(damage.into()),
            Some(damage) if strict => Err(damage.help("leave out --strict to let it pass").into()),
            Some(damage) => {
                talk.warning(&damage);
                Ok(trace)
            }
        }
    }
}

/// Rows of a table that cannot be read; another code if it is all of them.
pub(crate) fn damaged_rows(path: &Path, damage: &TableDamage) -> Diagnostic {
    let name = input::name(path);
    let rows = count(damage.rows, "row");
    let message = format!("{name}: {} of {rows} cannot be read", damage.bad);
    let mut diagnostic = Diagnostic::new(Code::DamagedLines, message);
    for row in &damage.first {
        diagnostic = diagnostic.note(row.to_string());
    }
    let more = damage.bad - damage.first.len() as u64;
    if more > 0 {
        diagnostic = diagnostic.note(format!("and {more} more"));
    }
    diagnostic = diagnostic.help("are these the widths of the encoder, in section [etrace]?");
    match damage.bad == damage.rows {
        true => diagnostic.with_code(Code::NothingRead),
        false => diagnostic,
    }
}

/// A file that is not read as a trace.
fn refused(path: &Path, refusal: Refusal, command: &str) -> Failure {
    match refusal {
        Refusal::Pins => Failure::Usage("--pib goes with N-Trace"),
        Refusal::Unreadable(kind, head) => unknown_format(path, kind, &head, command).into(),
        Refusal::NotATrace(kind) => not_a_trace(path, kind),
        Refusal::Transport(TransportError::Input(error)) => error.into(),
        Refusal::Transport(TransportError::Ram(error)) => {
            let name = input::name(path);
            let message = format!("{name} is not the buffer of --ram: {error}");
            Diagnostic::new(Code::NotATrace, message)
                .help("dump the buffer from START to LIMIT, both included")
                .into()
        }
    }
}

/// A trace that cannot be read.
fn bad_trace(path: &Path, error: TraceError) -> Failure {
    match error {
        TraceError::Input(error) => error.into(),
        TraceError::Settings(error) => error.into(),
        TraceError::NotRecognised(what) => not_recognised(path, what).into(),
        TraceError::Container(fault) => bad_container(path, fault).into(),
    }
}

/// What nobody says anything about, and what it does not look like.
fn not_recognised(path: &Path, what: &str) -> Diagnostic {
    let name = input::name(path);
    Diagnostic::new(
        Code::UnknownFormat,
        format!("{name} does not look like {what}"),
    )
    .note("it has no sidecar, and no configuration says what it is")
    .note("what a memory or a probe holds is put in order by --ram, --pib or --order")
    .help("give its settings in section [ntrace], [etrace] or [tandem] of a configuration: -c FILE")
}

/// A container of which nothing can be read.
pub(crate) fn bad_container(path: &Path, fault: ContainerFault) -> Diagnostic {
    let name = input::name(path);
    let message = format!(
        "{name} is a container that cannot be read: {}",
        fault.text()
    );
    Diagnostic::new(Code::NotATrace, message)
        .named(fault.code())
        .help("without its parameters nobody knows what the bytes mean; get the file again")
}

/// Settings that were guessed, and how to give them.
pub(crate) fn guessed(path: &Path, format: Format, guess: &Guess) -> Diagnostic {
    let name = input::name(path);
    let message = format!(
        "{name} has no sidecar; guessing the settings of {}",
        guess.of
    );
    let mut diagnostic = Diagnostic::new(Code::Guessed, message).note(&guess.text);
    if !guess.also.is_empty() {
        let others = guess.also.join(", and ");
        diagnostic = diagnostic.note(format!("these fit as well: {others}"));
    }
    for hint in &guess.hints {
        diagnostic = diagnostic.note(match hint {
            Hint::Program => "the program (-e) may tell which is right",
            Hint::Width => "--isa or the program (-e) may tell which is right",
            Hint::AssumedWidth => {
                "addresses of 64 bits are assumed; --isa rv32gc or the program (-e) says others"
            }
        });
    }
    let section = format.name();
    diagnostic.help(format!(
        "give the settings in section [{section}] of a configuration: -c FILE"
    ))
}

/// Where a program is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    Nowhere,
    ByFlag,
    InFile,
}

fn not_a_trace(path: &Path, kind: Kind) -> Failure {
    let name = input::name(path);
    let diagnostic = Diagnostic::new(Code::NotATrace, format!("{name} is not a trace"))
        .note(format!("it looks like this kind of file: {kind}"));
    match kind {
        Kind::Elf => diagnostic.help("give the program with -e, and the trace as TRACE"),
        Kind::Config | Kind::Sidecar => diagnostic.help("give settings with -c"),
        Kind::CtrDump | Kind::CtrJson => diagnostic.help("`hartrace ctr` reads it"),
        _ => diagnostic.help("`hartrace encode` makes a trace of a log"),
    }
    .into()
}

/// No program is named.
pub(crate) fn no_program() -> Failure {
    Diagnostic::new(Code::NoProgram, "no program is given")
        .note("a trace tells where the hart went; what it executed is in the program")
        .help("name the program with -e, or use --raw FILE@BASE or a configuration with [program]")
        .into()
}

/// A consumer that writes text.
pub(crate) trait Text: Consumer {
    /// What has not been flushed.
    fn text(&mut self) -> &mut Vec<u8>;

    /// Bytes that have not been flushed.
    fn size(&self) -> usize;

    /// Flushes what is left.
    fn flush(&mut self);
}

impl<F: FnMut(&mut Vec<u8>)> Text for PcList<'_, F> {
    fn text(&mut self) -> &mut Vec<u8> {
        self.text()
    }

    fn size(&self) -> usize {
        self.len()
    }

    fn flush(&mut self) {
        self.finish();
    }
}

impl<F: FnMut(&mut Vec<u8>)> Text for TraceListing<'_, F> {
    fn text(&mut self) -> &mut Vec<u8> {
        self.text()
    }

    fn size(&self) -> usize {
        self.len()
    }

    fn flush(&mut self) {
        self.finish();
    }
}

/// As many threads as there are cores.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
