//! `hartrace stats`: what a trace is made of.

use super::{configs, create, inputs, one_stdin};
use crate::args::{Stats, StatsFormat};
use crate::diagnostic::{Code, Failure};
use crate::progress::Progress;
use crate::talk::Talk;
use crate::traces::{self, Named, Nothing, Report, Settings, Watch};
use hartrace_capture::input::Input;
use hartrace_capture::shard::{Resume as _, Sharding};
use hartrace_capture::trace::{self, Census, Counting, Decoder};
use hartrace_flow::Image;
use hartrace_print::stats::{self, Counted, Decoded};

/// What was read.
struct Looked {
    bytes: u64,
    census: Census,
    /// Only with the program.
    decoded: Option<Report>,
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
    let own = Some(&nothing).filter(|_| settings.format().has_code());
    let looked = look(args, input, &settings, image.as_ref().or(own), talk)?;
    let counted = Counted {
        file: args.trace.display().to_string(),
        bytes: looked.bytes,
        format: settings.format(),
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
) -> Result<Looked, Failure> {
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
    Ok(Looked {
        bytes,
        census: counting.finish(),
        decoded: decoder.map(|_| watch.report),
    })
}

/// Bytes that are counted at a time.
const CHUNK: usize = 1 << 20;
