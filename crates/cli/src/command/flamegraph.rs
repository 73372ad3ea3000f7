//! `hartrace flamegraph`: call paths as a picture.

use crate::args::Flamegraph;
use crate::failure::Failure;
use crate::files::create;
use crate::profiling::{Compared, compare};
use crate::source::places;
use crate::talk::Talk;
use hartrace_analyze::{InsnCosts, Measure};
use hartrace_print::diagnostic::{Code, Diagnostic};
use hartrace_print::profile::{self as print, Shown};
use inferno::flamegraph::{self, Options};
use std::io;

pub(super) fn run(args: &Flamegraph, talk: &Talk) -> Result<(), Failure> {
    let files = args.traces.iter().chain(&args.baseline);
    let mut output = create(&args.output.output, files.map(|p| p.as_path()))?;
    let files = (args.traces.as_slice(), args.baseline.as_deref());
    let how = ("flamegraph", &args.measured);
    let Compared { made, before, by } = compare::<()>(files, &args.traced, how, talk)?;
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
    let mut lines = Vec::new();
    let written = match &before {
        Some(before) => print::folded_difference(&shown, &before.profile, &mut lines),
        None => print::folded(&shown, &mut lines),
    };
    written.map_err(|error| output.failed(error))?;
    if lines.is_empty() {
        let message = "nothing was executed: there is nothing to draw";
        return Err(Diagnostic::new(Code::NotSynchronised, message).into());
    }
    let mut picture = Vec::new();
    draw(args, by, &lines, &mut picture).map_err(|error| output.failed(error))?;
    io::Write::write_all(&mut output, &picture).map_err(|error| output.failed(error))?;
    Ok(output.finish()?)
}

fn draw(args: &Flamegraph, by: Measure, lines: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    let mut options = Options::default();
    let names = args.traces.iter().map(|path| path.display().to_string());
    let names: Vec<String> = names.collect();
    options.title = args.title.clone().unwrap_or_else(|| names.join(", "));
    options.count_name = match by {
        Measure::Instructions => "instructions".to_owned(),
        Measure::Time => "units of time".to_owned(),
    };
    // The same input is the same picture.
    options.deterministic = true;
    let text = String::from_utf8_lossy(lines);
    flamegraph::from_lines(&mut options, text.lines(), out).map_err(io::Error::other)
}
