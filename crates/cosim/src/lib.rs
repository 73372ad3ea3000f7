//! Beside a running core: the built-in hart executes what the core executes, and the
//! trace of its ingress port is encoded.
//!
//! * [`Checker`]: takes each instruction that a core has retired, and finds the first
//!   difference to the built-in hart.
//! * [`BlockEncoder`](hartrace_capture::trace::BlockEncoder), made by [`encoder`]: takes
//!   each block of a trace ingress port, and gives the bytes of its trace.
//! * [`machine`], [`model`]: the built-in hart that the settings describe, for these and
//!   for every command that runs one.
//!
//! `hartrace-ffi` makes a C library of it.

#![forbid(unsafe_code)]

mod check;
mod encode;
pub mod machine;
pub mod model;

pub use check::{CheckOptions, Checker, EntryError, Finding};
pub use encode::encoder;

use hartrace_capture::config::{CtrError, LoadError};
use hartrace_capture::program::ProgramError;
use hartrace_capture::trace::SettingsError;
use hartrace_print::diagnostic::{Diagnostic, Severity};
use std::fmt;

/// Why something cannot be set up.
#[derive(Debug)]
pub struct Error(pub Box<Diagnostic>);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.plain(Severity::Error))
    }
}

impl std::error::Error for Error {}

impl From<Diagnostic> for Error {
    fn from(diagnostic: Diagnostic) -> Error {
        Error(Box::new(diagnostic))
    }
}

/// Errors of other crates with their diagnostics.
macro_rules! diagnosed {
    ($($error:ty),+) => {$(
        impl From<$error> for Error {
            fn from(error: $error) -> Error {
                Diagnostic::from(error).into()
            }
        }
    )+};
}

diagnosed!(CtrError, LoadError, ProgramError, SettingsError);
