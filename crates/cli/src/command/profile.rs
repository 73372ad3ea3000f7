//! `hartrace profile`: exact profiles.

mod others;

use crate::args::{Profile, ProfileFormat, ProfileOf, is_stdout};
use crate::failure::Failure;
use crate::files::create;
use crate::profiling::{Compared, MakeSink, Profiled, Sum, compare, grouping};
use crate::source::{places, source_text};
use crate::talk::Talk;
use hartrace_analyze::{CallSink, CallSites, Grouping, InsnCosts, Measure};
use hartrace_capture::output::Output;
use hartrace_capture::program::similar_symbols;
use hartrace_print::diagnostic::{Code, Diagnostic};
use hartrace_print::profile::{self as print, Shown};
use std::io::{self, IsTerminal as _};
use std::path::Path;

/// Writes a profile. What is not in the file is said.
type Write<S> = fn(&Profile, &Shown<'_>, &Profiled<S>, &mut Output, &Talk) -> Result<(), Failure>;

pub(super) fn run(args: &Profile, talk: &Talk) -> Result<(), Failure> {
    check_usage(args)?;
    use ProfileFormat::{Folded, Json, Text};
    let by = grouping(&args.measured.by);
    match args.format {
        // Only this format has calls by the instruction that made them.
        ProfileFormat::Callgrind => {
            report(args, by, &|_| Ok(CallSites::default()), callgrind, talk)
        }
        Text | Json | Folded => report(args, by, &|_| Ok(()), write, talk),
        format => {
            let by = others::grouping(format);
            let sink = |program: &_| others::recording(format, program);
            report(args, by, &sink, others::write, talk)
        }
    }
}

/// Makes the profile and writes it with `write`.
fn report<S: CallSink + Sum>(
    args: &Profile,
    by: Grouping,
    sink: &MakeSink<'_, S>,
    write: Write<S>,
    talk: &Talk,
) -> Result<(), Failure> {
    let files = args.traces.iter().chain(&args.baseline);
    let mut output = create(&args.output.output, files.map(|p| p.as_path()))?;
    let files = (args.traces.as_slice(), args.baseline.as_deref());
    let how = ("profile", args.measured.cost, by);
    let Compared { made, before, by } = compare(files, &args.traced, how, sink, talk)?;
    if let Some(name) = &args.function {
        need_function(name, &made)?;
    }
    let insns = match needs_instructions(args) {
        true => made.profile.instructions(&made.image),
        false => InsnCosts::new(),
    };
    let places = places(&made.program);
    let shown = Shown {
        profile: &made.profile,
        insns: &insns,
        image: &made.image,
        places: &places,
        latencies: None,
        by,
        top: args.top,
    };
    match &before {
        Some(before) => {
            let written = difference(args, &shown, before, &mut output);
            written.map_err(|error| output.failed(error))?;
        }
        None => write(args, &shown, &made, &mut output, talk)?,
    }
    Ok(output.finish()?)
}

/// Whether the costs of single instructions are shown, or what is made of them.
fn needs_instructions(args: &Profile) -> bool {
    let of = !matches!(args.of, ProfileOf::Functions | ProfileOf::Calls);
    match args.format {
        ProfileFormat::Text => of,
        ProfileFormat::Json | ProfileFormat::Callgrind => args.baseline.is_none(),
        _ => false,
    }
}

/// A function that is shown alone must have run.
fn need_function<S>(name: &str, made: &Profiled<S>) -> Result<(), Failure> {
    let functions = &made.profile.functions;
    let ran = made.profile.by_function(Measure::Instructions);
    let mut names = ran.iter().map(|cost| &functions.get(cost.function).name);
    if names.any(|ran| ran == name) {
        return Ok(());
    }
    let is_known = functions.iter().any(|(_, function)| function.name == name);
    let message = match is_known {
        true => format!("`{name}` was not executed"),
        false => format!("the program has no function `{name}`"),
    };
    let problem = Diagnostic::new(Code::NotFound, message);
    let near = similar_symbols(&made.program.elf, name);
    Err(match near.is_empty() || is_known {
        true => problem.into(),
        false => problem.note(format!("similar: {}", near.join(", "))).into(),
    })
}

fn check_usage(args: &Profile) -> Result<(), Failure> {
    let is_text = args.format == ProfileFormat::Text;
    if args.of != ProfileOf::Functions && !is_text {
        return Err(Failure::Usage("--of requires -f text"));
    }
    if args.function.is_some() && args.of != ProfileOf::Instructions {
        return Err(Failure::Usage("--function requires --of instructions"));
    }
    if args.baseline.is_some() && args.of != ProfileOf::Functions {
        return Err(Failure::Usage(
            "--baseline compares functions: leave out --of",
        ));
    }
    use ProfileFormat::{Folded, Json, Text};
    if args.baseline.is_some() && !matches!(args.format, Text | Json | Folded) {
        return Err(Failure::Usage(
            "--baseline requires -f text, json or folded",
        ));
    }
    let is_table = is_text && args.of != ProfileOf::Functions;
    let is_grouped = !args.measured.by.is_empty();
    if is_grouped && (is_table || !matches!(args.format, Text | Json | Folded)) {
        return Err(Failure::Usage(
            "--by divides functions and call paths: it requires -f text, json or folded, and no \
            --of",
        ));
    }
    let is_shown = is_stdout(&args.output.output) && io::stdout().is_terminal();
    if args.format == ProfileFormat::Pprof && is_shown {
        return Err(Failure::Usage(
            "a profile for pprof is no text: give a file with -o",
        ));
    }
    if is_grouped && args.baseline.is_some() && args.format != ProfileFormat::Folded {
        return Err(Failure::Usage("with --baseline, --by requires -f folded"));
    }
    Ok(())
}

fn difference(
    args: &Profile,
    shown: &Shown<'_>,
    before: &Profiled,
    out: &mut impl io::Write,
) -> io::Result<()> {
    match args.format {
        ProfileFormat::Json => print::json_difference(shown, &before.profile, out),
        ProfileFormat::Folded => print::folded_difference(shown, &before.profile, out),
        _ => print::difference(shown, &before.profile, out),
    }
}

fn callgrind(
    _: &Profile,
    shown: &Shown<'_>,
    made: &Profiled<CallSites>,
    out: &mut Output,
    _: &Talk,
) -> Result<(), Failure> {
    let file = made.program.elf.first().map(|elf| elf.file.file.as_path());
    let name = file.unwrap_or(Path::new("???")).display().to_string();
    let written = print::callgrind(shown, &made.calls, &name, out);
    Ok(written.map_err(|error| out.failed(error))?)
}

fn write(
    args: &Profile,
    shown: &Shown<'_>,
    made: &Profiled,
    out: &mut Output,
    _: &Talk,
) -> Result<(), Failure> {
    let text = source_text(&args.sources, [&made.program]);
    let line = |file: &str, number: u32| text.line(file, number);
    let written = match (args.format, args.of) {
        (ProfileFormat::Json, _) => print::json(shown, out),
        (ProfileFormat::Folded, _) => print::folded(shown, out),
        // The others have writers of their own.
        (_, ProfileOf::Functions) => print::functions(shown, out),
        (_, ProfileOf::Calls) => print::calls(shown, out),
        (_, ProfileOf::Lines) => print::lines(shown, &line, out),
        (_, ProfileOf::Loops) => print::loops(shown, out),
        (_, ProfileOf::Source) => print::source(shown, &line, out),
        (_, ProfileOf::Instructions) => {
            print::instructions(shown, args.function.as_deref(), &line, out)
        }
    };
    Ok(written.map_err(|error| out.failed(error))?)
}
