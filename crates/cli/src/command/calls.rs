//! `hartrace calls`: the tree of calls, and how long they took.

use crate::args::{Calls, CallsFormat};
use crate::failure::Failure;
use crate::files::create;
use crate::profiling::{grouping, measure, profile};
use crate::source::places;
use crate::talk::Talk;
use hartrace_analyze::{InsnCosts, Latencies};
use hartrace_print::profile::{self as print, Shown};

pub(super) fn run(args: &Calls, talk: &Talk) -> Result<(), Failure> {
    let mut output = create(&args.output.output, [args.trace.as_path()])?;
    let how = ("calls", grouping(&args.measured.by));
    let sink = |_: &_| Ok(Latencies::default());
    let made = profile(&args.trace, &args.traced, how, &sink, talk)?;
    let by = measure(args.measured.cost, &made.profile, &args.trace)?;
    let places = places(&made.program);
    let insns = InsnCosts::new();
    let shown = Shown {
        profile: &made.profile,
        insns: &insns,
        image: &made.image,
        places: &places,
        latencies: Some(&made.calls),
        by,
        top: args.top,
    };
    let written = match args.format {
        CallsFormat::Text => print::tree(&shown, args.depth, args.least, &mut output),
        CallsFormat::Json => print::json_calls(&shown, &mut output),
    };
    written.map_err(|error| output.failed(error))?;
    Ok(output.finish()?)
}
