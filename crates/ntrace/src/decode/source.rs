//! One source of messages: the state of its decoding.

use hartrace_flow::decode::{self, Clock, Phase, Source as _, Track, TrackState};
use hartrace_flow::{
    Blocks, Consumer, Context, Event, History, Mark, NotTaken, Ownership, Reason, Remember, Report,
    ReturnStack, Stop, Swaps,
};

use super::end::{End, Trouble, outcomes, reason};
use super::sync::{FullAddress, start_mark, stop_mark, trap};
use super::{Ctx, NTrace, Settings};
use crate::message::quick;
use crate::{
    Body, Btype, Ending, Fault, ImplicitReturn, Message, OtherTcodes, Owner, Process, Sync, Tcode,
    Timestamps, TraceMode, Version,
};

/// Calls that a decoder remembers. Encoders keep 32 at most; more does no
/// harm, because a return that the encoder could not leave out ends a stretch.
const STACK: usize = 1024;

/// One source.
#[derive(Debug)]
pub struct Source {
    pub(super) track: Track,
    /// The address sent last, which `U-ADDR` is relative to.
    reference: u64,
    /// Halfwords counted (`RCODE` = 0) but not walked.
    pub(super) owed: u64,
    /// Halfwords walked (`RCODE` = 1 and 2) but not counted.
    pub(super) ahead: u64,
    /// What RepeatBranch repeats.
    last: Option<Last>,
    clock: Clock,
    context: Option<Context>,
    /// A full address, and where there are Ownership messages the one after
    /// it, has been seen: nothing depends on what came before.
    anchored: Anchor,
    /// The bytes of the message that comes, if they hold all of it.
    bytes: Option<[u64; 2]>,
}

/// How much of the state a full address has settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Anchor {
    None,
    /// All but the context.
    Address,
    All,
}

/// A branch message without `SYNC`, for RepeatBranch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Last {
    icnt: u64,
    hist: Option<u64>,
    end: End,
}

/// The state of a source in plain values.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    track: TrackState,
    reference: u64,
    owed: u64,
    ahead: u64,
    last: Option<Last>,
    clock: Clock,
    context: Option<Context>,
}

impl decode::Source<NTrace> for Source {
    type State = State;

    fn new(settings: &Settings, src: u16) -> Source {
        let implied = settings.config.implicit_return != ImplicitReturn::Off;
        let stack = implied.then(|| ReturnStack::new(Remember::Address, Swaps::PopAndPush, STACK));
        Source {
            track: Track::new(settings.hart(src), stack),
            reference: 0,
            owed: 0,
            ahead: 0,
            last: None,
            clock: Clock::default(),
            context: None,
            anchored: Anchor::None,
            bytes: None,
        }
    }

    #[inline]
    fn track(&mut self) -> &mut Track {
        &mut self.track
    }

    #[inline(always)]
    fn message<C: Consumer>(
        &mut self,
        message: &Message<'_>,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Reason> {
        let bytes = core::mem::take(&mut self.bytes);
        let done = if message.tstamp.is_some() && cx.settings.config.timestamps.is_none() {
            Err((Fault::ExtraField, 0))
        } else if self.track.is_running() {
            self.running(message, bytes, cx)
        } else {
            self.waiting(message, cx)
        };
        done.map_err(reason)
    }

    fn is_placed(&mut self, message: &Message<'_>) -> bool {
        // Wrong code makes wrong calls.
        let stacks = self.track.walk.stack().is_some();
        let jump = matches!(
            message.body,
            Body::IndirectBranch { .. } | Body::IndirectBranchHist { .. }
        );
        message.body.sync().is_some() || jump && !stacks
    }

    #[cold]
    fn lose(&mut self, reason: Reason, at: u64, bytes: u64) {
        self.clock.lose();
        self.last = None;
        (self.owed, self.ahead) = (0, 0);
        self.track.lose(reason, at, bytes);
    }

    fn finish<C: Consumer>(&mut self, cx: &mut Ctx<'_, '_, C>) {
        match self.track.phase {
            Phase::Lost(gap) => self.track.event(&Event::Gap(gap), cx.out),
            Phase::Running if cx.settings.config.ending == Ending::Correlation => {
                let reason = Fault::NoEnd.reason(self.track.walk.pc(cx.blocks));
                self.track.warn(reason, cx.place.at, true, cx.out);
            }
            _ => {}
        }
        self.track.phase = Phase::Start;
    }

