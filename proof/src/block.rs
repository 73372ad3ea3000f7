//! Drives a trace encoder that is not ours, such as a trace block under an RTL simulator,
//! through its ingress port, and compares the packets with those of the encoder model.
//!
//! The encoder is any program that takes two file names: rows of the ingress port as CSV, as
//! `hartrace run --log ingress=FILE` writes them, and the trace that it makes of them. Rows
//! come from random programs with branches, calls, traps and changes of mode, and from a few
//! directed ones. The packets are compared field by field; the first differences of each
//! program are shown, and what was compared is counted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use hartrace_analyze::{DiffOptions, compare_runs};
use hartrace_capture::config::Config;
use hartrace_capture::log::RowWriter;
use hartrace_capture::trace::{
    Explainer, Format, PieceKind, Settings, TraceWriter, View, WriteOptions,
};
use hartrace_flow::filter::FilterConfig;
use hartrace_flow::{Effects, HartId, Observer as _, Step};
use hartrace_isa::{Isa, Xlen};
use hartrace_logs::IngressColumns;
use hartrace_print::dump::{Dump, DumpForm};

use crate::generate::{Driver, Modes, Program, Spec};

const USAGE: &str = "block COMMAND [--config FILE] [--programs N] [--steps N] [--seed N] \
                     [--ignore FIELD]... [--show N] [--dir DIR]";

/// What is asked for.
struct Asked {
    command: PathBuf,
    config: Config,
    programs: u64,
    steps: u64,
    seed: u64,
    ignored: Vec<String>,
    show: usize,
    dir: PathBuf,
}

impl Asked {
    fn read(args: &[String]) -> Result<Option<Asked>, String> {
        let mut args = args.iter();
        let Some(command) = args.next() else {
            return Ok(None);
        };
        let mut asked = Asked {
            command: PathBuf::from(command),
            config: Config::defaults(),
            programs: 20,
            steps: 5000,
            seed: 1,
            ignored: Vec::new(),
            show: 3,
            dir: std::env::temp_dir().join(format!("hartrace-block-{}", std::process::id())),
        };
        while let Some(flag) = args.next() {
            let value = args.next().ok_or(USAGE)?;
            let number = || value.parse::<u64>().map_err(|_| USAGE.to_owned());
            match flag.as_str() {
                "--config" => {
                    let text = std::fs::read_to_string(value);
                    let text = text.map_err(|error| format!("{value}: {error}"))?;
                    let config = Config::parse(&text, Path::new(value));
                    let config = config.map_err(|error| format!("{value}: {error:?}"))?;
                    asked.config = config.over(Config::defaults());
                }
                "--programs" => asked.programs = number()?,
                "--steps" => asked.steps = number()?,
                "--seed" => asked.seed = number()?,
                "--show" => asked.show = number()? as usize,
                "--ignore" => asked.ignored.push(value.clone()),
                "--dir" => asked.dir = PathBuf::from(value),
                _ => return Err(USAGE.to_owned()),
            }
        }
        Ok(Some(asked))
    }
}

/// Runs the check.
///
/// # Errors
///
/// Packets that differ, and an encoder that fails.
pub fn command(args: &[String]) -> Result<(), String> {
    let Some(asked) = Asked::read(args)? else {
        println!("skipped: no encoder; {USAGE}");
        return Ok(());
    };
    std::fs::create_dir_all(&asked.dir).map_err(|error| error.to_string())?;
    let format = Format::said(&asked.config).unwrap_or(Format::Etrace);
    let isa = Isa::RV64GC;
    let settings = format.settings(&asked.config, isa.xlen());
    let settings = settings.map_err(|error| error.to_string())?;
    let mut total = Compared::default();
    for (name, steps) in cases(&asked) {
        let Made { rows, trace } = model(&asked, &settings, isa, &steps)?;
        let traces = [trace, block(&asked, &rows)?];
        let name = format!("{name}, {} steps", steps.len());
        total.add(compare(&asked, &settings, isa, &name, &traces));
    }
    println!(
        "{} packets in both, {} differences",
        total.common, total.differences
    );
    for (kind, count) in &total.kinds {
        println!("  {count:>8}  {kind}");
    }
    match total.differences {
        0 => Ok(()),
        n => Err(format!("{n} differences")),
    }
}

