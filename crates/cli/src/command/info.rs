//! `hartrace info`: identifies files and summarises their contents.

use crate::args::{Info, InfoFormat};
use crate::diagnostic::{Code, Diagnostic, Failure, bad_elf, count, unknown_format};
use crate::logs::{self, Verdict};
use crate::progress::Progress;
use crate::records;
use crate::session::Session;
use crate::settings::{MAX_PROGRAM, Program};
use crate::talk::Talk;
use crate::traces::{bad_container, damaged_rows, guessed};
use hartrace_capture::config::Config;
use hartrace_capture::detect::{HEAD, Kind, detect};
use hartrace_capture::digest::Digest;
use hartrace_capture::elf_info::ElfInfo;
use hartrace_capture::input::Input;
use hartrace_capture::log::{LogFacts, LogScan};
use hartrace_capture::records::{Form, RecordSummary, SnapshotReader};
use hartrace_capture::sidecar::Beside;
use hartrace_capture::trace::{Counting, Format, Known, Streams, from_table};
use hartrace_flow::Image;
use hartrace_isa::{Isa, Xlen};
use hartrace_print::info;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What is known of a file.
struct Facts {
    path: PathBuf,
    kind: Kind,
    bytes: u64,
    sha256: Digest,
    content: Content,
    /// Its own sidecar, and whether its programs are still the same.
    sidecar: Option<Beside>,
}

/// What is in a file, by kind.
enum Content {
    Log(Box<LogFacts>),
    Records(Box<RecordSummary>),
    /// That cannot be damaged, or not so that it matters.
    Other(Box<info::Content>),
}

impl Facts {
    /// What is printed of a file, and what its damage is judged by.
    fn print(self) -> (info::File, Option<Content>) {
        let (content, judged) = match self.content {
            Content::Other(content) => (*content, None),
            Content::Log(log) => (info::Content::Log((&*log).into()), Some(Content::Log(log))),
            Content::Records(summary) => (
                info::Content::Records((&*summary).into()),
                Some(Content::Records(summary)),
            ),
        };
        let file = info::File {
            path: self.path,
            kind: self.kind,
            bytes: self.bytes,
            sha256: self.sha256,
            content,
            sidecar: self.sidecar.as_ref().map(info::Sidecar::from),
        };
        (file, judged)
    }
}

/// The program that logs are read with.
struct Context<'a> {
    program: &'a Program,
    image: Option<&'a Image>,
    talk: &'a Talk,
}

pub(super) fn run(args: &Info, talk: &Talk) -> Result<(), Failure> {
    let session = Session::of_files(&args.files, false, &args.program, args.strict, talk)?;
    // Every file is looked at, whether the report is read or not.
    let output = session.output(&args.output.output)?;
    let mut output = output.outlive_reader(true);
    let program = session.load()?;
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
            let (file, judged) = facts.print();
            writer.write(&file, &mut output).map_err(Stop::Write)?;
            judge(args.strict, path, judged, talk)
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
        Some(code) if args.output.output.as_os_str() != "-" => Err(Failure::Reported(code)),
        code => {
            output.finish()?;
            code.map_or(Ok(()), |code| Err(Failure::Reported(code)))
        }
    }
}

/// Why the facts about a file cannot be given.
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
    fn write(&mut self, file: &info::File, out: &mut impl Write) -> io::Result<()> {
        let begun = std::mem::replace(&mut self.begun, true);
        match self.format {
            InfoFormat::Text => {
                if begun {
                    writeln!(out)?;
                }
                file.write_text(out)
            }
            InfoFormat::Json => {
                if !begun {
                    info::write_header(out)?;
                }
                file.write_json(out)
            }
        }
    }
}

/// Whether a log is one that may pass. Damaged lines are among its facts, so
/// there is no need to warn of them.
fn judge(strict: bool, path: &Path, judged: Option<Content>, talk: &Talk) -> Result<(), Stop> {
    let log = match judged {
        Some(Content::Log(log)) => log,
        Some(Content::Records(summary)) => {
            return records::judge(path, &summary, strict)
                .map_or(Ok(()), |diagnostic| Err(diagnostic.into()));
        }
        _ => return Ok(()),
    };
    match logs::judge_fit(path, log.summary.fit(), strict) {
        Verdict::Error(diagnostic) => return Err(diagnostic.into()),
        Verdict::Warning(diagnostic) => talk.warning(&diagnostic),
        Verdict::Clean => {}
    }
    match logs::judge(path, &log.damage, log.lines, log.is_empty(), strict) {
        Verdict::Error(diagnostic) => return Err(diagnostic.into()),
        Verdict::Warning(_) | Verdict::Clean => {}
    }
    Ok(())
}

