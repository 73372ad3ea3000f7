//! Causes of traps from the handlers that read them.
//!
//! A log of commits does not record why a trap was taken. Most handlers read
//! `mcause` or `scause` soon, and the log has the value. So the steps after such a
//! trap wait, a few at most, until one of them reports it.

use alloc::vec::Vec;

use hartrace_flow::erase::Dyn;
use hartrace_flow::{Cause, Effects, HartId, Mode, Step};
use hartrace_isa::{MRET, SRET, csr};

use super::Out;

/// Steps that wait at most. Handlers save registers first.
const MOST: usize = 256;

/// Steps after traps whose cause is not known yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    steps: Vec<Waits>,
    /// Harts, and where their trap is among the steps.
    open: Vec<(HartId, usize)>,
}

#[derive(Clone, Copy, Debug)]
struct Waits {
    hart: HartId,
    step: Step,
    mode: Option<Mode>,
    incomplete: bool,
}

impl Waiting {
    /// Whether no step waits.
    pub(super) const fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Gives a step, or keeps it. An observer that wants effects gets every step at
    /// once.
    #[inline]
    pub(super) fn step(
        &mut self,
        hart: HartId,
        step: &Step,
        effects: &Effects,
        out: &mut Out<'_, '_>,
    ) {
        let waits = !self.steps.is_empty() || matches!(step, Step::Trap(_));
        if !waits || out.parts.any() {
            return out.to.step(hart, step, effects);
        }
        self.wait(hart, step, effects, out.to);
    }

    #[cold]
    fn wait(&mut self, hart: HartId, step: &Step, effects: &Effects, out: &mut Dyn<'_>) {
        // The handler of the trap before ends, or is left.
        let leaves = match step {
            Step::Insn(insn) => matches!(insn.bits, MRET | SRET),
            Step::Trap(_) | Step::Signal(_) => true,
        };
        if leaves {
            self.open.retain(|open| open.0 != hart);
        }
        if let Step::Trap(trap) = step
            && trap.trap.cause == Cause::Unknown
        {
            self.open.push((hart, self.steps.len()));
        }
        self.steps.push(Waits {
            hart,
            step: *step,
            mode: effects.mode,
            incomplete: effects.incomplete,
        });
        if self.open.is_empty() || self.steps.len() >= MOST {
            self.flush(out);
        }
    }

    /// The handler that a hart is in has read this cause.
    #[cold]
    pub(super) fn cause(&mut self, hart: HartId, cause: Cause, out: &mut Dyn<'_>) {
        let Some(at) = self.open.iter().position(|open| open.0 == hart) else {
            return;
        };
        let (_, index) = self.open.swap_remove(at);
        if let Some(Step::Trap(trap)) = self.steps.get_mut(index).map(|waits| &mut waits.step) {
            trap.trap.cause = cause;
        }
        if self.open.is_empty() {
            self.flush(out);
        }
    }

    /// No more is known: gives what waits.
    #[cold]
    pub(super) fn flush(&mut self, out: &mut Dyn<'_>) {
        self.open.clear();
        for waits in self.steps.drain(..) {
            let effects = Effects {
                mode: waits.mode,
                incomplete: waits.incomplete,
                ..Effects::default()
            };
            out.step(waits.hart, &waits.step, &effects);
        }
    }
}

/// The cause that an instruction has read into a register: `csrr` and the like of
/// the register of its own mode.
pub(super) const fn cause_read(bits: u32, mode: Mode, value: u64, narrow: bool) -> Option<Cause> {
    let own = match mode {
        Mode::M => csr::MCAUSE,
        Mode::S | Mode::VS => csr::SCAUSE,
        _ => return None,
    };
    let system = bits & 0x7f == 0x73 && bits >> 12 & 3 != 0;
    if !system || bits >> 7 & 31 == 0 || bits >> 20 != own as u32 {
        return None;
    }
    let top = if narrow { 31 } else { 63 };
    let code = value & !(1 << top);
    if code > u32::MAX as u64 {
        return None;
    }
    let code = Some(code as u32);
    Some(match value >> top & 1 {
        0 => Cause::Exception(code),
        _ => Cause::Interrupt(code),
    })
}
