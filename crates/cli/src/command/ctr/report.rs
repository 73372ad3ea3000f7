//! Feeds snapshots to a report, and warns where the report may be wrong.

use crate::args::{Ctr, CtrFormat};
use crate::diagnostic::{Code, Diagnostic, Failure, count};
use crate::settings::Program;
use crate::sink::Sink;
use crate::talk::Talk;
use hartrace_analyze::{Places, Segments};
use hartrace_capture::records::Snapshot;
use hartrace_flow::Image;
use hartrace_print::records::{self, Form, ReportError};

/// What is known of the addresses of a program.
pub(super) fn places(program: &Program) -> Places<'_> {
    let mut places = Places::new();
    for elf in &program.elf {
        // What has no symbols has no names.
        let _ = places.add_elf(&elf.bytes, elf.file.base);
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
        let doubts = match self.report.finish() {
            Ok(doubts) => doubts,
            Err(ReportError::NoRecords(snapshots)) => {
                talk.warning(&no_records(snapshots));
                return self.sink.check();
            }
            Err(error) => return Err(refused(error, self.sink)),
        };
        if let Some((repeat, all)) = doubts.overlap {
            talk.warning(&overlapping(repeat, all));
        }
        warn_of_odd(doubts.odd, talk);
        if doubts.cut > 0 {
            talk.warning(&cut_stacks(doubts.stacks, doubts.cut));
        }
        if doubts.moved > 0 {
            talk.warning(&moved_stacks(doubts.stacks, doubts.moved));
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
        ReportError::LeftOut { number, fields } => {
            let message = format!("snapshot {number} does not hold every taken transfer");
            Diagnostic::new(Code::UnfitRecords, message)
                .note(format!("fields that filter: {}", fields.join(" ")))
                .note("the code between two records may contain unrecorded transfers")
                .help(
                    "record without filters and RAS emulation; -f table, brstack and branches \
                    work with any records",
                )
                .into()
        }
        ReportError::NoStack { number } => {
            no_stack(&format!("snapshot {number} holds no call stack")).into()
        }
        ReportError::NoStacks => no_stack("no snapshot holds a call stack").into(),
        ReportError::NoRecords(snapshots) => no_records(snapshots).into(),
        ReportError::Write(error) => sink.failed(error),
    }
}

fn no_stack(message: &str) -> Diagnostic {
    Diagnostic::new(Code::UnfitRecords, message)
        .note("call stacks need records of RAS emulation, and RASEMU is not set")
        .help(
            "record with control = [\"M\", \"S\", \"U\", \"RASEMU\"] in section [ctr], as in \
            configs/ctr/call-stacks.toml",
        )
}

fn warn_of_odd(ways: u64, talk: &Talk) {
    if ways > 0 {
        let are = if ways == 1 { "is" } else { "are" };
        let ways = count(ways, "way");
        let message = format!("{ways} between consecutive records {are} impossible and left out");
        talk.warning(
            &Diagnostic::new(Code::OddRecords, message)
                .note("they run backwards, through a jump, or over more than 1 MiB")
                .help(
                    "check the program; if only some modes were recorded, transfers in other \
                    modes are missing",
                ),
        );
    }
}

fn cut_stacks(all: u64, cut: u64) -> Diagnostic {
    let stacks = count(all, "stack");
    let message = format!("{cut} of {stacks} may lack their outermost calls");
    Diagnostic::new(Code::OddRecords, message)
        .note(
            "either there were more calls than entries, or calls from before the recording \
            returned; WRPTR does not show which",
        )
        .note("these stacks start with [cut]")
        .help("increase the depth in section [ctr], or record from the start of the program")
}

fn moved_stacks(all: u64, moved: u64) -> Diagnostic {
    let stacks = count(all, "stack");
    let message = format!("in {moved} of {stacks}, a call does not come from the last callee");
    Diagnostic::new(Code::OddRecords, message)
        .note(
            "after a tail call, both functions are in the stack; after longjmp or a stack \
            switch, functions that have already been left remain in it",
        )
        .help("-f table marks these calls")
}

fn no_records(snapshots: u64) -> Diagnostic {
    let message = match snapshots {
        0 => "no records: there are no snapshots".to_owned(),
        1 => "no records: the snapshot is empty".to_owned(),
        n => format!("no records: all {n} snapshots are empty"),
    };
    Diagnostic::new(Code::OddRecords, message)
        .note("nothing was recorded, so there is nothing to report")
        .help(
            "check that recording is enabled for the program's privilege mode, by the program \
            or by control in section [ctr]",
        )
}

fn overlapping(repeat: u64, all: u64) -> Diagnostic {
    let snapshots = count(all, "snapshot");
    let message = format!("{repeat} of {snapshots} repeat records of the previous one");
    Diagnostic::new(Code::OddRecords, message)
        .note("these transfers are counted several times")
        .help(
            "take snapshots less often: raise --every until the buffer fills \
            between two",
        )
}
