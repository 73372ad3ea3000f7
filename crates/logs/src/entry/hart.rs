//! The state kept for one hart between two entries.

use hartrace_isa::{Flow, Isa, MRET, SRET};

use super::causes::{Waiting, cause_read};
use super::effects::{MemoryOp, Parts, Shadow, complete};
use super::modes::Modes;
use super::{Entry, EntryTrap, Out};
use crate::site::{Exits, Site, Sites, is_semihosting};
use hartrace_flow::{
    Cause, Context, Effects, HartId, Insn, Mode, RegId, RegWrite, Signal, Step, Trap, TrapStep,
};

/// What all harts share.
pub(crate) struct Ground<'g, 'a> {
    /// Classifies instructions.
    pub(super) isa: Isa,
    /// Entries record traps.
    pub(super) records_traps: bool,
    /// What nothing explains is no trap.
    pub(super) plain_jumps: bool,
    /// What ends the log may be given with what is only likely.
    pub(super) guesses: bool,
    /// Entries show what retired; listed instructions do not.
    pub(crate) commits: bool,
    pub(super) sites: &'g mut Option<Sites<'a>>,
    /// Stands for effects the log does not record.
    pub(super) unreported: &'g Effects,
    pub(super) waiting: &'g mut Waiting,
}

/// A trap whose handler is not known yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) epc: u64,
    pub(super) cause: Cause,
    pub(super) tval: Option<u64>,
    pub(super) bits: Option<u32>,
    pub(super) mode: Option<Mode>,
    pub(super) time: u64,
}

/// One hart.
#[derive(Clone, Debug)]
pub(crate) struct Hart {
    pub(crate) id: HartId,
    /// XLEN is 32.
    pub(super) narrow: bool,
    /// Nothing but a loss since the last loss.
    pub(super) lost: bool,
    /// Retired, but not given: its successor is not known.
    pub(super) insn: Option<Insn>,
    /// Where it says that it goes.
    next: Option<u64>,
    /// Nothing shows that it executed.
    unconfirmed: bool,
    pub(super) effects: Effects,
    /// Instruction line without a commit line so far. Without commit lines this is
    /// what will be given next.
    pub(super) listed: Option<(u64, u32)>,
    /// How often `listed` executed.
    pub(super) times: u64,
    pub(super) trap: Option<Held>,
    pub(super) shadow: Shadow,
    /// Every register that is written comes into the shadow; otherwise only those that
    /// system instructions write.
    shadowed: bool,
    modes: Modes,
    /// Mode of the last instruction given.
    pub(super) mode: Option<Mode>,
    /// Entries have no modes: the one that the hart is in.
    follows: bool,
    derived: Mode,
    /// Time of the last entry.
    now: u64,
    /// The instruction given last.
    before: u32,
    /// What the last entry said that it would write later.
    owed: Option<RegId>,
    /// Where the last instruction went, if it was given before the next entry.
    settled: Option<u64>,
}

impl Hart {
    pub(super) fn new(id: HartId) -> Hart {
        Hart {
            id,
            narrow: false,
            lost: false,
            insn: None,
            next: None,
            unconfirmed: false,
            effects: Effects::default(),
            listed: None,
            times: 1,
            trap: None,
            shadow: Shadow::default(),
            shadowed: false,
            modes: Modes::default(),
            mode: None,
            follows: false,
            derived: Mode::M,
            now: 0,
            before: 0,
            owed: None,
            settled: None,
        }
    }

    /// An entry comes: whatever waited for it is given.
    #[inline]
    pub(super) fn enter(
        &mut self,
        entry: &Entry,
        ground: &mut Ground<'_, '_>,
        out: &mut Out<'_, '_>,
    ) {
        self.follows = entry.mode.is_none();
        self.now = entry.time;
        match (self.insn, entry.handler) {
            (Some(insn), Some(cause)) if self.trap.is_none() => {
                self.interrupted(insn, cause, entry, ground, out);
            }
            (None, Some(cause)) if self.trap.is_none() => {
                self.interrupted_after_settling(cause, entry, ground, out);
            }
            _ => self.follow(entry.pc, entry.mode, ground, out),
        }
    }