/// Programs that every encoder should pass, and random ones.
fn cases(asked: &Asked) -> Vec<(String, Vec<Step>)> {
    let directed = [
        ("straight code", "tiny"),
        ("branches and calls", "plain"),
        ("traps", "full"),
        ("no compressed code", "word"),
    ];
    let mut all = Vec::new();
    for (name, shape) in directed {
        if let Some(spec) = Spec::named(shape) {
            all.push((name.to_owned(), steps_of(spec, asked.seed, asked.steps)));
        }
    }
    for seed in asked.seed..asked.seed + asked.programs {
        let steps = steps_of(Spec::arbitrary(seed), seed, asked.steps);
        all.push((format!("seed {seed}"), steps));
    }
    all
}

/// What a hart does in a program of this shape, as far as every encoder knows it.
fn steps_of(mut spec: Spec, seed: u64, steps: u64) -> Vec<Step> {
    spec.surprises.signal = 0;
    spec.xlen = Xlen::Rv64;
    (spec.zcmp, spec.zcmt) = (false, false);
    if spec.modes == Modes::Hypervisor {
        spec.modes = Modes::Supervisor;
    }
    let program = Program::new(&spec, seed);
    Driver::new(&program, seed).steps(steps)
}

/// What goes into an encoder, and what the model makes of it.
struct Made {
    rows: Vec<u8>,
    trace: Vec<u8>,
}

/// The rows of these steps, and their trace.
fn model(asked: &Asked, settings: &Settings, isa: Isa, steps: &[Step]) -> Result<Made, String> {
    let (mut rows, mut refused) = (Vec::new(), None);
    let ingress = settings.port(asked.config.ingress.clone());
    let columns = IngressColumns {
        time: true,
        ..IngressColumns::with_sideband()
    };
    let put = |text: Result<&[u8], _>| match text {
        Ok(text) => rows.extend_from_slice(text),
        Err(error) => refused = Some(error),
    };
    let mut writer = RowWriter::new(ingress.port(isa), columns, ingress.iretire(), put);
    let mut trace = Vec::new();
    let filter = FilterConfig::default();
    let take = Box::new(|part: &[u8]| trace.extend_from_slice(part));
    let options = WriteOptions::default();
    let encoder = TraceWriter::new(settings, ingress.port(isa), &filter, options, take);
    let mut encoder = encoder.map_err(|error| error.to_string())?;
    for step in steps {
        writer.step(HartId(0), step, &Effects::default());
        encoder.step(HartId(0), step, &Effects::default());
    }
    writer.finish();
    encoder.finish();
    drop((writer, encoder));
    match refused {
        Some(error) => Err(format!("a block fits no row: {error}")),
        None => Ok(Made { rows, trace }),
    }
}

/// What the other encoder makes of rows.
fn block(asked: &Asked, rows: &[u8]) -> Result<Vec<u8>, String> {
    let (file, trace) = (asked.dir.join("rows.csv"), asked.dir.join("block.trace"));
    std::fs::write(&file, rows).map_err(|error| format!("{}: {error}", file.display()))?;
    let ran = Command::new(&asked.command).arg(&file).arg(&trace).status();
    let ran = ran.map_err(|error| format!("{}: {error}", asked.command.display()))?;
    if !ran.success() {
        return Err(format!("{}: {ran}", asked.command.display()));
    }
    std::fs::read(&trace).map_err(|error| format!("{}: {error}", trace.display()))
}

/// What comparisons came to.
#[derive(Default)]
struct Compared {
    common: u64,
    differences: u64,
    /// First packets of differences by what the two are.
    kinds: BTreeMap<String, u64>,
}

impl Compared {
    fn add(&mut self, other: Compared) {
        self.common += other.common;
        self.differences += other.differences;
        for (kind, count) in other.kinds {
            *self.kinds.entry(kind).or_default() += count;
        }
    }
}

/// A packet: what it says as a number, its name and its line.
type Packet = (u64, String, String);

