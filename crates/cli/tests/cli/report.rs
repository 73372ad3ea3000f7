//! `hartrace report`: what is in the page.

use crate::{Folder, fails, repository, run, succeeds, text};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

pub(crate) fn program(name: &str) -> String {
    let path = repository().join(format!("programs/{name}/{name}-rv64gc.elf"));
    path.to_str().unwrap().to_owned()
}

/// A program recorded as a trace of this kind; the name of the file.
pub(crate) fn recorded(folder: &Folder, elf: &str, kind: &str, more: &[&str]) -> String {
    let file = folder.name(&format!("run.{kind}"));
    let trace = format!("{kind}={file}");
    let output = run(&[&["run", "-q", elf, "--trace", &trace][..], more].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    file
}

/// The data of a page.
fn data(page: &str) -> Value {
    let (_, rest) = page
        .split_once("<script type=\"application/json\" id=\"data\">")
        .unwrap();
    let (json, _) = rest.split_once("</script>").unwrap();
    serde_json::from_str(json).unwrap()
}

pub(crate) fn report(args: &[&str]) -> Value {
    let output = run(&[&["report"][..], args].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    data(text(&output.stdout))
}

pub(crate) fn numbers(column: &Value) -> Vec<i64> {
    let list = column.as_array().unwrap().iter();
    list.map(|value| value.as_i64().unwrap()).collect()
}

fn hex(value: &Value) -> u64 {
    let digits = value.as_str().unwrap().trim_start_matches("0x");
    u64::from_str_radix(digits, 16).unwrap()
}

fn strings(run: &Value) -> Vec<&str> {
    let list = run["strings"].as_array().unwrap().iter();
    list.map(|text| text.as_str().unwrap()).collect()
}

fn function_names(run: &Value) -> Vec<&str> {
    let strings = strings(run);
    let names = numbers(&run["functions"]["name"]);
    names.iter().map(|&name| strings[name as usize]).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slice {
    begin: usize,
    end: usize,
    depth: i64,
    function: i64,
    kind: i64,
    flags: i64,
}

/// The slices of a track, checked for their nesting.
fn slices(track: &Value) -> Vec<Slice> {
    let column = |name: &str| numbers(&track["slices"][name]);
    let [begin, end, depth] = ["begin", "end", "depth"].map(column);
    let [function, kind, flags] = ["function", "kind", "flags"].map(column);
    let mut all: Vec<Slice> = Vec::new();
    let mut outer: Vec<Slice> = Vec::new();
    for at in 0..begin.len() {
        let slice = Slice {
            begin: begin[at] as usize,
            end: end[at] as usize,
            depth: depth[at],
            function: function[at],
            kind: kind[at],
            flags: flags[at],
        };
        while outer.last().is_some_and(|last| last.depth >= slice.depth) {
            outer.pop();
        }
        assert_eq!(outer.len() as i64, slice.depth, "{slice:?}");
        if let Some(around) = outer.last() {
            assert!(around.begin <= slice.begin && slice.end <= around.end);
        }
        outer.push(slice);
        all.push(slice);
    }
    all
}

const GAP: i64 = 3;
const CALL: i64 = 0;
const TAIL_CALL: i64 = 1;

/// The addresses that the hart itself logged say where each function was entered and
/// that each call returned to the instruction after it.
#[test]
fn slices_are_what_the_hart_did() {
    for name in ["recursion", "sort", "timer", "callbacks"] {
        let folder = Folder::new();
        let elf = program(name);
        let log = format!("pc={}", folder.name("run.pc"));
        let more = ["--log", &log, "--max-insns", "40000"];
        let file = recorded(&folder, &elf, "ntrace", &more);
        let pcs = fs::read_to_string(folder.path("run.pc")).unwrap();
        let pcs: Vec<u64> = pcs
            .lines()
            .map(|pc| u64::from_str_radix(pc, 16).unwrap())
            .collect();
        let document = report(&[&file]);
        let run = &document["runs"][0];
        assert_eq!(run["instructions"], pcs.len());
        let starts: Vec<u64> = run["functions"]["address"]
            .as_array()
            .unwrap()
            .iter()
            .map(hex)
            .collect();
        let sizes = numbers(&run["functions"]["size"]);
        let within = |pc: u64, f: usize| pc.wrapping_sub(starts[f]) < sizes[f] as u64;
        let mut entered: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for track in run["tracks"].as_array().unwrap() {
            for slice in slices(track) {
                if slice.kind != CALL && slice.kind != TAIL_CALL {
                    continue;
                }
                let f = slice.function as usize;
                entered.entry(f).or_default().push(slice.begin);
                assert!(within(pcs[slice.begin], f), "{name}: {slice:?}");
                assert!(
                    within(pcs[slice.end - 1], f) || slice.flags != 0,
                    "{name}: {slice:?}"
                );
                let is_call = slice.kind == CALL && slice.flags == 0 && slice.begin > 0;
                let called = pcs.get(slice.begin.wrapping_sub(1));
                // A handler is not called.
                let handler =
                    is_call && numbers(&run["traps"]["at"]).contains(&(slice.begin as i64));
                if let (true, Some(called), Some(back)) =
                    (is_call && !handler, called, pcs.get(slice.end))
                {
                    let distance = back.wrapping_sub(*called);
                    // Tail calls in between return to the same place.
                    let replaced = slices_follow(track, &slice);
                    assert!(matches!(distance, 2 | 4) || replaced, "{name}: {slice:?}");
                }
            }
        }
        // A function is entered where its first instruction comes from outside of it.
        for (f, start) in starts.iter().enumerate() {
            let comes = |at: &usize| pcs[*at] == *start && (*at == 0 || !within(pcs[at - 1], f));
            let expected: Vec<usize> = (0..pcs.len()).filter(comes).collect();
            let mut found = entered.remove(&f).unwrap_or_default();
            found.sort_unstable();
            // Recursion enters from inside.
            for at in &expected {
                assert!(
                    found.binary_search(at).is_ok(),
                    "{name}: function {f} at {at}"
                );
            }
        }
    }
}

/// Whether a tail call takes the place of a slice.
fn slices_follow(track: &Value, slice: &Slice) -> bool {
    let next = |other: &Slice| other.begin == slice.end && other.depth == slice.depth;
    slices(track)
        .iter()
        .any(|other| next(other) && other.kind == TAIL_CALL)
}

/// Functions, branches and counts are those of `profile` and `coverage`.
#[test]
fn numbers_are_those_of_the_other_views() {
    let folder = Folder::new();
    let file = recorded(
        &folder,
        &program("recursion"),
        "ntrace",
        &["--max-insns", "60000"],
    );
    let document = report(&[&file]);
    let run = &document["runs"][0];
    let names = function_names(run);
    let own = numbers(&run["functions"]["self"]);
    let total = numbers(&run["functions"]["total"]);
    let calls = numbers(&run["functions"]["calls"]);
    let profile = succeeds(&["profile", &file, "-f", "json"]);
    let lines = profile
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut compared = 0;
    for function in lines.filter(|line| line["type"] == "function") {
        let at = names
            .iter()
            .position(|name| function["name"] == **name)
            .unwrap();
        assert_eq!(function["self"]["instructions"], own[at], "{function}");
        assert_eq!(function["total"]["instructions"], total[at], "{function}");
        assert_eq!(function["calls"], calls[at], "{function}");
        compared += 1;
    }
    assert!(compared > 5, "{profile}");
    // Branches, and the code they are in.
    let taken = numbers(&run["branches"]["taken"]);
    let coverage = succeeds(&["branches", &file, "-f", "json"]);
    let lines = coverage
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let branches: Vec<Value> = lines.filter(|line| line["type"] == "branch").collect();
    assert_eq!(branches.len(), taken.len());
    let all: i64 = branches.iter().map(|b| b["taken"].as_i64().unwrap()).sum();
    assert_eq!(all, taken.iter().sum::<i64>());
    let code = run["code"].as_array().unwrap().iter();
    let in_code: i64 = code
        .flat_map(|code| numbers(&code["rows"]["taken"]))
        .filter(|taken| *taken > 0)
        .sum();
    assert_eq!(in_code, all);
    // The flame graph has every instruction once.
    let flame = numbers(&run["flame"]["self"]);
    assert_eq!(
        flame.iter().sum::<i64>(),
        run["instructions"].as_i64().unwrap()
    );
}

/// Every format and log gives the same slices.
#[test]
fn formats_agree() {
    let folder = Folder::new();
    let elf = program("recursion");
    // A list of pcs does not say where its last instruction went: it is no jump.
    let more = ["--max-insns", "5003"];
    let log = format!("pc={}", folder.name("run.pc"));
    let first = recorded(
        &folder,
        &elf,
        "ntrace",
        &[&more[..], &["--log", &log]].concat(),
    );
    let of = |file: &str| {
        let document = report(&[file, "-e", &elf]);
        slices(&document["runs"][0]["tracks"][0])
    };
    let expected = of(&first);
    assert!(expected.len() > 100);
    for kind in ["etrace", "tandem"] {
        let file = recorded(&folder, &elf, kind, &more);
        assert!(of(&file) == expected, "{kind}");
    }
    assert!(of(&folder.name("run.pc")) == expected);
}

/// Threads and interrupts of a scheduler.
#[test]
fn threads_have_tracks() {
    let folder = Folder::new();
    let file = recorded(
        &folder,
        &program("scheduler"),
        "etrace",
        &["--max-insns", "20000"],
    );
    let document = report(&[&file]);
    let run = &document["runs"][0];
    let tracks = run["tracks"].as_array().unwrap();
    assert_eq!(tracks.len(), 4, "{tracks:?}");
    assert_eq!(tracks[2]["name"], "hart 0, thread 2");
    for track in tracks {
        assert!(!slices(track).is_empty());
    }
    let interrupts = run["interrupts"].as_array().unwrap();
    assert_eq!(interrupts[0]["name"], "machine timer interrupt");
    let count = interrupts[0]["count"].as_u64().unwrap() as usize;
    assert_eq!(count, run["traps"]["at"].as_array().unwrap().len());
    assert!(interrupts[0]["duration"]["p50"].as_u64() > Some(20));
}

/// A symbol that would end the element it is in.
#[test]
fn names_do_no_harm() {
    let folder = Folder::new();
    let mut elf = fs::read(program("recursion")).unwrap();
    let name = b"\0fibonacci\0";
    let at = elf
        .windows(name.len())
        .rposition(|bytes| bytes == name)
        .unwrap();
    elf[at + 1..at + 10].copy_from_slice(b"</script>");
    let elf = folder.file("hostile.elf", elf);
    let file = recorded(&folder, &elf, "ntrace", &["--max-insns", "200000"]);
    let page = succeeds(&["report", &file, "-e", &elf]);
    assert!(page.contains(r"\u003c/script>"));
    let document = data(&page);
    let names = function_names(&document["runs"][0]);
    assert!(names.contains(&"</script>"), "{names:?}");
    let policy = "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'";
    assert!(page.contains(policy));
}

/// What is missing is in the report, and --strict makes it an error.
#[test]
fn gaps_are_shown() {
    let folder = Folder::new();
    let elf = program("recursion");
    let file = recorded(&folder, &elf, "ntrace", &["--max-insns", "50000"]);
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 8].fill(0xff);
    fs::write(&file, &bytes).unwrap();
    let document = report(&[&file]);
    let run = &document["runs"][0];
    let gaps = &run["gaps"];
    let count = gaps["at"].as_array().unwrap().len();
    assert!(count > 0);
    assert!(
        gaps["code"][0].as_str().unwrap().starts_with("NT"),
        "{gaps}"
    );
    let drawn = run["tracks"].as_array().unwrap().iter().flat_map(slices);
    assert_eq!(drawn.filter(|slice| slice.kind == GAP).count(), count);
    let output = run_strict(&file);
    assert_eq!(output.0, Some(3), "{}", output.1);
}

fn run_strict(file: &str) -> (Option<i32>, String) {
    let output = run(&["report", file, "--strict", "-o", &format!("{file}.html")]);
    assert!(fs::metadata(format!("{file}.html")).is_err());
    (output.status.code(), text(&output.stderr).to_owned())
}

#[test]
fn several_harts_have_tracks() {
    let folder = Folder::new();
    let elf = program("recursion");
    let log = folder.name("run.spike");
    let output = run(&[
        "run",
        "-q",
        &elf,
        "--max-insns",
        "3000",
        "--log",
        &format!("spike={log}"),
    ]);
    assert_eq!(output.status.code(), Some(0));
    let one = fs::read_to_string(&log).unwrap();
    let both = |line: &str| format!("{line}\n{}\n", line.replace("core   0", "core   1"));
    let both: String = one.lines().map(both).collect();
    let both = folder.file("both.log", both);
    let document = report(&[&both, "-e", &elf]);
    let run = &document["runs"][0];
    let tracks = run["tracks"].as_array().unwrap();
    let names: Vec<&Value> = tracks.iter().map(|track| &track["name"]).collect();
    assert_eq!(names, ["hart 0", "hart 1"]);
    assert!(slices(&tracks[0]) == slices(&tracks[1]));
    let only = report(&[&both, "-e", &elf, "--hart", "1"]);
    assert_eq!(only["runs"][0]["tracks"].as_array().unwrap().len(), 1);
    // Roots of the flame graph.
    let strings = strings(run);
    let roots = numbers(&run["flame"]["parent"]);
    let functions = numbers(&run["flame"]["function"]);
    let roots = functions
        .iter()
        .zip(&roots)
        .filter(|(_, parent)| **parent == -1);
    let roots: Vec<&str> = roots.map(|(f, _)| strings[(-1 - f) as usize]).collect();
    assert_eq!(roots, ["hart 0", "hart 1"]);
}

#[test]
fn two_traces_are_compared() {
    let folder = Folder::new();
    let elf = program("recursion");
    let before = recorded(&folder, &elf, "ntrace", &["--max-insns", "5000"]);
    let after = recorded(&folder, &elf, "etrace", &["--max-insns", "9000"]);
    let source = repository();
    let source = ["--source-dir", source.to_str().unwrap()];
    let document = report(&[&[before.as_str(), &after], &source[..]].concat());
    for run in document["runs"].as_array().unwrap() {
        let lines = &run["sources"][0]["lines"];
        assert!(lines.as_array().unwrap().len() > 50);
        assert_eq!(
            run["left_out"].as_array().unwrap().len(),
            0,
            "{}",
            run["left_out"]
        );
    }
    assert_eq!(document["runs"].as_array().unwrap().len(), 2);
    let changes = document["compare"]["functions"].as_array().unwrap();
    let sum = |side: &str| {
        changes
            .iter()
            .map(|c| c[side].as_u64().unwrap())
            .sum::<u64>()
    };
    assert_eq!((sum("before"), sum("after")), (5000, 9000));
    let difference = document["compare"]["first_difference"].as_str().unwrap();
    assert!(
        difference.starts_with("at instruction 5000, after 0x"),
        "{difference}"
    );
    assert!(
        difference.contains("continues at its end, the second at 0x"),
        "{difference}"
    );
    let same = report(&[&before, &before]);
    assert_eq!(same["compare"]["first_difference"], Value::Null);
    assert_eq!(report(&[&before])["compare"], Value::Null);
}

/// Addresses of two programs are not compared.
#[test]
fn runs_of_two_programs_are_compared_by_name() {
    let folder = Folder::new();
    let limit = ["--max-insns", "5000"];
    let one = recorded(&folder, &program("recursion"), "ntrace", &limit);
    let other = recorded(&folder, &program("sieve"), "etrace", &limit);
    let page = folder.name("page.html");
    let made = crate::hartrace()
        .args(["report", &one, &other, "-o", &page])
        .output()
        .unwrap();
    assert_eq!(made.status.code(), Some(0));
    let message = String::from_utf8(made.stderr).unwrap();
    assert!(message.contains("warning[HT0122]"), "{message}");
    let document = report(&[&one, &other]);
    assert_eq!(document["compare"]["first_difference"], Value::Null);
    assert!(
        !document["compare"]["functions"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn timestamps_make_the_axis() {
    let folder = Folder::new();
    let config = folder.file("c.toml", "[ntrace]\ntimestamps = true\n");
    let file = recorded(&folder, &program("timer"), "ntrace", &["-c", &config]);
    let document = report(&[&file]);
    let run = &document["runs"][0];
    assert_eq!(run["axis"]["unit"], "time");
    let (from, until) = (run["axis"]["from"].as_u64(), run["axis"]["until"].as_u64());
    assert!(until > from, "{}", run["axis"]);
    for slice in slices(&run["tracks"][0]) {
        assert!(slice.begin as u64 >= from.unwrap() && slice.end as u64 <= until.unwrap());
    }
    let times = numbers(&run["functions"]["self_time"]);
    assert!(times.iter().sum::<i64>() > 0);
    assert_eq!(
        run["statistics"]["bandwidth"]["unit"]
            .as_str()
            .unwrap()
            .split(' ')
            .next(),
        Some("bytes")
    );
}

/// Bytes are counted where they report instructions: a program that returns from many calls
/// at first and then loops has most bytes at its start, though the trace is short.
#[test]
fn bytes_of_a_short_trace_are_where_they_belong() {
    let folder = Folder::new();
    let limit = ["--max-insns", "20000"];
    for kind in ["ntrace", "etrace"] {
        let file = recorded(&folder, &program("recursion"), kind, &limit);
        let size = fs::metadata(&file).unwrap().len();
        assert!(size < 20_000);
        let document = report(&["-q", &file]);
        let bandwidth = &document["runs"][0]["statistics"]["bandwidth"];
        assert_eq!(bandwidth["unit"], "bytes per 100 instructions");
        let bytes = numbers(&bandwidth["bytes"]);
        assert_eq!((bytes.len(), bytes.iter().sum::<i64>()), (200, size as i64));
        // What the dump has: messages with their offsets, against the instructions that are
        // known after each.
        let half = bytes[..100].iter().sum::<i64>();
        let cut = folder.file("half", &fs::read(&file).unwrap()[..half as usize]);
        fs::copy(format!("{file}.toml"), format!("{cut}.toml")).unwrap();
        let known = report(&["-q", &cut])["runs"][0]["instructions"].clone();
        let known = known.as_i64().unwrap();
        assert!((9_800..=10_200).contains(&known), "{kind}: {known}");
        let varied = bytes.iter().collect::<std::collections::BTreeSet<_>>();
        assert!(varied.len() > 5, "{kind}: {bytes:?}");
    }
}

/// Source text is found around the program. Without it, lines have their counts.
#[test]
fn lines_are_counted_without_their_text() {
    let folder = Folder::new();
    let elf = program("recursion");
    let limit = ["--max-insns", "20000"];
    let file = recorded(&folder, &elf, "ntrace", &limit);
    let lone = folder.file("lone.elf", fs::read(&elf).unwrap());
    let source = |elf: &str| {
        let document = report(&["-q", &file, "-e", elf]);
        let run = &document["runs"][0];
        let texts = strings(run);
        let sources = run["sources"].as_array().unwrap().clone();
        let is_it = |source: &Value| {
            let file = source["file"].as_u64().unwrap() as usize;
            texts[file].ends_with("recursion.c")
        };
        (
            sources.into_iter().find(is_it).unwrap(),
            run["left_out"].to_string(),
        )
    };
    let (found, left_out) = source(&elf);
    assert!(!found["lines"].as_array().unwrap().is_empty());
    assert!(!left_out.contains("was not found"), "{left_out}");
    let (missing, left_out) = source(&lone);
    assert!(left_out.contains("was not found"), "{left_out}");
    assert_eq!(missing["lines"], serde_json::json!([]));
    let (lines, counts) = (numbers(&missing["numbers"]), numbers(&missing["count"]));
    assert!(lines.len() > 20 && lines.len() == counts.len());
    let known = numbers(&found["count"]);
    for (line, count) in lines.iter().zip(counts) {
        assert_eq!(known[*line as usize - 1], count, "line {line}");
    }
}

/// The longest traps lead to themselves, though others begin at the same place.
#[test]
fn the_longest_traps_are_in_the_table() {
    let folder = Folder::new();
    let file = recorded(&folder, &program("timer"), "etrace", &[]);
    let document = report(&[&file]);
    let run = &document["runs"][0];
    let traps = &run["traps"];
    let mut seen = 0;
    for cause in run["interrupts"].as_array().unwrap() {
        for worst in cause["worst"].as_array().unwrap() {
            let trap = worst["trap"].as_u64().unwrap() as usize;
            for (one, other) in [("at", "at"), ("depth", "depth"), ("track", "track")] {
                assert_eq!(worst[one], traps[other][trap]);
            }
            assert_eq!(cause["cause"], traps["cause"][trap]);
            let end = traps["end"][trap].as_i64().unwrap();
            let length = end - worst["at"].as_i64().unwrap() - worst["away"].as_i64().unwrap();
            assert_eq!(worst["duration"], length);
            seen += 1;
        }
    }
    assert!(seen > 8, "{seen}");
}

#[test]
fn a_part_of_a_trace() {
    let folder = Folder::new();
    let file = recorded(
        &folder,
        &program("recursion"),
        "ntrace",
        &["--max-insns", "9000"],
    );
    let document = report(&[&file, "--from", "1000", "--until", "3000"]);
    assert_eq!(document["runs"][0]["instructions"], 2000);
    fails(&["report", &file, "--from", "1M"], 2, "HT0310");
    fails(&["report", &file, "--from", "nowhere"], 2, "HT0309");
}

/// Less room, less in the page, and the page says so.
#[test]
fn pages_have_a_size() {
    let folder = Folder::new();
    let file = recorded(&folder, &program("recursion"), "ntrace", &[]);
    let page = folder.name("run.html");
    succeeds(&["report", &file, "-o", &page]);
    assert!(fs::metadata(&page).unwrap().len() < 20_000_000);
    let output = run(&["report", &file, "--max-size", "1000"]);
    assert_eq!(output.status.code(), Some(2));
}

/// A page of which little is right says so.
#[test]
fn a_trace_of_another_program_has_warnings() {
    let folder = Folder::new();
    let file = recorded(&folder, &program("timer"), "ntrace", &[]);
    let right = report(&[&file]);
    assert_eq!(right["runs"][0]["warnings"], serde_json::json!([]));
    fs::remove_file(format!("{file}.toml")).unwrap();
    let wrong = report(&[&file, "-e", &program("recursion")]);
    let warnings = wrong["runs"][0]["warnings"].to_string();
    for part in ["HT0401", "% of the trace was decoded", "HT0110"] {
        assert!(warnings.contains(part), "{part}: {warnings}");
    }
}

#[test]
fn what_is_no_trace_is_refused() {
    let folder = Folder::new();
    let elf = program("recursion");
    let empty = folder.file("empty", "");
    let page = folder.name("page.html");
    let output = run(&["report", &empty, "-e", &elf, "-o", &page]);
    assert_eq!(output.status.code(), Some(5), "{}", text(&output.stderr));
    let output = run(&["report", "-", "-", "-e", &elf]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(fs::metadata(&page).is_err());
}
