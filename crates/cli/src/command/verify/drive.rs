//! The trace, piece by piece, through the verifier.

use super::Source;
use super::report::Report;
use crate::diagnostic::{Code, Diagnostic, Failure, count, unknown_format};
use crate::progress::{Progress, RunProgress};
use crate::talk::{Talk, interrupted};
use hartrace_capture::detect::Kind;
use hartrace_capture::input::{self, Arrival, Input};
use hartrace_capture::output::Output;
use hartrace_flow::Model;
use hartrace_tandem::Verifier;
use std::io::Write as _;
use std::time::{Duration, Instant};

/// Why it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The trace did.
    Whole,
    /// In front of the last instruction that was asked for.
    Until,
    /// There were enough mismatches.
    Full,
    /// The trace is damaged.
    Stuck,
    /// By the user.
    Interrupted,
}

impl End {
    pub(super) const fn name(self) -> &'static str {
        match self {
            End::Whole => "whole",
            End::Until => "until",
            End::Full => "max-mismatches",
            End::Stuck => "damage",
            End::Interrupted => "interrupted",
        }
    }
}

/// Bytes of a file between two looks at the user: about a tenth of a second.
const SLICE: usize = 4 << 20;

/// How often waiting looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

/// Everything verifying has to look after.
pub(super) struct Drive<'r, 'a, M> {
    pub(super) verifier: Verifier<M>,
    pub(super) report: &'r mut Report<'a>,
    pub(super) output: Output,
    pub(super) talk: &'r Talk,
}

impl<M: Model> Drive<'_, '_, M> {
    /// Verifies a trace, and says how it went.
    pub(super) fn run(mut self, source: Source) -> Result<(), Failure> {
        let begin = Instant::now();
        let end = match source {
            Source::File(input) => self.file(input)?,
            Source::Live(input) => self.live(input)?,
        };
        let time = begin.elapsed();
        self.report.conclude(self.verifier.counters(), end);
        self.write()?;
        let Drive {
            verifier,
            report,
            output,
            talk,
        } = self;
        // The report is there, whatever it says.
        output.finish()?;
        let counters = verifier.counters();
        talk.summary(&speed(counters.groups, time));
        verdict(report, counters.mismatches, counters.groups, end, talk)
    }

    /// A file, as it is in memory.
    fn file(&mut self, input: Input) -> Result<End, Failure> {
        let mut progress = Progress::new(self.talk, input.size());
        let begin = Instant::now();
        let bytes = input.contents(crate::traces::MAX_WHOLE)?;
        let mut seen = 0;
        for piece in bytes.chunks(SLICE) {
            let flow = self.verifier.feed(piece, self.report);
            seen += piece.len() as u64;
            if self.write()? {
                progress.give_way();
            }
            if flow.is_break() {
                return Ok(self.broken());
            }
            if interrupted() {
                return Ok(End::Interrupted);
            }
            progress.say(&rate(self.verifier.counters().groups, begin.elapsed()));
            progress.reach(seen);
        }
        Ok(self.finish())
    }

    /// Bytes as they come.
    fn live(&mut self, input: Input) -> Result<End, Failure> {
        let path = input.path().to_path_buf();
        let progress = RunProgress::new(self.talk, None);
        let mut live = input.live();
        let mut any = false;
        loop {
            match live.next(LOOK)? {
                Arrival::Bytes(bytes) => {
                    any = true;
                    let flow = self.verifier.feed(bytes, self.report);
                    if self.write()? {
                        progress.give_way();
                    }
                    if flow.is_break() {
                        return Ok(self.broken());
                    }
                    progress.at(self.verifier.counters().instructions());
                }
                Arrival::Nothing => {}
                Arrival::End if !any => {
                    return Err(unknown_format(&path, Kind::Empty, &[], "verify").into());
                }
                Arrival::End => return Ok(self.finish()),
            }
            if interrupted() {
                return Ok(End::Interrupted);
            }
        }
    }

    fn finish(&mut self) -> End {
        match self.verifier.finish(self.report).is_break() {
            true => self.broken(),
            false => End::Whole,
        }
    }

    /// Why the verifier has stopped.
    fn broken(&self) -> End {
        if self.report.is_stuck() {
            End::Stuck
        } else if self.report.is_full() {
            End::Full
        } else {
            End::Until
        }
    }

    /// Writes what there is to tell, at once; whether there was anything.
    fn write(&mut self) -> Result<bool, Failure> {
        let text = self.report.take();
        if text.is_empty() {
            return Ok(false);
        }
        let written = self.output.write_all(text.as_bytes());
        let written = written.and_then(|()| self.output.flush());
        written.map_err(|error| self.output.failed(error))?;
        Ok(true)
    }
}

/// What the end means for the command.
fn verdict(
    report: &Report<'_>,
    mismatches: u64,
    groups: u64,
    end: End,
    talk: &Talk,
) -> Result<(), Failure> {
    let name = input::name(report.facts().trace);
    let damage = report.problem().map(|problem| {
        let message = format!(
            "{name} is damaged: {} ({:#x}) at byte {:#x}, in group {}",
            problem.fault.text(),
            problem.value,
            problem.at,
            problem.group
        );
        let code = match groups {
            0 => Code::NotSynchronised,
            _ => Code::DamagedTrace,
        };
        let diagnostic = Diagnostic::new(code, message).named(problem.fault.code());
        let more = report.problems() - 1;
        let diagnostic = match more {
            0 => diagnostic,
            _ => diagnostic.note(format!("and in {} more", count(more, "place"))),
        };
        match end {
            End::Stuck if groups == 0 => diagnostic
                .help("are these the settings of the trace, in section [tandem], and its --isa?"),
            End::Stuck => diagnostic.help("--resync goes on behind it"),
            _ => diagnostic,
        }
    });
    match (mismatches, damage) {
        (0, None) if end == End::Interrupted => Err(Failure::Told(Code::Interrupted)),
        (0, None) => Ok(()),
        (0, Some(damage)) => Err(damage.into()),
        (_, damage) => {
            damage.iter().for_each(|damage| talk.warning(damage));
            let first = report.first().unwrap_or(0);
            let groups = count(mismatches, "group");
            let message = format!("{name} differs from the hart in {groups}");
            Err(Diagnostic::new(Code::Mismatch, message)
                .note(format!("the first is at instruction {first}"))
                .into())
        }
    }
}

/// `12 345 groups in 0.01 s (12 M/s)`.
fn speed(groups: u64, time: Duration) -> String {
    let text = super::super::run::counted(groups, "group");
    format!(
        "{text} in {:.2} s ({})",
        time.as_secs_f64(),
        rate(groups, time)
    )
}

/// `12.3 M/s`.
fn rate(groups: u64, time: Duration) -> String {
    let rate = groups as f64 / 1e6 / time.as_secs_f64().max(1e-6);
    format!("{rate:.1} M/s")
}
