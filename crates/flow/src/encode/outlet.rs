//! Where the messages of one hart leave its encoder: the queue and the counters.

use super::{Counters, Gathered, SHORT, Sink};
use crate::queue::{Admit, Level, Queue};

/// Messages that are given to a sink together, at most.
const TOGETHER: usize = 32;

/// Passes messages through the output queue to the sink and counts them.
///
/// ```
/// use hartrace_flow::encode::Outlet;
/// use hartrace_flow::queue::Queue;
///
/// let queue = Queue { bytes: 4, drain: 1024, stall: false };
/// let mut outlet = Outlet::new(Some(queue), 3);
/// let mut sink = Vec::new();
/// assert!(outlet.send(&[1, 2, 3], 1, 0, &mut sink));
/// assert!(!outlet.send(&[4, 5], 1, 0, &mut sink), "it is full, and nothing has left it");
/// assert!(outlet.is_dropping() && !outlet.has_room(1) && outlet.has_room(2));
/// outlet.recover();
/// assert!(outlet.send(&[6, 7], 1, 2, &mut sink));
/// assert_eq!(sink, [1, 2, 3, 6, 7]);
/// assert_eq!((outlet.counters().lost, outlet.counters().payload_bytes), (1, 3));
/// ```
#[derive(Clone, Debug)]
pub struct Outlet {
    /// Cycles the hart has waited; they come on top of every time.
    stalled: u64,
    queue: Option<Level>,
    /// The queue was full: nothing leaves until it has room.
    dropping: bool,
    /// Nothing follows: the queue has all the time it needs.
    ended: bool,
    counters: Counters,
}

impl Outlet {
    /// An empty queue, or one that is never full. `reserve` is the number of
    /// bytes that must fit before it is used again after an overflow: the
    /// messages that report the loss and start the trace again.
    #[must_use]
    pub fn new(queue: Option<Queue>, reserve: u32) -> Outlet {
        Outlet {
            stalled: 0,
            queue: queue.map(|queue| Level::new(queue, reserve)),
            dropping: false,
            ended: false,
            counters: Counters::default(),
        }
    }

    /// The time of the hart's clock at which something happened, by the clock
    /// outside: the cycles the hart waited are added.
    #[must_use]
    #[inline]
    pub const fn time(&self, time: u64) -> u64 {
        time.wrapping_add(self.stalled)
    }

    /// Sends a message about something that happened at this time of the hart;
    /// the first `framing` bytes are not payload. `false` if it is lost.
    #[inline]
    pub fn send(&mut self, bytes: &[u8], framing: u64, time: u64, sink: &mut impl Sink) -> bool {
        if !self.is_sent(bytes.len(), framing, time) {
            return false;
        }
        match self.ended {
            true => sink.message(bytes),
            false => sink.message_at(bytes, self.time(time)),
        }
        true
    }

    /// The same for the first `len` of these bytes.
    #[inline]
    pub fn send_short(
        &mut self,
        (bytes, len): (&[u8; SHORT], usize),
        framing: u64,
        time: u64,
        sink: &mut impl Sink,
    ) -> bool {
        if !self.is_sent(len, framing, time) {
            return false;
        }
        match self.ended {
            true => sink.message(bytes.get(..len).unwrap_or(bytes)),
            false => sink.short_message_at(bytes, len, self.time(time)),
        }
        true
    }

    /// Sends messages as long as there are any, each the first so many of these bytes, as
    /// [`send_short`](Outlet::send_short). None, unless all of them leave at once: there
    /// is no queue, and the trace has not ended.
    #[inline(always)]
    pub fn send_all(
        &mut self,
        framing: u64,
        time: u64,
        sink: &mut impl Sink,
        mut next: impl FnMut() -> Option<([u8; SHORT], usize)>,
    ) {
        if !self.is_open() {
            return;
        }
        let time = self.time(time);
        let (mut messages, mut bytes) = (0, 0);
        let (mut room, mut lens) = ([0; SHORT * TOGETHER], [0; TOGETHER]);
        loop {
            let (mut end, mut count) = (0, 0);
            for each in &mut lens {
                let Some((message, len)) = next() else {
                    break;
                };
                if let Some(place) = room.get_mut(end..end + SHORT) {
                    place.copy_from_slice(&message);
                }
                *each = len as u8;
                end += len.min(SHORT);
                count += 1;
            }
            let sent = (room.get(..end), lens.get(..count));
            if let (Some(all), Some(lens @ [_, ..])) = sent {
                give(sink, (all, lens), time);
            }
            messages += count as u64;
            bytes += end as u64;
            if count < TOGETHER {
                break;
            }
        }
        self.counters.messages += messages;
        self.counters.bytes += bytes;
        self.counters.payload_bytes += bytes.saturating_sub(framing * messages);
    }

