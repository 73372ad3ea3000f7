//! Packets of data trace.

use hartrace_flow::decode::Phase;
use hartrace_flow::{Consumer, DataGap, Event, Mark};

use super::source::Source;
use super::{Bytes, Ctx, Settings};
use crate::data::Sums;
use crate::encapsulation::{Head, window};
use crate::{DataPacket, Fault};

impl Source {
    /// Loads and stores at the front of the bytes, which are packets that `head` fits. How
    /// many bytes they are, and what was counted in passing; the rest is not as plain.
    pub(super) fn transfers<C: Consumer>(
        &mut self,
        from: (&Head, &[u8]),
        settings: &Settings,
        out: &mut C,
    ) -> (usize, Option<Sums>) {
        let Some(transfers) = &settings.transfers else {
            return (0, None);
        };
        if !self.wants_data() {
            return (skipped(from), None);
        }
        let values = out.looks_at_values();
        let batch = &mut self.batch;
        let (count, len) = self.data.transfers(from, transfers, batch, values);
        if count > 0 {
            self.track.plain_accesses(self.batch.first(count), out);
        }
        (len, self.batch.sums())
    }

    /// One packet, by its payload.
    pub(super) fn data_payload<C: Consumer>(&mut self, bytes: &Bytes, cx: &mut Ctx<'_, '_, C>) {
        let settings = cx.settings;
        let (Some(layout), Some(config)) = (&settings.data, &settings.config.data) else {
            return;
        };
        if !self.wants_data() {
            return;
        }
        if let Some(transfers) = &settings.transfers
            && let batch = &mut self.batch
            && let Some(access) = self.data.transfer(bytes.padded(), transfers, batch)
        {
            self.track.plain_accesses(access, cx.out);
            return;
        }
        let access = match DataPacket::read(bytes.get(), layout, &self.data.outstanding) {
            Ok(packet) => self.data.packet(&packet, &settings.config, config),
            Err(fault) => Err(fault),
        };
        match access {
            Ok(access) => self.track.accesses(&[access], cx.out),
            Err(fault) => self.lose_data(fault, cx),
        }
    }

    /// Whether data packets can be decoded.
    fn wants_data(&self) -> bool {
        !self.data.lost && matches!(self.track.phase, Phase::Running | Phase::Trapped(_))
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

/// Packets that `head` fits at the front of the bytes: how many bytes they are.
fn skipped((head, bytes): (&Head, &[u8])) -> usize {
    let mut at = 0;
    while let Some(packet) = window(bytes, at).and_then(|window| head.open(window)) {
        at += packet.len;
    }
    at
}
