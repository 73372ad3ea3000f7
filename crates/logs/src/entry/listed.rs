//! What Spike's `-l` adds: lines of instructions that are about to execute, and of traps.

use super::effects::{MemoryOp, complete};
use super::hart::{Ground, Hart, Held, prevents_fetch};
use super::{Entry, Out};
use hartrace_flow::{Cause, Insn, Mode, Signal, Step};

impl Hart {
    /// An instruction is about to execute.
    #[inline]
    pub(crate) fn list(&mut self, pc: u64, bits: u32) {
        self.listed = Some((pc, bits));
        self.times = 1;
    }

    /// The instruction listed last executed so often in all; false
    /// where that does not fit.
    pub(crate) fn repeat(&mut self, times: u64) -> bool {
        if self.listed.is_none() || times == 0 {
            return times <= 1;
        }
        self.times = times;
        true
    }

    /// Without commits: gives the instruction listed last, as often as it executed.
    /// It went to `next`, or to an unknown address.
    pub(super) fn give_listed(
        &mut self,
        next: Option<u64>,
        ground: &mut Ground<'_, '_>,
        out: &mut Out<'_, '_>,
    ) {
        let Some((pc, bits)) = self.listed.take() else {
            return;
        };
        let trapped = self.trap.is_some_and(|t| t.at(pc));
        let times = core::mem::replace(&mut self.times, 1) - u64::from(trapped);
        let mut insn = Insn {
            pc,
            next: pc,
            bits,
            ..Insn::default()
        };
        self.effects = *ground.unreported;
        for _ in 1..times {
            self.give(insn, ground, out);
        }
        if times == 0 {
            return;
        }
        if let Some(held) = self.trap {
            insn.next = if trapped { pc } else { held.epc };
            return self.give(insn, ground, out);
        }
        match next {
            Some(next) => self.turn(insn, next, None, ground, out),
            None => self.give_natural(insn, ground, out),
        }
    }

    /// A debugger did something to the hart, which is after its last
    /// instruction; `entry` has the effects.
    pub(crate) fn debugger(
        &mut self,
        signal: Signal,
        entry: &Entry,
        ground: &mut Ground<'_, '_>,
        out: &mut Out<'_, '_>,
    ) {
        if let Some(insn) = self.insn.take() {
            self.mode = Some(insn.mode);
            self.give_natural(insn, ground, out);
        }
        let none = (0, MemoryOp::Other);
        let (shadow, effects) = (&mut self.shadow, &mut self.effects);
        complete(entry, none, shadow, out.parts, effects);
        let step = Step::Signal(signal);
        ground.waiting.step(self.id, &step, &self.effects, out);
    }

    /// A trap was taken; its handler comes with the next line.
    pub(crate) fn hold(&mut self, epc: u64, cause: Cause, mode: Option<Mode>) {
        let fetched = |listed: &(u64, u32)| listed.0 == epc && !prevents_fetch(cause);
        let bits = self.listed.filter(fetched).map(|l| l.1);
        self.trap = Some(Held {
            epc,
            cause,
            tval: None,
            bits,
            mode: mode.or(self.mode),
            time: 0,
        });
    }

    /// The value of the trap just taken.
    pub(crate) fn tval(&mut self, value: u64) -> Option<()> {
        let trap = self.trap.as_mut().filter(|t| t.tval.is_none())?;
        trap.tval = Some(value);
        Some(())
    }
}
