//! `hartrace info`: what files are and what is in them.

use super::{configs, create, info_json, info_text, inputs, one_stdin};
use crate::args::{Info, InfoFormat};
use crate::diagnostic::{Code, Diagnostic, Failure, bad_elf, count, unknown_format};
use crate::logs::{self, Verdict};
use crate::progress::Progress;
use crate::records;
use crate::settings::{self, MAX_PROGRAM, Program};
use crate::talk::Talk;
use crate::traces::{bad_container, damaged_rows, guessed};
use hartrace_capture::config::Config;
use hartrace_capture::detect::{HEAD, Kind, detect};
use hartrace_capture::digest::{Digest, Hasher};
use hartrace_capture::elf_info::ElfInfo;
use hartrace_capture::input::{Input, InputError};
use hartrace_capture::log::{Damage, LineCount, LogReader, LogSummary, RowReader};
use hartrace_capture::program::ElfFile;
use hartrace_capture::records::{Form, RecordSummary, SnapshotReader};
use hartrace_capture::sidecar;
use hartrace_capture::trace::{Census, Counting, Format, Known, Settings, Streams, from_table};
use hartrace_flow::Image;
use hartrace_isa::{Isa, Xlen};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What is known of a file.
pub(super) struct Facts {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    pub(super) bytes: u64,
    pub(super) sha256: Digest,
    pub(super) content: Content,
    /// The trace's own sidecar, and whether its programs are still the same.
    pub(super) sidecar: Option<Sidecar>,
}

/// What is in a file, by kind.
pub(super) enum Content {
    Elf(Box<ElfInfo>),
    Log(Box<LogFacts>),
    Config(Box<Config>),
    Trace(Box<TraceFacts>),
    Records(Box<RecordSummary>),
}

/// What is in a trace.
pub(super) struct TraceFacts {
    pub(super) census: Census,
    pub(super) settings: Settings,
}

/// What is in a log.
pub(super) struct LogFacts {
    pub(super) lines: u64,
    pub(super) summary: LogSummary,
    pub(super) damage: Damage,
    /// Read as steps; otherwise there are only rows.
    pub(super) steps: bool,
    /// The modes are from the log.
    pub(super) modes: bool,
}

/// The program that logs are read with.
struct Context<'a> {
    program: &'a Program,
    image: Option<&'a Image>,
    talk: &'a Talk,
}

/// A sidecar that lies beside a log.
pub(super) struct Sidecar {
    pub(super) path: PathBuf,
    pub(super) config: Config,
    pub(super) programs: Vec<(ElfFile, State)>,
}

/// Whether a program is the one a sidecar means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Same,
    Different,
    Unreadable,
    NoHash,
}

impl State {
    pub(super) const fn word(self) -> &'static str {
        match self {
            State::Same => "same",
            State::Different => "different",
            State::Unreadable => "unreadable",
            State::NoHash => "no hash",
        }
    }
}

pub(super) fn run(args: &Info, talk: &Talk) -> Result<(), Failure> {
    let config = settings::resolve(&[], &args.program, talk)?;
    let mut output = {
        let files = args.files.iter().map(PathBuf::as_path);
        let files = files.chain(inputs(&config));
        one_stdin(files.clone().chain(configs(&args.program)))?;
        create(&args.output.output, files)?
    };
    let program = settings::load(config, talk)?;
    let image = program.image()?;
    let context = Context {
        program: &program,
        image: image.as_ref(),
        talk,
    };
    let mut writer = Writer {
        format: args.format,
        begun: false,
    };
    let mut first = None;
    for path in &args.files {
        let result = look(path, &context).and_then(|facts| {
            writer.write(&facts, &mut output).map_err(Stop::Write)?;
            judge(args.strict, &facts, talk)
        });
        match result {
            Ok(()) => {}
            // The other files are still of interest.
            Err(Stop::Diagnostic(diagnostic)) => {
                talk.error(&diagnostic);
                first.get_or_insert(diagnostic.code);
            }
            Err(Stop::Write(error)) => {
                return Err(output.failed(error).into());
            }
        }
    }
    match first {
        // Half an answer in a file would pass for a whole one.
        Some(code) if args.output.output.as_os_str() != "-" => Err(Failure::Told(code)),
        code => {
            output.finish()?;
            code.map_or(Ok(()), |code| Err(Failure::Told(code)))
        }
    }
}

/// Why a file's facts are not told.
enum Stop {
    Diagnostic(Box<Diagnostic>),
    Write(io::Error),
}

impl<T: Into<Diagnostic>> From<T> for Stop {
    fn from(error: T) -> Stop {
        Stop::Diagnostic(Box::new(error.into()))
    }
}

struct Writer {
    format: InfoFormat,
    begun: bool,
}

impl Writer {
    fn write(&mut self, facts: &Facts, out: &mut impl Write) -> io::Result<()> {
        let begun = std::mem::replace(&mut self.begun, true);
        match self.format {
            InfoFormat::Text => {
                if begun {
                    writeln!(out)?;
                }
                info_text::write(facts, out)
            }
            InfoFormat::Json => {
                if !begun {
                    info_json::header(out)?;
                }
                info_json::write(facts, out)
            }
        }
    }
}