    /// The hart is at `pc` now, in `mode` if that is known: whatever
    /// waited for that is given.
    #[inline]
    pub(crate) fn follow(
        &mut self,
        pc: u64,
        mode: Option<Mode>,
        ground: &mut Ground<'_, '_>,
        out: &mut Out<'_, '_>,
    ) {
        match (&self.trap, self.insn) {
            (None, Some(mut insn))
                if insn.end() == pc
                    && mode.unwrap_or(insn.mode) == insn.mode
                    && self.next.unwrap_or(pc) == pc
                    && falls_through(insn.bits) =>
            {
                insn.next = pc;
                self.insn = None;
                self.mode = Some(insn.mode);
                self.give(insn, ground, out);
            }
            (None, Some(insn)) => self.turn(insn, pc, mode, ground, out),
            (None, None) if self.listed.is_none() => {}
            _ => self.follow_rare(pc, mode, ground, out),
        }
    }

    #[cold]
    fn follow_rare(
        &mut self,
        pc: u64,
        mode: Option<Mode>,
        ground: &mut Ground<'_, '_>,
        out: &mut Out<'_, '_>,
    ) {
        // With commit lines, an instruction only listed did not retire.
        if !ground.commits {
            self.give_listed(Some(pc), ground, out);
        }
        self.give_trap(Some(pc), mode, ground, out);
    }

    #[inline]
    pub(super) fn give(&mut self, insn: Insn, ground: &mut Ground<'_, '_>, out: &mut Out<'_, '_>) {
        self.before = insn.bits;
        let step = Step::Insn(insn);
        ground.waiting.step(self.id, &step, &self.effects, out);
    }

    /// An instruction that did not just go on to the next one.
    #[inline(never)]
    pub(super) fn turn(
        &mut self,
        mut insn: Insn,
        pc: u64,
        mode: Option<Mode>,
        ground: &mut Ground<'_, '_>,
        out: &mut Out<'_, '_>,
    ) {
        self.insn = None;
        self.mode = Some(insn.mode);
        let site = Site::new(insn.pc, insn.bits, insn.len(), ground.isa, |_| None);
        if site.exits == Exits::Trap && ground.commits {
            return self.trap_at(insn, pc, mode, ground, out);
        }
        if self.unconfirmed && !site.allows(pc) {
            return self.trap_at(insn, pc, mode, ground, out);
        }
        let next = self.next.or_else(|| self.target(&insn, ground.isa));
        // Where entries record traps, a return leads where the next one is.
        let is_return = matches!(insn.bits, MRET | SRET) && self.next.is_none();
        let fits = match next.filter(|_| !(is_return && ground.records_traps)) {
            Some(next) => next == pc,
            None => site.allows(pc),
        };
        // Only a trap raises the privilege; after an indirect jump whose register is
        // unknown so is its epc, and it goes without.
        let known = site.exits == Exits::Known || next.is_some();
        let rose = mode.is_some_and(|m| m > insn.mode) && known;
        if (fits && !rose) || site.exits == Exits::Trap || ground.plain_jumps {
            if !known && !ground.plain_jumps {
                self.modes.forget_addresses();
            }
            insn.next = pc;
            let after = mode.unwrap_or_else(|| self.modes.after(insn.bits, insn.mode));
            self.derived = after;
            self.effects.mode = Some(after).filter(|&after| after != insn.mode);
            return self.give(insn, ground, out);
        }
        let natural = match fits {
            true => Some(pc),
            false => next.or_else(|| self.led(&insn, &site)),
        };
        let epc = natural.unwrap_or(site.natural);
        insn.next = epc;
        let after = self.modes.after(insn.bits, insn.mode);
        self.effects.mode = Some(after).filter(|&after| after != insn.mode);
        self.give(insn, ground, out);
        if is_semihosting(insn.bits, epc, pc) {
            return self.debugged(ground, out);
        }
        let code = ground.sites.as_mut().and_then(|s| s.get(epc));
        let code = code.filter(|site| site.exits == Exits::Trap);
        let cause = code.map_or(Cause::Unknown, |c| {
            Cause::of_instruction(c.bits, Some(after))
        });
        self.trap = Some(Held {
            epc,
            cause,
            tval: None,
            bits: code.map(|c| c.bits),
            mode: Some(after),
            time: self.now,
        });
        self.give_trap(Some(pc), mode, ground, out);
        if natural.is_none() {
            self.modes.forget_addresses();
        }
    }

