//! The verifier (3.1, 3.2): checks a trace against a model, group by group.
//!
//! For every group that executes something, the model attempts one instruction;
//! then everything that changed on either side is compared. The shadow holds
//! the state of the trace, and between groups the model holds the same state: a
//! difference is reported, and the model is set to the value of the trace.
//!
//! Nearly all groups agree in the simplest way. `plain` checks that while the
//! model runs on, and `brief` before it without making a `Group` of the bytes;
//! a model that can take back what it did runs ahead of the comparison (`advance`).
//! Everything else goes to `judge`, which does the full comparison.

mod accesses;
mod advance;
mod brief;
mod dispute;
mod host;
mod judge;
mod lockstep;
mod plain;
mod registers;
mod repair;
mod report;
#[cfg(test)]
mod tests;
mod unreported;
mod volatile;

use core::ops::ControlFlow;

use hartrace_flow::{Effects, Mode, Model, Place, RegId, Step};
use hartrace_isa::csr;

pub use lockstep::{Lockstep, Retired};
pub use report::{Counters, Difference, Field, Kind, Mismatch, Past, Reporter};
pub use volatile::{Range, UnknownVolatile, Volatile};

use self::advance::Advance;
use self::dispute::Disputes;
use self::host::Mailbox;
use self::judge::Ask;
use crate::config::Config;
use crate::fault::Fault;
use crate::group::{Group, NewPc, TrapCsr};
use crate::read::{Brief, Next, Reader};
use crate::register::Register;
use crate::shadow::{Shadow, Touched};

/// Groups before a mismatch that are remembered.
pub(crate) const PAST: usize = 16;

/// The options of a verifier, besides the format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// State that comes from the trace.
    pub volatile: Volatile,
    /// The word through which the program calls a host outside of the trace
    /// (HTIF `tohost`), by physical address. What the host answers comes from
    /// the trace.
    pub tohost: Option<u64>,
    /// The word through which the host answers (`fromhost`).
    pub fromhost: Option<u64>,
    /// Differences in instructions before this number are not reported; the model
    /// follows the trace through them.
    pub from: u64,
    /// Stop before the instruction with this number.
    pub until: Option<u64>,
    /// CSRs that the trace does not record ([`Config::absent`]) hold what the model has
    /// computed: instructions that read them are compared, and so is what the trace
    /// reports of them now and then. Otherwise the trace is taken at its word.
    pub own_csrs: bool,
    /// The trace was made of a source that does not record traps. One that is taken right
    /// after a return from a trap cannot be seen there: the return seems to lead to its
    /// handler.
    pub silent_traps: bool,
}

/// Checks a trace against a model.
#[derive(Debug)]
pub struct Verifier<M> {
    model: M,
    core: Core,
}

/// Everything but the model.
#[derive(Debug)]
struct Core {
    config: Config,
    options: Options,
    reader: Reader,
    shadow: Shadow,
    counters: Counters,
    /// Registers that changed on either side.
    touched: Touched,
    /// Volatile CSRs the trace has reported since they were last copied.
    fresh: Touched,
    /// A group is read and not yet dealt with.
    ready: bool,
    /// What reading came to when it was no group.
    next: Option<Next>,
    /// Groups may be compared without becoming a `Group` (`brief`).
    has_brief: bool,
    /// The model may run ahead of the comparison.
    advance: Advance,
    /// A step that is not plain, with its effects below.
    step: Option<Step>,
    effects: Effects,
    mailbox: Mailbox,
    disputes: Disputes,
    /// The interrupt at hand is not enabled in the model.
    disabled: bool,
    /// Some registers are absent from the trace.
    has_absent: bool,
    /// Writes the trace reported although they changed nothing: if there are
    /// some, an unreported one is missing.
    unchanged: u32,
    /// The interrupt taken last.
    last_interrupt: Option<u32>,
    /// Ring of the last groups.
    past: [Past; PAST],
    /// The same in order, for a report.
    ordered: [Past; PAST],
}

