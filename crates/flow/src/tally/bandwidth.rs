//! Bytes of trace per unit of time.

/// Slices kept; when time goes on, pairs of them become one.
const SLICES: usize = 32;

/// Bytes by time, in at most 32 slices of equal length.
///
/// ```
/// use hartrace_flow::tally::Bandwidth;
///
/// let mut bandwidth = Bandwidth::default();
/// for time in 0..100 {
///     bandwidth.add(time, if time < 50 { 4 } else { 1 });
/// }
/// assert_eq!(bandwidth.slice(), 4);
/// assert_eq!(bandwidth.bytes().first(), Some(&16));
/// assert_eq!(bandwidth.bytes().iter().sum::<u64>(), 250);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bandwidth {
    first: Option<u64>,
    /// log2 of the length of a slice.
    shift: u32,
    slices: [u64; SLICES],
    used: usize,
}

impl Bandwidth {
    /// So many bytes at this time. What is before the first time counts as at
    /// the first.
    pub fn add(&mut self, time: u64, bytes: u64) {
        let first = *self.first.get_or_insert(time);
        let since = time.saturating_sub(first);
        while since >> self.shift >= SLICES as u64 {
            self.halve();
        }
        let index = (since >> self.shift) as usize;
        if let Some(slice) = self.slices.get_mut(index) {
            *slice += bytes;
            self.used = self.used.max(index + 1);
        }
    }

    /// Makes each slice twice as long.
    fn halve(&mut self) {
        let mut halves = [0; SLICES];
        let pairs = self.slices.chunks(2).map(|pair| pair.iter().sum());
        halves.iter_mut().zip(pairs).for_each(|(to, sum)| *to = sum);
        self.slices = halves;
        self.used = self.used.div_ceil(2);
        self.shift += 1;
    }

    /// The first time; `None` without any.
    #[must_use]
    pub fn first(&self) -> Option<u64> {
        self.first
    }

    /// Length of a slice, in units of time.
    #[must_use]
    pub fn slice(&self) -> u64 {
        1 << self.shift.min(63)
    }

    /// Bytes in each slice, the last one perhaps not over yet.
    #[must_use]
    pub fn bytes(&self) -> &[u64] {
        self.slices.get(..self.used).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_when_slices_grow() {
        let mut bandwidth = Bandwidth::default();
        let mut all = 0;
        for n in 0..64 {
            bandwidth.add(1 << n, n);
            all += n;
            assert_eq!(bandwidth.bytes().iter().sum::<u64>(), all);
            assert!(bandwidth.bytes().len() <= SLICES);
        }
        bandwidth.add(0, 7);
        assert_eq!(bandwidth.first(), Some(1));
        assert_eq!(bandwidth.bytes().iter().sum::<u64>(), all + 7);
        bandwidth.add(u64::MAX, 1);
        assert_eq!(bandwidth.bytes().iter().sum::<u64>(), all + 8);
    }
}
