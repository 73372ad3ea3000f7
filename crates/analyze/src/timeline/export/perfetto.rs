//! Perfetto's trace format: messages of Protocol Buffers, `TracePacket`s with
//! `TrackEvent`s. Field numbers are those of `perfetto_trace.proto`.
//!
//! Each track is a sequence of packets of its own, so that its packets are in order of
//! time. Names are written once for each sequence and numbered.

use super::{Arrow, Beginning, Category, Counter, FileTrack, SliceWriter, Timescale};
use crate::protobuf::Message;
use hartrace_flow::HartId;
use rustc_hash::FxHashSet;
use std::io::{self, Write};

/// `Trace.packet`.
const PACKET: u32 = 1;

/// Fields of `TracePacket`.
const TIMESTAMP: u32 = 8;
const SEQUENCE: u32 = 10;
const TRACK_EVENT: u32 = 11;
const INTERNED: u32 = 12;
const FLAGS: u32 = 13;
const DEFAULTS: u32 = 59;
const DESCRIPTOR: u32 = 60;

/// Values of `sequence_flags`.
const CLEARED: u64 = 1;
const NEEDED: u64 = 2;

/// Fields of `TrackEvent`, and values of its `type`.
const CATEGORY: u32 = 3;
const ARGUMENT: u32 = 4;
const TYPE: u32 = 9;
const NAME: u32 = 10;
const TRACK: u32 = 11;
const VALUE: u32 = 44;
const FLOW: u32 = 47;
const LAST_FLOW: u32 = 48;
const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;

/// Fields of `DebugAnnotation`.
const ARGUMENT_NUMBER: u32 = 3;
const ARGUMENT_NAME: u32 = 10;

/// Sequences and tracks: numbers that differ from those of all others.
const HARTS: u64 = 1 << 32;
const COUNTERS: u64 = 2 << 32;

/// The number of the name of a place at which the hart resumes. Those of slices are
/// greater by 2 than the numbers they are given with.
const RESUMED: u64 = 1;

/// Writes Perfetto's format. One unit of time of unknown length, or one instruction, is a
/// nanosecond.
pub struct Perfetto<'w> {
    out: Box<dyn Write + 'w>,
    timescale: Option<Timescale>,
    /// Names that each track has had.
    known: Vec<FxHashSet<u32>>,
    harts: FxHashSet<HartId>,
    counters: u64,
    // Used again for each packet.
    packet: Message,
    inner: Message,
    names: Message,
    whole: Message,
}

impl<'w> Perfetto<'w> {
    /// Writes to `out`, with units of this length.
    #[must_use]
    pub fn new(out: Box<dyn Write + 'w>, timescale: Option<Timescale>) -> Perfetto<'w> {
        Perfetto {
            out,
            timescale,
            known: Vec::new(),
            harts: FxHashSet::default(),
            counters: 0,
            packet: Message::default(),
            inner: Message::default(),
            names: Message::default(),
            whole: Message::default(),
        }
    }

    /// Writes the packet.
    fn send(&mut self) -> io::Result<()> {
        self.whole.0.clear();
        self.whole.bytes(PACKET, &self.packet.0);
        self.packet.0.clear();
        self.out.write_all(&self.whole.0)
    }

    /// A packet that describes a track; `counts` if it is a counter.
    fn describe(
        &mut self,
        (uuid, parent): (u64, Option<u64>),
        name: &str,
        counts: bool,
    ) -> io::Result<()> {
        self.inner.0.clear();
        self.inner.number(1, uuid);
        self.inner.bytes(2, name.as_bytes());
        if let Some(parent) = parent {
            self.inner.number(5, parent);
        }
        if counts {
            self.inner.bytes(8, &[]);
        }
        self.packet.bytes(DESCRIPTOR, &self.inner.0);
        self.packet.number(SEQUENCE, 1);
        self.send()
    }

    /// The track of all of a hart.
    fn hart(&mut self, hart: HartId) -> io::Result<u64> {
        let uuid = HARTS + u64::from(hart.0);
        if self.harts.insert(hart) {
            self.describe((uuid, None), &format!("hart {}", hart.0), false)?;
        }
        Ok(uuid)
    }

    /// What every packet of a track starts with. Number 1 is the sequence of
    /// descriptions.
    fn start(&mut self, track: u32, at: u64) {
        let at = self.nanoseconds(at);
        self.packet.number(TIMESTAMP, at);
        self.packet.number(SEQUENCE, u64::from(track) + 2);
        self.packet.number(FLAGS, NEEDED);
    }

    fn nanoseconds(&self, at: u64) -> u64 {
        self.timescale.map_or(at, |scale| scale.nanoseconds(at))
    }
}

/// A name or a category with its number.
fn interned(names: &mut Message, field: u32, number: u64, name: &str) {
    let mut one = Message::default();
    one.number(1, number);
    one.bytes(2, name.as_bytes());
    names.bytes(field, &one.0);
}

impl SliceWriter for Perfetto<'_> {
    fn track(&mut self, track: &FileTrack<'_>) -> io::Result<()> {
        let parent = self.hart(track.hart)?;
        let (id, name) = (u64::from(track.id), track.name);
        let uuid = id + 1;
        self.describe((uuid, Some(parent)), name, false)?;
        self.known.push(FxHashSet::default());
        // The first packet of the sequence: the track of all others, and categories.
        self.inner.0.clear();
        self.inner.number(TRACK, uuid);
        self.names.0.clear();
        self.names.bytes(TRACK_EVENT, &self.inner.0);
        self.packet.bytes(DEFAULTS, &self.names.0);
        self.names.0.clear();
        for (number, category) in (1..).zip(Category::ALL) {
            interned(&mut self.names, 1, number, category.name());
        }
        interned(&mut self.names, 2, RESUMED, "resumed");
        self.packet.bytes(INTERNED, &self.names.0);
        self.packet.number(SEQUENCE, id + 2);
        self.packet.number(FLAGS, CLEARED | NEEDED);
        self.send()
    }

