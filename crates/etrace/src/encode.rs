//! The encoder model: ingress blocks in, packets out (chapter 8).
//!
//! One encoder per hart, each a state machine that takes blocks and needs to
//! know no code. It looks at *units*: the first and the last instruction of a
//! block, which may be one, and the trap it ended with; what lies between tells
//! nothing (8.3). What a packet says depends on the unit before and the unit
//! behind, so each unit is looked at when it comes and again when the next one
//! has come.
//!
//! An indirect jump's target gets an address packet, and so does the last
//! instruction before a trap, before a new mode if branches are to be told, and
//! before the trace stops. Whatever a decoder could not follow otherwise gets a
//! synchronisation packet.
//!
//! Choices the texts leave open:
//!
//! * Trace-on takes effect at the block it comes with, trace-off behind it:
//!   both blocks are traced (2.0, table 4.7). Notify names the last instruction
//!   of its block; where none retired it says nothing.
//! * A jump whose target gets a synchronisation packet is told by its address
//!   first, if the mode stays the same: the target may lie on the way to the
//!   jump, and a decoder would not know that it went round once more. So is the
//!   instruction before a synchronisation if the last packet told the target
//!   of a jump. A change of mode takes a return from a trap, so there it is
//!   only told where such a return led to the target.
//! * A context that changes with `ctype` = 3 is told as a change with
//!   `ctype` = 2 is, but for the address of the last instruction before it,
//!   which is always told (table 4.4). The draft's figure 8.1 has an exception
//!   packet behind it, of an exception that never was. If the new context is at
//!   an address that the old one was just coming to, nobody can tell whether it
//!   did.
//! * `ctype` says nothing while the context stays the same. A change to be
//!   reported imprecisely waits until a packet has room for it.
//! * No resync comes between a constant and the sequentially inferable jump
//!   that goes by it.
//! * A trap whose handler is not traced is told by a packet with `thaddr` = 0
//!   before the trace stops. In the draft, which has no such packets, it is
//!   lost. So is one that nothing retired before: the first of two traps in a
//!   row, and one on the first instruction that is traced is told without its
//!   address. The instructions are all there.
//! * `privilege`, `context` and `time` of a packet with `thaddr` = 0 are those
//!   of the trap it tells.
//! * `tvalepc` (draft) is the address of an illegal instruction as far as the
//!   port knows it: behind the block, or `iaddr` where nothing retired.
//! * `sijump` is ignored for `itype` 13 (2.0, table 4.1), but not for the 6 of
//!   the same return where `itype` has three bits. Decoders are told which it is
//!   ([`Config::sijump_returns`]); chapter 11 infers them all.
//! * While a hart is halted its blocks are the debugger's and are not traced.
//!   A low-power state changes nothing.
//! * When tracing stops at a jump's target, `updiscon` is left as it is and
//!   `qual_status` tells (6.5.1).

use hartrace_flow::encode::{self, Encode};
use hartrace_flow::filter::Filter;
use hartrace_flow::{HartId, Ingress, IngressRun};

use crate::Config;

mod events;
mod hart;
mod out;
mod resync;
mod send;
mod step;
mod unit;

pub use hart::Hart;
pub use hartrace_flow::encode::{Counters, Sink};

/// The encoders of any number of harts, each with its own queue, their packets
/// in one stream. Packets do not say whose they are.
///
/// ```
/// use hartrace_flow::{HartId, Ingress, IngressSink};
/// use hartrace_isa::Xlen;
/// use hartrace_etrace::{Config, Encoder, Version};
///
/// let config = Config::new(Version::V2_0, Xlen::Rv64);
/// let mut encoder = Encoder::new(config, Vec::new()).unwrap();
/// let block = Ingress { iaddr: 0x100, iretire: 8, ilastsize: 1, ..Ingress::default() };
/// encoder.ingress(HartId(0), &block);
/// encoder.finish();
/// assert_eq!(encoder.total().messages, 4);
/// // Enabled; at 0x100 in machine mode; 12 bytes on; ended_rep.
/// let bytes = [0x41, 0x1f, 0x42, 0x73, 0x40, 0x41, 0x1a, 0x41, 0x4f];
/// assert_eq!(encoder.into_sink(), bytes);
/// ```
pub type Encoder<S> = encode::Encoder<Hart, S>;

impl Encode for Hart {
    type Config = Config;

    fn new(config: &Config, filter: Filter, _: HartId) -> Hart {
        Hart::with_filter(config, filter)
    }

    #[inline(always)]
    fn block<S: Sink>(&mut self, config: &Config, block: &Ingress, sink: &mut S) {
        self.take_block(config, block, sink);
    }

    #[inline(always)]
    fn run(&mut self, _: &Config, run: &IngressRun) -> bool {
        self.take_run(run)
    }

    fn finish<S: Sink>(&mut self, config: &Config, sink: &mut S) {
        self.end(config, sink);
    }

    fn counters(&self) -> Counters {
        self.out.counters()
    }
}

#[cfg(test)]
mod tests;
