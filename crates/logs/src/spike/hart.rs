//! The state kept for one hart between two lines.

use hartrace_isa::Flow;

use super::causes::cause_read;
use super::effects::Shadow;
use super::{Cursor, Isa, LineErrorKind, MemoryOp, Parts, Sites, Tail};
use crate::site::{Exits, Site, is_semihosting};
use hartrace_flow::{
    Cause, Context, Effects, HartId, Insn, Mode, Observer, Signal, Step, Trap, TrapStep,
};

/// What all harts share.
pub(super) struct Ground<'g, 'a> {
    /// Classifies instructions.
    pub(super) isa: Isa,
    /// What nothing explains is no trap.
    pub(super) plain_jumps: bool,
    pub(super) sites: &'g mut Option<Sites<'a>>,
    /// Stands for effects the log does not record.
    pub(super) unreported: &'g Effects,
}

/// A trap whose handler is not known yet.
#[derive(Clone, Copy, Debug)]
struct Held {
    epc: u64,
    cause: Cause,
    tval: Option<u64>,
    bits: Option<u32>,
    mode: Option<Mode>,
}

/// Modes to return to, as mret and sret would find them.
#[derive(Clone, Copy, Debug, Default)]
struct Previous {
    mpp: Option<Mode>,
    spp: Option<Mode>,
}

/// Traps below machine mode that supervisor mode takes, by their codes; none
/// after reset.
#[derive(Clone, Copy, Debug, Default)]
struct Delegated {
    exceptions: u64,
    interrupts: u64,
}

/// One hart.
#[derive(Clone, Debug)]
pub(super) struct Hart {
    pub(super) id: HartId,
    /// XLEN is 32.
    pub(super) narrow: bool,
    /// Nothing but a loss since the last loss.
    pub(super) lost: bool,
    /// Retired, but not given: its successor is not known.
    insn: Option<Insn>,
    effects: Effects,
    /// Instruction line without a commit line so far. With `-l` alone this is
    /// what will be given next.
    listed: Option<(u64, u32)>,
    /// How often `listed` executed (`-l` alone).
    times: u64,
    trap: Option<Held>,
    shadow: Shadow,
    previous: Previous,
    delegated: Delegated,
    /// Mode of the last instruction given.
    mode: Option<Mode>,
}

impl Hart {
    pub(super) fn new(id: HartId) -> Hart {
        Hart {
            id,
            narrow: false,
            lost: false,
            insn: None,
            effects: Effects::default(),
            listed: None,
            times: 1,
            trap: None,
            shadow: Shadow::default(),
            previous: Previous::default(),
            delegated: Delegated::default(),
            mode: None,
        }
    }

    /// The hart is at `pc` now, in `mode` if the line has one: whatever
    /// waited for that is given.
    #[inline]
    pub(super) fn follow<O: Observer>(
        &mut self,
        pc: u64,
        mode: Option<Mode>,
        ground: &mut Ground<'_, '_>,
        out: &mut O,
    ) {
        match (&self.trap, self.insn) {
            (None, Some(mut insn)) if insn.end() == pc && mode == Some(insn.mode) => {
                insn.next = pc;
                if !falls_through(insn.bits) {
                    return self.turn(insn, pc, mode, ground, out);
                }
                self.insn = None;
                self.mode = mode;
                out.step(self.id, &Step::Insn(insn), &self.effects);
            }
            (None, Some(insn)) => self.turn(insn, pc, mode, ground, out),
            (None, None) if self.listed.is_none() => {}
            _ => self.follow_rare(pc, mode, ground, out),
        }
    }

    #[cold]
    fn follow_rare<O: Observer>(
        &mut self,
        pc: u64,
        mode: Option<Mode>,
        ground: &mut Ground<'_, '_>,
        out: &mut O,
    ) {
        // With commit lines, an instruction only listed did not retire.
        if mode.is_none() {
            self.give_listed(Some(pc), ground, out);
        }
        self.give_trap(Some(pc), mode, ground, out);
    }

