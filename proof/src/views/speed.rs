//! The cost of views, as ratios to plain decoding in the same run.

use hartrace_analyze::{Grouping, Profiler, RunCounter};
use hartrace_capture::config::Config;
use hartrace_capture::trace::{Decoder, Format, Settings, TraceWriter, WriteOptions};
use hartrace_flow::filter::FilterConfig;
use hartrace_flow::{Consumer, Decode as _, Observer as _};

use crate::bench::Bench;
use crate::trace::Recorded;
use crate::trace::speed::Count;

fn decode<C: Consumer>(
    settings: &Settings,
    program: &Recorded,
    bytes: &[u8],
    mut out: C,
) -> Result<C, String> {
    let mut decoder = Decoder::new(settings, &program.image).map_err(|e| e.to_string())?;
    decoder.feed(bytes, &mut out);
    decoder.finish(&mut out);
    Ok(out)
}

/// `views-speed [FORMAT [PROGRAM...]]`: plain decoding, coverage and profile, each of
/// the same trace.
///
/// # Errors
///
/// A program that cannot be run.
#[allow(clippy::print_stdout)]
pub fn command(args: &[String]) -> Result<(), String> {
    let format = args.first().map_or("ntrace", String::as_str);
    let format = Format::from_name(format).ok_or("a format is ntrace, etrace or tandem")?;
    let usual = [
        "bench-sort-rv64gc",
        "bench-crc-rv64gc",
        "bench-interp-rv64gc",
    ];
    let names: Vec<&str> = match args.get(1..) {
        Some(names) if !names.is_empty() => names.iter().map(String::as_str).collect(),
        _ => usual.to_vec(),
    };
    for name in names {
        measure(&Recorded::named(name)?, format)?;
    }
    Ok(())
}

#[allow(clippy::print_stdout)]
fn measure(program: &Recorded, format: Format) -> Result<(), String> {
    let config = Config::defaults();
    let isa = program.isa;
    let settings = format
        .settings(&config, isa.xlen())
        .map_err(|e| e.to_string())?;
    let mut bytes = Vec::new();
    let insns = {
        let port = settings.port(config.ingress.clone()).port(isa);
        let put = Box::new(|chunk: &[u8]| bytes.extend_from_slice(chunk));
        let (filter, options) = (FilterConfig::default(), WriteOptions::default());
        let writer = TraceWriter::new(&settings, port, &filter, options, put);
        let mut writer = writer.map_err(|e| e.to_string())?;
        let insns = program.run(60_000_000, &mut writer, |_| false)?;
        writer.finish();
        insns
    };
    println!(
        "\n{}, {}: {insns} instructions, {} bytes",
        program.name,
        format.name(),
        bytes.len()
    );
    let functions = program.functions();
    let mut bench = Bench::new("instructions");
    bench.measure("plain decoding", insns, || {
        decode(&settings, program, &bytes, Count::default())
    });
    bench.measure("coverage", insns, || {
        let counter = RunCounter::new(&program.image);
        decode(&settings, program, &bytes, counter).map(|mut counter| counter.take())
    });
    bench.measure("profile", insns, || {
        let profiler = Profiler::new(&program.image, functions.clone(), Grouping::default(), ());
        decode(&settings, program, &bytes, profiler).map(|profiler| profiler.finish().0.total())
    });
    let report = bench.run(5);
    for view in ["coverage", "profile"] {
        if let Some(ratio) = report.ratio("plain decoding", view) {
            println!("{view:<10} takes {ratio:.2} times as long as plain decoding");
        }
    }
    println!("{report}");
    Ok(())
}
