//! Exports of traces, as a user makes them.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // a test ends where anything fails

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray as _;
use arrow_array::types::UInt64Type;
use hartrace_engine_testkit::{elf, record};
use hartrace_export::{Export, decoded_name, folder_name, traces};
use hartrace_tables::{Given, Table, Take, TraceSource, VERSION, VERSION_KEY, Wanted};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn hartrace_export(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hartrace-export"));
    command.args(args).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// All files below a folder, relative to it.
fn files(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap().flatten() {
            match entry.path().is_dir() {
                true => folders.push(entry.path()),
                false => {
                    let path = entry.path();
                    all.push(path.strip_prefix(folder).unwrap().display().to_string());
                }
            }
        }
    }
    all.sort();
    all
}

/// The batches of a file, and its row groups.
fn read(path: &Path) -> (Vec<RecordBatch>, usize) {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let metadata = reader.metadata().file_metadata().key_value_metadata();
    let mut versions = metadata.unwrap().iter().filter(|kv| kv.key == VERSION_KEY);
    assert_eq!(versions.next().unwrap().value.as_deref(), Some(VERSION));
    let groups = reader.metadata().num_row_groups();
    (
        reader.build().unwrap().map(Result::unwrap).collect(),
        groups,
    )
}

#[derive(Default)]
struct Keep(BTreeMap<(Table, u32), Vec<RecordBatch>>);

impl Take for Keep {
    fn batch(&mut self, table: Table, hart: u32, batch: RecordBatch) -> ControlFlow<()> {
        self.0.entry((table, hart)).or_default().push(batch);
        ControlFlow::Continue(())
    }
}

fn sum(batches: &[RecordBatch], column: &str) -> u64 {
    let values = batches.iter().flat_map(|batch| {
        let array = batch.column_by_name(column).unwrap();
        array
            .as_primitive::<UInt64Type>()
            .iter()
            .flatten()
            .collect::<Vec<u64>>()
    });
    values.fold(0, u64::wrapping_add)
}

/// What is in the files is what is in the trace.
#[test]
fn files_have_the_rows_of_the_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.ntrace");
    record(&path, "sort-rv64gc", "[ntrace]\ntimestamps = true", 100_000);
    let out = folder.path().join("tables");
    let source = TraceSource {
        name: "night 1/run".to_owned(),
        ..TraceSource::new(&path, &Given::default())
    };
    let export = Export::new(&out, Table::ALL.to_vec()).unwrap();
    let outcome = export.trace(&source, &|| false).unwrap().unwrap();
    let mut all = Keep::default();
    let opened = source.open("test").unwrap();
    opened
        .read(&Wanted::all(Table::ALL), &mut all, &mut |_| ())
        .unwrap();
    for ((table, hart), batches) in &all.0 {
        let mut file = out.join(table.name()).join("trace=night%201%2Frun");
        if !table.is_of_program() {
            file = file.join(format!("hart={hart}"));
        }
        let (read, _) = read(&file.join("part.parquet"));
        let rows =
            |batches: &[RecordBatch]| -> usize { batches.iter().map(RecordBatch::num_rows).sum() };
        assert_eq!(rows(&read), rows(batches), "{table}");
        assert_eq!(outcome.done.tables[table], rows(batches) as u64);
        for column in [
            "begin", "end", "start", "cycles", "taken", "end_time", "position",
        ] {
            if table.column(column).is_some() {
                assert_eq!(sum(&read, column), sum(batches, column), "{table}.{column}");
            }
        }
    }
    assert_eq!(outcome.done.instructions, 100_000);
    assert_eq!(decoded_name(&folder_name("night 1/%ä")), "night 1/%ä");
}

/// A folder of traces: the second time nothing is done, until a trace changes.
#[test]
fn an_export_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("runs/deep");
    fs::create_dir_all(&runs).unwrap();
    record(&runs.join("a.etrace"), "sieve-rv64gc", "", 5_000);
    record(&runs.join("b.ntrace"), "sieve-rv64gc", "", 5_000);
    let (runs, out) = (folder.path().join("runs"), folder.path().join("out"));
    let command = || {
        let output = hartrace_export(&[
            runs.to_str().unwrap(),
            "-o",
            out.to_str().unwrap(),
            "--tables",
            "calls,gaps",
        ]);
        assert!(output.status.success(), "{}", stderr(&output));
        stderr(&output)
    };
    assert!(command().contains("2 traces exported"));
    let first = files(&out);
    assert_eq!(
        first,
        [
            "_traces/deep%2Fa.etrace.json",
            "_traces/deep%2Fb.ntrace.json",
            "calls/trace=deep%2Fa.etrace/hart=0/part.parquet",
            "calls/trace=deep%2Fb.ntrace/hart=0/part.parquet",
        ]
    );
    let text = command();
    assert!(
        text.contains("0 traces exported") && text.contains("2 traces exported already"),
        "{text}"
    );
    record(&runs.join("deep/b.ntrace"), "sieve-rv64gc", "", 6_000);
    let text = command();
    assert!(
        text.contains("1 trace exported") && text.contains("1 trace exported already"),
        "{text}"
    );
    assert_eq!(files(&out), first);
}

