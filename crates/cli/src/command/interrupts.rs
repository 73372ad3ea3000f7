//! `hartrace interrupts`: how long interrupts took, and what they interrupted.

use crate::args::{Interrupts, InterruptsFormat};
use crate::failure::Failure;
use crate::files::create;
use crate::source::{Opened, functions, places};
use crate::talk::Talk;
use hartrace_analyze::{Grouping, InterruptTable, Measure, Timeline};
use hartrace_print::diagnostic::doubt::judge_doubts;
use hartrace_print::interrupts::{self as print, Shown};

pub(super) fn run(args: &Interrupts, talk: &Talk) -> Result<(), Failure> {
    let mut output = create(&args.output.output, [args.trace.as_path()])?;
    let Opened {
        program,
        image,
        isa,
        mut source,
    } = Opened::open(&args.trace, &args.traced, "interrupts", talk)?;
    let axis = match source.may_have_time()? {
        true => Measure::Time,
        false => Measure::Instructions,
    };
    let mut table = InterruptTable::new(axis, args.exceptions);
    let mut profiler =
        Timeline::profiler(&image, functions(&program), Grouping::default(), &mut table);
    source.feed_timed((&program, &image, isa), &mut *profiler, args.traced.hart)?;
    let (profile, timeline) = profiler.finish();
    timeline.finish();
    let places = places(&program);
    if profile.doubts.count > 0 {
        let strict = args.traced.strict;
        talk.report(judge_doubts(&profile.doubts, &places, &args.trace, strict))?;
    }
    let shown = Shown {
        causes: &table.causes(),
        profile: &profile,
        places: &places,
        exceptions: args.exceptions,
        top: args.top,
    };
    let written = match args.format {
        InterruptsFormat::Text => print::text(&shown, &mut output),
        InterruptsFormat::Json => print::json(&shown, &mut output),
    };
    written.map_err(|error| output.failed(error))?;
    Ok(output.finish()?)
}