/// What a group asks of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// Attempt an instruction, and go on with the next if nothing is odd.
    Run,
    /// Attempt an instruction, with volatile state copied before.
    Attempt,
    /// Take an interrupt.
    Interrupt(u32),
    /// Take an interrupt whose cause is not reported.
    Guess,
    /// Take over what the group says: it cannot be checked.
    Adopt,
    /// State was set from outside.
    Init,
    /// Reset.
    Reset,
    /// Nothing: state changed beside the instructions.
    Update,
}

impl<M: Model> Verifier<M> {
    /// A verifier of a trace that starts in the model's present state.
    #[must_use]
    pub fn new(config: Config, options: Options, model: M) -> Verifier<M> {
        let mut shadow = Shadow::new(&config);
        adopt(&mut shadow, &model);
        Verifier {
            model,
            core: Core {
                mailbox: Mailbox::new(options.tohost, options.fromhost),
                reader: Reader::new(config.clone()),
                has_absent: !config.absent.registers.is_empty(),
                has_brief: config.absent.is_empty(),
                advance: Advance::new(&config, &options),
                config,
                options,
                shadow,
                counters: Counters::default(),
                touched: Touched::default(),
                fresh: Touched::default(),
                ready: false,
                next: None,
                step: None,
                effects: Effects::default(),
                disputes: Disputes::default(),
                disabled: false,
                unchanged: 0,
                last_interrupt: None,
                past: [Past::default(); PAST],
                ordered: [Past::default(); PAST],
            },
        }
    }

    /// What was done so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.core.counters
    }

    /// What the trace says the state is.
    #[must_use]
    pub fn shadow(&self) -> &Shadow {
        &self.core.shadow
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &M {
        &self.model
    }

    /// The byte offset reading has come to.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.core.reader.offset()
    }

    /// Checks what comes next. Breaks when the reporter does, or at the last
    /// instruction that was asked for; what is left of the bytes is not looked
    /// at then.
    pub fn feed(&mut self, bytes: &[u8], reporter: &mut dyn Reporter) -> ControlFlow<()> {
        self.core.feed(&mut self.model, bytes, reporter)
    }

    /// Bytes are missing here, for this reason and value: a frame of a
    /// container was damaged. What comes next starts with a group.
    pub fn missing(
        &mut self,
        fault: Fault,
        value: u64,
        reporter: &mut dyn Reporter,
    ) -> ControlFlow<()> {
        let problem = Next::Problem(self.core.reader.missing(fault, value));
        self.core
            .deal(&mut self.model, problem, &mut &[][..], reporter)
    }

    /// The trace has ended.
    pub fn finish(&mut self, reporter: &mut dyn Reporter) -> ControlFlow<()> {
        self.core.finish(&mut self.model, reporter)
    }
}

impl Core {
    fn feed(
        &mut self,
        model: &mut dyn Model,
        bytes: &[u8],
        reporter: &mut dyn Reporter,
    ) -> ControlFlow<()> {
        let mut bytes = bytes;
        loop {
            let next = match self.next.take() {
                Some(next) => next,
                None if self.ready => Next::Group,
                None => {
                    self.advance(model, &mut bytes);
                    self.reader.next(&mut bytes)
                }
            };
            if next == Next::More {
                return ControlFlow::Continue(());
            }
            self.deal(model, next, &mut bytes, reporter)?;
        }
    }

    fn finish(&mut self, model: &mut dyn Model, reporter: &mut dyn Reporter) -> ControlFlow<()> {
        loop {
            let next = match self.next.take() {
                Some(next) if next != Next::More => next,
                _ if self.ready => Next::Group,
                _ => self.reader.finish(),
            };
            if next == Next::More {
                return ControlFlow::Continue(());
            }
            self.deal(model, next, &mut &[][..], reporter)?;
        }
    }

    fn deal(
        &mut self,
        model: &mut dyn Model,
        next: Next,
        bytes: &mut &[u8],
        reporter: &mut dyn Reporter,
    ) -> ControlFlow<()> {
        match next {
            Next::More => ControlFlow::Continue(()),
            Next::Problem(problem) => {
                reporter.problem(&problem)?;
                // Something may have happened that was not reported.
                self.shadow.forget();
                ControlFlow::Continue(())
            }
            Next::Resumed(skipped) => {
                reporter.resumed(skipped);
                ControlFlow::Continue(())
            }
            Next::Group => self.group(model, bytes, reporter),
        }
    }

