//! Event counters with overflow (Sscofpmf): `mhpmcounter3` to 31, the event
//! each one counts, and the overflow interrupt.

use hartrace_flow::Mode;

use crate::cpu::Cpu;

/// The overflow bit of `mhpmevent`, which also keeps the next overflow quiet.
const OF: u64 = 1 << 63;
/// Modes in which a counter stands still.
const MINH: u64 = 1 << 62;
const SINH: u64 = 1 << 61;
const UINH: u64 = 1 << 60;
/// What is left of `mhpmevent` for the event; bits between are reserved.
const SELECTOR: u64 = (1 << 56) - 1;

/// Events by the numbers of the supervisor binary interface (PMU extension,
/// hardware general events).
const CYCLES: u64 = 1;
const INSTRUCTIONS: u64 = 2;

/// The counters 3 to 31 by their numbers; the first three are not used.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    counters: [u64; 32],
    events: [u64; 32],
    /// Counters that have an event.
    selected: u32,
    /// Counters written by the instruction that is about to retire: the write
    /// wins over the increment.
    written: u32,
}

/// The numbers in a set of counters.
fn members(mut set: u32) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let number = set.trailing_zeros();
        set &= set.wrapping_sub(1);
        (number < 32).then_some(number as usize)
    })
}

/// What a counter counts.
fn selector(event: u64) -> u64 {
    event & SELECTOR
}

/// The bit that stops a counter in a mode.
fn inhibit(mode: Mode) -> u64 {
    match mode {
        Mode::M => MINH,
        Mode::S => SINH,
        _ => UINH,
    }
}

impl Events {
    /// All zero: nothing is counted.
    pub(crate) fn new() -> Events {
        Events {
            counters: [0; 32],
            events: [0; 32],
            selected: 0,
            written: 0,
        }
    }

    /// `mhpmcounter` of this number.
    pub(crate) fn counter(&self, number: u16) -> u64 {
        let counter = self.counters.get(usize::from(number));
        counter.copied().unwrap_or(0)
    }

    /// Sets a counter from outside.
    pub(crate) fn set_counter(&mut self, number: u16, value: u64) {
        if let Some(counter) = self.counters.get_mut(usize::from(number)) {
            *counter = value;
        }
    }

    /// Sets a counter by an instruction, which does not count itself then.
    pub(crate) fn write_counter(&mut self, number: u16, value: u64) {
        self.set_counter(number, value);
        self.written |= 1 << (number & 31);
    }

    /// Forgets that an instruction has written counters.
    pub(crate) fn retire_writes(&mut self) {
        self.written = 0;
    }

    /// `mhpmevent` of this number, all 64 bits of it.
    pub(crate) fn event(&self, number: u16) -> u64 {
        let event = self.events.get(usize::from(number));
        event.copied().unwrap_or(0)
    }

    /// Sets `mhpmevent`; an event that does not exist becomes none.
    pub(crate) fn set_event(&mut self, number: u16, value: u64) {
        let what = match selector(value) {
            known @ (CYCLES | INSTRUCTIONS) => known,
            _ => 0,
        };
        if let Some(event) = self.events.get_mut(usize::from(number)) {
            *event = value & (OF | MINH | SINH | UINH) | what;
        }
        let bit = 1 << (number & 31);
        self.selected &= !bit;
        if what != 0 {
            self.selected |= bit;
        }
    }

    /// The overflow bits, each at the number of its counter.
    pub(crate) fn overflows(&self) -> u64 {
        let set = self.events.iter().zip(0..);
        set.map(|(event, number)| event >> 63 << number).sum()
    }

    /// Whether there is anything to do when instructions retire.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.selected | self.written == 0
    }

    /// Counts what has happened in a mode. When an interrupt is asked for, gives how many
    /// cycles ago that was: exactly where all instructions take as long.
    #[cold]
    pub(crate) fn count(
        &mut self,
        mode: Mode,
        inhibited: u64,
        instructions: u64,
        cycles: u64,
    ) -> Option<u64> {
        let mut asks = None;
        for number in members(self.selected & !self.written & !inhibited as u32) {
            let pair = self
                .counters
                .get_mut(number)
                .zip(self.events.get_mut(number));
            let Some((counter, event)) = pair else {
                continue;
            };
            if *event & inhibit(mode) != 0 {
                continue;
            }
            let more = match selector(*event) {
                CYCLES => cycles,
                _ => instructions,
            };
            let (sum, over) = counter.overflowing_add(more);
            *counter = sum;
            if over {
                if *event & OF == 0 {
                    let ago = match selector(*event) {
                        CYCLES => sum,
                        _ => sum
                            .saturating_mul(cycles)
                            .checked_div(instructions)
                            .unwrap_or(0),
                    };
                    asks = asks.max(Some(ago));
                }
                *event |= OF;
            }
        }
        self.written = 0;
        asks
    }
}

/// How far counters are from asking for an interrupt: events until the first
/// of their kind overflows. `u64::MAX` is never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) instructions: u64,
    pub(crate) cycles: u64,
}

impl Room {
    const NEVER: Room = Room {
        instructions: u64::MAX,
        cycles: u64::MAX,
    };

    /// Whether it will come to an end in the life of a hart that runs.
    pub(crate) fn is_finite(self) -> bool {
        self.instructions.min(self.cycles) <= u64::MAX / 2
    }

    /// Instructions, of so many cycles at most, until there is something to
    /// look at.
    pub(crate) fn budget(self, most: u64) -> u64 {
        let sure = self.cycles.checked_div(most).unwrap_or(0);
        self.instructions.min(sure.max(1))
    }
}

impl Cpu {
    /// How long the current mode can run before an overflow interrupt becomes
    /// pending.
    pub(crate) fn room(&self) -> Room {
        let mut room = Room::NEVER;
        for number in members(self.events.selected & !self.mcountinhibit as u32) {
            let (event, counter) = (
                self.events.event(number as u16),
                self.events.counter(number as u16),
            );
            if event & (OF | inhibit(self.mode)) != 0 {
                continue;
            }
            let left = match selector(event) {
                CYCLES => &mut room.cycles,
                _ => &mut room.instructions,
            };
            // From 0 it takes one more than fits.
            *left = (*left).min((!counter).saturating_add(1));
        }
        room
    }
}
