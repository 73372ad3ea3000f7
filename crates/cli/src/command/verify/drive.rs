//! Feeds the trace to the verifier, piece by piece, and judges the result.

use super::source::{LOOK, Source};
use crate::diagnostic::{Code, Diagnostic, Failure, count, unknown_format};
use crate::progress::{Progress, RunProgress};
use crate::talk::{Talk, interrupted};
use hartrace_capture::detect::Kind;
use hartrace_capture::input::{self, Arrival, Input, InputError, Live};
use hartrace_capture::output::Output;
use hartrace_capture::trace::MAX_WHOLE;
use hartrace_capture::verify::{Check, Counters, End, WrongHart};
use hartrace_flow::Model;
use hartrace_print::summary::{rate, verify_speed};
use hartrace_print::verify::Report;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

/// Why a group cannot be checked.
const UNCHECKED: &str = "their pc is unknown, or they report a trap without its cause; \
                         the hart took their state from the trace";

/// Bytes of a file between two looks at the user: about a tenth of a second.
const SLICE: usize = 4 << 20;

/// Everything verifying has to look after.
pub(super) struct Drive<'r, 'a, M> {
    /// The instruction where to begin.
    pub(super) from: u64,
    pub(super) check: Check<M>,
    pub(super) report: &'r mut Report<'a>,
    /// Why a trace that was on its way did not come to its end.
    pub(super) lost: Option<InputError>,
    pub(super) output: Output,
    pub(super) talk: &'r Talk,
}

impl<M: Model> Drive<'_, '_, M> {
    /// Verifies a trace, and says how it went.
    pub(super) fn run(mut self, source: Source) -> Result<(), Failure> {
        let begin = Instant::now();
        let end = match source {
            Source::File(input) => self.file(input)?,
            Source::Live(live, head) => self.live(live, &head)?,
        };
        let time = begin.elapsed();
        self.reached(end)?;
        self.report.conclude(self.check.counters(), end);
        self.write()?;
        self.check
            .check_hart()
            .map_err(|wrong| self.wrong(&wrong))?;
        let Drive {
            check,
            report,
            lost,
            output,
            talk,
            ..
        } = self;
        // The report is there, whatever it says.
        output.finish()?;
        let counters = check.counters();
        talk.summary(&verify_speed(counters.groups, time));
        warn(report, counters, end, talk);
        verdict(report, counters, end, lost, talk)
    }

    /// Fails if the trace ended before the starting point: nothing was
    /// verified. What is damaged has its own verdict.
    fn reached(&self, end: End) -> Result<(), Failure> {
        let all = self.check.counters().instructions();
        let damaged = self.report.problem().is_some();
        if end != End::Whole || self.from < all.max(1) || damaged {
            return Ok(());
        }
        let (from, all) = (self.from, count(all, "instruction"));
        let message = format!("there is no instruction {from}: the trace has {all}");
        Err(Diagnostic::new(Code::BeyondEnd, message)
            .note("instructions are numbered from 0, and --from is the first one verified")
            .into())
    }

    /// A file, as it is in memory.
    fn file(&mut self, input: Input) -> Result<End, Failure> {
        let mut progress = Progress::new(self.talk, input.size());
        let begin = Instant::now();
        let bytes = input.contents(MAX_WHOLE)?;
        let mut seen = 0;
        for piece in bytes.chunks(SLICE) {
            let flow = self.feed(piece)?;
            seen += piece.len() as u64;
            if self.write()? {
                progress.give_way();
            }
            if flow.is_break() {
                return Ok(self.report.why_stopped());
            }
            if interrupted() {
                return Ok(End::Interrupted);
            }
            progress.say(&rate(self.check.counters().groups, begin.elapsed()));
            progress.reach(seen);
        }
        self.finish()
    }

    /// Bytes as they come, the first of them at once.
    fn live(&mut self, mut live: Live, head: &[u8]) -> Result<End, Failure> {
        let progress = RunProgress::new(self.talk, None);
        let mut arrival = Arrival::Bytes(head);
        loop {
            match arrival {
                Arrival::Bytes(bytes) => {
                    let flow = self.feed(bytes)?;
                    if self.write()? {
                        progress.give_way();
                    }
                    if flow.is_break() {
                        return Ok(self.report.why_stopped());
                    }
                    progress.at(self.check.counters().instructions());
                }
                Arrival::Nothing => {}
                Arrival::End if head.is_empty() => {
                    let path = self.report.facts().trace;
                    return Err(unknown_format(path, Kind::Empty, &[], "verify").into());
                }
                Arrival::End => return self.finish(),
            }
            if interrupted() {
                return Ok(End::Interrupted);
            }
            arrival = match live.next(LOOK) {
                Ok(arrival) => arrival,
                // Nothing has arrived that could be reported.
                Err(error) if head.is_empty() => return Err(error.into()),
                Err(error) => {
                    self.lost = Some(error);
                    return Ok(End::Lost);
                }
            };
        }
    }