fn look(path: &Path, context: &Context<'_>) -> Result<Facts, Stop> {
    let mut input = Input::open(path)?;
    let head = input.peek(HEAD)?;
    let beside = Beside::find(path, MAX_PROGRAM)?;
    let said = beside.as_ref().and_then(|beside| {
        let trace = beside.config.trace.as_ref();
        trace.and_then(|trace| Format::from_name(&trace.format.value))
    });
    let kind = match (detect(head), said) {
        (Kind::Unknown | Kind::Ntrace | Kind::Etrace | Kind::Tandem, Some(format)) => format.kind(),
        (kind, _) => kind,
    };
    let (content, bytes, sha256) = match kind {
        Kind::Empty | Kind::Unknown => return Err(unknown_format(path, kind, head, "info").into()),
        Kind::Elf => {
            let bytes = input.read_all(MAX_PROGRAM)?;
            let info = ElfInfo::read(&bytes).map_err(|e| bad_elf(path, &bytes, &e))?;
            let digest = Digest::of(&bytes);
            let content = info::Content::Elf((&info).into());
            (other(content), bytes.len() as u64, digest)
        }
        Kind::Config | Kind::Sidecar => {
            let bytes = input.read_all(MAX_PROGRAM)?;
            let (length, digest) = (bytes.len() as u64, Digest::of(&bytes));
            let config = Config::from_bytes(bytes, path)?;
            (
                other(info::Content::Config((&config).into())),
                length,
                digest,
            )
        }
        Kind::SpikeLog | Kind::PcList | Kind::IngressCsv | Kind::SpikeCsv => {
            scan(input, kind, context)?
        }
        Kind::Ntrace | Kind::Etrace | Kind::EtraceCsv | Kind::Tandem | Kind::TandemContainer => {
            let said = beside.as_ref().map(|beside| beside.config.clone());
            let format = Format::from_kind(kind).unwrap_or(Format::Etrace);
            scan_trace(input, format, said.unwrap_or_default(), context)?
        }
        Kind::CtrDump => scan_records(input, Form::Binary, context.talk)?,
        Kind::CtrJson => scan_records(input, Form::Json, context.talk)?,
    };
    let sidecar = match kind {
        Kind::Elf | Kind::Config | Kind::Sidecar => None,
        _ => beside,
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

fn other(content: info::Content) -> Content {
    Content::Other(Box::new(content))
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
    let not_readable = |error| logs::not_readable(input.path(), &[], error);
    let mut scan = LogScan::new(kind, &options).map_err(not_readable)?;
    let mut progress = Progress::new(talk, input.size());
    let begin = Instant::now();
    let (bytes, digest) = input.hashed(|chunk| {
        scan.feed(chunk);
        progress.advance(chunk.len());
    })?;
    let log = scan.finish();
    let seconds = begin.elapsed().as_secs_f64();
    let speed = log.lines as f64 / seconds.max(1e-9) / 1e6;
    talk.detail(&format!(
        "{} in {seconds:.3} s, {speed:.1} million lines/s",
        count(log.lines, "line")
    ));
    Ok((Content::Log(Box::new(log)), bytes, digest))
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
    let mut counting = Counting::new(&settings);
    let path = input.path().to_path_buf();
    let mut rows = Vec::new();
    let (bytes, digest) = input.hashed(|chunk| {
        progress.advance(chunk.len());
        match table {
            true => rows.extend_from_slice(chunk),
            false => counting.feed(chunk),
        }
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
    let trace = info::Trace::new(&counting.finish(), settings);
    Ok((other(info::Content::Trace(trace)), bytes, digest))
}

fn scan_records(input: Input, form: Form, talk: &Talk) -> Result<(Content, u64, Digest), Stop> {
    let mut progress = Progress::new(talk, input.size());
    let mut reader = SnapshotReader::new(form);
    let mut summary = RecordSummary::default();
    let (bytes, digest) = input.hashed(|chunk| {
        progress.advance(chunk.len());
        reader.feed(chunk, &mut |snapshot| summary.add(snapshot));
    })?;
    if let Err(error) = reader.finish(&mut |snapshot| summary.add(snapshot)) {
        summary.error(error);
    }
    Ok((Content::Records(Box::new(summary)), bytes, digest))
}
