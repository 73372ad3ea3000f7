//! What a partition of a query decodes.

use crate::limits::Limits;
use hartrace_tables::{Index, Span, Stretch, Table, TraceSource};
use serde::{Deserialize, Serialize};

/// A trace, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// A whole trace, of which nothing is known yet.
    Whole(TraceSource),
    /// A part of a trace, between two synchronisation points.
    Part(Span),
}

/// How much of the traces is decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// Stretches between synchronisation points.
    pub stretches: u64,
    /// All of them.
    pub all_stretches: u64,
    /// Bytes of trace.
    pub bytes: u64,
    /// All of them.
    pub all_bytes: u64,
    /// Traces of which the sizes are not known yet.
    pub whole: u64,
}

/// Divides traces among partitions.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Pieces of about the same size, with their bytes.
    pieces: Vec<(Work, u64)>,
    pub(crate) extent: Extent,
}

impl Plan {
    /// Adds a trace of which nothing is known; its size, or 1.
    pub(crate) fn add_whole(&mut self, source: &TraceSource, bytes: u64) {
        self.extent.whole += 1;
        self.pieces.push((Work::Whole(source.clone()), bytes));
    }

    /// Adds the stretches of a trace that may have wanted rows, in pieces of at most `most`
    /// bytes, but whole stretches.
    pub(crate) fn add(
        &mut self,
        source: &TraceSource,
        (table, index): (Table, &Index),
        limits: &Limits,
        most: u64,
    ) {
        let mut piece: Option<(usize, usize, u64)> = None;
        let stretches = &index.stretches;
        for (at, stretch) in stretches.iter().enumerate() {
            let bytes = stretch.end.saturating_sub(stretch.begin());
            self.extent.all_stretches += 1;
            self.extent.all_bytes += bytes;
            if !limits.allow(table, &stretch.zones, index) {
                self.end(source, stretches, piece.take());
                continue;
            }
            self.extent.stretches += 1;
            self.extent.bytes += bytes;
            piece = match piece {
                Some((first, _, size)) if size + bytes <= most => Some((first, at, size + bytes)),
                full => {
                    self.end(source, stretches, full);
                    Some((at, at, bytes))
                }
            };
        }
        self.end(source, stretches, piece);
    }

    fn end(
        &mut self,
        source: &TraceSource,
        stretches: &[Stretch],
        piece: Option<(usize, usize, u64)>,
    ) {
        let Some((first, last, bytes)) = piece else {
            return;
        };
        let until = match last + 1 < stretches.len() {
            true => stretches.get(last).map(|stretch| stretch.end),
            false => None,
        };
        let span = Span {
            source: source.clone(),
            from: stretches
                .get(first)
                .and_then(|stretch| stretch.stop.clone()),
            until,
        };
        self.pieces.push((Work::Part(span), bytes));
    }

    /// The works of so many partitions: each gets pieces that follow each other, and about the
    /// same number of bytes.
    pub(crate) fn divide(self, partitions: usize) -> Vec<Vec<Work>> {
        let partitions = partitions.clamp(1, self.pieces.len().max(1));
        let total: u64 = self.pieces.iter().map(|(_, bytes)| (*bytes).max(1)).sum();
        let mut all: Vec<Vec<Work>> = vec![Vec::new(); partitions];
        let mut before = 0;
        for (work, bytes) in self.pieces {
            // Where the middle of the piece is among all bytes.
            let middle = u128::from(before) + u128::from(bytes.max(1)) / 2;
            let place = middle * partitions as u128 / u128::from(total.max(1));
            let place = usize::try_from(place).unwrap_or(0).min(partitions - 1);
            if let Some(works) = all.get_mut(place) {
                works.push(work);
            }
            before += bytes.max(1);
        }
        all
    }
}
