//! `hartrace ctr`: control transfer records.

mod report;
mod source;
mod target;

use super::{configs, inputs, one_stdin};
use crate::args::{Ctr, CtrFormat, is_stdout};
use crate::diagnostic::{Code, Diagnostic, Failure, count};
use crate::settings::{self, Program};
use crate::talk::Talk;
use report::Report;
use source::{Content, Opened};
use std::io::IsTerminal as _;
use std::path::PathBuf;
use target::{Source, Target};

pub(super) fn run(args: &Ctr, talk: &Talk) -> Result<(), Failure> {
    check_usage(args)?;
    let Some(first) = args.files.first() else {
        return Err(Failure::Usage("no file is given"));
    };
    let (config, _) = settings::resolve_beside(first, &args.program, talk)?;
    let target = {
        let files = args.files.iter().map(PathBuf::as_path);
        let files = files.chain(inputs(&config));
        one_stdin(files.clone().chain(configs(&args.program)))?;
        Target::create(args, files)?
    };
    // Names and code are those of the first file's program.
    let Opened {
        program,
        image,
        content,
    } = Opened::open(first, args, talk)?;
    let only_dumps = args.files.len() == 1 && matches!(content, Content::Dump(..));
    if args.every.is_some() && only_dumps {
        return Err(Failure::Usage(
            "--every goes with traces and logs: a dump has the snapshots it has",
        ));
    }
    let places = report::places(&program);
    let mut report = Report::new(args, &program, image.as_ref(), &places, target.sink())?;
    let mut source = Source {
        version: None,
        made: !matches!(content, Content::Dump(..)),
        one_program: true,
    };
    source.version = content.read(&program, image.as_ref(), args, talk, &mut report)?;
    for path in args.files.iter().skip(1) {
        let next = Opened::open(path, args, talk)?;
        source.one_program &= is_same(&program, &next.program);
        source.made &= !matches!(next.content, Content::Dump(..));
        let (of, image) = (&next.program, next.image.as_ref());
        let version = next.content.read(of, image, args, talk, &mut report)?;
        source.version = source.version.or(version);
    }
    if let Some(wanted) = args.sample.filter(|k| *k >= report.seen()) {
        return Err(beyond(wanted, report.seen()).into());
    }
    report.finish(talk)?;
    target.finish(&program, source)
}

/// Whether two programs have the same files.
fn is_same(one: &Program, other: &Program) -> bool {
    let (one, other) = (one.elf.iter(), other.elf.iter());
    one.map(|elf| &elf.bytes).eq(other.map(|elf| &elf.bytes))
}

/// Flags that do not go together.
fn check_usage(args: &Ctr) -> Result<(), Failure> {
    if args.top.is_some() && !matches!(args.format, CtrFormat::Blocks | CtrFormat::Branches) {
        return Err(Failure::Usage("--top goes with -f blocks or branches"));
    }
    let shown = is_stdout(&args.output.output) && std::io::stdout().is_terminal();
    if args.format == CtrFormat::Dump && shown {
        return Err(Failure::Usage(
            "a dump is binary, which does not go to a terminal: name a file, or use a pipe",
        ));
    }
    Ok(())
}

/// There are not so many snapshots.
fn beyond(wanted: u64, seen: u64) -> Diagnostic {
    let seen = count(seen, "snapshot");
    let message = format!("there is no snapshot {wanted}: there are {seen}, counted from 0");
    Diagnostic::new(Code::BeyondEnd, message)
        .help("choose a smaller K for --sample; traces and logs have more with a smaller --every")
}
