//! The Python package `hartrace`.

use pyo3::prelude::*;

/// The parts of the package that are compiled.
#[pymodule]
mod _hartrace {}
