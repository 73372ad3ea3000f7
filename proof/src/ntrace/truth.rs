//! What a decoder must say, instruction by instruction.
//!
//! [`Check`](hartrace_flow::Check) compares flow alone and takes all steps as
//! traced. This one also knows which steps an encoder leaves out (triggers,
//! halts, losses) and compares what a trace tells beside the flow: contexts,
//! times and marks.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use hartrace_flow::{
    Cause, Consumer, Context, Effects, Event, Exit, Gap, HartId, Insn, Mark, Mode, Observer,
    Ownership, Retirement, Run, Signal, Step, Trap, TrapStep, Wants,
};
use hartrace_isa::Xlen;
use hartrace_ntrace::{Config, ImplicitReturn, RepeatedHistory, TrapTypes, TriggerAction};

use super::Setting;

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
    }
}

/// The trace starts with this item.
const START: u8 = 1;
/// A marker belongs to it.
const NOTIFY: u8 = 2;
const EXTERNAL: u8 = 4;
/// The hart was reset before it.
const RESET: u8 = 8;
/// The trace stops behind it and nobody may know where the hart went.
const LAST: u8 = 16;
/// The trace stops behind it. Whether a return was implied is not told then.
const OPEN: u8 = 32;

/// A traced step.
#[derive(Clone, Copy, Debug)]
struct Item {
    pc: u64,
    /// Where the hart went; of a trap, the handler.
    next: u64,
    time: u64,
    /// Halfwords and traps before it, traced or not.
    position: u64,
    context: Context,
    mode: Mode,
    flags: u8,
    /// Length of the instruction; `None` for a trap.
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Insn(u8),
    Trap(Cause),
}

/// One hart's side of the truth.
#[derive(Debug, Default)]
struct Hart {
    items: VecDeque<Item>,
    position: u64,
    // The encoder's view of the steps.
    halted: bool,
    power_down: bool,
    enabled: bool,
    begun: bool,
    running: bool,
    flags: u8,
    on: bool,
    off: bool,
    /// The last step was traced.
    traced: bool,
    time: u64,
    // The decoder's side.
    given: u64,
    /// Ownership told, from the one in force to the last.
    told: VecDeque<Ownership>,
    marks: Vec<Mark>,
    /// A loss before the next item.
    gap: bool,
    /// The trace ended in a loss.
    ended: bool,
    restarts: VecDeque<u64>,
    last_time: u64,
    /// Time of the item given last.
    before: u64,
    after_context: bool,
}

/// Compares steps with events as both arrive.
#[derive(Debug)]
pub struct Truth {
    config: Config,
    /// Times are those of the first instruction of a block.
    blocks: bool,
    loses: bool,
    harts: Vec<Hart>,
    told: Told,
    difference: Option<String>,
}

impl Truth {
    /// For a trace with this setting.
    #[must_use]
    pub fn new(setting: &Setting) -> Truth {
        Truth {
            config: setting.config.clone(),
            blocks: setting.port.retirement != Retirement::Single,
            loses: setting.has_loss(),
            harts: Vec::new(),
            told: Told::default(),
            difference: None,
        }
    }

    #[allow(clippy::indexing_slicing)] // made long enough just before
    fn hart(&mut self, id: HartId) -> &mut Hart {
        let index = id.0 as usize;
        if self.harts.len() <= index {
            let enabled = !self.config.starts_disabled;
            self.harts.resize_with(index + 1, || Hart {
                enabled,
                ..Hart::default()
            });
        }
        &mut self.harts[index]
    }

    /// After a loss this hart's trace starts again with the item in front of
    /// which so many halfwords and traps went.
    pub fn restarts(&mut self, id: HartId, position: u64) {
        self.hart(id).restarts.push_back(position);
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
            // A trap that nobody saw the handler of is not told.
            while let Some(item) = hart.items.front() {
                let untold = matches!(item.what, What::Trap(_)) && item.flags & LAST != 0;
                if !untold && !hart.ended {
                    return Err(format!(
                        "hart {id} after {}: expected {item:x?}, decoded nothing more",
                        hart.given
                    ));
                }
                self.told.lost += u64::from(!untold);
                hart.items.pop_front();
            }
        }
        Ok(self.told)
    }

    fn compare(
        &mut self,
        id: HartId,
        with: impl FnOnce(&mut Hart, &Rules) -> Result<Told, String>,
    ) -> ControlFlow<()> {
        if self.difference.is_some() {
            return ControlFlow::Break(());
        }
        let rules = Rules {
            context: self.config.context,
            hcontext: self.config.hcontext,
            trap_types: self.config.trap_types,
            loses: self.loses,
            late: self.config.repeated_history != RepeatedHistory::Off,
            blocks: self.blocks,
            stalls: self.config.queue.is_some_and(|q| q.stall),
            prescale: self.config.timestamps.map_or(0, |t| 2 * t.prescale),
            width: self.config.timestamps.map_or(64, |t| t.width),
            xlen: self.config.xlen,
        };
        let hart = self.hart(id);
        match with(hart, &rules) {
            Ok(told) => {
                hart.given += told.insns;
                self.told.add(told);
                ControlFlow::Continue(())
            }
            Err(what) => {
                let after = hart.given;
                self.difference = Some(format!("hart {} after {after}: {what}", id.0));
                ControlFlow::Break(())
            }
        }
    }
}

