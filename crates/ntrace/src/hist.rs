//! The branch history for `HIST` fields: the register, and the detection of
//! repetitions in it (7.9, 8.3, 8.4.2).

mod reference;
mod runs;

use hartrace_flow::PushOutcomes;

use crate::{Body, RepeatedHistory};

use reference::Held;
use runs::{Cost, Run, Split, Tail};

/// Branches that are looked at together; as many as fit a register of 64 bits
/// next to one more.
const WINDOW: u64 = 62;

/// Branches that are not yet in a message.
#[derive(Clone, Debug)]
pub(crate) struct Hist {
    /// The newest branches, the last one in bit 0. What is above `len` is
    /// over and done.
    bits: u64,
    /// Branches held; in a run, those of the run.
    len: u64,
    /// At this many something has to be done.
    limit: u64,
    /// 1 in a run, where each branch is expected to be the same as the one a
    /// period before: that is `bits` at this place.
    running: u64,
    back: u32,
    /// Branches that fit a `HIST` field beside its stop bit.
    room: u32,
    /// Largest `HREPEAT`.
    max: u64,
    /// Bytes that each message has beside its branches.
    beside: u32,
    kind: Kind,
}

/// Outcomes of branches, the newest in bit 0: 1 if it was taken.
#[derive(Clone, Copy)]
pub(crate) struct Newest(pub(crate) u64);

/// The register by itself, for branches that do not fill it.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    pub(crate) bits: Newest,
    len: u64,
    limit: u64,
}

impl PushOutcomes for Newest {
    #[inline(always)]
    fn push(&mut self, branches: u8, taken: u8) {
        self.0 = self.0 << (branches & 63) | u64::from(taken);
    }
}

impl Window {
    /// So many branches of which only the last may be taken, if they fit.
    #[inline(always)]
    pub(crate) fn push(&mut self, count: u8, last_taken: u8) -> bool {
        let len = self.len + u64::from(count);
        let fits = len < self.limit;
        if fits {
            // Fewer than 64: the limit is lower, or they repeat a period.
            self.bits.push(count, last_taken);
            self.len = len;
        }
        fits
    }

    /// How many more fill it.
    #[inline(always)]
    pub(crate) const fn left(&self) -> u8 {
        // At most as many as are looked at together.
        self.limit.saturating_sub(self.len) as u8
    }

    /// The register after so many branches more, fewer than fill it.
    #[inline(always)]
    pub(crate) fn set(&mut self, bits: Newest, more: u8) {
        self.bits = bits;
        self.len += u64::from(more);
    }

    /// So many branches that fill the register: what is left of them in it, and what it
    /// held, which is to be sent. `None` if they fill it twice. Where nothing is beside
    /// the register.
    #[inline]
    pub(crate) fn overflow(self, count: u8, last_taken: u8) -> Option<(Window, u64)> {
        let rest = (self.len + u64::from(count)).saturating_sub(self.limit);
        if rest >= self.limit || u64::from(count) >= u64::BITS.into() {
            return None;
        }
        let mut window = Window { len: rest, ..self };
        window.bits.push(count, last_taken);
        let bits = window.bits.0 >> (rest & 63);
        Some((window, with_stop(bits, self.limit as u32 & 63)))
    }

    /// The branches as a field, 1 without any; it is empty afterwards. Where nothing is
    /// beside the register.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> u64 {
        let field = with_stop(self.bits.0, self.len as u32);
        self.len = 0;
        field
    }
}

/// What is beside the register.
#[derive(Clone, Debug)]
enum Kind {
    Off {
        filled: bool,
    },
    Reference {
        held: Option<Held>,
        /// Branches that were left when the register was last full.
        filled: Option<u64>,
    },
    /// The branches before the run, while there is one.
    On {
        prefix: Option<Piece>,
    },
}

/// Some branches.
#[derive(Clone, Copy, Debug)]
struct Piece {
    bits: u64,
    len: u32,
}

impl Hist {
    /// An empty history. `hist_bits` is the width of `HIST` with its stop bit,
    /// 2 to 32; `hrepeat_bits` that of `HREPEAT`, 0 for no limit.
    pub(crate) fn new(hist_bits: u8, repeat: RepeatedHistory, hrepeat_bits: u8) -> Hist {
        let room = u32::from(hist_bits).clamp(2, 32) - 1;
        let max = match hrepeat_bits {
            0 | 64.. => u64::MAX,
            bits => (1 << bits) - 1,
        };
        let kind = match repeat {
            // A count of one repeats nothing.
            RepeatedHistory::On if max > 1 => Kind::On { prefix: None },
            RepeatedHistory::Reference => Kind::Reference {
                held: None,
                filled: None,
            },
            RepeatedHistory::Off | RepeatedHistory::On => Kind::Off { filled: false },
        };
        let mut hist = Hist {
            bits: 0,
            len: 0,
            limit: 0,
            running: 0,
            back: 0,
            room,
            max,
            beside: 0,
            kind,
        };
        hist.clear();
        hist
    }

