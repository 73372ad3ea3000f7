//! `timeline`: the files that viewers read, decoded here by hand.

use crate::{Folder, hartrace, repository, run, succeeds, text};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fs;

/// The fields of a message of Protocol Buffers: number, value, bytes.
pub(crate) fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        match tag & 7 {
            0 => all.push((tag >> 3, varint(&mut bytes), &[][..])),
            1 => {
                let (value, rest) = bytes.split_at(8);
                let value = u64::from_le_bytes(value.try_into().unwrap());
                all.push((tag >> 3, value, &[][..]));
                bytes = rest;
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (value, rest) = bytes.split_at(length);
                all.push((tag >> 3, 0, value));
                bytes = rest;
            }
            other => panic!("wire type {other}"),
        }
    }
    all
}

pub(crate) fn number(message: &[u8], field: u64) -> Option<u64> {
    let found = fields(message).into_iter().find(|f| f.0 == field);
    found.map(|f| f.1)
}

pub(crate) fn part(message: &[u8], field: u64) -> Option<&[u8]> {
    let found = fields(message).into_iter().find(|f| f.0 == field);
    found.map(|f| f.2)
}

/// A slice as a file has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Found {
    pub(crate) track: String,
    pub(crate) begin: u64,
    pub(crate) depth: usize,
    pub(crate) end: u64,
    pub(crate) name: String,
    pub(crate) category: String,
    /// Without the slices inside.
    own: u64,
}

/// Begins and ends of one track, which must nest.
#[derive(Default)]
struct Nesting {
    track: String,
    open: Vec<Found>,
    last: u64,
}

impl Nesting {
    fn begin(&mut self, track: &str, begin: u64, name: &str, category: &str) {
        assert!(begin >= self.last, "{track}: {begin} after {}", self.last);
        self.last = begin;
        track.clone_into(&mut self.track);
        self.open.push(Found {
            track: track.to_owned(),
            begin,
            depth: self.open.len(),
            end: begin,
            name: name.to_owned(),
            category: category.to_owned(),
            own: 0,
        });
    }

    /// An end of an arrow at the innermost slice.
    fn arrow(&mut self, arrow: u64, at: u64) -> End {
        assert!(at >= self.last);
        // Where a part of a trace starts in a trap, what it interrupted is not known.
        let (track, name) = match self.open.last() {
            Some(on) => (on.track.clone(), on.name.clone()),
            None => (self.track.clone(), String::new()),
        };
        (arrow, track, at, name)
    }

    fn end(&mut self, end: u64) -> Found {
        assert!(end >= self.last);
        self.last = end;
        let mut slice = self.open.pop().expect("ends without having begun");
        slice.end = end;
        // `own` has been reduced by what was inside.
        let length = end - slice.begin;
        slice.own = slice.own.wrapping_add(length);
        if let Some(outer) = self.open.last_mut() {
            outer.own = outer.own.wrapping_sub(length);
        }
        slice
    }
}

/// An end of an arrow: its number, the track, where, and the slice it is at, which is that
/// of the event or the one around it.
type End = (u64, String, u64, String);

/// The slices, the ends of arrows, and the values of counters by name.
#[derive(Default)]
struct Decoded {
    slices: Vec<Found>,
    from: Vec<End>,
    to: Vec<End>,
    counters: BTreeMap<String, Vec<(u64, f64)>>,
}

/// The slices of a trace.
pub(crate) fn slices(folder: &Folder, trace: &str) -> Vec<Found> {
    let file = folder.name("slices.pftrace");
    succeeds(&["timeline", trace, "-o", &file]);
    perfetto(&file).slices
}

