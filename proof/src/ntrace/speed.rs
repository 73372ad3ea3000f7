//! How fast N-Trace is encoded and decoded, and how small it is.

use std::ops::ControlFlow;

use hartrace_capture::shard::{self, Part};
use hartrace_flow::{
    Consumer, Effects, Event, HartId, Ingress, IngressSink, Observer, Port, PortConfig, Retirement,
    Run, Step, Wants,
};
use hartrace_isa::ItypeTable;
use hartrace_ntrace::{
    Config, Decoder, Encoder, ImplicitReturn, RepeatedHistory, Sink, TraceMode, Version,
};

use super::identity::{Recorded, programs};
use crate::bench::Bench;

/// Instructions of the program that is measured.
const INSNS: u64 = 60_000_000;
/// Ingress blocks kept in memory.
const BLOCKS: u64 = 4_000_000;

/// Counts instructions.
#[derive(Clone, Copy, Debug, Default)]
struct Count(u64);

impl Consumer for Count {
    fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
        if let Event::Run(run) = event {
            self.0 += u64::from(run.insns);
        }
        ControlFlow::Continue(())
    }

    #[inline]
    fn runs(&mut self, _: HartId, runs: &[Run]) -> ControlFlow<()> {
        for run in runs {
            self.0 += u64::from(run.insns);
        }
        ControlFlow::Continue(())
    }
}

impl Part for Count {}

/// Counts bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Bytes(u64);

impl Sink for Bytes {
    #[inline]
    fn message(&mut self, bytes: &[u8]) {
        self.0 += bytes.len() as u64;
    }
}

/// Steps kept.
#[derive(Default)]
struct Steps(Vec<Step>);

impl Observer for Steps {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, _: HartId, step: &Step, _: &Effects) {
        self.0.push(*step);
    }
}

/// Steps to several encoders at once.
struct Several<P>(Vec<P>);

impl<P: Observer> Observer for Several<P> {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        for port in &mut self.0 {
            port.step(hart, step, effects);
        }
    }
}

const HART: HartId = HartId(0);

fn configs(program: &Recorded) -> Result<Vec<(&'static str, Config)>, String> {
    let xlen = program.image.isa().ok_or("no code")?.xlen();
    let htm = Config::new(Version::V1_0, xlen);
    let mut btm = htm.clone();
    btm.mode = TraceMode::Btm;
    let mut returns = htm.clone();
    returns.implicit_return = ImplicitReturn::Full;
    let mut repeats = htm.clone();
    repeats.repeated_history = RepeatedHistory::On;
    let mut full = returns.clone();
    full.repeated_history = RepeatedHistory::On;
    Ok(vec![
        ("BTM", btm),
        ("HTM", htm),
        ("HTM + IR", returns),
        ("HTM + RH", repeats),
        ("HTM full", full),
    ])
}

fn port(program: &Recorded, retirement: Retirement) -> Result<PortConfig, String> {
    let isa = program.image.isa().ok_or("no code")?;
    Ok(PortConfig {
        table: ItypeTable::NTrace10,
        retirement,
        ..PortConfig::new(isa)
    })
}

fn encoder<S: Sink>(config: &Config, sink: S) -> Result<Encoder<S>, String> {
    Encoder::new(config.clone(), sink).map_err(|e| e.to_string())
}

/// Sizes of all programs in all settings.
fn sizes() -> Result<(), String> {
    println!("bytes (bits per instruction)");
    print!("{:<22} {:>12}", "program", "instructions");
    let mut head = true;
    for path in programs()? {
        let program = Recorded::read(&path)?;
        let configs = configs(&program)?;
        if std::mem::take(&mut head) {
            for (name, _) in &configs {
                print!(" {name:>18}");
            }
            println!();
        }
        let single = port(&program, Retirement::Single)?;
        let ports = configs
            .iter()
            .map(|(_, c)| Ok(Port::new(single, encoder(c, Bytes::default())?)));
        let mut all = Several(ports.collect::<Result<Vec<_>, String>>()?);
        let insns = program.run(20_000_000, &mut all, |_| false)?;
        print!("{:<22} {insns:>12}", program.name);
        for mut port in all.0 {
            port.finish();
            let Bytes(bytes) = port.into_sink().into_sink();
            let bits = bytes as f64 * 8.0 / insns as f64;
            print!(" {bytes:>10} ({bits:>5.3})");
        }
        println!();
    }
    Ok(())
}

