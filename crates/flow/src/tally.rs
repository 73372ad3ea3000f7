//! Counters for the contents of a trace, shared by all protocols.
//!
//! A protocol defines its kinds of messages, reads them, and adds its own
//! counters ([`Tallied`]).

use alloc::collections::BTreeMap;

use crate::Reason;
use crate::decode::{Framing, Place};

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
}

impl SourceCount {
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
    type Kind: Copy + Ord;
    /// Finds messages.
    type Framer: Framing;
    /// What reading them depends on.
    type Layout;

    /// Counts the next piece of the stream, at this offset.
    fn piece(
        tally: &mut Tally<Self>,
        at: u64,
        piece: &<Self::Framer as Framing>::Piece<'_>,
        layout: &Self::Layout,
    );
}

/// Counts messages by kind and by source.
#[derive(Clone, Debug)]
pub struct Tally<T: Tallied> {
    kinds: BTreeMap<T::Kind, Count>,
    sources: BTreeMap<u16, SourceCount>,
    faults: BTreeMap<&'static str, (Reason, Count)>,
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
        Tally {
            kinds: BTreeMap::new(),
            sources: BTreeMap::new(),
            faults: BTreeMap::new(),
            idle: 0,
            stamped: 0,
            bandwidth: Bandwidth::default(),
            now: None,
            untimed: 0,
            extras: T::default(),
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

    /// Counts a message of this kind and source; `sync` if it has a full
    /// address.
    pub fn message(&mut self, kind: T::Kind, source: u16, Place { at, len }: Place, sync: bool) {
        self.kinds.entry(kind).or_default().add(len);
        let source = self.sources.entry(source).or_default();
        source.all.add(len);
        if sync {
            let (first, last) = source.span.unwrap_or((at, at));
            source.span = Some((first, at));
            source.longest = source.longest.max(at - last);
            source.syncs += 1;
        }
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
    pub fn kinds(&self) -> impl Iterator<Item = (T::Kind, Count)> + '_ {
        self.kinds.iter().map(|(&kind, &count)| (kind, count))
    }

    /// Messages by source.
    pub fn sources(&self) -> impl Iterator<Item = (u16, SourceCount)> + '_ {
        self.sources.iter().map(|(&src, &source)| (src, source))
    }

    /// Pieces that are no good messages, by what is wrong with them.
    pub fn faults(&self) -> impl Iterator<Item = (Reason, Count)> + '_ {
        self.faults.values().copied()
    }

    /// All good messages.
    #[must_use]
    pub fn all(&self) -> Count {
        let mut all = Count::default();
        for count in self.kinds.values() {
            all.messages += count.messages;
            all.bytes += count.bytes;
        }
        all
    }
}
