//! Profiles in the formats of other tools, read here by hand: their numbers are those of
//! `profile`.

use crate::ctr::{autofdo_counts, profgen_counts};
use crate::timeline::{fields, number, part};
use crate::tiny::{ECALL, addi, elf_with};
use crate::{Folder, fails, repository, run, succeeds, text};
use flate2::read::GzDecoder;
use hartrace_testkit::asm;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::Read as _;

fn program(name: &str) -> String {
    let path = repository().join(format!("programs/{name}/{name}-rv64gc.elf"));
    path.to_str().unwrap().to_owned()
}

/// A program, run and recorded.
fn recorded(folder: &Folder, name: &str, kind: &str, more: &[&str]) -> String {
    let file = folder.name(&format!("{name}.{kind}"));
    let to = format!("{kind}={file}");
    let flag = match kind {
        "spike" | "ingress" => "--log",
        _ => "--trace",
    };
    let elf = program(name);
    let args = [&["run", "-q", &elf, flag, &to], more].concat();
    let output = run(&args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    file
}

/// With timestamps.
fn timed(folder: &Folder, name: &str) -> String {
    let config = folder.file("c.toml", "[ntrace]\ntimestamps = true\n");
    recorded(folder, name, "ntrace", &["-c", &config])
}

/// What functions cost: their own instructions or time, with what they called, and calls.
/// Functions of one name are added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cost {
    own: u64,
    total: u64,
    calls: u64,
}

type Costs = BTreeMap<String, Cost>;

/// JSON lines of a profile.
fn lines(args: &[&str]) -> Vec<Value> {
    let output = run(&[&["profile", "-f", "json"], args].concat());
    let lines = text(&output.stdout).lines();
    lines.map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn of_type<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

/// What `profile` says of functions.
fn truth(lines: &[Value], measure: &str) -> Costs {
    let mut costs = Costs::new();
    for function in of_type(lines, "function") {
        let cost = costs.entry(string(&function["name"])).or_default();
        cost.own += function["self"][measure].as_u64().unwrap_or(0);
        cost.total += function["total"][measure].as_u64().unwrap_or(0);
        cost.calls += function["calls"].as_u64().unwrap();
    }
    costs
}

fn string(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn numbers(value: &Value) -> Vec<i64> {
    let list = value.as_array().unwrap().iter();
    list.map(|v| v.as_i64().unwrap_or(-1)).collect()
}

/// Traps stand on paths too, and are no functions.
fn without_traps(mut costs: Costs) -> Costs {
    costs.retain(|name, _| !name.starts_with('['));
    costs
}

/// Adds the cost of a path, outermost first. A function in it twice counts once.
fn add_path(costs: &mut Costs, path: &[&str], cost: u64) {
    let functions: BTreeSet<&&str> = path.iter().collect();
    for name in functions {
        costs.entry((**name).to_owned()).or_default().total += cost;
    }
    if let Some(last) = path.last() {
        costs.entry((*last).to_owned()).or_default().own += cost;
    }
}

/// Writes a profile of these files; what was said on stderr.
fn write(args: &[&str], format: &str, to: &str) -> String {
    let output = run(&[&["profile", "-f", format, "-o", to], args].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stderr).to_owned()
}

/// Locations from the innermost on, values, and labels.
type PprofSample = (Vec<u64>, Vec<u64>, BTreeMap<String, String>);

/// A profile for pprof.
struct Pprof {
    types: Vec<String>,
    samples: Vec<PprofSample>,
    locations: HashMap<u64, Location>,
    /// Start, limit, name and build id.
    mappings: HashMap<u64, (u64, u64, String, String)>,
}

struct Location {
    mapping: u64,
    address: u64,
    /// Function, file and line, the innermost first.
    lines: Vec<(String, String, u64)>,
}

fn packed(mut bytes: &[u8]) -> Vec<u64> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let size = bytes.iter().position(|b| *b < 0x80).unwrap() + 1;
        let value = bytes[..size].iter().rev();
        all.push(value.fold(0, |value, b| value << 7 | u64::from(b & 0x7f)));
        bytes = &bytes[size..];
    }
    all
}

