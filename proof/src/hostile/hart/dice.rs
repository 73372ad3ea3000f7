//! Random choices taken from bytes while there are any, then from numbers that
//! depend on all of them: a few bytes are enough for a whole machine, and each
//! of them still matters.

use super::super::Input;
use super::super::elf::random_of;
use crate::generate::Random;

pub(super) struct Dice<'a> {
    input: Input<'a>,
    random: Random,
}

impl<'a> Dice<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Dice<'a> {
        Dice {
            input: Input::new(bytes),
            random: random_of(bytes),
        }
    }

    /// Anything.
    pub(super) fn draw(&mut self) -> u64 {
        if self.input.is_empty() {
            self.random.draw()
        } else {
            self.input.number(8)
        }
    }

    /// A number below `bound`, which is at most 256.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        if self.input.is_empty() {
            self.random.below(bound)
        } else {
            u64::from(self.input.byte()).checked_rem(bound).unwrap_or(0)
        }
    }

    /// True once in so many times.
    pub(super) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of the items; the default when there are none.
    pub(super) fn pick<T: Copy + Default>(&mut self, items: &[T]) -> T {
        let at = self.below(items.len() as u64) as usize;
        items.get(at).copied().unwrap_or_default()
    }

    /// An integer near something.
    pub(super) fn integer(&mut self) -> u64 {
        let power = 1u64 << self.below(64);
        match self.below(6) {
            0 => power.wrapping_sub(self.below(3)),
            1 => power.wrapping_neg(),
            2 => self.below(64),
            3 => self.below(64).wrapping_neg(),
            4 => (self.draw() as i64 >> self.below(64)) as u64,
            _ => self.draw(),
        }
    }
}
