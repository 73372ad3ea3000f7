//! A section of changes.
//!
//! Each signal has a chain of its changes, so nothing has to be put in order: the clock's
//! chain gives the edges, and the chain of another signal is followed up to an edge when
//! its value is asked for. Changes in between are passed over without looking at them.

use super::unpack;
use crate::bytes::Bytes;
use crate::header::Body;
use crate::value::bit_of;
use crate::watch::{Edge, Late, Part, Sample, Take, Values, Watch};
use crate::{Value, WaveError};
use std::sync::Arc;

/// Chains of one section that are unpacked, in bytes.
const MAX_UNPACKED: usize = 1 << 30;

/// There is no further change in the section.
const NEVER: u64 = u64::MAX;

/// The values of bits that are neither 0 nor 1, by the number of their kind.
const LEVELS: &[u8; 8] = b"xzhuwl-?";

/// The watched signals in the current section.
pub(crate) struct Section {
    body: Arc<Body>,
    signals: Vec<Signal>,
    clock: usize,
    edge: Edge,
    /// The clock just before an edge: its chain is read up to it, and with it.
    before_edge: Value,
    /// The index of the time of the current edge.
    edge_index: u64,
    /// Sections so far, with this one.
    number: u64,
    /// Where chains stand in the section, by signal.
    places: Vec<Place>,
    times: Vec<u8>,
    started: bool,
}

/// A watched signal: its value before the current edge, and what changes it.
struct Signal {
    value: Value,
    /// Most signals are one of the file's.
    chain: Chain,
    /// The chains of the others that it is made of.
    more: Vec<Chain>,
}

/// Changes of a signal.
struct Chain {
    part: Part,
    bytes: Vec<u8>,
    /// Bytes that were read of it.
    at: usize,
    /// The number at the start of the next change, and the index of its time.
    head: u64,
    next: u64,
}

/// Where the chain of a signal stands.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// It has none.
    None,
    /// From one byte to another.
    Bytes(u32, u32),
    /// It is that of another signal.
    Same(u32),
}

/// What is wrong with a section; where it is, its reader knows.
type Fault = &'static str;

impl Late for Section {
    #[inline]
    fn value(&mut self, watched: usize) -> Result<Option<&Value>, WaveError> {
        if watched == self.clock {
            return Ok(Some(&self.before_edge));
        }
        let Some(signal) = self.signals.get_mut(watched) else {
            return Ok(None);
        };
        if signal.chain.next < self.edge_index {
            let changed = signal.chain.follow(self.edge_index, &mut signal.value);
            changed.map_err(damaged)?;
        }
        for chain in &mut signal.more {
            let changed = chain.follow(self.edge_index, &mut signal.value);
            changed.map_err(damaged)?;
        }
        Ok(Some(&signal.value))
    }

    #[inline]
    fn position(&self) -> (u64, u64) {
        (self.number, self.edge_index)
    }

    fn next_change(&self, watched: usize) -> u64 {
        let chains = self
            .signals
            .get(watched)
            .into_iter()
            .flat_map(Signal::chains);
        chains.map(|chain| chain.next).min().unwrap_or(NEVER)
    }
}

impl Section {
    pub(super) fn new(body: &Arc<Body>, watch: Watch) -> Result<Section, WaveError> {
        let Body::Fst { lengths } = &**body else {
            return Err(WaveError::Unsupported("a header of another format"));
        };
        let chain = |part: Part| Chain {
            part,
            bytes: Vec::new(),
            at: 0,
            head: 0,
            next: NEVER,
        };
        let known = |part: &Part| {
            let at = usize::try_from(part.signal).ok();
            at.and_then(|at| lengths.get(at)) == Some(&part.width)
        };
        let all = || watch.watched.iter();
        if !all().flat_map(|watched| &watched.parts).all(known) {
            return Err(WaveError::Unsupported("a signal that the file has not"));
        }
        let none = Part {
            signal: u64::MAX,
            lsb: 0,
            width: 0,
        };
        let signals = all().map(|watched| {
            let mut parts = watched.parts.iter().copied();
            Signal {
                value: Value::new(watched.width),
                chain: chain(parts.next().unwrap_or(none)),
                more: parts.map(chain).collect(),
            }
        });
        let mut before_edge = Value::new(1);
        before_edge.set(0, 1, u64::from(watch.edge == Edge::Falling), 0);
        Ok(Section {
            body: Arc::clone(body),
            signals: signals.collect(),
            clock: watch.clock,
            edge: watch.edge,
            before_edge,
            edge_index: 0,
            number: 0,
            places: Vec::new(),
            times: Vec::new(),
            started: false,
        })
    }

