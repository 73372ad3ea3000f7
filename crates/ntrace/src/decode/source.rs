//! One source of messages: the state of its decoding.

use core::ops::ControlFlow;

use hartrace_flow::{
    Blocks, Consumer, Context, Event, Gap, HartId, History, Mark, Mode, NotTaken, Ownership,
    Remember, ReturnStack, SpaceId, Stop, Swaps, Walk,
};

use super::stretch::{End, Trouble, outcomes};
use super::sync::{FullAddress, start_mark, stop_mark, trap};
use super::time::Clock;
use super::{Settings, space};
use crate::{
    Body, Btype, Fault, ImplicitReturn, Message, Owner, Process, Sync, Tcode, Timestamps,
    TraceMode, Version,
};

/// Calls that a decoder remembers. Encoders keep 32 at most; more does no
/// harm, because a return that the encoder could not leave out ends a stretch.
const STACK: usize = 1024;

/// One source.
#[derive(Debug)]
pub(super) struct Source {
    hart: HartId,
    pub(super) walk: Walk,
    phase: Phase,
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
    /// Instructions given when the trace last agreed with the code.
    pub(super) confirmed: u64,
    /// A full address, and where there are Ownership messages the one behind
    /// it, has been seen: nothing depends on what came before.
    anchored: Anchor,
    pause: bool,
}

/// How much of the state a full address has settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Anchor {
    None,
    /// All but the context.
    Address,
    All,
}

/// What is known about where the hart is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing yet, and nothing missing.
    Start,
    /// Where the walk stands.
    Running,
    /// Tracing ended.
    Stopped,
    /// Something is missing; the gap grows until the next full address.
    Lost(Gap),
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
pub(super) struct State {
    phase: Phase,
    pc: u64,
    space: SpaceId,
    stack: Option<ReturnStack>,
    reference: u64,
    owed: u64,
    ahead: u64,
    last: Option<Last>,
    clock: Clock,
    context: Option<Context>,
    unconfirmed: u64,
}

impl Source {
    pub(super) fn new(settings: &Settings, hart: HartId) -> Source {
        let mut walk = Walk::new(hart);
        if settings.config.implicit_return != ImplicitReturn::Off {
            let stack = ReturnStack::new(Remember::Address, Swaps::PopAndPush, STACK);
            walk.set_stack(Some(stack));
        }
        Source {
            hart,
            walk,
            phase: Phase::Start,
            reference: 0,
            owed: 0,
            ahead: 0,
            last: None,
            clock: Clock::default(),
            context: None,
            confirmed: 0,
            anchored: Anchor::None,
            pause: false,
        }
    }

    pub(super) fn state(&self, blocks: &Blocks<'_>) -> State {
        let mut walk = self.walk.clone();
        State {
            phase: self.phase,
            pc: walk.pc(blocks),
            space: walk.space(),
            stack: walk.stack().cloned(),
            reference: self.reference,
            owed: self.owed,
            ahead: self.ahead,
            last: self.last,
            clock: self.clock,
            context: self.context,
            unconfirmed: walk.instructions().wrapping_sub(self.confirmed),
        }
    }

    pub(super) fn set_state(&mut self, state: &State, blocks: &mut Blocks<'_>) {
        self.walk = Walk::new(self.hart);
        self.walk.set_stack(state.stack.clone());
        self.walk.enter(blocks, state.space);
        self.walk.restart(blocks, state.pc);
        self.phase = state.phase;
        self.reference = state.reference;
        self.owed = state.owed;
        self.ahead = state.ahead;
        self.last = state.last;
        self.clock = state.clock;
        self.context = state.context;
        self.confirmed = 0u64.wrapping_sub(state.unconfirmed);
    }

    pub(super) fn set_time_hint(&mut self, state: &State) {
        self.clock.hint(state.clock);
    }

    pub(super) fn is_anchored(&self) -> bool {
        self.anchored == Anchor::All
    }

    pub(super) fn event<C: Consumer>(&mut self, event: &Event, out: &mut C) {
        self.pause |= out.event(self.hart, event).is_break();
    }

    /// Something is wrong at this offset; these bytes say nothing usable.
    #[cold]
    pub(super) fn lose(&mut self, fault: Fault, value: u64, at: u64, bytes: u64) {
        self.clock.lose();
        self.last = None;
        (self.owed, self.ahead) = (0, 0);
        if let Phase::Lost(gap) = &mut self.phase {
            gap.bytes += bytes;
            return;
        }
        let unconfirmed = self.walk.instructions().wrapping_sub(self.confirmed);
        self.phase = Phase::Lost(Gap {
            at,
            reason: fault.reason(value),
            bytes,
            unconfirmed,
        });
    }

