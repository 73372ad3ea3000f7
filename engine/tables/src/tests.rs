//! Tables of traces against tables of steps, and parts of traces against the whole.

mod logs;
mod naive;
mod selected;

use crate::collect::{Feed, Purpose};
use crate::{Given, Index, Opened, Span, Table, Take, TraceSource, VERSION, VERSION_KEY, Wanted};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{ArrowDictionaryKeyType, Int32Type, UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{Array, DictionaryArray, RecordBatch};
use arrow_schema::DataType;
use hartrace_engine_testkit::{self as testkit, elf, run};
use hartrace_flow::{Effects, HartId, Observer, Step, StepEvents, Wants};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

/// Writes a trace of a program with these settings.
fn record(folder: &Path, name: &str, format: &str, config: &str, limit: u64) -> TraceSource {
    let path = folder.join(format!("{name}.{format}"));
    testkit::record(&path, name, config, limit);
    TraceSource::new(&path, &Given::default())
}

/// The rows of tables as text, by table and hart.
#[derive(Default)]
struct Rows {
    rows: BTreeMap<(Table, u32), Vec<String>>,
    /// Columns that are left out.
    without: &'static [&'static str],
    /// Rows after which no more are wanted.
    limit: Option<usize>,
    syncs: usize,
}

fn name_at<K: ArrowDictionaryKeyType>(array: &DictionaryArray<K>, row: usize) -> String {
    let names = array.values().as_string::<i32>();
    names.value(array.key(row).unwrap()).to_owned()
}

fn cell(array: &dyn Array, row: usize) -> String {
    if array.is_null(row) {
        return "-".to_owned();
    }
    match array.data_type() {
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).to_string(),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).to_string(),
        DataType::UInt8 => array.as_primitive::<UInt8Type>().value(row).to_string(),
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Dictionary(..) => name_at(array.as_dictionary::<Int32Type>(), row),
        other => panic!("{other}"),
    }
}

impl Take for Rows {
    fn batch(&mut self, table: Table, hart: u32, batch: RecordBatch) -> ControlFlow<()> {
        assert_eq!(batch.schema().metadata()[VERSION_KEY], VERSION);
        let rows = self.rows.entry((table, hart)).or_default();
        for row in 0..batch.num_rows() {
            let schema = batch.schema();
            let columns = schema.fields().iter().zip(batch.columns());
            let columns = columns.filter(|(f, _)| !self.without.contains(&f.name().as_str()));
            let cells: Vec<String> = columns
                .map(|(field, array)| format!("{}={}", field.name(), cell(array, row)))
                .collect();
            rows.push(cells.join(" "));
        }
        match self.limit.is_some_and(|limit| rows.len() >= limit) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn sync(&mut self) -> ControlFlow<(), bool> {
        self.syncs += 1;
        ControlFlow::Continue(self.syncs.is_multiple_of(2))
    }

    fn cut(&mut self) -> ControlFlow<()> {
        assert!(self.syncs.is_multiple_of(2));
        ControlFlow::Continue(())
    }
}

const FLOW: [Table; 4] = [Table::Runs, Table::Calls, Table::Traps, Table::Gaps];

fn whole(opened: &Opened, tables: &[Table], without: &'static [&'static str]) -> (Rows, Index) {
    let mut rows = Rows {
        without,
        ..Rows::default()
    };
    let wanted = Wanted::all(tables.iter().copied());
    let read = opened.read(&wanted, &mut rows, &mut |_| ()).unwrap();
    assert_eq!(read.decoded.gaps, 0);
    (rows, read.index.unwrap())
}

/// Tables that are made of steps, without any trace.
fn of_steps(opened: &Opened, name: &str, limit: u64, without: &'static [&'static str]) -> Rows {
    let mut rows = Rows {
        without,
        ..Rows::default()
    };
    let purpose = Purpose::default();
    let code = (&opened.image, &opened.functions);
    let feed = Feed::new(code, &Wanted::all(FLOW), purpose, &mut rows);
    let mut events = StepEvents::new(opened.isa, feed);
    run(name, limit, &mut events);
    drop(events.into_inner().finish(0));
    rows
}

/// A row of runs, as if a trap had ended it.
fn trapped(row: &str) -> String {
    let (before, rest) = row.split_once("exit=").unwrap();
    let (_, after) = rest.split_once(" begin=").unwrap();
    format!("{before}exit=trap next=- begin={after}")
}

