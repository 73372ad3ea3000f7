//! The encoder's output queue as a bucket that drains with time.

use crate::{Config, Queue};

/// Parts of a byte the level is counted in: [`Queue::drain`] is per 1024
/// cycles.
const PARTS: u64 = 1024;

/// What happened to a message at the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admit {
    /// It is in.
    Now,
    /// It is in, after the hart waited so many cycles.
    After(u64),
    /// There was no room.
    Never,
}

/// How full the queue is.
#[derive(Clone, Debug)]
pub(super) struct Level {
    queue: Queue,
    /// Room for what goes first after a loss, in parts of a byte.
    reserve: u64,
    level: u64,
    /// When the level was last looked at.
    time: u64,
}

impl Level {
    pub(super) fn new(queue: Queue, config: &Config) -> Level {
        Level {
            queue,
            reserve: reserve(config).min(u64::from(queue.bytes)) * PARTS,
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

    /// A message of so many bytes.
    pub(super) fn admit(&mut self, bytes: usize, now: u64) -> Admit {
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

    /// Whether Error, a sync message and its Ownership fit.
    pub(super) fn has_room(&mut self, now: u64) -> bool {
        self.drain(now);
        self.level + self.reserve <= self.capacity()
    }
}

/// Bytes of the longest Error, ProgTraceSync and Ownership messages.
fn reserve(config: &Config) -> u64 {
    let bytes = |bits: u32| u64::from(bits.div_ceil(6));
    let head = 6 + u32::from(config.src_bits);
    let stamp = config.timestamps.map_or(0, |t| bytes(u32::from(t.width)));
    let error = bytes(head + 4 + 4);
    let sync = bytes(head + 4 + 1) + bytes(config.xlen.bits());
    let owner = bytes(head + 5 + 32);
    let owners = match (config.context, config.hcontext) {
        (false, _) => 0,
        (true, false) => 1,
        (true, true) => 2,
    };
    error + sync + owners * owner + (2 + owners) * stamp
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Version;
    use hartrace_isa::Xlen;

    fn level(stall: bool) -> Level {
        let queue = Queue {
            bytes: 100,
            drain: 512,
            stall,
        };
        Level::new(queue, &Config::new(Version::V1_0, Xlen::Rv64))
    }

    #[test]
    fn half_a_byte_leaves_each_cycle() {
        let mut queue = level(false);
        assert_eq!(queue.admit(60, 0), Admit::Now);
        assert_eq!(queue.admit(50, 19), Admit::Never);
        assert_eq!(queue.admit(50, 20), Admit::Now);
        assert!(!queue.has_room(20));
        assert!(queue.has_room(300));
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
}