fn pprof(file: &str) -> Pprof {
    let mut bytes = Vec::new();
    let zipped = fs::read(file).unwrap();
    GzDecoder::new(&zipped[..]).read_to_end(&mut bytes).unwrap();
    let all = fields(&bytes);
    let of = |field: u64| all.iter().filter(move |f| f.0 == field).map(|f| f.2);
    let strings: Vec<&str> = of(6).map(text).collect();
    assert_eq!(strings[0], "");
    let name = |message: &[u8], field| strings[number(message, field).unwrap() as usize].to_owned();
    let mut functions = HashMap::new();
    for function in of(5) {
        let id = number(function, 1).unwrap();
        let known = functions.insert(id, (name(function, 2), name(function, 4)));
        assert!(id != 0 && known.is_none());
        assert!(!name(function, 3).is_empty());
    }
    let mut mappings = HashMap::new();
    for mapping in of(3) {
        let id = number(mapping, 1).unwrap();
        let (start, end) = (number(mapping, 2).unwrap(), number(mapping, 3).unwrap());
        let known = mappings.insert(id, (start, end, name(mapping, 5), name(mapping, 6)));
        assert!(id != 0 && known.is_none() && start < end);
    }
    let mut locations = HashMap::new();
    for location in of(4) {
        let id = number(location, 1).unwrap();
        let parts = fields(location);
        let lines = parts.iter().filter(|f| f.0 == 4).map(|line| {
            let (name, file) = functions[&number(line.2, 1).unwrap()].clone();
            (name, file, number(line.2, 2).unwrap())
        });
        let location = Location {
            mapping: number(location, 2).unwrap_or(0),
            address: number(location, 3).unwrap_or(0),
            lines: lines.collect(),
        };
        assert!(!location.lines.is_empty());
        if location.mapping != 0 {
            let (start, end, ..) = mappings[&location.mapping];
            assert!((start..end).contains(&location.address));
        }
        assert!(id != 0 && locations.insert(id, location).is_none());
    }
    let types: Vec<String> = of(1).map(|of| name(of, 1)).collect();
    let samples = of(2).map(|sample| {
        let parts = fields(sample);
        let labels = parts.iter().filter(|f| f.0 == 3);
        let labels = labels.map(|label| (name(label.2, 1), name(label.2, 2)));
        let values = packed(part(sample, 2).unwrap());
        assert_eq!(values.len(), types.len());
        (packed(part(sample, 1).unwrap()), values, labels.collect())
    });
    Pprof {
        samples: samples.collect(),
        types,
        locations,
        mappings,
    }
}

impl Pprof {
    /// The costs of functions, as `pprof -noinlines` adds them up.
    fn costs(&self, measure: &str) -> Costs {
        let at = self.types.iter().position(|name| name == measure).unwrap();
        let calls = self.types.iter().position(|name| name == "calls").unwrap();
        let mut costs = Costs::new();
        for (path, values, _) in &self.samples {
            let names = path.iter().rev();
            let names = names.map(|id| self.locations[id].lines.last().unwrap().0.as_str());
            let names: Vec<&str> = names.collect();
            add_path(&mut costs, &names, values[at]);
            let last = costs.get_mut(*names.last().unwrap()).unwrap();
            last.calls += values[calls];
        }
        without_traps(costs)
    }
}

/// The events of speedscope, which must nest; own and total costs as it adds them up.
fn speedscope(file: &str) -> (Costs, Vec<(String, u64)>) {
    let document: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let frames = document["shared"]["frames"].as_array().unwrap();
    let names: Vec<String> = frames.iter().map(|frame| string(&frame["name"])).collect();
    let mut costs = Costs::new();
    let mut profiles = Vec::new();
    for profile in document["profiles"].as_array().unwrap() {
        assert_eq!(profile["type"], "evented");
        let mut open: Vec<&str> = Vec::new();
        let mut last = profile["startValue"].as_u64().unwrap();
        for event in profile["events"].as_array().unwrap() {
            let at = event["at"].as_u64().unwrap();
            add_path(&mut costs, &open, at.checked_sub(last).unwrap());
            last = at;
            let name = &names[event["frame"].as_u64().unwrap() as usize];
            match event["type"].as_str().unwrap() {
                "O" => open.push(name),
                "C" => assert_eq!(open.pop(), Some(name.as_str())),
                other => panic!("{other}"),
            }
        }
        assert!(open.is_empty());
        assert_eq!(profile["endValue"].as_u64(), Some(last));
        profiles.push((string(&profile["name"]), last));
    }
    (without_traps(costs), profiles)
}

