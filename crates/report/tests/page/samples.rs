//! Documents for the tests of the page: a program that never existed, but whose numbers
//! agree with each other, and documents that are unpleasant to draw.

use serde_json::{Value, json};

/// A generator of numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Kinds of slices.
const TAIL_CALL: u8 = 1;
const TRAP: u8 = 2;
const GAP: u8 = 3;

/// Names of the functions of the sample program; the first is the outermost.
const NAMES: [&str; 12] = [
    "main",
    "run_frame",
    "decode_block",
    "inverse_transform",
    "read_bits",
    "memcpy",
    "clamp_pixel",
    "scale_row",
    "write_row",
    "checksum",
    "timer_handler",
    "trap_entry",
];
const TIMER: usize = NAMES.len();
const FAULT: usize = NAMES.len() + 1;
const FILE: usize = NAMES.len() + 2;
const REASON: usize = NAMES.len() + 3;
const TIMER_HANDLER: usize = 10;
const TRAP_ENTRY: usize = 11;

/// What a track records.
#[derive(Default)]
struct Columns {
    begin: Vec<u64>,
    end: Vec<u64>,
    depth: Vec<usize>,
    function: Vec<i64>,
    kind: Vec<u8>,
    flags: Vec<u8>,
}

impl Columns {
    fn open(&mut self, at: u64, depth: usize, function: i64, kind: u8) -> usize {
        self.begin.push(at);
        self.end.push(at);
        self.depth.push(depth);
        self.function.push(function);
        self.kind.push(kind);
        self.flags.push(0);
        self.begin.len() - 1
    }

    fn json(&self) -> Value {
        json!({ "begin": self.begin, "end": self.end, "depth": self.depth, "function": self.function,
            "kind": self.kind, "flags": self.flags, "merged": vec![0; self.begin.len()] })
    }
}

/// Runs the sample program and records it.
struct Machine {
    random: Random,
    now: u64,
    slices: Columns,
    own: Vec<u64>,
    calls: Vec<u64>,
    traps: Vec<(u64, u64, bool, i64)>,
    gaps: Vec<(u64, u64)>,
}

impl Machine {
    fn new(seed: u64) -> Self {
        let (own, calls) = (vec![0; NAMES.len()], vec![0; NAMES.len()]);
        Self {
            random: Random(seed),
            now: 0,
            slices: Columns::default(),
            own,
            calls,
            traps: vec![],
            gaps: vec![],
        }
    }

    fn work(&mut self, function: usize, length: u64) {
        self.own[function] += length;
        self.now += length;
    }

    /// A call with calls inside it, as deep as the list of functions allows.
    fn call(&mut self, function: usize, depth: usize, kind: u8) {
        let slice = self.slices.open(self.now, depth, function as i64, kind);
        self.calls[function] += 1;
        let length = 5 + self.random.below(60);
        self.work(function, length);
        for _ in 0..self.random.below(4) {
            let callee = function + 1 + self.random.below(3) as usize;
            if callee >= TIMER_HANDLER || depth > 6 {
                break;
            }
            let kind = if self.random.below(8) == 0 {
                TAIL_CALL
            } else {
                0
            };
            self.call(callee, depth + 1, kind);
            let length = 3 + self.random.below(20);
            self.work(function, length);
            if self.random.below(40) == 0 {
                let interrupt = self.random.below(4) != 0;
                self.trap(function, depth + 1, interrupt);
            }
        }
        self.slices.end[slice] = self.now;
    }

    fn trap(&mut self, interrupted: usize, depth: usize, interrupt: bool) {
        let begin = self.now;
        let (label, handler) = if interrupt {
            (TIMER, TIMER_HANDLER)
        } else {
            (FAULT, TRAP_ENTRY)
        };
        let outer = self.slices.open(begin, depth, -1 - label as i64, TRAP);
        let inner = self.slices.open(begin, depth + 1, handler as i64, 0);
        self.calls[handler] += 1;
        let length = 20 + self.random.below(200);
        self.work(handler, length);
        self.slices.end[inner] = self.now;
        self.slices.end[outer] = self.now;
        self.traps
            .push((begin, self.now, interrupt, interrupted as i64));
    }

    fn gap(&mut self, depth: usize) {
        let begin = self.now;
        let slice = self.slices.open(begin, depth, -1 - REASON as i64, GAP);
        self.now += 400;
        self.slices.end[slice] = self.now;
        self.gaps.push((begin, self.now));
    }

