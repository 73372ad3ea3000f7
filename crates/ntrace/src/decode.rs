//! The decoder: message bytes in, events out.
//!
//! Each source has a state of its own ([`source`]). A message with a count
//! ends a *stretch* ([`stretch`]): the walk goes that many halfwords through
//! the code, with the branch outcomes of the history, and must end where the
//! message says. Whatever does not fit makes a gap, and the source waits for
//! its next full address.

mod source;
mod stretch;
mod sync;
mod time;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::ControlFlow;

use hartrace_flow::{Blocks, Consumer, HartId, Image, Rules, SpaceId};

use self::source::{Source, State};
use crate::message::quick::{self, WORD};
use crate::{Config, ConfigError, Fault, Framer, Layout, Message, Piece, StackKind, Sync};

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
#[derive(Debug)]
pub struct Decoder<'a> {
    framer: Framer,
    harts: Harts<'a>,
}

/// Everything behind the framing.
#[derive(Debug)]
struct Harts<'a> {
    settings: Settings,
    blocks: Blocks<'a>,
    /// By `SRC`, grown as they appear.
    sources: Vec<Option<Box<Source>>>,
    /// Bytes outside any message before the first source appeared.
    stray: Option<Stray>,
}

/// Bytes that were no message, and when it was first noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stray {
    at: u64,
    fault: Fault,
    bytes: u64,
}

/// What every source needs to know.
#[derive(Clone, Debug)]
struct Settings {
    config: Config,
    layout: Layout,
}

impl Settings {
    fn hart(&self, src: u16) -> HartId {
        let mask = (1u32 << self.config.src_bits) - 1;
        HartId(u32::from(src).wrapping_sub(u32::from(self.config.src_id)) & mask)
    }
}

impl<'a> Decoder<'a> {
    /// A decoder at the start of a stream, or in the middle: it begins with
    /// the first full address of each source.
    ///
    /// # Errors
    ///
    /// Settings that do not make sense together.
    pub fn new(config: Config, image: &'a Image) -> Result<Decoder<'a>, ConfigError> {
        config.validate()?;
        Ok(Decoder::with_valid(config, image))
    }

    /// Another decoder with the same settings and code, at the start of a
    /// stream.
    #[must_use]
    pub fn another(&self) -> Decoder<'a> {
        Decoder::with_valid(
            self.harts.settings.config.clone(),
            self.harts.blocks.image(),
        )
    }

    fn with_valid(config: Config, image: &'a Image) -> Decoder<'a> {
        let rules = Rules {
            sequential_jumps: config.sequential_jump,
            sequential_returns: config.sequential_jump,
            absolute_jumps: false,
            all_jumps: config.all_jumps,
            nexrv_links: config.stack_kind == StackKind::ReferenceRing,
        };
        let layout = config.layout();
        Decoder {
            framer: Framer::new(),
            harts: Harts {
                settings: Settings { config, layout },
                blocks: Blocks::new(image, rules),
                sources: Vec::new(),
                stray: None,
            },
        }
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.harts.settings.config
    }

    /// Offset in the stream of the next byte.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.framer.position()
    }

    /// Decodes the next bytes of the stream. Gives the number of bytes used:
    /// all of them, or fewer when the consumer asked for a pause; then go on
    /// with the rest.
    pub fn feed<C: Consumer>(&mut self, bytes: &[u8], out: &mut C) -> usize {
        let mut rest = bytes;
        loop {
            let flow = match self.short(&mut rest, out) {
                Some(flow) => flow,
                None => match self.framer.next_piece(&mut rest) {
                    Some((at, piece)) => self.harts.piece(at, piece, out),
                    None => break,
                },
            };
            if flow.is_break() {
                break;
            }
        }
        bytes.len() - rest.len()
    }

