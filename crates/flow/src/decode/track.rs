//! What every source keeps: its walk, and what is known of it.

use core::ops::ControlFlow;

use crate::walk::Doubts;
use crate::{
    Blocks, Consumer, Context, DataAccess, Event, Gap, HartId, History, NamedSync, PlainAccesses,
    Reason, ReturnStack, SpaceId, Spot, Trap, Walk, Warning,
};

/// What is known about where the hart is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing yet, and nothing is missing.
    Start,
    /// Where the walk is.
    Running,
    /// A trap was taken, and its handler has not been reported yet.
    Trapped(Trap),
    /// Tracing ended.
    Stopped,
    /// Something is missing; the gap grows until the next full address.
    Lost(Gap),
}

/// One hart on its way through the code, as its source reports it.
#[derive(Debug)]
pub struct Track {
    hart: HartId,
    /// Where in the code it is.
    pub walk: Walk,
    /// What is known of that.
    pub phase: Phase,
    /// Instructions given when the trace last agreed with the code.
    confirmed: u64,
    /// Instructions given when a message may have been missing. Only a full
    /// address confirms what comes after.
    doubtful: Option<u64>,
    /// The consumer asked for a pause.
    pause: bool,
    /// Something was lost since the last synchronisation message.
    was_lost: bool,
}

/// The state of a [`Track`] in plain values.
#[derive(Clone, Debug, PartialEq)]
pub struct TrackState {
    phase: Phase,
    pc: u64,
    /// The instruction that loads the constant the jump at `pc` goes to.
    constant: Option<u64>,
    space: SpaceId,
    /// Where code has versions.
    spot: Option<Spot>,
    /// What was walked with code that is in doubt, as if the walk had given out nothing
    /// yet.
    doubts: Doubts,
    stack: Option<ReturnStack>,
    unconfirmed: u64,
    doubtful: Option<u64>,
}

impl Track {
    /// A hart that nothing is known of; with a return stack where the trace
    /// leaves returns out.
    #[must_use]
    pub fn new(hart: HartId, stack: Option<ReturnStack>) -> Track {
        let mut walk = Walk::new(hart);
        walk.set_stack(stack);
        Track {
            hart,
            walk,
            phase: Phase::Start,
            confirmed: 0,
            doubtful: None,
            pause: false,
            was_lost: false,
        }
    }

