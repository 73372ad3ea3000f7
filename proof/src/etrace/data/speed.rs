//! How fast data trace is made and decoded.

use std::hint::black_box;

use hartrace_capture::shard::Sharding;
use hartrace_capture::trace::Settings;
use hartrace_etrace::{Config, DataConfig, Decoder, Encoder, Version};
use hartrace_flow::encode::Sink;
use hartrace_flow::{Decode as _, Effects, HartId, Observer, Port, Step, Straights, Wants};

use super::{Bytes, Count, corruption, decode};
use crate::bench::Bench;
use crate::trace::Recorded;

/// Instructions that are measured.
const INSNS: u64 = 20_000_000;

/// Names of rows that are compared.
const COUNTED: &str = "decode to a counter";
const THREADS: &str = "the same on 2 threads";
const WITHOUT: &str = "without data trace";

/// Instruction trace, as a writer of files makes it.
struct Instructions(Port<Encoder<Bytes>>);

impl Observer for Instructions {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        self.0.step(hart, step, effects);
    }

    fn straights(&mut self, hart: HartId, code: &Straights<'_>) {
        self.0.straights(hart, code);
    }
}

/// The same with data trace.
struct Data<S: Sink>(Port<Encoder<S>>);

impl<S: Sink> Observer for Data<S> {
    const WANTS: Wants = Wants::STEPS.with(Wants::DATA);

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        self.0.step(hart, step, effects);
    }

    fn straights(&mut self, hart: HartId, code: &Straights<'_>) {
        self.0.straights(hart, code);
    }
}

fn port<S: Sink>(config: &Config, program: &Recorded, sink: S) -> Option<Port<Encoder<S>>> {
    let encoder = Encoder::new(config.clone(), sink).ok()?;
    Some(Port::new(config.port(program.isa), encoder))
}

/// A trace as a run writes it: the packets of many instructions, then those of their
/// accesses. Where every instruction is a step, they alternate.
fn in_pieces(program: &Recorded, config: &Config, insns: u64) -> Option<Vec<u8>> {
    let mut out = Data(port(config, program, Vec::new())?);
    program.run(insns, &mut out, |_| false).ok()?;
    out.0.finish();
    Some(out.0.into_sink().into_sink())
}

/// `etrace-data-speed [INSNS] [PROGRAM...]`: what data trace costs a run, and how
/// fast it is decoded.
///
/// # Errors
///
/// A program that cannot be run.
pub fn command(args: &[String]) -> Result<(), String> {
    let insns = match args.first() {
        None => INSNS,
        Some(text) => text.parse().map_err(|_| format!("`{text}` is no number"))?,
    };
    let named = [
        "bench-sort-rv64gc",
        "bench-crc-rv64gc",
        "bench-interp-rv64gc",
    ];
    let names: Vec<&str> = match args.get(1..) {
        Some(names @ [_, ..]) => names.iter().map(String::as_str).collect(),
        _ => named.to_vec(),
    };
    for name in names {
        let program = Recorded::named(name)?;
        measure(&program, insns)?;
    }
    Ok(())
}

fn measure(program: &Recorded, insns: u64) -> Result<(), String> {
    let xlen = program.isa.xlen();
    let plain = Config::new(Version::V2_0, xlen);
    let with = Config {
        data: Some(DataConfig::new(Version::V2_0, xlen)),
        ..plain.clone()
    };
    let bytes = corruption::trace(program, &with, insns)?;
    let pieces = in_pieces(program, &with, insns).ok_or("no trace of a run")?;
    let without = corruption::trace(program, &plain, insns)?;
    let mut count = Count::default();
    decode(&with, program, &bytes, &mut count)?;
    println!(
        "\n{}: {} instructions, {} accesses, {} bytes",
        program.name,
        count.insns,
        count.accesses,
        bytes.len()
    );
    measure_runs(program, (&plain, &with), insns);
    let traces = [bytes.as_slice(), &pieces, &without];
    measure_decoding(program, (&plain, &with), traces, count.accesses);
    Ok(())
}

/// What the traces cost a run.
fn measure_runs(program: &Recorded, (plain, with): (&Config, &Config), insns: u64) {
    let mut bench = Bench::new("instructions");
    bench.measure("run, instruction trace", insns, || {
        let mut out = Instructions(port(plain, program, Bytes::default())?);
        program.run(insns, &mut out, |_| false).ok()?;
        Some(black_box(out.0.into_sink().into_sink().0))
    });
    bench.measure("run, data trace too", insns, || {
        let mut out = Data(port(with, program, Bytes::default())?);
        program.run(insns, &mut out, |_| false).ok()?;
        Some(black_box(out.0.into_sink().into_sink().0))
    });
    print!("{}", bench.run(3));
}

/// How fast traces are decoded: of steps, of a run, and without data trace.
fn measure_decoding(
    program: &Recorded,
    (plain, with): (&Config, &Config),
    [bytes, pieces, without]: [&[u8]; 3],
    accesses: u64,
) {
    let settings = Settings::Etrace(with.clone());
    let mut bench = Bench::new("accesses");
    for (name, bytes, values) in [
        (COUNTED, pieces, false),
        ("decode with values", pieces, true),
        ("counter, trace of steps", bytes, false),
        ("values, trace of steps", bytes, true),
    ] {
        bench.measure(name, accesses, move || {
            let mut count = Count {
                values,
                ..Count::default()
            };
            decode(with, program, bytes, &mut count).ok()?;
            Some(count.accesses)
        });
    }
    bench.measure(THREADS, accesses, || {
        let first = hartrace_capture::trace::Decoder::new(&settings, &program.image).ok()?;
        let mut all = 0;
        let give = |part: &mut Count, _| {
            all += std::mem::take(&mut part.accesses);
            Ok(())
        };
        let sharding = Sharding::new(2);
        let done = sharding.decode(pieces, || first.another(), Count::default, give);
        done.ok()?;
        Some(all)
    });
    // What all of them contain.
    bench.measure(WITHOUT, accesses, || {
        let mut count = Count::default();
        let mut decoder = Decoder::new(plain.clone(), &program.image).ok()?;
        decoder.feed(without, &mut count);
        decoder.finish(&mut count);
        Some(count.insns)
    });
    let report = bench.run(5);
    print!("{report}");
    if let (Some(all), Some(without)) = (report.row(COUNTED), report.row(WITHOUT)) {
        let each = |seconds: f64| 1e9 * seconds / accesses.max(1) as f64;
        println!(
            "an access: {:.1} ns, and {:.1} ns for the instructions up to the next",
            each(all.median() - without.median()),
            each(without.median())
        );
    }
}
