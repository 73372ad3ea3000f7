//! Reads a whole log into an observer.

use super::{Chosen, Damage, LineCount, LogReader};
use crate::input::{Input, InputError};
use hartrace_flow::Observer;

/// A log that was read to its end.
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

impl LogReader<'_> {
    /// Gives all steps to `chosen`. Now and then `after` gets it, and the number
    /// of bytes that are done.
    ///
    /// # Errors
    ///
    /// A failing read, and whatever `after` returns.
    pub fn copy<O: Observer, E: From<InputError>>(
        mut self,
        input: Input,
        mut chosen: Chosen<O>,
        mut after: impl FnMut(&Chosen<O>, u64) -> Result<(), E>,
    ) -> Result<Copied<O>, E> {
        let (mut damage, mut lines) = (Damage::default(), LineCount::default());
        let mut done = 0;
        input.chunks(|chunk| {
            self.feed(chunk, &mut chosen, &mut |error| damage.add(error));
            lines.feed(chunk);
            done += chunk.len() as u64;
            after(&chosen, done)
        })?;
        self.finish(&mut chosen, &mut |error| damage.add(error));
        Ok(Copied {
            chosen,
            damage,
            lines: lines.count(),
            traps: self.has_traps(),
        })
    }
}
