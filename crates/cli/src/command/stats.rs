//! `hartrace stats`: what a trace is made of.

use super::stats_json;
use super::{configs, create, inputs, one_stdin};
use crate::args::{Stats, StatsFormat};
use crate::diagnostic::{Code, Failure, count};
use crate::progress::Progress;
use crate::talk::Talk;
use crate::traces::{self, Named, Nothing, Report, Settings, Watch};
use hartrace_capture::input::Input;
use hartrace_capture::shard::Sharding;
use hartrace_capture::trace::Pieces;
use hartrace_flow::Image;
use hartrace_ntrace as ntrace;
use std::io::{self, Write};

/// Everything that was counted.
pub(super) struct Counted {
    pub(super) file: String,
    pub(super) bytes: u64,
    pub(super) tally: ntrace::Tally,
    /// Only with the program.
    pub(super) decoded: Option<Report>,
}

pub(super) fn run(args: &Stats, talk: &Talk) -> Result<(), Failure> {
    let settings = Settings::resolve(&args.trace, &args.program, talk)?;
    let mut output = {
        let files = inputs(&settings.config).chain([args.trace.as_path()]);
        one_stdin(files.clone().chain(configs(&args.program)))?;
        create(&args.output.output, files)?
    };
    let mut input = traces::open(&args.trace, &args.transport, "stats")?;
    let program = match settings.program() {
        Named::Nowhere => None,
        Named::ByFlag => Some(settings.load(talk)?),
        // Without the program that a sidecar names, there is less to tell.
        Named::InFile => match settings.load(talk) {
            Ok(program) => Some(program),
            Err(Failure::Diagnostic(diagnostic)) if diagnostic.code == Code::CannotOpen => {
                talk.warning(&diagnostic);
                None
            }
            Err(failure) => return Err(failure),
        },
    };
    let isa = program.as_ref().and_then(|program| program.isa);
    let config = settings.ntrace(&mut input, isa.map(|isa| isa.xlen()), talk)?;
    let image = match &program {
        Some(program) => program.image()?,
        None => None,
    };
    let counted = look(args, input, &config, image.as_ref(), talk)?;
    let written = match args.format {
        StatsFormat::Text => write(&counted, &mut output),
        StatsFormat::Json => stats_json::write(&counted, &mut output),
    };
    written.map_err(|error| output.failed(error))?;
    output.finish()?;
    match &counted.decoded {
        Some(report) => report.judge(&args.trace, args.strict, talk),
        None => Ok(()),
    }
}

fn look(
    args: &Stats,
    input: Input,
    config: &ntrace::Config,
    image: Option<&Image>,
    talk: &Talk,
) -> Result<Counted, Failure> {
    let layout = config.layout();
    let mut tally = ntrace::Tally::default();
    let mut pieces = Pieces::default();
    let mut count = |at, _: &[u8], piece: &ntrace::Piece<'_>| {
        tally.piece(at, piece, &layout);
        Ok::<(), Failure>(())
    };
    let mut decoder = match image {
        Some(image) => Some(ntrace::Decoder::new(config.clone(), image)?),
        None => None,
    };
    let mut watch = Watch::new(Nothing::default(), None);
    let mut progress = Progress::new(talk, input.size());
    let mut bytes = 0;
    let threads = args.threads.unwrap_or_else(traces::cores);
    if let Some(decoder) = decoder
        .as_ref()
        .filter(|_| traces::is_for_threads(&input, threads))
    {
        let whole = input.contents(traces::MAX_WHOLE)?;
        bytes = whole.len() as u64;
        for chunk in whole.chunks(CHUNK) {
            pieces.feed(chunk, &mut count)?;
        }
        let part = || Watch::new(Nothing::default(), None);
        let give = |part: &mut Watch<Nothing>, done: usize| {
            progress.reach(done as u64);
            watch.take(part);
            Ok(())
        };
        // Counting does not fail.
        let _ = Sharding::new(threads).decode(&whole, || decoder.another(), part, give);
    } else {
        input.chunks(|chunk| {
            pieces.feed(chunk, &mut count)?;
            if let Some(decoder) = &mut decoder {
                decoder.feed(chunk, &mut watch);
            }
            bytes += chunk.len() as u64;
            progress.advance(chunk.len());
            Ok::<(), Failure>(())
        })?;
        if let Some(decoder) = &mut decoder {
            decoder.finish(&mut watch);
        }
    }
    pieces.finish(count)?;
    Ok(Counted {
        file: args.trace.display().to_string(),
        bytes,
        tally,
        decoded: decoder.map(|_| watch.report),
    })
}

