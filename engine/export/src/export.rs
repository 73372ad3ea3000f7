//! A folder of Parquet files, made trace by trace.

use crate::writer::{Writer, Written};
use hartrace_capture::digest::Digest;
use hartrace_capture::output::Output;
use hartrace_print::diagnostic::{Code, Diagnostic};
use hartrace_tables::{Error, Opened, Table, TraceSource, VERSION, Wanted};
use parquet::errors::ParquetError;
use serde::{Deserialize, Serialize};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The folder with a file for each trace that is finished.
const TRACES: &str = "_traces";

/// The beginning of the name of a folder that is not finished.
const UNFINISHED: &str = "_unfinished-";

/// The name of each file with rows.
pub const NAMES: &str = "part.parquet";

/// An export: a folder, and which tables it has.
pub struct Export {
    folder: PathBuf,
    tables: Vec<Table>,
    /// Files are put in their places by one thread at a time.
    placing: Mutex<Shared>,
}

/// Where files are that many traces have alike, by what is in them: those of their program.
type Shared = HashMap<Digest, PathBuf>;

/// What was exported of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// The version of the schema.
    pub schema: String,
    /// The name of the trace.
    pub trace: String,
    /// What everything was made from.
    pub digest: String,
    /// Rows of each table.
    pub tables: BTreeMap<Table, u64>,
    /// The size of the trace in bytes.
    pub trace_bytes: u64,
    /// The size of its files in bytes, without those that it shares with other traces.
    pub bytes: u64,
    /// Instructions that were decoded.
    pub instructions: u64,
    /// Losses.
    pub gaps: u64,
    /// Bytes of the trace that could not be used.
    pub lost_bytes: u64,
}

/// What became of a trace.
#[derive(Debug)]
pub struct Outcome {
    /// What was exported.
    pub done: Done,
    /// It was there before.
    pub is_old: bool,
    /// What a user should know about how it was read.
    pub warnings: Vec<Diagnostic>,
}

impl Done {
    /// Rows of all tables.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.tables.values().sum()
    }
}

impl Export {
    /// The tables that are written unless others are asked for. `runs` and `messages` take
    /// several times as long to write as all others.
    pub const USUAL: [Table; 7] = [
        Table::Calls,
        Table::Traps,
        Table::Accesses,
        Table::Gaps,
        Table::Functions,
        Table::Lines,
        Table::Branches,
    ];

    /// An export of these tables to a folder, which is made if it is not there.
    ///
    /// # Errors
    ///
    /// A folder that cannot be made.
    pub fn new(folder: &Path, tables: Vec<Table>) -> Result<Export, Error> {
        fs::create_dir_all(folder.join(TRACES)).map_err(|error| cannot_create(folder, &error))?;
        Ok(Export {
            folder: folder.to_path_buf(),
            tables,
            placing: Mutex::default(),
        })
    }

    fn marker(&self, trace: &str) -> PathBuf {
        let name = format!("{}.json", folder_name(trace));
        self.folder.join(TRACES).join(name)
    }

    /// What was exported of a trace, if it is finished and of this version.
    fn known(&self, trace: &str) -> Result<Option<Done>, Error> {
        let marker = self.marker(trace);
        let Ok(text) = fs::read(&marker) else {
            return Ok(None);
        };
        // A file that is not ours is replaced.
        let known: Option<Done> = serde_json::from_slice(&text).ok();
        match known {
            Some(done) if done.schema != VERSION => Err(wrong_schema(&marker, &done.schema)),
            known => Ok(known),
        }
    }

    /// Exports a trace, unless that was done before. `ended` says that the user wants an end:
    /// then there is nothing of the trace.
    ///
    /// # Errors
    ///
    /// A trace that cannot be opened, and files that cannot be written.
    pub fn trace(
        &self,
        source: &TraceSource,
        ended: &dyn Fn() -> bool,
    ) -> Result<Option<Outcome>, Error> {
        let known = self.known(&source.name)?;
        let opened = source.open("export")?;
        let digest = opened.digest().to_string();
        let has_all = |done: &Done| self.tables.iter().all(|t| done.tables.contains_key(t));
        if let Some(done) = known
            && done.digest == digest
            && has_all(&done)
        {
            return Ok(Some(Outcome {
                done,
                is_old: true,
                warnings: opened.warnings,
            }));
        }
        let temporary = tempfile::Builder::new()
            .prefix(UNFINISHED)
            .tempdir_in(&self.folder)
            .map_err(|error| cannot_create(&self.folder, &error))?;
        let writer = Writer::new(temporary.path(), ended);
        let mut writer = writer.map_err(|error| self.cannot_write(&source.name, &error))?;
        let wanted = Wanted::all(self.tables.iter().copied()).without_index();
        let read = opened.read(&wanted, &mut writer, &mut |_| ())?;
        let written = writer.finish();
        if ended() {
            return Ok(None);
        }
        let written = written.map_err(|error| self.cannot_write(&source.name, &error))?;
        let mut done = Done {
            schema: VERSION.to_owned(),
            trace: source.name.clone(),
            digest,
            tables: self.tables.iter().map(|table| (*table, 0)).collect(),
            trace_bytes: opened.replay.size(),
            bytes: written.iter().map(|file| file.bytes).sum(),
            instructions: read.decoded.instructions,
            gaps: read.decoded.gaps,
            lost_bytes: read.decoded.lost,
        };
        for file in &written {
            *done.tables.entry(file.table).or_default() += file.rows;
        }
        self.place(&opened, &written, &mut done)?;
        Ok(Some(Outcome {
            done,
            is_old: false,
            warnings: opened.warnings,
        }))
    }

