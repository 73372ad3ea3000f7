//! The time of a source, from timestamps of limited width.

/// Counts on where a narrow timestamp wraps.
///
/// ```
/// use hartrace_flow::decode::Clock;
///
/// let mut clock = Clock::default();
/// assert_eq!(clock.absolute(0xf0, 8), 0xf0);
/// assert_eq!(clock.relative(0x20), Some(0x110));
/// assert_eq!(clock.absolute(0x18, 8), 0x118);
/// assert_eq!(clock.absolute(0x10, 8), 0x210, "one more turn");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// The last time, wraps counted; 0 before the first.
    last: u64,
    /// Whether `last` is the time of the last message. After a loss, differences
    /// mean nothing until the next absolute time.
    known: bool,
}

impl Clock {
    /// A message was lost.
    pub fn lose(&mut self) {
        self.known = false;
    }

    /// Takes over another's time to count wraps from.
    pub fn hint(&mut self, other: Clock) {
        if !self.known && self.last == 0 {
            self.last = other.last;
        }
    }

    /// An absolute time in a field of so many bits. One that is less than the
    /// last has wrapped.
    #[inline]
    pub fn absolute(&mut self, field: u64, width: u8) -> u64 {
        let mut time = field;
        if width < 64 {
            let turn = 1u64 << width;
            time = self.last & !(turn - 1) | field & (turn - 1);
            if time < self.last {
                time = time.saturating_add(turn);
            }
        }
        self.last = time;
        self.known = true;
        time
    }

    /// The time since the last message that had one.
    #[inline]
    pub fn relative(&mut self, difference: u64) -> Option<u64> {
        if !self.known {
            return None;
        }
        self.last = self.last.saturating_add(difference);
        Some(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_when_the_field_wraps() {
        let mut clock = Clock::default();
        assert_eq!(clock.absolute(0xf0, 8), 0xf0);
        assert_eq!(clock.absolute(0xf0, 8), 0xf0, "no time has passed");
        assert_eq!(clock.absolute(0x10, 8), 0x110);
        assert_eq!(clock.relative(0x20), Some(0x130));
        assert_eq!(clock.absolute(0x38, 8), 0x138);
        assert_eq!(clock.absolute(0x30, 8), 0x230, "one more turn");
        assert_eq!(clock.absolute(5, 64), 5, "a wide counter was set back");
    }

    #[test]
    fn differences_after_a_loss_mean_nothing() {
        let mut clock = Clock::default();
        assert_eq!(clock.relative(5), None);
        clock.absolute(100, 64);
        assert_eq!(clock.relative(5), Some(105));
        clock.lose();
        assert_eq!(clock.relative(5), None);
        assert_eq!(clock.absolute(7, 64), 7);
    }
}
