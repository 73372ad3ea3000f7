//! Exact profiles: tables for people, JSON, and the formats of other tools.

mod annotate;
mod callgrind;
mod difference;
mod firefox;
mod flamegraph;
mod folded;
mod object;
mod pprof;
mod speedscope;
mod table;
mod threads;

pub use annotate::{instructions, source};
pub use callgrind::callgrind;
pub use difference::{difference, folded_difference, json_difference};
pub use firefox::firefox;
pub use flamegraph::flamegraph;
pub use folded::{folded, frame_name};
pub use object::{json, json_calls};
pub use pprof::pprof;
pub use speedscope::speedscope;
pub use table::{calls, functions, lines, loops, tree};

use hartrace_analyze::{Cost, InsnCosts, Latencies, Measure, Places, Profile};
use hartrace_flow::Image;

/// A profile, and what is needed to show it.
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    /// The profile.
    pub profile: &'a Profile,
    /// The cost of every instruction.
    pub insns: &'a InsnCosts,
    /// The code.
    pub image: &'a Image,
    /// Names and source lines.
    pub places: &'a Places<'a>,
    /// How long calls took, if that was measured.
    pub latencies: Option<&'a Latencies>,
    /// What comes first, and what percentages are of.
    pub by: Measure,
    /// Rows at most.
    pub top: Option<usize>,
}

impl Shown<'_> {
    /// What everything cost, in the chosen measure.
    fn whole(&self) -> u64 {
        self.profile.total().of(self.by)
    }

    /// Rows at most.
    fn rows(&self) -> usize {
        self.top.unwrap_or(usize::MAX)
    }

    /// The other cost, where there is one.
    fn other(&self, cost: Cost) -> Option<u64> {
        let other = match self.by {
            Measure::Instructions => cost.time,
            Measure::Time => cost.insns,
        };
        self.profile.timed.then_some(other)
    }
}

/// What a measure is called in tables.
const fn unit(by: Measure) -> &'static str {
    match by {
        Measure::Instructions => "instructions",
        Measure::Time => "time",
    }
}

const fn other_unit(by: Measure) -> &'static str {
    match by {
        Measure::Instructions => "time",
        Measure::Time => "instructions",
    }
}

pub(crate) fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

/// The name of a file without its folders.
pub(crate) fn short(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

/// Gives a line of source text by file and number, if it can be read.
pub type SourceLine<'a> = dyn Fn(&str, u32) -> Option<String> + 'a;
