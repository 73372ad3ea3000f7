//! A table of a trace, for everything that takes Arrow.

use crate::stream::Stream;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_schema::SchemaRef;
use arrow_schema::ffi::FFI_ArrowSchema;
use hartrace_tables::{Opened, Projection, Selection, Table as Kind};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::Arc;

/// Rows of a trace, made when they are asked for.
///
/// It has the Arrow PyCapsule interface: `pyarrow.table(t)`, `polars.DataFrame(t)`,
/// `pandas.DataFrame.from_arrow(t)` and DuckDB take it as it is. Each of them decodes the trace
/// once, and gets batches while it is decoded; nothing is copied.
#[pyclass(module = "hartrace", frozen)]
pub(crate) struct Table {
    opened: Arc<Opened>,
    selection: Selection,
    schema: SchemaRef,
}

impl Table {
    /// Some rows of a table, with the columns of these names in this order, or all.
    pub(crate) fn new(
        opened: &Arc<Opened>,
        mut selection: Selection,
        columns: Option<&[String]>,
    ) -> PyResult<Table> {
        let table = selection.table;
        let mut schema = table.full_schema();
        if let Some(columns) = columns {
            let places: PyResult<Vec<usize>> = columns
                .iter()
                .map(|name| schema.index_of(name).map_err(|_| no_column(table, name)))
                .collect();
            let own = columns.iter().filter_map(|name| table.column(name));
            selection.projection = own.fold(Projection::NONE, Projection::with);
            let projected = schema.project(&places?);
            schema = Arc::new(projected.map_err(|error| PyValueError::new_err(error.to_string()))?);
        }
        Ok(Table {
            opened: Arc::clone(opened),
            selection,
            schema,
        })
    }
}

fn no_column(table: Kind, name: &str) -> PyErr {
    let schema = table.full_schema();
    let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    let names = names.join(", ");
    PyValueError::new_err(format!(
        "the table `{table}` has no column `{name}`; its columns are {names}"
    ))
}

#[pymethods]
impl Table {
    /// Its name, such as `calls`.
    #[getter]
    fn name(&self) -> &'static str {
        self.selection.table.name()
    }

    /// The names of its columns, in their order.
    #[getter]
    fn columns(&self) -> Vec<String> {
        let fields = self.schema.fields().iter();
        fields.map(|field| field.name().clone()).collect()
    }

    /// The schema as a capsule `arrow_schema`.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.schema);
        let schema = schema.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        PyCapsule::new(py, schema, Some(c"arrow_schema".to_owned()))
    }

    /// The rows as a capsule `arrow_array_stream`. Another schema is not made: `requested_schema`
    /// is a wish by which a producer may be able to save work.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let stream = Stream::start(&self.opened, &self.selection, &self.schema);
        let stream = stream.map_err(|error| PyOSError::new_err(error.to_string()))?;
        let stream = FFI_ArrowArrayStream::new(Box::new(stream));
        PyCapsule::new(py, stream, Some(c"arrow_array_stream".to_owned()))
    }

    fn __repr__(&self) -> String {
        let (name, trace) = (self.name(), &self.opened.name);
        format!("<hartrace.Table {name} of {trace}>")
    }
}