/// Differences are shown, not everything.
fn assert_same(one: &Rows, other: &Rows, what: &str) {
    let keys = |rows: &Rows| -> Vec<(Table, u32)> {
        let filled = rows.rows.iter().filter(|(_, rows)| !rows.is_empty());
        filled.map(|(key, _)| *key).collect()
    };
    assert_eq!(keys(one), keys(other), "{what}");
    for (key, rows) in &one.rows {
        let others = &other.rows[key];
        for (at, (row, other)) in rows.iter().zip(others).enumerate() {
            let row = match other.contains("exit=trap next=") {
                // Where a jump leads to whose target is interrupted, a trace need not report.
                true => &trapped(row),
                false => row,
            };
            assert_eq!(row, other, "{what}: {key:?}, row {at}");
        }
        assert_eq!(rows.len(), others.len(), "{what}: {key:?}");
    }
}

/// What a trace does not have: the times of steps; the place of a row in it; modes.
const UNLIKE: &[&str] = &[
    "time",
    "begin_time",
    "end_time",
    "cycles",
    "position",
    "value",
    "context",
    "privilege",
];

/// N-Trace does not report the codes of traps either.
const UNLIKE_NTRACE: &[&str] = &[
    "time",
    "begin_time",
    "end_time",
    "cycles",
    "position",
    "value",
    "context",
    "privilege",
    "code",
    "cause",
];

/// Whatever the format, the rows are those of the steps of the hart.
#[test]
fn tables_of_traces_are_those_of_steps() {
    let folder = tempfile::tempdir().unwrap();
    for (name, limit) in [
        ("sort-rv64gc", 60_000),
        ("recursion-rv32gc", 30_000),
        ("timer-rv64gc", 60_000),
        ("longjmp-rv64gc", 30_000),
        ("scheduler-rv32gc", 60_000),
        ("exceptions-rv64gc", 30_000),
    ] {
        for (format, config) in [
            ("ntrace", ""),
            (
                "ntrace",
                "[ntrace]\nmode = \"btm\"\nimplicit_return = \"full\"",
            ),
            ("etrace", ""),
            ("tandem", ""),
        ] {
            if (name, format) == ("scheduler-rv32gc", "etrace") {
                continue; // an interrupt hides where a return leads to: the call ends later
            }
            let source = record(folder.path(), name, format, config, limit);
            let opened = source.open("test").unwrap();
            let unlike = match format {
                "ntrace" => UNLIKE_NTRACE,
                _ => UNLIKE,
            };
            let (rows, _) = whole(&opened, &FLOW, unlike);
            let steps = of_steps(&opened, name, limit, unlike);
            assert!(steps.rows[&(Table::Calls, 0)].len() > 10);
            assert_same(&steps, &rows, &format!("{name} {format} {config}"));
        }
    }
}

/// The rows of all parts, one after the other, are those of the whole trace: also with times,
/// with threads and traps that cross the ends of parts, and with two harts.
#[test]
fn parts_are_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let stamps = "[ntrace]\nmode = \"btm\"\ntimestamps = true\nsync_max = 4\n";
    for (name, format, config, limit) in [
        ("sort-rv64gc", "ntrace", "[ntrace]\nmode = \"btm\"", 300_000),
        ("sort-rv32gc", "etrace", "", 600_000),
        ("scheduler-rv64gc", "ntrace", stamps, 2_000_000),
        ("timer-rv64gc", "ntrace", stamps, 400_000),
    ] {
        let source = record(folder.path(), name, format, config, limit);
        let opened = source.open("test").unwrap();
        let (all, index) = whole(&opened, &FLOW, &[]);
        assert!(
            index.stretches.len() > 1,
            "{name}: {}",
            index.stretches.len()
        );
        assert_eq!(all.syncs, index.stretches.len() - 1);
        let mut parts = Rows::default();
        for stretch in &index.stretches {
            let is_last = stretch.end == opened.replay.size();
            let span = Span {
                source: source.clone(),
                from: stretch.stop.clone(),
                until: (!is_last).then_some(stretch.end),
            };
            // As another process gets it.
            let sent = serde_json::to_string(&span).unwrap();
            let span: Span = serde_json::from_str(&sent).unwrap();
            let opened = span.source.open("test").unwrap();
            let before: BTreeMap<_, usize> = parts
                .rows
                .iter()
                .map(|(key, rows)| (*key, rows.len()))
                .collect();
            opened
                .read_part(
                    (span.from.as_ref(), span.until),
                    &Wanted::all(FLOW),
                    &mut parts,
                )
                .unwrap();
            for zone in &stretch.zones {
                let key = (zone.table, zone.hart);
                let rows = parts.rows.get(&key).map_or(&[][..], Vec::as_slice);
                let rows = &rows[before.get(&key).copied().unwrap_or(0).min(rows.len())..];
                check_zone(zone, &index, rows);
            }
        }
        assert_same(&all, &parts, name);
        let bytes = index.to_bytes(b"key");
        assert_eq!(Index::from_bytes(&bytes, b"key").as_ref(), Some(&index));
        assert_eq!(Index::from_bytes(&bytes, b"other"), None);
        for cut in [0, 1, bytes.len() / 2, bytes.len() - 1] {
            assert_eq!(Index::from_bytes(&bytes[..cut], b"key"), None);
        }
    }
}