/// The packets of a trace.
fn packets(asked: &Asked, settings: &Settings, isa: Isa, bytes: &[u8]) -> Vec<Packet> {
    let mut all = Vec::new();
    let mut dump = Dump::new(settings.format(), DumpForm::Text);
    let mut explainer = Explainer::new(settings, isa, false, View::Lines);
    let mut take = |piece: &hartrace_capture::trace::Explained, bytes: &[u8]| {
        if piece.kind != PieceKind::Idle {
            let mut line = Vec::new();
            dump.piece(piece, bytes, &mut line)?;
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            let name = piece.name.as_deref().unwrap_or("unreadable").to_owned();
            all.push((piece.sum(bytes, &asked.ignored), name, line));
        }
        Ok::<(), std::io::Error>(())
    };
    // Writing to memory does not fail.
    let _ = explainer.feed(bytes, &mut take);
    let _ = explainer.finish(&mut take);
    all
}

/// Compares the packets of two traces, and shows the first differences.
fn compare(
    asked: &Asked,
    settings: &Settings,
    isa: Isa,
    name: &str,
    traces: &[Vec<u8>; 2],
) -> Compared {
    let [ours, theirs] = traces
        .each_ref()
        .map(|bytes| packets(asked, settings, isa, bytes));
    let sums = |list: &[Packet]| list.iter().map(|packet| packet.0).collect::<Vec<_>>();
    let options = DiffOptions {
        before: 2,
        window: 1 << 12,
        confirm: 4,
    };
    let mut compared = Compared::default();
    let (mut a, mut b) = (std::iter::once(sums(&ours)), std::iter::once(sums(&theirs)));
    let mut shown = 0;
    let done = compare_runs(&mut a, &mut b, &options, &mut |found| {
        let [at_a, at_b] = found.at.map(|at| at as usize);
        let [alone_a, alone_b] = found.alone.map(|count| count as usize);
        let part = |list: &[Packet], at: usize, count: usize| -> Vec<Packet> {
            list.iter().skip(at).take(count).cloned().collect()
        };
        let (only_a, only_b) = (part(&ours, at_a, alone_a), part(&theirs, at_b, alone_b));
        let first = |list: &[Packet]| list.first().map_or("nothing".to_owned(), |p| p.1.clone());
        let kind = format!(
            "`{}` where `{}` was expected",
            first(&only_b),
            first(&only_a)
        );
        *compared.kinds.entry(kind).or_default() += 1;
        if shown < asked.show {
            shown += 1;
            println!("{name}: after packet {at_a} of the model, {at_b} of the block");
            for packet in part(&ours, at_a.saturating_sub(2), at_a.min(2)) {
                println!("    both   {}", packet.2);
            }
            for (side, list) in [("model", &only_a), ("block", &only_b)] {
                for packet in list.iter().take(4) {
                    println!("    {side}  {}", packet.2);
                }
            }
        }
        true
    });
    compared.common = done.common;
    compared.differences = done.divergences;
    compared
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The model agrees with itself, and with a packet taken away it does not.
    #[test]
    fn packets_are_compared() {
        let asked = Asked {
            command: PathBuf::new(),
            config: Config::defaults(),
            programs: 1,
            steps: 500,
            seed: 1,
            ignored: Vec::new(),
            show: 0,
            dir: PathBuf::new(),
        };
        let isa = Isa::RV64GC;
        let settings = Format::Etrace.settings(&asked.config, isa.xlen()).unwrap();
        for (name, steps) in cases(&asked) {
            let made = model(&asked, &settings, isa, &steps).unwrap();
            assert!(made.rows.starts_with(b"itype_0,cause,tval,priv,iaddr_0,"));
            let all = packets(&asked, &settings, isa, &made.trace).len() as u64;
            let same = [made.trace.clone(), made.trace.clone()];
            let compared = compare(&asked, &settings, isa, &name, &same);
            assert_eq!((compared.common, compared.differences), (all, 0), "{name}");
            // The first packet: its header says how long it is.
            let first = 1 + usize::from(made.trace[0] & 31);
            let less = [made.trace.clone(), made.trace[first..].to_vec()];
            let compared = compare(&asked, &settings, isa, &name, &less);
            assert_eq!(
                (compared.common, compared.differences),
                (all - 1, 1),
                "{name}"
            );
        }
    }
}
