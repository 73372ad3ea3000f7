//! `hartrace report`: all views of a trace as one page.

use crate::args::{Report, is_stdout};
use crate::failure::Failure;
use crate::files::{create, one_stdin};
use crate::profiling::is_one_program;
use crate::reporting::{Reported, collect};
use crate::side_by_side::{Addresses, side_by_side};
use crate::source::{Opened, places, source_text};
use crate::talk::Talk;
use hartrace_analyze::{DiffOptions, Divergence, FunctionChange, Measure, Places, compare_runs};
use hartrace_capture::input::{self, is_stdin};
use hartrace_capture::source_text::SourceText;
use hartrace_print::diagnostic::{Code, Diagnostic};
use hartrace_report::{Budget, Change, Comparison, Document, html};
use std::io::IsTerminal as _;
use std::path::Path;

/// How often the budget is halved to make a page small enough.
const HALVINGS: u32 = 8;

pub(super) fn run(args: &Report, talk: &Talk) -> Result<(), Failure> {
    let files = || {
        [Some(&args.trace), args.other.as_ref()]
            .into_iter()
            .flatten()
    };
    one_stdin(files().map(|path| path.as_path()))?;
    if is_stdout(&args.output.output) && std::io::stdout().is_terminal() {
        return Err(Failure::Usage("the page is HTML: give a file with -o"));
    }
    let output = create(&args.output.output, files().map(|path| path.as_path()))?;
    let budget = match args.other {
        None => Budget::DEFAULT,
        Some(_) => Budget::DEFAULT.halved(1),
    };
    let mut reported = Vec::new();
    for path in files() {
        let part = args.between.part();
        let how = ("report", &part);
        reported.push(collect(path, &args.traced, how, &budget, talk)?);
    }
    let programs = reported.iter().map(|one| &one.program);
    let text = source_text(&args.sources, programs);
    let compare = match (&args.other, reported.as_slice()) {
        (Some(other), [before, after]) => {
            let same = is_one_program(&before.program, &after.program);
            if !same {
                talk.warning(&different(&args.trace, other));
            }
            let difference = same.then(|| first_difference(args, other, &talk.silent()));
            Some(Comparison {
                functions: changes(before, after),
                first_difference: difference.flatten(),
            })
        }
        _ => None,
    };
    let page = page((&reported, compare), &text, &budget, args.max_size)?;
    output.write_with(|out| out.write_all(page.as_bytes()))?;
    Ok(())
}

/// Runs of two programs, perhaps of two builds of one.
fn different(one: &Path, other: &Path) -> Diagnostic {
    let (one, other) = (input::name(one), input::name(other));
    let message = format!("{one} and {other} come from different programs");
    Diagnostic::new(Code::DifferentPrograms, message)
        .note("functions are matched by name; where the runs part is not looked for")
}

/// The largest page that is not larger than `max` bytes.
fn page(
    (reported, compare): (&[Reported], Option<Comparison>),
    text: &SourceText,
    budget: &Budget,
    max: u64,
) -> Result<String, Failure> {
    for halvings in 0..=HALVINGS {
        let budget = budget.halved(halvings);
        let runs = reported.iter().map(|one| one.run(text, &budget));
        let page = html(&Document::new(runs.collect(), compare.clone()).json());
        if page.len() as u64 <= max {
            return Ok(page);
        }
    }
    let message = format!("no page fits into {max} bytes");
    let help = "give --max-size a larger number";
    Err(Diagnostic::new(Code::CannotWrite, message)
        .help(help)
        .into())
}

/// How the functions of two runs differ.
fn changes(before: &Reported, after: &Reported) -> Vec<Change> {
    let (before, after) = (&before.collected.profile, &after.collected.profile);
    let changes = after.changes_since(before, Measure::Instructions);
    let change = |change: FunctionChange| Change {
        name: change.name,
        before: change.own.0,
        after: change.own.1,
    };
    changes.into_iter().map(change).collect()
}

/// Where two runs go different ways for the first time; `None` if they do not, or if that
/// cannot be found out: of several harts, of parts, and of what can be read only once.
fn first_difference(args: &Report, other: &Path, talk: &Talk) -> Option<String> {
    let is_part = args.between.is_part();
    if is_part || is_stdin(&args.trace) || is_stdin(other) {
        return None;
    }
    let open = |path| Opened::open(path, &args.traced, "report", talk).ok();
    let (a, b) = (open(&args.trace)?, open(other)?);
    let (places_a, places_b) = (places(&a.program), places(&b.program));
    let one = Addresses {
        source: a.source,
        of: (&a.program, &a.image, a.isa),
        path: &args.trace,
    };
    let two = Addresses {
        source: b.source,
        of: (&b.program, &b.image, b.isa),
        path: other,
    };
    let options = DiffOptions {
        before: 1,
        ..DiffOptions::default()
    };
    let (found, read) = side_by_side([one, two], args.traced.hart, |[a, b]| {
        let mut first = None;
        let (mut a, mut b) = (a.into_iter(), b.into_iter());
        compare_runs(&mut a, &mut b, &options, &mut |found| {
            first = Some(found.clone());
            false
        });
        first
    });
    read.ok()?;
    let found: Divergence = found?;
    let way = |side: usize, places: &Places<'_>| {
        let next = found.then.get(side).and_then(|pcs| pcs.first());
        next.map_or("its end".to_owned(), |pc| places.at(*pc).to_string())
    };
    let last = found.common.last();
    let last = last.map_or("at the start".to_owned(), |pc| {
        format!("after {}", places_a.at(*pc))
    });
    let [before, _] = found.at;
    Some(format!(
        "at instruction {before}, {last}: the first run continues at {}, the second at {}",
        way(0, &places_a),
        way(1, &places_b)
    ))
}
