//! `timeline -f fst`: waveforms, read here by hand.

use crate::timeline::{Found, hostile, program, recorded, slices, started};
use crate::{Folder, hartrace, json_lines, run, succeeds, text};
use flate2::read::{GzDecoder, ZlibDecoder};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;

/// A waveform: the exponent of its unit of time, where it begins and ends, and the changes
/// of each signal.
struct Waveform {
    exponent: i8,
    range: (u64, u64),
    sections: u64,
    signals: BTreeMap<String, Vec<(u64, String)>>,
}

/// Reads numbers, from the start of bytes on.
struct Numbers<'a>(&'a [u8]);

impl<'a> Numbers<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(count);
        self.0 = rest;
        bytes
    }

    fn byte(&mut self) -> u8 {
        self.take(1)[0]
    }

    fn fixed(&mut self) -> u64 {
        u64::from_be_bytes(self.take(8).try_into().unwrap())
    }

    fn varint(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    }

    fn signed(&mut self) -> i64 {
        let before = self.0.len();
        let value = self.varint() as i64;
        let bits = 7 * (before - self.0.len()) as u32;
        let shift = 64u32.saturating_sub(bits);
        value << shift >> shift
    }

    fn text(&mut self) -> String {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap();
        let text = String::from_utf8(self.take(end).to_vec()).unwrap();
        self.byte();
        text
    }
}

fn inflated(bytes: &[u8], length: usize) -> Vec<u8> {
    if bytes.len() == length {
        return bytes.to_vec();
    }
    let mut all = Vec::new();
    ZlibDecoder::new(bytes).read_to_end(&mut all).unwrap();
    assert_eq!(all.len(), length);
    all
}

/// The names of the signals, with their scopes.
fn names(section: &mut Numbers<'_>, lengths: &[u64]) -> Vec<String> {
    let length = section.fixed();
    let mut all = Vec::new();
    GzDecoder::new(section.0).read_to_end(&mut all).unwrap();
    assert_eq!(all.len() as u64, length);
    let (mut all, mut scopes, mut names) = (Numbers(&all), Vec::new(), Vec::new());
    while !all.0.is_empty() {
        match all.byte() {
            254 => {
                assert_eq!(all.byte(), 0);
                scopes.push(all.text());
                assert_eq!(all.text(), "");
            }
            255 => drop(scopes.pop().unwrap()),
            kind => {
                assert_eq!(all.byte(), 0);
                let name = all.text();
                let (bits, alias) = (all.varint(), all.varint());
                assert_eq!(alias, 0);
                let expected = match (kind, lengths[names.len()]) {
                    (21, 0xffff_ffff) => 0,
                    (16, bits) => bits,
                    other => panic!("{other:?}"),
                };
                assert_eq!(bits, expected);
                let bare = name.split(" [").next().unwrap();
                names.push(format!("{}.{bare}", scopes.join(".")));
            }
        }
    }
    assert!(scopes.is_empty());
    names
}

/// A value of so many bits, as a number or `x`.
fn bits(chain: &mut Numbers<'_>, bits: u64, is_plain: bool) -> String {
    if !is_plain {
        let all = chain.take(bits as usize);
        assert!(all.iter().all(|c| *c == b'x'), "{all:?}");
        return "x".to_owned();
    }
    let bytes = chain.take(bits.div_ceil(8) as usize);
    let value = bytes
        .iter()
        .fold(0u128, |v, byte| v << 8 | u128::from(*byte));
    format!("{:#x}", value >> (8 * bytes.len() as u64 - bits))
}

/// The changes of one section, each with the index of its time.
fn changes(chain: &[u8], length: u64) -> Vec<(u64, String)> {
    let (mut chain, mut index, mut all) = (Numbers(chain), 0, Vec::new());
    while !chain.0.is_empty() {
        let head = chain.varint();
        let value = match length {
            0xffff_ffff => {
                index += head >> 1;
                let length = chain.varint();
                String::from_utf8(chain.take(length as usize).to_vec()).unwrap()
            }
            1 if head & 1 == 0 => {
                index += head >> 2;
                format!("{:#x}", head >> 1 & 1)
            }
            1 => {
                index += head >> 4;
                assert_eq!(head >> 1 & 7, 0);
                "x".to_owned()
            }
            length => {
                index += head >> 1;
                bits(&mut chain, length, head & 1 == 0)
            }
        };
        all.push((index, value));
    }
    all
}