    /// Puts the files of a trace in their places, and then what says that they are there.
    fn place(&self, opened: &Opened, written: &[Written], done: &mut Done) -> Result<(), Error> {
        let mut shared = self.placing.lock().unwrap_or_else(PoisonError::into_inner);
        let marker = self.marker(&opened.name);
        let _ = fs::remove_file(&marker);
        let name = format!("trace={}", folder_name(&opened.name));
        for table in Table::ALL {
            let old = self.folder.join(table.name()).join(&name);
            if old.is_dir() {
                fs::remove_dir_all(&old).map_err(|error| cannot_create(&old, &error))?;
            }
        }
        // A table without rows is there, too.
        for table in &self.tables {
            let folder = self.folder.join(table.name());
            fs::create_dir_all(&folder).map_err(|error| cannot_create(&folder, &error))?;
        }
        for file in written {
            let mut folder = self.folder.join(file.table.name()).join(&name);
            if !file.table.is_of_program() {
                folder = folder.join(format!("hart={}", file.hart));
            }
            fs::create_dir_all(&folder).map_err(|error| cannot_create(&folder, &error))?;
            let place = folder.join(NAMES);
            if link(file, &place, &mut shared) {
                done.bytes -= file.bytes;
            } else {
                fs::rename(&file.path, &place).map_err(|error| cannot_create(&place, &error))?;
            }
        }
        // Numbers and text: nothing that could fail.
        let text = serde_json::to_vec_pretty(done).unwrap_or_default();
        let output = Output::create(&marker).map_err(Diagnostic::from)?;
        let written = output.write_with(|out| out.write_all(&text));
        Ok(written.map_err(Diagnostic::from)?)
    }

    fn cannot_write(&self, trace: &str, error: &ParquetError) -> Error {
        let folder = self.folder.display();
        let why = match error {
            ParquetError::External(cause) => cause.to_string(),
            other => other.to_string(),
        };
        let message = format!("cannot write the tables of `{trace}` to `{folder}`: {why}");
        Diagnostic::new(Code::CannotWrite, message)
            .note("traces that are finished stay; the files of this one were removed")
            .help("make room, and give the same command again")
            .into()
    }
}

/// Puts a file in its place as another name of one that is the same: the functions and lines of a
/// program are those of every trace of it. Whether that was possible; if not, the next files like
/// this one may be names of it.
fn link(file: &Written, place: &Path, shared: &mut Shared) -> bool {
    if !matches!(file.table, Table::Functions | Table::Lines) {
        return false;
    }
    let Ok(bytes) = fs::read(&file.path) else {
        return false;
    };
    match shared.entry(Digest::of(&bytes)) {
        Entry::Occupied(known) if fs::hard_link(known.get(), place).is_ok() => true,
        Entry::Occupied(mut known) => {
            known.insert(place.to_path_buf());
            false
        }
        Entry::Vacant(new) => {
            new.insert(place.to_path_buf());
            false
        }
    }
}

fn cannot_create(path: &Path, error: &io::Error) -> Error {
    let message = format!("cannot create `{}`: {error}", path.display());
    Diagnostic::new(Code::CannotCreate, message).into()
}

fn wrong_schema(path: &Path, version: &str) -> Error {
    let path = path.display();
    let message = format!("`{path}` is of version {version} of the schema; this is {VERSION}");
    Diagnostic::new(Code::WrongSchema, message)
        .help("export to another folder, or delete this one")
        .into()
}

/// The name of a trace as part of the name of a folder.
#[must_use]
pub fn folder_name(trace: &str) -> String {
    let mut name = String::new();
    for byte in trace.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => {
                name.push(char::from(byte));
            }
            byte => {
                // Writing to memory does not fail.
                let _ = write!(name, "%{byte:02X}");
            }
        }
    }
    name
}

/// The name of a trace again.
#[must_use]
pub fn decoded_name(folder: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = folder.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|hex| str::from_utf8(hex).ok());
        let code = digits.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        (rest, _) = match code.filter(|_| byte == b'%') {
            Some(code) => (after.get(2..).unwrap_or_default(), bytes.push(code)),
            None => (after, bytes.push(byte)),
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
