use super::*;
use hartrace_flow::{Exit, Run, SpaceId};

/// A stay of so many instructions on a path.
fn stay(sequence: &mut PathSequence, node: u32, thread: u32, at: u64, insns: u32) {
    let run = Run {
        start: 0x1000,
        end: 0x1000 + 4 * u64::from(insns),
        next: 0x1000,
        insns,
        exit: Exit::Taken,
        last: 4,
    };
    let ran = Ran {
        node: NodeId(node),
        thread: (thread, None),
        space: SpaceId::FIRST,
        run: &run,
        time: u64::from(insns) * 3,
        at: Moment {
            insn: at,
            time: Some(at * 3),
        },
    };
    sequence.ran(HartId(0), &ran);
}

/// What each path cost in each thread.
fn costs(sequence: &PathSequence) -> Vec<(Option<u32>, NodeId, Cost)> {
    let mut sums: Vec<(Option<u32>, NodeId, Cost)> = Vec::new();
    for thread in sequence.threads() {
        for visit in &thread.visits {
            let known = |sum: &&mut (Option<u32>, NodeId, Cost)| {
                (sum.0, sum.1) == (thread.number, visit.node)
            };
            match sums.iter_mut().find(known) {
                Some(sum) => sum.2.add(visit.cost),
                None => sums.push((thread.number, visit.node, visit.cost)),
            }
        }
    }
    sums.sort_by_key(|(thread, node, _)| (*thread, *node));
    sums
}

/// Calls one after the other, in two threads that take turns.
fn filled(limit: usize) -> PathSequence {
    let mut sequence = PathSequence::new(limit);
    let mut at = 0;
    for n in 0..5000u32 {
        let insns = 1 + n % 7;
        stay(&mut sequence, n % 3 + n / 1000, n / 100 % 2, at, insns);
        at += u64::from(insns);
    }
    sequence
}

#[test]
fn visits_are_in_order() {
    let sequence = filled(10_000);
    assert_eq!(sequence.interval(), 1);
    let threads: Vec<_> = sequence.threads().collect();
    assert_eq!(threads.len(), 2);
    for thread in threads {
        assert_eq!(thread.visits.len(), 2500);
        assert!(thread.visits.is_sorted_by_key(|visit| visit.begin));
    }
}

/// However few are kept, the costs are the same, and so is the order of what is far apart.
#[test]
fn long_sequences_keep_costs_and_order() {
    let whole = filled(10_000);
    for limit in [4000, 500, 100, 20] {
        let short = filled(limit);
        assert!(short.interval() > 1);
        let visits: usize = short.threads().map(|t| t.visits.len()).sum();
        assert!(
            visits <= limit.max(2 * costs(&short).len()),
            "{visits} of {limit}"
        );
        assert_eq!(costs(&short), costs(&whole));
        for (thread, all) in short.threads().zip(whole.threads()) {
            assert!(thread.visits.is_sorted_by_key(|visit| visit.begin));
            // Where a path comes first is off by the interval at most.
            let first = |thread: &PathThread, node| {
                let visit = thread.visits.iter().find(|visit| visit.node == node);
                visit.map(|visit| visit.begin.insn)
            };
            for node in (0..7).map(NodeId) {
                let (found, truth) = (first(thread, node), first(all, node));
                assert_eq!(found.is_some(), truth.is_some());
                let off = found.unwrap_or(0).abs_diff(truth.unwrap_or(0));
                assert!(off <= 2 * short.interval(), "{off} of {}", short.interval());
            }
        }
    }
}

/// A run on the path of the one before it is the same visit, unless the hart was elsewhere.
#[test]
fn runs_make_visits() {
    let mut sequence = PathSequence::default();
    for (node, thread, at, insns) in [(1, 0, 0, 5), (1, 0, 5, 5), (2, 1, 10, 3), (1, 0, 13, 1)] {
        stay(&mut sequence, node, thread, at, insns);
    }
    let threads: Vec<_> = sequence.threads().collect();
    let insns: Vec<u64> = threads[0].visits.iter().map(|v| v.cost.insns).collect();
    assert_eq!(insns, [10, 1]);
    assert_eq!(threads[0].visits[1].begin, Position { insn: 13, time: 39 });
    // Paths that turn out to be one.
    sequence.merged(&[NodeId(0), NodeId(0), NodeId(0)]);
    let nodes = sequence.threads().flat_map(|t| &t.visits).map(|v| v.node);
    assert!(nodes.eq([NodeId(0); 3]));
}

/// Many threads share one list in the end.
#[test]
fn threads_without_a_list() {
    let mut sequence = PathSequence::default();
    for thread in 0..200 {
        stay(&mut sequence, 1, thread, u64::from(thread) * 2, 2);
    }
    let threads: Vec<_> = sequence.threads().collect();
    assert_eq!(threads.len(), MOST_THREADS as usize);
    let rest = threads.last().unwrap();
    assert_eq!(rest.number, None);
    let insns: u64 = rest.visits.iter().map(|v| v.cost.insns).sum();
    assert_eq!(insns, 2 * (200 - u64::from(MOST_THREADS) + 1));
}

#[test]
fn traps_have_their_ends_and_gaps_their_places() {
    let mut sequence = PathSequence::default();
    let at = |insn| Moment { insn, time: None };
    let trap = Trap {
        cause: Cause::Interrupt(Some(7)),
        epc: Some(0x1004),
        handler: None,
        tval: None,
        pending: None,
    };
    let hart = HartId(0);
    sequence.gap(hart, None, at(0));
    stay(&mut sequence, 1, 0, 0, 5);
    sequence.trapped(hart, &trap, at(5));
    stay(&mut sequence, 2, 0, 5, 4);
    sequence.trapped(hart, &trap, at(9));
    sequence.resumed(hart, How::Returned, at(12));
    sequence.gap(hart, None, at(12));
    stay(&mut sequence, 2, 0, 12, 4);
    sequence.gap(hart, None, at(16));
    let thread = sequence.threads().next().unwrap();
    let traps: Vec<_> = thread
        .traps()
        .map(|t| (t.begin.insn, t.end.map(|end| end.insn)))
        .collect();
    assert_eq!(traps, [(9, Some(12)), (5, None)]);
    // Tracing was off in between only.
    let gaps: Vec<u64> = thread.gaps.iter().map(|gap| gap.at.insn).collect();
    assert_eq!(gaps, [12]);
}
