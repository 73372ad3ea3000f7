//! Where two runs differ: executed addresses, compared one by one and aligned again
//! where the runs meet.

use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Gives the addresses of executed instructions, in pieces of any size.
pub trait Pcs {
    /// The next piece; `None` at the end.
    fn next_piece(&mut self) -> Option<Vec<u64>>;
}

impl<I: Iterator<Item = Vec<u64>>> Pcs for I {
    fn next_piece(&mut self) -> Option<Vec<u64>> {
        self.next()
    }
}

/// How two runs are compared.
#[derive(Clone, Copy, Debug)]
pub struct DiffOptions {
    /// Instructions that are kept before a difference.
    pub before: usize,
    /// Instructions after it, on each side, that are looked at to find where the
    /// runs meet again.
    pub window: usize,
    /// Instructions that must be the same where they meet.
    pub confirm: usize,
}

impl Default for DiffOptions {
    fn default() -> DiffOptions {
        DiffOptions {
            before: 8,
            window: 1 << 17,
            confirm: 16,
        }
    }
}

/// A place where two runs differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// Instructions of each run before it.
    pub at: [u64; 2],
    /// The last of those that both have, oldest first.
    pub common: Vec<u64>,
    /// The first instructions of each run after it: what it executed alone, or if
    /// that is little, also what follows.
    pub then: [Vec<u64>; 2],
    /// How many instructions each run executed alone, and how they go on.
    pub alone: [u64; 2],
    /// Where they meet again.
    pub meeting: Meeting,
}

/// How runs go on after a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// They meet at this instruction.
    At(u64),
    /// One of them, or both, ended first.
    End,
    /// They did not meet in the instructions that were looked at.
    Apart,
}

/// What a comparison came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Instructions that both runs have.
    pub common: u64,
    /// Differences.
    pub divergences: u64,
}

/// One run: what was read of it and not compared yet.
struct Side<'p> {
    source: &'p mut dyn Pcs,
    ahead: VecDeque<u64>,
    done: u64,
    /// There is no more to read.
    ended: bool,
}

