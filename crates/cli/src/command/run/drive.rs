//! The main loop of a run, one slice at a time.

use super::recorded::Looks;
use super::streams::Fate;
use crate::failure::Failure;
use crate::progress::RunProgress;
use crate::sink::Sink;
use crate::talk::interrupted;
use crate::terminal::is_left;
use hartrace_capture::output::{OutputError, OutputProblem};
use hartrace_flow::Wants;
use hartrace_flow::erase::Dyn;
use hartrace_hart::{Machine, Stop};
use std::time::{Duration, Instant};

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// By itself, or at the limit.
    Stop(Stop),
    /// By the user, with a signal.
    Interrupted,
    /// By the user, at the terminal of the guest.
    Left,
    /// The reader closed its output.
    Unread,
}

/// What a slice should take.
const SLICE: Duration = Duration::from_millis(100);

/// The least and the most instructions in a slice.
const SLICES: (u64, u64) = (10_000, 50_000_000);

/// Everything a run has to look after.
pub(super) struct Drive<'a> {
    pub(super) machine: &'a mut Machine,
    pub(super) limit: Option<u64>,
    pub(super) sinks: &'a [&'a Sink],
    pub(super) output: &'a Fate,
    pub(super) progress: &'a RunProgress,
    /// Control transfer records of the hart, if they are wanted.
    pub(super) looks: Option<Looks<'a>>,
}

impl Drive<'_> {
    /// Runs until there is a reason to stop, and reports steps to the observer.
    pub(super) fn run(&mut self, wants: Wants, observer: &mut Dyn<'_>) -> Result<End, Failure> {
        let mut slice = 1_000_000;
        let end = loop {
            let begin = Instant::now();
            let done = self.machine.instructions();
            let left = self
                .limit
                .map_or(u64::MAX, |limit| limit.saturating_sub(done));
            if left == 0 {
                break End::Stop(Stop::Limit);
            }
            let stop = self.advance(left.min(slice), wants, observer);
            if let Some(end) = self.look(stop)? {
                break end;
            }
            slice = match begin.elapsed() {
                time if time > SLICE * 2 => (slice / 2).max(SLICES.0),
                time if time < SLICE / 2 => (slice * 2).min(SLICES.1),
                _ => slice,
            };
        };
        observer.finish();
        if let Some(looks) = &mut self.looks {
            looks.finish(self.machine);
        }
        self.progress.give_way();
        Ok(end)
    }

    /// Runs so many instructions, and looks at the hart's records on the
    /// way.
    fn advance(&mut self, insns: u64, wants: Wants, observer: &mut Dyn<'_>) -> Stop {
        let Some(looks) = &mut self.looks else {
            return self.machine.run_any(insns, wants, observer);
        };
        let until = self.machine.instructions().saturating_add(insns);
        loop {
            let left = until.saturating_sub(self.machine.instructions());
            let ahead = looks.ahead(self.machine);
            let stop = self.machine.run_any(left.min(ahead), wants, observer);
            looks.look(self.machine);
            if stop != Stop::Limit || self.machine.instructions() >= until {
                return stop;
            }
        }
    }

    /// What happened in a slice, inside and outside.
    fn look(&mut self, stop: Stop) -> Result<Option<End>, Failure> {
        // Failures are kept where they happen.
        let _ = self.machine.host().finish();
        if let Some(error) = self.output.take_failure() {
            let path = "-".into();
            let problem = OutputProblem::Write(error);
            return Err(OutputError { path, problem }.into());
        }
        for sink in self.sinks.iter().filter(|sink| !sink.is_closed()) {
            sink.check()?;
        }
        if stop != Stop::Limit {
            return Ok(Some(End::Stop(stop)));
        }
        if is_left() {
            return Ok(Some(End::Left));
        }
        if interrupted() {
            return Ok(Some(End::Interrupted));
        }
        if self.is_unread() {
            return Ok(Some(End::Unread));
        }
        self.progress.at(self.machine.instructions());
        Ok(None)
    }

    /// No reader is left for further output: the logs, or else what the
    /// program says.
    fn is_unread(&self) -> bool {
        match self.sinks {
            [] => self.output.is_closed(),
            sinks => sinks.iter().all(|sink| sink.is_closed()),
        }
    }
}
