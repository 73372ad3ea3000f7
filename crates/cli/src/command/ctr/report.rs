//! Feeds snapshots to a report, and warns where the report may be wrong.

use crate::args::{Ctr, CtrFormat};
use crate::failure::Failure;
use crate::settings::Program;
use crate::sink::Sink;
use crate::source::scopes;
use crate::talk::Talk;
use hartrace_analyze::{Places, Segments};
use hartrace_capture::records::Snapshot;
use hartrace_flow::Image;
use hartrace_print::diagnostic::{self, Code, Diagnostic};
use hartrace_print::records::{self, Form, ReportError};

/// What is known of the addresses of a program.
pub(super) fn places(program: &Program) -> Places<'_> {
    let mut places = Places::new();
    for elf in &program.elf {
        // What has no symbols has no names.
        let _ = places.add_program((elf.symbols(), &elf.bytes), elf.lines(), elf.bias());
    }
    places
}

/// A report in work.
pub(super) struct Report<'p, 'a> {
    report: records::Report<'p, 'a, &'p Sink>,
    sink: &'p Sink,
    failure: Option<Failure>,
}

impl<'p, 'a> Report<'p, 'a> {
    pub(super) fn new(
        args: &Ctr,
        (program, image): (&Program, Option<&'p Image>),
        interpolated: bool,
        places: &'p [Places<'a>],
        sink: &'p Sink,
    ) -> Result<Report<'p, 'a>, Failure> {
        let Some(places) = places.first() else {
            return Err(Failure::Usage("no file is given"));
        };
        let report = records::Report::new(form(args, program, interpolated)?, image, places, sink);
        Ok(Report {
            report: report.only(args.sample),
            sink,
            failure: None,
        })
    }

    /// The snapshots that follow are of a program with these names.
    pub(super) fn turn_to(&mut self, places: &'p Places<'a>) {
        self.report.turn_to(places);
    }

    /// Snapshots so far, those that were not wanted among them.
    pub(super) fn seen(&self) -> u64 {
        self.report.seen()
    }

    /// What failed so far.
    pub(super) fn check(&mut self) -> Result<(), Failure> {
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => self.sink.check(),
        }
    }

    /// Takes a snapshot in.
    pub(super) fn snapshot(&mut self, snapshot: &Snapshot) {
        if self.failure.is_none()
            && let Err(error) = self.report.snapshot(snapshot)
        {
            self.failure = Some(refused(error, self.sink));
        }
    }

    /// Writes the report, and warns about what is doubtful in it.
    pub(super) fn finish(mut self, talk: &Talk) -> Result<(), Failure> {
        if self.failure.is_some() {
            return self.check();
        }
        match self.report.finish() {
            Ok(doubts) => {
                let doubts = diagnostic::records::doubts(&doubts);
                doubts.iter().for_each(|doubt| talk.warning(doubt));
            }
            // An empty report is one, too.
            Err(error @ ReportError::NoRecords(_)) => {
                talk.warning(&diagnostic::records::refused(&error));
            }
            Err(error) => return Err(refused(error, self.sink)),
        }
        self.sink.check()
    }
}

/// The report that was asked for.
fn form(args: &Ctr, program: &Program, interpolated: bool) -> Result<Form, Failure> {
    Ok(match args.format {
        CtrFormat::Table => Form::Table,
        CtrFormat::Brstack => Form::BrStack,
        CtrFormat::Brstack8 => Form::BrStack8,
        CtrFormat::Brstacksym => Form::BrStackSym,
        CtrFormat::Profgen => Form::Profgen(mapped(program)),
        CtrFormat::Autofdo => Form::AutoFdo(Box::new(segments(program)?)),
        CtrFormat::Llvm => Form::Llvm(scopes(program)?),
        CtrFormat::Folded => Form::Folded,
        CtrFormat::Blocks => Form::Blocks(args.top),
        CtrFormat::Branches => Form::Branches(args.top),
        CtrFormat::Json => Form::Json { interpolated },
        CtrFormat::Dump => Form::Dump,
    })
}

/// Where the code of each program is.
fn mapped(program: &Program) -> Vec<(Segments, String)> {
    let segments = program.elf.iter().filter_map(|elf| {
        let segments = Segments::from_elf(&elf.bytes, elf.file.base).ok()?;
        Some((segments, elf.file.file.display().to_string()))
    });
    segments.collect()
}

/// The program whose counts are made.
fn segments(program: &Program) -> Result<Segments, Failure> {
    let found = program
        .elf
        .first()
        .map(|elf| Segments::from_elf(&elf.bytes, elf.file.base));
    match found {
        Some(Ok(segments)) => Ok(segments),
        _ => Err(Diagnostic::new(Code::NoProgram, "no program is given")
            .note("AutoFDO identifies code by its offset in the ELF file")
            .help("give the ELF file with -e")
            .into()),
    }
}

/// Why a report cannot be made.
fn refused(error: ReportError, sink: &Sink) -> Failure {
    match error {
        ReportError::Write(error) => sink.failed(error),
        error => diagnostic::records::refused(&error).into(),
    }
}
