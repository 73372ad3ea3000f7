//! Frames the packets of one hart for the queue.

use hartrace_flow::encode::{Gathered, Outlet, SHORT};

use super::{Counters, Sink};
use crate::packet::bits::Writer;
use crate::packet::write::{Short, plain_fields, short_difference, short_map};
use crate::{BranchMap, Config, Encapsulation, Kind, Layout, MAX_PAYLOAD, Packer, Packet, Payload};

/// Writes packets and hands them on.
#[derive(Clone, Debug)]
pub(super) struct Out {
    pub(super) layout: Layout,
    outlet: Outlet,
    /// Of another encapsulation than that of the reference models.
    packer: Option<Packer>,
}

/// Bytes of the longest support and start packets, which go first after a
/// loss.
fn reserve(layout: &Layout, form: &Encapsulation) -> u32 {
    let framing = form.framing() as u32;
    let bytes = |bits: u32| framing + bits.div_ceil(8);
    let doptions = layout
        .doptions_width
        .map_or(0, |width| 2 + u32::from(width));
    let modes = u32::from(layout.encoder_mode_width) + u32::from(layout.ioptions_width);
    let owner = [
        layout.privilege_width,
        layout.time_width,
        layout.context_width,
    ];
    let owner: u32 = owner.into_iter().map(u32::from).sum();
    bytes(7 + modes + doptions) + bytes(5 + owner + u32::from(layout.iaddress_width))
}

impl Out {
    /// For the packets of this source.
    pub(super) fn new(config: &Config, src: u16) -> Out {
        let layout = config.layout();
        let form = config.encapsulation;
        Out {
            layout,
            outlet: Outlet::new(config.queue, reserve(&layout, &form)),
            packer: (!form.is_reference()).then(|| Packer::new(form, src)),
        }
    }

    /// The hart's own time as the world has it.
    pub(super) fn stamp(&self, time: u64) -> u64 {
        self.outlet.time(time)
    }

    /// Sends a packet about something that happened at this time.
    #[inline]
    pub(super) fn send(&mut self, packet: &Packet, time: u64, sink: &mut impl Sink) {
        self.send_fields(packet.fields(&self.layout), time, sink);
    }

    /// The same for the fields of a packet.
    #[inline]
    pub(super) fn send_fields(&mut self, fields: Writer, time: u64, sink: &mut impl Sink) {
        let payload = match self.layout.is_plain() {
            true => fields.compressed(),
            false => fields.shortened(&self.layout),
        };
        self.send_payload(Kind::Instruction, &payload, time, sink);
    }

    /// The same for a packet of data trace; `false` if it is lost.
    #[inline]
    pub(super) fn send_data(&mut self, payload: &Payload, time: u64, sink: &mut impl Sink) -> bool {
        self.send_payload(Kind::Data, payload, time, sink)
    }

    /// Sends a packet with its header.
    #[inline]
    pub(super) fn send_framed(&mut self, framed: &[u8], time: u64, sink: &mut impl Sink) -> bool {
        if self.packer.is_some() {
            let payload = framed.get(1..).unwrap_or_default();
            return self.send_packed(Kind::Data, payload, time, sink);
        }
        self.outlet.send(framed, 1, time, sink)
    }

    /// Sends a packet in its encapsulation.
    #[cold]
    fn send_packed(&mut self, kind: Kind, payload: &[u8], time: u64, sink: &mut impl Sink) -> bool {
        let Some(packer) = &mut self.packer else {
            return false;
        };
        let stamp = self.outlet.time(time);
        // A packet that is lost takes no number.
        let mut next = packer.clone();
        let packed = next.pack(kind, payload, stamp);
        let sent = self
            .outlet
            .send(packed.bytes(), packed.framing(), time, sink);
        if sent {
            *packer = next;
        }
        sent
    }

    #[inline]
    fn send_payload(
        &mut self,
        kind: Kind,
        payload: &Payload,
        time: u64,
        sink: &mut impl Sink,
    ) -> bool {
        let payload = payload.bytes();
        if self.packer.is_some() {
            return self.send_packed(kind, payload, time, sink);
        }
        let mut framed = [0; MAX_PAYLOAD + 1];
        if let Some((header, rest)) = framed.split_first_mut() {
            *header = kind.header(payload.len() as u8);
            for (to, from) in rest.iter_mut().zip(payload) {
                *to = *from;
            }
        }
        let framed = framed.get(..=payload.len()).unwrap_or_default();
        self.outlet.send(framed, 1, time, sink)
    }

    /// The same for a short one.
    #[inline]
    pub(super) fn send_short(&mut self, packet: Short, time: u64, sink: &mut impl Sink) {
        let (bytes, len) = packet.compressed();
        let word = (u64::from_le_bytes(bytes).into(), len);
        self.send_word(Kind::Instruction, word, time, sink);
    }