    /// Handles the group that was read, and plain ones after it.
    fn group(
        &mut self,
        model: &mut dyn Model,
        bytes: &mut &[u8],
        reporter: &mut dyn Reporter,
    ) -> ControlFlow<()> {
        let core = self;
        // The model has executed the instruction already (`lockstep`).
        if let Some(step) = core.step.take() {
            core.ready = false;
            return core.judge(model, Ask::Step, step, reporter);
        }
        let act = core.act();
        let executes = matches!(act, Act::Run | Act::Attempt);
        let executes = executes || matches!(act, Act::Interrupt(_) | Act::Guess);
        if executes && core.is_over() {
            core.ready = true;
            return ControlFlow::Break(());
        }
        core.ready = false;
        match act {
            Act::Run => {
                let mut ahead = None;
                // The reporter's word does not matter here.
                let _ = model.steps(u64::MAX, &mut |step, effects| {
                    core.watch(&mut ahead, step, effects, bytes)
                });
                match core.step.take() {
                    Some(step) => core.judge(model, Ask::Step, step, reporter),
                    None => ControlFlow::Continue(()),
                }
            }
            Act::Attempt => {
                core.copy_volatile(model);
                let step = core.ask(model, Ask::Step);
                core.judge(model, Ask::Step, step, reporter)
            }
            Act::Interrupt(code) => {
                core.copy_volatile(model);
                let ask = Ask::Interrupt(code);
                let step = core.ask(model, ask);
                core.judge(model, ask, step, reporter)
            }
            Act::Guess => match core.guess(model) {
                Some((ask, step, doubtful)) => {
                    let flow = core.judge(model, ask, step, reporter);
                    if doubtful {
                        core.doubt_cause();
                    }
                    flow
                }
                None => core.unexplained(model, reporter),
            },
            Act::Adopt => core.adopt(model),
            Act::Init => {
                core.counters.inits += 1;
                core.take_over(model);
                ControlFlow::Continue(())
            }
            Act::Reset => {
                core.counters.resets += 1;
                model.reset();
                core.shadow.forget();
                adopt(&mut core.shadow, model);
                core.take_over(model);
                ControlFlow::Continue(())
            }
            Act::Update => core.update(model, reporter),
        }
    }
}

impl Core {
    /// What the group that was read asks for (notes 34 to 36).
    #[inline]
    fn act(&self) -> Act {
        let group = self.reader.group();
        if group.insn.is_some() && !group.outside && !group.reset && self.shadow.pc.is_some() {
            return match self.is_plain(group) {
                true => Act::Run,
                false => Act::Attempt,
            };
        }
        self.rare_act(group)
    }

    #[cold]
    fn rare_act(&self, group: &Group) -> Act {
        if group.reset {
            return Act::Reset;
        }
        if group.init {
            return Act::Init;
        }
        if group.outside {
            return Act::Update;
        }
        let absent = &self.config.absent;
        let jumps = matches!(group.pc, Some(NewPc::To(_) | NewPc::FromTo(..)));
        let cause = group.told(TrapCsr::Cause);
        let trap = cause.is_some() || group.told(TrapCsr::Epc).is_some();
        let unreported = |csr| {
            let csr = Register::csr(csr);
            absent.registers.contains(csr) || absent.in_traps.contains(csr)
        };
        let silent = unreported(csr::MCAUSE) || unreported(csr::SCAUSE);
        let traps = trap || silent || group.mode.is_some();
        let insn = group.insn.is_some() || absent.insn && jumps;
        if !insn && !(traps && (jumps || absent.pc)) {
            return Act::Update;
        }
        if self.shadow.pc.is_none() {
            return Act::Adopt;
        }
        if self.shadow.attempts(group, absent) {
            return Act::Attempt;
        }
        match cause.and_then(|change| self.shadow.after(change)) {
            Some(cause) => Act::Interrupt(cause as u32 & 0x7fff_ffff),
            None if silent => Act::Guess,
            // It should say why.
            None => Act::Update,
        }
    }

