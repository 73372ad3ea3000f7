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

    /// Adds a message about something that happened at this time: the lowest `len` bytes
    /// of this word, of which the first `framing` are not payload.
    #[inline(always)]
    pub fn push_short(&mut self, word: u128, len: usize, framing: u64, time: u64) {
        let Some(room) = self.room.get_mut(self.len..self.len + SHORT) else {
            let bytes = word.to_le_bytes();
            return self.push(bytes.get(..len).unwrap_or(&bytes), framing, time);
        };
        // To copy always as many bytes is faster.
        let (low, high) = room.split_at_mut(SHORT / 2);
        low.copy_from_slice(&(word as u64).to_le_bytes());
        high.copy_from_slice(&((word >> 64) as u64).to_le_bytes());
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

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::encode::Outlet;

    /// Messages with their times.
    #[derive(Default)]
    struct Apart(Vec<(Vec<u8>, u64)>);

    impl Sink for Apart {
        fn message(&mut self, _: &[u8]) {}

        fn message_at(&mut self, bytes: &[u8], time: u64) {
            self.0.push((bytes.to_vec(), time));
        }
    }

    #[test]
    fn a_sink_gets_messages_together_or_each() {
        let (mut together, mut apart) = (Vec::new(), Apart::default());
        let mut counters = Vec::new();
        for each in [false, true] {
            let (mut outlet, mut gathered) = (Outlet::new(None, 0), Gathered::default());
            match each {
                false => gathered.begin(&together),
                true => gathered.begin(&apart),
            }
            gathered.push_short(0x03_0201, 3, 1, 5);
            gathered.push(&[4; 20], 2, 6);
            gathered.push_short(0x0605, 2, 1, 7);
            match each {
                false => outlet.send_gathered(&mut gathered, &mut together),
                true => outlet.send_gathered(&mut gathered, &mut apart),
            }
            assert_eq!(gathered.messages(), 0);
            counters.push(outlet.counters());
        }
        let messages = vec![(vec![1, 2, 3], 5), (vec![4; 20], 6), (vec![5, 6], 7)];
        assert_eq!(together, [&[1, 2, 3][..], &[4; 20], &[5, 6]].concat());
        assert_eq!(apart.0, messages);
        assert_eq!(counters[0], counters[1]);
        assert_eq!((counters[0].messages, counters[0].payload_bytes), (3, 21));
    }
}
