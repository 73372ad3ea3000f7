//! Queries, as a user gives them.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // a test ends where anything fails

use hartrace_engine_testkit::{elf, record};
use hartrace_export::Export;
use hartrace_tables::{Given, Table, TraceSource};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder with traces, and a cache that no other test uses.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        Bench { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hartrace-sql"));
        command.args(args).current_dir(self.folder.path());
        command.env("XDG_CACHE_HOME", self.path("cache"));
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// The rows of a query as CSV, without the header, sorted.
    fn rows(&self, query: &str, args: &[&str]) -> Vec<String> {
        let all: Vec<&str> = [query, "-f", "csv"].iter().chain(args).copied().collect();
        let output = self.run(&all);
        assert!(output.status.success(), "{query}\n{}", stderr(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        let mut rows: Vec<String> = text.lines().skip(1).map(str::to_owned).collect();
        rows.sort();
        rows
    }

    /// Exports all tables of traces.
    fn export(&self, names: &[&str]) {
        let export = Export::new(&self.path("tables"), Table::ALL.to_vec()).unwrap();
        for name in names {
            let source = TraceSource {
                name: (*name).to_owned(),
                ..TraceSource::new(&self.path(name), &Given::default())
            };
            export.trace(&source, &|| false).unwrap();
        }
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The queries of the book.
fn book() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/queries.md");
    let text = fs::read_to_string(path).unwrap();
    let blocks = text.split("```sql\n").skip(1);
    let blocks = blocks.map(|block| block.split("```").next().unwrap());
    blocks.map(|block| block.trim().to_owned()).collect()
}

/// The queries of the book have the same answers on traces, on traces with an index and on an
/// export, whatever the number of threads.
#[test]
fn the_queries_of_the_book() {
    let bench = Bench::new();
    let stamps = "[ntrace]\nmode = \"btm\"\ntimestamps = true\nsync_max = 4\n";
    let name = "timer-rv64gc";
    record(&bench.path("a.ntrace"), name, stamps, u64::MAX);
    record(&bench.path("b.tandem"), name, "", 20_000);
    record(&bench.path("c.etrace"), name, "", u64::MAX);
    let data = "[etrace.data]\nenabled = true\n";
    record(&bench.path("d.etrace"), name, data, 20_000);
    record(&bench.path("e.ntrace"), name, "", u64::MAX);
    let mut bytes = fs::read(bench.path("e.ntrace")).unwrap();
    bytes[2000..2100].fill(0xff);
    fs::write(bench.path("e.ntrace"), bytes).unwrap();
    let traces = ["a.ntrace", "b.tandem", "c.etrace", "d.etrace", "e.ntrace"];
    bench.export(&traces);
    let queries = book();
    assert_eq!(queries.len(), 20);
    let program = elf(name).display().to_string();
    for query in &queries {
        let first = bench.rows(query, &traces);
        assert!(!first.is_empty(), "no answer: {query}");
        let exported = bench.rows(query, &["tables", "-e", &program]);
        assert_eq!(first, exported, "{query}");
    }
    // With one thread, for a few.
    for query in queries.iter().step_by(5) {
        let one = bench.rows(query, &[&traces[..], &["--threads", "1"]].concat());
        assert_eq!(one, bench.rows(query, &traces), "{query}");
    }
}

/// With an index, stretches are left out and decoded on several threads; the rows are the
/// same.
#[test]
fn an_index_leaves_out_stretches() {
    let bench = Bench::new();
    let stamps = "[ntrace]\nmode = \"btm\"\ntimestamps = true\nsync_max = 4\n";
    record(&bench.path("long.ntrace"), "sort-rv64gc", stamps, 1_000_000);
    let size = fs::metadata(bench.path("long.ntrace")).unwrap().len();
    assert!(size > 1 << 17, "{size}");
    let trace = ["long.ntrace", "--threads", "3"];
    let queries = [
        "SELECT * FROM calls",
        "SELECT function, count(*) FROM calls GROUP BY function",
        "SELECT count(*), sum(instructions), min(time), max(begin) FROM runs",
        "SELECT * FROM calls WHERE begin_time BETWEEN 400000 AND 410000",
        "SELECT * FROM calls WHERE begin > 950000",
        "SELECT * FROM calls WHERE \"end\" < 100000",
        "SELECT * FROM runs WHERE time BETWEEN 500000 AND 501000",
        "SELECT * FROM calls WHERE function = 'main'",
        "SELECT count(*) FROM calls WHERE function IN ('main', 'no such function')",
        "SELECT count(*) FROM runs WHERE hart = 0 AND begin < 5000",
        "SELECT count(*) FROM calls WHERE hart = 7",
        "SELECT count(*) FROM calls WHERE context = 3",
        "SELECT position, count(*) FROM runs GROUP BY position",
    ];
    let without: Vec<Vec<String>> = queries
        .iter()
        .map(|query| {
            // Nothing is kept where there is no cache.
            let mut command = bench.command(&[&[*query, "-f", "csv"], &trace[..]].concat());
            command.env("XDG_CACHE_HOME", "").env("HOME", "");
            let output = command.output().unwrap();
            assert!(output.status.success(), "{}", stderr(&output));
            let text = String::from_utf8(output.stdout).unwrap();
            let mut rows: Vec<String> = text.lines().skip(1).map(str::to_owned).collect();
            rows.sort();
            rows
        })
        .collect();
    // Two passes make the indexes with times and without.
    for query in &queries[..3] {
        bench.rows(query, &trace);
    }
    for (query, expected) in queries.iter().zip(&without) {
        assert_eq!(&bench.rows(query, &trace), expected, "{query}");
    }
    assert!(without[3].len() > 10 && without[7].len() == 1);
    let explain = |query: &str| {
        let rows = bench.rows(&format!("EXPLAIN ANALYZE {query}"), &trace);
        rows.join("\n")
    };
    let all = explain(queries[1]);
    assert!(
        all.contains("partitions=3") && all.contains("bytes_decoded"),
        "{all}"
    );
    // Stretches in which `main` and other long calls end are not read for their sake.
    for (query, part) in [(queries[6], 20), (queries[3], 10)] {
        let narrow = explain(query);
        let bytes = narrow.split("bytes=").nth(1).unwrap();
        let bytes: u64 = bytes.split(' ').next().unwrap().parse().unwrap();
        assert!(bytes * part < size, "{bytes} of {size}: {narrow}");
    }
    let none = explain(queries[10]);
    assert!(none.contains("stretches=0 of"), "{none}");
}

/// Traces can be named in the query, and tables written in every format.
#[test]
fn table_functions_and_formats() {
    let bench = Bench::new();
    record(&bench.path("a.ntrace"), "sieve-rv64gc", "", 20_000);
    bench.export(&["a.ntrace"]);
    let query = "SELECT function, count(*) AS n FROM calls('a.ntrace') GROUP BY 1";
    let rows = bench.rows(query, &[]);
    assert!(rows.len() > 2);
    let program = elf("sieve-rv64gc").display().to_string();
    fs::copy(bench.path("a.ntrace"), bench.path("alone.ntrace")).unwrap();
    let with = format!(
        "SELECT function, count(*) AS n FROM calls('alone.ntrace', '{program}') GROUP BY 1"
    );
    assert_eq!(bench.rows(&with, &[]), rows);
    let exported = query.replace("a.ntrace", "tables");
    assert_eq!(bench.rows(&exported, &[]), rows);
    let named = bench.rows(
        "SELECT DISTINCT trace FROM calls",
        &["--trace", "x=a.ntrace"],
    );
    assert_eq!(named, ["x"]);
    let json = bench.run(&[query, "-f", "json"]);
    assert_eq!(
        String::from_utf8(json.stdout).unwrap().lines().count(),
        rows.len()
    );
    let table = bench.run(&[query]);
    assert!(String::from_utf8(table.stdout).unwrap().starts_with('+'));
    let parquet = bench.run(&[query, "-f", "parquet", "-o", "out.parquet"]);
    assert!(parquet.status.success(), "{}", stderr(&parquet));
    assert!(
        fs::read(bench.path("out.parquet"))
            .unwrap()
            .starts_with(b"PAR1")
    );
    let names = bench.rows(
        "SELECT demangle('_ZN3foo3barEi'), symbol(start), source_line(start) FROM functions \
            WHERE function = 'main'",
        &["a.ntrace"],
    );
    assert!(names[0].starts_with("foo::bar(int),main,"), "{names:?}");
    assert!(names[0].contains("sieve.c:"), "{names:?}");
}

/// Queries from standard input end at semicolons, which may be in texts and comments.
#[test]
fn queries_from_standard_input() {
    let bench = Bench::new();
    let mut shell = bench.command(&["-f", "csv"]);
    let shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut shell = shell.unwrap();
    let text = "SELECT ';' AS a; -- no; query\nSELECT 2 AS b;\n\n;SELECT 3 AS c\n";
    shell
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let output = shell.wait_with_output().unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "a\n;\nb\n2\nc\n3\n"
    );
}

/// What is wrong is reported with its code, and no file is written.
#[test]
fn bad_input_is_reported() {
    let bench = Bench::new();
    record(&bench.path("a.ntrace"), "sieve-rv64gc", "", 20_000);
    fs::copy(bench.path("a.ntrace"), bench.path("alone.ntrace")).unwrap();
    bench.export(&["a.ntrace"]);
    let query = "SELECT count(*) FROM calls";
    for (args, code, exit) in [
        (&["SELEC nothing"][..], "HT0130", 1),
        (&["SELECT nothing FROM calls", "a.ntrace"], "HT0130", 1),
        (&[query], "HT0130", 1),
        (&[query, "none.ntrace"], "HT0001", 1),
        (&[query, "alone.ntrace"], "HT0304", 2),
        (&["SELECT count(*) FROM calls('none')"], "HT0001", 1),
        (&["SELECT count(*) FROM calls(7)"], "calls('run.ntrace'", 1),
        (&[query, "a.ntrace", "-f", "parquet"], "requires -o", 2),
        (&[query, "a.ntrace", "tables"], "traces or exports", 2),
        (&[query, "a.ntrace", "-o", "no/such/folder"], "HT0006", 1),
    ] {
        let output = bench.run(args);
        let text = stderr(&output);
        assert!(text.contains(code), "{args:?}: {text}");
        assert_eq!(output.status.code(), Some(exit), "{args:?}: {text}");
    }
    let output = bench.run(&[
        "SELECT * FROM calls",
        "alone.ntrace",
        "-f",
        "csv",
        "-o",
        "x.csv",
    ]);
    assert!(!output.status.success() && !bench.path("x.csv").exists());
    // A file of an export that is not one.
    let file = bench.path("tables/calls/trace=a.ntrace/hart=0/part.parquet");
    let other = bench.run(&[
        "SELECT 1 AS x",
        "-f",
        "parquet",
        "-o",
        file.to_str().unwrap(),
    ]);
    assert!(other.status.success(), "{}", stderr(&other));
    let output = bench.run(&[query, "tables"]);
    assert!(stderr(&output).contains("HT0129"), "{}", stderr(&output));
}
