//! Diagnostics as exceptions and warnings.

use hartrace_print::diagnostic::{Diagnostic, Severity};
use hartrace_tables::Error;
use pyo3::prelude::*;
use std::ffi::CString;

/// The module with the exceptions.
const MODULE: &str = "hartrace._errors";

/// The exception of a code: each hundred has its own.
fn class(code: &str) -> &'static str {
    match code.get(..4) {
        Some("HT00") => "FileError",
        Some("HT01") => "FormatError",
        Some("HT02") => "ConfigError",
        Some("HT03") => "UsageError",
        Some("HT04") => "RunError",
        _ => "HartraceError",
    }
}

/// A diagnostic as an exception.
pub(crate) fn raised(py: Python<'_>, diagnostic: &Diagnostic) -> PyErr {
    let make = || {
        let code = diagnostic.shown_code();
        let class = py.import(MODULE)?.getattr(class(diagnostic.code.text()))?;
        class.call1((
            code,
            diagnostic.message(),
            diagnostic.notes().to_vec(),
            diagnostic.remedy(),
            diagnostic.code.exit(),
            diagnostic.plain(Severity::Error),
        ))
    };
    match make() {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// The same of an error of the tables.
pub(crate) fn failed(py: Python<'_>, error: &Error) -> PyErr {
    raised(py, &error.0)
}

/// A diagnostic as a warning, which a user may have made an exception.
pub(crate) fn warn(py: Python<'_>, diagnostic: &Diagnostic) -> PyResult<()> {
    let category = py.import(MODULE)?.getattr("HartraceWarning")?;
    let text = diagnostic.plain(Severity::Warning).replace('\0', "");
    // There is no zero in it.
    let text = CString::new(text).unwrap_or_default();
    // The caller of the function in Python that called us.
    PyErr::warn(py, &category, &text, 2)
}
