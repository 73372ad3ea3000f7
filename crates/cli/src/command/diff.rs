//! `hartrace diff`: where two runs differ.

use crate::args::{Diff, DiffFormat};
use crate::failure::Failure;
use crate::files::create;
use crate::side_by_side::{Addresses, Pieces, side_by_side};
use crate::source::{Opened, places, source_text};
use crate::talk::Talk;
use hartrace_analyze::{Compared, DiffOptions, compare_runs};
use hartrace_capture::input;
use hartrace_capture::output::Output;
use hartrace_capture::source_text::SourceText;
use hartrace_print::diagnostic::{Code, Diagnostic};
use hartrace_print::difference::{self as print, Run};
use hartrace_print::words::count;
use std::io;

pub(super) fn run(args: &Diff, talk: &Talk) -> Result<(), Failure> {
    let mut output = create(&args.output.output, [args.a.as_path(), args.b.as_path()])?;
    let a = Opened::open(&args.a, &args.traced, "diff", talk)?;
    let b = Opened::open(&args.b, &args.traced, "diff", talk)?;
    let (places_a, places_b) = (places(&a.program), places(&b.program));
    let (name_a, name_b) = (input::name(&args.a), input::name(&args.b));
    let runs = [
        Run {
            name: &name_a,
            image: &a.image,
            places: &places_a,
        },
        Run {
            name: &name_b,
            image: &b.image,
            places: &places_b,
        },
    ];
    let a = Addresses {
        source: a.source,
        of: (&a.program, &a.image, a.isa),
        path: &args.a,
    };
    let b = Addresses {
        source: b.source,
        of: (&b.program, &b.image, b.isa),
        path: &args.b,
    };
    let text = source_text(&args.sources, [a.of.0, b.of.0]);
    let (compared, read) = side_by_side([a, b], args.traced.hart, |pcs| {
        compare((args, &text), &runs, pcs, &mut output)
    });
    let compared = compared.map_err(|error| output.failed(error))?;
    read?;
    output.finish()?;
    match compared.divergences {
        0 => Ok(()),
        n => {
            let message = format!("{name_a} and {name_b} differ");
            let note = format!("{} found", count(n, "difference"));
            Err(Diagnostic::new(Code::RunsDiffer, message).note(note).into())
        }
    }
}

fn compare(
    (args, source): (&Diff, &SourceText),
    runs: &[Run<'_>; 2],
    [a, b]: [Pieces; 2],
    out: &mut Output,
) -> io::Result<Compared> {
    let options = DiffOptions {
        before: args.context,
        window: args.window.max(1),
        ..DiffOptions::default()
    };
    let line = |file: &str, number: u32| source.line(file, number);
    let is_json = args.format == DiffFormat::Json;
    if is_json {
        print::json_header(runs, out)?;
    }
    let (mut number, mut failed) = (0, None);
    let compared = compare_runs(
        &mut a.into_iter(),
        &mut b.into_iter(),
        &options,
        &mut |found| {
            number += 1;
            let written = match is_json {
                true => print::json_divergence(number, found, out),
                false => print::divergence(number, found, runs, &line, out),
            };
            failed = written.err();
            failed.is_none() && args.max.is_none_or(|max| number < max)
        },
    );
    if let Some(error) = failed {
        return Err(error);
    }
    match is_json {
        true => print::json_summary(&compared, out)?,
        false => print::summary(&compared, out)?,
    }
    Ok(compared)
}
