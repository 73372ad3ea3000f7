//! Points in a trace, as they are typed.

use crate::args::Part;
use crate::failure::Failure;
use crate::settings::Program;
use hartrace_analyze::{Functions, Point, PointKind, Window, WindowOptions};
use hartrace_capture::input;
use hartrace_capture::program::{find_symbol, parse_address, similar_symbols};
use hartrace_capture::quantity::parse_count;
use hartrace_print::diagnostic::{Code, Diagnostic};
use std::path::Path;

/// Instructions around a point that is looked at.
const AROUND: u64 = 10;

/// The part of a trace that was asked for; `None` for everything.
pub(crate) fn part(
    args: &Part,
    program: &Program,
    functions: &Functions,
) -> Result<Option<WindowOptions>, Failure> {
    let point = |text: &Option<String>| match text {
        Some(text) => parse(text, program, functions).map(Some),
        None => Ok(None),
    };
    let find = point(&args.find)?;
    if args.context.is_some() && args.find.is_none() && args.around.is_none() {
        return Err(Failure::Usage("--context requires --around or --find"));
    }
    let usual = if find.is_some() { 0 } else { AROUND };
    let options = WindowOptions {
        from: point(&args.from)?,
        until: point(&args.until)?,
        find: find.or(point(&args.around)?),
        context: args.context.unwrap_or(usual),
        every: find.is_some(),
    };
    let whole = WindowOptions {
        context: options.context,
        ..WindowOptions::default()
    };
    Ok((options != whole).then_some(options))
}

/// Whether a part of the trace is given by its doubtful jumps.
pub(crate) fn has_doubt(options: &WindowOptions) -> bool {
    let WindowOptions {
        from, until, find, ..
    } = options;
    let mut points = [from, until, find].into_iter().flatten();
    points.any(|point| point.kind == PointKind::Doubt)
}

/// `5000`, `time=5000`, `0x80000010`, `main+0x10`, `trap`, `exception=2`, each perhaps
/// with `#N`.
fn parse(text: &str, program: &Program, functions: &Functions) -> Result<Point, Failure> {
    let (what, nth) = match text.rsplit_once('#') {
        Some((what, nth)) => match nth.parse().ok().filter(|nth| *nth > 0) {
            Some(nth) => (what, nth),
            None => return Err(bad(text, "after # comes a number, counted from 1")),
        },
        None => (text, 1),
    };
    let (word, value) = match what.split_once('=') {
        Some((word, value)) => (word, Some(value)),
        None => (what, None),
    };
    let code = || match value {
        None => Ok(None),
        Some(value) => match value.parse() {
            Ok(code) => Ok(Some(code)),
            Err(_) => Err(bad(text, "the cause of a trap is a number, as in mcause")),
        },
    };
    let kind = match word {
        "trap" if value.is_none() => PointKind::Trap,
        "gap" if value.is_none() => PointKind::Gap,
        "doubt" if value.is_none() => PointKind::Doubt,
        "exception" => PointKind::Exception(code()?),
        "interrupt" => PointKind::Interrupt(code()?),
        "time" if value.is_some() => match value.and_then(parse_count) {
            Some(time) => PointKind::Time(time),
            None => return Err(bad(text, "a time is a number in the unit of the trace")),
        },
        _ if what.starts_with("0x") => match parse_address(what) {
            Some(address) => PointKind::Address(address),
            None => return Err(bad(text, "this is no address")),
        },
        "" => return Err(bad(text, "write what is counted before `#`")),
        _ if what.starts_with(|c: char| c.is_ascii_digit()) => match parse_count(what) {
            Some(index) => PointKind::Index(index),
            None => return Err(bad(text, "write a number such as 1000000 or 10M")),
        },
        name => PointKind::Address(symbol(text, name, program, functions)?),
    };
    Ok(Point { kind, nth })
}

/// The address of a symbol, perhaps with an offset.
fn symbol(
    text: &str,
    name: &str,
    program: &Program,
    functions: &Functions,
) -> Result<u64, Failure> {
    let find = |name: &str| {
        let symbol = find_symbol(&program.elf, name).map(|range| *range.start());
        // The name as it is in the source.
        let mut all = functions.iter();
        let function = || all.find(|(_, f)| f.name == name).map(|(_, f)| f.start);
        symbol.or_else(function)
    };
    let offset = name.rsplit_once('+');
    let offset = offset.and_then(|(name, offset)| Some((find(name)?, parse_count(offset)?)));
    match (find(name), offset) {
        (Some(address), _) => Ok(address),
        (None, Some((address, offset))) => Ok(address.wrapping_add(offset)),
        (None, None) => {
            let near = similar_symbols(&program.elf, name);
            let message = format!("`{text}` is no point: the program has no symbol `{name}`");
            let problem = Diagnostic::new(Code::BadPlace, message);
            Err(match near.is_empty() {
                true => problem.help(FORMS).into(),
                false => problem.note(format!("similar: {}", near.join(", "))).into(),
            })
        }
    }
}

const FORMS: &str = "a point is an instruction number, time=N, an address, a symbol, trap, \
                     exception, interrupt, gap or doubt, each perhaps with #N for the N-th time";

fn bad(text: &str, why: &str) -> Failure {
    let message = format!("`{text}` is no point: {why}");
    Diagnostic::new(Code::BadPlace, message).help(FORMS).into()
}

/// Whether everything that was asked for is in the trace.
pub(crate) fn found(window: &Window<'_>, args: &Part, path: &Path) -> Result<(), Failure> {
    let name = input::name(path);
    if let (Some(index), Some(from), Some(until)) = (window.begins_late(), &args.from, &args.until)
    {
        let message = format!("`--until {until}` is not after `--from {from}` in {name}");
        let note = format!("`{from}` is at instruction {index}");
        return Err(Diagnostic::new(Code::NotFound, message).note(note).into());
    }
    let Some(missing) = window.missing() else {
        return Ok(());
    };
    let count = window.instructions();
    if let PointKind::Index(index) = missing.kind {
        let message = format!("{name} has no instruction {index}");
        let note = format!("it has {count} instructions, numbered from 0");
        return Err(Diagnostic::new(Code::BeyondEnd, message).note(note).into());
    }
    let texts = [&args.from, &args.find, &args.around].into_iter().flatten();
    let texts: Vec<String> = texts.map(|text| format!("`{text}`")).collect();
    let message = format!("{} is not found in {name}", texts.join(" or "));
    let note = format!("{count} instructions were searched");
    Err(Diagnostic::new(Code::NotFound, message).note(note).into())
}
