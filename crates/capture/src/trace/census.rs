//! Counts the contents of a trace of any format.

mod groups;

use super::{Settings, Warned};
use groups::GroupCount;
use hartrace_etrace as etrace;
use hartrace_flow as flow;
use hartrace_flow::decode::{Framing as _, Onlooker, Protocol};
use hartrace_flow::tally::{self, Tallied, TalliedInParts, Tally};
use hartrace_flow::{Consumer, Reason, Warning};
use hartrace_ntrace as ntrace;
use std::fmt::Debug;

pub use hartrace_etrace::{Branches, Reasons};

/// Messages or packets, and their bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    /// How many.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Count {
    /// Counts more of them.
    pub fn add(&mut self, other: Count) {
        self.messages += other.messages;
        self.bytes += other.bytes;
    }
}

/// What was counted.
#[derive(Clone, Debug, Default)]
pub struct Census {
    /// By type, in the order of their codes.
    pub kinds: Vec<KindCount>,
    /// What groups of a tandem trace consist of.
    pub items: Vec<KindCount>,
    /// All that are good.
    pub all: Count,
    /// Bytes between them.
    pub idle: u64,
    /// Those with a time.
    pub stamped: u64,
    /// What is wrong: code, text, how often.
    pub faults: Vec<(&'static str, &'static str, Count)>,
    /// By source or hart.
    pub sources: Vec<SourceCount>,
    /// Bytes by time.
    pub bandwidth: Option<Bandwidth>,
    /// What packets of E-Trace report besides.
    pub packets: Option<PacketCount>,
    /// What a reader should know of, in the order of its codes.
    pub warnings: Vec<Warned>,
}

impl Census {
    /// All bytes, good and bad.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let bad: u64 = self.faults.iter().map(|fault| fault.2.bytes).sum();
        self.all.bytes + self.idle + bad
    }
}

/// What packets of E-Trace report.
#[derive(Clone, Copy, Debug)]
pub struct PacketCount {
    /// Branches.
    pub branches: Branches,
    /// Why packets were sent.
    pub reasons: Reasons,
    /// Packets of data trace.
    pub data: Count,
    /// Bits of the payloads.
    pub payload_bits: u64,
    /// The same without compression.
    pub whole_bits: u64,
}

/// A kind of messages, packets, groups or items.
#[derive(Clone, Debug)]
pub struct KindCount {
    /// `TCODE` of N-Trace.
    pub tcode: Option<u8>,
    /// Its name.
    pub name: String,
    /// How many.
    pub count: Count,
}

/// A source or a hart.
#[derive(Clone, Debug)]
pub struct SourceCount {
    /// Its number.
    pub number: u32,
    /// All its messages.
    pub all: Count,
    /// Those with a full address.
    pub syncs: u64,
    /// Bytes from one of them to the next, in the mean.
    pub interval: Option<u64>,
    /// The same at most.
    pub longest: u64,
    /// Its trace ends with a message that says so; `None` where the format has
    /// none.
    pub ended: Option<bool>,
}

/// Bytes in slices of time.
#[derive(Clone, Debug)]
pub struct Bandwidth {
    /// The first time.
    pub first: u64,
    /// The length of a slice.
    pub slice: u64,
    /// The bytes in each.
    pub bytes: Vec<u64>,
}

/// Counts the pieces of a stream.
pub struct Counting(Kinds);

enum Kinds {
    Ntrace(Box<MessageCount<ntrace::NTrace>>),
    Etrace(Box<MessageCount<etrace::ETrace>>),
    Tandem(Box<GroupCount>),
}

impl Counting {
    /// At the start of a stream.
    #[must_use]
    pub fn new(settings: &Settings) -> Counting {
        Counting(match settings {
            Settings::Ntrace(config) => Kinds::Ntrace(Box::new(MessageCount::new(config))),
            Settings::Etrace(config) => Kinds::Etrace(Box::new(MessageCount::new(config))),
            Settings::Tandem(config) => Kinds::Tandem(Box::new(GroupCount::new(config))),
        })
    }

    /// The next bytes of the stream.
    pub fn feed(&mut self, chunk: &[u8]) {
        match &mut self.0 {
            Kinds::Ntrace(count) => count.feed(chunk),
            Kinds::Etrace(count) => count.feed(chunk),
            Kinds::Tandem(count) => count.feed(chunk),
        }
    }

    /// Whether parts that were added make up the whole.
    pub(super) const fn is_whole(&self) -> bool {
        match &self.0 {
            Kinds::Ntrace(count) => count.is_whole(),
            Kinds::Etrace(count) => count.is_whole(),
            Kinds::Tandem(_) => true,
        }
    }

    /// What counts messages of N-Trace.
    pub(super) fn ntrace(&mut self) -> Option<&mut MessageCount<ntrace::NTrace>> {
        match &mut self.0 {
            Kinds::Ntrace(count) => Some(count),
            _ => None,
        }
    }