fn perfetto(file: &str) -> Decoded {
    let bytes = fs::read(file).unwrap();
    let mut done = Decoded::default();
    let mut tracks: HashMap<u64, String> = HashMap::new();
    let mut names: HashMap<(u64, u64, u64), String> = HashMap::new();
    let mut of_sequence: HashMap<u64, u64> = HashMap::new();
    let mut nesting: HashMap<u64, Nesting> = HashMap::new();
    let string = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    for (field, _, packet) in fields(&bytes) {
        assert_eq!(field, 1);
        let sequence = number(packet, 10).unwrap();
        if let Some(track) = part(packet, 60) {
            let mut name = string(part(track, 2).unwrap());
            if let Some(parent) = number(track, 5) {
                name = format!("{}, {name}", tracks[&parent]);
            }
            tracks.insert(number(track, 1).unwrap(), name);
        }
        if let Some(defaults) = part(packet, 59) {
            let track = number(part(defaults, 11).unwrap(), 11).unwrap();
            assert_eq!(number(packet, 13), Some(3));
            of_sequence.insert(sequence, track);
        }
        for (kind, _, name) in part(packet, 12).map(fields).unwrap_or_default() {
            let key = (sequence, kind, number(name, 1).unwrap());
            assert!(names.insert(key, string(part(name, 2).unwrap())).is_none());
        }
        let Some(event) = part(packet, 11) else {
            continue;
        };
        let at = number(packet, 8).unwrap();
        let track = number(event, 11).unwrap_or_else(|| of_sequence[&sequence]);
        let on = nesting.entry(track).or_default();
        match number(event, 9) {
            Some(1) => {
                let name = &names[&(sequence, 2, number(event, 10).unwrap())];
                let category = &names[&(sequence, 1, number(event, 3).unwrap())];
                on.begin(&tracks[&track], at, name, category);
                done.from.extend(number(event, 47).map(|n| on.arrow(n, at)));
                done.to.extend(number(event, 48).map(|n| on.arrow(n, at)));
            }
            Some(2) => {
                done.from.extend(number(event, 47).map(|n| on.arrow(n, at)));
                done.slices.push(on.end(at));
            }
            // The hart resumes after a trap.
            Some(3) => {
                let name = &names[&(sequence, 2, number(event, 10).unwrap())];
                let category = &names[&(sequence, 1, number(event, 3).unwrap())];
                assert_eq!((name.as_str(), category.as_str()), ("resumed", "trap"));
                done.to.push(on.arrow(number(event, 48).unwrap(), at));
            }
            Some(4) => {
                let value = f64::from_bits(number(event, 44).unwrap());
                let counter = done.counters.entry(tracks[&track].clone());
                counter.or_default().push((at, value));
            }
            other => panic!("type {other:?}"),
        }
    }
    assert!(nesting.values().all(|on| on.open.is_empty()));
    done.slices.sort();
    done.from.sort();
    done.to.sort();
    done
}

fn chrome(file: &str) -> Decoded {
    let events: Vec<Value> = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let mut done = Decoded::default();
    let mut names: HashMap<(u64, u64), String> = HashMap::new();
    let mut nesting: HashMap<(u64, u64), Nesting> = HashMap::new();
    for event in &events {
        let id = |key: &str| event[key].as_u64().unwrap();
        let track = (id("pid"), event["tid"].as_u64().unwrap_or(0));
        let name = event["name"].as_str().unwrap_or("");
        match event["ph"].as_str().unwrap() {
            "M" if name == "thread_name" => {
                let name = format!(
                    "hart {}, {}",
                    track.0,
                    event["args"]["name"].as_str().unwrap()
                );
                names.insert(track, name);
            }
            "M" => assert_eq!(name, "process_name"),
            "B" => {
                let category = event["cat"].as_str().unwrap();
                let on = nesting.entry(track).or_default();
                on.begin(&names[&track], id("ts"), name, category);
            }
            "E" => done
                .slices
                .push(nesting.get_mut(&track).unwrap().end(id("ts"))),
            "s" => {
                let on = nesting.get_mut(&track).unwrap();
                done.from.push(on.arrow(id("id"), id("ts")));
            }
            "f" => {
                assert_eq!(event["bp"], "e");
                let on = nesting.get_mut(&track).unwrap();
                done.to.push(on.arrow(id("id"), id("ts")));
            }
            "i" => {
                assert_eq!((name, event["cat"].as_str()), ("resumed", Some("trap")));
                assert!(id("ts") >= nesting[&track].last);
            }
            "C" => {
                let value = event["args"]["value"].as_f64().unwrap();
                let counter = done.counters.entry(name.to_owned()).or_default();
                counter.push((id("ts"), value));
            }
            other => panic!("phase {other}"),
        }
    }
    assert!(nesting.values().all(|on| on.open.is_empty()));
    done.slices.sort();
    done.from.sort();
    done.to.sort();
    done
}

