//! Slots of fixed size, each with one packet, its last byte first.

use super::{Encapsulated, Framer, Piece, State, shifted};
use crate::encapsulation::MAX_SLOT;
use crate::{Encapsulation, Fault};

impl Framer {
    /// The next slot. After bytes that are none, slots may start anywhere: two in a row
    /// show where.
    pub(super) fn slot(&mut self, bytes: &mut &[u8]) -> Option<(u64, Piece<'_>)> {
        let size = usize::from(self.form.slot_bytes);
        loop {
            let (bad, have) = match self.state {
                State::Between => (None, 0),
                State::Inside(have) => (None, have),
                State::Hunting(count, have) => (Some(count), have),
                State::Lost(..) => return None,
            };
            let want = if bad.is_some() { 2 * size } else { size };
            let have = self.keep(have, want, bytes);
            self.state = match bad {
                Some(count) => State::Hunting(count, have),
                None if have == 0 => State::Between,
                None => State::Inside(have),
            };
            if have < want {
                return None;
            }
            let slot = turned(&self.kept, 0, &self.form);
            match (slot, bad) {
                (Some(slot), None) => {
                    let at = self.at - have as u64;
                    self.kept.copy_within(size..have, 0);
                    self.state = match have - size {
                        0 => State::Between,
                        left => State::Inside(left),
                    };
                    return Some((at, self.opened(slot, size)));
                }
                (Some(_), Some(count)) if self.goes_on(size) => {
                    self.state = State::Inside(have);
                    if count > 0 {
                        let at = self.at - have as u64 - count;
                        return Some((at, Piece::Bad(Fault::BadHeader, count)));
                    }
                }
                _ => {
                    self.kept.copy_within(1..have, 0);
                    self.state = State::Hunting(bad.unwrap_or(0) + 1, have - 1);
                }
            }
        }
    }

    /// Whether the second slot that is kept is one too, and not both are empty.
    fn goes_on(&self, size: usize) -> bool {
        let used = self.kept.get(..2 * size).unwrap_or_default();
        turned(&self.kept, size, &self.form).is_some() && used.iter().any(|&byte| byte != 0)
    }

    /// What is in a slot, which is turned round.
    fn opened(&mut self, slot: [u8; MAX_SLOT], size: usize) -> Piece<'_> {
        let used = self.form.used(slot.get(..size).unwrap_or_default());
        let opened = self.form.open(slot.get(..used).unwrap_or_default());
        let (1.., Some(kind)) = (used.saturating_sub(1), opened.kind) else {
            return Piece::Idle(size as u64);
        };
        let from = opened.payload / 8;
        let payload = slot.get(from..used).unwrap_or_default();
        let payload = match opened.payload % 8 {
            0 => {
                for (to, from) in self.moved.iter_mut().zip(payload) {
                    *to = *from;
                }
                self.moved.get(..payload.len()).unwrap_or_default()
            }
            shift => shifted(payload, shift, &mut self.moved),
        };
        Piece::Packet(Encapsulated {
            src: opened.src,
            kind,
            time: opened.time,
            payload,
            len: size,
        })
    }
}

/// The bytes from a place on turned round, if they are a slot.
fn turned(bytes: &[u8], from: usize, form: &Encapsulation) -> Option<[u8; MAX_SLOT]> {
    let size = usize::from(form.slot_bytes);
    let mut slot = [0; MAX_SLOT];
    for (to, from) in slot
        .iter_mut()
        .zip(bytes.get(from..from + size)?.iter().rev())
    {
        *to = *from;
    }
    form.is_slot(slot.get(..size)?).then_some(slot)
}

/// Slots in a row that make a place sure.
const CONFIRM: usize = 4;

/// The first place from which on there are slots, of which one at least is not empty.
pub(super) fn boundary(bytes: &[u8], from: usize, form: &Encapsulation) -> Option<usize> {
    let size = usize::from(form.slot_bytes);
    let is_slots = |at: &usize| {
        let slots = bytes.get(*at..*at + CONFIRM * size);
        slots.is_some_and(|slots| {
            let used = slots.chunks_exact(size).any(|slot| slot.last() != Some(&0));
            let slots = slots.chunks_exact(size);
            used && slots
                .into_iter()
                .all(|slot| turned(slot, 0, form).is_some())
        })
    };
    (from + 1..=from + 2 * size).find(is_slots)
}
