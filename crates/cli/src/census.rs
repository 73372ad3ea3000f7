//! What a trace is made of, whatever its format.

use crate::census_tandem::GroupCount;
use hartrace_capture::trace::{Pieces, Settings};
use hartrace_etrace as etrace;
use hartrace_flow::tally;
use hartrace_ntrace as ntrace;

/// Messages or packets, and their bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Count {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

impl Count {
    pub(crate) fn add(&mut self, other: Count) {
        self.messages += other.messages;
        self.bytes += other.bytes;
    }
}

/// What was counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Census {
    /// By type, in the order of their codes.
    pub(crate) kinds: Vec<Kind>,
    /// What groups of a tandem trace consist of.
    pub(crate) items: Vec<Kind>,
    /// All that are good.
    pub(crate) all: Count,
    /// Bytes between them.
    pub(crate) idle: u64,
    /// Those with a time.
    pub(crate) stamped: u64,
    /// What is wrong: code, text, how often.
    pub(crate) faults: Vec<(&'static str, &'static str, Count)>,
    pub(crate) sources: Vec<Source>,
    /// Bytes by time.
    pub(crate) bandwidth: Option<Bandwidth>,
    /// What packets of E-Trace tell besides.
    pub(crate) packets: Option<Packets>,
}

impl Census {
    /// All bytes, good and bad.
    pub(crate) fn bytes(&self) -> u64 {
        let bad: u64 = self.faults.iter().map(|fault| fault.2.bytes).sum();
        self.all.bytes + self.idle + bad
    }
}

/// What packets of E-Trace tell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packets {
    pub(crate) branches: etrace::Branches,
    pub(crate) reasons: etrace::Reasons,
    /// Packets of data trace.
    pub(crate) data: Count,
    /// Bits of the payloads, and without compression.
    pub(crate) payload_bits: u64,
    pub(crate) whole_bits: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Kind {
    /// `TCODE` of N-Trace.
    pub(crate) tcode: Option<u8>,
    pub(crate) name: String,
    pub(crate) count: Count,
}

#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) number: u32,
    pub(crate) all: Count,
    /// Those with a full address.
    pub(crate) syncs: u64,
    /// Bytes from one of them to the next, in the mean and at most.
    pub(crate) interval: Option<u64>,
    pub(crate) longest: u64,
}

/// Bytes in slices of time.
#[derive(Clone, Debug)]
pub(crate) struct Bandwidth {
    pub(crate) first: u64,
    pub(crate) slice: u64,
    pub(crate) bytes: Vec<u64>,
}

/// Counts the pieces of a stream.
pub(crate) enum Counting {
    Ntrace(ntrace::Layout, Pieces<ntrace::Framer>, Box<ntrace::Tally>),
    Etrace(etrace::Layout, Pieces<etrace::Framer>, Box<etrace::Tally>),
    Tandem(Box<GroupCount>),
}

impl Counting {
    pub(crate) fn new(settings: &Settings) -> Counting {
        match settings {
            Settings::Ntrace(config) => {
                Counting::Ntrace(config.layout(), Pieces::default(), Box::default())
            }
            Settings::Etrace(config) => {
                Counting::Etrace(config.layout(), Pieces::default(), Box::default())
            }
            Settings::Tandem(config) => Counting::Tandem(Box::new(GroupCount::new(config))),
        }
    }

    /// The next bytes of the stream.
    pub(crate) fn feed(&mut self, chunk: &[u8]) {
        match self {
            Counting::Ntrace(layout, pieces, tally) => {
                let _ = pieces.feed(chunk, |at, _, piece| {
                    tally.piece(at, piece, layout);
                    Ok::<(), Never>(())
                });
            }
            Counting::Etrace(layout, pieces, tally) => {
                let _ = pieces.feed(chunk, |at, _, piece| {
                    tally.piece(at, piece, layout);
                    Ok::<(), Never>(())
                });
            }
            Counting::Tandem(count) => count.feed(chunk),
        }
    }

    /// The stream ends.
    pub(crate) fn finish(self) -> Census {
        match self {
            Counting::Ntrace(layout, mut pieces, mut tally) => {
                let _ = pieces.finish(|at, _, piece| {
                    tally.piece(at, piece, &layout);
                    Ok::<(), Never>(())
                });
                of_ntrace(&tally)
            }
            Counting::Etrace(layout, mut pieces, mut tally) => {
                let _ = pieces.finish(|at, _, piece| {
                    tally.piece(at, piece, &layout);
                    Ok::<(), Never>(())
                });
                of_etrace(&tally)
            }
            Counting::Tandem(count) => count.census(),
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
    let kinds = tally.kinds().map(|(tcode, kind)| Kind {
        tcode: Some(tcode.0),
        name: tcode.to_string(),
        count: count(kind),
    });
    let faults = tally.faults();
    let faults = faults.map(|(fault, bad)| (fault.code, fault.text, count(bad)));
    let sources = tally.sources().map(|(number, source)| Source {
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
    let kinds = tally.kinds().map(|(name, kind)| Kind {
        tcode: None,
        name: name.to_owned(),
        count: count(kind),
    });
    let faults = tally.faults();
    let faults = faults.map(|(fault, bad)| (fault.code, fault.text, count(bad)));
    let sources = tally.sources().map(|(number, source)| Source {
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
        packets: Some(Packets {
            branches: tally.extras.branches,
            reasons: tally.extras.reasons,
            data: count(tally.extras.data),
            payload_bits: tally.extras.payload_bits,
            whole_bits: tally.extras.whole_bits,
        }),
    }
}
