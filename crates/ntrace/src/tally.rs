//! How much of what a trace is made of.

use alloc::collections::BTreeMap;

use crate::{Bandwidth, Fault, Follower, Layout, Message, Piece, Tcode};

/// Messages and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How many.
    pub messages: u64,
    /// Their bytes together.
    pub bytes: u64,
}

impl Count {
    fn add(&mut self, bytes: u64) {
        self.messages += 1;
        self.bytes += bytes;
    }
}

/// What one source sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// All its messages.
    pub all: Count,
    /// Those with a full address.
    pub syncs: u64,
    /// The most bytes of the stream from one of these to the next.
    pub longest: u64,
    /// Offset of the first and of the last of them.
    pub span: Option<(u64, u64)>,
}

impl Source {
    /// Bytes of the stream from one full address to the next, in the mean;
    /// `None` with fewer than two.
    #[must_use]
    pub fn interval(&self) -> Option<u64> {
        let (first, last) = self.span?;
        (last - first).checked_div(self.syncs - 1)
    }
}

/// Counts messages by type and by source.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    kinds: BTreeMap<Tcode, Count>,
    sources: BTreeMap<u16, Source>,
    faults: BTreeMap<&'static str, (Option<Fault>, Count)>,
    /// Idle bytes.
    pub idle: u64,
    /// Messages with a timestamp.
    pub stamped: u64,
    /// Bytes by time, where there are timestamps.
    pub bandwidth: Bandwidth,
    follower: Follower,
    /// The last time, and bytes since then.
    now: Option<u64>,
    untimed: u64,
}

impl Tally {
    /// Takes the next piece of the stream and its offset.
    pub fn piece(&mut self, at: u64, piece: &Piece<'_>, layout: &Layout) {
        match *piece {
            Piece::Idle(bytes) => self.idle += bytes,
            Piece::Bad(fault, bytes) => self.fault(fault, bytes),
            Piece::Message(bytes) => self.message(at, bytes, layout),
        }
    }

    fn message(&mut self, at: u64, bytes: &[u8], layout: &Layout) {
        let len = bytes.len() as u64;
        let message = match Message::read(bytes, layout) {
            Ok(message) => message,
            Err(fault) => return self.fault(fault, len),
        };
        let tcode = message.body.tcode();
        self.kinds.entry(tcode).or_default().add(len);
        self.stamped += u64::from(message.tstamp.is_some());
        self.time(&message, len);
        let source = self.sources.entry(message.src).or_default();
        source.all.add(len);
        if tcode.is_sync() {
            let (first, last) = source.span.unwrap_or((at, at));
            source.span = Some((first, at));
            source.longest = source.longest.max(at - last);
            source.syncs += 1;
        }
    }

    /// Bytes without a time of their own count with the next that has one.
    fn time(&mut self, message: &Message<'_>, len: u64) {
        self.untimed += len;
        if message.tstamp.is_none() {
            return;
        }
        if let (_, Some(time)) = self.follower.message(message) {
            // Harts may be a little apart.
            let now = self.now.map_or(time, |now| now.max(time));
            self.now = Some(now);
            self.bandwidth.add(now, core::mem::take(&mut self.untimed));
        }
    }

    fn fault(&mut self, fault: Fault, bytes: u64) {
        self.follower.lost();
        let (kind, count) = self.faults.entry(fault.code()).or_default();
        *kind = Some(fault);
        count.add(bytes);
    }

    /// Messages by type, in the order of their codes.
    pub fn kinds(&self) -> impl Iterator<Item = (Tcode, Count)> + '_ {
        self.kinds.iter().map(|(&tcode, &count)| (tcode, count))
    }

    /// Messages by source.
    pub fn sources(&self) -> impl Iterator<Item = (u16, Source)> + '_ {
        self.sources.iter().map(|(&src, &source)| (src, source))
    }

    /// Pieces that are no good messages, by what is wrong with them.
    pub fn faults(&self) -> impl Iterator<Item = (Fault, Count)> + '_ {
        let known = self.faults.values();
        known.filter_map(|&(fault, count)| Some((fault?, count)))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Body, Framer, Sync};
    use alloc::vec;

    #[test]
    fn everything_is_counted_once() {
        let layout = Layout::default();
        let mut bytes = vec![0xff, 0x03];
        let sync = Body::ProgTraceSync {
            sync: Sync(2),
            icnt: 0,
            faddr: 9,
        };
        for body in [sync, Body::DirectBranch { icnt: 3 }, sync] {
            Message::new(0, body).write(&layout, &mut bytes);
        }
        let mut tally = Tally::default();
        let mut framer = Framer::new();
        let mut rest = &bytes[..];
        while let Some((at, piece)) = framer.next_piece(&mut rest) {
            tally.piece(at, &piece, &layout);
        }
        assert_eq!((tally.idle, tally.stamped), (1, 0));
        let bad: u64 = tally.faults().map(|f| f.1.bytes).sum();
        assert_eq!(tally.all().bytes + tally.idle + bad, bytes.len() as u64);
        assert_eq!(tally.all().messages, 3);
        let (src, source) = tally.sources().next().unwrap();
        assert_eq!((src, source.syncs, source.all.messages), (0, 2, 3));
        assert_eq!(source.interval(), Some(source.longest));
        assert_eq!(tally.kinds().count(), 2);
    }
}