impl<'p> Side<'p> {
    fn new(source: &'p mut dyn Pcs) -> Side<'p> {
        Side {
            source,
            ahead: VecDeque::new(),
            done: 0,
            ended: false,
        }
    }

    /// Reads until so many instructions are there, or the run has ended.
    fn fill(&mut self, want: usize) {
        while self.ahead.len() < want && !self.ended {
            match self.source.next_piece() {
                Some(piece) => self.ahead.extend(piece),
                None => self.ended = true,
            }
        }
    }

    fn skip(&mut self, count: usize) {
        self.ahead.drain(..count.min(self.ahead.len()));
        self.done += count as u64;
    }

    /// The next instructions, so many at most, and whether the run ends with them.
    fn next(&mut self, count: usize) -> (&[u64], bool) {
        self.fill(count.saturating_add(1));
        let ends = self.ended && self.ahead.len() <= count;
        let ahead = self.ahead.make_contiguous();
        (ahead.get(..count).unwrap_or(ahead), ends)
    }
}

/// Compares two runs, and gives every place where they differ to `found` until it
/// returns false. Memory is bounded by the window.
pub fn compare_runs(
    a: &mut dyn Pcs,
    b: &mut dyn Pcs,
    options: &DiffOptions,
    found: &mut dyn FnMut(&Divergence) -> bool,
) -> Compared {
    let (mut a, mut b) = (Side::new(a), Side::new(b));
    let mut common: VecDeque<u64> = VecDeque::new();
    let mut compared = Compared::default();
    loop {
        a.fill(1);
        b.fill(1);
        let same = a.ahead.iter().zip(&b.ahead).take_while(|(a, b)| a == b);
        let same = same.count();
        if same > 0 {
            let last = a.ahead.iter().take(same);
            common.extend(last.skip(same.saturating_sub(options.before)));
            let over = common.len().saturating_sub(options.before);
            common.drain(..over);
            compared.common += same as u64;
            a.skip(same);
            b.skip(same);
            continue;
        }
        if a.ahead.is_empty() && b.ahead.is_empty() {
            return compared;
        }
        let divergence = diverge(&mut a, &mut b, &common, options);
        compared.divergences += 1;
        let [skip_a, skip_b] = divergence.alone;
        let go_on = found(&divergence) && matches!(divergence.meeting, Meeting::At(_));
        if !go_on {
            return compared;
        }
        a.skip(skip_a as usize);
        b.skip(skip_b as usize);
        common.clear();
    }
}

/// Instructions after a difference that are searched first: most runs meet soon.
const NEAR: usize = 256;

fn diverge(
    a: &mut Side<'_>,
    b: &mut Side<'_>,
    common: &VecDeque<u64>,
    options: &DiffOptions,
) -> Divergence {
    let at = [a.done, b.done];
    let mut window = NEAR.min(options.window);
    loop {
        let ((one, one_ends), (other, other_ends)) = (a.next(window), b.next(window));
        let met = meet(one, other, options.confirm, one_ends && other_ends);
        let all_read = window >= options.window || one_ends && other_ends;
        // What leaves out less than the window cannot be outside of it.
        let met = met.filter(|(i, j)| i + j <= window || all_read);
        if met.is_none() && !all_read {
            window = window.saturating_mul(8).min(options.window);
            continue;
        }
        let (alone, meeting) = match met {
            Some((i, j)) => {
                let to = one.get(i).copied().unwrap_or(0);
                ([i, j], Meeting::At(to))
            }
            None if one_ends || other_ends => ([one.len(), other.len()], Meeting::End),
            None => ([one.len(), other.len()], Meeting::Apart),
        };
        let shown = |list: &[u64]| list.iter().take(options.before).copied().collect();
        return Divergence {
            at,
            common: common.iter().copied().collect(),
            then: [shown(one), shown(other)],
            alone: alone.map(|count| count as u64),
            meeting,
        };
    }
}

/// The first place in both lists from which on so many elements are the same, or all
/// that are left if both runs end there; first is what skips least.
fn meet(one: &[u64], other: &[u64], confirm: usize, both_end: bool) -> Option<(usize, usize)> {
    // The places of each element, the earliest first.
    let mut places: FxHashMap<u64, Vec<usize>> = FxHashMap::default();
    for (at, pc) in other.iter().enumerate() {
        let list = places.entry(*pc).or_default();
        // A loop has the same address again and again: only some are of use.
        if list.len() < MAX_PLACES {
            list.push(at);
        }
    }
    let same = |i: usize, j: usize| {
        let left = (one.len() - i, other.len() - j);
        let count = confirm.min(left.0).min(left.1);
        let equal = one.get(i..i + count) == other.get(j..j + count);
        equal && (count == confirm || both_end && left.0 == left.1)
    };
    // What is left out; of two ways to leave out as much, the one that leaves out about as
    // much on both sides.
    let cost = |(i, j): (usize, usize)| (i + j, i.abs_diff(j));
    let mut best: Option<(usize, usize)> = None;
    for (i, pc) in one.iter().enumerate() {
        if best.is_some_and(|(a, b)| i > a + b) {
            break;
        }
        for &j in places.get(pc).into_iter().flatten() {
            if best.is_some_and(|(a, b)| i + j > a + b) {
                break;
            }
            if best.is_none_or(|best| cost((i, j)) < cost(best)) && same(i, j) {
                best = Some((i, j));
            }
        }
    }
    best
}

/// Places of one address that are tried.
const MAX_PLACES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(a: &[u64], b: &[u64], pieces: usize) -> (Compared, Vec<Divergence>) {
        let options = DiffOptions {
            before: 3,
            window: 64,
            confirm: 4,
        };
        let cut =
            |list: &[u64]| -> Vec<Vec<u64>> { list.chunks(pieces).map(<[u64]>::to_vec).collect() };
        let mut all = Vec::new();
        let compared = compare_runs(
            &mut cut(a).into_iter(),
            &mut cut(b).into_iter(),
            &options,
            &mut |d| {
                all.push(d.clone());
                true
            },
        );
        (compared, all)
    }

    #[test]
    fn equal_runs_have_no_difference() {
        let list: Vec<u64> = (0..100).collect();
        for pieces in [1, 7, 1000] {
            let (compared, all) = compare(&list, &list, pieces);
            assert_eq!((compared.common, all.len()), (100, 0));
        }
        assert_eq!(compare(&[], &[], 5).0, Compared::default());
    }

