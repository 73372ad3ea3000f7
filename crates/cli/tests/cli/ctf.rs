//! `timeline -f ctf`: CTF 2, read here by hand.

use crate::timeline::{hostile, latencies, program, recorded, started};
use crate::{Folder, json_lines, run, text};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fs;

/// An event: its time, its name and its fields.
#[derive(Clone, Debug, PartialEq)]
struct Event {
    at: u64,
    name: String,
    fields: HashMap<String, String>,
}

/// Reads what the metadata describe.
struct Reader<'a> {
    bytes: &'a [u8],
    /// Values of fields with roles.
    roles: HashMap<String, u64>,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (bytes, rest) = self.bytes.split_at(count);
        self.bytes = rest;
        bytes
    }

    fn varint(&mut self) -> (u64, u32) {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.take(1)[0];
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return (value, shift);
            }
        }
    }

    fn field(&mut self, class: &Value) -> String {
        let value = match class["type"].as_str().unwrap() {
            "fixed-length-unsigned-integer" => {
                assert_eq!(class["byte-order"], "little-endian");
                let bits = class["length"].as_u64().unwrap();
                let bytes = self.take(bits as usize / 8).iter().rev();
                bytes.fold(0, |v, byte| v << 8 | u64::from(*byte))
            }
            "variable-length-unsigned-integer" => self.varint().0,
            "variable-length-signed-integer" => {
                let (value, bits) = self.varint();
                let shift = 64u32.saturating_sub(bits);
                return ((value as i64) << shift >> shift).to_string();
            }
            "null-terminated-string" => {
                let end = self.bytes.iter().position(|byte| *byte == 0).unwrap();
                let text = self.take(end + 1)[..end].to_vec();
                return String::from_utf8(text).unwrap();
            }
            other => panic!("{other}"),
        };
        for role in class["roles"].as_array().into_iter().flatten() {
            self.roles.insert(role.as_str().unwrap().to_owned(), value);
        }
        value.to_string()
    }

    fn fields(&mut self, class: &Value) -> HashMap<String, String> {
        let mut all = HashMap::new();
        for member in class["member-classes"].as_array().into_iter().flatten() {
            let name = member["name"].as_str().unwrap().to_owned();
            all.insert(name, self.field(&member["field-class"]));
        }
        all
    }
}

/// A trace: the frequency of its clock and the events of each stream.
struct Trace {
    frequency: u64,
    streams: BTreeMap<String, Vec<Event>>,
}

fn trace(folder: &str) -> Trace {
    let metadata = fs::read_to_string(format!("{folder}/metadata")).unwrap();
    let texts = metadata.strip_prefix('\u{1e}').unwrap().split('\u{1e}');
    let all: Vec<Value> = texts
        .map(|text| serde_json::from_str(text).unwrap())
        .collect();
    assert_eq!(all[0]["type"], "preamble");
    assert_eq!(all[0]["version"], 2);
    let of = |kind: &'static str| all.iter().filter(move |v| v["type"] == kind);
    let one = |kind: &'static str| of(kind).next().unwrap();
    let events: HashMap<u64, &Value> = of("event-record-class")
        .map(|class| (class["id"].as_u64().unwrap(), class))
        .collect();
    let (header, stream) = (one("trace-class"), one("data-stream-class"));
    let mut streams = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name == "metadata" {
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let mut reader = Reader {
            bytes: &bytes,
            roles: HashMap::new(),
        };
        let (mut all, mut packets) = (Vec::new(), 0);
        while !reader.bytes.is_empty() {
            let before = reader.bytes.len() as u64;
            reader.fields(&header["packet-header-field-class"]);
            assert_eq!(reader.roles["packet-magic-number"], 0xc1fc_1fc1);
            let context = reader.fields(&stream["packet-context-field-class"]);
            let roles = reader.roles.clone();
            let hart: u64 = context["cpu_id"].parse().unwrap();
            assert!(name.starts_with(&format!("hart{hart}")));
            assert_eq!(roles["packet-sequence-number"], packets);
            packets += 1;
            let length = roles["packet-total-length"];
            assert_eq!(roles["packet-content-length"], length);
            let mut now = roles["default-clock-timestamp"];
            while (before - reader.bytes.len() as u64) * 8 < length {
                reader.fields(&stream["event-record-header-field-class"]);
                // The low bits of the time, which may have wrapped.
                let low = reader.roles["default-clock-timestamp"];
                now += low.wrapping_sub(now) & 0xffff_ffff;
                let class = &events[&reader.roles["event-record-class-id"]];
                all.push(Event {
                    at: now,
                    name: class["name"].as_str().unwrap().to_owned(),
                    fields: reader.fields(&class["payload-field-class"]),
                });
            }
            assert_eq!((before - reader.bytes.len() as u64) * 8, length);
            assert_eq!(now, roles["packet-end-default-clock-timestamp"]);
        }
        assert!(all.is_sorted_by_key(|event| event.at));
        streams.insert(name, all);
    }
    Trace {
        frequency: one("clock-class")["frequency"].as_u64().unwrap(),
        streams,
    }
}