/// What is compared and how.
struct Rules {
    context: bool,
    hcontext: bool,
    trap_types: TrapTypes,
    loses: bool,
    /// History is told later than it happens.
    late: bool,
    blocks: bool,
    stalls: bool,
    prescale: u8,
    width: u8,
    xlen: Xlen,
}

impl Hart {
    /// The trace stops here, or the hart does: nobody sees the next address.
    fn stop(&mut self) {
        if self.traced
            && let Some(item) = self.items.back_mut()
        {
            item.flags |= LAST;
            // A trap that is not told leaves the return before it at the end.
            let trap = matches!(item.what, What::Trap(_));
            let before = self.items.len().wrapping_sub(2);
            if trap && let Some(item) = self.items.get_mut(before) {
                item.flags |= OPEN;
            }
        }
        self.traced = false;
    }

    fn signal(&mut self, signal: Signal, config: &Config) {
        match signal {
            Signal::TraceOn => self.on |= config.triggers,
            Signal::TraceOff => self.off |= config.triggers,
            Signal::Notify => self.flags |= if config.triggers { NOTIFY } else { 0 },
            Signal::External(n) => match config.external.get(usize::from(n)) {
                Some(TriggerAction::On) => self.on = true,
                Some(TriggerAction::Off) => self.off = true,
                Some(TriggerAction::Notify) => self.flags |= EXTERNAL,
                Some(TriggerAction::None) | None => {}
            },
            Signal::Update => {}
            Signal::Resumed => self.halted = false,
            Signal::PowerUp => self.power_down = false,
            Signal::Halted
            | Signal::PowerDown
            | Signal::Reset
            | Signal::Lost
            | Signal::Untraced => {
                self.stop();
                match signal {
                    Signal::Halted => self.halted = true,
                    Signal::PowerDown => self.power_down = true,
                    Signal::Reset => {
                        (self.halted, self.power_down) = (false, false);
                        self.flags |= RESET;
                    }
                    _ => {}
                }
                self.running &= signal == Signal::Reset;
            }
        }
    }

    /// Keeps a step if it is traced.
    fn keep(&mut self, mut item: Item, length: u64, implied: bool) {
        item.position = self.position;
        self.position += length;
        self.time = item.time;
        let flags = std::mem::take(&mut self.flags);
        let (on, off) = (std::mem::take(&mut self.on), std::mem::take(&mut self.off));
        self.enabled |= on;
        self.traced = self.enabled && !self.halted && !self.power_down;
        if self.traced {
            item.flags = flags;
            if !self.running {
                item.flags |= START;
                self.running = true;
                self.begun = true;
            }
            self.items.push_back(item);
        } else {
            if implied
                && self.running
                && let Some(last) = self.items.back_mut()
            {
                last.flags |= OPEN;
            }
            self.running = false;
            // A reset of a stopped hart changes the reason of the next start.
            self.flags = flags & RESET;
        }
        self.enabled &= !off;
    }

    fn insn(&mut self, insn: &Insn, implied: bool) {
        let item = Item {
            pc: insn.pc,
            next: insn.next,
            time: insn.time,
            position: 0,
            context: insn.context,
            mode: insn.mode,
            flags: 0,
            what: What::Insn(insn.len()),
        };
        self.keep(item, u64::from(insn.len()) / 2, implied);
    }

    fn trap(&mut self, t: &TrapStep, retired: u64, implied: bool) {
        let item = Item {
            pc: t.trap.epc.unwrap_or(0),
            next: t.trap.handler.unwrap_or(0),
            time: t.time,
            position: 0,
            context: t.context,
            mode: t.mode,
            flags: 0,
            what: What::Trap(t.trap.cause),
        };
        self.keep(item, 1 + retired, implied);
    }

