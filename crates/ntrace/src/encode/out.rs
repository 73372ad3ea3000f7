//! Prepares the messages of one hart for the queue: RepeatBranch, timestamps,
//! loss.

use hartrace_flow::encode::{Gathered, Outlet, SHORT};

use super::{Counters, Sink};
use crate::fields::{EMPTY, Room};
use crate::message::quick;
use crate::{Body, Btype, Config, Layout, Message, Timestamps, TraceMode};

/// A branch message without sync, as far as RepeatBranch compares it (7.11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Branch {
    /// `None` for a direct branch.
    pub(super) btype: Option<Btype>,
    pub(super) icnt: u64,
    /// Where it went. The same target, not the same `U-ADDR`: that would be 0
    /// the second time.
    pub(super) target: u64,
}

/// Packs messages and hands them on.
#[derive(Clone, Debug)]
pub(super) struct Out {
    src: u16,
    layout: Layout,
    timestamps: Option<Timestamps>,
    /// Messages are of the form that [`quick::jump`] writes.
    quick: bool,
    /// Those that were written lately.
    jumps: quick::Jumps,
    /// Largest `B-CNT`.
    max_repeat: u64,
    /// The value of the last timestamp sent.
    last_stamp: u64,
    outlet: Outlet,
    /// What has been lost and not yet reported: `ECODE`, and when.
    lost: Option<(u64, u64)>,
    /// The branch message just sent.
    before: Option<Branch>,
    /// How often it came again, and when it did so last.
    again: u64,
    again_time: u64,
    /// Messages since the last sync.
    pub(super) since_sync: u64,
}

/// `ECODE` of lost program trace messages.
const PROGRAM_LOST: u64 = 1 << 2;
/// `ECODE` of lost Ownership messages.
const OWNERSHIP_LOST: u64 = 1 << 3;

impl Out {
    pub(super) fn new(config: &Config, src: u16) -> Out {
        Out {
            src,
            layout: config.layout(),
            timestamps: config.timestamps,
            quick: quick::is_plain(&config.layout()) && config.timestamps.is_none(),
            jumps: quick::Jumps::new(),
            max_repeat: match config.bcnt_bits {
                0 | 64.. => u64::MAX,
                bits => (1 << bits) - 1,
            },
            last_stamp: 0,
            outlet: Outlet::new(config.queue, reserve(config)),
            lost: None,
            before: None,
            again: 0,
            again_time: 0,
            since_sync: 0,
        }
    }

    /// Sends a message about something that happened at this time.
    #[inline(never)]
    pub(super) fn send(&mut self, body: Body<'_>, time: u64, sink: &mut impl Sink) {
        self.flush(sink);
        self.before = None;
        self.emit(body, time, sink);
    }

    /// Sends a branch message, which may be repeated if `branch` says what it is.
    /// Always part of the caller, which has just made the body.
    #[inline(always)]
    pub(super) fn send_branch(
        &mut self,
        body: Body<'_>,
        branch: Option<Branch>,
        time: u64,
        sink: &mut impl Sink,
    ) {
        if self.again > 0 {
            self.flush(sink);
        }
        self.emit(body, time, sink);
        self.before = branch;
    }

    /// The same for a jump or trap: `B-TYPE`, `I-CNT` and `U-ADDR`.
    #[inline(always)]
    pub(super) fn send_jump(
        &mut self,
        config: &Config,
        (btype, icnt, uaddr): (Btype, u64, u64),
        hist: u64,
        branch: Option<Branch>,
        time: u64,
        sink: &mut impl Sink,
    ) {
        let short = is_short(config, hist);
        if self.quick
            && let Some(word) = quick::jump(btype, icnt, uaddr, (hist, short))
        {
            self.send_word(word, branch, time, sink);
        } else {
            let body = jump_body((btype, icnt, uaddr), (hist, short));
            self.send_branch(body, branch, time, sink);
        }
    }

