//! What is in a file of any kind.

use crate::code_history::{CodeFile, CodeFileError};
use crate::config::{Config, LoadError};
use crate::detect::{HEAD, Kind, detect};
use crate::digest::Digest;
use crate::elf_info::{ElfError, ElfInfo};
use crate::input::{Input, InputError};
use crate::log::{self, LogError, LogFacts, LogGuess, LogOptions, LogScan};
use crate::program::{MAX_PROGRAM, Program};
use crate::records::{Form, RecordSummary, SnapshotReader};
use crate::sidecar::Beside;
use crate::trace::{
    Census, Counting, Format, Guess, Known, Settings, TableDamage, Trace, TraceError, from_table,
};
use hartrace_flow::Image;
use hartrace_wave::WaveFormat;
use std::path::{Path, PathBuf};

/// Facts about a file.
pub struct Survey {
    /// Its name.
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
    /// Its size.
    pub bytes: u64,
    /// Its hash.
    pub sha256: Digest,
    /// What is in it.
    pub content: Content,
    /// Its own sidecar, and whether its programs are still the same.
    pub sidecar: Option<Beside>,
}

/// What is in a file, by kind.
pub enum Content {
    /// A program.
    Elf(ElfInfo),
    /// A configuration, or a sidecar.
    Config(Box<Config>),
    /// A log.
    Log(Box<LogFacts>),
    /// A trace: what was counted, and the settings it was read with.
    Trace(Box<Census>, Settings),
    /// Control transfer records.
    Records(Box<RecordSummary>),
    /// A code history.
    Code(Box<CodeFile>),
}

/// Why the facts about a file cannot be given.
#[derive(Debug)]
pub enum SurveyError {
    /// A failing read.
    Input(InputError),
    /// An empty file, or one of no known kind; with its first bytes.
    Unknown(Kind, Vec<u8>),
    /// An ELF file that cannot be used, with its content.
    Elf(Vec<u8>, ElfError),
    /// A code history that cannot be read.
    Code(CodeFileError),
    /// A configuration, or the sidecar of the file, that is not one.
    Config(LoadError),
    /// A log that is not read as steps.
    Log(LogError),
    /// A trace that cannot be read.
    Trace(TraceError),
    /// A table of packets of which no row can be read.
    Table(TableDamage),
}

impl From<InputError> for SurveyError {
    fn from(error: InputError) -> SurveyError {
        SurveyError::Input(error)
    }
}

impl From<LoadError> for SurveyError {
    fn from(error: LoadError) -> SurveyError {
        SurveyError::Config(error)
    }
}

impl From<TraceError> for SurveyError {
    fn from(error: TraceError) -> SurveyError {
        SurveyError::Trace(error)
    }
}

/// What makes the facts less certain.
#[derive(Debug)]
pub enum SurveyRemark {
    /// Something was guessed about a log.
    Log(LogGuess),
    /// Settings of a trace were guessed.
    Trace(Format, Guess),
    /// Rows of a table of packets cannot be read.
    Table(TableDamage),
}

/// Looks at files. The program and its settings serve to read logs and traces.
pub struct Surveyor<'a> {
    /// The program.
    pub program: &'a Program,
    /// Its image.
    pub image: Option<&'a Image>,
    /// Gets what makes the facts less certain.
    pub remark: &'a mut dyn FnMut(&Path, SurveyRemark),
    /// Gets the size of the file, if it is known, and how many more bytes have
    /// been read.
    pub progress: &'a mut dyn FnMut(Option<u64>, usize),
}

/// The content, size and hash of a file.
type Scanned = Result<(Content, u64, Digest), SurveyError>;

