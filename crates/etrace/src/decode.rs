//! The decoder: packets in, events out.
//!
//! A packet with an address reports an instruction that has retired. After it,
//! the walk's output ends *before* that instruction: the next packet reports
//! where the instruction leads and, for an indirect jump, even that it ended a
//! run. Each source has its own state ([`source`]); [`way`] turns its packets
//! into paths through the code.
//!
//! A format 1 or 2 packet without further marks is ambiguous: it may mean the
//! next time the hart reaches its address, or a later jump to it (6.6.2: the
//! entry of a loop that an indirect jump closes). Only the next packet resolves
//! this: if it has format 3, it was the first time; otherwise there was a jump.
//! So such a packet waits for the one after it.
//!
//! In the optional modes a packet says less, and the rest is worked out: [`aids`]
//! has the tables for it, and [`trail`] what a packet gives a walk then.

mod accesses;
mod aids;
mod ambiguity;
mod modes;
mod pending;
mod source;
mod support;
mod times;
mod trail;
mod way;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::ControlFlow;

use hartrace_flow::decode::{self, Onlooker, Place, Protocol, Read, Source as _, Sources};
use hartrace_flow::{Blocks, Consumer, Rules};

use self::modes::Modes;
use self::source::Source;
use crate::data::{Sums, Transfers};
use crate::encapsulation::{Heads, WINDOW, window};
use crate::frame::{self, Encapsulated, Framer, Kind, Piece};
use crate::modes::Shared;
use crate::packet::quick::{self, Plain};
use crate::{Config, DataLayout, Fault, Layout, MAX_PAYLOAD, Packet};

/// Reconstructs what harts did from their packets and the program's code.
///
/// Data accesses are events of their own, in the order of the packets: wrap the
/// consumer into a [`Tie`](hartrace_flow::Tie) to get them with their instructions
/// ([`Config::tie`](crate::Config::tie)).
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
pub type Decoder<'a> = decode::Decoder<'a, ETrace>;

/// The state of a [`Decoder`]. It may be inside a packet: whoever cuts a damaged
/// stream may cut one.
pub type Seam = decode::Seam<ETrace>;

/// What the decoding of a packet works with.
struct Ctx<'c, 'a, C> {
    settings: &'c Settings,
    blocks: &'c mut Blocks<'a>,
    out: &'c mut C,
    place: Place,
    /// The branch predictor, if there is one; `out` keeps it up to date.
    table: Option<Shared<'c>>,
    /// An optional mode is on. Known when this is compiled, for speed.
    modal: bool,
}

/// E-Trace, for the shell of its decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ETrace;

/// What every source needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// As it was given. A support packet that was none leaves no trace here.
    given: Box<Config>,
    /// As support packets have reported it.
    config: Config,
    layout: Layout,
    /// Of data packets, if they are decoded.
    data: Option<DataLayout>,
    /// The same for those that are loads and stores.
    transfers: Option<Arc<Transfers>>,
    modes: Modes,
    /// What comes before the payloads of the source that the modes are of, where packets
    /// can be read by the fast path.
    heads: Heads,
    /// The source that the modes are of, and those of the others, by number.
    current: u16,
    others: Vec<(u16, Modes)>,
}

impl Settings {
    /// The same in these modes.
    fn with(&self, modes: Modes) -> Settings {
        let config = modes.apply(&self.given);
        Settings {
            given: self.given.clone(),
            layout: config.layout(),
            data: config.data_layout(),
            transfers: match modes.data_config == self.modes.data_config {
                true => self.transfers.clone(),
                false => Transfers::new(&config).map(Arc::new),
            },
            modes,
            heads: self.heads,
            current: self.current,
            others: self.others.clone(),
            config,
        }
    }

    /// The modes of a source.
    fn modes_of(&self, src: u16) -> Modes {
        if src == self.current {
            return self.modes;
        }
        match self.others.binary_search_by_key(&src, |other| other.0) {
            Ok(at) => self.others.get(at).map_or(self.modes, |other| other.1),
            Err(_) => Modes::of(&self.given),
        }
    }

