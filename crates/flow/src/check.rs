//! Checks that decoded events, expanded to instructions, equal the steps the
//! encoder saw.
//!
//! ```
//! use hartrace_flow::{Check, Consumer, Effects, Event, Exit, HartId, Insn, Observer, Run, Step};
//!
//! let mut check = Check::new();
//! let nop = |pc| Step::Insn(Insn { pc, bits: 0x13, next: pc + 4, ..Insn::default() });
//! for pc in [0x100, 0x104] {
//!     check.step(HartId(0), &nop(pc), &Effects::default());
//! }
//! let run = Run { start: 0x100, end: 0x108, next: 0x108, insns: 2, exit: Exit::Stop, last: 4 };
//! let _ = check.event(HartId(0), &Event::Run(run));
//! assert_eq!(check.result().map(|c| c.insns), Ok(2));
//! ```

mod accesses;
mod expected;

use alloc::boxed::Box;
use core::fmt;
use core::ops::ControlFlow;

use hartrace_isa::Isa;

use self::expected::{Expected, Mismatch};
use crate::per_hart::PerHart;
use crate::step::steps_of;
use crate::{
    Access, Consumer, DataAccess, Effects, Event, Gap, HartId, Mark, Observer, Reported, Rules,
    Signal, Step, Straights, Trap, Wants,
};

/// Compares steps with events as both arrive: an [`Observer`] of what was
/// done and a [`Consumer`] of what was decoded. It keeps only what the decoder
/// has not given yet.
#[derive(Debug, Default)]
pub struct Check {
    harts: PerHart<Expected>,
    unreported: Unreported,
    checked: Checked,
    difference: Option<Box<Difference>>,
}

/// What the protocol does not report, so that a decoder need not produce it. By
/// default it reports everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unreported {
    /// Traps that another trap follows at once, with no instruction in between:
    /// packets of the E-Trace draft report only the last of them.
    pub traps: bool,
    /// How many iterations a loop without any decision had: E-Trace reports the
    /// address where it was left, and no count.
    pub rounds: Option<Inference>,
    /// Bits of `tval` that the ingress port does not show, one for each.
    pub tval: u64,
    /// Traps at the end, after which nothing retires: N-Trace reports a trap with
    /// the address of the next instruction.
    pub last_traps: bool,
    /// What it reports of data accesses; `None` for traces without, whose accesses
    /// are not compared.
    pub data: Option<Reported>,
}

/// Which instructions of a loop a decoder follows without a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inference {
    /// The instruction set of the code the steps run.
    pub isa: Isa,
    /// Its rules for jumps.
    pub rules: Rules,
    /// Returns are implied by a stack.
    pub returns: bool,
}

/// What was compared and found equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Instructions.
    pub insns: u64,
    /// Traps.
    pub traps: u64,
    /// Data accesses.
    pub accesses: u64,
    /// Instructions before a loss among the steps ([`Signal::Lost`]) that the
    /// trace lost with it: they were not compared.
    pub lost: u64,
}

/// The first place where events and steps part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The hart.
    pub hart: HartId,
    /// Instructions of this hart that were equal.
    pub after: u64,
    /// What the steps have here; `None` when they are at their end.
    pub expected: Option<What>,
    /// What the events have here; `None` when they are at their end.
    pub actual: Option<What>,
}

/// One side of a [`Difference`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// An instruction at this address.
    Insn(u64),
    /// A run from this address of so many instructions and bytes.
    Run {
        /// Its first address.
        start: u64,
        /// Its instructions.
        insns: u64,
        /// Their length together.
        bytes: u64,
    },
    /// The instruction at `from` went on to `to`.
    Jump {
        /// Its address.
        from: u64,
        /// The next one's.
        to: u64,
    },
    /// A trap.
    Trap(Trap),
    /// A gap where nothing is missing.
    Gap(Gap),
    /// A data access.
    Access(DataAccess),
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Insn(pc) => write!(f, "an instruction at {pc:#x}"),
            What::Run {
                start,
                insns,
                bytes,
            } => write!(f, "{insns} instructions of {bytes} bytes from {start:#x}"),
            What::Jump { from, to } => write!(f, "{from:#x} continuing at {to:#x}"),
            What::Trap(trap) => trap.fmt(f),
            What::Gap(gap) => write!(f, "a gap at byte {:#x}: {}", gap.at, gap.reason),
            What::Access(data) => {
                let Access {
                    kind,
                    size,
                    addr,
                    data,
                    operand,
                    ..
                } = data.access;
                write!(f, "{kind:?} of {} bytes at {addr:#x}", 1u32 << (size & 7))?;
                for (name, value) in [(", data", data), (", operand", operand)] {
                    if let Some(value) = value {
                        write!(f, "{name} {value:#x}")?;
                    }
                }
                Ok(())
            }
        }
    }
}

