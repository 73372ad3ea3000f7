//! What the checks need to know of a trace format.

use std::fmt::Debug;
use std::ops::ControlFlow;

use hartrace_capture::trace::Settings;
use hartrace_flow::decode::Framing;
pub use hartrace_flow::encode::Counters;
use hartrace_flow::encode::Sink;
use hartrace_flow::{Consumer, Decode, Event, Gather, HartId, Image, IngressSink, PortConfig};
use hartrace_isa::{Isa, ItypeTable};

use super::{Judge, Rules};
use crate::generate::Spec;

/// Takes the bytes of any encoder.
pub trait Out: Sink + Debug {}

impl<S: Sink + Debug> Out for S {}

/// How harts are traced.
#[derive(Clone, Debug)]
pub struct Setting<F: Format> {
    /// The port of every hart.
    pub port: PortConfig,
    /// The encoder's settings, and the decoder's.
    pub config: F::Config,
    /// Number of harts.
    pub harts: u32,
    /// Halts, resets, triggers and the like happen.
    pub signals: bool,
    /// The source of the steps loses some.
    pub loses: bool,
}

/// A place where decoding can begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Offset of the message.
    pub at: usize,
    /// Whose it is.
    pub hart: HartId,
}

/// The places in a stream that `sync` knows as such, by the hart they are of.
pub fn points<F: Framing>(
    mut framer: F,
    bytes: &[u8],
    sync: impl Fn(&F::Piece<'_>) -> Option<HartId>,
) -> Vec<Point> {
    let (mut rest, mut points) = (bytes, Vec::new());
    while let Some((at, piece)) = framer.next_piece(&mut rest) {
        if let Some(hart) = sync(&piece) {
            let at = at as usize;
            points.push(Point { at, hart });
        }
    }
    points
}

/// Keeps all events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Events(pub Vec<(HartId, Event)>);

impl Consumer for Events {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        self.0.push((hart, *event));
        ControlFlow::Continue(())
    }
}

impl Gather for Events {
    fn is_full(&self) -> bool {
        self.0.len() > 64
    }
}

/// A trace format.
pub trait Format: Clone + Copy + Debug + Sized + 'static {
    /// Its commands begin with this.
    const NAME: &'static str;

    /// Settings of its encoder and decoder.
    type Config: Clone + Debug + Sync;
    /// Its encoder.
    type Encoder<S: Out>: IngressSink + Debug;
    /// Its decoder.
    type Decoder<'i>: Decode + Debug;
    /// Compares what a trace reports besides control flow.
    type Judge: Judge;

    /// The setting with this number, for code of this instruction set.
    fn setting(number: u64, isa: Isa) -> Setting<Self>;

    /// Makes a program fit for what the setting trusts it with, and the setting
    /// for the program.
    fn tame(setting: &mut Setting<Self>, spec: &mut Spec);

    /// Puts a bound on the work that a few bytes can ask for.
    fn bound(config: &mut Self::Config) {
        let _ = config;
    }

    /// Whether the setting must be changed by [`Format::distrust`] if some
    /// return does not go back to its call.
    fn trusts(config: &Self::Config) -> bool {
        let _ = config;
        false
    }

    /// Returns are no longer trusted.
    fn distrust(config: &mut Self::Config) {
        let _ = config;
    }

    /// Trace may be missing.
    fn has_loss(setting: &Setting<Self>) -> bool;

    /// What is traced and how.
    fn rules(setting: &Setting<Self>) -> Rules;

    /// Who compares the rest.
    fn judge(setting: &Setting<Self>) -> Self::Judge;

    /// The same as settings of any format.
    fn settings(config: &Self::Config) -> Settings;

    /// An encoder.
    ///
    /// # Errors
    ///
    /// Settings that do not make sense.
    fn encoder<S: Out>(config: &Self::Config, out: S) -> Result<Self::Encoder<S>, String>;

    /// What an encoder did.
    fn counters<S: Out>(encoder: &Self::Encoder<S>) -> Counters;

    /// Where its bytes went.
    fn into_out<S: Out>(encoder: Self::Encoder<S>) -> S;

    /// A decoder.
    ///
    /// # Errors
    ///
    /// Settings that do not make sense.
    fn decoder<'i>(config: &Self::Config, image: &'i Image) -> Result<Self::Decoder<'i>, String>;

    /// Whether a start after a loss is among these messages. `lost` is kept
    /// from call to call: a loss was reported and there was no start yet.
    fn restarts(config: &Self::Config, bytes: &[u8], lost: &mut bool) -> bool;

    /// Where decoding can begin.
    fn sync_points(config: &Self::Config, bytes: &[u8]) -> Vec<Point>;

    /// How many syncs later than the second after some damage everything need be right
    /// again: 0 where the boundaries of messages are found before that.
    fn late(config: &Self::Config) -> usize {
        let _ = config;
        0
    }

    /// Length of the message at the front of the bytes.
    fn first_len(config: &Self::Config, bytes: &[u8]) -> usize;

    /// What a message says.
    fn describe(config: &Self::Config, message: &[u8]) -> String;

    /// Which field of which message a bit belongs to: that of a byte in a
    /// stream that starts with a message.
    fn field(config: &Self::Config, bytes: &[u8], at: usize, bit: u32) -> String;

    /// The bytes again in another form that means the same; `None` if there is
    /// none.
    fn rewrite(config: &Self::Config, bytes: &[u8], seed: u64) -> Option<Vec<u8>> {
        let _ = (config, bytes, seed);
        None
    }

    /// An event without what only the start of a stream tells.
    fn plain(config: &Self::Config, event: Event) -> Event;

    /// Both without what the start of decoding tells: the events of a source
    /// from a sync point on, and the end of those of the whole stream.
    fn tails(
        config: &Self::Config,
        tail: Vec<Event>,
        whole: Vec<Event>,
    ) -> (Vec<Event>, Vec<Event>);

    /// Whether the messages must be the same however many instructions a block
    /// has.
    fn is_block_blind(setting: &Setting<Self>) -> bool {
        let _ = setting;
        false
    }
}

/// The settings of a format that are measured.
pub trait Subjects: Format {
    /// The table of ports.
    const TABLE: ItypeTable;

    /// Settings whose traces are damaged, each with a sync now and then, and
    /// what they are called.
    fn damaged(isa: Isa) -> Vec<(&'static str, Self::Config)>;

    /// Settings whose traces are weighed, what they are called, and whether
    /// their speed is measured, too.
    fn measured(isa: Isa) -> Vec<(&'static str, Self::Config, bool)>;
}