    /// How packets of a source are laid out.
    #[inline]
    fn layout_of(&self, src: u16) -> Layout {
        if src == self.current {
            return self.layout;
        }
        let modes = self.modes_of(src);
        match modes == self.modes {
            true => self.layout,
            false => modes.apply(&self.given).layout(),
        }
    }

    /// Goes on with the modes of another source.
    fn enter(&mut self, src: u16) {
        let modes = self.modes_of(src);
        let before = (self.current, self.modes);
        match self
            .others
            .binary_search_by_key(&self.current, |other| other.0)
        {
            Ok(at) => {
                if let Some(other) = self.others.get_mut(at) {
                    *other = before;
                }
            }
            Err(at) => self.others.insert(at, before),
        }
        if modes != self.modes {
            *self = self.with(modes);
        }
        self.current = src;
        self.heads = heads(&self.given, src);
    }
}

/// What comes before the payloads of a source.
fn heads(config: &Config, src: u16) -> Heads {
    match config.layout().is_plain() {
        true => Heads::new(&config.encapsulation, src),
        false => Heads::NONE,
    }
}

/// A packet of instruction trace.
#[derive(Clone, Copy, Debug)]
pub enum Message {
    /// One that is only branches, or an address, or both.
    Plain(Plain),
    /// Any.
    Packet(Packet),
    /// A packet of data trace: its payload.
    Data(Bytes),
    /// A packet of data trace, where it is not known whether there is any.
    Unexpected,
    /// A packet whose encapsulation has a timestamp.
    Timed(Packet, u64),
    /// The same of one that is only branches, or an address, or both.
    PlainTimed(Plain, u64),
}

/// The payload of a packet whose layout depends on the source.
#[derive(Clone, Copy, Debug)]
pub struct Bytes {
    bytes: [u8; MAX_PAYLOAD],
    len: u8,
}

impl Bytes {
    fn new(payload: &[u8]) -> Bytes {
        let mut bytes = [0; MAX_PAYLOAD];
        let len = payload.len().min(MAX_PAYLOAD);
        if let (Some(to), Some(from)) = (bytes.get_mut(..len), payload.get(..len)) {
            to.copy_from_slice(from);
        }
        Bytes {
            bytes,
            len: len as u8,
        }
    }

    fn get(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// With what comes after them, and their number.
    fn padded(&self) -> (&[u8; MAX_PAYLOAD], usize) {
        (&self.bytes, self.len.into())
    }
}

impl Protocol for ETrace {
    type Config = Config;
    type Settings = Settings;
    type Framer = Framer;
    type Message<'m> = Message;
    type Glance = Glance;
    type Source = Source;

    fn settings(config: &Config) -> Settings {
        Settings {
            given: Box::new(config.clone()),
            layout: config.layout(),
            data: config.data_layout(),
            transfers: Transfers::new(config).map(Arc::new),
            modes: Modes::of(config),
            heads: heads(config, 0),
            current: 0,
            others: Vec::new(),
            config: config.clone(),
        }
    }

    fn rules(settings: &Settings) -> Rules {
        settings.config.rules_with(settings.modes.sijump)
    }

    #[inline]
    fn read(settings: &Settings, piece: &Piece<'_>) -> Read<Message> {
        match *piece {
            Piece::Packet(packet) => read_packet(settings, packet),
            Piece::Idle(_) => Read::Nothing,
            Piece::Lost(src, fault, value, _) => Read::Damage(Some(src), fault.reason(value)),
            Piece::Bad(fault, _) => Read::Damage(None, fault.reason(0)),
        }
    }

    #[inline(always)]
    fn quick(settings: &Settings, bytes: &[u8]) -> Option<(u16, Message, usize)> {
        let (window @ &[first, ..], _) = bytes.split_first_chunk::<WINDOW>()?;
        let head = settings.heads.of(Kind::Instruction, first)?;
        let packet = head.open(window)?;
        let (bits, layout) = (packet.word()?, &settings.layout);
        let message = match head.time(window) {
            None => match quick::plain(bits, layout) {
                Some(packet) => Message::Plain(packet),
                None => Message::Packet(quick::format_0(bits, layout)?),
            },
            Some(time) => match quick::plain(bits, layout) {
                Some(packet) => Message::PlainTimed(packet, time),
                None => {
                    let read = quick::read(bits, layout).or_else(|| quick::format_0(bits, layout));
                    Message::Timed(read?, time)
                }
            },
        };
        Some((settings.current, message, packet.len))
    }

