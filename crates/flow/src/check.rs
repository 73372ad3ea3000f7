//! The one place where truth is checked: decoded events, expanded to
//! instructions, equal the steps the encoder saw.
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

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::fmt;
use core::ops::ControlFlow;

use crate::per_hart::PerHart;
use crate::{
    Cause, Consumer, Effects, Event, Exit, Gap, HartId, Insn, Observer, Run, Step, Trap, Wants,
};

/// Compares steps with events as both arrive: an [`Observer`] of what was
/// done and a [`Consumer`] of what was decoded. It keeps only what the decoder
/// has not given yet.
#[derive(Debug, Default)]
pub struct Check {
    harts: PerHart<Expected>,
    checked: Checked,
    difference: Option<Box<Difference>>,
}

/// What was compared and found equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Instructions.
    pub insns: u64,
    /// Traps.
    pub traps: u64,
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
            What::Jump { from, to } => write!(f, "{from:#x} going on to {to:#x}"),
            What::Trap(t) => write!(
                f,
                "a trap at {:x?} to {:x?} ({:?}, tval {:x?})",
                t.epc, t.handler, t.cause, t.tval
            ),
            What::Gap(gap) => write!(f, "a gap at byte {:#x}: {}", gap.at, gap.reason),
        }
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

/// Expected and actual, when they differ.
type Mismatch = Box<(Option<What>, What)>;

/// Steps of one hart that no event has covered yet.
#[derive(Debug, Default)]
struct Expected {
    items: VecDeque<Item>,
    /// Lengths of the instructions in all the items.
    lengths: VecDeque<u8>,
    /// Instructions found equal.
    equal: u64,
    /// Where the last instruction went, expected and actual, if the trace did
    /// not tell: right at its end, or before a trap whose `epc` it does not
    /// tell.
    untold: Option<Mismatch>,
}

/// Instructions behind each other in memory, or a trap.
#[derive(Clone, Copy, Debug)]
enum Item {
    /// `next` is where the last of them went.
    Span {
        start: u64,
        end: u64,
        next: u64,
    },
    Trap(Trap),
}

impl Item {
    const fn what(self) -> What {
        match self {
            Item::Span { start, .. } => What::Insn(start),
            Item::Trap(trap) => What::Trap(trap),
        }
    }
}