/// Functions and lines of a program are stored once for all its traces, and each trace still has
/// its own when another is exported again.
#[cfg(unix)]
#[test]
fn traces_share_the_tables_of_their_program() {
    use std::os::unix::fs::MetadataExt as _;
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    for (name, program) in [
        ("a", "sieve-rv64gc"),
        ("b", "sieve-rv64gc"),
        ("c", "sort-rv64gc"),
    ] {
        record(
            &folder.path().join(format!("{name}.ntrace")),
            program,
            "",
            5_000,
        );
    }
    let given = Given::default();
    let all = traces(&[folder.path().to_path_buf()], None, &given).unwrap();
    let export = Export::new(&out, Export::USUAL.to_vec()).unwrap();
    let mut bytes = Vec::new();
    for trace in &all {
        bytes.push(export.trace(trace, &|| false).unwrap().unwrap().done.bytes);
    }
    assert!(bytes[1] < bytes[0], "{bytes:?}");
    let file = |table: &str, trace: &str| {
        out.join(table)
            .join(format!("trace={trace}.ntrace"))
            .join("part.parquet")
    };
    let node = |table: &str, trace: &str| fs::metadata(file(table, trace)).unwrap().ino();
    for table in ["functions", "lines"] {
        assert_eq!(node(table, "a"), node(table, "b"), "{table}");
        assert_ne!(node(table, "a"), node(table, "c"), "{table}");
    }
    assert_ne!(node("branches", "a"), node("branches", "b"));
    let before = fs::read(file("lines", "b")).unwrap();
    record(&folder.path().join("a.ntrace"), "sort-rv64gc", "", 5_000);
    let again = export.trace(&all[0], &|| false).unwrap().unwrap();
    assert!(!again.is_old);
    assert_eq!(node("lines", "a"), node("lines", "c"));
    assert_eq!(fs::read(file("lines", "b")).unwrap(), before);
}

/// What cannot be exported does not keep the others from being exported.
#[test]
fn bad_traces_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    record(&at("good.ntrace"), "sieve-rv64gc", "", 5_000);
    record(&at("torn.ntrace"), "sort-rv64gc", "", 300_000);
    let mut bytes = fs::read(at("torn.ntrace")).unwrap();
    bytes[20_000..20_200].fill(0xff);
    fs::write(at("torn.ntrace"), bytes).unwrap();
    fs::copy(at("good.ntrace"), at("alone.ntrace")).unwrap();
    fs::write(at("empty.ntrace"), "").unwrap();
    let list = "good.ntrace\ntorn.ntrace\n\n# no sidecar\nalone.ntrace\nempty.ntrace\nnone\n";
    fs::write(at("list"), list).unwrap();
    let (list, out) = (at("list"), at("out"));
    let args = [
        "--list",
        list.to_str().unwrap(),
        "-o",
        out.to_str().unwrap(),
    ];
    let output = hartrace_export(&args);
    let text = stderr(&output);
    assert_eq!(output.status.code().unwrap(), 2, "{text}"); // no program
    for part in [
        "2 traces exported",
        "1 trace with gaps",
        "3 traces could not",
        "HT0304",
        "HT0001",
        "`alone.ntrace`",
        "`empty.ntrace`",
        "`none`",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let gaps = out.join("gaps/trace=torn.ntrace/hart=0/part.parquet");
    assert!(read(&gaps).0[0].num_rows() > 0);
    assert!(!files(&out).iter().any(|file| file.contains("unfinished")));
    // With a program in the list, the trace without a sidecar can be read.
    let line = format!("alone.ntrace\t{}\n", elf("sieve-rv64gc").display());
    fs::write(at("list"), line).unwrap();
    let output = hartrace_export(&args);
    assert!(output.status.success(), "{}", stderr(&output));
    let strict: Vec<&str> = args.iter().copied().chain(["--strict"]).collect();
    fs::write(at("list"), "torn.ntrace\n").unwrap();
    fs::remove_dir_all(&out).unwrap();
    assert_eq!(hartrace_export(&strict).status.code(), Some(3));
}

/// A full disk is reported once, whatever else was to be exported, and nothing is left half
/// written. A limit for the size of files stands for the disk.
#[cfg(unix)]
#[test]
fn a_full_disk_ends_an_export() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..6 {
        let path = folder.path().join(format!("{number}.ntrace"));
        record(&path, "sort-rv64gc", "", 300_000);
    }
    let out = folder.path().join("out");
    let script = "ulimit -f 8 && trap '' XFSZ && exec \"$0\" \"$@\"";
    let output = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_hartrace-export")])
        .arg(folder.path())
        .arg("-o")
        .arg(&out)
        .output()
        .unwrap();
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert_eq!(text.matches("error[").count(), 1, "{text}");
    for part in [
        "HT0006",
        "too large",
        "0 traces exported",
        "5 traces not tried",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!(files(&out), Vec::<String>::new());
}

/// An export of another version is not mixed with this one.
#[test]
fn another_schema_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (path, out) = (folder.path().join("a.ntrace"), folder.path().join("out"));
    record(&path, "sieve-rv64gc", "", 5_000);
    let args = [path.to_str().unwrap(), "-o", out.to_str().unwrap()];
    assert!(hartrace_export(&args).status.success());
    let marker = fs::read_dir(out.join("_traces"))
        .unwrap()
        .flatten()
        .next()
        .unwrap();
    let text = fs::read_to_string(marker.path()).unwrap();
    let old = text.replace("\"schema\": \"1\"", "\"schema\": \"0\"");
    assert_ne!(old, text);
    fs::write(marker.path(), old).unwrap();
    let output = hartrace_export(&args);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("HT0129"), "{}", stderr(&output));
}

/// A trace in a folder is called by its path there, and only once.
#[test]
fn traces_are_named_by_their_folder() {
    let folder = tempfile::tempdir().unwrap();
    assert!(traces(&[folder.path().to_path_buf()], None, &Given::default()).is_err());
    let path: PathBuf = folder.path().join("x.etrace");
    fs::write(&path, "x").unwrap();
    let given = Given::default();
    let found = traces(&[folder.path().to_path_buf()], None, &given).unwrap();
    assert_eq!(found[0].name, "x.etrace");
    let twice = [path.clone(), path];
    assert!(traces(&twice, None, &given).is_err());
}
