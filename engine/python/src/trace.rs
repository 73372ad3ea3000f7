//! A trace or log with its program.

use crate::error::{failed, warn};
use crate::events::{Events, Kinds};
use crate::instructions::Instructions;
use crate::messages::Messages;
use crate::table::Table;
use hartrace_print::diagnostic::Severity;
use hartrace_tables::{Given, Opened, Projection, Selection, Table as Kind, TraceSource};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// What is known of an address: function, offset in it, file, line.
type Place = (Option<String>, Option<u64>, Option<String>, Option<u32>);

/// A trace or log with its program, opened.
#[pyclass(module = "hartrace._hartrace", frozen)]
pub(crate) struct Recording {
    opened: Arc<Opened>,
}

/// What is given for a trace, as Python passes it on.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Facts {
    elf: Vec<String>,
    raw: Vec<String>,
    code: Vec<PathBuf>,
    debug: Vec<PathBuf>,
    config: Vec<PathBuf>,
    isa: Option<String>,
    log_format: Option<String>,
}

/// Opens a trace or log.
#[pyfunction]
pub(crate) fn open_recording(
    py: Python<'_>,
    path: PathBuf,
    name: Option<String>,
    facts: Facts,
) -> PyResult<Recording> {
    let given = Given {
        elf: facts.elf,
        raw: facts.raw,
        code: facts.code,
        debug: facts.debug,
        config: facts.config,
        isa: facts.isa,
        log_format: facts.log_format,
    };
    let mut source = TraceSource::new(&path, &given);
    if let Some(name) = name {
        source.name = name;
    }
    let opened = py.detach(|| source.open("decode"));
    let opened = opened.map_err(|error| failed(py, &error))?;
    for warning in &opened.warnings {
        warn(py, warning)?;
    }
    Ok(Recording {
        opened: Arc::new(opened),
    })
}

/// The names of all tables, each with the names of its columns.
#[pyfunction]
pub(crate) fn table_columns() -> BTreeMap<&'static str, Vec<String>> {
    let columns = |table: Kind| {
        let schema = table.full_schema();
        let fields = schema.fields().iter();
        fields.map(|field| field.name().clone()).collect()
    };
    let tables = Kind::ALL.into_iter();
    tables.map(|table| (table.name(), columns(table))).collect()
}

/// The limits of rows, from one number to another.
fn range(start: Option<u64>, end: Option<u64>) -> Option<Range<u64>> {
    match (start, end) {
        (None, None) => None,
        (start, end) => Some(start.unwrap_or(0)..end.unwrap_or(u64::MAX)),
    }
}

fn no_thread(error: &std::io::Error) -> PyErr {
    PyOSError::new_err(format!("cannot start a thread: {error}"))
}

#[pymethods]
impl Recording {
    #[getter]
    fn path(&self) -> PathBuf {
        self.opened.path.clone()
    }

    #[getter]
    fn name(&self) -> &str {
        &self.opened.name
    }

    #[getter]
    fn format(&self) -> &'static str {
        self.opened.replay.format()
    }

    #[getter]
    fn size(&self) -> u64 {
        self.opened.replay.size()
    }

    #[getter]
    fn isa(&self) -> String {
        self.opened.isa.to_string()
    }

    #[getter]
    fn has_time(&self) -> bool {
        self.opened.has_time()
    }

    #[getter]
    fn programs(&self) -> Vec<PathBuf> {
        let elf = self.opened.program.elf.iter();
        elf.map(|elf| elf.file.file.clone()).collect()
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        let warnings = self.opened.warnings.iter();
        warnings.map(|w| w.plain(Severity::Warning)).collect()
    }

    /// Rows of a table: of a hart, that begin in a range of instructions, or of times.
    fn table(
        &self,
        name: &str,
        columns: Option<Vec<String>>,
        hart: Option<u32>,
        begin: (Option<u64>, Option<u64>),
        time: (Option<u64>, Option<u64>),
    ) -> PyResult<Table> {
        let table = Kind::from_name(name).ok_or_else(|| {
            let names = Kind::ALL.map(Kind::name).join(", ");
            PyValueError::new_err(format!("`{name}` is not a table; the tables are {names}"))
        })?;
        let selection = Selection {
            hart,
            begin: range(begin.0, begin.1),
            time: range(time.0, time.1),
            ..Selection::all(table, Projection::ALL)
        };
        if hart.is_some() && table.is_of_program() {
            let message = format!("the table `{table}` is about the program: it has no harts");
            return Err(PyValueError::new_err(message));
        }
        if let Some(column) = selection.missing() {
            let message = format!("the table `{table}` has no column `{column}` to select rows by");
            return Err(PyValueError::new_err(message));
        }
        Table::new(&self.opened, selection, columns.as_deref())
    }

    fn events(&self, kinds: Vec<String>, hart: Option<u32>) -> PyResult<Events> {
        let events = Events::new(&self.opened, Kinds::named(&kinds), hart);
        events.map_err(|error| no_thread(&error))
    }

    fn instructions(
        &self,
        hart: Option<u32>,
        start: Option<u64>,
        end: Option<u64>,
    ) -> PyResult<Instructions> {
        let range = range(start, end).unwrap_or(0..u64::MAX);
        let instructions = Instructions::new(&self.opened, hart, range);
        instructions.map_err(|error| no_thread(&error))
    }

    fn messages(&self) -> PyResult<Messages> {
        Messages::new(&self.opened).map_err(|error| no_thread(&error))
    }

    /// What is known of addresses.
    fn places(&self, py: Python<'_>, addresses: Vec<u64>) -> Vec<Place> {
        py.detach(|| {
            let (places, functions) = (self.opened.places(), &self.opened.functions);
            let one = |address: &u64| {
                let function = functions.of(*address).map(|id| functions.get(id));
                let line = places.line(*address);
                (
                    function.map(|function| function.name.clone()),
                    function.map(|function| address.wrapping_sub(function.start)),
                    line.map(|line| line.file.to_owned()),
                    line.map(|line| line.line),
                )
            };
            addresses.iter().map(one).collect()
        })
    }
}