    /// The same, where each message has some more bytes, about so many: `SRC`
    /// and `TSTAMP`. A repetition must be worth them.
    pub(crate) fn with_bytes_beside(self, bytes: u32) -> Hist {
        Hist {
            beside: bytes,
            ..self
        }
    }

    /// One more branch; `emit` gets what has to be sent now.
    #[inline]
    pub(crate) fn push(&mut self, taken: bool, emit: &mut impl FnMut(Body<'static>)) {
        let bit = u64::from(taken);
        let other = (self.bits >> self.back ^ bit) & self.running;
        self.bits = self.bits << 1 | bit;
        self.len += 1;
        if other != 0 || self.len == self.limit {
            self.act(other, emit);
        }
    }

    /// So many branches of which only the last may be taken, if nothing has to be
    /// sent or done for any of them.
    #[inline(always)]
    pub(crate) fn push_run(&mut self, count: u8, last_taken: bool) -> bool {
        if self.running != 0 && !self.is_repeated(count, last_taken) {
            return false;
        }
        let mut window = self.register();
        let fits = window.push(count, last_taken.into());
        self.set_window(window);
        fits
    }

    /// Whether there is nothing beside the register: no repetitions are looked for.
    #[inline(always)]
    pub(crate) const fn is_plain(&self) -> bool {
        matches!(self.kind, Kind::Off { .. })
    }

    /// The register with its room, outside of a run.
    #[inline(always)]
    pub(crate) fn window(&self) -> Option<Window> {
        (self.running == 0).then_some(self.register())
    }

    #[inline(always)]
    const fn register(&self) -> Window {
        Window {
            bits: Newest(self.bits),
            len: self.len,
            limit: self.limit,
        }
    }

    /// Takes the register back.
    #[inline(always)]
    pub(crate) fn set_window(&mut self, window: Window) {
        (self.bits, self.len) = (window.bits.0, window.len);
    }

    /// Whether each of these is the same as the one a period before it, as far as
    /// the register shows.
    fn is_repeated(&self, count: u8, last_taken: bool) -> bool {
        let (count, period) = (u32::from(count), self.back + 1);
        if count + period > u64::BITS {
            return false;
        }
        let bits = self.bits << count | u64::from(last_taken);
        (bits >> period ^ bits) & ((1 << count) - 1) == 0
    }

    /// Before a message with `HIST`: `emit` gets what must be sent before it.
    /// Gives the field, 1 without branches, and is empty afterwards.
    #[inline(always)]
    pub(crate) fn take(&mut self, emit: &mut impl FnMut(Body<'static>)) -> u64 {
        match &mut self.kind {
            Kind::Off { filled } => *filled = false,
            Kind::Reference { held, filled } => {
                *filled = None;
                if let Some(held) = held.take() {
                    emit(held.body());
                }
            }
            Kind::On { .. } => self.squeeze(emit),
        }
        let field = with_stop(self.bits, self.len as u32);
        self.len = 0;
        field
    }

    /// Whether nothing is held at all.
    pub(crate) fn is_empty(&self) -> bool {
        let beside = match &self.kind {
            Kind::Off { .. } => false,
            Kind::Reference { held, .. } => held.is_some(),
            Kind::On { prefix } => prefix.is_some(),
        };
        self.len == 0 && !beside
    }

    /// Whether the last branch filled the register. The reference encoder acts
    /// on a full register with the next instruction only, and where there is
    /// none its last message is lost.
    pub(crate) fn just_filled(&self) -> bool {
        match self.kind {
            Kind::Off { filled } => filled && self.len == 0,
            Kind::Reference { filled, .. } => filled == Some(self.len),
            Kind::On { .. } => false,
        }
    }

    /// Forgets all branches.
    pub(crate) fn clear(&mut self) {
        match &mut self.kind {
            Kind::Off { filled } => *filled = false,
            Kind::Reference { held, filled } => (*held, *filled) = (None, None),
            Kind::On { prefix } => *prefix = None,
        }
        self.collect(0);
    }

    /// The register is full, or a run has come to its end: with `other` = 1 at
    /// a branch that is not of the run.
    fn act(&mut self, other: u64, emit: &mut impl FnMut(Body<'static>)) {
        let (bits, room) = (self.bits, self.room);
        match &mut self.kind {
            Kind::Off { filled } => {
                *filled = true;
                self.len = 0;
                emit(full(with_stop(bits, room)));
            }
            Kind::Reference { held, filled } => {
                let left = Held::fill(held, with_stop(bits, room), room, self.max, emit);
                self.len = u64::from(left);
                *filled = Some(self.len);
            }
            Kind::On { prefix } => match prefix.take() {
                Some(prefix) => self.end_run(prefix, other, Tail::More, emit),
                None => self.look(emit),
            },
        }
    }

    /// From now on branches are collected; this many are held.
    fn collect(&mut self, len: u64) {
        self.len = len;
        self.running = 0;
        self.back = 0;
        self.limit = match self.kind {
            Kind::On { .. } => WINDOW,
            Kind::Off { .. } | Kind::Reference { .. } => u64::from(self.room),
        };
    }

    const fn cost(&self, tail: Tail) -> Cost {
        Cost {
            room: self.room,
            max: self.max,
            beside: self.beside,
            tail,
        }
    }

    /// The window is full: a run is sent or followed further, or the oldest
    /// branches are sent as they are.
    fn look(&mut self, emit: &mut impl FnMut(Body<'static>)) {
        let len = self.len as u32;
        let Some((run, split)) = runs::best(self.bits, len, self.cost(Tail::More)) else {
            self.send_oldest(self.room, emit);
            return;
        };
        if run.start >= self.room {
            // Full fields cost least, and the run may go on.
            self.send_oldest(run.start / self.room * self.room, emit);
            return;
        }
        // The longest run that one message can say.
        let longest = u64::from(self.room / run.period * run.period).saturating_mul(self.max);
        let length = u64::from(run.len);
        if run.start + run.len == len && length < longest {
            self.kind = Kind::On {
                prefix: Some(Piece {
                    bits: self.bits >> run.len,
                    len: run.start,
                }),
            };
            self.len = length;
            self.limit = longest;
            self.running = 1;
            self.back = run.period - 1;
            return;
        }
        let prefix = Piece {
            bits: self.bits >> (len - run.start),
            len: run.start,
        };
        self.send_run(prefix, split, emit);
    }

    /// Sends a run that was followed. The newest branch is not of it if
    /// `other` = 1.
    fn end_run(
        &mut self,
        prefix: Piece,
        other: u64,
        tail: Tail,
        emit: &mut impl FnMut(Body<'static>),
    ) {
        let run = Run {
            start: prefix.len,
            len: 0,
            period: self.back + 1,
        };
        let length = self.len - other;
        let split = self.cost(tail).split(run, length, other as u32);
        match split {
            Some(split) => self.send_run(prefix, split, emit),
            // Cannot be: a run that is followed has two periods and more.
            None => self.collect(0),
        }
    }

    /// Sends the branches before a run and those of the run; the rest is held.
    fn send_run(&mut self, prefix: Piece, split: Split, emit: &mut impl FnMut(Body<'static>)) {
        let pattern = low(self.bits >> split.rest, split.period);
        // The pattern's end is also what was before its start.
        let bits = prefix.bits << split.skip | low(pattern, split.skip);
        send_plain(bits, prefix.len + split.skip, self.room, emit);
        emit(Body::HistRepeat {
            hist: with_stop(pattern, split.period),
            count: split.count,
        });
        self.collect(u64::from(split.rest));
    }

    /// Sends this many of the branches held, from the oldest on.
    fn send_oldest(&mut self, count: u32, emit: &mut impl FnMut(Body<'static>)) {
        let rest = self.len as u32 - count;
        send_plain(self.bits >> rest, count, self.room, emit);
        self.len = u64::from(rest);
    }

    /// Sends what does not fit a field, and runs where that is shorter.
    #[inline(never)]
    fn squeeze(&mut self, emit: &mut impl FnMut(Body<'static>)) {
        if let Kind::On { prefix } = &mut self.kind
            && let Some(prefix) = prefix.take()
        {
            self.end_run(prefix, 0, Tail::Field, emit);
        }
        while let Some((run, split)) =
            runs::best(self.bits, self.len as u32, self.cost(Tail::Field))
        {
            let prefix = Piece {
                bits: self.bits >> (self.len as u32 - run.start),
                len: run.start,
            };
            self.send_run(prefix, split, emit);
        }
        while self.len > u64::from(self.room) {
            self.send_oldest(self.room, emit);
        }
    }
}

/// Sends branches as they are.
fn send_plain(bits: u64, len: u32, room: u32, emit: &mut impl FnMut(Body<'static>)) {
    let mut rest = len;
    while rest > 0 {
        let count = rest.min(room);
        rest -= count;
        emit(full(with_stop(bits >> rest, count)));
    }
}

const fn full(hist: u64) -> Body<'static> {
    Body::HistFull { hist }
}

/// The lowest bits, at most 63 of them.
const fn low(bits: u64, count: u32) -> u64 {
    bits & ((1 << count) - 1)
}

/// A `HIST` field of the newest branches.
const fn with_stop(bits: u64, count: u32) -> u64 {
    low(bits, count) | 1 << count
}

#[cfg(test)]
mod tests;