    /// Reads a section. `body` is what follows the length of its block, which starts at
    /// `offset`.
    pub(super) fn read(
        &mut self,
        body: &[u8],
        alias_2: bool,
        offset: u64,
        take: &mut Take<'_>,
    ) -> Result<(), WaveError> {
        let place = |error| match error {
            WaveError::Damaged { what, .. } => WaveError::Damaged { what, offset },
            WaveError::TooLarge { what, .. } => WaveError::TooLarge { what, offset },
            error => error,
        };
        self.load(body, alias_2)
            .map_err(damaged)
            .and_then(|()| self.edges(take))
            .and_then(|()| self.close().map_err(damaged))
            .map_err(place)
    }

    /// Gives a sample at every edge of the clock.
    fn edges(&mut self, take: &mut Take<'_>) -> Result<(), WaveError> {
        let times = std::mem::take(&mut self.times);
        let mut clock = Times {
            bytes: Bytes::new(&times),
            time: 0,
            passed: 0,
        };
        let result = loop {
            match self.next_edge() {
                Ok(Some(index)) => self.edge_index = index,
                Ok(None) => break Ok(()),
                Err(fault) => break Err(damaged(fault)),
            }
            let Some(time) = clock.at(self.edge_index) else {
                break Err(damaged("a change without a time"));
            };
            let values = Values::Late(self);
            let gap = false;
            let taken = take(&mut Sample { time, gap, values });
            if taken.is_err() {
                break taken;
            }
        };
        self.times = times;
        result
    }

