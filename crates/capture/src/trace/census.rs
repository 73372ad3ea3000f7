//! Counts the contents of a trace of any format.

mod groups;

use super::{Pieces, Settings};
use groups::GroupCount;
use hartrace_etrace as etrace;
use hartrace_flow::tally;
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
    Ntrace(ntrace::Layout, Pieces<ntrace::Framer>, Box<ntrace::Tally>),
    Etrace(etrace::Layout, Pieces<etrace::Framer>, Box<etrace::Tally>),
    Tandem(Box<GroupCount>),
}

impl Counting {
    /// At the start of a stream.
    #[must_use]
    pub fn new(settings: &Settings) -> Counting {
        Counting(match settings {
            Settings::Ntrace(config) => {
                Kinds::Ntrace(config.layout(), Pieces::default(), Box::default())
            }
            Settings::Etrace(config) => {
                Kinds::Etrace(config.layout(), Pieces::default(), Box::default())
            }
            Settings::Tandem(config) => Kinds::Tandem(Box::new(GroupCount::new(config))),
        })
    }

    /// The next bytes of the stream.
    pub fn feed(&mut self, chunk: &[u8]) {
        match &mut self.0 {
            Kinds::Ntrace(layout, pieces, tally) => {
                let _ = pieces.feed(chunk, |at, _, piece| {
                    tally.piece(at, piece, layout);
                    Ok::<(), Never>(())
                });
            }
            Kinds::Etrace(layout, pieces, tally) => {
                let _ = pieces.feed(chunk, |at, _, piece| {
                    tally.piece(at, piece, layout);
                    Ok::<(), Never>(())
                });
            }
            Kinds::Tandem(count) => count.feed(chunk),
        }
    }

    /// The stream ends.
    #[must_use]
    pub fn finish(self) -> Census {
        match self.0 {
            Kinds::Ntrace(layout, mut pieces, mut tally) => {
                let _ = pieces.finish(|at, _, piece| {
                    tally.piece(at, piece, &layout);
                    Ok::<(), Never>(())
                });
                of_ntrace(&tally)
            }
            Kinds::Etrace(layout, mut pieces, mut tally) => {
                let _ = pieces.finish(|at, _, piece| {
                    tally.piece(at, piece, &layout);
                    Ok::<(), Never>(())
                });
                of_etrace(&tally)
            }
            Kinds::Tandem(count) => count.census(),
        }
    }
}

/// Counting does not fail.
enum Never {}

fn of_ntrace(tally: &ntrace::Tally) -> Census {
    let count = |count: tally::Count| Count {
        messages: count.messages,
        bytes: count.bytes,
    };
    let kinds = tally.kinds().map(|(tcode, kind)| KindCount {
        tcode: Some(tcode.0),
        name: tcode.to_string(),
        count: count(kind),
    });
    let faults = tally.faults();
    let faults = faults.map(|(fault, bad)| (fault.code, fault.text, count(bad)));
    let sources = tally.sources().map(|(number, source)| SourceCount {
        number: number.into(),
        all: count(source.all),
        syncs: source.syncs,
        interval: source.interval(),
        longest: source.longest,
    });
    Census {
        kinds: kinds.collect(),
        items: Vec::new(),
        all: count(tally.all()),
        idle: tally.idle,
        stamped: tally.stamped,
        faults: faults.collect(),
        sources: sources.collect(),
        bandwidth: tally.bandwidth.first().map(|first| Bandwidth {
            first,
            slice: tally.bandwidth.slice(),
            bytes: tally.bandwidth.bytes().to_vec(),
        }),
        packets: None,
    }
}

fn of_etrace(tally: &etrace::Tally) -> Census {
    let count = |count: tally::Count| Count {
        messages: count.messages,
        bytes: count.bytes,
    };
    let kinds = tally.kinds().map(|(name, kind)| KindCount {
        tcode: None,
        name: name.to_owned(),
        count: count(kind),
    });
    let faults = tally.faults();
    let faults = faults.map(|(fault, bad)| (fault.code, fault.text, count(bad)));
    let sources = tally.sources().map(|(number, source)| SourceCount {
        number: number.into(),
        all: count(source.all),
        syncs: source.syncs,
        interval: source.interval(),
        longest: source.longest,
    });
    Census {
        kinds: kinds.collect(),
        items: Vec::new(),
        all: count(tally.all()),
        idle: tally.idle,
        stamped: 0,
        faults: faults.collect(),
        sources: sources.collect(),
        bandwidth: None,
        packets: Some(PacketCount {
            branches: tally.extras.branches,
            reasons: tally.extras.reasons,
            data: count(tally.extras.data),
            payload_bits: tally.extras.payload_bits,
            whole_bits: tally.extras.whole_bits,
        }),
    }
}
