//! The trap that a row of traps began with: the later ones are its consequences.

use hartrace_flow::TrapStep;

/// The last row of traps.
#[derive(Debug, Default)]
pub(crate) struct TrapRow {
    first: Option<TrapStep>,
    last: Option<TrapStep>,
    /// The trap before `first`, and the time in between.
    before: Option<(TrapStep, u64)>,
}

impl TrapRow {
    /// What it began with.
    pub(crate) fn first(&self) -> Option<TrapStep> {
        self.first
    }

    pub(crate) fn add(&mut self, step: &TrapStep) {
        let Some(last) = self.last.replace(*step) else {
            self.first = Some(*step);
            return;
        };
        let time = step.time.wrapping_sub(last.time);
        let (trap, last_trap) = (step.trap, last.trap);
        if last_trap.handler == trap.epc {
            // The first instruction of the handler traps in turn.
        } else if (last_trap.epc, last_trap.cause) == (trap.epc, trap.cause) {
            // Again, and as long after the last time as it took to get here from
            // the trap before: the way led through the handler only.
            match self.before.take() {
                Some((before, way)) if way == time => self.first = Some(before),
                _ => {}
            }
        } else {
            self.before = Some((last, time));
            self.first = Some(*step);
        }
    }
}