    /// An instruction that did not just go on to the next one.
    #[inline(never)]
    fn turn<O: Observer>(
        &mut self,
        mut insn: Insn,
        pc: u64,
        mode: Option<Mode>,
        ground: &mut Ground<'_, '_>,
        out: &mut O,
    ) {
        self.insn = None;
        self.mode = Some(insn.mode);
        let site = Site::new(insn.pc, insn.bits, insn.len(), ground.isa, |_| None);
        // Only a trap raises the privilege; after an indirect jump its epc
        // is unknown and it goes without.
        let rose = mode.is_some_and(|m| m > insn.mode) && site.exits == Exits::Known;
        if (site.allows(pc) && !rose) || site.exits == Exits::Trap || ground.plain_jumps {
            insn.next = pc;
            let after = mode.unwrap_or_else(|| self.mode_after(&insn));
            self.effects.mode = Some(after).filter(|&after| after != insn.mode);
            out.step(self.id, &Step::Insn(insn), &self.effects);
            return;
        }
        let epc = if site.allows(pc) { pc } else { site.natural };
        insn.next = epc;
        out.step(self.id, &Step::Insn(insn), &self.effects);
        if is_semihosting(insn.bits, epc, pc) {
            for signal in [Signal::Halted, Signal::Resumed] {
                out.step(self.id, &Step::Signal(signal), ground.unreported);
            }
            return;
        }
        let code = ground.sites.as_mut().and_then(|s| s.get(epc));
        let code = code.filter(|site| site.exits == Exits::Trap);
        self.trap = Some(Held {
            epc,
            cause: code.map_or(Cause::Unknown, |c| {
                Cause::of_instruction(c.bits, Some(insn.mode))
            }),
            tval: None,
            bits: code.map(|c| c.bits),
            mode: Some(insn.mode),
        });
        self.give_trap(Some(pc), mode, ground, out);
    }

    /// Gives the trap that waits for its handler.
    fn give_trap<O: Observer>(
        &mut self,
        handler: Option<u64>,
        mode: Option<Mode>,
        ground: &Ground<'_, '_>,
        out: &mut O,
    ) {
        let Some(held) = self.trap.take() else {
            return;
        };
        let before = held.mode.or(mode).unwrap_or_default();
        match mode {
            Some(Mode::M) => self.previous.mpp = Some(before),
            Some(Mode::S) => self.previous.spp = Some(before),
            _ => {}
        }
        let step = Step::Trap(TrapStep {
            trap: Trap {
                epc: Some(held.epc),
                handler,
                cause: held.cause,
                tval: held.tval,
                pending: None,
            },
            bits: held.bits,
            mode: before,
            context: Context(0),
            time: 0,
        });
        self.mode = None;
        let effects = Effects {
            mode: mode.filter(|&mode| mode != before),
            ..*ground.unreported
        };
        out.step(self.id, &step, &effects);
    }

