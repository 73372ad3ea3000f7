//! How a command ends without success.

use hartrace_capture::code_history::CodeSourceError;
use hartrace_capture::compare::PlanError;
use hartrace_capture::config::{CtrError, LoadError, ParameterError};
use hartrace_capture::input::InputError;
use hartrace_capture::output::OutputError;
use hartrace_capture::program::ProgramError;
use hartrace_capture::trace::{DecodeError, SettingsError, WriteError};
use hartrace_print::diagnostic::{Code, Diagnostic};

/// Why a command did not succeed; `main` makes an exit code of it.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The reader closed the output.
    ClosedPipe,
    /// Everything has been reported on stderr already; its first code.
    Reported(Code),
    /// Flags that do not go together.
    Usage(&'static str),
    /// A diagnostic to print.
    Diagnostic(Box<Diagnostic>),
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Failure {
        Failure::Diagnostic(Box::new(diagnostic))
    }
}

impl From<hartrace_cosim::Error> for Failure {
    fn from(error: hartrace_cosim::Error) -> Failure {
        Failure::Diagnostic(error.0)
    }
}

impl From<OutputError> for Failure {
    fn from(error: OutputError) -> Failure {
        match error.is_closed_pipe() {
            true => Failure::ClosedPipe,
            false => Diagnostic::from(error).into(),
        }
    }
}

/// Errors that end a command with their diagnostic.
macro_rules! diagnosed {
    ($($error:ty),+ $(,)?) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Failure {
                Diagnostic::from(error).into()
            }
        }
    )+};
}

diagnosed!(
    CodeSourceError,
    CtrError,
    DecodeError,
    InputError,
    LoadError,
    ParameterError,
    PlanError,
    ProgramError,
    SettingsError,
    WriteError,
);
