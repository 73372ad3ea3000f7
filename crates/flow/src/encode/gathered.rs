//! Messages on their way to a sink that takes several at once.

use alloc::vec::Vec;

use super::SHORT;

/// Messages that an encoder has made, but its [`Outlet`](super::Outlet) not sent: for a sink
/// that does not [want each](super::Sink::wants_each) by itself.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    /// Room for their bytes, and how many there are.
    room: Vec<u8>,
    len: usize,
    messages: u64,
    /// Bytes that are not payload.
    framing: u64,
}

/// Bytes by which the room grows.
const PAGE: usize = 1 << 12;

impl Gathered {
    /// Begins with none. What there was is dropped.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
        self.messages = 0;
        self.framing = 0;
    }

    /// Adds a message: the lowest `len` bytes of this word, of which the first `framing` are
    /// not payload.
    #[inline(always)]
    pub fn push_short(&mut self, word: u128, len: usize, framing: u64) {
        let Some(room) = self.room.get_mut(self.len..self.len + SHORT) else {
            let bytes = word.to_le_bytes();
            return self.push(bytes.get(..len).unwrap_or(&bytes), framing);
        };
        // To copy always as many bytes is faster.
        let (low, high) = room.split_at_mut(SHORT / 2);
        low.copy_from_slice(&(word as u64).to_le_bytes());
        high.copy_from_slice(&((word >> 64) as u64).to_le_bytes());
        self.count(len, framing);
    }

    /// The same for one of any length.
    #[cold]
    pub fn push(&mut self, bytes: &[u8], framing: u64) {
        let end = self.len + bytes.len();
        if self.room.len() < end + SHORT {
            self.room.resize(end + PAGE, 0);
        }
        if let Some(room) = self.room.get_mut(self.len..end) {
            room.copy_from_slice(bytes);
        }
        self.count(bytes.len(), framing);
    }

    #[inline(always)]
    fn count(&mut self, len: usize, framing: u64) {
        self.len += len;
        self.messages += 1;
        self.framing += framing;
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::Outlet;

    #[test]
    fn a_sink_gets_messages_together() {
        let mut sent = Vec::new();
        let (mut outlet, mut gathered) = (Outlet::new(None, 0), Gathered::default());
        gathered.push_short(0x03_0201, 3, 1);
        gathered.push(&[4; 20], 2);
        gathered.push_short(0x0605, 2, 1);
        outlet.send_gathered(&mut gathered, &mut sent);
        assert_eq!(gathered.messages(), 0);
        assert_eq!(sent, [&[1, 2, 3][..], &[4; 20], &[5, 6]].concat());
        let counters = outlet.counters();
        assert_eq!((counters.messages, counters.payload_bytes), (3, 21));
    }
}
