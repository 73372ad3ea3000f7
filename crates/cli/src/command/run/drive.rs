//! The main loop of a run, one slice at a time.

use super::recorded::Looks;
use super::streams::Fate;
use crate::failure::Failure;
use crate::progress::RunProgress;
use crate::sink::Sink;
use crate::talk::interrupted;
use hartrace_capture::output::{OutputError, OutputProblem};
use hartrace_capture::trace::WithObserver;
use hartrace_flow::{Effects, HartId, Observer, Step, TrapStep, Wants};
use hartrace_hart::{Machine, Stop};
use std::time::{Duration, Instant};

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// By itself, or at the limit.
    Stop(Stop),
    /// By the user.
    Interrupted,
    /// The reader closed its output.
    Unread,
}

/// Remembers the trap that a row of traps began with: the later ones are its
/// consequences.
#[derive(Debug, Default)]
pub(super) struct Watch {
    pub(super) first: Option<TrapStep>,
    last: Option<TrapStep>,
    /// The trap before `first`, and the time in between.
    before: Option<(TrapStep, u64)>,
}

impl Watch {
    fn trap(&mut self, step: &TrapStep) {
        let Some(last) = self.last.replace(*step) else {
            self.first = Some(*step);
            return;
        };
        let time = step.time.wrapping_sub(last.time);
        let (trap, last_trap) = (step.trap, last.trap);
        if last_trap.handler == trap.epc {
            // The first instruction of the handler traps in turn.
        } else if (last_trap.epc, last_trap.cause) == (trap.epc, trap.cause) {
            // Again, and as long after the last time as it took to get here from
            // the trap before: the way led through the handler only.
            match self.before.take() {
                Some((before, way)) if way == time => self.first = Some(before),
                _ => {}
            }
        } else {
            self.before = Some((last, time));
            self.first = Some(*step);
        }
    }
}

impl Observer for Watch {
    const WANTS: Wants = Wants::EVENTS;

    #[inline]
    fn step(&mut self, _: HartId, step: &Step, _: &Effects) {
        if let Step::Trap(trap) = step {
            self.trap(trap);
        }
    }
}

/// What a slice should take.
const SLICE: Duration = Duration::from_millis(100);

/// The least and the most instructions in a slice.
const SLICES: (u64, u64) = (10_000, 50_000_000);

impl WithObserver for &mut Drive<'_> {
    type Output = Result<End, Failure>;

    fn with<O: Observer>(self, observer: O) -> Result<End, Failure> {
        self.run(observer)
    }
}

/// Everything a run has to look after.
pub(super) struct Drive<'a> {
    pub(super) machine: &'a mut Machine,
    pub(super) limit: Option<u64>,
    pub(super) sinks: &'a [&'a Sink],
    pub(super) output: &'a Fate,
    pub(super) progress: &'a RunProgress,
    pub(super) watch: Watch,
    /// Control transfer records of the hart, if they are wanted.
    pub(super) looks: Option<Looks<'a>>,
}

impl Drive<'_> {
    /// Runs until there is a reason to stop, and reports steps to the observer.
    pub(super) fn run<O: Observer>(&mut self, observer: O) -> Result<End, Failure> {
        let mut observer = (std::mem::take(&mut self.watch), observer);
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
            let stop = self.advance(left.min(slice), &mut observer);
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
        self.watch = observer.0;
        self.progress.give_way();
        Ok(end)
    }

    /// Runs so many instructions, and looks at the hart's records on the
    /// way.
    fn advance<O: Observer>(&mut self, insns: u64, observer: &mut O) -> Stop {
        let Some(looks) = &mut self.looks else {
            return self.machine.run(insns, observer);
        };
        let until = self.machine.instructions().saturating_add(insns);
        loop {
            let left = until.saturating_sub(self.machine.instructions());
            let stop = self
                .machine
                .run(left.min(looks.ahead(self.machine)), observer);
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