pub(crate) fn program(name: &str) -> String {
    let path = repository().join(format!("programs/{name}/{name}-rv64gc.elf"));
    path.to_str().unwrap().to_owned()
}

pub(crate) fn recorded(folder: &Folder, name: &str, kind: &str, config: &str) -> String {
    let config = folder.file("c.toml", config);
    let file = folder.name(&format!("{name}.{kind}"));
    let to = format!("{kind}={file}");
    let args = ["run", "-q", &program(name), "-c", &config, "--trace", &to];
    assert_eq!(run(&args).status.code(), Some(0));
    file
}

/// Instructions and calls of each function: those of the profile.
#[test]
fn slices_are_those_of_the_profile() {
    let folder = Folder::new();
    for name in ["timer", "scheduler", "recursion"] {
        for kind in ["ntrace", "etrace", "tandem"] {
            let trace = recorded(&folder, name, kind, "");
            let file = folder.name("t.pftrace");
            assert_eq!(succeeds(&["timeline", &trace, "-o", &file]), "");
            let decoded = perfetto(&file);
            let mut found: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
            for slice in decoded.slices.iter().filter(|s| s.category == "call") {
                let sum = found.entry(&slice.name).or_default();
                *sum = (sum.0 + slice.own, sum.1 + 1);
            }
            let profile = succeeds(&["profile", &trace, "-f", "json"]);
            let profile = profile.lines().map(|l| serde_json::from_str(l).unwrap());
            let functions = profile.filter(|v: &Value| v["type"] == "function");
            let mut count = 0;
            for function in functions {
                let (own, slices) = found[function["name"].as_str().unwrap()];
                assert_eq!(function["self"]["instructions"], own, "{function}");
                // A function that is entered in the middle is not called.
                assert!(slices >= function["calls"].as_u64().unwrap(), "{function}");
                count += 1;
            }
            assert_eq!(found.len(), count);
            assert_eq!(decoded.from.is_empty(), name == "recursion");
            // So many interrupts, which last as long without other threads.
            let interrupts = succeeds(&["interrupts", &trace, "-f", "json"]);
            let interrupts = interrupts.lines().map(|l| serde_json::from_str(l).unwrap());
            for cause in interrupts.filter(|v: &Value| v["type"] == "cause") {
                let of = |s: &&Found| s.category == "trap" && cause["name"] == *s.name;
                let traps: Vec<&Found> = decoded.slices.iter().filter(of).collect();
                assert_eq!(cause["count"], traps.len(), "{cause}");
                if name == "timer" {
                    let total: u64 = traps.iter().map(|s| s.end - s.begin).sum();
                    assert_eq!(cause["total"]["instructions"], total, "{cause}");
                }
            }
            let tracks = decoded.slices.iter().map(|s| &s.track);
            let tracks: std::collections::BTreeSet<_> = tracks.collect();
            assert_eq!(tracks.len(), if name == "scheduler" { 4 } else { 1 });
            let bytes: f64 = decoded.counters.values().flatten().map(|v| v.1).sum();
            let size = fs::metadata(&trace).unwrap().len() as f64;
            assert!(bytes > 0.5 * size && bytes <= size, "{bytes} of {size}");
        }
    }
}