    /// A branch message of at most eight bytes, as it is sent.
    #[inline(always)]
    fn send_word(
        &mut self,
        (word, len): (u64, usize),
        branch: Option<Branch>,
        time: u64,
        sink: &mut impl Sink,
    ) {
        if self.again > 0 {
            self.flush(sink);
        }
        self.before = branch;
        let bytes = u128::from(word).to_le_bytes();
        if self.outlet.send_short((&bytes, len), 0, time, sink) {
            self.since_sync += 1;
        } else {
            self.lose(PROGRAM_LOST, time);
        }
    }

    /// Adds an indirect jump to messages that are sent later ([`Out::send_gathered`]),
    /// with the number of halfwords, the difference of addresses, and `HIST` unless that is
    /// short enough to be left out. Where messages are not repeated, and there is no queue.
    #[inline(always)]
    pub(super) fn gather_jump(
        &mut self,
        jump @ (icnt, uaddr, hist): (u64, u64, u64),
        is_short: impl Fn(u64) -> bool,
        time: impl FnOnce() -> u64,
        gathered: &mut Gathered,
    ) {
        if self.quick
            && let Some((word, len)) = self.jumps.write(jump, &is_short)
        {
            gathered.push_short(word.into(), len, 0);
        } else {
            let body = jump_body((Btype::Indirect, icnt, uaddr), (hist, is_short(hist)));
            self.gather(body, time(), gathered);
        }
    }

    /// The same for a full history of at most 32 bits.
    #[inline(never)]
    pub(super) fn gather_hist(&mut self, hist: u64, time: u64, gathered: &mut Gathered) {
        if self.quick {
            let (word, len) = quick::hist_full(hist);
            gathered.push_short(word.into(), len, 0);
        } else {
            self.gather(Body::HistFull { hist }, time, gathered);
        }
    }

    #[inline(never)]
    fn gather(&mut self, body: Body<'_>, time: u64, gathered: &mut Gathered) {
        let (room, len, stamp) = self.pack(body, time);
        gathered.push(room.get(..len).unwrap_or_default(), 0);
        self.last_stamp = stamp.unwrap_or(self.last_stamp);
    }

    /// Sends what was gathered.
    #[inline]
    pub(super) fn send_gathered(&mut self, gathered: &mut Gathered, sink: &mut impl Sink) {
        self.since_sync += gathered.messages();
        self.outlet.send_gathered(gathered, sink);
    }

    /// Whether the branch message is the one just sent; it is counted then.
    pub(super) fn is_again(&mut self, branch: Branch, time: u64, sink: &mut impl Sink) -> bool {
        if self.before != Some(branch) {
            return false;
        }
        self.again += 1;
        self.again_time = time;
        if self.again == self.max_repeat {
            self.flush(sink);
        }
        true
    }

    /// Sends the repetitions counted so far.
    #[inline(never)]
    pub(super) fn flush(&mut self, sink: &mut impl Sink) {
        let count = core::mem::take(&mut self.again);
        if count > 0 {
            self.emit(Body::RepeatBranch { count }, self.again_time, sink);
        }
    }

    #[inline(always)]
    fn emit(&mut self, body: Body<'_>, time: u64, sink: &mut impl Sink) {
        let (room, len, stamp) = self.pack(body, time);
        let sent = match room.first_chunk() {
            Some(short) if len <= SHORT => self.outlet.send_short((short, len), 0, time, sink),
            _ => {
                let bytes = room.get(..len).unwrap_or_default();
                self.outlet.send(bytes, 0, time, sink)
            }
        };
        if !sent {
            let kind = match body {
                Body::Ownership { .. } => OWNERSHIP_LOST,
                _ => PROGRAM_LOST,
            };
            self.lose(kind, time);
            return;
        }
        self.last_stamp = stamp.unwrap_or(self.last_stamp);
        self.since_sync += 1;
    }