    /// The stream ends here.
    pub fn finish<C: Consumer>(&mut self, out: &mut C) {
        if let Some((at, Piece::Bad(fault, len))) = self.framer.finish() {
            self.harts.nobodys(fault, (at, len));
        }
        for source in self.harts.sources.iter_mut().flatten() {
            source.finish(out);
        }
        if let Some(stray) = self.harts.stray.take() {
            // Nothing was ever synchronised.
            let mut source = Source::new(&self.harts.settings, self.harts.settings.hart(0));
            source.lose(stray.fault, 0, stray.at, stray.bytes);
            source.finish(out);
        }
    }

    /// A short message at the front of the bytes, if there is one.
    #[inline(always)]
    fn short<C: Consumer>(&mut self, bytes: &mut &[u8], out: &mut C) -> Option<ControlFlow<()>> {
        let (word, _) = bytes.split_first_chunk::<WORD>()?;
        if self.framer.is_inside() {
            return None;
        }
        let word = u64::from_le_bytes(*word);
        let (message, len) = quick::read(word, &self.harts.settings.layout)?;
        let at = self.framer.position();
        self.framer.pass(len);
        *bytes = bytes.get(len..).unwrap_or_default();
        Some(self.harts.message(&message, (at, len as u64), out))
    }

    /// What the rest of the decoding depends on, to be compared between
    /// decoders and to go on from.
    #[must_use]
    pub fn seam(&self) -> Seam {
        let sources = self.harts.sources.iter();
        Seam {
            at: self.framer.position(),
            inside: self.framer.is_inside(),
            stray: self.harts.stray,
            sources: sources
                .map(|s| s.as_ref().map(|s| s.state(&self.harts.blocks)))
                .collect(),
        }
    }

    /// Goes on from where another decoder of the same stream was; its framing
    /// must have been between two messages.
    pub fn resume(&mut self, seam: &Seam) {
        self.framer = Framer::new().at(seam.at);
        self.harts.stray = seam.stray;
        self.harts.sources.clear();
        for (src, state) in seam.sources.iter().enumerate() {
            let source = state.as_ref().map(|state| {
                let hart = self.harts.settings.hart(src as u16);
                let mut source = Source::new(&self.harts.settings, hart);
                source.set_state(state, &mut self.harts.blocks);
                Box::new(source)
            });
            self.harts.sources.push(source);
        }
    }

    /// Forgets everything but the code, and begins at this offset of the
    /// stream: its start, or right behind a byte with MSEO = 11.
    pub fn restart(&mut self, offset: u64) {
        self.framer = Framer::new().at(offset);
        self.harts.stray = None;
        self.harts.sources.clear();
    }

    /// Whether every source that has sent anything has given a full address
    /// from which all the rest follows.
    #[must_use]
    pub fn is_synchronised(&self) -> bool {
        let mut known = self.harts.sources.iter().flatten().peekable();
        known.peek().is_some() && known.all(|s| s.is_anchored())
    }

    /// Counts the wraps of narrow timestamps from the times in this seam, for
    /// sources that have no time yet.
    pub fn set_time_hint(&mut self, seam: &Seam) {
        for (src, state) in seam.sources.iter().enumerate() {
            if let Some(state) = state {
                let settings = &self.harts.settings;
                let source = entry(&mut self.harts.sources, settings, src as u16);
                if let Some(source) = source {
                    source.set_time_hint(state);
                }
            }
        }
    }
}

/// The state of a [`Decoder`] between two messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Seam {
    at: u64,
    inside: bool,
    stray: Option<Stray>,
    sources: Vec<Option<State>>,
}

impl Seam {
    /// Offset of the next byte.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.at
    }
}

/// The source of a number; `None` only for numbers `SRC` cannot have.
#[inline]
fn entry<'s>(
    sources: &'s mut Vec<Option<Box<Source>>>,
    settings: &Settings,
    src: u16,
) -> Option<&'s mut Source> {
    let index = usize::from(src);
    if sources.len() <= index {
        sources.resize_with(index + 1, || None);
    }
    let source = sources.get_mut(index)?;
    Some(source.get_or_insert_with(|| Box::new(Source::new(settings, settings.hart(src)))))
}

