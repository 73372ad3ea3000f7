//! The decoder: packets in, events out.
//!
//! A packet with an address names an instruction that has retired. What the
//! walk has given out then ends *before* that instruction: where it leads, and
//! for an indirect jump even that it ended a run, the next packet tells. Each
//! source has a state of its own ([`source`]); how its packets become ways
//! through the code is in [`way`].
//!
//! A format 1 or 2 packet without further marks may stand for the next time the
//! hart comes by its address, or for a jump there later on (6.6.2: the entry of
//! a loop that an indirect jump closes). Only the next packet tells which: a
//! format 3, and it was the first time; anything else, and there was a jump. So
//! such a packet waits for the one behind it.

mod modes;
mod source;
mod time;
mod way;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::ControlFlow;

use hartrace_flow::{Blocks, Consumer, HartId, Image};

use self::modes::Modes;
use self::source::{Source, State};
use crate::frame::{self, Framer, Kind, Piece};
use crate::packet::quick;
use crate::{Config, ConfigError, Fault, Layout, Packet};

/// Reconstructs what harts did from their packets and the program's code.
///
/// ```
/// use hartrace_etrace::{BranchMap, Config, Decoder, Kind, Packet, QualStatus, Report, Start};
/// use hartrace_etrace::{Support, Version};
/// use hartrace_flow::{Consumer, Event, HartId, Image, SpaceId};
/// use hartrace_isa::{Isa, Xlen};
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
/// let config = Config::new(Version::V2_0, Xlen::Rv64);
/// let start = Start { branch: true, privilege: 3, address: 0x1000 >> 1, ..Start::default() };
/// // Three times round and one more: outcomes taken, taken, not taken.
/// let map = BranchMap { bits: 0b100, count: 3 };
/// let report = Report { address: 4 >> 1, ..Report::default() };
/// let end = Support { qual_status: QualStatus::EndedRep, ..Support::default() };
/// let mut trace = Vec::new();
/// for packet in [
///     Packet::Start(start),
///     Packet::Branches { map, address: Some(report) },
///     Packet::Support(end),
/// ] {
///     packet.write(&config.layout()).write_framed(Kind::Instruction, &mut trace);
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
    /// By number, grown as they appear.
    sources: Vec<Option<Box<Source>>>,
    /// Bytes outside any packet before the first source appeared.
    stray: Option<Stray>,
}

/// Bytes that were no packet, and where that was first noticed.
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
    modes: Modes,
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
        let config = self.harts.settings.config.clone();
        Decoder::with_valid(config, self.harts.blocks.image())
    }

    fn with_valid(config: Config, image: &'a Image) -> Decoder<'a> {
        let modes = Modes::of(&config);
        Decoder {
            framer: Framer::new(),
            harts: Harts {
                blocks: Blocks::new(image, config.rules()),
                settings: Settings {
                    layout: config.layout(),
                    modes,
                    config,
                },
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
        let at = self.framer.position();
        let Harts {
            settings,
            blocks,
            sources,
            stray,
        } = &mut self.harts;
        for source in sources.iter_mut().flatten() {
            source.finish(blocks, at, out);
        }
        if let Some(stray) = stray.take() {
            // Nothing was ever synchronised.
            let mut source = Source::new(HartId(0), settings);
            source.lose(stray.fault, 0, stray.at, stray.bytes);
            source.finish(blocks, at, out);
        }
    }

    /// A short and plain packet at the front of the bytes, if there is one and
    /// all goes well.
    #[inline(always)]
    fn short<C: Consumer>(&mut self, bytes: &mut &[u8], out: &mut C) -> Option<ControlFlow<()>> {
        let (&[header, word @ ..], _) = bytes.split_first_chunk::<9>()?;
        let len = frame::instruction(header)?;
        if self.framer.is_inside() {
            return None;
        }
        let word = u64::from_le_bytes(word);
        let packet = quick::plain(word, len, &self.harts.settings.layout)?;
        let source = self.harts.sources.first_mut()?.as_mut()?;
        if !source.is_running() {
            return None;
        }
        let place = (self.framer.position(), len as u64 + 1);
        self.framer.pass(len + 1);
        *bytes = bytes.get(len + 1..).unwrap_or_default();
        let (settings, blocks) = (&self.harts.settings, &mut self.harts.blocks);
        Some(source.plain(settings, blocks, packet, place, out))
    }

    /// What the rest of the decoding depends on, to be compared between
    /// decoders and to go on from.
    #[must_use]
    pub fn seam(&self) -> Seam {
        let sources = self.harts.sources.iter();
        Seam {
            framer: self.framer.clone(),
            stray: self.harts.stray,
            modes: self.harts.settings.modes,
            sources: sources
                .map(|s| s.as_ref().map(|s| s.state(&self.harts.blocks)))
                .collect(),
        }
    }

    /// Goes on from where another decoder of the same stream was.
    pub fn resume(&mut self, seam: &Seam) {
        self.framer = seam.framer.clone();
        self.harts.stray = seam.stray;
        self.harts.set_modes(seam.modes);
        self.harts.sources.clear();
        for (src, state) in seam.sources.iter().enumerate() {
            let source = state.as_ref().map(|state| {
                let mut source = Source::new(HartId(src as u32), &self.harts.settings);
                source.set_state(state, &mut self.harts.blocks);
                Box::new(source)
            });
            self.harts.sources.push(source);
        }
    }

    /// Forgets everything but the code, and begins at this offset of the
    /// stream: its start, or a place where a packet begins.
    pub fn restart(&mut self, offset: u64) {
        self.framer = Framer::new().at(offset);
        self.harts.stray = None;
        self.harts.sources.clear();
        let modes = Modes::of(&self.harts.settings.config);
        self.harts.set_modes(modes);
    }

    /// Whether every source that has sent anything has given a full address
    /// from which all the rest follows.
    #[must_use]
    pub fn is_synchronised(&self) -> bool {
        let mut known = self.harts.sources.iter().flatten().peekable();
        known.peek().is_some() && known.all(|s| s.is_anchored())
    }

    /// Takes over from this seam what packets tell only now and then: the
    /// run-time modes, and how often narrow timestamps have wrapped. For a
    /// decoder that begins in the middle.
    pub fn set_hint(&mut self, seam: &Seam) {
        self.harts.set_modes(seam.modes);
        for (src, state) in seam.sources.iter().enumerate() {
            if let Some(state) = state
                && let Some(source) =
                    entry(&mut self.harts.sources, &self.harts.settings, src as u16)
            {
                source.set_time_hint(state);
            }
        }
    }
}

/// The state of a [`Decoder`].
#[derive(Clone, Debug, PartialEq)]
pub struct Seam {
    /// Whoever cuts a damaged stream may cut a packet.
    framer: Framer,
    stray: Option<Stray>,
    modes: Modes,
    sources: Vec<Option<State>>,
}

impl Seam {
    /// Offset of the next byte.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.framer.position()
    }
}

/// The source of a number; always there.
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
    Some(source.get_or_insert_with(|| Box::new(Source::new(HartId(u32::from(src)), settings))))
}