    /// The index of the time of the next edge of the clock.
    fn next_edge(&mut self) -> Result<Option<u64>, Fault> {
        let Some(Signal {
            value,
            chain: clock,
            ..
        }) = self.signals.get_mut(self.clock)
        else {
            return Ok(None);
        };
        while clock.next != NEVER {
            let (before, index) = (value.get(0, 1), clock.next);
            clock.follow(index + 1, value)?;
            if self.edge.is(before, value.get(0, 1)) {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    /// Follows all chains to their end.
    fn close(&mut self) -> Result<(), Fault> {
        for Signal { value, chain, more } in &mut self.signals {
            chain.follow(NEVER, value)?;
            for chain in more {
                chain.follow(NEVER, value)?;
            }
        }
        Ok(())
    }

    /// Unpacks the times and the chains of a section.
    fn load(&mut self, body: &[u8], alias_2: bool) -> Result<(), Fault> {
        self.number += 1;
        let short = "a section that is too short";
        let mut bytes = Bytes::new(body);
        bytes.take(3 * 8).ok_or(short)?;
        self.frame(&mut bytes)?;
        let signals = bytes.small().ok_or(short)?;
        let chains = bytes.rest();

        let (chains, numbers) = chains
            .len()
            .checked_sub(24)
            .and_then(|at| chains.split_at_checked(at))
            .ok_or(short)?;
        let mut numbers = Bytes::new(numbers);
        let (unpacked, packed) = (numbers.count().ok_or(short)?, numbers.count().ok_or(short)?);
        let at = chains.len().checked_sub(packed).ok_or("the times")?;
        let (chains, times) = chains.split_at_checked(at).ok_or("the times")?;
        match packed == unpacked {
            true => {
                self.times.clear();
                self.times.extend_from_slice(times);
            }
            false => {
                unpack::zlib_into(times, unpacked, &mut self.times).ok_or("the times")?;
            }
        }

        let at = chains.len().checked_sub(8).ok_or(short)?;
        let (chains, length) = chains.split_at_checked(at).ok_or(short)?;
        let length = Bytes::new(length).count().ok_or(short)?;
        let at = chains
            .len()
            .checked_sub(length)
            .ok_or("the table of chains")?;
        let (chains, table) = chains.split_at_checked(at).ok_or("the table of chains")?;
        let Body::Fst { lengths } = &*self.body else {
            return Err(short);
        };
        let signals = signals.min(lengths.len());
        self.places.clear();
        let places = &mut self.places;
        match alias_2 {
            true => table_2(table, signals, chains.len(), places),
            false => table_1(table, signals, chains.len(), places),
        }
        .ok_or("the table of chains")?;
        self.unpack(chains)
    }

    /// The values at the start of a section; those of the first one are not known
    /// otherwise.
    fn frame(&mut self, bytes: &mut Bytes<'_>) -> Result<(), Fault> {
        let fault = "the values at its start";
        let (unpacked, packed) = (bytes.small().ok_or(fault)?, bytes.small().ok_or(fault)?);
        let signals = bytes.small().ok_or(fault)?;
        let packed = bytes.take(packed).ok_or(fault)?;
        if std::mem::replace(&mut self.started, true) {
            return Ok(());
        }
        let frame = match packed.len() == unpacked {
            true => packed.to_vec(),
            false => unpack::zlib(packed, unpacked).ok_or(fault)?,
        };
        let Body::Fst { lengths } = &*self.body else {
            return Err(fault);
        };
        // Where each signal is. Real numbers take as many bytes as they have.
        let mut starts = Vec::with_capacity(lengths.len() + 1);
        let mut at = 0usize;
        for length in lengths.iter().take(signals) {
            starts.push(at);
            at += match *length {
                super::REAL => 8,
                bits => bits as usize,
            };
        }
        for Signal { value, chain, more } in &mut self.signals {
            for Chain { part, .. } in std::iter::once(&*chain).chain(&*more) {
                let start = usize::try_from(part.signal).ok();
                let start = start.and_then(|signal| starts.get(signal));
                let characters = start.and_then(|at| frame.get(*at..at + part.width as usize));
                if let Some(characters) = characters {
                    value.set_characters(part.lsb, part.width, characters);
                }
            }
        }
        Ok(())
    }

    /// Unpacks the chains of watched signals.
    fn unpack(&mut self, section: &[u8]) -> Result<(), Fault> {
        let fault = "a chain of changes";
        let pack = section.first().ok_or(fault)?;
        let mut all = 0usize;
        let chains = self.signals.iter_mut();
        let chains = chains.flat_map(|s| std::iter::once(&mut s.chain).chain(&mut s.more));
        for chain in chains {
            chain.bytes.clear();
            (chain.at, chain.next) = (0, NEVER);
            let signal = usize::try_from(chain.part.signal).map_err(|_| fault)?;
            let place = match self.places.get(signal) {
                Some(Place::Same(other)) => self.places.get(*other as usize),
                place => place,
            };
            let (start, end) = match place {
                Some(Place::Bytes(start, end)) => (*start as usize, *end as usize),
                Some(Place::None) | None => continue,
                Some(Place::Same(_)) => return Err(fault),
            };
            let bytes = section.get(start..end).ok_or(fault)?;
            let mut bytes = Bytes::new(bytes);
            let unpacked = bytes.small().ok_or(fault)?;
            all = all.saturating_add(unpacked);
            if all > MAX_UNPACKED {
                return Err("more changes than fit into memory");
            }
            let packed = bytes.rest();
            match (unpacked, pack) {
                (0, _) => chain.bytes.extend_from_slice(packed),
                (_, b'4') => unpack::lz4_into(packed, unpacked, &mut chain.bytes).ok_or(fault)?,
                (_, b'F') => {
                    unpack::fastlz_into(packed, unpacked, &mut chain.bytes).ok_or(fault)?;
                }
                _ => unpack::zlib_into(packed, unpacked, &mut chain.bytes).ok_or(fault)?,
            }
            chain.next = 0;
            chain.advance()?;
        }
        Ok(())
    }
}

impl Signal {
    fn chains(&self) -> impl Iterator<Item = &Chain> {
        std::iter::once(&self.chain).chain(&self.more)
    }
}

impl Chain {
    /// Reads the start of the next change, whose index is relative to the one before.
    #[inline]
    fn advance(&mut self) -> Result<(), Fault> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if rest.is_empty() {
            self.next = NEVER;
            return Ok(());
        }
        let mut bytes = Bytes::new(rest);
        self.head = bytes.varint().ok_or("a change of a signal")?;
        self.at += bytes.position();
        let since = match (self.part.width, self.head & 1) {
            (1, 0) => self.head >> 2,
            (1, _) => self.head >> 4,
            _ => self.head >> 1,
        };
        let next = self.next.checked_add(since).filter(|next| *next < NEVER);
        self.next = next.ok_or("a change without a time")?;
        Ok(())
    }

    /// Takes all changes before a time.
    #[inline]
    fn follow(&mut self, before: u64, value: &mut Value) -> Result<(), Fault> {
        let mut last = None;
        let Part { lsb, width, .. } = self.part;
        while self.next < before {
            last = Some((self.head, self.at));
            self.at += match (width, self.head & 1) {
                (1, _) => 0,
                (width, 0) => width.div_ceil(8) as usize,
                (width, _) => width as usize,
            };
            self.advance()?;
        }
        let Some((head, at)) = last else {
            return Ok(());
        };
        let bytes = |count: usize| self.bytes.get(at..at + count);
        match (width, head & 1) {
            (1, 0) => value.set(lsb, 1, head >> 1 & 1, 0),
            (1, _) => {
                let level = LEVELS
                    .get((head >> 1 & 7) as usize)
                    .copied()
                    .unwrap_or(b'x');
                let (bit, unknown) = bit_of(level);
                value.set(lsb, 1, bit, unknown);
            }
            (width, 0) => {
                let bytes = bytes(width.div_ceil(8) as usize).ok_or("a value of a signal")?;
                value.set_bytes(lsb, width, bytes);
            }
            (width, _) => {
                let bytes = bytes(width as usize).ok_or("a value of a signal")?;
                value.set_characters(lsb, width, bytes);
            }
        }
        Ok(())
    }
}

/// The times of a section, each as the difference to the one before.
struct Times<'a> {
    bytes: Bytes<'a>,
    time: u64,
    /// How many of them were read.
    passed: u64,
}

impl Times<'_> {
    /// The time at an index, which is not before the last one.
    fn at(&mut self, index: u64) -> Option<u64> {
        while self.passed <= index {
            self.time = self.time.checked_add(self.bytes.varint()?)?;
            self.passed += 1;
        }
        Some(self.time)
    }
}

