//! Reads a whole log into an observer.

use super::{Chosen, Damage, LineCount, LogReader};
use crate::input::{Halt, Input, InputError};
use hartrace_flow::HartId;
use hartrace_flow::erase::{Dyn, Erased, Events, Everything, Kind, Source, Steps};
use std::ops::ControlFlow;

/// A log that was read.
pub struct Copied<O> {
    /// What took the steps.
    pub chosen: Chosen<O>,
    /// Lines that could not be read.
    pub damage: Damage,
    /// All lines.
    pub lines: u64,
    /// The log has traps; otherwise they are guessed.
    pub traps: bool,
}

impl<O> Copied<O> {
    /// The same log, seen by `inner`.
    pub fn seen_by<P>(self, inner: P) -> Copied<P> {
        Copied {
            chosen: self.chosen.seen_by(inner),
            damage: self.damage,
            lines: self.lines,
            traps: self.traps,
        }
    }
}

/// What looks after a log while it is read: now and then it gets the harts, whether
/// they are too many, and the number of bytes that are done. A break ends the reading.
pub type Overseer<'a> = dyn FnMut(&[HartId], bool, u64) -> ControlFlow<()> + 'a;

/// A whole log as a source of steps, compiled once for each kind of observer.
pub struct LogSource<'a, 'l> {
    reader: LogReader<'l>,
    input: Input,
    only: Option<HartId>,
    single: bool,
    after: &'a mut Overseer<'a>,
}

impl<'a, 'l> LogSource<'a, 'l> {
    /// The steps of the hart `only`, or of all; `single` outputs have no room for two.
    pub fn new(
        reader: LogReader<'l>,
        input: Input,
        (only, single): (Option<HartId>, bool),
        after: &'a mut Overseer<'a>,
    ) -> LogSource<'a, 'l> {
        LogSource {
            reader,
            input,
            only,
            single,
            after,
        }
    }

    fn copy<K: Kind>(self, out: &mut Dyn<'_>) -> Result<Copied<()>, InputError> {
        let LogSource {
            mut reader, after, ..
        } = self;
        let (mut damage, mut lines) = (Damage::default(), LineCount::default());
        let mut steps = Chosen::new(Erased::<K>::new(out), self.only, self.single);
        let mut done = 0;
        let read: Result<(), Halt> = self.input.chunks(|chunk| {
            reader.feed(chunk, &mut steps, &mut |error| damage.add(error));
            lines.feed(chunk);
            done += chunk.len() as u64;
            match after(steps.harts(), steps.clash(), done) {
                ControlFlow::Continue(()) => Ok(()),
                ControlFlow::Break(()) => Err(Halt::Ended),
            }
        });
        match read {
            Ok(()) => reader.finish(&mut steps, &mut |error| damage.add(error)),
            Err(Halt::Ended) => {}
            Err(Halt::Failed(error)) => return Err(error),
        }
        Ok(Copied {
            chosen: steps.seen_by(()),
            damage,
            lines: reader.edges().unwrap_or(lines.count()),
            traps: reader.has_traps(),
        })
    }
}

impl Source for LogSource<'_, '_> {
    type Output = Result<Copied<()>, InputError>;

    fn events(self, out: &mut Dyn<'_>) -> Self::Output {
        self.copy::<Events>(out)
    }

    fn steps(self, out: &mut Dyn<'_>) -> Self::Output {
        self.copy::<Steps>(out)
    }

    /// A log has single steps: accesses are among their effects.
    fn data(self, out: &mut Dyn<'_>) -> Self::Output {
        self.everything(out)
    }

    fn everything(self, out: &mut Dyn<'_>) -> Self::Output {
        self.copy::<Everything>(out)
    }
}
