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
    /// Traces that were not tried, since nothing can be written.
    pub left: u64,
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
        let new = traces(self.new);
        let mut lines = vec![format!(
            "{new} exported: {} rows of {} instructions, {} bytes from {} bytes of trace",
            self.rows, self.instructions, self.bytes, self.trace_bytes
        )];
        for (count, what) in [
            (self.old, "exported already"),
            (self.damaged, "with gaps: see the table `gaps`"),
            (self.failed, "could not be exported"),
            (self.left, "not tried"),
        ] {
            if count > 0 {
                lines.push(format!("{} {what}", traces(count)));
            }
        }
        lines.join("\n")
    }
}

fn traces(count: u64) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} trace{ending}")
}
