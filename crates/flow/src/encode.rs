//! The shell of an encoder: everything around a protocol's state machine.
//!
//! A protocol gives the settings ([`ProtocolConfig`]) and the encoder of one
//! hart ([`Encode`]): blocks in, bytes of messages out. Here are the harts by
//! number ([`Encoder`]), the sink of the bytes ([`Sink`]), what is counted
//! ([`Counters`]) and the queue before the sink ([`Outlet`]).

use alloc::vec::Vec;
use core::fmt::Debug;

use crate::filter::{Filter, FilterConfig};
use crate::{Access, DataIngress, HartId, Ingress, IngressRuns, IngressSink};

mod outlet;

pub use outlet::Outlet;

/// The settings of a protocol's encoder and decoder.
pub trait ProtocolConfig: Clone + Debug {
    /// What is wrong with settings.
    type Error;

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// Settings that contradict each other or are out of range.
    fn validate(&self) -> Result<(), Self::Error>;
}

/// Room for a short message, in bytes.
pub const SHORT: usize = 16;

/// Takes the messages of an encoder, whole ones, in order.
pub trait Sink {
    /// The bytes of one message, framing included.
    fn message(&mut self, bytes: &[u8]);

    /// The same for the first `len` of these bytes, as [`message_at`]. Most messages
    /// are as short; to copy always as many bytes is faster.
    ///
    /// [`message_at`]: Sink::message_at
    #[inline]
    fn short_message_at(&mut self, bytes: &[u8; SHORT], len: usize, time: u64) {
        self.message_at(bytes.get(..len).unwrap_or(bytes), time);
    }

    /// The same with the time at which it enters the queue, in the unit of the
    /// ingress port: an [`Outlet`] calls this until the trace ends. By default the
    /// time is not used.
    #[inline]
    fn message_at(&mut self, bytes: &[u8], time: u64) {
        let _ = time;
        self.message(bytes);
    }

    /// Several messages, one after the other, and how long each is: the same as
    /// [`message_at`](Sink::message_at) for each of them.
    #[inline]
    fn messages_at(&mut self, bytes: &[u8], lens: &[u8], time: u64) {
        let mut rest = bytes;
        for &len in lens {
            let (message, others) = rest.split_at_checked(len.into()).unwrap_or((rest, &[]));
            self.message_at(message, time);
            rest = others;
        }
    }

    /// The message before this call is a synchronisation: it names the instruction of
    /// this hart at an address, before which so many halfwords had retired. By default
    /// this is not used.
    #[inline]
    fn synchronised(&mut self, hart: HartId, address: u64, halfwords: u64) {
        let _ = (hart, address, halfwords);
    }
}

impl Sink for Vec<u8> {
    #[inline]
    fn message(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    #[inline]
    fn short_message_at(&mut self, bytes: &[u8; SHORT], len: usize, time: u64) {
        let _ = time;
        let before = self.len();
        self.extend_from_slice(bytes);
        self.truncate(before + len);
    }

    #[inline]
    fn messages_at(&mut self, bytes: &[u8], _: &[u8], _: u64) {
        self.extend_from_slice(bytes);
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    #[inline]
    fn message(&mut self, bytes: &[u8]) {
        (**self).message(bytes);
    }

    #[inline]
    fn message_at(&mut self, bytes: &[u8], time: u64) {
        (**self).message_at(bytes, time);
    }

    #[inline]
    fn short_message_at(&mut self, bytes: &[u8; SHORT], len: usize, time: u64) {
        (**self).short_message_at(bytes, len, time);
    }

    #[inline]
    fn messages_at(&mut self, bytes: &[u8], lens: &[u8], time: u64) {
        (**self).messages_at(bytes, lens, time);
    }

    #[inline]
    fn synchronised(&mut self, hart: HartId, address: u64, halfwords: u64) {
        (**self).synchronised(hart, address, halfwords);
    }
}

/// What an encoder has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages (packets) sent.
    pub messages: u64,
    /// Their bytes, framing included.
    pub bytes: u64,
    /// Their bytes without framing; equal to `bytes` in a format without any.
    pub payload_bytes: u64,
    /// Messages lost to a full queue.
    pub lost: u64,
    /// How often the queue overflowed.
    pub overflows: u64,
    /// Cycles the hart waited for the queue.
    pub stalled: u64,
}

impl Counters {
    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Counters) -> Counters {
        Counters {
            messages: self.messages + other.messages,
            bytes: self.bytes + other.bytes,
            payload_bytes: self.payload_bytes + other.payload_bytes,
            lost: self.lost + other.lost,
            overflows: self.overflows + other.overflows,
            stalled: self.stalled + other.stalled,
        }
    }
}

/// The encoder of one hart: a protocol's state machine over ingress blocks.
pub trait Encode {
    /// The settings, which all harts share.
    type Config: ProtocolConfig;

    /// The encoder of this hart before its first block.
    fn new(config: &Self::Config, filter: Filter, hart: HartId) -> Self;

    /// One block. Worth `#[inline(always)]`, with the rare cases out of line:
    /// the fields of a block that the caller has just made then stay in
    /// registers.
    fn block<S: Sink>(&mut self, config: &Self::Config, block: &Ingress, sink: &mut S);

    /// As many of these runs as it can take as a whole; as [`IngressSink::runs`].
    #[inline]
    fn runs<S: Sink>(
        &mut self,
        config: &Self::Config,
        runs: IngressRuns<'_>,
        sink: &mut S,
    ) -> usize {
        let _ = (config, runs, sink);
        0
    }

