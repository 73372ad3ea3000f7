//! Traces and the settings they need; what the commands that read them share.

use crate::args;
use crate::diagnostic::{Code, Diagnostic, Failure, count, unknown_format};
use crate::settings::{self, Program};
use crate::talk::Talk;
use hartrace_analyze::{PcList, TraceListing};
use hartrace_capture::config::{Config, Origin};
use hartrace_capture::detect::{HEAD, Kind, detect, unpacker};
use hartrace_capture::input::{self, Input};
use hartrace_capture::shard::Part;
use hartrace_capture::trace::{self, Format, Transport, TransportError};
use hartrace_etrace as etrace;
use hartrace_flow::{Consumer, Event, Gap, HartId, Image, Run, SpaceId};
use hartrace_hart::fdt;
use hartrace_isa::{Isa, Xlen};
use hartrace_ntrace as ntrace;
use std::ops::ControlFlow;
use std::path::Path;

/// The settings in force for a trace, from its sidecar, configuration files
/// and flags.
pub(crate) struct Settings {
    pub(crate) config: Config,
    sidecar: Option<Config>,
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

    /// Reads the program, which must be the one that was traced.
    pub(crate) fn load(&self, talk: &Talk) -> Result<Program, Failure> {
        let program = settings::load(self.config.clone(), talk)?;
        if let Some(sidecar) = &self.sidecar {
            program.check_against(sidecar)?;
        }
        Ok(program)
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

    /// The width of addresses without reading the program.
    fn xlen(&self) -> Option<Xlen> {
        let isa = self.config.program.isa.as_ref();
        let isa = isa.and_then(|isa| Isa::parse_lenient(&isa.value).ok());
        isa.map(|isa| isa.xlen())
    }

    /// The format, where somebody says it.
    fn said_format(&self) -> Option<Format> {
        let trace = self.config.trace.as_ref();
        let named = trace.and_then(|trace| Format::from_name(&trace.format.value));
        named.or_else(|| Format::from_sections(&self.config))
    }

    /// Opens a trace. What is clearly something else is refused.
    pub(crate) fn open(
        &self,
        path: &Path,
        transport: &args::Transport,
        command: &str,
    ) -> Result<Input, Failure> {
        let transport = transport.get();
        let said = self.said_format();
        if transport.pib.is_some() && said == Some(Format::Etrace) {
            return Err(Failure::Usage("--pib goes with N-Trace"));
        }
        let mut input = Input::open(path)?;
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

    /// The settings of the decoder. What nobody said is guessed from the
    /// trace, and told.
    pub(crate) fn of_trace(
        &self,
        input: &mut Input,
        xlen: Option<Xlen>,
        image: Option<&Image>,
        talk: &Talk,
    ) -> Result<trace::Settings, Failure> {
        let known = xlen.or_else(|| self.xlen()).unwrap_or(Xlen::Rv64);
        let format = match self.said_format() {
            Some(format) => format,
            None => format_of(input)?,
        };
        let settings = format.settings(&self.config, known)?;
        match settings {
            trace::Settings::Ntrace(config) if !self.config.ntrace.is_said() => {
                guess_ntrace(config, input, talk).map(trace::Settings::Ntrace)
            }
            trace::Settings::Etrace(config) if !self.config.etrace.is_said() => {
                guess_etrace(&config, input, image, talk).map(trace::Settings::Etrace)
            }
            settings => Ok(settings),
        }
    }
}

/// What the bytes look like, or else what the name says.
fn format_of(input: &mut Input) -> Result<Format, Failure> {
    let path = input.path().to_path_buf();
    let found = match detect(input.peek(HEAD)?) {
        Kind::Etrace | Kind::EtraceCsv => Some(Format::Etrace),
        Kind::Ntrace => Some(Format::Ntrace),
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
    .help("give its settings in section [ntrace] or [etrace] of a configuration: -c FILE")
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

fn guess_etrace(
    config: &etrace::Config,
    input: &mut Input,
    image: Option<&Image>,
    talk: &Talk,
) -> Result<etrace::Config, Failure> {
    let path = input.path().to_path_buf();
    let head = input.peek(GUESS)?;
    let is_code = image.map(|image| |pc| image.fetch(SpaceId::FIRST, pc).is_some());
    let is_code = is_code.as_ref().map(|f| f as &dyn Fn(u64) -> bool);
    let Some(guess) = etrace::guess(head, config.xlen, is_code) else {
        return Err(not_recognised(&path, "E-Trace").into());
    };
    talk.warning(&guessed(&path, "E-Trace", "etrace").note(guess.to_string()));
    Ok(guess.config)
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

/// Gaps that are told one by one.
const TOLD: usize = 5;

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

/// Whether a trace is decoded on several threads.
pub(crate) fn is_for_threads(input: &Input, threads: usize) -> bool {
    let size = input.size().unwrap_or(0);
    threads > 1 && size >= MIN_WHOLE && (size <= MAX_WHOLE || input.is_file())
}

/// Passes on events, and counts.
pub(crate) struct Watch<C> {
    pub(crate) inner: C,
    only: Option<HartId>,
    pub(crate) report: Report,
}

/// What was decoded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    /// The hart that was asked for.
    only: Option<HartId>,
    pub(crate) instructions: u64,
    pub(crate) traps: u64,
    pub(crate) gaps: u64,
    /// Harts that appeared, in their order.
    pub(crate) harts: Vec<HartId>,
    first: Vec<Gap>,
}

impl<C> Watch<C> {
    pub(crate) fn new(inner: C, only: Option<u32>) -> Watch<C> {
        let only = only.map(HartId);
        let report = Report {
            only,
            ..Report::default()
        };
        Watch {
            inner,
            only,
            report,
        }
    }

    #[inline]
    fn skips(&mut self, hart: HartId) -> bool {
        if self.report.harts.last() != Some(&hart) {
            self.report.appeared(hart);
        }
        self.only.is_some_and(|only| only != hart)
    }

    /// Takes in what another counted right behind this one.
    pub(crate) fn take<D>(&mut self, part: &mut Watch<D>) {
        let only = self.only;
        let part = std::mem::replace(
            &mut part.report,
            Report {
                only,
                ..Report::default()
            },
        );
        let report = &mut self.report;
        report.instructions += part.instructions;
        report.traps += part.traps;
        report.gaps += part.gaps;
        for hart in part.harts {
            report.appeared(hart);
        }
        let room = TOLD - report.first.len();
        report.first.extend(part.first.into_iter().take(room));
    }
}

/// Text that is gathered by a part before it has to wait for its turn.
const FULL: usize = 16 << 20;

impl<C: Text + Send> Part for Watch<C> {
    fn is_full(&self) -> bool {
        self.inner.size() > FULL
    }
}

impl Report {
    #[cold]
    fn appeared(&mut self, hart: HartId) {
        if let Err(at) = self.harts.binary_search(&hart) {
            self.harts.insert(at, hart);
        }
    }

    /// Tells the gaps, and what they mean for the command.
    pub(crate) fn judge(&self, path: &Path, strict: bool, talk: &Talk) -> Result<(), Failure> {
        let name = input::name(path);
        for gap in &self.first {
            talk.warning(&gap_diagnostic(&name, gap));
        }
        let more = self.gaps - self.first.len() as u64;
        let missing = self.only.filter(|only| !self.harts.contains(only));
        if let Some(only) = missing.filter(|_| !self.harts.is_empty()) {
            let list: Vec<String> = self.harts.iter().map(|h| h.0.to_string()).collect();
            let message = format!("{name} has nothing of hart {}", only.0);
            return Err(Diagnostic::new(Code::WhichHart, message)
                .note(format!("it has these: {}", list.join(", ")))
                .help("choose one that is there with --hart N")
                .into());
        }
        if self.instructions == 0 {
            let message = format!("nothing of {name} could be decoded");
            return Err(Diagnostic::new(Code::NotSynchronised, message)
                .note("no full address was found, or none that is in the program")
                .note("a short piece may have none; an encoder that synchronises more often sends more")
                .help("is it the right program, and are these the settings of the encoder?")
                .into());
        }
        let message = format!("{name} has {}", count(self.gaps, "gap"));
        let diagnostic = Diagnostic::new(Code::Gaps, message);
        match self.gaps {
            0 => Ok(()),
            _ if strict => Err(diagnostic
                .help("leave out --strict to let them pass")
                .into()),
            _ if more > 0 => {
                talk.warning(&diagnostic.note(format!("{more} of them are not told here")));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl<C: Consumer> Consumer for Watch<C> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        if self.skips(hart) {
            return ControlFlow::Continue(());
        }
        match event {
            Event::Run(run) => self.report.instructions += u64::from(run.insns),
            Event::Trap(_) => self.report.traps += 1,
            Event::Gap(gap) => {
                self.report.gaps += 1;
                if self.report.first.len() < TOLD {
                    self.report.first.push(*gap);
                }
            }
            _ => {}
        }
        self.inner.event(hart, event)
    }

    #[inline]
    fn runs(&mut self, hart: HartId, runs: &[Run]) -> ControlFlow<()> {
        if self.skips(hart) {
            return ControlFlow::Continue(());
        }
        let insns = runs.iter().map(|run| u64::from(run.insns));
        self.report.instructions += insns.sum::<u64>();
        self.inner.runs(hart, runs)
    }
}

/// Takes everything and writes nothing.
#[derive(Default)]
pub(crate) struct Nothing(Vec<u8>);

impl Text for Nothing {
    fn text(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }

    fn size(&self) -> usize {
        0
    }

    fn flush(&mut self) {}
}

impl Consumer for Nothing {
    fn event(&mut self, _: HartId, _: &Event) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn runs(&mut self, _: HartId, _: &[Run]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

fn gap_diagnostic(name: &str, gap: &Gap) -> Diagnostic {
    let reason = gap.reason;
    let message = format!(
        "{name}, byte {:#x}: {} ({:#x})",
        gap.at, reason.text, reason.value
    );
    let mut diagnostic = Diagnostic::new(Code::Gaps, message).named(reason.code);
    if gap.bytes > 0 {
        diagnostic = diagnostic.note(format!("{} could not be used", count(gap.bytes, "byte")));
    }
    if gap.unconfirmed > 0 {
        let insns = count(gap.unconfirmed, "instruction");
        diagnostic = diagnostic.note(format!("nothing confirms the last {insns} before it"));
    }
    let boot = fdt::BOOT_ROM..fdt::BOOT_ROM + fdt::BOOT_CODE as u64;
    if matches!(reason.code, "NT0302" | "ET0301") && boot.contains(&reason.value) {
        let text = "Spike's boot code: machine = \"spike\" in [hart] of a configuration tells it";
        return diagnostic.note(text);
    }
    match likely(reason.code) {
        Some(text) => diagnostic.note(text),
        None => diagnostic,
    }
}

/// Why such a gap is there, probably.
fn likely(code: &str) -> Option<&'static str> {
    Some(match code {
        "NT0101" | "NT0102" | "NT0103" => "damaged bytes, or not N-Trace at all",
        "NT0104" => "erased or overwritten memory, or not N-Trace at all",
        "NT0105" => "the trace was cut off while a message was written",
        "NT0106" => "the buffer wrapped, or the start is missing: quite usual",
        "NT0201" | "NT0202" | "NT0203" | "NT0204" => {
            "damaged bytes, or another src_bits or extend_addr_msb in [ntrace]"
        }
        "NT0205" | "NT0206" | "NT0207" | "NT0208" => {
            "damaged bytes, another src_bits, or a later version of the specification"
        }
        "NT0211" => "erased memory: part of the buffer was never written",
        "NT0209" | "NT0210" => "damaged bytes, or lost messages; see max_expansion in [ntrace]",
        "NT0302" => "another program or load base, or code that was loaded later",
        "NT0301" | "NT0303" | "NT0304" | "NT0308" | "NT0312" => {
            "another program than the one that ran, code that changed, or lost messages"
        }
        "NT0305" => "implicit_return or sequential_jump in [ntrace], or another program",
        "NT0306" | "NT0307" | "NT0309" | "NT0311" => {
            "mode, all_jumps or implicit_return in [ntrace], or another program"
        }
        "NT0310" => "retires in [ntrace]: whether ecall and ebreak count",
        "NT0401" | "ET0401" => "the encoder's queue was full: slower code, or a faster port",
        "ET0101" => "damaged bytes, or not E-Trace at all",
        "ET0102" => "the trace was cut off while a packet was written",
        "ET0103" => "the buffer wrapped, or the start is missing: quite usual",
        "ET0201" | "ET0202" | "ET0203" | "ET0204" | "ET0205" | "ET0206" | "ET0207" => {
            "damaged bytes, or other widths or another version in [etrace]"
        }
        "ET0301" => {
            "another program or load base, code that was loaded later, or other widths in [etrace]"
        }
        "ET0302" | "ET0303" | "ET0306" | "ET0308" => {
            "another program than the one that ran, code that changed, or lost packets"
        }
        "ET0304" => "sijump in [etrace], or another program",
        "ET0305" => "another program than the one that ran, or lost packets",
        "ET0307" => "lost packets, or code that changed",
        _ => return None,
    })
}
