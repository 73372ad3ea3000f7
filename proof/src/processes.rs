//! Boots a Linux kernel and traces it with contexts, as N-Trace and as E-Trace: what profiles
//! of the traces say of each context, privilege mode and function is what the hart did.
//!
//! Counts of the hart are made instruction by instruction, from the steps that the encoders
//! see. Functions come from ELF files, such as a `vmlinux` with symbols; what is in none of
//! them is counted together.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Instant;

use hartrace_analyze::{Functions, Grouping, NodeId, Profiler, What};
use hartrace_capture::config::{Config, ContextSource, Setting};
use hartrace_capture::trace::{Decoder, Format, Settings, TraceWriter, WriteOptions};
use hartrace_flow::filter::FilterConfig;
use hartrace_flow::{
    Context, Decode as _, Effects, HartId, Image, Mode, Observer, Step, Straights, Wants,
};
use hartrace_hart::host::Host;
use hartrace_hart::{BootFiles, Config as HartConfig, Machine, Platform, Region, Stop, System};
use hartrace_isa::{Isa, Xlen};

const USAGE: &str = "give --bios FILE --kernel FILE --initrd FILE [--elf FILE]... [--harts N] \
                     [--insns N]; --elf: files with symbols";

/// Instructions after which a boot that has not ended is no good.
const LIMIT: u64 = 50_000_000_000;

/// What is counted apart: a context, a mode and a function; 0 for code of none.
type Key = (u64, Option<Mode>, u64);

/// How many instructions.
type Counts = BTreeMap<Key, u64>;

/// The files that are given.
#[derive(Default)]
struct Given {
    bios: Option<Vec<u8>>,
    kernel: Option<Vec<u8>>,
    initrd: Option<Vec<u8>>,
    elf: Vec<Vec<u8>>,
    harts: u32,
    insns: u64,
}

impl Given {
    fn read(args: &[String]) -> Result<Given, String> {
        let mut given = Given {
            harts: 1,
            insns: LIMIT,
            ..Given::default()
        };
        let mut args = args.iter();
        while let Some(flag) = args.next() {
            let value = args.next().ok_or(USAGE)?;
            let file = || std::fs::read(value).map_err(|error| format!("{value}: {error}"));
            match flag.as_str() {
                "--bios" => given.bios = Some(file()?),
                "--kernel" => given.kernel = Some(file()?),
                "--initrd" => given.initrd = Some(file()?),
                "--elf" => given.elf.push(file()?),
                "--harts" => given.harts = value.parse().map_err(|_| USAGE)?,
                "--insns" => given.insns = value.parse().map_err(|_| USAGE)?,
                _ => return Err(USAGE.to_owned()),
            }
        }
        Ok(given)
    }
}

/// Runs the check.
///
/// # Errors
///
/// A boot that does not end, and counts that differ.
pub fn command(args: &[String]) -> Result<(), String> {
    let given = Given::read(args)?;
    let (Some(bios), Some(kernel), Some(initrd)) = (&given.bios, &given.kernel, &given.initrd)
    else {
        println!("skipped: no kernel; {USAGE}");
        return Ok(());
    };
    let files = BootFiles {
        bios: Some(bios),
        kernel: Some(kernel),
        initrd: Some(initrd),
        append: Some("console=ttyS0 rdinit=/init"),
        dtb: None,
    };
    let mut functions = Functions::new();
    for file in &given.elf {
        let added = functions.add_elf(file, None);
        added.map_err(|error| error.to_string())?;
    }
    let traces = record(&files, &given, &functions)?;
    let contexts: BTreeSet<u64> = traces.counts.keys().map(|k| k.0).collect();
    let all: u64 = traces.counts.values().sum();
    println!(
        "{all} instructions, {} contexts, {} counts",
        contexts.len(),
        traces.counts.len()
    );
    for (settings, bytes, image) in &traces.streams {
        let begin = Instant::now();
        let found = profile(settings, bytes, image, functions.clone())?;
        let name = settings.format().name();
        compare(name, &traces, &found)?;
        let seconds = begin.elapsed().as_secs_f64();
        println!(
            "{name}: {} bytes, all counts agree, {seconds:.1} s",
            bytes.len()
        );
    }
    Ok(())
}

/// Traces, each with its settings and the code that ran, and what the hart did.
struct Traces {
    counts: Counts,
    /// Changes of the context.
    changes: u64,
    streams: Vec<(Settings, Vec<u8>, Image)>,
}

