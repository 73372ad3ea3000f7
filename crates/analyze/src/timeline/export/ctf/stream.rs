//! A stream of events: packets of moderate size.

use super::metadata::{EventClass, MAGIC};
use hartrace_flow::HartId;
use std::io::{self, Write};

/// Bytes of events in a packet, about.
const PACKET: usize = 1 << 18;

/// Bytes before the events: the header of a packet and its context.
const BEFORE: usize = 4 + 4 + 5 * 8 + 4;

/// Appends the fields of an event.
pub(super) type Payload<'a> = &'a dyn Fn(&mut Vec<u8>);

/// Writes a stream.
pub(super) struct Stream<'w> {
    out: Box<dyn Write + 'w>,
    hart: HartId,
    /// Its number among all streams.
    id: u32,
    /// Packets that were written.
    packets: u64,
    /// The time at which the packet begins, and the last one in it.
    begin: u64,
    last: u64,
    events: Vec<u8>,
}

impl<'w> Stream<'w> {
    /// The stream with this number, 0 or 1, of a hart.
    pub(super) const fn new(out: Box<dyn Write + 'w>, hart: HartId, number: u32) -> Stream<'w> {
        Stream {
            out,
            hart,
            id: hart.0.wrapping_mul(2) + number,
            packets: 0,
            begin: 0,
            last: 0,
            events: Vec::new(),
        }
    }

    /// An event, not before the last.
    pub(super) fn event(
        &mut self,
        at: u64,
        class: EventClass,
        payload: Payload<'_>,
    ) -> io::Result<()> {
        let at = at.max(self.last);
        // An event has the low bits of its time: a reader notices if they wrap once.
        if !self.events.is_empty() && u32::try_from(at - self.last).is_err() {
            self.send()?;
        }
        if self.events.is_empty() {
            self.begin = at;
        }
        self.last = at;
        self.events.push(class as u8);
        self.events.extend((at as u32).to_le_bytes());
        payload(&mut self.events);
        match self.events.len() < PACKET {
            true => Ok(()),
            false => self.send(),
        }
    }

    fn send(&mut self) -> io::Result<()> {
        let bits = (BEFORE + self.events.len()) as u64 * 8;
        let mut before = Vec::with_capacity(BEFORE);
        before.extend(MAGIC.to_le_bytes());
        before.extend(self.id.to_le_bytes());
        // The packet has no bits after its contents.
        for number in [bits, bits, self.begin, self.last, self.packets] {
            before.extend(number.to_le_bytes());
        }
        before.extend(self.hart.0.to_le_bytes());
        self.packets += 1;
        self.out.write_all(&before)?;
        self.out.write_all(&self.events)?;
        self.events.clear();
        Ok(())
    }

    pub(super) fn finish(&mut self) -> io::Result<()> {
        if !self.events.is_empty() {
            self.send()?;
        }
        self.out.flush()
    }
}

/// Appends a text, which ends with a zero.
pub(super) fn text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().filter(|byte| *byte != 0));
    out.push(0);
}
