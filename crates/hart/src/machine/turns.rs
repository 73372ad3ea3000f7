//! Several harts: one runs, the others wait for their turns.
//!
//! Harts take turns in the order of their numbers. A round is a piece of time, counted
//! in cycles: in its turn each hart goes on until its own cycle count reaches the end
//! of the round. So all clocks stay together, a hart that waits lets the same time pass
//! as one that works, and nothing depends on the host: the same program gives the same
//! steps every time. What a hart does is seen by the others in their next turns.

use std::collections::VecDeque;

use crate::hart::Hart;
use crate::machine::{Machine, Stop};

/// Cycles that an instruction is expected to take. If it takes more, the hart goes on a
/// little longer than its turn.
const USUAL_COST: u64 = 4;

/// The harts that wait for their turns.
#[derive(Debug)]
pub(crate) struct Turns {
    /// In the order of their turns.
    others: VecDeque<Hart>,
    /// Instructions that they have retired.
    pub(super) elsewhere: u64,
    quantum: u64,
    /// The cycle with which this round ends.
    round: u64,
    /// The cycle with which this turn ends.
    end: u64,
    /// The state of a random source; 0 is none.
    random: u64,
    /// Harts in a row, the last of them the one that runs, that could do nothing.
    stuck: usize,
}

impl Turns {
    pub(crate) fn new(others: VecDeque<Hart>, quantum: u64, seed: u64) -> Turns {
        let mut turns = Turns {
            others,
            elsewhere: 0,
            quantum,
            round: quantum,
            end: 0,
            random: seed,
            stuck: 0,
        };
        turns.begin();
        turns
    }

    /// Whether there is only one hart.
    pub(super) fn is_alone(&self) -> bool {
        self.others.is_empty()
    }

    /// Whether all others wait for an interrupt.
    pub(super) fn all_wait(&self) -> bool {
        self.others.iter().all(|hart| hart.cpu.waiting)
    }

    /// All harts, given the one that runs.
    pub(super) fn others_and<'a>(
        &'a mut self,
        hart: &'a mut Hart,
    ) -> impl Iterator<Item = &'a mut Hart> {
        core::iter::once(hart).chain(&mut self.others)
    }

    /// When the turn of the hart ends, if there are others.
    pub(super) fn end(&self) -> Option<u64> {
        (!self.is_alone()).then_some(self.end)
    }

    /// Whether the turn of the hart is over.
    pub(super) fn is_over(&self, hart: &Hart) -> bool {
        !self.is_alone() && hart.cpu.cycles >= self.end
    }

    /// How many instructions it can do before it is.
    pub(super) fn budget(&self, hart: &Hart) -> u64 {
        match self.is_alone() {
            true => u64::MAX,
            false => (self.end.saturating_sub(hart.cpu.cycles) / USUAL_COST).max(1),
        }
    }

    /// All harts start again at this cycle, after so many instructions.
    pub(super) fn resume(&mut self, retired: u64, now: u64) {
        self.elsewhere = retired;
        self.round = now + self.quantum;
        self.begin();
    }

    /// Begins a turn.
    fn begin(&mut self) {
        self.end = self.round;
        if self.random != 0 {
            // An xorshift generator: it never gets to 0.
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            self.end -= self.random % self.quantum.div_ceil(2);
        }
    }
}

impl Machine {
    /// Ends the turn of the hart that runs, and begins that of the next one. Stops if
    /// no hart can do anything any more.
    pub(super) fn next_turn(&mut self) -> Option<Stop> {
        if let Some(stop) = self.find_stuck() {
            return Some(stop);
        }
        self.refresh_timer();
        // Others may store there.
        self.hart.cpu.reservation = None;
        let next = self.turns.others.pop_front()?;
        let before = core::mem::replace(&mut self.hart, next);
        self.turns.elsewhere += before.cpu.retired;
        self.turns.elsewhere -= self.hart.cpu.retired;
        self.turns.others.push_back(before);
        for frame in self.bus.memory.take_fresh() {
            for hart in self.turns.others_and(&mut self.hart) {
                hart.tlb.forget_stores(frame);
            }
        }
        if self.hart.cpu.id == 0 {
            self.turns.round += self.turns.quantum;
        }
        self.turns.begin();
        self.bus.find_deadline(&self.hart.cpu);
        None
    }

    /// Whether the hart that runs was the last one that could do something.
    fn find_stuck(&mut self) -> Option<Stop> {
        let stop = match self.hart.cpu.waiting {
            true => Some(self.asleep()).filter(|_| !self.can_wake()),
            false => self.find_spin(),
        };
        self.turns.stuck = match stop {
            Some(_) => self.turns.stuck + 1,
            None => 0,
        };
        stop.filter(|_| self.turns.stuck > self.turns.others.len())
    }
}
