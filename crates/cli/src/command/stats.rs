//! `hartrace stats`: what a trace is made of.

use super::stats_json;
use super::trace_write::unit;
use super::{configs, create, inputs, one_stdin};
use crate::args::{Stats, StatsFormat};
use crate::census::{Bandwidth, Census, Count, Counting, Kind, Packets};
use crate::diagnostic::{Code, Failure, count};
use crate::progress::Progress;
use crate::talk::Talk;
use crate::traces::{self, Named, Nothing, Report, Settings, Watch};
use hartrace_capture::input::Input;
use hartrace_capture::shard::Sharding;
use hartrace_capture::trace::{self, Decoder, Format};
use hartrace_flow::{Decode as _, Image};
use std::io::{self, Write};

/// Everything that was counted.
pub(super) struct Counted {
    pub(super) file: String,
    pub(super) bytes: u64,
    pub(super) format: Format,
    pub(super) census: Census,
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
    let input = settings.open(&args.trace, &args.transport, "stats")?;
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
    let image = match &program {
        Some(program) => program.image()?,
        None => None,
    };
    let xlen = isa.map(|isa| isa.xlen());
    let (settings, input) = settings.of_trace(input, xlen, image.as_ref(), args.strict, talk)?;
    // The instructions are in a tandem trace.
    let nothing = Image::new();
    let tandem = Some(&nothing).filter(|_| settings.format() == Format::Tandem);
    let counted = look(args, input, &settings, image.as_ref().or(tandem), talk)?;
    let written = match args.format {
        StatsFormat::Text => write(&counted, &mut output),
        StatsFormat::Json => stats_json::write(&counted, &mut output),
    };
    written.map_err(|error| output.failed(error))?;
    let verdict = match &counted.decoded {
        Some(report) => report.judge(&args.trace, args.strict, talk),
        None => Ok(()),
    };
    // As for all commands: what is wrong with the input leaves no file.
    if verdict.is_ok() || !output.is_file() {
        output.finish()?;
    }
    verdict
}

