//! `hartrace coverage`: which code ran.

use crate::args::{Coverage as Args, CoverageBy, CoverageFormat, CoverageKind};
use crate::failure::Failure;
use crate::files::create;
use crate::profiling::same_program;
use crate::settings::Program;
use crate::source::{Opened, Source, places};
use crate::talk::Talk;
use hartrace_analyze::{ContextRuns, Coverage, RunCount, Shares, add_runs};
use hartrace_capture::shard::cores;
use hartrace_flow::{Context, Image};
use hartrace_isa::Isa;
use hartrace_print::coverage::{self as print, Covered, Group};
use hartrace_print::diagnostic::{Code, Diagnostic};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

/// What ran, of one context or of all.
type Counts = BTreeMap<Option<Context>, Vec<RunCount>>;

pub(super) fn run(args: &Args, talk: &Talk) -> Result<(), Failure> {
    if args.by.is_some() && args.format == CoverageFormat::Cobertura {
        return Err(Failure::Usage(
            "a Cobertura file cannot tell contexts apart: use --by with another format",
        ));
    }
    let files = args.traces.iter().map(|path| path.as_path());
    let mut output = create(&args.output.output, files)?;
    let mut all: Option<(&Path, Program, Image, Counts)> = None;
    for path in &args.traces {
        let Opened {
            program,
            image,
            isa,
            source,
        } = Opened::open(path, &args.traced, "coverage", talk)?;
        let counts = count(args, source, (&program, &image, isa))?;
        match &mut all {
            None => all = Some((path, program, image, counts)),
            Some((first, of, _, sum)) => {
                same_program((first, of), (path, &program))?;
                for (context, counts) in &counts {
                    add_runs(sum.entry(*context).or_default(), counts);
                }
            }
        }
    }
    let Some((_, program, image, counts)) = all else {
        return Err(Failure::Usage("no file is given"));
    };
    let (functions, places) = (crate::source::functions(&program), places(&program));
    let mut whole = Vec::new();
    for counts in counts.values() {
        add_runs(&mut whole, counts);
    }
    let whole = Coverage::new(&image, &functions, &places, &whole).shares();
    if whole.lines.all == 0
        && matches!(
            args.format,
            CoverageFormat::Lcov | CoverageFormat::Cobertura
        )
    {
        return Err(no_lines().into());
    }
    let contexts = counts.iter().map(|(context, counts)| {
        let coverage = Coverage::new(&image, &functions, &places, counts);
        (*context, coverage)
    });
    let contexts: Vec<(Option<Context>, Coverage)> = contexts.collect();
    for (number, (context, coverage)) in contexts.iter().enumerate() {
        let name = context.and_then(|context| functions.contexts().get(context));
        let group = Group {
            context: *context,
            name,
        };
        let covered = Covered {
            coverage,
            functions: &functions,
            places: &places,
            group: args.by.map(|_| group),
        };
        let written = match args.format {
            CoverageFormat::Text if number > 0 => {
                writeln!(output).and_then(|()| print::text(&covered, &mut output))
            }
            CoverageFormat::Text => print::text(&covered, &mut output),
            CoverageFormat::Json => print::json(&covered, &mut output),
            CoverageFormat::Lcov => print::lcov(&covered, &mut output),
            CoverageFormat::Cobertura => print::cobertura(&covered, &mut output),
        };
        written.map_err(|error| output.failed(error))?;
    }
    output.finish()?;
    judge(args, &whole)
}

/// What ran, by context if they are told apart, otherwise all together.
fn count(
    args: &Args,
    source: Source<'_>,
    opened: (&Program, &Image, Isa),
) -> Result<Counts, Failure> {
    let only = args.traced.hart;
    let mut counts = match args.by {
        None => {
            let threads = args.threads.unwrap_or_else(cores);
            Counts::from([(None, source.count_runs(opened, threads, only)?)])
        }
        Some(CoverageBy::Context) => {
            let mut contexts = ContextRuns::new(opened.1);
            source.feed(opened, &mut contexts, only, || Ok(()))?;
            contexts.take().collect()
        }
    };
    // Nothing ran: that is a report, too.
    if counts.is_empty() {
        counts.insert(None, Vec::new());
    }
    Ok(counts)
}

/// Files for other tools are about source lines.
fn no_lines() -> Diagnostic {
    let message = "the program has no line tables";
    Diagnostic::new(Code::NoLines, message)
        .note("lcov and Cobertura files are about source lines")
        .help("compile the program with -g, or use -f text or json")
}

/// Whether enough of the program ran.
fn judge(args: &Args, shares: &Shares) -> Result<(), Failure> {
    for (kind, least) in &args.fail_under {
        let (name, share) = match kind {
            CoverageKind::Instructions => ("instructions", shares.insns),
            CoverageKind::Branches => ("branches", shares.branches),
            CoverageKind::Lines => ("lines", shares.lines),
            CoverageKind::Functions => ("functions", shares.functions),
        };
        if share.percent() < *least {
            let percent = share.percent();
            let message = format!("coverage of {name} is {percent:.2} %, less than {least} %");
            return Err(Diagnostic::new(Code::LowCoverage, message)
                .note(format!("{} of {} ran", share.hit, share.all))
                .into());
        }
    }
    Ok(())
}