fn section(section: &mut Numbers<'_>, lengths: &[u64], names: &[String], wave: &mut Waveform) {
    let whole = section.0;
    let (begin, end, _) = (section.fixed(), section.fixed(), section.fixed());
    assert!(wave.range.0 <= begin && begin <= end && end <= wave.range.1);
    let (plain, packed, count) = (section.varint(), section.varint(), section.varint());
    assert_eq!(count, lengths.len() as u64);
    let fixed = lengths.iter().filter(|length| **length != 0xffff_ffff);
    assert_eq!(plain, fixed.sum::<u64>());
    section.take(packed as usize);
    assert_eq!(section.varint(), count);
    let start = whole.len() - section.0.len();
    assert_eq!(section.byte(), b'Z');
    // The end of the section, backwards: times, then the places of chains.
    let last = whole.len() - 24;
    let mut sizes = Numbers(&whole[last..]);
    let (plain, packed, times) = (sizes.fixed(), sizes.fixed() as usize, sizes.fixed());
    let packed = &whole[last - packed..last];
    let table = inflated(packed, plain as usize);
    let (mut table, mut now) = (Numbers(&table), 0);
    let mut all_times = Vec::new();
    while !table.0.is_empty() {
        now += table.varint();
        all_times.push(now);
    }
    assert_eq!(all_times.len() as u64, times);
    assert!(all_times.is_sorted_by(|a, b| a < b));
    assert!(all_times.iter().all(|at| (begin..=end).contains(at)));
    let places_end = last - packed.len() - 8;
    let length = Numbers(&whole[places_end..]).fixed() as usize;
    let mut places = Numbers(&whole[places_end - length..places_end]);
    let (mut at, mut signal) = (start, 0);
    let mut starts = Vec::new();
    while !places.0.is_empty() {
        match places.0[0] & 1 {
            0 => signal += places.varint() as usize >> 1,
            _ => {
                at += (places.signed() >> 1) as usize;
                starts.push((signal, at));
                signal += 1;
            }
        }
    }
    assert_eq!(signal as u64, count);
    let ends = starts.iter().skip(1).map(|(_, at)| *at);
    let ends = ends.chain([places_end - length]).collect::<Vec<_>>();
    for ((signal, start), end) in starts.into_iter().zip(ends) {
        let mut chain = Numbers(&whole[start..end]);
        let chain = match chain.varint() {
            0 => chain.0.to_vec(),
            length => inflated(chain.0, length as usize),
        };
        let on = wave.signals.get_mut(&names[signal]).unwrap();
        for (index, value) in changes(&chain, lengths[signal]) {
            on.push((all_times[index as usize], value));
        }
    }
    wave.sections += 1;
}

fn waveform(file: &str) -> Waveform {
    let bytes = fs::read(file).unwrap();
    let mut all = Numbers(&bytes);
    let mut wave = Waveform {
        exponent: 0,
        range: (0, 0),
        sections: 0,
        signals: BTreeMap::new(),
    };
    let (mut lengths, mut list, mut expected) = (Vec::new(), Vec::new(), 0);
    while !all.0.is_empty() {
        let kind = all.byte();
        let length = Numbers(all.0).fixed() as usize;
        let mut of = Numbers(&all.take(length)[8..]);
        match kind {
            0 => {
                assert_eq!(length, 329);
                wave.range = (of.fixed(), of.fixed());
                assert_eq!(of.take(8), std::f64::consts::E.to_le_bytes());
                of.take(8 * 4);
                expected = of.fixed();
                wave.exponent = of.byte() as i8;
            }
            3 => {
                let (plain, count) = (of.fixed(), of.fixed());
                assert_eq!(plain, of.0.len() as u64);
                lengths = (0..count).map(|_| of.varint()).collect();
            }
            4 => {
                list = names(&mut of, &lengths);
                let none = list.iter().map(|name| (name.clone(), Vec::new()));
                wave.signals = none.collect();
            }
            8 => section(&mut of, &lengths, &list, &mut wave),
            other => panic!("section {other}"),
        }
    }
    assert_eq!(wave.sections, expected);
    wave
}

