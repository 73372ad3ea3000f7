//! The summary of a file of snapshots.

use super::SnapshotError;
use hartrace_ctr::{Control, Snapshot, Version};
use hartrace_flow::HartId;
use std::collections::BTreeSet;

/// Errors that are remembered.
const FIRST: usize = 5;

/// What is in a file of snapshots.
#[derive(Clone, Debug, Default)]
pub struct RecordSummary {
    /// Snapshots.
    pub snapshots: u64,
    /// Valid records in all of them.
    pub records: u64,
    /// Whose they are.
    pub harts: BTreeSet<HartId>,
    /// Depths that were chosen.
    pub depths: BTreeSet<u16>,
    /// The version of the first snapshot, and its control fields.
    pub first: Option<(Version, Control)>,
    /// Others have another version or other fields.
    pub mixed: bool,
    /// Errors there were.
    pub errors: u64,
    /// The first of them.
    pub first_errors: Vec<SnapshotError>,
}

impl RecordSummary {
    /// Adds a snapshot, or an error.
    pub fn add(&mut self, snapshot: Result<&Snapshot, SnapshotError>) {
        let snapshot = match snapshot {
            Ok(snapshot) => snapshot,
            Err(error) => return self.error(error),
        };
        self.snapshots += 1;
        self.records += snapshot.records().count() as u64;
        self.harts.insert(snapshot.hart);
        self.depths.insert(snapshot.depth);
        let now = (snapshot.version, snapshot.fields());
        self.mixed |= *self.first.get_or_insert(now) != now;
    }

    /// Adds an error.
    pub fn error(&mut self, error: SnapshotError) {
        self.errors += 1;
        if self.first_errors.len() < FIRST {
            self.first_errors.push(error);
        }
    }

    /// Errors that are not among the first.
    #[must_use]
    pub fn more_errors(&self) -> u64 {
        self.errors - self.first_errors.len() as u64
    }
}