    /// Whether a group with an instruction can be looked at while the model
    /// runs.
    #[inline]
    fn is_plain(&self, group: &Group) -> bool {
        let system = group.insn.is_some_and(|insn| insn.bits & 0x7f == 0x73);
        !(system && !self.fresh.is_empty() || group.init || self.is_over())
    }

    /// Whether the last instruction that was asked for is done.
    #[inline]
    fn is_over(&self) -> bool {
        let until = self.options.until;
        until.is_some_and(|until| self.counters.instructions() >= until)
    }

    /// Sees a step of the model, against the group at hand; breaks when the
    /// model must not go on by itself. `ahead` is the next group, if it is not read yet: what
    /// the model has done has to agree with it. It is not moved, since it was just put
    /// together.
    #[inline]
    fn watch(
        &mut self,
        ahead: &mut Option<Brief>,
        step: &Step,
        effects: &Effects,
        bytes: &mut &[u8],
    ) -> ControlFlow<()> {
        let briefly = match ahead {
            Some(told) => {
                let agrees = self.agrees_briefly(told, step, effects, bytes);
                if !agrees {
                    // The same as a group.
                    self.reader.next(bytes);
                }
                agrees
            }
            None => false,
        };
        if !briefly && !self.agrees(step, effects) {
            self.step = Some(*step);
            self.effects.clone_from(effects);
            return ControlFlow::Break(());
        }
        if self.advance.is_due() {
            return ControlFlow::Break(());
        }
        self.advance.singly = self.advance.singly.saturating_sub(1);
        *ahead = self.look_ahead(bytes);
        if ahead.is_some() {
            return ControlFlow::Continue(());
        }
        let next = self.reader.next(bytes);
        if next != Next::Group {
            self.next = Some(next);
            return ControlFlow::Break(());
        }
        if self.act() == Act::Run {
            return ControlFlow::Continue(());
        }
        self.ready = true;
        ControlFlow::Break(())
    }

    /// Copies volatile CSRs the trace has reported (3.1, step 2).
    fn copy_volatile(&mut self, model: &mut dyn Model) {
        for register in self.fresh.iter() {
            let (Some(csr), Some(told)) = (register.as_csr(), self.shadow.get(register)) else {
                continue;
            };
            let bits = self.options.volatile.bits(register);
            let own = model.read(Place::Csr(csr)).unwrap_or(0);
            // A model without it cannot be set.
            let _ = model.write(Place::Csr(csr), own & !bits | told & bits);
        }
        self.fresh.clear();
    }

    /// Whether the model would take an interrupt if it were pending: enabled
    /// by itself, and globally in the mode it goes to.
    fn is_enabled(&self, model: &dyn Model, code: u32) -> bool {
        let csr = |number| model.read(Place::Csr(number)).ok();
        let (Some(mstatus), Some(mie)) = (csr(csr::MSTATUS), csr(csr::MIE)) else {
            return true;
        };
        let mode = model.read(Place::Mode).unwrap_or(3);
        let own = mie.checked_shr(code).is_some_and(|bits| bits & 1 != 0);
        if code >= 16 && !own {
            // Not one of those that the architecture defines, and the model may not have it.
            return true;
        }
        let delegated = mode < 3 && csr(csr::MIDELEG).unwrap_or(0) >> code & 1 != 0;
        let (level, enable) = if delegated {
            (1, mstatus >> 1)
        } else {
            (3, mstatus >> 3)
        };
        own && (mode < level || mode == level && enable & 1 != 0)
    }
}

/// Fills the shadow with the model's state.
fn adopt(shadow: &mut Shadow, model: &dyn Model) {
    for number in 0..32 {
        for reg in [RegId::X(number), RegId::F(number)] {
            if let Ok(value) = model.read(Place::Reg(reg)) {
                shadow.set(reg.into(), value, &mut |_| {});
            }
        }
    }
    model.csrs(&mut |csr, value| shadow.fill_csr(csr, value));
    shadow.pc = model.read(Place::Pc).ok();
    let mode = model.read(Place::Mode).ok();
    shadow.mode = mode.and_then(|code| Mode::from_code(code as u8));
    model.memory(&mut |addr, bytes| shadow.memory.load(addr, bytes));
}
