//! `hartrace coverage`: which code ran.

use crate::args::{Coverage as Args, CoverageFormat, CoverageKind};
use crate::failure::Failure;
use crate::files::create;
use crate::profiling::same_program;
use crate::settings::Program;
use crate::source::{Opened, places};
use crate::talk::Talk;
use hartrace_analyze::{Coverage, RunCount, Shares, add_runs};
use hartrace_capture::shard::cores;
use hartrace_flow::Image;
use hartrace_print::coverage::{self as print, Covered};
use hartrace_print::diagnostic::{Code, Diagnostic};
use std::path::Path;

pub(super) fn run(args: &Args, talk: &Talk) -> Result<(), Failure> {
    let files = args.traces.iter().map(|path| path.as_path());
    let mut output = create(&args.output.output, files)?;
    let threads = args.threads.unwrap_or_else(cores);
    let mut all: Option<(&Path, Program, Image, Vec<RunCount>)> = None;
    for path in &args.traces {
        let Opened {
            program,
            image,
            isa,
            source,
        } = Opened::open(path, &args.traced, "coverage", talk)?;
        let counts = source.count_runs((&program, &image, isa), threads, args.traced.hart)?;
        match &mut all {
            None => all = Some((path, program, image, counts)),
            Some((first, of, _, sum)) => {
                same_program((first, of), (path, &program))?;
                add_runs(sum, &counts);
            }
        }
    }
    let Some((_, program, image, counts)) = all else {
        return Err(Failure::Usage("no file is given"));
    };
    let (functions, places) = (crate::source::functions(&program), places(&program));
    let coverage = Coverage::new(&image, &functions, &places, &counts);
    let covered = Covered {
        coverage: &coverage,
        functions: &functions,
        places: &places,
    };
    let shares = coverage.shares();
    if shares.lines.all == 0
        && matches!(
            args.format,
            CoverageFormat::Lcov | CoverageFormat::Cobertura
        )
    {
        return Err(no_lines().into());
    }
    let written = match args.format {
        CoverageFormat::Text => print::text(&covered, &mut output),
        CoverageFormat::Json => print::json(&covered, &mut output),
        CoverageFormat::Lcov => print::lcov(&covered, &mut output),
        CoverageFormat::Cobertura => print::cobertura(&covered, &mut output),
    };
    written.map_err(|error| output.failed(error))?;
    output.finish()?;
    judge(args, &shares)
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
