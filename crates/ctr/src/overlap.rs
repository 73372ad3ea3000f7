//! Snapshots that repeat records of the previous one.

use crate::record::Record;
use crate::snapshot::Snapshot;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use hartrace_flow::HartId;

/// Whether a snapshot repeats records of the one before of its hart, so that
/// sums count them again. Records that may as well come from loops are not counted.
#[derive(Clone, Debug, Default)]
pub struct Overlap {
    before: BTreeMap<HartId, Snapshot>,
    all: u64,
    repeat: u64,
}

impl Overlap {
    /// The next snapshot of a file.
    pub fn add(&mut self, snapshot: &Snapshot) {
        self.all += 1;
        match self.before.get_mut(&snapshot.hart) {
            Some(before) => {
                self.repeat += u64::from(repeats(before, snapshot));
                before.clone_from(snapshot);
            }
            None => {
                self.before.insert(snapshot.hart, snapshot.clone());
            }
        }
    }

    /// Another file: its snapshots do not follow on those so far.
    pub fn turn(&mut self) {
        self.before.clear();
    }

    /// How many snapshots repeat records, of how many, if that matters: the one
    /// at the end, and some that come early, do no harm among many.
    #[must_use]
    pub fn found(&self) -> Option<(u64, u64)> {
        (self.repeat > self.all / 10).then_some((self.repeat, self.all))
    }
}

fn repeats(before: &Snapshot, now: &Snapshot) -> bool {
    let mut records: Vec<&Record> = now.records().collect();
    let counts = records.iter().filter_map(|r| r.cycles());
    let elapsed = before.cycles.zip(now.cycles);
    if let Some((then, now)) = elapsed
        && counts.clone().next().is_some()
    {
        // All counts but the oldest are of the time since the oldest record:
        // if they are more than went by, that one is older than the snapshot
        // before. Counts are never too large.
        records.pop();
        let sum = records.iter().filter_map(|r| r.cycles());
        let sum = sum.fold(0u64, u64::saturating_add);
        return now.checked_sub(then).is_some_and(|went| sum > went);
    }
    shifted(before, now)
}

/// Whether the entries are those of before, moved on by as many as WRPTR did.
fn shifted(before: &Snapshot, now: &Snapshot) -> bool {
    let depth = usize::from(now.depth).max(1);
    let pointer = |s: &Snapshot| (s.status & 0xff) as usize % depth;
    let new = (pointer(now) + depth - pointer(before)) % depth;
    let valid = now.records().count();
    let shared = now.entries.get(new..valid).unwrap_or_default();
    let same = before.depth == now.depth && before.entries.starts_with(shared);
    // A loop repeats itself, however long ago the last snapshot was.
    let loops = |period| shared.get(period..).is_some_and(|s| shared.starts_with(s));
    same && shared.len() >= 2 && !(1..=shared.len() / 2).any(loops)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A snapshot with records of these sources and cycles, the newest first.
    fn snapshot(cycles: Option<u64>, status: u32, records: &[(u64, Option<u64>)]) -> Snapshot {
        let record = |(source, cycles): &(u64, Option<u64>)| Record {
            ctrsource: source << 4 | 1,
            ctrtarget: 0x1000,
            ctrdata: cycles.map_or(5, |cycles| cycles << 16 | 1 << 15 | 5),
        };
        Snapshot {
            cycles,
            status,
            entries: records.iter().map(record).collect(),
            ..Snapshot::default()
        }
    }

    fn found(snapshots: &[Snapshot]) -> bool {
        let mut overlap = Overlap::default();
        snapshots.iter().for_each(|s| overlap.add(s));
        overlap.found().is_some()
    }

    #[test]
    fn more_cycles_than_went_by() {
        let first = snapshot(Some(100), 0, &[(1, Some(50)), (2, Some(10))]);
        let records = [(1, Some(30)), (2, Some(30)), (3, Some(40))];
        assert!(!found(&[first.clone(), snapshot(Some(160), 0, &records)]));
        assert!(found(&[first.clone(), snapshot(Some(159), 0, &records)]));
        // For another hart, or after a restart, nothing is known.
        let other = Snapshot {
            hart: HartId(1),
            ..snapshot(Some(101), 0, &records)
        };
        assert!(!found(&[first.clone(), other]));
        assert!(!found(&[first.clone(), snapshot(Some(50), 0, &records)]));
        let mut overlap = Overlap::default();
        overlap.add(&first);
        overlap.turn();
        overlap.add(&snapshot(Some(101), 0, &records));
        assert_eq!(overlap.found(), None);
    }

    #[test]
    fn a_few_do_no_harm() {
        let records = [(1, Some(30)), (2, Some(30)), (3, Some(40))];
        let mut overlap = Overlap::default();
        for n in 0..20 {
            overlap.add(&snapshot(Some(n * 100), 0, &records));
        }
        overlap.add(&snapshot(Some(1901), 0, &records));
        assert_eq!(overlap.found(), None);
        overlap.add(&snapshot(Some(1902), 0, &records));
        overlap.add(&snapshot(Some(1903), 0, &records));
        assert_eq!(overlap.found(), Some((3, 23)));
    }

    #[test]
    fn the_same_records_moved_on() {
        let records = |sources: &[u64]| -> Vec<(u64, Option<u64>)> {
            sources.iter().map(|source| (*source, None)).collect()
        };
        let at = |status, sources: &[u64]| snapshot(None, status, &records(sources));
        assert!(found(&[at(3, &[3, 2, 1]), at(5, &[5, 4, 3, 2, 1])]));
        assert!(found(&[at(15, &[3, 2, 1]), at(1, &[5, 4, 3, 2, 1])]));
        assert!(!found(&[at(3, &[3, 2, 1]), at(6, &[5, 4, 3, 2, 1])]));
        assert!(!found(&[at(3, &[3, 2, 1]), at(5, &[5, 4, 3, 2, 9])]));
        // A loop.
        assert!(!found(&[at(3, &[1, 1, 1]), at(4, &[1, 1, 1, 1])]));
        assert!(!found(&[at(4, &[1, 2, 1, 2]), at(6, &[1, 2, 1, 2, 1, 2])]));
        assert!(!found(&[at(0, &[]), at(0, &[])]));
    }
}
