//! An encoder's output queue, modelled as a bucket that drains over time.
//!
//! [`Level`] is the queue of an encoder. [`Fill`] and [`SmallestDrain`] say what
//! queue a stream needs: how deep at a drain, how fast a drain at a depth.

mod size;

pub use size::{Fill, SmallestDrain};

/// What queue an encoder has. Each protocol says how small it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Queue {
    /// Bytes it holds.
    pub bytes: u32,
    /// Bytes that leave it in 1024 cycles.
    pub drain: u32,
    /// The hart waits when it is full (trTeInstStallEna); otherwise what does
    /// not fit is lost.
    pub stall: bool,
}

/// Parts of a byte the level is counted in: [`Queue::drain`] is per 1024
/// cycles.
const PARTS: u64 = 1024;

/// What happened at the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admit {
    /// It is in.
    Now,
    /// It is in, after the hart waited so many cycles.
    After(u64),
    /// There was no room.
    Never,
}

/// How full a queue is.
///
/// ```
/// use hartrace_flow::queue::{Admit, Level, Queue};
///
/// // Half a byte leaves in each cycle.
/// let queue = Queue { bytes: 100, drain: 512, stall: false };
/// let mut level = Level::new(queue, 0);
/// assert_eq!(level.admit(60, 0), Admit::Now);
/// assert_eq!(level.admit(50, 19), Admit::Never);
/// assert_eq!(level.admit(50, 20), Admit::Now);
/// ```
#[derive(Clone, Debug)]
pub struct Level {
    queue: Queue,
    /// Room for what goes first after a loss, in parts of a byte.
    reserve: u64,
    level: u64,
    /// When the level was last looked at.
    time: u64,
}

impl Level {
    /// An empty queue. `reserve` is the number of bytes that must fit before
    /// it is used again after it was full.
    #[must_use]
    pub fn new(queue: Queue, reserve: u32) -> Level {
        Level {
            queue,
            reserve: u64::from(reserve.min(queue.bytes)) * PARTS,
            level: 0,
            time: 0,
        }
    }

    fn capacity(&self) -> u64 {
        u64::from(self.queue.bytes) * PARTS
    }

    /// What left until now.
    fn drain(&mut self, now: u64) {
        let cycles = now.saturating_sub(self.time);
        self.time = self.time.max(now);
        let gone = cycles.saturating_mul(u64::from(self.queue.drain));
        self.level = self.level.saturating_sub(gone);
    }

    /// So many bytes at this time.
    pub fn admit(&mut self, bytes: usize, now: u64) -> Admit {
        self.drain(now);
        let full = self.level + bytes as u64 * PARTS;
        let over = full.saturating_sub(self.capacity());
        if over == 0 {
            self.level = full;
            return Admit::Now;
        }
        if !self.queue.stall {
            return Admit::Never;
        }
        let rate = u64::from(self.queue.drain).max(1);
        let wait = over.div_ceil(rate);
        self.time = self.time.saturating_add(wait);
        self.level = full.saturating_sub(wait.saturating_mul(rate));
        Admit::After(wait)
    }

    /// Whether the reserve fits.
    pub fn has_room(&mut self, now: u64) -> bool {
        self.drain(now);
        self.level + self.reserve <= self.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(stall: bool) -> Level {
        let queue = Queue {
            bytes: 100,
            drain: 512,
            stall,
        };
        Level::new(queue, 15)
    }

    #[test]
    fn half_a_byte_leaves_each_cycle() {
        let mut queue = level(false);
        assert_eq!(queue.admit(60, 0), Admit::Now);
        assert_eq!(queue.admit(50, 19), Admit::Never);
        assert_eq!(queue.admit(50, 20), Admit::Now);
        assert!(!queue.has_room(20));
        assert!(!queue.has_room(49));
        assert!(queue.has_room(50));
    }

    #[test]
    fn a_hart_waits_for_room() {
        let mut queue = level(true);
        assert_eq!(queue.admit(60, 0), Admit::Now);
        assert_eq!(queue.admit(50, 1), Admit::After(19));
        assert_eq!(queue.admit(1, 20), Admit::After(2));
    }

    #[test]
    fn time_may_jump_about() {
        let mut queue = level(false);
        assert_eq!(queue.admit(60, u64::MAX), Admit::Now);
        assert_eq!(queue.admit(60, 0), Admit::Never);
    }

    #[test]
    fn the_reserve_is_never_more_than_the_queue() {
        let queue = Queue {
            bytes: 10,
            drain: 1,
            stall: false,
        };
        assert!(Level::new(queue, 1000).has_room(0));
    }
}
