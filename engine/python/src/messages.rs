//! The messages of a trace, as objects of Python.

use crate::feed::Feed;
use hartrace_capture::trace::{Explained, PieceKind};
use hartrace_tables::Opened;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// A message, packet or group of a trace.
#[pyclass(module = "hartrace", frozen, skip_from_py_object)]
pub(crate) struct Message {
    #[pyo3(get)]
    position: u64,
    #[pyo3(get)]
    bytes: u64,
    #[pyo3(get)]
    hart: Option<u32>,
    #[pyo3(get)]
    kind: String,
    #[pyo3(get)]
    address: Option<u64>,
    #[pyo3(get)]
    time: Option<u64>,
    #[pyo3(get)]
    fault: Option<&'static str>,
    fields: Vec<(&'static str, u64)>,
}

#[pymethods]
impl Message {
    /// Its fields by their names in the specification.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        for (name, value) in &self.fields {
            fields.set_item(name, value)?;
        }
        Ok(fields)
    }

    fn __repr__(&self) -> String {
        let (position, bytes, kind) = (self.position, self.bytes, &self.kind);
        format!("Message(position={position}, bytes={bytes}, kind='{kind}')")
    }
}

/// The messages of a trace, in their order.
#[pyclass(module = "hartrace")]
pub(crate) struct Messages(Feed<Message>);

impl Messages {
    pub(crate) fn new(opened: &Arc<Opened>) -> std::io::Result<Messages> {
        let opened = Arc::clone(opened);
        let feed = Feed::start(move |out| {
            opened.explain(&mut |explained| out.push(message(explained)));
            Ok(())
        });
        Ok(Messages(feed?))
    }
}

fn message(explained: &Explained) -> Message {
    let source = explained.source;
    let source = source.and_then(|source| u32::try_from(source).ok());
    let fields = explained.fields.iter().filter(|field| !field.in_name);
    Message {
        position: explained.at,
        bytes: explained.count,
        hart: explained.hart.or(source),
        kind: match explained.kind {
            PieceKind::Unit | PieceKind::Data => explained.name.as_deref().unwrap_or("group"),
            PieceKind::Idle => "idle",
            PieceKind::Bad => "unreadable",
            PieceKind::Stray => "stray",
            PieceKind::Lost => "lost",
        }
        .to_owned(),
        address: explained.address,
        time: explained.time,
        fault: explained.fault.map(|fault| fault.code),
        fields: fields.map(|field| (field.name, field.value)).collect(),
    }
}

#[pymethods]
impl Messages {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Message>> {
        self.0.next(py)
    }
}