impl Difference {
    /// Whether both sides have a trap here, reported differently; otherwise they
    /// go different ways.
    #[must_use]
    pub const fn is_about_a_trap(&self) -> bool {
        matches!(
            (self.expected, self.actual),
            (Some(What::Trap(_)), Some(What::Trap(_)))
        )
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "hart {} after {} instructions: ",
            self.hart.0, self.after
        )?;
        match self.expected {
            Some(what) => write!(f, "expected {what}, ")?,
            None => f.write_str("expected nothing more, ")?,
        }
        match self.actual {
            Some(what) => write!(f, "decoded {what}"),
            None => f.write_str("decoded nothing more"),
        }
    }
}

impl core::error::Error for Difference {}

impl Check {
    /// Nothing compared yet.
    #[must_use]
    pub fn new() -> Check {
        Check::default()
    }

    /// Does not expect what the protocol leaves unreported.
    #[must_use]
    pub fn without(mut self, unreported: Unreported) -> Check {
        self.unreported = unreported;
        self
    }

    /// The outcome, once both sides have ended.
    ///
    /// # Errors
    ///
    /// The first difference, steps without events included.
    pub fn result(&self) -> Result<Checked, Box<Difference>> {
        if let Some(difference) = &self.difference {
            return Err(difference.clone());
        }
        for (hart, expected) in self.harts.iter() {
            let access = || expected.accesses.rest().map(What::Access);
            if let Some(what) = expected.rest(&self.unreported).or_else(access) {
                return Err(Box::new(Difference {
                    hart,
                    after: expected.equal,
                    expected: Some(what),
                    actual: None,
                }));
            }
        }
        Ok(self.checked)
    }

    /// The first difference so far.
    #[must_use]
    pub fn difference(&self) -> Option<&Difference> {
        self.difference.as_deref()
    }

    /// Compares one event; keeps the first difference.
    fn compare(
        &mut self,
        hart: HartId,
        with: impl FnOnce(&mut Expected, &Unreported) -> Result<Checked, Mismatch>,
    ) -> ControlFlow<()> {
        if self.difference.is_some() {
            return ControlFlow::Break(());
        }
        let expected = self.harts.of(hart);
        let compared = match expected.open.take() {
            Some(mismatch) => Err(mismatch),
            None => with(expected, &self.unreported),
        };
        match compared {
            Ok(more) => {
                expected.equal += more.insns;
                self.checked.accesses += more.accesses;
                self.checked.insns += more.insns;
                self.checked.traps += more.traps;
                self.checked.lost += more.lost;
                ControlFlow::Continue(())
            }
            Err(mismatch) => {
                let (wanted, actual) = *mismatch;
                let after = expected.equal;
                self.difference = Some(Box::new(Difference {
                    hart,
                    after,
                    expected: wanted,
                    actual: Some(actual),
                }));
                ControlFlow::Break(())
            }
        }
    }
}

impl Observer for Check {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        if self.difference.is_some() {
            return; // it will not be compared any more
        }
        let expected = self.harts.of(hart);
        match step {
            Step::Insn(insn) => {
                match &self.unreported.rounds {
                    Some(inference) => expected.push_inferred(insn, inference),
                    None => expected.push_insn(insn),
                }
                if let Some(reported) = &self.unreported.data {
                    expected.accesses.push(effects, reported);
                }
            }
            Step::Trap(t) => expected.push_trap(t.trap),
            Step::Signal(Signal::Lost) => {
                expected.push_loss();
                expected.accesses.lose();
            }
            Step::Signal(_) => {}
        }
    }

    fn straights(&mut self, hart: HartId, code: &Straights<'_>) {
        if self.difference.is_some() {
            return; // as for a step
        }
        if self.unreported.rounds.is_some() {
            // What is inferred depends on each instruction.
            return steps_of(self, hart, code);
        }
        let expected = self.harts.of(hart);
        for piece in code.list {
            expected.push_piece(piece, code.insns(piece));
        }
    }
}

impl Consumer for Check {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        match event {
            Event::Run(run) => self.compare(hart, |e, unreported| e.run(run, unreported)),
            Event::Trap(trap) => {
                if trap.epc.is_none() {
                    self.harts.of(hart).open = None;
                }
                self.compare(hart, |e, unreported| e.trap(trap, unreported))
            }
            Event::Gap(gap) => {
                let expected = self.harts.of(hart);
                if expected.has_loss() {
                    // Where the jump before it went is lost as well.
                    expected.open = None;
                }
                self.compare(hart, |e, _| e.gap(gap))
            }
            Event::Mark(Mark::Off) => {
                self.harts.of(hart).open = None;
                ControlFlow::Continue(())
            }
            Event::Access(access) if self.unreported.data.is_some() => {
                self.compare(hart, |e, _| e.access(access))
            }
            Event::Context(_)
            | Event::Time(_)
            | Event::Access(_)
            | Event::Mark(_)
            | Event::Code(_)
            | Event::DataGap(_)
            | Event::Warning(_)
            | Event::Unconfirmed(_) => ControlFlow::Continue(()),
        }
    }
}

#[cfg(test)]
mod tests;
