//! An output that several writers share.

use crate::failure::Failure;
use hartrace_capture::output::Output;
use hartrace_logs::RowError;
use hartrace_print::diagnostic::{Code, Diagnostic};
use std::io::{self, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The output. Observers cannot fail, so an error is kept until a caller
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

    /// Rows, or why there is none.
    pub(crate) fn put_rows(&self, rows: Result<&[u8], RowError>) {
        let error = match rows {
            Ok(rows) => return self.put(rows),
            Err(error) => error,
        };
        let message = format!("the log cannot be written as ingress rows: {error}");
        let help = "set retirement = \"block\" in section [ingress] of a configuration";
        let failure = Diagnostic::new(Code::CannotWrite, message).help(help);
        self.lock().1.get_or_insert(failure.into());
    }

    /// Whether it becomes a file with a name.
    pub(crate) fn is_file(&self) -> bool {
        self.lock().0.is_file()
    }

    /// The reader closed it.
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
