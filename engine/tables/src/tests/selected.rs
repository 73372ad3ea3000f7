//! Selections of rows.

use super::{Rows, naive, record, whole};
use crate::{Completer, Projection, Selection, Table};
use arrow_array::cast::AsArray as _;
use arrow_array::types::UInt32Type;
use std::ops::Range;

fn select(opened: &crate::Opened, selection: &Selection) -> Vec<String> {
    let mut rows = Rows::default();
    opened.select(selection, &mut rows, &mut |_| ()).unwrap();
    let mut all = rows.rows.into_values();
    let first = all.next().unwrap_or_default();
    assert!(all.next().is_none(), "one table, one hart");
    first
}

/// The first difference is shown, not everything.
fn assert_equal(rows: &[String], others: &[String], what: &str) {
    for (at, (row, other)) in rows.iter().zip(others).enumerate() {
        assert_eq!(row, other, "{what}: row {at}");
    }
    assert_eq!(rows.len(), others.len(), "{what}");
}

/// Selected rows are those of the whole table within the limits: the first time, when the index
/// is made, and the second, when it is used.
#[test]
fn selected_rows_are_those_of_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let stamps = "[ntrace]\nmode = \"btm\"\ntimestamps = true\nsync_max = 4\n";
    let source = record(folder.path(), "sort-rv64gc", "ntrace", stamps, 600_000);
    let opened = source.open("test").unwrap();
    assert!(opened.replay.size() > 1 << 17, "{}", opened.replay.size());
    for (table, time) in [
        (Table::Calls, "begin_time"),
        (Table::Runs, "time"),
        (Table::Gaps, "time"),
    ] {
        let (all, index) = whole(&opened, &[table], &[]);
        let all = all.rows.get(&(table, 0)).cloned().unwrap_or_default();
        assert!(table == Table::Gaps || all.len() > 100);
        let within = |column: &str, range: Range<u64>| -> Vec<String> {
            let rows = all.iter().filter(|row| {
                let value = naive::value(row, column).parse::<u64>();
                value.is_ok_and(|value| range.contains(&value))
            });
            rows.cloned().collect()
        };
        for range in [0..1000, 300_000..301_000, 500_000..500_000, 0..u64::MAX] {
            let begins = Selection {
                begin: Some(range.clone()),
                ..Selection::all(table, Projection::ALL)
            };
            let times = Selection {
                time: Some(range.clone()),
                ..Selection::all(table, Projection::ALL)
            };
            for _ in 0..2 {
                let what = format!("{table} {range:?}");
                assert_equal(
                    &select(&opened, &begins),
                    &within("begin", range.clone()),
                    &what,
                );
                assert_equal(
                    &select(&opened, &times),
                    &within(time, range.clone()),
                    &what,
                );
            }
            if range.end < u64::MAX {
                let size = opened.replay.size();
                let parts = begins.parts(&index).into_iter().map(|(from, until)| {
                    let from = from.map_or(0, |stop| stop.checkpoint.position);
                    until.unwrap_or(size) - from
                });
                let read: u64 = parts.sum();
                assert!(read <= size / 2, "{table} {range:?}: {read} of {size}");
            }
        }
        let other = Selection {
            hart: Some(7),
            ..Selection::all(table, Projection::ALL)
        };
        assert!(select(&opened, &other).is_empty());
    }
    // The column of a limit need not be wanted.
    let count = Selection {
        begin: Some(0..1000),
        ..Selection::all(Table::Calls, Projection::NONE)
    };
    let all = Selection {
        projection: Projection::ALL,
        ..count.clone()
    };
    assert_eq!(select(&opened, &count).len(), select(&opened, &all).len());
    let wrong = Selection {
        begin: Some(0..1000),
        ..Selection::all(Table::Messages, Projection::ALL)
    };
    let refused = opened.select(&wrong, &mut Rows::default(), &mut |_| ());
    assert!(refused.unwrap_err().to_string().contains("HT0130"));
}

/// Rows with the trace and the hart, in the order of a schema.
#[test]
fn completed_rows() {
    let table = Table::Calls;
    let full = table.full_schema();
    assert_eq!(full.field(0).name(), "trace");
    assert_eq!(full.fields().len(), table.columns().len() + 2);
    assert_eq!(Table::Lines.full_schema().field(1).name(), "file");
    let columns: Vec<usize> = ["depth", "hart", "trace"]
        .map(|name| full.index_of(name).unwrap())
        .to_vec();
    let schema = std::sync::Arc::new(full.project(&columns).unwrap());
    let batch = table.schema(Projection::NONE.with(table.column("depth").unwrap()));
    let depth = std::sync::Arc::new(arrow_array::UInt32Array::from(vec![3, 4]));
    let batch = arrow_array::RecordBatch::try_new(batch, vec![depth]).unwrap();
    let rows = Completer::new(schema, "run.ntrace")
        .complete(5, &batch)
        .unwrap();
    let numbers = |at: usize| {
        rows.column(at)
            .as_primitive::<UInt32Type>()
            .values()
            .to_vec()
    };
    assert_eq!((numbers(0), numbers(1)), (vec![3, 4], vec![5, 5]));
    assert_eq!(super::cell(rows.column(2), 1), "run.ntrace");
    let empty = arrow_array::RecordBatch::new_empty(table.schema(Projection::NONE));
    let short = Completer::new(table.full_schema(), "x").complete(0, &empty);
    assert!(short.is_err(), "columns are missing");
}
