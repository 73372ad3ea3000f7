//! Counts the contents of a tandem trace.

use super::{Census, Count, KindCount, SourceCount};
use crate::trace::{GroupPiece, Groups, StreamPiece, Streams, items};
use hartrace_flow::HartId;
use hartrace_tandem::{self as tandem, Config, Fault, NewPc, Piece, Tally};

/// Counts the groups of all harts.
pub(super) struct GroupCount {
    config: Config,
    streams: Streams,
    harts: Vec<Hart>,
    counted: Counted,
}

struct Hart {
    id: HartId,
    groups: Groups,
    source: Whole,
}

/// What is counted for all together.
#[derive(Default)]
struct Counted {
    tally: Tally,
    all: Count,
    /// Ends of groups that never began.
    stray: u64,
    stamped: u64,
    faults: Vec<(Fault, Count)>,
}

/// Groups with a whole pc.
#[derive(Default)]
struct Whole {
    all: Count,
    number: u64,
    /// Where the first and the last were, and the longest distance between two.
    first: Option<u64>,
    last: u64,
    longest: u64,
}

/// Counting does not fail.
enum Never {}

impl GroupCount {
    pub(super) fn new(config: &Config) -> GroupCount {
        GroupCount {
            config: config.clone(),
            streams: Streams::default(),
            harts: Vec::new(),
            counted: Counted::default(),
        }
    }

    /// The next bytes of the file.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        let mut streams = std::mem::take(&mut self.streams);
        let _ = streams.feed(bytes, |piece| {
            self.piece(piece);
            Ok::<(), Never>(())
        });
        self.streams = streams;
    }

    fn piece(&mut self, piece: StreamPiece<'_>) {
        let GroupCount {
            config,
            harts,
            counted,
            ..
        } = self;
        let (id, bytes) = match piece {
            StreamPiece::Lost(problem) => return counted.fault(problem.fault, 0),
            StreamPiece::Bytes(hart, bytes) => (hart, bytes),
        };
        if !harts.iter().any(|hart| hart.id == id) {
            harts.push(Hart {
                id,
                groups: Groups::new(config.clone()),
                source: Whole::default(),
            });
        }
        let Some(Hart { groups, source, .. }) = harts.iter_mut().find(|hart| hart.id == id) else {
            return;
        };
        let _ = groups.feed(bytes, |at, bytes, piece| {
            counted.piece(at, bytes, piece, config, source);
            Ok::<(), Never>(())
        });
    }

    /// The file ends.
    pub(super) fn census(mut self) -> Census {
        let mut streams = std::mem::take(&mut self.streams);
        let _ = streams.finish(|piece| {
            self.piece(piece);
            Ok::<(), Never>(())
        });
        let GroupCount {
            config,
            mut harts,
            mut counted,
            ..
        } = self;
        for Hart { groups, source, .. } in &mut harts {
            let _ = groups.finish(|at, bytes, piece| {
                counted.piece(at, bytes, piece, &config, source);
                Ok::<(), Never>(())
            });
        }
        let kind = |name: &str, count: tandem::Count| KindCount {
            tcode: None,
            name: name.to_owned(),
            count: Count {
                messages: count.number,
                bytes: count.bytes,
            },
        };
        let tally = &counted.tally;
        let faults = counted.faults.iter();
        Census {
            kinds: tally.groups().map(|(k, n)| kind(k.name(), n)).collect(),
            items: tally.items().map(|(name, n)| kind(name, n)).collect(),
            all: counted.all,
            idle: counted.stray,
            stamped: counted.stamped,
            faults: faults
                .map(|(fault, count)| (fault.code(), fault.text(), *count))
                .collect(),
            sources: harts.iter().map(Hart::source).collect(),
            bandwidth: None,
            packets: None,
        }
    }
}

impl Hart {
    fn source(&self) -> SourceCount {
        let whole = &self.source;
        let distance = whole.last - whole.first.unwrap_or(whole.last);
        SourceCount {
            number: self.id.0,
            all: whole.all,
            syncs: whole.number,
            interval: distance.checked_div(whole.number.saturating_sub(1)),
            longest: whole.longest,
        }
    }
}

impl Counted {
    fn fault(&mut self, fault: Fault, bytes: u64) {
        let one = Count { messages: 1, bytes };
        match self.faults.iter_mut().find(|f| f.0 == fault) {
            Some((_, count)) => count.add(one),
            None => self.faults.push((fault, one)),
        }
    }

    fn piece(
        &mut self,
        at: u64,
        bytes: &[u8],
        piece: &GroupPiece<'_>,
        config: &Config,
        source: &mut Whole,
    ) {
        let length = bytes.len() as u64;
        let group = match piece {
            GroupPiece::Stray => return self.stray += length,
            GroupPiece::Bad(problem) => return self.fault(problem.fault, length),
            GroupPiece::Group(group) => group,
        };
        for (from, length, item) in items(bytes, config) {
            self.tally
                .piece(&Piece::Item(item, at + from as u64, length));
        }
        let whole = Piece::Group(group.kind(config.xlen), group.number, at, length);
        self.tally.piece(&whole);
        let one = Count {
            messages: 1,
            bytes: length,
        };
        self.all.add(one);
        source.all.add(one);
        self.stamped += u64::from(group.mtime.is_some());
        if matches!(group.pc, Some(NewPc::To(_) | NewPc::FromTo(..))) {
            source.number += 1;
            match source.first {
                None => source.first = Some(at),
                Some(_) => source.longest = source.longest.max(at - source.last),
            }
            source.last = at;
        }
    }
}
