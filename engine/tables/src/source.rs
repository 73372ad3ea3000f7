//! A trace or log with its program: where they are, and both opened.

use crate::error::Error;
use crate::recorded::{Recorded, unreadable};
use hartrace_analyze::{Functions, Places};
use hartrace_capture::config::{Config, Log, Program as ProgramConfig, Setting};
use hartrace_capture::detect::{HEAD, Kind, detect};
use hartrace_capture::digest::Digest;
use hartrace_capture::input::{Input, is_stdin};
use hartrace_capture::log::{LogFile, chosen};
use hartrace_capture::program::{ElfFile, Program, RawFile, SpecError};
use hartrace_capture::trace::Transport;
use hartrace_capture::{Recording, sidecar};
use hartrace_flow::{Context, Image};
use hartrace_isa::Isa;
use hartrace_print::diagnostic::{Code, Diagnostic, log, program, trace};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The programs and settings that a user gives for traces; what is not given comes from the
/// sidecar of each trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// ELF files, each `FILE[@BASE]`.
    pub elf: Vec<String>,
    /// Raw binaries, each `FILE@BASE`.
    pub raw: Vec<String>,
    /// Code histories.
    pub code: Vec<PathBuf>,
    /// Folders with the debugging information of stripped programs.
    pub debug: Vec<PathBuf>,
    /// Configuration files.
    pub config: Vec<PathBuf>,
    /// The instruction set.
    pub isa: Option<String>,
    /// The format of logs, by its word.
    #[serde(default)]
    pub log_format: Option<String>,
}

/// Where a trace and its program are. It can be sent to another process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceSource {
    /// The trace.
    pub path: PathBuf,
    /// What is in the column `trace`.
    pub name: String,
    /// What was given for it.
    pub given: Given,
}

/// A trace or log and its program, opened.
pub struct Opened {
    /// The file.
    pub path: PathBuf,
    /// What is in the column `trace`.
    pub name: String,
    /// The program.
    pub program: Program,
    /// Its code.
    pub image: Image,
    /// Its instruction set.
    pub isa: Isa,
    /// Its functions.
    pub functions: Functions,
    /// The trace or log.
    pub replay: Recorded,
    /// What a user should know: guessed settings, a program that is not the one traced.
    pub warnings: Vec<Diagnostic>,
}

impl Given {
    /// The settings that were given.
    fn config(&self) -> Result<Config, Error> {
        let elf = specs(&self.elf, |text| ElfFile::parse(text), "-e")?;
        let raw = specs(&self.raw, |text| RawFile::parse(text), "--raw")?;
        if let Some(isa) = &self.isa {
            Isa::parse(isa).map_err(|error| program::bad_isa(isa, &error))?;
        }
        let log_format = match &self.log_format {
            None => None,
            Some(word) => Some(Kind::log_named(word).ok_or_else(|| no_log_format(word))?),
        };
        let flags = Config {
            log: Log {
                format: log_format.map(|kind| Setting::flag(kind, "--log-format")),
                ..Log::default()
            },
            program: ProgramConfig {
                isa: self.isa.clone().map(|isa| Setting::flag(isa, "--isa")),
                elf: (!elf.is_empty()).then(|| Setting::flag(elf, "-e")),
                raw: (!raw.is_empty()).then(|| Setting::flag(raw, "--raw")),
                code: (!self.code.is_empty()).then(|| Setting::flag(self.code.clone(), "--code")),
                debug: (!self.debug.is_empty())
                    .then(|| Setting::flag(self.debug.clone(), "--debug-dir")),
            },
            ..Config::default()
        };
        let mut config = Config::default();
        for path in &self.config {
            let layer = Config::load(path).map_err(Diagnostic::from)?;
            config = layer.over(config);
        }
        Ok(flags.over(config))
    }
}

fn no_log_format(word: &str) -> Error {
    let words: Vec<_> = Kind::log_words().collect();
    let message = format!("`{word}` is not a format of logs");
    Diagnostic::new(Code::NotALog, message)
        .help(format!("the formats are {}", words.join(", ")))
        .into()
}

fn specs<T>(
    texts: &[String],
    parse: fn(&OsString) -> Result<T, SpecError>,
    flag: &str,
) -> Result<Vec<T>, Error> {
    let one = |text: &String| {
        parse(&OsString::from(text)).map_err(|error| {
            let message = format!("{flag} `{text}`: {error}");
            Diagnostic::new(Code::BadFileSpec, message).into()
        })
    };
    texts.iter().map(one).collect()
}

impl TraceSource {
    /// A trace that is called by its path.
    #[must_use]
    pub fn new(path: &Path, given: &Given) -> TraceSource {
        TraceSource {
            path: path.to_path_buf(),
            name: path.display().to_string(),
            given: given.clone(),
        }
    }

