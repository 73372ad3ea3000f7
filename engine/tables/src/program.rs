//! The tables of a program: functions, lines and branches.

use crate::collect::Take;
use crate::rows::{Branches, Functions, Lines};
use crate::source::Opened;
use crate::table::{Projection, Table};
use arrow_array::StringArray;
use hartrace_analyze::{Coverage, RunCount, RunCounter};
use std::ops::ControlFlow;
use std::sync::Arc;

fn no_names() -> Arc<StringArray> {
    Arc::new(StringArray::from(Vec::<&str>::new()))
}

/// The functions with symbols.
pub(crate) fn functions(
    opened: &Opened,
    projection: Projection,
    out: &mut dyn Take,
) -> ControlFlow<()> {
    let (places, mut rows) = (opened.places(), Functions::new(projection));
    for (_, function) in opened.functions.iter() {
        rows.function.push(Some(&function.name));
        rows.symbol.push(Some(function.symbol()));
        rows.start.push(function.start);
        rows.end.push(function.end);
        let line = places.line(function.start);
        rows.file.push(line.map(|line| line.file));
        rows.line.push(line.map(|line| line.line));
        if rows.end_row() {
            rows.take(&no_names())
                .map_or(ControlFlow::Continue(()), |b| {
                    out.batch(Table::Functions, 0, b)
                })?;
        }
    }
    rows.take(&no_names())
        .map_or(ControlFlow::Continue(()), |b| {
            out.batch(Table::Functions, 0, b)
        })
}

/// The lines of all code.
pub(crate) fn lines(
    opened: &Opened,
    projection: Projection,
    out: &mut dyn Take,
) -> ControlFlow<()> {
    let (places, mut rows) = (opened.places(), Lines::new(projection));
    let ranges = opened.functions.ranges();
    let (low, high) = ranges.fold((u64::MAX, 0), |(low, high), (start, end, _)| {
        (low.min(start), high.max(end))
    });
    for &(start, end, line) in places.line_ranges(low, high).iter() {
        rows.file.push(Some(line.file));
        rows.line.push(line.line);
        rows.start.push(start);
        rows.end.push(end);
        let function = opened.functions.of(start);
        let function = function.map(|id| opened.functions.get(id).name.as_str());
        rows.function.push(function);
        if rows.end_row() {
            rows.take(&no_names())
                .map_or(ControlFlow::Continue(()), |b| out.batch(Table::Lines, 0, b))?;
        }
    }
    rows.take(&no_names())
        .map_or(ControlFlow::Continue(()), |b| out.batch(Table::Lines, 0, b))
}

/// The runs of a whole trace, counted.
pub(crate) fn count_runs(opened: &Opened) -> Result<Vec<RunCount>, crate::Error> {
    let mut counter = RunCounter::new(&opened.image);
    opened.events(None, &mut counter, &mut |_| ())?;
    Ok(counter.take())
}

/// The branches of a program, with the outcomes in runs that were counted.
pub(crate) fn branches(
    opened: &Opened,
    counts: &[RunCount],
    projection: Projection,
    out: &mut dyn Take,
) -> ControlFlow<()> {
    let (places, mut rows) = (opened.places(), Branches::new(projection));
    let functions = &opened.functions;
    let coverage = Coverage::new(&opened.image, functions, &places, counts);
    for (&address, count) in &coverage.branches {
        rows.address.push(address);
        let function = functions.of(address).map(|id| functions.get(id));
        rows.function.push(function.map(|f| f.name.as_str()));
        let line = places.line(address);
        rows.file.push(line.map(|line| line.file));
        rows.line.push(line.map(|line| line.line));
        rows.taken.push(count.taken);
        rows.not_taken.push(count.not_taken);
        if rows.end_row() {
            rows.take(&no_names())
                .map_or(ControlFlow::Continue(()), |b| {
                    out.batch(Table::Branches, 0, b)
                })?;
        }
    }
    rows.take(&no_names())
        .map_or(ControlFlow::Continue(()), |b| {
            out.batch(Table::Branches, 0, b)
        })
}