/// Every trap has an arrow to its handler, and every return from one has an arrow to where
/// the hart resumes: after the trap, or in another thread.
#[test]
fn arrows_lead_to_handlers_and_back() {
    let folder = Folder::new();
    for (name, to_threads) in [("timer", 0), ("scheduler", 43)] {
        let trace = recorded(&folder, name, "ntrace", "");
        let file = folder.name("t.pftrace");
        succeeds(&["timeline", &trace, "-o", &file]);
        let decoded = perfetto(&file);
        let traps: Vec<&Found> = decoded
            .slices
            .iter()
            .filter(|s| s.category == "trap")
            .collect();
        let (mut handlers, mut backs, mut threads) = (0, 0, 0);
        let to: HashMap<u64, &End> = decoded.to.iter().map(|end| (end.0, end)).collect();
        assert_eq!(to.len(), decoded.to.len());
        for (arrow, track, at, slice) in &decoded.from {
            let (_, to_track, to_at, to_slice) = to[arrow];
            // Nothing happens in between.
            assert_eq!(at, to_at);
            if slice == "other threads" {
                threads += 1;
                assert_ne!(track, to_track);
                assert_ne!(to_slice, "other threads");
                continue;
            }
            assert_eq!(track, to_track);
            let of = |s: &&&Found| s.track == *track && s.name == *slice;
            let begins = traps.iter().filter(of).any(|s| s.begin == *at);
            let ends = traps.iter().filter(of).any(|s| s.end == *at);
            assert!(begins || ends);
            let inside = traps.iter().find(|s| s.track == *track && s.begin == *at);
            match inside.filter(|_| to_slice != slice && begins) {
                Some(_) => handlers += 1,
                None => backs += 1,
            }
        }
        assert_eq!(decoded.from.len(), decoded.to.len());
        assert_eq!((handlers, threads), (traps.len(), to_threads), "{name}");
        // Those that returned in their own thread, but for those that had not ended.
        assert!(backs + threads >= traps.len() - 3, "{backs} {threads}");
    }
}

/// Both formats hold the same.
#[test]
fn formats_agree() {
    let folder = Folder::new();
    for config in ["", "[ntrace]\ntimestamps = true\n"] {
        let trace = recorded(&folder, "timer", "ntrace", config);
        let [a, b] = ["t.pftrace", "t.json"].map(|name| folder.name(name));
        succeeds(&["timeline", &trace, "-o", &a]);
        succeeds(&["timeline", &trace, "-f", "chrome", "-o", &b]);
        let (a, b) = (perfetto(&a), chrome(&b));
        assert!(a.slices.len() > 1000 && a.slices == b.slices);
        assert_eq!((&a.from, &a.to), (&b.from, &b.to));
        let values = |of: &Decoded| of.counters.values().flatten().map(|v| v.1).sum::<f64>();
        assert!((values(&a) - values(&b)).abs() < 1e-6);
        // All instructions are in the counter.
        let rate = a
            .counters
            .iter()
            .find(|(name, _)| name.contains("instructions per 1000"));
        assert_eq!(rate.is_some(), !config.is_empty());
        if let Some((_, values)) = rate {
            let width = values[1].0 - values[0].0;
            let sum: f64 = values.iter().map(|(_, v)| v * width as f64 / 1000.0).sum();
            assert!((29_300.0..=29_440.0).contains(&sum), "{sum}");
        }
    }
}

/// Interrupts of a program with their times and latencies, from the log of a run, and the
/// rows of the same run.
pub(crate) fn latencies(folder: &Folder, name: &str) -> (BTreeMap<u64, u64>, String) {
    let [log, rows] = ["run.json", "run.csv"].map(|file| folder.name(file));
    let to = [format!("json={log}"), format!("ingress={rows}")];
    let elf = program(name);
    let args = ["run", "-q", &elf, "--log", &to[0], "--log", &to[1]];
    assert_eq!(run(&args).status.code(), Some(0));
    let mut truth = BTreeMap::new();
    for line in fs::read_to_string(&log).unwrap().lines() {
        if line.contains(r#""pending""#) {
            let step: Value = serde_json::from_str(line).unwrap();
            let [time, pending] = ["time", "pending"].map(|key| {
                let digits = step[key].as_str().unwrap().trim_start_matches("0x");
                u64::from_str_radix(digits, 16).unwrap()
            });
            truth.insert(time, time - pending);
        }
    }
    (truth, rows)
}

