//! A walk through code that has several versions.

use super::Walk;
use crate::blocks::{BlockId, NOWHERE};
use crate::{Blocks, Consumer, Context, Event, Sighting, SpaceId, Spot, Unconfirmed};

/// What was walked with code that may have been another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Doubts {
    /// The code changes at a time. It did so too early, if that time has come when the
    /// next one is reported.
    pending: Option<(Doubt, u64)>,
    /// It is in doubt already, and so is where the walk is, until the trace reports an
    /// address.
    adrift: Option<Doubt>,
    /// Code that is in doubt whatever the time, if the walk came to it last.
    space: Option<SpaceId>,
    /// The version of any of it, or of what comes next, depends on the next time.
    timed: bool,
}

/// Code that is in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Doubt {
    /// Where it is.
    address: u64,
    /// Instructions given out when the walk came to it.
    since: u64,
}

impl Doubts {
    /// The same for a walk that counts instructions from another start.
    #[must_use]
    pub(crate) fn moved(mut self, from: u64, to: u64) -> Doubts {
        let pending = self.pending.as_mut().map(|(doubt, _)| doubt);
        for doubt in pending.into_iter().chain(&mut self.adrift) {
            doubt.since = doubt.since.wrapping_sub(from).wrapping_add(to);
        }
        self
    }
}

impl Walk {
    /// What is walked next begins with the instruction that a synchronisation message
    /// names, which ends at this offset of the stream; `None` if it is not one that versions
    /// of the code can count from.
    pub fn sync(&mut self, offset: Option<u64>) {
        self.sync = offset.map(|offset| (offset, self.halfwords));
    }

    /// What follows happened at this time or later.
    #[inline]
    pub fn set_time(&mut self, blocks: &mut Blocks<'_>, time: u64) {
        self.time = Some(time);
        if self.doubts.timed {
            self.look_again(blocks, time);
        }
    }

    /// Code whose version depends on the time was walked, or the walk stands before it.
    #[cold]
    #[inline(never)]
    fn look_again(&mut self, blocks: &mut Blocks<'_>, time: u64) {
        self.doubts.timed = false;
        let pending = self.doubts.pending.take();
        if let Some((doubt, until)) = pending
            && until <= time
            && doubt.since != self.insns
        {
            let adrift = self.doubts.adrift.get_or_insert(doubt);
            adrift.since = adrift.since.min(doubt.since);
            self.alert = true;
        }
        let is_version = self.space != self.home || self.block == NOWHERE;
        if is_version && self.constant(blocks).is_none() {
            let pc = self.pc(blocks);
            self.restart(blocks, pc);
        }
    }

    /// Whether code was walked that is in doubt, or the walk is somewhere because of it.
    #[inline]
    pub(crate) const fn is_alert(&self) -> bool {
        self.alert
    }

    /// A message ends, and the trace has reported where the hart is now, if it is `placed`:
    /// what was walked with code that is in doubt, or from a place that is.
    pub(crate) fn take_doubt(&mut self, placed: bool) -> Option<Unconfirmed> {
        let doubt = self.doubts.adrift.take();
        let stays = self.doubts.space == Some(self.space);
        self.alert = doubt.is_some() && (stays || !placed);
        if !stays {
            self.doubts.space = None;
        }
        let doubt = doubt?;
        if self.alert {
            let since = self.insns;
            self.doubts.adrift = Some(Doubt { since, ..doubt });
        }
        self.unconfirmed(doubt)
    }

    /// The trace ends: all that is still in doubt.
    pub(crate) fn take_last_doubt(&mut self) -> Option<Unconfirmed> {
        let doubts = core::mem::take(&mut self.doubts);
        let pending = doubts.pending.map(|(doubt, _)| doubt);
        let all = pending.into_iter().chain(doubts.adrift);
        self.unconfirmed(all.min_by_key(|doubt| doubt.since)?)
    }

