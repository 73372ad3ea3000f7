//! Makes profiles of traces and logs.

use crate::args::{CostName, GroupBy, Traced};
use crate::failure::Failure;
use crate::settings::Program;
use crate::source::{Opened, functions, places};
use crate::talk::Talk;
use hartrace_analyze::{Added, CallSink, CallSites, Grouping, Measure, Profile, Recording};
use hartrace_capture::input;
use hartrace_capture::program::Identity;
use hartrace_flow::Image;
use hartrace_print::diagnostic::doubt::judge_doubts;
use hartrace_print::diagnostic::{Code, Diagnostic};
use std::path::{Path, PathBuf};

/// A profile and the program it is of, and what took the calls one by one.
pub(crate) struct Profiled<S = ()> {
    pub(crate) profile: Profile,
    pub(crate) calls: S,
    pub(crate) program: Program,
    pub(crate) image: Image,
}

/// What can be added up over several files.
pub(crate) trait Sum {
    /// `ids` are what `more` names, as it is here.
    fn add(&mut self, more: Self, ids: &Added);
}

impl Sum for () {
    fn add(&mut self, (): (), _: &Added) {}
}

impl Sum for CallSites {
    fn add(&mut self, more: CallSites, ids: &Added) {
        CallSites::add(self, &more, &ids.functions);
    }
}

impl Sum for Recording {
    fn add(&mut self, more: Recording, ids: &Added) {
        Recording::add(self, more, &ids.nodes);
    }
}

/// A profile, another one to compare it with, and what percentages are of.
pub(crate) struct Compared<S> {
    pub(crate) made: Profiled<S>,
    pub(crate) before: Option<Profiled>,
    pub(crate) by: Measure,
}

/// Makes what takes the calls of a file with this program, unless it cannot be made.
pub(crate) type MakeSink<'m, S> = dyn Fn(&Program) -> Result<S, Failure> + 'm;

/// The profile of all files together, and that of the baseline.
pub(crate) fn compare<S: CallSink + Sum>(
    (paths, baseline): (&[PathBuf], Option<&Path>),
    args: &Traced,
    (command, cost, by): (&str, CostName, Grouping),
    sink: &MakeSink<'_, S>,
    talk: &Talk,
) -> Result<Compared<S>, Failure> {
    let Some(first) = paths.first() else {
        return Err(Failure::Usage("no file is given"));
    };
    let before: Option<Profiled> = match baseline {
        Some(path) => {
            let before = profile(path, args, (command, by), &|_| Ok(()), talk)?;
            measure(cost, &before.profile, path)?;
            Some(before)
        }
        None => None,
    };
    let made: Profiled<S> = profile_all(paths, args, (command, by), sink, talk)?;
    let by = measure(cost, &made.profile, first)?;
    Ok(Compared { made, before, by })
}

/// The profile of all files together, which must be of one program.
fn profile_all<S: CallSink + Sum>(
    paths: &[PathBuf],
    args: &Traced,
    how: (&str, Grouping),
    sink: &MakeSink<'_, S>,
    talk: &Talk,
) -> Result<Profiled<S>, Failure> {
    let mut all: Option<(&Path, Profiled<S>)> = None;
    for path in paths {
        let next: Profiled<S> = profile(path, args, how, sink, talk)?;
        match &mut all {
            None => all = Some((path, next)),
            Some((first, all)) => {
                same_program((first, &all.program), (path, &next.program))?;
                let ids = all.profile.add(&next.profile);
                all.calls.add(next.calls, &ids);
            }
        }
    }
    match all {
        Some((_, all)) => Ok(all),
        None => Err(Failure::Usage("no file is given")),
    }
}

/// The profile of one file.
pub(crate) fn profile<S: CallSink>(
    path: &Path,
    args: &Traced,
    (command, by): (&str, Grouping),
    sink: &MakeSink<'_, S>,
    talk: &Talk,
) -> Result<Profiled<S>, Failure> {
    let Opened {
        program,
        image,
        isa,
        source,
    } = Opened::open(path, args, command, talk)?;
    let functions = functions(&program);
    let mut profiler = sink(&program)?.profiler(&image, functions, by);
    source.feed_timed((&program, &image, isa), &mut profiler, args.hart)?;
    let (profile, calls) = profiler.finish();
    if profile.doubts.count > 0 {
        let places = places(&program);
        talk.report(judge_doubts(&profile.doubts, &places, path, args.strict))?;
    }
    Ok(Profiled {
        profile,
        calls,
        program,
        image,
    })
}

/// What is told apart.
pub(crate) fn grouping(by: &[GroupBy]) -> Grouping {
    Grouping {
        harts: by.contains(&GroupBy::Hart),
        contexts: by.contains(&GroupBy::Context),
        modes: by.contains(&GroupBy::Mode),
        sites: false,
    }
}

/// The measure that was asked for, which the profile must have.
pub(crate) fn measure(cost: CostName, profile: &Profile, path: &Path) -> Result<Measure, Failure> {
    match cost {
        CostName::Instructions => Ok(Measure::Instructions),
        CostName::Time if profile.timed => Ok(Measure::Time),
        CostName::Time => {
            let message = format!("{} has no timestamps", input::name(path));
            Err(Diagnostic::new(Code::NoTime, message)
                .help(
                    "leave out --cost time, or record the trace with times: `timestamps` in \
                    section [ntrace], `time_width` in [etrace]",
                )
                .into())
        }
    }
}

/// Refuses traces that are not of one program.
pub(crate) fn same_program(
    (first, one): (&Path, &Program),
    (path, other): (&Path, &Program),
) -> Result<(), Failure> {
    let one = identity(one);
    if one != identity(other) {
        return Err(different(first, path).into());
    }
    if one.is_empty() {
        // Each has only the code that it executed.
        let message = "several traces are added up without their program";
        let help = "give the program with -e: counts are by address";
        return Err(Diagnostic::new(Code::NoProgram, message).help(help).into());
    }
    Ok(())
}

/// Whether two programs have the same code.
pub(crate) fn is_one_program(one: &Program, other: &Program) -> bool {
    identity(one) == identity(other)
}

/// What a program consists of.
fn identity(program: &Program) -> Vec<Identity> {
    let elf = program.elf.iter().map(|elf| &*elf.bytes);
    let raw = program.raw.iter().map(|raw| raw.bytes.as_slice());
    elf.chain(raw).map(Identity::of_code).collect()
}

fn different(one: &Path, other: &Path) -> Diagnostic {
    let (one, other) = (input::name(one), input::name(other));
    let message = format!("{one} and {other} come from different programs");
    Diagnostic::new(Code::DifferentPrograms, message)
        .note("their code differs, and counts are by address")
        .help("give traces of one program; --baseline compares those of two")
}
