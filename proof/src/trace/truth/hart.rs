//! One hart's side of the truth.

use std::collections::VecDeque;

use hartrace_flow::{
    Cause, Exit, Gap, Insn, Mark, Ownership, Retires, Run, Signal, Trap, TrapStep,
};
use hartrace_isa::{Flow, Reg};

use super::flag::{EXTERNAL, LAST, NOTIFY, OPEN, RESET, START};
use super::{Behind, Item, Judge, Meeting, Pulse, Rules, Told, What};

/// What the decoder has said beside the flow.
#[derive(Debug, Default)]
pub struct Heard {
    /// Ownership told, from the one in force to the last.
    pub told: VecDeque<Ownership>,
    /// Marks since the last item.
    pub marks: Vec<Mark>,
    /// A loss before the next item.
    pub gap: bool,
    /// The last time.
    pub last_time: u64,
    /// Time of the item given last.
    pub before: u64,
    /// Ownership was reported since the last item.
    pub after_context: bool,
    /// The item given last.
    pub last: Option<Item>,
}

impl Heard {
    /// Whether some mark is like this.
    pub fn has(&self, mark: fn(Mark) -> bool) -> bool {
        self.marks.iter().any(|m| mark(*m))
    }

    pub(super) fn check_time(&mut self, time: u64) -> Result<(), String> {
        if time < self.last_time {
            return Err(format!("time {time} after {}", self.last_time));
        }
        self.last_time = time;
        Ok(())
    }

    pub(super) fn owner(&mut self, owner: Ownership) {
        if self.told.back() != Some(&owner) {
            self.told.push_back(owner);
        }
        self.after_context = true;
    }

    pub(super) fn mark(&mut self, mark: Mark) {
        self.marks.push(mark);
        self.after_context = false;
    }

    fn pass(&mut self, item: Item) {
        self.before = item.time;
        self.last = Some(item);
    }
}

/// Whether a mark says that a trace starts.
pub const fn is_start(mark: Mark) -> bool {
    match mark {
        Mark::On | Mark::Resumed | Mark::Reset | Mark::PowerUp => true,
        // N-Trace: a counter is full, or messages were lost, which is a gap.
        Mark::Sync(code) => !matches!(code, 4 | 7),
        _ => false,
    }
}

/// Whether a mark says that a trace stops.
pub const fn is_stop(mark: Mark) -> bool {
    matches!(mark, Mark::Off | Mark::Halted | Mark::PowerDown)
}

/// One hart: what it did and what was reported of it.
#[derive(Debug, Default)]
pub struct Hart {
    /// What it did and the decoder has not given.
    pub items: VecDeque<Item>,
    position: u64,
    // The encoder's view of the steps.
    halted: bool,
    power_down: bool,
    enabled: bool,
    running: bool,
    flags: u8,
    on: bool,
    off: bool,
    /// The last step was traced.
    traced: bool,
    /// Time of the last step.
    pub time: u64,
    // The decoder's side.
    /// Instructions given.
    pub given: u64,
    /// What the decoder has said beside the flow.
    pub heard: Heard,
    /// The trace ended in a loss.
    ended: bool,
    restarts: VecDeque<u64>,
    /// What the next item comes after, should it be a trap.
    behind: Option<Behind>,
    /// Where the first trap was that is not reported.
    skipped: Option<u64>,
    /// Where the last instruction went was not reported, as before a loss.
    cut: bool,
}

impl Hart {
    pub(super) fn new(enabled: bool) -> Hart {
        Hart {
            enabled,
            ..Hart::default()
        }
    }

    pub(super) fn restarts(&mut self, position: u64) {
        self.restarts.push_back(position);
    }

    /// The trace stops here, or the hart does: nobody sees the next address.
    pub(super) fn stop(&mut self) {
        if self.traced
            && let Some(item) = self.items.back_mut()
        {
            item.flags |= LAST;
            // A trap that is not reported leaves the return before it at the end.
            let trap = item.is_trap();
            let before = self.items.len().wrapping_sub(2);
            if trap && let Some(item) = self.items.get_mut(before) {
                item.flags |= OPEN;
            }
        }
        self.traced = false;
    }

