//! Clusters on this machine, as a user starts them.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // a test ends where anything fails

mod bucket;

use hartrace_engine_testkit::{elf, record};
use hartrace_export::Export;
use hartrace_tables::{Given, Table, TraceSource};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// A program that runs, and the lines that it writes to stderr.
struct Running {
    child: Mutex<Child>,
    lines: Mutex<Receiver<String>>,
}

impl Running {
    fn start(folder: &Path, store: &[(&str, String)], args: &[&str]) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hartrace-cluster"));
        let command = command.args(args).current_dir(folder);
        let command = command.envs(store.iter().cloned());
        let command = command.env("XDG_CACHE_HOME", folder.join("cache"));
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let (out, lines) = channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let _ = out.send(line);
            }
        });
        Running {
            child: Mutex::new(child),
            lines: Mutex::new(lines),
        }
    }

    fn kill(&self) {
        let mut child = self.child.lock().unwrap();
        let _ = child.kill();
        let _ = child.wait();
    }

    /// The next line with a text in it.
    fn line(&self, text: &str) -> String {
        let end = Instant::now() + Duration::from_secs(60);
        let mut seen = Vec::new();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.lock().unwrap().recv_timeout(left) {
                Ok(line) if line.contains(text) => return line,
                Ok(line) => seen.push(line),
                Err(_) => panic!("no line with `{text}`: {seen:#?}"),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A folder with traces, a scheduler and executors.
struct Cluster {
    folder: tempfile::TempDir,
    /// Variables for an object store with the files of the folder.
    store: Vec<(&'static str, String)>,
    scheduler: Running,
    address: String,
    executors: Vec<Running>,
}

impl Cluster {
    fn new(executors: usize) -> Cluster {
        let folder = tempfile::tempdir().unwrap();
        let args = [
            "scheduler",
            "--bind",
            "127.0.0.1:0",
            "--executor-timeout",
            "4",
        ];
        let scheduler = Running::start(folder.path(), &[], &args);
        let line = scheduler.line("scheduler at ");
        let address = line.split("scheduler at ").nth(1).unwrap().to_owned();
        let store = vec![
            ("AWS_ENDPOINT", bucket::serve(folder.path().to_path_buf())),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_ACCESS_KEY_ID", "user".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
        ];
        let mut cluster = Cluster {
            folder,
            store,
            scheduler,
            address,
            executors: Vec::new(),
        };
        for _ in 0..executors {
            cluster.add_executor();
        }
        cluster
    }

    fn add_executor(&mut self) {
        let executor = self.executor();
        self.executors.push(executor);
    }

    /// A further executor.
    fn executor(&self) -> Running {
        let args = [
            "executor",
            "--scheduler",
            &self.address,
            "--slots",
            "1",
            "-v",
        ];
        let executor = Running::start(self.folder.path(), &self.store, &args);
        executor.line("executor at ");
        executor
    }

    /// The first executor that writes so many lines with a text in them. Which one that is, is up
    /// to the scheduler: on a busy machine one of them may do most of the tasks.
    fn first_with(&self, lines: usize, text: &str) -> usize {
        let end = Instant::now() + Duration::from_secs(60);
        let mut counts = vec![0; self.executors.len()];
        loop {
            for (index, executor) in self.executors.iter().enumerate() {
                for line in executor.lines.lock().unwrap().try_iter() {
                    counts[index] += usize::from(line.contains(text));
                }
                if counts[index] >= lines {
                    return index;
                }
            }
            assert!(Instant::now() < end, "lines with `{text}`: {counts:?}");
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let sql = Path::new(env!("CARGO_BIN_EXE_hartrace-cluster")).with_file_name("hartrace-sql");
        assert!(
            sql.exists(),
            "this needs hartrace-sql: cargo build -p hartrace-sql"
        );
        let mut command = Command::new(sql);
        command.args(args).current_dir(self.folder.path());
        command.env("XDG_CACHE_HOME", self.path("cache"));
        command.envs(self.store.iter().cloned());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// The rows of each query, sorted, with these arguments.
    fn answers(&self, queries: &[String], args: &[&str]) -> Vec<Vec<String>> {
        let mut command = self.command(&[args, &["-f", "csv"]].concat());
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut text = String::new();
        for query in queries {
            text += &format!("SELECT 'next' AS mark;\n{query};\n");
        }
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(text.as_bytes()).unwrap();
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        let answers: Vec<Vec<String>> = text
            .split("mark\nnext\n")
            .skip(1)
            .map(|answer| {
                let mut rows: Vec<String> = answer.lines().map(str::to_owned).collect();
                rows.sort();
                rows
            })
            .collect();
        assert_eq!(answers.len(), queries.len());
        answers
    }

    /// The same on the cluster.
    fn on_cluster(&self, queries: &[String], args: &[&str]) -> Vec<Vec<String>> {
        let on = ["--scheduler", &self.address, "--partitions", "3"];
        self.answers(queries, &[args, &on].concat())
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

/// The queries of the book have the same answers on one executor and on two, on traces and on
/// exports.
#[test]
fn the_queries_of_the_book() {
    let mut cluster = Cluster::new(1);
    let stamps = "[ntrace]\nmode = \"btm\"\ntimestamps = true\nsync_max = 4\n";
    let name = "timer-rv64gc";
    record(&cluster.path("a.ntrace"), name, stamps, u64::MAX);
    record(&cluster.path("b.tandem"), name, "", 20_000);
    record(&cluster.path("c.etrace"), name, "", u64::MAX);
    let data = "[etrace.data]\nenabled = true\n";
    record(&cluster.path("d.etrace"), name, data, 20_000);
    // With an index, this one is read in parts.
    record(&cluster.path("e.ntrace"), "sort-rv64gc", stamps, 1_000_000);
    let traces = ["a.ntrace", "b.tandem", "c.etrace", "d.etrace", "e.ntrace"];
    cluster.export(&traces);
    let program = elf(name).display().to_string();
    let other = elf("sort-rv64gc").display().to_string();
    let exported = ["tables", "-e", &program, "-e", &other];
    let stored = ["s3://bucket/tables", "-e", &program, "-e", &other];
    let queries = book();
    assert_eq!(queries.len(), 20);
    let expected = cluster.answers(&queries, &traces);
    let parts = cluster.answers(&queries, &traces);
    assert_eq!(expected, parts);
    for executors in 1..=2 {
        for args in [&traces[..], &exported] {
            let answers = cluster.on_cluster(&queries, args);
            for ((query, found), expected) in queries.iter().zip(&answers).zip(&expected) {
                assert_eq!(found, expected, "{executors} executors, {args:?}: {query}");
            }
        }
        cluster.add_executor();
    }
    let (some, expected) = (&queries[..3], &expected[..3]);
    assert_eq!(cluster.on_cluster(some, &stored), expected);
    assert_eq!(cluster.answers(some, &stored), expected);
    // Table functions, functions, and what the scheduler does with them.
    let queries: Vec<String> = [
        "SELECT function, count(*) FROM calls('e.ntrace') GROUP BY function",
        "SELECT demangle('_ZN3foo3barEi'), symbol(start), source_line(start) FROM functions",
        "SELECT place, count(*) FROM (SELECT symbol(start) AS place FROM runs) GROUP BY place",
        "SELECT trace FROM calls('a.ntrace') UNION ALL SELECT trace FROM traps('c.etrace')",
        "SELECT count(*) FROM calls WHERE hart = 77",
        "SELECT max(instructions) FROM calls WHERE function = (SELECT min(function) FROM calls)",
        "SELECT place, max(back) FROM (SELECT place, row_number() OVER (PARTITION BY place) AS back
            FROM (SELECT symbol(start) AS place FROM runs)) GROUP BY place",
        "SELECT 1 + 1",
    ]
    .map(str::to_owned)
    .to_vec();
    let expected = cluster.answers(&queries, &traces);
    assert_eq!(cluster.on_cluster(&queries, &traces), expected);
    // The plan says what is skipped, and the cluster what it decoded.
    let on = ["--scheduler", &cluster.address, "e.ntrace", "-f", "csv"];
    let narrow = "SELECT count(*) FROM runs WHERE time BETWEEN 500000 AND 501000";
    let plan = cluster.run(&[&[&*format!("EXPLAIN {narrow}")], &on[..]].concat());
    let plan = String::from_utf8(plan.stdout).unwrap();
    assert!(
        plan.contains("TraceExec: table=runs") && plan.contains("stretches="),
        "{plan}"
    );
    let plan = cluster.run(&[&[&*format!("EXPLAIN ANALYZE {narrow}")], &on[..]].concat());
    let plan = String::from_utf8(plan.stdout).unwrap();
    assert!(
        plan.contains("bytes_decoded=") && plan.contains("stretches="),
        "{plan}"
    );
    // A trace that is not divided is read once for each scan, not once for each task.
    let analyzed = cluster.run(&[
        "EXPLAIN ANALYZE SELECT function FROM functions
            WHERE function NOT IN (SELECT function FROM calls WHERE function IS NOT NULL)",
        "c.etrace",
        "--scheduler",
        &cluster.address,
    ]);
    let plan = String::from_utf8(analyzed.stdout).unwrap();
    let size = fs::metadata(cluster.path("c.etrace")).unwrap().len();
    let decoded: Vec<u64> = plan
        .split("bytes_decoded=")
        .skip(1)
        .map(|rest| {
            let digits = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap();
            digits.parse().unwrap()
        })
        .collect();
    assert_eq!(decoded.len(), 3, "{plan}");
    assert!(decoded.iter().all(|bytes| *bytes <= size), "{size}: {plan}");
}

/// An executor that is killed in the middle of a query costs time, but the answer is the same.
#[test]
fn an_executor_is_killed() {
    let mut cluster = Cluster::new(2);
    let stamps = "[ntrace]\nmode = \"btm\"\ntimestamps = true\nsync_max = 4\n";
    record(
        &cluster.path("long.ntrace"),
        "sort-rv64gc",
        stamps,
        3_000_000,
    );
    // It has three stages, the second of which has much to do.
    let query = "SELECT start, count(*), sum(n), max(last)
        FROM (SELECT start, position, sum(instructions) AS n, max(time) AS last
            FROM runs GROUP BY start, position)
        GROUP BY start";
    let queries = [query.to_owned()];
    let expected = cluster.answers(&queries, &["long.ntrace"]);
    assert!(expected[0].len() > 100, "{expected:?}");
    // The other one works on rows that are lost now: what it does in this stage, and what it has
    // done already, is taken back. A task has a line at its begin and one at its end.
    for (stage, lines) in [(1, 3), (2, 1), (2, 3), (2, 7), (3, 1), (3, 5)] {
        let found = thread::scope(|scope| {
            let answer = scope.spawn(|| {
                let on = ["--scheduler", &cluster.address, "--partitions", "12"];
                cluster.answers(&queries, &[&["long.ntrace"], &on[..]].concat())
            });
            let survivor = cluster.first_with(lines, &format!("/{stage}.0/"));
            cluster.executors[1 - survivor].kill();
            answer.join().unwrap()
        });
        assert_eq!(found, expected, "stage {stage}, {lines} lines");
        // Both are new, so that no line is one of an earlier query.
        cluster.executors.clear();
        cluster.add_executor();
        cluster.add_executor();
    }
}

/// The queries of the book have the same answers while one executor after the other is killed.
#[test]
fn executors_come_and_go() {
    let cluster = Cluster::new(0);
    let stamps = "[ntrace]\nmode = \"btm\"\ntimestamps = true\nsync_max = 4\n";
    record(&cluster.path("a.ntrace"), "timer-rv64gc", stamps, u64::MAX);
    record(&cluster.path("b.ntrace"), "sort-rv64gc", stamps, 1_000_000);
    let traces = ["a.ntrace", "b.ntrace"];
    let queries = book();
    let expected = cluster.answers(&queries, &traces);
    let mut executors = vec![cluster.executor(), cluster.executor()];
    let answers = thread::scope(|scope| {
        let answers = scope.spawn(|| cluster.on_cluster(&queries, &traces));
        // Two shortly after each other, then time enough to find that they are lost, and to go on.
        for seconds in [2, 10].into_iter().cycle().take(12) {
            thread::sleep(Duration::from_secs(seconds));
            if answers.is_finished() {
                break;
            }
            drop(executors.remove(0));
            executors.push(cluster.executor());
        }
        answers.join().unwrap()
    });
    for ((query, found), expected) in queries.iter().zip(&answers).zip(&expected) {
        assert_eq!(found, expected, "{query}");
    }
}

/// An executor that is asked to end finishes its tasks; one that is asked twice does not.
#[cfg(unix)]
#[test]
fn an_executor_is_asked_to_end() {
    let cluster = Cluster::new(1);
    record(&cluster.path("a.ntrace"), "sort-rv64gc", "", 1_000_000);
    // Hours of work.
    let query = "SELECT count(*) FROM calls AS a, calls AS b, calls AS c
        WHERE a.\"begin\" + b.\"begin\" > c.\"begin\"";
    let on = ["a.ntrace", "--scheduler", &cluster.address];
    let mut command = cluster.command(&[&[query], &on[..]].concat());
    let mut client = command.stderr(Stdio::null()).spawn().unwrap();
    let executor = &cluster.executors[0];
    executor.line("Execute task");
    thread::sleep(Duration::from_secs(2));
    let pid = executor.child.lock().unwrap().id().to_string();
    let ask = || Command::new("kill").args(["-TERM", &pid]).status().unwrap();
    assert!(ask().success());
    executor.line("a second Ctrl-C or SIGTERM ends at once");
    assert!(executor.child.lock().unwrap().try_wait().unwrap().is_none());
    assert!(ask().success());
    let end = Instant::now() + Duration::from_secs(30);
    let status = loop {
        if let Some(status) = executor.child.lock().unwrap().try_wait().unwrap() {
            break status;
        }
        assert!(Instant::now() < end, "the executor does not end");
        thread::sleep(Duration::from_millis(10));
    };
    assert!(status.success(), "{status}");
    client.kill().unwrap();
    client.wait().unwrap();
}

/// Traces in an object store are read like files, with their programs.
#[test]
fn traces_in_an_object_store() {
    let cluster = Cluster::new(1);
    let stamps = "[ntrace]\nmode = \"btm\"\ntimestamps = true\nsync_max = 4\n";
    let name = "timer-rv64gc";
    record(&cluster.path("a.ntrace"), name, stamps, 300_000);
    let queries: Vec<String> = [
        "SELECT function, count(*), sum(instructions), max(\"end\") FROM calls GROUP BY function",
        "SELECT count(*) FROM runs WHERE time BETWEEN 1000 AND 9000",
        "SELECT symbol(start), count(*) FROM runs GROUP BY start",
        "SELECT function, start FROM functions",
    ]
    .map(str::to_owned)
    .to_vec();
    let expected = cluster.answers(&queries, &["a.ntrace"]);
    assert!(expected[0].len() > 3, "{expected:?}");
    fs::create_dir(cluster.path("sub")).unwrap();
    fs::copy(elf(name), cluster.path("programs.elf")).unwrap();
    fs::rename(cluster.path("a.ntrace"), cluster.path("sub/a.ntrace")).unwrap();
    let sidecar = fs::read_to_string(cluster.path("a.ntrace.toml")).unwrap();
    fs::remove_file(cluster.path("a.ntrace.toml")).unwrap();
    let query = &queries[0];
    // Without the program, and with one that is given.
    let stored = "s3://bucket/sub/a.ntrace";
    let alone = cluster.run(&[query, stored]);
    assert!(stderr(&alone).contains("HT0304"), "{}", stderr(&alone));
    let given = [stored, "-e", "s3://bucket/programs.elf", "-c", "c.toml"];
    fs::write(cluster.path("c.toml"), stamps).unwrap();
    assert!(sidecar.contains("file = \""), "{sidecar}");
    assert_eq!(cluster.answers(&queries, &given), expected);
    assert_eq!(cluster.on_cluster(&queries, &given), expected);
    // The sidecar names it, first somewhere else, then beside the trace.
    let outside = "../../programs.elf";
    for (place, is_good) in [(outside, false), ("../programs.elf", true)] {
        let lines = sidecar
            .lines()
            .map(|line| match line.split_once("file = \"") {
                Some((before, rest)) => {
                    let rest = rest.split_once('"').unwrap().1;
                    format!("{before}file = \"{place}\"{rest}\n")
                }
                None => format!("{line}\n"),
            });
        let text: String = lines.collect();
        fs::write(cluster.path("sub/a.ntrace.toml"), text).unwrap();
        if is_good {
            assert_eq!(cluster.answers(&queries, &[stored]), expected);
            assert_eq!(cluster.on_cluster(&queries, &[stored]), expected);
        } else {
            let refused = stderr(&cluster.run(&[query, stored]));
            assert!(refused.contains("outside of its bucket"), "{refused}");
        }
    }
    // In a list; and an object that has changed is copied again.
    fs::write(cluster.path("list.txt"), format!("{stored}\n")).unwrap();
    let listed = cluster.run(&[query, "--list", "list.txt"]);
    assert!(listed.status.success(), "{}", stderr(&listed));
    record(&cluster.path("sub/a.ntrace"), name, stamps, 10_000);
    let fewer = cluster.answers(&queries, &["sub/a.ntrace"]);
    assert_ne!(fewer, expected);
    let args = [stored, "-e", "s3://bucket/programs.elf"];
    assert_eq!(cluster.answers(&queries, &args), fewer);
    assert_eq!(cluster.on_cluster(&queries, &args), fewer);
}

/// What is wrong is reported with its code, on time.
#[test]
fn bad_input_is_reported() {
    let mut cluster = Cluster::new(1);
    record(&cluster.path("a.ntrace"), "sieve-rv64gc", "", 20_000);
    fs::copy(cluster.path("a.ntrace"), cluster.path("alone.ntrace")).unwrap();
    cluster.export(&["a.ntrace"]);
    let query = "SELECT count(*) FROM calls";
    let address = cluster.address.clone();
    let on = |args: &[&'static str]| -> Vec<String> {
        let args = args.iter().map(|arg| (*arg).to_owned());
        args.chain(["--scheduler".to_owned(), address.clone()])
            .collect()
    };
    let check = |cluster: &Cluster, args: &[String], code: &str, exit: i32| {
        let begin = Instant::now();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let output = cluster.run(&args);
        let text = stderr(&output);
        assert!(text.contains(code), "{args:?}: {text}");
        assert_eq!(output.status.code(), Some(exit), "{args:?}: {text}");
        assert!(
            begin.elapsed() < Duration::from_secs(30),
            "{args:?}: {text}"
        );
    };
    check(&cluster, &on(&["SELEC nothing", "a.ntrace"]), "HT0130", 1);
    check(
        &cluster,
        &on(&["SELECT nothing FROM calls", "a.ntrace"]),
        "HT0130",
        1,
    );
    check(&cluster, &on(&[query, "none.ntrace"]), "HT0001", 1);
    let stored = "s3://bucket/none.ntrace";
    check(&cluster, &on(&[query, stored]), "HT0001", 1);
    check(
        &cluster,
        &on(&[query, stored]),
        "not in the object store",
        1,
    );
    // The executor finds that there is no program.
    check(
        &cluster,
        &on(&["SELECT count(*) FROM functions", "alone.ntrace"]),
        "HT0304",
        2,
    );
    let by = "SELECT row_number() OVER (PARTITION BY symbol(start)) FROM runs";
    check(&cluster, &on(&[by, "a.ntrace"]), "in a subquery", 1);
    let copy = "COPY (SELECT * FROM calls) TO 'x.csv'";
    check(
        &cluster,
        &on(&[copy, "a.ntrace"]),
        "does not write files",
        1,
    );
    let file = cluster.path("tables/calls/trace=a.ntrace/hart=0/part.parquet");
    let file = file.to_str().unwrap();
    let other = cluster.run(&["SELECT 1 AS x", "-f", "parquet", "-o", file]);
    assert!(other.status.success(), "{}", stderr(&other));
    check(&cluster, &on(&[query, "tables"]), "HT0129", 1);
    // No executor, and a scheduler that is not there.
    cluster.executors.clear();
    check(&cluster, &on(&[query, "a.ntrace"]), "HT0133", 1);
    cluster.scheduler.kill();
    check(&cluster, &on(&[query, "a.ntrace"]), "HT0133", 1);
    let mut late = Command::new(env!("CARGO_BIN_EXE_hartrace-cluster"));
    let late = late.args(["executor", "--wait", "1", "--scheduler", &cluster.address]);
    let late = late.output().unwrap();
    assert!(stderr(&late).contains("HT0133"), "{}", stderr(&late));
    assert_eq!(late.status.code(), Some(1));
}
