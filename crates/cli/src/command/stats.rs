//! `hartrace stats`: statistics of a trace.

use crate::args::{Stats, StatsFormat};
use crate::failure::Failure;
use crate::session::Session;
use crate::talk::Talk;
use hartrace_capture::shard::cores;
use hartrace_flow::Image;
use hartrace_print::diagnostic::trace::judge_warnings;
use hartrace_print::stats::{self, Counted};

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
    let mut progress = session.progress(&trace.input);
    let threads = args.threads.unwrap_or_else(cores);
    talk.detail(&format!("threads: up to {threads}"));
    let tallied = trace.tally::<Failure>(code.image.as_ref().or(own), threads, |done| {
        progress.reach(done);
    })?;
    drop(progress);
    let counted = Counted {
        file: args.trace.display().to_string(),
        bytes: tallied.bytes,
        format,
        census: &tallied.census,
        decoded: tallied.decoded.as_ref(),
    };
    let written = match args.format {
        StatsFormat::Text => stats::text(&counted, &mut output),
        StatsFormat::Json => stats::json(&counted, &mut output),
    };
    written.map_err(|error| output.failed(error))?;
    let decoded = tallied.decoded.as_ref();
    let verdict = match decoded {
        Some(decoded) => session.judge(decoded, None),
        None => talk.report(judge_warnings(
            &tallied.census.warnings,
            &args.trace,
            args.strict,
        )),
    };
    Session::finish(output, verdict)
}
