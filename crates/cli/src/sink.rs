//! An output that several writers share.

use crate::failure::Failure;
use hartrace_capture::output::Output;
use hartrace_logs::RowError;
use hartrace_print::diagnostic::{Code, Diagnostic};
use std::io::{self, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The output. Observers cannot fail, so an error is kept until a caller
/// asks; nothing is written after it.
pub(crate) struct Sink(Mutex<Shared>);

struct Shared {
    output: Output,
    failure: Option<Failure>,
    /// What was put, if it is to be written in another form in the end.
    gathered: Option<Vec<u8>>,
}

impl Sink {
    pub(crate) fn new(output: Output) -> Sink {
        Sink(Mutex::new(Shared {
            output,
            failure: None,
            gathered: None,
        }))
    }

    /// From now on gathers what is put instead of writing it.
    pub(crate) fn gather(&self) {
        self.lock().gathered = Some(Vec::new());
    }

    /// What was gathered; from now on what is put is written.
    pub(crate) fn gathered(&self) -> Vec<u8> {
        self.lock().gathered.take().unwrap_or_default()
    }

    pub(crate) fn put(&self, bytes: &[u8]) {
        let Shared {
            output,
            failure,
            gathered,
        } = &mut *self.lock();
        if let Some(gathered) = gathered {
            gathered.extend_from_slice(bytes);
        } else if failure.is_none()
            && let Err(error) = output.write_all(bytes)
        {
            *failure = Some(output.failed(error).into());
        }
    }

    /// Rows, or why there is none.
    pub(crate) fn put_rows(&self, rows: Result<&[u8], RowError>) {
        let error = match rows {
            Ok(rows) => return self.put(rows),
            Err(error) => error,
        };
        let message = format!("the log cannot be written as ingress rows: {error}");
        let help = "set retirement = \"block\" in section [ingress] of a configuration";
        let failure = Diagnostic::new(Code::CannotWrite, message).help(help);
        self.lock().failure.get_or_insert(failure.into());
    }

    /// Whether it becomes a file with a name.
    pub(crate) fn is_file(&self) -> bool {
        self.lock().output.is_file()
    }

    /// The reader closed it.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.lock().failure, Some(Failure::ClosedPipe))
    }

    /// A failed write, with the name of the output.
    pub(crate) fn failed(&self, error: io::Error) -> Failure {
        self.lock().output.failed(error).into()
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What failed so far.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.lock().failure.take().map_or(Ok(()), Err)
    }

    /// Gives the file its name.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        self.check()?;
        let shared = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(shared.output.finish()?)
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
