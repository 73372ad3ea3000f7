//! Traces and the settings they need; what the commands that read them share.

mod report;

pub(crate) use report::{Nothing, Report, Watch};

use crate::args;
use crate::diagnostic::{Code, Diagnostic, Failure, count, unknown_format};
use crate::settings::{self, Program};
use crate::talk::Talk;
use hartrace_analyze::{PcList, TraceListing};
use hartrace_capture::config::{Config, Origin};
use hartrace_capture::detect::{HEAD, Kind, detect, unpacker};
use hartrace_capture::input::{self, Input};
use hartrace_capture::trace::{
    self, Code as CodeIn, Format, Streams, Transport, TransportError, from_table,
};
use hartrace_etrace as etrace;
use hartrace_flow::{Consumer, Image, SpaceId};
use hartrace_isa::{Isa, Xlen};
use hartrace_ntrace as ntrace;
use hartrace_tandem as tandem;
use hartrace_tandem::container::Parameters;
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

    /// The same with what the sidecar says of the format, whatever was typed.
    pub(crate) fn as_recorded(&self) -> Settings {
        let mut config = self.config.clone();
        if let Some(sidecar) = &self.sidecar
            && Format::from_sections(sidecar).is_some()
        {
            config.ntrace = sidecar.ntrace.clone();
            config.etrace = sidecar.etrace.clone();
            config.tandem = sidecar.tandem.clone();
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
    /// reads. Without a program a tandem trace has to tell the code.
    pub(crate) fn with_program(
        &self,
        mut input: Input,
        strict: bool,
        talk: &Talk,
    ) -> Result<Loaded, Failure> {
        if self.program() == Named::Nowhere {
            if self.format(&mut input)? != Format::Tandem {
                return Err(no_program());
            }
            let (settings, input) = self.of_trace(input, None, None, strict, talk)?;
            let trace::Settings::Tandem(config) = &settings else {
                return Err(no_program());
            };
            let isa = self.isa().unwrap_or(general(config.xlen));
            let (image, input) = code_in(input, config, isa)?;
            let program = settings::load(self.config.clone(), talk)?;
            return Ok(Loaded {
                program,
                isa,
                image,
                settings,
                input,
            });
        }
        let program = self.load(talk)?;
        let isa = program.isa.unwrap_or(Isa::RV64GC);
        let Some(image) = program.image()? else {
            return Err(no_program());
        };
        let (settings, input) =
            self.of_trace(input, Some(isa.xlen()), Some(&image), strict, talk)?;
        Ok(Loaded {
            program,
            isa,
            image,
            settings,
            input,
        })
    }

    /// Whether programs are those that were traced.
    pub(crate) fn check(&self, elf: &[settings::Elf]) -> Result<(), Failure> {
        match &self.sidecar {
            Some(sidecar) => Ok(settings::check_against(elf, sidecar)?),
            None => Ok(()),
        }
    }

    /// Whether somebody says that it is of a format.
    pub(crate) fn is_said(&self, format: Format) -> bool {
        self.said_format() == Some(format)
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

    /// The format, where somebody says it.
    fn said_format(&self) -> Option<Format> {
        let trace = self.config.trace.as_ref();
        let named = trace.and_then(|trace| Format::from_name(&trace.format.value));
        named.or_else(|| Format::from_sections(&self.config))
    }

    /// The format of a trace: a container says it, then the settings, then its
    /// bytes.
    pub(crate) fn format(&self, input: &mut Input) -> Result<Format, Failure> {
        if Streams::parameters(input.peek(HEAD)?).is_some() {
            return Ok(Format::Tandem);
        }
        self.said_format().map_or_else(|| format_of(input), Ok)
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
        mut input: Input,
        transport: &args::Transport,
        command: &str,
    ) -> Result<Input, Failure> {
        let path = input.path().to_path_buf();
        let path = path.as_path();
        let transport = transport.get();
        let said = self.said_format();
        if transport.pib.is_some() && said.is_some_and(|said| said != Format::Ntrace) {
            return Err(Failure::Usage("--pib goes with N-Trace"));
        }
        let head = input.peek(HEAD)?;
        let bare = transport == Transport::default();
        match detect(head) {
            Kind::Empty => return Err(unknown_format(path, Kind::Empty, head, command).into()),
            kind @ Kind::Unknown if unpacker(head).is_some() => {
                return Err(unknown_format(path, kind, head, command).into());
            }
            kind @ (Kind::Elf | Kind::Sidecar | Kind::Config) => {
                return Err(not_a_trace(path, kind));
            }
            Kind::Ntrace | Kind::Etrace | Kind::EtraceCsv | Kind::Unknown => {}
            Kind::Tandem | Kind::TandemContainer => {}
            // Samples of pins may look like anything.
            kind if bare => return Err(not_a_trace(path, kind)),
            _ => {}
        }
        transport.open(input, said).map_err(|error| match error {
            TransportError::Input(error) => error.into(),
            TransportError::Ram(error) => {
                let name = input::name(path);
                let message = format!("{name} is not the buffer of --ram: {error}");
                Diagnostic::new(Code::NotATrace, message)
                    .help("dump the buffer from START to LIMIT, both included")
                    .into()
            }
        })
    }

    /// The settings of the decoder, and the stream it reads. What nobody said
    /// is guessed from the trace, and told.
    pub(crate) fn of_trace(
        &self,
        mut input: Input,
        xlen: Option<Xlen>,
        image: Option<&Image>,
        strict: bool,
        talk: &Talk,
    ) -> Result<(trace::Settings, Input), Failure> {
        let said = xlen.or_else(|| self.isa().map(|isa| isa.xlen()));
        let known = said.unwrap_or(Xlen::Rv64);
        let container = Streams::parameters(input.peek(HEAD)?);
        let format = self.format(&mut input)?;
        let settings = match format.settings(&self.config, known)? {
            trace::Settings::Ntrace(config) if !self.config.ntrace.is_said() => {
                trace::Settings::Ntrace(guess_ntrace(config, &mut input, talk)?)
            }
            trace::Settings::Etrace(config) if !self.config.etrace.is_said() => {
                let guess = guess_etrace(&config, &mut input, said, image);
                let (config, diagnostic) = guess.map_err(Failure::Diagnostic)?;
                talk.warning(&diagnostic);
                trace::Settings::Etrace(config)
            }
            trace::Settings::Tandem(mut config) if container.is_some() => {
                if let Some(parameters) = container {
                    contained(&mut config, parameters)
                        .map_err(|f| bad_container(input.path(), f))?;
                }
                trace::Settings::Tandem(config)
            }
            trace::Settings::Tandem(config) if !self.config.tandem.is_said() => {
                let guess = guess_tandem(&config, &mut input, said);
                let (config, diagnostic) = guess.map_err(Failure::Diagnostic)?;
                talk.warning(&diagnostic);
                trace::Settings::Tandem(Box::new(config))
            }
            settings => settings,
        };
        let (input, damage) = stream(&settings, input).map_err(Failure::Diagnostic)?;
        match damage {
            Some(damage) if strict => Err(damage.help("leave out --strict to let it pass").into()),
            damage => {
                damage.iter().for_each(|damage| talk.warning(damage));
                Ok((settings, input))
            }
        }
    }
}

/// The stream of a trace that may be a table, and what is wrong with its rows.
pub(crate) fn stream(
    settings: &trace::Settings,
    mut input: Input,
) -> Result<(Input, Option<Diagnostic>), Box<Diagnostic>> {
    let trace::Settings::Etrace(config) = settings else {
        return Ok((input, None));
    };
    let head = input.peek(HEAD).map_err(|e| Box::new(e.into()))?;
    if detect(head) != Kind::EtraceCsv {
        return Ok((input, None));
    }
    let name = input::name(input.path());
    let table = from_table(input, &config.layout()).map_err(|e| Box::new(e.into()))?;
    if table.bad == 0 {
        return Ok((table.stream, None));
    }
    let rows = count(table.rows, "row");
    let message = format!("{name}: {} of {rows} cannot be read", table.bad);
    let mut diagnostic = Diagnostic::new(Code::DamagedLines, message);
    for row in &table.first {
        diagnostic = diagnostic.note(row.to_string());
    }
    let more = table.bad - table.first.len() as u64;
    if more > 0 {
        diagnostic = diagnostic.note(format!("and {more} more"));
    }
    diagnostic = diagnostic.help("are these the widths of the encoder, in section [etrace]?");
    match table.bad == table.rows {
        true => Err(Box::new(diagnostic.with_code(Code::NothingRead))),
        false => Ok((table.stream, Some(diagnostic))),
    }
}

/// What the bytes look like, or else what the name says.
fn format_of(input: &mut Input) -> Result<Format, Failure> {
    let path = input.path().to_path_buf();
    let found = match detect(input.peek(HEAD)?) {
        Kind::Etrace | Kind::EtraceCsv => Some(Format::Etrace),
        Kind::Ntrace => Some(Format::Ntrace),
        Kind::Tandem | Kind::TandemContainer => Some(Format::Tandem),
        _ => Format::from_extension(&path),
    };
    found.ok_or_else(|| not_recognised(&path, "a trace").into())
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

fn guess_ntrace(
    mut config: ntrace::Config,
    input: &mut Input,
    talk: &Talk,
) -> Result<ntrace::Config, Failure> {
    let path = input.path().to_path_buf();
    let Some(guess) = ntrace::guess(input.peek(GUESS)?) else {
        return Err(not_recognised(&path, "N-Trace").into());
    };
    config.src_bits = guess.src_bits;
    config.mode = guess.mode.unwrap_or(config.mode);
    config.timestamps = guess.timestamps.then(ntrace::Timestamps::default);
    talk.warning(&guessed(&path, "N-Trace 1.0", "ntrace").note(guess.to_string()));
    Ok(config)
}

/// Settings that fit a trace, and what is to be said of them. `xlen` is `None`
/// where nobody says how wide addresses are.
pub(crate) fn guess_etrace(
    config: &etrace::Config,
    input: &mut Input,
    xlen: Option<Xlen>,
    image: Option<&Image>,
) -> Result<(etrace::Config, Diagnostic), Box<Diagnostic>> {
    let path = input.path().to_path_buf();
    let head = input.peek(GUESS).map_err(|e| Box::new(e.into()))?;
    let is_code = image.map(|image| |pc| image.fetch(SpaceId::FIRST, pc).is_some());
    let is_code = is_code.as_ref().map(|f| f as &dyn Fn(u64) -> bool);
    let guess = match detect(head) {
        Kind::EtraceCsv => etrace::guess_table(head, config.xlen, is_code),
        _ => etrace::guess(head, config.xlen, is_code),
    };
    let Some(guess) = guess else {
        return Err(Box::new(not_recognised(&path, "E-Trace")));
    };
    let mut diagnostic = guessed(&path, "E-Trace", "etrace").note(guess.to_string());
    if !guess.also.is_empty() {
        let others = guess.also.join(", and ");
        diagnostic = diagnostic.note(format!("these fit as well: {others}"));
        if image.is_none() {
            diagnostic = diagnostic.note("the program (-e) may tell which is right");
        }
    }
    if xlen.is_none() {
        let text = "addresses of 64 bits are assumed; --isa rv32gc or the program (-e) says others";
        diagnostic = diagnostic.note(text);
    }
    Ok((guess.config, diagnostic))
}

/// The settings of a container; what else is said to be absent is, too.
pub(crate) fn contained(
    config: &mut tandem::Config,
    parameters: Result<Parameters, tandem::Fault>,
) -> Result<(), tandem::Fault> {
    let parameters = parameters?;
    let absent = config.absent.names();
    *config = tandem::Config {
        style: config.style,
        ..parameters.config
    };
    for name in absent {
        // It comes from such a list.
        let _ = config.absent.add(&name);
    }
    Ok(())
}

/// A container of which nothing can be read.
pub(crate) fn bad_container(path: &Path, fault: tandem::Fault) -> Diagnostic {
    let name = input::name(path);
    let message = format!(
        "{name} is a container that cannot be read: {}",
        fault.text()
    );
    Diagnostic::new(Code::NotATrace, message)
        .named(fault.code())
        .help("without its parameters nobody knows what the bytes mean; get the file again")
}

/// Settings that fit a tandem trace, and what is to be said of them. `xlen` is
/// `None` where nobody says how wide registers are.
pub(crate) fn guess_tandem(
    config: &tandem::Config,
    input: &mut Input,
    xlen: Option<Xlen>,
) -> Result<(tandem::Config, Diagnostic), Box<Diagnostic>> {
    let path = input.path().to_path_buf();
    let head = input.peek(GUESS).map_err(|e| Box::new(e.into()))?;
    let Some(guess) = tandem::guess(head, config, xlen) else {
        return Err(Box::new(not_recognised(&path, "a tandem trace")));
    };
    let mut diagnostic = guessed(&path, "the tandem trace", "tandem").note(guess.to_string());
    if !guess.also.is_empty() {
        let others = guess.also.join(", and ");
        diagnostic = diagnostic.note(format!("these fit as well: {others}"));
        if xlen.is_none() {
            diagnostic = diagnostic.note("--isa or the program (-e) may tell which is right");
        }
    }
    Ok((guess.config, diagnostic))
}

fn guessed(path: &Path, what: &str, section: &str) -> Diagnostic {
    let name = input::name(path);
    let message = format!("{name} has no sidecar; guessing the settings of {what}");
    let help = format!("give the settings in section [{section}] of a configuration: -c FILE");
    Diagnostic::new(Code::Guessed, message).help(help)
}

/// Bytes that are looked at for a guess.
const GUESS: usize = 1 << 20;

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

/// The program that a trace itself holds, which only a tandem trace does, and
/// the trace again.
pub(crate) fn code_in(
    input: Input,
    config: &tandem::Config,
    isa: Isa,
) -> Result<(Image, Input), Failure> {
    let path = input.path().to_path_buf();
    let mut code = CodeIn::new(config);
    let again = if input.is_file() {
        input.chunks(|chunk| {
            code.feed(chunk);
            Ok::<(), Failure>(())
        })?;
        Input::open(&path)?
    } else {
        let bytes = input.read_all(MAX_WHOLE)?;
        code.feed(&bytes);
        Input::of(&path, bytes)
    };
    Ok((code.image(isa), again))
}

/// The general instruction set of a width.
pub(crate) const fn general(xlen: Xlen) -> Isa {
    match xlen {
        Xlen::Rv32 => Isa::RV32GC,
        Xlen::Rv64 => Isa::RV64GC,
    }
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

/// A trace up to this size is held in memory as a whole, for several threads,
/// where it cannot be mapped.
pub(crate) const MAX_WHOLE: u64 = 4 << 30;

/// One that is not larger is not worth the threads.
const MIN_WHOLE: u64 = 1 << 18;

/// Whether a trace is decoded on several threads. What a tandem trace tells
/// depends on all that was told before.
pub(crate) fn is_for_threads(input: &Input, format: Format, threads: usize) -> bool {
    let threads = if format == Format::Tandem { 1 } else { threads };
    let size = input.size().unwrap_or(0);
    threads > 1 && size >= MIN_WHOLE && (size <= MAX_WHOLE || input.is_file())
}
