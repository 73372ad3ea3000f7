//! The way out of one hart's encoder: framing, the queue, counters.

use hartrace_flow::queue::{Admit, Level};

use super::{Counters, Sink};
use crate::{Config, Kind, Layout, MAX_PAYLOAD, Packet};

/// Writes packets and hands them on.
#[derive(Clone, Debug)]
pub(super) struct Out {
    pub(super) layout: Layout,
    /// Cycles the hart has waited; they come on top of every time.
    stalled: u64,
    queue: Option<Level>,
    /// The queue was full: nothing goes out until it has room.
    dropping: bool,
    pub(super) counters: Counters,
}

/// Bytes of the longest support and start packets, which go first after a
/// loss.
fn reserve(layout: &Layout) -> u32 {
    let bytes = |bits: u32| 1 + bits.div_ceil(8);
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
    pub(super) fn new(config: &Config) -> Out {
        let layout = config.layout();
        Out {
            layout,
            stalled: 0,
            queue: config.queue.map(|q| Level::new(q, reserve(&layout))),
            dropping: false,
            counters: Counters::default(),
        }
    }

    /// The hart's own time as the world has it.
    pub(super) fn stamp(&self, time: u64) -> u64 {
        time.wrapping_add(self.stalled)
    }

    /// Sends a packet about something that happened at this time.
    #[inline]
    pub(super) fn send(&mut self, packet: &Packet, time: u64, sink: &mut impl Sink) {
        if self.dropping {
            self.counters.lost += 1;
            return;
        }
        let payload = packet.write(&self.layout);
        let payload = payload.bytes();
        let mut framed = [0; MAX_PAYLOAD + 1];
        if let Some((header, rest)) = framed.split_first_mut() {
            *header = Kind::Instruction.header(payload.len() as u8);
            for (to, from) in rest.iter_mut().zip(payload) {
                *to = *from;
            }
        }
        let framed = framed.get(..=payload.len()).unwrap_or_default();
        if self.queue.is_some() && !self.is_admitted(framed.len(), time) {
            return;
        }
        self.counters.packets += 1;
        self.counters.bytes += framed.len() as u64;
        self.counters.payload_bytes += payload.len() as u64;
        sink.packet(framed);
    }

    fn is_admitted(&mut self, bytes: usize, time: u64) -> bool {
        let time = self.stamp(time);
        let admit = self.queue.as_mut().map(|queue| queue.admit(bytes, time));
        match admit {
            None | Some(Admit::Now) => true,
            Some(Admit::After(cycles)) => {
                self.stalled = self.stalled.wrapping_add(cycles);
                self.counters.stalled += cycles;
                true
            }
            Some(Admit::Never) => {
                self.dropping = true;
                self.counters.overflows += 1;
                self.counters.lost += 1;
                false
            }
        }
    }

    /// Whether packets are being dropped.
    #[inline]
    pub(super) const fn is_dropping(&self) -> bool {
        self.dropping
    }

    /// Whether packets were dropped and there is room again for a new start.
    /// They are dropped no longer then.
    pub(super) fn recovers(&mut self, time: u64) -> bool {
        let now = self.stamp(time);
        let room = self.queue.as_mut().is_none_or(|queue| queue.has_room(now));
        let recovers = self.dropping && room;
        self.dropping &= !recovers;
        recovers
    }

    /// Nothing follows: the queue has all the time it wants.
    pub(super) fn end(&mut self) {
        self.queue = None;
    }
}