    /// A message: its bytes, how many they are, and the value of its timestamp.
    #[inline(always)]
    fn pack(&self, body: Body<'_>, time: u64) -> (Room, usize, Option<u64>) {
        let stamp = self.stamp(&body, self.outlet.time(time));
        let message = Message {
            src: self.src,
            body,
            tstamp: stamp.map(|(field, _)| field),
        };
        let mut room = EMPTY;
        let len = message.pack(&self.layout, &mut room);
        (room, len, stamp.map(|(_, value)| value))
    }

    /// `TSTAMP` and the value it stands for (8.7).
    #[inline(always)]
    fn stamp(&self, body: &Body<'_>, time: u64) -> Option<(u64, u64)> {
        let ts = self.timestamps?;
        let mask = u64::MAX >> (64 - u32::from(ts.width.clamp(1, 64)));
        let value = time >> (2 * u32::from(ts.prescale & 3)) & mask;
        if body.tcode().is_sync() {
            Some((value, value))
        } else if ts.sync_only {
            None
        } else {
            Some((value.wrapping_sub(self.last_stamp) & mask, value))
        }
    }

    #[cold]
    fn lose(&mut self, bit: u64, time: u64) {
        let (ecode, first) = self.lost.unwrap_or((0, time));
        self.lost = Some((ecode | bit, first));
    }

    /// The source itself lost what should have been reported.
    pub(super) fn lost_input(&mut self, context: bool, time: u64) {
        let bits = PROGRAM_LOST | if context { OWNERSHIP_LOST } else { 0 };
        let (ecode, first) = self.lost.unwrap_or((0, time));
        self.lost = Some((ecode | bits, first));
    }

    /// Whether messages are being dropped.
    #[inline]
    pub(super) const fn is_dropping(&self) -> bool {
        self.outlet.is_dropping()
    }

    /// Whether a loss has not been reported yet.
    pub(super) const fn has_loss(&self) -> bool {
        self.lost.is_some()
    }

    /// Whether Error and a new start fit into the queue again.
    pub(super) fn has_room(&mut self, time: u64) -> bool {
        self.outlet.has_room(time)
    }

    /// Reports what was lost, with the time when it began (7.4). Whether there
    /// was anything.
    pub(super) fn report_loss(&mut self, sink: &mut impl Sink) -> bool {
        self.outlet.recover();
        let Some((ecode, time)) = self.lost.take() else {
            return false;
        };
        // Repetitions of a message that is lost are lost with it.
        self.again = 0;
        self.send(Body::Error { etype: 0, ecode }, time, sink);
        true
    }

    /// Nothing follows.
    pub(super) fn end(&mut self) {
        self.outlet.end();
    }

    /// What was sent and lost.
    pub(super) const fn counters(&self) -> Counters {
        self.outlet.counters()
    }
}

/// The message of a jump; `short` if it is without the history.
#[inline(always)]
fn jump_body((btype, icnt, uaddr): (Btype, u64, u64), (hist, short): (u64, bool)) -> Body<'static> {
    match short {
        true => Body::IndirectBranch { btype, icnt, uaddr },
        false => Body::IndirectBranchHist {
            btype,
            icnt,
            uaddr,
            hist,
        },
    }
}

/// Bytes of the longest Error, ProgTraceSync and Ownership messages: what goes
/// first after a loss.
fn reserve(config: &Config) -> u32 {
    let bytes = |bits: u32| bits.div_ceil(6);
    let head = 6 + u32::from(config.src_bits);
    let stamp = config.timestamps.map_or(0, |t| bytes(u32::from(t.width)));
    let error = bytes(head + 4 + 4);
    let sync = bytes(head + 4 + 1) + bytes(config.xlen.bits());
    let owner = bytes(head + 5 + 32);
    let owners = match (config.context, config.hcontext) {
        (false, _) => 0,
        (true, false) => 1,
        (true, true) => 2,
    };
    error + sync + owners * owner + (2 + owners) * stamp
}

/// Whether a jump's message has no `HIST`.
pub(super) fn is_short(config: &Config, hist: u64) -> bool {
    (config.mode == TraceMode::Btm) | ((hist == 1) & config.short_indirect)
}
