//! The shell of a decoder: everything around a protocol's messages and its
//! state machine.
//!
//! A protocol ([`Protocol`]) finds and reads messages; its [`Source`] turns the
//! messages of one hart into events. Here are the sources by number
//! ([`Sources`]), damage and whose it is, the state between two messages
//! ([`Seam`]), and what the sources of every protocol keep: the walk and what
//! is known of it ([`Track`]), and the time ([`Clock`]).

use alloc::vec::Vec;
use core::fmt::Debug;
use core::ops::ControlFlow;

use crate::encode::ProtocolConfig;
use crate::{Blocks, Consumer, Event, HartId, Image, Reason, Rules, Run};

mod clock;
mod sources;
mod track;

use sources::Stray;

pub use clock::Clock;
pub use sources::Sources;
pub use track::{Nothing, Phase, Track, TrackState};

/// A decoder of any format, which can go on where another of its kind stopped.
pub trait Decode {
    /// Its state between two messages.
    type Seam: Clone + PartialEq + Send + Sync;

    /// Decodes the next bytes of the stream. Gives the number of bytes used:
    /// all of them, or fewer when the consumer asked for a pause; then go on
    /// with the rest.
    fn feed<C: Consumer>(&mut self, bytes: &[u8], out: &mut C) -> usize;

    /// The stream ends.
    fn finish<C: Consumer>(&mut self, out: &mut C);

    /// The state.
    fn seam(&self) -> Self::Seam;

    /// Goes on from a state.
    fn resume(&mut self, seam: &Self::Seam);

    /// Begins at this offset without any state.
    fn restart(&mut self, offset: u64);

    /// Whether the state depends on nothing before the restart.
    fn is_synchronised(&self) -> bool;

    /// Whatever may be guessed at a restart from an earlier state.
    fn hint(&mut self, seam: &Self::Seam);

    /// Offset of the next byte.
    fn position(&self) -> u64;

    /// Offset of a seam.
    fn at(seam: &Self::Seam) -> u64;

    /// Decodes the next message with content, perhaps a few, and gives its events to
    /// nobody. Gives the number of bytes used.
    fn pass(&mut self, bytes: &[u8]) -> usize {
        self.feed(bytes, &mut Pause)
    }

    /// For a synchronised state after a restart in the middle of a stream: it may lack
    /// something that messages seldom refer to, which is open from here on.
    fn leave_open(seam: &mut Self::Seam) {
        let _ = seam;
    }

    /// Whether a state lacks anything.
    fn is_open(seam: &Self::Seam) -> bool {
        let _ = seam;
        false
    }

    /// Completes a state by the one that was right where it was
    /// [left open](Decode::leave_open). `false` if something was needed meanwhile that was
    /// lacking: the state is wrong.
    fn complete(seam: &mut Self::Seam, before: &Self::Seam) -> bool {
        let _ = (seam, before);
        true
    }

    /// The first place at or after `from` where a message may start.
    fn boundary(&self, bytes: &[u8], from: usize) -> Option<usize>;

    /// Another with the same settings and code, at the start of a stream.
    #[must_use]
    fn another(&self) -> Self;
}

/// Asks for a pause after every message with content, and takes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pause;

impl Consumer for Pause {
    fn event(&mut self, _: HartId, _: &Event) -> ControlFlow<()> {
        ControlFlow::Break(())
    }

    fn runs(&mut self, _: HartId, _: &[Run]) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

/// Finds the messages in a stream of bytes that comes in chunks of any size.
pub trait Framing: Clone + Debug + Default + PartialEq {
    /// A message, or bytes that are none.
    type Piece<'p>;

    /// Offset of the next byte.
    fn position(&self) -> u64;

    /// Starts to count at this offset.
    #[must_use]
    fn at(self, offset: u64) -> Self;

    /// Whether the bytes so far end inside a message.
    fn is_inside(&self) -> bool;

    /// Passes a message of this length that was read already; not inside one.
    fn pass(&mut self, len: usize);