impl Harts<'_> {
    /// One piece of the stream.
    #[inline]
    fn piece<C: Consumer>(&mut self, at: u64, piece: Piece<'_>, out: &mut C) -> ControlFlow<()> {
        match piece {
            Piece::Packet(src, Kind::Instruction, payload) => {
                // The header counts too.
                let place = (at, payload.len() as u64 + 1);
                let packet = Packet::read(payload, &self.settings.layout);
                return self.packet(src, packet, place, out);
            }
            // Data packets say nothing about the way.
            Piece::Packet(_, Kind::Data, _) | Piece::Idle(_) => {}
            Piece::Bad(fault, len) => self.nobodys(fault, (at, len)),
        }
        ControlFlow::Continue(())
    }

    /// One packet, at this offset and of this length.
    fn packet<C: Consumer>(
        &mut self,
        src: u16,
        packet: Result<Packet, Fault>,
        place: (u64, u64),
        out: &mut C,
    ) -> ControlFlow<()> {
        let Some(source) = entry(&mut self.sources, &self.settings, src) else {
            return ControlFlow::Continue(());
        };
        if let Some(stray) = self.stray.take() {
            source.lose(stray.fault, 0, stray.at, stray.bytes);
        }
        let packet = match packet {
            Ok(packet) => packet,
            Err(fault) => {
                source.lose(fault, 0, place.0, place.1);
                return ControlFlow::Continue(());
            }
        };
        if let Packet::Start(_) | Packet::Trap(_) = packet {
            return self.sync(src, &packet, place, out);
        }
        let flow = source.packet(&self.settings, &mut self.blocks, &packet, place, out);
        // What came before was still told in the old modes.
        if let Packet::Support(support) = packet {
            self.set_modes(self.settings.told(support.ioptions));
        }
        flow
    }

    /// A synchronisation: it may tell that a support packet was none.
    fn sync<C: Consumer>(
        &mut self,
        src: u16,
        packet: &Packet,
        place: (u64, u64),
        out: &mut C,
    ) -> ControlFlow<()> {
        let source = entry(&mut self.sources, &self.settings, src);
        if let Some(modes) = source.and_then(|s| s.revoke(place.0)) {
            self.set_modes(modes);
        }
        let Some(source) = entry(&mut self.sources, &self.settings, src) else {
            return ControlFlow::Continue(());
        };
        let flow = source.packet(&self.settings, &mut self.blocks, packet, place, out);
        let revoked = source.revoke(place.0);
        source.settle_doubt(place.0);
        if let Some(modes) = revoked {
            self.set_modes(modes);
        }
        flow
    }

    /// Other modes read the code in another way.
    fn set_modes(&mut self, modes: Modes) {
        if modes.sijump != self.settings.modes.sijump {
            let rules = self.settings.config.rules_with(modes.sijump);
            let mut blocks = Blocks::new(self.blocks.image(), rules);
            for source in self.sources.iter_mut().flatten() {
                let state = source.state(&self.blocks);
                source.set_state(&state, &mut blocks);
            }
            self.blocks = blocks;
        }
        self.settings.modes = modes;
    }

    /// Bytes that are no packet: nobody knows whose it would have been.
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

#[cfg(test)]
mod tests;