    /// An instruction that trapped. An ebreak may be for a debugger.
    #[cold]
    fn trap_at(
        &mut self,
        insn: Insn,
        pc: u64,
        mode: Option<Mode>,
        ground: &mut Ground<'_, '_>,
        out: &mut Out<'_, '_>,
    ) {
        if is_semihosting(self.before, insn.pc, pc) {
            return self.debugged(ground, out);
        }
        self.trap = Some(Held {
            epc: insn.pc,
            cause: match is_trap(insn.bits, ground.isa) {
                true => Cause::of_instruction(insn.bits, Some(insn.mode)),
                false => Cause::Exception(None),
            },
            tval: None,
            bits: Some(insn.bits),
            mode: Some(insn.mode),
            time: insn.time,
        });
        self.give_trap(Some(pc), mode, ground, out);
    }

    /// A debugger served a semihosting call.
    #[cold]
    fn debugged(&self, ground: &mut Ground<'_, '_>, out: &mut Out<'_, '_>) {
        for signal in [Signal::Halted, Signal::Resumed] {
            let step = Step::Signal(signal);
            ground.waiting.step(self.id, &step, ground.unreported, out);
        }
    }

    /// An entry is the first of a handler, but none recorded the trap: an interrupt
    /// after `insn`.
    #[cold]
    fn interrupted(
        &mut self,
        mut insn: Insn,
        cause: Cause,
        entry: &Entry,
        ground: &mut Ground<'_, '_>,
        out: &mut Out<'_, '_>,
    ) {
        let site = Site::new(insn.pc, insn.bits, insn.len(), ground.isa, |_| None);
        if site.exits == Exits::Trap {
            return self.turn(insn, entry.pc, entry.mode, ground, out);
        }
        self.insn = None;
        let known = self.successor(&insn, &site, ground.isa);
        insn.next = known.unwrap_or(site.natural);
        let mode = self.modes.after(insn.bits, insn.mode);
        self.mode = Some(mode);
        self.effects.mode = Some(mode).filter(|&after| after != insn.mode);
        self.give(insn, ground, out);
        self.trap = Some(Held {
            epc: insn.next,
            cause,
            tval: None,
            bits: None,
            mode: Some(mode),
            time: entry.time,
        });
        self.give_trap(Some(entry.pc), entry.mode, ground, out);
        if known.is_none() {
            self.modes.forget_addresses();
        }
    }

    /// The same where the instruction before is given already.
    #[cold]
    fn interrupted_after_settling(
        &mut self,
        cause: Cause,
        entry: &Entry,
        ground: &mut Ground<'_, '_>,
        out: &mut Out<'_, '_>,
    ) {
        if let Some(epc) = self.settled {
            self.trap = Some(Held {
                epc,
                cause,
                tval: None,
                bits: None,
                mode: self.mode,
                time: entry.time,
            });
        }
        self.follow(entry.pc, entry.mode, ground, out);
    }

    /// Gives the instruction that waits for the next entry, if nothing can be learnt from
    /// that: it is known where it went, and it stays in its mode.
    #[inline]
    pub(super) fn settle(&mut self, ground: &mut Ground<'_, '_>, out: &mut Out<'_, '_>) {
        let (Some(mut insn), Some(next)) = (self.insn, self.next) else {
            return;
        };
        // xRET, ecall, ebreak and others that may leave the mode.
        let leaves = insn.bits & 0x7f == 0x73 && insn.bits >> 12 & 7 == 0;
        if self.trap.is_some() || self.unconfirmed || leaves || insn.bits & 0xffff == C_EBREAK {
            return;
        }
        insn.next = next;
        (self.insn, self.settled) = (None, Some(next));
        self.mode = Some(insn.mode);
        self.give(insn, ground, out);
    }