    /// A cycle of the data interface, after the block its instruction retired in.
    #[inline]
    fn data<S: Sink>(&mut self, config: &Self::Config, data: &DataIngress, sink: &mut S) {
        let _ = (config, data, sink);
    }

    /// Data accesses, as [`IngressSink::accesses`].
    fn accesses<S: Sink>(&mut self, config: &Self::Config, accesses: &[Access], sink: &mut S) {
        for access in accesses {
            self.data(config, &DataIngress::unified(access, 0), sink);
        }
    }

    /// No block follows.
    fn finish<S: Sink>(&mut self, config: &Self::Config, sink: &mut S);

    /// What it has done.
    fn counters(&self) -> Counters;

    /// Halfwords that have retired, as [`Sink::synchronised`] counts them.
    fn halfwords(&self) -> u64 {
        0
    }
}

/// The encoders of any number of harts, each with its own state and queue,
/// their messages in one stream.
#[derive(Debug)]
pub struct Encoder<E: Encode, S> {
    config: E::Config,
    /// The filters every hart starts with.
    filter: Filter,
    harts: Vec<(HartId, E)>,
    /// Index of the hart of the last block.
    recent: usize,
    sink: S,
}

impl<E: Encode, S: Sink> Encoder<E, S> {
    /// Encoders with these settings that write to the sink.
    ///
    /// # Errors
    ///
    /// Settings that do not make sense together.
    pub fn new(
        config: E::Config,
        sink: S,
    ) -> Result<Encoder<E, S>, <E::Config as ProtocolConfig>::Error> {
        config.validate()?;
        Ok(Encoder {
            config,
            filter: Filter::new(&FilterConfig::default()),
            harts: Vec::new(),
            recent: 0,
            sink,
        })
    }

    /// Only what these filters let through is traced (trTeInstFilters). To be
    /// called before the first block.
    #[must_use]
    pub fn with_filter(mut self, filter: &FilterConfig) -> Encoder<E, S> {
        self.filter = Filter::new(filter);
        self
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &E::Config {
        &self.config
    }

    /// What the encoder of this hart has done; `None` if there was no such
    /// hart.
    #[must_use]
    pub fn counters(&self, hart: HartId) -> Option<Counters> {
        let (_, hart) = self.harts.iter().find(|(id, _)| *id == hart)?;
        Some(hart.counters())
    }

    /// Halfwords of a hart that have retired, as [`Sink::synchronised`] counts them.
    #[must_use]
    pub fn halfwords(&self, hart: HartId) -> u64 {
        let known = self.harts.iter().find(|(id, _)| *id == hart);
        known.map_or(0, |(_, hart)| hart.halfwords())
    }

    /// What all encoders have done together.
    #[must_use]
    pub fn total(&self) -> Counters {
        let all = self.harts.iter();
        all.fold(Counters::default(), |sum, (_, hart)| {
            sum.plus(hart.counters())
        })
    }

    /// The sink, to read what is in it.
    #[must_use]
    pub fn sink(&self) -> &S {
        &self.sink
    }

    /// The sink, to take out what is in it.
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// The sink.
    pub fn into_sink(self) -> S {
        self.sink
    }

    /// A block of another hart than last time, perhaps a new one.
    #[inline(never)]
    fn other_hart(&mut self, id: HartId, block: &Ingress) {
        let known = self.harts.iter().position(|(known, _)| *known == id);
        self.recent = known.unwrap_or_else(|| {
            let hart = E::new(&self.config, self.filter.clone(), id);
            self.harts.push((id, hart));
            self.harts.len() - 1
        });
        if let Some((_, hart)) = self.harts.get_mut(self.recent) {
            hart.block(&self.config, block, &mut self.sink);
        }
    }
}

impl<E: Encode, S: Sink> IngressSink for Encoder<E, S> {
    #[inline(always)]
    fn ingress(&mut self, id: HartId, block: &Ingress) {
        match self.harts.get_mut(self.recent) {
            Some((recent, hart)) if *recent == id => {
                hart.block(&self.config, block, &mut self.sink);
            }
            _ => self.other_hart(id, block),
        }
    }

    #[inline(always)]
    fn runs(&mut self, id: HartId, runs: IngressRuns<'_>) -> usize {
        match self.harts.get_mut(self.recent) {
            Some((recent, hart)) if *recent == id => hart.runs(&self.config, runs, &mut self.sink),
            _ => 0,
        }
    }

    #[inline]
    fn data(&mut self, id: HartId, data: &DataIngress) {
        if let Some((recent, hart)) = self.harts.get_mut(self.recent)
            && *recent == id
        {
            hart.data(&self.config, data, &mut self.sink);
        } else if let Some((_, hart)) = self.harts.iter_mut().find(|(known, _)| *known == id) {
            hart.data(&self.config, data, &mut self.sink);
        }
    }

    fn accesses(&mut self, id: HartId, accesses: &[Access]) {
        match self.harts.get_mut(self.recent) {
            Some((recent, hart)) if *recent == id => {
                hart.accesses(&self.config, accesses, &mut self.sink);
            }
            _ => {
                for access in accesses {
                    self.data(id, &DataIngress::unified(access, 0));
                }
            }
        }
    }

    fn finish(&mut self) {
        for (_, hart) in &mut self.harts {
            hart.finish(&self.config, &mut self.sink);
        }
    }
}
