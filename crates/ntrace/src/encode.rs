//! The encoder model: ingress blocks in, messages out.
//!
//! One encoder per hart, each a state machine that takes blocks and needs to
//! know no code. What a jump or a trap leads to is the address of the next
//! block, so its message waits until that block comes; everything else is told
//! at once.
//!
//! In front of each block come, in this order: the message of the jump before
//! it; a sync message, if one is due and the jump's did not serve as one; the
//! Ownership messages. Then its instructions are counted and its `itype` is
//! looked at. Where several reasons for a sync coincide, the strongest is
//! told: lost trace, a new start, a marker, a full counter, the period.
//!
//! Choices the texts leave open:
//!
//! * Trace-on takes effect at the block it comes with, trace-off behind it:
//!   both blocks are traced (E-Trace 2.0, table 4.7).
//! * A marker's `F-ADDR` is the start of the block it comes with, whose `I-CNT`
//!   ends before it.
//! * A change of context is told whatever `ctype` says.
//! * When tracing stops behind a jump and the target is not known, `I-CNT`
//!   includes the jump and there is no message for it. A taken branch in BTM
//!   gets its message, which needs no address.
//! * While a hart is halted its blocks are the debugger's and are not traced.

use alloc::vec::Vec;

use hartrace_flow::filter::{Filter, FilterConfig};
use hartrace_flow::{HartId, Ingress, IngressSink};

use crate::{Config, ConfigError};

mod action;
mod events;
mod hart;
mod out;
mod queue;
mod send;
mod stack;

use hart::Hart;

/// Takes the messages of an encoder, whole ones, in order.
pub trait Sink {
    /// The bytes of one message.
    fn message(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    #[inline]
    fn message(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    #[inline]
    fn message(&mut self, bytes: &[u8]) {
        (**self).message(bytes);
    }
}

/// What an encoder has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages sent.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Messages lost to a full queue.
    pub lost: u64,
    /// How often the queue overflowed.
    pub overflows: u64,
    /// Cycles the hart waited for the queue.
    pub stalled: u64,
}

impl Counters {
    const fn plus(self, other: Counters) -> Counters {
        Counters {
            messages: self.messages + other.messages,
            bytes: self.bytes + other.bytes,
            lost: self.lost + other.lost,
            overflows: self.overflows + other.overflows,
            stalled: self.stalled + other.stalled,
        }
    }
}

/// The encoders of any number of harts, their messages in one stream. Hart n
/// sends as `SRC` = [`Config::src_id`] + n and has its own queue.
///
/// ```
/// use hartrace_flow::{HartId, Ingress, IngressSink};
/// use hartrace_isa::Xlen;
/// use hartrace_ntrace::{Config, Encoder, Version};
///
/// let config = Config::new(Version::V1_0, Xlen::Rv64);
/// let mut encoder = Encoder::new(config, Vec::new()).unwrap();
/// let block = Ingress { iaddr: 0x100, iretire: 8, ilastsize: 1, ..Ingress::default() };
/// encoder.ingress(HartId(0), &block);
/// encoder.finish();
/// assert_eq!(encoder.total().messages, 2);
/// // ProgTraceSync (SYNC = 3, F-ADDR = 0x80), ProgTraceCorrelation (EVCODE = 4).
/// assert_eq!(encoder.into_sink(), [0x24, 0x0d, 0x00, 0x0b, 0x84, 0x50, 0x21, 0x07]);
/// ```
#[derive(Debug)]
pub struct Encoder<S> {
    config: Config,
    /// The filters every hart starts with.
    filter: Filter,
    harts: Vec<(HartId, Hart)>,
    /// Index of the hart that came last.
    recent: usize,
    sink: S,
}

impl<S: Sink> Encoder<S> {
    /// Encoders with these settings in front of the sink.
    ///
    /// # Errors
    ///
    /// Settings that do not make sense together.
    pub fn new(config: Config, sink: S) -> Result<Encoder<S>, ConfigError> {
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
    pub fn with_filter(mut self, filter: &FilterConfig) -> Encoder<S> {
        self.filter = Filter::new(filter);
        self
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What the encoder of this hart has done; `None` if there was no such
    /// hart.
    #[must_use]
    pub fn counters(&self, hart: HartId) -> Option<Counters> {
        let (_, hart) = self.harts.iter().find(|(id, _)| *id == hart)?;
        Some(hart.out.counters)
    }

    /// What all encoders have done together.
    #[must_use]
    pub fn total(&self) -> Counters {
        self.harts
            .iter()
            .fold(Counters::default(), |sum, (_, hart)| {
                sum.plus(hart.out.counters)
            })
    }

    /// The sink, to read what is in it.
    #[must_use]
    pub fn sink(&self) -> &S {
        &self.sink
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
            // As many bits as SRC has.
            let src = u32::from(self.config.src_id).wrapping_add(id.0);
            let src = src & ((1 << self.config.src_bits) - 1);
            let hart = Hart::new(&self.config, self.filter.clone(), src as u16);
            self.harts.push((id, hart));
            self.harts.len() - 1
        });
        if let Some((_, hart)) = self.harts.get_mut(self.recent) {
            hart.block(&self.config, block, &mut self.sink);
        }
    }
}

impl<S: Sink> IngressSink for Encoder<S> {
    #[inline(always)]
    fn ingress(&mut self, id: HartId, block: &Ingress) {
        match self.harts.get_mut(self.recent) {
            Some((recent, hart)) if *recent == id => {
                hart.block(&self.config, block, &mut self.sink);
            }
            _ => self.other_hart(id, block),
        }
    }

    fn finish(&mut self) {
        for (_, hart) in &mut self.harts {
            hart.finish(&self.config, &mut self.sink);
        }
    }
}

#[cfg(test)]
mod tests;