    fn state(&self, blocks: &Blocks<'_>) -> State {
        State {
            track: self.track.state(blocks),
            reference: self.reference,
            owed: self.owed,
            ahead: self.ahead,
            last: self.last,
            clock: self.clock,
            context: self.context,
        }
    }

    fn set_state(&mut self, state: &State, blocks: &mut Blocks<'_>) {
        self.track.set_state(&state.track, blocks);
        self.reference = state.reference;
        self.owed = state.owed;
        self.ahead = state.ahead;
        self.last = state.last;
        self.clock = state.clock;
        self.context = state.context;
    }

    fn hint(&mut self, state: &State) {
        self.clock.hint(state.clock);
    }

    fn is_anchored(&self) -> bool {
        self.anchored == Anchor::All
    }
}

impl Source {
    #[inline(always)]
    fn running<C: Consumer>(
        &mut self,
        message: &Message<'_>,
        bytes: Option<[u64; 2]>,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        let limit = cx.settings.config.max_expansion;
        match message.body {
            Body::HistFull { hist } => self.history(hist, bytes, cx)?,
            Body::HistRepeat { hist, count } => {
                self.repeat_history(hist, count, limit, cx)?;
            }
            Body::IndirectBranchHist {
                btype,
                icnt,
                uaddr,
                hist,
            } => {
                let end = self.indirect(cx.settings, btype, uaddr);
                let hist = Some(hist);
                self.branch(Last { icnt, hist, end }, bytes, cx)?;
            }
            Body::IndirectBranch { btype, icnt, uaddr } => {
                let end = self.indirect(cx.settings, btype, uaddr);
                let hist = None;
                self.branch(Last { icnt, hist, end }, bytes, cx)?;
            }
            Body::DirectBranch { icnt } => {
                let (hist, end) = (None, End::Branch);
                self.branch(Last { icnt, hist, end }, bytes, cx)?;
            }
            Body::RepeatBranch { count } => {
                self.repeat_branch(count, cx)?;
            }
            Body::IcntFull { icnt } => {
                // Not walked yet: the outcomes of its branches may follow.
                self.owed = self.owed.saturating_add(bounded(icnt, 1, limit)?);
                if let Some(stamp) = message.tstamp {
                    self.clock.relative(stamp);
                }
                return Ok(());
            }
            _ => return self.seldom(message, cx),
        }
        self.tell_time(message.tstamp, cx);
        Ok(())
    }

    /// A message while the position of the hart is unknown.
    #[cold]
    fn waiting<C: Consumer>(
        &mut self,
        message: &Message<'_>,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        let sync = message.body.sync().is_some();
        match (message.body, &mut self.track.phase) {
            (Body::Error { .. } | Body::Other { .. }, _) => {}
            (Body::Ownership { .. } | Body::ProgTraceCorrelation { .. }, Phase::Stopped) => {}
            (Body::ProgTraceCorrelation { .. }, Phase::Start) => {}
            (_, Phase::Lost(gap)) if !sync => {
                gap.bytes += cx.place.len;
                return Ok(());
            }
            _ if !sync => return Err((Fault::NotSynchronised, 0)),
            _ => {}
        }
        self.seldom(message, cx)
    }

