//! The expected output of a decoder, instruction by instruction.
//!
//! [`Check`](hartrace_flow::Check) compares control flow alone and takes all
//! steps as traced. This module also knows which steps an encoder leaves out
//! (triggers, halts, losses) and compares what a trace reports besides control
//! flow: contexts, times and marks. How those are reported depends on the
//! format: [`Judge`].

mod hart;

use std::ops::ControlFlow;

use hartrace_flow::{
    Cause, Consumer, Context, Effects, Event, HartId, Mark, Mode, Observer, Retires, Step, Trap,
    Wants,
};
use hartrace_isa::{Flow, Isa, Link, Xlen};

use super::{Format, Setting};

pub use hart::{Hart, Heard, is_start, is_stop};

/// What was compared and found equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Instructions.
    pub insns: u64,
    /// Traps.
    pub traps: u64,
    /// Ownership events.
    pub contexts: u64,
    /// Times.
    pub times: u64,
    /// Marks.
    pub marks: u64,
    /// Gaps, where there was a loss.
    pub gaps: u64,
    /// Instructions that were lost.
    pub lost: u64,
    /// Instructions and traps that the format does not report.
    pub unreported: u64,
}

impl Told {
    /// Both together.
    pub fn add(&mut self, other: Told) {
        self.insns += other.insns;
        self.traps += other.traps;
        self.contexts += other.contexts;
        self.times += other.times;
        self.marks += other.marks;
        self.gaps += other.gaps;
        self.lost += other.lost;
        self.unreported += other.unreported;
    }
}

/// What is special about a step.
pub mod flag {
    /// The trace starts with it.
    pub const START: u8 = 1;
    /// A marker belongs to it.
    pub const NOTIFY: u8 = 2;
    /// The same, from an external trigger.
    pub const EXTERNAL: u8 = 4;
    /// The hart was reset before it.
    pub const RESET: u8 = 8;
    /// The trace stops after it, and where the hart went may be unknown.
    pub const LAST: u8 = 16;
    /// The trace stops after it, and where the hart went need not be reported.
    pub const OPEN: u8 = 32;
}

/// A traced step.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// Of a trap, the `epc`.
    pub pc: u64,
    /// Where the hart went; of a trap, the handler.
    pub next: u64,
    /// When.
    pub time: u64,
    /// Halfwords and traps before it, traced or not.
    pub position: u64,
    /// The context.
    pub context: Context,
    /// The mode.
    pub mode: Mode,
    /// Of [`flag`].
    pub flags: u8,
    /// The step.
    pub what: What,
}

impl Item {
    /// Whether it has one of these flags.
    #[must_use]
    pub const fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    /// Length of the instruction, 0 for a trap.
    #[must_use]
    pub const fn length(&self) -> u8 {
        match self.what {
            What::Insn { len, .. } => len,
            What::Trap(..) => 0,
        }
    }

    /// Whether it is an instruction that may jump to where the code does not
    /// tell.
    #[must_use]
    pub const fn is_jump(&self, isa: Isa) -> bool {
        let What::Insn { bits, .. } = self.what else {
            return false;
        };
        matches!(
            Flow::of_retired(bits, isa),
            Flow::Indirect { .. } | Flow::PopReturn | Flow::TrapReturn | Flow::Table { .. }
        )
    }

    /// Whether it is a return that a return stack may foresee.
    #[must_use]
    pub const fn is_return(&self, isa: Isa) -> bool {
        let What::Insn { bits, .. } = self.what else {
            return false;
        };
        matches!(
            Flow::of_retired(bits, isa),
            Flow::PopReturn
                | Flow::Indirect {
                    link: Link::Return,
                    ..
                }
        )
    }

    /// Whether it is a trap.
    #[must_use]
    pub const fn is_trap(&self) -> bool {
        matches!(self.what, What::Trap(..))
    }
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// An instruction.
    Insn {
        /// Its length.
        len: u8,
        /// The instruction.
        bits: u32,
    },
    /// A trap and its value.
    Trap(Cause, Option<u64>),
}

/// What a pulse of an external trigger does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pulse {
    /// Nothing.
    #[default]
    Nothing,
    /// It starts the trace.
    On,
    /// It stops the trace.
    Off,
    /// It is reported.
    Notify,
}

