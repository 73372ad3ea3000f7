//! The rows of a query, as they arrive.

use crate::{Failure, Format};
use datafusion::arrow::csv;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::json;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches_with_schema;
use datafusion::parquet::arrow::ArrowWriter;
use futures::StreamExt as _;
use hartrace_print::diagnostic::{Code, Diagnostic};
use hartrace_sql::Session;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Where rows go.
pub(crate) struct Destination<'a> {
    pub(crate) format: Format,
    pub(crate) path: &'a Path,
}

/// Runs a query and writes its rows. A file appears when all are written.
pub(crate) async fn write(
    session: &Session,
    query: &str,
    to: &Destination<'_>,
) -> Result<(), Failure> {
    let rows = session.query(query).await?;
    let schema = rows.schema();
    let is_file = to.path.as_os_str() != "-";
    let failed = |error: io::Error| cannot_write(to.path, error);
    if !is_file {
        let out = BufWriter::new(io::stdout());
        return send(rows, Sink::new(to.format, schema, out))
            .await?
            .map_err(failed);
    }
    let folder = to
        .path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    let out = file.reopen().map_err(failed)?;
    let out = BufWriter::new(out);
    send(rows, Sink::new(to.format, schema, out))
        .await?
        .map_err(failed)?;
    file.persist(to.path).map_err(|error| failed(error.error))?;
    Ok(())
}

async fn send<W: Write + Send>(
    mut rows: datafusion::execution::SendableRecordBatchStream,
    sink: io::Result<Sink<W>>,
) -> Result<io::Result<()>, Failure> {
    let mut sink = match sink {
        Ok(sink) => sink,
        Err(error) => return Ok(Err(error)),
    };
    while let Some(batch) = rows.next().await {
        if let Err(error) = sink.write(batch?) {
            return Ok(Err(error));
        }
    }
    Ok(sink.finish())
}

fn cannot_write(path: &Path, error: io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Failure::ClosedPipe;
    }
    let message = format!("cannot write `{}`: {error}", path.display());
    Failure::Diagnostic(Box::new(Diagnostic::new(Code::CannotWrite, message)))
}

/// A writer of a format.
enum Sink<W: Write + Send> {
    /// All batches, since the widths of columns depend on all rows.
    Table(W, SchemaRef, Vec<RecordBatch>),
    Csv(Box<csv::Writer<W>>),
    Json(Box<json::LineDelimitedWriter<W>>),
    Parquet(Box<ArrowWriter<W>>),
}

impl<W: Write + Send> Sink<W> {
    fn new(format: Format, schema: SchemaRef, out: W) -> io::Result<Sink<W>> {
        Ok(match format {
            Format::Table => Sink::Table(out, schema, Vec::new()),
            Format::Csv => {
                let mut writer = csv::WriterBuilder::new().with_header(true).build(out);
                // A query without rows has a header, too.
                let empty = RecordBatch::new_empty(schema);
                writer.write(&empty).map_err(io::Error::other)?;
                Sink::Csv(Box::new(writer))
            }
            Format::Json => Sink::Json(Box::new(json::LineDelimitedWriter::new(out))),
            Format::Parquet => {
                let writer = ArrowWriter::try_new(out, schema, None).map_err(io::Error::other)?;
                Sink::Parquet(Box::new(writer))
            }
        })
    }

    fn write(&mut self, batch: RecordBatch) -> io::Result<()> {
        match self {
            Sink::Table(_, _, batches) => {
                batches.push(batch);
                Ok(())
            }
            Sink::Csv(writer) => writer.write(&batch).map_err(of_arrow),
            Sink::Json(writer) => writer.write(&batch).map_err(of_arrow),
            Sink::Parquet(writer) => writer.write(&batch).map_err(io::Error::other),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Sink::Table(mut out, schema, batches) => {
                let text = pretty_format_batches_with_schema(schema, &batches);
                writeln!(out, "{}", text.map_err(io::Error::other)?)?;
                out.flush()
            }
            Sink::Csv(writer) => writer.into_inner().flush(),
            Sink::Json(mut writer) => {
                writer.finish().map_err(of_arrow)?;
                writer.into_inner().flush()
            }
            Sink::Parquet(writer) => {
                let mut out = writer.into_inner().map_err(io::Error::other)?;
                out.flush()
            }
        }
    }
}

/// A failing write, which arrow wraps.
fn of_arrow(error: datafusion::arrow::error::ArrowError) -> io::Error {
    match error {
        datafusion::arrow::error::ArrowError::IoError(_, error) => error,
        other => io::Error::other(other),
    }
}
