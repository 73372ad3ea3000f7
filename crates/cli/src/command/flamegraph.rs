//! `hartrace flamegraph`: call paths as a picture.

use crate::args::Flamegraph;
use crate::failure::Failure;
use crate::files::create;
use crate::profiling::{Compared, compare, grouping};
use crate::source::places;
use crate::talk::Talk;
use hartrace_analyze::InsnCosts;
use hartrace_print::diagnostic::{Code, Diagnostic};
use hartrace_print::profile::{self as print, Shown};

pub(super) fn run(args: &Flamegraph, talk: &Talk) -> Result<(), Failure> {
    let files = args.traces.iter().chain(&args.baseline);
    let mut output = create(&args.output.output, files.map(|p| p.as_path()))?;
    let files = (args.traces.as_slice(), args.baseline.as_deref());
    let by = grouping(&args.measured.by);
    let how = ("flamegraph", args.measured.cost, by);
    let Compared { made, before, by } = compare(files, &args.traced, how, &|_| Ok(()), talk)?;
    let places = places(&made.program);
    let insns = InsnCosts::new();
    let shown = Shown {
        profile: &made.profile,
        insns: &insns,
        image: &made.image,
        places: &places,
        latencies: None,
        by,
        top: None,
    };
    if shown.profile.total().of(by) == 0 {
        let message = "nothing was executed: there is nothing to draw";
        return Err(Diagnostic::new(Code::NotSynchronised, message).into());
    }
    let names = args.traces.iter().map(|path| path.display().to_string());
    let title = match &args.title {
        Some(title) => title.clone(),
        None => names.collect::<Vec<_>>().join(", "),
    };
    let before = before.as_ref().map(|before| &before.profile);
    print::flamegraph(&shown, before, &title, &mut output).map_err(|error| output.failed(error))?;
    Ok(output.finish()?)
}
