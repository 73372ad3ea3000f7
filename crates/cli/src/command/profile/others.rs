//! Profiles in the formats of other tools.

use crate::args::{Profile, ProfileFormat};
use crate::failure::Failure;
use crate::profiling::Profiled;
use crate::settings::Program;
use crate::source::scopes;
use crate::talk::Talk;
use hartrace_analyze::{
    FlowCounts, Grouping, Module, PathRuns, PathSequence, Recording, SampleProfile, Segments,
    mmap_events,
};
use hartrace_capture::output::Output;
use hartrace_print::diagnostic::{Code, Diagnostic};
use hartrace_print::profile::{self as print, Shown};
use hartrace_print::words::counted;
use std::io::{self, Write as _};

/// What is kept of a trace for a format, if the program has what the format needs.
pub(super) fn recording(format: ProfileFormat, program: &Program) -> Result<Recording, Failure> {
    match format {
        ProfileFormat::Pprof => Ok(Recording::Paths(PathRuns::default())),
        ProfileFormat::Speedscope | ProfileFormat::Firefox => {
            Ok(Recording::Sequence(PathSequence::default()))
        }
        _ if modules(program).is_empty() => Err(no_program().into()),
        ProfileFormat::Llvm => {
            scopes(program)?;
            Ok(Recording::Flow(FlowCounts::default()))
        }
        _ => Ok(Recording::Flow(FlowCounts::default())),
    }
}

/// What such a profile tells apart.
pub(super) fn grouping(format: ProfileFormat) -> Grouping {
    match format {
        ProfileFormat::Pprof => Grouping {
            harts: true,
            contexts: true,
            modes: true,
            sites: true,
        },
        _ => Grouping::default(),
    }
}

/// The ELF files of a program.
fn modules(program: &Program) -> Vec<Module> {
    let files = program.elf.iter().filter_map(|elf| {
        let name = elf.file.file.display().to_string();
        Module::from_elf(name, &elf.bytes, elf.file.base).ok()
    });
    files.collect()
}

/// Writes a profile of what was recorded.
pub(super) fn write(
    args: &Profile,
    shown: &Shown<'_>,
    made: &Profiled<Recording>,
    out: &mut Output,
    talk: &Talk,
) -> Result<(), Failure> {
    let modules = modules(&made.program);
    match &made.calls {
        Recording::Paths(paths) => {
            let written = print::pprof(shown, paths, &modules, out);
            let note = written.map_err(|error| out.failed(error))?;
            note.iter().for_each(|note| talk.summary(note));
        }
        Recording::Sequence(sequence) => {
            let written = match args.format {
                ProfileFormat::Firefox => print::firefox(shown, sequence, &modules, out),
                _ => print::speedscope(shown, sequence, &title(args), out),
            };
            written.map_err(|error| out.failed(error))?;
            say_left_out(args, sequence, talk);
        }
        Recording::Flow(flow) => {
            let first = modules.first().map(|module| &module.segments);
            let written = match args.format {
                ProfileFormat::Autofdo => {
                    flow.write_autofdo(first.unwrap_or(&Segments::default()), &[], out)
                }
                ProfileFormat::Llvm => {
                    let scopes = scopes(&made.program)?;
                    let profile = SampleProfile::new(flow, &made.image, &scopes);
                    say_unknown(&profile, talk);
                    profile.write(out)
                }
                _ => profgen(flow, &modules, out),
            };
            written.map_err(|error| out.failed(error))?;
        }
    }
    Ok(())
}

/// What a profile is called.
fn title(args: &Profile) -> String {
    let names = args.traces.iter().map(|path| path.display().to_string());
    names.collect::<Vec<_>>().join(", ")
}

/// What is not as it is in the trace.
fn say_left_out(args: &Profile, sequence: &PathSequence, talk: &Talk) {
    if sequence.interval() > 1 {
        talk.summary(&format!(
            "calls are in order down to {}: the trace has too many for a file; what they cost is \
            exact",
            counted(sequence.interval(), "instruction")
        ));
    }
    if args.format == ProfileFormat::Firefox && sequence.left_out() > 0 {
        let count = counted(sequence.left_out(), "marker");
        talk.summary(&format!("left out: {count} of traps and gaps"));
    }
}

fn profgen(flow: &FlowCounts, modules: &[Module], out: &mut Output) -> io::Result<()> {
    let mut lines = Vec::new();
    for module in modules {
        mmap_events(&module.segments, &module.name, &mut lines);
    }
    out.write_all(&lines)?;
    flow.write_profgen(out)
}

/// Code that has no functions in the debugging information.
fn say_unknown(profile: &SampleProfile, talk: &Talk) {
    let (_, unknown) = profile.instructions();
    if unknown > 0 {
        talk.summary(&format!(
            "left out: {} of code without debugging information",
            counted(unknown, "executed instruction")
        ));
    }
}

/// These formats name code by its place in a file.
fn no_program() -> Diagnostic {
    Diagnostic::new(Code::NoProgram, "no program is given")
        .note("profiles for compilers identify code by its place in the ELF file")
        .help("give the ELF file with -e")
}