    #[inline(always)]
    fn several<C: Consumer, L: Onlooker<ETrace>>(
        sources: &mut Sources<'_, ETrace>,
        (at, bytes): (u64, &[u8]),
        (out, onlooker): (&mut C, &mut L),
    ) -> (usize, ControlFlow<()>) {
        let mut used = 0;
        loop {
            let rest = (at + used as u64, bytes.get(used..).unwrap_or_default());
            let (plain, flow) = several_plain(sources, rest, (out, onlooker));
            used += plain;
            if flow.is_break() {
                return (used, flow);
            }
            let rest = (at + used as u64, bytes.get(used..).unwrap_or_default());
            let (data, flow) = several_data(sources, rest, (out, onlooker));
            used += data;
            if flow.is_break() || data == 0 {
                return (used, flow);
            }
        }
    }

    #[inline(always)]
    fn message<C: Consumer>(
        sources: &mut Sources<'_, ETrace>,
        src: u16,
        message: &Message,
        place: Place,
        out: &mut C,
    ) -> ControlFlow<()> {
        if src != sources.settings().current {
            sources.change_settings(|settings| settings.enter(src));
        }
        match message {
            Message::Packet(Packet::Start(_) | Packet::Trap(_))
            | Message::Timed(Packet::Start(_) | Packet::Trap(_), _) => {
                sync(sources, src, message, place, out)
            }
            Message::Packet(Packet::Support(support))
            | Message::Timed(Packet::Support(support), _) => {
                let flow = sources.message(src, message, place, out);
                // What came before was still reported in the old modes.
                let modes = sources.settings().told(support);
                set_modes(sources, src, modes);
                flow
            }
            _ => sources.message(src, message, place, out),
        }
    }

    fn framer(config: &Config) -> Framer {
        Framer::of(config.encapsulation)
    }

