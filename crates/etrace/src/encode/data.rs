//! Data trace of one hart.

use hartrace_flow::{Access, DataIngress};

use super::Sink;
use super::hart::Hart;
use crate::DataSupport;

impl Hart {
    /// A cycle of the data interface, after the block its instruction retired in.
    pub(super) fn take_data(&mut self, port: &DataIngress, sink: &mut impl Sink) {
        let Some(data) = &mut self.data else {
            return;
        };
        // The filters see what is not traced too, for what they remember.
        let traced = match self.filter.is_empty() {
            true => (port.dretire, port.lresp != 0),
            false => {
                let qualified = self.filter.qualifies_data(port);
                (qualified.traced, qualified.response)
            }
        };
        if !self.running {
            return;
        }
        for packet in data.cycle(port, traced).iter().flatten() {
            let payload = data.payload(packet);
            self.data_lost |= !self.out.send_data(&payload, self.cur.time, sink);
        }
    }

    /// One access of the unified form.
    #[inline]
    pub(super) fn take_access(&mut self, access: &Access, sink: &mut impl Sink) {
        if let Some(data) = &mut self.data
            && self.running
            && self.filter.is_empty()
            && let Some(framed) = data.quick(access)
        {
            let sent = self.out.send_framed(framed.bytes(), self.cur.time, sink);
            self.data_lost |= !sent;
            return;
        }
        self.take_data(&DataIngress::unified(access, 0), sink);
    }

    /// What a support packet says about data trace.
    pub(super) fn data_support(&mut self) -> DataSupport {
        match &self.data {
            None => DataSupport::default(),
            Some(data) => DataSupport {
                denable: self.enabled,
                dloss: core::mem::take(&mut self.data_lost),
                doptions: data.doptions(),
            },
        }
    }

    /// A synchronisation packet was sent: the next access of each size is sent in
    /// full.
    pub(super) fn restart_data(&mut self) {
        if let Some(data) = &mut self.data {
            data.restart();
        }
    }
}