/// What an index says of a stretch is true of its rows.
fn check_zone(zone: &crate::Zone, index: &Index, rows: &[String]) {
    if let Some(count) = zone.rows {
        assert_eq!(count, rows.len() as u64);
    }
    for row in rows {
        let columns: &[&str] = match zone.table {
            Table::Runs => &["begin", "time"],
            _ => &["begin", "end", "begin_time", "end_time"],
        };
        for column in columns {
            let Ok(value) = naive::value(row, column).parse() else {
                continue;
            };
            let within = match *column {
                "begin" => zone.begin.meet(value, value),
                "end" => zone.end.meet(value, value),
                "end_time" => zone.end_time.meet(value, value),
                _ => zone.begin_time.meet(value, value),
            };
            assert!(within, "{column} of {row}: {zone:?}");
        }
        let context = naive::value(row, "context").parse().ok();
        assert!(
            zone.contexts.contains(&context),
            "{row}: {:?}",
            zone.contexts
        );
        if zone.table == Table::Calls {
            let function = naive::function(row);
            let key = index.function(function).unwrap();
            assert!(zone.functions.binary_search(&key).is_ok(), "{row}");
        }
    }
}

/// A row that began long ago does not hide where the others begin.
#[test]
fn begins_of_long_ago_are_known_one_by_one() {
    let mut begins = crate::Begins::NONE;
    (1000..1100).for_each(|begin| begins.add(begin));
    [500, 3].into_iter().for_each(|begin| begins.add(begin));
    for (low, high, met) in [
        (0, 2, false),
        (3, 3, true),
        (4, 499, false),
        (500, 500, true),
        (501, 999, false),
        (1000, 1000, true),
        (1099, 2000, true),
        (1100, u64::MAX, false),
    ] {
        assert_eq!(begins.meet(low, high), met, "{low} to {high}");
    }
    assert_eq!(begins.bounds(), crate::Bounds { min: 3, max: 1099 });
}

/// Who has enough rows gets no more, and no index.
#[test]
fn reading_ends_when_it_is_enough() {
    let folder = tempfile::tempdir().unwrap();
    let source = record(folder.path(), "sort-rv64gc", "ntrace", "", 300_000);
    let opened = source.open("test").unwrap();
    let mut rows = Rows {
        limit: Some(1),
        ..Rows::default()
    };
    let wanted = Wanted::all([Table::Runs]);
    let read = opened.read(&wanted, &mut rows, &mut |_| ()).unwrap();
    assert!(read.index.is_none());
    assert!(read.decoded.instructions < 250_000);
}