    /// `main` calls until so many slices are recorded.
    fn run(&mut self, slices: usize) {
        let main = self.slices.open(0, 0, 0, 0);
        self.calls[0] += 1;
        while self.slices.begin.len() < slices {
            self.call(1, 1, 0);
            self.work(0, 10);
            if self.random.below(60) == 0 {
                self.gap(1);
            }
        }
        self.slices.end[main] = self.now;
    }
}

/// A histogram with limits that double.
fn histogram(values: &[u64]) -> Value {
    let mut buckets: Vec<(u64, u64)> = (3..10).map(|power| (1 << power, 0)).collect();
    for value in values {
        if let Some(bucket) = buckets.iter_mut().find(|bucket| *value <= bucket.0) {
            bucket.1 += 1;
        }
    }
    json!(buckets)
}

fn interrupts(traps: &[(u64, u64, u64, bool, i64)]) -> Value {
    let mut rows = vec![];
    for (interrupt, cause, name) in [
        (true, 7, "machine timer interrupt"),
        (false, 5, "load access fault"),
    ] {
        let mut some: Vec<_> = traps.iter().filter(|trap| trap.3 == interrupt).collect();
        if some.is_empty() {
            continue;
        }
        some.sort_by_key(|trap| trap.2 - trap.1);
        let lengths: Vec<u64> = some.iter().map(|trap| trap.2 - trap.1).collect();
        let at = |share: usize| lengths[(lengths.len() - 1) * share / 100];
        let worst: Vec<Value> = some
            .iter()
            .rev()
            .take(5)
            .map(|trap| json!({ "track": trap.0, "at": trap.1, "duration": trap.2 - trap.1 }))
            .collect();
        rows.push(json!({ "interrupt": interrupt, "cause": cause, "name": name, "count": some.len(), "nesting": 0,
            "duration": { "min": at(0), "p50": at(50), "p90": at(90), "p99": at(99), "max": at(100), "histogram": histogram(&lengths) },
            "latency": null, "worst": worst }));
    }
    json!(rows)
}

/// A run of the sample program on so many tracks, with so many slices each.
pub(crate) fn run(name: &str, tracks: usize, slices: usize, seed: u64) -> Value {
    let machines: Vec<Machine> = (0..tracks)
        .map(|track| {
            let mut machine = Machine::new(seed + track as u64);
            machine.run(slices);
            machine
        })
        .collect();
    let until = machines
        .iter()
        .map(|machine| machine.now)
        .max()
        .unwrap_or(0);
    let sum = |pick: fn(&Machine) -> &Vec<u64>| -> Vec<u64> {
        (0..NAMES.len())
            .map(|function| machines.iter().map(|machine| pick(machine)[function]).sum())
            .collect()
    };
    let own = sum(|machine| &machine.own);
    let traps: Vec<_> = (0..)
        .zip(&machines)
        .flat_map(|(track, machine)| {
            machine
                .traps
                .iter()
                .map(move |trap| (track, trap.0, trap.1, trap.2, trap.3))
        })
        .collect();
    let gaps: Vec<_> = (0..)
        .zip(&machines)
        .flat_map(|(track, machine)| {
            machine
                .gaps
                .iter()
                .map(move |gap| (track as u64, gap.0, gap.1))
        })
        .collect();
    let mut strings: Vec<&str> = NAMES.to_vec();
    strings.extend([
        "timer interrupt",
        "load access fault",
        "src/video.c",
        "bytes were lost before the next synchronization",
    ]);
    let branches = branches();
    json!({
        "name": name, "format": "N-Trace 1.0", "bytes": 123_456, "program": ["video.elf"],
        "settings": [["address bits", "64"], ["implicit return", "yes"]],
        "instructions": own.iter().sum::<u64>(), "seconds": until as f64 / 1e9,
        "axis": { "unit": "time", "from": 0, "until": until, "ticks_per_second": 1e9 },
        "strings": strings,
        "functions": functions(&own, &sum(|machine| &machine.calls)),
        "tracks": (0..).zip(&machines).map(|(id, machine): (u64, _)| json!({ "id": id, "hart": id, "context": null, "thread": 0,
            "name": format!("hart {id}"), "max_depth": 8, "slices": machine.slices.json() })).collect::<Vec<_>>(),
        "traps": { "track": column(&traps, |trap| trap.0), "at": column(&traps, |trap| trap.1), "end": column(&traps, |trap| trap.2),
            "interrupt": column(&traps, |trap| u64::from(trap.3)), "cause": column(&traps, |trap| if trap.3 { 7 } else { 5 }),
            "epc": traps.iter().map(|trap| address(trap.4 as usize, 2)).collect::<Vec<_>>(), "tval": null,
            "function": traps.iter().map(|trap| trap.4).collect::<Vec<_>>(),
            "handler": column(&traps, |trap| if trap.3 { TIMER_HANDLER as u64 } else { TRAP_ENTRY as u64 }) },
        "interrupts": interrupts(&traps),
        "gaps": { "track": column(&gaps, |gap| gap.0), "at": column(&gaps, |gap| gap.1), "end": column(&gaps, |gap| gap.2),
            "bytes": column(&gaps, |_| 96), "reason": column(&gaps, |_| REASON as u64), "code": vec!["NT0203"; gaps.len()] },
        "flame": flame(&machines),
        "branches": branches,
        "code": (0..NAMES.len()).map(|function| json!({ "function": function, "rows": code_rows(function, &own) })).collect::<Vec<_>>(),
        "sources": [source(&own)],
        "endings": (0..tracks).map(|track| json!({ "track": track, "how": "the trace ends after a load access fault in the handler itself",
            "rows": last_rows(until, 12, true) })).collect::<Vec<_>>(),
        "before_traps": traps.iter().position(|trap| !trap.3).map(|trap| json!({ "trap": trap, "again": false, "rows": last_rows(traps[trap].1, 8, true), "callers": callers() })).into_iter().collect::<Vec<_>>(),
        "statistics": { "messages": [["IndirectBranchHist", 4000, 60_000], ["ResourceFull", 300, 2400], ["ProgTraceSync", 90, 1800]],
            "bandwidth": { "unit": "bytes per 10 µs", "x": (0..120).map(|x| x * until / 120).collect::<Vec<_>>(),
                "bytes": (0..120).map(|x| 300 + (x * 37) % 211 + if x == 60 { 600 } else { 0 }).collect::<Vec<u64>>() },
            "bits_per_instruction": 0.731 },
        "left_out": ["1 234 calls shorter than 4 instructions are drawn as part of their caller"],
    })
}

