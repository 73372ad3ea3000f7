//! Times of packets: in a field of their own, or from their encapsulation.

use hartrace_flow::Consumer;

use super::pending::{Next, Trouble};
use super::source::Source;
use super::{Ctx, Settings};
use crate::Packet;
use crate::packet::quick::Plain;

impl Source {
    /// A packet that is only branches, or an address, or both, with a time.
    #[inline(never)]
    pub(super) fn timed_plain<C: Consumer>(
        &mut self,
        packet: &Plain,
        time: u64,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        self.at_time((time, true), cx, |source, cx| source.plain(packet, cx))
    }

    /// Any packet with a time.
    #[cold]
    pub(super) fn timed<C: Consumer>(
        &mut self,
        packet: &Packet,
        time: u64,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        let flow = packet.format() != 3;
        self.at_time((time, flow), cx, |source, cx| source.packet(packet, cx))
    }

    /// A packet with the time at which it was sent: when the instruction it reports
    /// retired. `then` decodes it; `flow` if it is no packet of format 3.
    #[inline(always)]
    fn at_time<'a, C: Consumer>(
        &mut self,
        (time, flow): (u64, bool),
        cx: &mut Ctx<'_, 'a, C>,
        then: impl FnOnce(&mut Source, &mut Ctx<'_, 'a, C>) -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        if cx.settings.layout.time_width > 0 {
            // Packets have times of their own.
            return then(self, cx);
        }
        let width = 8 * cx.settings.config.encapsulation.time_bytes;
        let before = self.clock;
        let time = self.clock.absolute(time, width);
        let changed = (self.clock != before).then_some(time);
        if flow && self.track.is_running() {
            // The packet before this one reported where the run that follows starts.
            self.resolve(Next::Flow, cx)?;
            if let Some(stamp) = self.stamp.take() {
                self.track.time(stamp, cx.blocks, cx.out);
            }
        }
        then(self, cx)?;
        self.stamp = changed;
        if self.pending.is_none()
            && self.track.is_running()
            && let Some(time) = self.stamp.take()
        {
            self.track.time(time, cx.blocks, cx.out);
        }
        Ok(())
    }

    /// The time that a packet has in a field of its own.
    pub(super) fn tell_time<C: Consumer>(&mut self, field: u64, cx: &mut Ctx<'_, '_, C>) {
        let width = cx.settings.layout.time_width;
        if width > 0 {
            let time = self.clock.absolute(field, width);
            self.track.time(time, cx.blocks, cx.out);
        }
    }
}

impl Settings {
    /// The field of a time, if packets have one.
    pub(super) fn time(&self, field: u64) -> Option<u64> {
        (self.layout.time_width > 0).then_some(field)
    }
}
