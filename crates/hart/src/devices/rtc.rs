//! The clock of a machine, with the registers of Goldfish's: nanoseconds since
//! 1970. It follows `mtime`, so two runs read the same time of day.

use crate::memory::Region;

/// Where QEMU's `virt` machine has it.
pub(crate) const RTC: Region = Region {
    base: 0x10_1000,
    size: 0x1000,
};

/// The source of its interrupt.
pub(crate) const RTC_SOURCE: u32 = 11;

/// Nanoseconds in a tick of `mtime`.
const TICK: u64 = 100;

const TIME_LOW: u64 = 0x00;
const TIME_HIGH: u64 = 0x04;
const ALARM_LOW: u64 = 0x08;
const ALARM_HIGH: u64 = 0x0c;
const IRQ_ENABLED: u64 = 0x10;
const CLEAR_ALARM: u64 = 0x14;
const ALARM_STATUS: u64 = 0x18;
const CLEAR_INTERRUPT: u64 = 0x1c;

/// Its registers.
#[derive(Clone, Debug)]
pub(crate) struct Rtc {
    /// Nanoseconds since 1970 when `mtime` was 0.
    base: u64,
    /// The upper half of the time whose lower half was read, or is to be set.
    high: u32,
    alarm: u64,
    armed: bool,
    enabled: bool,
    pending: bool,
}

impl Rtc {
    /// At so many seconds after the start of 1970.
    pub(crate) fn new(seconds: u64) -> Rtc {
        Rtc {
            base: seconds.saturating_mul(1_000_000_000),
            high: 0,
            alarm: 0,
            armed: false,
            enabled: false,
            pending: false,
        }
    }

    fn time(&self, mtime: u64) -> u64 {
        self.base.wrapping_add(mtime.wrapping_mul(TICK))
    }

    /// Reads the word at an offset.
    pub(crate) fn load(&mut self, offset: u64, mtime: u64) -> u32 {
        match offset {
            // The halves read one after the other are of one moment.
            TIME_LOW => {
                let time = self.time(mtime);
                self.high = (time >> 32) as u32;
                time as u32
            }
            TIME_HIGH => self.high,
            ALARM_LOW => self.alarm as u32,
            ALARM_HIGH => (self.alarm >> 32) as u32,
            IRQ_ENABLED => self.enabled.into(),
            ALARM_STATUS => self.armed.into(),
            _ => 0,
        }
    }

    /// Writes the word at an offset. Upper halves are written first.
    pub(crate) fn store(&mut self, offset: u64, value: u32, mtime: u64) {
        match offset {
            TIME_LOW => {
                let time = u64::from(self.high) << 32 | u64::from(value);
                self.base = time.wrapping_sub(mtime.wrapping_mul(TICK));
            }
            TIME_HIGH => self.high = value,
            ALARM_LOW => {
                self.alarm = self.alarm & !u64::from(u32::MAX) | u64::from(value);
                self.armed = true;
            }
            ALARM_HIGH => {
                self.alarm = self.alarm & u64::from(u32::MAX) | u64::from(value) << 32;
            }
            IRQ_ENABLED => self.enabled = value & 1 != 0,
            CLEAR_ALARM => self.armed = false,
            CLEAR_INTERRUPT => self.pending = false,
            _ => {}
        }
        self.ring(mtime);
    }

    /// Lets the alarm go off when it is time.
    pub(crate) fn ring(&mut self, mtime: u64) {
        if self.armed && self.time(mtime) >= self.alarm {
            self.armed = false;
            self.pending = true;
        }
    }

    /// Whether the interrupt line is high.
    pub(crate) fn interrupts(&self) -> bool {
        self.pending && self.enabled
    }

    /// The tick at which the alarm goes off and interrupts.
    pub(crate) fn deadline(&self) -> Option<u64> {
        let left = self.alarm.wrapping_sub(self.base);
        (self.armed && self.enabled).then(|| left.div_ceil(TICK))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_day_follows_mtime() {
        let mut rtc = Rtc::new(1_700_000_000);
        let ticks = 25_000_000;
        let low = u64::from(rtc.load(TIME_LOW, ticks));
        let high = u64::from(rtc.load(TIME_HIGH, u64::MAX));
        assert_eq!(high << 32 | low, 1_700_000_002_500_000_000);
    }

    #[test]
    fn the_time_can_be_set() {
        let mut rtc = Rtc::new(0);
        rtc.store(TIME_HIGH, 5, 10);
        rtc.store(TIME_LOW, 7, 10);
        assert_eq!(rtc.load(TIME_LOW, 10), 7);
        assert_eq!(rtc.load(TIME_LOW, 11), 107);
        assert_eq!(rtc.load(TIME_HIGH, 11), 5);
    }

    #[test]
    fn an_alarm_interrupts_when_it_is_time() {
        let mut rtc = Rtc::new(0);
        rtc.store(IRQ_ENABLED, 1, 0);
        rtc.store(ALARM_HIGH, 0, 0);
        rtc.store(ALARM_LOW, 1001, 0);
        assert_eq!(
            (rtc.load(ALARM_STATUS, 0), rtc.load(ALARM_LOW, 0)),
            (1, 1001)
        );
        assert_eq!(rtc.deadline(), Some(11));
        rtc.ring(10);
        assert!(!rtc.interrupts());
        rtc.ring(11);
        assert!(rtc.interrupts());
        assert_eq!((rtc.load(ALARM_STATUS, 0), rtc.deadline()), (0, None));
        rtc.store(CLEAR_INTERRUPT, 1, 11);
        assert!(!rtc.interrupts());
        // One in the past goes off at once, one that is cleared never.
        rtc.store(ALARM_LOW, 5, 11);
        assert!(rtc.interrupts());
        rtc.store(CLEAR_INTERRUPT, 1, 11);
        rtc.store(ALARM_LOW, 5000, 11);
        rtc.store(CLEAR_ALARM, 1, 11);
        rtc.ring(100);
        assert!(!rtc.interrupts());
    }
}