    fn boundary(config: &Config, bytes: &[u8], from: usize) -> Option<usize> {
        frame::boundary(bytes, from, &config.encapsulation)
    }
}

/// All there is to count of plain packets.
#[derive(Clone, Copy, Debug)]
pub enum Glance {
    /// One without a timestamp.
    Plain(PlainGlance),
    /// Loads and stores of data trace.
    Transfers(TransfersGlance),
}

/// A plain packet without a timestamp.
#[derive(Clone, Copy, Debug)]
pub struct PlainGlance {
    /// Its source.
    pub(crate) src: u16,
    /// What it says, and its payload as a number.
    pub(crate) plain: Plain,
    pub(crate) word: i64,
    /// Its bytes, and those of the payload among them.
    pub(crate) len: usize,
    pub(crate) payload: usize,
}

/// Loads and stores of data trace.
#[derive(Clone, Copy, Debug)]
pub struct TransfersGlance {
    /// Their source.
    pub(crate) src: u16,
    /// They have timestamps.
    pub(crate) is_timed: bool,
    pub(crate) sums: Sums,
}

/// Packets without a timestamp that are only branches, or an address, or both.
#[inline(never)]
fn several_plain<C: Consumer, L: Onlooker<ETrace>>(
    sources: &mut Sources<'_, ETrace>,
    (at, bytes): (u64, &[u8]),
    (out, onlooker): (&mut C, &mut L),
) -> (usize, ControlFlow<()>) {
    let mut used = 0;
    let mut flow = ControlFlow::Continue(());
    let (src, heads) = (sources.settings().current, sources.settings().heads);
    let Some(head) = heads.untimed(Kind::Instruction) else {
        return (used, flow);
    };
    while flow.is_continue()
        && let Some(packet) = window(bytes, used).and_then(|window| head.open(window))
        && let Some(word) = packet.word()
        && let Some(plain) = quick::plain(word, &sources.settings().layout)
    {
        let (len, payload) = (packet.len, packet.payload_bytes());
        onlooker.message(Glance::Plain(PlainGlance {
            src,
            plain,
            word,
            len,
            payload,
        }));
        if let Some((source, blocks, settings)) = sources.with_blocks(src)
            && source.repeat(plain, settings, blocks, out)
        {
            flow = source.track().take_pause();
        } else {
            let place = Place {
                at: at + used as u64,
                len: len as u64,
            };
            flow = sources.message(src, &Message::Plain(plain), place, out);
        }
        used += len;
    }
    (used, flow)
}

/// Loads and stores of data trace.
#[inline]
fn several_data<C: Consumer, L: Onlooker<ETrace>>(
    sources: &mut Sources<'_, ETrace>,
    (at, bytes): (u64, &[u8]),
    (out, onlooker): (&mut C, &mut L),
) -> (usize, ControlFlow<()>) {
    let settings = sources.settings();
    let src = settings.current;
    let first = bytes.first().filter(|_| settings.modes.data != Some(false));
    let head = first.and_then(|&first| settings.heads.of(Kind::Data, first));
    let Some(&head) = head else {
        return (0, ControlFlow::Continue(()));
    };
    let source = sources.with_settings(src);
    let (len, sums) = source.map_or((0, None), |(source, settings)| {
        source.transfers((&head, bytes), settings, out)
    });
    if len == 0 {
        return (0, ControlFlow::Continue(()));
    }
    match sums {
        Some(sums) => onlooker.message(Glance::Transfers(TransfersGlance {
            src,
            is_timed: head.is_timed(),
            sums,
        })),
        None => onlooker.messages(at, bytes, len),
    }
    (len, sources.take_pause())
}

/// A packet of either trace.
#[inline]
fn read_packet(settings: &Settings, packet: Encapsulated<'_>) -> Read<Message> {
    let Encapsulated {
        src, kind, payload, ..
    } = packet;
    match kind {
        Kind::Instruction => match (Packet::read(payload, &settings.layout_of(src)), packet.time) {
            (Ok(packet), None) => Read::Message(src, Message::Packet(packet)),
            (Ok(packet), Some(time)) => Read::Message(src, Message::Timed(packet, time)),
            (Err(fault), _) => Read::Damage(Some(src), fault.reason(0)),
        },
        Kind::Data => match settings.modes_of(src).data {
            Some(false) => Read::Damage(Some(src), Fault::UnexpectedData.reason(0)),
            _ if settings.data.is_some() => Read::Message(src, Message::Data(Bytes::new(payload))),
            // Data packets say nothing about the flow, where they are sent.
            Some(true) => Read::Nothing,
            None => Read::Message(src, Message::Unexpected),
        },
    }
}

/// A synchronisation: it may show that a support packet was not one.
fn sync<C: Consumer>(
    sources: &mut Sources<'_, ETrace>,
    src: u16,
    message: &Message,
    place: Place,
    out: &mut C,
) -> ControlFlow<()> {
    revoke(sources, src, place.at);
    // Whoever starts there, and did not walk to it, has proved nothing.
    let walks = sources.get(src).is_some_and(|source| source.is_running());
    let flow = sources.message(src, message, place, out);
    let revoked = revoke(sources, src, place.at);
    if let Some(source) = sources.get(src)
        && walks
        && !revoked
    {
        source.settle_doubt(place.at);
    }
    flow
}

/// Goes back to the modes before a support packet that was none; whether there was
/// one.
fn revoke(sources: &mut Sources<'_, ETrace>, src: u16, at: u64) -> bool {
    let modes = sources.settings().modes;
    let before = sources.get(src).and_then(|source| source.revoke(at, modes));
    if let Some(modes) = before {
        set_modes(sources, src, modes);
    }
    before.is_some()
}

/// Other modes may read the code in another way.
fn set_modes(sources: &mut Sources<'_, ETrace>, src: u16, modes: Modes) {
    if modes != sources.settings().modes {
        let settings = sources.settings().with(modes);
        sources.set_settings(settings.clone());
        if let Some(source) = sources.get(src) {
            source.adopt(&settings);
        }
    }
}

#[cfg(test)]
mod tests;
