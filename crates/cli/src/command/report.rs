//! `hartrace report`: all views of a trace as one page.

use crate::args::Report;
use crate::failure::Failure;
use crate::files::{create, one_stdin};
use crate::reporting::{Reported, collect};
use crate::talk::Talk;
use hartrace_analyze::Measure;
use hartrace_capture::source_text::SourceText;
use hartrace_print::diagnostic::{Code, Diagnostic};
use hartrace_report::{Budget, Change, Comparison, Document, html};

/// How often the budget is halved to make a page small enough.
const HALVINGS: u32 = 8;

pub(super) fn run(args: &Report, talk: &Talk) -> Result<(), Failure> {
    let files = || {
        [Some(&args.trace), args.other.as_ref()]
            .into_iter()
            .flatten()
    };
    one_stdin(files().map(|path| path.as_path()))?;
    let output = create(&args.output.output, files().map(|path| path.as_path()))?;
    let budget = match args.other {
        None => Budget::DEFAULT,
        Some(_) => Budget::DEFAULT.halved(1),
    };
    let mut reported = Vec::new();
    for path in files() {
        let part = args.part();
        let how = ("report", &part);
        reported.push(collect(path, &args.traced, how, &budget, talk)?);
    }
    let text = SourceText::new(args.sources.source_dir.clone());
    let page = page(&reported, &text, &budget, args.max_size)?;
    output.write_with(|out| out.write_all(page.as_bytes()))?;
    Ok(())
}

/// The largest page that is not larger than `max` bytes.
fn page(
    reported: &[Reported],
    text: &SourceText,
    budget: &Budget,
    max: u64,
) -> Result<String, Failure> {
    let compare = || match reported {
        [before, after] => Some(comparison(before, after)),
        _ => None,
    };
    for halvings in 0..=HALVINGS {
        let budget = budget.halved(halvings);
        let runs = reported.iter().map(|one| one.run(text, &budget));
        let page = html(&Document::new(runs.collect(), compare()).json());
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
fn comparison(before: &Reported, after: &Reported) -> Comparison {
    let (before, after) = (&before.collected.profile, &after.collected.profile);
    let changes = after.changes_since(before, Measure::Instructions);
    let functions = changes.into_iter().map(|change| Change {
        name: change.name,
        before: change.own.0,
        after: change.own.1,
    });
    Comparison {
        functions: functions.collect(),
        first_difference: None,
    }
}