/// Writes a trace; what is said.
fn written(args: &[&str], folder: &str) -> String {
    let output = run(&[&["timeline", "-f", "ctf", "-o", folder], args].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stderr).to_owned()
}

/// Calls, and instructions of each function, are those of the profile; interrupts are as
/// many as in their list, and last as long.
#[test]
fn events_are_what_the_other_views_count() {
    let folder = Folder::new();
    for (name, kind) in [
        ("timer", "ntrace"),
        ("scheduler", "etrace"),
        ("recursion", "tandem"),
    ] {
        let file = match name {
            "recursion" => started(&folder, &program(name), kind),
            _ => recorded(&folder, name, kind, ""),
        };
        let ctf = folder.name(&format!("{name}.ctf"));
        let message = written(&[&file], &ctf);
        assert!(message.contains("one instruction"), "{message}");
        let trace = trace(&ctf);
        assert_eq!(trace.frequency, 1_000_000_000);
        let events = &trace.streams["hart0"];
        // Stacks of threads: names, and whether each is a call.
        let mut threads: HashMap<String, Vec<(String, bool, u64)>> = HashMap::new();
        let (mut running, mut last) = (String::new(), 0);
        let mut own: BTreeMap<String, u64> = BTreeMap::new();
        let mut interrupts: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for event in events {
            let stack = threads.entry(running.clone()).or_default();
            if let Some((function, true, _)) = stack.last() {
                *own.entry(function.clone()).or_default() += event.at - last;
            }
            for open in stack.iter_mut() {
                open.2 += event.at - last;
            }
            last = event.at;
            let field = |name: &str| event.fields[name].clone();
            match event.name.as_str() {
                "thread" => running = field("thread"),
                "call" => stack.push((field("function"), true, 0)),
                "interrupt" | "exception" => stack.push((field("name"), false, 0)),
                "return" => assert!(stack.pop().unwrap().1),
                "trap_return" => {
                    let (name, is_call, spent) = stack.pop().unwrap();
                    assert!(!is_call);
                    let sum = interrupts.entry(name).or_default();
                    *sum = (sum.0 + 1, sum.1 + spent);
                }
                other => panic!("{other}"),
            }
        }
        let profile = json_lines(&["profile", &file, "-f", "json"]);
        let mut count = 0;
        for function in profile.iter().filter(|v| v["type"] == "function") {
            let name = function["name"].as_str().unwrap();
            assert_eq!(function["self"]["instructions"], own[name], "{name}");
            count += 1;
        }
        assert_eq!(own.len(), count);
        for cause in json_lines(&["interrupts", &file, "-f", "json"]) {
            if cause["type"] == "cause" {
                let found = interrupts[cause["name"].as_str().unwrap()];
                let given = events.iter().filter(|event| event.name == "interrupt");
                let given = given.filter(|event| event.fields["name"] == cause["name"]);
                assert_eq!(given.count() as u64, cause["count"].as_u64().unwrap());
                // The last one may not have ended, or in another thread.
                assert!(found.0 + 3 >= cause["count"].as_u64().unwrap());
                if name == "timer" {
                    assert_eq!(cause["total"]["instructions"], found.1, "{cause}");
                }
            }
        }
        // N-Trace reports modes only with contexts.
        let state = trace.streams.get("hart0-state").into_iter().flatten();
        let modes = state.filter(|event| event.name == "privilege");
        assert_eq!(modes.clone().count() > 0, kind != "ntrace");
        assert!(modes.into_iter().all(|event| event.fields["mode"] == "M"));
    }
}

