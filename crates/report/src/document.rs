//! The document: all data of a page.

use crate::run::Run;
use serde::Serialize;

/// What a page shows: one trace, or two side by side.
#[derive(Clone, Debug, Serialize)]
pub struct Document {
    schema: &'static str,
    version: u32,
    tool: &'static str,
    /// The page asks a server for what is not here.
    live: bool,
    runs: Vec<Run>,
    compare: Option<Comparison>,
}

/// The differences between two runs.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Functions by name, the largest change first.
    pub functions: Vec<Change>,
    /// Where the runs first differ, in words.
    pub first_difference: Option<String>,
}

/// A function in both runs.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// Its name.
    pub name: String,
    /// Its own instructions in the first run.
    pub before: u64,
    /// The same in the second.
    pub after: u64,
}

impl Document {
    /// Of these runs; of two the first is the baseline.
    #[must_use]
    pub fn new(runs: Vec<Run>, compare: Option<Comparison>) -> Document {
        Document {
            schema: "hartrace-report",
            version: 1,
            tool: concat!("hartrace ", env!("CARGO_PKG_VERSION")),
            live: false,
            runs,
            compare,
        }
    }

    /// Of a run whose details a server has.
    #[must_use]
    pub(crate) fn live(run: Run) -> Document {
        Document {
            live: true,
            ..Document::new(vec![run], None)
        }
    }

    /// As JSON.
    #[must_use]
    pub fn json(&self) -> Vec<u8> {
        // Numbers, strings and lists: nothing that could fail.
        serde_json::to_vec(self).unwrap_or_default()
    }
}
