//! Some rows of one table: those of a hart, of a part of the run, or of a time.

use crate::collect::{Take, Wanted};
use crate::error::Error;
use crate::index::{Index, Stop, Stretch};
use crate::source::Opened;
use crate::table::{Projection, Table};
use crate::zone::Zone;
use arrow_array::cast::AsArray as _;
use arrow_array::types::UInt64Type;
use arrow_array::{BooleanArray, RecordBatch};
use hartrace_print::diagnostic::{Code, Diagnostic};
use std::ops::{ControlFlow, Range};

/// A trace that is smaller is not worth an index.
const INDEXED: u64 = 1 << 17;

/// Which rows of a table are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The table.
    pub table: Table,
    /// Its columns.
    pub projection: Projection,
    /// Only those of this hart.
    pub hart: Option<u32>,
    /// Only those that begin in this range, in instructions of their hart.
    pub begin: Option<Range<u64>>,
    /// Only those whose begin is known to be in this range of times.
    pub time: Option<Range<u64>>,
}

impl Selection {
    /// All rows.
    #[must_use]
    pub const fn all(table: Table, projection: Projection) -> Selection {
        Selection {
            table,
            projection,
            hart: None,
            begin: None,
            time: None,
        }
    }

    /// The columns with which rows are compared.
    fn limits(&self) -> impl Iterator<Item = (&'static str, &Range<u64>)> {
        let time = match self.table {
            Table::Calls | Table::Traps => "begin_time",
            _ => "time",
        };
        let begin = self.begin.iter().map(|range| ("begin", range));
        begin.chain(self.time.iter().map(move |range| (time, range)))
    }

    /// The first column of a limit that the table does not have.
    #[must_use]
    pub fn missing(&self) -> Option<&'static str> {
        let mut columns = self.limits().map(|(column, _)| column);
        columns.find(|column| self.table.column(column).is_none())
    }

    /// What is read: the wanted columns, and those of the limits.
    fn wanted(&self) -> Wanted {
        let columns = self.limits();
        let columns = columns.filter_map(|(column, _)| self.table.column(column));
        Wanted::only(self.table, columns.fold(self.projection, Projection::with))
    }

    /// Whether a stretch with this zone may have wanted rows.
    fn allows(&self, zone: &Zone) -> bool {
        let of = match self.table {
            Table::Calls | Table::Traps => self.table,
            _ => Table::Runs,
        };
        let last = |range: &Range<u64>| range.end.saturating_sub(1);
        zone.table == of
            && self.hart.is_none_or(|hart| hart == zone.hart)
            && (self.begin.iter()).all(|range| zone.begin.meet(range.start, last(range)))
            && (self.time.iter()).all(|range| zone.begin_time.meet(range.start, last(range)))
    }

    /// The parts of a trace that may have wanted rows.
    pub(crate) fn parts<'i>(&self, index: &'i Index) -> Vec<(Option<&'i Stop>, Option<u64>)> {
        let mut parts: Vec<(Option<&Stop>, Option<u64>)> = Vec::new();
        let is_joined = self.table.can_join(self.projection);
        let mut goes_on = false;
        for (at, stretch) in index.stretches.iter().enumerate() {
            let wanted = stretch.zones.iter().any(|zone| self.allows(zone));
            let is_last = at + 1 == index.stretches.len();
            let until = (!is_last).then_some(stretch.end);
            match parts.last_mut().filter(|_| goes_on && wanted) {
                Some(part) => part.1 = until,
                None if wanted => parts.push((stop_of(stretch), until)),
                None => {}
            }
            goes_on = wanted && is_joined;
        }
        parts
    }
}

fn stop_of(stretch: &Stretch) -> Option<&Stop> {
    stretch.stop.as_ref()
}

impl Opened {
    /// Gives the selected rows of a table. Parts of the trace of which an index says that they
    /// have none are not read; a large trace without an index gets one.
    ///
    /// # Errors
    ///
    /// Limits of columns that the table does not have; otherwise as [`Opened::read`].
    pub fn select(
        &self,
        selection: &Selection,
        out: &mut dyn Take,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), Error> {
        if let Some(column) = selection.missing() {
            return Err(no_column(selection.table, column));
        }
        let wanted = selection.wanted();
        let timed = wanted.has_time();
        let is_narrow = selection.begin.is_some() || selection.time.is_some();
        let is_indexed = selection.table.is_of_flow()
            && self.replay.size() >= INDEXED
            && self.can_start_anywhere();
        let mut rows = Selected::new(selection, out);
        if is_indexed
            && is_narrow
            && let Some(index) = self.known_index(timed)
        {
            for (from, until) in selection.parts(&index) {
                self.read_part((from, until), &wanted, &mut rows)?;
                if rows.ended {
                    return Ok(());
                }
            }
            return Ok(());
        }
        let read = self.read(&wanted, &mut rows, progress)?;
        if let Some(index) = read.index.filter(|_| is_indexed && is_narrow) {
            self.keep_index(&index, timed);
        }
        Ok(())
    }
}

fn no_column(table: Table, column: &str) -> Error {
    let message = format!("the table `{table}` has no column `{column}` to select rows by");
    Diagnostic::new(Code::BadQuery, message)
        .help("docs/tables.md lists the columns")
        .into()
}

/// Passes on the rows that are selected, with the wanted columns.
struct Selected<'s> {
    selection: &'s Selection,
    out: &'s mut dyn Take,
    ended: bool,
}

impl<'s> Selected<'s> {
    fn new(selection: &'s Selection, out: &'s mut dyn Take) -> Selected<'s> {
        Selected {
            selection,
            out,
            ended: false,
        }
    }

    /// The wanted rows and columns; `None` if there are none.
    fn of(&self, mut batch: RecordBatch) -> Option<RecordBatch> {
        for (column, range) in self.selection.limits() {
            let values = batch.column_by_name(column)?;
            let values = values.as_primitive_opt::<UInt64Type>()?;
            let keep: BooleanArray = values
                .iter()
                .map(|value| value.map(|value| range.contains(&value)))
                .collect();
            if keep.true_count() == keep.len() {
                continue;
            }
            batch = arrow_select::filter::filter_record_batch(&batch, &keep).ok()?;
        }
        let table = self.selection.table;
        let own = table.schema(self.selection.projection);
        let places = own.fields().iter();
        let places: Option<Vec<usize>> = places
            .map(|field| batch.schema_ref().index_of(field.name()).ok())
            .collect();
        let batch = batch.project(&places?).ok()?;
        (batch.num_rows() > 0).then_some(batch)
    }

    fn note<C>(&mut self, flow: ControlFlow<(), C>) -> ControlFlow<(), C> {
        self.ended |= flow.is_break();
        flow
    }
}

impl Take for Selected<'_> {
    fn batch(&mut self, table: Table, hart: u32, batch: RecordBatch) -> ControlFlow<()> {
        if self.selection.hart.is_some_and(|only| only != hart) {
            return ControlFlow::Continue(());
        }
        // A batch has the columns that were asked for.
        let Some(batch) = self.of(batch) else {
            return ControlFlow::Continue(());
        };
        let flow = self.out.batch(table, hart, batch);
        self.note(flow)
    }

    fn sync(&mut self) -> ControlFlow<(), bool> {
        let flow = self.out.sync();
        self.note(flow)
    }

    fn cut(&mut self) -> ControlFlow<()> {
        let flow = self.out.cut();
        self.note(flow)
    }
}
