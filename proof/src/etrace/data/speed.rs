//! How fast data trace is made and decoded.

use std::hint::black_box;

use hartrace_etrace::{Config, DataConfig, Decoder, Encoder, Version};
use hartrace_flow::{Effects, HartId, Observer, Port, Step, Straights, Wants};

use super::{Bytes, Count, corruption, decode};
use crate::bench::Bench;
use crate::trace::Recorded;

/// Instructions that are measured.
const INSNS: u64 = 20_000_000;

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
struct Data(Port<Encoder<Bytes>>);

impl Observer for Data {
    const WANTS: Wants = Wants::STEPS.with(Wants::DATA);

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        self.0.step(hart, step, effects);
    }

    fn straights(&mut self, hart: HartId, code: &Straights<'_>) {
        self.0.straights(hart, code);
    }
}

fn port(config: &Config, program: &Recorded) -> Option<Port<Encoder<Bytes>>> {
    let encoder = Encoder::new(config.clone(), Bytes::default()).ok()?;
    Some(Port::new(config.port(program.isa), encoder))
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
    let mut bench = Bench::new("instructions");
    bench.measure("run, instruction trace", insns, || {
        let mut out = Instructions(port(&plain, program)?);
        program.run(insns, &mut out, |_| false).ok()?;
        Some(black_box(out.0.into_sink().into_sink().0))
    });
    bench.measure("run, data trace too", insns, || {
        let mut out = Data(port(&with, program)?);
        program.run(insns, &mut out, |_| false).ok()?;
        Some(black_box(out.0.into_sink().into_sink().0))
    });
    print!("{}", bench.run(3));
    let accesses = count.accesses;
    let mut bench = Bench::new("accesses");
    let (bytes, with, without) = (&bytes, &with, &without);
    for (name, values) in [("decode to a counter", false), ("decode with values", true)] {
        bench.measure(name, accesses, move || {
            let mut count = Count {
                values,
                ..Count::default()
            };
            decode(with, program, bytes, &mut count).ok()?;
            Some(count.accesses)
        });
    }
    // What the other two contain.
    bench.measure("without data trace", accesses, || {
        let mut count = Count::default();
        let mut decoder = Decoder::new(plain.clone(), &program.image).ok()?;
        decoder.feed(without, &mut count);
        decoder.finish(&mut count);
        Some(count.insns)
    });
    print!("{}", bench.run(5));
    Ok(())
}