#[test]
fn interrupts_have_their_latency_as_an_argument() {
    let folder = Folder::new();
    let (truth, rows) = latencies(&folder, "timer");
    assert_eq!(truth.len(), 54);
    let elf = program("timer");
    let [file, json] = ["t.pftrace", "t.chrome"].map(|name| folder.name(name));
    let args = ["timeline", &rows, "-e", &elf, "-o"];
    succeeds(&[&args[..], &[&file]].concat());
    succeeds(&[&args[..], &[&json, "-f", "chrome"]].concat());
    let mut found = BTreeMap::new();
    for (_, _, packet) in fields(&fs::read(&file).unwrap()) {
        if let Some(argument) = part(packet, 11).and_then(|event| part(event, 4)) {
            assert_eq!(part(argument, 10), Some(&b"latency"[..]));
            found.insert(number(packet, 8).unwrap(), number(argument, 3).unwrap());
        }
    }
    assert_eq!(found, truth);
    let events: Vec<Value> = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let delayed = events.iter().filter(|e| e["args"]["latency"].is_u64());
    let delayed = delayed.map(|e| (e["ts"].as_u64().unwrap(), &e["args"]["latency"]));
    let delayed: BTreeMap<u64, u64> = delayed.map(|(at, n)| (at, n.as_u64().unwrap())).collect();
    assert_eq!(delayed, truth);
}

