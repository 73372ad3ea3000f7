//! `hartrace branches`: which way jumps went.

use crate::args::{Branches, BranchesFormat};
use crate::failure::Failure;
use crate::files::create;
use crate::source::{Opened, functions, places};
use crate::talk::Talk;
use hartrace_analyze::JumpCounter;
use hartrace_print::jumps as print;

pub(super) fn run(args: &Branches, talk: &Talk) -> Result<(), Failure> {
    let mut output = create(&args.output.output, [args.trace.as_path()])?;
    let Opened {
        program,
        image,
        isa,
        source,
    } = Opened::open(&args.trace, &args.traced, "branches", talk)?;
    let mut counter = JumpCounter::new(&image, functions(&program));
    source.feed(
        (&program, &image, isa),
        &mut counter,
        args.traced.hart,
        || Ok(()),
    )?;
    let jumps = counter.finish();
    let written = match args.format {
        BranchesFormat::Text => print::text(&jumps, &places(&program), args.top, &mut output),
        BranchesFormat::Json => print::json(&jumps, &mut output),
    };
    written.map_err(|error| output.failed(error))?;
    Ok(output.finish()?)
}