/// The tables of the program, and the counts of its branches.
#[test]
fn functions_lines_and_branches() {
    let folder = tempfile::tempdir().unwrap();
    let source = record(folder.path(), "sort-rv64gc", "etrace", "", 50_000);
    let opened = source.open("test").unwrap();
    let tables = [Table::Functions, Table::Lines, Table::Branches];
    let mut alone = Rows::default();
    opened
        .read(&Wanted::all(tables), &mut alone, &mut |_| ())
        .unwrap();
    let all: Vec<Table> = Table::ALL.to_vec();
    let (with_all, _) = whole(&opened, &all, &[]);
    for table in tables {
        let rows = &alone.rows[&(table, 0)];
        assert!(rows.len() > 10, "{table}");
        assert_eq!(rows, &with_all.rows[&(table, 0)], "{table}");
    }
    let mut naive: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    struct Branches<'a>(&'a mut BTreeMap<u64, (u64, u64)>, hartrace_isa::Isa);
    impl Observer for Branches<'_> {
        const WANTS: Wants = Wants::STEPS;
        fn step(&mut self, _: HartId, step: &Step, _: &Effects) {
            if let Step::Insn(insn) = step
                && let hartrace_isa::Flow::Branch { .. } =
                    hartrace_isa::Flow::of_retired(insn.bits, self.1)
            {
                let count = self.0.entry(insn.pc).or_default();
                *(if insn.next == insn.end() {
                    &mut count.1
                } else {
                    &mut count.0
                }) += 1;
            }
        }
    }
    run("sort-rv64gc", 50_000, &mut Branches(&mut naive, opened.isa));
    let mut found = 0;
    for row in &alone.rows[&(Table::Branches, 0)] {
        let number = |column| naive::value(row, column).parse::<u64>().unwrap();
        let count = (number("taken"), number("not_taken"));
        let expected = naive.get(&number("address")).copied().unwrap_or_default();
        assert_eq!(count, expected, "{row}");
        found += u64::from(count != (0, 0));
    }
    assert_eq!(found, naive.len() as u64);
}

/// Damage is a row, and reading goes on.
#[test]
fn damage_is_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    let source = record(folder.path(), "sort-rv64gc", "ntrace", "", 300_000);
    let mut bytes = std::fs::read(&source.path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 200].fill(0xff);
    std::fs::write(&source.path, bytes).unwrap();
    let opened = source.open("test").unwrap();
    let mut rows = Rows::default();
    let read = opened
        .read(&Wanted::all(FLOW), &mut rows, &mut |_| ())
        .unwrap();
    let gaps = &rows.rows[&(Table::Gaps, 0)];
    let losses = gaps.iter().filter(|row| row.starts_with("kind=loss"));
    assert_eq!(losses.count() as u64, read.decoded.gaps);
    assert!(
        read.decoded.gaps > 0 && gaps[0].contains("code=NT"),
        "{gaps:?}"
    );
}

/// Wrong input is reported with its code.
#[test]
fn bad_input_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.ntrace");
    let refused = |path: &Path| {
        let source = TraceSource::new(path, &Given::default());
        source.open("export").err().unwrap().to_string()
    };
    assert!(refused(&path).contains("HT0001"), "{}", refused(&path));
    assert!(refused(&elf("sort-rv64gc")).contains("is not a trace"));
    let source = record(folder.path(), "sort-rv64gc", "ntrace", "", 1000);
    let alone = folder.path().join("alone.ntrace");
    std::fs::copy(&source.path, &alone).unwrap();
    assert!(
        refused(&alone).contains("no program"),
        "{}",
        refused(&alone)
    );
}

/// The tables of docs/tables.md, made from the schema. `SNAPSHOTS=overwrite` writes them.
#[test]
fn the_documentation_has_every_column() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tables.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once("<!-- columns -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end of columns -->\n").unwrap();
    let mut columns = String::new();
    for table in Table::ALL {
        columns += &format!("\n### {table}\n\n| column | type | meaning |\n|---|---|---|\n");
        for column in table.columns() {
            let data_type = match (column.data_type)() {
                DataType::UInt64 => "u64",
                DataType::UInt32 => "u32",
                DataType::UInt8 => "u8",
                DataType::Boolean => "bool",
                DataType::Dictionary(..) => "name",
                other => panic!("{other}"),
            };
            let null = if column.nullable { ", may be null" } else { "" };
            let about = column.about;
            columns += &format!("| `{}` | {data_type}{null} | {about} |\n", column.name);
        }
    }
    let made = format!("{before}<!-- columns -->\n{columns}\n<!-- end of columns -->\n{after}");
    if std::env::var_os("SNAPSHOTS").is_some_and(|value| value == "overwrite") {
        std::fs::write(&path, &made).unwrap();
    }
    assert!(
        made == std::fs::read_to_string(&path).unwrap(),
        "docs/tables.md differs from the schema: run the tests with SNAPSHOTS=overwrite"
    );
}
