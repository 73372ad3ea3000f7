//! Timestamps: absolute in sync messages, differences elsewhere (8.7).

use crate::Timestamps;

/// The time of one source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Clock {
    /// The last time, wraps of the counter counted.
    last: u64,
    /// Whether `last` is the time of the last message. After a loss the
    /// differences mean nothing until the next absolute time.
    known: bool,
}

impl Clock {
    /// A message was lost.
    pub(super) fn lose(&mut self) {
        self.known = false;
    }

    /// Takes over another's time to count wraps from.
    pub(super) fn hint(&mut self, other: Clock) {
        if !self.known && self.last == 0 {
            self.last = other.last;
        }
    }

    /// An absolute time. A counter that is behind the last one has wrapped.
    pub(super) fn absolute(&mut self, stamp: u64, config: Timestamps) -> u64 {
        let mut time = stamp;
        if config.width < 64 {
            let turn = 1u64 << config.width;
            time = self.last & !(turn - 1) | stamp & (turn - 1);
            if time < self.last {
                time = time.saturating_add(turn);
            }
        }
        self.last = time;
        self.known = true;
        time
    }

    /// The time since the last message that told it.
    pub(super) fn relative(&mut self, stamp: u64) -> Option<u64> {
        if !self.known {
            return None;
        }
        self.last = self.last.saturating_add(stamp);
        Some(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NARROW: Timestamps = Timestamps {
        width: 8,
        prescale: 0,
        sync_only: false,
    };

    #[test]
    fn time_goes_on_when_the_counter_wraps() {
        let mut clock = Clock::default();
        assert_eq!(clock.absolute(0xf0, NARROW), 0xf0);
        assert_eq!(clock.relative(0x20), Some(0x110));
        assert_eq!(clock.absolute(0x18, NARROW), 0x118);
        assert_eq!(clock.absolute(0x10, NARROW), 0x210, "one more turn");
    }

    #[test]
    fn differences_after_a_loss_mean_nothing() {
        let mut clock = Clock::default();
        assert_eq!(clock.relative(5), None);
        clock.absolute(100, Timestamps::default());
        assert_eq!(clock.relative(5), Some(105));
        clock.lose();
        assert_eq!(clock.relative(5), None);
        assert_eq!(clock.absolute(7, Timestamps::default()), 7);
    }
}