    /// Messages that do not come all the time.
    #[cold]
    fn seldom<C: Consumer>(
        &mut self,
        message: &Message<'_>,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        match message.body {
            Body::ProgTraceCorrelation { evcode, icnt, hist } => {
                self.correlation((icnt, hist), cx)?;
                self.track.event(&Event::Mark(stop_mark(evcode)), cx.out);
                self.tell_time(message.tstamp, cx);
            }
            Body::Ownership { process } => {
                let process = Process::from_field(process).map_err(|fault| (fault, process))?;
                self.ownership(process, cx);
                self.tell_time(message.tstamp, cx);
            }
            Body::Error { etype, ecode } => {
                let value = u64::from(etype) << 32 | ecode & 0xffff_ffff;
                return Err((Fault::Overrun, value));
            }
            Body::Other { tcode, .. } => self.other(tcode, cx)?,
            // All the others were dealt with before.
            body => {
                if let Some(full) = FullAddress::of(&body) {
                    self.full_address(full, message.tstamp, cx);
                }
            }
        }
        Ok(())
    }

    /// A message of a type that the specification does not define. It says
    /// nothing about the flow, unless it is a damaged one that would have.
    fn other<C: Consumer>(&mut self, tcode: Tcode, cx: &mut Ctx<'_, '_, C>) -> Result<(), Trouble> {
        let value = u64::from(tcode.0);
        let known = cx.settings.config.ignore_tcodes.has(tcode);
        let damage = cx.settings.config.other_tcodes == OtherTcodes::Damage;
        match tcode.fault() {
            Some(Fault::Zeros) => return Err((Fault::Zeros, 0)),
            Some(fault) if damage && !known => return Err((fault, value)),
            _ => {}
        }
        let mark = Mark::Vendor(u16::from(tcode.0));
        self.track.event(&Event::Mark(mark), cx.out);
        if let Some(fault) = tcode.fault().filter(|_| !known) {
            self.track.doubt(fault.reason(value), cx.place.at, cx.out);
        }
        Ok(())
    }

    /// A sync message.
    fn full_address<C: Consumer>(
        &mut self,
        full: FullAddress,
        stamp: Option<u64>,
        cx: &mut Ctx<'_, '_, C>,
    ) {
        let FullAddress { sync, to, .. } = full;
        if self.track.is_running() {
            let before = self.before_sync(full, cx);
            if let Err((fault, value)) = before {
                self.lose(fault.reason(value), cx.place.at, 0);
            } else if sync == Sync::OVERRUN {
                self.lose(Fault::Overrun.reason(0), cx.place.at, 0);
            }
        }
        self.restart(sync, to, cx);
        if let Some((stamp, config)) = stamp.zip(cx.settings.config.timestamps) {
            self.tell_full_time(stamp, config, cx);
        }
    }

    /// What a sync message says about the way to it.
    fn before_sync<C: Consumer>(
        &mut self,
        full: FullAddress,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        let FullAddress { icnt, hist, .. } = full;
        if full.sync == Sync::OVERRUN {
            // What it counts began with a message that is lost.
            return Ok(());
        }
        let end = full.end();
        // ResourceFull may have reported the count before.
        let told = icnt > 0 || self.owed > 0;
        if end == End::Open && !told {
            return Ok(());
        }
        self.count(Last { icnt, hist, end }, cx)
    }

    /// A full address: whatever was before, the hart is here now.
    fn restart<C: Consumer>(&mut self, sync: Sync, to: u64, cx: &mut Ctx<'_, '_, C>) {
        let mut keeps = cx.settings.config.version == Version::Rc7 && sync.is_marker();
        if let Phase::Lost(gap) = self.track.phase {
            self.track.event(&Event::Gap(gap), cx.out);
            // Calls and returns are missing.
            keeps = false;
        }
        // rc7 lets encoders keep their stack at markers; more calls than the
        // encoder has never hurt.
        let mut settled = true;
        match self.track.walk.stack() {
            Some(stack) if !keeps => stack.clear(),
            Some(_) => settled = false,
            None => {}
        }
        self.anchored = match self.anchored {
            Anchor::None if !settled => Anchor::None,
            Anchor::None if cx.settings.config.context => Anchor::Address,
            Anchor::Address => Anchor::Address,
            _ => Anchor::All,
        };
        self.track.phase = Phase::Running;
        (self.owed, self.ahead, self.last) = (0, 0, None);
        self.reference = to;
        self.track.confirm();
        self.track.settle();
        self.track.synchronise(cx.blocks, to, cx.place.end());
        if let Some(mark) = start_mark(sync) {
            self.track.event(&Event::Mark(mark), cx.out);
        }
    }

    /// Tracing ends.
    fn correlation<C: Consumer>(
        &mut self,
        (icnt, hist): (u64, Option<u64>),
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        if self.track.is_running() {
            let end = End::Open;
            self.count(Last { icnt, hist, end }, cx)?;
        }
        self.last = None;
        self.track.phase = Phase::Stopped;
        Ok(())
    }

    fn ownership<C: Consumer>(&mut self, process: Process, cx: &mut Ctx<'_, '_, C>) {
        let known = self.context.unwrap_or_default();
        match process.owner {
            Owner::Mode => {}
            Owner::Scontext(s) => {
                self.context = Some(Context::new(s, known.hcontext()));
                if self.anchored == Anchor::Address {
                    self.anchored = Anchor::All;
                }
            }
            Owner::Hcontext(h) => self.context = Some(Context::new(known.scontext(), h)),
        }
        self.track.enter(cx.blocks, self.context);
        let owner = Ownership {
            mode: Some(process.mode),
            context: self.context,
        };
        self.track.event(&Event::Context(owner), cx.out);
    }

    /// The next message has these bytes, which hold all of it.
    #[inline]
    pub(super) fn expect(&mut self, bytes: [u64; 2]) {
        self.bytes = Some(bytes);
    }

    /// A message that is known at this place, without reading it. False, and nothing
    /// happens, if it is not.
    #[inline(always)]
    pub(super) fn shortcut<C: Consumer>(
        &mut self,
        bytes: [u64; 2],
        blocks: &mut Blocks<'_>,
        out: &mut C,
    ) -> bool {
        if !self.track.is_running() || self.owed != 0 {
            return false;
        }
        // ResourceFull has neither an address nor a count.
        let (base, ahead) = match quick::tcode(bytes) == Tcode::RESOURCE_FULL {
            true if !blocks.outcomes_repeat() => return self.count_full(bytes, blocks, out),
            true => (0, 0),
            false => (self.reference, self.ahead),
        };
        let Ok(ahead) = u32::try_from(ahead) else {
            return false;
        };
        let report = Report { bytes, base, ahead };
        let Some(way) = self.track.walk.take_shortcut(blocks, report, out) else {
            return false;
        };
        let Some(to) = way.jump else {
            self.ahead += u64::from(way.halfwords);
            return true;
        };
        self.last = Some(Last {
            icnt: u64::from(way.halfwords) + u64::from(ahead),
            hist: Some(way.outcomes).filter(|&hist| hist != 0),
            end: End::Jump(to),
        });
        self.ahead = 0;
        self.reference = to;
        self.track.confirm();
        true
    }

    /// ResourceFull with a history whose outcomes are known, where they are only counted.
    /// False, and nothing happens, otherwise.
    #[inline]
    fn count_full<C: Consumer>(
        &mut self,
        bytes: [u64; 2],
        blocks: &mut Blocks<'_>,
        out: &mut C,
    ) -> bool {
        let Some((word, hist)) = quick::full_history(bytes) else {
            return false;
        };
        let walk = &mut self.track.walk;
        let Some(walked) = walk.count_outcomes(blocks, word, outcomes(hist), out) else {
            return false;
        };
        self.ahead += walked;
        true
    }

    fn indirect(&self, settings: &Settings, btype: Btype, uaddr: u64) -> End {
        let to = settings.config.xlen.wrap(self.reference ^ uaddr << 1);
        match trap(btype) {
            None => End::Jump(to),
            Some(cause) => End::Trap(cause, to),
        }
    }

    /// A branch message without a full address.
    #[inline(always)]
    fn branch<C: Consumer>(
        &mut self,
        message: Last,
        bytes: Option<[u64; 2]>,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        self.count_message(message, bytes, cx)?;
        if let End::Jump(to) | End::Trap(_, to) = message.end {
            self.reference = to;
        }
        self.last = Some(message);
        Ok(())
    }

    /// Walks the stretch of a message that has a count.
    fn count<C: Consumer>(
        &mut self,
        message: Last,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        self.count_message(message, None, cx)
    }

    /// The same for a message whose bytes hold all of it, if there are any.
    #[inline]
    fn count_message<C: Consumer>(
        &mut self,
        Last { icnt, hist, end }: Last,
        bytes: Option<[u64; 2]>,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        bounded(icnt, 1, cx.settings.config.max_expansion)?;
        let ahead = u32::try_from(self.ahead).ok().filter(|_| self.owed == 0);
        let report = bytes.zip(ahead).map(|(bytes, ahead)| Report {
            bytes,
            base: self.reference,
            ahead,
        });
        let report = report.map(|report| (report, hist.unwrap_or(0)));
        let btm = cx.settings.config.mode == TraceMode::Btm;
        if let End::Jump(to) = end
            && self.owed == 0
            && let Some(left) = icnt.checked_sub(self.ahead)
        {
            let outcomes = hist.unwrap_or(if btm { 0 } else { 1 });
            let walk = &mut self.track.walk;
            let known = match (report, u32::try_from(left)) {
                (Some(report), Ok(halfwords)) => {
                    let way = (outcomes, halfwords);
                    walk.repeat_message(cx.blocks, report, way, to, cx.out)
                }
                _ => walk.repeat(cx.blocks, outcomes, left, to, cx.out),
            };
            if known {
                self.ahead = 0;
                self.track.confirm();
                return Ok(());
            }
        }
        let report = report.filter(|_| cx.out.only_counts());
        let mark = report.map(|_| self.track.walk.mark());
        if end == End::Branch {
            self.direct_stretch(icnt, cx)?;
        } else if hist.is_none() && btm {
            self.stretch(icnt, &mut NotTaken, end, cx)?;
        } else {
            let (bits, count) = outcomes(hist.unwrap_or(1));
            let outcomes = &mut History::new(bits, count);
            self.stretch(icnt, outcomes, end, cx)?;
        }
        self.track.confirm();
        if let (Some(report), Some(mark), End::Jump(to)) = (report, mark, end) {
            self.track.walk.keep_way(cx.blocks, report, mark, to);
        }
        Ok(())
    }

    fn repeat_branch<C: Consumer>(
        &mut self,
        count: u64,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        let Some(last) = self.last else {
            return Err((Fault::NothingToRepeat, count));
        };
        bounded(count, last.icnt, cx.settings.config.max_expansion)?;
        for _ in 0..count {
            self.count(last, cx)?;
        }
        Ok(())
    }

    /// Outcomes of branches up to right after the last of them.
    #[inline]
    fn history<C: Consumer>(
        &mut self,
        hist: u64,
        bytes: Option<[u64; 2]>,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        let (bits, count) = outcomes(hist);
        if let Some([bytes, 0]) = bytes {
            self.track
                .walk
                .meet_outcomes(cx.blocks, bytes, (bits, count));
        }
        self.use_up(History::new(bits, count), cx)
    }

    /// The same outcomes over and over, as many at once as a word holds.
    fn repeat_history<C: Consumer>(
        &mut self,
        hist: u64,
        count: u64,
        limit: u64,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        let (bits, len) = outcomes(hist);
        if len == 0 {
            return Ok(());
        }
        bounded(count, u64::from(len), limit)?;
        let copies = u64::from(64 / len);
        let word = (0..64 / len).fold(0, |word, i| word | bits << (i * len));
        for _ in 0..count / copies {
            self.use_up(History::new(word, len * copies as u8), cx)?;
        }
        let rest = (count % copies) as u8;
        self.use_up(History::new(word, len * rest), cx)
    }

    #[inline]
    fn use_up<C: Consumer>(
        &mut self,
        mut outcomes: History,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        let (stop, walked) = self.track.walk.use_up(cx.blocks, &mut outcomes, cx.out);
        self.ahead += walked;
        match stop {
            Stop::Arrived => Ok(()),
            Stop::Missing => Err((Fault::NoCode, self.track.walk.pc(cx.blocks))),
            Stop::Trap => Err((Fault::UnreportedTrap, self.track.walk.pc(cx.blocks))),
            Stop::Contradiction => Err((Fault::JumpNotTaken, self.track.walk.decision(cx.blocks))),
            Stop::Endless => Err((Fault::EndlessLoop, self.track.walk.pc(cx.blocks))),
            Stop::Target(_) | Stop::Branch | Stop::HalfInstruction => {
                Err((Fault::UnreportedJump, self.track.walk.decision(cx.blocks)))
            }
        }
    }

    #[inline]
    fn tell_time<C: Consumer>(&mut self, stamp: Option<u64>, cx: &mut Ctx<'_, '_, C>) {
        if let Some(time) = stamp.and_then(|stamp| self.clock.relative(stamp)) {
            self.track.time(time, cx.blocks, cx.out);
        }
    }

    fn tell_full_time<C: Consumer>(
        &mut self,
        stamp: u64,
        config: Timestamps,
        cx: &mut Ctx<'_, '_, C>,
    ) {
        let time = self.clock.absolute(stamp, config.width);
        self.track.time(time, cx.blocks, cx.out);
    }
}

/// The count, if that many times `each` is within what is believed.
fn bounded(count: u64, each: u64, limit: u64) -> Result<u64, Trouble> {
    match count.checked_mul(each.max(1)) {
        Some(all) if all <= limit => Ok(count),
        _ => Err((Fault::TooLarge, count)),
    }
}
