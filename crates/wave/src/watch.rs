//! What is looked at, and the samples that a reader gives.

use crate::header::Var;
use crate::{Value, WaveError};

/// An edge of a clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Edge {
    /// From 0 to 1.
    #[default]
    Rising,
    /// From 1 to 0.
    Falling,
}

impl Edge {
    /// Whether a change of the clock is this edge. A change from or to an unknown level is
    /// none.
    pub(crate) fn is(self, before: Option<u64>, after: Option<u64>) -> bool {
        let (low, high) = (Some(0), Some(1));
        match self {
            Edge::Rising => before == low && after == high,
            Edge::Falling => before == high && after == low,
        }
    }
}

/// A signal, or bits of the file's that make one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// Its bits.
    pub width: u32,
    /// Where they come from.
    pub parts: Vec<Part>,
}

/// Bits of a [`Watched`] that come from one signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The signal ([`Var::signals`]).
    pub signal: u64,
    /// The lowest of its bits among those of the watched one.
    pub lsb: u32,
    /// How many.
    pub width: u32,
}

impl Watched {
    /// A whole variable.
    #[must_use]
    pub fn of(var: &Var<'_>) -> Watched {
        let each = match var.signals {
            [] => 0,
            signals => var.width / signals.len() as u32,
        };
        let parts = var.signals.iter().rev().zip(0..);
        let parts = parts.map(|(signal, at)| Part {
            signal: *signal,
            lsb: at * each,
            width: each,
        });
        Watched {
            width: var.width,
            parts: parts.collect(),
        }
    }
}

/// What a [`Reader`](crate::Reader) looks at.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    /// The signals, by their place in this list.
    pub watched: Vec<Watched>,
    /// The place of the clock, which has one bit.
    pub clock: usize,
    /// The edge at which there is a sample.
    pub edge: Edge,
}

/// The signals just before an edge of the clock.
pub struct Sample<'s> {
    pub(crate) time: u64,
    pub(crate) gap: bool,
    pub(crate) values: Values<'s>,
}

/// Where the values are.
pub(crate) enum Values<'s> {
    Plain(&'s [Value]),
    Late(&'s mut dyn Late),
}

/// Values that are read when they are asked for.
pub(crate) trait Late {
    /// The value of a watched signal; `None` if it is none.
    fn value(&mut self, watched: usize) -> Result<Option<&Value>, WaveError>;

    /// As [`Sample::keeps_until`].
    fn next_change(&self, watched: usize) -> u64;

    /// As [`Sample::position`].
    fn position(&self) -> (u64, u64);
}

impl Sample<'_> {
    /// The time of the edge, in the unit of the file.
    #[must_use]
    pub fn time(&self) -> u64 {
        self.time
    }

    /// Whether nothing was recorded for a while before this (`$dumpoff`).
    #[must_use]
    pub fn after_gap(&self) -> bool {
        self.gap
    }

    /// The value of a watched signal just before the edge: what it was given at earlier
    /// times, and not at that of the edge.
    ///
    /// # Errors
    ///
    /// A file that is damaged where the value is.
    #[inline]
    pub fn value(&mut self, watched: usize) -> Result<&Value, WaveError> {
        let none = WaveError::Unsupported("a signal that is not watched");
        match &mut self.values {
            Values::Plain(values) => values.get(watched).ok_or(none),
            Values::Late(late) => late.value(watched)?.ok_or(none),
        }
    }
}

impl Sample<'_> {
    /// How long a signal keeps the value that was asked for at this edge, if that is known: up
    /// to an edge whose [`Sample::position`] has the same part and a number that is not above.
    #[must_use]
    pub fn keeps_until(&self, watched: usize) -> Option<u64> {
        match &self.values {
            Values::Plain(_) => None,
            Values::Late(late) => Some(late.next_change(watched)),
        }
    }

    /// The part of the file that the edge is in, and the number of its time there.
    #[must_use]
    #[inline]
    pub fn position(&self) -> (u64, u64) {
        match &self.values {
            Values::Plain(_) => (0, 0),
            Values::Late(late) => late.position(),
        }
    }
}

/// What takes samples. Its error ends the reading.
pub type Take<'t> = dyn FnMut(&mut Sample<'_>) -> Result<(), WaveError> + 't;

/// The current values of watched signals, for formats that list changes in order of time.
#[derive(Debug)]
pub(crate) struct Board {
    /// Before the current time.
    settled: Vec<Value>,
    /// With the changes of the current time.
    latest: Vec<Value>,
    /// The signals that have changed at the current time.
    changed: Vec<usize>,
    clock: usize,
    edge: Edge,
    /// The clock had an edge at the current time.
    ticked: bool,
    /// Nothing is recorded, or nothing was since the last sample.
    off: bool,
    gap: bool,
}

impl Board {
    pub(crate) fn new(watch: &Watch) -> Board {
        let values = watch
            .watched
            .iter()
            .map(|watched| Value::new(watched.width));
        let settled: Vec<Value> = values.collect();
        Board {
            latest: settled.clone(),
            settled,
            changed: Vec::new(),
            clock: watch.clock,
            edge: watch.edge,
            ticked: false,
            off: false,
            gap: false,
        }
    }

    /// Changes a part of a signal.
    #[inline]
    pub(crate) fn change(&mut self, watched: usize, set: impl FnOnce(&mut Value)) {
        let Some(value) = self.latest.get_mut(watched) else {
            return;
        };
        if watched == self.clock {
            let before = value.get(0, 1);
            set(value);
            self.ticked |= self.edge.is(before, value.get(0, 1));
        } else {
            set(value);
        }
        if self.changed.last() != Some(&watched) {
            self.changed.push(watched);
        }
    }

    /// Recording stops, or continues.
    pub(crate) fn switch(&mut self, off: bool) {
        self.off = off;
        self.gap |= off;
    }

    /// All changes at this time have come.
    #[inline]
    pub(crate) fn step(&mut self, time: u64, take: &mut Take<'_>) -> Result<(), WaveError> {
        if std::mem::take(&mut self.ticked) && !self.off {
            let values = Values::Plain(&self.settled);
            let gap = std::mem::take(&mut self.gap);
            take(&mut Sample { time, gap, values })?;
        }
        for watched in self.changed.drain(..) {
            if let (Some(to), Some(from)) =
                (self.settled.get_mut(watched), self.latest.get(watched))
            {
                to.copy_from(from);
            }
        }
        Ok(())
    }
}