    /// Opens the trace or log, with its sidecar, and its program. `command` is for messages.
    ///
    /// # Errors
    ///
    /// What cannot be read, is neither trace nor log, has no program, or contradicts it.
    pub fn open(&self, command: &str) -> Result<Opened, Error> {
        let path = self.path.as_path();
        let config = self.given.config()?;
        if let Some((kind, below)) = log_kind(path, &config)? {
            return self.open_log(kind, config, below);
        }
        let recording = Recording::open_with(path, config);
        let recording = recording.map_err(|error| trace::recording(error, command))?;
        let Recording {
            trace: opened,
            program,
            image,
            remarks,
            ..
        } = recording;
        let mut warnings: Vec<Diagnostic> = remarks.iter().filter_map(program::remark).collect();
        let format = opened.format();
        warnings.extend(
            opened
                .guess
                .as_ref()
                .map(|g| trace::guessed(path, format, g)),
        );
        Ok(Opened {
            path: path.to_path_buf(),
            name: self.name.clone(),
            functions: functions(&program),
            isa: program.isa.unwrap_or(opened.settings.general_isa()),
            program,
            image,
            replay: Recorded::Trace(opened.replay().map_err(Diagnostic::from)?),
            warnings,
        })
    }

    /// Opens a log of this kind, with the settings in its sidecar.
    fn open_log(
        &self,
        kind: Kind,
        config: Config,
        sidecar: Option<Config>,
    ) -> Result<Opened, Error> {
        let path = self.path.as_path();
        let below = sidecar.clone().unwrap_or_default().over(Config::defaults());
        let mut warnings = Vec::new();
        let mut remark = |remark| warnings.extend(program::remark(&remark));
        let loaded = Program::load(config.over(below), &mut remark);
        let mut program = loaded.map_err(Diagnostic::from)?;
        if let Some(sidecar) = &sidecar {
            let checked = program.check_against(sidecar);
            checked.map_err(Diagnostic::from)?;
        }
        let image = program.image().map_err(Diagnostic::from)?;
        let mut image = image.ok_or_else(trace::no_program)?;
        let mut guessed = |guess| warnings.push(log::guessed(guess));
        let file = LogFile::open(path, kind, &mut program, &mut image, &mut guessed);
        let file = file.map_err(|error| unreadable(path, error))?;
        Ok(Opened {
            path: path.to_path_buf(),
            name: self.name.clone(),
            functions: functions(&program),
            isa: file.isa(),
            program,
            image,
            replay: Recorded::Log(file),
            warnings,
        })
    }
}

/// The kind of a log, and its sidecar; `None` for what is no log. Standard input is read once:
/// it has to be a trace.
fn log_kind(path: &Path, config: &Config) -> Result<Option<(Kind, Option<Config>)>, Error> {
    if is_stdin(path) {
        return Ok(None);
    }
    let mut input = Input::open(path).map_err(Diagnostic::from)?;
    let kind = detect(input.peek(HEAD).map_err(Diagnostic::from)?);
    let sidecar = sidecar::find(path).map_err(Diagnostic::from)?;
    let over = config.clone().over(sidecar.clone().unwrap_or_default());
    let is_bare = over.transport.transport() == Transport::default();
    let kind = chosen(kind, &over);
    Ok((is_bare && kind.is_log()).then_some((kind, sidecar)))
}

/// The functions of a program, and the names of contexts.
fn functions(program: &Program) -> Functions {
    let mut functions = Functions::new();
    for elf in &program.elf {
        // What has no symbols has no functions.
        for bias in elf.biases() {
            let _ = functions.add_program(elf.symbols(), &elf.bytes, bias);
        }
    }
    let names = program.config.contexts.0.iter();
    let names = names.map(|(number, name)| (Context(*number), name.value.clone()));
    functions.name_contexts(names.collect());
    functions
}

impl Opened {
    /// Whether the trace may have timestamps.
    #[must_use]
    pub fn has_time(&self) -> bool {
        self.replay.has_time()
    }

    /// Whether a reader may start in the middle. Which of several programs at the same
    /// addresses runs, and which version of code that changes, is known from the start only.
    #[must_use]
    pub fn can_start_anywhere(&self) -> bool {
        let has_checkpoints = match &self.replay {
            Recorded::Trace(replay) => replay.has_checkpoints(),
            Recorded::Log(_) => false,
        };
        has_checkpoints && !self.functions.is_shared() && self.program.code.is_empty()
    }

    /// Symbols and lines of its program.
    #[must_use]
    pub fn places(&self) -> Places<'_> {
        let mut places = Places::new();
        for elf in &self.program.elf {
            // What has no symbols has no places.
            for bias in elf.biases() {
                let _ = places.add_program((elf.symbols(), &elf.bytes), elf.lines(), bias);
            }
        }
        places
    }

    /// What everything that is made of it depends on: the trace, the program, the settings,
    /// and the tool.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let version = env!("CARGO_PKG_VERSION");
        let mut text = format!("{version} {}\n", self.replay.identity());
        // Writing to memory does not fail.
        let _ = writeln!(text, "{:?}", self.isa);
        for elf in &self.program.elf {
            let _ = writeln!(text, "{:?} {}", elf.file.base, Digest::of(&elf.bytes));
        }
        for raw in &self.program.raw {
            let _ = writeln!(text, "{} {}", raw.file.base, Digest::of(&raw.bytes));
        }
        for code in &self.program.code {
            let _ = writeln!(text, "{}", Digest::of(&code.code.to_bytes()));
        }
        Digest::of(text.as_bytes())
    }
}
