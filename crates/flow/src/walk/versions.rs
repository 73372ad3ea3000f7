//! A walk through code that has several versions.

use super::Walk;
use crate::blocks::{BlockId, NOWHERE};
use crate::{Blocks, Consumer, Context, Event, SpaceId, Spot};

impl Walk {
    /// What is walked next begins with the instruction that a synchronisation message
    /// names, which ends at this offset of the stream; `None` if it is not one that versions
    /// of the code can count from.
    pub fn sync(&mut self, offset: Option<u64>) {
        self.sync = offset.map(|offset| (offset, self.halfwords));
    }

    /// What follows happened at this time or later.
    #[inline]
    pub fn set_time(&mut self, time: u64) {
        self.time = Some(time);
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
        (self.space, self.block) = self.look(blocks, pc, &self.spot());
    }

    /// The version of the code at an address that the hart sees at a moment, and the block
    /// in it.
    #[cold]
    pub(super) fn look(&self, blocks: &mut Blocks<'_>, pc: u64, spot: &Spot) -> (SpaceId, BlockId) {
        let image = blocks.image();
        match image.space_at(self.home, pc, spot) {
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