    /// Nothing waits to be given: the mode of the next instruction if no entry has it.
    #[inline]
    pub(super) fn settled(&self) -> Option<Mode> {
        let nothing = self.insn.is_none() && self.trap.is_none() && self.listed.is_none();
        (nothing && self.settled.is_some() && self.owed.is_none()).then_some(self.derived)
    }

    /// An instruction that is not given.
    #[inline]
    pub(super) fn pass(&mut self, insn: &Insn, reg: Option<&RegWrite>) {
        self.settled = Some(insn.next);
        self.mode = Some(insn.mode);
        self.before = insn.bits;
        self.now = insn.time;
        if let Some(RegWrite {
            reg: RegId::X(number),
            value,
        }) = reg
        {
            self.shadow.set(*number, *value);
        }
    }

    /// As [`Hart::retired`] of an instruction without effects that does not wait: what
    /// comes now is dealt with elsewhere.
    #[inline]
    pub(crate) fn leave(&mut self) {
        (self.listed, self.owed, self.settled) = (None, None, None);
        (self.next, self.unconfirmed, self.shadowed) = (None, false, false);
        self.effects.clear();
    }

    /// After [`Hart::leave`]: instructions have been given, the last of them with the bits
    /// `before`, all in one mode.
    pub(crate) fn resume(&mut self, before: u32, mode: Mode) {
        self.before = before;
        self.mode = Some(mode);
        self.derived = mode;
    }

    /// This instruction waits for the next entry.
    pub(crate) fn wait(&mut self, pc: u64, bits: u32, mode: Mode) {
        self.insn = Some(Insn {
            pc,
            bits,
            mode,
            ..Insn::default()
        });
    }

    /// No instruction is listed.
    #[inline]
    pub(crate) fn unlist(&mut self) {
        self.listed = None;
    }

    /// A jump could have gone anywhere: there may have been a trap that nothing shows.
    pub(crate) fn jumped(&mut self) {
        self.modes.forget_addresses();
    }

    /// Where an instruction goes, by what is known of it and of its registers.
    fn successor(&self, insn: &Insn, site: &Site, isa: Isa) -> Option<u64> {
        let known = self.next.or_else(|| self.target(insn, isa));
        known.or_else(|| self.led(insn, site))
    }

    /// Where an instruction leads by its code; a branch, if its registers are known.
    fn led(&self, insn: &Insn, site: &Site) -> Option<u64> {
        if site.successor().is_some() {
            return site.successor();
        }
        if !self.shadowed || site.exits != Exits::Known {
            return None;
        }
        let bits = insn.bits;
        let (condition, rs1, rs2) = match bits & 3 {
            3 => (bits >> 12 & 7, bits >> 15, bits >> 20),
            // c.beqz, c.bnez
            _ => (bits >> 13 & 1, 8 + (bits >> 7 & 7), 0),
        };
        let value = |reg| {
            let value = self.shadow.get(reg)?;
            Some(match self.narrow {
                true => i64::from(value as i32),
                false => value.cast_signed(),
            })
        };
        let (a, b) = (value(rs1)?, value(rs2)?);
        let taken = match condition {
            0 => a == b,
            1 => a != b,
            4 => a < b,
            5 => a >= b,
            6 => a.cast_unsigned() < b.cast_unsigned(),
            7 => a.cast_unsigned() >= b.cast_unsigned(),
            _ => return None,
        };
        Some(if taken { site.taken } else { site.natural })
    }