/// Whether a log is one that may pass. Damaged lines are among its facts, so
/// there is no need to warn of them.
fn judge(strict: bool, facts: &Facts, talk: &Talk) -> Result<(), Stop> {
    let log = match &facts.content {
        Content::Log(log) => log,
        Content::Records(summary) => {
            return records::judge(&facts.path, summary, strict)
                .map_or(Ok(()), |diagnostic| Err(diagnostic.into()));
        }
        _ => return Ok(()),
    };
    let summary = &log.summary;
    let nothing = summary.instructions + summary.rows + summary.all_traps() == 0;
    match logs::judge_fit(&facts.path, summary.fit(), strict) {
        Verdict::Error(diagnostic) => return Err(diagnostic.into()),
        Verdict::Warning(diagnostic) => talk.warning(&diagnostic),
        Verdict::Clean => {}
    }
    match logs::judge(&facts.path, &log.damage, log.lines, nothing, strict) {
        Verdict::Error(diagnostic) => return Err(diagnostic.into()),
        Verdict::Warning(_) | Verdict::Clean => {}
    }
    Ok(())
}

fn look(path: &Path, context: &Context<'_>) -> Result<Facts, Stop> {
    let mut input = Input::open(path)?;
    let head = input.peek(HEAD)?;
    let beside = find_sidecar(path)?;
    let said = beside.as_ref().and_then(|beside| {
        let trace = beside.config.trace.as_ref();
        trace.and_then(|trace| Format::from_name(&trace.format.value))
    });
    let kind = match (detect(head), said) {
        (Kind::Unknown | Kind::Ntrace | Kind::Etrace | Kind::Tandem, Some(format)) => {
            match format {
                Format::Ntrace => Kind::Ntrace,
                Format::Etrace => Kind::Etrace,
                Format::Tandem => Kind::Tandem,
            }
        }
        (kind, _) => kind,
    };
    let (content, bytes, sha256) = match kind {
        Kind::Empty | Kind::Unknown => return Err(unknown_format(path, kind, head, "info").into()),
        Kind::Elf => {
            let bytes = input.read_all(MAX_PROGRAM)?;
            let info = ElfInfo::read(&bytes).map_err(|e| bad_elf(path, &bytes, &e))?;
            let digest = Digest::of(&bytes);
            (Content::Elf(Box::new(info)), bytes.len() as u64, digest)
        }
        Kind::Config | Kind::Sidecar => {
            let bytes = input.read_all(MAX_PROGRAM)?;
            let (length, digest) = (bytes.len() as u64, Digest::of(&bytes));
            let config = Config::from_bytes(bytes, path)?;
            (Content::Config(Box::new(config)), length, digest)
        }
        Kind::SpikeLog | Kind::PcList | Kind::IngressCsv | Kind::SpikeCsv => {
            scan(input, kind, context)?
        }
        Kind::Ntrace | Kind::Etrace | Kind::EtraceCsv | Kind::Tandem | Kind::TandemContainer => {
            let said = beside.as_ref().map(|beside| beside.config.clone());
            let format = match kind {
                Kind::Ntrace => Format::Ntrace,
                Kind::Tandem | Kind::TandemContainer => Format::Tandem,
                _ => Format::Etrace,
            };
            scan_trace(input, format, said.unwrap_or_default(), context)?
        }
        Kind::CtrDump => scan_records(input, Form::Binary, context.talk)?,
        Kind::CtrJson => scan_records(input, Form::Json, context.talk)?,
    };
    let sidecar = match content {
        Content::Log(_) | Content::Trace(_) | Content::Records(_) => beside,
        _ => None,
    };
    Ok(Facts {
        path: path.to_path_buf(),
        kind,
        bytes,
        sha256,
        content,
        sidecar,
    })
}

/// Either kind of reading.
#[allow(clippy::large_enum_variant)]
enum Reader<'a> {
    Steps(LogReader<'a>),
    Rows(RowReader),
}

impl Reader<'_> {
    fn feed(&mut self, chunk: &[u8], log: &mut LogFacts) {
        let (out, note) = (&mut log.summary, &mut |error| log.damage.add(error));
        match self {
            Reader::Steps(reader) => reader.feed(chunk, out, note),
            Reader::Rows(reader) => reader.feed(chunk, out, note),
        }
    }

    fn finish(&mut self, log: &mut LogFacts) {
        let (out, note) = (&mut log.summary, &mut |error| log.damage.add(error));
        match self {
            Reader::Steps(reader) => {
                reader.finish(out, note);
                log.modes = reader.tells_modes();
            }
            Reader::Rows(reader) => reader.finish(out, note),
        }
    }
}