    /// Adds a full branch map to the packets that are sent later ([`Out::send_gathered`]).
    /// Where there is no queue.
    #[inline(never)]
    pub(super) fn gather_map(&mut self, map: BranchMap, time: u64, gathered: &mut Gathered) {
        let (bytes, len) = short_map(map).compressed();
        self.gather_word((u64::from_le_bytes(bytes), len), time, gathered);
    }

    /// The same for a report of a difference of addresses and nothing else.
    #[inline(always)]
    pub(super) fn gather_report(
        &mut self,
        map: BranchMap,
        difference: u64,
        time: u64,
        gathered: &mut Gathered,
    ) {
        match short_difference(map, difference, &self.layout) {
            Some(word) => self.gather_word(word, time, gathered),
            None => self.gather_long(plain_fields(map, difference, &self.layout), time, gathered),
        }
    }

    /// The same for a payload of at most eight bytes, of which so many are sent.
    #[inline(always)]
    fn gather_word(&mut self, (word, len): (u64, u32), time: u64, gathered: &mut Gathered) {
        if self.packer.is_some() {
            let bytes = word.to_le_bytes();
            let payload = bytes.get(..len as usize).unwrap_or(&bytes);
            return self.gather_packed(payload, time, gathered);
        }
        let framed = u128::from(word) << 8 | u128::from(Kind::Instruction.header(len as u8));
        gathered.push_short(framed, len as usize + 1, 1);
    }

    /// The same for any fields.
    #[cold]
    fn gather_long(&mut self, fields: Writer, time: u64, gathered: &mut Gathered) {
        let payload = fields.compressed();
        let payload = payload.bytes();
        if self.packer.is_some() {
            return self.gather_packed(payload, time, gathered);
        }
        let mut framed = [0; MAX_PAYLOAD + 1];
        let bytes = core::iter::once(Kind::Instruction.header(payload.len() as u8));
        let bytes = bytes.chain(payload.iter().copied());
        framed
            .iter_mut()
            .zip(bytes)
            .for_each(|(to, from)| *to = from);
        gathered.push(framed.get(..=payload.len()).unwrap_or_default(), 1);
    }

    /// The same in its encapsulation.
    #[cold]
    fn gather_packed(&mut self, payload: &[u8], time: u64, gathered: &mut Gathered) {
        let stamp = self.outlet.time(time);
        if let Some(packer) = &mut self.packer {
            let packed = packer.pack(Kind::Instruction, payload, stamp);
            gathered.push(packed.bytes(), packed.framing());
        }
    }

    /// Sends what was gathered.
    #[inline]
    pub(super) fn send_gathered(&mut self, gathered: &mut Gathered, sink: &mut impl Sink) {
        self.outlet.send_gathered(gathered, sink);
    }

    /// The same for a payload of at most 15 bytes, of which so many are sent.
    #[inline]
    pub(super) fn send_word(
        &mut self,
        kind: Kind,
        (word, len): (u128, u32),
        time: u64,
        sink: &mut impl Sink,
    ) -> bool {
        if self.packer.is_some() {
            let bytes = word.to_le_bytes();
            let payload = bytes.get(..len as usize).unwrap_or_default();
            return self.send_packed(kind, payload, time, sink);
        }
        let (bytes, len) = framed(kind, (word, len));
        self.outlet.send_short((&bytes, len), 1, time, sink)
    }

    /// The same for payloads of data trace, as long as there are any that can be sent in
    /// one go.
    #[inline(always)]
    pub(super) fn send_words(
        &mut self,
        time: u64,
        sink: &mut impl Sink,
        mut next: impl FnMut() -> Option<(u128, u32)>,
    ) {
        if self.packer.is_none() {
            self.outlet.send_all(1, time, sink, || {
                next().map(|word| framed(Kind::Data, word))
            });
        }
    }

    /// Whether packets are being dropped.
    #[inline]
    pub(super) const fn is_dropping(&self) -> bool {
        self.outlet.is_dropping()
    }

    /// Whether packets were dropped and there is room again for a new start.
    /// They are dropped no longer then.
    pub(super) fn recovers(&mut self, time: u64) -> bool {
        let recovers = self.outlet.has_room(time) && self.outlet.is_dropping();
        if recovers {
            self.outlet.recover();
        }
        recovers
    }

    /// Nothing follows.
    pub(super) fn end(&mut self) {
        self.outlet.end();
    }

    /// What was sent and lost.
    pub(super) const fn counters(&self) -> Counters {
        self.outlet.counters()
    }
}

/// A payload of at most 15 bytes with its header, and how many bytes of it are sent.
#[inline(always)]
fn framed(kind: Kind, (word, len): (u128, u32)) -> ([u8; SHORT], usize) {
    let header = kind.header(len as u8);
    let framed = word << 8 | u128::from(header);
    (framed.to_le_bytes(), len as usize + 1)
}