fn column<T>(rows: &[T], value: impl Fn(&T) -> u64) -> Vec<u64> {
    rows.iter().map(value).collect()
}

fn address(function: usize, instruction: usize) -> String {
    format!(
        "{:#x}",
        0x8000_0000_u64 + 0x100 * function as u64 + 4 * instruction as u64
    )
}

fn functions(own: &[u64], calls: &[u64]) -> Value {
    let size = NAMES.len();
    json!({ "name": (0..size).collect::<Vec<_>>(), "file": vec![FILE; size], "line": (0..size).map(|one| 10 * one + 3).collect::<Vec<_>>(),
        "address": (0..size).map(|one| address(one, 0)).collect::<Vec<_>>(), "size": vec![0x60; size], "self": own,
        "total": own.iter().map(|value| value * 2).collect::<Vec<_>>(), "calls": calls, "self_time": own,
        "total_time": own.iter().map(|value| value * 2).collect::<Vec<_>>(),
        "covered": (0..size).map(|one| if one % 3 == 0 { 24 } else { 20 }).collect::<Vec<_>>(), "insns": vec![24; size] })
}

/// Every function has three branches: one taken both ways, one never, one always.
fn branches() -> Value {
    let all: Vec<(usize, usize)> = (0..NAMES.len())
        .flat_map(|function| [3, 7, 11].map(|place| (function, place)))
        .collect();
    json!({ "address": all.iter().map(|(function, place)| address(*function, *place)).collect::<Vec<_>>(),
        "function": all.iter().map(|one| one.0).collect::<Vec<_>>(), "file": vec![FILE; all.len()],
        "line": all.iter().map(|(function, place)| 10 * function + 3 + place / 3).collect::<Vec<_>>(),
        "taken": all.iter().map(|one| if one.1 == 7 { 0 } else { 40 }).collect::<Vec<_>>(),
        "not_taken": all.iter().map(|one| if one.1 == 11 { 0 } else { 25 }).collect::<Vec<_>>() })
}

