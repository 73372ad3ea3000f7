//! `hartrace ctr`: reports on control transfer records.

mod report;
mod source;
mod target;

use crate::args::{Ctr, CtrFormat, is_stdout};
use crate::failure::Failure;
use crate::session::Session;
use crate::settings::Program;
use crate::talk::Talk;
use hartrace_analyze::Places;
use hartrace_capture::input;
use hartrace_capture::program::Identity;
use hartrace_print::diagnostic::{Code, Diagnostic};
use hartrace_print::words::count;
use report::Report;
use source::Opened;
use std::io::IsTerminal as _;
use std::path::Path;
use target::{Source, Target};

pub(super) fn run(args: &Ctr, talk: &Talk) -> Result<(), Failure> {
    check_usage(args)?;
    let session = Session::of_files(&args.files, true, &args.program, args.strict, talk)?;
    let target = Target::create(args, session.inputs())?;
    let files = open_all(args, talk)?;
    let only_dumps = files.iter().all(|f| f.content.is_dump());
    if args.every.is_some() && only_dumps {
        return Err(Failure::Usage(
            "--every is for traces and logs: the snapshots of a dump are fixed",
        ));
    }
    let (programs, contents): (Vec<_>, Vec<_>) = files
        .into_iter()
        .map(|f| ((f.program, f.image), f.content))
        .unzip();
    let Some((program, image)) = programs.first() else {
        return Err(Failure::Usage("no file is given"));
    };
    let mut source = Source {
        version: None,
        made: contents.iter().all(|c| !c.is_dump()),
        one_program: programs
            .iter()
            .all(|(p, _)| identity(p) == identity(program)),
    };
    let places: Vec<Places<'_>> = programs.iter().map(|(p, _)| report::places(p)).collect();
    let interpolated = contents.iter().any(|c| c.is_interpolated(args));
    let code = (program, image.as_ref());
    let mut report = Report::new(args, code, interpolated, &places, target.sink())?;
    for ((content, (program, image)), places) in contents.into_iter().zip(&programs).zip(&places) {
        report.turn_to(places);
        let version = content.read(program, image.as_ref(), args, &mut report)?;
        source.version = source.version.or(version);
    }
    if let Some(wanted) = args.sample.filter(|k| *k >= report.seen()) {
        return Err(beyond(wanted, report.seen()).into());
    }
    report.finish(talk)?;
    target.finish(program, source)
}

/// All files, each with its program. A problem with one of them is reported
/// before anything is written.
fn open_all<'a>(args: &'a Ctr, talk: &'a Talk) -> Result<Vec<Opened<'a>>, Failure> {
    let mut files: Vec<Opened<'_>> = Vec::with_capacity(args.files.len());
    // The first file whose program is known.
    let mut first: Option<(&Path, Vec<Identity>)> = None;
    for path in &args.files {
        let file = Opened::open(path, args, talk)?;
        let program = identity(&file.program);
        match &first {
            _ if program.is_empty() => {}
            None => first = Some((path, program)),
            Some((other, of)) if *of != program && is_sum(args.format) => {
                return Err(different(other, path).into());
            }
            Some(_) => {}
        }
        files.push(file);
    }
    Ok(files)
}

/// What a program consists of.
fn identity(program: &Program) -> Vec<Identity> {
    let elf = program.elf.iter().map(|elf| &*elf.bytes);
    let raw = program.raw.iter().map(|raw| raw.bytes.as_slice());
    elf.chain(raw).map(Identity::of_code).collect()
}

/// Whether a report sums up over all files, by address.
const fn is_sum(format: CtrFormat) -> bool {
    use CtrFormat::{Autofdo, Blocks, Branches, Folded, Llvm, Profgen};
    matches!(
        format,
        Autofdo | Blocks | Branches | Folded | Llvm | Profgen
    )
}

fn different(one: &Path, other: &Path) -> Diagnostic {
    let (one, other) = (input::name(one), input::name(other));
    let message = format!("{one} and {other} come from different programs");
    Diagnostic::new(Code::UnfitRecords, message)
        .note("their code differs, and this report counts by address")
        .help(
            "make one report per program; -f table, brstack and json accept files of several \
            programs",
        )
}

/// Flags that do not go together.
fn check_usage(args: &Ctr) -> Result<(), Failure> {
    if args.top.is_some() && !matches!(args.format, CtrFormat::Blocks | CtrFormat::Branches) {
        return Err(Failure::Usage("--top requires -f blocks or branches"));
    }
    let shown = is_stdout(&args.output.output) && std::io::stdout().is_terminal();
    if args.format == CtrFormat::Dump && shown {
        return Err(Failure::Usage(
            "a dump is binary and is not written to a terminal: give a file name, or use a pipe",
        ));
    }
    Ok(())
}

/// There are not so many snapshots.
fn beyond(wanted: u64, seen: u64) -> Diagnostic {
    let seen = count(seen, "snapshot");
    let message = format!("there is no snapshot {wanted}: there are {seen}, numbered from 0");
    Diagnostic::new(Code::BeyondEnd, message).help(
        "choose a smaller K for --sample; for traces and logs, a smaller --every gives \
            more snapshots",
    )
}