/// What is left out is said, and what is left is as before.
#[test]
fn short_and_deep_slices_are_left_out() {
    let folder = Folder::new();
    let trace = recorded(&folder, "timer", "etrace", "");
    let of = |args: &[&str]| {
        let file = folder.name("t.pftrace");
        let output = run(&[&["timeline", &trace, "-o", &file], args].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        (perfetto(&file).slices, text(&output.stderr).to_owned())
    };
    let key = |s: &Found| (s.begin, s.depth, s.end, s.name.clone());
    let (all, message) = of(&[]);
    assert_eq!(message, "");
    for least in [1, 10, 100, 1000] {
        let (found, message) = of(&["--min-duration", &least.to_string()]);
        let expected = all.iter().filter(|s| s.end - s.begin >= least);
        let expected: Vec<_> = expected.map(key).collect();
        assert_eq!(found.iter().map(key).collect::<Vec<_>>(), expected);
        let left = all.len() - expected.len();
        assert_eq!(message.is_empty(), left == 0);
        assert!(
            left < 1000 || message.starts_with("left out: 1 "),
            "{message}"
        );
    }
    for depth in [1, 3] {
        let (found, message) = of(&["--max-depth", &depth.to_string()]);
        let expected = all.iter().filter(|s| s.depth < depth).map(key);
        assert_eq!(
            found.iter().map(key).collect::<Vec<_>>(),
            expected.collect::<Vec<_>>()
        );
        assert!(message.contains("deeper than --max-depth"), "{message}");
    }
    let (part, _) = of(&["--from", "interrupt#2", "--until", "interrupt#4"]);
    let traps = part.iter().filter(|s| s.category == "trap").count();
    assert!(
        (1..=4).contains(&traps) && part.len() < all.len() / 4,
        "{part:?}"
    );
}

/// Functions without symbols are named by their address.
#[test]
fn without_symbols() {
    let folder = Folder::new();
    let trace = recorded(&folder, "scheduler", "tandem", "");
    let bare = folder.name("bare.tandem");
    fs::copy(&trace, &bare).unwrap();
    let [file, other] = ["t.pftrace", "o.pftrace"].map(|name| folder.name(name));
    assert_eq!(succeeds(&["timeline", "-q", &bare, "-o", &file]), "");
    succeeds(&["timeline", "-q", &trace, "-o", &other]);
    let (slices, named) = (perfetto(&file).slices, perfetto(&other).slices);
    let calls = |slices: &[Found]| slices.iter().filter(|s| s.category == "call").count();
    assert!(calls(&slices) > 100 && calls(&named) > 100);
    let is_named = |s: &&Found| s.category != "call" || s.name.starts_with("0x8000");
    assert_eq!(slices.iter().filter(is_named).count(), slices.len());
}

/// Damage is a slice of its own, and nothing is out of order.
#[test]
fn gaps_are_slices() {
    let folder = Folder::new();
    let trace = recorded(
        &folder,
        "timer",
        "ntrace",
        "[ntrace]\ntimestamps = true\nsync_max = 0\n",
    );
    let mut bytes = fs::read(&trace).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 40].fill(0x55);
    fs::write(&trace, bytes).unwrap();
    let file = folder.name("t.pftrace");
    let output = run(&["timeline", &trace, "-o", &file]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let decoded = perfetto(&file);
    let gaps = decoded.slices.iter().filter(|s| s.category == "gap");
    assert!(gaps.clone().count() > 0);
    assert!(gaps.clone().all(|gap| gap.track == "hart 0, gaps"));
}

/// Puts the slices of two files together that follow each other: what ends with the first,
/// and begins again with the second, is one slice. What cannot go on is done.
fn continued(before: Vec<Found>, after: &mut Vec<Found>, done: &mut Vec<Found>) -> Vec<Found> {
    let mut first: HashMap<&str, u64> = HashMap::new();
    for slice in after.iter() {
        let begin = first.entry(&slice.track).or_insert(slice.begin);
        *begin = slice.begin.min(*begin);
    }
    let first: HashMap<String, u64> = first.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
    let mut open = Vec::new();
    for earlier in before {
        let goes_on = |s: &Found| {
            let same =
                (&s.track, s.depth, &s.name) == (&earlier.track, earlier.depth, &earlier.name);
            same && s.begin == earlier.end && first[&s.track] == s.begin
        };
        match after.iter_mut().find(|s| goes_on(s)) {
            Some(slice) => {
                slice.begin = earlier.begin;
                slice.own += earlier.own;
            }
            // A track that the second file has nothing of may go on later.
            None if !first.contains_key(&earlier.track) => open.push(earlier),
            None => done.push(earlier),
        }
    }
    open.append(after);
    open
}

/// The same, in files that follow each other: put together, they are the whole.
#[test]
fn files_are_whole_and_follow_each_other() {
    let folder = Folder::new();
    for (name, config) in [
        ("scheduler", ""),
        ("timer", "[ntrace]\ntimestamps = true\n"),
    ] {
        let trace = recorded(&folder, name, "ntrace", config);
        for (format, end) in [("perfetto", "pftrace"), ("chrome", "json")] {
            let read = |file: &str| match format {
                "perfetto" => perfetto(file),
                _ => chrome(file),
            };
            let whole = folder.name(&format!("whole.{end}"));
            succeeds(&["timeline", &trace, "-f", format, "-o", &whole]);
            let all = read(&whole);
            let file = folder.name(&format!("{name}.part.{end}"));
            let output = run(&[
                "timeline", &trace, "-f", format, "--split", "12K", "-o", &file,
            ]);
            let message = text(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{message}");
            assert!(!fs::exists(&file).unwrap());
            let names: Vec<String> = (1..=message.lines().count())
                .map(|n| folder.name(&format!("{name}.part-{n:03}.{end}")))
                .collect();
            assert!(names.len() > 3 && names.len() < 40, "{message}");
            let mut joined = Decoded::default();
            let mut before: Vec<Found> = Vec::new();
            for (line, part) in message.lines().zip(&names) {
                let size = fs::metadata(part).unwrap().len();
                assert!(size < 24 << 10, "{size}");
                let bytes = line.strip_prefix(&format!("{part}: ")).expect(line);
                let digits = bytes.split_once(" byte").unwrap().0.replace(' ', "");
                assert_eq!(digits, size.to_string());
                let mut part = read(part);
                before = continued(before, &mut part.slices, &mut joined.slices);
                joined.from.append(&mut part.from);
                joined.to.append(&mut part.to);
                for (name, mut values) in part.counters {
                    joined.counters.entry(name).or_default().append(&mut values);
                }
            }
            joined.slices.append(&mut before);
            joined.slices.sort();
            assert!(joined.slices == all.slices);
            let arrows = |ends: &[End]| ends.iter().map(|e| (e.0, e.2)).collect::<Vec<_>>();
            joined.from.sort();
            joined.to.sort();
            assert_eq!(arrows(&joined.from), arrows(&all.from));
            assert_eq!(arrows(&joined.to), arrows(&all.to));
            let bytes = |of: &Decoded| {
                let values = of
                    .counters
                    .iter()
                    .filter(|(name, _)| name.contains("bytes"));
                values
                    .flat_map(|(_, values)| values)
                    .map(|v| v.1)
                    .sum::<f64>()
            };
            assert!((bytes(&joined) - bytes(&all)).abs() < 1e-6);
        }
    }
}

/// A warning comes before anything is written: here writing fails.
#[test]
fn a_warning_comes_before_a_large_file() {
    let folder = Folder::new();
    let trace = recorded(&folder, "timer", "ntrace", "");
    let full = |args: &[&str]| {
        let output = run(&[&["timeline", &trace, "-o", "/dev/full"], args].concat());
        assert_eq!(output.status.code(), Some(1));
        text(&output.stderr).to_owned()
    };
    for format in ["perfetto", "chrome"] {
        let message = full(&["-f", format, "--warn-above", "20K"]);
        let (warning, error) = message.split_once("error[HT0006]").expect(&message);
        assert!(
            warning.contains("warning[HT0414]: `/dev/full` will have "),
            "{message}"
        );
        assert!(warning.contains("more than viewers open"), "{message}");
        assert!(error.contains("cannot write"), "{message}");
        let message = full(&["-f", format, "--warn-above", "20M"]);
        assert!(!message.contains("HT0414"), "{message}");
    }
    // A stream is written while it is read: the warning comes on the way.
    let elf = program("timer");
    let sidecar = format!("{trace}.toml");
    let file = folder.name("t.pftrace");
    let args = [
        "timeline",
        "-",
        "-e",
        &elf,
        "-c",
        &sidecar,
        "--min-duration",
        "1",
        "--warn-above",
        "20K",
        "-o",
        &file,
    ];
    let input = fs::File::open(&trace).unwrap();
    let output = hartrace().args(args).stdin(input).output().unwrap();
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{message}");
    assert!(message.contains("warning[HT0414]"), "{message}");
    assert!(perfetto(&file).slices.len() > 1000);
}

/// Units have a length if one is given.
#[test]
fn units_of_time_have_a_length() {
    let folder = Folder::new();
    let trace = recorded(&folder, "timer", "ntrace", "[ntrace]\ntimestamps = true\n");
    let [a, b, c] = ["a.pftrace", "b.pftrace", "c.json"].map(|name| folder.name(name));
    succeeds(&["timeline", &trace, "-o", &a]);
    succeeds(&["timeline", &trace, "--timescale", "25MHz", "-o", &b]);
    succeeds(&[
        "timeline",
        &trace,
        "--timescale",
        "2.5us",
        "-f",
        "chrome",
        "-o",
        &c,
    ]);
    let (a, b) = (perfetto(&a), perfetto(&b));
    let scaled = a.slices.iter().map(|s| (s.begin * 40, s.end * 40, &s.name));
    assert!(scaled.eq(b.slices.iter().map(|s| (s.begin, s.end, &s.name))));
    let of = |of: &Decoded, name: &str| {
        let found = of.counters.iter().find(|(n, _)| n.contains(name));
        found.map(|(_, values)| values[0]).unwrap()
    };
    let (units, micros) = (
        of(&a, "instructions per 1000 units of time"),
        of(&b, "instructions per microsecond"),
    );
    assert_eq!(micros.0, units.0 * 40);
    assert!((micros.1 - units.1 * 25.0 / 1000.0).abs() < 1e-9);
    let events: Vec<Value> = serde_json::from_str(&fs::read_to_string(&c).unwrap()).unwrap();
    let first = events.iter().find(|e| e["ph"] == "B").unwrap();
    let begin = a.slices.iter().map(|s| s.begin).min().unwrap();
    assert_eq!(first["ts"].as_f64(), Some(begin as f64 * 2.5));

    let bare = recorded(&folder, "timer", "etrace", "");
    let output = run(&[
        "timeline",
        &bare,
        "--timescale",
        "10ns",
        "-o",
        &folder.name("d"),
    ]);
    assert_eq!(output.status.code(), Some(1));
    let message = text(&output.stderr);
    assert!(
        message.contains("error[HT0121]") && message.contains("--timescale"),
        "{message}"
    );
}

#[test]
fn flags_that_do_not_fit() {
    let folder = Folder::new();
    let trace = recorded(&folder, "recursion", "etrace", "");
    let file = folder.name("t");
    for (args, part) in [
        (
            &["-f", "fst", "--split", "1M", "-o", &file][..],
            "--split is for -f perfetto",
        ),
        (
            &["-f", "ctf", "--split", "1M", "-o", &file],
            "--split is for -f perfetto",
        ),
        (&["--split", "1M"], "several files"),
        (&["--split", "100", "-o", &file], "at least 4K"),
        (&["-f", "ctf"], "a CTF trace is a directory"),
        (
            &["--timescale", "10", "-o", &file],
            "a length or a frequency",
        ),
    ] {
        let output = run(&[&["timeline", &trace], args].concat());
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(part), "{message}");
    }
    let output = run(&["timeline", "-", "--split", "1M", "-o", &file]);
    assert_eq!(output.status.code(), Some(2));
    assert!(!fs::exists(&file).unwrap());
}

/// A trace of a program with a hostile name, which is given as names are shown.
pub(crate) fn hostile(folder: &Folder) -> (String, &'static str) {
    const NAME: &str = "\"\\</s>\n\u{1b}\t";
    let mut elf = fs::read(program("recursion")).unwrap();
    let name = b"\0ackermann\0";
    // In the table of symbols, and in debug information.
    while let Some(at) = elf.windows(name.len()).position(|bytes| bytes == name) {
        elf[at + 1..at + 10].copy_from_slice(NAME.as_bytes());
    }
    let elf = folder.file("hostile.elf", elf);
    (started(folder, &elf, "ntrace"), "\"\\</s>^J^[^I")
}

/// The trace of a start of a program.
pub(crate) fn started(folder: &Folder, elf: &str, kind: &str) -> String {
    let file = folder.name(&format!("start.{kind}"));
    let to = format!("{kind}={file}");
    let args = ["run", "-q", elf, "--max-insns", "20000", "--trace", &to];
    assert_eq!(run(&args).status.code(), Some(0));
    file
}

#[test]
fn names_do_no_harm() {
    let folder = Folder::new();
    let (trace, name) = hostile(&folder);
    let [a, b] = ["t.pftrace", "t.json"].map(|name| folder.name(name));
    succeeds(&["timeline", &trace, "-o", &a]);
    succeeds(&["timeline", &trace, "-f", "chrome", "-o", &b]);
    let (a, b) = (perfetto(&a), chrome(&b));
    assert!(a.slices == b.slices);
    assert!(a.slices.iter().filter(|s| s.name == name).count() > 100);
}