/// A program by its name.
fn named(name: &str) -> Result<Recorded, String> {
    let all = programs()?;
    let path = all
        .iter()
        .find(|p| p.file_stem().is_some_and(|s| s == name));
    Recorded::read(path.ok_or_else(|| format!("no program {name}"))?)
}

/// `ntrace-speed [PROGRAM]`: sizes, then speed of one program.
///
/// # Errors
///
/// Programs that cannot be run.
pub fn command(args: &[String]) -> Result<(), String> {
    let name = args.first().map_or("long-rv64gc", String::as_str);
    if args.is_empty() {
        sizes()?;
    }
    let program = named(name)?;
    let configs = configs(&program)?;
    let single = port(&program, Retirement::Single)?;
    let ports = configs
        .iter()
        .map(|(_, c)| Ok(Port::new(single, encoder(c, Vec::new())?)));
    let mut all = Several(ports.collect::<Result<Vec<_>, String>>()?);
    let insns = program.run(INSNS, &mut all, |_| false)?;
    let mut traces = Vec::new();
    for ((name, config), mut port) in configs.iter().zip(all.0) {
        port.finish();
        traces.push((*name, config, port.into_sink().into_sink()));
    }
    let decode = |config: &Config, bytes: &[u8], threads: usize| -> u64 {
        let mut count = 0;
        let _ = shard::Sharding::new(threads).decode(
            bytes,
            #[allow(clippy::unwrap_used)] // encoded with it
            || Decoder::new(config.clone(), &program.image).unwrap(),
            Count::default,
            |part: &mut Count, _| {
                count += std::mem::take(&mut part.0);
                Ok(())
            },
        );
        count
    };
    println!("\ndecoding {insns} instructions of {name} to a consumer that counts");
    let mut bench = Bench::new("instructions");
    for (name, config, bytes) in &traces {
        if matches!(*name, "HTM" | "HTM full" | "BTM") {
            if decode(config, bytes, 1) != insns {
                return Err(format!("{name}: not all instructions"));
            }
            bench.measure(&format!("decode {name}"), insns, || {
                decode(config, bytes, 1)
            });
            let two = format!("decode {name}, 2 threads");
            bench.measure(&two, insns, || decode(config, bytes, 2));
        }
    }
    print!("{}", bench.run(5));
    encoding(&program)
}

fn encoding(program: &Recorded) -> Result<(), String> {
    let mut steps = Steps::default();
    program.run(BLOCKS, &mut steps, |_| false)?;
    let insns = steps.0.len() as u64;
    let configs = configs(program)?;
    println!("\nencoding {insns} instructions, from blocks in memory and from steps");
    let mut blocks = Vec::new();
    for retirement in [Retirement::Single, Retirement::Block(1000)] {
        let mut rows: Vec<Ingress> = Vec::new();
        let mut port = Port::new(port(program, retirement)?, |_: HartId, b: &Ingress| {
            rows.push(*b);
        });
        for step in &steps.0 {
            port.step(HART, step, &Effects::default());
        }
        port.finish();
        drop(port);
        blocks.push((retirement, rows));
    }
    let mut bench = Bench::new("instructions");
    for (name, config) in &configs {
        if !matches!(*name, "HTM" | "HTM full" | "BTM") {
            continue;
        }
        for (retirement, rows) in &blocks {
            let kind = match retirement {
                Retirement::Single => "single",
                Retirement::Block(_) => "blocks",
            };
            bench.measure(&format!("{name}, {kind}"), insns, move || {
                let mut encoder = encoder(config, Bytes::default()).ok()?;
                for row in rows {
                    encoder.ingress(HART, row);
                }
                encoder.finish();
                Some(encoder.into_sink().0)
            });
        }
        let (steps, single) = (&steps.0, port(program, Retirement::Single)?);
        bench.measure(&format!("{name}, steps"), insns, move || {
            let mut port = Port::new(single, encoder(config, Bytes::default()).ok()?);
            let nothing = Effects::default();
            for step in steps {
                port.step(HART, step, &nothing);
            }
            port.finish();
            Some(port.into_sink().into_sink().0)
        });
    }
    print!("{}", bench.run(5));
    Ok(())
}