/// A thread of the Firefox Profiler.
struct Thread {
    name: String,
    /// Names, begins and ends.
    markers: Vec<(String, f64, Option<f64>)>,
}

/// Every column of a table has its length.
fn check_table(table: &Value) -> usize {
    let length = table["length"].as_u64().unwrap() as usize;
    for (name, column) in table.as_object().unwrap() {
        if let Some(column) = column.as_array() {
            assert_eq!(column.len(), length, "{name}");
        }
    }
    length
}

/// The costs of functions as the Firefox Profiler adds them up, and the threads.
fn firefox(file: &str) -> (Costs, Vec<Thread>) {
    let document: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    assert_eq!(document["meta"]["preprocessedProfileVersion"], 70);
    let shared = &document["shared"];
    for (name, table) in shared.as_object().unwrap() {
        if name != "stringArray" {
            check_table(table);
        }
    }
    let strings = shared["stringArray"].as_array().unwrap();
    let string_at = |at: i64| string(&strings[at as usize]);
    let (frames, functions) = (
        numbers(&shared["frameTable"]["func"]),
        numbers(&shared["funcTable"]["name"]),
    );
    let of = numbers(&shared["stackTable"]["frame"]);
    let back = numbers(&shared["stackTable"]["prefixOffset"]);
    let name = |stack: usize| string_at(functions[frames[of[stack] as usize] as usize]);
    let mut costs = Costs::new();
    let mut threads = Vec::new();
    for thread in document["threads"].as_array().unwrap() {
        let samples = &thread["samples"];
        check_table(samples);
        let times = samples["time"].as_array().unwrap();
        let times: Vec<f64> = times.iter().map(|t| t.as_f64().unwrap()).collect();
        assert!(times.is_sorted());
        let scale = match samples["weightType"].as_str().unwrap() {
            "samples" => 1.0,
            "tracing-ms" => 1000.0,
            other => panic!("{other}"),
        };
        let weights = samples["weight"].as_array().unwrap();
        for (stack, weight) in numbers(&samples["stack"]).into_iter().zip(weights) {
            let weight = (weight.as_f64().unwrap() * scale).round() as u64;
            if stack < 0 {
                assert_eq!(weight, 0);
                continue;
            }
            let mut at = stack as usize;
            let mut path = vec![name(at)];
            while back[at] != 0 {
                at = at.checked_sub(back[at] as usize).unwrap();
                path.insert(0, name(at));
            }
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            add_path(&mut costs, &path, weight);
        }
        let markers = &thread["markers"];
        check_table(markers);
        let (begins, ends) = (&markers["startTime"], &markers["endTime"]);
        let markers = numbers(&markers["name"]).into_iter().enumerate();
        let markers = markers.map(|(at, name)| {
            let begin = begins[at].as_f64().unwrap();
            (string_at(name), begin, ends[at].as_f64())
        });
        threads.push(Thread {
            name: string(&thread["name"]),
            markers: markers.collect(),
        });
    }
    (without_traps(costs), threads)
}

/// Costs without calls, which not all formats have.
fn uncalled(mut costs: Costs) -> Costs {
    costs.values_mut().for_each(|cost| cost.calls = 0);
    costs.retain(|_, cost| cost.total > 0);
    costs
}

/// All three formats with call paths have the costs of `profile`.
#[track_caller]
fn check_paths(folder: &Folder, args: &[&str], measure: &str) {
    let expected = truth(&lines(args), measure);
    assert!(expected.values().any(|cost| cost.total > 0));
    let to = folder.name("profile");
    write(args, "pprof", &to);
    assert_eq!(pprof(&to).costs(measure), expected, "{args:?}");
    let args = [args, &["--cost", measure]].concat();
    let expected = uncalled(expected);
    write(&args, "speedscope", &to);
    assert_eq!(uncalled(speedscope(&to).0), expected, "{args:?}");
    write(&args, "firefox", &to);
    assert_eq!(uncalled(firefox(&to).0), expected, "{args:?}");
}

#[test]
fn costs_are_those_of_a_profile() {
    let folder = Folder::new();
    for (name, kind) in [
        ("recursion", "ntrace"),
        ("timer", "etrace"),
        ("longjmp", "ntrace"),
        ("scheduler", "etrace"),
        ("modes", "tandem"),
    ] {
        let file = recorded(&folder, name, kind, &["--max-insns", "12000"]);
        check_paths(&folder, &[&file], "instructions");
    }
    let file = recorded(&folder, "exceptions", "spike", &["--max-insns", "5000"]);
    check_paths(
        &folder,
        &[&file, "-e", &program("exceptions")],
        "instructions",
    );
}

