//! Control transfer records in files: dumps and their JSON, read by one
//! reader.
//!
//! ```
//! use hartrace_files::records::{Form, SnapshotReader};
//! use hartrace_ctr::{Config, Ctr, dump};
//! use hartrace_flow::HartId;
//!
//! let mut file = Vec::new();
//! dump::write_start(&mut file);
//! dump::write_snapshot(&Ctr::new(Config::default())?.snapshot(HartId(0)), &mut file);
//!
//! let mut reader = SnapshotReader::new(Form::Binary);
//! let mut count = 0;
//! reader.feed(&file, &mut |snapshot| count += usize::from(snapshot.is_ok()));
//! assert_eq!(count, 1);
//! assert!(reader.finish(&mut |_| ()).is_ok());
//! # Ok::<(), hartrace_ctr::ConfigError>(())
//! ```

mod json;
mod summary;
mod write;

pub use hartrace_ctr::{Snapshot, Version};
pub(crate) use json::{BOM, SCHEMA};
pub use json::{write_json, write_json_start};
pub use summary::RecordSummary;
pub use write::{RecordWriter, RecordsWritten};

use crate::config::{Config, Program, Records};
use crate::program::ElfFile;
use crate::sidecar::sidecar_of;
use hartrace_ctr::Fault;
use hartrace_ctr::dump::{DumpReader, NextSnapshot, Problem};
use json::JsonReader;
use std::fmt;
use std::path::Path;

pub use hartrace_ctr::{Control, Ctr, Every, Known, Sampler, SnapshotSink};

/// What sidecars call files of snapshots.
pub const FORMAT: &str = "ctr";

/// The sidecar of a file of snapshots: the settings of the records, and the
/// programs with their content.
#[must_use]
pub fn sidecar<'a>(
    file: &Path,
    version: Version,
    settings: Records,
    program: &Program,
    elf: impl IntoIterator<Item = (&'a ElfFile, &'a [u8])>,
) -> Config {
    Config {
        ctr: settings,
        ..sidecar_of(file, (FORMAT, version.name()), program, elf)
    }
}

/// How snapshots stand in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As [`hartrace_ctr::dump`] writes them.
    Binary,
    /// JSON lines.
    Json,
}

/// Something is wrong with a file of snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotError {
    /// What and where.
    pub problem: Problem,
    /// The place is a byte, or a line.
    pub form: Form,
    /// What the parser of JSON says.
    pub detail: Option<String>,
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { at, fault, value } = self.problem;
        match self.form {
            Form::Binary if fault == Fault::Truncated => {
                let text = fault.text();
                write!(f, "byte {at}: {text}, of which there are {value} bytes")
            }
            Form::Binary => write!(f, "byte {at}: {} ({value:#x})", fault.text()),
            Form::Json => {
                write!(f, "line {at}: {}", fault.text())?;
                let detail = self.detail.as_deref();
                detail.map_or(Ok(()), |detail| write!(f, ": {detail}"))
            }
        }
    }
}

impl std::error::Error for SnapshotError {}

/// Reads snapshots. Feed it chunks of any size; memory does not grow with the
/// file.
pub struct SnapshotReader(Reader);

enum Reader {
    Binary(Box<DumpReader>),
    Json(Box<JsonReader>),
}

impl SnapshotReader {
    /// At the start of a file.
    #[must_use]
    pub fn new(form: Form) -> SnapshotReader {
        SnapshotReader(match form {
            Form::Binary => Reader::Binary(Box::default()),
            Form::Json => Reader::Json(Box::default()),
        })
    }

    /// Reads on. A snapshot that makes no sense is an error, and the next is
    /// read; where the file makes none nothing more comes.
    pub fn feed(&mut self, chunk: &[u8], sink: &mut impl FnMut(Result<&Snapshot, SnapshotError>)) {
        let reader = match &mut self.0 {
            Reader::Binary(reader) => reader,
            Reader::Json(reader) => return reader.feed(chunk, sink),
        };
        let mut rest = chunk;
        loop {
            match reader.next(&mut rest) {
                NextSnapshot::Snapshot => sink(Ok(reader.snapshot())),
                NextSnapshot::Problem(problem) => sink(Err(binary(problem))),
                NextSnapshot::More => break,
            }
        }
    }

    /// Nothing follows. A last line may have no end.
    ///
    /// # Errors
    ///
    /// What is wrong with the end of the file.
    pub fn finish(
        &mut self,
        sink: &mut impl FnMut(Result<&Snapshot, SnapshotError>),
    ) -> Result<(), SnapshotError> {
        match &mut self.0 {
            Reader::Binary(reader) => reader.finish().map(binary).map_or(Ok(()), Err),
            Reader::Json(reader) => reader.finish(sink),
        }
    }
}

const fn binary(problem: Problem) -> SnapshotError {
    SnapshotError {
        problem,
        form: Form::Binary,
        detail: None,
    }
}
