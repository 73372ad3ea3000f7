//! The files of one trace, while they are written.

use arrow_array::RecordBatch;
use hartrace_tables::{Projection, Table, Take};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::ColumnPath;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// A row group has at least so many rows, if it does not end the file, and at most so many.
const LEAST: usize = 1 << 17;
const MOST: usize = 1 << 20;

/// Columns by which queries select row groups: places, times, addresses and contexts.
const SELECTING: [&str; 13] = [
    "begin",
    "end",
    "start",
    "time",
    "begin_time",
    "end_time",
    "position",
    "address",
    "pc",
    "site",
    "next",
    "handler",
    "context",
];

/// Writes each table and hart to a file.
pub(crate) struct Writer<'a> {
    folder: &'a Path,
    files: BTreeMap<(Table, u32), Open>,
    failed: Option<parquet::errors::ParquetError>,
    ended: &'a dyn Fn() -> bool,
}

struct Open {
    writer: ArrowWriter<File>,
    rows: u64,
}

impl Open {
    /// It has rows enough for a row group.
    fn is_ready(&self) -> bool {
        self.writer.in_progress_rows() >= LEAST
    }
}

/// A file that is complete.
pub(crate) struct Written {
    pub(crate) table: Table,
    pub(crate) hart: u32,
    pub(crate) path: PathBuf,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

impl<'a> Writer<'a> {
    /// Writes to a folder; `ended` says that no more is wanted.
    pub(crate) fn new(folder: &'a Path, ended: &'a dyn Fn() -> bool) -> Writer<'a> {
        Writer {
            folder,
            files: BTreeMap::new(),
            failed: None,
            ended,
        }
    }

    fn path(&self, table: Table, hart: u32) -> PathBuf {
        self.folder.join(format!("{table}-{hart}.parquet"))
    }

    fn write(&mut self, table: Table, hart: u32, batch: &RecordBatch) -> Result<()> {
        let path = self.path(table, hart);
        let open = match self.files.entry((table, hart)) {
            std::collections::btree_map::Entry::Occupied(open) => open.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                let schema = table.schema(Projection::ALL);
                let writer =
                    ArrowWriter::try_new(File::create(path)?, schema, Some(properties(table)))?;
                place.insert(Open { writer, rows: 0 })
            }
        };
        open.rows += batch.num_rows() as u64;
        open.writer.write(batch)
    }

    fn flush(&mut self) -> Result<()> {
        for open in self.files.values_mut().filter(|open| open.is_ready()) {
            open.writer.flush()?;
        }
        Ok(())
    }

    fn note(&mut self, result: Result<()>) -> ControlFlow<()> {
        if let Err(error) = result {
            self.failed.get_or_insert(error);
        }
        match self.failed.is_some() || (self.ended)() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// Completes all files.
    pub(crate) fn finish(mut self) -> Result<Vec<Written>> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut all = Vec::new();
        for ((table, hart), open) in std::mem::take(&mut self.files) {
            let path = self.path(table, hart);
            open.writer.close()?;
            let bytes = fs::metadata(&path)?.len();
            all.push(Written {
                table,
                hart,
                path,
                rows: open.rows,
                bytes,
            });
        }
        Ok(all)
    }
}

impl Take for Writer<'_> {
    fn batch(&mut self, table: Table, hart: u32, batch: RecordBatch) -> ControlFlow<()> {
        let written = self.write(table, hart, &batch);
        self.note(written)
    }

    fn sync(&mut self) -> ControlFlow<(), bool> {
        match (self.ended)() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(self.files.values().any(Open::is_ready)),
        }
    }

    fn cut(&mut self) -> ControlFlow<()> {
        let flushed = self.flush();
        self.note(flushed)
    }
}

/// How the columns of a table are written. Numbers of what happened are stored as
/// differences; addresses and names have few values, and a dictionary. The least and the
/// greatest value cost a comparison for each row, so only columns in [`SELECTING`] have them.
fn properties(table: Table) -> WriterProperties {
    let metadata = table.metadata().into_iter();
    let metadata = metadata.map(|(key, value)| KeyValue::new(key, value));
    let mut properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_row_count(Some(MOST))
        .set_created_by(format!("hartrace {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(metadata.collect()));
    for column in table.columns() {
        let path = ColumnPath::from(column.name);
        let is_delta = match column.name {
            "begin" | "begin_time" | "end_time" | "time" | "position" => true,
            "thread" | "depth" | "instructions" | "cycles" => true,
            "end" => matches!(table, Table::Calls | Table::Traps),
            "start" => table.is_of_program(),
            _ => false,
        };
        if is_delta {
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED);
        }
        if !SELECTING.contains(&column.name) {
            properties = properties.set_column_statistics_enabled(path, EnabledStatistics::None);
        }
    }
    properties.build()
}
