//! An output that several writers share, and ingress rows on their way into it.

use crate::diagnostic::{Code, Diagnostic, Failure};
use hartrace_capture::output::Output;
use hartrace_flow::{
    Effects, HartId, Ingress, IngressSink, Observer, Port, PortConfig, Step, Wants,
};
use hartrace_isa::ItypeTable;
use hartrace_logs::{IngressColumns, IngressWriter, Iretire, RowError};
use std::fmt;
use std::io::{self, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The output. Observers cannot fail, so what fails is kept until somebody
/// asks; nothing is written after it.
pub(crate) struct Sink(Mutex<(Output, Option<Failure>)>);

impl Sink {
    pub(crate) fn new(output: Output) -> Sink {
        Sink(Mutex::new((output, None)))
    }

    pub(crate) fn put(&self, bytes: &[u8]) {
        let (output, failure) = &mut *self.lock();
        if failure.is_none()
            && let Err(error) = output.write_all(bytes)
        {
            *failure = Some(output.failed(error).into());
        }
    }

    fn refuse(&self, error: RowError) {
        let message = format!("the log does not fit ingress rows: {error}");
        let help = "use retirement = \"block\" in section [ingress] of a configuration";
        let failure = Diagnostic::new(Code::CannotWrite, message).help(help);
        self.lock().1.get_or_insert(failure.into());
    }

    /// Nobody reads it any more.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.lock().1, Some(Failure::ClosedPipe))
    }

    /// A failed write, with the name of the output.
    pub(crate) fn failed(&self, error: io::Error) -> Failure {
        self.lock().0.failed(error).into()
    }

    fn lock(&self) -> MutexGuard<'_, (Output, Option<Failure>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What failed so far.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.lock().1.take().map_or(Ok(()), Err)
    }

    /// Gives the file its name.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        self.check()?;
        let (output, _) = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(output.finish()?)
    }
}

impl io::Write for &Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.put(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Text that is gathered before it is handed on.
pub(crate) struct Text<'s> {
    sink: &'s Sink,
    buffer: Vec<u8>,
}

impl<'s> Text<'s> {
    const FULL: usize = 1 << 16;

    pub(crate) fn new(sink: &'s Sink) -> Text<'s> {
        let buffer = Vec::with_capacity(Text::FULL + 1024);
        Text { sink, buffer }
    }

    /// The buffer, for one more line.
    pub(crate) fn line(&mut self) -> &mut Vec<u8> {
        if self.buffer.len() >= Text::FULL {
            self.flush();
        }
        &mut self.buffer
    }

    pub(crate) fn flush(&mut self) {
        self.sink.put(&self.buffer);
        self.buffer.clear();
    }
}

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.line().extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// Writes what the ingress port of the hart shows.
pub(crate) struct RowWriter<'s>(Port<Rows<'s>>);

struct Rows<'s> {
    writer: IngressWriter,
    text: Text<'s>,
    /// Cycles in which nothing happens to an instruction are left out.
    dense: bool,
}

impl<'s> RowWriter<'s> {
    /// These columns and that of `sijump` if the port has it; for the E-Trace
    /// reference encoder, those that it knows.
    pub(crate) fn new(
        port: PortConfig,
        columns: IngressColumns,
        iretire: Iretire,
        mut text: Text<'s>,
    ) -> RowWriter<'s> {
        let dense = port.table == ItypeTable::ETraceReference;
        let columns = IngressColumns {
            sijump: port.sijump,
            ..if dense {
                IngressColumns::default()
            } else {
                columns
            }
        };
        let writer = IngressWriter::new(columns, iretire);
        // Text takes everything.
        let _ = writer.write_header(&mut text);
        let rows = Rows {
            writer,
            text,
            dense,
        };
        RowWriter(Port::new(port, rows))
    }
}

impl Observer for RowWriter<'_> {
    // The port also shows data accesses, for which a row has no columns.
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        self.0.step(hart, step, effects);
    }

    fn finish(&mut self) {
        self.0.finish();
    }
}

impl IngressSink for Rows<'_> {
    fn ingress(&mut self, _: HartId, block: &Ingress) {
        if self.dense && block.iretire == 0 && !block.itype.is_trap() {
            return;
        }
        let written = self
            .writer
            .write_row(&mut self.text, std::slice::from_ref(block));
        if let Err(error) = written {
            self.text.sink.refuse(error);
        }
    }

    fn finish(&mut self) {
        self.text.flush();
    }
}
