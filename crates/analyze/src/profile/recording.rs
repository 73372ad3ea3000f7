//! What is kept of the runs of a trace for the profiles of other tools.

use super::{PathRuns, PathSequence};
use crate::stacks::{How, Moment, NodeId, Ran, StackSink, Switched};
use crate::transfers::FlowCounts;
use hartrace_flow::{Gap, HartId, Trap};

/// A sink of runs. It is one type, so that the profiler is compiled once for all of them.
#[derive(Clone, Debug)]
pub enum Recording {
    /// What was executed on each call path.
    Paths(PathRuns),
    /// Call paths in order.
    Sequence(PathSequence),
    /// Ranges of code and jumps.
    Flow(FlowCounts),
}

impl Recording {
    /// Adds what was recorded of another trace of the same program in the same way;
    /// `nodes` are the call paths here by those there.
    pub fn add(&mut self, other: Recording, nodes: &[NodeId]) {
        match (self, other) {
            (Recording::Paths(paths), Recording::Paths(more)) => paths.add(&more, nodes),
            (Recording::Sequence(all), Recording::Sequence(more)) => all.add(more, nodes),
            (Recording::Flow(flow), Recording::Flow(more)) => flow.add(&more),
            _ => {}
        }
    }
}

impl StackSink for Recording {
    const RUNS: bool = true;
    const TIMES: bool = true;

    fn ran(&mut self, hart: HartId, ran: &Ran<'_>) {
        match self {
            Recording::Paths(paths) => paths.ran(hart, ran),
            Recording::Sequence(sequence) => sequence.ran(hart, ran),
            Recording::Flow(flow) => flow.ran(hart, ran),
        }
    }

    fn merged(&mut self, new: &[NodeId]) {
        match self {
            Recording::Paths(paths) => paths.merged(new),
            Recording::Sequence(sequence) => sequence.merged(new),
            Recording::Flow(_) => {}
        }
    }

    fn trapped(&mut self, hart: HartId, trap: &Trap, at: Moment) {
        if let Recording::Sequence(sequence) = self {
            sequence.trapped(hart, trap, at);
        }
    }

    fn resumed(&mut self, hart: HartId, how: How, at: Moment) {
        if let Recording::Sequence(sequence) = self {
            sequence.resumed(hart, how, at);
        }
    }

    fn switched(&mut self, hart: HartId, to: &Switched<'_>) {
        if let Recording::Sequence(sequence) = self {
            sequence.switched(hart, to);
        }
    }

    fn gap(&mut self, hart: HartId, gap: Option<&Gap>, at: Moment) {
        if let Recording::Sequence(sequence) = self {
            sequence.gap(hart, gap, at);
        }
    }
}
