//! Turns events back into steps, so that a decoded trace can be encoded again.

use alloc::vec::Vec;
use core::ops::ControlFlow;

use hartrace_isa::Flow;

use crate::per_hart::PerHart;
use crate::{
    AnyObserver, Cause, Consumer, Context, DataAccess, Effects, Event, Exit, HartId, Image, Insn,
    Mark, Mode, Ownership, Run, Signal, SpaceId, Step, Trap, TrapStep,
};

/// A [`Consumer`] that gives an [`Observer`](crate::Observer) the steps that events report.
///
/// Instructions come from the image, mode and context from the last event that
/// reported them (machine mode and context 0 before), and `time` is the last that
/// was reported. A run is emitted when the next event shows where it went.
///
/// Where tracing was off the steps have [`Signal::Untraced`], for a gap
/// [`Signal::Lost`]; reasons to synchronise and vendors' messages are no steps.
/// The cause of an ecall or ebreak is known even if the trace reports none. A
/// trap whose address the trace does not report is a [`Signal::Lost`] too: no step
/// can say where the jump before it went, unless [`Replay::keep_unplaced`] is
/// asked for. [`Replay::assumed`] says what else stands in the steps and not in
/// the events.
///
/// ```
/// use hartrace_flow::{Consumer, Effects, Event, Exit, HartId, Image, Observer, Replay, Run};
/// use hartrace_flow::{SpaceId, Step, Wants};
/// use hartrace_isa::Isa;
///
/// struct Pcs(Vec<(u64, u64)>);
/// impl Observer for Pcs {
///     const WANTS: Wants = Wants::STEPS;
///     fn step(&mut self, _: HartId, step: &Step, _: &Effects) {
///         if let Step::Insn(insn) = step {
///             self.0.push((insn.pc, insn.next));
///         }
///     }
/// }
///
/// // c.nop; c.j 0x1000
/// let mut image = Image::new();
/// image.add_raw(SpaceId::FIRST, 0x1000, &[0x01, 0x00, 0xfd, 0xbf], Isa::RV64GC);
/// let mut pcs = Pcs(Vec::new());
/// let mut replay = Replay::new(&image, &mut pcs);
/// let round = Run { start: 0x1000, end: 0x1004, next: 0x1000, insns: 2, exit: Exit::DirectJump, last: 2 };
/// let _ = replay.event(HartId(0), &Event::Run(round));
/// replay.finish();
/// assert_eq!(pcs.0, [(0x1000, 0x1002), (0x1002, 0x1000)]);
/// ```
pub struct Replay<'a> {
    image: &'a Image,
    harts: PerHart<Hart>,
    assumed: Assumed,
    keep_unplaced: bool,
    out: Out<'a>,
}

/// What the events did not report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Assumed {
    /// Something ran, or trapped, before any event reported the mode: the steps
    /// have machine mode.
    pub modes: bool,
    /// Traps without a cause. Those of ecalls have the cause that goes with the
    /// assumed mode, the others none.
    pub causes: u64,
    /// Those of them that may be exceptions or interrupts.
    pub kinds: u64,
    /// Exceptions without a trap value, where it is not always 0.
    pub values: u64,
    /// Traps whose address is not reported: losses, or steps
    /// without an `epc`.
    pub unplaced: u64,
}

/// Who takes the steps, and what they changed.
struct Out<'a> {
    observer: &'a mut (dyn AnyObserver + 'a),
    effects: Effects,
    /// Instructions of a run have times up to that of the next event.
    spread: bool,
}

