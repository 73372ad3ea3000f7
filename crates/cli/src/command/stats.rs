//! `hartrace stats`: statistics of a trace.

use crate::args::{Stats, StatsFormat};
use crate::failure::Failure;
use crate::session::{Code, Session};
use crate::settings::Program;
use crate::source::{functions, places};
use crate::talk::Talk;
use hartrace_analyze::{Doubts, Follower, Grouping};
use hartrace_capture::shard::cores;
use hartrace_capture::trace::{Tallied, Trace};
use hartrace_flow::Image;
use hartrace_print::diagnostic::doubt::judge_doubts;
use hartrace_print::diagnostic::trace::{judge_warnings, no_program};
use hartrace_print::stats::{self, Counted};

pub(super) fn run(args: &Stats, talk: &Talk) -> Result<(), Failure> {
    let session = Session::new(&args.trace, &args.program, args.strict, talk)?;
    let mut output = session.output(&args.output.output)?;
    let input = session.open(&args.transport, "stats")?;
    let program = session.program()?;
    let code = Code::of(program.as_ref())?;
    let trace = session.trace(input, code.known())?;
    let format = trace.format();
    let (tallied, doubts) = match args.doubt {
        true => {
            let (tallied, doubts) = follow(&session, trace, program.as_ref(), &code)?;
            (tallied, Some(doubts))
        }
        false => (tally(args, &session, trace, &code)?, None),
    };
    let decoded = tallied.decoded.as_ref();
    let counted = Counted {
        file: args.trace.display().to_string(),
        bytes: tallied.bytes,
        format,
        census: &tallied.census,
        decoded,
        doubts: doubts.as_ref(),
    };
    let written = match args.format {
        StatsFormat::Text => stats::text(&counted, &mut output),
        StatsFormat::Json => stats::json(&counted, &mut output),
    };
    written.map_err(|error| output.failed(error))?;
    let mut verdict = match decoded {
        Some(decoded) => session.judge(decoded, None),
        None => talk.report(judge_warnings(
            &tallied.census.warnings,
            &args.trace,
            args.strict,
        )),
    };
    if let (Some(doubts), Some(program)) = (&doubts, &program) {
        let findings = judge_doubts(doubts, &places(program), &args.trace, args.strict);
        verdict = verdict.and(talk.report(findings));
    }
    Session::finish(output, verdict)
}

/// Counts messages and instructions.
fn tally(
    args: &Stats,
    session: &Session<'_>,
    trace: Trace,
    code: &Code,
) -> Result<Tallied, Failure> {
    // A trace that holds the code needs no program.
    let nothing = Image::new();
    let own = Some(&nothing).filter(|_| trace.format().has_code());
    let mut progress = session.progress(&trace.input);
    let threads = args.threads.unwrap_or_else(cores);
    session.talk.detail(&format!("threads: up to {threads}"));
    let tallied = trace.tally(code.image.as_ref().or(own), threads, &mut |done| {
        progress.reach(done);
    })?;
    Ok(tallied)
}

/// The same in order, with the jumps that contradict the call stack.
fn follow(
    session: &Session<'_>,
    trace: Trace,
    program: Option<&Program>,
    code: &Code,
) -> Result<(Tallied, Doubts), Failure> {
    let (Some(program), Some(image)) = (program, &code.image) else {
        return Err(no_program().into());
    };
    let mut progress = session.progress(&trace.input);
    let mut follower = Follower::new(image, functions(program), Grouping::default(), ());
    let tallied = trace.tally_into(image, &mut follower, &mut |done| progress.reach(done))?;
    Ok((tallied, follower.doubts().clone()))
}