#[test]
fn times_are_those_of_a_profile() {
    let folder = Folder::new();
    let file = timed(&folder, "timer");
    check_paths(&folder, &[&file], "time");
    check_paths(&folder, &[&file], "instructions");
    let to = folder.name("p");
    write(&[&file], "pprof", &to);
    assert_eq!(pprof(&to).types, ["instructions", "time", "calls"]);
}

/// Without timestamps there is no time to measure.
#[test]
fn traces_without_times() {
    let folder = Folder::new();
    let file = recorded(&folder, "timer", "etrace", &["--max-insns", "3000"]);
    let to = folder.name("p");
    write(&[&file], "pprof", &to);
    assert_eq!(pprof(&to).types, ["instructions", "calls"]);
    for format in ["pprof", "speedscope", "firefox"] {
        let args = ["profile", &file, "-f", format, "--cost", "time", "-o", &to];
        fails(&args, 1, "HT0121");
    }
}

/// Several traces are added up, and each has its threads.
#[test]
fn several_traces() {
    let folder = Folder::new();
    let one = recorded(&folder, "timer", "etrace", &["--max-insns", "9000"]);
    let other = recorded(&folder, "timer", "ntrace", &["--max-insns", "20000"]);
    check_paths(&folder, &[&one, &other], "instructions");
    let to = folder.name("p");
    write(&[&one, &other], "speedscope", &to);
    let expected = [("trace 1, hart 0", 9000), ("trace 2, hart 0", 20000)];
    let expected = expected.map(|(name, insns)| (name.to_owned(), insns));
    assert_eq!(speedscope(&to).1, expected);
    for format in ["llvm", "profgen", "autofdo"] {
        write(&[&one, &one], format, &to);
        let twice = fs::read_to_string(&to).unwrap();
        write(&[&one], format, &to);
        assert_ne!(twice, fs::read_to_string(&to).unwrap());
    }
}

/// Threads that a scheduler switches, and harts, are told apart.
#[test]
fn threads_and_harts() {
    let folder = Folder::new();
    let file = recorded(&folder, "scheduler", "etrace", &["--max-insns", "40000"]);
    let to = folder.name("p");
    write(&[&file], "speedscope", &to);
    let (_, threads) = speedscope(&to);
    assert!(threads.len() > 3, "{threads:?}");
    let whole = lines(&[&file])[0]["total"]["instructions"].as_u64();
    assert_eq!(threads.iter().map(|t| t.1).sum::<u64>(), whole.unwrap());
    write(&[&file], "firefox", &to);
    let (_, of_firefox) = firefox(&to);
    let names = |thread: &(String, u64)| thread.0.clone();
    let expected: Vec<String> = threads.iter().map(names).collect();
    let found: Vec<String> = of_firefox.iter().map(|t| t.name.clone()).collect();
    assert_eq!(found, expected);

    let log = recorded(&folder, "recursion", "spike", &["--max-insns", "3000"]);
    let log = fs::read_to_string(log).unwrap();
    let both = |line: &str| format!("{line}\n{}\n", line.replace("core   0", "core   1"));
    let both: String = log.lines().map(both).collect();
    let log = folder.file("both.log", both);
    let args = [log.as_str(), "-e", &program("recursion")];
    check_paths(&folder, &args, "instructions");
    write(&args, "pprof", &to);
    let mut harts: BTreeMap<String, u64> = BTreeMap::new();
    for (_, values, labels) in pprof(&to).samples {
        *harts.entry(labels["hart"].clone()).or_default() += values[0];
    }
    let expected = [("0".to_owned(), 3000), ("1".to_owned(), 3000)];
    assert_eq!(harts, BTreeMap::from(expected));
    write(&[&args[..], &["--hart", "1"]].concat(), "speedscope", &to);
    assert_eq!(speedscope(&to).1, [("hart 1".to_owned(), 3000)]);
}

