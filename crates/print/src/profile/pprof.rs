//! The profile format of pprof: a message of Protocol Buffers, compressed with gzip.
//! Field numbers are those of `profile.proto`.

use super::folded::what_name;
use super::{Shown, unit};
use flate2::Compression;
use flate2::write::GzEncoder;
use hartrace_analyze::protobuf::Message;
use hartrace_analyze::{
    Cost, FunctionId, LineRanges, Module, NodeId, PathRuns, Profile, Segment, SourceFrame, What,
};
use std::collections::HashMap;
use std::io::{self, Write};

/// Fields of `Profile`.
const SAMPLE_TYPE: u32 = 1;
const SAMPLE: u32 = 2;
const MAPPING: u32 = 3;
const LOCATION: u32 = 4;
const FUNCTION: u32 = 5;
const STRING: u32 = 6;
const PERIOD_TYPE: u32 = 11;
const PERIOD: u32 = 12;
const COMMENT: u32 = 13;
const DEFAULT_TYPE: u32 = 14;

/// Samples at most with one for each instruction; otherwise there is one for each line.
const MOST_SAMPLES: u64 = 2_000_000;

/// Writes the profile: a sample for each call path and instruction, with the instructions
/// executed there, their time if the trace has times, and calls. A function is called at
/// its first instruction. The harts, contexts and modes that are told apart are labels.
/// Gives what was left out, if anything was.
///
/// # Errors
///
/// A failing write.
pub fn pprof(
    shown: &Shown<'_>,
    paths: &PathRuns,
    modules: &[Module],
    out: &mut dyn Write,
) -> io::Result<Option<String>> {
    let ranges = shown.places.line_ranges(0, u64::MAX);
    let is_coarse = paths.most() > MOST_SAMPLES;
    let functions = &shown.profile.functions;
    let line_start = |pc: u64| {
        let function = || functions.of(pc).map(|id| functions.get(id).start);
        ranges.start_of(pc).or_else(function).unwrap_or(pc)
    };
    let costs = match is_coarse {
        true => paths.costs(shown.image, &line_start),
        false => paths.costs(shown.image, &|pc| pc),
    };
    let mut samples: Vec<(NodeId, u64, Cost, u64)> = Vec::with_capacity(costs.len());
    for ((node, pc), cost) in costs {
        samples.push((node, pc, cost, 0));
    }
    add_calls(shown, &mut samples);
    let mut writer = Writer {
        shown,
        modules,
        ranges: &ranges,
        strings: Strings::default(),
        functions: HashMap::new(),
        locations: HashMap::new(),
        out: GzEncoder::new(out, Compression::default()),
    };
    writer.strings.number("");
    writer.types()?;
    for (node, pc, cost, calls) in &samples {
        writer.sample(*node, *pc, *cost, *calls)?;
    }
    writer.mappings()?;
    writer.strings()?;
    writer.out.finish()?;
    Ok(is_coarse.then(|| {
        "one sample for each call path and source line: the profile has too many instructions"
            .to_owned()
    }))
}

/// Puts the calls of each path at the first instruction of its function.
fn add_calls(shown: &Shown<'_>, samples: &mut Vec<(NodeId, u64, Cost, u64)>) {
    let tree = &shown.profile.tree;
    let mut calls: HashMap<(NodeId, u64), u64> = HashMap::new();
    for (at, node) in tree.nodes().iter().enumerate() {
        if let (What::Function(id), true) = (node.what, node.calls > 0) {
            let start = shown.profile.functions.get(id).start;
            calls.insert((tree.id(at), start), node.calls);
        }
    }
    for (node, pc, _, count) in samples.iter_mut() {
        *count = calls.remove(&(*node, *pc)).unwrap_or(0);
    }
    // Functions whose first instruction was not executed: a trap was taken before it.
    let left = calls.into_iter();
    samples.extend(left.map(|((node, pc), count)| (node, pc, Cost::default(), count)));
    samples.sort_by_key(|(node, pc, ..)| (*node, *pc));
}

/// Strings, which messages name by their number.
#[derive(Default)]
struct Strings {
    numbers: HashMap<String, u64>,
    list: Vec<String>,
}

impl Strings {
    fn number(&mut self, text: &str) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.list.len() as u64;
        self.list.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

/// What a location is: an address in a function, or a part of the path without code.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    Code(FunctionId, u64),
    Trap(What),
}