    /// Takes the next piece off the front of `bytes`, with its offset; `None`
    /// when more bytes are needed.
    fn next_piece<'s, 'b: 's>(&'s mut self, bytes: &mut &'b [u8])
    -> Option<(u64, Self::Piece<'s>)>;

    /// The stream ends: what is left of a message.
    fn finish(&mut self) -> Option<(u64, Self::Piece<'static>)>;

    /// Bytes of a piece in the stream.
    fn length(piece: &Self::Piece<'_>) -> usize;
}

/// Sees what a decoder reads, while it decodes: to count messages, they need not be found
/// twice.
pub trait Onlooker<P: Protocol> {
    /// Nothing is shown to one that does not look.
    const LOOKS: bool = true;

    /// A piece of the stream at this offset.
    fn piece(&mut self, at: u64, piece: &<P::Framer as Framing>::Piece<'_>);

    /// A short and plain message.
    fn message(&mut self, glance: P::Glance);

    /// The messages in so many of the bytes, which start at this offset.
    fn messages(&mut self, at: u64, bytes: &[u8], len: usize);
}

/// Nobody looks.
impl<P: Protocol> Onlooker<P> for () {
    const LOOKS: bool = false;

    fn piece(&mut self, _: u64, _: &<P::Framer as Framing>::Piece<'_>) {}
    fn message(&mut self, _: P::Glance) {}
    fn messages(&mut self, _: u64, _: &[u8], _: usize) {}
}

/// What a piece of the stream is to the decoder.
#[derive(Clone, Copy, Debug)]
pub enum Read<M> {
    /// A message of the source with this number.
    Message(u16, M),
    /// No message can be read here; of this source, if that much is known.
    Damage(Option<u16>, Reason),
    /// Idle bytes, and messages that do not concern the flow.
    Nothing,
}

/// A message at this offset of the stream, of this length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Offset of the first byte.
    pub at: u64,
    /// Number of bytes.
    pub len: u64,
}

impl Place {
    /// Offset of the byte after it.
    #[must_use]
    pub const fn end(self) -> u64 {
        self.at + self.len
    }
}

/// What the decoding of a message works with.
#[derive(Debug)]
pub struct Ctx<'c, 'a, S, C> {
    /// The settings, which all sources share.
    pub settings: &'c S,
    /// The code.
    pub blocks: &'c mut Blocks<'a>,
    /// Takes the events.
    pub out: &'c mut C,
    /// Where the message is.
    pub place: Place,
}

/// The state machine that decodes the messages of one source.
pub trait Source<P: Protocol>: Debug {
    /// Its state in plain values.
    type State: Clone + Debug + PartialEq + Send + Sync;

    /// A source before its first message.
    fn new(settings: &P::Settings, number: u16) -> Self;

    /// Where it is.
    fn track(&mut self) -> &mut Track;

    /// One message of this source.
    ///
    /// # Errors
    ///
    /// A message that does not fit the code or the messages before it; the
    /// source is lost then ([`Source::lose`]).
    fn message<C: Consumer>(
        &mut self,
        message: &P::Message<'_>,
        cx: &mut Ctx<'_, '_, P::Settings, C>,
    ) -> Result<(), Reason>;

    /// Whether a message that was decoded has reported where the hart is now, so that
    /// nothing of that depends on the code before.
    fn is_placed(&mut self, message: &P::Message<'_>) -> bool;

    /// Something is wrong at this offset; these bytes say nothing usable.
    fn lose(&mut self, reason: Reason, at: u64, bytes: u64);

    /// The stream ends at `cx.place`.
    fn finish<C: Consumer>(&mut self, cx: &mut Ctx<'_, '_, P::Settings, C>);

    /// The state.
    fn state(&self, blocks: &Blocks<'_>) -> Self::State;

    /// Goes on from a state.
    fn set_state(&mut self, state: &Self::State, blocks: &mut Blocks<'_>);

    /// Takes over from an earlier state what messages report only in part:
    /// how often narrow timestamps have wrapped.
    fn hint(&mut self, state: &Self::State) {
        let _ = state;
    }

    /// Whether the state depends on nothing before the first full address.
    fn is_anchored(&self) -> bool;

    /// As [`Decode::leave_open`].
    fn leave_open(state: &mut Self::State) {
        let _ = state;
    }

    /// As [`Decode::is_open`].
    fn is_open(state: &Self::State) -> bool {
        let _ = state;
        false
    }

    /// As [`Decode::complete`].
    fn complete(state: &mut Self::State, before: &Self::State) -> bool {
        let _ = (state, before);
        true
    }
}

/// A protocol, as far as its decoder goes.
pub trait Protocol: Copy + Debug + PartialEq + Sized {
    /// The settings.
    type Config: ProtocolConfig;
    /// What all sources share: the settings, what is computed from them once,
    /// and what messages change for all of them.
    type Settings: Clone + Debug + PartialEq + Send + Sync;
    /// Finds messages.
    type Framer: Framing + Send + Sync;
    /// One message that has been read.
    type Message<'m>;
    /// What an [`Onlooker`] is told of a short and plain message.
    type Glance: Copy;
    /// Decodes the messages of one source.
    type Source: Source<Self>;

    /// What the settings come to at the start of a stream.
    fn settings(config: &Self::Config) -> Self::Settings;

    /// How the code is read.
    fn rules(settings: &Self::Settings) -> Rules;

    /// What finds messages with these settings, at the start of a stream.
    fn framer(config: &Self::Config) -> Self::Framer {
        let _ = config;
        Self::Framer::default()
    }

    /// Reads one piece of the stream.
    fn read<'m>(
        settings: &Self::Settings,
        piece: &'m <Self::Framer as Framing>::Piece<'_>,
    ) -> Read<Self::Message<'m>>;

    /// Reads a short message at the front of the bytes, which start with a
    /// message: its source, itself, its length. `None` for all that is not plain.
    /// Only speed depends on it.
    #[inline(always)]
    fn quick<'m>(
        settings: &Self::Settings,
        bytes: &'m [u8],
    ) -> Option<(u16, Self::Message<'m>, usize)> {
        let _ = (settings, bytes);
        None
    }

    /// Decodes messages at the front of the bytes, which start with a message at this
    /// offset, as many as are alike: how many bytes they are, and `Break` if a consumer
    /// asked for a pause. 0 if [`Protocol::quick`] or [`Protocol::read`] has to read the
    /// first. Only speed depends on it.
    #[inline(always)]
    fn several<C: Consumer, L: Onlooker<Self>>(
        sources: &mut Sources<'_, Self>,
        (at, bytes): (u64, &[u8]),
        (out, onlooker): (&mut C, &mut L),
    ) -> (usize, ControlFlow<()>) {
        let _ = (sources, at, bytes, out, onlooker);
        (0, ControlFlow::Continue(()))
    }

    /// Hands a message to its source. To be changed where messages concern all
    /// sources.
    #[inline(always)]
    fn message<C: Consumer>(
        sources: &mut Sources<'_, Self>,
        number: u16,
        message: &Self::Message<'_>,
        place: Place,
        out: &mut C,
    ) -> ControlFlow<()> {
        sources.message(number, message, place, out)
    }

    /// The first place at or after `from` where a message may start.
    fn boundary(config: &Self::Config, bytes: &[u8], from: usize) -> Option<usize>;
}

/// The state of a source of this protocol.
type State<P> = <<P as Protocol>::Source as Source<P>>::State;

/// Reconstructs what harts did from their messages and the program's code.
#[derive(Debug)]
pub struct Decoder<'a, P: Protocol> {
    config: P::Config,
    framer: P::Framer,
    sources: Sources<'a, P>,
    /// Where the last way was kept that only leads the same way from there on, at most.
    lasting: u64,
}

/// The state of a [`Decoder`].
#[derive(Clone, Debug, PartialEq)]
pub struct Seam<P: Protocol> {
    framer: P::Framer,
    stray: Option<Stray>,
    settings: P::Settings,
    sources: Vec<Option<State<P>>>,
}

impl<P: Protocol> Seam<P> {
    /// Offset of the next byte.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.framer.position()
    }
}

impl<'a, P: Protocol> Decoder<'a, P> {
    /// A decoder at the start of a stream, or in the middle: it begins with
    /// the first full address of each source.
    ///
    /// # Errors
    ///
    /// Settings that do not make sense together.
    pub fn new(
        config: P::Config,
        image: &'a Image,
    ) -> Result<Decoder<'a, P>, <P::Config as ProtocolConfig>::Error> {
        config.validate()?;
        Ok(Decoder::with_valid(config, image))
    }

    /// Another decoder with the same settings and code, at the start of a
    /// stream.
    #[must_use]
    pub fn another(&self) -> Decoder<'a, P> {
        Decoder::with_valid(self.config.clone(), self.sources.image())
    }

    fn with_valid(config: P::Config, image: &'a Image) -> Decoder<'a, P> {
        Decoder {
            framer: P::framer(&config),
            sources: Sources::new(P::settings(&config), image),
            lasting: 0,
            config,
        }
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &P::Config {
        &self.config
    }

    /// Offset in the stream of the next byte.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.framer.position()
    }

    /// What has found the messages so far.
    #[must_use]
    pub fn framer(&self) -> &P::Framer {
        &self.framer
    }

    /// Decodes the next bytes of the stream. Gives the number of bytes used:
    /// all of them, or fewer when the consumer asked for a pause; then go on
    /// with the rest.
    pub fn feed<C: Consumer>(&mut self, bytes: &[u8], out: &mut C) -> usize {
        self.feed_before(bytes, out, &mut ())
    }

    /// The same before an onlooker.
    pub fn feed_before<C: Consumer, L: Onlooker<P>>(
        &mut self,
        bytes: &[u8],
        out: &mut C,
        onlooker: &mut L,
    ) -> usize {
        let mut rest = bytes;
        loop {
            let several = self.several(&mut rest, out, onlooker);
            let quick = several.or_else(|| self.quick(&mut rest, out, onlooker));
            let flow = match quick {
                Some(flow) => flow,
                None => match self.framer.next_piece(&mut rest) {
                    Some((at, piece)) => {
                        onlooker.piece(at, &piece);
                        self.sources.piece(at, piece, out)
                    }
                    None => break,
                },
            };
            if flow.is_break() {
                break;
            }
        }
        bytes.len() - rest.len()
    }

    /// A short message at the front of the bytes, if there is one.
    #[inline(always)]
    fn quick<C: Consumer, L: Onlooker<P>>(
        &mut self,
        bytes: &mut &[u8],
        out: &mut C,
        onlooker: &mut L,
    ) -> Option<ControlFlow<()>> {
        if self.framer.is_inside() {
            return None;
        }
        let (number, message, len) = P::quick(self.sources.settings(), bytes)?;
        onlooker.messages(self.framer.position(), bytes, len);
        let place = Place {
            at: self.framer.position(),
            len: len as u64,
        };
        self.framer.pass(len);
        *bytes = bytes.get(len..).unwrap_or_default();
        let sources = &mut self.sources;
        Some(P::message(sources, number, &message, place, out))
    }

    /// Messages at the front of the bytes that are decoded at once, if there are any.
    #[inline(always)]
    fn several<C: Consumer, L: Onlooker<P>>(
        &mut self,
        bytes: &mut &[u8],
        out: &mut C,
        onlooker: &mut L,
    ) -> Option<ControlFlow<()>> {
        if self.framer.is_inside() {
            return None;
        }
        let at = self.framer.position();
        let (len, flow) = P::several(&mut self.sources, (at, bytes), (out, onlooker));
        if len == 0 {
            return None;
        }
        self.framer.pass(len);
        *bytes = bytes.get(len..).unwrap_or_default();
        Some(flow)
    }

    /// The stream ends here.
    pub fn finish<C: Consumer>(&mut self, out: &mut C) {
        if let Some((at, piece)) = self.framer.finish() {
            // Nothing follows that a pause could come before.
            let _ = self.sources.piece(at, piece, out);
        }
        self.sources.finish(self.framer.position(), out);
    }

    /// What the rest of the decoding depends on, to be compared between
    /// decoders and to go on from.
    #[must_use]
    pub fn seam(&self) -> Seam<P> {
        Seam {
            framer: self.framer.clone(),
            stray: self.sources.stray,
            settings: self.sources.settings().clone(),
            sources: self.sources.states(),
        }
    }

    /// Goes on from where another decoder of the same stream was.
    pub fn resume(&mut self, seam: &Seam<P>) {
        self.set_framer(seam.framer.clone());
        self.sources.restart(seam.settings.clone());
        self.sources.stray = seam.stray;
        self.sources.set_states(&seam.sources);
    }

    /// Forgets everything but the code, and begins at this offset of the
    /// stream: its start, or a place where a message starts.
    pub fn restart(&mut self, offset: u64) {
        self.set_framer(P::framer(&self.config).at(offset));
        self.sources.restart(P::settings(&self.config));
    }

    /// Goes to another place in the stream.
    fn set_framer(&mut self, framer: P::Framer) {
        if self.sources.has_kept_ways() {
            self.lasting = self.lasting.max(self.framer.position());
        }
        if framer.position() < self.lasting {
            self.sources.forget_shortcuts();
            self.lasting = 0;
        }
        self.framer = framer;
    }

    /// Whether every source that has sent anything has given a full address
    /// from which all the rest follows.
    #[must_use]
    pub fn is_synchronised(&self) -> bool {
        self.sources.is_synchronised()
    }

    /// Takes over from this seam what messages report only now and then: modes
    /// of the encoder, and how often narrow timestamps have wrapped. For a
    /// decoder that begins in the middle.
    pub(crate) fn set_hint(&mut self, seam: &Seam<P>) {
        self.sources.set_settings(seam.settings.clone());
        self.sources.hint(&seam.sources);
    }
}

impl<P: Protocol> Decode for Decoder<'_, P> {
    type Seam = Seam<P>;

    fn feed<C: Consumer>(&mut self, bytes: &[u8], out: &mut C) -> usize {
        self.feed(bytes, out)
    }

    fn finish<C: Consumer>(&mut self, out: &mut C) {
        self.finish(out);
    }

    fn seam(&self) -> Seam<P> {
        self.seam()
    }

    fn resume(&mut self, seam: &Seam<P>) {
        self.resume(seam);
    }

    fn restart(&mut self, offset: u64) {
        self.restart(offset);
    }

    fn is_synchronised(&self) -> bool {
        self.is_synchronised()
    }

    fn hint(&mut self, seam: &Seam<P>) {
        self.set_hint(seam);
    }

    fn position(&self) -> u64 {
        self.position()
    }

    fn at(seam: &Seam<P>) -> u64 {
        seam.at()
    }

    fn leave_open(seam: &mut Seam<P>) {
        seam.sources
            .iter_mut()
            .flatten()
            .for_each(P::Source::leave_open);
    }

    fn is_open(seam: &Seam<P>) -> bool {
        seam.sources.iter().flatten().any(P::Source::is_open)
    }

    fn complete(seam: &mut Seam<P>, before: &Seam<P>) -> bool {
        let mut pairs = seam.sources.iter_mut().zip(&before.sources);
        pairs.all(|pair| match pair {
            (Some(state), Some(before)) => P::Source::complete(state, before),
            _ => true,
        })
    }

    fn boundary(&self, bytes: &[u8], from: usize) -> Option<usize> {
        P::boundary(&self.config, bytes, from)
    }

    fn another(&self) -> Self {
        self.another()
    }
}
