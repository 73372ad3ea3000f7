//! Writes snapshots to a file.

use hartrace_ctr::{Control, Snapshot, SnapshotSink, Version, dump};

/// Bytes gathered before they are handed on.
const BUFFER: usize = 1 << 16;

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RecordsWritten {
    /// How many snapshots.
    pub snapshots: u64,
    /// Their records.
    pub records: u64,
    /// Version, depth and control of the last snapshot.
    pub last: Option<(Version, u16, Control)>,
}

/// Writes snapshots as [`hartrace_ctr::dump`] reads them; `put` takes the bytes.
pub struct RecordWriter<F> {
    put: F,
    buffer: Vec<u8>,
    written: RecordsWritten,
}

impl<F: FnMut(&[u8])> RecordWriter<F> {
    /// At the start of a file.
    pub fn new(put: F) -> RecordWriter<F> {
        let mut buffer = Vec::with_capacity(2 * BUFFER);
        dump::write_start(&mut buffer);
        RecordWriter {
            put,
            buffer,
            written: RecordsWritten::default(),
        }
    }

    fn flush(&mut self) {
        (self.put)(&self.buffer);
        self.buffer.clear();
    }

    /// No more snapshots; what was written.
    pub fn done(mut self) -> RecordsWritten {
        self.flush();
        self.written
    }
}

impl<F: FnMut(&[u8])> SnapshotSink for RecordWriter<F> {
    fn snapshot(&mut self, snapshot: &Snapshot) {
        dump::write_snapshot(snapshot, &mut self.buffer);
        self.written.snapshots += 1;
        self.written.records += snapshot.records().count() as u64;
        self.written.last = Some((snapshot.version, snapshot.depth, snapshot.fields()));
        if self.buffer.len() >= BUFFER {
            self.flush();
        }
    }
}
