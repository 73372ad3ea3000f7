//! Counters for the contents of a trace, shared by all protocols.
//!
//! A protocol defines its kinds of messages, reads them, and adds its own
//! counters ([`Tallied`]).

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Debug;

use crate::decode::{Framing, Place};
use crate::{Reason, Warning};

mod bandwidth;

pub use bandwidth::Bandwidth;

/// Messages and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How many.
    pub messages: u64,
    /// Their bytes together, framing included.
    pub bytes: u64,
}

impl Count {
    /// One more, of so many bytes.
    pub fn add(&mut self, bytes: u64) {
        self.messages += 1;
        self.bytes += bytes;
    }

    /// More of them.
    pub fn add_all(&mut self, more: Count) {
        self.messages += more.messages;
        self.bytes += more.bytes;
    }
}

/// What one source sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceCount {
    /// All its messages.
    pub all: Count,
    /// Those with a full address, where decoding can begin.
    pub syncs: u64,
    /// The most bytes of the stream from one of these to the next.
    pub longest: u64,
    /// Offset of the first and of the last of them.
    pub span: Option<(u64, u64)>,
    /// A message that ends the trace came after the last of them.
    pub ended: bool,
}

impl SourceCount {
    /// Adds what it sent later.
    fn append(&mut self, later: SourceCount) {
        self.all.add_all(later.all);
        self.syncs += later.syncs;
        self.longest = self.longest.max(later.longest);
        self.ended = later.ended || (self.ended && later.span.is_none());
        self.span = match (self.span, later.span) {
            (Some((first, before)), Some((next, last))) => {
                self.longest = self.longest.max(next - before);
                Some((first, last))
            }
            (span, later) => span.or(later),
        };
    }

    /// Bytes of the stream from one full address to the next, in the mean;
    /// `None` with fewer than two.
    #[must_use]
    pub fn interval(&self) -> Option<u64> {
        let (first, last) = self.span?;
        (last - first).checked_div(self.syncs - 1)
    }
}

/// What a protocol counts beside messages.
pub trait Tallied: Default {
    /// What messages are counted by.
    type Kind: Copy + Debug;
    /// Finds messages.
    type Framer: Framing;
    /// What reading them depends on.
    type Layout;

    /// The number of a kind, less than [`KINDS`]. Kinds are listed in this order.
    fn number(kind: Self::Kind) -> u8;

    /// Counts the next piece of the stream, at this offset.
    fn piece(
        tally: &mut Tally<Self>,
        at: u64,
        piece: &<Self::Framer as Framing>::Piece<'_>,
        layout: &Self::Layout,
    );

    /// Counts short messages at the front of the bytes, which start with a message
    /// at this offset; their length. `None` for all that is not plain. Only speed
    /// depends on it.
    #[inline(always)]
    fn quick(
        tally: &mut Tally<Self>,
        at: u64,
        bytes: &[u8],
        layout: &Self::Layout,
    ) -> Option<usize> {
        let _ = (tally, at, bytes, layout);
        None
    }
}

/// What can be counted in parts of a stream, each for itself.
pub trait TalliedInParts: Tallied {
    /// What messages have said that counting those after them depends on, timestamps aside.
    type State: Clone + Debug + Default + PartialEq + Send;

    /// What they have said so far.
    fn state(&self) -> Self::State;

    /// Goes on after messages that have said this.
    fn set_state(&mut self, state: &Self::State);

    /// Adds what was counted in the part after this one.
    fn append(&mut self, later: Self);
}

/// Kinds of messages that a protocol may have, at most.
pub const KINDS: usize = 64;

/// Counts messages by kind and by source.
#[derive(Clone, Debug)]
pub struct Tally<T: Tallied> {
    /// By the number of their kind.
    kinds: Vec<Option<(T::Kind, Count)>>,
    /// Positions in `counts`.
    sources: BTreeMap<u16, usize>,
    counts: Vec<SourceCount>,
    /// The source of the last message, and its position.
    last: Option<(u16, usize)>,
    faults: BTreeMap<&'static str, (Reason, Count)>,
    warnings: BTreeMap<&'static str, (Warning, u64)>,
    /// Idle bytes.
    pub idle: u64,
    /// Messages with a timestamp.
    pub stamped: u64,
    /// Bytes by time, where there are timestamps.
    pub bandwidth: Bandwidth,
    /// The last time, and bytes since then.
    now: Option<u64>,
    untimed: u64,
    /// What only this protocol has.
    pub extras: T,
}

impl<T: Tallied> Default for Tally<T> {
    fn default() -> Tally<T> {
        Tally::new(T::default())
    }
}

impl<T: Tallied> Tally<T> {
    /// Nothing counted yet; `extras` counts what only this protocol has.
    #[must_use]
    pub fn new(extras: T) -> Tally<T> {
        Tally {
            kinds: vec![None; KINDS],
            sources: BTreeMap::new(),
            counts: Vec::new(),
            last: None,
            faults: BTreeMap::new(),
            warnings: BTreeMap::new(),
            idle: 0,
            stamped: 0,
            bandwidth: Bandwidth::default(),
            now: None,
            untimed: 0,
            extras,
        }
    }
}

impl<T: Tallied> Tally<T> {
    /// Takes the next piece of the stream and its offset.
    pub fn piece(
        &mut self,
        at: u64,
        piece: &<T::Framer as Framing>::Piece<'_>,
        layout: &T::Layout,
    ) {
        T::piece(self, at, piece, layout);
    }