    /// `-l` alone: gives the instruction listed last, as often as it executed.
    /// It went to `next`, or to an unknown address.
    fn give_listed<O: Observer>(
        &mut self,
        next: Option<u64>,
        ground: &mut Ground<'_, '_>,
        out: &mut O,
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
            out.step(self.id, &Step::Insn(insn), ground.unreported);
        }
        if times == 0 {
            return;
        }
        if let Some(held) = self.trap {
            insn.next = if trapped { pc } else { held.epc };
            out.step(self.id, &Step::Insn(insn), ground.unreported);
            return;
        }
        match next {
            Some(next) => self.turn(insn, next, None, ground, out),
            None => self.give_natural(insn, ground, out),
        }
    }

    /// Emits an instruction whose successor is unknown.
    fn give_natural<O: Observer>(&mut self, mut insn: Insn, ground: &Ground<'_, '_>, out: &mut O) {
        let site = Site::new(insn.pc, insn.bits, insn.len(), ground.isa, |_| None);
        insn.next = site.natural;
        out.step(self.id, &Step::Insn(insn), &self.effects);
    }

    /// A debugger did something to the hart, which is after its last
    /// instruction.
    pub(super) fn debugger<O: Observer>(
        &mut self,
        signal: Signal,
        line: &mut Cursor<'_>,
        parts: Parts,
        ground: &mut Ground<'_, '_>,
        out: &mut O,
    ) -> Result<(), LineErrorKind> {
        if let Some(insn) = self.insn.take() {
            self.mode = Some(insn.mode);
            self.give_natural(insn, ground, out);
        }
        self.effects.clear();
        let op = MemoryOp::Other;
        let mut tail = Tail::new(&mut self.effects, &mut self.shadow, parts, op);
        tail.read(line, 0)?;
        out.step(self.id, &Step::Signal(signal), &self.effects);
        Ok(())
    }

    /// An instruction retired.
    #[inline]
    pub(super) fn commit(&mut self, pc: u64, bits: u32, mode: Mode) {
        self.listed = None;
        self.effects.clear();
        self.insn = Some(Insn {
            pc,
            next: 0,
            time: 0,
            context: Context(0),
            bits,
            mode,
        });
    }

    /// Its effects turned out to be damaged.
    pub(super) fn drop_insn(&mut self) {
        self.insn = None;
    }

    /// An instruction is about to execute.
    #[inline]
    pub(super) fn list(&mut self, pc: u64, bits: u32) {
        self.listed = Some((pc, bits));
        self.times = 1;
    }

    /// `-l` alone: the instruction listed last executed so often in all; false
    /// where that does not fit.
    pub(super) fn repeat(&mut self, times: u64) -> bool {
        if self.listed.is_none() || times == 0 {
            return times <= 1;
        }
        self.times = times;
        true
    }

    /// Reads the effects of the instruction that just retired.
    #[inline]
    pub(super) fn effects(
        &mut self,
        line: &mut Cursor<'_>,
        bits: u32,
        parts: Parts,
    ) -> Result<Option<Cause>, LineErrorKind> {
        let op = MemoryOp::of(bits, self.narrow);
        let mut tail = Tail::new(&mut self.effects, &mut self.shadow, parts, op);
        tail.read(line, bits)?;
        let delegated = &mut self.delegated;
        delegated.exceptions = tail.medeleg.unwrap_or(delegated.exceptions);
        delegated.interrupts = tail.mideleg.unwrap_or(delegated.interrupts);
        if let Some(mstatus) = tail.mstatus
            && Flow::of(bits, Isa::RV64GC) != Flow::TrapReturn
        {
            self.previous = Previous {
                mpp: Mode::from_code((mstatus >> 11 & 3) as u8),
                spp: Mode::from_code((mstatus >> 8 & 1) as u8),
            };
        }
        let read = tail.only_value();
        let mode = self.insn.map(|insn| insn.mode);
        Ok(read
            .zip(mode)
            .and_then(|(value, mode)| cause_read(bits, mode, value, self.narrow)))
    }

    /// Everything up to a trap at `epc` is given.
    pub(super) fn before_trap<O: Observer>(
        &mut self,
        epc: u64,
        cause: Cause,
        commits: bool,
        ground: &mut Ground<'_, '_>,
        out: &mut O,
    ) {
        // A vector access that faults half-way has a commit line for the part
        // that was done, and has not retired.
        if let Some(insn) = self.insn.take_if(|i| {
            i.pc == epc && matches!(cause, Cause::Exception(_)) && is_vector_access(i.bits)
        }) {
            self.mode = Some(insn.mode);
            self.listed = Some((insn.pc, insn.bits));
        }
        if let Some(insn) = self.insn {
            // The mode at a trap is not in the log: assume it did not rise.
            self.turn(insn, epc, None, ground, out);
            self.mode = Some(self.mode_after(&insn));
        } else if self.trap.is_some() {
            // A trap in a handler before its first instruction.
            if !commits {
                self.give_listed(Some(epc), ground, out);
            }
            let mode = self.handler_mode().filter(|_| commits);
            self.give_trap(Some(epc), mode, ground, out);
            self.mode = mode;
        }
    }

    /// The mode the trap that waits leads to, where no line shows it: by the
    /// delegation registers.
    fn handler_mode(&self) -> Option<Mode> {
        let held = self.trap?;
        let (traps, code) = match held.cause {
            Cause::Exception(code) => (self.delegated.exceptions, code?),
            Cause::Interrupt(code) => (self.delegated.interrupts, code?),
            Cause::Unknown => return None,
        };
        let delegated = traps.checked_shr(code).is_some_and(|bits| bits & 1 != 0);
        match held.mode? {
            mode if mode != Mode::M && delegated => Some(Mode::S),
            _ => Some(Mode::M),
        }
    }

    /// The mode that an instruction leaves the hart in.
    fn mode_after(&self, insn: &Insn) -> Mode {
        let returned = match insn.bits {
            0x3020_0073 => self.previous.mpp,
            0x1020_0073 => self.previous.spp,
            _ => None,
        };
        returned.unwrap_or(insn.mode)
    }

    /// A trap was taken; its handler comes with the next line.
    pub(super) fn hold(&mut self, epc: u64, cause: Cause, mode: Option<Mode>) {
        // A fetch that fails leaves no instruction.
        let fetch = matches!(
            cause,
            Cause::Interrupt(_) | Cause::Exception(Some(1 | 12 | 20))
        );
        let bits = self.listed.filter(|l| l.0 == epc && !fetch).map(|l| l.1);
        self.trap = Some(Held {
            epc,
            cause,
            tval: None,
            bits,
            mode: mode.or(self.mode),
        });
    }

    /// The value of the trap just taken.
    pub(super) fn tval(&mut self, value: u64) -> Option<()> {
        let trap = self.trap.as_mut().filter(|t| t.tval.is_none())?;
        trap.tval = Some(value);
        Some(())
    }

    /// There is no next line to learn from.
    pub(super) fn flush<O: Observer>(
        &mut self,
        commits: bool,
        ground: &mut Ground<'_, '_>,
        out: &mut O,
    ) {
        if let Some(insn) = self.insn.take() {
            let site = Site::new(insn.pc, insn.bits, insn.len(), ground.isa, |_| None);
            // An observer of control flow is not given a guess.
            if !ground.plain_jumps || site.successor().is_some() {
                self.give_natural(insn, ground, out);
            }
        }
        if !commits {
            self.give_listed(None, ground, out);
        }
        self.listed = None;
        let mode = self.handler_mode().filter(|_| commits);
        self.give_trap(None, mode, ground, out);
        self.mode = None;
        self.previous = Previous::default();
        self.shadow.forget();
    }
}

impl Held {
    /// Whether the instruction at `pc` is the one that trapped.
    fn at(&self, pc: u64) -> bool {
        self.epc == pc && !matches!(self.cause, Cause::Interrupt(_))
    }
}

/// Whether an instruction of either length may only go on to the next one:
/// the cheap half of the classification.
#[inline]
const fn falls_through(bits: u32) -> bool {
    if bits & 3 == 3 {
        // jalr, jal, system
        !matches!(bits & 0x7f, 0x67 | 0x6f | 0x73)
    } else {
        // c.jal, c.j; c.jr and its relatives; Zcmp and Zcmt
        !matches!((bits & 3, bits >> 13), (1, 1 | 5) | (2, 4 | 5))
    }
}

/// Vector loads and stores.
const fn is_vector_access(bits: u32) -> bool {
    matches!(bits & 0x7f, 0x07 | 0x27) && matches!(bits >> 12 & 7, 0 | 5 | 6 | 7)
}