    /// Whether messages leave at once: there is no queue, and the trace has not ended.
    #[must_use]
    #[inline]
    pub const fn is_open(&self) -> bool {
        !self.dropping && !self.ended && self.queue.is_none()
    }

    /// Sends what was gathered while the outlet [is open](Outlet::is_open).
    #[inline]
    pub fn send_gathered(&mut self, gathered: &mut Gathered, sink: &mut impl Sink) {
        if gathered.messages() == 0 {
            return;
        }
        let bytes = gathered.bytes().len() as u64;
        self.counters.messages += gathered.messages();
        self.counters.bytes += bytes;
        self.counters.payload_bytes += bytes.saturating_sub(gathered.framing());
        sink.messages(gathered.bytes(), gathered.messages());
        gathered.clear();
    }

    /// Whether a message of so many bytes is sent; it is counted then.
    #[inline]
    fn is_sent(&mut self, bytes: usize, framing: u64, time: u64) -> bool {
        if self.dropping || self.queue.is_some() && !self.is_admitted(bytes, time) {
            self.counters.lost += 1;
            return false;
        }
        self.counters.messages += 1;
        self.counters.bytes += bytes as u64;
        self.counters.payload_bytes += (bytes as u64).saturating_sub(framing);
        true
    }

    fn is_admitted(&mut self, bytes: usize, time: u64) -> bool {
        let time = self.time(time);
        match self.queue.as_mut().map(|queue| queue.admit(bytes, time)) {
            None | Some(Admit::Now) => true,
            Some(Admit::After(cycles)) => {
                self.stalled = self.stalled.wrapping_add(cycles);
                self.counters.stalled += cycles;
                true
            }
            Some(Admit::Never) => {
                self.dropping = true;
                self.counters.overflows += 1;
                false
            }
        }
    }

    /// Whether messages are dropped, from the first that did not fit until
    /// [`recover`](Outlet::recover).
    #[must_use]
    #[inline]
    pub const fn is_dropping(&self) -> bool {
        self.dropping
    }

    /// Whether the reserve fits at this time.
    pub fn has_room(&mut self, time: u64) -> bool {
        let now = self.time(time);
        self.queue.as_mut().is_none_or(|queue| queue.has_room(now))
    }

    /// Messages are dropped no longer.
    pub fn recover(&mut self) {
        self.dropping = false;
    }

    /// Nothing follows: the queue has all the time it needs.
    pub fn end(&mut self) {
        self.queue = None;
        self.ended = true;
    }

    /// What was sent and lost.
    #[must_use]
    #[inline]
    pub const fn counters(&self) -> Counters {
        self.counters
    }
}

/// Gives messages of one time to a sink: their bytes, and how long each is.
#[inline]
fn give(sink: &mut impl Sink, (bytes, lens): (&[u8], &[u8]), time: u64) {
    if !sink.wants_each() {
        return sink.messages(bytes, lens.len() as u64);
    }
    let mut rest = bytes;
    for &len in lens {
        let (message, others) = rest.split_at_checked(len.into()).unwrap_or((rest, &[]));
        sink.message_at(message, time);
        rest = others;
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// Each message and its time.
    #[derive(Default)]
    struct Tape(Vec<(Vec<u8>, u64)>);

    impl Sink for Tape {
        fn message(&mut self, _: &[u8]) {}

        fn message_at(&mut self, bytes: &[u8], time: u64) {
            self.0.push((bytes.to_vec(), time));
        }
    }

    #[test]
    fn messages_sent_together_are_those_sent_one_by_one() {
        for count in [0, 1, TOGETHER - 1, TOGETHER, TOGETHER + 1, 3 * TOGETHER + 5] {
            let messages = (0..count).map(|i| ([i as u8; SHORT], 1 + i % SHORT));
            let mut single = (Outlet::new(None, 0), Tape::default(), Vec::new());
            for (bytes, len) in messages.clone() {
                let short = (&bytes, len);
                assert!(single.0.send_short(short, 1, 7, &mut single.1));
                assert!(single.0.send_short(short, 1, 7, &mut single.2));
            }
            let mut all = (Outlet::new(None, 0), Tape::default(), Vec::new());
            let mut left = messages.clone();
            all.0.send_all(1, 7, &mut all.1, || left.next());
            let mut left = messages;
            all.0.send_all(1, 7, &mut all.2, || left.next());
            assert_eq!((all.1.0, all.2), (single.1.0, single.2), "{count}");
            assert_eq!(all.0.counters(), single.0.counters());
        }
    }
}
