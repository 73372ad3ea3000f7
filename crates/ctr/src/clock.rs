//! The cycle counter (5.3).

/// `CtrCycleCounter`: cycles while recording since the last record.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    /// Cycles of stretches that are over.
    counted: u64,
    /// When the stretch that runs began, if one does and that is known.
    since: Option<u64>,
    /// The count is that of all cycles since the last record.
    valid: bool,
}

impl Clock {
    /// Starts anew; the next record has no valid count.
    pub(crate) fn reset(&mut self) {
        self.counted = 0;
        self.valid = false;
    }

    /// A time between two records: recording went on until now, if `active`.
    #[inline]
    pub(crate) fn settle(&mut self, active: bool, now: Option<u64>) {
        match (self.since.take(), now) {
            (Some(since), Some(now)) => self.pass(since, now),
            _ if active => self.valid = false,
            _ => {}
        }
    }

    /// Recording continues from now, if `active`. Call it after [`Clock::settle`].
    #[inline]
    pub(crate) fn resume(&mut self, active: bool, now: Option<u64>) {
        self.since = now.filter(|_| active);
        self.valid &= !active || now.is_some();
    }

    /// Both at once, while recording goes on.
    #[inline]
    pub(crate) fn lap(&mut self, now: u64) {
        match self.since.replace(now) {
            Some(since) => self.pass(since, now),
            None => self.valid = false,
        }
    }

    /// The cycles up to now, for a record; `None` if unknown.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<u64> {
        let cycles = core::mem::take(&mut self.counted);
        core::mem::replace(&mut self.valid, true).then_some(cycles)
    }

    /// Time passes. If it goes backwards, the cycles are unknown.
    #[inline]
    fn pass(&mut self, since: u64, now: u64) {
        match now.checked_sub(since) {
            Some(cycles) => self.add(cycles),
            None => self.lose(),
        }
    }

    /// More cycles, which a record that is gone had counted.
    #[inline]
    pub(crate) fn add(&mut self, cycles: u64) {
        self.counted = self.counted.saturating_add(cycles);
    }

    /// Some cycles were not counted.
    pub(crate) fn lose(&mut self) {
        self.valid = false;
    }
}
