//! Detects whether bytes look like N-Trace, and with which settings.

use alloc::vec::Vec;
use core::fmt;

use hartrace_isa::Xlen;

use crate::{
    Body, Evcode, Fault, Framer, Framing as _, Layout, MAX_SRC_BITS, Message, Piece, Process, Sync,
    TraceMode,
};

/// Bytes that are looked at.
const LOOK: usize = 1 << 20;

/// Messages that are looked at, each with every width of `SRC`.
const MESSAGES: u64 = 40_000;

/// Messages that may come before the first full address where a trace starts:
/// who runs, what was lost.
const START: u64 = 4;

/// The least score of a trace.
const ENOUGH: u8 = 90;

/// What a stream seems to be. As text it gives the reasons:
/// `1024 messages and 0 damaged ones, ...`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guess {
    /// Width of `SRC`.
    pub src_bits: u8,
    /// BTM or HTM, if a message shows it.
    pub mode: Option<TraceMode>,
    /// The messages, or the sync messages at least, have timestamps.
    pub timestamps: bool,
    /// [`Xlen::Rv64`] if a full address has more than 32 bits; without one a
    /// stream of either width looks the same.
    pub xlen: Option<Xlen>,
    /// How sure it is, 90 to 100.
    pub score: u8,
    /// Messages that say something sensible.
    pub messages: u64,
    /// Those that do not, and stretches that are no messages.
    pub damaged: u64,
    /// Sync messages.
    pub syncs: u64,
    /// Sources.
    pub sources: u32,
}

impl fmt::Display for Guess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Guess {
            src_bits, messages, ..
        } = self;
        write!(f, "{messages} messages and {} damaged ones", self.damaged)?;
        write!(f, ", {} with a full address", self.syncs)?;
        match src_bits {
            0 => f.write_str(", no SRC")?,
            _ => write!(f, ", SRC of {src_bits} bits with {} values", self.sources)?,
        }
        f.write_str(match self.mode {
            Some(TraceMode::Btm) => ", direct branches (BTM)",
            Some(TraceMode::Htm) => ", branch history (HTM)",
            None => ", neither branches nor history",
        })?;
        f.write_str(if self.timestamps {
            ", timestamps"
        } else {
            ", no timestamps"
        })?;
        f.write_str(match self.xlen {
            Some(_) => ", 64-bit addresses",
            None => ", no address above 32 bits",
        })
    }
}

/// What the first MiB of a stream looks like; `None` if not like N-Trace. The
/// stream may start inside a message.
#[must_use]
pub fn guess(bytes: &[u8]) -> Option<Guess> {
    let mut rest = bytes.get(..LOOK).unwrap_or(bytes);
    let mut tallies: Vec<Tally> = (0..=MAX_SRC_BITS).map(Tally::new).collect();
    let mut framer = Framer::new();
    let (mut pieces, mut broken) = (0, 0);
    while let Some((at, piece)) = framer.next_piece(&mut rest) {
        match piece {
            Piece::Message(bytes) => {
                tallies.iter_mut().for_each(|t| t.message(bytes));
                pieces += 1;
                if pieces >= MESSAGES {
                    break;
                }
            }
            // A stream that starts inside a message.
            Piece::Bad(..) if at == 0 => {}
            // One end of a message too many is one message; a long stretch is
            // as many as it has room for.
            Piece::Bad(fault, len) => {
                broken += match fault {
                    Fault::Oversize => len.div_ceil(8),
                    _ => len.div_ceil(4),
                };
            }
            Piece::Idle(_) => {}
        }
    }
    let guesses = tallies.iter().filter_map(|t| t.guess(broken));
    // Of equals the one that has the most messages, and then the fewest bits.
    guesses.rev().max_by_key(|g| (g.score, g.messages))
}

/// What the messages say, read with one width of `SRC`.
struct Tally {
    layout: Layout,
    /// Sensible messages, and others.
    good: u64,
    odd: u64,
    /// Sensible ones by source, of sources without a sync message so far, and
    /// whether there was one.
    sources: Vec<(u64, bool)>,
    direct: u64,
    history: u64,
    syncs: u64,
    stamped_syncs: u64,
    stamped: u64,
    high: u64,
    /// Doubts about the first sync message, in points.
    first: u64,
}

impl Tally {
    fn new(src_bits: u8) -> Tally {
        Tally {
            layout: Layout {
                src_bits,
                ..Layout::default()
            },
            good: 0,
            odd: 0,
            sources: Vec::new(),
            direct: 0,
            history: 0,
            syncs: 0,
            stamped_syncs: 0,
            stamped: 0,
            high: 0,
            first: 0,
        }
    }