impl Waveform {
    fn of(&self, name: &str) -> &[(u64, String)] {
        &self.signals[name]
    }

    /// How long a signal has each value, and how often it takes it.
    fn lasting(&self, name: &str) -> BTreeMap<&str, (u64, u64)> {
        let changes = self.of(name);
        let ends = changes.iter().skip(1).map(|change| change.0);
        let mut all = BTreeMap::new();
        for ((begin, value), end) in changes.iter().zip(ends.chain([self.range.1])) {
            let sum: &mut (u64, u64) = all.entry(value.as_str()).or_default();
            *sum = (sum.0 + end - begin, sum.1 + 1);
        }
        all
    }
}

/// Writes a waveform; what is said.
fn written(args: &[&str], file: &str) -> String {
    let output = run(&[&["timeline", "-f", "fst", "-o", file], args].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stderr).to_owned()
}

/// Functions run as long as in the profile, traps as often as in the list of interrupts,
/// and the pc is what the instruction at its place has.
#[test]
fn signals_are_what_the_other_views_count() {
    let folder = Folder::new();
    let file = folder.name("t.fst");
    for (name, kind) in [
        ("timer", "ntrace"),
        ("timer", "etrace"),
        ("scheduler", "tandem"),
        ("recursion", "ntrace"),
    ] {
        let trace = match name {
            "recursion" => started(&folder, &program(name), kind),
            _ => recorded(&folder, name, kind, ""),
        };
        let message = written(&[&trace], &file);
        assert!(
            message.contains("a nanosecond in the file is one instruction"),
            "{message}"
        );
        let wave = waveform(&file);
        assert_eq!(wave.exponent, -9);
        let functions = wave.lasting("hart0.function");
        let profile = json_lines(&["profile", &trace, "-f", "json"]);
        let mut total = 0;
        for function in profile.iter().filter(|v| v["type"] == "function") {
            let name = function["name"].as_str().unwrap();
            assert_eq!(
                function["self"]["instructions"], functions[name].0,
                "{name}"
            );
            total += functions[name].0;
        }
        assert_eq!(wave.range, (0, total));
        let (functions, traps, depths) = expected(&slices(&folder, &trace));
        assert!(steps(wave.of("hart0.function")) == functions);
        assert!(steps(wave.of("hart0.trap")) == traps);
        assert!(steps(wave.of("hart0.depth")) == depths);
        let pcs = succeeds(&["decode", &trace, "-f", "pc"]);
        let pcs: Vec<u64> = pcs
            .lines()
            .map(|l| u64::from_str_radix(l, 16).unwrap())
            .collect();
        assert_eq!(pcs.len() as u64, total);
        let changes = wave.of("hart0.pc");
        assert!(changes.len() > pcs.len() / 20);
        for (at, pc) in changes {
            assert_eq!(*pc, format!("{:#x}", pcs[*at as usize]), "{at}");
        }
        // Between two changes the code is straight, perhaps several times.
        let next = changes.iter().skip(1).map(|change| change.0);
        for ((at, _), next) in changes.iter().zip(next) {
            let run = &pcs[*at as usize..next as usize];
            let goes_on = |a: &u64, b: &u64| *b == run[0] || (1..=4).contains(&b.wrapping_sub(*a));
            assert!(run.is_sorted_by(goes_on), "{at}");
        }
        // N-Trace reports modes only with contexts.
        let modes: Vec<_> = wave.lasting("hart0.privilege").into_keys().collect();
        assert_eq!(modes, ["M"][usize::from(kind == "ntrace")..]);
        let threads = wave.lasting("hart0.thread").len();
        assert_eq!(threads, if name == "scheduler" { 4 } else { 1 });
        assert_eq!(
            wave.lasting("hart0.gap").keys().collect::<Vec<_>>(),
            [&"0x0"]
        );
        // N-Trace does not report causes.
        let causes = wave.lasting("hart0.cause");
        let is_known = name != "recursion" && kind != "ntrace";
        assert_eq!(causes.contains_key("0x8000000000000007"), is_known);
        if is_known && name == "timer" {
            let traps = wave.lasting("hart0.trap");
            assert_eq!(
                causes["0x8000000000000003"],
                traps["machine software interrupt"]
            );
        }
    }
}