#[derive(Debug, Default)]
struct Hart {
    /// What comes next.
    now: Circumstances,
    /// The run that waits, as it was.
    held: Option<(Run, Circumstances)>,
    /// Accesses of the run that waits.
    accesses: Vec<DataAccess>,
    /// An event reported the mode. A source that reports it once reports every change.
    mode_told: bool,
    /// Something has run since anything was missing.
    ran: bool,
    /// Tracing was off, which matters if anything follows.
    untraced: bool,
    halted: bool,
    power_down: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Circumstances {
    mode: Mode,
    context: Context,
    space: SpaceId,
    time: u64,
}

impl<'a> Replay<'a> {
    /// Gives steps to the observer, with the code of the image.
    pub fn new(image: &'a Image, observer: &'a mut (dyn AnyObserver + 'a)) -> Replay<'a> {
        Replay {
            image,
            harts: PerHart::default(),
            assumed: Assumed::default(),
            keep_unplaced: false,
            out: Out {
                observer,
                effects: Effects::default(),
                spread: false,
            },
        }
    }

    /// A trap whose address the trace does not report is a step without an `epc`,
    /// and the jump before it goes to 0. Only these addresses are missing then,
    /// no step is; for observers that do not follow each step to the next.
    #[must_use]
    pub fn keep_unplaced(self) -> Self {
        Replay {
            keep_unplaced: true,
            ..self
        }
    }

    /// Gives the instructions of a run evenly spaced times, from the time of the
    /// run to that of the event after it; otherwise all have that of the run. For
    /// events with estimated times ([`Interpolate`](crate::Interpolate)).
    #[must_use]
    pub fn spread_times(mut self) -> Self {
        self.out.spread = true;
        self
    }

    /// What stands in the steps so far and was not in the events.
    #[must_use]
    pub const fn assumed(&self) -> Assumed {
        self.assumed
    }

    /// No more events: ends the observer.
    pub fn finish(mut self) {
        for (id, hart) in self.harts.iter_mut() {
            hart.flush(self.image, id, None, &mut self.out);
        }
        self.out.observer.finish();
    }

    #[inline]
    fn run(&mut self, id: HartId, run: &Run) {
        let hart = self.harts.of(id);
        hart.flush(self.image, id, Some(run.start), &mut self.out);
        if hart.untraced | hart.halted | hart.power_down {
            hart.wake(id, &mut self.out);
        }
        hart.held = Some((*run, hart.now));
        hart.ran = true;
        self.assumed.modes |= !hart.mode_told;
    }

    fn trap(&mut self, id: HartId, trap: &Trap) {
        let (image, out) = (self.image, &mut self.out);
        let hart = self.harts.of(id);
        let unplaced = trap.epc.is_none();
        let to = match unplaced && self.keep_unplaced {
            true => hart.unknown_target(image),
            false => trap.epc,
        };
        hart.flush(image, id, to, out);
        self.assumed.unplaced += u64::from(unplaced);
        if unplaced && !self.keep_unplaced {
            hart.lose(id, out);
            return;
        }
        hart.wake(id, out);
        let step = hart.trap(image, trap);
        hart.assume(trap, &step, &mut self.assumed);
        out.step(id, &Step::Trap(step));
        hart.ran = true;
    }
}

impl Consumer for Replay<'_> {
    fn event(&mut self, id: HartId, event: &Event) -> ControlFlow<()> {
        let (image, out) = (self.image, &mut self.out);
        let hart = self.harts.of(id);
        match event {
            Event::Run(run) => self.run(id, run),
            Event::Trap(trap) => self.trap(id, trap),
            Event::Context(owner) => hart.own(image, owner),
            Event::Code(space) => hart.now.space = *space,
            Event::Time(time) => hart.now.time = *time,
            Event::Access(access) => {
                if hart.held.is_some() {
                    hart.accesses.push(*access);
                }
            }
            Event::Mark(Mark::Sync(_) | Mark::Vendor(_))
            | Event::DataGap(_)
            | Event::Warning(_)
            | Event::Unconfirmed(_) => {}
            Event::Mark(mark) => {
                hart.flush(image, id, None, out);
                if let Some(signal) = hart.signal(*mark) {
                    hart.bridge(id, out);
                    out.step(id, &Step::Signal(signal));
                }
            }
            Event::Gap(_) => {
                hart.flush(image, id, None, out);
                hart.lose(id, out);
            }
        }
        ControlFlow::Continue(())
    }

    fn runs(&mut self, id: HartId, runs: &[Run]) -> ControlFlow<()> {
        for run in runs {
            self.run(id, run);
        }
        ControlFlow::Continue(())
    }
}

impl Out<'_> {
    #[inline]
    fn step(&mut self, id: HartId, step: &Step) {
        self.observer.step(id, step, &self.effects);
    }
}

impl Hart {
    /// Gives the run that waits. `to` is where the hart was next, if nothing
    /// came between.
    #[inline]
    fn flush(&mut self, image: &Image, id: HartId, to: Option<u64>, out: &mut Out<'_>) {
        let Some((run, at)) = self.held.take() else {
            return;
        };
        let next = match run.exit {
            Exit::Stop => to.unwrap_or(run.next),
            _ => run.next,
        };
        let mut insns = image
            .insns(at.space, run.start, run.insns.into())
            .peekable();
        let mut index = 0;
        let length = match out.spread {
            true => self.now.time.saturating_sub(at.time),
            false => 0,
        };
        while let Some((pc, fetched)) = insns.next() {
            let insn = Insn {
                pc,
                next: insns.peek().map_or(next, |(pc, _)| *pc),
                time: at.time + share(length, index, run.insns),
                context: at.context,
                bits: fetched.bits,
                mode: at.mode,
            };
            if !self.accesses.is_empty() {
                self.effects_of(index, &mut out.effects);
            }
            out.step(id, &Step::Insn(insn));
            index += 1;
        }
        if !self.accesses.is_empty() {
            self.accesses.clear();
            out.effects.clear();
        }
        if index < run.insns {
            // The image is not the one the events were made with.
            out.step(id, &Step::Signal(Signal::Lost));
        }
    }

    /// Stands for where the run that waits went, if it ended with a jump of
    /// which that is not reported.
    fn unknown_target(&self, image: &Image) -> Option<u64> {
        let (run, at) = self.held.as_ref()?;
        let last = image.fetch(at.space, run.source())?;
        let flow = Flow::of_retired(last.bits, last.isa);
        (!flow.is_sequential() && !matches!(flow, Flow::Branch { .. })).then_some(0)
    }