    /// The next bytes; breaks where the verifier does.
    fn feed(&mut self, bytes: &[u8]) -> Result<ControlFlow<()>, Failure> {
        let fed = self.check.feed(bytes, self.report);
        fed.map_err(|wrong| self.wrong(&wrong))
    }

    fn finish(&mut self) -> Result<End, Failure> {
        let flow = self.check.finish(self.report);
        Ok(match flow.map_err(|wrong| self.wrong(&wrong))? {
            ControlFlow::Break(()) => self.report.why_stopped(),
            ControlFlow::Continue(()) => End::Whole,
        })
    }

    fn wrong(&self, wrong: &WrongHart) -> Failure {
        wrong_hart(self.report.facts().trace, wrong)
    }

    /// Writes pending reports at once; whether there were any.
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

/// A container in which the hart to verify is not clear.
pub(super) fn wrong_hart(path: &Path, WrongHart { wanted, seen }: &WrongHart) -> Failure {
    let seen: Vec<String> = seen.iter().map(u32::to_string).collect();
    let name = input::name(path);
    let message = match wanted {
        Some(hart) => format!("{name} has no hart {hart}"),
        None => format!("{name} has several harts, but only one can be verified"),
    };
    Diagnostic::new(Code::WhichHart, message)
        .note(format!("harts in the trace: {}", seen.join(", ")))
        .help("choose one with --hart N")
        .into()
}

/// What the end means for the command.
fn verdict(
    report: &Report<'_>,
    counters: &Counters,
    end: End,
    lost: Option<InputError>,
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
        // The bytes of a container that can be read are those of a trace.
        let unread = counters.groups == 0 && !problem.fault.code().starts_with("TP04");
        let code = match unread {
            true => Code::NotSynchronised,
            false => Code::DamagedTrace,
        };
        let diagnostic = Diagnostic::new(code, message).named(problem.fault.code());
        let more = report.problems() - 1;
        let diagnostic = match more {
            0 => diagnostic,
            _ => diagnostic.note(format!("and at {} more", count(more, "place"))),
        };
        match end {
            End::Stuck if unread => {
                diagnostic.help("check that section [tandem] and --isa match the trace")
            }
            End::Stuck => diagnostic.help("use --resync to continue after the damage"),
            _ => diagnostic,
        }
    });
    let mut troubles = lost.map(Diagnostic::from).into_iter().chain(damage);
    if counters.mismatches == 0 {
        return match troubles.next_back() {
            Some(worst) => {
                troubles.for_each(|trouble| talk.warning(&trouble));
                Err(worst.into())
            }
            None if end == End::Interrupted => Err(Failure::Reported(Code::Interrupted)),
            None => Ok(()),
        };
    }
    troubles.for_each(|trouble| talk.warning(&trouble));
    let first = report.first().unwrap_or(0);
    let groups = count(counters.mismatches, "group");
    let message = format!("{name} differs from the hart in {groups}");
    let mismatch = Diagnostic::new(Code::Mismatch, message)
        .note(format!("the first is at instruction {first}"));
    Err(match report.is_foreign() {
        true => mismatch.note("the instructions differ: check that this is the traced program"),
        false => mismatch,
    }
    .into())
}

/// Warns about groups that could not be checked, if nothing else is wrong.
fn warn(report: &Report<'_>, counters: &Counters, end: End, talk: &Talk) {
    let clean = counters.mismatches == 0 && report.problems() == 0 && end != End::Lost;
    if counters.unchecked == 0 || !clean {
        return;
    }
    let name = input::name(report.facts().trace);
    let groups = count(counters.unchecked, "group");
    let message = format!("{groups} of {name} could not be checked");
    let warning = Diagnostic::new(Code::Unchecked, message).note(UNCHECKED);
    talk.warning(&warning);
}
