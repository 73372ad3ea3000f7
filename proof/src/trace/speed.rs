//! The speed of encoding and decoding, and the size of traces.

use std::ops::ControlFlow;

use hartrace_capture::shard;
use hartrace_flow::encode::Sink;
use hartrace_flow::{
    Consumer, Effects, Event, Gather, HartId, Ingress, IngressSink, Observer, Port, PortConfig,
    Retirement, Run, Step, Wants,
};

use super::{Format, Out, Recorded, Subjects, programs};
use crate::bench::Bench;

/// Instructions of the program that is measured.
const INSNS: u64 = 60_000_000;
/// Ingress blocks kept in memory.
const BLOCKS: u64 = 4_000_000;

/// Counts instructions: what decoding costs without anything else.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Count(pub(crate) u64);

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

impl Gather for Count {}

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

/// A setting, what it is called, and whether its speed is of interest.
type Configs<F> = Vec<(&'static str, <F as Format>::Config, bool)>;

fn port<F: Subjects>(program: &Recorded, retirement: Retirement) -> PortConfig {
    PortConfig {
        table: F::TABLE,
        retirement,
        ..PortConfig::new(program.isa)
    }
}

/// Encoders for all settings, each behind a port of its own.
fn encoders<F: Subjects, S: Out + Default>(
    program: &Recorded,
    configs: &Configs<F>,
) -> Result<Several<Port<F::Encoder<S>>>, String> {
    let single = port::<F>(program, Retirement::Single);
    let encoders = configs
        .iter()
        .map(|(_, config, _)| Ok(Port::new(single, F::encoder(config, S::default())?)));
    Ok(Several(encoders.collect::<Result<_, String>>()?))
}

/// The end of a trace, and where it went.
fn finish<F: Format, S: Out>(mut port: Port<F::Encoder<S>>) -> S {
    port.finish();
    F::into_out(port.into_sink())
}

/// Sizes of all programs in all settings.
fn sizes<F: Subjects>() -> Result<(), String> {
    println!("bytes (bits per instruction)");
    print!("{:<22} {:>12}", "program", "instructions");
    let mut head = true;
    for path in programs()? {
        let program = Recorded::read(&path)?;
        let configs = F::measured(program.isa);
        if std::mem::take(&mut head) {
            for (name, ..) in &configs {
                print!(" {name:>18}");
            }
            println!();
        }
        let mut all = encoders::<F, Bytes>(&program, &configs)?;
        let insns = program.run(20_000_000, &mut all, |_| false)?;
        print!("{:<22} {insns:>12}", program.name);
        for port in all.0 {
            let Bytes(bytes) = finish::<F, _>(port);
            let bits = bytes as f64 * 8.0 / insns as f64;
            print!(" {bytes:>10} ({bits:>5.3})");
        }
        println!();
    }
    Ok(())
}

/// All instructions of a trace, counted.
fn count<F: Format>(
    config: &F::Config,
    program: &Recorded,
    bytes: &[u8],
    threads: usize,
) -> Result<u64, String> {
    let mut count = 0;
    F::decoder(config, &program.image)?;
    shard::Sharding::new(threads)
        .decode(
            bytes,
            #[allow(clippy::unwrap_used)] // made a moment ago
            || F::decoder(config, &program.image).unwrap(),
            Count::default,
            |part: &mut Count, _| {
                count += std::mem::take(&mut part.0);
                Ok(())
            },
        )
        .map_err(|e| e.to_string())?;
    Ok(count)
}

/// Rows that a core's own cache holds: one MiB.
const CACHED: usize = 1 << 14;

/// `…-speed [PROGRAM]`: sizes, then speed of one program.
///
/// # Errors
///
/// Programs that cannot be run.
pub fn command<F: Subjects>(args: &[String]) -> Result<(), String> {
    let name = args.first().map_or("long-rv64gc", String::as_str);
    if args.is_empty() {
        sizes::<F>()?;
    }
    let program = Recorded::named(name)?;
    let configs = F::measured(program.isa);
    let mut all = encoders::<F, Vec<u8>>(&program, &configs)?;
    let insns = program.run(INSNS, &mut all, |_| false)?;
    let bytes = all.0.into_iter().map(finish::<F, _>);
    let traces: Vec<_> = configs.iter().zip(bytes).filter(|(c, _)| c.2).collect();
    println!("\ndecoding {insns} instructions of {name} to a consumer that counts");
    let mut bench = Bench::new("instructions");
    for ((name, config, _), bytes) in &traces {
        let decode = |threads| count::<F>(config, &program, bytes, threads);
        let counted = decode(1)?;
        if counted != insns {
            return Err(format!("{name}: {counted} of {insns} instructions"));
        }
        bench.measure(&format!("decode {name}"), insns, move || decode(1));
        let two = format!("decode {name}, 2 threads");
        bench.measure(&two, insns, move || decode(2));
    }
    print!("{}", bench.run(5));
    encoding::<F>(&program)
}

fn encoding<F: Subjects>(program: &Recorded) -> Result<(), String> {
    let mut steps = Steps::default();
    program.run(BLOCKS, &mut steps, |_| false)?;
    let insns = steps.0.len() as u64;
    let configs = F::measured(program.isa);
    println!("\nencoding {insns} instructions, from blocks in memory and from steps");
    let mut blocks = Vec::new();
    for retirement in [Retirement::Single, Retirement::Block(1000)] {
        let mut rows: Vec<Ingress> = Vec::new();
        let mut port = Port::new(port::<F>(program, retirement), |_: HartId, b: &Ingress| {
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
    for (name, config, _) in configs.iter().filter(|c| c.2) {
        for (retirement, rows) in &blocks {
            let kind = match retirement {
                Retirement::Single => "single",
                Retirement::Block(_) => "blocks",
            };
            bench.measure(&format!("{name}, {kind}"), insns, move || {
                let mut encoder = F::encoder(config, Bytes::default()).ok()?;
                for row in rows {
                    encoder.ingress(HART, row);
                }
                encoder.finish();
                Some(F::into_out(encoder).0)
            });
        }
        // A row has 64 bytes: from memory, that is what is measured. So also
        // over and over what a core's own cache holds, an encoder each time.
        for (_, rows) in blocks.iter().filter(|(r, _)| *r == Retirement::Single) {
            let rows = rows.get(..CACHED).unwrap_or(rows);
            let rounds = insns / rows.len().max(1) as u64;
            let insns = rounds * rows.len() as u64;
            bench.measure(&format!("{name}, single, cached"), insns, move || {
                (0..rounds).try_for_each(|_| {
                    let mut encoder = F::encoder(config, Bytes::default()).ok()?;
                    for row in rows {
                        encoder.ingress(HART, row);
                    }
                    encoder.finish();
                    std::hint::black_box(F::into_out(encoder).0);
                    Some(())
                })
            });
        }
        let (steps, single) = (&steps.0, port::<F>(program, Retirement::Single));
        bench.measure(&format!("{name}, steps"), insns, move || {
            let mut port = Port::new(single, F::encoder(config, Bytes::default()).ok()?);
            let nothing = Effects::default();
            for step in steps {
                port.step(HART, step, &nothing);
            }
            Some(finish::<F, _>(port).0)
        });
    }
    print!("{}", bench.run(5));
    Ok(())
}
