//! What is kept for the profiles of other tools, compared with the profile.

use super::{Naive, differ, paths};
use crate::trace::Recorded;
use hartrace_analyze::{
    Cost, FlowCounts, Grouping, PathRuns, PathSequence, Profile, Profiler, Recording,
};
use hartrace_capture::trace::{Decoder, Settings};
use hartrace_flow::{Decode as _, SpaceId};
use std::collections::BTreeMap;

/// Visits that are kept: few, so that some are merged.
const VISITS: usize = 2000;

/// Decodes a trace of a program once for each kind of recording. All must have the counts
/// of `naive` and the call paths given.
///
/// # Errors
///
/// What differs.
pub(super) fn check(
    (program, settings, bytes): (&Recorded, &Settings, &[u8]),
    naive: &Naive,
    expected: &BTreeMap<String, (u64, u64)>,
) -> Result<(), String> {
    let name = settings.format().name();
    for recording in [
        Recording::Paths(PathRuns::default()),
        Recording::Sequence(PathSequence::new(VISITS)),
        Recording::Flow(FlowCounts::default()),
    ] {
        let grouping = Grouping {
            sites: matches!(recording, Recording::Paths(_)),
            ..Grouping::default()
        };
        let functions = program.functions();
        let mut profiler = Profiler::new(&program.image, functions, grouping, recording);
        let mut decoder = Decoder::new(settings, &program.image).map_err(|e| e.to_string())?;
        decoder.feed(bytes, &mut profiler);
        decoder.finish(&mut profiler);
        let (profile, recording) = profiler.finish();
        differ(name, expected, &paths(&profile))?;
        match recording {
            Recording::Paths(runs) => check_paths(name, &profile, &runs, (program, naive))?,
            Recording::Sequence(sequence) => check_sequence(name, &profile, &sequence)?,
            Recording::Flow(flow) => check_flow(name, &flow, (program, naive))?,
        }
    }
    Ok(())
}

/// Every instruction is on one path, and every path has its own cost.
fn check_paths(
    name: &str,
    profile: &Profile,
    runs: &PathRuns,
    (program, naive): (&Recorded, &Naive),
) -> Result<(), String> {
    let mut insns: BTreeMap<u64, u64> = BTreeMap::new();
    let mut own = vec![Cost::default(); profile.tree.nodes().len()];
    for ((node, pc), cost) in runs.costs(&program.image, &|pc| pc) {
        *insns.entry(pc).or_default() += cost.insns;
        own.get_mut(node.index())
            .ok_or("a path that is not in the tree")?
            .add(cost);
    }
    differ(name, &naive.insns, &insns)?;
    check_own(name, profile, &own)
}

/// However many visits were merged, paths have their costs.
fn check_sequence(name: &str, profile: &Profile, sequence: &PathSequence) -> Result<(), String> {
    let mut own = vec![Cost::default(); profile.tree.nodes().len()];
    for visit in sequence.threads().flat_map(|thread| &thread.visits) {
        own.get_mut(visit.node.index())
            .ok_or("a path that is not in the tree")?
            .add(visit.cost);
    }
    check_own(name, profile, &own)
}

fn check_own(name: &str, profile: &Profile, own: &[Cost]) -> Result<(), String> {
    for (node, found) in profile.tree.nodes().iter().zip(own) {
        if node.own != *found {
            return Err(format!("{name}: {:?} expected, {found:?} found", node.own));
        }
    }
    Ok(())
}

/// Ranges cover every instruction as often as it was executed, and jumps are those of
/// branches and calls.
fn check_flow(
    name: &str,
    flow: &FlowCounts,
    (program, naive): (&Recorded, &Naive),
) -> Result<(), String> {
    let mut insns: BTreeMap<u64, u64> = BTreeMap::new();
    for ((first, last), count) in flow.ranges() {
        let code = program.image.insns(SpaceId::FIRST, first, 1 << 16);
        for (pc, _) in code.take_while(|(pc, _)| *pc <= last) {
            *insns.entry(pc).or_default() += count;
        }
    }
    differ(name, &naive.insns, &insns)?;
    let jumps: BTreeMap<(u64, u64), u64> = flow.branches().into_iter().collect();
    for (call, count) in &naive.calls {
        let found = jumps.get(call).copied().unwrap_or(0);
        // The run may have ended with one.
        if found != *count && found + 1 != *count {
            return Err(format!("{name}: call {call:x?}: {count}, {found} found"));
        }
    }
    let taken = |source: u64| {
        let from = jumps.range((source, 0)..=(source, u64::MAX));
        from.map(|(_, count)| count).sum::<u64>()
    };
    for (&source, (_, count)) in &naive.branches {
        if taken(source) != *count {
            let found = taken(source);
            return Err(format!("{name}: branch {source:x}: {count}, {found} found"));
        }
    }
    Ok(())
}