/// Contexts have threads of their own.
#[test]
fn contexts() {
    let folder = Folder::new();
    let rows = recorded(&folder, "recursion", "ingress", &["--max-insns", "3000"]);
    let rows = fs::read_to_string(rows).unwrap();
    let (title, rows) = rows.split_once('\n').unwrap();
    let column = title.split(',').position(|name| name == "context").unwrap();
    let changed = rows.lines().enumerate().map(|(at, row)| {
        let mut values: Vec<&str> = row.split(',').collect();
        values[column] = if at < 1000 { "5" } else { "7" };
        values.join(",") + "\n"
    });
    let rows = folder.file(
        "rows.csv",
        format!("{title}\n{}", changed.collect::<String>()),
    );
    let args = [rows.as_str(), "-e", &program("recursion")];
    check_paths(&folder, &args, "instructions");
    check_paths(&folder, &args, "time");
    let to = folder.name("p");
    write(&args, "speedscope", &to);
    let found = speedscope(&to).1;
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "hart 0, context 0x5, thread 0",
            "hart 0, context 0x7, thread 1"
        ]
    );
    write(&args, "pprof", &to);
    let labels = pprof(&to).samples.into_iter().map(|(_, _, labels)| labels);
    assert!(
        labels
            .into_iter()
            .all(|labels| labels.contains_key("context"))
    );
}

/// Instructions have their lines, and inlined functions are on the way to them.
#[test]
fn pprof_has_lines_and_the_program() {
    let folder = Folder::new();
    let file = recorded(&folder, "sort", "etrace", &["--max-insns", "30000"]);
    let to = folder.name("p");
    write(&[&file], "pprof", &to);
    let profile = pprof(&to);
    let mut found: BTreeMap<(String, u64), u64> = BTreeMap::new();
    for (path, values, _) in &profile.samples {
        let (_, file, line) = &profile.locations[&path[0]].lines[0];
        *found.entry((file.clone(), *line)).or_default() += values[0];
    }
    found.retain(|(_, line), count| *line > 0 && *count > 0);
    let mut expected: BTreeMap<(String, u64), u64> = BTreeMap::new();
    for line in of_type(&lines(&[&file]), "line") {
        let at = (string(&line["file"]), line["line"].as_u64().unwrap());
        *expected.entry(at).or_default() += line["instructions"].as_u64().unwrap();
    }
    assert_eq!(found, expected);
    assert!(profile.locations.values().any(|l| l.lines.len() > 1));
    // Callers are where they call.
    let main = |l: &&Location| l.lines.last().unwrap().0 == "main";
    let places: BTreeSet<u64> = profile
        .locations
        .values()
        .filter(main)
        .map(|l| l.address)
        .collect();
    assert!(places.len() > 5, "{places:x?}");
    let info = succeeds(&["info", &program("sort")]);
    let (_, _, name, id) = profile.mappings.values().next().unwrap();
    assert!(name.ends_with("sort-rv64gc.elf"));
    assert!(info.contains(id.as_str()) && id.len() == 40, "{id}\n{info}");
    let labelled = |(_, _, labels): &PprofSample| labels["hart"] == "0";
    assert!(profile.samples.iter().all(labelled));
}

/// A marker for each trap, from where it was taken to where it returned.
#[test]
fn markers_are_the_traps() {
    let folder = Folder::new();
    let file = recorded(&folder, "timer", "etrace", &[]);
    let to = folder.name("p");
    write(&[&file], "firefox", &to);
    let (_, threads) = firefox(&to);
    let mut found: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (name, begin, end) in threads.iter().flat_map(|thread| &thread.markers) {
        let length = end.map_or(0.0, |end| end - begin) * 1000.0;
        let sum = found.entry(name.clone()).or_default();
        *sum = (sum.0 + 1, sum.1 + length.round() as u64);
    }
    let table = succeeds(&["interrupts", &file, "--exceptions", "-f", "json"]);
    let rows = table
        .lines()
        .map(|l| serde_json::from_str::<Value>(l).unwrap());
    let causes = rows.filter(|row| row["type"] == "cause").map(|row| {
        let count = row["count"].as_u64().unwrap();
        let total = row["total"]["instructions"].as_u64().unwrap();
        (string(&row["name"]), (count, total))
    });
    assert_eq!(found, causes.collect());
}