/// Steps of a signal over time: where each value begins.
type Steps = Vec<(u64, String)>;

/// What function, trap and depth the slices give at each place.
fn expected(slices: &[Found]) -> (Steps, Steps, Steps) {
    let ends = slices.iter().flat_map(|s| [s.begin, s.end]);
    let places: std::collections::BTreeSet<u64> = ends.collect();
    let mut all = (Steps::new(), Steps::new(), Steps::new());
    for at in places {
        let mut open: Vec<&Found> = slices
            .iter()
            .filter(|s| s.begin <= at && at < s.end)
            .collect();
        let is_away = |track: &str| {
            let mut on = open.iter().filter(|s| s.track == track);
            on.any(|s| s.category == "other threads")
        };
        let running = open.iter().find(|s| !is_away(&s.track));
        let running = running.map(|s| s.track.clone()).unwrap_or_default();
        open.retain(|s| s.track == running);
        open.sort_by_key(|s| s.depth);
        let call = open.last().filter(|s| s.category == "call");
        let trap = open.iter().rfind(|s| s.category == "trap");
        let calls = open.iter().filter(|s| s.category == "call").count();
        let name = |s: Option<&&Found>| s.map(|s| s.name.clone()).unwrap_or_default();
        all.0.push((at, name(call)));
        all.1.push((at, name(trap)));
        all.2.push((at, format!("{calls:#x}")));
    }
    (steps(&all.0), steps(&all.1), steps(&all.2))
}

/// Without values that are those before, and an empty one at the start.
fn steps(changes: &[(u64, String)]) -> Steps {
    let mut all = Steps::new();
    for change in changes {
        let last = all.last().map_or("", |last| last.1.as_str());
        if *last != change.1 {
            all.push(change.clone());
        }
    }
    all
}

/// Modes are signals, and 32 bits are enough for some.
#[test]
fn modes_and_widths() {
    let folder = Folder::new();
    let trace = recorded(&folder, "modes", "etrace", "");
    let file = folder.name("t.fst");
    written(&[&trace], &file);
    let modes = waveform(&file);
    let found: Vec<_> = modes.lasting("hart0.privilege").into_keys().collect();
    assert_eq!(found, ["M", "S", "U"]);
    let elf = program("timer").replace("rv64gc", "rv32gc");
    let trace = folder.name("small.etrace");
    let to = format!("etrace={trace}");
    assert_eq!(
        run(&["run", "-q", &elf, "--trace", &to]).status.code(),
        Some(0)
    );
    written(&[&trace], &file);
    let small = waveform(&file);
    assert!(small.lasting("hart0.cause").contains_key("0x80000007"));
}

/// With timestamps, times are those of the trace, in units of the given length.
#[test]
fn times_have_a_scale() {
    let folder = Folder::new();
    let trace = recorded(&folder, "timer", "ntrace", "[ntrace]\ntimestamps = true\n");
    let [a, b] = ["a.fst", "b.fst"].map(|name| folder.name(name));
    let message = written(&[&trace], &a);
    assert!(
        message.contains("--timescale says how long that is"),
        "{message}"
    );
    assert_eq!(written(&[&trace, "--timescale", "250MHz"], &b), "");
    let (a, b) = (waveform(&a), waveform(&b));
    assert_eq!((a.exponent, b.exponent), (-9, -9));
    assert_eq!((a.range.0 * 4, a.range.1 * 4), b.range);
    assert!(a.range.0 > 0 && a.of("hart0.pc").len() > 1000);
    for (name, changes) in &a.signals {
        let scaled = changes.iter().map(|(at, value)| (at * 4, value));
        assert!(
            scaled.eq(b.of(name).iter().map(|(at, value)| (*at, value))),
            "{name}"
        );
    }
    written(&[&trace, "--timescale", "10ms"], &folder.name("c.fst"));
    assert_eq!(waveform(&folder.name("c.fst")).exponent, -2);
}

