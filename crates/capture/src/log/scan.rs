//! Scans a log for a summary of its contents.

use super::{Damage, LineCount, LogError, LogOptions, LogReader, LogSummary, RowReader};
use crate::detect::Kind;

/// What is in a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFacts {
    /// Its lines.
    pub lines: u64,
    /// Instructions, traps, signals.
    pub summary: LogSummary,
    /// Lines that could not be read.
    pub damage: Damage,
    /// It was read as steps; otherwise there are only rows.
    pub steps: bool,
    /// The modes are from the log.
    pub modes: bool,
}

impl LogFacts {
    /// Nothing could be read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let summary = &self.summary;
        summary.instructions + summary.rows + summary.all_traps() == 0
    }
}

/// Reads a log for its [`LogFacts`]: as steps, or as rows where it has no
/// instructions and there is no program.
pub struct LogScan<'a> {
    reader: Reader<'a>,
    lines: LineCount,
    facts: LogFacts,
}

/// Either kind of reading. One at a time, so that their sizes do not matter.
#[allow(clippy::large_enum_variant)]
enum Reader<'a> {
    Steps(LogReader<'a>),
    Rows(RowReader),
}

impl<'a> LogScan<'a> {
    /// At the start of a log of this kind.
    ///
    /// # Errors
    ///
    /// A kind that is no log.
    pub fn new(kind: Kind, options: &LogOptions<'a>) -> Result<LogScan<'a>, LogError> {
        let reader = match RowReader::new(kind, options) {
            Some(rows) if options.image.is_none() => Reader::Rows(rows),
            _ => Reader::Steps(LogReader::new(kind, options)?),
        };
        let facts = LogFacts {
            steps: matches!(reader, Reader::Steps(_)),
            modes: matches!(kind, Kind::IngressCsv | Kind::Wave(_)),
            ..LogFacts::default()
        };
        Ok(LogScan {
            reader,
            lines: LineCount::default(),
            facts,
        })
    }

    /// Reads on.
    pub fn feed(&mut self, chunk: &[u8]) {
        self.lines.feed(chunk);
        let LogFacts {
            summary, damage, ..
        } = &mut self.facts;
        let note = &mut |error| damage.add(error);
        match &mut self.reader {
            Reader::Steps(reader) => reader.feed(chunk, summary, note),
            Reader::Rows(reader) => reader.feed(chunk, summary, note),
        }
    }

    /// Nothing follows.
    #[must_use]
    pub fn finish(mut self) -> LogFacts {
        let LogFacts {
            summary, damage, ..
        } = &mut self.facts;
        let note = &mut |error| damage.add(error);
        match &mut self.reader {
            Reader::Steps(reader) => {
                reader.finish(summary, note);
                self.facts.modes = reader.has_modes();
            }
            Reader::Rows(reader) => reader.finish(summary, note),
        }
        let edges = match &self.reader {
            Reader::Steps(reader) => reader.edges(),
            Reader::Rows(reader) => reader.edges(),
        };
        self.facts.lines = edges.unwrap_or(self.lines.count());
        self.facts
    }
}
