//! `hartrace info`: what files are and what is in them.

use super::{create, info_json, info_text};
use crate::args::{Info, InfoFormat};
use crate::diagnostic::{Code, Diagnostic, Failure, bad_elf};
use crate::progress::Progress;
use crate::settings::MAX_PROGRAM;
use crate::talk::Talk;
use hartrace_capture::config::Config;
use hartrace_capture::detect::{HEAD, Kind, detect};
use hartrace_capture::digest::{Digest, Hasher};
use hartrace_capture::elf_info::ElfInfo;
use hartrace_capture::input::{self, Input, InputError};
use hartrace_capture::log_info::{LogInfo, LogScan};
use hartrace_capture::program::ElfFile;
use hartrace_capture::sidecar;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

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
    Log(LogInfo),
    Config(Box<Config>),
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
    let mut output = create(&args.output.output, args.files.iter().map(PathBuf::as_path))?;
    let mut writer = Writer {
        format: args.format,
        begun: false,
    };
    let mut first = None;
    for path in &args.files {
        let result = look(path, talk).and_then(|facts| {
            writer.write(&facts, &mut output).map_err(Stop::Write)?;
            strict(args.strict, &facts)
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

fn strict(strict: bool, facts: &Facts) -> Result<(), Stop> {
    let Content::Log(log) = &facts.content else {
        return Ok(());
    };
    match log.first_unread {
        Some(line) if strict => {
            let name = input::name(&facts.path);
            let message = format!(
                "{name}: {} of {} lines cannot be read",
                log.unread, log.lines
            );
            Err(Diagnostic::new(Code::UnreadLines, message)
                .note(format!("the first one is line {line}"))
                .help("remove what is not part of the log, or leave out --strict")
                .into())
        }
        _ => Ok(()),
    }
}

fn look(path: &Path, talk: &Talk) -> Result<Facts, Stop> {
    let mut input = Input::open(path)?;
    let kind = detect(input.peek(HEAD)?);
    let (content, bytes, sha256) = match kind {
        Kind::Empty | Kind::Unknown => return Err(unknown(path, kind).into()),
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
            scan(input, kind, talk)?
        }
    };
    let sidecar = match content {
        Content::Log(_) => find_sidecar(path)?,
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

fn scan(input: Input, kind: Kind, talk: &Talk) -> Result<(Content, u64, Digest), InputError> {
    let mut progress = Progress::new(talk, input.size());
    let mut scan = LogScan::new(kind);
    let mut hasher = Hasher::new();
    let mut bytes = 0;
    input.chunks(|chunk| {
        scan.feed(chunk);
        hasher.update(chunk);
        progress.advance(chunk.len());
        bytes += chunk.len() as u64;
        Ok::<(), InputError>(())
    })?;
    Ok((Content::Log(scan.finish()), bytes, hasher.finish()))
}

fn unknown(path: &Path, kind: Kind) -> Diagnostic {
    let name = input::name(path);
    if kind == Kind::Empty {
        return Diagnostic::new(Code::UnknownFormat, format!("{name} is empty"))
            .note("the step that should have written it may have failed");
    }
    Diagnostic::new(Code::UnknownFormat, format!("{name} is of no known format")).note(
        "known are ELF files, Spike logs and CSV, pc lists, ingress CSV and configuration files",
    )
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
