//! The batches of a table, decoded by a thread while a consumer takes them.

use crate::feed::PATIENCE;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use hartrace_print::diagnostic::{Code, Diagnostic, Severity};
use hartrace_tables::{Completer, Error, Opened, Selection, Table, Take};
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, ThreadId};

/// Batches that wait for the consumer.
const WAITING: usize = 4;

/// A reader of the selected rows of a table.
pub(crate) struct Stream {
    schema: SchemaRef,
    from: Receiver<Result<RecordBatch, ArrowError>>,
    unwanted: Arc<AtomicBool>,
    /// The thread that asked for it: if it also reads, it looks for Ctrl-C.
    owner: ThreadId,
    ended: bool,
}

impl Stream {
    /// Starts a thread that decodes.
    pub(crate) fn start(
        opened: &Arc<Opened>,
        selection: &Selection,
        schema: &SchemaRef,
    ) -> std::io::Result<Stream> {
        let (to, from) = sync_channel(WAITING);
        let unwanted = Arc::new(AtomicBool::new(false));
        let mut sending = Sending {
            completer: Completer::new(Arc::clone(schema), &opened.name),
            to,
            unwanted: Arc::clone(&unwanted),
        };
        let (opened, selection) = (Arc::clone(opened), selection.clone());
        let work = move || {
            let read = opened.select(&selection, &mut sending, &mut |_| ());
            if let Err(error) = read {
                // A reader that has gone wants no error either.
                let _ = sending.to.send(Err(external(&error)));
            }
        };
        thread::Builder::new()
            .name("hartrace".to_owned())
            .spawn(work)?;
        Ok(Stream {
            schema: Arc::clone(schema),
            from,
            unwanted,
            owner: thread::current().id(),
            ended: false,
        })
    }

    /// Looks for Ctrl-C. The exception cannot pass through the consumer, so the signal is raised
    /// again for the next code in Python, and the consumer gets an error.
    fn interrupted(&self) -> Option<ArrowError> {
        if thread::current().id() != self.owner {
            return None;
        }
        let pressed = Python::try_attach(|py| match py.check_signals() {
            Ok(()) => false,
            Err(_) => {
                // Without it there is the error of the consumer.
                let _ = py
                    .import("_thread")
                    .and_then(|thread| thread.call_method0("interrupt_main"));
                true
            }
        });
        (pressed == Some(true)).then(|| {
            let diagnostic = Diagnostic::new(Code::Interrupted, "interrupted");
            external(&diagnostic.into())
        })
    }
}

/// An error of ours as one of a reader.
fn external(error: &Error) -> ArrowError {
    ArrowError::ExternalError(error.0.plain(Severity::Error).into())
}

impl Iterator for Stream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            match self.from.recv_timeout(PATIENCE) {
                Ok(batch) => {
                    self.ended = batch.is_err();
                    return Some(batch);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => self.ended = true,
            }
            if let Some(error) = self.interrupted() {
                self.ended = true;
                return Some(Err(error));
            }
        }
        None
    }
}

impl RecordBatchReader for Stream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.unwanted.store(true, Ordering::Relaxed);
    }
}

/// Gives batches to the reader.
struct Sending {
    completer: Completer,
    to: SyncSender<Result<RecordBatch, ArrowError>>,
    unwanted: Arc<AtomicBool>,
}

impl Take for Sending {
    fn batch(&mut self, _: Table, hart: u32, batch: RecordBatch) -> ControlFlow<()> {
        match self.to.send(self.completer.complete(hart, &batch)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    fn sync(&mut self) -> ControlFlow<(), bool> {
        match self.unwanted.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(false),
        }
    }
}