/// The places of chains, as they are since 2014: differences of places, numbers of signals
/// whose chains are the same, or how many signals have none.
fn table_2(table: &[u8], signals: usize, end: usize, places: &mut Vec<Place>) -> Option<()> {
    let mut bytes = Bytes::new(table);
    let (mut open, mut start, mut same) = (None, 0i64, 0usize);
    while !bytes.is_empty() && places.len() < signals {
        if bytes.rest().first()? & 1 == 0 {
            let none = bytes.small()? >> 1;
            skip(places, none, signals);
            continue;
        }
        let number = bytes.signed()? >> 1;
        if number > 0 {
            start = start.checked_add(number)?;
            begin(places, &mut open, start)?;
            continue;
        }
        if number < 0 {
            same = usize::try_from(number.checked_neg()?).ok()? - 1;
        }
        alias(places, same)?;
    }
    finish(places, open, i64::try_from(end).ok()?)
}

/// The places as they were before.
fn table_1(table: &[u8], signals: usize, end: usize, places: &mut Vec<Place>) -> Option<()> {
    let mut bytes = Bytes::new(table);
    let (mut open, mut start) = (None, 0i64);
    while !bytes.is_empty() && places.len() < signals {
        let number = bytes.varint()?;
        match number {
            0 => {
                let same = bytes.small()?.checked_sub(1)?;
                alias(places, same)?;
            }
            number if number & 1 == 1 => {
                start = start.checked_add(i64::try_from(number >> 1).ok()?)?;
                begin(places, &mut open, start)?;
            }
            number => skip(places, usize::try_from(number >> 1).ok()?, signals),
        }
    }
    finish(places, open, i64::try_from(end).ok()?)
}

/// A chain starts; the one before ends there.
fn begin(places: &mut Vec<Place>, open: &mut Option<usize>, start: i64) -> Option<()> {
    finish(places, open.take(), start)?;
    *open = Some(places.len());
    let start = u32::try_from(start).ok()?;
    places.push(Place::Bytes(start, start));
    Some(())
}

/// A chain ends.
fn finish(places: &mut [Place], open: Option<usize>, end: i64) -> Option<()> {
    if let Some(Place::Bytes(_, to)) = open.and_then(|open| places.get_mut(open)) {
        *to = u32::try_from(end).ok()?;
    }
    Some(())
}

/// A signal has the chain of another.
fn alias(places: &mut Vec<Place>, same: usize) -> Option<()> {
    places.push(Place::Same(u32::try_from(same).ok()?));
    Some(())
}

fn skip(places: &mut Vec<Place>, count: usize, signals: usize) {
    let length = places.len().saturating_add(count).min(signals);
    places.resize(length, Place::None);
}

/// The place is known to the caller.
const fn damaged(what: Fault) -> WaveError {
    WaveError::Damaged { what, offset: 0 }
}