    /// What counts packets of E-Trace.
    pub(super) fn etrace(&mut self) -> Option<&mut MessageCount<etrace::ETrace>> {
        match &mut self.0 {
            Kinds::Etrace(count) => Some(count),
            _ => None,
        }
    }

    /// Adds what was counted in the next part of the stream.
    pub(super) fn append(&mut self, later: PartCount) {
        match (&mut self.0, later) {
            (Kinds::Ntrace(count), PartCount::Ntrace(later)) => count.append(*later),
            (Kinds::Etrace(count), PartCount::Etrace(later)) => count.append(*later),
            // Of another format.
            _ => {}
        }
    }

    /// The stream ends.
    #[must_use]
    pub fn finish(self) -> Census {
        match self.0 {
            Kinds::Ntrace(count) => count.census(),
            Kinds::Etrace(count) => count.census(),
            Kinds::Tandem(count) => count.census(),
        }
    }
}

/// What was counted in a part of a stream.
#[derive(Debug)]
pub(super) enum PartCount {
    Ntrace(Box<MessageCount<ntrace::NTrace>>),
    Etrace(Box<MessageCount<etrace::ETrace>>),
}

/// A format whose messages can be counted while they are decoded.
pub trait Counted: Protocol {
    /// What it counts beside messages.
    type Extras: TalliedInParts<Framer = Self::Framer, Layout: Clone + Debug> + Clone + Debug;
    /// Counts messages while they are decoded.
    type Counter<'t>: Onlooker<Self>;

    /// How messages are laid out.
    fn layout(config: &Self::Config) -> <Self::Extras as Tallied>::Layout;

    /// Nothing counted yet.
    fn extras(config: &Self::Config) -> Self::Extras;

    /// Whether the settings allow to count parts of a stream each for itself.
    fn is_for_parts(config: &Self::Config) -> bool;

    /// What counts while messages are decoded.
    fn counter<'t>(
        tally: &'t mut Tally<Self::Extras>,
        layout: <Self::Extras as Tallied>::Layout,
    ) -> Self::Counter<'t>;

    /// What was counted, up to this offset.
    fn census(tally: &Tally<Self::Extras>, config: &Self::Config, end: u64) -> Census;
}

impl Counted for ntrace::NTrace {
    type Extras = ntrace::Extras;
    type Counter<'t> = ntrace::Counter<'t>;

    fn layout(config: &ntrace::Config) -> ntrace::Layout {
        config.layout()
    }

    fn extras(_: &ntrace::Config) -> ntrace::Extras {
        ntrace::Extras::default()
    }

    /// What a timestamp stands for depends on those before.
    fn is_for_parts(config: &ntrace::Config) -> bool {
        config.timestamps.is_none()
    }

    fn counter(tally: &mut ntrace::Tally, layout: ntrace::Layout) -> ntrace::Counter<'_> {
        ntrace::Counter::new(tally, layout)
    }

    fn census(tally: &ntrace::Tally, config: &ntrace::Config, end: u64) -> Census {
        of_ntrace(tally, config, end)
    }
}

impl Counted for etrace::ETrace {
    type Extras = etrace::Extras;
    type Counter<'t> = etrace::Counter<'t>;

    fn layout(config: &etrace::Config) -> etrace::Layout {
        config.layout()
    }

    fn extras(config: &etrace::Config) -> etrace::Extras {
        etrace::Extras::of(config)
    }

    /// What a response of data trace is depends on the requests before.
    fn is_for_parts(config: &etrace::Config) -> bool {
        config.data_layout().is_none_or(|layout| !layout.is_split())
    }

    fn counter(tally: &mut etrace::Tally, layout: etrace::Layout) -> etrace::Counter<'_> {
        etrace::Counter::new(tally, layout)
    }

    fn census(tally: &etrace::Tally, _: &etrace::Config, end: u64) -> Census {
        of_etrace(tally, end)
    }
}

/// Counts messages: those it is given, or those that are decoded.
#[derive(Clone, Debug)]
pub struct MessageCount<P: Counted> {
    config: P::Config,
    layout: <P::Extras as Tallied>::Layout,
    framer: P::Framer,
    tally: Tally<P::Extras>,
    /// The state with which parts of the stream begin that are counted each for itself.
    usual: <P::Extras as TalliedInParts>::State,
    /// What was appended does not add up.
    broken: bool,
}

impl<P: Counted> MessageCount<P> {
    fn new(config: &P::Config) -> MessageCount<P> {
        MessageCount {
            layout: P::layout(config),
            framer: P::framer(config),
            tally: Tally::new(P::extras(config)),
            usual: Default::default(),
            broken: false,
            config: config.clone(),
        }
    }

    /// One for parts of a stream that starts with these bytes, which say how messages are
    /// read; `None` if parts cannot be counted each for itself.
    pub(super) fn for_parts(&self, start: &[u8]) -> Option<Box<MessageCount<P>>> {
        if !P::is_for_parts(&self.config) {
            return None;
        }
        let mut first = MessageCount::<P>::new(&self.config);
        first.feed(start);
        let mut count = MessageCount::new(&self.config);
        count.usual = first.tally.extras.state();
        Some(Box::new(count))
    }

