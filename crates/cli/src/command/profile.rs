//! `hartrace profile`: exact profiles.

use crate::args::{Profile, ProfileFormat, ProfileOf};
use crate::failure::Failure;
use crate::files::create;
use crate::profiling::{Compared, Profiled, Sum, compare};
use crate::source::{places, source_text};
use crate::talk::Talk;
use hartrace_analyze::{CallSink, CallSites, InsnCosts, Measure};
use hartrace_capture::output::Output;
use hartrace_capture::program::similar_symbols;
use hartrace_print::diagnostic::{Code, Diagnostic};
use hartrace_print::profile::{self as print, Shown};
use std::io;
use std::path::Path;

pub(super) fn run(args: &Profile, talk: &Talk) -> Result<(), Failure> {
    check_usage(args)?;
    match args.format {
        // Only this format has calls by the instruction that made them.
        ProfileFormat::Callgrind => report::<CallSites>(args, talk, callgrind),
        _ => report::<()>(args, talk, write),
    }
}

/// Makes the profile and writes it with `write`.
fn report<S: CallSink + Sum>(
    args: &Profile,
    talk: &Talk,
    write: fn(&Profile, &Shown<'_>, &Profiled<S>, &mut Output) -> io::Result<()>,
) -> Result<(), Failure> {
    let files = args.traces.iter().chain(&args.baseline);
    let mut output = create(&args.output.output, files.map(|p| p.as_path()))?;
    let files = (args.traces.as_slice(), args.baseline.as_deref());
    let how = ("profile", &args.measured);
    let Compared { made, before, by } = compare::<S>(files, &args.traced, how, talk)?;
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
    let written = match &before {
        Some(before) => difference(args, &shown, before, &mut output),
        None => write(args, &shown, &made, &mut output),
    };
    written.map_err(|error| output.failed(error))?;
    Ok(output.finish()?)
}

/// Whether the costs of single instructions are shown, or what is made of them.
fn needs_instructions(args: &Profile) -> bool {
    let of = !matches!(args.of, ProfileOf::Functions | ProfileOf::Calls);
    match args.format {
        ProfileFormat::Text => of,
        ProfileFormat::Folded => false,
        ProfileFormat::Json | ProfileFormat::Callgrind => args.baseline.is_none(),
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
    if args.baseline.is_some() && args.format == ProfileFormat::Callgrind {
        return Err(Failure::Usage(
            "--baseline requires -f text, json or folded",
        ));
    }
    let is_table = is_text && args.of != ProfileOf::Functions;
    let is_grouped = !args.measured.by.is_empty();
    if is_grouped && (is_table || args.format == ProfileFormat::Callgrind) {
        return Err(Failure::Usage(
            "--by divides functions and call paths: leave out --of and -f callgrind",
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
        ProfileFormat::Text | ProfileFormat::Callgrind => {
            print::difference(shown, &before.profile, out)
        }
        ProfileFormat::Json => print::json_difference(shown, &before.profile, out),
        ProfileFormat::Folded => print::folded_difference(shown, &before.profile, out),
    }
}

fn callgrind(
    _: &Profile,
    shown: &Shown<'_>,
    made: &Profiled<CallSites>,
    out: &mut Output,
) -> io::Result<()> {
    let file = made.program.elf.first().map(|elf| elf.file.file.as_path());
    let name = file.unwrap_or(Path::new("???")).display().to_string();
    print::callgrind(shown, &made.calls, &name, out)
}

fn write(args: &Profile, shown: &Shown<'_>, made: &Profiled, out: &mut Output) -> io::Result<()> {
    let text = source_text(&args.sources, [&made.program]);
    let line = |file: &str, number: u32| text.line(file, number);
    match (args.format, args.of) {
        (ProfileFormat::Json, _) => print::json(shown, out),
        (ProfileFormat::Folded, _) => print::folded(shown, out),
        // Calls are not kept for these.
        (ProfileFormat::Callgrind, _) | (ProfileFormat::Text, ProfileOf::Functions) => {
            print::functions(shown, out)
        }
        (ProfileFormat::Text, ProfileOf::Calls) => print::calls(shown, out),
        (ProfileFormat::Text, ProfileOf::Lines) => print::lines(shown, &line, out),
        (ProfileFormat::Text, ProfileOf::Loops) => print::loops(shown, out),
        (ProfileFormat::Text, ProfileOf::Source) => print::source(shown, &line, out),
        (ProfileFormat::Text, ProfileOf::Instructions) => {
            print::instructions(shown, args.function.as_deref(), &line, out)
        }
    }
}
