//! The `time` of packets: absolute, in as many bits as the field has.

/// The time of one source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Clock {
    /// The last time, wraps of the field counted; 0 before the first.
    last: u64,
}

impl Clock {
    /// Takes over another's time to count wraps from.
    pub(super) fn hint(&mut self, other: Clock) {
        if self.last == 0 {
            self.last = other.last;
        }
    }

    /// The time a field of this width tells. One that is behind the last has
    /// wrapped.
    pub(super) fn read(&mut self, field: u64, width: u8) -> u64 {
        let mut time = field;
        if width < 64 {
            let turn = 1u64 << width;
            time = self.last & !(turn - 1) | field & (turn - 1);
            if time < self.last {
                time = time.saturating_add(turn);
            }
        }
        self.last = time;
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_when_the_field_wraps() {
        let mut clock = Clock::default();
        assert_eq!(clock.read(0xf0, 8), 0xf0);
        assert_eq!(clock.read(0xf0, 8), 0xf0, "no time has passed");
        assert_eq!(clock.read(0x10, 8), 0x110);
        assert_eq!(clock.read(5, 64), 5, "a wide counter was set back");
    }
}