    /// One went another way for a while, then both are together again.
    #[test]
    fn runs_meet_again() {
        let a: Vec<u64> = (0..10)
            .chain([50, 51])
            .chain(20..40)
            .chain([70])
            .chain(41..60)
            .collect();
        let b: Vec<u64> = (0..10).chain([90, 91, 92]).chain(20..60).collect();
        for pieces in [1, 3, 1000] {
            let (compared, all) = compare(&a, &b, pieces);
            assert_eq!(all.len(), 2);
            assert_eq!(all[0].at, [10, 10]);
            assert_eq!(all[0].common, [7, 8, 9]);
            assert_eq!(all[0].then, [[50, 51, 20], [90, 91, 92]]);
            assert_eq!((all[0].alone, all[0].meeting), ([2, 3], Meeting::At(20)));
            assert_eq!(all[1].at, [32, 33]);
            assert_eq!((all[1].alone, all[1].meeting), ([1, 1], Meeting::At(41)));
            assert_eq!(compared.common, 10 + 20 + 19);
            assert_eq!(compared.divergences, 2);
        }
    }

    #[test]
    fn one_run_ends_first() {
        let list: Vec<u64> = (0..20).collect();
        let (compared, all) = compare(&list, &list[..15], 4);
        assert_eq!(compared.common, 15);
        assert_eq!((all[0].alone, all[0].meeting), ([5, 0], Meeting::End));
    }

    /// Runs that do not meet are not followed any further.
    #[test]
    fn runs_that_stay_apart() {
        let a: Vec<u64> = (0..1000).collect();
        let b: Vec<u64> = (0..5).chain(5000..6000).collect();
        let (compared, all) = compare(&a, &b, 10);
        assert_eq!((compared.common, all.len()), (5, 1));
        assert_eq!(all[0].meeting, Meeting::Apart);
    }

    /// A loop with another number of rounds: the shortest way to meet is taken.
    #[test]
    fn another_number_of_rounds() {
        let round = [1, 2, 3];
        let a: Vec<u64> = round.repeat(5).into_iter().chain(10..30).collect();
        let b: Vec<u64> = round.repeat(3).into_iter().chain(10..30).collect();
        let (compared, all) = compare(&a, &b, 100);
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].at, all[0].alone), ([9, 9], [6, 0]));
        assert_eq!(compared.common, 9 + 20);
    }

    /// Instructions beyond the window are not looked at, however many were read.
    #[test]
    fn the_window_ends_the_search() {
        let tail = 1000..1100;
        let a: Vec<u64> = (0..4).chain(tail.clone()).collect();
        for (alone, meets) in [(63, true), (64, false), (65, false)] {
            let b: Vec<u64> = (0..4)
                .chain(5000..5000 + alone)
                .chain(tail.clone())
                .collect();
            let (_, all) = compare(&a, &b, 100_000);
            let met = matches!(all[0].meeting, Meeting::At(1000));
            // Four more must be the same, and inside the window.
            assert_eq!(met, meets && alone + 4 <= 64, "{alone}: {:?}", all[0]);
        }
        let b: Vec<u64> = (0..4).chain(5000..5060).chain(tail).collect();
        let (compared, all) = compare(&a, &b, 100_000);
        assert_eq!((all.len(), compared.common), (1, 104));
    }

    /// Fewer than that are the same where what was read ends, and the runs do not.
    #[test]
    fn the_end_of_a_piece_is_no_end_of_a_run() {
        let mut a: Vec<u64> = (0..4).chain(100..158).chain([7, 8]).collect();
        let mut b: Vec<u64> = (0..4).chain(200..258).chain([7, 8]).collect();
        a.extend(300..400);
        b.extend(500..600);
        let (_, all) = compare(&a, &b, 66);
        assert_eq!(all[0].meeting, Meeting::Apart, "{:?}", all[0]);
        // At the end of both, two are enough.
        a.truncate(64);
        b.truncate(64);
        let (_, all) = compare(&a, &b, 66);
        assert_eq!(all[0].meeting, Meeting::At(7), "{:?}", all[0]);
    }
}