    /// Where an indirect jump goes, if its register is known and it has not
    /// overwritten it, or a return from a trap.
    fn target(&self, insn: &Insn, isa: Isa) -> Option<u64> {
        if matches!(insn.bits, MRET | SRET) {
            let target = self.modes.target(insn.bits, insn.mode)?;
            return Some(isa.xlen().wrap(target));
        }
        if !self.shadowed {
            return None;
        }
        let Flow::Indirect { rs1, .. } = Flow::of_retired(insn.bits, isa) else {
            return None;
        };
        let written = match insn.bits & 3 {
            3 => insn.bits >> 7 & 31,
            // c.jalr, c.jr
            _ => insn.bits >> 12 & 1,
        };
        let own = written != 0 && written == u32::from(rs1.number());
        let offset = match insn.bits & 3 {
            3 => i64::from(insn.bits.cast_signed() >> 20),
            _ => 0,
        };
        let base = self.shadow.get(rs1.number().into()).filter(|_| !own)?;
        Some(isa.xlen().wrap(base.wrapping_add_signed(offset) & !1))
    }

    /// Gives the trap that waits for its handler, which runs in `mode` if that is known.
    fn give_trap(
        &mut self,
        handler: Option<u64>,
        mode: Option<Mode>,
        ground: &mut Ground<'_, '_>,
        out: &mut Out<'_, '_>,
    ) {
        let Some(held) = self.trap.take() else {
            return;
        };
        let before = held.mode.or(mode).unwrap_or_default();
        let likely = self.modes.likely_handler(held.cause, before);
        let mode = mode.or(Some(likely).filter(|_| self.follows));
        match mode {
            Some(to) => {
                self.modes.trapped(before, held.epc, to);
                self.derived = to;
            }
            None => self.modes.forget_addresses(),
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
            time: held.time,
        });
        self.mode = None;
        let effects = Effects {
            mode: mode.filter(|&mode| mode != before),
            ..*ground.unreported
        };
        ground.waiting.step(self.id, &step, &effects, out);
    }

    /// Emits an instruction whose successor is unknown.
    pub(super) fn give_natural(
        &mut self,
        mut insn: Insn,
        ground: &mut Ground<'_, '_>,
        out: &mut Out<'_, '_>,
    ) {
        let site = Site::new(insn.pc, insn.bits, insn.len(), ground.isa, |_| None);
        // For want of a handler.
        if site.exits == Exits::Trap && ground.commits {
            return;
        }
        let known = self.successor(&insn, &site, ground.isa);
        insn.next = known.unwrap_or(site.natural);
        self.give(insn, ground, out);
    }

    /// An instruction retired; what it has read of the cause of a trap.
    #[inline]
    pub(super) fn retired(&mut self, entry: &Entry, bits: u32, parts: Parts) -> Option<Cause> {
        (self.listed, self.owed, self.settled) = (None, None, None);
        (self.next, self.unconfirmed) = (entry.next, entry.unconfirmed);
        let mode = entry.mode.unwrap_or(self.derived);
        self.insn = Some(Insn {
            pc: entry.pc,
            next: 0,
            time: entry.time,
            context: Context(0),
            bits,
            mode,
        });
        let system = bits & 0x7f == 0x73;
        self.shadowed = parts.any() || self.follows;
        if !self.shadowed && !system {
            self.effects.clear();
            return None;
        }
        if system {
            self.modes.wrote(entry, bits, mode, &self.shadow);
        }
        let op = MemoryOp::of(bits, self.narrow);
        complete(
            entry,
            (bits, op),
            &mut self.shadow,
            parts,
            &mut self.effects,
        );
        let [read] = *entry.regs else {
            return None;
        };
        cause_read(bits, mode, read.value, self.narrow)
    }

    /// A register was written late: it belongs to the last instruction, or to one
    /// that has been given without it.
    pub(crate) fn late(&mut self, reg: RegId, value: u64, parts: Parts) {
        if let RegId::X(number) = reg {
            self.shadow.set(number, value);
        }
        if self.owed.take_if(|owed| *owed == reg).is_some() && parts.regs {
            let full = self.effects.regs.push(RegWrite { reg, value }).is_err();
            self.effects.incomplete = full;
        }
    }

    /// The last instruction will write a register later.
    pub(crate) fn owe(&mut self, reg: Option<RegId>) {
        self.owed = reg;
        if let Some(RegId::X(number)) = reg {
            self.shadow.lose(number);
        }
    }

    /// An instruction did not retire, or an interrupt was taken before it.
    #[cold]
    pub(super) fn trapped(
        &mut self,
        entry: &Entry,
        trap: EntryTrap,
        bits: Option<u32>,
        ground: &mut Ground<'_, '_>,
        out: &mut Out<'_, '_>,
    ) {
        self.follows = entry.mode.is_none();
        self.now = entry.time;
        self.before_trap(entry.pc, (trap.cause, entry.mode), ground, out);
        let mode = entry.mode.unwrap_or(self.derived);
        let cause = match (trap.cause, bits) {
            (Cause::Exception(None), Some(bits)) if is_trap(bits, ground.isa) => {
                Cause::of_instruction(bits, Some(mode))
            }
            (cause, _) => cause,
        };
        self.trap = Some(Held {
            epc: entry.pc,
            cause,
            tval: trap.tval,
            bits: bits.filter(|_| !prevents_fetch(cause)),
            mode: Some(mode),
            time: entry.time,
        });
    }

    /// Everything up to a trap at `epc` is given. Few logs have the mode at a trap.
    pub(crate) fn before_trap(
        &mut self,
        epc: u64,
        (cause, mode): (Cause, Option<Mode>),
        ground: &mut Ground<'_, '_>,
        out: &mut Out<'_, '_>,
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
            // Nothing but a return has changed it.
            let mode = mode.filter(|_| matches!(insn.bits, MRET | SRET));
            self.turn(insn, epc, mode, ground, out);
            self.mode = mode.or(Some(self.modes.after(insn.bits, insn.mode)));
        } else if self.trap.is_some() {
            // A trap in a handler before its first instruction.
            if !ground.commits {
                self.give_listed(Some(epc), ground, out);
            }
            let mode = self.handler_mode().filter(|_| ground.commits);
            self.give_trap(Some(epc), mode, ground, out);
            self.mode = mode;
        }
    }

    /// The mode the trap that waits leads to, where no line shows it: by the
    /// delegation registers.
    fn handler_mode(&self) -> Option<Mode> {
        let held = self.trap?;
        self.modes.handler(held.cause, held.mode?)
    }

    /// There is no next entry to learn from.
    pub(super) fn flush(&mut self, ground: &mut Ground<'_, '_>, out: &mut Out<'_, '_>) {
        if let Some(insn) = self.insn.take() {
            let site = Site::new(insn.pc, insn.bits, insn.len(), ground.isa, |_| None);
            // An observer of control flow is not given a guess.
            if ground.guesses || self.next.is_some() || site.successor().is_some() {
                self.give_natural(insn, ground, out);
            }
        }
        if !ground.commits {
            self.give_listed(None, ground, out);
        }
        self.listed = None;
        // Nor is one of the handler of a trap.
        if !ground.guesses {
            self.trap = None;
        }
        let mode = self.handler_mode().filter(|_| ground.commits);
        self.give_trap(None, mode, ground, out);
        self.mode = None;
        self.modes.forget();
        self.shadow.forget();
        self.settled = None;
    }
}

impl Held {
    /// Whether the instruction at `pc` is the one that trapped.
    pub(super) fn at(&self, pc: u64) -> bool {
        self.epc == pc && !matches!(self.cause, Cause::Interrupt(_))
    }
}

pub(crate) const C_EBREAK: u32 = 0x9002;

/// Whether a trap is taken before its instruction is there.
pub(super) const fn prevents_fetch(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::Interrupt(_) | Cause::Exception(Some(1 | 12 | 20))
    )
}

/// ecall and ebreak.
fn is_trap(bits: u32, isa: Isa) -> bool {
    Flow::of_retired(bits, isa) == Flow::Trap
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