/// A call path as a sample has it.
struct Path {
    /// The innermost first.
    places: Vec<Place>,
    /// Keys and values.
    labels: Vec<(&'static str, String)>,
}

/// The call path of an instruction. Callers are where they call.
fn path(profile: &Profile, node: NodeId, pc: u64) -> Path {
    let mut path = Path {
        places: Vec::new(),
        labels: Vec::new(),
    };
    let (mut at, mut address) = (node, pc);
    while let Some(node) = profile.tree.node(at).filter(|_| at != NodeId::ROOT) {
        match node.what {
            What::Function(id) => {
                let start = profile.functions.get(id).start;
                // A caller that was found by a return, or at the start of the trace.
                let address = if address == 0 { start } else { address };
                path.places.push(Place::Code(id, address));
            }
            What::Trap(_) => path.places.push(Place::Trap(node.what)),
            What::Hart(hart) => path.labels.push(("hart", hart.0.to_string())),
            What::Context(Some(context)) => {
                let label = profile.functions.contexts().label(context);
                let label = label.trim_start_matches("context ").to_owned();
                path.labels.push(("context", label));
            }
            What::Mode(Some(mode)) => path.labels.push(("mode", mode.name().to_owned())),
            What::Context(None) | What::Mode(None) | What::Root | What::Unknown => {}
        }
        (at, address) = (node.parent, node.site);
    }
    path
}

/// A line of source text in a function.
struct FrameLine {
    name: String,
    symbol: String,
    file: String,
    /// Where the function starts, if that is known.
    start: u32,
    line: u32,
}

struct Writer<'w, 'a> {
    shown: &'w Shown<'a>,
    modules: &'w [Module],
    ranges: &'w LineRanges<'w>,
    strings: Strings,
    /// By name, symbol and file.
    functions: HashMap<(u64, u64, u64), u64>,
    locations: HashMap<Place, u64>,
    out: GzEncoder<&'w mut dyn Write>,
}

impl Writer<'_, '_> {
    /// Writes a message as a field of the profile.
    fn send(&mut self, field: u32, message: &Message) -> io::Result<()> {
        let mut whole = Message::default();
        whole.bytes(field, message.as_bytes());
        self.out.write_all(whole.as_bytes())
    }

    fn number(&mut self, field: u32, value: u64) -> io::Result<()> {
        let mut whole = Message::default();
        whole.number(field, value);
        self.out.write_all(whole.as_bytes())
    }

    /// What is measured.
    fn types(&mut self) -> io::Result<()> {
        let time = self.shown.profile.timed.then_some(("time", "units"));
        let insns = ("instructions", "count");
        let types = [Some(insns), time, Some(("calls", "count"))];
        for (name, unit) in types.into_iter().flatten() {
            let value = self.value_type(name, unit);
            self.send(SAMPLE_TYPE, &value)?;
        }
        let period = self.value_type(insns.0, insns.1);
        self.send(PERIOD_TYPE, &period)?;
        self.number(PERIOD, 1)?;
        let by = self.strings.number(unit(self.shown.by));
        self.number(DEFAULT_TYPE, by)?;
        let version = concat!("hartrace ", env!("CARGO_PKG_VERSION"));
        let comment = self.strings.number(version);
        self.number(COMMENT, comment)
    }

    fn value_type(&mut self, name: &str, unit: &str) -> Message {
        let mut message = Message::default();
        message.number(1, self.strings.number(name));
        message.number(2, self.strings.number(unit));
        message
    }

    fn sample(&mut self, node: NodeId, pc: u64, cost: Cost, calls: u64) -> io::Result<()> {
        let Path { places, labels } = path(self.shown.profile, node, pc);
        let mut locations = Vec::with_capacity(places.len());
        for place in places {
            locations.push(self.location(place)?);
        }
        let time = self.shown.profile.timed.then_some(cost.time);
        let values = [Some(cost.insns), time, Some(calls)];
        let mut sample = Message::default();
        sample.numbers(1, locations.into_iter());
        sample.numbers(2, values.into_iter().flatten());
        for (key, value) in labels {
            let mut label = Message::default();
            label.number(1, self.strings.number(key));
            label.number(2, self.strings.number(&value));
            sample.bytes(3, label.as_bytes());
        }
        self.send(SAMPLE, &sample)
    }

