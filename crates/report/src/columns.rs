//! The columns of a report: tables as one list for each column, which takes less than
//! half of the room of one object for each row.
//!
//! Where a column holds function or string numbers, -1 stands for none.

use serde::Serialize;

/// What the horizontal position of the timeline is.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Axis {
    /// `instructions` or `time`.
    pub(crate) unit: &'static str,
    pub(crate) from: u64,
    pub(crate) until: u64,
    /// What is added to positions: times that have more than 53 bits begin at 0.
    pub(crate) origin: String,
    pub(crate) ticks_per_second: Option<f64>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Functions {
    pub(crate) name: Vec<i64>,
    pub(crate) file: Vec<i64>,
    pub(crate) line: Vec<u32>,
    pub(crate) address: Vec<String>,
    pub(crate) size: Vec<u64>,
    #[serde(rename = "self")]
    pub(crate) own: Vec<u64>,
    pub(crate) total: Vec<u64>,
    pub(crate) calls: Vec<u64>,
    pub(crate) self_time: Option<Vec<u64>>,
    pub(crate) total_time: Option<Vec<u64>>,
    /// Instructions that were executed, and all instructions.
    pub(crate) covered: Vec<u64>,
    pub(crate) insns: Vec<u64>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Track {
    pub(crate) id: u32,
    pub(crate) hart: u32,
    pub(crate) context: Option<u64>,
    pub(crate) thread: u32,
    pub(crate) name: String,
    pub(crate) max_depth: u32,
    pub(crate) slices: Slices,
}

/// Slices, by where they begin, then by depth.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Slices {
    pub(crate) begin: Vec<u64>,
    pub(crate) end: Vec<u64>,
    pub(crate) depth: Vec<u32>,
    /// A function, or below -1 a label.
    pub(crate) function: Vec<i64>,
    pub(crate) kind: Vec<u8>,
    pub(crate) flags: Vec<u8>,
    pub(crate) merged: Vec<u32>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Traps {
    pub(crate) track: Vec<u32>,
    pub(crate) at: Vec<u64>,
    /// -1: never returned.
    pub(crate) end: Vec<i64>,
    /// How much of it the hart spent in other threads.
    pub(crate) away: Vec<u64>,
    /// The depth of its slice.
    pub(crate) depth: Vec<u32>,
    pub(crate) interrupt: Vec<u8>,
    /// -1: not known.
    pub(crate) cause: Vec<i64>,
    pub(crate) epc: Vec<Option<String>>,
    pub(crate) tval: Vec<Option<String>>,
    pub(crate) function: Vec<i64>,
    pub(crate) handler: Vec<i64>,
}

/// The traps of one cause.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Interrupts {
    pub(crate) interrupt: bool,
    pub(crate) cause: i64,
    pub(crate) name: String,
    pub(crate) count: u64,
    /// Those that never returned.
    pub(crate) unfinished: u64,
    pub(crate) duration: Option<Durations>,
    /// From when it was pending to the handler; no trace reports that yet.
    pub(crate) latency: Option<Durations>,
    pub(crate) nesting: u32,
    pub(crate) worst: Vec<Worst>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Durations {
    pub(crate) min: u64,
    pub(crate) p50: u64,
    pub(crate) p90: u64,
    pub(crate) p99: u64,
    pub(crate) max: u64,
    pub(crate) mean: f64,
    pub(crate) histogram: Vec<(u64, u64)>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Worst {
    pub(crate) track: u32,
    pub(crate) at: u64,
    pub(crate) duration: u64,
    /// How much of it the hart spent in other threads.
    pub(crate) away: u64,
    /// The depth of its slice.
    pub(crate) depth: u32,
    /// Its place in the table of traps, if it is there.
    pub(crate) trap: Option<usize>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Gaps {
    pub(crate) track: Vec<u32>,
    pub(crate) at: Vec<u64>,
    pub(crate) end: Vec<u64>,
    pub(crate) bytes: Vec<u64>,
    pub(crate) reason: Vec<i64>,
    pub(crate) code: Vec<&'static str>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Flame {
    pub(crate) parent: Vec<i64>,
    /// A function, or below -1 a label.
    pub(crate) function: Vec<i64>,
    #[serde(rename = "self")]
    pub(crate) own: Vec<u64>,
    pub(crate) total: Vec<u64>,
    pub(crate) calls: Vec<u64>,
    pub(crate) self_time: Option<Vec<u64>>,
    pub(crate) total_time: Option<Vec<u64>>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Branches {
    pub(crate) address: Vec<String>,
    pub(crate) function: Vec<i64>,
    pub(crate) file: Vec<i64>,
    pub(crate) line: Vec<u32>,
    pub(crate) taken: Vec<u64>,
    pub(crate) not_taken: Vec<u64>,
}

/// The code of a function.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Code {
    pub(crate) function: i64,
    pub(crate) rows: CodeRows,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct CodeRows {
    pub(crate) address: Vec<String>,
    pub(crate) bytes: Vec<String>,
    pub(crate) text: Vec<String>,
    pub(crate) count: Vec<u64>,
    pub(crate) file: Vec<i64>,
    pub(crate) line: Vec<u32>,
    pub(crate) target: Vec<Option<String>>,
    /// -1: no conditional branch.
    pub(crate) taken: Vec<i64>,
    pub(crate) not_taken: Vec<i64>,
}

/// A source file.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Source {
    pub(crate) file: i64,
    /// The number of its first line.
    pub(crate) first: u32,
    /// Its text; empty if that is not known.
    pub(crate) lines: Vec<String>,
    /// The numbers of the lines that have code, if there is no text.
    pub(crate) numbers: Vec<u32>,
    /// Executions of each line, or of each of the numbers; -1: no code.
    pub(crate) count: Vec<i64>,
}

/// The last instructions of a track.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Ending {
    pub(crate) track: u32,
    pub(crate) how: String,
    /// The exception in whose handler it ended.
    pub(crate) trap: Option<usize>,
    pub(crate) rows: Rows,
}

/// The instructions before a trap.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct BeforeTrap {
    pub(crate) trap: usize,
    /// What was executed is the same as in the one before: only what follows is here.
    pub(crate) again: bool,
    pub(crate) rows: Rows,
    pub(crate) callers: Callers,
}

/// Calls and traps that have not returned, the innermost first.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Callers {
    /// The instruction that called, or that was interrupted.
    pub(crate) address: Vec<Option<String>>,
    pub(crate) function: Vec<i64>,
    pub(crate) file: Vec<i64>,
    pub(crate) line: Vec<u32>,
    /// What the trap is; empty for a call.
    pub(crate) trap: Vec<String>,
}

/// Executed instructions, the oldest first.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Rows {
    pub(crate) at: Vec<u64>,
    pub(crate) address: Vec<String>,
    pub(crate) text: Vec<String>,
    pub(crate) function: Vec<i64>,
    pub(crate) file: Vec<i64>,
    pub(crate) line: Vec<u32>,
    pub(crate) note: Vec<String>,
    /// 0: executed; 1: the same, and a trap came after it; 2: not executed, since it
    /// caused an exception.
    pub(crate) kind: Vec<u8>,
}
