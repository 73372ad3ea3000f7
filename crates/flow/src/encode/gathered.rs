//! Messages on their way to a sink that takes several at once.

use alloc::vec::Vec;

use super::{SHORT, Sink};

/// Messages that an encoder has made, but its [`Outlet`](super::Outlet) not sent.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    /// Room for their bytes, and how many there are.
    room: Vec<u8>,
    len: usize,
    messages: u64,
    /// Bytes that are not payload.
    framing: u64,
    /// The sink wants each message by itself.
    apart: bool,
    /// Where each ends then, and its time.
    ends: Vec<(usize, u64)>,
}

/// Bytes by which the room grows.
const PAGE: usize = 1 << 12;

impl Gathered {
    /// Begins with none. What there was is dropped.
    #[inline]
    pub fn begin(&mut self, sink: &impl Sink) {
        self.clear();
        self.apart = sink.wants_each();
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        self.len = 0;
        self.messages = 0;
        self.framing = 0;
        self.ends.clear();
    }

    /// Adds a message about something that happened at this time: the first `len` of
    /// these bytes, of which the first `framing` are not payload.
    #[inline(always)]
    pub fn push_short(&mut self, bytes: &[u8; SHORT], len: usize, framing: u64, time: u64) {
        let Some(room) = self.room.get_mut(self.len..self.len + SHORT) else {
            return self.push(bytes.get(..len).unwrap_or(bytes), framing, time);
        };
        // To copy always as many bytes is faster.
        room.copy_from_slice(bytes);
        self.count(len, framing, time);
    }

    /// The same for one of any length.
    #[cold]
    pub fn push(&mut self, bytes: &[u8], framing: u64, time: u64) {
        let end = self.len + bytes.len();
        if self.room.len() < end + SHORT {
            self.room.resize(end + PAGE, 0);
        }
        if let Some(room) = self.room.get_mut(self.len..end) {
            room.copy_from_slice(bytes);
        }
        self.count(bytes.len(), framing, time);
    }

    #[inline(always)]
    fn count(&mut self, len: usize, framing: u64, time: u64) {
        self.len += len;
        self.messages += 1;
        self.framing += framing;
        if self.apart {
            self.ends.push((self.len, time));
        }
    }

    /// How many there are.
    #[must_use]
    #[inline]
    pub const fn messages(&self) -> u64 {
        self.messages
    }

    /// Their bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        self.room.get(..self.len).unwrap_or_default()
    }

    pub(super) const fn framing(&self) -> u64 {
        self.framing
    }

    /// Gives all to the sink; `time` is applied to the time of each.
    pub(super) fn give(&self, sink: &mut impl Sink, time: impl Fn(u64) -> u64) {
        if !self.apart {
            return sink.messages(self.bytes(), self.messages);
        }
        let mut start = 0;
        for &(end, at) in &self.ends {
            sink.message_at(self.room.get(start..end).unwrap_or_default(), time(at));
            start = end;
        }
    }
}