impl Harts<'_> {
    /// One piece of the stream.
    #[inline]
    fn piece<C: Consumer>(&mut self, at: u64, piece: Piece<'_>, out: &mut C) -> ControlFlow<()> {
        match piece {
            Piece::Message(bytes) => {
                let len = bytes.len() as u64;
                match Message::read(bytes, &self.settings.layout) {
                    Ok(message) => return self.message(&message, (at, len), out),
                    Err(fault) => self.misread(bytes, fault, at),
                }
            }
            Piece::Idle(_) => {}
            Piece::Bad(fault, len) => self.nobodys(fault, (at, len)),
        }
        ControlFlow::Continue(())
    }

    /// One message, at this offset and of this length.
    #[inline(always)]
    fn message<C: Consumer>(
        &mut self,
        message: &Message<'_>,
        (at, len): (u64, u64),
        out: &mut C,
    ) -> ControlFlow<()> {
        let Some(source) = entry(&mut self.sources, &self.settings, message.src) else {
            return ControlFlow::Continue(());
        };
        if let Some(stray) = self.stray.take() {
            source.lose(stray.fault, 0, stray.at, stray.bytes);
        }
        source.message(&self.settings, &mut self.blocks, message, (at, len), out)
    }

    /// A message whose fields are wrong.
    #[cold]
    fn misread(&mut self, bytes: &[u8], fault: Fault, at: u64) {
        let len = bytes.len() as u64;
        let head = Message::head(bytes, &self.settings.layout);
        let source = head.and_then(|(_, src)| entry(&mut self.sources, &self.settings, src));
        match source {
            Some(source) => source.lose(fault, 0, at, len),
            None => self.nobodys(fault, (at, len)),
        }
    }

    /// Bytes that are no message: nobody knows whose it would have been.
    #[cold]
    fn nobodys(&mut self, fault: Fault, (at, len): (u64, u64)) {
        let mut any = false;
        for source in self.sources.iter_mut().flatten() {
            source.lose(fault, 0, at, len);
            any = true;
        }
        if !any {
            let bytes = 0;
            let stray = self.stray.get_or_insert(Stray { at, fault, bytes });
            stray.bytes += len;
        }
    }
}

/// A place in a stream where decoding can begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncPoint {
    /// Offset of the message's first byte.
    pub at: u64,
    /// Its source.
    pub src: u16,
    /// Its reason.
    pub sync: Sync,
}

/// The sync messages in a stream that starts at the front of these bytes or
/// right behind a byte with MSEO = 11.
///
/// ```
/// use hartrace_ntrace::{Layout, Sync, sync_points};
///
/// // DirectBranch, idle, ProgTraceSync at 0x100.
/// let bytes = [0x0c, 0x0f, 0xff, 0x24, 0x0d, 0x00, 0x0b];
/// let points: Vec<_> = sync_points(&bytes, &Layout::default()).collect();
/// assert_eq!((points.len(), points[0].at, points[0].sync), (1, 3, Sync::DEBUG_EXIT));
/// ```
pub fn sync_points<'b>(bytes: &'b [u8], layout: &Layout) -> impl Iterator<Item = SyncPoint> + 'b {
    let layout = *layout;
    let mut framer = Framer::new();
    let mut rest = bytes;
    core::iter::from_fn(move || {
        loop {
            let (at, piece) = framer.next_piece(&mut rest)?;
            let Piece::Message(bytes) = piece else {
                continue;
            };
            let Ok(message) = Message::read(bytes, &layout) else {
                continue;
            };
            if let Some(sync) = message.body.sync() {
                let src = message.src;
                return Some(SyncPoint { at, src, sync });
            }
        }
    })
}

/// Where a context's code is.
fn space(blocks: &Blocks<'_>, context: Option<hartrace_flow::Context>) -> SpaceId {
    context.map_or(SpaceId::FIRST, |c| blocks.image().space_of(c))
}

#[cfg(test)]
mod tests;