/// What is missing is no reason for other numbers.
#[test]
fn damaged_traces() {
    let folder = Folder::new();
    for kind in ["ntrace", "etrace"] {
        let file = recorded(&folder, "scheduler", kind, &["--max-insns", "20000"]);
        let mut bytes = fs::read(&file).unwrap();
        for part in [3, 5, 6] {
            let at = bytes.len() * part / 8;
            bytes[at..at + 12].fill(0x55);
        }
        fs::write(&file, bytes).unwrap();
        check_paths(&folder, &[&file], "instructions");
        let to = folder.name("p");
        write(&[&file], "firefox", &to);
        let (_, threads) = firefox(&to);
        let markers = threads.iter().flat_map(|thread| &thread.markers);
        assert!(markers.filter(|(name, ..)| name == "gap").count() > 0);
        check_counts(&folder, &[&file]);
    }
}

/// Ranges of code and jumps: how often each instruction was executed, and where from.
#[track_caller]
fn check_counts(folder: &Folder, args: &[&str]) {
    let to = folder.name("counts");
    write(args, "profgen", &to);
    let (ranges, branches) = profgen_counts(&fs::read_to_string(&to).unwrap());
    let hex = |value: &Value| u64::from_str_radix(&string(value)[2..], 16).unwrap();
    let expected: BTreeMap<u64, u64> = of_type(&lines(args), "instruction")
        .iter()
        .map(|insn| (hex(&insn["pc"]), insn["count"].as_u64().unwrap()))
        .collect();
    let mut found: BTreeMap<u64, u64> = BTreeMap::new();
    for ((first, last), count) in &ranges {
        for (pc, _) in expected.range(first..=last) {
            *found.entry(*pc).or_default() += count;
        }
    }
    assert_eq!(found, expected);
    write(args, "autofdo", &to);
    let fdo = fs::read_to_string(&to).unwrap();
    let first = autofdo_counts(&fdo, 0).0.first_key_value().unwrap().0.0;
    let up = ranges.first_key_value().unwrap().0.0 - first;
    assert_eq!(autofdo_counts(&fdo, up), (ranges, branches));
}

#[test]
fn counts_of_code_and_jumps() {
    let folder = Folder::new();
    for (name, kind) in [
        ("recursion", "ntrace"),
        ("timer", "etrace"),
        ("modes", "tandem"),
    ] {
        let file = recorded(&folder, name, kind, &["--max-insns", "20000"]);
        check_counts(&folder, &[&file]);
    }
}

/// A function of LLVM's text: total, head, and counts by line, with those of functions
/// that were inlined added to none.
fn llvm(text: &str) -> BTreeMap<String, (u64, u64, BTreeMap<String, u64>)> {
    let mut functions = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines() {
        match line.strip_prefix(' ') {
            None => {
                let mut parts = line.rsplitn(3, ':');
                let mut next = || parts.next().unwrap();
                let (head, total) = (next().parse().unwrap(), next().parse().unwrap());
                current = next().to_owned();
                let known = functions.insert(current.clone(), (total, head, BTreeMap::new()));
                assert!(known.is_none(), "{current}");
            }
            Some(line) if !line.starts_with(' ') => {
                let (place, rest) = line.split_once(": ").unwrap();
                let count = rest.split(' ').next().unwrap();
                if let Ok(count) = count.parse() {
                    let function = functions.get_mut(&current).unwrap();
                    function.2.insert(place.to_owned(), count);
                }
            }
            Some(_) => {}
        }
    }
    functions
}

/// Totals are executed instructions, heads are calls, and lines have the counts of their
/// instructions.
#[test]
fn an_llvm_profile_has_the_counts_of_lines() {
    let folder = Folder::new();
    let file = recorded(&folder, "recursion", "etrace", &[]);
    let to = folder.name("p");
    assert_eq!(write(&[&file], "llvm", &to), "");
    let found = llvm(&fs::read_to_string(&to).unwrap());
    let lines = lines(&[&file]);
    let expected = truth(&lines, "instructions");
    let whole: u64 = found.values().map(|f| f.0).sum();
    assert_eq!(lines[0]["total"]["instructions"].as_u64(), Some(whole));
    let mut compared = 0;
    for (name, cost) in expected.iter().filter(|(name, _)| !name.contains('.')) {
        let (total, head, _) = &found[name];
        assert_eq!((*total, *head), (cost.own, cost.calls.max(1)), "{name}");
        compared += 1;
    }
    assert!(compared > 10);
    // The declaration of `queens` is two lines before its first statement.
    let source = fs::read_to_string(repository().join("programs/recursion/recursion.c")).unwrap();
    let declared = source
        .lines()
        .position(|l| l.contains("queens(unsigned"))
        .unwrap() as u64
        + 1;
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for line in of_type(&lines, "line") {
        let number = line["line"].as_u64().unwrap();
        if line["file"] == "programs/recursion/recursion.c" && number >= declared {
            let count = line["count"].as_u64().unwrap();
            counts.insert((number - declared).to_string(), count);
        }
    }
    let (_, _, lines) = &found["queens"];
    assert!(lines.len() > 8);
    for (place, count) in lines {
        assert_eq!(counts.get(place), Some(count), "line {place} of queens");
    }
}

