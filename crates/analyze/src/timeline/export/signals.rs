//! What the events of a trace say beside slices: the pc, the privilege mode and the
//! context of each hart, put aside for the file.

use super::Scratch;
use super::spool::{Change, NewScratch, Spool};
use crate::stacks::Measure;
use hartrace_flow::{Consumer, Context, DataAccess, Event, HartId, Kept, Ownership, PerHart, Run};
use std::cell::{RefCell, RefMut};
use std::io;
use std::ops::ControlFlow;
use std::rc::Rc;

/// Numbers of these signals.
pub(super) const PC: u32 = 0;
pub(super) const PRIVILEGE: u32 = 1;
pub(super) const CONTEXT: u32 = 2;

/// Where signals are put aside: for a [`SliceWriter`](super::SliceWriter) and the
/// [`Signals`] of the same trace.
#[derive(Clone)]
pub struct Recorder(Rc<RefCell<Recorded>>);

impl Recorder {
    /// An empty one. When much is put aside, `scratch` makes a file for it.
    pub fn new(scratch: impl FnMut() -> io::Result<Box<dyn Scratch>> + 'static) -> Recorder {
        Recorder(Rc::new(RefCell::new(Recorded {
            spools: PerHart::default(),
            scratch: Box::new(scratch),
            error: None,
        })))
    }

    pub(super) fn get(&self) -> RefMut<'_, Recorded> {
        self.0.borrow_mut()
    }
}

/// What was put aside.
pub(super) struct Recorded {
    pub(super) spools: PerHart<Spool>,
    pub(super) scratch: NewScratch,
    pub(super) error: Option<io::Error>,
}

impl Recorded {
    fn push(&mut self, hart: HartId, change: Change) {
        let pushed = self.spools.of(hart).push(change, &mut self.scratch);
        if let Err(error) = pushed {
            self.error.get_or_insert(error);
        }
    }
}

/// Takes the events of a trace that become signals, and passes all on.
///
/// The pc is that of each run, or, with a least duration, that of the first run after this
/// time has passed since the last.
pub struct Signals<'c> {
    inner: &'c mut dyn Consumer,
    options: SignalOptions,
    recorder: Recorder,
    harts: PerHart<OfHart>,
}

#[derive(Default)]
struct OfHart {
    insns: u64,
    /// Where the hart is on the axis; `None` before the first known time.
    now: Option<u64>,
    /// Where the next pc is given.
    due: u64,
}

/// What signals are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalOptions {
    /// The axis of the timeline.
    pub axis: Measure,
    /// The least time, or number of instructions, between two values of the pc.
    pub least: u64,
    /// Whether the pc is wanted.
    pub with_pc: bool,
}

impl<'c> Signals<'c> {
    /// Signals of the events that `inner` gets.
    pub fn new(
        inner: &'c mut dyn Consumer,
        recorder: &Recorder,
        options: SignalOptions,
    ) -> Signals<'c> {
        Signals {
            inner,
            options,
            recorder: recorder.clone(),
            harts: PerHart::default(),
        }
    }

    fn push(&mut self, hart: HartId, signal: u32, value: Option<u64>) {
        if let Some(at) = self.harts.of(hart).now {
            let change = Change { at, signal, value };
            self.recorder.get().push(hart, change);
        }
    }

    #[inline]
    fn run(&mut self, hart: HartId, run: &Run) {
        let of = self.harts.of(hart);
        if self.options.axis == Measure::Instructions {
            of.now = Some(of.insns);
        }
        of.insns += u64::from(run.insns);
        if let Some(now) = of.now.filter(|now| self.options.with_pc && *now >= of.due) {
            of.due = now.saturating_add(self.options.least);
            self.push(hart, PC, Some(run.start));
        }
    }

    fn ownership(&mut self, hart: HartId, to: &Ownership) {
        if let Some(mode) = to.mode {
            self.push(hart, PRIVILEGE, Some(mode as u64));
        }
        if let Some(Context(context)) = to.context {
            self.push(hart, CONTEXT, Some(context));
        }
    }
}

impl Consumer for Signals<'_> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        if self.options.axis == Measure::Instructions {
            let of = self.harts.of(hart);
            of.now = Some(of.insns);
        }
        match event {
            Event::Run(run) => self.run(hart, run),
            Event::Time(time) if self.options.axis == Measure::Time => {
                let of = self.harts.of(hart);
                of.now = Some(of.now.unwrap_or(0).max(*time));
            }
            Event::Context(to) => self.ownership(hart, to),
            Event::Gap(_) if self.options.with_pc => {
                self.push(hart, PC, None);
                self.harts.of(hart).due = 0;
            }
            _ => {}
        }
        self.inner.event(hart, event)
    }

    fn runs(&mut self, hart: HartId, runs: &[Run]) -> ControlFlow<()> {
        for run in runs {
            self.run(hart, run);
        }
        self.inner.runs(hart, runs)
    }

    fn accesses(&mut self, hart: HartId, accesses: &[DataAccess]) -> ControlFlow<()> {
        self.inner.accesses(hart, accesses)
    }

    fn kept_runs(&mut self, hart: HartId, kept: Kept, runs: &[Run]) -> ControlFlow<()> {
        for run in runs {
            self.run(hart, run);
        }
        self.inner.kept_runs(hart, kept, runs)
    }

    fn keeps(&self) -> bool {
        self.inner.keeps()
    }
}