    /// The next item that is told: an event begins with it.
    fn begin(&mut self, rules: &Rules) -> Result<(), String> {
        let gap = std::mem::take(&mut self.gap);
        while let Some(item) = self.items.front() {
            let untold = matches!(item.what, What::Trap(_)) && item.flags & LAST != 0;
            let stopped = self.marks.iter().any(|m| is_stop(*m) || *m == Mark::Reset);
            if !(untold && (stopped || gap)) {
                break;
            }
            // Its block was seen all the same: it may have begun a stretch.
            let flags = item.flags & !(LAST | OPEN);
            self.items.pop_front();
            if let Some(next) = self.items.front_mut() {
                next.flags |= flags;
            }
        }
        let Some(item) = self.items.front() else {
            return Ok(());
        };
        let has = |mark: fn(&Mark) -> bool| self.marks.iter().any(mark);
        let starts = has(|m| is_start(*m));
        let flags = item.flags;
        let strong = flags & (START | RESET) != 0 || gap;
        let notify = has(|m| *m == Mark::Notify);
        let external = has(|m| matches!(m, Mark::External(_)));
        let blame = |what: &str| Err(format!("{what}: {:x?} before {item:x?}", self.marks));
        if flags & START != 0 && !(starts || gap) {
            return blame("a start without its mark");
        }
        if flags & RESET != 0 && !(starts || gap) {
            return blame("a reset without its mark");
        }
        if flags & (START | RESET) == 0 && starts {
            return blame("a start that was none");
        }
        if flags & NOTIFY != 0 && !notify && !strong {
            return blame("a trigger without its mark");
        }
        if flags & EXTERNAL != 0 && !external && !strong && flags & NOTIFY == 0 {
            return blame("an external trigger without its mark");
        }
        if (notify && flags & NOTIFY == 0) || (external && flags & EXTERNAL == 0) {
            return blame("a marker where there was none");
        }
        let stops = has(|m| is_stop(*m));
        if stops && flags & START == 0 && !gap && !rules.loses {
            return blame("a stop that was none");
        }
        self.marks.clear();
        Ok(())
    }

    fn owner(&mut self, item: &Item, rules: &Rules) -> Result<(), String> {
        if !rules.context {
            return Ok(());
        }
        let mode = match item.mode {
            Mode::D => Mode::M,
            mode => mode,
        };
        let same = |o: &Ownership| {
            let context = o.context.unwrap_or_default();
            o.mode == Some(mode)
                && context.scontext() == item.context.scontext()
                && (!rules.hcontext || context.hcontext() == item.context.hcontext())
        };
        // A change inside a stretch is told before all of it.
        match self.told.iter().position(same) {
            Some(later) => {
                self.told.drain(..later);
                Ok(())
            }
            None => Err(format!("{item:x?}, told {:x?}", self.told)),
        }
    }

    fn run(&mut self, run: &Run, rules: &Rules) -> Result<Told, String> {
        self.begin(rules)?;
        self.after_context = false;
        let mut at = run.start;
        for nth in 0..run.insns {
            let Some(item) = self.items.pop_front() else {
                return Err(format!(
                    "expected nothing more, decoded {run:x?} at {at:#x}"
                ));
            };
            let What::Insn(len) = item.what else {
                return Err(format!("expected {item:x?}, decoded {run:x?} at {at:#x}"));
            };
            if item.pc != at {
                return Err(format!("expected {item:x?}, decoded {run:x?} at {at:#x}"));
            }
            if nth > 0 && item.flags & !(LAST | OPEN) != 0 {
                return Err(format!("{item:x?} in the middle of {run:x?}"));
            }
            self.owner(&item, rules)?;
            self.before = item.time;
            at = at.wrapping_add(u64::from(len));
            if nth + 1 < run.insns {
                if item.next != at {
                    return Err(format!("{item:x?} in the middle of {run:x?}"));
                }
                continue;
            }
            // Where the trace stops nobody need know the target.
            let open = item.flags & (LAST | OPEN) != 0
                && run.exit == Exit::Stop
                && run.next == rules.xlen.wrap(run.end);
            if at != run.end || len != run.last || (item.next != run.next && !open) {
                return Err(format!("expected {item:x?} as the end of {run:x?}"));
            }
        }
        Ok(Told {
            insns: u64::from(run.insns),
            ..Told::default()
        })
    }

    fn trapped(&mut self, trap: &Trap, rules: &Rules) -> Result<Told, String> {
        self.begin(rules)?;
        self.after_context = false;
        let item = self.items.pop_front();
        let same = item.is_some_and(|item| {
            let What::Trap(cause) = item.what else {
                return false;
            };
            let kind = match (rules.trap_types, cause) {
                (TrapTypes::Two, Cause::Interrupt(_)) => Cause::Interrupt(None),
                (TrapTypes::Two, _) => Cause::Exception(None),
                _ => Cause::Unknown,
            };
            Some(item.pc) == trap.epc && Some(item.next) == trap.handler && kind == trap.cause
        });
        match item {
            Some(item) if same => {
                self.owner(&item, rules)?;
                self.before = item.time;
                Ok(Told {
                    traps: 1,
                    ..Told::default()
                })
            }
            _ => Err(format!("expected {item:x?}, decoded {trap:x?}")),
        }
    }

