//! Counters for the contents of a trace.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use hartrace_flow::Warning;
use hartrace_flow::decode::{Framing as _, Onlooker, Place};
use hartrace_flow::tally::{self, Count, Tallied, TalliedInParts};

use crate::decode::{Glance, NTrace};
use crate::message::quick;
use crate::{Config, Fault, Follower, Framer, Layout, Message, Piece, Tcode};

/// Counts messages by type and by source.
pub type Tally = tally::Tally<Extras>;

/// What only N-Trace has.
#[derive(Clone, Debug, Default)]
pub struct Extras {
    /// The times that timestamps stand for.
    follower: Follower,
    /// Messages of types that the specification does not define: where the first
    /// is, and how many.
    others: BTreeMap<Tcode, (u64, u64)>,
}

impl Extras {
    /// Messages of types that neither the specification nor the settings
    /// define: the first of each fault, and how many.
    #[must_use]
    pub fn others(&self, config: &Config) -> Vec<(Warning, u64)> {
        let mut found: Vec<(Warning, u64)> = Vec::new();
        for (tcode, &(at, count)) in &self.others {
            let Some(fault) = tcode.fault().filter(|_| !config.ignore_tcodes.has(*tcode)) else {
                continue;
            };
            let warning = Warning {
                at,
                reason: fault.reason(tcode.0.into()),
                is_loss: true,
            };
            let mut known = found.iter_mut();
            match known.find(|(known, _)| known.reason.code == fault.code()) {
                Some((first, all)) => {
                    *all += count;
                    if at < first.at {
                        *first = warning;
                    }
                }
                None => found.push((warning, count)),
            }
        }
        found
    }
}

impl Tallied for Extras {
    type Kind = Tcode;
    type Framer = Framer;
    type Layout = Layout;

    #[inline]
    fn number(Tcode(number): Tcode) -> u8 {
        number
    }

    fn piece(tally: &mut Tally, at: u64, piece: &Piece<'_>, layout: &Layout) {
        match *piece {
            Piece::Idle(bytes) => tally.idle += bytes,
            Piece::Bad(bad, bytes) => fault(tally, bad, bytes),
            Piece::Message(bytes) => {
                let len = bytes.len() as u64;
                match Message::read(bytes, layout) {
                    Ok(good) => message(tally, &good, Place { at, len }),
                    Err(bad) => fault(tally, bad, len),
                }
            }
        }
    }

    #[inline(always)]
    fn quick(tally: &mut Tally, at: u64, bytes: &[u8], layout: &Layout) -> Option<usize> {
        let used = usual(tally, bytes, layout);
        if used > 0 {
            return Some(used);
        }
        let (words, _) = quick::whole(bytes)?;
        let (good, len) = quick::read_whole(words, layout)?;
        let place = Place {
            at,
            len: len as u64,
        };
        message(tally, &good, place);
        Some(len)
    }
}

impl TalliedInParts for Extras {
    type State = ();

    fn state(&self) {}

    fn set_state(&mut self, (): &()) {}

    fn append(&mut self, later: Extras) {
        for (tcode, (first, more)) in later.others {
            self.others.entry(tcode).or_insert((first, 0)).1 += more;
        }
    }
}

/// Counts the messages at the front of the bytes that say nothing beyond their type and
/// length. Gives the number of their bytes.
fn usual(tally: &mut Tally, bytes: &[u8], layout: &Layout) -> usize {
    if !quick::is_plain(layout) {
        return 0;
    }
    let mut counts = [Count::default(); quick::KINDS.len()];
    let mut used = 0;
    while let Some(rest) = bytes.get(used..)
        && let Some((kind, len)) = quick::kind(rest).or_else(|| long(rest, layout))
        && let Some(count) = counts.get_mut(kind)
    {
        count.add(len as u64);
        used += len;
    }
    for (tcode, count) in quick::KINDS.into_iter().zip(counts) {
        if count.messages > 0 {
            tally.messages(tcode, 0, count);
        }
    }
    if used > 0 {
        tally.time(used as u64, None);
    }
    used
}

/// As [`quick::kind`] for a message of more than eight bytes.
#[inline(never)]
fn long(bytes: &[u8], layout: &Layout) -> Option<(usize, usize)> {
    let (words, len) = quick::whole(bytes).filter(|(words, _)| words[1] != 0)?;
    quick::read_whole(words, layout)?;
    Some((quick::place(quick::tcode(words))?, len))
}

/// Counts messages while they are decoded, until it is dropped.
#[derive(Debug)]
pub struct Counter<'t> {
    tally: &'t mut Tally,
    layout: Layout,
    /// Plain messages of source 0 that the tally does not have yet, by type.
    counts: [Count; tally::KINDS],
    pending: bool,
}

impl<'t> Counter<'t> {
    /// One for a trace with this layout.
    #[must_use]
    pub fn new(tally: &'t mut Tally, layout: Layout) -> Counter<'t> {
        Counter {
            tally,
            layout,
            counts: [Count::default(); tally::KINDS],
            pending: false,
        }
    }
}

impl Onlooker<NTrace> for Counter<'_> {
    fn piece(&mut self, at: u64, piece: &Piece<'_>) {
        self.flush();
        self.tally.piece(at, piece, &self.layout);
    }

    #[inline(always)]
    fn message(&mut self, glance: Glance) {
        match self.counts.get_mut(usize::from(glance.tcode.0)) {
            Some(count) if glance.src == 0 => {
                count.add(glance.len as u64);
                self.pending = true;
            }
            _ => self.other(glance),
        }
    }