/// Samples give the same kind of profile: all of a run is in the records of a short one.
#[test]
fn records_give_an_llvm_profile() {
    let folder = Folder::new();
    let file = recorded(&folder, "recursion", "ctr", &["--every", "50"]);
    let output = run(&["ctr", &file, "-f", "llvm"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let found = llvm(text(&output.stdout));
    let (total, head, lines) = &found["queens"];
    assert!(*total > 0 && *head > 0 && lines.len() > 8, "{total} {head}");
}

/// Names of functions may be anything.
#[test]
fn odd_names() {
    let folder = Folder::new();
    let words = [
        asm::jal(1, 12),
        asm::jal(1, 16),
        ECALL,
        addi(5, 0, 1),
        asm::jalr(0, 1, 0),
        addi(5, 0, 2),
        asm::jalr(0, 1, 0),
    ];
    let names = [("_start", 0), ("a\"b\\c;:d\u{1}\t<e>", 3), ("~~~", 5)];
    let mut elf = elf_with(&words, &names);
    // Not UTF-8.
    let at = elf.windows(3).position(|w| w == b"~~~").unwrap();
    elf[at..at + 3].copy_from_slice(&[0xff, 0x80, b'x']);
    let elf = folder.file("odd.elf", elf);
    let trace = folder.name("odd.etrace");
    let to = format!("etrace={trace}");
    let output = run(&["run", "-q", &elf, "--max-insns", "6", "--trace", &to]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    check_paths(&folder, &[&trace], "instructions");
    check_counts(&folder, &[&trace]);
    let names = truth(&lines(&[&trace]), "instructions");
    let names: Vec<&String> = names.keys().collect();
    assert_eq!(names, ["_start", "a\"b\\c;:d^A^I<e>", "\u{fffd}\u{fffd}x"]);
    // No lines, no functions for a compiler.
    fails(&["profile", &trace, "-f", "llvm"], 1, "HT0123");
}

#[test]
fn usage() {
    let folder = Folder::new();
    let file = recorded(&folder, "recursion", "etrace", &["--max-insns", "300"]);
    for format in [
        "pprof",
        "speedscope",
        "firefox",
        "llvm",
        "profgen",
        "autofdo",
    ] {
        let profile = ["profile", &file, "-f", format];
        for more in [
            &["--baseline", &file][..],
            &["--by", "hart"],
            &["--of", "lines"],
        ] {
            let output = run(&[&profile[..], more].concat());
            assert_eq!(output.status.code(), Some(2), "{format} {more:?}");
        }
    }
    // A tandem trace has its code, but no file that a compiler could find it in.
    let file = recorded(&folder, "recursion", "tandem", &["--max-insns", "300"]);
    fs::remove_file(format!("{file}.toml")).unwrap();
    for format in ["llvm", "profgen", "autofdo"] {
        let output = run(&["profile", &file, "-f", format]);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains("error[HT0304]"));
    }
    let to = folder.name("p");
    write(&[&file], "pprof", &to);
    assert!(pprof(&to).mappings.is_empty());
}

/// Same input, same bytes.
#[test]
fn files_do_not_depend_on_chance() {
    let folder = Folder::new();
    let file = recorded(&folder, "scheduler", "ntrace", &["--max-insns", "9000"]);
    let (one, other) = (folder.name("one"), folder.name("other"));
    for format in [
        "pprof",
        "speedscope",
        "firefox",
        "llvm",
        "profgen",
        "autofdo",
    ] {
        write(&[&file], format, &one);
        write(&[&file], format, &other);
        assert!(
            fs::read(&one).unwrap() == fs::read(&other).unwrap(),
            "{format}"
        );
    }
}
