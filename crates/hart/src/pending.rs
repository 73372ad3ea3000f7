//! When interrupts became pending: the moment at which each bit of `mip` was set.
//!
//! Nothing is noted while instructions run. The machine looks at the sources of
//! interrupts now and then; a bit that a timer has set since the last look was set when
//! the timer was due, all others are set when the machine looks, which it does after
//! every instruction that can set one.

/// Bits of `mip`, and the cycle at which time sets them.
pub(crate) type Due = (u64, Option<u64>);

/// When each bit of `mip` was set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pending {
    /// The bits that were set when they were noted last.
    mip: u64,
    /// The cycle of the last look at what time can set.
    looked: u64,
    /// By the number of the bit.
    since: [u64; 16],
}

impl Pending {
    /// `mip` after a look at what can set its bits: time, devices, other harts.
    #[inline]
    pub(crate) fn look(&mut self, mip: u64, now: u64, due: &[Due]) {
        if mip != self.mip {
            self.change(mip, now, due);
        }
        self.looked = now;
    }

    /// `mip` after a program, or a counter, may have changed it.
    #[inline]
    pub(crate) fn note(&mut self, mip: u64, now: u64) {
        if mip != self.mip {
            self.change(mip, now, &[]);
        }
    }

    #[cold]
    fn change(&mut self, mip: u64, now: u64, due: &[Due]) {
        let new = mip & !self.mip;
        for (since, code) in self.since.iter_mut().zip(0..) {
            if new >> code & 1 != 0 {
                let due = due.iter().find(|(bits, _)| bits >> code & 1 != 0);
                let due = due.and_then(|(_, cycle)| *cycle);
                let due = due.filter(|&cycle| self.looked < cycle && cycle <= now);
                *since = due.unwrap_or(now);
            }
        }
        self.mip = mip;
    }

    /// The cycle at which an interrupt that is pending became so.
    pub(crate) fn since(&self, code: u32) -> Option<u64> {
        let set = self.mip.checked_shr(code).unwrap_or(0) & 1 != 0;
        self.since.get(code as usize).copied().filter(|_| set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_are_exact_and_the_rest_is_seen_at_once() {
        let mut pending = Pending::default();
        let timer = |cycle| [(1 << 7, Some(cycle))];
        pending.look(0, 100, &timer(150));
        assert_eq!(pending.since(7), None);
        pending.look(1 << 7, 180, &timer(150));
        assert_eq!(pending.since(7), Some(150));
        // It stays what it is as long as the bit is set.
        pending.look(1 << 7 | 1 << 3, 200, &timer(190));
        assert_eq!((pending.since(7), pending.since(3)), (Some(150), Some(200)));
        pending.look(0, 210, &timer(400));
        // A deadline that had passed before the last look: it was set since then.
        pending.look(1 << 7, 230, &timer(200));
        assert_eq!(pending.since(7), Some(230));
    }

    /// A write of a program does not count as a look at the timer.
    #[test]
    fn a_write_between_two_looks() {
        let mut pending = Pending::default();
        pending.look(0, 100, &[]);
        pending.note(1 << 1, 120);
        pending.look(1 << 1 | 1 << 7, 130, &[(1 << 7, Some(115))]);
        assert_eq!((pending.since(1), pending.since(7)), (Some(120), Some(115)));
        assert_eq!((pending.since(5), pending.since(64)), (None, None));
    }
}