    fn begin(&mut self, slice: &Beginning<'_>) -> io::Result<()> {
        let (number, name) = slice.name;
        let iid = u64::from(number) + 1 + RESUMED;
        self.start(slice.track, slice.at);
        let known = self.known.get_mut(slice.track as usize);
        if known.is_some_and(|known| known.insert(number)) {
            self.names.0.clear();
            interned(&mut self.names, 2, iid, name);
            self.packet.bytes(INTERNED, &self.names.0);
        }
        self.inner.0.clear();
        self.inner.number(TYPE, BEGIN);
        self.inner.number(NAME, iid);
        self.inner.number(CATEGORY, slice.category as u64 + 1);
        if let Some(latency) = slice.latency {
            let mut argument = Message::default();
            argument.bytes(ARGUMENT_NAME, b"latency");
            argument.number(ARGUMENT_NUMBER, self.nanoseconds(latency));
            self.inner.bytes(ARGUMENT, &argument.0);
        }
        match slice.arrow {
            Arrow::None => {}
            Arrow::From(flow) => self.inner.fixed(FLOW, flow),
            Arrow::To(flow) => self.inner.fixed(LAST_FLOW, flow),
        }
        self.packet.bytes(TRACK_EVENT, &self.inner.0);
        self.send()
    }

    fn end(&mut self, track: u32, at: u64, arrow: Arrow) -> io::Result<()> {
        self.start(track, at);
        self.inner.0.clear();
        self.inner.number(TYPE, END);
        if let Arrow::From(flow) = arrow {
            self.inner.fixed(FLOW, flow);
        }
        self.packet.bytes(TRACK_EVENT, &self.inner.0);
        self.send()
    }

    fn resumed(&mut self, track: u32, at: u64, arrow: u64) -> io::Result<()> {
        self.start(track, at);
        self.inner.0.clear();
        self.inner.number(TYPE, INSTANT);
        self.inner.number(NAME, RESUMED);
        self.inner.number(CATEGORY, Category::Trap as u64 + 1);
        self.inner.fixed(LAST_FLOW, arrow);
        self.packet.bytes(TRACK_EVENT, &self.inner.0);
        self.send()
    }

    fn counter(&mut self, counter: &Counter<'_>) -> io::Result<()> {
        let parent = match counter.hart {
            Some(hart) => Some(self.hart(hart)?),
            None => None,
        };
        let uuid = COUNTERS + self.counters;
        self.counters += 1;
        self.describe((uuid, parent), counter.name, true)?;
        for (at, value) in counter.values {
            let at = self.nanoseconds(*at);
            self.packet.number(TIMESTAMP, at);
            self.packet.number(SEQUENCE, 1);
            self.inner.0.clear();
            self.inner.number(TYPE, COUNTER);
            self.inner.number(TRACK, uuid);
            self.inner.fixed(VALUE, value.to_bits());
            self.packet.bytes(TRACK_EVENT, &self.inner.0);
            self.send()?;
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