    /// The stream ends.
    pub(super) fn finish<C: Consumer>(&mut self, out: &mut C) {
        if let Phase::Lost(gap) = self.phase {
            self.event(&Event::Gap(gap), out);
            self.phase = Phase::Start;
        }
    }

    /// One message of this source, at this offset and of this length.
    #[inline(always)]
    pub(super) fn message<C: Consumer>(
        &mut self,
        settings: &Settings,
        blocks: &mut Blocks<'_>,
        message: &Message<'_>,
        (at, len): (u64, u64),
        out: &mut C,
    ) -> ControlFlow<()> {
        let done = if message.tstamp.is_some() && settings.config.timestamps.is_none() {
            Err((Fault::ExtraField, 0))
        } else if self.phase == Phase::Running {
            self.running(settings, blocks, message, at, out)
        } else {
            self.waiting(settings, blocks, message, (at, len), out)
        };
        if let Err((fault, value)) = done {
            self.lose(fault, value, at, len);
        }
        if self.walk.take_pause() | core::mem::take(&mut self.pause) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    #[inline(always)]
    fn running<C: Consumer>(
        &mut self,
        settings: &Settings,
        blocks: &mut Blocks<'_>,
        message: &Message<'_>,
        at: u64,
        out: &mut C,
    ) -> Result<(), Trouble> {
        let limit = settings.config.max_expansion;
        match message.body {
            Body::HistFull { hist } => self.history(blocks, hist, out)?,
            Body::HistRepeat { hist, count } => {
                self.repeat_history(blocks, hist, count, limit, out)?;
            }
            Body::IndirectBranchHist {
                btype,
                icnt,
                uaddr,
                hist,
            } => {
                let end = self.indirect(settings, btype, uaddr);
                let hist = Some(hist);
                self.branch(settings, blocks, Last { icnt, hist, end }, out)?;
            }
            Body::IndirectBranch { btype, icnt, uaddr } => {
                let end = self.indirect(settings, btype, uaddr);
                let hist = None;
                self.branch(settings, blocks, Last { icnt, hist, end }, out)?;
            }
            Body::DirectBranch { icnt } => {
                let (hist, end) = (None, End::Branch);
                self.branch(settings, blocks, Last { icnt, hist, end }, out)?;
            }
            Body::RepeatBranch { count } => {
                self.repeat_branch(settings, blocks, count, out)?;
            }
            Body::IcntFull { icnt } => {
                // Not walked yet: the outcomes of its branches may follow.
                self.owed = self.owed.saturating_add(bounded(icnt, 1, limit)?);
                if let Some(stamp) = message.tstamp {
                    self.clock.relative(stamp);
                }
                return Ok(());
            }
            _ => return self.seldom(settings, blocks, message, at, out),
        }
        self.tell_time(message.tstamp, out);
        Ok(())
    }

    /// A message while nobody knows where the hart is.
    #[cold]
    fn waiting<C: Consumer>(
        &mut self,
        settings: &Settings,
        blocks: &mut Blocks<'_>,
        message: &Message<'_>,
        (at, len): (u64, u64),
        out: &mut C,
    ) -> Result<(), Trouble> {
        let sync = message.body.sync().is_some();
        match (message.body, &mut self.phase) {
            (Body::Error { .. } | Body::Other { .. }, _) => {}
            (Body::Ownership { .. } | Body::ProgTraceCorrelation { .. }, Phase::Stopped) => {}
            (Body::ProgTraceCorrelation { .. }, Phase::Start) => {}
            (_, Phase::Lost(gap)) if !sync => {
                gap.bytes += len;
                return Ok(());
            }
            _ if !sync => return Err((Fault::NotSynchronised, 0)),
            _ => {}
        }
        self.seldom(settings, blocks, message, at, out)
    }

    /// Messages that do not come all the time.
    #[cold]
    fn seldom<C: Consumer>(
        &mut self,
        settings: &Settings,
        blocks: &mut Blocks<'_>,
        message: &Message<'_>,
        at: u64,
        out: &mut C,
    ) -> Result<(), Trouble> {
        match message.body {
            Body::ProgTraceCorrelation { evcode, icnt, hist } => {
                self.correlation(settings, blocks, (icnt, hist), out)?;
                self.event(&Event::Mark(stop_mark(evcode)), out);
                self.tell_time(message.tstamp, out);
            }
            Body::Ownership { process } => {
                let process = Process::from_field(process).map_err(|fault| (fault, process))?;
                self.ownership(blocks, process, out);
                self.tell_time(message.tstamp, out);
            }
            Body::Error { etype, ecode } => {
                let value = u64::from(etype) << 32 | ecode & 0xffff_ffff;
                return Err((Fault::Overrun, value));
            }
            Body::Other {
                tcode: Tcode(0), ..
            } => return Err((Fault::Zeros, 0)),
            Body::Other { tcode, .. } => {
                self.event(&Event::Mark(Mark::Vendor(u16::from(tcode.0))), out);
            }
            // All the others were dealt with before.
            body => {
                if let Some(full) = FullAddress::of(&body) {
                    self.full_address(settings, blocks, (full, at), message.tstamp, out);
                }
            }
        }
        Ok(())
    }

    /// A sync message at this offset.
    fn full_address<C: Consumer>(
        &mut self,
        settings: &Settings,
        blocks: &mut Blocks<'_>,
        (full, at): (FullAddress, u64),
        stamp: Option<u64>,
        out: &mut C,
    ) {
        let FullAddress { sync, to, .. } = full;
        if self.phase == Phase::Running {
            let before = self.before_sync(settings, blocks, full, out);
            if let Err((fault, value)) = before {
                self.lose(fault, value, at, 0);
            } else if sync == Sync::OVERRUN {
                self.lose(Fault::Overrun, 0, at, 0);
            }
        }
        self.restart(settings, blocks, sync, to, out);
        if let Some((stamp, config)) = stamp.zip(settings.config.timestamps) {
            self.tell_full_time(stamp, config, out);
        }
    }

    /// What a sync message says about the way to it.
    fn before_sync<C: Consumer>(
        &mut self,
        settings: &Settings,
        blocks: &mut Blocks<'_>,
        full: FullAddress,
        out: &mut C,
    ) -> Result<(), Trouble> {
        let FullAddress { icnt, hist, .. } = full;
        if full.sync == Sync::OVERRUN {
            // What it counts began with a message that is lost.
            return Ok(());
        }
        let end = full.end();
        // ResourceFull may have told the count before.
        let told = icnt > 0 || self.owed > 0;
        if end == End::Open && !told {
            return Ok(());
        }
        self.count(settings, blocks, Last { icnt, hist, end }, out)
    }

    /// A full address: whatever was before, the hart is here now.
    fn restart<C: Consumer>(
        &mut self,
        settings: &Settings,
        blocks: &mut Blocks<'_>,
        sync: Sync,
        to: u64,
        out: &mut C,
    ) {
        let mut keeps = settings.config.version == Version::Rc7 && sync.is_marker();
        if let Phase::Lost(gap) = self.phase {
            self.event(&Event::Gap(gap), out);
            // Calls and returns are missing.
            keeps = false;
        }
        // rc7 lets encoders keep their stack at markers; more calls than the
        // encoder has never hurt.
        let mut settled = true;
        match self.walk.stack() {
            Some(stack) if !keeps => stack.clear(),
            Some(_) => settled = false,
            None => {}
        }
        self.anchored = match self.anchored {
            Anchor::None if !settled => Anchor::None,
            Anchor::None if settings.config.context => Anchor::Address,
            Anchor::Address => Anchor::Address,
            _ => Anchor::All,
        };
        self.phase = Phase::Running;
        (self.owed, self.ahead, self.last) = (0, 0, None);
        self.reference = to;
        self.confirmed = self.walk.instructions();
        self.walk.restart(blocks, to);
        if let Some(mark) = start_mark(sync) {
            self.event(&Event::Mark(mark), out);
        }
    }

    /// Tracing ends.
    fn correlation<C: Consumer>(
        &mut self,
        settings: &Settings,
        blocks: &mut Blocks<'_>,
        (icnt, hist): (u64, Option<u64>),
        out: &mut C,
    ) -> Result<(), Trouble> {
        if self.phase == Phase::Running {
            let end = End::Open;
            self.count(settings, blocks, Last { icnt, hist, end }, out)?;
        }
        self.last = None;
        self.phase = Phase::Stopped;
        Ok(())
    }

    fn ownership<C: Consumer>(&mut self, blocks: &mut Blocks<'_>, process: Process, out: &mut C) {
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
        let space = space(blocks, self.context);
        if space != self.walk.space() {
            self.walk.enter(blocks, space);
        }
        let mode: Option<Mode> = Some(process.mode);
        let context = self.context;
        self.event(&Event::Context(Ownership { mode, context }), out);
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
        settings: &Settings,
        blocks: &mut Blocks<'_>,
        message: Last,
        out: &mut C,
    ) -> Result<(), Trouble> {
        self.count(settings, blocks, message, out)?;
        if let End::Jump(to) | End::Trap(_, to) = message.end {
            self.reference = to;
        }
        self.last = Some(message);
        Ok(())
    }

    /// Walks the stretch of a message that has a count.
    #[inline]
    fn count<C: Consumer>(
        &mut self,
        settings: &Settings,
        blocks: &mut Blocks<'_>,
        Last { icnt, hist, end }: Last,
        out: &mut C,
    ) -> Result<(), Trouble> {
        bounded(icnt, 1, settings.config.max_expansion)?;
        if let End::Jump(to) = end
            && self.owed == 0
            && let Some(left) = icnt.checked_sub(self.ahead)
        {
            let btm = settings.config.mode == TraceMode::Btm;
            let outcomes = hist.unwrap_or(if btm { 0 } else { 1 });
            if self.walk.repeat(blocks, outcomes, left, to, out) {
                self.ahead = 0;
                self.confirmed = self.walk.instructions();
                return Ok(());
            }
        }
        if end == End::Branch {
            self.direct_stretch(settings, blocks, icnt, out)?;
        } else if hist.is_none() && settings.config.mode == TraceMode::Btm {
            self.stretch(settings, blocks, icnt, &mut NotTaken, end, out)?;
        } else {
            let (bits, count) = outcomes(hist.unwrap_or(1));
            let outcomes = &mut History::new(bits, count);
            self.stretch(settings, blocks, icnt, outcomes, end, out)?;
        }
        self.confirmed = self.walk.instructions();
        Ok(())
    }

    fn repeat_branch<C: Consumer>(
        &mut self,
        settings: &Settings,
        blocks: &mut Blocks<'_>,
        count: u64,
        out: &mut C,
    ) -> Result<(), Trouble> {
        let Some(last) = self.last else {
            return Err((Fault::NothingToRepeat, count));
        };
        bounded(count, last.icnt, settings.config.max_expansion)?;
        for _ in 0..count {
            self.count(settings, blocks, last, out)?;
        }
        Ok(())
    }

    /// Outcomes of branches up to right behind the last of them.
    #[inline]
    fn history<C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        hist: u64,
        out: &mut C,
    ) -> Result<(), Trouble> {
        let (bits, count) = outcomes(hist);
        self.use_up(blocks, History::new(bits, count), out)
    }