fn scan(
    mut input: Input,
    kind: Kind,
    context: &Context<'_>,
) -> Result<(Content, u64, Digest), Stop> {
    let Context {
        program,
        image,
        talk,
    } = *context;
    let options = logs::options(kind, input.peek(HEAD)?, program, image, talk);
    let mut reader = match RowReader::new(kind, options.iretire) {
        Some(rows) if image.is_none() => Reader::Rows(rows),
        _ => {
            let steps = LogReader::new(kind, &options);
            Reader::Steps(steps.map_err(|e| logs::not_readable(input.path(), &[], e))?)
        }
    };
    let mut log = LogFacts {
        lines: 0,
        summary: LogSummary::default(),
        damage: Damage::default(),
        steps: matches!(reader, Reader::Steps(_)),
        modes: kind == Kind::IngressCsv,
    };
    let mut progress = Progress::new(talk, input.size());
    let mut hasher = Hasher::new();
    let mut lines = LineCount::default();
    let mut bytes = 0;
    let begin = Instant::now();
    input.chunks(|chunk| {
        reader.feed(chunk, &mut log);
        hasher.update(chunk);
        lines.feed(chunk);
        progress.advance(chunk.len());
        bytes += chunk.len() as u64;
        Ok::<(), InputError>(())
    })?;
    reader.finish(&mut log);
    log.lines = lines.count();
    let seconds = begin.elapsed().as_secs_f64();
    let speed = log.lines as f64 / seconds.max(1e-9) / 1e6;
    talk.detail(&format!(
        "{} in {seconds:.3} s, {speed:.1} million lines/s",
        count(log.lines, "line")
    ));
    Ok((Content::Log(Box::new(log)), bytes, hasher.finish()))
}

fn scan_trace(
    mut input: Input,
    format: Format,
    beside: Config,
    context: &Context<'_>,
) -> Result<(Content, u64, Digest), Stop> {
    let config = context.program.config.clone().over(beside);
    let isa = config.program.isa.as_ref();
    let isa = isa.and_then(|isa| Isa::parse_lenient(&isa.value).ok());
    let xlen = isa.or(context.program.isa).map(|isa| isa.xlen());
    let mut settings = format.settings(&config, xlen.unwrap_or(Xlen::Rv64))?;
    let table = detect(input.peek(HEAD)?) == Kind::EtraceCsv;
    let known = Known {
        xlen,
        image: context.image,
    };
    if let Some(parameters) = Streams::parameters(input.peek(HEAD)?) {
        settings.adopt(parameters.map_err(|fault| bad_container(input.path(), fault))?);
    } else if format != Format::Ntrace
        && !format.is_said(&config)
        && let Ok(guess) = settings.guess(&mut input, known)
    {
        context.talk.warning(&guessed(input.path(), format, &guess));
    }
    let mut progress = Progress::new(context.talk, input.size());
    let mut hasher = Hasher::new();
    let mut counting = Counting::new(&settings);
    let mut bytes = 0;
    let path = input.path().to_path_buf();
    let mut rows = Vec::new();
    input.chunks(|chunk| {
        hasher.update(chunk);
        progress.advance(chunk.len());
        bytes += chunk.len() as u64;
        match table {
            true => rows.extend_from_slice(chunk),
            false => counting.feed(chunk),
        }
        Ok::<(), InputError>(())
    })?;
    if table {
        let (stream, damage) = from_table(Input::of(&path, rows), &settings)?;
        match damage.map(|damage| damaged_rows(&path, &damage)) {
            Some(damage) if damage.code == Code::NothingRead => return Err(damage.into()),
            damage => damage
                .iter()
                .for_each(|damage| context.talk.warning(damage)),
        }
        counting.feed(&stream.read_all(u64::MAX)?);
    }
    let census = counting.finish();
    let facts = TraceFacts { census, settings };
    Ok((Content::Trace(Box::new(facts)), bytes, hasher.finish()))
}

fn scan_records(input: Input, form: Form, talk: &Talk) -> Result<(Content, u64, Digest), Stop> {
    let mut progress = Progress::new(talk, input.size());
    let mut hasher = Hasher::new();
    let mut reader = SnapshotReader::new(form);
    let mut summary = RecordSummary::default();
    let mut bytes = 0;
    input.chunks(|chunk| {
        hasher.update(chunk);
        progress.advance(chunk.len());
        bytes += chunk.len() as u64;
        reader.feed(chunk, &mut |snapshot| summary.add(snapshot));
        Ok::<(), InputError>(())
    })?;
    if let Err(error) = reader.finish(&mut |snapshot| summary.add(snapshot)) {
        summary.error(error);
    }
    Ok((Content::Records(Box::new(summary)), bytes, hasher.finish()))
}

fn find_sidecar(path: &Path) -> Result<Option<Sidecar>, Stop> {
    let Some(config) = sidecar::find(path)? else {
        return Ok(None);
    };
    let elf = config.program.elf.iter().flat_map(|s| &s.value);
    let programs = elf.map(|elf| (elf.clone(), state(elf))).collect();
    Ok(Some(Sidecar {
        path: sidecar::path_for(path),
        programs,
        config,
    }))
}

fn state(elf: &ElfFile) -> State {
    let Some(expected) = elf.sha256 else {
        return State::NoHash;
    };
    let bytes = Input::open(&elf.file).and_then(|input| input.read_all(MAX_PROGRAM));
    match bytes {
        Ok(bytes) if Digest::of(&bytes) == expected => State::Same,
        Ok(_) => State::Different,
        Err(_) => State::Unreadable,
    }
}
