//! A Parquet file with the rows of a table.

use crate::column::{Column, Form, Press};
use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema};
use hartrace_tables::{ColumnInfo, Projection, Table};
use parquet::arrow::{ArrowSchemaConverter, add_encoded_arrow_schema_to_metadata};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

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

/// A file that is written.
pub(crate) struct TableFile {
    file: SerializedFileWriter<File>,
    columns: Vec<Column>,
    /// Rows of the row group.
    group: usize,
    /// Rows of the file.
    rows: u64,
}

impl TableFile {
    /// A file without rows.
    pub(crate) fn create(table: Table, path: &Path) -> Result<TableFile> {
        let schema = table.schema(Projection::ALL);
        let parquet = ArrowSchemaConverter::new().convert(&schema)?;
        let properties = Arc::new(properties(table, &schema));
        let file = File::create(path)?;
        let file = SerializedFileWriter::new(file, parquet.root_schema_ptr(), properties)?;
        let columns = table.columns().iter().zip(parquet.columns());
        let columns = columns.map(|(column, description)| {
            let data_type = (column.data_type)();
            let form = form(table, column, &data_type);
            Column::new(Arc::clone(description), &data_type, form)
        });
        Ok(TableFile {
            columns: columns.collect::<Result<_>>()?,
            file,
            group: 0,
            rows: 0,
        })
    }

    /// It has rows enough for a row group.
    pub(crate) fn is_ready(&self) -> bool {
        self.group >= LEAST
    }

    /// Adds rows.
    pub(crate) fn write(&mut self, batch: &RecordBatch, press: &mut Press) -> Result<()> {
        if self.group + batch.num_rows() > MOST {
            self.end_group(press)?;
        }
        for (column, array) in self.columns.iter_mut().zip(batch.columns()) {
            column.add(array.as_ref(), press)?;
        }
        self.group += batch.num_rows();
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    /// Ends the row group, if it has rows.
    pub(crate) fn end_group(&mut self, press: &mut Press) -> Result<()> {
        if std::mem::take(&mut self.group) == 0 {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        for column in &mut self.columns {
            let (pages, close) = column.end_chunk(press)?;
            group.append_column(&pages, close)?;
        }
        group.close().map(|_| ())
    }

    /// Completes the file: how many rows it has.
    pub(crate) fn close(mut self, press: &mut Press) -> Result<u64> {
        self.end_group(press)?;
        self.file.close()?;
        Ok(self.rows)
    }
}

/// Numbers of what happened are written as differences, as are the places in a program, which
/// are in order; other addresses have few values, and a dictionary.
fn form(table: Table, column: &ColumnInfo, data_type: &DataType) -> Form {
    let is_delta = match column.name {
        "begin" | "begin_time" | "end_time" | "time" | "position" => true,
        "instructions" | "cycles" | "taken" | "not_taken" => true,
        "end" => table != Table::Runs,
        "start" | "address" => table.is_of_program(),
        _ => false,
    };
    Form {
        is_delta,
        has_statistics: *data_type == DataType::UInt64 && SELECTING.contains(&column.name),
    }
}

fn properties(table: Table, schema: &Schema) -> WriterProperties {
    // In order: files with the same rows are the same.
    let metadata: BTreeMap<String, String> = table.metadata().into_iter().collect();
    let metadata = metadata
        .into_iter()
        .map(|(key, value)| KeyValue::new(key, value));
    let mut properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_created_by(format!("hartrace {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(metadata.collect()))
        .set_offset_index_disabled(true)
        .build();
    // Readers that know Arrow get the types of the columns, such as dictionaries.
    add_encoded_arrow_schema_to_metadata(schema, &mut properties);
    properties
}