/// Counts instructions by context, mode and function.
struct Truth<'f> {
    functions: &'f Functions,
    counts: Counts,
    /// Functions of addresses, as they were found.
    known: Vec<(u64, u64)>,
    /// What was counted last, and how often.
    last: (Key, u64),
    /// Changes of the context.
    changes: u64,
}

/// Entries of [`Truth::known`].
const KNOWN: usize = 1 << 20;

impl Truth<'_> {
    fn count(&mut self, context: Context, mode: Mode, pc: u64) {
        let slot = (pc / 2) as usize % KNOWN;
        let Some(known) = self.known.get_mut(slot) else {
            return;
        };
        if known.0 != pc {
            let function = self.functions.of(pc);
            *known = (pc, function.map_or(0, |id| self.functions.get(id).start));
        }
        let key = (context.0, Some(mode), known.1);
        if key != self.last.0 {
            self.settle();
            self.changes += u64::from(key.0 != self.last.0.0);
            self.last = (key, 0);
        }
        self.last.1 += 1;
    }

    fn settle(&mut self) {
        let (key, count) = self.last;
        if count > 0 {
            *self.counts.entry(key).or_default() += count;
        }
    }
}

/// Gives everything to the encoders, and counts it.
struct Both<'a, 'w> {
    truth: Truth<'a>,
    writers: Vec<TraceWriter<'w>>,
}

impl Observer for Both<'_, '_> {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        if let Step::Insn(insn) = step {
            self.truth.count(insn.context, insn.mode, insn.pc);
        }
        for writer in &mut self.writers {
            writer.step(hart, step, effects);
        }
    }

    fn straights(&mut self, hart: HartId, code: &Straights<'_>) {
        for insn in code.iter() {
            self.truth.count(insn.context, insn.mode, insn.pc);
        }
        for writer in &mut self.writers {
            writer.straights(hart, code);
        }
    }
}

fn settings_of(format: Format, harts: u32) -> Result<(Config, Settings), String> {
    let mut config = Config::defaults();
    config.hart.harts = Some(Setting::default(harts));
    config.hart.context = Some(Setting::default(ContextSource::Asid));
    config.make_room_for_harts();
    config.report_contexts(Xlen::Rv64);
    let settings = format.settings(&config, Xlen::Rv64);
    Ok((config, settings.map_err(|error| error.to_string())?))
}

/// Boots and traces.
fn record(files: &BootFiles<'_>, given: &Given, functions: &Functions) -> Result<Traces, String> {
    let config = HartConfig {
        harts: given.harts,
        memory: vec![Region {
            base: 0x8000_0000,
            size: 256 << 20,
        }],
        semihosting: false,
        context: hartrace_hart::ContextSource::Asid,
        ..HartConfig::new(Platform::Virt, Xlen::Rv64)
    };
    let isa = Isa::parse(&config.isa).map_err(|error| error.to_string())?;
    let system = System::new(&config, files).map_err(|error| error.to_string())?;
    let host = Host::new(
        Box::new(io::empty()),
        Box::new(io::sink()),
        Box::new(io::sink()),
    );
    let machine = Machine::new(config, host);
    let mut machine = machine.map_err(|error| error.to_string())?;
    machine.boot(system).map_err(|error| error.to_string())?;
    let formats = [Format::Ntrace, Format::Etrace];
    let mut bytes = [Vec::new(), Vec::new()];
    let mut all = Vec::new();
    let mut writers = Vec::new();
    let filter = FilterConfig::default();
    for (format, bytes) in formats.into_iter().zip(&mut bytes) {
        let (config, settings) = settings_of(format, given.harts)?;
        let port = settings.port(config.ingress.clone()).port(isa);
        let put = Box::new(|part: &[u8]| bytes.extend_from_slice(part));
        let options = WriteOptions {
            code: true,
            ..WriteOptions::default()
        };
        let writer = TraceWriter::new(&settings, port, &filter, options, put);
        writers.push(writer.map_err(|error| error.to_string())?);
        all.push(settings);
    }
    let truth = Truth {
        functions,
        counts: Counts::new(),
        known: vec![(1, 0); KNOWN],
        last: ((0, None, 0), 0),
        changes: 0,
    };
    let (counts, changes, images) = run(&mut machine, Both { truth, writers }, given.insns, isa)?;
    let streams = all.into_iter().zip(bytes).zip(images);
    Ok(Traces {
        counts,
        changes,
        streams: streams
            .map(|((settings, bytes), image)| (settings, bytes, image))
            .collect(),
    })
}