    /// Takes the next bytes of the stream, of which `framer` has seen all before.
    pub fn feed(&mut self, framer: &mut T::Framer, bytes: &[u8], layout: &T::Layout) {
        let mut rest = bytes;
        loop {
            if !framer.is_inside()
                && let Some(len) = T::quick(self, framer.position(), rest, layout)
            {
                framer.pass(len);
                rest = rest.get(len..).unwrap_or_default();
                continue;
            }
            match framer.next_piece(&mut rest) {
                Some((at, piece)) => self.piece(at, &piece, layout),
                None => return,
            }
        }
    }

    /// The stream ends.
    pub fn finish(&mut self, framer: &mut T::Framer, layout: &T::Layout) {
        if let Some((at, piece)) = framer.finish() {
            self.piece(at, &piece, layout);
        }
    }

    /// Counts a message of this kind and source; `sync` if it has a full
    /// address.
    #[inline]
    pub fn message(&mut self, kind: T::Kind, source: u16, Place { at, len }: Place, sync: bool) {
        if let Some(known) = self.kinds.get_mut(usize::from(T::number(kind))) {
            let (_, count) = known.get_or_insert((kind, Count::default()));
            count.add(len);
        }
        let Some(source) = self.source(source) else {
            return;
        };
        source.all.add(len);
        if sync {
            let (first, last) = source.span.unwrap_or((at, at));
            source.span = Some((first, at));
            source.longest = source.longest.max(at - last);
            source.syncs += 1;
            source.ended = false;
        }
    }

    /// Counts messages of this kind and source without a full address.
    pub fn messages(&mut self, kind: T::Kind, source: u16, more: Count) {
        if let Some(known) = self.kinds.get_mut(usize::from(T::number(kind))) {
            let (_, count) = known.get_or_insert((kind, Count::default()));
            count.add_all(more);
        }
        if let Some(source) = self.source(source) {
            source.all.add_all(more);
        }
    }

    /// The trace of this source ends here.
    pub fn end(&mut self, source: u16) {
        if let Some(source) = self.source(source) {
            source.ended = true;
        }
    }

    /// What a source sent; there always is one.
    #[inline]
    fn source(&mut self, number: u16) -> Option<&mut SourceCount> {
        let position = match self.last {
            Some((last, position)) if last == number => position,
            _ => self.other_source(number),
        };
        self.counts.get_mut(position)
    }

    #[cold]
    fn other_source(&mut self, number: u16) -> usize {
        let next = self.counts.len();
        let position = *self.sources.entry(number).or_insert(next);
        if position == next {
            self.counts.push(SourceCount::default());
        }
        self.last = Some((number, position));
        position
    }

    /// Counts something that a reader should know of.
    pub fn warn(&mut self, warning: Warning) {
        let start = (warning, 0);
        let (_, count) = self.warnings.entry(warning.reason.code).or_insert(start);
        *count += 1;
    }

    /// What a reader should know of: the first of each code, and how many.
    pub fn warnings(&self) -> impl Iterator<Item = (Warning, u64)> + '_ {
        self.warnings.values().copied()
    }

    /// So many bytes at this time. Bytes without a time of their own count with
    /// the next that have one.
    pub fn time(&mut self, bytes: u64, time: Option<u64>) {
        self.untimed += bytes;
        if let Some(time) = time {
            // Harts may be a little apart.
            let now = self.now.map_or(time, |now| now.max(time));
            self.now = Some(now);
            self.bandwidth.add(now, core::mem::take(&mut self.untimed));
        }
    }

    /// Counts bytes that are no good message.
    pub fn fault(&mut self, reason: Reason, bytes: u64) {
        let start = (reason, Count::default());
        let (_, count) = self.faults.entry(reason.code).or_insert(start);
        count.add(bytes);
    }

    /// Messages by kind, in the order of their kinds.
    pub fn kinds(&self) -> impl Iterator<Item = (T::Kind, Count)> + use<T> {
        self.kinds.clone().into_iter().flatten()
    }

    /// Messages by source.
    pub fn sources(&self) -> impl Iterator<Item = (u16, SourceCount)> + '_ {
        let count = |&position: &usize| self.counts.get(position).copied();
        self.sources
            .iter()
            .map(move |(&number, position)| (number, count(position).unwrap_or_default()))
    }

    /// Pieces that are no good messages, by what is wrong with them.
    pub fn faults(&self) -> impl Iterator<Item = (Reason, Count)> + '_ {
        self.faults.values().copied()
    }

    /// Adds what was counted in the part of the stream after this one, which began with the
    /// state that this one has now. Bytes are not counted by time.
    pub fn append(&mut self, later: Tally<T>)
    where
        T: TalliedInParts,
    {
        for (kind, more) in later.kinds.iter().flatten() {
            if let Some(known) = self.kinds.get_mut(usize::from(T::number(*kind))) {
                let (_, count) = known.get_or_insert((*kind, Count::default()));
                count.add_all(*more);
            }
        }
        for (number, more) in later.sources() {
            if let Some(source) = self.source(number) {
                source.append(more);
            }
        }
        for (code, (reason, more)) in later.faults {
            let start = (reason, Count::default());
            self.faults.entry(code).or_insert(start).1.add_all(more);
        }
        for (code, (warning, more)) in later.warnings {
            self.warnings.entry(code).or_insert((warning, 0)).1 += more;
        }
        self.idle += later.idle;
        self.stamped += later.stamped;
        self.untimed += later.untimed;
        self.extras.append(later.extras);
    }

    /// All good messages.
    #[must_use]
    pub fn all(&self) -> Count {
        let mut all = Count::default();
        for (_, count) in self.kinds.iter().flatten() {
            all.messages += count.messages;
            all.bytes += count.bytes;
        }
        all
    }
}
