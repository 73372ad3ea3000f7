//! `hartrace view`: what the server answers, and what it does not.

use crate::report::{numbers, program, recorded, report};
use crate::{Folder, hartrace};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::{fs, thread, time};

/// A server that runs.
pub(crate) struct Viewer {
    process: Child,
    host: String,
    secret: String,
}

impl Viewer {
    pub(crate) fn start(args: &[&str]) -> Viewer {
        Viewer::start_with(args, Stdio::null())
    }

    fn start_with(args: &[&str], input: Stdio) -> Viewer {
        Viewer::of(hartrace(), args, input)
    }

    fn of(mut command: Command, args: &[&str], input: Stdio) -> Viewer {
        command
            .args(["view", "-q"])
            .args(args)
            .stdin(input)
            .stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        let out = process.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        let rest = line.trim().strip_prefix("http://").unwrap();
        let (host, secret) = rest.trim_end_matches('/').split_once('/').unwrap();
        assert!(host.starts_with("127.0.0.1:"), "{line}");
        Viewer {
            host: host.to_owned(),
            secret: secret.to_owned(),
            process,
        }
    }

    /// The address of the page.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/{}/", self.host, self.secret)
    }

    /// The status and the body of an answer.
    fn ask(&self, request: &str, headers: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        write!(stream, "{request} HTTP/1.1\r\n{headers}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    }

    fn get(&self, path: &str) -> Value {
        let (secret, host) = (&self.secret, &self.host);
        let (status, body) = self.ask(&format!("GET /{secret}/{path}"), &format!("Host: {host}"));
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What a slice is, by the names of a run.
type Named = (i64, i64, i64, String, i64);

/// Slices that a part of the axis has, without gaps.
fn slices(run: &Value, columns: &Value, (from, until): (i64, i64)) -> Vec<Named> {
    let text = |number: i64| run["strings"][number as usize].as_str().unwrap().to_owned();
    let names = numbers(&run["functions"]["name"]);
    let column = |name: &str| numbers(&columns[name]);
    let [begin, end, depth] = ["begin", "end", "depth"].map(column);
    let [function, kind] = ["function", "kind"].map(column);
    let name = |function: i64| match function {
        label if label < 0 => text(-1 - label),
        function => text(names[function as usize]),
    };
    let all = (0..begin.len()).filter(|&at| begin[at] <= until && end[at] >= from && kind[at] != 3);
    let mut all: Vec<Named> = all
        .map(|at| (begin[at], end[at], depth[at], name(function[at]), kind[at]))
        .collect();
    all.sort();
    all
}

/// Parts that are decoded when they are asked for equal those of the whole, though the
/// index has few slices: with traps and threads, times, and exceptions.
#[test]
fn parts_are_those_of_the_whole() {
    let folder = Folder::new();
    // Synchronisation is frequent: decoding starts at many places.
    let often = "[etrace]\nresync_max = 4\n[ntrace]\nsync_max = 4\n";
    let timed = folder.file("t.toml", format!("{often}timestamps = true\n"));
    let often = folder.file("c.toml", often);
    for (name, kind, more) in [
        ("scheduler", "etrace", &["-c", &often][..]),
        ("timer", "ntrace", &["-c", &timed][..]),
        (
            "exceptions",
            "ntrace",
            &["-c", &often, "--max-insns", "700k"][..],
        ),
    ] {
        let file = recorded(&folder, &program(name), kind, more);
        let document = report(&[&file]);
        let whole = &document["runs"][0];
        let index = folder.name("index");
        let viewer = Viewer::start(&[&file, "--slices", "300", "--index", &index]);
        let live = viewer.get("report.json");
        assert_eq!(live["live"], true);
        let live = &live["runs"][0];
        assert_eq!(live["axis"], whole["axis"]);
        assert_eq!(live["instructions"], whole["instructions"]);
        let axis = |name: &str| whole["axis"][name].as_i64().unwrap();
        let (first, last) = (axis("from"), axis("until"));
        let tracks = whole["tracks"].as_array().unwrap();
        assert_eq!(tracks.len(), live["tracks"].as_array().unwrap().len());
        for (id, track) in tracks.iter().enumerate() {
            for part in 0..6 {
                let from = first + (last - first) * part / 6;
                let range = (from, from + 800);
                let query = format!("track={id}&from={from}&until={}&pixels=1600", range.1);
                let found = viewer.get(&format!("timeline?run=0&{query}"));
                let found = slices(live, &found, range);
                let expected = slices(whole, &track["slices"], range);
                assert_eq!(found, expected, "{name}, track {id}, {range:?}");
            }
        }
        // All of a track, with few slices.
        let query = format!("track=0&from={first}&until={last}&pixels=100");
        let all = viewer.get(&format!("timeline?run=0&{query}"));
        assert!(numbers(&all["begin"]).len() < 600);
    }
}

#[test]
fn details_are_sent_when_they_are_asked_for() {
    let folder = Folder::new();
    let file = recorded(&folder, &program("recursion"), "ntrace", &[]);
    let index = folder.name("index");
    let viewer = Viewer::start(&[&file, "--index", &index]);
    let document = viewer.get("report.json");
    let run = &document["runs"][0];
    assert_eq!(run["code"].as_array().unwrap().len(), 0);
    let code = viewer.get("code?run=0&function=0");
    assert_eq!(code["function"], 0);
    assert!(code["rows"]["text"].as_array().unwrap().len() > 10);
    assert_eq!(viewer.get("code?run=0&function=999"), Value::Null);
    assert_eq!(viewer.get("source?run=0&file=999"), Value::Null);
    let rows = viewer.get("instructions?run=0&track=0&at=100000&count=30");
    let at = numbers(&rows["at"]);
    // From where one looks, though that is in the middle of straight-line code.
    assert!(at[0] == 100_000 && at.len() >= 30, "{at:?}");
    assert!(at.windows(2).all(|pair| pair[0] + 1 == pair[1]));
    // From one to the next, and back.
    let search = |from: &Value, back: &str| {
        let query = format!("function=0,1&track=0&from={from}{back}");
        viewer.get(&format!("search?run=0&{query}"))
    };
    let first = search(&Value::from(0), "");
    let second = search(&first["begin"], "");
    assert!(
        first["begin"].as_i64() < second["begin"].as_i64(),
        "{second}"
    );
    assert_eq!(search(&second["begin"], "&back=1"), first);
    assert_eq!(search(&Value::from(999_999_999), ""), Value::Null);
}

#[test]
fn only_the_page_itself_gets_answers() {
    let folder = Folder::new();
    let file = recorded(
        &folder,
        &program("recursion"),
        "ntrace",
        &["--max-insns", "2000"],
    );
    let index = folder.name("index");
    let viewer = Viewer::start(&[&file, "--index", &index]);
    let (host, secret) = (format!("Host: {}", viewer.host), &viewer.secret);
    let (status, page) = viewer.ask(&format!("GET /{secret}/"), &host);
    assert_eq!(status, 200);
    assert!(page.contains("connect-src 'self'") && page.contains("{\"live\":true}"));
    let other = secret.replace(|c: char| c.is_ascii_digit(), "a");
    let cases = [
        (404, format!("GET /{other}b/report.json"), host.clone()),
        (404, "GET /report.json".to_owned(), host.clone()),
        (404, "GET /".to_owned(), host.clone()),
        (
            404,
            format!("GET /{secret}/../{secret}/report.json"),
            host.clone(),
        ),
        (404, format!("GET /{secret}/../../etc/passwd"), host.clone()),
        (
            404,
            format!("GET /{secret}/%2e%2e/report.json"),
            host.clone(),
        ),
        (404, format!("GET /{secret}/report"), host.clone()),
        (405, format!("POST /{secret}/report.json"), host.clone()),
        (
            403,
            format!("GET /{secret}/report.json"),
            "Host: example.com".to_owned(),
        ),
        (
            403,
            format!("GET /{secret}/report.json"),
            format!("{host}\r\nOrigin: http://example.com"),
        ),
        (400, format!("GET /{secret}/timeline"), host.clone()),
        (
            400,
            format!("GET /{secret}/timeline?track=9&from=0&until=9"),
            host.clone(),
        ),
        (
            400,
            format!("GET /{secret}/timeline?track=0&from=9&until=0"),
            host.clone(),
        ),
        (
            400,
            format!("GET /{secret}/search?function=x&from=0"),
            host.clone(),
        ),
    ];
    for (expected, request, headers) in cases {
        let (status, body) = viewer.ask(&request, &headers);
        assert_eq!(status, expected, "{request}: {body}");
        assert!(!body.contains("hartrace-report"), "{request}");
    }
}

/// An index is used again, and made again if it is damaged or of another trace.
#[test]
fn an_index_is_kept() {
    let folder = Folder::new();
    let file = recorded(
        &folder,
        &program("recursion"),
        "ntrace",
        &["--max-insns", "9000"],
    );
    let index = folder.name("index");
    let document = |args: &[&str]| Viewer::start(args).get("report.json");
    let args = [file.as_str(), "--index", &index];
    let first = document(&args);
    let kept = fs::read(&index).unwrap();
    assert_eq!(document(&args), first);
    assert_eq!(fs::read(&index).unwrap(), kept);
    for cut in [0, 10, kept.len() / 2, kept.len() - 1] {
        fs::write(&index, &kept[..cut]).unwrap();
        assert_eq!(document(&args), first);
        assert_eq!(fs::read(&index).unwrap(), kept);
    }
    let other = recorded(
        &folder,
        &program("recursion"),
        "etrace",
        &["--max-insns", "3000"],
    );
    let second = document(&[&other, "--index", &index]);
    assert_eq!(second["runs"][0]["instructions"], 3000);
}

/// A file that the user named by mistake is not replaced.
#[test]
fn an_index_replaces_nothing_else() {
    let folder = Folder::new();
    let limit = ["--max-insns", "3000"];
    let file = recorded(&folder, &program("recursion"), "ntrace", &limit);
    for name in [file.clone(), format!("{file}.toml")] {
        let before = fs::read(&name).unwrap();
        let view = hartrace()
            .args(["view", &file, "--index", &name])
            .output()
            .unwrap();
        assert_eq!(view.status.code(), Some(2));
        let message = String::from_utf8(view.stderr).unwrap();
        assert!(message.contains("HT0007"), "{message}");
        assert_eq!(fs::read(&name).unwrap(), before);
    }
}

/// Formats without places to start from, and logs, are decoded from their start: nothing
/// is missing that other formats have.
#[test]
fn formats_without_places_to_start_from_have_all_details() {
    let folder = Folder::new();
    let elf = program("timer");
    let [pcs, rows] = ["run.pc", "run.csv"].map(|name| folder.name(name));
    let (to_pcs, to_rows) = (format!("pc={pcs}"), format!("ingress={rows}"));
    let more = ["--max-insns", "9000", "--log", &to_pcs, "--log", &to_rows];
    let tandem = recorded(&folder, &elf, "tandem", &more);
    let config = crate::data::config("data.toml");
    let more = ["--max-insns", "9000", "-c", &config];
    let data = recorded(&folder, &elf, "etrace", &more);
    let index = folder.name("index");
    for file in [&tandem, &data, &pcs, &rows] {
        let document = report(&["-q", file, "-e", &elf]);
        let whole = &document["runs"][0];
        let viewer = Viewer::start(&[file, "-e", &elf, "--index", &index, "--slices", "100"]);
        let live = viewer.get("report.json");
        let live = &live["runs"][0];
        let until = whole["axis"]["until"].as_i64().unwrap();
        for from in [0, until / 2, until - 900] {
            let range = (from, from + 800);
            let query = format!("track=0&from={from}&until={}&pixels=1600", range.1);
            let found = viewer.get(&format!("timeline?run=0&{query}"));
            assert_eq!(found.get("lack"), None, "{file}");
            let expected = slices(whole, &whole["tracks"][0]["slices"], range);
            assert_eq!(slices(live, &found, range), expected, "{file}, {range:?}");
        }
        let at = until / 2;
        let rows = viewer.get(&format!("instructions?run=0&track=0&at={at}&count=20"));
        assert_eq!(rows.get("lack"), None, "{file}");
        assert!(numbers(&rows["at"]).len() >= 20, "{file}: {rows}");
        assert!(rows["note"].is_array(), "{file}: {rows}");
    }
}

/// What can be read only once is shown as far as it was kept, and the page says so.
#[test]
fn a_log_from_standard_input_says_what_it_lacks() {
    let folder = Folder::new();
    let elf = program("recursion");
    let log = folder.name("run.pc");
    let to = format!("pc={log}");
    recorded(
        &folder,
        &elf,
        "ntrace",
        &["--max-insns", "9000", "--log", &to],
    );
    let input = fs::File::open(&log).unwrap();
    let viewer = Viewer::start_with(&["-", "-e", &elf, "--slices", "100"], input.into());
    let rows = viewer.get("instructions?run=0&track=0&at=100&count=20");
    assert!(
        rows["lack"].as_str().unwrap().contains("read only once"),
        "{rows}"
    );
    assert_eq!(rows["text"], serde_json::json!([]));
    let slices = viewer.get("timeline?run=0&track=0&from=0&until=50&pixels=1000");
    assert!(slices["lack"].as_str().unwrap().contains("read only once"));
    assert!(!numbers(&slices["begin"]).is_empty());
}

/// Where the trace has times, the instructions are those at the time that was clicked, also
/// between two timestamps.
#[test]
fn instructions_at_a_time() {
    let folder = Folder::new();
    let config = folder.file("c.toml", "[ntrace]\ntimestamps = true\nsync_max = 4\n");
    let file = recorded(&folder, &program("timer"), "ntrace", &["-c", &config]);
    let viewer = Viewer::start(&[&file, "--index", &folder.name("index")]);
    let document = viewer.get("report.json");
    let axis = |name: &str| document["runs"][0]["axis"][name].as_i64().unwrap();
    let (from, until) = (axis("from"), axis("until"));
    for part in 1..12 {
        let at = from + (until - from) * part / 12;
        let rows = viewer.get(&format!("instructions?run=0&track=0&at={at}&count=40"));
        let times = numbers(&rows["at"]);
        let later = times.iter().find(|time| **time > at);
        assert!(times[0] <= at && later.is_some(), "{at}: {times:?}");
    }
}

/// An address that was copied without its last slash still leads to the page.
#[test]
fn an_address_without_its_last_slash() {
    let folder = Folder::new();
    let limit = ["--max-insns", "2000"];
    let file = recorded(&folder, &program("recursion"), "ntrace", &limit);
    let viewer = Viewer::start(&[&file, "--index", &folder.name("index")]);
    let (host, secret) = (format!("Host: {}", viewer.host), &viewer.secret);
    assert_eq!(viewer.ask(&format!("GET /{secret}"), &host).0, 308);
    let other = secret.replace(|c: char| c.is_ascii_digit(), "a");
    assert_eq!(viewer.ask(&format!("GET /{other}b"), &host).0, 404);
}

/// Indexes in the cache directory are used again and count as new then.
#[test]
fn indexes_are_cached() {
    let folder = Folder::new();
    let limit = ["--max-insns", "2000"];
    let file = recorded(&folder, &program("recursion"), "ntrace", &limit);
    let cache = folder.name("cache");
    let view = || {
        let mut command = hartrace();
        command.env("XDG_CACHE_HOME", &cache);
        Viewer::of(command, &[&file], Stdio::null()).get("report.json")
    };
    let first = view();
    let files: Vec<_> = fs::read_dir(format!("{cache}/hartrace"))
        .unwrap()
        .flatten()
        .collect();
    let [index] = files.as_slice() else {
        panic!("{files:?}");
    };
    let long_ago = time::SystemTime::UNIX_EPOCH + time::Duration::from_secs(1_000_000_000);
    let opened = fs::File::options().append(true).open(index.path()).unwrap();
    opened.set_modified(long_ago).unwrap();
    assert_eq!(view(), first);
    let used = fs::metadata(index.path()).unwrap().modified().unwrap();
    assert!(used > long_ago + time::Duration::from_secs(3600));
}

/// Ctrl-C ends it in good order.
#[cfg(unix)]
#[test]
#[allow(clippy::print_stdout)] // what is skipped is said
fn it_ends_with_ctrl_c() {
    // Bit 1 is that of SIGINT.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    if ignored.is_some_and(|mask| mask & 2 != 0) {
        println!("skipped: the tests run where Ctrl-C is ignored, and programs inherit that");
        return;
    }
    let folder = Folder::new();
    let file = recorded(
        &folder,
        &program("recursion"),
        "ntrace",
        &["--max-insns", "2000"],
    );
    let mut viewer = Viewer::start(&[&file, "--index", &folder.name("index")]);
    viewer.get("report.json");
    let id = viewer.process.id().to_string();
    let sent = Command::new("kill").args(["-INT", &id]).status();
    assert!(sent.unwrap().success());
    for _ in 0..100 {
        if let Some(status) = viewer.process.try_wait().unwrap() {
            assert_eq!(status.code(), Some(0));
            return;
        }
        thread::sleep(time::Duration::from_millis(50));
    }
    panic!("it did not end");
}
