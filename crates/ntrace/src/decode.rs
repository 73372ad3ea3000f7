//! The decoder: message bytes in, events out.
//!
//! Each source has its own state ([`source`]). A message with a count ends a
//! *stretch* ([`stretch`]): the walk advances that many halfwords through the
//! code, taking the branch outcomes from the history, and must end where the
//! message says. A contradiction makes a gap, and the source waits for its next
//! full address.

mod end;
mod source;
mod stretch;
mod sync;

use core::ops::ControlFlow;

use hartrace_flow::decode::{self, Onlooker, Place, Protocol, Read, Source as _, Sources};
use hartrace_flow::{Consumer, HartId, Rules};

use self::source::Source;
use crate::message::quick;
use crate::{Config, Framer, Layout, Message, Piece, StackKind, Tcode};

/// Reconstructs what harts did from their messages and the program's code.
///
/// ```
/// use hartrace_flow::{Consumer, Event, HartId, Image, SpaceId};
/// use hartrace_isa::{Isa, Xlen};
/// use hartrace_ntrace::{Body, Config, Decoder, Evcode, Message, Sync, Version};
/// use std::ops::ControlFlow;
///
/// struct Count(u32);
/// impl Consumer for Count {
///     fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
///         if let Event::Run(run) = event {
///             self.0 += run.insns;
///         }
///         ControlFlow::Continue(())
///     }
/// }
///
/// // loop: c.nop; c.bnez a0, loop; c.nop
/// let mut image = Image::new();
/// image.add_raw(SpaceId::FIRST, 0x1000, &[0x01, 0x00, 0x7d, 0xfd, 0x01, 0x00], Isa::RV64GC);
/// let config = Config::new(Version::V1_0, Xlen::Rv64);
/// let start = Body::ProgTraceSync { sync: Sync::DEBUG_EXIT, icnt: 0, faddr: 0x1000 >> 1 };
/// // Three times round and one more: 7 halfwords, outcomes 1, 1, 0.
/// let end = Body::ProgTraceCorrelation { evcode: Evcode::DEBUG, icnt: 7, hist: Some(0b1110) };
/// let mut trace = Vec::new();
/// for body in [start, end] {
///     Message::new(0, body).write(&config.layout(), &mut trace);
/// }
///
/// let mut count = Count(0);
/// let mut decoder = Decoder::new(config, &image).unwrap();
/// decoder.feed(&trace, &mut count);
/// decoder.finish(&mut count);
/// assert_eq!(count.0, 7);
/// ```
pub type Decoder<'a> = decode::Decoder<'a, NTrace>;

/// The state of a [`Decoder`] between two messages.
pub type Seam = decode::Seam<NTrace>;

/// What the decoding of a message works with.
type Ctx<'c, 'a, C> = decode::Ctx<'c, 'a, Settings, C>;

/// N-Trace, for the shell of its decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NTrace;

/// What every source needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    config: Config,
    layout: Layout,
}

impl Settings {
    fn hart(&self, src: u16) -> HartId {
        let mask = (1u32 << self.config.src_bits) - 1;
        HartId(u32::from(src).wrapping_sub(u32::from(self.config.src_id)) & mask)
    }
}

/// All there is to count of a short and plain message.
#[derive(Clone, Copy, Debug)]
pub struct Glance {
    /// Its type.
    pub(crate) tcode: Tcode,
    /// Its source.
    pub(crate) src: u16,
    /// Its bytes.
    pub(crate) len: usize,
}

impl Protocol for NTrace {
    type Config = Config;
    type Settings = Settings;
    type Framer = Framer;
    type Message<'m> = Message<'m>;
    type Glance = Glance;
    type Source = Source;

    fn settings(config: &Config) -> Settings {
        Settings {
            config: config.clone(),
            layout: config.layout(),
        }
    }

    fn rules(Settings { config, .. }: &Settings) -> Rules {
        Rules {
            sequential_jumps: config.sequential_jump,
            sequential_returns: config.sequential_jump,
            absolute_jumps: false,
            all_jumps: config.all_jumps,
            nexrv_links: config.stack_kind == StackKind::ReferenceRing,
        }
    }

    #[inline]
    fn read<'m>(settings: &Settings, piece: &'m Piece<'_>) -> Read<Message<'m>> {
        match *piece {
            Piece::Message(bytes) => match Message::read(bytes, &settings.layout) {
                Ok(message) => Read::Message(message.src, message),
                Err(fault) => {
                    let head = Message::head(bytes, &settings.layout);
                    Read::Damage(head.map(|(_, src)| src), fault.reason(0))
                }
            },
            Piece::Idle(_) => Read::Nothing,
            Piece::Bad(fault, _) => Read::Damage(None, fault.reason(0)),
        }
    }

    /// Messages of up to sixteen bytes, until one needs the general path. What repeats at the
    /// same place is not read again.
    #[inline(always)]
    fn several<C: Consumer, L: Onlooker<NTrace>>(
        sources: &mut Sources<'_, NTrace>,
        (at, bytes): (u64, &[u8]),
        (out, onlooker): (&mut C, &mut L),
    ) -> (usize, ControlFlow<()>) {
        // All messages are of source 0.
        let single = sources.settings().layout.src_width() == 0;
        let mut used = 0;
        let mut flow = ControlFlow::Continue(());
        while flow.is_continue()
            && let Some((words, len)) = bytes.get(used..).and_then(quick::whole)
        {
            if single
                && let Some((source, blocks, _)) = sources.with_blocks(0)
                && source.shortcut(words, blocks, out)
            {
                let (tcode, src) = (quick::tcode(words), 0);
                onlooker.message(Glance { tcode, src, len });
                flow = source.track().take_pause();
                used += len;
                continue;
            }
            let Some((message, _)) = quick::read_whole(words, &sources.settings().layout) else {
                break;
            };
            if single && let Some(source) = sources.get(0) {
                source.expect(words);
            }
            let (tcode, src) = (quick::tcode(words), message.src);
            onlooker.message(Glance { tcode, src, len });
            let place = Place {
                at: at + used as u64,
                len: len as u64,
            };
            flow = sources.message(message.src, &message, place, out);
            used += len;
        }
        (used, flow)
    }

    /// After any byte with MSEO = 11, whatever it belongs to.
    fn boundary(_: &Config, bytes: &[u8], from: usize) -> Option<usize> {
        let before = from.checked_sub(1)?;
        let end = bytes.get(before..)?.iter().position(|b| b & 3 == 3)?;
        Some(before + end + 1)
    }
}

#[cfg(test)]
mod tests;
