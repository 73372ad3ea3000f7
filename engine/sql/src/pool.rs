//! Traces that are open.

use crate::copies;
use hartrace_export::talk;
use hartrace_tables::{Error, Opened, TraceSource};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Traces that are kept open. A query over more of them opens each when it comes to it.
const MOST: usize = 64;

/// Opens traces, and keeps some of them for the next query.
#[derive(Default)]
pub(crate) struct Pool {
    open: Mutex<HashMap<(PathBuf, String), Arc<Opened>>>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pool")
    }
}

impl Pool {
    /// Whether so many traces can be kept open.
    pub(crate) const fn has_room(traces: usize) -> bool {
        traces <= MOST
    }

    /// A trace, open.
    pub(crate) fn open(&self, source: &TraceSource) -> Result<Arc<Opened>, Error> {
        let given = format!("{:?} {}", source.given, source.name);
        let key = (source.path.clone(), given);
        if let Some(opened) = self.lock().get(&key) {
            return Ok(Arc::clone(opened));
        }
        let opened = Arc::new(copies::local(source)?.open("sql")?);
        opened.warnings.iter().for_each(talk::warning);
        let mut open = self.lock();
        if open.len() < MOST {
            open.insert(key, Arc::clone(&opened));
        }
        Ok(opened)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(PathBuf, String), Arc<Opened>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
