//! The encoder model: ingress blocks in, messages out.
//!
//! There is one encoder per hart, a state machine that takes blocks and needs
//! no code. The target of a jump or a trap is the address of the next block, so
//! its message waits until that block arrives; everything else is reported at
//! once.
//!
//! Before each block, the encoder sends in this order: the message of the jump
//! before it; a sync message, if one is due and the jump's message did not
//! serve as one; the Ownership messages. Then it counts the instructions of the
//! block and acts on its `itype`. If several reasons for a sync coincide, the
//! strongest is reported: lost trace, a new start, a marker, a full counter,
//! the period.
//!
//! Choices the specifications leave open:
//!
//! * Trace-on takes effect at its own block, trace-off after its own block:
//!   both blocks are traced (E-Trace 2.0, table 4.7).
//! * A marker's `F-ADDR` is the start of its block, and its `I-CNT` ends before
//!   that block.
//! * A change of context is reported whatever `ctype` is.
//! * When tracing stops after a jump and the target is unknown, `I-CNT`
//!   includes the jump and there is no message for it. A taken branch in BTM
//!   gets its message, which needs no address.
//! * While a hart is halted, its blocks belong to the debugger and are not
//!   traced.

use hartrace_flow::encode::{self, Encode};
use hartrace_flow::filter::Filter;
use hartrace_flow::{HartId, Ingress, IngressRuns};

use crate::Config;

mod action;
mod events;
mod hart;
mod out;
mod runs;
mod send;
mod stack;

pub use hart::Hart;
pub use hartrace_flow::encode::{Counters, Sink};

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
pub type Encoder<S> = encode::Encoder<Hart, S>;

impl Encode for Hart {
    type Config = Config;

    fn new(config: &Config, filter: Filter, hart: HartId) -> Hart {
        // As many bits as SRC has.
        let src = u32::from(config.src_id).wrapping_add(hart.0);
        let src = src & ((1 << config.src_bits) - 1);
        Hart::with_source(config, filter, hart, src as u16)
    }

    #[inline(always)]
    fn block<S: Sink>(&mut self, config: &Config, block: &Ingress, sink: &mut S) {
        self.take_block(config, block, sink);
    }

    #[inline(always)]
    fn runs<S: Sink>(&mut self, config: &Config, runs: IngressRuns<'_>, sink: &mut S) -> usize {
        self.take_runs(config, runs, sink)
    }

    fn finish<S: Sink>(&mut self, config: &Config, sink: &mut S) {
        self.end(config, sink);
    }

    fn halfwords(&self) -> u64 {
        self.earlier + self.halfwords + self.icnt
    }

    fn counters(&self) -> Counters {
        self.out.counters()
    }
}

#[cfg(test)]
mod tests;