/// Runs to the end: what was counted, and the code that ran, for each trace.
fn run(
    machine: &mut Machine,
    mut both: Both<'_, '_>,
    insns: u64,
    isa: Isa,
) -> Result<(Counts, u64, Vec<Image>), String> {
    let stop = machine.run(insns, &mut both);
    if stop != Stop::Exit(0) && insns == LIMIT {
        return Err(format!("the boot ended with {stop:?}"));
    }
    let Both { mut truth, writers } = both;
    truth.settle();
    let mut images = Vec::new();
    for mut writer in writers {
        writer.finish();
        let history = writer.done().code.ok_or("no code history")?;
        let mut image = Image::new();
        history.add_to(&mut image, isa);
        images.push(image);
    }
    Ok((truth.counts, truth.changes, images))
}

/// What the profile of a trace says.
fn profile(
    settings: &Settings,
    bytes: &[u8],
    image: &Image,
    functions: Functions,
) -> Result<Counts, String> {
    let named = functions.len();
    let by = Grouping {
        contexts: true,
        modes: true,
        ..Grouping::default()
    };
    let mut profiler = Profiler::new(image, functions, by, ());
    let mut decoder = Decoder::new(settings, image).map_err(|error| error.to_string())?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let used = decoder.feed(rest, &mut profiler).max(1);
        rest = rest.get(used..).unwrap_or_default();
    }
    decoder.finish(&mut profiler);
    let (profile, ()) = profiler.finish();
    let mut counts = Counts::new();
    for (at, node) in profile.tree.nodes().iter().enumerate() {
        if node.own.insns == 0 {
            continue;
        }
        let mut key = (u64::MAX, None, 0);
        if let What::Function(id) = node.what
            && id.index() < named
        {
            key.2 = profile.functions.get(id).start;
        }
        let mut id = profile.tree.id(at);
        while id != NodeId::ROOT {
            let Some(node) = profile.tree.node(id) else {
                break;
            };
            match node.what {
                What::Context(context) => key.0 = context.map_or(u64::MAX, |c| c.0),
                What::Mode(mode) => key.1 = mode,
                _ => {}
            }
            id = node.parent;
        }
        *counts.entry(key).or_default() += node.own.insns;
    }
    Ok(counts)
}

/// Instructions that a change of the context may be away from where N-Trace reports it: an
/// Ownership message says nothing of the instructions since the last message.
const AWAY: u64 = 512;

/// Compares counts; the first differences are shown. With N-Trace, functions are compared in
/// all contexts together, and contexts as far as the format reports them.
fn compare(name: &str, truth: &Traces, found: &Counts) -> Result<(), String> {
    if name != Format::Ntrace.name() {
        return same(name, &truth.counts, found);
    }
    let together = |counts: &Counts| {
        let mut all = Counts::new();
        for ((_, mode, function), count) in counts {
            *all.entry((0, *mode, *function)).or_default() += count;
        }
        all
    };
    same(name, &together(&truth.counts), &together(found))?;
    let keys: BTreeSet<&Key> = truth.counts.keys().chain(found.keys()).collect();
    let count = |counts: &Counts, key: &Key| counts.get(key).copied().unwrap_or(0);
    let differences = keys
        .iter()
        .map(|key| count(&truth.counts, key).abs_diff(count(found, key)));
    // What is missing in one place is too much in another.
    let moved = differences.sum::<u64>() / 2;
    let changes = truth.changes;
    println!("{name}: {moved} instructions in the wrong context, at {changes} changes");
    match moved <= changes * AWAY {
        true => Ok(()),
        false => Err(format!("{name}: that is more than {AWAY} for each change")),
    }
}

/// Whether counts are the same.
fn same(name: &str, truth: &Counts, found: &Counts) -> Result<(), String> {
    let keys: BTreeSet<&Key> = truth.keys().chain(found.keys()).collect();
    let count = |counts: &Counts, key: &Key| counts.get(key).copied().unwrap_or(0);
    let differ = |key: &&&Key| count(truth, key) != count(found, key);
    let different: Vec<&&Key> = keys.iter().filter(differ).collect();
    if different.is_empty() {
        return Ok(());
    }
    let mut message = format!(
        "{name}: {} of {} counts differ",
        different.len(),
        keys.len()
    );
    for key in different.iter().take(20) {
        let (context, mode, function) = key;
        let mode = mode.map_or("?", Mode::name);
        let (truth, found) = (count(truth, key), count(found, key));
        message += &format!(
            "\ncontext {context:#x}, mode {mode}, function {function:#x}: {truth}, found {found}"
        );
    }
    Err(message)
}
