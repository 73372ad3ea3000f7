//! Counts the contents of a trace of any format.

mod groups;

use super::{Settings, Warned};
use groups::GroupCount;
use hartrace_etrace as etrace;
use hartrace_flow::decode::Framing as _;
use hartrace_flow::{Consumer, Reason, Warning, tally};
use hartrace_ntrace as ntrace;

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
    Ntrace(Box<MessageCount>),
    Etrace(Box<(etrace::Layout, etrace::Framer, etrace::Tally)>),
    Tandem(Box<GroupCount>),
}

impl Counting {
    /// At the start of a stream.
    #[must_use]
    pub fn new(settings: &Settings) -> Counting {
        Counting(match settings {
            Settings::Ntrace(config) => Kinds::Ntrace(Box::new(MessageCount::new(config.clone()))),
            Settings::Etrace(config) => {
                let tally = etrace::Tally::new(etrace::Extras::of(config));
                let framer = etrace::Framer::of(config.encapsulation);
                Kinds::Etrace(Box::new((config.layout(), framer, tally)))
            }
            Settings::Tandem(config) => Kinds::Tandem(Box::new(GroupCount::new(config))),
        })
    }

    /// The next bytes of the stream.
    pub fn feed(&mut self, chunk: &[u8]) {
        match &mut self.0 {
            Kinds::Ntrace(count) => count.feed(chunk),
            Kinds::Etrace(all) => {
                let (layout, framer, tally) = &mut **all;
                tally.feed(framer, chunk, layout);
            }
            Kinds::Tandem(count) => count.feed(chunk),
        }
    }

    /// Whether parts of the stream can be counted each for itself.
    pub(super) fn is_for_parts(&self) -> bool {
        matches!(&self.0, Kinds::Ntrace(count) if count.is_for_parts())
    }

    /// What counts messages of N-Trace.
    pub(super) fn messages(&mut self) -> Option<&mut MessageCount> {
        match &mut self.0 {
            Kinds::Ntrace(count) => Some(count),
            _ => None,
        }
    }

    /// The stream ends.
    #[must_use]
    pub fn finish(self) -> Census {
        match self.0 {
            Kinds::Ntrace(count) => count.census(),
            Kinds::Etrace(all) => {
                let (layout, mut framer, mut tally) = *all;
                tally.finish(&mut framer, &layout);
                of_etrace(&tally, framer.position())
            }
            Kinds::Tandem(count) => count.census(),
        }
    }
}

/// Counts messages of N-Trace: those it is given, or those that are decoded.
#[derive(Clone, Debug)]
pub struct MessageCount {
    config: ntrace::Config,
    framer: ntrace::Framer,
    tally: ntrace::Tally,
}

impl MessageCount {
    fn new(config: ntrace::Config) -> MessageCount {
        MessageCount {
            config,
            framer: ntrace::Framer::default(),
            tally: ntrace::Tally::default(),
        }
    }

    /// Whether parts of the stream can be counted each for itself: what a timestamp stands
    /// for depends on the ones before.
    pub(super) fn is_for_parts(&self) -> bool {
        self.config.timestamps.is_none() && self.tally.stamped == 0
    }

    /// Begins anew, where this decoder is.
    pub(super) fn begin(&mut self, decoder: &ntrace::Decoder<'_>) {
        self.framer.clone_from(decoder.framer());
        self.tally = ntrace::Tally::default();
    }

    /// What was counted in the part of the stream after this one.
    pub(super) fn append(&mut self, later: MessageCount) {
        self.tally.stamped += later.tally.stamped;
        self.framer = later.framer;
        self.tally.append(later.tally);
    }

    fn feed(&mut self, chunk: &[u8]) {
        let layout = self.config.layout();
        self.tally.feed(&mut self.framer, chunk, &layout);
    }

    /// Counts the messages that this decoder decodes.
    pub(super) fn decode<C: Consumer>(
        &mut self,
        decoder: &mut ntrace::Decoder<'_>,
        bytes: &[u8],
        out: &mut C,
    ) -> usize {
        let mut counter = ntrace::Counter::new(&mut self.tally, self.config.layout());
        let used = decoder.feed_before(bytes, out, &mut counter);
        self.framer.clone_from(decoder.framer());
        used
    }

    fn census(mut self) -> Census {
        let layout = self.config.layout();
        self.tally.finish(&mut self.framer, &layout);
        of_ntrace(&self.tally, &self.config, self.framer.position())
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
