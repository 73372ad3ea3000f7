//! What a report is told about a trace, beside its events.

use hartrace_analyze::Places;
use hartrace_flow::Image;
use serde::Serialize;

/// The lines of a source file, by the name that line tables have for it.
pub type SourceLines<'a> = &'a dyn Fn(&str) -> Option<Vec<String>>;

/// A trace and its program.
pub struct About<'a> {
    /// The name of the trace.
    pub name: String,
    /// Its format: `N-Trace 1.0`.
    pub format: String,
    /// Its size.
    pub bytes: u64,
    /// The names of the program's files.
    pub program: Vec<String>,
    /// Settings that it was read by.
    pub settings: Vec<(String, String)>,
    /// The code.
    pub image: &'a Image,
    /// Names and lines of the code.
    pub places: &'a Places<'a>,
    /// The text of source files.
    pub source: SourceLines<'a>,
    /// What the trace consists of.
    pub statistics: Statistics,
    /// Why the page may be wrong, or has only a part of what was traced.
    pub warnings: Vec<String>,
}

/// What a trace consists of.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Statistics {
    /// Kinds of messages: name, number, bytes.
    pub messages: Vec<(String, u64, u64)>,
    /// Bytes over time or instructions.
    pub bandwidth: Bandwidth,
    /// Bits of trace for each instruction.
    pub bits_per_instruction: Option<f64>,
}

/// Bytes in intervals of equal length.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Bandwidth {
    /// What the bytes are counted for: `bytes per 1000 instructions`.
    pub unit: String,
    /// Whether the intervals are of time, and not of instructions.
    pub is_timed: bool,
    /// Where each interval begins.
    pub x: Vec<u64>,
    /// The bytes in each.
    pub bytes: Vec<u64>,
}

/// How much of everything a report has at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Slices of the timeline.
    pub slices: usize,
    /// Traps one by one.
    pub traps: usize,
    /// Gaps one by one.
    pub gaps: usize,
    /// Functions, those that never ran included.
    pub functions: usize,
    /// Call paths of the flame graph.
    pub paths: usize,
    /// Conditional branches.
    pub branches: usize,
    /// Instructions of annotated code.
    pub code: usize,
    /// Bytes of source text.
    pub source: usize,
}

impl Budget {
    /// For a page that a browser opens in a second or two.
    pub const DEFAULT: Budget = Budget {
        slices: 200_000,
        traps: 20_000,
        gaps: 10_000,
        functions: 30_000,
        paths: 40_000,
        branches: 20_000,
        code: 60_000,
        source: 3 << 20,
    };

    /// For a page that a server feeds: the overview is coarse, since details are asked
    /// for, and code and source text are sent one by one.
    pub const LIVE: Budget = Budget {
        slices: 20_000,
        functions: 1 << 20,
        code: 400_000,
        source: 32 << 20,
        ..Budget::DEFAULT
    };

    /// A part of it: one over 2 to the power of `halvings`.
    #[must_use]
    pub const fn halved(self, halvings: u32) -> Budget {
        Budget {
            slices: self.slices >> halvings,
            traps: self.traps >> halvings,
            gaps: self.gaps >> halvings,
            functions: self.functions >> halvings,
            paths: self.paths >> halvings,
            branches: self.branches >> halvings,
            code: self.code >> halvings,
            source: self.source >> halvings,
        }
    }
}