    fn unconfirmed(&self, doubt: Doubt) -> Option<Unconfirmed> {
        let insns = self.insns.wrapping_sub(doubt.since);
        let address = doubt.address;
        (insns > 0).then_some(Unconfirmed { insns, address })
    }

    /// What is in doubt.
    pub(crate) const fn doubts(&self) -> Doubts {
        self.doubts
    }

    /// Goes on from another walk's doubts.
    pub(crate) fn set_doubts(&mut self, doubts: Doubts) {
        self.doubts = doubts;
        self.alert = doubts.adrift.is_some();
    }

    /// What follows happened in this context.
    pub fn set_context(&mut self, context: Option<Context>) {
        self.context = context;
    }

    /// The context, if it was reported.
    #[must_use]
    pub const fn context(&self) -> Option<Context> {
        self.context
    }

    /// The moment at which it is.
    #[must_use]
    pub fn spot(&self) -> Spot {
        self.spot_after(0)
    }

    /// The moment so many halfwords later.
    pub(super) fn spot_after(&self, halfwords: u64) -> Spot {
        let now = self.halfwords.wrapping_add(halfwords);
        Spot {
            hart: self.hart,
            context: self.context,
            sync: self
                .sync
                .map(|(offset, before)| (offset, now.wrapping_sub(before))),
            time: self.time,
        }
    }

    /// Goes on from another walk's moment.
    pub fn set_spot(&mut self, spot: &Spot) {
        self.context = spot.context;
        self.time = spot.time;
        self.sync = spot
            .sync
            .map(|(offset, since)| (offset, self.halfwords.wrapping_sub(since)));
    }

    /// The consumer does not know in which space the walk is.
    pub(crate) fn tell_again(&mut self) {
        self.told = SpaceId::NONE;
    }

    /// The space of its context.
    #[must_use]
    pub(crate) const fn home(&self) -> SpaceId {
        self.home
    }

    /// Stands before the instruction at an address that its space has no code for.
    #[cold]
    #[inline(never)]
    pub(super) fn land(&mut self, blocks: &mut Blocks<'_>, pc: u64) {
        self.pc = pc;
        self.landed += 1;
        let sighting = blocks.image().sight(self.home, pc, &self.spot());
        if sighting.until.is_some() || sighting.doubtful {
            self.note(pc, &sighting);
        }
        self.stays = self.stays.min(sighting.stays);
        self.own |= sighting.own;
        (self.space, self.block) = self.found(blocks, pc, &sighting);
    }

    /// Takes note of code that may be another one.
    fn note(&mut self, address: u64, sighting: &Sighting) {
        self.doubts.timed |= sighting.until.is_some();
        let since = self.insns;
        let doubt = Doubt { address, since };
        if sighting.doubtful {
            self.doubts.adrift.get_or_insert(doubt);
            self.doubts.space = sighting.space;
            self.alert = true;
        } else if let (Some(until), Some(_)) = (sighting.until, sighting.space) {
            let (first, earliest) = self.doubts.pending.get_or_insert((doubt, until));
            if until < *earliest {
                *earliest = until;
                first.address = address;
            }
        }
    }

    /// The version of the code at an address that the hart sees at a moment, and the block
    /// in it.
    #[cold]
    pub(super) fn look(&self, blocks: &mut Blocks<'_>, pc: u64, spot: &Spot) -> (SpaceId, BlockId) {
        let sighting = blocks.image().sight(self.home, pc, spot);
        self.found(blocks, pc, &sighting)
    }

    fn found(&self, blocks: &mut Blocks<'_>, pc: u64, sighting: &Sighting) -> (SpaceId, BlockId) {
        match sighting.space {
            Some(space) => (space, blocks.find(space, pc)),
            None => (self.home, NOWHERE),
        }
    }

    /// Tells the consumer where the code of what follows is.
    #[cold]
    #[inline(never)]
    pub(super) fn tell<C: Consumer>(&mut self, out: &mut C) {
        self.told = self.space;
        self.pause |= out.event(self.hart, &Event::Code(self.space)).is_break();
    }
}
