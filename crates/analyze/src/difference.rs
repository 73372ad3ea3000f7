//! Where two runs differ: executed addresses, compared one by one and aligned again
//! where the runs meet.

use std::collections::{HashMap, VecDeque};

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
struct Side<P> {
    source: P,
    ahead: VecDeque<u64>,
    done: u64,
}

impl<P: Pcs> Side<P> {
    /// Reads until so many instructions are there, or the run has ended.
    fn fill(&mut self, want: usize) {
        while self.ahead.len() < want {
            match self.source.next_piece() {
                Some(piece) => self.ahead.extend(piece),
                None => return,
            }
        }
    }

    fn skip(&mut self, count: usize) {
        self.ahead.drain(..count.min(self.ahead.len()));
        self.done += count as u64;
    }
}

/// Compares two runs, and gives every place where they differ to `found` until it
/// returns false. Memory is bounded by the window.
pub fn compare_runs<A: Pcs, B: Pcs>(
    a: A,
    b: B,
    options: &DiffOptions,
    mut found: impl FnMut(&Divergence) -> bool,
) -> Compared {
    let mut a = Side {
        source: a,
        ahead: VecDeque::new(),
        done: 0,
    };
    let mut b = Side {
        source: b,
        ahead: VecDeque::new(),
        done: 0,
    };
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
        a.fill(options.window);
        b.fill(options.window);
        let divergence = diverge(&a, &b, &common, options);
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

fn diverge<A, B>(
    a: &Side<A>,
    b: &Side<B>,
    common: &VecDeque<u64>,
    options: &DiffOptions,
) -> Divergence {
    let (one, other): (Vec<u64>, Vec<u64>) = (
        a.ahead.iter().copied().collect(),
        b.ahead.iter().copied().collect(),
    );
    let met = meet(&one, &other, options.confirm);
    let ended = one.len() < options.window || other.len() < options.window;
    let (alone, meeting) = match met {
        Some((i, j)) => {
            let at = one.get(i).copied().unwrap_or(0);
            ([i as u64, j as u64], Meeting::At(at))
        }
        None if ended => ([one.len() as u64, other.len() as u64], Meeting::End),
        None => ([one.len() as u64, other.len() as u64], Meeting::Apart),
    };
    let shown = |list: &[u64]| list.iter().take(options.before).copied().collect();
    Divergence {
        at: [a.done, b.done],
        common: common.iter().copied().collect(),
        then: [shown(&one), shown(&other)],
        alone,
        meeting,
    }
}

/// The first place in both lists from which on so many elements are the same, or all
/// that are left if both end there; first is what skips least.
fn meet(one: &[u64], other: &[u64], confirm: usize) -> Option<(usize, usize)> {
    // The next place of each window of elements, the earliest first.
    let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
    for (at, pc) in other.iter().enumerate() {
        let list = places.entry(*pc).or_default();
        // A loop has the same address again and again: only some are of use.
        if list.len() < MAX_PLACES {
            list.push(at);
        }
    }
    let same = |i: usize, j: usize| {
        let left = (one.len() - i).min(other.len() - j);
        let both_end = one.len() - i == other.len() - j;
        let count = confirm.min(left);
        let equal = one.get(i..i + count) == other.get(j..j + count);
        equal && (count == confirm || both_end)
    };
    let mut best: Option<(usize, usize)> = None;
    for (i, pc) in one.iter().enumerate() {
        if best.is_some_and(|(a, b)| i >= a + b) {
            break;
        }
        for &j in places.get(pc).into_iter().flatten() {
            if best.is_some_and(|(a, b)| i + j >= a + b) {
                break;
            }
            if same(i, j) {
                best = Some((i, j));
                break;
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
        let compared = compare_runs(cut(a).into_iter(), cut(b).into_iter(), &options, |d| {
            all.push(d.clone());
            true
        });
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
}
