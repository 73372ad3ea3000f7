//! Data trace of one hart.

use hartrace_flow::{Access, DataIngress};

use super::Sink;
use super::hart::Hart;
use crate::{DataSupport, Kind};

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

    /// Accesses of the unified form.
    pub(super) fn take_accesses(&mut self, accesses: &[Access], sink: &mut impl Sink) {
        let Some(data) = &mut self.data else {
            return;
        };
        if !self.running || !self.filter.is_empty() {
            for access in accesses {
                self.take_data(&DataIngress::unified(access, 0), sink);
            }
            return;
        }
        let (time, out) = (self.cur.time, &mut self.out);
        let mut rest = accesses.iter();
        loop {
            out.send_words(time, sink, || {
                let word = data.word(rest.as_slice().first()?)?;
                rest.next();
                Some(word)
            });
            let Some(access) = rest.next() else {
                return;
            };
            let sent = if let Some(word) = data.word(access) {
                out.send_word(Kind::Data, word, time, sink)
            } else if let Some(framed) = data.quick(access) {
                out.send_framed(framed.bytes(), time, sink)
            } else {
                let port = DataIngress::unified(access, 0);
                let packets = data.cycle(&port, (true, false));
                packets.iter().flatten().fold(true, |sent, packet| {
                    sent & out.send_data(&data.payload(packet), time, sink)
                })
            };
            self.data_lost |= !sent;
        }
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
