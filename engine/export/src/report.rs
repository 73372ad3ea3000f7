//! What became of many traces.

use crate::export::Outcome;

/// Adds up what was exported.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// Traces that were exported.
    pub new: u64,
    /// Traces that were there before.
    pub old: u64,
    /// Traces that could not be exported.
    pub failed: u64,
    /// Traces with gaps among the new ones.
    pub damaged: u64,
    rows: u64,
    instructions: u64,
    trace_bytes: u64,
    bytes: u64,
}

impl Report {
    /// A trace that was exported now or earlier.
    pub fn add(&mut self, outcome: &Outcome) {
        let done = &outcome.done;
        if outcome.is_old {
            self.old += 1;
            return;
        }
        self.new += 1;
        self.damaged += u64::from(done.gaps > 0);
        self.rows += done.rows();
        self.instructions += done.instructions;
        self.trace_bytes += done.trace_bytes;
        self.bytes += done.bytes;
    }

    /// All of it in a few lines.
    #[must_use]
    pub fn text(&self) -> String {
        let mut lines = vec![format!(
            "{} traces exported: {} rows of {} instructions, {} bytes from {} bytes of trace",
            self.new, self.rows, self.instructions, self.bytes, self.trace_bytes
        )];
        if self.old > 0 {
            lines.push(format!("{} traces were there already", self.old));
        }
        if self.damaged > 0 {
            let damaged = self.damaged;
            lines.push(format!("{damaged} traces have gaps: see the table `gaps`"));
        }
        if self.failed > 0 {
            lines.push(format!("{} traces could not be exported", self.failed));
        }
        lines.join("\n")
    }
}