/// Interrupts have their latency where it is known, and otherwise -1.
#[test]
fn latencies_are_those_of_the_log() {
    let folder = Folder::new();
    let (truth, rows) = latencies(&folder, "timer");
    let ctf = folder.name("timer.ctf");
    written(&[&rows, "-e", &program("timer")], &ctf);
    let streams = trace(&ctf).streams;
    let interrupts = streams["hart0"].iter().filter(|e| e.name == "interrupt");
    let found = interrupts.map(|e| (e.at, e.fields["latency"].parse().unwrap()));
    assert_eq!(found.collect::<BTreeMap<u64, u64>>(), truth);
    let file = recorded(&folder, "timer", "etrace", "");
    let ctf = folder.name("etrace.ctf");
    written(&[&file], &ctf);
    let streams = trace(&ctf).streams;
    let mut interrupts = streams["hart0"].iter().filter(|e| e.name == "interrupt");
    assert!(interrupts.all(|e| e.fields["latency"] == "-1"));
}

/// Times are those of the trace, and the clock has its frequency.
#[test]
fn clocks_have_a_frequency() {
    let folder = Folder::new();
    let file = recorded(&folder, "timer", "ntrace", "[ntrace]\ntimestamps = true\n");
    let [a, b, c] = ["a", "b", "c"].map(|name| folder.name(name));
    let message = written(&[&file], &a);
    assert!(message.contains("--timescale"), "{message}");
    assert_eq!(written(&[&file, "--timescale", "10ns"], &b), "");
    written(&[&file, "--timescale", "3ns"], &c);
    let [a, b, c] = [a, b, c].map(|folder| trace(&folder));
    assert_eq!((a.frequency, b.frequency), (1_000_000_000, 100_000_000));
    assert!(a.streams == b.streams);
    assert_eq!(c.frequency, 1_000_000_000_000);
    let times = |of: &Trace| of.streams["hart0"].iter().map(|e| e.at).collect::<Vec<_>>();
    let scaled: Vec<u64> = times(&a).iter().map(|at| at * 3000).collect();
    assert_eq!(scaled, times(&c));
}

/// Modes, gaps, harts and hostile names.
#[test]
fn modes_gaps_harts_and_names() {
    let folder = Folder::new();
    let file = recorded(&folder, "modes", "etrace", "");
    written(&[&file], &folder.name("modes"));
    let modes = &trace(&folder.name("modes")).streams["hart0-state"];
    for mode in ["M", "S", "U"] {
        let is_mode = |event: &Event| event.fields.get("mode").is_some_and(|m| m == mode);
        assert!(modes.iter().any(is_mode));
    }

    let file = recorded(
        &folder,
        "timer",
        "ntrace",
        "[ntrace]\ntimestamps = true\nsync_max = 0\n",
    );
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 40].fill(0x55);
    fs::write(&file, bytes).unwrap();
    written(&[&file], &folder.name("gaps"));
    let damaged = &trace(&folder.name("gaps")).streams["hart0"];
    let count = |name: &str| damaged.iter().filter(|event| event.name == name).count();
    assert!(count("gap") > 0);
    assert_eq!(count("gap"), count("gap_end"));

    let elf = program("recursion");
    let log = folder.name("run.spike");
    let to = format!("spike={log}");
    let args = ["run", "-q", &elf, "--max-insns", "8000", "--log", &to];
    assert_eq!(run(&args).status.code(), Some(0));
    let one = fs::read_to_string(&log).unwrap();
    let both = format!("{one}{}", one.replace("core   0", "core   1"));
    let both = folder.file("both.log", both);
    written(&[&both, "-e", &elf], &folder.name("harts"));
    let harts = trace(&folder.name("harts"));
    assert!(harts.streams["hart0"] == harts.streams["hart1"]);

    let (file, name) = hostile(&folder);
    written(&["-q", &file], &folder.name("hostile"));
    let calls = &trace(&folder.name("hostile")).streams["hart0"];
    let calls = calls.iter().filter(|event| event.name == "call");
    assert!(
        calls
            .filter(|event| event.fields["function"] == name)
            .count()
            > 100
    );
}

/// A directory appears with all that is in it, and takes the place of an empty one only.
#[test]
fn directories_appear_whole() {
    let folder = Folder::new();
    let file = started(&folder, &program("recursion"), "etrace");
    let empty = folder.name("empty");
    fs::create_dir(&empty).unwrap();
    written(&[&file], &empty);
    assert!(trace(&empty).streams["hart0"].len() > 100);
    let before = folder.entries();
    for target in [empty.clone(), file.clone(), folder.name("none/t")] {
        let output = run(&["timeline", &file, "-f", "ctf", "-o", &target]);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert!(message.contains("error[HT0005]: cannot write"), "{message}");
    }
    let output = run(&[
        "timeline",
        &file,
        "-f",
        "ctf",
        "-o",
        &folder.name("t"),
        "--from",
        "nowhere",
    ]);
    assert_ne!(output.status.code(), Some(0));
    assert_eq!(folder.entries(), before);
}