impl Surveyor<'_> {
    /// Reads all of a file.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, of no known kind, or unusable for its kind.
    /// Damaged parts of a log, a trace or records are facts, not errors.
    pub fn look(&mut self, path: &Path) -> Result<Survey, SurveyError> {
        let mut input = Input::open(path)?;
        let head = input.peek(HEAD)?;
        let beside = Beside::find(path, MAX_PROGRAM)?;
        let given = beside.as_ref().and_then(|beside| {
            let trace = beside.config.trace.as_ref();
            trace.and_then(|trace| Format::from_name(&trace.format.value))
        });
        let kind = detect(head);
        // A stream may look like one of another format; a container or a table does not.
        let is_stream = Format::ALL.iter().any(|format| format.kind() == kind);
        let kind = match self.program.config.log.format.as_ref() {
            // What is not a log is not read as one.
            Some(format) if kind == Kind::Unknown || kind.is_log() => format.value,
            _ => kind,
        };
        let kind = match given {
            Some(format) if kind == Kind::Unknown || is_stream => format.kind(),
            _ => kind,
        };
        let (content, bytes, sha256) = match kind {
            Kind::Empty | Kind::Unknown => return Err(SurveyError::Unknown(kind, head.to_vec())),
            Kind::Elf => elf(input)?,
            Kind::CodeHistory => code(input)?,
            Kind::Config | Kind::Sidecar => config(input)?,
            kind if kind.is_log() => self.log(input, kind)?,
            Kind::CtrDump => self.records(input, Form::Binary)?,
            Kind::CtrJson => self.records(input, Form::Json)?,
            _ => match Format::from_kind(kind) {
                Some(format) => {
                    let beside = beside.as_ref().map(|beside| beside.config.clone());
                    self.trace(input, format, beside.unwrap_or_default())?
                }
                None => return Err(SurveyError::Unknown(kind, head.to_vec())),
            },
        };
        let sidecar = match kind {
            Kind::Elf | Kind::CodeHistory | Kind::Config | Kind::Sidecar => None,
            _ => beside,
        };
        Ok(Survey {
            path: path.to_path_buf(),
            kind,
            bytes,
            sha256,
            content,
            sidecar,
        })
    }

    fn log(&mut self, mut input: Input, kind: Kind) -> Scanned {
        let path = input.path().to_path_buf();
        let mut guessed = |guess| (self.remark)(&path, SurveyRemark::Log(guess));
        let head = log::head(kind, &mut input)?;
        let is_fst = WaveFormat::detect(head) == Some(WaveFormat::Fst);
        let options = LogOptions::of(kind, head, self.program, self.image, &mut guessed);
        let mut scan = LogScan::new(kind, &options).map_err(SurveyError::Log)?;
        let size = input.size();
        let (bytes, digest) = input.hashed(|chunk| {
            scan.feed(chunk);
            (self.progress)(size, chunk.len());
        })?;
        // An FST waveform is read in another order.
        let digest = match is_fst {
            true => Digest::of(&Input::open(&path)?.contents(u64::MAX)?),
            false => digest,
        };
        Ok((Content::Log(Box::new(scan.finish())), bytes, digest))
    }

    fn trace(&mut self, mut input: Input, format: Format, beside: Config) -> Scanned {
        let table = detect(input.peek(HEAD)?) == Kind::EtraceCsv;
        let path = input.path().to_path_buf();
        let config = self.program.config.clone().over(beside);
        let known = Known {
            xlen: self.program.isa.map(|isa| isa.xlen()),
            image: self.image,
        };
        let trace = Trace::open_to_count(input, format, &config, known)?;
        if let Some(guess) = trace.guess {
            (self.remark)(&path, SurveyRemark::Trace(format, guess));
        }
        let mut counting = Counting::new(&trace.settings);
        let mut rows = Vec::new();
        let size = trace.input.size();
        let (bytes, digest) = trace.input.hashed(|chunk| {
            (self.progress)(size, chunk.len());
            match table {
                true => rows.extend_from_slice(chunk),
                false => counting.feed(chunk),
            }
        })?;
        if table {
            let (stream, damage) = from_table(Input::of(&path, rows), &trace.settings)?;
            match damage {
                Some(damage) if damage.is_all() => return Err(SurveyError::Table(damage)),
                Some(damage) => (self.remark)(&path, SurveyRemark::Table(damage)),
                None => {}
            }
            counting.feed(&stream.read_all(u64::MAX)?);
        }
        let census = Box::new(counting.finish());
        Ok((Content::Trace(census, trace.settings), bytes, digest))
    }

    fn records(&mut self, input: Input, form: Form) -> Scanned {
        let size = input.size();
        let mut reader = SnapshotReader::new(form);
        let mut summary = RecordSummary::default();
        let (bytes, digest) = input.hashed(|chunk| {
            (self.progress)(size, chunk.len());
            reader.feed(chunk, &mut |snapshot| summary.add(snapshot));
        })?;
        if let Err(error) = reader.finish(&mut |snapshot| summary.add(snapshot)) {
            summary.error(error);
        }
        Ok((Content::Records(Box::new(summary)), bytes, digest))
    }
}

fn elf(input: Input) -> Scanned {
    let bytes = input.read_all(MAX_PROGRAM)?;
    let (size, digest) = (bytes.len() as u64, Digest::of(&bytes));
    match ElfInfo::read(&bytes) {
        Ok(info) => Ok((Content::Elf(info), size, digest)),
        Err(error) => Err(SurveyError::Elf(bytes, error)),
    }
}

fn code(input: Input) -> Scanned {
    let bytes = input.read_all(MAX_PROGRAM)?;
    let (size, digest) = (bytes.len() as u64, Digest::of(&bytes));
    let code = CodeFile::read(&bytes).map_err(SurveyError::Code)?;
    Ok((Content::Code(Box::new(code)), size, digest))
}

fn config(input: Input) -> Scanned {
    let path = input.path().to_path_buf();
    let bytes = input.read_all(MAX_PROGRAM)?;
    let (size, digest) = (bytes.len() as u64, Digest::of(&bytes));
    let config = Config::from_bytes(bytes, &path)?;
    Ok((Content::Config(Box::new(config)), size, digest))
}