    fn message(&mut self, bytes: &[u8]) {
        let message = match Message::read(bytes, &self.layout) {
            // Vendor messages are no evidence for or against.
            Ok(Message {
                body: Body::Other { tcode, .. },
                ..
            }) if tcode.is_vendor() => return,
            Ok(message) if sensible(&message.body) => message,
            _ => {
                self.odd += 1;
                return;
            }
        };
        self.good += 1;
        self.stamped += u64::from(message.tstamp.is_some());
        let faddr = match message.body {
            Body::DirectBranch { .. } => {
                self.direct += 1;
                None
            }
            Body::DirectBranchSync { sync, icnt, faddr } => {
                self.direct += 1;
                Some((sync, icnt, faddr))
            }
            Body::ProgTraceSync { sync, icnt, faddr }
            | Body::IndirectBranchSync {
                sync, icnt, faddr, ..
            } => Some((sync, icnt, faddr)),
            Body::IndirectBranchHistSync {
                sync, icnt, faddr, ..
            } => {
                self.history += 1;
                Some((sync, icnt, faddr))
            }
            Body::HistFull { .. }
            | Body::HistRepeat { .. }
            | Body::IndirectBranchHist { .. }
            | Body::ProgTraceCorrelation { hist: Some(_), .. } => {
                self.history += 1;
                None
            }
            _ => None,
        };
        if let Some((sync, icnt, faddr)) = faddr {
            self.sync(sync, icnt, faddr, message.tstamp.is_some());
        }
        self.source(usize::from(message.src), faddr.is_some());
    }

    fn sync(&mut self, sync: Sync, icnt: u64, faddr: u64, stamped: bool) {
        // After other messages it is that of a trace without its start, such as
        // a buffer that wrapped, and comes for any reason.
        if self.syncs == 0 && self.good + self.odd <= START {
            // A trace starts with nothing done, and for a reason.
            let starts = matches!(sync.0, 1 | 3 | 5 | 7 | 9);
            self.first = 3 * u64::from(icnt != 0) + 2 * u64::from(!starts);
        }
        self.syncs += 1;
        self.stamped_syncs += u64::from(stamped);
        self.high += u64::from(faddr >> 31 != 0);
    }

    fn source(&mut self, src: usize, sync: bool) {
        if self.sources.len() <= src {
            self.sources.resize(src + 1, (0, false));
        }
        if let Some((count, synced)) = self.sources.get_mut(src) {
            *count += 1;
            *synced |= sync;
        }
    }

    fn guess(&self, broken: u64) -> Option<Guess> {
        if self.syncs == 0 || self.good < 2 {
            return None;
        }
        // A source without any full address is none.
        let used = self.sources.iter().filter(|s| s.0 > 0);
        let lone: u64 = used.clone().filter(|s| !s.1).map(|s| s.0).sum();
        // Of sync messages all have a timestamp or none (8.7).
        let mixed = self.stamped_syncs.min(self.syncs - self.stamped_syncs);
        let against = lone + mixed;
        let all = self.good + self.odd + broken;
        let share = 100 * self.good.saturating_sub(against) / all;
        // Both modes at once are not one trace.
        let both = self.direct.min(self.history);
        let score = share
            .saturating_sub(self.first)
            .saturating_sub(100 * both / all);
        let score = u8::try_from(score).unwrap_or(0);
        let mode = match (self.direct, self.history) {
            (0, 0) => None,
            (d, h) if h >= d => Some(TraceMode::Htm),
            _ => Some(TraceMode::Btm),
        };
        (score >= ENOUGH).then(|| Guess {
            src_bits: self.layout.src_bits,
            mode,
            timestamps: self.stamped_syncs * 2 > self.syncs,
            xlen: (self.high > 0).then_some(Xlen::Rv64),
            score,
            messages: self.good,
            damaged: self.odd + broken,
            syncs: self.syncs,
            sources: used.count() as u32,
        })
    }
}

/// Whether an encoder would send it.
fn sensible(body: &Body<'_>) -> bool {
    // The reference encoder's counter goes above the 22 bits of table 10.
    let count = |icnt: u64| icnt < 1 << 28;
    // 1.0 has no history of more than 32 bits.
    let history = |hist: u64| hist <= u64::from(u32::MAX);
    let reason = |sync: Sync| !matches!(sync.0, 8 | 10..=13);
    let event = |event: Evcode| matches!(event.0, 0 | 1 | 4 | 8..=15);
    match *body {
        Body::Ownership { process } => Process::from_field(process).is_ok(),
        Body::DirectBranch { icnt } => count(icnt) && icnt > 0,
        Body::IndirectBranch { icnt, .. } => count(icnt),
        Body::Error { etype, ecode } => matches!(etype, 0 | 8..=15) && ecode < 1 << 8,
        Body::ProgTraceSync { sync, icnt, .. }
        | Body::DirectBranchSync { sync, icnt, .. }
        | Body::IndirectBranchSync { sync, icnt, .. } => reason(sync) && count(icnt),
        Body::IcntFull { icnt } => count(icnt) && icnt > 0,
        Body::HistFull { hist } => history(hist) && hist > 1,
        Body::HistRepeat { hist, count } => history(hist) && hist > 1 && count > 0,
        Body::IndirectBranchHist { icnt, hist, .. } => count(icnt) && history(hist),
        Body::IndirectBranchHistSync {
            sync, icnt, hist, ..
        } => reason(sync) && count(icnt) && history(hist),
        Body::RepeatBranch { count } => count > 0,
        Body::ProgTraceCorrelation { evcode, icnt, hist } => {
            event(evcode) && count(icnt) && hist.is_none_or(history)
        }
        Body::Other { .. } => false,
    }
}

#[cfg(test)]
mod tests;