fn code_rows(function: usize, own: &[u64]) -> Value {
    let rows = 0..24_usize;
    let text = |row: usize| match row {
        3 | 7 | 11 => format!("bne     a0, a1, {}", address(function, row + 4)),
        15 => "jal     ra, memcpy".to_owned(),
        23 => "ret".to_owned(),
        _ => format!("addi    a{}, a{}, {row}", row % 8, (row + 1) % 8),
    };
    let branch = |row: usize| matches!(row, 3 | 7 | 11);
    json!({ "address": rows.clone().map(|row| address(function, row)).collect::<Vec<_>>(),
        "bytes": rows.clone().map(|row| format!("{:08x}", 0x0005_0513 + row)).collect::<Vec<_>>(),
        "text": rows.clone().map(text).collect::<Vec<_>>(),
        "count": rows.clone().map(|row| if row >= 20 && !function.is_multiple_of(3) { 0 } else { own[function] / (20 + row as u64) }).collect::<Vec<_>>(),
        "file": vec![FILE; 24], "line": rows.clone().map(|row| 10 * function + 3 + row / 3).collect::<Vec<_>>(),
        "target": rows.clone().map(|row| if branch(row) { Some(address(function, row + 4)) } else { (row == 15).then(|| address(5, 0)) }).collect::<Vec<_>>(),
        "taken": rows.clone().map(|row| if !branch(row) { -1 } else if row == 7 { 0 } else { 40 }).collect::<Vec<_>>(),
        "not_taken": rows.map(|row| if !branch(row) { -1 } else if row == 11 { 0 } else { 25 }).collect::<Vec<_>>() })
}

fn source(own: &[u64]) -> Value {
    let lines: Vec<String> = (1..=10 * NAMES.len() + 10)
        .map(|line| match (line % 10, NAMES.get(line / 10)) {
            (3, Some(name)) => format!("static int {name}(const uint8_t *data, size_t length)"),
            (4, Some(_)) => "{".to_owned(),
            (5, Some(_)) => "\tif (data[0] < 0x80 && length > 4)".to_owned(),
            (1, Some(_)) => "}".to_owned(),
            (6..=9, Some(_)) => format!("\t\tstate = step(state, data[{line}]);"),
            _ => String::new(),
        })
        .collect();
    let count: Vec<i64> = (1..=lines.len())
        .map(|line| match (line % 10, own.get(line / 10)) {
            (3 | 5..=8, Some(own)) => (*own / 30) as i64,
            (9, Some(_)) => 0,
            _ => -1,
        })
        .collect();
    json!({ "file": FILE, "lines": lines, "count": count, "first": 1 })
}

fn callers() -> Value {
    json!({ "address": [address(2, 3), address(0, 1)], "function": [2, 0], "file": [FILE, FILE], "line": [24, 4], "trap": ["", "illegal instruction"] })
}

fn last_rows(until: u64, count: usize, fault: bool) -> Value {
    let rows = 0..count;
    json!({ "at": rows.clone().map(|row| until - (count - row) as u64).collect::<Vec<_>>(),
        "address": rows.clone().map(|row| address(5, row)).collect::<Vec<_>>(),
        "text": rows.clone().map(|row| if row + 1 == count { "lw      a0, 0(a5)".to_owned() } else { format!("addi    a5, a5, {row}") }).collect::<Vec<_>>(),
        "function": vec![5; count], "file": vec![FILE; count], "line": rows.clone().map(|row| 53 + row / 3).collect::<Vec<_>>(),
        "note": rows.map(|row| match row + 1 == count {
            true if fault => "did not retire: load access fault",
            true => "to walk_trap_table",
            false => "",
        }).collect::<Vec<_>>(),
        "kind": (1..=count).map(|row| if row == count && fault { 2 } else { 0 }).collect::<Vec<_>>() })
}

/// The merged tree of all calls, from the slices.
fn flame(machines: &[Machine]) -> Value {
    let mut nodes: Vec<(i64, i64, u64, u64)> = vec![];
    for machine in machines {
        let slices = &machine.slices;
        let mut stack: Vec<(usize, usize)> = vec![];
        for slice in 0..slices.begin.len() {
            if slices.kind[slice] == GAP {
                continue;
            }
            stack.truncate(slices.depth[slice]);
            let parent = stack.last().map_or(-1, |(_, node)| *node as i64);
            let function = slices.function[slice];
            let found = nodes
                .iter()
                .position(|node| node.0 == parent && node.1 == function);
            let node = found.unwrap_or_else(|| {
                nodes.push((parent, function, 0, 0));
                nodes.len() - 1
            });
            let length = slices.end[slice] - slices.begin[slice];
            nodes[node].2 += length;
            nodes[node].3 += 1;
            if parent >= 0 {
                nodes[parent as usize].2 = nodes[parent as usize].2.saturating_sub(length);
            }
            stack.push((slice, node));
        }
    }
    let own: Vec<u64> = nodes.iter().map(|node| node.2).collect();
    json!({ "parent": nodes.iter().map(|node| node.0).collect::<Vec<_>>(), "function": nodes.iter().map(|node| node.1).collect::<Vec<_>>(),
        "self": own, "total": own, "calls": nodes.iter().map(|node| node.3).collect::<Vec<_>>(), "self_time": own })
}

