//! `hartrace diff`: where two runs differ.

use crate::args::{Diff, DiffFormat, Traced};
use crate::failure::Failure;
use crate::files::create;
use crate::logs::which_hart;
use crate::source::{Opened, places};
use crate::talk::Talk;
use hartrace_analyze::{Compared, DiffOptions, PcPieces, compare_runs};
use hartrace_capture::input;
use hartrace_capture::output::Output;
use hartrace_capture::source_text::SourceText;
use hartrace_flow::Image;
use hartrace_isa::Isa;
use hartrace_print::diagnostic::{Code, Diagnostic};
use hartrace_print::difference::{self as print, Run};
use hartrace_print::words::count;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Pieces that one run may be ahead of the comparison.
const AHEAD: usize = 4;

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
    let (to_a, from_a) = sync_channel(AHEAD);
    let (to_b, from_b) = sync_channel(AHEAD);
    let (of_a, of_b) = ((&a.program, &a.image, a.isa), (&b.program, &b.image, b.isa));
    let (source_a, source_b) = (a.source, b.source);
    let traced = &args.traced;
    let (compared, read_a, read_b) = thread::scope(|scope| {
        let a = scope.spawn(move || produce(source_a, of_a, (&args.a, traced), to_a));
        let b = scope.spawn(move || produce(source_b, of_b, (&args.b, traced), to_b));
        let compared = compare(args, &runs, (from_a, from_b), &mut output);
        (compared, joined(a.join()), joined(b.join()))
    });
    let compared = compared.map_err(|error| output.failed(error))?;
    read_a?;
    read_b?;
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

/// What a thread came to.
fn joined(result: thread::Result<Result<(), Failure>>) -> Result<(), Failure> {
    match result {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Decodes one of the runs, and sends its addresses until none are wanted any more.
fn produce(
    source: crate::source::Source<'_>,
    of: (&crate::settings::Program, &Image, Isa),
    (path, args): (&Path, &Traced),
    to: SyncSender<Vec<u64>>,
) -> Result<(), Failure> {
    // The comparison ends early if the runs do not meet again.
    let unwanted = AtomicBool::new(false);
    let take = |piece| {
        if !unwanted.load(Ordering::Relaxed) && to.send(piece).is_err() {
            unwanted.store(true, Ordering::Relaxed);
        }
    };
    let wanted = || match unwanted.load(Ordering::Relaxed) {
        true => Err(Failure::ClosedPipe),
        false => Ok(()),
    };
    let mut pieces = PcPieces::new(of.1, take);
    match source.feed(of, &mut pieces, args.hart, wanted) {
        Err(Failure::ClosedPipe) => {}
        read => {
            read?;
            pieces.finish();
        }
    }
    // The addresses of several harts, mixed, are those of no run.
    let harts = pieces.harts();
    which_hart(path, harts, harts.len() > 1)
}

fn compare(
    args: &Diff,
    runs: &[Run<'_>; 2],
    (a, b): (Receiver<Vec<u64>>, Receiver<Vec<u64>>),
    out: &mut Output,
) -> io::Result<Compared> {
    let options = DiffOptions {
        before: args.context,
        window: args.window.max(1),
        ..DiffOptions::default()
    };
    let source = SourceText::new(args.sources.source_dir.clone());
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
