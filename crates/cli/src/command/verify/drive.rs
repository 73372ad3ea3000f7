//! Feeds the trace to the verifier, piece by piece, and judges the result.

use super::source::{LOOK, Source};
use crate::failure::Failure;
use crate::progress::{Progress, RunProgress};
use crate::talk::{Talk, interrupted};
use hartrace_capture::detect::Kind;
use hartrace_capture::input::{Arrival, Input, InputError, Live};
use hartrace_capture::output::Output;
use hartrace_capture::trace::MAX_WHOLE;
use hartrace_capture::verify::{Check, End, LogStream, WrongHart};
use hartrace_flow::Model;
use hartrace_print::diagnostic::log::judge_damage;
use hartrace_print::diagnostic::{Code, Diagnostic, unknown_format, verify};
use hartrace_print::summary::{rate, verify_speed};
use hartrace_print::verify::Report;
use hartrace_print::words::count;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::time::Instant;

/// Bytes of a file between two looks at the user: about a tenth of a second.
const SLICE: usize = 4 << 20;

/// Why no more of a log is read.
enum LogHalt {
    Ended,
    Input(InputError),
    Failed(Failure),
}

impl From<InputError> for LogHalt {
    fn from(error: InputError) -> LogHalt {
        LogHalt::Input(error)
    }
}

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
    pub(super) fn run(
        mut self,
        source: Source,
        stream: Option<LogStream<'_>>,
    ) -> Result<(), Failure> {
        let begin = Instant::now();
        let end = match source {
            Source::File(input) => self.file(input)?,
            Source::Log(_, input) => self.log(input, stream)?,
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
        talk.report(verify::judge(report, counters, end, lost))?;
        match end {
            End::Interrupted => Err(Failure::Reported(Code::Interrupted)),
            _ => Ok(()),
        }
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

    /// A log, chunk by chunk, as the stream that it becomes.
    fn log(&mut self, input: Input, stream: Option<LogStream<'_>>) -> Result<End, Failure> {
        let Some(mut stream) = stream else {
            return Ok(End::Lost);
        };
        let mut progress = Progress::new(self.talk, input.size());
        let begin = Instant::now();
        let (mut bytes, mut seen) = (Vec::new(), 0);
        let mut ended = None;
        let read: Result<(), LogHalt> = input.chunks(|chunk| {
            let read = stream.read(Some(chunk), &mut bytes, self.report.moments());
            read.map_err(|wrong| LogHalt::Failed(self.wrong(&wrong)))?;
            let flow = self.feed(&bytes).map_err(LogHalt::Failed)?;
            seen += chunk.len() as u64;
            if self.write().map_err(LogHalt::Failed)? {
                progress.give_way();
            }
            if flow.is_break() {
                ended = Some(self.report.why_stopped());
            } else if interrupted() {
                ended = Some(End::Interrupted);
            }
            progress.say(&rate(self.check.counters().groups, begin.elapsed()));
            progress.reach(seen);
            ended.map_or(Ok(()), |_| Err(LogHalt::Ended))
        });
        match read {
            Ok(()) | Err(LogHalt::Ended) => {}
            Err(LogHalt::Input(error)) => return Err(error.into()),
            Err(LogHalt::Failed(failure)) => return Err(failure),
        }
        let end = match ended {
            Some(end) => end,
            None => {
                let read = stream.read(None, &mut bytes, self.report.moments());
                read.map_err(|wrong| self.wrong(&wrong))?;
                match self.feed(&bytes)? {
                    ControlFlow::Break(()) => self.report.why_stopped(),
                    ControlFlow::Continue(()) => self.finish()?,
                }
            }
        };
        let (damage, lines) = stream.damage();
        let nothing = self.check.counters().groups == 0;
        let path = self.report.facts().trace;
        self.talk
            .report(judge_damage(path, damage, lines, nothing, false))?;
        Ok(end)
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
        verify::wrong_hart(self.report.facts().trace, wrong).into()
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