    fn messages(&mut self, at: u64, bytes: &[u8], len: usize) {
        self.flush();
        let mut framer = Framer::new().at(at);
        let bytes = bytes.get(..len).unwrap_or(bytes);
        self.tally.feed(&mut framer, bytes, &self.layout);
    }
}

impl Counter<'_> {
    #[inline(never)]
    fn other(&mut self, Glance { tcode, src, len }: Glance) {
        let mut count = Count::default();
        count.add(len as u64);
        self.tally.messages(tcode, src, count);
        self.tally.time(count.bytes, None);
    }

    fn flush(&mut self) {
        if !core::mem::take(&mut self.pending) {
            return;
        }
        for (kind, count) in (0..).zip(&mut self.counts) {
            let count = core::mem::take(count);
            if count.messages > 0 {
                self.tally.messages(Tcode(kind), 0, count);
                self.tally.time(count.bytes, None);
            }
        }
    }
}

impl Drop for Counter<'_> {
    fn drop(&mut self) {
        self.flush();
    }
}

#[inline]
fn message(tally: &mut Tally, message: &Message<'_>, place: Place) {
    let tcode = message.body.tcode();
    tally.message(tcode, message.src, place, tcode.is_sync());
    match tcode {
        Tcode::PROG_TRACE_CORRELATION => tally.end(message.src),
        _ if tcode.name().is_none() => {
            let (first, count) = tally.extras.others.entry(tcode).or_insert((place.at, 0));
            *first = place.at.min(*first);
            *count += 1;
        }
        _ => {}
    }
    let mut time = None;
    if message.tstamp.is_some() {
        tally.stamped += 1;
        (_, time) = tally.extras.follower.message(message);
    }
    tally.time(place.len, time);
}

fn fault(tally: &mut Tally, fault: Fault, bytes: u64) {
    tally.extras.follower.lost();
    tally.fault(fault.reason(0), bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Body, Btype, Framer, Sync};
    use alloc::vec;
    use hartrace_testkit::{Random, pieces};

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

    /// Streams of several sources, with full addresses, ends, unknown types and damage, in
    /// parts that are counted each for itself: together they are the whole.
    #[test]
    fn parts_add_up() {
        let mut random = Random::new(7);
        let mut layout = Layout::default();
        for round in 0..200 {
            layout.src_bits = [0, 2][round % 2];
            let mut ends = vec![0];
            let mut bytes = Vec::new();
            for _ in 0..60 {
                let icnt = random.bits(12);
                let body = match random.below(8) {
                    0 => Body::ProgTraceSync {
                        sync: Sync(2),
                        icnt,
                        faddr: random.bits(40),
                    },
                    1 => Body::ProgTraceCorrelation {
                        evcode: crate::Evcode(0),
                        icnt,
                        hist: None,
                    },
                    2 => {
                        // Not a message, or one of any type.
                        bytes.extend([(random.draw() as u8) & !3, 0x03]);
                        ends.push(bytes.len());
                        continue;
                    }
                    _ => Body::DirectBranch { icnt },
                };
                Message::new(random.below(1 << layout.src_bits) as u16, body)
                    .write(&layout, &mut bytes);
                ends.push(bytes.len());
            }
            let count = |from: usize, to: usize| {
                let (mut tally, mut framer) = (Tally::default(), Framer::new().at(from as u64));
                tally.feed(&mut framer, &bytes[from..to], &layout);
                tally.finish(&mut framer, &layout);
                tally
            };
            let whole = count(0, bytes.len());
            let mut sum = Tally::default();
            let mut from = 0;
            for end in ends {
                if random.below(4) == 0 || end == bytes.len() {
                    sum.append(count(from, end));
                    from = end;
                }
            }
            assert!(sum.kinds().eq(whole.kinds()));
            assert!(sum.sources().eq(whole.sources()));
            assert!(sum.faults().eq(whole.faults()));
            assert_eq!((sum.idle, sum.stamped), (whole.idle, whole.stamped));
            assert_eq!(sum.extras.others, whole.extras.others);
        }
    }

    /// Messages of all lengths and what is none, whole and in chunks: the fast path
    /// counts what the general one does.
    #[test]
    fn short_messages_are_counted_like_all_others() {
        let layout = Layout::default();
        let mut random = Random::new(4);
        for _ in 0..50 {
            let mut bytes = Vec::new();
            while bytes.len() < 2000 {
                let icnt = random.bits(20);
                let body = match random.below(6) {
                    0 => Body::DirectBranch { icnt },
                    1 => Body::HistFull { hist: icnt | 1 },
                    2 => Body::ProgTraceSync {
                        sync: Sync(2),
                        icnt,
                        faddr: random.bits(40),
                    },
                    3 => {
                        bytes.push(random.draw() as u8);
                        continue;
                    }
                    _ => Body::IndirectBranchHist {
                        btype: Btype::from_bits(0),
                        icnt,
                        uaddr: random.bits(40),
                        hist: random.bits(30) | 1,
                    },
                };
                Message::new(0, body).write(&layout, &mut bytes);
            }
            let (mut plain, mut framer) = (Tally::default(), Framer::new());
            let mut rest = &bytes[..];
            while let Some((at, piece)) = framer.next_piece(&mut rest) {
                plain.piece(at, &piece, &layout);
            }
            plain.finish(&mut framer, &layout);
            let (mut quick, mut framer) = (Tally::default(), Framer::new());
            for chunk in pieces(&bytes, &mut random) {
                quick.feed(&mut framer, chunk, &layout);
            }
            quick.finish(&mut framer, &layout);
            assert!(plain.kinds().eq(quick.kinds()));
            assert!(plain.sources().eq(quick.sources()));
            assert!(plain.faults().eq(quick.faults()));
            assert_eq!(plain.idle, quick.idle);
        }
    }
}