/// Harts are in one file, in order of time, whatever the order of the trace is.
#[test]
fn harts_have_scopes() {
    let folder = Folder::new();
    let elf = program("recursion");
    let log = folder.name("run.spike");
    let to = format!("spike={log}");
    let args = ["run", "-q", &elf, "--max-insns", "8000", "--log", &to];
    assert_eq!(run(&args).status.code(), Some(0));
    let one = fs::read_to_string(&log).unwrap();
    // One after the other.
    let both = format!("{one}{}", one.replace("core   0", "core   1"));
    let both = folder.file("both.log", both);
    let file = folder.name("t.fst");
    written(&[&both, "-e", &elf], &file);
    let wave = waveform(&file);
    assert_eq!(wave.signals.len(), 20);
    for (name, changes) in &wave.signals {
        if let Some(signal) = name.strip_prefix("hart0.") {
            assert!(changes == wave.of(&format!("hart1.{signal}")), "{name}");
        }
    }
    assert!(wave.of("hart1.function").len() > 10);
    written(&[&both, "-e", &elf, "--hart", "1"], &file);
    assert_eq!(waveform(&file).signals.len(), 10);
}

/// A gap is seen with times and without, and the pc is not known in it.
#[test]
fn gaps_are_signals() {
    let folder = Folder::new();
    let file = folder.name("t.fst");
    for config in ["", "timestamps = true\n"] {
        let config = format!("[ntrace]\nsync_max = 0\n{config}");
        let trace = recorded(&folder, "timer", "ntrace", &config);
        let mut bytes = fs::read(&trace).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle..middle + 40].fill(0x55);
        fs::write(&trace, bytes).unwrap();
        let output = hartrace()
            .args(["timeline", &trace, "-f", "fst", "-o", &file])
            .output();
        assert_eq!(output.unwrap().status.code(), Some(0));
        let wave = waveform(&file);
        let gaps = wave.lasting("hart0.gaps");
        assert!(gaps.len() > 1, "{gaps:?}");
        let timed = config.contains("timestamps");
        let gap = wave.lasting("hart0.gap");
        assert_eq!(
            gap.get("0x1").is_some_and(|gap| gap.0 > 0),
            timed,
            "{gap:?}"
        );
        assert_eq!(wave.lasting("hart0.pc").contains_key("x"), timed);
    }
}

/// With a least duration, what is left out is said, and the pc is given less often.
#[test]
fn short_slices_are_left_out() {
    let folder = Folder::new();
    let trace = recorded(&folder, "timer", "etrace", "");
    let [a, b] = ["a.fst", "b.fst"].map(|name| folder.name(name));
    written(&[&trace], &a);
    let message = written(&[&trace, "--min-duration", "100"], &b);
    assert!(
        message.contains("left out: 1 193 slices shorter than 100"),
        "{message}"
    );
    let (a, b) = (waveform(&a), waveform(&b));
    let pcs = b.of("hart0.pc");
    let all = a.of("hart0.pc");
    for (at, pc) in pcs {
        let before = all.partition_point(|change| change.0 <= *at);
        assert_eq!(all[before - 1].1, *pc);
    }
    assert!(pcs.windows(2).all(|two| two[1].0 - two[0].0 >= 100));
    assert!(pcs.len() as u64 > b.range.1 / 200, "{}", pcs.len());
    assert!(b.of("hart0.function").len() < a.of("hart0.function").len() / 4);
}

/// A name may be anything, and a file may be stdout.
#[test]
fn names_do_no_harm() {
    let folder = Folder::new();
    let (trace, name) = hostile(&folder);
    let file = folder.name("t.fst");
    written(&["-q", &trace], &file);
    let wave = waveform(&file);
    // It calls itself: its value does not change then.
    assert!(wave.lasting("hart0.function")[name].0 > 1000);
    let out = run(&["timeline", "-q", &trace, "-f", "fst"]);
    assert!(out.stdout == fs::read(&file).unwrap());
}