/// Which steps are traced, and what of them a trace can report.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The instruction set.
    pub isa: Isa,
    /// Width of addresses.
    pub xlen: Xlen,
    /// Debug triggers start and stop the trace and are reported.
    pub triggers: bool,
    /// The trace waits for a trigger.
    pub starts_disabled: bool,
    /// What external triggers do.
    pub external: [Pulse; 8],
    /// A hart without power is not traced.
    pub power: bool,
    /// The trace stops at a reset, and starts again.
    pub reset_stops: bool,
    /// Which instructions count as retired although they trap.
    pub retires: Retires,
    /// Trace may be lost.
    pub loses: bool,
    /// The reason of a gap where an encoder lost something.
    pub lost: &'static str,
    /// Where tracing stops, the target of the last jump is not reported.
    pub open: bool,
    /// Nor is it before a trap.
    pub open_trap: bool,
    /// The trace may stop at a return, and start anew in another context or mode.
    pub breaks_off: bool,
    /// Of several traps in a row only the last is reported, and none where the
    /// trace stops.
    pub one_trap: bool,
    /// A trap where the trace stops need not be reported.
    pub last_trap_untold: bool,
    /// How often the hart went round a loop without a decision is not reported;
    /// jumps that are inferred from a constant decide nothing if this is
    /// `Some(true)`.
    pub rounds: Option<bool>,
}

/// Compares what a trace reports besides control flow.
pub trait Judge: std::fmt::Debug {
    /// Whether the marks since the item before are those that belong to this
    /// one.
    ///
    /// # Errors
    ///
    /// What is wrong.
    fn begins(&self, heard: &Heard, item: &Item) -> Result<(), String>;

    /// A mark was reported: whether there may be such a thing.
    ///
    /// # Errors
    ///
    /// What is wrong.
    fn mark(&self, heard: &mut Heard, mark: Mark) -> Result<(), String>;

    /// Something was lost.
    fn gap(&self, heard: &mut Heard);

    /// An ownership was reported: whether there may be such a thing.
    ///
    /// # Errors
    ///
    /// What is wrong.
    fn context(&self, hart: &Hart) -> Result<(), String>;

    /// Whether the item belongs to the owner that was reported.
    ///
    /// # Errors
    ///
    /// What is wrong.
    fn owner(&self, heard: &mut Heard, item: &Item) -> Result<(), String>;

    /// Whether the time is that of the next item.
    ///
    /// # Errors
    ///
    /// What is wrong.
    fn time(&self, hart: &mut Hart, time: u64) -> Result<(), String>;

    /// Whether a trap is reported as it happened.
    fn is_trap(&self, meeting: &Meeting<'_>, trap: &Trap) -> bool;

    /// Whether an instruction in the middle of a run may have these flags: what
    /// is reported there would have cut it.
    fn may_be_inside(&self, flags: u8) -> bool;
}

/// An item that an event begins with.
#[derive(Clone, Copy, Debug)]
pub struct Meeting<'a> {
    /// The item.
    pub item: &'a Item,
    /// What was traced next.
    pub next: Option<&'a Item>,
    /// What it came after, should it be a trap.
    pub behind: Behind,
    /// Where the first of the traps before it was that are not reported.
    pub skipped: Option<u64>,
}

impl Meeting<'_> {
    /// Whether no instruction was traced right after it.
    #[must_use]
    pub fn is_last(&self) -> bool {
        let stops = self.item.has(flag::LAST | flag::OPEN);
        stops || self.next.is_none_or(|n| n.is_trap() || n.has(flag::START))
    }
}

/// What a trap came after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// An instruction that went where the trap was.
    Insn,
    /// An instruction whose target was not reported.
    Unreported,
    /// Another trap, or nothing that is known.
    Unknown,
}

/// Compares steps with events as both arrive.
#[derive(Debug)]
pub struct Truth<F: Format> {
    rules: Rules,
    judge: F::Judge,
    harts: Vec<Hart>,
    told: Told,
    difference: Option<String>,
}

impl<F: Format> Truth<F> {
    /// For a trace with this setting.
    #[must_use]
    pub fn new(setting: &Setting<F>) -> Truth<F> {
        Truth {
            rules: F::rules(setting),
            judge: F::judge(setting),
            harts: Vec::new(),
            told: Told::default(),
            difference: None,
        }
    }