/// A document of some runs.
pub(crate) fn document(runs: Vec<Value>) -> Value {
    json!({ "schema": "hartrace-report", "version": 1, "tool": "hartrace 0.1.0", "live": false, "runs": runs, "compare": null })
}

/// A run in which nothing happened.
pub(crate) fn empty() -> Value {
    let mut run = run("empty.ntrace", 0, 0, 1);
    let columns = |names: &[&str]| {
        Value::Object(
            names
                .iter()
                .map(|name| ((*name).to_owned(), json!([])))
                .collect(),
        )
    };
    run["functions"] = columns(&[
        "name", "file", "line", "address", "size", "self", "total", "calls", "covered", "insns",
    ]);
    run["branches"] = columns(&["address", "function", "file", "line", "taken", "not_taken"]);
    run["axis"] =
        json!({ "unit": "instructions", "from": 0, "until": 0, "ticks_per_second": null });
    for key in [
        "strings",
        "code",
        "sources",
        "endings",
        "before_traps",
        "settings",
        "program",
        "left_out",
    ] {
        run[key] = json!([]);
    }
    run["seconds"] = Value::Null;
    run["statistics"] = json!({ "messages": [], "bandwidth": { "unit": "bytes", "x": [], "bytes": [] }, "bits_per_instruction": null });
    run
}

/// A run whose only track has these slices of `main`: begin, end, depth.
pub(crate) fn only(slices: &[(u64, u64, usize)]) -> Value {
    let mut run = run("slices.ntrace", 1, 2, 1);
    let mut columns = Columns::default();
    for (begin, end, depth) in slices {
        let slice = columns.open(*begin, *depth, (*depth % NAMES.len()) as i64, 0);
        columns.end[slice] = *end;
    }
    let until = slices.iter().map(|slice| slice.1).max().unwrap_or(0);
    run["axis"] =
        json!({ "unit": "instructions", "from": 0, "until": until, "ticks_per_second": null });
    run["tracks"][0]["slices"] = columns.json();
    run
}

/// A run with so many functions that tables draw only a part of them.
pub(crate) fn many_functions(count: usize) -> Value {
    let mut run = run("functions.ntrace", 1, 100, 1);
    let first = run["strings"].as_array().unwrap().len();
    let strings = run["strings"].as_array_mut().unwrap();
    strings.extend((0..count).map(|number| json!(format!("function_{number}"))));
    let columns = run["functions"].as_object_mut().unwrap();
    for (key, column) in columns {
        let column = column.as_array_mut().unwrap();
        column.extend((0..count).map(|number| match key.as_str() {
            "name" => json!(first + number),
            "address" => json!(address(100 + number, 0)),
            "self" | "total" => json!(10_000_000 - number),
            _ => json!(1),
        }));
    }
    run
}

/// Names that try to leave their place.
pub(crate) const HOSTILE: [&str; 8] = [
    "</script><script>window.harmed=1</script>",
    "<img src=x onerror=window.harmed=1>",
    "\"><svg onload=window.harmed=1>",
    "{{data}}{{connect}}",
    "javascript:window.harmed=1",
    "\u{202e}txet desrever\u{0}\u{7f}",
    "<!--<script>",
    "${window.harmed=1}%s%d`'\\",
];

/// A run in which every text is hostile.
pub(crate) fn hostile() -> Value {
    let mut run = run("</title><script>window.harmed=1</script>", 1, 300, 9);
    for (place, string) in run["strings"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .enumerate()
    {
        *string = json!(HOSTILE[place % HOSTILE.len()]);
    }
    run["strings"][5] = json!("x".repeat(5000));
    run["format"] = json!(HOSTILE[0]);
    run["program"] = json!([HOSTILE[1]]);
    run["left_out"] = json!([HOSTILE[2]]);
    run["settings"] = json!([[HOSTILE[0], HOSTILE[1]]]);
    run["tracks"][0]["name"] = json!(HOSTILE[1]);
    run["interrupts"][0]["name"] = json!(HOSTILE[2]);
    run["sources"][0]["lines"] = json!(HOSTILE);
    run["sources"][0]["count"] = json!([1, 1, 1, 0, 0, 0, -1, -1]);
    run["endings"][0]["how"] = json!(HOSTILE[0]);
    run["endings"][0]["rows"]["text"] = json!(vec![HOSTILE[1]; 12]);
    run["statistics"]["messages"] = json!([[HOSTILE[0], 1, 1]]);
    run
}
