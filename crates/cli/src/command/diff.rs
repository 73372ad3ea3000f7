//! `hartrace diff`: where two runs differ, or the messages of two traces.

mod messages;

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
use std::path::PathBuf;

pub(super) fn run(args: &Diff, talk: &Talk) -> Result<(), Failure> {
    if args.messages {
        return messages::run(args, talk);
    }
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
    report(&compared, [&args.a, &args.b])
}

/// Whether there were differences.
fn report(compared: &Compared, [a, b]: [&PathBuf; 2]) -> Result<(), Failure> {
    match compared.divergences {
        0 => Ok(()),
        n => {
            let message = format!("{} and {} differ", input::name(a), input::name(b));
            let note = format!("{} found", count(n, "difference"));
            Err(Diagnostic::new(Code::RunsDiffer, message).note(note).into())
        }
    }
}

/// Writes a difference with its number.
type Each<'e> = dyn FnMut(u64, &mut Output) -> io::Result<()> + 'e;

/// Numbers the differences that a comparison finds, as many as are wanted, and writes what it
/// came to.
fn written(
    args: &Diff,
    unit: &str,
    out: &mut Output,
    compare: impl FnOnce(&mut dyn FnMut(&mut Output, &mut Each<'_>) -> bool, &mut Output) -> Compared,
) -> io::Result<Compared> {
    let (mut number, mut failed) = (0, None);
    let mut each = |out: &mut Output, write: &mut Each<'_>| {
        number += 1;
        failed = write(number, out).err();
        failed.is_none() && args.max.is_none_or(|max| number < max)
    };
    let compared = compare(&mut each, out);
    if let Some(error) = failed {
        return Err(error);
    }
    match args.format {
        DiffFormat::Json => print::json_summary(&compared, out)?,
        DiffFormat::Text => print::summary(&compared, unit, out)?,
    }
    Ok(compared)
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
        print::json_header([runs[0].name, runs[1].name], out)?;
    }
    let (mut a, mut b) = (a.into_iter(), b.into_iter());
    written(args, "instruction", out, |each, out| {
        compare_runs(&mut a, &mut b, &options, &mut |found| {
            each(out, &mut |number, out| match is_json {
                true => print::json_divergence(number, found, out),
                false => print::divergence(number, found, runs, &line, out),
            })
        })
    })
}