/// Bytes that are counted at a time.
const CHUNK: usize = 1 << 20;

fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

fn write(counted: &Counted, out: &mut impl Write) -> io::Result<()> {
    let all = counted.tally.all();
    let bytes = counted.bytes;
    writeln!(out, "{}: {}", counted.file, count(bytes, "byte"))?;
    writeln!(
        out,
        "\n{:<24} {:>12} {:>7} {:>12} {:>7}",
        "message", "count", "%", "bytes", "%"
    )?;
    let mut row = |name: &str, messages: u64, size: u64| {
        writeln!(
            out,
            "{name:<24} {messages:>12} {:>7.2} {size:>12} {:>7.2}",
            percent(messages, all.messages),
            percent(size, bytes)
        )
    };
    for (tcode, kind) in counted.tally.kinds() {
        row(&tcode.to_string(), kind.messages, kind.bytes)?;
    }
    row("all", all.messages, all.bytes)?;
    if counted.tally.idle > 0 {
        writeln!(out, "\nidle       {}", count(counted.tally.idle, "byte"))?;
    }
    for (fault, bad) in counted.tally.faults() {
        let (code, text) = (fault.code(), fault.text());
        let size = count(bad.bytes, "byte");
        writeln!(out, "bad        {}, {size}: {code}: {text}", bad.messages)?;
    }
    writeln!(out)?;
    for (src, source) in counted.tally.sources() {
        write!(
            out,
            "source {src:<3} {}",
            count(source.all.messages, "message")
        )?;
        write!(out, ", {}", count(source.all.bytes, "byte"))?;
        write!(out, ", full addresses: {}", source.syncs)?;
        match source.interval() {
            Some(mean) => writeln!(out, ", every {mean} bytes, at most {}", source.longest)?,
            None => writeln!(out)?,
        }
    }
    write_bandwidth(&counted.tally.bandwidth, out)?;
    let Some(report) = &counted.decoded else {
        return Ok(());
    };
    let bits = bytes as f64 * 8.0 / report.instructions.max(1) as f64;
    writeln!(
        out,
        "decoded    {}",
        count(report.instructions, "instruction")
    )?;
    writeln!(out, "           {bits:.4} bits/instruction")?;
    writeln!(out, "traps      {}", report.traps)?;
    writeln!(out, "gaps       {}", report.gaps)
}

/// Bytes by time: in numbers, and as a line of bars.
fn write_bandwidth(bandwidth: &ntrace::Bandwidth, out: &mut impl Write) -> io::Result<()> {
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let (Some(first), slices) = (bandwidth.first(), bandwidth.bytes()) else {
        return Ok(());
    };
    let slice = bandwidth.slice();
    let most = slices.iter().copied().max().unwrap_or(0).max(1);
    let mean = slices.iter().sum::<u64>() / (slices.len() as u64).max(1);
    let thousand = |bytes: u64| bytes as f64 * 1000.0 / slice as f64;
    writeln!(
        out,
        "time       from {first}, {} slices of {slice}: {:.1} bytes in 1000, at most {:.1}",
        slices.len(),
        thousand(mean),
        thousand(most)
    )?;
    let bar = |&bytes: &u64| {
        let height = (bytes.saturating_mul(8)).div_ceil(most).min(8);
        BARS.get(height as usize).copied().unwrap_or('█')
    };
    let line: String = slices.iter().map(bar).collect();
    writeln!(out, "           |{line}|")
}
