//! Feeds a tandem trace to a verifier: unpacks containers, selects a hart,
//! finds an address.
//!
//! The model is any [`flow::Model`](hartrace_flow::Model); the report is any
//! [`Reporter`].

mod find;
mod log;

pub use find::Search;
pub use hartrace_tandem::container::Parameters;
pub use hartrace_tandem::verify::{Counters, Options, Range, Reporter, Volatile};
pub use hartrace_tandem::{Config, Register, Verifier};
pub use log::{LogStream, Moments, add_absent, records_traps};

use crate::trace::{StreamPiece, Streams};
use hartrace_flow::{HartId, Model};
use hartrace_tandem::Problem;
use hartrace_tandem::container::{MAGIC, MAX_PARAMETERS};
use std::ops::ControlFlow;

/// Bytes before the parameters of a container, with their length at the end of
/// the first sixteen.
const START: usize = 20;

/// Why verifying ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The trace did.
    Whole,
    /// Before the last instruction that was asked for.
    Until,
    /// There were enough mismatches.
    Full,
    /// The trace is damaged.
    Stuck,
    /// By the user.
    Interrupted,
    /// It could not be read any further.
    Lost,
}

impl End {
    /// In a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            End::Whole => "whole",
            End::Until => "until",
            End::Full => "max-mismatches",
            End::Stuck => "damage",
            End::Interrupted => "interrupted",
            End::Lost => "lost",
        }
    }
}

/// The hart whose stream is taken: the one that was asked for, or the only
/// one.
#[derive(Clone, Debug)]
pub struct Choice {
    wanted: Option<u32>,
    /// Streams have hart ids.
    contained: bool,
    seen: Vec<u32>,
}

/// A container without the hart that was asked for, or with several where one
/// was not chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongHart {
    /// The hart that was asked for.
    pub wanted: Option<u32>,
    /// Those there are, as far as it was read.
    pub seen: Vec<u32>,
}

impl Choice {
    /// A hart of a container, or the one of a plain stream.
    #[must_use]
    pub const fn new(wanted: Option<u32>, contained: bool) -> Choice {
        Choice {
            wanted,
            contained,
            seen: Vec::new(),
        }
    }

    /// Whether the bytes of a hart are wanted.
    fn takes(&mut self, hart: HartId) -> Result<bool, WrongHart> {
        if !self.contained {
            return Ok(true);
        }
        if !self.seen.contains(&hart.0) {
            self.seen.push(hart.0);
        }
        match self.wanted {
            Some(wanted) => Ok(wanted == hart.0),
            None if self.seen.len() > 1 => Err(self.wrong()),
            None => Ok(true),
        }
    }

    /// Whether the hart that was asked for was there.
    fn check(&self) -> Result<(), WrongHart> {
        match self.wanted {
            Some(wanted) if self.contained && !self.seen.contains(&wanted) => Err(self.wrong()),
            _ => Ok(()),
        }
    }

    fn wrong(&self) -> WrongHart {
        let mut seen = self.seen.clone();
        seen.sort_unstable();
        WrongHart {
            wanted: self.wanted,
            seen,
        }
    }
}

/// A file with tandem streams on its way through a verifier.
pub struct Check<M> {
    verifier: Verifier<M>,
    streams: Streams,
    choice: Choice,
}

impl<M: Model> Check<M> {
    /// At the start of a file.
    #[must_use]
    pub fn new(verifier: Verifier<M>, choice: Choice) -> Check<M> {
        Check {
            verifier,
            streams: Streams::default(),
            choice,
        }
    }

    /// What was counted so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        self.verifier.counters()
    }

    /// The next bytes; breaks where the verifier does.
    ///
    /// # Errors
    ///
    /// Several harts where none is chosen.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        report: &mut dyn Reporter,
    ) -> Result<ControlFlow<()>, WrongHart> {
        let Check {
            verifier,
            streams,
            choice,
        } = self;
        over(streams.feed(bytes, |piece| pass(piece, verifier, choice, report)))
    }

    /// Nothing follows.
    ///
    /// # Errors
    ///
    /// Several harts where none is chosen.
    pub fn finish(&mut self, report: &mut dyn Reporter) -> Result<ControlFlow<()>, WrongHart> {
        let Check {
            verifier,
            streams,
            choice,
        } = self;
        let flow = over(streams.finish(|piece| pass(piece, verifier, choice, report)))?;
        Ok(match flow {
            ControlFlow::Break(()) => flow,
            ControlFlow::Continue(()) => verifier.finish(report),
        })
    }

    /// Whether the hart that was asked for was there.
    ///
    /// # Errors
    ///
    /// It was not.
    pub fn check_hart(&self) -> Result<(), WrongHart> {
        self.choice.check()
    }
}

/// Gives a piece to the verifier, if it is of the chosen hart.
fn pass<M: Model>(
    piece: StreamPiece<'_>,
    verifier: &mut Verifier<M>,
    choice: &mut Choice,
    report: &mut dyn Reporter,
) -> Result<(), Halt> {
    let flow = match piece {
        StreamPiece::Bytes(hart, bytes) => match choice.takes(hart).map_err(Halt::Hart)? {
            true => verifier.feed(bytes, report),
            false => ControlFlow::Continue(()),
        },
        StreamPiece::Lost(Problem { fault, value, .. }) => verifier.missing(fault, value, report),
    };
    match flow {
        ControlFlow::Break(()) => Err(Halt::Break),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// Why no more is fed.
enum Halt {
    Break,
    Hart(WrongHart),
}

fn over(fed: Result<(), Halt>) -> Result<ControlFlow<()>, WrongHart> {
    match fed {
        Ok(()) => Ok(ControlFlow::Continue(())),
        Err(Halt::Break) => Ok(ControlFlow::Break(())),
        Err(Halt::Hart(wrong)) => Err(wrong),
    }
}

/// Whether the first bytes of a trace say how the others are read: whether it
/// is a container, and with which parameters.
#[must_use]
pub fn is_enough(head: &[u8]) -> bool {
    if head.len() < MAGIC.len() && MAGIC.starts_with(head) {
        return false;
    }
    let Some(Err(_)) = Streams::parameters(head) else {
        return true;
    };
    let length = head.get(12..16).and_then(|bytes| bytes.try_into().ok());
    length.is_some_and(|length| {
        let length = u32::from_le_bytes(length) as usize;
        length > MAX_PARAMETERS || head.len() >= START + length
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hartrace_tandem::container::write_start;

    #[test]
    fn enough_is_known_as_soon_as_it_can_be() {
        assert!(!is_enough(&[]));
        assert!(is_enough(&[1]));
        let mut container = Vec::new();
        write_start(&Parameters::default(), &mut container).unwrap();
        for length in 1..container.len() {
            assert!(!is_enough(&container[..length]), "{length}");
        }
        assert!(is_enough(&container));
        // Wrong parameters do not get better.
        *container.last_mut().unwrap() ^= 1;
        assert!(is_enough(&container));
    }
}
