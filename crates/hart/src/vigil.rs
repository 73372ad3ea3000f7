//! Detects endless sequences of traps: a missing handler, a handler that faults
//! itself, or one that returns to the same fault.

use crate::cpu::{Cpu, Exception};
use hartrace_flow::Mode;

/// Traps without an instruction in between that make a row endless.
const IN_A_ROW: u64 = 256;

/// The same fault in machine mode, without an instruction in between: nothing
/// has changed after the second, and no interrupt is enabled.
const UNCHANGED: u64 = 3;

/// Traps of one kind by which a hart that is stopped counts as one in a loop.
const SUSPECT: u64 = 64;

/// Traps of which none was returned from, each [`CLOSE`] to the one before.
const NESTED: u64 = 10_000;

/// Instructions between traps that belong together.
const CLOSE: u64 = 1000;

/// The same fault with the same registers, this often in a row.
const SAME: u64 = 1_000_000;

/// What it has seen.
#[derive(Debug, Default)]
pub(crate) struct Vigil {
    /// Instructions retired, and returns from traps, when the last trap was
    /// taken.
    retired: u64,
    returns: u64,
    in_a_row: u64,
    nested: u64,
    last: Option<(u64, Exception, [u64; 32])>,
    same: u64,
    /// Of these, the last ones without an instruction in between.
    unchanged: u64,
}

impl Vigil {
    /// An exception is about to be taken; true when it is one too many.
    pub(crate) fn sees_loop(&mut self, cpu: &Cpu, exception: Exception) -> bool {
        // Programs may call the environment for ever.
        let call = matches!(exception.code, 8..=11);
        let since = cpu.retired - self.retired;
        let nested = cpu.returns == self.returns && since < CLOSE && !call;
        let now = Some((cpu.pc, exception, cpu.x)).filter(|_| !call);
        let same = now.is_some() && now == self.last;
        count(&mut self.in_a_row, since == 0);
        count(&mut self.nested, nested);
        count(&mut self.same, same);
        count(
            &mut self.unchanged,
            same && since == 0 && cpu.mode == Mode::M,
        );
        (self.retired, self.returns) = (cpu.retired, cpu.returns);
        self.last = now;
        self.in_a_row >= IN_A_ROW
            || self.nested >= NESTED
            || self.same >= SAME
            || self.unchanged >= UNCHANGED
    }

    /// The trap that is taken over and over, of a hart that is stopped before it
    /// was clear that it always will be.
    pub(crate) fn suspects(&self, cpu: &Cpu) -> Option<(u64, Exception)> {
        let most = self.in_a_row.max(self.nested).max(self.same);
        let near = cpu.retired - self.retired < CLOSE;
        let (pc, exception, _) = self.last.as_ref()?;
        (near && most >= SUSPECT).then_some((*pc, *exception))
    }

    /// An interrupt has been taken: the world has changed.
    pub(crate) fn sees_interrupt(&mut self) {
        *self = Vigil::default();
    }
}

/// One more, or none again.
fn count(row: &mut u64, goes_on: bool) {
    *row = if goes_on { *row + 1 } else { 0 };
}