    /// Begins anew, where this decoder is.
    pub(super) fn begin(&mut self, decoder: &flow::decode::Decoder<'_, P>) {
        self.framer.clone_from(decoder.framer());
        self.tally = Tally::new(P::extras(&self.config));
        if decoder.position() > 0 {
            self.tally.extras.set_state(&self.usual);
        }
    }

    /// Adds what was counted in the part of the stream after this one.
    pub(super) fn append(&mut self, later: MessageCount<P>) {
        let begins = self.framer.position() == 0;
        self.broken |= !begins && self.tally.extras.state() != later.usual;
        // Bytes by time would have to be added up, and times depend on those before.
        self.broken |= later.tally.bandwidth.first().is_some();
        self.framer = later.framer;
        self.tally.append(later.tally);
    }

    /// Whether what was appended adds up.
    const fn is_whole(&self) -> bool {
        !self.broken
    }

    fn feed(&mut self, chunk: &[u8]) {
        self.tally.feed(&mut self.framer, chunk, &self.layout);
    }

    /// Counts the messages that this decoder decodes.
    pub(super) fn decode<C: Consumer>(
        &mut self,
        decoder: &mut flow::decode::Decoder<'_, P>,
        bytes: &[u8],
        out: &mut C,
    ) -> usize {
        let mut counter = P::counter(&mut self.tally, self.layout.clone());
        let used = decoder.feed_before(bytes, out, &mut counter);
        drop(counter);
        self.framer.clone_from(decoder.framer());
        used
    }

    fn census(mut self) -> Census {
        self.tally.finish(&mut self.framer, &self.layout);
        P::census(&self.tally, &self.config, self.framer.position())
    }
}

fn of_ntrace(tally: &ntrace::Tally, config: &ntrace::Config, end: u64) -> Census {
    let mut warnings = tally.extras.others(config);
    if config.ending == ntrace::Ending::Correlation {
        warnings.extend(unended(
            tally.sources(),
            ntrace::Fault::NoEnd.reason(0),
            end,
        ));
    }
    let kinds = tally.kinds().map(|(tcode, kind)| KindCount {
        tcode: Some(tcode.0),
        name: tcode.to_string(),
        count: count_of(kind),
    });
    Census {
        stamped: tally.stamped,
        bandwidth: tally.bandwidth.first().map(|first| Bandwidth {
            first,
            slice: tally.bandwidth.slice(),
            bytes: tally.bandwidth.bytes().to_vec(),
        }),
        ..shared(tally, kinds.collect(), warnings)
    }
}

fn of_etrace(tally: &etrace::Tally, end: u64) -> Census {
    let mut warnings: Vec<(Warning, u64)> = tally.warnings().collect();
    warnings.extend(unended(
        tally.sources(),
        etrace::Fault::NoEnd.reason(0),
        end,
    ));
    let kinds = tally.kinds().map(|(name, kind)| KindCount {
        tcode: None,
        name: name.to_string(),
        count: count_of(kind),
    });
    Census {
        packets: Some(PacketCount {
            branches: tally.extras.branches,
            reasons: tally.extras.reasons,
            data: count_of(tally.extras.data),
            payload_bits: tally.extras.payload_bits,
            whole_bits: tally.extras.whole_bits,
        }),
        ..shared(tally, kinds.collect(), warnings)
    }
}

const fn count_of(count: tally::Count) -> Count {
    Count {
        messages: count.messages,
        bytes: count.bytes,
    }
}

/// What is counted in every format with messages from sources.
fn shared<T: tally::Tallied>(
    tally: &tally::Tally<T>,
    kinds: Vec<KindCount>,
    warnings: Vec<(Warning, u64)>,
) -> Census {
    let faults = tally.faults();
    let faults = faults.map(|(fault, bad)| (fault.code, fault.text, count_of(bad)));
    let sources = tally.sources().map(|(number, source)| SourceCount {
        number: number.into(),
        all: count_of(source.all),
        syncs: source.syncs,
        interval: source.interval(),
        longest: source.longest,
        ended: Some(source.ended),
    });
    Census {
        kinds,
        items: Vec::new(),
        all: count_of(tally.all()),
        idle: tally.idle,
        stamped: 0,
        faults: faults.collect(),
        sources: sources.collect(),
        bandwidth: None,
        packets: None,
        warnings: warned(warnings),
    }
}

/// Sources that are still being traced where the bytes end.
fn unended(
    sources: impl Iterator<Item = (u16, tally::SourceCount)>,
    reason: Reason,
    end: u64,
) -> Option<(Warning, u64)> {
    let open = sources.filter(|(_, source)| source.syncs > 0 && !source.ended);
    let count = open.count() as u64;
    let warning = Warning {
        at: end,
        reason,
        is_loss: true,
    };
    (count > 0).then_some((warning, count))
}

fn warned(warnings: Vec<(Warning, u64)>) -> Vec<Warned> {
    let warnings = warnings.into_iter();
    warnings
        .map(|(first, count)| Warned { first, count })
        .collect()
}
