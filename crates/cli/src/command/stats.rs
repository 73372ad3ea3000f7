//! `hartrace stats`: what a trace is made of.

use crate::args::{Stats, StatsFormat};
use crate::diagnostic::Failure;
use crate::session::Session;
use crate::talk::Talk;
use crate::traces::{Nothing, Report, Watch, cores};
use hartrace_capture::shard::Sharding;
use hartrace_capture::trace::{Census, Counting, Decoder, MAX_WHOLE, Trace};
use hartrace_flow::{Decode as _, Image};
use hartrace_print::stats::{self, Counted, Decoded};

/// What was read.
struct Looked {
    bytes: u64,
    census: Census,
    /// Only with the program.
    decoded: Option<Report>,
}

pub(super) fn run(args: &Stats, talk: &Talk) -> Result<(), Failure> {
    let session = Session::new(&args.trace, &args.program, args.strict, talk)?;
    let mut output = session.output(&args.output.output)?;
    let input = session.open(&args.transport, "stats")?;
    let code = session.code()?;
    let trace = session.trace(input, code.known())?;
    let format = trace.format();
    // A trace that holds the code needs no program.
    let nothing = Image::new();
    let own = Some(&nothing).filter(|_| format.has_code());
    let looked = look(args, trace, code.image.as_ref().or(own), &session)?;
    let counted = Counted {
        file: args.trace.display().to_string(),
        bytes: looked.bytes,
        format,
        census: &looked.census,
        decoded: looked.decoded.as_ref().map(|report| Decoded {
            instructions: report.instructions,
            traps: report.traps,
            gaps: report.gaps,
        }),
    };
    let written = match args.format {
        StatsFormat::Text => stats::text(&counted, &mut output),
        StatsFormat::Json => stats::json(&counted, &mut output),
    };
    written.map_err(|error| output.failed(error))?;
    let verdict = match &looked.decoded {
        Some(report) => report.judge(&args.trace, args.strict, talk),
        None => Ok(()),
    };
    Session::finish(output, verdict)
}

fn look(
    args: &Stats,
    trace: Trace,
    image: Option<&Image>,
    session: &Session<'_>,
) -> Result<Looked, Failure> {
    let mut counting = Counting::new(&trace.settings);
    let mut decoder = match image {
        Some(image) => Some(Decoder::new(&trace.settings, image)?),
        None => None,
    };
    let mut watch = Watch::new(Nothing::default(), None);
    let mut progress = session.progress(&trace.input);
    let mut bytes = 0;
    let threads = args.threads.unwrap_or_else(cores);
    if let Some(decoder) = decoder.as_ref().filter(|_| trace.is_for_threads(threads)) {
        let whole = trace.input.contents(MAX_WHOLE)?;
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
        trace.input.chunks(|chunk| {
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
    Ok(Looked {
        bytes,
        census: counting.finish(),
        decoded: decoder.map(|_| watch.report),
    })
}

/// Bytes that are counted at a time.
const CHUNK: usize = 1 << 20;