impl Check {
    /// Nothing compared yet.
    #[must_use]
    pub fn new() -> Check {
        Check::default()
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
            if let Some(item) = expected.items.front() {
                return Err(Box::new(Difference {
                    hart,
                    after: expected.equal,
                    expected: Some(item.what()),
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
        with: impl FnOnce(&mut Expected) -> Result<Checked, Mismatch>,
    ) -> ControlFlow<()> {
        if self.difference.is_some() {
            return ControlFlow::Break(());
        }
        let expected = self.harts.of(hart);
        let compared = match expected.untold.take() {
            Some(mismatch) => Err(mismatch),
            None => with(expected),
        };
        match compared {
            Ok(more) => {
                expected.equal += more.insns;
                self.checked.insns += more.insns;
                self.checked.traps += more.traps;
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

impl Expected {
    fn push_insn(&mut self, insn: &Insn) {
        self.lengths.push_back(insn.len());
        match self.items.back_mut() {
            Some(Item::Span { end, next, .. }) if *end == insn.pc && *next == insn.pc => {
                *end = insn.end();
                *next = insn.next;
            }
            _ => self.items.push_back(Item::Span {
                start: insn.pc,
                end: insn.end(),
                next: insn.next,
            }),
        }
    }

    /// Takes a run off the front: its addresses first, then the lengths of its
    /// instructions.
    fn run(&mut self, run: &Run) -> Result<Checked, Mismatch> {
        let mut at = run.start;
        let mut went = run.start;
        while at != run.end {
            match self.items.front_mut() {
                Some(Item::Span { start, end, next }) if *start == at => {
                    if end.wrapping_sub(at) > run.end.wrapping_sub(at) {
                        *start = run.end;
                        (at, went) = (run.end, run.end);
                    } else {
                        (at, went) = (*end, *next);
                        self.items.pop_front();
                    }
                }
                other => return Err(Box::new((other.map(|i| i.what()), What::Insn(at)))),
            }
        }
        if went != run.next {
            let from = run.source();
            let of = |to| What::Jump { from, to };
            let mismatch = Box::new((Some(of(went)), of(run.next)));
            // A trace that ends behind an indirect jump cannot tell where it
            // went, nor one with a trap there.
            let told = matches!(self.items.front(), Some(Item::Span { .. }));
            if run.exit != Exit::Stop || told {
                return Err(mismatch);
            }
            self.untold = Some(mismatch);
        }
        let insns = u64::from(run.insns);
        let bytes = run.end.wrapping_sub(run.start);
        let (mut found, mut last) = (0, 0);
        let there = (run.insns as usize).min(self.lengths.len());
        for len in self.lengths.drain(..there) {
            found += u64::from(len);
            last = len;
        }
        let of = |insns, bytes| What::Run {
            start: run.start,
            insns,
            bytes,
        };
        if found != bytes || last != run.last || there as u64 != insns {
            return Err(Box::new((Some(of(there as u64, found)), of(insns, bytes))));
        }
        Ok(Checked { insns, traps: 0 })
    }

    fn trap(&mut self, actual: &Trap) -> Result<Checked, Mismatch> {
        match self.items.front() {
            Some(Item::Trap(expected)) if agrees(expected, actual) => {
                self.items.pop_front();
                Ok(Checked { insns: 0, traps: 1 })
            }
            other => Err(Box::new((other.map(|i| i.what()), What::Trap(*actual)))),
        }
    }
}

/// Equal as far as both sides know.
fn agrees(a: &Trap, b: &Trap) -> bool {
    let code = |a: Option<u32>, b: Option<u32>| a.is_none() || b.is_none() || a == b;
    let cause = match (a.cause, b.cause) {
        (Cause::Unknown, _) | (_, Cause::Unknown) => true,
        (Cause::Exception(a), Cause::Exception(b)) => code(a, b),
        (Cause::Interrupt(a), Cause::Interrupt(b)) => code(a, b),
        _ => false,
    };
    let tval = a.tval.is_none() || b.tval.is_none() || a.tval == b.tval;
    let handler = a.handler.is_none() || b.handler.is_none() || a.handler == b.handler;
    let epc = a.epc.is_none() || b.epc.is_none() || a.epc == b.epc;
    epc && handler && cause && tval
}

impl Observer for Check {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, hart: HartId, step: &Step, _: &Effects) {
        if self.difference.is_some() {
            return; // nobody will compare it any more
        }
        let expected = self.harts.of(hart);
        match step {
            Step::Insn(insn) => expected.push_insn(insn),
            Step::Trap(t) => expected.items.push_back(Item::Trap(t.trap)),
            Step::Signal(_) => {}
        }
    }
}

impl Consumer for Check {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        match event {
            Event::Run(run) => self.compare(hart, |e| e.run(run)),
            Event::Trap(trap) => {
                if trap.epc.is_none() {
                    self.harts.of(hart).untold = None;
                }
                self.compare(hart, |e| e.trap(trap))
            }
            Event::Gap(gap) => self.compare(hart, |e| {
                Err(Box::new((
                    e.items.front().map(|i| i.what()),
                    What::Gap(*gap),
                )))
            }),
            Event::Context(_) | Event::Time(_) | Event::Access(_) | Event::Mark(_) => {
                ControlFlow::Continue(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reason, TrapStep};

    const HART: HartId = HartId(0);

    fn insn(pc: u64, bits: u32, next: u64) -> Step {
        Step::Insn(Insn {
            pc,
            bits,
            next,
            ..Insn::default()
        })
    }

    fn run(start: u64, end: u64, insns: u32, last: u8) -> Event {
        Event::Run(Run {
            start,
            end,
            next: end,
            insns,
            exit: Exit::Stop,
            last,
        })
    }

    fn trap(epc: u64, cause: Cause) -> Trap {
        Trap {
            epc: Some(epc),
            handler: Some(0x800),
            cause,
            tval: None,
        }
    }

    fn taken(epc: u64, cause: Cause) -> Step {
        Step::Trap(TrapStep {
            trap: trap(epc, cause),
            bits: None,
            mode: crate::Mode::M,
            context: crate::Context(0),
            time: 0,
        })
    }

    fn after(steps: &[Step], events: &[Event]) -> Result<Checked, Box<Difference>> {
        let mut check = Check::new();
        for step in steps {
            check.step(HART, step, &Effects::default());
        }
        for event in events {
            let _ = check.event(HART, event);
        }
        check.result()
    }

    /// What transfers and call stacks are made of.
    #[test]
    fn where_a_run_goes_is_checked() {
        let steps = [insn(0, 0x0200_006f, 0x20), insn(0x20, 1, 0x22)];
        let jump = |next| {
            Event::Run(Run {
                start: 0,
                end: 4,
                next,
                insns: 1,
                exit: Exit::DirectJump,
                last: 4,
            })
        };
        assert!(after(&steps, &[jump(0x20), run(0x20, 0x22, 1, 2)]).is_ok());
        assert!(after(&steps, &[jump(0x24), run(0x20, 0x22, 1, 2)]).is_err());
        assert!(after(&steps, &[run(0, 4, 1, 4), run(0x20, 0x22, 1, 2)]).is_err());
    }

    /// Where the last instruction went need not be told, but what was told
    /// must be right, and only the last is the last.
    #[test]
    fn where_the_last_run_goes_may_be_untold() {
        let steps = [insn(0, 0x13, 4), insn(4, 0x8782, 0x20)];
        let all = run(0, 6, 2, 2);
        assert_eq!(after(&steps, &[all]).map(|c| c.insns), Ok(2));
        let wrong = Run {
            start: 0,
            end: 6,
            next: 0x30,
            insns: 2,
            exit: Exit::IndirectJump,
            last: 2,
        };
        assert!(after(&steps, &[Event::Run(wrong)]).is_err());
        let more = [steps[0], steps[1], insn(0x20, 1, 0x22)];
        assert!(after(&more, &[all]).is_err());
        // A step that arrives later, and its event.
        let mut check = Check::new();
        for step in &steps {
            check.step(HART, step, &Effects::default());
        }
        let _ = check.event(HART, &all);
        check.step(HART, &more[2], &Effects::default());
        let told = check.event(HART, &run(0x20, 0x22, 1, 2));
        assert!(told.is_break());
        assert!(check.result().is_err());
    }

    /// What is behind an indirect jump whose target never retired, the trace
    /// need not know; what it says must be right.
    #[test]
    fn a_trap_at_an_unknown_address() {
        let steps = [insn(0, 0x8782, 0x20), taken(0x20, Cause::Unknown)];
        let unknown = Trap {
            epc: None,
            ..trap(0, Cause::Unknown)
        };
        let stop = run(0, 2, 1, 2);
        assert_eq!(
            after(&steps, &[stop, Event::Trap(unknown)]).unwrap().traps,
            1
        );
        let known = Event::Trap(trap(0x20, Cause::Unknown));
        assert!(after(&steps, &[stop, known]).is_err());
        assert!(after(&steps, &[stop]).is_err());
        let straight = [insn(0, 1, 2), taken(2, Cause::Unknown)];
        assert!(after(&straight, &[stop, Event::Trap(unknown)]).is_ok());
        assert!(after(&steps, &[Event::Trap(unknown)]).is_err());
    }

    #[test]
    fn runs_may_be_cut_anywhere() {
        let steps = [
            insn(0, 0x13, 4),
            insn(4, 1, 6),
            insn(6, 0x13, 0x20),
            insn(0x20, 1, 0x22),
        ];
        let jump = |start, insns| {
            Event::Run(Run {
                start,
                end: 10,
                next: 0x20,
                insns,
                exit: Exit::IndirectJump,
                last: 4,
            })
        };
        let whole = [jump(0, 3), run(0x20, 0x22, 1, 2)];
        assert_eq!(after(&steps, &whole).unwrap().insns, 4);
        let cut = [run(0, 4, 1, 4), jump(4, 2), run(0x20, 0x22, 1, 2)];
        assert_eq!(after(&steps, &cut).unwrap().insns, 4);
    }

    #[test]
    fn every_kind_of_difference_is_seen() {
        let steps = [insn(0, 0x13, 4), insn(4, 1, 6), insn(6, 1, 8)];
        // An address, a missing end, one too many, a wrong count, a wrong cut.
        for events in [
            &[run(2, 8, 2, 2)][..],
            &[run(0, 6, 2, 2)],
            &[run(0, 8, 3, 2), run(8, 10, 1, 2)],
            &[run(0, 8, 4, 2)],
            &[run(0, 2, 1, 2), run(2, 8, 2, 2)],
            &[run(0, 8, 3, 4)],
        ] {
            assert!(after(&steps, events).is_err(), "{events:?}");
        }
    }

    #[test]
    fn traps_agree_as_far_as_both_sides_know() {
        let with = |step: Cause, event: Cause| {
            let steps = [insn(0, 0x13, 4), taken(4, step)];
            after(&steps, &[run(0, 4, 1, 4), Event::Trap(trap(4, event))])
        };
        let exception = Cause::Exception(Some(2));
        assert_eq!(with(exception, exception).unwrap().traps, 1);
        assert!(with(exception, Cause::Unknown).is_ok());
        assert!(with(exception, Cause::Exception(None)).is_ok());
        assert!(with(exception, Cause::Exception(Some(3))).is_err());
        assert!(with(exception, Cause::Interrupt(None)).is_err());
    }

    #[test]
    fn a_missing_trap_and_a_needless_gap_are_differences() {
        let steps = [insn(0, 0x13, 4)];
        assert!(after(&steps, &[Event::Trap(trap(0, Cause::Unknown))]).is_err());
        let gap = Gap {
            at: 7,
            reason: Reason {
                code: "XX0001",
                text: "test",
                value: 1,
            },
            bytes: 0,
            unconfirmed: 0,
        };
        let difference = after(&steps, &[Event::Gap(gap)]).unwrap_err();
        assert_eq!(difference.actual, Some(What::Gap(gap)));
    }
}