    /// Whether it is known where the hart is.
    #[must_use]
    #[inline]
    pub const fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running)
    }

    /// Gives an event.
    #[inline]
    pub fn event<C: Consumer>(&mut self, event: &Event, out: &mut C) {
        self.pause |= out.event(self.hart, event).is_break();
    }

    /// What follows happened at this time or later.
    #[inline]
    pub fn time<C: Consumer>(&mut self, time: u64, blocks: &mut Blocks<'_>, out: &mut C) {
        self.walk.set_time(blocks, time);
        self.event(&Event::Time(time), out);
    }

    /// Gives data accesses.
    #[inline]
    pub fn accesses<C: Consumer>(&mut self, accesses: &[DataAccess], out: &mut C) {
        self.pause |= out.accesses(self.hart, accesses).is_break();
    }

    /// Gives data accesses that are not assigned to instructions.
    #[inline]
    pub fn plain_accesses<C: Consumer>(&mut self, accesses: PlainAccesses<'_>, out: &mut C) {
        self.pause |= out.plain_accesses(self.hart, accesses).is_break();
    }

    /// After a message: `Break` if the consumer asked for a pause since the last call.
    #[inline(always)]
    pub fn take_pause(&mut self) -> ControlFlow<()> {
        if self.walk.take_pause() | core::mem::take(&mut self.pause) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// After a message which may have reported where the hart is now: reports what is in
    /// doubt.
    #[cold]
    #[inline(never)]
    pub(super) fn tell_doubt<C: Consumer>(&mut self, placed: bool, out: &mut C) {
        if let Some(unconfirmed) = self.walk.take_doubt(placed) {
            self.event(&Event::Unconfirmed(unconfirmed), out);
        }
    }

    /// The stream ends: what is still in doubt.
    pub(super) fn finish<C: Consumer>(&mut self, out: &mut C) {
        if let Some(unconfirmed) = self.walk.take_last_doubt() {
            self.event(&Event::Unconfirmed(unconfirmed), out);
        }
    }

    /// The trace agrees with the code so far.
    #[inline]
    pub fn confirm(&mut self) {
        self.confirmed = self.walk.instructions();
    }

    /// Instructions given since the trace last agreed with the code, and no
    /// message was in doubt.
    #[must_use]
    pub fn unconfirmed(&self) -> u64 {
        let confirmed = self.doubtful.unwrap_or(self.confirmed);
        self.walk.instructions().wrapping_sub(confirmed)
    }

    /// Decoding goes on, but a message may be missing here: nothing before the
    /// next full address confirms the code after it.
    pub fn doubt<C: Consumer>(&mut self, reason: Reason, at: u64, out: &mut C) {
        if self.is_running() && self.doubtful.is_none() {
            self.doubtful = Some(self.confirmed);
        }
        self.warn(reason, at, true, out);
    }

    /// A full address fits: nothing is in doubt any more.
    #[inline]
    pub fn settle(&mut self) {
        self.doubtful = None;
    }

    /// Gives a warning.
    #[cold]
    pub fn warn<C: Consumer>(&mut self, reason: Reason, at: u64, is_loss: bool, out: &mut C) {
        let warning = Warning {
            at,
            reason,
            is_loss,
        };
        self.event(&Event::Warning(warning), out);
    }

    /// Something is wrong at this offset; these bytes say nothing usable. What is
    /// wrong while the hart is lost makes the gap longer.
    pub fn lose(&mut self, reason: Reason, at: u64, bytes: u64) {
        self.was_lost = true;
        if let Phase::Lost(gap) = &mut self.phase {
            gap.bytes += bytes;
            return;
        }
        self.phase = Phase::Lost(Gap {
            at,
            reason,
            bytes,
            unconfirmed: self.unconfirmed(),
        });
        self.doubtful = None;
    }

    /// Goes on in the code of this context.
    pub fn enter(&mut self, blocks: &mut Blocks<'_>, context: Option<Context>) {
        let space = context.map_or(SpaceId::FIRST, |c| blocks.image().space_of(c));
        let known = self.walk.context();
        self.walk.set_context(context);
        if space != self.walk.space() || context != known && blocks.image().varies() {
            self.walk.enter(blocks, space);
        }
    }

    /// A synchronisation message, which ends at this offset of the stream, names the
    /// instruction at an address: the hart is there.
    pub fn synchronise(&mut self, blocks: &mut Blocks<'_>, address: u64, offset: u64) {
        if blocks.image().varies() {
            let hart = self.hart;
            let sync = NamedSync {
                offset,
                hart,
                address,
            };
            // What was lost may have been one of them.
            let before = self.walk.spot().sync.filter(|_| !self.was_lost);
            let expected = blocks
                .image()
                .is_expected(sync, before.map(|(offset, _)| offset));
            self.walk.sync(expected.then_some(offset));
        }
        self.was_lost = false;
        self.walk.restart(blocks, address);
    }

    /// The state.
    #[must_use]
    pub fn state(&self, blocks: &Blocks<'_>) -> TrackState {
        TrackState {
            phase: self.phase,
            pc: self.walk.pc(blocks),
            constant: self.walk.constant(blocks),
            space: self.walk.home(),
            spot: blocks.image().varies().then(|| self.walk.spot()),
            doubts: self.walk.doubts().moved(self.walk.instructions(), 0),
            stack: self.walk.clone().stack().cloned(),
            unconfirmed: self.walk.instructions().wrapping_sub(self.confirmed),
            doubtful: self
                .doubtful
                .map(|from| self.walk.instructions().wrapping_sub(from)),
        }
    }

    /// Goes on from a state.
    pub fn set_state(&mut self, state: &TrackState, blocks: &mut Blocks<'_>) {
        self.walk = Walk::new(self.hart);
        self.walk.set_stack(state.stack.clone());
        if let Some(spot) = &state.spot {
            self.walk.set_spot(spot);
        }
        self.walk.enter(blocks, state.space);
        if state.spot.is_some() {
            // The consumer may assume any space.
            self.walk.tell_again();
        }
        self.walk
            .restart(blocks, state.constant.unwrap_or(state.pc));
        if state.constant.is_some() {
            self.walk
                .step(blocks, &mut History::default(), &mut Nothing);
        }
        self.phase = state.phase;
        let done = self.walk.instructions();
        self.walk.set_doubts(state.doubts.moved(0, done));
        self.confirmed = done.wrapping_sub(state.unconfirmed);
        self.doubtful = state.doubtful.map(|since| done.wrapping_sub(since));
    }
}

/// Takes no event: for a walk that only tries a route.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Consumer for Nothing {
    fn event(&mut self, _: HartId, _: &Event) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