    #[allow(clippy::indexing_slicing)] // made long enough just before
    fn hart(&mut self, id: HartId) -> &mut Hart {
        let index = id.0 as usize;
        if self.harts.len() <= index {
            let enabled = !self.rules.starts_disabled;
            self.harts.resize_with(index + 1, || Hart::new(enabled));
        }
        &mut self.harts[index]
    }

    /// After a loss this hart's trace starts again with the item before
    /// which so many halfwords and traps went.
    pub fn restarts(&mut self, id: HartId, position: u64) {
        self.hart(id).restarts(position);
    }

    /// The first difference so far.
    #[must_use]
    pub fn difference(&self) -> Option<&str> {
        self.difference.as_deref()
    }

    /// No more steps.
    pub fn end_of_steps(&mut self) {
        for hart in &mut self.harts {
            hart.stop();
        }
    }

    /// The outcome, once both sides have ended.
    ///
    /// # Errors
    ///
    /// The first difference.
    pub fn result(mut self) -> Result<Told, String> {
        if let Some(difference) = self.difference {
            return Err(difference);
        }
        for (id, hart) in self.harts.iter_mut().enumerate() {
            let told = hart.end(&self.rules);
            self.told
                .add(told.map_err(|what| format!("hart {id} {what}"))?);
        }
        Ok(self.told)
    }

    fn compare(
        &mut self,
        id: HartId,
        with: impl FnOnce(&mut Hart, &Rules, &F::Judge) -> Result<Told, String>,
    ) -> ControlFlow<()> {
        if self.difference.is_some() {
            return ControlFlow::Break(());
        }
        self.hart(id);
        let Truth {
            rules,
            judge,
            harts,
            told,
            difference,
        } = self;
        let Some(hart) = harts.get_mut(id.0 as usize) else {
            return ControlFlow::Continue(());
        };
        match with(hart, rules, judge) {
            Ok(more) => {
                hart.given += more.insns;
                told.add(more);
                ControlFlow::Continue(())
            }
            Err(what) => {
                let after = hart.given;
                *difference = Some(format!("hart {} after {after}: {what}", id.0));
                ControlFlow::Break(())
            }
        }
    }
}

impl<F: Format> Observer for Truth<F> {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, id: HartId, step: &Step, _: &Effects) {
        if self.difference.is_some() {
            return;
        }
        self.hart(id);
        let Truth { rules, harts, .. } = self;
        let Some(hart) = harts.get_mut(id.0 as usize) else {
            return;
        };
        match step {
            Step::Insn(insn) => hart.insn(insn, rules),
            Step::Trap(t) => hart.trap(t, rules),
            Step::Signal(signal) => hart.signal(*signal, rules),
        }
    }
}

impl<F: Format> Consumer for Truth<F> {
    fn event(&mut self, id: HartId, event: &Event) -> ControlFlow<()> {
        let mut told = Told::default();
        match event {
            Event::Run(run) => self.compare(id, |h, rules, judge| h.run(run, rules, judge)),
            Event::Trap(trap) => self.compare(id, |h, rules, judge| h.trapped(trap, rules, judge)),
            Event::Gap(gap) => self.compare(id, |h, rules, judge| {
                judge.gap(&mut h.heard);
                h.gap(gap, rules)
            }),
            Event::Time(time) => self.compare(id, |h, _, judge| {
                told.times = 1;
                h.heard.check_time(*time)?;
                judge.time(h, *time).map(|()| told)
            }),
            Event::Context(owner) => self.compare(id, |h, _, judge| {
                told.contexts = 1;
                h.heard.owner(*owner);
                judge.context(h).map(|()| told)
            }),
            Event::Mark(mark) => self.compare(id, |h, _, judge| {
                told.marks = 1;
                h.heard.mark(*mark);
                judge.mark(&mut h.heard, *mark).map(|()| told)
            }),
            Event::Access(access) => {
                self.compare(id, |_, _, _| Err(format!("{access:x?} out of nowhere")))
            }
            Event::DataGap(gap) => self.compare(id, |_, _, _| Err(format!("unexpected: {gap:?}"))),
            Event::Code(code) => self.compare(id, |_, _, _| Err(format!("unexpected: {code:?}"))),
            Event::Warning(warning) => {
                self.compare(id, |_, _, _| Err(format!("unexpected: {warning:?}")))
            }
            Event::Unconfirmed(what) => {
                self.compare(id, |_, _, _| Err(format!("unexpected: {what:?}")))
            }
        }
    }
}
