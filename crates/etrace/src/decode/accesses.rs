//! Packets of data trace.

use hartrace_flow::decode::Phase;
use hartrace_flow::{Consumer, DataGap, Event, Mark};

use super::source::Source;
use super::{Bytes, Ctx};
use crate::{DataPacket, Fault};

impl Source {
    /// A packet that is not a short load or store.
    #[inline(never)]
    pub(super) fn data_payload<C: Consumer>(&mut self, bytes: &Bytes, cx: &mut Ctx<'_, '_, C>) {
        let Some(layout) = &cx.settings.data else {
            return;
        };
        match DataPacket::read(bytes.get(), layout, &self.data.outstanding) {
            Ok(packet) => self.data_packet(&packet, cx),
            Err(fault) => self.lose_data(fault, cx),
        }
    }

    /// Gives the access of a packet.
    #[inline]
    pub(super) fn data_packet<C: Consumer>(
        &mut self,
        packet: &DataPacket,
        cx: &mut Ctx<'_, '_, C>,
    ) {
        let Some(config) = &cx.settings.config.data else {
            return;
        };
        if self.data.lost || !matches!(self.track.phase, Phase::Running | Phase::Trapped(_)) {
            return;
        }
        match self.data.packet(packet, &cx.settings.config, config) {
            Ok(access) => self.track.access(&access, cx.out),
            Err(fault) => self.lose_data(fault, cx),
        }
    }

    /// Data packets are of no use until the next synchronisation.
    #[cold]
    pub(super) fn lose_data<C: Consumer>(&mut self, fault: Fault, cx: &mut Ctx<'_, '_, C>) {
        if !self.data.lost {
            self.data.lose();
            let (at, reason) = (cx.place.at, fault.reason(0));
            match cx.settings.data.is_some() {
                true => {
                    let gap = Event::DataGap(DataGap { at, reason });
                    self.track.event(&gap, cx.out);
                }
                // Nothing is missing of what is decoded.
                false => self.track.warn(reason, at, false, cx.out),
            }
        }
    }

    /// A synchronisation, of the packet's subformat: accesses before it belong to
    /// instructions before it.
    #[inline]
    pub(super) fn synchronise_data<C: Consumer>(&mut self, cx: &mut Ctx<'_, '_, C>) {
        // Without data trace too: a decoder that starts in the middle of a trace comes to
        // the same state as one that starts at its beginning.
        self.data.synchronise();
        if cx.settings.config.data.is_some() {
            self.track.event(&Event::Mark(Mark::Sync(0)), cx.out);
        }
    }
}