    #[cold]
    fn effects_of(&self, index: u32, effects: &mut Effects) {
        effects.clear();
        let own = self.accesses.iter().filter(|a| a.insn == Some(index));
        for data in own {
            if data.access.kind.is_csr() {
                effects.csr_access = Some(data.access);
            } else if !data.has_address || effects.accesses.push(data.access).is_err() {
                effects.incomplete = true;
            }
        }
    }

    fn own(&mut self, image: &Image, owner: &Ownership) {
        self.mode_told |= owner.mode.is_some();
        self.now.mode = owner.mode.unwrap_or(self.now.mode);
        if let Some(context) = owner.context {
            self.now.context = context;
            self.now.space = image.space_of(context);
        }
    }

    fn trap(&self, image: &Image, trap: &Trap) -> TrapStep {
        let now = &self.now;
        let code = trap.epc.and_then(|epc| image.fetch(now.space, epc));
        let code = code.filter(|_| was_fetched(trap.cause));
        let made_to = code.filter(|f| Flow::of(f.bits, f.isa) == Flow::Trap);
        let told = matches!(trap.cause, Cause::Exception(Some(_)));
        let bits = if told { code } else { made_to };
        let cause = match made_to {
            Some(f) if !told => Cause::of_instruction(f.bits, Some(now.mode)),
            _ => trap.cause,
        };
        TrapStep {
            trap: Trap { cause, ..*trap },
            bits: bits.map(|f| f.bits),
            mode: now.mode,
            context: now.context,
            time: now.time,
        }
    }

    /// Notes what is in a step and not in the event it was made of.
    fn assume(&self, trap: &Trap, step: &TrapStep, assumed: &mut Assumed) {
        assumed.modes |= !self.mode_told;
        let is_ecall = step.bits == Some(ECALL);
        let cause_told = matches!(trap.cause, Cause::Exception(Some(_)));
        let by_mode = is_ecall && !cause_told && !self.mode_told;
        let causeless = matches!(
            step.trap.cause,
            Cause::Unknown | Cause::Exception(None) | Cause::Interrupt(None)
        );
        assumed.causes += u64::from(by_mode || causeless);
        assumed.kinds += u64::from(step.trap.cause == Cause::Unknown);
        // Interrupts have none that is reported; for an ecall it is 0.
        let has_value = !is_ecall && !matches!(step.trap.cause, Cause::Interrupt(_));
        assumed.values += u64::from(has_value && trap.tval.is_none());
    }

    fn signal(&mut self, mark: Mark) -> Option<Signal> {
        Some(match mark {
            Mark::On | Mark::Off => {
                self.untraced |= core::mem::take(&mut self.ran);
                return None;
            }
            Mark::Notify => Signal::Notify,
            Mark::External(input) => Signal::External(input),
            Mark::Halted => {
                self.halted = true;
                Signal::Halted
            }
            Mark::Resumed => {
                self.halted = false;
                Signal::Resumed
            }
            Mark::PowerDown => {
                self.power_down = true;
                Signal::PowerDown
            }
            Mark::PowerUp => {
                self.power_down = false;
                Signal::PowerUp
            }
            Mark::Reset => {
                (self.halted, self.power_down) = (false, false);
                Signal::Reset
            }
            Mark::Sync(_) | Mark::Vendor(_) => return None,
        })
    }

    /// Says that steps are missing.
    fn lose(&mut self, id: HartId, out: &mut Out<'_>) {
        out.step(id, &Step::Signal(Signal::Lost));
        (self.ran, self.untraced) = (false, false);
    }

    /// Says that steps are left out.
    fn bridge(&mut self, id: HartId, out: &mut Out<'_>) {
        if core::mem::take(&mut self.untraced) {
            out.step(id, &Step::Signal(Signal::Untraced));
        }
    }

    /// Something runs: a trace need not say that the hart was woken.
    #[cold]
    fn wake(&mut self, id: HartId, out: &mut Out<'_>) {
        self.bridge(id, out);
        if core::mem::take(&mut self.halted) {
            out.step(id, &Step::Signal(Signal::Resumed));
        }
        if core::mem::take(&mut self.power_down) {
            out.step(id, &Step::Signal(Signal::PowerUp));
        }
    }
}

/// The part of `length` that is over after `done` of `all`.
#[inline]
fn share(length: u64, done: u32, all: u32) -> u64 {
    match length {
        0 => 0,
        _ => {
            let part = u128::from(length) * u128::from(done) / u128::from(all.max(1));
            u64::try_from(part).unwrap_or(length)
        }
    }
}

/// The instruction `ecall`.
const ECALL: u32 = 0x73;

/// Whether a trap of this cause can be the work of the instruction at `epc`.
const fn was_fetched(cause: Cause) -> bool {
    !matches!(
        cause,
        Cause::Interrupt(_) | Cause::Exception(Some(0 | 1 | 12 | 20))
    )
}

#[cfg(test)]
mod tests;