    pub(super) fn signal(&mut self, signal: Signal, rules: &Rules) {
        match signal {
            Signal::TraceOn => self.on |= rules.triggers,
            Signal::TraceOff => self.off |= rules.triggers,
            Signal::Notify => self.flags |= if rules.triggers { NOTIFY } else { 0 },
            Signal::External(n) => match rules.external.get(usize::from(n)) {
                Some(Pulse::On) => self.on = true,
                Some(Pulse::Off) => self.off = true,
                Some(Pulse::Notify) => self.flags |= EXTERNAL,
                Some(Pulse::Nothing) | None => {}
            },
            Signal::Update => {}
            Signal::Resumed => self.halted = false,
            Signal::PowerUp => self.power_down = false,
            Signal::PowerDown if !rules.power => {}
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
                self.running &= signal == Signal::Reset && !rules.reset_stops;
            }
        }
    }

    /// Keeps a step if it is traced.
    fn keep(&mut self, mut item: Item, length: u64, rules: &Rules) {
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
            }
            self.items.push_back(item);
        } else {
            if rules.open
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

    pub(super) fn insn(&mut self, insn: &Insn, rules: &Rules) {
        let item = Item {
            pc: insn.pc,
            next: insn.next,
            time: insn.time,
            position: 0,
            context: insn.context,
            mode: insn.mode,
            flags: 0,
            what: What::Insn {
                len: insn.len(),
                bits: insn.bits,
            },
        };
        self.keep(item, u64::from(insn.len()) / 2, rules);
    }

    pub(super) fn trap(&mut self, t: &TrapStep, rules: &Rules) {
        let retired = match rules.retires {
            Retires::Neither => None,
            Retires::Ecall => t.bits.filter(|&b| b == 0x73),
            Retires::EcallAndEbreak => t.bits.filter(|b| matches!(b, 0x73 | 0x10_0073 | 0x9002)),
        };
        // By its own trap, not by another one at the same place.
        let retired = retired.filter(|&bits| match t.trap.cause {
            Cause::Exception(Some(code)) if bits == 0x73 => (8..=11).contains(&code),
            Cause::Exception(Some(code)) => code == 3,
            Cause::Exception(None) | Cause::Unknown => true,
            Cause::Interrupt(_) => false,
        });
        let len = retired.map_or(0, |b| u64::from(hartrace_isa::length(b as u16)));
        let item = Item {
            pc: t.trap.epc.unwrap_or(0),
            next: t.trap.handler.unwrap_or(0),
            time: t.time,
            position: 0,
            context: t.context,
            mode: t.mode,
            flags: 0,
            what: What::Trap(t.trap.cause, t.trap.tval),
        };
        self.keep(item, 1 + len / 2, rules);
    }

    /// The next item, with which an event begins: `fits` says whether it is
    /// the one. What the format does not report is passed over.
    fn meet<J: Judge>(
        &mut self,
        rules: &Rules,
        judge: &J,
        event: &dyn std::fmt::Debug,
        fits: impl Fn(&Meeting<'_>) -> bool,
    ) -> Result<Item, String> {
        if std::mem::take(&mut self.cut) && !self.heard.gap {
            return Err(format!("no target of {:x?}", self.heard.last));
        }
        loop {
            self.skip_lost_traps(rules);
            let Some(&item) = self.items.front() else {
                return Err(format!("expected nothing more, decoded {event:x?}"));
            };
            let meeting = Meeting {
                item: &item,
                next: self.items.get(1),
                behind: self.behind.unwrap_or(Behind::Unknown),
                skipped: self.skipped,
            };
            let verdict = match fits(&meeting) {
                true => judge
                    .begins(&self.heard, &item)
                    .and_then(|()| judge.owner(&mut self.heard, &item)),
                false => Err(format!("expected {item:x?}, decoded {event:x?}")),
            };
            match verdict {
                Ok(()) => {
                    self.items.pop_front();
                    self.skipped = None;
                    self.heard.gap = false;
                    self.heard.marks.clear();
                    self.heard.after_context = false;
                    return Ok(item);
                }
                Err(what) if !(self.skip_last_trap(rules) || self.skip_round(rules)) => {
                    return Err(what);
                }
                Err(_) => {}
            }
        }
    }

    /// Takes a trap that is not reported off the front.
    fn skip_trap(&mut self) {
        let Some(item) = self.items.pop_front() else {
            return;
        };
        self.skipped.get_or_insert(item.pc);
        // Its block was seen all the same: it may have begun a stretch.
        if let Some(next) = self.items.front_mut() {
            next.flags |= item.flags & !(LAST | OPEN);
        }
    }

    /// Traps with another one after them, or none at all, where only one can
    /// be told.
    fn skip_lost_traps(&mut self, rules: &Rules) {
        while rules.one_trap
            && let Some(item) = self.items.front()
            && item.is_trap()
            && (item.has(LAST | OPEN) || self.items.get(1).is_some_and(Item::is_trap))
        {
            self.skip_trap();
        }
    }

    /// A trap where the trace stops, if that is what comes next.
    fn skip_last_trap(&mut self, rules: &Rules) -> bool {
        let stopped = |m: Mark| is_stop(m) || m == Mark::Reset;
        let stops = self.heard.has(stopped) || self.heard.gap;
        let unreported = self
            .items
            .front()
            .is_some_and(|i| i.is_trap() && i.has(LAST));
        let trap = self.items.front().is_some_and(Item::is_trap);
        // Right before a new start it is reported or not.
        let unsure = rules.one_trap && self.heard.gap && trap;
        let skips = (rules.last_trap_untold && unreported && stops) || unsure;
        if skips {
            self.skip_trap();
        }
        skips
    }

    /// Length of the loop without a decision that the next items go round, if
    /// they do.
    fn round(&self, rules: &Rules) -> Option<usize> {
        let inferred = rules.rounds?;
        let start = self.items.front()?.pc;
        for (n, item) in self.items.iter().enumerate() {
            let What::Insn { bits, .. } = item.what else {
                return None;
            };
            let decides = match Flow::of_retired(bits, rules.isa) {
                Flow::Branch { .. } | Flow::PopReturn | Flow::TrapReturn | Flow::Trap => true,
                Flow::Indirect { rs1, .. } => !inferred && rs1 != Reg::new(0),
                _ => false,
            };
            if decides || item.has(START | RESET) {
                return None;
            }
            if item.next == start {
                return Some(n + 1);
            }
            if item.has(LAST) {
                return None;
            }
        }
        None
    }

    /// Passes over one round of such a loop. One round at least is given: the
    /// one before or the one after.
    fn skip_round(&mut self, rules: &Rules) -> bool {
        let Some(round) = self.round(rules) else {
            return false;
        };
        let last = round.checked_sub(1).and_then(|n| self.items.get(n));
        let before = last.zip(self.heard.last.as_ref());
        let before = before.is_some_and(|(a, b)| a.pc == b.pc && a.what == b.what);
        let behind = self.items.get(round);
        let behind = behind.is_some_and(|item| !item.is_trap() && !item.has(START | RESET));
        if !(before || behind) {
            return false;
        }
        self.heard.last = self.items.drain(..round).next_back();
        true
    }

    pub(super) fn run<J: Judge>(
        &mut self,
        run: &Run,
        rules: &Rules,
        judge: &J,
    ) -> Result<Told, String> {
        let fits = |item: &Item, at: u64| !item.is_trap() && item.pc == at;
        let mut at = run.start;
        for nth in 0..run.insns {
            let item = match nth {
                0 => self.meet(rules, judge, run, |m| fits(m.item, at))?,
                _ => {
                    let item = self.items.pop_front().filter(|item| fits(item, at));
                    let item = item.filter(|item| judge.may_be_inside(item.flags));
                    let item =
                        item.ok_or_else(|| format!("something else at {at:#x} of {run:x?}"))?;
                    judge.owner(&mut self.heard, &item)?;
                    item
                }
            };
            let len = item.length();
            at = at.wrapping_add(u64::from(len));
            self.heard.pass(item);
            self.behind = Some(Behind::Insn);
            if nth + 1 < run.insns {
                if item.next != at {
                    return Err(format!("{item:x?} in the middle of {run:x?}"));
                }
            } else if at != run.end || len != run.last || !self.goes(&item, run, rules) {
                return Err(format!("expected {item:x?} as the end of {run:x?}"));
            }
        }
        Ok(Told {
            insns: u64::from(run.insns),
            ..Told::default()
        })
    }

    /// Whether the last item of a run goes where the run says.
    fn goes(&mut self, item: &Item, run: &Run, rules: &Rules) -> bool {
        let trap = self.items.front().is_some_and(Item::is_trap);
        if item.next == run.next {
            // A jump to the next instruction, told or not.
            if trap && rules.open_trap && run.exit == Exit::Stop && item.is_jump(rules.isa) {
                self.behind = Some(Behind::Unknown);
            }
            return true;
        }
        // Where the trace stops nobody need know the target.
        let stop = run.exit == Exit::Stop && run.next == rules.xlen.wrap(run.end);
        let mut open = item.has(LAST | OPEN) || (trap && rules.open_trap);
        if let Some(next) = self.items.front_mut()
            && rules.breaks_off
            && stop
            && !open
            && !next.is_trap()
            && item.is_return(rules.isa)
            && (next.context != item.context || next.mode != item.mode)
        {
            next.flags |= START;
            open = true;
        }
        if stop && (open || rules.loses) {
            self.behind = Some(Behind::Unreported);
            self.cut = !open;
            return true;
        }
        // Several traps are taken for one, at the address of the last.
        let traps = self.items.iter().take_while(|item| item.is_trap());
        rules.one_trap
            && traps.clone().count() > 1
            && traps.last().is_some_and(|t| t.pc == run.next)
    }

    pub(super) fn trapped<J: Judge>(
        &mut self,
        trap: &Trap,
        rules: &Rules,
        judge: &J,
    ) -> Result<Told, String> {
        // Until something is reported, it is unknown what was before.
        if self.heard.has(is_start) || self.heard.gap {
            self.behind = None;
        }
        let item = self.meet(rules, judge, trap, |m| {
            m.item.is_trap() && judge.is_trap(m, trap)
        })?;
        self.heard.pass(item);
        self.behind = Some(Behind::Unknown);
        Ok(Told {
            traps: 1,
            ..Told::default()
        })
    }

    pub(super) fn gap(&mut self, gap: &Gap, rules: &Rules) -> Result<Told, String> {
        if !rules.loses || gap.reason.code != rules.lost {
            let item = self.items.front();
            return Err(format!("expected {item:x?}, decoded a gap: {gap:x?}"));
        }
        self.heard.gap = true;
        self.heard.marks.clear();
        self.heard.last = None;
        let mut told = Told {
            gaps: 1,
            ..Told::default()
        };
        let Some(position) = self.restarts.pop_front() else {
            self.ended = true;
            return Ok(told);
        };
        let mut last = None;
        while self.items.front().is_some_and(|i| i.position < position) {
            last = self.items.pop_front();
            told.lost += 1;
        }
        // A trap may be reported with its handler.
        if let Some(trap) = last
            && rules.one_trap
            && trap.is_trap()
            && !trap.has(LAST | OPEN)
        {
            told.lost -= 1;
            self.items.push_front(trap);
        }
        Ok(told)
    }

    /// Both sides are at their end: what is left must be unreported.
    pub(super) fn end(&mut self, rules: &Rules) -> Result<Told, String> {
        let mut told = Told::default();
        loop {
            self.skip_lost_traps(rules);
            let Some(&item) = self.items.front() else {
                return Ok(told);
            };
            let unreported = item.is_trap()
                && item.has(LAST | OPEN)
                && (rules.last_trap_untold || rules.one_trap);
            if unreported {
                self.skip_trap();
                told.unreported += 1;
            } else if self.ended {
                self.items.pop_front();
                told.lost += 1;
            } else if self.skip_round(rules) {
                told.unreported += 1;
            } else {
                return Err(format!(
                    "after {}: expected {item:x?}, decoded nothing more",
                    self.given
                ));
            }
        }
    }
}
