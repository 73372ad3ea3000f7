//! Why a table cannot be made.

use hartrace_print::diagnostic::{Diagnostic, Severity};
use std::fmt;

/// What went wrong, as a diagnostic with its code.
#[derive(Debug)]
pub struct Error(pub Box<Diagnostic>);

impl From<Diagnostic> for Error {
    fn from(diagnostic: Diagnostic) -> Error {
        Error(Box::new(diagnostic))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.render(Severity::Error))
    }
}

impl std::error::Error for Error {}
