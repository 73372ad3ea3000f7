//! The encoder model: ingress blocks in, packets out (chapter 8).
//!
//! There is one encoder per hart, a state machine that takes blocks and needs
//! no code. It works on *units*: the first and the last instruction of a block,
//! which may be the same, and the trap that ended it; the instructions between
//! them carry no information (8.3). What a packet reports depends on the
//! previous and the next unit, so each unit is examined when it arrives and
//! again when the next one has arrived.
//!
//! The target of an indirect jump gets an address packet. So does the last
//! instruction before a trap, before a change of mode with branches to report,
//! and before the trace stops. Whatever a decoder could not follow otherwise
//! gets a synchronisation packet.
//!
//! Choices the specifications leave open:
//!
//! * Trace-on takes effect at its own block, trace-off after its own block:
//!   both blocks are traced (2.0, table 4.7). Notify reports the last
//!   instruction of its block; if none retired, nothing.
//! * If the target of a jump gets a synchronisation packet, the address of the
//!   jump's target is reported first, unless the mode changes: the target may
//!   be on the path to the jump, and a decoder could not know that the loop ran
//!   once more. The same holds for the instruction before a synchronisation if
//!   the last packet reported the target of a jump. A change of mode needs a
//!   trap return, so there the address is reported only if such a return led to
//!   the target.
//! * A context change with `ctype` = 3 is reported like one with `ctype` = 2,
//!   except that the address of the last instruction before it is always
//!   reported (table 4.4). The draft's figure 8.1 adds an exception packet, for
//!   an exception that did not occur. If the new context starts at an address
//!   that the old one was about to reach, a decoder cannot know whether the old
//!   one reached it. If a decoder would not notice the change, the trace ends and
//!   starts anew, unless the last instruction is a direct jump or branch that may
//!   have led there.
//! * No resync comes inside a block with the draft's rule (`Exceeded`): after
//!   `updiscon` it must come at the very next instruction.
//! * `ctype` is ignored while the context stays the same. An imprecise change
//!   waits until a packet has room for it.
//! * No resync is inserted between a constant and the sequentially inferable
//!   jump that uses it.
//! * A trap whose handler is not traced is reported by a packet with `thaddr` =
//!   0 before the trace stops. The draft has no such packet, so the trap is
//!   lost. So is a trap before which nothing retired: the first of two
//!   consecutive traps. A trap on the first traced instruction is reported
//!   without its address. No instructions are lost.
//! * `privilege`, `context` and `time` of a packet with `thaddr` = 0 are those
//!   of the trap it reports.
//! * `tvalepc` (draft) is the address of an illegal instruction as far as the
//!   port knows it: the address after the block, or `iaddr` if nothing retired.
//! * `sijump` is ignored for `itype` 13 (2.0, table 4.1), but not for `itype` 6
//!   of the same return when `itype` has three bits. Decoders learn which
//!   applies from [`Config::sijump_returns`]; chapter 11 infers all of them.
//! * While a hart is halted, its blocks belong to the debugger and are not
//!   traced. A low-power state changes nothing.
//! * Implicit return: a return right before a trap is reported like any jump. A
//!   return that does not go where the stack says is not followed by a resync at
//!   once, and if its target gets another synchronisation packet, the trace ends
//!   before it and starts anew: a decoder would take the return for implied.
//!   `docs/etrace-implicit-return.md` has the rest.
//! * Implicit exception: where the handler is not known, a support packet
//!   switches the mode off for the trap packet, and encoder and decoder learn the
//!   address from it.
//! * Data trace: a data packet follows the block of its instruction, and packets of
//!   instruction trace are what they are without it. So all data packets before a
//!   synchronisation packet belong to instructions before it. Only accesses of
//!   instructions that are traced are traced. No resync comes inside a block, nor
//!   between the repetitions of an instruction with several accesses (4.3).
//! * When tracing stops at the target of a jump, `updiscon` is left unchanged
//!   and `qual_status` reports the end (6.5.1).

use hartrace_flow::encode::{self, Encode};
use hartrace_flow::filter::Filter;
use hartrace_flow::{Access, DataIngress, HartId, Ingress, IngressRuns};

use crate::Config;

mod data;
mod events;
mod hart;
mod map;
mod modal;
mod out;
mod prediction;
mod resync;
mod runs;
mod send;
mod step;
mod unit;

pub use hart::Hart;
pub use hartrace_flow::encode::{Counters, Sink};

/// The encoders of any number of harts, each with its own queue, their packets
/// in one stream. Whether packets say whose they are depends on their
/// [`Encapsulation`](crate::Encapsulation).
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

    fn new(config: &Config, filter: Filter, id: HartId) -> Hart {
        Hart::with_filter(config, filter, id)
    }

    #[inline(always)]
    fn block<S: Sink>(&mut self, config: &Config, block: &Ingress, sink: &mut S) {
        self.take_block(config, block, sink);
    }

    #[inline(always)]
    fn runs<S: Sink>(&mut self, config: &Config, runs: IngressRuns<'_>, sink: &mut S) -> usize {
        self.take_runs(config, runs, sink)
    }

    fn data<S: Sink>(&mut self, _: &Config, data: &DataIngress, sink: &mut S) {
        self.take_data(data, sink);
    }

    fn accesses<S: Sink>(&mut self, _: &Config, accesses: &[Access], sink: &mut S) {
        self.take_accesses(accesses, sink);
    }

    fn finish<S: Sink>(&mut self, config: &Config, sink: &mut S) {
        self.end(config, sink);
    }

    fn halfwords(&self) -> u64 {
        self.halfwords
    }

    fn counters(&self) -> Counters {
        self.out.counters()
    }
}

#[cfg(test)]
mod tests;