    /// The number of a location, which is written when it comes for the first time.
    fn location(&mut self, place: Place) -> io::Result<u64> {
        if let Some(number) = self.locations.get(&place) {
            return Ok(*number);
        }
        let number = self.locations.len() as u64 + 1;
        self.locations.insert(place, number);
        let mut location = Message::default();
        location.number(1, number);
        let lines = match place {
            Place::Code(function, address) => {
                if let Some(mapping) = self.mapping_of(address) {
                    location.number(2, mapping);
                }
                location.number(3, address);
                self.lines(function, address)
            }
            Place::Trap(what) => {
                let name = what_name(what, &self.shown.profile.functions);
                vec![FrameLine {
                    symbol: name.clone(),
                    name,
                    file: String::new(),
                    start: 0,
                    line: 0,
                }]
            }
        };
        for line in lines {
            let mut message = Message::default();
            message.number(1, self.function(&line)?);
            message.number(2, u64::from(line.line));
            location.bytes(4, message.as_bytes());
        }
        self.send(LOCATION, &location)?;
        Ok(number)
    }

    /// The lines of an instruction, the innermost inlined function first. The last one is
    /// that of the function whose code it is.
    fn lines(&self, function: FunctionId, address: u64) -> Vec<FrameLine> {
        let home = self.shown.profile.functions.get(function);
        let mut frames = self.shown.places.frames(address);
        let line = self.ranges.at(address);
        let mut at = line.map(|line| (line.file.to_owned(), line.line));
        // The outermost one has the name of its symbol.
        frames.pop();
        let mut lines = Vec::with_capacity(frames.len() + 1);
        for SourceFrame { function, call } in frames {
            let (file, line) = std::mem::replace(&mut at, call).unwrap_or_default();
            lines.push(FrameLine {
                symbol: function.clone(),
                name: function,
                file,
                start: 0,
                line,
            });
        }
        let (file, line) = at.unwrap_or_default();
        lines.push(FrameLine {
            name: home.name.clone(),
            symbol: home.symbol().to_owned(),
            file,
            start: self.ranges.at(home.start).map_or(0, |line| line.line),
            line,
        });
        lines
    }

    /// The number of a function, which is written when it comes for the first time.
    fn function(&mut self, at: &FrameLine) -> io::Result<u64> {
        let strings = &mut self.strings;
        let name = strings.number(&at.name);
        let symbol = strings.number(&at.symbol);
        let file = strings.number(&at.file);
        let next = self.functions.len() as u64 + 1;
        if let Some(number) = self.functions.get(&(name, symbol, file)) {
            return Ok(*number);
        }
        self.functions.insert((name, symbol, file), next);
        let mut message = Message::default();
        let fields = [next, name, symbol, file, u64::from(at.start)];
        for (field, value) in (1..).zip(fields) {
            message.number(field, value);
        }
        self.send(FUNCTION, &message)?;
        Ok(next)
    }

    /// Every executable segment of every file with its number.
    fn segments(&self) -> impl Iterator<Item = (u64, &Module, &Segment)> {
        let modules = self.modules.iter();
        let all = modules.flat_map(|module| module.segments.iter().map(move |s| (module, s)));
        (1..)
            .zip(all)
            .map(|(number, (module, s))| (number, module, s))
    }

    /// The number of the segment that an address is in.
    fn mapping_of(&self, address: u64) -> Option<u64> {
        let mut segments = self.segments();
        let found = segments.find(|(.., s)| address.wrapping_sub(s.address) < s.size)?;
        Some(found.0)
    }

    /// The files of the program.
    fn mappings(&mut self) -> io::Result<()> {
        let all: Vec<_> = self
            .segments()
            .map(|(n, m, s)| (n, m.clone(), *s))
            .collect();
        for (number, module, segment) in all {
            let id: String = module.build_id.iter().map(|b| format!("{b:02x}")).collect();
            let mut message = Message::default();
            message.number(1, number);
            message.number(2, segment.address);
            message.number(3, segment.address.saturating_add(segment.size));
            message.number(4, segment.offset);
            message.number(5, self.strings.number(&module.name));
            message.number(6, self.strings.number(&id));
            // Functions are known; lines and inlined functions if there are line tables.
            for (field, known) in [(7, true), (8, module.has_lines), (9, module.has_lines)] {
                message.number(field, u64::from(known));
            }
            message.number(10, u64::from(module.has_lines));
            self.send(MAPPING, &message)?;
        }
        Ok(())
    }

    fn strings(&mut self) -> io::Result<()> {
        let mut message = Message::default();
        for text in &self.strings.list {
            message.clear();
            message.bytes(STRING, text.as_bytes());
            self.out.write_all(message.as_bytes())?;
        }
        Ok(())
    }
}
