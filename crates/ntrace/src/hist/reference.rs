//! Repetitions as the reference encoder finds them: full registers that are
//! equal, or the same pattern shorter by three or by one branch.

use super::{full, low, with_stop};
use crate::Body;

/// A full register that is kept back to see how often it comes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    /// The pattern with its stop bit.
    hist: u64,
    /// By how many branches it is shorter than the register.
    shorter: u32,
    /// How often it came.
    count: u64,
}

impl Held {
    /// Takes a full register; gives how many of its newest branches are left
    /// in it.
    pub(super) fn fill(
        held: &mut Option<Held>,
        hist: u64,
        room: u32,
        max: u64,
        emit: &mut impl FnMut(Body<'static>),
    ) -> u32 {
        let (next, left) = match *held {
            Some(old) if hist >> old.shorter == old.hist => {
                let count = old.count + 1;
                (Held { count, ..old }, old.shorter)
            }
            Some(old) => match old.shortened(hist, room) {
                Some(new) => (new, 2 * new.shorter),
                None => {
                    emit(old.body());
                    (Held::new(hist), 0)
                }
            },
            None => (Held::new(hist), 0),
        };
        *held = if next.count >= max {
            emit(next.body());
            None
        } else {
            Some(next)
        };
        left
    }

    const fn new(hist: u64) -> Held {
        Held {
            hist,
            shorter: 0,
            count: 1,
        }
    }

    /// The pattern that, a little shorter, comes twice in the first two
    /// registers.
    fn shortened(self, hist: u64, room: u32) -> Option<Held> {
        if self.count != 1 {
            return None;
        }
        [3, 1].into_iter().find_map(|shorter| {
            // What is left must leave room in the register.
            let period = room.checked_sub(shorter)?;
            let from_new = period.checked_sub(shorter).filter(|&n| n > 0)?;
            let first = self.hist >> shorter;
            let second = self.hist << from_new | low(hist >> (2 * shorter), from_new);
            (first == with_stop(second, period)).then_some(Held {
                hist: first,
                shorter,
                count: 2,
            })
        })
    }

    pub(super) const fn body(self) -> Body<'static> {
        if self.count > 1 {
            Body::HistRepeat {
                hist: self.hist,
                count: self.count,
            }
        } else {
            full(self.hist)
        }
    }
}