fn look(
    args: &Stats,
    input: Input,
    settings: &trace::Settings,
    image: Option<&Image>,
    talk: &Talk,
) -> Result<Counted, Failure> {
    let mut counting = Counting::new(settings);
    let mut decoder = match image {
        Some(image) => Some(Decoder::new(settings, image)?),
        None => None,
    };
    let mut watch = Watch::new(Nothing::default(), None);
    let mut progress = Progress::new(talk, input.size());
    let mut bytes = 0;
    let threads = args.threads.unwrap_or_else(traces::cores);
    if let Some(decoder) = decoder
        .as_ref()
        .filter(|_| traces::is_for_threads(&input, settings.format(), threads))
    {
        let whole = input.contents(traces::MAX_WHOLE)?;
        bytes = whole.len() as u64;
        for chunk in whole.chunks(CHUNK) {
            counting.feed(chunk);
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
            counting.feed(chunk);
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
    Ok(Counted {
        file: args.trace.display().to_string(),
        bytes,
        format: settings.format(),
        census: counting.finish(),
        decoded: decoder.map(|_| watch.report),
    })
}

/// Bytes that are counted at a time.
const CHUNK: usize = 1 << 20;

fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

fn write(counted: &Counted, out: &mut impl Write) -> io::Result<()> {
    let census = &counted.census;
    let unit = unit(counted.format);
    writeln!(out, "{}: {}", counted.file, count(counted.bytes, "byte"))?;
    // A container has room for more.
    let bytes = match counted.format {
        Format::Tandem => census.bytes(),
        _ => counted.bytes,
    };
    writeln!(
        out,
        "\n{:<24} {:>12} {:>7} {:>12} {:>7}",
        unit, "count", "%", "bytes", "%"
    )?;
    let mut row = |name: &str, messages: u64, size: u64| {
        writeln!(
            out,
            "{name:<24} {messages:>12} {:>7.2} {size:>12} {:>7.2}",
            percent(messages, census.all.messages),
            percent(size, bytes)
        )
    };
    for kind in &census.kinds {
        row(&kind.name, kind.count.messages, kind.count.bytes)?;
    }
    row("all", census.all.messages, census.all.bytes)?;
    write_items(&census.items, bytes, out)?;
    if census.idle > 0 {
        writeln!(out, "\nidle       {}", count(census.idle, "byte"))?;
    }
    for (code, text, bad) in &census.faults {
        let size = count(bad.bytes, "byte");
        writeln!(out, "bad        {}, {size}: {code}: {text}", bad.messages)?;
    }
    writeln!(out)?;
    for source in &census.sources {
        let messages = count(source.all.messages, unit);
        match census.sources.len() {
            // Only N-Trace numbers its streams.
            1 if counted.format != Format::Ntrace => write!(out, "stream     {messages}")?,
            _ => write!(out, "source {:<3} {messages}", source.number)?,
        }
        write!(out, ", {}", count(source.all.bytes, "byte"))?;
        write!(out, ", full addresses: {}", source.syncs)?;
        match source.interval {
            Some(mean) => writeln!(out, ", every {mean} bytes, at most {}", source.longest)?,
            None => writeln!(out)?,
        }
    }
    if let Some(packets) = &census.packets {
        write_packets(packets, out)?;
    }
    if let Some(bandwidth) = &census.bandwidth {
        write_bandwidth(bandwidth, out)?;
    }
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
    if let Some(packets) = &census.packets {
        let bits = packets.payload_bits as f64 / report.instructions.max(1) as f64;
        writeln!(out, "           {bits:.4} bits/instruction of payload")?;
    }
    writeln!(out, "traps      {}", report.traps)?;
    writeln!(out, "gaps       {}", report.gaps)
}

/// What groups of a tandem trace consist of.
fn write_items(items: &[Kind], bytes: u64, out: &mut impl Write) -> io::Result<()> {
    if items.is_empty() {
        return Ok(());
    }
    let all = items.iter().map(|item| item.count.messages).sum();
    let heading = ["item", "count", "%", "bytes", "%"];
    let [name, number, percents, size, share] = heading;
    writeln!(
        out,
        "\n{name:<24} {number:>12} {percents:>7} {size:>12} {share:>7}"
    )?;
    for Kind { name, count, .. } in items {
        let Count {
            messages,
            bytes: size,
        } = count;
        writeln!(
            out,
            "{name:<24} {messages:>12} {:>7.2} {size:>12} {:>7.2}",
            percent(*messages, all),
            percent(*size, bytes)
        )?;
    }
    Ok(())
}

/// What packets of E-Trace tell, and how much compression saves.
fn write_packets(packets: &Packets, out: &mut impl Write) -> io::Result<()> {
    let Packets {
        branches, reasons, ..
    } = packets;
    let all = branches.all();
    write!(out, "branches   {all}")?;
    match branches.mapped {
        0 => {}
        mapped => write!(out, ", {:.2} % taken", percent(branches.taken, mapped))?,
    }
    writeln!(out)?;
    let told = [
        ("exceptions", reasons.exceptions),
        ("interrupts", reasons.interrupts),
        ("traps without a handler", reasons.no_handler),
        ("updiscon", reasons.updiscon),
        ("notify", reasons.notify),
        ("irreport", reasons.irreport),
        ("ends", reasons.ended),
        ("losses", reasons.lost),
    ];
    let told = told.into_iter().filter(|(_, count)| *count > 0);
    let told: Vec<String> = told
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    if !told.is_empty() {
        writeln!(out, "told       {}", told.join(", "))?;
    }
    if packets.data.messages > 0 {
        let size = count(packets.data.bytes, "byte");
        writeln!(
            out,
            "data       {}, {size}",
            count(packets.data.messages, "packet")
        )?;
    }
    let (sent, whole) = (packets.payload_bits / 8, packets.whole_bits / 8);
    writeln!(
        out,
        "payload    {}, {:.2} % of {whole} without compression",
        count(sent, "byte"),
        percent(sent, whole)
    )
}

/// Bytes by time: in numbers, and as a line of bars.
fn write_bandwidth(bandwidth: &Bandwidth, out: &mut impl Write) -> io::Result<()> {
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let Bandwidth {
        first,
        slice,
        bytes: slices,
    } = bandwidth;
    let most = slices.iter().copied().max().unwrap_or(0).max(1);
    let mean = slices.iter().sum::<u64>() / (slices.len() as u64).max(1);
    let thousand = |bytes: u64| bytes as f64 * 1000.0 / *slice as f64;
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