    /// The same outcomes over and over, as many at once as a word holds.
    fn repeat_history<C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        hist: u64,
        count: u64,
        limit: u64,
        out: &mut C,
    ) -> Result<(), Trouble> {
        let (bits, len) = outcomes(hist);
        if len == 0 {
            return Ok(());
        }
        bounded(count, u64::from(len), limit)?;
        let copies = u64::from(64 / len);
        let word = (0..64 / len).fold(0, |word, i| word | bits << (i * len));
        for _ in 0..count / copies {
            self.use_up(blocks, History::new(word, len * copies as u8), out)?;
        }
        let rest = (count % copies) as u8;
        self.use_up(blocks, History::new(word, len * rest), out)
    }

    #[inline]
    fn use_up<C: Consumer>(
        &mut self,
        blocks: &mut Blocks<'_>,
        mut outcomes: History,
        out: &mut C,
    ) -> Result<(), Trouble> {
        let (stop, walked) = self.walk.use_up(blocks, &mut outcomes, out);
        self.ahead += walked;
        match stop {
            Stop::Arrived => Ok(()),
            Stop::Missing => Err((Fault::NoCode, self.walk.pc(blocks))),
            Stop::Trap => Err((Fault::UnreportedTrap, self.walk.pc(blocks))),
            Stop::Contradiction => Err((Fault::JumpNotTaken, self.walk.decision(blocks))),
            Stop::Endless => Err((Fault::EndlessLoop, self.walk.pc(blocks))),
            Stop::Target(_) | Stop::Branch | Stop::HalfInstruction => {
                Err((Fault::UnreportedJump, self.walk.decision(blocks)))
            }
        }
    }

    #[inline]
    fn tell_time<C: Consumer>(&mut self, stamp: Option<u64>, out: &mut C) {
        if let Some(time) = stamp.and_then(|stamp| self.clock.relative(stamp)) {
            self.event(&Event::Time(time), out);
        }
    }

    fn tell_full_time<C: Consumer>(&mut self, stamp: u64, config: Timestamps, out: &mut C) {
        let time = self.clock.absolute(stamp, config);
        self.event(&Event::Time(time), out);
    }
}

/// The count, if that many times `each` is within what is believed.
fn bounded(count: u64, each: u64, limit: u64) -> Result<u64, Trouble> {
    match count.checked_mul(each.max(1)) {
        Some(all) if all <= limit => Ok(count),
        _ => Err((Fault::TooLarge, count)),
    }
}
