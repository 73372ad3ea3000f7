//! `timeline`: the files that viewers read, decoded here by hand.

use crate::{Folder, repository, run, succeeds, text};
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
struct Found {
    track: String,
    begin: u64,
    depth: usize,
    end: u64,
    name: String,
    category: String,
    /// Without the slices inside.
    own: u64,
}

/// Begins and ends of one track, which must nest.
#[derive(Default)]
struct Nesting {
    open: Vec<Found>,
    last: u64,
}

impl Nesting {
    fn begin(&mut self, track: &str, begin: u64, name: &str, category: &str) {
        assert!(begin >= self.last, "{track}: {begin} after {}", self.last);
        self.last = begin;
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

/// The slices, the arrows that start and end, and the values of counters by name.
#[derive(Default)]
struct Decoded {
    slices: Vec<Found>,
    from: Vec<u64>,
    to: Vec<u64>,
    counters: BTreeMap<String, Vec<(u64, f64)>>,
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
                done.from.extend(number(event, 47));
                done.to.extend(number(event, 48));
            }
            Some(2) => done.slices.push(on.end(at)),
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
            "s" => done.from.push(id("id")),
            "f" => done.to.push(id("id")),
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
    done
}

fn program(name: &str) -> String {
    let path = repository().join(format!("programs/{name}/{name}-rv64gc.elf"));
    path.to_str().unwrap().to_owned()
}

fn recorded(folder: &Folder, name: &str, kind: &str, config: &str) -> String {
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
            // Every trap has an arrow to its handler.
            let traps = decoded.slices.iter().filter(|s| s.category == "trap");
            assert_eq!(
                (decoded.from.len(), traps.clone().count()),
                (decoded.to.len(), decoded.from.len())
            );
            assert_eq!(decoded.from, decoded.to);
            assert_eq!(decoded.from.is_empty(), name == "recursion");
            let tracks = decoded.slices.iter().map(|s| &s.track);
            let tracks: std::collections::BTreeSet<_> = tracks.collect();
            assert_eq!(tracks.len(), if name == "scheduler" { 4 } else { 1 });
            let bytes: f64 = decoded.counters.values().flatten().map(|v| v.1).sum();
            let size = fs::metadata(&trace).unwrap().len() as f64;
            assert!(bytes > 0.5 * size && bytes <= size, "{bytes} of {size}");
        }
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