    fn time(&mut self, time: u64, rules: &Rules) -> Result<Told, String> {
        let context = std::mem::take(&mut self.after_context);
        if time < self.last_time {
            return Err(format!("time {time} after {}", self.last_time));
        }
        self.last_time = time;
        let told = Told {
            times: 1,
            ..Told::default()
        };
        if rules.stalls || self.gap {
            return Ok(told);
        }
        let tick = |t: u64| t >> rules.prescale;
        // Steps that are not traced pass time too, and after a loss nothing is
        // known of those before.
        let early = if rules.blocks || rules.loses {
            0
        } else {
            tick(self.before)
        };
        let late = match self.items.front() {
            Some(item)
                if !(context || rules.late || rules.loses || rules.blocks)
                    && self.marks.is_empty() =>
            {
                item.time
            }
            _ => self.time,
        };
        let mask = u64::MAX >> (64 - u32::from(rules.width.clamp(1, 64)));
        let (since, most) = (
            time.wrapping_sub(early) & mask,
            tick(late).wrapping_sub(early),
        );
        if since > most && early <= tick(late) {
            return Err(format!(
                "time {time}, between {early} and {} in {} bits",
                tick(late),
                rules.width
            ));
        }
        Ok(told)
    }

    fn gap(&mut self, gap: &Gap, rules: &Rules) -> Result<Told, String> {
        if !rules.loses || gap.reason.code != "NT0401" {
            let item = self.items.front();
            return Err(format!("expected {item:x?}, decoded a gap: {gap:x?}"));
        }
        self.gap = true;
        self.told.clear();
        self.marks.clear();
        let mut told = Told {
            gaps: 1,
            ..Told::default()
        };
        let Some(position) = self.restarts.pop_front() else {
            self.ended = true;
            return Ok(told);
        };
        while self.items.front().is_some_and(|i| i.position < position) {
            self.items.pop_front();
            told.lost += 1;
        }
        Ok(told)
    }
}

const fn is_start(mark: Mark) -> bool {
    matches!(
        mark,
        Mark::On | Mark::Resumed | Mark::Reset | Mark::PowerUp | Mark::Sync(_)
    )
}

const fn is_stop(mark: Mark) -> bool {
    matches!(mark, Mark::Off | Mark::Halted | Mark::PowerDown)
}

impl Observer for Truth {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, id: HartId, step: &Step, _: &Effects) {
        if self.difference.is_some() {
            return;
        }
        self.hart(id);
        let Truth { config, harts, .. } = self;
        let Some(hart) = harts.get_mut(id.0 as usize) else {
            return;
        };
        let implied = config.implicit_return != ImplicitReturn::Off;
        match step {
            Step::Insn(insn) => hart.insn(insn, implied),
            Step::Trap(t) => {
                let retired = match config.retires {
                    hartrace_flow::Retires::Neither => None,
                    hartrace_flow::Retires::Ecall => t.bits.filter(|&b| b == 0x73),
                    hartrace_flow::Retires::EcallAndEbreak => {
                        t.bits.filter(|b| matches!(b, 0x73 | 0x10_0073 | 0x9002))
                    }
                };
                let len = retired.map_or(0, |b| u64::from(hartrace_isa::length(b as u16)));
                hart.trap(t, len / 2, implied);
            }
            Step::Signal(signal) => hart.signal(*signal, config),
        }
    }
}

impl Consumer for Truth {
    fn event(&mut self, id: HartId, event: &Event) -> ControlFlow<()> {
        match event {
            Event::Run(run) => self.compare(id, |h, rules| h.run(run, rules)),
            Event::Trap(trap) => self.compare(id, |h, rules| h.trapped(trap, rules)),
            Event::Time(time) => self.compare(id, |h, rules| h.time(*time, rules)),
            Event::Gap(gap) => self.compare(id, |h, rules| h.gap(gap, rules)),
            Event::Context(owner) => self.compare(id, |h, rules| {
                if !rules.context {
                    return Err(format!("{owner:x?} that nobody asked for"));
                }
                if h.told.back() != Some(owner) {
                    h.told.push_back(*owner);
                }
                h.after_context = true;
                Ok(Told {
                    contexts: 1,
                    ..Told::default()
                })
            }),
            Event::Mark(mark) => self.compare(id, |h, _| {
                if is_start(*mark) {
                    h.told.clear();
                }
                h.marks.push(*mark);
                h.after_context = false;
                Ok(Told {
                    marks: 1,
                    ..Told::default()
                })
            }),
            Event::Access(access) => {
                self.compare(id, |_, _| Err(format!("{access:x?} out of nowhere")))
            }
        }
    }
}
